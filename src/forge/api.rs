//! Requests of each forge's REST API, and what their answers say. Pure.
//!
//! Sources: GitHub's OpenAPI description (`issues/list-comments`, `issues/create-comment`,
//! `issues/update-comment`, `issues/delete-comment`, `pulls/get`, `users/get-authenticated`), GitLab's API
//! documentation ("Notes", "Merge requests", "Users"), Gitea's Swagger description (`issueGetComments`,
//! `issueCreateComment`, `issueEditComment`, `issueDeleteComment`, `repoGetPullRequest`, `userGetCurrent`).

use crate::error::Failure;
use crate::forge::http::{Answer, Refused};
use crate::forge::{Forge, Target};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// Comments that one page of a list holds: the most that GitHub and GitLab give.
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
pub(super) struct Call {
    pub method: Method,
    /// Below the API's root.
    pub path: Vec<String>,
    pub query: Vec<(&'static str, String)>,
    pub body: Option<Value>,
}

impl Call {
    fn new(method: Method, path: Vec<String>) -> Self {
        Self { method, path, query: Vec::new(), body: None }
    }

    /// Whether doing it twice makes two.
    pub(super) fn creates(&self) -> bool {
        self.method == Method::Post
    }

    /// Whether what it is about may have gone by another's hand.
    pub(super) fn may_be_gone(&self) -> bool {
        matches!(self.method, Method::Put | Method::Patch | Method::Delete)
    }
}

/// A comment, as far as anybody asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Comment {
    pub id: i64,
    pub body: String,
    /// `None`: the account is gone.
    pub author: Option<Author>,
    /// Its page. GitLab does not tell.
    pub page: Option<String>,
}

/// Who wrote it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(from = "WrittenUser")]
pub(super) struct Author {
    pub id: i64,
    /// GitHub tells bots, which are apps, from people.
    pub is_bot: bool,
}

#[derive(Deserialize)]
struct WrittenUser {
    id: i64,
    #[serde(rename = "type")]
    kind: Option<String>,
}

impl From<WrittenUser> for Author {
    fn from(user: WrittenUser) -> Self {
        Self { id: user.id, is_bot: user.kind.as_deref() == Some("Bot") }
    }
}

#[derive(Deserialize)]
struct WrittenComment {
    id: i64,
    body: Option<String>,
    #[serde(alias = "author")]
    user: Option<Author>,
    html_url: Option<String>,
    /// GitLab's own remarks, such as "added 1 commit".
    #[serde(default)]
    system: bool,
}

impl From<WrittenComment> for Comment {
    fn from(written: WrittenComment) -> Self {
        let body = written.body.filter(|_| !written.system).unwrap_or_default();
        Self { id: written.id, body, author: written.user, page: written.html_url }
    }
}

/// What is read of a pull request: GitHub and Gitea have `head.sha`, GitLab `sha`.
#[derive(Deserialize)]
struct WrittenPull {
    head: Option<WrittenHead>,
    sha: Option<String>,
}

#[derive(Deserialize)]
struct WrittenHead {
    sha: Option<String>,
}

impl Target {
    /// A page of its comments, from 1, the oldest first. Gitea gives all at once.
    pub(super) fn list(&self, page: u32) -> Call {
        let mut call = Call::new(Method::Get, self.comments_path());
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

    pub(super) fn create(&self, text: &str) -> Call {
        Call { body: Some(json!({"body": text})), ..Call::new(Method::Post, self.comments_path()) }
    }

    pub(super) fn update(&self, id: i64, text: &str) -> Call {
        let method = match self.forge {
            Forge::Github | Forge::Gitea => Method::Patch,
            Forge::Gitlab => Method::Put,
        };
        Call { body: Some(json!({"body": text})), ..Call::new(method, self.comment_path(id)) }
    }

    pub(super) fn remove(&self, id: i64) -> Call {
        Call::new(Method::Delete, self.comment_path(id))
    }

    /// The pull request itself.
    pub(super) fn pull(&self) -> Call {
        let number = self.number.to_string();
        Call::new(
            Method::Get,
            match self.forge {
                Forge::Github | Forge::Gitea => self.below(&["pulls", &number]),
                Forge::Gitlab => self.below(&["merge_requests", &number]),
            },
        )
    }

    /// Whose the token is.
    pub(super) fn me(&self) -> Call {
        Call::new(Method::Get, vec!["user".to_owned()])
    }

    /// Whether the token is an app's installation's, which may not ask whose it is (GitHub, "Token formats").
    pub(super) fn is_app(&self) -> bool {
        self.forge == Forge::Github && self.token.as_ref().is_some_and(|token| token.0.starts_with("ghs_"))
    }

    /// The headers of every request but the content's; the first holds the token.
    pub(super) fn headers(&self, token: &str) -> Vec<(&'static str, String)> {
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

    /// Whether there is another page behind this one.
    pub(super) fn has_more(&self, answer: &Answer) -> bool {
        match self.forge {
            Forge::Github | Forge::Gitlab => answer.link.as_deref().is_some_and(names_next),
            Forge::Gitea => false,
        }
    }

    pub(super) fn comments(&self, answer: &Answer) -> Result<Vec<Comment>, Refused> {
        let written: Vec<WrittenComment> = self.read(answer).map_err(Refused::Failed)?;
        Ok(written.into_iter().map(Comment::from).collect())
    }

    pub(super) fn comment(&self, answer: &Answer) -> Result<Comment, Failure> {
        self.read::<WrittenComment>(answer).map(Comment::from)
    }

    pub(super) fn author(&self, answer: &Answer) -> Result<Author, Refused> {
        self.read(answer).map_err(Refused::Failed)
    }

    /// The newest commit of a pull request; `None`: the forge does not know it yet.
    pub(super) fn head_of(&self, answer: &Answer) -> Result<Option<String>, Refused> {
        let pull: WrittenPull = self.read(answer).map_err(Refused::Failed)?;
        Ok(pull.head.and_then(|head| head.sha).or(pull.sha).filter(|sha| !sha.is_empty()))
    }

    fn read<T: DeserializeOwned>(&self, answer: &Answer) -> Result<T, Failure> {
        serde_json::from_slice(&answer.body).map_err(|e| {
            let cause = format!("{}: the answer is not what the forge's API gives: {e}", answer.line);
            self.failure("not-the-api", cause)
                .hint("check the address; a sign-in page or a proxy may have answered")
        })
    }

    fn below(&self, rest: &[&str]) -> Vec<String> {
        let root = match self.forge {
            Forge::Github | Forge::Gitea => "repos",
            Forge::Gitlab => "projects",
        };
        let project = self.project.iter().map(String::as_str);
        [root].into_iter().chain(project).chain(rest.iter().copied()).map(str::to_owned).collect()
    }

    fn comments_path(&self) -> Vec<String> {
        let number = self.number.to_string();
        match self.forge {
            Forge::Github | Forge::Gitea => self.below(&["issues", &number, "comments"]),
            Forge::Gitlab => self.below(&["merge_requests", &number, "notes"]),
        }
    }

    fn comment_path(&self, id: i64) -> Vec<String> {
        let id = id.to_string();
        match self.forge {
            Forge::Github | Forge::Gitea => self.below(&["issues", "comments", &id]),
            Forge::Gitlab => {
                let mut path = self.comments_path();
                path.push(id);
                path
            }
        }
    }
}

/// Whether a `Link` header (RFC 8288) has a next page. Where it is, is not asked: pages are counted here, so that
/// no answer says where the token goes.
fn names_next(link: &str) -> bool {
    link.split(',')
        .any(|one| one.split(';').skip(1).any(|part| matches!(part.trim(), "rel=\"next\"" | "rel=next")))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;

    #[test]
    fn a_next_page_is_told_by_its_relation() {
        assert!(names_next("<https://h/a?page=2>; rel=\"next\", <https://h/a?page=5>; rel=\"last\""));
        assert!(names_next("<https://h/a?page=1>; rel=\"prev\",<https://h/a?page=3>;rel=next"));
        assert!(!names_next("<https://h/a?page=1>; rel=\"first\", <https://h/a?rel=next>; rel=\"prev\""));
        assert!(!names_next(""));
    }

    #[test]
    fn a_comment_reads_alike_from_every_forge() {
        let read = |value: Value| Comment::from(serde_json::from_value::<WrittenComment>(value).unwrap());
        let author = |id, is_bot| Some(Author { id, is_bot });
        let github = read(
            json!({"id": 1, "body": "x", "user": {"id": 2, "login": "a", "type": "Bot"}, "html_url": "u"}),
        );
        assert_eq!(
            github,
            Comment { id: 1, body: "x".into(), author: author(2, true), page: Some("u".into()) }
        );
        let gitlab =
            read(json!({"id": 1, "body": "x", "author": {"id": 2, "username": "a"}, "system": false}));
        assert_eq!(gitlab, Comment { id: 1, body: "x".into(), author: author(2, false), page: None });
        // Gitea's own Actions user has a number below 0.
        assert_eq!(read(json!({"id": 1, "body": "x", "user": {"id": -2}})).author, author(-2, false));
        let system = read(json!({"id": 1, "body": "<!-- expedite -->", "author": {"id": 2}, "system": true}));
        assert_eq!(system.body, "");
        assert_eq!(read(json!({"id": 1, "body": null, "user": null})).author, None);
    }
}
