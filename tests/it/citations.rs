//! Every citation leads somewhere: a page that a comment or a page names exists and has the section; every case
//! number in a comment or a test's name is on `docs/design/field-cases.md`; and every case there has a test.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};

/// Where comments and pages are looked at.
const PLACES: &[&str] = &[
    ".github",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "Cargo.toml",
    "README.md",
    "action.yml",
    "benches",
    "crates",
    "deploy",
    "docs",
    "fuzz",
    "src",
    "templates",
    "tests",
];

/// Files of others, and what is built.
const FOREIGN: &[&str] = &["tests/data", "target"];

/// This file, whose examples lead nowhere.
const SELF: &str = "citations.rs";

const CASES: &str = "docs/design/field-cases.md";

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Every file below the places, by its path from the root.
fn texts() -> BTreeMap<String, String> {
    fn walk(path: &Path, found: &mut BTreeMap<String, String>) {
        let name = path.strip_prefix(root()).unwrap().to_str().unwrap().to_owned();
        if FOREIGN.iter().any(|foreign| name == *foreign || name.ends_with("/target") || name.ends_with(SELF))
        {
            return;
        }
        if path.is_dir() {
            for entry in fs::read_dir(path).unwrap() {
                walk(&entry.unwrap().path(), found);
            }
        } else if matches!(extension(&name), "rs" | "md" | "sh" | "toml" | "yaml" | "yml" | "go" | "py")
            && let Ok(text) = fs::read_to_string(path)
        {
            found.insert(name, text);
        }
    }
    let mut found = BTreeMap::new();
    for place in PLACES {
        walk(&root().join(place), &mut found);
    }
    found
}

fn extension(name: &str) -> &str {
    name.rsplit_once('.').map_or("", |(_, extension)| extension)
}

/// The comment of each line that has one, with the line's number.
fn comments<'a>(name: &str, text: &'a str) -> Vec<(usize, &'a str)> {
    let mark = match extension(name) {
        "rs" | "go" => "//",
        _ => "#",
    };
    let mut found = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let inside = line.find(&format!(" {mark} ")).map(|at| &line[at + 1..]);
        let whole = Some(line.trim_start()).filter(|line| line.starts_with(mark));
        found.extend(whole.or(inside).map(|comment| (index + 1, comment)));
    }
    found
}

/// `docs/x.md` and `docs/x.md#section`, wherever they are in `text`.
fn pages(text: &str) -> Vec<(&str, Option<&str>)> {
    let is_path = |c: char| c.is_ascii_alphanumeric() || "_-./~".contains(c);
    let mut found = Vec::new();
    for (at, _) in text.match_indices(".md") {
        let end = at + ".md".len();
        let begin = text[..at].rfind(|c: char| !is_path(c)).map_or(0, |i| i + 1);
        let rest = &text[end..];
        let is_url = text[..begin].ends_with(':');
        if at == begin || is_url || rest.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_') {
            continue;
        }
        let section = rest.strip_prefix('#').map(|rest| {
            let is_slug = |c: char| c.is_alphanumeric() || c == '-' || c == '_';
            &rest[..rest.find(|c: char| !is_slug(c)).unwrap_or(rest.len())]
        });
        found.push((&text[begin..end], section));
    }
    found
}

/// Targets of the links of a page, but those to other sites and those in examples.
fn links(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut is_example = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            is_example = !is_example;
        }
        if is_example {
            continue;
        }
        for (at, _) in line.match_indices("](") {
            let target = &line[at + 2..];
            let target = &target[..target.find(')').unwrap_or(target.len())];
            if !target.contains("://") && !target.starts_with("mailto:") {
                found.push(target);
            }
        }
    }
    found
}

/// The names by which the headings of a page are linked, as forges make them.
fn sections(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut is_example = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            is_example = !is_example;
        }
        let heading = line.trim_start_matches('#');
        if is_example || heading.len() == line.len() || !heading.starts_with(' ') {
            continue;
        }
        let kept = |c: &char| c.is_alphanumeric() || "-_ ".contains(*c);
        found
            .insert(heading.trim().to_lowercase().chars().filter(kept).collect::<String>().replace(' ', "-"));
    }
    found
}

/// Why there is nothing at `path`, from the root, and `section` of it.
fn broken(path: &str, section: Option<&str>) -> Option<String> {
    let place = root().join(path);
    if !place.exists() {
        return Some(format!("there is no {path}"));
    }
    let section = section.filter(|section| !section.is_empty())?;
    let known = sections(&fs::read_to_string(place).unwrap());
    (!known.contains(section)).then(|| format!("{path} has no section {section}; it has {known:?}"))
}

/// `path` as the page `from` names it, from the root.
fn resolved(from: &str, path: &str) -> String {
    let mut parts = PathBuf::from(from);
    parts.pop();
    for part in Path::new(path).components() {
        match part {
            Component::ParentDir => drop(parts.pop()),
            Component::Normal(name) => parts.push(name),
            _ => {}
        }
    }
    parts.to_str().unwrap().to_owned()
}

/// What of the pages that comments and links name is not there.
fn dead_ends(name: &str, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    if extension(name) == "md" {
        for link in links(text) {
            let (path, section) = link.split_once('#').map_or((link, None), |(path, s)| (path, Some(s)));
            let path = if path.is_empty() { name.to_owned() } else { resolved(name, path) };
            found.extend(broken(&path, section).map(|why| format!("{name}: {why}")));
        }
    } else {
        for (line, comment) in comments(name, text) {
            for (path, section) in pages(comment) {
                found.extend(broken(path, section).map(|why| format!("{name}:{line}: {why}")));
            }
        }
    }
    found
}

/// A case, as it is cited: `B26`, or `37`.
fn case_of(text: &str) -> Option<String> {
    let digits = text.strip_prefix(['B', 'b']);
    let number: u32 = digits.unwrap_or(text).parse().ok()?;
    Some(if digits.is_some() { format!("B{number:02}") } else { number.to_string() })
}

/// `B26`, `case 37`, `cases 1 to 12, 19 and 57`.
fn cited(comment: &str) -> Vec<String> {
    let words: Vec<&str> =
        comment.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let is_field = |word: &&&str| word.starts_with('B') && (3..=4).contains(&word.len());
    let mut found: Vec<String> = words.iter().filter(is_field).filter_map(|word| case_of(word)).collect();
    for (at, word) in words.iter().enumerate() {
        if matches!(word.to_lowercase().as_str(), "case" | "cases") {
            let listed = words[at + 1..].iter().filter(|word| !matches!(**word, "to" | "and"));
            found.extend(listed.map_while(|word| word.parse::<u32>().ok().map(|number| number.to_string())));
        }
    }
    found
}

/// The cases in the names of the functions of a file.
fn named(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for line in text.lines().map(str::trim) {
        let line = line.strip_prefix("async ").unwrap_or(line);
        let Some(name) = line.strip_prefix("fn ").and_then(|rest| rest.split('(').next()) else { continue };
        let words: Vec<&str> = name.split('_').collect();
        for (at, word) in words.iter().enumerate() {
            let is_field = word.starts_with('b') && (3..=4).contains(&word.len());
            let is_evidence = at > 0 && words[at - 1] == "case";
            found.extend((is_field || is_evidence).then(|| case_of(word)).flatten());
        }
    }
    found
}

/// The cases of the page: the first column of its tables.
fn listed() -> BTreeSet<String> {
    let text = fs::read_to_string(root().join(CASES)).unwrap();
    let first = |line: &str| line.strip_prefix("| ")?.split(" |").next().map(str::to_owned);
    let all: Vec<String> = text.lines().filter_map(first).filter_map(|cell| case_of(&cell)).collect();
    let unique: BTreeSet<String> = all.iter().cloned().collect();
    assert_eq!(all.len(), unique.len(), "a case is on {CASES} twice");
    unique
}

#[test]
fn every_citation_leads_to_a_page_and_a_section_of_it() {
    let texts = texts();
    assert!(texts.contains_key("src/lib.rs") && texts.contains_key(CASES), "the wrong folder is looked at");
    let found: Vec<String> = texts.iter().flat_map(|(name, text)| dead_ends(name, text)).collect();
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn every_case_that_is_cited_is_on_the_page_and_every_case_there_has_a_test() {
    let listed = listed();
    let mut tested = BTreeSet::new();
    let mut unknown = Vec::new();
    for (name, text) in texts().iter().filter(|(name, _)| extension(name) != "md") {
        let in_names = if extension(name) == "rs" { named(text) } else { Vec::new() };
        let in_comments =
            comments(name, text).into_iter().flat_map(|(_, comment)| cited(comment)).collect::<Vec<_>>();
        for case in in_names.iter().chain(&in_comments).filter(|case| !listed.contains(*case)) {
            unknown.push(format!("{name} cites case {case}, which is not on {CASES}"));
        }
        tested.extend(in_names);
        if name.starts_with("tests/") {
            tested.extend(in_comments);
        }
    }
    assert!(unknown.is_empty(), "{}", unknown.join("\n"));
    let without: Vec<&String> = listed.difference(&tested).collect();
    assert!(without.is_empty(), "cases on {CASES} that no test cites: {without:?}");
}

#[test]
fn a_citation_that_leads_nowhere_is_found() {
    let rust = "/// See `docs/design/nowhere.md`.\nlet x = 1; // `docs/design/promotion.md#no-such-section`\n// promotion.md";
    assert_eq!(dead_ends("src/x.rs", rust).len(), 3);
    assert_eq!(dead_ends("docs/x.md", "[a](design/promotion.md#gates) [b](nowhere.md) [c](#none)").len(), 2);
    assert_eq!(
        dead_ends("src/x.rs", "// `docs/design/promotion.md#gates`, README.md, https://x.example/y.md"),
        [""; 0]
    );
    assert_eq!(cited("cases 1 to 12, 19 and 57; B48 in case 07"), ["B48", "1", "12", "19", "57", "7"]);
    assert_eq!(named("async fn b39_case_64_x() {\n    fn b1_case_study(\n// fn b02_x()"), ["B39", "64"]);
}
