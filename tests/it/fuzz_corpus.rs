//! The fuzz targets' corpus, as a plain test: every file, and a thousand damaged forms of each, always the
//! same ones.

#[path = "../../fuzz/checks.rs"]
mod checks;

use rand::rngs::SmallRng;
use rand::{RngExt as _, SeedableRng as _};
use std::fs;
use std::path::Path;

/// Damaged forms of each file.
const FORMS: u32 = 1000;

#[track_caller]
fn run(target: &str, check: fn(&[u8]) -> bool) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(target);
    let mut files: Vec<_> = fs::read_dir(&folder).unwrap().map(|e| e.unwrap().path()).collect();
    files.sort();
    let seeds: Vec<Vec<u8>> = files.iter().map(|f| fs::read(f).unwrap()).collect();
    let accepted: Vec<bool> = seeds.iter().map(|s| check(s)).collect();
    for (file, accepted) in files.iter().zip(&accepted) {
        // The name says what is expected.
        let name = file.file_name().unwrap().to_str().unwrap();
        assert_eq!(*accepted, name.starts_with("good-"), "{target}/{name}");
    }
    assert!(accepted.contains(&true) && accepted.contains(&false), "{target}: {files:?}");
    let mut random = SmallRng::seed_from_u64(7);
    for seed in &seeds {
        for _ in 0..FORMS {
            check(&damaged(seed, &seeds, &mut random));
        }
    }
}

/// One to four edits: a flipped, added, removed, repeated or foreign stretch.
fn damaged(seed: &[u8], seeds: &[Vec<u8>], random: &mut SmallRng) -> Vec<u8> {
    let mut bytes = seed.to_vec();
    for _ in 0..random.random_range(1..=4) {
        let at = random.random_range(0..=bytes.len());
        let end = (at + random.random_range(0..=16)).min(bytes.len());
        match random.random_range(0..6) {
            0 if at < bytes.len() => bytes[at] = random.random(),
            1 => bytes.insert(at, random.random()),
            2 => drop(bytes.drain(at..end)),
            3 => {
                let stretch = bytes[at..end].to_vec();
                bytes.splice(at..at, stretch);
            }
            4 => {
                let other = &seeds[random.random_range(0..seeds.len())];
                let from = random.random_range(0..=other.len());
                let to = (from + random.random_range(0..=32)).min(other.len());
                bytes.splice(at..end, other[from..to].iter().copied());
            }
            _ => {
                let tokens =
                    ["\"", "{", "}", "[", "]", ",", ":", "\\u0000", "null", "1e9", "sha256:", "-", "="];
                let token = tokens[random.random_range(0..tokens.len())];
                bytes.splice(at..end, token.bytes());
            }
        }
    }
    bytes
}

#[test]
fn envelope() {
    run("envelope", checks::envelope);
}
#[test]
fn bundle() {
    run("bundle", checks::bundle);
}
#[test]
fn statement() {
    run("statement", checks::statement);
}
#[test]
fn simple_signing() {
    run("simple_signing", checks::simple_signing);
}
#[test]
fn index() {
    run("index", checks::index);
}
#[test]
fn reference() {
    run("reference", checks::reference);
}
#[test]
fn challenge() {
    run("challenge", checks::challenge);
}
#[test]
fn scan() {
    run("scan", checks::scan);
}
#[test]
fn layer() {
    run("layer", checks::layer);
}
#[test]
fn archive() {
    run("archive", checks::archive);
}
