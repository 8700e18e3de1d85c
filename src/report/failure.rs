//! A [`Failure`] as text for a person: `error: file:line:column: what: field: cause`, and its hints.

use crate::error::Failure;
use crate::report::escape;

/// How severe it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// It decides the exit status.
    Error,
    /// It does not change the exit status.
    Warning,
}

impl Level {
    /// The word as printed; also the name of GitHub's workflow command.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
        }
    }

    fn colour(self) -> &'static str {
        match self {
            Self::Error => RED,
            Self::Warning => YELLOW,
        }
    }
}

/// SGR codes of the few colours that are used.
const RED: &str = "\u{1b}[1;31m";
const YELLOW: &str = "\u{1b}[1;33m";
const CYAN: &str = "\u{1b}[1;36m";
const RESET: &str = "\u{1b}[0m";

/// The failure as lines for stderr. The first line is its message; its hints follow, indented.
#[must_use]
pub fn format_failure(failure: &Failure, level: Level, colour: bool) -> String {
    let mut out = paint_word(level.colour(), &format!("{}:", level.as_str()), colour);
    out.push(' ');
    out.push_str(&escape::escape_line(&failure.to_string()));
    out.push('\n');
    for hint in &failure.hints {
        out.push_str("  ");
        out.push_str(&paint_word(CYAN, "hint:", colour));
        out.push(' ');
        out.push_str(&escape::escape_line(hint));
        out.push('\n');
    }
    out
}

fn paint_word(code: &str, word: &str, colour: bool) -> String {
    if colour { format!("{code}{word}{RESET}") } else { word.to_owned() }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;
    use crate::error::At;

    fn failure() -> Failure {
        Failure::new_input("unknown-field", "there is no field \"promotoin\"")
            .with_object("Order shop/podinfo")
            .with_place(At { file: "objects/orders.yaml".into(), line: Some(12), column: Some(3) })
            .with_field("spec.promotoin")
            .with_hint("did you mean promotion?")
    }

    #[test]
    fn a_failure_says_where_what_why_and_what_next() {
        assert_eq!(
            format_failure(&failure(), Level::Error, false),
            "error: objects/orders.yaml:12:3: Order shop/podinfo: spec.promotoin: there is no field \"promotoin\"\n  \
             hint: did you mean promotion?\n"
        );
    }

    #[test]
    fn colour_touches_only_the_words_before_the_colons() {
        let text = format_failure(&failure(), Level::Warning, true);
        assert!(text.starts_with("\u{1b}[1;33mwarning:\u{1b}[0m objects/"), "{text}");
        assert!(text.contains("\n  \u{1b}[1;36mhint:\u{1b}[0m did"), "{text}");
    }

    #[test]
    fn foreign_text_starts_no_line_and_no_escape() {
        let hostile = Failure::new_input("x", "registry said\nerror: all is lost\u{1b}[2J").with_hint("a\nb");
        assert_eq!(
            format_failure(&hostile, Level::Error, false),
            "error: registry said error: all is lost\\u{1b}[2J\n  hint: a b\n"
        );
    }
}
