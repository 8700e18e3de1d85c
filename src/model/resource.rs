//! A Kubernetes object inside an artifact, as far as it is needed to compare it with another.

use serde_json::Value;

/// One document of rendered manifests.
#[derive(Debug, Clone, PartialEq)]
pub struct Resource {
    /// The file that contains it, at the top level of the artifact.
    pub file: String,
    pub content: ResourceContent,
}

/// What a document is.
#[derive(Debug, Clone, PartialEq)]
pub enum ResourceContent {
    /// An object, or another YAML value.
    Object(Value),
    /// A file that does not parse. Its text may be anything, Secrets included: it is compared, never shown.
    Unparsed {
        text: String,
        /// Why, with line and column.
        why: String,
    },
}

/// Identifies an object in a cluster. A group has one object per kind and name, whatever its version.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ResourceId {
    /// `apps`; empty for the core group.
    pub group: String,
    /// `Deployment`; empty for what has none.
    pub kind: String,
    /// As written; `None`: cluster-scoped, or the namespace that the Application deploys to.
    pub namespace: Option<String>,
    /// As written; the file's name for what has none.
    pub name: String,
    /// `v1`.
    pub version: String,
}

impl Resource {
    /// An object of a file.
    #[must_use]
    pub fn from_object(object: Value, file: &str) -> Self {
        Self { file: file.to_owned(), content: ResourceContent::Object(object) }
    }

    /// What it is called.
    #[must_use]
    pub fn id(&self) -> ResourceId {
        let object = match &self.content {
            ResourceContent::Object(object) => object,
            ResourceContent::Unparsed { .. } => &Value::Null,
        };
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).filter(|t| !t.is_empty());
        let (group, version) = match text("/apiVersion").map(|v| v.split_once('/').ok_or(v)) {
            Some(Ok((group, version))) => (group, version),
            Some(Err(version)) => ("", version),
            None => ("", ""),
        };
        let kind = text("/kind").unwrap_or_default().to_owned();
        let name = text("/metadata/name").map_or_else(|| self.file.clone(), str::to_owned);
        let namespace = text("/metadata/namespace").map(str::to_owned);
        ResourceId { group: group.to_owned(), version: version.to_owned(), kind, namespace, name }
    }
}

impl std::fmt::Display for ResourceId {
    /// `Deployment shop/podinfo`, `ClusterRole podinfo`; the file's name if it is not an object.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if !self.kind.is_empty() {
            write!(f, "{} ", self.kind)?;
        }
        if let Some(namespace) = &self.namespace {
            write!(f, "{namespace}/")?;
        }
        f.write_str(&self.name)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;
    use serde_json::json;

    #[test]
    fn a_resource_is_named_as_people_name_it() {
        let name = |object: Value| Resource::from_object(object, "all.yaml").id().to_string();
        let meta = json!({"name": "podinfo", "namespace": "shop"});
        assert_eq!(name(json!({"kind": "Deployment", "metadata": meta})), "Deployment shop/podinfo");
        assert_eq!(name(json!({"kind": "ClusterRole", "metadata": {"name": "a"}})), "ClusterRole a");
        assert_eq!(name(json!({"kind": "Deployment"})), "Deployment all.yaml");
        assert_eq!(name(json!(["x"])), "all.yaml");
        let id = Resource::from_object(json!({"apiVersion": "apps/v1"}), "x").id();
        assert_eq!((id.group.as_str(), id.version.as_str()), ("apps", "v1"));
        let id = Resource::from_object(json!({"apiVersion": "v1"}), "x").id();
        assert_eq!((id.group.as_str(), id.version.as_str()), ("", "v1"));
    }
}
