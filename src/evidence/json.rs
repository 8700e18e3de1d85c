//! Strict JSON for signed evidence: one value in UTF-8, no repeated name in any object, nested at most 64 levels deep.
//! Two readers of such bytes always agree on what was signed.
//!
//! The check reads the bytes once without building anything; afterwards ordinary serde types read the same bytes. They
//! match names by exact case and ignore unknown members.

use serde::de::{Deserialize, DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use std::collections::HashSet;
use std::fmt;

/// Deepest nesting that is read.
pub const DEPTH: usize = 64;

/// Reads `bytes` as a `T`, after the strict check.
///
/// # Errors
/// Says what is wrong and where: not JSON, a repeated name, too deep, text after the value, or not a `T`.
///
/// ```
/// use expedite::evidence::json::parse_strict;
/// assert_eq!(parse_strict::<u8>(b" 7 "), Ok(7));
/// assert!(parse_strict::<serde_json::Value>(br#"{"a":1,"b":{"c":1,"c":2}}"#).unwrap_err().contains("\"c\" twice"));
/// assert!(parse_strict::<serde_json::Value>(br#"{} {}"#).is_err());
/// ```
pub fn parse_strict<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T, String> {
    check_strict(bytes)?;
    serde_json::from_slice(bytes).map_err(|e| e.to_string())
}

/// Runs only the check.
///
/// # Errors
/// As [`parse_strict`], without the type.
pub fn check_strict(bytes: &[u8]) -> Result<(), String> {
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    NestingLevel(1).deserialize(&mut reader).and_then(|()| reader.end()).map_err(|e| e.to_string())
}

/// One value at this depth of nesting.
#[derive(Clone, Copy)]
struct NestingLevel(usize);

impl<'de> DeserializeSeed<'de> for NestingLevel {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl NestingLevel {
    fn enter_level<E: serde::de::Error>(self) -> Result<Self, E> {
        if self.0 > DEPTH {
            return Err(E::custom(format!("nested more than {DEPTH} levels deep")));
        }
        Ok(Self(self.0 + 1))
    }
}

impl<'de> Visitor<'de> for NestingLevel {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }
    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }
    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }
    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }
    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }
    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        let inner = self.enter_level()?;
        while seq.next_element_seed(inner)?.is_some() {}
        Ok(())
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let inner = self.enter_level()?;
        let mut seen = HashSet::new();
        while let Some(name) = map.next_key::<String>()? {
            if seen.contains(&name) {
                return Err(A::Error::custom(format!("{name:?} twice in one object")));
            }
            seen.insert(name);
            map.next_value_seed(inner)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;

    #[test]
    fn one_value_without_a_name_twice() {
        for good in ["{}", "[]", "null", "1", "1e3", "-0", "\"\\u00e9\"", r#"{"a":{"x":1},"b":{"x":1}}"#] {
            assert_eq!(check_strict(good.as_bytes()), Ok(()), "{good}");
        }
        let bad = [
            "",
            "{",
            "{}x",
            "{} {}",
            "[1,]",
            "{'a':1}",
            "\u{feff}{}",
            "\"\\ud800\"",
            "1e999",
            "NaN",
            r#"{"a":1,"a":1}"#,
            r#"{"a":1,"\u0061":1}"#,
            r#"[{"b":[{"a":1,"b":2,"a":3}]}]"#,
        ];
        for bad in bad {
            assert!(check_strict(bad.as_bytes()).is_err(), "{bad}");
        }
        assert!(check_strict(b"\"\xff\"").is_err(), "not UTF-8");
    }

    #[test]
    fn names_keep_their_case() {
        #[derive(serde::Deserialize, Debug)]
        struct Lower {
            critical: u8,
        }
        assert_eq!(check_strict(br#"{"a":1,"A":2}"#), Ok(()), "different names");
        assert_eq!(parse_strict::<Lower>(br#"{"critical":1,"CRITICAL":2}"#).unwrap().critical, 1);
        assert!(parse_strict::<Lower>(br#"{"CRITICAL":2}"#).is_err());
    }

    #[test]
    fn sixty_four_deep_and_no_deeper() {
        let nested = |n: usize| format!("{}{}", "[".repeat(n), "]".repeat(n));
        assert_eq!(check_strict(nested(DEPTH).as_bytes()), Ok(()));
        assert!(
            check_strict(nested(DEPTH + 1).as_bytes())
                .unwrap_err()
                .contains("nested more than 64 levels deep")
        );
        assert!(check_strict("[".repeat(1_000_000).as_bytes()).is_err(), "no stack overflow");
        let objects = format!("{}1{}", "{\"a\":".repeat(100), "}".repeat(100));
        assert!(check_strict(objects.as_bytes()).unwrap_err().contains("deep"));
    }
}
