//! Every claim in every outcome that it can have.

use super::bench::{self, APPROVAL, Bench, PROMOTION, SCAN, TEST_RESULT};
use super::{claim, json, snapshot};
use serde_json::{Value, json};

/// The result of `verify -o json`, which exits so.
#[track_caller]
fn result(bench: &Bench, more: &[&str], status: i32) -> Value {
    let said = bench.verify(&[&["-o", "json"], more].concat());
    said.exits(status);
    json(&said)
}

#[track_caller]
fn says(result: &Value, name: &str, outcome: &str, part: &str) {
    let claim = claim(result, name);
    assert_eq!(claim["outcome"], outcome, "{claim:#}");
    assert!(claim["message"].as_str().unwrap().contains(part), "{part}: {claim:#}");
}

#[test]
fn an_order_with_everything_is_proven_claim_by_claim() {
    let bench = Bench::whole();
    let said = bench.verify(&[]);
    said.ok();
    snapshot("everything", "expedite verify r.example/shop/podinfo@sha256:… --order shop/podinfo", &said);
    let said = bench.verify(&["-o", "wide"]);
    snapshot(
        "everything-wide",
        "expedite verify r.example/shop/podinfo@sha256:… --order shop/podinfo -o wide",
        &said,
    );
    let said = bench.verify(&["-o", "json"]);
    snapshot(
        "everything-json",
        "expedite verify r.example/shop/podinfo@sha256:… --order shop/podinfo -o json",
        &said,
    );
}

#[test]
fn what_is_demanded_and_not_there_is_missing() {
    let bench = Bench::bare();
    let said = bench.verify(&[]);
    said.exits(5);
    snapshot("lacking", "expedite verify r.example/shop/podinfo@sha256:… --order shop/podinfo", &said);
    let found = result(&bench, &[], 5);
    for name in ["approvals", "tests", "scan"] {
        says(&found, name, "Missing", "");
        assert_eq!(claim(&found, name)["required"], true);
    }
    for name in ["promotion", "deployment"] {
        assert_eq!(claim(&found, name)["required"], false);
    }
}

#[test]
fn the_newest_seal_decides_and_no_weaker_policy_than_todays() {
    let bench = Bench::bare();
    bench.attach(APPROVAL, bench::seal("Approved", "2026-02-09T10:00:00Z", 1));
    says(
        &result(&bench, &[], 5),
        "approvals",
        "Invalid",
        "sealed under a policy of 1 from platform; today's policy requires 2",
    );
    bench.attach(APPROVAL, bench::seal("Approved", "2026-02-09T10:30:00Z", 2));
    says(
        &result(&bench, &[], 5),
        "approvals",
        "Proven",
        "approved by ann, bob, sealed at 2026-02-09T10:30:00Z",
    );
    bench.attach(APPROVAL, bench::seal("ChangesRequested", "2026-02-09T11:00:00Z", 2));
    says(&result(&bench, &[], 5), "approvals", "Invalid", "says ChangesRequested");
    bench.attach(APPROVAL, bench::seal("Approved", "2026-02-11T00:00:00Z", 2));
    says(&result(&bench, &[], 5), "approvals", "Invalid", "ahead of this clock");
}

#[test]
fn a_seal_is_of_one_preparation() {
    let bench = Bench::whole();
    // Another Preparation with the same content: each has its own votes.
    bench.preparation("podinfo-2");
    let said = bench.verify(&[]);
    said.exits(64);
    assert!(said.stderr.contains("podinfo-1, podinfo-2 have this digest"), "{}", said.stderr);
    assert!(said.stderr.contains("--preparation"), "{}", said.stderr);
    says(&result(&bench, &["--preparation", "podinfo-1"], 0), "approvals", "Proven", "");
    says(&result(&bench, &["--preparation", "podinfo-2"], 5), "approvals", "Invalid", "not for podinfo-2");
    // One that is nowhere any more can be named all the same; its seal is signed.
    std::fs::remove_file(bench.place.path("objects/podinfo-1.yaml")).unwrap();
    std::fs::remove_file(bench.place.path("objects/podinfo-2.yaml")).unwrap();
    says(&result(&bench, &[], 5), "approvals", "Missing", "name it with --preparation");
    says(&result(&bench, &["--preparation", "podinfo-1"], 0), "approvals", "Proven", "");
}

#[test]
fn a_preparation_of_another_digest_is_a_contradiction() {
    let bench = Bench::whole();
    let other = bench.renderer.prepare(&bench.place.path("registry"), "shop/podinfo", "other");
    let said = bench.place.expedite(&[
        "verify",
        &format!("{}@{other}", bench::REPOSITORY),
        "--order",
        "shop/podinfo",
        "--preparation",
        "podinfo-1",
    ]);
    said.exits(5);
    assert!(said.stderr.contains("Preparation shop/podinfo-1: its artifact is "), "{}", said.stderr);
}

#[test]
fn a_check_that_does_not_pass_is_invalid() {
    let bench = Bench::whole();
    bench.attach(TEST_RESULT, json!({"result": "FAILED", "finishedOn": "2026-02-09T09:00:00Z"}));
    says(&result(&bench, &[], 5), "tests", "Invalid", "\"FAILED\"");
    bench.attach(SCAN, bench::scan(&["CVE-1"], "2026-02-09T09:00:00Z"));
    says(&result(&bench, &[], 5), "scan", "Invalid", "1 critical, at most 0 allowed");
    // As of a later day the good ones are too old.
    let bench = Bench::whole();
    let said = bench.place.expedite(&[
        "verify",
        &bench.reference(),
        "--order",
        "shop/podinfo",
        "--at",
        "2026-03-20T00:00:00Z",
        "-o",
        "json",
    ]);
    said.exits(5);
    let found = json(&said);
    says(&found, "tests", "Invalid", "a newer one is needed");
    says(&found, "scan", "Invalid", "a newer scan is needed");
}

#[test]
fn roles_are_not_lent() {
    let bench = Bench::whole();
    // The renderer vouches for nothing but signature and provenance.
    let bare = Bench::bare();
    bare.renderer.attest(
        &bare.layout,
        &bare.digest,
        APPROVAL,
        bench::seal("Approved", "2026-02-09T10:00:00Z", 2),
    );
    says(&result(&bare, &[], 5), "approvals", "Invalid", "not trusted for approvals");
    // Both keys exchanged: nothing counts.
    bench.kitchen(&bench.job.public_key(), &bench.renderer.public_key());
    let found = result(&bench, &[], 5);
    for name in ["signature", "provenance", "approvals", "tests", "scan", "promotion", "deployment"] {
        says(&found, name, "Invalid", "");
    }
}

#[test]
fn a_record_of_another_order_is_no_record_of_this_one() {
    let bench = Bench::bare();
    bench.attach(PROMOTION, bench::promotion("shop-dev", "podinfo"));
    let found = result(&bench, &[], 5);
    says(&found, "promotion", "Invalid", "it is of Order shop-dev/podinfo");
    says(&found, "deployment", "Missing", "");
}

#[test]
fn the_kitchens_reject_list_holds_here_too() {
    let bench = Bench::whole();
    let kitchen = bench.place.read("objects/kitchen.yaml");
    let reject = format!("  reject: [{{digest: \"{}\", reason: eats baskets}}]\n", bench.digest);
    bench.place.write("objects/kitchen.yaml", format!("{kitchen}{reject}"));
    says(&result(&bench, &[], 5), "admission", "Invalid", "eats baskets");
    bench.place.write("objects/kitchen.yaml", format!("{kitchen}  registries: [other.example]\n"));
    says(&result(&bench, &[], 5), "admission", "Invalid", "not in any of the Kitchen's registries");
    bench.place.write("objects/kitchen.yaml", format!("{kitchen}  registries: [r.example]\n"));
    let found = result(&bench, &[], 0);
    assert!(found["claims"].as_array().unwrap().iter().all(|c| c["name"] != "admission"));
}

#[test]
fn a_trust_that_cannot_be_used_proves_nothing() {
    let bench = Bench::whole();
    let kitchen = bench.place.read("objects/kitchen.yaml");
    let identity = "    identities: [{name: ci, issuer: \"https://idp.example\", subject: a}]\n";
    bench.place.write("objects/kitchen.yaml", format!("{kitchen}{identity}"));
    says(&result(&bench, &[], 5), "signature", "Missing", "keyless identities (ci)");
    // Without any Kitchen nobody is trusted.
    std::fs::remove_file(bench.place.path("objects/kitchen.yaml")).unwrap();
    let found = result(&bench, &[], 5);
    assert_eq!(found["trust"]["origin"], Value::Null);
    says(&found, "signature", "Missing", "trusts no key for signature");
    says(&found, "artifact", "Proven", "");
}

#[test]
fn an_input_that_cannot_be_read_is_an_error_whatever_is_proven() {
    let bench = Bench::whole();
    // It may be the policy.
    bench.place.write("objects/more.yaml", "kind: Environment\nmetadata: {name: [\n");
    let said = bench.verify(&["--save", "a.tar"]);
    said.exits(1);
    assert!(said.stderr.contains("objects/more.yaml:"), "{}", said.stderr);
    assert!(!bench.place.path("a.tar").exists());
}

#[test]
fn foreign_text_cannot_steer_the_terminal() {
    let bench = Bench::bare();
    let mut seal = bench::seal("Approved", "2026-02-09T10:00:00Z", 2);
    seal["submissions"][0]["approver"]["username"] = "ann\n\u{1b}[2Jroot".into();
    bench.attach(APPROVAL, seal);
    let said = bench.verify(&[]);
    assert!(!said.stdout.contains('\u{1b}'), "{}", said.stdout);
    assert!(said.stdout.contains("ann \\u{1b}[2Jroot"), "{}", said.stdout);
}

#[test]
fn a_seal_that_the_serving_remembers_is_not_absent() {
    let bench = Bench::bare();
    says(&result(&bench, &[], 5), "approvals", "Missing", "");
    bench.place.git(&["init", "-q", "--bare", "gitops.git"]);
    bench.place.git(&["clone", "-q", "gitops.git", "checkout"]);
    bench.place.write(
        "checkout/servings/shop/podinfo.yaml",
        "apiVersion: delivery.kokumi.dev/v1alpha1\nkind: Serving\nmetadata: {name: podinfo, namespace: shop}\nspec: {orderName: podinfo, preparationName: podinfo-1}\nstatus:\n  approval: {preparationName: podinfo-1, sealedTime: \"2026-02-09T10:00:00Z\"}\n",
    );
    bench.place.git(&["-C", "checkout", "add", "."]);
    bench.place.git(&["-C", "checkout", "commit", "-qm", "sealed"]);
    bench.place.git(&["-C", "checkout", "push", "-q", "origin", "HEAD:main"]);
    let found = result(&bench, &[], 5);
    says(&found, "approvals", "Unread", "the votes were sealed at 2026-02-09T10:00:00Z");
    // It is there again.
    bench.attach(APPROVAL, bench::seal("Approved", "2026-02-09T10:00:00Z", 2));
    says(&result(&bench, &[], 5), "approvals", "Proven", "");
}
