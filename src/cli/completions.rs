//! `polctl completions`: what a shell needs to complete the command line, made from the arguments.

use clap::CommandFactory as _;

use super::args::{Args, CompletionsArgs};
use super::session::Failure;
use super::{exit, output};

#[expect(clippy::unnecessary_wraps, reason = "the same signature as every command")]
pub(super) fn run(args: &CompletionsArgs) -> Result<u8, Failure> {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut Args::command(), "polctl", &mut text);
    Ok(output::print(&String::from_utf8_lossy(&text)).map_or_else(|code| code, |()| exit::OK))
}
