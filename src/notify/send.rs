//! The requests that update one Serving.

use super::Telling;
use super::news::News;
use super::pace::RequestPace;
use crate::load::cluster::ask::send_request;
use crate::load::cluster::connect::format_reason;
use crate::load::cluster::told::{self, Told};
use crate::model::id::OrderRef;
use crate::model::naming::{API_VERSION, MANAGER};
use kube::Client;
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use kube::core::{Request, Status};
use serde::Deserialize;
use serde_json::{Value, json};

/// How often a Serving is tried that others change at the same time.
const TRIES: u32 = 5;

/// Sends to one cluster.
pub struct Sender<'c> {
    pub client: &'c Client,
    pub pace: RequestPace,
}

/// The result for one Serving.
pub struct Sent {
    /// Reasons of the Events that exist now.
    pub events: Vec<String>,
    /// Events that the server refused; the status is still written.
    pub refused: Vec<String>,
    /// The result for its status, or why it is not written.
    pub done: Result<Done, Untold>,
}

/// Why a status is not written.
pub struct Untold {
    /// The server's message.
    pub why: String,
    /// The scope that will fail with it.
    pub about: FailureScope,
}

/// The scope of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureScope {
    /// The whole cluster: it does not respond, does not accept the credentials, is overloaded, or is broken.
    Cluster,
    /// A namespace: rights are granted per namespace, and a kind that is not found does not exist anywhere in it.
    Namespace,
    /// This Serving only.
    Serving,
}

impl Untold {
    fn from_error(error: &kube::Error) -> Self {
        let about = match error {
            kube::Error::Api(status) => match status.code {
                403 | 404 => FailureScope::Namespace,
                401 | 429 => FailureScope::Cluster,
                400..=499 => FailureScope::Serving,
                _ => FailureScope::Cluster,
            },
            kube::Error::BuildRequest(_) => FailureScope::Serving,
            _ => FailureScope::Cluster,
        };
        Self { why: format_reason(error), about }
    }
}

/// The result of writing a status.
pub enum Done {
    /// It is the same as in git, except for members that the server dropped.
    Written {
        /// Their names.
        lost: Vec<String>,
    },
    /// The Serving no longer exists.
    Gone,
    /// Another run changed it after it was listed, and may know more.
    Overtaken,
}

impl Sender<'_> {
    /// Creates the Events, then writes the status. The status shows which news a Serving has, so that the next run
    /// completes a run that ends in between.
    pub async fn tell_serving(&self, telling: &Telling) -> Sent {
        let mut sent = Sent { events: Vec::new(), refused: Vec::new(), done: Ok(Done::Gone) };
        for news in &telling.news {
            match self.send_event(&telling.order, &telling.told.uid, news).await {
                Ok(()) => sent.events.push(news.reason.to_string()),
                Err(error) if is_refusal(&error) => {
                    sent.refused.push(format!("its Event {}: {}", news.reason, format_reason(&error)));
                }
                Err(error) => {
                    let untold = Untold::from_error(&error);
                    let why = format!("its Event {}: {}", news.reason, untold.why);
                    sent.done = Err(Untold { why, ..untold });
                    return sent;
                }
            }
        }
        sent.done = self.write_status(telling).await;
        sent
    }

    async fn send_event(&self, order: &OrderRef, uid: &str, news: &News) -> Result<(), kube::Error> {
        let path = format!("/apis/events.k8s.io/v1/namespaces/{}/events", order.namespace);
        let event = news.build_event(order, uid).to_string().into_bytes();
        let parameters = PostParams { field_manager: Some(MANAGER.to_owned()), ..PostParams::default() };
        self.pace.wait_turn().await;
        let request = Request::new(path).create(&parameters, event).map_err(kube::Error::BuildRequest)?;
        match send_request(self.client, request).await {
            // Its name depends on its news, so another run has created the same Event.
            Err(kube::Error::Api(status)) if status.code == 409 && status.reason == "AlreadyExists" => Ok(()),
            answer => answer.map(|_| ()),
        }
    }

    async fn write_status(&self, telling: &Telling) -> Result<Done, Untold> {
        let mut told = telling.told.clone();
        for _ in 0..TRIES {
            match self.apply_status(telling, &told).await {
                Ok(status) => return Ok(Done::Written { lost: collect_lost(&telling.status, &status) }),
                // Except if the whole kind, or its status, cannot be found.
                Err(kube::Error::Api(status)) if status.code == 404 && is_about(&status, &telling.order) => {
                    return Ok(Done::Gone);
                }
                Err(kube::Error::Api(status)) if status.code == 409 => {}
                Err(error) => return Err(Untold::from_error(&error)),
            }
            // Another writer changed it after it was listed. A changed status may be newer than this run; changes of
            // other fields do not matter here.
            told = match self.fetch_told(&telling.order).await.map_err(|error| Untold::from_error(&error))? {
                None => return Ok(Done::Gone),
                Some(now) if now.hash == telling.told.hash => now,
                Some(now) if now.hash == telling.hash => return Ok(Done::Written { lost: Vec::new() }),
                Some(_) => return Ok(Done::Overtaken),
            };
        }
        let why = format!("other writers changed it during each of {TRIES} tries");
        Err(Untold { why, about: FailureScope::Serving })
    }

    /// Applies the whole status to the version that was listed. Takes over fields of other managers, because the status
    /// belongs to Expedite.
    async fn apply_status(&self, telling: &Telling, told: &Told) -> Result<Value, kube::Error> {
        let order = &telling.order;
        let body = json!({
            "apiVersion": API_VERSION,
            "kind": "Serving",
            "metadata": {"name": order.name, "namespace": order.namespace, "resourceVersion": told.version},
            "status": telling.status,
        });
        let parameters = PatchParams::apply(MANAGER).force();
        self.pace.wait_turn().await;
        let request = Request::new(format_servings_path(order))
            .patch_subresource("status", order.name.as_str(), &parameters, &Patch::Apply(body))
            .map_err(kube::Error::BuildRequest)?;
        #[derive(Deserialize)]
        struct Answer {
            #[serde(default)]
            status: Value,
        }
        let bytes = send_request(self.client, request).await?;
        serde_json::from_slice::<Answer>(&bytes).map(|answer| answer.status).map_err(kube::Error::SerdeError)
    }

    /// The current Serving, through a list request, so that no other right is needed than for the first reading.
    async fn fetch_told(&self, order: &OrderRef) -> Result<Option<Told>, kube::Error> {
        let parameters = ListParams::default().fields(&format!("metadata.name={}", order.name));
        self.pace.wait_turn().await;
        let request =
            Request::new(format_servings_path(order)).list(&parameters).map_err(kube::Error::BuildRequest)?;
        #[derive(Deserialize)]
        struct Page {
            items: Vec<Value>,
        }
        let bytes = send_request(self.client, request).await?;
        let page: Page = serde_json::from_slice(&bytes).map_err(kube::Error::SerdeError)?;
        Ok(page
            .items
            .iter()
            .filter_map(Told::from_item)
            .find(|(found, _)| found == order)
            .map(|(_, told)| told))
    }
}

fn format_servings_path(order: &OrderRef) -> String {
    format!("/apis/{API_VERSION}/namespaces/{}/servings", order.namespace)
}

/// Whether a failure is about this object.
fn is_about(status: &Status, order: &OrderRef) -> bool {
    status.details.as_ref().is_some_and(|details| details.name == order.name.as_str())
}

/// Whether another try would also be refused.
fn is_refusal(error: &kube::Error) -> bool {
    match error {
        kube::Error::Api(status) => (400..500).contains(&status.code) && status.code != 429,
        _ => false,
    }
}

/// The members that the server dropped or changed.
fn collect_lost(sent: &Value, kept: &Value) -> Vec<String> {
    if told::hash_status(sent) == told::hash_status(kept) {
        return Vec::new();
    }
    let members = sent.as_object().into_iter().flatten();
    members
        .filter(|(name, value)| kept.get(name) != Some(value))
        .map(|(name, _)| format!("status.{name}"))
        .collect()
}
