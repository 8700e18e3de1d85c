//! Each gate, passing and holding, in scenarios of `docs/design/promotion.md#gates`: without git, YAML or a registry.

mod chains;
mod checks;
mod claims;
mod deployed_scans;
mod history;
mod observed;
mod opt_in;
mod pins;
mod proof_of_upstream;
mod ready;
mod upstream;
mod window;

use crate::support::argo::{Argo, at, edit};
use crate::support::sim::*;
use expedite::model::evidence::*;
use expedite::model::id::*;
use expedite::model::plan::*;
use expedite::model::reason::{Ended, Verified};
use expedite::model::time::{Span, Time};
use expedite::model::verdict::{For, GateName, GateOutcome, Verdict};
use serde_json::{Value, json};
use std::sync::Arc;

const SHOP: &str = "shop/podinfo";
const STAGING: &str = "staging/podinfo";

fn row<'p>(plan: &'p Plan, of: &str) -> &'p PlanRow {
    plan.rows.iter().find(|r| r.order == order(of)).unwrap()
}

fn gate<'p>(plan: &'p Plan, of: &str, gate: GateName) -> &'p Verdict {
    row(plan, of).verdicts.iter().find(|v| v.gate == gate).expect("there is a candidate")
}

fn with(gates: &str) -> String {
    format!("{{environment: production, promotion: {{mode: Automatic, {gates}}}}}")
}

/// What the Upstream gate says, without the reminder that history was taken at its word.
fn upstream_says(plan: &Plan) -> String {
    let told = "; judged by history alone: this repository keeps no signed records";
    let message = &gate(plan, SHOP, GateName::Upstream).message;
    message.strip_suffix(told).expect("it is said").to_owned()
}

/// `staging/podinfo` in dev, and `shop/podinfo` in production behind it.
fn chain(gates: &str) -> Sim {
    let mut sim = Sim::shop();
    sim.order(STAGING, "{environment: dev, promotion: {mode: Automatic}}");
    sim.order(SHOP, &with(gates));
    sim
}

/// The same artifact rendered for both Orders of [`chain`].
fn same_artifact(sim: &mut Sim, name: &str, minute: u64) {
    let artifact = format!("signed: true}}, source: {{baseDigest: \"{}\"", digest("base"));
    for of in [STAGING, SHOP] {
        sim.preparation_of(of, name, minute, name, &artifact);
    }
}
