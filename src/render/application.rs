//! One Application: from its pin through the template to bytes that are exactly what was decided.

use crate::error::{At, Failure, Kind};
use crate::model::naming;
use crate::model::plan::Pin;
use crate::render::{admit, context, layout, template::Template};
use crate::yaml::emit;
use serde_json::Value;

/// Where an override stands in the GitOps repository.
pub const TEMPLATE: &str = "templates/application.yaml";
/// The built-in template.
pub const BUILT_IN: &str = include_str!("../../templates/application.yaml");

/// Longest value of a Kubernetes label, in characters.
const LABEL: usize = 63;

/// Compiles the repository's template, or the built-in one where it has none.
///
/// # Errors
/// As [`Template::compile`].
pub fn template(overridden: Option<&str>) -> Result<Template, Failure> {
    Template::compile(TEMPLATE, overridden.unwrap_or(BUILT_IN))
}

/// An Application as its file shall be.
#[derive(Debug, Clone, PartialEq)]
pub struct Rendered {
    /// What it says.
    pub value: Value,
    /// The file.
    pub text: String,
}

/// Renders `pin` and holds the result to it.
///
/// # Errors
/// An Order or namespace name that no label can hold, a template that fails, or one whose output is not
/// what was decided: with the template's line and the Order.
pub fn render(template: &Template, pin: &Pin) -> Result<Rendered, Failure> {
    let what = || format!("Order {}", pin.order);
    for (label, value) in admit::labels(pin) {
        if value.len() > LABEL {
            let cause = format!("{value:?} has {} characters; label {label} holds {LABEL}", value.len());
            return Err(Failure::input("label-too-long", cause)
                .of(what())
                .field("metadata.name")
                .hint("give the Order a shorter name"));
        }
    }
    let context = context::of_application(pin);
    let value = template.render(&context).map_err(|f| f.of(what()))?;
    admit::application(&value, pin).map_err(|violation| {
        Failure::input("template-refused", violation.why.clone())
            .at(template.at(&context, &violation.path))
            .of(what())
            .field(violation.field())
    })?;
    Ok(Rendered { text: file(template.head(), &value), value })
}

/// Parses a file back and compares it with what it shall say: asked of every file before it is written.
///
/// # Errors
/// They differ: a fault of ours, and nothing is written.
pub fn check(text: &str, value: &Value, path: &str) -> Result<(), Failure> {
    let fault = |cause: String| Failure::new(Kind::Internal, "written-wrong", cause).at(At::file(path));
    match layout::read(text) {
        Ok(read) if &read.root.value() == value => Ok(()),
        Ok(_) => Err(fault("what would be written reads back as something else".into())),
        Err(refused) => Err(fault(format!("what would be written does not read back: {}", refused.why))),
    }
}

fn file(head: &str, value: &Value) -> String {
    let mut text = String::with_capacity(head.len() + 1024);
    text.push_str(head);
    text.push_str(&emit::document(value));
    text
}

/// The file of an Application of ours without Argo CD's cascade finalizer; `None` where it has none.
///
/// # Errors
/// The file does not read as one plain document.
pub fn detached(text: &str, path: &str) -> Result<Option<String>, Failure> {
    let read = layout::read(text).map_err(|refused| unreadable(path, &refused))?;
    let mut value = read.root.value();
    let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) else { return Ok(None) };
    let Some(Value::Array(list)) = metadata.get_mut("finalizers") else { return Ok(None) };
    let before = list.len();
    list.retain(|f| f.as_str() != Some(naming::FINALIZER));
    if list.len() == before {
        return Ok(None);
    }
    if list.is_empty() {
        metadata.shift_remove("finalizers");
    }
    let head: String = text.split_inclusive('\n').take_while(|l| l.starts_with('#')).collect();
    Ok(Some(file(&head, &value)))
}

pub(crate) fn unreadable(path: &str, refused: &layout::Refused) -> Failure {
    let at = At { file: path.to_owned(), line: Some(refused.line), column: None };
    Failure::input("unreadable", refused.why.clone()).at(at)
}
