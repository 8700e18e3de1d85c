//! Who commits, as the flags say.

use crate::verbs::flags::Common;
use git_commits::identity::Given;

pub(super) fn parse_author(common: &Common) -> Given {
    let author = common.author.as_ref();
    Given { name: author.map(|a| a.name.clone()), email: author.map(|a| a.email.clone()) }
}
