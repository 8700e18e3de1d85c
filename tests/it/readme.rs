//! The README holds: every command in it runs, every quoted output is what they say, every table is what
//! the code has. `BLESS=1 cargo test --test it readme::` writes the tables and the files that `init` writes.
//!
//! A `sh` block is run, line by line as a reader would; a `text` block behind it is what it prints (`…` stands
//! for anything; `text stderr` is what it says to people). `# exits N` behind a command is its exit status.
//! Blocks of another kind are checked by the tests below that name them.

use crate::support::executable::executable;
use crate::support::harness::{Place, blessing, copy, package, shop};
use crate::support::{harness, peers};
use clap::{CommandFactory as _, Parser as _};
use expedite::error::FailureKind;
use expedite::policy::gates::GATES;
use expedite::settings::Settings;
use expedite::verbs::Cli;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

fn readme() -> String {
    fs::read_to_string(package().join("README.md")).unwrap()
}

/// A fenced block.
#[derive(Debug)]
struct Block {
    kind: String,
    text: String,
    line: usize,
}

fn blocks(readme: &str) -> Vec<Block> {
    let mut found: Vec<Block> = Vec::new();
    let mut open = false;
    for (number, line) in readme.lines().enumerate() {
        match line.strip_prefix("```") {
            Some(_) if open => open = false,
            Some(kind) => {
                found.push(Block { kind: kind.to_owned(), text: String::new(), line: number + 1 });
                open = true;
            }
            None if open => {
                let block = found.last_mut().unwrap();
                block.text.push_str(line);
                block.text.push('\n');
            }
            None => {}
        }
    }
    assert!(!open, "a fence is not closed");
    found
}

/// What stands between `<!-- name -->` and `<!-- /name -->`.
#[track_caller]
fn part(readme: &str, name: &str) -> String {
    let (begin, end) = (format!("<!-- {name} -->\n"), format!("<!-- /{name} -->"));
    let (_, rest) = readme.split_once(&begin).unwrap_or_else(|| panic!("the README has no {begin}"));
    rest.split_once(&end).unwrap_or_else(|| panic!("the README has no {end}")).0.to_owned()
}

/// Wants a part of the README to be `text`; with `BLESS=1` writes it.
#[track_caller]
fn part_is(name: &str, text: &str) {
    static WRITING: std::sync::Mutex<()> = std::sync::Mutex::new(());
    let _alone = WRITING.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let all = readme();
    let before = part(&all, name);
    if before == text {
        return;
    }
    assert!(blessing(), "the README's {name} (BLESS=1 writes it):\n{text}\nis in it as:\n{before}");
    let (begin, end) = (format!("<!-- {name} -->\n"), format!("<!-- /{name} -->"));
    let whole = all.replacen(&format!("{begin}{before}{end}"), &format!("{begin}{text}{end}"), 1);
    fs::write(package().join("README.md"), whole).unwrap();
}

// --- Commands ---

/// A clone of this repository as far as the README's commands need one, with `expedite`, `cargo` and
/// `kubectl` in front of everything: the built binary, cargo's two commands, and a kubectl that keeps what it
/// is given.
struct Reader {
    place: Place,
    folder: PathBuf,
}

const SHIMS: [(&str, &str); 3] = [
    // Each command a minute after the last, on a Tuesday in February; a vote is signed with the real time.
    (
        "expedite",
        r#"#!/bin/sh
case " $* " in
*" --at "*) exec "$EXPEDITE_BINARY" "$@" ;;
*" approve "*) touch "$READER/real-time" ;;
esac
[ ! -e "$READER/real-time" ] || exec "$EXPEDITE_BINARY" "$@"
minute=$(cat "$READER/minute" 2>/dev/null || echo 0)
echo $((minute + 1)) >"$READER/minute"
exec "$EXPEDITE_BINARY" "$@" --at "2026-02-10T12:$(printf %02d "$minute"):00Z"
"#,
    ),
    (
        "cargo",
        r#"#!/bin/sh
case "$*" in
"run --release --locked -- "*) shift 4; exec expedite "$@" ;;
"install --locked --path .") grep -q '^name = "expedite"' Cargo.toml ;;
*) echo "no such cargo command here: $*" >&2; exit 1 ;;
esac
"#,
    ),
    (
        "kubectl",
        r#"#!/bin/sh
[ "$1 $2" = "apply -f" ] && [ $# = 3 ] || { echo "no such kubectl command here: $*" >&2; exit 1; }
[ "$3" = - ] || exec <"$3"
cat >"$READER/applied-$(ls "$READER" | grep -c applied).yaml"
"#,
    ),
];

impl Reader {
    fn new() -> Self {
        let mut place = Place::new();
        let folder = place.path("expedite");
        copy(&shop(), &folder.join("fixtures/shop"));
        fs::copy(package().join("Cargo.toml"), folder.join("Cargo.toml")).unwrap();
        for (name, text) in SHIMS {
            place.write(&format!("bin/{name}"), text);
            executable(&place.path(&format!("bin/{name}")));
        }
        fs::create_dir(place.path("reader")).unwrap();
        let path = format!("{}:{}", place.path("bin").display(), std::env::var("PATH").unwrap());
        let reader = place.path("reader").display().to_string();
        for (name, value) in [
            ("PATH", path.as_str()),
            ("READER", &reader),
            ("EXPEDITE_BINARY", env!("CARGO_BIN_EXE_expedite")),
            ("GIT_AUTHOR_NAME", "Ann"),
            ("GIT_AUTHOR_EMAIL", "ann@shop.example"),
            ("GIT_COMMITTER_NAME", "Ann"),
            ("GIT_COMMITTER_EMAIL", "ann@shop.example"),
        ] {
            place.set(name, value);
        }
        place.write("reader/session", format!("cd '{}'\n", folder.display()));
        Self { place, folder }
    }

    /// Runs a block as its reader would, behind all blocks before it: its working directory and its
    /// variables last. Gives what it said, masked.
    #[track_caller]
    fn run(&self, block: &Block) -> harness::Said {
        let mut script = ". \"$READER/session\"\nset -eu\n".to_owned();
        for line in block.text.lines() {
            match line.split_once("# exits ") {
                Some((command, status)) => {
                    let status: i32 = status.trim().parse().unwrap();
                    let _ = writeln!(
                        script,
                        "s=0; {} || s=$?; [ $s = {status} ] || {{ echo \"exits $s: {}\" >&2; exit 1; }}",
                        command.trim(),
                        command.trim().replace(['"', '$', '`'], "")
                    );
                }
                None => {
                    let _ = writeln!(script, "{line}");
                }
            }
        }
        script.push_str("{ export -p; echo \"cd '$PWD'\"; [ -n \"${EXPEDITE_CONFIG+x}\" ] || echo unset EXPEDITE_CONFIG; } >\"$READER/session\"\n");
        let mut command = self.place.command("sh");
        command.args(["-c", &script]);
        let said = self.place.finish(command);
        assert_eq!(
            said.status,
            Some(0),
            "README.md:{}\n{}\n{}",
            block.line,
            block.text,
            said.transcript("sh")
        );
        said
    }
}

/// Whether `text` is what `pattern` says, line by line; `…` alone is any lines, inside a line any characters.
fn says(pattern: &[&str], text: &[&str]) -> bool {
    match (pattern.split_first(), text.split_first()) {
        (None, None) => true,
        (Some((&"…", rest)), _) => {
            says(rest, text) || text.split_first().is_some_and(|(_, left)| says(pattern, left))
        }
        (Some((line, rest)), Some((found, left))) => line_says(line, found) && says(rest, left),
        (Some(_), None) | (None, Some(_)) => false,
    }
}

fn line_says(pattern: &str, line: &str) -> bool {
    let mut parts = pattern.split('…');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = line.strip_prefix(first) else { return false };
    let parts: Vec<&str> = parts.collect();
    let Some((last, between)) = parts.split_last() else { return rest.is_empty() };
    for part in between {
        let Some((_, behind)) = rest.split_once(part) else { return false };
        rest = behind;
    }
    rest.ends_with(last)
}

#[test]
fn every_command_runs_and_says_what_is_quoted() {
    if peers::peer("ssh-keygen").is_none() {
        return;
    }
    let reader = Reader::new();
    let mut said = None;
    let mut ran = 0;
    let all = readme();
    for block in blocks(&all) {
        match block.kind.as_str() {
            "sh" => {
                said = Some(reader.run(&block));
                ran += 1;
            }
            "text" | "text stderr" => {
                // The picture stands behind no command.
                let Some(said) = said.take() else { continue };
                let found = if block.kind == "text" { said.stdout } else { said.stderr };
                let wanted = reader.place.masked(&block.text);
                let lines = |text: &str| text.lines().map(minutes).collect::<Vec<_>>();
                let (wanted, lines) = (lines(&wanted), lines(&found));
                let (wanted, lines): (Vec<&str>, Vec<&str>) =
                    (wanted.iter().map(String::as_str).collect(), lines.iter().map(String::as_str).collect());
                assert!(says(&wanted, &lines), "README.md:{} is not what is printed:\n{found}", block.line);
            }
            _ => said = None,
        }
    }
    assert!(ran > 10, "only {ran} blocks were run");

    // What the commands left behind.
    let committed = reader.place.tree("expedite/target/shop-gitops.git", "main");
    for folder in ["applications/shop/", "servings/shop/", "records/shop/"] {
        assert!(committed.iter().any(|(path, _)| path.starts_with(folder)), "nothing in {folder}");
    }
    assert!(reader.folder.join("out/applications/shop").is_dir(), "render wrote nothing");
    let applied = |n: usize| -> serde_json::Value {
        serde_yaml::from_str(&reader.place.read(&format!("reader/applied-{n}.yaml"))).unwrap()
    };
    assert_eq!(applied(0)["metadata"]["labels"]["argocd.argoproj.io/secret-type"], "repo-creds");
    assert_eq!(applied(1)["kind"], "Application");
    let workflow = reader.place.read("shop-gitops/.github/workflows/expedite.yml");
    part_is("workflow", &format!("```yaml\n{workflow}```\n"));
    part_is("secret", &format!("```yaml\n{}```\n", uncommented(&reader.place.read("reader/applied-0.yaml"))));
    let steps: serde_json::Value = serde_yaml::from_str(&workflow).unwrap();
    assert!(steps["jobs"]["run"]["steps"].as_array().unwrap().len() > 3);
}

fn uncommented(yaml: &str) -> String {
    yaml.lines().filter(|line| !line.starts_with('#')).map(|line| format!("{line}\n")).collect()
}

/// Without the minute: a command more in the README moves those behind it.
fn minutes(line: &str) -> String {
    let day = "2026-02-10T12:";
    let masked = line.split(day).enumerate().map(|(n, part)| match (n, part.get(2..)) {
        (0, _) | (_, None) => part.to_owned(),
        (_, Some(rest)) => format!("{day}MM{rest}"),
    });
    masked.collect::<String>().trim_end().to_owned()
}

#[test]
fn quotes_are_matched_by_line_and_by_character() {
    let matches = |pattern: &str, text: &str| {
        says(&pattern.lines().collect::<Vec<_>>(), &text.lines().collect::<Vec<_>>())
    };
    assert!(matches("a\nb", "a\nb") && matches("…\nb", "a\nb") && matches("a…c", "abbc") && matches("…", ""));
    assert!(matches("…\nb\n…", "a\nb\nc\nd") && matches("a…b…c", "a1b2c"));
    assert!(
        !matches("a", "a\nb") && !matches("…\nb", "a\nb\nc") && !matches("a…c", "abcd") && !matches("b", "a")
    );
}

#[test]
fn no_block_goes_unchecked() {
    for block in blocks(&readme()) {
        assert!(
            matches!(block.kind.as_str(), "sh" | "sh cluster" | "text" | "text stderr" | "yaml" | "bash"),
            "README.md:{}: nothing checks a block of kind {:?}",
            block.line,
            block.kind
        );
    }
}

/// What needs a cluster is held against the command line; `tests/it/cluster` runs it against a real API server.
#[test]
fn commands_for_a_cluster_are_commands() {
    let mut seen = 0;
    for block in blocks(&readme()).into_iter().filter(|b| b.kind == "sh cluster") {
        for line in block.text.lines() {
            if let Some(folder) = line.strip_prefix("kubectl apply --server-side -k ") {
                assert!(package().join(folder).join("kustomization.yaml").is_file(), "{line}");
                continue;
            }
            let words = line.split(" | ").next().unwrap().split_whitespace();
            Cli::try_parse_from(words).unwrap_or_else(|e| panic!("README.md:{}: {line}\n{e}", block.line));
            seen += 1;
        }
    }
    assert!(seen > 0);
}

/// Running it would run this test again.
#[test]
fn the_test_command_is_the_script_that_ci_runs() {
    let commands: Vec<Block> = blocks(&readme()).into_iter().filter(|b| b.kind == "bash").collect();
    let [block] = &commands[..] else { panic!("{commands:?}") };
    let script = block.text.trim();
    assert!(package().join(script).is_file());
    let ci = fs::read_to_string(package().join(".ci/run")).unwrap();
    assert!(ci.ends_with(&format!("exec {script}\n")), "{ci}");
    let workflow = fs::read_to_string(package().join(".github/workflows/ci.yml")).unwrap();
    assert!(workflow.contains("- run: .ci/run\n"));
}

// --- Tables ---

fn table(header: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let mut text = format!("| {} |\n|{}\n", header.join(" | "), "---|".repeat(header.len()));
    for row in rows {
        let cells: Vec<String> = row.iter().map(|cell| cell.replace('|', "\\|")).collect();
        let _ = writeln!(text, "| {} |", cells.join(" | "));
    }
    text
}

#[test]
fn the_verbs_are_those_of_the_command_line() {
    let command = Cli::command();
    let rows = command.get_subcommands().map(|verb| {
        let mut usage = vec![verb.get_name().to_owned()];
        for argument in verb.get_positionals() {
            let name = argument.get_value_names().unwrap()[0].to_string();
            usage.push(if argument.is_required_set() { name } else { format!("[{name}]") });
        }
        let about = verb.get_about().unwrap().to_string().split_whitespace().collect::<Vec<_>>().join(" ");
        vec![format!("`{}`", usage.join(" ")), about]
    });
    part_is("verbs", &table(&["Verb", "Does"], rows));
}

#[test]
fn every_verb_has_an_example() {
    let all = readme();
    let run: String = blocks(&all).into_iter().filter(|b| b.kind.starts_with("sh")).map(|b| b.text).collect();
    for verb in Cli::command().get_subcommands() {
        let name = verb.get_name();
        let shown = run.lines().any(|line| line.contains(&format!("expedite {name}")));
        assert!(shown || name == "run", "no block of the README runs expedite {name}");
    }
}

#[test]
fn the_gates_are_those_of_the_code() {
    let rows: Vec<String> = part(&readme(), "gates").lines().skip(2).map(str::to_owned).collect();
    assert_eq!(rows.len(), GATES.len(), "a row for each gate");
    for (number, (row, gate)) in rows.iter().zip(&GATES).enumerate() {
        assert!(row.starts_with(&format!("| {} | {} | ", number + 1, gate.name)), "{row}");
    }
}

#[test]
fn the_exit_statuses_are_those_of_the_code() {
    let help = Cli::command().get_after_help().unwrap().to_string();
    let rows: Vec<Vec<String>> = help
        .lines()
        .skip(1)
        .map(|line| line.trim().split_once(' ').unwrap())
        .map(|(status, meaning)| vec![status.to_owned(), meaning.trim().to_owned()])
        .collect();
    let listed: Vec<u8> = rows.iter().map(|row| row[0].parse().unwrap()).collect();
    let all = [
        FailureKind::Input,
        FailureKind::Unread,
        FailureKind::Repository,
        FailureKind::Internal,
        FailureKind::SaysNo,
        FailureKind::Guard,
        FailureKind::Moved,
        FailureKind::Usage,
    ];
    let mut known: Vec<u8> =
        all.iter().map(|kind| kind.exit_status()).chain([0, expedite::error::CHANGES]).collect();
    known.sort_unstable();
    known.dedup();
    assert_eq!(listed, known, "the help lists the statuses that there are");
    part_is("statuses", &table(&["Status", "Means"], rows));
}

#[test]
fn the_variables_are_those_of_the_command_line() {
    let command = Cli::command();
    let arguments = command.get_arguments().chain(command.get_subcommands().flat_map(|v| v.get_arguments()));
    let mut rows: Vec<Vec<String>> = arguments
        .filter_map(|argument| {
            let variable = argument.get_env()?.to_str().unwrap();
            let flag = argument.get_long().unwrap();
            let help = argument.get_help().unwrap().to_string();
            let help =
                help.split(" [default").next().unwrap().split_whitespace().collect::<Vec<_>>().join(" ");
            Some(vec![format!("`{variable}`"), format!("`--{flag}`"), help])
        })
        .collect();
    rows.sort();
    rows.dedup();
    part_is("environment", &table(&["Variable", "Flag", "Means"], rows));
}

// --- Settings ---

fn settings(text: &str) -> Result<Settings, Vec<String>> {
    Settings::parse(text.as_bytes(), "README.md", Path::new("/x"), Some(Path::new("/home/ann")))
        .map_err(|failures| failures.iter().map(|f| format!("{f} ({})", f.hints.join("; "))).collect())
}

#[test]
fn the_settings_are_all_there_are_and_the_defaults_are_right() {
    let block = part(&readme(), "settings");
    let text = block.strip_prefix("```yaml\n").unwrap().strip_suffix("```\n").unwrap();
    let shown = settings(text).unwrap_or_else(|wrong| panic!("{wrong:#?}"));
    let default = Settings::default();
    assert_eq!(shown.repository.branch, default.repository.branch);
    assert_eq!(shown.repository.create, default.repository.create);
    assert_eq!(shown.argocd, default.argocd);
    assert_eq!(shown.limits.max_tries, default.limits.max_tries);
    assert_eq!(shown.evidence.rescan, default.evidence.rescan);
    assert_eq!(shown.evidence.layer_media_types, default.evidence.layer_media_types);
    let registry = &shown.registries["registry.shop.example:5000"];
    assert!(!registry.plain_http && registry.concurrency.unwrap().get() == 16);

    // What is known in each place is what a wrong key is told, and every bit of it is shown.
    let tree: serde_json::Value = serde_yaml::from_str(text).unwrap();
    let wrong = settings(
        "qqqqqqqqqqqq: 1\nrepository: {qqqqqqqqqqqq: 1}\nsigning: {qqqqqqqqqqqq: 1}\nargocd: {qqqqqqqqqqqq: 1}\nlimits: \
         {qqqqqqqqqqqq: 1}\nevidence: {qqqqqqqqqqqq: 1}\nsources: [{path: a, qqqqqqqqqqqq: 1}, {cluster: {qqqqqqqqqqqq: 1}}]\nregistries: {r.example: \
         {qqqqqqqqqqqq: 1}}\n",
    )
    .unwrap_err();
    assert_eq!(wrong.len(), 9, "{wrong:#?}");
    let mut missing = Vec::new();
    for told in &wrong {
        let (_, place) = told.split_once(": ").unwrap();
        let place = place
            .split(": is not a known setting")
            .next()
            .unwrap()
            .trim_end_matches("qqqqqqqqqqqq")
            .trim_end_matches('.');
        let shown: Vec<&str> = match place {
            "" => keys(&tree),
            "sources[1].cluster" => keys(&tree["sources"][1]["cluster"]),
            "sources[0]" => tree["sources"].as_array().unwrap().iter().flat_map(keys).collect(),
            "registries[\"r.example\"]" => {
                tree["registries"].as_object().unwrap().values().flat_map(keys).collect()
            }
            section => keys(&tree[section]),
        };
        let (_, known) = told.split_once("known fields: ").unwrap_or_else(|| panic!("{told}"));
        for key in known.trim_end_matches(')').split(", ") {
            if !shown.contains(&key) {
                missing.push(format!("{place}.{key}"));
            }
        }
    }
    assert_eq!(missing, Vec::<String>::new(), "settings that the README does not show");
}

fn keys(value: &serde_json::Value) -> Vec<&str> {
    value.as_object().unwrap_or_else(|| panic!("{value}")).keys().map(String::as_str).collect()
}
