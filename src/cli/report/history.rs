//! The policy at each commit of a range, and what each commit did to it.
//!
//! A version is known by all that was read for it. A commit at which all of that is the same has
//! the same policy, whatever else it changed; nothing is parsed or compared for it. Versions and
//! verdicts are kept, so going back to an earlier policy costs nothing either.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};

use crate::analyze::diff_by;
use crate::cli::args::EngineArgs;
use crate::cli::output;
use crate::cli::session::{Failure, read};
use crate::compile::Compiled;
use crate::diag::{Finding, Level, sort};
use crate::report::{HistoryView, Step, StepOutcome};
use crate::source::{Commit, CommitTree, History, SourceError, SourceMap, Tree};

/// Commits from which on a terminal is told that it takes a while.
const MANY: usize = 50;

/// What a range did.
pub(super) fn view(
    range: &str,
    history: &History,
    map: &mut SourceMap,
    engine: &EngineArgs,
) -> Result<HistoryView, Failure> {
    let commits = history.commits();
    if commits.len() >= MANY {
        output::progress(&format!("reading {} commits", commits.len()));
    }
    let mut line = Line { versions: Vec::new(), verdicts: HashMap::new(), map, engine };
    let mut steps = Vec::new();
    let before = commits.first().and_then(|first| first.parent.as_deref());
    let mut at = before.map(|id| line.version(&history.tree(id))).transpose()?;
    let mut place = Place::begin(before, at.and_then(|at| line.versions.get(at).map(|version| (at, version))));
    for commit in commits {
        let tree = history.tree(&commit.id);
        let now = line.version(&tree)?;
        if at == Some(now) || at.is_none() && line.is_absent(now) {
            place.passed(&commit.id);
            at = Some(now);
            continue;
        }
        at = Some(now);
        let outcome = line.outcome(now, &place)?;
        let against = place.after(now, commit, &outcome);
        steps.push(step(commit, outcome, against));
    }
    Ok(HistoryView { range: range.to_owned(), commits: commits.len(), steps })
}

/// Where the line is: the last version that could be read as policy.
struct Place {
    /// Its number, and the last commit that had it.
    last: Option<(usize, String)>,
    /// Whether something before could not be read, so that a first version is none.
    blind: bool,
    /// What the next step is compared with, where that is not the commit before it.
    against: Option<String>,
}

impl Place {
    fn begin(commit: Option<&str>, version: Option<(usize, &Version)>) -> Self {
        let (last, blind) = match (commit, version) {
            (Some(id), Some((at, Version { state: State::Policy(_), .. }))) => (Some((at, id.to_owned())), false),
            (_, Some((_, Version { state: State::Malformed { .. }, .. }))) => (None, true),
            _ => (None, false),
        };
        Place { last, blind, against: None }
    }

    /// A commit that changed nothing.
    fn passed(&mut self, commit: &str) {
        if let Some((_, last)) = self.last.as_mut().filter(|_| self.against.is_none()) {
            commit.clone_into(last);
        }
    }

    /// A commit that did something; says what it was compared with, where that is not its parent.
    fn after(&mut self, now: usize, commit: &Commit, outcome: &StepOutcome) -> Option<String> {
        match outcome {
            StepOutcome::Malformed { .. } => {
                self.blind |= self.last.is_none();
                self.against = self.last.as_ref().map(|(_, id)| id.get(..10).unwrap_or(id).to_owned());
                None
            }
            StepOutcome::Absent => {
                self.against = self.last.as_ref().map(|(_, id)| id.get(..10).unwrap_or(id).to_owned());
                None
            }
            StepOutcome::First { .. } | StepOutcome::Compared(_) | StepOutcome::NotCompared(_) => {
                self.last = Some((now, commit.id.clone()));
                self.against.take()
            }
        }
    }
}

/// What a commit's policy directory holds.
enum State {
    Policy(Box<Compiled>),
    Malformed { findings: Vec<Finding>, reason: Option<String> },
    Absent,
}

struct Version {
    /// Everything that was read, with what was there.
    reads: Vec<(Op, String)>,
    state: State,
}

struct Line<'a> {
    versions: Vec<Version>,
    /// Findings of a comparison, by the numbers of both versions.
    verdicts: HashMap<(usize, usize), Vec<Finding>>,
    map: &'a mut SourceMap,
    engine: &'a EngineArgs,
}

impl Line<'_> {
    /// The number of the version that a commit has; read only where it is a new one.
    fn version(&mut self, tree: &CommitTree) -> Result<usize, Failure> {
        for (at, version) in self.versions.iter().enumerate().rev() {
            if version.is_at(tree)? {
                return Ok(at);
            }
        }
        let watched = Watched { tree, reads: RefCell::default() };
        let mut findings = Vec::new();
        let state = match read(&watched, self.map, &mut findings) {
            Ok(Some(compiled)) => State::Policy(Box::new(compiled)),
            Ok(None) => {
                findings.retain(|f| f.level == Level::Error);
                sort(&mut findings);
                State::Malformed { findings, reason: None }
            }
            // Only the configuration itself is not there: what it names is a finding.
            Err(Failure::Source(SourceError::NotFound { .. })) => State::Absent,
            // A repository that cannot be read says nothing of the commit.
            Err(Failure::Source(error)) if !matches!(error, SourceError::Git { .. }) => {
                State::Malformed { findings: Vec::new(), reason: Some(error.to_string()) }
            }
            Err(error) => return Err(error),
        };
        let mut reads = Vec::new();
        for op in watched.reads.into_inner() {
            let stamp = op.stamp(tree)?;
            reads.push((op, stamp));
        }
        self.versions.push(Version { reads, state });
        Ok(self.versions.len() - 1)
    }

    fn is_absent(&self, at: usize) -> bool {
        matches!(self.versions.get(at), Some(Version { state: State::Absent, .. }))
    }

    fn outcome(&mut self, now: usize, place: &Place) -> Result<StepOutcome, Failure> {
        let Some(version) = self.versions.get(now) else { return Ok(StepOutcome::Absent) };
        let new = match &version.state {
            State::Absent => return Ok(StepOutcome::Absent),
            State::Malformed { findings, reason } => {
                return Ok(StepOutcome::Malformed { findings: findings.clone(), reason: reason.clone() });
            }
            State::Policy(new) => new,
        };
        let Some((last, _)) = place.last else {
            let rules = new.set.rules.len();
            return Ok(if place.blind {
                StepOutcome::NotCompared("nothing before it in the range can be read as policy".into())
            } else {
                StepOutcome::First { rules }
            });
        };
        if let Some(known) = self.verdicts.get(&(last, now)) {
            return Ok(StepOutcome::Compared(known.clone()));
        }
        let Some(Version { state: State::Policy(old), .. }) = self.versions.get(last) else {
            return Ok(StepOutcome::Absent);
        };
        let mut findings = diff_by(self.engine.engines(), &mut self.engine.symbolic(), old, new, self.map)?;
        sort(&mut findings);
        self.verdicts.insert((last, now), findings.clone());
        Ok(StepOutcome::Compared(findings))
    }
}

impl Version {
    /// Whether reading this commit would give the same.
    fn is_at(&self, tree: &CommitTree) -> Result<bool, Failure> {
        for (op, stamp) in &self.reads {
            if op.stamp(tree)? != *stamp {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

fn step(commit: &Commit, outcome: StepOutcome, against: Option<String>) -> Step {
    Step {
        id: commit.short().to_owned(),
        date: date(commit.time),
        author: commit.author.clone(),
        subject: commit.subject.clone(),
        against,
        outcome,
    }
}

/// `2026-03-01`, in UTC.
fn date(seconds: i64) -> String {
    let text = jiff::Timestamp::from_second(seconds).map(|time| time.to_string()).unwrap_or_default();
    text.split('T').next().unwrap_or_default().to_owned()
}

/// A read of the policy directory.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Op {
    File(String),
    List(String),
}

impl Op {
    fn stamp(&self, tree: &CommitTree) -> Result<String, SourceError> {
        match self {
            Op::File(path) => tree.stamp(path),
            // No name holds a zero byte.
            Op::List(dir) => tree.list(dir).map(|names| names.join("\0")),
        }
    }
}

/// A tree that remembers what was read.
struct Watched<'t> {
    tree: &'t CommitTree,
    reads: RefCell<BTreeSet<Op>>,
}

impl Tree for Watched<'_> {
    fn label(&self) -> String {
        self.tree.label()
    }

    fn origin(&self) -> Option<String> {
        self.tree.origin()
    }

    fn read(&self, path: &str) -> Result<Vec<u8>, SourceError> {
        // A path that leaves the directory is refused by its text alone.
        if crate::source::is_plain_relative(path) {
            self.reads.borrow_mut().insert(Op::File(path.to_owned()));
        }
        self.tree.read(path)
    }

    fn list(&self, dir: &str) -> Result<Vec<String>, SourceError> {
        if dir.is_empty() || crate::source::is_plain_relative(dir) {
            self.reads.borrow_mut().insert(Op::List(dir.to_owned()));
        }
        self.tree.list(dir)
    }
}
