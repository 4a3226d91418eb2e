//! What is wrong with one version by itself: the registry of lints, and what they share.
//!
//! Each file below is one lint: it reads a [`View`] and adds findings, each with the code's own
//! level or a lower one. None of them changes what is permitted, and none looks at another
//! version.

mod effect;
mod egress_wildcard;
mod examples;
mod executes;
mod ladder;
mod mergeable;
mod positional_option;
mod program_wildcard;
mod raised;
mod redundant;
mod repeated;
mod stopped;
mod sudo_escape;
mod sudo_path;
mod vacuous;

use std::cell::OnceCell;
use std::collections::HashMap;

use super::AnalyzeError;
use super::exact::Space;
use super::sample::sample;
use crate::compile::{Compiled, Effect, Origin, Policy, PolicyIndex};
use crate::diag::Finding;
use crate::model::{Facts, Request, Rule, Surface, ZoneMatcher};
use crate::source::{SourceMap, Span};

/// A lint: adds what it finds.
#[derive(Clone, Copy)]
enum Lint {
    /// By the rules and their conditions.
    Plain(for<'v, 'a> fn(&'v View<'a>, &mut Vec<Finding>)),
    /// With the help of Cedar, which may find a defect.
    Cedar(for<'v, 'a> fn(&'v View<'a>, &mut Vec<Finding>) -> Result<(), AnalyzeError>),
}

/// Every lint, in the order in which they run. What is shown is sorted by place.
const LINTS: &[Lint] = &[
    Lint::Plain(repeated::lint),
    Lint::Plain(redundant::lint),
    Lint::Plain(mergeable::lint),
    Lint::Plain(program_wildcard::lint),
    Lint::Plain(positional_option::lint),
    Lint::Cedar(executes::lint),
    Lint::Plain(sudo_path::lint),
    Lint::Plain(sudo_escape::lint),
    Lint::Plain(egress_wildcard::lint),
    Lint::Plain(examples::lint),
    Lint::Plain(effect::lint),
    Lint::Plain(raised::lint),
    Lint::Plain(vacuous::lint),
    Lint::Cedar(ladder::lint),
];

/// Judges one version: examples, rules and guardrails without effect, and rules that are too
/// broad.
///
/// # Errors
///
/// [`AnalyzeError`]: defects, never verdicts.
pub fn lint(compiled: &Compiled, map: &SourceMap) -> Result<Vec<Finding>, AnalyzeError> {
    let zones = compiled.set.config.zones.matcher();
    let view = View::new(compiled, map, &zones);
    let mut out = Vec::new();
    for lint in LINTS {
        match lint {
            Lint::Plain(lint) => lint(&view, &mut out),
            Lint::Cedar(lint) => lint(&view, &mut out)?,
        }
    }
    Ok(out)
}

/// A version as lints see it.
struct View<'a> {
    compiled: &'a Compiled,
    map: &'a SourceMap,
    zones: &'a ZoneMatcher,
    index: PolicyIndex,
    by_rule: HashMap<usize, Vec<&'a Policy>>,
    /// For each rule the facts of a plain request, made when they are first asked for: that is
    /// most of what a lint of an ordinary rule costs.
    samples: Vec<OnceCell<Option<Facts>>>,
}

impl<'a> View<'a> {
    fn new(compiled: &'a Compiled, map: &'a SourceMap, zones: &'a ZoneMatcher) -> Self {
        let mut by_rule: HashMap<usize, Vec<&Policy>> = HashMap::new();
        for policy in &compiled.policies {
            if let Origin::Rule(index) = policy.origin {
                by_rule.entry(index).or_default().push(policy);
            }
        }
        let samples = vec![OnceCell::new(); compiled.set.rules.len()];
        View { compiled, map, zones, index: PolicyIndex::new(&compiled.policies), by_rule, samples }
    }

    /// The rules with their numbers.
    fn rules(&self) -> impl Iterator<Item = (usize, &'a Rule)> + use<'a> {
        self.compiled.set.rules.iter().enumerate()
    }

    /// The policies of the rule with this number; none where it repeats another one.
    fn of_rule(&self, index: usize) -> &[&'a Policy] {
        self.by_rule.get(&index).map_or(&[], Vec::as_slice)
    }

    /// The policy by which a rule permits at its own tier.
    fn permit_of(&self, index: usize, rule: &Rule) -> Option<&'a Policy> {
        let at = rule.tier.number();
        self.of_rule(index).iter().copied().find(|p| p.effect == Effect::Permit && p.rungs.contains(&at))
    }

    /// The requests of a surface.
    fn space(&self, surface: Surface) -> Space<'a> {
        Space::new(surface, self.zones, &self.compiled.set.config.zones)
    }

    /// Policies that can hold for these facts.
    fn candidates(&self, surface: Surface, facts: &Facts) -> impl Iterator<Item = &'a Policy> {
        let positions = self.index.candidates(surface, facts);
        let policies = &self.compiled.policies;
        positions.into_iter().filter_map(|at| policies.get(at))
    }

    /// Policies that can hold together with this one.
    fn related(&self, policy: &Policy) -> impl Iterator<Item = &'a Policy> {
        let positions = self.index.related(policy);
        let policies = &self.compiled.policies;
        positions.into_iter().filter_map(|at| policies.get(at)).filter({
            let surface = policy.surface;
            move |p| p.surface == surface
        })
    }

    /// The facts of a request that plainly is about a rule; most rules have one.
    fn sample(&self, index: usize, rule: &Rule) -> Option<&Facts> {
        let made = || sample(rule).map(|request| on_behalf_of(rule, request).facts(self.zones));
        self.samples.get(index)?.get_or_init(made).as_ref()
    }

    /// The forbids that stop what has these facts at a rung.
    fn forbids(&self, surface: Surface, facts: &Facts, rung: u8) -> Vec<&'a Policy> {
        let at_rung = |p: &&Policy| p.effect == Effect::Forbid && p.rungs.contains(&rung);
        self.candidates(surface, facts).filter(|p| at_rung(p) && p.holds(facts)).collect()
    }

    /// A guardrail in words, with its place where it is written by hand.
    fn guardrail(&self, policy: &Policy) -> (String, Option<Span>) {
        match policy.origin {
            Origin::Provenance => ("the built-in guardrail on inputs from outside the session".into(), None),
            Origin::NonPublic => ("the built-in guardrail on addresses that are not public".into(), None),
            Origin::Guardrail(index) => match self.compiled.guardrails.get(index) {
                Some(guardrail) => (format!("`{}`", guardrail.id), Some(guardrail.span)),
                None => ("a guardrail".into(), None),
            },
            Origin::Rule(_) | Origin::Unmatched | Origin::Covered => ("a built-in policy".into(), None),
        }
    }
}

/// Whether nobody has said anything about a rule of its own: no reason, no example, no id. What
/// somebody gave one of these stands there on purpose.
fn says_nothing_of_its_own(rule: &Rule) -> bool {
    rule.why.is_empty() && rule.examples.is_empty() && rule.id == rule.derived_id()
}

/// A request on behalf of the rule's own agents, machines and users.
pub(super) fn on_behalf_of(rule: &Rule, mut request: Request) -> Request {
    let agent = rule.agents.first();
    let host = rule.hosts.first();
    match &mut request {
        Request::Command(r) => {
            agent.into_iter().for_each(|a| r.agent.clone_from(a));
            host.into_iter().for_each(|h| r.host.clone_from(h));
        }
        Request::Egress(r) => {
            agent.into_iter().for_each(|a| r.agent.clone_from(a));
            host.into_iter().for_each(|h| r.machine.clone_from(h));
        }
    }
    request
}

#[cfg(test)]
pub(super) mod testing;
