//! Policy tests: a team's own cases for its gates. Objects, an instant and recorded evidence go in; what every
//! gate says comes out and is compared with what the team expects, so that gates are reviewed like code.
//!
//! ```text
//! <anything>/case.yaml       what is expected, and where the rest is (paths beside it)
//!   at: 2026-03-02T09:00:00Z
//!   order: shop/podinfo
//!   objects: [../../objects, ./extra]     folders of objects; the case's own folder when absent
//!   repository: ./repository              the GitOps repository's files; empty when absent
//!   observed: ./applications.yaml         a dump of Applications
//!   registries: {registry.shop.example:5000: ../../registry}   recorded evidence: image layouts
//!   expect:
//!     decision: Hold                      Promote, Hold, Keep, Broken or Remove
//!     gates: {Upstream: Passed, Approvals: {is: Waiting, says: "1 of 2 approvals"}}
//! ```
//! Without `registries` artifact, signature and provenance are taken as proven, and attestations and scans
//! are what the case says they are; a case then tests policies alone, and says so.

use crate::error::{At, Failure};
use crate::evidence::gather::{GatherOptions, gather_blocking};
use crate::evidence::keys::KeyRing;
use crate::files::Files;
use crate::load::folder::DiskFolder;
use crate::load::{self, Input, Observed};
use crate::model::evidence::*;
use crate::model::id::{Artifact, Digest, OrderRef, PreparationName};
use crate::model::kitchen::{KitchenSpec, Role};
use crate::model::plan::{Decision, PlanRow};
use crate::model::time::Time;
use crate::model::verdict::{GateOutcome, Verdict};
use crate::policy::decide;
use crate::policy::gates::{self, Context};
use crate::policy::resolve::{self, Case};
use kube_yaml::{de, parse};
use oci_registry::{HostConfig, Registries, RegistriesConfig};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The file that makes a folder a case.
pub const FILE: &str = "case.yaml";

/// A case as written.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct RehearsalCase {
    at: Time,
    order: OrderRef,
    #[serde(default)]
    objects: Vec<String>,
    repository: Option<String>,
    observed: Option<String>,
    #[serde(default)]
    registries: BTreeMap<String, String>,
    #[serde(default)]
    attestations: Vec<Attested>,
    #[serde(default)]
    scans: Vec<Scanned>,
    expect: Expected,
}

/// A statement that is taken as signed and attached.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Attested {
    preparation: PreparationName,
    predicate_type: String,
    /// As it would be attached: a mapping, or its JSON as text (where fractions matter).
    predicate: serde_json::Value,
    /// When it was made; absent: it does not say.
    time: Option<Time>,
}

/// A scan that is taken as signed and attached.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Scanned {
    preparation: PreparationName,
    time: Time,
    #[serde(default)]
    critical: u64,
    #[serde(default)]
    high: u64,
    #[serde(default)]
    medium: u64,
    #[serde(default)]
    low: u64,
    #[serde(default)]
    unknown: u64,
}

/// What must come out.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Expected {
    decision: Option<String>,
    #[serde(default)]
    gates: BTreeMap<String, ExpectedAnswer>,
}

/// `Passed`, or with a part of the message.
#[derive(Debug)]
struct ExpectedAnswer {
    is: String,
    says: Option<String>,
}

impl<'de> Deserialize<'de> for ExpectedAnswer {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> serde::de::Visitor<'de> for Visitor {
            type Value = ExpectedAnswer;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("Passed, Waiting or Failed, or {is: …, says: part of the message}")
            }
            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<ExpectedAnswer, E> {
                Ok(ExpectedAnswer { is: text.to_owned(), says: None })
            }
            fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<ExpectedAnswer, A::Error> {
                let (mut is, mut says) = (None, None);
                while let Some((key, value)) = map.next_entry::<String, String>()? {
                    match key.as_str() {
                        "is" => is = Some(value),
                        "says" => says = Some(value),
                        other => return Err(serde::de::Error::unknown_field(other, &["is", "says"])),
                    }
                }
                let is = is.ok_or_else(|| serde::de::Error::missing_field("is"))?;
                Ok(ExpectedAnswer { is, says })
            }
        }
        from.deserialize_any(Visitor)
    }
}

/// What one case came to.
#[derive(Debug)]
pub struct Rehearsed {
    /// Its file, as a user would name it.
    pub name: String,
    /// What differs from what was expected; empty: it passes.
    pub differs: Vec<String>,
    /// Evidence was taken as proven: policies alone were tested.
    pub assumed: bool,
}

/// Plays every case at or below `folder`, in the order of their paths.
///
/// # Errors
/// There is no case, or one cannot be read: each with its file and place.
pub fn rehearse_folder(
    folder: &Path,
    runtime: &tokio::runtime::Runtime,
) -> Result<Vec<Rehearsed>, Vec<Failure>> {
    let mut files: Vec<PathBuf> = walkdir::WalkDir::new(folder)
        .sort_by_file_name()
        .into_iter()
        .filter_map(Result::ok)
        .filter(|entry| entry.file_type().is_file() && entry.file_name() == FILE)
        .map(walkdir::DirEntry::into_path)
        .collect();
    files.sort();
    if files.is_empty() {
        let cause = format!("no {FILE} is at or below it");
        return Err(vec![
            Failure::new_input("no-cases", cause).with_place(At::from_file(folder.display().to_string())),
        ]);
    }
    let mut failures = Vec::new();
    let mut all = Vec::new();
    for file in files {
        match play_case(&file, runtime) {
            Ok(rehearsed) => all.push(rehearsed),
            Err(failure) => failures.push(failure),
        }
    }
    if failures.is_empty() { Ok(all) } else { Err(failures) }
}

fn read_case(file: &Path) -> Result<RehearsalCase, Failure> {
    let name = file.display().to_string();
    let text = std::fs::read_to_string(file).map_err(|e| {
        Failure::new_input("unreadable", e.to_string()).with_place(At::from_file(name.clone()))
    })?;
    let node = parse::parse_one(&text).map_err(|e| Failure::from_yaml(&e, &name))?;
    let mut unknown = Vec::new();
    let written: RehearsalCase =
        de::from_node(&node, &mut unknown).map_err(|e| Failure::from_yaml(&e, &name))?;
    if let Some(key) = unknown.first() {
        let path = if key.path.is_empty() { key.key.clone() } else { format!("{}.{}", key.path, key.key) };
        let at = At { file: name, line: Some(key.at.line), column: Some(key.at.column) };
        let known = key.known.join(", ");
        return Err(Failure::new_input("unknown-field", format!("a case has no {path}; it has {known}"))
            .with_place(at));
    }
    Ok(written)
}

fn play_case(file: &Path, runtime: &tokio::runtime::Runtime) -> Result<Rehearsed, Failure> {
    let case = read_case(file)?;
    let home = file.parent().unwrap_or(Path::new("."));
    let beside = |path: &str| home.join(path);
    let folders: Vec<DiskFolder> = match case.objects.as_slice() {
        [] => vec![DiskFolder::new(home.display().to_string(), home)],
        many => many.iter().map(|path| DiskFolder::new(path.clone(), beside(path))).collect(),
    };
    let named: Vec<Arc<str>> = folders.iter().map(|f| Arc::from(format!("path:{}", f.name()))).collect();
    let inputs: Vec<Input<'_>> = folders
        .iter()
        .zip(&named)
        .map(|(folder, name)| Input {
            name: name.clone(),
            files: folder,
            kinds: None,
            namespaces: None,
            skip: &["case.yaml", "repository/"],
        })
        .collect();
    let observed = case.observed.as_ref().map(|path| Observed {
        source: "observed".into(),
        file: path.as_str().into(),
        bytes: std::fs::read(beside(path)).map_err(|e| e.to_string()),
    });
    let world = load::read_world(&inputs, observed.as_ref());
    let gitops = match &case.repository {
        Some(path) => load::read_gitops(&DiskFolder::new(path.clone(), beside(path)), None),
        None => Default::default(),
    };
    let none = KitchenSpec::default();
    let kitchen = world.kitchen.as_ref().map_or(&none, |k| &k.object.spec);
    let cases = resolve::resolve_cases(&world, &gitops, "argocd");
    let assumed = case.registries.is_empty();
    let ring = KeyRing::from_kitchen(kitchen);
    let context = Context {
        trust: ring.state().fingerprint,
        records: false,
        assumed: true,
        ..Context::new(case.at, Some(kitchen))
    };
    let asks = gates::collect_asks(&cases, &context);
    let facts = if assumed {
        assume_facts(&asks, &case, &cases)?
    } else {
        let hosts = case.registries.iter().map(|(host, path)| {
            (host.clone(), HostConfig { layout: Some(beside(path)), ..HostConfig::default() })
        });
        let config = RegistriesConfig { hosts: hosts.collect(), ..RegistriesConfig::default() };
        gather_blocking(runtime, &asks, &ring, &Registries::new(config)?, &GatherOptions::default())
    };
    let plan =
        decide::decide_plan(&cases, &facts, &world, &gitops, &context, &decide::PlanOptions::default());
    let mut differs: Vec<String> = plan.problems.iter().map(|p| format!("a problem: {p}")).collect();
    match plan.rows.iter().find(|row| row.order == case.order) {
        Some(row) => differs.extend(compare_row(&case.expect, row)),
        None => differs.push(format!("there is no Order {}", case.order)),
    }
    Ok(Rehearsed { name: file.display().to_string(), differs, assumed })
}

/// Everything that is asked is proven; attestations and scans are what the case says.
fn assume_facts(asks: &[Ask], written: &RehearsalCase, cases: &[Case]) -> Result<Facts, Failure> {
    let mut facts = Facts::default();
    facts.keys.usable.extend([
        Role::Signature,
        Role::Provenance,
        Role::Approvals,
        Role::Checks,
        Role::Scans,
        Role::Records,
    ]);
    for ask in asks {
        facts.artifacts.insert(ask.artifact.clone(), assume_artifact(ask, written, cases)?);
    }
    Ok(facts)
}

fn make_proof(of: &str, statement: Option<Statement>) -> Proof {
    let digest = Digest::hash_bytes(of.as_bytes());
    Proof {
        key: "assumed".into(),
        fingerprint: "assumed".into(),
        digest,
        blob: digest,
        place: "the case".into(),
        statement: statement.map(Arc::new),
    }
}

fn assume_artifact(ask: &Ask, written: &RehearsalCase, cases: &[Case]) -> Result<ArtifactFacts, Failure> {
    let is_of = |name: &PreparationName| {
        cases.iter().any(|case| {
            case.preparations.get(name).is_some_and(|p| p.object.spec.artifact.digest == ask.artifact.digest)
        })
    };
    let nothing = || Looked { why: "the case has none".into(), ..Looked::default() };
    let mut facts = ArtifactFacts::default();
    for claim in &ask.claims {
        match claim {
            Claim::Artifact => {
                facts.artifact = Some(Evidence::Proven(ArtifactProof {
                    media_type: String::new(),
                    size: 0,
                    layer: ask.artifact.digest,
                    layer_media_type: String::new(),
                }));
            }
            Claim::Signature => facts.signature = Some(Evidence::Proven(make_proof("signature", None))),
            Claim::Provenance(order) => {
                let provenance = ProvenanceProof {
                    proof: make_proof("provenance", None),
                    finished_on: None,
                    dependencies: collect_bases(&ask.artifact, cases),
                    builder: None,
                };
                facts.provenance.insert(order.clone(), Evidence::Proven(provenance));
            }
            // A vote under a policy is counted from the case's Approvals; their seal is the run's own doing.
            Claim::Approvals(of) => {
                facts.approvals.insert(of.clone(), Evidence::Missing(nothing()));
            }
            Claim::Attestation(kind) => {
                let mut found = Vec::new();
                for one in written.attestations.iter().filter(|a| a.predicate_type == *kind) {
                    if !is_of(&one.preparation) {
                        continue;
                    }
                    let predicate = make_predicate(one).map_err(|e| {
                        Failure::new_input(
                            "bad-predicate",
                            format!("the predicate of {} is no JSON: {e}", one.preparation),
                        )
                    })?;
                    let statement =
                        Statement { predicate_type: kind.clone(), subject: None, predicate, time: one.time };
                    found.push(make_proof(&one.predicate.to_string(), Some(statement)));
                }
                let found =
                    if found.is_empty() { Evidence::Missing(nothing()) } else { Evidence::Proven(found) };
                facts.attestations.insert(kind.clone(), found);
            }
            Claim::Scans => {
                let found: Vec<ScanProof> = written
                    .scans
                    .iter()
                    .filter(|s| is_of(&s.preparation))
                    .map(|s| {
                        let counts = ScanCounts {
                            critical: s.critical,
                            high: s.high,
                            medium: s.medium,
                            low: s.low,
                            unknown: s.unknown,
                        };
                        ScanProof {
                            proof: make_proof("scan", None),
                            scanner: "the case".into(),
                            finished_on: s.time,
                            counts: Some(counts),
                            fixable: Some(counts),
                        }
                    })
                    .collect();
                facts.scans = Some(if found.is_empty() {
                    Evidence::Missing(nothing())
                } else {
                    Evidence::Proven(found)
                });
            }
            Claim::Records => facts.records = Some(Evidence::Missing(nothing())),
        }
    }
    Ok(facts)
}

fn make_predicate(one: &Attested) -> Result<serde_json::Value, serde_json::Error> {
    match &one.predicate {
        serde_json::Value::String(text) => serde_json::from_str(text),
        other => Ok(other.clone()),
    }
}

/// What the Preparations of this artifact say that it was made from.
fn collect_bases(artifact: &Artifact, cases: &[Case]) -> BTreeSet<Digest> {
    let preparations = cases.iter().flat_map(|case| case.preparations.values());
    preparations
        .filter(|p| p.object.spec.artifact.digest == artifact.digest)
        .filter_map(|p| p.object.spec.source.as_ref()?.base_digest)
        .collect()
}

fn compare_row(expected: &Expected, row: &PlanRow) -> Vec<String> {
    let mut differs = Vec::new();
    let decision = match row.decision {
        Decision::Promote(_) => "Promote",
        Decision::Hold => "Hold",
        Decision::Keep => "Keep",
        Decision::Broken => "Broken",
        Decision::Remove(_) => "Remove",
    };
    if let Some(wanted) = expected.decision.as_deref().filter(|wanted| *wanted != decision) {
        let errors: Vec<String> = row.errors.iter().map(ToString::to_string).collect();
        let why = if errors.is_empty() { String::new() } else { format!(" ({})", errors.join("; ")) };
        differs.push(format!("decision: wanted {wanted}, found {decision}{why}"));
    }
    for (name, wanted) in &expected.gates {
        let found = row.verdicts.iter().find(|v| v.gate.as_str() == name);
        match found {
            None if GATES.contains(&name.as_str()) => {
                differs.push(format!("{name}: wanted {}, found no candidate", wanted.is));
            }
            None => differs.push(format!("{name} is no gate; they are {}", GATES.join(", "))),
            Some(verdict) => differs.extend(describe_difference(wanted, verdict)),
        }
    }
    differs
}

const GATES: [&str; 7] = ["Ready", "Upstream", "Checks", "Approvals", "Evidence", "Window", "Opt-in"];

fn describe_difference(wanted: &ExpectedAnswer, verdict: &Verdict) -> Option<String> {
    let is = match &verdict.outcome {
        GateOutcome::Passed => "Passed",
        GateOutcome::Waiting(_) => "Waiting",
        GateOutcome::Failed => "Failed",
    };
    if is != wanted.is {
        return Some(format!("{}: wanted {}, found {is}: {}", verdict.gate, wanted.is, verdict.message));
    }
    let says = wanted.says.as_ref().filter(|part| !verdict.message.contains(part.as_str()))?;
    Some(format!("{}: wanted a message with {says:?}, found {:?}", verdict.gate, verdict.message))
}
