#![allow(clippy::unwrap_used, clippy::panic)]
use super::*;
use crate::ledger::event::Carried;
use crate::ledger::sample::{self, Chain, at, environment, promotion, promotion_in, superseding};
use crate::ledger::view;
use crate::model::approval::Ballot;
use crate::model::serving::ServingStatus;
use proptest::prelude::*;

fn of(events: Vec<(Artifact, Event)>) -> Chain {
    let mut chain = Chain::new();
    events.into_iter().for_each(|one| {
        chain.add(one);
    });
    chain
}

fn digest(name: &str) -> Digest {
    Digest::hash_bytes(name.as_bytes())
}

#[test]
fn a_promotion_is_deployed_and_supersedes_the_one_before() {
    let mut chain = of(vec![promotion(1, "web-1")]);
    let first = chain.hash();
    chain.add(sample::deployment("web-1", first, 3, None));
    let healthy = chain.hash();
    chain.add(superseding(9, "web-2", "web-1", Some(8)));
    let past = chain.past();
    let pin = past.deployed.as_ref().unwrap();
    assert_eq!((pin.digest, pin.finished_on, pin.clusters.len()), (digest("web-2"), Some(at(8)), 1));
    let [new, old] = &past.history[..] else { panic!("{:?}", past.history) };
    assert_eq!((new.said.promotion_record, new.promotion), (None, 3), "its own hash is not known to it");
    assert_eq!(old.said.promotion_record, Some(first));
    assert_eq!(old.said.deployment_record, Some(healthy));
    assert_eq!((old.said.ended_reason, old.said.healthy_until), (Some(Ended::Superseded), Some(at(8))));
    let status = view::restore_status(past, chain.hash(), &ServingStatus::default()).status;
    assert_eq!(status.history[0].promotion_record, Some(chain.hash()), "the view names it");
    assert_eq!(status.deployed_digest, Some(digest("web-2")));
    assert!(past.has_been_healthy(&environment("production"), &digest("web-1")));
    assert!(!past.has_been_healthy(&environment("production"), &digest("web-2")));
}

#[test]
fn a_degraded_end_is_never_forgotten_and_a_recovery_is_an_entry_of_its_own() {
    let mut chain = of(vec![promotion(1, "web-1")]);
    let record = chain.hash();
    for event in [
        sample::deployment("web-1", record, 3, None),
        sample::deployment("web-1", record, 3, Some(5)),
        sample::deployment("web-1", record, 7, None),
    ] {
        chain.add(event);
    }
    let [recovered, ended] = &chain.past().history[..] else { panic!("{:?}", chain.past().history) };
    assert_eq!((recovered.said.first_healthy_time, recovered.said.ended_time), (Some(at(7)), None));
    assert_eq!((ended.said.ended_time, ended.said.ended_reason), (Some(at(5)), Some(Ended::Degraded)));
    let line = &chain.past().ran[0];
    assert_eq!((line.degraded, line.recovered, line.ended), (Some(at(5)), Some(at(7)), None));
    for n in 0..20 {
        chain.add(promotion(20 + n, &format!("next-{n}")));
    }
    assert_eq!(chain.past().history.len(), HISTORY);
    let line = chain.past().find_line(&environment("production"), &digest("web-1")).unwrap();
    assert_eq!(line.degraded, Some(at(5)), "however many came after it");
    assert!(chain.past().has_run(&environment("production"), &digest("web-1")));
}

#[test]
fn an_environment_that_it_comes_back_to_is_another_stay() {
    let chain = of(vec![
        promotion_in(1, "web-1", "staging"),
        promotion_in(2, "web-2", "production"),
        promotion_in(3, "web-3", "staging"),
    ]);
    let past = chain.past();
    assert_eq!(past.stay, 3);
    assert_eq!(past.find_line(&environment("staging"), &digest("web-1")).unwrap().stay, 1);
    assert_eq!(past.find_line(&environment("staging"), &digest("web-3")).unwrap().stay, 3);
    assert_eq!(
        past.find_line(&environment("staging"), &digest("web-1")).unwrap().ended,
        Some(Ended::Superseded)
    );
}

#[test]
fn an_order_made_anew_after_a_removal_ran_nothing_before() {
    let mut chain = of(vec![promotion(1, "web-1")]);
    let record = chain.hash();
    chain.add(sample::deployment("web-1", record, 3, None));
    chain.add(sample::removal(5, "web-1"));
    let past = chain.past();
    assert_eq!((past.deployed.as_ref(), past.history.len(), past.removed), (None, 0, Some(at(5))));
    assert!(!past.has_run(&environment("production"), &digest("web-1")), "none before a removal");
    chain.add(promotion(9, "web-1"));
    assert!(chain.past().has_run(&environment("production"), &digest("web-1")));
    assert!(!chain.past().has_been_healthy(&environment("production"), &digest("web-1")));
}

#[test]
fn a_sealed_veto_stays_until_the_same_approver_votes_anew() {
    let mut chain = of(vec![
        sample::seal(1, "web-2", "ann", Ballot::Approve),
        sample::seal(2, "web-2", "bob", Ballot::Reject),
    ]);
    let said =
        view::restore_status(chain.past(), chain.hash(), &ServingStatus::default()).status.approval.unwrap();
    let who: Vec<(&str, Ballot)> =
        said.votes.iter().map(|v| (v.approver.subject.as_str(), v.decision)).collect();
    assert_eq!(who, [("ann", Ballot::Approve), ("bob", Ballot::Reject)]);
    // His line is deleted from the status: it comes back.
    let mut cut = ServingStatus { approval: Some(said.clone()), ..ServingStatus::default() };
    cut.approval.as_mut().unwrap().votes.pop();
    let restored = view::restore_status(chain.past(), chain.hash(), &cut);
    assert_eq!((restored.status.approval.as_ref(), restored.differed), (Some(&said), vec!["approval"]));
    chain.add(sample::seal(3, "web-2", "bob", Ballot::Approve));
    assert!(chain.past().votes.iter().all(|vote| !vote.is_veto()));
}

#[test]
fn an_accepted_pin_proves_nothing_else() {
    let mut chain = of(vec![promotion(1, "web-1")]);
    let record = chain.hash();
    chain.add(sample::deployment("web-1", record, 3, None));
    // Above what is known, and linked to nothing.
    chain.tail.head = None;
    chain.add(sample::accepted(9, "web-9", None));
    let past = chain.past();
    assert_eq!(past.deployed.as_ref().unwrap().digest, digest("web-9"));
    assert_eq!((past.ran.len(), past.votes.len(), past.sequence), (0, 0, 3));
    assert_eq!(past.history.len(), 1);
    assert_eq!(past.history[0].said.first_healthy_time, None);
}

#[test]
fn the_first_one_carries_what_signed_records_prove() {
    let mut before = of(vec![promotion(1, "web-1")]);
    let record = before.hash();
    before.add(sample::deployment("web-1", record, 3, None));
    before.add(superseding(9, "web-2", "web-1", Some(8)));
    let history = view::build_history(&fill_head(before.past(), before.hash()));
    let carried = Carried { history: history.clone(), approval: None };
    let chain = of(vec![sample::accepted(20, "web-2", Some(carried))]);
    let past = chain.past();
    assert_eq!(view::build_history(past), history);
    assert!(past.has_been_healthy(&environment("production"), &digest("web-1")));
    assert!(past.deployed.as_ref().unwrap().unproven);
}

#[test]
fn three_hundred_deployments_keep_a_line_for_each_digest() {
    let mut chain = Chain::new();
    for n in 0..300 {
        chain.add(promotion(n, &format!("web-{n}")));
    }
    assert_eq!((chain.past().ran.len(), chain.past().history.len()), (300, HISTORY));
    let json = chain.past().to_json();
    assert_eq!(Past::from_json(&json).as_ref(), Ok(chain.past()));
    assert_eq!(String::from_utf8(json).unwrap().lines().filter(|l| l.contains("firstPromoted")).count(), 300);
}

#[derive(Debug, Clone, Copy)]
enum Act {
    Promote(u8, bool),
    Healthy,
    Degraded,
    Veto(u8),
    Remove,
    Accept(u8),
}

fn any_act() -> impl Strategy<Value = Act> {
    prop_oneof![
        4 => (0u8..6, any::<bool>()).prop_map(|(n, moved)| Act::Promote(n, moved)),
        3 => Just(Act::Healthy),
        2 => Just(Act::Degraded),
        1 => (0u8..6).prop_map(Act::Veto),
        1 => Just(Act::Remove),
        1 => (0u8..6).prop_map(Act::Accept),
    ]
}

fn play(acts: &[Act]) -> Chain {
    let mut chain = Chain::new();
    for (minute, act) in acts.iter().enumerate() {
        let minute = minute as i64 * 10;
        let current = chain.past().deployed.clone();
        let record = fill_head(chain.past(), chain.tail.head.unwrap_or(digest("none")))
            .history
            .first()
            .and_then(|e| e.said.promotion_record);
        let event = match (act, current, record) {
            (Act::Promote(n, moved), ..) => {
                promotion_in(minute, &format!("web-{n}"), if *moved { "staging" } else { "production" })
            }
            (Act::Healthy, Some(pin), Some(record)) => {
                sample::deployment(pin.preparation.as_str(), record, minute, None)
            }
            (Act::Degraded, Some(pin), Some(record)) => {
                sample::deployment(pin.preparation.as_str(), record, minute - 5, Some(minute))
            }
            (Act::Veto(n), ..) => sample::seal(minute, &format!("web-{n}"), "bob", Ballot::Reject),
            (Act::Remove, Some(pin), _) => sample::removal(minute, pin.preparation.as_str()),
            (Act::Accept(n), ..) => sample::accepted(minute, &format!("web-{n}"), None),
            _ => continue,
        };
        chain.add(event);
    }
    chain
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn folding_again_gives_the_same_and_past_json_is_read_as_written(
        acts in proptest::collection::vec(any_act(), 0..24),
    ) {
        let chain = play(&acts);
        let again = play(&acts);
        prop_assert_eq!(again.past(), chain.past());
        let json = chain.past().to_json();
        prop_assert_eq!(json.last(), Some(&b'\n'));
        let read = Past::from_json(&json);
        prop_assert_eq!(read.as_ref(), Ok(chain.past()));
        // Statements alone, folded from nothing.
        let mut past = Past::new(sample::order(), sample::ID.into(), sample::BRANCH.into(), at(0));
        for statement in chain.statements() {
            let link = &statement.link;
            let position = Position { sequence: link.sequence, previous: link.previous, time: link.time };
            past = fold_statement(&past, &statement.artifact, &statement.event, &position);
            prop_assert_eq!(Digest::hash_bytes(&past.to_json()), link.past);
        }
        // What the view wrote says nothing else afterwards.
        if let Some(head) = chain.tail.head {
            let status = view::restore_status(chain.past(), head, &ServingStatus::default()).status;
            prop_assert_eq!(view::restore_status(chain.past(), head, &status).differed, Vec::<&str>::new());
        }
        // A line for everything that ran, sorted, once each.
        let keys: Vec<_> = chain.past().ran.iter().map(|r| (r.environment.clone(), r.digest)).collect();
        let mut sorted = keys.clone();
        sorted.sort();
        sorted.dedup();
        prop_assert_eq!(keys, sorted);
    }
}
