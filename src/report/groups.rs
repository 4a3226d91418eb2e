//! Findings as a reviewer reads them: by surface, then by effect and rung.
//!
//! Every finding is in exactly one group, and a group keeps the order of its findings.

use std::collections::BTreeMap;

use super::summary::{is_open, widens};
use crate::diag::{Code, Finding, Level};

/// What a finding of a comparison says; in order of weight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Effect {
    /// More is permitted.
    Widening,
    /// It could not be decided.
    Open,
    /// More is permitted, as approved.
    Approved,
    /// Less is permitted.
    Narrowing,
    /// It is about one version by itself.
    Other,
}

impl Effect {
    pub(super) fn of(finding: &Finding) -> Effect {
        match finding {
            f if widens(f) && f.level == Level::Note => Effect::Approved,
            f if widens(f) => Effect::Widening,
            f if is_open(f) => Effect::Open,
            f if f.code == Code::NARROWING => Effect::Narrowing,
            _ => Effect::Other,
        }
    }

    const fn words(self) -> &'static str {
        match self {
            Effect::Widening => "newly permitted",
            Effect::Open => "open questions",
            Effect::Approved => "permitted from now on, as approved",
            Effect::Narrowing => "no longer permitted",
            Effect::Other => "findings about one version",
        }
    }
}

/// The surfaces in the order in which they are shown; what is of none comes last.
const SURFACES: [&str; 5] = ["commands", "sudo", "egress", "capabilities", "configuration"];
/// The names of the rungs of capabilities.
const RISK: [&str; 3] = ["auto", "notify", "ask"];

/// `tier 2`, or `ask`.
pub(super) fn rung(surface: &str, rung: u8) -> String {
    match RISK.get(usize::from(rung)) {
        Some(name) if surface == "capabilities" => (*name).to_owned(),
        _ => format!("tier {rung}"),
    }
}

/// The decision on a witness: `tier 2`, `denied`, `ask`, `refused`.
pub(super) fn decision(surface: &str, tier: Option<u8>) -> String {
    let none = if surface == "capabilities" { "refused" } else { "denied" };
    tier.map_or_else(|| none.to_owned(), |tier| rung(surface, tier))
}

/// Findings that are shown together.
pub(super) struct Group<'a> {
    surface: &'a str,
    pub(super) effect: Effect,
    rung: Option<u8>,
    pub(super) findings: Vec<&'a Finding>,
}

impl Group<'_> {
    /// `commands: newly permitted at tier 2`.
    pub(super) fn title(&self) -> String {
        let mut text = String::new();
        if !self.surface.is_empty() {
            text.push_str(&format!("{}: ", self.surface));
        }
        text.push_str(self.effect.words());
        if let Some(at) = self.rung {
            text.push_str(&format!(" at {}", rung(self.surface, at)));
        }
        text
    }
}

/// All findings, grouped.
pub(super) fn groups(findings: &[Finding]) -> Vec<Group<'_>> {
    let mut groups: BTreeMap<(usize, &str, Effect, Option<u8>), Vec<&Finding>> = BTreeMap::new();
    for finding in findings {
        let effect = Effect::of(finding);
        let evidence = finding.evidence.as_ref().filter(|_| effect != Effect::Other);
        let surface = evidence.map_or("", |e| e.surface.as_str());
        // The lowest rung is the least controlled: there it matters.
        let rung = evidence.and_then(|e| e.rungs.first().copied()).filter(|_| surface != "configuration");
        let place = SURFACES.iter().position(|name| *name == surface).unwrap_or(SURFACES.len());
        let place = place + usize::from(surface.is_empty());
        groups.entry((place, surface, effect, rung)).or_default().push(finding);
    }
    let group = |((_, surface, effect, rung), findings)| Group { surface, effect, rung, findings };
    groups.into_iter().map(group).collect()
}
