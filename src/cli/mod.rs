//! The command line: arguments, what they mean, one file per command.
//!
//! The only module that prints and that knows exit codes.

mod approvals;
mod approve;
mod args;
mod cache;
mod census;
mod check;
mod compile;
mod compiler_change;
mod completions;
mod diff;
mod diff_cedar;
mod envelope;
mod explain;
mod gate;
mod hook;
mod import;
mod init;
mod keys;
mod man;
mod outcome;
mod output;
mod places;
mod policy_gate;
mod programs;
mod report;
mod retention;
mod rule;
mod session;
mod sign;
mod solver;
mod vault;
mod verify;

pub use args::Args;

use std::process::ExitCode;

use clap::{Args as _, FromArgMatches as _, Parser as _};

use args::{Command, HookArgs};

/// Exit codes of DESIGN 9.
pub mod exit {
    /// Nothing wrong.
    pub const OK: u8 = 0;
    /// Findings of level error.
    pub const FINDINGS: u8 = 1;
    /// Wrong usage, or input that cannot be read.
    pub const USAGE: u8 = 2;
    /// polctl could not decide.
    pub const INCONCLUSIVE: u8 = 3;
    /// A signature was refused.
    pub const REFUSED: u8 = 4;
}

/// Parses the arguments, runs the command and returns its exit code.
pub fn run() -> ExitCode {
    if let Some(args) = hook_alone() {
        return ended(hook::run(&args));
    }
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(error) => {
            // Help and version are answers; everything else is wrong usage.
            let code = if error.use_stderr() { exit::USAGE } else { exit::OK };
            let printed = error.print().is_ok();
            return ExitCode::from(if printed { code } else { exit::USAGE });
        }
    };
    let result = match &args.command {
        Command::Check(check) => check::run(check),
        Command::Diff(diff) => diff::run(diff),
        Command::Compile(compile) => compile::run(compile),
        Command::Explain(explain) => explain::run(explain),
        Command::Report(report) => report::run(report),
        Command::Init(init) => init::run(init),
        Command::Hook(hook) => hook::run(hook),
        Command::Import(import) => import::run(import),
        Command::Programs(programs) => programs::run(programs),
        Command::Sign(sign) => sign::run(sign, &policy_gate::PolicyGate),
        Command::Verify(verify) => verify::run(verify, &policy_gate::PolicyGate),
        Command::Keys(keys) => keys::run(keys),
        Command::Approve(approve) => approve::run(approve, &policy_gate::PolicyGate),
        Command::Solver(solver) => solver::run(solver),
        Command::Census(census) => census::run(census),
        Command::Retention(retention) => retention::run(retention),
        Command::Rule(rule) => rule::run(rule),
        Command::Completions(completions) => completions::run(completions),
        Command::Man(man) => man::run(man),
    };
    ended(result)
}

fn ended(result: Result<u8, session::Failure>) -> ExitCode {
    ExitCode::from(result.unwrap_or_else(|failure| output::failure(&failure)))
}

/// The arguments of `polctl hook`, read without those of all other commands: an agent waits for
/// it before each command. `None` when it is another command or anything is wrong with them, and
/// all of them are read.
fn hook_alone() -> Option<HookArgs> {
    let mut given = std::env::args_os().skip(1);
    if given.next()? != "hook" {
        return None;
    }
    let command = HookArgs::augment_args(clap::Command::new("hook")).no_binary_name(true);
    HookArgs::from_arg_matches(&command.try_get_matches_from(given).ok()?).ok()
}
