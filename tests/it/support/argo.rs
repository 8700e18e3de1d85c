//! What Argo CD would say of the Applications in the simulated repository.

use super::sim::{Sim, loaded, time};
use expedite::model::application::*;
use expedite::model::time::Time;
use std::sync::Arc;

/// Argo CD's state of mind about everything that is pinned.
pub struct Argo {
    /// When it last compared; the run's clock where absent.
    pub reconciled: Option<Time>,
    /// When the last operation ended; the run's clock where absent.
    pub finished: Option<Time>,
    /// Since when the health is what it is.
    pub since: Option<Time>,
    /// `Healthy`, `Degraded`, …
    pub health: &'static str,
    /// `Succeeded`, `Failed`, …
    pub phase: &'static str,
}

impl Default for Argo {
    fn default() -> Self {
        Self { reconciled: None, finished: None, since: None, health: "Healthy", phase: "Succeeded" }
    }
}

impl Argo {
    /// Healthy since `since`, synced then, looked at just now.
    pub fn healthy_since(since: Time) -> Self {
        Self { finished: Some(since), since: Some(since), ..Self::default() }
    }

    /// Degraded since `since`.
    pub fn degraded_since(since: Time) -> Self {
        Self { health: "Degraded", finished: Some(since), since: Some(since), ..Self::default() }
    }

    /// Compares and syncs: every Application in the repository is observed with this state. Applications
    /// whose owner is not in `orders` (empty: all) keep what was observed of them before.
    pub fn look(&self, sim: &mut Sim, orders: &[&str]) {
        let now = sim.now;
        let mut all = sim.world.applications.take().unwrap_or_default();
        for file in sim.gitops.applications.values() {
            let Ok(written) = &file.application else { continue };
            let owner = file.owner.as_ref().map(ToString::to_string).unwrap_or_default();
            if !orders.is_empty() && !orders.contains(&owner.as_str()) {
                continue;
            }
            let mut live = Application::clone(written);
            let revision = live.spec.source.as_ref().and_then(|s| s.target_revision.clone());
            live.status = Some(ApplicationStatus {
                sync: SyncStatus {
                    status: "Synced".into(),
                    revision: revision.clone(),
                    compared_to: Some(ComparedTo {
                        source: live.spec.source.clone(),
                        destination: live.spec.destination.clone(),
                    }),
                },
                health: HealthStatus {
                    status: self.health.into(),
                    last_transition_time: Some(self.since.unwrap_or(now)),
                    message: Some(format!("as of {now}")),
                },
                operation_state: Some(OperationState {
                    phase: self.phase.into(),
                    message: None,
                    started_at: None,
                    finished_at: Some(self.finished.unwrap_or(now)),
                    sync_result: Some(SyncResult { revision }),
                }),
                conditions: Vec::new(),
                reconciled_at: Some(self.reconciled.unwrap_or(now)),
            });
            let key = ("argocd".to_owned(), live.metadata.name.clone());
            all.insert(key, loaded(live, "applications.yaml"));
        }
        sim.world.applications = Some(all);
    }
}

/// An instant of the day that the simulations live in.
pub fn at(clock: &str) -> Time {
    time(&format!("2026-11-30T{clock}:00Z"))
}

/// Changes what is observed of one Order's Applications.
pub fn edit(sim: &mut Sim, of: &str, change: impl Fn(&mut Application)) {
    let label = |a: &Application| {
        let get = |key: &str| a.metadata.labels.get(key).cloned().unwrap_or_default();
        format!("{}/{}", get("delivery.kokumi.dev/serving-namespace"), get("delivery.kokumi.dev/serving"))
    };
    for live in sim.world.applications.iter_mut().flat_map(|all| all.values_mut()) {
        let mut object = Application::clone(&live.object);
        if label(&object) == of {
            change(&mut object);
            live.object = Arc::new(object);
        }
    }
}
