//! Deciding on what was read, as often as a limit of promotions demands: plan, render and sign, in memory.

use super::records::{self, Pen};
use super::tell::Listed;
use super::{Decided, Known, Read, Setup, lines, problems};
use crate::error::{At, Failure};
use crate::evidence::gather::gather_blocking;
use crate::evidence::keys::KeyRing;
use crate::model::evidence::{Ask, Facts};
use crate::model::id::OrderRef;
use crate::model::kitchen::KitchenSpec;
use crate::model::plan::{Decision, Plan, PlanRow};
use crate::model::world::{GitOps, World};
use crate::policy::decide::{self, PlanOptions};
use crate::policy::gates::{self, Context};
use crate::policy::resolve::{self, Case};
use crate::render::{self, RenderedFiles};
use git_commits::Snapshot;
use std::collections::BTreeMap;

/// What was read, the evidence of it, and what is known by now of Orders that cannot be written.
pub struct Decider<'a> {
    setup: &'a Setup<'a>,
    snapshot: Snapshot,
    world: World,
    gitops: GitOps,
    listed: Listed,
    ring: KeyRing,
    cases: Vec<Case>,
    context: Context,
    facts: Facts,
    /// Orders of which nothing can be written, and why.
    unwritable: BTreeMap<OrderRef, Failure>,
}

/// A plan, and the files that it means.
pub struct Draft {
    plan: Plan,
    rendered: RenderedFiles,
    /// A promotion of it cannot be written, and that was not known before.
    pub has_lost: bool,
}

impl<'a> Decider<'a> {
    /// Reads the evidence that the gates ask for.
    pub fn new(setup: &'a Setup<'a>, read: Read, known: &mut Known, progress: &mut dyn FnMut(&str)) -> Self {
        let Read { snapshot, gitops, world, listed } = read;
        let cases = resolve::resolve_cases(&world, &gitops, &setup.argocd_namespace);
        let ring =
            KeyRing::from_kitchen(world.kitchen.as_ref().map_or(&KitchenSpec::default(), |k| &k.object.spec));
        let context = Context {
            trust: ring.state().fingerprint,
            argocd_namespace: setup.argocd_namespace.clone(),
            require_observation: setup.require_observation,
            records: setup.records,
            foreseen: setup.foreseen,
            explained: setup.explained.clone(),
            rescan: Some(setup.rescan),
            ..Context::new(setup.now, world.kitchen.as_ref().map(|k| &k.object.spec))
        };
        let asks = gates::collect_asks(&cases, &context);
        if !asks.is_empty() {
            progress(&format!("reading the evidence of {} artifacts", asks.len()));
        }
        let mut facts = gather_facts(setup, &ring, asks, known);
        facts.records = records::read_records(gates::collect_record_asks(&cases, &context), &snapshot, &ring);
        let pins = gates::find_pins_to_prove(&cases, &context);
        facts.records.extend(records::find_proven(pins, &gitops, &snapshot, &ring));
        Self {
            setup,
            snapshot,
            world,
            gitops,
            listed,
            ring,
            cases,
            context,
            facts,
            unwritable: BTreeMap::new(),
        }
    }

    /// Plans and renders under this limit of promotions, and remembers the promotions that cannot be written.
    ///
    /// # Errors
    /// The repository cannot be read.
    pub fn draft_plan(&mut self, limit: Option<usize>, pen: Option<&mut Pen<'_>>) -> Result<Draft, Failure> {
        let mut plan = self.decide_until_settled(limit);
        plan.problems.extend(self.find_unusable_keys());
        plan.notices.extend(records::find_gone(&self.gitops).map(|(order, path)| {
            Failure::new_input("record-gone", "this record is gone, and the Serving's history names it")
                .with_object(format!("Order {order}"))
                .with_place(At::from_file(path))
                .with_hint(records::BRING_BACK)
        }));
        problems::refine_places(&mut plan, &|file| lines::read_named(self.setup, &self.snapshot, file));
        let rendered = self.render_draft(&mut plan, pen)?;
        let known = self.unwritable.len();
        for (order, failure) in &rendered.failures {
            if plan.find_row(order).is_some_and(|row| matches!(row.decision, Decision::Promote(_))) {
                self.unwritable.entry(order.clone()).or_insert_with(|| failure.clone());
            }
        }
        Ok(Draft { plan, rendered, has_lost: self.unwritable.len() > known })
    }

    /// Everything that was read and decided.
    pub fn into_decided(self, draft: Draft) -> Decided {
        let Self { snapshot, world, gitops, listed, cases, context, facts, .. } = self;
        let Draft { plan, rendered, .. } = draft;
        Decided { snapshot, world, gitops, cases, context, facts, plan, rendered, listed }
    }

    /// Decides until every loss is known that taking Applications over means: that shows once they are rendered, and
    /// then holds their Clusters. Each round but the last finds a file more.
    fn decide_until_settled(&mut self, limit: Option<usize>) -> Plan {
        let options = PlanOptions {
            max_promotions: limit,
            unwritable: self.unwritable.keys().cloned().collect(),
            ..self.setup.options.clone()
        };
        loop {
            let plan = decide::decide_plan(
                &self.cases,
                &self.facts,
                &self.world,
                &self.gitops,
                &self.context,
                &options,
            );
            let losses = render::collect_losses(&plan, &self.gitops);
            if losses.keys().all(|path| self.gitops.losses.contains_key(path)) {
                return plan;
            }
            self.gitops.losses.extend(losses);
            self.cases = resolve::resolve_cases(&self.world, &self.gitops, &self.setup.argocd_namespace);
        }
    }

    /// Keys of the Kitchen that prove nothing, whatever they signed: an error, though it holds by itself.
    fn find_unusable_keys(&self) -> Vec<Failure> {
        let Some(kitchen) = &self.world.kitchen else { return Vec::new() };
        let wrong = |why: &String| {
            Failure::new_input("trust-key", why.clone())
                .with_object("Kitchen default")
                .with_field("spec.trust")
                .with_place(kitchen.origin.make_place())
                .with_hint("nothing that this key signed counts until it is mended")
        };
        self.ring.state().errors.iter().map(wrong).collect()
    }

    /// The files that a plan means, with its records. An Order of which something cannot be signed, rendered or put
    /// where it belongs contributes nothing; nor does one that is unwritable already.
    fn render_draft(&self, plan: &mut Plan, pen: Option<&mut Pen<'_>>) -> Result<RenderedFiles, Failure> {
        let mut failures = self.unwritable.clone();
        let records = records::sign_all(plan, &self.cases, &self.gitops, pen, &mut failures);
        let mut rendered = render::render_files(plan, &self.gitops, &self.setup.argocd_namespace);
        rendered.failures.iter().for_each(|(order, _)| drop(failures.remove(order)));
        for (order, changes) in records {
            if !rendered.has_failed(&order) {
                rendered.changes.extend(changes);
            }
        }
        for (order, failure) in failures {
            if let Some(row) = plan.find_row(&order) {
                leave_out(row, failure, &mut rendered);
            }
        }
        drop_clashes(&self.snapshot, plan, &mut rendered)?;
        Ok(rendered)
    }
}

/// What the registries prove; what this run has read whole already is not read again.
fn gather_facts(setup: &Setup<'_>, ring: &KeyRing, asks: Vec<Ask>, known: &mut Known) -> Facts {
    if setup.skip_evidence {
        return Facts { keys: ring.state().clone(), ..Facts::default() };
    }
    let (have, want): (Vec<Ask>, Vec<Ask>) = asks.into_iter().partition(|ask| {
        known.0.get(&ask.artifact).is_some_and(|(claims, _)| claims.is_superset(&ask.claims))
    });
    let mut facts = gather_blocking(setup.runtime, &want, ring, setup.registries, &setup.gather);
    for ask in want {
        if let Some(found) = facts.artifacts.get(&ask.artifact)
            && found.is_whole()
        {
            known.0.insert(ask.artifact, (ask.claims, found.clone()));
        }
    }
    for ask in have {
        if let Some((_, found)) = known.0.get(&ask.artifact) {
            facts.artifacts.insert(ask.artifact, found.clone());
        }
    }
    facts
}

/// An Order whose files have no place in the tree contributes nothing; the others go on.
///
/// # Errors
/// The repository cannot be read.
pub fn drop_clashes(snapshot: &Snapshot, plan: &Plan, rendered: &mut RenderedFiles) -> Result<(), Failure> {
    let clashes = git_commits::find_clashes(snapshot, &rendered.changes)?;
    if clashes.is_empty() {
        return Ok(());
    }
    for row in &plan.rows {
        let paths = problems::collect_paths(row, &rendered.changes);
        let Some((path, failure)) = clashes.iter().find(|(path, _)| paths.contains(*path)) else { continue };
        let failure = Failure::from(failure.clone())
            .with_place(At::from_file(path.clone()))
            .with_object(format!("Order {}", row.order));
        leave_out(row, failure, rendered);
    }
    Ok(())
}

/// Takes all that an Order contributes out of what is committed, and says why.
fn leave_out(row: &PlanRow, failure: Failure, rendered: &mut RenderedFiles) {
    let paths = problems::collect_paths(row, &rendered.changes);
    rendered.changes.retain(|path, _| !paths.contains(path));
    rendered.drift.retain(|edit| edit.order != row.order);
    rendered.failures.push((row.order.clone(), failure));
    rendered.failures.sort_by(|(a, _), (b, _)| a.cmp(b));
}
