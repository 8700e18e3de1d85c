//! Calls every stage in order, and owns what repeats them: votes that were sealed and a branch that moved are read
//! again and decided again, and what was read is decided again, at most twice, where promotions under a limit cannot
//! be written. This is the table of contents; every stage's own file knows the rest.

pub mod attach;
mod decider;
mod lines;
pub mod message;
pub mod problems;
pub mod records;
pub mod seal;
pub mod signing;
mod sources;
pub mod tell;

use crate::attest::key::RecordSigner;
use crate::error::Failure;
use crate::evidence::gather::GatherOptions;
use crate::load;
use crate::model::evidence::{ArtifactFacts, Claim, Facts};
use crate::model::id::{Artifact, CommitId, OrderName};
use crate::model::plan::Plan;
use crate::model::time::{Span, Time};
use crate::model::world::{GitOps, World};
use crate::notify::{TellOutcome as Notified, Teller};
use crate::policy::decide::PlanOptions;
use crate::policy::gates::Context;
use crate::policy::resolve::Case;
use crate::render::RenderedFiles;
use attach::Attaching;
use decider::Decider;
use git_commits::{Identity, Proposal, WriteOutcome};
use git_commits::{Repository, Snapshot};
use oci_registry::Registries;
use records::Pen;
use seal::Seals;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;
use tell::Listed;

pub(crate) use sources::read_world;
pub use sources::{Source, SourcePlace};

/// All that a run reads from and depends on: handed in, nothing is looked up.
#[derive(Clone)]
pub struct Setup<'a> {
    /// The GitOps repository.
    pub repository: &'a Repository,
    /// Its branch.
    pub branch: &'a str,
    /// Where objects are read, in order.
    pub sources: Vec<Source>,
    /// A dump of Applications: its name for messages, and its path.
    pub observed: Option<(String, PathBuf)>,
    /// The registries.
    pub registries: &'a Registries,
    /// The threads that fetching runs on.
    pub runtime: &'a tokio::runtime::Runtime,
    /// What bounds the fetching.
    pub gather: GatherOptions,
    /// Verify nothing (`render --skip-evidence`): every claim is answered "not read".
    pub skip_evidence: bool,
    /// `argocd.namespace`.
    pub argocd_namespace: String,
    /// `argocd.requireObservation`.
    pub require_observation: bool,
    /// Signs records and seals; `None`: none are made (a dry run, or `--no-records`).
    pub signer: Option<&'a RecordSigner>,
    /// Whether history must be proven by signed records; not with `--no-records`.
    pub records: bool,
    /// `evidence.rescan`: how often what is deployed is looked at again, and its scans.
    pub rescan: Span,
    /// Limits and scope.
    pub options: PlanOptions,
    /// The run's clock.
    pub now: Time,
    /// `now` is ahead of the real clock (`plan --at`): what is healthy is taken to stay so.
    pub foreseen: bool,
    /// Orders of this name are explained: all that their gates ask for is read.
    pub explained: Option<OrderName>,
}

/// Everything that was read and decided, once.
pub struct Decided {
    /// The commit it was decided on.
    pub snapshot: Snapshot,
    /// What was read.
    pub world: World,
    /// What the repository holds.
    pub gitops: GitOps,
    /// One per Order.
    pub cases: Vec<Case>,
    /// What the gates were asked with.
    pub context: Context,
    /// What the registries proved.
    pub facts: Facts,
    /// What would be done, and why.
    pub plan: Plan,
    /// The files it means.
    pub rendered: RenderedFiles,
    /// What Servings in clusters say: for what is told them, and for nothing that is decided.
    pub listed: Listed,
}

/// What was read, before anything is decided.
pub struct Read {
    /// The commit that was read.
    pub snapshot: Snapshot,
    /// What the repository holds.
    pub gitops: GitOps,
    /// What the sources hold.
    pub world: World,
    /// What Servings in clusters say.
    pub listed: Listed,
}

/// Reads the repository and the sources; asks no registry.
///
/// # Errors
/// The repository cannot be read. Everything else is a problem of what was read.
pub fn read_inputs(setup: &Setup<'_>, progress: &mut dyn FnMut(&str)) -> Result<Read, Failure> {
    progress("reading the repository");
    let snapshot = setup.repository.read_snapshot(setup.branch)?;
    let gitops = load::read_gitops(&snapshot, snapshot.head.clone());
    progress("reading objects");
    let (world, listed) = read_world(setup, &snapshot, progress);
    Ok(Read { snapshot, gitops, world, listed })
}

/// Evidence that this run has read already: bytes under a digest do not change between two tries.
#[derive(Debug, Default)]
pub struct Known(BTreeMap<Artifact, (BTreeSet<Claim>, ArtifactFacts)>);

impl Known {
    /// Something was attached to this artifact: what was read of it is old.
    fn forget_artifact(&mut self, artifact: &Artifact) {
        self.0.remove(artifact);
    }
}

/// Reads, decides and renders; writes nothing anywhere.
///
/// # Errors
/// The repository cannot be read. Everything else is a row or a problem of the plan.
pub fn decide_run(
    setup: &Setup<'_>,
    known: &mut Known,
    progress: &mut dyn FnMut(&str),
) -> Result<Decided, Failure> {
    let read = read_inputs(setup, progress)?;
    decide_on(setup, read, known, progress)
}

/// Decides and renders on what was read. Promotions that cannot be written take no place under `limits.maxPromotions`:
/// then others are decided on, once. A look without that limit finds all that cannot be rendered or has no place.
pub(crate) fn decide_on(
    setup: &Setup<'_>,
    read: Read,
    known: &mut Known,
    progress: &mut dyn FnMut(&str),
) -> Result<Decided, Failure> {
    let mut decider = Decider::new(setup, read, known, progress);
    let mut pen = setup.signer.filter(|_| setup.records).map(Pen::new);
    let limit = setup.options.max_promotions;
    let mut draft = decider.draft_plan(limit, pen.as_mut())?;
    if draft.has_lost && limit.is_some() {
        decider.draft_plan(None, pen.is_some().then(Pen::make_dry).as_mut())?;
        draft = decider.draft_plan(limit, pen.as_mut())?;
    }
    Ok(decider.into_decided(draft))
}

/// What a run did.
pub struct Ran {
    /// What it decided, in its last try.
    pub decided: Decided,
    /// The commit it made; `None`: nothing had to change.
    pub commit: Option<CommitId>,
    /// What became of telling the clusters.
    pub notified: Vec<Notified>,
}

/// How a run writes.
pub struct Writing<'a> {
    /// Author and committer.
    pub identity: &'a Identity,
    /// `limits.maxTries`: how often a moved branch is read again.
    pub tries: u32,
    /// Hand edits of our files are refused instead of restored (`--check`).
    pub check: bool,
    /// Who tells clusters what is in git (`--write-status`); nobody where nobody asked for it.
    pub tellers: Vec<Teller>,
}

/// Reads, decides, renders, commits, pushes, attaches and tells; on a branch that moved it begins again. What could
/// not be attached is an error of its Order in the plan: the commit stands, and the next run tries again.
///
/// # Errors
/// There is no key to sign records with, the repository cannot be read or written, the removal guard stops it,
/// the server refuses the commit, or the branch kept moving. Nothing of ours is in the branch then.
pub fn perform_run(
    setup: &Setup<'_>,
    writing: &Writing<'_>,
    progress: &mut dyn FnMut(&str),
) -> Result<Ran, (Failure, Option<Box<Decided>>)> {
    if setup.records && setup.signer.is_none() {
        return Err((signing::make_no_key(), None));
    }
    let mut known = Known::default();
    let mut seals = Seals::default();
    let mut attaching = Attaching::default();
    for attempt in 1..=writing.tries.max(1) {
        let mut decided = decide_and_seal(setup, &mut known, &mut seals, progress).map_err(|f| (f, None))?;
        attaching.attach_leftovers(setup, writing.identity, &mut decided);
        let stopped = |mut decided: Decided, attaching: &mut Attaching, failure| {
            attaching.hand_over_failures(&mut decided);
            Err((failure, Some(Box::new(decided))))
        };
        if let Some(stop) = problems::find_stop(&decided, writing.check) {
            return stopped(decided, &mut attaching, stop);
        }
        progress("writing");
        let commit = match write_commit(setup, writing, &decided) {
            Ok(WriteOutcome::Pushed(commit)) => Some(commit),
            Ok(WriteOutcome::Unchanged) => None,
            Ok(WriteOutcome::Refused(words)) => {
                return stopped(decided, &mut attaching, problems::make_refused(setup.repository, &words));
            }
            Ok(WriteOutcome::Moved) => {
                progress(&describe_move(attempt, writing.tries));
                if attempt < writing.tries {
                    pause_before_retry(attempt);
                }
                continue;
            }
            Err(failure) => return stopped(decided, &mut attaching, failure),
        };
        if commit.is_some() {
            progress("attaching records");
            attaching.attach_committed(setup, writing.identity, &decided);
        }
        attaching.hand_over_failures(&mut decided);
        decided.plan.notices.extend(setup.signer.and_then(|s| signing::check_key(s.public_key(), &decided)));
        let notified = tell::tell_clusters(setup, &writing.tellers, &mut decided, progress);
        return Ok(Ran { decided, commit, notified });
    }
    Err((problems::make_kept_moving(setup.repository, writing.tries), None))
}

/// Decides, seals what is due, and decides again with the new seals. Each seal is tried once in a run.
fn decide_and_seal(
    setup: &Setup<'_>,
    known: &mut Known,
    seals: &mut Seals,
    progress: &mut dyn FnMut(&str),
) -> Result<Decided, Failure> {
    loop {
        let mut decided = decide_run(setup, known, progress)?;
        let again = seals.attach_seals(setup, &decided);
        if again.is_empty() {
            seals.add_bundles(setup, &mut decided)?;
            return Ok(decided);
        }
        progress(&format!("sealed the votes on {} artifacts; deciding again", again.len()));
        again.iter().for_each(|artifact| known.forget_artifact(artifact));
    }
}

fn write_commit(
    setup: &Setup<'_>,
    writing: &Writing<'_>,
    decided: &Decided,
) -> Result<WriteOutcome, Failure> {
    let text = message::format_message(decided, writing.identity);
    let proposal = Proposal { message: &text, identity: writing.identity, at: setup.now.unix() };
    let changes = &decided.rendered.changes;
    Ok(git_commits::write_changes(setup.repository, &decided.snapshot, changes, proposal)?)
}

/// Waits a random time that grows with each try, so that runs do not retry in step.
pub(crate) fn pause_before_retry(attempt: u32) {
    let top = 50_u64.saturating_mul(1 << attempt.min(6));
    std::thread::sleep(Duration::from_millis(rand::random_range(10..=top)));
}

/// The branch moved during a try: what comes next.
fn describe_move(attempt: u32, tries: u32) -> String {
    if attempt < tries {
        format!("the branch moved; reading it again (try {attempt} of {tries})")
    } else {
        format!("the branch moved (try {attempt} of {tries})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_try_does_not_promise_another() {
        assert_eq!(describe_move(1, 2), "the branch moved; reading it again (try 1 of 2)");
        assert_eq!(describe_move(2, 2), "the branch moved (try 2 of 2)");
    }
}
