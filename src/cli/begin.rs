//! What begins a repository, and what the command line says of itself.

use super::value::OrderArg;
use crate::model::id::{CommitId, Namespace};
use clap::{Args, ValueEnum};
use std::path::PathBuf;

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
    /// Git URL that CI installs Expedite from, written into its files: pull requests from forks see no variables [default: the variable EXPEDITE_SOURCE]
    #[arg(long, value_name = "URL", requires = "rev")]
    pub source: Option<String>,
    /// The commit of --source
    #[arg(long, value_name = "COMMIT", requires = "source", value_parser = CommitId::parse)]
    pub rev: Option<CommitId>,
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
