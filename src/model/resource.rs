//! A Kubernetes object inside an artifact, as far as a person compares it with another.

use serde_json::Value;

/// One object of rendered manifests.
#[derive(Debug, Clone, PartialEq)]
pub struct Resource {
    /// `Deployment shop/podinfo`, `ClusterRole podinfo`; the file's name where it is no object.
    pub name: String,
    /// The object.
    pub object: Value,
}

impl Resource {
    /// Names an object by its kind, namespace and name; `file` where it has none.
    #[must_use]
    pub fn of(object: Value, file: &str) -> Self {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).filter(|t| !t.is_empty());
        let name = match (text("/kind"), text("/metadata/namespace"), text("/metadata/name")) {
            (Some(kind), Some(namespace), Some(name)) => format!("{kind} {namespace}/{name}"),
            (Some(kind), None, Some(name)) => format!("{kind} {name}"),
            (Some(kind), _, None) => format!("{kind} in {file}"),
            (None, ..) => file.to_owned(),
        };
        Self { name, object }
    }
}
