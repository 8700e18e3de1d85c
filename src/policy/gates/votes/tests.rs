#![allow(clippy::unwrap_used, clippy::panic)]

use super::*;
use crate::model::approval::{ApprovalSpec, PreparationRef};
use crate::model::meta::Meta;
use proptest::prelude::*;
use ssh_key::private::{Ed25519Keypair, KeypairData};
use ssh_key::{HashAlg, LineEnding, PrivateKey};

const NOW: &str = "2026-01-10T12:00:00Z";

fn time(text: &str) -> Time {
    Time::parse(text).unwrap()
}
/// The n-th minute of a day before [`NOW`].
fn minute(n: u32) -> Time {
    Time::from_unix(time("2026-01-10T00:00:00Z").unix() + i64::from(n) * 60)
}
fn digest() -> Digest {
    Digest::hash_bytes(b"candidate")
}
fn name(text: &str) -> PreparationName {
    PreparationName::parse(text).unwrap()
}
fn key(person: &str) -> PrivateKey {
    let seed = [person.as_bytes()[0]; 32];
    PrivateKey::new(KeypairData::Ed25519(Ed25519Keypair::from_seed(&seed)), person).unwrap()
}
fn approver(person: &str) -> Approver {
    Approver {
        issuer: "https://idp.example".into(),
        subject: person.into(),
        username: person.into(),
        email: None,
        groups: vec!["platform".into()],
    }
}
fn known(person: &str, groups: &[&str]) -> KnownApprover {
    KnownApprover {
        issuer: "https://idp.example".into(),
        subject: person.into(),
        username: person.into(),
        groups: groups.iter().map(|g| (*g).to_owned()).collect(),
        ssh_keys: vec![key(person).public_key().to_openssh().unwrap()],
    }
}
fn policy(required_approvals: u32) -> ApprovalPolicy {
    ApprovalPolicy { required_approvals, allowed_groups: vec!["platform".into()] }
}
fn approval(vote: &str, person: &str, decision: Ballot, at: Time) -> Approval {
    Approval {
        metadata: Meta { name: vote.into(), creation_timestamp: Some(at), ..Meta::default() },
        spec: ApprovalSpec {
            preparation_ref: PreparationRef { name: name("podinfo-1"), uid: None, artifact_digest: digest() },
            approver: approver(person),
            decision,
            comment: None,
            submitted_time: at,
            signature: None,
        },
    }
}
fn sign_as(mut approval: Approval, person: &str) -> Approval {
    let spec = &approval.spec;
    let message = ssh_vote::build_vote_bytes(
        &Namespace::parse("shop").unwrap(),
        &spec.preparation_ref.name,
        spec.preparation_ref.artifact_digest,
        spec.decision,
        spec.submitted_time,
    );
    let signature = key(person).sign(ssh_vote::NAMESPACE, HashAlg::Sha512, &message).unwrap();
    approval.spec.signature = Some(signature.to_pem(LineEnding::LF).unwrap());
    approval
}
fn signed(vote: &str, person: &str, decision: Ballot, at: Time) -> Approval {
    sign_as(approval(vote, person, decision, at), person)
}

/// The one question of these tests, with what a test varies.
#[derive(Clone)]
struct Ask {
    policy: ApprovalPolicy,
    electorate: Electorate,
    target_since: Option<Time>,
    sealed: Option<Time>,
    deployed: bool,
    uid: Option<&'static str>,
    by_server: bool,
}
impl Ask {
    fn new(trust: ApprovalTrust, required: u32) -> Self {
        let people = [known("ann", &["platform"]), known("bob", &["platform"]), known("eve", &["interns"])];
        Self {
            policy: policy(required),
            electorate: Electorate::new(trust, &people),
            target_since: Some(minute(0)),
            sealed: None,
            deployed: false,
            uid: None,
            by_server: true,
        }
    }
    fn sealed(self, at: Time) -> Self {
        Self { sealed: Some(at), ..self }
    }
    fn tally(&self, approvals: &[Approval], remembered: &[VoteStatus]) -> Tally {
        let namespace = Namespace::parse("shop").unwrap();
        let question = VoteQuestion {
            namespace: &namespace,
            preparation: &name("podinfo-1"),
            digest: digest(),
            uid: self.uid,
            policy: &self.policy,
            target_since: self.target_since,
            sealed: self.sealed,
            deployed: self.deployed,
        };
        let papers = approvals.iter().map(|approval| Paper { approval, by_server: self.by_server });
        tally_votes(&question, &self.electorate, papers, remembered, time(NOW))
    }
}
fn reasons(tally: &Tally) -> Vec<(&str, Vote)> {
    tally.votes.iter().map(|v| (v.name.as_str(), v.reason)).collect()
}
use Ballot::{Approve, Reject};

#[test]
fn two_signed_votes_meet_a_policy_of_two() {
    let ask = Ask::new(ApprovalTrust::Signed, 2);
    let one = [signed("v1", "ann", Approve, minute(5))];
    let tally = ask.tally(&one, &[]);
    assert_eq!((tally.approvals, tally.met), (1, false));
    assert_eq!(tally.may_vote, ["bob"], "ann has voted, eve is in no allowed group");
    let two = [one[0].clone(), signed("v2", "bob", Approve, minute(9))];
    let tally = ask.tally(&two, &[]);
    assert!(tally.met);
    assert_eq!(tally.seal_time, Some(minute(9)), "the last counted vote");
    assert_eq!(reasons(&tally), [("v1", Vote::Counted), ("v2", Vote::Counted)]);
    assert_eq!(tally.remembered, 0);
    assert!(tally.warnings.is_empty());
}

#[test]
fn a_seal_carries_the_later_of_the_last_vote_and_becoming_the_target() {
    let votes = [signed("v1", "ann", Approve, minute(5))];
    let mut ask = Ask::new(ApprovalTrust::Signed, 1);
    ask.target_since = Some(minute(30));
    assert_eq!(ask.tally(&votes, &[]).seal_time, Some(minute(30)), "voted before it was the target");
    ask.target_since = None;
    let tally = ask.tally(&votes, &[]);
    assert_eq!((tally.met, tally.seal_time), (true, None), "not the target: nothing to seal");
}

#[test]
fn each_vote_that_does_not_count_says_why() {
    let mut ask = Ask::new(ApprovalTrust::Signed, 1);
    ask.uid = Some("uid-1");
    let mut elsewhere = approval("a-other-digest", "ann", Approve, minute(1));
    elsewhere.spec.preparation_ref.artifact_digest = Digest::hash_bytes(b"another");
    let mut other_uid = approval("b-other-uid", "ann", Approve, minute(2));
    other_uid.spec.preparation_ref.uid = Some("uid-2".into());
    let mut nowhere = approval("c-nowhere", "ann", Approve, minute(3));
    nowhere.spec.preparation_ref.name = name("podinf-1");
    let unsigned = approval("d-unsigned", "ann", Approve, minute(4));
    let by_other = sign_as(approval("e-by-eve", "ann", Approve, minute(5)), "eve");
    let stranger = signed("z-stranger", "zoe", Approve, minute(6));
    let intern = signed("g-intern", "eve", Approve, minute(7));
    let tally = ask.tally(
        &[elsewhere, other_uid, nowhere, unsigned, by_other, stranger, intern].map(|mut v| {
            // The vote's own claim of a group must not help.
            v.spec.approver.groups = vec!["platform".into()];
            v
        }),
        &[],
    );
    assert_eq!(
        reasons(&tally),
        [
            ("a-other-digest", Vote::DigestMismatch),
            ("b-other-uid", Vote::DigestMismatch),
            ("c-nowhere", Vote::PreparationNotFound),
            ("d-unsigned", Vote::SignatureMissing),
            ("e-by-eve", Vote::SignatureInvalid),
            ("g-intern", Vote::NotEligible),
            ("z-stranger", Vote::NotEligible),
        ]
    );
    assert_eq!((tally.approvals, tally.met), (0, false));
    assert!(tally.votes.iter().all(|v| !v.counted));
}

#[test]
fn a_uid_that_only_one_side_knows_does_not_matter() {
    let mut with = signed("v1", "ann", Approve, minute(1));
    with.spec.preparation_ref.uid = Some("uid-1".into());
    assert!(Ask::new(ApprovalTrust::Signed, 1).tally(&[with.clone()], &[]).met);
    let mut ask = Ask::new(ApprovalTrust::Signed, 1);
    ask.uid = Some("uid-1");
    assert!(ask.tally(&[with], &[]).met);
    assert!(ask.tally(&[signed("v1", "ann", Approve, minute(1))], &[]).met);
}

#[test]
fn the_latest_vote_of_an_approver_counts_and_one_reject_is_a_veto() {
    for trust in [ApprovalTrust::Signed, ApprovalTrust::Cluster, ApprovalTrust::Repository] {
        let ask = Ask::new(trust, 1);
        let approve = signed("v1", "ann", Approve, minute(1));
        let reject = signed("v2", "ann", Reject, minute(2));
        let again = signed("v3", "ann", Approve, minute(3));
        let tally = ask.tally(&[reject.clone(), approve.clone()], &[]);
        assert_eq!(reasons(&tally), [("v1", Vote::Superseded), ("v2", Vote::Counted)], "{trust:?}");
        assert_eq!((tally.vetoes.as_slice(), tally.met), (&["ann".to_owned()][..], false));
        let tally = ask.tally(&[approve.clone(), again, reject.clone()], &[]);
        assert!(tally.met && tally.vetoes.is_empty());
        let bob = signed("v4", "bob", Approve, minute(9));
        let tally = ask.tally(&[reject, bob], &[]);
        assert_eq!((tally.approvals, tally.met), (1, false), "enough approvals do not outvote a veto");
    }
}

#[test]
fn half_a_second_later_is_later() {
    let ask = Ask::new(ApprovalTrust::Signed, 1);
    let reject = signed("z", "ann", Reject, time("2026-01-10T10:00:00Z"));
    let approve = signed("a", "ann", Approve, time("2026-01-10T10:00:00.5Z"));
    assert!(ask.tally(&[approve, reject], &[]).met);
}

#[test]
fn one_subject_is_one_vote_and_two_issuers_are_two() {
    let electorate = |trust| {
        let mut other = known("ann", &["platform"]);
        other.issuer = "https://other.example".into();
        other.ssh_keys = vec![key("zed").public_key().to_openssh().unwrap()];
        Electorate::new(trust, &[known("ann", &["platform"]), other])
    };
    let mut ask = Ask::new(ApprovalTrust::Signed, 2);
    ask.electorate = electorate(ApprovalTrust::Signed);
    let first = signed("v1", "ann", Approve, minute(1));
    let mut renamed = signed("v2", "ann", Approve, minute(2));
    renamed.spec.approver.username = "annabel".into();
    let tally = ask.tally(&[first.clone(), renamed], &[]);
    assert_eq!((tally.approvals, tally.met), (1, false));
    let mut elsewhere = sign_as(approval("v3", "ann", Approve, minute(3)), "zed");
    elsewhere.spec.approver.issuer = "https://other.example".into();
    assert!(ask.tally(&[first, elsewhere], &[]).met);
}

#[test]
fn a_key_that_two_people_share_counts_for_neither() {
    let mut bob = known("bob", &["platform"]);
    bob.ssh_keys = known("ann", &[]).ssh_keys;
    let mut ask = Ask::new(ApprovalTrust::Signed, 2);
    ask.electorate = Electorate::new(ApprovalTrust::Signed, &[known("ann", &["platform"]), bob]);
    assert!(
        ask.electorate.warnings[0].contains("another approver's key too"),
        "{:?}",
        ask.electorate.warnings
    );
    let votes =
        [signed("v1", "ann", Approve, minute(1)), sign_as(approval("v2", "bob", Approve, minute(2)), "ann")];
    let tally = ask.tally(&votes, &[]);
    assert_eq!(reasons(&tally), [("v1", Vote::SignatureInvalid), ("v2", Vote::SignatureInvalid)]);
}

#[test]
fn an_approver_listed_twice_counts_for_nothing_until_that_is_mended() {
    let people = [known("ann", &["platform"]), known("ann", &["interns"])];
    let mut ask = Ask::new(ApprovalTrust::Signed, 1);
    ask.electorate = Electorate::new(ApprovalTrust::Signed, &people);
    assert!(ask.electorate.warnings[0].contains("listed twice"));
    assert!(!ask.tally(&[signed("v1", "ann", Approve, minute(1))], &[]).met);
    let mut broken = known("ann", &["platform"]);
    broken.ssh_keys.push("ssh-ed25519 oops".into());
    let electorate = Electorate::new(ApprovalTrust::Signed, &[broken]);
    assert!(electorate.warnings[0].starts_with("Kitchen approver ann: sshKeys[1]: it is not an OpenSSH"));
}

#[test]
fn a_person_cannot_take_back_the_vote_of_another() {
    let ask = Ask::new(ApprovalTrust::Signed, 1);
    let reject = signed("v1", "ann", Reject, minute(1));
    let forged = sign_as(approval("v2", "ann", Approve, minute(2)), "eve");
    let unsigned = approval("v3", "ann", Approve, minute(3));
    let bob = signed("v4", "bob", Approve, minute(4));
    let tally = ask.tally(&[reject, forged, unsigned, bob], &[]);
    assert_eq!(tally.vetoes, ["ann"]);
}

#[test]
fn a_vote_that_was_seen_outlives_its_file_and_its_flipping() {
    let ask = Ask::new(ApprovalTrust::Signed, 2);
    let ann = signed("v1", "ann", Approve, minute(1));
    let bob = signed("v2", "bob", Approve, minute(2));
    let seen = ask.tally(std::slice::from_ref(&ann), &[]).votes;
    let deleted = ask.tally(std::slice::from_ref(&bob), &seen);
    assert!(deleted.met);
    assert_eq!(deleted.remembered, 1);
    let mut flipped = ann.clone();
    flipped.spec.decision = Reject;
    let tally = ask.tally(&[flipped, bob.clone()], &seen);
    assert!(tally.met, "a flipped vote is not signed, the one that was given still counts");
    assert_eq!(
        reasons(&tally),
        [("v1", Vote::Counted), ("v1", Vote::SignatureInvalid), ("v2", Vote::Counted)]
    );
    let newer = signed("v3", "ann", Reject, minute(3));
    let tally = ask.tally(&[newer, bob.clone()], &seen);
    assert_eq!(tally.vetoes, ["ann"], "until the same approver's newer one");
    assert_eq!(ask.tally(&[ann, bob], &seen).votes.len(), 2, "one that is still there is not two");
}

#[test]
fn a_rejection_that_was_seen_outlives_its_file() {
    for trust in [ApprovalTrust::Signed, ApprovalTrust::Cluster, ApprovalTrust::Repository] {
        let ask = Ask::new(trust, 1);
        let seen = ask.tally(&[signed("v1", "ann", Reject, minute(1))], &[]).votes;
        let tally = ask.tally(&[signed("v2", "bob", Approve, minute(2))], &seen);
        assert_eq!((tally.vetoes.as_slice(), tally.met), (&["ann".to_owned()][..], false), "{trust:?}");
        let mut flipped = approval("v1", "ann", Approve, minute(1));
        flipped.spec.signature = seen[0].signature.clone();
        let tally = ask.tally(&[flipped], &seen);
        assert!(!tally.met, "{trust:?}: flipped at the same instant, the rejection stays");
    }
}

#[test]
fn votes_pasted_into_the_status_are_verified_like_any_other() {
    let ask = Ask::new(ApprovalTrust::Signed, 1);
    let pasted = VoteStatus {
        counted: true,
        reason: Vote::Counted,
        ..Ask::new(ApprovalTrust::Repository, 1)
            .tally(&[approval("v1", "ann", Approve, minute(1))], &[])
            .votes
            .remove(0)
    };
    let tally = ask.tally(&[], std::slice::from_ref(&pasted));
    assert!(!tally.met);
    assert_eq!(tally.votes, [], "and it is not carried on");
    let other = VoteStatus { digest: Digest::hash_bytes(b"another"), ..pasted };
    assert_eq!(Ask::new(ApprovalTrust::Repository, 1).tally(&[], &[other]).votes, []);
}

/// Push rights do not authenticate a vote: neither a file nor a Serving counts, because both are in git.
#[test]
fn under_cluster_only_the_api_server_vouches() {
    let by_server = Ask::new(ApprovalTrust::Cluster, 1);
    let in_file = Ask { by_server: false, ..by_server.clone() };
    let ann = approval("v1", "ann", Approve, minute(1));
    let seen = by_server.tally(std::slice::from_ref(&ann), &[]);
    assert!(seen.met);
    let tally = in_file.tally(std::slice::from_ref(&ann), &[]);
    assert_eq!((tally.met, reasons(&tally)), (false, vec![("v1", Vote::SignatureMissing)]));
    assert_eq!(
        tally.warnings,
        [
            "Approval v1 comes from a file, which does not prove who wrote it; it does not count under approvalTrust: Cluster"
        ]
    );
    let pasted = by_server.tally(&[], &seen.votes);
    assert_eq!((pasted.met, pasted.votes.len()), (false, 0), "{:?}", pasted.votes);
    assert!(in_file.tally(std::slice::from_ref(&ann), &seen.votes).votes.iter().all(|v| !v.counted));
    // A file neither makes nor withdraws a veto.
    let reject = approval("v2", "bob", Reject, minute(2));
    assert!(in_file.tally(std::slice::from_ref(&reject), &[]).vetoes.is_empty());
    let vetoed = by_server.tally(std::slice::from_ref(&reject), &[]).votes;
    let later = approval("v3", "bob", Approve, minute(3));
    assert_eq!(in_file.tally(&[later], &vetoed).vetoes, ["bob"]);
}

#[test]
fn signed_times_decide_and_unsigned_ones_do_not() {
    let ask = Ask::new(ApprovalTrust::Signed, 1);
    let mut approve = signed("v9", "ann", Approve, minute(1));
    approve.metadata.creation_timestamp = Some(minute(99));
    let reject = signed("v1", "ann", Reject, minute(2));
    assert!(!ask.tally(&[approve.clone(), reject.clone()], &[]).met, "an old vote with a new file");
    let by_server = Ask::new(ApprovalTrust::Cluster, 1);
    assert!(by_server.tally(&[approve, reject], &[]).met, "creationTimestamp is the API server's word");
}

#[test]
fn equal_times_are_ordered_by_name_and_under_signatures_reject_first() {
    let by_name = Ask::new(ApprovalTrust::Cluster, 1);
    let votes = [signed("a", "ann", Reject, minute(1)), signed("b", "ann", Approve, minute(1))];
    assert!(by_name.tally(&votes, &[]).met);
    let by_signature = Ask::new(ApprovalTrust::Signed, 1);
    assert!(!by_signature.tally(&votes, &[]).met, "a name is not signed");
}

#[test]
fn where_groups_come_from() {
    let claims = approval("v1", "eve", Approve, minute(1));
    assert!(!Ask::new(ApprovalTrust::Signed, 1).tally(&[sign_as(claims.clone(), "eve")], &[]).met);
    assert!(!Ask::new(ApprovalTrust::Repository, 1).tally(std::slice::from_ref(&claims), &[]).met);
    assert!(Ask::new(ApprovalTrust::Cluster, 1).tally(std::slice::from_ref(&claims), &[]).met);
    let mut ask = Ask::new(ApprovalTrust::Repository, 1);
    ask.electorate = Electorate::new(ApprovalTrust::Repository, &[]);
    let tally = ask.tally(std::slice::from_ref(&claims), &[]);
    assert!(tally.met, "no list: the merge rules vouch for the claim");
    assert_eq!(tally.may_vote, ["group platform"]);
}

#[test]
fn a_vote_after_the_seal_changes_nothing_but_a_veto_does() {
    let ann = signed("v1", "ann", Approve, minute(10));
    let late = signed("v2", "bob", Approve, minute(20));
    let ask = Ask::new(ApprovalTrust::Signed, 1).sealed(minute(10));
    let tally = ask.tally(&[ann.clone(), late], &[]);
    assert_eq!(reasons(&tally), [("v1", Vote::Counted), ("v2", Vote::SubmittedAfterSeal)]);
    assert_eq!((tally.met, tally.seal_time), (true, Some(minute(10))), "sealing again gives the same seal");
    let veto = signed("v3", "bob", Reject, minute(30));
    let tally = ask.tally(&[ann.clone(), veto.clone()], &[]);
    assert_eq!((tally.vetoes.as_slice(), tally.seal_time), (&["bob".to_owned()][..], Some(minute(30))));
    let taken_back = signed("v4", "bob", Approve, minute(31));
    let tally = ask.tally(&[ann.clone(), veto.clone(), taken_back], &[]);
    assert!(tally.vetoes.is_empty(), "a Reject that was withdrawn before it was seen is not a veto");
    let intern = signed("v5", "eve", Reject, minute(30));
    assert!(ask.tally(&[ann.clone(), intern], &[]).met, "who may not vote vetoes nothing");
    let mut deployed = ask;
    deployed.deployed = true;
    let tally = deployed.tally(&[ann, veto], &[]);
    assert_eq!(reasons(&tally), [("v1", Vote::Counted), ("v3", Vote::SubmittedAfterSeal)]);
}

#[test]
fn the_same_approver_may_vote_again_after_the_seal() {
    let ask = Ask::new(ApprovalTrust::Signed, 1).sealed(minute(10));
    let votes = [signed("v1", "ann", Approve, minute(10)), signed("v2", "ann", Approve, minute(20))];
    let tally = ask.tally(&votes, &[]);
    assert_eq!(reasons(&tally), [("v1", Vote::Counted), ("v2", Vote::SubmittedAfterSeal)]);
}

#[test]
fn a_vote_from_the_future_makes_nothing_pass() {
    let ask = Ask::new(ApprovalTrust::Signed, 1);
    let soon = Time::from_unix(time(NOW).unix() + 299);
    let later = Time::from_unix(time(NOW).unix() + 301);
    assert!(ask.tally(&[signed("v1", "ann", Approve, soon)], &[]).met, "five minutes are tolerated");
    let tally = ask.tally(&[signed("v1", "ann", Approve, later)], &[]);
    assert_eq!((tally.met, tally.votes.len()), (false, 0));
    assert_eq!(
        tally.warnings,
        [format!("Approval v1 is dated {later}, ahead of this run's clock; it does not count")]
    );
    let votes = [signed("v1", "ann", Reject, minute(1)), signed("v2", "ann", Approve, later)];
    assert_eq!(ask.tally(&votes, &[]).vetoes, ["ann"], "it takes nothing back");
    let votes = [signed("v1", "ann", Approve, minute(1)), signed("v2", "bob", Reject, later)];
    let tally = ask.tally(&votes, &[]);
    assert_eq!((tally.met, tally.warnings.len()), (false, 1), "a veto is not lost to a fast clock");
}

#[test]
fn at_most_64_votes_are_kept_and_those_that_decide_first() {
    let people: Vec<String> = (0..80).map(|n| format!("{n:03}")).collect();
    let ask = {
        let mut ask = Ask::new(ApprovalTrust::Cluster, 2);
        ask.electorate = Electorate::new(ApprovalTrust::Cluster, &[]);
        ask
    };
    let mut votes: Vec<Approval> = people
        .iter()
        .enumerate()
        .map(|(n, p)| {
            let mut vote = approval(&format!("v{p}"), p, Approve, minute(100 + n as u32));
            vote.spec.approver.groups = if n < 70 { vec!["interns".into()] } else { vec!["platform".into()] };
            vote
        })
        .collect();
    let mut veto = approval("veto", "veto", Reject, minute(50));
    veto.spec.approver.groups = vec!["platform".into()];
    votes.push(veto);
    let tally = ask.tally(&votes, &[]);
    assert_eq!(tally.votes.len(), VOTES);
    assert_eq!(tally.votes.iter().filter(|v| v.counted).count(), 11);
    assert_eq!((tally.approvals, tally.vetoes.len()), (10, 1));
    let kept: Vec<&str> = tally.votes.iter().filter(|v| !v.counted).map(|v| v.name.as_str()).collect();
    assert_eq!(kept.len(), 53);
    assert!(!kept.contains(&"v016") && kept.contains(&"v017"), "the newest of the rest");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]
    /// One approver's latest vote decides for that approver, whatever the order of files, and every run
    /// that remembers what an earlier one saw decides the same.
    #[test]
    fn agrees_with_a_naive_count(
        votes in proptest::collection::vec((0usize..3, any::<bool>(), 0u32..40), 0..10),
        required in 1u32..3,
        cut in 0usize..10,
        turn in 0usize..10,
    ) {
        let people = ["ann", "bob", "eve"];
        let all: Vec<Approval> = votes
            .iter()
            .enumerate()
            .map(|(n, (person, approve, at))| {
                approval(&format!("v{n:02}"), people[*person], if *approve { Approve } else { Reject }, minute(*at))
            })
            .collect();
        let listed = people.map(|person| KnownApprover {
            issuer: "https://idp.example".into(),
            subject: person.into(),
            username: person.into(),
            groups: vec![if person == "eve" { "interns".into() } else { "platform".into() }],
            ssh_keys: Vec::new(),
        });
        let ask = Ask {
            policy: policy(required),
            electorate: Electorate::new(ApprovalTrust::Repository, &listed),
            target_since: Some(minute(0)),
            sealed: None,
            deployed: false,
            uid: None,
            by_server: false,
        };
        let tally = ask.tally(&all, &[]);

        let latest = |person: &str| {
            let own = all.iter().filter(|a| a.spec.approver.subject == person);
            own.max_by_key(|a| (a.spec.submitted_time, a.metadata.name.clone())).map(|a| a.spec.decision)
        };
        let words = [latest("ann"), latest("bob")];
        let approvals = words.iter().filter(|w| **w == Some(Approve)).count();
        let vetoed = words.contains(&Some(Reject));
        prop_assert_eq!(tally.met, !vetoed && approvals >= required as usize);

        let mut turned = all.clone();
        if !turned.is_empty() {
            let by = turn % turned.len();
            turned.rotate_left(by);
        }
        prop_assert_eq!(&ask.tally(&turned, &[]), &tally);

        let (before, after) = turned.split_at(cut.min(turned.len()));
        let seen = ask.tally(before, &[]).votes;
        let later = ask.tally(after, &seen);
        prop_assert_eq!((later.met, later.approvals, &later.vetoes), (tally.met, tally.approvals, &tally.vetoes));
    }
}
