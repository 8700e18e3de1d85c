//! What comparing two large artifacts costs once they are pulled: `cargo bench --bench diff [-- RESOURCES]`
//! (5,000 when none is given). One layer is a chart's single file, the other kustomize's file per object; a tenth
//! of the resources change, some come, some go. Unpacking, parsing, comparing and printing are all counted.

// A table on stdout is the result; an artifact that cannot be built is a failed benchmark.
#![allow(clippy::print_stdout, clippy::unwrap_used, clippy::panic)]

use expedite::compare::{ArtifactSide, compare_artifacts};
use expedite::evidence::artifact::{LAYER_TYPES, read_manifests};
use expedite::report::diff;
use expedite::verbs::diff::contents::parse_both;
use std::io::Write as _;
use std::time::Instant;

const TRIES: usize = 3;

fn main() {
    let asked = std::env::args().filter_map(|word| word.replace(',', "").parse().ok()).next();
    let count: usize = asked.unwrap_or(5_000);
    println!("{count} resources; milliseconds");
    for (name, one_file) in
        [("one file, as helm template writes it", true), ("a file per object, as kustomize", false)]
    {
        let (old, new) = (layer(count, 1, one_file), layer(count, 2, one_file));
        let best = (0..TRIES).map(|_| compared(&old, &new, count)).min().unwrap();
        println!("{name:<44} {:>10.1}", best.as_secs_f64() * 1e3);
    }
}

fn compared(old: &[u8], new: &[u8], count: usize) -> std::time::Duration {
    let start = Instant::now();
    let unpack = |bytes| read_manifests(LAYER_TYPES[1], bytes, 256 << 20).unwrap();
    let (old, new) = parse_both(unpack(old), unpack(new));
    let side = |resources| ArtifactSide { resources, namespace: Some("shop") };
    let comparison = compare_artifacts(side(&old), side(&new), false);
    let text = diff::format_comparison(&comparison, true);
    let took = start.elapsed();
    let counts = comparison.count_resources();
    assert_eq!(counts.changed, count.div_ceil(10), "every tenth changes");
    assert_eq!((counts.added, counts.removed), (1, 1));
    assert!(text.len() > count);
    took
}

/// Deployments, Services and ConfigMaps of a size that charts have.
fn layer(count: usize, version: usize, one_file: bool) -> Vec<u8> {
    let mut tar = tar::Builder::new(flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast()));
    let mut add = |name: &str, text: &str| {
        let mut header = tar::Header::new_gnu();
        header.set_size(text.len() as u64);
        header.set_mode(0o644);
        tar.append_data(&mut header, name, text.as_bytes()).unwrap();
    };
    let mut all = String::new();
    let own = [object(count + version, 0)];
    for text in (0..count).map(|n| object(n, if n % 10 == 0 { version } else { 0 })).chain(own) {
        match one_file {
            true => all = all + "---\n" + &text,
            false => add(&format!("{:x}.yaml", hash(&text)), &text),
        }
    }
    if one_file {
        add("all.yaml", &all);
    }
    let mut encoder = tar.into_inner().unwrap();
    encoder.flush().unwrap();
    encoder.finish().unwrap()
}

/// A name that does not follow the content of another version's object.
fn hash(text: &str) -> u64 {
    text.lines()
        .find(|l| l.starts_with("  name:"))
        .unwrap()
        .bytes()
        .fold(7, |h, b| (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3))
}

fn object(n: usize, version: usize) -> String {
    let labels = format!("    app.kubernetes.io/name: app-{n}\n    app.kubernetes.io/part-of: shop\n");
    match n % 3 {
        0 => format!(
            "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: app-{n}\n  labels:\n{labels}spec:\n  replicas: 2\n  selector:\n    matchLabels:\n      app.kubernetes.io/name: app-{n}\n  template:\n    metadata:\n      labels:\n        app.kubernetes.io/name: app-{n}\n    spec:\n      containers:\n      - name: main\n        image: registry.shop.example/app-{n}:{version}\n        args: [--listen, \":8080\", \"--level=info\"]\n        ports:\n        - name: http\n          containerPort: 8080\n          protocol: TCP\n        env:\n        - name: A\n          value: \"1\"\n        - name: B\n          valueFrom:\n            configMapKeyRef: {{name: app-{n}, key: b}}\n        resources:\n          requests: {{cpu: 100m, memory: 64Mi}}\n          limits: {{memory: 128Mi}}\n        readinessProbe:\n          httpGet: {{path: /ready, port: http}}\n          periodSeconds: 10\n"
        ),
        1 => format!(
            "apiVersion: v1\nkind: Service\nmetadata:\n  name: app-{n}\n  labels:\n{labels}spec:\n  type: ClusterIP\n  ports:\n  - name: http\n    port: {}\n    targetPort: http\n    protocol: TCP\n  selector:\n    app.kubernetes.io/name: app-{n}\n",
            8080 + version
        ),
        _ => format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: app-{n}\n  labels:\n{labels}data:\n  b: \"{version}\"\n  app.conf: |\n    [server]\n    listen = 8080\n    level = info\n    version = {version}\n"
        ),
    }
}
