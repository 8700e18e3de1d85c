//! The variables of a template. Each is always defined, as null if it has no value, so that a misspelt name
//! is an error and `{% if … %}` is not.
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

use crate::error::Failure;
use crate::model::environment::OnDelete;
use crate::model::id::{Artifact, EnvironmentName, Namespace, OrderRef};
use crate::model::plan::{Pin, ServingState};
use crate::render::template::UNDEFINED;
use kube_yaml::spelling;
use minijinja::{Value, context};

/// The variables and their members.
pub const VARIABLES: [(&str, &[&str]); 7] = [
    ("order", &["namespace", "name"]),
    ("preparation", &["name", "digest", "repository", "ociRef", "targetNamespace"]),
    ("serving", &["namespace", "name", "creationTimestamp", "preparationName"]),
    ("environment", &["name", "project", "onDelete"]),
    ("cluster", &["name", "server"]),
    ("application", &["name", "namespace", "digest", "repoURL"]),
    ("settings", &["argocdNamespace"]),
];

/// The failure for a variable that does not exist, with the nearest name, or all names.
#[must_use]
pub fn hint_variables(failure: Failure) -> Failure {
    let Some(name) = failure.field.clone().filter(|_| failure.code == UNDEFINED) else { return failure };
    let (variable, member) = name.split_once('.').unwrap_or((&name, ""));
    let roots: Vec<&str> = VARIABLES.iter().map(|(root, _)| *root).collect();
    let Some((_, members)) = VARIABLES.iter().find(|(root, _)| *root == variable) else {
        return match spelling::find_nearest(variable, &roots) {
            Some(near) => failure.with_hint(format!("did you mean {near}?")),
            None => failure.with_hint(format!("a template sees {}", roots.join(", "))),
        };
    };
    match spelling::find_nearest(member, members) {
        Some(near) => failure.with_hint(format!("did you mean {variable}.{near}?")),
        None => failure.with_hint(format!("{variable} has {}", members.join(", "))),
    }
}

/// The variables of `templates/application.yaml`: pinned values only.
#[must_use]
pub fn build_application_context(pin: &Pin) -> Value {
    let artifact = &pin.artifact;
    let (digest, repo_url) = (artifact.digest.to_string(), artifact.repository.format_url());
    context! {
        order => build_order(&pin.order),
        preparation => build_preparation(Some(pin.preparation.as_str()), Some(artifact), Some(&pin.target_namespace)),
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

/// The variables of `templates/serving.yaml`; a Serving is written from it once.
#[must_use]
pub fn build_serving_context(
    order_ref: &OrderRef,
    state: &ServingState,
    environment: Option<&EnvironmentName>,
    argocd_namespace: &str,
) -> Value {
    let name = state.preparation_name.as_ref().map(|n| n.as_str());
    context! {
        order => build_order(order_ref),
        preparation => build_preparation(name, None, None),
        serving => context! {
            namespace => order_ref.namespace.as_str(),
            name => order_ref.name.as_str(),
            creationTimestamp => state.created.to_string(),
            // Written as "" while there is none, which requests nothing, under Manual, too.
            preparationName => name.unwrap_or_default(),
        },
        environment => context! { name => environment.map(EnvironmentName::as_str), project => (), onDelete => () },
        cluster => context! { name => (), server => () },
        application => context! { name => (), namespace => (), digest => (), repoURL => () },
        settings => context! { argocdNamespace => argocd_namespace },
    }
}

fn build_order(order: &OrderRef) -> Value {
    context! { namespace => order.namespace.as_str(), name => order.name.as_str() }
}

fn build_preparation(name: Option<&str>, artifact: Option<&Artifact>, target: Option<&Namespace>) -> Value {
    context! {
        name => name,
        digest => artifact.map(|a| a.digest.to_string()),
        repository => artifact.map(|a| a.repository.to_string()),
        ociRef => artifact.map(Artifact::format_oci_ref),
        targetNamespace => target.map(Namespace::as_str),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;
    use crate::model::id::OrderName;
    use crate::model::serving::ServingStatus;
    use crate::model::time::Time;

    #[test]
    fn the_documented_variables_are_there() {
        let order =
            OrderRef { namespace: Namespace::parse("shop").unwrap(), name: OrderName::parse("a").unwrap() };
        let state = ServingState {
            preparation_name: None,
            created: Time::from_unix(0),
            status: ServingStatus::default(),
        };
        let seen = build_serving_context(&order, &state, None, "argocd");
        let documented: Vec<String> = VARIABLES
            .iter()
            .flat_map(|(root, members)| members.iter().map(move |m| format!("{root}.{m}")))
            .collect();
        let mut found: Vec<String> = Vec::new();
        for root in seen.try_iter().unwrap() {
            for member in seen.get_item(&root).unwrap().try_iter().unwrap() {
                found.push(format!("{root}.{member}"));
            }
        }
        assert_eq!(found, documented);
        let text = include_str!("context.rs");
        for (root, members) in VARIABLES {
            let list = members.iter().map(|m| format!("`{m}`")).collect::<Vec<_>>().join(", ");
            assert!(
                text.contains(&format!("//! | `{root}` | {list}")),
                "the table above names {root}'s members"
            );
        }
    }

    #[test]
    fn a_misspelt_variable_is_shown_the_nearest() {
        let hint =
            |name: &str| hint_variables(Failure::new_input(UNDEFINED, "x").with_field(name)).hints.join("");
        assert_eq!(hint("order.nmae"), "did you mean order.name?");
        assert_eq!(hint("oder.name"), "did you mean order?");
        assert_eq!(hint("cluster.zone"), "cluster has name, server");
        assert!(hint("x").starts_with("a template sees order, "));
    }
}
