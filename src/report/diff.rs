//! What changes inside two artifacts, resource by resource, field by field: as lines with a mark each, for a
//! terminal and for the `diff` blocks of a page. Values of Secrets do not reach this room.

pub mod plan;

use crate::compare::fields::{FieldChange, FieldWhat, Hidden};
use crate::compare::{Comparison, ResourceChange, ResourceCounts, ResourceFate};
use crate::report::escape;
use kube_yaml::emit;
use serde_json::Value;
use similar::{ChangeTag, TextDiff};
use std::fmt::Write as _;

/// Lines around a change inside a text or a list.
const CONTEXT: usize = 2;

/// What a line is: the character that it begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    Path,
    Old,
    New,
    Same,
    /// A note instead of content.
    Note,
}

/// One line; foreign text, neutralised for a line of a terminal or a fenced block.
pub type DiffLine = (Mark, String);

impl Mark {
    /// As unified diffs have it, so that a forge or an editor colours it.
    #[must_use]
    pub fn character(self) -> &'static str {
        match self {
            Self::Path => "@@",
            Self::Old => "-",
            Self::New => "+",
            Self::Same => " ",
            Self::Note => "!",
        }
    }

    fn colour(self) -> &'static str {
        match self {
            Self::Path => "\u{1b}[36m",
            Self::Old => "\u{1b}[31m",
            Self::New => "\u{1b}[32m",
            Self::Same => "",
            Self::Note => "\u{1b}[33m",
        }
    }
}

const BOLD: &str = "\u{1b}[1m";
const RESET: &str = "\u{1b}[0m";

/// A whole comparison for a terminal or a file; in colour every line resets what it set, so that a pager
/// (`less -R`) can begin anywhere.
#[must_use]
pub fn format_comparison(comparison: &Comparison, colour: bool) -> String {
    let mut out = String::new();
    for change in &comparison.changes {
        let title = escape::escape_line(&format_title(change)).into_owned();
        out.push_str(&paint_line(BOLD, &title, colour));
        out.push('\n');
        for (mark, line) in build_lines(change, true) {
            let line = format!("{} {line}", mark.character());
            let _ = writeln!(out, "  {}", paint_line(mark.colour(), line.trim_end(), colour));
        }
    }
    for line in collect_remarks(comparison) {
        let _ = writeln!(out, "{}", escape::escape_line(&line));
    }
    if comparison.changes.is_empty() && comparison.noise.is_empty() {
        out.push_str("No resource changes.\n");
    } else {
        let _ = writeln!(out, "{}", format_counts(&comparison.count_resources()));
    }
    out
}

/// One line in a colour, where colour is wanted.
#[must_use]
pub fn paint_line(code: &str, line: &str, colour: bool) -> String {
    if colour && !code.is_empty() { format!("{code}{line}{RESET}") } else { line.to_owned() }
}

/// `Deployment podinfo changed: immutable field spec.selector`; foreign text.
#[must_use]
pub fn format_title(change: &ResourceChange) -> String {
    let mut out = format!("{} {}", change.id, describe_change(change));
    if !change.risks.is_empty() {
        let risks: Vec<String> = change.risks.iter().map(ToString::to_string).collect();
        let _ = write!(out, " ({})", risks.join(", "));
    }
    out
}

/// What happens to a resource, in the words after its name; foreign text.
#[must_use]
pub fn describe_change(change: &ResourceChange) -> String {
    match &change.how {
        ResourceFate::Added => "added".to_owned(),
        ResourceFate::Removed if change.left_behind => "left behind (Prune=false)".to_owned(),
        ResourceFate::Removed => "removed".to_owned(),
        ResourceFate::Changed => "changed".to_owned(),
        ResourceFate::Renamed(from) if from.name == change.id.name => match &from.namespace {
            Some(namespace) => format!("moved from namespace {namespace}"),
            None => "moved from the Application's namespace".to_owned(),
        },
        ResourceFate::Renamed(from) if change.fields.iter().all(|f| f.path == "metadata.name") => {
            format!("renamed from {}, otherwise equal", from.name)
        }
        ResourceFate::Renamed(from) => format!("renamed from {}", from.name),
    }
}

/// `2 added, 1 changed, 0 removed; 40 unchanged`.
#[must_use]
pub fn format_counts(counts: &ResourceCounts) -> String {
    let mut out = format!("{} added, {} changed, {} removed", counts.added, counts.changed, counts.removed);
    if counts.renamed > 0 {
        let _ = write!(out, ", {} renamed", counts.renamed);
    }
    if counts.noise > 0 {
        let _ = write!(out, ", {} in known noise only", counts.noise);
    }
    let _ = write!(out, "; {} unchanged", counts.unchanged);
    out
}

/// What is printed about a comparison in addition to its changes; foreign text.
#[must_use]
pub fn collect_remarks(comparison: &Comparison) -> Vec<String> {
    let mut out = Vec::new();
    // The same keys in many resources are one line.
    let mut notes: Vec<(String, Vec<String>)> = Vec::new();
    for noise in &comparison.noise {
        let rolls = if noise.rolls { ", and recreates its Pods" } else { "" };
        let keys = format!("{}{rolls}", noise.keys.join(", "));
        match notes.iter_mut().find(|(k, _)| *k == keys) {
            Some((_, names)) => names.push(noise.id.to_string()),
            None => notes.push((keys, vec![noise.id.to_string()])),
        }
    }
    for (keys, names) in notes {
        out.push(format!("only known noise ({keys}): {}", format_some(&names, 10)));
    }
    if !comparison.repeated.is_empty() {
        let names: Vec<String> = comparison.repeated.iter().map(ToString::to_string).collect();
        out.push(format!("more than once in the artifact, the last counts: {}", format_some(&names, 10)));
    }
    out
}

/// The first few names, and how many more.
fn format_some(names: &[String], most: usize) -> String {
    let shown = names.iter().take(most).map(String::as_str).collect::<Vec<_>>().join(", ");
    match names.len().checked_sub(most) {
        None | Some(0) => shown,
        Some(more) => format!("{shown} and {more} more"),
    }
}

/// The lines of one resource. `removed`: also the body of one that goes.
#[must_use]
pub fn build_lines(change: &ResourceChange, removed: bool) -> Vec<DiffLine> {
    let mut out = Vec::new();
    if let Some(why) = &change.unparsed {
        out.push((Mark::Note, format!("its file does not parse, so its text is not shown: {why}")));
    }
    let mark = match change.how {
        ResourceFate::Added => Some(Mark::New),
        ResourceFate::Removed => removed.then_some(Mark::Old),
        ResourceFate::Changed | ResourceFate::Renamed(_) => None,
    };
    if let (Some(mark), Some(whole)) = (mark, &change.whole) {
        out.extend(emit::format_document(whole).lines().map(|line| (mark, line.to_owned())));
    }
    for field in &change.fields {
        push_field(field, &mut out);
    }
    if !change.noise.is_empty() {
        out.push((Mark::Note, format!("known noise, not shown: {}", change.noise.join(", "))));
    }
    // A tab would look like a space.
    for (_, line) in &mut out {
        *line = escape::escape_line(&line.replace('\t', "→")).into_owned();
    }
    out
}

fn push_field(field: &FieldChange, out: &mut Vec<DiffLine>) {
    out.push((Mark::Path, field.path.clone()));
    match &field.what {
        FieldWhat::Value { before: Some(Value::String(a)), after: Some(Value::String(b)) }
            if a.contains('\n') || b.contains('\n') =>
        {
            push_difference(a, b, out);
        }
        FieldWhat::Value { before: Some(a @ Value::Array(_)), after: Some(b @ Value::Array(_)) } => {
            push_difference(&emit::format_document(a), &emit::format_document(b), out);
        }
        FieldWhat::Value { before, after } => {
            for (value, mark) in [(before, Mark::Old), (after, Mark::New)] {
                let Some(value) = value else { continue };
                out.extend(emit::format_document(value).lines().map(|line| (mark, line.to_owned())));
            }
        }
        FieldWhat::Hidden(hidden) => {
            let word = match hidden {
                Hidden::Added => "key added",
                Hidden::Removed => "key removed",
                Hidden::Changed => "key changed",
            };
            out.push((Mark::Note, format!("{word} (its value is not shown)")));
        }
        FieldWhat::Order { before, after } => {
            out.push((Mark::Old, format!("in the order {}", before.join(", "))));
            out.push((Mark::New, format!("in the order {}", after.join(", "))));
        }
    }
}

/// The lines in which two texts differ, with a few around them.
fn push_difference(a: &str, b: &str, out: &mut Vec<DiffLine>) {
    let diff = TextDiff::from_lines(a, b);
    for (number, group) in diff.grouped_ops(CONTEXT).iter().enumerate() {
        if number > 0 {
            out.push((Mark::Same, "…".to_owned()));
        }
        for change in group.iter().flat_map(|op| diff.iter_changes(op)) {
            let mark = match change.tag() {
                ChangeTag::Delete => Mark::Old,
                ChangeTag::Insert => Mark::New,
                ChangeTag::Equal => Mark::Same,
            };
            out.push((mark, change.value().trim_end_matches('\n').to_owned()));
            if change.missing_newline() && mark != Mark::Same {
                out.push((Mark::Note, "no newline at the end of the file".to_owned()));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;
    use crate::compare::{ArtifactSide, compare_artifacts};
    use crate::model::resource::Resource;
    use serde_json::json;

    fn said(old: &[Value], new: &[Value], colour: bool) -> String {
        let of = |all: &[Value]| {
            all.iter().map(|o| Resource::from_object(o.clone(), "x.yaml")).collect::<Vec<_>>()
        };
        let (old, new) = (of(old), of(new));
        let side = |resources| ArtifactSide { resources, namespace: Some("shop") };
        format_comparison(&compare_artifacts(side(&old), side(&new), false), colour)
    }

    fn deployment(image: &str) -> Value {
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "podinfo", "namespace": "shop"},
            "spec": {"replicas": 2, "containers": [{"name": "podinfo", "image": image, "args": ["a", "b"]}]},
        })
    }

    #[test]
    fn resources_are_compared_field_by_field() {
        let service = |name: &str, port: u16| json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": {"port": port}});
        let config = |text: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"app.conf": text}});
        let lines = |n: u8| {
            (0..9).map(|i| if i == 4 { format!("x={n}\n") } else { format!("{i}\n") }).collect::<String>()
        };
        let old = [deployment("a:1"), service("old", 1), config(&lines(1))];
        let new = [config(&lines(2)), service("new", 2), deployment("a:2")];
        assert_eq!(
            said(&old, &new, false),
            "ConfigMap c changed\n\
             \x20 @@ data[\"app.conf\"]\n\
             \x20   2\n\
             \x20   3\n\
             \x20 - x=1\n\
             \x20 + x=2\n\
             \x20   5\n\
             \x20   6\n\
             Deployment podinfo changed\n\
             \x20 @@ spec.containers[podinfo].image\n\
             \x20 - a:1\n\
             \x20 + a:2\n\
             Service new added\n\
             \x20 + apiVersion: v1\n\
             \x20 + kind: Service\n\
             \x20 + metadata:\n\
             \x20 +   name: new\n\
             \x20 + spec:\n\
             \x20 +   port: 2\n\
             Service old removed (deletion)\n\
             \x20 - apiVersion: v1\n\
             \x20 - kind: Service\n\
             \x20 - metadata:\n\
             \x20 -   name: old\n\
             \x20 - spec:\n\
             \x20 -   port: 1\n\
             1 added, 2 changed, 1 removed; 0 unchanged\n"
        );
        assert_eq!(said(&old, &old, false), "No resource changes.\n");
    }

    #[test]
    fn every_line_of_colour_ends_it() {
        let text = said(&[deployment("a:1")], &[deployment("a:2")], true);
        assert!(text.contains("  \u{1b}[31m- a:1\u{1b}[0m\n"), "{text:?}");
        for line in text.lines() {
            assert_eq!(line.matches("\u{1b}[").count() % 2, 0, "{line:?}");
        }
    }

    #[test]
    fn values_of_secrets_are_never_shown() {
        let secret = |password: &str| json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "db"}, "data": {"password": password, "user": "YW5u"}});
        let text = said(&[secret("aG9yc2U=")], &[secret("YmF0dGVyeQ==")], false);
        assert!(text.contains("@@ data.password\n  ! key changed (its value is not shown)\n"), "{text}");
        let text = text + &said(&[], &[secret("aG9yc2U=")], false) + &said(&[secret("aG9yc2U=")], &[], false);
        assert!(text.contains("+   password: \"***\""), "{text}");
        for value in ["aG9yc2U=", "YmF0dGVyeQ==", "YW5u"] {
            assert!(!text.contains(value), "{text}");
        }
    }

    #[test]
    fn text_of_manifests_cannot_act() {
        let evil = json!({"kind": "ConfigMap", "metadata": {"name": "x\u{1b}[2J"}, "data": {"a\nb": "\u{1b}]0;x\u{7}\tq"}});
        let text = said(&[], &[evil], false);
        assert!(!text.contains('\u{1b}') && !text.contains('\t'), "{text:?}");
    }
}
