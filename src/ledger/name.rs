//! Names of files in an Order's folder below `records/`.

use crate::model::id::{Digest, OrderRef};
use std::fmt;

/// `past.json`: the fold of all statements.
pub const PAST: &str = "past.json";
/// Most statements that stay in the tree.
pub const KEPT: usize = 64;
/// Largest file that is read, bytes.
pub const FILE_CAP: usize = 64 << 10;

/// The name of a statement's file: its sequence and the first 16 hex digits of its hash.
///
/// ```
/// use expedite::ledger::name::FileName;
/// let name = FileName::parse("000012-00ff00ff00ff00ff.json").unwrap();
/// assert_eq!((name.sequence, name.to_string().as_str()), (12, "000012-00ff00ff00ff00ff.json"));
/// assert_eq!(FileName::parse("12-00ff00ff00ff00ff.json"), None);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct FileName {
    /// Its place in the chain; the first is 1.
    pub sequence: u64,
    /// The first 16 hex digits of the statement's hash.
    pub short: String,
}

impl FileName {
    /// The name of the statement with this hash.
    #[must_use]
    pub fn new(sequence: u64, hash: &Digest) -> Self {
        Self { sequence, short: hash.format_hex()[..16].to_owned() }
    }

    /// Reads a name exactly as it is written; `None`: it is another file's.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        let (digits, short) = name.strip_suffix(".json")?.split_once('-')?;
        let is_hex = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
        if !digits.bytes().all(|b| b.is_ascii_digit()) || short.len() != 16 || !short.bytes().all(is_hex) {
            return None;
        }
        let parsed = Self { sequence: digits.parse().ok()?, short: short.to_owned() };
        (parsed.sequence > 0 && parsed.to_string() == name).then_some(parsed)
    }

    /// Whether it is the name of the statement with this hash.
    #[must_use]
    pub fn is_of(&self, hash: &Digest) -> bool {
        hash.format_hex().starts_with(&self.short)
    }
}

impl fmt::Display for FileName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:06}-{}.json", self.sequence, self.short)
    }
}

/// The folder of an Order.
#[must_use]
pub fn format_folder(order: &OrderRef) -> String {
    format!("records/{}/{}", order.namespace, order.name)
}

/// The path of a file in an Order's folder.
#[must_use]
pub fn format_path(order: &OrderRef, name: &str) -> String {
    format!("{}/{name}", format_folder(order))
}

/// The path at which the side reference keeps an Order's head.
#[must_use]
pub fn format_head_path(order: &OrderRef) -> String {
    format!("heads/{}/{}", order.namespace, order.name)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;

    #[test]
    fn names_are_read_only_as_they_are_written() {
        let hash = Digest::hash_bytes(b"statement");
        for sequence in [1, 999_999, 1_000_000] {
            let name = FileName::new(sequence, &hash);
            assert_eq!(FileName::parse(&name.to_string()), Some(name.clone()));
            assert!(name.is_of(&hash) && !name.is_of(&Digest::hash_bytes(b"other")));
        }
        for other in [
            "past.json",
            "000000-00ff00ff00ff00ff.json",
            "0000001-00ff00ff00ff00ff.json",
            "000001-00FF00ff00ff00ff.json",
            "000001-00ff00ff00ff00f.json",
            "+00001-00ff00ff00ff00ff.json",
            "000001-00ff00ff00ff00ff.yaml",
            "-00ff00ff00ff00ff.json",
        ] {
            assert_eq!(FileName::parse(other), None, "{other}");
        }
    }
}
