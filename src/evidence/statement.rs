//! in-toto statements: the content of a signed payload, and whether it is about our artifact.

use crate::evidence::envelope::clip_text;
use crate::evidence::json;
use crate::model::id::Digest;
use crate::model::time::Time;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::BTreeMap;

/// `_type` of a statement in its current form.
pub const STATEMENT_V1: &str = "https://in-toto.io/Statement/v1";
/// `_type` that `cosign attest` writes.
pub const STATEMENT_V01: &str = "https://in-toto.io/Statement/v0.1";
/// Predicate type of a cosign signature.
pub const COSIGN_SIGN: &str = "https://sigstore.dev/cosign/sign/v1";
/// Most subjects of one statement.
pub const SUBJECTS: usize = 1024;
/// Most digests of one subject.
pub const DIGESTS: usize = 32;

#[derive(Deserialize)]
struct RawStatement<'a> {
    #[serde(rename = "_type", default)]
    kind: String,
    subject: Vec<StatementSubject>,
    #[serde(rename = "predicateType")]
    predicate_type: String,
    #[serde(borrow)]
    predicate: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct StatementSubject {
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    digest: BTreeMap<String, String>,
}

/// A parsed statement; says nothing about its signature.
#[derive(Debug, Clone)]
pub struct ParsedStatement {
    /// The kind of the statement.
    pub predicate_type: String,
    /// Its name for the artifact, if it is about the artifact and names it.
    pub subject: Option<String>,
    /// Whether it is about the artifact, or its real subject.
    pub about: Result<(), String>,
    /// The predicate's own JSON text; `{}` where it is absent.
    pub predicate: String,
}

/// Parses the bytes of a payload.
///
/// # Errors
/// Says why it is not a supported statement: not strict JSON, another `_type`, no subjects, too many.
pub fn parse(payload: &[u8], digest: &Digest) -> Result<ParsedStatement, String> {
    let raw: RawStatement<'_> =
        json::parse_strict(payload).map_err(|e| format!("it is not an in-toto statement: {e}"))?;
    if raw.kind != STATEMENT_V1 && raw.kind != STATEMENT_V01 {
        return Err(format!(
            "its _type is {:?}, which is not an in-toto statement v0.1 or v1",
            clip_text(&raw.kind)
        ));
    }
    if raw.subject.is_empty() {
        return Err("it has no subject".into());
    }
    if raw.subject.len() > SUBJECTS {
        return Err(format!(
            "it has too many subjects: {}; at most {SUBJECTS} are allowed",
            raw.subject.len()
        ));
    }
    if let Some(many) = raw.subject.iter().map(|s| s.digest.len()).find(|n| *n > DIGESTS) {
        return Err(format!("a subject has too many digests: {many}; at most {DIGESTS} are allowed"));
    }
    let hex = digest.format_hex();
    let of_it = raw.subject.iter().find(|s| s.digest.get("sha256").is_some_and(|d| **d == hex));
    Ok(ParsedStatement {
        predicate_type: raw.predicate_type,
        subject: of_it.and_then(|s| s.name.clone()),
        about: check_subjects(&raw.subject, digest),
        predicate: raw.predicate.map_or_else(|| "{}".to_owned(), |p| p.get().to_owned()),
    })
}

/// Whether one of the subjects has the artifact's sha256, in lower-case hex.
fn check_subjects(subjects: &[StatementSubject], digest: &Digest) -> Result<(), String> {
    let hex = digest.format_hex();
    let said: Vec<&String> = subjects.iter().filter_map(|s| s.digest.get("sha256")).collect();
    if said.iter().any(|s| **s == hex) {
        return Ok(());
    }
    Err(match said.as_slice() {
        [] => "its subject has no sha256 digest".to_owned(),
        [one] if Digest::from_hex(one).is_err() => {
            format!("its subject's sha256 {:?} is not 64 lower-case hex digits", clip_text(one))
        }
        [one] => format!("it is about sha256:{one}, not about this artifact"),
        many => format!("it is about {} other artifacts, not about this one", many.len()),
    })
}

impl ParsedStatement {
    /// The predicate as a value; it must be an object.
    ///
    /// # Errors
    /// Says what it is instead.
    pub fn parse_object(&self) -> Result<Value, String> {
        let value: Value = serde_json::from_str(&self.predicate).map_err(|e| e.to_string())?;
        if value.is_object() { Ok(value) } else { Err("its predicate is not an object".into()) }
    }
}

/// Members with the creation time in predicates of well-known types; the first that exists counts.
const TIMES: &[&str] = &[
    "/runDetails/metadata/finishedOn",
    "/metadata/buildFinishedOn",
    "/metadata/scanFinishedOn",
    "/metadata/finishedOn",
    "/sealedTime",
    "/endedTime",
    "/firstHealthyTime",
    "/promotedTime",
    "/timeVerified",
    "/timestamp",
    "/Timestamp",
    "/finishedOn",
    "/createdOn",
    "/metadata/timestamp",
];

/// When a predicate was made, as it states itself.
#[must_use]
pub fn find_time(predicate: &Value) -> Option<Time> {
    TIMES.iter().find_map(|p| predicate.pointer(p)?.as_str()).and_then(|t| Time::parse(t).ok())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;

    fn statement(kind: &str, subjects: &str, rest: &str) -> Vec<u8> {
        format!(r#"{{"_type":"{kind}","subject":{subjects},"predicateType":"p"{rest}}}"#).into_bytes()
    }

    #[test]
    fn a_statement_is_about_its_subjects() {
        let ours = Digest::hash_bytes(b"ours");
        let other = Digest::hash_bytes(b"other").format_hex();
        let hex = ours.format_hex();
        let about = |subjects: &str| parse(&statement(STATEMENT_V1, subjects, ""), &ours).unwrap().about;
        assert_eq!(about(&format!(r#"[{{"digest":{{"sha256":"{hex}"}}}}]"#)), Ok(()));
        assert_eq!(
            about(&format!(
                r#"[{{"digest":{{"sha256":"{other}"}}}},{{"name":"x","digest":{{"sha512":"00","sha256":"{hex}"}}}},{{}}]"#
            )),
            Ok(())
        );
        for bad in [hex.to_uppercase(), format!("sha256:{hex}"), hex[1..].to_owned(), other] {
            let why = about(&format!(r#"[{{"digest":{{"sha256":"{bad}"}}}}]"#)).unwrap_err();
            assert!(why.contains(&bad), "{why}");
        }
        assert!(about(r#"[{"digest":{"sha512":"00"}}]"#).unwrap_err().contains("no sha256"));
    }

    #[test]
    fn what_is_no_statement_says_so() {
        let ours = Digest::hash_bytes(b"ours");
        let subject = format!(r#"{{"digest":{{"sha256":"{}"}}}}"#, ours.format_hex());
        let why = |bytes: &[u8]| parse(bytes, &ours).unwrap_err();
        assert!(why(&statement("bogus", &format!("[{subject}]"), "")).contains("_type"));
        assert!(why(&statement(STATEMENT_V1, "[]", "")).contains("no subject"));
        let many = vec![subject.as_str(); SUBJECTS + 1].join(",");
        assert!(why(&statement(STATEMENT_V1, &format!("[{many}]"), "")).contains("too many subjects: 1025"));
        let digests: Vec<String> = (0..=DIGESTS).map(|n| format!(r#""a{n}":"x""#)).collect();
        let many = format!(r#"[{{"digest":{{{}}}}}]"#, digests.join(","));
        assert!(why(&statement(STATEMENT_V1, &many, "")).contains("too many digests: 33"));
        assert!(
            why(&statement(STATEMENT_V1, &format!("[{subject}]"), r#","predicateType":"q""#))
                .contains("twice")
        );
        assert!(parse(&statement(STATEMENT_V01, &format!("[{subject}]"), ""), &ours).is_ok());
    }

    #[test]
    fn the_predicate_says_when() {
        let time = |json: &str| find_time(&serde_json::from_str(json).unwrap()).map(|t| t.to_string());
        assert_eq!(
            time(r#"{"runDetails":{"metadata":{"finishedOn":"2026-01-02T05:00:00+01:00"}}}"#).as_deref(),
            Some("2026-01-02T04:00:00Z")
        );
        assert_eq!(time(r#"{"timeVerified":"yesterday"}"#), None);
        assert_eq!(time("{}"), None);
    }
}
