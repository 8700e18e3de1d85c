//! Instants and spans: the only place that knows calendars.

use crate::model::id::IdError;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::fmt;

/// An instant, written in RFC 3339. Compared as an instant, never as text; printed in UTC.
///
/// ```
/// use expedite::model::time::Time;
/// let a = Time::parse("2026-01-02T00:00:00-05:00").unwrap();
/// let b = Time::parse("2026-01-02T04:30:00Z").unwrap();
/// assert!(b < a);
/// assert_eq!(a.to_string(), "2026-01-02T05:00:00Z");
/// assert!(Time::parse("2026-01-02").is_err());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Time(Timestamp);

impl Time {
    /// Parses RFC 3339, with an offset. A leap second (`:60`) is read as the second before it.
    ///
    /// # Errors
    /// Quotes the text and says what is wanted.
    pub fn parse(text: &str) -> Result<Self, IdError> {
        let shape = text.len() >= 20 && matches!(text.as_bytes()[10], b'T' | b't');
        let parsed = if shape { text.parse::<Timestamp>().ok() } else { None };
        parsed.map(Self).ok_or_else(|| {
            IdError(format!("{text:?} is not an instant: write RFC 3339, for example 2026-01-31T09:00:00Z"))
        })
    }

    /// Seconds since 1970, for clocks and git.
    #[must_use]
    pub fn unix(self) -> i64 {
        self.0.as_second()
    }

    /// An instant from whole seconds since 1970; out of range becomes 1970.
    #[must_use]
    pub fn from_unix(seconds: i64) -> Self {
        Self(Timestamp::from_second(seconds).unwrap_or(Timestamp::UNIX_EPOCH))
    }

    /// The real clock in whole seconds. Only `main.rs` and tests of effects use it.
    #[must_use]
    pub fn read_clock() -> Self {
        Self::from_unix(Timestamp::now().as_second())
    }

    /// This instant and `span` later; saturates at the end of time.
    #[must_use]
    pub fn add_span(self, span: Span) -> Self {
        let seconds = i64::try_from(span.seconds()).unwrap_or(i64::MAX);
        Self(self.0.checked_add(jiff::SignedDuration::from_secs(seconds)).unwrap_or(Timestamp::MAX))
    }

    /// Whole seconds from `earlier` to this instant; 0 when it is not later.
    #[must_use]
    pub fn seconds_since(self, earlier: Self) -> u64 {
        u64::try_from(self.0.duration_since(earlier.0).as_secs()).unwrap_or(0)
    }

    /// Cut to the whole second, as Kubernetes stores its times.
    #[must_use]
    pub fn cut_to_second(self) -> Self {
        Self::from_unix(self.unix())
    }

    /// The instant itself, for calendars (windows).
    #[must_use]
    pub fn timestamp(self) -> Timestamp {
        self.0
    }

    /// From jiff's instant.
    #[must_use]
    pub fn from_timestamp(t: Timestamp) -> Self {
        Self(t)
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0.to_string())
    }
}
impl TryFrom<String> for Time {
    type Error = IdError;
    fn try_from(text: String) -> Result<Self, IdError> {
        Self::parse(&text)
    }
}
impl From<Time> for String {
    fn from(value: Time) -> String {
        value.to_string()
    }
}

/// How far ahead of the clock a time may be before it counts as wrong: five minutes
/// (`docs/design/promotion.md#clocks-lie`).
pub const SKEW: Span = Span(300);

/// A span of time in whole seconds, never negative. The grammar is that of Go's `time.ParseDuration` (`90m`,
/// `1h30m`, `1.5h`; units `h`, `m`, `s`, `ms`, `us`, `ns`, in any order and number) plus `d` for 24 hours,
/// and `0`. Fractions of a second are an error; they are never rounded.
///
/// ```
/// use expedite::model::time::Span;
/// for (text, seconds) in
///     [("1h30m", 5_400), ("1.5h", 5_400), (".5d", 43_200), ("1d12h", 129_600), ("1500ms500ms", 2), ("0", 0)]
/// {
///     assert_eq!(Span::parse(text).unwrap().seconds(), seconds, "{text}");
/// }
/// for bad in ["", "86400", "P1D", "-1h", " 24h ", "24H", "h", ".h", "1.5", "1.5s", "1,5h", "1w"] {
///     assert!(Span::parse(bad).is_err(), "{bad:?}");
/// }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, Default)]
#[serde(try_from = "String", into = "String")]
pub struct Span(u64);

impl Span {
    /// No time at all.
    pub const ZERO: Self = Self(0);

    /// A span of whole seconds.
    #[must_use]
    pub const fn from_seconds(seconds: u64) -> Self {
        Self(seconds)
    }

    /// The whole seconds.
    #[must_use]
    pub const fn seconds(self) -> u64 {
        self.0
    }

    /// Parses the grammar above.
    ///
    /// # Errors
    /// Quotes the text and shows the grammar. Nothing that fails to parse becomes a zero.
    pub fn parse(text: &str) -> Result<Self, IdError> {
        let wrong = |why: &str| {
            IdError(format!("{text:?} is not a duration: {why}; write 90m, 24h, 1h30m, 1.5h, 7d or 0"))
        };
        if text == "0" {
            return Ok(Self(0));
        }
        if text.starts_with('-') {
            return Err(wrong("it is negative"));
        }
        let mut rest = text.strip_prefix('+').unwrap_or(text);
        if rest.is_empty() {
            return Err(wrong("it is empty"));
        }
        let mut nanoseconds: u128 = 0;
        while !rest.is_empty() {
            let number = rest.bytes().take_while(|b| b.is_ascii_digit() || *b == b'.').count();
            let (number, after) = rest.split_at(number);
            let unit = after.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(after.len());
            let (unit, after) = after.split_at(unit);
            let unit = parse_unit(unit).map_err(wrong)?;
            nanoseconds += multiply_unit(number, unit).map_err(wrong)?;
            rest = after;
            if nanoseconds > HUNDRED_YEARS {
                return Err(wrong("it is longer than a hundred years"));
            }
        }
        match u64::try_from(nanoseconds / SECOND) {
            Ok(seconds) if nanoseconds.is_multiple_of(SECOND) => Ok(Self(seconds)),
            Ok(_) | Err(_) => Err(wrong("it is not a whole number of seconds")),
        }
    }
}

/// In nanoseconds.
const SECOND: u128 = 1_000_000_000;
const HUNDRED_YEARS: u128 = 100 * 366 * 86_400 * SECOND;

fn parse_unit(unit: &str) -> Result<u128, &'static str> {
    match unit {
        "d" => Ok(86_400 * SECOND),
        "h" => Ok(3_600 * SECOND),
        "m" => Ok(60 * SECOND),
        "s" => Ok(SECOND),
        "ms" => Ok(1_000_000),
        // Both micro signs, as Go reads them.
        "us" | "\u{b5}s" | "\u{3bc}s" => Ok(1_000),
        "ns" => Ok(1),
        "" => Err("a unit is missing"),
        _ => Err("units are d, h, m, s, ms, us and ns"),
    }
}

/// A decimal number of units, exactly.
fn multiply_unit(number: &str, unit: u128) -> Result<u128, &'static str> {
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && part.is_empty() {
        return Err("a number is missing");
    }
    if part.contains('.') {
        return Err("a number has two points");
    }
    if whole.len() > 15 || part.len() > 15 {
        return Err("a number is too long");
    }
    let value = |digits: &str| digits.parse::<u128>().unwrap_or(0);
    // 15 digits: the length fits any integer.
    let scale = 10_u128.pow(u32::try_from(part.len()).unwrap_or(0));
    let part = value(part) * unit;
    if part.is_multiple_of(scale) {
        Ok(value(whole) * unit + part / scale)
    } else {
        Err("it is not a whole number of seconds")
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == 0 {
            return f.pad("0");
        }
        let mut text = String::new();
        let mut rest = self.0;
        for (unit, name) in [(86_400, 'd'), (3_600, 'h'), (60, 'm'), (1, 's')] {
            if rest >= unit {
                text.push_str(&format!("{}{name}", rest / unit));
                rest %= unit;
            }
        }
        f.pad(&text)
    }
}
impl TryFrom<String> for Span {
    type Error = IdError;
    fn try_from(text: String) -> Result<Self, IdError> {
        Self::parse(&text)
    }
}
impl From<Span> for String {
    fn from(value: Span) -> String {
        value.to_string()
    }
}
