//! One Order in full: what it deploys, what could be promoted, and every gate's answer with its evidence.

use crate::model::plan::Row;
use crate::model::verdict::Verdict;
use crate::report::escape;
use crate::report::plan::{headline, mode};
use crate::report::view::{self, View};

/// The explanation as lines of text.
#[must_use]
pub fn text(view: &View<'_>, row: &Row) -> String {
    let mut out = String::new();
    let mut line = |text: String| {
        out.push_str(escape::line(&text).trim_end());
        out.push('\n');
    };
    line(format!("{}: {}", row.order, headline(view, row)));
    let none = || "<none>".to_owned();
    line(format!("  environment  {}", row.environment.as_ref().map_or_else(none, ToString::to_string)));
    line(format!("  mode         {}", mode(row.mode)));
    let serving = view.serving(row);
    let deployed = view.deployed(row).map_or_else(none, |name| {
        let digest =
            serving.and_then(|s| s.status.deployed_digest).map(|d| format!(" {d}")).unwrap_or_default();
        format!("{name}{digest}")
    });
    line(format!("  deployed     {deployed}"));
    let candidate =
        row.candidate.as_ref().map_or_else(none, |c| format!("{} {}", c.name, c.artifact.oci_ref()));
    line(format!("  candidate    {candidate}"));
    for (number, verdict) in row.verdicts.iter().enumerate() {
        if number == 0 {
            line(String::new());
        }
        line(format!("  {:<10} {}: {}", verdict.gate, view::outcome(verdict), verdict.message));
        for evidence in evidence(verdict) {
            line(format!("             {evidence}"));
        }
    }
    let problems: Vec<String> = row
        .errors
        .iter()
        .map(|e| format!("  error: {e}"))
        .chain(row.warnings.iter().map(|w| format!("  warning: {w}")))
        .collect();
    if !problems.is_empty() {
        line(String::new());
        problems.into_iter().for_each(line);
    }
    out
}

fn evidence(verdict: &Verdict) -> impl Iterator<Item = String> {
    verdict.evidence.iter().map(|e| {
        let digest = e.digest.map(|d| d.to_string()).unwrap_or_default();
        let key = if e.key.is_empty() { String::new() } else { format!("by {}", e.key) };
        let parts = [e.kind.as_str(), e.name.as_str(), &digest, e.uri.as_str(), &key];
        parts.iter().filter(|p| !p.is_empty()).copied().collect::<Vec<_>>().join(" ")
    })
}
