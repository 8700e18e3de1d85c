//! The Ready gate: what is allowed where, and what is known to be bad.

use super::*;

/// What gate Ready says of `p1`, after `change`.
fn says(change: impl Fn(&mut Sim)) -> String {
    let mut sim = Sim::shop();
    sim.order(SHOP, &with(""));
    sim.preparation(SHOP, "p1", 1);
    change(&mut sim);
    let plan = sim.run();
    let verdict = gate(&plan, SHOP, GateName::Ready);
    assert_eq!(verdict.is_passed(), sim.deployed(SHOP).is_some(), "{}", verdict.message);
    match verdict.is_passed() {
        true => "passed".into(),
        false => verdict.message.clone(),
    }
}

fn environment(more: &str) -> String {
    format!("{{clusters: [eu-1, us-1], {more}}}")
}

#[test]
fn an_environment_names_the_namespaces_that_may_deploy_there() {
    let only = |list: &str| {
        says(|sim| sim.environment("production", &environment(&format!("allowedNamespaces: [{list}]"))))
    };
    assert_eq!(only("shop"), "passed");
    assert_eq!(only(""), "passed", "an empty list names nobody in particular");
    assert_eq!(
        only("shop-extra, sho"),
        "namespace shop may not deploy to Environment production; its allowedNamespaces: shop-extra, sho"
    );
}

#[test]
fn a_target_namespace_is_its_own_or_one_that_is_admitted_and_never_argo_cds() {
    let target = |namespace: &str, allowed: &str| {
        says(|sim| {
            sim.environment("production", &environment(&format!("allowedTargetNamespaces: [{allowed}]")));
            let artifact = format!("signed: true}}, targetNamespace: \"{namespace}\", source: {{");
            sim.preparation_with(SHOP, "p1", 1, &artifact);
        })
    };
    assert_eq!(target("shop", ""), "passed");
    assert_eq!(target("web", "web"), "passed");
    assert_eq!(
        target("web", "web2"),
        "target namespace web is not the Preparation's own (shop), and Environment production does not admit it; its allowedTargetNamespaces: web2"
    );
    assert_eq!(target("argocd", "argocd"), "target namespace argocd is Argo CD's own", "whoever admits it");
}

#[test]
fn a_registry_must_be_one_of_the_kitchens() {
    let from = |list: &str| says(|sim| sim.kitchen(&format!("{{registries: [{list}]}}")));
    for good in ["r.example", "\"r.*\"", "\"oci://r.example/shop/*\"", "other.example, r.example"] {
        assert_eq!(from(good), "passed", "{good}");
    }
    for bad in ["r.example.evil.com", "\"*.r.example\"", "r.example/other"] {
        let wanted = bad.trim_matches('"');
        assert_eq!(
            from(bad),
            format!(
                "repository oci://r.example/shop/podinfo is not in any of the Kitchen's registries: {wanted}"
            )
            .replace("oci://", "")
        );
    }
}

#[test]
fn a_known_bad_digest_is_refused_by_itself_and_by_what_it_was_rendered_from() {
    let reject = |name: &str, more: &str| {
        says(|sim| {
            let artifact = format!("signed: true}}, source: {{baseDigest: \"{}\"", digest("base"));
            sim.preparation_with(SHOP, "p1", 1, &artifact);
            sim.kitchen(&format!("{{reject: [{{digest: \"{}\"{more}}}]}}", digest(name)));
        })
    };
    let said = |name: &str, why: &str| format!("{} is on the Kitchen's reject list: {why}", digest(name));
    assert_eq!(reject("p1", ", reason: loses orders"), said("p1", "loses orders"));
    assert_eq!(reject("base", ""), said("base", "no reason given"));
    assert_eq!(reject("p1", ", environments: [\"prod*\"]"), said("p1", "no reason given"));
    assert_eq!(reject("p1", ", environments: [dev]"), "passed", "somewhere else");
    assert_eq!(reject("p2", ""), "passed");
}

/// The Preparation says nothing of its base; its signed provenance does.
#[test]
fn a_known_bad_base_is_found_in_the_provenance_too() {
    let run = |rejected: &str, environments: &str| {
        let mut sim = Sim::shop();
        sim.order(SHOP, &with(""));
        sim.preparation(SHOP, "p1", 1);
        sim.dependencies.insert(digest("base"));
        let reject = format!("{{digest: \"{}\", reason: old libc{environments}}}", digest(rejected));
        sim.kitchen(&format!("{{reject: [{reject}]}}"));
        let plan = sim.run();
        let verdict = gate(&plan, SHOP, GateName::Evidence).clone();
        (sim.deployed(SHOP).is_some(), verdict)
    };
    let (deployed, verdict) = run("base", "");
    assert_eq!((deployed, verdict.outcome), (false, GateOutcome::Failed));
    assert_eq!(
        verdict.message,
        format!(
            "its signed provenance lists a rejected digest among what it was made from: {} is on the Kitchen's reject list: old libc",
            digest("base")
        )
    );
    assert!(run("base", ", environments: [dev]").0, "somewhere else");
    assert!(run("other", "").0);
}

/// What is deployed stays; it spreads no further.
#[test]
fn a_cluster_that_joins_does_not_get_what_is_known_to_be_bad_by_now() {
    let mut sim = Sim::shop();
    sim.order(SHOP, &with(""));
    sim.preparation(SHOP, "p1", 1);
    sim.run();
    sim.kitchen(&format!("{{reject: [{{digest: \"{}\", reason: loses orders}}]}}", digest("p1")));
    sim.cluster("ap-1", "https://ap-1.example");
    sim.environment("production", "{clusters: [ap-1, eu-1, us-1]}");
    for _ in 0..2 {
        sim.run();
        assert_eq!(sim.pinned(SHOP).len(), 2);
        let joining = &sim.serving(SHOP).unwrap().status.clusters[0];
        assert_eq!(joining.reason, "NotAdmitted");
        assert!(joining.message.contains("loses orders"), "{}", joining.message);
    }
    sim.kitchen("{}");
    sim.run();
    assert_eq!(sim.pinned(SHOP).len(), 3);
}

#[test]
fn all_that_is_wrong_is_said_at_once() {
    let said = says(|sim| {
        sim.environment("production", "{clusters: [eu-1, gone], allowedNamespaces: [other]}");
        sim.preparation_with(SHOP, "p1", 1, "signed: false");
        sim.kitchen("{registries: [elsewhere.example]}");
    });
    for part in [
        "does not say artifact.signed: true",
        "namespace shop may not deploy",
        "Cluster gone, which Environment production names, does not exist",
        "is not in any of the Kitchen's registries",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
}

#[test]
fn an_environment_without_a_cluster_deploys_nothing() {
    let none = says(|sim| sim.environment("production", "{clusters: []}"));
    assert_eq!(none, "Environment production has no Cluster");
}
