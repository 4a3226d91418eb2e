//! Whether forbids stop every request that has some properties: the question behind several
//! lints, asked lazily of the exact engine.

use super::View;
use crate::analyze::exact::{Bound, Outcome, Space};
use crate::compile::{Expr, Origin, Policy};
use crate::diag::{Code, Finding};
use crate::model::Request;
use crate::source::Span;

/// Most rounds of one question; each adds at least one forbid.
const MAX_ROUNDS: usize = 1_000;

/// The answer.
pub(super) enum Stopped<'a> {
    /// A request comes through.
    No,
    /// All are stopped, by these; by none where there is no such request at all.
    By(Vec<&'a Policy>),
    /// The search reached its bound.
    Unknown,
}

/// Asks whether every request for which all of `require` hold is stopped by a forbid that
/// `against` names for it. Guardrails are named before rules: what they stop alone, they stop.
pub(super) fn stopped<'a>(
    space: &Space<'_>,
    require: &[&Expr],
    against: &dyn Fn(&Request) -> Vec<&'a Policy>,
) -> Stopped<'a> {
    let mut exclude: Vec<&[Expr]> = Vec::new();
    let mut by: Vec<&Policy> = Vec::new();
    for _ in 0..MAX_ROUNDS {
        match space.find(require, &exclude, Bound::USUAL) {
            Outcome::Empty => return Stopped::By(by),
            Outcome::Bound => return Stopped::Unknown,
            Outcome::Found(request) => {
                let mut forbids = against(&request);
                if forbids.is_empty() {
                    return Stopped::No;
                }
                let is_rule = |p: &&Policy| matches!(p.origin, Origin::Rule(_));
                if !forbids.iter().all(is_rule) {
                    forbids.retain(|p| !is_rule(p));
                }
                exclude.extend(forbids.iter().map(|forbid| forbid.clauses.as_slice()));
                by.extend(forbids);
            }
        }
    }
    Stopped::Unknown
}

/// The finding where there is no answer.
pub(super) fn undecided(span: Span, what: &str) -> Finding {
    Finding::new(Code::INCONCLUSIVE, span, format!("it could not be decided whether {what}"))
        .help("split it into simpler ones")
}

/// The places of what stops something: rules once each, guardrails in words.
pub(super) fn related(view: &View<'_>, mut finding: Finding, by: &[&Policy]) -> Finding {
    let mut seen = std::collections::BTreeSet::new();
    for policy in by {
        let (label, span) = view.compiled.rule_of(policy).map_or_else(
            || {
                let (name, span) = view.guardrail(policy);
                (format!("{name} stops it, or a part of it"), span)
            },
            |rule| (format!("tier {} of the {} map", rule.tier, rule.surface), Some(rule.span)),
        );
        if let Some(span) = span.filter(|span| seen.insert(*span)) {
            finding = finding.related(span, label);
        }
    }
    finding
}
