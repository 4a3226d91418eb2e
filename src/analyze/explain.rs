//! From changes to findings: words, places, and what to do.

use std::cell::OnceCell;
use std::collections::{BTreeSet, HashSet};

use super::compare::{Change, Open};
use super::typed::Typed;
use crate::compile::{Compiled, Origin, Policy};
use crate::diag::{Code, Evidence, Finding};
use crate::model::{CommandRequest, Matcher, PolicySet, Request, Rule, Surface, Tier};
use crate::source::Span;

/// Where a policy stands: its rule, or the surface's declaration.
pub(super) fn place(compiled: &Compiled, policy: &Policy) -> Span {
    if let Origin::Guardrail(index) = policy.origin
        && let Some(guardrail) = compiled.guardrails.get(index)
    {
        return guardrail.span;
    }
    compiled.rule_of(policy).map_or_else(
        || {
            compiled
                .set
                .surfaces
                .get(&policy.surface)
                .map_or_else(|| Span::new(compiled.set.config.file, 0, 0), |info| info.span)
        },
        |r| r.span,
    )
}

fn describe(compiled: &Compiled, policy: &Policy) -> String {
    match (compiled.rule_of(policy), policy.origin) {
        (Some(rule), _) => format!("the rule `{}` of tier {}", rule.pattern_text(), rule.tier),
        (None, Origin::Unmatched) => {
            let tier = compiled.set.surfaces.get(&policy.surface).map_or_else(String::new, |i| i.unmatched.to_string());
            format!("`unmatched: {tier}`")
        }
        (None, Origin::Guardrail(index)) => {
            compiled.guardrails.get(index).map_or_else(String::new, |g| format!("the guardrail `{}`", g.id))
        }
        (None, _) => "a built-in guardrail".into(),
    }
}

fn evidence(change: &Change<'_>, old_tier: Option<u8>, new_tier: Option<u8>) -> Evidence {
    let (witness, assumes, replay) = match (&change.typed, &change.witness) {
        (Some(typed), Request::Command(request)) => {
            (typed.line.clone(), typed_assumptions(request, typed), Some(replay(request, typed)))
        }
        (_, Request::Egress(request)) => {
            let replay = subject_flags(&request.agent, &request.machine, request.external);
            (change.witness.to_line(), change.witness.assumptions(), Some(replay))
        }
        (None, Request::Command(_)) => (change.witness.to_line(), change.witness.assumptions(), None),
    };
    Evidence {
        surface: change.surface.name().into(),
        rungs: change.rungs.iter().copied().collect(),
        witness,
        assumes,
        replay,
        old_tier,
        new_tier,
        request: None,
    }
}

/// What a line assumes that its text does not show.
fn typed_assumptions(request: &CommandRequest, typed: &Typed) -> Vec<String> {
    let mut out = Vec::new();
    if request.agent != "agent" {
        out.push(format!("by agent `{}`", request.agent));
    }
    if request.host != "host" {
        out.push(format!("on host `{}`", request.host));
    }
    if request.external {
        out.push("with inputs from outside the session".into());
    }
    if let Some(cwd) = &typed.cwd {
        out.push(format!("run in `{cwd}`"));
    }
    out
}

fn subject_flags(agent: &str, host: &str, external: bool) -> Vec<String> {
    let mut out = Vec::new();
    for (flag, value, usual) in [("--agent", agent, "agent"), ("--host", host, "host")] {
        if value != usual {
            out.extend([flag.to_owned(), value.to_owned()]);
        }
    }
    if external {
        out.push("--external".into());
    }
    out
}

/// The options of `polctl explain` that decide the line again.
pub(super) fn replay(request: &CommandRequest, typed: &Typed) -> Vec<String> {
    let mut out = subject_flags(&request.agent, &request.host, request.external);
    out.extend(["--cwd".to_owned(), typed.cwd.clone().unwrap_or_else(|| "unknown".into())]);
    out
}

/// `denied`, or `tier 2`.
fn decision(tier: Option<u8>) -> String {
    tier.map_or_else(|| "denied".to_owned(), |t| format!("tier {t}"))
}

/// The message's head: witness, both decisions, and what the line does not show.
pub(super) fn headline(evidence: &Evidence) -> String {
    let mut text =
        format!("`{}` goes from {} to {}", evidence.witness, decision(evidence.old_tier), decision(evidence.new_tier));
    if !evidence.assumes.is_empty() {
        text.push_str(&format!(" ({})", evidence.assumes.join("; ")));
    }
    text
}

impl<'a> Explainer<'a> {
    pub(super) const fn new(old: &'a Compiled, new: &'a Compiled) -> Self {
        Explainer { old, new, texts: OnceCell::new() }
    }

    /// The counterpart in the new version of a rule of the old one, or (`back`) the other way.
    fn counterpart(&self, rule: &Rule, back: bool) -> Option<&'a Rule> {
        let (old, new) = self.texts.get_or_init(|| (Texts::new(&self.old.set), Texts::new(&self.new.set)));
        if back { counterpart(rule, new, old) } else { counterpart(rule, old, new) }
    }

    /// A finding for a request that is newly permitted.
    pub(super) fn widening(&self, change: &Change<'_>) -> Finding {
        let (old, new) = (self.old, self.new);
        let evidence = evidence(change, change.tier_from, change.tier_to);
        let permits = format!("{} permits it now", describe(new, change.permit));
        let finding = |span| Finding::new(Code::WIDENING, span, headline(&evidence));
        let finding = match (change.gone, new.rule_of(change.permit)) {
            (None, rule) => {
                let finding = finding(place(new, change.permit)).label(permits).help(
                "narrow the rule (a longer pattern, `with`, `only`, `unless`), raise its tier, or have the change approved as what it is",
            );
                match rule.and_then(|rule| Some((rule, self.counterpart(rule, true)?))) {
                    Some((rule, before)) => finding.related(before.span, said_before(before, rule)),
                    None => finding,
                }
            }
            (Some(gone), rule) => {
                let stopped = format!("{} stopped it", describe(old, gone));
                let after = old.rule_of(gone).and_then(|before| Some((before, self.counterpart(before, false)?)));
                // The best place is in the new version: the rule that changed, or the one that permits.
                let (finding, help) = match (after, rule) {
                    (Some((before, after)), _) => (
                        finding(after.span)
                            .label(format!("this rule no longer stops it; {permits}"))
                            .related(before.span, said_before(before, after)),
                        "bring back what the rule said",
                    ),
                    (None, Some(_)) => (
                        finding(place(new, change.permit)).label(permits).related(place(old, gone), stopped),
                        "bring back the rule that is gone",
                    ),
                    (None, None) => (
                        finding(place(old, gone)).label(stopped).related(place(new, change.permit), permits),
                        "bring back the rule that is gone",
                    ),
                };
                finding.help(format!("{help}, or have the change approved as what it is"))
            }
        };
        let finding = match change.guardrail {
            Some(guardrail) => finding.related(guardrail.span, format!("the guardrail `{}` stopped it", guardrail.id)),
            None => finding,
        };
        finding.evidence(evidence.clone())
    }
}

/// The texts of a version's rules, made once for all findings.
struct Texts<'a> {
    set: &'a PolicySet,
    patterns: Vec<String>,
    whole: Vec<(Surface, Tier, String)>,
    known: HashSet<(Surface, Tier, String)>,
}

impl<'a> Texts<'a> {
    fn new(set: &'a PolicySet) -> Self {
        let whole: Vec<_> = set.rules.iter().map(|r| (r.surface, r.tier, r.normalised())).collect();
        Texts {
            set,
            patterns: set.rules.iter().map(Rule::pattern_text).collect(),
            known: whole.iter().cloned().collect(),
            whole,
        }
    }
}

/// Words for the changes between two versions.
pub(super) struct Explainer<'a> {
    old: &'a Compiled,
    new: &'a Compiled,
    texts: OnceCell<(Texts<'a>, Texts<'a>)>,
}

/// The rule of the version `other` that a reader would call the same as `rule` of `own`: by
/// its stated id, else by pattern, at the same tier rather than at another. A rule that did
/// not change is its own counterpart, and nobody else's.
fn counterpart<'s>(rule: &Rule, own: &Texts<'_>, other: &Texts<'s>) -> Option<&'s Rule> {
    let pattern = rule.pattern_text();
    let stated = rule.id != rule.derived_id();
    let mut best: Option<(u8, &Rule)> = None;
    for ((candidate, text), whole) in other.set.rules.iter().zip(&other.patterns).zip(&other.whole) {
        if candidate.surface != rule.surface || own.known.contains(whole) {
            continue;
        }
        let score = match (stated && candidate.id == rule.id, *text == pattern, candidate.tier == rule.tier) {
            (true, ..) => 3,
            (_, true, true) => 2,
            (_, true, false) => 1,
            _ => continue,
        };
        if best.is_none_or(|(known, _)| known < score) {
            best = Some((score, candidate));
        }
    }
    best.map(|(_, rule)| rule)
}

/// What the older of two counterparts said that the newer does not.
fn said_before(before: &Rule, after: &Rule) -> String {
    let (was, is) = (attributes(before), attributes(after));
    let beyond = |a: &BTreeSet<String>, b: &BTreeSet<String>| {
        a.iter().filter(|x| !b.contains(*x)).map(String::as_str).collect::<Vec<_>>().join(", ")
    };
    let (lost, gained) = (beyond(&was, &is), beyond(&is, &was));
    let mut text = String::from("the rule before");
    if before.tier != after.tier {
        text.push_str(&format!(", at tier {}", before.tier));
    }
    if !lost.is_empty() {
        text.push_str(&format!(", with {lost}"));
    }
    if !gained.is_empty() {
        text.push_str(&format!(", without {gained}"));
    }
    text
}

/// Pattern and attributes, one by one.
fn attributes(rule: &Rule) -> BTreeSet<String> {
    let mut out = BTreeSet::from([format!("`{}`", rule.pattern_text())]);
    if let Matcher::Command { with, only, unless, run_as, .. } = &rule.matcher {
        out.extend(with.iter().flatten().map(|item| format!("`with: {item}`")));
        out.extend(only.iter().flatten().map(|item| format!("`only: {item}`")));
        out.extend(unless.iter().map(|item| format!("`unless: {item}`")));
        out.extend(run_as.iter().map(|user| format!("`run as: {user}`")));
    }
    if let Matcher::Egress { secrets, .. } = &rule.matcher {
        out.extend(secrets.iter().map(|secret| format!("`secret: {secret}`")));
    }
    out.extend(rule.agents.iter().map(|agent| format!("`agents: {agent}`")));
    out.extend(rule.hosts.iter().map(|host| format!("`hosts: {host}`")));
    if !rule.when.is_empty() {
        out.insert(format!("`when: {}`", rule.when));
    }
    out
}

pub(super) fn narrowing(change: &Change<'_>, old: &Compiled, new: &Compiled) -> Finding {
    let evidence = evidence(change, change.tier_to, change.tier_from);
    let finding = match change.gone {
        Some(gone) => Finding::new(Code::NARROWING, place(new, gone), headline(&evidence))
            .label(format!("{} stops it now", describe(new, gone))),
        None => Finding::new(Code::NARROWING, place(old, change.permit), headline(&evidence))
            .label(format!("{} permitted it", describe(old, change.permit))),
    };
    finding.evidence(evidence)
}

pub(super) fn inconclusive(open: &Open<'_>, from: &Compiled, to: &Compiled, what: &str) -> Finding {
    let owner = if open.in_to { to } else { from };
    Finding::new(
        Code::INCONCLUSIVE,
        place(owner, open.policy),
        format!("it could not be decided whether a request {what} here: {}", open.reason),
    )
    .help("split the rule into simpler ones, or compare in smaller steps; this is never a pass")
}
