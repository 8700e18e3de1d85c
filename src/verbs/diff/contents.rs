//! What is inside an artifact: the objects that Argo CD would deploy, for people who compare them.

use crate::compare::{ArtifactSide, Comparison, compare_artifacts};
use crate::error::{Failure, FailureKind};
use crate::evidence::artifact;
use crate::model::evidence::Unread;
use crate::model::id::{Artifact, Namespace};
use crate::model::resource::{Resource, ResourceContent};
use crate::run::Setup;
use futures::StreamExt as _;
use kube_yaml::parse;
use oci_registry::{Answer, Reference};

/// Pairs of artifacts that are read at once: their bytes are in memory while they are compared.
const AT_ONCE: usize = 8;

/// An artifact, and the namespace that its objects go to.
pub type ArtifactPlace = (Artifact, Option<Namespace>);

/// What changes between two artifacts (without the first, everything is new), for each pair. With `all`, known
/// noise is a change like any other.
///
/// An error in its place where an artifact cannot be read or is none with objects in it.
#[must_use]
pub fn compare_pairs(
    setup: &Setup<'_>,
    pairs: &[(Option<ArtifactPlace>, ArtifactPlace)],
    all: bool,
) -> Vec<Result<Comparison, Failure>> {
    let one = |(from, to): &(Option<ArtifactPlace>, ArtifactPlace)| {
        let (from, to) = (from.clone(), to.clone());
        async move {
            let old = async {
                match &from {
                    Some((artifact, _)) => fetch_files(setup, artifact).await,
                    None => Ok(Vec::new()),
                }
            };
            let (old, new) = futures::join!(old, fetch_files(setup, &to.0));
            let (old, new) = parse_both(old?, new?);
            let namespace =
                |place: Option<&ArtifactPlace>| place.and_then(|p| p.1.as_ref().map(ToString::to_string));
            let (before, after) = (namespace(from.as_ref()), namespace(Some(&to)));
            Ok(compare_artifacts(
                ArtifactSide { resources: &old, namespace: before.as_deref() },
                ArtifactSide { resources: &new, namespace: after.as_deref() },
                all,
            ))
        }
    };
    let work = futures::stream::iter(pairs.iter().map(one)).buffered(AT_ONCE).collect();
    setup.runtime.block_on(work)
}

/// Files at the top of an artifact: name and content.
pub type ArtifactFiles = Vec<(String, Vec<u8>)>;

/// The objects of both sides. Parsing is what comparing costs: one side on each core.
#[must_use]
pub fn parse_both(old: ArtifactFiles, new: ArtifactFiles) -> (Vec<Resource>, Vec<Resource>) {
    std::thread::scope(|scope| {
        let old = scope.spawn(move || parse_resources(&old));
        let new = parse_resources(&new);
        (old.join().unwrap_or_default(), new)
    })
}

async fn fetch_files(setup: &Setup<'_>, artifact: &Artifact) -> Result<ArtifactFiles, Failure> {
    let failure =
        |kind, cause: String| Failure::new(kind, "artifact", cause).with_object(artifact.to_string());
    let unread = |u: Unread| failure(FailureKind::Unread, format!("{}: {}", u.request, u.why));
    let gone = || failure(FailureKind::Unread, "it is not in the registry".into());
    let wrong = |why| failure(FailureKind::Input, why);
    let reference = Reference::Digest(artifact.digest);
    let manifest = match setup.registries.fetch_manifest(&artifact.repository, &reference).await {
        Answer::Found(manifest) => manifest,
        Answer::Absent => return Err(gone()),
        Answer::Unread(why) => return Err(unread(why.into())),
    };
    let layer = artifact::find_tar_layer(&manifest).map_err(wrong)?;
    let bytes = match setup.registries.fetch_blob(&artifact.repository, &layer, setup.gather.layer_cap).await
    {
        Answer::Found(bytes) => bytes,
        Answer::Absent => return Err(gone()),
        Answer::Unread(why) => return Err(unread(why.into())),
    };
    artifact::read_manifests(&layer.media_type, &bytes, setup.gather.unpacked_cap).map_err(wrong)
}

/// The objects of an artifact's files (name, content). A file that does not parse is one resource of its text.
#[must_use]
pub fn parse_resources(files: &[(String, Vec<u8>)]) -> Vec<Resource> {
    files.iter().flat_map(|(name, content)| parse_file(name, content)).collect()
}

fn parse_file(file: &str, content: &[u8]) -> Vec<Resource> {
    let unparsed = |why: String| {
        let text = String::from_utf8_lossy(content).into_owned();
        vec![Resource { file: file.to_owned(), content: ResourceContent::Unparsed { text, why } }]
    };
    let text = match parse::decode_text(content) {
        Ok(text) => text,
        Err(error) => return unparsed(error.to_string()),
    };
    let mut all = Vec::new();
    for document in parse::parse_documents(text) {
        if let Some(error) = document.errors.first() {
            return unparsed(error.to_string());
        }
        let Some(node) = document.node else { continue };
        let object = node.to_json();
        let items = object.get("items").and_then(serde_json::Value::as_array);
        match (object.get("kind").and_then(serde_json::Value::as_str), items) {
            (Some(kind), Some(items)) if kind.ends_with("List") => {
                all.extend(items.iter().map(|item| Resource::from_object(item.clone(), file)));
            }
            _ => all.push(Resource::from_object(object, file)),
        }
    }
    all
}
