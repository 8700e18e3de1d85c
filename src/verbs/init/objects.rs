//! The first objects of an empty repository: an Order, and whom the Kitchen trusts.

use super::Init;
use crate::error::{At, Failure};
use crate::evidence::keys::PublicKey;
use crate::model::kitchen::Role;
use crate::model::naming::API_VERSION;
use crate::settings::Settings;
use crate::verbs::flags::Common;
use crate::verbs::setup;
use crate::verbs::setup::Outside;
use crate::verbs::setup::signer;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use kube_yaml::emit;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

/// What stands before the Order's object.
const ORDER: &str = "\
# What is deployed. Automatic takes the newest Preparation whose gates pass; Manual waits for expedite promote.
";

/// What stands before the Kitchen.
const KITCHEN: &str = "\
# Whom this repository trusts: who signs artifacts and their provenance, and who signs the runs' records.
";

/// Path and text of the files that the flags ask for.
///
/// # Errors
/// An Order without a namespace, a file that is no usable public key, or a key to sign with that cannot be read.
pub fn build_first_files(
    common: &Common,
    args: &Init,
    outside: &Outside,
) -> Result<Vec<(String, String)>, Failure> {
    let mut files = Vec::new();
    if let Some(order) = &args.order {
        let order = setup::parse_order(order, common)?;
        let object = json!({
            "apiVersion": API_VERSION,
            "kind": "Order",
            "metadata": {"name": order.name, "namespace": order.namespace},
            "spec": {"promotion": {"mode": "Automatic"}},
        });
        let path = format!("objects/{}/{}.yaml", order.namespace, order.name);
        files.push((path, format!("{ORDER}{}", emit::format_document(&object))));
    }
    if !args.trust.is_empty() {
        let text = emit::format_document(&build_kitchen(common, args, outside)?);
        files.push(("objects/kitchen.yaml".to_owned(), format!("{KITCHEN}{text}")));
    }
    Ok(files)
}

fn build_kitchen(common: &Common, args: &Init, outside: &Outside) -> Result<Value, Failure> {
    let mut keys = Vec::new();
    for path in &args.trust {
        let name = path.file_stem().map_or("key".into(), |stem| stem.to_string_lossy().into_owned());
        let pem: String = read_public_keys(path)?.iter().map(format_pem).collect();
        keys.push(
            json!({"name": name, "roles": list_roles(&[Role::Signature, Role::Provenance]), "publicKey": pem}),
        );
    }
    // No settings: they are what is being written.
    if let Some(signer) = signer::read_signer(common, &Settings::default(), outside)? {
        let roles = list_roles(&[Role::Approvals, Role::Records]);
        keys.push(json!({"name": "expedite", "roles": roles, "publicKey": format_pem(signer.public_key())}));
    }
    Ok(json!({
        "apiVersion": API_VERSION,
        "kind": "Kitchen",
        "metadata": {"name": "default"},
        "spec": {"registries": [args.registry], "trust": {"keys": keys}},
    }))
}

fn list_roles(all: &[Role]) -> Vec<&'static str> {
    all.iter().map(|role| role.as_str()).collect()
}

fn read_public_keys(path: &Path) -> Result<Vec<PublicKey>, Failure> {
    let wrong = |cause: String| {
        Failure::new_input("public-key", cause)
            .with_object("--trust")
            .with_place(At::from_file(path.display().to_string()))
            .with_hint(
                "it is the public half: cosign.pub of cosign generate-key-pair, or openssl pkey -pubout",
            )
    };
    let text = fs::read_to_string(path).map_err(|error| wrong(format!("cannot read it: {error}")))?;
    PublicKey::from_pem(&text).map_err(wrong)
}

/// As PEM, whatever stood around it in its file.
fn format_pem(key: &PublicKey) -> String {
    let text = BASE64_STANDARD.encode(key.spki());
    let mut pem = "-----BEGIN PUBLIC KEY-----\n".to_owned();
    for line in text.as_bytes().chunks(64) {
        pem.extend(line.iter().map(|byte| char::from(*byte)));
        pem.push('\n');
    }
    pem + "-----END PUBLIC KEY-----\n"
}
