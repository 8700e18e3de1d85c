//! Exchanges data with a running program: reads and writes in any order, each with a time limit.

use super::{After, Drain, WORDS, lock_mutex, wait_until};
use std::io::{Read as _, Write as _};
use std::process::{Child, ChildStdin, ChildStdout};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// A running program.
pub struct ProgramSession {
    child: Mutex<Child>,
    input: Mutex<Option<ChildStdin>>,
    output: Mutex<Option<ChildStdout>>,
    words: Mutex<Drain>,
    waiting: Mutex<WaitState>,
}

/// The state that the watching thread uses.
#[derive(Clone, Copy, PartialEq, Eq)]
enum WaitState {
    Idle,
    Since(Instant),
    TimedOut,
    Over,
}

impl ProgramSession {
    /// Takes over a program that was started with all its streams piped; `None` if one is missing. One read or write may
    /// take at most `silence`.
    pub fn from_child(mut child: Child, silence: Duration) -> Option<Arc<Self>> {
        let (input, output, errors) = (child.stdin.take()?, child.stdout.take()?, child.stderr.take()?);
        let session = Arc::new(Self {
            child: Mutex::new(child),
            input: Mutex::new(Some(input)),
            output: Mutex::new(Some(output)),
            words: Mutex::new(Drain::new(errors, WORDS, After::Discard)),
            waiting: Mutex::new(WaitState::Idle),
        });
        session.watch_silence(silence);
        Some(session)
    }

    /// Ends the program if one read or write takes longer than `silence`: there is no other way to interrupt it.
    fn watch_silence(self: &Arc<Self>, silence: Duration) {
        let session = Arc::downgrade(self);
        std::thread::spawn(move || {
            while let Some(session) = session.upgrade() {
                let mut waiting = lock_mutex(&session.waiting);
                match *waiting {
                    WaitState::Over | WaitState::TimedOut => return,
                    WaitState::Since(start) if start.elapsed() > silence => {
                        *waiting = WaitState::TimedOut;
                        drop(waiting);
                        let _ = lock_mutex(&session.child).kill();
                        return;
                    }
                    WaitState::Since(_) | WaitState::Idle => drop(waiting),
                }
                drop(session);
                std::thread::sleep(Duration::from_millis(100));
            }
        });
    }

    fn run_timed<T>(&self, work: impl FnOnce() -> std::io::Result<T>) -> std::io::Result<T> {
        *lock_mutex(&self.waiting) = WaitState::Since(Instant::now());
        let done = work();
        let mut waiting = lock_mutex(&self.waiting);
        if matches!(*waiting, WaitState::Since(_)) {
            *waiting = WaitState::Idle;
        }
        done
    }

    /// Reads from its output; 0 at its end.
    ///
    /// # Errors
    /// Its output cannot be read.
    pub fn read_output(&self, buffer: &mut [u8]) -> std::io::Result<usize> {
        self.run_timed(|| match lock_mutex(&self.output).as_mut() {
            Some(output) => output.read(buffer),
            None => Ok(0),
        })
    }

    /// Writes to its input.
    ///
    /// # Errors
    /// It no longer reads its input.
    pub fn write_input(&self, bytes: &[u8]) -> std::io::Result<usize> {
        self.run_timed(|| match lock_mutex(&self.input).as_mut() {
            Some(input) => input.write(bytes),
            None => Err(std::io::ErrorKind::BrokenPipe.into()),
        })
    }

    /// Ends the program: first by closing its streams, then by force. Returns its stderr as one line, and whether the
    /// time limit ended it.
    pub fn end_program(&self) -> (String, bool) {
        lock_mutex(&self.input).take();
        let mut waiting = lock_mutex(&self.waiting);
        let timed_out = *waiting == WaitState::TimedOut;
        *waiting = WaitState::Over;
        drop(waiting);
        let until = Instant::now() + Duration::from_secs(2);
        let mut child = lock_mutex(&self.child);
        if !matches!(wait_until(&mut child, until), Ok(Some(_))) {
            let _ = child.kill();
            let _ = child.wait();
        }
        drop(child);
        lock_mutex(&self.output).take();
        (lock_mutex(&self.words).read_line(), timed_out)
    }
}
