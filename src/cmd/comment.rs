//! `plan --comment`: the plan as the one comment of this pipeline on the pull request.

use crate::cli::{CommentOn, Common};
use crate::cmd::setup::Outside;
use crate::error::{Failure, Kind};
use crate::forge::{self, Forge, Limits, Outcome, Posted, Target, Unposted};
use crate::git::Environment;
use crate::report::fingerprint::Fingerprint;
use crate::report::view::View;
use crate::report::{Output, markdown};
use std::path::Path;

/// Where the comment goes: known before anything is decided, so that a variable that is missing costs no time.
pub struct Comment<'a> {
    target: Target,
    marker: String,
    environment: &'a Environment,
}

impl<'a> Comment<'a> {
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
            target: forge::target(forge, &outside.environment)?,
            marker: forge::marker(&identity(common, outside)),
            environment: &outside.environment,
        })
    }

    /// Posts it. What a pull request from outside may not do by design is no failure of the plan.
    pub fn post(&self, view: &View<'_>, output: &mut Output) {
        output.progress("commenting");
        let room = self.target.forge().comment_bytes() - self.marker.len() - 1;
        let page = markdown::plan(view, room);
        match forge::post(&self.target, &self.marker, &page, self.environment, &Limits::default()) {
            Ok(posted) => self.tell(&posted, output),
            Err(Unposted::Denied(failure)) if self.target.from_outside() => output.warning(&failure),
            Err(Unposted::Denied(failure) | Unposted::Failed(failure)) => output.error(&failure),
        }
    }

    /// The fingerprint of the plan in the comment.
    ///
    /// # Errors
    /// There is no comment, or it cannot be read.
    pub fn fingerprint(&self) -> Result<Fingerprint, Failure> {
        let found = forge::read(&self.target, &self.marker, self.environment, &Limits::default());
        let found = found.map_err(|why| match why {
            Unposted::Denied(failure) | Unposted::Failed(failure) => failure,
        })?;
        let no = |cause: &str| {
            Failure::new(Kind::SaysNo, "no-comment", cause)
                .of(self.target.to_string())
                .hint("let the preview of the pull request comment first, with the same flags and in the same folder")
        };
        let page = found.ok_or_else(|| no("there is no comment with a plan that could be expected"))?;
        let text = markdown::fingerprint(&page);
        let text = text.ok_or_else(|| no("its comment shows no fingerprint"))?;
        Fingerprint::parse(text).map_err(|why| no(&format!("the fingerprint in its comment: {why}")))
    }

    fn tell(&self, posted: &Posted, output: &mut Output) {
        let page = posted.page.as_deref().map(|page| format!(": {page}")).unwrap_or_default();
        let what = match &posted.outcome {
            Outcome::Created => "commented".to_owned(),
            Outcome::Updated => "updated the comment".to_owned(),
            Outcome::Unchanged => "the comment says this already".to_owned(),
            Outcome::Superseded(head) => format!("left the comment to the run of the newer commit {head}"),
        };
        output.note(&format!("{}: {what}{page}", self.target));
        if posted.removed > 0 {
            output.note(&format!(
                "removed {} more of ours, which runs at the same time had made",
                posted.removed
            ));
        }
        for failure in &posted.left {
            let failure = Failure { kind: Kind::Repository, ..failure.clone() };
            output.warning(&failure.hint("a comment of ours too many stays there"));
        }
    }
}

/// What tells this pipeline from others of the same repository: where it runs, and every flag that says what is
/// read or shown. The same on every runner.
fn identity(common: &Common, outside: &Outside) -> String {
    let workspace = ["GITHUB_WORKSPACE", "CI_PROJECT_DIR"].iter().find_map(|v| outside.environment.path(v));
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
    use crate::cli::Cli;
    use crate::model::time::Time;
    use clap::Parser as _;

    fn of(flags: &str, workspace: &str, working: &str) -> String {
        let cli = Cli::try_parse_from(format!("expedite plan {flags}").split_whitespace()).unwrap();
        let environment = Environment::new([("GITHUB_WORKSPACE", workspace)]);
        let clock = Time::parse("2026-02-10T12:00:00Z").unwrap();
        identity(&cli.common, &Outside { environment, clock, working: working.into() })
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
