//! A real Kubernetes API server for one test: kube-apiserver and etcd on 127.0.0.1, RBAC, on ports that the
//! kernel gave, ended by their own ids.
//!
//! There is no controller and no kubelet: objects are stored, validated and served, nothing more.

use super::authority::Authority;
use super::peers::peer;
use rcgen::KeyPair;
use serde_json::{Value, json};
use std::fs;
use std::io::Write as _;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Two of them at once are more than a small machine bears.
static BUSY: Mutex<bool> = Mutex::new(false);
static FREE: Condvar = Condvar::new();

/// The right to run one; given back when it ends, on whatever thread that is.
struct Turn;

impl Turn {
    fn take() -> Self {
        let busy = BUSY.lock().unwrap_or_else(PoisonError::into_inner);
        let mut busy = FREE.wait_while(busy, |busy| *busy).unwrap_or_else(PoisonError::into_inner);
        *busy = true;
        Self
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        *BUSY.lock().unwrap_or_else(PoisonError::into_inner) = false;
        FREE.notify_one();
    }
}

/// What kubectl said.
#[derive(Debug)]
pub struct Kubectl {
    /// How it ended.
    pub status: std::process::ExitStatus,
    /// Results.
    pub stdout: String,
    /// Warnings and errors.
    pub stderr: String,
}

/// The user who may do everything.
pub const ADMIN: &str = "admin";

/// Users besides [`ADMIN`]; RBAC grants them nothing until a test does. The token of each is `<name>-token`.
pub const USERS: &[&str] = &["expedite", "ann", "bob", "carl"];

/// A running API server; dropping it stops it.
pub struct ApiServer {
    /// `https://127.0.0.1:<port>`.
    pub url: String,
    authority: Authority,
    processes: Vec<Child>,
    http: reqwest::blocking::Client,
    _turn: Turn,
}

impl Drop for ApiServer {
    fn drop(&mut self) {
        self.stop();
    }
}

impl ApiServer {
    /// Starts one. `None`: a peer is missing, which has been said.
    #[track_caller]
    pub fn start() -> Option<Self> {
        Self::start_with(&[])
    }

    /// Starts one with more flags of kube-apiserver.
    #[track_caller]
    pub fn start_with(flags: &[&str]) -> Option<Self> {
        let programs = (peer("etcd")?, peer("kube-apiserver")?);
        let turn = Turn::take();
        let authority = Authority::new();
        let pem = fs::read(authority.ca_file()).unwrap();
        let http = reqwest::blocking::Client::builder()
            .tls_certs_only([reqwest::Certificate::from_pem(&pem).unwrap()])
            .no_proxy()
            .timeout(Duration::from_secs(60))
            .build()
            .unwrap();
        let mut server = Self { url: String::new(), authority, processes: Vec::new(), http, _turn: turn };
        // A port that was free a moment ago may be another's by now.
        for _ in 0..5 {
            if server.try_start(&programs, flags) {
                return Some(server);
            }
            server.stop();
        }
        panic!("kube-apiserver did not start:\n{}", server.log());
    }

    fn try_start(&mut self, (etcd, kube_apiserver): &(PathBuf, PathBuf), flags: &[&str]) -> bool {
        let folder = self.folder().to_owned();
        let at = |name: &str| folder.join(name).to_str().unwrap().to_owned();
        let [clients, peers, secure] = free_ports();
        let _ = fs::remove_dir_all(folder.join("etcd"));
        let data = at("etcd");
        let mut command = Command::new(etcd);
        command.args(["--name", "test", "--data-dir", &data, "--unsafe-no-fsync"]);
        for flag in ["--listen-client-urls", "--advertise-client-urls"] {
            command.args([flag, &format!("http://127.0.0.1:{clients}")]);
        }
        for flag in ["--listen-peer-urls", "--initial-advertise-peer-urls"] {
            command.args([flag, &format!("http://127.0.0.1:{peers}")]);
        }
        command.args(["--initial-cluster", &format!("test=http://127.0.0.1:{peers}")]);
        self.spawn(command, "etcd.log");

        let key = KeyPair::generate().unwrap();
        fs::write(folder.join("accounts.key"), key.serialize_pem()).unwrap();
        fs::write(folder.join("accounts.pub"), key.public_key_pem()).unwrap();
        let mut tokens = format!("{ADMIN}-token,{ADMIN},0,system:masters\n");
        for (n, user) in USERS.iter().enumerate() {
            tokens += &format!("{user}-token,{user},{},\n", n + 1);
        }
        fs::write(folder.join("tokens.csv"), tokens).unwrap();
        let mut command = Command::new(kube_apiserver);
        command.args([
            &format!("--etcd-servers=http://127.0.0.1:{clients}"),
            "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1",
            &format!("--secure-port={secure}"),
            &format!("--tls-cert-file={}", at("server.pem")),
            &format!("--tls-private-key-file={}", at("server.key")),
            &format!("--cert-dir={}", at("certificates")),
            &format!("--token-auth-file={}", at("tokens.csv")),
            "--authorization-mode=RBAC",
            "--service-account-issuer=https://kubernetes.default.svc",
            &format!("--service-account-signing-key-file={}", at("accounts.key")),
            &format!("--service-account-key-file={}", at("accounts.pub")),
            "--service-cluster-ip-range=10.0.0.0/24",
            "--endpoint-reconciler-type=none",
            "--profiling=false",
        ]);
        command.args(flags);
        self.spawn(command, "apiserver.log");
        self.url = format!("https://127.0.0.1:{secure}");
        self.ready()
    }

    fn spawn(&mut self, mut command: Command, log: &str) {
        let log = fs::File::create(self.folder().join(log)).unwrap();
        command.env_clear().current_dir(self.folder()).stdin(Stdio::null());
        command.stdout(log.try_clone().unwrap()).stderr(log);
        self.processes.push(command.spawn().unwrap_or_else(|e| panic!("{command:?}: {e}")));
    }

    /// Waits; `false`: one of the programs ended.
    fn ready(&mut self) -> bool {
        let start = Instant::now();
        loop {
            if self.processes.iter_mut().any(|p| p.try_wait().unwrap().is_some()) {
                return false;
            }
            let answer = self.http.get(format!("{}/readyz", self.url)).bearer_auth("admin-token").send();
            if answer.is_ok_and(|a| a.status().is_success()) {
                return true;
            }
            assert!(start.elapsed() < Duration::from_secs(120), "not ready:\n{}", self.log());
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Ends both programs, at once and for good.
    pub fn stop(&mut self) {
        for mut process in self.processes.drain(..).rev() {
            // Already gone is as good.
            let _ = process.kill();
            let _ = process.wait();
        }
    }

    /// The last lines of both logs.
    pub fn log(&self) -> String {
        let tail = |name: &str| {
            let text = fs::read_to_string(self.folder().join(name)).unwrap_or_default();
            let lines: Vec<&str> = text.lines().collect();
            lines[lines.len().saturating_sub(15)..].join("\n")
        };
        format!("etcd:\n{}\nkube-apiserver:\n{}", tail("etcd.log"), tail("apiserver.log"))
    }

    fn folder(&self) -> &Path {
        self.authority.folder()
    }

    /// PEM file of the authority that signed its certificate.
    pub fn ca_file(&self) -> PathBuf {
        self.authority.ca_file()
    }

    /// A kubeconfig with one context for each user, called as the user; `current` is the current one.
    pub fn kubeconfig(&self, current: &str) -> String {
        kubeconfig(&self.url, &self.ca_file(), current)
    }

    /// Sends a request as `user` and gives status and body.
    pub fn send(&self, user: &str, method: &str, path: &str, body: Option<(&str, &Value)>) -> (u16, Value) {
        self.send_with(&format!("{user}-token"), method, path, body)
    }

    /// Sends a request with this token and gives status and body.
    pub fn send_with(
        &self,
        token: &str,
        method: &str,
        path: &str,
        body: Option<(&str, &Value)>,
    ) -> (u16, Value) {
        let method = reqwest::Method::from_bytes(method.as_bytes()).unwrap();
        let request = self.http.request(method, format!("{}{path}", self.url));
        let mut request = request.bearer_auth(token);
        if let Some((media_type, body)) = body {
            request = request.header("Content-Type", media_type).body(body.to_string());
        }
        let answer = request.send().unwrap_or_else(|e| panic!("{path}: {e:?}\n{}", self.log()));
        let status = answer.status().as_u16();
        let text = answer.text().unwrap();
        (status, serde_json::from_str(&text).unwrap_or(Value::String(text)))
    }

    /// Reads as `user`; `None`: nobody answers.
    pub fn try_send(&self, user: &str, path: &str) -> Option<(u16, Value)> {
        let request = self.http.get(format!("{}{path}", self.url)).bearer_auth(format!("{user}-token"));
        let answer = request.send().ok()?;
        let status = answer.status().as_u16();
        let text = answer.text().ok()?;
        Some((status, serde_json::from_str(&text).unwrap_or(Value::String(text))))
    }

    /// Reads as the administrator; must succeed.
    #[track_caller]
    pub fn get(&self, path: &str) -> Value {
        let (status, answer) = self.send(ADMIN, "GET", path, None);
        assert_eq!(status, 200, "{path}: {answer}");
        answer
    }

    /// Creates an object (and then its status, where it has one) as the administrator; must succeed.
    #[track_caller]
    pub fn create(&self, object: &Value) {
        let path = path_of(object);
        let (folder, _) = path.rsplit_once('/').unwrap();
        let (status, answer) = self.send(ADMIN, "POST", folder, Some(("application/json", object)));
        assert_eq!(status, 201, "{path}: {answer}");
        if let Some(status) = object.get("status") {
            self.merge(&format!("{path}/status"), &json!({"status": status}));
        }
    }

    /// Changes an object by a merge patch as the administrator; must succeed.
    #[track_caller]
    pub fn merge(&self, path: &str, patch: &Value) {
        let body = Some(("application/merge-patch+json", patch));
        let (status, answer) = self.send(ADMIN, "PATCH", path, body);
        // An object without the subresource takes its status with the rest.
        assert!(status == 200 || status == 404 && path.ends_with("/status"), "{path}: {status} {answer}");
    }

    /// Deletes an object as the administrator; must succeed.
    #[track_caller]
    pub fn delete(&self, path: &str) {
        let (status, answer) = self.send(ADMIN, "DELETE", path, None);
        assert!(status == 200 || status == 202, "{path}: {status} {answer}");
    }

    /// Creates every object of a text of YAML documents, namespaces first where they are missing.
    #[track_caller]
    pub fn apply(&self, yaml: &str) {
        for object in documents(yaml) {
            if let Some(namespace) = object["metadata"]["namespace"].as_str() {
                self.namespace(namespace);
            }
            self.create(&object);
        }
    }

    /// Makes a namespace unless it is there.
    pub fn namespace(&self, name: &str) {
        let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        let (status, answer) =
            self.send(ADMIN, "POST", "/api/v1/namespaces", Some(("application/json", &object)));
        assert!(status == 201 || status == 409, "{name}: {answer}");
    }

    /// Creates the CustomResourceDefinitions of a YAML text and waits until each is served.
    #[track_caller]
    pub fn define(&self, yaml: &str) {
        let crds = documents(yaml);
        crds.iter().for_each(|crd| self.create(crd));
        crds.iter().for_each(|crd| self.served(crd));
    }

    /// Waits until the kind of a CustomResourceDefinition is served, and told of by discovery.
    #[track_caller]
    pub fn served(&self, crd: &Value) {
        let start = Instant::now();
        let spec = &crd["spec"];
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let path = format!(
            "/apis/{}/{}/{}",
            text(&spec["group"]),
            text(&spec["versions"][0]["name"]),
            text(&spec["names"]["plural"])
        );
        let (folder, plural) = path.rsplit_once('/').unwrap();
        let told = || {
            let found = self.send(ADMIN, "GET", folder, None).1;
            found["resources"].as_array().is_some_and(|all| all.iter().any(|r| r["name"] == plural))
        };
        while self.send(ADMIN, "GET", &path, None).0 != 200 || !told() {
            assert!(start.elapsed() < Duration::from_secs(60), "{path} is not served");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Runs kubectl as `user`; the peer must be there.
    pub fn kubectl(&self, user: &str, arguments: &[&str], input: &str) -> Kubectl {
        let folder = self.folder().join("kubectl");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("config"), self.kubeconfig(user)).unwrap();
        let mut command = Command::new(peer("kubectl").expect("asked for before"));
        command.args(arguments).env_clear().current_dir(&folder).env("HOME", &folder);
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("KUBECONFIG", folder.join("config"));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        Kubectl { status: output.status, stdout: text(output.stdout), stderr: text(output.stderr) }
    }

    /// Argo CD's Application.
    pub fn define_applications(&self) {
        self.define(&data("argocd/application-crd.yaml"));
    }

    /// Our kinds, as they are shipped.
    pub fn define_shipped(&self) {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/crds");
        let files =
            fs::read_dir(folder).unwrap().map(|entry| fs::read_to_string(entry.unwrap().path()).unwrap());
        // A kustomization stands beside them.
        let crds: Vec<String> =
            files.filter(|text| text.contains("kind: CustomResourceDefinition")).collect();
        assert_eq!(crds.len(), 7);
        crds.iter().for_each(|crd| self.define(crd));
    }

    /// Kokumi's kinds as published in August 2026.
    pub fn define_published(&self) {
        for kind in ["orders", "preparations", "servings", "kitchens"] {
            self.define(&data(&format!("kokumi/{kind}.yaml")));
        }
    }

    /// Gives `user` a ClusterRole with these rules, everywhere (`namespace`: `None`) or in one namespace.
    pub fn grant(&self, user: &str, name: &str, rules: &Value, namespace: Option<&str>) {
        let rbac = "rbac.authorization.k8s.io/v1";
        self.create(&json!({
            "apiVersion": rbac, "kind": "ClusterRole", "metadata": {"name": name}, "rules": rules,
        }));
        let kind = if namespace.is_some() { "RoleBinding" } else { "ClusterRoleBinding" };
        let mut metadata = json!({"name": format!("{name}-{}", user.replace(':', "-"))});
        if let Some(namespace) = namespace {
            metadata["namespace"] = namespace.into();
        }
        self.create(&json!({
            "apiVersion": rbac, "kind": kind, "metadata": metadata,
            // A service account is a user of this name.
            "subjects": [{"kind": "User", "name": user, "apiGroup": "rbac.authorization.k8s.io"}],
            "roleRef": {"kind": "ClusterRole", "name": name, "apiGroup": "rbac.authorization.k8s.io"},
        }));
    }
}

/// A kubeconfig for the server at `url`, with one context for each user.
pub fn kubeconfig(url: &str, ca: &Path, current: &str) -> String {
    let users: Vec<&str> = [ADMIN].iter().chain(USERS).copied().collect();
    let contexts: Vec<Value> = users
        .iter()
        .map(|user| json!({"name": user, "context": {"cluster": "test", "user": user}}))
        .collect();
    let accounts: Vec<Value> =
        users.iter().map(|user| json!({"name": user, "user": {"token": format!("{user}-token")}})).collect();
    let config = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": current,
        "clusters": [{"name": "test", "cluster": {"server": url, "certificate-authority": ca}}],
        "contexts": contexts, "users": accounts,
    });
    config.to_string()
}

/// A file of `tests/data`.
pub fn data(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name);
    fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// The objects of a YAML text.
pub fn documents(yaml: &str) -> Vec<Value> {
    use serde::Deserialize as _;
    let all = serde_yaml::Deserializer::from_str(yaml);
    all.map(|one| Value::deserialize(one).unwrap()).filter(|object| !object.is_null()).collect()
}

/// Where the API server serves an object.
pub fn path_of(object: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_else(|| panic!("{object}")).to_owned();
    let version = text(&object["apiVersion"]);
    let root = if version.contains('/') { format!("/apis/{version}") } else { format!("/api/{version}") };
    let kind = text(&object["kind"]).to_lowercase();
    let plural = match kind.strip_suffix('y') {
        Some(stem) => format!("{stem}ies"),
        None => format!("{kind}s"),
    };
    let name = text(&object["metadata"]["name"]);
    match object["metadata"]["namespace"].as_str() {
        Some(namespace) => format!("{root}/namespaces/{namespace}/{plural}/{name}"),
        None => format!("{root}/{plural}/{name}"),
    }
}

/// Three different ports that are free.
fn free_ports() -> [u16; 3] {
    let listeners = [(); 3].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    listeners.map(|listener| listener.local_addr().unwrap().port())
}
