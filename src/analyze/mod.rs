//! Findings about policy: old against new, and one version by itself (DESIGN 6).
//!
//! Owns the verdict. Everything that cannot be decided becomes an `inconclusive` finding;
//! nothing here ever treats "unknown" as "fine".

mod compare;
mod configuration;
pub mod exact;
mod lint;
mod sample;

pub use compare::{Change, Changes, Open, Side, newly_allowed};
pub use lint::lint;

use std::collections::BTreeMap;

use crate::compile::{CompileError, Compiled, Origin, Policy, compile, render, schema_text};
use crate::decide::Decider;
use crate::diag::{Code, Evidence, Finding};
use crate::model::Surface;
use crate::source::{SourceMap, Span};
use exact::{Bound, Space};

/// What stops an analysis.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
#[non_exhaustive]
pub enum AnalyzeError {
    /// Generated Cedar is not what it should be.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Compile(#[from] CompileError),
}

/// Compares two versions. Findings for every widening, narrowing and open question.
///
/// # Errors
///
/// [`AnalyzeError`]: defects, never verdicts.
pub fn diff(old: &Compiled, new: &Compiled, map: &SourceMap) -> Result<Vec<Finding>, AnalyzeError> {
    let (old_zones, new_zones) = (old.set.config.zones.matcher(), new.set.config.zones.matcher());
    validate_difference(old, new, map)?;
    let mut findings = configuration::compare(old, new, (&old_zones, &new_zones), map)?;
    // Rules are compared under one configuration, the new one: what the configuration itself
    // lets through was reported above, once and not once for every rule.
    let (was, is) = (&old.set.config, &new.set.config);
    let adapted;
    let old = if was.allowed_env == is.allowed_env && was.provenance == is.provenance {
        old
    } else {
        let mut set = old.set.clone();
        set.config.allowed_env.clone_from(&is.allowed_env);
        set.config.provenance = is.provenance;
        adapted = compile(set, old.guardrails.clone());
        &adapted
    };
    let spaces: BTreeMap<Surface, Space<'_>> = Surface::ALL
        .into_iter()
        .map(|surface| (surface, Space::new(surface, &new_zones, &new.set.config.zones)))
        .collect();
    let (old_side, new_side) = (Side::new(old), Side::new(new));
    let (mut old_decider, mut new_decider) = (Decider::new(old, map), Decider::new(new, map));
    let wider = newly_allowed(&spaces, &old_side, &new_side, (&mut old_decider, &mut new_decider), Bound::USUAL)?;
    let narrower = newly_allowed(&spaces, &new_side, &old_side, (&mut new_decider, &mut old_decider), Bound::USUAL)?;
    for change in &wider.found {
        findings.push(widening(change, old, new, map));
    }
    for change in &narrower.found {
        findings.push(narrowing(change, old, new));
    }
    for open in &wider.open {
        findings.push(inconclusive(open, old, new, "is newly permitted"));
    }
    for open in &narrower.open {
        let mut finding = inconclusive(open, new, old, "is no longer permitted");
        finding.level = crate::diag::Level::Note;
        findings.push(finding);
    }
    Ok(findings)
}

/// Strict validation of every policy that the other version does not have.
fn validate_difference(old: &Compiled, new: &Compiled, map: &SourceMap) -> Result<(), AnalyzeError> {
    for (own, other) in [(new, old), (old, new)] {
        let known: std::collections::HashSet<_> =
            other.policies.iter().map(|p| (p.surface, p.effect, p.rungs.clone(), p.clauses.as_slice())).collect();
        let differing: Vec<&Policy> = own
            .policies
            .iter()
            .filter(|p| !known.contains(&(p.surface, p.effect, p.rungs.clone(), p.clauses.as_slice())))
            .collect();
        validate(own, &differing, map)?;
    }
    Ok(())
}

/// Strict validation of some policies of a set.
///
/// # Errors
///
/// [`CompileError`] when the generated text is not valid: a defect.
pub fn validate(compiled: &Compiled, policies: &[&Policy], map: &SourceMap) -> Result<(), CompileError> {
    if policies.is_empty() {
        return Ok(());
    }
    let (schema, _) = cedar_policy::Schema::from_cedarschema_str(&schema_text(compiled.set.surfaces.keys().copied()))
        .map_err(|e| CompileError::Parse { what: "schema".into(), source: Box::new(e) })?;
    let mut set = cedar_policy::PolicySet::new();
    for policy in policies {
        set.add(render(compiled, policy, map).parse()?)
            .map_err(|e| CompileError::Parse { what: policy.id.clone(), source: Box::new(e) })?;
    }
    let result = cedar_policy::Validator::new(schema).validate(&set, cedar_policy::ValidationMode::Strict);
    match result.validation_errors().next() {
        Some(error) => Err(CompileError::Validation { message: error.to_string() }),
        None => Ok(()),
    }
}

/// Where a policy stands: its rule, or the surface's declaration.
fn place(compiled: &Compiled, policy: &Policy) -> Span {
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
        (None, _) => "a built-in guardrail".into(),
    }
}

fn evidence(change: &Change<'_>, old_tier: Option<u8>, new_tier: Option<u8>) -> Evidence {
    Evidence {
        surface: change.surface.name().into(),
        rungs: change.rungs.iter().copied().collect(),
        witness: change.witness.to_line(),
        assumes: change.witness.assumptions(),
        old_tier,
        new_tier,
    }
}

/// `denied`, or `tier 2`.
fn decision(tier: Option<u8>) -> String {
    tier.map_or_else(|| "denied".to_owned(), |t| format!("tier {t}"))
}

/// The message's head: witness, both decisions, and what the line does not show.
fn headline(evidence: &Evidence) -> String {
    let mut text =
        format!("`{}` goes from {} to {}", evidence.witness, decision(evidence.old_tier), decision(evidence.new_tier));
    if !evidence.assumes.is_empty() {
        text.push_str(&format!(" ({})", evidence.assumes.join("; ")));
    }
    text
}

fn widening(change: &Change<'_>, old: &Compiled, new: &Compiled, map: &SourceMap) -> Finding {
    let evidence = evidence(change, change.tier_from, change.tier_to);
    let permits = describe(new, change.permit);
    let Some(gone) = change.gone else {
        return Finding::new(Code::WIDENING, place(new, change.permit), headline(&evidence))
            .label(format!("{permits} permits it now"))
            .help("narrow the rule (a longer pattern, `with`, `only`, `unless`), raise its tier, or have the change approved as what it is")
            .evidence(evidence);
    };
    let stopped = format!("{} stopped it", describe(old, gone));
    let help = format!(
        "bring back {} ({}), or have the change approved as what it is",
        describe(old, gone),
        map.line_ref(place(old, gone))
    );
    let finding = if new.rule_of(change.permit).is_some() {
        Finding::new(Code::WIDENING, place(new, change.permit), headline(&evidence))
            .label(format!("{permits} permits it now"))
            .related(place(old, gone), stopped)
    } else {
        // What permits it now is no rule that anybody wrote: the one that is gone says more.
        Finding::new(Code::WIDENING, place(old, gone), headline(&evidence))
            .label(format!("{stopped}; {permits} permits it now"))
            .related(place(new, change.permit), format!("{permits} permits it now"))
    };
    finding.help(help).evidence(evidence)
}

fn narrowing(change: &Change<'_>, old: &Compiled, new: &Compiled) -> Finding {
    let evidence = evidence(change, change.tier_to, change.tier_from);
    let finding = match change.gone {
        Some(gone) => Finding::new(Code::NARROWING, place(new, gone), headline(&evidence))
            .label(format!("{} stops it now", describe(new, gone))),
        None => Finding::new(Code::NARROWING, place(old, change.permit), headline(&evidence))
            .label(format!("{} permitted it", describe(old, change.permit))),
    };
    finding.evidence(evidence)
}

fn inconclusive(open: &Open<'_>, from: &Compiled, to: &Compiled, what: &str) -> Finding {
    let owner = if open.in_to { to } else { from };
    Finding::new(
        Code::INCONCLUSIVE,
        place(owner, open.policy),
        format!("it could not be decided whether a request {what} here: {}", open.reason),
    )
    .help("split the rule into simpler ones, or compare in smaller steps; this is never a pass")
}
