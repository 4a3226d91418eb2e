//! `polctl solver`: which solver the second engine would use.

use std::path::{Path, PathBuf};

use clap::{Args as ClapArgs, Subcommand};
use miette::Diagnostic as _;

use super::args::Format;
use super::session::Failure;
use super::{exit, output};
use crate::analyze::smt::solver::{Found, Places, Search, search};

/// Arguments of `solver`.
#[derive(Debug, ClapArgs)]
pub struct SolverArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: SolverCommand,
}

/// The commands below `solver`.
#[derive(Debug, Subcommand)]
pub enum SolverCommand {
    /// Say which solver is used, where it was found, and what was looked at
    ///
    /// Exit code 0 if there is a usable solver, 3 if not.
    Status(StatusArgs),
}

/// Arguments of `solver status`.
#[derive(Debug, ClapArgs)]
pub struct StatusArgs {
    /// The solver's executable; without it: POLCTL_SOLVER, CVC5, `cvc5` on PATH
    #[arg(long, value_name = "PATH")]
    pub solver: Option<PathBuf>,
    /// How the answer is shown
    #[arg(long, value_enum, default_value_t = Format::Human)]
    pub format: Format,
}

pub(super) fn run(args: &SolverArgs) -> Result<u8, Failure> {
    match &args.command {
        SolverCommand::Status(status) => status_of(status),
    }
}

/// Where a solver is looked for, from `--solver` and the environment.
pub(super) fn places(explicit: Option<&Path>) -> Places {
    Places {
        explicit: explicit.map(Path::to_owned),
        own_variable: std::env::var_os("POLCTL_SOLVER"),
        cvc5_variable: std::env::var_os("CVC5"),
        path: std::env::var_os("PATH"),
    }
}

fn status_of(args: &StatusArgs) -> Result<u8, Failure> {
    let search = search(&places(args.solver.as_deref()));
    let text = match args.format {
        Format::Human => human(&search),
        Format::Json => json(&search),
    };
    let code = if search.result.is_ok() { exit::OK } else { exit::INCONCLUSIVE };
    let printed = output::print(&text).map_or_else(|worse| worse.max(code), |()| code);
    match search.result {
        Err(error) if args.format == Format::Human => Err(error.into()),
        _ => Ok(printed),
    }
}

fn human(search: &Search) -> String {
    let mut text = match &search.result {
        Ok(located) => format!("{located}\n\n"),
        Err(_) => String::new(),
    };
    text.push_str("looked at:\n");
    for looked in &search.looked {
        let found = match &looked.found {
            Found::Nothing => "nothing".into(),
            Found::Unusable(why) => format!("unusable: {why}"),
            Found::Solver(located) => located.to_string(),
        };
        text.push_str(&format!("  {:<14} {found}\n", looked.place));
    }
    text
}

/// Version 1 of this format: fields may be added, nothing else changes.
fn json(search: &Search) -> String {
    let solver = |located: &crate::analyze::smt::solver::Located| serde_json::json!({"name": "cvc5", "version": located.version().to_string(), "path": located.path().display().to_string()});
    let looked = search.looked.iter().map(|looked| match &looked.found {
        Found::Nothing => serde_json::json!({"place": looked.place, "found": "nothing"}),
        Found::Unusable(why) => serde_json::json!({"place": looked.place, "found": "unusable", "reason": why}),
        Found::Solver(_) => serde_json::json!({"place": looked.place, "found": "solver"}),
    });
    let error = search.result.as_ref().err().map(
        |error| serde_json::json!({"message": error.to_string(), "help": error.help().map(|help| help.to_string())}),
    );
    let document = serde_json::json!({
        "version": 1,
        "usable": search.result.is_ok(),
        "solver": search.result.as_ref().ok().map(solver),
        "looked": looked.collect::<Vec<_>>(),
        "error": error,
    });
    format!("{document:#}\n")
}
