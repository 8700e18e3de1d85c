//! Edits of a Serving's text in place: the bytes that change are named by range, everything else stays.
//!
//! The result is parsed again by two parsers before it is used. It must not know why an edit is made.

use crate::error::{At, Failure, FailureKind};
use crate::render::status;
use kube_yaml::layout::{self, LayoutKind, LayoutNode};
use kube_yaml::{emit, parse};
use serde_json::{Map, Value};
use std::ops::Range;

/// Edits of one text, each a range and its new content, and the value that the result must parse to.
pub struct TextEdit<'a> {
    text: &'a str,
    path: &'a str,
    root: LayoutNode,
    wanted: Value,
    changes: Vec<(Range<usize>, String)>,
}

impl<'a> TextEdit<'a> {
    /// Parses a text; `path` is its name in messages.
    ///
    /// # Errors
    /// It is not a plain block mapping; the error names the line.
    pub fn parse(text: &'a str, path: &'a str) -> Result<Self, Failure> {
        let read = layout::parse_layout(text).map_err(|refused| {
            let at = At { file: path.to_owned(), line: Some(refused.line), column: None };
            Failure::new_input("cannot-edit", format!("it cannot be edited in place: {}", refused.why))
                .with_place(at)
        })?;
        let edit = Self { text, path, wanted: read.root.to_value(), root: read.root, changes: Vec::new() };
        edit.check_block(&edit.root, "")?;
        Ok(edit)
    }

    /// A mapping that can be edited by lines.
    fn check_block(&self, node: &LayoutNode, field: &str) -> Result<(), Failure> {
        let LayoutKind::Mapping { flow: false, entries } = &node.kind else {
            return Err(self.make_failure(
                node,
                field,
                "it must be a mapping in block style (one key per line)",
            ));
        };
        for (key, _) in entries {
            if !self.text[self.find_line_start(key.start)..key.start]
                .trim_start_matches('\u{feff}')
                .bytes()
                .all(|b| b == b' ')
            {
                return Err(self.make_failure(
                    key,
                    field,
                    "a key must be alone on its line, indented by spaces",
                ));
            }
        }
        Ok(())
    }

    fn make_failure(&self, node: &LayoutNode, field: &str, why: &str) -> Failure {
        let at = At { file: self.path.to_owned(), line: Some(node.line), column: None };
        let failure =
            Failure::new_input("cannot-edit", format!("it cannot be edited in place: {why}")).with_place(at);
        if field.is_empty() { failure } else { failure.with_field(field) }
    }

    fn find_spec(&self) -> Result<&LayoutNode, Failure> {
        let spec = self
            .root
            .find_entry("spec")
            .ok_or_else(|| self.make_failure(&self.root, "spec", "it has no spec"))?;
        self.check_block(&spec.1, "spec")?;
        Ok(&spec.1)
    }

    /// The value of `status` as written; an empty mapping where there is none.
    #[must_use]
    pub fn raw_status(&self) -> Value {
        match self.root.find_entry("status").map(|(_, node)| node.to_value()) {
            None | Some(Value::Null) => Value::Object(Map::new()),
            Some(raw) => raw,
        }
    }

    /// Sets `spec.preparationName`, where it differs.
    ///
    /// # Errors
    /// It is not written on one line.
    pub fn with_preparation(self, name: &str) -> Result<Self, Failure> {
        const FIELD: &str = "spec.preparationName";
        let written = self.root.find_entry("spec").and_then(|(_, spec)| spec.find_entry("preparationName"));
        // An absent key and null mean the same as "": nothing is requested.
        let found = match written {
            None => Some(""),
            Some((_, node)) if node.to_value().is_null() => Some(""),
            Some((_, node)) => node.text(),
        };
        if found == Some(name) {
            return Ok(self);
        }
        let spec = self.find_spec()?;
        let Some((key, value)) = spec.find_entry("preparationName") else {
            let Some((key, order)) = spec.find_entry("orderName") else {
                return Err(self.make_failure(spec, FIELD, "spec has no orderName to write it below"));
            };
            let at = self.find_line_end(order.end);
            let line = format!("{}preparationName: {}\n", " ".repeat(key.column), emit::format_scalar(name));
            return Ok(self.with_change(at..at, line, &["spec", "preparationName"], Value::from(name)));
        };
        if value.text().is_none() {
            return Err(self.make_failure(value, FIELD, "it must be a string"));
        }
        let written = &self.text[value.start..value.end];
        let range = if written.is_empty() {
            let Some(colon) = self.text[key.end..].find(':') else {
                return Err(self.make_failure(value, FIELD, "its colon is not found"));
            };
            let behind = key.end + colon + 1;
            behind..behind
        } else if written.contains('\n') || value.line != key.line {
            return Err(self.make_failure(value, FIELD, "it must be on the line of its key"));
        } else {
            value.start..value.end
        };
        let space = if range.is_empty() { " " } else { "" };
        let text = format!("{space}{}", emit::format_scalar(name));
        Ok(self.with_change(range, text, &["spec", "preparationName"], Value::from(name)))
    }

    /// Sets `spec.requested`, where it differs.
    ///
    /// # Errors
    /// `spec` is not written line by line.
    pub fn with_requested(self, value: Value) -> Result<Self, Failure> {
        let spec = self.find_spec()?;
        let range = match spec.find_entry("requested") {
            Some((_, found)) if found.to_value() == value => return Ok(self),
            Some((key, found)) => self.find_line_start(key.start)..self.find_line_end(found.end.max(key.end)),
            None => {
                let end = self.find_line_end(spec.end);
                end..end
            }
        };
        let column = spec.entries().first().map_or(2, |(key, _)| key.column);
        let mut text = String::new();
        emit::push_entry(&mut text, "requested", &value, column);
        Ok(self.with_change(range, text, &["spec", "requested"], value))
    }

    /// Replaces `status`, where it differs.
    #[must_use]
    pub fn with_status(self, status: Value) -> Self {
        let Some((key, old)) = self.root.find_entry("status") else {
            if status.as_object().is_none_or(Map::is_empty) {
                return self;
            }
            let end = self.find_line_end(self.root.end);
            let mut text = String::new();
            emit::push_entry(&mut text, "status", &status, 0);
            return self.with_change(end..end, text, &["status"], status);
        };
        if old.to_value() == status {
            return self;
        }
        let range = self.find_line_start(key.start)..self.find_line_end(old.end.max(key.end));
        let text = self.format_status(old, &status, range.end);
        self.with_change(range, text, &["status"], status)
    }

    /// `status:` with the text of everything in it that did not change.
    fn format_status(&self, old: &LayoutNode, status: &Value, end: usize) -> String {
        let mut text = String::new();
        match status {
            Value::Object(map) if !map.is_empty() && self.is_by_lines(old) => {
                text.push_str("status:\n");
                self.format_mapping(&mut text, old, map, end);
            }
            _ => emit::push_entry(&mut text, "status", status, 0),
        }
        text
    }

    /// The members of `map` at the column of the old ones, each as it was written where it is the same.
    fn format_mapping(&self, text: &mut String, old: &LayoutNode, map: &Map<String, Value>, end: usize) {
        let members = old.entries();
        let indent = members.first().map_or(2, |(key, _)| key.column);
        for (name, value) in map {
            let Some(i) = members.iter().position(|(key, _)| key.text() == Some(name)) else {
                emit::push_entry(text, name, value, indent);
                continue;
            };
            let (key, node) = &members[i];
            let upto = members.get(i + 1).map_or(end, |(next, _)| self.find_line_start(next.start));
            if &node.to_value() == value {
                text.push_str(&" ".repeat(indent));
                self.copy_range(text, key.start..upto);
                continue;
            }
            match value {
                Value::Object(map) if !map.is_empty() && self.is_by_lines(node) => {
                    text.push_str(&format!("{}{}:\n", " ".repeat(indent), emit::format_scalar(name)));
                    self.format_mapping(text, node, map, upto);
                }
                Value::Array(items) if !items.is_empty() => match self.find_item_starts(node) {
                    Some(starts) => {
                        text.push_str(&format!("{}{}:\n", " ".repeat(indent), emit::format_scalar(name)));
                        self.format_list(text, node, items, &starts, upto);
                    }
                    None => emit::push_entry(text, name, value, indent),
                },
                _ => emit::push_entry(text, name, value, indent),
            }
        }
    }

    /// The items at the column of the old ones, each as it was written where it is the same.
    fn format_list(
        &self,
        text: &mut String,
        node: &LayoutNode,
        items: &[Value],
        starts: &[usize],
        end: usize,
    ) {
        let LayoutKind::Sequence { items: old, .. } = &node.kind else { return };
        let dash = self.text[starts[0]..].bytes().take_while(|b| *b == b' ').count();
        let mut used = vec![false; old.len()];
        let mut take = |wanted: &dyn Fn(&Value) -> bool| {
            let found = (0..old.len()).find(|&i| !used[i] && wanted(&old[i].to_value()))?;
            used[found] = true;
            Some(found)
        };
        let equal: Vec<Option<usize>> = items.iter().map(|item| take(&|o| o == item)).collect();
        for (item, equal) in items.iter().zip(equal) {
            let upto = |i: usize| starts.get(i + 1).copied().unwrap_or(end);
            if let Some(i) = equal {
                self.copy_range(text, starts[i]..upto(i));
                continue;
            }
            match (item, take(&|o| o.is_object() && status::is_same_thing(o, item))) {
                (Value::Object(map), Some(i)) if self.is_by_lines(&old[i]) => {
                    let start = text.len();
                    self.format_mapping(text, &old[i], map, upto(i));
                    text.replace_range(start + dash..=start + dash, "-");
                }
                _ => emit::push_element(text, item, dash),
            }
        }
    }

    /// Whether a node is a block mapping with each key first on its line (a list item's behind its dash).
    fn is_by_lines(&self, node: &LayoutNode) -> bool {
        let LayoutKind::Mapping { flow: false, entries } = &node.kind else { return false };
        entries.iter().enumerate().all(|(i, (key, _))| {
            let before = self.text[self.find_line_start(key.start)..key.start].trim_start_matches(' ');
            before.is_empty()
                || (i == 0 && before.strip_prefix('-').is_some_and(|b| b.bytes().all(|b| b == b' ')))
        })
    }

    /// Where the lines of a block sequence's items begin; `None` where they cannot be taken line by line.
    fn find_item_starts(&self, node: &LayoutNode) -> Option<Vec<usize>> {
        let LayoutKind::Sequence { flow: false, items } = &node.kind else { return None };
        let starts: Option<Vec<usize>> = items
            .iter()
            .map(|item| {
                let start = self.find_line_start(item.start);
                self.text[start..item.start].trim_start_matches(' ').strip_prefix('-')?;
                Some(start)
            })
            .collect();
        starts.filter(|s| !s.is_empty())
    }

    fn copy_range(&self, text: &mut String, range: Range<usize>) {
        text.push_str(&self.text[range].replace("\r\n", "\n"));
        if !text.ends_with('\n') {
            text.push('\n');
        }
    }

    fn find_line_start(&self, at: usize) -> usize {
        self.text[..at].rfind('\n').map_or(0, |i| i + 1)
    }

    /// Behind the newline of the line that holds the byte before `at`.
    fn find_line_end(&self, at: usize) -> usize {
        if at > 0 && self.text[..at].ends_with('\n') {
            return at;
        }
        self.text[at..].find('\n').map_or(self.text.len(), |i| at + i + 1)
    }

    fn with_change(mut self, range: Range<usize>, text: String, path: &[&str], value: Value) -> Self {
        let mut place = &mut self.wanted;
        for key in path {
            place = &mut place[*key];
        }
        *place = value;
        self.changes.push((range, text));
        self
    }

    /// Applies the edits with the file's own line ends, and reads the result back.
    ///
    /// # Errors
    /// It does not parse to the intended value: a bug in Expedite, and nothing is written.
    pub fn apply_edits(mut self) -> Result<String, Failure> {
        let crlf = self.text.split_once('\n').is_some_and(|(first, _)| first.ends_with('\r'));
        let mut text = self.text.to_owned();
        let end = text.len();
        if !text.ends_with('\n') && self.changes.iter().any(|(range, _)| range.start == end) {
            text.push_str(if crlf { "\r\n" } else { "\n" });
        }
        let tail = text.len();
        // From the end; of two edits at the same position the later one comes second, so it is inserted
        // first.
        self.changes.reverse();
        self.changes.sort_by_key(|(range, _)| std::cmp::Reverse(range.start));
        for (range, new) in &self.changes {
            let new = if crlf { new.replace('\n', "\r\n") } else { new.clone() };
            let range = if range.start == end { tail..tail } else { range.clone() };
            text.replace_range(range, &new);
        }
        if !self.changes.is_empty() {
            check_text(&text, &self.wanted, self.path)?;
        }
        Ok(text)
    }
}

/// Parses a text with two parsers: Expedite's own, which must give exactly `wanted`, and a second one that
/// shares no code with it and must agree.
///
/// # Errors
/// One of them gives something else: a bug in Expedite, and nothing is written.
pub fn check_text(text: &str, wanted: &Value, path: &str) -> Result<(), Failure> {
    let fault = |cause: String| {
        Failure::new(FailureKind::Internal, "written-wrong", cause).with_place(At::from_file(path))
    };
    let read =
        parse::parse_one(text).map_err(|e| fault(format!("the text to be written does not parse: {e}")))?;
    if &read.to_json() != wanted {
        return Err(fault("the text to be written does not parse to the intended value".into()));
    }
    match serde_yaml::from_str::<Value>(text) {
        Ok(second) if is_same_value(wanted, &second) => Ok(()),
        Ok(_) => Err(fault("two YAML parsers read the text to be written differently".into())),
        Err(error) => Err(fault(format!("a second YAML parser rejects the text to be written: {error}"))),
    }
}

/// The second reader makes numbers of some bare scalars that a person wrote and we keep as text.
fn is_same_value(ours: &Value, theirs: &Value) -> bool {
    match (ours, theirs) {
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(k, v)| b.get(k).is_some_and(|w| is_same_value(v, w)))
        }
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(v, w)| is_same_value(v, w))
        }
        (Value::String(_), Value::Number(_)) => true,
        (ours, theirs) => ours == theirs,
    }
}
