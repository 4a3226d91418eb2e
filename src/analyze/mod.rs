//! Findings about policy: old against new, and one version by itself (DESIGN 6).
//!
//! Owns the verdict. Everything that cannot be decided becomes an `inconclusive` finding;
//! nothing here ever treats "unknown" as "fine".

mod alike;
mod capability;
mod compare;
mod configuration;
mod coverage;
pub mod exact;
mod explain;
mod inventory;
mod lint;
mod overview;
mod plain;
mod sample;
mod second;
mod short;
pub mod smt;
mod typed;

pub use capability::{Enforcement, enforcement, lint_capabilities, validate_capabilities, within};
pub use compare::{Change, Changes, Open, Side, newly_allowed};
pub use coverage::{Coverage, Sampled, coverage};
pub use lint::lint;
pub use overview::overview;
pub use plain::diff_plain;
pub use second::Engines;

use compare::{Numbers, newly_allowed_numbered};

use std::collections::{BTreeMap, HashSet};
use std::ops::Range;

use crate::compile::{CompileError, Compiled, Effect, Policy, compile, render, schema_of};
use crate::decide::Decider;
use crate::diag::Finding;
use crate::model::Surface;
use crate::source::SourceMap;
use exact::{Bound, Space};
use smt::{Engine, SmtError};
use typed::Version;

/// What stops an analysis.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
#[non_exhaustive]
pub enum AnalyzeError {
    /// Generated Cedar is not what it should be.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Compile(#[from] CompileError),
    /// The symbolic engine is not what it should be.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Smt(#[from] SmtError),
}

/// Compares two versions. Findings for every widening, narrowing and open question.
///
/// # Errors
///
/// [`AnalyzeError`]: defects, never verdicts.
pub fn diff(old: &Compiled, new: &Compiled, map: &SourceMap) -> Result<Vec<Finding>, AnalyzeError> {
    // No place, no solver: what needs one is inconclusive.
    let mut engine = Engine::new(smt::solver::Places::default(), smt::solver::Limits::USUAL);
    diff_by(Engines::Exact, &mut engine, old, new, map)
}

/// The same, by these engines.
///
/// # Errors
///
/// As [`diff`].
pub fn diff_by(
    engines: Engines,
    engine: &mut Engine,
    old: &Compiled,
    new: &Compiled,
    map: &SourceMap,
) -> Result<Vec<Finding>, AnalyzeError> {
    let (old_zones, new_zones) = (old.set.config.zones.matcher(), new.set.config.zones.matcher());
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
    findings.extend(inventory::compare(&old.set, &new.set));
    findings.extend(capability::compare(old, new, map)?);
    let spaces: BTreeMap<Surface, Space<'_>> = Surface::ALL
        .into_iter()
        .map(|surface| (surface, Space::new(surface, &new_zones, &new.set.config.zones)))
        .collect();
    let (old_side, new_side) = (Side::new(old), Side::new(new));
    let (mut old_decider, mut new_decider) = (Decider::new(old, map), Decider::new(new, map));
    let numbers = Numbers::new(old, new);
    validate_difference((old, &numbers.from), (new, &numbers.to), map)?;
    let mut wider = newly_allowed_numbered(
        &spaces,
        (&old_side, &new_side),
        (&mut old_decider, &mut new_decider),
        &numbers,
        Bound::USUAL,
    )?;
    if engines != Engines::Exact || !wider.open.is_empty() || !old.opaque.is_empty() {
        let run = second::Run::new(old, new, &numbers, &new_zones, map)?;
        findings.extend(second::join(&run, engines, engine, (&mut old_decider, &mut new_decider), &mut wider)?);
        for change in wider.found.iter_mut().filter(|c| c.tier_from.is_none() && c.tier_to.is_none()) {
            let facts = change.witness.facts(&new_zones);
            change.tier_from = old_decider.tier(change.surface, &facts)?;
            change.tier_to = new_decider.tier(change.surface, &facts)?;
        }
    }
    let numbers = numbers.swapped();
    // The old version's own zones have the last word on what it allowed.
    let mut kept = Vec::new();
    for change in std::mem::take(&mut wider.found) {
        let facts = change.witness.facts(&old_zones);
        let mut allowed = false;
        for rung in &change.rungs {
            allowed |= old_decider.allows(change.surface, &facts, *rung)?;
        }
        if allowed {
            let reason = "zones and rules changed together, and the witness depends on both; change them in two steps";
            wider.open.push(Open { policy: change.permit, in_to: true, reason });
        } else {
            kept.push(change);
        }
    }
    wider.found = kept;
    as_typed(
        &mut wider.found,
        Version { decider: &mut old_decider, zones: &old_zones },
        Version { decider: &mut new_decider, zones: &new_zones },
    )?;
    let mut narrower = newly_allowed_numbered(
        &spaces,
        (&new_side, &old_side),
        (&mut new_decider, &mut old_decider),
        &numbers,
        Bound::USUAL,
    )?;
    as_typed(
        &mut narrower.found,
        Version { decider: &mut new_decider, zones: &new_zones },
        Version { decider: &mut old_decider, zones: &old_zones },
    )?;
    let explainer = explain::Explainer::new(old, new);
    for change in &wider.found {
        findings.push(explainer.widening(change));
    }
    for change in &narrower.found {
        findings.push(explain::narrowing(change, old, new));
    }
    for open in &wider.open {
        findings.push(explain::inconclusive(open, old, new, "is newly permitted"));
    }
    for open in &narrower.open {
        let mut finding = explain::inconclusive(open, new, old, "is no longer permitted");
        finding.level = crate::diag::Level::Note;
        findings.push(finding);
    }
    Ok(findings)
}

/// Gives each change its line, where one shows it, with the line's own decisions.
fn as_typed<'a>(
    changes: &mut [compare::Change<'a>],
    mut from: Version<'_, 'a>,
    mut to: Version<'_, 'a>,
) -> Result<(), CompileError> {
    for change in changes {
        if let Some((line, (before, after))) = typed::typed(&change.witness, &change.rungs, &mut from, &mut to)? {
            change.typed = Some(line);
            (change.tier_from, change.tier_to) = (before, after);
        }
    }
    Ok(())
}

/// A version and the numbers of its policies' conditions.
type NumberedSet<'a> = (&'a Compiled, &'a [u32]);

/// Strict validation of every policy that the other version does not have.
fn validate_difference(old: NumberedSet<'_>, new: NumberedSet<'_>, map: &SourceMap) -> Result<(), AnalyzeError> {
    fn keys((set, numbers): NumberedSet<'_>) -> impl Iterator<Item = (&Policy, (Surface, Effect, Range<u8>, u32))> {
        set.policies.iter().zip(numbers).map(|(p, number)| (p, (p.surface, p.effect, p.rungs.clone(), *number)))
    }
    for (own, other) in [(new, old), (old, new)] {
        let known: HashSet<_> = keys(other).map(|(_, key)| key).collect();
        let differing: Vec<&Policy> =
            keys(own).filter(|(p, key)| p.is_generated() && !known.contains(key)).map(|(p, _)| p).collect();
        validate(own.0, &differing, map)?;
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
    let (schema, _) = cedar_policy::Schema::from_cedarschema_str(&schema_of(&compiled.set))
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
