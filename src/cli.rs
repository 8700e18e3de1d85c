//! Verbs and flags as clap types; no behaviour.
//!
//! Flags win over environment variables (`EXPEDITE_*`), those over the settings file. An empty variable
//! counts as none: CI leaves them so where a secret is not given.

use crate::model::environment::Selector;
use crate::model::id::{
    Digest, EnvironmentName, IdError, Namespace, OciRepository, OrderName, PreparationName,
};
use crate::model::naming::GROUP;
use crate::model::scope::Shard;
use crate::model::time::Time;
use crate::report::fingerprint::Fingerprint;
use crate::report::names;
use clap::builder::FalseyValueParser;
use clap::{ArgAction, Args, Parser, Subcommand, ValueEnum};
use std::fmt;
use std::path::PathBuf;

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
    pub fn reads_cluster(&self) -> bool {
        self.contexts().next().is_some()
    }

    /// The contexts that the flags name; `None` is the current one, or the cluster around this Pod.
    pub fn contexts(&self) -> impl Iterator<Item = Option<&str>> {
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
    Plan(Plan),

    /// Decide, render, commit and push; attach the signed records to the artifacts
    #[command(after_help = "\
Examples:
  expedite run --config fixtures/shop/expedite.yaml
  expedite run --from ./objects --repo ../gitops.git --key job.key
  expedite run --check                                 say no (5) to files that were edited by hand, and show how
  expedite run --check --dry-run                       the same for a pull request: nothing is written
  expedite run --from-cluster --write-status           kubectl get servings shows what is in git
  expedite run --allow-removals 12                     once, after reading the list that stopped it")]
    Run(Run),

    /// Write the files that run would commit into a folder
    #[command(after_help = "\
Examples:
  expedite render ./out
  expedite render ./out --skip-evidence                nothing is verified: for looking at templates only")]
    Render(Render),

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
    Open(Open),

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
    Snapshot(Snapshot),

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

/// `init`.
#[derive(Debug, Args)]
pub struct Init {
    /// URL by which Argo CD reads this repository [default: that of the remote origin]
    #[arg(long, value_name = "URL")]
    pub url: Option<String>,
    /// Registry that the Secret is for: HOST or HOST:PORT
    #[arg(long, value_name = "HOST", default_value = "registry.example.com")]
    pub registry: String,
    /// Write a first Order, NAMESPACE/NAME, too
    #[arg(long, value_name = "ORDER", value_parser = OrderArg::parse)]
    pub order: Option<OrderArg>,
    /// Write a Kitchen that trusts this public key for signatures and provenance, and that of --key for records; may be given again
    #[arg(long, value_name = "FILE.pub")]
    pub trust: Vec<PathBuf>,
    /// Argo CD's namespace
    #[arg(long, value_name = "NAMESPACE", default_value = "argocd", value_parser = Namespace::parse)]
    pub argocd_namespace: Namespace,
    /// Let Argo CD sync servings/, too (needs the Serving CRD in its cluster)
    #[arg(long)]
    pub sync_servings: bool,
    /// The CI workflow to write
    #[arg(long, value_enum, default_value_t = Ci::Github)]
    pub ci: Ci,
}

/// The CI workflow to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Ci {
    /// `.github/workflows/expedite.yml` and, for pull requests, `expedite-preview.yml`.
    Github,
    /// `.gitlab-ci.yml`.
    Gitlab,
    /// None.
    None,
}

/// `plan`.
#[derive(Debug, Args)]
pub struct Plan {
    /// How it is printed
    #[arg(short, long, value_enum, default_value_t = PlanFormat::Table)]
    pub output: PlanFormat,
    /// Only what the change between REF and the checkout causes; settings and trust are those of REF
    #[arg(long, value_name = "REF")]
    pub base: Option<String>,
    /// Exit with 5, and the difference, when this is no longer the plan of that fingerprint; `commented`: of the comment
    /// on the pull request, which then stays as it is
    #[arg(long, value_name = "FINGERPRINT", value_parser = Expected::parse)]
    pub expect: Option<Expected>,
    /// In CI: keep one comment with the plan on the pull request (GITHUB_TOKEN, GITLAB_TOKEN or GITEA_TOKEN)
    #[arg(long, value_name = "FORGE", value_enum)]
    pub comment: Option<CommentOn>,
    /// Exit with 2 when there are changes
    #[arg(long)]
    pub detailed_exitcode: bool,
    /// Remove up to N Applications, once
    #[arg(long, value_name = "N")]
    pub allow_removals: Option<usize>,
}

/// The plan that somebody looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expected {
    /// Of this fingerprint.
    Plan(Fingerprint),
    /// The one in the comment on the pull request.
    Commented,
}

impl Expected {
    /// Parses a fingerprint, or `commented`.
    ///
    /// # Errors
    /// Says what a fingerprint is.
    pub fn parse(text: &str) -> Result<Self, String> {
        match text {
            "commented" => Ok(Self::Commented),
            text => Fingerprint::parse(text).map(Self::Plan),
        }
    }
}

/// The forge that holds the pull request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CommentOn {
    /// GitHub Actions.
    Github,
    /// GitLab CI/CD.
    Gitlab,
    /// Gitea or Forgejo Actions.
    Gitea,
}

/// `completions`.
#[derive(Debug, Args)]
pub struct Completions {
    /// For which shell
    #[arg(value_name = "SHELL", value_enum)]
    pub shell: clap_complete::Shell,
}

/// `man`.
#[derive(Debug, Args)]
pub struct Man {
    /// Write a page for every verb into this folder
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
}

/// `schema`.
#[derive(Debug, Args)]
pub struct Schema {
    /// Which one [default: their names]
    #[arg(value_name = "NAME", conflicts_with = "dir")]
    pub name: Option<String>,
    /// Write all of them into this folder
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
}

/// `crds`.
#[derive(Debug, Args)]
pub struct Crds {
    /// Which one: serving, servings, … [default: all]
    #[arg(value_name = "KIND")]
    pub kind: Option<String>,
}

/// How a plan is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PlanFormat {
    /// For people.
    Table,
    /// With more columns.
    Wide,
    /// Versioned and stable.
    Json,
    /// For a pull request or a step summary.
    Markdown,
    /// Of the Applications' files and of the objects inside the artifacts.
    Diff,
    /// The Orders that move, one a line.
    Name,
}

/// `run`.
#[derive(Debug, Args)]
pub struct Run {
    /// How it is printed
    #[arg(short, long, value_enum, default_value_t = TableFormat::Table)]
    pub output: TableFormat,
    /// Write nothing: the same as plan
    #[arg(long)]
    pub dry_run: bool,
    /// Exit with 5 when files of ours were edited by hand, or others stand in our folders
    #[arg(long)]
    pub check: bool,
    /// Remove up to N Applications, once
    #[arg(long, value_name = "N")]
    pub allow_removals: Option<usize>,
    /// After the push, write the status of Servings, and Events, to the clusters that Orders come from
    #[arg(long)]
    pub write_status: bool,
}

/// How a table is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TableFormat {
    /// For people.
    Table,
    /// With more columns.
    Wide,
    /// Versioned and stable.
    Json,
}

/// How a list of objects is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ListFormat {
    /// For people.
    Table,
    /// With more columns.
    Wide,
    /// Versioned and stable.
    Json,
    /// One object a line, for a pipe.
    Name,
}

/// `render`.
#[derive(Debug, Args)]
pub struct Render {
    /// Folder to write; it must not exist, or be empty
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
    /// Verify nothing: no registry is asked, and gates that need evidence are passed over
    #[arg(long)]
    pub skip_evidence: bool,
}

/// `snapshot`.
#[derive(Debug, Args)]
pub struct Snapshot {
    /// Folder to write; it must not exist, or be empty
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
}

/// `promote`.
#[derive(Debug, Args)]
pub struct Promote {
    /// NAMESPACE/NAME, or NAME
    #[arg(value_name = "ORDER", value_parser = OrderArg::parse)]
    pub order: OrderArg,
    /// The Preparation
    #[arg(value_name = "PREPARATION", value_parser = preparation_arg)]
    pub preparation: PreparationName,
    /// Where it is written
    #[command(flatten)]
    pub written: Propose,
}

/// Where a wish is written.
#[derive(Debug, Clone, Default, Args)]
pub struct Propose {
    /// Write to this branch instead, as one commit on top of the branch, for a pull request
    #[arg(long, value_name = "BRANCH")]
    pub propose: Option<String>,
}

/// `withdraw`.
#[derive(Debug, Args)]
pub struct Withdraw {
    /// NAMESPACE/NAME, or NAME
    #[arg(value_name = "ORDER", value_parser = OrderArg::parse)]
    pub order: OrderArg,
    /// Where it is written
    #[command(flatten)]
    pub written: Propose,
}

/// `rollback`.
#[derive(Debug, Args)]
pub struct Rollback {
    /// NAMESPACE/NAME, or NAME
    #[arg(value_name = "ORDER", value_parser = OrderArg::parse)]
    pub order: Option<OrderArg>,
    /// To this Preparation [default: the newest other one that was healthy here]
    #[arg(value_name = "PREPARATION", value_parser = preparation_arg)]
    pub preparation: Option<PreparationName>,
    /// Every Order of this Environment
    #[arg(long, value_name = "NAME", value_parser = EnvironmentName::parse, conflicts_with = "order")]
    pub environment: Option<EnvironmentName>,
    /// Where it is written
    #[command(flatten)]
    pub written: Propose,
}

/// `get`.
#[derive(Debug, Args)]
pub struct Get {
    /// Of which kind
    #[arg(value_name = "KIND", value_enum, default_value_t = Resource::Servings)]
    pub resource: Resource,
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
pub enum Resource {
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

/// `explain`.
#[derive(Debug, Args)]
pub struct Explain {
    /// NAMESPACE/NAME, or NAME
    #[arg(value_name = "ORDER", value_parser = OrderArg::parse)]
    pub order: OrderArg,
    /// How it is printed
    #[arg(short, long, value_enum, default_value_t = TableFormat::Table)]
    pub output: TableFormat,
}

/// `open`.
#[derive(Debug, Args)]
pub struct Open {
    /// As seen by this person: username or subject of a Kitchen approver [default: anybody]
    #[arg(long = "as", value_name = "USER")]
    pub viewer: Option<String>,
    /// How it is printed
    #[arg(short, long, value_enum, default_value_t = ListFormat::Table)]
    pub output: ListFormat,
}

/// `approve`.
#[derive(Debug, Args)]
pub struct Approve {
    /// NAMESPACE/NAME, or NAME
    #[arg(value_name = "ORDER", value_parser = OrderArg::parse)]
    pub order: OrderArg,
    /// The Preparation [default: what could be promoted, else the newest]
    #[arg(value_name = "PREPARATION", value_parser = preparation_arg)]
    pub preparation: Option<PreparationName>,
    /// Vote against it: a veto
    #[arg(long)]
    pub reject: bool,
    /// Why, for people
    #[arg(long, value_name = "TEXT")]
    pub comment: Option<String>,
    /// SSH key that signs the vote: the private key, or the .pub file of one that an agent holds
    #[arg(long, value_name = "FILE", env = "EXPEDITE_SIGN_KEY", hide_env_values = true)]
    pub sign_key: Option<PathBuf>,
    /// Who votes, where votes are not signed: username or subject of a Kitchen approver
    #[arg(long = "as", value_name = "USER")]
    pub voter: Option<String>,
    /// File to write; - prints it [default: approvals/ in the folder that the Preparation came from]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// `prepare`.
#[derive(Debug, Args)]
pub struct Prepare {
    /// HOST/REPOSITORY@sha256:… or HOST/REPOSITORY:TAG
    #[arg(value_name = "REF", value_parser = ArtifactArg::parse)]
    pub reference: ArtifactArg,
    /// For this Order, NAMESPACE/NAME: its provenance has to name it
    #[arg(long, value_name = "ORDER", value_parser = OrderArg::parse)]
    pub order: OrderArg,
    /// Its name [default: the Order's and the digest's first 12 digits]
    #[arg(long, value_name = "NAME", value_parser = PreparationName::parse)]
    pub name: Option<PreparationName>,
    /// What it was rendered from; signed provenance has to list it [default: the annotation org.opencontainers.image.base.digest]
    #[arg(long, value_name = "DIGEST", value_parser = Digest::parse)]
    pub base_digest: Option<Digest>,
    /// Write FOLDER/NAMESPACE/NAME.yaml, and print its path; nothing where it is among the objects already
    #[arg(long, value_name = "FOLDER")]
    pub into: Option<PathBuf>,
    /// Verify nothing: signature, base and time are your word; run reads the evidence all the same
    #[arg(long)]
    pub skip_evidence: bool,
    /// How it is printed [default: yaml]
    #[arg(short, long, value_enum)]
    pub output: Option<ObjectFormat>,
}

/// How an object is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ObjectFormat {
    /// As a file holds it.
    Yaml,
    /// As kubectl takes it, too.
    Json,
    /// Its kind and name.
    Name,
}

/// `verify`.
#[derive(Debug, Args)]
pub struct Verify {
    /// HOST/REPOSITORY@sha256:… or HOST/REPOSITORY:TAG
    #[arg(value_name = "REF", value_parser = ArtifactArg::parse)]
    pub reference: ArtifactArg,
    /// For this Order, NAMESPACE/NAME: whose provenance, approvals and checks are wanted
    #[arg(long, value_name = "ORDER", value_parser = OrderArg::parse)]
    pub order: OrderArg,
    /// The Preparation whose seal of votes is looked for [default: the Order's one of this digest]
    #[arg(long, value_name = "NAME", value_parser = PreparationName::parse)]
    pub preparation: Option<PreparationName>,
    /// Keep everything that proves it in this file (an OCI image layout in a tar); nothing is kept unless all is proven
    #[arg(long, value_name = "FILE.tar", conflicts_with = "bundle")]
    pub save: Option<PathBuf>,
    /// Replace the file of --save if it is there
    #[arg(long, requires = "save")]
    pub overwrite: bool,
    /// Verify from a file that --save made: no registry is asked, and your own Kitchen judges
    #[arg(long, value_name = "FILE.tar")]
    pub bundle: Option<PathBuf>,
    /// Judge by the keys inside the file: that says that it is whole, not that anybody you trust signed it
    #[arg(long, requires = "bundle")]
    pub bundled_trust: bool,
    /// How it is printed
    #[arg(short, long, value_enum, default_value_t = TableFormat::Table)]
    pub output: TableFormat,
}

/// `verify-history`.
#[derive(Debug, Args)]
pub struct VerifyHistory {
    /// As git log takes it: A..B, A.., REV^! or REV [default: the whole branch]
    #[arg(value_name = "RANGE")]
    pub range: Option<String>,
    /// How it is printed
    #[arg(short, long, value_enum, default_value_t = TableFormat::Table)]
    pub output: TableFormat,
}

/// `test`.
#[derive(Debug, Args)]
pub struct Test {
    /// Folder of cases
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
}

/// `diff`.
#[derive(Debug, Args)]
pub struct Diff {
    /// NAMESPACE/NAME, or NAME
    #[arg(value_name = "ORDER", value_parser = OrderArg::parse)]
    pub order: OrderArg,
    /// From this Preparation [default: what is deployed]
    #[arg(value_name = "FROM", value_parser = preparation_arg)]
    pub from_preparation: Option<PreparationName>,
    /// To this one [default: what could be promoted, else the newest]
    #[arg(value_name = "TO", value_parser = preparation_arg)]
    pub to_preparation: Option<PreparationName>,
    /// Show known noise, too: labels and annotations that change with every rendering
    #[arg(long)]
    pub all: bool,
}

/// An Order (or another namespaced object) as a person names it: `NAMESPACE/NAME`, or `NAME` where `-n`
/// or the objects leave one namespace for it; either may stand behind its kind, as `-o name` prints it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrderArg {
    /// Where it is, if said.
    pub namespace: Option<Namespace>,
    /// Its name.
    pub name: OrderName,
}

impl OrderArg {
    /// Parses `NAMESPACE/NAME` or `NAME`.
    ///
    /// # Errors
    /// Quotes the text and says the rule.
    pub fn parse(text: &str) -> Result<Self, IdError> {
        let text = without_kind(text);
        match text.split_once('/') {
            Some((namespace, name)) => {
                Ok(Self { namespace: Some(Namespace::parse(namespace)?), name: OrderName::parse(name)? })
            }
            None => Ok(Self { namespace: None, name: OrderName::parse(text)? }),
        }
    }
}

/// What stands behind the kind that `-o name` writes. A namespace has no dot, so nothing is taken for two things.
fn without_kind(text: &str) -> &str {
    let behind =
        |kind: &&str| text.strip_prefix(*kind)?.strip_prefix('.')?.strip_prefix(GROUP)?.strip_prefix('/');
    [names::ORDER, names::PREPARATION, names::SERVING].iter().find_map(behind).unwrap_or(text)
}

/// A Preparation as a person names it, or as `-o name` prints it beside one `-n`: its namespace is the Order's.
///
/// # Errors
/// Says the rule.
fn preparation_arg(text: &str) -> Result<PreparationName, IdError> {
    PreparationName::parse(without_kind(text))
}

/// An artifact as a person names it: `[oci://]HOST/REPOSITORY`, then `:TAG`, `@sha256:…`, or both (the digest
/// counts).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArtifactArg {
    /// Where it is.
    pub repository: OciRepository,
    /// Its tag, if said.
    pub tag: Option<String>,
    /// Its digest, if said.
    pub digest: Option<Digest>,
}

impl ArtifactArg {
    /// Parses a reference with a digest or a tag; nothing stands in for either.
    ///
    /// # Errors
    /// Says the rule.
    pub fn parse(text: &str) -> Result<Self, IdError> {
        let bare = text.strip_prefix("oci://").unwrap_or(text);
        let (place, digest) = match bare.split_once('@') {
            Some((place, digest)) => (place, Some(Digest::parse(digest)?)),
            None => (bare, None),
        };
        let path = place.find('/').unwrap_or(place.len());
        let (place, tag) = match place[path..].split_once(':') {
            Some((head, tag)) => (&place[..path + head.len()], Some(tag.to_owned())),
            None => (place, None),
        };
        let repository = OciRepository::parse(place)?;
        let is_tag = |tag: &String| {
            let first = tag.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
            first && tag.len() <= 128 && tag.bytes().all(|b| b.is_ascii_alphanumeric() || b"_.-".contains(&b))
        };
        match (&tag, digest) {
            (Some(tag), _) if !is_tag(tag) => Err(IdError(format!(
                "{tag:?} is no tag: letters, digits, '_', '.' and '-', at most 128, not beginning with '.' or '-'"
            ))),
            (None, None) => Err(IdError(
                "it names neither a digest nor a tag: write …@sha256:<64 hex digits> or …:<tag>".into(),
            )),
            (Some(_), _) | (None, Some(_)) => Ok(Self { repository, tag, digest }),
        }
    }
}

/// Who commits, as git writes it: `NAME <EMAIL>`.
///
/// ```
/// use expedite::cli::AuthorArg;
/// let ann = AuthorArg::parse("Ann <ann@shop.example>").unwrap();
/// assert_eq!((ann.name.as_str(), ann.email.as_str()), ("Ann", "ann@shop.example"));
/// assert!(AuthorArg::parse("Ann").is_err());
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuthorArg {
    /// For people.
    pub name: String,
    /// Between `<` and `>`.
    pub email: String,
}

impl AuthorArg {
    /// Parses `NAME <EMAIL>`.
    ///
    /// # Errors
    /// Either is empty, or the form is another one.
    pub fn parse(text: &str) -> Result<Self, String> {
        let parts = text.trim().strip_suffix('>').and_then(|rest| rest.split_once('<'));
        let parts = parts.map(|(name, email)| (name.trim(), email.trim()));
        match parts {
            Some((name, email)) if !name.is_empty() && !email.is_empty() && !email.contains(['<', '>']) => {
                Ok(Self { name: name.to_owned(), email: email.to_owned() })
            }
            Some(_) | None => Err("wanted 'NAME <EMAIL>', both of them".to_owned()),
        }
    }
}

impl fmt::Display for OrderArg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.namespace {
            Some(namespace) => write!(f, "{namespace}/{}", self.name),
            None => write!(f, "{}", self.name),
        }
    }
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

    #[test]
    fn an_artifact_is_named_by_digest_or_tag() {
        let hex = "0".repeat(64);
        let parse = |text: &str| {
            ArtifactArg::parse(text).map(|a| (a.repository.to_string(), a.tag, a.digest.is_some()))
        };
        let repository = || "r.example:5000/shop/a".to_owned();
        assert_eq!(parse("r.example:5000/shop/a:1.5").unwrap(), (repository(), Some("1.5".into()), false));
        assert_eq!(
            parse(&format!("oci://r.example:5000/shop/a@sha256:{hex}")).unwrap(),
            (repository(), None, true)
        );
        assert_eq!(
            parse(&format!("r.example:5000/shop/a:v1@sha256:{hex}")).unwrap(),
            (repository(), Some("v1".into()), true)
        );
        for bad in [
            "",
            "a",
            "shop/a:v1",
            "r.example:5000/shop/a",
            "r.example/a:",
            "r.example/a:-x",
            "r.example/a:b:c",
            "r.example/a@sha256:00",
            "r.example/a@v1",
            "r.example/a:x/y",
            "r.example/A:v1",
        ] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn an_order_is_named_with_or_without_its_namespace() {
        assert_eq!(OrderArg::parse("shop/podinfo").unwrap().to_string(), "shop/podinfo");
        assert_eq!(OrderArg::parse("podinfo").unwrap().namespace, None);
        for bad in ["", "/", "a/", "/a", "a/b/c", "A", "order.example/a/b", "order.delivery.kokumi.dev/"] {
            assert!(OrderArg::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn what_o_name_prints_is_taken_back() {
        let shop = Namespace::parse("shop").unwrap();
        for kind in [names::ORDER, names::PREPARATION, names::SERVING] {
            let back = |asked: &[Namespace]| {
                let line = names::line(kind, &shop, "a.b", asked);
                OrderArg::parse(line.trim_end()).unwrap().to_string()
            };
            assert_eq!((back(&[]), back(std::slice::from_ref(&shop))), ("shop/a.b".into(), "a.b".into()));
        }
        assert_eq!(
            OrderArg::parse("order/web").unwrap().to_string(),
            "order/web",
            "a namespace called order"
        );
        assert_eq!(OrderArg::parse("order.delivery.kokumi.dev").unwrap().namespace, None);
        assert_eq!(preparation_arg("preparation.delivery.kokumi.dev/a-1").unwrap().as_str(), "a-1");
        assert!(preparation_arg("preparation.delivery.kokumi.dev/shop/a-1").is_err());
    }
}
