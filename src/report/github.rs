//! Output for a GitHub Actions runner: annotations at the files, and the step's summary.

use crate::error::Failure;
use crate::report::escape;
use crate::report::failure::Level;

/// Most bytes that a step's summary takes (GitHub's limit is 1 MiB for a step; some is left for others).
pub const SUMMARY_BYTES: usize = 1_000_000;

/// Most bytes of a comment on a pull request (GitHub takes 65,536 characters; a character has a byte at least).
pub const COMMENT_BYTES: usize = 65_536;

/// `::error file=…,line=…,col=…,title=…::message` on one line. A failure without a place has no `file`.
#[must_use]
pub fn format_annotation(failure: &Failure, level: Level) -> String {
    let mut properties = Vec::new();
    if let Some(at) = &failure.at {
        properties.push(("file", at.file.clone()));
        properties.extend(at.line.map(|n| ("line", n.to_string())));
        properties.extend(at.column.map(|n| ("col", n.to_string())));
    }
    properties.extend(failure.what.as_ref().map(|what| ("title", what.clone())));
    let properties: Vec<String> = properties
        .into_iter()
        .map(|(name, value)| format!("{name}={}", escape::escape_workflow_property(&value)))
        .collect();

    // The place has its own properties; the message repeats the rest, since not every view shows a title.
    let mut message = Failure { at: None, ..failure.clone() }.to_string();
    for hint in &failure.hints {
        message.push_str("\nhint: ");
        message.push_str(hint);
    }
    let space = if properties.is_empty() { "" } else { " " };
    format!(
        "::{}{space}{}::{}\n",
        level.as_str(),
        properties.join(","),
        escape::escape_workflow_data(&message)
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;
    use crate::error::At;

    #[test]
    fn an_annotation_stands_at_its_line() {
        let failure = Failure::new_input("duplicate-key", "key \"mode\" is there twice")
            .with_object("Order shop/podinfo")
            .with_place(At { file: "objects/a,b.yaml".into(), line: Some(7), column: Some(5) })
            .with_field("spec.promotion.mode")
            .with_hint("remove one");
        assert_eq!(
            format_annotation(&failure, Level::Error),
            "::error file=objects/a%2Cb.yaml,line=7,col=5,title=Order shop/podinfo::\
             Order shop/podinfo: spec.promotion.mode: key \"mode\" is there twice%0Ahint: remove one\n"
        );
    }

    #[test]
    fn foreign_text_ends_no_command_and_starts_none() {
        let failure = Failure::new_input("x", "100%\n::add-mask::secret\r\n").with_object("a::b,c");
        let text = format_annotation(&failure, Level::Warning);
        assert_eq!(text, "::warning title=a%3A%3Ab%2Cc::a::b,c: 100%25%0A::add-mask::secret%0D%0A\n");
        assert_eq!(text.lines().count(), 1);
    }

    #[test]
    fn a_failure_without_a_place_has_no_properties() {
        assert_eq!(format_annotation(&Failure::new_input("x", "no"), Level::Error), "::error::no\n");
    }
}
