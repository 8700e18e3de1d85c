//! Whether and when to retry a refused request. Pure.

use std::time::Duration;

/// What a response means for a retry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RetryPace {
    /// The response is final.
    Settled,
    /// Refused for now; retry after this time, if the forge gives one.
    Refused(Option<Duration>),
    /// The forge failed; it is unknown whether it carried out the request.
    Failed(Option<Duration>),
}

/// Pause that GitHub asks for at a secondary limit without a stated time.
const SECONDARY: Duration = Duration::from_secs(60);

/// Reads a response. `header` gives a header's value by its lower-case name, `now` is in seconds since 1970.
///
/// Sources: GitHub, "Rate limits for the REST API" (403 or 429; `retry-after`, else `x-ratelimit-reset` where
/// `x-ratelimit-remaining` is 0, else a minute); GitLab, "Rate limits" (429; `Retry-After`, `RateLimit-Reset`).
pub(super) fn judge_pace<'a>(
    status: u16,
    header: impl Fn(&str) -> Option<&'a str>,
    body: &str,
    now: u64,
) -> RetryPace {
    let number = |name: &str| header(name).and_then(|value| value.trim().parse::<u64>().ok());
    let asked = number("retry-after").map(Duration::from_secs);
    let spent = |name: &str| number(name) == Some(0);
    let reset = || {
        let spent = spent("x-ratelimit-remaining") || spent("ratelimit-remaining");
        let at = number("x-ratelimit-reset").or_else(|| number("ratelimit-reset"));
        // One second more, for clock differences and the forge's rounding.
        at.filter(|_| spent).map(|at| Duration::from_secs(at.saturating_sub(now).saturating_add(1)))
    };
    let secondary = || body.to_ascii_lowercase().contains("rate limit").then_some(SECONDARY);
    match status {
        429 => RetryPace::Refused(asked.or_else(reset).or_else(secondary)),
        403 => match asked.or_else(reset).or_else(secondary) {
            Some(wait) => RetryPace::Refused(Some(wait)),
            None => RetryPace::Settled,
        },
        408 | 500 | 502..=504 => RetryPace::Failed(asked),
        _ => RetryPace::Settled,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;

    fn read(status: u16, headers: &[(&str, &str)], body: &str) -> RetryPace {
        let header = |name: &str| headers.iter().find(|(n, _)| *n == name).map(|(_, value)| *value);
        judge_pace(status, header, body, 1_000)
    }

    #[test]
    fn limits_are_told_from_a_right_that_is_missing() {
        let seconds = |n| RetryPace::Refused(Some(Duration::from_secs(n)));
        assert_eq!(read(403, &[], "Resource not accessible by integration"), RetryPace::Settled);
        assert_eq!(
            read(403, &[("x-ratelimit-remaining", "4999"), ("x-ratelimit-reset", "2000")], ""),
            RetryPace::Settled
        );
        assert_eq!(
            read(403, &[("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "1030")], ""),
            seconds(31)
        );
        assert_eq!(read(403, &[("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "10")], ""), seconds(1));
        assert_eq!(
            read(403, &[("retry-after", "7")], "You have exceeded a secondary rate limit"),
            seconds(7)
        );
        assert_eq!(read(403, &[], "You have exceeded a secondary rate limit"), seconds(60));
        assert_eq!(read(429, &[("retry-after", "2")], ""), seconds(2));
        assert_eq!(read(429, &[("ratelimit-remaining", "0"), ("ratelimit-reset", "1009")], ""), seconds(10));
        assert_eq!(read(429, &[("retry-after", "soon")], ""), RetryPace::Refused(None));
    }

    #[test]
    fn a_failing_forge_leaves_open_what_it_did() {
        assert_eq!(read(502, &[], "<html>"), RetryPace::Failed(None));
        assert_eq!(read(503, &[("retry-after", "1")], ""), RetryPace::Failed(Some(Duration::from_secs(1))));
        for settled in [200, 201, 204, 301, 401, 404, 422, 501] {
            assert_eq!(read(settled, &[("retry-after", "1")], ""), RetryPace::Settled, "{settled}");
        }
    }
}
