//! A compiled set as the page shows it.

use crate::analyze::{Coverage, Sampled};
use crate::compile::Compiled;
use crate::model::{Item, Manifest, Matcher, Provenance, Rule, Surface, Tier};
use crate::report::{EntryView, Instance, RuleView, SettingView, SubjectView, SurfaceView};

/// The surfaces with their rules. `coverage`: one for each rule of the set.
pub(super) fn surfaces(compiled: &Compiled, coverage: Vec<Coverage>) -> Vec<SurfaceView> {
    let views: Vec<(Surface, RuleView)> = compiled
        .set
        .rules
        .iter()
        .zip(coverage)
        .map(|(rule, coverage)| (rule.surface, self::rule(rule, coverage)))
        .collect();
    let mut out: Vec<SurfaceView> = Vec::new();
    for (surface, info) in &compiled.set.surfaces {
        let effects = (0..=4).filter_map(Tier::new).map(|tier| tier.effect(*surface)).collect();
        let (name, unmatched) = (surface.name(), info.unmatched.number());
        out.push(SurfaceView { name, unmatched, span: info.span, effects, rules: Vec::new() });
    }
    for (surface, view) in views {
        if let Some(own) = out.iter_mut().find(|other| other.name == surface.name()) {
            own.rules.push(view);
        }
    }
    out
}

fn rule(rule: &Rule, coverage: Coverage) -> RuleView {
    let (covered, sampled) = match coverage {
        Coverage::Covered => (true, None),
        Coverage::Uncovered(sampled) => (false, sampled),
    };
    RuleView {
        tier: rule.tier.number(),
        pattern: rule.pattern_text(),
        conditions: conditions(rule),
        why: rule.why.clone(),
        span: rule.span,
        examples: rule.examples.iter().map(|example| (example.text.clone(), example.matches)).collect(),
        covered,
        instance: sampled.map(|Sampled { line, assumes, tier }| Instance { line, assumes, tier }),
    }
}

/// What a rule says beside its pattern, as it would be written.
fn conditions(rule: &Rule) -> Vec<(&'static str, String)> {
    let items = |items: &[Item]| items.iter().map(Item::to_string).collect::<Vec<_>>().join(", ");
    let mut out = Vec::new();
    match &rule.matcher {
        Matcher::Command { with, only, unless, run_as, .. } => {
            out.extend(with.iter().map(|list| ("with", items(list))));
            out.extend(only.iter().map(|list| ("only", items(list))));
            out.push(("unless", items(unless)));
            out.push(("run as", run_as.join(", ")));
        }
        Matcher::Egress { secrets, .. } => out.push(("secret", secrets.join(", "))),
    }
    out.push(("when", rule.when.to_string()));
    out.push(("agents", rule.agents.join(", ")));
    out.push(("hosts", rule.hosts.join(", ")));
    // An empty `only` says something: no option at all.
    out.retain(|(name, values)| *name == "only" || !values.is_empty());
    out
}

pub(super) fn subjects(compiled: &Compiled) -> Vec<SubjectView> {
    compiled.set.manifests.iter().map(subject).collect()
}

fn subject(manifest: &Manifest) -> SubjectView {
    let entries = manifest.entries.iter().map(|entry| EntryView {
        name: entry.scope.class().name().to_owned(),
        tier: Some(entry.tier.name()),
        span: entry.span,
    });
    let grants = manifest.grants.values().map(|grant| EntryView {
        name: grant.capability.clone(),
        tier: None,
        span: grant.span,
    });
    SubjectView {
        name: manifest.subject.to_string(),
        parent: manifest.parent.as_ref().map(|(path, _)| path.clone()),
        span: manifest.span,
        entries: entries.chain(grants).collect(),
    }
}

/// Everything that the effect of a rule can depend on beside itself.
pub(super) fn settings(compiled: &Compiled) -> Vec<SettingView> {
    let config = &compiled.set.config;
    let mut out = Vec::new();
    for name in config.zones.names() {
        if let Some((patterns, span)) = config.zones.get(name) {
            let values = patterns.iter().map(ToString::to_string).collect();
            out.push(SettingView { name: format!("zone {name}"), values, span: Some(span) });
        }
    }
    let mut push = |name: &str, values: Vec<String>, span| out.push(SettingView { name: name.into(), values, span });
    push("trusted directories", config.trusted_dirs.clone(), Some(config.trusted_dirs_span));
    push("environment variables that tiers 0 and 1 may set", config.allowed_env.clone(), Some(config.allowed_env_span));
    let provenance = if config.provenance == Provenance::Enforce { "enforced" } else { "switched off" };
    push("inputs from outside the session are held back", vec![provenance.into()], Some(config.provenance_span));
    for guardrail in &compiled.guardrails {
        push("guardrail", vec![guardrail.id.clone(), guardrail.text.trim().to_owned()], Some(guardrail.span));
    }
    out
}
