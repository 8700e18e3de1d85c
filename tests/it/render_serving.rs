//! A Serving's file: written once, edited in place ever after.

use crate::support::{pins, pyyaml};
use expedite::files::FileChange;
use expedite::model::id::{Digest, OrderRef, PreparationName};
use expedite::model::meta::Condition;
use expedite::model::plan::{ServingPlan, ServingState};
use expedite::model::reason::Ended;
use expedite::model::serving::{HISTORY, HistoryEntry, Requested, RequestedBy, ServingStatus};
use expedite::model::time::Time;
use expedite::model::world::{GitOps, ServingFile};
use expedite::render::{RenderedFiles, render_files, serving};
use proptest::prelude::*;
use proptest::test_runner::Config;
use serde_json::Value;

fn name(text: &str) -> PreparationName {
    PreparationName::parse(text).unwrap()
}

fn time(text: &str) -> Time {
    Time::parse(text).unwrap()
}

fn ready(message: &str) -> Condition {
    Condition {
        kind: "Ready".into(),
        status: "Unknown".into(),
        reason: "Pending".into(),
        message: message.into(),
        last_transition_time: Some(time("2026-11-30T00:00:00Z")),
        observed_generation: None,
    }
}

fn entry(preparation: &str, promoted: &str) -> HistoryEntry {
    HistoryEntry {
        preparation_name: name(preparation),
        digest: Digest::hash_bytes(preparation.as_bytes()),
        base_digest: None,
        environment: None,
        promoted_time: time(promoted),
        requested_by: Some(RequestedBy {
            name: "Ann <ann@shop.example>".into(),
            commit: None,
            signed_by: "unsigned".into(),
        }),
        first_healthy_time: None,
        ended_time: None,
        ended_reason: None,
        healthy_until: None,
        approval_record: None,
        promotion_record: None,
        deployment_record: None,
    }
}

fn state(preparation: Option<&str>, status: ServingStatus) -> ServingState {
    ServingState { preparation_name: preparation.map(name), created: time("2026-11-30T00:00:00Z"), status }
}

fn write(order: &str, existing: Option<ServingFile>, state: ServingState) -> RenderedFiles {
    let mut gitops = GitOps::default();
    if let Some(file) = existing {
        gitops.servings.insert(OrderRef::parse(order).unwrap(), file);
    }
    let rows = vec![pins::row(order, ServingPlan::Write(Box::new(state)), Vec::new())];
    render_files(&pins::plan(rows), &gitops, "argocd")
}

fn text(rendered: &RenderedFiles) -> String {
    assert!(rendered.failures.is_empty(), "{:?}", rendered.failures);
    match rendered.changes.values().next() {
        Some(FileChange::Write(bytes)) => String::from_utf8(bytes.clone()).unwrap(),
        other => panic!("{other:?}"),
    }
}

/// The file after `change` of the typed status of `existing`.
fn updated(existing: &str, change: impl FnOnce(&mut ServingState)) -> Result<String, String> {
    let file = pins::serving_file("shop/podinfo", existing);
    let serving = file.serving.as_ref().map_err(ToString::to_string)?;
    let mut next =
        state(serving.spec.preparation_name.as_ref().map(PreparationName::as_str), serving.status.clone());
    change(&mut next);
    serving::update_serving(&file, &next).map_err(|f| f.to_string())
}

#[test]
fn a_new_one_byte_for_byte() {
    let status = ServingStatus {
        target_preparation_name: Some(name("podinfo-1")),
        conditions: vec![ready("Evidence: no signature by a key that the Kitchen trusts")],
        history: vec![entry("podinfo-1", "2026-11-30T00:00:00Z")],
        ..ServingStatus::default()
    };
    let rendered = write("shop/podinfo", None, state(Some("podinfo-1"), status));
    assert_eq!(rendered.changes.keys().next().unwrap(), "servings/shop/podinfo.yaml");
    assert_eq!(
        text(&rendered),
        "\
# Intent and state of one Order. Written by expedite: change spec.preparationName with
# `expedite promote`, `withdraw` or `rollback`; status is replaced by every run.
apiVersion: delivery.kokumi.dev/v1alpha1
kind: Serving
metadata:
  name: podinfo
  namespace: shop
  creationTimestamp: \"2026-11-30T00:00:00Z\"
spec:
  orderName: podinfo
  preparationName: podinfo-1
status:
  targetPreparationName: podinfo-1
  conditions:
  - type: Ready
    status: Unknown
    reason: Pending
    message: \"Evidence: no signature by a key that the Kitchen trusts\"
    lastTransitionTime: \"2026-11-30T00:00:00Z\"
  history:
  - preparationName: podinfo-1
    digest: sha256:4e38f0cb3a8d5cf39c81a4df4bc5a3fd77b6b0e7ef5b44e6d1f9f4d9c5e1d1a1
    promotedTime: \"2026-11-30T00:00:00Z\"
    requestedBy:
      name: Ann <ann@shop.example>
      signedBy: unsigned
"
        .replace(
            "sha256:4e38f0cb3a8d5cf39c81a4df4bc5a3fd77b6b0e7ef5b44e6d1f9f4d9c5e1d1a1",
            &Digest::hash_bytes(b"podinfo-1").to_string()
        )
    );
    let nothing_yet = text(&write("shop/podinfo", None, state(None, ServingStatus::default())));
    assert!(nothing_yet.ends_with("  orderName: podinfo\n  preparationName: \"\"\n"), "{nothing_yet}");
}

#[test]
fn b02_names_that_yaml_1_1_takes_for_booleans() {
    let status = ServingStatus { target_preparation_name: Some(name("y")), ..ServingStatus::default() };
    let texts = vec![text(&write("on/no", None, state(Some("y"), status)))];
    let Some(read) = pyyaml::load(&texts) else { return };
    assert_eq!(read[0]["metadata"]["name"], "no");
    assert_eq!(read[0]["metadata"]["namespace"], "on");
    assert_eq!(read[0]["metadata"]["creationTimestamp"], "2026-11-30T00:00:00Z");
    assert_eq!(read[0]["spec"]["orderName"], "no");
    assert_eq!(read[0]["spec"]["preparationName"], "y");
    assert_eq!(read[0]["status"]["targetPreparationName"], "y");
}

#[test]
fn b21_the_same_state_writes_nothing() {
    let status = ServingStatus { conditions: vec![ready("x")], ..ServingStatus::default() };
    let first = text(&write("shop/podinfo", None, state(Some("podinfo-1"), status.clone())));
    let again = write(
        "shop/podinfo",
        Some(pins::serving_file("shop/podinfo", &first)),
        state(Some("podinfo-1"), status),
    );
    assert!(again.changes.is_empty() && again.failures.is_empty());
}

/// As a person and an older build left it: comments, their own order and style, members nobody knows,
/// a history entry without `environment`, fractions of seconds, bare timestamps.
const OLD: &str = "\
# who to ask: ann   (do not remove)
kind: Serving
apiVersion: delivery.kokumi.dev/v1alpha1

metadata:
    namespace: 'shop'
    name:   podinfo      # the shop window
    labels: {team: \"on\"}
    creationTimestamp: 2026-01-01T00:00:00Z
spec:
    preparationName: podinfo-1   # pinned by hand
    orderName: podinfo
    preparationPolicy: Manual
status:
    # written by 0.0.9
    targetPreparationName: podinfo-1
    shadow: {a: 1.10, b: [x,  y]}
    observedPreparationName: podinfo-1
    history:
      - preparationName: podinfo-1
        digest: DIGEST1
        promotedTime: 2026-08-01T10:00:00.123456Z
        weight: 1.10
      # before that
      - {preparationName: podinfo-0, digest: 'DIGEST0', promotedTime: '2026-07-01T10:00:00.5Z', endedReason: Superseded, note: \"kept\"}
    conditions:
      - type: Ready
        status: \"True\"
        reason: Deployed
        message: ''
        colour: green
# the end
";

fn old() -> String {
    OLD.replace("DIGEST1", &Digest::hash_bytes(b"podinfo-1").to_string())
        .replace("DIGEST0", &Digest::hash_bytes(b"podinfo-0").to_string())
}

#[test]
fn b57_what_an_older_build_wrote_stays_as_it_was() {
    let old = old();
    assert_eq!(updated(&old, |_| {}).unwrap(), old, "nothing changed, nothing is written");
    let new = updated(&old, |next| {
        next.preparation_name = Some(name("podinfo-2"));
        next.status.target_preparation_name = Some(name("podinfo-2"));
        next.status.observed_preparation_name = Some(name("podinfo-2"));
        next.status.deployed_digest = Some(Digest::hash_bytes(b"podinfo-2"));
        next.status.conditions[0].reason = "Deploying".into();
        next.status.history[0].ended_reason = Some(Ended::Superseded);
        next.status.history.insert(0, entry("podinfo-2", "2026-11-30T00:00:00Z"));
    })
    .unwrap();
    let (digest0, digest1, digest2) = (
        Digest::hash_bytes(b"podinfo-0"),
        Digest::hash_bytes(b"podinfo-1"),
        Digest::hash_bytes(b"podinfo-2"),
    );
    let wanted = format!("\
# who to ask: ann   (do not remove)
kind: Serving
apiVersion: delivery.kokumi.dev/v1alpha1

metadata:
    namespace: 'shop'
    name:   podinfo      # the shop window
    labels: {{team: \"on\"}}
    creationTimestamp: 2026-01-01T00:00:00Z
spec:
    preparationName: podinfo-2   # pinned by hand
    orderName: podinfo
    preparationPolicy: Manual
status:
    targetPreparationName: podinfo-2
    shadow: {{a: 1.10, b: [x,  y]}}
    observedPreparationName: podinfo-2
    deployedDigest: {digest2}
    history:
      - preparationName: podinfo-2
        digest: {digest2}
        promotedTime: \"2026-11-30T00:00:00Z\"
        requestedBy:
          name: Ann <ann@shop.example>
          signedBy: unsigned
      - preparationName: podinfo-1
        digest: {digest1}
        promotedTime: 2026-08-01T10:00:00.123456Z
        endedReason: Superseded
        weight: 1.10
      # before that
      - {{preparationName: podinfo-0, digest: '{digest0}', promotedTime: '2026-07-01T10:00:00.5Z', endedReason: Superseded, note: \"kept\"}}
    conditions:
      - type: Ready
        status: \"True\"
        reason: Deploying
        message: ''
        colour: green
# the end
");
    assert_eq!(new, wanted);
}

#[test]
fn b57_sixteen_entries_stay_sixteen_and_the_older_ones_byte_for_byte() {
    let mut status = ServingStatus::default();
    for n in (0..HISTORY).rev() {
        let mut entry = entry(&format!("podinfo-{n}"), &format!("2026-10-{:02}T00:00:00Z", n + 1));
        if n + 1 < HISTORY {
            entry.ended_reason = Some(Ended::Superseded);
        }
        status.history.push(entry);
    }
    let first = text(&write("shop/podinfo", None, state(Some("podinfo-15"), status)));
    let first =
        first.replace("T00:00:00Z\"\n    requestedBy", "T00:00:00.25Z\"\n    by: nobody\n    requestedBy");
    let second = updated(&first, |next| {
        next.status.history.pop();
        next.status.history.insert(0, entry("podinfo-16", "2026-11-30T00:00:00Z"));
        next.status.history[1].ended_reason = Some(Ended::Superseded);
    })
    .unwrap();
    let entries = |text: &str| -> Vec<String> {
        let (_, history) = text.split_once("  history:\n").unwrap();
        history.split("  - ").skip(1).map(ToOwned::to_owned).collect()
    };
    let (before, after) = (entries(&first), entries(&second));
    assert_eq!((before.len(), after.len()), (HISTORY, HISTORY));
    assert!(after[0].contains("podinfo-16"));
    assert_eq!(after[2..], before[1..HISTORY - 1]);
    assert_eq!(after[1], format!("{}    endedReason: Superseded\n", before[0]));
    assert_eq!(after[15].matches("by: nobody").count(), 1);
}

#[test]
fn b57_a_damaged_one_is_reported_and_kept() {
    let damaged = old().replace("promotedTime: 2026-08-01T10:00:00.123456Z", "promotedTime: yesterday");
    let rendered = write(
        "shop/podinfo",
        Some(pins::serving_file("shop/podinfo", &damaged)),
        state(Some("podinfo-2"), ServingStatus::default()),
    );
    assert!(rendered.changes.is_empty());
    assert_eq!(rendered.failures.len(), 1);
}

/// A status as any run could leave it: few names, so that entries meet their older selves.
fn status() -> impl Strategy<Value = ServingStatus> {
    let entry = ("[ab]", 0..3_i64, any::<bool>(), any::<bool>()).prop_map(|(letter, day, healthy, ended)| {
        let mut entry = entry(&format!("podinfo-{letter}"), &format!("2026-10-0{}T00:00:00Z", day + 1));
        entry.first_healthy_time = healthy.then(|| time("2026-11-01T00:00:00Z"));
        entry.ended_reason = ended.then_some(Ended::Degraded);
        entry
    });
    let condition = (proptest::sample::select(vec!["Ready", "Approved", "Verified"]), "[a:# \\n'\"-]{0,8}")
        .prop_map(|(kind, message)| Condition { kind: kind.into(), ..ready(&message) });
    (
        proptest::collection::vec(entry, 0..4),
        proptest::collection::vec(condition, 0..3),
        proptest::option::of("[ab]"),
        proptest::option::of("[ab]"),
    )
        .prop_map(|(history, conditions, target, deployed)| ServingStatus {
            target_preparation_name: target.as_deref().map(name),
            observed_preparation_name: deployed.as_deref().map(name),
            deployed_digest: deployed.map(|d| Digest::hash_bytes(d.as_bytes())),
            conditions,
            history,
            ..ServingStatus::default()
        })
}

proptest! {
    #![proptest_config(Config { cases: 300, failure_persistence: None, ..Config::default() })]

    #[test]
    fn whatever_happens_the_status_is_what_was_decided(steps in proptest::collection::vec(status(), 1..8), old_style in any::<bool>()) {
        let mut text = if old_style {
            old()
        } else {
            text(&write("shop/podinfo", None, state(Some("podinfo-1"), ServingStatus::default())))
        };
        let before = text.split("status:\n").next().unwrap().to_owned();
        for step in steps {
            let next = updated(&text, |next| next.status = step.clone()).map_err(TestCaseError::fail)?;
            let file = pins::serving_file("shop/podinfo", &next);
            prop_assert_eq!(&file.serving.unwrap().status, &step);
            prop_assert!(next.starts_with(&before));
            if old_style {
                prop_assert!(next.contains("shadow: {a: 1.10, b: [x,  y]}\n"), "{}", next);
            }
            prop_assert_eq!(&updated(&next, |_| {}).map_err(TestCaseError::fail)?, &next);
            text = next;
        }
    }
}

#[test]
fn line_ends_and_a_missing_last_newline() {
    let crlf = old().replace('\n', "\r\n");
    let new = updated(&crlf, |next| next.status.target_preparation_name = Some(name("podinfo-2"))).unwrap();
    assert_eq!(new.matches('\n').count(), new.matches("\r\n").count());
    assert!(new.contains("targetPreparationName: podinfo-2\r\n"));
    let bare = "apiVersion: delivery.kokumi.dev/v1alpha1\nkind: Serving\nmetadata: {name: podinfo, namespace: shop}\nspec:\n  orderName: podinfo\n  preparationName: podinfo-1";
    let new = updated(bare, |next| next.status.target_preparation_name = Some(name("podinfo-1"))).unwrap();
    assert_eq!(new, format!("{bare}\nstatus:\n  targetPreparationName: podinfo-1\n"));
    for empty in ["status:\n", "status: {}  # nothing\n", "status: null\n"] {
        let new = updated(&format!("{bare}\n{empty}"), |next| {
            next.status.target_preparation_name = Some(name("podinfo-1"))
        });
        assert_eq!(new.unwrap(), format!("{bare}\nstatus:\n  targetPreparationName: podinfo-1\n"), "{empty}");
    }
}

#[test]
fn intent_is_edited_and_nothing_else() {
    let requested = |verb: &str| Requested {
        name: "Ann: <ann>".into(),
        time: time("2026-11-30T00:00:00Z"),
        verb: verb.into(),
        preparation_name: None,
    };
    let path = "servings/shop/podinfo.yaml";
    let old = old();
    let new = serving::edit_intent(&old, path, Some(&name("podinfo-2")), &requested("promote")).unwrap();
    let wanted = old.replace("preparationName: podinfo-1   # pinned", "preparationName: podinfo-2   # pinned").replace(
        "    preparationPolicy: Manual\n",
        "    preparationPolicy: Manual\n    requested:\n      name: \"Ann: <ann>\"\n      time: \"2026-11-30T00:00:00Z\"\n      verb: promote\n",
    );
    assert_eq!(new, wanted);
    let again = serving::edit_intent(&new, path, Some(&name("1e3")), &requested("rollback")).unwrap();
    let wanted = wanted
        .replace("podinfo-2   # pinned", "\"1e3\"   # pinned")
        .replace("verb: promote", "verb: rollback");
    assert_eq!(again, wanted);
    for (written, edited) in [
        ("preparationName: 'a' # x", "preparationName: b # x"),
        ("preparationName: \"a\"", "preparationName: b"),
        ("preparationName:", "preparationName: b"),
        ("preparationName: # x", "preparationName: b # x"),
        ("preparationName: \"\"", "preparationName: b"),
        ("preparationName: ~", "preparationName: b"),
        ("\"preparationName\" : a", "\"preparationName\" : b"),
    ] {
        let text = format!("spec:\n  orderName: podinfo\n  {written}\n");
        let new = serving::edit_intent(&text, path, Some(&name("b")), &requested("promote"))
            .unwrap_or_else(|f| panic!("{written}: {f}"));
        assert!(
            new.starts_with(&format!("spec:\n  orderName: podinfo\n  {edited}\n  requested:\n")),
            "{new}"
        );
    }
    let missing = serving::edit_intent(
        "spec:\n  orderName: podinfo # x\n",
        path,
        Some(&name("b")),
        &requested("promote"),
    );
    assert!(
        missing.unwrap().starts_with("spec:\n  orderName: podinfo # x\n  preparationName: b\n  requested:\n")
    );
    let cleared = serving::edit_intent(
        "spec:\n  orderName: a\n  preparationName: b\n",
        path,
        None,
        &requested("withdraw"),
    );
    assert!(cleared.unwrap().starts_with("spec:\n  orderName: a\n  preparationName: \"\"\n"));
}

#[test]
fn what_cannot_be_edited_in_place_is_refused_by_line() {
    let requested = Requested {
        name: "Ann".into(),
        time: time("2026-11-30T00:00:00Z"),
        verb: "promote".into(),
        preparation_name: Some(name("b")),
    };
    for (text, line, why) in [
        ("spec: {orderName: a, preparationName: b}\n", 1, "block style"),
        ("{spec: {orderName: a, preparationName: b}}\n", 1, "block style"),
        ("x: &x b\nspec:\n  orderName: a\n  preparationName: *x\n", 1, "anchor"),
        ("spec:\n  orderName: a\n  preparationName: !!str b\n", 3, "tag"),
        ("spec:\n\torderName: a\n", 2, ""),
        ("spec:\n  orderName: a\n  preparationName: >-\n    b\n", 4, "line of its key"),
        ("spec:\n  orderName: a\n  preparationName:\n    b\n", 4, "line of its key"),
        ("spec:\n  orderName: a\n  preparationName: [b]\n", 3, "a string"),
        ("spec:\n  orderName: a\n  ? preparationName\n  : b\n", 3, "alone on its line"),
        ("spec:\n  orderName: a\n---\nspec: {}\n", 3, "second document"),
        ("kind: Serving\n", 1, "no spec"),
        ("spec:\n  x: a\n", 2, "no orderName"),
    ] {
        let failure = serving::edit_intent(text, "s.yaml", Some(&name("c")), &requested).expect_err(text);
        assert_eq!(failure.code, "cannot-edit");
        assert!(failure.to_string().starts_with(&format!("s.yaml:{line}: ")), "{text:?}: {failure}");
        assert!(failure.cause.contains(why), "{text:?}: {failure}");
    }
}

#[test]
fn a_status_is_written_whatever_style_the_spec_has() {
    let text = "metadata: {name: podinfo, namespace: shop}\nspec: {orderName: podinfo, preparationName: podinfo-1}\n";
    let new = updated(text, |next| next.status.target_preparation_name = Some(name("podinfo-1"))).unwrap();
    assert_eq!(new, format!("{text}status:\n  targetPreparationName: podinfo-1\n"));
    let none = text.replace(", preparationName: podinfo-1", "");
    let new = updated(&none, |next| next.status.target_preparation_name = Some(name("podinfo-1"))).unwrap();
    assert_eq!(new, format!("{none}status:\n  targetPreparationName: podinfo-1\n"));
    let refused = updated(text, |next| next.preparation_name = Some(name("podinfo-2"))).unwrap_err();
    assert!(refused.contains("block style"), "{refused}");
}

#[test]
fn a_template_of_the_user_is_held_to_its_order() {
    let with = |from: &str, to: &str| {
        assert!(serving::BUILT_IN.contains(from));
        let gitops =
            GitOps { serving_template: Some(serving::BUILT_IN.replace(from, to)), ..GitOps::default() };
        let state = state(Some("podinfo-1"), ServingStatus::default());
        render_files(
            &pins::plan(vec![pins::row("shop/podinfo", ServingPlan::Write(Box::new(state)), Vec::new())]),
            &gitops,
            "argocd",
        )
    };
    let labelled =
        text(&with("metadata:\n", "metadata:\n  labels: {environment: \"{{ environment.name }}\"}\n"));
    let value: Value = serde_yaml::from_str(&labelled).unwrap();
    assert_eq!(value["metadata"]["labels"]["environment"], "production");
    for (from, to, line, field) in [
        ("orderName: {{ order.name }}", "orderName: other", 10, "spec.orderName"),
        ("preparationName: {{ serving.preparationName }}", "preparationName: x", 11, "spec.preparationName"),
        ("spec:\n", "status: {}\nspec:\n", 9, "status"),
        ("metadata:\n", "metadata:\n  labels: {a: 1}\n", 6, "metadata.labels"),
        ("  orderName", "  more: 1\n  orderName", 10, "spec.more"),
        ("{{ order.name }}", "{{ cluster.nam }}", 10, "cluster.nam"),
    ] {
        let rendered = with(from, to);
        assert!(rendered.changes.is_empty());
        let failure = &rendered.failures[0].1;
        let wanted = format!("templates/serving.yaml:{line}: Order shop/podinfo: {field}: ");
        assert!(failure.to_string().starts_with(&wanted), "{failure}");
    }
}

#[test]
fn a_serving_that_goes() {
    let mut gitops = GitOps::default();
    let file = pins::serving_file("shop/podinfo", &old());
    gitops.servings.insert(OrderRef::parse("shop/podinfo").unwrap(), file);
    let remove = |order: &str| {
        render_files(&pins::plan(vec![pins::row(order, ServingPlan::Remove, Vec::new())]), &gitops, "argocd")
    };
    assert_eq!(
        remove("shop/podinfo").changes.into_iter().collect::<Vec<_>>(),
        [("servings/shop/podinfo.yaml".to_owned(), FileChange::Delete)]
    );
    assert!(remove("shop/other").changes.is_empty());
}
