//! HTTP/1.1 on a socket, right and wrong.

use super::State;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// A request as it came.
#[derive(Debug, Clone, Default)]
pub struct Request {
    pub method: String,
    /// Path and query.
    pub target: String,
    pub path: String,
    pub query: String,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Request {
    /// The header of this name (lower case).
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_str())
    }

    /// The values of a query parameter, decoded.
    pub fn query(&self, name: &str) -> Vec<String> {
        url::form_urlencoded::parse(self.query.as_bytes())
            .filter(|(n, _)| n == name)
            .map(|(_, v)| v.into_owned())
            .collect()
    }

    pub fn contains(&self, text: &str) -> bool {
        self.target.contains(text)
            || self.headers.iter().any(|(_, v)| v.contains(text))
            || String::from_utf8_lossy(&self.body).contains(text)
    }
}

/// An answer.
#[derive(Debug, Clone, Default)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn new(status: u16, content_type: &str, body: impl Into<Vec<u8>>) -> Self {
        let headers = match content_type {
            "" => Vec::new(),
            kind => vec![("Content-Type".to_owned(), kind.to_owned())],
        };
        Self { status, headers, body: body.into() }
    }

    /// A registry's own error.
    pub fn error(status: u16, code: &str) -> Self {
        let body = format!(r#"{{"errors":[{{"code":"{code}","message":"said by the registry"}}]}}"#);
        Self::new(status, "application/json", body)
    }

    /// A web page.
    pub fn html(status: u16) -> Self {
        Self::new(status, "text/html; charset=utf-8", "<html><body>Please log in</body></html>")
    }

    pub fn with(mut self, name: &str, value: impl Into<String>) -> Self {
        self.headers.push((name.to_owned(), value.into()));
        self
    }
}

/// Changes an honest answer.
pub type Changing = dyn Fn(&Request, &mut Answer) + Send + Sync;

/// What to do instead of an honest answer.
#[derive(Clone)]
pub enum Fault {
    /// This answer.
    Answer(Answer),
    /// The honest answer, changed.
    Change(Arc<Changing>),
    /// The connection is closed without an answer.
    Close,
    /// The connection is reset.
    Reset,
    /// The honest answer, closed after this many bytes of its body; Content-Length promises all.
    Cut(usize),
    /// The honest answer with one bit of its body flipped, its digest header lying.
    Flip,
    /// The honest answer after a pause.
    Slow(Duration),
    /// Status 200 and one byte each pause, for ever.
    Drip(Duration),
    /// Status 200 and bytes without end.
    Endless,
}

impl Fault {
    /// An OCI error of this status.
    pub fn status(status: u16) -> Self {
        let code = match status {
            401 => "UNAUTHORIZED",
            403 => "DENIED",
            404 => "NAME_UNKNOWN",
            429 => "TOOMANYREQUESTS",
            _ => "UNKNOWN",
        };
        Self::Answer(Answer::error(status, code))
    }

    pub fn redirect(target: impl Into<String>) -> Self {
        Self::Answer(Answer::new(307, "", "").with("Location", target))
    }

    pub fn change(how: impl Fn(&Request, &mut Answer) + Send + Sync + 'static) -> Self {
        Self::Change(Arc::new(how))
    }
}

trait Socket: Read + Write {}
impl<T: Read + Write> Socket for T {}

/// Serves one connection until it ends.
pub(super) fn serve(state: &State, stream: TcpStream, tls: Option<Arc<rustls::ServerConfig>>) {
    let raw = stream.try_clone().unwrap();
    let _ = raw.set_nodelay(true);
    let socket: Box<dyn Socket> = match tls {
        None => Box::new(stream),
        Some(config) => {
            let connection = rustls::ServerConnection::new(config).unwrap();
            Box::new(rustls::StreamOwned::new(connection, stream))
        }
    };
    let mut reader = BufReader::new(socket);
    while let Some(request) = read_request(&mut reader) {
        if !respond(state, request, reader.get_mut(), &raw) {
            return;
        }
    }
}

fn read_request(from: &mut impl BufRead) -> Option<Request> {
    let mut line = String::new();
    from.read_line(&mut line).ok().filter(|n| *n > 0)?;
    let mut words = line.split_whitespace();
    let (method, target) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        from.read_line(&mut line).ok().filter(|n| *n > 0)?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    let (path, query) = (path.to_owned(), query.to_owned());
    let mut request = Request { method, target, path, query, headers, body: Vec::new() };
    let length = request.header("content-length").and_then(|l| l.parse().ok()).unwrap_or(0);
    request.body = vec![0; length];
    from.read_exact(&mut request.body).ok()?;
    Some(request)
}

/// Answers; `false`: the connection is over. The request is in the log before its answer is out, so that a
/// client that has the answer finds it there.
fn respond(state: &State, request: Request, to: &mut dyn Socket, raw: &TcpStream) -> bool {
    let is_head = request.method == "HEAD";
    let due = state.due(&request);
    let answer = match &due {
        None => Some(state.honest(&request)),
        Some(Fault::Answer(answer)) => Some(answer.clone()),
        Some(Fault::Change(how)) => {
            let mut answer = state.honest(&request);
            how(&request, &mut answer);
            Some(answer)
        }
        Some(Fault::Slow(pause)) => {
            thread::sleep(*pause);
            Some(state.honest(&request))
        }
        Some(Fault::Flip) => {
            let mut answer = state.honest(&request);
            if let Some(last) = answer.body.last_mut() {
                *last ^= 1;
            }
            Some(answer)
        }
        Some(Fault::Cut(_)) => Some(state.honest(&request)),
        Some(Fault::Drip(_) | Fault::Endless) => Some(Answer { status: 200, ..Answer::default() }),
        Some(Fault::Close | Fault::Reset) => None,
    };
    state.seen(request, answer.as_ref().map(|a| a.status));
    let Some(answer) = answer else {
        if matches!(due, Some(Fault::Reset)) {
            let _ = socket2::SockRef::from(raw).set_linger(Some(Duration::ZERO));
        }
        return false;
    };
    let whole = if is_head { 0 } else { answer.body.len() };
    match due {
        Some(Fault::Drip(pause)) => drip(to, b"1\r\n \r\n", pause),
        Some(Fault::Endless) => {
            let chunk = [format!("{:x}\r\n", 1 << 16).as_bytes(), &[b' '; 1 << 16], b"\r\n"].concat();
            drip(to, &chunk, Duration::ZERO);
        }
        Some(Fault::Cut(length)) => {
            send(to, &answer, length.min(whole));
        }
        Some(
            Fault::Answer(_) | Fault::Change(_) | Fault::Slow(_) | Fault::Flip | Fault::Close | Fault::Reset,
        )
        | None => return send(to, &answer, whole),
    }
    false
}

fn send(to: &mut dyn Socket, answer: &Answer, length: usize) -> bool {
    let body = &answer.body[..length];
    to.write_all(&head(answer)).and_then(|()| to.write_all(body)).and_then(|()| to.flush()).is_ok()
}

fn head(answer: &Answer) -> Vec<u8> {
    let mut head = format!("HTTP/1.1 {} Status\r\n", answer.status);
    for (name, value) in &answer.headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str(&format!("Content-Length: {}\r\n\r\n", answer.body.len()));
    head.into_bytes()
}

fn drip(to: &mut dyn Socket, chunk: &[u8], pause: Duration) {
    let start = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    if to.write_all(start).is_err() {
        return;
    }
    while to.write_all(chunk).and_then(|()| to.flush()).is_ok() {
        thread::sleep(pause);
    }
}
