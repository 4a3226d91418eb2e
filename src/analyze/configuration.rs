//! Configuration against configuration, each setting by its own order (DESIGN 2).
//!
//! The order says in which direction a setting lets more through; a plain command that one of
//! the rules permits, altered so that the setting matters, shows it. Each version decides it
//! under its own facts.

use std::collections::{BTreeMap, BTreeSet};

use super::sample::words;
use super::typed::{Tiers, Typed, Version, tier};
use crate::compile::{CompileError, Compiled};
use crate::decide::Decider;
use crate::diag::{Code, Evidence, Finding};
use crate::model::{
    CommandRequest, Config, Provenance, RUNGS, Request, SetTerm, Surface, Tier, Transition, Word, ZoneMatcher, Zones,
};
use crate::source::{SourceMap, Span};

/// Most rules that are tried to show what a setting does.
const MAX_TRIES: usize = 400;

/// Findings about settings that differ, widening and narrowing.
pub(super) fn compare(
    old: &Compiled,
    new: &Compiled,
    zones: (&ZoneMatcher, &ZoneMatcher),
    map: &SourceMap,
) -> Result<Vec<Finding>, CompileError> {
    let deciders = (Decider::new(old, map), Decider::new(new, map));
    let mut compare = Compare { old, new, zones, deciders, out: Vec::new() };
    compare.zones()?;
    let (was, is) = (&old.set.config, &new.set.config);
    compare.list(
        (
            "trusted_dirs",
            "programs in it now count as the ones that rules mean",
            "programs in it no longer count as the ones that rules mean",
        ),
        (&was.trusted_dirs, was.trusted_dirs_span),
        (&is.trusted_dirs, is.trusted_dirs_span),
        |dir| Alteration::Path(dir.to_owned()),
    )?;
    compare.list(
        ("allowed_env", "commands of tiers 0 and 1 may now set it", "commands of tiers 0 and 1 may no longer set it"),
        (&was.allowed_env, was.allowed_env_span),
        (&is.allowed_env, is.allowed_env_span),
        |name| Alteration::Env(name.to_owned()),
    )?;
    compare.provenance()?;
    compare.guardrails();
    Ok(compare.out)
}

/// How a plain request must be altered to show what a setting does.
enum Alteration {
    /// The program is named by its path in this directory.
    Path(String),
    /// This variable is set.
    Env(String),
    /// The output is redirected to this path.
    Redirect(String),
    /// This path is an argument.
    Argument(String),
    /// Inputs come from outside the session.
    External,
}

type Setting<'a> = (&'a [String], Span);

/// A setting that differs.
struct Difference<'d> {
    widens: bool,
    here: Span,
    before: Option<Span>,
    message: String,
    /// What stands for the witness where no rule shows the effect.
    fallback: &'d str,
}

struct Compare<'a> {
    old: &'a Compiled,
    new: &'a Compiled,
    zones: (&'a ZoneMatcher, &'a ZoneMatcher),
    deciders: (Decider<'a>, Decider<'a>),
    out: Vec<Finding>,
}

impl Compare<'_> {
    /// A real command that the two versions decide differently because of a setting, as
    /// Cedar itself says of it under each version's own facts.
    fn demonstrate(&mut self, alteration: &Alteration, widens: bool) -> Result<Option<Evidence>, CompileError> {
        let rules = self.new.set.rules.iter().chain(&self.old.set.rules);
        let rules = rules.filter(|r| r.surface != Surface::Egress && r.tier < Tier::UNMATCHED).take(MAX_TRIES);
        for rule in rules {
            let Some(Request::Command(mut request)) = words(rule, false) else { continue };
            rule.agents.first().into_iter().for_each(|agent| request.agent.clone_from(agent));
            rule.hosts.first().into_iter().for_each(|host| request.host.clone_from(host));
            let (before, after, line) = self.alter(alteration, request);
            let mut assumes = after.assumptions();
            if matches!(alteration, Alteration::Redirect(_)) {
                // The line shows the redirect.
                assumes.retain(|a| !a.starts_with("with a redirect"));
            }
            let old_tier = self.deciders.0.tier(rule.surface, &before.facts(self.zones.0))?;
            let new_tier = self.deciders.1.tier(rule.surface, &after.facts(self.zones.1))?;
            let (low, high) = if widens { (new_tier, old_tier) } else { (old_tier, new_tier) };
            if low.is_some_and(|low| high.is_none_or(|high| low < high)) {
                let rungs = (low.unwrap_or(0)..high.unwrap_or(RUNGS)).collect();
                let replay = self.replay(&after, &line, (old_tier, new_tier))?;
                let surface = "configuration".into();
                return Ok(Some(Evidence {
                    surface,
                    rungs,
                    witness: line,
                    assumes,
                    replay,
                    old_tier,
                    new_tier,
                    request: None,
                }));
            }
        }
        Ok(None)
    }

    /// The options under which the line shows the same decisions, if it does.
    fn replay(&mut self, request: &Request, line: &str, tiers: Tiers) -> Result<Option<Vec<String>>, CompileError> {
        let Request::Command(command) = request else { return Ok(None) };
        let typed = Typed { line: line.to_owned(), cwd: None };
        let mut old = Version { decider: &mut self.deciders.0, zones: self.zones.0 };
        let mut new = Version { decider: &mut self.deciders.1, zones: self.zones.1 };
        let found = (tier(command, &typed, &mut old)?, tier(command, &typed, &mut new)?);
        let same = found == tiers && command.surface == Surface::Commands;
        Ok(same.then(|| super::explain::replay(command, &typed)))
    }

    /// A request as each version sees it once it is altered, and the line that one would type.
    fn alter(&self, alteration: &Alteration, plain: CommandRequest) -> (Request, Request, String) {
        let (mut before, mut after) = (plain.clone(), plain.clone());
        let mut line = None;
        match alteration {
            Alteration::Path(dir) => {
                before.trusted = self.old.set.config.trusted_dirs.contains(dir);
                after.trusted = self.new.set.config.trusted_dirs.contains(dir);
                let path = format!("{dir}/{}", plain.program);
                line = Some(Request::Command(plain.clone()).to_line().replacen(&plain.program, &path, 1));
            }
            Alteration::Env(name) => {
                before.env.insert(name.clone());
                after.env.insert(name.clone());
            }
            Alteration::Redirect(path) => {
                before.writes = written(self.zones.0, path);
                after.writes = written(self.zones.1, path);
                line = Some(format!("{} > {path}", Request::Command(plain).to_line()));
            }
            Alteration::Argument(path) => {
                before.words.push(Word::Known(path.clone()));
                after.words.push(Word::Known(path.clone()));
            }
            Alteration::External => {
                before.external = true;
                after.external = true;
            }
        }
        let after = Request::Command(after);
        let line = line.unwrap_or_else(|| after.to_line());
        (Request::Command(before), after, line)
    }

    fn push(&mut self, difference: Difference<'_>, alterations: &[Alteration]) -> Result<(), CompileError> {
        let mut shown = None;
        for alteration in alterations {
            shown = self.demonstrate(alteration, difference.widens)?;
            if shown.is_some() {
                break;
            }
        }
        let message = match &shown {
            Some(evidence) => format!("{}; {}", difference.message, super::explain::headline(evidence)),
            None => difference.message,
        };
        let code = if difference.widens { Code::CONFIG_WIDENING } else { Code::NARROWING };
        let mut finding = Finding::new(code, difference.here, message)
            .evidence(shown.unwrap_or_else(|| evidence(difference.fallback)));
        if let Some(before) = difference.before {
            finding = finding.related(before, "the setting before");
        }
        if difference.widens {
            finding = finding.help("take it back, or have the change approved as what it is");
        }
        self.out.push(finding);
        Ok(())
    }

    /// A list in which each member more lets more through.
    fn list(
        &mut self,
        (key, gained, lost): (&str, &str, &str),
        old: Setting<'_>,
        new: Setting<'_>,
        alter: impl Fn(&str) -> Alteration,
    ) -> Result<(), CompileError> {
        for (more, less, widens, effect) in [(new, old, true, gained), (old, new, false, lost)] {
            for value in more.0.iter().filter(|v| !less.0.contains(v)) {
                let verb = if widens { "gains" } else { "loses" };
                let message = format!("`{key}` {verb} `{value}`: {effect}");
                let difference = Difference { widens, here: new.1, before: Some(old.1), message, fallback: value };
                self.push(difference, &[alter(value)])?;
            }
        }
        Ok(())
    }

    fn provenance(&mut self) -> Result<(), CompileError> {
        let (was, is) = (&self.old.set.config, &self.new.set.config);
        if was.provenance == is.provenance {
            return Ok(());
        }
        let off = is.provenance == Provenance::Off;
        let difference = Difference {
            widens: off,
            here: is.provenance_span,
            before: Some(was.provenance_span),
            message: format!("the provenance guardrail is switched {}", if off { "off" } else { "on" }),
            fallback: "any request with inputs from outside the session",
        };
        self.push(difference, &[Alteration::External])
    }

    /// Zones by what they do to the old rules: each way in which the zones of a path differ is
    /// judged by every condition that a rule puts on zones.
    fn zones(&mut self) -> Result<(), CompileError> {
        let (old, new) = (&self.old.set.config, &self.new.set.config);
        let patterns = |config: &Config, name: &str| config.zones.get(name).map(|(patterns, _)| patterns.clone());
        let names: BTreeSet<&str> = old.zones.names().chain(new.zones.names()).collect();
        if names.iter().all(|name| patterns(old, name) == patterns(new, name)) {
            return Ok(());
        }
        let texts = |config: &Config| -> String {
            let all = names.iter().filter_map(|name| patterns(config, name)).flatten();
            all.map(|pattern| pattern.to_string()).collect()
        };
        let alphabet = texts(old) + &texts(new);
        let first = names.iter().find(|name| patterns(old, name) != patterns(new, name)).copied().unwrap_or("");
        let place = |config: &Config, name: &str| config.zones.get(name).map(|(_, span)| span);
        let start = Span::new(new.file, 0, 0);
        let here = |name: &str| place(new, name).unwrap_or(start);
        let Some(transitions) = self.zones.0.transitions(self.zones.1, &alphabet) else {
            self.out.push(
                Finding::new(Code::INCONCLUSIVE, here(first), "the zones changed in more ways than can be compared")
                    .help("change them in smaller steps, or use simpler patterns"),
            );
            return Ok(());
        };
        let watched = |g: &&crate::compile::Guardrail| ["names", "writes"].iter().any(|fact| g.text.contains(fact));
        if let Some(guardrail) = self.old.guardrails.iter().find(watched).filter(|_| !transitions.is_empty()) {
            self.out.push(
                Finding::new(
                    Code::INCONCLUSIVE,
                    here(first),
                    format!("the zones changed, and the guardrail `{}` looks at them", guardrail.id),
                )
                .related(guardrail.span, "this guardrail")
                .help("the exact engine does not search inside guardrails; change zones and guardrails in steps that one can judge"),
            );
        }
        let (before, after) = (here, |name: &str| place(old, name));
        let mut told: BTreeMap<(String, bool), (Option<&'static str>, Transition)> = BTreeMap::new();
        for transition in transitions {
            let reason = lets_through(self.old, &transition);
            let gained = transition.after.difference(&transition.before).map(|zone| (zone.clone(), true));
            let lost = transition.before.difference(&transition.after).map(|zone| (zone.clone(), false));
            for key in gained.chain(lost).collect::<Vec<_>>() {
                let known = told.get(&key);
                if known.is_none() || reason.is_some() && known.is_some_and(|(known, _)| known.is_none()) {
                    told.insert(key, (reason, transition.clone()));
                }
            }
        }
        let pending: Vec<_> =
            told.into_iter().map(|((name, gains), told)| (before(&name), after(&name), name, gains, told)).collect();
        for (here, before, name, gains, (reason, transition)) in pending {
            let path = &transition.path;
            let verb = if gains { "gains" } else { "loses" };
            let message = match reason {
                Some(reason) => format!("zone `{name}` {verb} `{path}`: {reason}"),
                None => format!("zone `{name}` {verb} `{path}`"),
            };
            let difference = Difference { widens: reason.is_some(), here, before, message, fallback: path };
            let mut alterations = [Alteration::Redirect(path.clone()), Alteration::Argument(path.clone())];
            if Zones::GUARDED.contains(&name.as_str()) {
                alterations.reverse();
            }
            self.push(difference, &alterations)?;
        }
        Ok(())
    }

    /// Guardrails only take away, so one that is gone or changed may let something through.
    fn guardrails(&mut self) {
        let (old, new) = (self.old, self.new);
        let here = Span::new(new.set.config.file, 0, 0);
        // What a guardrail says of requests on a surface is judged with the rules; of the others
        // nothing is known but that it is gone.
        let told = |g: &&crate::compile::Guardrail| speaks_of_capabilities(old, g);
        let lost = old.guardrails.iter().filter(|g| !new.guardrails.iter().any(|n| n.meaning == g.meaning));
        for guardrail in lost.filter(told) {
            self.out.push(
                Finding::new(
                    Code::CONFIG_WIDENING,
                    here,
                    format!("the guardrail `{}` is gone or has changed", guardrail.id),
                )
                .evidence(evidence("any request that the guardrail stopped"))
                .related(guardrail.span, "the guardrail before")
                .help("keep the old guardrail beside the new one to show that nothing is lost"),
            );
        }
        for guardrail in new.guardrails.iter().filter(|g| !old.guardrails.iter().any(|o| o.meaning == g.meaning)) {
            self.out.push(
                Finding::new(Code::NARROWING, guardrail.span, format!("the guardrail `{}` is new", guardrail.id))
                    .evidence(evidence("any request that the guardrail stops")),
            );
        }
    }
}

/// Whether a guardrail can be about a capability of the set.
fn speaks_of_capabilities(compiled: &Compiled, guardrail: &crate::compile::Guardrail) -> bool {
    let surfaces = compiled.set.surfaces.keys().map(|s| s.namespace());
    let scope = match guardrail.parse().map(|p| p.action_constraint()) {
        Ok(cedar_policy::ActionConstraint::Eq(action)) => vec![action],
        Ok(cedar_policy::ActionConstraint::In(actions)) => actions,
        _ => return !compiled.set.manifests.is_empty(),
    };
    let surfaces: BTreeSet<&str> = surfaces.collect();
    scope.iter().any(|action| !surfaces.contains(action.type_name().namespace().as_str()))
}

/// The zones that a redirect to a path writes.
fn written(zones: &ZoneMatcher, path: &str) -> BTreeSet<String> {
    let mut found = zones.path(path);
    if found.is_empty() {
        found.insert(Zones::ELSEWHERE.to_owned());
    }
    found
}

/// Evidence without a request: nothing in the policy shows what the setting does.
fn evidence(witness: &str) -> Evidence {
    Evidence {
        surface: "configuration".into(),
        rungs: Vec::new(),
        witness: witness.to_owned(),
        assumes: Vec::new(),
        replay: None,
        old_tier: None,
        new_tier: None,
        request: None,
    }
}

/// Why a path's change of zones lets something through that the rules did not let through
/// before; `None` when it does not.
fn lets_through(compiled: &Compiled, transition: &Transition) -> Option<&'static str> {
    let elsewhere = || BTreeSet::from([Zones::ELSEWHERE.to_owned()]);
    let or_elsewhere = |zones: &BTreeSet<String>, always: bool| {
        if zones.is_empty() && (always || transition.absolute) { elsewhere() } else { zones.clone() }
    };
    let named = (or_elsewhere(&transition.before, false), or_elsewhere(&transition.after, false));
    let written = (or_elsewhere(&transition.before, true), or_elsewhere(&transition.after, true));
    let list = |names: &[&str]| names.iter().map(|n| (*n).to_owned()).collect::<BTreeSet<String>>();
    for rule in compiled.set.rules.iter().filter(|r| r.surface != Surface::Egress) {
        let unmatched = compiled.set.surfaces.get(&rule.surface).map(|info| info.unmatched);
        // A permit adds nothing where what no rule matches may run anyway.
        if unmatched.is_some_and(|unmatched| rule.tier < unmatched) {
            let newly =
                |holds: &dyn Fn(&BTreeSet<String>) -> bool, (before, after): &(_, _)| holds(after) && !holds(before);
            let guarded = rule.tier < Tier::UNMATCHED;
            let names = match &rule.when.names {
                Some(SetTerm::In(zones)) => newly(&|set| set.is_subset(zones), &named),
                Some(SetTerm::Empty) => newly(&|set| set.is_empty(), &named),
                None if guarded => newly(&|set| set.is_disjoint(&list(&Zones::GUARDED)), &named),
                Some(SetTerm::Any) | None => false,
            };
            if names {
                return Some("a rule permits arguments that name it now");
            }
            let writes = match &rule.when.writes {
                Some(SetTerm::In(zones)) => newly(&|set| set.is_subset(zones), &written),
                None if guarded => newly(&|set| set.is_subset(&list(&Zones::WRITABLE)), &written),
                // A redirect into any path writes something.
                Some(SetTerm::Empty | SetTerm::Any) | None => false,
            };
            if writes {
                return Some("a rule permits redirects into it now");
            }
        }
        if rule.tier.number() > 0 {
            let no_longer = |term: &Option<SetTerm>, (before, after): &(BTreeSet<String>, BTreeSet<String>)| match term
            {
                Some(SetTerm::In(zones)) => !before.is_disjoint(zones) && after.is_disjoint(zones),
                Some(SetTerm::Empty) => before.is_empty() && !after.is_empty(),
                Some(SetTerm::Any) | None => false,
            };
            if no_longer(&rule.when.names, &named) || no_longer(&rule.when.writes, &written) {
                return Some("a rule that stops requests about it no longer does");
            }
        }
    }
    None
}
