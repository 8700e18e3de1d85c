//! The CustomResourceDefinitions say what the reader knows, no more and no less, and keep what the published
//! ones kept. `tests/it/cluster/definitions.rs` asks a real API server.

use crate::support::harness::Place;
use expedite::load::cluster::told::MEMBERS;
use expedite::load::folder::DiskFolder;
use expedite::load::{Input, read_world};
use expedite::model::approval::Approval;
use expedite::model::cluster::Cluster;
use expedite::model::crd;
use expedite::model::environment::Environment;
use expedite::model::kind::Kind;
use expedite::model::kitchen::Kitchen;
use expedite::model::order::Order;
use expedite::model::preparation::Preparation;
use expedite::model::serving::Serving;
use kube_yaml::{de, emit, parse};
use serde::Deserialize as _;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// `BLESS=1` rewrites them.
#[test]
fn the_committed_definitions_are_those_of_the_types() {
    let folder = root().join("deploy/crds");
    for kind in Kind::ALL {
        let file = folder.join(format!("{}.yaml", kind.plural()));
        let text = emit::format_document(&crd::build_definition(kind));
        if std::env::var_os("BLESS").is_some() {
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(&file, &text).unwrap();
        }
        let committed = std::fs::read_to_string(&file).unwrap_or_default();
        assert!(committed == text, "{} is not what the types say; BLESS=1 writes it", file.display());
    }
    let files = std::fs::read_dir(&folder).unwrap();
    let yaml = files.filter(|f| f.as_ref().unwrap().path().extension().is_some_and(|e| e == "yaml"));
    // Beside them, what lists them for kustomize.
    assert_eq!(yaml.count(), Kind::ALL.len() + usize::from(folder.join("kustomization.yaml").exists()));
}

/// One that is missing would be told to no cluster, and its change would be no news.
#[test]
fn every_member_of_a_servings_status_is_written_to_clusters() {
    let definition = crd::build_definition(Kind::Serving);
    let schema = "/spec/versions/0/schema/openAPIV3Schema/properties/status/properties";
    let defined = definition.pointer(schema).and_then(Value::as_object).unwrap();
    let defined: BTreeSet<&str> = defined.keys().map(String::as_str).collect();
    assert_eq!(BTreeSet::from(MEMBERS), defined);
}

#[test]
fn the_verb_prints_all_or_one_by_any_of_its_names() {
    let place = Place::new();
    let all = place.expedite(&["crds"]);
    let documents: Vec<Value> = serde_yaml::Deserializer::from_str(all.ok())
        .map(|document| Value::deserialize(document).unwrap())
        .collect();
    assert_eq!(documents, Kind::ALL.map(crd::build_definition));
    let one = place.expedite(&["crds", "serving"]).ok().to_owned();
    for name in ["servings", "Serving", "servings.delivery.kokumi.dev"] {
        assert_eq!(place.expedite(&["crds", name]).ok(), one, "{name}");
    }
    let wrong = place.expedite(&["crds", "servigs"]);
    wrong.exits(64);
    assert!(wrong.stderr.contains("did you mean servings?"), "{}", wrong.stderr);
}

/// An object with every member that a schema names, and a key `unheard` beside them.
fn full(schema: &Value) -> Value {
    if schema["x-kubernetes-int-or-string"] == true {
        return "1h".into();
    }
    match schema["type"].as_str() {
        Some("object") => match schema["properties"].as_object() {
            Some(properties) => {
                let mut all: serde_json::Map<_, _> =
                    properties.iter().map(|(name, schema)| (name.clone(), full(schema))).collect();
                all.insert("unheard".into(), "of".into());
                Value::Object(all)
            }
            None => json!({}),
        },
        Some("array") => json!([full(&schema["items"])]),
        Some("integer") => 1.into(),
        Some("boolean") => true.into(),
        Some("string") => string(schema).into(),
        Some(other) => panic!("{other} in {schema}"),
        None => json!({"any": "thing"}),
    }
}

fn string(schema: &Value) -> String {
    if let Some(word) = schema["enum"].get(0) {
        return word.as_str().unwrap().to_owned();
    }
    if schema["format"] == "date-time" {
        return "2026-01-15T09:30:00Z".into();
    }
    let texts = [
        "a".to_owned(),
        format!("sha256:{}", "0".repeat(64)),
        "0".repeat(40),
        "registry.shop.example/a".into(),
        format!("oci://registry.shop.example/a@sha256:{}", "0".repeat(64)),
        "09:00".into(),
    ];
    let validator = jsonschema::validator_for(schema).unwrap();
    let fits = |text: &&String| validator.is_valid(&Value::String((*text).clone()));
    texts.iter().find(fits).unwrap_or_else(|| panic!("no text for {schema}")).clone()
}

/// The members of every object, by path; list entries are number 0.
fn members(schema: &Value, path: &str, into: &mut BTreeMap<String, BTreeSet<String>>) {
    if let Some(properties) = schema["properties"].as_object() {
        into.insert(path.to_owned(), properties.keys().cloned().collect());
        for (name, schema) in properties {
            let below = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
            members(schema, &below, into);
        }
    }
    if schema["items"].is_object() {
        members(&schema["items"], &format!("{path}[0]"), into);
    }
}

/// The keys that the reader says it knows where it met one that it does not.
fn known_to_the_reader(kind: Kind, object: &Value) -> BTreeMap<String, BTreeSet<String>> {
    let node = parse::parse_one(&emit::format_document(object)).unwrap();
    let mut unknown = Vec::new();
    let read = match kind {
        Kind::Order => de::from_node::<Order>(&node, &mut unknown).map(drop),
        Kind::Preparation => de::from_node::<Preparation>(&node, &mut unknown).map(drop),
        Kind::Approval => de::from_node::<Approval>(&node, &mut unknown).map(drop),
        Kind::Serving => de::from_node::<Serving>(&node, &mut unknown).map(drop),
        Kind::Environment => de::from_node::<Environment>(&node, &mut unknown).map(drop),
        Kind::Cluster => de::from_node::<Cluster>(&node, &mut unknown).map(drop),
        Kind::Kitchen => de::from_node::<Kitchen>(&node, &mut unknown).map(drop),
    };
    read.unwrap_or_else(|e| panic!("{kind}: {e:?}\n{object:#}"));
    let unheard = unknown.into_iter().filter(|u| u.key == "unheard");
    unheard.map(|u| (u.path, u.known.iter().map(|k| (*k).to_owned()).collect())).collect()
}

/// What the reader does not look into: the renderer's.
const UNREAD: &[&str] = &[
    "spec.source",
    "spec.destination",
    "spec.edits",
    "spec.patches",
    "spec.menuRef",
    "spec.render",
    "spec.renderer",
    "spec.adminUser",
    "spec.preparationPolicy",
];

#[test]
fn a_definition_has_exactly_the_members_that_are_read() {
    for kind in Kind::ALL {
        let schema = crd::build_schema(kind);
        let mut said = BTreeMap::new();
        members(&schema, "", &mut said);
        let mut object = full(&schema);
        object["metadata"] = json!({"name": "a", "namespace": "a"});
        let mut known = known_to_the_reader(kind, &object);
        // Of every object, and of no kind's type; a Kitchen's status is its controller's alone.
        let top = known.get_mut("").unwrap();
        top.extend(["apiVersion", "kind"].map(str::to_owned));
        if kind == Kind::Kitchen {
            top.insert("status".into());
            said.retain(|path, _| !path.starts_with("status"));
        }
        let looked_into = |path: &str| {
            !UNREAD
                .iter()
                .any(|u| path.strip_prefix(u).is_some_and(|r| r.is_empty() || r.starts_with(['.', '['])))
                || known.contains_key(path)
        };
        said.retain(|path, _| looked_into(path));
        assert_eq!(said, known, "{kind}");
    }
}

#[test]
fn definitions_are_structural() {
    fn walk(schema: &Value, path: &str) {
        for word in ["$ref", "$defs", "$schema", "definitions", "title", "anyOf", "oneOf", "allOf", "const"] {
            assert!(schema.get(word).is_none(), "{path}: {word}");
        }
        let free = schema["x-kubernetes-preserve-unknown-fields"] == true;
        let typed = schema["type"].is_string() || schema["x-kubernetes-int-or-string"] == true;
        assert!(typed || free, "{path}: no type: {schema}");
        for (name, below) in schema["properties"].as_object().into_iter().flatten() {
            walk(below, &format!("{path}.{name}"));
            let described = below["description"].as_str().is_some_and(|text| !text.is_empty());
            assert!(described || path.is_empty(), "{path}.{name} has no description");
        }
        if schema["properties"].is_object() {
            assert!(free, "{path}: a misspelt key would vanish");
        }
        for below in ["items", "additionalProperties"] {
            if schema[below].is_object() {
                walk(&schema[below], &format!("{path}[]"));
            }
        }
    }
    for kind in Kind::ALL {
        walk(&crd::build_schema(kind), "");
        // As typed clients read it.
        let typed: k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition =
            serde_json::from_value(crd::build_definition(kind)).unwrap();
        assert_eq!(typed.spec.names.plural, kind.plural());
    }
}

/// A file of the published ones.
fn published(kind: Kind) -> Value {
    let path = root().join(format!("tests/data/kokumi/{}.yaml", kind.plural()));
    serde_yaml::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// What of the published schema ours has not, or refuses.
fn lost(published: &Value, ours: &Value, strict: bool, path: &str, found: &mut Vec<String>) {
    let mut say = |what: &str| found.push(format!("{path}: {what}"));
    if published["type"] != ours["type"] {
        say("another type");
    }
    if published["x-kubernetes-preserve-unknown-fields"] == true
        && ours["x-kubernetes-preserve-unknown-fields"] != true
    {
        say("is pruned");
    }
    if published.get("default") != ours.get("default") {
        say("another default");
    }
    let list = |schema: &Value, word: &str| -> BTreeSet<String> {
        schema[word].as_array().into_iter().flatten().map(Value::to_string).collect()
    };
    if !list(ours, "required").is_subset(&list(published, "required")) {
        say("more is required");
    }
    if ours.get("enum").is_some() && !list(published, "enum").is_subset(&list(ours, "enum")) {
        say("fewer words");
    }
    if strict {
        if ours.get("pattern").is_some_and(|ours| published.get("pattern") != Some(ours)) {
            say("another pattern");
        }
        let number = |schema: &Value, word: &str| schema[word].as_u64();
        for word in ["minLength", "minItems", "minimum"] {
            if number(ours, word).is_some_and(|ours| number(published, word).unwrap_or(0) < ours) {
                say(word);
            }
        }
        for word in ["maxLength", "maxItems", "maximum"] {
            if number(ours, word).is_some_and(|ours| number(published, word).is_none_or(|p| p > ours)) {
                say(word);
            }
        }
    }
    for (name, below) in published["properties"].as_object().into_iter().flatten() {
        match &ours["properties"][name] {
            // Kept, though not described.
            Value::Null
                if ours["x-kubernetes-preserve-unknown-fields"] == true && path.ends_with("status") => {}
            Value::Null => found.push(format!("{path}.{name}: is missing")),
            ours => lost(below, ours, strict, &format!("{path}.{name}"), found),
        }
    }
    for word in ["items", "additionalProperties"] {
        if published[word].is_object() {
            lost(&published[word], &ours[word], strict, &format!("{path}[]"), found);
        }
    }
}

#[test]
fn what_was_published_in_august_2026_is_kept() {
    for (kind, strict) in
        [(Kind::Order, true), (Kind::Preparation, true), (Kind::Serving, false), (Kind::Kitchen, false)]
    {
        let (theirs, ours) = (published(kind), crd::build_definition(kind));
        let mut found = Vec::new();
        let schema = |d: &Value| d["spec"]["versions"][0]["schema"]["openAPIV3Schema"].clone();
        lost(&schema(&theirs), &schema(&ours), strict, "", &mut found);
        assert_eq!(found, Vec::<String>::new(), "{kind}");
        for same in
            ["/metadata/name", "/spec/group", "/spec/scope", "/spec/names/kind", "/spec/names/singular"]
        {
            assert_eq!(theirs.pointer(same), ours.pointer(same), "{kind} {same}");
        }
        assert_eq!(
            theirs["spec"]["versions"][0]["subresources"],
            ours["spec"]["versions"][0]["subresources"]
        );
        if let Some(names) = theirs["spec"]["names"].get("shortNames") {
            assert_eq!(names, &ours["spec"]["names"]["shortNames"], "{kind}");
        }
        let columns = |d: &Value| -> BTreeSet<String> {
            let all = d["spec"]["versions"][0]["additionalPrinterColumns"].as_array().unwrap();
            all.iter().map(|c| c["name"].as_str().unwrap().to_owned()).collect()
        };
        let gone: Vec<_> = columns(&theirs).difference(&columns(&ours)).cloned().collect();
        // The guide has other columns for Servings.
        assert!(kind == Kind::Serving || gone.is_empty(), "{kind}: {gone:?}");
    }
}

/// Expected outputs say `sha256:promotion-…` for a digest that is another one every time.
fn digests_filled(text: &str) -> String {
    let mut parts = text.split("sha256:promotion-");
    let mut filled = parts.next().unwrap().to_owned();
    for part in parts {
        let rest = part.find(|c: char| !c.is_ascii_alphanumeric() && c != '-').unwrap();
        filled += &format!("sha256:{}{}", "0".repeat(64), &part[rest..]);
    }
    filled
}

/// Objects of our kinds in YAML files below a folder.
fn objects_below(folder: &Path) -> Vec<(PathBuf, Value)> {
    let mut all = Vec::new();
    for entry in walkdir::WalkDir::new(folder).sort_by_file_name() {
        let path = entry.unwrap().into_path();
        if path.extension().is_none_or(|e| e != "yaml") {
            continue;
        }
        let text = digests_filled(&std::fs::read_to_string(&path).unwrap());
        for document in serde_yaml::Deserializer::from_str(&text) {
            // What is no YAML for this reader is no object of the product's either.
            let Ok(object) = Value::deserialize(document) else { break };
            let ours = object["apiVersion"] == "delivery.kokumi.dev/v1alpha1";
            if ours && object["kind"].as_str().and_then(Kind::parse).is_some() {
                all.push((path.clone(), object));
            }
        }
    }
    all
}

#[test]
fn every_object_of_the_fixtures_is_let_in() {
    let mut objects = objects_below(&root().join("fixtures"));
    objects.extend(objects_below(&root().join("tests/data/objects")));
    let kinds: BTreeSet<&str> = objects.iter().map(|(_, o)| o["kind"].as_str().unwrap()).collect();
    assert!(objects.len() > 40 && kinds.len() == 7, "{} of {kinds:?}", objects.len());
    let mut wrong = Vec::new();
    for (path, object) in objects {
        let kind = Kind::parse(object["kind"].as_str().unwrap()).unwrap();
        let validator = jsonschema::validator_for(&crd::build_schema(kind)).unwrap();
        for error in validator.iter_errors(&object) {
            wrong.push(format!("{}: {kind} {}: {error}", path.display(), error.instance_path()));
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
}

/// What the file of examples says is what the product reads: a member that it did not know would be an error.
#[test]
fn the_examples_read_without_a_word() {
    let folder = DiskFolder::new("objects", root().join("tests/data/objects"));
    let input =
        Input { name: "path:objects".into(), files: &folder, kinds: None, namespaces: None, skip: &[] };
    let world = read_world(&[input], None);
    let problems: Vec<String> = world.problems.iter().map(|p| p.failure.to_string()).collect();
    assert_eq!(problems, Vec::<String>::new());
    assert_eq!((world.orders.len(), world.preparations.len(), world.approvals.len()), (4, 2, 1));
}

/// The members that an object has, as [`members`] writes them.
fn present(value: &Value, path: &str, into: &mut BTreeSet<String>) {
    for (name, value) in value.as_object().into_iter().flatten() {
        let below = format!("{path}.{name}");
        present(value, &below, into);
        into.insert(below);
    }
    for item in value.as_array().into_iter().flatten() {
        present(item, &format!("{path}[0]"), into);
    }
}

/// Members that name a file beside the object: a cluster has none.
const NOT_SHOWN: &[&str] = &[
    "Kitchen spec.trust.identities[0].trustedRoot",
    "Kitchen spec.trust.keys[0].publicKeyFile",
    "Kitchen spec.trust.trustedRoot",
];

/// A real API server keeps what the examples say; so they say everything.
#[test]
fn the_examples_show_every_member() {
    let mut shown: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (_, object) in objects_below(&root().join("tests/data/objects")) {
        let kind = object["kind"].as_str().unwrap().to_owned();
        present(&object["spec"], "spec", shown.entry(kind).or_default());
    }
    let mut missing = Vec::new();
    for kind in Kind::ALL {
        let mut all = BTreeMap::new();
        members(&crd::build_schema(kind)["properties"]["spec"], "spec", &mut all);
        let all = all.iter().flat_map(|(path, names)| names.iter().map(move |name| format!("{path}.{name}")));
        missing.extend(
            all.filter(|path| !shown[kind.as_str()].contains(path)).map(|path| format!("{kind} {path}")),
        );
    }
    missing.sort();
    assert_eq!(missing, NOT_SHOWN);
}
