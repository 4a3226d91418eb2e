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

pub(crate) use compare::{Outcome, newly_allowed};
pub(crate) use item::Item;
pub(crate) use question::{Answer, Cause, Counterexample, Version};

use cedar_policy_symcc::err::Error as SymbolicError;
use cedar_policy_symcc::solver::LocalSolver;
use cedar_policy_symcc::{CedarSymCompiler, CompiledPolicySet, Env};

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
    /// The solver failed.
    #[error("{what}")]
    Solver {
        /// What happened.
        what: String,
    },
}

/// Why a query has no answer.
enum Failure {
    /// The solver does not know.
    Unknown(String),
    /// The solver cannot be asked any more.
    Solver(SmtError),
}

/// A solver with the symbolic compiler in front of it, started when it is first asked.
#[derive(Default)]
pub struct Engine {
    running: Option<Running>,
    /// How often the solver was asked.
    queries: usize,
}

struct Running {
    symbolic: CedarSymCompiler<LocalSolver>,
    runtime: tokio::runtime::Runtime,
}

impl Engine {
    /// An engine.
    pub fn new() -> Self {
        Engine::default()
    }

    /// How often the solver was asked.
    pub const fn queries(&self) -> usize {
        self.queries
    }

    fn running(&mut self) -> Result<&mut Running, SmtError> {
        if self.running.is_none() {
            self.running = Some(Running::start()?);
        }
        self.running.as_mut().ok_or_else(|| SmtError::Defect { what: "the solver did not start".into() })
    }

    /// A request that the first set allows and the second does not.
    fn differ(&mut self, first: &CompiledPolicySet, second: &CompiledPolicySet) -> Result<Option<Env>, Failure> {
        self.queries += 1;
        let running = self.running().map_err(Failure::Solver)?;
        let asked = running.symbolic.check_implies_with_counterexample_opt(first, second);
        running.runtime.block_on(asked).map_err(|error| match error {
            SymbolicError::SolverUnknown => Failure::Unknown("the solver does not know".into()),
            SymbolicError::SolverError(error) => Failure::Solver(SmtError::Solver { what: error.to_string() }),
            other => Failure::Unknown(other.to_string()),
        })
    }
}

impl Running {
    fn start() -> Result<Self, SmtError> {
        let fail = |what: String| SmtError::Solver { what };
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|e| fail(e.to_string()))?;
        let solver = {
            let _guard = runtime.enter();
            let mut command = tokio::process::Command::new("cvc5");
            LocalSolver::from_command(command.args(["--lang", "smt", "--strings-exp", "--tlimit-per=10000"]))
                .map_err(|e| fail(e.to_string()))?
        };
        let symbolic = CedarSymCompiler::new(solver).map_err(|e| fail(e.to_string()))?;
        Ok(Running { symbolic, runtime })
    }
}
