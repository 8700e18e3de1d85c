//! What an evidence bundle says of itself: what it is about, and the trust and demands it was saved under.

use crate::evidence::json;
use crate::model::evidence::SealOf;
use crate::model::id::{Artifact, Digest, OciRepository, OrderRef, PreparationName};
use crate::model::kitchen::{KitchenSpec, ProvenanceRules, Trust};
use crate::model::verification::Demanded;
use crate::policy::decide::verification::ArtifactQuestion;
use serde::{Deserialize, Serialize};

const API_VERSION: &str = "expedite.kokumi.dev/v1";
const KIND: &str = "EvidenceBundle";

/// The content of `expedite/bundle.json`. Its members are frozen: another meaning needs another `apiVersion`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct About {
    api_version: String,
    kind: String,
    /// Where the artifact was.
    pub repository: OciRepository,
    /// What it is.
    pub digest: Digest,
    /// For which Order.
    pub order: OrderRef,
    /// Which Preparation it was, where known.
    pub preparation: Option<SealedFor>,
    /// What the Order demanded; null: it was not read.
    pub demands: Option<Demanded>,
    /// Whom the Kitchen trusted.
    pub kitchen: Trusted,
}

/// A Preparation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SealedFor {
    /// Its name, in the Order's namespace.
    pub name: PreparationName,
    /// Its uid, where known.
    pub uid: Option<String>,
}

/// What of a Kitchen evidence is judged by.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Trusted {
    /// Keys and identities.
    pub trust: Trust,
    /// Allow-lists for provenance.
    pub provenance: ProvenanceRules,
}

impl About {
    /// Of a question that was answered by `kitchen`.
    #[must_use]
    pub fn new(question: &ArtifactQuestion, kitchen: &KitchenSpec) -> Self {
        Self {
            api_version: API_VERSION.to_owned(),
            kind: KIND.to_owned(),
            repository: question.artifact.repository.clone(),
            digest: question.artifact.digest,
            order: question.order.clone(),
            preparation: question
                .seal_of
                .as_ref()
                .map(|of| SealedFor { name: of.preparation.clone(), uid: of.uid.clone() }),
            demands: question.demanded.clone(),
            kitchen: Trusted { trust: kitchen.trust.clone(), provenance: kitchen.provenance.clone() },
        }
    }

    /// Reads it.
    ///
    /// # Errors
    /// Says what is wrong, or that it is of another version.
    pub fn parse(bytes: &[u8]) -> Result<Self, String> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Version {
            api_version: String,
            kind: String,
        }
        let version: Version = json::parse_strict(bytes)?;
        if version.api_version != API_VERSION || version.kind != KIND {
            return Err(format!(
                "it is {:?} of {:?}, and this build reads {KIND} of {API_VERSION}",
                version.kind, version.api_version
            ));
        }
        json::parse_strict(bytes)
    }

    /// The artifact.
    #[must_use]
    pub fn artifact(&self) -> Artifact {
        Artifact { repository: self.repository.clone(), digest: self.digest }
    }

    /// As JSON, indented.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        // Nothing in it is what JSON cannot say.
        let mut bytes = serde_json::to_vec_pretty(self).unwrap_or_default();
        bytes.push(b'\n');
        bytes
    }

    /// Whose seal is looked for.
    #[must_use]
    pub fn build_seal_of(&self) -> Option<SealOf> {
        self.preparation.as_ref().map(|p| SealOf {
            order: self.order.clone(),
            preparation: p.name.clone(),
            uid: p.uid.clone(),
        })
    }

    /// The Kitchen that it was saved under, as far as it was kept.
    #[must_use]
    pub fn build_kitchen(&self) -> KitchenSpec {
        KitchenSpec {
            trust: self.kitchen.trust.clone(),
            provenance: self.kitchen.provenance.clone(),
            ..KitchenSpec::default()
        }
    }
}
