//! `verify`: the evidence of one artifact for one Order, claim by claim.

use crate::cli::{Common, TableFormat, Verify};
use crate::cmd::one;
use crate::cmd::setup::{self, Access, Opened, Outside};
use crate::cmd::shown;
use crate::error::{Failure, Kind};
use crate::model::verification::{ClaimReport, Outcome, Verification};
use crate::report::{self, Output, json_v1};
use crate::run;
use crate::run::verify::{self, Named, Subject, Verified};

/// Prints what every claim rests on, or why it does not stand.
///
/// # Errors
/// The settings are wrong, the repository or the tag cannot be read, or what is asked contradicts itself.
pub fn run(
    common: &Common,
    args: &Verify,
    outside: &Outside,
    output: &mut Output,
) -> Result<(), Vec<Failure>> {
    let order = setup::named(&args.order, common).map_err(one)?;
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
    tell(&verified, args, output);
    Ok(())
}

/// The result, what it does not say, and the exit status.
fn tell(verified: &Verified, args: &Verify, output: &mut Output) {
    let Verified { verification, problems, warnings } = verified;
    output.result(&match args.output {
        TableFormat::Table => report::verify::text(verification, false),
        TableFormat::Wide => report::verify::text(verification, true),
        TableFormat::Json => json_v1::verify::verification(verification),
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
    Some(Failure::new(kind, code, cause).of(format!("artifact {}", verification.artifact)))
}
