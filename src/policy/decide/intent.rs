//! Requests of a person: promote, withdraw, rollback. Pure: decides whether a request is refused, and what
//! the Serving contains afterwards. A refusal says what was found, what was expected and the next step.

use crate::error::{Failure, FailureKind};
use crate::model::id::OrderRef;
use crate::model::id::{OrderName, PreparationName};
use crate::model::order::Mode;
use crate::model::preparation::Preparation;
use crate::model::reason::Ended;
use crate::model::world::{Loaded, World};
use crate::policy::gates::ready;
use crate::policy::resolve::candidate::build_candidate;
use crate::policy::resolve::{Case, Presence, check_preparation};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wish {
    Promote(PreparationName),
    /// Withdraw a waiting promotion.
    Withdraw,
    /// Go back to this Preparation, or to the newest other one that was healthy here.
    Rollback(Option<PreparationName>),
}

impl Wish {
    #[must_use]
    pub fn verb(&self) -> &'static str {
        match self {
            Self::Promote(_) => "promote",
            Self::Withdraw => "withdraw",
            Self::Rollback(_) => "rollback",
        }
    }
}

/// What the Serving contains afterwards.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Intent {
    /// `spec.preparationName` is this.
    Ask(PreparationName),
    /// The Serving is removed: nothing is deployed, and the request is withdrawn.
    Remove,
    /// The Serving already contains it.
    Already(Option<PreparationName>),
}

fn make_refusal(case: &Case, code: &'static str, cause: String, hint: impl Into<String>) -> Failure {
    Failure::new(FailureKind::SaysNo, code, cause).with_object(case.format_order()).with_hint(hint)
}

/// Decides whether a request is accepted.
///
/// # Errors
/// [`FailureKind::SaysNo`]: it is refused; says what was found, what was expected, and the next step.
pub fn judge_wish(case: &Case, wish: &Wish, world: &World) -> Result<Intent, Failure> {
    if case.presence != Presence::Present {
        return Err(make_refusal(
            case,
            "no-such-order",
            "no Order of this name was read".into(),
            "expedite get orders lists them; -n NAMESPACE or <namespace>/<name> names the namespace",
        ));
    }
    let deployed = case.deployed.as_ref().filter(|_| case.is_at_home()).map(|d| &d.preparation);
    match wish {
        Wish::Withdraw => Ok(decide_withdrawal(case)),
        Wish::Promote(name) => {
            check_manual(case, wish, name)?;
            if deployed == Some(name) {
                return Ok(decide_ask(case, name));
            }
            check_promotable(case, name, world)?;
            Ok(decide_ask(case, name))
        }
        Wish::Rollback(name) => {
            let name = match name {
                Some(name) => name.clone(),
                None => find_last_healthy(case)?,
            };
            check_manual(case, wish, &name)?;
            check_promotable(case, &name, world)?;
            Ok(decide_ask(case, &name))
        }
    }
}

fn decide_ask(case: &Case, name: &PreparationName) -> Intent {
    let spec = case.serving.as_ref().map(|s| &s.spec);
    // A Serving that was written by hand exists before the first request.
    let by_hand = spec.is_some_and(|s| s.requested.as_ref().is_some_and(|r| !r.has_asked_for(name)));
    match spec.and_then(|s| s.preparation_name.as_ref()) {
        Some(before) if before == name && !by_hand => Intent::Already(Some(name.clone())),
        Some(_) | None => Intent::Ask(name.clone()),
    }
}

/// Resets the request to what is deployed; if nothing is deployed, the Serving is removed.
fn decide_withdrawal(case: &Case) -> Intent {
    match (&case.serving, &case.deployed) {
        (None, _) => Intent::Already(None),
        (Some(_), Some(deployed)) => decide_ask(case, &deployed.preparation),
        (Some(_), None) => match case.mode {
            Mode::Manual => Intent::Remove,
            Mode::Automatic => Intent::Already(None),
        },
    }
}

fn check_manual(case: &Case, wish: &Wish, name: &PreparationName) -> Result<(), Failure> {
    match case.mode {
        Mode::Manual => Ok(()),
        Mode::Automatic => Err(make_refusal(
            case,
            "automatic",
            format!(
                "found promotion.mode Automatic, wanted Manual: {} of {name} would be undone by the next Preparation",
                wish.verb()
            ),
            "set spec.promotion.mode: Manual in the Order (that alone changes nothing), then ask again",
        )),
    }
}

fn check_promotable(case: &Case, name: &PreparationName, world: &World) -> Result<(), Failure> {
    let Some(loaded) = case.preparations.get(name) else {
        let elsewhere = world.preparations.get(&(case.order.namespace.clone(), name.clone()));
        return Err(match elsewhere {
            Some(other) => {
                let owner: &OrderName = &other.object.spec.order_name;
                make_refusal(
                    case,
                    "foreign-preparation",
                    format!(
                        "found Preparation {name} of Order {owner}, wanted one of Order {}",
                        case.order.name
                    ),
                    format!("expedite promote {}/{owner} {name} promotes it there", case.order.namespace),
                )
            }
            None => make_refusal(
                case,
                "unknown-preparation",
                format!("found no Preparation {name} in namespace {}", case.order.namespace),
                describe_known(case),
            ),
        });
    };
    if let Err(why) = check_preparation(loaded) {
        return Err(make_refusal(
            case,
            "not-ready",
            format!("found Preparation {name} not Ready ({why}), wanted a Ready one"),
            "wait until its controller says Ready, or promote another one",
        ));
    }
    if !loaded.object.spec.artifact.signed {
        return Err(make_refusal(
            case,
            "not-signed",
            format!("found artifact.signed false or absent in Preparation {name}, wanted true"),
            "let the renderer sign its artifacts; an unsigned one is never promoted",
        ));
    }
    let candidate = build_candidate(loaded, &case.order.namespace)?;
    let kitchen = case
        .kitchen
        .as_ref()
        .map(|k| ready::collect_kitchen_faults(&candidate, case.place.as_deref(), &k.spec));
    if let Some(fault) = kitchen.iter().flatten().next() {
        return Err(make_refusal(
            case,
            "rejected",
            format!("Preparation {name}: {fault}"),
            "promote another one, or have the Kitchen's entry reviewed",
        ));
    }
    Ok(())
}

fn describe_known(case: &Case) -> String {
    let mut all: Vec<(&PreparationName, &Loaded<Preparation>)> = case.preparations.iter().collect();
    all.sort_by_key(|(_, l)| std::cmp::Reverse(l.object.metadata.creation_timestamp));
    let names: Vec<&str> = all.iter().take(5).map(|(n, _)| n.as_str()).collect();
    if names.is_empty() {
        format!("Order {} has no Preparation yet", case.order)
    } else {
        format!("Preparations of Order {}, newest first: {}", case.order, names.join(", "))
    }
}

/// The newest entry of another digest that was healthy in this Environment and did not end Degraded.
fn find_last_healthy(case: &Case) -> Result<PreparationName, Failure> {
    let running = case.deployed.as_ref().map(|d| d.artifact.digest);
    let here = case.place.as_ref().map(|p| &p.name);
    let history = case.serving.iter().flat_map(|s| &s.status.history);
    history
        .into_iter()
        .filter(|e| Some(e.digest) != running)
        .filter(|e| e.environment.is_none() || e.environment.as_ref() == here)
        .find(|e| e.first_healthy_time.is_some() && e.ended_reason != Some(Ended::Degraded))
        .map(|e| e.preparation_name.clone())
        .ok_or_else(|| {
            make_refusal(
                case,
                "nothing-healthy",
                "found no earlier promotion that was observed healthy in this Environment".into(),
                format!(
                    "name one: expedite rollback {} PREPARATION; expedite get history {} lists what ran",
                    case.order, case.order
                ),
            )
        })
}

/// Says in a message what a request did.
#[must_use]
pub fn describe_intent(order: &OrderRef, wish: &Wish, intent: &Intent) -> String {
    match intent {
        Intent::Ask(name) => match wish {
            Wish::Promote(_) => format!("{order} asks for {name}"),
            Wish::Rollback(_) => format!("{order} asks for {name} again"),
            Wish::Withdraw => format!("{order} keeps {name}; the waiting promotion is withdrawn"),
        },
        Intent::Remove => format!("{order} asks for nothing; the waiting promotion is withdrawn"),
        Intent::Already(Some(name)) => format!("{order} asks for {name} already"),
        Intent::Already(None) => format!("{order} asks for nothing already"),
    }
}
