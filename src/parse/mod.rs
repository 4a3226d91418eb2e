//! Text → model and findings.
//!
//! Reads `polctl.yaml`, tier maps and guardrail files. Never stops at the first problem of a
//! file, never drops anything in silence, and never judges what a rule permits: that is the
//! analysis' business. Nothing here knows Cedar.

mod attributes;
mod command_pattern;
mod config;
mod credentials;
mod egress_pattern;
mod manifest;
mod retention;
mod set;
mod shell;
mod sql;
mod text;
mod tier_map;
mod words;
pub(crate) mod yaml;

pub use config::{retention_path, unverified_envelope_name};
pub use credentials::parse_inventory;
pub(crate) use egress_pattern::parse_url;
pub use manifest::capability_request;
pub use retention::{BASELINE_NAME, RETENTION_NAME, is_date, parse_baseline, parse_health_floor, parse_retention};
pub use set::{CONFIG_NAME, load, parse_manifest};
pub use shell::{
    Assignment, Doubt, Evaluated, MAX_LINE, MAX_NESTING, Node, Redirect, Scope, Script, ShellWord, Simple, Value,
    parse_line, quoted,
};

pub(crate) use sql::class_in as class_in_comment;
pub use sql::parse_sql;

use similar::get_close_matches;

use crate::diag::Finding;
use crate::source::{FileId, SourceMap};

/// Where parsers put what they find.
pub(crate) type Sink = Vec<Finding>;

/// The known name nearest to a misspelt one, as the end of a help line.
fn nearest(name: &str, known: &[&str]) -> String {
    let lower = name.to_lowercase();
    match get_close_matches(lower.as_str(), known, 1, 0.6).first() {
        Some(best) => format!("did you mean `{best}`? "),
        None => String::new(),
    }
}

/// `a`, `b` and `c` as a list in backticks.
fn listed(names: &[&str]) -> String {
    names.iter().map(|n| format!("`{n}`")).collect::<Vec<_>>().join(", ")
}

/// The same, for stages behind this one.
pub(crate) fn nearest_name(name: &str, known: &[&str]) -> String {
    nearest(name, known)
}

/// Decodes a file and adds it to the source map; `None` after findings about what people could
/// not see in it.
pub(crate) fn decode_text(
    map: &mut SourceMap,
    sink: &mut Sink,
    name: &str,
    origin: Option<&str>,
    bytes: &[u8],
) -> Option<FileId> {
    let (id, readable) = text::decode(map, sink, name, origin, bytes);
    readable.then_some(id)
}
