//! Labels and annotations that change with every rendering and have no meaning: mentioned in one line, not
//! shown in full.

use serde_json::{Map, Value};

/// Labels, and beginnings of labels where they end in `*`.
const LABELS: &[&str] = &["helm.sh/chart", "chart", "app.kubernetes.io/version"];

/// The same of annotations. The first is the whole object once more, Secrets' values included.
const ANNOTATIONS: &[&str] = &[
    "kubectl.kubernetes.io/last-applied-configuration",
    "checksum/*",
    "meta.helm.sh/*",
    "deployment.kubernetes.io/revision",
    "config.kubernetes.io/*",
    "internal.config.kubernetes.io/*",
    "argocd.argoproj.io/tracking-id",
];

/// Paths of metadata: of the object, and of Pod templates.
const PLACES: &[&str] = &["/metadata", "/spec/template/metadata", "/spec/jobTemplate/spec/template/metadata"];

/// What was removed from one object.
#[derive(Debug, Default, PartialEq)]
pub struct TakenNoise {
    own: Map<String, Value>,
    template: Map<String, Value>,
}

impl TakenNoise {
    /// The keys in which two objects differ.
    pub fn find_differing(&self, other: &Self) -> Vec<String> {
        let mut keys: Vec<String> = Vec::new();
        for (a, b) in [(&self.own, &other.own), (&self.template, &other.template)] {
            let all = a.keys().chain(b.keys().filter(|k| !a.contains_key(*k)));
            keys.extend(all.filter(|k| a.get(*k) != b.get(*k)).cloned());
        }
        keys.sort();
        keys.dedup();
        keys
    }

    /// Whether the difference is in a Pod template, so that Pods are created again.
    pub fn needs_rollout(&self, other: &Self) -> bool {
        self.template != other.template
    }
}

/// Removes known noise from an object.
pub fn take_noise(object: &mut Value) -> TakenNoise {
    let mut taken = TakenNoise::default();
    for (number, place) in PLACES.iter().enumerate() {
        let Some(Value::Object(metadata)) = object.pointer_mut(place) else { continue };
        let into = if number == 0 { &mut taken.own } else { &mut taken.template };
        for (field, known) in [("labels", LABELS), ("annotations", ANNOTATIONS)] {
            let Some(Value::Object(entries)) = metadata.get_mut(field) else { continue };
            entries.retain(|key, value| {
                let noise = is_noise(key, known);
                if noise {
                    into.insert(key.clone(), value.take());
                }
                !noise
            });
            if entries.is_empty() {
                metadata.shift_remove(field);
            }
        }
    }
    taken
}

fn is_noise(key: &str, known: &[&str]) -> bool {
    known.iter().any(|k| match k.strip_suffix('*') {
        Some(beginning) => key.starts_with(beginning),
        None => *k == key,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;
    use serde_json::json;

    #[test]
    fn noise_is_told_apart_by_its_keys() {
        let object = |chart: &str, sum: &str| {
            json!({
                "metadata": {"name": "a", "labels": {"helm.sh/chart": chart, "app": "a"}},
                "spec": {"template": {"metadata": {"annotations": {"checksum/config": sum}}}},
            })
        };
        let (mut a, mut b, mut c) = (object("x-1", "1"), object("x-2", "1"), object("x-2", "2"));
        let (x, y, z) = (take_noise(&mut a), take_noise(&mut b), take_noise(&mut c));
        assert_eq!(a, b);
        assert_eq!(a["metadata"], json!({"name": "a", "labels": {"app": "a"}}));
        assert_eq!(x.find_differing(&y), ["helm.sh/chart"]);
        assert!(!x.needs_rollout(&y));
        assert_eq!(x.find_differing(&z), ["checksum/config", "helm.sh/chart"]);
        assert!(x.needs_rollout(&z));
    }
}
