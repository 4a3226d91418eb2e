//! Lists in which one rule beats another by its place → rows of which the strictest decides.

use super::rows;
use super::text::TextPattern;
use super::{Imported, Loss, Row};
use crate::model::{CommandPattern, Matcher, Surface, Tier};
use crate::source::Span;

/// What a rule does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Effect {
    Allow,
    Ask,
    Deny,
}

impl Effect {
    /// What becomes of a line that no row matches, when this is what the source does with it.
    pub(super) const fn unmatched(self) -> Tier {
        match self {
            Effect::Allow | Effect::Ask => Tier::UNMATCHED,
            Effect::Deny => Tier::DENY,
        }
    }
}

/// A rule about commands.
pub(super) struct Ruling {
    pub(super) pattern: TextPattern,
    pub(super) effect: Effect,
    pub(super) span: Span,
    /// It cannot be said as an allowance, for this reason.
    pub(super) unsaid: Option<String>,
}

/// Adds the rows for rules, the strongest first; `default` is what becomes of all others.
pub(super) fn commands(rulings: &[Ruling], default: (Effect, Span), out: &mut Imported) {
    let last = rulings.iter().position(|ruling| ruling.pattern.is_everything() && ruling.unsaid.is_none());
    let (default, span) = last.and_then(|at| rulings.get(at)).map_or(default, |ruling| (ruling.effect, ruling.span));
    let live = rulings.get(..last.unwrap_or(rulings.len())).unwrap_or_default();
    for dead in last.and_then(|at| rulings.get(at + 1..)).unwrap_or_default() {
        out.note(dead.span, Loss::Told, "it never applies: a stronger rule is about every command");
    }
    let unmatched = default.unmatched();
    if default == Effect::Allow {
        out.note(span, Loss::Narrower, "what no rule matches is asked about; the source lets it run");
    }
    out.map(Surface::Commands, unmatched);
    let mut allowed: Vec<(usize, CommandPattern)> = Vec::new();
    for (index, ruling) in live.iter().enumerate().filter(|(_, ruling)| ruling.effect == Effect::Allow) {
        let row = match &ruling.unsaid {
            Some(why) => Err(why.clone()),
            None => ruling.pattern.permit(ruling.span, &mut out.notes),
        };
        if let Ok(Row { matcher: Matcher::Command { pattern, .. }, .. }) = &row {
            allowed.push((index, pattern.clone()));
        }
        out.take(Surface::Commands, unmatched, ruling.span, row);
    }
    for (index, ruling) in live.iter().enumerate().filter(|(_, ruling)| ruling.effect != Effect::Allow) {
        let weaker = live.get(index + 1..).unwrap_or_default().iter().filter(|other| other.effect < ruling.effect);
        if ruling.effect.unmatched() == unmatched
            && !weaker.clone().any(|other| touches(&ruling.pattern, &other.pattern))
        {
            // It does what is done anyway, and keeps nothing in check. To say it would take from
            // what a stronger rule allows.
            continue;
        }
        let own = restricting(ruling, unmatched, out);
        for row in own {
            let stronger = allowed.iter().filter(|(at, _)| *at < index);
            if stronger.clone().any(|(_, pattern)| covered(&row, pattern)) {
                out.note(ruling.span, Loss::Told, "it never applies: a stronger rule allows all of it");
                continue;
            }
            for (at, _) in stronger.filter(|(_, pattern)| meets(&row, pattern)) {
                if let Some(other) = live.get(*at) {
                    let text = "a weaker rule of the source restricts a part of it; here the stricter one decides";
                    out.note(other.span, Loss::Narrower, text);
                }
            }
            out.map(Surface::Commands, unmatched).rows.push(row);
        }
    }
}

/// Whether two patterns may be about one program.
fn touches(a: &TextPattern, b: &TextPattern) -> bool {
    match (a.program(), b.program()) {
        (Some(a), Some(b)) => a.rsplit('/').next() == b.rsplit('/').next(),
        _ => true,
    }
}

fn restricting(ruling: &Ruling, unmatched: Tier, out: &mut Imported) -> Vec<Row> {
    let programs = out.allowed_programs();
    if ruling.effect == Effect::Deny || unmatched == Tier::UNMATCHED {
        let tier = if ruling.effect == Effect::Deny { Tier::DENY } else { Tier::UNMATCHED };
        return ruling.pattern.restrict(tier, ruling.span, &programs, &mut out.notes);
    }
    // To be asked is more than to be denied, so it must not grow.
    match ruling.pattern.words_of_permit() {
        Ok((pattern, false)) if ruling.unsaid.is_none() => {
            let row = rows::permit(pattern, ruling.span, &mut out.notes);
            row.map(|row| Row { tier: Tier::UNMATCHED, ..row }).into_iter().collect()
        }
        _ => {
            out.note(ruling.span, Loss::Broader, "it denies, since our patterns cannot say what it asks about");
            ruling.pattern.restrict(Tier::DENY, ruling.span, &programs, &mut out.notes)
        }
    }
}

fn pattern(row: &Row) -> Option<(&CommandPattern, bool)> {
    match &row.matcher {
        Matcher::Command { pattern, with, .. } => Some((pattern, with.is_empty())),
        Matcher::Egress { .. } => None,
    }
}

/// Whether all that a restriction reaches is allowed by a stronger rule.
fn covered(row: &Row, allowed: &CommandPattern) -> bool {
    pattern(row).is_some_and(|(own, _)| {
        let same = own == allowed;
        same || allowed.rest && rows::prefix(allowed, own)
    })
}

/// Whether both may be about one command.
fn meets(row: &Row, allowed: &CommandPattern) -> bool {
    pattern(row).is_some_and(|(own, _)| {
        own.programs.iter().any(|a| allowed.programs.iter().any(|b| a.is_within(b) || b.is_within(a)))
    })
}
