//! A YAML 1.1 reader that shares no code with ours: PyYAML's `safe_load`.

use serde_json::Value;
use std::io::Write as _;
use std::process::{Command, Stdio};

/// Reads one JSON text per line and answers with what each is as YAML 1.1, as JSON.
const PROGRAM: &str = "\
import json, sys, yaml
for line in sys.stdin.buffer:
    print(json.dumps(yaml.safe_load(json.loads(line)), default=lambda v: 'NOT JSON: ' + repr(v)))
";

/// What each text is under YAML 1.1; `None`: there is no PyYAML here, and that has been said.
pub fn load(texts: &[String]) -> Option<Vec<Value>> {
    let python = ["python3", "/usr/bin/python3"].into_iter().find(|python| {
        let probe = Command::new(python).args(["-c", "import yaml"]).stderr(Stdio::null()).status();
        probe.is_ok_and(|status| status.success())
    });
    let Some(python) = python else {
        super::peers::left_out("PyYAML is missing; `tests/peers.sh` installs it");
        return None;
    };
    let mut child = Command::new(python)
        .args(["-c", PROGRAM])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let lines: Vec<String> = texts.iter().map(|text| serde_json::to_string(text).unwrap() + "\n").collect();
    let writer = std::thread::spawn(move || {
        for line in lines {
            stdin.write_all(line.as_bytes()).unwrap();
        }
    });
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    assert!(output.status.success(), "PyYAML refuses a text");
    let answers: Vec<Value> = String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(answers.len(), texts.len());
    Some(answers)
}
