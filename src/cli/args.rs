//! What was typed.

use std::path::PathBuf;

use crate::analyze::Engines;
use crate::analyze::smt::Engine;
use crate::analyze::smt::solver::{Limits, Places};
use crate::compile::Compiled;
use clap::{Args as ClapArgs, Parser, Subcommand, ValueEnum};

/// Signed policy toolchain and CI analyzer for teams that run AI agents.
#[derive(Debug, Parser)]
#[command(
    name = "polctl",
    version,
    about,
    after_help = "Exit codes: 0 nothing wrong; 1 findings; 2 wrong usage or unreadable input; 3 inconclusive; 4 signature refused."
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
    /// Say which rule decides a command line or a request, and why it is not of a lower tier
    ///
    /// LINE is one argument: `polctl explain 'git push -f'`. For the other surfaces name the surface
    /// first: `polctl explain egress 'GET https://api.example.com/'`, `polctl explain sudo 'systemctl restart x'`.
    Explain(ExplainArgs),
    /// Decide a tool call of an agent: a `PreToolUse` hook that reads its event on standard input
    ///
    /// Answers allow, ask or deny in the protocol of Claude Code's hooks. Whatever goes wrong is
    /// answered with deny.
    Hook(HookArgs),
    /// Turn the rules of another tool into a tier map that permits no more
    ///
    /// Each rule of the map says the file and line that it comes from. What our patterns cannot say the same
    /// becomes narrower, or broader where it restricts, and is told line by line.
    Import(super::import::ImportArgs),
    /// Check a policy directory and sign exactly the checked bytes
    Sign(super::sign::SignArgs),
    /// Verify a signed policy directory, offline
    Verify(super::verify::VerifyArgs),
    /// Make, show, pin and rotate signing keys
    Keys(super::keys::KeysArgs),
    /// Approve the widenings of one exact change
    Approve(super::approve::ApproveArgs),
    /// Show the solver of the second engine
    Solver(super::solver::SolverArgs),
    /// Print what polctl knows about programs, or what changed in it
    Programs(ProgramsArgs),
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

impl Default for OutputArgs {
    fn default() -> Self {
        OutputArgs { format: Format::Human, deny: None }
    }
}

impl OutputArgs {
    /// The `policy_id` of a version, where the format shows it: it costs printing the whole set.
    pub(super) fn policy_id(&self, compiled: Option<&Compiled>) -> Option<String> {
        compiled.filter(|_| self.shows_policy_ids()).map(Compiled::policy_id)
    }

    /// Whether the format shows the `policy_id` of both versions.
    pub(super) fn shows_policy_ids(&self) -> bool {
        self.format == Format::Json
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
    /// Approvals.
    #[command(flatten)]
    pub approvals: ApprovalArgs,
    /// Engine.
    #[command(flatten)]
    pub engine: EngineArgs,
    /// The cache.
    #[command(flatten)]
    pub cache: CacheArgs,
    /// Output.
    #[command(flatten)]
    pub output: OutputArgs,
}

/// Whether a verdict may come out of the cache.
#[derive(Debug, Default, ClapArgs)]
pub struct CacheArgs {
    /// Use the cache in CI, too: only where nothing but trusted jobs can write it
    #[arg(long)]
    pub cache: bool,
    /// Compute everything anew, and keep nothing
    #[arg(long, conflicts_with = "cache")]
    pub no_cache: bool,
}

/// Approvals of widenings.
#[derive(Debug, Default, ClapArgs)]
pub struct ApprovalArgs {
    /// An approval of widenings that `polctl approve` wrote (repeatable)
    #[arg(long, value_name = "FILE", requires = "approval_trust", requires = "base", conflicts_with = "initial")]
    pub approval: Vec<PathBuf>,
    /// The trust file for approvals; not in the policy directory, and read from the base when that is a git revision
    #[arg(long, value_name = "FILE")]
    pub approval_trust: Option<PathBuf>,
}

/// Arguments of `diff`.
#[derive(Debug, ClapArgs)]
pub struct DiffArgs {
    /// The old version: a directory or a git revision; with `--within` the parent's manifest
    pub old: String,
    /// The new version: a directory or a git revision; with `--within` the child's manifest
    pub new: String,
    /// Prove that a capability manifest stays within another: `polctl diff --within PARENT CHILD`
    #[arg(long)]
    pub within: bool,
    /// The policy directory that git revisions are read for
    #[arg(long, short = 'C', default_value = ".", value_name = "DIR")]
    pub dir: PathBuf,
    /// Plain Cedar.
    #[command(flatten)]
    pub cedar: CedarArgs,
    /// Engine.
    #[command(flatten)]
    pub engine: EngineArgs,
    /// The cache.
    #[command(flatten)]
    pub cache: CacheArgs,
    /// Output.
    #[command(flatten)]
    pub output: OutputArgs,
}

/// Which engine compares, and the solver of the symbolic one.
#[derive(Debug, Default, ClapArgs)]
pub struct EngineArgs {
    /// What compares: `exact` asks the solver only about guardrails that it cannot read itself, `both` must agree
    #[arg(long, value_enum, default_value_t = EngineName::Exact)]
    pub engine: EngineName,
    /// The cvc5 solver of the symbolic engine [default: `POLCTL_SOLVER`, `CVC5`, cvc5 on PATH]
    #[arg(long, value_name = "PATH")]
    pub solver: Option<PathBuf>,
}

/// Engines of a comparison.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum EngineName {
    /// The exact engine, embedded
    #[default]
    Exact,
    /// The symbolic engine, with an SMT solver
    Smt,
    /// Both; they must agree
    Both,
}

impl EngineArgs {
    /// What judges.
    pub(super) const fn engines(&self) -> Engines {
        match self.engine {
            EngineName::Exact => Engines::Exact,
            EngineName::Smt => Engines::Smt,
            EngineName::Both => Engines::Both,
        }
    }

    /// What a verdict depends on: the engine, and which solver it is to find.
    pub(super) fn key(&self) -> String {
        format!("{:?} {:?}", self.engine, self.places())
    }

    /// The symbolic engine.
    pub(super) fn symbolic(&self) -> Engine {
        Engine::new(self.places(), Limits::USUAL)
    }

    /// Where a solver is looked for.
    pub(super) fn places(&self) -> Places {
        super::solver::places(self.solver.as_deref())
    }
}

/// Comparing files of hand-written Cedar.
#[derive(Debug, ClapArgs)]
#[command(next_help_heading = "Plain Cedar")]
pub struct CedarArgs {
    /// OLD and NEW are files of Cedar policies (`.json`: in JSON), not policy directories
    #[arg(long, requires = "schema", conflicts_with = "within")]
    pub cedar: bool,
    /// The schema; with --new-schema that of the old version
    #[arg(long, value_name = "FILE", requires = "cedar")]
    pub schema: Option<PathBuf>,
    /// The schema of the new version, where it is another one
    #[arg(long, value_name = "FILE", requires = "cedar")]
    pub new_schema: Option<PathBuf>,
    /// Links of the old version's templates: a JSON list of `template_id`, `link_id` and `args`
    #[arg(long, value_name = "FILE", requires = "cedar")]
    pub old_links: Option<PathBuf>,
    /// Links of the new version's templates
    #[arg(long, value_name = "FILE", requires = "cedar")]
    pub new_links: Option<PathBuf>,
    /// Write each request that is newly permitted into this directory, as `cedar authorize` reads it
    #[arg(long, value_name = "DIR", requires = "cedar")]
    pub counterexamples: Option<PathBuf>,
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
    /// Write `polctl.bundle` into the policy directory, for `polctl hook`
    #[arg(long, conflicts_with = "output")]
    pub bundle: bool,
    /// List what this system can enforce of each class of capabilities, and what only the proxy or nobody can
    #[arg(long, value_name = "linux|macos|windows", conflicts_with_all = ["output", "bundle"], value_parser = system)]
    pub target: Option<crate::model::System>,
}

fn system(text: &str) -> Result<crate::model::System, String> {
    crate::model::System::from_name(text)
        .ok_or_else(|| format!("systems are {}", crate::model::System::NAMES.join(", ")))
}

/// Arguments of `explain`.
#[derive(Debug, ClapArgs)]
pub struct ExplainArgs {
    /// The line, in quotes; `egress`, `sudo` or `commands` may stand before it, or `capability`: `capability 'image desktop: write /srv/a'`
    #[arg(value_name = "[SURFACE] LINE")]
    pub line: Vec<String>,
    /// Read the line from standard input
    #[arg(long)]
    pub stdin: bool,
    /// The policy: a directory with polctl.yaml, or a git revision of the current directory
    #[arg(long, short = 'p', default_value = ".", value_name = "DIR|REF")]
    pub policy: PathBuf,
    /// The directory that the line runs in (`unknown` for none); the current one when absent
    #[arg(long, value_name = "DIR")]
    pub cwd: Option<String>,
    /// The agent that asks
    #[arg(long, default_value = "agent")]
    pub agent: String,
    /// The machine that it runs on
    #[arg(long, default_value = "host")]
    pub host: String,
    /// The line's inputs come from outside the session
    #[arg(long)]
    pub external: bool,
    /// How the answer is shown
    #[arg(long, value_enum, default_value_t = ExplainFormat::Human)]
    pub format: ExplainFormat,
    /// The same as `--format json`
    #[arg(long, conflicts_with = "format")]
    pub json: bool,
}

/// Arguments of `hook`.
#[derive(Clone, Debug, ClapArgs)]
pub struct HookArgs {
    /// The policy directory, with its bundle (`polctl compile --bundle`) and its envelope
    #[arg(long, short = 'p', value_name = "DIR")]
    pub policy: PathBuf,
    /// The trust file that the policy must verify against
    #[arg(long, value_name = "FILE", conflicts_with = "unverified")]
    pub trust: Option<PathBuf>,
    /// Where the highest sequence number that was seen is kept
    #[arg(long, value_name = "FILE", requires = "trust")]
    pub state: Option<PathBuf>,
    /// Name of the envelope in the policy directory [default: `signing.envelope` in polctl.yaml, or polctl.sig.json]
    #[arg(long, value_name = "NAME")]
    pub envelope: Option<String>,
    /// Use a policy that nobody signed: for development only
    #[arg(long)]
    pub unverified: bool,
    /// What to answer for tiers 2 and 3
    #[arg(long, value_enum, default_value_t = Route::Ask)]
    pub route: Route,
    /// With `--route deny`: what runs such commands instead, for the message
    #[arg(long, value_name = "NAME", requires = "route")]
    pub daemon: Option<String>,
    /// Append each decision to this file, one JSON object a line
    #[arg(long, value_name = "FILE")]
    pub audit: Option<PathBuf>,
    /// The agent that asks
    #[arg(long, default_value = "agent")]
    pub agent: String,
    /// The machine that it runs on
    #[arg(long, default_value = "host")]
    pub host: String,
    /// Inputs of the session come from outside
    #[arg(long)]
    pub external: bool,
    /// Load the policy, decide a few lines, and say whether all is well
    #[arg(long, conflicts_with = "install")]
    pub self_test: bool,
    /// Write the hook into the client's settings, after showing the difference
    #[arg(long)]
    pub install: bool,
    /// The settings file (~/.claude/settings.json)
    #[arg(long, value_name = "FILE", requires = "install")]
    pub settings: Option<PathBuf>,
    /// Write without asking
    #[arg(long, requires = "install")]
    pub yes: bool,
}

/// What the hook answers for tiers 2 and 3.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Route {
    /// The person at the client is asked
    Ask,
    /// It is denied, with a message that says what runs it instead
    Deny,
}

/// Output formats of `explain`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ExplainFormat {
    /// Text for people
    Human,
    /// One JSON document
    Json,
}

/// Arguments of `programs`.
#[derive(Debug, ClapArgs)]
pub struct ProgramsArgs {
    /// Only this program
    pub name: Option<String>,
    /// Compare with the table of an older version; exits 1 when policies may permit more by the change
    #[arg(long, value_name = "FILE", conflicts_with = "name")]
    pub since: Option<PathBuf>,
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
    /// A comment for a pull request
    Markdown,
}

/// Levels that can be denied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Deny {
    /// Findings of level warning fail too
    Warnings,
}
