//! What a change takes away from retention: two versions, table by table and class by class.

use std::collections::BTreeMap;

use super::rules::Classified;
use super::{Loaded, Version};
use crate::diag::{Code, Finding};
use crate::model::{Period, RetentionClass};
use crate::source::Span;

/// Findings about what is weaker in the new version. `fallback` is where they stand when nothing
/// of the new version is left to point at.
pub(super) fn compare(old: &Version, new: &Version, fallback: Span) -> Vec<Finding> {
    let mut compare = Compare { old: &old.loaded, new: &new.loaded, fallback, found: Vec::new() };
    compare.classes();
    compare.tables(&old.tables, &new.tables);
    compare.baseline();
    compare.found
}

struct Compare<'a> {
    old: &'a Loaded,
    new: &'a Loaded,
    fallback: Span,
    found: Vec<Finding>,
}

impl Compare<'_> {
    fn push(&mut self, span: Span, message: String, before: Span, help: &str) {
        let finding = Finding::new(Code::RETENTION_WEAKENED, span, message).related(before, "before").help(help);
        self.found.push(finding);
    }

    /// Classes by themselves: what becomes of every table that has them.
    fn classes(&mut self) {
        let (old, new) = (self.old, self.new);
        for (name, was) in &old.config.classes {
            let Some(is) = new.config.classes.get(name) else {
                let message = format!("the class `{name}` (`{}`) is no longer declared", was.written);
                self.push(
                    self.fallback,
                    message,
                    was.span,
                    "bring it back; a class without tables is removed in a change of its own that says so",
                );
                continue;
            };
            for reason in weaker(was, is) {
                self.push(
                    is.period_span,
                    format!("the class `{name}` is weaker than before: {reason}"),
                    was.period_span,
                    HELP,
                );
            }
        }
    }

    /// Tables that went to another class, or went away.
    fn tables(&mut self, old: &BTreeMap<String, Classified>, new: &BTreeMap<String, Classified>) {
        for (name, was) in old {
            let Some(class) = self.old.config.classes.get(&was.class) else { continue };
            let Some(now) = self.name_now(name) else {
                if class.audit {
                    let message =
                        format!("the audit table `{name}` is gone, and its rows with it (class `{}`)", was.class);
                    self.push(self.fallback, message, was.span, "keep it until its rows have expired, or move them to another audit table and say so in the review");
                }
                continue;
            };
            let Some(is) = new.get(&now) else {
                // It has no class any more: that is a finding by itself.
                continue;
            };
            let Some(to) = self.new.config.classes.get(&is.class).filter(|_| is.class != was.class) else { continue };
            for reason in weaker(class, to) {
                let message = format!("`{now}` goes from the class `{}` to `{}`: {reason}", was.class, is.class);
                self.push(is.span, message, was.span, HELP);
            }
        }
    }

    /// What a table of the old version is called in the new one.
    fn name_now(&self, name: &str) -> Option<String> {
        let worlds = || self.new.worlds.iter();
        if worlds().any(|world| world.durable().contains_key(name)) {
            return Some(name.to_owned());
        }
        worlds().find_map(|world| {
            let durable = world.durable();
            let renamed = durable
                .into_iter()
                .find(|(_, (_, relation))| relation.was.iter().any(|was| format!("{}{was}", world.prefix) == name));
            renamed.map(|(now, _)| now)
        })
    }

    /// The baseline may only shrink.
    fn baseline(&mut self) {
        let (old, new) = (&self.old.baseline, &self.new.baseline);
        let Some(old) = old else { return };
        for entry in new.iter().flatten() {
            let before = old.iter().find(|e| e.finding == entry.finding && e.subject == entry.subject);
            match before {
                None => {
                    let message = format!("the baseline grows: `{}` on `{}` is new", entry.finding, entry.subject);
                    let finding = Finding::new(Code::RETENTION_BASELINE, entry.span, message);
                    self.found.push(
                        finding
                            .help("put the table right instead; the baseline is for what was there when polctl came"),
                    );
                }
                Some(before) if entry.expires > before.expires => {
                    let message = format!(
                        "`{}` on `{}` was owed until {} and is now owed until {}",
                        entry.finding, entry.subject, before.expires, entry.expires
                    );
                    let finding =
                        Finding::new(Code::RETENTION_BASELINE, entry.span, message).related(before.span, "before");
                    self.found.push(finding.help("pay it, or bring the date back"));
                }
                Some(_) => {}
            }
        }
    }
}

const HELP: &str = "take it back; where it is meant, the reviewer must see it as what it is, in a change of its own";

/// In which ways one class keeps less of what must be kept, or more of what must go.
fn weaker(was: &RetentionClass, is: &RetentionClass) -> Vec<String> {
    let mut reasons = Vec::new();
    if was.audit && !is.audit {
        reasons.push("it is no audit class any more".to_owned());
    }
    if was.personal && !is.personal {
        reasons.push("it is no class for personal data any more".to_owned());
    }
    if was.audit && is.period < was.period {
        reasons.push(format!("audit rows are kept for `{}` instead of `{}`", is.written, was.written));
    }
    if (was.personal || is.personal) && is.period > was.period {
        reasons.push(format!("personal data is kept for `{}` instead of `{}`", is.written, was.written));
    }
    if let (Period::Hours(_), Some((job, _)), None) = (is.period, &was.prune, &is.prune) {
        reasons.push(format!("the job `{job}` no longer prunes it"));
    }
    reasons
}
