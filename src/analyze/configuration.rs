//! Configuration against configuration, each setting by its own order (DESIGN 2).

use std::collections::BTreeSet;

use crate::compile::Compiled;
use crate::diag::{Code, Evidence, Finding, Level};
use crate::model::{Provenance, SetTerm, ZoneMatcher, Zones};
use crate::source::Span;

/// Findings about settings that differ, widening and narrowing.
pub(super) fn compare(old: &Compiled, new: &Compiled, zones: (&ZoneMatcher, &ZoneMatcher)) -> Vec<Finding> {
    let mut out = Vec::new();
    zone_changes(old, new, zones, &mut out);
    let (was, is) = (&old.set.config, &new.set.config);
    lists(
        (
            "trusted_dirs",
            "programs in it now count as the ones that rules mean",
            "programs in it no longer count as the ones that rules mean",
        ),
        (&was.trusted_dirs, was.trusted_dirs_span),
        (&is.trusted_dirs, is.trusted_dirs_span),
        |dir| format!("{dir}/git status"),
        &mut out,
    );
    lists(
        ("allowed_env", "commands of tiers 0 and 1 may now set it", "commands of tiers 0 and 1 may no longer set it"),
        (&was.allowed_env, was.allowed_env_span),
        (&is.allowed_env, is.allowed_env_span),
        |name| format!("{name}=x git status"),
        &mut out,
    );
    if was.provenance != is.provenance {
        let off = is.provenance == Provenance::Off;
        out.push(
            finding(
                off,
                is.provenance_span,
                if off {
                    "the provenance guardrail is switched off"
                } else {
                    "the provenance guardrail is switched on"
                }
                .to_owned(),
                evidence("any request with inputs from outside the session"),
            )
            .related(was.provenance_span, "the setting before")
            .help("with it, a request whose inputs come from outside the session never runs at tiers 0 and 1"),
        );
    }
    guardrails(old, new, &mut out);
    out
}

fn evidence(witness: &str) -> Evidence {
    Evidence {
        surface: "configuration".into(),
        rungs: Vec::new(),
        witness: witness.to_owned(),
        assumes: Vec::new(),
        old_tier: None,
        new_tier: None,
    }
}

fn finding(widens: bool, span: Span, message: String, evidence: Evidence) -> Finding {
    let mut finding = Finding::new(if widens { Code::CONFIG_WIDENING } else { Code::NARROWING }, span, message);
    if !widens {
        finding.level = Level::Note;
    }
    finding.evidence(evidence)
}

type Setting<'a> = (&'a [String], Span);

/// A list in which each member more lets more through.
fn lists(
    (key, gained, lost): (&str, &str, &str),
    old: Setting<'_>,
    new: Setting<'_>,
    witness: impl Fn(&str) -> String,
    out: &mut Vec<Finding>,
) {
    for (more, less, widens, effect) in [(new, old, true, gained), (old, new, false, lost)] {
        for value in more.0.iter().filter(|v| !less.0.contains(v)) {
            let verb = if widens { "gains" } else { "loses" };
            let message = format!("`{key}` {verb} `{value}`: {effect}");
            let mut finding =
                finding(widens, new.1, message, evidence(&witness(value))).related(old.1, "the setting before");
            if widens {
                finding = finding.help("take it out again, or have the change approved as what it is");
            }
            out.push(finding);
        }
    }
}

/// In which direction a zone's growth and shrinking let more through.
struct Polarity {
    growth: Option<&'static str>,
    shrinking: Option<&'static str>,
}

fn polarity(name: &str, sides: [&Compiled; 2]) -> Polarity {
    let mut polarity = Polarity { growth: None, shrinking: None };
    if Zones::WRITABLE.contains(&name) {
        polarity.growth = Some("tiers 0 and 1 may write there");
    }
    if Zones::GUARDED.contains(&name) {
        polarity.shrinking = Some("arguments of tiers 0 and 1 may name it");
    }
    for rule in sides.iter().flat_map(|side| &side.set.rules) {
        for term in [&rule.when.writes, &rule.when.names] {
            if matches!(term, Some(SetTerm::In(zones)) if zones.contains(name)) {
                // A permit adds nothing where what no rule matches may run anyway.
                let unmatched = |side: &&Compiled| side.set.surfaces.get(&rule.surface).map(|info| info.unmatched);
                if sides.iter().filter_map(unmatched).any(|unmatched| rule.tier < unmatched) {
                    polarity.growth.get_or_insert("a rule permits requests about this zone");
                }
                if rule.tier.number() > 0 {
                    polarity.shrinking.get_or_insert("a rule restricts requests about this zone");
                }
            }
        }
    }
    polarity
}

fn zone_changes(
    old: &Compiled,
    new: &Compiled,
    (old_zones, new_zones): (&ZoneMatcher, &ZoneMatcher),
    out: &mut Vec<Finding>,
) {
    let names: BTreeSet<&str> = old.set.config.zones.names().chain(new.set.config.zones.names()).collect();
    for name in names {
        let (was, is) = (old.set.config.zones.get(name), new.set.config.zones.get(name));
        if was.map(|(patterns, _)| patterns) == is.map(|(patterns, _)| patterns) {
            continue;
        }
        let text = |patterns: Option<(&BTreeSet<crate::model::PathPattern>, Span)>| -> String {
            patterns.into_iter().flat_map(|(p, _)| p).map(ToString::to_string).collect()
        };
        let alphabet = format!("{}{}roothomeUsers", text(was), text(is));
        let here = is.map_or_else(|| Span::new(new.set.config.file, 0, 0), |(_, span)| span);
        let polarity = polarity(name, [old, new]);
        for (larger, smaller, verb, reason) in
            [(new_zones, old_zones, "gains", polarity.growth), (old_zones, new_zones, "loses", polarity.shrinking)]
        {
            let Some(path) = larger.path_beyond(name, smaller, &alphabet) else { continue };
            let message = match reason {
                Some(reason) => format!("zone `{name}` {verb} `{path}`: {reason}"),
                None => format!("zone `{name}` {verb} `{path}`"),
            };
            let mut finding = finding(reason.is_some(), here, message, evidence(&path));
            if let Some((_, span)) = was {
                finding = finding.related(span, "the zone before");
            }
            if reason.is_some() {
                finding = finding.help("undo the change of the zone, or have it approved as what it is");
            }
            out.push(finding);
        }
    }
}

/// Guardrails only take away, so one that is gone or changed may let something through.
fn guardrails(old: &Compiled, new: &Compiled, out: &mut Vec<Finding>) {
    let here = Span::new(new.set.config.file, 0, 0);
    for guardrail in &old.guardrails {
        if !new.guardrails.iter().any(|g| g.text == guardrail.text) {
            out.push(
                finding(
                    true,
                    here,
                    format!("the guardrail `{}` is gone or has changed", guardrail.id),
                    evidence("any request that the guardrail stopped"),
                )
                .related(guardrail.span, "the guardrail before")
                .help("keep the old guardrail beside the new one to show that nothing is lost"),
            );
        }
    }
    for guardrail in &new.guardrails {
        if !old.guardrails.iter().any(|g| g.text == guardrail.text) {
            out.push(finding(
                false,
                guardrail.span,
                format!("the guardrail `{}` is new", guardrail.id),
                evidence("any request that the guardrail stops"),
            ));
        }
    }
}
