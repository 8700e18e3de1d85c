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
//! `BLESS=1 cargo test --test cases` writes `out/`; the change is reviewed as any other.

#![allow(clippy::unwrap_used, clippy::panic)]

#[path = "support/harness.rs"]
mod harness;

use harness::{Place, blessing, copy, package, same, shop};
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
    wrong.extend(same(&case.join("out/said"), &said).err());
    let tree = place.tree("gitops.git", "main");
    let kept = case.join("out/tree");
    for (path, text) in &tree {
        wrong.extend(same(&kept.join(path), &place.masked(text)).err());
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
