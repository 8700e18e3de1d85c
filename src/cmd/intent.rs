//! `promote`, `withdraw` and `rollback`: a person's wish, judged and committed as intent.

use crate::cli::{Common, OrderArg, Promote, Propose, Rollback, Withdraw};
use crate::cmd::setup::{self, Access, Opened, Outside};
use crate::cmd::wrap_failure;
use crate::error::{Failure, FailureKind};
use crate::model::id::OrderRef;
use crate::policy::decide::intent::{Intent, Wish};
use crate::report::{Output, pull_request};
use crate::run::intend::{Asking, Intended, commit_intent};
use crate::run::{self, Setup};

/// Asks for a Preparation.
///
/// # Errors
/// It is refused, or the repository cannot be read or written.
pub fn run_promote(
    common: &Common,
    args: &Promote,
    outside: &Outside,
    output: &mut Output,
) -> Result<(), Vec<Failure>> {
    let wish = Wish::Promote(args.preparation.clone());
    ask_named(common, &args.order, &wish, &args.written, outside, output)
}

/// Takes a waiting promotion back.
///
/// # Errors
/// It is refused, or the repository cannot be read or written.
pub fn run_withdraw(
    common: &Common,
    args: &Withdraw,
    outside: &Outside,
    output: &mut Output,
) -> Result<(), Vec<Failure>> {
    ask_named(common, &args.order, &Wish::Withdraw, &args.written, outside, output)
}

/// Goes back, one Order or a fleet in one commit.
///
/// # Errors
/// One of them is refused (then nothing is written), or the repository cannot be read or written.
pub fn run_rollback(
    common: &Common,
    args: &Rollback,
    outside: &Outside,
    output: &mut Output,
) -> Result<(), Vec<Failure>> {
    let wish = Wish::Rollback(args.preparation.clone());
    if let Some(order) = &args.order {
        return ask_named(common, order, &wish, &args.written, outside, output);
    }
    if common.selector.is_none() && args.environment.is_none() {
        return Err(wrap_failure(
            Failure::new(FailureKind::Usage, "no-order", "it needs an Order, -l SELECTOR or --environment")
                .with_object("rollback")
                .with_hint("expedite rollback shop/podinfo"),
        ));
    }
    let opened = Opened::new(common, outside, Access::Write)?;
    let setup = opened.make_setup(Access::Write, None);
    let read = run::read_inputs(&setup, &mut |text| output.show_progress(text)).map_err(wrap_failure)?;
    let orders: Vec<(OrderRef, Wish)> = read
        .world
        .orders
        .iter()
        .filter(|(order, loaded)| {
            opened.scope().admits_order(order, Some(&loaded.object.metadata.labels))
                && (args.environment.is_none() || loaded.object.spec.environment == args.environment)
        })
        .map(|(order, _)| (order.clone(), wish.clone()))
        .collect();
    if orders.is_empty() {
        return Err(wrap_failure(
            Failure::new(FailureKind::SaysNo, "no-such-order", "no Order is chosen by these flags")
                .with_object("rollback")
                .with_hint("expedite get orders lists them"),
        ));
    }
    ask_wishes(&orders, &args.written, &opened, &setup, output)
}

fn ask_named(
    common: &Common,
    order: &OrderArg,
    wish: &Wish,
    written: &Propose,
    outside: &Outside,
    output: &mut Output,
) -> Result<(), Vec<Failure>> {
    let opened = Opened::new(common, outside, Access::Write)?;
    let setup = opened.make_setup(Access::Write, None);
    let order = match (&order.namespace, &common.namespace[..]) {
        // A bare name needs to know which there are.
        (None, []) => {
            let read =
                run::read_inputs(&setup, &mut |text| output.show_progress(text)).map_err(wrap_failure)?;
            let known = read.world.orders.keys().chain(read.gitops.servings.keys());
            setup::find_order(order, common, known).map_err(wrap_failure)?
        }
        (Some(_), _) | (None, [_, ..]) => setup::parse_order(order, common).map_err(wrap_failure)?,
    };
    ask_wishes(&[(order, wish.clone())], written, &opened, &setup, output)
}

fn ask_wishes(
    orders: &[(OrderRef, Wish)],
    written: &Propose,
    opened: &Opened,
    setup: &Setup<'_>,
    output: &mut Output,
) -> Result<(), Vec<Failure>> {
    let identity = opened.resolve_identity().map_err(wrap_failure)?;
    let requester = opened.find_requester().unwrap_or_else(|| identity.author.clone());
    let propose = written.propose.as_deref().map(str::trim).filter(|branch| !branch.is_empty());
    let asking = Asking {
        identity: &identity,
        requester: &requester,
        tries: opened.settings.limits.max_tries,
        propose,
    };
    let Intended { intents, commit } = commit_intent(setup, orders, &asking).map_err(wrap_failure)?;
    for (order, intent) in &intents {
        output.write_result(&format!("{order}: {}\n", describe_intent(intent)));
    }
    let asked = intents.iter().any(|(_, intent)| !matches!(intent, Intent::Already(_)));
    match (commit, propose) {
        (Some(id), None) => output.write_note(&format!(
            "committed {id} to {}; {}",
            opened.describe_place(),
            describe_outcome(orders)
        )),
        (Some(id), Some(branch)) => {
            output.write_note(&format!("committed {id} to {} {branch}", opened.repository.name()));
            describe_consequence(branch, describe_outcome(orders), opened, output);
        }
        (None, Some(branch)) if asked => {
            output.write_note(&format!("nothing was written: {branch} proposes this already"));
            describe_consequence(branch, describe_outcome(orders), opened, output);
        }
        (None, _) => output.write_note("nothing was written"),
    }
    Ok(())
}

/// How the proposal becomes intent.
fn describe_consequence(branch: &str, then: &str, opened: &Opened, output: &mut Output) {
    match pull_request::build_url(opened.repository.store_name(), &opened.branch, branch) {
        Some(url) => output.write_result(&format!("open the pull request: {url}\n")),
        None => output.write_note(&format!("open a pull request from {branch} into {}", opened.branch)),
    }
    output.write_note(&format!("once it is merged into {}, {then}", opened.branch));
}

/// What comes of it.
fn describe_outcome(orders: &[(OrderRef, Wish)]) -> &'static str {
    if orders.iter().all(|(_, wish)| matches!(wish, Wish::Withdraw)) {
        "nothing waits any more, and what is deployed stays"
    } else {
        "the next run promotes what passes its gates"
    }
}

fn describe_intent(intent: &Intent) -> String {
    match intent {
        Intent::Ask(name) => format!("asks for {name}"),
        Intent::Remove => "asks for nothing any more; its Serving goes".to_owned(),
        Intent::Already(Some(name)) => format!("asks for {name} already"),
        Intent::Already(None) => "asks for nothing already".to_owned(),
    }
}
