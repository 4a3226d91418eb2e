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
    path: PathBuf,
    version: Version,
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

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its version.
    pub fn version(&self) -> Version {
        self.version
    }

    pub(super) fn command(&self) -> Command {
        Command::new(&self.path)
    }
}

impl fmt::Display for Located {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cvc5 {} ({})", self.version, self.path.display())
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
    let place = "PATH";
    let result = match on_path(places.path.as_deref()) {
        Some(path) => examined(path),
        None => {
            looked.push(Looked { place, found: Found::Nothing });
            return Search { looked, result: Err(SolverError::Missing) };
        }
    };
    looked.push(Looked { place, found: found(&result) });
    Search { looked, result }
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
        Ok(whole) if whole.is_file() => examined(whole),
        _ => Err(SolverError::NoFile { from, path }),
    }
}

/// The first executable `cvc5` in PATH's absolute entries.
fn on_path(path: Option<&OsStr>) -> Option<PathBuf> {
    let executable =
        |file: &PathBuf| file.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0);
    split(path?).filter(|dir| dir.is_absolute()).map(|dir| dir.join("cvc5")).find(executable)
}

fn split(path: &OsStr) -> impl Iterator<Item = PathBuf> + '_ {
    use std::os::unix::ffi::OsStrExt as _;
    path.as_bytes().split(|byte| *byte == b':').map(|entry| PathBuf::from(OsStr::from_bytes(entry)))
}

/// Asks a program for its version.
fn examined(path: PathBuf) -> Result<Located, SolverError> {
    let said = short::output(Command::new(&path).arg("--version"), "`--version`", VERSION_TIME, VERSION_BYTES)?;
    let solver = path.display().to_string();
    let Some(version) = Version::read(&String::from_utf8_lossy(&said)) else {
        return Err(SolverError::Other { solver, said: excerpt(&said) });
    };
    if !version.is_supported() {
        return Err(SolverError::Old { solver, version: version.to_string() });
    }
    Ok(Located { path, version })
}
