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
            IdError(format!("{text:?} is no instant: write RFC 3339, as 2026-01-31T09:00:00Z"))
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

    /// The real clock, whole seconds. Only `main.rs` and tests of effects ask for it.
    #[must_use]
    pub fn clock() -> Self {
        Self::from_unix(Timestamp::now().as_second())
    }

    /// This instant and `span` later; saturates at the end of time.
    #[must_use]
    pub fn plus(self, span: Span) -> Self {
        let seconds = i64::try_from(span.seconds()).unwrap_or(i64::MAX);
        Self(self.0.checked_add(jiff::SignedDuration::from_secs(seconds)).unwrap_or(Timestamp::MAX))
    }

    /// Whole seconds from `earlier` to this instant; 0 when it is not later.
    #[must_use]
    pub fn since(self, earlier: Self) -> u64 {
        u64::try_from(self.0.duration_since(earlier.0).as_secs()).unwrap_or(0)
    }

    /// Cut to the whole second, as Kubernetes stores its times.
    #[must_use]
    pub fn floor(self) -> Self {
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

/// How far a clock may be off before a time ahead of it counts as a lie: five minutes (`promotion.md`, "Clocks lie").
pub const SKEW: Span = Span(300);

/// A span of time in whole seconds, never negative. The grammar is Go's (`90m`, `1h30m`, whole numbers) plus
/// `d` for 24 hours, and `0`. Units from `d` down to `s`, each at most once, in falling order.
///
/// ```
/// use expedite::model::time::Span;
/// assert_eq!(Span::parse("1h30m").unwrap().seconds(), 5400);
/// assert_eq!(Span::parse("1d12h").unwrap().seconds(), 36 * 3600);
/// assert_eq!(Span::parse("0").unwrap().seconds(), 0);
/// for bad in ["", "86400", "P1D", "-1h", " 24h ", "24H", "1h1h", "1m1h", "h"] {
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
    pub const fn of_seconds(seconds: u64) -> Self {
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
        let wrong =
            |why: &str| IdError(format!("{text:?} is no duration: {why}; write 90m, 24h, 1h30m, 7d or 0"));
        if text == "0" {
            return Ok(Self(0));
        }
        if text.starts_with('-') {
            return Err(wrong("it is negative"));
        }
        let mut total: u64 = 0;
        let mut rest = text;
        let mut last_unit = u64::MAX;
        while !rest.is_empty() {
            let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
            if digits == 0 {
                return Err(wrong("a number is missing"));
            }
            let number: u64 = rest[..digits].parse().map_err(|_| wrong("a number is too large"))?;
            rest = &rest[digits..];
            let unit = match rest.bytes().next() {
                Some(b'd') => 86_400,
                Some(b'h') => 3_600,
                Some(b'm') => 60,
                Some(b's') => 1,
                Some(b'.') => return Err(wrong("fractions are not taken")),
                Some(_) => return Err(wrong("units are d, h, m and s")),
                None => return Err(wrong("a unit is missing")),
            };
            rest = &rest[1..];
            if unit >= last_unit {
                return Err(wrong("units go from large to small, each once"));
            }
            last_unit = unit;
            total = number
                .checked_mul(unit)
                .and_then(|n| total.checked_add(n))
                .filter(|n| *n <= 100 * 366 * 86_400)
                .ok_or_else(|| wrong("it is longer than a hundred years"))?;
        }
        if text.is_empty() {
            return Err(wrong("it is empty"));
        }
        Ok(Self(total))
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
