//! The instant for which everything is decided.

use super::{Access, Outside};
use crate::error::{Failure, FailureKind};
use crate::model::time::Time;
use crate::verbs::flags::Common;
use git_commits::Repository;

/// `--at`, or the clock. What is written is of no time ahead of the clock, and of a past one only in a
/// repository on this machine (`docs/design/promotion.md#clocks-lie`).
pub(super) fn resolve_clock(
    common: &Common,
    outside: &Outside,
    access: Access,
    repository: &Repository,
) -> Result<Time, Failure> {
    let Some(at) = common.at else { return Ok(outside.clock) };
    let wrong = |cause: &str| Failure::new(FailureKind::Usage, "at", cause).with_object("--at");
    match access {
        Access::Read | Access::ReadIfThere | Access::SourcesOnly | Access::SettingsOnly => Ok(at),
        Access::Write if at > outside.clock => {
            Err(wrong("it is ahead of the clock").with_hint("expedite plan --at foresees"))
        }
        Access::Write if repository.is_remote() => {
            Err(wrong("what is written over the network is of the clock's time"))
        }
        Access::Write => Ok(at),
    }
}
