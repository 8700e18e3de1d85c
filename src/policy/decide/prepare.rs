//! Builds the Preparation of an artifact that a pipeline pushed: decides which claims of its manifest and its
//! signed provenance are used, and which are left out.
//!
//! The base digest decides whether two stages run the same change, and a gate believes it only where signed
//! provenance lists it: so only such a digest is written. It is never guessed from the list, because the only
//! image in it may be the tool that rendered.

use crate::error::{Failure, FailureKind};
use crate::model::evidence::{Build, Material};
use crate::model::id::{Artifact, Digest, IdError, OrderRef, PreparationName};
use crate::model::naming::build_preparation_name;
use crate::model::preparation::{Base, GitSource, Prepared};
use crate::model::time::{SKEW, Time};
use serde_json::Value;
use std::collections::BTreeMap;

const CREATED: &str = "org.opencontainers.image.created";
const BASE_DIGEST: &str = "org.opencontainers.image.base.digest";
const BASE_NAME: &str = "org.opencontainers.image.base.name";
const DESCRIPTION: &str = "org.opencontainers.image.description";
const SOURCE: &str = "org.opencontainers.image.source";
const REVISION: &str = "org.opencontainers.image.revision";
const VERSION: &str = "org.opencontainers.image.version";
const PARENT: &str = "kokumi.dev/parent";

/// Longest texts that the CustomResourceDefinition takes, in characters.
const MESSAGE: usize = 512;
const REPOSITORY: usize = 2048;
const COMMIT: usize = 64;
const TAG: usize = 256;

/// What is known about the artifact.
#[derive(Debug, Clone)]
pub struct PreparationInput<'a> {
    pub artifact: &'a Artifact,
    pub order: &'a OrderRef,
    /// Annotations of its manifest.
    pub annotations: &'a BTreeMap<String, String>,
    /// What signed provenance says; `None`: nothing was verified, and the caller's values are trusted.
    pub build: Option<&'a Build>,
    /// The name that a person chose.
    pub name: Option<&'a PreparationName>,
    /// The base that a person named.
    pub base: Option<Digest>,
    /// The run's clock, to detect times in the future.
    pub now: Time,
}

/// The Preparation of the artifact, and warnings about what it lacks. The same artifact and evidence always
/// give the same Preparation.
///
/// # Errors
/// Provenance does not list the base that was named, or the Order's name is too long to derive a name from
/// it.
pub fn build_preparation(known: &PreparationInput<'_>) -> Result<(Prepared, Vec<Failure>), Failure> {
    let mut warnings = Vec::new();
    let name = match known.name {
        Some(name) => name.clone(),
        None => build_preparation_name(&known.order.name, &known.artifact.digest)
            .map_err(|IdError(why)| Failure::new_input("name", why).with_object(known.order.to_string()))?,
    };
    let base = resolve_base(known, &mut warnings)?;
    let created = resolve_created(known, &mut warnings);
    let prepared = Prepared {
        order: known.order.clone(),
        name,
        created,
        artifact: known.artifact.clone(),
        base,
        parent: find_annotation(known, PARENT).and_then(|text| Digest::parse(text).ok()),
        commit_message: find_annotation(known, DESCRIPTION).map(|text| cut_text(text, MESSAGE)),
        git: resolve_git(known),
        config_hash: known.build.and_then(|build| build.parameters.as_ref()).map(hash_canonical),
        renderer: known.build.and_then(|build| build.renderer.clone()),
    };
    Ok((prepared, warnings))
}

fn find_annotation<'a>(known: &PreparationInput<'a>, key: &str) -> Option<&'a str> {
    known.annotations.get(key).map(String::as_str).filter(|text| !text.is_empty())
}

fn make_warning(known: &PreparationInput<'_>, code: &'static str, cause: impl Into<String>) -> Failure {
    Failure::new_input(code, cause).with_object(format!("artifact {}", known.artifact))
}

/// The base that a person or the manifest names, where signed provenance lists it.
fn resolve_base(known: &PreparationInput<'_>, warnings: &mut Vec<Failure>) -> Result<Option<Base>, Failure> {
    let said = find_annotation(known, BASE_DIGEST).and_then(|text| Digest::parse(text).ok());
    let Some(digest) = known.base.or(said) else { return Ok(None) };
    let named =
        || find_annotation(known, BASE_NAME).map(|name| format_repository_url(&format!("oci://{name}")));
    let Some(build) = known.build else {
        return Ok(Some(Base { oci: named(), digest }));
    };
    if let Some(listed) = build.materials.iter().find(|m| m.sha256 == Some(digest)) {
        let signed = listed.uri.as_deref().filter(|uri| uri.starts_with("oci://"));
        return Ok(Some(Base { oci: signed.map(format_repository_url).or_else(named), digest }));
    }
    let listed: Vec<String> = build.materials.iter().filter_map(format_material).collect();
    let listed = if listed.is_empty() { "nothing".to_owned() } else { listed.join(", ") };
    let cause =
        format!("its signed provenance does not list {digest} among what it was built from: {listed}");
    let hint = "list the base in resolvedDependencies (SLSA v1) or materials (v0.2) and attest again";
    if known.base.is_some() {
        let failure = Failure::new(FailureKind::SaysNo, "base-not-listed", cause);
        return Err(failure
            .with_object(format!("artifact {}", known.artifact))
            .with_field("--base-digest")
            .with_hint(hint));
    }
    let left_out = format!("its annotation {BASE_DIGEST} is left out: {cause}");
    warnings.push(make_warning(known, "base-not-listed", left_out).with_hint(hint));
    Ok(None)
}

fn format_material(material: &Material) -> Option<String> {
    let digest = material.sha256?;
    Some(match &material.uri {
        Some(uri) => format!("{uri} ({digest})"),
        None => digest.to_string(),
    })
}

/// `oci://host:port/path:tag@digest` without tag and digest.
fn format_repository_url(url: &str) -> String {
    let url = url.split('@').next().unwrap_or(url);
    let path = url.rfind('/').unwrap_or(0);
    match url[path..].find(':') {
        Some(colon) => url[..path + colon].to_owned(),
        None => url.to_owned(),
    }
}

/// From signed provenance, else from the manifest; never from the clock, so that preparing again gives the
/// same result.
fn resolve_created(known: &PreparationInput<'_>, warnings: &mut Vec<Failure>) -> Option<Time> {
    let signed = known.build.and_then(|build| build.finished_on);
    let annotated = || Time::parse(find_annotation(known, CREATED)?).ok();
    let Some(created) = signed.or_else(annotated).map(Time::cut_to_second) else {
        let cause = "neither its provenance nor its manifest says when it was built: which Preparation is the newest is decided \
                     by parentDigest then, or not at all";
        let hint = format!("give provenance a finishedOn, or the manifest an annotation {CREATED}");
        warnings.push(make_warning(known, "no-time", cause).with_hint(hint));
        return None;
    };
    if created > known.now.add_span(SKEW) {
        let cause = format!("it says that it was built at {created}, which is in the future");
        warnings.push(make_warning(known, "ahead", cause));
    }
    Some(created)
}

/// From the manifest; what it does not contain is taken from the first commit that provenance lists.
fn resolve_git(known: &PreparationInput<'_>) -> GitSource {
    let short = |key: &str, most: usize| {
        find_annotation(known, key).filter(|text| text.chars().count() <= most).map(str::to_owned)
    };
    let materials = known.build.map_or(&[][..], |build| &build.materials);
    let listed = materials.iter().find(|m| m.commit.as_ref().is_some_and(|c| c.chars().count() <= COMMIT));
    let uri = listed.and_then(|m| m.uri.as_deref()).map(|uri| {
        let uri = uri.strip_prefix("git+").unwrap_or(uri);
        uri.split_once("@refs/").map_or(uri, |(repository, _)| repository).to_owned()
    });
    let repo = short(SOURCE, REPOSITORY).or(uri.filter(|uri| uri.chars().count() <= REPOSITORY));
    GitSource {
        // A pipeline takes it from its checkout, whose URL may carry a token.
        repo: repo.as_deref().map(GitSource::strip_user),
        commit_hash: short(REVISION, COMMIT).or_else(|| listed.and_then(|m| m.commit.clone())),
        tag: short(VERSION, TAG),
    }
}

fn cut_text(text: &str, most: usize) -> String {
    match text.char_indices().nth(most - 1) {
        Some((at, last)) if at + last.len_utf8() < text.len() => format!("{}…", &text[..at]),
        Some(_) | None => text.to_owned(),
    }
}

/// SHA-256 over JSON whose members are sorted.
fn hash_canonical(value: &Value) -> Digest {
    let mut value = value.clone();
    value.sort_all_objects();
    Digest::hash_bytes(value.to_string().as_bytes())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;
    use serde_json::json;

    fn artifact() -> Artifact {
        Artifact::parse(&format!("oci://r.example:5000/shop/web@{}", Digest::hash_bytes(b"web"))).unwrap()
    }

    fn annotations(all: &[(&str, String)]) -> BTreeMap<String, String> {
        all.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect()
    }

    fn prepared(
        all: &[(&str, String)],
        build: Option<&Build>,
        base: Option<Digest>,
    ) -> Result<(Prepared, Vec<&'static str>), Failure> {
        let (artifact, order) = (artifact(), OrderRef::parse("shop/web").unwrap());
        let now = Time::parse("2026-02-10T12:00:00Z").unwrap();
        let annotations = annotations(all);
        let known = PreparationInput {
            artifact: &artifact,
            order: &order,
            annotations: &annotations,
            build,
            name: None,
            base,
            now,
        };
        let (prepared, warnings) = build_preparation(&known)?;
        Ok((prepared, warnings.iter().map(|w| w.code).collect()))
    }

    fn build(materials: &[(&str, &[u8])]) -> Build {
        let materials = materials.iter().map(|(uri, content)| Material {
            uri: Some((*uri).to_owned()),
            sha256: Some(Digest::hash_bytes(content)),
            commit: None,
        });
        let finished_on = Some(Time::parse("2026-01-02T03:04:05.678Z").unwrap());
        Build { finished_on, materials: materials.collect(), ..Build::default() }
    }

    #[test]
    fn a_base_is_what_is_named_and_listed_and_never_guessed() {
        let only = build(&[("oci://r.example:5000/base/web:v1@sha256:00", b"base")]);
        let base = Digest::hash_bytes(b"base");
        let (none, warnings) = prepared(&[], Some(&only), None).unwrap();
        assert_eq!((none.base, warnings), (None, vec![]), "the one that is listed may be the tool");
        let expected = Some(Base { oci: Some("oci://r.example:5000/base/web".into()), digest: base });
        assert_eq!(prepared(&[], Some(&only), Some(base)).unwrap().0.base, expected);
        let said = [(BASE_DIGEST, base.to_string())];
        assert_eq!(prepared(&said, Some(&only), None).unwrap().0.base, expected);

        let (unlisted, warnings) = prepared(&said, Some(&build(&[])), None).unwrap();
        assert_eq!((unlisted.base, warnings), (None, vec!["base-not-listed"]));
        let refused = prepared(&said, Some(&only), Some(Digest::hash_bytes(b"other"))).unwrap_err();
        assert_eq!((refused.kind, refused.code), (FailureKind::SaysNo, "base-not-listed"));
        assert!(refused.cause.contains("oci://r.example:5000/base/web:v1"), "{}", refused.cause);
    }

    #[test]
    fn without_evidence_the_manifest_is_taken_at_its_word() {
        let base = Digest::hash_bytes(b"base");
        let said = [
            (BASE_DIGEST, base.to_string()),
            (BASE_NAME, "r.example:5000/base/web:v1".into()),
            (CREATED, "2026-01-01T00:00:00Z".into()),
        ];
        let (made, warnings) = prepared(&said, None, None).unwrap();
        let oci = Some("oci://r.example:5000/base/web".to_owned());
        assert_eq!(made.base, Some(Base { oci, digest: base }));
        assert_eq!(made.created.unwrap().to_string(), "2026-01-01T00:00:00Z");
        assert_eq!((made.config_hash, made.renderer, warnings), (None, None, vec![]));
    }

    #[test]
    fn the_time_is_the_signed_one_then_the_manifests_never_the_clocks() {
        let said = [(CREATED, "2026-01-01T00:00:00Z".to_owned())];
        let time = |all: &[(&str, String)], build: Build| {
            let (made, warnings) = prepared(all, Some(&build), None).unwrap();
            (made.created.map(|t| t.to_string()), warnings)
        };
        assert_eq!(time(&said, build(&[])), (Some("2026-01-02T03:04:05Z".into()), vec![]));
        let untimed = || Build::default();
        assert_eq!(time(&said, untimed()), (Some("2026-01-01T00:00:00Z".into()), vec![]));
        assert_eq!(time(&[], untimed()), (None, vec!["no-time"]));
        assert_eq!(time(&[(CREATED, "yesterday".into())], untimed()), (None, vec!["no-time"]));
        let late = [(CREATED, "2026-02-10T12:06:00Z".to_owned())];
        assert_eq!(time(&late, untimed()).1, vec!["ahead"]);
    }

    #[test]
    fn what_a_crd_would_not_take_is_cut_or_left_out() {
        let said = [
            (DESCRIPTION, "ä".repeat(513)),
            (SOURCE, "s".repeat(2049)),
            (REVISION, "r".repeat(65)),
            (VERSION, "v".repeat(256)),
            (PARENT, "sha256:nope".into()),
        ];
        let (made, _) = prepared(&said, Some(&build(&[])), None).unwrap();
        let message = made.commit_message.unwrap();
        assert!(message.chars().count() == 512 && message.ends_with('…'), "{message}");
        assert_eq!(made.git, GitSource { tag: Some("v".repeat(256)), ..GitSource::default() });
        assert_eq!(made.parent, None);
        assert_eq!(cut_text(&"ä".repeat(512), 512), "ä".repeat(512));
    }

    #[test]
    fn a_commit_that_is_listed_stands_in_for_annotations() {
        let mut signed = build(&[]);
        signed.materials.push(Material {
            uri: Some("git+https://git.example/shop/web@refs/heads/main".into()),
            sha256: None,
            commit: Some("0123456789abcdef0123456789abcdef01234567".into()),
        });
        let (made, _) = prepared(&[], Some(&signed), None).unwrap();
        assert_eq!(made.git.repo.as_deref(), Some("https://git.example/shop/web"));
        assert!(made.git.commit_hash.is_some());
        let (made, _) = prepared(&[(REVISION, "abc".into())], Some(&signed), None).unwrap();
        assert_eq!(made.git.commit_hash.as_deref(), Some("abc"));
    }

    #[test]
    fn a_repository_is_named_without_the_token_that_its_url_carries() {
        let token = "https://gitlab-ci-token:glcbt-64_x@git.example:8443/shop/web.git";
        let plain = Some("https://git.example:8443/shop/web.git");
        let mut signed = build(&[]);
        signed.materials.push(Material {
            uri: Some(format!("git+{token}@refs/heads/main")),
            sha256: None,
            commit: Some("0123456789abcdef0123456789abcdef01234567".into()),
        });
        assert_eq!(prepared(&[], Some(&signed), None).unwrap().0.git.repo.as_deref(), plain);
        assert_eq!(prepared(&[(SOURCE, token.into())], None, None).unwrap().0.git.repo.as_deref(), plain);
        for (url, expected) in [
            ("HTTP://t@git.example", "HTTP://git.example"),
            ("https://a:p@ss@git.example/x", "https://git.example/x"),
            ("git+https://t@git.example/x", "git+https://git.example/x"),
            ("https://git.example/@shop/web", "https://git.example/@shop/web"),
            ("git@git.example:shop/web.git", "git@git.example:shop/web.git"),
            ("ssh://git@git.example/shop/web.git", "ssh://git@git.example/shop/web.git"),
            ("../web.git", "../web.git"),
        ] {
            assert_eq!(GitSource::strip_user(url), expected);
        }
    }

    #[test]
    fn the_hash_of_a_configuration_is_blind_to_the_order_of_its_members() {
        let hash = |value: Value| hash_canonical(&value);
        assert_eq!(
            hash(json!({"a": {"x": 1, "y": 2}, "b": 3})),
            hash(json!({"b": 3, "a": {"y": 2, "x": 1}}))
        );
        assert_ne!(hash(json!({"a": [1, 2]})), hash(json!({"a": [2, 1]})));
    }
}
