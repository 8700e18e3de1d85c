//! How a result is printed.

use clap::ValueEnum;

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
