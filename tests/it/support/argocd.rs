//! A real Argo CD for one test: its repo-server and application-controller against a real API server, redis
//! between them, all on 127.0.0.1, on ports that the kernel gave, ended by their own ids.
//!
//! There is no kubelet and no other controller: what runs is what a test says is running (a status patch).

use super::apiserver::{ADMIN, ApiServer, data};
use super::peers::peer;
use serde_json::{Value, json};
use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Where Applications are.
const APPLICATIONS: &str = "/apis/argoproj.io/v1alpha1/namespaces/argocd/applications";

/// How long a sync may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(180);

/// A running Argo CD; dropping it stops it, the API server last.
pub struct ArgoCd {
    processes: Vec<Child>,
    folder: tempfile::TempDir,
    /// The cluster it runs in.
    pub cluster: ApiServer,
}

impl Drop for ArgoCd {
    fn drop(&mut self) {
        for mut process in self.processes.drain(..).rev() {
            // Already gone is as good.
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

impl ArgoCd {
    /// Starts one that may pull from the registry at `registry` (plain HTTP). `None`: a peer is missing, which
    /// has been said.
    #[track_caller]
    pub fn start(registry: &str) -> Option<Self> {
        let (argocd, redis) = (peer("argocd")?, peer("redis-server")?);
        let cluster = ApiServer::start()?;
        let folder = tempfile::Builder::new().prefix("expedite-argocd-").tempdir().unwrap();
        configure(&cluster, registry);
        let mut running = Self { processes: Vec::new(), folder, cluster };
        let [store, manifests, metrics, more] = free_ports();
        let mut command = running.command(&redis);
        command.args(["--port", &store, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]);
        running.spawn("redis", command);

        // One program, told by its name which part it is.
        let root = running.folder.path().to_owned();
        for part in ["repo-server", "application-controller"] {
            std::os::unix::fs::symlink(&argocd, root.join(format!("argocd-{part}"))).unwrap();
        }
        // Called for every commit that is read, whether signatures are asked for or not.
        write_program(&root.join("git-verify-wrapper.sh"), "#!/bin/sh\nexit 0\n");
        for name in ["tls", "ssh", ".kube", "tmp"] {
            fs::create_dir(root.join(name)).unwrap();
        }
        fs::write(root.join(".kube/config"), running.cluster.kubeconfig(ADMIN)).unwrap();

        let store = format!("127.0.0.1:{store}");
        let mut command = running.command(&root.join("argocd-repo-server"));
        command.args(["--redis", &store, "--port", &manifests, "--address", "127.0.0.1", "--disable-tls"]);
        command.args(["--client-ca-path", "", "--metrics-port", &metrics, "--metrics-address", "127.0.0.1"]);
        running.spawn("repo-server", command);

        let mut command = running.command(&root.join("argocd-application-controller"));
        command.args(["--kubeconfig", root.join(".kube/config").to_str().unwrap(), "--namespace", "argocd"]);
        command.args(["--redis", &store, "--repo-server", &format!("127.0.0.1:{manifests}")]);
        command.args(["--repo-server-plaintext", "--metrics-port", &more, "--app-resync", "3"]);
        running.spawn("application-controller", command);
        Some(running)
    }

    /// A cleared environment, its own home, and what Argo CD's image would have set.
    fn command(&self, program: &Path) -> Command {
        let root = self.folder.path();
        let mut path = std::ffi::OsString::from(root);
        path.push(":");
        path.push(std::env::var_os("PATH").unwrap_or_default());
        let mut command = Command::new(program);
        command
            .current_dir(root)
            .env_clear()
            .env("PATH", path)
            .env("HOME", root)
            .env("TMPDIR", root.join("tmp"))
            .env("ARGOCD_BINARY_NAME", program.file_name().unwrap())
            .env("ARGOCD_GPG_ENABLED", "false")
            // `https://kubernetes.default.svc` is the cluster of the kubeconfig.
            .env("ARGOCD_FAKE_IN_CLUSTER", "true")
            .env("ARGOCD_TLS_DATA_PATH", root.join("tls"))
            .env("ARGOCD_SSH_DATA_PATH", root.join("ssh"))
            .env("ARGOCD_RECONCILIATION_TIMEOUT", "3s")
            .env("ARGOCD_RECONCILIATION_JITTER", "0s");
        command
    }

    fn spawn(&mut self, name: &str, mut command: Command) {
        let log = fs::File::create(self.folder.path().join(format!("{name}.log"))).unwrap();
        command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
        self.processes.push(command.spawn().unwrap_or_else(|e| panic!("{command:?}: {e}")));
    }

    /// Every Application, as `kubectl get applications -n argocd -o json` prints them.
    pub fn applications(&self) -> Value {
        let mut list = self.cluster.get(APPLICATIONS);
        for item in list["items"].as_array_mut().unwrap() {
            // The API server leaves them out of the items of a list; kubectl puts them in.
            item["apiVersion"] = "argoproj.io/v1alpha1".into();
            item["kind"] = "Application".into();
        }
        list["apiVersion"] = "v1".into();
        list["kind"] = "List".into();
        list
    }

    /// One Application; null where there is none.
    pub fn application(&self, name: &str) -> Value {
        let (status, found) = self.cluster.send(ADMIN, "GET", &format!("{APPLICATIONS}/{name}"), None);
        if status == 200 { found } else { Value::Null }
    }

    /// Waits until `ready` says so of the Application.
    ///
    /// # Panics
    /// It did not; the Application and the last lines of every log are shown.
    #[track_caller]
    pub fn until(&self, name: &str, what: &str, ready: impl Fn(&Value) -> bool) -> Value {
        let start = Instant::now();
        loop {
            let found = self.application(name);
            if ready(&found) {
                return found;
            }
            assert!(start.elapsed() < PATIENCE, "{name} is not {what}: {found:#}\n{}", self.log());
            std::thread::sleep(Duration::from_millis(500));
        }
    }

    /// The last lines of every log.
    pub fn log(&self) -> String {
        let tail = |name: &str| {
            let text = fs::read_to_string(self.folder.path().join(format!("{name}.log"))).unwrap_or_default();
            let lines: Vec<&str> = text.lines().collect();
            format!("{name}:\n{}\n", lines[lines.len().saturating_sub(8)..].join("\n"))
        };
        ["redis", "repo-server", "application-controller"].map(tail).concat()
    }
}

/// What Argo CD's own manifests would have installed, as far as these two programs read it.
fn configure(cluster: &ApiServer, registry: &str) {
    cluster.define_applications();
    cluster.define(&data("argocd/appproject-crd.yaml"));
    cluster.namespace("argocd");
    let labels = json!({"app.kubernetes.io/part-of": "argocd"});
    let named = |name: &str| json!({"name": name, "namespace": "argocd", "labels": labels});
    for name in [
        "argocd-cm",
        "argocd-rbac-cm",
        "argocd-ssh-known-hosts-cm",
        "argocd-tls-certs-cm",
        "argocd-gpg-keys-cm",
    ] {
        let data = if name == "argocd-cm" { json!({"timeout.reconciliation": "3s"}) } else { json!({}) };
        cluster
            .create(&json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": named(name), "data": data}));
    }
    let secret = |metadata: Value, data: Value| {
        cluster
            .create(&json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": data}));
    };
    secret(named("argocd-secret"), json!({"server.secretkey": "test"}));
    let label = json!({"argocd.argoproj.io/secret-type": "repo-creds"});
    secret(
        json!({"name": "registry", "namespace": "argocd", "labels": label}),
        json!({"type": "oci", "url": format!("oci://{registry}"), "insecureOCIForceHttp": "true"}),
    );
    for project in ["default", "shop-dev"] {
        cluster.create(&json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "AppProject",
            "metadata": {"name": project, "namespace": "argocd"},
            "spec": {
                "sourceRepos": ["*"],
                "destinations": [{"namespace": "*", "server": "*"}],
                "clusterResourceWhitelist": [{"group": "*", "kind": "*"}],
            },
        }));
    }
}

fn write_program(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
}

/// Four different ports that are free.
fn free_ports() -> [String; 4] {
    let listeners = [(); 4].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    listeners.map(|listener| listener.local_addr().unwrap().port().to_string())
}
