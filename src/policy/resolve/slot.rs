//! One Application of an Order per Cluster, and whether Expedite may write it
//! (`docs/design/promotion.md#opt-in`).

use super::Case;
use super::place::PlaceCluster;
use crate::model::application::Application;
use crate::model::id::{ApplicationName, OrderRef};
use crate::model::naming::{
    ALLOWED_ORDER, LABEL_SERVING, LABEL_SERVING_NAMESPACE, build_application_name, build_application_path,
};
use crate::model::world::{ApplicationFile, GitOps, World};
use std::collections::BTreeMap;
use std::sync::Arc;

/// An Order's Application on one Cluster.
#[derive(Debug, Clone)]
pub struct Slot {
    pub cluster: PlaceCluster,
    pub name: ApplicationName,
    pub path: String,
    /// Whether we may write it.
    pub consent: Consent,
    /// What Argo CD reports about it, if it was asked.
    pub observed: Option<Arc<Application>>,
}

/// Whether the Application with the name that Expedite generates may be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Consent {
    Ours,
    /// No Application has that name; `observed`: Argo CD's own list was read, too.
    Free {
        /// Whether Applications were observed at all.
        observed: bool,
    },
    /// It belongs to someone else, and is annotated with exactly this Order.
    OptedIn,
    /// It belongs to someone else: who, what was found, and what was expected.
    Refused(String),
}

/// The repository's Application files by the name of what is in them, looked up once for all Orders.
pub(super) type FilesByName<'a> = BTreeMap<&'a str, Vec<(&'a str, &'a ApplicationFile)>>;

/// Every Application file that reads as one, by the Application's name.
pub(super) fn collect_named_files(gitops: &GitOps) -> FilesByName<'_> {
    let mut all: FilesByName<'_> = BTreeMap::new();
    for (path, file) in &gitops.applications {
        if let Ok(application) = &file.application {
            all.entry(application.metadata.name.as_str()).or_default().push((path.as_str(), file));
        }
    }
    all
}

/// Finds the Application of each Cluster, in git and among the observed ones.
pub(super) fn fill_slots(
    case: &mut Case,
    world: &World,
    gitops: &GitOps,
    in_git: &FilesByName<'_>,
    argocd_namespace: &str,
) {
    let Some(place) = case.place.clone() else { return };
    for cluster in &place.clusters {
        let name = match build_application_name(&case.order, &cluster.name) {
            Ok(name) => name,
            Err(why) => {
                case.errors.push(
                    crate::error::Failure::new_input("bad-name", why.to_string())
                        .with_object(case.format_order()),
                );
                continue;
            }
        };
        let path = build_application_path(&case.order, &name);
        let observed = world
            .applications
            .as_ref()
            .and_then(|all| all.get(&(argocd_namespace.to_owned(), name.to_string())))
            .map(|loaded| loaded.object.clone());
        let asked = world.applications.is_some();
        let elsewhere = in_git.get(name.as_str()).and_then(|files| files.first()).copied();
        let consent = judge_consent(case, gitops, elsewhere, (&path, &name), observed.as_deref(), asked);
        case.slots.push(Slot { cluster: cluster.clone(), name, path, consent, observed });
    }
}

fn judge_consent(
    case: &Case,
    gitops: &GitOps,
    elsewhere: Option<(&str, &ApplicationFile)>,
    (path, name): (&str, &ApplicationName),
    observed: Option<&Application>,
    asked: bool,
) -> Consent {
    let order = &case.order;
    if case.owned.contains_key(path) {
        return Consent::Ours;
    }
    if let Some(file) = gitops.applications.get(path) {
        return match (judge_committed(file, path, name, order), gitops.losses.get(path)) {
            (Consent::OptedIn, Some(lost)) => Consent::Refused(format!("{path} is opted in, but {lost}")),
            (consent, _) => consent,
        };
    }
    if let Some((other, file)) = elsewhere {
        let whose = file.owner.as_ref().map_or("no Order".to_owned(), |o| format!("Order {o}"));
        return Consent::Refused(format!(
            "{other} already has an Application named {name} (it belongs to {whose}); wanted: none outside {path}; move that file there"
        ));
    }
    match observed {
        None => Consent::Free { observed: asked },
        Some(application) => judge_live(application, name, order),
    }
}

fn judge_committed(file: &ApplicationFile, path: &str, name: &ApplicationName, order: &OrderRef) -> Consent {
    match (&file.owner, &file.application) {
        (Some(owner), _) => {
            Consent::Refused(format!("{path} belongs to Order {owner}; wanted: Order {order}"))
        }
        (None, Err(failure)) => Consent::Refused(format!(
            "{path} is not ours and cannot be read as one Application: {}",
            failure.cause
        )),
        (None, Ok(application)) => judge_annotation(application, name, order, path),
    }
}

fn judge_live(application: &Application, name: &ApplicationName, order: &OrderRef) -> Consent {
    let label = |key: &str| application.metadata.labels.get(key).map(String::as_str);
    if label(LABEL_SERVING) == Some(order.name.as_str())
        && label(LABEL_SERVING_NAMESPACE) == Some(order.namespace.as_str())
    {
        return Consent::Ours;
    }
    judge_annotation(application, name, order, "the cluster")
}

/// Only the exact value of the annotation allows it; a similar one does not.
fn judge_annotation(
    application: &Application,
    name: &ApplicationName,
    order: &OrderRef,
    place: &str,
) -> Consent {
    let wanted = order.to_string();
    match application.metadata.annotations.get(ALLOWED_ORDER) {
        Some(found) if *found == wanted => Consent::OptedIn,
        found => Consent::Refused(format!(
            "Application {name} in {place} was not created by us; annotation {ALLOWED_ORDER}: found {}, wanted {wanted:?}",
            found.map_or("none".to_owned(), |f| format!("{f:?}")),
        )),
    }
}
