//! Pins, plans and repositories for the tests of rendering.

use expedite::model::environment::OnDelete;
use expedite::model::id::{
    Artifact, ClusterName, Digest, EnvironmentName, Namespace, OciRepository, OrderRef, PreparationName,
};
use expedite::model::naming::{build_application_name, build_application_path};
use expedite::model::order::Mode;
use expedite::model::plan::{ApplicationAction, ApplicationPlan, Decision, Pin, Plan, PlanRow, ServingPlan};
use expedite::model::time::Time;
use expedite::model::world::{ApplicationFile, GitOps};
use std::sync::Arc;

/// A pin of `order` on `cluster`, with a digest made from `content`.
pub fn pin(order: &str, cluster: &str, content: &str) -> Pin {
    let order = OrderRef::parse(order).unwrap();
    let cluster = ClusterName::parse(cluster).unwrap();
    Pin {
        preparation: PreparationName::parse(&format!(
            "{}-{}",
            order.name,
            Digest::hash_bytes(content.as_bytes()).format_short()
        ))
        .unwrap(),
        artifact: Artifact {
            repository: OciRepository::parse("registry.shop.example:5000/shop/podinfo").unwrap(),
            digest: Digest::hash_bytes(content.as_bytes()),
        },
        target_namespace: order.namespace.clone(),
        environment: EnvironmentName::parse("production").unwrap(),
        project: "default".into(),
        on_delete: OnDelete::Cascade,
        server: format!("https://{cluster}.example:6443"),
        name: build_application_name(&order, &cluster).unwrap(),
        argocd_namespace: "argocd".into(),
        found_finalizers: None,
        cluster,
        order,
    }
}

/// The Application plan of a pin.
pub fn pinned(pin: Pin) -> ApplicationPlan {
    ApplicationPlan {
        cluster: pin.cluster.clone(),
        name: pin.name.clone(),
        path: build_application_path(&pin.order, &pin.name),
        action: ApplicationAction::Pin(Arc::new(pin)),
    }
}

/// A row that keeps what is deployed.
pub fn row(order: &str, serving: ServingPlan, applications: Vec<ApplicationPlan>) -> PlanRow {
    PlanRow {
        order: OrderRef::parse(order).unwrap(),
        origin: None,
        environment: Some(EnvironmentName::parse("production").unwrap()),
        mode: Mode::Manual,
        candidate: None,
        verdicts: Vec::new(),
        decision: Decision::Keep,
        errors: Vec::new(),
        warnings: Vec::new(),
        serving,
        applications,
        seal: None,
    }
}

/// A plan of rows.
pub fn plan(rows: Vec<PlanRow>) -> Plan {
    Plan {
        at: Time::from_unix(1_790_000_000),
        head: None,
        rows,
        guard: None,
        problems: Vec::new(),
        notices: Vec::new(),
    }
}

/// A file below `applications/`, read as the loader reads it.
pub fn application_file(text: &str, owner: Option<&str>) -> ApplicationFile {
    let application = serde_yaml::from_str(text)
        .map(Arc::new)
        .map_err(|e| expedite::error::Failure::new_input("wrong", e.to_string()));
    ApplicationFile { text: text.into(), owner: owner.map(|o| OrderRef::parse(o).unwrap()), application }
}

/// A repository with these Applications of `owner`.
pub fn repository(files: &[(&str, &str, Option<&str>)]) -> GitOps {
    let mut gitops = GitOps::default();
    for (path, text, owner) in files {
        gitops.applications.insert((*path).to_owned(), application_file(text, *owner));
    }
    gitops
}

/// A Serving's file, read as the loader reads it.
pub fn serving_file(order: &str, text: &str) -> expedite::model::world::ServingFile {
    let order = OrderRef::parse(order).unwrap();
    let mut value: serde_yaml::Value = serde_yaml::from_str(text).unwrap();
    if value["status"].is_null() {
        value.as_mapping_mut().unwrap().remove("status");
    }
    let serving = serde_yaml::from_value(value)
        .map(Arc::new)
        .map_err(|e| expedite::error::Failure::new_input("wrong", e.to_string()));
    expedite::model::world::ServingFile {
        path: expedite::model::naming::build_serving_path(&order),
        text: text.into(),
        serving,
    }
}

/// A namespace by name.
pub fn namespace(name: &str) -> Namespace {
    Namespace::parse(name).unwrap()
}
