//! Gates that this build does not have yet: one that is configured holds, by name. At no version does
//! anything deploy past a gate it was given.

use super::Context;
use crate::model::evidence::{Claim, Facts};
use crate::model::id::Artifact;
use crate::model::verdict::{For, GateName, Verdict};
use crate::resolve::Case;

/// Nothing.
#[must_use]
pub fn ask(_case: &Case) -> Vec<(Artifact, Claim)> {
    Vec::new()
}

fn hold(gate: GateName, configured: bool, field: &str) -> Verdict {
    if configured {
        Verdict::waiting(
            gate,
            For::Build,
            format!("{field} is configured, and this build has no gate {gate} yet: nothing passes"),
        )
    } else {
        Verdict::passed(gate, "not required")
    }
}

/// Gate 2.
#[must_use]
pub fn upstream(case: &Case, _facts: &Facts, _context: &Context) -> Verdict {
    hold(GateName::Upstream, !case.demands.upstream.is_empty(), "promotion.upstream")
}

/// Gate 3.
#[must_use]
pub fn checks(case: &Case, _facts: &Facts, _context: &Context) -> Verdict {
    hold(GateName::Checks, !case.demands.checks.is_empty(), "promotion.checks")
}

/// Gate 4.
#[must_use]
pub fn approvals(case: &Case, _facts: &Facts, _context: &Context) -> Verdict {
    hold(GateName::Approvals, case.needs_approvals(), "an approval policy")
}

/// Gate 6.
#[must_use]
pub fn window(case: &Case, _facts: &Facts, _context: &Context) -> Verdict {
    let configured = !case.demands.windows.is_empty() || !case.demands.freezes.is_empty();
    hold(GateName::Window, configured, "promotion.windows or promotion.freezes")
}
