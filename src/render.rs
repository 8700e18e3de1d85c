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

use crate::error::{At, Failure, FailureKind};
use crate::files::FileChange;
use crate::model::id::OrderRef;
use crate::model::naming;
use crate::model::plan::{ApplicationAction, ApplicationPlan, Plan, PlanRow, ServingPlan};
use crate::model::world::GitOps;
use std::collections::BTreeMap;
use template::Template;

/// What a plan means for the repository's files.
#[derive(Debug, Default)]
pub struct RenderedFiles {
    /// By path; nothing for a file that stays as it is.
    pub changes: BTreeMap<String, FileChange>,
    /// Files of ours that someone edited or removed by hand and that are restored, sorted by path.
    pub drift: Vec<HandEdit>,
    /// Orders that contribute nothing, and why, sorted by Order.
    pub failures: Vec<(OrderRef, Failure)>,
}

impl RenderedFiles {
    /// Whether this Order contributes nothing.
    #[must_use]
    pub fn has_failed(&self, order: &OrderRef) -> bool {
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
pub fn render_files(plan: &Plan, gitops: &GitOps, argocd_namespace: &str) -> RenderedFiles {
    let desk = Desk {
        gitops,
        argocd_namespace,
        application: application::compile_template(gitops.application_template.as_deref()),
        serving: serving::compile_template(gitops.serving_template.as_deref()),
    };
    let threads =
        if plan.rows.len() < MANY { 1 } else { std::thread::available_parallelism().map_or(1, usize::from) };
    let size = plan.rows.len().div_ceil(threads).max(1);
    let chunks: Vec<&[PlanRow]> = plan.rows.chunks(size).collect();
    let results: Vec<(&PlanRow, Result<OrderFiles, Failure>)> = std::thread::scope(|scope| {
        let workers: Vec<_> = chunks
            .iter()
            .map(|rows| {
                scope.spawn(|| rows.iter().map(|row| (row, desk.render_row(row))).collect::<Vec<_>>())
            })
            .collect();
        workers
            .into_iter()
            .zip(&chunks)
            .flat_map(|(worker, rows)| {
                worker.join().unwrap_or_else(|_| {
                    let broke = || {
                        Failure::new(
                            FailureKind::Internal,
                            "render",
                            "rendering this part of the plan broke off",
                        )
                    };
                    rows.iter().map(|row| (row, Err(broke()))).collect()
                })
            })
            .collect()
    });
    let mut rendered = RenderedFiles::default();
    for (row, result) in results {
        match result.and_then(|files| files.check_apart(&rendered.changes, row)) {
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
pub fn collect_losses(plan: &Plan, gitops: &GitOps) -> BTreeMap<String, String> {
    let taken = plan.rows.iter().flat_map(|row| &row.applications).filter_map(|application| {
        let ApplicationAction::Pin(pin) = &application.action else { return None };
        let file = gitops.applications.get(&application.path)?;
        (file.owner.as_ref() != Some(&pin.order)).then_some((&application.path, pin, file))
    });
    let mut template = None;
    let mut losses = BTreeMap::new();
    for (path, pin, file) in taken {
        let template = template
            .get_or_insert_with(|| application::compile_template(gitops.application_template.as_deref()));
        // A template that fails is said by `files`, for every Order that it fails.
        if let Ok(template) = template
            && let Ok(Err(lost)) = application::take_over_application(template, &file.text, path, pin)
        {
            losses.insert(path.clone(), application::describe_losses(&lost));
        }
    }
    losses
}

/// One Order's files.
#[derive(Debug, Default)]
struct OrderFiles {
    changes: BTreeMap<String, FileChange>,
    drift: Vec<(String, String)>,
}

impl OrderFiles {
    /// # Errors
    /// Another Order changes one of the same files.
    fn check_apart(self, others: &BTreeMap<String, FileChange>, row: &PlanRow) -> Result<Self, Failure> {
        match self.changes.keys().find(|path| others.contains_key(*path)) {
            None => Ok(self),
            Some(path) => {
                Err(Failure::new(FailureKind::Internal, "same-file", "two Orders would change this file")
                    .with_place(At::from_file(path.clone()))
                    .with_object(format!("Order {}", row.order)))
            }
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
    fn render_row(&self, row: &PlanRow) -> Result<OrderFiles, Failure> {
        let mut files = OrderFiles::default();
        for plan in &row.applications {
            self.render_application(row, plan, &mut files).map_err(|f| {
                if f.what.is_none() { f.with_object(format!("Order {}", row.order)) } else { f }
            })?;
        }
        self.render_serving(row, &mut files).map_err(|f| {
            if f.what.is_none() { f.with_object(format!("Serving {}", row.order)) } else { f }
        })?;
        Ok(files)
    }

    fn render_serving(&self, row: &PlanRow, files: &mut OrderFiles) -> Result<(), Failure> {
        let existing = self.gitops.servings.get(&row.order);
        match (&row.serving, existing) {
            (ServingPlan::Keep, _) | (ServingPlan::Remove, None) => {}
            (ServingPlan::Remove, Some(file)) => {
                files.changes.insert(file.path.clone(), FileChange::Delete);
            }
            (ServingPlan::Write(state), Some(file)) => {
                let text = serving::update_serving(file, state)?;
                if text != *file.text {
                    files.changes.insert(file.path.clone(), FileChange::Write(text.into_bytes()));
                }
            }
            (ServingPlan::Write(state), None) => {
                let template = self.serving.as_ref().map_err(Clone::clone)?;
                let environment = row.environment.as_ref();
                let text = serving::create_serving(
                    template,
                    &row.order,
                    state,
                    environment,
                    self.argocd_namespace,
                    None,
                )?;
                files
                    .changes
                    .insert(naming::build_serving_path(&row.order), FileChange::Write(text.into_bytes()));
            }
        }
        Ok(())
    }

    fn render_application(
        &self,
        row: &PlanRow,
        plan: &ApplicationPlan,
        files: &mut OrderFiles,
    ) -> Result<(), Failure> {
        let existing = self.gitops.applications.get(&plan.path);
        let ours = existing.filter(|file| file.owner.as_ref() == Some(&row.order));
        match (&plan.action, existing) {
            (ApplicationAction::Hold { .. }, _)
            | (ApplicationAction::Remove(_) | ApplicationAction::Detach(_), None) => {}
            (ApplicationAction::Remove(_) | ApplicationAction::Detach(_), Some(_)) if ours.is_none() => {
                return Err(Failure::new_input(
                    "foreign-application",
                    "its labels do not name this Order; it is left alone",
                )
                .with_place(At::from_file(plan.path.clone())));
            }
            (ApplicationAction::Remove(_), Some(_)) => {
                files.changes.insert(plan.path.clone(), FileChange::Delete);
            }
            (ApplicationAction::Detach(_), Some(file)) => {
                let text = application::detach_application(&file.text, &plan.path)?;
                if text != *file.text {
                    files.changes.insert(plan.path.clone(), FileChange::Write(text.into_bytes()));
                }
            }
            (ApplicationAction::Pin(pin), existing) => {
                let template = self.application.as_ref().map_err(Clone::clone)?;
                let serving = self.gitops.servings.get(&row.order).and_then(|f| f.serving.as_ref().ok());
                let status = serving.map(|s| &s.status);
                let outcome = drift::render_pinned(template, pin, &plan.path, existing, status)?;
                if let Some(text) = outcome.write {
                    files.changes.insert(plan.path.clone(), FileChange::Write(text.into_bytes()));
                }
                files.drift.extend(outcome.edited.map(|generated| (plan.path.clone(), generated)));
            }
        }
        Ok(())
    }
}
