//! `promote`, `withdraw` and `rollback`: a person's wish, judged and committed as intent.

use crate::cli::{Common, OrderArg, Promote, Rollback, Withdraw};
use crate::cmd::one;
use crate::cmd::setup::{self, Access, Opened, Outside};
use crate::decide::intent::{Intent, Wish};
use crate::error::{Failure, Kind};
use crate::model::id::OrderRef;
use crate::report::Output;
use crate::run::intend::{Intended, intend};
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
    named(common, &args.order, &wish, outside, output)
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
    named(common, &args.order, &Wish::Withdraw, outside, output)
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
        return named(common, order, &wish, outside, output);
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
    ask(&orders, &opened, &setup, output)
}

fn named(
    common: &Common,
    order: &OrderArg,
    wish: &Wish,
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
    ask(&[(order, wish.clone())], &opened, &setup, output)
}

fn ask(
    orders: &[(OrderRef, Wish)],
    opened: &Opened,
    setup: &Setup<'_>,
    output: &mut Output,
) -> Result<(), Vec<Failure>> {
    let tries = opened.settings.limits.max_tries;
    let Intended { intents, commit } = intend(setup, orders, &opened.identity(), tries).map_err(one)?;
    for (order, intent) in &intents {
        output.result(&format!("{order}: {}\n", told(intent)));
    }
    match commit {
        Some(id) => output.note(&format!(
            "committed {id} to {}; the next run promotes what passes its gates",
            opened.place()
        )),
        None => output.note("nothing was written"),
    }
    Ok(())
}

fn told(intent: &Intent) -> String {
    match intent {
        Intent::Ask(name) => format!("asks for {name}"),
        Intent::Remove => "asks for nothing any more; its Serving goes".to_owned(),
        Intent::Already(Some(name)) => format!("asks for {name} already"),
        Intent::Already(None) => "asks for nothing already".to_owned(),
    }
}
