//! Rendering: one file per output format.
//!
//! Takes findings as they are; never drops or re-grades one. What people read is grouped, and a
//! comment that would be too long says what it leaves out. Renders into text, so that printing
//! stays in `cli`.

mod census;
mod explain;
mod github;
mod groups;
mod html;
mod human;
mod inert;
mod json;
mod markdown;
mod pages;
mod places;
mod sarif;
mod summary;
mod text;

pub use census::{
    Census, CensusCounts, CensusCredential, CensusFinding, CensusPlace, census_heartbeat, census_human, census_json,
    census_metrics,
};
pub use explain::{ExplainedLine, ExplainedPart, ExplainedReason, explain_human, explain_json};
pub use github::github;
pub use html::{
    EntryView, HistoryView, Instance, Page, RuleView, SettingView, Step, StepOutcome, SubjectView, SurfaceView,
    headline, html,
};
pub use human::human;
pub use json::json;
pub use markdown::{MAX_COMMENT_BYTES, markdown};
pub use pages::rules_page;
pub use places::Places;
pub use sarif::sarif;
pub use summary::Summary;

use crate::diag::{Finding, RuleCounts};

/// Everything that a run has to say.
#[derive(Debug)]
pub struct Report {
    /// The command, `check` or `diff`.
    pub command: &'static str,
    /// What was compared, as shown to people; `None` without a comparison.
    pub compared: Option<(String, String)>,
    /// `policy_id` of the old and the new version, where they could be compiled.
    pub policy_ids: (Option<String>, Option<String>),
    /// What became of the rules; `None` where no two sets were compared.
    pub rules: Option<RuleCounts>,
    /// All findings, sorted.
    pub findings: Vec<Finding>,
    /// The exit code that follows from them (DESIGN 9).
    pub exit_code: u8,
}

impl Report {
    /// Counts the findings.
    pub fn summary(&self) -> Summary {
        Summary::of(&self.findings)
    }
}
