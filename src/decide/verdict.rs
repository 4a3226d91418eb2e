//! The tier of a line: that of its strictest part, with the policies that made it so.

use super::line::{Part, Role, Setting, parts};
use super::{Asked, Slices};
use crate::compile::CompileError;
use crate::model::{Facts, RUNGS, Request, Surface};

/// What Cedar answered at one rung.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Whether the request is allowed.
    pub allowed: bool,
    /// The policies that decided; none where nothing permits.
    pub reasons: Vec<Reason>,
}

impl Answer {
    /// Whether a policy forbids it, which is more than that none permits it.
    pub fn forbidden(&self) -> bool {
        !self.allowed && self.reasons.iter().any(|reason| reason.forbids)
    }
}

/// A policy that decided.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Reason {
    /// Cedar policy id.
    pub id: String,
    /// Whether it forbids.
    pub forbids: bool,
    /// `SUDO.md:41`; empty for what is built in.
    pub source: String,
    /// The rule's pattern.
    pub rule: String,
    /// The rule's tier.
    pub tier: Option<u8>,
    /// The rule's reason.
    pub why: String,
}

/// What was decided of one part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judgement {
    /// The part.
    pub part: Part,
    /// Lowest rung at which it may run; `None`: at none.
    pub tier: Option<u8>,
    /// What Cedar answered at that rung, or at the highest where it is denied.
    pub answer: Answer,
    /// What it answered one rung below: why not a lower tier.
    pub below: Option<Answer>,
}

/// What was decided of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Lowest rung at which the whole line may run; `None`: at none.
    pub tier: Option<u8>,
    /// Its parts, in the order of the line.
    pub parts: Vec<Judgement>,
}

impl Verdict {
    /// The first part that makes the line as strict as it is.
    pub fn deciding(&self) -> Option<&Judgement> {
        self.parts.iter().find(|part| part.tier == self.tier)
    }
}

/// `None`, denied, is the strictest.
fn rank(tier: Option<u8>) -> u8 {
    tier.unwrap_or(RUNGS)
}

/// Decides a line of a command surface.
///
/// # Errors
///
/// [`CompileError`]: a defect or a damaged bundle, never an answer.
pub fn judge(
    slices: &mut dyn Slices,
    surface: Surface,
    line: &str,
    setting: &Setting<'_>,
) -> Result<Verdict, CompileError> {
    let parts = parts(surface, line, setting);
    // A line without a part was read by nobody.
    let mut out = Verdict { tier: parts.first().map(|_| 0), parts: Vec::new() };
    let facts: Vec<Option<Facts>> = parts.iter().map(|part| facts(part, setting)).collect();
    let asked = parts.iter().zip(&facts).filter_map(|(part, facts)| Some((part.request.surface(), facts.as_ref()?)));
    slices.prepare(&asked.collect::<Vec<_>>())?;
    for (part, facts) in parts.into_iter().zip(&facts) {
        let judgement = judge_part(slices, part, facts.as_ref())?;
        if rank(judgement.tier) > rank(out.tier) {
            out.tier = judgement.tier;
        }
        out.parts.push(judgement);
    }
    Ok(out)
}

/// Decides one request that is no line: through the proxy, or a tool's.
///
/// # Errors
///
/// As [`judge`].
pub fn judge_request(
    slices: &mut dyn Slices,
    request: Request,
    text: &str,
    setting: &Setting<'_>,
) -> Result<Verdict, CompileError> {
    let part = Part { request, role: Role::Whole, text: text.to_owned(), via: Vec::new(), notes: Vec::new() };
    let facts = facts(&part, setting);
    let judgement = judge_part(slices, part, facts.as_ref())?;
    Ok(Verdict { tier: judgement.tier, parts: vec![judgement] })
}

/// What Cedar is asked about of a part; nothing of one that is refused in any case.
fn facts(part: &Part, setting: &Setting<'_>) -> Option<Facts> {
    (part.role != Role::Refused).then(|| part.request.facts(setting.zones))
}

fn judge_part(slices: &mut dyn Slices, part: Part, facts: Option<&Facts>) -> Result<Judgement, CompileError> {
    let Some(facts) = facts else {
        return Ok(Judgement { part, tier: None, answer: Answer { allowed: false, reasons: Vec::new() }, below: None });
    };
    let surface = part.request.surface();
    let asked = Asked::about(slices, surface, facts)?;
    let mut below = None;
    let rungs = if part.role == Role::Denied { RUNGS - 1..RUNGS } else { 0..RUNGS };
    for rung in rungs {
        let answer = asked.at(rung)?;
        let passes = match part.role {
            Role::Whole => answer.allowed,
            Role::Restricted | Role::Denied | Role::Refused => !answer.forbidden(),
        };
        if passes {
            let tier = if part.role == Role::Denied { 0 } else { rung };
            return Ok(Judgement { part, tier: Some(tier), answer, below });
        }
        below = Some(answer);
    }
    let answer = below.take().unwrap_or(Answer { allowed: false, reasons: Vec::new() });
    Ok(Judgement { part, tier: None, answer, below: None })
}
