//! The artifact itself: whether Argo CD can unpack the pinned manifest and deploy something from it.
//!
//! Argo CD requires an image manifest (never an index) with exactly one layer whose media type ends in `tar`, `tar+gzip`
//! or `tar.gzip` and is on its list; other layers are ignored. With `path: .` it reads only files at the top of that
//! tar: an artifact with everything in a subfolder syncs successfully without any objects.

use crate::evidence::envelope::{BUNDLE_PREFIX, clip_text};
use crate::evidence::json;
use flate2::read::MultiGzDecoder;
use oci_registry::{Descriptor, Manifest};
use serde::Deserialize;
use serde::de::IgnoredAny;
use std::io::{self, Read};
use std::path::Component;

/// Layer media types that Argo CD unpacks by default (its `--oci-layer-media-types`), except Helm charts.
pub const LAYER_TYPES: &[&str] =
    &["application/vnd.oci.image.layer.v1.tar", "application/vnd.oci.image.layer.v1.tar+gzip"];

/// Media types of an image manifest.
pub const IMAGE_MANIFESTS: &[&str] =
    &["application/vnd.oci.image.manifest.v1+json", "application/vnd.docker.distribution.manifest.v2+json"];

/// File extensions that Argo CD's directory source reads.
const MANIFEST_FILES: &[&str] = &["yaml", "yml", "json"];

/// The members of an image manifest that are used.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ImageManifest {
    #[serde(default)]
    pub(crate) artifact_type: Option<String>,
    #[serde(default)]
    pub(crate) layers: Option<Vec<Descriptor>>,
    #[serde(default)]
    pub(crate) annotations: Option<std::collections::BTreeMap<String, String>>,
    #[serde(default)]
    manifests: Option<IgnoredAny>,
}

/// Whether a manifest's media type is that of an image manifest.
pub(crate) fn is_image(manifest: &Manifest) -> bool {
    IMAGE_MANIFESTS.contains(&manifest.media_type.as_str())
}

/// Reads an image manifest.
///
/// # Errors
/// Says what it is instead.
pub(crate) fn parse_image(manifest: &Manifest) -> Result<ImageManifest, String> {
    if !is_image(manifest) {
        return Err(format!("it is {}, not an image manifest", clip_text(&manifest.media_type)));
    }
    let image: ImageManifest =
        json::parse_strict(&manifest.bytes).map_err(|e| format!("its manifest does not parse: {e}"))?;
    if image.manifests.is_some() {
        return Err("its manifest has `manifests` like an index, so it could be read as either".into());
    }
    Ok(image)
}

/// The bundle in a referrer's manifest, if there is exactly one.
#[must_use]
pub fn find_only_bundle(manifest: &Manifest) -> Option<Descriptor> {
    let layers = parse_image(manifest).ok()?.layers?;
    let mut bundles = layers.into_iter().filter(|d| d.media_type.starts_with(BUNDLE_PREFIX));
    bundles.next().filter(|_| bundles.next().is_none())
}

/// The one content layer of an artifact.
///
/// # Errors
/// Says what is wrong, with the media types that were found.
pub fn find_content_layer(manifest: &Manifest, accepted: &[String]) -> Result<Descriptor, String> {
    let image = parse_image(manifest)?;
    let layers = image.layers.unwrap_or_default();
    let is_tar =
        |d: &&Descriptor| ["tar", "tar+gzip", "tar.gzip"].iter().any(|end| d.media_type.ends_with(end));
    let mut tars: Vec<&Descriptor> = layers.iter().filter(is_tar).collect();
    let types = |layers: &mut dyn Iterator<Item = &Descriptor>| {
        let types: Vec<String> = layers.map(|d| clip_text(&d.media_type)).collect();
        if types.is_empty() { "none at all".to_owned() } else { types.join(", ") }
    };
    match (tars.pop(), tars.is_empty()) {
        (None, _) => Err(format!("it has no tar layer; its layers are: {}", types(&mut layers.iter()))),
        (Some(_), false) => Err(format!(
            "it has {} tar layers, but Argo CD accepts exactly one: {}",
            tars.len() + 1,
            types(&mut layers.iter().filter(is_tar))
        )),
        (Some(layer), true) if !accepted.contains(&layer.media_type) => Err(format!(
            "its layer is {}, which is not one of {}",
            clip_text(&layer.media_type),
            accepted.join(", ")
        )),
        (Some(layer), true) => Ok(layer.clone()),
    }
}

/// Checks that a content layer is the tar (or gzipped tar) of its media type, contains nothing that Argo CD refuses, and
/// has at least one manifest at its top. Nothing is unpacked to disk; `decoded_cap` limits the damage of a
/// decompression bomb.
///
/// # Errors
/// Says what is wrong.
pub fn check_unpacks(media_type: &str, bytes: &[u8], decoded_cap: u64) -> Result<(), String> {
    let gzip = bytes.starts_with(&[0x1f, 0x8b]);
    let wants_gzip = media_type.ends_with("gzip");
    if gzip != wants_gzip {
        let found = if gzip { "gzip data" } else { "not gzip data" };
        return Err(format!("its layer has the type {media_type} but is {found}"));
    }
    let source: Box<dyn Read + '_> =
        if gzip { Box::new(MultiGzDecoder::new(bytes)) } else { Box::new(bytes) };
    let mut capped = Capped { source, left: decoded_cap, cap: decoded_cap };
    let found = count_entries(&mut capped).map_err(|e| format!("its layer does not unpack: {e}"))?;
    match found {
        FoundEntries { manifests: 0, files: 0 } => Err("its layer is a tar without any file".into()),
        FoundEntries { manifests: 0, files } => Err(format!(
            "none of the {files} files of its layer is a manifest (.yaml, .yml, .json) at the top of the tar, so Argo CD would deploy nothing"
        )),
        FoundEntries { .. } => Ok(()),
    }
}

/// The only tar layer of an artifact, even if Argo CD would not accept it, for comparisons. In addition to Argo CD's
/// types, zstd is read.
///
/// # Errors
/// Says what was found instead.
pub fn find_tar_layer(manifest: &Manifest) -> Result<Descriptor, String> {
    let layers = parse_image(manifest)?.layers.unwrap_or_default();
    let is_tar = |d: &&Descriptor| {
        ["tar", "tar+gzip", "tar.gzip", "tar+zstd"].iter().any(|end| d.media_type.ends_with(end))
    };
    let tars: Vec<&Descriptor> = layers.iter().filter(is_tar).collect();
    match tars[..] {
        [layer] => Ok(layer.clone()),
        [] => Err("it has no tar layer".into()),
        [..] => Err(format!("it has {} tar layers", tars.len())),
    }
}

/// The manifests at the top of a content layer: (file name, content), sorted by name; for a repeated name the last one,
/// as after unpacking. `decoded_cap` limits the damage of a decompression bomb. A link, a device or a path outside the
/// folder is refused, because Argo CD would deploy something different from what is seen here.
///
/// # Errors
/// Says why the layer does not unpack.
pub fn read_manifests(
    media_type: &str,
    bytes: &[u8],
    decoded_cap: u64,
) -> Result<Vec<(String, Vec<u8>)>, String> {
    let unpacks = |e: io::Error| format!("its layer does not unpack: {e}");
    let source: Box<dyn Read + '_> = match (media_type.ends_with("gzip"), media_type.ends_with("zstd")) {
        (true, _) => Box::new(MultiGzDecoder::new(bytes)),
        (false, true) => Box::new(zstd::Decoder::with_buffer(bytes).map_err(unpacks)?),
        (false, false) => Box::new(bytes),
    };
    let mut capped = Capped { source, left: decoded_cap, cap: decoded_cap };
    let mut files = std::collections::BTreeMap::new();
    walk_entries(&mut capped, true, |path, is_manifest, entry| {
        if is_manifest {
            let mut content = Vec::new();
            entry.read_to_end(&mut content)?;
            files.insert(path.to_owned(), content);
        }
        Ok(())
    })
    .map_err(unpacks)?;
    Ok(files.into_iter().collect())
}

#[derive(Default)]
struct FoundEntries {
    manifests: u64,
    files: u64,
}

fn count_entries(source: &mut dyn Read) -> io::Result<FoundEntries> {
    let mut found = FoundEntries::default();
    walk_entries(source, false, |_, is_manifest, _| {
        found.files += 1;
        found.manifests += u64::from(is_manifest);
        Ok(())
    })?;
    Ok(found)
}

/// Calls `each` with every file: its path, whether it is a manifest at the top, and its content. With `only_files`,
/// everything except files and folders is refused.
fn walk_entries(
    source: &mut dyn Read,
    only_files: bool,
    mut each: impl FnMut(&str, bool, &mut dyn Read) -> io::Result<()>,
) -> io::Result<()> {
    let mut archive = tar::Archive::new(source);
    for entry in archive.entries()? {
        let mut entry = entry?;
        let path = entry.path()?.into_owned();
        let parts: Vec<Component<'_>> = path.components().filter(|c| *c != Component::CurDir).collect();
        if !parts.iter().all(|c| matches!(c, Component::Normal(_))) {
            let path = clip_text(&path.to_string_lossy());
            return Err(io::Error::other(format!("{path:?} is outside the folder of the archive")));
        }
        let kind = entry.header().entry_type();
        if only_files && !(kind.is_file() || kind.is_dir() || kind.is_pax_global_extensions()) {
            let path = clip_text(&path.to_string_lossy());
            let what = if kind.is_symlink() || kind.is_hard_link() { "a link" } else { "not a regular file" };
            return Err(io::Error::other(format!("{path:?} is {what}")));
        }
        if kind.is_file() {
            let extension = path.extension().and_then(|e| e.to_str());
            let is_manifest = parts.len() == 1 && extension.is_some_and(|e| MANIFEST_FILES.contains(&e));
            let name: Vec<_> = parts.iter().map(|c| c.as_os_str().to_string_lossy()).collect();
            each(&name.join("/"), is_manifest, &mut entry)?;
        }
    }
    // The rest after the last entry must be read too: only this detects a cut-off or damaged gzip stream.
    io::copy(&mut archive.into_inner(), &mut io::sink())?;
    Ok(())
}

/// A reader that fails after its cap.
struct Capped<'a> {
    source: Box<dyn Read + 'a>,
    left: u64,
    cap: u64,
}

impl Read for Capped<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.source.read(buffer)?;
        self.left = self.left.checked_sub(n as u64).ok_or_else(|| {
            io::Error::other(format!("it is larger than {} MiB when unpacked", self.cap >> 20))
        })?;
        Ok(n)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;
    use crate::model::id::Digest;
    use std::io::Write as _;

    fn accepted() -> Vec<String> {
        LAYER_TYPES.iter().map(|t| (*t).to_owned()).collect()
    }

    fn manifest(media_type: &str, layers: &[&str]) -> Manifest {
        let layers: Vec<String> = layers
            .iter()
            .map(|t| {
                format!(r#"{{"mediaType":"{t}","digest":"{}","size":1}}"#, Digest::hash_bytes(t.as_bytes()))
            })
            .collect();
        let bytes = format!(r#"{{"schemaVersion":2,"layers":[{}]}}"#, layers.join(","));
        Manifest {
            digest: Digest::hash_bytes(bytes.as_bytes()),
            media_type: media_type.into(),
            bytes: bytes.into(),
        }
    }

    #[test]
    fn exactly_one_layer_that_argo_cd_unpacks() {
        let oci = IMAGE_MANIFESTS[0];
        let layer = |layers: &[&str]| find_content_layer(&manifest(oci, layers), &accepted());
        assert_eq!(layer(&[LAYER_TYPES[1]]).unwrap().media_type, LAYER_TYPES[1]);
        assert!(layer(&[LAYER_TYPES[0], "text/yaml", "application/vnd.in-toto+json"]).is_ok());
        let why = |layers: &[&str]| layer(layers).unwrap_err();
        assert!(why(&[]).contains("none at all"));
        assert!(why(&["application/yaml"]).contains("application/yaml"));
        let two = why(&[LAYER_TYPES[0], "text/plain", LAYER_TYPES[1]]);
        assert!(two.contains("2 tar layers") && two.contains(LAYER_TYPES[1]) && !two.contains("text/plain"));
        let kustomize = "application/vnd.cncf.kustomize.v1.tar+gzip";
        assert!(why(&[kustomize]).contains(kustomize));
        assert!(find_content_layer(&manifest(oci, &[kustomize]), &[kustomize.to_owned()]).is_ok());
        let index = "application/vnd.oci.image.index.v1+json";
        assert!(find_content_layer(&manifest(index, &[]), &accepted()).unwrap_err().contains(index));
    }

    #[test]
    fn a_manifest_that_reads_two_ways_is_refused() {
        let mut both = manifest(IMAGE_MANIFESTS[0], &[LAYER_TYPES[0]]);
        let text = String::from_utf8(both.bytes.to_vec()).unwrap();
        both.bytes = text.replace("{\"schemaVersion\"", "{\"manifests\":[],\"schemaVersion\"").into();
        assert!(find_content_layer(&both, &accepted()).unwrap_err().contains("index"));
        both.bytes = text.replace("{\"schemaVersion\":2", "{\"layers\":[],\"schemaVersion\":2").into();
        assert!(find_content_layer(&both, &accepted()).unwrap_err().contains("twice"));
    }

    fn tar_of(files: &[(&str, &[u8])]) -> Vec<u8> {
        let mut builder = tar::Builder::new(Vec::new());
        for (path, content) in files {
            let mut header = tar::Header::new_ustar();
            header.as_mut_bytes()[..path.len()].copy_from_slice(path.as_bytes());
            header.set_size(content.len() as u64);
            header.set_mode(0o644);
            header.set_entry_type(if path.ends_with('/') {
                tar::EntryType::Directory
            } else {
                tar::EntryType::Regular
            });
            header.set_cksum();
            builder.append(&header, *content).unwrap();
        }
        builder.into_inner().unwrap()
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    const CAP: u64 = 16 << 20;

    #[test]
    fn a_manifest_lies_at_the_top() {
        let (plain, gz) = (LAYER_TYPES[0], LAYER_TYPES[1]);
        let good = tar_of(&[("./", b""), ("./deploy.yaml", b"kind: A"), ("sub/x.yaml", b"")]);
        assert_eq!(check_unpacks(plain, &good, CAP), Ok(()));
        assert_eq!(check_unpacks(gz, &gzip(&good), CAP), Ok(()));
        let why = |files: &[(&str, &[u8])]| check_unpacks(plain, &tar_of(files), CAP).unwrap_err();
        assert!(
            why(&[("out/", b""), ("out/a.yaml", b""), ("README.md", b"")]).contains("none of the 2 files")
        );
        assert!(why(&[("out.yaml/", b"")]).contains("without any file"));
        assert!(why(&[("a.yaml", b""), ("../b.yaml", b"")]).contains("is outside the folder"));
        assert!(why(&[("/a.yaml", b"")]).contains("is outside the folder"));
    }

    #[test]
    fn what_is_compared_is_read_from_every_kind_of_tar() {
        let layer = "application/vnd.oci.image.layer.v1.tar";
        let tar = tar_of(&[("b.yaml", b"old"), ("a.yml", b"a"), ("sub/c.yaml", b"c"), ("b.yaml", b"new")]);
        let zstd = zstd::encode_all(&tar[..], 3).unwrap();
        for (end, bytes) in [("", &tar), ("+gzip", &gzip(&tar)), ("+zstd", &zstd)] {
            let found = read_manifests(&format!("{layer}{end}"), bytes, CAP).unwrap();
            assert_eq!(found, [("a.yml".into(), b"a".to_vec()), ("b.yaml".into(), b"new".to_vec())], "{end}");
        }
        let accepts =
            |layers: &[&str]| find_tar_layer(&manifest(IMAGE_MANIFESTS[0], layers)).map(|d| d.media_type);
        let zstd = format!("{layer}+zstd");
        assert_eq!(accepts(&["text/plain", &zstd]), Ok(zstd.clone()));
        assert!(accepts(&[layer, &zstd]).unwrap_err().contains("2 tar layers"));
        assert!(accepts(&["text/plain"]).unwrap_err().contains("no tar layer"));
    }

    #[test]
    fn links_bombs_and_ways_out_are_refused() {
        let layer = LAYER_TYPES[0];
        let why = |bytes: &[u8], end: &str| read_manifests(&format!("{layer}{end}"), bytes, CAP).unwrap_err();
        assert!(why(&tar_of(&[("../a.yaml", b"")]), "").contains("is outside the folder"));
        assert!(why(&tar_of(&[("/a.yaml", b"")]), "").contains("is outside the folder"));
        for (kind, what) in [
            (tar::EntryType::Symlink, "a link"),
            (tar::EntryType::Link, "a link"),
            (tar::EntryType::Fifo, "not a regular file"),
            (tar::EntryType::Char, "not a regular file"),
        ] {
            let mut builder = tar::Builder::new(Vec::new());
            let mut header = tar::Header::new_gnu();
            header.set_entry_type(kind);
            header.set_size(0);
            builder.append_link(&mut header, "a.yaml", "b.yaml").unwrap();
            let said = why(&builder.into_inner().unwrap(), "");
            assert!(said.contains(&format!("\"a.yaml\" is {what}")), "{said}");
        }
        let bomb = tar_of(&[("a.yaml", &vec![b'a'; usize::try_from(CAP).unwrap()])]);
        let zstd = zstd::encode_all(&bomb[..], 3).unwrap();
        assert!(zstd.len() < 100_000);
        assert!(why(&zstd, "+zstd").contains("larger than 16 MiB when unpacked"));
        assert!(why(&gzip(&bomb), "+gzip").contains("larger than 16 MiB when unpacked"));
        assert!(why(&zstd[..zstd.len() / 2], "+zstd").contains("does not unpack"));
    }

    #[test]
    fn a_layer_is_what_it_says() {
        let (plain, gz) = (LAYER_TYPES[0], LAYER_TYPES[1]);
        let good = tar_of(&[("a.yaml", b"kind: A")]);
        assert!(check_unpacks(gz, &good, CAP).unwrap_err().contains("not gzip data"));
        assert!(check_unpacks(plain, &gzip(&good), CAP).unwrap_err().contains("but is gzip data"));
        assert!(check_unpacks(plain, b"kind: A\n", CAP).is_err());
        let packed = gzip(&good);
        assert!(check_unpacks(gz, &packed[..packed.len() - 4], CAP).unwrap_err().contains("does not unpack"));
        let big = vec![0; usize::try_from(CAP).unwrap()];
        let bomb = gzip(&tar_of(&[("a.yaml", &big)]));
        assert!(bomb.len() < 100_000);
        assert!(check_unpacks(gz, &bomb, CAP).unwrap_err().contains("larger than 16 MiB when unpacked"));
    }
}
