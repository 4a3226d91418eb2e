//! Capabilities: old against new, child within parent, and one version by itself (DESIGN 4 and 6).

mod compare;
mod enforce;
mod fields;
mod lint;
mod named;
mod paths;
mod space;

pub use enforce::{Enforcement, enforcement};
pub use lint::lint as lint_capabilities;

use std::collections::{BTreeMap, BTreeSet};

use self::compare::{CapabilityChange, CapabilitySide, newly_allowed};
use self::named::field;
use super::AnalyzeError;
use crate::compile::{
    CapabilityOrigin, CapabilityPolicy, CompileError, Compiled, capability_schema, capability_text, declared,
    policies_of, template_text,
};
use crate::decide::CapabilityDecider;
use crate::diag::{Code, Evidence, Finding};
use crate::model::{CapabilityRequest, Manifest, RiskTier, Subject};
use crate::source::{SourceMap, Span};

/// Policies by the subject that they are about; guardrails by themselves.
struct BySubject<'a> {
    guardrails: Vec<&'a CapabilityPolicy>,
    of: BTreeMap<&'a Subject, Vec<&'a CapabilityPolicy>>,
}

impl<'a> BySubject<'a> {
    fn new(policies: &'a [CapabilityPolicy]) -> Self {
        let mut out = BySubject { guardrails: Vec::new(), of: BTreeMap::new() };
        for policy in policies {
            match &policy.subject {
                Some(subject) => out.of.entry(subject).or_default().push(policy),
                None => out.guardrails.push(policy),
            }
        }
        out
    }

    fn about(&self, subject: &Subject) -> Vec<&'a CapabilityPolicy> {
        let own = self.of.get(subject).into_iter().flatten();
        self.guardrails.iter().chain(own).copied().collect()
    }
}

/// Findings about manifests that differ, widening and narrowing.
pub(super) fn compare(old: &Compiled, new: &Compiled, map: &SourceMap) -> Result<Vec<Finding>, AnalyzeError> {
    let mut findings = Vec::new();
    if old.set.manifests.is_empty() && new.set.manifests.is_empty() {
        return Ok(findings);
    }
    let (was, is) = (BySubject::new(&old.capabilities), BySubject::new(&new.capabilities));
    let subjects: BTreeSet<&Subject> = was.of.keys().chain(is.of.keys()).copied().collect();
    let mut differing: Vec<&CapabilityPolicy> = Vec::new();
    let mut before = CapabilityDecider::of(old.capabilities.iter().collect(), &[], map);
    let mut after = CapabilityDecider::of(new.capabilities.iter().collect(), &[], map);
    for subject in subjects {
        let (from, to) = (was.about(subject), is.about(subject));
        let fresh = |own: &[&CapabilityPolicy], other: &[&CapabilityPolicy]| {
            own.iter().any(|p| !other.iter().any(|o| o.says_the_same(p)))
        };
        if !fresh(&from, &to) && !fresh(&to, &from) {
            continue;
        }
        differing.extend(to.iter().filter(|p| !from.iter().any(|o| o.says_the_same(p))));
        let mut from = CapabilitySide { policies: from, decider: &mut before };
        let mut to = CapabilitySide { policies: to, decider: &mut after };
        let place = |set: &[Manifest]| set.iter().find(|m| m.subject == *subject).map(|m| m.span);
        let fallback = place(&new.set.manifests).unwrap_or(Span::new(new.set.config.file, 0, 0));
        for change in newly_allowed(subject, &mut from, &mut to)? {
            let field = field(&change, &mut from)?;
            findings.push(widening(&change, subject, field, fallback));
        }
        for change in newly_allowed(subject, &mut to, &mut from)? {
            findings.push(narrowing(&change, subject, fallback));
        }
    }
    // Templates say the same as their policies; they are validated when they are written.
    validate(&differing, false, map)?;
    fields::compare(old, new, &mut findings);
    Ok(findings)
}

/// Strict validation of every policy about capabilities of a set.
///
/// # Errors
///
/// [`CompileError`]: a defect.
pub fn validate_capabilities(compiled: &Compiled, map: &SourceMap) -> Result<(), CompileError> {
    validate(&compiled.capabilities.iter().collect::<Vec<_>>(), true, map)
}

/// Whether a manifest stays within another, of the same set or of another one.
///
/// # Errors
///
/// [`AnalyzeError`]: defects, never verdicts.
pub fn within(
    parent: &Manifest,
    child: &Manifest,
    compiled: &Compiled,
    map: &SourceMap,
) -> Result<Vec<Finding>, AnalyzeError> {
    exceeding((child, compiled), (parent, compiled), map)
}

/// Strict validation of policies, and of their templates.
fn validate(policies: &[&CapabilityPolicy], templates: bool, map: &SourceMap) -> Result<(), CompileError> {
    if policies.is_empty() {
        return Ok(());
    }
    let (schema, _) = cedar_policy::Schema::from_cedarschema_str(&capability_schema())
        .map_err(|e| CompileError::Parse { what: "schema".into(), source: Box::new(e) })?;
    let mut set = cedar_policy::PolicySet::new();
    let mut seen: BTreeSet<&str> = BTreeSet::new();
    for policy in policies.iter().filter(|policy| seen.insert(policy.id.as_str())) {
        let failed =
            |source: Box<dyn std::error::Error + Send + Sync>| CompileError::Parse { what: policy.id.clone(), source };
        let id = cedar_policy::PolicyId::new(&policy.id);
        let parsed =
            cedar_policy::Policy::parse(Some(id), capability_text(policy, map)).map_err(|e| failed(Box::new(e)))?;
        set.add(parsed).map_err(|e| failed(Box::new(e)))?;
        if let Some(template) = template_text(policy, map).filter(|_| templates) {
            let id = cedar_policy::PolicyId::new(format!("{}/template", policy.id));
            let parsed = cedar_policy::Template::parse(Some(id), template).map_err(|e| failed(Box::new(e)))?;
            set.add_template(parsed).map_err(|e| failed(Box::new(e)))?;
        }
    }
    match cedar_policy::Validator::new(schema)
        .validate(&set, cedar_policy::ValidationMode::Strict)
        .validation_errors()
        .next()
    {
        Some(error) => Err(CompileError::Validation { message: error.to_string() }),
        None => Ok(()),
    }
}

/// Everything that `child` allows and `parent` does not: whether the child stays within it.
pub(super) fn exceeding(
    child: (&Manifest, &Compiled),
    parent: (&Manifest, &Compiled),
    map: &SourceMap,
) -> Result<Vec<Finding>, AnalyzeError> {
    let subject = &child.0.subject;
    // The parent is asked as if it were about the child's subject. What stands beside a set is compared with
    // all that it grants: an integration may declare it any day.
    let mut all: BTreeSet<&str> = declared(&child.1.set).into_iter().chain(declared(&parent.1.set)).collect();
    for (manifest, compiled) in [child, parent] {
        if !compiled.set.manifests.iter().any(|own| own.path == manifest.path) {
            all.extend(manifest.declares.keys().chain(manifest.grants.keys()).map(String::as_str));
        }
    }
    let (mut from, to) = (policies_of(parent.0, subject, &all), policies_of(child.0, subject, &all));
    let guardrails = |compiled: &Compiled| -> Vec<CapabilityPolicy> {
        compiled.capabilities.iter().filter(|p| p.subject.is_none()).cloned().collect()
    };
    // One id for each policy on either side.
    for policy in &mut from {
        policy.id.insert_str(0, "parent/");
    }
    let own = guardrails(child.1);
    let from: Vec<&CapabilityPolicy> = own.iter().chain(&from).collect();
    let to: Vec<&CapabilityPolicy> = own.iter().chain(&to).collect();
    let mut above = CapabilityDecider::of(from.clone(), &[], map);
    let mut below = CapabilityDecider::of(to.clone(), &[], map);
    let mut from = CapabilitySide { policies: from, decider: &mut above };
    let mut to = CapabilitySide { policies: to, decider: &mut below };
    let mut findings = Vec::new();
    for change in newly_allowed(subject, &mut from, &mut to)? {
        let field = field(&change, &mut from)?;
        let here = change.permit.span().unwrap_or(child.0.span);
        let message = format!(
            "{subject} allows `{}`{} at `{}`, and its parent, {}, does not; the field is `{field}`",
            change.request.target,
            circumstances(&change.request),
            rung(change.rungs.first().copied()),
            parent.0.subject,
        );
        findings.push(
            Finding::new(Code::ATTENUATION, here, message)
                .evidence(evidence(&change))
                .related(parent.0.span, "the parent")
                .help("narrow the child, or have the parent's owner widen the parent first"),
        );
    }
    fields::within(parent.0, child.0, &mut findings);
    Ok(findings)
}

/// A rung by its name; refused where there is none.
fn rung(rung: Option<u8>) -> &'static str {
    rung.and_then(|rung| RiskTier::ALL.get(usize::from(rung))).map_or("refused", |tier| tier.name())
}

fn evidence(change: &CapabilityChange<'_>) -> Evidence {
    Evidence {
        surface: "capabilities".into(),
        rungs: change.rungs.clone(),
        witness: change.request.target.to_string(),
        assumes: change.request.assumptions(),
        replay: None,
        old_tier: change.rung_from,
        new_tier: change.rung_to,
        request: None,
    }
}

/// The circumstances of a request, behind its text.
fn circumstances(request: &CapabilityRequest) -> String {
    let assumed = request.assumptions();
    if assumed.is_empty() { String::new() } else { format!(" ({})", assumed.join("; ")) }
}

fn widening(change: &CapabilityChange<'_>, subject: &Subject, field: &str, fallback: Span) -> Finding {
    let message = format!(
        "{subject}: `{}`{} goes from {} to {}; the field is `{field}`",
        change.request.target,
        circumstances(&change.request),
        rung(change.rung_from),
        rung(change.rung_to),
    );
    let here = match change.permit.origin {
        CapabilityOrigin::Entry { span } => span,
        CapabilityOrigin::Guardrail(_) => fallback,
    };
    let mut finding = Finding::new(Code::WIDENING, here, message).evidence(evidence(change));
    if let Some(gone) = change.gone {
        finding = match gone.span() {
            Some(span) => finding.related(span, "what stopped it before"),
            None => finding,
        };
    }
    finding.help("narrow the entry, raise its tier, or have the change approved as what it is")
}

fn narrowing(change: &CapabilityChange<'_>, subject: &Subject, fallback: Span) -> Finding {
    // Seen from the other side: `to` is the old version here.
    let message = format!(
        "{subject}: `{}`{} goes from {} to {}",
        change.request.target,
        circumstances(&change.request),
        rung(change.rung_to),
        rung(change.rung_from),
    );
    let mut evidence = evidence(change);
    std::mem::swap(&mut evidence.old_tier, &mut evidence.new_tier);
    Finding::new(Code::NARROWING, fallback, message).evidence(evidence)
}
