//! `snapshot`: what decisions use of the clusters, as files of a folder. No registry is asked.

use crate::cli::{Common, Snapshot};
use crate::cmd::one;
use crate::cmd::render::{must_be_empty, write};
use crate::cmd::setup::{Access, Opened, Outside};
use crate::error::{Failure, Kind};
use crate::load::cluster::snapshot;
use crate::report::Output;
use crate::report::view::counted;

/// Reads every cluster source and writes what it gave.
///
/// # Errors
/// The settings are wrong, there is no cluster among the sources, one cannot be read whole, or the folder is
/// not empty or cannot be written.
pub fn run(
    common: &Common,
    args: &Snapshot,
    outside: &Outside,
    output: &mut Output,
) -> Result<(), Vec<Failure>> {
    must_be_empty(&args.folder).map_err(one)?;
    let opened = Opened::new(common, outside, Access::ReadIfThere)?;
    let parts = opened.fetch(&mut |text| output.progress(text));
    if parts.is_empty() {
        let failure = Failure::new(Kind::Usage, "no-cluster", "no source is a cluster");
        return Err(one(failure.hint("give --from-cluster, or name a cluster in the settings' sources")));
    }
    let mut failures = Vec::new();
    for part in &parts {
        for why in part.fetched.failures() {
            failures.push(Failure::new(Kind::Unread, "unreadable", why).of(part.fetched.called()));
        }
    }
    if !failures.is_empty() {
        return Err(failures);
    }
    for (path, text) in snapshot::files(&parts) {
        write(&args.folder, &path, text.as_bytes()).map_err(one)?;
    }
    for part in &parts {
        let objects = counted(part.fetched.objects().len(), "object", "objects");
        let applications = match part.fetched.applications() {
            Some(all) => counted(all.len(), "Application", "Applications"),
            None => "no Argo CD".to_owned(),
        };
        output.result(&format!("{}: {objects}, {applications}\n", part.fetched.called()));
    }
    output.note(&format!("replay with: expedite plan --from {}", args.folder.display()));
    Ok(())
}
