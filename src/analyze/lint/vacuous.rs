//! Hand-written guardrails that can never hold for a request, and so guard nothing.
//!
//! Only those that are conditions which the exact engine reads; of the others it says nothing.

use std::collections::BTreeMap;

use super::View;
use super::stopped::undecided;
use crate::analyze::exact::{Bound, Outcome};
use crate::compile::{Effect, Expr, Origin, Policy};
use crate::diag::{Code, Finding};

pub(super) fn lint(view: &View<'_>, out: &mut Vec<Finding>) {
    let mut of: BTreeMap<usize, Vec<&Policy>> = BTreeMap::new();
    for policy in &view.compiled.policies {
        let unread = |index| view.compiled.opaque.iter().any(|(_, opaque)| *opaque == index);
        if let (Origin::Guardrail(index), Effect::Forbid) = (policy.origin, policy.effect)
            && !unread(index)
        {
            of.entry(index).or_default().push(policy);
        }
    }
    for (index, policies) in of {
        let Some(guardrail) = view.compiled.guardrails.get(index) else { continue };
        match can_hold(view, &policies) {
            Some(true) => {}
            Some(false) => out.push(
                Finding::new(
                    Code::VACUOUS_GUARDRAIL,
                    guardrail.span,
                    format!("`{}` can never hold for a request, so it guards nothing", guardrail.id),
                )
                .help("its conditions exclude each other, or name what no request has: correct them, or remove it"),
            ),
            None => out.push(undecided(guardrail.span, &format!("`{}` can hold for a request", guardrail.id))),
        }
    }
}

/// Whether one of them holds for some request; `None` where that was not found out.
fn can_hold(view: &View<'_>, policies: &[&Policy]) -> Option<bool> {
    let mut answer = Some(false);
    for policy in policies {
        let require: Vec<&Expr> = policy.clauses.iter().collect();
        match view.space(policy.surface).find(&require, &[], Bound::USUAL) {
            Outcome::Found(_) => return Some(true),
            Outcome::Empty => {}
            Outcome::Bound => answer = None,
        }
    }
    answer
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Set, codes};
    use crate::compile::{Atom, Expr, SetAttr};
    use crate::model::Glob;

    fn guarded(clauses: Vec<Expr>) -> Vec<&'static str> {
        codes(&Set::new().map("a.md", "commands", "## Tier 0\n- `ls **`").forbid(clauses, 0..4).lint())
    }

    #[test]
    fn conditions_that_exclude_each_other_guard_nothing() {
        let program = |name: &str| Expr::from(Atom::Program(vec![Glob::literal(name)]));
        let option = |name: &str| Expr::from(Atom::HasAny(SetAttr::Options, vec![name.into()]));
        assert_eq!(guarded(vec![program("a"), program("b")]), ["vacuous-guardrail"]);
        assert_eq!(guarded(vec![Expr::FALSE]), ["vacuous-guardrail"]);
        assert_eq!(guarded(vec![program("a"), option("-f"), Atom::CountIs(0).into()]), ["vacuous-guardrail"]);
        assert_eq!(guarded(vec![program("a"), option("-f")]), [""; 0]);
    }
}
