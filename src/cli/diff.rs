//! `polctl diff`: what two versions permit differently.

use std::path::Path;

use super::args::DiffArgs;
use super::cache::{self, Question};
use super::outcome::Outcome;
use super::output;
use super::places::places;
use super::session::{Failure, open, read, working_tree};
use crate::analyze::{diff_by, overview, within};
use crate::compile::Compiled;
use crate::diag::{Finding, Level, sort};
use crate::model::Manifest;
use crate::parse::parse_manifest;
use crate::source::{SourceMap, Tree};

pub(super) fn run(args: &DiffArgs) -> Result<u8, Failure> {
    args.output.ready()?;
    if args.cedar.cedar {
        return super::diff_cedar::run(args);
    }
    if args.within {
        return attenuation(args);
    }
    let old = open(&args.old, &args.dir, Some(&args.old))?;
    let new = open(&args.new, &args.dir, None)?;
    // A revision is one of the repository of `--dir`.
    let place = |text| Some(Path::new(text)).filter(|path| path.is_dir()).unwrap_or(&args.dir);
    let dirs = [place(args.old.as_str()), place(args.new.as_str())];
    let question = Question { command: "diff", engine: args.engine.key(), policy_ids: args.output.shows_policy_ids() };
    let outcome = cache::through(&args.cache, &question, &dirs, (new.as_ref(), old.as_ref()), |new, old| {
        compared(new, old, args)
    })?;
    let [old_dir, new_dir] = dirs;
    Ok(outcome.report("diff", Some((old.label(), new.label())), &places(new_dir, old_dir)?, &args.output))
}

fn compared(new_tree: &dyn Tree, old_tree: &dyn Tree, args: &DiffArgs) -> Result<Outcome, Failure> {
    let mut map = SourceMap::new();
    let mut findings = Vec::new();
    let new = read(new_tree, &mut map, &mut findings)?;
    let old = read(old_tree, &mut map, &mut findings)?;
    // What is wrong with one version by itself is `check`'s business, unless it cannot be read.
    findings.retain(|f| f.level == Level::Error);
    let mut rules = None;
    if let (Some(old), Some(new)) = (&old, &new) {
        if old.set.rules.len() + new.set.rules.len() > 6_000 {
            output::progress("comparing the rules");
        }
        findings.extend(diff_by(args.engine.engines(), &mut args.engine.symbolic(), old, new, &map)?);
        rules = Some(overview(old, new, &mut findings, &map));
    }
    sort(&mut findings);
    let policy_ids = (args.output.policy_id(old.as_ref()), args.output.policy_id(new.as_ref()));
    Ok(Outcome { map, findings, rules, policy_ids })
}

/// `--within PARENT CHILD`: two manifests, of the set or files beside it.
fn attenuation(args: &DiffArgs) -> Result<u8, Failure> {
    let tree = working_tree(&args.dir)?;
    let (mut map, mut findings) = (SourceMap::new(), Vec::new());
    let compiled = read(&tree, &mut map, &mut findings)?;
    findings.retain(|f| f.level == Level::Error);
    if let Some(compiled) = compiled {
        let parent = manifest(&args.old, &args.dir, &compiled, &mut map, &mut findings)?;
        let child = manifest(&args.new, &args.dir, &compiled, &mut map, &mut findings)?;
        if let (Some(parent), Some(child)) = (parent, child) {
            findings.extend(within(&parent, &child, &compiled, &map)?);
        }
    }
    sort(&mut findings);
    let outcome = Outcome { map, findings, rules: None, policy_ids: (None, None) };
    Ok(outcome.report("diff", Some((args.old.clone(), args.new.clone())), &places(&args.dir, &args.dir)?, &args.output))
}

/// A manifest of the set by its path there, or a file.
fn manifest(
    path: &str,
    dir: &Path,
    compiled: &Compiled,
    map: &mut SourceMap,
    findings: &mut Vec<Finding>,
) -> Result<Option<Manifest>, Failure> {
    let in_set = |m: &&Manifest| m.path == path || dir.join(&m.path) == Path::new(path);
    if let Some(found) = compiled.set.manifests.iter().find(in_set) {
        return Ok(Some(found.clone()));
    }
    let bytes =
        std::fs::read(path).map_err(|source| Failure::Read { what: format!("the manifest `{path}`"), source })?;
    Ok(parse_manifest(path, &bytes, map, findings))
}
