//! The meaning of error responses, and their messages. Messages are the same in each run: no times, no counters, and
//! only those parts of a registry's own text that do not change with every request.

use crate::answer::Unread;
use crate::answer::UnreadReason;
use crate::realm::TooDeep;
use serde::Deserialize;
use std::error::Error as _;
use std::io;
use std::time::Duration;
use url::Url;

/// Longest piece of untrusted text in a message, in characters.
const FOREIGN: usize = 120;

/// The request in the form for reports: method, scheme, host, path. Never the query, because redirects have signatures
/// there.
pub(crate) fn format_request_line(method: &str, url: &Url) -> String {
    format!("{method} {}", strip_query(url))
}

/// A URL without user, query and fragment.
pub(crate) fn strip_query(url: &Url) -> String {
    let mut bare = url.clone();
    bare.set_query(None);
    bare.set_fragment(None);
    // Only fails for URLs that have no host; those have no user either.
    let _ = bare.set_username("");
    let _ = bare.set_password(None);
    bare.into()
}

/// Makes an Unread.
pub(crate) fn make_unread(
    reason: UnreadReason,
    request: &str,
    status: Option<u16>,
    why: impl Into<String>,
    retryable: bool,
) -> Unread {
    Unread { reason, request: request.to_owned(), status, why: why.into(), retryable }
}

/// The bytes are not the requested ones.
pub(crate) fn make_integrity_unread(request: &str, status: Option<u16>, why: impl Into<String>) -> Unread {
    make_unread(UnreadReason::Error, request, status, format!("integrity: {}", why.into()), false)
}

/// The registry broke a rule.
pub(crate) fn make_broken_unread(request: &str, status: Option<u16>, why: impl Into<String>) -> Unread {
    make_unread(UnreadReason::Error, request, status, why, false)
}

/// One try without a usable response.
#[derive(Debug)]
pub(crate) struct RequestFault {
    /// The result if it was the last try.
    pub unread: Unread,
    /// A retry may succeed.
    pub transient: bool,
    /// The host does not respond: other requests should not try for a while.
    pub unreachable: bool,
    /// The pause that the registry asked for.
    pub retry_after: Option<Duration>,
}

impl RequestFault {
    /// A retry would not help.
    pub(crate) fn from_unread(unread: Unread) -> Self {
        Self { unread, transient: false, unreachable: false, retry_after: None }
    }

    /// No response in time, or the connection broke.
    pub(crate) fn from_silence(request: &str, why: impl Into<String>, unreachable: bool) -> Self {
        Self {
            unread: make_unread(UnreadReason::Unreachable, request, None, why, true),
            transient: true,
            unreachable,
            retry_after: None,
        }
    }

    /// An error of the HTTP library.
    pub(crate) fn from_transport(request: &str, error: &reqwest::Error) -> Self {
        if error.is_builder() {
            return Self::from_unread(make_broken_unread(request, None, "the request cannot be made"));
        }
        let causes = collect_causes(error);
        if causes.iter().any(|cause| cause.is::<TooDeep>()) {
            return Self::from_unread(make_broken_unread(request, None, TooDeep.to_string()));
        }
        if error.is_dns() {
            return Self::from_silence(request, "host name not found", true);
        }
        if let Some(tls) = causes.iter().find_map(|cause| cause.downcast_ref::<rustls::Error>()) {
            return Self::from_tls(request, tls);
        }
        // These errors have no public type.
        let says = |text: &str| causes.iter().any(|cause| cause.to_string().contains(text));
        if says("proxy authorization required") {
            let why = "the proxy wants credentials (407)";
            return Self::from_unread(make_unread(UnreadReason::Unreachable, request, Some(407), why, false));
        }
        if says("failed to create underlying connection") {
            return Self::from_silence(request, "the proxy cannot be reached", true);
        }
        if says("tunnel error") {
            return Self::from_silence(request, "the proxy makes no connection", true);
        }
        if says("tls handshake eof") {
            return Self::from_silence(request, "TLS: the handshake ends early", true);
        }
        if says("invalid HTTP") {
            return Self::from_silence(request, "the answer is not HTTP", true);
        }
        let why = causes.iter().find_map(|cause| describe_io_kind(cause.downcast_ref::<io::Error>()?.kind()));
        let words = match why {
            Some(words) => words,
            None if error.is_timeout() => "no connection in time",
            None if error.is_connect() => "no connection",
            None => "the connection ended before the answer did",
        };
        Self::from_silence(request, words, error.is_connect() || error.is_timeout())
    }

    fn from_tls(request: &str, error: &rustls::Error) -> Self {
        let why = format!("TLS: {}", tidy_text(&error.to_string()));
        Self::from_unread(make_unread(UnreadReason::Unreachable, request, None, why, false))
    }
}

/// All causes of an error. The error inside an `io::Error` is not one of its sources.
fn collect_causes(error: &reqwest::Error) -> Vec<&(dyn std::error::Error + 'static)> {
    let mut found = Vec::new();
    let mut next = error.source();
    while let Some(cause) = next {
        found.push(cause);
        next = match cause.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
            Some(wrapped) => Some(wrapped),
            None => cause.source(),
        };
    }
    found
}

fn describe_io_kind(kind: io::ErrorKind) -> Option<&'static str> {
    // The list of kinds is open: other kinds have no message of their own.
    Some(match kind {
        io::ErrorKind::ConnectionRefused => "connection refused",
        io::ErrorKind::ConnectionReset | io::ErrorKind::ConnectionAborted | io::ErrorKind::BrokenPipe => {
            "the connection ended before the answer did"
        }
        io::ErrorKind::TimedOut => "no connection in time",
        io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable => "host not reachable",
        _ => return None,
    })
}

/// The meaning of a status, for a request for `whose`, that is neither a success nor an authoritative "does not exist".
pub(crate) fn make_refused_unread(request: &str, status: u16, body: &[u8], whose: &str) -> Unread {
    let said = match OciErrors::parse(body) {
        Some(errors) => errors.format_errors(),
        None => String::new(),
    };
    let why = |what: &str| format!("{what}{said}");
    let (reason, why, retryable) = match status {
        401 | 403 => (UnreadReason::Unauthorized, format!("{whose} is denied ({status}){said}"), false),
        407 => (UnreadReason::Unreachable, why("the proxy wants credentials (407)"), false),
        429 => (UnreadReason::RateLimited, why("too many requests (429)"), true),
        408 | 425 | 500..=599 => (UnreadReason::Error, format!("the registry fails ({status}){said}"), true),
        404 if said.is_empty() => (UnreadReason::Error, "404 that is no registry's answer".to_owned(), false),
        _ => (UnreadReason::Error, format!("the registry answers {status}{said}"), false),
    };
    make_unread(reason, request, Some(status), why, retryable)
}

/// Whether waiting may help.
pub(crate) fn is_transient(status: u16) -> bool {
    matches!(status, 408 | 425 | 429 | 500 | 502 | 503 | 504)
}

/// The errors of a distribution registry (distribution-spec, "Error Codes").
#[derive(Debug, Deserialize)]
pub(crate) struct OciErrors {
    errors: Vec<OciError>,
}

#[derive(Debug, Deserialize)]
struct OciError {
    #[serde(default)]
    code: Option<String>,
    #[serde(default)]
    message: Option<String>,
}

impl OciErrors {
    /// Reads the body; `None`: it is not such a list. Content-Type is ignored, because registries often set it wrong.
    pub(crate) fn parse(body: &[u8]) -> Option<Self> {
        let errors: Self = serde_json::from_slice(body).ok()?;
        (!errors.errors.is_empty()).then_some(errors)
    }

    /// Whether one of the codes is among these.
    pub(crate) fn has_code(&self, codes: &[&str]) -> bool {
        self.errors.iter().any(|e| e.code.as_deref().is_some_and(|c| codes.contains(&c)))
    }

    /// `: DENIED requested access to the resource is denied`, or nothing.
    fn format_errors(&self) -> String {
        let Some(first) = self.errors.first() else { return String::new() };
        let code = first.code.as_deref().filter(|c| {
            (1..=40).contains(&c.len()) && c.bytes().all(|b| b.is_ascii_uppercase() || b == b'_')
        });
        let message = first.message.as_deref().map(tidy_text).unwrap_or_default();
        match (code, message.as_str()) {
            (None, "") => String::new(),
            (None, message) => format!(": {message}"),
            (Some(code), "") => format!(": {code}"),
            (Some(code), message) => format!(": {code} {message}"),
        }
    }
}

/// Codes that say "you may not", whatever status carries them.
const DENIALS: &[&str] = &["UNAUTHORIZED", "DENIED", "TOOMANYREQUESTS"];

/// Whether a 404 is an authoritative "does not exist": a registry's own error, or an empty body (the body is optional).
/// A web page, or the text of a proxy, is not.
pub(crate) fn is_absence(status: u16, body: &[u8]) -> bool {
    status == 404
        && (body.is_empty() || OciErrors::parse(body).is_some_and(|errors| !errors.has_code(DENIALS)))
}

/// Prepares untrusted text for a message: one line, cut, and words that contain a digit (request ids, times, ports,
/// digests) replaced, so that the same fault has the same message in the next run.
pub(crate) fn tidy_text(text: &str) -> String {
    let words = text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|w| !w.is_empty());
    let mut line = String::new();
    for word in words {
        let word = if word.contains(|c: char| c.is_ascii_digit()) { "…" } else { word };
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
        if line.chars().count() > FOREIGN {
            line = line.chars().take(FOREIGN).collect();
            line.push('…');
            break;
        }
    }
    line
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;

    #[test]
    fn absence_needs_authority() {
        assert!(is_absence(404, br#"{"errors":[{"code":"MANIFEST_UNKNOWN","message":"unknown"}]}"#));
        assert!(is_absence(404, b""));
        assert!(!is_absence(404, b"<html>not found</html>"));
        assert!(!is_absence(404, b"404 page not found\n"));
        assert!(!is_absence(404, br#"{"errors":[]}"#));
        assert!(!is_absence(404, br#"{"errors":[{"code":"DENIED"}]}"#));
        assert!(!is_absence(404, br#"{"errors":[{"code":"UNAUTHORIZED"}]}"#));
        assert!(!is_absence(400, br#"{"errors":[{"code":"MANIFEST_UNKNOWN"}]}"#));
    }

    #[test]
    fn words_of_a_registry_are_stable_and_short() {
        let a = br#"{"errors":[{"code":"TOOMANYREQUESTS","message":"quota at 17:03:22 \u001b[31m id=77ab spent"}]}"#;
        let b = br#"{"errors":[{"code":"TOOMANYREQUESTS","message":"quota at 18:59:00 \u001b[31m id=90cc spent"}]}"#;
        let why = make_refused_unread("GET https://r.example/v2/a", 429, a, "x").why;
        assert_eq!(why, make_refused_unread("GET https://r.example/v2/a", 429, b, "x").why);
        assert_eq!(why, "too many requests (429): TOOMANYREQUESTS quota at … … … spent");
        assert!(tidy_text(&"long ".repeat(100)).chars().count() <= FOREIGN + 1);
        assert_eq!(tidy_text("a\n\tb\u{7}c"), "a b c");
    }

    #[test]
    fn each_status_has_its_reason() {
        let reason = |status| make_refused_unread("GET x", status, b"", "x").reason;
        assert_eq!(reason(401), UnreadReason::Unauthorized);
        assert_eq!(reason(403), UnreadReason::Unauthorized);
        assert_eq!(reason(429), UnreadReason::RateLimited);
        for status in [400, 404, 405, 410, 500, 502, 503, 504, 599, 302] {
            assert_eq!(reason(status), UnreadReason::Error, "{status}");
        }
        assert!(
            make_refused_unread("GET x", 503, b"", "x").retryable
                && !make_refused_unread("GET x", 405, b"", "x").retryable
        );
    }

    #[test]
    fn a_request_line_holds_no_secret() {
        let url = Url::parse("https://u:p@s3.example/blob?X-Amz-Signature=abc#f").unwrap();
        assert_eq!(format_request_line("GET", &url), "GET https://s3.example/blob");
    }
}
