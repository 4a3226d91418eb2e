//! One request → what the compiled Cedar says of it, and lines → requests.
//!
//! Decisions are always made by the concrete Cedar authorizer, never by polctl's own reading
//! of a condition. What a policy says of programs that it names cannot matter for another
//! program, so only the slice of the program at hand is loaded.

mod context;
mod line;

pub use line::{LineError, request_from_line};

use std::collections::HashMap;

use cedar_policy::{Authorizer, Decision, Entities, PolicySet as CedarSet};

use crate::compile::{CompileError, Compiled, Policy, PolicyIndex, render};
use crate::model::{Facts, RUNGS, Surface};
use crate::source::SourceMap;

/// Asks Cedar about requests, loading only what can apply.
pub struct Decider<'a> {
    compiled: &'a Compiled,
    map: &'a SourceMap,
    index: PolicyIndex,
    /// By surface and positions of the policies in it.
    slices: HashMap<(Surface, Vec<usize>), CedarSet>,
    authorizer: Authorizer,
}

impl<'a> Decider<'a> {
    /// A decider for a compiled set.
    pub fn new(compiled: &'a Compiled, map: &'a SourceMap) -> Self {
        Decider {
            compiled,
            map,
            index: PolicyIndex::new(&compiled.policies),
            slices: HashMap::new(),
            authorizer: Authorizer::new(),
        }
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
        if !self.compiled.set.surfaces.contains_key(&surface) {
            return Ok(false);
        }
        let key = (surface, self.index.candidates(surface, facts));
        if !self.slices.contains_key(&key) {
            let slice = self.slice(&key.1)?;
            self.slices.insert(key.clone(), slice);
        }
        let Some(slice) = self.slices.get(&key) else { return Ok(false) };
        let request = context::request(surface, facts, rung)?;
        let response = self.authorizer.is_authorized(&request, slice, &Entities::empty());
        if let Some(error) = response.diagnostics().errors().next() {
            return Err(CompileError::Request { message: error.to_string() });
        }
        Ok(response.decision() == Decision::Allow)
    }

    /// The lowest rung at which Cedar allows the request; `None`: denied at every rung.
    ///
    /// # Errors
    ///
    /// As [`Decider::allows`].
    pub fn tier(&mut self, surface: Surface, facts: &Facts) -> Result<Option<u8>, CompileError> {
        for rung in 0..RUNGS {
            if self.allows(surface, facts, rung)? {
                return Ok(Some(rung));
            }
        }
        Ok(None)
    }

    fn slice(&self, positions: &[usize]) -> Result<CedarSet, CompileError> {
        let mut set = CedarSet::new();
        let mut add = |policy: cedar_policy::Policy| {
            let id = policy.id().to_string();
            set.add(policy).map_err(|e| CompileError::Parse { what: id, source: Box::new(e) })
        };
        for policy in positions.iter().filter_map(|at| self.compiled.policies.get(*at)) {
            add(render(self.compiled, policy, self.map).parse()?)?;
        }
        for guardrail in &self.compiled.guardrails {
            add(guardrail.parse()?)?;
        }
        Ok(set)
    }
}
