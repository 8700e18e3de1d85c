//! What a run of the library is given, where a test or a benchmark asks for nothing else.

use expedite::evidence::gather::GatherOptions;
use expedite::model::time::{Span, Time};
use expedite::policy::decide::PlanOptions;
use expedite::run::{Setup, Source, SourcePlace};
use git_commits::Repository;
use oci_registry::Registries;
use std::path::Path;

/// A run at `now` on the branch `main`, of the folder `objects` below `folder`: no observation, no records.
pub fn setup<'a>(
    repository: &'a Repository,
    registries: &'a Registries,
    runtime: &'a tokio::runtime::Runtime,
    folder: &Path,
    now: Time,
) -> Setup<'a> {
    Setup {
        repository,
        branch: "main",
        sources: vec![Source {
            name: "path:objects".into(),
            place: SourcePlace::Folder("objects".into(), folder.join("objects")),
            kinds: None,
            namespaces: None,
        }],
        observed: None,
        registries,
        runtime,
        gather: GatherOptions::default(),
        skip_evidence: false,
        signer: None,
        records: false,
        argocd_namespace: "argocd".into(),
        require_observation: false,
        options: PlanOptions::default(),
        now,
        foreseen: false,
        explained: None,
        rescan: Span::from_seconds(86_400),
    }
}
