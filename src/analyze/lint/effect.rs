//! Rules without effect: those that match nothing, that stricter rules wholly cover, or whose
//! permission a guardrail always stops.

use super::View;
use super::stopped::{Stopped, related, stopped, undecided};
use crate::compile::{Atom, Effect, Expr, Origin, Policy};
use crate::diag::{Code, Finding};
use crate::model::{Facts, RUNGS, Request, Rule, Surface};

pub(super) fn lint(view: &View<'_>, out: &mut Vec<Finding>) {
    for (index, rule) in view.rules() {
        let restricting = || view.of_rule(index).iter().copied().find(|p| p.effect == Effect::Forbid);
        let Some(policy) = view.permit_of(index, rule).or_else(restricting) else { continue };
        out.extend(judge(view, (index, rule), policy));
    }
}

fn judge(view: &View<'_>, (index, rule): (usize, &Rule), policy: &Policy) -> Option<Finding> {
    let permits = policy.effect == Effect::Permit;
    let rung = rule.tier.number().min(RUNGS - 1);
    let forbids = |facts: &Facts| if permits { view.forbids(rule.surface, facts, rung) } else { Vec::new() };
    if view.sample(index, rule).is_some_and(|facts| policy.holds(facts) && forbids(facts).is_empty()) {
        return None;
    }
    let against = |request: &Request| forbids(&request.facts(view.zones));
    // A restricting rule that only an unknown word could meet restricts nothing that one can name.
    let known = Expr::from(Atom::AllKnown);
    let mut require: Vec<&Expr> = policy.clauses.iter().collect();
    if !permits && rule.surface != Surface::Egress {
        require.push(&known);
    }
    match stopped(&view.space(rule.surface), &require, &against) {
        Stopped::No => None,
        Stopped::By(by) if by.is_empty() => Some(matches_nothing(rule)),
        Stopped::By(by) if by.iter().all(|p| !matches!(p.origin, Origin::Rule(_))) => Some(useless(view, rule, &by)),
        Stopped::By(by) => Some(shadowed(view, rule, &by)),
        Stopped::Unknown => Some(undecided(rule.span, &format!("`{}` has an effect", rule.pattern_text()))),
    }
}

fn matches_nothing(rule: &Rule) -> Finding {
    let message = format!("no request can match `{}` with its conditions", rule.pattern_text());
    Finding::new(Code::MATCHES_NOTHING, rule.span, message)
        .help("its conditions exclude each other; remove one of them")
}

/// Guardrails alone stop everything that it permits.
fn useless(view: &View<'_>, rule: &Rule, by: &[&Policy]) -> Finding {
    let mut names: Vec<String> = by.iter().map(|policy| view.guardrail(policy).0).collect();
    names.sort();
    names.dedup();
    let verb = if names.len() == 1 { "stops" } else { "together stop" };
    let message = format!(
        "`{}` never has an effect at tier {}: {} {verb} everything that it permits there",
        rule.pattern_text(),
        rule.tier,
        names.join(" and ")
    );
    let finding = Finding::new(Code::GUARDRAIL_USELESS, rule.span, message);
    let help = match by.first().map(|policy| policy.origin) {
        Some(Origin::NonPublic) => "remove the rule; local services are reached beside the proxy, not through it",
        Some(Origin::Guardrail(_)) => "remove the rule, or narrow the guardrail if the rule is what you mean",
        _ => "remove the rule, or put it at tier 2 or higher",
    };
    let hand_written: Vec<&Policy> = by.iter().copied().filter(|p| view.guardrail(p).1.is_some()).collect();
    related(view, finding, &hand_written).help(help)
}

fn shadowed(view: &View<'_>, rule: &Rule, by: &[&Policy]) -> Finding {
    let message =
        format!("stricter rules cover everything that `{}` would allow at tier {}", rule.pattern_text(), rule.tier);
    related(view, Finding::new(Code::SHADOWED, rule.span, message), by)
        .help("the strictest rule wins: narrow the stricter rule, or remove this one")
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Set, codes};

    /// `context.program == "ls"` as a guardrail that stops tiers 0 and 1.
    fn guarded(body: &str, programs: &[&str]) -> Vec<&'static str> {
        codes(&Set::new().map("a.md", "commands", body).forbid_programs(programs, 0..2).lint())
    }

    #[test]
    fn a_guardrail_makes_useless_what_it_always_stops() {
        assert_eq!(guarded("## Tier 0\n- `ls **`", &["ls"]), ["guardrail-useless"]);
        assert_eq!(guarded("## Tier 0\n- `{cat,ls} **`", &["ls"]), [""; 0]);
        assert_eq!(guarded("## Tier 0\n- `{cat,ls} **`", &["cat", "ls"]), ["guardrail-useless"]);
        // It stops nothing at the rule's own tier.
        assert_eq!(guarded("## Tier 2\n- `ls **`", &["ls"]), [""; 0]);
        assert_eq!(guarded("## Tier 4\n- `ls **`", &["ls"]), [""; 0]);
    }

    #[test]
    fn a_message_names_the_guardrail_and_shows_it() {
        let found = Set::new().map("a.md", "commands", "## Tier 0\n- `ls **`").forbid_programs(&["ls"], 0..2).lint();
        assert_eq!(
            found[0].message,
            "`ls **` never has an effect at tier 0: `guardrail/g.cedar/1` stops everything that it permits there"
        );
        assert_eq!(found[0].related.len(), 1);
    }

    #[test]
    fn rule_and_guardrail_together_are_a_shadow_with_both_places() {
        let body = "## Tier 0\n- `{cat,ls} **`\n## Tier 3\n- `cat **`";
        let found = Set::new().map("a.md", "commands", body).forbid_programs(&["ls"], 0..2).lint();
        assert_eq!(codes(&found), ["shadowed"]);
        assert_eq!(found[0].related.len(), 2);
    }

    #[test]
    fn stricter_rules_of_another_file_shadow() {
        let set = Set::new().map("a.md", "commands", "## Tier 0\n- `git log **`").map(
            "b.md",
            "commands",
            "## Tier 3\n- `git **`",
        );
        let found = set.lint();
        assert_eq!(codes(&found), ["shadowed"]);
        assert_ne!(found[0].span.file, found[0].related[0].span.file);
    }
}
