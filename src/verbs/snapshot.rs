//! `snapshot`: what decisions use of the clusters, as files of a folder. No registry is asked.

use crate::error::{Failure, FailureKind};
use crate::load::cluster::snapshot;
use crate::report::Output;
use crate::report::view::format_count;
use crate::verbs::flags::Common;
use crate::verbs::folder::{check_empty, write_file};
use crate::verbs::setup::{Access, Opened, Outside, wrap_failure};
use clap::Args;
use std::path::PathBuf;

/// Write what decisions use of the clusters into a folder, to decide again from it offline
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  expedite snapshot ./then --from-cluster --context prod
  expedite plan --from ./then                          what was decided, without the cluster")]
pub struct SnapshotFlags {
    /// Folder to write; it must not exist, or be empty
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
}

/// Reads every cluster source and writes what it gave.
///
/// # Errors
/// The settings are wrong, there is no cluster among the sources, one cannot be read whole, or the folder is
/// not empty or cannot be written.
pub fn run_snapshot(
    common: &Common,
    args: &SnapshotFlags,
    outside: &Outside,
    output: &mut Output,
) -> Result<(), Vec<Failure>> {
    check_empty(&args.folder).map_err(wrap_failure)?;
    let opened = Opened::new(common, outside, Access::ReadIfThere)?;
    let parts = opened.fetch_clusters(&mut |text| output.show_progress(text));
    if parts.is_empty() {
        let failure = Failure::new(FailureKind::Usage, "no-cluster", "no source is a cluster");
        return Err(wrap_failure(
            failure.with_hint("give --from-cluster, or name a cluster in the settings' sources"),
        ));
    }
    let mut failures = Vec::new();
    for part in &parts {
        for why in part.fetched.failures() {
            failures.push(
                Failure::new(FailureKind::Unread, "unreadable", why).with_object(part.fetched.display_name()),
            );
        }
    }
    if !failures.is_empty() {
        return Err(failures);
    }
    for (path, text) in snapshot::build_files(&parts) {
        write_file(&args.folder, &path, text.as_bytes()).map_err(wrap_failure)?;
    }
    for part in &parts {
        let objects = format_count(part.fetched.objects().len(), "object", "objects");
        let applications = match part.fetched.applications() {
            Some(all) => format_count(all.len(), "Application", "Applications"),
            None => "no Argo CD".to_owned(),
        };
        output.write_result(&format!("{}: {objects}, {applications}\n", part.fetched.display_name()));
    }
    output.write_note(&format!("replay with: expedite plan --from {}", args.folder.display()));
    Ok(())
}
