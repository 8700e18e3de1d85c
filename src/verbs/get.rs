//! `get`: Orders, Preparations, Servings and histories. Reads the repository and the sources; asks no registry.

use crate::error::{Failure, FailureKind};
use crate::model::id::{Namespace, OrderRef};
use crate::model::world::Holds;
use crate::report::get::{self, Layout, ServingLine};
use crate::report::table::Table;
use crate::report::{Output, json_v1, names};
use crate::run::{self, Read};
use crate::verbs::flags::Common;
use crate::verbs::formats::ListFormat;
use crate::verbs::setup;
use crate::verbs::setup::{Access, Opened, Outside, wrap_failure};
use crate::verbs::values::OrderArg;
use clap::{Args, ValueEnum};
use std::collections::BTreeSet;

/// Print Orders, Preparations, Servings or a history as kubectl prints tables
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  expedite get                                         Servings: what runs, and in which state
  expedite get orders -n shop
  expedite get servings -o wide
  expedite get history shop/podinfo
  expedite get orders -l team=web -o name | xargs -n1 expedite explain")]
pub struct Get {
    /// Of which kind
    #[arg(value_name = "KIND", value_enum, default_value_t = ResourceArg::Servings)]
    pub resource: ResourceArg,
    /// Only this one: NAMESPACE/NAME, or NAME
    #[arg(value_name = "NAME", value_parser = OrderArg::parse)]
    pub name: Option<OrderArg>,
    /// Show the namespace of each, whatever there is
    #[arg(short = 'A', long)]
    pub all_namespaces: bool,
    /// How it is printed
    #[arg(short, long, value_enum, default_value_t = ListFormat::Table)]
    pub output: ListFormat,
}

/// What `get` prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ResourceArg {
    /// What an application is and how it moves.
    #[value(aliases = ["order"])]
    Orders,
    /// Renderings of Orders.
    #[value(aliases = ["preparation", "prep", "preps"])]
    Preparations,
    /// What is promoted.
    #[value(aliases = ["serving"])]
    Servings,
    /// Past promotions.
    History,
}

/// Prints.
///
/// # Errors
/// The settings are wrong, the repository cannot be read, or there is no object of the name that was given.
pub fn run_get(
    common: &Common,
    args: &Get,
    outside: &Outside,
    output: &mut Output,
) -> Result<(), Vec<Failure>> {
    let opened = Opened::new(common, outside, Access::Read)?;
    let setup = opened.make_setup(Access::Read, None);
    let read = run::read_inputs(&setup, &mut |text| output.show_progress(text)).map_err(wrap_failure)?;
    let picked = Picked::new(common, args, &opened, &read).map_err(wrap_failure)?;
    if picked.count == 0 {
        output.write_note(&match &common.namespace[..] {
            [] => "No resources found.".to_owned(),
            some => format!("No resources found in {}.", join_namespaces(some)),
        });
    }
    if picked.count > 0 || args.output == ListFormat::Json {
        output.write_result(&picked.format_text(common, args, &opened, &read));
    }
    for problem in read.world.problems.iter().chain(&read.gitops.problems) {
        match problem.holds {
            Holds::Nothing => output.report_warning(&problem.failure),
            Holds::Orders(_) | Holds::Everything => output.report_error(&problem.failure),
        }
    }
    for line in picked.servings.iter().filter(|line| line.status.is_none()) {
        if let Some(Err(failure)) = read.gitops.servings.get(line.order).map(|file| &file.serving) {
            output.report_error(failure);
        }
    }
    Ok(())
}

fn join_namespaces(namespaces: &[Namespace]) -> String {
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
    resource: ResourceArg,
}

impl<'a> Picked<'a> {
    fn new(common: &Common, args: &Get, opened: &Opened, read: &'a Read) -> Result<Self, Failure> {
        let labels = |order: &OrderRef| read.world.orders.get(order).map(|o| &o.object.metadata.labels);
        let known: BTreeSet<OrderRef> = match args.resource {
            ResourceArg::Orders => read.world.orders.keys().cloned().collect(),
            ResourceArg::Preparations => read.world.preparations.keys().filter_map(parse_reference).collect(),
            ResourceArg::Servings | ResourceArg::History => read.gitops.servings.keys().cloned().collect(),
        };
        let name = match &args.name {
            Some(name) => {
                Some(setup::find_order(name, common, known.iter()).map_err(|f| describe_not_found(f, args))?)
            }
            None => None,
        };
        if let Some(name) = name.as_ref().filter(|name| !known.contains(name)) {
            return Err(describe_not_found(
                Failure::new_input("not-found", "there is none").with_object(name.to_string()),
                args,
            ));
        }
        let admitted = |order: &OrderRef| opened.scope().admits_order(order, labels(order));
        let mut servings = get::collect_servings(&read.gitops);
        servings.retain(|line| admitted(line.order) && name.as_ref().is_none_or(|n| n == line.order));
        let orders = read.world.orders.keys();
        let orders: BTreeSet<&OrderRef> =
            orders.filter(|o| admitted(o) && name.as_ref().is_none_or(|n| n == *o)).collect();
        let mut picked = Self { servings, orders, name, count: 0, resource: args.resource };
        picked.count = match args.resource {
            ResourceArg::Orders => picked.orders.len(),
            ResourceArg::Preparations => picked.collect_preparations(opened, read).len(),
            ResourceArg::Servings => picked.servings.len(),
            ResourceArg::History => {
                picked.servings.iter().filter_map(|line| line.status).map(|s| s.history.len()).sum()
            }
        };
        Ok(picked)
    }

    /// Preparations by the scope of their Orders.
    fn collect_preparations(
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
            opened.scope().admits_order(&order, labels)
                && self.name.as_ref().is_none_or(|name| parse_reference(key).as_ref() == Some(name))
        })
        .collect()
    }

    fn format_text(&self, common: &Common, args: &Get, opened: &Opened, read: &'a Read) -> String {
        match args.output {
            ListFormat::Table => self.format_table(args, opened, read, false),
            ListFormat::Wide => self.format_table(args, opened, read, true),
            ListFormat::Json => self.format_json(opened, read),
            ListFormat::Name => self.format_names(&common.namespace, opened, read),
        }
    }

    fn format_json(&self, opened: &Opened, read: &'a Read) -> String {
        let orders = self.orders.iter().filter_map(|order| read.world.orders.get_key_value(*order));
        match self.resource {
            ResourceArg::Orders => json_v1::get::format_orders(orders, &read.gitops),
            ResourceArg::Preparations => {
                json_v1::get::format_preparations(self.collect_preparations(opened, read), &read.gitops)
            }
            ResourceArg::Servings => json_v1::get::format_servings(&self.servings),
            ResourceArg::History => json_v1::get::format_history(&self.servings),
        }
    }

    /// Sorted by namespace and name; of a history its Preparations, each once, the newest first.
    fn format_names(&self, asked: &[Namespace], opened: &Opened, read: &'a Read) -> String {
        match self.resource {
            ResourceArg::Orders => names::format_lines(names::ORDER, self.orders.iter().copied(), asked),
            ResourceArg::Servings => {
                names::format_lines(names::SERVING, self.servings.iter().map(|line| line.order), asked)
            }
            ResourceArg::Preparations => {
                let all = self.collect_preparations(opened, read).into_iter();
                all.map(|(key, _)| names::format_line(names::PREPARATION, &key.0, key.1.as_str(), asked))
                    .collect()
            }
            ResourceArg::History => {
                let mut seen = BTreeSet::new();
                let entries = self.servings.iter().flat_map(|line| {
                    let history = line.status.iter().flat_map(|status| &status.history);
                    history.map(|entry| (&line.order.namespace, &entry.preparation_name))
                });
                let once = entries.filter(|entry| seen.insert(*entry));
                once.map(|(space, name)| names::format_line(names::PREPARATION, space, name.as_str(), asked))
                    .collect()
            }
        }
    }

    fn format_table(&self, args: &Get, opened: &Opened, read: &'a Read, wide: bool) -> String {
        let orders = || self.orders.iter().filter_map(|order| read.world.orders.get_key_value(*order));
        let spaces: BTreeSet<&Namespace> = match self.resource {
            ResourceArg::Orders => self.orders.iter().map(|o| &o.namespace).collect(),
            ResourceArg::Preparations => {
                self.collect_preparations(opened, read).iter().map(|(key, _)| &key.0).collect()
            }
            ResourceArg::Servings | ResourceArg::History => {
                self.servings.iter().map(|l| &l.order.namespace).collect()
            }
        };
        let layout = choose_layout(opened, args.all_namespaces, spaces.len(), wide);
        let table: Table = match self.resource {
            ResourceArg::Orders => get::build_order_table(orders(), &read.gitops, layout),
            ResourceArg::Preparations => {
                get::build_preparation_table(self.collect_preparations(opened, read), &read.gitops, layout)
            }
            ResourceArg::Servings => get::build_serving_table(&self.servings, layout),
            ResourceArg::History => get::build_history_table(&self.servings, layout),
        };
        table.format_table()
    }
}

/// A Preparation's key, as a name that an argument can give.
fn parse_reference((namespace, name): &(Namespace, crate::model::id::PreparationName)) -> Option<OrderRef> {
    let name = crate::model::id::OrderName::parse(name.as_str()).ok()?;
    Some(OrderRef { namespace: namespace.clone(), name })
}

fn describe_not_found(failure: Failure, args: &Get) -> Failure {
    let kind = match args.resource {
        ResourceArg::Orders => "Order",
        ResourceArg::Preparations => "Preparation",
        ResourceArg::Servings | ResourceArg::History => "Serving",
    };
    match failure.kind {
        FailureKind::Usage => failure,
        FailureKind::Input
        | FailureKind::Unread
        | FailureKind::Repository
        | FailureKind::Internal
        | FailureKind::SaysNo
        | FailureKind::Guard
        | FailureKind::Moved => {
            let name = args.name.as_ref().map(ToString::to_string).unwrap_or_default();
            Failure::new_input("not-found", "there is none of this name")
                .with_object(format!("{kind} {name}"))
        }
    }
}

/// NAMESPACE stands first with `-A`, and where no `-n` is given and there are several.
fn choose_layout(opened: &Opened, all: bool, spaces: usize, wide: bool) -> Layout {
    let one = opened.scope().namespaces.len() == 1;
    Layout { namespaces: all || (!one && spaces > 1), wide, now: opened.now() }
}

/// The table of Servings within the scope, for a run's end.
pub fn format_servings(mut lines: Vec<ServingLine<'_>>, opened: &Opened, all: bool, wide: bool) -> String {
    let scope = opened.scope();
    lines.retain(|line| scope.namespaces.is_empty() || scope.namespaces.contains(&line.order.namespace));
    let spaces: BTreeSet<&Namespace> = lines.iter().map(|line| &line.order.namespace).collect();
    if lines.is_empty() {
        return String::new();
    }
    get::build_serving_table(&lines, choose_layout(opened, all, spaces.len(), wide)).format_table()
}
