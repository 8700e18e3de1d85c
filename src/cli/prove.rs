//! What is proven: of artifacts, of the past, of a team's own cases.

use super::format::{ObjectFormat, TableFormat};
use super::value::{ArtifactArg, OrderArg};
use crate::model::id::{Digest, PreparationName};
use clap::Args;
use std::path::PathBuf;

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
