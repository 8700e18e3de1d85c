//! A hand edit of a generated file, as a unified diff.

use similar::TextDiff;

/// Lines around a change.
const CONTEXT: usize = 3;
/// Maximum number of lines of one file's diff, so that a report stays readable.
const LINES: usize = 200;

/// From the generated text to what was found (none: the file was deleted), in the form that `git apply -R`
/// accepts to undo the edit.
#[must_use]
pub fn format_diff(path: &str, generated: &str, found: Option<&str>) -> String {
    let (old, new) = (format!("a/{path}"), found.map_or("/dev/null".to_owned(), |_| format!("b/{path}")));
    let diff = TextDiff::from_lines(generated, found.unwrap_or_default());
    let text = diff.unified_diff().context_radius(CONTEXT).header(&old, &new).to_string();
    let lines = text.lines().count();
    if lines <= LINES {
        return text;
    }
    let kept: String = text.split_inclusive('\n').take(LINES).collect();
    format!("{kept}… {} more lines\n", lines - LINES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_edit_is_shown_from_what_was_generated() {
        let said = format_diff("applications/a.yaml", "a: 1\nb: 2\n", Some("a: 1\nb: 3\n"));
        assert_eq!(
            said,
            "--- a/applications/a.yaml\n+++ b/applications/a.yaml\n@@ -1,2 +1,2 @@\n a: 1\n-b: 2\n+b: 3\n"
        );
    }

    #[test]
    fn a_file_that_is_gone_and_one_that_is_long() {
        assert_eq!(format_diff("a", "x\n", None), "--- a/a\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n");
        let long: String = (0..500).map(|n| format!("{n}\n")).collect();
        let said = format_diff("a", &long, None);
        assert_eq!(said.lines().count(), LINES + 1);
        assert!(said.ends_with("… 303 more lines\n"), "{said}");
    }
}
