//! What was decided, as a report speaks of it; the same for every verb that decides.

use crate::error::{At, Failure, FailureKind};
use crate::model::id::OrderRef;
use crate::model::plan::{Decision, Explained, Plan, PlanRow, ServingPlan};
use crate::policy::decide::forecast::{Forecasts, explain_order};
use crate::report::fingerprint::{self, Fingerprint};
use crate::report::plan::describe_row;
use crate::report::preview::{Against, Preview};
use crate::report::view::{Drift, View, Written};
use crate::report::{self, Output, github, markdown};
use crate::run::{Decided, Setup, problems};
use crate::verbs::diff;
use crate::verbs::diff::contents;
use crate::verbs::setup::Opened;
use std::collections::BTreeSet;

/// Most artifacts that are looked into for one page: a fleet's first run would pull all of them for nothing, since
/// no page has room for more.
const INSIDE: usize = 200;

/// Most differences that a refusal lists.
const DIFFERENCES: usize = 20;

/// A report's view of what was decided.
pub struct Shown {
    decided: Decided,
    drift: Vec<Drift>,
    written: Option<Written>,
    preview: Preview,
}

impl Shown {
    /// Takes what could not be rendered into the Orders' rows, and names the files that are not as they
    /// should be.
    #[must_use]
    pub fn new(mut decided: Decided, written: Option<Written>) -> Self {
        for (order, failure) in std::mem::take(&mut decided.rendered.failures) {
            if let Some(row) = decided.plan.rows.iter_mut().find(|row| row.order == order) {
                give_up(row, failure);
            }
        }
        let restored = match &written {
            Some(written) if written.is_done() => "edited by hand; restored",
            Some(_) | None => "edited by hand; a run restores it",
        };
        let edited = decided.rendered.drift.iter().map(|edit| {
            let found = decided.gitops.applications.get(&edit.path).map(|file| &*file.text);
            let diff = report::edit::format_diff(&edit.path, &edit.generated, found);
            Drift { path: edit.path.clone(), what: restored.to_owned(), diff: Some(diff) }
        });
        let foreign = problems::find_foreign(&decided).map(|path| Drift {
            path: path.to_owned(),
            what: "an Application that is not ours (no delivery.kokumi.dev/serving label); left alone"
                .to_owned(),
            diff: None,
        });
        let mut drift: Vec<Drift> = edited.chain(foreign).collect();
        drift.sort_by(|a, b| a.path.cmp(&b.path));
        let mut shown = Self { decided, drift, written, preview: Preview::default() };
        if shown.written.is_none() {
            let settings = shown.format_settings();
            shown.preview.fingerprint = Some(Fingerprint::from_view(&shown.make_view(), &settings));
            shown.foresee_deploys();
        }
        shown
    }

    /// Only what a change causes: of the plan with it, the Orders for which the plan without it says something
    /// else; and what belongs to them.
    #[must_use]
    pub fn from_change(here: Decided, without: Decided, mut base: Against) -> Self {
        let (mut here, without) = (Self::new(here, None), Self::new(without, None));
        let (view, before) = (here.make_view(), without.make_view());
        let find =
            |view: &View<'_>, order: &OrderRef| view.plan.rows.binary_search_by(|r| r.order.cmp(order)).ok();
        let other = |order: &OrderRef| find(&before, order).map(|i| &before.plan.rows[i]);
        let mut caused = BTreeSet::new();
        for row in &view.plan.rows {
            match other(&row.order) {
                Some(old) if fingerprint::is_same_row((&view, row), (&before, old)) => {
                    base.anyway += usize::from(view.has_more_to_say(row));
                }
                Some(old) => {
                    base.without.insert(row.order.clone(), describe_row(&before, old));
                    caused.insert(row.order.clone());
                }
                None => {
                    caused.insert(row.order.clone());
                }
            }
        }
        let stays = |order: &OrderRef| find(&view, order).is_some();
        base.gone = before.plan.rows.iter().map(|row| row.order.clone()).filter(|o| !stays(o)).collect();
        if view.plan.guard.is_some() && view.plan.guard == before.plan.guard {
            base.notes.push("the removal guard stops a run with and without the change".to_owned());
        }
        let told =
            |failures: &[Failure]| failures.iter().map(Failure::format_sentence).collect::<BTreeSet<_>>();
        let (problems, notices) = (told(&before.plan.problems), told(&before.plan.notices));
        let guard = before.plan.guard.clone();

        let plan = &mut here.decided.plan;
        plan.rows.retain(|row| caused.contains(&row.order));
        plan.problems.retain(|p| !problems.contains(&p.format_sentence()));
        plan.notices.retain(|n| !notices.contains(&n.format_sentence()));
        if plan.guard == guard {
            plan.guard = None;
        }
        let changes = &mut here.decided.rendered.changes;
        let paths: BTreeSet<String> =
            plan.rows.iter().flat_map(|row| problems::collect_paths(row, changes)).collect();
        changes.retain(|path, _| paths.contains(path));
        here.drift.retain(|drift| paths.contains(&drift.path));
        here.preview.base = Some(base);
        let settings = here.format_settings();
        here.preview.fingerprint = Some(Fingerprint::from_view(&here.make_view(), &settings));
        here
    }

    /// What was decided with besides objects, for the fingerprint.
    fn format_settings(&self) -> String {
        let context = &self.decided.context;
        format!(
            "{:?} {} {} {}",
            context.trust, context.argocd_namespace, context.require_observation, context.records
        )
    }

    /// When what waits can deploy.
    fn foresee_deploys(&mut self) {
        let Decided { plan, cases, facts, context, .. } = &self.decided;
        let forecasts = Forecasts::new(cases, facts, context);
        for row in plan.rows.iter().filter(|row| row.decision == Decision::Hold) {
            let more = self.preview.more.entry(row.order.clone()).or_default();
            more.forecast = forecasts.find_forecast(&row.order);
        }
    }

    /// Looks into the artifacts of what moves or waits, and at when what waits can deploy. What cannot be read
    /// is unknown, and no failure of the plan.
    pub fn look_inside(&mut self, setup: &Setup<'_>) {
        if self.written.is_some() {
            self.foresee_deploys();
        }
        let Decided { plan, cases, .. } = &self.decided;
        let (mut orders, mut pairs) = (Vec::new(), Vec::new());
        for row in &plan.rows {
            let (Decision::Promote(_) | Decision::Hold, Some(candidate)) = (&row.decision, &row.candidate)
            else {
                continue;
            };
            let case = cases.binary_search_by(|case| case.order.cmp(&row.order)).ok().map(|i| &cases[i]);
            let deployed = case.and_then(|case| case.deployed.as_ref());
            let more = self.preview.more.entry(row.order.clone()).or_default();
            more.moves = deployed
                .filter(|d| d.target_namespace != candidate.target_namespace)
                .map(|d| (d.target_namespace.to_string(), candidate.target_namespace.to_string()));
            if orders.len() == INSIDE && deployed.is_none_or(|d| d.artifact != candidate.artifact) {
                let cause = format!("no more than {INSIDE} artifacts are looked into for one page");
                let hint = format!("expedite diff {} shows it", row.order);
                more.inside =
                    Some(Err(Failure::new(FailureKind::Unread, "not-looked-into", cause).with_hint(hint)));
            } else if deployed.is_none_or(|d| d.artifact != candidate.artifact) {
                let from = deployed.map(|d| (d.artifact.clone(), Some(d.target_namespace.clone())));
                orders.push(row.order.clone());
                pairs.push((from, diff::make_place(candidate)));
            }
        }
        for (order, inside) in orders.into_iter().zip(contents::compare_pairs(setup, &pairs, false)) {
            self.preview.more.entry(order).or_default().inside = Some(inside);
        }
    }

    /// Says no, with the difference, where this is not the plan of that fingerprint.
    pub fn check_expected(&self, expected: &Fingerprint, output: &mut Output) {
        let Some(now) = &self.preview.fingerprint else { return };
        if now.is_same_plan(expected) {
            return;
        }
        let mut all = now.describe_differences(expected, &self.make_view());
        let more = all.len().saturating_sub(DIFFERENCES);
        all.truncate(DIFFERENCES);
        if more > 0 {
            all.push(format!("and {more} more"));
        }
        let cause = format!("this is not the plan that was looked at: {}", all.join("; "));
        let failure = Failure::new(FailureKind::SaysNo, "another-plan", cause).with_object("--expect");
        output.report_error(
            &failure.with_hint(format!("look at it again; its fingerprint is {}", now.drop_orders())),
        );
    }

    /// What `--check` says no to.
    #[must_use]
    pub fn refuse_unwritten(&self) -> Option<Failure> {
        problems::find_hand_edits(&self.decided)
    }

    /// For the forms of a report.
    #[must_use]
    pub fn make_view(&self) -> View<'_> {
        View {
            plan: &self.decided.plan,
            before: &self.decided.gitops,
            changes: &self.decided.rendered.changes,
            drift: &self.drift,
            written: self.written.as_ref(),
            preview: &self.preview,
        }
    }

    /// What is known of one Order besides its row.
    #[must_use]
    pub fn explain_row(&self, row: &PlanRow) -> Explained {
        let Decided { cases, facts, context, .. } = &self.decided;
        explain_order(cases, &row.order, &row.verdicts, facts, context)
    }

    /// What was decided.
    #[must_use]
    pub fn plan(&self) -> &Plan {
        &self.decided.plan
    }

    /// Says on stderr what is wrong and what to look at, and fills the summary of a CI step.
    pub fn tell_plan(&self, output: &mut Output) {
        let view = self.make_view();
        for warning in view.iter_warnings() {
            output.report_warning(warning);
        }
        if let Some(base) = &self.preview.base {
            let told = |text: &String| {
                Failure::new(FailureKind::SaysNo, "base", text.clone()).with_object("the change")
            };
            base.weakened.iter().for_each(|w| output.report_warning(&told(&format!("weakens {w}"))));
            base.notes.iter().for_each(|note| output.report_warning(&told(note)));
        }
        for source in self.decided.world.sources.iter().filter(|s| !s.whole) {
            let why = source.why.as_deref().unwrap_or("it was not read whole");
            let warning = Failure::new(FailureKind::Unread, "not-whole", why)
                .with_object(format!("source {}", source.name));
            output.report_warning(&warning.with_hint("nothing of it looks deleted until it is read whole"));
        }
        for drift in view.drift {
            let warning = Failure::new(FailureKind::SaysNo, "drift", drift.what.clone());
            output.report_warning(&warning.with_place(At::from_file(drift.path.clone())));
        }
        for failure in view.collect_failures() {
            output.report_error(&failure);
        }
        output.append_summary(&markdown::format_plan(&view, github::SUMMARY_BYTES));
    }
}

/// An Order whose files could not be made contributes nothing: it keeps what it has.
fn give_up(row: &mut PlanRow, failure: Failure) {
    row.errors.push(failure);
    row.decision = Decision::Broken;
    row.serving = ServingPlan::Keep;
    row.applications.clear();
}

/// What the repository has to say besides, and under `-v` what was asked of registries.
pub fn tell_details(opened: &Opened, output: &mut Output) {
    for request in opened.registries.collect_requests() {
        let status = request.status.map_or("no answer".to_owned(), |s| s.to_string());
        output.write_detail(&format!("{} {} → {status}", request.method, request.url));
    }
    for warning in opened.registries.collect_warnings() {
        output.report_warning(&Failure::new(FailureKind::Unread, "registry-warning", warning));
    }
    for note in opened.repository.take_notes() {
        output.report_warning(&note.into());
    }
}
