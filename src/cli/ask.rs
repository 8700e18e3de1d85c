//! What people ask for: promotions, and votes on them.

use super::value::{OrderArg, parse_preparation_arg};
use crate::model::id::{EnvironmentName, PreparationName};
use clap::Args;
use std::path::PathBuf;

/// `promote`.
#[derive(Debug, Args)]
pub struct Promote {
    /// NAMESPACE/NAME, or NAME
    #[arg(value_name = "ORDER", value_parser = OrderArg::parse)]
    pub order: OrderArg,
    /// The Preparation
    #[arg(value_name = "PREPARATION", value_parser = parse_preparation_arg)]
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
    #[arg(value_name = "PREPARATION", value_parser = parse_preparation_arg)]
    pub preparation: Option<PreparationName>,
    /// Every Order of this Environment
    #[arg(long, value_name = "NAME", value_parser = EnvironmentName::parse, conflicts_with = "order")]
    pub environment: Option<EnvironmentName>,
    /// Where it is written
    #[command(flatten)]
    pub written: Propose,
}

/// `approve`.
#[derive(Debug, Args)]
pub struct Approve {
    /// NAMESPACE/NAME, or NAME
    #[arg(value_name = "ORDER", value_parser = OrderArg::parse)]
    pub order: OrderArg,
    /// The Preparation [default: what could be promoted, else the newest]
    #[arg(value_name = "PREPARATION", value_parser = parse_preparation_arg)]
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
