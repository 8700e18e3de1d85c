//! Plan → files. Knows nothing of who asked.
//!
//! Pinned values go through a template into exactly the Application that was decided ([`application`],
//! held to it by [`admit`]); a Serving is written once and then edited in place ([`serving`]). The same
//! plan on the same repository gives the same bytes, and no change where they are there already. An Order
//! that fails contributes nothing: neither its Serving nor one of its Applications.

pub mod admit;
pub mod application;
pub mod context;
pub mod drift;
pub mod edit;
pub mod preparation;
pub mod serving;
pub mod status;
pub mod template;

use crate::error::{At, Failure, Kind};
use crate::files::Change;
use crate::model::id::OrderRef;
use crate::model::naming;
use crate::model::plan::{ApplicationAction, ApplicationPlan, Plan, Row, ServingPlan};
use crate::model::world::GitOps;
use std::collections::BTreeMap;
use template::Template;

/// What a plan means for the repository's files.
#[derive(Debug, Default)]
pub struct Rendered {
    /// By path; nothing for a file that stays as it is.
    pub changes: BTreeMap<String, Change>,
    /// Files of ours that someone edited or removed by hand and that are restored, sorted by path.
    pub drift: Vec<HandEdit>,
    /// Orders that contribute nothing, and why, sorted by Order.
    pub failures: Vec<(OrderRef, Failure)>,
}

impl Rendered {
    /// Whether this Order contributes nothing.
    #[must_use]
    pub fn failed(&self, order: &OrderRef) -> bool {
        self.failures.iter().any(|(failed, _)| failed == order)
    }
}

/// A file of ours that someone edited or removed by hand.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct HandEdit {
    /// In the repository.
    pub path: String,
    /// Whose it is.
    pub order: OrderRef,
    /// What it was generated as, before the edit.
    pub generated: String,
}

/// From this many rows on, a second thread pays.
const MANY: usize = 256;

/// The files of `plan`, against what the repository has.
///
/// `argocd_namespace` is what a Serving's template sees as `settings.argocdNamespace`.
#[must_use]
pub fn files(plan: &Plan, gitops: &GitOps, argocd_namespace: &str) -> Rendered {
    let desk = Desk {
        gitops,
        argocd_namespace,
        application: application::template(gitops.application_template.as_deref()),
        serving: serving::template(gitops.serving_template.as_deref()),
    };
    let threads =
        if plan.rows.len() < MANY { 1 } else { std::thread::available_parallelism().map_or(1, usize::from) };
    let size = plan.rows.len().div_ceil(threads).max(1);
    let chunks: Vec<&[Row]> = plan.rows.chunks(size).collect();
    let results: Vec<(&Row, Result<Files, Failure>)> = std::thread::scope(|scope| {
        let workers: Vec<_> = chunks
            .iter()
            .map(|rows| scope.spawn(|| rows.iter().map(|row| (row, desk.row(row))).collect::<Vec<_>>()))
            .collect();
        workers
            .into_iter()
            .zip(&chunks)
            .flat_map(|(worker, rows)| {
                worker.join().unwrap_or_else(|_| {
                    let broke = || {
                        Failure::new(Kind::Internal, "render", "rendering this part of the plan broke off")
                    };
                    rows.iter().map(|row| (row, Err(broke()))).collect()
                })
            })
            .collect()
    });
    let mut rendered = Rendered::default();
    for (row, result) in results {
        match result.and_then(|files| files.apart_from(&rendered.changes, row)) {
            Ok(files) => {
                rendered.changes.extend(files.changes);
                let edits = files.drift.into_iter();
                rendered.drift.extend(edits.map(|(path, generated)| HandEdit {
                    path,
                    order: row.order.clone(),
                    generated,
                }));
            }
            Err(failure) => rendered.failures.push((row.order.clone(), failure)),
        }
    }
    rendered.drift.sort();
    rendered.failures.sort_by(|a, b| a.0.cmp(&b.0));
    rendered
}

/// The opted-in Applications that a plan would take over, and that hold something which would be lost: by
/// path, what. Whoever decides holds their Clusters then.
#[must_use]
pub fn losses(plan: &Plan, gitops: &GitOps) -> BTreeMap<String, String> {
    let taken = plan.rows.iter().flat_map(|row| &row.applications).filter_map(|application| {
        let ApplicationAction::Pin(pin) = &application.action else { return None };
        let file = gitops.applications.get(&application.path)?;
        (file.owner.as_ref() != Some(&pin.order)).then_some((&application.path, pin, file))
    });
    let mut template = None;
    let mut losses = BTreeMap::new();
    for (path, pin, file) in taken {
        let template =
            template.get_or_insert_with(|| application::template(gitops.application_template.as_deref()));
        // A template that fails is said by `files`, for every Order that it fails.
        if let Ok(template) = template
            && let Ok(Err(lost)) = application::takeover(template, &file.text, path, pin)
        {
            losses.insert(path.clone(), application::loses(&lost));
        }
    }
    losses
}

/// One Order's files.
#[derive(Debug, Default)]
struct Files {
    changes: BTreeMap<String, Change>,
    drift: Vec<(String, String)>,
}

impl Files {
    /// # Errors
    /// Another Order changes one of the same files.
    fn apart_from(self, others: &BTreeMap<String, Change>, row: &Row) -> Result<Self, Failure> {
        match self.changes.keys().find(|path| others.contains_key(*path)) {
            None => Ok(self),
            Some(path) => Err(Failure::new(Kind::Internal, "same-file", "two Orders would change this file")
                .at(At::file(path.clone()))
                .of(format!("Order {}", row.order))),
        }
    }
}

/// All that rendering needs, made once per run.
struct Desk<'a> {
    gitops: &'a GitOps,
    argocd_namespace: &'a str,
    application: Result<Template, Failure>,
    serving: Result<Template, Failure>,
}

impl Desk<'_> {
    fn row(&self, row: &Row) -> Result<Files, Failure> {
        let mut files = Files::default();
        for plan in &row.applications {
            self.application(row, plan, &mut files)
                .map_err(|f| if f.what.is_none() { f.of(format!("Order {}", row.order)) } else { f })?;
        }
        self.serving(row, &mut files)
            .map_err(|f| if f.what.is_none() { f.of(format!("Serving {}", row.order)) } else { f })?;
        Ok(files)
    }

    fn serving(&self, row: &Row, files: &mut Files) -> Result<(), Failure> {
        let existing = self.gitops.servings.get(&row.order);
        match (&row.serving, existing) {
            (ServingPlan::Keep, _) | (ServingPlan::Remove, None) => {}
            (ServingPlan::Remove, Some(file)) => {
                files.changes.insert(file.path.clone(), Change::Delete);
            }
            (ServingPlan::Write(state), Some(file)) => {
                let text = serving::update(file, state)?;
                if text != *file.text {
                    files.changes.insert(file.path.clone(), Change::Write(text.into_bytes()));
                }
            }
            (ServingPlan::Write(state), None) => {
                let template = self.serving.as_ref().map_err(Clone::clone)?;
                let environment = row.environment.as_ref();
                let text =
                    serving::create(template, &row.order, state, environment, self.argocd_namespace, None)?;
                files.changes.insert(naming::serving_path(&row.order), Change::Write(text.into_bytes()));
            }
        }
        Ok(())
    }

    fn application(&self, row: &Row, plan: &ApplicationPlan, files: &mut Files) -> Result<(), Failure> {
        let existing = self.gitops.applications.get(&plan.path);
        let ours = existing.filter(|file| file.owner.as_ref() == Some(&row.order));
        match (&plan.action, existing) {
            (ApplicationAction::Hold { .. }, _)
            | (ApplicationAction::Remove(_) | ApplicationAction::Detach(_), None) => {}
            (ApplicationAction::Remove(_) | ApplicationAction::Detach(_), Some(_)) if ours.is_none() => {
                return Err(Failure::input(
                    "foreign-application",
                    "its labels do not name this Order; it is left alone",
                )
                .at(At::file(plan.path.clone())));
            }
            (ApplicationAction::Remove(_), Some(_)) => {
                files.changes.insert(plan.path.clone(), Change::Delete);
            }
            (ApplicationAction::Detach(_), Some(file)) => {
                let text = application::detached(&file.text, &plan.path)?;
                if text != *file.text {
                    files.changes.insert(plan.path.clone(), Change::Write(text.into_bytes()));
                }
            }
            (ApplicationAction::Pin(pin), existing) => {
                let template = self.application.as_ref().map_err(Clone::clone)?;
                let serving = self.gitops.servings.get(&row.order).and_then(|f| f.serving.as_ref().ok());
                let status = serving.map(|s| &s.status);
                let outcome = drift::pinned(template, pin, &plan.path, existing, status)?;
                if let Some(text) = outcome.write {
                    files.changes.insert(plan.path.clone(), Change::Write(text.into_bytes()));
                }
                files.drift.extend(outcome.edited.map(|generated| (plan.path.clone(), generated)));
            }
        }
        Ok(())
    }
}
