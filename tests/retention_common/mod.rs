//! What the tests of retention share: fixtures, and what is expected of them.

#![allow(
    dead_code,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::panic,
    reason = "shared by several tests; a test that cannot go on fails"
)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use polctl::diag::Level;
use polctl::retention::{Version, load};
use polctl::source::{SourceMap, Tree};
use serde::Deserialize;

/// The day on which the fixtures are judged.
pub const TODAY: &str = "2026-01-01";

pub fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// What a set of migrations must give.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expected {
    /// Durable tables that polctl sees.
    pub tables: usize,
    /// `CODE FILE:LINE`, with ` note` behind it where it is one.
    pub findings: Vec<String>,
    /// Tables of the server that polctl says it cannot see.
    #[serde(default)]
    pub hidden: Vec<String>,
    /// Tables that come only when something runs.
    #[serde(default)]
    pub run_time: Vec<String>,
    /// What a template puts in, for the server.
    #[serde(default)]
    pub stands_for: BTreeMap<String, String>,
}

pub fn expected(name: &str) -> Expected {
    let text = std::fs::read_to_string(root().join(format!("fixtures/sql/{name}.yaml"))).unwrap();
    serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Name and directory of each set.
pub fn sets() -> Vec<(String, PathBuf)> {
    let mut sets: Vec<(String, PathBuf)> = std::fs::read_dir(root().join("fixtures/sql"))
        .unwrap()
        .map(|entry| entry.unwrap())
        .filter(|entry| entry.path().is_dir())
        .map(|entry| (entry.file_name().into_string().unwrap(), entry.path()))
        .collect();
    sets.sort();
    sets
}

/// A few statements and what they leave.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    pub name: String,
    pub sql: String,
    #[serde(default)]
    pub tables: Vec<String>,
    #[serde(default)]
    pub unknown: bool,
}

impl Case {
    /// Writes it as a project.
    pub fn write(&self, dir: &Path) {
        std::fs::write(dir.join("retention.yaml"), "polctl: v1\nclasses: {}\n").unwrap();
        std::fs::write(dir.join("schema.sql"), &self.sql).unwrap();
    }
}

pub fn cases() -> Vec<Case> {
    let text = std::fs::read_to_string(root().join("fixtures/sql/cases.yaml")).unwrap();
    serde_saphyr::from_str(&text).unwrap()
}

/// What was found about a tree.
pub struct Judged {
    pub version: Option<Version>,
    pub found: Vec<String>,
    pub map: SourceMap,
}

pub fn judge(tree: &dyn Tree) -> Judged {
    let (mut map, mut findings) = (SourceMap::new(), Vec::new());
    let version = load(tree, "retention.yaml", &mut map, &mut findings).unwrap();
    if let Some(version) = &version {
        findings.extend(version.findings(TODAY));
    }
    let shown = |f: &polctl::diag::Finding| {
        let note = if f.level == Level::Note { " note" } else { "" };
        format!("{} {}{note}", f.code.as_str(), map.line_ref(f.span))
    };
    let found = findings.iter().map(shown).collect();
    Judged { version, found, map }
}

/// Durable tables, `schema.name` or `schema.name = comment`.
pub fn durable(version: &Version) -> Vec<String> {
    let mut all = Vec::new();
    for world in &version.loaded.worlds {
        for (name, (_, relation)) in world.durable() {
            all.push(with_comment(&name, relation.comment.as_ref().map_or("", |(text, _)| text)));
        }
    }
    all.sort();
    all
}

pub fn with_comment(name: &str, comment: &str) -> String {
    if comment.is_empty() { name.to_owned() } else { format!("{name} = {comment}") }
}
