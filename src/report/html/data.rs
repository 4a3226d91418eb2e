//! What the page shows, as plain data: no type here knows how it was found out.

use crate::diag::{Finding, Level};
use crate::report::Report;
use crate::report::summary::is_open;
use crate::source::Span;

/// Everything on the page.
#[derive(Debug)]
pub struct Page {
    /// Name of the policy set.
    pub set: String,
    /// Findings and verdict, with what was compared.
    pub report: Report,
    /// `policy_id` of the version that is shown.
    pub policy_id: Option<String>,
    /// The surfaces with their rules, in the order of every output.
    pub surfaces: Vec<SurfaceView>,
    /// Capability manifests, in order of path.
    pub subjects: Vec<SubjectView>,
    /// Zones, lists and guardrails.
    pub settings: Vec<SettingView>,
    /// The history of a range, when one was asked for.
    pub history: Option<HistoryView>,
}

impl Page {
    pub(super) fn rules(&self) -> impl Iterator<Item = &RuleView> {
        self.surfaces.iter().flat_map(|surface| &surface.rules)
    }
}

/// A surface of tier maps.
#[derive(Debug)]
pub struct SurfaceView {
    /// `commands`, `sudo` or `egress`.
    pub name: &'static str,
    /// Tier of what no rule matches.
    pub unmatched: u8,
    /// Where the surface is declared.
    pub span: Span,
    /// What the enforcement point does at each tier, from 0.
    pub effects: Vec<&'static str>,
    /// All rules, in the order of their files.
    pub rules: Vec<RuleView>,
}

/// A rule.
#[derive(Debug)]
pub struct RuleView {
    /// Its tier.
    pub tier: u8,
    /// The pattern, as written by polctl.
    pub pattern: String,
    /// `with`, `only`, `when` and so on, each with its values.
    pub conditions: Vec<(&'static str, String)>,
    /// The reason that the author gave; may be empty.
    pub why: String,
    /// Where its pattern stands.
    pub span: Span,
    /// Its examples, and whether it must match them.
    pub examples: Vec<(String, bool)>,
    /// Whether some example of the set is a request that it matches.
    pub covered: bool,
    /// For a rule that no example covers: a plain request that it matches.
    pub instance: Option<Instance>,
}

/// A request, and what Cedar decides on it.
#[derive(Debug)]
pub struct Instance {
    /// As a person would type it.
    pub line: String,
    /// What it assumes beyond its text.
    pub assumes: Vec<String>,
    /// The lowest tier that allows it; `None`: denied.
    pub tier: Option<u8>,
}

/// A capability manifest.
#[derive(Debug)]
pub struct SubjectView {
    /// `image desktop`.
    pub name: String,
    /// The manifest that it must stay within.
    pub parent: Option<String>,
    /// Where the subject is named.
    pub span: Span,
    /// Entries and grants.
    pub entries: Vec<EntryView>,
}

/// An entry of a manifest, or a grant.
#[derive(Debug)]
pub struct EntryView {
    /// `net.egress`, or `email:send` for a grant.
    pub name: String,
    /// The risk tier of an entry; `None` for a grant, whose text says its level.
    pub tier: Option<&'static str>,
    /// Where it stands; its text is shown as it was written.
    pub span: Span,
}

/// A part of the configuration.
#[derive(Debug)]
pub struct SettingView {
    /// `zone workspace`.
    pub name: String,
    /// Its values.
    pub values: Vec<String>,
    /// Where it stands; `None` where it is built in.
    pub span: Option<Span>,
}

/// A range of commits.
#[derive(Debug)]
pub struct HistoryView {
    /// As it was asked for.
    pub range: String,
    /// How many commits it has.
    pub commits: usize,
    /// Those that changed what is read as policy, the oldest first.
    pub steps: Vec<Step>,
}

impl HistoryView {
    /// Commits of which it is not known what they permit.
    pub fn gaps(&self) -> usize {
        self.steps.iter().filter(|step| step.is_gap()).count()
    }
}

/// A commit that changed the policy.
#[derive(Debug)]
pub struct Step {
    /// The start of its id.
    pub id: String,
    /// `2026-03-01`, in UTC.
    pub date: String,
    /// Its author.
    pub author: String,
    /// The first line of its message.
    pub subject: String,
    /// The commit that it was compared with, where that is not its parent.
    pub against: Option<String>,
    /// What it did.
    pub outcome: StepOutcome,
}

impl Step {
    /// Whether the commit leaves open what it permits.
    pub fn is_gap(&self) -> bool {
        match &self.outcome {
            StepOutcome::Compared(findings) => findings.iter().any(|f| is_open(f) && f.level == Level::Error),
            StepOutcome::NotCompared(_) => true,
            StepOutcome::First { .. } | StepOutcome::Malformed { .. } | StepOutcome::Absent => false,
        }
    }
}

/// What became of the policy in a commit.
#[derive(Debug)]
pub enum StepOutcome {
    /// The first policy: there is nothing to compare with.
    First {
        /// How many rules it has.
        rules: usize,
    },
    /// Widenings, narrowings and open questions against the commit before.
    Compared(Vec<Finding>),
    /// It cannot be read as policy; the next one that can is compared with the last one before.
    Malformed {
        /// What is wrong with its text.
        findings: Vec<Finding>,
        /// Why it could not be read at all.
        reason: Option<String>,
    },
    /// There is no policy any more.
    Absent,
    /// Old and new could not be compared at all; why.
    NotCompared(String),
}
