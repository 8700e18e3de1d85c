//! `verify`: the evidence of one artifact for one Order, claim by claim.

pub mod about;
pub mod artifact;
mod bundle;

use crate::error::{Failure, FailureKind};
use crate::model::id::{Artifact, OrderRef, PreparationName};
use crate::model::kitchen::KitchenSpec;
use crate::model::verification::{ClaimOutcome, ClaimReport, Verification, Whose};
use crate::report::{self, Output, json_v1};
use crate::run;
use crate::verbs::flags::Common;
use crate::verbs::formats::TableFormat;
use crate::verbs::setup;
use crate::verbs::setup::{Access, Opened, Outside, wrap_failure};
use crate::verbs::shown;
use crate::verbs::values::{ArtifactArg, OrderArg};
use artifact::{Named, Subject, Verified};
use bundle::{Bundle, Judged, Target};
use clap::Args;
use std::path::{Path, PathBuf};

/// Show the evidence of one artifact, claim by claim; keep it in one file, or verify from one
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  expedite verify registry.shop.example:5000/shop/catalog@sha256:5d41… --order shop/catalog
  expedite verify registry.shop.example:5000/shop/catalog:1.5.0 --order shop/catalog     the tag is resolved once
  expedite verify registry.shop.example:5000/shop/catalog:1.5.0 --order shop/catalog -o json
  expedite verify … --order shop/catalog --from ./trust                       by the Kitchen of a folder
  expedite verify … --order shop/catalog --save catalog-1.5.0.tar             and keep all that proves it in one file
  expedite verify registry.shop.example:5000/shop/catalog@sha256:5d41… --order shop/catalog --bundle catalog-1.5.0.tar
                                                                             from that file, without a network

Exit status: 0 every required claim is proven, 5 one is missing or invalid, 1 one could not be read.")]
pub struct Verify {
    /// HOST/REPOSITORY@sha256:… or HOST/REPOSITORY:TAG
    #[arg(value_name = "REF", value_parser = ArtifactArg::parse)]
    pub reference: ArtifactArg,
    /// For this Order, NAMESPACE/NAME: whose provenance, approvals and checks are wanted
    #[arg(long, value_name = "ORDER", value_parser = OrderArg::parse)]
    pub order: OrderArg,
    /// The Preparation whose seal of votes is looked for [default: the Order's one of this digest]
    #[arg(long, value_name = "NAME", value_parser = PreparationName::parse)]
    pub preparation: Option<PreparationName>,
    /// Keep everything that proves it in this file (an OCI image layout in a tar); nothing is kept unless all is proven
    #[arg(long, value_name = "FILE.tar", conflicts_with = "bundle")]
    pub save: Option<PathBuf>,
    /// Replace the file of --save if it is there
    #[arg(long, requires = "save")]
    pub overwrite: bool,
    /// Verify from a file that --save made: no registry is asked, and your own Kitchen judges
    #[arg(long, value_name = "FILE.tar")]
    pub bundle: Option<PathBuf>,
    /// Judge by the keys inside the file: that says that it is whole, not that anybody you trust signed it
    #[arg(long, requires = "bundle")]
    pub bundled_trust: bool,
    /// How it is printed
    #[arg(short, long, value_enum, default_value_t = TableFormat::Table)]
    pub output: TableFormat,
}

/// Prints what every claim rests on, or why it does not stand; saves what proves it, where that is asked.
///
/// # Errors
/// The settings are wrong, the repository, the tag or the bundle cannot be read, what is asked contradicts
/// itself, or the bundle cannot be written.
pub fn run_verify(
    common: &Common,
    args: &Verify,
    outside: &Outside,
    output: &mut Output,
) -> Result<(), Vec<Failure>> {
    let order = setup::parse_order(&args.order, common).map_err(wrap_failure)?;
    match &args.bundle {
        Some(file) => verify_from_bundle(common, args, outside, order, file, output),
        None => verify_from_registry(common, args, outside, order, output),
    }
}

fn verify_from_registry(
    common: &Common,
    args: &Verify,
    outside: &Outside,
    order: OrderRef,
    output: &mut Output,
) -> Result<(), Vec<Failure>> {
    let target = args.save.as_deref().map(|file| Target { file, overwrite: args.overwrite });
    if let Some(target) = &target {
        target.check_writable().map_err(wrap_failure)?;
    }
    let opened = Opened::new(common, outside, Access::ReadIfThere)?;
    let setup = opened.make_setup(Access::ReadIfThere, None);
    let named = match (&args.reference.digest, &args.reference.tag) {
        (Some(digest), _) => Named::Digest(*digest),
        (None, tag) => Named::Tag(tag.clone().unwrap_or_default()),
    };
    let artifact =
        artifact::pin_artifact(&setup, &args.reference.repository, &named).map_err(wrap_failure)?;
    let tag = match named {
        Named::Digest(_) => None,
        Named::Tag(tag) => {
            output.write_note(&format!("{}:{tag} is {} now", artifact.repository, artifact.digest));
            Some(tag)
        }
    };
    let read = run::read_inputs(&setup, &mut |text| output.show_progress(text)).map_err(wrap_failure)?;
    output.show_progress("reading the evidence");
    let subject = Subject { artifact, tag, order, preparation: args.preparation.clone() };
    let verified = artifact::verify_subject(&setup, &read, &subject).map_err(wrap_failure)?;
    shown::tell_details(&opened, output);
    let proven = tell_verified(&verified, args, output);
    let Some(target) = target else { return Ok(()) };
    if !proven {
        output.write_note("nothing is saved: a bundle holds what proves a promotion");
        return Ok(());
    }
    output.show_progress("collecting the evidence");
    let none = KitchenSpec::default();
    let kitchen = read.world.kitchen.as_ref().map_or(&none, |k| &k.object.spec);
    let records = artifact::read_record_files(&read, &subject);
    let saved =
        bundle::save_bundle(&setup, &verified.question, kitchen, &records, &target).map_err(wrap_failure)?;
    for left_out in &saved.left_out {
        output.write_detail(&format!("left out: {left_out}"));
    }
    output.write_note(&format!("saved {} ({} bytes, {})", target.file.display(), saved.size, saved.digest));
    Ok(())
}

fn verify_from_bundle(
    common: &Common,
    args: &Verify,
    outside: &Outside,
    order: OrderRef,
    file: &Path,
    output: &mut Output,
) -> Result<(), Vec<Failure>> {
    let Some(digest) = args.reference.digest else {
        let cause = "it has no digest, and an evidence bundle knows no tags";
        return Err(wrap_failure(
            Failure::new(FailureKind::Usage, "tag", cause)
                .with_object(args.reference.repository.to_string())
                .with_hint("name it as HOST/REPOSITORY@sha256:…"),
        ));
    };
    let artifact = Artifact { repository: args.reference.repository.clone(), digest };
    let access = if args.bundled_trust { Access::SettingsOnly } else { Access::SourcesOnly };
    let opened = Opened::new(common, outside, access)?;
    let setup = opened.make_setup(access, None);
    output.show_progress("reading the bundle");
    let bundle = Bundle::read_bundle(file).map_err(wrap_failure)?;
    bundle.check_about(&artifact).map_err(wrap_failure)?;
    let verified = if args.bundled_trust {
        bundle::verify_bundle(
            &setup,
            &bundle,
            Judged::Bundled { order: &order, preparation: args.preparation.as_ref() },
        )
    } else {
        let read = run::read_inputs(&setup, &mut |text| output.show_progress(text)).map_err(wrap_failure)?;
        let subject = Subject { artifact, tag: None, order, preparation: args.preparation.clone() };
        bundle::verify_bundle(&setup, &bundle, Judged::Own { read: &read, subject: &subject })
    };
    let verified = verified.map_err(wrap_failure)?;
    for note in opened.repository.take_notes() {
        output.report_warning(&note.into());
    }
    if args.bundled_trust {
        let cause = "judged by the keys inside it: that it is whole, not that anybody you trust signed it";
        let warning =
            Failure::new(FailureKind::Input, "bundled-trust", cause).with_object("the evidence bundle");
        output
            .report_warning(&warning.with_hint("leave out --bundled-trust, and your own Kitchen judges it"));
    }
    tell_verified(&verified, args, output);
    Ok(())
}

/// The result, what it does not say, and the exit status; whether everything is proven.
fn tell_verified(verified: &Verified, args: &Verify, output: &mut Output) -> bool {
    let Verified { verification, problems, warnings, .. } = verified;
    output.write_result(&match args.output {
        TableFormat::Table => report::verify::format_verification(verification, false),
        TableFormat::Wide => report::verify::format_verification(verification, true),
        TableFormat::Json => json_v1::verify::format_verification(verification, problems, warnings),
    });
    for warning in warnings {
        output.report_warning(warning);
    }
    for problem in problems {
        output.report_error(problem);
    }
    for claim in verification.claims.iter().filter(|claim| claim.required) {
        if let Some(failure) = describe_lack(verification, claim) {
            output.report_error(&failure);
        }
    }
    problems.is_empty() && verification.judge_outcome() == ClaimOutcome::Proven
}

/// A claim that does not stand, as an error: what it lacks says no, what could not be read says nothing.
fn describe_lack(verification: &Verification, claim: &ClaimReport) -> Option<Failure> {
    let (kind, code) = match claim.outcome() {
        ClaimOutcome::Proven => return None,
        ClaimOutcome::Missing => (FailureKind::SaysNo, "missing"),
        ClaimOutcome::Invalid => (FailureKind::SaysNo, "invalid"),
        ClaimOutcome::Unread => (FailureKind::Unread, "unread"),
    };
    let cause = format!("{}: {}", claim.format_title(), claim.says);
    let failure = Failure::new(kind, code, cause).with_object(format!("artifact {}", verification.artifact));
    let nobody = verification.trust.whose == Whose::Own && verification.trust.origin.is_none();
    Some(match nobody && claim.outcome() == ClaimOutcome::Missing {
        true => {
            failure.with_hint("no Kitchen was read: name the folder that says whom you trust with --from")
        }
        false => failure,
    })
}
