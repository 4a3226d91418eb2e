//! Free arguments to a program that gives a shell or writes any file, under elevated rights
//! (DESIGN 3.5).

use std::collections::BTreeSet;

use super::View;
use crate::diag::{Code, Finding};
use crate::model::{CommandPattern, Escape, Glob, Item, Matcher, Rule, Surface, Tier, escapes, is_interactive};

pub(super) fn lint(view: &View<'_>, out: &mut Vec<Finding>) {
    for (_, rule) in view.rules().filter(|(_, rule)| rule.surface == Surface::Sudo && rule.tier < Tier::DENY) {
        let Matcher::Command { pattern, only, .. } = &rule.matcher else { continue };
        match pattern.programs.iter().filter_map(Glob::as_literal).find(|p| is_interactive(p)) {
            Some(program) => out.push(interactive(rule, program)),
            None => escaping(rule, pattern, only.as_deref(), out),
        }
    }
}

fn interactive(rule: &Rule, program: &str) -> Finding {
    let message = format!("`{program}` gives a shell by itself, and under elevated rights that is root");
    Finding::new(Code::SUDO_ESCAPE, rule.span, message)
        .help("print files with a program that only prints, edit copies, or put the rule at tier 4")
}

fn escaping(rule: &Rule, pattern: &CommandPattern, only: Option<&[Item]>, out: &mut Vec<Finding>) {
    let is_open = |globs: &Vec<Glob>| globs.iter().any(|g| g.as_literal().is_none());
    if !pattern.rest && !pattern.words.iter().any(is_open) {
        return;
    }
    let mut told = BTreeSet::new();
    for program in pattern.programs.iter().filter_map(Glob::as_literal) {
        for escape in escapes(program) {
            if reaches(pattern, escape) && !excluded(only, escape) && told.insert(program) {
                let message =
                    format!("`{program}` with free arguments under elevated rights is root: `{}`", escape.how);
                out.push(
                    Finding::new(Code::SUDO_ESCAPE, rule.span, message)
                        .help("write the exact arguments without `*` and `**`, or put the rule at tier 4"),
                );
            }
        }
    }
}

/// Whether the pattern's first word may be one for which the escape holds.
fn reaches(pattern: &CommandPattern, escape: &Escape<'_>) -> bool {
    let meets = |globs: &Vec<Glob>| globs.iter().any(|g| escape.sub_commands.iter().any(|sub| g.matches(sub)));
    escape.sub_commands.is_empty() || pattern.words.first().is_none_or(meets)
}

/// Whether `only` leaves every option out that the escape needs.
fn excluded(only: Option<&[Item]>, escape: &Escape<'_>) -> bool {
    let lists = |items: &[Item], option: &str| items.iter().any(|item| item.to_string() == option);
    !escape.options.is_empty() && only.is_some_and(|items| escape.options.iter().all(|option| !lists(items, option)))
}
