//! What deciding costs on a large fleet with every gate in use: `cargo bench --bench gates [-- ORDERS]`
//! (10,000 when none is given). Half of the Orders are a staging that soaked, the other half wait behind them
//! for a soak, two checks, two signed votes, a seal and a window, and are all promoted in the measured run.
//!
//! Evidence, records and votes are verified before the clock starts; what that costs is shown apart.

// A table on stdout is the result; a fleet that cannot be built is a failed benchmark.
#![allow(clippy::print_stdout, clippy::unwrap_used, clippy::panic)]

#[allow(dead_code)] // It uses a part of the file.
#[path = "../tests/it/support/argo.rs"]
mod argo;
#[allow(dead_code)] // It uses a part of the file.
#[path = "../tests/it/support/sim.rs"]
mod sim;

use argo::{Argo, at};
use expedite::model::approval::*;
use expedite::model::evidence::*;
use expedite::model::id::*;
use expedite::model::meta::Meta;
use expedite::model::order::ApprovalPolicy;
use expedite::model::plan::Decision;
use expedite::policy::gates::ssh_vote;
use expedite::policy::{decide, gates, resolve};
use serde_json::json;
use sim::*;
use ssh_key::private::{Ed25519Keypair, KeypairData};
use ssh_key::{HashAlg, LineEnding, PrivateKey};
use std::time::Instant;

const TEST_RESULT: &str = "https://in-toto.io/attestation/test-result/v0.1";

fn main() {
    let asked = std::env::args().filter_map(|word| word.replace(',', "").parse().ok()).next();
    let orders: usize = asked.unwrap_or(10_000);
    let mut sim = fleet(orders / 2);
    let start = Instant::now();
    let cases = resolve::resolve_cases(&sim.world, &sim.gitops, "argocd");
    let resolved = start.elapsed();
    let start = Instant::now();
    assert!(!gates::collect_asks(&cases, &sim.context()).is_empty());
    let verified = start.elapsed();
    let (cases, facts, context) = sim.judged();
    let best = (0..3)
        .map(|_| {
            let start = Instant::now();
            let plan = decide::decide_plan(&cases, &facts, &sim.world, &sim.gitops, &context, &sim.options);
            let took = start.elapsed();
            let promoted = plan.rows.iter().filter(|r| matches!(r.decision, Decision::Promote(_))).count();
            assert_eq!(promoted, orders / 2, "every waiting Order is promoted");
            took
        })
        .min()
        .unwrap();
    let ms = |d: std::time::Duration| d.as_secs_f64() * 1e3;
    println!("{orders} Orders, every gate in use");
    println!("{:<44} {:>10.1} ms", "resolve", ms(resolved));
    println!("{:<44} {:>10.1} ms", "what to ask, verifying every vote", ms(verified));
    println!("{:<44} {:>10.1} ms", "gates and decide", ms(best));
}

fn key(person: u8) -> PrivateKey {
    PrivateKey::new(KeypairData::Ed25519(Ed25519Keypair::from_seed(&[person; 32])), "x").unwrap()
}

fn fleet(pairs: usize) -> Sim {
    let mut sim = Sim::shop();
    let approvers: Vec<String> = [1u8, 2]
        .iter()
        .map(|n| {
            let line = key(*n).public_key().to_openssh().unwrap();
            format!("{{issuer: i, subject: \"{n}\", username: \"{n}\", groups: [platform], sshKeys: [\"{line}\"]}}")
        })
        .collect();
    sim.kitchen(&format!("{{approvers: [{}]}}", approvers.join(", ")));
    for n in 0..pairs {
        sim.order(&format!("staging/app-{n}"), "{environment: dev, promotion: {mode: Automatic}}");
        sim.preparation_of(
            &format!("staging/app-{n}"),
            &format!("p{n}"),
            1,
            &format!("p{n}"),
            "signed: true",
        );
    }
    sim.run();
    Argo::healthy_since(at("09:00")).look(&mut sim, &[]);
    sim.run();
    for n in 0..pairs {
        sim.sign_history(&format!("staging/app-{n}"));
    }
    sim.records = true;
    sim.now = at("11:00");
    Argo::healthy_since(at("09:00")).look(&mut sim, &[]);
    let policy = ApprovalPolicy { required_approvals: 2, allowed_groups: vec!["platform".into()] };
    for n in 0..pairs {
        let of = format!("shop/app-{n}");
        sim.order(&of, &format!(
            "{{environment: production, promotion: {{mode: Automatic, upstream: [{{order: staging/app-{n}, soak: 1h}}], approvals: {{requiredApprovals: 2, allowedGroups: [platform]}}, checks: [{{name: e2e, attestation: {{predicateType: \"{TEST_RESULT}\", expression: \"result == 'PASSED' and failed|length == 0\"}}}}, {{name: scan, vulnerabilities: {{maxCritical: 0, maxAge: 72h}}}}], windows: [{{timezone: Europe/Zurich, days: [Mon], from: \"09:00\", to: \"16:00\"}}]}}}}"
        ));
        let name = format!("p{n}");
        sim.preparation_of(&of, &name, 1, &name, "signed: true");
        for person in [1u8, 2] {
            vote(&mut sim, &format!("v{n}-{person}"), person, &name);
        }
        let known = sim.extra.entry(digest(&name)).or_default();
        let mut proof = statement("x", json!({"result": "PASSED", "failed": []}));
        let inner = proof.statement.take().unwrap();
        let inner = Statement { predicate_type: TEST_RESULT.into(), ..(*inner).clone() };
        proof.statement = Some(std::sync::Arc::new(inner));
        known.attestations.insert(TEST_RESULT.into(), Evidence::Proven(vec![proof]));
        known.scans = Some(Evidence::Proven(vec![ScanProof {
            proof: statement("scan", json!({})),
            scanner: "trivy".into(),
            finished_on: at("08:00"),
            counts: Some(ScanCounts::default()),
            fixable: None,
        }]));
        let seal = SealProof {
            proof: statement("approval", json!({})),
            sealed_time: at("10:00"),
            policy: policy.clone(),
            result: "Approved".into(),
        };
        let of = SealOf { order: order(&of), preparation: preparation(&name), uid: None };
        known.approvals.insert(of, Evidence::Proven(seal));
    }
    sim
}

fn vote(sim: &mut Sim, vote: &str, person: u8, of: &str) {
    let namespace = Namespace::parse("shop").unwrap();
    let (name, digest, when) = (preparation(of), digest(of), at("10:00"));
    let message = ssh_vote::build_vote_bytes(&namespace, &name, digest, Ballot::Approve, when);
    let signature = key(person).sign(ssh_vote::NAMESPACE, HashAlg::Sha512, &message).unwrap();
    let approval = Approval {
        metadata: Meta { name: vote.into(), namespace: Some(namespace.clone()), ..Meta::default() },
        spec: ApprovalSpec {
            preparation_ref: PreparationRef { name, uid: None, artifact_digest: digest },
            approver: Approver {
                issuer: "i".into(),
                subject: person.to_string(),
                username: person.to_string(),
                email: None,
                groups: Vec::new(),
            },
            decision: Ballot::Approve,
            comment: None,
            submitted_time: when,
            signature: Some(signature.to_pem(LineEnding::LF).unwrap()),
        },
    };
    sim.world.approvals.insert((namespace, vote.into()), loaded(approval, "approvals.yaml"));
}
