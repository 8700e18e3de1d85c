//! The comment on a pull request, against forges that hold every request against their published description.

mod binary;
mod comment;
mod faults;

use crate::support::pulls::{HEAD, Pulls};
use expedite::forge::{self, CommentTarget, Forge, ForgeLimits, Posted, Unposted};
use git_commits::Environment;
use std::time::Duration;

const ALL: [Forge; 3] = [Forge::Github, Forge::Gitlab, Forge::Gitea];

/// Times short enough for tests.
fn limits() -> ForgeLimits {
    ForgeLimits {
        backoff: Duration::from_millis(1),
        patience: Duration::from_secs(5),
        answer: Duration::from_secs(10),
        ..ForgeLimits::default()
    }
}

/// A run of CI for one commit.
struct Job {
    target: CommentTarget,
    environment: Environment,
    marker: String,
}

impl Job {
    fn of(pulls: &Pulls, forge: Forge, head: &str) -> Self {
        Self::with(pulls, forge, head, &[])
    }

    /// With these variables besides.
    fn with(pulls: &Pulls, forge: Forge, head: &str, more: &[(&'static str, String)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut variables = pulls.variables(&folder.path().join("event.json"), head);
        variables.extend_from_slice(more);
        let environment = Environment::new(variables);
        let target = forge::resolve_target(forge, &environment).unwrap();
        Self { target, environment, marker: forge::format_marker("pipeline") }
    }

    fn post(&self, text: &str) -> Result<Posted, Unposted> {
        forge::post_comment(&self.target, &self.marker, text, &self.environment, &limits())
    }
}

/// A run of the newest commit.
fn job(pulls: &Pulls, forge: Forge) -> Job {
    Job::of(pulls, forge, HEAD)
}
