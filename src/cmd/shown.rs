//! What was decided, as a report speaks of it; the same for every verb that decides.

use crate::cmd::setup::Opened;
use crate::decide::forecast::explained;
use crate::error::{At, Failure, Kind};
use crate::model::id::OrderRef;
use crate::model::plan::{Decision, Explained, Plan, Row, ServingPlan};
use crate::model::world::GitOps;
use crate::report::view::{Drift, View, Written};
use crate::report::{Output, github, markdown};
use crate::run::Decided;

/// A report's view of what was decided.
pub struct Shown {
    decided: Decided,
    drift: Vec<Drift>,
    written: Option<Written>,
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
        let restored =
            if written.is_some() { "edited by hand; restored" } else { "edited by hand; a run restores it" };
        let edited = decided.rendered.drift.iter().map(|(path, _)| (path.clone(), restored));
        let foreign = foreign(&decided.gitops).map(|path| {
            (
                path.to_owned(),
                "an Application that is not ours (no delivery.kokumi.dev/serving label); left alone",
            )
        });
        let mut drift: Vec<Drift> =
            edited.chain(foreign).map(|(path, what)| Drift { path, what: what.to_owned() }).collect();
        drift.sort_by(|a, b| a.path.cmp(&b.path));
        Self { decided, drift, written }
    }

    /// For the forms of a report.
    #[must_use]
    pub fn view(&self) -> View<'_> {
        View {
            plan: &self.decided.plan,
            before: &self.decided.gitops,
            changes: &self.decided.rendered.changes,
            drift: &self.drift,
            written: self.written.as_ref(),
        }
    }

    /// What is known of one Order besides its row.
    #[must_use]
    pub fn explained(&self, order: &OrderRef) -> Explained {
        let Decided { cases, facts, context, .. } = &self.decided;
        explained(cases, order, facts, context)
    }

    /// What was decided.
    #[must_use]
    pub fn plan(&self) -> &Plan {
        &self.decided.plan
    }

    /// Says on stderr what is wrong and what to look at, and fills the summary of a CI step.
    pub fn tell(&self, output: &mut Output) {
        let view = self.view();
        for warning in view.warnings() {
            output.warning(warning);
        }
        for source in self.decided.world.sources.iter().filter(|s| !s.whole) {
            let why = source.why.as_deref().unwrap_or("it was not read whole");
            let warning = Failure::new(Kind::Unread, "not-whole", why).of(format!("source {}", source.name));
            output.warning(&warning.hint("nothing of it looks deleted until it is read whole"));
        }
        for drift in view.drift {
            let warning = Failure::new(Kind::SaysNo, "drift", drift.what.clone());
            output.warning(&warning.at(At::file(drift.path.clone())));
        }
        for failure in view.failures() {
            output.error(&failure);
        }
        output.summary(&markdown::plan(&view, github::SUMMARY_BYTES));
    }
}

/// Applications in our folder that are not ours.
pub fn foreign(gitops: &GitOps) -> impl Iterator<Item = &str> {
    let files = gitops.applications.iter();
    files.filter(|(_, file)| file.owner.is_none() && file.application.is_ok()).map(|(path, _)| path.as_str())
}

/// An Order whose files could not be made contributes nothing: it keeps what it has.
fn give_up(row: &mut Row, failure: Failure) {
    row.errors.push(failure);
    row.decision = Decision::Broken;
    row.serving = ServingPlan::Keep;
    row.applications.clear();
}

/// What the repository has to say besides, and under `-v` what was asked of registries.
pub fn details(opened: &Opened, output: &mut Output) {
    for request in opened.registries.requests() {
        let status = request.status.map_or("no answer".to_owned(), |s| s.to_string());
        output.detail(&format!("{} {} → {status}", request.method, request.url));
    }
    for note in opened.repository.take_notes() {
        output.warning(&note);
    }
}
