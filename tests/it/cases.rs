//! The cases of `fixtures/cases/`, found by walking: each is a folder, none is registered.
//!
//! ```text
//! fixtures/cases/<name>/
//!   args      one step a line; `#` begins a comment:
//!               run --at 2026-02-10T12:00:00Z   expedite with these arguments (words as a shell splits them)
//!               git -C gitops.git log           git, its stdout taken into the snapshot
//!               + later                         lays the folder `later/` of the case over the place
//!               - objects/orders.yaml           takes a file or folder away
//!   in/       laid over the shop (its settings with ./gitops.git as repository, objects, image layouts) at the
//!             beginning; with an expedite.yaml of its own it stands alone, beside the shop's image layouts
//!   out/said  what every step said
//!   out/tree/ the files of `main` in gitops.git at the end
//! ```
//! `BLESS=1 cargo test --test it cases::` writes `out/`; the change is reviewed as any other.

use crate::support::harness::{Place, blessing, copy, package, same, shop};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Splits a line into words: blanks separate, single quotes keep everything, a backslash nothing special.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quoted, mut any) = (Vec::new(), String::new(), false, false);
    for c in line.chars() {
        match c {
            '\'' => (quoted, any) = (!quoted, true),
            ' ' if !quoted => {
                if any {
                    words.push(std::mem::take(&mut word));
                }
                any = false;
            }
            c => {
                word.push(c);
                any = true;
            }
        }
    }
    assert!(!quoted, "a quote is not closed: {line}");
    if any {
        words.push(word);
    }
    words
}

/// The hashes of every record that was ever committed, with names that do not change with the version: what
/// kind it is, the first digits of its artifact, and which of those it is.
struct Records(Vec<(String, String)>);

impl Records {
    fn of(place: &Place) -> Self {
        let mut known: Vec<(String, String)> = Vec::new();
        if place.tree("gitops.git", "main").is_empty() {
            return Self(known);
        }
        for commit in place.git(&["-C", "gitops.git", "rev-list", "--reverse", "main"]).lines() {
            for (path, text) in place.tree("gitops.git", commit) {
                let Some(name) = path.strip_prefix("records/").and_then(|p| p.strip_suffix(".json")) else {
                    continue;
                };
                let hash = name.rsplit('/').next().unwrap().to_owned();
                if known.iter().any(|(of, _)| *of == hash) {
                    continue;
                }
                let statement: serde_json::Value = serde_json::from_str(&statement(&text)).unwrap();
                let kind = statement["predicateType"].as_str().unwrap().rsplit('/').nth(1).unwrap();
                let digest = &statement["subject"][0]["digest"]["sha256"].as_str().unwrap()[..12];
                let name = format!("{kind}-{digest}");
                let count = known.iter().filter(|(_, n)| n.starts_with(&name)).count();
                known.push((hash, format!("{name}-{}", count + 1)));
            }
        }
        Self(known)
    }

    fn named(&self, text: &str) -> String {
        self.0.iter().fold(text.to_owned(), |text, (hash, name)| text.replace(hash, name))
    }
}

/// What a record's bundle says, for people.
fn statement(bundle: &str) -> String {
    let bundle: serde_json::Value = serde_json::from_str(bundle).unwrap();
    let payload = bundle["dsseEnvelope"]["payload"].as_str().unwrap();
    let payload = base64::Engine::decode(&base64::engine::general_purpose::STANDARD, payload).unwrap();
    let statement: serde_json::Value = serde_json::from_slice(&payload).unwrap();
    serde_json::to_string_pretty(&statement).unwrap() + "\n"
}

/// Plays one case and gives what differs from its snapshot.
fn play(case: &Path) -> Vec<String> {
    let input = case.join("in");
    let place = if input.join("expedite.yaml").exists() {
        let place = Place::new();
        copy(&shop().join("registry"), &place.path("registry"));
        place
    } else {
        let place = Place::with_shop();
        place.edit("expedite.yaml", "./shop.git", "./gitops.git");
        place
    };
    if input.exists() {
        copy(&input, place.root());
    }
    let mut said = String::new();
    for line in fs::read_to_string(case.join("args")).unwrap().lines() {
        let words = words(line);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        match words.as_slice() {
            [] | ["#", ..] => continue,
            ["+", folder] => {
                copy(&case.join(folder), place.root());
                said.push_str(&format!("$ + {folder}\n"));
            }
            ["-", path] => {
                let path = place.path(path);
                if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) }.unwrap();
                said.push_str(&format!("$ {line}\n"));
            }
            ["git", arguments @ ..] => {
                said.push_str(&format!("$ {line}\n{}", place.masked(&place.git(arguments))));
            }
            arguments => said.push_str(&place.expedite(arguments).transcript(&format!("expedite {line}"))),
        }
        said.push('\n');
    }
    let mut wrong = Vec::new();
    let records = Records::of(&place);
    wrong.extend(same(&case.join("out/said"), &records.named(&said)).err());
    let tree = place.tree("gitops.git", "main").into_iter().map(|(path, text)| {
        let text = if path.starts_with("records/") { statement(&text) } else { records.named(&text) };
        (records.named(&path), place.masked(&text))
    });
    let tree: Vec<(String, String)> = tree.collect();
    let kept = case.join("out/tree");
    for (path, text) in &tree {
        wrong.extend(same(&kept.join(path), text).err());
    }
    let found: BTreeSet<&str> = tree.iter().map(|(path, _)| path.as_str()).collect();
    for entry in
        walkdir::WalkDir::new(&kept).into_iter().filter_map(Result::ok).filter(|e| e.file_type().is_file())
    {
        let path = entry.path().strip_prefix(&kept).unwrap().to_str().unwrap();
        if !found.contains(path) {
            if blessing() {
                fs::remove_file(entry.path()).unwrap();
            } else {
                wrong.push(format!("{path} was expected in the repository and is not there"));
            }
        }
    }
    wrong
}

#[test]
fn every_case_says_and_commits_what_its_snapshot_holds() {
    let cases = package().join("fixtures/cases");
    let mut names: Vec<_> =
        fs::read_dir(&cases).unwrap().map(|e| e.unwrap().path()).filter(|p| p.is_dir()).collect();
    names.sort();
    assert!(!names.is_empty(), "no case below fixtures/cases");
    let mut wrong = Vec::new();
    for case in &names {
        let name = case.file_name().unwrap().to_str().unwrap();
        let differences =
            std::panic::catch_unwind(|| play(case)).unwrap_or_else(|_| vec!["it panicked (above)".into()]);
        wrong.extend(differences.into_iter().map(|d| format!("case {name}: {d}")));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn words_are_split_as_a_shell_splits_them() {
    assert_eq!(words("run  --at 'a b' ''"), ["run", "--at", "a b", ""]);
    assert_eq!(words(""), Vec::<String>::new());
}
