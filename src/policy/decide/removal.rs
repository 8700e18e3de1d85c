//! The removal guard (`docs/design/gitops-repository.md#removal-guard`): removing Applications can delete
//! workloads.

use super::PlanOptions;
use crate::model::application::Application;
use crate::model::naming::FINALIZER;
use crate::model::plan::{ApplicationAction, Decision, GuardStop, PlanRow, ServingPlan};
use crate::model::world::{GitOps, World};
use crate::policy::resolve::place::normalize_server;
use std::collections::BTreeSet;

/// Default of `limits.maxRemovals`.
const DEFAULT: usize = 5;
/// The default grows to a tenth of all Applications, up to this number.
const DEFAULT_TOP: usize = 20;

/// Stops a run that would remove more Applications than allowed, and lists them.
#[must_use]
pub fn check_removals(rows: &[PlanRow], gitops: &GitOps, options: &PlanOptions) -> Option<GuardStop> {
    let removals: Vec<(String, String)> = rows
        .iter()
        .flat_map(|row| &row.applications)
        .filter_map(|plan| match &plan.action {
            ApplicationAction::Remove(why) => Some((plan.path.clone(), why.clone())),
            ApplicationAction::Pin(_) | ApplicationAction::Hold { .. } | ApplicationAction::Detach(_) => None,
        })
        .collect();
    let ours = gitops.applications.values().filter(|file| file.owner.is_some()).count();
    let default = DEFAULT.max((ours / 10).min(DEFAULT_TOP));
    let allowed = options.allow_removals.or(options.max_removals).unwrap_or(default);
    (removals.len() > allowed).then_some(GuardStop { allowed, removals })
}

/// A rename is not a deletion. If a removed Application and a new one share server and target namespace, the
/// first run removes the cascade finalizer, and the file is removed once that is observed (or with
/// `--allow-removals`), so that the workload is not deleted on the way.
pub fn hand_over_applications(
    rows: &mut [PlanRow],
    gitops: &GitOps,
    world: &World,
    allowed: bool,
    argocd_namespace: &str,
) {
    let destination = |path: &str| {
        let application = gitops.applications.get(path)?.application.as_ref().ok()?;
        let to = &application.spec.destination;
        Some((normalize_server(to.server.as_deref()?), to.namespace.clone()?))
    };
    let heirs: BTreeSet<(String, String)> = rows
        .iter()
        .flat_map(|row| &row.applications)
        .filter_map(|plan| match &plan.action {
            ApplicationAction::Pin(pin) if !gitops.applications.contains_key(&plan.path) => {
                Some((normalize_server(&pin.server), pin.target_namespace.to_string()))
            }
            ApplicationAction::Pin(_)
            | ApplicationAction::Hold { .. }
            | ApplicationAction::Remove(_)
            | ApplicationAction::Detach(_) => None,
        })
        .collect();
    if allowed {
        return;
    }
    for plan in rows.iter_mut().flat_map(|row| &mut row.applications) {
        let ApplicationAction::Remove(why) = &plan.action else { continue };
        let Some(Ok(file)) = gitops.applications.get(&plan.path).map(|f| f.application.as_ref()) else {
            continue;
        };
        let cascades = file.metadata.finalizers.iter().any(|f| f == FINALIZER);
        let handed_over = file.metadata.annotations.contains_key(crate::model::naming::HANDED_OVER);
        let inherited = destination(&plan.path).is_some_and(|d| heirs.contains(&d));
        if cascades && inherited {
            plan.action = ApplicationAction::Detach(why.clone());
        } else if handed_over {
            let live = world
                .applications
                .as_ref()
                .and_then(|all| all.get(&(argocd_namespace.to_owned(), plan.name.to_string())));
            let gone = world.applications.is_some() && live.is_none();
            let off = live.is_some_and(|l| !l.object.metadata.finalizers.iter().any(|f| f == FINALIZER));
            if !gone && !off {
                plan.action = ApplicationAction::Hold {
                    reason: "HandingOver".into(),
                    message: format!(
                        "{why}; its workload moves to the new Application, and this one is removed once it is observed without the finalizer {FINALIZER} (or with --allow-removals)"
                    ),
                };
            }
        }
    }
    // The Serving names the source of the Order, so it stays as long as one of its Applications does.
    for row in rows.iter_mut().filter(|row| matches!(row.decision, Decision::Remove(_))) {
        if row.applications.iter().any(|plan| !matches!(plan.action, ApplicationAction::Remove(_))) {
            row.serving = ServingPlan::Keep;
        }
    }
}

/// Adds to each removed Application whether its workload is deleted, too: Argo CD decides that by the
/// finalizer.
pub fn tell_workloads(rows: &mut [PlanRow], gitops: &GitOps) {
    for plan in rows.iter_mut().flat_map(|row| &mut row.applications) {
        let ApplicationAction::Remove(why) = &mut plan.action else { continue };
        let Some(file) = gitops.applications.get(&plan.path) else { continue };
        let cascades = |application: &Application| {
            // Argo CD also accepts the suffixes /foreground and /background.
            application.metadata.finalizers.iter().any(|f| f.split('/').next() == Some(FINALIZER))
        };
        why.push_str(match &file.application {
            Ok(application) if cascades(application) => "; its workload is deleted with it",
            Ok(_) => "; its workload stays",
            Err(_) => "; its file does not show whether its workload is deleted with it",
        });
    }
}
