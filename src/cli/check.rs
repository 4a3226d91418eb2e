//! `polctl check`: one version by itself, and against its base.

use std::path::Path;

use super::approvals::{Signed, approvals, approve};
use super::args::{CheckArgs, EngineArgs};
use super::cache::{self, Question};
use super::compiler_change::compiler_change;
use super::outcome::Outcome;
use super::output;
use super::places::places;
use super::session::{Failure, lints, open_base, read, working_tree};
use crate::analyze::{diff_by, overview, validate_capabilities};
use crate::compile::Compiled;
use crate::diag::{Finding, sort};
use crate::retention::check_named;
use crate::sign::Digest;
use crate::source::{SourceMap, Tree};

pub(super) fn run(args: &CheckArgs) -> Result<u8, Failure> {
    args.output.ready()?;
    let tree = working_tree(&args.dir)?;
    let base = match (&args.base, args.initial) {
        (Some(base), _) => Some(open_base(base, &args.dir)?),
        (None, true) => None,
        (None, false) => {
            return Err(Failure::Usage {
                message: "there is nothing to compare with, so nothing can be said about what is newly permitted".into(),
                help: "give `--base REF` (in CI the target branch, `--base origin/main`), or `--initial` for the first adoption of polctl".into(),
            });
        }
    };
    let approvals = match &args.base {
        Some(base) => approvals(&args.approvals, base, &args.dir)?,
        None => Vec::new(),
    };
    let compute = |tree: &dyn Tree, base: Option<&dyn Tree>| judge(tree, base, &approvals, args);
    let outcome = match base.as_deref() {
        // An approval counts by the time of day, which no cache knows.
        Some(base) if args.approvals.approval.is_empty() => {
            let question =
                Question { command: "check", engine: args.engine.key(), policy_ids: args.output.shows_policy_ids() };
            let places = [args.dir.as_path(), Path::new(args.base.as_deref().unwrap_or(""))];
            cache::through(&args.cache, &question, &places, (&tree, base), |tree, base| compute(tree, Some(base)))?
        }
        base => compute(&tree, base)?,
    };
    let old = args.base.as_deref().map(Path::new).filter(|base| base.is_dir()).unwrap_or(&args.dir);
    Ok(outcome.report("check", base.as_deref().map(names), &places(&args.dir, old)?, &args.output))
}

/// Old and new, as people read it.
fn names(base: &dyn Tree) -> (String, String) {
    (base.label(), "the working tree".to_owned())
}

fn judge(tree: &dyn Tree, base: Option<&dyn Tree>, approvals: &[Signed], args: &CheckArgs) -> Result<Outcome, Failure> {
    let Judged { map, mut findings, new, old, .. } = judged(tree, base, approvals, &args.engine)?;
    let rules = match (&old, &new) {
        (Some(old), Some(new)) => Some(overview(old, new, &mut findings, &map)),
        _ => None,
    };
    sort(&mut findings);
    let policy_ids = (args.output.policy_id(old.as_ref()), args.output.policy_id(new.as_ref()));
    Ok(Outcome { map, findings, rules, policy_ids })
}

/// A version that was checked, and what was found.
pub(super) struct Judged {
    pub(super) map: SourceMap,
    pub(super) findings: Vec<Finding>,
    pub(super) new: Option<Compiled>,
    pub(super) old: Option<Compiled>,
    pub(super) compared: Option<(String, String)>,
    /// SHA-256 of the payload of each approval that lets a widening pass, ascending.
    pub(super) approved: Vec<Digest>,
}

/// Judges a version by itself and against its base.
pub(super) fn judged(
    tree: &dyn Tree,
    base: Option<&dyn Tree>,
    approvals: &[Signed],
    engine: &EngineArgs,
) -> Result<Judged, Failure> {
    let mut map = SourceMap::new();
    let mut findings = Vec::new();
    let new = read(tree, &mut map, &mut findings)?;
    if let Some(new) = &new {
        if new.set.rules.len() > 3_000 {
            output::progress("checking the rules");
        }
        lints(new, &map, &mut findings)?;
    }
    if let (Some(new), None) = (&new, base) {
        // With a base, what differs from it is validated, and the base was when it was new.
        validate_capabilities(new, &map)?;
    }
    let (mut old, mut compared, mut approved) = (None, None, Vec::new());
    if let Some(base) = base {
        compared = Some(names(base));
        // Warnings about the base are not about this change.
        let mut base_findings = Vec::new();
        old = read(base, &mut map, &mut base_findings)?;
        base_findings.retain(|f| f.level == crate::diag::Level::Error);
        match (&old, &new) {
            (Some(old), Some(new)) => {
                findings.extend(diff_by(engine.engines(), &mut engine.symbolic(), old, new, &map)?);
                findings.extend(compiler_change(base, old));
                findings.extend(check_named((tree, &new.set.config), (base, &old.set.config), &mut map)?);
                approved = approve(&mut findings, approvals, old, new)?;
            }
            _ => findings.append(&mut base_findings),
        }
    }
    Ok(Judged { map, findings, new, old, compared, approved })
}
