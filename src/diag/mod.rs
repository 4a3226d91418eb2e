//! Findings: what polctl has to say about its input.
//!
//! Owns the finding type, its severity, the registry of codes, and the counts of a comparison. A finding always has a
//! primary location, so no report can leave the reader without a line to look at. This
//! module knows nothing of how findings are found or shown.

mod codes;
mod rules;

pub use codes::{CODES, Code, CodeInfo, Kind, info};
pub use rules::RuleCounts;

use crate::source::Span;

/// How serious a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// Worth knowing; nothing wrong.
    Note,
    /// Shown; fails only with `--deny warnings`.
    Warning,
    /// Fails the run (DESIGN 9).
    Error,
}

impl Level {
    /// The word used in every output format.
    pub const fn as_str(self) -> &'static str {
        match self {
            Level::Note => "note",
            Level::Warning => "warning",
            Level::Error => "error",
        }
    }
}

/// A second place that helps to understand a finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Related {
    /// Where.
    pub span: Span,
    /// What stands there, in a few words.
    pub label: String,
}

/// What a comparison found, in a form that machines can use. See DESIGN 6.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Evidence {
    /// `commands`, `sudo`, `egress` or `configuration`.
    pub surface: String,
    /// The rungs (tiers) at which the decision differs, ascending. Empty for configuration.
    pub rungs: Vec<u8>,
    /// The witness as a person would type it.
    pub witness: String,
    /// What the witness assumes beyond its text (`inputs come from outside the session`).
    pub assumes: Vec<String>,
    /// Options of `polctl explain` under which it decides the witness again; `None` where the
    /// witness is a request that no line was found for.
    pub replay: Option<Vec<String>>,
    /// Lowest tier that the old version allows for the witness; `None`: denied at every tier.
    pub old_tier: Option<u8>,
    /// The same for the new version.
    pub new_tier: Option<u8>,
    /// For plain Cedar: the request, as JSON that `cedar authorize` reads, and its entities.
    pub request: Option<CedarRequest>,
}

/// A request to Cedar with the entities that it is decided with, as the JSON that `cedar
/// authorize` reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CedarRequest {
    /// `{"principal": …, "action": …, "resource": …, "context": {…}}`
    pub request: serde_json::Value,
    /// A list of entities.
    pub entities: serde_json::Value,
    /// The request environments in which something is newly permitted: the types of principal
    /// and resource with the action between them.
    pub environments: Vec<String>,
}

/// A piece of policy before and after a change, as places in the texts of the two versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TextChange {
    /// Where it stood in the old version; `None`: it is new.
    pub old: Option<Span>,
    /// Where it stands in the new version; `None`: it is gone.
    pub new: Option<Span>,
}

/// One finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The code, from the registry.
    pub code: Code,
    /// Its level, after configuration has had its say.
    pub level: Level,
    /// One sentence, lower case, no full stop; what the user wrote in backticks.
    pub message: String,
    /// How to put it right.
    pub help: Option<String>,
    /// Where.
    pub span: Span,
    /// A few words at the primary location; empty when the message says it all.
    pub label: String,
    /// Other places.
    pub related: Vec<Related>,
    /// For comparisons: the witness and both decisions.
    pub evidence: Option<Evidence>,
    /// For comparisons: the text that changed with it.
    pub texts: Vec<TextChange>,
}

impl Finding {
    /// A finding of `code` at `span`, with the code's own level.
    pub fn new(code: Code, span: Span, message: impl Into<String>) -> Self {
        Finding {
            code,
            level: info(code).level,
            message: message.into(),
            help: None,
            span,
            label: String::new(),
            related: Vec::new(),
            evidence: None,
            texts: Vec::new(),
        }
    }

    /// Adds the line that says how to put it right.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Adds a few words at the primary location.
    #[must_use]
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = label.into();
        self
    }

    /// Adds a second place.
    #[must_use]
    pub fn related(mut self, span: Span, label: impl Into<String>) -> Self {
        self.related.push(Related { span, label: label.into() });
        self
    }

    /// Adds what a comparison found.
    #[must_use]
    pub fn evidence(mut self, evidence: Evidence) -> Self {
        self.evidence = Some(evidence);
        self
    }
}

/// Sorts findings the one way every format shows them: by file, position and code.
pub fn sort(findings: &mut [Finding]) {
    findings.sort_by(|a, b| {
        (a.span.file, a.span.start, a.span.end, a.code, &a.message).cmp(&(
            b.span.file,
            b.span.start,
            b.span.end,
            b.code,
            &b.message,
        ))
    });
}
