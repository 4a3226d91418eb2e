//! A permitting rule with a wildcard as program.

use super::View;
use crate::diag::{Code, Finding};
use crate::model::{Matcher, Tier};

pub(super) fn lint(view: &View<'_>, out: &mut Vec<Finding>) {
    for (_, rule) in view.rules() {
        let Matcher::Command { pattern, .. } = &rule.matcher else { continue };
        if pattern.literal_programs().is_none() && rule.tier < Tier::DENY && rule.when.trusted.is_none() {
            let message = format!("`{}` permits programs by a wildcard at tier {}", pattern, rule.tier);
            out.push(
                Finding::new(Code::PROGRAM_WILDCARD, rule.span, message)
                    .help("name the programs: `{cat,head,tail} **`; only a rule of tier 4 may leave them open"),
            );
        }
    }
}
