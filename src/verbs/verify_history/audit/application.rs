//! What a commit did to an Application: it may deploy what its Order's Serving says is deployed, nothing else.

use super::{AuditStep, read_bytes, read_serving};
use crate::error::Failure;
use crate::load::gitops::parse_application_at;
use crate::model::audit::AuditFinding;
use crate::model::id::{Digest, OrderRef};
use git_commits::Snapshot;
use kube_yaml::parse;
use serde_json::Value;

/// A file as far as it deploys something.
struct Deploys {
    owner: Option<OrderRef>,
    /// `spec.source`, `spec.sources` and `operation`: all that can name content.
    content: [Value; 3],
}

pub(super) fn judge_application(step: &AuditStep<'_>, path: &str) -> Result<Option<AuditFinding>, Failure> {
    let Some(after) = read_deploys(&step.visit.after, path)? else { return Ok(None) };
    let before = match &step.visit.before {
        Some(before) => read_deploys(before, path)?,
        None => None,
    };
    if before.as_ref().is_some_and(|b| b.content == after.content) {
        return Ok(None);
    }
    // Taking our labels off does not make it somebody else's.
    let Some(order) = after.owner.or_else(|| before.and_then(|b| b.owner)) else { return Ok(None) };
    let serving = read_serving(&step.visit.after, &order)?;
    let status = serving.as_ref().map(|s| &s.status);
    let pinned =
        status.and_then(|s| Some((s.deployed.as_ref()?.repository.format_url(), s.deployed_digest?)));
    let [source, sources, operation] = &after.content;
    let field = |name: &str| source.get(name).and_then(Value::as_str).unwrap_or_default();
    let plain = source.as_object().is_some_and(|s| s.len() == 3)
        && field("path") == "."
        && sources.is_null()
        && operation.is_null();
    let revision = field("targetRevision");
    let is_pinned =
        |(url, digest): (String, Digest)| field("repoURL") == url && revision == digest.to_string();
    if plain && pinned.is_some_and(is_pinned) {
        return Ok(None);
    }
    let shown = if revision.is_empty() { "something" } else { revision };
    let what = format!("{path} deploys {shown}, and no promotion put it there");
    let digest = Digest::parse(revision).ok();
    Ok(Some(step.make_finding(Some(&order), digest, "application-without-promotion", what)))
}

/// What a file deploys; `None`: it is not there, or no YAML that Argo CD would take.
fn read_deploys(snapshot: &Snapshot, path: &str) -> Result<Option<Deploys>, Failure> {
    let Some(bytes) = read_bytes(snapshot, path)? else { return Ok(None) };
    let file = parse_application_at(snapshot.name(), path, &bytes);
    let Ok(node) = parse::parse_one(&file.text) else { return Ok(None) };
    let object = node.to_json();
    let part = |pointer: &str| object.pointer(pointer).cloned().unwrap_or_default();
    Ok(Some(Deploys {
        owner: file.owner,
        content: [part("/spec/source"), part("/spec/sources"), part("/operation")],
    }))
}
