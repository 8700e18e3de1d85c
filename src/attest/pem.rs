//! PEM texts as they come out of CI variables: without their line breaks, with `\n` for them, or in base64.
//!
//! The text may be a secret: nothing here returns a part of it in a message.

use crate::evidence::envelope::decode_base64;

const BEGIN: &str = "-----BEGIN ";
const DASHES: &str = "-----";
/// Characters of the body on one line (RFC 7468, section 2).
const LINE: usize = 64;

/// Whether the text is meant to be a PEM key, in one of the forms that [`restore_lines`] reads.
#[must_use]
pub fn is_pem(text: &str) -> bool {
    text.contains(BEGIN) || decode_text(text).is_some()
}

/// The PEM text with its line breaks; `None`: it is not one.
///
/// ```
/// use expedite::attest::pem::restore_lines;
/// let whole = "-----BEGIN PRIVATE KEY-----\nQUJD\n-----END PRIVATE KEY-----\n";
/// assert_eq!(restore_lines(whole).as_deref(), Some(whole));
/// assert_eq!(restore_lines(&whole.replace('\n', "")).as_deref(), Some(whole));
/// assert_eq!(restore_lines(&whole.replace('\n', " ")).as_deref(), Some(whole));
/// assert_eq!(restore_lines(&whole.replace('\n', "\\n")).as_deref(), Some(whole));
/// assert_eq!(restore_lines("QUJD"), None);
/// ```
#[must_use]
pub fn restore_lines(text: &str) -> Option<String> {
    let text = unpack_text(text)?;
    // What is before and behind the blocks (a comment, another block) is left out: the first block counts.
    let after = &text[text.find(BEGIN)? + BEGIN.len()..];
    let (label, rest) = after.split_once(DASHES)?;
    let (body, _) = rest.split_once(&format!("-----END {label}{DASHES}"))?;
    let body: String = body.chars().filter(|c| !c.is_whitespace()).collect();
    let mut whole = format!("{BEGIN}{label}{DASHES}\n");
    let mut rest = body.as_str();
    while !rest.is_empty() {
        // A body is ASCII; another character is no base64, and the parser behind refuses the line.
        let end = rest.char_indices().nth(LINE).map_or(rest.len(), |(at, _)| at);
        whole.push_str(&rest[..end]);
        whole.push('\n');
        rest = &rest[end..];
    }
    whole.push_str(&format!("-----END {label}{DASHES}\n"));
    Some(whole)
}

/// The text with its first block's mark, out of base64 and with `\n` and `\r` as line breaks; `None`: it has none.
#[must_use]
pub fn unpack_text(text: &str) -> Option<String> {
    let text = if text.contains(BEGIN) { text.to_owned() } else { decode_text(text)? };
    Some(text.replace("\\r", "").replace("\\n", "\n"))
}

/// The label of the first block.
#[must_use]
pub fn find_label(text: &str) -> Option<&str> {
    let (label, _) = text[text.find(BEGIN)? + BEGIN.len()..].split_once(DASHES)?;
    Some(label)
}

/// Whether a label is made of words in capital letters, as all labels in use are: then it may be printed.
#[must_use]
pub fn is_known_style(label: &str) -> bool {
    label.len() <= 40 && label.bytes().all(|b| b.is_ascii_uppercase() || b == b' ')
}

/// The text that a base64 text stands for, where it is a PEM text.
fn decode_text(text: &str) -> Option<String> {
    let packed: String = text.chars().filter(|c| !c.is_whitespace()).collect();
    let decoded = String::from_utf8(decode_base64(&packed)?).ok()?;
    decoded.contains(BEGIN).then_some(decoded)
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::Engine as _;

    #[test]
    fn base64_of_the_file_is_read_in_any_wrapping() {
        let whole = format!("{BEGIN}PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n", "QUJD".repeat(16));
        let packed = base64::engine::general_purpose::STANDARD.encode(&whole);
        assert_eq!(restore_lines(&packed).as_deref(), Some(whole.as_str()));
        let wrapped: String =
            packed.as_bytes().chunks(20).map(|c| format!("{}\n", c.escape_ascii())).collect();
        assert_eq!(restore_lines(&wrapped).as_deref(), Some(whole.as_str()));
        assert!(is_pem(&packed) && is_pem(&whole) && !is_pem("keys/job.key"));
    }

    #[test]
    fn a_text_that_is_cut_is_not_a_key() {
        assert_eq!(restore_lines("-----BEGIN PRIVATE KEY-----QUJD"), None);
        assert_eq!(restore_lines("-----BEGIN PRIVATE KEY"), None);
        assert_eq!(restore_lines("-----BEGIN A-----QUJD-----END B-----"), None);
        assert_eq!(restore_lines(""), None);
    }

    #[test]
    fn only_labels_in_capital_letters_are_printed() {
        assert!(is_known_style("RSA PRIVATE KEY"));
        assert!(!is_known_style("PRIVATE KEY-----MIGHAgEA") && !is_known_style("MIGHagEA"));
    }
}
