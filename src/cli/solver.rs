//! `polctl solver`: which solver the second engine uses, and how to get one.

use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args as ClapArgs, Subcommand, ValueEnum};
use miette::Diagnostic as _;
use rustix::process::{Signal, getpid, getppid, kill_process};

use super::session::Failure;
use super::{exit, output};
use crate::analyze::smt::solver::{
    Found, LIBRARY_VERSION, Located, Places, Search, SolverError, install, library_version, search, serve_library,
};

/// How often the child looks for its parent.
const PARENT_WATCH: Duration = Duration::from_millis(250);

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
    /// Put cvc5's libraries into polctl's cache directory, for machines without its executable
    ///
    /// They come from the Python package cvc5, fetched with pip or given by --wheel; only the
    /// release whose digest polctl knows is taken.
    Install(InstallArgs),
    /// Answer SMT-LIB on standard input with the libraries in a directory: polctl's own child
    #[command(hide = true)]
    Serve(ServeArgs),
}

/// Arguments of `solver install`.
#[derive(Debug, ClapArgs)]
pub struct InstallArgs {
    /// The package, already fetched
    #[arg(long, value_name = "FILE")]
    pub wheel: Option<PathBuf>,
}

/// Arguments of `solver serve`.
#[derive(Debug, ClapArgs)]
pub struct ServeArgs {
    /// Where the libraries are
    #[arg(long)]
    pub dir: PathBuf,
    /// Milliseconds for one question
    #[arg(long, default_value_t = 10_000)]
    pub tlimit_per: u64,
    /// Print the version and end
    #[arg(long)]
    pub version: bool,
}

/// Arguments of `solver status`.
#[derive(Debug, ClapArgs)]
pub struct StatusArgs {
    /// The solver's executable; without it: `POLCTL_SOLVER`, `CVC5`, `cvc5` on PATH, polctl's cache
    #[arg(long, value_name = "PATH")]
    pub solver: Option<PathBuf>,
    /// How the answer is shown
    #[arg(long, value_enum, default_value_t = StatusFormat::Human)]
    pub format: StatusFormat,
}

/// Output formats of `solver status`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum StatusFormat {
    /// Text for people
    Human,
    /// One JSON document
    Json,
}

pub(super) fn run(args: &SolverArgs) -> Result<u8, Failure> {
    match &args.command {
        SolverCommand::Status(status) => status_of(status),
        SolverCommand::Install(install) => installed(install),
        SolverCommand::Serve(serve) => Ok(served(serve)),
    }
}

/// Where a solver is looked for, from `--solver` and the environment.
pub(super) fn places(explicit: Option<&Path>) -> Places {
    Places {
        explicit: explicit.map(Path::to_owned),
        own_variable: std::env::var_os("POLCTL_SOLVER"),
        cvc5_variable: std::env::var_os("CVC5"),
        path: std::env::var_os("PATH"),
        cache: cache_dir(),
        polctl: std::env::current_exe().ok(),
    }
}

/// polctl's cache directory: `$XDG_CACHE_HOME/polctl`, or `~/.cache/polctl`.
pub(super) fn cache_dir() -> Option<PathBuf> {
    // A relative one would depend on the directory under review.
    let absolute = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let base = absolute("XDG_CACHE_HOME").or_else(|| absolute("HOME").map(|home| home.join(".cache")));
    base.map(|base| base.join("polctl"))
}

fn installed(args: &InstallArgs) -> Result<u8, Failure> {
    let cache = cache_dir().ok_or_else(|| {
        Failure::usage("there is no cache directory", "set HOME or XDG_CACHE_HOME to an absolute path")
    })?;
    if args.wheel.is_none() {
        output::progress("fetching cvc5");
    }
    let (dir, was_there) = install(args.wheel.as_deref(), &cache, std::env::var_os("PATH").as_deref())?;
    let done = if was_there { "is already in" } else { "is now in" };
    let text = format!("cvc5 {LIBRARY_VERSION} {done} {}\n", dir.display());
    Ok(output::print(&text).map_or_else(|worse| worse, |()| exit::OK))
}

/// The child that runs the libraries.
fn served(args: &ServeArgs) -> u8 {
    let result = if args.version {
        library_version(&args.dir).map(|version| output::print(&version))
    } else {
        end_with_parent();
        let (mut input, mut out) = (std::io::stdin().lock(), BufWriter::new(std::io::stdout().lock()));
        serve_library(&args.dir, args.tlimit_per, &mut input, &mut out).map(Ok)
    };
    match result {
        Ok(printed) => printed.map_or_else(|worse| worse, |()| exit::OK),
        Err(error) => {
            // The parent has the rest of the message.
            output::notice(&match error {
                SolverError::Library { reason, .. } => reason,
                other => other.to_string(),
            });
            exit::INCONCLUSIVE
        }
    }
}

/// Ends this process when its parent is gone, also in the middle of a question: a solver that
/// nobody waits for must not stay.
fn end_with_parent() {
    let parent = getppid();
    std::thread::spawn(move || {
        while getppid() == parent {
            std::thread::sleep(PARENT_WATCH);
        }
        // Nothing is worth finishing.
        let _ = kill_process(getpid(), Signal::KILL);
    });
}

fn status_of(args: &StatusArgs) -> Result<u8, Failure> {
    let search = search(&places(args.solver.as_deref()));
    let text = match args.format {
        StatusFormat::Human => human(&search),
        StatusFormat::Json => json(&search),
    };
    let code = if search.result.is_ok() { exit::OK } else { exit::INCONCLUSIVE };
    let printed = output::print(&text).map_or_else(|worse| worse.max(code), |()| code);
    match search.result {
        Err(error) if args.format == StatusFormat::Human => Err(error.into()),
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
    let solver = |located: &Located| {
        let kind = if located.is_library() { "libraries" } else { "executable" };
        let (version, path) = (located.version().to_string(), located.path().display().to_string());
        serde_json::json!({"name": "cvc5", "kind": kind, "version": version, "path": path})
    };
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
