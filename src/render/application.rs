//! One Application: from its pin through the template to bytes that are exactly what was decided.

use crate::error::{At, Failure, FailureKind};
use crate::model::naming;
use crate::model::plan::Pin;
use crate::model::world::ApplicationFile;
use crate::render::{admit, context, template::Template};
use kube_yaml::layout;
use kube_yaml::{emit, parse};
use serde_json::{Map, Value};

/// Path of the override in the GitOps repository.
pub const TEMPLATE: &str = "templates/application.yaml";
pub const BUILT_IN: &str = include_str!("../../templates/application.yaml");

/// Longest value of a Kubernetes label, in characters.
const LABEL: usize = 63;

/// Compiles the repository's template, or the built-in one if it has none.
///
/// # Errors
/// As [`Template::compile`].
pub fn compile_template(overridden: Option<&str>) -> Result<Template, Failure> {
    match overridden {
        Some(source) => Template::compile(TEMPLATE, source).map(Template::with_hash),
        None => Template::compile(TEMPLATE, BUILT_IN),
    }
}

/// Annotation: which template of the repository a file was rendered from (none: the built-in one), so that a
/// changed template is not mistaken for a manual edit.
pub const TEMPLATE_HASH: &str = "delivery.kokumi.dev/template";
/// Annotation of an Application that was taken over: its finalizers stay as they were found.
pub const FINALIZERS: &str = "delivery.kokumi.dev/finalizers";
/// The value of [`FINALIZERS`].
const KEPT: &str = "kept";

/// What an existing generated file keeps, even if new ones are generated differently.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Keep {
    /// Finalizers of an Application that was taken over.
    pub finalizers: Option<Vec<String>>,
}

impl Keep {
    /// What this file keeps.
    #[must_use]
    pub fn from_file(file: &ApplicationFile) -> Self {
        let Ok(application) = &file.application else { return Self::default() };
        let kept = application.metadata.annotations.get(FINALIZERS).is_some_and(|v| v == KEPT);
        Self { finalizers: kept.then(|| application.metadata.finalizers.clone()) }
    }
}

/// An Application as its file must be.
#[derive(Debug, Clone, PartialEq)]
pub struct RenderedApplication {
    pub value: Value,
    pub text: String,
}

/// Renders `pin` and checks that the result matches it.
///
/// # Errors
/// An Order or namespace name that does not fit into a label, a template that fails, or one whose output is
/// not what was decided; the error names the template's line and the Order.
pub fn render_application(
    template: &Template,
    pin: &Pin,
    keep: &Keep,
) -> Result<RenderedApplication, Failure> {
    let what = || format!("Order {}", pin.order);
    for (label, value) in admit::build_labels(pin) {
        if value.len() > LABEL {
            let cause = format!("{value:?} has {} characters; label {label} holds {LABEL}", value.len());
            return Err(Failure::new_input("label-too-long", cause)
                .with_object(what())
                .with_field("metadata.name")
                .with_hint("shorten the name of the Order"));
        }
    }
    let context = context::build_application_context(pin);
    let mut value =
        template.render_document(&context).map_err(|f| context::hint_variables(f).with_object(what()))?;
    admit::check_application(&value, pin).map_err(|violation| {
        Failure::new_input("template-refused", violation.why.clone())
            .with_place(template.locate_node(&context, &violation.path))
            .with_object(what())
            .with_field(violation.format_field())
    })?;
    add_marks(&mut value, template, keep);
    Ok(RenderedApplication { text: format_file(template.head(), &value), value })
}

/// Adds the annotations that Expedite stores in the file.
fn add_marks(value: &mut Value, template: &Template, keep: &Keep) {
    let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) else { return };
    if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
        if let Some(hash) = template.hash() {
            annotations.insert(TEMPLATE_HASH.into(), hash.into());
        }
        if keep.finalizers.is_some() {
            annotations.insert(FINALIZERS.into(), KEPT.into());
        }
    }
    match keep.finalizers.as_deref() {
        None => {}
        Some([]) => {
            metadata.shift_remove("finalizers");
        }
        Some(list) => {
            metadata.insert("finalizers".into(), list.into());
        }
    }
}

/// Parses a file and compares it with the intended value; done for every file before it is written.
///
/// # Errors
/// They differ: a bug in Expedite, and nothing is written.
pub fn check_text(text: &str, value: &Value, path: &str) -> Result<(), Failure> {
    let fault = |cause: String| {
        Failure::new(FailureKind::Internal, "written-wrong", cause).with_place(At::from_file(path))
    };
    match parse::parse_one(text) {
        Ok(read) if &read.to_json() == value => Ok(()),
        Ok(_) => Err(fault("the text to be written does not parse to the intended value".into())),
        Err(error) => Err(fault(format!("the text to be written does not parse: {error}"))),
    }
}

fn format_file(head: &str, value: &Value) -> String {
    let mut text = String::with_capacity(head.len() + 1024);
    text.push_str(head);
    text.push_str(&emit::format_document(value));
    text
}

/// The file of an Application that hands its workload to another one: without Argo CD's cascade finalizer,
/// and annotated, so that it can be removed once that is observed. The same text if it is already in this
/// state.
///
/// # Errors
/// The file does not parse as one document.
pub fn detach_application(text: &str, path: &str) -> Result<String, Failure> {
    let mut value = parse::parse_one(text).map_err(|e| Failure::from_yaml(&e, path))?.to_json();
    let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) else {
        return Err(Failure::new_input("wrong-type", "it has no metadata").with_place(At::from_file(path)));
    };
    let before = metadata.clone();
    if let Some(Value::Array(list)) = metadata.get_mut("finalizers") {
        list.retain(|f| f.as_str() != Some(naming::FINALIZER));
        if list.is_empty() {
            metadata.shift_remove("finalizers");
        }
    }
    let annotations = metadata.entry("annotations").or_insert_with(|| Value::Object(Map::new()));
    if let Some(annotations) = annotations.as_object_mut() {
        annotations.insert(naming::HANDED_OVER.into(), "true".into());
    }
    if *metadata == before {
        return Ok(text.to_owned());
    }
    let head: String = text.split_inclusive('\n').take_while(|l| l.starts_with('#')).collect();
    let text = format_file(&head, &value);
    check_text(&text, &value, path)?;
    Ok(text)
}

/// The file of an existing Application that is opted in: generated as a whole, but its finalizers stay. The
/// inner error names what a person added and would be lost: then the Application is not taken over.
///
/// # Errors
/// The rendering fails.
pub fn take_over_application(
    template: &Template,
    text: &str,
    path: &str,
    pin: &Pin,
) -> Result<Result<String, Vec<String>>, Failure> {
    let read = match layout::parse_layout(text) {
        Ok(read) => read,
        Err(refused) => return Ok(Err(vec![format!("line {} ({})", refused.line, refused.why)])),
    };
    let found = read.root.to_value();
    let finalizers = match found.pointer("/metadata/finalizers") {
        None => Vec::new(),
        Some(list) => {
            list.as_array().into_iter().flatten().filter_map(Value::as_str).map(ToOwned::to_owned).collect()
        }
    };
    let rendered = render_application(template, pin, &Keep { finalizers: Some(finalizers) })?;
    let mut lost: Vec<String> =
        read.comments.iter().map(|line| format!("the comment in line {line}")).collect();
    collect_losses(&found, &rendered.value, &mut Vec::new(), &mut lost);
    if !lost.is_empty() {
        return Ok(Err(lost));
    }
    check_text(&rendered.text, &rendered.value, path)?;
    Ok(Ok(rendered.text))
}

/// Says what taking an Application over would lose, and what to do.
#[must_use]
pub fn describe_losses(fields: &[String]) -> String {
    format!(
        "taking it over would lose {}; remove that from the file, or put it into {TEMPLATE}",
        fields.join(", ")
    )
}

/// Expedite decides what is deployed; everything else that a person added must be in the rendering.
const PINNED: [&str; 3] = ["spec.source.repoURL", "spec.source.targetRevision", "spec.source.path"];

fn collect_losses(found: &Value, rendered: &Value, path: &mut Vec<String>, lost: &mut Vec<String>) {
    match (found, rendered) {
        (Value::Object(a), Value::Object(b)) => {
            for (key, value) in a {
                path.push(key.clone());
                collect_losses(value, b.get(key).unwrap_or(&Value::Null), path, lost);
                path.pop();
            }
        }
        // Their order has no meaning, and the rendering may contain more.
        (Value::Array(a), Value::Array(b)) => {
            for (i, item) in a.iter().enumerate().filter(|(_, item)| !b.contains(item)) {
                path.push(i.to_string());
                lost.push(format!("{}: {item}", admit::format_path(path)));
                path.pop();
            }
        }
        (found, rendered) if found == rendered => {}
        (found, _) => {
            let field = admit::format_path(path);
            if !PINNED.contains(&field.as_str()) {
                lost.push(format!("{field}: {found}"));
            }
        }
    }
}
