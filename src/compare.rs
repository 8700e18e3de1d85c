//! The objects of two artifacts → what changes, resource by resource: for people, pure.
//!
//! Objects are matched by apiVersion, kind, namespace and name; then, among the rest, by the group without
//! its version, by name in another namespace, by equal content under another name, and by the name without
//! the hash that kustomize gives it. The order of keys and the defaults of one table ([`defaults`]) do not
//! count as changes; labels and annotations that change with every rendering are mentioned, not shown
//! ([`noise`]). Values of Secrets never leave this module. It must not know where artifacts come from, nor
//! how it is printed.

pub mod defaults;
pub mod fields;
pub mod noise;
pub mod risks;

use crate::model::resource::{Resource, ResourceContent, ResourceId};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use fields::{FieldChange, mask_secrets};
use noise::TakenNoise;
use risks::Risk;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// The objects of one artifact, and the namespace of those without one.
#[derive(Debug, Clone, Copy)]
pub struct ArtifactSide<'a> {
    /// In the order of the artifact.
    pub resources: &'a [Resource],
    /// Where the Application deploys; `None`: unknown.
    pub namespace: Option<&'a str>,
}

/// All that changes between two artifacts.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Comparison {
    /// Sorted by what they are called.
    pub changes: Vec<ResourceChange>,
    /// Resources whose only change is known noise, and the keys it is in.
    pub noise: Vec<Noise>,
    /// How many do not change.
    pub unchanged: usize,
    /// Objects that occur twice in the newer artifact: Argo CD uses the last.
    pub repeated: Vec<ResourceId>,
}

/// A resource whose only change is known noise.
#[derive(Debug, Clone, PartialEq)]
pub struct Noise {
    pub id: ResourceId,
    /// Labels and annotations.
    pub keys: Vec<String>,
    /// It is in a Pod template: Pods are created again.
    pub rolls: bool,
}

/// One resource that changes.
#[derive(Debug, Clone, PartialEq)]
pub struct ResourceChange {
    /// Its name afterwards (before, if it is removed).
    pub id: ResourceId,
    /// What happens to it.
    pub how: ResourceFate,
    /// The fields that differ, if it exists before and after; without known noise.
    pub fields: Vec<FieldChange>,
    /// Keys of known noise that differ, too.
    pub noise: Vec<String>,
    /// The risks that a reader must see.
    pub risks: Vec<Risk>,
    /// The whole object if it is added or removed, with values of Secrets hidden. Also `None` if its file
    /// does not parse.
    pub whole: Option<Value>,
    /// Why its file does not parse.
    pub unparsed: Option<String>,
    /// Argo CD leaves it behind (`Prune=false`).
    pub left_behind: bool,
}

/// What happens to a resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ResourceFate {
    Added,
    Removed,
    /// It exists before and after, and changes.
    Changed,
    /// It is added under this name and removed under that one.
    Renamed(ResourceId),
}

/// How many resources of each sort.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ResourceCounts {
    pub added: usize,
    pub changed: usize,
    pub removed: usize,
    /// Renamed or moved.
    pub renamed: usize,
    /// Changed in known noise alone.
    pub noise: usize,
    pub unchanged: usize,
}

impl Comparison {
    #[must_use]
    pub fn count_resources(&self) -> ResourceCounts {
        let mut counts = ResourceCounts {
            noise: self.noise.len(),
            unchanged: self.unchanged,
            ..ResourceCounts::default()
        };
        for change in &self.changes {
            match change.how {
                ResourceFate::Added => counts.added += 1,
                ResourceFate::Removed => counts.removed += 1,
                ResourceFate::Changed => counts.changed += 1,
                ResourceFate::Renamed(_) => counts.renamed += 1,
            }
        }
        counts
    }

    /// Every sort of risk once, with how many resources have it.
    #[must_use]
    pub fn count_risks(&self) -> Vec<(&'static str, usize)> {
        let mut all: BTreeMap<Risk, usize> = BTreeMap::new();
        for change in &self.changes {
            let mut own: Vec<Risk> = change.risks.clone();
            own.iter_mut().for_each(|risk| {
                if let Risk::ImmutableField(field) = risk {
                    field.clear();
                }
            });
            own.dedup();
            own.into_iter().for_each(|risk| *all.entry(risk).or_default() += 1);
        }
        all.into_iter().map(|(risk, count)| (risk.word(), count)).collect()
    }
}

/// Compares two artifacts. With `all`, known noise is a change like any other.
#[must_use]
pub fn compare_artifacts(before: ArtifactSide<'_>, after: ArtifactSide<'_>, all: bool) -> Comparison {
    let (mut old, _) = index_by_id(before);
    let (mut new, repeated) = index_by_id(after);
    let mut found =
        FoundChanges { before, after, all, out: Comparison { repeated, ..Comparison::default() } };
    // Nearly all objects are the same on both sides.
    let mut gone = BTreeMap::new();
    while let Some((id, resource)) = old.pop_first() {
        match new.remove(&id) {
            Some(other) => found.pair_objects((&id, resource), (&id, other)),
            None => {
                gone.insert(id, resource);
            }
        }
    }
    found.push_rest(gone, new);
    found.out.changes.sort_by(|a, b| a.id.cmp_called(&b.id));
    found.out.noise.sort_by(|a, b| a.id.cmp_called(&b.id));
    found.out
}

type ById<'a> = BTreeMap<ResourceId, &'a Resource>;

/// Objects by identity, using the last of those that occur twice; and the duplicates. The Application's own
/// namespace counts as no namespace.
fn index_by_id<'a>(side: ArtifactSide<'a>) -> (ById<'a>, Vec<ResourceId>) {
    let mut map = BTreeMap::new();
    let mut repeated = BTreeSet::new();
    // How many without a name a file had so far, by what they are.
    let mut numbers: HashMap<ResourceId, usize> = HashMap::new();
    for resource in side.resources {
        if matches!(&resource.content, ResourceContent::Object(Value::Null)) {
            continue;
        }
        let mut id = resource.id();
        if id.namespace.as_deref() == side.namespace {
            id.namespace = None;
        }
        // Without a name of its own (`generateName`), every one is another object.
        if id.name.starts_with(&resource.file) && is_nameless(resource) && map.contains_key(&id) {
            let number = numbers.entry(id.clone()).or_insert(1);
            while map.contains_key(&id) {
                *number += 1;
                id.name = format!("{} ({number})", resource.file);
            }
        }
        if map.insert(id.clone(), resource).is_some() {
            repeated.insert(id);
        }
    }
    (map, repeated.into_iter().collect())
}

fn is_nameless(resource: &Resource) -> bool {
    match &resource.content {
        ResourceContent::Object(object) => object.pointer("/metadata/name").is_none(),
        ResourceContent::Unparsed { .. } => false,
    }
}

impl ResourceId {
    /// As a reader looks for them: by kind, then namespace and name.
    fn cmp_called(&self, other: &Self) -> std::cmp::Ordering {
        let key = |id: &'_ Self| (id.kind.clone(), id.namespace.clone(), id.name.clone(), id.clone());
        key(self).cmp(&key(other))
    }
}

struct FoundChanges<'a> {
    before: ArtifactSide<'a>,
    after: ArtifactSide<'a>,
    all: bool,
    out: Comparison,
}

/// An object without the parts that do not count as changes.
struct Normal {
    value: Value,
    noise: TakenNoise,
}

impl FoundChanges<'_> {
    /// Two that are the same object.
    fn pair_objects(
        &mut self,
        (old_id, old): (&ResourceId, &Resource),
        (new_id, new): (&ResourceId, &Resource),
    ) {
        if old_id == new_id && old.content == new.content && self.before.namespace == self.after.namespace {
            self.out.unchanged += 1;
            return;
        }
        let (before, after) = match (&old.content, &new.content) {
            (ResourceContent::Object(a), ResourceContent::Object(b)) => (
                self.normalize_object(old_id, a, self.before.namespace),
                self.normalize_object(new_id, b, self.after.namespace),
            ),
            (ResourceContent::Unparsed { .. }, _) | (_, ResourceContent::Unparsed { .. }) => {
                let unparsed = [&new.content, &old.content].into_iter().find_map(explain_unparsed);
                self.push_resource(new_id.clone(), ResourceFate::Changed, Vec::new(), None, unparsed);
                return;
            }
        };
        // The Application decides the namespace of an object without one, and its change is reported there.
        let moved = old_id.namespace != new_id.namespace;
        let same_name = old_id.name == new_id.name && !moved;
        let fields = fields::compare_fields(&before.value, &after.value);
        let noise = before.noise.find_differing(&after.noise);
        if same_name && fields.is_empty() {
            match noise.is_empty() {
                true => self.out.unchanged += 1,
                false => {
                    let rolls = before.noise.needs_rollout(&after.noise);
                    self.out.noise.push(Noise { id: new_id.clone(), keys: noise, rolls });
                }
            }
            return;
        }
        let risks = risks::judge_change(old_id, new_id, moved, (&before.value, &after.value), &fields);
        let how = if same_name { ResourceFate::Changed } else { ResourceFate::Renamed(old_id.clone()) };
        self.out.changes.push(ResourceChange {
            id: new_id.clone(),
            how,
            fields,
            noise,
            risks,
            whole: None,
            unparsed: None,
            left_behind: false,
        });
    }

    /// What has no counterpart under its own name.
    fn push_rest(&mut self, mut gone: ById<'_>, mut new: ById<'_>) {
        let stem = |id: &ResourceId| {
            find_kustomize_stem(id).map(|stem| ResourceId { name: stem.to_owned(), ..strip_version(id) })
        };
        self.pair_by_key(&mut gone, &mut new, &|id, _| Some(strip_version(id)));
        self.pair_by_key(&mut gone, &mut new, &|id, _| {
            (!id.kind.is_empty()).then(|| ResourceId { namespace: None, ..strip_version(id) })
        });
        self.pair_same_content(&mut gone, &mut new);
        self.pair_by_key(&mut gone, &mut new, &|id, _| stem(id));
        for (resources, how) in [(gone, ResourceFate::Removed), (new, ResourceFate::Added)] {
            for (id, resource) in resources {
                match &resource.content {
                    ResourceContent::Object(object) => {
                        let side = if how == ResourceFate::Added { self.after } else { self.before };
                        let mut normal = self.normalize_object(&id, object, side.namespace).value;
                        sort_keys(&mut normal);
                        self.push_resource(id, how.clone(), Vec::new(), Some(mask_secrets(&normal)), None);
                    }
                    ResourceContent::Unparsed { .. } => {
                        self.push_resource(
                            id,
                            how.clone(),
                            Vec::new(),
                            None,
                            explain_unparsed(&resource.content),
                        );
                    }
                }
            }
        }
    }

    /// Pairs what has the same key, where each side has one of it.
    fn pair_by_key<K: Eq + std::hash::Hash>(
        &mut self,
        gone: &mut ById<'_>,
        new: &mut ById<'_>,
        key: &dyn Fn(&ResourceId, &Resource) -> Option<K>,
    ) {
        if gone.is_empty() || new.is_empty() {
            return;
        }
        let mut keys: HashMap<K, (Vec<ResourceId>, Vec<ResourceId>)> = HashMap::new();
        for (id, resource) in gone.iter() {
            if let Some(key) = key(id, resource) {
                keys.entry(key).or_default().0.push(id.clone());
            }
        }
        for (id, resource) in new.iter() {
            if let Some(key) = key(id, resource) {
                keys.entry(key).or_default().1.push(id.clone());
            }
        }
        let mut pairs: Vec<(ResourceId, ResourceId)> = keys
            .into_values()
            .filter_map(|(mut a, mut b)| match (a.len(), b.len()) {
                (1, 1) => a.pop().zip(b.pop()),
                _ => None,
            })
            .collect();
        pairs.sort();
        for (old_id, new_id) in pairs {
            if let (Some(old), Some(resource)) = (gone.remove(&old_id), new.remove(&new_id)) {
                self.pair_objects((&old_id, old), (&new_id, resource));
            }
        }
    }

    /// Pairs what has the same content under another name.
    fn pair_same_content(&mut self, gone: &mut ById<'_>, new: &mut ById<'_>) {
        let (all, before, after) = (self.all, self.before.namespace, self.after.namespace);
        let nameless = |id: &ResourceId, object: &Value, namespace| {
            let Normal { mut value, .. } = normalize_object(id, object, namespace, all);
            if let Some(Value::Object(metadata)) = value.get_mut("metadata") {
                metadata.shift_remove("name");
            }
            sort_keys(&mut value);
            (strip_version(id).kind, id.group.clone(), id.namespace.clone(), value.to_string())
        };
        let held: BTreeSet<ResourceId> = gone.keys().cloned().collect();
        self.pair_by_key(gone, new, &|id, resource| match &resource.content {
            ResourceContent::Object(object) if !id.kind.is_empty() => {
                Some(nameless(id, object, if held.contains(id) { before } else { after }))
            }
            ResourceContent::Object(_) | ResourceContent::Unparsed { .. } => None,
        });
    }

    fn push_resource(
        &mut self,
        id: ResourceId,
        how: ResourceFate,
        fields: Vec<FieldChange>,
        whole: Option<Value>,
        unparsed: Option<String>,
    ) {
        let risks = match how {
            ResourceFate::Added => risks::judge_whole(&id, false),
            ResourceFate::Removed => risks::judge_whole(&id, true),
            ResourceFate::Changed | ResourceFate::Renamed(_) => Vec::new(),
        };
        let left_behind = how == ResourceFate::Removed && whole.as_ref().is_some_and(is_never_pruned);
        self.out.changes.push(ResourceChange {
            id,
            how,
            fields,
            noise: Vec::new(),
            risks,
            whole,
            unparsed,
            left_behind,
        });
    }

    fn normalize_object(&self, id: &ResourceId, object: &Value, namespace: Option<&str>) -> Normal {
        normalize_object(id, object, namespace, self.all)
    }
}

/// An object without the table's defaults, its Application's own namespace and (unless `all`) known noise; a
/// Secret's `stringData` as the `data` that an API server makes of it.
fn normalize_object(id: &ResourceId, object: &Value, namespace: Option<&str>, all: bool) -> Normal {
    let mut value = object.clone();
    if id.group.is_empty() && id.kind == "Secret" {
        encode_strings(&mut value);
    }
    let noise = if all { TakenNoise::default() } else { noise::take_noise(&mut value) };
    if let Some(Value::Object(metadata)) = value.get_mut("metadata")
        && namespace.is_some()
        && metadata.get("namespace").and_then(Value::as_str) == namespace
    {
        metadata.shift_remove("namespace");
    }
    defaults::strip_defaults(&risks::format_kind(id), &mut value);
    Normal { value, noise }
}

fn encode_strings(secret: &mut Value) {
    let Value::Object(map) = secret else { return };
    if !matches!(map.get("stringData"), Some(Value::Object(_)))
        || !matches!(map.get("data"), None | Some(Value::Object(_) | Value::Null))
    {
        return;
    }
    let Some(Value::Object(strings)) = map.shift_remove("stringData") else { return };
    let mut data = match map.shift_remove("data") {
        Some(Value::Object(data)) => data,
        Some(_) | None => Map::new(),
    };
    for (key, value) in strings {
        let value = value.as_str().map_or(value.clone(), |text| BASE64_STANDARD.encode(text).into());
        data.insert(key, value);
    }
    map.insert("data".to_owned(), Value::Object(data));
}

fn strip_version(id: &ResourceId) -> ResourceId {
    ResourceId { version: String::new(), ..id.clone() }
}

fn explain_unparsed(content: &ResourceContent) -> Option<String> {
    match content {
        ResourceContent::Unparsed { why, .. } => Some(why.clone()),
        ResourceContent::Object(_) => None,
    }
}

/// `app-config` of `app-config-5m8h2gk9t4`, as kustomize names generated ConfigMaps and Secrets.
fn find_kustomize_stem(id: &ResourceId) -> Option<&str> {
    let (stem, hash) = id.name.rsplit_once('-')?;
    let generated = id.group.is_empty() && matches!(id.kind.as_str(), "ConfigMap" | "Secret");
    let is_hash = hash.len() == 10 && hash.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    (generated && is_hash && !stem.is_empty()).then_some(stem)
}

/// Whether Argo CD keeps an object that was removed from the artifact.
fn is_never_pruned(object: &Value) -> bool {
    let options = object.pointer("/metadata/annotations/argocd.argoproj.io~1sync-options");
    let mut options = options.and_then(Value::as_str).unwrap_or_default().split(',');
    options.any(|option| option.trim() == "Prune=false")
}

/// Keys in the usual order: kind, then name, then alphabetically.
fn sort_keys(value: &mut Value) {
    match value {
        Value::Object(map) => {
            let rank = |key: &str| match key {
                "apiVersion" => 0,
                "kind" => 1,
                "metadata" => 2,
                "name" => 3,
                "namespace" => 4,
                _ => 5,
            };
            map.sort_keys();
            let mut entries: Vec<(String, Value)> = std::mem::take(map).into_iter().collect();
            entries.sort_by_key(|(key, _)| rank(key));
            for (key, mut value) in entries {
                sort_keys(&mut value);
                map.insert(key, value);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(sort_keys),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;
    use serde_json::json;

    fn resources(objects: &[Value]) -> Vec<Resource> {
        objects.iter().map(|o| Resource::from_object(o.clone(), "all.yaml")).collect()
    }

    fn compared(old: &[Value], new: &[Value]) -> Comparison {
        let (old, new) = (resources(old), resources(new));
        let side = |resources| ArtifactSide { resources, namespace: Some("shop") };
        compare_artifacts(side(&old), side(&new), false)
    }

    fn describe(comparison: &Comparison) -> Vec<String> {
        let tell = |change: &ResourceChange| {
            let risks: Vec<String> = change.risks.iter().map(ToString::to_string).collect();
            let how = match &change.how {
                ResourceFate::Added => "added".to_owned(),
                ResourceFate::Removed => "removed".to_owned(),
                ResourceFate::Changed => "changed".to_owned(),
                ResourceFate::Renamed(from) => format!("from {from}"),
            };
            let paths: Vec<&str> = change.fields.iter().map(|f| f.path.as_str()).collect();
            format!("{} {how} [{}] [{}]", change.id, paths.join(" "), risks.join(", "))
        };
        comparison.changes.iter().map(tell).collect()
    }

    fn object(api: &str, kind: &str, name: &str, spec: Value) -> Value {
        json!({"apiVersion": api, "kind": kind, "metadata": {"name": name}, "spec": spec})
    }

    #[test]
    fn what_is_equal_but_for_order_and_defaults_does_not_change() {
        let old = object("apps/v1", "Deployment", "a", json!({"replicas": 1, "paused": false}));
        let new = json!({
            "spec": {"revisionHistoryLimit": 10, "replicas": 1}, "kind": "Deployment", "apiVersion": "apps/v1",
            "metadata": {"namespace": "shop", "name": "a", "creationTimestamp": null},
        });
        let found = compared(&[old], &[new]);
        assert_eq!(describe(&found), Vec::<String>::new());
        assert_eq!(found.unchanged, 1);
    }

    #[test]
    fn resources_come_go_and_change() {
        let deployment = |image: &str| {
            object("apps/v1", "Deployment", "a", json!({"template": {"spec": {"image": image}}}))
        };
        let found = compared(
            &[deployment("x:1"), object("v1", "Service", "old", json!({"clusterIP": "None"}))],
            &[object("v1", "Service", "new", json!({"clusterIP": "10.0.0.1"})), deployment("x:2")],
        );
        assert_eq!(
            describe(&found),
            [
                "Deployment a changed [spec.template.spec.image] []",
                "Service new added [] []",
                "Service old removed [] [deletion]",
            ]
        );
        let counts = ResourceCounts { added: 1, changed: 1, removed: 1, ..ResourceCounts::default() };
        assert_eq!(found.count_resources(), counts);
        assert_eq!(found.count_risks(), [("deletions", 1)]);
    }

    #[test]
    fn another_version_of_a_kind_is_the_same_object() {
        let found = compared(
            &[object("policy/v1beta1", "PodDisruptionBudget", "a", json!({"minAvailable": 1}))],
            &[object("policy/v1", "PodDisruptionBudget", "a", json!({"minAvailable": 1}))],
        );
        assert_eq!(describe(&found), ["PodDisruptionBudget a changed [apiVersion] []"]);
    }

    #[test]
    fn renames_and_moves_are_recognised() {
        let data = |name: &str, value: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": value}});
        let claim = |namespace: &str| json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "db", "namespace": namespace}, "spec": {"a": 1}});
        let found = compared(
            &[data("one", "same"), data("config-5m8h2gk9t4", "1"), claim("a")],
            &[data("two", "same"), data("config-h2gk95m8t4", "2"), claim("b")],
        );
        assert_eq!(
            describe(&found),
            [
                "ConfigMap config-h2gk95m8t4 from ConfigMap config-5m8h2gk9t4 [metadata.name data.a] []",
                "ConfigMap two from ConfigMap one [metadata.name] []",
                "PersistentVolumeClaim b/db from PersistentVolumeClaim a/db [metadata.namespace] [its data may be deleted with it, namespace move, PVC]",
            ]
        );
        // Two equal ones on one side are not paired.
        let found = compared(&[data("one", "same")], &[data("two", "same"), data("three", "same")]);
        assert_eq!(
            found.count_resources(),
            ResourceCounts { added: 2, removed: 1, ..ResourceCounts::default() }
        );
    }

    #[test]
    fn risks_are_flagged() {
        let found = compared(
            &[
                object(
                    "apps/v1",
                    "Deployment",
                    "a",
                    json!({"replicas": 2, "selector": {"matchLabels": {"a": "b"}}}),
                ),
                object("apps/v1", "StatefulSet", "s", json!({"serviceName": "x", "replicas": 1})),
                object("rbac.authorization.k8s.io/v1", "ClusterRole", "r", json!({})),
                object("v1", "Namespace", "n", json!({})),
                json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "i"}, "immutable": true, "data": {"a": "1"}}),
            ],
            &[
                object(
                    "apps/v1",
                    "Deployment",
                    "a",
                    json!({"replicas": 0, "selector": {"matchLabels": {"a": "c"}}}),
                ),
                object("apps/v1", "StatefulSet", "s", json!({"serviceName": "y", "replicas": 3})),
                object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "c", json!({})),
                json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "i"}, "immutable": true, "data": {"a": "2"}}),
            ],
        );
        assert_eq!(
            describe(&found),
            [
                "ClusterRole r removed [] [deletion, RBAC]",
                "ConfigMap i changed [data.a] [immutable field data.a]",
                "CustomResourceDefinition c added [] [CRD]",
                "Deployment a changed [spec.replicas spec.selector.matchLabels.a] [immutable field spec.selector.matchLabels.a, replicas to 0]",
                "Namespace n removed [] [deletion, its data may be deleted with it]",
                "StatefulSet s changed [spec.serviceName spec.replicas] [immutable field spec.serviceName]",
            ]
        );
        assert!(found.count_risks().contains(&("immutable fields", 3)), "{:?}", found.count_risks());
    }

    #[test]
    fn what_is_never_pruned_is_left_behind() {
        let mut kept = object("v1", "PersistentVolumeClaim", "c", json!({}));
        kept["metadata"]["annotations"] =
            json!({"argocd.argoproj.io/sync-options": "Delete=false, Prune=false"});
        assert!(compared(&[kept], &[]).changes[0].left_behind);
    }

    #[test]
    fn known_noise_is_folded() {
        let chart = |version: &str, image: &str| {
            json!({
                "apiVersion": "apps/v1", "kind": "Deployment",
                "metadata": {"name": "a", "labels": {"helm.sh/chart": version}}, "spec": {"image": image},
            })
        };
        let found = compared(&[chart("x-1", "i")], &[chart("x-2", "i")]);
        assert_eq!(
            (found.changes.len(), found.noise[0].keys.as_slice()),
            (0, &["helm.sh/chart".to_owned()][..])
        );
        let found = compared(&[chart("x-1", "i")], &[chart("x-2", "j")]);
        assert_eq!(describe(&found), ["Deployment a changed [spec.image] []"]);
        assert_eq!(found.changes[0].noise, ["helm.sh/chart"]);
        let (old, new) = (resources(&[chart("x-1", "i")]), resources(&[chart("x-2", "i")]));
        let side = |resources| ArtifactSide { resources, namespace: None };
        assert_eq!(compare_artifacts(side(&old), side(&new), true).changes.len(), 1, "all shows it");
    }

    #[test]
    fn string_data_of_a_secret_is_its_data() {
        let secret = |field: &str, value: &str| json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, field: {"a": value}});
        assert_eq!(
            compared(&[secret("data", "aHVudGVyMg==")], &[secret("stringData", "hunter2")]).unchanged,
            1
        );
        let found = compared(&[secret("data", "aHVudGVyMg==")], &[secret("stringData", "hunter3")]);
        assert_eq!(describe(&found), ["Secret s changed [data.a] []"]);
        assert!(!format!("{:?}", compared(&[], &[secret("stringData", "hunter2")])).contains("hunter2"));
    }

    #[test]
    fn a_file_that_does_not_parse_is_compared_and_never_shown() {
        let broken = |text: &str| Resource {
            file: "x.yaml".into(),
            content: ResourceContent::Unparsed { text: text.into(), why: "1:1: bad".into() },
        };
        let (a, b) = ([broken("password: [hunter2")], [broken("password: [hunter3")]);
        let side = |resources| ArtifactSide { resources, namespace: None };
        assert_eq!(compare_artifacts(side(&a), side(&a), false).unchanged, 1);
        let found = compare_artifacts(side(&a), side(&b), false);
        assert_eq!(found.changes[0].unparsed.as_deref(), Some("1:1: bad"));
        assert!(!format!("{found:?}").contains("hunter"));
    }

    #[test]
    fn objects_that_stand_twice_are_named_and_those_without_a_name_are_kept_apart() {
        let config = |v: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"a": v}});
        let job = json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"generateName": "j-"}});
        let found = compared(&[config("2")], &[config("1"), config("2"), job.clone(), job]);
        assert_eq!(found.repeated.len(), 1);
        assert_eq!(found.unchanged, 1, "the last counts");
        assert_eq!(describe(&found), ["Job all.yaml added [] []", "Job all.yaml (2) added [] []"]);
    }
}
