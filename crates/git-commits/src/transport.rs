//! How libgit2 reaches a server: through `http` and `ssh` of this room, under one scheme of our own.
//!
//! libgit2 is never shown a server's URL, user or password: it is told to reach `ADDRESS`, and asks for
//! the wire, which was laid before on the same thread. So no message of its can hold a secret, and none of
//! its own transports, rewriting or credentials comes between.

use crate::error::GitError;
use crate::libgit2;
use git2::transport::{Service, SmartSubtransport, SmartSubtransportStream, Transport};
use std::cell::RefCell;
use std::fmt;
use std::io::{Read, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The scheme under which our wires are registered.
pub(crate) const SCHEME: &str = "expedite";

/// What libgit2 is told to connect to.
pub(crate) const ADDRESS: &str = "expedite://repository";

/// How long a step of the network may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// Until a connection stands; 20 seconds unless said otherwise.
    pub connect: Duration,
    /// Without any answer: a server's hook may think for a while; 180 seconds unless said otherwise.
    pub silence: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self { connect: Duration::from_secs(20), silence: Duration::from_secs(180) }
    }
}

/// A text that is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretText(pub(crate) String);

impl SecretText {
    /// Keeps `text` from being shown.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text, for the place that it is meant for.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for SecretText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// A stream to the server, for one service.
pub(crate) trait Stream: Read + Write + Send {}
impl<T: Read + Write + Send> Stream for T {}

/// A way to a server. Its errors are ours: libgit2 only learns that there was one.
pub(crate) trait Wire: Send + Sync {
    /// Whether every exchange is a request of its own (HTTP), or one stream carries them all (SSH).
    fn is_stateless(&self) -> bool;

    /// Opens the stream of a service.
    fn open_stream(&self, service: Service) -> Result<Box<dyn Stream>, GitError>;

    /// Ends what is open.
    fn close_wire(&self);
}

thread_local! {
    static LAID: RefCell<Option<Arc<Laid>>> = const { RefCell::new(None) };
}

/// A wire and the first failure on it.
struct Laid {
    wire: Arc<dyn Wire>,
    failure: Mutex<Option<GitError>>,
}

impl Laid {
    fn keep_failure(&self, failure: GitError) {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(failure);
    }
}

/// Runs `work`, in which libgit2 reaches `wire` at [`ADDRESS`]. A failure of the wire comes before
/// libgit2's own.
pub(crate) fn run_over_wire<T>(
    wire: &Arc<dyn Wire>,
    work: impl FnOnce() -> Result<T, git2::Error>,
) -> Result<T, (Option<GitError>, git2::Error)> {
    let laid = Arc::new(Laid { wire: Arc::clone(wire), failure: Mutex::new(None) });
    let register = libgit2::register_transport(SCHEME, |remote| {
        let Some(laid) = LAID.with_borrow(Clone::clone) else {
            return Err(git2::Error::from_str("no wire was laid"));
        };
        let stateless = laid.wire.is_stateless();
        Transport::smart(remote, stateless, Sub(laid))
    });
    let done = register.and_then(|()| {
        LAID.set(Some(Arc::clone(&laid)));
        let done = work();
        LAID.set(None);
        wire.close_wire();
        done
    });
    done.map_err(|error| (laid.failure.lock().unwrap_or_else(PoisonError::into_inner).take(), error))
}

struct Sub(Arc<Laid>);

impl SmartSubtransport for Sub {
    fn action(
        &self,
        _address: &str,
        service: Service,
    ) -> Result<Box<dyn SmartSubtransportStream>, git2::Error> {
        match self.0.wire.open_stream(service) {
            Ok(inner) => Ok(Box::new(KeptStream { inner, laid: Arc::clone(&self.0) })),
            Err(failure) => {
                let error = git2::Error::from_str(&failure.cause);
                self.0.keep_failure(failure);
                Err(error)
            }
        }
    }

    fn close(&self) -> Result<(), git2::Error> {
        self.0.wire.close_wire();
        Ok(())
    }
}

/// A stream whose failures are kept.
struct KeptStream {
    inner: Box<dyn Stream>,
    laid: Arc<Laid>,
}

impl KeptStream {
    fn keep_failure<T>(&self, done: std::io::Result<T>) -> std::io::Result<T> {
        done.inspect_err(|e| {
            if let Some(failure) = e.get_ref().and_then(|inner| inner.downcast_ref::<GitError>()) {
                self.laid.keep_failure(failure.clone());
            }
        })
    }
}

impl Read for KeptStream {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let done = self.inner.read(buffer);
        self.keep_failure(done)
    }
}

impl Write for KeptStream {
    fn write(&mut self, buffer: &[u8]) -> std::io::Result<usize> {
        let done = self.inner.write(buffer);
        self.keep_failure(done)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        let done = self.inner.flush();
        self.keep_failure(done)
    }
}
