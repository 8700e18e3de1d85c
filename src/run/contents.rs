//! What is inside an artifact: the objects that Argo CD would deploy, for people who compare them.

use super::Setup;
use crate::error::{Failure, Kind};
use crate::evidence::answer::{Answer, Reference};
use crate::evidence::artifact;
use crate::model::evidence::Unread;
use crate::model::id::Artifact;
use crate::model::resource::Resource;
use crate::yaml::parse;

/// The objects at the top of an artifact's tar. A file that does not parse is one resource of its text.
///
/// # Errors
/// The registry cannot be read, the artifact is not there, or it is none that Argo CD unpacks.
pub fn of(setup: &Setup<'_>, artifact: &Artifact) -> Result<Vec<Resource>, Failure> {
    setup.runtime.block_on(fetch(setup, artifact))
}

async fn fetch(setup: &Setup<'_>, artifact: &Artifact) -> Result<Vec<Resource>, Failure> {
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
    let layer = artifact::content_layer(&manifest, &setup.gather.layer_types).map_err(wrong)?;
    let bytes = match setup.registries.blob(&artifact.repository, &layer, setup.gather.layer_cap).await {
        Answer::Found(bytes) => bytes,
        Answer::Absent => return Err(gone()),
        Answer::Unread(why) => return Err(unread(why)),
    };
    let files = artifact::manifests(&layer.media_type, &bytes, setup.gather.unpacked_cap).map_err(wrong)?;
    Ok(files.iter().flat_map(|(name, content)| resources(name, content)).collect())
}

fn resources(file: &str, content: &[u8]) -> Vec<Resource> {
    let raw = || {
        let text = String::from_utf8_lossy(content).into_owned();
        vec![Resource { name: file.to_owned(), object: serde_json::Value::String(text) }]
    };
    let Ok(text) = parse::text(content) else { return raw() };
    let mut all = Vec::new();
    for document in parse::documents(text) {
        let Some(node) = document.node.filter(|_| document.errors.is_empty()) else { return raw() };
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
