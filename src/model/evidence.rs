//! What is requested from a registry, and what it proved; used by gates and evidence.

use crate::model::id::{Artifact, Digest, OrderRef, PreparationName};
use crate::model::kitchen::Role;
use crate::model::order::ApprovalPolicy;
use crate::model::reason::Verified;
use crate::model::renderer::Renderer;
use crate::model::time::Time;
use oci_registry::UnreadReason;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Outcome of looking for proof of one claim: never a bool (`docs/design/evidence.md#four-outcomes`).
#[derive(Debug, Clone, PartialEq)]
pub enum Evidence<P> {
    /// Signed content proves it.
    Proven(P),
    /// Every place was read successfully, and there is no evidence.
    Missing(Looked),
    /// Evidence exists, but none of it proves the claim.
    Invalid(Looked),
    /// A necessary answer could not be read or trusted.
    Unread(Unread),
}

/// What was examined, where, and why each candidate did not count.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Looked {
    /// One sentence for the condition's message; it does not change from run to run.
    pub why: String,
    /// The report's word for it.
    pub reason: Option<Verified>,
    /// Each candidate, in a stable order.
    pub candidates: Vec<EvidenceCandidate>,
}

/// One thing that was examined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EvidenceCandidate {
    /// `referrers API`, `fallback tag`, `.sig tag`, `.att tag`, …
    pub place: String,
    /// The manifest or layer.
    pub digest: Option<Digest>,
    /// Why it did not count.
    pub why: String,
}

/// A necessary answer that could not be read or trusted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unread {
    /// One of the `Registry…` reasons, or ArtifactNotFound.
    pub reason: Verified,
    /// Which request: `GET /v2/shop/podinfo/referrers/sha256:…`; never a credential.
    pub request: String,
    /// HTTP status, where there was one.
    pub status: Option<u16>,
    /// The cause, for a person; it does not change from run to run.
    pub why: String,
    /// Whether the next run may succeed without any action.
    pub retryable: bool,
}

impl From<oci_registry::Unread> for Unread {
    fn from(unread: oci_registry::Unread) -> Self {
        let oci_registry::Unread { reason, request, status, why, retryable } = unread;
        let reason = match reason {
            UnreadReason::Unauthorized => Verified::RegistryUnauthorized,
            UnreadReason::RateLimited => Verified::RegistryRateLimited,
            UnreadReason::Unreachable => Verified::RegistryUnreachable,
            UnreadReason::Error => Verified::RegistryError,
        };
        Self { reason, request, status, why, retryable }
    }
}

/// What one claim is about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Claim {
    /// The artifact exists, is complete, and Argo CD can unpack it.
    Artifact,
    /// Signed by a trusted key.
    Signature,
    /// Signed SLSA provenance names this Order.
    Provenance(OrderRef),
    /// The newest valid seal of votes for this Order and Preparation.
    Approvals(SealOf),
    /// Signed statements of this predicate type (role checks), newest first.
    Attestation(String),
    /// Signed scans (role scans), newest per scanner.
    Scans,
    /// Promotion and deployment records on the artifact (role records).
    Records,
}

/// Whose seal is looked for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SealOf {
    pub order: OrderRef,
    /// The Preparation, in the Order's namespace.
    pub preparation: PreparationName,
    /// Its uid, where known.
    pub uid: Option<String>,
}

/// All claims that a Case needs of one artifact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ask {
    pub artifact: Artifact,
    /// The claims that are needed of it.
    pub claims: BTreeSet<Claim>,
}

/// A record of the repository that a history entry names, and what it must be about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RecordAsk {
    /// Whose: `records/<namespace>/<order>/`.
    pub order: OrderRef,
    /// SHA-256 of the bundle's bytes: the file's name.
    pub bundle: Digest,
    /// The artifact that it must be signed for.
    pub artifact: Digest,
}

/// One signed piece of evidence that proved its claim.
#[derive(Debug, Clone, PartialEq)]
pub struct Proof {
    /// Name of the trusted key (or identity).
    pub key: String,
    /// base64 SHA-256 of the key's SubjectPublicKeyInfo, as cosign's hint.
    pub fingerprint: String,
    /// Digest of the evidence's manifest (bundle referrer) or layer (`.sig`, `.att`).
    pub digest: Digest,
    /// SHA-256 of the signed file itself: the bundle, the envelope or the simple-signing payload. Records are
    /// named by it (`records/…/<sha256>.json`, `promotionRecord.digest`).
    pub blob: Digest,
    /// Where it was found.
    pub place: String,
    /// The verified statement, where it is one.
    pub statement: Option<Arc<Statement>>,
}

/// A verified in-toto statement.
#[derive(Debug, Clone, PartialEq)]
pub struct Statement {
    /// Exactly as signed.
    pub predicate_type: String,
    /// What the statement calls the artifact, where it names it.
    pub subject: Option<String>,
    /// The predicate, parsed from the very bytes that were verified.
    pub predicate: serde_json::Value,
    /// When it was made, according to the predicate (`metadata.finishedOn`, `sealedTime`, `timeVerified`, …).
    /// Times of a registry or manifest are not signed and are never used here.
    pub time: Option<Time>,
}

/// What is known of the artifact itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArtifactProof {
    /// Media type of the manifest.
    pub media_type: String,
    /// Size of the manifest, bytes.
    pub size: u64,
    /// The one content layer.
    pub layer: Digest,
    pub layer_media_type: String,
}

/// SLSA provenance that names the Order.
#[derive(Debug, Clone, PartialEq)]
pub struct ProvenanceProof {
    pub proof: Proof,
    /// `finishedOn` (v1) or `buildFinishedOn` (v0.2).
    pub finished_on: Option<Time>,
    /// sha256 digests among resolved dependencies (v1) or materials (v0.2).
    pub dependencies: BTreeSet<Digest>,
    pub builder: Option<String>,
}

/// What signed provenance says about the build of an artifact.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Build {
    /// When the build ended.
    pub finished_on: Option<Time>,
    /// What it was built from, in the provenance's order.
    pub materials: Vec<Material>,
    /// The parameters of the build: the external parameters (v1), the invocation's parameters (v0.2).
    pub parameters: Option<serde_json::Value>,
    /// What rendered it, where the internal parameters (v1) or the invocation's environment (v0.2) say so.
    pub renderer: Option<Renderer>,
}

/// One thing that an artifact was built from.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Material {
    pub uri: Option<String>,
    pub sha256: Option<Digest>,
    pub commit: Option<String>,
}

/// The newest valid seal.
#[derive(Debug, Clone, PartialEq)]
pub struct SealProof {
    pub proof: Proof,
    /// From the predicate.
    pub sealed_time: Time,
    /// From the predicate.
    pub policy: ApprovalPolicy,
    /// `Approved`, or another word.
    pub result: String,
}

/// Counts of one scan, distinct by (id, package, version).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ScanCounts {
    /// CVSS ≥ 9.0, or the scanner's word.
    pub critical: u64,
    /// CVSS ≥ 7.0.
    pub high: u64,
    /// CVSS ≥ 4.0.
    pub medium: u64,
    /// CVSS > 0 (and negligible).
    pub low: u64,
    /// No rating: shown, never turned into low or zero.
    pub unknown: u64,
}

impl ScanCounts {
    /// The counts that rose since an earlier scan of the same artifact, for a warning; `None`: none did.
    ///
    /// ```
    /// use expedite::model::evidence::ScanCounts;
    /// let old = ScanCounts { critical: 0, high: 3, ..ScanCounts::default() };
    /// let new = ScanCounts { critical: 2, high: 1, ..ScanCounts::default() };
    /// assert_eq!(new.describe_rise(&old).as_deref(), Some("critical from 0 to 2"));
    /// assert_eq!(new.describe_rise(&new), None);
    /// ```
    #[must_use]
    pub fn describe_rise(&self, old: &Self) -> Option<String> {
        let rows = [
            ("critical", old.critical, self.critical),
            ("high", old.high, self.high),
            ("medium", old.medium, self.medium),
            ("low", old.low, self.low),
            ("without a rating", old.unknown, self.unknown),
        ];
        let risen: Vec<String> = rows
            .into_iter()
            .filter(|(_, old, new)| new > old)
            .map(|(word, old, new)| format!("{word} from {old} to {new}"))
            .collect();
        (!risen.is_empty()).then(|| risen.join(", "))
    }
}

/// The newest signed scan of one scanner.
#[derive(Debug, Clone, PartialEq)]
pub struct ScanProof {
    pub proof: Proof,
    pub scanner: String,
    /// `scanFinishedOn`.
    pub finished_on: Time,
    /// All findings; `None`: the report has no data ("no data" is never zero).
    pub counts: Option<ScanCounts>,
    /// Findings with a known fix.
    pub fixable: Option<ScanCounts>,
}

/// All answers about one artifact.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ArtifactFacts {
    pub artifact: Option<Evidence<ArtifactProof>>,
    pub signature: Option<Evidence<Proof>>,
    /// Claim Provenance, per Order.
    pub provenance: BTreeMap<OrderRef, Evidence<ProvenanceProof>>,
    pub approvals: BTreeMap<SealOf, Evidence<SealProof>>,
    /// Claim Attestation, per predicate type: all valid ones.
    pub attestations: BTreeMap<String, Evidence<Vec<Proof>>>,
    pub scans: Option<Evidence<Vec<ScanProof>>>,
    /// Claim Records: all valid ones.
    pub records: Option<Evidence<Vec<Proof>>>,
}

impl ArtifactFacts {
    /// Whether nothing of it is Unread: then it need not be read again in the same run.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        fn is_read<P>(evidence: &Evidence<P>) -> bool {
            match evidence {
                Evidence::Proven(_) | Evidence::Missing(_) | Evidence::Invalid(_) => true,
                Evidence::Unread(_) => false,
            }
        }
        self.artifact.as_ref().is_none_or(is_read)
            && self.signature.as_ref().is_none_or(is_read)
            && self.provenance.values().all(is_read)
            && self.approvals.values().all(is_read)
            && self.attestations.values().all(is_read)
            && self.scans.as_ref().is_none_or(is_read)
            && self.records.as_ref().is_none_or(is_read)
    }
}

/// All answers of one run, by artifact.
#[derive(Debug, Clone, Default)]
pub struct Facts {
    /// Absent: nothing was asked of it.
    pub artifacts: BTreeMap<Artifact, ArtifactFacts>,
    /// Records of the repository that were asked for: proven ones are by a key trusted for records.
    pub records: BTreeMap<RecordAsk, Evidence<Proof>>,
    /// Why no key can be used, where that is so: it holds before any request.
    pub keys: KeyState,
    /// Warnings of the reading (a dangling index entry, a helper that is missing).
    pub warnings: Vec<crate::error::Failure>,
}

impl Facts {
    /// The records of one Order that were read.
    pub fn find_records<'f>(&'f self, order: &OrderRef) -> impl Iterator<Item = &'f RecordAsk> {
        let least = Digest::from_bytes([0; 32]);
        let from = RecordAsk { order: order.clone(), bundle: least, artifact: least };
        self.records.range(from..).map(|(ask, _)| ask).take_while({
            let order = order.clone();
            move |ask| ask.order == order
        })
    }
}

/// Whether the Kitchen's keys can be used, per role.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeyState {
    /// Roles with at least one usable key.
    pub usable: BTreeSet<Role>,
    /// What is wrong with the Kitchen's trust: configuration errors, before any request.
    pub errors: Vec<String>,
    /// Hash over key fingerprints, roles, identities, roots and allow-lists: part of a kept verdict's key.
    pub fingerprint: Option<Digest>,
    /// Names of keyless identities: a build without them holds.
    pub identities: Vec<String>,
}
