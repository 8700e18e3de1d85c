//! Scans of what is deployed already.

use super::*;

fn scan(critical: u64, clock: &str) -> Option<Evidence<Vec<ScanProof>>> {
    Some(Evidence::Proven(vec![ScanProof {
        proof: statement("scan", json!({"at": clock})),
        scanner: "trivy".into(),
        finished_on: at(clock),
        counts: Some(Counts { critical, ..Counts::default() }),
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
            "vulnerabilities of what is deployed rose by the scan of 2026-11-30T08:30:00Z: critical from 1 to 3"
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
