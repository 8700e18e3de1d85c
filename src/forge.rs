//! The comment on a pull request: one for each pipeline, found again and edited in place.
//!
//! [`resolve_target()`] says from a CI's variables where it goes; [`post_comment`] brings it there. What a request looks like
//! (`api`), which comments are ours (`sticky`) and how long to wait for a forge that refuses (`pace`) is pure;
//! `http` sends. Nothing here knows what a plan is: the text is handed in.
//!
//! Runs overlap: every one that writes reads again, and all keep the oldest comment of ours and remove the
//! others, so that one is left however they interleave. A run whose commit is no longer the newest of its pull
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

/// A forge whose REST API is spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Forge {
    /// github.com or a GitHub Enterprise Server.
    Github,
    /// gitlab.com or a GitLab of one's own.
    Gitlab,
    /// Gitea or Forgejo.
    Gitea,
}

impl Forge {
    /// As the command line names it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Github => "github",
            Self::Gitlab => "gitlab",
            Self::Gitea => "gitea",
        }
    }

    /// Most bytes of a comment. GitHub takes 65,536 characters, GitLab 1,000,000, and a character has a byte at
    /// least; Gitea names no limit, and gets what GitHub does.
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

/// What became of the comment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommentOutcome {
    /// There was none.
    Created,
    /// There was one, with another text.
    Updated,
    /// It says this already.
    Unchanged,
    /// The pull request has a newer commit: this, whose own run comments.
    Superseded(String),
}

/// A comment that stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Posted {
    /// What was done.
    pub outcome: CommentOutcome,
    /// Its page, where the forge tells; foreign text.
    pub page: Option<String>,
    /// Others of ours that were removed.
    pub removed: usize,
    /// Others of ours that could not be removed.
    pub left: Vec<Failure>,
}

/// Why there is no comment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unposted {
    /// The token may not, or there is none: as it is for a pull request from a fork.
    Denied(Failure),
    /// Anything else.
    Failed(Failure),
}

/// Where the comment goes, by the variables of a CI run and the event that it was started by.
///
/// # Errors
/// A variable is missing or makes no sense; the failure names it. No token is no error where none is given to
/// the run by design: for a pull request from a fork.
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

/// Makes `text` the comment that begins with `marker`: its first line is put there.
///
/// # Errors
/// The token may not, or the forge cannot be reached or understood.
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

/// The comment of ours that begins with `marker`, as it stands.
///
/// # Errors
/// The token may not, or the forge cannot be reached or understood.
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

/// How often a run reads again before it gives up: after its own creation, and after answers that left open
/// whether a comment was made.
const ROUNDS: u32 = 6;

struct CommentRun<'a> {
    target: &'a CommentTarget,
    client: Client<'a>,
    marker: &'a str,
    text: &'a str,
    /// Whose comments are ours, once it was asked.
    own: Option<Own>,
    /// The comment that this run made.
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

    /// One look at what is there, and what follows from it; `None`: look again.
    fn run_round(&mut self) -> Result<Option<Posted>, ForgeRefusal> {
        let mut ours = self.fetch_own_comments()?;
        // A list may lag behind: what this run made is not made again because of it.
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
            // Another run may have made one at the same time.
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

    /// The newer run comments. What this one made stays only where nothing else of ours is there: that run
    /// will find it.
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
                    format!("it has more than {} comments", api::PAGES * api::PER_PAGE),
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

    /// Whose the token is. An app's token of GitHub (such as a workflow's own) may not ask: it writes as a bot.
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

    /// The newest commit of the pull request, if it is another than this run's.
    fn fetch_newer_head(&mut self) -> Result<Option<String>, ForgeRefusal> {
        let Some(own) = &self.target.head else { return Ok(None) };
        let answer = self.client.send_call(&self.target.make_pull_call())?;
        Ok(self.target.parse_head_commit(&answer)?.filter(|head| head != own))
    }
}

fn make_posted(outcome: CommentOutcome, comment: &ForgeComment) -> Posted {
    Posted { outcome, page: comment.page.clone(), removed: 0, left: Vec::new() }
}
