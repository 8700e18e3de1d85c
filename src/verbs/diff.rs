//! `diff`: the objects inside two artifacts, resource by resource.

pub mod contents;

use crate::error::{Failure, FailureKind};
use crate::model::id::PreparationName;
use crate::model::plan::Candidate;
use crate::policy::resolve::candidate::build_candidate;
use crate::policy::resolve::newest::Newest;
use crate::policy::resolve::{self, Case};
use crate::report::{self, Output};
use crate::run::{self, Setup};
use crate::verbs::flags::Common;
use crate::verbs::setup;
use crate::verbs::setup::{Access, Opened, Outside, wrap_failure};
use crate::verbs::values::{OrderArg, parse_preparation_arg};
use clap::Args;
use contents::ArtifactPlace;

/// Compare the objects inside two artifacts of an Order; values of Secrets are not shown
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  expedite diff shop/podinfo                           what is deployed, and what could be promoted
  expedite diff shop/podinfo podinfo-5f3a9d1c0b7e podinfo-d7ce0c46a686
  expedite diff shop/podinfo --color always | less -R")]
pub struct Diff {
    /// NAMESPACE/NAME, or NAME
    #[arg(value_name = "ORDER", value_parser = OrderArg::parse)]
    pub order: OrderArg,
    /// From this Preparation [default: what is deployed]
    #[arg(value_name = "FROM", value_parser = parse_preparation_arg)]
    pub from_preparation: Option<PreparationName>,
    /// To this one [default: what could be promoted, else the newest]
    #[arg(value_name = "TO", value_parser = parse_preparation_arg)]
    pub to_preparation: Option<PreparationName>,
    /// Show known noise, too: labels and annotations that change with every rendering
    #[arg(long)]
    pub all: bool,
}

/// Prints what would change.
///
/// # Errors
/// There is no such Order or Preparation, or an artifact cannot be read.
pub fn run_diff(
    common: &Common,
    args: &Diff,
    outside: &Outside,
    output: &mut Output,
) -> Result<(), Vec<Failure>> {
    let opened = Opened::new(common, outside, Access::Read)?;
    let setup = opened.make_setup(Access::Read, None);
    let read = run::read_inputs(&setup, &mut |text| output.show_progress(text)).map_err(wrap_failure)?;
    let cases = resolve::resolve_cases(&read.world, &read.gitops, &setup.argocd_namespace);
    let case = setup::find_case(&cases, &args.order, common).map_err(wrap_failure)?;
    let deployed = case.deployed.as_ref().map(|d| (d.artifact.clone(), Some(d.target_namespace.clone())));
    let from = match &args.from_preparation {
        Some(name) => Some(find_artifact(case, name).map_err(wrap_failure)?),
        None => deployed,
    };
    let to = match (&args.to_preparation, &case.candidate, &case.newest) {
        (Some(name), ..) => find_artifact(case, name),
        (None, Some(candidate), _) => Ok(make_place(candidate)),
        (None, None, Newest::One(name)) => find_artifact(case, name),
        (None, None, Newest::None | Newest::Unclear(_)) => Err(Failure::new(
            FailureKind::SaysNo,
            "nothing-to-compare",
            "it is not clear which Preparation is meant",
        )
        .with_object(case.format_order())
        .with_hint("name it; expedite get preparations lists them")),
    }
    .map_err(wrap_failure)?;
    let colour = output.style().colour;
    output.write_result(&format_difference(&setup, from, to, args.all, colour).map_err(wrap_failure)?);
    Ok(())
}

/// Where a Preparation's objects are, and where they go.
pub fn make_place(candidate: &Candidate) -> ArtifactPlace {
    (candidate.artifact.clone(), Some(candidate.target_namespace.clone()))
}

fn find_artifact(case: &Case, name: &PreparationName) -> Result<ArtifactPlace, Failure> {
    match case.preparations.get(name) {
        Some(loaded) => build_candidate(loaded, &case.order.namespace).map(|c| make_place(&c)),
        None => Err(Failure::new(
            FailureKind::SaysNo,
            "unknown-preparation",
            format!("it has no Preparation {name}"),
        )
        .with_object(case.format_order())
        .with_hint("expedite get preparations lists them")),
    }
}

/// The difference between two artifacts, for a terminal; without the first, everything is new.
///
/// # Errors
/// One of them cannot be read.
pub fn format_difference(
    setup: &Setup<'_>,
    from: Option<ArtifactPlace>,
    to: ArtifactPlace,
    all: bool,
    colour: bool,
) -> Result<String, Failure> {
    let mut found = contents::compare_pairs(setup, &[(from, to)], all);
    match found.pop() {
        Some(comparison) => Ok(report::diff::format_comparison(&comparison?, colour)),
        None => Ok(String::new()),
    }
}
