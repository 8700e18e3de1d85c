//! Names of Applications and files. They depend only on what never changes.

use crate::model::id::{ApplicationName, ClusterName, Digest, IdError, OrderName, OrderRef, PreparationName};
use sha2::{Digest as _, Sha256};

/// Label: the Serving's name (equal to the Order's).
pub const LABEL_SERVING: &str = "delivery.kokumi.dev/serving";
/// Label: the Serving's namespace.
pub const LABEL_SERVING_NAMESPACE: &str = "delivery.kokumi.dev/serving-namespace";
/// Label: the Order's name.
pub const LABEL_ORDER: &str = "delivery.kokumi.dev/order";
/// Annotation: exactly `<namespace>/<order>` allows that Order to take over an Application.
pub const ALLOWED_ORDER: &str = "delivery.kokumi.dev/allowed-order";
/// Annotation of an Application that handed its workload to another one and is removed once that is observed.
pub const HANDED_OVER: &str = "delivery.kokumi.dev/handed-over";
/// Label: who manages it.
pub const MANAGED_BY: &str = "app.kubernetes.io/managed-by";
/// Our value of [`MANAGED_BY`].
pub const MANAGER: &str = "expedite";
/// Argo CD's cascade finalizer.
pub const FINALIZER: &str = "resources-finalizer.argocd.argoproj.io";
/// API group and version of our kinds.
pub const API_VERSION: &str = "delivery.kokumi.dev/v1alpha1";
/// API group of our kinds.
pub const GROUP: &str = "delivery.kokumi.dev";

/// Longest name of an object, in characters (RFC 1123 subdomain).
const NAME_LIMIT: usize = 253;

/// The first 8 hex digits of SHA-256 over `<namespace>/<order>/<cluster>`: no name can hold a slash, so
/// different triples never share the hashed text.
#[must_use]
pub fn hash_triple(order: &OrderRef, cluster: &ClusterName) -> String {
    let text = format!("{}/{}/{}", order.namespace, order.name, cluster);
    hex::encode(&Sha256::digest(text.as_bytes())[..4])
}

/// `kokumi-<namespace>-<order>-<hash>`, cut before the hash where the whole would pass 253 characters,
/// without a `-` or `.` left before the join (`docs/design/gitops-repository.md#applications`).
///
/// ```
/// use expedite::model::{id::{ClusterName, OrderRef}, naming::build_application_name};
/// let name = |o: &str, c: &str| {
///     build_application_name(&OrderRef::parse(o).unwrap(), &ClusterName::parse(c).unwrap()).unwrap().to_string()
/// };
/// assert_eq!(name("shop/podinfo", "eu-1"), "kokumi-shop-podinfo-9b1944a4");
/// assert_ne!(name("foo-bar/baz", "c"), name("foo/bar-baz", "c"));
/// ```
///
/// # Errors
/// None for checked names; the rule of the type is still checked.
pub fn build_application_name(order: &OrderRef, cluster: &ClusterName) -> Result<ApplicationName, IdError> {
    let hash = hash_triple(order, cluster);
    let mut head = format!("kokumi-{}-{}", order.namespace, order.name);
    head.truncate(NAME_LIMIT - 1 - hash.len());
    let head = head.trim_end_matches(['-', '.']);
    ApplicationName::parse(&format!("{head}-{hash}"))
}

/// `<order>-<first 12 hex digits of the digest>`, cut before the digits where the whole would pass 253 characters:
/// the same artifact has the same name whenever it is prepared.
///
/// ```
/// use expedite::model::{id::{Digest, OrderName}, naming::build_preparation_name};
/// let name = build_preparation_name(&OrderName::parse("podinfo").unwrap(), &Digest::hash_bytes(b"artifact")).unwrap();
/// assert_eq!(name.as_str(), "podinfo-c7c5c1d70c5d");
/// ```
///
/// # Errors
/// None for checked names; the rule of the type is still checked.
pub fn build_preparation_name(order: &OrderName, artifact: &Digest) -> Result<PreparationName, IdError> {
    let digits = artifact.format_short();
    let mut head = order.as_str().to_owned();
    head.truncate(NAME_LIMIT - 1 - digits.len());
    PreparationName::parse(&format!("{}-{digits}", head.trim_end_matches(['-', '.'])))
}

/// `<namespace>/<preparation>.yaml`, below the folder that Preparations are kept in.
#[must_use]
pub fn build_preparation_path(order: &OrderRef, name: &PreparationName) -> String {
    format!("{}/{name}.yaml", order.namespace)
}

/// `applications/<namespace>/<application>.yaml`.
#[must_use]
pub fn build_application_path(order: &OrderRef, name: &ApplicationName) -> String {
    format!("applications/{}/{name}.yaml", order.namespace)
}

/// `servings/<namespace>/<order>.yaml`.
#[must_use]
pub fn build_serving_path(order: &OrderRef) -> String {
    format!("servings/{}/{}.yaml", order.namespace, order.name)
}

/// `records/<namespace>/<order>/<sha256>.json`.
#[must_use]
pub fn build_record_path(order: &OrderRef, sha256_hex: &str) -> String {
    format!("records/{}/{}/{sha256_hex}.json", order.namespace, order.name)
}

/// The arguments of [`build_record_path`] for this path; `None`: it is not the path of a record.
///
/// ```
/// use expedite::model::{id::{Digest, OrderRef}, naming::{build_record_path, parse_record_path}};
/// let (order, digest) = (OrderRef::parse("shop/podinfo").unwrap(), Digest::hash_bytes(b"bundle"));
/// assert_eq!(parse_record_path(&build_record_path(&order, &digest.format_hex())), Some((order, digest)));
/// assert_eq!(parse_record_path("records/shop/podinfo/readme.json"), None);
/// ```
#[must_use]
pub fn parse_record_path(path: &str) -> Option<(OrderRef, Digest)> {
    let (order, name) = path.strip_prefix("records/")?.rsplit_once('/')?;
    let digest = Digest::from_hex(name.strip_suffix(".json")?).ok()?;
    Some((OrderRef::parse(order).ok()?, digest))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;

    fn name(order: &str, cluster: &str) -> String {
        let order = OrderRef::parse(order).unwrap();
        build_application_name(&order, &ClusterName::parse(cluster).unwrap()).unwrap().to_string()
    }

    /// Golden: these names are in repositories of users and must never change.
    #[test]
    fn b10_names_are_for_ever_and_do_not_meet() {
        let names = [
            ("foo-bar/baz", "c", "kokumi-foo-bar-baz-b3f32dca"),
            ("foo/bar-baz", "c", "kokumi-foo-bar-baz-1052b954"),
            ("foo-bar/baz", "c-d", "kokumi-foo-bar-baz-a8a0a3df"),
            ("foo/bar-baz", "c-d", "kokumi-foo-bar-baz-83f56528"),
            ("foo-bar/baz-c", "d", "kokumi-foo-bar-baz-c-ccbbbc9b"),
            ("shop/podinfo", "eu-1", "kokumi-shop-podinfo-9b1944a4"),
        ];
        for (order, cluster, golden) in names {
            assert_eq!(name(order, cluster), golden, "{order} on {cluster}");
        }
    }

    #[test]
    fn b11_a_long_name_is_cut_before_its_hash_and_stays_its_own() {
        let namespace = "n".repeat(63);
        let a = format!("{}a{}", "o".repeat(199), "o".repeat(53));
        let b = format!("{}b{}", "o".repeat(199), "o".repeat(53));
        let (a, b) = (name(&format!("{namespace}/{a}"), "c"), name(&format!("{namespace}/{b}"), "c"));
        assert_ne!(a, b, "they differ behind the cut alone");
        assert!(a.len() <= 253 && a.rsplit('-').next().unwrap().len() == 8, "{a}");
        // A hyphen, or a dot, where the cut falls.
        for join in ['-', '.'] {
            let order = format!("{}{join}{}", "o".repeat(172), "o".repeat(80));
            let cut = name(&format!("{namespace}/{order}"), "c");
            let (head, _) = cut.rsplit_once('-').unwrap();
            assert!(head.len() == 243 && head.ends_with('o'), "{cut}");
        }
        // A short one is not touched, wherever its hyphens are.
        let order = "shop/thirty-nine-characters-come-before-thi-s";
        assert_eq!(
            name(order, "c").rsplit_once('-').unwrap().0,
            format!("kokumi-{}", order.replace('/', "-"))
        );
    }
}
