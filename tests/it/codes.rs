//! `docs/codes.md` lists every stable code that the code has and no other, each with its meaning; and each code is met
//! by a test. `BLESS=1 cargo test --test it codes::` adds rows that are missing; their meaning is to be written.
//!
//! A code is found where it is given: as the argument `code` of a function or closure, or as a member `code`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

const PAGE: &str = "docs/codes.md";

/// Where files of ours hold codes; where tests and expected outputs meet them.
const CODE: &[&str] = &["src", "crates"];
const TESTS: &[&str] = &["tests", "fixtures"];

/// This file names codes without meeting them.
const SELF: &str = "it/codes.rs";

/// Codes that no test meets, with the reason.
const UNMET: &[(&str, &str)] = &[
    (
        "a fault of the machine, of a race or of the program itself, which no test can bring about simply",
        "\
         attached-not-remembered bundle-file checkout-moved checkout-unfinished checkout-unreadable \
         checkout-unwritable commit-id evidence-warning git-thread no-runtime not-written \
         push-not-seen record-json record-manifest record-not-listed reference-locked \
         registry-warning repository-create repository-unreadable repository-unwritable same-file \
         step-summary temporary written-wrong",
    ),
    (
        "tests meet it by its message, and do not name the code yet",
        "\
         another-plan approval-policy at bad-name bad-predicate bundle-damaged bundle-of-another bundle-unreadable \
         bundled-trust ci-variable comment-moved credential-helper drops-promotions exists folder not-eligible nothing-to-approve unclear-approver unknown-approver \
         git-config hand-edits history-findings history-unread http-header kept-moving needs-network \
         no-cases no-checkout no-cluster no-comment no-context no-definition no-event no-file \
         no-folder no-kind no-kubeconfig no-order no-pull-request no-record-key no-schema \
         no-sign-key no-signing-key no-such-order no-url no-voter not-admitted not-found \
         not-looked-into not-saved not-verified not-whole nothing-to-compare old-definition \
         order-not-read order-unreadable other-digest other-trust path-clash public-key \
         record-bundle record-gone record-not-attached records-not-attached registry-read-only \
         relative-path remote-absent removal-guard repository-format repository-name second-document \
         service-account serving-gone serving-incomplete several-preparations shard sign-key \
         signer-command signer-failed signing-key-untrusted skip-evidence status-not-written \
         stray-serving template-undefined temporary-folder too-long too-many-comments trust-key \
         unknown-ref unreadable vote-file vulnerabilities-rose wrong-kind wrong-place",
    ),
];

fn texts(places: &[&str]) -> BTreeMap<String, String> {
    fn walk(root: &Path, path: &Path, found: &mut BTreeMap<String, String>) {
        if path.is_dir() {
            for entry in fs::read_dir(path).unwrap() {
                walk(root, &entry.unwrap().path(), found);
            }
        } else if let Ok(text) = fs::read_to_string(path) {
            found.insert(path.strip_prefix(root).unwrap().to_str().unwrap().to_owned(), text);
        }
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = BTreeMap::new();
    for place in places.iter().map(|place| root.join(place)).filter(|place| place.exists()) {
        walk(root, &place, &mut found);
    }
    found
}

/// A file without its tests, and its tests.
fn parts(name: &str, text: &str) -> (String, String) {
    if !name.ends_with(".rs")
        || name.ends_with("/tests.rs")
        || name.ends_with("/sample.rs")
        || name.contains("/tests/")
    {
        return (String::new(), text.to_owned());
    }
    let mut at = 0;
    let begin = text.match_indices("#[cfg(test)]\n").map(|(at, _)| at).find(|at| {
        let mut after = text[*at..].lines().skip(1).skip_while(|line| line.starts_with("#["));
        after.next().is_some_and(|line| line.starts_with("mod ") && line.ends_with('{'))
    });
    let (code, tests) = text.split_at(begin.unwrap_or(text.len()));
    let mut kept = String::new();
    for line in code.lines() {
        at += line.len() + 1;
        if !line.trim_start().starts_with("//") {
            kept.push_str(line);
            kept.push('\n');
        }
    }
    assert!(at >= code.len());
    (kept, tests.to_owned())
}

/// The items of a list that begins behind its bracket, split at its own commas.
fn items(text: &str) -> Vec<&str> {
    let (mut depth, mut begin, mut found) = (0, 0, Vec::new());
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => {
                while let Some((_, c)) = chars.next() {
                    match c {
                        '\\' => drop(chars.next()),
                        '"' => break,
                        _ => {}
                    }
                }
            }
            '\'' if text[at..].chars().nth(2) == Some('\'') => drop(chars.nth(1)),
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' | '|' if depth == 0 => {
                found.push(text[begin..at].trim());
                return found;
            }
            ')' | ']' | '}' => depth -= 1,
            ',' if depth == 0 => {
                found.push(text[begin..at].trim());
                begin = at + 1;
            }
            _ => {}
        }
    }
    found
}

fn is_code(text: &str) -> bool {
    let is_word =
        |word: &str| !word.is_empty() && word.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    text.starts_with(|c: char| c.is_ascii_lowercase()) && text.split('-').all(is_word)
}

/// The codes that an argument can be: a literal, a constant, or the branches of an expression.
fn codes_of(argument: &str, constants: &BTreeMap<String, String>) -> Vec<String> {
    if let Some(value) = constants.get(argument.rsplit("::").next().unwrap()) {
        return vec![value.clone()];
    }
    if !["\"", "if ", "match "].iter().any(|start| argument.starts_with(start)) {
        return Vec::new();
    }
    argument.split('"').skip(1).step_by(2).filter(|text| is_code(text)).map(str::to_owned).collect()
}

/// The name that a definition gives, and where its parameter `code` is, without `self`.
fn definition(text: &str) -> Option<(&str, usize)> {
    let (head, parameters) = match text.strip_prefix("fn ") {
        Some(rest) => rest.split_once('(')?,
        None => {
            let (name, rest) = text.strip_prefix("let ")?.split_once(" =")?;
            (name, rest.trim_start().trim_start_matches("move ").strip_prefix('|')?)
        }
    };
    let name = head.split('<').next().unwrap();
    let mut all = items(parameters);
    all.retain(|p| !matches!(*p, "self" | "mut self" | "&self" | "&mut self"));
    let place = all.iter().position(|p| *p == "code" || p.starts_with("code: &"))?;
    Some((name, place))
}

/// Every code, with the files that give it.
fn given(files: &BTreeMap<String, String>) -> BTreeMap<String, BTreeSet<String>> {
    let code: BTreeMap<&String, String> =
        files.iter().map(|(name, text)| (name, parts(name, text).0)).collect();
    let mut constants = BTreeMap::new();
    let mut makers: BTreeSet<(String, usize)> = BTreeSet::new();
    let mut local: BTreeMap<&String, BTreeSet<(String, usize)>> = BTreeMap::new();
    for (name, text) in &code {
        for (at, _) in text.match_indices("const ") {
            let line = text[at + 6..].lines().next().unwrap();
            if let Some((constant, value)) =
                line.split_once(": &").and_then(|(c, rest)| Some((c, rest.split('"').nth(1)?)))
                && is_code(value)
            {
                constants.insert(constant.to_owned(), value.to_owned());
            }
        }
        for word in ["fn ", "let "] {
            for (at, _) in text.match_indices(word) {
                let Some((maker, place)) = definition(&text[at..]) else { continue };
                let maker = (maker.to_owned(), place);
                if word == "fn " {
                    makers.insert(maker)
                } else {
                    local.entry(name).or_default().insert(maker)
                };
            }
        }
    }
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (name, text) in &code {
        for (maker, place) in makers.iter().chain(local.get(name).into_iter().flatten()) {
            for (at, call) in text.match_indices(&format!("{maker}(")) {
                let before = &text[..at];
                // A constructor is called by its type's name; nothing else is called `new` and takes a code.
                let is_other = match maker.as_str() {
                    "new" | "input" => !before.ends_with("Failure::") && !before.ends_with("Error::"),
                    _ => {
                        before.ends_with(|c: char| c.is_alphanumeric() || c == '_') || before.ends_with("fn ")
                    }
                };
                if is_other {
                    continue;
                }
                for code in items(&text[at + call.len()..])
                    .get(*place)
                    .into_iter()
                    .flat_map(|a| codes_of(a, &constants))
                {
                    found.entry(code).or_default().insert((*name).clone());
                }
            }
        }
        // Findings of the audit are tuples of a digest or list, the code and the words.
        for (at, _) in text.match_indices(", \"").filter(|_| name.contains("/audit")) {
            let literal = text[at + 3..]
                .split_once('"')
                .filter(|(code, rest)| is_code(code) && rest.starts_with(", wh"));
            found.extend(literal.map(|(code, _)| (code.to_owned(), BTreeSet::from([(*name).clone()]))));
        }
        for (at, member) in text.match_indices(" code: ") {
            for code in
                items(&text[at + member.len()..]).first().into_iter().flat_map(|a| codes_of(a, &constants))
            {
                found.entry(code).or_default().insert((*name).clone());
            }
        }
    }
    found
}

/// The rows of the page: code, meaning, what to do.
fn rows(page: &str) -> Vec<[String; 3]> {
    let row = |line: &str| {
        let cells: Vec<&str> =
            line.strip_prefix("| ")?.strip_suffix(" |")?.split(" | ").map(str::trim).collect();
        let [code, means, then] = cells.as_slice() else { return None };
        is_code(code).then(|| [(*code).to_owned(), (*means).to_owned(), (*then).to_owned()])
    };
    page.lines().filter_map(row).collect()
}

#[test]
fn the_page_lists_every_code_with_its_meaning() {
    let given = given(&texts(CODE));
    assert!(given.len() > 150, "codes are not found any more: {}", given.len());
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(PAGE);
    let page = fs::read_to_string(&file).unwrap();
    let rows = rows(&page);
    let listed: BTreeSet<&String> = rows.iter().map(|row| &row[0]).collect();
    assert_eq!(listed.len(), rows.len(), "a code is on {PAGE} twice");
    let absent: Vec<_> = given.iter().filter(|(code, _)| !listed.contains(code)).collect();
    if !absent.is_empty() && std::env::var_os("BLESS").is_some() {
        let more: String = absent.iter().map(|(code, _)| format!("| {code} |  |  |\n")).collect();
        fs::write(&file, page + &more).unwrap();
    }
    assert!(absent.is_empty(), "not on {PAGE} (BLESS=1 adds them): {absent:#?}");
    let gone: Vec<_> = listed.iter().filter(|code| !given.contains_key(**code)).collect();
    assert!(gone.is_empty(), "on {PAGE}, and nothing gives them: {gone:?}");
    let empty: Vec<_> =
        rows.iter().filter(|row| row[1].is_empty() || row[2].is_empty()).map(|row| &row[0]).collect();
    assert!(empty.is_empty(), "without a meaning on {PAGE}: {empty:?}");
}

/// Whether a test has the code as a value: in quotes, and not as the name of a member.
fn meets(tests: &str, code: &str) -> bool {
    let quoted = format!("\"{code}\"");
    tests
        .match_indices(&quoted)
        .any(|(at, _)| !tests[at + quoted.len()..].trim_start_matches(' ').starts_with(':'))
}

#[test]
fn every_code_is_met_by_a_test() {
    let code = texts(CODE);
    let mut tests: Vec<String> = code.iter().map(|(name, text)| parts(name, text).1).collect();
    tests.extend(texts(TESTS).into_iter().filter(|(name, _)| !name.ends_with(SELF)).map(|(_, text)| text));
    let given = given(&code);
    let unmet: BTreeSet<&str> = given
        .keys()
        .map(String::as_str)
        .filter(|code| !tests.iter().any(|tests| meets(tests, code)))
        .collect();
    let allowed: BTreeSet<&str> = UNMET.iter().flat_map(|(_, codes)| codes.split_whitespace()).collect();
    let more: Vec<_> = unmet.difference(&allowed).collect();
    assert!(more.is_empty(), "no test meets these codes: {more:?}");
    let met: Vec<_> = allowed.difference(&unmet).collect();
    assert!(met.is_empty(), "a test meets these codes, or they are gone; take them off UNMET: {met:?}");
}

#[test]
fn codes_are_found_however_they_are_given() {
    let text = r#"
const GONE: &str = "is-gone";
fn wrong(what: &str, code: &'static str) -> Failure { Failure::new(Kind::Input, code, what) }
fn a() {
    Failure::input("plain", format!("a, {b}"));
    Failure::new(
        Kind::Input,
        "wrapped",
        why,
    );
    wrong("not-this, but", if x { "either" } else { "or-this" });
    let failed = |code, why: &str| Failure::input(code, why);
    failed("in-closure", "no-code");
    self.wrong("x", GONE);
    Finding { code: "member" };
    // wrong("x", "comment")
}
#[cfg(test)]
mod tests {
    fn b() { Failure::input("of-a-test", ""); }
}
fn not_here() {}
"#;
    let makers = "impl Failure { pub fn new(kind: Kind, code: &'static str, c: X) -> Self {} pub fn input(code: &'static str, c: X) -> Self {} }";
    let files = [("src/a.rs".to_owned(), text.to_owned()), ("src/error.rs".to_owned(), makers.to_owned())];
    let found: Vec<String> = given(&files.into()).into_keys().collect();
    assert_eq!(found, ["either", "in-closure", "is-gone", "member", "or-this", "plain", "wrapped"]);
    assert!(meets(r#"code: "x-y","#, "x-y") && !meets(r#"{"x-y": 1}"#, "x-y"));
}
