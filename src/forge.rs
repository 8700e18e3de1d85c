//! The pull request comment: one for each pipeline, found again and edited in place.
//!
//! [`resolve_target()`] finds the pull request from a CI's variables; [`post_comment`] writes the comment. The shape of
//! requests (`api`), which comments are ours (`sticky`) and how long to wait after a refusal (`pace`) are pure; `http`
//! sends. Nothing here knows what a plan is: the caller passes the text.
//!
//! Runs may overlap. Each run that writes reads the list again, keeps our oldest comment and removes our others,
//! so that exactly one remains in any order of events. A run whose commit is no longer the newest of its pull
//! request writes nothing.

mod api;
mod http;
mod pace;
mod sticky;
mod target;

pub use http::ForgeLimits;
pub use sticky::format_marker;
pub use target::CommentTarget;

use crate::error::{Failure, FailureKind};
use api::ForgeComment;
use git_commits::Environment;
use http::{Client, ForgeRefusal};
use sticky::Own;

/// A forge with a supported REST API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Forge {
    /// github.com or a GitHub Enterprise Server.
    Github,
    /// gitlab.com or a self-managed GitLab.
    Gitlab,
    /// Gitea or Forgejo.
    Gitea,
}

impl Forge {
    /// Its name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Github => "github",
            Self::Gitlab => "gitlab",
            Self::Gitea => "gitea",
        }
    }

    /// Largest comment in bytes. GitHub takes 65,536 characters, GitLab 1,000,000, and a character has at least one
    /// byte; Gitea documents no limit and gets GitHub's.
    #[must_use]
    pub fn comment_bytes(self) -> usize {
        match self {
            Self::Github | Self::Gitea => 65_536,
            Self::Gitlab => 1_000_000,
        }
    }

    /// The variable that holds the token.
    #[must_use]
    pub fn token_variable(self) -> &'static str {
        match self {
            Self::Github => "GITHUB_TOKEN",
            Self::Gitlab => "GITLAB_TOKEN",
            Self::Gitea => "GITEA_TOKEN",
        }
    }
}

/// What was done to the comment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommentOutcome {
    /// A new comment.
    Created,
    /// An existing comment with another text.
    Updated,
    /// The comment already has this text.
    Unchanged,
    /// The pull request has this newer commit, and the run for that commit comments.
    Superseded(String),
}

/// The comment after a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Posted {
    /// What was done.
    pub outcome: CommentOutcome,
    /// Address of its page, if the forge reports it; untrusted text.
    pub page: Option<String>,
    /// Number of our other comments that were removed.
    pub removed: usize,
    /// Our other comments that could not be removed.
    pub left: Vec<Failure>,
}

/// Why commenting failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unposted {
    /// The token has no right to comment, or there is no token, as for a pull request from a fork.
    Denied(Failure),
    /// Anything else.
    Failed(Failure),
}

/// Finds the pull request from the variables of a CI run and the event that started it.
///
/// # Errors
/// A variable is missing or invalid; the failure names it. A missing token is not an error for a pull request
/// from a fork, where CI gives the run no token by design.
pub fn resolve_target(forge: Forge, environment: &Environment) -> Result<CommentTarget, Failure> {
    let event = match (forge, environment.get_path("GITHUB_EVENT_PATH")) {
        (Forge::Gitlab, _) | (_, None) => None,
        (Forge::Github | Forge::Gitea, Some(path)) => Some(std::fs::read(&path).map_err(|e| {
            let what = format!("GITHUB_EVENT_PATH {}", path.display());
            Failure::new(FailureKind::Usage, "no-event", format!("cannot read it: {e}")).with_object(what)
        })?),
    };
    CommentTarget::from_environment(forge, environment, event.as_deref())
}

/// Creates or edits the comment that begins with `marker`. The marker becomes the first line, before `text`.
///
/// # Errors
/// The token has no right to it, or the forge does not respond or gives an unexpected response.
pub fn post_comment(
    target: &CommentTarget,
    marker: &str,
    text: &str,
    environment: &Environment,
    limits: &ForgeLimits,
) -> Result<Posted, Unposted> {
    let token = target.token.as_ref().ok_or_else(|| Unposted::Denied(target.make_token_failure()))?;
    let client = Client::new(target, token, environment, limits).map_err(Unposted::Failed)?;
    let text = format!("{marker}\n{text}");
    let run = CommentRun { target, client, marker, text: &text, own: None, created: None };
    run.finish_run()
}

/// Reads our comment that begins with `marker`.
///
/// # Errors
/// The token has no right to it, or the forge does not respond or gives an unexpected response.
pub fn read_comment(
    target: &CommentTarget,
    marker: &str,
    environment: &Environment,
    limits: &ForgeLimits,
) -> Result<Option<String>, Unposted> {
    let token = target.token.as_ref().ok_or_else(|| Unposted::Denied(target.make_token_failure()))?;
    let client = Client::new(target, token, environment, limits).map_err(Unposted::Failed)?;
    let mut run = CommentRun { target, client, marker, text: "", own: None, created: None };
    match run.fetch_own_comments() {
        Ok(ours) => Ok(ours.into_iter().next().map(|comment| comment.body)),
        Err(ForgeRefusal::Denied(failure)) => Err(Unposted::Denied(failure)),
        Err(ForgeRefusal::Gone(failure) | ForgeRefusal::Unclear(failure) | ForgeRefusal::Failed(failure)) => {
            Err(Unposted::Failed(failure))
        }
    }
}

/// How often a run reads the list before it gives up: after creating a comment, and after responses that do not
/// show whether a comment was created.
const ROUNDS: u32 = 6;

struct CommentRun<'a> {
    target: &'a CommentTarget,
    client: Client<'a>,
    marker: &'a str,
    text: &'a str,
    /// Author of our comments, after the first request for it.
    own: Option<Own>,
    /// The comment that this run created.
    created: Option<ForgeComment>,
}

impl CommentRun<'_> {
    fn finish_run(mut self) -> Result<Posted, Unposted> {
        let mut last = None;
        for round in 0..ROUNDS {
            if round > 0 && self.created.is_none() {
                self.client.pause_round(round);
            }
            match self.run_round() {
                Ok(Some(posted)) => return Ok(posted),
                Ok(None) => {}
                Err(ForgeRefusal::Unclear(failure) | ForgeRefusal::Gone(failure)) => last = Some(failure),
                Err(ForgeRefusal::Denied(failure)) => return Err(Unposted::Denied(failure)),
                Err(ForgeRefusal::Failed(failure)) => return Err(Unposted::Failed(failure)),
            }
        }
        Err(Unposted::Failed(last.unwrap_or_else(|| {
            let cause = "other runs kept changing the comment while this one wrote it";
            Failure::new(FailureKind::Repository, "comment-moved", cause).with_object(self.target.to_string())
        })))
    }

    /// Reads the comments once and acts on them; `None`: read again.
    fn run_round(&mut self) -> Result<Option<Posted>, ForgeRefusal> {
        let mut ours = self.fetch_own_comments()?;
        // The list may lag behind, so a comment that this run created is not created again.
        if let Some(made) = self.created.clone().filter(|made| ours.iter().all(|c| c.id != made.id)) {
            ours.push(made);
            ours.sort_by_key(|comment| comment.id);
        }
        let says_it = |comment: &ForgeComment| sticky::is_same_text(&comment.body, self.text);
        if let [only] = ours.as_slice()
            && says_it(only)
        {
            let outcome =
                if self.created.is_some() { CommentOutcome::Created } else { CommentOutcome::Unchanged };
            return Ok(Some(make_posted(outcome, only)));
        }
        if let Some(head) = self.fetch_newer_head()? {
            return self.step_back(&ours, head).map(Some);
        }
        let Some((kept, others)) = ours.split_first() else {
            let answer = self.client.send_call(&self.target.make_create_call(self.text))?;
            self.created = Some(self.target.parse_comment(&answer).map_err(ForgeRefusal::Unclear)?);
            // Another run may have created one at the same time.
            return Ok(None);
        };
        let mut done = make_posted(CommentOutcome::Unchanged, kept);
        if !says_it(kept) {
            let answer = self.client.send_call(&self.target.make_update_call(kept.id, self.text))?;
            done.page =
                self.target.parse_comment(&answer).ok().and_then(|comment| comment.page).or(done.page);
            done.outcome = CommentOutcome::Updated;
        }
        for other in others {
            match self.client.send_call(&self.target.make_remove_call(other.id)) {
                Ok(_) => done.removed += 1,
                Err(ForgeRefusal::Gone(_)) => {}
                Err(
                    ForgeRefusal::Unclear(failure)
                    | ForgeRefusal::Denied(failure)
                    | ForgeRefusal::Failed(failure),
                ) => {
                    done.left.push(failure);
                }
            }
        }
        Ok(Some(done))
    }

    /// The run for the newer commit comments. A comment that this run created stays only if it is our only one:
    /// the other run will find and edit it.
    fn step_back(&mut self, ours: &[ForgeComment], head: String) -> Result<Posted, ForgeRefusal> {
        let mut done =
            Posted { outcome: CommentOutcome::Superseded(head), page: None, removed: 0, left: Vec::new() };
        let made = self.created.as_ref().map(|made| made.id);
        if ours.first().map(|first| first.id) != made
            && let Some(made) = made
        {
            match self.client.send_call(&self.target.make_remove_call(made)) {
                Ok(_) => done.removed += 1,
                Err(ForgeRefusal::Gone(_)) => {}
                Err(
                    ForgeRefusal::Unclear(failure)
                    | ForgeRefusal::Denied(failure)
                    | ForgeRefusal::Failed(failure),
                ) => {
                    done.left.push(failure);
                }
            }
        }
        Ok(done)
    }

    /// Our comments with this marker, the oldest first.
    fn fetch_own_comments(&mut self) -> Result<Vec<ForgeComment>, ForgeRefusal> {
        let mut marked = Vec::new();
        for page in 1.. {
            let answer = self.client.send_call(&self.target.make_list_call(page))?;
            let comments = self.target.parse_comments(&answer)?;
            marked.extend(comments.into_iter().filter(|comment| sticky::is_marked(comment, self.marker)));
            if !self.target.has_more(&answer) {
                break;
            }
            if page == api::PAGES {
                return Err(ForgeRefusal::Failed(self.target.make_failure(
                    "too-many-comments",
                    format!("it has more than {} comments, and no more are read", api::PAGES * api::PER_PAGE),
                )));
            }
        }
        if marked.is_empty() {
            return Ok(marked);
        }
        let own = match self.own {
            Some(own) => own,
            None => self.fetch_own_identity()?,
        };
        self.own = Some(own);
        marked.retain(|comment| own.has_written(comment));
        marked.sort_by_key(|comment| comment.id);
        marked.dedup_by_key(|comment| comment.id);
        Ok(marked)
    }

    /// Finds the token's user. A GitHub app's token (such as a workflow's own) may not ask for it and writes as a bot.
    fn fetch_own_identity(&mut self) -> Result<Own, ForgeRefusal> {
        if self.target.is_app() {
            return Ok(Own::Bot);
        }
        match self.client.send_call(&self.target.make_user_call()) {
            Ok(answer) => Ok(Own::User(self.target.parse_author(&answer)?.id)),
            Err(ForgeRefusal::Denied(_)) if self.target.forge == Forge::Github => Ok(Own::Bot),
            Err(refused) => Err(refused),
        }
    }

    /// The newest commit of the pull request, if it differs from this run's.
    fn fetch_newer_head(&mut self) -> Result<Option<String>, ForgeRefusal> {
        let Some(own) = &self.target.head else { return Ok(None) };
        let answer = self.client.send_call(&self.target.make_pull_call())?;
        Ok(self.target.parse_head_commit(&answer)?.filter(|head| head != own))
    }
}

fn make_posted(outcome: CommentOutcome, comment: &ForgeComment) -> Posted {
    Posted { outcome, page: comment.page.clone(), removed: 0, left: Vec::new() }
}
