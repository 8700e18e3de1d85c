//! `plan --comment`: the plan as the one comment of this pipeline on the pull request.

use crate::error::{Failure, FailureKind};
use crate::forge::{self, CommentOutcome, CommentTarget, Forge, ForgeLimits, Posted, Unposted};
use crate::report::fingerprint::Fingerprint;
use crate::report::view::View;
use crate::report::{Output, markdown};
use crate::verbs::flags::Common;
use crate::verbs::setup::Outside;
use clap::ValueEnum;
use git_commits::Environment;
use std::path::Path;

/// The forge that holds the pull request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CommentOn {
    /// GitHub Actions.
    Github,
    /// GitLab CI/CD.
    Gitlab,
    /// Gitea or Forgejo Actions.
    Gitea,
}

/// Where the comment goes: known before anything is decided, so that a variable that is missing costs no time.
pub struct PlanComment<'a> {
    target: CommentTarget,
    marker: String,
    environment: &'a Environment,
}

impl<'a> PlanComment<'a> {
    /// By the variables of the CI run.
    ///
    /// # Errors
    /// See [`forge::target`].
    pub fn new(on: CommentOn, common: &Common, outside: &'a Outside) -> Result<Self, Failure> {
        let forge = match on {
            CommentOn::Github => Forge::Github,
            CommentOn::Gitlab => Forge::Gitlab,
            CommentOn::Gitea => Forge::Gitea,
        };
        Ok(Self {
            target: forge::resolve_target(forge, &outside.environment)?,
            marker: forge::format_marker(&compute_identity(common, outside)),
            environment: &outside.environment,
        })
    }

    /// Posts it. What a pull request from outside may not do by design is no failure of the plan.
    pub fn post_plan(&self, view: &View<'_>, output: &mut Output) {
        output.show_progress("commenting");
        let room = self.target.forge().comment_bytes() - self.marker.len() - 1;
        let page = markdown::format_plan(view, room);
        match forge::post_comment(
            &self.target,
            &self.marker,
            &page,
            self.environment,
            &ForgeLimits::default(),
        ) {
            Ok(posted) => self.tell_posted(&posted, output),
            Err(Unposted::Denied(failure)) if self.target.is_from_outside() => {
                output.report_warning(&failure)
            }
            Err(Unposted::Denied(failure) | Unposted::Failed(failure)) => output.report_error(&failure),
        }
    }

    /// The fingerprint of the plan in the comment.
    ///
    /// # Errors
    /// There is no comment, or it cannot be read.
    pub fn fetch_fingerprint(&self) -> Result<Fingerprint, Failure> {
        let found =
            forge::read_comment(&self.target, &self.marker, self.environment, &ForgeLimits::default());
        let found = found.map_err(|why| match why {
            Unposted::Denied(failure) | Unposted::Failed(failure) => failure,
        })?;
        let no = |cause: &str| {
            Failure::new(FailureKind::SaysNo, "no-comment", cause)
                .with_object(self.target.to_string())
                .with_hint("let the preview of the pull request comment first, with the same flags and in the same folder")
        };
        let page = found.ok_or_else(|| no("there is no comment with a plan that could be expected"))?;
        let text = markdown::find_fingerprint(&page);
        let text = text.ok_or_else(|| no("its comment shows no fingerprint"))?;
        Fingerprint::parse(text).map_err(|why| no(&format!("the fingerprint in its comment: {why}")))
    }

    fn tell_posted(&self, posted: &Posted, output: &mut Output) {
        let page = posted.page.as_deref().map(|page| format!(": {page}")).unwrap_or_default();
        let what = match &posted.outcome {
            CommentOutcome::Created => "commented".to_owned(),
            CommentOutcome::Updated => "updated the comment".to_owned(),
            CommentOutcome::Unchanged => "the comment says this already".to_owned(),
            CommentOutcome::Superseded(head) => {
                format!("left the comment to the run of the newer commit {head}")
            }
        };
        output.write_note(&format!("{}: {what}{page}", self.target));
        if posted.removed > 0 {
            output.write_note(&format!(
                "removed {} more of ours, which runs at the same time had made",
                posted.removed
            ));
        }
        for failure in &posted.left {
            let failure = Failure { kind: FailureKind::Repository, ..failure.clone() };
            output.report_warning(&failure.with_hint("a comment of ours too many stays there"));
        }
    }
}

/// What tells this pipeline from others of the same repository: where it runs, and every flag that says what is
/// read or shown. The same on every runner.
fn compute_identity(common: &Common, outside: &Outside) -> String {
    let workspace =
        ["GITHUB_WORKSPACE", "CI_PROJECT_DIR"].iter().find_map(|v| outside.environment.get_path(v));
    let within = |text: &str| match &workspace {
        Some(workspace) => {
            let path = Path::new(text).strip_prefix(workspace);
            path.map_or_else(|_| text.to_owned(), |path| path.to_string_lossy().into_owned())
        }
        None => text.to_owned(),
    };
    let paths = |all: &[String]| all.iter().map(|text| within(text)).collect::<Vec<_>>();
    let Common {
        from, from_cluster, context, repo, branch, config, namespace, selector, only, shard, ..
    } = common;
    let working = outside.working.to_string_lossy();
    let working = if workspace.is_some() { within(&working) } else { String::new() };
    format!(
        "{working:?} {:?} {from_cluster} {context:?} {:?} {branch:?} {:?} {namespace:?} {selector:?} {only:?} {shard:?}",
        paths(from),
        repo.as_deref().map(within),
        config.as_deref().map(within),
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;
    use crate::model::time::Time;
    use crate::verbs::Cli;
    use clap::Parser as _;

    fn of(flags: &str, workspace: &str, working: &str) -> String {
        let cli = Cli::try_parse_from(format!("expedite plan {flags}").split_whitespace()).unwrap();
        let environment = Environment::new([("GITHUB_WORKSPACE", workspace)]);
        let clock = Time::parse("2026-02-10T12:00:00Z").unwrap();
        compute_identity(&cli.common, &Outside { environment, clock, working: working.into() })
    }

    #[test]
    fn another_runner_is_the_same_pipeline_and_another_folder_is_not() {
        let here = of("--repo /a/w/gitops --base main", "/a/w", "/a/w/shop");
        assert_eq!(here, of("--repo /b/2/gitops -o markdown", "/b/2", "/b/2/shop"));
        for other in
            ["", "--repo /a/w/other", "--repo /a/w/gitops -n shop", "--repo /a/w/gitops --context prod"]
        {
            assert_ne!(here, of(other, "/a/w", "/a/w/shop"), "{other}");
        }
        assert_ne!(here, of("--repo /a/w/gitops", "/a/w", "/a/w/bank"));
    }
}
