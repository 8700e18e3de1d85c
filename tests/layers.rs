//! The map holds: no room uses one that stands below it in `src/lib.rs`, none uses what it must know
//! nothing of, and the pure rooms touch nothing outside.
//!
//! The order is read from the `pub mod` lines of `src/lib.rs`, and within a floor from the `mod` lines of its file;
//! what a room uses, from every `crate::…` and `super::…` path of its files. Test modules are left out: a test may build its input with a
//! neighbour.

#![allow(clippy::unwrap_used, clippy::panic)]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Rooms above it that a room must know nothing of all the same, with what it is spared.
const KNOWS_NOTHING_OF: &[(&str, &[&str])] = &[
    ("files", &["model"]),
    ("policy::resolve", &["load"]),
    ("policy::gates", &["files", "load"]),
    ("evidence", &["load", "policy::resolve", "policy::gates"]),
    ("policy::decide", &["files", "load", "evidence"]),
    ("render", &["load", "policy::resolve", "policy::gates", "evidence", "policy::decide"]),
    ("attest", &["load", "policy::resolve", "policy::gates", "policy::decide", "render"]),
    (
        "compare",
        &[
            "files",
            "settings",
            "load",
            "policy::resolve",
            "policy::gates",
            "evidence",
            "policy::decide",
            "render",
            "attest",
        ],
    ),
    ("report", &["load", "policy::gates", "evidence", "policy::decide", "render", "attest"]),
    // A comment is a text.
    (
        "forge",
        &[
            "settings",
            "load",
            "policy::resolve",
            "policy::gates",
            "evidence",
            "policy::decide",
            "render",
            "attest",
            "compare",
            "report",
        ],
    ),
    (
        "notify",
        &[
            "files",
            "settings",
            "policy::resolve",
            "policy::gates",
            "evidence",
            "policy::decide",
            "render",
            "attest",
            "compare",
        ],
    ),
    // What the command line looks like is nobody's business but the verbs'.
    ("verbs::values", &FLAGS_KNOW_NOTHING_OF),
    ("verbs::formats", &FLAGS_KNOW_NOTHING_OF),
    ("verbs::flags", &FLAGS_KNOW_NOTHING_OF),
];

/// The words of the command line are read without what is done with them.
const FLAGS_KNOW_NOTHING_OF: [&str; 10] = [
    "load",
    "policy::resolve",
    "policy::gates",
    "evidence",
    "policy::decide",
    "render",
    "attest",
    "forge",
    "notify",
    "run",
];

/// Rooms whose functions only compute: values in, values out.
const PURE: &[&str] = &["model", "policy::resolve", "policy::gates", "policy::decide", "render", "compare"];

/// What reaches outside (or is a clock): none of it stands in a pure room.
const OUTSIDE: &[&str] = &[
    "std::fs",
    "std::env",
    "std::net",
    "std::process",
    "std::io::std",
    "tokio::",
    "reqwest::",
    "git2::",
    "walkdir::",
    "tempfile::",
    "SystemTime::now",
    "Instant::now",
    "Timestamp::now",
    "Time::now",
    "Zoned::now",
    "async fn",
    ".await",
];

/// Crates with one home: (crate path, the only files that may name it).
const HOMES: &[(&str, &[&str])] = &[
    ("jiff::", &["model/time.rs", "model/calendar.rs"]),
    // libgit2 is at home in crates/git-commits alone.
    ("git2::", &[]),
    (
        "git_commits::",
        &["error.rs", "files.rs", "model/id.rs", "settings/read.rs", "load/cluster", "forge", "run", "verbs"],
    ),
    ("reqwest::", &["forge/http.rs"]),
    ("kube_yaml::", &["error.rs", "settings", "load", "render", "report/diff.rs", "verbs"]),
    (
        "oci_registry::",
        &["error.rs", "model/id.rs", "model/evidence.rs", "evidence", "attest", "run", "verbs"],
    ),
    ("minijinja::", &["render", "policy/gates"]),
    ("kube::", &["load/cluster", "notify"]),
];

/// One source file: its room, its path below `src/` and its text without comments, strings and tests.
struct Source {
    room: String,
    path: String,
    code: String,
}

/// All of `src/` but `main.rs` and `lib.rs`, which stand above the map.
fn sources() -> Vec<Source> {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut found = Vec::new();
    for entry in walkdir::WalkDir::new(&src).sort_by_file_name() {
        let entry = entry.unwrap();
        let path = entry.path().strip_prefix(&src).unwrap().to_str().unwrap().replace('\\', "/");
        if !path.ends_with(".rs") || path == "main.rs" || path == "lib.rs" || path.ends_with("/tests.rs") {
            continue;
        }
        let room = room_of(&path);
        let code = without_tests(&bare(&fs::read_to_string(entry.path()).unwrap()));
        found.push(Source { room, path, code });
    }
    assert!(found.len() > 30, "only {} source files were found", found.len());
    found
}

/// Folders whose own modules are rooms (`policy::gates`, `verbs::plan`), in the order of their `mod` lines.
const FLOORS: &[&str] = &["policy", "verbs"];

/// The room of a file: the first folder below `src/`, or the second below one of [`FLOORS`].
fn room_of(path: &str) -> String {
    let mut names = path.split(['/', '.']);
    let first = names.next().unwrap();
    match names.next().filter(|name| FLOORS.contains(&first) && *name != "rs") {
        Some(inner) => format!("{first}::{inner}"),
        None => first.to_owned(),
    }
}

/// The names of the `mod` lines of a file below `src/`.
fn modules(file: &str) -> Vec<String> {
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(file)).unwrap();
    let module = |line: &str| -> Option<String> {
        let name = line.strip_prefix("pub mod ").or_else(|| line.strip_prefix("mod "))?;
        Some(name.strip_suffix(';')?.to_owned())
    };
    text.lines().filter_map(module).collect()
}

/// The rooms in the order of the `pub mod` lines; a floor's own file stands behind its rooms.
fn order() -> Vec<String> {
    let mut rooms = Vec::new();
    for room in modules("lib.rs") {
        if FLOORS.contains(&room.as_str()) {
            let inner = modules(&format!("{room}.rs"));
            rooms.extend(inner.iter().map(|inner| format!("{room}::{inner}")));
        }
        rooms.push(room);
    }
    assert!(rooms.len() > 10, "src/lib.rs lists only {rooms:?}");
    rooms
}

/// The text with comments and the insides of string and character literals blanked; lines stay lines.
fn bare(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let at = |i: usize| chars.get(i).copied().unwrap_or('\0');
    let mut out = String::with_capacity(text.len());
    let mut i = 0;
    while i < chars.len() {
        let start = i;
        let word_before = i > 0 && (chars[i - 1].is_alphanumeric() || chars[i - 1] == '_');
        match at(i) {
            '/' if at(i + 1) == '/' => {
                while i < chars.len() && chars[i] != '\n' {
                    i += 1;
                }
            }
            '/' if at(i + 1) == '*' => {
                let mut depth = 0;
                while i < chars.len() {
                    match (at(i), at(i + 1)) {
                        ('/', '*') => (depth, i) = (depth + 1, i + 2),
                        ('*', '/') => (depth, i) = (depth - 1, i + 2),
                        _ => i += 1,
                    }
                    if depth == 0 {
                        break;
                    }
                }
            }
            'r' if !word_before
                && (at(i + 1) == '"' || at(i + 1) == '#' && matches!(at(i + 2), '"' | '#')) =>
            {
                let hashes = chars[i + 1..].iter().take_while(|&&c| c == '#').count();
                i += 2 + hashes;
                let closes = |i: usize| at(i) == '"' && (1..=hashes).all(|n| at(i + n) == '#');
                while i < chars.len() && !closes(i) {
                    i += 1;
                }
                i += 1 + hashes;
            }
            '"' => {
                i += 1;
                while i < chars.len() && chars[i] != '"' {
                    i += if chars[i] == '\\' { 2 } else { 1 };
                }
                i += 1;
            }
            '\'' if at(i + 1) == '\\' => {
                i += 3;
                while i < chars.len() && chars[i] != '\'' {
                    i += 1;
                }
                i += 1;
            }
            '\'' if at(i + 2) == '\'' => i += 3,
            other => {
                out.push(other);
                i += 1;
                continue;
            }
        }
        out.extend(chars[start..i.min(chars.len())].iter().filter(|c| **c == '\n'));
        out.push(' ');
    }
    out
}

/// The code without `#[cfg(test)] mod … { … }` (rustfmt closes it with a `}` in the first column).
fn without_tests(code: &str) -> String {
    let mut out = String::new();
    let mut lines = code.lines().peekable();
    while let Some(line) = lines.next() {
        let opens = |l: &&str| l.starts_with("mod ") || l.starts_with("#[");
        if line.starts_with("#[cfg(test)]") && lines.peek().is_some_and(opens) {
            for inside in lines.by_ref() {
                if inside.starts_with('}') || inside.trim_end().ends_with(';') && inside.starts_with("mod ") {
                    break;
                }
            }
        } else {
            out.push_str(line);
            out.push('\n');
        }
    }
    out
}

/// The rooms that `code` names, through `crate::room`, `crate::{room, …}` or enough `super`s: those lead to the
/// crate's root, or to the `floor` that the file is on.
fn used(code: &str, depth: usize, floor: Option<&str>) -> BTreeSet<String> {
    let mut rooms = BTreeSet::new();
    for (start, _) in code.match_indices("crate::") {
        if !code[..start].ends_with(|c: char| c.is_alphanumeric() || c == '_') {
            first_names(&code[start + "crate::".len()..], None, &mut rooms);
        }
    }
    let to_the_root = "super::".repeat(depth);
    for (start, _) in code.match_indices(&to_the_root) {
        let before = &code[..start];
        if !before.ends_with("super::") && !before.ends_with(|c: char| c.is_alphanumeric() || c == '_') {
            first_names(&code[start + to_the_root.len()..], floor, &mut rooms);
        }
    }
    rooms
}

/// The first name of a path, or of every path of a `{…}` group.
fn first_names(path: &str, floor: Option<&str>, into: &mut BTreeSet<String>) {
    for inner_floor in FLOORS {
        if let Some(inner) = path.strip_prefix(inner_floor).and_then(|rest| rest.strip_prefix("::")) {
            return first_names(inner, Some(inner_floor), into);
        }
    }
    let Some(group) = path.strip_prefix('{') else {
        let name: String = path.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
        match floor {
            _ if name.is_empty() => {}
            Some(floor) => drop(into.insert(format!("{floor}::{name}"))),
            None => drop(into.insert(name)),
        }
        return;
    };
    let (mut depth, mut item) = (1, String::new());
    for c in group.chars() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 || depth == 1 && c == ',' {
            first_names(item.trim(), floor, into);
            item.clear();
            if depth == 0 {
                break;
            }
        } else {
            item.push(c);
        }
    }
}

/// The floor that a file's room is on.
fn floor(path: &str) -> Option<&str> {
    path.split_once('/').map(|(first, _)| first).filter(|first| FLOORS.contains(first))
}

/// How many `super`s lead from inside the file's module to the crate's root, or to its floor.
fn depth(path: &str) -> usize {
    path.split('/').filter(|name| !FLOORS.contains(name)).count()
}

#[test]
fn no_arrow_points_back() {
    let order = order();
    let place = |room: &str| order.iter().position(|r| r == room);
    let mut wrong = Vec::new();
    for source in sources() {
        let Some(own) = place(&source.room) else {
            wrong.push(format!("src/{}: no `pub mod {};` line in src/lib.rs", source.path, source.room));
            continue;
        };
        for target in used(&source.code, depth(&source.path), floor(&source.path)) {
            match place(&target) {
                Some(at) if at <= own => {}
                Some(_) => wrong
                    .push(format!("src/{} uses {target}, which stands below {}", source.path, source.room)),
                None => wrong.push(format!("src/{} uses {target}, which is no room", source.path)),
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn no_room_knows_what_it_must_not() {
    let order = order();
    for (room, others) in KNOWS_NOTHING_OF {
        for name in others.iter().chain([room]) {
            assert!(order.iter().any(|r| r == name), "{name} is no room of src/lib.rs: correct this table");
        }
    }
    let mut wrong = Vec::new();
    for source in sources() {
        let spared =
            KNOWS_NOTHING_OF.iter().find(|(room, _)| *room == source.room).map_or(&[][..], |(_, o)| o);
        for target in used(&source.code, depth(&source.path), floor(&source.path)) {
            if spared.contains(&target.as_str()) {
                wrong.push(format!("src/{}: {} must know nothing of {target}", source.path, source.room));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn pure_rooms_touch_nothing_outside() {
    let mut wrong = Vec::new();
    for source in sources().iter().filter(|s| PURE.contains(&s.room.as_str())) {
        // The clock is read in one place, for `main.rs` to call.
        let is_the_clock = |token: &str| source.path == "model/time.rs" && token == "Timestamp::now";
        for token in OUTSIDE.iter().filter(|token| source.code.contains(**token) && !is_the_clock(token)) {
            wrong.push(format!("src/{}: {} is pure, and names {token}", source.path, source.room));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn crates_stay_at_home() {
    let mut wrong = Vec::new();
    for source in sources() {
        for (name, homes) in HOMES.iter().filter(|(name, _)| source.code.contains(name)) {
            if !homes.iter().any(|home| source.path.starts_with(home)) {
                wrong.push(format!("src/{} names {name}: its home is {}", source.path, homes.join(", ")));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_file_is_read_in_a_sitting() {
    let long: Vec<String> = sources()
        .iter()
        .map(|s| (s.code.lines().filter(|line| !line.trim().is_empty()).count(), &s.path))
        .filter(|(lines, _)| *lines > 700)
        .map(|(lines, path)| format!("src/{path}: {lines} lines of code; make it a folder"))
        .collect();
    assert!(long.is_empty(), "{}", long.join("\n"));
}

#[test]
fn the_reader_of_paths_sees_every_form() {
    let names =
        |code: &str, depth| used(&without_tests(&bare(code)), depth, None).into_iter().collect::<Vec<_>>();
    assert_eq!(names("use crate::policy::gates::ready;", 1), ["policy::gates"]);
    assert_eq!(names("use crate::policy::{gates, decide::Options};", 1), ["policy::decide", "policy::gates"]);
    assert_eq!(
        names("use crate::{policy::gates, model::{id, time::Time}, run};", 1),
        ["model", "policy::gates", "run"]
    );
    assert_eq!(names("use crate::{\n    gates::{a, b},\n    load,\n};", 1), ["gates", "load"]);
    assert_eq!(names("fn f() { crate::commit::push() }", 1), ["commit"]);
    assert_eq!(names("use super::super::run;", 2), ["run"]);
    assert_eq!(names("use super::ready;", 2), Vec::<String>::new());
    assert_eq!(names("use super::run;", 1), ["run"]);
    assert_eq!(
        names("// crate::run::x\n/* crate::a /* crate::b */ crate::c */ \"crate::d \\\" crate::e\"", 1),
        Vec::<String>::new()
    );
    assert_eq!(
        names("let s = r#\"crate::a \" crate::b\"#; let c = '\"'; crate::load::x(); let d = '\\'';", 1),
        ["load"]
    );
    assert_eq!(names("fn f<'a>(x: &'a str) { crate::run::y(x, 'c') }", 1), ["run"]);
    assert_eq!(
        names(
            "use crate::a::b;\n#[cfg(test)]\nmod tests {\n    use crate::run::x;\n}\nuse crate::c::d;\n",
            1
        ),
        ["a", "c"]
    );
    assert_eq!(names("#[cfg(test)]\nmod tests;\nuse crate::c::d;\n", 1), ["c"]);
    assert_eq!(
        names("#[cfg(test)]\n#[allow(x)]\nmod tests {\n    use crate::run;\n}\n", 1),
        Vec::<String>::new()
    );
    assert_eq!(names("use my_crate::run;", 1), Vec::<String>::new());
    let on_a_floor = |code: &str| used(code, 1, Some("verbs")).into_iter().collect::<Vec<_>>();
    assert_eq!(on_a_floor("use super::diff::contents;"), ["verbs::diff"]);
    assert_eq!(on_a_floor("use super::{diff, get::text};"), ["verbs::diff", "verbs::get"]);
}
