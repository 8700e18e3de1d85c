//! Windows and freezes over real calendars: is it open now, and when next.
//!
//! A window is judged by the local time of its time zone: an instant is inside if the local time is from
//! `from` (inclusive) to `to` (exclusive). `to` not after `from` runs past midnight and belongs to the day it
//! starts; `from` equal to `to` is the whole 24 hours; `24:00` may be written for `to`. So, on a day the
//! clocks change: a local time that is skipped is never inside, one that occurs twice is inside twice. No
//! windows at all: always open. Freezes are instants, and take precedence.
//!
//! Time zone rules are those compiled into the program, never the machine's: the same build decides the
//! same everywhere. Knows nothing of Orders.

use crate::model::environment::Freeze;
use crate::model::order::Window;
use crate::model::time::{Span, Time};
use jiff::civil::{Date, Weekday};
use jiff::tz::{AmbiguousOffset, TimeZone, TimeZoneDatabase};
use jiff::{Timestamp, ToSpan};
use std::fmt;

/// How far ahead an opening is looked for. If there is none until then, the answer is "never".
pub const HORIZON: Span = Span::from_seconds(400 * 86_400);

/// Whether it is open at an instant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CalendarState {
    /// Inside this window (its written form), or none is configured.
    Yes(Option<String>),
    No {
        /// The first instant, within [`HORIZON`], at which it is inside a window and outside every freeze.
        next: Option<Time>,
        /// Why it is closed now; does not change from run to run.
        why: String,
    },
}

/// What is wrong with a window or freeze as written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CalendarError {
    /// `windows[1].timezone`, `freezes[0].to`: below the list's owner.
    pub field: String,
    /// The cause, quoting the text.
    pub cause: String,
}

impl fmt::Display for CalendarError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.cause)
    }
}

/// Windows and freezes, checked once.
#[derive(Debug, Clone)]
pub struct Calendar {
    windows: Vec<ParsedWindow>,
    freezes: Vec<Freeze>,
}

#[derive(Debug, Clone)]
struct ParsedWindow {
    zone: TimeZone,
    /// By ISO weekday, Monday first.
    days: [bool; 7],
    /// Minutes of the day.
    from: i16,
    /// Minutes of the day, up to 1440.
    to: i16,
    text: String,
}

/// Days as they are written.
pub const DAYS: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];

impl Calendar {
    /// Checks windows and freezes as written.
    ///
    /// # Errors
    /// All problems at once: unknown zones, days and times, a freeze that ends before it begins.
    pub fn new(windows: &[Window], freezes: &[Freeze]) -> Result<Self, Vec<CalendarError>> {
        let mut errors = Vec::new();
        let mut parsed = Vec::new();
        for (index, window) in windows.iter().enumerate() {
            match ParsedWindow::new(window) {
                Ok(window) => parsed.push(window),
                Err(wrong) => errors.extend(wrong.into_iter().map(|(field, cause)| CalendarError {
                    field: format!("windows[{index}].{field}"),
                    cause,
                })),
            }
        }
        for (index, freeze) in freezes.iter().enumerate() {
            if freeze.to <= freeze.from {
                errors.push(CalendarError {
                    field: format!("freezes[{index}].to"),
                    cause: format!("{} is not after from, {}", freeze.to, freeze.from),
                });
            }
        }
        if errors.is_empty() { Ok(Self { windows: parsed, freezes: freezes.to_vec() }) } else { Err(errors) }
    }

    /// Whether it is open at `now`, and otherwise when next and why not.
    #[must_use]
    pub fn judge_open_at(&self, now: Time) -> CalendarState {
        let freeze = self.find_freeze_at(now);
        let window = self.windows.iter().find(|w| w.is_inside(now.timestamp()));
        match (freeze, window) {
            (None, Some(window)) => CalendarState::Yes(Some(window.text.clone())),
            (None, None) if self.windows.is_empty() => CalendarState::Yes(None),
            (Some(freeze), _) => {
                let reason =
                    if freeze.reason.is_empty() { String::new() } else { format!(" ({})", freeze.reason) };
                let why = format!("a freeze from {} to {}{reason}", freeze.from, freeze.to);
                CalendarState::No { next: self.find_next_opening(now), why }
            }
            (None, None) => {
                let texts: Vec<&str> = self.windows.iter().map(|w| w.text.as_str()).collect();
                let why = match texts.as_slice() {
                    [one] => format!("outside the window {one}"),
                    many => format!("outside the windows {}", many.join("; ")),
                };
                CalendarState::No { next: self.find_next_opening(now), why }
            }
        }
    }

    /// The freeze that is on at `now`: of several, the one that ends last.
    fn find_freeze_at(&self, now: Time) -> Option<&Freeze> {
        self.freezes.iter().filter(|f| f.from <= now && now < f.to).max_by_key(|f| f.to)
    }

    /// The first open instant after `now`, where it is closed. Nothing changes between two change points
    /// (edges of windows, midnights, clock changes, ends of freezes), so only those are looked at.
    fn find_next_opening(&self, now: Time) -> Option<Time> {
        let horizon = now.add_span(HORIZON);
        let mut at = now;
        loop {
            at = match self.find_freeze_at(at) {
                Some(freeze) => freeze.to,
                None => {
                    let edges = self.windows.iter().filter_map(|w| w.find_next_edge(at.timestamp()));
                    Time::from_timestamp(edges.min()?)
                }
            };
            if at > horizon {
                return None;
            }
            let inside = self.windows.is_empty() || self.windows.iter().any(|w| w.is_inside(at.timestamp()));
            if inside && self.find_freeze_at(at).is_none() {
                return Some(at);
            }
        }
    }
}

impl ParsedWindow {
    fn new(window: &Window) -> Result<Self, Vec<(String, String)>> {
        let mut errors = Vec::new();
        let zone = TimeZoneDatabase::bundled().get(&window.timezone).map_err(|_| {
            let text = &window.timezone;
            errors.push((
                "timezone".into(),
                format!("{text:?} is not an IANA time zone; write for example Europe/Zurich or UTC"),
            ));
        });
        let mut days = [window.days.is_empty(); 7];
        for (index, day) in window.days.iter().enumerate() {
            match DAYS.iter().position(|d| d == day) {
                Some(known) => days[known] = true,
                None => {
                    let cause = format!("{day:?} is not a day: write one of {}", DAYS.join(", "));
                    errors.push((format!("days[{index}]"), cause));
                }
            }
        }
        let mut minute = |field: &str, text: &str, last: i16| {
            parse_minute_of_day(text).filter(|m| *m <= last).or_else(|| {
                let cause = format!("{text:?} is not a time of day: write HH:MM, for example 09:00");
                errors.push((field.to_owned(), cause));
                None
            })
        };
        let from = minute("from", &window.from, 1439);
        let to = minute("to", &window.to, 1440);
        match (zone, from, to) {
            (Ok(zone), Some(from), Some(to)) if errors.is_empty() => {
                let text = format_window(window, &days);
                Ok(Self { zone, days, from, to, text })
            }
            _ => Err(errors),
        }
    }

    fn admits_day(&self, day: Weekday) -> bool {
        self.days[day.to_monday_zero_offset() as usize]
    }

    /// Whether the wall clock of the zone shows a time inside.
    fn is_inside(&self, at: Timestamp) -> bool {
        let wall = self.zone.to_datetime(at);
        let minute = i16::from(wall.hour()) * 60 + i16::from(wall.minute());
        let today = self.admits_day(wall.weekday());
        if self.from < self.to {
            return today && self.from <= minute && minute < self.to;
        }
        let begun_yesterday = self.admits_day(wall.weekday().previous());
        (today && self.from <= minute) || (begun_yesterday && minute < self.to)
    }

    /// The first instant after `at` at which `is_inside` can change.
    fn find_next_edge(&self, at: Timestamp) -> Option<Timestamp> {
        let clock_change = self.zone.following(at).next().map(|t| t.timestamp());
        let today = self.zone.to_datetime(at).date();
        // Yesterday's and the day after tomorrow's edges: a clock change can move the date back or skip one.
        let edges = (-1..=2)
            .filter_map(|offset| today.checked_add(i64::from(offset).days()).ok())
            .flat_map(|date| [0, self.from, self.to % 1440].map(|minute| (date, minute)))
            .flat_map(|(date, minute)| self.find_instants(date, minute))
            .flatten();
        edges.chain(clock_change).filter(|edge| *edge > at).min()
    }

    /// When the wall clock shows this: once, twice, or never.
    fn find_instants(&self, date: Date, minute: i16) -> [Option<Timestamp>; 2] {
        let hour = i8::try_from(minute / 60).unwrap_or(0);
        let wall = date.at(hour, i8::try_from(minute % 60).unwrap_or(0), 0, 0);
        match self.zone.to_ambiguous_timestamp(wall).offset() {
            AmbiguousOffset::Unambiguous { offset } => [offset.to_timestamp(wall).ok(), None],
            AmbiguousOffset::Fold { before, after } => {
                [before.to_timestamp(wall).ok(), after.to_timestamp(wall).ok()]
            }
            // The skipped edge is at the clock change itself, which is an edge anyway.
            AmbiguousOffset::Gap { .. } => [None, None],
        }
    }
}

/// `HH:MM` in minutes; `24:00` is 1440.
fn parse_minute_of_day(text: &str) -> Option<i16> {
    let (hour, minute) = text.split_once(':')?;
    let two_digits = |t: &str| t.len() == 2 && t.bytes().all(|b| b.is_ascii_digit());
    if !two_digits(hour) || !two_digits(minute) {
        return None;
    }
    let (hour, minute): (i16, i16) = (hour.parse().ok()?, minute.parse().ok()?);
    let whole = hour * 60 + minute;
    (minute < 60 && whole <= 1440).then_some(whole)
}

/// `Mon, Tue 09:00 to 16:00 Europe/Zurich`.
fn format_window(window: &Window, days: &[bool; 7]) -> String {
    let days: Vec<&str> = DAYS.iter().zip(days).filter(|(_, on)| **on).map(|(day, _)| *day).collect();
    let days = if days.len() == 7 { "every day".to_owned() } else { days.join(", ") };
    format!("{days} {} to {} {}", window.from, window.to, window.timezone)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;
    use proptest::prelude::*;

    fn window(timezone: &str, days: &[&str], from: &str, to: &str) -> Window {
        Window {
            timezone: timezone.into(),
            days: days.iter().map(|d| (*d).to_owned()).collect(),
            from: from.into(),
            to: to.into(),
        }
    }
    fn freeze(from: &str, to: &str, reason: &str) -> Freeze {
        Freeze { from: time(from), to: time(to), reason: reason.into() }
    }
    fn time(text: &str) -> Time {
        Time::parse(text).unwrap()
    }
    fn next(calendar: &Calendar, now: &str) -> Option<String> {
        match calendar.judge_open_at(time(now)) {
            CalendarState::Yes(_) => Some("open".into()),
            CalendarState::No { next, .. } => next.map(|t| t.to_string()),
        }
    }

    #[test]
    fn no_windows_and_no_freezes_is_always_open() {
        let calendar = Calendar::new(&[], &[]).unwrap();
        assert_eq!(calendar.judge_open_at(time("2026-01-01T00:00:00Z")), CalendarState::Yes(None));
    }

    #[test]
    fn office_hours_end_before_their_last_minute_and_wait_over_the_weekend() {
        let days = ["Mon", "Tue", "Wed", "Thu"];
        let calendar = Calendar::new(&[window("Europe/Zurich", &days, "09:00", "16:00")], &[]).unwrap();
        // 2026-01-08 is a Thursday; Zurich is UTC+1.
        assert_eq!(next(&calendar, "2026-01-08T07:59:59Z").unwrap(), "2026-01-08T08:00:00Z");
        assert_eq!(next(&calendar, "2026-01-08T08:00:00Z").unwrap(), "open");
        assert_eq!(next(&calendar, "2026-01-08T14:59:59.9Z").unwrap(), "open");
        assert_eq!(next(&calendar, "2026-01-08T15:00:00Z").unwrap(), "2026-01-12T08:00:00Z");
        let CalendarState::No { why, .. } = calendar.judge_open_at(time("2026-01-09T12:00:00Z")) else {
            panic!()
        };
        assert_eq!(why, "outside the window Mon, Tue, Wed, Thu 09:00 to 16:00 Europe/Zurich");
    }

    #[test]
    fn past_midnight_belongs_to_the_day_it_starts() {
        let calendar = Calendar::new(&[window("UTC", &["Fri"], "22:00", "02:00")], &[]).unwrap();
        assert_eq!(next(&calendar, "2026-01-09T23:00:00Z").unwrap(), "open", "Friday night");
        assert_eq!(next(&calendar, "2026-01-10T01:59:59Z").unwrap(), "open", "Saturday morning");
        assert_eq!(next(&calendar, "2026-01-10T02:00:00Z").unwrap(), "2026-01-16T22:00:00Z");
        assert_eq!(
            next(&calendar, "2026-01-09T01:00:00Z").unwrap(),
            "2026-01-09T22:00:00Z",
            "Friday morning is Thursday's night"
        );
    }

    #[test]
    fn equal_edges_are_the_whole_day_from_there() {
        let calendar = Calendar::new(&[window("UTC", &["Sat"], "06:00", "06:00")], &[]).unwrap();
        assert_eq!(next(&calendar, "2026-01-10T05:59:00Z").unwrap(), "2026-01-10T06:00:00Z");
        assert_eq!(next(&calendar, "2026-01-11T05:59:00Z").unwrap(), "open");
        assert_eq!(next(&calendar, "2026-01-11T06:00:00Z").unwrap(), "2026-01-17T06:00:00Z");
        let evening = Calendar::new(&[window("UTC", &["Sat"], "20:00", "24:00")], &[]).unwrap();
        assert_eq!(next(&evening, "2026-01-10T23:59:59Z").unwrap(), "open");
        assert_eq!(next(&evening, "2026-01-11T00:00:00Z").unwrap(), "2026-01-17T20:00:00Z");
    }

    #[test]
    fn the_switch_to_summer_time_skips_what_the_wall_clock_skips() {
        // Zurich, 2026-03-29: 02:00 becomes 03:00 at 01:00Z.
        let inside = Calendar::new(&[window("Europe/Zurich", &["Sun"], "02:00", "02:45")], &[]).unwrap();
        assert_eq!(next(&inside, "2026-03-29T00:30:00Z").unwrap(), "2026-04-05T00:00:00Z");
        let across = Calendar::new(&[window("Europe/Zurich", &["Sun"], "02:30", "04:00")], &[]).unwrap();
        assert_eq!(next(&across, "2026-03-29T00:59:59Z").unwrap(), "2026-03-29T01:00:00Z");
        assert_eq!(next(&across, "2026-03-29T01:59:59Z").unwrap(), "open");
        assert_eq!(next(&across, "2026-03-29T02:00:00Z").unwrap(), "2026-04-05T00:30:00Z");
        let night = Calendar::new(&[window("Europe/Zurich", &["Sat"], "22:00", "02:30")], &[]).unwrap();
        assert_eq!(next(&night, "2026-03-29T00:59:59Z").unwrap(), "open");
        assert_eq!(next(&night, "2026-03-29T01:00:00Z").unwrap(), "2026-04-04T20:00:00Z");
    }

    #[test]
    fn the_switch_back_shows_one_hour_twice_and_is_inside_twice() {
        // Zurich, 2026-10-25: 03:00 becomes 02:00 at 01:00Z.
        let calendar = Calendar::new(&[window("Europe/Zurich", &["Sun"], "02:00", "02:30")], &[]).unwrap();
        assert_eq!(next(&calendar, "2026-10-24T23:59:59Z").unwrap(), "2026-10-25T00:00:00Z");
        assert_eq!(next(&calendar, "2026-10-25T00:30:00Z").unwrap(), "2026-10-25T01:00:00Z");
        assert_eq!(next(&calendar, "2026-10-25T01:30:00Z").unwrap(), "2026-11-01T01:00:00Z");
        let hours = Calendar::new(&[window("Europe/Zurich", &["Mon"], "09:00", "10:00")], &[]).unwrap();
        assert_eq!(next(&hours, "2026-10-24T12:00:00Z").unwrap(), "2026-10-26T08:00:00Z", "winter time");
    }

    #[test]
    fn a_freeze_wins_over_every_window_and_says_why() {
        let freezes = [
            freeze("2026-12-20T00:00:00Z", "2027-01-04T06:00:00Z", "year end"),
            freeze("2027-01-04T06:00:00Z", "2027-01-04T09:30:00Z", ""),
        ];
        let calendar = Calendar::new(&[window("UTC", &["Mon"], "08:00", "10:00")], &freezes).unwrap();
        assert_eq!(next(&calendar, "2026-12-21T09:00:00Z").unwrap(), "2027-01-04T09:30:00Z");
        let CalendarState::No { why, .. } = calendar.judge_open_at(time("2026-12-21T09:00:00Z")) else {
            panic!()
        };
        assert_eq!(why, "a freeze from 2026-12-20T00:00:00Z to 2027-01-04T06:00:00Z (year end)");
        let bare = Calendar::new(&[], &freezes).unwrap();
        assert_eq!(next(&bare, "2026-12-21T09:00:00Z").unwrap(), "2027-01-04T09:30:00Z");
        assert_eq!(next(&bare, "2026-12-19T23:59:59Z").unwrap(), "open");
    }

    #[test]
    fn never_is_said_within_the_horizon() {
        let freezes = [freeze("2026-01-01T00:00:00Z", "2029-01-01T00:00:00Z", "")];
        let calendar = Calendar::new(&[window("UTC", &[], "08:00", "10:00")], &freezes).unwrap();
        assert_eq!(next(&calendar, "2026-02-01T09:00:00Z"), None);
    }

    #[test]
    fn a_window_that_is_skipped_whole_waits_for_the_next_week() {
        // Lord Howe moves by half an hour; on 2026-10-04 this window is exactly what is skipped.
        let calendar =
            Calendar::new(&[window("Australia/Lord_Howe", &["Sun"], "02:00", "02:30")], &[]).unwrap();
        assert_eq!(next(&calendar, "2026-10-03T12:00:00Z").unwrap(), "2026-10-10T15:00:00Z");
    }

    #[test]
    fn what_is_written_wrong_is_said_all_at_once() {
        let windows = [
            window("Europe/Zürich", &["Mon", "monday"], "9:00", "25:00"),
            window("UTC", &[], "24:00", "24:01"),
            window("", &[], "00:00", "00:60"),
        ];
        let freezes = [freeze("2026-01-02T00:00:00Z", "2026-01-02T00:00:00Z", "")];
        let errors = Calendar::new(&windows, &freezes).unwrap_err();
        let fields: Vec<&str> = errors.iter().map(|e| e.field.as_str()).collect();
        assert_eq!(
            fields,
            [
                "windows[0].timezone",
                "windows[0].days[1]",
                "windows[0].from",
                "windows[0].to",
                "windows[1].from",
                "windows[1].to",
                "windows[2].timezone",
                "windows[2].to",
                "freezes[0].to",
            ]
        );
        assert!(
            errors[1].to_string().contains("\"monday\" is not a day: write one of Mon, Tue"),
            "{}",
            errors[1]
        );
    }

    /// The naive model: minute by minute, a zoned clock, no search.
    fn naive_open(windows: &[Window], freezes: &[Freeze], at: Timestamp) -> bool {
        let frozen = freezes.iter().any(|f| f.from.timestamp() <= at && at < f.to.timestamp());
        let inside = |w: &Window| {
            let wall = at.to_zoned_datetime(TimeZoneDatabase::bundled().get(&w.timezone).unwrap());
            let clock = wall.strftime("%H:%M").to_string();
            let on = |name: String| w.days.is_empty() || w.days.contains(&name);
            let today = on(wall.strftime("%a").to_string());
            let yesterday = on(wall.date().yesterday().unwrap().strftime("%a").to_string());
            if w.from < w.to {
                today && w.from <= clock && clock < w.to
            } else {
                (today && w.from <= clock) || (yesterday && clock < w.to)
            }
        };
        !frozen && (windows.is_empty() || windows.iter().any(inside))
    }

    /// Days around clock changes: both switches, half an hour, at midnight, a day that was skipped.
    const CHANGES: [(&str, &str); 8] = [
        ("Europe/Zurich", "2026-03-29T01:00:00Z"),
        ("Europe/Zurich", "2026-10-25T01:00:00Z"),
        ("America/New_York", "2026-11-01T06:00:00Z"),
        ("Australia/Lord_Howe", "2026-04-04T15:00:00Z"),
        ("Australia/Lord_Howe", "2026-10-03T15:30:00Z"),
        ("America/Sao_Paulo", "2018-11-04T03:00:00Z"),
        ("Pacific/Apia", "2011-12-30T10:00:00Z"),
        ("Asia/Beirut", "2026-03-28T22:00:00Z"),
    ];

    fn any_window(zone: &'static str) -> impl Strategy<Value = Window> {
        let quarter = (0u32..96).prop_map(|q| format!("{:02}:{:02}", q / 4, q % 4 * 15));
        let end = prop_oneof![9 => quarter.clone(), 1 => Just("24:00".to_owned())];
        let days = proptest::sample::subsequence(DAYS.to_vec(), 0..=7);
        (days, quarter, end).prop_map(move |(days, from, to)| window(zone, &days, &from, &to))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(96))]
        #[test]
        fn agrees_with_a_clock_read_minute_by_minute(
            (windows, freezes, start) in (0..CHANGES.len()).prop_flat_map(|index| {
                let (zone, change) = CHANGES[index];
                let change = Time::parse(change).unwrap().unix();
                let windows = proptest::collection::vec(any_window(zone), 0..3);
                let freeze = (-2_000i64..2_000, 1i64..900).prop_map(move |(from, length)| Freeze {
                    from: Time::from_unix(change + from * 60),
                    to: Time::from_unix(change + (from + length) * 60),
                    reason: String::new(),
                });
                (windows, proptest::collection::vec(freeze, 0..3), (-1_600i64..400).prop_map(move |m| change + m * 60))
            })
        ) {
            let calendar = Calendar::new(&windows, &freezes).unwrap();
            let minutes = 9 * 24 * 60;
            let at = |minute: i64| Timestamp::from_second(start + minute * 60).unwrap();
            let expected = (0..minutes).map(at).find(|t| naive_open(&windows, &freezes, *t));
            match calendar.judge_open_at(Time::from_unix(start)) {
                CalendarState::Yes(_) => prop_assert_eq!(expected, Some(at(0))),
                CalendarState::No { next: Some(next), .. } if next.timestamp() < at(minutes) => {
                    prop_assert_eq!(expected, Some(next.timestamp()));
                }
                CalendarState::No { .. } => prop_assert_eq!(expected, None),
            }
        }
    }
}
