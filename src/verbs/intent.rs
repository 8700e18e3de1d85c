//! `promote`, `withdraw` and `rollback`: a person's wish, judged and committed as intent.

mod commit;
pub mod promote;
pub mod rollback;
pub mod withdraw;

use crate::error::Failure;
use crate::model::id::OrderRef;
use crate::policy::decide::intent::{Intent, Wish};
use crate::report::{Output, pull_request};
use crate::run::{self, Setup};
use crate::verbs::flags::Common;
use crate::verbs::setup;
use crate::verbs::setup::{Access, Opened, Outside, wrap_failure};
use crate::verbs::values::OrderArg;
use clap::Args;
use commit::{Asking, Intended, commit_intent};

/// Where a wish is written.
#[derive(Debug, Clone, Default, Args)]
pub struct Propose {
    /// Write to this branch instead, as one commit on top of the branch, for a pull request
    #[arg(long, value_name = "BRANCH")]
    pub propose: Option<String>,
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
