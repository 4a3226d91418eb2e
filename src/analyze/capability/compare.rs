//! Which capability requests one set of policies allows and another does not.

use std::collections::BTreeSet;

use super::space::requests;
use crate::compile::{CapabilityPolicy, CompileError, Effect};
use crate::decide::CapabilityDecider;
use crate::model::{CAPABILITY_RUNGS, CapabilityRequest, Class, Lifecycle, Subject, Target};

/// A request that is allowed on one side only.
#[derive(Clone, Debug)]
pub(super) struct CapabilityChange<'a> {
    /// The request.
    pub(super) request: CapabilityRequest,
    /// The rungs at which it is allowed on the one side only.
    pub(super) rungs: Vec<u8>,
    /// The permit that allows it.
    pub(super) permit: &'a CapabilityPolicy,
    /// The policy of the other side that stopped it and is gone, if that is what changed.
    pub(super) gone: Option<&'a CapabilityPolicy>,
    /// Lowest rung on either side.
    pub(super) rung_from: Option<u8>,
    /// Lowest rung on either side.
    pub(super) rung_to: Option<u8>,
}

/// One side of a comparison: the policies of a subject, guardrails included.
pub(super) struct CapabilitySide<'a, 'd> {
    pub(super) policies: Vec<&'a CapabilityPolicy>,
    pub(super) decider: &'d mut CapabilityDecider<'a>,
}

/// The policies of a class that are about a subject.
fn of_class<'a>(policies: &[&'a CapabilityPolicy], class: Class, subject: &Subject) -> Vec<&'a CapabilityPolicy> {
    let about = |p: &&&CapabilityPolicy| p.class == class && p.subject.as_ref().is_none_or(|own| own == subject);
    policies.iter().filter(about).copied().collect()
}

/// What of a class is used, as far as findings tell it apart.
const fn kind(target: &Target) -> &'static str {
    match target {
        Target::NetEgress { address: Some(_), .. } => "address",
        Target::FsScope { write: true, .. } => "write",
        Target::Clipboard { copy_out: true } => "copy_out",
        Target::Gpu { mode, .. } => mode.name(),
        Target::Package { .. } => "package",
        Target::LinuxCapability { .. } => "linux_capability",
        Target::Persistence { survives_session: true, .. } => "survives_session",
        Target::Camera => "camera",
        Target::Mic => "mic",
        Target::Usb { .. } => "usb",
        _ => "",
    }
}

/// Whether a request may run at a rung, as the conditions say.
fn allows(policies: &[&CapabilityPolicy], request: &CapabilityRequest, rung: u8) -> bool {
    let has =
        |effect| policies.iter().any(|p| p.effect == effect && p.rungs.contains(&rung) && p.condition.holds(request));
    has(Effect::Permit) && !has(Effect::Forbid)
}

/// The policies of both sides that can matter for some requests.
struct Sides<'a> {
    was: Vec<&'a CapabilityPolicy>,
    is: Vec<&'a CapabilityPolicy>,
}

impl Sides<'_> {
    /// The rungs at which a request is newly allowed.
    fn rungs(&self, request: &CapabilityRequest) -> Vec<u8> {
        let newly = |rung: &u8| allows(&self.is, request, *rung) && !allows(&self.was, request, *rung);
        (0..CAPABILITY_RUNGS).filter(newly).collect()
    }

    /// The request with the longest life for which the same holds: that is what a reviewer must know.
    fn longest(&self, request: CapabilityRequest, rungs: &[u8]) -> CapabilityRequest {
        if request.lifecycle == Lifecycle::Once {
            // It is not about the lifecycle.
            return request;
        }
        let longer =
            Lifecycle::ALL.iter().rev().map(|lifecycle| CapabilityRequest { lifecycle: *lifecycle, ..request.clone() });
        longer.into_iter().find(|other| self.rungs(other) == rungs).unwrap_or(request)
    }
}

/// Everything that `to` allows the subject and `from` does not: one request for each policy that is
/// to blame. Each was decided anew by Cedar on both sides.
///
/// # Errors
///
/// [`CompileError`]: a defect, among them that Cedar decides otherwise than the conditions say.
pub(super) fn newly_allowed<'a>(
    subject: &Subject,
    from: &mut CapabilitySide<'a, '_>,
    to: &mut CapabilitySide<'a, '_>,
) -> Result<Vec<CapabilityChange<'a>>, CompileError> {
    let mut out: Vec<CapabilityChange<'a>> = Vec::new();
    for class in Class::ALL.iter().copied() {
        let (was, is) = (of_class(&from.policies, class, subject), of_class(&to.policies, class, subject));
        let differs = |own: &[&CapabilityPolicy], other: &[&CapabilityPolicy]| {
            own.iter().any(|p| !other.iter().any(|o| o.says_the_same(p)))
        };
        // What is newly allowed is matched by a permit that is new, or was stopped by a forbid that is gone.
        if !differs(&is, &was) && !differs(&was, &is) {
            continue;
        }
        // A guardrail that holds on both sides allows nothing on either, whatever it tells apart; a
        // request outside of it exists wherever one does, since the values that nothing mentions lie
        // outside. Only its networks have members on both sides of every bound.
        let shared = |p: &&CapabilityPolicy| {
            p.subject.is_none() && was.iter().any(|o| o.says_the_same(p)) && is.iter().any(|o| o.says_the_same(p))
        };
        let both: Vec<&CapabilityPolicy> = was.iter().chain(&is).copied().filter(|p| !shared(p)).collect();
        let networks: Vec<&CapabilityPolicy> = is.iter().copied().filter(shared).collect();
        let gone = was.iter().filter(|p| p.effect == Effect::Forbid && !is.iter().any(|o| o.says_the_same(p)));
        let new = is.iter().filter(|p| p.effect == Effect::Permit && !was.iter().any(|o| o.says_the_same(p)));
        let mut blamed: BTreeSet<(&str, Option<&str>, &str, Vec<u8>)> = BTreeSet::new();
        // One of these holds for whatever is newly allowed; what cannot hold with it does not matter.
        for cause in new.chain(gone) {
            let near = |p: &&CapabilityPolicy| !p.condition.excludes(&cause.condition);
            let sides = Sides {
                was: was.iter().copied().filter(near).collect(),
                is: is.iter().copied().filter(near).collect(),
            };
            let involved: Vec<&CapabilityPolicy> = both.iter().copied().filter(near).collect();
            for request in requests(class, subject, &involved, &networks) {
                if !cause.condition.holds(&request) {
                    continue;
                }
                let rungs = sides.rungs(&request);
                let Some(rung) = rungs.first() else { continue };
                let holding = |p: &&&'a CapabilityPolicy| p.rungs.contains(rung) && p.holds(&request);
                let permits = sides.is.iter().filter(|p| p.effect == Effect::Permit).filter(holding);
                let fresh = |p: &&&'a CapabilityPolicy| !was.iter().any(|o| o.says_the_same(p));
                let permit = permits.clone().find(fresh).or_else(|| permits.clone().next());
                let Some(permit) = permit.copied() else { continue };
                let stopped = sides.was.iter().filter(|p| p.effect == Effect::Forbid).filter(holding).copied().next();
                if !blamed.insert((
                    permit.id.as_str(),
                    stopped.map(|p| p.id.as_str()),
                    kind(&request.target),
                    rungs.clone(),
                )) {
                    continue;
                }
                let request = sides.longest(request, &rungs);
                // Cedar has the last word.
                for rung in &rungs {
                    if !to.decider.allows(&request, *rung)? || from.decider.allows(&request, *rung)? {
                        let message = format!(
                            "Cedar decides `{}` otherwise than the conditions of the policies say",
                            request.target
                        );
                        return Err(CompileError::Request { message });
                    }
                }
                let (rung_from, rung_to) = (from.decider.rung(&request)?, to.decider.rung(&request)?);
                out.push(CapabilityChange { request, rungs, permit, gone: stopped, rung_from, rung_to });
            }
        }
    }
    Ok(out)
}
