//! Verbs and flags as clap types; no behaviour. The flags of every verb, the verbs with their help and examples; what
//! each verb takes besides is in a file of its family.
//!
//! Flags win over environment variables (`EXPEDITE_*`), those over the settings file. An empty variable
//! counts as none: CI leaves them so where a secret is not given.

mod ask;
mod begin;
mod decide;
mod format;
mod prove;
mod show;
mod value;

pub use ask::{Approve, Promote, Propose, Rollback, Withdraw};
pub use begin::{Ci, Completions, Crds, Init, Man, Schema};
pub use decide::{CommentOn, PlanFlags, RenderFlags, RunFlags};
pub use format::{ListFormat, ObjectFormat, PlanFormat, TableFormat};
pub use prove::{Prepare, Test, Verify, VerifyHistory};
pub use show::{Diff, Explain, Get, OpenFlags, ResourceArg, SnapshotFlags};
pub use value::{ArtifactArg, AuthorArg, ExpectedPlan, OrderArg};

use crate::model::environment::Selector;
use crate::model::id::Namespace;
use crate::model::scope::Shard;
use crate::model::time::Time;
use clap::builder::FalseyValueParser;
use clap::{ArgAction, Args, Parser, Subcommand, ValueEnum};

/// The whole command line.
#[derive(Debug, Parser)]
#[command(
    name = "expedite",
    version,
    about = "Promotes rendered manifests through environments, by evidence",
    long_about = "Reads Orders and Preparations, judges each promotion by its gates and its signed evidence, and \
                  commits Argo CD Applications and Servings to a GitOps repository.",
    after_help = STATUSES,
    subcommand_required = true,
    arg_required_else_help = true,
    disable_help_subcommand = true
)]
pub struct Cli {
    /// Flags of every verb.
    #[command(flatten)]
    pub common: Common,
    /// What to do.
    #[command(subcommand)]
    pub verb: Verb,
}

const STATUSES: &str = "\
Exit status:
  0   done (a held promotion is no error)
  1   something failed; the summary says how many of how many
  2   plan --detailed-exitcode: there are changes
  3   stopped by the removal guard
  4   the repository kept moving
  5   an asked check says no (--check, verify, verify-history, a refused promote)
  64  the command line is wrong";

/// Flags of every verb.
#[derive(Debug, Clone, Default, Args)]
pub struct Common {
    /// Folder or file of objects to read, or a snapshot; may be given again [default: the settings, then the GitOps repository]
    #[arg(long, value_name = "PATH", global = true, env = "EXPEDITE_FROM", hide_env_values = true, value_delimiter = ':', help_heading = INPUTS)]
    pub from: Vec<String>,

    /// Read objects and Applications from a cluster: the kubeconfig's current context, or the one around this Pod
    #[arg(long, global = true, env = "EXPEDITE_FROM_CLUSTER", value_parser = FalseyValueParser::new(), help_heading = INPUTS)]
    pub from_cluster: bool,

    /// Read this context of the kubeconfig; may be given again [implies --from-cluster]
    #[arg(long, value_name = "NAME", global = true, env = "EXPEDITE_CONTEXT", hide_env_values = true, value_delimiter = ',', help_heading = INPUTS)]
    pub context: Vec<String>,

    /// The GitOps repository: a bare repository or a checkout [default: the settings, then .]
    #[arg(long, value_name = "PATH|URL", global = true, env = "EXPEDITE_REPO", hide_env_values = true, help_heading = INPUTS)]
    pub repo: Option<String>,

    /// Its branch [default: the settings, then main]
    #[arg(long, value_name = "NAME", global = true, env = "EXPEDITE_BRANCH", hide_env_values = true, help_heading = INPUTS)]
    pub branch: Option<String>,

    /// The settings file [default: expedite.yaml in the GitOps repository]
    #[arg(long, value_name = "FILE", global = true, env = "EXPEDITE_CONFIG", hide_env_values = true, help_heading = INPUTS)]
    pub config: Option<String>,

    /// Ask no registry: only image layout folders and kept verdicts
    #[arg(long, global = true, env = "EXPEDITE_OFFLINE", value_parser = FalseyValueParser::new(), help_heading = INPUTS)]
    pub offline: bool,

    /// Decide as of this instant (RFC 3339)
    #[arg(long, value_name = "TIME", global = true, value_parser = Time::parse, help_heading = INPUTS)]
    pub at: Option<Time>,

    /// Signs the records of promotions: a key file (cosign's, with COSIGN_PASSWORD, or PKCS#8 PEM)
    #[arg(long, value_name = "FILE", global = true, env = "EXPEDITE_KEY", hide_env_values = true, help_heading = SIGN)]
    pub key: Option<String>,

    /// Signs them instead: `COMMAND public-key` and `COMMAND sign`, in front of a KMS
    #[arg(long, value_name = "COMMAND", global = true, env = "EXPEDITE_SIGNER", hide_env_values = true, help_heading = SIGN)]
    pub signer: Option<String>,

    /// Keep no signed records: history is taken at its word, and every plan says so
    #[arg(long, global = true, env = "EXPEDITE_NO_RECORDS", value_parser = FalseyValueParser::new(), help_heading = SIGN)]
    pub no_records: bool,

    /// Who commits [default: GIT_AUTHOR_* and GIT_COMMITTER_*, the settings, git's configuration]
    #[arg(long, value_name = "NAME <EMAIL>", global = true, value_parser = AuthorArg::parse, help_heading = SIGN)]
    pub author: Option<AuthorArg>,

    /// Only Orders in this namespace; may be given again
    #[arg(short, long, value_name = "NAMESPACE", global = true, value_parser = Namespace::parse, value_delimiter = ',', help_heading = SCOPE)]
    pub namespace: Vec<Namespace>,

    /// Only Orders with these labels (as kubectl -l)
    #[arg(short = 'l', long, value_name = "SELECTOR", global = true, value_parser = Selector::parse, help_heading = SCOPE)]
    pub selector: Option<Selector>,

    /// Only this Order; may be given again
    #[arg(long, value_name = "ORDER", global = true, value_parser = OrderArg::parse, value_delimiter = ',', help_heading = SCOPE)]
    pub only: Vec<OrderArg>,

    /// Only part I (from 0) of N [default: JOB_COMPLETION_INDEX of JOB_COMPLETION_COUNT]
    #[arg(long, value_name = "I/N", global = true, value_parser = Shard::parse, help_heading = SCOPE)]
    pub shard: Option<Shard>,

    /// Say errors only
    #[arg(short, long, global = true, conflicts_with = "verbose", help_heading = TALK)]
    pub quiet: bool,

    /// Say more
    #[arg(short, long, global = true, action = ArgAction::Count, help_heading = TALK)]
    pub verbose: u8,

    /// When to colour (NO_COLOR and CLICOLOR_FORCE are honoured)
    #[arg(long, value_name = "WHEN", global = true, value_enum, default_value_t = Colour::Auto, help_heading = TALK)]
    pub color: Colour,

    /// Show no progress on a terminal
    #[arg(long, global = true, help_heading = TALK)]
    pub no_progress: bool,
}

impl Common {
    /// Whether the flags name a cluster to read.
    #[must_use]
    pub fn needs_cluster(&self) -> bool {
        self.list_contexts().next().is_some()
    }

    /// The contexts that the flags name; `None` is the current one, or the cluster around this Pod.
    pub fn list_contexts(&self) -> impl Iterator<Item = Option<&str>> {
        let named = || self.context.iter().map(String::as_str).filter(|context| !context.is_empty());
        let current = self.from_cluster && named().next().is_none();
        named().map(Some).chain(current.then_some(None))
    }
}

const INPUTS: &str = "What is read";
const SCOPE: &str = "What is written (never what is read)";
const SIGN: &str = "Signing";
const TALK: &str = "Output";

/// When to colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Colour {
    /// On a terminal.
    #[default]
    Auto,
    /// Into pipes and files, too.
    Always,
    /// Not at all.
    Never,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Write the first files of a GitOps repository
    #[command(after_help = "\
Examples:
  expedite init                                        in a checkout of the GitOps repository
  expedite init --url https://git.example/shop/gitops.git --registry registry.shop.example:5000
  expedite init --registry registry.shop.example:5000 --order shop/web --trust cosign.pub --key job.key
                                                       an Order and a Kitchen, too: the whole of a first repository
  expedite init --ci gitlab                            .gitlab-ci.yml instead of workflows of GitHub Actions
  expedite init --ci none -q | kubectl apply -f -      only the Secret on stdout")]
    Init(Init),

    /// Show what run would do and why; write nothing anywhere
    #[command(after_help = "\
Examples:
  expedite plan                                        what would move now, and what is held
  expedite plan --only shop/podinfo -o json
  expedite plan --from-cluster --context prod          objects and Applications as they are in a cluster
  expedite plan --detailed-exitcode                    2 when there are changes
  expedite plan -o name                                only the Orders that move, for a pipe
  expedite plan --at 2027-01-04T06:00:00Z              as of then
  expedite plan -o diff --color always | less -R       what changes inside the artifacts
  expedite plan -o markdown --base origin/main         what a pull request causes, for a comment on it
  expedite plan --base origin/main --comment github    and the comment itself, in CI
  expedite plan --expect \"$FINGERPRINT\"                5 when the world has moved since that plan
  expedite plan --base \"$BASE\" --comment github --expect commented    the same, since the comment")]
    Plan(PlanFlags),

    /// Decide, render, commit and push; attach the signed records to the artifacts
    #[command(after_help = "\
Examples:
  expedite run --config fixtures/shop/expedite.yaml
  expedite run --from ./objects --repo ../gitops.git --key job.key
  expedite run --check                                 say no (5) to files that were edited by hand, and show how
  expedite run --check --dry-run                       the same for a pull request: nothing is written
  expedite run --from-cluster --write-status           kubectl get servings shows what is in git
  expedite run --allow-removals 12                     once, after reading the list that stopped it")]
    Run(RunFlags),

    /// Write the files that run would commit into a folder
    #[command(after_help = "\
Examples:
  expedite render ./out
  expedite render ./out --skip-evidence                nothing is verified: for looking at templates only")]
    Render(RenderFlags),

    /// Ask for a Preparation of a Manual Order
    #[command(after_help = "\
Examples:
  expedite promote shop/podinfo podinfo-d7ce0c46a686
  expedite promote podinfo podinfo-d7ce0c46a686 -n shop
  expedite promote shop/podinfo podinfo-d7ce0c46a686 --propose promote/podinfo    for a pull request")]
    Promote(Promote),

    /// Take back a promotion that waits
    #[command(after_help = "\
Examples:
  expedite withdraw shop/podinfo
  expedite withdraw shop/podinfo --propose withdraw/podinfo    for a pull request")]
    Withdraw(Withdraw),

    /// Go back to what was healthy before; nothing is rendered again
    #[command(after_help = "\
Examples:
  expedite rollback shop/podinfo                       the newest other one that was healthy here
  expedite rollback shop/podinfo podinfo-5f3a9d1c0b7e
  expedite rollback -l team=web                        a fleet, in one commit
  expedite rollback --environment production
  expedite rollback --environment production --propose rollback/production    for a pull request")]
    Rollback(Rollback),

    /// Print Orders, Preparations, Servings or a history as kubectl prints tables
    #[command(after_help = "\
Examples:
  expedite get                                         Servings: what runs, and in which state
  expedite get orders -n shop
  expedite get servings -o wide
  expedite get history shop/podinfo
  expedite get orders -l team=web -o name | xargs -n1 expedite explain")]
    Get(Get),

    /// Show every gate of an Order's candidate: what it found, and who has to do what
    #[command(after_help = "\
Examples:
  expedite explain shop/podinfo")]
    Explain(Explain),

    /// List promotions that wait for a person: review, then promote
    #[command(after_help = "\
Examples:
  expedite open                                        what anybody can do something about
  expedite open --as ann                               what Ann can: Review, then Promote
  expedite open -n shop -o json
  expedite open --as ann -o name | xargs -n1 expedite explain")]
    Open(OpenFlags),

    /// Vote on a Preparation: show what it is, sign, write the vote's file
    #[command(after_help = "\
Examples:
  expedite approve shop/podinfo --sign-key ~/.ssh/id_ed25519
  expedite approve shop/podinfo podinfo-d7ce0c46a686 --reject --comment 'loses orders' --sign-key ~/.ssh/id_ed25519
  expedite approve shop/podinfo --sign-key ~/.ssh/id_ed25519.pub    an agent or a security key signs")]
    Approve(Approve),

    /// Make a Preparation of an artifact that a CI pipeline pushed and signed
    #[command(after_help = "\
Its evidence is read first, as a promotion reads it. The same artifact gives the same bytes whenever it is prepared;
a file that is there is never overwritten.

Examples:
  expedite prepare registry.shop.example:5000/shop/web:1.5.0 --order shop/web           prints it
  expedite prepare registry.shop.example:5000/shop/web@sha256:5d41… --order shop/web --into objects/preparations
  expedite prepare … --order shop/web --base-digest sha256:9f86…                        what two stages have in common
  expedite prepare … --order shop/web --repo https://git.shop.example/shop/gitops.git   Order and Kitchen from there
  expedite prepare … --order shop/web -n shop -o name

Exit status: 0 made, or there already; 5 its evidence is missing or invalid, or another file is in its place; 1 something
could not be read.")]
    Prepare(Prepare),

    /// Compare the objects inside two artifacts of an Order; values of Secrets are not shown
    #[command(after_help = "\
Examples:
  expedite diff shop/podinfo                           what is deployed, and what could be promoted
  expedite diff shop/podinfo podinfo-5f3a9d1c0b7e podinfo-d7ce0c46a686
  expedite diff shop/podinfo --color always | less -R")]
    Diff(Diff),

    /// Show the evidence of one artifact, claim by claim; keep it in one file, or verify from one
    #[command(after_help = "\
Examples:
  expedite verify registry.shop.example:5000/shop/catalog@sha256:5d41… --order shop/catalog
  expedite verify registry.shop.example:5000/shop/catalog:1.5.0 --order shop/catalog     the tag is resolved once
  expedite verify registry.shop.example:5000/shop/catalog:1.5.0 --order shop/catalog -o json
  expedite verify … --order shop/catalog --from ./trust                       by the Kitchen of a folder
  expedite verify … --order shop/catalog --save catalog-1.5.0.tar             and keep all that proves it in one file
  expedite verify registry.shop.example:5000/shop/catalog@sha256:5d41… --order shop/catalog --bundle catalog-1.5.0.tar
                                                                             from that file, without a network

Exit status: 0 every required claim is proven, 5 one is missing or invalid, 1 one could not be read.")]
    Verify(Verify),

    /// Write what decisions use of the clusters into a folder, to decide again from it offline
    #[command(after_help = "\
Examples:
  expedite snapshot ./then --from-cluster --context prod
  expedite plan --from ./then                          what was decided, without the cluster")]
    Snapshot(SnapshotFlags),

    /// Judge the past again: every promotion in the history by its record, git and the registry alone
    #[command(after_help = "\
Judged by the keys of today's Kitchen: a retired key that signed records is kept there with the role records,
a stolen one is taken out. 5: there are findings; 1: something could not be read; --offline: git alone.

Examples:
  expedite verify-history                              the whole branch
  expedite verify-history v1.4..                       since a tag
  expedite verify-history 3f2a1bc^!                    one commit
  expedite verify-history --offline -o json")]
    VerifyHistory(VerifyHistory),

    /// Print a script that completes the command line in a shell
    #[command(after_help = "\
Examples:
  expedite completions bash > /etc/bash_completion.d/expedite
  expedite completions zsh > ~/.zfunc/_expedite
  expedite completions fish > ~/.config/fish/completions/expedite.fish")]
    Completions(Completions),

    /// Print the manual page, or write one for every verb into a folder
    #[command(after_help = "\
Examples:
  expedite man | man -l -
  expedite man --dir /usr/local/share/man/man1         expedite.1, expedite-run.1, …")]
    Man(Man),

    /// Print the JSON Schemas of settings, outputs and predicates
    #[command(after_help = "\
Examples:
  expedite schema                                      the names, one a line
  expedite schema plan-v1.json
  expedite schema --dir ./schemas                      all of them")]
    Schema(Schema),

    /// Print the CustomResourceDefinitions of the kinds that are read
    #[command(after_help = "\
Examples:
  expedite crds | kubectl apply --server-side -f -
  expedite crds serving")]
    Crds(Crds),

    /// Play a team's own cases for its gates: objects, instant, evidence, expected verdicts
    #[command(after_help = "\
Examples:
  expedite test ./policy-tests                         every folder with a case.yaml, however deep
  expedite test ./policy-tests/freeze")]
    Test(Test),
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;
    use clap::CommandFactory as _;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn flags_of_every_verb_stand_before_or_after_it() {
        let parse = |text: &str| Cli::try_parse_from(text.split(' ')).unwrap().common;
        let before = parse("expedite -n shop,dev --only shop/a -l team=web --shard 1/2 --from a:b init");
        let after = parse("expedite init -n shop,dev --only shop/a -l team=web --shard 1/2 --from a:b");
        assert_eq!(format!("{before:?}"), format!("{after:?}"));
        assert_eq!(before.namespace.len(), 2);
        assert_eq!(before.from, ["a", "b"]);
    }
}
