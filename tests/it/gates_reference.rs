//! The gates together, over random histories, against a deliberately naive model: it keeps a diary and looks
//! everything up in it, shares no code with the gates, and knows nothing of Servings.

use crate::support::argo::Argo;
use crate::support::sim::*;
use expedite::model::approval::*;
use expedite::model::evidence::*;
use expedite::model::id::Namespace;
use expedite::model::meta::Meta;
use expedite::model::plan::Plan;
use expedite::model::time::Time;
use proptest::prelude::*;

const SHOP: &str = "shop/podinfo";
const STAGING: &str = "staging/podinfo";
const SOAK: i64 = 20;
const SCAN_AGE: i64 = 120;

#[derive(Debug, Clone)]
enum Event {
    /// Both stages get a new artifact.
    Prepare,
    /// Argo CD looks at staging and finds it healthy, or not.
    Look(bool),
    /// Ann (0), Bob (1) or Eve (2) votes on the newest.
    Vote(usize, bool),
    /// A scan of the newest, with findings or without.
    Scan(bool),
    /// Somebody asks for the newest but so many: that counts where people choose.
    Ask(usize),
    /// Nothing but time.
    Wait,
}

fn events() -> impl Strategy<Value = Vec<(Event, i64)>> {
    let event = prop_oneof![
        1 => Just(Event::Prepare),
        9 => prop_oneof![9 => Just(true), 1 => Just(false)].prop_map(Event::Look),
        4 => (0usize..3, prop_oneof![6 => Just(true), 1 => Just(false)]).prop_map(|(who, yes)| Event::Vote(who, yes)),
        3 => prop_oneof![6 => Just(true), 1 => Just(false)].prop_map(Event::Scan),
        2 => (0usize..3).prop_map(Event::Ask),
        1 => Just(Event::Wait),
    ];
    proptest::collection::vec((event, 1i64..15), 20..70).prop_map(|mut all| {
        all[0].0 = Event::Prepare;
        all
    })
}

/// Healthy in staging, from when to when it was seen so (minutes), and how it ended.
#[derive(Debug, Clone)]
struct Healthy {
    artifact: usize,
    from: i64,
    seen: i64,
    ended: Option<Ended>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Ended {
    Superseded,
    Degraded,
}

#[derive(Default)]
struct Diary {
    newest: Option<usize>,
    asked: Option<usize>,
    staging: Option<usize>,
    /// What ever ran in production.
    ran: Vec<usize>,
    healthy: Vec<Healthy>,
    votes: Vec<(usize, usize, bool)>,
    scans: Vec<(usize, i64, bool)>,
}

impl Diary {
    /// What kept going in staging ends now.
    fn ends(&mut self, how: Ended) {
        if let Some(last) = self.healthy.last_mut().filter(|h| h.ended.is_none()) {
            last.ended = Some(how);
        }
    }

    fn wanted(&self, automatic: bool) -> Option<usize> {
        if automatic { self.newest } else { self.asked }
    }

    fn may_deploy(&self, artifact: usize, minute: i64, required: usize, hours: (i64, i64)) -> bool {
        let here = self.healthy.iter().filter(|h| h.artifact == artifact);
        let mut long = here.filter(|h| h.ended != Some(Ended::Degraded) && h.seen - h.from >= SOAK);
        let soaked = long.next().is_some() || self.ran.contains(&artifact);
        let latest = |who| self.votes.iter().rev().find(|(w, a, _)| *w == who && *a == artifact).map(|v| v.2);
        let words = [latest(0), latest(1)];
        let approved = words.iter().filter(|w| **w == Some(true)).count() >= required;
        let vetoed = words.contains(&Some(false));
        let scan = self.scans.iter().rev().find(|(a, ..)| *a == artifact);
        let scanned = scan.is_some_and(|(_, at, clean)| *clean && minute - at <= SCAN_AGE);
        let hour = minute.rem_euclid(24 * 60) / 60;
        let open = hours.0 <= hour && hour < hours.1;
        soaked && approved && !vetoed && scanned && open
    }
}

fn name(artifact: usize) -> String {
    format!("p{artifact:02}")
}

/// One run, as it really goes: seals are attached, records are signed.
fn run(sim: &mut Sim) -> Plan {
    let plan = sim.plan();
    sim.seal(&plan);
    let plan = sim.run();
    sim.sign_history(STAGING);
    sim.sign_history(SHOP);
    plan
}

fn vote(sim: &mut Sim, number: usize, who: &str, approve: bool, artifact: usize) {
    let namespace = Namespace::parse("shop").unwrap();
    let approval = Approval {
        metadata: Meta { name: format!("v{number}"), namespace: Some(namespace.clone()), ..Meta::default() },
        spec: ApprovalSpec {
            preparation_ref: PreparationRef {
                name: preparation(&name(artifact)),
                uid: None,
                artifact_digest: digest(&name(artifact)),
            },
            approver: Approver {
                issuer: "i".into(),
                subject: who.into(),
                username: who.into(),
                email: None,
                groups: Vec::new(),
            },
            decision: if approve { Ballot::Approve } else { Ballot::Reject },
            comment: None,
            submitted_time: sim.now,
            signature: None,
        },
    };
    sim.world.approvals.insert((namespace, format!("v{number}")), loaded(approval, "approvals.yaml"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn deploys_when_the_diary_allows_it_and_never_otherwise(
        events in events(),
        automatic in any::<bool>(),
        required in 1usize..3,
        hours in (0i64..3, 6i64..25),
    ) {
        let mut sim = Sim::shop();
        sim.records = true;
        sim.now = time("2026-11-30T00:00:00Z");
        let midnight = sim.now.unix();
        sim.order(STAGING, "{environment: dev, promotion: {mode: Automatic}}");
        sim.order(SHOP, &format!(
            "{{environment: production, promotion: {{mode: {}, upstream: [{{order: staging/podinfo, soak: {SOAK}m}}], approvals: {{requiredApprovals: {required}, allowedGroups: [platform]}}, checks: [{{name: scan, vulnerabilities: {{maxCritical: 0, maxAge: {SCAN_AGE}m}}}}], windows: [{{timezone: UTC, from: \"{:02}:00\", to: \"{:02}:00\"}}]}}}}",
            if automatic { "Automatic" } else { "Manual" }, hours.0, hours.1
        ));
        sim.kitchen("{approvalTrust: Repository, approvers: [{issuer: i, subject: ann, groups: [platform]}, {issuer: i, subject: bob, groups: [platform]}, {issuer: i, subject: eve, groups: [interns]}]}");
        let mut diary = Diary::default();
        let mut made = 0;
        let mut before: Option<usize> = None;
        for (number, (event, minutes)) in events.iter().enumerate() {
            sim.now = Time::from_unix(sim.now.unix() + minutes * 60);
            let minute = (sim.now.unix() - midnight) / 60;
            match event {
                Event::Prepare => {
                    made += 1;
                    for of in [STAGING, SHOP] {
                        sim.preparation_of(of, &name(made), made as u64, &name(made), "signed: true");
                    }
                    diary.newest = Some(made);
                }
                Event::Look(good) if diary.staging.is_some() => {
                    let argo = if *good { Argo::default() } else { Argo { health: "Degraded", ..Argo::default() } };
                    argo.look(&mut sim, &[STAGING]);
                    let artifact = diary.staging.unwrap();
                    if *good {
                        match diary.healthy.last_mut().filter(|h| h.ended.is_none()) {
                            Some(goes_on) => goes_on.seen = minute,
                            None => {
                                diary.healthy.push(Healthy { artifact, from: minute, seen: minute, ended: None });
                            }
                        }
                    } else {
                        diary.ends(Ended::Degraded);
                    }
                }
                Event::Ask(back) if !automatic && made > *back => {
                    diary.asked = Some(made - back);
                    sim.promote(SHOP, &name(made - back));
                }
                Event::Vote(who, approve) => {
                    if let Some(newest) = diary.newest {
                        vote(&mut sim, number, ["ann", "bob", "eve"][*who], *approve, newest);
                        diary.votes.push((*who, newest, *approve));
                    }
                }
                Event::Scan(clean) => {
                    if let Some(newest) = diary.newest {
                        let scan = ScanProof {
                            proof: statement("scan", serde_json::json!({"at": minute})),
                            scanner: "trivy".into(),
                            finished_on: sim.now,
                            counts: Some(ScanCounts { critical: u64::from(!clean), ..ScanCounts::default() }),
                            fixable: None,
                        };
                        let known = sim.extra.entry(digest(&name(newest))).or_default();
                        known.scans = Some(Evidence::Proven(vec![scan]));
                        diary.scans.push((newest, minute, *clean));
                    }
                }
                Event::Look(_) | Event::Ask(_) | Event::Wait => {}
            }
            // The first run makes a candidate the target, the second seals its votes and promotes.
            let wanted = diary.wanted(automatic);
            let allowed_before = wanted.is_some_and(|n| diary.may_deploy(n, minute, required, hours));
            run(&mut sim);
            if diary.staging != diary.newest {
                diary.ends(Ended::Superseded);
                diary.staging = diary.newest;
            }
            prop_assert_eq!(sim.deployed(STAGING), diary.newest.map(name), "staging follows at once");
            run(&mut sim);
            let allowed =
                allowed_before || wanted.is_some_and(|n| diary.may_deploy(n, minute, required, hours));
            let now: Option<usize> = sim.deployed(SHOP).map(|n| n[1..].parse().unwrap());
            if now != before {
                prop_assert_eq!(now, wanted, "it is what was wanted");
                prop_assert!(allowed, "{} at minute {} after {:?}", name(now.unwrap()), minute, event);
                prop_assert!(!automatic || now > before, "never back in age");
                diary.ran.extend(now);
            } else if allowed {
                prop_assert_eq!(now, wanted, "it may, at minute {} after {:?}", minute, event);
            }
            before = now;
        }
        // Staging forgets all that it ever ran: that holds nothing back which ran here before.
        sim.world.preparations.retain(|key, _| key.0.as_str() != "staging");
        let ran = if automatic { Vec::new() } else { diary.ran.clone() };
        for (number, artifact) in ran.into_iter().enumerate() {
            let history = sim.serving(SHOP).unwrap().status.history.clone();
            if !history.iter().any(|entry| entry.digest == digest(&name(artifact))) {
                continue;
            }
            sim.gitops.servings.remove(&order(STAGING));
            let day = (sim.now.unix() - midnight).div_euclid(86_400) + 1;
            sim.now = Time::from_unix(midnight + day * 86_400 + hours.0 * 3_600);
            for (who, person) in ["ann", "bob"].iter().enumerate() {
                vote(&mut sim, 1_000 + 2 * number + who, person, true, artifact);
            }
            let scan = ScanProof {
                proof: statement("scan", serde_json::json!({"again": number})),
                scanner: "trivy".into(),
                finished_on: sim.now,
                counts: Some(ScanCounts::default()),
                fixable: None,
            };
            let known = sim.extra.entry(digest(&name(artifact))).or_default();
            known.scans = Some(Evidence::Proven(vec![scan]));
            sim.promote(SHOP, &name(artifact));
            for _ in 0..3 {
                run(&mut sim);
            }
            prop_assert_eq!(sim.deployed(SHOP), Some(name(artifact)), "a rollback is not held by upstream");
        }
        // Nothing is left that another run would change.
        let head = format!("{:?}", sim.gitops.servings);
        sim.run();
        prop_assert_eq!(format!("{:?}", sim.gitops.servings), head);
    }
}
