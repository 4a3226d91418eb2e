//! `polctl man`: a manual page for each command, made from the arguments.

use clap::CommandFactory as _;

use super::args::{Args, ManArgs};
use super::session::Failure;
use super::{exit, output};

pub(super) fn run(args: &ManArgs) -> Result<u8, Failure> {
    let failed = |source| Failure::Write { what: format!("manual pages in `{}`", args.dir.display()), source };
    std::fs::create_dir_all(&args.dir).map_err(failed)?;
    // Not the pages of `help`, which say nothing that the others do not.
    clap_mangen::generate_to(Args::command().disable_help_subcommand(true), &args.dir).map_err(failed)?;
    let text = format!(
        "polctl man: manual pages in `{}`; `man -l {}` shows one\n",
        args.dir.display(),
        args.dir.join("polctl.1").display()
    );
    Ok(output::print(&text).map_or_else(|code| code, |()| exit::OK))
}
