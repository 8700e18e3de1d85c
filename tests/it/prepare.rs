//! `prepare` through the real binary: what it writes, what it refuses; and the documented pipeline with real oras,
//! cosign and kubectl, from a commit to the Application that a run commits.

mod pipeline;
mod refused;
mod written;

use crate::support::harness::{Place, Said};
use crate::support::layout::Layout;
use crate::support::{forge, layout};

const HOST: &str = "registry.shop.example:5000";

/// `prepare` on the shop.
fn prepare(place: &Place, reference: &str, order: &str, more: &[&str]) -> Said {
    let own = ["prepare", reference, "--order", order, "--config", "expedite.yaml"];
    place.expedite(&[&own, more].concat())
}

/// The digest of a tag in the shop's layouts.
fn tagged(place: &Place, order: &str, tag: &str) -> String {
    layout::repository(&place.path("registry"), order).tagged(tag)
}

/// One artifact of `order` in the shop's registry, signed and attested by a key that the Kitchen trusts, with these
/// annotations and this much more of provenance.
fn made(
    place: &Place,
    order: &str,
    annotations: &serde_json::Value,
    dependencies: &serde_json::Value,
) -> String {
    let renderer = forge::Renderer::new(9);
    let layout = Layout::create(place.path("registry").join(order));
    let plain = renderer.prepare(&place.path("scratch"), order, "made");
    let scratch = layout::Layout::at(place.path("scratch").join(order));
    let mut manifest = scratch.manifest(&plain);
    manifest["annotations"] = annotations.clone();
    for part in [&manifest["config"], &manifest["layers"][0]] {
        layout.add(&scratch.bytes(part["digest"].as_str().unwrap()));
    }
    let bytes = serde_json::to_vec(&manifest).unwrap();
    let digest = layout.add(&bytes);
    let mut entries = layout.entries();
    entries.push(serde_json::json!({
        "mediaType": manifest["mediaType"], "digest": digest, "size": bytes.len(),
        "annotations": {"org.opencontainers.image.ref.name": "made"},
    }));
    layout.set_entries(&entries);
    let (namespace, name) = order.split_once('/').unwrap();
    renderer.attest(&layout, &digest, "https://sigstore.dev/cosign/sign/v1", serde_json::json!({}));
    let provenance = serde_json::json!({
        "buildDefinition": {
            "buildType": "https://ci.shop.example/render/v1",
            "externalParameters": {"order": {"namespace": namespace, "name": name}},
            "resolvedDependencies": dependencies,
        },
        "runDetails": {"builder": {"id": "https://ci.shop.example/renderer"}},
    });
    renderer.attest(&layout, &digest, "https://slsa.dev/provenance/v1", provenance);
    trust(place, &renderer.public_key());
    digest
}

/// Adds a key to the shop's Kitchen.
fn trust(place: &Place, public_key: &str) {
    let key: String = public_key.lines().map(|line| format!("        {line}\n")).collect();
    place.edit(
        "objects/kitchen.yaml",
        "    - name: job\n",
        &format!("    - name: made\n      publicKey: |\n{key}    - name: job\n"),
    );
}
