//! `diff`: the objects inside two artifacts, resource by resource.

use crate::cli::{Common, Diff};
use crate::cmd::one;
use crate::cmd::setup::{self, Access, Opened, Outside};
use crate::error::{Failure, Kind};
use crate::model::id::PreparationName;
use crate::model::plan::Candidate;
use crate::policy::resolve::candidate::candidate_of;
use crate::policy::resolve::newest::Newest;
use crate::policy::resolve::{self, Case};
use crate::report::{self, Output};
use crate::run::contents::{self, Place};
use crate::run::{self, Setup};

/// Prints what would change.
///
/// # Errors
/// There is no such Order or Preparation, or an artifact cannot be read.
pub fn run(common: &Common, args: &Diff, outside: &Outside, output: &mut Output) -> Result<(), Vec<Failure>> {
    let opened = Opened::new(common, outside, Access::Read)?;
    let setup = opened.setup(Access::Read, None);
    let read = run::read(&setup, &mut |text| output.progress(text)).map_err(one)?;
    let cases = resolve::cases(&read.world, &read.gitops, &setup.argocd_namespace);
    let case = setup::case(&cases, &args.order, common).map_err(one)?;
    let deployed = case.deployed.as_ref().map(|d| (d.artifact.clone(), Some(d.target_namespace.clone())));
    let from = match &args.from_preparation {
        Some(name) => Some(artifact(case, name).map_err(one)?),
        None => deployed,
    };
    let to = match (&args.to_preparation, &case.candidate, &case.newest) {
        (Some(name), ..) => artifact(case, name),
        (None, Some(candidate), _) => Ok(place(candidate)),
        (None, None, Newest::One(name)) => artifact(case, name),
        (None, None, Newest::None | Newest::Unclear(_)) => {
            Err(Failure::new(Kind::SaysNo, "nothing-to-compare", "nothing says which Preparation is meant")
                .of(case.what())
                .hint("name it; expedite get preparations lists them"))
        }
    }
    .map_err(one)?;
    let colour = output.style().colour;
    output.result(&between(&setup, from, to, args.all, colour).map_err(one)?);
    Ok(())
}

/// Where a Preparation's objects are, and where they go.
pub fn place(candidate: &Candidate) -> Place {
    (candidate.artifact.clone(), Some(candidate.target_namespace.clone()))
}

fn artifact(case: &Case, name: &PreparationName) -> Result<Place, Failure> {
    match case.preparations.get(name) {
        Some(loaded) => candidate_of(loaded, &case.order.namespace).map(|c| place(&c)),
        None => {
            Err(Failure::new(Kind::SaysNo, "unknown-preparation", format!("it has no Preparation {name}"))
                .of(case.what())
                .hint("expedite get preparations lists them"))
        }
    }
}

/// The difference between two artifacts, for a terminal; without the first, everything is new.
///
/// # Errors
/// One of them cannot be read.
pub fn between(
    setup: &Setup<'_>,
    from: Option<Place>,
    to: Place,
    all: bool,
    colour: bool,
) -> Result<String, Failure> {
    let mut found = contents::compared(setup, &[(from, to)], all);
    match found.pop() {
        Some(comparison) => Ok(report::diff::text(&comparison?, colour)),
        None => Ok(String::new()),
    }
}
