//! Attaching: what is committed below `records/` goes onto its artifacts, after the push and never before it.
//!
//! What is attached is remembered beside the branch, with the same paths and bytes; what a killed run left is
//! what the branch has and that reference lacks. Asked twice, or by two runs at once, a record is attached once:
//! its manifest has one digest.

use super::records::collect_named;
use super::{Decided, Setup};
use crate::attest::attach::attach_record;
use crate::attest::record;
use crate::error::{At, Failure, FailureKind};
use crate::evidence::envelope;
use crate::evidence::judge;
use crate::evidence::keys::{KeyRing, PublicKey};
use crate::files::FileChange;
use crate::model::id::{Artifact, Digest, OrderRef};
use crate::model::kitchen::{KitchenSpec, Role};
use crate::model::naming::{build_record_path, parse_record_path};
use crate::policy::resolve::Case;
use futures::StreamExt as _;
use git_commits::ATTACHED;
use git_commits::Identity;
use git_commits::side::{self, SideOutcome};
use oci_registry::Writer;
use std::collections::{BTreeMap, BTreeSet};

/// Records that are attached at once. A registry's own limit of requests counts besides.
const CONCURRENT: usize = 16;

/// A record that is in git.
struct Committed {
    order: OrderRef,
    path: String,
    bundle: Vec<u8>,
}

/// A record whose signature counts, with what it is of.
struct Ready {
    record: Committed,
    artifact: Artifact,
    key: PublicKey,
}

/// What one run attached, and what it could not attach.
#[derive(Default)]
pub struct Attaching {
    /// Paths of what was tried: each is tried once in a run.
    tried: BTreeSet<String>,
    /// Paths of what an earlier run had left and is attached now.
    caught_up: BTreeSet<String>,
    /// Paths of what is not attached, and may be by a later run.
    failed: BTreeSet<String>,
    /// How many were left out, by the registry that is read-only.
    read_only: BTreeMap<String, usize>,
    failures: Vec<(OrderRef, Failure)>,
    notices: Vec<Failure>,
}

impl Attaching {
    /// Attaches what the branch holds and nobody remembers to have attached; what `decided` would commit is
    /// changed by what became of it. Asks no registry when everything is remembered.
    pub fn attach_leftovers(&mut self, setup: &Setup<'_>, identity: &Identity, decided: &mut Decided) {
        let lacking = match side::find_lacking(setup.repository, ATTACHED, &decided.snapshot, "records") {
            Ok(lacking) => lacking,
            // Who cannot tell what is attached asks for all of it.
            Err(error) => {
                self.add_notice(error.into());
                let all = decided.gitops.records.iter();
                all.flat_map(|(order, names)| names.iter().map(|name| build_record_path(order, name)))
                    .collect()
            }
        };
        let mut left = Vec::new();
        for path in lacking {
            let Some((order, digest)) = parse_record_path(&path) else { continue };
            let labels = find_case(decided, &order).and_then(|case| case.labels.as_ref());
            if !setup.options.scope.admits_order(&order, labels) || self.tried.contains(&path) {
                continue;
            }
            match decided.snapshot.read_file(&path) {
                Ok(Some(bundle)) if Digest::hash_bytes(&bundle) == digest => {
                    left.push(Committed { order, path, bundle });
                }
                Ok(Some(_)) => {
                    self.add_notice(make_failure(&path, "it does not hash to its name; not attached"))
                }
                Ok(None) => {}
                Err(lost) => self.add_notice(make_failure(&path, &format!("{}; not attached", lost.why))),
            }
        }
        if !setup.records {
            if !left.is_empty() && self.tried.is_empty() {
                let cause = format!("{} not attached", format_count(left.len()));
                let notice = Failure::new_input("records-not-attached", cause).with_object("records/");
                self.notices.push(notice.with_hint("a run without --no-records attaches them"));
            }
            self.tried.extend(left.into_iter().map(|record| record.path));
            return;
        }
        let attached = self.attach_records(setup, decided, left, true);
        let changes =
            attached.iter().map(|r| (r.path.clone(), FileChange::Write(r.bundle.clone()))).collect();
        self.remember_attached(setup, identity, changes);
        self.caught_up.extend(attached.into_iter().map(|record| record.path));
        self.correct_changes(decided);
    }

    /// Attaches what a commit has just brought into the branch.
    pub fn attach_committed(&mut self, setup: &Setup<'_>, identity: &Identity, decided: &Decided) {
        let mut new = Vec::new();
        let mut changes = BTreeMap::new();
        for (path, change) in &decided.rendered.changes {
            let Some((order, _)) = parse_record_path(path) else { continue };
            match change {
                FileChange::Write(bundle) => {
                    self.tried.remove(path);
                    new.push(Committed { order, path: path.clone(), bundle: bundle.clone() });
                }
                // It is not in the branch any more, so nobody has to remember it.
                FileChange::Delete => {
                    changes.insert(path.clone(), FileChange::Delete);
                }
            }
        }
        for record in self.attach_records(setup, decided, new, false) {
            changes.insert(record.path, FileChange::Write(record.bundle));
        }
        self.remember_attached(setup, identity, changes);
    }

    /// Hands over what there is to say: each failure to its Order.
    pub fn hand_over_failures(&mut self, decided: &mut Decided) {
        for (order, failure) in std::mem::take(&mut self.failures) {
            // Rows are sorted by Order, too.
            match decided.plan.rows.binary_search_by(|row| row.order.cmp(&order)) {
                Ok(index) => decided.plan.rows[index].errors.push(failure),
                Err(_) => decided.plan.problems.push(failure),
            }
        }
        for (registry, count) in std::mem::take(&mut self.read_only) {
            let cause = format!(
                "{} not attached: it is read-only by the settings; records/ keeps what is left out",
                format_count(count)
            );
            let notice =
                Failure::new_input("registry-read-only", cause).with_object(format!("registry {registry}"));
            self.notices.push(notice.with_field(format!("registries[{registry:?}].readOnly")));
        }
        decided.plan.notices.append(&mut self.notices);
    }

    /// Attaches all of them; those that are attached now.
    fn attach_records(
        &mut self,
        setup: &Setup<'_>,
        decided: &Decided,
        records: Vec<Committed>,
        old: bool,
    ) -> Vec<Committed> {
        let kitchen = decided.world.kitchen.as_ref();
        let ring = KeyRing::from_kitchen(kitchen.map_or(&KitchenSpec::default(), |k| &k.object.spec));
        let own = setup.signer.map(|signer| signer.public_key());
        let mut ready = Vec::new();
        for record in records {
            self.tried.insert(record.path.clone());
            match find_author(&record.bundle, own, &ring) {
                Err(why) => self.notices.push(
                    make_failure(&record.path, &format!("{why}; not attached"))
                        .with_hint("keep a former key in the Kitchen's trust, with its roles, until all it signed is attached"),
                ),
                Ok((artifact, _)) if setup.registries.is_read_only(&artifact.repository) => {
                    *self.read_only.entry(artifact.repository.registry().to_owned()).or_default() += 1;
                }
                Ok((artifact, key)) => ready.push(Ready { record, artifact, key }),
            }
        }
        let outcomes = setup.runtime.block_on(async {
            let all = ready.iter().map(|one| async {
                // One artifact's faults cost the others no time.
                let registries = setup.registries.with_artifact_budget();
                let writer = Writer::new(&registries);
                attach_record(&writer, &registries, &one.artifact, &one.record.bundle, &one.key).await
            });
            futures::stream::iter(all).buffered(CONCURRENT).collect::<Vec<_>>().await
        });
        let mut attached = Vec::new();
        for (one, outcome) in ready.into_iter().zip(outcomes) {
            match outcome {
                Ok(_) => attached.push(one.record),
                // Nobody can attach it any more, and nothing that runs is the worse for it.
                Err(failure) if old && failure.code == "artifact-gone" && !is_running(decided, &one) => {
                    self.notices.push(make_order_failure(&one, failure));
                }
                Err(failure) => {
                    let failure = make_order_failure(&one, failure);
                    self.failed.insert(one.record.path);
                    self.failures.push((one.record.order, failure));
                }
            }
        }
        attached
    }

    /// A record that left the history stays in the tree until it is attached, and goes once it is.
    fn correct_changes(&self, decided: &mut Decided) {
        decided
            .rendered
            .changes
            .retain(|path, change| *change != FileChange::Delete || !self.failed.contains(path));
        for path in &self.caught_up {
            let Some((order, digest)) = parse_record_path(path) else { continue };
            let wanted = match decided.gitops.servings.get(&order) {
                Some(file) => {
                    file.serving.as_ref().map_or(true, |s| collect_named(&s.status).contains(&digest))
                }
                None => false,
            };
            let there = decided.gitops.records.get(&order).is_some_and(|r| r.contains(&digest.format_hex()));
            if !wanted && there {
                let path = build_record_path(&order, &digest.format_hex());
                decided.rendered.changes.entry(path).or_insert(FileChange::Delete);
            }
        }
    }

    /// Once, though the branch is read again.
    fn add_notice(&mut self, notice: Failure) {
        if !self.notices.contains(&notice) {
            self.notices.push(notice);
        }
    }

    /// Forgetting costs the next run a question per record and loses nothing: never an error.
    fn remember_attached(
        &mut self,
        setup: &Setup<'_>,
        identity: &Identity,
        changes: BTreeMap<String, FileChange>,
    ) {
        if changes.is_empty() {
            return;
        }
        let unkept = |cause: String| {
            Failure::new(FailureKind::Repository, "attached-not-remembered", cause)
                .with_object(format!("repository {}", setup.repository.name()))
                .with_hint(format!(
                    "let the run write {ATTACHED}; until then each run asks the registry again"
                ))
        };
        match side::update_side(setup.repository, ATTACHED, identity, setup.now.unix(), &changes) {
            Ok(SideOutcome::Updated | SideOutcome::Unchanged) => {}
            Ok(SideOutcome::Refused(words)) => {
                let cause = format!("the server does not keep {ATTACHED}: {words}");
                self.add_notice(unkept(cause));
            }
            Err(failure) => self.add_notice(unkept(failure.cause)),
        }
    }
}

/// `1 record is`, `2 records are`.
fn format_count(count: usize) -> String {
    format!("{count} {}", if count == 1 { "record is" } else { "records are" })
}

/// Cases are sorted by Order.
fn find_case<'d>(decided: &'d Decided, order: &OrderRef) -> Option<&'d Case> {
    let index = decided.cases.binary_search_by(|case| case.order.cmp(order)).ok()?;
    decided.cases.get(index)
}

/// Whether the record is of what its Order deploys.
fn is_running(decided: &Decided, one: &Ready) -> bool {
    let deployed = find_case(decided, &one.record.order).and_then(|case| case.deployed.as_ref());
    deployed.is_some_and(|d| d.artifact.digest == one.artifact.digest)
}

fn make_order_failure(one: &Ready, failure: Failure) -> Failure {
    let cause = format!("{} is not attached to {}: {}", one.record.path, one.artifact, failure.cause);
    Failure { cause, ..failure }.with_object(format!("Order {}", one.record.order))
}

fn make_failure(path: &str, cause: &str) -> Failure {
    Failure::new_input("record", cause).with_object("a record").with_place(At::from_file(path))
}

/// What a record is of and whose it is: the run's own key's, or that of a key which the Kitchen trusts for such
/// records. Who can only write to the repository has nothing attached.
fn find_author(
    bundle: &[u8],
    own: Option<&PublicKey>,
    ring: &KeyRing,
) -> Result<(Artifact, PublicKey), String> {
    if let Some(own) = own
        && let Some(payload) = envelope::read_signed_payload(bundle, own)
    {
        return Ok((record::parse_subject(&payload)?.0, own.clone()));
    }
    let opened = envelope::open_bundle(bundle, ring)?;
    let key = opened.signer?;
    let (artifact, predicate_type) = record::parse_subject(&opened.payload)?;
    let role = if predicate_type == record::APPROVAL { Role::Approvals } else { Role::Records };
    match key.find_name(role) {
        Some(_) => Ok((artifact, key.key.clone())),
        None => Err(format!(
            "it is signed by {}, which is not trusted for {}",
            key.pick_name(),
            judge::format_role(role)
        )),
    }
}
