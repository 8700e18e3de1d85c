//! Which part of the past is walked, from where, and what is said of it.

use super::Found;
use crate::support::past::{Past, SHOP, STAGING, at};

#[test]
fn a_past_that_runs_made_is_confirmed() {
    let past = Past::lived();
    Found::of(&past, &[]).clean().counts(2, 1);
    let table = past.verb(&["verify-history"]);
    let said = table.ok();
    assert!(said.contains("2 promotions and 1 deployment judged again: 0 findings, 0 not read"), "{said}");
    // A Degraded end, a recovery, and a rollback in the night are lives like others.
    past.observe(&past.digest, "Degraded", &at("12:00"), &at("12:05"));
    past.run("12:05");
    past.observe(&past.digest, "Healthy", &at("12:30"), &at("12:35"));
    past.run("12:35");
    Found::of(&past, &[]).clean().counts(2, 3);
    // Git and the registry alone: the inputs may have changed altogether.
    for kind in ["order", "environment", "cluster"] {
        for entry in std::fs::read_dir(past.place.path("objects")).unwrap() {
            let path = entry.unwrap().path();
            if path.file_name().unwrap().to_str().unwrap().starts_with(kind) {
                std::fs::remove_file(path).unwrap();
            }
        }
    }
    Found::of(&past, &[]).clean().counts(2, 3);
    past.git(&["fsck", "--strict"]);
}

#[test]
fn ranges_are_those_of_git_log() {
    let past = Past::lived();
    let commits = past.git(&["rev-list", "--reverse", "main"]);
    let commits: Vec<&str> = commits.lines().collect();
    assert_eq!(commits.len(), 4);
    past.git(&["tag", "first", commits[0]]);
    for (range, promotions, deployments) in [
        ("first", 1, 0),
        ("first..", 1, 1),
        ("first..main", 1, 1),
        ("main~1..main", 1, 0),
        ("main^!", 1, 0),
        ("main~2^!", 0, 1),
        (&commits[0][..10], 1, 0),
        ("main..main", 0, 0),
    ] {
        let found = Found::of(&past, &[range]);
        found.clean().counts(promotions, deployments);
        assert_eq!(found.json["range"], range);
    }
    for (range, status) in [("a...b", 64), ("..main", 64), ("..", 64), ("nothing", 1), ("main~9..", 1)] {
        let said = past.verb(&["verify-history", range]);
        assert_eq!(said.status, Some(status), "{range}: {}", said.transcript("verify-history"));
        assert!(
            said.stderr.contains(&format!("{:?}", range.trim_end_matches(".."))) || status == 64,
            "{}",
            said.stderr
        );
    }
}

#[test]
fn a_shallow_clone_says_what_to_fetch() {
    let past = Past::lived();
    let url = format!("file://{}", past.place.path("gitops.git").display());
    past.place.git(&["clone", "-q", "--depth", "2", &url, "shallow"]);
    let shallow =
        |arguments: &[&str]| past.verb(&[&["verify-history", "--repo", "./shallow"], arguments].concat());
    for range in [&[][..], &["HEAD"], &["HEAD~1"], &["HEAD~3.."]] {
        // Without a range the repository that it follows is read, which is whole.
        let said = shallow(range);
        if range.is_empty() {
            said.ok();
            continue;
        }
        said.exits(1);
        assert!(said.stderr.contains("git fetch --unshallow"), "{range:?}: {}", said.stderr);
    }
    shallow(&["HEAD~1.."]).ok();
    past.place.git(&["-C", "shallow", "fetch", "-q", "--unshallow"]);
    shallow(&["HEAD"]).ok();
    // A clone that follows nothing any more has only what it has.
    past.place.git(&["clone", "-q", "--depth", "2", &url, "alone"]);
    // Removing the remote alone leaves its HEAD pointing nowhere, which git itself calls damage.
    past.place.git(&["-C", "alone", "remote", "set-head", "origin", "--delete"]);
    past.place.git(&["-C", "alone", "remote", "remove", "origin"]);
    let said = past.verb(&["verify-history", "--repo", "./alone"]);
    said.exits(1);
    assert!(said.stderr.contains("git fetch --unshallow"), "{}", said.stderr);
}

#[test]
fn a_registry_that_is_down_is_no_finding_and_offline_is_said() {
    let past = Past::lived();
    // Nobody listens there: the port was free a moment ago.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    past.place.edit(
        "expedite.yaml",
        "{layout: ./registry}",
        &format!("{{plainHttp: true, mirror: \"http://127.0.0.1:{port}\"}}"),
    );
    let found = Found::of(&past, &[]);
    assert_eq!(found.said.status, Some(1), "{:#}", found.json);
    assert_eq!(found.codes("findings").len(), 0, "{:#}", found.json);
    assert!(found.codes("unread").iter().all(|code| *code == "evidence-unread"));
    assert!(found.messages("unread").contains("RegistryUnreachable"), "{:#}", found.json);
    assert!(found.said.stderr.contains("could not be read"), "{}", found.said.stderr);
    // By git alone: records, seals, soak, windows.
    let offline = Found::of(&past, &["--offline"]);
    offline.clean().counts(2, 1);
    assert_eq!(offline.json["offline"], true);
    let table = past.verb(&["verify-history", "--offline"]);
    assert!(table.ok().contains("offline: judged by git alone"), "{}", table.stdout);
}

#[test]
fn a_key_that_is_not_trusted_any_more_proves_nothing() {
    let past = Past::lived();
    past.kitchen(false);
    Found::of(&past, &[]).finds("record-invalid", "its promotion record");
    // No key for records at all is a mistake of the Kitchen, and no verdict on anybody's past.
    let file = "objects/kitchen--default.yaml";
    let text = past.place.read(file);
    past.place.write(file, text.replace(r#"["approvals","records"]"#, r#"["approvals"]"#));
    let said = past.verb(&["verify-history"]);
    said.exits(1);
    assert!(
        said.stderr.contains("trusts no key for records") && said.stderr.contains("hint:"),
        "{}",
        said.stderr
    );
}

#[test]
fn a_repository_without_records_is_told_apart_from_one_that_lost_them() {
    let past = Past::new();
    let first = past.verb(&["run", "--no-records", "--at", &at("09:00")]);
    first.ok();
    Found::of(&past, &[]).finds("no-record", "promoted without a record");
    assert!(past.verb(&["verify-history"]).stderr.contains("--no-records"));
    let found = Found::of(&past, &["--no-records"]);
    found.clean();
    assert_eq!((found.json["unrecorded"].as_u64(), found.json["noRecords"].as_bool()), (Some(1), Some(true)));
    let table = past.verb(&["verify-history", "--no-records"]);
    assert!(
        table.ok().contains("keeps no signed records: 1 promotion is trusted from history"),
        "{}",
        table.stdout
    );
}

#[test]
fn evidence_that_left_the_registry_is_a_finding_of_the_promotions_that_rest_on_it() {
    let past = Past::lived();
    let layout = past.layout(STAGING);
    let entries = layout.entries();
    let without = |what: &str| -> Vec<serde_json::Value> {
        let is = |entry: &serde_json::Value| {
            let manifest = layout.manifest(entry["digest"].as_str().unwrap());
            manifest["annotations"]["dev.sigstore.bundle.predicateType"] == what
        };
        entries.iter().filter(|entry| !is(entry)).cloned().collect()
    };
    for (what, gate) in [
        ("https://in-toto.io/attestation/test-result/v0.1", "gate Checks"),
        ("https://slsa.dev/provenance/v1", "gate Evidence"),
        ("https://sigstore.dev/cosign/sign/v1", "gate Evidence"),
    ] {
        let kept = without(what);
        assert!(kept.len() < entries.len(), "{what} is not listed");
        layout.set_entries(&kept);
        let found = Found::of(&past, &[]);
        found.finds("gate", gate);
        assert!(
            found.json["findings"].as_array().unwrap().iter().all(|f| f["namespace"] == "staging"),
            "{:#}",
            found.json
        );
    }
    layout.set_entries(&entries);
    // Newer evidence that says something else changes nothing about what was promoted then.
    past.attest(&past.digest, 12, "2026-02-10T20:00:00Z");
    Found::of(&past, &[]).clean();
}

#[test]
fn many_promotions_are_each_confirmed_and_what_decided_them_is_counted() {
    let past = Past::new();
    past.run("08:00");
    let renderer = crate::support::forge::Renderer::new(1);
    let mut promotions = 1;
    for n in 2..=20 {
        let digest = renderer.prepare(&past.place.path("registry"), STAGING, &format!("hello {n}"));
        renderer.prepare(&past.place.path("registry"), SHOP, &format!("hello {n}"));
        past.attest(&digest, 90, "2026-02-09T09:00:00Z");
        // The provenance of each has the same build time: an Automatic Order would not take it for newer.
        past.object(
            "Order",
            Some("staging"),
            "podinfo",
            serde_json::json!({"environment": "dev", "promotion": {"mode": "Manual"}}),
        );
        past.prepare(&format!("podinfo-{n}"), &digest, &format!("2026-02-{n:02}T00:00:00Z"));
        let clock = at(&format!("08:{n:02}"));
        past.verb(&["promote", STAGING, &format!("podinfo-{n}"), "--at", &clock]).ok();
        past.run(&format!("08:{n:02}"));
        promotions += 1;
    }
    let status = past.serving(STAGING)["status"].clone();
    assert_eq!(status["history"].as_array().unwrap().len(), 16, "older entries left it");
    let found = Found::of(&past, &[]);
    found.clean().counts(promotions, 0);
    let commits: u64 = past.git(&["rev-list", "--count", "main"]).trim().parse().unwrap();
    assert_eq!(found.json["commits"], commits);
    past.git(&["fsck", "--strict"]);
}
