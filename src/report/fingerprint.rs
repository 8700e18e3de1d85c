//! A plan's fingerprint: its input and its result, as a text short enough for a command
//! line and for a hidden comment.
//!
//! ```text
//! e1.<total and inputs, 27 characters>[.<16 characters for every Order that moves, waits or fails>]
//! ```
//!
//! The total is what `--expect` compares: 128 bits over everything below. The rest only says what differs: of
//! every Order the hash of its name, its decision and the gate it waits for in clear, and short hashes of
//! what is deployed, of the candidate, of the gates' answers with their evidence and parameters, and of what
//! happens to its files. So the fingerprint alone shows what differs, and the hash of the name shows which
//! Order.
//!
//! It does not include what changes without a meaning: the commit, the clock (the gates' answers hold the
//! instants that they name), records and statuses that carry the time of the run, places of messages,
//! warnings, and Orders that keep what they have. The fingerprint depends on time as decisions do: once a
//! freeze begins, the plan is another one.

use crate::files::FileChange;
use crate::model::id::OrderRef;
use crate::model::plan::{ApplicationAction, Decision, PlanRow};
use crate::model::verdict::GateName;
use crate::report::plan::describe_row;
use crate::report::view::{self, View};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD_NO_PAD as BASE64;
use sha2::{Digest as _, Sha256};
use std::fmt;

/// The version of the format.
const FORM: &str = "e1";

/// Beyond this many Orders only the total is written: it must fit a command line.
const MOST: usize = 2_000;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fingerprint {
    total: [u8; 16],
    settings: [u8; 2],
    problems: [u8; 2],
    /// Sorted by Order when made; `None`: a short one.
    orders: Option<Vec<FingerprintEntry>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FingerprintEntry {
    name: [u8; 3],
    code: u8,
    parts: [[u8; 2]; 4],
}

/// What the four parts of an entry are.
const PARTS: [&str; 4] = [
    "what is deployed",
    "the candidate or where it goes",
    "the gates' answers or their evidence",
    "what happens to its Applications and who asked",
];

impl Fingerprint {
    /// Of a plan; `settings` names what it was decided with in addition to objects (trust, limits).
    #[must_use]
    pub fn from_view(view: &View<'_>, settings: &str) -> Self {
        let mut problems: Vec<String> = view.plan.problems.iter().map(|p| p.format_sentence()).collect();
        problems.extend(view.plan.guard.iter().flat_map(|g| g.removals.iter().map(|(path, _)| path.clone())));
        let (settings, problems) = (hash_texts([settings]), hash_texts(problems.iter().map(String::as_str)));
        let mut total = Sha256::new();
        total.update(settings);
        total.update(problems);
        let mut orders = Vec::new();
        for row in view.iter_shown_rows() {
            let parts = collect_parts(view, row).map(|part| hash_texts(part.iter().map(String::as_str)));
            total.update(hash_texts([row.order.to_string().as_str()]));
            total.update([encode_decision(row)]);
            parts.iter().for_each(|part| total.update(part));
            orders.push(FingerprintEntry {
                name: hash_name(&row.order),
                code: encode_decision(row),
                parts: parts.map(take_first),
            });
        }
        let total: [u8; 32] = total.finalize().into();
        Self {
            total: take_first(total),
            settings: take_first(settings),
            problems: take_first(problems),
            orders: (orders.len() <= MOST).then_some(orders),
        }
    }

    /// Reads a fingerprint.
    ///
    /// # Errors
    /// Says what was expected.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong =
            || format!("{text:?} is not a fingerprint of a plan: a fingerprint is {FORM}. and 27 characters");
        let mut pieces = text.trim().split('.');
        if pieces.next() != Some(FORM) {
            return Err(wrong());
        }
        let bytes = |piece: Option<&str>| BASE64.decode(piece.unwrap_or_default()).map_err(|_| wrong());
        let head = bytes(pieces.next())?;
        let (Some(total), Some(settings), Some(problems), 20) =
            (read_array(&head, 0), read_array(&head, 16), read_array(&head, 18), head.len())
        else {
            return Err(wrong());
        };
        let orders = match pieces.next() {
            None => None,
            Some(piece) => {
                let bytes = bytes(Some(piece))?;
                let entries: Option<Vec<FingerprintEntry>> =
                    bytes.chunks(12).map(FingerprintEntry::parse_entry).collect();
                Some(entries.ok_or_else(wrong)?)
            }
        };
        match pieces.next() {
            None => Ok(Self { total, settings, problems, orders }),
            Some(_) => Err(wrong()),
        }
    }

    /// Without the Orders, so that it fits on a line of a page.
    #[must_use]
    pub fn drop_orders(&self) -> Self {
        Self { orders: None, ..self.clone() }
    }

    /// Whether it is of the same plan.
    #[must_use]
    pub fn is_same_plan(&self, other: &Self) -> bool {
        self.total == other.total
    }

    /// What differs between the plan that was expected and the one of `view`, whose fingerprint this is: a
    /// sentence each.
    #[must_use]
    pub fn describe_differences(&self, expected: &Self, view: &View<'_>) -> Vec<String> {
        let mut out = Vec::new();
        if self.settings != expected.settings {
            out.push("the Kitchen's trust or the settings differ".to_owned());
        }
        if self.problems != expected.problems {
            out.push("what cannot be read, or what the removal guard stops, is something else".to_owned());
        }
        let Some(orders) = &expected.orders else {
            out.push("a short fingerprint does not show which Orders differ".to_owned());
            return out;
        };
        for row in view.iter_shown_rows() {
            let own = FingerprintEntry {
                name: hash_name(&row.order),
                code: encode_decision(row),
                parts: collect_parts(view, row)
                    .map(|part| take_first(hash_texts(part.iter().map(String::as_str)))),
            };
            let now = describe_row(view, row);
            match orders.iter().find(|entry| entry.name == own.name) {
                Some(entry) if *entry == own => {}
                Some(entry) if entry.code != own.code => {
                    out.push(format!("{}: {}; now: {now}", row.order, entry.describe_entry()));
                }
                Some(entry) => {
                    let differ = entry.parts.iter().zip(own.parts).zip(PARTS);
                    let parts: Vec<&str> =
                        differ.filter(|((a, b), _)| *a != b).map(|(_, part)| part).collect();
                    out.push(format!("{}: {} changed; it {now}", row.order, parts.join(", ")));
                }
                None => out.push(format!("{}: nothing was to happen; now: {now}", row.order)),
            }
        }
        for entry in orders {
            if view.iter_shown_rows().any(|row| hash_name(&row.order) == entry.name) {
                continue;
            }
            let expected = entry.describe_entry();
            out.push(match view.plan.rows.iter().find(|row| hash_name(&row.order) == entry.name) {
                Some(row) => format!("{}: {expected}; now: {}", row.order, describe_row(view, row)),
                None => format!("an Order that is not in this plan: {expected}"),
            });
        }
        if out.is_empty() {
            out.push("something about them that a fingerprint does not distinguish".to_owned());
        }
        out
    }
}

impl FingerprintEntry {
    fn parse_entry(bytes: &[u8]) -> Option<Self> {
        let part = |n: usize| read_array(bytes, 4 + 2 * n);
        Some(Self {
            name: read_array(bytes, 0)?,
            code: *bytes.get(3)?,
            parts: [part(0)?, part(1)?, part(2)?, part(3)?],
        })
    }

    fn write_entry(&self, out: &mut Vec<u8>) {
        out.extend(self.name);
        out.push(self.code);
        self.parts.iter().for_each(|part| out.extend(part));
    }

    /// What was to happen, in words.
    fn describe_entry(&self) -> String {
        let gate = GATES.get(usize::from(self.code & 7)).copied().flatten();
        match (self.code >> 3, gate) {
            (1, _) => "was to be promoted".to_owned(),
            (2, _) => "was to be rolled back".to_owned(),
            (3, Some(gate)) => format!("was to wait for {gate}"),
            (3, None) => "was to wait".to_owned(),
            (4, _) => "its input was wrong".to_owned(),
            (5, _) => "was to be removed".to_owned(),
            (_, _) => "was to keep what it has".to_owned(),
        }
    }
}

/// Gates by their number in a code; 0 is none.
const GATES: [Option<GateName>; 8] = [
    None,
    Some(GateName::Ready),
    Some(GateName::Upstream),
    Some(GateName::Checks),
    Some(GateName::Approvals),
    Some(GateName::Evidence),
    Some(GateName::Window),
    Some(GateName::OptIn),
];

/// The decision and the gate that is waited for.
fn encode_decision(row: &PlanRow) -> u8 {
    let gate = |row: &PlanRow| {
        let waits = row.find_waiting_gate().map(|v| v.gate);
        GATES.iter().position(|gate| *gate == waits && gate.is_some()).unwrap_or(0)
    };
    let gate = |row| u8::try_from(gate(row)).unwrap_or(0);
    match &row.decision {
        Decision::Keep => 0,
        Decision::Promote(promotion) if promotion.rollback => 2 << 3,
        Decision::Promote(_) => 1 << 3,
        Decision::Hold => (3 << 3) | gate(row),
        Decision::Broken => 4 << 3,
        Decision::Remove(_) => 5 << 3,
    }
}

/// Whether two plans have the same input and the same result for an Order.
#[must_use]
pub fn is_same_row((a_view, a): (&View<'_>, &PlanRow), (b_view, b): (&View<'_>, &PlanRow)) -> bool {
    encode_decision(a) == encode_decision(b) && collect_parts(a_view, a) == collect_parts(b_view, b)
}

/// The input and the result of a row, in the order of [`PARTS`].
fn collect_parts(view: &View<'_>, row: &PlanRow) -> [Vec<String>; 4] {
    let serving = view.find_serving(row);
    let deployed = serving.map(|s| {
        let status = &s.status;
        let name = status.observed_preparation_name.as_ref().map(ToString::to_string);
        [name, status.deployed_digest.map(|d| d.to_string())].map(Option::unwrap_or_default)
    });
    let mut candidate = vec![super::plan::format_mode(row.mode).to_owned()];
    candidate.extend(row.environment.as_ref().map(ToString::to_string));
    if let Some(c) = &row.candidate {
        candidate.extend([c.name.to_string(), c.artifact.to_string(), c.target_namespace.to_string()]);
        candidate.extend(c.base_digest.map(|d| d.to_string()));
    }
    let mut gates = Vec::new();
    for verdict in &row.verdicts {
        gates.extend([verdict.gate.to_string(), view::describe_outcome(verdict), verdict.message.clone()]);
        gates.push(verdict.parameters.to_string());
        for piece in &verdict.evidence {
            let digest = piece.digest.map(|d| d.to_string()).unwrap_or_default();
            gates.extend([piece.kind.clone(), piece.name.clone(), digest, piece.key.clone()]);
        }
    }
    let mut outcome: Vec<String> = row.errors.iter().map(|e| e.format_sentence()).collect();
    if let Decision::Promote(promotion) = &row.decision {
        outcome.push(promotion.requested_by.name.clone());
    }
    for application in &row.applications {
        let why = match &application.action {
            ApplicationAction::Pin(_) => String::new(),
            ApplicationAction::Hold { reason, message } => format!("{reason} {message}"),
            ApplicationAction::Detach(why) | ApplicationAction::Remove(why) => why.clone(),
        };
        let action = view.describe_action(application).unwrap_or_default().to_owned();
        let bytes = match view.changes.get(&application.path) {
            Some(FileChange::Write(bytes)) => hex::encode(hash_bytes(bytes)),
            Some(FileChange::Delete) => "deleted".to_owned(),
            None => String::new(),
        };
        outcome.extend([application.path.clone(), action, why, bytes]);
    }
    [deployed.map(Vec::from).unwrap_or_default(), candidate, gates, outcome]
}

fn hash_name(order: &OrderRef) -> [u8; 3] {
    take_first(hash_texts([order.to_string().as_str()]))
}

/// Of texts one after the other, each with its length, so that text cannot move from one to the next without
/// changing the hash.
fn hash_texts<'a>(texts: impl IntoIterator<Item = &'a str>) -> [u8; 32] {
    let mut hasher = Sha256::new();
    for text in texts {
        hasher.update((text.len() as u64).to_be_bytes());
        hasher.update(text);
    }
    hasher.finalize().into()
}

fn hash_bytes(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
}

/// The first bytes of a hash.
fn take_first<const N: usize>(hash: [u8; 32]) -> [u8; N] {
    std::array::from_fn(|i| hash[i])
}

fn read_array<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at + N)?.try_into().ok()
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut head = self.total.to_vec();
        head.extend(self.settings);
        head.extend(self.problems);
        write!(f, "{FORM}.{}", BASE64.encode(head))?;
        if let Some(orders) = &self.orders {
            let mut bytes = Vec::with_capacity(orders.len() * 12);
            orders.iter().for_each(|entry| entry.write_entry(&mut bytes));
            write!(f, ".{}", BASE64.encode(bytes))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;
    use crate::error::{At, Failure};
    use crate::model::id::Digest;
    use crate::model::time::Time;
    use crate::model::verdict::Verdict;
    use crate::report::sample::{Sample, make_sample, parse_order};

    fn of(sample: &Sample) -> Fingerprint {
        Fingerprint::from_view(&sample.make_view(None), "trust")
    }

    fn differs(old: &Sample, new: &Sample) -> Vec<String> {
        let (expected, now) = (of(old), of(new));
        assert!(!now.is_same_plan(&expected));
        let expected = Fingerprint::parse(&expected.to_string()).unwrap();
        now.describe_differences(&expected, &new.make_view(None))
    }

    fn row<'a>(sample: &'a mut Sample, name: &str) -> &'a mut PlanRow {
        sample.plan.rows.iter_mut().find(|r| r.order == parse_order(name)).unwrap()
    }

    #[test]
    fn it_is_read_as_it_is_written() {
        let fingerprint = of(&make_sample());
        let text = fingerprint.to_string();
        assert_eq!(text.len(), 3 + 27 + 1 + 6 * 16, "{text}");
        assert_eq!(Fingerprint::parse(&format!(" {text}\n")).unwrap(), fingerprint);
        let short = Fingerprint::parse(&fingerprint.drop_orders().to_string()).unwrap();
        assert!(short.is_same_plan(&fingerprint));
        for bad in ["", "e1", "e1.", "e2.AAAA", &text[..20], &text[..40], &format!("{text}."), "e1.!!"] {
            assert!(Fingerprint::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn what_means_nothing_is_left_out() {
        let (old, mut new) = (make_sample(), make_sample());
        new.plan.at = Time::parse("2031-01-01T00:00:00Z").unwrap();
        new.plan.notices.clear();
        new.changes.insert("servings/shop/web.yaml".into(), FileChange::Write(b"another time".to_vec()));
        row(&mut new, "shop/broken").errors[0].at = Some(At::from_file("elsewhere.yaml"));
        row(&mut new, "shop/web").warnings.push(Failure::new_input("x", "y"));
        assert!(of(&new).is_same_plan(&of(&old)));
    }

    #[test]
    fn what_an_order_that_keeps_all_has_is_its_own_matter() {
        let (mut old, mut new) = (make_sample(), make_sample());
        for sample in [&mut old, &mut new] {
            sample.changes.retain(|path, _| !path.contains("kept"));
        }
        row(&mut new, "shop/kept").candidate = None;
        assert!(of(&new).is_same_plan(&of(&old)));
    }

    #[test]
    fn a_difference_names_the_order_and_what_it_is() {
        let mut new = make_sample();
        row(&mut new, "shop/cart").verdicts[1].message = "1 of 2 approvals".into();
        assert_eq!(
            differs(&make_sample(), &new),
            [
                "shop/cart: the gates' answers or their evidence changed; it cart-2 waits for Approvals; keeps cart-1"
            ]
        );
        let mut new = make_sample();
        row(&mut new, "shop/web").decision = Decision::Hold;
        row(&mut new, "shop/web").verdicts = vec![Verdict::make_failed(GateName::Checks, "too many")];
        assert_eq!(
            differs(&make_sample(), &new),
            ["shop/web: was to be promoted; now: web-2 waits for Checks; keeps web-1"]
        );
        let mut new = make_sample();
        row(&mut new, "shop/web").candidate.as_mut().unwrap().artifact.digest = Digest::hash_bytes(b"other");
        assert!(differs(&make_sample(), &new)[0].contains("the candidate or where it goes changed"));
        let mut new = make_sample();
        new.plan.rows.retain(|r| r.order != parse_order("shop/gone"));
        assert_eq!(differs(&make_sample(), &new), ["an Order that is not in this plan: was to be removed"]);
        assert_eq!(
            differs(&new, &make_sample()),
            ["shop/gone: nothing was to happen; now: is removed: its Order is gone from ./objects"]
        );
        let mut new = make_sample();
        new.plan.problems.clear();
        assert!(differs(&make_sample(), &new)[0].starts_with("what cannot be read"));
    }

    #[test]
    fn every_input_of_a_decision_counts() {
        let base = of(&make_sample());
        let changed = |change: &dyn Fn(&mut Sample)| {
            let mut new = make_sample();
            change(&mut new);
            !of(&new).is_same_plan(&base)
        };
        assert!(changed(&|s| row(s, "shop/web").verdicts[0].parameters = serde_json::json!({"max": 1})));
        assert!(changed(&|s| row(s, "shop/web").verdicts[0].evidence[0].digest = None));
        assert!(changed(&|s| row(s, "shop/web").verdicts[0].evidence[0].key = "other".into()));
        assert!(changed(&|s| row(s, "shop/web").environment = None));
        let path =
            make_sample().plan.rows.iter().find(|r| r.order == parse_order("shop/web")).unwrap().applications
                [0]
            .path
            .clone();
        assert!(changed(&|s| {
            s.changes.insert(path.clone(), FileChange::Write(b"another template".to_vec()));
        }));
        assert!(!Fingerprint::from_view(&make_sample().make_view(None), "other trust").is_same_plan(&base));
    }
}
