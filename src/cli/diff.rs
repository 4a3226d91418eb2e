//! `polctl diff`: what two versions permit differently.

use std::path::Path;

use super::args::DiffArgs;
use super::session::{Failure, exit_code, open, read, working_tree};
use super::{args, output};
use crate::analyze::{diff_by, within};
use crate::compile::Compiled;
use crate::diag::{Finding, Level, sort};
use crate::model::Manifest;
use crate::parse::parse_manifest;
use crate::report::Report;
use crate::source::SourceMap;

pub(super) fn run(args: &DiffArgs) -> Result<u8, Failure> {
    if args.cedar.cedar {
        return super::diff_cedar::run(args);
    }
    if args.within {
        return attenuation(args);
    }
    let old_tree = open(&args.old, &args.dir, Some(&args.old))?;
    let new_tree = open(&args.new, &args.dir, None)?;
    let mut map = SourceMap::new();
    let mut findings = Vec::new();
    let new = read(new_tree.as_ref(), &mut map, &mut findings)?;
    let old = read(old_tree.as_ref(), &mut map, &mut findings)?;
    // What is wrong with one version by itself is `check`'s business, unless it cannot be read.
    findings.retain(|f| f.level == Level::Error);
    if let (Some(old), Some(new)) = (&old, &new) {
        if old.set.rules.len() + new.set.rules.len() > 6_000 {
            output::progress("comparing the rules");
        }
        findings.extend(diff_by(args.engine.engines(), &mut args.engine.symbolic(), old, new, &map)?);
    }
    sort(&mut findings);
    let deny = args.output.deny == Some(args::Deny::Warnings);
    let report = Report {
        command: "diff",
        compared: Some((old_tree.label(), new_tree.label())),
        policy_ids: (args.output.policy_id(old.as_ref()), args.output.policy_id(new.as_ref())),
        exit_code: exit_code(&findings, deny),
        findings,
    };
    Ok(output::report(&report, &map, &args.output))
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
    let deny = args.output.deny == Some(args::Deny::Warnings);
    let report = Report {
        command: "diff",
        compared: Some((args.old.clone(), args.new.clone())),
        policy_ids: (None, None),
        exit_code: exit_code(&findings, deny),
        findings,
    };
    Ok(output::report(&report, &map, &args.output))
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
