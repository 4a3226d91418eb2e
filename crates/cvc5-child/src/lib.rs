//! Drives cvc5's shared libraries with SMT-LIB text, as cvc5's executable would.
//!
//! Owns all `unsafe` of polctl's workspace: opening the libraries and calling their C
//! functions. It is meant for a child process that may hang, crash or be killed. It starts
//! nothing, reads no file but the libraries, and answers nothing that the library did not.

mod api;
mod split;

use std::ffi::CString;
use std::io::{BufRead, Write};
use std::path::Path;

use api::{Api, Session, Step};
use split::Splitter;

/// Largest command, in bytes.
const MAX_COMMAND: usize = 256 << 20;

/// Why the conversation ended early.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The libraries cannot be opened.
    #[error("cvc5's libraries cannot be opened")]
    Open(#[from] libloading::Error),
    /// The solver refused a command; its message was printed.
    #[error("cvc5 refuses: {0}")]
    Refused(String),
    /// The input is not a sequence of commands.
    #[error("the input is no SMT-LIB command: {0}")]
    Input(&'static str),
    /// The pipes fail.
    #[error("the pipes fail")]
    Pipe(#[from] std::io::Error),
}

/// cvc5's two libraries, opened.
#[derive(Debug)]
pub struct Cvc5 {
    api: Api,
}

impl Cvc5 {
    /// Opens the libraries: `solver` is libcvc5, `parser` is libcvc5parser beside it. Their
    /// code runs with all rights of this process, so their digests must be known.
    ///
    /// # Errors
    ///
    /// [`Error::Open`] where they are not cvc5's, or not for this system.
    pub fn open(solver: &Path, parser: &Path) -> Result<Cvc5, Error> {
        Ok(Cvc5 { api: Api::open(solver, parser)? })
    }

    /// Its version, as the library tells it.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] where the library fails.
    pub fn version(&self) -> Result<String, Error> {
        Session::new(&self.api, &[])?.version()
    }

    /// Reads commands to the end of `input` or `(exit)` and writes what they answer. Every
    /// `(reset)` starts a new solver with the same options.
    ///
    /// # Errors
    ///
    /// The first [`Error`]; a solver that failed once gives no more answers.
    pub fn serve(
        &self,
        options: &[(&str, &str)],
        input: &mut impl BufRead,
        output: &mut impl Write,
    ) -> Result<(), Error> {
        let mut session = Session::new(&self.api, options)?;
        let mut commands = Splitter::default();
        let mut line = Vec::new();
        while input.read_until(b'\n', &mut line)? > 0 {
            for command in commands.push(&line).map_err(Error::Input)? {
                let command = CString::new(command).map_err(|_| Error::Input("it holds a zero byte"))?;
                match session.run(&command) {
                    Ok(Step::Said(text)) => output.write_all(&text)?,
                    Ok(Step::Reset) => {
                        // The old one goes before the new one comes.
                        drop(session);
                        session = Session::new(&self.api, options)?;
                    }
                    Ok(Step::Exit) => return Ok(output.flush()?),
                    Err(error) => {
                        writeln!(output, "(error \"{}\")", one_line(&error.to_string()))?;
                        output.flush()?;
                        return Err(error);
                    }
                }
            }
            if commands.waiting() > MAX_COMMAND {
                return Err(Error::Input("it is too large"));
            }
            output.flush()?;
            line.clear();
        }
        if commands.waiting() > 0 { Err(Error::Input("it ends in the middle")) } else { Ok(()) }
    }
}

/// A message as the inside of an SMT-LIB string on one line.
fn one_line(text: &str) -> String {
    text.replace('"', "\"\"").replace(['\n', '\r'], " ")
}
