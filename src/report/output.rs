//! The two streams of a run: stdout is the result, stderr is for people. The only place that writes
//! to either; it is handed both by `main`.

use crate::error::{Failure, FailureKind};
use crate::report::failure::{self, Level};
use crate::report::{escape, github};
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::PathBuf;

/// How a stream is formatted and how much is printed.
#[derive(Debug, Clone, Default)]
pub struct OutputStyle {
    /// Colour on stdout.
    pub colour: bool,
    /// Colour on stderr.
    pub error_colour: bool,
    /// Whether a changing line of progress may be shown on stderr.
    pub progress: bool,
    /// `-q` is below 0, each `-v` one above.
    pub verbosity: i8,
    /// Whether a GitHub Actions runner reads both streams.
    pub github: bool,
    /// The runner's file for the step's summary.
    pub summary: Option<PathBuf>,
}

/// Both streams, and the most severe failure that was printed. A closed pipe (`| head -1`) is not an error:
/// the exit status of the work still counts.
pub struct Output {
    out: Box<dyn Write + Send>,
    err: Box<dyn Write + Send>,
    style: OutputStyle,
    gone: bool,
    progress_shown: bool,
    worst: Option<FailureKind>,
}

impl Output {
    /// Over the writers that `main` hands in.
    #[must_use]
    pub fn new(out: Box<dyn Write + Send>, err: Box<dyn Write + Send>, style: OutputStyle) -> Self {
        Self { out, err, style, gone: false, progress_shown: false, worst: None }
    }

    /// How the streams are formatted.
    #[must_use]
    pub fn style(&self) -> &OutputStyle {
        &self.style
    }

    /// Writes a part of the result. Foreign text in it must already be escaped.
    pub fn write_result(&mut self, text: &str) {
        self.clear_progress();
        if self.gone {
            return;
        }
        let text = if self.style.github { escape::escape_workflow_log(text) } else { text.into() };
        if let Err(error) = self.out.write_all(text.as_bytes()).and_then(|()| self.out.flush()) {
            self.gone = true;
            if error.kind() != io::ErrorKind::BrokenPipe {
                self.report_error(&Failure::new(
                    FailureKind::Internal,
                    "stdout",
                    format!("writing the result: {error}"),
                ));
            }
        }
    }

    /// Tells of something that is wrong; it decides the exit status.
    pub fn report_error(&mut self, failure: &Failure) {
        self.worst = Some(find_worse(self.worst, failure.kind));
        self.write_failure(failure, Level::Error);
    }

    /// Prints what is wrong with the command line: clap's text of several lines, which may contain foreign
    /// text.
    pub fn report_usage(&mut self, text: &str) {
        self.count_kind(FailureKind::Usage);
        let lines: Vec<_> =
            text.trim_end().lines().map(|l| escape::escape_line(l).trim_end().to_owned()).collect();
        self.write_stderr(&format!("{}\n", lines.join("\n")));
    }

    /// Prints a warning; not with `-q`.
    pub fn report_warning(&mut self, failure: &Failure) {
        if self.style.verbosity >= 0 {
            self.write_failure(failure, Level::Warning);
        }
    }

    /// Prints a line for people; not with `-q`.
    pub fn write_note(&mut self, text: &str) {
        if self.style.verbosity >= 0 {
            self.write_stderr(&format!("{}\n", escape::escape_line(text)));
        }
    }

    /// Prints a line for people with `-v`.
    pub fn write_detail(&mut self, text: &str) {
        if self.style.verbosity > 0 {
            self.write_stderr(&format!("{}\n", escape::escape_line(text)));
        }
    }

    /// Shows what is being done, on a terminal only: the line is replaced by whatever comes next.
    pub fn show_progress(&mut self, text: &str) {
        if self.style.progress && self.style.verbosity >= 0 {
            // Return to the line's start and erase it.
            let _ = write!(self.err, "\r\u{1b}[K{}", escape::truncate_text(&escape::escape_line(text), 78));
            let _ = self.err.flush();
            self.progress_shown = true;
        }
    }

    /// Adds a result without a failure of its own (the removal guard, a check that says no) to the exit
    /// status.
    pub fn count_kind(&mut self, kind: FailureKind) {
        self.worst = Some(find_worse(self.worst, kind));
    }

    /// Appends Markdown to the summary of a GitHub Actions step, if there is one.
    pub fn append_summary(&mut self, markdown: &str) {
        let Some(path) = self.style.summary.clone() else { return };
        let written = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&path)
            .and_then(|mut file| file.write_all(markdown.as_bytes()));
        if let Err(error) = written {
            let path = path.display();
            self.report_warning(&Failure::new(
                FailureKind::Internal,
                "step-summary",
                format!("writing the step summary {path}: {error}"),
            ));
        }
    }

    /// The exit status of everything that was printed, by [`FailureKind::exit_status`](crate::error::FailureKind::exit_status); `changes` counts only if
    /// there is no error.
    #[must_use]
    pub fn decide_status(&mut self, changes: bool) -> u8 {
        self.clear_progress();
        match (self.worst, changes) {
            (Some(kind), _) => kind.exit_status(),
            (None, true) => crate::error::CHANGES,
            (None, false) => 0,
        }
    }

    fn write_failure(&mut self, failure: &Failure, level: Level) {
        let text = failure::format_failure(failure, level, self.style.error_colour);
        self.write_stderr(&text);
        if self.style.github {
            // The runner reads commands on both streams; stdout stays the result.
            self.clear_progress();
            let _ = self.err.write_all(github::format_annotation(failure, level).as_bytes());
        }
    }

    /// If stderr is closed, there is no other place to report it.
    fn write_stderr(&mut self, text: &str) {
        self.clear_progress();
        let text = if self.style.github { escape::escape_workflow_log(text) } else { text.into() };
        let _ = self.err.write_all(text.as_bytes()).and_then(|()| self.err.flush());
    }

    fn clear_progress(&mut self) {
        if self.progress_shown {
            let _ = self.err.write_all(b"\r\x1b[K").and_then(|()| self.err.flush());
            self.progress_shown = false;
        }
    }
}

/// Of two kinds, the one that decides the exit status: what stopped the whole run, before a check that says
/// no, before a partial failure.
fn find_worse(old: Option<FailureKind>, new: FailureKind) -> FailureKind {
    let rank = |kind: FailureKind| match kind {
        FailureKind::Usage => 4,
        FailureKind::Moved => 3,
        FailureKind::Guard => 2,
        FailureKind::SaysNo => 1,
        FailureKind::Input | FailureKind::Unread | FailureKind::Repository | FailureKind::Internal => 0,
    };
    match old {
        Some(old) if rank(old) >= rank(new) => old,
        Some(_) | None => new,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;
    use std::sync::{Arc, Mutex};

    #[derive(Clone, Default)]
    struct Kept(Arc<Mutex<Vec<u8>>>);
    impl Write for Kept {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    impl Kept {
        fn text(&self) -> String {
            String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
        }
    }

    struct Broken(io::ErrorKind);
    impl Write for Broken {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(self.0.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Err(self.0.into())
        }
    }

    fn over(style: OutputStyle) -> (Output, Kept, Kept) {
        let (out, err) = (Kept::default(), Kept::default());
        (Output::new(Box::new(out.clone()), Box::new(err.clone()), style), out, err)
    }

    #[test]
    fn a_reader_that_has_gone_is_no_error() {
        let err = Kept::default();
        let broken = Box::new(Broken(io::ErrorKind::BrokenPipe));
        let mut output = Output::new(broken, Box::new(err.clone()), OutputStyle::default());
        output.write_result("one\n");
        output.write_result("two\n");
        assert_eq!((output.decide_status(false), err.text().as_str()), (0, ""));
        output.report_error(&Failure::new_input("x", "bad"));
        assert_eq!(output.decide_status(false), 1, "the work's own status still counts");
    }

    #[test]
    fn a_full_disk_is_an_error() {
        let err = Kept::default();
        let full = Box::new(Broken(io::ErrorKind::StorageFull));
        let mut output = Output::new(full, Box::new(err.clone()), OutputStyle::default());
        output.write_result("one\n");
        output.write_result("two\n");
        assert_eq!(output.decide_status(false), 1);
        assert_eq!(err.text().matches("error: writing the result").count(), 1, "{}", err.text());
    }

    #[test]
    fn the_status_tells_the_worst() {
        let said = |kinds: &[FailureKind], changes| {
            let (mut output, _, _) = over(OutputStyle::default());
            for kind in kinds {
                output.report_error(&Failure::new(*kind, "x", "y"));
            }
            output.decide_status(changes)
        };
        assert_eq!(said(&[], false), 0);
        assert_eq!(said(&[], true), 2);
        assert_eq!(said(&[FailureKind::Unread], true), 1);
        assert_eq!(said(&[FailureKind::Input, FailureKind::SaysNo, FailureKind::Unread], true), 5);
        assert_eq!(said(&[FailureKind::Guard, FailureKind::Input, FailureKind::SaysNo], false), 3);
        assert_eq!(said(&[FailureKind::Input, FailureKind::Moved, FailureKind::Guard], false), 4);
        assert_eq!(said(&[FailureKind::Usage], false), 64);
    }

    #[test]
    fn quiet_leaves_errors_and_the_result() {
        let (mut output, out, err) =
            over(OutputStyle { verbosity: -1, progress: true, ..OutputStyle::default() });
        output.write_result("r\n");
        output.write_note("n");
        output.show_progress("p");
        output.report_warning(&Failure::new_input("x", "w"));
        output.report_error(&Failure::new_input("x", "e"));
        assert_eq!((out.text().as_str(), err.text().as_str()), ("r\n", "error: e\n"));
    }

    #[test]
    fn details_are_for_those_who_ask() {
        let (mut output, _, err) = over(OutputStyle::default());
        output.write_detail("d");
        assert_eq!(err.text(), "");
        let (mut output, _, err) = over(OutputStyle { verbosity: 1, ..OutputStyle::default() });
        output.write_detail("d");
        assert_eq!(err.text(), "d\n");
    }

    #[test]
    fn progress_is_wiped_before_anything_else_is_said() {
        let (mut output, out, err) = over(OutputStyle { progress: true, ..OutputStyle::default() });
        output.show_progress("reading 3 of 9");
        output.write_result("r\n");
        assert_eq!(err.text(), "\r\u{1b}[Kreading 3 of 9\r\u{1b}[K");
        assert_eq!(out.text(), "r\n");
    }

    #[test]
    fn a_runner_gets_annotations_and_no_foreign_commands() {
        let folder = tempfile::tempdir().unwrap();
        let summary = folder.path().join("summary.md");
        let style = OutputStyle { github: true, summary: Some(summary.clone()), ..OutputStyle::default() };
        let (mut output, out, err) = over(style);
        output.write_result("  ::set-env name=x::y\n");
        output.report_error(&Failure::new_input("x", "::stop-commands::now"));
        output.append_summary("# one\n");
        output.append_summary("# two\n");
        assert_eq!(out.text(), "  : :set-env name=x::y\n");
        assert_eq!(err.text(), "error: ::stop-commands::now\n::error::::stop-commands::now\n");
        assert_eq!(std::fs::read_to_string(summary).unwrap(), "# one\n# two\n");
    }
}
