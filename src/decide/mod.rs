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

use crate::compile::{CompileError, Compiled, Policy, render};
use crate::model::{Facts, RUNGS, Surface};
use crate::source::SourceMap;

/// Asks Cedar about requests, loading only what can apply.
pub struct Decider<'a> {
    compiled: &'a Compiled,
    map: &'a SourceMap,
    slices: HashMap<(Surface, String), CedarSet>,
    by_program: HashMap<(Surface, &'a str), Vec<&'a Policy>>,
    any_program: HashMap<Surface, Vec<&'a Policy>>,
    authorizer: Authorizer,
}

impl<'a> Decider<'a> {
    /// A decider for a compiled set.
    pub fn new(compiled: &'a Compiled, map: &'a SourceMap) -> Self {
        let mut by_program: HashMap<(Surface, &'a str), Vec<&'a Policy>> = HashMap::new();
        let mut any_program: HashMap<Surface, Vec<&'a Policy>> = HashMap::new();
        for policy in &compiled.policies {
            match &policy.programs {
                Some(programs) => {
                    for program in programs {
                        by_program.entry((policy.surface, program.as_str())).or_default().push(policy);
                    }
                }
                None => any_program.entry(policy.surface).or_default().push(policy),
            }
        }
        Decider {
            compiled,
            map,
            slices: HashMap::new(),
            by_program,
            any_program,
            authorizer: Authorizer::new(),
        }
    }

    /// The set that is asked.
    pub const fn compiled(&self) -> &'a Compiled {
        self.compiled
    }

    /// The policies that can apply to a program, in no particular order.
    pub fn candidates(&self, surface: Surface, program: &str) -> impl Iterator<Item = &'a Policy> {
        let own = self.by_program.get(&(surface, program)).into_iter().flatten().copied();
        own.chain(self.any_program.get(&surface).into_iter().flatten().copied())
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
        let program = match facts {
            Facts::Command(facts) => facts.program.clone(),
            Facts::Egress(_) => String::new(),
        };
        let key = (surface, program);
        if !self.slices.contains_key(&key) {
            let slice = self.slice(surface, &key.1)?;
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

    fn slice(&self, surface: Surface, program: &str) -> Result<CedarSet, CompileError> {
        let mut set = CedarSet::new();
        let mut add = |policy: cedar_policy::Policy| {
            let id = policy.id().to_string();
            set.add(policy).map_err(|e| CompileError::Parse { what: id, source: Box::new(e) })
        };
        for policy in self.candidates(surface, program) {
            add(render(self.compiled, policy, self.map).parse()?)?;
        }
        for guardrail in &self.compiled.guardrails {
            add(guardrail.parse()?)?;
        }
        Ok(set)
    }
}
