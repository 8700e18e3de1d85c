//! Image layout folders as a registry, read and written.

use super::writing::Record;
use super::*;
use crate::support::layout::Layout;
use crate::support::peers::peer;
use oci_registry::UnreadReason;
use oci_registry::{AttachError, AttachOutcome};
use oci_registry::{EvidencePlace, Reference, Referrers};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const REGISTRY: &str = "registry.shop.example:5000";
const BUNDLE: &str = "application/vnd.dev.sigstore.bundle.v0.3+json";

fn at(root: &Path) -> Registries {
    let host = HostConfig { layout: Some(root.to_owned()), ..HostConfig::default() };
    let hosts = [(REGISTRY.to_owned(), host)].into();
    Registries::new(RegistriesConfig { hosts, limits: limits(), offline: true, ..Default::default() })
        .unwrap()
}

fn name(path: &str) -> OciRepository {
    OciRepository::parse(&format!("{REGISTRY}/{path}")).unwrap()
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        match entry.file_type().unwrap().is_dir() {
            true => copy(&entry.path(), &to.join(entry.file_name())),
            false => drop(fs::copy(entry.path(), to.join(entry.file_name())).unwrap()),
        }
    }
}

/// The example's registry, for this test alone.
fn shop() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("registry");
    copy(&Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/shop/registry"), &root);
    (folder, root)
}

/// An artifact of the example that has referrers: its digest and how many.
fn with_referrers(root: &Path) -> (Digest, usize) {
    let layout = Layout::at(root.join("shop/storefront"));
    let mut subjects = std::collections::BTreeMap::<String, usize>::new();
    for entry in layout.entries() {
        let manifest = layout.manifest(entry["digest"].as_str().unwrap());
        if let Some(subject) = manifest["subject"]["digest"].as_str() {
            *subjects.entry(subject.to_owned()).or_default() += 1;
        }
    }
    let (digest, n) = subjects.into_iter().max_by_key(|(_, n)| *n).unwrap();
    (Digest::parse(&digest).unwrap(), n)
}

async fn list(root: &Path, subject: &Digest) -> Referrers {
    at(root).fetch_referrers(&name("shop/storefront"), subject).await
}

fn file_of(root: &Path, digest: &Digest) -> PathBuf {
    root.join("shop/storefront/blobs/sha256").join(digest.format_hex())
}

#[tokio::test]
async fn the_listed_manifests_are_opened_to_see_what_they_refer_to() {
    let (_folder, root) = shop();
    let (subject, n) = with_referrers(&root);
    let registries = at(&root);
    let listed = registries.fetch_referrers(&name("shop/storefront"), &subject).await;
    assert_eq!((listed.unread.as_ref(), listed.entries.len(), listed.left_out), (None, n, None));
    for (place, entry) in &listed.entries {
        assert_eq!(*place, EvidencePlace::Layout);
        assert_eq!(entry.artifact_type.as_deref(), Some(BUNDLE), "the manifest's own, not the list's");
        let manifest = found(
            registries.fetch_manifest(&name("shop/storefront"), &Reference::Digest(entry.digest)).await,
        );
        let body: Value = serde_json::from_slice(&manifest.bytes).unwrap();
        assert_eq!(body["subject"]["digest"], json!(subject));
        let layer = serde_json::from_value(body["layers"][0].clone()).unwrap();
        found(registries.fetch_blob(&name("shop/storefront"), &layer, 1 << 20).await);
    }
    found(registries.holds_manifest(&name("shop/storefront"), &subject).await);
    assert!(registries.collect_requests().is_empty());
}

#[tokio::test]
async fn tags_are_ref_names_short_or_whole() {
    let (_folder, root) = shop();
    let layout = Layout::at(root.join("shop/storefront"));
    let (subject, _) = with_referrers(&root);
    for (ref_name, tag, hit) in [
        ("v9", "v9", true),
        ("registry.shop.example:5000/shop/storefront:v9", "v9", true),
        ("shop/storefront:v9", "v9", true),
        ("xv9", "v9", false),
        ("shop/v9", "v9", false),
        ("sha256-00.sig", "sha256-00.sig", true),
    ] {
        let bytes = layout.bytes(&subject.to_string());
        layout.set_entries(&[
            json!({"mediaType": "application/vnd.oci.image.manifest.v1+json", "digest": subject,
            "size": bytes.len(), "annotations": {"org.opencontainers.image.ref.name": ref_name}}),
        ]);
        let answer = at(&root).fetch_manifest(&name("shop/storefront"), &Reference::Tag(tag.into())).await;
        match hit {
            true => assert_eq!(found(answer).digest, subject, "{ref_name}"),
            false => absent(answer),
        }
    }
}

#[tokio::test]
async fn what_is_not_there_is_absent_and_a_missing_root_is_not() {
    let (folder, root) = shop();
    let gone = Digest::hash_bytes(b"gone");
    let registries = at(&root);
    for path in ["shop/storefront", "shop/unknown", "shop", "unknown/deep/path"] {
        absent(registries.holds_manifest(&name(path), &gone).await);
        absent(registries.holds_blob(&name(path), &gone).await);
        absent(registries.fetch_blob(&name(path), &blob_of(b"gone"), 100).await);
        absent(registries.fetch_manifest(&name(path), &Reference::Tag("none".into())).await);
        let listed = registries.fetch_referrers(&name(path), &gone).await;
        assert!(listed.unread.is_none() && listed.entries.is_empty());
    }
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    for root in [folder.path().join("nowhere"), file] {
        let registries = at(&root);
        let name = name("shop/storefront");
        for why in [
            unread(registries.holds_manifest(&name, &gone).await),
            unread(registries.holds_blob(&name, &gone).await),
            unread(registries.fetch_blob(&name, &blob_of(b"gone"), 100).await),
            registries.fetch_referrers(&name, &gone).await.unread.unwrap(),
        ] {
            assert_eq!(why.reason, UnreadReason::Unreachable);
            assert!(why.why.contains("image layout root"), "{}", why.why);
            assert!(
                !why.request.contains(folder.path().to_str().unwrap()),
                "no machine path: {}",
                why.request
            );
        }
    }
}

#[tokio::test]
async fn a_layout_that_is_broken_is_unread() {
    let gone = Digest::hash_bytes(b"gone");
    type Break = fn(&Path);
    let breaks: [(&str, Break); 9] = [
        ("no marker", |l| fs::remove_file(l.join("oci-layout")).unwrap()),
        ("other version", |l| fs::write(l.join("oci-layout"), r#"{"imageLayoutVersion":"2.0.0"}"#).unwrap()),
        ("broken marker", |l| fs::write(l.join("oci-layout"), "x").unwrap()),
        ("no index", |l| fs::remove_file(l.join("index.json")).unwrap()),
        ("empty index", |l| fs::write(l.join("index.json"), "").unwrap()),
        ("cut index", |l| fs::write(l.join("index.json"), r#"{"schemaVersion":2,"manifes"#).unwrap()),
        ("other index", |l| {
            fs::write(l.join("index.json"), r#"{"schemaVersion":2,"config":{},"layers":[]}"#).unwrap()
        }),
        ("huge index", |l| fs::write(l.join("index.json"), vec![b' '; 5 << 20]).unwrap()),
        ("index is a folder", |l| {
            fs::remove_file(l.join("index.json")).unwrap();
            fs::create_dir(l.join("index.json")).unwrap();
        }),
    ];
    for (what, damage) in breaks {
        let (_folder, root) = shop();
        damage(&root.join("shop/storefront"));
        let (registries, name) = (at(&root), name("shop/storefront"));
        let why = unread(registries.holds_manifest(&name, &gone).await);
        assert_eq!(why.reason, UnreadReason::Error, "{what}: {why:?}");
        assert!(registries.fetch_referrers(&name, &gone).await.unread.is_some(), "{what}");
        unread(registries.fetch_manifest(&name, &Reference::Tag("x".into())).await);
        unread(registries.holds_blob(&name, &gone).await);
        // The neighbour is whole.
        absent(registries.holds_manifest(&self::name("shop/catalog"), &gone).await);
    }
}

#[tokio::test]
async fn a_flipped_byte_is_an_integrity_error_wherever_it_is() {
    let (_folder, root) = shop();
    let (subject, n) = with_referrers(&root);
    let entry = list(&root, &subject).await.entries[0].1.clone();
    let flip = |digest: &Digest| {
        let mut bytes = fs::read(file_of(&root, digest)).unwrap();
        let last = bytes.len() - 1;
        bytes[last] ^= 1;
        fs::write(file_of(&root, digest), bytes).unwrap();
    };
    let integrity = |why: Unread| {
        assert_eq!((why.reason, why.retryable), (UnreadReason::Error, false));
        assert!(why.why.starts_with("integrity: "), "{}", why.why);
    };
    let name = name("shop/storefront");
    flip(&subject);
    integrity(unread(at(&root).holds_manifest(&name, &subject).await));
    integrity(unread(at(&root).holds_blob(&name, &subject).await));
    flip(&subject);
    flip(&entry.digest);
    let listed = list(&root, &subject).await;
    assert_eq!(listed.entries.len(), n - 1, "the others may still prove");
    integrity(listed.unread.unwrap());
    flip(&entry.digest);
    let manifest = found(at(&root).fetch_manifest(&name, &Reference::Digest(entry.digest)).await);
    let body: Value = serde_json::from_slice(&manifest.bytes).unwrap();
    let layer: Descriptor = serde_json::from_value(body["layers"][0].clone()).unwrap();
    flip(&layer.digest);
    integrity(unread(at(&root).fetch_blob(&name, &layer, 1 << 20).await));
    fs::remove_file(file_of(&root, &layer.digest)).unwrap();
    absent(at(&root).fetch_blob(&name, &layer, 1 << 20).await);
    // A listed manifest that is gone: dangling, said aloud.
    fs::remove_file(file_of(&root, &entry.digest)).unwrap();
    let listed = list(&root, &subject).await;
    assert_eq!((listed.unread, listed.entries.len(), listed.warnings.len()), (None, n - 1, 1));
}

#[tokio::test]
async fn a_list_entry_that_cannot_be_used_may_be_what_is_looked_for() {
    let (_folder, root) = shop();
    let layout = Layout::at(root.join("shop/storefront"));
    let (subject, n) = with_referrers(&root);
    let mut entries = layout.entries();
    entries.push(json!({"digest": "sha512:00", "size": 3}));
    layout.set_entries(&entries);
    let listed = list(&root, &subject).await;
    assert_eq!(listed.entries.len(), n);
    assert!(listed.unread.is_some());
    let by_tag = |tag: &str| Reference::Tag(tag.to_owned());
    unread(at(&root).fetch_manifest(&name("shop/storefront"), &by_tag("sha256-00.sig")).await);
}

#[tokio::test]
async fn a_pipe_in_the_place_of_a_blob_does_not_hang() {
    let (_folder, root) = shop();
    let (subject, _) = with_referrers(&root);
    let file = file_of(&root, &subject);
    fs::remove_file(&file).unwrap();
    assert!(Command::new("mkfifo").arg(&file).status().unwrap().success());
    let why = unread(at(&root).holds_manifest(&name("shop/storefront"), &subject).await);
    assert_eq!(why.why, "not a regular file");
}

#[tokio::test]
async fn a_copied_fallback_tag_counts_too() {
    let (_folder, root) = shop();
    let layout = Layout::at(root.join("shop/storefront"));
    let (subject, n) = with_referrers(&root);
    let old = Digest::hash_bytes(b"{\"old\":1}");
    fs::write(file_of(&root, &old), b"{\"old\":1}").unwrap();
    let index = json!({"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json",
        "manifests": [{"mediaType": "application/vnd.oci.image.manifest.v1+json", "digest": old, "size": 9}]});
    let index = index.to_string().into_bytes();
    fs::write(file_of(&root, &Digest::hash_bytes(&index)), &index).unwrap();
    let mut entries = layout.entries();
    entries.push(json!({"mediaType": "application/vnd.oci.image.index.v1+json", "digest": Digest::hash_bytes(&index), "size": index.len(),
        "annotations": {"org.opencontainers.image.ref.name": format!("sha256-{}", subject.format_hex())}}));
    layout.set_entries(&entries);
    let listed = list(&root, &subject).await;
    assert_eq!(listed.entries.len(), n + 1);
    assert!(listed.entries.iter().any(|(place, d)| *place == EvidencePlace::FallbackTag && d.digest == old));
}

#[tokio::test]
async fn a_change_of_the_list_is_seen() {
    let (_folder, root) = shop();
    let (subject, n) = with_referrers(&root);
    let registries = at(&root);
    let name = name("shop/storefront");
    assert_eq!(registries.fetch_referrers(&name, &subject).await.entries.len(), n);
    let record = Record::new(&subject, "new");
    assert_eq!(record.attach(&at(&root), &name, &subject).await, Ok(AttachOutcome::New));
    assert_eq!(registries.fetch_referrers(&name, &subject).await.entries.len(), n + 1);
}

#[tokio::test]
async fn a_record_is_attached_once_and_what_others_wrote_stays() {
    let (_folder, root) = shop();
    let (subject, n) = with_referrers(&root);
    let name = name("shop/storefront");
    let index = root.join("shop/storefront/index.json");
    let mut before: Value = serde_json::from_slice(&fs::read(&index).unwrap()).unwrap();
    before["later"] = json!({"b": 1, "a": [null]});
    fs::write(&index, before.to_string()).unwrap();
    let record = Record::new(&subject, "one");
    assert_eq!(record.attach(&at(&root), &name, &subject).await, Ok(AttachOutcome::New));
    let bytes = fs::read(&index).unwrap();
    assert_eq!(record.attach(&at(&root), &name, &subject).await, Ok(AttachOutcome::Already));
    assert_eq!(fs::read(&index).unwrap(), bytes);
    let mut after: Value = serde_json::from_slice(&bytes).unwrap();
    let entry = after["manifests"].as_array_mut().unwrap().pop().unwrap();
    assert_eq!(after, before);
    assert_eq!(entry["artifactType"], "application/vnd.kokumi.promotion.v1+json");
    assert_eq!(list(&root, &subject).await.entries.len(), n + 1);
    assert_eq!(&found(at(&root).fetch_blob(&name, &blob_of(b"one"), 10).await)[..], b"one");
    let left: Vec<_> =
        fs::read_dir(root.join("shop/storefront")).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(left.len(), 3, "{left:?}");
    // A blob that broke is made whole.
    fs::write(file_of(&root, &Digest::hash_bytes(b"one")), b"broken").unwrap();
    assert_eq!(record.attach(&at(&root), &name, &subject).await, Ok(AttachOutcome::Already));
    assert_eq!(&found(at(&root).fetch_blob(&name, &blob_of(b"one"), 10).await)[..], b"one");
}

#[test]
fn many_writers_at_once_lose_nothing() {
    let (_folder, root) = shop();
    let (subject, n) = with_referrers(&root);
    let writers: Vec<_> = (0..12)
        .map(|i| {
            let root = root.clone();
            std::thread::spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
                let record = Record::new(&subject, &format!("record {}", i / 2));
                runtime.block_on(record.attach(&at(&root), &name("shop/storefront"), &subject)).unwrap()
            })
        })
        .collect();
    let outcomes: Vec<_> = writers.into_iter().map(|w| w.join().unwrap()).collect();
    assert_eq!(outcomes.iter().filter(|o| **o == AttachOutcome::New).count(), 6);
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    assert_eq!(runtime.block_on(list(&root, &subject)).entries.len(), n + 6);
}

#[tokio::test]
async fn what_cannot_be_written_is_said() {
    let (_folder, root) = shop();
    let (subject, _) = with_referrers(&root);
    let name = name("shop/storefront");
    let gone = Digest::hash_bytes(b"gone");
    let record = Record::new(&gone, "one");
    assert_eq!(record.attach(&at(&root), &name, &gone).await, Err(AttachError::SubjectGone(gone)));
    let record = Record::new(&subject, "one");
    // Something in the way of a blob.
    fs::create_dir(file_of(&root, &record.digest)).unwrap();
    let outcome = record.attach(&at(&root), &name, &subject).await;
    assert!(
        matches!(&outcome, Err(AttachError::Failed(why)) if why.why.starts_with("cannot be written")),
        "{outcome:?}"
    );
    assert!(
        !fs::read_to_string(root.join("shop/storefront/index.json"))
            .unwrap()
            .contains(&record.digest.format_hex())
    );
}

#[tokio::test]
async fn oras_lists_what_was_attached_to_a_layout() {
    let Some(oras) = peer("oras") else { return };
    let (_folder, root) = shop();
    let (subject, n) = with_referrers(&root);
    let record = Record::sized(&subject, fs::read(file_of(&root, &subject)).unwrap().len(), "one");
    record.attach(&at(&root), &name("shop/storefront"), &subject).await.unwrap();
    let target = format!("{}@{subject}", root.join("shop/storefront").display());
    let run =
        Command::new(oras).args(["discover", "--format", "json", "--oci-layout", &target]).output().unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let listed: Value = serde_json::from_slice(&run.stdout).unwrap();
    let listed = listed["referrers"].as_array().or_else(|| listed["manifests"].as_array()).unwrap();
    assert_eq!(listed.len(), n + 1, "{listed:?}");
    assert!(listed.iter().any(|e| e["digest"] == json!(record.digest)));
}
