//! Chains for tests.
#![allow(clippy::unwrap_used, clippy::panic)]

use crate::ledger::event::{
    Accepted, Carried, Observed, Place, Placed, Promoted, Removal, VotesSealed, Voucher, Why,
};
use crate::ledger::name::FileName;
use crate::ledger::next::Tail;
use crate::ledger::past::{Past, Pinned, unknown_requester};
use crate::ledger::record::{
    ApprovalsPredicate, Deployment, NamedOrder, NamedPreparation, OptIn, Previous, PromotedCluster, Promoter,
    PromotionPredicate, RecordRef, SealedPreparation, Submission, Voter,
};
use crate::ledger::statement::{Event, Statement};
use crate::model::approval::Ballot;
use crate::model::id::{
    Artifact, ClusterName, Digest, EnvironmentName, Namespace, OrderName, OrderRef, PreparationName,
};
use crate::model::order::{ApprovalPolicy, Mode};
use crate::model::reason::{Ended, Vote};
use crate::model::time::Time;

pub(crate) const ID: &str = "0123456789abcdef0123456789abcdef";
pub(crate) const BRANCH: &str = "refs/heads/main";

pub(crate) fn at(minute: i64) -> Time {
    Time::from_unix(1_790_000_000 + minute * 60)
}

pub(crate) fn order() -> OrderRef {
    OrderRef::parse("shop/web").unwrap()
}

pub(crate) fn named() -> NamedOrder {
    NamedOrder::from(&order())
}

pub(crate) fn artifact(name: &str) -> Artifact {
    let digest = Digest::hash_bytes(name.as_bytes());
    Artifact::parse(&format!("oci://registry.shop.example/shop/web@{digest}")).unwrap()
}

pub(crate) fn environment(name: &str) -> EnvironmentName {
    EnvironmentName::parse(name).unwrap()
}

fn preparation(name: &str) -> NamedPreparation {
    NamedPreparation {
        namespace: Namespace::parse("shop").unwrap(),
        name: PreparationName::parse(name).unwrap(),
    }
}

fn cluster(name: &str) -> PromotedCluster {
    PromotedCluster {
        name: ClusterName::parse(name).unwrap(),
        opt_in: OptIn::Created,
        server: Some(format!("https://{name}.example")),
    }
}

pub(crate) fn promotion_in(minute: i64, name: &str, place: &str) -> (Artifact, Event) {
    let record = PromotionPredicate {
        order: named(),
        environment: environment(place),
        preparation: preparation(name),
        base_digest: None,
        target_namespace: Some(Namespace::parse("shop").unwrap()),
        mode: Mode::Automatic,
        previous: None,
        promoted_time: at(minute),
        requested_by: unknown_requester(),
        gates: Vec::new(),
        clusters: vec![cluster("eu-1")],
        promoter: Promoter::from_this_build(),
    };
    let body = Promoted {
        record,
        reason: Why::Automatic,
        source: "path:objects".into(),
        finished_on: Some(at(minute - 1)),
        approval_record: None,
    };
    (artifact(name), Event::Promotion(body))
}

pub(crate) fn promotion(minute: i64, name: &str) -> (Artifact, Event) {
    promotion_in(minute, name, "production")
}

pub(crate) fn superseding(
    minute: i64,
    name: &str,
    old: &str,
    healthy_until: Option<i64>,
) -> (Artifact, Event) {
    let (artifact, event) = promotion(minute, name);
    let Event::Promotion(mut body) = event else { panic!("a promotion") };
    body.record.previous = Some(Previous {
        preparation: PreparationName::parse(old).unwrap(),
        digest: Digest::hash_bytes(old.as_bytes()),
        first_healthy_time: None,
        healthy_until: healthy_until.map(at),
    });
    (artifact, Event::Promotion(body))
}

pub(crate) fn deployment(name: &str, record: Digest, since: i64, degraded: Option<i64>) -> (Artifact, Event) {
    let record = Deployment {
        order: named(),
        environment: environment("production"),
        preparation: preparation(name),
        promotion_record: RecordRef { digest: record },
        first_healthy_time: at(since),
        ended_time: degraded.map(at),
        ended_reason: degraded.map(|_| Ended::Degraded),
        clusters: Vec::new(),
    };
    (artifact(name), Event::Deployment(Observed { record, seen_until: None }))
}

pub(crate) fn seal(minute: i64, name: &str, who: &str, decision: Ballot) -> (Artifact, Event) {
    let record = ApprovalsPredicate {
        order: OrderName::parse("web").unwrap(),
        preparation: SealedPreparation {
            namespace: Namespace::parse("shop").unwrap(),
            name: PreparationName::parse(name).unwrap(),
            uid: None,
        },
        policy: ApprovalPolicy { required_approvals: 1, allowed_groups: Vec::new() },
        result: if decision == Ballot::Approve { "Approved" } else { "ChangesRequested" }.into(),
        sealed_time: at(minute),
        submissions: vec![Submission {
            name: format!("{who}-{name}"),
            uid: None,
            approver: Voter {
                issuer: "https://idp.example".into(),
                subject: who.into(),
                username: who.into(),
            },
            decision,
            comment: None,
            submitted_time: at(minute),
            creation_time: None,
            counted: true,
            reason: Vote::Counted,
        }],
    };
    let voucher = Voucher { signature: Some("signed".into()), groups: vec!["platform".into()] };
    let body = VotesSealed {
        record,
        environment: environment("production"),
        target_namespace: Namespace::parse("shop").unwrap(),
        vouchers: [(format!("{who}-{name}"), voucher)].into(),
    };
    (artifact(name), Event::Approvals(body))
}

pub(crate) fn removal(minute: i64, name: &str) -> (Artifact, Event) {
    let body =
        Removal { order: named(), removed_time: at(minute), reason: "its source does not hold it".into() };
    (artifact(name), Event::Removal(body))
}

pub(crate) fn accepted(minute: i64, name: &str, carried: Option<Carried>) -> (Artifact, Event) {
    let artifact = artifact(name);
    let body = Accepted {
        order: named(),
        accepted_by: unknown_requester(),
        reason: "the branch was restored from a backup".into(),
        accepted_time: at(minute),
        deployed: Pinned {
            preparation: PreparationName::parse(name).unwrap(),
            digest: artifact.digest,
            repository: artifact.repository.clone(),
            environment: environment("production"),
            target_namespace: Namespace::parse("shop").unwrap(),
            source: String::new(),
            promoted_time: at(minute),
            finished_on: None,
            base_digest: None,
            clusters: Vec::new(),
            unproven: carried.is_some(),
        },
        carried,
        unproven: Vec::new(),
    };
    (artifact, Event::Accepted(body))
}

pub(crate) fn placed(minute: i64, name: &str, record: Digest) -> (Artifact, Event) {
    let body = Placed {
        order: named(),
        environment: environment("production"),
        preparation: preparation(name),
        promotion_record: RecordRef { digest: record },
        placed_time: at(minute),
        clusters: vec![Place {
            name: ClusterName::parse("eu-2").unwrap(),
            server: "https://eu-2.example".into(),
        }],
        wave: None,
        evidence: Vec::new(),
    };
    (artifact(name), Event::Placed(body))
}

/// One statement of each kind, in an order in which they can happen.
pub(crate) fn one_of_each() -> Vec<(Artifact, Event)> {
    let mut chain = Chain::new();
    let mut all = vec![seal(0, "web-1", "ann", Ballot::Approve), promotion(1, "web-1")];
    all.iter().for_each(|one| {
        chain.add(one.clone());
    });
    let record = chain.hash();
    all.extend([
        deployment("web-1", record, 3, None),
        placed(4, "web-1", record),
        deployment("web-1", record, 3, Some(6)),
        deployment("web-1", record, 8, None),
        superseding(9, "web-2", "web-1", Some(9)),
        removal(20, "web-2"),
        promotion(30, "web-3"),
        accepted(40, "web-3", None),
    ]);
    all
}

/// A chain that grows.
pub(crate) struct Chain {
    pub(crate) tail: Tail,
    statements: Vec<Statement>,
}

impl Chain {
    pub(crate) fn new() -> Self {
        Self { tail: Tail::new(order(), ID.into(), BRANCH.into(), at(0)), statements: Vec::new() }
    }

    /// Adds a statement; its hash.
    pub(crate) fn add(&mut self, (artifact, event): (Artifact, Event)) -> Digest {
        let now = at(100 + self.tail.past.sequence as i64);
        let (statement, past) = self.tail.build_next(artifact, event, now).unwrap();
        let hash = Digest::hash_bytes(&statement.to_payload().unwrap());
        self.statements.push(statement);
        self.tail = Tail { past, head: Some(hash) };
        hash
    }

    pub(crate) fn hash(&self) -> Digest {
        self.tail.head.unwrap()
    }

    pub(crate) fn past(&self) -> &Past {
        &self.tail.past
    }

    pub(crate) fn statements(&self) -> &[Statement] {
        &self.statements
    }

    pub(crate) fn name(&self) -> FileName {
        FileName::new(self.tail.past.sequence, &self.hash())
    }
}

/// A folder in memory, signed by one key.
pub(crate) struct Signed {
    pub(crate) files: std::collections::BTreeMap<String, Vec<u8>>,
    pub(crate) ring: crate::evidence::keys::KeyRing,
    pub(crate) now: Time,
}

fn signer(byte: u8) -> crate::attest::key::RecordSigner {
    use p256::pkcs8::EncodePrivateKey as _;
    let key = p256::ecdsa::SigningKey::from_slice(&[byte; 32]).unwrap();
    let pem = key.to_pkcs8_pem(p256::pkcs8::LineEnding::LF).unwrap();
    crate::attest::key::RecordSigner::from_pem(&pem, None).unwrap()
}

fn ring(roles: &[crate::model::kitchen::Role]) -> crate::evidence::keys::KeyRing {
    use crate::model::kitchen::{KitchenSpec, TrustedKey};
    use p256::pkcs8::EncodePublicKey as _;
    let key = p256::ecdsa::SigningKey::from_slice(&[7; 32]).unwrap();
    let pem = key.verifying_key().to_public_key_pem(p256::pkcs8::LineEnding::LF).unwrap();
    let mut spec = KitchenSpec::default();
    spec.trust.keys.push(TrustedKey {
        name: "job".into(),
        public_key: Some(pem),
        public_key_file: None,
        roles: roles.to_vec(),
    });
    crate::evidence::keys::KeyRing::from_kitchen(&spec)
}

impl Signed {
    /// The folder of a chain, by the key that the Kitchen trusts.
    pub(crate) fn of(chain: &Chain) -> Self {
        Self::by(chain, 7)
    }

    /// The folder of a chain, by another key.
    pub(crate) fn by(chain: &Chain, key: u8) -> Self {
        use crate::model::kitchen::Role;
        let signer = signer(key);
        let mut files = std::collections::BTreeMap::new();
        for statement in chain.statements() {
            let (hash, signed) = crate::attest::sign::sign_statement(statement, &signer).unwrap();
            let name = FileName::new(statement.link.sequence, &hash);
            files.insert(name.to_string(), signed.bundle);
        }
        files.insert(super::name::PAST.into(), chain.past().to_json());
        Self { files, ring: ring(&[Role::Records, Role::Approvals]), now: at(10_000) }
    }

    /// Trusted for approvals alone.
    pub(crate) fn for_approvals_alone(mut self) -> Self {
        self.ring = ring(&[crate::model::kitchen::Role::Approvals]);
        self
    }

    pub(crate) fn with<T>(
        &self,
        judge: impl FnOnce(super::head::Folder<'_>, super::head::Expected<'_>) -> T,
    ) -> T {
        let names = self.files.keys().cloned().collect();
        let read = |name: &str| Ok(self.files.get(name).cloned());
        let order = order();
        let folder = super::head::Folder { order: &order, names: &names, read: &read };
        judge(folder, super::head::Expected { ring: &self.ring, branch: BRANCH, now: self.now })
    }

    pub(crate) fn head(&self, witness: Option<&super::head::Witness>) -> super::Head {
        self.with(|folder, expected| super::head::read_head(folder, witness, expected))
    }

    pub(crate) fn checked(&self) -> super::chain::Checked {
        self.with(super::chain::verify_folder)
    }
}
