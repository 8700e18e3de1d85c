//! Programs that speak git's protocol on their streams: `ssh`, and git's own `receive-pack` for a
//! repository here whose hooks are to be heard.

use crate::error::{Failure, Kind};
use crate::git::Environment;
use crate::git::transport::{Stream, Timeouts, Wire};
use git2::transport::Service;
use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Most of what a program says that is kept, in bytes.
const WORDS: usize = 16 * 1024;

/// A bare repository on this machine, written through `git receive-pack`, which runs its hooks and
/// compares references as a server does.
pub(crate) struct Receiver {
    pub path: PathBuf,
    pub environment: Environment,
    pub timeouts: Timeouts,
    pub running: Mutex<Option<Arc<Session>>>,
}

impl Receiver {
    fn failure(&self, code: &'static str, why: impl Into<String>) -> Failure {
        Failure::new(Kind::Repository, code, why).of(format!("repository {}", self.path.display()))
    }
}

impl Wire for Receiver {
    fn stateless(&self) -> bool {
        false
    }

    fn open(&self, service: Service) -> Result<Box<dyn Stream>, Failure> {
        let verb = match service {
            Service::UploadPackLs | Service::UploadPack => "upload-pack",
            Service::ReceivePackLs | Service::ReceivePack => "receive-pack",
        };
        let mut command = Command::new("git");
        command
            .args(["-c", "safe.directory=*", verb])
            .arg(&self.path)
            .env_clear()
            .envs(self.environment.iter());
        // The repository that was named is meant, not one that a variable points to.
        for name in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY"] {
            command.env_remove(name);
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn().map_err(|e| match e.kind() {
            std::io::ErrorKind::NotFound => self
                .failure(
                    "program-absent",
                    "it has hooks, and the program git that would run them is not there",
                )
                .hint("install git, or name the repository by a URL of its server"),
            _ => self.failure("repository-unreachable", format!("git {verb} cannot be started: {e}")),
        })?;
        let session = Session::of(child, self.timeouts.silence)
            .ok_or_else(|| self.failure("repository-unreachable", "git was started without its streams"))?;
        *held(&self.running) = Some(Arc::clone(&session));
        Ok(Box::new(Pipe { session, first: None, place: self.path.display().to_string() }))
    }

    fn close(&self) {
        if let Some(session) = held(&self.running).take() {
            session.end();
        }
    }
}

/// A running program.
pub(crate) struct Session {
    child: Mutex<Child>,
    input: Mutex<Option<ChildStdin>>,
    output: Mutex<Option<ChildStdout>>,
    words: Mutex<Option<std::thread::JoinHandle<String>>>,
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

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Session {
    /// Takes over a program that was started with all its streams piped; `None` if one is missing. One
    /// read or write may take as long as `silence`.
    pub fn of(mut child: Child, silence: Duration) -> Option<Arc<Self>> {
        let (input, output, mut errors) = (child.stdin.take()?, child.stdout.take()?, child.stderr.take()?);
        let words = std::thread::spawn(move || {
            let mut kept = Vec::new();
            let mut buffer = [0; 4096];
            while let Ok(n) = errors.read(&mut buffer)
                && n > 0
            {
                let room = WORDS.saturating_sub(kept.len()).min(n);
                kept.extend_from_slice(&buffer[..room]);
            }
            String::from_utf8_lossy(&kept).into_owned()
        });
        let session = Arc::new(Self {
            child: Mutex::new(child),
            input: Mutex::new(Some(input)),
            output: Mutex::new(Some(output)),
            words: Mutex::new(Some(words)),
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

    pub fn read(&self, buffer: &mut [u8]) -> std::io::Result<usize> {
        self.timed(|| match held(&self.output).as_mut() {
            Some(output) => output.read(buffer),
            None => Ok(0),
        })
    }

    fn write(&self, bytes: &[u8]) -> std::io::Result<usize> {
        self.timed(|| match held(&self.input).as_mut() {
            Some(input) => input.write(bytes),
            None => Err(std::io::ErrorKind::BrokenPipe.into()),
        })
    }

    /// Ends the program: gently, then by force. Gives what it said, and whether it was ended for its
    /// silence.
    pub fn end(&self) -> (String, bool) {
        held(&self.input).take();
        let mut waiting = held(&self.waiting);
        let timed_out = *waiting == Waiting::TimedOut;
        *waiting = Waiting::Over;
        drop(waiting);
        let until = Instant::now() + Duration::from_secs(2);
        loop {
            let mut child = held(&self.child);
            match child.try_wait() {
                Ok(None) if Instant::now() < until => {
                    drop(child);
                    std::thread::sleep(Duration::from_millis(5));
                }
                Ok(None) => {
                    let _ = child.kill();
                    let _ = child.wait();
                    break;
                }
                Ok(Some(_)) | Err(_) => break,
            }
        }
        held(&self.output).take();
        let words = held(&self.words).take();
        (words.and_then(|w| w.join().ok()).unwrap_or_default(), timed_out)
    }
}

/// The stream to a running program.
pub(crate) struct Pipe {
    pub session: Arc<Session>,
    /// A byte that was read already.
    pub first: Option<u8>,
    /// The repository, for messages.
    pub place: String,
}

impl Pipe {
    fn broken(&self, error: &std::io::Error) -> std::io::Error {
        let (words, timed_out) = self.session.end();
        let words = words.trim().replace('\n', "; ");
        let why = match (timed_out, words.is_empty()) {
            (true, _) => "the server fell silent".to_owned(),
            (false, false) => words,
            (false, true) => format!("the connection broke off: {error}"),
        };
        let of = format!("repository {}", self.place);
        std::io::Error::other(Failure::new(Kind::Repository, "repository-unreachable", why).of(of))
    }
}

impl Read for Pipe {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        if let Some(first) = self.first.take() {
            match buffer.first_mut() {
                Some(slot) => *slot = first,
                None => {
                    self.first = Some(first);
                    return Ok(0);
                }
            }
            return Ok(1);
        }
        match self.session.read(buffer) {
            // The server hung up in the middle of an exchange.
            Ok(0) if !buffer.is_empty() => Err(self.broken(&std::io::ErrorKind::UnexpectedEof.into())),
            Ok(n) => Ok(n),
            Err(e) => Err(self.broken(&e)),
        }
    }
}

impl Write for Pipe {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.session.write(bytes).map_err(|e| self.broken(&e))
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
