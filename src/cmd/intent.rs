//! `promote`, `withdraw` and `rollback`: a person's wish, judged and committed as intent.

use crate::cli::{Common, OrderArg, Promote, Propose, Rollback, Withdraw};
use crate::cmd::one;
use crate::cmd::setup::{self, Access, Opened, Outside};
use crate::error::{Failure, Kind};
use crate::model::id::OrderRef;
use crate::policy::decide::intent::{Intent, Wish};
use crate::report::{Output, pull_request};
use crate::run::intend::{Asking, Intended, intend};
use crate::run::{self, Setup};

/// Asks for a Preparation.
///
/// # Errors
/// It is refused, or the repository cannot be read or written.
pub fn promote(
    common: &Common,
    args: &Promote,
    outside: &Outside,
    output: &mut Output,
) -> Result<(), Vec<Failure>> {
    let wish = Wish::Promote(args.preparation.clone());
    named(common, &args.order, &wish, &args.written, outside, output)
}

/// Takes a waiting promotion back.
///
/// # Errors
/// It is refused, or the repository cannot be read or written.
pub fn withdraw(
    common: &Common,
    args: &Withdraw,
    outside: &Outside,
    output: &mut Output,
) -> Result<(), Vec<Failure>> {
    named(common, &args.order, &Wish::Withdraw, &args.written, outside, output)
}

/// Goes back, one Order or a fleet in one commit.
///
/// # Errors
/// One of them is refused (then nothing is written), or the repository cannot be read or written.
pub fn rollback(
    common: &Common,
    args: &Rollback,
    outside: &Outside,
    output: &mut Output,
) -> Result<(), Vec<Failure>> {
    let wish = Wish::Rollback(args.preparation.clone());
    if let Some(order) = &args.order {
        return named(common, order, &wish, &args.written, outside, output);
    }
    if common.selector.is_none() && args.environment.is_none() {
        return Err(one(Failure::new(
            Kind::Usage,
            "no-order",
            "it needs an Order, -l SELECTOR or --environment",
        )
        .of("rollback")
        .hint("expedite rollback shop/podinfo")));
    }
    let opened = Opened::new(common, outside, Access::Write)?;
    let setup = opened.setup(Access::Write, None);
    let read = run::read(&setup, &mut |text| output.progress(text)).map_err(one)?;
    let orders: Vec<(OrderRef, Wish)> = read
        .world
        .orders
        .iter()
        .filter(|(order, loaded)| {
            opened.scope().admits(order, Some(&loaded.object.metadata.labels))
                && (args.environment.is_none() || loaded.object.spec.environment == args.environment)
        })
        .map(|(order, _)| (order.clone(), wish.clone()))
        .collect();
    if orders.is_empty() {
        return Err(one(Failure::new(Kind::SaysNo, "no-such-order", "no Order is chosen by these flags")
            .of("rollback")
            .hint("expedite get orders lists them")));
    }
    ask(&orders, &args.written, &opened, &setup, output)
}

fn named(
    common: &Common,
    order: &OrderArg,
    wish: &Wish,
    written: &Propose,
    outside: &Outside,
    output: &mut Output,
) -> Result<(), Vec<Failure>> {
    let opened = Opened::new(common, outside, Access::Write)?;
    let setup = opened.setup(Access::Write, None);
    let order = match (&order.namespace, &common.namespace[..]) {
        // A bare name needs to know which there are.
        (None, []) => {
            let read = run::read(&setup, &mut |text| output.progress(text)).map_err(one)?;
            let known = read.world.orders.keys().chain(read.gitops.servings.keys());
            setup::found(order, common, known).map_err(one)?
        }
        (Some(_), _) | (None, [_, ..]) => setup::named(order, common).map_err(one)?,
    };
    ask(&[(order, wish.clone())], written, &opened, &setup, output)
}

fn ask(
    orders: &[(OrderRef, Wish)],
    written: &Propose,
    opened: &Opened,
    setup: &Setup<'_>,
    output: &mut Output,
) -> Result<(), Vec<Failure>> {
    let identity = opened.identity().map_err(one)?;
    let requester = opened.requester().unwrap_or_else(|| identity.author.clone());
    let propose = written.propose.as_deref().map(str::trim).filter(|branch| !branch.is_empty());
    let asking = Asking {
        identity: &identity,
        requester: &requester,
        tries: opened.settings.limits.max_tries,
        propose,
    };
    let Intended { intents, commit } = intend(setup, orders, &asking).map_err(one)?;
    for (order, intent) in &intents {
        output.result(&format!("{order}: {}\n", told(intent)));
    }
    let asked = intents.iter().any(|(_, intent)| !matches!(intent, Intent::Already(_)));
    match (commit, propose) {
        (Some(id), None) => output.note(&format!("committed {id} to {}; {}", opened.place(), then(orders))),
        (Some(id), Some(branch)) => {
            output.note(&format!("committed {id} to {} {branch}", opened.repository.name()));
            open_it(branch, then(orders), opened, output);
        }
        (None, Some(branch)) if asked => {
            output.note(&format!("nothing was written: {branch} proposes this already"));
            open_it(branch, then(orders), opened, output);
        }
        (None, _) => output.note("nothing was written"),
    }
    Ok(())
}

/// How the proposal becomes intent.
fn open_it(branch: &str, then: &str, opened: &Opened, output: &mut Output) {
    match pull_request::url(opened.repository.written_at(), &opened.branch, branch) {
        Some(url) => output.result(&format!("open the pull request: {url}\n")),
        None => output.note(&format!("open a pull request from {branch} into {}", opened.branch)),
    }
    output.note(&format!("once it is merged into {}, {then}", opened.branch));
}

/// What comes of it.
fn then(orders: &[(OrderRef, Wish)]) -> &'static str {
    if orders.iter().all(|(_, wish)| matches!(wish, Wish::Withdraw)) {
        "nothing waits any more, and what is deployed stays"
    } else {
        "the next run promotes what passes its gates"
    }
}

fn told(intent: &Intent) -> String {
    match intent {
        Intent::Ask(name) => format!("asks for {name}"),
        Intent::Remove => "asks for nothing any more; its Serving goes".to_owned(),
        Intent::Already(Some(name)) => format!("asks for {name} already"),
        Intent::Already(None) => "asks for nothing already".to_owned(),
    }
}
