//! Evidence: what is judged on an artifact, from image layouts made by hand and from real registries with
//! real cosign. A number in a test's name is that of the adversarial list, `b…` of the field reports.

mod approvals;
mod artifacts;
mod attached;
mod faults;
mod interop;
mod keys;
mod numbered;
mod provenance;
mod records;
mod shop;
mod signatures;
mod statements;

use crate::support::shelf::Shelf;
use expedite::evidence::gather::{GatherOptions, gather_blocking, make_runtime};
use expedite::evidence::keys::KeyRing;
use expedite::model::evidence::{ArtifactFacts, Ask, Claim, Evidence, Looked, Proof, Unread};
use expedite::model::id::{Artifact, OrderRef};
use std::fmt::Debug;

/// What `ring` makes of these claims on `artifact`.
fn ask(shelf: &Shelf, ring: &KeyRing, artifact: &Artifact, claims: &[Claim]) -> ArtifactFacts {
    let asks = [Ask { artifact: artifact.clone(), claims: claims.iter().cloned().collect() }];
    let facts = gather_blocking(
        &make_runtime().unwrap(),
        &asks,
        ring,
        &shelf.registries(),
        &GatherOptions::default(),
    );
    facts.artifacts[artifact].clone()
}

fn signature(shelf: &Shelf, ring: &KeyRing, artifact: &Artifact) -> Evidence<Proof> {
    ask(shelf, ring, artifact, &[Claim::Signature]).signature.unwrap()
}

fn order() -> OrderRef {
    OrderRef::parse("shop/podinfo").unwrap()
}

#[track_caller]
fn proven<P: Debug>(evidence: Evidence<P>) -> P {
    match evidence {
        Evidence::Proven(proof) => proof,
        other => panic!("not proven: {other:?}"),
    }
}

#[track_caller]
fn missing<P: Debug>(evidence: Evidence<P>) -> Looked {
    match evidence {
        Evidence::Missing(looked) => looked,
        other => panic!("not missing: {other:?}"),
    }
}

#[track_caller]
fn unread<P: Debug>(evidence: Evidence<P>) -> Unread {
    match evidence {
        Evidence::Unread(unread) => unread,
        other => panic!("not unread: {other:?}"),
    }
}

/// Invalid, with this in its message.
#[track_caller]
fn invalid<P: Debug>(evidence: Evidence<P>, part: &str) -> Looked {
    match evidence {
        Evidence::Invalid(looked) if looked.why.contains(part) => looked,
        other => panic!("not invalid because of {part:?}: {other:?}"),
    }
}
