//! An API server that says what a test tells it, over plain HTTP on 127.0.0.1, on a port that the kernel gave.

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

/// What is answered.
#[derive(Debug, Clone)]
pub enum Answer {
    /// This status, with this JSON.
    Json(u16, Value),
    /// This status, with this text.
    Text(u16, String),
    /// A list that is cut off after half of it.
    Cut(Value),
    /// This failure, and when to come back, in seconds.
    Busy(u16, u64),
    /// Nothing, ever.
    Silence,
}

/// A request's path, and its query as pairs.
#[derive(Debug, Clone)]
pub struct Request {
    pub method: String,
    pub path: String,
    pub query: Vec<(String, String)>,
    /// Path and query as they came.
    pub target: String,
    pub authorization: String,
    pub content_type: String,
    /// Null where it is no JSON.
    pub body: Value,
}

impl Request {
    /// The value of a parameter.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_str())
    }
}

type Handler = dyn Fn(&Request) -> Answer + Send + Sync;

/// A running stub; dropping it stops it.
pub struct Stub {
    address: SocketAddr,
    stopped: Arc<AtomicBool>,
    seen: Arc<Mutex<Vec<Request>>>,
}

impl Stub {
    /// Answers every request by `handler`.
    pub fn start(handler: impl Fn(&Request) -> Answer + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let stopped = Arc::new(AtomicBool::new(false));
        let seen = Arc::new(Mutex::new(Vec::new()));
        let handler: Arc<Handler> = Arc::new(handler);
        let (stop, log) = (stopped.clone(), seen.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                if stop.load(Ordering::SeqCst) {
                    return;
                }
                let Ok(stream) = stream else { continue };
                let (handler, log) = (handler.clone(), log.clone());
                std::thread::spawn(move || serve(stream, &*handler, &log));
            }
        });
        Self { address, stopped, seen }
    }

    /// `http://127.0.0.1:<port>`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Every request so far.
    pub fn seen(&self) -> Vec<Request> {
        self.seen.lock().unwrap().clone()
    }
}

impl Drop for Stub {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::SeqCst);
        // Wakes the listener, which then ends.
        let _ = TcpStream::connect(self.address);
    }
}

fn serve(mut stream: TcpStream, handler: &Handler, log: &Mutex<Vec<Request>>) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut first = String::new();
    if reader.read_line(&mut first).unwrap_or(0) == 0 {
        return;
    }
    let (mut authorization, mut content_type, mut length) = (String::new(), String::new(), 0);
    for line in reader.by_ref().lines().map_while(Result::ok) {
        if line.is_empty() {
            break;
        }
        let Some((name, value)) = line.split_once(':') else { continue };
        match name.to_ascii_lowercase().as_str() {
            "authorization" => value.trim().clone_into(&mut authorization),
            "content-type" => value.trim().clone_into(&mut content_type),
            "content-length" => length = value.trim().parse().unwrap(),
            _ => {}
        }
    }
    let mut body = vec![0; length];
    if reader.read_exact(&mut body).is_err() {
        return;
    }
    let mut words = first.split(' ');
    let method = words.next().unwrap_or_default().to_owned();
    let target = words.next().unwrap_or_default().to_owned();
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    let query = url::form_urlencoded::parse(query.as_bytes()).into_owned().collect();
    let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
    let target = target.clone();
    let request = Request { method, path: path.to_owned(), query, target, authorization, content_type, body };
    log.lock().unwrap().push(request.clone());
    let mut more = String::new();
    let (status, kind, body, sent) = match handler(&request) {
        Answer::Json(status, value) => (status, "application/json", value.to_string(), None),
        Answer::Busy(status, seconds) => {
            more = format!("Retry-After: {seconds}\r\n");
            (status, "text/plain", "Too many requests, please try again later.".to_owned(), None)
        }
        Answer::Text(status, text) => (status, "text/plain", text, None),
        Answer::Cut(value) => {
            let body = value.to_string();
            let half = body.len() / 2;
            (200, "application/json", body, Some(half))
        }
        Answer::Silence => {
            // Until the other side gives up.
            let _ = stream.set_read_timeout(Some(std::time::Duration::from_secs(30)));
            let _ = stream.read(&mut [0]);
            return;
        }
    };
    let head = format!(
        "HTTP/1.1 {status} Said\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n{more}Connection: close\r\n\r\n",
        body.len()
    );
    let _ = stream.write_all(head.as_bytes());
    let _ = stream.write_all(&body.as_bytes()[..sent.unwrap_or(body.len())]);
}

/// What discovery says where all of our kinds are served, and Argo CD's are not.
pub fn ours() -> Value {
    let kinds = ["orders", "preparations", "approvals", "servings", "environments", "clusters", "kitchens"];
    let resources: Vec<Value> = kinds.iter().map(|name| json!({"name": name})).collect();
    json!({"kind": "APIResourceList", "groupVersion": "delivery.kokumi.dev/v1alpha1", "resources": resources})
}

/// A page of a list.
pub fn page(items: &[Value], next: &str) -> Answer {
    Answer::Json(
        200,
        json!({"kind": "List", "metadata": {"resourceVersion": "7", "continue": next}, "items": items}),
    )
}

/// A failure in an API server's words.
pub fn failure(code: u16, reason: &str, message: &str) -> Answer {
    let status = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": message, "reason": reason, "code": code});
    Answer::Json(code, status)
}
