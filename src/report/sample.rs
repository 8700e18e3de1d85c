//! A plan with a row of every kind, for the tests of all its forms.

#![allow(clippy::unwrap_used)]

use crate::error::{At, Failure};
use crate::files::Change;
use crate::model::id::{
    Artifact, ClusterName, Digest, EnvironmentName, Namespace, OciRepository, OrderRef, PreparationName,
};
use crate::model::meta::{Condition, Meta};
use crate::model::naming;
use crate::model::order::Mode;
use crate::model::plan::{
    ApplicationAction, ApplicationPlan, Candidate, Decision, Pin, Plan, Promotion, Row, ServingPlan,
    ServingState,
};
use crate::model::reason::Ended;
use crate::model::serving::{HistoryEntry, Queued, RequestedBy, Serving, ServingSpec, ServingStatus};
use crate::model::time::Time;
use crate::model::verdict::{EvidenceRef, For, GateName, Verdict};
use crate::model::world::{GitOps, ServingFile};
use crate::report::preview::Preview;
use crate::report::view::{Drift, View, Written};
use std::collections::BTreeMap;
use std::sync::Arc;

pub struct Sample {
    pub plan: Plan,
    pub before: GitOps,
    pub changes: BTreeMap<String, Change>,
    pub drift: Vec<Drift>,
    pub preview: Preview,
}

impl Sample {
    pub fn view<'a>(&'a self, written: Option<&'a Written>) -> View<'a> {
        View {
            plan: &self.plan,
            before: &self.before,
            changes: &self.changes,
            drift: &self.drift,
            written,
            preview: &self.preview,
        }
    }
}

/// Compares with a file beside the sources; `BLESS=1` writes it.
#[track_caller]
pub fn same(expected: &str, text: &str) {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/report").join(expected);
    if std::env::var("BLESS").is_ok_and(|v| v == "1") {
        std::fs::write(&path, text).unwrap();
    }
    let before = std::fs::read_to_string(&path).unwrap();
    let diff = similar::TextDiff::from_lines(before.as_str(), text).unified_diff().to_string();
    assert!(diff.is_empty(), "{expected} differs (BLESS=1 accepts):\n{diff}");
}

pub fn order(text: &str) -> OrderRef {
    OrderRef::parse(text).unwrap()
}

pub fn now() -> Time {
    Time::parse("2026-03-10T12:00:00Z").unwrap()
}

fn name(text: &str) -> PreparationName {
    PreparationName::parse(text).unwrap()
}

pub fn row(reference: &str, mode: Mode, candidate: Option<&str>, decision: Decision) -> Row {
    Row {
        order: order(reference),
        origin: None,
        environment: Some(EnvironmentName::parse("production").unwrap()),
        mode,
        candidate: candidate.map(|text| Candidate {
            name: name(text),
            artifact: Artifact {
                repository: OciRepository::parse("registry.shop.example:5000/shop/app").unwrap(),
                digest: Digest::of(text.as_bytes()),
            },
            base_digest: None,
            target_namespace: Namespace::parse("shop").unwrap(),
            uid: None,
            commit_message: None,
            created: None,
        }),
        verdicts: Vec::new(),
        decision,
        errors: Vec::new(),
        warnings: Vec::new(),
        serving: ServingPlan::Keep,
        applications: Vec::new(),
        seal: None,
    }
}

pub fn pinned(row: &Row, cluster: &str) -> ApplicationPlan {
    let cluster = ClusterName::parse(cluster).unwrap();
    let application = naming::application_name(&row.order, &cluster).unwrap();
    let candidate = row.candidate.clone().unwrap();
    let pin = Pin {
        order: row.order.clone(),
        preparation: candidate.name,
        artifact: candidate.artifact,
        target_namespace: candidate.target_namespace,
        environment: row.environment.clone().unwrap(),
        project: "default".into(),
        on_delete: Default::default(),
        cluster: cluster.clone(),
        server: "https://eu-1.example".into(),
        name: application.clone(),
        argocd_namespace: "argocd".into(),
        found_finalizers: None,
    };
    applied(&row.order, cluster, ApplicationAction::Pin(Arc::new(pin)))
}

pub fn applied(order: &OrderRef, cluster: ClusterName, action: ApplicationAction) -> ApplicationPlan {
    let name = naming::application_name(order, &cluster).unwrap();
    ApplicationPlan { cluster, path: naming::application_path(order, &name), name, action }
}

pub fn serving(reference: &str, status: ServingStatus) -> (OrderRef, ServingFile) {
    let order = order(reference);
    let serving = Serving {
        metadata: Meta {
            name: order.name.to_string(),
            namespace: Some(order.namespace.clone()),
            creation_timestamp: Some(Time::parse("2026-03-05T12:00:00Z").unwrap()),
            ..Meta::default()
        },
        spec: ServingSpec {
            order_name: order.name.clone(),
            preparation_name: status.observed_preparation_name.clone(),
            requested: None,
            preparation_policy: None,
        },
        status,
        raw_status: None,
    };
    let file =
        ServingFile { path: naming::serving_path(&order), text: "".into(), serving: Ok(Arc::new(serving)) };
    (order, file)
}

pub fn status(deployed: &str) -> ServingStatus {
    let condition = |kind: &str, status: &str, reason: &str| Condition {
        kind: kind.into(),
        status: status.into(),
        reason: reason.into(),
        message: String::new(),
        last_transition_time: None,
        observed_generation: None,
    };
    ServingStatus {
        target_preparation_name: Some(name(deployed)),
        observed_preparation_name: Some(name(deployed)),
        deployed_digest: Some(Digest::of(deployed.as_bytes())),
        conditions: vec![
            condition("Ready", "True", "Deployed"),
            condition("Approved", "True", "ApprovalNotRequired"),
            condition("Verified", "True", "SignaturesVerified"),
        ],
        history: vec![HistoryEntry {
            preparation_name: name(deployed),
            digest: Digest::of(deployed.as_bytes()),
            base_digest: None,
            environment: Some(EnvironmentName::parse("production").unwrap()),
            promoted_time: Time::parse("2026-03-05T12:00:00Z").unwrap(),
            requested_by: Some(RequestedBy {
                name: "Ann <ann@shop.example>".into(),
                commit: None,
                signed_by: "unsigned".into(),
            }),
            first_healthy_time: Some(Time::parse("2026-03-05T12:05:00Z").unwrap()),
            ended_time: Some(Time::parse("2026-03-06T12:05:00Z").unwrap()),
            ended_reason: Some(Ended::Degraded),
            healthy_until: None,
            approval_record: None,
            promotion_record: None,
            deployment_record: None,
        }],
        ..ServingStatus::default()
    }
}

/// A promotion, a held one, a broken one, an unread one, a kept one with an edited file, one that goes.
pub fn sample() -> Sample {
    let mut before = GitOps::default();
    let (mut changes, mut rows) = (BTreeMap::new(), Vec::new());

    let mut web = row(
        "shop/web",
        Mode::Automatic,
        Some("web-2"),
        Decision::Promote(Promotion {
            previous: Some((name("web-1"), Digest::of(b"web-1"))),
            requested_by: RequestedBy {
                name: "automatic".into(),
                commit: None,
                signed_by: "unsigned".into(),
            },
            rollback: false,
        }),
    );
    web.verdicts = vec![Verdict {
        evidence: vec![EvidenceRef {
            kind: "artifact".into(),
            name: String::new(),
            digest: Some(Digest::of(b"web-2")),
            uri: String::new(),
            key: String::new(),
        }],
        ..Verdict::passed(GateName::Ready, "Ready and signed")
    }];
    web.applications = vec![pinned(&web, "eu-1")];
    web.serving = ServingPlan::Write(Box::new(ServingState {
        preparation_name: Some(name("web-2")),
        created: now(),
        status: status("web-2"),
    }));
    changes.insert(web.applications[0].path.clone(), Change::Write(b"x".to_vec()));
    changes.insert("servings/shop/web.yaml".into(), Change::Write(b"x".to_vec()));

    let mut cart = row("shop/cart", Mode::Manual, Some("cart-2"), Decision::Hold);
    cart.verdicts = vec![
        Verdict::passed(GateName::Ready, "Ready and signed"),
        Verdict::waiting(GateName::Approvals, For::Person(vec!["platform".into()]), "0 of 2 approvals"),
        Verdict::waiting(GateName::Window, For::Instant(now()), "outside of every window\n<b>@ann</b>"),
    ];
    let mut queued = status("cart-1");
    queued.queued = Some(Queued {
        preparation_name: name("cart-2"),
        waits_for: "Approvals".into(),
        message: "0 of 2 approvals".into(),
        since: now(),
    });

    let mut broken = row("shop/broken", Mode::Manual, None, Decision::Broken);
    broken.errors = vec![
        Failure::input("unknown-field", "there is no field \"promotoin\"")
            .of("Order shop/broken")
            .at(At { file: "objects/broken.yaml".into(), line: Some(4), column: Some(3) })
            .hint("did you mean promotion?"),
    ];

    let mut unread = row("shop/unread", Mode::Automatic, Some("unread-1"), Decision::Hold);
    unread.verdicts = vec![Verdict {
        unread: true,
        ..Verdict::waiting(GateName::Evidence, For::Registry, "registry.shop.example:5000 does not answer")
    }];

    let mut kept = row("shop/kept", Mode::Automatic, Some("kept-1"), Decision::Keep);
    kept.applications = vec![pinned(&kept, "eu-1")];
    let path = kept.applications[0].path.clone();
    changes.insert(path.clone(), Change::Write(b"x".to_vec()));
    let diff = crate::report::edit::diff(&path, "prune: true\n", Some("prune: false\n"));
    let drift = vec![Drift { path, what: "edited by hand, restored".into(), diff: Some(diff) }];

    let mut gone =
        row("shop/gone", Mode::Manual, None, Decision::Remove("its Order is gone from ./objects".into()));
    let cluster = ClusterName::parse("eu-1").unwrap();
    gone.applications =
        vec![applied(&gone.order, cluster, ApplicationAction::Remove("its Order is gone".into()))];
    gone.serving = ServingPlan::Remove;
    changes.insert(gone.applications[0].path.clone(), Change::Delete);

    before.servings.extend([
        serving("shop/web", status("web-1")),
        serving("shop/cart", queued),
        serving("shop/gone", status("gone-1")),
        serving("shop/kept", status("kept-1")),
        serving("dev/lone", status("lone-1")),
    ]);
    rows.extend([broken, cart, gone, kept, unread, web]);
    let plan = Plan {
        at: now(),
        head: None,
        rows,
        guard: None,
        problems: vec![Failure::input("not-yaml", "it does not parse").at(At::file("objects/freeze.yaml"))],
        notices: vec![Failure::input("unused", "no Order uses it").of("Environment qa")],
    };
    Sample { plan, before, changes, drift, preview: Preview::default() }
}
