//! An attestation check: a signed statement of a type that is new enough and for which an expression is true.
//!
//! Of several statements the newest decides, by signed times only. A statement without a time cannot be
//! ordered, so every such statement must pass, too. With `maxAge` only statements with a time count.

use super::checks::CheckAnswer;
use super::evidence::describe_unread;
use super::expression;
use crate::model::evidence::{Evidence, Proof, Statement};
use crate::model::order::AttestationCheck;
use crate::model::time::{SKEW, Time};
use serde_json::Value;
use std::sync::Arc;

/// in-toto's test result: its `result` must be `PASSED`, even if the expression is true.
pub const TEST_RESULT: &str = "https://in-toto.io/attestation/test-result/v0.1";

/// Judges the statements of the wanted type that are signed by a key trusted for checks.
#[must_use]
pub fn judge_statements(
    check: &AttestationCheck,
    known: Option<&Evidence<Vec<Proof>>>,
    now: Time,
) -> CheckAnswer {
    let proofs = match known {
        None => return CheckAnswer::make_not_read(),
        Some(Evidence::Unread(unread)) => {
            return CheckAnswer::make_unread(format!("{}: {}", unread.reason, describe_unread(unread)));
        }
        Some(Evidence::Missing(looked) | Evidence::Invalid(looked)) => {
            let (why, wanted) = (&looked.why, &check.predicate_type);
            let named = why.contains(wanted.as_str());
            return CheckAnswer::make_lacking(if named { why.clone() } else { format!("{why} ({wanted})") });
        }
        Some(Evidence::Proven(proofs)) => proofs,
    };
    let mut ahead = None;
    let mut dated: Vec<(Time, SignedStatement)> = Vec::new();
    let mut undated: Vec<SignedStatement> = Vec::new();
    for proof in proofs {
        let Some(statement) = proof.statement.as_ref().filter(|s| s.predicate_type == check.predicate_type)
        else {
            continue;
        };
        match statement.time {
            Some(time) if time > now.add_span(SKEW) => ahead = ahead.max(Some(time)),
            Some(time) => dated.push((time, (proof, statement))),
            None => undated.push((proof, statement)),
        }
    }
    let newest = dated.iter().map(|(time, _)| *time).max();
    let mut deciding: Vec<SignedStatement> =
        dated.into_iter().filter(|(time, _)| Some(*time) == newest).map(|(_, s)| s).collect();
    match (check.max_age, newest) {
        (None, _) => deciding.extend(undated),
        (Some(_), None) if !undated.is_empty() => {
            return CheckAnswer::make_failed(format!(
                "maxAge is required, but the statement has no time; add finishedOn (RFC 3339) to its predicate ({})",
                check.predicate_type
            ));
        }
        (Some(age), Some(made)) if made.add_span(age) < now => {
            return CheckAnswer::make_lacking(format!(
                "the newest statement is of {made}, valid for {age} until {}; a newer one is needed",
                made.add_span(age)
            ));
        }
        (Some(_), _) => {}
    }
    if deciding.is_empty() {
        return CheckAnswer::make_lacking(match ahead {
            Some(time) => format!("the statement is dated {time}, ahead of this run's clock"),
            None => format!("no statement of type {}", check.predicate_type),
        });
    }
    deciding.sort_by_key(|(proof, _)| proof.digest);
    for (proof, statement) in &deciding {
        if let Err(why) = check_statement(check, statement) {
            return CheckAnswer::make_failed(format!("{why} (statement {})", proof.digest.format_short()));
        }
    }
    let until = check.max_age.and_then(|age| newest.map(|made| made.add_span(age)));
    let made = newest.map(|made| format!(", of {made}")).unwrap_or_default();
    let valid = until.map(|until| format!(", valid until {until}")).unwrap_or_default();
    let keys: Vec<&str> = deciding.iter().map(|(proof, _)| proof.key.as_str()).collect();
    CheckAnswer::make_passed(
        format!("signed by {}{made}{valid}", keys.join(", ")),
        deciding.iter().map(|(proof, _)| *proof),
        "attestation",
    )
}

type SignedStatement<'a> = (&'a Proof, &'a Arc<Statement>);

fn check_statement(check: &AttestationCheck, statement: &Statement) -> Result<(), String> {
    if check.predicate_type == TEST_RESULT {
        match statement.predicate.get("result").and_then(Value::as_str) {
            Some("PASSED") => {}
            Some(other) => return Err(format!("its result is {other:?}, not \"PASSED\"")),
            None => return Err("it has no result".into()),
        }
    }
    let Some(text) = &check.expression else { return Ok(()) };
    match expression::evaluate_expression(text, &statement.predicate) {
        Ok(true) => Ok(()),
        Ok(false) => Err(format!("the expression {text:?} is false")),
        Err(why) => Err(why),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;
    use crate::model::time::Span;
    use crate::model::verdict::{For, GateOutcome};
    use crate::policy::gates::checks::tests::{make_looked, make_proof, make_unread};
    use serde_json::json;

    const NOW: &str = "2026-01-10T12:00:00Z";

    fn now() -> Time {
        Time::parse(NOW).unwrap()
    }
    fn check(expression: Option<&str>, max_age: Option<&str>) -> AttestationCheck {
        AttestationCheck {
            predicate_type: TEST_RESULT.into(),
            expression: expression.map(str::to_owned),
            max_age: max_age.map(|a| Span::parse(a).unwrap()),
        }
    }
    fn tests(predicates: &[Value]) -> Evidence<Vec<Proof>> {
        Evidence::Proven(predicates.iter().map(|p| make_proof(TEST_RESULT, p.clone())).collect())
    }
    fn run(check: &AttestationCheck, predicates: &[Value]) -> CheckAnswer {
        judge_statements(check, Some(&tests(predicates)), now())
    }

    #[test]
    fn a_passed_test_result_passes_and_names_its_evidence() {
        let answer = run(&check(None, None), &[json!({"result": "PASSED"})]);
        assert_eq!(answer.outcome, GateOutcome::Passed);
        assert_eq!((answer.evidence.len(), answer.evidence[0].kind.as_str()), (1, "attestation"));
        for bad in
            [json!({"result": "FAILED"}), json!({"result": "passed"}), json!({}), json!({"result": true})]
        {
            assert_eq!(
                run(&check(None, None), std::slice::from_ref(&bad)).outcome,
                GateOutcome::Failed,
                "{bad}"
            );
        }
        // An expression cannot turn a failed result into a passed one.
        let lenient = check(Some("result == 'FAILED'"), None);
        assert_eq!(run(&lenient, &[json!({"result": "FAILED"})]).outcome, GateOutcome::Failed);
    }

    #[test]
    fn the_expression_must_be_true() {
        let coverage = check(Some("coverage >= 80"), None);
        assert_eq!(
            run(&coverage, &[json!({"result": "PASSED", "coverage": 81})]).outcome,
            GateOutcome::Passed
        );
        let low = run(&coverage, &[json!({"result": "PASSED", "coverage": 79})]);
        assert!(low.message.starts_with("the expression \"coverage >= 80\" is false"), "{}", low.message);
        let absent = run(&coverage, &[json!({"result": "PASSED"})]);
        assert_eq!(absent.outcome, GateOutcome::Failed);
        assert!(absent.message.contains("undefined"), "{}", absent.message);
    }

    #[test]
    fn the_newest_by_its_signed_time_decides_in_any_order() {
        let old = json!({"result": "PASSED", "finishedOn": "2026-01-09T00:00:00Z"});
        let new = json!({"result": "FAILED", "finishedOn": "2026-01-10T00:00:00Z"});
        let fixed = json!({"result": "PASSED", "finishedOn": "2026-01-10T06:00:00+01:00"});
        for pair in [[old.clone(), new.clone()], [new.clone(), old]] {
            assert_eq!(run(&check(None, None), &pair).outcome, GateOutcome::Failed);
        }
        for pair in [[new.clone(), fixed.clone()], [fixed.clone(), new.clone()]] {
            assert_eq!(run(&check(None, None), &pair).outcome, GateOutcome::Passed);
        }
        let same_time = json!({"result": "FAILED", "finishedOn": "2026-01-10T05:00:00Z"});
        assert_eq!(
            run(&check(None, None), &[fixed.clone(), same_time]).outcome,
            GateOutcome::Failed,
            "a tie"
        );
        let undated = json!({"result": "FAILED"});
        assert_eq!(
            run(&check(None, None), &[fixed, undated]).outcome,
            GateOutcome::Failed,
            "it may be newer"
        );
    }

    #[test]
    fn age_is_judged_by_signed_times() {
        let week = check(None, Some("168h"));
        let made = |time: &str| json!({"result": "PASSED", "finishedOn": time});
        let fresh = run(&week, &[made("2026-01-03T12:00:00Z")]);
        assert_eq!(fresh.outcome, GateOutcome::Passed, "to the second");
        assert!(fresh.message.ends_with("valid until 2026-01-10T12:00:00Z"), "{}", fresh.message);
        let stale = run(&week, &[made("2026-01-03T11:59:59Z")]);
        assert_eq!(stale.outcome, GateOutcome::Waiting(For::Evidence));
        let undated = run(&week, &[json!({"result": "PASSED"})]);
        assert_eq!(undated.outcome, GateOutcome::Failed);
        assert!(
            undated.message.contains("add finishedOn (RFC 3339) to its predicate"),
            "{}",
            undated.message
        );
        let beside = [json!({"result": "PASSED"}), made("2026-01-09T00:00:00Z")];
        assert_eq!(run(&week, &beside).outcome, GateOutcome::Passed);
        let future = run(&week, &[made("2026-01-10T12:05:01Z")]);
        assert_eq!(future.outcome, GateOutcome::Waiting(For::Evidence), "{}", future.message);
        assert!(future.message.contains("ahead of this run's clock"));
        assert_eq!(run(&week, &[made("2026-01-10T12:05:00Z")]).outcome, GateOutcome::Passed);
    }

    #[test]
    fn another_type_proves_nothing() {
        let other =
            Evidence::Proven(vec![make_proof("https://example.com/other", json!({"result": "PASSED"}))]);
        let answer = judge_statements(&check(None, None), Some(&other), now());
        assert_eq!(answer.outcome, GateOutcome::Waiting(For::Evidence));
    }

    #[test]
    fn missing_invalid_and_unread_are_three_things() {
        let missing = judge_statements(
            &check(None, None),
            Some(&Evidence::Missing(make_looked("none attached"))),
            now(),
        );
        assert_eq!((missing.outcome, missing.unread), (GateOutcome::Waiting(For::Evidence), false));
        let invalid =
            judge_statements(&check(None, None), Some(&Evidence::Invalid(make_looked("unknown key"))), now());
        assert!(invalid.message.starts_with("unknown key"), "{}", invalid.message);
        let unread = judge_statements(&check(None, None), Some(&Evidence::Unread(make_unread())), now());
        assert_eq!((unread.outcome, unread.unread), (GateOutcome::Waiting(For::Registry), true));
    }
}
