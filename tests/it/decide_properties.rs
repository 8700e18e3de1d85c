//! Random histories of promotes, withdraws, new Preparations, lost evidence and mode switches, against what
//! must hold after every single run.

use crate::support::sim::*;
use expedite::model::evidence::*;
use expedite::model::plan::*;
use proptest::prelude::*;

#[derive(Debug, Clone)]
enum Event {
    Preparation,
    Promote(usize),
    Withdraw,
    Mode(bool),
    Evidence(usize, bool),
    Ready(usize, bool),
    Wait(u64),
    Source(bool),
    /// A Preparation's object goes.
    Gone(usize),
    /// A Preparation is not Ready any more, by its controller.
    Unready(usize),
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let event = prop_oneof![
        3 => Just(Event::Preparation),
        3 => (0..12_usize).prop_map(Event::Promote),
        1 => Just(Event::Withdraw),
        1 => any::<bool>().prop_map(Event::Mode),
        2 => (0..12_usize, any::<bool>()).prop_map(|(i, ok)| Event::Evidence(i, ok)),
        1 => (0..12_usize, any::<bool>()).prop_map(|(i, ok)| Event::Ready(i, ok)),
        1 => (1..90_u64).prop_map(Event::Wait),
        1 => any::<bool>().prop_map(Event::Source),
        1 => (0..12_usize).prop_map(Event::Gone),
        1 => (0..12_usize).prop_map(Event::Unready),
    ];
    proptest::collection::vec(event, 1..40)
}

const ORDER: &str = "shop/podinfo";

fn unproven() -> ArtifactFacts {
    let looked = || Looked { why: "nothing is attached".into(), reason: None, candidates: Vec::new() };
    let mut facts = ArtifactFacts {
        artifact: Some(Evidence::Missing(looked())),
        signature: Some(Evidence::Missing(looked())),
        ..ArtifactFacts::default()
    };
    facts.provenance.insert(order(ORDER), Evidence::Missing(looked()));
    facts
}

struct History {
    sim: Sim,
    made: usize,
    automatic: bool,
}

impl History {
    fn apply(&mut self, event: &Event) {
        let name = |i: &usize| format!("p{i}");
        let sim = &mut self.sim;
        match event {
            Event::Preparation => {
                sim.preparation(ORDER, &name(&self.made), self.made as u64);
                self.made += 1;
            }
            // The verb refuses these; a hand edit does not ask.
            Event::Promote(i) => sim.promote(ORDER, &name(i)),
            Event::Withdraw => {
                if let Some(running) = sim.deployed(ORDER) {
                    sim.promote(ORDER, &running);
                }
            }
            Event::Mode(automatic) => {
                self.automatic = *automatic;
                let mode = if *automatic { "Automatic" } else { "Manual" };
                sim.order(ORDER, &format!("{{environment: production, promotion: {{mode: {mode}}}}}"));
            }
            Event::Evidence(i, true) => {
                sim.facts.remove(&digest(&name(i)));
            }
            Event::Evidence(i, false) => {
                sim.facts.insert(digest(&name(i)), unproven());
            }
            Event::Ready(i, signed) => {
                if *i < self.made {
                    sim.preparation_with(ORDER, &name(i), *i as u64, &format!("signed: {signed}"));
                }
            }
            Event::Wait(minutes) => sim.later(*minutes),
            Event::Source(whole) => sim.world.sources[0].whole = *whole,
            Event::Unready(i) => {
                let key = (order(ORDER).namespace, preparation(&name(i)));
                if let Some(known) = sim.world.preparations.get_mut(&key) {
                    let mut object = (*known.object).clone();
                    let status = "{conditions: [{type: Ready, status: \"False\", reason: Broken}]}";
                    object.status = serde_yaml::from_str(status).unwrap();
                    known.object = std::sync::Arc::new(object);
                }
            }
            Event::Gone(i) => {
                let key = (order(ORDER).namespace, preparation(&name(i)));
                sim.world.preparations.remove(&key);
            }
        }
    }

    fn check(&mut self, before: Option<String>) -> Result<(), TestCaseError> {
        let sim = &mut self.sim;
        let plan = sim.run();
        let row = plan.rows.iter().find(|r| r.order == order(ORDER)).unwrap();
        let after = sim.deployed(ORDER);
        let promoted = matches!(row.decision, Decision::Promote(_));
        prop_assert_eq!(before != after, promoted, "what is deployed changes by a promotion alone");
        if promoted {
            let candidate = row.candidate.as_ref().unwrap();
            prop_assert!(row.verdicts.iter().all(expedite::model::verdict::Verdict::is_passed));
            prop_assert!(!sim.facts.contains_key(&candidate.artifact.digest), "nothing without its evidence");
        }
        let Some(serving) = sim.serving(ORDER) else {
            prop_assert!(sim.pinned(ORDER).is_empty());
            return Ok(());
        };
        let status = serving.status.clone();
        if let Some(deployed) = &after {
            let pinned = sim.pinned(ORDER);
            prop_assert_eq!(pinned.len(), 2);
            prop_assert!(pinned.iter().all(|(_, d)| *d == digest(deployed).to_string()));
            prop_assert_eq!(status.history[0].preparation_name.as_str(), deployed.as_str());
            prop_assert!(status.history[0].ended_time.is_none());
        }
        prop_assert!(status.history.len() <= 16);
        prop_assert!(status.history.windows(2).all(|w| w[0].promoted_time >= w[1].promoted_time));
        prop_assert!(status.history[1.min(status.history.len())..].iter().all(|e| e.ended_time.is_some()));
        if self.automatic {
            prop_assert_eq!(&status.queued, &None);
            if promoted && let Some(before) = &before {
                let number = |name: &str| name[1..].parse::<usize>().unwrap();
                prop_assert!(number(after.as_deref().unwrap()) > number(before), "never back in age");
            }
        } else if let Some(queued) = &status.queued {
            prop_assert_ne!(Some(queued.preparation_name.to_string()), after);
            prop_assert_eq!(Some(&queued.preparation_name), serving.spec.preparation_name.as_ref());
        }
        // Nothing new: a second run writes nothing.
        let again = self.sim.plan();
        for row in &again.rows {
            prop_assert!(matches!(row.serving, ServingPlan::Keep), "{:?}", row.serving);
        }
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_happens_the_promises_hold(events in events()) {
        let mut history = History { sim: Sim::shop(), made: 0, automatic: false };
        history.apply(&Event::Mode(false));
        for event in &events {
            history.apply(event);
            let before = history.sim.deployed(ORDER);
            history.check(before.clone())?;
            if let (Event::Withdraw, false, Some(before)) = (event, history.automatic, before) {
                let serving = history.sim.serving(ORDER).unwrap();
                prop_assert_eq!(&serving.status.queued, &None, "withdrawing empties the queue");
                prop_assert_eq!(history.sim.deployed(ORDER), Some(before), "and keeps what is deployed");
            }
        }
    }
}
