//! How long to wait before another try.

use jiff::Timestamp;
use jiff::fmt::rfc2822::DateTimeParser;
use rand::RngExt;
use reqwest::header::{self, HeaderMap, HeaderName};
use std::time::Duration;

/// What `Retry-After` asks for: seconds, or a date, which is compared with the answer's own `Date` where it
/// has one (clocks differ). `None`: nothing is asked, or nothing that can be read.
pub(crate) fn parse_retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = |name: HeaderName| headers.get(name).and_then(|v| v.to_str().ok()).map(str::trim);
    let asked = text(header::RETRY_AFTER)?;
    if !asked.is_empty() && asked.bytes().all(|b| b.is_ascii_digit()) {
        // More digits than fit: for ever.
        return Some(Duration::from_secs(asked.parse().unwrap_or(u64::MAX)));
    }
    let date = |text: &str| DateTimeParser::new().parse_timestamp(text).ok();
    let until = date(asked)?;
    let now = text(header::DATE).and_then(date).unwrap_or_else(Timestamp::now);
    Some(Duration::try_from(until.duration_since(now)).unwrap_or(Duration::ZERO))
}

/// The pause after try number `n`: doubling from `backoff`, up to half as much again at random so that many
/// runs do not come back together; never less than what was asked for.
pub(crate) fn compute_pause(backoff: Duration, n: u32, asked: Option<Duration>) -> Duration {
    let doubled = backoff.saturating_mul(2_u32.saturating_pow(n.saturating_sub(1).min(10)));
    let jitter = doubled.mul_f64(rand::rng().random_range(0.0..0.5));
    asked.unwrap_or_default().max(doubled.saturating_add(jitter))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;

    fn asked(pairs: &[(&str, &str)]) -> Option<Duration> {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(HeaderName::from_bytes(name.as_bytes()).unwrap(), value.parse().unwrap());
        }
        parse_retry_after(&headers)
    }

    #[test]
    fn case_61_retry_after_as_seconds_date_or_nonsense() {
        assert_eq!(asked(&[("retry-after", "2")]), Some(Duration::from_secs(2)));
        assert_eq!(asked(&[("retry-after", "86400")]), Some(Duration::from_secs(86400)));
        assert_eq!(asked(&[("retry-after", "99999999999999999999")]), Some(Duration::from_secs(u64::MAX)));
        let date =
            [("date", "Mon, 30 Nov 2026 03:41:06 GMT"), ("retry-after", "Mon, 30 Nov 2026 03:41:36 GMT")];
        assert_eq!(asked(&date), Some(Duration::from_secs(30)));
        let past =
            [("date", "Mon, 30 Nov 2026 03:41:06 GMT"), ("retry-after", "Mon, 30 Nov 2026 03:40:00 GMT")];
        assert_eq!(asked(&past), Some(Duration::ZERO));
        for nonsense in ["", "-1", "soon", "1.5"] {
            assert_eq!(asked(&[("retry-after", nonsense)]), None, "{nonsense}");
        }
        assert_eq!(asked(&[]), None);
    }

    #[test]
    fn pauses_grow_and_honour_what_was_asked() {
        let base = Duration::from_millis(100);
        for n in 1..=4 {
            let p = compute_pause(base, n, None);
            let least = base * 2_u32.pow(n - 1);
            assert!(p >= least && p < least * 2, "{n}: {p:?}");
        }
        assert_eq!(compute_pause(base, 1, Some(Duration::from_secs(9))), Duration::from_secs(9));
    }
}
