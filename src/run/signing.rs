//! What is to be said of the key that a run signs with.

use super::Decided;
use crate::error::Failure;
use crate::evidence::judge;
use crate::evidence::keys::{KeyRing, PublicKey};
use crate::model::kitchen::{KitchenSpec, Role};
use crate::policy::resolve::Case;

/// A run that keeps records has nothing to sign them with.
#[must_use]
pub fn make_no_key() -> Failure {
    Failure::new_input("no-signing-key", "there is no key to sign the records of promotions with")
        .with_object("the signing key")
        .with_hint("name one: --key FILE, EXPEDITE_KEY, signing.keyFile in the settings, or --signer COMMAND for a KMS")
        .with_hint("openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out job.key makes one; its public key belongs into the Kitchen's trust, with roles [approvals, records]")
        .with_hint("--no-records goes without records: history is taken at its word, and where approvals are asked for nothing is promoted")
}

/// What the run signs proves nothing where the Kitchen does not trust its key for it.
#[must_use]
pub fn check_key(key: &PublicKey, decided: &Decided) -> Option<Failure> {
    let ring = KeyRing::from_kitchen(
        decided.world.kitchen.as_ref().map_or(&KitchenSpec::default(), |k| &k.object.spec),
    );
    let known = ring.keys().iter().find(|trusted| trusted.key.fingerprint() == key.fingerprint());
    let votes = decided.cases.iter().any(Case::needs_approvals);
    let wanted = [Some(Role::Records), votes.then_some(Role::Approvals)];
    let lacks: Vec<&str> = wanted
        .into_iter()
        .flatten()
        .filter(|role| known.is_none_or(|key| key.find_name(*role).is_none()))
        .map(judge::format_role)
        .collect();
    // Where the Kitchen's keys are wrong, that is said already, and none counts.
    if lacks.is_empty() || !ring.state().errors.is_empty() {
        return None;
    }
    let cause = format!(
        "the Kitchen does not trust this run's key ({}) for {}: what the run signs proves nothing to later runs",
        key.fingerprint(),
        lacks.join(" and ")
    );
    let hint = format!("add its public key to the Kitchen's trust.keys, with roles [{}]", lacks.join(", "));
    Some(Failure::new_input("signing-key-untrusted", cause).with_object("the signing key").with_hint(hint))
}
