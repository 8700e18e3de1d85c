//! Listing what refers to a digest over HTTP: every page of the API, and the fallback tag.

use crate::answer::Unread;
use crate::answer::{Answer, Descriptor, EvidencePlace, Reference, Referrers};
use crate::config::RegistryLimits;
use crate::fault::{OciErrors, is_absence, make_broken_unread};
use crate::http::{BodyExtent, RegistryCall, RegistrySession, Reply};
use crate::id::Digest;
use crate::index::{self, Listing, OCI_INDEX};
use crate::link::{self, is_same_origin};
use crate::read::{format_fallback_tag, is_success};
use reqwest::Method;
use reqwest::header::{self, HeaderValue};
use std::collections::HashSet;

/// All pages of a list together, in times of the largest page.
const LIST_PAGES: u64 = 4;

/// What the API said.
enum Api {
    /// It listed; perhaps nothing.
    Listed,
    /// It is not there; `true`: nowhere on this registry.
    Absent { everywhere: bool },
    /// It answered with something that is no list (a web page).
    Odd,
    /// It failed.
    Failed,
}

impl RegistrySession<'_> {
    /// What is likely to hold something: the API, else the fallback tag; both where the API lists nothing.
    pub(crate) async fn fetch_referrers(&self, digest: &Digest) -> Referrers {
        let mut found = Gathered::new(self.limits, Referrers::default());
        if self.host.has_no_referrers_api() {
            self.fetch_from_fallback(digest, &mut found).await;
            return found.finish_referrers(Some(EvidencePlace::Api));
        }
        match self.fetch_from_api(digest, &mut found).await {
            Api::Listed if !found.is_empty() => {
                return found.finish_referrers(Some(EvidencePlace::FallbackTag));
            }
            Api::Failed => return found.finish_referrers(None),
            Api::Absent { everywhere: true } => self.host.learn_no_referrers_api(),
            Api::Listed | Api::Absent { everywhere: false } | Api::Odd => {}
        }
        self.fetch_from_fallback(digest, &mut found).await;
        found.finish_referrers(None)
    }

    /// `listed`, and what the place that was left out of it lists.
    pub(crate) async fn fetch_left_out_referrers(&self, digest: &Digest, mut listed: Referrers) -> Referrers {
        let left_out = listed.left_out.take();
        let mut found = Gathered::new(self.limits, listed);
        match left_out {
            Some(EvidencePlace::Api) => {
                self.fetch_from_api(digest, &mut found).await;
            }
            Some(EvidencePlace::FallbackTag) => self.fetch_from_fallback(digest, &mut found).await,
            Some(EvidencePlace::SigTag | EvidencePlace::AttTag | EvidencePlace::Layout) | None => {}
        }
        found.finish_referrers(None)
    }

    async fn fetch_from_api(&self, digest: &Digest, found: &mut Gathered) -> Api {
        let mut url = self.build_url(&format!("/referrers/{digest}"));
        let mut seen = HashSet::new();
        let mut bytes = 0;
        for page in 1..=self.limits.pages {
            seen.insert(url.clone());
            let call = RegistryCall::new(Method::GET, url.clone(), self.limits.manifest)
                .with_header(header::ACCEPT, HeaderValue::from_static(OCI_INDEX));
            let reply = match self.send_call(&call, BodyExtent::Whole).await {
                Ok(reply) => reply,
                Err(why) => {
                    found.note_unread(why);
                    return Api::Failed;
                }
            };
            if page == 1
                && let Some(absent) = judge_absence(&reply)
            {
                return absent;
            }
            if !is_success(&reply) {
                found.note_unread(reply.make_refused_unread());
                return Api::Failed;
            }
            match index::parse_index(&reply.body) {
                Listing::Index(entries) => found.add_reply(EvidencePlace::Api, &reply, entries),
                Listing::Other(_) | Listing::Broken(_) if page == 1 && reply.media_type() != OCI_INDEX => {
                    return Api::Odd;
                }
                Listing::Other(what) => {
                    found.note_unread(make_broken_unread(
                        &reply.line,
                        Some(reply.status),
                        format!("the list is {what}"),
                    ));
                    return Api::Failed;
                }
                Listing::Broken(why) => {
                    found.note_unread(make_broken_unread(
                        &reply.line,
                        Some(reply.status),
                        format!("the list is broken: {why}"),
                    ));
                    return Api::Failed;
                }
            }
            let links = reply.headers.get_all(header::LINK);
            let Some(target) = link::find_next_link(links.iter().filter_map(|v| v.to_str().ok())) else {
                return Api::Listed;
            };
            match reply.url.join(&target) {
                Ok(next) if !is_same_origin(&next, &self.host.base) => {
                    let why = "the next page is said to be on another host, which is not asked";
                    found.note_unread(make_broken_unread(&reply.line, Some(reply.status), why));
                    return Api::Failed;
                }
                Ok(next) if seen.contains(&next) => {
                    let why = "the next page is one that was read already";
                    found.note_unread(make_broken_unread(&reply.line, Some(reply.status), why));
                    return Api::Failed;
                }
                Ok(next) => url = next,
                Err(_) => {
                    found.note_unread(make_broken_unread(
                        &reply.line,
                        Some(reply.status),
                        "the next page is no URL",
                    ));
                    return Api::Failed;
                }
            }
            bytes += reply.body.len() as u64;
            if bytes > LIST_PAGES * self.limits.manifest {
                found.note_unread(make_broken_unread(
                    &reply.line,
                    None,
                    "the list is too long to be read whole",
                ));
                return Api::Failed;
            }
            if found.is_full() {
                found.note_unread(found.make_overflow_unread(&reply.line, Some(reply.status)));
                return Api::Failed;
            }
        }
        let why = format!("the list has more than {} pages", self.limits.pages);
        found.note_unread(make_broken_unread(
            &RegistryCall::new(Method::GET, url, 0).format_line(),
            None,
            why,
        ));
        Api::Failed
    }

    async fn fetch_from_fallback(&self, digest: &Digest, found: &mut Gathered) {
        let tag = format_fallback_tag(digest);
        match self.fetch_manifest(&Reference::Tag(tag.clone())).await {
            Answer::Absent => {}
            Answer::Unread(why) => found.note_unread(why),
            Answer::Found(manifest) => {
                let line = RegistryCall::new(Method::GET, self.build_url(&format!("/manifests/{tag}")), 0)
                    .format_line();
                found.add_fallback(&line, &manifest.bytes);
            }
        }
    }
}

/// Whether the API is absent (case 52), for this repository or everywhere.
fn judge_absence(reply: &Reply) -> Option<Api> {
    match reply.status {
        400 | 405 | 406 | 501 => Some(Api::Absent { everywhere: reply.status != 400 }),
        404 => match OciErrors::parse(&reply.body) {
            // A registry's own error may speak of this repository alone.
            Some(_) if is_absence(reply.status, &reply.body) => Some(Api::Absent { everywhere: false }),
            Some(_) => None,
            None => Some(Api::Absent { everywhere: true }),
        },
        401 if !reply.headers.contains_key(header::WWW_AUTHENTICATE) => {
            Some(Api::Absent { everywhere: false })
        }
        _ => None,
    }
}

/// What has been listed so far.
#[derive(Debug)]
pub(crate) struct Gathered {
    cap: usize,
    seen: HashSet<Digest>,
    list: Referrers,
}

impl Gathered {
    pub(crate) fn new(limits: &RegistryLimits, list: Referrers) -> Self {
        let seen = list.entries.iter().map(|(_, descriptor)| descriptor.digest).collect();
        Self { cap: limits.candidates, seen, list }
    }

    fn is_empty(&self) -> bool {
        self.list.entries.is_empty()
    }

    fn is_full(&self) -> bool {
        self.list.entries.len() >= self.cap
    }

    fn make_overflow_unread(&self, line: &str, status: Option<u16>) -> Unread {
        make_broken_unread(line, status, format!("more than {} referrers are listed", self.cap))
    }

    /// The first reason stays.
    pub(crate) fn note_unread(&mut self, why: Unread) {
        self.list.unread.get_or_insert(why);
    }

    pub(crate) fn add_warning(&mut self, why: String) {
        self.list.warnings.push(why);
    }

    fn add_reply(&mut self, place: EvidencePlace, reply: &Reply, entries: Vec<Result<Descriptor, String>>) {
        self.add_entries(place, &reply.line, Some(reply.status), entries);
    }

    /// A fallback tag's manifest, wherever it was read.
    pub(crate) fn add_fallback(&mut self, line: &str, bytes: &[u8]) {
        match index::parse_index(bytes) {
            Listing::Index(entries) => self.add_entries(EvidencePlace::FallbackTag, line, None, entries),
            Listing::Other(what) => {
                self.add_warning(format!(
                    "{line}: the fallback tag is {what}, not an index: it lists nothing"
                ));
            }
            Listing::Broken(why) => self.note_unread(make_broken_unread(
                line,
                None,
                format!("the fallback index is broken: {why}"),
            )),
        }
    }

    pub(crate) fn add_entries(
        &mut self,
        place: EvidencePlace,
        line: &str,
        status: Option<u16>,
        entries: Vec<Result<Descriptor, String>>,
    ) {
        for entry in entries {
            match entry {
                Ok(descriptor) if self.seen.contains(&descriptor.digest) => {}
                Ok(_) if self.is_full() => return self.note_unread(self.make_overflow_unread(line, status)),
                Ok(descriptor) => {
                    self.seen.insert(descriptor.digest);
                    self.list.entries.push((place, descriptor));
                }
                Err(why) => self.note_unread(make_broken_unread(line, status, why)),
            }
        }
    }

    /// In a stable order: registries list in none.
    pub(crate) fn finish_referrers(self, left_out: Option<EvidencePlace>) -> Referrers {
        let mut list = self.list;
        list.entries.sort_by_key(|(place, descriptor)| (*place, descriptor.digest));
        list.left_out = left_out;
        list
    }
}
