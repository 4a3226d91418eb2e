//! What the commands share: opening a version, loading and compiling it, and the exit code.

use std::path::Path;

use super::exit;
use crate::analyze::smt::SmtError;
use crate::analyze::smt::solver::{InstallError, SolverError};
use crate::analyze::{AnalyzeError, lint, lint_capabilities};
use crate::compile::{CompileError, Compiled, compile, parse_guardrails};
use crate::diag::{Finding, Kind, Level, info};
use crate::parse::{CONFIG_NAME, load};
use crate::sign::{SignError, SignerError, Timestamp};
use crate::source::{DirTree, GitTree, SourceError, SourceMap, Tree};

/// Why a command ended without a report.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
pub(super) enum Failure {
    /// Input that cannot be read.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Source(#[from] SourceError),
    /// A defect.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Analyze(#[from] AnalyzeError),
    /// A defect.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Compile(#[from] CompileError),
    /// A defect.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Smt(#[from] SmtError),
    /// Something that the user must say otherwise.
    #[error("{message}")]
    #[diagnostic(help("{help}"))]
    Usage {
        /// What is wrong.
        message: String,
        /// What to do.
        help: String,
    },
    /// Signing or verifying was refused.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Sign(#[from] SignError),
    /// There is no answer from a solver.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Solver(#[from] SolverError),
    /// Rows cannot be added to the inventory.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Adopt(#[from] crate::census::AdoptError),
    /// The solver cannot be installed.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Install(#[from] InstallError),
    /// Input beside the policy that cannot be read.
    #[error("cannot read {what}")]
    #[diagnostic(help("check the path and its permissions"))]
    Read {
        /// What was to be read.
        what: String,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// Output cannot be written.
    #[error("cannot write {what}")]
    #[diagnostic(help("check the path and the free space; nothing was left half written"))]
    Write {
        /// What was to be written.
        what: String,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
}

impl Failure {
    pub(super) const fn exit_code(&self) -> u8 {
        match self {
            Failure::Sign(error) => sign_exit_code(error),
            Failure::Source(_)
            | Failure::Usage { .. }
            | Failure::Install(_)
            | Failure::Adopt(_)
            | Failure::Read { .. }
            | Failure::Write { .. } => exit::USAGE,
            Failure::Analyze(_) | Failure::Compile(_) | Failure::Solver(_) | Failure::Smt(_) => exit::INCONCLUSIVE,
        }
    }

    pub(super) fn usage(message: impl Into<String>, help: impl Into<String>) -> Self {
        Failure::Usage { message: message.into(), help: help.into() }
    }
}

/// Outside `verify`: a signature that is not good is refused, anything else could not be read,
/// reached or written.
const fn sign_exit_code(error: &SignError) -> u8 {
    match error {
        SignError::Envelope(_) | SignError::Verify(_) | SignError::Signer(SignerError::NotPinned { .. }) => {
            exit::REFUSED
        }
        _ => exit::USAGE,
    }
}

/// The time of day, from the system's clock.
pub(super) fn now() -> Result<Timestamp, Failure> {
    Timestamp::from_seconds(jiff::Timestamp::now().as_second())
        .ok_or_else(|| Failure::usage("the system's clock cannot be read as a date", "set the clock"))
}

/// An environment variable that is text; empty counts as not set.
pub(super) fn variable(name: &str) -> Result<Option<String>, Failure> {
    match std::env::var(name) {
        Ok(value) if value.is_empty() => Ok(None),
        Ok(value) => Ok(Some(value)),
        Err(std::env::VarError::NotPresent) => Ok(None),
        Err(std::env::VarError::NotUnicode(_)) => {
            Err(Failure::usage(format!("the variable `{name}` is not text"), "set it anew"))
        }
    }
}

/// A version: a directory that holds a policy set, or a git revision of `dir`. `label`
/// tells its files from those of the other version in findings.
pub(super) fn open(text: &str, dir: &Path, origin: Option<&str>) -> Result<Box<dyn Tree>, Failure> {
    open_as(text, dir, origin, false)
}

/// What a policy directory is compared with: never itself, and a directory only where it is
/// written as a path. Where the revision is missing (a shallow clone, no git), a change could
/// else bring a directory of that name and be compared with what it likes.
pub(super) fn open_base(text: &str, dir: &Path) -> Result<Box<dyn Tree>, Failure> {
    let same = |a: &Path, b: &Path| a.canonicalize().ok().zip(b.canonicalize().ok()).is_some_and(|(a, b)| a == b);
    if !text.trim().is_empty() && same(Path::new(text), dir) {
        // A directory has no widening against itself, whatever changed.
        return Err(Failure::usage(
            format!("the base `{text}` is the policy directory itself"),
            "give the version before the change: a git revision such as `origin/main`, or another directory",
        ));
    }
    open_as(text, dir, Some(text), true)
}

/// What retention is compared with: a git revision of `dir`, or a directory that is written as a
/// path and need not hold a policy.
pub(super) fn open_retention_base(text: &str, dir: &Path) -> Result<Box<dyn Tree>, Failure> {
    if !surely_path(text) && !text.trim().is_empty() {
        return Ok(Box::new(GitTree::open(dir, text)?));
    }
    let same = |a: &Path, b: &Path| a.canonicalize().ok().zip(b.canonicalize().ok()).is_some_and(|(a, b)| a == b);
    let path = Path::new(text);
    if !path.is_dir() || same(path, dir) {
        return Err(Failure::usage(
            format!("`{text}` is no directory with an older version"),
            "give a git revision such as `origin/main`, or another directory, written `./DIR`",
        ));
    }
    Ok(Box::new(DirTree::new(path, Some(text.to_owned()))))
}

fn open_as(text: &str, dir: &Path, origin: Option<&str>, base: bool) -> Result<Box<dyn Tree>, Failure> {
    if text.trim().is_empty() {
        // An unset variable in a CI file must not compare the directory with itself.
        return Err(Failure::Usage {
            message: "the version to compare with is empty".into(),
            help: "a variable in the command line is probably not set; give a git revision or a directory".into(),
        });
    }
    let path = Path::new(text);
    // Only a path that cannot be a revision is taken for a directory at once: a change could
    // bring a directory that is named like the branch that it is compared with.
    let revision = if surely_path(text) { None } else { Some(GitTree::open(dir, text)) };
    match (revision, path.join(CONFIG_NAME).is_file()) {
        (Some(Ok(_)), true) => Err(Failure::Usage {
            message: format!("`{text}` is a git revision and also a directory"),
            help: format!(
                "write `./{text}` for the directory, or the revision in another way (`refs/…`, or the commit's id)"
            ),
        }),
        (Some(Err(SourceError::Ambiguous { revision, help })), _) => {
            Err(SourceError::Ambiguous { revision, help }.into())
        }
        (Some(Err(error)), true) if base => Err(Failure::usage(
            format!("`{text}` is a directory and no git revision that can be read here: {error}"),
            format!(
                "write `./{text}` for the directory; for a revision, fetch it first (`git fetch`, or a deeper clone)"
            ),
        )),
        (_, true) => Ok(Box::new(DirTree::new(path, origin.map(str::to_owned)))),
        (Some(Ok(tree)), false) => Ok(Box::new(tree)),
        (_, false) if path.is_dir() => Err(Failure::Usage {
            message: format!("the directory `{text}` holds no `{CONFIG_NAME}`"),
            help: "give the directory that holds the configuration".into(),
        }),
        (Some(Err(error)), false) => Err(error.into()),
        (None, false) => Err(Failure::Usage {
            message: format!("there is no directory `{text}`"),
            help: format!(
                "give a directory that holds a `{CONFIG_NAME}`, or a git revision such as `HEAD~1` or `origin/main`"
            ),
        }),
    }
}

/// Whether a version's name cannot be that of a git revision.
pub(super) fn surely_path(text: &str) -> bool {
    text.starts_with(['.', '/', '~']) || text.ends_with('/')
}

/// The policy directory under review.
pub(super) fn working_tree(dir: &Path) -> Result<DirTree, Failure> {
    if !dir.join(CONFIG_NAME).is_file() {
        return Err(Failure::Usage {
            message: format!("there is no `{CONFIG_NAME}` in `{}`", dir.display()),
            help: "run polctl in the policy directory, or name it: `-C DIR`, for `explain` and `hook` `-p DIR`".into(),
        });
    }
    Ok(DirTree::new(dir, None))
}

/// Loads and compiles a version; `None` after findings that say that it is malformed.
pub(super) fn read(
    tree: &dyn Tree,
    map: &mut SourceMap,
    findings: &mut Vec<Finding>,
) -> Result<Option<Compiled>, Failure> {
    let Some(set) = load(tree, map, findings)? else { return Ok(None) };
    let names = |span: crate::source::Span| map.get(span.file).map_or_else(String::new, |f| f.name.clone());
    let mut own = set.inventory.as_ref().map(crate::census::unknown_kinds).unwrap_or_default();
    let guardrails = parse_guardrails(&set, &names, &mut own);
    let malformed = !own.is_empty();
    findings.append(&mut own);
    Ok((!malformed).then(|| compile(set, guardrails)))
}

/// The lints of one version, levels as configured.
pub(super) fn lints(compiled: &Compiled, map: &SourceMap, findings: &mut Vec<Finding>) -> Result<(), Failure> {
    let mut own = lint(compiled, map)?;
    own.extend(lint_capabilities(compiled, map)?);
    for finding in &mut own {
        if let Some(level) = compiled.set.config.levels.get(&finding.code) {
            finding.level = finding.level.max(*level);
        }
    }
    findings.append(&mut own);
    Ok(())
}

/// The exit code of a run (DESIGN 9). A certain finding weighs more than an open question;
/// malformed input more than both, since it leaves no verdict at all.
pub(super) fn exit_code(findings: &[Finding], deny_warnings: bool) -> u8 {
    let fails = |f: &&Finding| f.level == Level::Error || deny_warnings && f.level == Level::Warning;
    let has = |kind| findings.iter().filter(fails).any(|f| info(f.code).kind == kind);
    if has(Kind::Malformed) {
        exit::USAGE
    } else if has(Kind::Policy) {
        exit::FINDINGS
    } else if has(Kind::Inconclusive) {
        exit::INCONCLUSIVE
    } else {
        exit::OK
    }
}
