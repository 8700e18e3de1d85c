//! Which comments are ours. Pure.

use crate::forge::api::ForgeComment;
use sha2::{Digest as _, Sha256};

/// The first line of every comment of one pipeline. `identity` distinguishes it from the other pipelines of the
/// same repository. The line is an HTML comment, so the page does not show it.
///
/// ```
/// use expedite::forge::format_marker;
/// assert_eq!(format_marker("prod"), "<!-- expedite:comment 6754af9632a2745e -->");
/// assert_ne!(format_marker("prod"), format_marker("test"));
/// ```
#[must_use]
pub fn format_marker(identity: &str) -> String {
    let hash = Sha256::digest(identity.as_bytes());
    let hex = hex::encode(&hash[..8]);
    format!("<!-- expedite:comment {hex} -->")
}

/// Author of our comments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Own {
    /// This user.
    User(i64),
    /// Any bot, because the token may not ask which one it is. A person is never a bot.
    Bot,
}

impl Own {
    pub(super) fn has_written(self, comment: &ForgeComment) -> bool {
        match self {
            Self::User(id) => comment.author.as_ref().is_some_and(|author| author.id == id),
            Self::Bot => comment.author.as_ref().is_some_and(|author| author.is_bot),
        }
    }
}

/// Whether a comment begins with the marker. A quote does not: it begins with `>`.
pub(super) fn is_marked(comment: &ForgeComment, marker: &str) -> bool {
    comment.body.trim_start().starts_with(marker)
}

/// Whether two texts are equal, except for what forges change: line ends, and white space at both ends.
pub(super) fn is_same_text(found: &str, wanted: &str) -> bool {
    let lines = |text: &str| text.trim().replace("\r\n", "\n");
    lines(found) == lines(wanted)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;
    use crate::forge::api::CommentAuthor;

    fn comment(id: i64, is_bot: bool, body: &str) -> ForgeComment {
        ForgeComment { id: 1, body: body.into(), author: Some(CommentAuthor { id, is_bot }), page: None }
    }

    #[test]
    fn a_quote_is_not_ours_and_nor_is_a_copy() {
        let mark = format_marker("a");
        let ours = comment(7, true, &format!("{mark}\r\ntext"));
        let quote = comment(7, false, &format!("> {mark}\n> text\n\nwhat does it mean?"));
        let copy = comment(8, false, &format!("{mark}\ntext"));
        assert!(is_marked(&ours, &mark) && !is_marked(&quote, &mark) && is_marked(&copy, &mark));
        assert!(!is_marked(&ours, &format_marker("b")));
        assert!(Own::User(7).has_written(&ours) && !Own::User(7).has_written(&copy));
        assert!(Own::Bot.has_written(&ours) && !Own::Bot.has_written(&copy));
        let ghost = ForgeComment { author: None, ..ours };
        assert!(!Own::User(7).has_written(&ghost) && !Own::Bot.has_written(&ghost));
    }

    #[test]
    fn line_ends_are_no_change() {
        assert!(is_same_text("a\r\nb", "a\nb\n"));
        assert!(!is_same_text("a\nb", "a\n\nb"));
    }
}
