//! A plan with a row of every kind, for the tests of all its forms.

#![allow(clippy::unwrap_used)]

use crate::error::{At, Failure};
use crate::files::FileChange;
use crate::model::id::{
    Artifact, ClusterName, Digest, EnvironmentName, Namespace, OciRepository, OrderRef, PreparationName,
};
use crate::model::meta::{Condition, Meta};
use crate::model::naming;
use crate::model::order::Mode;
use crate::model::plan::{
    ApplicationAction, ApplicationPlan, Candidate, Decision, Pin, Plan, PlanRow, Promotion, ServingPlan,
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
    pub changes: BTreeMap<String, FileChange>,
    pub drift: Vec<Drift>,
    pub preview: Preview,
}

impl Sample {
    pub fn make_view<'a>(&'a self, written: Option<&'a Written>) -> View<'a> {
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
pub fn check_same(expected: &str, text: &str) {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/report").join(expected);
    if std::env::var("BLESS").is_ok_and(|v| v == "1") {
        std::fs::write(&path, text).unwrap();
    }
    let before = std::fs::read_to_string(&path).unwrap();
    let diff = similar::TextDiff::from_lines(before.as_str(), text).unified_diff().to_string();
    assert!(diff.is_empty(), "{expected} differs (BLESS=1 accepts):\n{diff}");
}

pub fn parse_order(text: &str) -> OrderRef {
    OrderRef::parse(text).unwrap()
}

pub fn make_now() -> Time {
    Time::parse("2026-03-10T12:00:00Z").unwrap()
}

fn parse_name(text: &str) -> PreparationName {
    PreparationName::parse(text).unwrap()
}

pub fn make_row(reference: &str, mode: Mode, candidate: Option<&str>, decision: Decision) -> PlanRow {
    PlanRow {
        order: parse_order(reference),
        origin: None,
        environment: Some(EnvironmentName::parse("production").unwrap()),
        mode,
        candidate: candidate.map(|text| Candidate {
            name: parse_name(text),
            artifact: Artifact {
                repository: OciRepository::parse("registry.shop.example:5000/shop/app").unwrap(),
                digest: Digest::hash_bytes(text.as_bytes()),
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

pub fn make_pinned(row: &PlanRow, cluster: &str) -> ApplicationPlan {
    let cluster = ClusterName::parse(cluster).unwrap();
    let application = naming::build_application_name(&row.order, &cluster).unwrap();
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
    make_applied(&row.order, cluster, ApplicationAction::Pin(Arc::new(pin)))
}

pub fn make_applied(order: &OrderRef, cluster: ClusterName, action: ApplicationAction) -> ApplicationPlan {
    let name = naming::build_application_name(order, &cluster).unwrap();
    ApplicationPlan { cluster, path: naming::build_application_path(order, &name), name, action }
}

pub fn make_serving(reference: &str, status: ServingStatus) -> (OrderRef, ServingFile) {
    let order = parse_order(reference);
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
    let file = ServingFile {
        path: naming::build_serving_path(&order),
        text: "".into(),
        serving: Ok(Arc::new(serving)),
    };
    (order, file)
}

pub fn make_status(deployed: &str) -> ServingStatus {
    let condition = |kind: &str, status: &str, reason: &str| Condition {
        kind: kind.into(),
        status: status.into(),
        reason: reason.into(),
        message: String::new(),
        last_transition_time: None,
        observed_generation: None,
    };
    ServingStatus {
        target_preparation_name: Some(parse_name(deployed)),
        observed_preparation_name: Some(parse_name(deployed)),
        deployed_digest: Some(Digest::hash_bytes(deployed.as_bytes())),
        conditions: vec![
            condition("Ready", "True", "Deployed"),
            condition("Approved", "True", "ApprovalNotRequired"),
            condition("Verified", "True", "SignaturesVerified"),
        ],
        history: vec![HistoryEntry {
            preparation_name: parse_name(deployed),
            digest: Digest::hash_bytes(deployed.as_bytes()),
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
pub fn make_sample() -> Sample {
    let mut before = GitOps::default();
    let (mut changes, mut rows) = (BTreeMap::new(), Vec::new());

    let mut web = make_row(
        "shop/web",
        Mode::Automatic,
        Some("web-2"),
        Decision::Promote(Promotion {
            previous: Some((parse_name("web-1"), Digest::hash_bytes(b"web-1"))),
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
            digest: Some(Digest::hash_bytes(b"web-2")),
            uri: String::new(),
            key: String::new(),
        }],
        ..Verdict::make_passed(GateName::Ready, "Ready and signed")
    }];
    web.applications = vec![make_pinned(&web, "eu-1")];
    web.serving = ServingPlan::Write(Box::new(ServingState {
        preparation_name: Some(parse_name("web-2")),
        created: make_now(),
        status: make_status("web-2"),
    }));
    changes.insert(web.applications[0].path.clone(), FileChange::Write(b"x".to_vec()));
    changes.insert("servings/shop/web.yaml".into(), FileChange::Write(b"x".to_vec()));

    let mut cart = make_row("shop/cart", Mode::Manual, Some("cart-2"), Decision::Hold);
    cart.verdicts = vec![
        Verdict::make_passed(GateName::Ready, "Ready and signed"),
        Verdict::make_waiting(GateName::Approvals, For::Person(vec!["platform".into()]), "0 of 2 approvals"),
        Verdict::make_waiting(
            GateName::Window,
            For::Instant(make_now()),
            "outside of every window\n<b>@ann</b>",
        ),
    ];
    let mut queued = make_status("cart-1");
    queued.queued = Some(Queued {
        preparation_name: parse_name("cart-2"),
        waits_for: "Approvals".into(),
        message: "0 of 2 approvals".into(),
        since: make_now(),
    });

    let mut broken = make_row("shop/broken", Mode::Manual, None, Decision::Broken);
    broken.errors = vec![
        Failure::new_input("unknown-field", "there is no field \"promotoin\"")
            .with_object("Order shop/broken")
            .with_place(At { file: "objects/broken.yaml".into(), line: Some(4), column: Some(3) })
            .with_hint("did you mean promotion?"),
    ];

    let mut unread = make_row("shop/unread", Mode::Automatic, Some("unread-1"), Decision::Hold);
    unread.verdicts = vec![Verdict {
        unread: true,
        ..Verdict::make_waiting(
            GateName::Evidence,
            For::Registry,
            "registry.shop.example:5000 does not answer",
        )
    }];

    let mut kept = make_row("shop/kept", Mode::Automatic, Some("kept-1"), Decision::Keep);
    kept.applications = vec![make_pinned(&kept, "eu-1")];
    let path = kept.applications[0].path.clone();
    changes.insert(path.clone(), FileChange::Write(b"x".to_vec()));
    let diff = crate::report::edit::format_diff(&path, "prune: true\n", Some("prune: false\n"));
    let drift = vec![Drift { path, what: "edited by hand, restored".into(), diff: Some(diff) }];

    let mut gone = make_row(
        "shop/gone",
        Mode::Manual,
        None,
        Decision::Remove("its Order is gone from ./objects".into()),
    );
    let cluster = ClusterName::parse("eu-1").unwrap();
    gone.applications =
        vec![make_applied(&gone.order, cluster, ApplicationAction::Remove("its Order is gone".into()))];
    gone.serving = ServingPlan::Remove;
    changes.insert(gone.applications[0].path.clone(), FileChange::Delete);

    before.servings.extend([
        make_serving("shop/web", make_status("web-1")),
        make_serving("shop/cart", queued),
        make_serving("shop/gone", make_status("gone-1")),
        make_serving("shop/kept", make_status("kept-1")),
        make_serving("dev/lone", make_status("lone-1")),
    ]);
    rows.extend([broken, cart, gone, kept, unread, web]);
    let plan = Plan {
        at: make_now(),
        head: None,
        rows,
        guard: None,
        problems: vec![
            Failure::new_input("not-yaml", "it does not parse")
                .with_place(At::from_file("objects/freeze.yaml")),
        ],
        notices: vec![Failure::new_input("unused", "no Order uses it").with_object("Environment qa")],
    };
    Sample { plan, before, changes, drift, preview: Preview::default() }
}
