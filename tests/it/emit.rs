//! What we write is one value to every reader: ours, a second Rust one, and one that follows YAML 1.1.

use crate::support::pyyaml;
use kube_yaml::{emit, parse};
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use serde_json::{Map, Value, json};

/// Strings that some reader, somewhere, takes for something else.
const TRAPS: &[&str] = &[
    "",
    " ",
    "  a",
    "a ",
    "\t",
    "a\tb",
    "no",
    "No",
    "NO",
    "n",
    "y",
    "Y",
    "on",
    "off",
    "yes",
    "true",
    "False",
    "null",
    "Null",
    "~",
    "nil",
    "nan",
    ".nan",
    ".inf",
    "-.Inf",
    "+.INF",
    "0",
    "-0",
    "+1",
    "-1",
    "1",
    "012",
    "0o14",
    "0b1",
    "0x1F",
    "1_000",
    "1.10",
    "1e3",
    "1.0e+3",
    "012e4",
    "680841e1",
    "12:30:45",
    "1:1",
    "190:20:30.15",
    "2001-01-01",
    "2001-12-14t21:59:43.10-05:00",
    "2026-11-30T00:00:00Z",
    "=",
    "<<",
    "-",
    "--",
    "---",
    "...",
    "- a",
    "? a",
    ": a",
    ":",
    "a:",
    "a: b",
    "a :b",
    "a:b",
    "a #b",
    "a#b",
    "#a",
    "[",
    "]",
    "{",
    "}",
    "[a]",
    "{a}",
    ",",
    "a, b",
    "*a",
    "&a",
    "!a",
    "!!str a",
    "|",
    ">",
    "|-",
    ">+",
    "%a",
    "@a",
    "`a`",
    "'",
    "''",
    "'a'",
    "\"",
    "\"a\"",
    "\\",
    "a\\nb",
    "a'b",
    "a\nb",
    "a\n",
    "\na",
    "a\n\nb",
    "a\n\nb\n",
    "a\nb\n\n",
    "a\n b",
    " a\nb",
    "a\nb ",
    "a\r\nb",
    "\r",
    "\n",
    "\n\n",
    "a\n---\nb",
    "a\n...\nb",
    "# a\nb",
    "a\n# b",
    "- a\n- b",
    "a: b\nc: d",
    "\u{0}",
    "\u{7}",
    "\u{7f}",
    "\u{85}",
    "a\u{85}b",
    "\u{a0}",
    "\u{2028}",
    "\u{2029}",
    "\u{feff}",
    "\u{feff}a",
    "\u{fffe}",
    "\u{ffff}",
    "\u{200b}",
    "\u{202e}a",
    "\u{e000}",
    "\u{1f600}",
    "\u{10ffff}",
    "é",
    "ｙ",
    "日本",
    "sha256:0f",
    "oci://r.example:5000/a",
    "ServerSideApply=true",
    "a=b",
    "a b",
    "infinity",
    "NaN",
    "Inf",
    "_",
    "__",
    "/a",
    "a/b",
    "a@b",
    "a%b",
    "a?b",
    "a!b",
    "-----BEGIN SSH SIGNATURE-----\nU1NI\n-----END SSH SIGNATURE-----\n",
    "{{ a }}",
    "${a}",
    "a\u{301}",
];

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => proptest::sample::select(TRAPS).prop_map(str::to_owned),
        3 => (proptest::sample::select(TRAPS), proptest::sample::select(TRAPS)).prop_map(|(a, b)| format!("{a}{b}")),
        2 => "[ -~]{0,12}",
        2 => "[a-z0-9:.#\\-\\n \"'\\\\|>&*!%@`{}\\[\\],?=~_+]{0,16}",
        1 => "\\PC{0,12}",
        1 => proptest::collection::vec(any::<char>(), 0..8).prop_map(|c| c.into_iter().collect()),
    ]
}

/// Floats are left out: ours keeps their characters as text on purpose.
fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        6 => text().prop_map(Value::from),
        1 => any::<bool>().prop_map(Value::from),
        1 => any::<i64>().prop_map(Value::from),
        1 => any::<u64>().prop_map(Value::from),
        1 => Just(Value::Null),
    ];
    leaf.prop_recursive(4, 32, 5, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            proptest::collection::vec((text(), inner), 0..5)
                .prop_map(|entries| Value::Object(entries.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

proptest! {
    #![proptest_config(Config { cases: 2000, failure_persistence: None, ..Config::default() })]

    #[test]
    fn two_readers_get_the_value_back(value in value()) {
        let text = emit::format_document(&value);
        prop_assert!(text.ends_with('\n') && !text.ends_with("\n\n"), "one newline at the end: {text:?}");
        let second: Value = serde_yaml::from_str(&text).map_err(|e| TestCaseError::fail(format!("{e}: {text}")))?;
        prop_assert_eq!(&second, &value, "{}", text);
        // Ours takes a document that is null for none.
        if !value.is_null() {
            let ours = parse::parse_one(&text).map_err(|e| TestCaseError::fail(format!("{e}: {text}")))?;
            prop_assert_eq!(&ours.to_json(), &value, "{}", text);
        }
    }

    #[test]
    fn it_holds_no_byte_that_moves_the_readers_eye(value in value()) {
        let text = emit::format_document(&value);
        let hidden = |c: char| (c.is_control() && c != '\n') || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{feff}');
        prop_assert!(!text.contains(hidden), "{text:?}");
    }
}

#[test]
fn every_trap_as_value_and_key_and_item() {
    for trap in TRAPS {
        let value = json!({ *trap: trap, "list": [trap, [trap], {*trap: [trap]}] });
        let text = emit::format_document(&value);
        assert_eq!(
            parse::parse_one(&text).unwrap_or_else(|e| panic!("{e}: {text}")).to_json(),
            value,
            "{text}"
        );
        assert_eq!(
            serde_yaml::from_str::<Value>(&text).unwrap_or_else(|e| panic!("{e}: {text}")),
            value,
            "{text}"
        );
    }
}

#[test]
fn a_yaml_1_1_reader_gets_the_value_back() {
    let mut values: Vec<Value> =
        TRAPS.iter().map(|trap| json!({ *trap: trap, "list": [trap, {*trap: [trap]}] })).collect();
    values.extend([1e300, 1.5, -0.5, 1e-7, 1e16].map(|f| json!({ "float": f })));
    let config = Config { failure_persistence: None, ..Config::default() };
    let mut runner = TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha));
    values.extend((0..2000).map(|_| value().new_tree(&mut runner).unwrap().current()));
    let texts: Vec<String> = values.iter().map(emit::format_document).collect();
    let Some(read) = pyyaml::load(&texts) else { return };
    for ((value, text), read) in values.iter().zip(&texts).zip(read) {
        assert_eq!(&read, value, "{text}");
    }
}
