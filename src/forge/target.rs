//! Finds the pull request for a comment from the variables of a CI run. Pure.

use crate::error::{Failure, FailureKind};
use crate::forge::Forge;
use git_commits::{Environment, SecretText};
use serde::Deserialize;
use std::fmt;
use std::net::IpAddr;
use url::{Host, Url};

/// A pull (or merge) request, the address of its forge's API, and the token of this run.
#[derive(Debug, Clone)]
pub struct CommentTarget {
    pub(super) forge: Forge,
    /// The API's root.
    pub(super) api: Url,
    /// Owner and repository, or a project's number.
    pub(super) project: Vec<String>,
    pub(super) number: u64,
    /// The commit that this run is about, if known.
    pub(super) head: Option<String>,
    pub(super) token: Option<SecretText>,
    /// It comes from a fork or from Dependabot, so its token may be absent or read-only by design.
    from_outside: bool,
}

/// The members that are used of the event that started a workflow.
#[derive(Debug, Default, Deserialize)]
struct Event {
    pull_request: Option<Pull>,
}

#[derive(Debug, Deserialize)]
struct Pull {
    number: Option<u64>,
    head: Option<EventSide>,
    base: Option<EventSide>,
}

#[derive(Debug, Deserialize)]
struct EventSide {
    sha: Option<String>,
    repo: Option<Repo>,
}

#[derive(Debug, Deserialize)]
struct Repo {
    full_name: Option<String>,
}

impl EventSide {
    fn repository(&self) -> Option<&str> {
        self.repo.as_ref()?.full_name.as_deref()
    }
}

impl CommentTarget {
    /// Reads the variables; `event` is the file that `GITHUB_EVENT_PATH` names.
    ///
    /// # Errors
    /// See [`target`](crate::forge::target()).
    pub(super) fn from_environment(
        forge: Forge,
        environment: &Environment,
        event: Option<&[u8]>,
    ) -> Result<Self, Failure> {
        let target = match forge {
            Forge::Github | Forge::Gitea => Self::from_actions(forge, environment, event)?,
            Forge::Gitlab => Self::from_gitlab(environment)?,
        };
        match &target.token {
            None if !target.from_outside => {
                Err(Failure { kind: FailureKind::Usage, ..target.make_token_failure() })
            }
            Some(token) if token.expose().bytes().any(|b| !b.is_ascii_graphic()) => {
                let variable = forge.token_variable();
                Err(Failure::new(
                    FailureKind::Usage,
                    "token",
                    "it holds a space, a line end or a character outside ASCII",
                )
                .with_object(variable)
                .with_hint("store the token alone, on one line"))
            }
            None | Some(_) => Ok(target),
        }
    }

    fn from_actions(forge: Forge, environment: &Environment, event: Option<&[u8]>) -> Result<Self, Failure> {
        let asked = Asked { forge, environment };
        let event: Event = match event {
            None => Event::default(),
            Some(bytes) => serde_json::from_slice(bytes).map_err(|e| {
                asked.make_value_failure("GITHUB_EVENT_PATH", &format!("the file is not a valid event: {e}"))
            })?,
        };
        let repository = asked.require_variable("GITHUB_REPOSITORY", "OWNER/NAME")?;
        let project: Vec<String> = repository.split('/').map(str::to_owned).collect();
        let plain = |part: &String| {
            !part.is_empty()
                && !part.starts_with('.')
                && part.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b))
        };
        if project.len() != 2 || !project.iter().all(plain) {
            return Err(asked.make_value_failure("GITHUB_REPOSITORY", "it is not OWNER/NAME"));
        }
        let pull = event.pull_request.as_ref();
        let of_ref = || environment.get("GITHUB_REF").and_then(parse_pull_number);
        let number = pull.and_then(|pull| pull.number).or_else(of_ref).ok_or_else(|| {
            let found = environment.get("GITHUB_REF").unwrap_or("not set");
            let cause = format!(
                "this run is not for a pull request: GITHUB_EVENT_PATH names none, and GITHUB_REF is {found}"
            );
            asked
                .make_failure("no-pull-request", cause)
                .with_hint("run it in a workflow with the trigger on: pull_request")
        })?;
        let api = match forge {
            Forge::Gitea => {
                let mut api = asked.read_url("GITHUB_SERVER_URL", None)?;
                let path = format!("{}/api/v1", api.path().trim_end_matches('/'));
                api.set_path(&path);
                api
            }
            Forge::Github | Forge::Gitlab => {
                asked.read_url("GITHUB_API_URL", Some("https://api.github.com"))?
            }
        };
        let head = pull.and_then(|pull| pull.head.as_ref());
        let base = pull.and_then(|pull| pull.base.as_ref());
        // A deleted fork has no name.
        let fork = head.is_some_and(|head| head.repository() != base.and_then(EventSide::repository));
        let dependabot = environment.get("GITHUB_ACTOR") == Some("dependabot[bot]");
        Ok(Self {
            forge,
            api,
            project,
            number,
            head: head.and_then(|head| head.sha.clone()),
            token: asked.read_token(),
            from_outside: fork || dependabot,
        })
    }

    fn from_gitlab(environment: &Environment) -> Result<Self, Failure> {
        let forge = Forge::Gitlab;
        let asked = Asked { forge, environment };
        let number = |name: &str, text: &str| {
            text.parse::<u64>().map_err(|_| asked.make_value_failure(name, "it is not a number"))
        };
        let api = asked.read_url("CI_API_V4_URL", None)?;
        // The target project; a pipeline of a fork runs in the fork's project.
        let of_request = environment.get("CI_MERGE_REQUEST_PROJECT_ID");
        let (name, project) = match of_request {
            Some(project) => ("CI_MERGE_REQUEST_PROJECT_ID", project),
            None => ("CI_PROJECT_ID", asked.require_variable("CI_PROJECT_ID", "the project's number")?),
        };
        let project = number(name, project)?;
        let iid = environment.get("CI_MERGE_REQUEST_IID").ok_or_else(|| {
            let cause = "this pipeline is not for a merge request: CI_MERGE_REQUEST_IID is not set";
            asked.make_failure("no-pull-request", cause.to_owned()).with_hint(
                "let the job run in merge request pipelines: rules: [{if: $CI_PIPELINE_SOURCE == \"merge_request_event\"}]",
            )
        })?;
        let iid = number("CI_MERGE_REQUEST_IID", iid)?;
        let source = environment.get("CI_MERGE_REQUEST_SOURCE_PROJECT_ID");
        let head = environment.get("CI_MERGE_REQUEST_SOURCE_BRANCH_SHA");
        Ok(Self {
            forge,
            api,
            project: vec![project.to_string()],
            number: iid,
            // A pipeline of merged results runs for a commit that is not in any branch.
            head: head.or_else(|| environment.get("CI_COMMIT_SHA")).map(str::to_owned),
            token: asked.read_token(),
            from_outside: source.is_some_and(|source| source != project.to_string()),
        })
    }

    /// Whether its token may be absent or read-only by design, so that a missing comment is not an error.
    #[must_use]
    pub fn is_from_outside(&self) -> bool {
        self.from_outside
    }

    /// Which forge it is on.
    #[must_use]
    pub fn forge(&self) -> Forge {
        self.forge
    }

    /// A failure at the forge that is about this pull request.
    pub(super) fn make_failure(&self, code: &'static str, cause: impl Into<String>) -> Failure {
        Failure::new(FailureKind::Repository, code, cause).with_object(self.to_string())
    }

    pub(super) fn make_token_failure(&self) -> Failure {
        let variable = self.forge.token_variable();
        let failure =
            self.make_failure("no-token", format!("{variable} is not set, and a comment needs a token"));
        self.add_token_hint(failure)
    }

    /// Adds a hint on how to get a token that may comment.
    pub(super) fn add_token_hint(&self, failure: Failure) -> Failure {
        if self.from_outside {
            return failure.with_hint("CI gives a pull request from a fork (or from Dependabot) no token that may comment; read the plan in the log or in the step summary");
        }
        failure.with_hint(match self.forge {
            Forge::Github => "give the job permissions: {pull-requests: write} and the step env: {GITHUB_TOKEN: ${{ github.token }}}",
            Forge::Gitlab => "CI_JOB_TOKEN may not comment: create a project access token (role Reporter, scope api), masked and not protected, as the variable GITLAB_TOKEN",
            Forge::Gitea => "give a token with the scopes write:issue, read:repository and read:user, or the job's own: env: {GITEA_TOKEN: ${{ secrets.GITEA_TOKEN }}}",
        })
    }
}

/// The pull request of `refs/pull/7/merge`, or of the branch in which a merge queue tests it,
/// `refs/heads/gh-readonly-queue/main/pr-7-<commit>`.
fn parse_pull_number(reference: &str) -> Option<u64> {
    let text = match reference.strip_prefix("refs/pull/") {
        Some(rest) => rest.split('/').next()?,
        None => {
            let (_, rest) = reference.strip_prefix("refs/heads/gh-readonly-queue/")?.rsplit_once("/pr-")?;
            rest.split('-').next()?
        }
    };
    text.parse().ok()
}

impl fmt::Display for CommentTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let project = self.project.join("/");
        match self.forge {
            Forge::Github | Forge::Gitea => write!(f, "pull request {project}#{}", self.number),
            Forge::Gitlab => write!(f, "merge request !{} of project {project}", self.number),
        }
    }
}

/// The variables of one run.
struct Asked<'a> {
    forge: Forge,
    environment: &'a Environment,
}

impl<'a> Asked<'a> {
    fn make_failure(&self, code: &'static str, cause: String) -> Failure {
        Failure::new(FailureKind::Usage, code, cause).with_object(format!("--comment {}", self.forge.name()))
    }

    fn make_value_failure(&self, name: &str, why: &str) -> Failure {
        self.make_failure("ci-variable", format!("{name}: {why}"))
    }

    fn require_variable(&self, name: &str, what: &str) -> Result<&'a str, Failure> {
        self.environment.get(name).ok_or_else(|| {
            let cause = format!("the variable {name} ({what}) is not set");
            self.make_failure("ci-variable", cause).with_hint("CI sets it; use --comment in CI only")
        })
    }

    fn read_token(&self) -> Option<SecretText> {
        self.environment.get(self.forge.token_variable()).map(SecretText::new)
    }

    /// An address that may receive a token: HTTPS, or this machine.
    fn read_url(&self, name: &str, default: Option<&str>) -> Result<Url, Failure> {
        let text = match (self.environment.get(name), default) {
            (Some(text), _) => text,
            (None, Some(default)) => default,
            (None, None) => self.require_variable(name, "the forge's address")?,
        };
        let url =
            Url::parse(text).map_err(|e| self.make_value_failure(name, &format!("it is not a URL: {e}")))?;
        let here = match url.host() {
            Some(Host::Domain(name)) => name == "localhost",
            Some(Host::Ipv4(address)) => IpAddr::V4(address).is_loopback(),
            Some(Host::Ipv6(address)) => IpAddr::V6(address).is_loopback(),
            None => false,
        };
        if !(url.scheme() == "https" && url.host().is_some() || url.scheme() == "http" && here) {
            return Err(self.make_value_failure(name, "a token is only sent to an https:// address"));
        }
        if !url.username().is_empty()
            || url.password().is_some()
            || url.query().is_some()
            || url.fragment().is_some()
        {
            return Err(self.make_value_failure(name, "it must be an address without a user or a query"));
        }
        Ok(url)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;
    use serde_json::{Value, json};

    const GITHUB: [(&str, &str); 3] =
        [("GITHUB_REPOSITORY", "acme/gitops"), ("GITHUB_TOKEN", "t"), ("GITHUB_REF", "refs/pull/7/merge")];
    const GITLAB: [(&str, &str); 5] = [
        ("CI_API_V4_URL", "https://gitlab.acme.example/api/v4"),
        ("CI_PROJECT_ID", "12"),
        ("CI_MERGE_REQUEST_IID", "3"),
        ("CI_COMMIT_SHA", "c0ffee"),
        ("GITLAB_TOKEN", "t"),
    ];

    fn of(
        forge: Forge,
        base: &[(&str, &str)],
        more: &[(&str, &str)],
        event: Option<Value>,
    ) -> Result<CommentTarget, Failure> {
        let pairs: Vec<_> = base.iter().chain(more).copied().collect();
        let event = event.map(|event| event.to_string());
        CommentTarget::from_environment(forge, &Environment::new(pairs), event.as_ref().map(String::as_bytes))
    }

    fn event(head: Value) -> Value {
        json!({"pull_request": {"number": 8, "head": {"sha": "abc", "repo": head}, "base": {"repo": {"full_name": "acme/gitops"}}}})
    }

    #[test]
    fn a_pull_request_is_named_by_the_event_or_the_ref() {
        let target = of(Forge::Github, &GITHUB, &[], None).unwrap();
        assert_eq!(target.to_string(), "pull request acme/gitops#7");
        assert_eq!((target.api.as_str(), target.head), ("https://api.github.com/", None));
        let target =
            of(Forge::Github, &GITHUB, &[], Some(event(json!({"full_name": "acme/gitops"})))).unwrap();
        assert_eq!((target.number, target.head.as_deref()), (8, Some("abc")));
        assert!(!target.is_from_outside());
        let gitea = [("GITHUB_SERVER_URL", "https://git.acme.example/gitea/"), ("GITEA_TOKEN", "t")];
        let target = of(Forge::Gitea, &GITHUB, &gitea, None).unwrap();
        assert_eq!(target.api.as_str(), "https://git.acme.example/gitea/api/v1");
    }

    #[test]
    fn a_merge_queue_names_its_pull_request() {
        assert_eq!(parse_pull_number("refs/heads/gh-readonly-queue/release/1.x/pr-12-0123abc"), Some(12));
        assert_eq!(parse_pull_number("refs/pull/7/head"), Some(7));
        for other in
            ["refs/heads/pr-7-abc", "refs/heads/gh-readonly-queue/main/pr-x-1", "refs/pull//merge", "main"]
        {
            assert_eq!(parse_pull_number(other), None, "{other}");
        }
    }

    #[test]
    fn a_merge_request_is_commented_in_the_project_it_goes_into() {
        let target = of(Forge::Gitlab, &GITLAB, &[], None).unwrap();
        assert_eq!(target.to_string(), "merge request !3 of project 12");
        assert_eq!(target.head.as_deref(), Some("c0ffee"));
        let fork = [
            ("CI_MERGE_REQUEST_PROJECT_ID", "9"),
            ("CI_MERGE_REQUEST_SOURCE_PROJECT_ID", "12"),
            ("CI_MERGE_REQUEST_SOURCE_BRANCH_SHA", "beef"),
        ];
        let target = of(Forge::Gitlab, &GITLAB, &fork, None).unwrap();
        assert_eq!(target.to_string(), "merge request !3 of project 9");
        assert_eq!((target.head.as_deref(), target.is_from_outside()), (Some("beef"), true));
    }

    #[test]
    fn what_comes_from_outside_may_lack_a_token() {
        let without = &GITHUB[..1];
        for head in [json!({"full_name": "evil/gitops"}), Value::Null] {
            let target = of(Forge::Github, without, &[], Some(event(head))).unwrap();
            assert!(target.is_from_outside() && target.token.is_none());
        }
        let bot = [("GITHUB_ACTOR", "dependabot[bot]"), ("GITHUB_REF", "refs/pull/7/merge")];
        assert!(of(Forge::Github, without, &bot, None).unwrap().is_from_outside());
        let own = event(json!({"full_name": "acme/gitops"}));
        let failure = of(Forge::Github, without, &[], Some(own)).unwrap_err();
        assert_eq!((failure.kind, failure.code), (FailureKind::Usage, "no-token"));
        assert!(failure.cause.contains("GITHUB_TOKEN"), "{failure}");
    }

    #[test]
    fn what_is_missing_is_named() {
        let cause = |forge, base: &[(&str, &str)], event| {
            let failure = of(forge, base, &[], event).unwrap_err();
            assert_eq!(failure.kind, FailureKind::Usage, "{failure}");
            failure.to_string()
        };
        assert!(cause(Forge::Github, &[], None).contains("GITHUB_REPOSITORY"));
        let push = [("GITHUB_REPOSITORY", "a/b"), ("GITHUB_TOKEN", "t"), ("GITHUB_REF", "refs/heads/main")];
        assert!(
            cause(Forge::Github, &push, Some(json!({"ref": "refs/heads/main"}))).contains("refs/heads/main")
        );
        assert!(cause(Forge::Github, &GITHUB, Some(json!(7))).contains("GITHUB_EVENT_PATH"));
        assert!(cause(Forge::Gitea, &GITHUB, None).contains("GITHUB_SERVER_URL"));
        assert!(cause(Forge::Gitlab, &[], None).contains("CI_API_V4_URL"));
        assert!(cause(Forge::Gitlab, &GITLAB[..1], None).contains("CI_PROJECT_ID"));
        assert!(cause(Forge::Gitlab, &GITLAB[..2], None).contains("CI_MERGE_REQUEST_IID"));
        assert!(cause(Forge::Gitlab, &GITLAB[..4], None).contains("GITLAB_TOKEN"));
    }

    #[test]
    fn a_token_goes_to_https_or_to_this_machine() {
        let api = |url: &str| {
            let more = [("GITHUB_API_URL", url)];
            of(Forge::Github, &GITHUB, &more, None).map(|t| t.api.to_string()).map_err(|f| f.to_string())
        };
        for good in [
            "https://ghes.acme.example/api/v3",
            "http://127.0.0.1:8080",
            "http://[::1]:8080",
            "http://localhost:1",
        ] {
            assert!(api(good).is_ok(), "{good}");
        }
        for bad in [
            "http://ghes.acme.example/api/v3",
            "http://localhost.evil.example",
            "ftp://127.0.0.1",
            "https://u:p@h/",
            "https://h/?x",
            "https://h/#x",
            "h",
        ] {
            let refused = api(bad).unwrap_err();
            assert!(refused.contains("GITHUB_API_URL") && !refused.contains("u:p"), "{refused}");
        }
        for bad in ["a", "a/b/c", "a/..", "../b", "a/b?x", "a/", "a/ b"] {
            let failure = of(Forge::Github, &GITHUB[1..], &[("GITHUB_REPOSITORY", bad)], None).unwrap_err();
            assert!(failure.cause.contains("OWNER/NAME"), "{bad}: {failure}");
        }
        let secret = [
            ("GITHUB_TOKEN", "gh s3cret"),
            ("GITHUB_REPOSITORY", "a/b"),
            ("GITHUB_REF", "refs/pull/1/merge"),
        ];
        let failure = of(Forge::Github, &secret, &[], None).unwrap_err();
        assert!(!format!("{failure:?}").contains("s3cret"), "{failure:?}");
    }
}
