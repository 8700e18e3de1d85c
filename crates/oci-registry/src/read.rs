//! Manifests and blobs over HTTP: the meaning of responses, and the check of bytes against their digest.

use crate::answer::Unread;
use crate::answer::{Answer, Descriptor, Manifest, Reference};
use crate::fault::{self, is_absence, make_broken_unread, make_integrity_unread};
use crate::http::{BodyExtent, RegistryCall, RegistrySession, Reply};
use crate::id::Digest;
use crate::index::{DOCKER_LIST, DOCKER_MANIFEST, OCI_INDEX, OCI_MANIFEST};
use bytes::Bytes;
use reqwest::Method;
use reqwest::header::{self, HeaderValue};
use serde::Deserialize;

/// All supported types: docker-registry 2.8 responds with 404, or converts, if the stored type is not among them.
pub(crate) fn make_accept_header() -> HeaderValue {
    static ALL: std::sync::LazyLock<String> =
        std::sync::LazyLock::new(|| [OCI_MANIFEST, OCI_INDEX, DOCKER_MANIFEST, DOCKER_LIST].join(", "));
    HeaderValue::from_str(&ALL).unwrap_or(HeaderValue::from_static("*/*"))
}

/// How often bytes that do not match their digest are requested: a cache in between may have been broken for a moment.
const HASH_TRIES: u32 = 2;

impl RegistrySession<'_> {
    pub(crate) async fn fetch_manifest(&self, reference: &Reference) -> Answer<Manifest> {
        match self.fetch_manifest_with_etag(reference).await {
            Answer::Found((manifest, _)) => Answer::Found(manifest),
            Answer::Absent => Answer::Absent,
            Answer::Unread(why) => Answer::Unread(why),
        }
    }

    /// A manifest, and the ETag for replacing it if the registry supports this.
    pub(crate) async fn fetch_manifest_with_etag(
        &self,
        reference: &Reference,
    ) -> Answer<(Manifest, Option<HeaderValue>)> {
        let (name, digest) = match reference {
            Reference::Digest(digest) => (digest.to_string(), Some(*digest)),
            Reference::Tag(tag) if is_tag(tag) => (tag.clone(), None),
            Reference::Tag(tag) => {
                return Answer::Unread(make_broken_unread("GET", None, format!("{tag:?} is no tag")));
            }
        };
        let call = RegistryCall::new(
            Method::GET,
            self.build_url(&format!("/manifests/{name}")),
            self.limits.manifest,
        )
        .with_header(header::ACCEPT, make_accept_header());
        self.fetch_hashed(&call, |reply| {
            let own = Digest::hash_bytes(&reply.body);
            let own_type = parse_media_type(&reply.body);
            match digest {
                Some(wanted) if wanted != own => {
                    return Err(make_integrity_unread(
                        &reply.line,
                        Some(reply.status),
                        "the bytes do not hash to the digest",
                    ));
                }
                Some(_) => {}
                // There is no digest to show whether this is complete, or a web page.
                None if own_type.is_none() => {
                    return Err(make_broken_unread(
                        &reply.line,
                        Some(reply.status),
                        "the answer is no manifest",
                    ));
                }
                None => {}
            }
            let media_type = match own_type.flatten() {
                Some(own) => own,
                None => reply.media_type(),
            };
            let manifest = Manifest { digest: own, media_type, bytes: reply.body.clone() };
            Ok((manifest, reply.headers.get(header::ETAG).cloned()))
        })
        .await
    }

    pub(crate) async fn holds_manifest(&self, digest: &Digest) -> Answer<()> {
        match self.send_head(&format!("/manifests/{digest}")).await {
            Ok(true) => Answer::Found(()),
            Ok(false) => match self.fetch_manifest(&Reference::Digest(*digest)).await {
                Answer::Found(_) => Answer::Found(()),
                Answer::Absent => Answer::Absent,
                Answer::Unread(why) => Answer::Unread(why),
            },
            Err(why) => Answer::Unread(why),
        }
    }

    pub(crate) async fn holds_blob(&self, digest: &Digest) -> Answer<()> {
        let path = format!("/blobs/{digest}");
        match self.send_head(&path).await {
            Ok(true) => return Answer::Found(()),
            Ok(false) => {}
            Err(why) => return Answer::Unread(why),
        }
        let call = RegistryCall::new(Method::GET, self.build_url(&path), 0);
        match self.send_call(&call, BodyExtent::StatusOnly).await {
            Ok(reply) if is_success(&reply) && reply.media_type() == "text/html" => Answer::Unread(
                make_broken_unread(&reply.line, Some(reply.status), "the answer is a web page"),
            ),
            Ok(reply) if is_success(&reply) => Answer::Found(()),
            Ok(reply) if is_absence(reply.status, &reply.body) => Answer::Absent,
            Ok(reply) => Answer::Unread(reply.make_refused_unread()),
            Err(why) => Answer::Unread(why),
        }
    }

    /// `Ok(true)`: it exists. `Ok(false)`: ask again with `GET`, whose response has a body with the reason.
    async fn send_head(&self, path: &str) -> Result<bool, Unread> {
        let call = RegistryCall::new(Method::HEAD, self.build_url(path), 0)
            .with_header(header::ACCEPT, make_accept_header());
        let reply = self.send_call(&call, BodyExtent::StatusOnly).await?;
        Ok(is_success(&reply) && reply.media_type() != "text/html")
    }

    pub(crate) async fn fetch_blob(&self, blob: &Descriptor) -> Answer<Bytes> {
        let call =
            RegistryCall::new(Method::GET, self.build_url(&format!("/blobs/{}", blob.digest)), blob.size);
        self.fetch_hashed(&call, |reply| {
            check_blob(&reply.line, Some(reply.status), blob, reply.body.clone())
        })
        .await
    }

    /// A `GET` whose success must pass `take`; otherwise it is sent once more.
    async fn fetch_hashed<T>(
        &self,
        call: &RegistryCall,
        take: impl Fn(&Reply) -> Result<T, Unread>,
    ) -> Answer<T> {
        let mut wrong = None;
        for _ in 0..HASH_TRIES {
            match self.send_call(call, BodyExtent::Whole).await {
                Ok(reply) if is_success(&reply) => match take(&reply) {
                    Ok(taken) => return Answer::Found(taken),
                    Err(why) => wrong = Some(why),
                },
                Ok(reply) if is_absence(reply.status, &reply.body) => return Answer::Absent,
                Ok(reply) => return Answer::Unread(reply.make_refused_unread()),
                Err(why) => return Answer::Unread(why),
            }
        }
        Answer::Unread(
            wrong.unwrap_or_else(|| make_broken_unread(&call.format_line(), None, "no usable answer")),
        )
    }
}

/// Checks the bytes of a blob against its descriptor: size first, then hash.
pub(crate) fn check_blob(
    line: &str,
    status: Option<u16>,
    blob: &Descriptor,
    bytes: Bytes,
) -> Result<Bytes, Unread> {
    if bytes.len() as u64 != blob.size {
        return Err(make_integrity_unread(line, status, "the bytes are not as many as the descriptor says"));
    }
    if Digest::hash_bytes(&bytes) != blob.digest {
        return Err(make_integrity_unread(line, status, "the bytes do not hash to the digest"));
    }
    Ok(bytes)
}

/// Only 200: no other success has a complete manifest or blob (206 is a part, 204 is empty).
pub(crate) fn is_success(reply: &Reply) -> bool {
    reply.status == 200
}

/// `None`: not a JSON object. `Some(None)`: one without a `mediaType`.
pub(crate) fn parse_media_type(manifest: &[u8]) -> Option<Option<String>> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Typed {
        #[serde(default)]
        media_type: Option<serde_json::Value>,
    }
    if manifest.iter().find(|b| !b.is_ascii_whitespace()) != Some(&b'{') {
        return None;
    }
    let typed: Typed = serde_json::from_slice(manifest).ok()?;
    Some(typed.media_type.and_then(|m| m.as_str().map(str::to_owned)))
}

/// distribution-spec: `[a-zA-Z0-9_][a-zA-Z0-9._-]{0,127}`.
pub(crate) fn is_tag(text: &str) -> bool {
    let word = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    let bytes = text.as_bytes();
    (1..=128).contains(&bytes.len())
        && word(bytes[0])
        && bytes.iter().all(|&b| word(b) || b == b'.' || b == b'-')
}

/// The tag for the referrers of `digest` in registries without the API
/// (distribution-spec, "Referrers Tag Schema").
pub(crate) fn format_fallback_tag(digest: &Digest) -> String {
    format!("sha256-{}", digest.format_hex())
}

/// Refuses a blob whose stated size is larger than `cap`, before anything is read.
pub(crate) fn check_size(line: &str, blob: &Descriptor, cap: u64) -> Option<Unread> {
    (blob.size > cap).then(|| {
        let why = format!("the descriptor announces {} bytes, more than the {cap} that are read", blob.size);
        fault::make_broken_unread(line, None, why)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_tag_may_be() {
        for tag in ["v1", "_a", "sha256-00.sig", "A.b-c_d"] {
            assert!(is_tag(tag), "{tag}");
        }
        for tag in ["", ".a", "-a", "a/b", "a b", "../x", "ä", "a?b", &"a".repeat(129)] {
            assert!(!is_tag(tag), "{tag}");
        }
    }
}
