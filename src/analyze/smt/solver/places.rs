//! Where a solver is looked for, and what was found there.
//!
//! Owns the order of places: `--solver`, `POLCTL_SOLVER`, `CVC5`, then PATH, then polctl's
//! cache. A setting that does not work is an error and never a reason to look further. The
//! policy under review has no say: nothing is read from `polctl.yaml` or taken from the
//! current directory, since a change must not choose the program that judges it.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use tokio::time::Duration;

use super::error::{SolverError, excerpt};
use super::group::bare;
use super::library::library_dir;
use super::short;
use super::version::Version;

/// How long `--version` may take.
const VERSION_TIME: Duration = Duration::from_secs(5);
/// How much of its output is read, in bytes.
const VERSION_BYTES: u64 = 4 << 10;

/// The places, as command line and environment give them.
#[derive(Clone, Debug, Default)]
pub struct Places {
    /// `--solver`.
    pub explicit: Option<PathBuf>,
    /// The variable `POLCTL_SOLVER`.
    pub own_variable: Option<OsString>,
    /// The variable `CVC5`, which Cedar's own tools read too.
    pub cvc5_variable: Option<OsString>,
    /// The variable `PATH`.
    pub path: Option<OsString>,
    /// polctl's cache directory.
    pub cache: Option<PathBuf>,
    /// polctl's own executable, which runs the libraries in the cache.
    pub polctl: Option<PathBuf>,
}

/// One place and what was there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Looked {
    /// The place, as a person knows it.
    pub place: &'static str,
    /// What was there.
    pub found: Found,
}

/// What was in a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// The setting is not made, or there is nothing.
    Nothing,
    /// Something that cannot be used, and why.
    Unusable(String),
    /// The solver that is used.
    Solver(Located),
}

/// A solver whose version is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Located {
    program: Program,
    version: Version,
}

/// What runs.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Program {
    /// cvc5's executable.
    Executable(PathBuf),
    /// cvc5's libraries in this directory, in a child of polctl.
    Library { dir: PathBuf, polctl: PathBuf },
}

impl Program {
    fn path(&self) -> &Path {
        match self {
            Program::Executable(path) => path,
            Program::Library { dir, .. } => dir,
        }
    }

    /// The command before its arguments.
    fn command(&self) -> Command {
        match self {
            Program::Executable(path) => bare(path),
            Program::Library { dir, polctl } => {
                let mut command = bare(polctl);
                command.args(["solver", "serve", "--dir"]).arg(dir);
                command
            }
        }
    }
}

impl Located {
    /// The first solver in the order of places.
    ///
    /// # Errors
    ///
    /// [`SolverError`] where a setting does not work or nothing is found.
    pub fn find(places: &Places) -> Result<Located, SolverError> {
        search(places).result
    }

    /// Where it is: an executable, or the directory of the libraries.
    pub fn path(&self) -> &Path {
        self.program.path()
    }

    /// Whether it is the libraries, run by polctl.
    pub fn is_library(&self) -> bool {
        matches!(self.program, Program::Library { .. })
    }

    /// Its version.
    pub fn version(&self) -> &Version {
        &self.version
    }

    /// The command that answers SMT-LIB, with this long for a question.
    ///
    /// `--tlimit-per` counts the work on one question; `--tlimit` would count idle time too and
    /// end a solver that is used again. Questions start with `(reset)`, so `--incremental`,
    /// which costs simplifications, is not needed.
    pub(super) fn command(&self, question: Duration) -> Command {
        let mut command = self.program.command();
        if !self.is_library() {
            command.args(["--lang", "smt", "--strings-exp"]);
        }
        command.arg(format!("--tlimit-per={}", question.as_millis().max(1)));
        command
    }
}

impl fmt::Display for Located {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if self.is_library() { "libraries in " } else { "" };
        write!(f, "cvc5 {} ({kind}{})", self.version, self.path().display())
    }
}

/// A search with all that was looked at.
#[derive(Debug)]
pub struct Search {
    /// The places up to the one that decided, in order.
    pub looked: Vec<Looked>,
    /// The solver, or why there is none.
    pub result: Result<Located, SolverError>,
}

/// Looks for a solver.
pub fn search(places: &Places) -> Search {
    let mut looked = Vec::new();
    let set = |value: &Option<OsString>| value.clone().filter(|v| !v.is_empty()).map(PathBuf::from);
    let settings = [
        ("--solver", places.explicit.clone(), false),
        ("POLCTL_SOLVER", set(&places.own_variable), true),
        ("CVC5", set(&places.cvc5_variable), true),
    ];
    for (place, value, absolute) in settings {
        let Some(path) = value else {
            looked.push(Looked { place, found: Found::Nothing });
            continue;
        };
        let result = named(place, path, absolute);
        looked.push(Looked { place, found: found(&result) });
        return Search { looked, result };
    }
    // What is only found, and not named, may be unusable without being the last word.
    let mut first = None;
    for (place, program) in [("PATH", executable(places)), ("cache", library(places))] {
        let result = program.map(examined);
        looked.push(Looked { place, found: result.as_ref().map_or(Found::Nothing, found) });
        match result {
            Some(Ok(located)) => return Search { looked, result: Ok(located) },
            Some(Err(error)) => first = first.or(Some(error)),
            None => {}
        }
    }
    Search { looked, result: Err(first.unwrap_or(SolverError::Missing)) }
}

fn executable(places: &Places) -> Option<Program> {
    on_path(places.path.as_deref(), "cvc5").map(Program::Executable)
}

/// The libraries in the cache. Their digests are checked by the child that opens them.
fn library(places: &Places) -> Option<Program> {
    let dir = library_dir(places.cache.as_deref()?);
    let polctl = places.polctl.clone()?;
    (dir.is_absolute() && dir.is_dir()).then_some(Program::Library { dir, polctl })
}

fn found(result: &Result<Located, SolverError>) -> Found {
    match result {
        Ok(located) => Found::Solver(located.clone()),
        Err(error) => Found::Unusable(error.to_string()),
    }
}

/// A solver that a setting names.
fn named(from: &'static str, path: PathBuf, absolute: bool) -> Result<Located, SolverError> {
    if absolute && !path.is_absolute() {
        return Err(SolverError::Relative { from, path });
    }
    // A bare name would be looked up on PATH by the system.
    match std::path::absolute(&path) {
        Ok(whole) if whole.is_file() => examined(Program::Executable(whole)),
        _ => Err(SolverError::NoFile { from, path }),
    }
}

/// The first executable of a name in PATH's absolute entries.
pub(super) fn on_path(path: Option<&OsStr>, name: &str) -> Option<PathBuf> {
    let executable =
        |file: &PathBuf| file.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0);
    split(path?).filter(|dir| dir.is_absolute()).map(|dir| dir.join(name)).find(executable)
}

fn split(path: &OsStr) -> impl Iterator<Item = PathBuf> + '_ {
    use std::os::unix::ffi::OsStrExt as _;
    path.as_bytes().split(|byte| *byte == b':').map(|entry| PathBuf::from(OsStr::from_bytes(entry)))
}

/// Asks a program for its version.
fn examined(program: Program) -> Result<Located, SolverError> {
    let mut command = program.command();
    let output = short::output(command.arg("--version"), "`--version`", VERSION_TIME, VERSION_BYTES)?;
    let solver = program.path().display().to_string();
    let Some(version) = Version::read(&String::from_utf8_lossy(&output.stdout)) else {
        return Err(match &program {
            Program::Library { dir, .. } => SolverError::Library { dir: dir.clone(), reason: output.stderr },
            Program::Executable(_) => SolverError::Other { solver, said: excerpt(&output.stdout) },
        });
    };
    if !version.is_supported() {
        return Err(SolverError::Old { solver, version: version.to_string() });
    }
    Ok(Located { program, version })
}
