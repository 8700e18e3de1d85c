//! What is there, and why.

use super::format::{ListFormat, TableFormat};
use super::value::{OrderArg, parse_preparation_arg};
use crate::model::id::PreparationName;
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// `snapshot`.
#[derive(Debug, Args)]
pub struct SnapshotFlags {
    /// Folder to write; it must not exist, or be empty
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
}

/// `get`.
#[derive(Debug, Args)]
pub struct Get {
    /// Of which kind
    #[arg(value_name = "KIND", value_enum, default_value_t = ResourceArg::Servings)]
    pub resource: ResourceArg,
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
pub enum ResourceArg {
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
pub struct OpenFlags {
    /// As seen by this person: username or subject of a Kitchen approver [default: anybody]
    #[arg(long = "as", value_name = "USER")]
    pub viewer: Option<String>,
    /// How it is printed
    #[arg(short, long, value_enum, default_value_t = ListFormat::Table)]
    pub output: ListFormat,
}

/// `diff`.
#[derive(Debug, Args)]
pub struct Diff {
    /// NAMESPACE/NAME, or NAME
    #[arg(value_name = "ORDER", value_parser = OrderArg::parse)]
    pub order: OrderArg,
    /// From this Preparation [default: what is deployed]
    #[arg(value_name = "FROM", value_parser = parse_preparation_arg)]
    pub from_preparation: Option<PreparationName>,
    /// To this one [default: what could be promoted, else the newest]
    #[arg(value_name = "TO", value_parser = parse_preparation_arg)]
    pub to_preparation: Option<PreparationName>,
    /// Show known noise, too: labels and annotations that change with every rendering
    #[arg(long)]
    pub all: bool,
}
