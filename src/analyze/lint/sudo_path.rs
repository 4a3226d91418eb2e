//! A wildcard in a path of a sudo rule (DESIGN 3.5).

use super::View;
use crate::diag::{Code, Finding};
use crate::model::{Glob, Matcher, Piece, Surface, Tier};

pub(super) fn lint(view: &View<'_>, out: &mut Vec<Finding>) {
    for (_, rule) in view.rules().filter(|(_, rule)| rule.surface == Surface::Sudo && rule.tier < Tier::DENY) {
        let Matcher::Command { pattern, .. } = &rule.matcher else { continue };
        if let Some(glob) = pattern.words.iter().flatten().find(|glob| is_open_path(glob)) {
            let message = format!("`{glob}` leaves a path open under elevated rights");
            out.push(
                Finding::new(Code::SUDO_PATH_WILDCARD, rule.span, message).help(
                    "name the files, one rule or `{a,b}` for each: a wildcard also matches `..` and follows links",
                ),
            );
        }
    }
}

fn is_open_path(glob: &Glob) -> bool {
    let is_path = |piece: &Piece| matches!(piece, Piece::Text(text) if text.contains('/') || text.starts_with('~'));
    glob.as_literal().is_none() && glob.pieces().iter().any(is_path)
}
