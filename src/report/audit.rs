//! What `verify-history` found, as tables and a summary.

use crate::model::audit::{Audit, AuditFinding};
use crate::report::table::Table;
use crate::report::view::format_count;
use std::fmt::Write as _;

/// One line per finding, then what could not be read, then the counts.
#[must_use]
pub fn format_audit(audit: &Audit, wide: bool) -> String {
    let mut out = String::new();
    if !audit.findings.is_empty() {
        out.push_str(&format_table(&audit.findings, wide));
        out.push('\n');
    }
    if !audit.unread.is_empty() {
        let _ = write!(out, "Not read:\n{}\n", format_table(&audit.unread, wide));
    }
    let _ = writeln!(
        out,
        "{}, {} of them about Applications, Servings or records; {} and {} judged again: {}, {} not read",
        format_count(audit.commits, "commit", "commits"),
        audit.touched,
        format_count(audit.promotions, "promotion", "promotions"),
        format_count(audit.deployments, "deployment", "deployments"),
        format_count(audit.findings.len(), "finding", "findings"),
        audit.unread.len(),
    );
    if audit.no_records {
        let _ = writeln!(
            out,
            "this repository keeps no signed records: {} trusted from history, none judged",
            format_count(audit.unrecorded, "promotion is", "promotions are")
        );
    } else if audit.offline {
        out.push_str("offline: judged by git alone; evidence in registries was not read again\n");
    }
    out
}

fn format_table(findings: &[AuditFinding], wide: bool) -> String {
    let mut header = vec!["COMMIT", "ORDER", "DIGEST", "WHAT"];
    if wide {
        header.insert(3, "CODE");
    }
    let mut table = Table::new(&header);
    for finding in findings {
        let commit = finding.commit.to_string();
        let digest = match finding.digest {
            Some(digest) if wide => digest.to_string(),
            Some(digest) => digest.format_short(),
            None => String::new(),
        };
        let mut cells = vec![
            if wide { commit } else { commit.chars().take(12).collect() },
            finding.order.as_ref().map(ToString::to_string).unwrap_or_default(),
            digest,
            finding.what.clone(),
        ];
        if wide {
            cells.insert(3, finding.code.to_owned());
        }
        table.push_row(cells);
    }
    table.format_table()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;
    use crate::model::id::{CommitId, Digest, OrderRef};

    fn finding(what: &str) -> AuditFinding {
        AuditFinding {
            commit: CommitId::parse(&"ab".repeat(20)).unwrap(),
            order: Some(OrderRef::parse("shop/web").unwrap()),
            digest: Some(Digest::hash_bytes(b"x")),
            code: "gate",
            what: what.to_owned(),
        }
    }

    #[test]
    fn counts_come_last_and_foreign_text_stays_in_its_line() {
        let audit = Audit {
            commits: 3,
            touched: 2,
            promotions: 1,
            findings: vec![finding("gate Window: \u{1b}[2Jclosed\nnow")],
            offline: true,
            ..Audit::default()
        };
        assert_eq!(
            format_audit(&audit, false),
            "COMMIT         ORDER      DIGEST         WHAT\n\
             abababababab   shop/web   2d711642b726   gate Window: \\u{1b}[2Jclosed now\n\
             \n\
             3 commits, 2 of them about Applications, Servings or records; 1 promotion and 0 deployments judged \
             again: 1 finding, 0 not read\n\
             offline: judged by git alone; evidence in registries was not read again\n"
        );
        assert!(format_audit(&audit, true).contains("gate   "), "{}", format_audit(&audit, true));
    }
}
