//! A registry in this process that can do everything wrong, at any request.
//!
//! It listens on loopback with a port of the kernel's choice, keeps repositories in memory, speaks enough of the
//! distribution specification for readers and writers, logs every request with its headers, and answers by a
//! [`Fault`] wherever a rule says so.
//!
//! ```text
//! let registry = Hostile::start();
//! let digest = registry.push_artifact("shop/podinfo", &[("app.yaml", b"kind: ConfigMap\n")]);
//! registry.fault(1, |r| r.path.contains("/referrers/"), Fault::status(503));
//! ```

pub mod store;
pub mod tokens;
pub mod wire;

pub use store::Behaviour;
pub use tokens::Auth;
pub use wire::{Answer, Fault, Request};

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use store::Store;

/// A running registry; dropping it stops it.
pub struct Hostile {
    address: SocketAddr,
    tls: bool,
    state: Arc<State>,
}

/// What connections share.
pub struct State {
    store: Mutex<Store>,
    rules: Mutex<Vec<Rule>>,
    log: Mutex<Vec<Seen>>,
    stopped: AtomicBool,
}

struct Rule {
    when: Box<dyn Fn(&Request) -> bool + Send>,
    skip: usize,
    times: usize,
    fault: Fault,
}

/// One request as it came, and the status it got (`None`: no answer).
#[derive(Debug, Clone)]
pub struct Seen {
    pub request: Request,
    pub status: Option<u16>,
}

impl Hostile {
    /// Plain HTTP.
    pub fn start() -> Self {
        Self::listen(None)
    }

    /// HTTPS with this server configuration.
    pub fn start_tls(config: Arc<rustls::ServerConfig>) -> Self {
        Self::listen(Some(config))
    }

    fn listen(tls: Option<Arc<rustls::ServerConfig>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(State {
            store: Mutex::new(Store::new(address, tls.is_some())),
            rules: Mutex::default(),
            log: Mutex::default(),
            stopped: AtomicBool::new(false),
        });
        let with_tls = tls.is_some();
        let shared = Arc::clone(&state);
        thread::spawn(move || {
            for stream in listener.incoming() {
                if shared.stopped.load(Ordering::SeqCst) {
                    return;
                }
                let Ok(stream) = stream else { continue };
                let (shared, tls) = (Arc::clone(&shared), tls.clone());
                thread::spawn(move || wire::serve(&shared, stream, tls));
            }
        });
        Self { address, tls: with_tls, state }
    }

    /// `127.0.0.1:PORT`, as an `ociRef` names it.
    pub fn host(&self) -> String {
        self.address.to_string()
    }

    /// `http://127.0.0.1:PORT` (or https).
    pub fn url(&self) -> String {
        format!("{}://{}", if self.tls { "https" } else { "http" }, self.address)
    }

    /// What it holds and how it behaves.
    pub fn store(&self) -> MutexGuard<'_, Store> {
        self.state.store.lock().unwrap()
    }

    /// Changes how it behaves.
    pub fn behave(&self, change: impl FnOnce(&mut Behaviour)) {
        change(&mut self.store().behaviour);
    }

    /// The next `times` requests for which `when` holds are answered by `fault`. Rules are tried in the
    /// order of their making.
    pub fn fault(&self, times: usize, when: impl Fn(&Request) -> bool + Send + 'static, fault: Fault) {
        self.fault_after(0, times, when, fault);
    }

    /// The same, after `skip` such requests were answered honestly.
    pub fn fault_after(
        &self,
        skip: usize,
        times: usize,
        when: impl Fn(&Request) -> bool + Send + 'static,
        fault: Fault,
    ) {
        self.state.rules.lock().unwrap().push(Rule { when: Box::new(when), skip, times, fault });
    }

    /// Honest again.
    pub fn heal(&self) {
        self.state.rules.lock().unwrap().clear();
    }

    /// Every request so far.
    pub fn log(&self) -> Vec<Seen> {
        self.state.log.lock().unwrap().clone()
    }

    /// `GET /v2/…` of every request so far, with query.
    pub fn lines(&self) -> Vec<String> {
        self.log().iter().map(|s| format!("{} {}", s.request.method, s.request.target)).collect()
    }

    pub fn clear_log(&self) {
        self.state.log.lock().unwrap().clear();
    }

    /// Whether this text occurs anywhere in what clients sent: targets, headers, bodies.
    pub fn was_sent(&self, secret: &str) -> bool {
        self.log().iter().any(|s| s.request.contains(secret))
    }
}

impl Drop for Hostile {
    fn drop(&mut self) {
        self.state.stopped.store(true, Ordering::SeqCst);
        // Wakes the thread that accepts; whether it answers does not matter.
        let _ = TcpStream::connect(self.address);
    }
}

impl State {
    /// The fault that is due for this request.
    fn due(&self, request: &Request) -> Option<Fault> {
        let mut rules = self.rules.lock().unwrap();
        let rule = rules.iter_mut().find(|r| r.times > 0 && (r.when)(request))?;
        if rule.skip > 0 {
            rule.skip -= 1;
            return None;
        }
        rule.times -= 1;
        Some(rule.fault.clone())
    }

    fn honest(&self, request: &Request) -> Answer {
        self.store.lock().unwrap().answer(request)
    }

    fn seen(&self, request: Request, status: Option<u16>) {
        self.log.lock().unwrap().push(Seen { request, status });
    }
}
