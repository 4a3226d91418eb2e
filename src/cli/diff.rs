//! `polctl diff`: what two versions permit differently.

use super::args::DiffArgs;
use super::session::{Failure, exit_code, open, read};
use super::{args, output};
use crate::analyze::diff;
use crate::diag::{Level, sort};
use crate::report::Report;
use crate::source::SourceMap;

pub(super) fn run(args: &DiffArgs) -> Result<u8, Failure> {
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
        findings.extend(diff(old, new, &map)?);
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
