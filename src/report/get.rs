//! What `get` prints: Servings, Orders, Preparations and histories, as kubectl prints tables.

use crate::model::id::{Namespace, OrderRef, PreparationName};
use crate::model::meta::{Readiness, Status};
use crate::model::order::{AutoDeploy, Mode, Order};
use crate::model::plan::{Plan, ServingPlan};
use crate::model::preparation::Preparation;
use crate::model::serving::ServingStatus;
use crate::model::time::Time;
use crate::model::world::{GitOps, Loaded, is_cluster};
use crate::report::table::{Table, format_age};
use std::collections::BTreeMap;

/// How the objects of a `get` are chosen and laid out.
#[derive(Debug, Clone, Copy)]
pub struct Layout {
    /// With NAMESPACE as the first column.
    pub namespaces: bool,
    /// With the columns of `-o wide`.
    pub wide: bool,
    /// Ages are counted from here.
    pub now: Time,
}

/// A Serving, as a line of the table needs it.
#[derive(Debug, Clone)]
pub struct ServingLine<'a> {
    /// The Order it belongs to.
    pub order: &'a OrderRef,
    /// Its state; `None`: the file does not read as a Serving.
    pub status: Option<&'a ServingStatus>,
    /// `metadata.creationTimestamp`.
    pub created: Option<Time>,
}

/// The Servings of a repository as it is.
#[must_use]
pub fn collect_servings(gitops: &GitOps) -> Vec<ServingLine<'_>> {
    gitops
        .servings
        .iter()
        .map(|(order, file)| {
            let serving = file.serving.as_ref().ok();
            ServingLine {
                order,
                status: serving.map(|s| &s.status),
                created: serving.and_then(|s| s.metadata.creation_timestamp),
            }
        })
        .collect()
}

/// The Servings of a repository as a plan leaves it: its own rows over what was there.
#[must_use]
pub fn collect_servings_after<'a>(before: &'a GitOps, plan: &'a Plan) -> Vec<ServingLine<'a>> {
    let mut lines: BTreeMap<&OrderRef, ServingLine<'a>> =
        collect_servings(before).into_iter().map(|line| (line.order, line)).collect();
    for row in &plan.rows {
        match &row.serving {
            ServingPlan::Keep => {}
            ServingPlan::Write(state) => {
                let created = lines.get(&row.order).map_or(Some(state.created), |line| line.created);
                let line = ServingLine { order: &row.order, status: Some(&state.status), created };
                lines.insert(&row.order, line);
            }
            ServingPlan::Remove => {
                lines.remove(&row.order);
            }
        }
    }
    lines.into_values().collect()
}

/// NAME ORDER TARGET READY REASON APPROVED VERIFIED AGE; wide adds QUEUED and WAITS FOR.
#[must_use]
pub fn build_serving_table(lines: &[ServingLine<'_>], layout: Layout) -> Table {
    let columns = ["NAME", "ORDER", "TARGET", "READY", "REASON", "APPROVED", "VERIFIED", "AGE"];
    let mut table = make_table(&columns, &["QUEUED", "WAITS FOR"], layout);
    for line in lines {
        let condition = |kind| line.status.and_then(|s| s.find_condition(kind));
        let reason = |kind| condition(kind).map(|c| c.reason.clone()).unwrap_or_default();
        let (ready, why) = match (line.status, condition("Ready")) {
            (None, _) => ("False".to_owned(), "InvalidInput".to_owned()),
            (Some(_), Some(ready)) => (ready.status.clone(), ready.reason.clone()),
            (Some(_), None) => ("Unknown".to_owned(), String::new()),
        };
        let cells = [
            line.order.name.to_string(),
            line.order.name.to_string(),
            format_name(line.status.and_then(|s| s.target_preparation_name.as_ref())),
            ready,
            why,
            reason("Approved"),
            reason("Verified"),
            format_age(line.created, layout.now),
        ];
        push_row(&mut table, layout, &line.order.namespace, &cells, &format_waiting(line.status));
    }
    table
}

/// NAME ENVIRONMENT MODE DEPLOYED QUEUED WAITS FOR AGE; wide adds DIGEST.
#[must_use]
pub fn build_order_table<'a>(
    orders: impl IntoIterator<Item = (&'a OrderRef, &'a Loaded<Order>)>,
    gitops: &GitOps,
    layout: Layout,
) -> Table {
    let columns = ["NAME", "ENVIRONMENT", "MODE", "DEPLOYED", "QUEUED", "WAITS FOR", "AGE"];
    let mut table = make_table(&columns, &["DIGEST"], layout);
    for (order, loaded) in orders {
        let status = find_status(gitops, order);
        let [queued, waits_for] = format_waiting(status);
        let cells = [
            order.name.to_string(),
            loaded.object.spec.environment.as_ref().map(ToString::to_string).unwrap_or_default(),
            super::plan::format_mode(find_mode(&loaded.object)).to_owned(),
            format_name(status.and_then(|s| s.observed_preparation_name.as_ref())),
            queued,
            waits_for,
            format_age(loaded.object.metadata.creation_timestamp, layout.now),
        ];
        let digest = status.and_then(|s| s.deployed_digest).map(|d| d.to_string()).unwrap_or_default();
        push_row(&mut table, layout, &order.namespace, &cells, &[digest]);
    }
    table
}

/// NAME ORDER READY SIGNED QUEUED WAITS FOR AGE; wide adds DIGEST and MESSAGE.
#[must_use]
pub fn build_preparation_table<'a>(
    preparations: impl IntoIterator<Item = (&'a (Namespace, PreparationName), &'a Loaded<Preparation>)>,
    gitops: &GitOps,
    layout: Layout,
) -> Table {
    let columns = ["NAME", "ORDER", "READY", "SIGNED", "QUEUED", "WAITS FOR", "AGE"];
    let mut table = make_table(&columns, &["DIGEST", "MESSAGE"], layout);
    for ((namespace, preparation), loaded) in preparations {
        let spec = &loaded.object.spec;
        let order = OrderRef { namespace: namespace.clone(), name: spec.order_name.clone() };
        let status = find_status(gitops, &order);
        let waits = status.and_then(ServingStatus::find_wait).filter(|(name, _)| name == preparation);
        let queued = status.and_then(|s| s.queued.as_ref()).filter(|q| q.preparation_name == *preparation);
        let cells = [
            preparation.to_string(),
            spec.order_name.to_string(),
            format_ready(loaded).to_owned(),
            spec.artifact.signed.to_string(),
            queued.map(|_| "True".to_owned()).unwrap_or_default(),
            waits.map(|(_, gate)| gate.to_string()).unwrap_or_default(),
            format_age(loaded.object.metadata.creation_timestamp, layout.now),
        ];
        let message = spec.commit_message.clone().unwrap_or_default();
        let wide = [spec.artifact.digest.to_string(), cut_first_line(&message, 60)];
        push_row(&mut table, layout, namespace, &cells, &wide);
    }
    table
}

/// ORDER PREPARATION ENVIRONMENT PROMOTED HEALTHY ENDED REASON; wide adds DIGEST and REQUESTED BY. Newest first.
#[must_use]
pub fn build_history_table(lines: &[ServingLine<'_>], layout: Layout) -> Table {
    let columns = ["ORDER", "PREPARATION", "ENVIRONMENT", "PROMOTED", "HEALTHY", "ENDED", "REASON"];
    let mut table = make_table(&columns, &["DIGEST", "REQUESTED BY"], layout);
    let time = |t: Option<Time>| t.map(|t| t.to_string()).unwrap_or_default();
    for line in lines {
        for entry in line.status.into_iter().flat_map(|s| &s.history) {
            let cells = [
                line.order.name.to_string(),
                entry.preparation_name.to_string(),
                entry.environment.as_ref().map(ToString::to_string).unwrap_or_default(),
                entry.promoted_time.to_string(),
                time(entry.first_healthy_time),
                time(entry.ended_time),
                entry.ended_reason.map(|r| r.as_str().to_owned()).unwrap_or_default(),
            ];
            let by = entry.requested_by.as_ref().map(|r| r.name.clone()).unwrap_or_default();
            push_row(&mut table, layout, &line.order.namespace, &cells, &[entry.digest.to_string(), by]);
        }
    }
    table
}

fn make_table(columns: &[&'static str], wide: &[&'static str], layout: Layout) -> Table {
    let namespace: &[&str] = if layout.namespaces { &["NAMESPACE"] } else { &[] };
    let wide = if layout.wide { wide } else { &[] };
    Table::new(&[namespace, columns, wide].concat())
}

fn push_row(table: &mut Table, layout: Layout, namespace: &Namespace, cells: &[String], wide: &[String]) {
    let namespace = layout.namespaces.then(|| namespace.to_string());
    let wide = if layout.wide { wide } else { &[] };
    table.push_row(namespace.iter().chain(cells).chain(wide));
}

/// QUEUED and WAITS FOR. Under Automatic nothing is queued, and the newest one waits all the same.
fn format_waiting(status: Option<&ServingStatus>) -> [String; 2] {
    let queued = status.and_then(|s| s.queued.as_ref());
    let waits = status.and_then(ServingStatus::find_wait);
    [
        queued.map(|q| q.preparation_name.to_string()).unwrap_or_default(),
        waits.map(|(_, gate)| gate.to_string()).unwrap_or_default(),
    ]
}

pub(super) fn find_status<'a>(gitops: &'a GitOps, order: &OrderRef) -> Option<&'a ServingStatus> {
    gitops.servings.get(order).and_then(|file| file.serving.as_ref().ok()).map(|s| &s.status)
}

fn format_name(name: Option<&PreparationName>) -> String {
    name.map(ToString::to_string).unwrap_or_default()
}

/// Who chooses, as the Order says it; `resolve` reports where its two fields disagree.
#[must_use]
pub fn find_mode(order: &Order) -> Mode {
    let said = order.spec.promotion.as_ref().and_then(|p| p.mode);
    said.unwrap_or(match order.spec.auto_deploy {
        Some(AutoDeploy::Enabled) => Mode::Automatic,
        Some(AutoDeploy::Disabled) | None => Mode::Manual,
    })
}

/// The status of the Ready condition; without a controller's status, files are ready
/// (`docs/design/promotion.md#two-sources-one-meaning`).
#[must_use]
pub fn format_ready(preparation: &Loaded<Preparation>) -> &'static str {
    let cluster = is_cluster(&preparation.origin.source);
    match Status::judge_readiness(preparation.object.status.as_ref(), preparation.object.metadata.generation)
    {
        Readiness::Ready => "True",
        Readiness::NotReady(_) => "False",
        Readiness::NoStatus if !cluster => "True",
        Readiness::NotYetKnown(_) | Readiness::NoCondition | Readiness::NoStatus => "Unknown",
    }
}

fn cut_first_line(text: &str, columns: usize) -> String {
    let line = text.lines().next().unwrap_or_default();
    super::escape::truncate_text(&super::escape::escape_line(line), columns).into_owned()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;
    use crate::error::Failure;
    use crate::report::sample::{make_now, make_sample, parse_order};

    fn layout(namespaces: bool, wide: bool) -> Layout {
        Layout { namespaces, wide, now: make_now() }
    }

    #[test]
    fn servings_are_the_guides_table() {
        let sample = make_sample();
        let lines = collect_servings(&sample.before);
        assert_eq!(
            build_serving_table(&lines, layout(false, false)).format_table(),
            "NAME   ORDER   TARGET   READY   REASON     APPROVED              VERIFIED             AGE\n\
             lone   lone    lone-1   True    Deployed   ApprovalNotRequired   SignaturesVerified   5d\n\
             cart   cart    cart-1   True    Deployed   ApprovalNotRequired   SignaturesVerified   5d\n\
             gone   gone    gone-1   True    Deployed   ApprovalNotRequired   SignaturesVerified   5d\n\
             kept   kept    kept-1   True    Deployed   ApprovalNotRequired   SignaturesVerified   5d\n\
             web    web     web-1    True    Deployed   ApprovalNotRequired   SignaturesVerified   5d\n"
        );
    }

    #[test]
    fn wide_servings_say_what_is_queued_and_where() {
        let sample = make_sample();
        let mut lines = collect_servings(&sample.before);
        lines
            .retain(|line| *line.order == parse_order("shop/cart") || *line.order == parse_order("dev/lone"));
        let text = build_serving_table(&lines, layout(true, true)).format_table();
        let rows: Vec<Vec<&str>> =
            text.lines().map(|l| l.split("   ").map(str::trim).filter(|c| !c.is_empty()).collect()).collect();
        assert_eq!(rows[0][0], "NAMESPACE");
        assert_eq!(rows[0][9..], ["QUEUED", "WAITS FOR"]);
        assert_eq!((rows[1][0], &rows[1][9..]), ("dev", &["<none>", "<none>"][..]));
        assert_eq!((rows[2][0], &rows[2][9..]), ("shop", &["cart-2", "Approvals"][..]));
    }

    #[test]
    fn a_serving_that_does_not_read_is_shown_as_such() {
        let mut sample = make_sample();
        sample.before.servings.get_mut(&parse_order("shop/web")).unwrap().serving =
            Err(Failure::new_input("x", "nonsense"));
        let mut lines = collect_servings(&sample.before);
        lines.retain(|line| *line.order == parse_order("shop/web"));
        assert_eq!(
            build_serving_table(&lines, layout(false, false)).format_table().lines().nth(1).unwrap(),
            "web    web     <none>   False   InvalidInput   <none>     <none>     <unknown>"
        );
    }

    #[test]
    fn after_a_plan_the_servings_are_those_it_leaves() {
        let sample = make_sample();
        let lines = collect_servings_after(&sample.before, &sample.plan);
        let targets: Vec<String> = lines
            .iter()
            .map(|line| {
                format!(
                    "{} {}",
                    line.order,
                    format_name(line.status.and_then(|s| s.target_preparation_name.as_ref()))
                )
            })
            .collect();
        assert_eq!(targets, ["dev/lone lone-1", "shop/cart cart-1", "shop/kept kept-1", "shop/web web-2"]);
        assert!(lines.iter().all(|line| line.created == Some(Time::parse("2026-03-05T12:00:00Z").unwrap())));
    }

    #[test]
    fn a_history_tells_when_and_how_it_ended() {
        let sample = make_sample();
        let lines: Vec<_> = collect_servings(&sample.before)
            .into_iter()
            .filter(|l| *l.order == parse_order("shop/web"))
            .collect();
        let text = build_history_table(&lines, layout(false, false)).format_table();
        assert_eq!(
            text,
            "ORDER   PREPARATION   ENVIRONMENT   PROMOTED               HEALTHY                ENDED                  REASON\n\
             web     web-1         production    2026-03-05T12:00:00Z   2026-03-05T12:05:00Z   2026-03-06T12:05:00Z   Degraded\n"
        );
        assert!(
            build_history_table(&lines, layout(false, true))
                .format_table()
                .contains("Ann <ann@shop.example>")
        );
    }
}
