//! promote, withdraw and rollback: a person's wish becomes one commit that edits Servings' intent.

use crate::error::{Failure, FailureKind};
use crate::files::FileChange;
use crate::model::id::{CommitId, OrderRef};
use crate::model::naming::build_serving_path;
use crate::model::plan::ServingState;
use crate::model::serving::{Requested, ServingStatus};
use crate::model::time::Time;
use crate::model::world::GitOps;
use crate::policy::decide::intent::{Intent, Wish, describe_intent, judge_wish};
use crate::policy::resolve::{self, Case};
use crate::render::serving;
use crate::run::message::ORDER_TRAILER;
use crate::run::{Read, Setup, Source, pause_before_retry, problems, read_inputs};
use git_commits::{Identity, Person, Proposal, ProposalBranch, WriteOutcome};
use std::collections::BTreeMap;

/// What became of a wish, for each Order.
#[derive(Debug)]
pub struct Intended {
    /// What each Serving says now.
    pub intents: Vec<(OrderRef, Intent)>,
    /// The commit; `None`: they said so already.
    pub commit: Option<CommitId>,
}

/// How a wish is written.
#[derive(Debug, Clone, Copy)]
pub struct Asking<'a> {
    /// Author and committer of the commit.
    pub identity: &'a Identity,
    /// Whose wish it is, where that is another person than the author.
    pub requester: &'a Person,
    /// `limits.maxTries`: how often a moved branch is read again.
    pub tries: u32,
    /// A branch of its own, for a pull request; none: the branch itself.
    pub propose: Option<&'a str>,
}

/// Edits the intent of `orders` and commits it, all in one commit or not at all.
///
/// # Errors
/// A wish is refused, a file cannot be edited, or the repository cannot be read or written.
pub fn commit_intent(
    setup: &Setup<'_>,
    orders: &[(OrderRef, Wish)],
    asking: &Asking<'_>,
) -> Result<Intended, Failure> {
    for attempt in 1..=asking.tries.max(1) {
        let Read { snapshot, gitops, world, .. } = read_inputs(setup, &mut |_| {})?;
        let cases = resolve::resolve_cases(&world, &gitops, &setup.argocd_namespace);
        let mut judged = Vec::new();
        for (order, wish) in orders {
            let case = cases.iter().find(|c| c.order == *order).ok_or_else(|| make_unknown(order, setup))?;
            judged.push((case, wish, judge_wish(case, wish, &world)?));
        }
        let changes = |at: Time| -> Result<_, Failure> {
            let requested = |wish: &Wish, intent: &Intent| Requested {
                name: asking.requester.to_string(),
                time: at,
                verb: wish.verb().to_owned(),
                preparation_name: match intent {
                    Intent::Ask(name) => Some(name.clone()),
                    Intent::Remove | Intent::Already(_) => None,
                },
            };
            let mut changes = BTreeMap::new();
            for (case, wish, intent) in &judged {
                if let Some(change) = build_change(case, &gitops, &requested(wish, intent), intent, setup)? {
                    changes.insert(build_serving_path(&case.order), change);
                }
            }
            Ok(changes)
        };
        let text = format_message(&judged, asking);
        let proposal = Proposal { message: &text, identity: asking.identity, at: setup.now.unix() };
        let outcome = match asking.propose {
            None => git_commits::write_changes(setup.repository, &snapshot, &changes(setup.now)?, proposal)?,
            Some(branch) => {
                let branch = ProposalBranch { name: branch, about: ORDER_TRAILER };
                let as_of = |seconds| changes(Time::from_unix(seconds));
                git_commits::propose_changes::<Failure>(
                    setup.repository,
                    &snapshot,
                    branch,
                    &as_of,
                    proposal,
                )?
            }
        };
        let done = |commit| {
            let intents = judged.into_iter().map(|(case, _, intent)| (case.order.clone(), intent)).collect();
            Ok(Intended { intents, commit })
        };
        match outcome {
            WriteOutcome::Pushed(commit) => return done(Some(commit)),
            WriteOutcome::Unchanged => return done(None),
            WriteOutcome::Moved => pause_before_retry(attempt),
            WriteOutcome::Refused(words) => return Err(problems::make_refused(setup.repository, &words)),
        }
    }
    Err(problems::make_kept_moving(setup.repository, asking.tries))
}

/// What the commit says: a subject for a log and a pull request, from what to what for each Order, trailers.
fn format_message(judged: &[(&Case, &Wish, Intent)], asking: &Asking<'_>) -> String {
    let changed: Vec<_> =
        judged.iter().filter(|(_, _, intent)| !matches!(intent, Intent::Already(_))).collect();
    let mut trailers = Vec::new();
    let mut lines = Vec::new();
    for (case, wish, intent) in &changed {
        lines.extend(format_lines(case, wish, intent));
        trailers.push((ORDER_TRAILER.to_owned(), case.order.to_string()));
        if let Intent::Ask(name) = intent {
            trailers.push(("Preparation".to_owned(), format!("{}/{name}", case.order.namespace)));
            let digest = case.preparations.get(name).map(|p| p.object.spec.artifact.digest);
            trailers.extend(digest.map(|digest| ("Digest".to_owned(), digest.to_string())));
        }
    }
    trailers.push(("Requested-By".to_owned(), asking.requester.to_string()));
    trailers.extend(asking.identity.collect_co_authors([asking.requester.to_string().as_str()]));
    git_commits::build_message(&format_subject(&changed), &lines, &trailers)
}

fn format_subject(changed: &[&(&Case, &Wish, Intent)]) -> String {
    let verb = match changed.first() {
        Some((_, Wish::Rollback(_), _)) => "roll back",
        Some((_, Wish::Promote(_), _)) => "promote",
        Some((_, Wish::Withdraw, _)) | None => "withdraw",
    };
    match changed {
        [(case, wish, intent)] => match (wish, intent) {
            (Wish::Promote(_) | Wish::Rollback(_), Intent::Ask(name)) => {
                format!("Ask to {verb} {} to {name}{}", case.order, format_place(case))
            }
            (_, Intent::Ask(_) | Intent::Remove | Intent::Already(_)) => {
                format!("Withdraw the waiting promotion of {}{}", case.order, format_place(case))
            }
        },
        [] => "Ask for what is asked for already".to_owned(),
        [first, ..] if changed.iter().all(|(case, _, _)| format_place(case) == format_place(first.0)) => {
            format!("Ask to {verb} {} Orders{}", changed.len(), format_place(first.0))
        }
        many => format!("Ask to {verb} {} Orders", many.len()),
    }
}

fn format_place(case: &Case) -> String {
    case.place.as_ref().map(|place| format!(" in {}", place.name)).unwrap_or_default()
}

/// From what to what, with the digests; and what the Preparation says of itself, which is foreign text.
fn format_lines(case: &Case, wish: &Wish, intent: &Intent) -> Vec<String> {
    let mut lines = vec![describe_intent(&case.order, wish, intent)];
    if let Some(deployed) = &case.deployed {
        let digest = deployed.artifact.digest.format_short();
        lines.push(format!("{} runs {} ({digest})", case.order, deployed.preparation));
    }
    if let Intent::Ask(name) = intent
        && let Some(preparation) = case.preparations.get(name)
    {
        let spec = &preparation.object.spec;
        lines.push(format!("{name} is {}", spec.artifact.oci_ref));
        lines.extend(spec.commit_message.as_ref().map(|said| format!("{name} says: {said}")));
    }
    lines
}

fn make_unknown(order: &OrderRef, setup: &Setup<'_>) -> Failure {
    let sources: Vec<&str> = setup.sources.iter().map(|s: &Source| &*s.name).collect();
    Failure::new(
        FailureKind::SaysNo,
        "no-such-order",
        format!("no Order of this name is in {}", sources.join(", ")),
    )
    .with_object(format!("Order {order}"))
    .with_hint("expedite get orders lists them")
}

fn build_change(
    case: &Case,
    gitops: &GitOps,
    requested: &Requested,
    intent: &Intent,
    setup: &Setup<'_>,
) -> Result<Option<FileChange>, Failure> {
    let name = match intent {
        Intent::Already(_) => return Ok(None),
        Intent::Remove => return Ok(Some(FileChange::Delete)),
        Intent::Ask(name) => name,
    };
    let text = match gitops.servings.get(&case.order) {
        Some(file) => {
            file.serving.as_ref().map_err(Clone::clone)?;
            serving::edit_intent(&file.text, &file.path, Some(name), requested)?
        }
        None => {
            let template = serving::compile_template(gitops.serving_template.as_deref())?;
            let state = ServingState {
                preparation_name: Some(name.clone()),
                created: requested.time,
                status: ServingStatus::default(),
            };
            let environment = case.place.as_ref().map(|p| &p.name);
            serving::create_serving(
                &template,
                &case.order,
                &state,
                environment,
                &setup.argocd_namespace,
                Some(requested),
            )?
        }
    };
    Ok(Some(FileChange::Write(text.into_bytes())))
}
