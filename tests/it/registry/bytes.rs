//! Manifests and blobs: hashes, sizes, caps, embedded data.

use super::*;
use crate::support::hostile::{Answer as Wire, Fault, Hostile};
use base64::Engine;
use oci_registry::Reference;
use oci_registry::UnreadReason;
use serde_json::json;

const REPO: &str = "shop/podinfo";

fn with_artifact() -> (Hostile, Digest) {
    let registry = Hostile::start();
    let digest = registry.push_artifact(REPO, &[("app.yaml", b"kind: ConfigMap\n")]);
    (registry, digest)
}

#[tokio::test]
async fn b39_case_64_other_bytes_are_refused_whatever_the_header_says() {
    const OTHER: &[u8] = br#"{"schemaVersion":2,"other":true}"#;
    let of_other = Digest::hash_bytes(OTHER).to_string();
    // That of the right bytes, of the wrong ones, empty, none.
    for header in [Some("honest"), Some(of_other.as_str()), Some(""), None] {
        let header = header.map(str::to_owned);
        let (registry, digest) = with_artifact();
        registry.fault(
            9,
            |_| true,
            Fault::change(move |_, a| {
                a.body = OTHER.to_vec();
                if header.as_deref() == Some("honest") {
                    return;
                }
                a.headers.retain(|(n, _)| n != "Docker-Content-Digest");
                if let Some(header) = &header {
                    a.headers.push(("Docker-Content-Digest".into(), header.clone()));
                }
            }),
        );
        let registries = registries(&registry);
        let why =
            unread(registries.fetch_manifest(&repository(&registry, REPO), &Reference::Digest(digest)).await);
        assert_eq!((why.reason, why.retryable), (UnreadReason::Error, false));
        assert_eq!(why.why, "integrity: the bytes do not hash to the digest");
        assert_eq!(registry.log().len(), 2, "a broken cache gets one more chance, no more");
    }
}

#[tokio::test]
async fn b39_right_bytes_with_an_empty_or_lying_digest_header_are_accepted() {
    for header in ["", "sha256:00", "nonsense"] {
        let (registry, digest) = with_artifact();
        registry.fault(
            9,
            |_| true,
            Fault::change(move |_, a| {
                a.headers.retain(|(n, _)| n != "Docker-Content-Digest");
                a.headers.push(("Docker-Content-Digest".into(), header.into()));
            }),
        );
        let registries = registries(&registry);
        let name = repository(&registry, REPO);
        let manifest = found(registries.fetch_manifest(&name, &Reference::Digest(digest)).await);
        assert_eq!((manifest.digest, Digest::hash_bytes(&manifest.bytes)), (digest, digest));
        found(registries.holds_manifest(&name, &digest).await);
    }
}

#[tokio::test]
async fn b39_case_64_a_blob_with_one_bit_changed_is_never_given_out() {
    let registry = Hostile::start();
    registry.push_blob(REPO, b"evidence");
    let registries = registries(&registry);
    let name = repository(&registry, REPO);
    assert_eq!(&found(registries.fetch_blob(&name, &blob_of(b"evidence"), 100).await)[..], b"evidence");
    registry.fault(1, |_| true, Fault::Flip);
    assert_eq!(
        &found(registries.fetch_blob(&name, &blob_of(b"evidence"), 100).await)[..],
        b"evidence",
        "healed"
    );
    registry.fault(9, |_| true, Fault::Flip);
    let why = unread(registries.fetch_blob(&name, &blob_of(b"evidence"), 100).await);
    assert_eq!((why.reason, why.status), (UnreadReason::Error, Some(200)));
    assert!(why.why.starts_with("integrity: "), "{}", why.why);
}

#[tokio::test]
async fn a_tag_is_resolved_to_the_digest_of_its_bytes() {
    let (registry, digest) = with_artifact();
    registry.tag(REPO, "v1", digest);
    let registries = registries(&registry);
    let name = repository(&registry, REPO);
    assert_eq!(found(registries.fetch_manifest(&name, &Reference::Tag("v1".into())).await).digest, digest);
    absent(registries.fetch_manifest(&name, &Reference::Tag("v2".into())).await);
    let before = registry.log().len();
    for tag in ["../../token", "a b", "", "a?b=c"] {
        unread(registries.fetch_manifest(&name, &Reference::Tag(tag.into())).await);
    }
    assert_eq!(registry.log().len(), before, "what is no tag is not asked for");
    registry.fault(9, |_| true, Fault::Answer(Wire::html(200)));
    unread(registries.fetch_manifest(&name, &Reference::Tag("v1".into())).await);
}

#[tokio::test]
async fn absent_is_said_by_a_registry_not_by_a_web_server() {
    let (registry, digest) = with_artifact();
    let registries = registries(&registry);
    let name = repository(&registry, REPO);
    let gone = Digest::hash_bytes(b"gone");
    absent(registries.fetch_manifest(&name, &Reference::Digest(gone)).await);
    absent(registries.holds_manifest(&name, &gone).await);
    absent(registries.holds_blob(&name, &gone).await);
    absent(registries.fetch_blob(&name, &blob_of(b"gone"), 100).await);
    found(registries.holds_manifest(&name, &digest).await);
    for answer in [
        Wire::html(404),
        Wire::new(404, "text/plain", "404 page not found\n"),
        Wire::error(404, "DENIED"),
        Wire::error(410, "GONE"),
        Wire::html(200),
    ] {
        registry.heal();
        registry.fault(99, |_| true, Fault::Answer(answer.clone()));
        unread(registries.fetch_manifest(&name, &Reference::Digest(gone)).await);
        unread(registries.holds_manifest(&name, &gone).await);
        unread(registries.holds_blob(&name, &gone).await);
        unread(registries.fetch_blob(&name, &blob_of(b"gone"), 100).await);
    }
}

#[tokio::test]
async fn a_head_that_fails_is_repeated_as_a_get_that_says_why() {
    let (registry, digest) = with_artifact();
    let registries = registries(&registry);
    let name = repository(&registry, REPO);
    let layer = registry.push_blob(REPO, b"layer");
    registry.fault(9, |r| r.method == "HEAD", Fault::Answer(Wire::new(405, "", "")));
    found(registries.holds_manifest(&name, &digest).await);
    found(registries.holds_blob(&name, &layer).await);
    registry.fault(9, |r| r.method == "GET", Fault::status(403));
    let why = unread(registries.holds_blob(&name, &layer).await);
    assert_eq!((why.reason, why.status), (UnreadReason::Unauthorized, Some(403)));
    assert_eq!(
        why.why,
        "pull from shop/podinfo, asked without credentials, is denied (403): DENIED said by the registry"
    );
    assert_eq!(why.request, format!("GET {}/v2/{REPO}/blobs/{layer}", registry.url()));
}

#[tokio::test]
async fn case_65_a_cap_is_kept_without_reading_on() {
    let registry = Hostile::start();
    let mut config = config(&registry);
    config.limits.manifest = 1000;
    let registries = Registries::new(config).unwrap();
    let name = repository(&registry, REPO);
    // A descriptor beyond the cap costs no request.
    let why = unread(registries.fetch_blob(&name, &blob_of(&[0; 2000]), 1999).await);
    assert_eq!(why.reason, UnreadReason::Error);
    assert!(registry.log().is_empty());
    // A manifest of more than the cap, announced or not.
    let big = registry.push_manifest(REPO, "application/json", &[b' '; 1001]);
    let why = unread(registries.fetch_manifest(&name, &Reference::Digest(big)).await);
    assert_eq!((why.why.as_str(), why.retryable), ("longer than 1000 bytes", false));
    assert_eq!(registry.log().len(), 1);
    registry.fault(9, |_| true, Fault::Endless);
    unread(registries.fetch_manifest(&name, &Reference::Digest(big)).await);
    // A descriptor of 8 bytes and a body without end, or one byte longer, or one shorter.
    registry.push_blob(REPO, b"evidence");
    let why = unread(registries.fetch_blob(&name, &blob_of(b"evidence"), 100).await);
    assert_eq!(why.why, "longer than 8 bytes");
    registry.heal();
    registry.fault(9, |_| true, Fault::change(|_, a| a.body.push(b'!')));
    assert_eq!(
        unread(registries.fetch_blob(&name, &blob_of(b"evidence"), 100).await).why,
        "longer than 8 bytes"
    );
    registry.heal();
    registry.fault(9, |_| true, Fault::change(|_, a| a.body.truncate(7)));
    let why = unread(registries.fetch_blob(&name, &blob_of(b"evidence"), 100).await);
    assert_eq!(why.why, "integrity: the bytes are not as many as the descriptor says");
}

#[tokio::test]
async fn case_66_compressed_bytes_are_bytes_and_are_not_unpacked() {
    let bomb = {
        let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        std::io::Write::write_all(&mut gz, &vec![0; 64 << 20]).unwrap();
        gz.finish().unwrap()
    };
    let (registry, digest) = with_artifact();
    registry.push_blob(REPO, b"evidence");
    let body = bomb.clone();
    registry.fault(
        99,
        |_| true,
        Fault::change(move |_, a| {
            a.body = body.clone();
            a.headers.push(("Content-Encoding".into(), "gzip".into()));
        }),
    );
    let registries = registries(&registry);
    let name = repository(&registry, REPO);
    assert!(
        unread(registries.fetch_manifest(&name, &Reference::Digest(digest)).await)
            .why
            .starts_with("integrity")
    );
    unread(registries.fetch_manifest(&name, &Reference::Tag("v1".into())).await);
    unread(registries.fetch_blob(&name, &blob_of(b"evidence"), 100).await);
    assert!(registries.fetch_referrers(&name, &digest).await.unread.is_some());
    assert!(registry.log().iter().all(|s| s.request.header("accept-encoding").is_none()));
}

#[tokio::test]
async fn embedded_data_needs_no_request_and_is_checked() {
    let registry = Hostile::start();
    registry.push_blob(REPO, b"evidence");
    let registries = registries(&registry);
    let name = repository(&registry, REPO);
    let embedded = |data: String| {
        let mut blob = blob_of(b"evidence");
        blob.data = Some(data);
        blob
    };
    let base64 = |bytes: &[u8]| base64::engine::general_purpose::STANDARD.encode(bytes);
    assert_eq!(
        &found(registries.fetch_blob(&name, &embedded(base64(b"evidence")), 100).await)[..],
        b"evidence"
    );
    for wrong in [base64(b"evidencf"), base64(b"evidence!"), "%%%".to_owned(), String::new()] {
        let why = unread(registries.fetch_blob(&name, &embedded(wrong), 100).await);
        assert_eq!(why.reason, UnreadReason::Error);
        assert!(why.why.starts_with("integrity: "), "{}", why.why);
    }
    unread(registries.fetch_blob(&name, &embedded(base64(b"evidence")), 7).await);
    assert!(registry.log().is_empty());
}

#[tokio::test]
async fn case_63_the_blob_of_a_manifest_that_is_gone_is_absent_and_the_manifest_is_not() {
    let registry = Hostile::start();
    let subject = registry.push_artifact(REPO, &[]);
    let referrer = registry.push_referrer(REPO, &subject, "application/x", b"bundle");
    registry.store().repository(REPO).blobs.remove(&Digest::hash_bytes(b"bundle"));
    let registries = registries(&registry);
    let name = repository(&registry, REPO);
    found(registries.fetch_manifest(&name, &Reference::Digest(referrer)).await);
    absent(registries.fetch_blob(&name, &blob_of(b"bundle"), 100).await);
}

#[tokio::test]
async fn the_media_type_is_the_manifests_own() {
    let registry = Hostile::start();
    let own = registry.push_manifest(REPO, "text/plain", br#"{"mediaType":"application/x"}"#);
    let other =
        registry.push_manifest(REPO, "Application/Y; charset=utf-8", json!({"a": 1}).to_string().as_bytes());
    let registries = registries(&registry);
    let name = repository(&registry, REPO);
    assert_eq!(
        found(registries.fetch_manifest(&name, &Reference::Digest(own)).await).media_type,
        "application/x"
    );
    assert_eq!(
        found(registries.fetch_manifest(&name, &Reference::Digest(other)).await).media_type,
        "application/y"
    );
}
