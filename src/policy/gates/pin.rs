//! What a Serving says is deployed: a claim, as all of its status is (`docs/design/promotion.md#status-is-a-claim`).
//!
//! Where it only says what git's Applications hold already, rendering it changes nothing, and nobody has to prove
//! it. Where it would move an Application or make one, the signed record of that promotion must say the same, no
//! record may be of a later one, and the Kitchen and the Environment must still let it in: else whoever may push could
//! deploy past every gate by writing into a status.

use super::{Context, proof};
use crate::model::evidence::{Facts, RecordAsk};
use crate::model::id::Digest;
use crate::model::serving::ClusterStatus;
use crate::policy::resolve::place::normalize_server;
use crate::policy::resolve::slot::Slot;
use crate::policy::resolve::{Case, PINNED};

/// `clusters[].reason` of a Cluster whose Application is left as it is because the pin is not proven.
pub const PIN_UNPROVEN: &str = "PinUnproven";

/// What the Serving says of an Application that it says was written.
#[must_use]
pub fn find_remembered<'a>(case: &'a Case, slot: &Slot) -> Option<&'a ClusterStatus> {
    let clusters = &case.serving.as_ref()?.status.clusters;
    clusters.iter().find(|c| c.name == slot.cluster.name && c.reason == PINNED)
}

/// Whether git's Application for this Cluster holds what the Serving says is deployed.
#[must_use]
pub fn is_standing(case: &Case, slot: &Slot) -> bool {
    let Some(deployed) = &case.deployed else { return false };
    let Some(Ok(application)) = case.owned.get(&slot.path).map(|file| &file.application) else {
        return false;
    };
    let spec = &application.spec;
    let source = spec.source.as_ref();
    source.is_some_and(|s| {
        s.repo_url == deployed.artifact.repository.format_url()
            && s.target_revision.as_deref() == Some(deployed.artifact.digest.to_string().as_str())
    }) && spec.destination.namespace.as_deref() == Some(deployed.target_namespace.as_str())
        && spec.destination.server.as_deref().map(normalize_server)
            == Some(normalize_server(&slot.cluster.server))
}

/// Whether the Serving says that an Application was written which git does not have: removed by hand, or never made.
#[must_use]
pub fn is_gone(case: &Case, slot: &Slot, context: &Context) -> bool {
    is_asked(context) && find_remembered(case, slot).is_some() && !case.owned.contains_key(&slot.path)
}

fn is_asked(context: &Context) -> bool {
    context.records && !context.assumed
}

/// The record that has to be read: none while git holds what the Serving says.
#[must_use]
pub fn find_record_ask(case: &Case, context: &Context) -> Option<RecordAsk> {
    let moves = is_asked(context)
        && case.deployed.is_some()
        && case.is_at_home()
        && case.slots.iter().any(|slot| !is_standing(case, slot));
    let newest = case.serving.as_ref()?.status.history.first().filter(|_| moves)?;
    Some(RecordAsk { order: case.order.clone(), bundle: newest.promotion_record?, artifact: newest.digest })
}

/// What is known of one Cluster's pin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Word {
    /// It may be rendered: git holds it already, or nobody keeps records.
    Good,
    /// The promotion is proven, and git's Application holds something else or is gone. What it was rendered from.
    Proven(Option<Digest>),
    /// The promotion is proven, and went to other Clusters: this one joins.
    Joins,
    /// The promotion is proven, and this Cluster was at another API server then.
    Elsewhere(String),
    /// It is not proven.
    Unproven(String),
}

/// Whether what the Serving says is deployed may be rendered for this Cluster.
#[must_use]
pub fn judge_pin(case: &Case, slot: &Slot, facts: &Facts, context: &Context) -> Word {
    if !is_asked(context) || is_standing(case, slot) {
        return Word::Good;
    }
    let promoted = match proof::prove_deployed(case, facts) {
        Ok(promoted) => promoted,
        Err(why) => return Word::Unproven(why),
    };
    let named = promoted.clusters.iter().find(|c| c.name == slot.cluster.name);
    match named {
        Some(cluster) => match &cluster.server {
            Some(server) if normalize_server(server) != normalize_server(&slot.cluster.server) => {
                Word::Elsewhere(server.clone())
            }
            Some(_) | None => Word::Proven(promoted.base_digest),
        },
        // It joined later; its file is there, and goes back to what is proven.
        None if case.owned.contains_key(&slot.path) => Word::Proven(promoted.base_digest),
        None => Word::Joins,
    }
}
