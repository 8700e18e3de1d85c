//! Lists of an API server, page by page: a list is complete, or it is reported as unread.

use super::ask::send_request;
use super::connect::format_reason;
use crate::model::id::Namespace;
use kube::Client;
use kube::api::ListParams;
use kube::core::Request;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeSet;

/// Objects in one request.
const PAGE: u32 = 500;

/// Most pages of a list, against a server that never ends.
const PAGES: usize = 20_000;

/// The version of every API that is read.
const VERSION: &str = "v1alpha1";

/// Why a list is missing or incomplete.
pub enum Missing {
    /// The server has no such kind.
    Kind,
    /// It could not be read to its end, and why.
    Unread(String),
}

/// The lists of one API group.
pub struct Lists<'c> {
    client: &'c Client,
    group: &'static str,
    /// Plural names that the server says it serves; `None`: the server does not say.
    served: Option<BTreeSet<String>>,
}

#[derive(Deserialize)]
struct Resources {
    resources: Vec<ListedResource>,
}

#[derive(Deserialize)]
struct ListedResource {
    name: String,
}

#[derive(Deserialize)]
struct Page {
    #[serde(default)]
    metadata: PageMeta,
    items: Vec<Value>,
}

#[derive(Default, Deserialize)]
struct PageMeta {
    #[serde(default, rename = "continue")]
    next: Option<String>,
}

impl<'c> Lists<'c> {
    /// Asks which kinds of `group` exist. A user without the right to a kind gets "forbidden" even if the kind does not
    /// exist, so the lists alone do not show this.
    pub async fn new(client: &'c Client, group: &'static str) -> Self {
        let discovered = match Request::new(format!("/apis/{group}/{VERSION}")).list(&ListParams::default()) {
            Ok(request) => send_request(client, request).await,
            Err(error) => Err(kube::Error::BuildRequest(error)),
        };
        let served = match discovered {
            Ok(bytes) => serde_json::from_slice::<Resources>(&bytes)
                .ok()
                .map(|all| all.resources.into_iter().map(|resource| resource.name).collect()),
            Err(kube::Error::Api(status)) if status.code == 404 => Some(BTreeSet::new()),
            // The lists meet the same error and report it.
            Err(_) => None,
        };
        Self { client, group, served }
    }

    /// Lists the kind with this plural name. After an expired continuation it starts again, once.
    ///
    /// # Errors
    /// The kind does not exist, or the list could not be read to its end; then with the items that were read.
    pub async fn fetch_list(
        &mut self,
        plural: &str,
        namespace: Option<&Namespace>,
        selector: Option<&str>,
    ) -> Result<Vec<Value>, (Vec<Value>, Missing)> {
        if self.served.as_ref().is_some_and(|served| !served.contains(plural)) {
            return Err((Vec::new(), Missing::Kind));
        }
        let place = namespace.map(|n| format!("namespaces/{n}/")).unwrap_or_default();
        let request = Request::new(format!("/apis/{}/{VERSION}/{place}{plural}", self.group));
        let mut again = true;
        loop {
            let mut items = Vec::new();
            match self.fetch_pages(&request, selector, &mut items).await {
                Ok(()) => return Ok(items),
                Err(Stopped::Expired) if again => again = false,
                // If the server says that it serves the kind, "not found" comes from a proxy or a starting server. Treating
                // it as "not installed" would lose every veto.
                Err(Stopped::Failed(kube::Error::Api(status)))
                    if status.code == 404 && items.is_empty() && self.served.is_none() =>
                {
                    return Err((items, Missing::Kind));
                }
                Err(stopped) => {
                    let why = match stopped {
                        Stopped::Expired => "its continuation expired twice (410 Gone)".to_owned(),
                        Stopped::Failed(error) => format_reason(&error),
                        Stopped::Odd(why) => why,
                    };
                    let place = namespace.map(|n| format!(" in namespace {n}")).unwrap_or_default();
                    let why = format!("the list of {plural}{place} cannot be read: {why}");
                    return Err((items, Missing::Unread(why)));
                }
            }
        }
    }

    async fn fetch_pages(
        &self,
        request: &Request,
        selector: Option<&str>,
        items: &mut Vec<Value>,
    ) -> Result<(), Stopped> {
        let mut next: Option<String> = None;
        for _ in 0..PAGES {
            let mut parameters = ListParams::default().limit(PAGE);
            if let Some(selector) = selector {
                parameters = parameters.labels(selector);
            }
            if let Some(token) = &next {
                parameters = parameters.continue_token(token);
            }
            let request =
                request.list(&parameters).map_err(|e| Stopped::Failed(kube::Error::BuildRequest(e)))?;
            let bytes = send_request(self.client, request).await.map_err(|error| match error {
                kube::Error::Api(status) if status.code == 410 => Stopped::Expired,
                error => Stopped::Failed(error),
            })?;
            let page: Page = serde_json::from_slice(&bytes).map_err(|error| {
                Stopped::Odd(format!("the response of the server is not a list: {error}"))
            })?;
            items.extend(page.items);
            match page.metadata.next.filter(|token| !token.is_empty()) {
                None => return Ok(()),
                Some(token) if next.as_ref() == Some(&token) => {
                    return Err(Stopped::Odd("the server keeps returning the same continuation".into()));
                }
                Some(token) => next = Some(token),
            }
        }
        Err(Stopped::Odd(format!("the server returns more than {PAGES} pages")))
    }
}

/// Why reading a list stopped before its end.
enum Stopped {
    /// The continuation is too old.
    Expired,
    /// The request failed.
    Failed(kube::Error),
    /// The response is not one of an API server.
    Odd(String),
}
