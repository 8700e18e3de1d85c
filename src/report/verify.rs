//! One artifact's evidence, claim by claim: a table, and below it what each claim says and, if it is not
//! proven, everything that was examined and why it did not count.

use crate::model::evidence::{Evidence, EvidenceCandidate, Unread};
use crate::model::verification::{
    ClaimOutcome, ClaimReport, ProofPiece, ReadFrom, TrustUsed, Verification, Whose,
};
use crate::report::escape;
use crate::report::table::Table;

/// The report as lines of text; `wide`: with the digests of the signed files and the keys' fingerprints.
#[must_use]
pub fn format_verification(found: &Verification, wide: bool) -> String {
    let mut out = String::new();
    let mut line = |text: String| {
        out.push_str(escape::escape_line(&text).trim_end());
        out.push('\n');
    };
    line(format!("{} for Order {}: {}", found.artifact, found.order, format_headline(found)));
    if let Some(tag) = &found.tag {
        line(format!("  tag          {tag}, resolved once"));
    }
    let preparation = found.preparation.as_ref().map_or("<none>".to_owned(), ToString::to_string);
    line(format!("  preparation  {preparation}"));
    line(format!("  demands      {}", format_demands(found)));
    line(format!("  read from    {}", format_read_from(&found.from)));
    line(format!("  trust        {}", format_trust(&found.trust)));
    for key in &found.trust.keys {
        let roles: Vec<&str> = key.roles.iter().map(|r| r.as_str()).collect();
        let fingerprint = if wide { format!(" {}", key.fingerprint) } else { String::new() };
        line(format!("    {}{fingerprint} ({})", key.name, roles.join(", ")));
    }
    line(format!("  as of        {}", found.at));
    line(String::new());
    out.push_str(&build_table(found, wide).format_table());
    out.push('\n');
    for claim in &found.claims {
        let mut line = |text: String| {
            out.push_str(escape::escape_line(&text).trim_end());
            out.push('\n');
        };
        line(format!("  {}: {}", claim.format_title(), claim.says));
        for detail in collect_details(claim) {
            line(format!("    {detail}"));
        }
    }
    out
}

fn format_headline(found: &Verification) -> String {
    let required = found.claims.iter().filter(|c| c.required);
    let of = |wanted: ClaimOutcome| {
        required.clone().filter(|c| c.outcome() == wanted).map(ClaimReport::format_title).collect::<Vec<_>>()
    };
    let [invalid, missing, unread] =
        [ClaimOutcome::Invalid, ClaimOutcome::Missing, ClaimOutcome::Unread].map(of);
    let parts: Vec<String> = [("invalid", invalid), ("missing", missing), ("not read", unread)]
        .into_iter()
        .filter(|(_, titles)| !titles.is_empty())
        .map(|(word, titles)| format!("{} {word}", titles.join(", ")))
        .collect();
    match (parts.is_empty(), &found.demanded) {
        (false, _) => parts.join("; "),
        (true, Some(_)) => "proven".to_owned(),
        (true, None) => "proven, as far as is known without the Order".to_owned(),
    }
}

fn format_demands(found: &Verification) -> String {
    let Some(demanded) = &found.demanded else { return "not known: the Order was not read".into() };
    let mut parts = Vec::new();
    parts.extend(demanded.environment.as_ref().map(|e| format!("of Environment {e}")));
    if let Some(policy) = &demanded.approvals {
        let groups = if policy.allowed_groups.is_empty() {
            "anybody".to_owned()
        } else {
            policy.allowed_groups.join(", ")
        };
        parts.push(format!("{} approvals from {groups}", policy.required_approvals));
    } else {
        parts.push("no approvals".to_owned());
    }
    parts.push(match demanded.checks.len() {
        0 => "no checks".to_owned(),
        1 => "1 check".to_owned(),
        n => format!("{n} checks"),
    });
    parts.join(", ")
}

fn format_read_from(from: &ReadFrom) -> String {
    match from {
        ReadFrom::Registry => "the registry".to_owned(),
        ReadFrom::Bundle { file, digest } => format!("evidence bundle {file} ({digest})"),
    }
}

fn format_trust(trust: &TrustUsed) -> String {
    match (trust.whose, &trust.origin) {
        (Whose::Own, Some(origin)) => format!("your own Kitchen, {origin}"),
        (Whose::Own, None) => "your own Kitchen, but none was read: no key is trusted".to_owned(),
        (Whose::Bundled, _) => {
            "THE BUNDLE'S OWN: it is verified only by keys that it contains itself".to_owned()
        }
    }
}

fn build_table(found: &Verification, wide: bool) -> Table {
    let mut header = vec!["CLAIM", "REQUIRED", "OUTCOME", "KEY", "PLACE", "EVIDENCE"];
    if wide {
        header.extend(["SIGNED FILE", "TIME"]);
    }
    let mut table = Table::new(&header);
    for claim in &found.claims {
        let start = || {
            let required = if claim.required { "yes" } else { "no" };
            vec![claim.format_title(), required.to_owned(), claim.outcome().as_str().to_owned()]
        };
        let pieces: &[ProofPiece] = match &claim.found {
            Evidence::Proven(pieces) => pieces,
            Evidence::Missing(_) | Evidence::Invalid(_) | Evidence::Unread(_) => &[],
        };
        if pieces.is_empty() {
            table.push_row(start());
        }
        for piece in pieces {
            let mut row = start();
            row.extend([piece.key.clone(), piece.place.clone(), piece.digest.to_string()]);
            if wide {
                row.extend([piece.blob.to_string(), piece.time.map(|t| t.to_string()).unwrap_or_default()]);
            }
            table.push_row(row);
        }
    }
    table
}

/// Everything that was examined and did not count.
fn collect_details(claim: &ClaimReport) -> Vec<String> {
    match &claim.found {
        Evidence::Proven(_) => Vec::new(),
        Evidence::Missing(looked) | Evidence::Invalid(looked) => {
            looked.candidates.iter().map(format_candidate).collect()
        }
        Evidence::Unread(why) => vec![describe_unread(why)],
    }
}

fn format_candidate(candidate: &EvidenceCandidate) -> String {
    let digest = candidate.digest.map(|d| format!(" {d}")).unwrap_or_default();
    format!("{}{digest}: {}", candidate.place, candidate.why)
}

fn describe_unread(why: &Unread) -> String {
    let request = if why.request.is_empty() { String::new() } else { format!(": {}", why.request) };
    let again = if why.retryable { "trying again may help" } else { "trying again alone does not help" };
    format!("{}{request} ({again})", why.reason)
}
