//! Text → model and findings.
//!
//! Reads `polctl.yaml`, tier maps and guardrail files. Never stops at the first problem of a
//! file, never drops anything in silence, and never judges what a rule permits: that is the
//! analysis' business. Nothing here knows Cedar.

mod attributes;
mod command_pattern;
mod config;
mod egress_pattern;
mod manifest;
mod set;
mod shell;
mod text;
mod tier_map;
mod words;
pub(crate) mod yaml;

pub use config::unverified_envelope_name;
pub(crate) use egress_pattern::parse_url;
pub use manifest::capability_request;
pub use set::{CONFIG_NAME, load, parse_manifest};
pub use shell::{
    Assignment, Doubt, Evaluated, MAX_LINE, MAX_NESTING, Node, Redirect, Scope, Script, ShellWord, Simple, Value,
    parse_line, quoted,
};

use similar::get_close_matches;

use crate::diag::Finding;

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
