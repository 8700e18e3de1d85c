//! Previews through the real binary: the plan as a page, rendered as a forge would; what a change causes
//! (`--base`); a plan that is expected (`--expect`); diffs for a terminal.

mod base;
mod expect;
mod page;

use crate::support::harness::Place;
use crate::support::layout::Layout;
use flate2::write::GzEncoder;
use serde_json::json;
use std::fmt::Write as _;

/// After the shop's newest Preparation.
const AT: &str = "2026-02-10T12:00:00Z";
const BASKET: &str = "basket-b49b09790c53";

/// An artifact of `files` in the layout of `order`'s repository, without any evidence, and the Preparation `name`
/// of it; its digest.
fn prepare(place: &Place, order: &str, name: &str, message: &str, files: &[(&str, &str)]) -> String {
    let mut tar = tar::Builder::new(GzEncoder::new(Vec::new(), flate2::Compression::fast()));
    for (path, text) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(text.len() as u64);
        header.set_mode(0o644);
        tar.append_data(&mut header, path, text.as_bytes()).unwrap();
    }
    let bytes = tar.into_inner().unwrap().finish().unwrap();
    let layout = Layout::create(place.path("registry").join(order));
    let blob = |kind: &str, bytes: &[u8]| json!({"mediaType": kind, "digest": layout.add(bytes), "size": bytes.len()});
    let manifest = json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": blob("application/vnd.oci.empty.v1+json", b"{}"),
        "layers": [blob("application/vnd.oci.image.layer.v1.tar+gzip", &bytes)],
    });
    let bytes = serde_json::to_vec(&manifest).unwrap();
    let digest = layout.add(&bytes);
    let mut entries = layout.entries();
    entries.push(json!({"mediaType": manifest["mediaType"], "digest": digest, "size": bytes.len()}));
    layout.set_entries(&entries);
    preparation(place, order, name, message, &digest);
    digest
}

/// The Preparation `name` of an artifact.
fn preparation(place: &Place, order: &str, name: &str, message: &str, digest: &str) {
    let (namespace, order_name) = order.split_once('/').unwrap();
    let object = json!({
        "apiVersion": "delivery.kokumi.dev/v1alpha1",
        "kind": "Preparation",
        "metadata": {"name": name, "namespace": namespace, "creationTimestamp": "2026-02-09T00:00:00Z"},
        "spec": {
            "orderName": order_name,
            "commitMessage": message,
            "artifact": {
                "ociRef": format!("oci://registry.shop.example:5000/{order}@{digest}"), "digest": digest, "signed": true,
            },
        },
    });
    place.write(&format!("objects/preparations/{namespace}-{name}.json"), object.to_string());
}

/// So many ConfigMaps in one file.
fn config_maps(count: usize, text: &str) -> String {
    (0..count).fold(String::new(), |mut all, n| {
        let _ = write!(
            all,
            "---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: c{n}\ndata:\n  a: {}\n",
            text.repeat(30)
        );
        all
    })
}

/// HTML as a forge makes it, before it takes out what it does not allow.
fn rendered(markdown: &str) -> String {
    let mut options = comrak::Options::default();
    options.extension.table = true;
    options.extension.autolink = true;
    options.extension.strikethrough = true;
    options.extension.tasklist = true;
    options.extension.footnotes = true;
    options.extension.math_dollars = true;
    options.extension.alerts = true;
    options.render.r#unsafe = true;
    comrak::markdown_to_html(markdown, &options)
}

/// Every tag of a page, with its attributes; comments aside.
fn tags(html: &str) -> Vec<String> {
    let mut all = Vec::new();
    let mut rest = html;
    while let Some(start) = rest.find('<') {
        rest = &rest[start..];
        let end = if rest.starts_with("<!--") {
            rest.find("-->").map(|e| e + 3)
        } else {
            rest.find('>').map(|e| e + 1)
        };
        let (tag, after) = rest.split_at(end.unwrap_or_else(|| panic!("an open tag: {rest}")));
        if !tag.starts_with("<!--") {
            all.push(tag.to_owned());
        }
        rest = after;
    }
    all
}

/// Text of a page outside of code, as a forge looks through it for mentions and references.
fn prose(html: &str) -> String {
    let mut out = String::new();
    let (mut rest, mut code) = (html, 0_usize);
    while let Some(start) = rest.find('<') {
        if code == 0 {
            out.push_str(&rest[..start]);
        }
        let tag_end = start
            + if rest[start..].starts_with("<!--") {
                rest[start..].find("-->").unwrap() + 3
            } else {
                rest[start..].find('>').unwrap() + 1
            };
        let tag = &rest[start..tag_end];
        if tag.starts_with("<code") || tag.starts_with("<pre") {
            code += 1;
        } else if tag == "</code>" || tag == "</pre>" {
            code -= 1;
        }
        rest = &rest[tag_end..];
    }
    out + rest
}
