//! What is inside an artifact: the objects that Argo CD would deploy, for people who compare them.

use super::Setup;
use crate::compare::{Comparison, Side, compare};
use crate::error::{Failure, Kind};
use crate::evidence::answer::{Answer, Reference};
use crate::evidence::artifact;
use crate::model::evidence::Unread;
use crate::model::id::{Artifact, Namespace};
use crate::model::resource::{Content, Resource};
use futures::StreamExt as _;
use kube_yaml::parse;

/// Pairs of artifacts that are read at once: their bytes are in memory while they are compared.
const AT_ONCE: usize = 8;

/// An artifact, and the namespace that its objects go to.
pub type Place = (Artifact, Option<Namespace>);

/// What changes between two artifacts (without the first, everything is new), for each pair. With `all`, known
/// noise is a change like any other.
///
/// An error in its place where an artifact cannot be read or is none with objects in it.
#[must_use]
pub fn compared(
    setup: &Setup<'_>,
    pairs: &[(Option<Place>, Place)],
    all: bool,
) -> Vec<Result<Comparison, Failure>> {
    let one = |(from, to): &(Option<Place>, Place)| {
        let (from, to) = (from.clone(), to.clone());
        async move {
            let old = async {
                match &from {
                    Some((artifact, _)) => fetch(setup, artifact).await,
                    None => Ok(Vec::new()),
                }
            };
            let (old, new) = futures::join!(old, fetch(setup, &to.0));
            let (old, new) = both(old?, new?);
            let namespace = |place: Option<&Place>| place.and_then(|p| p.1.as_ref().map(ToString::to_string));
            let (before, after) = (namespace(from.as_ref()), namespace(Some(&to)));
            Ok(compare(
                Side { resources: &old, namespace: before.as_deref() },
                Side { resources: &new, namespace: after.as_deref() },
                all,
            ))
        }
    };
    let work = futures::stream::iter(pairs.iter().map(one)).buffered(AT_ONCE).collect();
    setup.runtime.block_on(work)
}

/// Files at the top of an artifact: name and content.
pub type Files = Vec<(String, Vec<u8>)>;

/// The objects of both sides. Parsing is what comparing costs: one side on each core.
#[must_use]
pub fn both(old: Files, new: Files) -> (Vec<Resource>, Vec<Resource>) {
    std::thread::scope(|scope| {
        let old = scope.spawn(move || resources(&old));
        let new = resources(&new);
        (old.join().unwrap_or_default(), new)
    })
}

async fn fetch(setup: &Setup<'_>, artifact: &Artifact) -> Result<Files, Failure> {
    let failure = |kind, cause: String| Failure::new(kind, "artifact", cause).of(artifact.to_string());
    let unread = |u: Unread| failure(Kind::Unread, format!("{}: {}", u.request, u.why));
    let gone = || failure(Kind::Unread, "it is not in the registry".into());
    let wrong = |why| failure(Kind::Input, why);
    let reference = Reference::Digest(artifact.digest);
    let manifest = match setup.registries.manifest(&artifact.repository, &reference).await {
        Answer::Found(manifest) => manifest,
        Answer::Absent => return Err(gone()),
        Answer::Unread(why) => return Err(unread(why)),
    };
    let layer = artifact::tar_layer(&manifest).map_err(wrong)?;
    let bytes = match setup.registries.blob(&artifact.repository, &layer, setup.gather.layer_cap).await {
        Answer::Found(bytes) => bytes,
        Answer::Absent => return Err(gone()),
        Answer::Unread(why) => return Err(unread(why)),
    };
    artifact::manifests(&layer.media_type, &bytes, setup.gather.unpacked_cap).map_err(wrong)
}

/// The objects of an artifact's files (name, content). A file that does not parse is one resource of its text.
#[must_use]
pub fn resources(files: &[(String, Vec<u8>)]) -> Vec<Resource> {
    files.iter().flat_map(|(name, content)| of_file(name, content)).collect()
}

fn of_file(file: &str, content: &[u8]) -> Vec<Resource> {
    let unparsed = |why: String| {
        let text = String::from_utf8_lossy(content).into_owned();
        vec![Resource { file: file.to_owned(), content: Content::Unparsed { text, why } }]
    };
    let text = match parse::text(content) {
        Ok(text) => text,
        Err(error) => return unparsed(error.to_string()),
    };
    let mut all = Vec::new();
    for document in parse::documents(text) {
        if let Some(error) = document.errors.first() {
            return unparsed(error.to_string());
        }
        let Some(node) = document.node else { continue };
        let object = node.to_json();
        let items = object.get("items").and_then(serde_json::Value::as_array);
        match (object.get("kind").and_then(serde_json::Value::as_str), items) {
            (Some(kind), Some(items)) if kind.ends_with("List") => {
                all.extend(items.iter().map(|item| Resource::of(item.clone(), file)));
            }
            _ => all.push(Resource::of(object, file)),
        }
    }
    all
}
