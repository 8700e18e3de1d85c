//! Finds what a change makes easier to pass: policies that require less, and keys and people that were not
//! trusted before. Only shown at the top of a preview; decisions do not use it.

use crate::model::environment::Environment;
use crate::model::kitchen::{ApprovalTrust, KitchenSpec, Role};
use crate::model::order::{ApprovalPolicy, AutoDeploy, Check, Mode, Order, Upstream, Window};
use crate::model::world::World;

/// A sentence for each way in which `after` requires less than `before`; foreign text.
#[must_use]
pub fn find_weakenings(before: &World, after: &World) -> Vec<String> {
    let mut found = Weakenings::default();
    let none = KitchenSpec::default();
    let spec = |world: &'_ World| world.kitchen.as_ref().map(|k| k.object.clone());
    let (old, new) = (spec(before), spec(after));
    found.what = "Kitchen".to_owned();
    found.compare_kitchens(old.as_ref().map_or(&none, |k| &k.spec), new.as_ref().map_or(&none, |k| &k.spec));
    for (name, old) in &before.environments {
        let Some(new) = after.environments.get(name) else { continue };
        found.what = format!("Environment {name}");
        found.compare_environments(&old.object, &new.object);
    }
    for (order, old) in &before.orders {
        let Some(new) = after.orders.get(order) else { continue };
        found.what = format!("Order {order}");
        found.compare_orders(&old.object, &new.object);
    }
    for (key, old) in &before.preparations {
        let Some(new) = after.preparations.get(key) else { continue };
        found.what = format!("Preparation {}/{}", key.0, key.1);
        let policy = |p: &'_ crate::model::preparation::Preparation| p.spec.approval_policy.clone();
        found.compare_approvals(policy(&old.object).as_ref(), policy(&new.object).as_ref());
    }
    found.out
}

#[derive(Default)]
struct Weakenings {
    what: String,
    out: Vec<String>,
}

impl Weakenings {
    fn push_sentence(&mut self, text: impl AsRef<str>) {
        self.out.push(format!("{}: {}", self.what, text.as_ref()));
    }

    fn compare_kitchens(&mut self, old: &KitchenSpec, new: &KitchenSpec) {
        for key in &new.trust.keys {
            let same = old.trust.keys.iter().find(|k| k.name == key.name);
            let known = same
                .filter(|k| (&k.public_key, &k.public_key_file) == (&key.public_key, &key.public_key_file));
            match (same, known) {
                (None, _) => self.push_sentence(format!(
                    "new key {}, trusted for {}",
                    key.name,
                    format_added_roles(&key.roles, &[])
                )),
                (Some(_), None) => {
                    self.push_sentence(format!("key {} was replaced by another key", key.name))
                }
                (_, Some(before)) => {
                    let more = format_added_roles(&key.roles, &before.roles);
                    if !more.is_empty() {
                        self.push_sentence(format!("key {} is now trusted for {more}", key.name));
                    }
                }
            }
        }
        for identity in &new.trust.identities {
            match old.trust.identities.iter().find(|i| i.name == identity.name) {
                Some(before) if before == identity => {}
                Some(_) => self.push_sentence(format!("identity {} was replaced by another", identity.name)),
                None => {
                    let roles = format_added_roles(&identity.roles, &[]);
                    self.push_sentence(format!("new identity {}, trusted for {roles}", identity.name));
                }
            }
        }
        if old.trust.trusted_root != new.trust.trusted_root {
            self.push_sentence("trusts another sigstore root");
        }
        self.compare_lists("accepts builder", &old.provenance.builder_ids, &new.provenance.builder_ids);
        self.compare_lists("accepts build type", &old.provenance.build_types, &new.provenance.build_types);
        self.compare_lists("admits registry", &old.registries, &new.registries);
        for approver in &new.approvers {
            let name = if approver.username.is_empty() { &approver.subject } else { &approver.username };
            let same = |a: &&crate::model::kitchen::KnownApprover| {
                (&a.issuer, &a.subject) == (&approver.issuer, &approver.subject)
            };
            let Some(before) = old.approvers.iter().find(same) else {
                self.push_sentence(format!("new approver {name} in {}", approver.groups.join(", ")));
                continue;
            };
            for group in find_added(&before.groups, &approver.groups) {
                self.push_sentence(format!("approver {name} is now in {group}"));
            }
            if !find_added(&before.ssh_keys, &approver.ssh_keys).is_empty() {
                self.push_sentence(format!("approver {name} has a new key"));
            }
        }
        let rank = |trust| match trust {
            ApprovalTrust::Signed => 0,
            ApprovalTrust::Cluster => 1,
            ApprovalTrust::Repository => 2,
        };
        if rank(new.approval_trust) > rank(old.approval_trust) {
            self.push_sentence(format!(
                "votes are authenticated by {:?} instead of {:?}",
                new.approval_trust, old.approval_trust
            ));
        }
        for rejection in old.reject.iter().filter(|r| !new.reject.contains(r)) {
            self.push_sentence(format!("no longer rejects {} as it did", rejection.digest));
        }
    }

    /// Compares two lists of allowed names; an empty list allows all.
    fn compare_lists(&mut self, what: &str, old: &[String], new: &[String]) {
        if old.is_empty() {
            return;
        }
        if new.is_empty() {
            self.push_sentence(format!("{what}: any"));
        }
        for one in find_added(old, new) {
            self.push_sentence(format!("{what} {one}"));
        }
    }

    fn compare_environments(&mut self, old: &Environment, new: &Environment) {
        let (a, b) = (&old.spec.promotion, &new.spec.promotion);
        self.compare_approvals(a.approvals.as_ref(), b.approvals.as_ref());
        self.compare_upstreams(&a.upstream, &b.upstream);
        self.compare_checks(&a.checks, &b.checks);
        for freeze in &a.freezes {
            if !b.freezes.iter().any(|f| f.from <= freeze.from && f.to >= freeze.to) {
                self.push_sentence(format!(
                    "the freeze from {} to {} ({}) was removed",
                    freeze.from, freeze.to, freeze.reason
                ));
            }
        }
        let texts =
            |all: &[crate::model::id::Namespace]| all.iter().map(ToString::to_string).collect::<Vec<_>>();
        self.compare_lists(
            "admits Orders of namespace",
            &texts(&old.spec.allowed_namespaces),
            &texts(&new.spec.allowed_namespaces),
        );
        let (old, new) = (&old.spec.allowed_target_namespaces, &new.spec.allowed_target_namespaces);
        for namespace in find_added(old, new) {
            self.push_sentence(format!("admits target namespace {namespace}"));
        }
    }

    fn compare_orders(&mut self, old: &Order, new: &Order) {
        let mode = |order: &Order| {
            let written = order.spec.promotion.as_ref().and_then(|p| p.mode);
            written.unwrap_or(match order.spec.auto_deploy {
                Some(AutoDeploy::Enabled) => Mode::Automatic,
                Some(AutoDeploy::Disabled) | None => Mode::Manual,
            })
        };
        if mode(old) == Mode::Manual && mode(new) == Mode::Automatic {
            self.push_sentence("promotes automatically instead of on request");
        }
        let (a, b) =
            (old.spec.promotion.clone().unwrap_or_default(), new.spec.promotion.clone().unwrap_or_default());
        self.compare_approvals(a.approvals.as_ref(), b.approvals.as_ref());
        self.compare_upstreams(&a.upstream, &b.upstream);
        self.compare_checks(&a.checks, &b.checks);
        self.compare_windows(&a.windows, &b.windows);
    }

    fn compare_approvals(&mut self, old: Option<&ApprovalPolicy>, new: Option<&ApprovalPolicy>) {
        let Some(old) = old else { return };
        let Some(new) = new else {
            return self.push_sentence(format!(
                "does not require approvals any more; before: {}",
                old.required_approvals
            ));
        };
        if new.required_approvals < old.required_approvals {
            self.push_sentence(format!(
                "{} must approve instead of {}",
                new.required_approvals, old.required_approvals
            ));
        }
        self.compare_lists("accepts approvals of group", &old.allowed_groups, &new.allowed_groups);
    }

    fn compare_upstreams(&mut self, old: &[Upstream], new: &[Upstream]) {
        for stage in old {
            match new.iter().find(|s| s.order == stage.order) {
                None => self.push_sentence(format!("no longer waits for {}", stage.order)),
                Some(now) if now.soak < stage.soak => {
                    self.push_sentence(format!(
                        "{} soaks {} instead of {}",
                        stage.order, now.soak, stage.soak
                    ));
                }
                Some(_) => {}
            }
        }
    }

    fn compare_checks(&mut self, old: &[Check], new: &[Check]) {
        for check in old {
            match new.iter().find(|c| c.name == check.name) {
                None => self.push_sentence(format!("check {} was removed", check.name)),
                Some(now) if now != check => {
                    self.push_sentence(format!("check {} requires something else", check.name))
                }
                Some(_) => {}
            }
        }
    }

    fn compare_windows(&mut self, old: &[Window], new: &[Window]) {
        match (old, new) {
            ([], _) => {}
            (_, []) => self.push_sentence("deploys at any time; before, it had windows"),
            (_, new) if new.iter().all(|w| old.contains(w)) => {}
            (_, _) => self.push_sentence("deploys in other windows"),
        }
    }
}

/// The entries of `new` that `old` does not have.
fn find_added<'a, T: PartialEq>(old: &[T], new: &'a [T]) -> Vec<&'a T> {
    new.iter().filter(|one| !old.contains(one)).collect()
}

fn format_added_roles(new: &[Role], old: &[Role]) -> String {
    let more: Vec<&str> = new.iter().filter(|r| !old.contains(r)).map(|r| r.as_str()).collect();
    more.join(", ")
}
