//! What can go wrong with a solver. Every case ends as *inconclusive*, never as a verdict.

use std::io;
use std::path::PathBuf;

use super::version::OLDEST;

/// How to get a solver.
const INSTALL: &str = "install cvc5 (Debian: cvc5) or run `polctl solver install`; `--solver PATH` names one";

/// Why there is no answer from a solver.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
#[non_exhaustive]
pub enum SolverError {
    /// Nothing was found in any place.
    #[error("no cvc5 solver was found")]
    #[diagnostic(help("{INSTALL}"))]
    Missing,
    /// A setting names something that is not there, or no file.
    #[error("`{from}` names `{path}`, which is no file")]
    #[diagnostic(help("correct the path; polctl takes no other solver in its place"))]
    NoFile {
        /// The setting.
        from: &'static str,
        /// What it names.
        path: PathBuf,
    },
    /// A variable holds a path that depends on the current directory.
    #[error("`{from}` names `{path}`, which is no absolute path")]
    #[diagnostic(help("give the whole path: a directory under review must not bring the solver"))]
    Relative {
        /// The setting.
        from: &'static str,
        /// What it names.
        path: PathBuf,
    },
    /// The program does not start.
    #[error("the solver `{solver}` cannot be started")]
    #[diagnostic(help("make it executable, or {INSTALL}"))]
    Start {
        /// The program.
        solver: String,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The program is another one.
    #[error("`{solver}` is not cvc5; its version reads `{said}`")]
    #[diagnostic(help("only cvc5 knows the theories that Cedar needs: {INSTALL}"))]
    Other {
        /// The program.
        solver: String,
        /// The beginning of what it printed.
        said: String,
    },
    /// The program is too old.
    #[error("`{solver}` is cvc5 {version}; polctl needs {OLDEST} or newer")]
    #[diagnostic(help("{INSTALL}"))]
    Old {
        /// The program.
        solver: String,
        /// Its version.
        version: String,
    },
    /// cvc5's shared libraries cannot be used.
    #[error("cvc5's libraries in `{dir}` cannot be used: {reason}")]
    #[diagnostic(help("run `polctl solver install` to put them there anew"))]
    Library {
        /// Where they stand.
        dir: PathBuf,
        /// Why.
        reason: String,
    },
    /// The solver gave no answer in time, not even that it does not know.
    #[error("the solver `{solver}` did not answer {question} within {seconds} seconds and was ended")]
    #[diagnostic(help("try again; if it stays so, use another version of cvc5"))]
    Hangs {
        /// The program.
        solver: String,
        /// What it was asked.
        question: &'static str,
        /// How long it had.
        seconds: u64,
    },
    /// The solver printed something that is no answer.
    #[error("the solver `{solver}` answered {question} with `{said}`")]
    #[diagnostic(help("check with `polctl solver status` that it is a cvc5 of a supported version"))]
    Garbage {
        /// The program.
        solver: String,
        /// What it was asked.
        question: &'static str,
        /// The beginning of what it printed.
        said: String,
    },
    /// The solver refused the question.
    #[error("the solver `{solver}` reports an error: {said}")]
    #[diagnostic(help("this is a defect of polctl or a solver too old for the policy; try a newer cvc5"))]
    Refused {
        /// The program.
        solver: String,
        /// The beginning of what it printed.
        said: String,
    },
    /// The solver ended before it had answered.
    #[error("the solver `{solver}` ended before its answer ({status}){}", shown(stderr))]
    #[diagnostic(help("it may have run out of memory; try a newer cvc5"))]
    Died {
        /// The program.
        solver: String,
        /// Exit code or signal.
        status: String,
        /// The end of what it wrote on standard error.
        stderr: String,
    },
    /// More than polctl takes.
    #[error("{what} of the solver `{solver}` is larger than {limit} bytes")]
    #[diagnostic(help("the question is too large for this engine"))]
    TooMuch {
        /// The program.
        solver: String,
        /// What is too large.
        what: &'static str,
        /// The limit, in bytes.
        limit: usize,
    },
    /// The solver failed earlier and is not asked again.
    #[error("the solver `{solver}` failed earlier and is not asked again")]
    #[diagnostic(help("start a new one"))]
    Failed {
        /// The program.
        solver: String,
    },
    /// The pipes to the solver fail.
    #[error("the pipes to the solver `{solver}` fail")]
    Pipe {
        /// The program.
        solver: String,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// There is nothing that could wait for the solver.
    #[error("no event queue for the solver")]
    #[diagnostic(help("the system may be out of file descriptors"))]
    Runtime {
        /// What the system said.
        #[source]
        source: io::Error,
    },
}

fn shown(stderr: &str) -> String {
    if stderr.is_empty() { String::new() } else { format!(": {stderr}") }
}

/// The beginning of foreign output, on one line.
pub(super) fn excerpt(bytes: &[u8]) -> String {
    const SHOWN: usize = 200;
    let mut text = one_line(bytes.get(..SHOWN).unwrap_or(bytes));
    if bytes.len() > SHOWN {
        text.push('…');
    }
    text
}

/// Foreign output as one line that cannot disturb a terminal.
pub(super) fn one_line(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let visible = |c: char| if c.is_control() { c.escape_default().collect() } else { String::from(c) };
    text.trim().chars().map(visible).collect()
}
