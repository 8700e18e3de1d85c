//! `verify`: the evidence of one artifact for one Order, claim by claim.

use crate::cli::{Common, TableFormat, Verify};
use crate::cmd::one;
use crate::cmd::setup::{self, Access, Opened, Outside};
use crate::cmd::shown;
use crate::error::{Failure, Kind};
use crate::model::id::{Artifact, OrderRef};
use crate::model::kitchen::KitchenSpec;
use crate::model::verification::{ClaimReport, Outcome, Verification, Whose};
use crate::report::{self, Output, json_v1};
use crate::run;
use crate::run::verify::bundle::{self, Bundle, Judged, Target};
use crate::run::verify::{self, Named, Subject, Verified};
use std::path::Path;

/// Prints what every claim rests on, or why it does not stand; saves what proves it, where that is asked.
///
/// # Errors
/// The settings are wrong, the repository, the tag or the bundle cannot be read, what is asked contradicts
/// itself, or the bundle cannot be written.
pub fn run(
    common: &Common,
    args: &Verify,
    outside: &Outside,
    output: &mut Output,
) -> Result<(), Vec<Failure>> {
    let order = setup::named(&args.order, common).map_err(one)?;
    match &args.bundle {
        Some(file) => from_bundle(common, args, outside, order, file, output),
        None => from_registry(common, args, outside, order, output),
    }
}

fn from_registry(
    common: &Common,
    args: &Verify,
    outside: &Outside,
    order: OrderRef,
    output: &mut Output,
) -> Result<(), Vec<Failure>> {
    let target = args.save.as_deref().map(|file| Target { file, overwrite: args.overwrite });
    if let Some(target) = &target {
        target.check().map_err(one)?;
    }
    let opened = Opened::new(common, outside, Access::ReadIfThere)?;
    let setup = opened.setup(Access::ReadIfThere, None);
    let named = match (&args.reference.digest, &args.reference.tag) {
        (Some(digest), _) => Named::Digest(*digest),
        (None, tag) => Named::Tag(tag.clone().unwrap_or_default()),
    };
    let artifact = verify::pin(&setup, &args.reference.repository, &named).map_err(one)?;
    let tag = match named {
        Named::Digest(_) => None,
        Named::Tag(tag) => {
            output.note(&format!("{}:{tag} is {} now", artifact.repository, artifact.digest));
            Some(tag)
        }
    };
    let read = run::read(&setup, &mut |text| output.progress(text)).map_err(one)?;
    output.progress("reading the evidence");
    let subject = Subject { artifact, tag, order, preparation: args.preparation.clone() };
    let verified = verify::verify(&setup, &read, &subject).map_err(one)?;
    shown::details(&opened, output);
    let proven = tell(&verified, args, output);
    let Some(target) = target else { return Ok(()) };
    if !proven {
        output.note("nothing is saved: a bundle holds what proves a promotion");
        return Ok(());
    }
    output.progress("collecting the evidence");
    let none = KitchenSpec::default();
    let kitchen = read.world.kitchen.as_ref().map_or(&none, |k| &k.object.spec);
    let records = verify::record_files(&read, &subject);
    let saved = bundle::save(&setup, &verified.question, kitchen, &records, &target).map_err(one)?;
    for left_out in &saved.left_out {
        output.detail(&format!("left out: {left_out}"));
    }
    output.note(&format!("saved {} ({} bytes, {})", target.file.display(), saved.size, saved.digest));
    Ok(())
}

fn from_bundle(
    common: &Common,
    args: &Verify,
    outside: &Outside,
    order: OrderRef,
    file: &Path,
    output: &mut Output,
) -> Result<(), Vec<Failure>> {
    let Some(digest) = args.reference.digest else {
        let cause = "it has no digest, and an evidence bundle knows no tags";
        return Err(one(Failure::new(Kind::Usage, "tag", cause)
            .of(args.reference.repository.to_string())
            .hint("name it as HOST/REPOSITORY@sha256:…")));
    };
    let artifact = Artifact { repository: args.reference.repository.clone(), digest };
    let access = if args.bundled_trust { Access::SettingsOnly } else { Access::SourcesOnly };
    let opened = Opened::new(common, outside, access)?;
    let setup = opened.setup(access, None);
    output.progress("reading the bundle");
    let bundle = Bundle::open(file).map_err(one)?;
    bundle.is_about(&artifact).map_err(one)?;
    let verified = if args.bundled_trust {
        bundle::verify(
            &setup,
            &bundle,
            Judged::Bundled { order: &order, preparation: args.preparation.as_ref() },
        )
    } else {
        let read = run::read(&setup, &mut |text| output.progress(text)).map_err(one)?;
        let subject = Subject { artifact, tag: None, order, preparation: args.preparation.clone() };
        bundle::verify(&setup, &bundle, Judged::Own { read: &read, subject: &subject })
    };
    let verified = verified.map_err(one)?;
    for note in opened.repository.take_notes() {
        output.warning(&note);
    }
    if args.bundled_trust {
        let cause = "judged by the keys inside it: that it is whole, not that anybody you trust signed it";
        let warning = Failure::new(Kind::Input, "bundled-trust", cause).of("the evidence bundle");
        output.warning(&warning.hint("leave out --bundled-trust, and your own Kitchen judges it"));
    }
    tell(&verified, args, output);
    Ok(())
}

/// The result, what it does not say, and the exit status; whether everything is proven.
fn tell(verified: &Verified, args: &Verify, output: &mut Output) -> bool {
    let Verified { verification, problems, warnings, .. } = verified;
    output.result(&match args.output {
        TableFormat::Table => report::verify::text(verification, false),
        TableFormat::Wide => report::verify::text(verification, true),
        TableFormat::Json => json_v1::verify::verification(verification, problems, warnings),
    });
    for warning in warnings {
        output.warning(warning);
    }
    for problem in problems {
        output.error(problem);
    }
    for claim in verification.claims.iter().filter(|claim| claim.required) {
        if let Some(failure) = lacking(verification, claim) {
            output.error(&failure);
        }
    }
    problems.is_empty() && verification.outcome() == Outcome::Proven
}

/// A claim that does not stand, as an error: what it lacks says no, what could not be read says nothing.
fn lacking(verification: &Verification, claim: &ClaimReport) -> Option<Failure> {
    let (kind, code) = match claim.outcome() {
        Outcome::Proven => return None,
        Outcome::Missing => (Kind::SaysNo, "missing"),
        Outcome::Invalid => (Kind::SaysNo, "invalid"),
        Outcome::Unread => (Kind::Unread, "unread"),
    };
    let cause = format!("{}: {}", claim.title(), claim.says);
    let failure = Failure::new(kind, code, cause).of(format!("artifact {}", verification.artifact));
    let nobody = verification.trust.whose == Whose::Own && verification.trust.origin.is_none();
    Some(match nobody && claim.outcome() == Outcome::Missing {
        true => failure.hint("no Kitchen was read: name the folder that says whom you trust with --from"),
        false => failure,
    })
}
