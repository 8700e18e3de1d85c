//! Argo CD pulls the artifacts itself: for a new registry it needs a Secret of type `oci`. Without one, some
//! versions treat the address as a Git repository, and the Application never syncs. Expedite cannot see
//! whether the Secret exists, so it prints a notice once, before the first sync.

use crate::error::Failure;
use crate::model::plan::{ApplicationAction, PlanRow};
use crate::model::world::GitOps;
use std::collections::BTreeSet;

/// One notice for each registry that no Application in the repository names yet.
#[must_use]
pub fn collect_notices(rows: &[PlanRow], gitops: &GitOps) -> Vec<Failure> {
    let known: BTreeSet<&str> = gitops
        .applications
        .values()
        .filter_map(|file| file.application.as_ref().ok())
        .filter_map(|application| application.spec.source.as_ref())
        .filter_map(|source| source.repo_url.strip_prefix("oci://")?.split('/').next())
        .collect();
    let named: BTreeSet<&str> = rows
        .iter()
        .flat_map(|row| &row.applications)
        .filter_map(|plan| match &plan.action {
            ApplicationAction::Pin(pin) => Some(pin.artifact.repository.registry()),
            ApplicationAction::Hold { .. } | ApplicationAction::Detach(_) | ApplicationAction::Remove(_) => {
                None
            }
        })
        .collect();
    named
        .difference(&known)
        .map(|registry| {
            let cause = format!(
                "Argo CD will pull from {registry} for the first time: it needs a repo-creds Secret of type oci for it"
            );
            Failure::new_input("registry-secret", cause)
                .with_hint(format!("expedite init --registry {registry} shows that Secret; apply it before the first sync"))
        })
        .collect()
}
