//! What a rendered Application may be, whatever the template: exactly ours, with a short list of additions
//! (`docs/design/gitops-repository.md#applications`). Everything else un-pins, adds a source or runs an operation, or might
//! in the next Argo CD: it is refused.

use crate::model::environment::OnDelete;
use crate::model::naming;
use crate::model::plan::Pin;
use serde_json::{Map, Value};

/// Options that every Application of ours has.
pub const SYNC_OPTIONS: [&str; 2] = ["ServerSideApply=true", "CreateNamespace=true"];

/// One thing that is not as it must be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The field's keys and indices from the root.
    pub path: Vec<String>,
    /// For a person.
    pub why: String,
}

impl Violation {
    /// The field as people write it: `spec.source.path`.
    #[must_use]
    pub fn field(&self) -> String {
        field(&self.path)
    }
}

/// `metadata.labels.team`, `spec.info[0].value`.
#[must_use]
pub fn field(path: &[String]) -> String {
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

/// Labels that every Application of ours has.
#[must_use]
pub fn labels(pin: &Pin) -> [(&'static str, &str); 4] {
    [
        (naming::MANAGED_BY, naming::MANAGER),
        (naming::LABEL_ORDER, pin.order.name.as_str()),
        (naming::LABEL_SERVING, pin.order.name.as_str()),
        (naming::LABEL_SERVING_NAMESPACE, pin.order.namespace.as_str()),
    ]
}

/// Holds a rendered Application to its pin.
///
/// # Errors
/// The first thing that is not as it must be, in the order of the fields below.
pub fn application(value: &Value, pin: &Pin) -> Result<(), Violation> {
    let root = Object::of(value, &[])?;
    root.only(&["apiVersion", "kind", "metadata", "spec"])?;
    root.exactly("apiVersion", "argoproj.io/v1alpha1")?;
    root.exactly("kind", "Application")?;
    metadata(&root.object("metadata")?, pin)?;
    spec(&root.object("spec")?, pin)
}

fn metadata(metadata: &Object, pin: &Pin) -> Result<(), Violation> {
    metadata.only(&["name", "namespace", "labels", "annotations", "finalizers"])?;
    metadata.exactly("name", pin.name.as_str())?;
    metadata.exactly("namespace", &pin.argocd_namespace)?;
    let found = metadata.object("labels")?;
    for (key, wanted) in labels(pin) {
        found.exactly(key, wanted)?;
    }
    for (key, value) in found.map {
        match value.as_str() {
            Some(text) if is_label_value(text) => {}
            Some(_) => {
                let why = "a label value has at most 63 letters, digits, '-', '_' or '.', and begins and ends with a letter or digit";
                return Err(found.wrong(key, why));
            }
            None => return Err(found.wrong(key, "a label value must be a string; quote it")),
        }
    }
    let found = metadata.object("annotations")?;
    found.exactly(naming::ALLOWED_ORDER, &pin.order.to_string())?;
    found.all_strings()?;
    match (pin.on_delete, metadata.map.get("finalizers")) {
        (OnDelete::Orphan, None) => Ok(()),
        (OnDelete::Orphan, Some(_)) => {
            Err(metadata.wrong("finalizers", "the Environment's onDelete is Orphan: there must be none"))
        }
        (OnDelete::Cascade, Some(Value::Array(list))) if list == &[Value::from(naming::FINALIZER)] => Ok(()),
        (OnDelete::Cascade, _) => Err(metadata.wrong(
            "finalizers",
            format!("the Environment's onDelete is Cascade: it must be exactly [{}]", naming::FINALIZER),
        )),
    }
}

fn spec(spec: &Object, pin: &Pin) -> Result<(), Violation> {
    spec.only(&[
        "project",
        "source",
        "destination",
        "syncPolicy",
        "info",
        "ignoreDifferences",
        "revisionHistoryLimit",
    ])?;
    spec.exactly("project", &pin.project)?;
    let source = spec.object("source")?;
    source.only(&["repoURL", "targetRevision", "path"])?;
    source.exactly("repoURL", &pin.artifact.repository.url())?;
    source.exactly("targetRevision", &pin.artifact.digest.to_string())?;
    source.exactly("path", ".")?;
    let destination = spec.object("destination")?;
    destination.only(&["server", "namespace"])?;
    destination.exactly("server", &pin.server)?;
    destination.exactly("namespace", pin.target_namespace.as_str())?;
    let policy = spec.object("syncPolicy")?;
    policy.only(&["automated", "syncOptions", "retry"])?;
    let automated = policy.object("automated")?;
    automated.only(&["prune", "selfHeal"])?;
    automated.must("prune", &Value::Bool(true))?;
    automated.must("selfHeal", &Value::Bool(true))?;
    sync_options(&policy)?;
    if policy.map.contains_key("retry") {
        retry(&policy.object("retry")?)?;
    }
    additions(spec)
}

fn sync_options(policy: &Object) -> Result<(), Violation> {
    let options = policy.strings("syncOptions")?;
    for wanted in SYNC_OPTIONS {
        if !options.contains(&wanted) {
            return Err(policy.wrong("syncOptions", format!("{wanted} must be one of them")));
        }
    }
    for (i, option) in options.iter().enumerate() {
        let name = option.split('=').next();
        if options[..i].iter().any(|o| o.split('=').next() == name) {
            let mut violation =
                policy.wrong("syncOptions", format!("{option}: the option stands here twice"));
            violation.path.push(i.to_string());
            return Err(violation);
        }
    }
    Ok(())
}

fn retry(retry: &Object) -> Result<(), Violation> {
    retry.only(&["limit", "refresh", "backoff"])?;
    retry.integer("limit")?;
    if retry.map.get("refresh").is_some_and(|v| !v.is_boolean()) {
        return Err(retry.wrong("refresh", "it must be true or false"));
    }
    if retry.map.contains_key("backoff") {
        let backoff = retry.object("backoff")?;
        backoff.only(&["duration", "factor", "maxDuration"])?;
        backoff.integer("factor")?;
        backoff.string("duration")?;
        backoff.string("maxDuration")?;
    }
    Ok(())
}

/// `info`, `ignoreDifferences` and `revisionHistoryLimit`, in the form the CRD has them.
fn additions(spec: &Object) -> Result<(), Violation> {
    spec.integer("revisionHistoryLimit")?;
    for info in spec.objects("info")? {
        info.only(&["name", "value"])?;
        for key in ["name", "value"] {
            if !info.map.contains_key(key) {
                return Err(info.wrong(key, "it is missing"));
            }
        }
        info.all_strings()?;
    }
    for rule in spec.objects("ignoreDifferences")? {
        const LISTS: [&str; 3] = ["jsonPointers", "jqPathExpressions", "managedFieldsManagers"];
        rule.only(&["group", "kind", "name", "namespace", LISTS[0], LISTS[1], LISTS[2]])?;
        if !rule.map.contains_key("kind") {
            return Err(rule.wrong("kind", "it is missing"));
        }
        for key in ["group", "kind", "name", "namespace"] {
            rule.string(key)?;
        }
        for key in LISTS {
            if rule.map.contains_key(key) {
                rule.strings(key)?;
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

/// A mapping and where it stands.
struct Object<'a> {
    map: &'a Map<String, Value>,
    path: Vec<String>,
}

impl<'a> Object<'a> {
    fn of(value: &'a Value, path: &[String]) -> Result<Self, Violation> {
        match value {
            Value::Object(map) => Ok(Self { map, path: path.to_vec() }),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                Err(Violation { path: path.to_vec(), why: "it must be a mapping".into() })
            }
        }
    }

    fn at(&self, key: &str) -> Vec<String> {
        self.path.iter().cloned().chain([key.to_owned()]).collect()
    }

    fn wrong(&self, key: &str, why: impl Into<String>) -> Violation {
        Violation { path: self.at(key), why: why.into() }
    }

    fn only(&self, known: &[&str]) -> Result<(), Violation> {
        match self.map.keys().find(|k| !known.contains(&k.as_str())) {
            None => Ok(()),
            Some(key) => {
                Err(self
                    .wrong(key, format!("it is not allowed here; what may stand here: {}", known.join(", "))))
            }
        }
    }

    fn must(&self, key: &str, wanted: &Value) -> Result<(), Violation> {
        match self.map.get(key) {
            Some(found) if found == wanted => Ok(()),
            Some(found) => Err(self.wrong(key, format!("it must be {wanted}, not {found}"))),
            None => Err(self.wrong(key, format!("it is missing; it must be {wanted}"))),
        }
    }

    fn exactly(&self, key: &str, wanted: &str) -> Result<(), Violation> {
        if self.map.get(key).and_then(Value::as_str) == Some(wanted) {
            return Ok(());
        }
        self.must(key, &Value::from(wanted))
    }

    fn object(&self, key: &str) -> Result<Object<'a>, Violation> {
        match self.map.get(key) {
            Some(value) => Object::of(value, &self.at(key)),
            None => Err(self.wrong(key, "it is missing")),
        }
    }

    fn list(&self, key: &str) -> Result<&'a [Value], Violation> {
        match self.map.get(key) {
            Some(Value::Array(list)) if !list.is_empty() => Ok(list),
            Some(_) => Err(self.wrong(key, "it must be a list with something in it")),
            None => Err(self.wrong(key, "it is missing")),
        }
    }

    /// A list of mappings; none where the key is not there.
    fn objects(&self, key: &str) -> Result<Vec<Object<'a>>, Violation> {
        if !self.map.contains_key(key) {
            return Ok(Vec::new());
        }
        let at = |i: usize| self.at(key).into_iter().chain([i.to_string()]).collect::<Vec<_>>();
        self.list(key)?.iter().enumerate().map(|(i, v)| Object::of(v, &at(i))).collect()
    }

    fn strings(&self, key: &str) -> Result<Vec<&'a str>, Violation> {
        let texts: Option<Vec<&str>> = self.list(key)?.iter().map(Value::as_str).collect();
        texts.ok_or_else(|| self.wrong(key, "each item must be a string; quote it"))
    }

    fn all_strings(&self) -> Result<(), Violation> {
        self.map.keys().try_for_each(|key| self.string(key))
    }

    fn string(&self, key: &str) -> Result<(), Violation> {
        match self.map.get(key) {
            None | Some(Value::String(_)) => Ok(()),
            Some(_) => Err(self.wrong(key, "it must be a string; quote it")),
        }
    }

    fn integer(&self, key: &str) -> Result<(), Violation> {
        match self.map.get(key) {
            None => Ok(()),
            Some(value) if value.is_i64() => Ok(()),
            Some(_) => Err(self.wrong(key, "it must be a whole number")),
        }
    }
}
