//! Attaches a record to an artifact exactly once, also with repeated and parallel runs.

use crate::answer::Unread;
use crate::answer::{Answer, Reference};
use crate::fault::make_broken_unread;
use crate::http::{BodyExtent, RegistryCall, RegistrySession, Reply};
use crate::id::Digest;
use crate::index::{OCI_INDEX, OCI_MANIFEST};
use crate::index_entry::{Entered, NotEntered, build_descriptor, enter_descriptor};
use crate::read::{format_fallback_tag, parse_media_type};
use bytes::Bytes;
use rand::RngExt;
use reqwest::Method;
use reqwest::header::{self, HeaderName, HeaderValue};
use serde_json::Value;
use std::time::{Duration, Instant};

/// Result of attaching.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttachOutcome {
    /// It was attached now.
    New,
    /// An equal one was attached before; nothing was written.
    Already,
}

/// Why a record is not attached.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AttachError {
    /// The artifact does not exist (any longer).
    #[error("the artifact {0} is not in the registry any more")]
    SubjectGone(Digest),
    /// A request failed.
    #[error("{}: {}", .0.request, .0.why)]
    Failed(Unread),
    /// The record is stored, but the list of referrers could not be updated.
    #[error("the record is stored but cannot be found: {}: {}", .0.request, .0.why)]
    NotListed(Unread),
    /// The tag for the list holds something else, which is not changed.
    #[error("the record is stored but cannot be found: tag {tag} holds {what}, not a list of referrers")]
    NotAnIndex {
        /// The fallback tag.
        tag: String,
        /// What is there.
        what: String,
    },
    /// Other writers kept overwriting the list.
    #[error("the record is stored but cannot be found: tag {tag} was overwritten by others {tries} times")]
    Contended {
        /// The fallback tag.
        tag: String,
        /// Number of tries.
        tries: u32,
    },
    /// The settings forbid writing to this registry.
    #[error("{0} is read-only by the settings (readOnly)")]
    ReadOnly(String),
    /// The caller's bytes, digests and subject do not match.
    #[error("the record is not what it should be: {0}")]
    Inconsistent(&'static str),
}

/// What is attached.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AttachedRecord<'a> {
    pub subject: &'a Digest,
    pub manifest: &'a [u8],
    pub digest: &'a Digest,
    pub blobs: &'a [(Digest, Bytes)],
}

impl AttachedRecord<'_> {
    /// # Errors
    /// The parts do not match.
    pub(crate) fn check_record(&self) -> Result<(), AttachError> {
        let body: Value = serde_json::from_slice(self.manifest).unwrap_or_default();
        let subject = body["subject"]["digest"].as_str();
        if Digest::hash_bytes(self.manifest) != *self.digest {
            return Err(AttachError::Inconsistent("the manifest has another digest"));
        }
        if self.blobs.iter().any(|(digest, bytes)| Digest::hash_bytes(bytes) != *digest) {
            return Err(AttachError::Inconsistent("a blob has another digest"));
        }
        if subject != Some(self.subject.to_string().as_str()) {
            return Err(AttachError::Inconsistent("the manifest names another subject"));
        }
        Ok(())
    }

    fn find_media_type(&self) -> String {
        parse_media_type(self.manifest).flatten().unwrap_or_else(|| OCI_MANIFEST.to_owned())
    }
}

/// Tries of uploading one blob: an interrupted upload cannot be continued.
const BLOB_ROUNDS: u32 = 2;
/// How often an upload with the response 400 is tried: docker-registry 2.8 responds so (DIGEST_INVALID) while another
/// run uploads the same manifest or list. The bytes are known to be right: [`Record::check`].
const PUTS: u32 = 4;
/// Before the second of them; the later ones wait longer.
const PAUSE: Duration = Duration::from_millis(100);

impl RegistrySession<'_> {
    /// Attaches the record; the second value is a warning about the registry.
    pub(crate) async fn attach_record(
        &self,
        record: &AttachedRecord<'_>,
    ) -> Result<(AttachOutcome, Option<String>), AttachError> {
        let tag = format_fallback_tag(record.subject);
        // Within this run one at a time, because the list is read, changed and written.
        let turn = self.host.find_turn(&format!("{}:{tag}", self.repository.path()));
        let _turn = turn.lock().await;
        match self.holds_manifest(record.subject).await {
            Answer::Found(()) => {}
            Answer::Absent => return Err(AttachError::SubjectGone(*record.subject)),
            Answer::Unread(why) => return Err(AttachError::Failed(why)),
        }
        let listed = self.fetch_referrers(record.subject).await;
        if listed.entries.iter().any(|(_, entry)| entry.digest == *record.digest)
            && let Answer::Found(()) = self.holds_manifest(record.digest).await
        {
            return Ok((AttachOutcome::Already, None));
        }
        for (digest, bytes) in record.blobs {
            self.put_blob(digest, bytes).await.map_err(AttachError::Failed)?;
        }
        let (reference, media_type) = (record.digest.to_string(), record.find_media_type());
        let mut puts = 1;
        let reply = loop {
            let reply = self.put_manifest(&reference, &media_type, record.manifest, None).await;
            match reply {
                Ok(reply) if reply.status == 400 && puts < PUTS => self.pause_for(PAUSE * puts).await,
                other => break check_created(other).map_err(AttachError::Failed)?,
            }
            puts += 1;
        };
        let said = reply.header(&HeaderName::from_static("oci-subject"));
        let warning = match said {
            Some(said) if said == record.subject.to_string() => return Ok((AttachOutcome::New, None)),
            Some(_) => Some(format!("{}: OCI-Subject names another digest; taken as absent", reply.line)),
            None => None,
        };
        self.enter_in_fallback(&tag, record).await?;
        Ok((AttachOutcome::New, warning))
    }

    async fn put_blob(&self, digest: &Digest, bytes: &Bytes) -> Result<(), Unread> {
        let mut failed = None;
        for _ in 0..BLOB_ROUNDS {
            if let Answer::Found(()) = self.holds_blob(digest).await {
                return Ok(());
            }
            match self.upload_blob(digest, bytes).await {
                Ok(()) => return Ok(()),
                Err(why) if why.retryable || matches!(why.status, Some(400 | 404)) => failed = Some(why),
                Err(why) => return Err(why),
            }
        }
        Err(failed.unwrap_or_else(|| make_broken_unread("POST", None, "the blob cannot be stored")))
    }

    async fn upload_blob(&self, digest: &Digest, bytes: &Bytes) -> Result<(), Unread> {
        let start =
            RegistryCall::new(Method::POST, self.build_url("/blobs/uploads/"), self.limits.error_body);
        let reply = self.send_call(&start, BodyExtent::StatusOnly).await?;
        if reply.status != 202 {
            return Err(reply.make_refused_unread());
        }
        let odd = |why: &str| make_broken_unread(&reply.line, Some(reply.status), why);
        let place = reply.header(&header::LOCATION).ok_or_else(|| odd("says not where to upload to"))?;
        let mut place =
            reply.url.join(place).map_err(|_| odd("says to upload to something that is no URL"))?;
        if !super::http::can_follow(&self.host.base, &place) {
            return Err(odd("says to upload from https to something else, which is refused"));
        }
        place.query_pairs_mut().append_pair("digest", &digest.to_string());
        // Another host gets the blob but no credentials, which are only sent to the registry's own origin.
        let mut put = RegistryCall::new(Method::PUT, place, self.limits.error_body)
            .with_header(header::CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
        put.body = bytes.clone();
        check_created(self.send_call(&put, BodyExtent::StatusOnly).await).map(|_| ())
    }

    async fn put_manifest(
        &self,
        reference: &str,
        media_type: &str,
        bytes: &[u8],
        unchanged_since: Option<&HeaderValue>,
    ) -> Result<Reply, Unread> {
        let mut put = RegistryCall::new(
            Method::PUT,
            self.build_url(&format!("/manifests/{reference}")),
            self.limits.error_body,
        );
        let kind = HeaderValue::from_str(media_type)
            .map_err(|_| make_broken_unread(&put.format_line(), None, "the media type cannot be sent"))?;
        put = put.with_header(header::CONTENT_TYPE, kind);
        if let Some(tag) = unchanged_since {
            put = put.with_header(header::IF_MATCH, tag.clone());
        }
        put.body = Bytes::copy_from_slice(bytes);
        self.send_call(&put, BodyExtent::StatusOnly).await
    }

    /// Adds the record to the fallback index, and checks later that it is still listed: registries have no
    /// compare-and-swap, so the last of two writers wins, and the first one must notice.
    async fn enter_in_fallback(&self, tag: &str, record: &AttachedRecord<'_>) -> Result<(), AttachError> {
        let entry = build_descriptor(record.manifest, record.digest);
        let mut written = false;
        let mut refusals = 0;
        for round in 1..=self.limits.index_tries.saturating_add(1) {
            let start = Instant::now();
            let (list, etag) = self.fetch_fallback_index(tag).await.map_err(AttachError::NotListed)?;
            let bytes = match enter_descriptor(list.as_deref(), &entry) {
                Ok(Entered::Already) => return Ok(()),
                Ok(Entered::Changed(_)) if round > self.limits.index_tries => break,
                Ok(Entered::Changed(bytes)) => bytes,
                Err(NotEntered::NotAnIndex(what)) => {
                    return Err(AttachError::NotAnIndex { tag: tag.to_owned(), what });
                }
            };
            if bytes.len() as u64 > self.limits.manifest {
                let line = format!("PUT {}", self.build_url(&format!("/manifests/{tag}")));
                let why =
                    make_broken_unread(&line, None, "the list of referrers has no room for another one");
                return Err(AttachError::NotListed(why));
            }
            let reply = self.put_manifest(tag, OCI_INDEX, &bytes, etag.as_ref()).await;
            match reply {
                // Another writer was faster, and this registry detects it.
                Ok(reply) if matches!(reply.status, 409 | 412) => {}
                // Another writer is active; the list is read again, so that its entries are not lost.
                Ok(reply)
                    if reply.status == 400 && refusals + 1 < PUTS && round < self.limits.index_tries =>
                {
                    refusals += 1;
                }
                other => {
                    check_created(other).map_err(AttachError::NotListed)?;
                    written = true;
                }
            }
            self.wait_until_settled(start.elapsed(), round).await;
        }
        let tries = self.limits.index_tries;
        match written {
            true => Err(AttachError::Contended { tag: tag.to_owned(), tries }),
            false => Err(AttachError::NotListed(make_broken_unread(
                &format!("PUT {}", self.build_url(&format!("/manifests/{tag}"))),
                Some(412),
                "the registry takes no change of the list of referrers",
            ))),
        }
    }

    /// A pause after which a writer that had read the list before our write must have written: three times our own
    /// duration, plus a random part, so that two writers do not stay in step.
    async fn wait_until_settled(&self, took: Duration, round: u32) {
        let least = self.limits.settle.max(took.saturating_mul(3)).min(Duration::from_secs(10));
        let spread = least.mul_f64(rand::rng().random_range(0.0..f64::from(round)));
        self.pause_for(least + spread).await;
    }

    /// Waits, within what is left of the budget.
    async fn pause_for(&self, time: Duration) {
        let _active = self.budget.start_activity();
        tokio::time::sleep(time.min(self.budget.remaining())).await;
    }

    /// The current list, and its ETag if the registry sends one.
    async fn fetch_fallback_index(&self, tag: &str) -> Result<(Option<Bytes>, Option<HeaderValue>), Unread> {
        match self.fetch_manifest_with_etag(&Reference::Tag(tag.to_owned())).await {
            Answer::Found((manifest, etag)) => Ok((Some(manifest.bytes), etag)),
            Answer::Absent => Ok((None, None)),
            Answer::Unread(why) => Err(why),
        }
    }
}

/// Only these statuses mean that something is stored.
fn check_created(reply: Result<Reply, Unread>) -> Result<Reply, Unread> {
    let reply = reply?;
    match reply.status {
        200 | 201 | 204 => Ok(reply),
        _ => Err(reply.make_refused_unread()),
    }
}
