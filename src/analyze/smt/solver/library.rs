//! cvc5's shared libraries in the place of its executable.
//!
//! Owns the child's side of the conversation: the digests are checked again, the libraries
//! are opened, and SMT-LIB is answered as the executable would. It runs in a process of its
//! own (`polctl solver serve`), so a crash of the library is the end of a child and no more.

use std::io::{BufRead, Write};
use std::path::{Path, PathBuf};

use cvc5_child::Cvc5;

use super::error::SolverError;
use super::pins::{LIBRARY_VERSION, Wheel};

/// Where the libraries stand in polctl's cache directory.
pub fn library_dir(cache: &Path) -> PathBuf {
    cache.join("solver").join(LIBRARY_VERSION)
}

/// Opens the libraries in `dir`, after their digests were checked.
fn open(dir: &Path) -> Result<Cvc5, SolverError> {
    let library = |reason: String| SolverError::Library { dir: dir.to_owned(), reason };
    let wheel = Wheel::here().ok_or_else(|| library("there are none for this system".into()))?;
    wheel.check(dir).map_err(|name| library(format!("`{name}` is missing or has another digest")))?;
    let [(solver, _), (parser, _), ..] = wheel.libraries;
    Cvc5::open(&dir.join(solver), &dir.join(parser)).map_err(|error| library(cause(&error)))
}

/// What `cvc5 --version` would print.
///
/// # Errors
///
/// [`SolverError::Library`] where the libraries cannot be used.
pub fn library_version(dir: &Path) -> Result<String, SolverError> {
    let version = open(dir)?.version();
    let version = version.map_err(|error| SolverError::Library { dir: dir.to_owned(), reason: cause(&error) })?;
    Ok(format!("This is cvc5 version {version}\n"))
}

/// Answers SMT-LIB commands until the input ends, with `limit` milliseconds for each question.
///
/// # Errors
///
/// [`SolverError::Library`] where the libraries cannot be used or refuse a command; there is
/// no answer after it.
pub fn serve_library(
    dir: &Path,
    limit: u64,
    input: &mut impl BufRead,
    output: &mut impl Write,
) -> Result<(), SolverError> {
    let limit = limit.to_string();
    let options = [("strings-exp", "true"), ("tlimit-per", limit.as_str())];
    let served = open(dir)?.serve(&options, input, output);
    served.map_err(|error| SolverError::Library { dir: dir.to_owned(), reason: cause(&error) })
}

/// An error with what is behind it.
fn cause(error: &dyn std::error::Error) -> String {
    match error.source() {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}
