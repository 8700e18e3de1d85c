//! Real git servers for one test each: nginx with git's own HTTP backend, and sshd. On 127.0.0.1, on a
//! port that the kernel gave, ended by their own id.

use super::peers::peer;
use super::{executable, fsck};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A server that ends with this value.
pub struct GitServer {
    /// The folder that holds the repositories.
    pub root: PathBuf,
    /// Logs, keys and settings.
    pub etc: PathBuf,
    /// The port on 127.0.0.1.
    pub port: u16,
    children: Vec<Child>,
    _folder: tempfile::TempDir,
}

impl Drop for GitServer {
    fn drop(&mut self) {
        if std::thread::panicking() {
            for log in ["error.log", "sshd.log"] {
                if let Ok(text) = std::fs::read_to_string(self.etc.join(log)) {
                    eprintln!("{log}:\n{text}");
                }
            }
        }
        for child in &mut self.children {
            // nginx ends its workers when it is asked to, not when it is killed.
            let _ = Command::new("kill").arg(child.id().to_string()).status();
            let start = Instant::now();
            while child.try_wait().is_ok_and(|s| s.is_none()) && start.elapsed() < Duration::from_secs(3) {
                std::thread::sleep(Duration::from_millis(5));
            }
            let _ = child.kill();
            let _ = child.wait();
        }
        // Nobody writes to them any more.
        fsck::at_end(&self.root);
    }
}

/// How an HTTP server is set up.
#[derive(Default)]
pub struct Http<'a> {
    /// User and password that it wants.
    pub user: Option<(&'a str, &'a str)>,
    /// Serves TLS, by a certificate of a CA of its own (`etc/ca.pem`).
    pub tls: bool,
    /// Lines for nginx's `server` block.
    pub more: &'a str,
}

/// Starts nginx over git's HTTP backend. `None`: a peer is missing, which has been said.
#[track_caller]
pub fn http(how: &Http<'_>) -> Option<GitServer> {
    let (nginx, fcgiwrap) = (peer("nginx")?, peer("fcgiwrap")?);
    let (folder, root, etc) = folders();
    let socket = etc.join("cgi.sock");
    let cgi = Command::new(fcgiwrap)
        .args(["-c", "4", "-s"])
        .arg(format!("unix:{}", socket.display()))
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut server = GitServer { root, etc, port: 0, children: vec![cgi], _folder: folder };
    appears(&socket);
    let auth = how.user.map(|(user, password)| {
        std::fs::write(server.etc.join("users"), format!("{user}:{{PLAIN}}{password}\n")).unwrap();
        format!("auth_basic git; auth_basic_user_file {};", server.etc.join("users").display())
    });
    let tls = how.tls.then(|| {
        certify(&server.etc);
        let file = |name: &str| server.etc.join(name).display().to_string();
        format!("ssl_certificate {}; ssl_certificate_key {};", file("server.pem"), file("server.key"))
    });
    let exec = Command::new("git").arg("--exec-path").output().unwrap().stdout;
    let backend = format!("{}/git-http-backend", String::from_utf8(exec).unwrap().trim());
    for _ in 0..5 {
        let port = free_port();
        let text = format!(
            r#"daemon off; worker_processes 1; pid {etc}/nginx.pid; error_log {etc}/error.log; {user}
events {{}}
http {{
  log_format heads '$request_method $request_uri $status "$http_authorization"';
  access_log {etc}/access.log heads;
  client_body_temp_path {etc}/body; fastcgi_temp_path {etc}/fastcgi; proxy_temp_path {etc}/proxy;
  uwsgi_temp_path {etc}/uwsgi; scgi_temp_path {etc}/scgi; client_max_body_size 100m;
  server {{
    listen 127.0.0.1:{port}{ssl}; {tls} {more}
    location / {{
      {auth}
      fastcgi_pass unix:{socket}; fastcgi_read_timeout 30s;
      fastcgi_param SCRIPT_FILENAME {backend};
      fastcgi_param GIT_PROJECT_ROOT {root};
      fastcgi_param GIT_HTTP_EXPORT_ALL "";
      fastcgi_param GIT_CONFIG_NOSYSTEM 1;
      fastcgi_param PATH {path};
      fastcgi_param PATH_INFO $uri;
      fastcgi_param QUERY_STRING $query_string;
      fastcgi_param REQUEST_METHOD $request_method;
      fastcgi_param CONTENT_TYPE $content_type;
      fastcgi_param CONTENT_LENGTH $content_length;
      fastcgi_param REMOTE_USER $remote_user;
      fastcgi_param REMOTE_ADDR $remote_addr;
    }}
  }}
}}
"#,
            etc = server.etc.display(),
            root = server.root.display(),
            socket = socket.display(),
            user = if run_by_root() { "user root;" } else { "" },
            ssl = if how.tls { " ssl" } else { "" },
            tls = tls.as_deref().unwrap_or_default(),
            auth = auth.as_deref().unwrap_or_default(),
            more = how.more,
            path = std::env::var("PATH").unwrap_or_default(),
        );
        std::fs::write(server.etc.join("nginx.conf"), text).unwrap();
        let child = Command::new(&nginx)
            .arg("-c")
            .arg(server.etc.join("nginx.conf"))
            .arg("-p")
            .arg(&server.etc)
            .args(["-e"])
            .arg(server.etc.join("error.log"))
            .env_clear()
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        if let Some(child) = listens(child, port) {
            server.children.insert(0, child);
            server.port = port;
            return Some(server);
        }
    }
    panic!(
        "nginx does not start: {}",
        std::fs::read_to_string(server.etc.join("error.log")).unwrap_or_default()
    );
}

/// Starts sshd for the user who runs the tests, with the host key of `etc/host` and the public keys in
/// `etc/authorized`. `None`: a peer is missing, which has been said.
#[track_caller]
pub fn ssh() -> Option<GitServer> {
    let sshd = peer("sshd")?;
    let (_, keygen) = (peer("ssh")?, peer("ssh-keygen")?);
    let (folder, root, etc) = folders();
    for name in ["host", "client"] {
        key(&keygen, &etc.join(name), "ed25519", "");
    }
    std::fs::copy(etc.join("client.pub"), etc.join("authorized")).unwrap();
    // sshd wants it when root runs it; nothing is ever put there.
    let _ = std::fs::create_dir("/run/sshd");
    let mut server = GitServer { root, etc, port: 0, children: Vec::new(), _folder: folder };
    for _ in 0..5 {
        let port = free_port();
        let etc = server.etc.display();
        let text = format!(
            "ListenAddress 127.0.0.1\nPort {port}\nHostKey {etc}/host\nAuthorizedKeysFile {etc}/authorized\nPidFile none\n\
             UsePAM no\nStrictModes no\nPasswordAuthentication no\nKbdInteractiveAuthentication no\nPermitRootLogin yes\nMaxAuthTries 6\n"
        );
        std::fs::write(server.etc.join("sshd_config"), text).unwrap();
        let log = std::fs::File::create(server.etc.join("sshd.log")).unwrap();
        let child = Command::new(&sshd)
            .args(["-D", "-e", "-f"])
            .arg(server.etc.join("sshd_config"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap();
        if let Some(child) = listens(child, port) {
            server.children.push(child);
            server.port = port;
            return Some(server);
        }
    }
    panic!(
        "sshd does not start: {}",
        std::fs::read_to_string(server.etc.join("sshd.log")).unwrap_or_default()
    );
}

/// Makes a key pair at `path`.
pub fn key(keygen: &Path, path: &Path, kind: &str, passphrase: &str) {
    let _ = std::fs::remove_file(path);
    let made = Command::new(keygen)
        .args(["-q", "-t", kind, "-N", passphrase, "-C", "test", "-f"])
        .arg(path)
        .stdin(Stdio::null())
        .status()
        .unwrap();
    assert!(made.success());
}

impl GitServer {
    /// A line for a known_hosts file.
    pub fn known_host(&self) -> String {
        let public = std::fs::read_to_string(self.etc.join("host.pub")).unwrap();
        format!("[127.0.0.1]:{} {public}", self.port)
    }

    /// What nginx logged: one line per request.
    pub fn log(&self) -> Vec<String> {
        // nginx writes a line when the request is done, which the client may learn first.
        std::thread::sleep(Duration::from_millis(50));
        let text = std::fs::read_to_string(self.etc.join("access.log")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// Makes `name` a bare repository that takes pushes.
    pub fn create(&self, name: &str) -> PathBuf {
        let path = self.root.join(name);
        std::fs::create_dir_all(&path).unwrap();
        for arguments in
            [&["init", "-q", "--bare", "-b", "main", "."][..], &["config", "http.receivepack", "true"]]
        {
            let own = [("GIT_CONFIG_NOSYSTEM", "1"), ("GIT_CONFIG_GLOBAL", "/dev/null")];
            let made = Command::new("git").args(arguments).current_dir(&path).envs(own).status().unwrap();
            assert!(made.success(), "git {arguments:?}: {made}");
        }
        path
    }

    /// Writes a hook of `repository`.
    pub fn hook(repository: &Path, name: &str, script: &str) {
        let file = repository.join("hooks").join(name);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, format!("#!/bin/sh\n{script}\n")).unwrap();
        executable::executable(&file);
    }
}

/// Whether root runs the tests: nginx would give its rights up, and could not read what is ours.
fn run_by_root() -> bool {
    Command::new("id").arg("-u").output().is_ok_and(|id| id.stdout.trim_ascii() == b"0")
}

fn folders() -> (tempfile::TempDir, PathBuf, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let (root, etc) = (folder.path().join("repositories"), folder.path().join("etc"));
    std::fs::create_dir(&root).unwrap();
    std::fs::create_dir(&etc).unwrap();
    (folder, root, etc)
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// The child once it listens; `None` when it ended instead (somebody took the port).
fn listens(mut child: Child, port: u16) -> Option<Child> {
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(10) {
        if child.try_wait().unwrap().is_some() {
            return None;
        }
        if TcpStream::connect(("127.0.0.1", port)).is_ok() {
            return Some(child);
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let _ = child.kill();
    let _ = child.wait();
    None
}

/// Waits for a file.
pub fn appears(path: &Path) {
    let start = Instant::now();
    while !path.exists() {
        assert!(start.elapsed() < Duration::from_secs(10), "{} does not appear", path.display());
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A CA and a certificate by it for 127.0.0.1.
fn certify(etc: &Path) {
    let ca_key = rcgen::KeyPair::generate().unwrap();
    let mut ca = rcgen::CertificateParams::new(Vec::new()).unwrap();
    ca.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let ca_certificate = ca.self_signed(&ca_key).unwrap();
    let issuer = rcgen::Issuer::new(ca, ca_key);
    let key = rcgen::KeyPair::generate().unwrap();
    let names = vec!["127.0.0.1".to_owned(), "localhost".to_owned()];
    let certificate = rcgen::CertificateParams::new(names).unwrap().signed_by(&key, &issuer).unwrap();
    std::fs::write(etc.join("ca.pem"), ca_certificate.pem()).unwrap();
    std::fs::write(etc.join("server.pem"), certificate.pem()).unwrap();
    std::fs::write(etc.join("server.key"), key.serialize_pem()).unwrap();
}
