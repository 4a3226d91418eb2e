//! `match` and `no match` beside a rule: promises that are checked at every run.

use super::{View, on_behalf_of};
use crate::compile::{Effect, Policy};
use crate::decide::{Setting, requests, why_not};
use crate::diag::{Code, Finding};
use crate::model::{Example, Facts, Rule, Tier};

pub(super) fn lint(view: &View<'_>, out: &mut Vec<Finding>) {
    let setting = Setting {
        trusted_dirs: &view.compiled.set.config.trusted_dirs,
        zones: view.zones,
        cwd: None,
        agent: "agent",
        host: "host",
        external: false,
    };
    for (index, rule) in view.rules() {
        for example in &rule.examples {
            match requests(rule.surface, &example.text, &setting) {
                Ok(requests) => {
                    let of = |request| on_behalf_of(rule, request).facts(view.zones);
                    let facts: Vec<Facts> = requests.into_iter().map(of).collect();
                    out.extend(judge(view, index, rule, example, &facts));
                }
                Err(error) => out.push(
                    Finding::new(Code::EXAMPLE_FAILS, example.span, format!("the example cannot be read: {error}"))
                        .help("write it as one types it; `polctl explain` shows how polctl reads a line"),
                ),
            }
        }
    }
}

/// An example may be several commands; the rule must match one of them, or none.
fn judge(view: &View<'_>, index: usize, rule: &Rule, example: &Example, facts: &[Facts]) -> Option<Finding> {
    let policies = view.of_rule(representative(view, index, rule));
    let restricting = policies.iter().copied().find(|p| p.effect == Effect::Forbid);
    let permitting: Vec<&Policy> = policies.iter().copied().filter(|p| p.effect == Effect::Permit).collect();
    if !example.matches {
        let hit = facts.iter().any(|facts| match restricting {
            Some(policy) => policy.holds(facts),
            None => permitting.iter().any(|p| p.holds(facts)),
        });
        return hit.then(|| matched(rule, example));
    }
    // The permit at the rule's own tier; at tier 4 there is only the forbid.
    let policy = permitting.into_iter().find(|p| p.rungs.contains(&rule.tier.number())).or(restricting)?;
    let lets_through = rule.tier < Tier::UNMATCHED;
    let mut own = facts.iter().filter(|facts| !matches!(facts, Facts::Command(f) if f.covered));
    // A line is let through only as a whole; to restrict it, one of its commands is enough.
    let holds = lets_through && own.clone().next().is_some() && own.all(|facts| policy.holds(facts))
        || !lets_through && facts.iter().any(|facts| policy.holds(facts));
    (!holds).then(|| missed(rule, example, facts, policy, restricting))
}

/// A `no match` that the rule matches.
fn matched(rule: &Rule, example: &Example) -> Finding {
    let message = format!("the rule matches `{}`, and the example says it does not", example.text);
    Finding::new(Code::EXAMPLE_FAILS, example.span, message)
        .related(rule.span, "this rule")
        .help("narrow the rule (`unless`, `only`, a longer pattern), or correct the example")
}

/// A `match` that the rule does not match, with the condition that decides.
fn missed(rule: &Rule, example: &Example, facts: &[Facts], policy: &Policy, restricting: Option<&Policy>) -> Finding {
    // The command that comes nearest: one that the rule's other side matches, or the first that it misses.
    let broad = facts.iter().find(|facts| restricting.is_some_and(|p| p.holds(facts)) && !policy.holds(facts));
    let nearest = broad.or_else(|| facts.iter().find(|facts| !policy.holds(facts)));
    let mut message = format!("the rule does not match `{}`", example.text);
    if let Some(why) = nearest.and_then(|facts| why_not(policy, facts)).filter(|why| !why.is_empty()) {
        message.push_str(&format!(": {why}"));
    }
    let help = if broad.is_some() && policy.effect == Effect::Permit {
        "the rule restricts it and does not permit it; correct the rule or the example"
    } else {
        "correct the rule or the example"
    };
    Finding::new(Code::EXAMPLE_FAILS, example.span, message).related(rule.span, "this rule").help(help)
}

/// The number under which a rule's policies stand: a repeated rule has none of its own.
fn representative(view: &View<'_>, index: usize, rule: &Rule) -> usize {
    if !view.of_rule(index).is_empty() {
        return index;
    }
    let text = rule.normalised();
    let same = |r: &Rule| r.surface == rule.surface && r.tier == rule.tier && r.normalised() == text;
    view.compiled.set.rules.iter().position(same).unwrap_or(index)
}
