//! Builds a commit message that people read and machines trust: foreign text in it can neither forge a
//! trailer nor switch the repository's CI off.

/// Longest subject, in characters; longer ones end in `…`.
const SUBJECT: usize = 72;

/// Longest line of the body, in characters.
const LINE: usize = 400;

/// Builds a message of a subject, lines of body and trailers (`Key: value`), in that order.
///
/// Control characters go, line ends become spaces: what was one line stays one line. CI markers such as
/// `[skip ci]` lose their brackets' force. Lines of the body are indented as a list, so that none of them
/// reads as a trailer; trailers are a paragraph of their own at the end. A trailer's key must be of ASCII
/// letters, digits and `-`; others are left out.
#[must_use]
pub fn build_message(subject: &str, lines: &[String], trailers: &[(String, String)]) -> String {
    let mut subject = cut_text(&tame_text(subject), SUBJECT);
    if subject.is_empty() {
        "Update".clone_into(&mut subject);
    }
    // A subject that begins with `#` would be dropped as a comment by tools that edit messages.
    let mut text = if subject.starts_with('#') { format!("({subject})") } else { subject };
    text.push('\n');
    let body: Vec<String> =
        lines.iter().map(|l| cut_text(&tame_text(l), LINE)).filter(|l| !l.is_empty()).collect();
    if !body.is_empty() {
        text.push('\n');
        for line in body {
            text.push_str("- ");
            text.push_str(&line);
            text.push('\n');
        }
    }
    let known = |key: &str| !key.is_empty() && key.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    let trailers: Vec<String> = trailers
        .iter()
        .filter(|(key, value)| known(key) && !tame_text(value).is_empty())
        .map(|(key, value)| format!("{key}: {}\n", tame_text(value)))
        .collect();
    if !trailers.is_empty() {
        text.push('\n');
        text.extend(trailers);
    }
    text
}

/// Text from elsewhere as one harmless line.
fn tame_text(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    for word in text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|w| !w.is_empty()) {
        if !kept.is_empty() {
            kept.push(' ');
        }
        kept.extend(word.chars().filter(|c| !is_invisible(*c)));
    }
    disarm_markers(kept.trim())
}

/// Characters that show nothing or turn the direction of what follows.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}' | '\u{ad}')
}

/// Words that switch CI off when they stand in brackets (GitHub, GitLab, Azure, CircleCI, Bitbucket,
/// Buildkite, Netlify), after any of `[skip `, `[no `, or before `skip]`.
const SWITCHES: [&str; 6] = ["skip", "no ci", "ci off", "noci", "no-ci", "actions-off"];

/// Turns the brackets of a marker into parentheses, and `***NO_CI***` and `skip-checks:` into text that
/// no CI knows.
fn disarm_markers(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(open) = rest.find('[') {
        let (before, from) = rest.split_at(open);
        out.push_str(before);
        let Some(close) = from.find(']') else {
            rest = from;
            break;
        };
        let (marker, after) = from.split_at(close + 1);
        let inside = &marker[1..close];
        let lower = inside.to_lowercase();
        if SWITCHES.iter().any(|s| lower.contains(s)) {
            out.push('(');
            out.push_str(&inside.replace('[', "("));
            out.push(')');
        } else {
            out.push_str(marker);
        }
        rest = after;
    }
    out.push_str(rest);
    replace_any_case(&replace_any_case(&out, "***no_ci***", "NO_CI"), "skip-checks:", "skip-checks")
}

/// Replaces `what` (ASCII, lower case) in any spelling.
fn replace_any_case(text: &str, what: &str, by: &str) -> String {
    let lower = text.to_ascii_lowercase();
    let mut out = String::with_capacity(text.len());
    let mut from = 0;
    while let Some(at) = lower[from..].find(what) {
        out.push_str(&text[from..from + at]);
        out.push_str(by);
        from += at + what.len();
    }
    out.push_str(&text[from..]);
    out
}

fn cut_text(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let kept: String = text.chars().take(most - 1).collect();
    format!("{}…", kept.trim_end())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;

    fn pair(key: &str, value: &str) -> (String, String) {
        (key.to_owned(), value.to_owned())
    }

    #[test]
    fn subject_lines_trailers() {
        let text = build_message(
            "Promote shop/podinfo to podinfo-d7ce0c46a686 in production",
            &["shop/podinfo: podinfo-1 to podinfo-2".to_owned()],
            &[pair("Preparation", "podinfo-2"), pair("Digest", "sha256:00")],
        );
        assert_eq!(
            text,
            "Promote shop/podinfo to podinfo-d7ce0c46a686 in production\n\n\
             - shop/podinfo: podinfo-1 to podinfo-2\n\nPreparation: podinfo-2\nDigest: sha256:00\n"
        );
    }

    #[test]
    fn b24_foreign_text_forges_nothing() {
        let foreign = format!(
            "[skip ci] [ci   SKIP] [No CI] ***NO_CI*** skip-checks: true\nApproved-by: someone\n\nDigest: sha256:ff\n\0\x1b[31m{}",
            "😀".repeat(512)
        );
        let text = build_message(
            &foreign,
            std::slice::from_ref(&foreign),
            &[pair("Digest", "sha256:00\nDigest: sha256:ee")],
        );
        let subject = text.lines().next().unwrap();
        assert!(subject.chars().count() <= SUBJECT);
        let lower = text.to_lowercase();
        for marker in ["[skip ci]", "[ci skip]", "[no ci]", "***no_ci***", "skip-checks:"] {
            assert!(!lower.contains(marker), "{marker} in {text}");
        }
        assert!(!text.contains(['\0', '\x1b']));
        let trailers = git2::message_trailers_strs(&text).unwrap();
        let found: Vec<_> = trailers.iter().collect();
        assert_eq!(found, [("Digest", "sha256:00 Digest: sha256:ee")]);
    }

    #[test]
    fn without_trailers_of_ours_none_is_read() {
        let text = build_message("a", &["Approved-by: someone".to_owned()], &[pair("Bad key\n", "x")]);
        assert_eq!(git2::message_trailers_strs(&text).unwrap().iter().count(), 0, "{text}");
        let only = build_message("Digest: sha256:ff", &[], &[]);
        assert_eq!(git2::message_trailers_strs(&only).unwrap().iter().count(), 0);
        assert_eq!(build_message("\n", &[], &[]), "Update\n");
        assert_eq!(build_message("# a", &[], &[]), "(# a)\n");
    }

    #[test]
    fn plain_brackets_stay() {
        assert_eq!(build_message("Fix list[0] and [x]", &[], &[]), "Fix list[0] and [x]\n");
        assert_eq!(build_message("open [skip", &[], &[]), "open [skip\n");
    }
}
