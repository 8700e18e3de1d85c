//! That every case of the adversarial list has a test with its number: `case_<number>` in the test's name.

use crate::support::harness::package;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// The numbers of the list, which has gaps.
const CASES: &[usize] = &[
    1, 2, 3, 4, 6, 7, 8, 10, 11, 12, 14, 15, 16, 17, 19, 20, 21, 22, 23, 25, 26, 27, 29, 30, 31, 32, 34, 36,
    37, 38, 39, 41, 42, 43, 45, 46, 47, 48, 49, 50, 52, 53, 54, 55, 56, 57, 59, 61, 62, 63, 64, 65, 66, 68,
    70, 71, 72, 73, 74, 75,
];

/// Numbers in the names of tests below `folder`, with those names.
fn numbered(folder: &Path, found: &mut BTreeMap<usize, BTreeSet<String>>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            numbered(&path, found);
        } else if path.extension().is_some_and(|e| e == "rs") {
            for (number, name) in of(&fs::read_to_string(&path).unwrap()) {
                found.entry(number).or_default().insert(name);
            }
        }
    }
}

/// Numbers and names of the tests of one file.
fn of(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (attribute, line) in text.lines().map(str::trim).zip(text.lines().map(str::trim).skip(1)) {
        let is_test = attribute.starts_with("#[test]") || attribute.starts_with("#[tokio::test");
        let Some((_, name)) = line.split_once("fn ").filter(|_| is_test) else { continue };
        let name = name.split('(').next().unwrap();
        for part in name.split("case_").skip(1) {
            // A word may end in `case_` too.
            let digits = part.split(|c: char| !c.is_ascii_digit()).next().unwrap();
            found.extend(digits.parse().ok().map(|number| (number, name.to_owned())));
        }
    }
    found
}

#[test]
fn every_number_of_the_list_has_its_test() {
    let mut found = BTreeMap::new();
    numbered(&package().join("tests"), &mut found);
    let listed: BTreeSet<usize> = CASES.iter().copied().collect();
    assert_eq!(listed.len(), CASES.len(), "a number is listed twice");
    let without: Vec<_> = listed.iter().filter(|n| !found.contains_key(n)).collect();
    assert!(without.is_empty(), "without a test: {without:?}");
    let unknown: Vec<_> = found.iter().filter(|(n, _)| !listed.contains(n)).collect();
    assert!(unknown.is_empty(), "not on the list: {unknown:?}");
}

#[test]
fn only_tests_are_counted() {
    let text = "#[test]\nfn b1_case_07_x() {\n#[tokio::test(flavor = \"x\")]\nasync fn case_8_and_case_09_in_upper_case_too() {\nfn case_10() {}\n// fn case_11";
    let numbers: Vec<usize> = of(text).into_iter().map(|(n, _)| n).collect();
    assert_eq!(numbers, [7, 8, 9]);
}
