//! A conversation with a running program: reads and writes as they come, each within a time of silence.

use super::{After, Drain, WORDS, held, wait};
use std::io::{Read as _, Write as _};
use std::process::{Child, ChildStdin, ChildStdout};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// A running program.
pub struct Session {
    child: Mutex<Child>,
    input: Mutex<Option<ChildStdin>>,
    output: Mutex<Option<ChildStdout>>,
    words: Mutex<Drain>,
    waiting: Mutex<Waiting>,
}

/// What the watch sees.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Waiting {
    Idle,
    Since(Instant),
    TimedOut,
    Over,
}

impl Session {
    /// Takes over a program that was started with all its streams piped; `None` if one is missing. One
    /// read or write may take as long as `silence`.
    pub fn of(mut child: Child, silence: Duration) -> Option<Arc<Self>> {
        let (input, output, errors) = (child.stdin.take()?, child.stdout.take()?, child.stderr.take()?);
        let session = Arc::new(Self {
            child: Mutex::new(child),
            input: Mutex::new(Some(input)),
            output: Mutex::new(Some(output)),
            words: Mutex::new(Drain::new(errors, WORDS, After::Discard)),
            waiting: Mutex::new(Waiting::Idle),
        });
        session.watch(silence);
        Some(session)
    }

    /// Ends the program when one read or write takes longer than `silence`: it is the only way to interrupt
    /// either.
    fn watch(self: &Arc<Self>, silence: Duration) {
        let session = Arc::downgrade(self);
        std::thread::spawn(move || {
            while let Some(session) = session.upgrade() {
                let mut waiting = held(&session.waiting);
                match *waiting {
                    Waiting::Over | Waiting::TimedOut => return,
                    Waiting::Since(start) if start.elapsed() > silence => {
                        *waiting = Waiting::TimedOut;
                        drop(waiting);
                        let _ = held(&session.child).kill();
                        return;
                    }
                    Waiting::Since(_) | Waiting::Idle => drop(waiting),
                }
                drop(session);
                std::thread::sleep(Duration::from_millis(100));
            }
        });
    }

    fn timed<T>(&self, work: impl FnOnce() -> std::io::Result<T>) -> std::io::Result<T> {
        *held(&self.waiting) = Waiting::Since(Instant::now());
        let done = work();
        let mut waiting = held(&self.waiting);
        if matches!(*waiting, Waiting::Since(_)) {
            *waiting = Waiting::Idle;
        }
        done
    }

    /// Reads of its output; 0 at its end.
    ///
    /// # Errors
    /// It cannot be listened to.
    pub fn read(&self, buffer: &mut [u8]) -> std::io::Result<usize> {
        self.timed(|| match held(&self.output).as_mut() {
            Some(output) => output.read(buffer),
            None => Ok(0),
        })
    }

    /// Writes to its input.
    ///
    /// # Errors
    /// It does not listen any more.
    pub fn write(&self, bytes: &[u8]) -> std::io::Result<usize> {
        self.timed(|| match held(&self.input).as_mut() {
            Some(input) => input.write(bytes),
            None => Err(std::io::ErrorKind::BrokenPipe.into()),
        })
    }

    /// Ends the program: gently, then by force. Gives what it said, as one line, and whether it was ended for its
    /// silence.
    pub fn end(&self) -> (String, bool) {
        held(&self.input).take();
        let mut waiting = held(&self.waiting);
        let timed_out = *waiting == Waiting::TimedOut;
        *waiting = Waiting::Over;
        drop(waiting);
        let until = Instant::now() + Duration::from_secs(2);
        let mut child = held(&self.child);
        if !matches!(wait(&mut child, until), Ok(Some(_))) {
            let _ = child.kill();
            let _ = child.wait();
        }
        drop(child);
        held(&self.output).take();
        (held(&self.words).line(), timed_out)
    }
}
