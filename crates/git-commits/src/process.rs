//! Programs that speak git's protocol on their streams: `ssh`, and git's own `receive-pack` for a
//! repository here whose hooks are to be heard.

use crate::Environment;
use crate::error::{GitError, GitErrorKind};
use crate::transport::{Stream, Timeouts, Wire};
use child_process::session::ProgramSession;
use git2::transport::Service;
use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

/// A bare repository on this machine, written through `git receive-pack`, which runs its hooks and
/// compares references as a server does.
pub(crate) struct Receiver {
    pub path: PathBuf,
    pub environment: Environment,
    pub timeouts: Timeouts,
    pub running: Mutex<Option<Arc<ProgramSession>>>,
}

impl Receiver {
    fn make_error(&self, code: &'static str, why: impl Into<String>) -> GitError {
        GitError::new(GitErrorKind::Repository, code, why)
            .with_object(format!("repository {}", self.path.display()))
    }
}

impl Wire for Receiver {
    fn is_stateless(&self) -> bool {
        false
    }

    fn open_stream(&self, service: Service) -> Result<Box<dyn Stream>, GitError> {
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
                .make_error(
                    "program-absent",
                    "it has hooks, and the program git that would run them is not there",
                )
                .with_hint("install git, or name the repository by a URL of its server"),
            _ => self.make_error("repository-unreachable", format!("git {verb} cannot be started: {e}")),
        })?;
        let session = ProgramSession::from_child(child, self.timeouts.silence).ok_or_else(|| {
            self.make_error("repository-unreachable", "git was started without its streams")
        })?;
        *self.running.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&session));
        Ok(Box::new(Pipe { session, first: None, place: self.path.display().to_string() }))
    }

    fn close_wire(&self) {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(session) = running {
            session.end_program();
        }
    }
}

/// The stream to a running program.
pub(crate) struct Pipe {
    pub session: Arc<ProgramSession>,
    /// A byte that was read already.
    pub first: Option<u8>,
    /// The repository, for messages.
    pub place: String,
}

impl Pipe {
    fn make_broken_error(&self, error: &std::io::Error) -> std::io::Error {
        let (words, timed_out) = self.session.end_program();
        let why = match (timed_out, words.is_empty()) {
            (true, _) => "the server fell silent".to_owned(),
            (false, false) => words,
            (false, true) => format!("the connection broke off: {error}"),
        };
        let of = format!("repository {}", self.place);
        std::io::Error::other(
            GitError::new(GitErrorKind::Repository, "repository-unreachable", why).with_object(of),
        )
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
        match self.session.read_output(buffer) {
            // The server hung up in the middle of an exchange.
            Ok(0) if !buffer.is_empty() => {
                Err(self.make_broken_error(&std::io::ErrorKind::UnexpectedEof.into()))
            }
            Ok(n) => Ok(n),
            Err(e) => Err(self.make_broken_error(&e)),
        }
    }
}

impl Write for Pipe {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.session.write_input(bytes).map_err(|e| self.make_broken_error(&e))
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
