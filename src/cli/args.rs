//! What was typed.

use std::path::PathBuf;

use crate::compile::Compiled;
use clap::{Args as ClapArgs, Parser, Subcommand, ValueEnum};

/// Signed policy toolchain and CI analyzer for teams that run AI agents.
#[derive(Debug, Parser)]
#[command(
    name = "polctl",
    version,
    about,
    after_help = "Exit codes: 0 nothing wrong; 1 findings; 2 wrong usage or unreadable input; 3 inconclusive."
)]
pub struct Args {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Judge a policy directory, and with --base what changed since then
    ///
    /// Reads polctl.yaml and everything it names. Fails on malformed policy, on rules that are
    /// too broad, and on anything that is permitted now and was not permitted at the base.
    Check(CheckArgs),
    /// Compare two policy sets: what is newly permitted, what is no longer
    ///
    /// OLD and NEW are directories with a polctl.yaml, or git revisions of the directory given by --dir.
    Diff(DiffArgs),
    /// Compile a policy directory to Cedar
    Compile(CompileArgs),
    /// Explain a finding code, or list all codes
    Rule(RuleArgs),
}

/// Output of findings.
#[derive(Debug, ClapArgs)]
pub struct OutputArgs {
    /// How findings are shown
    #[arg(long, value_enum, default_value_t = Format::Human)]
    pub format: Format,
    /// Also fail on findings of this level
    #[arg(long, value_enum, value_name = "LEVEL")]
    pub deny: Option<Deny>,
}

impl OutputArgs {
    /// The `policy_id` of a version, where the format shows it: it costs printing the whole set.
    pub(super) fn policy_id(&self, compiled: Option<&Compiled>) -> Option<String> {
        compiled.filter(|_| self.format == Format::Json).map(Compiled::policy_id)
    }
}

/// Arguments of `check`.
#[derive(Debug, ClapArgs)]
pub struct CheckArgs {
    /// The policy directory (with polctl.yaml)
    #[arg(long, short = 'C', default_value = ".", value_name = "DIR")]
    pub dir: PathBuf,
    /// What to compare with: a git revision (HEAD~1, origin/main) or a directory
    #[arg(long, value_name = "REF|DIR", conflicts_with = "initial")]
    pub base: Option<String>,
    /// First adoption: there is no base; everything counts as reviewed
    #[arg(long)]
    pub initial: bool,
    /// Output.
    #[command(flatten)]
    pub output: OutputArgs,
}

/// Arguments of `diff`.
#[derive(Debug, ClapArgs)]
pub struct DiffArgs {
    /// The old version: a directory or a git revision
    pub old: String,
    /// The new version: a directory or a git revision
    pub new: String,
    /// The policy directory that git revisions are read for
    #[arg(long, short = 'C', default_value = ".", value_name = "DIR")]
    pub dir: PathBuf,
    /// Output.
    #[command(flatten)]
    pub output: OutputArgs,
}

/// Arguments of `compile`.
#[derive(Debug, ClapArgs)]
pub struct CompileArgs {
    /// The policy directory (with polctl.yaml)
    #[arg(long, short = 'C', default_value = ".", value_name = "DIR")]
    pub dir: PathBuf,
    /// Write schema, policies and index into this directory; without it, policies go to standard output
    #[arg(long, short = 'o', value_name = "DIR")]
    pub output: Option<PathBuf>,
}

/// Arguments of `rule`.
#[derive(Debug, ClapArgs)]
pub struct RuleArgs {
    /// A finding code, such as `widening`
    pub code: Option<String>,
}

/// Output formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Source excerpts for people
    Human,
    /// One JSON document
    Json,
}

/// Levels that can be denied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Deny {
    /// Findings of level warning fail too
    Warnings,
}
