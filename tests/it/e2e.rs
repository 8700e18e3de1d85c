//! The main job, end to end: the real binary on real files, image layouts, registries and repositories.

mod contained;
mod damage;
mod evidence;
mod field;
mod files;
mod identity;
mod inputs;
mod intent;
mod kept;
mod pins;
mod records;
mod propose;
mod removal;
mod rename;
mod secrets;
mod shop;
mod takeover;

use crate::support::harness::{Place, Said};
use crate::support::{harness, layout};
use std::collections::BTreeMap;

/// The clock of these tests: after everything in the shop.
const AT: &str = "2026-02-10T12:00:00Z";

/// `expedite run` on the shop, at [`AT`].
fn run(place: &Place) -> Said {
    place.expedite(&["run", "--config", "expedite.yaml", "--at", AT])
}

/// A verb on the shop, at [`AT`].
fn verb(place: &Place, arguments: &[&str]) -> Said {
    place.expedite(&[arguments, &["--config", "expedite.yaml", "--at", AT]].concat())
}

/// The commit at the head of the shop's repository; empty where there is none.
fn head(place: &Place) -> String {
    let mut command = place.command("git");
    command.args(["-C", "shop.git", "rev-parse", "-q", "--verify", "main"]);
    String::from_utf8(command.output().unwrap().stdout).unwrap()
}

/// The files of the shop's repository.
fn tree(place: &Place) -> BTreeMap<String, String> {
    place.tree("shop.git", "main").into_iter().collect()
}

/// The Serving of an Order, as it is committed.
#[track_caller]
fn serving(place: &Place, order: &str) -> serde_json::Value {
    let path = format!("servings/{order}.yaml");
    let tree = tree(place);
    let text = tree.get(&path).unwrap_or_else(|| panic!("no {path} among {:?}", tree.keys()));
    serde_yaml::from_str(text).unwrap()
}

/// Status and reason of a condition of a Serving.
#[track_caller]
fn condition(serving: &serde_json::Value, kind: &str) -> (String, String) {
    let conditions = serving["status"]["conditions"].as_array().unwrap();
    let found = conditions.iter().find(|c| c["type"] == kind);
    let found = found.unwrap_or_else(|| panic!("no condition {kind} in {conditions:#?}"));
    (found["status"].as_str().unwrap().to_owned(), found["reason"].as_str().unwrap().to_owned())
}

/// The Applications of an Order, as they are committed.
fn applications(place: &Place, order: &str) -> Vec<serde_json::Value> {
    let (namespace, name) = order.split_once('/').unwrap();
    let all = tree(place).into_iter().filter(|(path, _)| path.starts_with("applications/"));
    all.map(|(_, text)| serde_yaml::from_str::<serde_json::Value>(&text).unwrap())
        .filter(|a| {
            let labels = &a["metadata"]["labels"];
            labels["delivery.kokumi.dev/serving"] == name
                && labels["delivery.kokumi.dev/serving-namespace"] == namespace
        })
        .collect()
}

/// The digests that an Order's Applications are pinned to, each once.
fn pinned(place: &Place, order: &str) -> Vec<String> {
    let applications = applications(place, order);
    let revisions =
        applications.iter().map(|a| a["spec"]["source"]["targetRevision"].as_str().unwrap().to_owned());
    let mut digests: Vec<String> = revisions.collect();
    digests.sort();
    digests.dedup();
    digests
}

/// The digest of an artifact of the shop.
fn artifact(place: &Place, order: &str, version: &str) -> String {
    layout::repository(&place.path("registry"), order).tagged(version)
}

/// The row of an Order in a kubectl-like table, cut into its columns (two blanks or more apart).
#[track_caller]
fn row(table: &str, namespace: &str, name: &str) -> BTreeMap<String, String> {
    let header =
        table.lines().find(|line| line.contains("READY")).unwrap_or_else(|| panic!("no table:\n{table}"));
    let starts: Vec<usize> = header
        .char_indices()
        .filter(|(i, c)| *c != ' ' && (*i == 0 || header[..*i].ends_with("  ")))
        .map(|(i, _)| i)
        .collect();
    let cells = |line: &str| -> Vec<String> {
        let chars: Vec<char> = line.chars().collect();
        let end = |i: usize| starts.get(i + 1).copied().unwrap_or(chars.len()).min(chars.len());
        let cell = |i: usize| {
            chars.get(starts[i].min(chars.len())..end(i)).unwrap_or(&[]).iter().collect::<String>()
        };
        (0..starts.len()).map(|i| cell(i).trim().to_owned()).collect()
    };
    let names = cells(header);
    let rows = table.lines().skip_while(|line| *line != header).skip(1).map(cells);
    let rows = rows.map(|cells| names.iter().cloned().zip(cells).collect::<BTreeMap<String, String>>());
    let of = |row: &BTreeMap<String, String>| {
        row.get("NAMESPACE").is_none_or(|n| n == namespace) && row.get("NAME").is_some_and(|n| n == name)
    };
    rows.into_iter().find(of).unwrap_or_else(|| panic!("no row {namespace}/{name}:\n{table}"))
}
