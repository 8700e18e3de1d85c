//! The history of promotions: 16 entries, of which a promotion's own are the last to go.

use super::*;
use expedite::model::serving::HistoryEntry;

fn history(sim: &Sim) -> Vec<HistoryEntry> {
    sim.serving(SHOP).unwrap().status.history.clone()
}

fn minutes(sim: &mut Sim, n: u64) {
    sim.later(n);
}

#[test]
fn a_flapping_deployment_pushes_no_promotion_out() {
    let mut sim = Sim::shop();
    sim.order(SHOP, &with(""));
    for (name, minute) in [("p1", 1), ("p2", 2), ("p3", 3)] {
        sim.preparation(SHOP, name, minute);
        sim.run();
        minutes(&mut sim, 1);
    }
    for flap in 0..20 {
        Argo { health: "Healthy", ..Argo::default() }.look(&mut sim, &[]);
        sim.run();
        assert_eq!(sim.reason(SHOP, "Ready"), "Deployed", "flap {flap}");
        minutes(&mut sim, 5);
        Argo { health: "Degraded", ..Argo::default() }.look(&mut sim, &[]);
        sim.run();
        assert_eq!(sim.reason(SHOP, "Ready"), "Degraded");
        minutes(&mut sim, 5);
    }
    let all = history(&sim);
    assert_eq!(all.len(), 16);
    let of = |name: &str| all.iter().filter(|e| e.preparation_name.as_str() == name).count();
    assert_eq!((of("p3"), of("p2"), of("p1")), (14, 1, 1));
    assert!(all[..14].windows(2).all(|w| w[0].first_healthy_time > w[1].first_healthy_time));
    assert!(all[..14].iter().all(|e| e.promoted_time == all[0].promoted_time));
    assert_eq!(all[13].first_healthy_time, Some(at("09:03")), "the promotion's own first health is kept");
    assert!(all[..14].iter().all(|e| e.ended_reason == Some(Ended::Degraded)));
}

#[test]
fn a_recovery_is_no_promotion_and_a_degraded_one_is_never_superseded() {
    let mut sim = Sim::shop();
    sim.order(SHOP, &with(""));
    sim.preparation(SHOP, "p1", 1);
    sim.run();
    minutes(&mut sim, 5);
    Argo::default().look(&mut sim, &[]);
    sim.run();
    minutes(&mut sim, 5);
    Argo { health: "Degraded", ..Argo::default() }.look(&mut sim, &[]);
    sim.run();
    sim.preparation(SHOP, "p2", 2);
    minutes(&mut sim, 5);
    sim.run();
    let all = history(&sim);
    assert_eq!(
        (all.len(), all[1].ended_reason, all[1].ended_time),
        (2, Some(Ended::Degraded), Some(at("09:10")))
    );
    assert_eq!(all[1].healthy_until, None, "a Degraded end says it all");
}
