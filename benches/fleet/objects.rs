//! A fleet as files: N Orders in namespaces of a hundred, each with its Preparations, one Environment.

use expedite::model::id::Digest;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

/// How large a fleet is.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    /// Orders, in namespaces of a hundred.
    pub orders: usize,
    /// Clusters of the one Environment.
    pub clusters: usize,
    /// Preparations of each Order.
    pub preparations: usize,
}

/// A P-256 key that nothing here is signed with: the benchmark hands evidence in.
const KEY: &str = include_str!("../../fixtures/shop/keys/test-renderer.pub");

/// Writes the fleet below `objects` and says how many files it has: one per Order, one per Preparation,
/// three for all.
pub fn write(objects: &Path, shape: Shape) -> usize {
    let mut files = 0;
    let mut put = |path: String, text: String| {
        let path = objects.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        files += 1;
    };
    let clusters: Vec<String> = (1..=shape.clusters).map(|n| format!("cluster-{n}")).collect();
    let mut text = String::new();
    for name in &clusters {
        let _ = write!(
            text,
            "---\napiVersion: delivery.kokumi.dev/v1alpha1\nkind: Cluster\nmetadata:\n  name: {name}\n  labels: {{stage: production}}\n\
             spec:\n  server: https://{name}.k8s.fleet.example:6443\n"
        );
    }
    put("clusters.yaml".into(), text);
    put(
        "environments.yaml".into(),
        format!(
            "apiVersion: delivery.kokumi.dev/v1alpha1\nkind: Environment\nmetadata:\n  name: production\nspec:\n  clusters: [{}]\n",
            clusters.join(", ")
        ),
    );
    let key: String = KEY.lines().map(|line| format!("        {line}\n")).collect();
    put(
        "kitchen.yaml".into(),
        format!(
            "apiVersion: delivery.kokumi.dev/v1alpha1\nkind: Kitchen\nmetadata:\n  name: default\nspec:\n  trust:\n    keys:\n    - name: renderer\n      publicKey: |\n{key}"
        ),
    );
    for n in 0..shape.orders {
        let (namespace, name) = (format!("team-{:03}", n / 100), format!("service-{:02}", n % 100));
        put(format!("{namespace}/{name}.yaml"), order(&namespace, &name));
        let mut parent = None;
        for version in 1..=shape.preparations {
            let digest = Digest::hash_bytes(format!("{namespace}/{name} {version}").as_bytes());
            let text = preparation(&namespace, &name, version, digest, parent);
            put(format!("{namespace}/{name}/{}.yaml", digest.format_short()), text);
            parent = Some(digest);
        }
    }
    files
}

fn order(namespace: &str, name: &str) -> String {
    format!(
        "apiVersion: delivery.kokumi.dev/v1alpha1\nkind: Order\nmetadata:\n  name: {name}\n  namespace: {namespace}\n  labels: {{team: {namespace}}}\n\
         spec:\n  source:\n    oci: oci://registry.fleet.example:5000/bases/{name}\n    version: 1.0.0\n  environment: production\n  promotion:\n    mode: Automatic\n"
    )
}

fn preparation(
    namespace: &str,
    name: &str,
    version: usize,
    digest: Digest,
    parent: Option<Digest>,
) -> String {
    let base = Digest::hash_bytes(format!("base {name} {version}").as_bytes());
    let parent = parent.map_or_else(String::new, |parent| format!("  parentDigest: {parent}\n"));
    format!(
        "apiVersion: delivery.kokumi.dev/v1alpha1\nkind: Preparation\nmetadata:\n  name: {name}-{short}\n  namespace: {namespace}\n  creationTimestamp: \"2026-01-{version:02}T08:00:00Z\"\n\
         spec:\n  orderName: {name}\n  source:\n    oci: oci://registry.fleet.example:5000/bases/{name}\n    baseDigest: {base}\n\
         \x20 renderer:\n    version: 0.6.1\n    digest: {base}\n    renderType: Manifest\n  configHash: {base}\n\
         \x20 artifact:\n    ociRef: oci://registry.fleet.example:5000/{namespace}/{name}@{digest}\n    digest: {digest}\n    signed: true\n{parent}\
         \x20 commitMessage: Version {version} of {name}\n  gitSource:\n    repo: https://git.fleet.example/{name}.git\n    commitHash: {commit}\n    tag: v{version}.0.0\n",
        short = digest.format_short(),
        commit = &base.format_hex()[..40],
    )
}
