//! The flags of every verb; no behaviour.
//!
//! Flags win over environment variables (`EXPEDITE_*`), those over the settings file. An empty variable
//! counts as none: CI leaves them so where a secret is not given.

use crate::model::environment::Selector;
use crate::model::id::Namespace;
use crate::model::scope::Shard;
use crate::model::time::Time;
use crate::verbs::values::{AuthorArg, OrderArg};
use clap::builder::FalseyValueParser;
use clap::{ArgAction, Args, ValueEnum};

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
