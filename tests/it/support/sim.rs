//! A GitOps repository in memory: runs are decided and applied without git, YAML or a registry, so that
//! thousands of histories can be tried in a second.

use expedite::model::application::{Application, ApplicationSpec, Destination};
use expedite::model::evidence::*;
use expedite::model::id::*;
use expedite::model::kitchen::Role;
use expedite::model::meta::Meta;
use expedite::model::naming::*;
use expedite::model::plan::*;
use expedite::model::reason::Ended;
use expedite::model::serving::{Requested, Serving, ServingSpec};
use expedite::model::time::{Span, Time};
use expedite::model::world::*;
use expedite::policy::decide::{self, PlanOptions};
use expedite::policy::gates::{self, Context};
use expedite::policy::resolve;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

pub fn time(text: &str) -> Time {
    Time::parse(text).unwrap()
}

pub fn order(text: &str) -> OrderRef {
    OrderRef::parse(text).unwrap()
}

pub fn preparation(text: &str) -> PreparationName {
    PreparationName::parse(text).unwrap()
}

/// The digest of an artifact by a short name.
pub fn digest(name: &str) -> Digest {
    Digest::hash_bytes(name.as_bytes())
}

pub struct Sim {
    pub world: World,
    pub gitops: GitOps,
    pub now: Time,
    /// Artifacts whose evidence is not simply proven.
    pub facts: BTreeMap<Digest, ArtifactFacts>,
    pub options: PlanOptions,
    pub trust: Digest,
    pub asked: usize,
    /// Whether history must be proven by signed records.
    pub records: bool,
    /// `now` is ahead of the real clock.
    pub foreseen: bool,
    /// How often scans of what is deployed are looked at.
    pub rescan: Option<Span>,
    /// Attestations, scans and seals, by artifact, beside what is simply proven.
    pub extra: BTreeMap<Digest, ArtifactFacts>,
    /// What every provenance lists among what the artifact was made from.
    pub dependencies: BTreeSet<Digest>,
    /// Records attached to artifacts.
    pub attached: BTreeMap<Digest, Vec<Proof>>,
    /// Records in the repository.
    pub signed: BTreeMap<RecordAsk, Proof>,
}

impl Default for Sim {
    fn default() -> Self {
        let mut world = World::default();
        world.sources.push(SourceState { name: "path:objects".into(), whole: true, why: None, objects: 1 });
        Self {
            world,
            gitops: GitOps::default(),
            now: time("2026-11-30T09:00:00Z"),
            facts: BTreeMap::new(),
            options: PlanOptions::default(),
            trust: Digest::hash_bytes(b"trust"),
            asked: 0,
            records: false,
            foreseen: false,
            rescan: None,
            extra: BTreeMap::new(),
            dependencies: BTreeSet::new(),
            attached: BTreeMap::new(),
            signed: BTreeMap::new(),
        }
    }
}

fn origin(file: &str) -> Origin {
    Origin { source: "path:objects".into(), file: file.into(), document: 0, item: None, line: 1 }
}

pub fn loaded<T>(object: T, file: &str) -> Loaded<T> {
    Loaded { object: Arc::new(object), origin: origin(file) }
}

fn from<T: serde::de::DeserializeOwned>(yaml: &str) -> T {
    serde_yaml::from_str(yaml).unwrap_or_else(|e| panic!("{e}\n{yaml}"))
}

impl Sim {
    /// Environments `dev` (one Cluster) and `production` (`eu-1`, `us-1`).
    pub fn shop() -> Self {
        let mut sim = Self::default();
        for cluster in ["dev-1", "eu-1", "us-1"] {
            sim.cluster(cluster, &format!("https://{cluster}.example"));
        }
        sim.environment("dev", "{clusters: [dev-1]}");
        sim.environment("production", "{clusters: [eu-1, us-1]}");
        sim
    }

    pub fn cluster(&mut self, name: &str, server: &str) {
        let object = from(&format!("{{metadata: {{name: {name}}}, spec: {{server: \"{server}\"}}}}"));
        self.world.clusters.insert(ClusterName::parse(name).unwrap(), loaded(object, "clusters.yaml"));
    }

    pub fn environment(&mut self, name: &str, spec: &str) {
        let object = from(&format!("{{metadata: {{name: {name}}}, spec: {spec}}}"));
        self.world
            .environments
            .insert(EnvironmentName::parse(name).unwrap(), loaded(object, "environments.yaml"));
    }

    pub fn order(&mut self, name: &str, spec: &str) {
        let reference = order(name);
        let object = from(&format!(
            "{{metadata: {{name: {}, namespace: {}}}, spec: {spec}}}",
            reference.name, reference.namespace
        ));
        self.world.orders.insert(reference, loaded(object, "orders.yaml"));
    }

    pub fn kitchen(&mut self, spec: &str) {
        let object = from(&format!("{{metadata: {{name: default}}, spec: {spec}}}"));
        self.world.kitchen = Some(loaded(object, "kitchen.yaml"));
    }

    /// A Preparation made `minute` minutes after midnight, of an artifact named like it.
    pub fn preparation(&mut self, of: &str, name: &str, minute: u64) {
        self.preparation_with(of, name, minute, "signed: true");
    }

    pub fn preparation_with(&mut self, of: &str, name: &str, minute: u64, artifact: &str) {
        let reference = order(of);
        let created = time("2026-11-30T00:00:00Z").add_span(Span::from_seconds(minute * 60));
        let digest = digest(name);
        let object = from(&format!(
            "{{metadata: {{name: {name}, namespace: {ns}, creationTimestamp: \"{created}\"}}, spec: {{orderName: {o}, artifact: {{ociRef: \"oci://r.example/{ns}/{o}@{digest}\", digest: \"{digest}\", {artifact}}}}}}}",
            ns = reference.namespace,
            o = reference.name,
        ));
        self.world
            .preparations
            .insert((reference.namespace, preparation(name)), loaded(object, "preparations.yaml"));
    }

    /// A Preparation of the artifact that is called `artifact`.
    pub fn preparation_of(&mut self, of: &str, name: &str, minute: u64, artifact: &str, more: &str) {
        let reference = order(of);
        let created = time("2026-11-30T00:00:00Z").add_span(Span::from_seconds(minute * 60));
        let digest = digest(artifact);
        let object = from(&format!(
            "{{metadata: {{name: {name}, namespace: {ns}, creationTimestamp: \"{created}\"}}, spec: {{orderName: {o}, artifact: {{ociRef: \"oci://r.example/shop/podinfo@{digest}\", digest: \"{digest}\", {more}}}}}}}",
            ns = reference.namespace,
            o = reference.name,
        ));
        self.world
            .preparations
            .insert((reference.namespace, preparation(name)), loaded(object, "preparations.yaml"));
    }

    pub fn put_serving(&mut self, order: &OrderRef, serving: Serving) {
        self.put(order, serving);
    }

    pub fn later(&mut self, minutes: u64) {
        self.now = self.now.add_span(Span::from_seconds(minutes * 60));
    }

    /// What the promote verb writes: the intent, and nothing else.
    pub fn promote(&mut self, of: &str, name: &str) {
        let reference = order(of);
        let requested = Some(Requested {
            name: "ann".into(),
            time: self.now,
            verb: "promote".into(),
            preparation_name: Some(preparation(name)),
        });
        let spec = ServingSpec {
            order_name: reference.name.clone(),
            preparation_name: Some(preparation(name)),
            requested,
            preparation_policy: None,
        };
        let mut serving = self.serving(of).map(|s| (*s).clone()).unwrap_or_else(|| Serving {
            metadata: Meta {
                name: reference.name.to_string(),
                namespace: Some(reference.namespace.clone()),
                creation_timestamp: Some(self.now),
                ..Meta::default()
            },
            spec: spec.clone(),
            status: Default::default(),
            raw_status: None,
        });
        serving.spec = spec;
        self.put(&reference, serving);
    }

    fn put(&mut self, order: &OrderRef, serving: Serving) {
        let file =
            ServingFile { path: build_serving_path(order), text: "".into(), serving: Ok(Arc::new(serving)) };
        self.gitops.servings.insert(order.clone(), file);
    }

    pub fn serving(&self, of: &str) -> Option<Arc<Serving>> {
        self.gitops.servings.get(&order(of))?.serving.as_ref().ok().cloned()
    }

    pub fn context(&self) -> Context {
        let kitchen = self.world.kitchen.as_ref().map(|k| &k.object.spec);
        Context {
            trust: Some(self.trust),
            records: self.records,
            foreseen: self.foreseen,
            rescan: self.rescan,
            ..Context::new(self.now, kitchen)
        }
    }

    pub fn plan(&mut self) -> Plan {
        let (cases, facts, context) = self.judged();
        decide::decide_plan(&cases, &facts, &self.world, &self.gitops, &context, &self.options)
    }

    /// `plan --at`: as of then, on what is known now.
    pub fn plan_at(&mut self, at: Time) -> Plan {
        let (now, foreseen) = (self.now, self.foreseen);
        (self.now, self.foreseen) = (at, at > now);
        let plan = self.plan();
        (self.now, self.foreseen) = (now, foreseen);
        plan
    }

    /// What a run decides on.
    pub fn judged(&mut self) -> (Vec<resolve::Case>, Facts, Context) {
        let context = self.context();
        let cases = resolve::resolve_cases(&self.world, &self.gitops, "argocd");
        let asks = gates::collect_asks(&cases, &context);
        self.asked = asks.len();
        let mut facts = Facts::default();
        facts.keys.usable.extend([Role::Signature, Role::Provenance]);
        facts.keys.fingerprint = Some(self.trust);
        for ask in asks {
            let known = match self.facts.get(&ask.artifact.digest) {
                Some(known) => known.clone(),
                None => self.known(&ask),
            };
            facts.artifacts.insert(ask.artifact, known);
        }
        for ask in gates::collect_record_asks(&cases, &context) {
            let nothing = Looked { why: "is not in records/".into(), ..Looked::default() };
            let found = self.signed.get(&ask).cloned().map_or(Evidence::Missing(nothing), Evidence::Proven);
            facts.records.insert(ask, found);
        }
        for order in gates::find_pins_to_prove(&cases, &context) {
            let kept = self.signed.iter().filter(|(ask, _)| ask.order == *order);
            facts.records.extend(kept.map(|(ask, proof)| (ask.clone(), Evidence::Proven(proof.clone()))));
        }
        (cases, facts, context)
    }

    /// What the registry would show.
    pub fn known(&self, ask: &Ask) -> ArtifactFacts {
        let mut known = proven(ask);
        let digest = ask.artifact.digest;
        for provenance in known.provenance.values_mut() {
            if let Evidence::Proven(provenance) = provenance {
                provenance.dependencies = self.dependencies.clone();
            }
        }
        let nothing = || Looked { why: "nothing is attached".into(), ..Looked::default() };
        if ask.claims.contains(&Claim::Records) {
            known.records = Some(match self.attached.get(&digest) {
                Some(records) => Evidence::Proven(records.clone()),
                None => Evidence::Missing(nothing()),
            });
        }
        let extra = self.extra.get(&digest).cloned().unwrap_or_default();
        for claim in &ask.claims {
            match claim {
                Claim::Attestation(kind) => {
                    let found = extra.attestations.get(kind).cloned();
                    known.attestations.insert(kind.clone(), found.unwrap_or(Evidence::Missing(nothing())));
                }
                Claim::Approvals(of) => {
                    let found = extra.approvals.get(of).cloned();
                    known.approvals.insert(of.clone(), found.unwrap_or(Evidence::Missing(nothing())));
                }
                Claim::Scans => {
                    known.scans = Some(extra.scans.clone().unwrap_or(Evidence::Missing(nothing())))
                }
                Claim::Artifact | Claim::Signature | Claim::Provenance(_) | Claim::Records => {}
            }
        }
        known
    }

    /// Signs a record of an Order into the repository; its bundle's digest.
    pub fn sign(
        &mut self,
        order: &OrderRef,
        kind: &str,
        artifact: Digest,
        predicate: serde_json::Value,
    ) -> Digest {
        self.sign_of(order, kind, artifact, None, predicate)
    }

    /// The same for an artifact that the statement names.
    fn sign_of(
        &mut self,
        order: &OrderRef,
        kind: &str,
        artifact: Digest,
        subject: Option<String>,
        predicate: serde_json::Value,
    ) -> Digest {
        let mut proof = statement(kind, predicate);
        let signed = (*proof.statement.unwrap()).clone();
        proof.statement = Some(Arc::new(Statement { subject, ..signed }));
        let bundle = proof.blob;
        self.signed.insert(RecordAsk { order: order.clone(), bundle, artifact }, proof);
        bundle
    }

    /// Signs what an Order's history says, as the runs that wrote it do.
    pub fn sign_history(&mut self, of: &str) {
        use serde_json::json;
        let Some(serving) = self.serving(of) else { return };
        let mut serving = (*serving).clone();
        let of = order(of);
        let history = serving.status.history.clone();
        let clusters = serving.status.clusters.clone();
        let order_says = json!({"namespace": of.namespace, "name": of.name});
        for (at, entry) in serving.status.history.iter_mut().enumerate() {
            let preparation = json!({"namespace": of.namespace, "name": entry.preparation_name});
            let before = history[at + 1..].iter().find(|e| e.promoted_time != entry.promoted_time);
            let before = before.map(|e| match e.healthy_until {
                Some(until) if e.ended_time == Some(entry.promoted_time) => {
                    json!({
                        "preparation": e.preparation_name, "digest": e.digest,
                        "firstHealthyTime": e.first_healthy_time, "healthyUntil": until,
                    })
                }
                _ => json!({"preparation": e.preparation_name, "digest": e.digest}),
            });
            let made = self.world.preparations.get(&(of.namespace.clone(), entry.preparation_name.clone()));
            let target = made.map(|p| {
                let spec = &p.object.spec;
                let namespace = spec.target_namespace.clone().unwrap_or_else(|| of.namespace.clone());
                (spec.artifact.oci_ref.clone(), namespace)
            });
            let clusters: Vec<_> =
                clusters.iter().map(|c| json!({"name": c.name, "server": c.server})).collect();
            let promotion = json!({
                "order": order_says, "environment": entry.environment, "preparation": preparation,
                "baseDigest": entry.base_digest, "promotedTime": entry.promoted_time,
                "previous": before, "targetNamespace": target.as_ref().map(|(_, namespace)| namespace),
                "clusters": clusters,
            });
            let subject = target.map(|(subject, _)| subject);
            let bundle = self.sign_of(&of, "promotion", entry.digest, subject, promotion);
            entry.promotion_record = Some(bundle);
            if let Some(since) = entry.first_healthy_time {
                let degraded = entry.ended_reason == Some(Ended::Degraded);
                let deployment = json!({
                    "order": order_says, "environment": entry.environment, "preparation": preparation,
                    "promotionRecord": {"digest": bundle}, "firstHealthyTime": since,
                    "endedTime": entry.ended_time.filter(|_| degraded),
                    "endedReason": entry.ended_reason.filter(|_| degraded),
                });
                entry.deployment_record = Some(self.sign(&of, "deployment", entry.digest, deployment));
            }
        }
        self.put(&of, serving);
    }

    /// Attaches every seal that the plan asks for, as the run does.
    pub fn seal(&mut self, plan: &Plan) {
        for request in plan.rows.iter().filter_map(|row| row.seal.as_ref()) {
            let seal = SealProof {
                proof: statement("approval", serde_json::json!({"sealedTime": request.sealed_time})),
                sealed_time: request.sealed_time,
                policy: request.policy.clone(),
                result: request.result.to_string(),
            };
            let known = self.extra.entry(request.artifact.digest).or_default();
            known.approvals.insert(request.of.clone(), Evidence::Proven(seal));
        }
    }

    /// Decides and applies, as render and commit would.
    pub fn run(&mut self) -> Plan {
        let plan = self.plan();
        if plan.guard.is_some() {
            return plan;
        }
        for row in &plan.rows {
            match &row.serving {
                ServingPlan::Keep => {}
                ServingPlan::Remove => {
                    self.gitops.servings.remove(&row.order);
                }
                ServingPlan::Write(state) => {
                    let before = self.serving(&row.order.to_string());
                    let serving = Serving {
                        metadata: Meta {
                            name: row.order.name.to_string(),
                            namespace: Some(row.order.namespace.clone()),
                            creation_timestamp: Some(state.created),
                            ..Meta::default()
                        },
                        spec: ServingSpec {
                            order_name: row.order.name.clone(),
                            preparation_name: state.preparation_name.clone(),
                            requested: before.and_then(|b| b.spec.requested.clone()),
                            preparation_policy: None,
                        },
                        status: state.status.clone(),
                        raw_status: None,
                    };
                    self.put(&row.order, serving);
                }
            }
            for application in &row.applications {
                match &application.action {
                    ApplicationAction::Pin(pin) => {
                        self.gitops.applications.insert(application.path.clone(), file(pin));
                    }
                    ApplicationAction::Hold { .. } => {}
                    ApplicationAction::Detach(_) => {
                        let file = self.gitops.applications.get_mut(&application.path).unwrap();
                        let mut object = (**file.application.as_ref().unwrap()).clone();
                        object.metadata.finalizers.clear();
                        object.metadata.annotations.insert(HANDED_OVER.into(), "true".into());
                        file.application = Ok(Arc::new(object));
                    }
                    ApplicationAction::Remove(_) => {
                        self.gitops.applications.remove(&application.path);
                    }
                }
            }
        }
        plan
    }

    /// The digests that an Order's Applications are pinned to, by Cluster.
    pub fn pinned(&self, of: &str) -> Vec<(String, String)> {
        let owner = order(of);
        let mut all: Vec<_> = self
            .gitops
            .applications
            .values()
            .filter(|f| f.owner.as_ref() == Some(&owner))
            .filter_map(|f| f.application.as_ref().ok())
            .map(|a| {
                let source = a.spec.source.clone().unwrap_or_default();
                (
                    a.spec.destination.server.clone().unwrap_or_default(),
                    source.target_revision.unwrap_or_default(),
                )
            })
            .collect();
        all.sort();
        all
    }

    pub fn reason(&self, of: &str, kind: &str) -> String {
        self.serving(of)
            .and_then(|s| s.status.find_condition(kind).map(|c| c.reason.clone()))
            .unwrap_or_default()
    }

    pub fn deployed(&self, of: &str) -> Option<String> {
        self.serving(of)?.status.observed_preparation_name.as_ref().map(ToString::to_string)
    }
}

pub fn file(pin: &Pin) -> ApplicationFile {
    let application = Application {
        metadata: Meta {
            name: pin.name.to_string(),
            namespace: Some(Namespace::parse(&pin.argocd_namespace).unwrap()),
            labels: [
                (LABEL_SERVING.to_owned(), pin.order.name.to_string()),
                (LABEL_SERVING_NAMESPACE.to_owned(), pin.order.namespace.to_string()),
            ]
            .into(),
            finalizers: vec![FINALIZER.into()],
            ..Meta::default()
        },
        spec: ApplicationSpec {
            source: Some(expedite::model::application::ApplicationSource {
                repo_url: pin.artifact.repository.format_url(),
                target_revision: Some(pin.artifact.digest.to_string()),
                path: Some(".".into()),
                chart: None,
            }),
            sources: Vec::new(),
            destination: Destination {
                server: Some(pin.server.clone()),
                name: None,
                namespace: Some(pin.target_namespace.to_string()),
            },
            project: pin.project.clone(),
        },
        status: None,
    };
    ApplicationFile {
        text: "".into(),
        owner: Some(pin.order.clone()),
        application: Ok(Arc::new(application)),
    }
}

/// A signed statement of one of our predicate types.
pub fn statement(kind: &str, predicate: serde_json::Value) -> Proof {
    let blob = Digest::hash_bytes(format!("{kind} {predicate}").as_bytes());
    Proof {
        key: "job".into(),
        fingerprint: "f".into(),
        digest: blob,
        blob,
        place: "records/".into(),
        statement: Some(Arc::new(Statement {
            predicate_type: format!("https://kokumi.dev/attestations/{kind}/v1"),
            subject: None,
            predicate,
            time: None,
        })),
    }
}

/// Everything that is asked is proven.
pub fn proven(ask: &Ask) -> ArtifactFacts {
    let proof = Proof {
        key: "renderer".into(),
        fingerprint: "f".into(),
        digest: Digest::hash_bytes(b"evidence"),
        place: "referrers API".into(),
        blob: Digest::hash_bytes(b"blob"),
        statement: None,
    };
    let mut facts = ArtifactFacts::default();
    for claim in &ask.claims {
        match claim {
            Claim::Artifact => {
                facts.artifact = Some(Evidence::Proven(ArtifactProof {
                    media_type: "application/vnd.oci.image.manifest.v1+json".into(),
                    size: 1,
                    layer: Digest::hash_bytes(b"layer"),
                    layer_media_type: "application/vnd.oci.image.layer.v1.tar+gzip".into(),
                }));
            }
            Claim::Signature => facts.signature = Some(Evidence::Proven(proof.clone())),
            Claim::Provenance(order) => {
                facts.provenance.insert(
                    order.clone(),
                    Evidence::Proven(ProvenanceProof {
                        proof: proof.clone(),
                        finished_on: None,
                        dependencies: Default::default(),
                        builder: None,
                    }),
                );
            }
            Claim::Approvals(_) | Claim::Attestation(_) | Claim::Scans | Claim::Records => {}
        }
    }
    facts
}
