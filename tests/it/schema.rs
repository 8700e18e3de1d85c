//! What is published about us is true: schemas, manual pages, completions.

use crate::support::harness;
use crate::support::harness::Place;
use serde_json::{Value, json};
use std::collections::BTreeSet;

const AT: &str = "2026-02-10T12:00:00Z";

/// A schema as the binary prints it.
fn schema(place: &Place, name: &str) -> Value {
    serde_json::from_str(place.expedite(&["schema", name]).ok()).unwrap()
}

#[track_caller]
fn holds(schema: &Value, document: &Value, what: &str) {
    let validator = jsonschema::validator_for(schema).unwrap();
    let errors: Vec<String> =
        validator.iter_errors(document).map(|e| format!("{}: {e}", e.instance_path())).collect();
    assert!(errors.is_empty(), "{what}: {errors:#?}\n{document:#}");
}

/// No member is printed that the schema does not name.
#[track_caller]
fn closed(mut schema: Value, document: &Value, what: &str) {
    fn close(value: &mut Value) {
        match value {
            Value::Object(members) => {
                members.values_mut().for_each(close);
                if members.get("properties").is_some_and(Value::is_object) {
                    members.insert("unevaluatedProperties".into(), false.into());
                }
            }
            Value::Array(items) => items.iter_mut().for_each(close),
            _ => {}
        }
    }
    close(&mut schema);
    holds(&schema, document, what);
}

#[test]
fn outputs_are_what_their_schemas_say() {
    let place = Place::with_shop();
    let verb = |arguments: &[&str]| {
        let said =
            place.expedite(&[arguments, &["-o", "json", "--config", "expedite.yaml", "--at", AT]].concat());
        serde_json::from_str::<Value>(said.ok()).unwrap_or_else(|e| panic!("{arguments:?}: {e}"))
    };
    let artifact = repository_digest(&place);
    let check = |name: &str, arguments: &[&str]| {
        let document = verb(arguments);
        closed(schema(&place, name), &document, &format!("{arguments:?}"));
    };
    check("plan-v1.json", &["plan"]);
    place.expedite(&["run", "--config", "expedite.yaml", "--at", AT]).ok();
    check("plan-v1.json", &["plan"]);
    check("explanation-v1.json", &["explain", "shop/search"]);
    check("open-promotions-v1.json", &["open"]);
    check("servings-v1.json", &["get", "servings"]);
    check("orders-v1.json", &["get", "orders"]);
    check("preparations-v1.json", &["get", "preparations"]);
    check("history-v1.json", &["get", "history", "shop/catalog"]);
    check("history-verification-v1.json", &["verify-history"]);
    check("verification-v1.json", &["verify", &artifact, "--order", "shop-dev/catalog"]);
}

/// What shop-dev/catalog deploys.
fn repository_digest(place: &Place) -> String {
    let text = place.read("objects/preparations/shop-dev-catalog.yaml");
    let digest = text.rsplit("digest: ").next().unwrap().lines().next().unwrap().trim().trim_matches('"');
    let digest = &digest[digest.find("sha256:").unwrap()..];
    format!("registry.shop.example:5000/shop-dev/catalog@{}", &digest[..71])
}

#[test]
fn a_schema_of_no_such_name_is_a_usage_error_that_names_the_nearest() {
    let place = Place::new();
    let said = place.expedite(&["schema", "plan-v2.json"]);
    said.exits(64);
    assert!(said.stderr.contains("did you mean plan-v1.json?"), "{}", said.stderr);
    let names = place.expedite(&["schema"]);
    place.expedite(&["schema", "--dir", "out"]).ok();
    let written: BTreeSet<String> = std::fs::read_dir(place.path("out"))
        .unwrap()
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(names.ok().lines().map(str::to_owned).collect::<BTreeSet<_>>(), written);
    for name in written {
        let text: Value = serde_json::from_str(&place.read(&format!("out/{name}"))).unwrap();
        jsonschema::meta::validate(&text).unwrap_or_else(|e| panic!("{name}: {e}"));
    }
}

/// One document with everything that a schema of settings names.
fn example(schema: &Value) -> Value {
    if let Some(example) = schema["examples"].get(0) {
        return example.clone();
    }
    if let Some(default) = schema.get("default") {
        return default.clone();
    }
    match schema["type"].as_str().unwrap() {
        "object" => {
            let members = schema["properties"].as_object().unwrap();
            members
                .iter()
                .map(|(key, value)| (key.clone(), example(value)))
                .collect::<serde_json::Map<_, _>>()
                .into()
        }
        "array" => json!([example(&schema["items"])]),
        other => panic!("no example of {other}: {schema}"),
    }
}

#[test]
fn the_settings_reader_and_the_settings_schema_know_the_same_keys() {
    let place = Place::with_shop();
    let schema = schema(&place, "settings.json");
    // All that the schema names is read …
    let mut all = example(&schema);
    let source = all["sources"][0].clone();
    all["sources"] = json!([
        {"path": source["path"], "kinds": source["kinds"], "namespaces": source["namespaces"]},
        {"cluster": source["cluster"]},
    ]);
    let mut registry = example(&schema["properties"]["registries"]["additionalProperties"]);
    registry.as_object_mut().unwrap().remove("mirror");
    let mut mirrored = registry.clone();
    mirrored.as_object_mut().unwrap().remove("layout");
    mirrored["mirror"] = "http://127.0.0.1:1".into();
    all["registries"] = json!({"a.example": registry, "b.example": mirrored});
    holds(&schema, &all, "the whole example");
    let folder = place.path("settings.yaml");
    place.write("settings.yaml", all.to_string());
    let read = expedite::settings::Settings::read_file(&folder, Some(place.root()));
    assert!(read.is_ok(), "{:#?}", read.err());
    // … and all that is read is named.
    let source = std::fs::read_to_string(harness::package().join("src/settings/read.rs")).unwrap();
    let text = schema.to_string();
    let mut keys = 0;
    for way in [
        ".take_value(\"",
        ".require_value(\"",
        ".take_section(\"",
        ".take_items(\"",
        ".take_entries(\"",
        "take_items(&mut root, \"",
    ] {
        for rest in source.split(way).skip(1) {
            let key = rest.split('"').next().unwrap();
            assert!(text.contains(&format!("\"{key}\":{{")), "the schema does not name {key}");
            keys += 1;
        }
    }
    assert!(keys > 25, "{keys}");
    // The shop's own settings hold.
    let shop: Value = serde_yaml::from_str(&place.read("expedite.yaml")).unwrap();
    holds(&schema, &shop, "the shop's settings");
}

#[test]
fn there_is_a_manual_page_for_every_verb_and_a_completion_for_every_shell() {
    let place = Place::new();
    let help = place.expedite(&["--help"]);
    let verbs: Vec<&str> = help
        .ok()
        .split("Commands:\n")
        .nth(1)
        .unwrap()
        .lines()
        .take_while(|line| !line.is_empty())
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    assert!(verbs.contains(&"run") && verbs.contains(&"schema"), "{verbs:?}");
    place.expedite(&["man", "--dir", "man1"]).ok();
    assert!(place.expedite(&["man"]).ok().contains(".TH expedite 1"));
    for verb in verbs {
        let page = place.read(&format!("man1/expedite-{verb}.1"));
        assert!(
            page.contains(&format!("expedite\\-{}", verb.replace('-', "\\-")))
                && page.contains("\\-\\-config"),
            "{verb}: {page}"
        );
    }
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        assert!(place.expedite(&["completions", shell]).ok().contains("allow-removals"), "{shell}");
    }
    let mut bash = place.command("bash");
    place.write("completions.sh", place.expedite(&["completions", "bash"]).ok());
    bash.args(["-c", "source completions.sh; COMP_WORDS=(expedite prom); COMP_CWORD=1; _expedite expedite prom; echo ${COMPREPLY[*]}"]);
    assert_eq!(place.finish(bash).ok(), "promote\n");
}
