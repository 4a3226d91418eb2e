//! The debt of an old project: findings that were there when polctl came, each with an owner and
//! a day by which it is paid.

use super::fold::Problem;
use crate::diag::{Code, Finding, Level};
use crate::model::BaselineEntry;

/// Codes of findings that a baseline may hold: what an old project cannot put right in a day.
pub const OWED: [Code; 4] =
    [Code::RETENTION_UNCLASSIFIED, Code::RETENTION_CLASS, Code::RETENTION_UNKNOWN, Code::RETENTION_AUDIT];

fn may_be_owed(problem: &Problem) -> bool {
    OWED.contains(&problem.finding.code) && !problem.subject.is_empty()
}

/// Turns findings that the baseline holds into notes, and says which entries count no longer.
pub(super) fn apply(problems: &mut [Problem], entries: &[BaselineEntry], today: &str) -> Vec<Finding> {
    let mut found = Vec::new();
    for entry in entries {
        let same =
            |p: &&mut Problem| may_be_owed(p) && p.finding.code.as_str() == entry.finding && p.subject == entry.subject;
        let mut owed: Vec<&mut Problem> = problems.iter_mut().filter(same).collect();
        if owed.is_empty() {
            let message = format!("`{}` on `{}` is owed no longer", entry.finding, entry.subject);
            let help = "remove the entry, so that it hides nothing later: `polctl retention --baseline` takes out what is paid";
            found.push(Finding::new(Code::RETENTION_BASELINE, entry.span, message).help(help));
        } else if entry.expires.as_str() < today {
            let message = format!(
                "`{}` on `{}` was to be put right by {} ({})",
                entry.finding, entry.subject, entry.owner, entry.expires
            );
            found.push(
                Finding::new(Code::RETENTION_BASELINE, entry.span, message)
                    .help("put it right; the finding itself fails again, too"),
            );
        } else {
            for problem in &mut owed {
                problem.finding.level = Level::Note;
                problem.finding.message.push_str(&format!(" (owed by {} until {})", entry.owner, entry.expires));
            }
        }
    }
    found
}

/// The text of a baseline with all that is owed; `None` where nothing is.
///
/// With `kept` (the entries of a baseline that is there) only what is in it stays: it shrinks.
pub(super) fn text(problems: &[Problem], kept: Option<&[BaselineEntry]>, owner: &str, expires: &str) -> Option<String> {
    let mut lines: Vec<String> = Vec::new();
    for problem in problems.iter().filter(|p| may_be_owed(p)) {
        let (finding, subject) = (problem.finding.code.as_str(), problem.subject.as_str());
        let (owner, expires) = match kept {
            None => (owner, expires),
            Some(kept) => match kept.iter().find(|e| e.finding == finding && e.subject == subject) {
                Some(entry) => (entry.owner.as_str(), entry.expires.as_str()),
                None => continue,
            },
        };
        let quoted = |text: &str| format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""));
        lines.push(format!(
            "  - {{ finding: {finding}, subject: {}, owner: {}, expires: {} }}\n",
            quoted(subject),
            quoted(owner),
            quoted(expires)
        ));
    }
    lines.sort();
    lines.dedup();
    let head = "# Findings of `polctl retention` that were there when it came. This list only ever shrinks.\npolctl: v1\ndebt:\n";
    (!lines.is_empty()).then(|| head.to_owned() + &lines.concat())
}
