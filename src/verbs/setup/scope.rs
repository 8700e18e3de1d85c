//! The part of the fleet that is written.

use super::Outside;
use super::orders::parse_order;
use crate::error::{Failure, FailureKind};
use crate::model::scope::{Scope, Shard};
use crate::verbs::flags::Common;
use git_commits::Environment;

pub(super) fn resolve_scope(common: &Common, outside: &Outside) -> Result<Scope, Failure> {
    let only = common.only.iter().map(|order| parse_order(order, common)).collect::<Result<_, _>>()?;
    Ok(Scope {
        namespaces: common.namespace.iter().cloned().collect(),
        selector: common.selector.clone(),
        only,
        shard: match common.shard {
            Some(shard) => Some(shard),
            None => parse_job_shard(&outside.environment)?,
        },
    })
}

/// The part of an Indexed Job: its index comes from Kubernetes, its count from the Job's author.
pub(super) fn parse_job_shard(environment: &Environment) -> Result<Option<Shard>, Failure> {
    let Some(count) = environment.get("JOB_COMPLETION_COUNT") else { return Ok(None) };
    let index = environment.get("JOB_COMPLETION_INDEX").unwrap_or_default();
    Shard::parse(&format!("{index}/{count}")).map(Some).map_err(|error| {
        Failure::new(FailureKind::Usage, "shard", error.to_string())
            .with_object("JOB_COMPLETION_INDEX and JOB_COMPLETION_COUNT")
    })
}
