//! Every HTTP request of a run, for tests and figures. No headers, no queries: nothing secret.

use std::sync::{Mutex, PoisonError};

/// One HTTP request that was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoggedRequest {
    /// `GET`, `HEAD`, …
    pub method: String,
    /// Without query.
    pub url: String,
    /// `None`: no answer.
    pub status: Option<u16>,
}

#[derive(Debug, Default)]
pub(crate) struct RequestLog(Mutex<Vec<LoggedRequest>>);

impl RequestLog {
    pub(crate) fn log_request(&self, method: &str, url: String, status: Option<u16>) {
        let mut list = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        list.push(LoggedRequest { method: method.to_owned(), url, status });
    }

    pub(crate) fn collect_requests(&self) -> Vec<LoggedRequest> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
