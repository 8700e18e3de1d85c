//! Real servers for one test each: on 127.0.0.1, on a port that the kernel gave, ended by their own id.

use super::peers::peer;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A server that ends with this value.
pub struct Server {
    /// `127.0.0.1:<port>`.
    pub address: String,
    child: Child,
    _folder: Option<tempfile::TempDir>,
}

impl Drop for Server {
    fn drop(&mut self) {
        // Already gone is as good.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The registry with the referrers API, in memory. `None`: the peer is missing, which has been said.
#[track_caller]
pub fn refreg() -> Option<Server> {
    let mut command = Command::new(peer("refreg")?);
    let mut child = command.arg("127.0.0.1:0").stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    let mut address = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut address).unwrap();
    let server = Server { address: address.trim().to_owned(), child, _folder: None };
    assert!(server.address.starts_with("127.0.0.1:"), "refreg said {address:?}");
    Some(server)
}

/// Distribution's registry 2.8, which has no referrers API. `None`: the peer is missing, which has been said.
#[track_caller]
pub fn docker_registry() -> Option<Server> {
    let program = peer("docker-registry")?;
    let folder = tempfile::tempdir().unwrap();
    let settings = folder.path().join("config.yml");
    let storage = folder.path().join("data");
    let text = format!(
        "version: 0.1\nlog: {{level: info}}\nstorage: {{filesystem: {{rootdirectory: {}}}, delete: {{enabled: true}}}}\nhttp: {{addr: '127.0.0.1:0'}}\n",
        storage.display()
    );
    std::fs::write(&settings, text).unwrap();
    let mut child = Command::new(program)
        .arg("serve")
        .arg(&settings)
        .env_clear()
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // `… msg="listening on 127.0.0.1:37645" …`
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let mut said = String::new();
    let address = lines.by_ref().map_while(Result::ok).find_map(|line| {
        said.push_str(&line);
        let at = line.split_once("listening on ")?.1;
        Some(at.trim_end_matches(|c: char| !c.is_ascii_digit()).split(['"', ' ', ',']).next()?.to_owned())
    });
    // Its log goes on; nobody reads it, and a full pipe would stop it.
    std::thread::spawn(move || lines.for_each(drop));
    let server = Server { address: address.unwrap_or_default(), child, _folder: Some(folder) };
    assert!(server.address.starts_with("127.0.0.1:"), "docker-registry said {said}");
    Some(server)
}

/// Waits until `ready` says so.
///
/// # Panics
/// It did not within ten seconds.
#[track_caller]
pub fn until(what: &str, mut ready: impl FnMut() -> bool) {
    let start = Instant::now();
    while !ready() {
        assert!(start.elapsed() < Duration::from_secs(10), "{what}: not within ten seconds");
        std::thread::sleep(Duration::from_millis(20));
    }
}
