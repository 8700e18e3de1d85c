//! Tables as kubectl prints them: upper-case headers, columns three spaces apart, `<none>`.

use crate::model::time::Time;
use crate::report::escape;

/// Spaces between columns.
const GAP: usize = 3;
/// Narrowest column, its gap included (kubectl's).
const NARROWEST: usize = 6;
/// Printed for an empty cell.
pub const NONE: &str = "<none>";

/// Rows of cells below a header. Foreign text is neutralised when a row is added.
#[derive(Debug, Clone)]
pub struct Table {
    header: Vec<&'static str>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table without rows.
    #[must_use]
    pub fn new(header: &[&'static str]) -> Self {
        Self { header: header.to_vec(), rows: Vec::new() }
    }

    /// Adds a row; an empty cell is printed as `<none>`, a missing one, too.
    pub fn push_row<S: AsRef<str>>(&mut self, cells: impl IntoIterator<Item = S>) {
        let mut row: Vec<String> = cells
            .into_iter()
            .map(|cell| match escape::escape_line(cell.as_ref()).trim() {
                "" => NONE.to_owned(),
                text => text.to_owned(),
            })
            .collect();
        row.resize(self.header.len(), NONE.to_owned());
        self.rows.push(row);
    }

    /// Whether it has no rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The header, and below it one line per row. No line ends in spaces.
    #[must_use]
    pub fn format_table(&self) -> String {
        let widths: Vec<usize> = (0..self.header.len())
            .map(|column| {
                let cells = self.rows.iter().map(|row| escape::measure_width(&row[column]));
                let widest = cells.chain([self.header[column].len()]).max().unwrap_or(0);
                (widest + GAP).max(NARROWEST)
            })
            .collect();
        let mut out = String::new();
        push_cells(&mut out, &widths, self.header.iter().copied());
        for row in &self.rows {
            push_cells(&mut out, &widths, row.iter().map(String::as_str));
        }
        out
    }
}

fn push_cells<'a>(out: &mut String, widths: &[usize], cells: impl Iterator<Item = &'a str>) {
    let start = out.len();
    for (cell, width) in cells.zip(widths) {
        out.push_str(cell);
        out.extend(std::iter::repeat_n(' ', width.saturating_sub(escape::measure_width(cell))));
    }
    out.truncate(start + out[start..].trim_end().len());
    out.push('\n');
}

/// How long ago `then` was at `now`, as kubectl's AGE column says it: two units at most, the smaller one
/// only while it matters. A time ahead of `now` is `<invalid>`, one that is not known `<unknown>`.
///
/// ```
/// use expedite::{model::time::Time, report::table::format_age};
/// let at = |text| Time::parse(text).unwrap();
/// let now = at("2026-03-10T12:00:00Z");
/// assert_eq!(format_age(Some(at("2026-03-10T08:48:00Z")), now), "3h12m");
/// assert_eq!(format_age(Some(at("2026-02-28T12:00:00Z")), now), "10d");
/// assert_eq!(format_age(None, now), "<unknown>");
/// ```
#[must_use]
pub fn format_age(then: Option<Time>, now: Time) -> String {
    let Some(then) = then else { return "<unknown>".to_owned() };
    if then.unix() > now.unix() + 1 {
        return "<invalid>".to_owned();
    }
    let seconds = now.seconds_since(then);
    let (minutes, hours, days) = (seconds / 60, seconds / 3_600, seconds / 86_400);
    let pair = |large: u64, unit: char, small: u64, part: char| match small {
        0 => format!("{large}{unit}"),
        small => format!("{large}{unit}{small}{part}"),
    };
    match seconds {
        0..120 => format!("{seconds}s"),
        120..600 => pair(minutes, 'm', seconds % 60, 's'),
        600..10_800 => format!("{minutes}m"),
        10_800..28_800 => pair(hours, 'h', minutes % 60, 'm'),
        28_800..172_800 => format!("{hours}h"),
        172_800..691_200 => pair(days, 'd', hours % 24, 'h'),
        691_200..63_072_000 => format!("{days}d"),
        63_072_000..252_288_000 => pair(days / 365, 'y', days % 365, 'd'),
        _ => format!("{}y", days / 365),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;

    #[test]
    fn columns_are_aligned_by_what_a_terminal_shows() {
        let mut table = Table::new(&["NAME", "OK", "WAITS FOR"]);
        table.push_row(["podinfo", "", "Approvals"]);
        table.push_row(["価格", "x"]);
        assert_eq!(
            table.format_table(),
            "NAME      OK       WAITS FOR\n\
             podinfo   <none>   Approvals\n\
             価格      x        <none>\n"
        );
    }

    #[test]
    fn narrow_columns_are_as_wide_as_kubectls() {
        let mut table = Table::new(&["A", "B"]);
        table.push_row(["1", "2"]);
        assert_eq!(table.format_table(), "A     B\n1     2\n");
    }

    #[test]
    fn foreign_text_stays_in_its_cell() {
        let mut table = Table::new(&["NAME", "MESSAGE"]);
        table.push_row(["a", "x\n\u{1b}[2Jb   "]);
        assert_eq!(table.format_table(), "NAME   MESSAGE\na      x \\u{1b}[2Jb\n");
    }

    #[test]
    fn ages_read_as_kubectls() {
        let now = Time::from_unix(2_000_000_000);
        let ago = |seconds: i64| format_age(Some(Time::from_unix(2_000_000_000 - seconds)), now);
        let (m, h, d, y) = (60, 3_600, 86_400, 365 * 86_400);
        for (seconds, text) in [
            (-600, "<invalid>"),
            (-1, "0s"),
            (0, "0s"),
            (119, "119s"),
            (2 * m, "2m"),
            (2 * m + 5, "2m5s"),
            (10 * m + 5, "10m"),
            (3 * h - 1, "179m"),
            (3 * h, "3h"),
            (3 * h + 12 * m, "3h12m"),
            (8 * h + 12 * m, "8h"),
            (48 * h - 1, "47h"),
            (2 * d, "2d"),
            (5 * d + h, "5d1h"),
            (8 * d + h, "8d"),
            (729 * d, "729d"),
            (2 * y, "2y"),
            (2 * y + 3 * d, "2y3d"),
            (8 * y + 3 * d, "8y"),
        ] {
            assert_eq!(ago(seconds), text, "{seconds}");
        }
    }
}
