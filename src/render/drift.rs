//! Compares the file of an Application with its rendering: new, equal, changed by a decision, or edited by
//! hand.

use crate::error::{At, Failure};
use crate::model::environment::OnDelete;
use crate::model::id::Artifact;
use crate::model::naming::{ALLOWED_ORDER, FINALIZER};
use crate::model::plan::Pin;
use crate::model::serving::ServingStatus;
use crate::model::world::ApplicationFile;
use crate::render::application::{self, Keep};
use crate::render::template::Template;

/// `clusters[].reason` of an Application whose file was written.
const PINNED: &str = "Pinned";

/// What happens to one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileOutcome {
    /// Its new text; `None` if it is correct already.
    pub write: Option<String>,
    /// Its generated text, if it was edited or removed by hand since.
    pub edited: Option<String>,
}

/// The file of a pinned Application. `status` is the Serving's as committed: what the file was last rendered
/// from, so that a decision is not mistaken for a manual edit, or the other way round.
///
/// # Errors
/// The rendering fails, or the file belongs to someone else and is not (or cannot be) opted in to this Order.
pub fn render_pinned(
    template: &Template,
    pin: &Pin,
    path: &str,
    existing: Option<&ApplicationFile>,
    status: Option<&ServingStatus>,
) -> Result<FileOutcome, Failure> {
    let before = status.and_then(|s| find_recorded_pin(pin, s));
    let Some(file) = existing else {
        let rendered = application::render_application(
            template,
            pin,
            &Keep { finalizers: pin.found_finalizers.clone() },
        )?;
        application::check_text(&rendered.text, &rendered.value, path)?;
        // Recorded as deployed with exactly these values, but it does not exist: it was removed by hand.
        let edited = before.is_some_and(|old| &old == pin).then(|| rendered.text.clone());
        return Ok(FileOutcome { write: Some(rendered.text), edited });
    };
    if file.owner.as_ref() != Some(&pin.order) {
        return take_over_file(template, pin, path, file)
            .map(|text| FileOutcome { write: Some(text), edited: None });
    }
    let keep = Keep::from_file(file);
    let rendered = application::render_application(template, pin, &keep)?;
    if rendered.text == *file.text {
        return Ok(FileOutcome { write: None, edited: None });
    }
    application::check_text(&rendered.text, &rendered.value, path)?;
    let edited = find_generated(template, pin, file, &keep, before, &rendered.text)?;
    Ok(FileOutcome { write: Some(rendered.text), edited })
}

/// The pin that the Serving's status records for this Application, as far as it does; the rest is as today.
fn find_recorded_pin(pin: &Pin, status: &ServingStatus) -> Option<Pin> {
    let cluster = status.clusters.iter().find(|c| c.application == pin.name && c.reason == PINNED)?;
    let deployed = status.deployed.as_ref()?;
    Some(Pin {
        preparation: status.observed_preparation_name.clone()?,
        artifact: Artifact { repository: deployed.repository.clone(), digest: status.deployed_digest? },
        target_namespace: deployed.target_namespace.clone(),
        environment: deployed.environment.clone(),
        server: if cluster.server.is_empty() { pin.server.clone() } else { cluster.server.clone() },
        ..pin.clone()
    })
}

/// What a file that differs from its rendering was generated as, where it was edited by hand: where it is not
/// what the recorded pin renders to either, through the template that it was rendered from. Project and
/// finalizer are the Environment's and may have changed there. A file that does not parse is compared with
/// `rendered`, what it is now to be.
fn find_generated(
    template: &Template,
    pin: &Pin,
    file: &ApplicationFile,
    keep: &Keep,
    before: Option<Pin>,
    rendered: &str,
) -> Result<Option<String>, Failure> {
    let Ok(found) = &file.application else { return Ok(Some(rendered.to_owned())) };
    let by_this_template =
        found.metadata.annotations.get(application::TEMPLATE_HASH).map(String::as_str) == template.hash();
    if !by_this_template {
        return Ok(None);
    }
    let same_pin = || {
        let source = found.spec.source.as_ref();
        source.and_then(|s| s.target_revision.clone()) == Some(pin.artifact.digest.to_string())
    };
    let Some(mut old) = before.or_else(|| same_pin().then(|| pin.clone())) else { return Ok(None) };
    old.project.clone_from(&found.spec.project);
    let cascades = found.metadata.finalizers.iter().any(|f| f == FINALIZER);
    old.on_delete = if cascades { OnDelete::Cascade } else { OnDelete::Orphan };
    let generated = application::render_application(template, &old, keep)?.text;
    Ok((generated != *file.text).then_some(generated))
}

/// # Errors
/// The Application is not opted in to this Order, or something that a person added would be lost.
fn take_over_file(
    template: &Template,
    pin: &Pin,
    path: &str,
    file: &ApplicationFile,
) -> Result<String, Failure> {
    let refused = |code, cause: String| {
        Failure::new_input(code, cause)
            .with_place(At::from_file(path))
            .with_object(format!("Order {}", pin.order))
    };
    let order = pin.order.to_string();
    let opened =
        file.application.as_ref().is_ok_and(|a| a.metadata.annotations.get(ALLOWED_ORDER) == Some(&order));
    if !opened {
        return Err(refused(
            "foreign-application",
            "this file holds an Application that Expedite did not create".into(),
        )
        .with_hint(format!("to give it to this Order, annotate it with {ALLOWED_ORDER}: {order}")));
    }
    application::take_over_application(template, &file.text, path, pin)?.map_err(|fields| {
        refused("takeover", format!("it is opted in, but {}", application::describe_losses(&fields)))
    })
}
