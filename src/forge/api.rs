//! Requests to each forge's REST API, and the parsing of responses. Pure.
//!
//! Sources: GitHub's OpenAPI description (`issues/list-comments`, `issues/create-comment`,
//! `issues/update-comment`, `issues/delete-comment`, `pulls/get`, `users/get-authenticated`), GitLab's API
//! documentation ("Notes", "Merge requests", "Users"), Gitea's Swagger description (`issueGetComments`,
//! `issueCreateComment`, `issueEditComment`, `issueDeleteComment`, `repoGetPullRequest`, `userGetCurrent`).

use crate::error::Failure;
use crate::forge::http::{ForgeAnswer, ForgeRefusal};
use crate::forge::{CommentTarget, Forge};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// Comments on one page of a list: the maximum of GitHub and GitLab.
pub(super) const PER_PAGE: u32 = 100;

/// Most pages that are read.
pub(super) const PAGES: u32 = 100;

/// What is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Method {
    Get,
    Post,
    Put,
    Patch,
    Delete,
}

/// A request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ForgeCall {
    pub method: Method,
    /// Below the API's root.
    pub path: Vec<String>,
    pub query: Vec<(&'static str, String)>,
    pub body: Option<Value>,
}

impl ForgeCall {
    fn new(method: Method, path: Vec<String>) -> Self {
        Self { method, path, query: Vec::new(), body: None }
    }

    /// Whether sending it twice would create two things.
    pub(super) fn is_creation(&self) -> bool {
        self.method == Method::Post
    }

    /// Whether another writer may have removed its object before.
    pub(super) fn can_be_gone(&self) -> bool {
        matches!(self.method, Method::Put | Method::Patch | Method::Delete)
    }
}

/// The members of a comment that are used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ForgeComment {
    pub id: i64,
    pub body: String,
    /// `None`: the account is gone.
    pub author: Option<CommentAuthor>,
    /// Address of its page. GitLab does not report it.
    pub page: Option<String>,
}

/// Who wrote it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(from = "WrittenUser")]
pub(super) struct CommentAuthor {
    pub id: i64,
    /// GitHub distinguishes bots (apps) from people.
    pub is_bot: bool,
}

#[derive(Deserialize)]
struct WrittenUser {
    id: i64,
    #[serde(rename = "type")]
    kind: Option<String>,
}

impl From<WrittenUser> for CommentAuthor {
    fn from(user: WrittenUser) -> Self {
        Self { id: user.id, is_bot: user.kind.as_deref() == Some("Bot") }
    }
}

#[derive(Deserialize)]
struct WrittenComment {
    id: i64,
    body: Option<String>,
    #[serde(alias = "author")]
    user: Option<CommentAuthor>,
    html_url: Option<String>,
    /// GitLab's own notes, such as "added 1 commit".
    #[serde(default)]
    system: bool,
}

impl From<WrittenComment> for ForgeComment {
    fn from(written: WrittenComment) -> Self {
        let body = written.body.filter(|_| !written.system).unwrap_or_default();
        Self { id: written.id, body, author: written.user, page: written.html_url }
    }
}

/// The members of a pull request that are used: GitHub and Gitea have `head.sha`, GitLab `sha`.
#[derive(Deserialize)]
struct WrittenPull {
    head: Option<WrittenHead>,
    sha: Option<String>,
}

#[derive(Deserialize)]
struct WrittenHead {
    sha: Option<String>,
}

impl CommentTarget {
    /// A page of its comments, counted from 1, the oldest first. Gitea returns all on one page.
    pub(super) fn make_list_call(&self, page: u32) -> ForgeCall {
        let mut call = ForgeCall::new(Method::Get, self.build_comments_path());
        let paged = [("per_page", PER_PAGE.to_string()), ("page", page.to_string())];
        match self.forge {
            Forge::Github => call.query.extend(paged),
            Forge::Gitlab => {
                call.query.extend([("sort", "asc".to_owned()), ("order_by", "created_at".to_owned())]);
                call.query.extend(paged);
            }
            Forge::Gitea => {}
        }
        call
    }

    pub(super) fn make_create_call(&self, text: &str) -> ForgeCall {
        ForgeCall {
            body: Some(json!({"body": text})),
            ..ForgeCall::new(Method::Post, self.build_comments_path())
        }
    }

    pub(super) fn make_update_call(&self, id: i64, text: &str) -> ForgeCall {
        let method = match self.forge {
            Forge::Github | Forge::Gitea => Method::Patch,
            Forge::Gitlab => Method::Put,
        };
        ForgeCall { body: Some(json!({"body": text})), ..ForgeCall::new(method, self.build_comment_path(id)) }
    }

    pub(super) fn make_remove_call(&self, id: i64) -> ForgeCall {
        ForgeCall::new(Method::Delete, self.build_comment_path(id))
    }

    /// The pull request itself.
    pub(super) fn make_pull_call(&self) -> ForgeCall {
        let number = self.number.to_string();
        ForgeCall::new(
            Method::Get,
            match self.forge {
                Forge::Github | Forge::Gitea => self.build_path(&["pulls", &number]),
                Forge::Gitlab => self.build_path(&["merge_requests", &number]),
            },
        )
    }

    /// Request for the token's user.
    pub(super) fn make_user_call(&self) -> ForgeCall {
        ForgeCall::new(Method::Get, vec!["user".to_owned()])
    }

    /// Whether the token belongs to an app's installation, which may not ask for its user (GitHub, "Token formats").
    pub(super) fn is_app(&self) -> bool {
        self.forge == Forge::Github
            && self.token.as_ref().is_some_and(|token| token.expose().starts_with("ghs_"))
    }

    /// The headers of every request, except the content type; the first holds the token.
    pub(super) fn build_headers(&self, token: &str) -> Vec<(&'static str, String)> {
        match self.forge {
            Forge::Github => vec![
                ("authorization", format!("Bearer {token}")),
                ("accept", "application/vnd.github+json".to_owned()),
                ("x-github-api-version", "2022-11-28".to_owned()),
            ],
            Forge::Gitlab => {
                vec![("private-token", token.to_owned()), ("accept", "application/json".to_owned())]
            }
            Forge::Gitea => {
                vec![("authorization", format!("token {token}")), ("accept", "application/json".to_owned())]
            }
        }
    }

    /// Whether there is another page after this one.
    pub(super) fn has_more(&self, answer: &ForgeAnswer) -> bool {
        match self.forge {
            Forge::Github | Forge::Gitlab => answer.link.as_deref().is_some_and(has_next_page),
            Forge::Gitea => false,
        }
    }

    pub(super) fn parse_comments(&self, answer: &ForgeAnswer) -> Result<Vec<ForgeComment>, ForgeRefusal> {
        let written: Vec<WrittenComment> = self.parse_answer(answer).map_err(ForgeRefusal::Failed)?;
        Ok(written.into_iter().map(ForgeComment::from).collect())
    }

    pub(super) fn parse_comment(&self, answer: &ForgeAnswer) -> Result<ForgeComment, Failure> {
        self.parse_answer::<WrittenComment>(answer).map(ForgeComment::from)
    }

    pub(super) fn parse_author(&self, answer: &ForgeAnswer) -> Result<CommentAuthor, ForgeRefusal> {
        self.parse_answer(answer).map_err(ForgeRefusal::Failed)
    }

    /// The newest commit of a pull request; `None`: the forge does not know it yet.
    pub(super) fn parse_head_commit(&self, answer: &ForgeAnswer) -> Result<Option<String>, ForgeRefusal> {
        let pull: WrittenPull = self.parse_answer(answer).map_err(ForgeRefusal::Failed)?;
        Ok(pull.head.and_then(|head| head.sha).or(pull.sha).filter(|sha| !sha.is_empty()))
    }

    fn parse_answer<T: DeserializeOwned>(&self, answer: &ForgeAnswer) -> Result<T, Failure> {
        serde_json::from_slice(&answer.body).map_err(|e| {
            let cause = format!("{}: the response is not valid for the forge's API: {e}", answer.line);
            self.make_failure("not-the-api", cause)
                .with_hint("check the address; a sign-in page or a proxy may have responded")
        })
    }

    fn build_path(&self, rest: &[&str]) -> Vec<String> {
        let root = match self.forge {
            Forge::Github | Forge::Gitea => "repos",
            Forge::Gitlab => "projects",
        };
        let project = self.project.iter().map(String::as_str);
        [root].into_iter().chain(project).chain(rest.iter().copied()).map(str::to_owned).collect()
    }

    fn build_comments_path(&self) -> Vec<String> {
        let number = self.number.to_string();
        match self.forge {
            Forge::Github | Forge::Gitea => self.build_path(&["issues", &number, "comments"]),
            Forge::Gitlab => self.build_path(&["merge_requests", &number, "notes"]),
        }
    }

    fn build_comment_path(&self, id: i64) -> Vec<String> {
        let id = id.to_string();
        match self.forge {
            Forge::Github | Forge::Gitea => self.build_path(&["issues", "comments", &id]),
            Forge::Gitlab => {
                let mut path = self.build_comments_path();
                path.push(id);
                path
            }
        }
    }
}

/// Whether a `Link` header (RFC 8288) has a next page. Its address is not used: pages are counted here, so that a
/// response cannot choose where the token is sent.
fn has_next_page(link: &str) -> bool {
    link.split(',')
        .any(|one| one.split(';').skip(1).any(|part| matches!(part.trim(), "rel=\"next\"" | "rel=next")))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;

    #[test]
    fn a_next_page_is_told_by_its_relation() {
        assert!(has_next_page("<https://h/a?page=2>; rel=\"next\", <https://h/a?page=5>; rel=\"last\""));
        assert!(has_next_page("<https://h/a?page=1>; rel=\"prev\",<https://h/a?page=3>;rel=next"));
        assert!(!has_next_page("<https://h/a?page=1>; rel=\"first\", <https://h/a?rel=next>; rel=\"prev\""));
        assert!(!has_next_page(""));
    }

    #[test]
    fn a_comment_reads_alike_from_every_forge() {
        let read =
            |value: Value| ForgeComment::from(serde_json::from_value::<WrittenComment>(value).unwrap());
        let author = |id, is_bot| Some(CommentAuthor { id, is_bot });
        let github = read(
            json!({"id": 1, "body": "x", "user": {"id": 2, "login": "a", "type": "Bot"}, "html_url": "u"}),
        );
        assert_eq!(
            github,
            ForgeComment { id: 1, body: "x".into(), author: author(2, true), page: Some("u".into()) }
        );
        let gitlab =
            read(json!({"id": 1, "body": "x", "author": {"id": 2, "username": "a"}, "system": false}));
        assert_eq!(gitlab, ForgeComment { id: 1, body: "x".into(), author: author(2, false), page: None });
        // Gitea's own Actions user has a negative number.
        assert_eq!(read(json!({"id": 1, "body": "x", "user": {"id": -2}})).author, author(-2, false));
        let system = read(json!({"id": 1, "body": "<!-- expedite -->", "author": {"id": 2}, "system": true}));
        assert_eq!(system.body, "");
        assert_eq!(read(json!({"id": 1, "body": null, "user": null})).author, None);
    }
}
