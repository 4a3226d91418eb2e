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
    /// Write a page to look at: authority, changes with their witnesses, history
    ///
    /// One HTML file that fetches nothing. The exit code is that of `polctl check` with the same
    /// base; with `--range` it is 3 where a commit of the range has no verdict.
    Report(ReportArgs),
    /// Write a first policy set
    ///
    /// Asks on a terminal what is not given. Writes nothing over anything.
    Init(InitArgs),
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
    /// Say which tables the migrations leave, and whether each has a retention class
    ///
    /// Reads retention.yaml and the SQL migrations, in the order of their tool, and fails on durable
    /// tables that nobody gave a class, and on statements that it cannot follow.
    Retention(super::retention::RetentionArgs),
    /// Show the solver of the second engine
    Solver(super::solver::SolverArgs),
    /// Find the credentials of a host, and judge each by the inventory
    ///
    /// Looks into every known place of every home, and by content below homes, /etc, /opt, /srv and
    /// /tmp. Shows no value, changes nothing on the host. As root it sees everything; `--as USER` shows
    /// what one user can read.
    Census(super::census::CensusArgs),
    /// Print what polctl knows about programs, or what changed in it
    Programs(ProgramsArgs),
    /// Explain a finding code, or list all codes
    Rule(RuleArgs),
    /// Print completions for a shell
    Completions(CompletionsArgs),
    /// Write a manual page for each command into a directory
    Man(ManArgs),
}

/// Output of findings: the same for every command that reports some.
#[derive(Debug, Default, ClapArgs)]
pub struct OutputArgs {
    /// How findings are shown on standard output
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
    /// Write them to a file as well, in another format: `--output sarif=polctl.sarif` (repeatable)
    #[arg(long, value_name = "FORMAT=FILE", value_parser = output_file)]
    pub output: Vec<OutputFile>,
    /// Append the comment of `--format markdown` to the summary of the job, in the file that GitHub Actions names in `GITHUB_STEP_SUMMARY`
    #[arg(long)]
    pub step_summary: bool,
    /// Also fail on findings of this level
    #[arg(long, value_enum, value_name = "LEVEL")]
    pub deny: Option<Deny>,
}

/// A file that findings are written to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputFile {
    /// How.
    pub format: Format,
    /// Where.
    pub path: PathBuf,
}

fn output_file(text: &str) -> Result<OutputFile, String> {
    let names = || {
        let names = Format::value_variants().iter().filter_map(ValueEnum::to_possible_value);
        names.map(|value| value.get_name().to_owned()).collect::<Vec<_>>().join(", ")
    };
    let (format, path) = text.split_once('=').ok_or("write FORMAT=FILE, as in `sarif=polctl.sarif`")?;
    let format =
        Format::from_str(format, false).map_err(|_| format!("`{format}` is no format; these are: {}", names()))?;
    if path.is_empty() {
        return Err("the name of the file is empty; a variable in the command line is probably not set".into());
    }
    Ok(OutputFile { format, path: path.into() })
}

impl OutputArgs {
    /// The `policy_id` of a version, where a format shows it: it costs printing the whole set.
    pub(super) fn policy_id(&self, compiled: Option<&Compiled>) -> Option<String> {
        compiled.filter(|_| self.shows_policy_ids()).map(Compiled::policy_id)
    }

    /// Whether a format shows the `policy_id` of both versions.
    pub(super) fn shows_policy_ids(&self) -> bool {
        self.format == Format::Json || self.output.iter().any(|file| file.format == Format::Json)
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

/// Arguments of `report`.
#[derive(Debug, ClapArgs)]
pub struct ReportArgs {
    /// The file to write
    #[arg(long, value_name = "FILE")]
    pub html: PathBuf,
    /// The policy directory (with polctl.yaml)
    #[arg(long, short = 'C', default_value = ".", value_name = "DIR")]
    pub dir: PathBuf,
    /// What to compare with: a git revision (HEAD~1, origin/main) or a directory
    #[arg(long, value_name = "REF|DIR")]
    pub base: Option<String>,
    /// Also tell what became possible when, commit by commit (`v1.0..HEAD`)
    #[arg(long, value_name = "A..B")]
    pub range: Option<String>,
    /// Engine.
    #[command(flatten)]
    pub engine: EngineArgs,
}

/// Arguments of `init`.
#[derive(Debug, ClapArgs)]
pub struct InitArgs {
    /// What agents are to do here
    #[arg(long, value_enum)]
    pub profile: Option<Profile>,
    /// Where to write; made where it is missing
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub dir: PathBuf,
    /// For builders and operators: where lines may write without a question [default: `/srv/agents`]
    #[arg(long, value_name = "PATH")]
    pub workspace: Option<String>,
    /// Ask nothing: what is not given is the default (`reader`)
    #[arg(long)]
    pub yes: bool,
}

/// First policy sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Profile {
    /// Agents read and answer; nothing is changed, nothing leaves the machine
    Reader,
    /// Agents change code in a workspace, build, test and commit; reading of the web is listed
    Builder,
    /// As builder, and they look after services, with a short list of sudo commands
    Operator,
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
    /// Print the page of the documentation with all codes
    #[arg(long, conflicts_with = "code")]
    pub markdown: bool,
}

/// Arguments of `completions`.
#[derive(Debug, ClapArgs)]
pub struct CompletionsArgs {
    /// The shell
    pub shell: clap_complete::Shell,
}

/// Arguments of `man`.
#[derive(Debug, ClapArgs)]
pub struct ManArgs {
    /// The directory; made if it is not there
    pub dir: PathBuf,
}

/// Output formats.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Source excerpts for people
    #[default]
    Human,
    /// One JSON document
    Json,
    /// A comment for a pull request
    Markdown,
    /// SARIF 2.1.0, for code scanning
    Sarif,
    /// Annotations in the log of GitHub Actions
    Github,
}

/// Levels that can be denied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Deny {
    /// Findings of level warning fail too
    Warnings,
}
