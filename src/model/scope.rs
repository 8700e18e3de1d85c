//! The part of the fleet that a run writes, as selected by the scope flags. It never limits what a run reads.

use crate::model::environment::{Selector, SelectorOperator, SelectorRule};
use crate::model::id::{IdError, Namespace, OrderRef};
use sha2::{Digest as _, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// The part of the fleet that is written (`docs/design/command-line.md#scope`). All members must
/// admit an Order; an empty one admits every Order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Scope {
    pub namespaces: BTreeSet<Namespace>,
    pub selector: Option<Selector>,
    pub only: BTreeSet<OrderRef>,
    /// One part of a fleet that several runs share.
    pub shard: Option<Shard>,
}

impl Scope {
    /// Whether everything is in it.
    #[must_use]
    pub fn is_all(&self) -> bool {
        *self == Self::default()
    }

    /// Whether this Order is in it. `labels` are the Order's; an Order whose object is gone has none, so
    /// that a selector never takes it in.
    #[must_use]
    pub fn admits_order(&self, order: &OrderRef, labels: Option<&BTreeMap<String, String>>) -> bool {
        (self.namespaces.is_empty() || self.namespaces.contains(&order.namespace))
            && (self.only.is_empty() || self.only.contains(order))
            && self.shard.is_none_or(|shard| shard.admits_order(order))
            && self.selector.as_ref().is_none_or(|selector| labels.is_some_and(|l| selector.admits_labels(l)))
    }
}

/// One of `count` parts of a fleet; every Order is in exactly one, whatever the machine.
///
/// ```
/// use expedite::model::scope::Shard;
/// assert_eq!(Shard::parse("0/4").unwrap().to_string(), "0/4");
/// assert!(Shard::parse("4/4").is_err(), "they count from 0, as JOB_COMPLETION_INDEX does");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shard {
    index: u32,
    count: u32,
}

impl Shard {
    /// Part `index` (from 0) of `count`.
    ///
    /// # Errors
    /// `index` is not below `count`.
    pub fn new(index: u32, count: u32) -> Result<Self, IdError> {
        if index < count {
            Ok(Self { index, count })
        } else {
            Err(IdError(format!(
                "there is no shard {index} of {count}: they count from 0 to one below the count"
            )))
        }
    }

    /// Parses `I/N`.
    ///
    /// # Errors
    /// Quotes the text and says the rule.
    pub fn parse(text: &str) -> Result<Self, IdError> {
        let wrong = || IdError(format!("{text:?} is not a shard: write I/N, for example 0/4"));
        let (index, count) = text.split_once('/').ok_or_else(wrong)?;
        let number = |t: &str| {
            if t.bytes().all(|b| b.is_ascii_digit()) { t.parse().map_err(|_| wrong()) } else { Err(wrong()) }
        };
        Self::new(number(index)?, number(count)?)
    }

    /// Whether this Order is in it, by the first eight bytes of SHA-256 over `<namespace>/<order>` as a
    /// big-endian number. Where a fleet goes from N parts to N + 1, one Order in N + 1 moves, and into the new
    /// part only.
    #[must_use]
    pub fn admits_order(self, order: &OrderRef) -> bool {
        compute_part(hash_order(order), self.count) == self.index
    }
}

fn hash_order(order: &OrderRef) -> u64 {
    let hash = Sha256::digest(format!("{}/{}", order.namespace, order.name).as_bytes());
    hash.iter().take(8).fold(0, |n, byte| n << 8 | u64::from(*byte))
}

/// The part of `count` that `number` is in, by jump consistent hashing (Lamping and Veach, 2014): the number
/// seeds a row of dice, each of which says with how many parts it would move next, and into which.
fn compute_part(number: u64, count: u32) -> u32 {
    let (mut seed, mut here, mut next) = (number, 0, 0_u64);
    while next < u64::from(count) {
        here = next;
        seed = seed.wrapping_mul(2_862_933_555_777_941_757).wrapping_add(1);
        // floor((here + 1) / die), the die being one of 2^31 steps in (0, 1]: in whole numbers, so that
        // every machine gets the same result.
        next = (here + 1) * (1 << 31) / ((seed >> 33) + 1);
    }
    u32::try_from(here).unwrap_or(u32::MAX)
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.index, self.count)
    }
}

impl Selector {
    /// Parses a selector as `kubectl -l` takes it: `a=b`, `a==b`, `a!=b`, `a in (b,c)`, `a notin (b,c)`,
    /// `a`, `!a`, joined by commas.
    ///
    /// ```
    /// use expedite::model::environment::Selector;
    /// let s = Selector::parse("team=web,tier in (front, back),!legacy").unwrap();
    /// let labels = |t: &[(&str, &str)]| t.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect();
    /// assert!(s.admits_labels(&labels(&[("team", "web"), ("tier", "back")])));
    /// assert!(!s.admits_labels(&labels(&[("team", "web"), ("tier", "back"), ("legacy", "1")])));
    /// assert!(Selector::parse("team=web,,").is_err());
    /// ```
    ///
    /// # Errors
    /// Quotes the requirement that does not parse.
    pub fn parse(text: &str) -> Result<Self, IdError> {
        let mut rules = Vec::new();
        for part in split_requirements(text) {
            rules.push(parse_requirement(part.trim())?);
        }
        Ok(Self { match_labels: BTreeMap::new(), match_expressions: rules })
    }
}

/// Cuts at the commas outside parentheses.
fn split_requirements(text: &str) -> Vec<&str> {
    let (mut parts, mut start, mut depth) = (Vec::new(), 0, 0_i32);
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

fn parse_requirement(text: &str) -> Result<SelectorRule, IdError> {
    let wrong = |why: &str| {
        IdError(format!(
            "{text:?} is not a label requirement: {why}; write a=b, a!=b, a in (b,c), a notin (b,c), a or !a"
        ))
    };
    let rule = |key: &str, operator, values: Vec<String>| {
        let key = key.trim();
        if !is_label_key(key) {
            return Err(wrong("the key is not a valid label key"));
        }
        if values.iter().any(|v| !is_label_value(v)) {
            return Err(wrong("the value is not a valid label value"));
        }
        Ok(SelectorRule { key: key.to_owned(), operator, values })
    };
    if text.is_empty() {
        return Err(wrong("it is empty"));
    }
    if let Some((head, list)) = text.split_once('(') {
        let list = list.strip_suffix(')').ok_or_else(|| wrong("the list is not closed"))?;
        let values = list.split(',').map(|v| v.trim().to_owned()).collect();
        let mut words = head.split_whitespace();
        return match (words.next(), words.next(), words.next()) {
            (Some(key), Some("in"), None) => rule(key, SelectorOperator::In, values),
            (Some(key), Some("notin"), None) => rule(key, SelectorOperator::NotIn, values),
            _ => Err(wrong("in and notin must be followed by a list")),
        };
    }
    if let Some((key, value)) = text.split_once("!=") {
        return rule(key, SelectorOperator::NotIn, vec![value.trim().to_owned()]);
    }
    if let Some((key, value)) = text.split_once("==").or_else(|| text.split_once('=')) {
        return rule(key, SelectorOperator::In, vec![value.trim().to_owned()]);
    }
    match text.strip_prefix('!') {
        Some(key) => rule(key, SelectorOperator::DoesNotExist, Vec::new()),
        None => rule(text, SelectorOperator::Exists, Vec::new()),
    }
}

/// `[prefix/]name`: a DNS subdomain, then up to 63 letters, digits, `-`, `_`, `.` with alphanumeric ends.
fn is_label_key(key: &str) -> bool {
    let (prefix, name) = match key.split_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, key),
    };
    let domain = |p: &str| {
        !p.is_empty()
            && p.len() <= 253
            && p.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-' || b == b'.')
    };
    !name.is_empty() && is_label_value(name) && prefix.is_none_or(domain)
}

fn is_label_value(value: &str) -> bool {
    let bytes = value.as_bytes();
    let inner = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
    bytes.len() <= 63
        && bytes.iter().all(|&b| inner(b))
        && bytes.first().is_none_or(u8::is_ascii_alphanumeric)
        && bytes.last().is_none_or(u8::is_ascii_alphanumeric)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;

    fn labels(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()
    }

    #[test]
    fn selectors_mean_what_kubectl_means() {
        let on = labels(&[("app", "web"), ("example.org/tier", "front"), ("empty", "")]);
        for (selector, admitted) in [
            ("app=web", true),
            ("app==web", true),
            ("app = web", true),
            ("app!=web", false),
            ("absent!=web", true),
            ("app in (api, web)", true),
            ("app in (api)", false),
            ("app notin (api,db)", true),
            ("absent notin (x)", true),
            ("example.org/tier", true),
            ("!example.org/tier", false),
            ("!absent", true),
            ("empty=", true),
            ("app=web,example.org/tier=back", false),
        ] {
            assert_eq!(Selector::parse(selector).unwrap().admits_labels(&on), admitted, "{selector}");
        }
    }

    #[test]
    fn selectors_that_do_not_parse_are_errors() {
        for bad in ["", "a=b,", "a in b", "a in (b", "a around (b)", "-a=b", "a=b c", "a>5", "a=b=c", "/x=1"]
        {
            let error = Selector::parse(bad).unwrap_err().to_string();
            assert!(error.contains("label requirement"), "{bad}: {error}");
        }
    }

    #[test]
    fn every_order_is_in_exactly_one_shard() {
        for n in 0..200 {
            let order = OrderRef::parse(&format!("shop/order-{n}")).unwrap();
            let inside = (0..7).filter(|i| Shard::new(*i, 7).unwrap().admits_order(&order)).count();
            assert_eq!(inside, 1, "{order}");
        }
    }

    #[test]
    fn a_shard_is_the_same_everywhere() {
        // Worked out beside this code, from SHA-256 and the paper's arithmetic in Python's whole numbers.
        for (order, of_4, of_5, of_100) in
            [("shop/podinfo", 2, 2, 48), ("shop/cart", 1, 1, 40), ("team/mailer", 0, 4, 72)]
        {
            let order = OrderRef::parse(order).unwrap();
            for (count, index) in [(4, of_4), (5, of_5), (100, of_100)] {
                assert!(Shard::new(index, count).unwrap().admits_order(&order), "{order}: {index}/{count}");
            }
        }
    }

    proptest::proptest! {
        #[test]
        fn one_more_shard_takes_its_share_and_moves_nothing_else(count in 1_u32..64, seed in 0_u32..1000) {
            let (mut moved, all) = (0, 400);
            for n in 0..all {
                let order = OrderRef::parse(&format!("team-{seed}/order-{n}")).unwrap();
                let (before, after) = (compute_part(hash_order(&order), count), compute_part(hash_order(&order), count + 1));
                if before != after {
                    proptest::prop_assert_eq!(after, count, "an Order moves into the new shard only");
                    moved += 1;
                }
            }
            // Its share, with eight standard deviations of room.
            let share = f64::from(all) / f64::from(count + 1);
            proptest::prop_assert!(f64::from(moved) < share + 8.0 * share.sqrt(), "{} of {} moved", moved, all);
        }
    }

    #[test]
    fn shards_that_do_not_exist_are_errors() {
        for bad in ["", "1", "3/3", "0/0", "-1/3", "+1/3", "1/3/5", "a/b", "0/99999999999"] {
            assert!(Shard::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn all_members_of_a_scope_must_admit() {
        let order = OrderRef::parse("shop/podinfo").unwrap();
        let web = labels(&[("team", "web")]);
        assert!(Scope::default().is_all());
        assert!(Scope::default().admits_order(&order, None));
        let scope = Scope {
            namespaces: [Namespace::parse("shop").unwrap()].into(),
            selector: Some(Selector::parse("team=web").unwrap()),
            ..Scope::default()
        };
        assert!(!scope.is_all());
        assert!(scope.admits_order(&order, Some(&web)));
        assert!(!scope.admits_order(&order, Some(&labels(&[]))));
        assert!(!scope.admits_order(&order, None), "an Order that is gone has no labels to select");
        assert!(!scope.admits_order(&OrderRef::parse("other/podinfo").unwrap(), Some(&web)));
        let only = Scope { only: [OrderRef::parse("shop/cart").unwrap()].into(), ..Scope::default() };
        assert!(!only.admits_order(&order, Some(&web)));
    }
}
