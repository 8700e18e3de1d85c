//! What a place holds, as text that can be compared.

use crate::support::harness::Place;
use sha2::{Digest as _, Sha256};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

/// Commits and files of `main` in the repository `name`, to the byte.
pub fn exact(place: &Place, name: &str) -> String {
    let git = place.path(name);
    let log = crate::crash::git(&git, &["log", "--format=%T %an %s%n%b", "main"]);
    let references = crate::crash::git(&git, &["for-each-ref", "--format=%(refname)"]);
    format!("{log}\n{references}\n{}", leftovers(&git))
}

/// The same for a checkout, whose files and index count too.
pub fn checkout(place: &Place, name: &str) -> String {
    let work = place.path(name);
    let status = crate::crash::git(&work, &["status", "--porcelain", "--branch"]);
    let files = crate::crash::git(&work, &["ls-files", "-s"]);
    let on_disk: Vec<String> = walkdir::WalkDir::new(&work)
        .sort_by_file_name()
        .into_iter()
        .filter_entry(|entry| entry.file_name() != ".git")
        .map(|entry| entry.unwrap())
        .filter(|entry| entry.file_type().is_file())
        .map(|entry| {
            format!("{} {:x?}", entry.path().strip_prefix(&work).unwrap().display(), hash(entry.path()))
        })
        .collect();
    format!("{}\n{status}\n{files}\n{}\n", exact(place, name), on_disk.join("\n"))
}

fn hash(path: &Path) -> Vec<u8> {
    Sha256::digest(std::fs::read(path).unwrap()).to_vec()
}

/// Files of the git directory that nobody may be left with.
fn leftovers(repository: &Path) -> String {
    let mut text = String::new();
    let own = ["expedite.lock", "expedite-moving"];
    // What was being written into the object store is garbage that git collects, and nobody's lock.
    let walk = walkdir::WalkDir::new(repository).sort_by_file_name().into_iter();
    for entry in walk.filter_entry(|entry| entry.file_name() != "objects") {
        let entry = entry.unwrap();
        let name = entry.file_name().to_string_lossy().into_owned();
        let odd = name.ends_with(".lock") || name.starts_with("expedite");
        if odd && !own.contains(&name.as_str()) {
            let _ =
                writeln!(text, "left behind: {}", entry.path().strip_prefix(repository).unwrap().display());
        }
    }
    let moving = [repository.join("expedite-moving"), repository.join(".git/expedite-moving")];
    for file in moving.iter().filter(|file| file.exists()) {
        let _ = write!(text, "{}", std::fs::read_to_string(file).unwrap());
    }
    text
}

/// What is attached to every artifact in the place's layouts, to the byte. Every blob is what it is called.
pub fn layouts(place: &Place) -> String {
    let mut text = String::new();
    for entry in walkdir::WalkDir::new(place.path("registry")).sort_by_file_name() {
        let entry = entry.unwrap();
        let name = entry.file_name().to_string_lossy().into_owned();
        if entry.path().parent().is_some_and(|folder| folder.ends_with("blobs/sha256")) {
            let whole = hex::encode(hash(entry.path())) == name;
            // What is being written has another name, which nobody asks for.
            assert!(whole || name.len() != 64, "{}", entry.path().display());
        } else if name == "index.json" {
            let layout = crate::support::layout::Layout::at(entry.path().parent().unwrap());
            let mut all: Vec<String> = layout.entries().iter().map(|e| e["digest"].to_string()).collect();
            all.sort();
            let _ = writeln!(text, "{}:\n{}", layout_name(place, entry.path()), all.join("\n"));
        }
    }
    text
}

fn layout_name(place: &Place, path: &Path) -> String {
    path.parent().unwrap().strip_prefix(place.root()).unwrap().display().to_string()
}

/// The digests that an Order's Applications in `git` are pinned to.
pub fn pinned(git: &Path, order: &str) -> BTreeSet<String> {
    let (namespace, _) = order.split_once('/').unwrap();
    let text = crate::crash::git(
        git,
        &[
            "grep",
            "-h",
            "-e",
            "targetRevision:",
            "-e",
            "repoURL:",
            "main",
            "--",
            &format!("applications/{namespace}"),
        ],
    );
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let of = lines.windows(2).filter(|two| two[0].ends_with(&format!("/{order}")));
    of.filter_map(|two| Some(two[1].strip_prefix("targetRevision: ")?.trim_matches('"').to_owned())).collect()
}

/// Commits and files of `main` in the bare repository at `git`, without what the clock has a part in: times,
/// and the digests of records. Each record hashes to its name, and is named by its Serving.
pub fn shape(git: &Path) -> String {
    let mut text = crate::crash::git(git, &["log", "--format=%an %s", "main"]) + "\n";
    let repository = git2::Repository::open_bare(git).unwrap();
    let tree = repository.revparse_single("main^{tree}").unwrap().peel_to_tree().unwrap();
    let mut records = Vec::new();
    let mut servings = String::new();
    tree.walk(git2::TreeWalkMode::PreOrder, |folder, entry| {
        let Some(blob) = entry.to_object(&repository).unwrap().into_blob().ok() else { return 0 };
        let path = format!("{folder}{}", entry.name().unwrap());
        if let Some(name) = path.strip_prefix("records/").and_then(|p| p.strip_suffix(".json")) {
            let (order, digest) = name.rsplit_once('/').unwrap();
            assert_eq!(digest, hex::encode(Sha256::digest(blob.content())), "{path}");
            let _ = writeln!(text, "records/{order}/[RECORD].json");
            records.push(digest.to_owned());
        } else {
            let content = String::from_utf8(blob.content().to_vec()).unwrap();
            if path.starts_with("servings/") {
                servings.push_str(&content);
            }
            let _ = writeln!(text, "{path}:\n{}", timeless(&content));
        }
        0
    })
    .unwrap();
    // The seal's manifest, whose digest depends on its record's.
    let mut seals: Vec<&str> =
        servings.lines().filter_map(|l| l.trim().strip_prefix("attestation: sha256:")).collect();
    seals.dedup();
    for seal in seals {
        text = text.replace(seal, "[SEAL]");
    }
    for record in &records {
        assert!(servings.contains(record.as_str()), "no Serving names the record {record}");
        text = text.replace(record, "[RECORD]");
    }
    text
}

/// `text` with every RFC 3339 time replaced.
fn timeless(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    let is_time = |t: &str| {
        let b = t.as_bytes();
        b.len() >= 20
            && b[4] == b'-'
            && b[10] == b'T'
            && b[13] == b':'
            && b[19] == b'Z'
            && b[..4].iter().all(u8::is_ascii_digit)
    };
    while let Some(c) = rest.chars().next() {
        if rest.is_char_boundary(20.min(rest.len())) && is_time(&rest[..20.min(rest.len())]) {
            out.push_str("[TIME]");
            rest = &rest[20..];
        } else {
            out.push(c);
            rest = &rest[c.len_utf8()..];
        }
    }
    out
}
