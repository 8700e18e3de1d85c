//! What a change makes easier to pass: policies that ask for less, and keys and people that were not trusted
//! before. For the headline of a preview; decides nothing.

use crate::model::environment::Environment;
use crate::model::kitchen::{ApprovalTrust, KitchenSpec, Role};
use crate::model::order::{ApprovalPolicy, AutoDeploy, Check, Mode, Order, Upstream, Window};
use crate::model::world::World;

/// A sentence for each way in which `after` asks for less than `before`; foreign text.
#[must_use]
pub fn weakened(before: &World, after: &World) -> Vec<String> {
    let mut found = Found::default();
    let none = KitchenSpec::default();
    let spec = |world: &'_ World| world.kitchen.as_ref().map(|k| k.object.clone());
    let (old, new) = (spec(before), spec(after));
    found.what = "Kitchen".to_owned();
    found.kitchen(old.as_ref().map_or(&none, |k| &k.spec), new.as_ref().map_or(&none, |k| &k.spec));
    for (name, old) in &before.environments {
        let Some(new) = after.environments.get(name) else { continue };
        found.what = format!("Environment {name}");
        found.environment(&old.object, &new.object);
    }
    for (order, old) in &before.orders {
        let Some(new) = after.orders.get(order) else { continue };
        found.what = format!("Order {order}");
        found.order(&old.object, &new.object);
    }
    for (key, old) in &before.preparations {
        let Some(new) = after.preparations.get(key) else { continue };
        found.what = format!("Preparation {}/{}", key.0, key.1);
        let policy = |p: &'_ crate::model::preparation::Preparation| p.spec.approval_policy.clone();
        found.approvals(policy(&old.object).as_ref(), policy(&new.object).as_ref());
    }
    found.out
}

#[derive(Default)]
struct Found {
    what: String,
    out: Vec<String>,
}

impl Found {
    fn say(&mut self, text: impl AsRef<str>) {
        self.out.push(format!("{}: {}", self.what, text.as_ref()));
    }

    fn kitchen(&mut self, old: &KitchenSpec, new: &KitchenSpec) {
        for key in &new.trust.keys {
            let same = old.trust.keys.iter().find(|k| k.name == key.name);
            let known = same
                .filter(|k| (&k.public_key, &k.public_key_file) == (&key.public_key, &key.public_key_file));
            match (same, known) {
                (None, _) => {
                    self.say(format!("new key {}, trusted for {}", key.name, roles(&key.roles, &[])))
                }
                (Some(_), None) => self.say(format!("key {} is another key", key.name)),
                (_, Some(before)) => {
                    let more = roles(&key.roles, &before.roles);
                    if !more.is_empty() {
                        self.say(format!("key {} is now trusted for {more}", key.name));
                    }
                }
            }
        }
        for identity in &new.trust.identities {
            match old.trust.identities.iter().find(|i| i.name == identity.name) {
                Some(before) if before == identity => {}
                Some(_) => self.say(format!("identity {} is another", identity.name)),
                None => {
                    let roles = roles(&identity.roles, &[]);
                    self.say(format!("new identity {}, trusted for {roles}", identity.name));
                }
            }
        }
        if old.trust.trusted_root != new.trust.trusted_root {
            self.say("trusts another sigstore root");
        }
        self.list("accepts builder", &old.provenance.builder_ids, &new.provenance.builder_ids);
        self.list("accepts build type", &old.provenance.build_types, &new.provenance.build_types);
        self.list("admits registry", &old.registries, &new.registries);
        for approver in &new.approvers {
            let name = if approver.username.is_empty() { &approver.subject } else { &approver.username };
            let same = |a: &&crate::model::kitchen::KnownApprover| {
                (&a.issuer, &a.subject) == (&approver.issuer, &approver.subject)
            };
            let Some(before) = old.approvers.iter().find(same) else {
                self.say(format!("new approver {name} in {}", approver.groups.join(", ")));
                continue;
            };
            for group in beyond(&before.groups, &approver.groups) {
                self.say(format!("approver {name} is now in {group}"));
            }
            if !beyond(&before.ssh_keys, &approver.ssh_keys).is_empty() {
                self.say(format!("approver {name} has a new key"));
            }
        }
        let rank = |trust| match trust {
            ApprovalTrust::Signed => 0,
            ApprovalTrust::Cluster => 1,
            ApprovalTrust::Repository => 2,
        };
        if rank(new.approval_trust) > rank(old.approval_trust) {
            self.say(format!(
                "votes are taken by {:?} instead of {:?}",
                new.approval_trust, old.approval_trust
            ));
        }
        for rejection in old.reject.iter().filter(|r| !new.reject.contains(r)) {
            self.say(format!("no longer rejects {} as it did", rejection.digest));
        }
    }

    /// A list of what is admitted, where an empty one admits all.
    fn list(&mut self, what: &str, old: &[String], new: &[String]) {
        if old.is_empty() {
            return;
        }
        if new.is_empty() {
            self.say(format!("{what}: any"));
        }
        for one in beyond(old, new) {
            self.say(format!("{what} {one}"));
        }
    }

    fn environment(&mut self, old: &Environment, new: &Environment) {
        let (a, b) = (&old.spec.promotion, &new.spec.promotion);
        self.approvals(a.approvals.as_ref(), b.approvals.as_ref());
        self.upstream(&a.upstream, &b.upstream);
        self.checks(&a.checks, &b.checks);
        for freeze in &a.freezes {
            if !b.freezes.iter().any(|f| f.from <= freeze.from && f.to >= freeze.to) {
                self.say(format!(
                    "the freeze from {} to {} ({}) no longer stands",
                    freeze.from, freeze.to, freeze.reason
                ));
            }
        }
        let texts =
            |all: &[crate::model::id::Namespace]| all.iter().map(ToString::to_string).collect::<Vec<_>>();
        self.list(
            "admits Orders of namespace",
            &texts(&old.spec.allowed_namespaces),
            &texts(&new.spec.allowed_namespaces),
        );
        let (old, new) = (&old.spec.allowed_target_namespaces, &new.spec.allowed_target_namespaces);
        for namespace in beyond(old, new) {
            self.say(format!("admits target namespace {namespace}"));
        }
    }

    fn order(&mut self, old: &Order, new: &Order) {
        let mode = |order: &Order| {
            let written = order.spec.promotion.as_ref().and_then(|p| p.mode);
            written.unwrap_or(match order.spec.auto_deploy {
                Some(AutoDeploy::Enabled) => Mode::Automatic,
                Some(AutoDeploy::Disabled) | None => Mode::Manual,
            })
        };
        if mode(old) == Mode::Manual && mode(new) == Mode::Automatic {
            self.say("promotes by itself instead of when a person asks");
        }
        let (a, b) =
            (old.spec.promotion.clone().unwrap_or_default(), new.spec.promotion.clone().unwrap_or_default());
        self.approvals(a.approvals.as_ref(), b.approvals.as_ref());
        self.upstream(&a.upstream, &b.upstream);
        self.checks(&a.checks, &b.checks);
        self.windows(&a.windows, &b.windows);
    }

    fn approvals(&mut self, old: Option<&ApprovalPolicy>, new: Option<&ApprovalPolicy>) {
        let Some(old) = old else { return };
        let Some(new) = new else {
            return self.say(format!("needs no approvals any more; it was {}", old.required_approvals));
        };
        if new.required_approvals < old.required_approvals {
            self.say(format!(
                "{} must approve instead of {}",
                new.required_approvals, old.required_approvals
            ));
        }
        self.list("takes approvals of group", &old.allowed_groups, &new.allowed_groups);
    }

    fn upstream(&mut self, old: &[Upstream], new: &[Upstream]) {
        for stage in old {
            match new.iter().find(|s| s.order == stage.order) {
                None => self.say(format!("no longer waits for {}", stage.order)),
                Some(now) if now.soak < stage.soak => {
                    self.say(format!("{} soaks {} instead of {}", stage.order, now.soak, stage.soak));
                }
                Some(_) => {}
            }
        }
    }

    fn checks(&mut self, old: &[Check], new: &[Check]) {
        for check in old {
            match new.iter().find(|c| c.name == check.name) {
                None => self.say(format!("check {} is gone", check.name)),
                Some(now) if now != check => {
                    self.say(format!("check {} asks for something else", check.name))
                }
                Some(_) => {}
            }
        }
    }

    fn windows(&mut self, old: &[Window], new: &[Window]) {
        match (old, new) {
            ([], _) => {}
            (_, []) => self.say("deploys at any time; it had windows"),
            (_, new) if new.iter().all(|w| old.contains(w)) => {}
            (_, _) => self.say("deploys in other windows"),
        }
    }
}

/// What `new` has beyond `old`.
fn beyond<'a, T: PartialEq>(old: &[T], new: &'a [T]) -> Vec<&'a T> {
    new.iter().filter(|one| !old.contains(one)).collect()
}

fn roles(new: &[Role], old: &[Role]) -> String {
    let more: Vec<&str> = new.iter().filter(|r| !old.contains(r)).map(|r| r.as_str()).collect();
    more.join(", ")
}
