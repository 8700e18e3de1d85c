//! The content of a report of a plan or a run, and the words and counts that all its forms share.

use crate::error::{Failure, FailureKind};
use crate::files::FileChange;
use crate::model::id::{CommitId, OrderRef, PreparationName};
use crate::model::plan::{
    ApplicationAction, ApplicationPlan, Decision, Forecast, Plan, PlanRow, ServingPlan,
};
use crate::model::serving::Serving;
use crate::model::time::Time;
use crate::model::verdict::{For, GateOutcome, Verdict};
use crate::model::world::GitOps;
use crate::report::preview::Preview;
use std::collections::BTreeMap;

/// A plan with its starting point and its result.
#[derive(Debug, Clone, Copy)]
pub struct View<'a> {
    pub plan: &'a Plan,
    /// The repository that it was decided on.
    pub before: &'a GitOps,
    /// What happens to its files, or would if nothing stopped the run.
    pub changes: &'a BTreeMap<String, FileChange>,
    /// Paths of generated files that were edited by hand (and are restored), and of foreign files in the same
    /// folders.
    pub drift: &'a [Drift],
    /// What happened to the changes; `None` for a plan.
    pub written: Option<&'a Written>,
    /// Additional information for a preview.
    pub preview: &'a Preview,
}

/// A file in the generated folders that differs from what Expedite wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Drift {
    pub path: String,
    /// For a person: edited by hand and restored, foreign and left alone, …
    pub what: String,
    /// The edit, as a unified diff from what was generated; none of a foreign file.
    pub diff: Option<String>,
}

/// What a run did to the repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Written {
    /// There was nothing to change.
    Nothing,
    Commit {
        id: CommitId,
        /// Where, as a user would name it: `../gitops.git main`.
        place: String,
    },
    /// Nothing, because something stopped the run.
    Stopped,
}

impl Written {
    /// Whether what was decided was done.
    #[must_use]
    pub fn is_done(&self) -> bool {
        match self {
            Self::Nothing | Self::Commit { .. } => true,
            Self::Stopped => false,
        }
    }
}

/// How many of how many.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Summary {
    pub orders: usize,
    /// Promoted now, rollbacks included.
    pub promoted: usize,
    /// A candidate waits.
    pub held: usize,
    /// Wrong input, or something that could not be read.
    pub failed: usize,
    /// The Order is gone.
    pub removed: usize,
    pub kept: usize,
    pub files: usize,
}

impl View<'_> {
    /// Counts the rows. A row that failed is counted only as failed, except if it is promoted anyway.
    #[must_use]
    pub fn count_rows(&self) -> Summary {
        let mut sum =
            Summary { orders: self.plan.rows.len(), files: self.changes.len(), ..Summary::default() };
        for row in &self.plan.rows {
            let failed = has_failed(row);
            sum.failed += usize::from(failed);
            match &row.decision {
                Decision::Promote(_) => sum.promoted += 1,
                Decision::Remove(_) => sum.removed += 1,
                Decision::Hold if !failed => sum.held += 1,
                Decision::Keep if !failed => sum.kept += 1,
                Decision::Hold | Decision::Keep | Decision::Broken => {}
            }
        }
        sum
    }

    /// Orders whose Applications change: something is promoted or removed.
    pub fn find_moving_orders(&self) -> impl Iterator<Item = &OrderRef> {
        self.plan.rows.iter().filter_map(|row| match &row.decision {
            Decision::Promote(_) | Decision::Remove(_) => Some(&row.order),
            Decision::Keep | Decision::Hold | Decision::Broken => None,
        })
    }

    /// All errors with their kind, for stderr and the exit status: the rows' errors, what could not be read
    /// for them, the problems that belong to no single Order, and the removal guard.
    #[must_use]
    pub fn collect_failures(&self) -> Vec<Failure> {
        let mut all = self.plan.problems.clone();
        for row in &self.plan.rows {
            all.extend(row.errors.iter().cloned());
            for verdict in row.verdicts.iter().filter(|v| v.unread) {
                let unread = Failure::new(FailureKind::Unread, "unread", verdict.message.clone());
                all.push(unread.with_object(format!("Order {}", row.order)));
            }
        }
        if let Some(stop) = &self.plan.guard {
            let count = stop.removals.len();
            let cause = format!(
                "this run would remove {}, but at most {} may be removed; nothing was written",
                format_count(count, "Application", "Applications"),
                stop.allowed
            );
            let guard = Failure::new(FailureKind::Guard, "removal-guard", cause);
            all.push(
                guard.with_hint(format!(
                    "check the list; --allow-removals {count} allows these removals once"
                )),
            );
        }
        all
    }

    /// Warnings: the plan's and the rows'.
    pub fn iter_warnings(&self) -> impl Iterator<Item = &Failure> {
        self.plan.notices.iter().chain(self.plan.rows.iter().flat_map(|row| &row.warnings))
    }

    /// The Serving that an Order had before.
    #[must_use]
    pub fn find_serving(&self, row: &PlanRow) -> Option<&Serving> {
        self.before.servings.get(&row.order).and_then(|file| file.serving.as_deref().ok())
    }

    /// What was deployed before.
    #[must_use]
    pub fn find_deployed(&self, row: &PlanRow) -> Option<&PreparationName> {
        self.find_serving(row).and_then(|s| s.status.observed_preparation_name.as_ref())
    }

    /// When a promotion that waits can deploy; `None` if nothing waits, and for a run.
    #[must_use]
    pub fn find_forecast(&self, row: &PlanRow) -> Option<&Forecast> {
        self.preview.more.get(&row.order)?.forecast.as_ref()
    }

    /// What happens to an Application's file, in one word; `None` if nothing does.
    #[must_use]
    pub fn describe_action(&self, application: &ApplicationPlan) -> Option<&'static str> {
        match &application.action {
            ApplicationAction::Hold { .. } => Some("hold"),
            ApplicationAction::Detach(_) => Some("detach"),
            ApplicationAction::Remove(_) => Some("remove"),
            ApplicationAction::Pin(_) => match self.changes.get(&application.path) {
                None | Some(FileChange::Delete) => None,
                Some(FileChange::Write(_)) if self.drift.iter().any(|d| d.path == application.path) => {
                    Some("restore")
                }
                Some(FileChange::Write(_)) if self.before.applications.contains_key(&application.path) => {
                    Some("change")
                }
                Some(FileChange::Write(_)) => Some("create"),
            },
        }
    }

    /// The rows that a report has more to say of than their line of the table; of a plan that was compared with
    /// another every row is one of them.
    pub fn iter_shown_rows(&self) -> impl Iterator<Item = &PlanRow> {
        self.plan.rows.iter().filter(|row| self.preview.base.is_some() || self.has_more_to_say(row))
    }

    /// Whether a report has more to say of this row than its line of the table.
    #[must_use]
    pub fn has_more_to_say(&self, row: &PlanRow) -> bool {
        has_failed(row)
            || match &row.decision {
                Decision::Promote(_) | Decision::Hold | Decision::Broken | Decision::Remove(_) => true,
                Decision::Keep => row.applications.iter().any(|a| self.describe_action(a).is_some()),
            }
            || matches!(row.serving, ServingPlan::Remove)
    }
}

/// Whether something about this Order is wrong or could not be read.
#[must_use]
pub fn has_failed(row: &PlanRow) -> bool {
    row.decision == Decision::Broken || !row.errors.is_empty() || row.verdicts.iter().any(|v| v.unread)
}

/// The decision as the table prints it.
#[must_use]
pub fn format_decision(row: &PlanRow) -> &'static str {
    match &row.decision {
        Decision::Keep => "Keep",
        Decision::Promote(promotion) if promotion.rollback => "Rollback",
        Decision::Promote(_) => "Promote",
        Decision::Hold => "Hold",
        Decision::Broken => "Error",
        Decision::Remove(_) => "Remove",
    }
}

/// What a gate that does not pass waits for; printed after its name.
#[must_use]
pub fn describe_outcome(verdict: &Verdict) -> String {
    match &verdict.outcome {
        GateOutcome::Passed => "passed".to_owned(),
        GateOutcome::Failed => "needs another input".to_owned(),
        GateOutcome::Waiting(For::Instant(until)) => format!("waits until {until}"),
        GateOutcome::Waiting(For::Person(people)) if people.is_empty() => "waits for a person".to_owned(),
        GateOutcome::Waiting(For::Person(people)) => format!("waits for {}", people.join(" or ")),
        GateOutcome::Waiting(For::Evidence) => "waits for proof".to_owned(),
        GateOutcome::Waiting(For::Order(order)) => format!("waits for Order {order}"),
        GateOutcome::Waiting(For::Registry) => "waits for the registry".to_owned(),
        GateOutcome::Waiting(For::Build) => "waits for a build that has this gate".to_owned(),
        GateOutcome::Waiting(For::AnotherGate) => "waits for another gate".to_owned(),
        GateOutcome::Waiting(For::LaterRun) => "waits for a later run".to_owned(),
    }
}

/// Whether a gate's answer is shown: it does not pass, and not only because another gate holds.
#[must_use]
pub fn needs_line(verdict: &Verdict) -> bool {
    match &verdict.outcome {
        GateOutcome::Passed | GateOutcome::Waiting(For::AnotherGate) => false,
        GateOutcome::Failed
        | GateOutcome::Waiting(
            For::Instant(_)
            | For::Person(_)
            | For::Evidence
            | For::Order(_)
            | For::Registry
            | For::Build
            | For::LaterRun,
        ) => true,
    }
}

/// When a candidate is promoted, or what has to happen first.
#[must_use]
pub fn describe_forecast(forecast: &Forecast, now: Time) -> String {
    match forecast {
        Forecast::At(time) if *time <= now => "by the next run".to_owned(),
        Forecast::At(time) => format!("by any run from {time} on, if nothing changes"),
        Forecast::NotBefore { time, gate, .. } if *time <= now => format!("once {gate} passes"),
        Forecast::NotBefore { time, gate, .. } => format!("once {gate} passes, and not before {time}"),
        Forecast::Never { gate, .. } => format!("not with the current input: {gate} needs another input"),
    }
}

impl Summary {
    /// `2 promoted, 1 held, 0 failed of 6 Orders, 1 removed, 2 unchanged; 5 files changed`, or the same for a
    /// plan.
    #[must_use]
    pub fn format_summary(&self, done: bool) -> String {
        let (promoted, removed, files) = match done {
            true => ("promoted", "removed", "changed"),
            false => ("to promote", "to remove", "to change"),
        };
        let mut parts = vec![
            format!("{} {promoted}", self.promoted),
            format!("{} held", self.held),
            format!("{} failed", self.failed),
        ];
        if self.removed > 0 {
            parts.push(format!("{} {removed}", self.removed));
        }
        parts.push(format!("{} unchanged", self.kept));
        format!(
            "{}, of {}; {} {files}",
            parts.join(", "),
            format_count(self.orders, "Order", "Orders"),
            format_count(self.files, "file", "files")
        )
    }
}

/// `1 file`, `2 files`.
#[must_use]
pub fn format_count(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;
    use crate::model::plan::GuardStop;
    use crate::model::time::Time;
    use crate::model::verdict::GateName;
    use crate::report::sample::{make_sample, parse_order};

    #[test]
    fn every_row_is_counted_once() {
        let sample = make_sample();
        let sum = sample.make_view(None).count_rows();
        let expected = Summary { orders: 6, promoted: 1, held: 1, failed: 2, removed: 1, kept: 1, files: 4 };
        assert_eq!(sum, expected);
    }

    #[test]
    fn failures_keep_their_kinds() {
        let mut sample = make_sample();
        let kinds = |sample: &crate::report::sample::Sample| -> Vec<(FailureKind, String)> {
            sample.make_view(None).collect_failures().iter().map(|f| (f.kind, f.to_string())).collect()
        };
        let all = kinds(&sample);
        assert_eq!(
            all,
            [
                (FailureKind::Input, "objects/freeze.yaml: it does not parse".to_owned()),
                (
                    FailureKind::Input,
                    "objects/broken.yaml:4:3: Order shop/broken: there is no field \"promotoin\"".to_owned()
                ),
                (
                    FailureKind::Unread,
                    "Order shop/unread: registry.shop.example:5000 does not answer".to_owned()
                ),
            ]
        );
        sample.plan.guard = Some(GuardStop { allowed: 5, removals: vec![("a".into(), "b".into()); 7] });
        let (kind, text) = kinds(&sample).pop().unwrap();
        assert_eq!(kind, FailureKind::Guard);
        assert_eq!(
            text,
            "this run would remove 7 Applications, but at most 5 may be removed; nothing was written"
        );
    }

    #[test]
    fn a_held_promotion_is_no_failure() {
        let mut sample = make_sample();
        sample.plan.problems.clear();
        sample.plan.rows.retain(|row| row.order == parse_order("shop/cart"));
        assert_eq!(sample.make_view(None).collect_failures(), []);
        assert_eq!(sample.make_view(None).count_rows().held, 1);
    }

    #[test]
    fn a_gate_says_what_it_waits_for() {
        let waiting = |what| describe_outcome(&Verdict::make_waiting(GateName::Upstream, what, ""));
        let at = Time::parse("2026-01-31T09:00:00Z").unwrap();
        assert_eq!(waiting(For::Instant(at)), "waits until 2026-01-31T09:00:00Z");
        assert_eq!(waiting(For::Person(vec!["ann".into(), "platform".into()])), "waits for ann or platform");
        assert_eq!(waiting(For::Order(parse_order("dev/web"))), "waits for Order dev/web");
        assert_eq!(waiting(For::Build), "waits for a build that has this gate");
        assert_eq!(describe_outcome(&Verdict::make_failed(GateName::Ready, "")), "needs another input");
    }
}
