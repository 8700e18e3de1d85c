//! A Serving's file: written from its template once, edited in place afterwards.
//!
//! The text before `status:` belongs to people and is kept byte for byte, except for the two values that the
//! verbs change. Inside `status:`, members and history entries that did not change keep their text.

use crate::error::{Failure, FailureKind};
use crate::model::id::{EnvironmentName, OrderRef, PreparationName};
use crate::model::naming;
use crate::model::plan::ServingState;
use crate::model::serving::{Requested, ServingStatus};
use crate::model::world::ServingFile;
use crate::render::edit::{self, TextEdit};
use crate::render::{context, status, template::Template};
use kube_yaml::emit;
use serde_json::{Map, Value};

/// Path of the override in the GitOps repository.
pub const TEMPLATE: &str = "templates/serving.yaml";
pub const BUILT_IN: &str = include_str!("../../templates/serving.yaml");

/// Compiles the repository's template, or the built-in one if it has none.
///
/// # Errors
/// As [`Template::compile`].
pub fn compile_template(overridden: Option<&str>) -> Result<Template, Failure> {
    Template::compile(TEMPLATE, overridden.unwrap_or(BUILT_IN))
}

/// The file of a new Serving.
///
/// # Errors
/// The template fails, or does not give this Serving; the error names its line and the Order.
pub fn create_serving(
    template: &Template,
    order: &OrderRef,
    state: &ServingState,
    environment: Option<&EnvironmentName>,
    argocd_namespace: &str,
    requested: Option<&Requested>,
) -> Result<String, Failure> {
    let what = format!("Order {order}");
    let context = context::build_serving_context(order, state, environment, argocd_namespace);
    let mut value = template
        .render_document(&context)
        .map_err(|f| context::hint_variables(f).with_object(what.clone()))?;
    check_serving(&value, order, state).map_err(|(path, why)| {
        Failure::new_input("template-refused", why)
            .with_place(template.locate_node(&context, &path))
            .with_object(what.clone())
            .with_field(path.join("."))
    })?;
    if let (Some(requested), Some(spec)) = (requested, value.get_mut("spec").and_then(Value::as_object_mut)) {
        spec.insert("requested".into(), convert_value(requested)?);
    }
    let status = convert_value(&state.status)?;
    if let (Some(root), false) = (value.as_object_mut(), state.status == ServingStatus::default()) {
        root.insert("status".into(), status);
    }
    let text = format!("{}{}", template.head(), emit::format_document(&value));
    edit::check_text(&text, &value, &naming::build_serving_path(order))?;
    Ok(text)
}

/// Checks a new Serving: the decided fields, with labels and annotations that the template adds.
fn check_serving(value: &Value, order: &OrderRef, state: &ServingState) -> Result<(), (Vec<String>, String)> {
    let preparation = format_intent(state.preparation_name.as_ref());
    let wanted = [
        ("/apiVersion", naming::API_VERSION),
        ("/kind", "Serving"),
        ("/metadata/name", order.name.as_str()),
        ("/metadata/namespace", order.namespace.as_str()),
        ("/metadata/creationTimestamp", &state.created.to_string()),
        ("/spec/orderName", order.name.as_str()),
        ("/spec/preparationName", preparation),
    ];
    let path = |pointer: &str| pointer.split('/').skip(1).map(ToOwned::to_owned).collect::<Vec<String>>();
    for (pointer, wanted) in wanted {
        let found = value.pointer(pointer);
        if found.and_then(Value::as_str) != Some(wanted) {
            let found = found.map_or("missing".to_owned(), Value::to_string);
            return Err((path(pointer), format!("it must be {wanted:?}, and is {found}")));
        }
    }
    let known: [(&str, &[&str]); 3] = [
        ("", &["apiVersion", "kind", "metadata", "spec"]),
        ("/metadata", &["name", "namespace", "creationTimestamp", "labels", "annotations"]),
        ("/spec", &["orderName", "preparationName"]),
    ];
    for (pointer, known) in known {
        let keys = value.pointer(pointer).and_then(Value::as_object).into_iter().flat_map(Map::keys);
        if let Some(key) = keys.into_iter().find(|k| !known.contains(&k.as_str())) {
            let mut place = path(pointer);
            place.push(key.clone());
            return Err((place, format!("it is not allowed here; allowed here: {}", known.join(", "))));
        }
    }
    for pointer in ["/metadata/labels", "/metadata/annotations"] {
        match value.pointer(pointer) {
            None => {}
            Some(Value::Object(map)) if map.values().all(Value::is_string) => {}
            Some(_) => return Err((path(pointer), "it must be a mapping of strings".into())),
        }
    }
    Ok(())
}

/// The file with a new `status`, and `spec.preparationName` if it differs; the same text if nothing does.
///
/// # Errors
/// The file is broken, or written so that it cannot be edited in place; it names the line. Nothing is to be written then.
pub fn update_serving(file: &ServingFile, state: &ServingState) -> Result<String, Failure> {
    let serving = file.serving.as_ref().map_err(Clone::clone)?;
    if serving.status == state.status && serving.spec.preparation_name == state.preparation_name {
        return Ok(file.text.to_string());
    }
    let edit = TextEdit::parse(&file.text, &file.path)?;
    let status = status::merge_status(
        &edit.raw_status(),
        &convert_value(&serving.status)?,
        &convert_value(&state.status)?,
    );
    edit.with_preparation(format_intent(state.preparation_name.as_ref()))?.with_status(status).apply_edits()
}

/// `""` requests nothing.
fn format_intent(preparation: Option<&PreparationName>) -> &str {
    preparation.map_or("", |name| name.as_str())
}

/// The file with a person's intent: `spec.preparationName` and `spec.requested`, nothing else changed.
///
/// # Errors
/// The text is written so that it cannot be edited in place; it names the line.
pub fn edit_intent(
    text: &str,
    path: &str,
    preparation: Option<&PreparationName>,
    requested: &Requested,
) -> Result<String, Failure> {
    TextEdit::parse(text, path)?
        .with_preparation(format_intent(preparation))?
        .with_requested(convert_value(requested)?)?
        .apply_edits()
}

fn convert_value(value: &impl serde::Serialize) -> Result<Value, Failure> {
    serde_json::to_value(value).map_err(|e| Failure::new(FailureKind::Internal, "serving", e.to_string()))
}
