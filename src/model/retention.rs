//! `retention.yaml`, validated: classes, where migrations lie, tables that are classified beside
//! them (DESIGN 8).

use std::collections::BTreeMap;

use super::SqlName;
use crate::source::{FileId, Span};

/// How long rows are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Period {
    /// This many hours; a month counts 30 days, a year 365.
    Hours(u64),
    /// For ever.
    Forever,
}

impl Period {
    /// Reads `7y`, `18mo`, `2w`, `90d`, `12h` or `forever`.
    pub fn parse(text: &str) -> Option<Period> {
        if text == "forever" {
            return Some(Period::Forever);
        }
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        let (number, unit) = text.split_at_checked(digits)?;
        let hours = match unit {
            "h" => 1,
            "d" => 24,
            "w" => 24 * 7,
            "mo" => 24 * 30,
            "y" => 24 * 365,
            _ => return None,
        };
        let number: u64 = number.parse().ok().filter(|n| (1..=10_000).contains(n))?;
        Some(Period::Hours(number * hours))
    }
}

/// A retention class.
#[derive(Clone, Debug)]
pub struct RetentionClass {
    /// Where its name stands.
    pub span: Span,
    /// How long.
    pub period: Period,
    /// The period as written.
    pub written: String,
    /// Where the period stands.
    pub period_span: Span,
    /// The job that prunes.
    pub prune: Option<(String, Span)>,
    /// Whether its tables are audit trails.
    pub audit: bool,
    /// Whether its tables hold personal data.
    pub personal: bool,
}

/// A migration tool, by the order and the marks that it uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tool {
    /// Files with a leading number.
    Numbered,
    /// Numbered, with `-- +goose Up` and `Down`.
    Goose,
    /// Numbered, with `-- migrate:up` and `down`.
    Dbmate,
    /// `meta/_journal.json` says which and in which order.
    Drizzle,
    /// A directory for each, with a `migration.sql`.
    Prisma,
    /// `V1_2__name.sql`, then `R__name.sql`.
    Flyway,
    /// `20240101_name.up.sql` and `.down.sql`, or without `.up`.
    Sqlx,
    /// One file that holds everything.
    Schema,
}

impl Tool {
    /// Every tool, with its name in `retention.yaml`.
    pub const ALL: [(&'static str, Tool); 8] = [
        ("numbered", Tool::Numbered),
        ("goose", Tool::Goose),
        ("dbmate", Tool::Dbmate),
        ("drizzle", Tool::Drizzle),
        ("prisma", Tool::Prisma),
        ("flyway", Tool::Flyway),
        ("sqlx", Tool::Sqlx),
        ("schema", Tool::Schema),
    ];

    /// The tool of this name.
    pub fn from_name(name: &str) -> Option<Tool> {
        Tool::ALL.iter().find(|(n, _)| *n == name).map(|(_, tool)| *tool)
    }

    /// Its name in `retention.yaml`.
    pub fn name(self) -> &'static str {
        Tool::ALL.iter().find(|(_, tool)| *tool == self).map_or("", |(name, _)| name)
    }
}

/// A place with migrations.
#[derive(Clone, Debug)]
pub struct MigrationSource {
    /// Directory, or for [`Tool::Schema`] a file, relative to the directory of `retention.yaml`'s tree.
    pub path: String,
    /// How they are ordered.
    pub tool: Tool,
    /// The database that they are applied to; empty: the only one.
    pub database: String,
    /// Where names without a schema go.
    pub schema: String,
    /// Where the entry stands.
    pub span: Span,
}

/// A table in a database.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TableRef {
    /// The database; empty: the only one.
    pub database: String,
    /// The table; `*` in it stands for any characters.
    pub name: SqlName,
}

/// A table that is classified in `retention.yaml`.
#[derive(Clone, Debug)]
pub struct TableEntry {
    /// The table.
    pub table: TableRef,
    /// Its class.
    pub class: String,
    /// Where the table's name stands.
    pub span: Span,
    /// Where the class stands.
    pub class_span: Span,
}

/// Where the jobs are listed that somebody watches.
#[derive(Clone, Debug)]
pub enum HealthFloor {
    /// Nowhere.
    None,
    /// In `retention.yaml` itself.
    Here(Vec<String>),
    /// In a file of its own.
    File(String, Span),
}

/// The whole file.
#[derive(Clone, Debug)]
pub struct RetentionConfig {
    /// `retention.yaml` itself.
    pub file: FileId,
    /// Where migrations lie; empty: they are looked for.
    pub sources: Vec<MigrationSource>,
    /// The classes, by name.
    pub classes: BTreeMap<String, RetentionClass>,
    /// Tables that are classified here.
    pub tables: Vec<TableEntry>,
    /// The jobs that are watched.
    pub health_floor: HealthFloor,
    /// Path of the baseline.
    pub baseline: String,
}

/// An entry of the baseline: a finding that is known and not yet paid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BaselineEntry {
    /// Code of the finding.
    pub finding: String,
    /// What it is about: a table, a class, or a statement.
    pub subject: String,
    /// Who pays it.
    pub owner: String,
    /// Until when, `YYYY-MM-DD`.
    pub expires: String,
    /// Where the entry stands.
    pub span: Span,
}
