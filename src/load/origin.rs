//! Finds the line of a field: later rooms name a file, an object's first line and a field; the line of the field is
//! looked up only when a message is printed.

use crate::error::Failure;
use kube_yaml::node::{Node, locate_field};
use kube_yaml::{Position, parse};
use std::collections::BTreeMap;

/// Fills in line and column of each failure that names a file, the first line of an object (or none, if the file holds
/// one object) and a field, by reading the file again. A failure whose field is not found stays unchanged.
pub fn refine_places(failures: &mut [Failure], read: &dyn Fn(&str) -> Option<Vec<u8>>) {
    let mut trees: BTreeMap<String, Vec<Node>> = BTreeMap::new();
    for failure in failures {
        let (Some(at), Some(field)) = (&mut failure.at, &failure.field) else { continue };
        if at.column.is_some() {
            continue;
        }
        let nodes = trees.entry(at.file.clone()).or_insert_with(|| parse_nodes(read(&at.file)));
        let object = match (at.line, nodes.as_slice()) {
            (Some(line), nodes) => nodes.iter().find_map(|node| find_object_at(node, line)),
            (None, [only]) => Some(only),
            (None, _) => None,
        };
        if let Some(Position { line, column }) = object.and_then(|object| locate_field(object, field)) {
            at.line = Some(line);
            at.column = Some(column);
        }
    }
}

fn parse_nodes(bytes: Option<Vec<u8>>) -> Vec<Node> {
    let bytes = bytes.unwrap_or_default();
    let Ok(text) = parse::decode_text(&bytes) else { return Vec::new() };
    parse::parse_documents(text).into_iter().filter_map(|document| document.node).collect()
}

/// The object that begins on this line: a document, or an item of a list.
fn find_object_at(node: &Node, line: u32) -> Option<&Node> {
    if node.at.line == line && node.get("items").is_none_or(|items| items.at.line != line) {
        return Some(node);
    }
    let items = node.get("items").map_or(&[][..], Node::items);
    items.iter().find_map(|item| find_object_at(item, line))
}
