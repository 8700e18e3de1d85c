//! What a gate answers.

use crate::model::id::Digest;
use crate::model::time::Time;
use serde::{Deserialize, Serialize};

/// The gates, in their order (`docs/design/promotion.md#gates`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum GateName {
    Ready,
    Upstream,
    Checks,
    Approvals,
    Evidence,
    Window,
    #[serde(rename = "Opt-in")]
    OptIn,
}

impl GateName {
    /// All of them, in the order in which a promotion passes them.
    pub const ALL: [Self; 7] = [
        Self::Ready,
        Self::Upstream,
        Self::Checks,
        Self::Approvals,
        Self::Evidence,
        Self::Window,
        Self::OptIn,
    ];
    /// By its printed name.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|gate| gate.as_str() == text)
    }
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ready => "Ready",
            Self::Upstream => "Upstream",
            Self::Checks => "Checks",
            Self::Approvals => "Approvals",
            Self::Evidence => "Evidence",
            Self::Window => "Window",
            Self::OptIn => "Opt-in",
        }
    }
}

impl std::fmt::Display for GateName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}

/// What a waiting gate waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum For {
    Instant(Time),
    /// One of these people or groups.
    Person(Vec<String>),
    /// Something that signs or attaches evidence.
    Evidence,
    Order(crate::model::id::OrderRef),
    /// A registry that answers.
    Registry,
    /// A build of this product that has the gate.
    Build,
    /// Its evidence was not read, because another gate holds, whatever a registry answers.
    AnotherGate,
    /// A later run, because this one has reached `limits.maxPromotions`.
    LaterRun,
}

/// The answer itself. Its message does not change from run to run: it contains absolute times, never "3h
/// left".
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GateOutcome {
    Passed,
    /// It does not pass yet.
    Waiting(For),
    /// It needs a different input.
    Failed,
}

/// One gate's answer for one candidate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    pub gate: GateName,
    pub outcome: GateOutcome,
    /// For a person: what was found, what was wanted, who has to do what.
    pub message: String,
    /// Its evidence, for the record.
    pub evidence: Vec<EvidenceRef>,
    /// The parameters of the gate, for the record: `verify-history` judges again by these.
    pub parameters: serde_json::Value,
    /// Whether the run failed to read something it needed (exit 1).
    pub unread: bool,
}

impl Verdict {
    /// A gate that passes.
    #[must_use]
    pub fn make_passed(gate: GateName, message: impl Into<String>) -> Self {
        Self {
            gate,
            outcome: GateOutcome::Passed,
            message: message.into(),
            evidence: Vec::new(),
            parameters: serde_json::Value::Null,
            unread: false,
        }
    }
    /// A gate that waits.
    #[must_use]
    pub fn make_waiting(gate: GateName, what: For, message: impl Into<String>) -> Self {
        Self { outcome: GateOutcome::Waiting(what), ..Self::make_passed(gate, message) }
    }
    /// A gate that needs a different input.
    #[must_use]
    pub fn make_failed(gate: GateName, message: impl Into<String>) -> Self {
        Self { outcome: GateOutcome::Failed, ..Self::make_passed(gate, message) }
    }
    /// The gate that `verdicts` wait for: the first that does not pass. One that was not read counts only if
    /// no other gate holds, so that the answer does not depend on a kept verdict.
    #[must_use]
    pub fn find_first_holding(verdicts: &[Self]) -> Option<&Self> {
        let holding = || verdicts.iter().filter(|v| !v.is_passed());
        holding().find(|v| v.outcome != GateOutcome::Waiting(For::AnotherGate)).or_else(|| holding().next())
    }
    #[must_use]
    pub fn is_passed(&self) -> bool {
        self.outcome == GateOutcome::Passed
    }
}

/// One piece a verdict rests on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EvidenceRef {
    /// `artifact`, `signature`, `provenance`, `approval`, `attestation`, `scan`, `record`, `window`, …
    pub kind: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<Digest>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub uri: String,
    /// Which key signed it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub key: String,
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;

    #[test]
    fn what_was_not_read_is_not_what_is_waited_for() {
        let unread = Verdict::make_waiting(GateName::Evidence, For::AnotherGate, "");
        let window = Verdict::make_waiting(GateName::Window, For::Build, "");
        let passed = Verdict::make_passed(GateName::Ready, "");
        let first = |verdicts: &[Verdict]| Verdict::find_first_holding(verdicts).map(|v| v.gate);
        assert_eq!(first(&[passed.clone(), unread.clone(), window]), Some(GateName::Window));
        assert_eq!(first(&[passed.clone(), unread]), Some(GateName::Evidence), "it never passes by itself");
        assert_eq!(first(&[passed]), None);
    }
}
