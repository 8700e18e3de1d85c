//! Git's protocol over SSH, through the system's `ssh`: its keys, agent, configuration and known hosts
//! are what a person has set up already. A host key that is not known is never accepted.

use crate::credentials::decode_percent;
use crate::error::{GitError, GitErrorKind};
use crate::process::Pipe;
use crate::transport::{Stream, Timeouts, Wire};
use crate::{Config, Environment};
use child_process::session::ProgramSession;
use git2::transport::Service;
use std::io::Read as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use url::Url;

/// A server over SSH.
pub(crate) struct Ssh {
    place: SshPlace,
    program: Program,
    timeouts: Timeouts,
    known_hosts: Option<PathBuf>,
    environment: Environment,
    running: Mutex<Option<Arc<ProgramSession>>>,
}

/// Where the repository is.
#[derive(Debug, PartialEq, Eq)]
struct SshPlace {
    /// `user@host` or `host`.
    destination: String,
    port: Option<u16>,
    path: String,
}

/// How ssh is started.
#[derive(Debug, PartialEq, Eq)]
enum Program {
    /// A program with arguments of its own.
    Words(Vec<String>),
    /// A line for a shell (`GIT_SSH_COMMAND`, `core.sshCommand`) that is more than words.
    Shell(String),
}

impl Ssh {
    /// A wire to `url`; nothing is started yet.
    ///
    /// # Errors
    /// The URL is not one of a repository, or the configured command would accept any host key.
    pub fn new(
        url: &Url,
        config: &Config,
        environment: &Environment,
        known_hosts: Option<PathBuf>,
        timeouts: Timeouts,
    ) -> Result<Self, GitError> {
        let place = SshPlace::from_url(url)?;
        let known_hosts = known_hosts.or_else(|| environment.get_path("EXPEDITE_SSH_KNOWN_HOSTS"));
        let program = Program::from_config(config, environment)?;
        let running = Mutex::new(None);
        Ok(Self { place, program, timeouts, known_hosts, environment: environment.clone(), running })
    }

    fn lock_running(&self) -> MutexGuard<'_, Option<Arc<ProgramSession>>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn build_command(&self, more: &[&str], remote: &str) -> Command {
        let mut arguments: Vec<String> = Vec::new();
        let mut option = |text: String| arguments.extend(["-o".to_owned(), text]);
        option("StrictHostKeyChecking=yes".to_owned());
        if self.environment.get("SSH_ASKPASS").is_some() {
            // The program that was named may give a key's passphrase, and nothing else.
            option("BatchMode=no".to_owned());
            option("PasswordAuthentication=no".to_owned());
            option("KbdInteractiveAuthentication=no".to_owned());
            option("NumberOfPasswordPrompts=1".to_owned());
        } else {
            option("BatchMode=yes".to_owned());
        }
        option(format!("ConnectTimeout={}", self.timeouts.connect.as_secs().max(1)));
        option("ServerAliveInterval=15".to_owned());
        option("ServerAliveCountMax=4".to_owned());
        if let Some(file) = &self.known_hosts {
            option(format!("UserKnownHostsFile=\"{}\"", file.display()));
        }
        arguments.extend(more.iter().map(|m| (*m).to_owned()));
        if let Some(port) = self.place.port {
            arguments.extend(["-p".to_owned(), port.to_string()]);
        }
        let mut end = vec![self.place.destination.clone()];
        if !remote.is_empty() {
            end.push(remote.to_owned());
        }
        let mut command = match &self.program {
            Program::Words(words) => {
                let mut command = Command::new(&words[0]);
                // Ours first: ssh takes the first value that it is given.
                command.args(&arguments).args(&words[1..]).args(end);
                command
            }
            Program::Shell(line) => {
                let mut command = Command::new("sh");
                command.args(["-c", &format!("{line} \"$@\""), "ssh"]).args(&arguments).args(end);
                command
            }
        };
        command.env_clear().envs(self.environment.iter());
        if self.environment.get("SSH_ASKPASS").is_some() {
            command.env("SSH_ASKPASS_REQUIRE", "force");
        }
        command
    }

    fn start_session(&self, service: &str) -> Result<Arc<ProgramSession>, GitError> {
        let remote = format!("{service} {}", quote_path(&self.place.path));
        let mut command = self.build_command(&[], &remote);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn().map_err(|e| match e.kind() {
            std::io::ErrorKind::NotFound => self
                .make_error("program-absent", "the program ssh is needed to reach it, and is not there")
                .with_hint("install OpenSSH's client, or use an https:// URL"),
            _ => self.make_error("repository-unreachable", format!("ssh cannot be started: {e}")),
        })?;
        ProgramSession::from_child(child, self.timeouts.silence)
            .ok_or_else(|| self.make_error("repository-unreachable", "ssh was started without its streams"))
    }

    fn make_error(&self, code: &'static str, why: impl Into<String>) -> GitError {
        GitError::new(GitErrorKind::Repository, code, why)
            .with_object(format!("repository {}", self.place.format_url()))
    }

    /// Why a session ended before its time.
    fn make_ended_failure(&self, session: &ProgramSession) -> GitError {
        let (words, timed_out) = session.end_program();
        if timed_out {
            let why = format!("no answer in {} s", self.timeouts.silence.as_secs());
            return self.make_error("repository-unreachable", why);
        }
        if words.contains("Host key verification failed") {
            let changed = words.contains("IDENTIFICATION HAS CHANGED");
            let key = self.fetch_offered_key();
            let shown = key.as_deref().unwrap_or("ssh did not show its fingerprint");
            let port = self.place.port.map(|p| format!("-p {p} ")).unwrap_or_default();
            let host = self.place.destination.rsplit('@').next().unwrap_or_default();
            return if changed {
                self.make_error("host-key", format!("the host key has CHANGED; it now is {shown}")).with_hint(
                    "somebody may be in between; if the change is known, remove the old key from known_hosts",
                )
            } else {
                self.make_error("host-key", format!("the host key is not known; it is {shown}")).with_hint(format!(
                    "compare the fingerprint with the server's published one, then: ssh-keyscan {port}{host} >> FILE, \
                     and name FILE with EXPEDITE_SSH_KNOWN_HOSTS (or use ~/.ssh/known_hosts)"
                ))
            };
        }
        let why = if words.is_empty() { "ssh ended without a word".to_owned() } else { words.clone() };
        let failure = self.make_error("repository-unreachable", why);
        if words.contains("Permission denied") || words.contains("Too many authentication failures") {
            return failure.with_hint("the server took none of the keys; name one with GIT_SSH_COMMAND=\"ssh -i KEY -o IdentitiesOnly=yes\", or load it into the agent");
        }
        failure
    }

    /// Kind and fingerprint of the key that the server offers. ssh shows it in its debug output only;
    /// the connection ends at the same point as before, nothing is accepted.
    fn fetch_offered_key(&self) -> Option<String> {
        let mut command = self.build_command(&["-v"], "");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().ok()?;
        let mut errors = child.stderr.take()?;
        let reader = std::thread::spawn(move || {
            let mut text = Vec::new();
            let _ = errors.read_to_end(&mut text);
            String::from_utf8_lossy(&text).into_owned()
        });
        let until = Instant::now() + self.timeouts.connect;
        while child.try_wait().ok()?.is_none() {
            if Instant::now() > until {
                let _ = child.kill();
                let _ = child.wait();
                break;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        let text = reader.join().ok()?;
        let (_, key) = text.lines().find_map(|line| line.split_once("Server host key: "))?;
        Some(key.trim().to_owned())
    }
}

impl Wire for Ssh {
    fn is_stateless(&self) -> bool {
        false
    }

    fn open_stream(&self, service: Service) -> Result<Box<dyn Stream>, GitError> {
        let service = match service {
            Service::UploadPackLs | Service::UploadPack => "git-upload-pack",
            Service::ReceivePackLs | Service::ReceivePack => "git-receive-pack",
        };
        let session = self.start_session(service)?;
        // ssh that fails to connect says so by ending; the first byte is waited for here, where the
        // reason can still be told.
        let mut first = [0];
        let got = session.read_output(&mut first);
        if !matches!(got, Ok(1)) {
            return Err(self.make_ended_failure(&session));
        }
        *self.lock_running() = Some(Arc::clone(&session));
        Ok(Box::new(Pipe { session, first: Some(first[0]), place: self.place.format_url() }))
    }

    fn close_wire(&self) {
        if let Some(session) = self.lock_running().take() {
            session.end_program();
        }
    }
}

impl SshPlace {
    fn from_url(url: &Url) -> Result<Self, GitError> {
        let wrong =
            |why: &str| GitError::new_input("repository-name", why).with_object(format!("repository {url}"));
        let host = url.host_str().unwrap_or_default();
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let user = decode_percent(url.username());
        let odd =
            |text: &str| text.starts_with('-') || text.chars().any(|c| c.is_control() || c.is_whitespace());
        if host.is_empty() || odd(host) || odd(&user) || user.contains('@') {
            return Err(wrong("it names no host that ssh can reach"));
        }
        if url.password().is_some() {
            return Err(GitError::new_input("repository-name", "a password in an ssh:// URL is not used")
                .with_hint("use a key: ssh takes no password from a URL"));
        }
        let path = decode_percent(url.path());
        // `/~/x` is how the scp-like form `host:x` arrives here; `/~user/x` is ssh's own.
        let path = match path.strip_prefix("/~/") {
            Some(rest) => rest.to_owned(),
            None => path.strip_prefix('/').filter(|p| p.starts_with('~')).map_or(path.clone(), str::to_owned),
        };
        if path.is_empty() || path == "/" || path.contains('\0') || path.starts_with('-') {
            return Err(wrong("it names no repository on that host"));
        }
        let destination = if user.is_empty() { host.to_owned() } else { format!("{user}@{host}") };
        Ok(Self { destination, port: url.port(), path })
    }

    fn format_url(&self) -> String {
        let port = self.port.map(|p| format!(":{p}")).unwrap_or_default();
        let slash = if self.path.starts_with('/') { "" } else { "/~/" };
        format!("ssh://{}{port}{slash}{}", self.destination, self.path)
    }
}

impl Program {
    fn from_config(config: &Config, environment: &Environment) -> Result<Self, GitError> {
        let set = environment.get("GIT_SSH_COMMAND").map(|line| ("GIT_SSH_COMMAND", line)).or_else(|| {
            config.get("core.sshcommand").filter(|l| !l.trim().is_empty()).map(|l| ("core.sshCommand", l))
        });
        let Some((name, line)) = set else {
            let program = environment.get("GIT_SSH").unwrap_or("ssh");
            return Ok(Self::Words(vec![program.to_owned()]));
        };
        let lower: String = line.to_lowercase().chars().filter(|c| !matches!(c, '"' | '\'' | '\\')).collect();
        if let Some((_, value)) = lower.split_once("stricthostkeychecking") {
            let value = value.trim_start_matches([' ', '=']);
            if !(value.starts_with("yes") || value.starts_with("ask")) {
                return Err(GitError::new_input("host-key", "it turns the checking of host keys off")
                    .with_object(name)
                    .with_hint("remove StrictHostKeyChecking from it, and name the server's key in a known_hosts file (EXPEDITE_SSH_KNOWN_HOSTS)"));
            }
        }
        let plain = |c: char| c.is_alphanumeric() || " /._-=:@%+,~".contains(c);
        if line.chars().all(plain) && !line.contains('~') {
            return Ok(Self::Words(line.split_whitespace().map(str::to_owned).collect()));
        }
        Ok(Self::Shell(line.to_owned()))
    }
}

/// For the shell on the server.
fn quote_path(path: &str) -> String {
    format!("'{}'", path.replace('\'', r"'\''").replace('!', r"'\!'"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;

    #[test]
    fn places() {
        let place = |text: &str| SshPlace::from_url(&Url::parse(text).unwrap());
        let of = |destination: &str, port, path: &str| {
            Ok(SshPlace { destination: destination.to_owned(), port, path: path.to_owned() })
        };
        assert_eq!(place("ssh://git@h:2222/srv/a.git"), of("git@h", Some(2222), "/srv/a.git"));
        assert_eq!(place("ssh://h/~/a.git"), of("h", None, "a.git"));
        assert_eq!(place("ssh://h/~me/a.git"), of("h", None, "~me/a.git"));
        assert_eq!(place("ssh://[::1]/a%20b"), of("::1", None, "/a b"));
        assert!(place("ssh://h/").is_err());
        assert!(place("ssh://-oProxyCommand=x/a").is_err());
        assert!(place("ssh://me:s3cret@h/a").is_err());
        assert_eq!(quote_path("/a'b!c"), r"'/a'\''b'\!'c'");
    }

    #[test]
    fn b32_no_command_may_accept_any_key() {
        let program = |line: &str| {
            Program::from_config(&Config::default(), &Environment::new([("GIT_SSH_COMMAND", line)]))
        };
        for bad in [
            "ssh -o StrictHostKeyChecking=no",
            "ssh -o \"StrictHostKeyChecking accept-new\"",
            "ssh -oStrictHostKeyChecking=off -i k",
        ] {
            assert_eq!(program(bad).unwrap_err().code, "host-key", "{bad}");
        }
        let words = ["ssh", "-i", "/k"].map(str::to_owned).to_vec();
        assert_eq!(program("ssh -i /k"), Ok(Program::Words(words)));
        assert_eq!(program("ssh -i \"$KEY\""), Ok(Program::Shell("ssh -i \"$KEY\"".to_owned())));
        assert!(program("ssh -o StrictHostKeyChecking=yes").is_ok());
    }
}
