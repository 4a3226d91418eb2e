//! A running solver that is spoken with in SMT-LIB.
//!
//! Owns the conversation. Questions are collected and sent at once, under one clock for
//! writing and reading, so a solver that stops reading is noticed like one that stops
//! answering. Behind each answer the solver must repeat a marker of ours: an answer can thus
//! never be taken for that to another question. After the first failure the process is ended
//! and no answer is ever given again.

use std::future::{Future, poll_fn};
use std::pin::pin;

use cedar_policy_symcc::solver::{Decision, DecisionWithModel, Solver, SolverError as SymccError};
use tokio::io::{AsyncWrite, AsyncWriteExt as _};
use tokio::process::{ChildStdin, ChildStdout};
use tokio::time::{Duration, Instant, timeout_at};

use super::error::{SolverError, excerpt};
use super::group::Group;
use super::lines::{Lines, NoLine};
use super::places::Located;
use super::tail::Tail;

/// Longest answer to `(check-sat)`, in bytes.
pub const MAX_ANSWER: usize = 64 << 10;
/// Largest model, in bytes.
pub const MAX_MODEL: usize = 16 << 20;
/// Largest question, in bytes.
pub const MAX_SCRIPT: usize = 256 << 20;
/// How long a solver whose output ended may take to end itself, so that its status is seen.
const PARTING: Duration = Duration::from_millis(200);

const CHECK: &str = "(check-sat)";
const MODEL: &str = "(get-model)";

/// How long one question may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// What the solver is told (`--tlimit-per`); past it, it answers `unknown`.
    pub question: Duration,
    /// What it may take beyond that by polctl's clock, reading and answering included; past
    /// it, it is ended.
    pub grace: Duration,
}

impl Limits {
    /// Ten seconds, and five to come back.
    pub const USUAL: Limits = Limits { question: Duration::from_secs(10), grace: Duration::from_secs(5) };

    fn whole(self) -> Duration {
        self.question.saturating_add(self.grace)
    }
}

impl Default for Limits {
    fn default() -> Self {
        Limits::USUAL
    }
}

/// A running solver. It ends when this value goes.
#[derive(Debug)]
pub struct Process {
    /// For messages.
    solver: String,
    limits: Limits,
    /// What was written since the last answer.
    question: Vec<u8>,
    /// The question that is being sent, and how much of it was.
    outgoing: Vec<u8>,
    sent: usize,
    markers: u64,
    stdin: ChildStdin,
    stdout: Lines<ChildStdout>,
    stderr: Tail,
    failure: Option<SolverError>,
    /// Last, so that the pipes are closed before the child is killed.
    group: Group,
}

impl Process {
    /// Starts a solver. Call it where [`runtime`](super::runtime) is entered (within
    /// `block_on`).
    ///
    /// # Errors
    ///
    /// [`SolverError::Start`]; [`SolverError::Runtime`] outside of a runtime.
    pub fn start(located: &Located, limits: Limits) -> Result<Process, SolverError> {
        // The pipes would panic without one.
        tokio::runtime::Handle::try_current().map_err(|e| SolverError::Runtime { source: std::io::Error::other(e) })?;
        let solver = located.path().display().to_string();
        let cannot = |source| SolverError::Start { solver: solver.clone(), source };
        let (group, pipes) = Group::start(&mut located.command(limits.question)).map_err(cannot)?;
        Ok(Process {
            limits,
            question: Vec::new(),
            outgoing: Vec::new(),
            sent: 0,
            markers: 0,
            stdin: ChildStdin::from_std(pipes.stdin).map_err(cannot)?,
            stdout: Lines::new(ChildStdout::from_std(pipes.stdout).map_err(cannot)?),
            stderr: Tail::of(pipes.stderr).map_err(cannot)?,
            failure: None,
            group,
            solver,
        })
    }

    /// Why it gives no answers any more.
    pub fn failure(&self) -> Option<&SolverError> {
        self.failure.as_ref()
    }

    /// The failure itself, for the one who reports it. The process stays failed.
    pub fn take_failure(&mut self) -> Option<SolverError> {
        let again = SolverError::Failed { solver: self.solver.clone() };
        self.failure.as_mut().map(|failure| std::mem::replace(failure, again))
    }

    /// Asks, and marks the process as failed where there is no answer.
    async fn ask(&mut self, with_model: bool) -> Result<(Decision, Option<String>), SymccError> {
        if self.failure.is_some() {
            let again = SolverError::Failed { solver: self.solver.clone() };
            return Err(SymccError::Solver(again.to_string()));
        }
        let answer = self.answer(with_model).await;
        answer.map_err(|error| {
            self.group.end();
            let text = error.to_string();
            self.failure = Some(error);
            SymccError::Solver(text)
        })
    }

    async fn answer(&mut self, with_model: bool) -> Result<(Decision, Option<String>), SolverError> {
        let decision = self.decision().await?;
        let model = if with_model && decision == Decision::Sat { Some(self.model().await?) } else { None };
        Ok((decision, model))
    }

    async fn decision(&mut self) -> Result<Decision, SolverError> {
        let until = self.deadline();
        let line = self.send(CHECK, until).await?;
        let decision = match line.trim_ascii() {
            b"sat" => Decision::Sat,
            b"unsat" => Decision::Unsat,
            b"unknown" => Decision::Unknown,
            // Some interfaces give the reason with it.
            reason if reason.starts_with(b"unknown (") => Decision::Unknown,
            other => return Err(self.odd(CHECK, other)),
        };
        self.marker(CHECK, until).await?;
        Ok(decision)
    }

    /// The model as it was printed: `(`, definitions, `)`.
    async fn model(&mut self) -> Result<String, SolverError> {
        let until = self.deadline();
        let mut model = self.send(MODEL, until).await?;
        if model.trim_ascii() != b"(" {
            return Err(self.odd(MODEL, &model));
        }
        loop {
            let line = self.line(MODEL, "the model", MAX_MODEL.saturating_sub(model.len()), MAX_MODEL, until).await?;
            if line.trim_ascii_start().starts_with(b"(error") || line.trim_ascii() == self.expected() {
                return Err(self.odd(MODEL, &line));
            }
            model.extend_from_slice(&line);
            if line.trim_ascii() == b")" {
                break;
            }
        }
        self.marker(MODEL, until).await?;
        String::from_utf8(model).map_err(|e| self.odd(MODEL, e.as_bytes()))
    }

    fn deadline(&self) -> Instant {
        Instant::now() + self.limits.whole()
    }

    /// Sends what was collected and a command, and gives the first line of the answer.
    async fn send(&mut self, command: &'static str, until: Instant) -> Result<Vec<u8>, SolverError> {
        if self.question.len() > MAX_SCRIPT {
            return Err(self.too_much("the question", MAX_SCRIPT));
        }
        self.markers += 1;
        let end = format!("{command}\n(echo \"polctl-{}\")\n", self.markers);
        self.question.extend_from_slice(end.as_bytes());
        self.outgoing = std::mem::take(&mut self.question);
        self.sent = 0;
        self.line(command, "the answer", MAX_ANSWER, MAX_ANSWER, until).await
    }

    /// The next line, with what is still to be written sent meanwhile: a solver that complains
    /// while it is written to would else block itself and us.
    async fn line(
        &mut self,
        question: &'static str,
        what: &'static str,
        left: usize,
        limit: usize,
        until: Instant,
    ) -> Result<Vec<u8>, SolverError> {
        let writing = write_rest(&mut self.stdin, &self.outgoing, &mut self.sent);
        let read = timeout_at(until, beside(writing, self.stdout.next(left))).await;
        self.judged(read.map_err(|_| ()), question, what, limit)
    }

    fn expected(&self) -> Vec<u8> {
        format!("\"polctl-{}\"", self.markers).into_bytes()
    }

    /// Behind an answer stands its marker and nothing else.
    async fn marker(&mut self, question: &'static str, until: Instant) -> Result<(), SolverError> {
        let line = self.line(question, "the answer", MAX_ANSWER, MAX_ANSWER, until).await?;
        let (said, expected) = (line.trim_ascii(), self.expected());
        // Some releases print an echoed string without its quotes.
        let bare = expected.strip_prefix(b"\"").and_then(|e| e.strip_suffix(b"\""));
        if said == expected || Some(said) == bare { Ok(()) } else { Err(self.odd(question, said)) }
    }

    /// A line that was read, or what its absence means.
    fn judged(
        &mut self,
        read: Result<Result<Vec<u8>, NoLine>, ()>,
        question: &'static str,
        what: &'static str,
        limit: usize,
    ) -> Result<Vec<u8>, SolverError> {
        let solver = self.solver.clone();
        Err(match read {
            Ok(Ok(line)) => return Ok(line),
            Ok(Err(NoLine::TooLong)) => self.too_much(what, limit),
            Ok(Err(NoLine::Failed(source))) => SolverError::Pipe { solver, source },
            Ok(Err(NoLine::End)) => self.died(),
            Err(()) => SolverError::Hangs { solver, question, seconds: self.limits.whole().as_secs() },
        })
    }

    fn died(&mut self) -> SolverError {
        self.group.await_exit(PARTING);
        self.group.end();
        SolverError::Died { solver: self.solver.clone(), status: self.group.status(), stderr: self.stderr.text() }
    }

    fn too_much(&self, what: &'static str, limit: usize) -> SolverError {
        SolverError::TooMuch { solver: self.solver.clone(), what, limit }
    }

    /// A line that is no answer.
    fn odd(&self, question: &'static str, line: &[u8]) -> SolverError {
        let (solver, said) = (self.solver.clone(), excerpt(line));
        if line.trim_ascii_start().starts_with(b"(error") {
            SolverError::Refused { solver, said }
        } else {
            SolverError::Garbage { solver, question, said }
        }
    }
}

/// Writes what is left, and counts it, so that it can be taken up again.
async fn write_rest(stdin: &mut ChildStdin, bytes: &[u8], sent: &mut usize) {
    while let Some(rest) = bytes.get(*sent..).filter(|rest| !rest.is_empty()) {
        match stdin.write(rest).await {
            Ok(written) if written > 0 => *sent += written,
            // A solver that is gone shows at the reading end, with its status.
            _ => *sent = bytes.len(),
        }
    }
}

/// The outcome of `main`, with `side` driven until then.
async fn beside<T>(side: impl Future<Output = ()>, main: impl Future<Output = T>) -> T {
    let (mut side, mut main) = (pin!(side), pin!(main));
    let mut over = false;
    poll_fn(move |context| {
        over = over || side.as_mut().poll(context).is_ready();
        main.as_mut().poll(context)
    })
    .await
}

impl Solver for Process {
    fn smtlib_input(&mut self) -> &mut (dyn AsyncWrite + Unpin + Send) {
        &mut self.question
    }

    async fn enable_models(&mut self) -> Result<(), SymccError> {
        self.question.extend_from_slice(b"(set-option :produce-models true)\n");
        Ok(())
    }

    async fn check_sat(&mut self) -> Result<Decision, SymccError> {
        Ok(self.ask(false).await?.0)
    }

    async fn check_sat_with_model(&mut self) -> Result<DecisionWithModel, SymccError> {
        Ok(match self.ask(true).await? {
            (Decision::Sat, Some(model)) => DecisionWithModel::Sat { model },
            (Decision::Unsat, _) => DecisionWithModel::Unsat,
            // `Sat` comes with its model.
            _ => DecisionWithModel::Unknown,
        })
    }
}
