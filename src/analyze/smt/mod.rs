//! The symbolic engine: asks an SMT solver whether a version allows what another does not
//! (DESIGN 6).
//!
//! It takes any Cedar that the schema allows. Its requests are wider than what can occur:
//! to a solver, the words of a command and the line that they make are unrelated texts. So
//! its "none" is a proof, and its counterexample counts only when it is a real request. All
//! that it cannot answer is open, never fine.

mod compare;
mod item;
mod question;
mod real;
mod slim;
pub mod solver;

pub(crate) use compare::{Outcome, newly_allowed};
pub(crate) use item::Item;
pub(crate) use question::{Answer, Asking, Cause, Counterexample, Sets, Short, Tell, Version, add, all_but};
pub(crate) use real::{difference, nearest};
pub(crate) use slim::{Slim, spoken_of};

use cedar_policy::{PolicySet, RequestEnv, Schema};
use cedar_policy_symcc::err::Error as SymbolicError;
use cedar_policy_symcc::{CedarSymCompiler, CompiledPolicySet, Env, SymEnv};

use solver::{Limits, Located, Places, Process, SolverError};

/// Stack of the symbolic compiler, in bytes; only what is used of it costs memory.
const STACK: usize = 512 << 20;
/// How often a solver that failed is started again. A question that it failed at stays open.
const MAX_RESTARTS: usize = 2;

/// What stops the engine as a whole.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
#[non_exhaustive]
pub enum SmtError {
    /// A defect of polctl.
    #[error("{what}")]
    #[diagnostic(help("this is a defect of polctl; please report it"))]
    Defect {
        /// What is wrong.
        what: String,
    },
    /// It failed again and again.
    #[error("the solver failed {times} times, the last time so: {last}")]
    #[diagnostic(help("`polctl solver status` says which solver it is; try another one"))]
    GaveUp {
        /// How often.
        times: usize,
        /// Its last failure.
        last: String,
    },
    /// There is no solver, or it cannot be started.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Solver(#[from] SolverError),
}

/// Why a query has no answer.
enum Failure {
    /// The solver does not know.
    Unknown(String),
    /// The solver cannot be asked any more.
    Solver(SmtError),
}

/// A solver with the symbolic compiler in front of it, started when it is first asked.
pub struct Engine {
    places: Places,
    limits: Limits,
    running: Option<Running>,
    located: Option<Located>,
    /// Failures of the solver so far.
    restarts: usize,
    queries: usize,
}

struct Running {
    symbolic: CedarSymCompiler<Process>,
    runtime: tokio::runtime::Runtime,
}

/// What is asked: does `first` allow what `second` does not, in this environment?
struct Question<'q> {
    first: &'q PolicySet,
    second: &'q PolicySet,
    environment: &'q RequestEnv,
    schema: &'q Schema,
    symbols: &'q SymEnv,
}

impl Engine {
    /// An engine with the solver that is found in these places.
    pub const fn new(places: Places, limits: Limits) -> Self {
        Engine { places, limits, running: None, located: None, restarts: 0, queries: 0 }
    }

    /// How often the solver was asked.
    pub const fn queries(&self) -> usize {
        self.queries
    }

    /// The solver with its version, if it was asked.
    pub fn solver(&self) -> Option<String> {
        self.located.as_ref().map(ToString::to_string)
    }

    fn running(&mut self) -> Result<&mut Running, SmtError> {
        if self.running.is_none() {
            let located = match &self.located {
                Some(located) => located.clone(),
                None => Located::find(&self.places)?,
            };
            self.running = Some(Running::start(&located, self.limits)?);
            self.located = Some(located);
        }
        self.running.as_mut().ok_or_else(|| SmtError::Defect { what: "the solver did not start".into() })
    }

    /// A request that the first set allows and the second does not.
    ///
    /// The symbolic compiler descends into conditions as deep as they are, so it works on a
    /// stack of its own.
    fn differ(&mut self, asked: &Question<'_>) -> Result<Option<Env>, Failure> {
        let running = self.running().map_err(Failure::Solver)?;
        let answer = std::thread::scope(|scope| {
            let work = std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, || running.ask(asked));
            work.map(std::thread::ScopedJoinHandle::join)
        });
        self.queries += 1;
        let answer = match answer {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) => return Err(Failure::Unknown("the symbolic compiler failed at it".into())),
            Err(error) => return Err(Failure::Unknown(format!("no thread could be started: {error}"))),
        };
        answer.map_err(|error| match *error {
            SymbolicError::SolverUnknown => {
                Failure::Unknown(format!("the solver does not know within {} s", self.limits.question.as_secs()))
            }
            SymbolicError::SolverError(error) => self.failed(&error.to_string()),
            SymbolicError::PolicyNotWellTyped { errs } => Failure::Unknown(match errs.first() {
                Some(first) => format!("a policy is not valid under the schema: {first}"),
                None => "a policy is not valid under the schema".into(),
            }),
            other => Failure::Unknown(format!("the symbolic compiler cannot take it: {other}")),
        })
    }

    /// A solver that failed is ended; the next question gets a new one.
    fn failed(&mut self, said: &str) -> Failure {
        let failure =
            self.running.take().and_then(|running| running.symbolic.solver().failure().map(ToString::to_string));
        let last = failure.unwrap_or_else(|| said.to_owned());
        self.restarts += 1;
        match self.restarts {
            times if times > MAX_RESTARTS => Failure::Solver(SmtError::GaveUp { times, last }),
            _ => Failure::Unknown(last),
        }
    }
}

impl Running {
    fn ask(&mut self, asked: &Question<'_>) -> Result<Option<Env>, Box<SymbolicError>> {
        let compiled = |set: &PolicySet| {
            let Question { environment, schema, symbols, .. } = asked;
            CompiledPolicySet::compile_with_custom_symenv(set, environment, schema, (*symbols).clone())
                .map_err(Box::new)
        };
        let (first, second) = (compiled(asked.first)?, compiled(asked.second)?);
        let asked = self.symbolic.check_implies_with_counterexample_opt(&first, &second);
        self.runtime.block_on(asked).map_err(Box::new)
    }

    fn start(located: &Located, limits: Limits) -> Result<Self, SmtError> {
        let runtime = solver::runtime()?;
        let process = runtime.block_on(async { Process::start(located, limits) })?;
        let symbolic = CedarSymCompiler::new(process).map_err(|e| SmtError::Defect { what: e.to_string() })?;
        Ok(Running { symbolic, runtime })
    }
}
