//! Rendering: one file per output format.
//!
//! Takes findings as they are; never drops, re-grades or orders them anew. Renders into text,
//! so that printing stays in `cli`.

mod explain;
mod human;
mod json;

pub use explain::{ExplainedLine, ExplainedPart, ExplainedReason, explain_human, explain_json};
pub use human::human;
pub use json::json;

use crate::diag::{Code, Finding, Level};

/// Everything that a run has to say.
#[derive(Debug)]
pub struct Report {
    /// The command, `check` or `diff`.
    pub command: &'static str,
    /// What was compared, as shown to people; `None` without a comparison.
    pub compared: Option<(String, String)>,
    /// `policy_id` of the old and the new version, where they could be compiled.
    pub policy_ids: (Option<String>, Option<String>),
    /// All findings, sorted.
    pub findings: Vec<Finding>,
    /// The exit code that follows from them (DESIGN 9).
    pub exit_code: u8,
}

/// How many findings there are of each kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Level error.
    pub errors: usize,
    /// Level warning.
    pub warnings: usize,
    /// Widenings, of rules and configuration.
    pub widenings: usize,
    /// Those of them that an approval lets pass.
    pub approved: usize,
    /// Narrowings.
    pub narrowings: usize,
}

impl Report {
    /// Counts the findings.
    pub fn summary(&self) -> Summary {
        let count = |test: &dyn Fn(&Finding) -> bool| self.findings.iter().filter(|f| test(f)).count();
        let widens = |f: &Finding| matches!(f.code, Code::WIDENING | Code::CONFIG_WIDENING | Code::CAPABILITY_WIDENING);
        Summary {
            errors: count(&|f| f.level == Level::Error),
            warnings: count(&|f| f.level == Level::Warning),
            widenings: count(&widens),
            approved: count(&|f| widens(f) && f.level == Level::Note),
            narrowings: count(&|f| f.code == Code::NARROWING),
        }
    }
}
