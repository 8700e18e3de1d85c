//! Finding what refers to an artifact.

use super::*;
use crate::support::hostile::{Answer as Wire, Fault, Hostile};
use oci_registry::UnreadReason;
use oci_registry::{EvidencePlace, Reference, Referrers};
use serde_json::json;

const REPO: &str = "shop/podinfo";

/// An artifact with `n` referrers.
fn with_referrers(n: usize) -> (Hostile, Digest, Vec<Digest>) {
    let registry = Hostile::start();
    let subject = registry.push_artifact(REPO, &[("app.yaml", b"kind: ConfigMap\n")]);
    let mut list: Vec<Digest> = (0..n)
        .map(|i| registry.push_referrer(REPO, &subject, "application/x+json", format!("{i}").as_bytes()))
        .collect();
    list.sort();
    (registry, subject, list)
}

async fn list(registry: &Hostile, subject: &Digest) -> Referrers {
    registries(registry).fetch_referrers(&repository(registry, REPO), subject).await
}

fn digests(listed: &Referrers) -> Vec<Digest> {
    listed.entries.iter().map(|(_, d)| d.digest).collect()
}

#[track_caller]
fn whole(listed: &Referrers) {
    assert_eq!(listed.unread, None);
}

#[tokio::test]
async fn case_42_every_page_is_read_however_the_link_is_written() {
    for absolute in [false, true] {
        let (registry, subject, all) = with_referrers(7);
        registry.behave(|b| (b.referrers_page, b.absolute_links) = (Some(3), absolute));
        let listed = list(&registry, &subject).await;
        whole(&listed);
        assert_eq!(digests(&listed), all);
        assert!(listed.entries.iter().all(|(place, _)| *place == EvidencePlace::Api));
        assert_eq!(registry.log().len(), 3);
    }
}

#[tokio::test]
async fn b38_the_120th_referrer_is_on_page_three() {
    let (registry, subject, all) = with_referrers(120);
    registry.behave(|b| b.referrers_page = Some(50));
    let listed = list(&registry, &subject).await;
    whole(&listed);
    assert_eq!(digests(&listed), all);
}

#[tokio::test]
async fn case_43_a_next_page_elsewhere_is_not_asked() {
    let other = Hostile::start();
    for target in
        [format!("{}/v2/x", other.url()), format!("https://{}/v2/x", other.host()), "//evil.example/x".into()]
    {
        let (registry, subject, all) = with_referrers(4);
        registry.behave(|b| b.referrers_page = Some(2));
        registry.fault(
            1,
            |_| true,
            Fault::change(move |_, a| {
                a.headers.retain(|(n, _)| n != "Link");
                a.headers.push(("Link".into(), format!(r#"<{target}>; rel="next""#)));
            }),
        );
        let listed = list(&registry, &subject).await;
        assert_eq!(digests(&listed), all[..2]);
        let why = listed.unread.unwrap();
        assert_eq!(why.reason, UnreadReason::Error);
        assert!(why.why.contains("another host"), "{}", why.why);
        assert_eq!(registry.log().len(), 1);
        assert!(other.log().is_empty(), "{:?}", other.lines());
    }
    // Same host, other scheme.
    let (registry, subject, _) = with_referrers(4);
    registry.behave(|b| b.referrers_page = Some(2));
    let target = format!("https://{}/v2/x", registry.host());
    registry.fault(
        1,
        |_| true,
        Fault::change(move |_, a| {
            a.headers.retain(|(n, _)| n != "Link");
            a.headers.push(("Link".into(), format!("<{target}>; rel=next")));
        }),
    );
    assert!(list(&registry, &subject).await.unread.is_some());
    assert_eq!(registry.log().len(), 1);
}

#[tokio::test]
async fn case_45_a_failing_page_leaves_what_was_listed_and_says_so() {
    let (registry, subject, all) = with_referrers(6);
    registry.behave(|b| b.referrers_page = Some(2));
    registry.fault(100, |r| r.query.contains("from=2"), Fault::status(500));
    let listed = list(&registry, &subject).await;
    assert_eq!(digests(&listed), all[..2]);
    let why = listed.unread.unwrap();
    assert_eq!((why.reason, why.status, why.retryable), (UnreadReason::Error, Some(500), true));
    assert_eq!(why.request, format!("GET {}/v2/{REPO}/referrers/{subject}", registry.url()));
}

#[tokio::test]
async fn b38_a_next_link_to_page_one_and_a_list_without_end_stop() {
    let (registry, subject, all) = with_referrers(4);
    registry.behave(|b| b.referrers_page = Some(2));
    let first = format!("/v2/{REPO}/referrers/{subject}");
    registry.fault(
        100,
        |r| r.query.contains("from="),
        Fault::change(move |_, a| {
            a.headers.push(("Link".into(), format!("<{first}>; rel=\"next\"")));
        }),
    );
    let listed = list(&registry, &subject).await;
    assert_eq!(digests(&listed), all);
    assert!(listed.unread.unwrap().why.contains("read already"));
    assert_eq!(registry.log().len(), 2);

    let (registry, subject, _) = with_referrers(1);
    registry.fault(
        1000,
        |_| true,
        Fault::change(|r, a| {
            let n: usize = r.query("n").first().map_or(0, |n| n.parse().unwrap());
            a.headers.push(("Link".into(), format!("<{}?n={}>; rel=next", r.path, n + 1)));
        }),
    );
    let listed = list(&registry, &subject).await;
    assert_eq!(listed.unread.unwrap().why, "the list has more than 50 pages");
    assert_eq!(registry.log().len(), 50);
}

#[tokio::test]
async fn more_candidates_than_the_cap_are_said_not_dropped() {
    // On one page, and with the cap at the end of a page that has a next one.
    for page in [usize::MAX, 5, 3] {
        let (registry, subject, _) = with_referrers(12);
        registry.behave(|b| b.referrers_page = Some(page));
        let mut config = config(&registry);
        config.limits.candidates = 10;
        let registries = Registries::new(config).unwrap();
        let listed = registries.fetch_referrers(&repository(&registry, REPO), &subject).await;
        assert_eq!(listed.entries.len(), 10);
        assert_eq!(listed.unread.unwrap().why, "more than 10 referrers are listed");
    }
}

#[tokio::test]
async fn pages_that_are_long_together_are_not_all_kept() {
    let (registry, subject, _) = with_referrers(1);
    registry.fault(
        1000,
        |_| true,
        Fault::change(|r, a| {
            let n: usize = r.query("n").first().map_or(0, |n| n.parse().unwrap());
            a.headers.push(("Link".into(), format!("<{}?n={}>; rel=next", r.path, n + 1)));
            a.body.extend(vec![b' '; 900]);
        }),
    );
    let mut config = config(&registry);
    config.limits.manifest = 2000;
    let listed =
        Registries::new(config).unwrap().fetch_referrers(&repository(&registry, REPO), &subject).await;
    assert_eq!(listed.unread.unwrap().why, "the list is too long to be read whole");
    assert!(registry.log().len() < 10);
}

#[tokio::test]
async fn case_46_nothing_is_filtered_by_the_registry() {
    let (registry, subject, all) = with_referrers(3);
    assert_eq!(digests(&list(&registry, &subject).await), all);
    assert!(registry.lines().iter().all(|l| !l.contains('?')), "{:?}", registry.lines());
}

#[tokio::test]
async fn case_47_a_wrong_or_empty_artifact_type_hides_nothing() {
    for wrong in [json!("application/vnd.oci.empty.v1+json"), json!(""), json!(null)] {
        let (registry, subject, all) = with_referrers(3);
        registry.fault(
            1,
            |_| true,
            Fault::change(move |_, a| {
                let mut body: serde_json::Value = serde_json::from_slice(&a.body).unwrap();
                for entry in body["manifests"].as_array_mut().unwrap() {
                    entry["artifactType"] = wrong.clone();
                }
                a.body = body.to_string().into_bytes();
            }),
        );
        let listed = list(&registry, &subject).await;
        whole(&listed);
        assert_eq!(digests(&listed), all);
    }
}

#[tokio::test]
async fn a_content_type_with_parameters_is_the_index_type() {
    let (registry, subject, all) = with_referrers(2);
    registry.fault(
        1,
        |_| true,
        Fault::change(|_, a| {
            a.headers[0].1 = "Application/vnd.oci.image.index.v1+json; charset=utf-8".into();
        }),
    );
    let listed = list(&registry, &subject).await;
    whole(&listed);
    assert_eq!(digests(&listed), all);
}

#[tokio::test]
async fn b37_case_52_every_way_of_having_no_api_leads_to_the_fallback_tag() {
    let answers = [
        Wire::error(404, "NAME_UNKNOWN"),
        Wire::new(404, "text/plain", "404 page not found\n"),
        Wire::html(404),
        Wire::error(400, "UNSUPPORTED"),
        Wire::error(405, "UNSUPPORTED"),
        Wire::new(406, "", ""),
        Wire::new(501, "", ""),
        Wire::error(401, "UNAUTHORIZED"),
    ];
    for answer in answers {
        let (registry, subject, all) = with_referrers(2);
        let entries: Vec<_> = all.iter().map(|d| registry.descriptor(REPO, d)).collect();
        registry.push_fallback(REPO, &subject, &entries);
        let status = answer.status;
        registry.fault(9, |r| r.path.contains("/referrers/"), Fault::Answer(answer));
        let listed = list(&registry, &subject).await;
        whole(&listed);
        assert_eq!(digests(&listed), all, "{status}");
        assert!(listed.entries.iter().all(|(place, _)| *place == EvidencePlace::FallbackTag));
    }
}

#[tokio::test]
async fn case_52_a_refusal_is_no_absence() {
    for status in [401, 403] {
        let (registry, subject, _) = with_referrers(0);
        registry.fault(
            9,
            |r| r.path.contains("/referrers/"),
            Fault::Answer(Wire::error(status, "DENIED").with("WWW-Authenticate", r#"Basic realm="x""#)),
        );
        let why = list(&registry, &subject).await.unread.unwrap();
        assert_eq!((why.reason, why.status), (UnreadReason::Unauthorized, Some(status)));
        assert!(!why.retryable);
    }
    // A 404 whose code says that one may not know.
    let (registry, subject, _) = with_referrers(0);
    registry.fault(9, |r| r.path.contains("/referrers/"), Fault::Answer(Wire::error(404, "DENIED")));
    assert!(list(&registry, &subject).await.unread.is_some());
}

#[tokio::test]
async fn b37_an_api_that_lists_nothing_does_not_hide_the_fallback_tag() {
    let (registry, subject, all) = with_referrers(2);
    let entries: Vec<_> = all.iter().map(|d| registry.descriptor(REPO, d)).collect();
    registry.push_fallback(REPO, &subject, &entries);
    registry.behave(|b| b.empty_referrers = true);
    let listed = list(&registry, &subject).await;
    whole(&listed);
    assert_eq!(digests(&listed), all);
}

#[tokio::test]
async fn an_api_that_lists_something_leaves_the_fallback_tag_for_later() {
    let (registry, subject, all) = with_referrers(2);
    let old = registry.push_manifest(REPO, "application/vnd.oci.image.manifest.v1+json", b"{\"old\":1}");
    registry.push_fallback(
        REPO,
        &subject,
        &[registry.descriptor(REPO, &old), registry.descriptor(REPO, &all[0])],
    );
    let registries = registries(&registry);
    let name = repository(&registry, REPO);
    let listed = registries.fetch_referrers(&name, &subject).await;
    assert_eq!((digests(&listed), listed.left_out), (all.clone(), Some(EvidencePlace::FallbackTag)));
    assert_eq!(registry.log().len(), 1);
    let listed = registries.fetch_left_out_referrers(&name, &subject, listed).await;
    whole(&listed);
    assert_eq!(digests(&listed), [all[0], all[1], old]);
    assert_eq!(registry.log().len(), 2);
    let listed = registries.fetch_left_out_referrers(&name, &subject, listed).await;
    assert_eq!((listed.entries.len(), registry.log().len()), (3, 2), "nothing is asked twice");
}

#[tokio::test]
async fn the_absence_of_the_api_is_remembered_and_doubted_before_missing() {
    let (registry, subject, all) = with_referrers(1);
    registry.behave(|b| b.referrers_page = None);
    let registries = registries(&registry);
    let name = repository(&registry, REPO);
    for _ in 0..3 {
        assert!(registries.fetch_referrers(&name, &subject).await.entries.is_empty());
    }
    assert_eq!(registry.log().len(), 2 + 1 + 1, "{:?}", registry.lines());
    // It was a hiccup: the API is there after all.
    registry.behave(|b| b.referrers_page = Some(10));
    let listed = registries.fetch_referrers(&name, &subject).await;
    assert_eq!(listed.left_out, Some(EvidencePlace::Api));
    assert_eq!(digests(&registries.fetch_left_out_referrers(&name, &subject, listed).await), all);
}

#[tokio::test]
async fn a_repository_that_is_not_there_says_nothing_of_the_others() {
    let (registry, subject, all) = with_referrers(1);
    registry.fault(1, |r| r.path.contains("/v2/gone/"), Fault::Answer(Wire::error(404, "NAME_UNKNOWN")));
    let registries = registries(&registry);
    assert!(
        registries.fetch_referrers(&repository(&registry, "gone/app"), &subject).await.entries.is_empty()
    );
    assert_eq!(digests(&registries.fetch_referrers(&repository(&registry, REPO), &subject).await), all);
}

#[tokio::test]
async fn case_48_a_bare_fallback_index_is_read() {
    let (registry, subject, all) = with_referrers(2);
    registry.behave(|b| b.referrers_page = None);
    let entries: Vec<_> = all
        .iter()
        .map(|d| {
            let mut entry = registry.descriptor(REPO, d);
            entry["artifactType"] = json!("application/vnd.oci.empty.v1+json");
            entry
        })
        .collect();
    let index = json!({"schemaVersion": 2, "manifests": entries}).to_string();
    let digest = registry.push_manifest(REPO, "application/json", index.as_bytes());
    registry.tag(REPO, &format!("sha256-{}", subject.format_hex()), digest);
    let listed = list(&registry, &subject).await;
    whole(&listed);
    assert_eq!(digests(&listed), all);
}

#[tokio::test]
async fn case_49_a_fallback_tag_that_is_no_index() {
    for (kind, body) in [
        (
            "application/vnd.oci.image.manifest.v1+json",
            json!({"schemaVersion": 2, "config": {}, "layers": []}),
        ),
        (
            "application/vnd.docker.distribution.manifest.list.v2+json",
            json!({"schemaVersion": 2, "mediaType": "application/vnd.docker.distribution.manifest.list.v2+json", "manifests": []}),
        ),
    ] {
        let (registry, subject, _) = with_referrers(0);
        registry.behave(|b| b.referrers_page = None);
        let digest = registry.push_manifest(REPO, kind, body.to_string().as_bytes());
        registry.tag(REPO, &format!("sha256-{}", subject.format_hex()), digest);
        let listed = list(&registry, &subject).await;
        whole(&listed);
        assert!(listed.entries.is_empty());
        assert_eq!(listed.warnings.len(), 1, "{:?}", listed.warnings);
    }
    for answer in [
        Wire::html(200),
        Wire::new(200, "application/vnd.oci.image.index.v1+json", ""),
        Wire::new(200, "application/vnd.oci.image.index.v1+json", r#"{"schemaVersion":2,"manif"#),
        Wire::new(200, "application/vnd.oci.image.index.v1+json", "{}"),
        Wire::new(200, "application/json", "[]"),
    ] {
        let (registry, subject, _) = with_referrers(0);
        registry.behave(|b| b.referrers_page = None);
        registry.fault(9, |r| r.path.contains("/manifests/sha256-"), Fault::Answer(answer.clone()));
        let listed = list(&registry, &subject).await;
        assert_eq!(listed.unread.map(|u| u.reason), Some(UnreadReason::Error), "{answer:?}");
    }
}

#[tokio::test]
async fn case_50_a_dangling_entry_is_listed_and_found_to_be_absent() {
    let (registry, subject, all) = with_referrers(1);
    registry.behave(|b| b.referrers_page = None);
    let gone = json!({"mediaType": "application/vnd.oci.image.manifest.v1+json", "size": 3, "digest": Digest::hash_bytes(b"gone")});
    registry.push_fallback(REPO, &subject, &[gone, registry.descriptor(REPO, &all[0])]);
    let listed = list(&registry, &subject).await;
    whole(&listed);
    assert_eq!(listed.entries.len(), 2);
    let registries = registries(&registry);
    let name = repository(&registry, REPO);
    absent(registries.fetch_manifest(&name, &Reference::Digest(Digest::hash_bytes(b"gone"))).await);
    found(registries.fetch_manifest(&name, &Reference::Digest(all[0])).await);
}

#[tokio::test]
async fn case_53_a_web_page_instead_of_a_list() {
    let (registry, subject, _) = with_referrers(2);
    registry.fault(9, |r| r.path.contains("/referrers/"), Fault::Answer(Wire::html(200)));
    let listed = list(&registry, &subject).await;
    whole(&listed);
    assert!(listed.entries.is_empty(), "the fallback tag is absent with authority");

    registry.heal();
    registry.fault(9, |_| true, Fault::Answer(Wire::html(200)));
    assert!(list(&registry, &subject).await.unread.is_some(), "a web page everywhere says nothing");

    registry.heal();
    registry.fault(9, |r| r.path.contains("/referrers/"), Fault::Answer(Wire::html(200)));
    registry.fault(9, |r| r.path.contains("/manifests/"), Fault::Answer(Wire::html(404)));
    assert!(list(&registry, &subject).await.unread.is_some());

    // A list's own type and no list: broken, not absent.
    registry.heal();
    registry.fault(
        9,
        |_| true,
        Fault::Answer(Wire::new(200, "application/vnd.oci.image.index.v1+json", "{\"manif")),
    );
    assert!(list(&registry, &subject).await.unread.is_some());
}

#[tokio::test]
async fn case_54_an_empty_list_of_nothing_is_no_statement_about_the_artifact() {
    let registry = Hostile::start();
    let subject = Digest::hash_bytes(b"never pushed");
    let listed = list(&registry, &subject).await;
    whole(&listed);
    assert!(listed.entries.is_empty());
    absent(registries(&registry).holds_manifest(&repository(&registry, REPO), &subject).await);
}

#[tokio::test]
async fn case_55_every_manifest_type_is_accepted() {
    let registry = Hostile::start();
    registry.behave(|b| b.strict_accept = true);
    let kind = "application/vnd.docker.distribution.manifest.v2+json";
    let body = json!({"schemaVersion": 2, "mediaType": kind, "config": {}, "layers": []}).to_string();
    let digest = registry.push_manifest(REPO, kind, body.as_bytes());
    registry.tag(REPO, "sha256-00.sig", digest);
    let registries = registries(&registry);
    let name = repository(&registry, REPO);
    let by_tag = found(registries.fetch_manifest(&name, &Reference::Tag("sha256-00.sig".into())).await);
    assert_eq!((by_tag.digest, by_tag.media_type.as_str()), (digest, kind));
    found(registries.holds_manifest(&name, &digest).await);
}

#[tokio::test]
async fn case_65_an_entry_of_negative_size_spoils_missing_but_not_the_others() {
    let (registry, subject, all) = with_referrers(1);
    registry.behave(|b| b.referrers_page = None);
    let bad = json!({"size": -1, "digest": Digest::hash_bytes(b"x")});
    registry.push_fallback(REPO, &subject, &[bad, registry.descriptor(REPO, &all[0])]);
    let listed = list(&registry, &subject).await;
    assert_eq!(digests(&listed), all);
    assert_eq!(listed.unread.unwrap().why, "entry 1 has no usable size");
}
