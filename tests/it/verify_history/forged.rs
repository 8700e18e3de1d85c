//! Every way to make the past say what did not happen: with push rights alone, and with the job's key, too.

use super::Found;
use crate::support::past::{Past, SHOP, STAGING};
use expedite::attest::record::{PromotionPredicate, Record};
use expedite::attest::sign::sign_record;
use expedite::model::id::{Artifact, Digest};
use serde_json::{Value, json};

fn application(past: &Past, namespace: &str) -> String {
    let paths = past.git(&["ls-tree", "-r", "--name-only", "main", &format!("applications/{namespace}/")]);
    paths.lines().next().unwrap().to_owned()
}

/// The record that the newest entry of an Order's history names.
fn record(past: &Past, order: &str) -> String {
    let serving = past.serving(order);
    let digest = serving["status"]["history"][0]["promotionRecord"].as_str().unwrap();
    format!("records/{order}/{}.json", &digest["sha256:".len()..])
}

#[test]
fn a_hand_edit_of_a_pin_stays_a_finding_after_it_was_restored() {
    let past = Past::lived();
    let path = application(&past, "shop");
    past.person();
    let evil = format!("sha256:{}", "ab".repeat(32));
    past.place.edit(&format!("person/{path}"), &past.digest, &evil);
    past.push(&[]);
    let edit = past.head();
    let found = Found::of(&past, &[]);
    found.finds("application-without-promotion", &path);
    let finding = &found.json["findings"][0];
    assert_eq!(finding["digest"], evil.as_str());
    assert_eq!((&finding["namespace"], &finding["name"]), (&json!("shop"), &json!("podinfo")));
    // The table names commit, Order and digest, too.
    let table = past.verb(&["verify-history"]);
    let line = table.stdout.lines().find(|line| line.contains(&path)).unwrap().to_owned();
    for part in [&edit[..12], SHOP, &evil[7..19]] {
        assert!(line.contains(part), "no {part} in {line}");
    }
    past.run("12:00");
    let restored = Found::of(&past, &[]);
    restored.finds("application-without-promotion", &path);
    assert_eq!(restored.codes("findings").len(), 1, "restoring it is none: {:#}", restored.json);
    Found::of(&past, &[&format!("{edit}..")]).clean();
}

#[test]
fn content_comes_by_other_ways_than_the_revision() {
    for (from, to) in [
        ("path: \".\"", "path: evil"),
        ("    repoURL: oci://r.example/shop/podinfo", "    repoURL: oci://r.example/evil/podinfo"),
        ("spec:\n", "operation: {sync: {revision: main}}\nspec:\n"),
        (
            "spec:\n",
            "spec:\n  sources: [{repoURL: \"https://git.example/x.git\", path: ., targetRevision: main}]\n",
        ),
        ("    path: \".\"", "    kustomize: {images: [\"x=evil\"]}\n    path: \".\""),
    ] {
        let past = Past::lived();
        let path = application(&past, "shop");
        past.person();
        past.place.edit(&format!("person/{path}"), from, to);
        past.push(&[]);
        Found::of(&past, &["main^!"]).finds("application-without-promotion", &path);
    }
    // Labels that were taken off first do not hide it; nor is a new file under our labels nobody's.
    let past = Past::lived();
    let path = application(&past, "shop");
    past.person();
    let file = format!("person/{path}");
    let text = past.place.read(&file);
    let bare: String =
        text.lines().filter(|l| !l.contains("delivery.kokumi.dev/")).map(|l| format!("{l}\n")).collect();
    past.place.write(&file, bare.replace("path: \".\"", "path: evil"));
    past.place.write(
        "person/applications/shop/second.yaml",
        text.replace(&past.digest, &format!("sha256:{}", "cd".repeat(32))),
    );
    past.push(&[]);
    let found = Found::of(&past, &["main^!"]);
    found.finds("application-without-promotion", &path).finds("application-without-promotion", "second.yaml");
}

#[test]
fn records_are_neither_edited_nor_removed_nor_added_by_hand() {
    let past = Past::lived();
    let path = record(&past, SHOP);
    past.person();
    let text = past.place.read(&format!("person/{path}"));
    past.place.write(&format!("person/{path}"), format!("{text} "));
    past.push(&[]);
    Found::of(&past, &["main^!"]).finds("record-edited", "does not hash to its name");

    let past = Past::lived();
    past.person();
    std::fs::remove_file(past.place.path(&format!("person/{path}"))).unwrap();
    past.push(&[]);
    Found::of(&past, &["main^!"]).finds("record-removed", "still names it");

    let past = Past::lived();
    past.person();
    let stray = format!("{text}\n");
    let name = Digest::hash_bytes(stray.as_bytes()).format_hex();
    past.place.write(&format!("person/records/{SHOP}/{name}.json"), stray);
    past.push(&[]);
    Found::of(&past, &["main^!"]).finds("record-stray", "does not name it");
}

/// Changes the Serving of production by hand, and says what is found in that commit.
fn edited(from: &str, to: &str) -> Found {
    let past = Past::lived();
    past.person();
    past.place.edit(&format!("person/servings/{SHOP}.yaml"), from, to);
    past.push(&[]);
    Found::of(&past, &["main^!"])
}

#[test]
fn history_is_written_by_runs_alone() {
    edited("2026-02-10T11:30:00Z", "2026-02-10T11:31:00Z").finds("history-removed", "is gone");
    edited("environment: production", "environment: dev").finds("history-edited", "environment");
    edited("repository: r.example/shop/podinfo", "repository: r.example/evil/podinfo")
        .finds("deployed-without-promotion", "no promotion of this commit says so");
    let healthy = "promotedTime: \"2026-02-10T11:30:00Z\"\n    firstHealthyTime: \"2026-02-10T11:31:00Z\"";
    edited("promotedTime: \"2026-02-10T11:30:00Z\"", healthy).finds("no-record", "healthy without a record");
}

#[test]
fn a_revert_is_a_deployment_without_a_promotion() {
    let past = Past::lived();
    past.person();
    past.place.git(&["-C", "person", "revert", "--no-edit", "HEAD"]);
    past.push(&["--allow-empty"]);
    let found = Found::of(&past, &[]);
    found.finds("history-removed", "is gone");
}

/// The last promotion, made again by whoever has the job's key: `change` edits what the record says, and, where
/// the Serving has to agree, its text.
fn with_the_key(change: impl Fn(&mut Value), edit: impl Fn(String) -> String) -> Found {
    let past = Past::lived();
    Found::of(&past, &["main^!"]).clean();
    let path = record(&past, SHOP);
    past.person();
    let file = format!("person/{path}");
    let bundle: Value = serde_json::from_str(&past.place.read(&file)).unwrap();
    let payload = bundle["dsseEnvelope"]["payload"].as_str().unwrap();
    let payload = base64::Engine::decode(&base64::engine::general_purpose::STANDARD, payload).unwrap();
    let mut statement: Value = serde_json::from_slice(&payload).unwrap();
    change(&mut statement["predicate"]);
    let body: PromotionPredicate = serde_json::from_value(statement["predicate"].clone()).unwrap();
    let artifact = Artifact::parse(&format!("oci://r.example/{SHOP}@{}", past.digest)).unwrap();
    let signed = sign_record(&Record::Promotion(body), &artifact, &past.job()).unwrap();
    std::fs::remove_file(past.place.path(&file)).unwrap();
    let name = signed.digest.format_hex();
    past.place.write(&format!("person/records/{SHOP}/{name}.json"), signed.bundle);
    let serving = format!("person/servings/{SHOP}.yaml");
    let old = path.rsplit('/').next().unwrap().strip_suffix(".json").unwrap().to_owned();
    let text = past.place.read(&serving);
    assert!(text.contains(&old));
    past.place.write(&serving, edit(text.replace(&old, &name)));
    past.push(&["--amend"]);
    Found::of(&past, &["main^!"])
}

fn gate<'v>(predicate: &'v mut Value, name: &str) -> &'v mut Value {
    predicate["gates"].as_array_mut().unwrap().iter_mut().find(|gate| gate["name"] == name).unwrap()
}

#[test]
fn the_key_alone_does_not_make_gates_pass() {
    let same = |text: String| text;
    with_the_key(|_| {}, same).clean();
    with_the_key(|p| gate(p, "Upstream")["parameters"]["upstream"][0]["soak"] = json!("3h"), same)
        .finds("gate", "gate Upstream of podinfo-1: according to the records, the soak of 3h");
    with_the_key(|p| gate(p, "Upstream")["parameters"]["upstream"][0]["order"] = json!("shop/other"), same)
        .finds("gate", "no record proves that shop/other ran this change");
    with_the_key(|p| gate(p, "Approvals")["parameters"]["policy"]["requiredApprovals"] = json!(2), same)
        .finds("gate", "weaker policy");
    with_the_key(
        |p| {
            let freeze = json!({"from": "2026-02-10T11:00:00Z", "to": "2026-02-10T12:00:00Z", "reason": "x"});
            gate(p, "Window")["parameters"]["freezes"] = json!([freeze]);
        },
        same,
    )
    .finds("gate", "gate Window of podinfo-1: at 2026-02-10T11:30:00Z it was closed");
    with_the_key(|p| gate(p, "Window")["parameters"]["windows"][0]["days"] = json!(["Sun"]), same)
        .finds("gate", "it was closed");
    with_the_key(
        |p| {
            gate(p, "Checks")["parameters"] = json!({"checks": [{
        "name": "scan", "vulnerabilities": {"maxCritical": 0, "maxAge": "24h"}}]})
        },
        same,
    )
    .finds("gate", "gate Checks of podinfo-1: scan:");
    with_the_key(|p| gate(p, "Evidence")["evidence"] = json!([]), same).finds("gate", "names no artifact");
    let other = Digest::hash_bytes(b"other").to_string();
    with_the_key(|p| gate(p, "Evidence")["evidence"][1]["digest"] = json!(other), same)
        .finds("gate", "not in the registry any more");
    with_the_key(|p| gate(p, "Approvals")["evidence"] = json!([]), same).finds("gate", "names no seal");
    with_the_key(|p| gate(p, "Opt-in")["verdict"] = json!("Waiting"), same)
        .finds("gate", "only Passed allows");
    with_the_key(|p| p["gates"].as_array_mut().unwrap().truncate(3), same)
        .finds("gate", "gate Approvals of podinfo-1: the record does not mention this gate");
}

#[test]
fn a_record_says_what_the_serving_says() {
    let same = |text: String| text;
    for (what, change) in [
        ("Environment", (|p: &mut Value| p["environment"] = json!("dev")) as fn(&mut Value)),
        ("time", |p| p["promotedTime"] = json!("2026-02-10T11:29:00Z")),
        ("Order", |p| p["order"]["name"] = json!("other")),
        ("Preparation", |p| p["preparation"]["name"] = json!("podinfo-2")),
        ("requester", |p| p["requestedBy"]["name"] = json!("Eve <eve@x>")),
        ("base digest", |p| p["baseDigest"] = json!(format!("sha256:{}", "00".repeat(32)))),
    ] {
        with_the_key(change, same).finds("record-differs", &format!("names another {what} than"));
    }
    // Both moved together: an hour earlier, when neither soak nor vote were there.
    let earlier = "2026-02-10T10:00:00Z";
    let found = with_the_key(
        |p| p["promotedTime"] = json!(earlier),
        |text| text.replace("2026-02-10T11:30:00Z", earlier),
    );
    found.finds("gate", "gate Upstream").finds("gate", "it was sealed at 2026-02-10T11:20:00Z");
}

#[test]
fn a_record_of_another_artifact_is_none_of_this_one() {
    let past = Past::lived();
    let staging = record(&past, STAGING);
    past.person();
    let name = staging.rsplit('/').next().unwrap().strip_suffix(".json").unwrap().to_owned();
    let shop = record(&past, SHOP);
    let old = shop.rsplit('/').next().unwrap().strip_suffix(".json").unwrap().to_owned();
    // Staging's own record, put into production's place.
    std::fs::remove_file(past.place.path(&format!("person/{shop}"))).unwrap();
    let text = past.place.read(&format!("person/{staging}"));
    past.place.write(&format!("person/records/{SHOP}/{name}.json"), text);
    past.place.edit(&format!("person/servings/{SHOP}.yaml"), &old, &name);
    past.push(&["--amend"]);
    Found::of(&past, &["main^!"]).finds("record-differs", "names another Order");
}
