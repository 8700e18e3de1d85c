//! The loop that a shell script would make.

use crate::peers::peer;
use crate::signing::{APPROVAL, Key};
use crate::stock::Item;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

/// cosign 3 with the public key in a file.
pub struct Cosign {
    program: PathBuf,
    home: tempfile::TempDir,
}

impl Cosign {
    /// `None`: it is not installed, which has been said.
    pub fn new(key: &Key) -> Option<Self> {
        let program = peer("cosign3")?;
        let home = tempfile::tempdir().unwrap();
        fs::write(home.path().join("key.pub"), key.public_pem()).unwrap();
        Some(Self { program, home })
    }

    /// Signature, provenance and seal of each, one after the other.
    pub fn verify(&self, address: &str, items: &[Item]) -> Duration {
        let start = Instant::now();
        for item in items {
            let reference = item.reference(address);
            self.run(&["verify"], &reference);
            self.run(&["verify-attestation", "--type", "slsaprovenance1"], &reference);
            self.run(&["verify-attestation", "--type", APPROVAL], &reference);
        }
        start.elapsed()
    }

    fn run(&self, verb: &[&str], reference: &str) {
        let output = Command::new(&self.program)
            .args(verb)
            .args(["--key", "key.pub", "--insecure-ignore-tlog", "--allow-http-registry", reference])
            .current_dir(self.home.path())
            .env_clear()
            .env("HOME", self.home.path())
            .output()
            .unwrap();
        assert!(output.status.success(), "{verb:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
}
