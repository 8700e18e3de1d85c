//! The tree: the written values, with their characters and positions.

use crate::Position;

/// A value and its position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// What it is.
    pub value: Value,
    /// Where it begins; for the value of an alias, the position of the anchor's value.
    pub at: Position,
}

/// What a node is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// A single value.
    Scalar(Scalar),
    /// A list.
    Sequence(Vec<Node>),
    /// Keys and values in their order; keys are unique and merge keys are expanded.
    Mapping(Vec<Pair>),
}

/// A single value, exactly as written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scalar {
    /// Its characters, after escapes and folding.
    pub text: String,
    /// How it was written.
    pub style: Style,
}

/// How a scalar was written, as far as its meaning depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// Unquoted: may be a number, `true`, `null`.
    Plain,
    /// In quotes, as a block, or tagged `!!str`: text.
    Quoted,
    /// With a tag that has no meaning here (`!Ref`, `!!binary`).
    Tagged,
}

/// One key of a mapping.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pair {
    /// The key's characters.
    pub key: String,
    /// Where the key begins.
    pub at: Position,
    /// Its value.
    pub value: Node,
}

impl Node {
    /// The value of `key`, if this is a mapping that has it.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Node> {
        self.pairs().iter().find(|p| p.key == key).map(|p| &p.value)
    }

    /// The value at the end of a path of keys.
    #[must_use]
    pub fn find_value(&self, keys: &[&str]) -> Option<&Node> {
        keys.iter().try_fold(self, |node, key| node.get(key))
    }

    /// The exact characters of a scalar that is not null, whatever their type looks like.
    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        match &self.value {
            Value::Scalar(s) if !self.is_null() => Some(&s.text),
            Value::Scalar(_) | Value::Sequence(_) | Value::Mapping(_) => None,
        }
    }

    /// The pairs of a mapping; none for other nodes.
    #[must_use]
    pub fn pairs(&self) -> &[Pair] {
        match &self.value {
            Value::Mapping(pairs) => pairs,
            Value::Scalar(_) | Value::Sequence(_) => &[],
        }
    }

    /// The items of a sequence; none for other nodes.
    #[must_use]
    pub fn items(&self) -> &[Node] {
        match &self.value {
            Value::Sequence(items) => items,
            Value::Scalar(_) | Value::Mapping(_) => &[],
        }
    }

    /// Whether this is an unquoted `null`, `~` or an empty value.
    #[must_use]
    pub fn is_null(&self) -> bool {
        match &self.value {
            Value::Scalar(s) => {
                s.style == Style::Plain && matches!(s.text.as_str(), "" | "~" | "null" | "Null" | "NULL")
            }
            Value::Sequence(_) | Value::Mapping(_) => false,
        }
    }

    /// Description for a message: `a mapping`, `the text "yes"`.
    #[must_use]
    pub fn describe_kind(&self) -> String {
        match &self.value {
            Value::Mapping(_) => "a mapping".into(),
            Value::Sequence(_) => "a list".into(),
            Value::Scalar(_) if self.is_null() => "null".into(),
            Value::Scalar(s) => {
                let mut cut: String = s.text.chars().take(60).collect();
                if cut.len() < s.text.len() {
                    cut.push('…');
                }
                match s.style {
                    Style::Quoted => format!("the text {cut:?}"),
                    Style::Plain => cut,
                    Style::Tagged => format!("a tagged value {cut:?}"),
                }
            }
        }
    }

    /// As JSON: an unquoted `true` or `false` is a bool, an unquoted null is null, an unquoted decimal integer in
    /// canonical form is a number, anything else is a string with exactly its characters.
    #[must_use]
    pub fn to_json(&self) -> serde_json::Value {
        match &self.value {
            Value::Mapping(pairs) => {
                serde_json::Value::Object(pairs.iter().map(|p| (p.key.clone(), p.value.to_json())).collect())
            }
            Value::Sequence(items) => serde_json::Value::Array(items.iter().map(Node::to_json).collect()),
            Value::Scalar(_) if self.is_null() => serde_json::Value::Null,
            Value::Scalar(s) if s.style == Style::Plain => match (s.text.as_str(), parse_integer(&s.text)) {
                ("true", _) => true.into(),
                ("false", _) => false.into(),
                (_, Some(number)) => match (i64::try_from(number), u64::try_from(number)) {
                    (Ok(n), _) => n.into(),
                    (_, Ok(n)) => n.into(),
                    _ => s.text.clone().into(),
                },
                _ => s.text.clone().into(),
            },
            Value::Scalar(s) => s.text.clone().into(),
        }
    }
}

/// A decimal integer in canonical form: no `+`, no leading zero, no `_`, no base.
#[must_use]
pub fn parse_integer(text: &str) -> Option<i128> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let canonical = !digits.is_empty()
        && digits.bytes().all(|b| b.is_ascii_digit())
        && (digits == "0" && text == "0" || !digits.starts_with('0'));
    if canonical { text.parse().ok() } else { None }
}

/// One step of a field path.
#[derive(Debug, Clone, PartialEq, Eq)]
enum FieldStep {
    Key(String),
    Index(usize),
}

/// Where the value of `path` (`spec.promotion.upstream[0].soak`, `metadata.labels["a.b/c"]`) begins; if the path
/// continues below the written values, the deepest existing value on it. `None` if the text is not a path or no
/// part of it exists.
#[must_use]
pub fn locate_field(node: &Node, path: &str) -> Option<Position> {
    let mut here = node;
    let mut found = None;
    for step in parse_steps(path)? {
        let next = match &step {
            FieldStep::Key(key) => here.get(key),
            FieldStep::Index(index) => here.items().get(*index),
        };
        match next {
            Some(next) => {
                found = Some(next.at);
                here = next;
            }
            None => break,
        }
    }
    found
}

fn parse_steps(path: &str) -> Option<Vec<FieldStep>> {
    let mut steps = Vec::new();
    let mut rest = path;
    while !rest.is_empty() {
        if let Some(quoted) = rest.strip_prefix("[\"") {
            let end = quoted.find("\"]")?;
            steps.push(FieldStep::Key(quoted[..end].to_owned()));
            rest = &quoted[end + 2..];
        } else if let Some(index) = rest.strip_prefix('[') {
            let end = index.find(']')?;
            steps.push(FieldStep::Index(index[..end].parse().ok()?));
            rest = &index[end + 1..];
        } else {
            rest = rest.strip_prefix('.').unwrap_or(rest);
            let end = rest.find(['.', '[']).unwrap_or(rest.len());
            if end == 0 {
                return None;
            }
            steps.push(FieldStep::Key(rest[..end].to_owned()));
            rest = &rest[end..];
        }
    }
    Some(steps)
}
