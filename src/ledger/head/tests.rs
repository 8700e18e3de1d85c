#![allow(clippy::unwrap_used, clippy::panic)]
use super::*;
use crate::ledger::sample::{self, Chain, Signed};
use proptest::prelude::*;

fn chain() -> Chain {
    let mut chain = Chain::new();
    sample::one_of_each().into_iter().for_each(|one| {
        chain.add(one);
    });
    chain
}

fn witness(chain: &Chain) -> Witness {
    Witness { name: chain.name(), past: chain.past().to_json() }
}

#[track_caller]
fn trouble(head: &Head) -> Trouble {
    match head {
        Head::Fault(fault) => fault.trouble,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_head_and_its_past_are_proven() {
    let chain = chain();
    let signed = Signed::of(&chain);
    for witness in [None, Some(witness(&chain))] {
        let Head::Proven(proven) = signed.head(witness.as_ref()) else { panic!("{:?}", signed.head(None)) };
        assert_eq!((&proven.past, proven.hash, proven.key.as_str()), (chain.past(), chain.hash(), "job"));
        assert_eq!((proven.put_back, proven.missing), (None, Vec::new()));
    }
    let checked = signed.checked();
    assert_eq!((checked.statements, checked.faults), (10, Vec::new()));
    assert_eq!(checked.past.as_ref(), Some(chain.past()));
}

#[test]
fn nothing_is_no_fault_and_nothing_with_a_witness_is_gone() {
    let mut signed = Signed::of(&chain());
    signed.files.clear();
    assert_eq!(signed.head(None), Head::None);
    assert_eq!(trouble(&signed.head(Some(&witness(&chain())))), Trouble::Gone);
}

#[test]
fn git_that_was_moved_back_is_behind_its_witness() {
    let mut chain = Chain::new();
    chain.add(sample::promotion(1, "web-1"));
    let old = Signed::of(&chain);
    chain.add(sample::superseding(2, "web-2", "web-1", None));
    let head = old.head(Some(&witness(&chain)));
    assert_eq!(trouble(&head), Trouble::Behind);
    let Head::Fault(fault) = head else { panic!() };
    assert_eq!(fault.since, Some(2));
    assert!(fault.cause.contains("000002-"), "{}", fault.cause);
    // A witness that was not written yet is no fault.
    let mut first = Chain::new();
    first.add(sample::promotion(1, "web-1"));
    assert!(matches!(Signed::of(&chain).head(Some(&witness(&first))), Head::Proven(_)));
    // Another statement under a sequence that git holds.
    let mut other = Chain::new();
    other.add(sample::promotion(1, "web-9"));
    assert_eq!(trouble(&Signed::of(&chain).head(Some(&witness(&other)))), Trouble::Behind);
}

#[test]
fn two_statements_of_one_sequence_are_a_fork() {
    let mut chain = Chain::new();
    chain.add(sample::promotion(1, "web-1"));
    let mut other = Chain::new();
    other.add(sample::promotion(1, "web-2"));
    let mut signed = Signed::of(&chain);
    signed.files.extend(Signed::of(&other).files);
    assert_eq!(trouble(&signed.head(None)), Trouble::Forked);
    assert_eq!(signed.checked().faults[0].trouble, Trouble::Forked);
}

#[test]
fn only_a_key_trusted_for_records_links() {
    let chain = chain();
    assert_eq!(trouble(&Signed::by(&chain, 9).head(None)), Trouble::Broken);
    let head = Signed::of(&chain).for_approvals_alone().head(None);
    assert_eq!(trouble(&head), Trouble::Broken);
}

#[test]
fn a_head_ahead_of_the_clock_is_said_so() {
    let chain = chain();
    let mut signed = Signed::of(&chain);
    signed.now = sample::at(50);
    assert_eq!(trouble(&signed.head(None)), Trouble::ClockAhead);
}

#[test]
fn a_copied_folder_is_another_orders() {
    let signed = Signed::of(&chain());
    let other = OrderRef::parse("shop/db").unwrap();
    let head = signed.with(|folder, expected| read_head(Folder { order: &other, ..folder }, None, expected));
    assert_eq!(trouble(&head), Trouble::Broken);
    let head = signed.with(|folder, expected| {
        read_head(folder, None, Expected { branch: "refs/heads/other", ..expected })
    });
    assert_eq!(trouble(&head), Trouble::Broken);
}

#[test]
fn a_past_that_is_gone_is_put_back_from_the_witness_or_folded_again() {
    let chain = chain();
    for damage in [None, Some(b"{}\n".to_vec())] {
        for witness in [None, Some(witness(&chain))] {
            let mut signed = Signed::of(&chain);
            match &damage {
                Some(bytes) => drop(signed.files.insert(PAST.into(), bytes.clone())),
                None => drop(signed.files.remove(PAST)),
            }
            let Head::Proven(proven) = signed.head(witness.as_ref()) else {
                panic!("{:?}", signed.head(None))
            };
            assert_eq!(proven.put_back, Some(chain.past().to_json()));
            assert_eq!(&proven.past, chain.past());
        }
    }
}

#[test]
fn without_its_first_statement_a_lost_past_is_a_break() {
    let mut chain = Chain::new();
    chain.add(sample::promotion(1, "web-1"));
    let first = chain.name().to_string();
    chain.add(sample::superseding(2, "web-2", "web-1", None));
    let mut signed = Signed::of(&chain);
    signed.files.remove(&first);
    let Head::Proven(proven) = signed.head(None) else { panic!() };
    assert_eq!(proven.missing, [1]);
    assert!(!signed.checked().faults.is_empty(), "the cut is found by reading all");
    signed.files.remove(PAST);
    assert_eq!(trouble(&signed.head(None)), Trouble::Broken);
}

#[test]
fn a_newer_builds_past_is_not_called_broken() {
    let chain = chain();
    let text = String::from_utf8(chain.past().to_json()).unwrap().replace("\"version\":1", "\"version\":2");
    assert_eq!(Past::from_json(text.as_bytes()), Err(past::Unread::Newer(2)));
}

#[test]
fn what_a_witness_says_is_read_as_it_was_written() {
    let witness = witness(&chain());
    assert_eq!(Witness::from_bytes(&witness.to_bytes()), Some(witness));
    for other in ["", "x", "past.json\n{}", "000001-00ff\n"] {
        assert_eq!(Witness::from_bytes(other.as_bytes()), None);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// A byte that changes in any file is found, or leaves the very statement that was signed.
    #[test]
    fn any_byte_that_changes_is_found(file in 0usize..11, place in 0usize..100_000, bit in 0u8..8) {
        let chain = chain();
        let mut signed = Signed::of(&chain);
        let name = signed.files.keys().nth(file).unwrap().clone();
        let bytes = signed.files.get_mut(&name).unwrap();
        let place = place % bytes.len();
        bytes[place] ^= 1 << bit;
        let checked = signed.checked();
        let harmless = checked.past.as_ref() == Some(chain.past());
        prop_assert!(harmless || !checked.faults.is_empty(), "{} at {}", name, place);
        if harmless {
            prop_assert!(name != PAST, "every byte of it is signed");
        }
        // What a run reads is proven to be the same, or a fault, or put back.
        match signed.head(None) {
            Head::Proven(proven) => prop_assert_eq!(&proven.past, chain.past()),
            Head::Fault(_) => {}
            Head::None => prop_assert!(false, "it is not none"),
        }
    }

    /// Files that are removed, swapped, copied or doubled are found.
    #[test]
    fn files_that_move_are_found(one in 0usize..11, other in 0usize..11, how in 0u8..4) {
        let chain = chain();
        let mut signed = Signed::of(&chain);
        let names: Vec<String> = signed.files.keys().cloned().collect();
        let (a, b) = (names[one].clone(), names[other].clone());
        match how {
            0 => drop(signed.files.remove(&a)),
            1 if a != b => {
                let (x, y) = (signed.files[&a].clone(), signed.files[&b].clone());
                signed.files.insert(a, y);
                signed.files.insert(b, x);
            }
            2 if a != b => {
                let bytes = signed.files[&a].clone();
                signed.files.insert(b, bytes);
            }
            _ => {
                let bytes = signed.files[&a].clone();
                signed.files.insert(format!("{:06}-00ff00ff00ff00ff.json", other + 1), bytes);
            }
        }
        let witness = witness(&chain);
        let full = signed.checked();
        let head = signed.head(Some(&witness));
        prop_assert!(!full.faults.is_empty(), "{:?}", head);
        match head {
            Head::Proven(proven) => prop_assert_eq!(&proven.past, chain.past()),
            Head::Fault(_) => {}
            Head::None => prop_assert!(false, "it is not none"),
        }
    }
}
