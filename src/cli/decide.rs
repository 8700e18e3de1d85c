//! What decides: a plan, a run, the files of one.

use super::format::{PlanFormat, TableFormat};
use super::value::ExpectedPlan;
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// `plan`.
#[derive(Debug, Args)]
pub struct PlanFlags {
    /// How it is printed
    #[arg(short, long, value_enum, default_value_t = PlanFormat::Table)]
    pub output: PlanFormat,
    /// Only what the change between REF and the checkout causes; settings and trust are those of REF
    #[arg(long, value_name = "REF")]
    pub base: Option<String>,
    /// Exit with 5, and the difference, when this is no longer the plan of that fingerprint; `commented`: of the comment
    /// on the pull request, which then stays as it is
    #[arg(long, value_name = "FINGERPRINT", value_parser = ExpectedPlan::parse)]
    pub expect: Option<ExpectedPlan>,
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

/// `run`.
#[derive(Debug, Args)]
pub struct RunFlags {
    /// How it is printed
    #[arg(short, long, value_enum, default_value_t = TableFormat::Table)]
    pub output: TableFormat,
    /// Write nothing: the same as plan
    #[arg(long)]
    pub dry_run: bool,
    /// Exit with 5 when files of ours were edited or removed by hand, or others stand in our folders
    #[arg(long)]
    pub check: bool,
    /// Remove up to N Applications, once
    #[arg(long, value_name = "N")]
    pub allow_removals: Option<usize>,
    /// After the push, write the status of Servings, and Events, to the clusters that Orders come from
    #[arg(long)]
    pub write_status: bool,
}

/// `render`.
#[derive(Debug, Args)]
pub struct RenderFlags {
    /// Folder to write; it must not exist, or be empty
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
    /// Verify nothing: no registry is asked, and gates that need evidence are passed over
    #[arg(long)]
    pub skip_evidence: bool,
}
