//! Findings of a comparison, read back: the request that a witness shows.

use std::collections::BTreeSet;

use polctl::diag::{Code, Evidence, Finding};
use polctl::model::{CapabilityRequest, Class, Lifecycle, Manifest, Subject, Target};
use polctl::parse::capability_request;

use super::reading::{Facts, read};

fn between<'a>(text: &'a str, head: &str, tail: &str) -> Option<&'a str> {
    text.strip_prefix(head)?.strip_suffix(tail)
}

/// The request that evidence shows, to a subject.
pub fn request(evidence: &Evidence, subject: &Subject) -> CapabilityRequest {
    let tls_inspect = !evidence.assumes.iter().any(|text| text == "the proxy cannot look into the connection");
    let mut out = capability_request(&format!("{subject}: {}", evidence.witness)).unwrap();
    if let Target::NetEgress { tls_inspect: at, .. } = &mut out.target {
        *at = tls_inspect;
    }
    for text in &evidence.assumes {
        if let Some(name) = between(text, "in the workspace `", "`") {
            name.clone_into(&mut out.workspace);
        } else if let Some(name) = between(text, "by the persona `", "`") {
            name.clone_into(&mut out.persona);
        } else if let Some(name) = between(text, "with the lifecycle `", "`") {
            out.lifecycle = Lifecycle::from_name(name).unwrap();
        } else if let Some(time) = text.strip_prefix("at ") {
            out.now = time.parse::<jiff::Timestamp>().unwrap().as_second();
        } else if text == "inputs come from outside the session" {
            out.external = true;
        } else if text == "the session has seen something sensitive" {
            out.sensitive = true;
        } else if let Some(peer) = text.strip_prefix("the proxy connects to ") {
            let Target::NetEgress { peer: at, .. } = &mut out.target else { panic!("{evidence:?}") };
            *at = Some(peer.parse().unwrap());
        }
    }
    out
}

/// The lowest rung of some answers, as evidence gives it.
fn tier(answers: &[bool]) -> Option<u8> {
    answers.iter().position(|allowed| *allowed).map(|at| u8::try_from(at).unwrap())
}

/// Why the evidence of a finding is not what the reading says; `None` when it is.
pub fn wrong(
    evidence: &Evidence,
    facts: &Facts,
    old: (&[Manifest], &Subject),
    new: (&[Manifest], &Subject),
) -> Option<String> {
    let at = |(manifests, subject): (&[Manifest], &Subject)| read(manifests, facts, &request(evidence, subject));
    let (was, is) = (at(old), at(new));
    let differs: Vec<u8> = (0..3).filter(|rung| was[usize::from(*rung)] != is[usize::from(*rung)]).collect();
    let good = differs == evidence.rungs && tier(&was) == evidence.old_tier && tier(&is) == evidence.new_tier;
    (!good).then(|| format!("{evidence:?}\nby the document {was:?} to {is:?}"))
}

/// Whether evidence is about a field that is no request (`ttl`): no rung decides it.
pub fn is_field(evidence: &Evidence) -> bool {
    evidence.rungs.is_empty()
}

/// The class and the rungs of the findings of a code, for each subject.
pub fn reported(findings: &[Finding], code: Code, subject: &Subject) -> BTreeSet<(Class, u8)> {
    let head = format!("{subject}: ");
    let own = findings.iter().filter(|finding| finding.code == code && finding.message.starts_with(&head));
    own.filter_map(|finding| finding.evidence.as_ref())
        .filter(|evidence| !is_field(evidence))
        .flat_map(|evidence| {
            let class = request(evidence, subject).target.class();
            evidence.rungs.iter().map(move |rung| (class, *rung)).collect::<Vec<_>>()
        })
        .collect()
}
