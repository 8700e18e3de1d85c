//! What a template sees. Every variable is always there, null where it has no value, so that a misspelt
//! one is an error and `{% if … %}` is not.
//!
//! | variable | members |
//! |---|---|
//! | `order` | `namespace`, `name` |
//! | `preparation` | `name`, `digest`, `repository`, `ociRef`, `targetNamespace` |
//! | `serving` | `namespace`, `name`, `creationTimestamp`, `preparationName` (servings only) |
//! | `environment` | `name`, `project`, `onDelete` |
//! | `cluster` | `name`, `server` (applications only) |
//! | `application` | `name`, `namespace`, `digest`, `repoURL` (applications only) |
//! | `settings` | `argocdNamespace` |

use crate::model::environment::OnDelete;
use crate::model::id::{Artifact, EnvironmentName, Namespace, OrderRef};
use crate::model::plan::{Pin, ServingState};
use minijinja::{Value, context};

/// What `templates/application.yaml` sees: pinned values only.
#[must_use]
pub fn of_application(pin: &Pin) -> Value {
    let artifact = &pin.artifact;
    let (digest, repo_url) = (artifact.digest.to_string(), artifact.repository.url());
    context! {
        order => order(&pin.order),
        preparation => preparation(Some(pin.preparation.as_str()), Some(artifact), Some(&pin.target_namespace)),
        serving => context! {
            namespace => pin.order.namespace.as_str(),
            name => pin.order.name.as_str(),
            creationTimestamp => (),
            preparationName => (),
        },
        environment => context! {
            name => pin.environment.as_str(),
            project => pin.project.as_str(),
            onDelete => match pin.on_delete { OnDelete::Cascade => "Cascade", OnDelete::Orphan => "Orphan" },
        },
        cluster => context! { name => pin.cluster.as_str(), server => pin.server.as_str() },
        application => context! {
            name => pin.name.as_str(),
            namespace => pin.argocd_namespace.as_str(),
            digest => digest,
            repoURL => repo_url,
        },
        settings => context! { argocdNamespace => pin.argocd_namespace.as_str() },
    }
}

/// What `templates/serving.yaml` sees: a Serving is written from it once.
#[must_use]
pub fn of_serving(
    order_ref: &OrderRef,
    state: &ServingState,
    environment: Option<&EnvironmentName>,
    argocd_namespace: &str,
) -> Value {
    let name = state.preparation_name.as_ref().map(|n| n.as_str());
    context! {
        order => order(order_ref),
        preparation => preparation(name, None, None),
        serving => context! {
            namespace => order_ref.namespace.as_str(),
            name => order_ref.name.as_str(),
            creationTimestamp => state.created.to_string(),
            // Written as "" while there is none: asks for nothing, under Manual too.
            preparationName => name.unwrap_or_default(),
        },
        environment => context! { name => environment.map(EnvironmentName::as_str), project => (), onDelete => () },
        cluster => context! { name => (), server => () },
        application => context! { name => (), namespace => (), digest => (), repoURL => () },
        settings => context! { argocdNamespace => argocd_namespace },
    }
}

fn order(order: &OrderRef) -> Value {
    context! { namespace => order.namespace.as_str(), name => order.name.as_str() }
}

fn preparation(name: Option<&str>, artifact: Option<&Artifact>, target: Option<&Namespace>) -> Value {
    context! {
        name => name,
        digest => artifact.map(|a| a.digest.to_string()),
        repository => artifact.map(|a| a.repository.to_string()),
        ociRef => artifact.map(Artifact::oci_ref),
        targetNamespace => target.map(Namespace::as_str),
    }
}
