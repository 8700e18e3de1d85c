//! Runs another program with input and output, within bounds of time and size. `session` exchanges data with a
//! running program instead.
//!
//! Knows nothing of the purpose of the program and prints nothing: the caller knows which key or helper it was, and
//! what to do about a failure.

pub mod session;

use std::fmt;
use std::io::{Read, Write as _};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How much of a program's stderr is kept, in bytes.
const WORDS: usize = 16 << 10;

/// How long to wait for the rest of stderr after a program has ended: a child that still runs (a daemon, the master
/// of a shared ssh connection) may keep the stream open for hours.
const ECHO: Duration = Duration::from_millis(500);

/// Bounds of a program.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// Longest time from its start to the end of its output.
    pub time: Duration,
    /// Largest output in bytes.
    pub output: usize,
}

/// A program that ended within its bounds; the caller decides what its exit status means.
#[derive(Debug)]
pub struct Ended {
    /// Its exit status.
    pub status: ExitStatus,
    /// All of its stdout.
    pub output: Vec<u8>,
    /// The beginning of its stderr, as one line; empty if stderr was not piped.
    pub words: String,
}

/// Why a program could not be started or did not stay within its bounds.
#[derive(Debug)]
pub enum ProgramFault {
    /// The program does not exist.
    Absent,
    /// It cannot be started.
    Start(std::io::Error),
    /// It did not end in this time and was stopped.
    Late(Duration),
    /// It wrote more than this many bytes.
    TooMuch(usize),
    /// Reading its output or waiting for its end failed.
    Lost(std::io::Error),
}

impl fmt::Display for ProgramFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Absent => f.write_str("the program was not found"),
            Self::Start(error) => write!(f, "it cannot be started: {error}"),
            Self::Late(time) => write!(f, "it did not finish within {} s", time.as_secs_f64()),
            Self::TooMuch(bytes) => write!(f, "it printed more than {bytes} bytes"),
            Self::Lost(error) => write!(f, "its output could not be read: {error}"),
        }
    }
}

/// Runs `command` with `input`. The caller decides where its stderr goes; if piped, it is in [`Ended::words`].
///
/// # Errors
/// It cannot be started, or it does not stay within `bounds` and is stopped.
pub fn run_program(mut command: Command, input: &[u8], bounds: Bounds) -> Result<Ended, ProgramFault> {
    let until = Instant::now() + bounds.time;
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => ProgramFault::Absent,
        _ => ProgramFault::Start(error),
    })?;
    let (stdin, input) = (child.stdin.take(), input.to_vec());
    // A program that does not read its input may still give output: a broken pipe is not a failure.
    std::thread::spawn(move || stdin.map(|mut to| to.write_all(&input)));
    let output = child.stdout.take().map(|from| Drain::new(from, bounds.output, After::Close));
    let words = child.stderr.take().map(|from| Drain::new(from, WORDS, After::Discard));
    let late = |child: &mut Child| {
        // Killed through its own handle; the rest of its output is no longer needed.
        let _ = child.kill();
        let _ = child.wait();
        ProgramFault::Late(bounds.time)
    };
    let status = match wait_until(&mut child, until) {
        Ok(Some(status)) => status,
        Ok(None) => return Err(late(&mut child)),
        Err(error) => return Err(ProgramFault::Lost(error)),
    };
    let output = match output {
        Some(drain) => match drain.take_all(until) {
            Some(Ok(KeptOutput { more: true, .. })) => return Err(ProgramFault::TooMuch(bounds.output)),
            Some(Ok(KeptOutput { bytes, .. })) => bytes,
            Some(Err(error)) => return Err(ProgramFault::Lost(error)),
            None => return Err(late(&mut child)),
        },
        None => Vec::new(),
    };
    Ok(Ended { status, output, words: words.map(|drain| drain.read_line()).unwrap_or_default() })
}

/// `None`: it is still running at `until`.
fn wait_until(child: &mut Child, until: Instant) -> std::io::Result<Option<ExitStatus>> {
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if Instant::now() >= until {
            return Ok(None);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// What happens to output after the cap.
#[derive(Clone, Copy, PartialEq, Eq)]
enum After {
    /// The stream is closed: further writes fail.
    Close,
    /// It is read and dropped: the writer can continue.
    Discard,
}

#[derive(Default)]
struct KeptOutput {
    bytes: Vec<u8>,
    more: bool,
}

/// Reads a stream in the background, up to a cap.
struct Drain {
    kept: Arc<Mutex<KeptOutput>>,
    done: Receiver<std::io::Result<()>>,
}

impl Drain {
    fn new(mut from: impl Read + Send + 'static, cap: usize, after: After) -> Self {
        let kept: Arc<Mutex<KeptOutput>> = Arc::default();
        let (tell, done) = channel();
        let to = Arc::clone(&kept);
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            let end = loop {
                let read = match from.read(&mut buffer) {
                    Ok(0) => break Ok(()),
                    Ok(read) => read,
                    Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                    Err(error) => break Err(error),
                };
                let mut kept = lock_mutex(&to);
                let room = cap.saturating_sub(kept.bytes.len()).min(read);
                kept.bytes.extend_from_slice(&buffer[..room]);
                kept.more |= room < read;
                if kept.more && after == After::Close {
                    break Ok(());
                }
            };
            // The receiver may have stopped waiting.
            let _ = tell.send(end);
        });
        Self { kept, done }
    }

    /// Everything that was read until the stream ended; `None`: it is still open at `until`.
    fn take_all(self, until: Instant) -> Option<std::io::Result<KeptOutput>> {
        match self.done.recv_timeout(until.saturating_duration_since(Instant::now())) {
            Ok(end) => Some(end.map(|()| std::mem::take(&mut *lock_mutex(&self.kept)))),
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => None,
        }
    }

    /// What was read until now, or shortly later, as one line.
    fn read_line(&self) -> String {
        let _ = self.done.recv_timeout(ECHO);
        let text = String::from_utf8_lossy(&lock_mutex(&self.kept).bytes).into_owned();
        text.lines().map(str::trim).filter(|l| !l.is_empty()).collect::<Vec<_>>().join("; ")
    }
}

fn lock_mutex<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;

    const BOUNDS: Bounds = Bounds { time: Duration::from_secs(20), output: 1 << 20 };

    fn sh(script: &str, input: &[u8], bounds: Bounds) -> Result<Ended, ProgramFault> {
        let mut command = Command::new("sh");
        command.args(["-c", script]).stderr(Stdio::piped());
        run_program(command, input, bounds)
    }

    #[test]
    fn what_goes_in_comes_out_with_status_and_words() {
        let all = vec![b'x'; 300_000];
        let ended = sh("cat; echo one >&2; echo ' two ' >&2; exit 3", &all, BOUNDS).unwrap();
        assert_eq!((ended.output.len(), ended.words.as_str()), (all.len(), "one; two"));
        assert_eq!(ended.status.code(), Some(3));
        let deaf = sh("exec <&-; echo heard", &all, BOUNDS).unwrap();
        assert_eq!(deaf.output, b"heard\n", "a program need not read its input");
    }

    #[test]
    fn one_that_does_not_end_is_ended() {
        let start = Instant::now();
        let fault =
            sh("exec sleep 60", b"", Bounds { time: Duration::from_millis(300), ..BOUNDS }).unwrap_err();
        assert!(matches!(fault, ProgramFault::Late(_)), "{fault:?}");
        assert_eq!(fault.to_string(), "it did not finish within 0.3 s");
        assert!(start.elapsed() < Duration::from_secs(20));
    }

    #[test]
    fn what_a_program_leaves_behind_holds_nobody() {
        let start = Instant::now();
        let ended = sh("echo said; echo why >&2; sleep 30 >/dev/null & exit 0", b"", BOUNDS).unwrap();
        assert_eq!((ended.output.as_slice(), ended.words.as_str()), (&b"said\n"[..], "why"));
        let short = Bounds { time: Duration::from_secs(1), ..BOUNDS };
        let fault = sh("echo said; sleep 30 & exit 0", b"", short).unwrap_err();
        assert!(matches!(fault, ProgramFault::Late(_)), "its output never ended: {fault:?}");
        assert!(start.elapsed() < Duration::from_secs(20));
    }

    #[test]
    fn too_much_output_is_a_fault_and_many_words_are_cut() {
        let small = Bounds { output: 1_000, ..BOUNDS };
        let fault = sh("while :; do echo 0123456789; done", b"", small).unwrap_err();
        assert!(matches!(fault, ProgramFault::TooMuch(1_000)), "{fault:?}");
        assert_eq!(sh("printf %1000d 1", b"", small).unwrap().output.len(), 1_000);
        let ended = sh("printf %100000d 1 >&2", b"", BOUNDS).unwrap();
        assert!(ended.words.is_empty() && ended.status.success(), "spaces alone count as empty");
    }

    #[test]
    fn a_program_that_is_not_there_is_told_apart() {
        let absent = run_program(Command::new("there-is-no-such-program"), b"", BOUNDS).unwrap_err();
        assert!(matches!(absent, ProgramFault::Absent), "{absent:?}");
        let folder = tempfile::tempdir().unwrap();
        let none = run_program(Command::new(folder.path()), b"", BOUNDS).unwrap_err();
        assert!(matches!(none, ProgramFault::Start(_)), "{none:?}");
    }
}
