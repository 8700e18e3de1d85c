//! A forge in this process: pull requests with comments, over plain HTTP on loopback, on a port of the kernel's
//! choice. It holds every request and every answer of its own against the forge's published description
//! (`tests/it/forge/openapi/`), and fails where a rule says so.

use expedite::forge::Forge;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier, Mutex};

/// Whose comments ours are.
pub const US: Author = Author { id: 41, login: "expedite[bot]", bot: true };
/// Somebody else.
pub const ANN: Author = Author { id: 7, login: "ann", bot: false };
/// Another bot.
pub const LINTER: Author = Author { id: 99, login: "linter[bot]", bot: true };
/// The token that is let in.
pub const TOKEN: &str = "t0ken-of-a-test";
/// The pull request's newest commit.
pub const HEAD: &str = "1111111111111111111111111111111111111111";

/// An account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Author {
    pub id: i64,
    pub login: &'static str,
    pub bot: bool,
}

/// A comment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Comment {
    pub id: i64,
    pub author: Author,
    pub body: String,
}

/// A request as it came.
#[derive(Debug, Clone)]
pub struct Request {
    pub method: String,
    pub path: String,
    pub query: Vec<(String, String)>,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Request {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str())
    }

    /// `POST /…/comments`, without the query.
    pub fn line(&self) -> String {
        format!("{} {}", self.method, self.path)
    }
}

/// What goes wrong.
#[derive(Clone)]
pub enum Fault {
    /// This status instead, with these headers and this body.
    Status(u16, Vec<(&'static str, String)>, String),
    /// The right answer, cut in half.
    Cut,
    /// It is done, and nobody hears of it.
    DoneUnheard,
    /// The connection ends before anything is done.
    Dropped,
    /// It waits for the others at this barrier, and goes on as usual.
    Meet(Arc<Barrier>),
    /// The pull request gets this commit first, and it goes on as usual.
    Push(&'static str),
}

impl Fault {
    /// A status alone.
    pub fn status(status: u16) -> Self {
        Self::Status(status, Vec::new(), json!({"message": "no"}).to_string())
    }
}

type When = Box<dyn Fn(&Request) -> bool + Send>;

struct State {
    comments: Vec<Comment>,
    next: i64,
    head: String,
    token: String,
    /// Whether the token may ask whose it is.
    may_ask: bool,
    rules: Vec<(When, usize, Fault)>,
    seen: Vec<Request>,
    wrong: Vec<String>,
}

struct Shared {
    forge: Forge,
    described: Value,
    address: SocketAddr,
    with_tls: bool,
    state: Mutex<State>,
    stopped: AtomicBool,
}

/// A running forge; dropping it stops it, and fails if anything was not as described.
pub struct Pulls(Arc<Shared>);

impl Pulls {
    /// A forge with pull request 3 of `acme/gitops` (project 12).
    pub fn start(forge: Forge) -> Self {
        Self::listen(forge, None)
    }

    /// The same over HTTPS.
    pub fn start_tls(forge: Forge, tls: Arc<rustls::ServerConfig>) -> Self {
        Self::listen(forge, Some(tls))
    }

    fn listen(forge: Forge, tls: Option<Arc<rustls::ServerConfig>>) -> Self {
        let text = match forge {
            Forge::Github => include_str!("../forge/openapi/github.json"),
            Forge::Gitlab => include_str!("../forge/openapi/gitlab.json"),
            Forge::Gitea => include_str!("../forge/openapi/gitea.json"),
        };
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let state = State {
            comments: Vec::new(),
            next: 100,
            head: HEAD.to_owned(),
            token: TOKEN.to_owned(),
            may_ask: true,
            rules: Vec::new(),
            seen: Vec::new(),
            wrong: Vec::new(),
        };
        let shared = Arc::new(Shared {
            forge,
            described: serde_json::from_str(text).unwrap(),
            address: listener.local_addr().unwrap(),
            with_tls: tls.is_some(),
            state: Mutex::new(state),
            stopped: AtomicBool::new(false),
        });
        let own = shared.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                if own.stopped.load(Ordering::SeqCst) {
                    return;
                }
                let Ok(stream) = stream else { continue };
                let (own, tls) = (own.clone(), tls.clone());
                std::thread::spawn(move || match tls {
                    None => own.serve(stream),
                    Some(tls) => {
                        let connection = rustls::ServerConnection::new(tls).unwrap();
                        own.serve(rustls::StreamOwned::new(connection, stream));
                    }
                });
            }
        });
        Self(shared)
    }

    /// `http://127.0.0.1:<port>`, or `https`.
    pub fn url(&self) -> String {
        format!("{}://{}", if self.0.with_tls { "https" } else { "http" }, self.0.address)
    }

    /// What CI sets for a run of the commit `head` of the pull request; `event` is where its event is kept.
    pub fn variables(&self, event: &std::path::Path, head: &str) -> Vec<(&'static str, String)> {
        let name = json!({"full_name": "acme/gitops"});
        let written = json!({"pull_request": {"number": 3, "head": {"sha": head, "repo": name}, "base": {"repo": name}}});
        std::fs::write(event, written.to_string()).unwrap();
        let event = event.to_str().unwrap().to_owned();
        let actions = [("GITHUB_REPOSITORY", "acme/gitops".to_owned()), ("GITHUB_EVENT_PATH", event)];
        match self.0.forge {
            Forge::Github => actions
                .into_iter()
                .chain([("GITHUB_API_URL", self.url()), ("GITHUB_TOKEN", TOKEN.to_owned())])
                .collect(),
            Forge::Gitea => actions
                .into_iter()
                .chain([("GITHUB_SERVER_URL", self.url()), ("GITEA_TOKEN", TOKEN.to_owned())])
                .collect(),
            Forge::Gitlab => vec![
                ("CI_API_V4_URL", format!("{}/api/v4", self.url())),
                ("CI_PROJECT_ID", "12".to_owned()),
                ("CI_MERGE_REQUEST_IID", "3".to_owned()),
                ("CI_COMMIT_SHA", head.to_owned()),
                ("GITLAB_TOKEN", TOKEN.to_owned()),
            ],
        }
    }

    /// Puts a comment there.
    pub fn comment(&self, author: Author, body: &str) -> i64 {
        self.0.state.lock().unwrap().add(author, body)
    }

    /// Every comment, the oldest first.
    pub fn comments(&self) -> Vec<Comment> {
        self.0.state.lock().unwrap().comments.clone()
    }

    /// Those of ours.
    pub fn ours(&self) -> Vec<Comment> {
        self.comments().into_iter().filter(|comment| comment.author == US).collect()
    }

    /// Rewrites a comment, as somebody does on its page.
    pub fn rewrite(&self, id: i64, body: &str) {
        let mut state = self.0.state.lock().unwrap();
        state.comments.iter_mut().find(|c| c.id == id).unwrap().body = body.to_owned();
    }

    /// The pull request's newest commit is this.
    pub fn push(&self, head: &str) {
        self.0.state.lock().unwrap().head = head.to_owned();
    }

    /// Lets in another token; `may_ask`: whether it may ask whose it is.
    pub fn lets_in(&self, token: &str, may_ask: bool) {
        let mut state = self.0.state.lock().unwrap();
        (state.token, state.may_ask) = (token.to_owned(), may_ask);
    }

    /// The next `times` requests that begin so meet a fault.
    pub fn fault(&self, times: usize, line: &'static str, fault: Fault) {
        let when: When = Box::new(move |request: &Request| {
            let (method, part) = line.split_once(' ').unwrap();
            request.method == method && request.path.contains(part)
        });
        self.0.state.lock().unwrap().rules.push((when, times, fault));
    }

    /// Nothing goes wrong any more.
    pub fn calm(&self) {
        self.0.state.lock().unwrap().rules.clear();
    }

    /// Every request for this page of comments meets a fault.
    pub fn fault_page(&self, page: usize, fault: Fault) {
        let when: When = Box::new(move |request: &Request| {
            request.query.iter().any(|(name, value)| name == "page" && *value == page.to_string())
        });
        self.0.state.lock().unwrap().rules.push((when, usize::MAX, fault));
    }

    /// Every request so far, as `METHOD last-part`.
    pub fn asked(&self) -> Vec<String> {
        let last = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
        let state = self.0.state.lock().unwrap();
        state.seen.iter().map(|r| format!("{} {}", r.method, last(&r.path))).collect()
    }

    /// Forgets what was asked.
    pub fn forget(&self) {
        self.0.state.lock().unwrap().seen.clear();
    }

    /// What was not as described.
    pub fn wrong(&self) -> Vec<String> {
        self.0.state.lock().unwrap().wrong.clone()
    }
}

impl Drop for Pulls {
    fn drop(&mut self) {
        self.0.stopped.store(true, Ordering::SeqCst);
        // Wakes the listener, which then ends.
        let _ = TcpStream::connect(self.0.address);
        if !std::thread::panicking() {
            let wrong = self.wrong();
            assert!(wrong.is_empty(), "not as the forge describes its API:\n{}", wrong.join("\n"));
        }
    }
}

impl State {
    fn add(&mut self, author: Author, body: &str) -> i64 {
        self.next += 1;
        self.comments.push(Comment { id: self.next, author, body: body.to_owned() });
        self.next
    }
}

/// What is answered.
struct Answer {
    status: u16,
    headers: Vec<(&'static str, String)>,
    body: Option<Value>,
}

impl Answer {
    fn json(status: u16, body: Value) -> Self {
        Self { status, headers: Vec::new(), body: Some(body) }
    }

    fn message(status: u16, text: &str) -> Self {
        Self::json(status, json!({"message": text}))
    }
}

impl Shared {
    fn serve(&self, mut stream: impl Read + Write) {
        let Some(request) = read(&mut stream) else { return };
        let fault = {
            let mut state = self.state.lock().unwrap();
            state.seen.push(request.clone());
            let found = state.rules.iter_mut().find(|(when, times, _)| *times > 0 && when(&request));
            found.map(|(_, times, fault)| {
                *times -= 1;
                fault.clone()
            })
        };
        match fault {
            Some(Fault::Status(status, headers, body)) => write(&mut stream, status, &headers, &body, None),
            Some(Fault::Dropped) => {}
            Some(Fault::DoneUnheard) => {
                self.answer(&request);
            }
            Some(Fault::Cut) => {
                let answer = self.answer(&request);
                let body = answer.body.unwrap_or_default().to_string();
                write(&mut stream, answer.status, &answer.headers, &body, Some(body.len() / 2));
            }
            Some(Fault::Meet(barrier)) => {
                barrier.wait();
                self.reply(&mut stream, &request);
            }
            Some(Fault::Push(head)) => {
                self.state.lock().unwrap().head = head.to_owned();
                self.reply(&mut stream, &request);
            }
            None => self.reply(&mut stream, &request),
        }
    }

    fn reply(&self, stream: &mut dyn Write, request: &Request) {
        let answer = self.answer(request);
        let body = answer.body.map(|body| body.to_string()).unwrap_or_default();
        write(stream, answer.status, &answer.headers, &body, None);
    }

    fn answer(&self, request: &Request) -> Answer {
        let mut state = self.state.lock().unwrap();
        let authorized = match self.forge {
            Forge::Github => request.header("authorization") == Some(&format!("Bearer {}", state.token)),
            Forge::Gitlab => request.header("private-token") == Some(state.token.as_str()),
            Forge::Gitea => request.header("authorization") == Some(&format!("token {}", state.token)),
        };
        if request.header("user-agent").is_none_or(str::is_empty) {
            state.wrong.push(format!("{}: no User-Agent", request.line()));
        }
        if !authorized {
            return Answer::message(401, "Bad credentials");
        }
        let (operation, values) = match self.described(request) {
            Ok(found) => found,
            Err(why) => {
                state.wrong.push(format!("{}: {why}", request.line()));
                return Answer::message(400, &why);
            }
        };
        let answer = self.act(&mut state, request, &values);
        let schema = &operation["responses"][answer.status.to_string()];
        if schema.is_null() {
            state.wrong.push(format!("{}: the fake answers {}", request.line(), answer.status));
        } else if let (Some(body), false) = (&answer.body, schema["schema"].is_null())
            && let Err(why) = self.holds(&schema["schema"], body)
        {
            state.wrong.push(format!("{}: the fake's answer: {why}", request.line()));
        }
        answer
    }

    /// The operation that a request is, and its parameters by name; or what is wrong with it.
    fn described(&self, request: &Request) -> Result<(Value, Vec<(String, String)>), String> {
        let root = self.described["x-root"].as_str().unwrap();
        let path = request.path.strip_prefix(root).ok_or("outside of the API")?;
        let parts: Vec<&str> = path.split('/').collect();
        let paths = self.described["paths"].as_object().unwrap();
        // What is spelt out goes before what a parameter stands for.
        let mut templates: Vec<(&String, &Value)> = paths.iter().collect();
        templates.sort_by_key(|(template, _)| template.matches('{').count());
        let found = templates.into_iter().find_map(|(template, operations)| {
            let wanted: Vec<&str> = template.split('/').collect();
            let fits = wanted.len() == parts.len()
                && wanted
                    .iter()
                    .zip(&parts)
                    .all(|(w, part)| w.starts_with('{') && !part.is_empty() || w == part);
            let values = wanted.iter().zip(&parts).filter_map(|(w, part)| {
                Some((w.strip_prefix('{')?.strip_suffix('}')?.to_owned(), (*part).to_owned()))
            });
            fits.then(|| (operations, values.collect::<Vec<_>>()))
        });
        let (operations, mut values) = found.ok_or("no such path")?;
        let operation = &operations[request.method.to_ascii_lowercase()];
        if operation.is_null() {
            return Err("no such method on this path".to_owned());
        }
        let in_path = values.len();
        values.extend(request.query.iter().cloned());
        for (n, (name, text)) in values.iter().enumerate() {
            let place = if n < in_path { "path" } else { "query" };
            let parameters = operation["parameters"].as_array().unwrap();
            let parameter = parameters.iter().find(|p| p["name"] == **name && p["in"] == place);
            let schema = &parameter.ok_or_else(|| format!("no parameter {name} in the {place}"))?["schema"];
            let value = text.parse::<i64>().map_or_else(|_| json!(text), |number| json!(number));
            self.holds(schema, &value).map_err(|why| format!("parameter {name}: {why}"))?;
        }
        let schema = &operation["requestBody"];
        match (schema.is_null(), request.body.is_empty()) {
            (true, false) => return Err("a body where none is described".to_owned()),
            (true, true) => {}
            (false, _) => {
                if request.header("content-type") != Some("application/json") {
                    return Err("the body is not said to be JSON".to_owned());
                }
                let body: Value = serde_json::from_slice(&request.body).map_err(|e| e.to_string())?;
                self.holds(schema, &body)?;
                let known = schema["properties"].as_object().unwrap();
                if let Some(name) = body.as_object().unwrap().keys().find(|name| !known.contains_key(*name)) {
                    return Err(format!("no member {name} is described"));
                }
            }
        }
        Ok((operation.clone(), values))
    }

    /// Whether a value is as a schema of the description says.
    fn holds(&self, schema: &Value, value: &Value) -> Result<(), String> {
        let mut schema = schema.clone();
        schema["components"] = self.described["components"].clone();
        let validator = jsonschema::validator_for(&schema).unwrap();
        let errors: Vec<String> = validator.iter_errors(value).map(|e| e.to_string()).collect();
        if errors.is_empty() { Ok(()) } else { Err(errors.join("; ")) }
    }

    fn act(&self, state: &mut State, request: &Request, values: &[(String, String)]) -> Answer {
        let value = |name: &str| values.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_str());
        let number = |name: &str| value(name).and_then(|v| v.parse::<i64>().ok());
        if request.path.ends_with("/user") {
            return match (state.may_ask, self.forge) {
                (true, _) => Answer::json(200, self.user(US)),
                (false, _) => Answer::message(403, "Resource not accessible by integration"),
            };
        }
        let mine = match self.forge {
            Forge::Gitlab => value("id") == Some("12"),
            Forge::Github | Forge::Gitea => (value("owner"), value("repo")) == (Some("acme"), Some("gitops")),
        };
        let asked =
            ["issue_number", "pull_number", "index", "merge_request_iid"].iter().find_map(|n| number(n));
        if !mine || asked.is_some_and(|asked| asked != 3) {
            return Answer::message(404, "Not Found");
        }
        let text = || {
            let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
            body["body"].as_str().unwrap_or_default().to_owned()
        };
        let one = match self.forge {
            Forge::Github => number("comment_id"),
            Forge::Gitlab => number("note_id"),
            Forge::Gitea => number("id"),
        };
        match (request.method.as_str(), one) {
            ("GET", None) if request.path.ends_with("/3") => {
                let head = json!({"sha": state.head, "ref": "change"});
                Answer::json(200, json!({"number": 3, "iid": 3, "sha": state.head, "head": head}))
            }
            ("GET", None) => self.list(state, &number),
            ("POST", None) => {
                let id = state.add(US, &text());
                Answer::json(201, self.written(state.comments.iter().find(|c| c.id == id).unwrap()))
            }
            ("PATCH" | "PUT", Some(id)) => match state.comments.iter_mut().find(|c| c.id == id) {
                Some(comment) => {
                    comment.body = text();
                    Answer::json(200, self.written(comment))
                }
                None => Answer::message(404, "Not Found"),
            },
            ("DELETE", Some(id)) => {
                state.comments.retain(|c| c.id != id);
                Answer { status: 204, headers: Vec::new(), body: None }
            }
            other => panic!("{other:?}"),
        }
    }

    fn list(&self, state: &State, number: &dyn Fn(&str) -> Option<i64>) -> Answer {
        let all: Vec<Value> = state.comments.iter().map(|comment| self.written(comment)).collect();
        let default = match self.forge {
            Forge::Github => 30,
            Forge::Gitlab => 20,
            Forge::Gitea => return Answer::json(200, json!(all)),
        };
        let size = usize::try_from(number("per_page").unwrap_or(default)).unwrap();
        let page = usize::try_from(number("page").unwrap_or(1)).unwrap();
        let shown: Vec<Value> = all.iter().skip((page - 1) * size).take(size).cloned().collect();
        let mut answer = Answer::json(200, json!(shown));
        if page * size < all.len() {
            // Where it leads is not to be followed: the token would go there.
            let next = format!("<https://elsewhere.invalid/?page={}>; rel=\"next\"", page + 1);
            answer.headers.push(("Link", next));
        }
        answer
    }

    fn user(&self, author: Author) -> Value {
        let Author { id, login, bot } = author;
        match self.forge {
            Forge::Github => json!({"id": id, "login": login, "type": if bot { "Bot" } else { "User" }}),
            Forge::Gitlab => json!({"id": id, "username": login}),
            Forge::Gitea => json!({"id": id, "login": login}),
        }
    }

    fn written(&self, comment: &Comment) -> Value {
        let (id, time) = (comment.id, "2026-02-10T12:00:00Z");
        let page = format!("https://forge.invalid/acme/gitops/pull/3#issuecomment-{id}");
        let user = self.user(comment.author);
        match self.forge {
            Forge::Github => json!({
                "id": id, "node_id": "x", "url": page, "html_url": page, "issue_url": page, "user": user,
                "created_at": time, "updated_at": time, "author_association": "NONE", "body": comment.body,
            }),
            Forge::Gitlab => json!({
                "id": id, "body": comment.body, "author": user, "created_at": time, "updated_at": time,
                "system": comment.body.starts_with("added "), "noteable_id": 1, "noteable_type": "MergeRequest",
                "noteable_iid": 3, "project_id": 12,
            }),
            Forge::Gitea => json!({
                "id": id, "body": comment.body, "user": user, "created_at": time, "updated_at": time,
                "html_url": page, "issue_url": "", "pull_request_url": page,
            }),
        }
    }
}

fn read(stream: &mut dyn Read) -> Option<Request> {
    let mut reader = BufReader::new(stream);
    let mut first = String::new();
    reader.read_line(&mut first).ok().filter(|n| *n > 0)?;
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let length =
        headers.iter().find(|(n, _)| n == "content-length").and_then(|(_, v)| v.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let mut words = first.split(' ');
    let (method, target) = (words.next()?.to_owned(), words.next()?.to_owned());
    // A proxy is told the whole of the URL.
    let own = target.strip_prefix("http://").and_then(|rest| rest.find('/').map(|at| rest[at..].to_owned()));
    let target = own.unwrap_or(target);
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    let query = url::form_urlencoded::parse(query.as_bytes()).into_owned().collect();
    Some(Request { method, path: path.to_owned(), query, headers, body })
}

fn write(
    stream: &mut dyn Write,
    status: u16,
    headers: &[(&'static str, String)],
    body: &str,
    sent: Option<usize>,
) {
    let mut head = format!("HTTP/1.1 {status} Said\r\nConnection: close\r\n");
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    if status != 204 {
        head.push_str(&format!("Content-Type: application/json\r\nContent-Length: {}\r\n", body.len()));
    }
    let _ = stream.write_all(format!("{head}\r\n").as_bytes());
    let _ = stream.write_all(&body.as_bytes()[..sent.unwrap_or(body.len())]);
}
