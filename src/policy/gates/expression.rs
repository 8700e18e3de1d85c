//! Expressions over a predicate, in minijinja's expression language. Sandboxed: it cannot reach files,
//! environment or network, its work is limited, and an absent field is an error, never false.

use minijinja::value::{Serde, ValueKind};
use minijinja::{Environment, ErrorKind, UndefinedBehavior};
use serde_json::Value as Json;
use std::sync::LazyLock;

/// Maximum number of evaluation steps; a comparison needs about five.
const FUEL: u64 = 100_000;
/// Longest expression, bytes.
const LONGEST: usize = 4_096;

/// What an expression can use: minijinja's own filters and tests, and its variables.
static SANDBOX: LazyLock<Environment<'static>> = LazyLock::new(|| {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_fuel(Some(FUEL));
    environment
});

/// Evaluates `expression` with the members of `predicate` as variables.
///
/// # Errors
/// It does not compile, fails, runs too long, or yields something that is neither true nor false.
pub fn evaluate_expression(expression: &str, predicate: &Json) -> Result<bool, String> {
    if expression.len() > LONGEST {
        return Err(format!("the expression is longer than {LONGEST} bytes"));
    }
    let compiled = SANDBOX
        .compile_expression_owned(expression.to_owned())
        .map_err(|e| format!("the expression {expression:?} does not compile: {}", format_cause(&e)))?;
    let answer = compiled
        .eval(Serde(predicate))
        .map_err(|e| format!("the expression {expression:?} cannot be evaluated: {}", format_cause(&e)))?;
    match answer.kind() {
        ValueKind::Bool => Ok(answer.is_true()),
        other => Err(format!("the expression {expression:?} yields a {other}, not true or false")),
    }
}

fn format_cause(error: &minijinja::Error) -> String {
    match (error.kind(), error.detail()) {
        (ErrorKind::OutOfFuel, _) => "it runs too long".into(),
        (kind, Some(detail)) => format!("{kind}: {detail}"),
        (kind, None) => kind.to_string(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;
    use serde_json::json;

    #[test]
    fn members_of_the_predicate_are_variables() {
        let predicate = json!({
            "result": "PASSED", "passedTests": ["a", "b"], "coverage": 81.5,
            "metadata": {"builder.id": "ci", "ok": true}
        });
        for (expression, expected) in [
            ("result == 'PASSED'", true),
            ("result == 'FAILED'", false),
            ("coverage >= 80 and passedTests|length == 2", true),
            ("metadata['builder.id'] == 'ci' and metadata.ok", true),
            ("'c' in passedTests", false),
            ("result is defined and missing is not defined", true),
        ] {
            assert_eq!(evaluate_expression(expression, &predicate), Ok(expected), "{expression}");
        }
    }

    #[test]
    fn nothing_but_true_or_false_is_an_answer() {
        let why = |expression: &str| {
            evaluate_expression(expression, &json!({"result": "PASSED", "n": 1})).unwrap_err()
        };
        assert!(why("result").contains("yields a string"), "{}", why("result"));
        assert!(why("n").contains("yields a number"));
        assert!(why("result ==").contains("does not compile"));
        assert!(why("").contains("does not compile"));
        assert!(why("reslt == 'PASSED'").contains("undefined"), "{}", why("reslt == 'PASSED'"));
        assert!(why("n.deep.er == 1").contains("cannot be evaluated"));
        assert!(why(&"x".repeat(LONGEST + 1)).contains("longer than"));
    }

    #[test]
    fn what_runs_too_long_or_reaches_out_fails() {
        for heavy in [
            "range(90000)|map('string')|join('')|length > 0",
            "range(99999)|list|length + range(99999)|list|length > 0",
            "('x' * 100000000)|length > 0",
        ] {
            let why = evaluate_expression(heavy, &json!({})).unwrap_err();
            assert!(why.contains("runs too long") || why.contains("too large"), "{heavy}: {why}");
        }
        for outward in ["include('x')", "import('x')", "env('HOME')", "read('x')"] {
            assert!(evaluate_expression(outward, &json!({})).is_err(), "{outward}");
        }
    }
}
