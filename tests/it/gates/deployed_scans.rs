//! What is deployed already, looked at again: its scans, and whether it is there.

use super::*;

fn scan(critical: u64, clock: &str) -> Option<Evidence<Vec<ScanProof>>> {
    Some(Evidence::Proven(vec![ScanProof {
        proof: statement("scan", json!({"at": clock})),
        scanner: "trivy".into(),
        finished_on: at(clock),
        counts: Some(ScanCounts { critical, ..ScanCounts::default() }),
        fixable: None,
    }]))
}

#[test]
fn the_newest_scan_of_what_is_deployed_is_kept_and_a_rise_warns() {
    let mut sim = Sim::shop();
    sim.rescan = Some(Span::ZERO);
    sim.order(SHOP, &with(""));
    sim.preparation(SHOP, "p1", 1);
    sim.run();
    sim.extra.entry(digest("p1")).or_default().scans = scan(1, "08:00");
    let plan = sim.run();
    let found = sim.serving(SHOP).unwrap().status.deployed_vulnerabilities.clone().unwrap();
    assert_eq!((found.critical, found.scanned_time), (1, at("08:00")));
    assert!(row(&plan, SHOP).warnings.is_empty(), "the first is no rise");
    let plan = sim.run();
    assert!(matches!(row(&plan, SHOP).serving, ServingPlan::Keep));
    sim.extra.entry(digest("p1")).or_default().scans = scan(3, "08:30");
    let plan = sim.run();
    let causes: Vec<&str> = row(&plan, SHOP).warnings.iter().map(|w| w.cause.as_str()).collect();
    assert_eq!(
        causes,
        [
            "the scan of 2026-11-30T08:30:00Z found more vulnerabilities in what is deployed: critical from 1 to 3"
        ]
    );
    assert_eq!(sim.deployed(SHOP).as_deref(), Some("p1"), "what is deployed stays");
    sim.extra.entry(digest("p1")).or_default().scans = scan(0, "07:00");
    sim.run();
    let kept = sim.serving(SHOP).unwrap().status.deployed_vulnerabilities.clone().unwrap();
    assert_eq!(kept.critical, 3, "an older scan takes nothing back");
    sim.preparation(SHOP, "p2", 2);
    sim.run();
    assert_eq!(sim.serving(SHOP).unwrap().status.deployed_vulnerabilities, None, "of another artifact");
}

/// Nothing is asked for while a verdict is kept, except at `evidence.rescan`.
#[test]
fn b60_a_deployed_artifact_that_vanished_is_not_recoverable_and_stays() {
    let mut sim = Sim::shop();
    sim.order(SHOP, &with(""));
    sim.preparation(SHOP, "p1", 1);
    sim.run();
    let pinned = sim.pinned(SHOP);
    let gone = ArtifactFacts {
        artifact: Some(Evidence::Missing(Looked {
            why: "the artifact is not in the registry".into(),
            reason: Some(expedite::model::reason::Verified::ArtifactNotFound),
            ..Looked::default()
        })),
        ..ArtifactFacts::default()
    };
    sim.facts.insert(digest("p1"), gone);
    let plan = sim.run();
    assert!(matches!(row(&plan, SHOP).serving, ServingPlan::Keep), "warm: nothing was asked");
    assert_eq!(sim.asked, 0);

    sim.rescan = Some(Span::ZERO);
    let verified = |sim: &Sim| {
        let serving = sim.serving(SHOP).unwrap();
        let condition = serving.status.find_condition("Verified").unwrap();
        (condition.reason.clone(), condition.message.clone())
    };
    let wanted = (
        "ArtifactNotFound".to_owned(),
        "p1: what is deployed is not recoverable: the artifact is not in the registry".to_owned(),
    );
    let plan = sim.run();
    assert_eq!(verified(&sim), wanted);
    let codes: Vec<&str> = row(&plan, SHOP).warnings.iter().map(|w| w.code).collect();
    assert_eq!(codes, ["deployed-artifact-gone"]);
    // Also when it is not due: what is gone has no kept verdict, so all is asked for, and the words stay.
    for rescan in [None, Some(Span::ZERO)] {
        sim.rescan = rescan;
        sim.facts.get_mut(&digest("p1")).unwrap().signature = Some(Evidence::Missing(Looked::default()));
        let plan = sim.run();
        assert!(matches!(row(&plan, SHOP).serving, ServingPlan::Keep), "the message is stable");
        assert_eq!(row(&plan, SHOP).warnings.len(), 1);
    }
    assert_eq!((sim.deployed(SHOP).as_deref(), sim.pinned(SHOP)), (Some("p1"), pinned));
    // A registry that cannot be read is no artifact that is gone; one that has it again ends it.
    sim.facts.clear();
    sim.run();
    assert_eq!(verified(&sim).0, "SignaturesVerified");
    let down = Unread {
        reason: expedite::model::reason::Verified::RegistryUnreachable,
        request: "GET /v2/".into(),
        status: None,
        why: "connection refused".into(),
        retryable: true,
    };
    let down = ArtifactFacts { artifact: Some(Evidence::Unread(down)), ..ArtifactFacts::default() };
    sim.facts.insert(digest("p1"), down);
    let plan = sim.run();
    assert!(matches!(row(&plan, SHOP).serving, ServingPlan::Keep));
    assert!(row(&plan, SHOP).warnings.is_empty());
}
