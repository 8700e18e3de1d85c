//! What a statement means: `(Past, statement) → Past`. The only place that says so; total, and the same each time.

mod votes;

use crate::ledger::event::{Accepted, Observed, Place, Placed, Promoted, Removal};
use crate::ledger::past::{Entry, Past, Pinned, Ran, Sealed, SealedVote};
use crate::ledger::statement::Event;
use crate::model::id::{Artifact, Digest, EnvironmentName, PreparationName};
use crate::model::reason::Ended;
use crate::model::serving::{HISTORY, HistoryEntry};
use crate::model::time::Time;

/// A statement's place in the chain, as far as its meaning depends on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Position {
    /// Its sequence.
    pub sequence: u64,
    /// The hash of the statement before it.
    pub previous: Option<Digest>,
    /// When it was signed.
    pub time: Time,
}

/// What an Order did so far, after one statement more.
#[must_use]
pub fn fold_statement(before: &Past, artifact: &Artifact, event: &Event, at: &Position) -> Past {
    let mut past = before.clone();
    if let Some(previous) = at.previous {
        fill_hash(&mut past, previous);
    }
    past.sequence = at.sequence;
    past.time = at.time;
    match event {
        Event::Approvals(body) => votes::fold_seal(&mut past, artifact, body, at),
        Event::Promotion(body) => fold_promotion(&mut past, artifact, body, at),
        Event::Placed(body) => fold_placed(&mut past, body),
        Event::Deployment(body) => fold_deployment(&mut past, artifact, body, at),
        Event::Removal(body) => fold_removal(&mut past, body),
        Event::Accepted(body) => fold_accepted(&mut past, body, at),
    }
    past
}

/// Names the statement before this one where the fold could not: its hash covers the Past that it results in.
fn fill_hash(past: &mut Past, previous: Digest) {
    let sequence = past.sequence;
    for entry in &mut past.history {
        if entry.promotion == sequence && entry.said.promotion_record.is_none() {
            entry.said.promotion_record = Some(previous);
        }
        if entry.deployment == Some(sequence) && entry.said.deployment_record.is_none() {
            entry.said.deployment_record = Some(previous);
        }
    }
    if let Some(seal) = &mut past.seal
        && seal.sequence == sequence
        && seal.record.is_none()
    {
        seal.record = Some(previous);
    }
}

/// The Past with the hash of the statement that it was folded up to filled in: what the next statement's fold
/// begins with, and what is shown.
#[must_use]
pub fn fill_head(past: &Past, head: Digest) -> Past {
    let mut past = past.clone();
    fill_hash(&mut past, head);
    past
}

fn fold_promotion(past: &mut Past, artifact: &Artifact, body: &Promoted, at: &Position) {
    let Promoted { record, source, finished_on, approval_record, .. } = body;
    let promoted = record.promoted_time;
    let healthy_until = record.previous.as_ref().and_then(|previous| previous.healthy_until);
    end_newest(past, promoted, healthy_until);
    if past.environment.as_ref() != Some(&record.environment) || past.removed.is_some() {
        past.stay += 1;
        past.environment = Some(record.environment.clone());
    }
    past.removed = None;
    let mut clusters: Vec<Place> = record
        .clusters
        .iter()
        .map(|c| Place { name: c.name.clone(), server: c.server.clone().unwrap_or_default() })
        .collect();
    clusters.sort();
    past.deployed = Some(Pinned {
        preparation: record.preparation.name.clone(),
        digest: artifact.digest,
        repository: artifact.repository.clone(),
        environment: record.environment.clone(),
        target_namespace: record.target_namespace.clone().unwrap_or_else(|| record.order.namespace.clone()),
        source: source.clone(),
        promoted_time: promoted,
        finished_on: *finished_on,
        base_digest: record.base_digest,
        clusters,
        unproven: false,
    });
    let said = HistoryEntry {
        preparation_name: record.preparation.name.clone(),
        digest: artifact.digest,
        base_digest: record.base_digest,
        environment: Some(record.environment.clone()),
        promoted_time: promoted,
        requested_by: Some(record.requested_by.clone()),
        first_healthy_time: None,
        ended_time: None,
        ended_reason: None,
        healthy_until: None,
        approval_record: *approval_record,
        promotion_record: None,
        deployment_record: None,
    };
    past.history.insert(0, Entry { promotion: at.sequence, deployment: None, said });
    shorten_history(&mut past.history);
    start_run(past, &record.environment, artifact.digest, &record.preparation.name, promoted);
}

/// What ran until now is superseded, unless it ended before.
fn end_newest(past: &mut Past, at: Time, healthy_until: Option<Time>) {
    let Some(newest) = past.history.first_mut().filter(|entry| entry.said.ended_time.is_none()) else {
        return;
    };
    newest.said.ended_time = Some(at);
    newest.said.ended_reason = Some(Ended::Superseded);
    newest.said.healthy_until = healthy_until.filter(|_| newest.said.first_healthy_time.is_some());
    let (environment, digest) = (newest.said.environment.clone(), newest.said.digest);
    if let Some(environment) = environment {
        end_run(past, &environment, digest, at, Ended::Superseded);
    }
}

fn fold_placed(past: &mut Past, body: &Placed) {
    let Some(deployed) = &mut past.deployed else { return };
    deployed.clusters.retain(|known| body.clusters.iter().all(|new| new.name != known.name));
    deployed.clusters.extend(body.clusters.iter().cloned());
    deployed.clusters.sort();
}

fn fold_deployment(past: &mut Past, artifact: &Artifact, body: &Observed, at: &Position) {
    let record = &body.record;
    let promotion = Some(record.promotion_record.digest);
    let of_it =
        |entry: &Entry| entry.said.promotion_record == promotion && entry.said.digest == artifact.digest;
    let since = record.first_healthy_time;
    let known = past.history.iter().position(|e| of_it(e) && e.said.first_healthy_time == Some(since));
    let fresh = || {
        past.history
            .iter()
            .position(|e| of_it(e) && e.said.first_healthy_time.is_none() && e.said.ended_time.is_none())
    };
    let index = match known.or_else(fresh) {
        Some(index) => index,
        // A recovery: an entry of its own, with the promotion's time and record.
        None if past.history.first().is_some_and(of_it) => {
            let newest = &past.history[0];
            let said = HistoryEntry {
                first_healthy_time: None,
                ended_time: None,
                ended_reason: None,
                healthy_until: None,
                deployment_record: None,
                ..newest.said.clone()
            };
            let entry = Entry { promotion: newest.promotion, deployment: None, said };
            past.history.insert(0, entry);
            0
        }
        None => return,
    };
    let entry = &mut past.history[index];
    entry.said.first_healthy_time = Some(since);
    entry.deployment = Some(at.sequence);
    entry.said.deployment_record = None;
    let degraded = (record.ended_reason == Some(Ended::Degraded)).then(|| record.ended_time.unwrap_or(since));
    if let Some(ended) = degraded {
        entry.said.ended_time = Some(ended);
        entry.said.ended_reason = Some(Ended::Degraded);
    } else if let Some(seen) = body.seen_until {
        entry.said.healthy_until = Some(entry.said.healthy_until.map_or(seen, |known| known.max(seen)));
    }
    shorten_history(&mut past.history);
    mark_healthy(past, &record.environment, artifact.digest, since);
    if let Some(ended) = degraded {
        end_run(past, &record.environment, artifact.digest, ended, Ended::Degraded);
    }
}

fn fold_removal(past: &mut Past, body: &Removal) {
    end_newest(past, body.removed_time, None);
    past.deployed = None;
    past.history.clear();
    past.seal = None;
    past.votes.clear();
    past.environment = None;
    past.removed = Some(body.removed_time);
    past.life += 1;
}

fn fold_accepted(past: &mut Past, body: &Accepted, at: &Position) {
    if at.previous.is_none() {
        // It links to nothing: what was before is not known.
        let fresh = Past::new(past.order.clone(), past.id.clone(), past.branch.clone(), at.time);
        *past = Past { sequence: at.sequence, ..fresh };
    }
    let pin = &body.deployed;
    if past.environment.as_ref() != Some(&pin.environment) || past.removed.is_some() {
        past.stay += 1;
        past.environment = Some(pin.environment.clone());
    }
    past.removed = None;
    past.deployed = Some(pin.clone());
    past.history.clear();
    past.seal = None;
    let carried = body.carried.as_ref();
    for said in carried.iter().flat_map(|carried| carried.history.iter().rev()) {
        carry_entry(past, said, at);
    }
    if let Some(approval) = carried.and_then(|carried| carried.approval.as_ref())
        && let (Some(preparation), Some(sealed_time)) = (&approval.preparation_name, approval.sealed_time)
    {
        let digest = approval.votes.first().map_or(pin.digest, |vote| vote.digest);
        past.seal = Some(Sealed {
            sequence: at.sequence,
            record: approval.record,
            preparation: preparation.clone(),
            digest,
            result: "Approved".into(),
            sealed_time,
        });
        for vote in approval.votes.iter().filter(|vote| vote.counted) {
            votes::keep_vote(
                past,
                SealedVote {
                    preparation: preparation.clone(),
                    environment: None,
                    target_namespace: None,
                    vote: vote.clone(),
                },
            );
        }
    }
    let newest = past.history.first().map(|e| (e.said.digest, e.said.preparation_name.clone()));
    if newest != Some((pin.digest, pin.preparation.clone())) {
        let said = HistoryEntry {
            preparation_name: pin.preparation.clone(),
            digest: pin.digest,
            base_digest: None,
            environment: Some(pin.environment.clone()),
            promoted_time: pin.promoted_time,
            requested_by: Some(body.accepted_by.clone()),
            first_healthy_time: None,
            ended_time: None,
            ended_reason: None,
            healthy_until: None,
            approval_record: None,
            promotion_record: None,
            deployment_record: None,
        };
        past.history.insert(0, Entry { promotion: at.sequence, deployment: None, said });
        shorten_history(&mut past.history);
    }
}

/// One proven entry of a history of before the ledger; the oldest comes first.
fn carry_entry(past: &mut Past, said: &HistoryEntry, at: &Position) {
    let environment = said.environment.clone();
    past.history.insert(0, Entry { promotion: at.sequence, deployment: None, said: said.clone() });
    shorten_history(&mut past.history);
    let Some(environment) = environment else { return };
    start_run(past, &environment, said.digest, &said.preparation_name, said.promoted_time);
    if let Some(since) = said.first_healthy_time {
        mark_healthy(past, &environment, said.digest, since);
    }
    if let Some((ended, how)) = said.ended_time.zip(said.ended_reason) {
        end_run(past, &environment, said.digest, ended, how);
    }
}

/// A digest begins to run in an Environment.
fn start_run(
    past: &mut Past,
    environment: &EnvironmentName,
    digest: Digest,
    name: &PreparationName,
    at: Time,
) {
    let (life, stay) = (past.life, past.stay);
    let key = |ran: &Ran| (ran.environment.clone(), ran.digest);
    let place = past.ran.binary_search_by(|ran| key(ran).cmp(&(environment.clone(), digest)));
    let index = match place {
        Ok(index) => index,
        Err(index) => {
            let line = Ran {
                environment: environment.clone(),
                digest,
                preparations: Vec::new(),
                first_promoted: at,
                last_ended: None,
                ended: None,
                healthy: false,
                degraded: None,
                recovered: None,
                life,
                stay,
            };
            past.ran.insert(index, line);
            index
        }
    };
    let line = &mut past.ran[index];
    if line.life != life {
        line.first_promoted = at;
        line.healthy = false;
    }
    if line.stay != stay {
        line.preparations.clear();
    }
    if !line.preparations.contains(name) {
        line.preparations.push(name.clone());
    }
    (line.life, line.stay) = (life, stay);
    (line.last_ended, line.ended) = (None, None);
}

fn find_line<'p>(past: &'p mut Past, environment: &EnvironmentName, digest: Digest) -> Option<&'p mut Ran> {
    past.ran.iter_mut().find(|ran| ran.environment == *environment && ran.digest == digest)
}

fn mark_healthy(past: &mut Past, environment: &EnvironmentName, digest: Digest, since: Time) {
    let Some(line) = find_line(past, environment, digest) else { return };
    line.healthy = true;
    if line.ended == Some(Ended::Degraded) && line.degraded.is_some_and(|ended| ended <= since) {
        line.recovered = Some(since);
        (line.last_ended, line.ended) = (None, None);
    }
}

fn end_run(past: &mut Past, environment: &EnvironmentName, digest: Digest, at: Time, how: Ended) {
    let Some(line) = find_line(past, environment, digest) else { return };
    (line.last_ended, line.ended) = (Some(at), Some(how));
    if how == Ended::Degraded {
        (line.degraded, line.recovered) = (Some(at), None);
    }
}

/// Cuts to 16: when full, older recoveries of one promotion go first, then the oldest.
fn shorten_history(entries: &mut Vec<Entry>) {
    while entries.len() > HISTORY {
        let same = |i: usize, j: usize| {
            let (a, b) = (&entries[i].said, &entries[j].said);
            (a.promoted_time, a.digest) == (b.promoted_time, b.digest)
        };
        // An entry between the promotion's first and last one says the least.
        let recovery = (1..entries.len() - 1).rev().find(|&i| same(i - 1, i) && same(i + 1, i));
        match recovery {
            Some(index) => drop(entries.remove(index)),
            None => drop(entries.pop()),
        }
    }
}

#[cfg(test)]
#[path = "fold/tests.rs"]
mod tests;
