//! Decides which Servings are no longer tried in this run: the rest of a failing cluster or of a refusing namespace.
//! Pure.
//!
//! A refusal concerns one Serving or its namespace; other Servings must still be written.

use super::send::{Done, FailureScope, Untold};
use crate::model::id::{Namespace, OrderRef};
use std::collections::BTreeMap;

/// After this many failures in a row the cluster is not tried again until the next run.
const CLUSTER: usize = 5;

/// After this many refusals in a row the rest of the namespace is not tried again.
const NAMESPACE: usize = 5;

/// Failures in a row, and the Servings that were skipped because of them.
#[derive(Default)]
pub struct Patience<'t> {
    cluster: usize,
    namespaces: BTreeMap<&'t Namespace, usize>,
    /// Servings that were not tried because the cluster failed.
    pub left: usize,
    /// Servings that were not tried because their namespace refused.
    pub skipped: BTreeMap<&'t Namespace, usize>,
}

impl<'t> Patience<'t> {
    /// Whether this one may be tried; a skipped one is counted.
    pub fn allows_try(&mut self, order: &'t OrderRef) -> bool {
        if self.cluster >= CLUSTER {
            self.left += 1;
            return false;
        }
        let ends = self.namespaces.get(&order.namespace).is_some_and(|refused| *refused >= NAMESPACE);
        if ends {
            *self.skipped.entry(&order.namespace).or_default() += 1;
        }
        !ends
    }

    /// Records the result of a try. Only a successful write shows that others can be written.
    pub fn note_outcome(&mut self, order: &'t OrderRef, done: &Result<Done, Untold>) {
        match done {
            Ok(Done::Written { .. }) => {
                self.cluster = 0;
                self.namespaces.remove(&order.namespace);
            }
            Ok(Done::Gone | Done::Overtaken) => {}
            Err(untold) => match untold.about {
                FailureScope::Cluster => self.cluster += 1,
                FailureScope::Namespace => *self.namespaces.entry(&order.namespace).or_default() += 1,
                FailureScope::Serving => {}
            },
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;

    fn after(about: &[FailureScope]) -> (bool, bool) {
        let [a, b] = ["a/one", "b/one"].map(|order| OrderRef::parse(order).unwrap());
        let mut patience = Patience::default();
        for about in about {
            patience.note_outcome(&a, &Err(Untold { why: String::new(), about: *about }));
        }
        let tried = (patience.allows_try(&a), patience.allows_try(&b));
        let left = patience.left + patience.skipped.values().sum::<usize>();
        assert_eq!(left, [tried.0, tried.1].iter().filter(|tried| !**tried).count());
        tried
    }

    #[test]
    fn a_failure_speaks_of_no_more_than_it_is_about() {
        assert_eq!(after(&[FailureScope::Cluster; 4]), (true, true));
        assert_eq!(after(&[FailureScope::Cluster; 5]), (false, false));
        assert_eq!(after(&[FailureScope::Namespace; 4]), (true, true));
        assert_eq!(after(&[FailureScope::Namespace; 50]), (false, true));
        assert_eq!(after(&[FailureScope::Serving; 50]), (true, true));
    }

    #[test]
    fn one_that_is_written_gives_new_patience() {
        let order = OrderRef::parse("a/one").unwrap();
        for about in [FailureScope::Cluster, FailureScope::Namespace] {
            let mut patience = Patience::default();
            for n in 0..20 {
                let done = match n % 5 {
                    4 => Ok(Done::Written { lost: Vec::new() }),
                    _ => Err(Untold { why: String::new(), about }),
                };
                patience.note_outcome(&order, &done);
                assert!(patience.allows_try(&order), "{n}");
            }
        }
    }
}
