//! promote, withdraw and rollback: a person's wish becomes one commit that edits Servings' intent.

use super::{Read, Setup, Source, pause, problems, read};
use crate::commit::{self, Identity, Outcome, Proposal};
use crate::decide::intent::{Intent, Wish, intent, told};
use crate::error::{Failure, Kind};
use crate::files::Change;
use crate::model::id::{CommitId, OrderRef};
use crate::model::naming::serving_path;
use crate::model::plan::ServingState;
use crate::model::serving::{Requested, ServingStatus};
use crate::model::world::GitOps;
use crate::render::serving;
use crate::resolve::{self, Case};
use std::collections::BTreeMap;

/// What became of a wish, for each Order.
#[derive(Debug)]
pub struct Intended {
    /// What each Serving says now.
    pub intents: Vec<(OrderRef, Intent)>,
    /// The commit; `None`: they said so already.
    pub commit: Option<CommitId>,
}

/// Edits the intent of `orders` and commits it, all in one commit or not at all.
///
/// # Errors
/// A wish is refused, a file cannot be edited, or the repository cannot be read or written.
pub fn intend(
    setup: &Setup<'_>,
    orders: &[(OrderRef, Wish)],
    identity: &Identity,
    tries: u32,
) -> Result<Intended, Failure> {
    for attempt in 1..=tries.max(1) {
        let Read { snapshot, gitops, world } = read(setup, &mut |_| {})?;
        let cases = resolve::cases(&world, &gitops, &setup.argocd_namespace);
        let mut intents = Vec::new();
        let mut changes = BTreeMap::new();
        let mut lines = Vec::new();
        for (order, wish) in orders {
            let case = cases.iter().find(|c| c.order == *order).ok_or_else(|| unknown(order, setup))?;
            let intent = intent(case, wish, &world)?;
            if let Some(change) = change(case, &gitops, wish, &intent, identity, setup)? {
                changes.insert(serving_path(order), change);
                lines.push(told(order, wish, &intent));
            }
            intents.push((order.clone(), intent));
        }
        let subject = match &lines[..] {
            [one] => one.clone(),
            many => format!("{} of {} Orders", orders.first().map_or("", |(_, w)| w.verb()), many.len()),
        };
        let requested = ("Requested-By".to_owned(), identity.author.to_string());
        let text = commit::message(&subject, &lines, &[requested]);
        let proposal = Proposal { message: &text, identity, at: setup.now };
        match commit::write(setup.repository, &snapshot, &changes, proposal)? {
            Outcome::Pushed(commit) => return Ok(Intended { intents, commit: Some(commit) }),
            Outcome::Unchanged => return Ok(Intended { intents, commit: None }),
            Outcome::Moved => pause(attempt),
            Outcome::Refused(words) => return Err(problems::refused(setup.repository, &words)),
        }
    }
    Err(problems::kept_moving(setup.repository, tries))
}

fn unknown(order: &OrderRef, setup: &Setup<'_>) -> Failure {
    let sources: Vec<&str> = setup.sources.iter().map(|s: &Source| &*s.name).collect();
    Failure::new(Kind::SaysNo, "no-such-order", format!("no Order of this name is in {}", sources.join(", ")))
        .of(format!("Order {order}"))
        .hint("expedite get orders lists them")
}

fn change(
    case: &Case,
    gitops: &GitOps,
    wish: &Wish,
    intent: &Intent,
    identity: &Identity,
    setup: &Setup<'_>,
) -> Result<Option<Change>, Failure> {
    let name = match intent {
        Intent::Already(_) => return Ok(None),
        Intent::Remove => return Ok(Some(Change::Delete)),
        Intent::Ask(name) => name,
    };
    let requested =
        Requested { name: identity.author.to_string(), time: setup.now, verb: wish.verb().to_owned() };
    let text = match gitops.servings.get(&case.order) {
        Some(file) => {
            file.serving.as_ref().map_err(Clone::clone)?;
            serving::edit_intent(&file.text, &file.path, Some(name), &requested)?
        }
        None => {
            let template = serving::template(gitops.serving_template.as_deref())?;
            let state = ServingState {
                preparation_name: Some(name.clone()),
                created: setup.now,
                status: ServingStatus::default(),
            };
            let environment = case.place.as_ref().map(|p| &p.name);
            serving::create(
                &template,
                &case.order,
                &state,
                environment,
                &setup.argocd_namespace,
                Some(&requested),
            )?
        }
    };
    Ok(Some(Change::Write(text.into_bytes())))
}
