//! One request → what the compiled Cedar says of it, and lines → requests.
//!
//! Decisions are always made by the concrete Cedar authorizer, never by polctl's own reading
//! of a condition. What a policy says of programs that it names cannot matter for another
//! program, so only the slice of the program at hand is loaded.

mod bundle;
mod capability;
mod context;
mod egress;
mod line;
mod normalise;
mod place;
mod scripts;
mod unwrap;
mod verdict;
mod why;

pub use bundle::{Bundle, BundleError};
pub use capability::CapabilityDecider;
pub use line::{MAX_DEPTH, MAX_PARTS, MAX_WEIGHT, Part, Role, Setting, parts};
pub use place::file_zones;
pub use verdict::{Answer, Judgement, Reason, Verdict, judge, judge_request};
pub use why::{explain, failing, why_not};

use std::collections::HashMap;
use std::rc::Rc;
use std::str::FromStr as _;

use cedar_policy::{Authorizer, Decision, Effect, Entities, PolicySet as CedarSet};

use crate::compile::{CompileError, Compiled, Policy, PolicyIndex, render};
use crate::model::{EgressRequest, Facts, RUNGS, Request, Surface};
use crate::source::SourceMap;

/// Why a line has no request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LineError {
    /// Something that polctl does not read or does not know.
    #[error("{what}")]
    Unclear {
        /// What it is.
        what: String,
    },
    /// Not a request through the proxy.
    #[error("{message}")]
    Egress {
        /// What is wrong.
        message: String,
    },
}

/// Reads a request through the proxy: `GET https://api.example.com/`.
///
/// # Errors
///
/// [`LineError::Egress`] with what is wrong.
pub fn egress_request(line: &str) -> Result<EgressRequest, LineError> {
    egress::egress(line)
}

/// Every request that a line of any surface is.
///
/// # Errors
///
/// [`LineError`] when the line cannot be read as a whole.
pub fn requests(surface: Surface, line: &str, setting: &Setting<'_>) -> Result<Vec<Request>, LineError> {
    if surface == Surface::Egress {
        return Ok(vec![Request::Egress(egress::egress(line)?)]);
    }
    let found = parts(surface, line, setting);
    if let Some(note) = found.iter().filter(|part| part.is_unread()).flat_map(|part| &part.notes).next() {
        return Err(LineError::Unclear { what: note.clone() });
    }
    // Other spellings of a command, which only restrict, are no commands that the line runs.
    let runs = |part: &Part| match &part.request {
        Request::Command(request) => part.role == Role::Whole || request.covered,
        Request::Egress(_) => true,
    };
    Ok(found.into_iter().filter(runs).map(|part| part.request).collect())
}

/// Where slices of a policy set come from: a compiled set, or a bundle.
pub trait Slices {
    /// Whether some file of the set covers the surface; what none covers permits nothing.
    fn covers(&self, surface: Surface) -> bool;

    /// Is told the requests that will be asked about, so that what they need is read at once.
    ///
    /// # Errors
    ///
    /// As [`Slices::slice`].
    fn prepare(&mut self, _requests: &[(Surface, &Facts)]) -> Result<(), CompileError> {
        Ok(())
    }

    /// The policies that can apply to a request, and those of every request.
    ///
    /// # Errors
    ///
    /// [`CompileError`], a defect or a damaged bundle.
    fn slice(&mut self, surface: Surface, facts: &Facts) -> Result<Rc<CedarSet>, CompileError>;
}

/// Has Cedar make what it makes once in a process, the tables of its lexer and of its extensions,
/// on a thread that has nothing else to do. It changes no answer.
pub fn make_ready() {
    let _ = CedarSet::from_str("permit (principal, action, resource);");
    context::make_ready();
}

/// Facts with the policies that can apply to them, to be asked at one rung after the other.
pub(crate) struct Asked(Option<(Rc<CedarSet>, context::Question)>);

impl Asked {
    /// What is asked about facts.
    ///
    /// # Errors
    ///
    /// [`CompileError`]: a defect or a damaged bundle.
    pub(crate) fn about(slices: &mut dyn Slices, surface: Surface, facts: &Facts) -> Result<Self, CompileError> {
        if !slices.covers(surface) {
            return Ok(Asked(None));
        }
        Ok(Asked(Some((slices.slice(surface, facts)?, context::Question::about(surface, facts)?))))
    }

    /// Asks Cedar at a rung.
    ///
    /// # Errors
    ///
    /// [`CompileError`] when evaluation fails: a defect, never an answer.
    pub(crate) fn at(&self, rung: u8) -> Result<Answer, CompileError> {
        let Some((slice, question)) = &self.0 else { return Ok(Answer { allowed: false, reasons: Vec::new() }) };
        let response = Authorizer::new().is_authorized(&question.at(rung)?, slice, &Entities::empty());
        answered(&response, slice)
    }
}

/// Whether Cedar's response allows; a policy that could not be evaluated is a defect.
fn allowed(response: &cedar_policy::Response) -> Result<bool, CompileError> {
    match response.diagnostics().errors().next() {
        Some(error) => Err(CompileError::Request { message: error.to_string() }),
        None => Ok(response.decision() == Decision::Allow),
    }
}

/// What Cedar's response says, with the policies that decided.
fn answered(response: &cedar_policy::Response, slice: &CedarSet) -> Result<Answer, CompileError> {
    let allowed = allowed(response)?;
    let mut reasons: Vec<Reason> = response
        .diagnostics()
        .reason()
        .filter_map(|id| slice.policy(id))
        .map(|policy| Reason {
            id: policy.id().to_string(),
            forbids: policy.effect() == Effect::Forbid,
            source: policy.annotation("source").unwrap_or_default().to_owned(),
            rule: policy.annotation("rule").unwrap_or_default().to_owned(),
            tier: policy.annotation("tier").and_then(|tier| tier.parse().ok()),
            why: policy.annotation("why").unwrap_or_default().to_owned(),
        })
        .collect();
    reasons.sort();
    Ok(Answer { allowed, reasons })
}

/// A compiled set, asked through Cedar; only what can apply is loaded.
pub struct Decider<'a> {
    compiled: &'a Compiled,
    map: &'a SourceMap,
    index: PolicyIndex,
    /// By surface and positions of the policies in it.
    slices: HashMap<(Surface, Vec<usize>), Rc<CedarSet>>,
}

impl<'a> Decider<'a> {
    /// A decider for a compiled set.
    pub fn new(compiled: &'a Compiled, map: &'a SourceMap) -> Self {
        Decider { compiled, map, index: PolicyIndex::new(&compiled.policies), slices: HashMap::new() }
    }

    /// The set that is asked.
    pub const fn compiled(&self) -> &'a Compiled {
        self.compiled
    }

    /// The policies that can apply to a request.
    pub fn candidates(&self, surface: Surface, facts: &Facts) -> Vec<&'a Policy> {
        let positions = self.index.candidates(surface, facts);
        positions.into_iter().filter_map(|at| self.compiled.policies.get(at)).collect()
    }

    /// Whether Cedar allows the request at a rung.
    ///
    /// # Errors
    ///
    /// [`CompileError`] when the generated Cedar does not parse or evaluation fails: defects,
    /// never an answer.
    pub fn allows(&mut self, surface: Surface, facts: &Facts, rung: u8) -> Result<bool, CompileError> {
        Asked::about(self, surface, facts)?.at(rung).map(|answer| answer.allowed)
    }

    /// The lowest rung at which Cedar allows the request; `None`: denied at every rung.
    ///
    /// # Errors
    ///
    /// As [`Decider::allows`].
    pub fn tier(&mut self, surface: Surface, facts: &Facts) -> Result<Option<u8>, CompileError> {
        let asked = Asked::about(self, surface, facts)?;
        for rung in 0..RUNGS {
            if asked.at(rung)?.allowed {
                return Ok(Some(rung));
            }
        }
        Ok(None)
    }

    fn load(&self, positions: &[usize]) -> Result<CedarSet, CompileError> {
        let mut set = CedarSet::new();
        let mut add = |policy: cedar_policy::Policy| {
            let id = policy.id().to_string();
            set.add(policy).map_err(|e| CompileError::Parse { what: id, source: Box::new(e) })
        };
        let generated = positions.iter().filter_map(|at| self.compiled.policies.get(*at)).filter(|p| p.is_generated());
        for policy in generated {
            add(render(self.compiled, policy, self.map).parse()?)?;
        }
        for guardrail in &self.compiled.guardrails {
            add(guardrail.parse()?)?;
        }
        Ok(set)
    }
}

impl Slices for Decider<'_> {
    fn covers(&self, surface: Surface) -> bool {
        self.compiled.set.surfaces.contains_key(&surface)
    }

    fn slice(&mut self, surface: Surface, facts: &Facts) -> Result<Rc<CedarSet>, CompileError> {
        let key = (surface, self.index.candidates(surface, facts));
        if let Some(slice) = self.slices.get(&key) {
            return Ok(Rc::clone(slice));
        }
        let slice = Rc::new(self.load(&key.1)?);
        self.slices.insert(key, Rc::clone(&slice));
        Ok(slice)
    }
}
