//! Approvals of widenings: what `check` takes from those that the base trusts (DESIGN 6).

use std::path::Path;

use super::args::CheckArgs;
use super::policy_gate::{fingerprint, is_widening};
use super::session::{Failure, now};
use crate::compile::Compiled;
use crate::diag::{Code, Finding, Level};
use crate::sign::{Change, Digest, MAX_ENVELOPE_BYTES, MAX_TRUST_BYTES, Timestamp, Trust, verify_approval};
use crate::source::{GitTree, Span, Tree as _};

/// An approval as it was given, and what it is to be believed by.
pub(super) struct Signed {
    name: String,
    bytes: Vec<u8>,
    trust: std::rc::Rc<Trust>,
    now: Timestamp,
}

/// The approvals that were named, with the trust file of the base.
pub(super) fn approvals(args: &CheckArgs) -> Result<Vec<Signed>, Failure> {
    let (Some(file), Some(base), false) = (&args.approval_trust, &args.base, args.approval.is_empty()) else {
        return Ok(Vec::new());
    };
    let trust = std::rc::Rc::new(Trust::parse(&trust_of_base(file, base)?)?);
    let now = now()?;
    args.approval
        .iter()
        .map(|path| {
            let bytes = read(path, MAX_ENVELOPE_BYTES as u64)?;
            Ok(Signed { name: path.display().to_string(), bytes, trust: std::rc::Rc::clone(&trust), now })
        })
        .collect()
}

/// The trust file as the base has it, so that a change cannot approve itself. Where the base is
/// a directory, the file is the one that was named.
fn trust_of_base(file: &Path, base: &str) -> Result<Vec<u8>, Failure> {
    let parent = file.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let name = file.file_name().and_then(|name| name.to_str()).ok_or_else(|| {
        Failure::usage("the trust file has no name", "give the path of a file")
    })?;
    if base.starts_with(['.', '/', '~']) || base.ends_with('/') {
        return read(file, MAX_TRUST_BYTES as u64);
    }
    Ok(GitTree::open(parent, base)?.read(name)?)
}

fn read(path: &Path, cap: u64) -> Result<Vec<u8>, Failure> {
    use std::io::Read as _;
    let failed = |source| Failure::Read { what: format!("`{}`", path.display()), source };
    let mut bytes = Vec::new();
    std::fs::File::open(path).map_err(failed)?.take(cap + 1).read_to_end(&mut bytes).map_err(failed)?;
    Ok(bytes)
}

/// Lets approved widenings pass as notes. An approval that does not hold, or that nothing needs,
/// is a finding.
pub(super) fn approve(findings: &mut Vec<Finding>, approvals: &[Signed], old: &Compiled, new: &Compiled) -> Result<(), Failure> {
    if approvals.is_empty() {
        return Ok(());
    }
    let id = |compiled: &Compiled| {
        Digest::parse(&compiled.policy_id())
            .ok_or_else(|| Failure::usage("the `policy_id` is no digest", "this is a defect of polctl; please report it"))
    };
    let set = new.set.config.set.clone();
    let change = Change { set: &set, old_policy_id: id(old)?, new_policy_id: id(new)? };
    let span = Span::new(new.set.config.file, 0, 0);
    let mut added = Vec::new();
    for signed in approvals {
        let verified = match verify_approval(&signed.bytes, &signed.trust, &change, signed.now) {
            Ok(verified) => verified,
            Err(error) => {
                let message = format!("the approval `{}` does not count: {error}", signed.name);
                let finding = Finding::new(Code::APPROVAL, span, message);
                added.push(finding.help(error.help_text().unwrap_or_else(|| "have this exact change approved anew".into())));
                continue;
            }
        };
        let mut used = std::collections::BTreeSet::new();
        for finding in findings.iter_mut().filter(|finding| is_widening(finding)) {
            let print = fingerprint(finding);
            if verified.covers(print) {
                used.insert(print);
                finding.level = Level::Note;
                let approval = verified.approval();
                finding.message = format!(
                    "approved by {} until {} ({}): {}",
                    approval.approver, approval.expires, approval.reason, finding.message
                );
            }
        }
        let unused = verified.unused(&used).count();
        if unused > 0 {
            let message = format!("the approval `{}` is about {unused} widenings that this change does not make", signed.name);
            added.push(Finding::new(Code::APPROVAL, span, message).help("have this exact change approved anew"));
        }
    }
    findings.append(&mut added);
    Ok(())
}
