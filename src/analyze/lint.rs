//! What is wrong with one version by itself.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::AnalyzeError;
use super::exact::{Bound, Outcome, Space};
use super::sample::sample;
use crate::compile::{Atom, Compiled, Effect, Expr, Origin, Policy, PolicyIndex};
use crate::decide::{Setting, requests, why_not};
use crate::diag::{Code, Finding};
use crate::model::{
    Example, Facts, Glob, HostPattern, Item, Matcher, Piece, RUNGS, Request, Rule, Surface, Tier, ZoneMatcher, escapes,
    is_interactive, is_non_public,
};

/// Judges one version: examples, rules without effect, and rules that are too broad.
///
/// # Errors
///
/// [`AnalyzeError`]: defects, never verdicts.
pub fn lint(compiled: &Compiled) -> Result<Vec<Finding>, AnalyzeError> {
    let zones = compiled.set.config.zones.matcher();
    let mut lint = Lint {
        compiled,
        zones: &zones,
        index: PolicyIndex::new(&compiled.policies),
        by_rule: HashMap::new(),
        out: Vec::new(),
    };
    for policy in &compiled.policies {
        if let Origin::Rule(index) = policy.origin {
            lint.by_rule.entry(index).or_default().push(policy);
        }
    }
    lint.repetitions();
    for (index, rule) in compiled.set.rules.iter().enumerate() {
        lint.breadth(rule);
        lint.examples(index, rule);
        lint.effect(index, rule);
    }
    lint.containment();
    Ok(lint.out)
}

struct Lint<'a> {
    compiled: &'a Compiled,
    zones: &'a ZoneMatcher,
    index: PolicyIndex,
    by_rule: HashMap<usize, Vec<&'a Policy>>,
    out: Vec<Finding>,
}

impl<'a> Lint<'a> {
    /// The same rule twice, at one tier or at two.
    fn repetitions(&mut self) {
        let mut seen: BTreeMap<(Surface, String), &Rule> = BTreeMap::new();
        for rule in &self.compiled.set.rules {
            let Some(first) = seen.get(&(rule.surface, rule.normalised())).copied() else {
                seen.insert((rule.surface, rule.normalised()), rule);
                continue;
            };
            let finding = if first.tier == rule.tier {
                Finding::new(
                    Code::DUPLICATE_RULE,
                    rule.span,
                    format!("`{}` stands twice at tier {}", rule.pattern_text(), rule.tier),
                )
                .related(first.span, "the same rule")
                .help("remove one of them")
            } else {
                Finding::new(
                    Code::CONTRADICTION,
                    rule.span,
                    format!("`{}` stands at tier {} and at tier {}", rule.pattern_text(), first.tier, rule.tier),
                )
                .related(first.span, format!("the same rule at tier {}", first.tier))
                .help(format!("the strictest wins, so tier {} counts; remove the other", first.tier.max(rule.tier)))
            };
            self.out.push(finding);
        }
    }

    /// Rules that are broader than anybody can mean.
    fn breadth(&mut self, rule: &Rule) {
        match &rule.matcher {
            Matcher::Command { pattern, only, .. } => {
                if pattern.literal_programs().is_none() && rule.tier < Tier::DENY && rule.when.trusted.is_none() {
                    let finding = Finding::new(
                        Code::PROGRAM_WILDCARD,
                        rule.span,
                        format!("`{}` permits programs by a wildcard at tier {}", pattern, rule.tier),
                    )
                    .help("name the programs: `{cat,head,tail} **`; only a rule of tier 4 may leave them open");
                    self.out.push(finding);
                }
                self.positional_option(rule, &pattern.words, pattern.rest);
                if rule.surface == Surface::Sudo && rule.tier < Tier::DENY {
                    self.sudo(rule, &pattern.words, pattern.rest, only.as_deref());
                }
            }
            Matcher::Egress { pattern, .. } => match &pattern.host {
                HostPattern::SubDomains(host) | HostPattern::DomainTree(host)
                    if !host.contains('.') && rule.tier < Tier::DENY =>
                {
                    let finding = Finding::new(
                        Code::EGRESS_WILDCARD,
                        rule.span,
                        format!("`{}` covers a whole top-level domain", pattern.host),
                    )
                    .help("name the domain: `*.example.com`");
                    self.out.push(finding);
                }
                HostPattern::Network(net)
                    if rule.tier < Tier::DENY && is_non_public(net.network()) && is_non_public(net.broadcast()) =>
                {
                    let finding = Finding::new(
                        Code::GUARDRAIL_USELESS,
                        rule.span,
                        format!("`{}` is not public, and a built-in guardrail refuses such addresses", pattern.host),
                    )
                    .help("remove the rule; local services are reached beside the proxy, not through it");
                    self.out.push(finding);
                }
                _ => {}
            },
        }
    }

    fn positional_option(&mut self, rule: &Rule, words: &[Vec<Glob>], rest: bool) {
        if rule.tier < Tier::UNMATCHED || !rest {
            return;
        }
        let option =
            words.iter().flatten().find(|g| matches!(g.pieces().first(), Some(Piece::Text(t)) if t.starts_with('-')));
        if let Some(option) = option {
            let finding = Finding::new(
                Code::POSITIONAL_OPTION,
                rule.span,
                format!("`{option}` restricts only where it stands at this place"),
            )
            .help(format!("write the pattern without it, and ``with: `{option}` ``: options may stand anywhere"));
            self.out.push(finding);
        }
    }

    /// Free arguments under elevated rights (DESIGN 3.5).
    fn sudo(&mut self, rule: &Rule, words: &[Vec<Glob>], rest: bool, only: Option<&[Item]>) {
        let Matcher::Command { pattern, .. } = &rule.matcher else { return };
        let path_wildcard = words.iter().flatten().find(|g| {
            g.as_literal().is_none()
                && g.pieces().iter().any(|p| matches!(p, Piece::Text(t) if t.contains('/') || t.starts_with('~')))
        });
        if let Some(glob) = path_wildcard {
            let finding = Finding::new(
                Code::SUDO_PATH_WILDCARD,
                rule.span,
                format!("`{glob}` leaves a path open under elevated rights"),
            )
            .help("name the files, one rule or `{a,b}` for each: a wildcard also matches `..` and follows links");
            self.out.push(finding);
        }
        let interactive = pattern.programs.iter().filter_map(Glob::as_literal).find(|p| is_interactive(p));
        if let Some(program) = interactive {
            let finding = Finding::new(
                Code::SUDO_ESCAPE,
                rule.span,
                format!("`{program}` gives a shell by itself, and under elevated rights that is root"),
            )
            .help("print files with a program that only prints, edit copies, or put the rule at tier 4");
            self.out.push(finding);
            return;
        }
        let first_free = words.iter().position(|w| w.iter().any(|g| g.as_literal().is_none()));
        if !rest && first_free.is_none() {
            return;
        }
        let mut told = BTreeSet::new();
        for program in pattern.programs.iter().filter_map(Glob::as_literal) {
            for escape in escapes(program) {
                let sub_command_open = escape.sub_commands.is_empty()
                    || words.first().is_none_or(|w| w.iter().any(|g| escape.sub_commands.iter().any(|s| g.matches(s))));
                let excluded = !escape.options.is_empty()
                    && only.is_some_and(|items| {
                        let listed: Vec<String> = items.iter().map(Item::to_string).collect();
                        escape.options.iter().all(|o| !listed.iter().any(|l| l == o))
                    });
                if sub_command_open && !excluded && told.insert(program) {
                    let finding = Finding::new(
                        Code::SUDO_ESCAPE,
                        rule.span,
                        format!("`{program}` with free arguments under elevated rights is root: `{}`", escape.how),
                    )
                    .help("write the exact arguments without `*` and `**`, or put the rule at tier 4");
                    self.out.push(finding);
                }
            }
        }
    }

    /// `match` and `no match`.
    fn examples(&mut self, index: usize, rule: &Rule) {
        for example in &rule.examples {
            let setting = Setting {
                trusted_dirs: &self.compiled.set.config.trusted_dirs,
                zones: self.zones,
                cwd: None,
                agent: "agent",
                host: "host",
                external: false,
            };
            match requests(rule.surface, &example.text, &setting) {
                Ok(requests) => {
                    let requests: Vec<Request> = requests.into_iter().map(|r| on_behalf_of(rule, r)).collect();
                    self.example(index, rule, example, &requests);
                }
                Err(error) => {
                    let finding =
                        Finding::new(Code::EXAMPLE_FAILS, example.span, format!("the example cannot be read: {error}"))
                            .help("write it as one types it; `polctl explain` shows how polctl reads a line");
                    self.out.push(finding);
                }
            }
        }
    }

    /// An example may be several commands; the rule must match one of them, or none.
    fn example(&mut self, index: usize, rule: &Rule, example: &Example, requests: &[Request]) {
        let facts: Vec<Facts> = requests.iter().map(|request| request.facts(self.zones)).collect();
        let policies = self.by_rule.get(&self.representative(index, rule)).map_or(&[][..], Vec::as_slice);
        let permitting: Vec<&Policy> = policies.iter().copied().filter(|p| p.effect == Effect::Permit).collect();
        let restricting = policies.iter().copied().find(|p| p.effect == Effect::Forbid);
        if example.matches {
            // The permit at the rule's own tier; at tier 4 there is only the forbid.
            let deciding = permitting.iter().copied().find(|p| p.rungs.contains(&rule.tier.number())).or(restricting);
            let Some(policy) = deciding else { return };
            let lets_through = rule.tier < Tier::UNMATCHED;
            let mut own = facts.iter().filter(|facts| !matches!(facts, Facts::Command(f) if f.covered));
            // A line is let through only as a whole; to restrict it, one of its commands is enough.
            if lets_through && own.clone().next().is_some() && own.all(|facts| policy.holds(facts))
                || !lets_through && facts.iter().any(|facts| policy.holds(facts))
            {
                return;
            }
            let missed = || facts.iter().find(|facts| !policy.holds(facts));
            // The command that comes nearest: one that the rule's other side matches, or the first that it misses.
            let broad = facts.iter().find(|facts| restricting.is_some_and(|p| p.holds(facts)) && !policy.holds(facts));
            let why = broad.or_else(missed).and_then(|facts| why_not(policy, facts)).unwrap_or_default();
            let mut message = format!("the rule does not match `{}`", example.text);
            if !why.is_empty() {
                message.push_str(&format!(": {why}"));
            }
            let help = if broad.is_some() && policy.effect == Effect::Permit {
                "the rule restricts it and does not permit it; correct the rule or the example"
            } else {
                "correct the rule or the example"
            };
            self.out.push(
                Finding::new(Code::EXAMPLE_FAILS, example.span, message).related(rule.span, "this rule").help(help),
            );
        } else {
            let hit = facts.iter().any(|facts| match restricting {
                Some(policy) => policy.holds(facts),
                None => permitting.iter().any(|p| p.holds(facts)),
            });
            if hit {
                self.out.push(
                    Finding::new(
                        Code::EXAMPLE_FAILS,
                        example.span,
                        format!("the rule matches `{}`, and the example says it does not", example.text),
                    )
                    .related(rule.span, "this rule")
                    .help("narrow the rule (`unless`, `only`, a longer pattern), or correct the example"),
                );
            }
        }
    }

    /// The index under which a rule's policies stand: a repeated rule has none of its own.
    fn representative(&self, index: usize, rule: &Rule) -> usize {
        if self.by_rule.contains_key(&index) {
            return index;
        }
        let text = rule.normalised();
        self.compiled
            .set
            .rules
            .iter()
            .position(|r| r.surface == rule.surface && r.tier == rule.tier && r.normalised() == text)
            .unwrap_or(index)
    }

    /// Rules that match nothing, and rules that stricter ones wholly cover.
    fn effect(&mut self, index: usize, rule: &Rule) {
        let Some(policies) = self.by_rule.get(&index).cloned() else { return };
        let space = Space::new(rule.surface, self.zones, &self.compiled.set.config.zones);
        let sample = sample(rule).map(|request| on_behalf_of(rule, request));
        let Some(policy) = policies
            .iter()
            .copied()
            .find(|p| p.effect == Effect::Permit && p.rungs.contains(&rule.tier.number()))
            .or_else(|| policies.iter().copied().find(|p| p.effect == Effect::Forbid))
        else {
            return;
        };
        let rung = rule.tier.number().min(RUNGS - 1);
        let forbids_at = |request: &Request| -> Vec<&'a Policy> {
            let facts = request.facts(self.zones);
            self.index
                .candidates(rule.surface, &facts)
                .into_iter()
                .filter_map(|at| self.compiled.policies.get(at))
                .filter(|p| p.effect == Effect::Forbid && p.rungs.contains(&rung) && p.holds(&facts))
                .collect()
        };
        let permits = policy.effect == Effect::Permit;
        if let Some(request) = &sample
            && policy.holds(&request.facts(self.zones))
            && (!permits || forbids_at(request).is_empty())
        {
            return;
        }
        // A restricting rule that only an unknown word could meet restricts nothing that one can name.
        let known = Expr::from(Atom::AllKnown);
        let mut require: Vec<&Expr> = policy.clauses.iter().collect();
        if !permits && rule.surface != Surface::Egress {
            require.push(&known);
        }
        let mut exclude: Vec<&[Expr]> = Vec::new();
        let mut stricter: Vec<&Policy> = Vec::new();
        for _ in 0..1000 {
            match space.find(&require, &exclude, Bound::USUAL) {
                Outcome::Found(request) => {
                    let forbids = if permits { forbids_at(&request) } else { Vec::new() };
                    if forbids.is_empty() {
                        return;
                    }
                    for forbid in forbids {
                        exclude.push(&forbid.clauses);
                        stricter.push(forbid);
                    }
                }
                Outcome::Empty => break,
                Outcome::Bound => {
                    self.out.push(
                        Finding::new(
                            Code::INCONCLUSIVE,
                            rule.span,
                            format!("it could not be decided whether `{}` has an effect", rule.pattern_text()),
                        )
                        .help("split the rule into simpler ones"),
                    );
                    return;
                }
            }
        }
        self.without_effect(rule, &stricter);
    }

    fn without_effect(&mut self, rule: &Rule, stricter: &[&Policy]) {
        let pattern = rule.pattern_text();
        let rules: Vec<&Rule> = stricter.iter().filter_map(|p| self.compiled.rule_of(p)).collect();
        let finding = if stricter.is_empty() {
            Finding::new(
                Code::MATCHES_NOTHING,
                rule.span,
                format!("no request can match `{pattern}` with its conditions"),
            )
            .help("its conditions exclude each other; remove one of them")
        } else if rules.is_empty() {
            Finding::new(
                Code::GUARDRAIL_USELESS,
                rule.span,
                format!("a built-in guardrail stops everything that `{pattern}` permits"),
            )
            .help("remove the rule")
        } else {
            let mut finding = Finding::new(
                Code::SHADOWED,
                rule.span,
                format!("stricter rules cover everything that `{pattern}` would allow at tier {}", rule.tier),
            )
            .help("the strictest rule wins: narrow the stricter rule, or remove this one");
            let mut seen = BTreeSet::new();
            for other in rules {
                if seen.insert(other.span) {
                    finding = finding.related(other.span, format!("tier {}", other.tier));
                }
            }
            finding
        };
        self.out.push(finding);
    }

    /// Each rung allows what the rung below it allows. For generated policies this is a matter
    /// of their conditions: a permit at a rung must have one at the next with no more of them.
    fn containment(&mut self) {
        for policy in self.compiled.policies.iter().filter(|p| p.effect == Effect::Permit && p.rungs.end < RUNGS) {
            let next = policy.rungs.end;
            let covered = self
                .index
                .related(policy)
                .into_iter()
                .filter_map(|at| self.compiled.policies.get(at))
                .filter(|p| p.effect == Effect::Permit && p.rungs.contains(&next) && p.surface == policy.surface)
                .any(|p| weaker(p, policy));
            if !covered {
                let span = super::explain::place(self.compiled, policy);
                self.out.push(
                    Finding::new(
                        Code::NOT_CONTAINED,
                        span,
                        format!("tier {} allows what tier {next} does not", next - 1),
                    )
                    .help("this is a defect of polctl; please report it with the rule"),
                );
            }
        }
    }
}

/// Whether every condition of `weak` is one of `strong`, or follows from one of them.
fn weaker(weak: &Policy, strong: &Policy) -> bool {
    use crate::compile::{Atom, SetAttr};
    fn parts(policy: &Policy) -> Vec<&Expr> {
        policy
            .clauses
            .iter()
            .flat_map(|clause| match clause {
                Expr::All(parts) => parts.iter().collect(),
                other => vec![other],
            })
            .collect()
    }
    let strong = parts(strong);
    parts(weak).into_iter().all(|part| {
        strong.contains(&part)
            || matches!(part, Expr::Atom(Atom::Within(SetAttr::Writes, _)))
                && strong.iter().any(|s| **s == Expr::Atom(Atom::Empty(SetAttr::Writes)))
    })
}

/// An example is about the rule's own agents, machines and users.
fn on_behalf_of(rule: &Rule, mut request: Request) -> Request {
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
