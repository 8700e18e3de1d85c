//! Turns a tree into a typed value: exact text, plain causes, the field's path, and every unknown key reported.
//!
//! A scalar gives a text field exactly its characters, even if they look like a number; a bool is an unquoted `true`
//! or `false`, an integer unquoted decimal digits. A key of a struct with a null value counts as absent. Unknown keys
//! never fail here: they are collected, and the caller decides what they mean.

use crate::node::{Node, Pair, Style, Value, parse_integer};
use crate::spelling::find_nearest;
use crate::{Error, Position};
use serde::de::{self, DeserializeOwned, DeserializeSeed, IntoDeserializer, Visitor};
use std::cell::RefCell;
use std::fmt::{self, Write as _};

/// A key that its struct does not know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unknown {
    /// The struct's path; empty at the top.
    pub path: String,
    /// The key.
    pub key: String,
    /// Where the key is.
    pub at: Position,
    /// Keys that the struct knows.
    pub known: &'static [&'static str],
}

/// Reads `node` as a `T`; keys that no struct knows are added to `unknown`.
///
/// # Errors
/// The first value that does not fit its field, with path and position.
pub fn from_node<T: DeserializeOwned>(node: &Node, unknown: &mut Vec<Unknown>) -> Result<T, Error> {
    from_node_at("", node, unknown)
}

/// Reads `node`, which is the value of the field `path`, as a `T`.
///
/// # Errors
/// As [`from_node`].
pub fn from_node_at<T: DeserializeOwned>(
    path: &str,
    node: &Node,
    unknown: &mut Vec<Unknown>,
) -> Result<T, Error> {
    let seen = RefCell::new(std::mem::take(unknown));
    let root = Path::Root(path);
    let de = De { node, path: &root, unknown: &seen };
    let read = T::deserialize(de).map_err(|fault| de.place_fault(fault).into_error(node.at));
    *unknown = seen.into_inner();
    read
}

/// The path from the root, kept as a chain on the stack and written as text only for a message.
enum Path<'p> {
    Root(&'p str),
    Key(&'p Path<'p>, &'p str),
    Index(&'p Path<'p>, usize),
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root(path) => f.write_str(path),
            Self::Key(parent, key) => {
                parent.fmt(f)?;
                let simple = key.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'));
                match (simple && !key.is_empty(), parent) {
                    (true, Path::Root("")) => f.write_str(key),
                    (true, _) => write!(f, ".{key}"),
                    (false, _) => write!(f, "[\"{key}\"]"),
                }
            }
            Self::Index(parent, index) => {
                parent.fmt(f)?;
                write!(f, "[{index}]")
            }
        }
    }
}

/// An error on its way up; the innermost value gives it its position.
#[derive(Debug)]
struct Fault {
    code: &'static str,
    cause: String,
    hint: Option<String>,
    place: Option<(Position, String)>,
    missing: Option<&'static str>,
}

impl Fault {
    fn new(code: &'static str, cause: impl Into<String>) -> Self {
        Self { code, cause: cause.into(), hint: None, place: None, missing: None }
    }

    fn into_error(self, fallback: Position) -> Error {
        let (at, path) = self.place.unwrap_or((fallback, String::new()));
        Error { code: self.code, at, path, cause: self.cause, hint: self.hint }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.cause)
    }
}
impl std::error::Error for Fault {}

impl de::Error for Fault {
    fn custom<T: fmt::Display>(cause: T) -> Self {
        Self::new("invalid-value", cause.to_string())
    }
    fn missing_field(field: &'static str) -> Self {
        Self { missing: Some(field), ..Self::new("missing-field", "is required and missing") }
    }
    fn invalid_type(found: de::Unexpected<'_>, wanted: &dyn de::Expected) -> Self {
        Self::new("wrong-type", format!("wanted {wanted}, found {found}"))
    }
    fn invalid_value(found: de::Unexpected<'_>, wanted: &dyn de::Expected) -> Self {
        Self::new("invalid-value", format!("wanted {wanted}, found {found}"))
    }
}

#[derive(Clone, Copy)]
struct De<'n, 'c> {
    node: &'n Node,
    path: &'c Path<'c>,
    unknown: &'c RefCell<Vec<Unknown>>,
}

impl De<'_, '_> {
    fn make_wrong_type(&self, what: &str) -> Fault {
        Fault::new("wrong-type", format!("wanted {what}, found {}", self.node.describe_kind()))
    }

    /// Adds this value's position to a fault without one.
    fn place_fault(&self, mut fault: Fault) -> Fault {
        if fault.place.is_none() {
            let mut at = self.node.at;
            let mut path = self.path.to_string();
            if let Some(field) = fault.missing {
                path = Path::Key(self.path, field).to_string();
                if let Some(null) = self.node.pairs().iter().find(|p| p.key == field) {
                    at = null.at;
                    fault.cause = "is required, and null counts as absent".into();
                }
            }
            fault.place = Some((at, path));
        }
        fault
    }

    /// The characters of a scalar that is valid as text.
    fn read_text(&self, what: &str) -> Result<&str, Fault> {
        match &self.node.value {
            Value::Scalar(s) if s.style == Style::Tagged => {
                Err(Fault::new("tag", "a tag has no meaning here; write the value without it"))
            }
            Value::Scalar(s) if !self.node.is_null() => Ok(&s.text),
            Value::Scalar(_) => {
                let mut fault = self.make_wrong_type(what);
                fault.hint = Some("quote it if you mean the text".into());
                Err(fault)
            }
            Value::Sequence(_) | Value::Mapping(_) => Err(self.make_wrong_type(what)),
        }
    }

    /// The characters of an unquoted scalar.
    fn read_bare(&self) -> Option<&str> {
        match &self.node.value {
            Value::Scalar(s) if s.style == Style::Plain => Some(&s.text),
            Value::Scalar(_) | Value::Sequence(_) | Value::Mapping(_) => None,
        }
    }

    fn read_whole(&self, low: i128, high: i128) -> Result<i128, Fault> {
        let number = self.read_bare().and_then(parse_integer).filter(|n| (low..=high).contains(n));
        number.ok_or_else(|| self.make_wrong_type(&format!("a whole number from {low} to {high}")))
    }
}

macro_rules! whole_numbers {
    ($($method:ident $visit:ident $type:ty;)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
            let number = self.read_whole(i128::from(<$type>::MIN), i128::from(<$type>::MAX));
            number
                .and_then(|n| <$type>::try_from(n).map_err(|_| self.make_wrong_type("a whole number")))
                .and_then(|n| visitor.$visit(n))
                .map_err(|fault| self.place_fault(fault))
        }
    )*};
}

impl<'de> de::Deserializer<'de> for De<'_, '_> {
    type Error = Fault;

    whole_numbers! {
        deserialize_i8 visit_i8 i8;
        deserialize_i16 visit_i16 i16;
        deserialize_i32 visit_i32 i32;
        deserialize_i64 visit_i64 i64;
        deserialize_u8 visit_u8 u8;
        deserialize_u16 visit_u16 u16;
        deserialize_u32 visit_u32 u32;
        deserialize_u64 visit_u64 u64;
    }

    /// For values without a fixed type; no typed field of Expedite uses this.
    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match &self.node.value {
            Value::Mapping(_) => self.deserialize_map(visitor),
            Value::Sequence(_) => self.deserialize_seq(visitor),
            Value::Scalar(_) if self.node.is_null() => visitor.visit_unit(),
            Value::Scalar(s) if s.style == Style::Plain => {
                match (s.text.as_str(), parse_integer(&s.text).map(i64::try_from)) {
                    ("true", _) => visitor.visit_bool(true),
                    ("false", _) => visitor.visit_bool(false),
                    (_, Some(Ok(number))) => visitor.visit_i64(number),
                    (text, _) => visitor.visit_str(text),
                }
            }
            Value::Scalar(s) => visitor.visit_str(&s.text),
        }
        .map_err(|fault| self.place_fault(fault))
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        let read = match self.read_bare() {
            Some("true") => visitor.visit_bool(true),
            Some("false") => visitor.visit_bool(false),
            bare => {
                let mut fault = self.make_wrong_type("true or false");
                fault.hint = match bare.unwrap_or_default().to_ascii_lowercase().as_str() {
                    "yes" | "on" | "y" | "true" => Some("write true".into()),
                    "no" | "off" | "n" | "false" => Some("write false".into()),
                    _ => None,
                };
                Err(fault)
            }
        };
        read.map_err(|fault| self.place_fault(fault))
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        let decimal = |text: &&str| {
            text.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'-'))
                && text.bytes().any(|b| b.is_ascii_digit())
        };
        let number = self.read_bare().filter(decimal).and_then(|text| text.parse().ok());
        number
            .ok_or_else(|| self.make_wrong_type("a decimal number"))
            .and_then(|n: f64| visitor.visit_f64(n))
            .map_err(|fault| self.place_fault(fault))
    }

    fn deserialize_f32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        self.deserialize_f64(visitor)
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        self.read_text("text")
            .and_then(|text| visitor.visit_str(text))
            .map_err(|fault| self.place_fault(fault))
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        self.deserialize_str(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        if self.node.is_null() {
            visitor.visit_none()
        } else {
            visitor.visit_some(self).map_err(|fault| self.place_fault(fault))
        }
    }

    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        if self.node.is_null() {
            visitor.visit_unit()
        } else {
            Err(self.place_fault(self.make_wrong_type("null")))
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Fault> {
        visitor.visit_newtype_struct(self).map_err(|fault| self.place_fault(fault))
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        let Value::Sequence(items) = &self.node.value else {
            return Err(self.place_fault(self.make_wrong_type("a list")));
        };
        visitor.visit_seq(Items { de: self, items, next: 0 }).map_err(|fault| self.place_fault(fault))
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, _len: usize, visitor: V) -> Result<V::Value, Fault> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        let Value::Mapping(pairs) = &self.node.value else {
            return Err(self.place_fault(self.make_wrong_type("a mapping")));
        };
        visitor
            .visit_map(MappingEntries { de: self, pairs, value: None })
            .map_err(|fault| self.place_fault(fault))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        let Value::Mapping(pairs) = &self.node.value else {
            return Err(self.place_fault(self.make_wrong_type("a mapping")));
        };
        visitor
            .visit_map(Fields { de: self, pairs, value: None, fields })
            .map_err(|fault| self.place_fault(fault))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        let list = variants.join(", ");
        let word = self.read_text(&format!("one of {list}")).and_then(|word| {
            if variants.contains(&word) {
                return Ok(word);
            }
            let mut fault = self.make_wrong_type(&format!("one of {list}"));
            fault.code = "invalid-value";
            fault.hint = find_nearest(word, variants).map(|near| format!("did you mean {near}?"));
            Err(fault)
        });
        let word: de::value::StrDeserializer<'_, Fault> =
            word.map_err(|fault| self.place_fault(fault))?.into_deserializer();
        visitor.visit_enum(word).map_err(|fault| self.place_fault(fault))
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_unit()
    }

    serde::forward_to_deserialize_any! {
        i128 u128 char bytes byte_buf unit_struct tuple_struct identifier
    }
}

struct Items<'n, 'c> {
    de: De<'n, 'c>,
    items: &'n [Node],
    next: usize,
}

impl<'de> de::SeqAccess<'de> for Items<'_, '_> {
    type Error = Fault;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Fault> {
        let Some(node) = self.items.get(self.next) else { return Ok(None) };
        let path = Path::Index(self.de.path, self.next);
        self.next += 1;
        let de = De { node, path: &path, unknown: self.de.unknown };
        seed.deserialize(de).map(Some).map_err(|fault| de.place_fault(fault))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.items.len() - self.next)
    }
}

/// Reads one pair's value under its key's path.
fn read_value<'de, T: DeserializeSeed<'de>>(de: De<'_, '_>, pair: &Pair, seed: T) -> Result<T::Value, Fault> {
    let path = Path::Key(de.path, &pair.key);
    let de = De { node: &pair.value, path: &path, unknown: de.unknown };
    seed.deserialize(de).map_err(|fault| de.place_fault(fault))
}

/// A mapping with free keys.
struct MappingEntries<'n, 'c> {
    de: De<'n, 'c>,
    pairs: &'n [Pair],
    value: Option<&'n Pair>,
}

impl<'de> de::MapAccess<'de> for MappingEntries<'_, '_> {
    type Error = Fault;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Fault> {
        let Some((pair, rest)) = self.pairs.split_first() else { return Ok(None) };
        self.pairs = rest;
        self.value = Some(pair);
        let key: de::value::StrDeserializer<'_, Fault> = pair.key.as_str().into_deserializer();
        seed.deserialize(key).map(Some).map_err(|mut fault| {
            fault.place = Some((pair.at, self.de.path.to_string()));
            fault
        })
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Fault> {
        let pair = self.value.take().ok_or_else(|| Fault::new("internal", "a value was read twice"))?;
        read_value(self.de, pair, seed)
    }
}

/// A mapping whose keys a struct knows.
struct Fields<'n, 'c> {
    de: De<'n, 'c>,
    pairs: &'n [Pair],
    value: Option<&'n Pair>,
    fields: &'static [&'static str],
}

impl<'de> de::MapAccess<'de> for Fields<'_, '_> {
    type Error = Fault;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Fault> {
        while let Some((pair, rest)) = self.pairs.split_first() {
            self.pairs = rest;
            if !self.fields.contains(&pair.key.as_str()) {
                let mut path = String::new();
                let _ = write!(path, "{}", self.de.path);
                self.de.unknown.borrow_mut().push(Unknown {
                    path,
                    key: pair.key.clone(),
                    at: pair.at,
                    known: self.fields,
                });
            } else if !pair.value.is_null() {
                self.value = Some(pair);
                let key: de::value::StrDeserializer<'_, Fault> = pair.key.as_str().into_deserializer();
                return seed.deserialize(key).map(Some);
            }
        }
        Ok(None)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Fault> {
        let pair = self.value.take().ok_or_else(|| Fault::new("internal", "a value was read twice"))?;
        read_value(self.de, pair, seed)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;
    use crate::node::locate_field;
    use crate::parse::parse_one;
    use serde::Deserialize;
    use serde::de::IgnoredAny;
    use std::collections::BTreeMap;

    #[derive(Debug, Default, PartialEq, Deserialize)]
    #[serde(rename_all = "camelCase", default)]
    struct Thing {
        text: String,
        list: Vec<String>,
        labels: BTreeMap<String, String>,
        flag: bool,
        count: Option<u32>,
        mode: Option<Mode>,
        inner: Vec<Inner>,
        #[serde(skip_serializing)]
        any: Option<IgnoredAny>,
    }
    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Inner {
        name: String,
        soak: Option<Span>,
    }
    /// A type that checks its own text, as durations and names do.
    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(try_from = "String")]
    struct Span(String);
    impl TryFrom<String> for Span {
        type Error = String;
        fn try_from(text: String) -> Result<Self, String> {
            match text.ends_with(['h', 'd']) {
                true => Ok(Self(text)),
                false => Err(format!("{text:?} is not a duration: a unit is missing")),
            }
        }
    }
    #[derive(Debug, PartialEq, Deserialize)]
    enum Mode {
        Manual,
        Automatic,
    }

    fn read(text: &str) -> Result<Thing, String> {
        let mut unknown = Vec::new();
        from_node(&parse_one(text).unwrap(), &mut unknown).map_err(|e| {
            let hint = e.hint.as_deref().map(|h| format!(" ({h})")).unwrap_or_default();
            format!("{e}{hint}")
        })
    }

    #[test]
    fn text_fields_get_the_characters() {
        for text in [
            "1.10", "012e4", "680841e1", "0x1F", "1_000", "no", "on", "y", "true", ".5", "0o7", "1e3",
            "12:30:45",
        ] {
            assert_eq!(read(&format!("text: {text}")).unwrap().text, text);
            assert_eq!(read(&format!("labels: {{a: {text}}}")).unwrap().labels["a"], text);
            assert_eq!(read(&format!("{{\"list\": [{text}]}}")).unwrap().list, [text]);
        }
        assert_eq!(read("text: |\n  a\n  b\n").unwrap().text, "a\nb\n");
        assert_eq!(read("text: 'null'").unwrap().text, "null");
    }

    #[test]
    fn null_is_absent_in_a_struct_and_wrong_elsewhere() {
        assert_eq!(
            read("text: null\nlist: ~\ninner:\nlabels: null\nflag:\ncount: Null\nmode:\n").unwrap(),
            Thing::default()
        );
        assert_eq!(
            read("list: [a, null]").unwrap_err(),
            "1:11: list[1]: wanted text, found null (quote it if you mean the text)"
        );
        assert_eq!(
            read("labels: {a.b/c: }").unwrap_err().split(" (").next().unwrap(),
            "1:15: labels[\"a.b/c\"]: wanted text, found null"
        );
        assert_eq!(
            read("inner:\n- name: null").unwrap_err(),
            "2:3: inner[0].name: is required, and null counts as absent"
        );
        assert_eq!(read("inner:\n- {soak: 1h}").unwrap_err(), "2:3: inner[0].name: is required and missing");
    }

    #[test]
    fn wrong_types_name_field_and_place() {
        let cases = [
            ("text: {a: 1}", "1:7: text: wanted text, found a mapping"),
            ("text: [a]", "1:7: text: wanted text, found a list"),
            ("list: a", "1:7: list: wanted a list, found a"),
            (
                "inner:\n- name: a\n  soak: 86400",
                "3:9: inner[0].soak: \"86400\" is not a duration: a unit is missing",
            ),
            ("flag: yes", "1:7: flag: wanted true or false, found yes (write true)"),
            ("flag: \"true\"", "1:7: flag: wanted true or false, found the text \"true\""),
            ("flag: Off", "1:7: flag: wanted true or false, found Off (write false)"),
            ("count: 1.0", "1:8: count: wanted a whole number from 0 to 4294967295, found 1.0"),
            ("count: -1", "1:8: count: wanted a whole number from 0 to 4294967295, found -1"),
            ("count: 010", "1:8: count: wanted a whole number from 0 to 4294967295, found 010"),
            ("count: '1'", "1:8: count: wanted a whole number from 0 to 4294967295, found the text \"1\""),
            (
                "mode: Automatc",
                "1:7: mode: wanted one of Manual, Automatic, found Automatc (did you mean Automatic?)",
            ),
            ("mode: {Manual: 1}", "1:7: mode: wanted one of Manual, Automatic, found a mapping"),
            ("text: !Ref a", "1:12: text: a tag has no meaning here; write the value without it"),
            ("[]", "1:1: wanted a mapping, found a list"),
        ];
        for (text, want) in cases {
            assert_eq!(read(text).unwrap_err(), want, "{text}");
        }
    }

    #[test]
    fn unknown_keys_are_collected() {
        let mut unknown = Vec::new();
        let node = parse_one("text: a\ntxet: b\ninner:\n- {name: a, sok: 1}\nany: {what: ever, list: [1]}\n")
            .unwrap();
        from_node::<Thing>(&node, &mut unknown).unwrap();
        let met: Vec<_> =
            unknown.iter().map(|u| (u.path.as_str(), u.key.as_str(), u.at.line, u.at.column)).collect();
        assert_eq!(met, [("", "txet", 2, 1), ("inner[0]", "sok", 4, 13)]);
        assert_eq!(unknown[1].known, ["name", "soak"]);
    }

    #[test]
    fn paths_lead_back() {
        let node = parse_one("a:\n  b/c.d:\n  - x: 1\n  - x: 2\n").unwrap();
        let place = |path: &str| locate_field(&node, path).map(|p| (p.line, p.column));
        assert_eq!(place("a[\"b/c.d\"][1].x"), Some((4, 8)));
        assert_eq!(place("a[\"b/c.d\"][7].x"), Some((3, 5)), "the deepest that is there");
        assert_eq!(place("a"), Some((2, 3)));
        assert_eq!(place("z.y"), None);
        assert_eq!(place("a[b"), None);
    }

    #[test]
    fn json_keeps_what_a_status_holds() {
        let node =
            parse_one("a: 1\nb: '1'\nc: 1.10\nd: true\ne: null\nf: [012e4, 18446744073709551615]\ng: no\n")
                .unwrap();
        let want = serde_json::json!({"a": 1, "b": "1", "c": "1.10", "d": true, "e": null, "f": ["012e4", 18446744073709551615_u64], "g": "no"});
        assert_eq!(node.to_json(), want);
    }
}
