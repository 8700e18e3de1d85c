//! The table of defaults that do not count as changes: what an API server fills in if a field is absent.
//!
//! A field that is not in it is a change, whatever its value. `spec.replicas` is left out on purpose: with an
//! autoscaler, setting it and leaving it out are different.

use serde_json::Value;
use std::collections::HashMap;
use std::sync::LazyLock;

/// Kinds (`group/Kind`, `/Kind` in the core group, `*` any, `pod` every Pod and Pod template), a path (`[]`
/// every item, `|` one of several keys), the default as JSON. Deeper paths are taken first, so that a mapping of
/// nothing but defaults counts as empty.
const TABLE: &[(&str, &str, &str)] = &[
    ("*", "metadata.creationTimestamp", "null"),
    ("*", "metadata.labels", "{}"),
    ("*", "metadata.annotations", "{}"),
    ("*", "status", "{}"),
    ("*", "status", "null"),
    ("pod", "restartPolicy", "\"Always\""),
    ("pod", "dnsPolicy", "\"ClusterFirst\""),
    ("pod", "schedulerName", "\"default-scheduler\""),
    ("pod", "terminationGracePeriodSeconds", "30"),
    ("pod", "securityContext", "{}"),
    ("pod", "enableServiceLinks", "true"),
    ("pod", "hostNetwork|hostPID|hostIPC", "false"),
    ("pod", "containers|initContainers[].terminationMessagePath", "\"/dev/termination-log\""),
    ("pod", "containers|initContainers[].terminationMessagePolicy", "\"File\""),
    ("pod", "containers|initContainers[].resources", "{}"),
    ("pod", "containers|initContainers[].securityContext", "{}"),
    ("pod", "containers|initContainers[].ports[].protocol", "\"TCP\""),
    ("pod", "containers|initContainers[].env[].valueFrom.fieldRef.apiVersion", "\"v1\""),
    ("pod", "containers|initContainers[].livenessProbe|readinessProbe|startupProbe.periodSeconds", "10"),
    ("pod", "containers|initContainers[].livenessProbe|readinessProbe|startupProbe.timeoutSeconds", "1"),
    ("pod", "containers|initContainers[].livenessProbe|readinessProbe|startupProbe.successThreshold", "1"),
    ("pod", "containers|initContainers[].livenessProbe|readinessProbe|startupProbe.failureThreshold", "3"),
    (
        "pod",
        "containers|initContainers[].livenessProbe|readinessProbe|startupProbe.httpGet.scheme",
        "\"HTTP\"",
    ),
    ("pod", "volumes[].configMap|secret|projected|downwardAPI.defaultMode", "420"),
    ("pod", "volumes[].hostPath.type", "\"\""),
    ("apps/Deployment", "spec.revisionHistoryLimit", "10"),
    ("apps/Deployment", "spec.progressDeadlineSeconds", "600"),
    ("apps/Deployment", "spec.minReadySeconds", "0"),
    ("apps/Deployment", "spec.paused", "false"),
    ("apps/Deployment", "spec.strategy.rollingUpdate.maxSurge", "\"25%\""),
    ("apps/Deployment", "spec.strategy.rollingUpdate.maxUnavailable", "\"25%\""),
    ("apps/Deployment", "spec.strategy.rollingUpdate", "{}"),
    ("apps/Deployment", "spec.strategy.type", "\"RollingUpdate\""),
    ("apps/Deployment", "spec.strategy", "{}"),
    ("apps/StatefulSet|apps/DaemonSet", "spec.revisionHistoryLimit", "10"),
    ("apps/StatefulSet|apps/DaemonSet", "spec.minReadySeconds", "0"),
    ("apps/StatefulSet|apps/DaemonSet", "spec.updateStrategy.rollingUpdate.partition", "0"),
    ("apps/DaemonSet", "spec.updateStrategy.rollingUpdate.maxUnavailable", "1"),
    ("apps/DaemonSet", "spec.updateStrategy.rollingUpdate.maxSurge", "0"),
    ("apps/StatefulSet|apps/DaemonSet", "spec.updateStrategy.rollingUpdate", "{}"),
    ("apps/StatefulSet|apps/DaemonSet", "spec.updateStrategy.type", "\"RollingUpdate\""),
    ("apps/StatefulSet|apps/DaemonSet", "spec.updateStrategy", "{}"),
    ("apps/StatefulSet", "spec.podManagementPolicy", "\"OrderedReady\""),
    ("apps/StatefulSet", "spec.volumeClaimTemplates[].spec.volumeMode", "\"Filesystem\""),
    ("/PersistentVolumeClaim", "spec.volumeMode", "\"Filesystem\""),
    ("/Service", "spec.type", "\"ClusterIP\""),
    ("/Service", "spec.sessionAffinity", "\"None\""),
    ("/Service", "spec.internalTrafficPolicy", "\"Cluster\""),
    ("/Service", "spec.ports[].protocol", "\"TCP\""),
    ("/ServiceAccount", "automountServiceAccountToken", "true"),
    ("batch/Job", "spec.backoffLimit", "6"),
    ("batch/Job", "spec.completions|parallelism", "1"),
    ("batch/Job", "spec.completionMode", "\"NonIndexed\""),
    ("batch/Job", "spec.suspend", "false"),
    ("batch/CronJob", "spec.concurrencyPolicy", "\"Allow\""),
    ("batch/CronJob", "spec.suspend", "false"),
    ("batch/CronJob", "spec.successfulJobsHistoryLimit", "3"),
    ("batch/CronJob", "spec.failedJobsHistoryLimit", "1"),
    ("batch/CronJob", "spec.jobTemplate.spec.backoffLimit", "6"),
    ("autoscaling/HorizontalPodAutoscaler", "spec.minReplicas", "1"),
    ("networking.k8s.io/NetworkPolicy", "spec.ingress|egress[].ports[].protocol", "\"TCP\""),
    (
        "rbac.authorization.k8s.io/RoleBinding|rbac.authorization.k8s.io/ClusterRoleBinding",
        "roleRef.apiGroup",
        "\"rbac.authorization.k8s.io\"",
    ),
    ("apiextensions.k8s.io/CustomResourceDefinition", "spec.conversion.strategy", "\"None\""),
    ("apiextensions.k8s.io/CustomResourceDefinition", "spec.conversion", "{}"),
];

/// Where a Pod's spec is, by kind.
pub const POD_SPECS: &[(&str, &str)] = &[
    ("/Pod", "spec"),
    ("/ReplicationController", "spec.template.spec"),
    ("apps/Deployment", "spec.template.spec"),
    ("apps/ReplicaSet", "spec.template.spec"),
    ("apps/StatefulSet", "spec.template.spec"),
    ("apps/DaemonSet", "spec.template.spec"),
    ("batch/Job", "spec.template.spec"),
    ("batch/CronJob", "spec.jobTemplate.spec.template.spec"),
];

/// One step of a path: its possible keys, and whether it then descends into every item.
struct PathStep {
    keys: Vec<&'static str>,
    items: bool,
}

struct DefaultsRow {
    steps: Vec<PathStep>,
    default: Value,
}

/// By `group/Kind`, and `*`.
static ROWS: LazyLock<HashMap<&'static str, Vec<DefaultsRow>>> = LazyLock::new(|| {
    let mut rows: HashMap<&'static str, Vec<DefaultsRow>> = HashMap::new();
    let mut add = |kind: &'static str, prefix: &'static str, path: &'static str, default: &str| {
        // The table's test reads every default.
        let default = serde_json::from_str(default).unwrap_or(Value::Null);
        let steps =
            prefix.split('.').filter(|s| !s.is_empty()).chain(path.split('.')).map(parse_step).collect();
        rows.entry(kind).or_default().push(DefaultsRow { steps, default });
    };
    for (kinds, path, default) in TABLE {
        if *kinds == "pod" {
            POD_SPECS.iter().for_each(|(kind, prefix)| add(kind, prefix, path, default));
        } else {
            kinds.split('|').for_each(|kind| add(kind, "", path, default));
        }
    }
    rows.values_mut().for_each(|rows| rows.sort_by_key(|row| std::cmp::Reverse(row.steps.len())));
    rows
});

fn parse_step(text: &'static str) -> PathStep {
    let (keys, items) = text.strip_suffix("[]").map_or((text, false), |keys| (keys, true));
    PathStep { keys: keys.split('|').collect(), items }
}

/// Removes the defaults from an object of `group/Kind`.
pub fn strip_defaults(kind: &str, object: &mut Value) {
    for kind in [kind, "*"] {
        for row in ROWS.get(kind).into_iter().flatten() {
            take_default(object, &row.steps, &row.default);
        }
    }
}

fn take_default(value: &mut Value, steps: &[PathStep], default: &Value) {
    let (Value::Object(map), Some((step, rest))) = (value, steps.split_first()) else { return };
    for key in &step.keys {
        if rest.is_empty() {
            if map.get(*key) == Some(default) {
                map.shift_remove(*key);
            }
            continue;
        }
        match (map.get_mut(*key), step.items) {
            (Some(Value::Array(items)), true) => {
                items.iter_mut().for_each(|item| take_default(item, rest, default))
            }
            (Some(next), false) => take_default(next, rest, default),
            (Some(_), true) | (None, _) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;
    use serde_json::json;

    #[test]
    fn every_default_is_json_and_no_row_stands_twice() {
        let mut seen = std::collections::BTreeSet::new();
        for (kinds, path, default) in TABLE {
            serde_json::from_str::<Value>(default).unwrap_or_else(|e| panic!("{path}: {e}"));
            assert!(seen.insert((kinds, path, default)), "{kinds} {path}");
            assert!(*kinds == "pod" || *kinds == "*" || kinds.contains('/'), "{kinds}");
        }
    }

    #[test]
    fn what_an_api_server_fills_in_is_taken_out() {
        let mut filled = json!({
            "metadata": {"name": "a", "creationTimestamp": null, "labels": {}},
            "spec": {
                "replicas": 1,
                "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}},
                "template": {"spec": {
                    "restartPolicy": "Always",
                    "containers": [{
                        "name": "a", "ports": [{"containerPort": 80, "protocol": "TCP"}],
                        "livenessProbe": {"httpGet": {"path": "/", "scheme": "HTTP"}, "periodSeconds": 10},
                    }],
                    "volumes": [{"name": "v", "configMap": {"name": "c", "defaultMode": 420}}],
                }},
            },
            "status": {},
        });
        strip_defaults("apps/Deployment", &mut filled);
        assert_eq!(
            filled,
            json!({
                "metadata": {"name": "a"},
                "spec": {"replicas": 1, "template": {"spec": {
                    "containers": [{
                        "name": "a", "ports": [{"containerPort": 80}], "livenessProbe": {"httpGet": {"path": "/"}},
                    }],
                    "volumes": [{"name": "v", "configMap": {"name": "c"}}],
                }}},
            })
        );
    }

    #[test]
    fn a_value_that_is_no_default_and_a_kind_that_is_not_in_the_table_stay() {
        let object = json!({"spec": {"revisionHistoryLimit": 3, "strategy": {"type": "Recreate"}}});
        let mut same = object.clone();
        strip_defaults("apps/Deployment", &mut same);
        assert_eq!(same, object);
        let object = json!({"spec": {"revisionHistoryLimit": 10}});
        let mut same = object.clone();
        strip_defaults("argoproj.io/Rollout", &mut same);
        assert_eq!(same, object);
    }
}
