//! `get`: Orders, Preparations, Servings and histories. Reads the repository and the sources; asks no registry.

use crate::cli::{Common, Get, ListFormat, Resource};
use crate::cmd::one;
use crate::cmd::setup::{self, Access, Opened, Outside};
use crate::error::{Failure, Kind};
use crate::model::id::{Namespace, OrderRef};
use crate::model::world::Holds;
use crate::report::get::{self, Layout, ServingLine};
use crate::report::table::Table;
use crate::report::{Output, json_v1, names};
use crate::run::{self, Read};
use std::collections::BTreeSet;

/// Prints.
///
/// # Errors
/// The settings are wrong, the repository cannot be read, or there is no object of the name that was given.
pub fn run(common: &Common, args: &Get, outside: &Outside, output: &mut Output) -> Result<(), Vec<Failure>> {
    let opened = Opened::new(common, outside, Access::Read)?;
    let setup = opened.setup(Access::Read, None);
    let read = run::read(&setup, &mut |text| output.progress(text)).map_err(one)?;
    let picked = Picked::new(common, args, &opened, &read).map_err(one)?;
    if picked.count == 0 {
        output.note(&match &common.namespace[..] {
            [] => "No resources found.".to_owned(),
            some => format!("No resources found in {}.", join(some)),
        });
    }
    if picked.count > 0 || args.output == ListFormat::Json {
        output.result(&picked.text(common, args, &opened, &read));
    }
    for problem in read.world.problems.iter().chain(&read.gitops.problems) {
        match problem.holds {
            Holds::Nothing => output.warning(&problem.failure),
            Holds::Orders(_) | Holds::Everything => output.error(&problem.failure),
        }
    }
    for line in picked.servings.iter().filter(|line| line.status.is_none()) {
        if let Some(Err(failure)) = read.gitops.servings.get(line.order).map(|file| &file.serving) {
            output.error(failure);
        }
    }
    Ok(())
}

fn join(namespaces: &[Namespace]) -> String {
    let names: Vec<&str> = namespaces.iter().map(Namespace::as_str).collect();
    let word = if names.len() == 1 { "namespace" } else { "namespaces" };
    format!("{word} {}", names.join(", "))
}

/// What the flags leave of what was read.
struct Picked<'a> {
    servings: Vec<ServingLine<'a>>,
    orders: BTreeSet<&'a OrderRef>,
    name: Option<OrderRef>,
    count: usize,
    resource: Resource,
}

impl<'a> Picked<'a> {
    fn new(common: &Common, args: &Get, opened: &Opened, read: &'a Read) -> Result<Self, Failure> {
        let labels = |order: &OrderRef| read.world.orders.get(order).map(|o| &o.object.metadata.labels);
        let known: BTreeSet<OrderRef> = match args.resource {
            Resource::Orders => read.world.orders.keys().cloned().collect(),
            Resource::Preparations => read.world.preparations.keys().filter_map(reference).collect(),
            Resource::Servings | Resource::History => read.gitops.servings.keys().cloned().collect(),
        };
        let name = match &args.name {
            Some(name) => Some(setup::found(name, common, known.iter()).map_err(|f| not_found(f, args))?),
            None => None,
        };
        if let Some(name) = name.as_ref().filter(|name| !known.contains(name)) {
            return Err(not_found(Failure::input("not-found", "there is none").of(name.to_string()), args));
        }
        let admitted = |order: &OrderRef| opened.scope().admits(order, labels(order));
        let mut servings = get::servings_of(&read.gitops);
        servings.retain(|line| admitted(line.order) && name.as_ref().is_none_or(|n| n == line.order));
        let orders = read.world.orders.keys();
        let orders: BTreeSet<&OrderRef> =
            orders.filter(|o| admitted(o) && name.as_ref().is_none_or(|n| n == *o)).collect();
        let mut picked = Self { servings, orders, name, count: 0, resource: args.resource };
        picked.count = match args.resource {
            Resource::Orders => picked.orders.len(),
            Resource::Preparations => picked.preparations(opened, read).len(),
            Resource::Servings => picked.servings.len(),
            Resource::History => {
                picked.servings.iter().filter_map(|line| line.status).map(|s| s.history.len()).sum()
            }
        };
        Ok(picked)
    }

    /// Preparations by the scope of their Orders.
    fn preparations(
        &self,
        opened: &Opened,
        read: &'a Read,
    ) -> Vec<(
        &'a (Namespace, crate::model::id::PreparationName),
        &'a crate::model::world::Loaded<crate::model::preparation::Preparation>,
    )> {
        let all = read.world.preparations.iter();
        all.filter(|(key, loaded)| {
            let order = OrderRef { namespace: key.0.clone(), name: loaded.object.spec.order_name.clone() };
            let labels = read.world.orders.get(&order).map(|o| &o.object.metadata.labels);
            opened.scope().admits(&order, labels)
                && self.name.as_ref().is_none_or(|name| reference(key).as_ref() == Some(name))
        })
        .collect()
    }

    fn text(&self, common: &Common, args: &Get, opened: &Opened, read: &'a Read) -> String {
        match args.output {
            ListFormat::Table => self.table(args, opened, read, false),
            ListFormat::Wide => self.table(args, opened, read, true),
            ListFormat::Json => self.json(opened, read),
            ListFormat::Name => self.names(&common.namespace, opened, read),
        }
    }

    fn json(&self, opened: &Opened, read: &'a Read) -> String {
        let orders = self.orders.iter().filter_map(|order| read.world.orders.get_key_value(*order));
        match self.resource {
            Resource::Orders => json_v1::get::orders(orders, &read.gitops),
            Resource::Preparations => {
                json_v1::get::preparations(self.preparations(opened, read), &read.gitops)
            }
            Resource::Servings => json_v1::get::servings(&self.servings),
            Resource::History => json_v1::get::history(&self.servings),
        }
    }

    /// Sorted by namespace and name; of a history its Preparations, each once, the newest first.
    fn names(&self, asked: &[Namespace], opened: &Opened, read: &'a Read) -> String {
        match self.resource {
            Resource::Orders => names::lines(names::ORDER, self.orders.iter().copied(), asked),
            Resource::Servings => {
                names::lines(names::SERVING, self.servings.iter().map(|line| line.order), asked)
            }
            Resource::Preparations => {
                let all = self.preparations(opened, read).into_iter();
                all.map(|(key, _)| names::line(names::PREPARATION, &key.0, key.1.as_str(), asked)).collect()
            }
            Resource::History => {
                let mut seen = BTreeSet::new();
                let entries = self.servings.iter().flat_map(|line| {
                    let history = line.status.iter().flat_map(|status| &status.history);
                    history.map(|entry| (&line.order.namespace, &entry.preparation_name))
                });
                let once = entries.filter(|entry| seen.insert(*entry));
                once.map(|(space, name)| names::line(names::PREPARATION, space, name.as_str(), asked))
                    .collect()
            }
        }
    }

    fn table(&self, args: &Get, opened: &Opened, read: &'a Read, wide: bool) -> String {
        let orders = || self.orders.iter().filter_map(|order| read.world.orders.get_key_value(*order));
        let spaces: BTreeSet<&Namespace> = match self.resource {
            Resource::Orders => self.orders.iter().map(|o| &o.namespace).collect(),
            Resource::Preparations => self.preparations(opened, read).iter().map(|(key, _)| &key.0).collect(),
            Resource::Servings | Resource::History => {
                self.servings.iter().map(|l| &l.order.namespace).collect()
            }
        };
        let layout = layout(opened, args.all_namespaces, spaces.len(), wide);
        let table: Table = match self.resource {
            Resource::Orders => get::orders(orders(), &read.gitops, layout),
            Resource::Preparations => {
                get::preparations(self.preparations(opened, read), &read.gitops, layout)
            }
            Resource::Servings => get::servings(&self.servings, layout),
            Resource::History => get::history(&self.servings, layout),
        };
        table.text()
    }
}

/// A Preparation's key, as a name that an argument can give.
fn reference((namespace, name): &(Namespace, crate::model::id::PreparationName)) -> Option<OrderRef> {
    let name = crate::model::id::OrderName::parse(name.as_str()).ok()?;
    Some(OrderRef { namespace: namespace.clone(), name })
}

fn not_found(failure: Failure, args: &Get) -> Failure {
    let kind = match args.resource {
        Resource::Orders => "Order",
        Resource::Preparations => "Preparation",
        Resource::Servings | Resource::History => "Serving",
    };
    match failure.kind {
        Kind::Usage => failure,
        Kind::Input
        | Kind::Unread
        | Kind::Repository
        | Kind::Internal
        | Kind::SaysNo
        | Kind::Guard
        | Kind::Moved => {
            let name = args.name.as_ref().map(ToString::to_string).unwrap_or_default();
            Failure::input("not-found", "there is none of this name").of(format!("{kind} {name}"))
        }
    }
}

/// NAMESPACE stands first with `-A`, and where no `-n` is given and there are several.
fn layout(opened: &Opened, all: bool, spaces: usize, wide: bool) -> Layout {
    let one = opened.scope().namespaces.len() == 1;
    Layout { namespaces: all || (!one && spaces > 1), wide, now: opened.now() }
}

/// The table of Servings within the scope, for a run's end.
pub fn servings_text(mut lines: Vec<ServingLine<'_>>, opened: &Opened, all: bool, wide: bool) -> String {
    let scope = opened.scope();
    lines.retain(|line| scope.namespaces.is_empty() || scope.namespaces.contains(&line.order.namespace));
    let spaces: BTreeSet<&Namespace> = lines.iter().map(|line| &line.order.namespace).collect();
    if lines.is_empty() {
        return String::new();
    }
    get::servings(&lines, layout(opened, all, spaces.len(), wide)).text()
}
