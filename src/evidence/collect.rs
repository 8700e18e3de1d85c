//! Collects one artifact for later use without the registry: its manifest and layers, and all signed evidence attached
//! to it, of both families. Nothing is judged here.

use crate::evidence::artifact;
use crate::evidence::envelope::{BUNDLE_PREFIX, ENVELOPE, IN_TOTO};
use crate::evidence::simple_signing::PAYLOAD;
use crate::model::evidence::Unread;
use crate::model::id::{Artifact, Digest};
use crate::model::reason::Verified;
use bytes::Bytes;
use futures::StreamExt as _;
use oci_registry::Registries;
use oci_registry::{Answer, Descriptor, Manifest, Reference};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};

/// Limits for collecting.
#[derive(Debug, Clone)]
pub struct CollectOptions {
    /// Largest layer of the artifact, bytes.
    pub layer_cap: u64,
    /// Largest piece of evidence, bytes.
    pub evidence_cap: u64,
    /// Most attached manifests.
    pub candidates: usize,
    /// Of everything together, bytes.
    pub whole_cap: u64,
}

impl Default for CollectOptions {
    fn default() -> Self {
        Self { layer_cap: 64 << 20, evidence_cap: 32 << 20, candidates: 1000, whole_cap: 256 << 20 }
    }
}

/// A manifest and its tag.
#[derive(Debug, Clone)]
pub struct ListedManifest {
    /// `sha256-<hex>.sig` or `.att`; `None`: it has only its digest.
    pub tag: Option<String>,
    /// The manifest as the registry serves it.
    pub manifest: Manifest,
}

/// What was collected.
#[derive(Debug, Clone)]
pub struct Collected {
    /// The artifact's manifest, then the attached ones, sorted by digest, each once per tag.
    pub manifests: Vec<ListedManifest>,
    /// Every file by its hash, including the manifests.
    pub blobs: BTreeMap<Digest, Bytes>,
    /// What was left out, as text for users.
    pub left_out: Vec<String>,
}

/// Requests at once for one artifact.
const AT_ONCE: usize = 16;

/// Collects everything. An index entry whose manifest is gone is left out, as in every reading; any other listed item
/// that cannot be fetched is a failure, because a part of the evidence may lead to a different result than all of it.
///
/// # Errors
/// Something that is needed could not be read, or is too large.
pub async fn collect_evidence(
    artifact: &Artifact,
    registries: &Registries,
    options: &CollectOptions,
) -> Result<Collected, Unread> {
    let repository = &artifact.repository;
    let own = match registries.fetch_manifest(repository, &Reference::Digest(artifact.digest)).await {
        Answer::Found(manifest) => manifest,
        Answer::Absent => return Err(make_refused(artifact, "the artifact is not in the registry".into())),
        Answer::Unread(why) => return Err(why.into()),
    };
    let mut all = Collected { manifests: Vec::new(), blobs: BTreeMap::new(), left_out: Vec::new() };
    let mut manifests = vec![ListedManifest { tag: None, manifest: own }];
    for suffix in ["sig", "att"] {
        let tag = format!("sha256-{}.{suffix}", artifact.digest.format_hex());
        match registries.fetch_manifest(repository, &Reference::Tag(tag.clone())).await {
            Answer::Found(manifest) => manifests.push(ListedManifest { tag: Some(tag), manifest }),
            Answer::Absent => {}
            Answer::Unread(why) => return Err(why.into()),
        }
    }
    let referrers = registries.fetch_referrers(repository, &artifact.digest).await;
    let referrers = match referrers.left_out {
        Some(_) => registries.fetch_left_out_referrers(repository, &artifact.digest, referrers).await,
        None => referrers,
    };
    if let Some(why) = referrers.unread {
        return Err(why.into());
    }
    all.left_out.extend(referrers.warnings);
    let digests: BTreeSet<Digest> = referrers.entries.iter().map(|(_, d)| d.digest).collect();
    if digests.len() > options.candidates {
        let why =
            format!("{} manifests are attached; at most {} are kept", digests.len(), options.candidates);
        return Err(make_refused(artifact, why));
    }
    let fetch = |digest: Digest| async move {
        (digest, registries.fetch_manifest(repository, &Reference::Digest(digest)).await)
    };
    let mut attached = futures::stream::iter(digests.into_iter().map(fetch)).buffered(AT_ONCE);
    while let Some((digest, answer)) = attached.next().await {
        match answer {
            Answer::Found(manifest) => match check_evidence(&manifest, options.evidence_cap) {
                Ok(()) => manifests.push(ListedManifest { tag: None, manifest }),
                Err(why) => all.left_out.push(format!("{digest}: attached, but {why}")),
            },
            Answer::Absent => all.left_out.push(format!("{digest}: listed, but not in the registry")),
            Answer::Unread(why) => return Err(why.into()),
        }
    }
    let mut room = options.whole_cap;
    let mut take = |size: u64| {
        room = room.checked_sub(size).ok_or_else(|| {
            make_refused(artifact, format!("the total is larger than {} MiB", options.whole_cap >> 20))
        })?;
        Ok::<(), Unread>(())
    };
    let mut wanted: BTreeMap<Digest, (Descriptor, u64, bool)> = BTreeMap::new();
    for (n, listed) in manifests.iter().enumerate() {
        take(listed.manifest.bytes.len() as u64)?;
        all.blobs.insert(listed.manifest.digest, listed.manifest.bytes.clone());
        let cap = if n == 0 { options.layer_cap } else { options.evidence_cap };
        let (config, layers) = list_parts(&listed.manifest)
            .map_err(|why| make_refused(artifact, format!("{}: {why}", listed.manifest.digest)))?;
        wanted.extend(config.map(|d| (d.digest, (d, cap, false))));
        wanted.extend(layers.into_iter().map(|d| (d.digest, (d, cap, true))));
    }
    for (descriptor, ..) in wanted.values() {
        take(descriptor.size)?;
    }
    let fetch = |(descriptor, cap, needed): (Descriptor, u64, bool)| async move {
        let answer = registries.fetch_blob(repository, &descriptor, cap).await;
        (descriptor.digest, needed, answer)
    };
    let mut blobs = futures::stream::iter(wanted.into_values().map(fetch)).buffered(AT_ONCE);
    while let Some((digest, needed, answer)) = blobs.next().await {
        match (answer, needed) {
            (Answer::Found(bytes), _) => {
                all.blobs.insert(digest, bytes);
            }
            (Answer::Absent, true) => {
                return Err(make_refused(artifact, format!("blob {digest} is not in the registry")));
            }
            (Answer::Absent, false) => {
                all.left_out.push(format!("{digest}: a config that is not in the registry"));
            }
            (Answer::Unread(why), _) => return Err(why.into()),
        }
    }
    manifests[1..].sort_by(|a, b| (a.manifest.digest, &a.tag).cmp(&(b.manifest.digest, &b.tag)));
    all.manifests = manifests;
    all.left_out.sort();
    Ok(all)
}

fn make_refused(artifact: &Artifact, why: String) -> Unread {
    Unread {
        reason: Verified::RegistryError,
        request: artifact.to_string(),
        status: None,
        why,
        retryable: false,
    }
}

/// Checks that `gather` would read evidence from a manifest that refers to the artifact.
///
/// # Errors
/// Says why it would not. Evidence that is too long to be read never proves anything, so that a stranger cannot block
/// the collection by attaching it.
fn check_evidence(manifest: &Manifest, cap: u64) -> Result<(), &'static str> {
    let is_evidence = |d: &Descriptor| {
        let exact = [PAYLOAD, ENVELOPE, IN_TOTO];
        d.media_type.starts_with(BUNDLE_PREFIX) || exact.contains(&d.media_type.as_str())
    };
    let layers = match artifact::is_image(manifest).then(|| artifact::parse_image(manifest)) {
        Some(Ok(image)) => image.layers.unwrap_or_default(),
        Some(Err(_)) | None => Vec::new(),
    };
    if !layers.iter().any(is_evidence) {
        return Err("it holds no signed evidence");
    }
    match layers.iter().any(|d| d.size > cap) {
        true => Err("it is longer than the limit for evidence"),
        false => Ok(()),
    }
}

/// The blobs that an image manifest names: its config, if its hash algorithm is supported, and its layers.
fn list_parts(manifest: &Manifest) -> Result<(Option<Descriptor>, Vec<Descriptor>), String> {
    #[derive(Deserialize)]
    struct Config {
        config: Option<Descriptor>,
    }
    let layers = artifact::parse_image(manifest)?.layers.unwrap_or_default();
    let config = serde_json::from_slice::<Config>(&manifest.bytes).ok().and_then(|c| c.config);
    Ok((config, layers))
}
