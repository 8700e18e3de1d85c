//! The tokens that represent values in a template's output, and its parsed form with a slot for each.

use kube_yaml::Error;
use kube_yaml::node::{Node, Style, Value as Tree};
use serde_json::{Map, Value as Json};

pub(super) const OPEN: char = '\u{E000}';
const CLOSE: char = '\u{E001}';
/// Digit 0 of a token's number; no ASCII digits, so that no filter with ordinary arguments can change one.
const ZERO: u32 = 0xE010;

/// Whether a character may occur only in tokens.
pub(super) fn is_reserved(c: char) -> bool {
    (OPEN..='\u{E019}').contains(&c)
}

/// The token of the value with this number.
pub(super) fn format_token(number: usize) -> String {
    let mut token = String::from(OPEN);
    for digit in number.to_string().bytes() {
        token.extend(char::from_u32(ZERO + u32::from(digit - b'0')));
    }
    token.push(CLOSE);
    token
}

/// A parsed output with slots for the values.
#[derive(Debug)]
pub(super) enum OutputShape {
    Fixed(Json),
    /// A bare scalar that is one value and nothing else: it keeps its type.
    Slot(usize),
    Text(Vec<ScalarPart>),
    Sequence(Vec<OutputShape>),
    Mapping(Vec<(Vec<ScalarPart>, OutputShape)>),
}

#[derive(Debug)]
pub(super) enum ScalarPart {
    Text(String),
    Slot(usize),
}

impl OutputShape {
    /// The parsed output.
    ///
    /// # Errors
    /// It has a tag, or a token that a filter broke.
    pub(super) fn from_node(node: &Node) -> Result<Self, Error> {
        let parts = |text: &str| {
            let cause = "has a value that was captured by a macro or block and then broken by a filter";
            ScalarPart::split_scalar(text).ok_or_else(|| Error::new("template", node.at, cause))
        };
        Ok(match &node.value {
            Tree::Scalar(scalar) if scalar.style == Style::Tagged => {
                return Err(Error::new("template", node.at, "has a tag (!…), which is not supported"));
            }
            Tree::Scalar(scalar) => match parts(&scalar.text)?.as_slice() {
                [] | [ScalarPart::Text(_)] => Self::Fixed(node.to_json()),
                [ScalarPart::Slot(number)] if scalar.style == Style::Plain => Self::Slot(*number),
                _ => Self::Text(parts(&scalar.text)?),
            },
            Tree::Sequence(items) => {
                Self::Sequence(items.iter().map(Self::from_node).collect::<Result<_, _>>()?)
            }
            Tree::Mapping(pairs) => Self::Mapping(
                pairs
                    .iter()
                    .map(|pair| Ok((parts(&pair.key)?, Self::from_node(&pair.value)?)))
                    .collect::<Result<_, Error>>()?,
            ),
        })
    }

    /// The output with `values` in their slots.
    ///
    /// # Errors
    /// The key that occurs twice in one mapping.
    pub(super) fn fill_values(&self, values: &[Json]) -> Result<Json, String> {
        Ok(match self {
            Self::Fixed(value) => value.clone(),
            Self::Slot(number) => values.get(*number).cloned().unwrap_or_default(),
            Self::Text(parts) => Json::String(ScalarPart::join_parts(parts, values)),
            Self::Sequence(items) => {
                Json::Array(items.iter().map(|i| i.fill_values(values)).collect::<Result<_, _>>()?)
            }
            Self::Mapping(entries) => {
                let mut map = Map::with_capacity(entries.len());
                for (key, value) in entries {
                    let key = ScalarPart::join_parts(key, values);
                    if map.contains_key(&key) {
                        return Err(key);
                    }
                    map.insert(key, value.fill_values(values)?);
                }
                Json::Object(map)
            }
        })
    }
}

impl ScalarPart {
    /// The text and tokens of a scalar; `None` where a token is broken.
    fn split_scalar(text: &str) -> Option<Vec<Self>> {
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some(at) = rest.find(is_reserved) {
            if at > 0 {
                parts.push(Self::Text(rest[..at].to_owned()));
            }
            let (digits, behind) = rest[at..].strip_prefix(OPEN)?.split_once(CLOSE)?;
            let number = digits.chars().try_fold(0_usize, |n, c| {
                let digit = u32::from(c).checked_sub(ZERO).filter(|d| *d < 10)?;
                n.checked_mul(10)?.checked_add(digit as usize)
            })?;
            parts.push(Self::Slot(number));
            rest = behind;
        }
        if !rest.is_empty() {
            parts.push(Self::Text(rest.to_owned()));
        }
        Some(parts)
    }

    fn join_parts(parts: &[Self], values: &[Json]) -> String {
        parts.iter().fold(String::new(), |mut text, part| {
            match part {
                Self::Text(fixed) => text.push_str(fixed),
                Self::Slot(number) => match values.get(*number) {
                    Some(Json::String(value)) => text.push_str(value),
                    Some(value) => text.push_str(&value.to_string()),
                    None => {}
                },
            }
            text
        })
    }
}
