//! A small fleet of its own for one test: Orders by their names in one Environment, artifacts with evidence in
//! image layouts, the run's own key.

use super::forge::Renderer;
use super::harness::Place;
use expedite::model::approval::Ballot;
use expedite::model::id::{Digest, Namespace, PreparationName};
use expedite::model::time::Time;
use expedite::policy::gates::ssh_vote;
use p256::pkcs8::{EncodePrivateKey as _, EncodePublicKey as _, LineEnding};
use ssh_key::private::{Ed25519Keypair, KeypairData};

/// What every object begins with.
pub const HEAD: &str = "apiVersion: delivery.kokumi.dev/v1alpha1\nkind:";

/// The registry's host, as Preparations name it.
pub const HOST: &str = "registry.shop.example:5000";

/// The file with the run's own key, in the place.
pub const KEY: &str = "job.pem";

/// Renders, signs and attests everything here.
pub fn renderer() -> Renderer {
    Renderer::new(7)
}

/// Who may vote.
pub fn ann() -> ssh_key::PrivateKey {
    ssh_key::PrivateKey::new(KeypairData::Ed25519(Ed25519Keypair::from_seed(&[7; 32])), "ann").unwrap()
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("        {line}\n")).collect()
}

/// Writes the Kitchen, one Cluster, one Environment, and the run's own key.
pub fn ground(place: &Place) {
    let secret = p256::SecretKey::from_slice(&[9; 32]).unwrap();
    place.write(KEY, secret.to_pkcs8_pem(LineEnding::LF).unwrap().as_bytes());
    let job = secret.public_key().to_public_key_pem(LineEnding::LF).unwrap();
    let ann = ann().public_key().to_openssh().unwrap();
    place.write(
        "objects/all.yaml",
        format!(
            "{HEAD} Kitchen\nmetadata: {{name: default}}\nspec:\n  trust:\n    keys:\n    - name: renderer\n      publicKey: |\n{}    \
             - name: job\n      roles: [approvals, records]\n      publicKey: |\n{}  approvers:\n  \
             - {{issuer: \"https://idp.example\", subject: \"4711\", username: ann, groups: [platform], sshKeys: [\"{ann}\"]}}\n---\n\
             {HEAD} Cluster\nmetadata: {{name: c}}\nspec: {{server: \"https://c.example\"}}\n---\n\
             {HEAD} Environment\nmetadata: {{name: e}}\nspec: {{clusters: [c]}}\n",
            indented(&renderer().public_key()),
            indented(&job),
        ),
    );
}

/// Settings with the repository at `url` and the registry as `registry` says (flow style).
pub fn settings(place: &Place, url: &str, registry: &str) {
    place.write(
        "expedite.yaml",
        format!(
            "sources: [{{path: ./objects}}]\nrepository: {{url: {url:?}, branch: main, create: true}}\n\
             registries: {{{HOST:?}: {registry}}}\nlimits: {{maxTries: 40}}\n"
        ),
    );
}

/// Writes an Order with this `promotion`.
pub fn order(place: &Place, order: &str, promotion: &str) {
    let (namespace, name) = order.split_once('/').unwrap();
    place.write(
        &format!("objects/{order}/order.yaml"),
        format!(
            "{HEAD} Order\nmetadata: {{name: {name}, namespace: {namespace}}}\nspec: {{environment: e, promotion: {promotion}}}\n"
        ),
    );
}

/// Makes an artifact for `order` and writes its Preparation `<name>-<version>`; its digest. `repository` is
/// where it is said to be in the registry.
pub fn prepare(place: &Place, order: &str, version: u32, repository: &str) -> String {
    let (text, built) = (format!("{order} {version}"), created(version).to_string());
    let digest = renderer().prepare_at(&place.path("registry"), order, &text, &built);
    preparation(place, order, version, repository, &digest);
    digest
}

/// When a version was built: a later one later.
fn created(version: u32) -> Time {
    Time::from_unix(1_767_225_600 + i64::from(version) * 60)
}

/// Writes the Preparation `<name>-<version>` of an artifact.
pub fn preparation(place: &Place, order: &str, version: u32, repository: &str, digest: &str) {
    let (namespace, name) = order.split_once('/').unwrap();
    let created = created(version);
    place.write(
        &format!("objects/{order}/{version}.yaml"),
        format!(
            "{HEAD} Preparation\nmetadata: {{name: {name}-{version}, namespace: {namespace}, creationTimestamp: \"{created}\"}}\n\
             spec:\n  orderName: {name}\n  artifact:\n    ociRef: oci://{HOST}/{repository}@{digest}\n    digest: {digest}\n    signed: true\n"
        ),
    );
}

/// Ann approves the Preparation.
pub fn approve(place: &Place, order: &str, version: u32, digest: &str, when: Time) {
    let (namespace, name) = order.split_once('/').unwrap();
    let preparation = PreparationName::parse(&format!("{name}-{version}")).unwrap();
    let in_namespace = Namespace::parse(namespace).unwrap();
    let message = ssh_vote::build_vote_bytes(
        &in_namespace,
        &preparation,
        Digest::parse(digest).unwrap(),
        Ballot::Approve,
        when,
    );
    let signature = ann().sign(ssh_vote::NAMESPACE, ssh_key::HashAlg::Sha512, &message).unwrap();
    let vote = serde_json::json!({
        "apiVersion": "delivery.kokumi.dev/v1alpha1",
        "kind": "Approval",
        "metadata": {"name": format!("ann-{version}"), "namespace": namespace},
        "spec": {
            "preparationRef": {"name": preparation, "artifactDigest": digest},
            "approver": {"issuer": "https://idp.example", "subject": "4711", "username": "ann"},
            "decision": "Approve",
            "submittedTime": when,
            "signature": signature.to_pem(ssh_key::LineEnding::LF).unwrap(),
        },
    });
    place.write(&format!("objects/{order}/vote-{version}.yaml"), vote.to_string());
}
