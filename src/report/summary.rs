//! The counts of a run, and the one line that says them.

use super::Report;
use crate::diag::{Code, Finding, Kind, Level, info};

/// How many findings there are of each kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Level error.
    pub errors: usize,
    /// Level warning.
    pub warnings: usize,
    /// Widenings, of rules, manifests and configuration.
    pub widenings: usize,
    /// Those of them that an approval lets pass.
    pub approved: usize,
    /// Narrowings.
    pub narrowings: usize,
    /// Questions that polctl could not answer.
    pub open: usize,
}

/// Whether a finding says that more is permitted than before.
pub(super) fn widens(finding: &Finding) -> bool {
    matches!(finding.code, Code::WIDENING | Code::CONFIG_WIDENING | Code::CAPABILITY_WIDENING)
}

/// Whether a finding is a question without an answer.
pub(super) fn is_open(finding: &Finding) -> bool {
    info(finding.code).kind == Kind::Inconclusive
}

impl Summary {
    pub(super) fn of(findings: &[Finding]) -> Summary {
        let count = |test: &dyn Fn(&Finding) -> bool| findings.iter().filter(|f| test(f)).count();
        Summary {
            errors: count(&|f| f.level == Level::Error),
            warnings: count(&|f| f.level == Level::Warning),
            widenings: count(&widens),
            approved: count(&|f| widens(f) && f.level == Level::Note),
            narrowings: count(&|f| f.code == Code::NARROWING),
            open: count(&is_open),
        }
    }
}

pub(super) fn plural(n: usize, one: &str) -> String {
    match n {
        0 => format!("no {one}s"),
        1 => format!("1 {one}"),
        n => format!("{n} {one}s"),
    }
}

/// `2 widenings (1 approved), 5 narrowings`.
pub(super) fn changes(summary: &Summary) -> String {
    let approved = if summary.approved > 0 { format!(" ({} approved)", summary.approved) } else { String::new() };
    let (widenings, narrowings) = (plural(summary.widenings, "widening"), plural(summary.narrowings, "narrowing"));
    format!("{widenings}{approved}, {narrowings}")
}

/// The first line of a comparison: `2 widenings, 5 narrowings, 31 rules unchanged in meaning`.
/// `None` where nothing was compared.
pub(super) fn sentence(report: &Report) -> Option<String> {
    report.compared.as_ref()?;
    let summary = report.summary();
    let mut parts = vec![changes(&summary)];
    if summary.open > 0 {
        parts.push(plural(summary.open, "open question"));
    }
    if let Some(rules) = report.rules.filter(|rules| rules.unchanged + rules.fresh + rules.gone > 0) {
        let how = if rules.same_configuration { "in meaning" } else { "in themselves, under another configuration" };
        let mut text = format!("{} unchanged {how}", plural(rules.unchanged, "rule"));
        let only: Vec<String> = [(rules.reworded, "reworded"), (rules.moved, "moved")]
            .into_iter()
            .filter(|(n, _)| *n > 0)
            .map(|(n, what)| format!("{n} {what}"))
            .collect();
        if !only.is_empty() {
            text.push_str(&format!(" ({})", only.join(", ")));
        }
        parts.push(text);
    }
    Some(parts.join(", "))
}

/// What an exit code says, in words.
pub(super) const fn verdict(exit_code: u8) -> &'static str {
    match exit_code {
        0 => "ok",
        1 => "failed",
        2 => "malformed input, no verdict",
        3 => "inconclusive, which is no pass",
        _ => "refused",
    }
}
