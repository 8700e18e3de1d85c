//! Neutralises foreign text for where it is printed. Names, messages and a registry's words may come from
//! anyone; none of them may control a terminal, a page or a CI runner, or mislead a reader.
//!
//! Each function is total and says for which place its result is safe; none is safe for another's.

use std::borrow::Cow;
use std::fmt::Write as _;
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// Whether a character moves the cursor, the reading direction or nothing visible at all, so that what
/// is shown would differ from what is there.
fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c,
            // Direction marks, embeddings, overrides and isolates.
            '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
            // Line and paragraph separators.
            | '\u{2028}' | '\u{2029}'
            // Zero width: soft hyphen, joiners, spaces, invisible operators, byte order mark.
            | '\u{ad}' | '\u{34f}' | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200d}'
            | '\u{2060}'..='\u{2065}' | '\u{206a}'..='\u{206f}' | '\u{feff}'
            // Fillers that look like nothing, annotation marks, tags, supplementary selectors.
            | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{3164}' | '\u{ffa0}'
            | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}')
}

/// For one line of a terminal or a plain file: line breaks and tabs become one space, every other
/// control, direction or invisible character its escape (`\u{1b}`).
///
/// ```
/// use expedite::report::escape::escape_line;
/// assert_eq!(escape_line("done\n\u{1b}[31mred"), "done \\u{1b}[31mred");
/// assert_eq!(escape_line("Zoë 🍲"), "Zoë 🍲");
/// ```
#[must_use]
pub fn escape_line(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_hidden) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 8);
    let mut broken = false;
    for c in text.chars() {
        match c {
            '\n' | '\r' | '\t' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}' => broken = true,
            c => {
                if broken && !out.is_empty() {
                    out.push(' ');
                }
                broken = false;
                push_visibly(&mut out, c);
            }
        }
    }
    Cow::Owned(out)
}

fn push_visibly(out: &mut String, c: char) {
    if is_hidden(c) {
        let _ = write!(out, "\\u{{{:x}}}", u32::from(c));
    } else {
        out.push(c);
    }
}

/// Columns that a terminal uses for a text that [`escape_line()`] has passed.
#[must_use]
pub fn measure_width(text: &str) -> usize {
    text.width()
}

/// At most `columns` columns of a text that [`escape_line()`] has passed; what is cut is replaced by `…`.
///
/// ```
/// use expedite::report::escape::truncate_text;
/// assert_eq!(truncate_text("podinfo", 7), "podinfo");
/// assert_eq!(truncate_text("podinfo", 6), "podin…");
/// assert_eq!(truncate_text("値段表", 5), "値段…");
/// ```
#[must_use]
pub fn truncate_text(text: &str, columns: usize) -> Cow<'_, str> {
    if measure_width(text) <= columns {
        return Cow::Borrowed(text);
    }
    let Some(room) = columns.checked_sub(1) else { return Cow::Borrowed("") };
    let mut used = 0;
    let mut out = String::new();
    for c in text.chars() {
        used += c.width().unwrap_or(0);
        if used > room {
            break;
        }
        out.push(c);
    }
    out.push('…');
    Cow::Owned(out)
}

/// For running text of Markdown as forges render it (also inside a table's cell): no markup, HTML,
/// link, mention or reference of the text's own.
///
/// ```
/// use expedite::report::escape::escape_markdown;
/// assert_eq!(escape_markdown("a|b *c* @ann #7"), "a\\|b \\*c\\* @&#8203;ann \\#&#8203;7");
/// assert_eq!(escape_markdown("<img src=x>"), "&lt;img src=x&gt;");
/// ```
#[must_use]
pub fn escape_markdown(text: &str) -> String {
    let text = escape_line(text);
    let mut out = String::with_capacity(text.len() + 16);
    for (at, c) in text.char_indices() {
        if let Some(still) = find_escape(&text, at, c) {
            out.push_str(still);
            continue;
        }
        match c {
            '#' => out.push_str("\\#&#8203;"),
            '\\' | '`' | '*' | '_' | '{' | '}' | '[' | ']' | '(' | ')' | '!' | '|' | '~' | '$' => {
                out.push('\\');
                out.push(c);
            }
            // Lists and headings at the start of a line.
            '+' | '-' | '=' | '.' if at == 0 || has_digits_only(&text[..at]) => {
                out.push('\\');
                out.push(c);
            }
            c => out.push(c),
        }
    }
    out
}

/// The replacement of the character `c` at byte `at` of `text`, if a renderer would turn it into a mention,
/// reference or link without any markup.
fn find_escape(text: &str, at: usize, c: char) -> Option<&'static str> {
    match c {
        '<' => Some("&lt;"),
        '>' => Some("&gt;"),
        '&' => Some("&amp;"),
        // Renderers find mentions and references after Markdown is gone: only a break inside the word
        // stops them.
        '@' => Some("@&#8203;"),
        // `https://…` and `www.…` become links without any markup.
        ':' if text[at..].starts_with("://") => Some(":&#8203;"),
        '.' if text[..at].to_ascii_lowercase().ends_with("www") => Some("&#8203;."),
        _ => None,
    }
}

fn has_digits_only(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_digit())
}

/// For text inside an HTML block in Markdown (`<summary>`), where backslashes have no effect but mentions,
/// references and bare links still become active.
///
/// ```
/// use expedite::report::escape::escape_markdown_html;
/// assert_eq!(escape_markdown_html("<b>*@ann*"), "&lt;b&gt;*@&#8203;ann*");
/// ```
#[must_use]
pub fn escape_markdown_html(text: &str) -> String {
    let text = escape_line(text);
    let mut out = String::with_capacity(text.len() + 16);
    for (at, c) in text.char_indices() {
        match (find_escape(&text, at, c), c) {
            (Some(still), _) => out.push_str(still),
            (None, '#') => out.push_str("#&#8203;"),
            (None, c) => out.push(c),
        }
    }
    out
}

/// A name or path as code inside Markdown, also in a table's cell: an HTML element, because a code span
/// cannot hold every text.
///
/// ```
/// use expedite::report::escape::format_markdown_code;
/// assert_eq!(format_markdown_code("a`|*b"), "<code>a&#96;&#124;&#42;b</code>");
/// ```
#[must_use]
pub fn format_markdown_code(text: &str) -> String {
    let mut out = String::from("<code>");
    for c in escape_line(text).chars() {
        match c {
            '-' | '.' | '/' | ':' | ' ' | ',' => out.push(c),
            c if c.is_ascii_punctuation() => {
                let _ = write!(out, "&#{};", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push_str("</code>");
    out
}

/// For the text or a quoted attribute of an HTML page.
///
/// ```
/// use expedite::report::escape::escape_html;
/// assert_eq!(escape_html("\"><script>'&"), "&quot;&gt;&lt;script&gt;&#39;&amp;");
/// ```
#[must_use]
pub fn escape_html(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    for c in escape_line(text).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

/// For the message of a GitHub workflow command: line breaks survive as `%0A`, nothing else of the
/// text's own acts.
///
/// ```
/// use expedite::report::escape::escape_workflow_data;
/// assert_eq!(escape_workflow_data("50%\n::error::x"), "50%25%0A::error::x");
/// ```
#[must_use]
pub fn escape_workflow_data(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match c {
            '%' => out.push_str("%25"),
            '\r' => out.push_str("%0D"),
            '\n' => out.push_str("%0A"),
            c => push_visibly(&mut out, c),
        }
    }
    out
}

/// For a property (`file=`, `title=`) of a GitHub workflow command.
///
/// ```
/// use expedite::report::escape::escape_workflow_property;
/// assert_eq!(escape_workflow_property("a,b:c"), "a%2Cb%3Ac");
/// ```
#[must_use]
pub fn escape_workflow_property(text: &str) -> String {
    escape_workflow_data(text).replace(':', "%3A").replace(',', "%2C")
}

/// For a log that a GitHub runner reads: no line of `text` is a workflow command. The runner takes
/// `::name::` at the start of a line (spaces before it aside) and the older `##[name]` anywhere in it.
///
/// ```
/// use expedite::report::escape::escape_workflow_log;
/// assert_eq!(escape_workflow_log("  ::add-mask::a\nx ##[error]b\n"), "  : :add-mask::a\nx # #[error]b\n");
/// ```
#[must_use]
pub fn escape_workflow_log(text: &str) -> Cow<'_, str> {
    if !text.contains("::") && !text.contains("##[") {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 8);
    for piece in text.split_inclusive('\n') {
        let body = piece.trim_start();
        out.push_str(&piece[..piece.len() - body.len()]);
        let body = match body.strip_prefix("::") {
            Some(rest) => {
                out.push_str(": :");
                rest
            }
            None => body,
        };
        out.push_str(&body.replace("##[", "# #["));
    }
    Cow::Owned(out)
}

/// For JSON, as it is printed: hidden characters and the older workflow commands (`##[…]`) are escaped inside
/// its strings. The parsed value is the same.
#[must_use]
pub fn escape_json(json: &str) -> Cow<'_, str> {
    let hidden = |c: char| c != '\n' && is_hidden(c);
    if !json.contains("##[") && !json.chars().any(hidden) {
        return Cow::Borrowed(json);
    }
    let mut out = String::with_capacity(json.len() + 16);
    for c in json.replace("##[", "#\\u0023[").chars() {
        if hidden(c) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                let _ = write!(out, "\\u{unit:04x}");
            }
        } else {
            out.push(c);
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn nothing_steers_a_terminal() {
        assert_eq!(escape_line("\u{1b}]0;title\u{7}"), "\\u{1b}]0;title\\u{7}");
        assert_eq!(escape_line("a\u{9b}31m"), "a\\u{9b}31m");
        assert_eq!(escape_line("evil\u{202e}txt.exe"), "evil\\u{202e}txt.exe");
        assert_eq!(escape_line("ad\u{200b}min\u{feff}"), "ad\\u{200b}min\\u{feff}");
        assert_eq!(escape_line("a\r\n\r\nb\tc\n"), "a b c");
        assert_eq!(escape_line("tag\u{e0041}"), "tag\\u{e0041}");
        assert_eq!(escape_line("nul\0"), "nul\\u{0}");
    }

    #[test]
    fn widths_are_those_of_a_terminal() {
        assert_eq!(measure_width("価格"), 4);
        assert_eq!(truncate_text("価格", 3), "価…");
        assert_eq!(truncate_text("価格", 1), "…");
        assert_eq!(truncate_text("価格", 0), "");
        assert_eq!(truncate_text("e\u{301}te\u{301}", 3), "e\u{301}te\u{301}");
    }

    #[test]
    fn markdown_has_no_life_of_its_own() {
        assert_eq!(escape_markdown("# title"), "\\#&#8203; title");
        assert_eq!(escape_markdown("- item"), "\\- item");
        assert_eq!(escape_markdown("12. item"), "12\\. item");
        assert_eq!(escape_markdown("see https://evil.example/x"), "see https:&#8203;//evil.example/x");
        assert_eq!(escape_markdown("WWW.evil.example"), "WWW&#8203;.evil.example");
        assert_eq!(escape_markdown("![x](y)"), "\\!\\[x\\]\\(y\\)");
        assert_eq!(escape_markdown("a\n\n| b |"), "a \\| b \\|");
        assert_eq!(escape_markdown("```\n</details>"), "\\`\\`\\` &lt;/details&gt;");
    }

    #[test]
    fn a_carriage_return_starts_no_command() {
        // The runner splits at line feeds alone; `line` has removed bare carriage returns before.
        assert_eq!(escape_workflow_log(&escape_line("x\r::error::y")), "x ::error::y");
        assert_eq!(escape_workflow_log("\u{a0}::error::y"), "\u{a0}: :error::y");
    }

    proptest! {
        #[test]
        fn no_line_holds_a_hidden_character(text in any::<String>()) {
            prop_assert!(!escape_line(&text).chars().any(is_hidden));
            prop_assert!(!escape_workflow_data(&text).chars().any(is_hidden));
        }

        #[test]
        fn a_cut_text_fits(text in any::<String>(), columns in 0_usize..40) {
            prop_assert!(measure_width(&truncate_text(&escape_line(&text), columns)) <= columns);
        }

        #[test]
        fn no_log_line_is_a_command(text in "[ \n\t:#\\[\\]a-z]{0,40}") {
            let log = escape_workflow_log(&text);
            prop_assert!(log.lines().all(|l| !l.trim_start().starts_with("::") && !l.contains("##[")), "{log}");
        }

        #[test]
        fn no_angle_bracket_survives_in_pages(text in any::<String>()) {
            prop_assert!(!escape_html(&text).contains(['<', '>', '"', '\'']));
            prop_assert!(!escape_markdown(&text).contains(['<', '>']));
            prop_assert!(!escape_markdown_html(&text).contains(['<', '>']));
            let code = format_markdown_code(&text);
            prop_assert!(!code["<code>".len()..code.len() - "</code>".len()].contains(['<', '>', '`', '|']));
        }

        #[test]
        fn json_means_the_same(text in "(\\PC|[#\\[a\u{7f}\u{9b}\u{202e}\u{e0041}\n]){0,12}") {
            let written = serde_json::to_string(&text).unwrap();
            let shown = escape_json(&written);
            prop_assert!(!shown.contains("##[") && !shown.chars().any(is_hidden), "{shown}");
            prop_assert_eq!(serde_json::from_str::<String>(&shown).unwrap(), text);
        }
    }
}
