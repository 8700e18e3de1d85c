//! Checks a rendered Application, whatever the template: exactly the decided fields, with a short list of
//! additions (`docs/design/gitops-repository.md#applications`). Everything else is rejected, because it could
//! remove the pin, add a source or run an operation, now or in a later Argo CD.

use crate::model::environment::OnDelete;
use crate::model::naming;
use crate::model::plan::Pin;
use serde_json::{Map, Value};

/// Sync options that every generated Application has.
pub const SYNC_OPTIONS: [&str; 2] = ["ServerSideApply=true", "CreateNamespace=true"];

/// One difference from what is required.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The field's keys and indices from the root.
    pub path: Vec<String>,
    pub why: String,
}

impl Violation {
    /// The field as people write it: `spec.source.path`.
    #[must_use]
    pub fn format_field(&self) -> String {
        format_path(&self.path)
    }
}

/// `metadata.labels.team`, `spec.info[0].value`.
#[must_use]
pub fn format_path(path: &[String]) -> String {
    path.iter().fold(String::new(), |mut text, part| {
        if part.bytes().all(|b| b.is_ascii_digit()) {
            text.push_str(&format!("[{part}]"));
        } else {
            if !text.is_empty() {
                text.push('.');
            }
            text.push_str(part);
        }
        text
    })
}

/// Labels that every generated Application has.
#[must_use]
pub fn build_labels(pin: &Pin) -> [(&'static str, &str); 4] {
    [
        (naming::MANAGED_BY, naming::MANAGER),
        (naming::LABEL_ORDER, pin.order.name.as_str()),
        (naming::LABEL_SERVING, pin.order.name.as_str()),
        (naming::LABEL_SERVING_NAMESPACE, pin.order.namespace.as_str()),
    ]
}

/// Checks that a rendered Application matches its pin.
///
/// # Errors
/// The first difference, in the order of the fields below.
pub fn check_application(value: &Value, pin: &Pin) -> Result<(), Violation> {
    let root = Object::from_value(value, &[])?;
    root.check_keys(&["apiVersion", "kind", "metadata", "spec"])?;
    root.check_exact("apiVersion", "argoproj.io/v1alpha1")?;
    root.check_exact("kind", "Application")?;
    check_metadata(&root.get_object("metadata")?, pin)?;
    check_spec(&root.get_object("spec")?, pin)
}

fn check_metadata(metadata: &Object, pin: &Pin) -> Result<(), Violation> {
    metadata.check_keys(&["name", "namespace", "labels", "annotations", "finalizers"])?;
    metadata.check_exact("name", pin.name.as_str())?;
    metadata.check_exact("namespace", &pin.argocd_namespace)?;
    let found = metadata.get_object("labels")?;
    for (key, wanted) in build_labels(pin) {
        found.check_exact(key, wanted)?;
    }
    for (key, value) in found.map {
        match value.as_str() {
            Some(text) if is_label_value(text) => {}
            Some(_) => {
                let why = "a label value has at most 63 letters, digits, '-', '_' or '.', and begins and ends with a letter or digit";
                return Err(found.make_violation(key, why));
            }
            None => return Err(found.make_violation(key, "a label value must be a string; quote it")),
        }
    }
    let found = metadata.get_object("annotations")?;
    found.check_exact(naming::ALLOWED_ORDER, &pin.order.to_string())?;
    found.check_strings()?;
    match (pin.on_delete, metadata.map.get("finalizers")) {
        (OnDelete::Orphan, None) => Ok(()),
        (OnDelete::Orphan, Some(_)) => {
            Err(metadata
                .make_violation("finalizers", "the Environment's onDelete is Orphan: there must be none"))
        }
        (OnDelete::Cascade, Some(Value::Array(list))) if list == &[Value::from(naming::FINALIZER)] => Ok(()),
        (OnDelete::Cascade, _) => Err(metadata.make_violation(
            "finalizers",
            format!("the Environment's onDelete is Cascade: it must be exactly [{}]", naming::FINALIZER),
        )),
    }
}

fn check_spec(spec: &Object, pin: &Pin) -> Result<(), Violation> {
    spec.check_keys(&[
        "project",
        "source",
        "destination",
        "syncPolicy",
        "info",
        "ignoreDifferences",
        "revisionHistoryLimit",
    ])?;
    spec.check_exact("project", &pin.project)?;
    let source = spec.get_object("source")?;
    source.check_keys(&["repoURL", "targetRevision", "path"])?;
    source.check_exact("repoURL", &pin.artifact.repository.format_url())?;
    source.check_exact("targetRevision", &pin.artifact.digest.to_string())?;
    source.check_exact("path", ".")?;
    let destination = spec.get_object("destination")?;
    destination.check_keys(&["server", "namespace"])?;
    destination.check_exact("server", &pin.server)?;
    destination.check_exact("namespace", pin.target_namespace.as_str())?;
    let policy = spec.get_object("syncPolicy")?;
    policy.check_keys(&["automated", "syncOptions", "retry"])?;
    let automated = policy.get_object("automated")?;
    automated.check_keys(&["prune", "selfHeal"])?;
    automated.check_value("prune", &Value::Bool(true))?;
    automated.check_value("selfHeal", &Value::Bool(true))?;
    check_sync_options(&policy)?;
    if policy.map.contains_key("retry") {
        check_retry(&policy.get_object("retry")?)?;
    }
    check_additions(spec)
}

fn check_sync_options(policy: &Object) -> Result<(), Violation> {
    let options = policy.get_strings("syncOptions")?;
    for wanted in SYNC_OPTIONS {
        if !options.contains(&wanted) {
            return Err(policy.make_violation("syncOptions", format!("{wanted} must be one of them")));
        }
    }
    for (i, option) in options.iter().enumerate() {
        let name = option.split('=').next();
        if options[..i].iter().any(|o| o.split('=').next() == name) {
            let mut violation =
                policy.make_violation("syncOptions", format!("{option}: the option is given twice"));
            violation.path.push(i.to_string());
            return Err(violation);
        }
    }
    Ok(())
}

fn check_retry(retry: &Object) -> Result<(), Violation> {
    retry.check_keys(&["limit", "refresh", "backoff"])?;
    retry.check_integer("limit")?;
    if retry.map.get("refresh").is_some_and(|v| !v.is_boolean()) {
        return Err(retry.make_violation("refresh", "it must be true or false"));
    }
    if retry.map.contains_key("backoff") {
        let backoff = retry.get_object("backoff")?;
        backoff.check_keys(&["duration", "factor", "maxDuration"])?;
        backoff.check_integer("factor")?;
        backoff.check_string("duration")?;
        backoff.check_string("maxDuration")?;
    }
    Ok(())
}

/// `info`, `ignoreDifferences` and `revisionHistoryLimit`, in the form of the CRD.
fn check_additions(spec: &Object) -> Result<(), Violation> {
    spec.check_integer("revisionHistoryLimit")?;
    for info in spec.get_objects("info")? {
        info.check_keys(&["name", "value"])?;
        for key in ["name", "value"] {
            if !info.map.contains_key(key) {
                return Err(info.make_violation(key, "it is missing"));
            }
        }
        info.check_strings()?;
    }
    for rule in spec.get_objects("ignoreDifferences")? {
        const LISTS: [&str; 3] = ["jsonPointers", "jqPathExpressions", "managedFieldsManagers"];
        rule.check_keys(&["group", "kind", "name", "namespace", LISTS[0], LISTS[1], LISTS[2]])?;
        if !rule.map.contains_key("kind") {
            return Err(rule.make_violation("kind", "it is missing"));
        }
        for key in ["group", "kind", "name", "namespace"] {
            rule.check_string(key)?;
        }
        for key in LISTS {
            if rule.map.contains_key(key) {
                rule.get_strings(key)?;
            }
        }
    }
    Ok(())
}

fn is_label_value(text: &str) -> bool {
    let edge = |b: Option<&u8>| b.is_none_or(u8::is_ascii_alphanumeric);
    let bytes = text.as_bytes();
    bytes.len() <= 63
        && edge(bytes.first())
        && edge(bytes.last())
        && bytes.iter().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(b))
}

/// A mapping and its place.
struct Object<'a> {
    map: &'a Map<String, Value>,
    path: Vec<String>,
}

impl<'a> Object<'a> {
    fn from_value(value: &'a Value, path: &[String]) -> Result<Self, Violation> {
        match value {
            Value::Object(map) => Ok(Self { map, path: path.to_vec() }),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                Err(Violation { path: path.to_vec(), why: "it must be a mapping".into() })
            }
        }
    }

    fn build_path(&self, key: &str) -> Vec<String> {
        self.path.iter().cloned().chain([key.to_owned()]).collect()
    }

    fn make_violation(&self, key: &str, why: impl Into<String>) -> Violation {
        Violation { path: self.build_path(key), why: why.into() }
    }

    fn check_keys(&self, known: &[&str]) -> Result<(), Violation> {
        match self.map.keys().find(|k| !known.contains(&k.as_str())) {
            None => Ok(()),
            Some(key) => Err(self
                .make_violation(key, format!("it is not allowed here; allowed here: {}", known.join(", ")))),
        }
    }

    fn check_value(&self, key: &str, wanted: &Value) -> Result<(), Violation> {
        match self.map.get(key) {
            Some(found) if found == wanted => Ok(()),
            Some(found) => Err(self.make_violation(key, format!("it must be {wanted}, not {found}"))),
            None => Err(self.make_violation(key, format!("it is missing; it must be {wanted}"))),
        }
    }

    fn check_exact(&self, key: &str, wanted: &str) -> Result<(), Violation> {
        if self.map.get(key).and_then(Value::as_str) == Some(wanted) {
            return Ok(());
        }
        self.check_value(key, &Value::from(wanted))
    }

    fn get_object(&self, key: &str) -> Result<Object<'a>, Violation> {
        match self.map.get(key) {
            Some(value) => Object::from_value(value, &self.build_path(key)),
            None => Err(self.make_violation(key, "it is missing")),
        }
    }

    fn get_list(&self, key: &str) -> Result<&'a [Value], Violation> {
        match self.map.get(key) {
            Some(Value::Array(list)) if !list.is_empty() => Ok(list),
            Some(_) => Err(self.make_violation(key, "it must be a list with something in it")),
            None => Err(self.make_violation(key, "it is missing")),
        }
    }

    /// A list of mappings; empty if the key is absent.
    fn get_objects(&self, key: &str) -> Result<Vec<Object<'a>>, Violation> {
        if !self.map.contains_key(key) {
            return Ok(Vec::new());
        }
        let at = |i: usize| self.build_path(key).into_iter().chain([i.to_string()]).collect::<Vec<_>>();
        self.get_list(key)?.iter().enumerate().map(|(i, v)| Object::from_value(v, &at(i))).collect()
    }

    fn get_strings(&self, key: &str) -> Result<Vec<&'a str>, Violation> {
        let texts: Option<Vec<&str>> = self.get_list(key)?.iter().map(Value::as_str).collect();
        texts.ok_or_else(|| self.make_violation(key, "each item must be a string; quote it"))
    }

    fn check_strings(&self) -> Result<(), Violation> {
        self.map.keys().try_for_each(|key| self.check_string(key))
    }

    fn check_string(&self, key: &str) -> Result<(), Violation> {
        match self.map.get(key) {
            None | Some(Value::String(_)) => Ok(()),
            Some(_) => Err(self.make_violation(key, "it must be a string; quote it")),
        }
    }

    fn check_integer(&self, key: &str) -> Result<(), Violation> {
        match self.map.get(key) {
            None => Ok(()),
            Some(value) if value.is_i64() => Ok(()),
            Some(_) => Err(self.make_violation(key, "it must be a whole number")),
        }
    }
}
