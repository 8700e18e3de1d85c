//! `schema`: the JSON Schemas of settings, outputs and predicates.

use crate::attest;
use crate::error::{Failure, FailureKind};
use crate::report::Output;
use crate::report::json_v1::schema::OUTPUTS;
use crate::settings;
use crate::verbs::folder::write_all;
use clap::Args;
use kube_yaml::spelling::find_nearest;
use std::path::PathBuf;

/// Print the JSON Schemas of settings, outputs and predicates
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  expedite schema                                      the names, one a line
  expedite schema plan-v1.json
  expedite schema --dir ./schemas                      all of them")]
pub struct Schema {
    /// Which one [default: their names]
    #[arg(value_name = "NAME", conflicts_with = "dir")]
    pub name: Option<String>,
    /// Write all of them into this folder
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
}

/// Prints the names, one schema, or writes all of them into a folder.
///
/// # Errors
/// There is none of that name, or the folder cannot be written.
pub fn run_schema(args: &Schema, output: &mut Output) -> Result<(), Failure> {
    let mut all = build_schemas();
    if let Some(folder) = &args.dir {
        return write_all(folder, all, output);
    }
    let Some(name) = &args.name else {
        let names: String = all.iter().map(|(name, _)| format!("{name}\n")).collect();
        output.write_result(&names);
        return Ok(());
    };
    match all.iter().position(|(known, _)| known == name) {
        Some(at) => output.write_result(&all.swap_remove(at).1),
        None => {
            let failure = Failure::new(FailureKind::Usage, "no-schema", "there is no schema of this name")
                .with_object(name.clone());
            let known: Vec<&str> = all.iter().map(|(name, _)| name.as_str()).collect();
            return Err(match find_nearest(name, &known) {
                Some(close) => failure.with_hint(format!("did you mean {close}?")),
                None => failure.with_hint("expedite schema lists the names"),
            });
        }
    }
    Ok(())
}

/// File name and text of each, sorted.
fn build_schemas() -> Vec<(String, String)> {
    let predicates = attest::SCHEMAS.iter().map(|(name, _, text)| ((*name).to_owned(), (*text).to_owned()));
    let outputs =
        OUTPUTS.iter().map(|(name, make)| ((*name).to_owned(), format!("{:#}\n", make().as_value())));
    let settings = ("settings.json".to_owned(), settings::SCHEMA.to_owned());
    let mut all: Vec<_> = predicates.chain(outputs).chain([settings]).collect();
    all.sort();
    all
}
