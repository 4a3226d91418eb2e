//! Fields that are no request, each by its own order (DESIGN 4): the direction in which it lets
//! more happen is stated here, and a step in that direction is a widening.

use std::collections::{BTreeMap, BTreeSet};

use crate::compile::{Compiled, declared};
use crate::diag::{Code, Evidence, Finding};
use crate::model::{Grant, Manifest, Rate, Retry, Seconds, Subject};
use crate::source::Span;

/// A field in two versions.
struct Field<'a> {
    name: &'a str,
    before: String,
    after: String,
    /// What the wider value lets happen.
    means: &'a str,
}

/// What a step from one value to another does.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    Wider,
    Narrower,
    Same,
}

/// More lets more happen; without bound is the most.
fn bound<T: PartialOrd>(before: Option<T>, after: Option<T>) -> Step {
    match (before, after) {
        (None, None) => Step::Same,
        (None, Some(_)) => Step::Narrower,
        (Some(_), None) => Step::Wider,
        (Some(before), Some(after)) if after > before => Step::Wider,
        (Some(before), Some(after)) if after < before => Step::Narrower,
        _ => Step::Same,
    }
}

fn switch(before: bool, after: bool) -> Step {
    match (before, after) {
        (false, true) => Step::Wider,
        (true, false) => Step::Narrower,
        _ => Step::Same,
    }
}

/// A rate that is within the other on neither side may be more over some time, so it is wider.
fn rate(before: Option<Rate>, after: Option<Rate>) -> Step {
    match (before, after) {
        (Some(before), Some(after)) if before == after => Step::Same,
        (Some(before), Some(after)) if after.is_within(before) => Step::Narrower,
        (Some(_), Some(_)) => Step::Wider,
        (before, after) => bound(before.map(|_| 0), after.map(|_| 0)),
    }
}

fn time(value: Option<u64>) -> String {
    value.map_or("without end".to_owned(), |seconds| Seconds(seconds).to_string())
}

fn shown<T: std::fmt::Display>(value: Option<T>) -> String {
    value.map_or("without bound".to_owned(), |value| value.to_string())
}

/// The fields of a grant, each with its step.
fn of_grant(before: &Grant, after: &Grant) -> Vec<(Step, Field<'static>)> {
    let field = |name, before, after, means| Field { name, before, after, means };
    vec![
        (
            bound(before.ttl, after.ttl),
            field("ttl", time(before.ttl), time(after.ttl), "what was prepared and approved stays good for longer"),
        ),
        (
            bound(before.staleness, after.staleness),
            field("staleness", time(before.staleness), time(after.staleness), "an older payload may still run"),
        ),
        (
            switch(before.retry == Retry::Safe, after.retry == Retry::Safe),
            field("retry", before.retry.to_string(), after.retry.to_string(), "the action may happen more than once"),
        ),
        (
            switch(before.deferrable, after.deferrable),
            field(
                "deferrable",
                before.deferrable.to_string(),
                after.deferrable.to_string(),
                "its time stands still while the person is away",
            ),
        ),
        (
            rate(before.rate, after.rate),
            field("rate", shown(before.rate), shown(after.rate), "it may happen more often"),
        ),
        (
            bound(before.max_pending, after.max_pending),
            field("max_pending", shown(before.max_pending), shown(after.max_pending), "more may wait for one agent"),
        ),
    ]
}

fn finding(
    subject: &Subject,
    what: &str,
    step: Step,
    field: &Field<'_>,
    places: (Span, Option<Span>),
) -> Option<Finding> {
    let Field { name, before, after, means } = field;
    let code = match step {
        Step::Wider => Code::CAPABILITY_WIDENING,
        Step::Narrower => Code::NARROWING,
        Step::Same => return None,
    };
    let of = if what.is_empty() { String::new() } else { format!(" of `{what}`") };
    let tail = if step == Step::Wider { format!(": {means}") } else { String::new() };
    let witness = format!("{subject} {what} {name} {before} → {after}");
    let evidence = Evidence {
        surface: "capabilities".into(),
        rungs: Vec::new(),
        witness,
        assumes: Vec::new(),
        replay: None,
        old_tier: None,
        new_tier: None,
        request: None,
    };
    let mut finding =
        Finding::new(code, places.0, format!("{subject}: `{name}`{of} goes from {before} to {after}{tail}"))
            .evidence(evidence);
    if let Some(before) = places.1 {
        finding = finding.related(before, "the value before");
    }
    Some(if step == Step::Wider {
        finding.help("take it back, or have the change approved as what it is")
    } else {
        finding
    })
}

fn by_subject(manifests: &[Manifest]) -> BTreeMap<&Subject, &Manifest> {
    manifests.iter().map(|manifest| (&manifest.subject, manifest)).collect()
}

/// Old against new.
pub(super) fn compare(old: &Compiled, new: &Compiled, findings: &mut Vec<Finding>) {
    let (was, is) = (by_subject(&old.set.manifests), by_subject(&new.set.manifests));
    for (subject, after) in &is {
        let Some(before) = was.get(subject) else { continue };
        for (name, grant) in &after.grants {
            let Some(previous) = before.grants.get(name) else { continue };
            for (step, field) in of_grant(previous, grant) {
                findings.extend(finding(subject, name, step, &field, (grant.span, Some(previous.span))));
            }
        }
        let administrative = (before.administrative.is_some(), after.administrative.is_some());
        let field = Field {
            name: "administrative",
            before: administrative.0.to_string(),
            after: administrative.1.to_string(),
            means: "its entries may live until policy takes them back",
        };
        let place = after.administrative.unwrap_or(after.span);
        findings.extend(finding(
            subject,
            "",
            switch(administrative.0, administrative.1),
            &field,
            (place, before.administrative),
        ));
        let field = Field {
            name: "external",
            before: before.external.to_string(),
            after: after.external.to_string(),
            means: "its actions need no approval any more by being external",
        };
        findings.extend(finding(
            subject,
            "",
            switch(!before.external, !after.external),
            &field,
            (after.span, Some(before.span)),
        ));
        parent((before, &old.set.manifests), (after, &new.set.manifests), findings);
    }
    let (was, is) = (declared(&old.set), declared(&new.set));
    // Grants of other manifests that wait for a declaration begin to count with it; what they then
    // permit is found as a request. Here the declaration itself is told.
    let gone: BTreeSet<&str> = was.difference(&is).copied().collect();
    for capability in gone {
        let field = Field { name: "declares", before: "declared".into(), after: "not declared".into(), means: "" };
        let subject = old.set.manifests.iter().find(|m| m.declares.contains_key(capability));
        if let Some(manifest) = subject {
            let here = new
                .set
                .manifests
                .iter()
                .find(|m| m.subject == manifest.subject)
                .map_or(Span::new(new.set.config.file, 0, 0), |m| m.span);
            findings.extend(finding(&manifest.subject, capability, Step::Narrower, &field, (here, None)));
        }
    }
}

/// Another parent, or none, bounds the child by something else: what holds it is no longer what
/// was reviewed.
fn parent(
    (before, old): (&Manifest, &[Manifest]),
    (after, new): (&Manifest, &[Manifest]),
    findings: &mut Vec<Finding>,
) {
    // Whose manifest it is counts, not in which file it stands.
    let subject = |manifest: &Manifest, set: &[Manifest]| {
        let (path, _) = manifest.parent.as_ref()?;
        let found = set.iter().find(|m| m.path == *path).map(|m| m.subject.to_string());
        Some(found.unwrap_or_else(|| path.clone()))
    };
    let (was, is) = (subject(before, old), subject(after, new));
    if was == is {
        return;
    }
    let none = || "none".to_owned();
    let field = Field {
        name: "parent",
        before: was.clone().unwrap_or_else(none),
        after: is.clone().unwrap_or_else(none),
        means: "the manifest that it stays within is no longer the one that was reviewed",
    };
    let step = if was.is_none() { Step::Narrower } else { Step::Wider };
    let here = after.parent.as_ref().map_or(after.span, |(_, span)| *span);
    findings.extend(finding(&after.subject, "", step, &field, (here, before.parent.as_ref().map(|(_, span)| *span))));
}

/// A child within its parent: no grant of it may be looser.
pub(super) fn within(parent: &Manifest, child: &Manifest, findings: &mut Vec<Finding>) {
    for (name, grant) in &child.grants {
        let Some(above) = parent.grants.get(name) else { continue };
        for (step, field) in of_grant(above, grant) {
            if step == Step::Wider {
                let message = format!(
                    "{}: `{}` of `{name}` is {}, and its parent, {}, has {}",
                    child.subject, field.name, field.after, parent.subject, field.before
                );
                findings.push(
                    Finding::new(Code::ATTENUATION, grant.span, message)
                        .related(above.span, "the parent's grant")
                        .help("narrow the child, or have the parent's owner widen the parent first"),
                );
            }
        }
    }
}
