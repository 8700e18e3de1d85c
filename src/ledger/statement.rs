//! A statement: what happened, the artifact that it is about, and its place in the chain; to bytes and back.

use crate::evidence::json;
use crate::evidence::statement::STATEMENT_V1;
use crate::ledger::VERSION;
use crate::ledger::event::{
    ACCEPTED, Accepted, Observed, PLACEMENT, Placed, Promoted, REMOVAL, Removal, VotesSealed,
};
use crate::ledger::record::{APPROVAL, DEPLOYMENT, PROMOTION, parse_subject};
use crate::model::id::{Artifact, Digest, OrderRef};
use crate::model::time::Time;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// What happened.
#[derive(Debug, Clone, PartialEq)]
#[allow(clippy::large_enum_variant)] // few are there at once
pub enum Event {
    /// Votes were sealed.
    Approvals(VotesSealed),
    /// Something was promoted.
    Promotion(Promoted),
    /// What is deployed was pinned on further Clusters.
    Placed(Placed),
    /// A deployment was seen healthy, ended Degraded or recovered.
    Deployment(Observed),
    /// The Order is gone.
    Removal(Removal),
    /// A state was accepted as it is.
    Accepted(Accepted),
}

impl Event {
    /// The predicate's type.
    #[must_use]
    pub fn predicate_type(&self) -> &'static str {
        match self {
            Self::Approvals(_) => APPROVAL,
            Self::Promotion(_) => PROMOTION,
            Self::Placed(_) => PLACEMENT,
            Self::Deployment(_) => DEPLOYMENT,
            Self::Removal(_) => REMOVAL,
            Self::Accepted(_) => ACCEPTED,
        }
    }

    /// The Order that it is about.
    #[must_use]
    pub fn order(&self) -> OrderRef {
        let named = match self {
            Self::Approvals(body) => {
                let seal = &body.record;
                return OrderRef { namespace: seal.preparation.namespace.clone(), name: seal.order.clone() };
            }
            Self::Promotion(body) => &body.record.order,
            Self::Placed(body) => &body.order,
            Self::Deployment(body) => &body.record.order,
            Self::Removal(body) => &body.order,
            Self::Accepted(body) => &body.order,
        };
        OrderRef { namespace: named.namespace.clone(), name: named.name.clone() }
    }

    fn to_value(&self) -> Result<Value, serde_json::Error> {
        match self {
            Self::Approvals(body) => serde_json::to_value(body),
            Self::Promotion(body) => serde_json::to_value(body),
            Self::Placed(body) => serde_json::to_value(body),
            Self::Deployment(body) => serde_json::to_value(body),
            Self::Removal(body) => serde_json::to_value(body),
            Self::Accepted(body) => serde_json::to_value(body),
        }
    }
}

/// A statement's place in its Order's chain: member `ledger` of the predicate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Link {
    /// Of this form.
    pub version: u32,
    /// The repository's ledger: 32 hex digits, the same in all statements of a repository.
    pub id: String,
    /// The branch, a full reference.
    pub branch: String,
    /// Its place; the first is 1.
    pub sequence: u64,
    /// The hash of the statement before it; absent in the first, and where a state was accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous: Option<Digest>,
    /// SHA-256 of the `past.json` that it results in.
    pub past: Digest,
    /// When it was signed; never before the statement before it.
    pub time: Time,
}

/// What happened, to which artifact, with its place in the chain.
#[derive(Debug, Clone, PartialEq)]
pub struct Statement {
    /// What it is about.
    pub artifact: Artifact,
    /// What happened.
    pub event: Event,
    /// Its place.
    pub link: Link,
}

/// Why a payload is no statement that this build can use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unread {
    /// A newer build wrote it: never called forged.
    Newer(String),
    /// It is of before the ledger, or of another program: it has no place in a chain.
    Unlinked,
    /// It is no statement.
    Wrong(String),
}

impl Statement {
    /// The in-toto statement: the bytes that are signed as payload. Members of the predicate are sorted by name.
    ///
    /// # Errors
    /// None for these types; serialisation is asked all the same.
    pub fn to_payload(&self) -> Result<Vec<u8>, serde_json::Error> {
        let mut predicate = self.event.to_value()?;
        predicate["ledger"] = serde_json::to_value(&self.link)?;
        predicate.sort_all_objects();
        serde_json::to_vec(&json!({
            "_type": STATEMENT_V1,
            "subject": [{"name": self.artifact.format_oci_ref(), "digest": {"sha256": self.artifact.digest.format_hex()}}],
            "predicateType": self.event.predicate_type(),
            "predicate": predicate,
        }))
    }

    /// Reads a payload. Whether it is signed is judged elsewhere.
    ///
    /// # Errors
    /// It is of a newer build, has no place in a chain, or is no statement.
    pub fn from_payload(payload: &[u8]) -> Result<Self, Unread> {
        let value: Value = json::parse_strict(payload).map_err(Unread::Wrong)?;
        if value.get("_type").and_then(Value::as_str) != Some(STATEMENT_V1) {
            return Err(Unread::Wrong("it is no in-toto statement v1".into()));
        }
        let (artifact, kind) = parse_subject(payload).map_err(Unread::Wrong)?;
        let predicate = value.get("predicate").filter(|p| p.is_object());
        let Some(predicate) = predicate else {
            return Err(Unread::Wrong("its predicate is no object".into()));
        };
        let Some(link) = predicate.get("ledger") else { return Err(Unread::Unlinked) };
        match link.get("version").and_then(Value::as_u64) {
            Some(version) if version == u64::from(VERSION) => {}
            Some(version) if version > u64::from(VERSION) => {
                return Err(Unread::Newer(format!("its version is {version}, this build reads {VERSION}")));
            }
            Some(_) | None => return Err(Unread::Wrong("its ledger names no version that is known".into())),
        }
        let link: Link =
            Link::deserialize(link).map_err(|e| Unread::Wrong(format!("its ledger cannot be read: {e}")))?;
        let event = match kind.as_str() {
            APPROVAL => parse_body(predicate).map(Event::Approvals),
            PROMOTION => parse_body(predicate).map(Event::Promotion),
            PLACEMENT => parse_body(predicate).map(Event::Placed),
            DEPLOYMENT => parse_body(predicate).map(Event::Deployment),
            REMOVAL => parse_body(predicate).map(Event::Removal),
            ACCEPTED => parse_body(predicate).map(Event::Accepted),
            other => {
                let other = crate::evidence::envelope::clip_text(other);
                return Err(Unread::Newer(format!("its kind {other:?} is not known to this build")));
            }
        };
        let event = event.map_err(|e| Unread::Wrong(format!("its predicate cannot be read: {e}")))?;
        Ok(Self { artifact, event, link })
    }
}

fn parse_body<'p, T: Deserialize<'p>>(predicate: &'p Value) -> Result<T, serde_json::Error> {
    T::deserialize(predicate)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;
    use crate::ledger::sample;

    #[test]
    fn a_statement_of_each_kind_is_read_as_it_was_written() {
        let mut chain = sample::Chain::new();
        for event in sample::one_of_each() {
            chain.add(event);
        }
        for statement in chain.statements() {
            let payload = statement.to_payload().unwrap();
            assert_eq!(Statement::from_payload(&payload).as_ref(), Ok(statement));
        }
    }

    #[test]
    fn each_predicate_is_what_its_schema_says() {
        let schemas: Vec<_> = crate::ledger::event::SCHEMAS.iter().chain(crate::attest::SCHEMAS).collect();
        let mut chain = sample::Chain::new();
        sample::one_of_each().into_iter().for_each(|one| {
            chain.add(one);
        });
        let mut checked = std::collections::BTreeSet::new();
        for statement in chain.statements() {
            let value: Value = serde_json::from_slice(&statement.to_payload().unwrap()).unwrap();
            let kind = statement.event.predicate_type();
            let (_, _, text) = schemas.iter().find(|(_, known, _)| *known == kind).unwrap();
            let schema: Value = serde_json::from_str(text).unwrap();
            let validator = jsonschema::validator_for(&schema).unwrap();
            let errors: Vec<String> = validator
                .iter_errors(&value["predicate"])
                .map(|e| format!("{}: {e}", e.instance_path()))
                .collect();
            assert!(errors.is_empty(), "{kind}: {errors:?}");
            // Every member that is written has its row.
            for member in value["predicate"].as_object().unwrap().keys() {
                assert!(schema["properties"].get(member).is_some(), "{kind} does not name {member}");
            }
            checked.insert(kind);
        }
        assert_eq!(checked.len(), 6);
    }

    #[test]
    fn a_newer_builds_statement_is_not_called_wrong() {
        let mut chain = sample::Chain::new();
        chain.add(sample::promotion(1, "web-1"));
        let payload = String::from_utf8(chain.statements()[0].to_payload().unwrap()).unwrap();
        let newer = [
            payload
                .replace(r#""version":1,"#, r#""version":2,"#)
                .replace(r#""version":1}"#, r#""version":2}"#),
            payload.replace("attestations/promotion/v1", "attestations/wave/v1"),
        ];
        for text in newer {
            assert_ne!(text, payload);
            assert!(matches!(Statement::from_payload(text.as_bytes()), Err(Unread::Newer(_))), "{text}");
        }
        let unlinked = payload.replace(r#""ledger""#, r#""ledgers""#);
        assert_eq!(Statement::from_payload(unlinked.as_bytes()), Err(Unread::Unlinked));
    }
}
