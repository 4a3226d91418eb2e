//! A restricting rule that looks for an option in one place only.

use super::View;
use crate::diag::{Code, Finding};
use crate::model::{Matcher, Piece, Tier};

pub(super) fn lint(view: &View<'_>, out: &mut Vec<Finding>) {
    for (_, rule) in view.rules() {
        let Matcher::Command { pattern, .. } = &rule.matcher else { continue };
        if rule.tier < Tier::UNMATCHED || !pattern.rest {
            continue;
        }
        let mut globs = pattern.words.iter().flatten();
        let option = globs.find(|g| matches!(g.pieces().first(), Some(Piece::Text(t)) if t.starts_with('-')));
        if let Some(option) = option {
            let message = format!("`{option}` restricts only where it stands at this place");
            out.push(
                Finding::new(Code::POSITIONAL_OPTION, rule.span, message).help(format!(
                    "write the pattern without it, and ``with: `{option}` ``: options may stand anywhere"
                )),
            );
        }
    }
}
