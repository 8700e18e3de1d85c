//! One request to an API server, with a bounded number of retries while the server says that it is busy.
//!
//! Only for requests that may be sent twice: lists, applies, and objects whose name depends on their content.

use bytes::Bytes;
use http::Request;
use http_body_util::BodyExt as _;
use kube::Client;
use kube::client::Body;
use kube::core::Status;
use std::time::Duration;

/// How often one request is sent.
const TRIES: u32 = 6;

/// The pause before the second try; each later one is twice as long.
const FIRST: Duration = Duration::from_millis(250);

/// Longest pause. If the server asks for a longer one, there is no retry and the failure is reported.
const LONGEST: Duration = Duration::from_secs(30);

/// Sends `request` and returns the body of the response.
///
/// # Errors
/// It could not be sent, or the response is not a success: [`kube::Error::Api`], with the server's message.
pub async fn send_request(client: &Client, request: Request<Vec<u8>>) -> Result<Bytes, kube::Error> {
    let mut attempt = 1;
    loop {
        let answer = client.send(request.clone().map(Body::from)).await?;
        let code = answer.status();
        let header =
            answer.headers().get("retry-after").and_then(|value| value.to_str().ok()).and_then(parse_seconds);
        let body = answer.into_body().collect().await?.to_bytes();
        if !code.is_client_error() && !code.is_server_error() {
            return Ok(body);
        }
        let status = parse_status(code.as_u16(), &body);
        let named = status.details.as_ref().map_or(0, |details| details.retry_after_seconds);
        let asked = header.or((named > 0).then(|| Duration::from_secs(named.into())));
        match decide_pause(code.as_u16(), asked, attempt) {
            Some(pause) => tokio::time::sleep(pause).await,
            None => return Err(kube::Error::Api(Box::new(status))),
        }
        attempt += 1;
    }
}

/// The message of the server, or of a proxy in front of it.
fn parse_status(code: u16, body: &[u8]) -> Status {
    match serde_json::from_slice::<Status>(body) {
        Ok(status) => Status { code, ..status },
        Err(_) => {
            Status { code, message: String::from_utf8_lossy(body).trim().to_owned(), ..Status::default() }
        }
    }
}

/// `Retry-After` in seconds; API servers do not use its other form, a date.
fn parse_seconds(text: &str) -> Option<Duration> {
    text.trim().parse().ok().map(Duration::from_secs)
}

/// How long to wait before try `attempt` + 1; `None`: the response is final.
fn decide_pause(code: u16, asked: Option<Duration>, attempt: u32) -> Option<Duration> {
    // A 500 with Retry-After is an API server's "server timeout".
    let busy = matches!(code, 429 | 502 | 503 | 504) || code == 500 && asked.is_some();
    if !busy || attempt >= TRIES || asked.is_some_and(|asked| asked > LONGEST) {
        return None;
    }
    let doubled = FIRST.saturating_mul(1 << (attempt - 1));
    // Random, so that many clients that were refused together do not retry together.
    Some(asked.unwrap_or_default().max(doubled.mul_f64(rand::random_range(1.0..1.5))))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;

    #[test]
    fn pauses_are_bounded_and_honour_what_was_asked() {
        let asked = |seconds| Some(Duration::from_secs(seconds));
        for code in [429, 502, 503, 504] {
            let all: Duration = (1..).map_while(|attempt| decide_pause(code, None, attempt)).sum();
            assert!(all > Duration::from_secs(7) && all < Duration::from_secs(12), "{code}: {all:?}");
        }
        assert_eq!(decide_pause(429, asked(9), 1), asked(9));
        assert!(decide_pause(429, asked(0), 1).is_some());
        assert_eq!(decide_pause(429, asked(86_400), 1), None, "a pause of a day is not waited for");
        assert_eq!(decide_pause(500, None, 1), None);
        assert_eq!(decide_pause(500, asked(1), 1), asked(1));
        assert_eq!(decide_pause(429, asked(1), TRIES), None);
        for code in [400, 401, 403, 404, 409, 410, 422, 501] {
            assert_eq!(decide_pause(code, asked(1), 1), None, "{code}");
        }
    }

    #[test]
    fn a_failure_keeps_its_code_and_its_words() {
        let words = br#"{"kind":"Status","message":"slow down","reason":"TooManyRequests"}"#;
        assert_eq!(
            (parse_status(429, words).code, parse_status(429, words).message),
            (429, "slow down".into())
        );
        assert_eq!(parse_status(503, b" upstream is gone\n").message, "upstream is gone");
        assert_eq!(parse_seconds(" 7 "), Some(Duration::from_secs(7)));
        assert_eq!(parse_seconds("Mon, 30 Nov 2026 03:41:36 GMT"), None);
    }
}
