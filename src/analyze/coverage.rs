//! Which rules are matched by an example, and a plain request for each that is not.
//!
//! An example beside any rule counts for every rule of its surface that it is a request of. The
//! request for an uncovered rule is made without a search, so some have none; what is given was
//! decided by Cedar.

use std::collections::{BTreeSet, HashMap};

use super::AnalyzeError;
use super::lint::on_behalf_of;
use super::sample::{sample, words};
use crate::compile::{Compiled, Effect, Origin, Policy, PolicyIndex};
use crate::decide::{Decider, Setting, requests};
use crate::model::{Facts, Request, Rule, ZoneMatcher};
use crate::source::SourceMap;

/// What examples say of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Coverage {
    /// An example is a request that it matches.
    Covered,
    /// None is. With a request that it matches, where one was found.
    Uncovered(Option<Sampled>),
}

/// A request that a rule matches, and the decision on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sampled {
    /// As a person would type it.
    pub line: String,
    /// What it assumes beyond its text.
    pub assumes: Vec<String>,
    /// The lowest tier at which Cedar allows it; `None`: denied.
    pub tier: Option<u8>,
}

/// The coverage of each rule of a set, in their order.
///
/// # Errors
///
/// [`AnalyzeError`]: defects, never verdicts.
pub fn coverage(compiled: &Compiled, map: &SourceMap) -> Result<Vec<Coverage>, AnalyzeError> {
    let zones = compiled.set.config.zones.matcher();
    let covered = covered(compiled, &zones);
    let own = own_policies(compiled);
    let mut decider = Decider::new(compiled, map);
    let mut out = Vec::new();
    for (index, rule) in compiled.set.rules.iter().enumerate() {
        // The same rule twice has its policies once.
        let index = own.contains_key(&index).then_some(index).or_else(|| first_like(compiled, rule)).unwrap_or(index);
        if covered.contains(&index) {
            out.push(Coverage::Covered);
            continue;
        }
        let sampled = match own.get(&index).and_then(|policies| request(rule, policies, &zones)) {
            Some(request) => {
                let tier = decider.tier(rule.surface, &request.facts(&zones))?;
                Some(Sampled { line: request.to_line(), assumes: request.assumptions(), tier })
            }
            None => None,
        };
        out.push(Coverage::Uncovered(sampled));
    }
    Ok(out)
}

/// The rules that some `match` is a request of.
fn covered(compiled: &Compiled, zones: &ZoneMatcher) -> BTreeSet<usize> {
    let index = PolicyIndex::new(&compiled.policies);
    let trusted_dirs = &compiled.set.config.trusted_dirs;
    let setting = Setting { trusted_dirs, zones, cwd: None, agent: "agent", host: "host", external: false };
    let mut out = BTreeSet::new();
    for rule in &compiled.set.rules {
        for example in rule.examples.iter().filter(|example| example.matches) {
            // An example that cannot be read is a finding of its own.
            for request in requests(rule.surface, &example.text, &setting).into_iter().flatten() {
                let request = on_behalf_of(rule, request);
                let (surface, facts) = (request.surface(), request.facts(zones));
                let candidates = index.candidates(surface, &facts);
                let holding = candidates.into_iter().filter_map(|at| compiled.policies.get(at));
                out.extend(holding.filter(|p| speaks(p, compiled) && p.holds(&facts)).filter_map(rule_of));
            }
        }
    }
    out
}

fn rule_of(policy: &Policy) -> Option<usize> {
    match policy.origin {
        Origin::Rule(index) => Some(index),
        _ => None,
    }
}

/// Whether a policy is the one by which its rule speaks: the permit at its own tier, or at
/// tier 4 the forbid.
fn speaks(policy: &Policy, compiled: &Compiled) -> bool {
    let Some(rule) = compiled.rule_of(policy) else { return false };
    match policy.effect {
        Effect::Permit => policy.rungs.contains(&rule.tier.number()),
        Effect::Forbid => rule.tier.allowing_rungs().is_empty(),
    }
}

fn own_policies(compiled: &Compiled) -> HashMap<usize, Vec<&Policy>> {
    let mut out: HashMap<usize, Vec<&Policy>> = HashMap::new();
    for policy in compiled.policies.iter().filter(|policy| speaks(policy, compiled)) {
        if let Some(index) = rule_of(policy) {
            out.entry(index).or_default().push(policy);
        }
    }
    out
}

fn first_like(compiled: &Compiled, rule: &Rule) -> Option<usize> {
    let text = rule.normalised();
    compiled.set.rules.iter().position(|r| r.surface == rule.surface && r.tier == rule.tier && r.normalised() == text)
}

/// A request that a rule surely matches.
fn request(rule: &Rule, policies: &[&Policy], zones: &ZoneMatcher) -> Option<Request> {
    let holds = |facts: &Facts| policies.iter().any(|policy| policy.holds(facts));
    let guesses = [sample(rule), words(rule, false), words(rule, true)];
    guesses
        .into_iter()
        .flatten()
        .map(|request| on_behalf_of(rule, request))
        .find(|request| holds(&request.facts(zones)))
}
