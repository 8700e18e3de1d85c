//! `crds`: the CustomResourceDefinitions of our kinds, for `kubectl apply -f -`.

use crate::error::{Failure, FailureKind};
use crate::model::crd;
use crate::model::kind;
use crate::report::Output;
use clap::Args;
use kube_yaml::emit;
use kube_yaml::spelling::find_nearest;

/// Print the CustomResourceDefinitions of the kinds that are read
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  expedite crds | kubectl apply --server-side -f -
  expedite crds serving")]
pub struct Crds {
    /// Which one: serving, servings, … [default: all]
    #[arg(value_name = "KIND")]
    pub kind: Option<String>,
}

/// Prints all of them, or one.
///
/// # Errors
/// There is no kind of that name.
pub fn run_crds(args: &Crds, output: &mut Output) -> Result<(), Failure> {
    let kinds = match &args.kind {
        Some(name) => vec![parse_kind(name)?],
        None => kind::Kind::ALL.to_vec(),
    };
    let documents: Vec<String> =
        kinds.into_iter().map(|kind| emit::format_document(&crd::build_definition(kind))).collect();
    output.write_result(&documents.join("---\n"));
    Ok(())
}

/// A kind as kubectl takes it: `Serving`, `serving`, `servings`, `servings.delivery.kokumi.dev`.
fn parse_kind(text: &str) -> Result<kind::Kind, Failure> {
    let lower = text.to_lowercase();
    let word = lower.strip_suffix(&format!(".{}", crate::model::naming::GROUP)).unwrap_or(&lower);
    let all = kind::Kind::ALL;
    if let Some(kind) = all.into_iter().find(|k| k.plural() == word || k.as_str().to_lowercase() == word) {
        return Ok(kind);
    }
    let plurals: Vec<&str> = all.into_iter().map(kind::Kind::plural).collect();
    let failure = Failure::new(FailureKind::Usage, "no-kind", "there is no kind of this name")
        .with_object(text.to_owned());
    Err(match find_nearest(word, &plurals) {
        Some(close) => failure.with_hint(format!("did you mean {close}?")),
        None => failure.with_hint(format!("one of {}", plurals.join(", "))),
    })
}
