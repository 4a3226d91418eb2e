//! Approvals of widenings: what `check` and `sign` take from those that the base trusts (DESIGN 6).

use std::collections::BTreeSet;
use std::path::Path;
use std::rc::Rc;

use super::args::ApprovalArgs;
use super::policy_gate::{digest, fingerprint, is_widening};
use super::session::{Failure, now, surely_path};
use crate::compile::Compiled;
use crate::diag::{Code, Finding, Level};
use crate::sign::{
    Change, Digest, MAX_ENVELOPE_BYTES, PolicyDir, SignError, Timestamp, Trust, TrustError, load_trust, verify_approval,
};
use crate::source::{GitTree, Span, Tree as _};

/// An approval as it was given, and what it is to be believed by.
pub(super) struct Signed {
    name: String,
    bytes: Vec<u8>,
    trust: Rc<Trust>,
    now: Timestamp,
}

/// The approvals that were named, with the trust file of the base. `base` was opened before:
/// it is there, and it is one thing.
pub(super) fn approvals(args: &ApprovalArgs, base: &str, dir: &Path) -> Result<Vec<Signed>, Failure> {
    let (Some(file), false) = (&args.approval_trust, args.approval.is_empty()) else {
        return Ok(Vec::new());
    };
    let trust = Rc::new(trust_of_base(file, base, dir)?);
    let now = now()?;
    args.approval
        .iter()
        .map(|path| {
            let bytes = read(path)?;
            Ok(Signed { name: path.display().to_string(), bytes, trust: Rc::clone(&trust), now })
        })
        .collect()
}

/// The trust file as the base has it, so that a change cannot approve itself. Where the base is
/// a directory, the file is the one that was named.
fn trust_of_base(file: &Path, base: &str, dir: &Path) -> Result<Trust, Failure> {
    let policy = PolicyDir::open(dir).map_err(SignError::from)?;
    if surely_path(base) {
        return Ok(load_trust(file, Some(&policy))?);
    }
    let revision = GitTree::open(dir, base)?;
    let shown = || format!("`{}`", file.display());
    let inside = policy.contains(file).map_err(|source| Failure::Read { what: shown(), source })?;
    if inside {
        return Err(SignError::from(TrustError::Inside { path: file.display().to_string() }).into());
    }
    let elsewhere = || {
        Failure::usage(
            format!("the trust file {} does not lie in the repository that `{base}` is a revision of", shown()),
            "keep it beside the policy, in the same repository: it is read from the base, so that a change cannot bring the key that approves it",
        )
    };
    let parent = file.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let name = file.file_name().and_then(|name| name.to_str()).ok_or_else(elsewhere)?;
    let tree = GitTree::open(parent, base).map_err(|_| elsewhere())?;
    if tree.commit() != revision.commit() {
        return Err(elsewhere());
    }
    Ok(Trust::parse(&tree.read(name)?)?)
}

/// An approval's bytes; more than it may have are refused by its parser.
fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    use std::io::Read as _;
    let failed = |source| Failure::Read { what: format!("`{}`", path.display()), source };
    let mut bytes = Vec::new();
    let cap = MAX_ENVELOPE_BYTES as u64 + 1;
    std::fs::File::open(path).map_err(failed)?.take(cap).read_to_end(&mut bytes).map_err(failed)?;
    Ok(bytes)
}

/// Lets approved widenings pass as notes, and returns the digests of the approvals that they
/// pass by. An approval that does not hold, or that nothing needs, is a finding.
pub(super) fn approve(
    findings: &mut Vec<Finding>,
    approvals: &[Signed],
    old: &Compiled,
    new: &Compiled,
) -> Result<Vec<Digest>, Failure> {
    if approvals.is_empty() {
        return Ok(Vec::new());
    }
    let change = Change {
        set: &new.set.config.set,
        old_policy_id: digest(&old.policy_id())?,
        new_policy_id: digest(&new.policy_id())?,
    };
    let span = Span::new(new.set.config.file, 0, 0);
    // Before any message is changed: the fingerprint is of what was found.
    let prints: Vec<Option<Digest>> = findings.iter().map(|f| is_widening(f).then(|| fingerprint(f))).collect();
    let found: BTreeSet<Digest> = prints.iter().flatten().copied().collect();
    let (mut passed, mut added) = (BTreeSet::new(), Vec::new());
    for signed in approvals {
        let mut finding =
            |message: String, help: String| added.push(Finding::new(Code::APPROVAL, span, message).help(help));
        let anew = || "have this exact change approved anew (`polctl approve`)".to_owned();
        let verified = match verify_approval(&signed.bytes, &signed.trust, &change, signed.now) {
            Ok(verified) => verified,
            Err(error) => {
                let message = format!("the approval `{}` does not count: {error}", signed.name);
                finding(message, error.help_text().unwrap_or_else(anew));
                continue;
            }
        };
        match verified.unused(&found).count() {
            0 => _ = passed.insert(verified.digest()),
            1 => finding(
                format!("the approval `{}` is about a widening that this change does not make", signed.name),
                anew(),
            ),
            n => finding(
                format!("the approval `{}` is about {n} widenings that this change does not make", signed.name),
                anew(),
            ),
        }
        let approval = verified.approval();
        let reason: Vec<&str> = approval.reason.split_whitespace().collect();
        let covered = findings.iter_mut().zip(&prints).filter(|(_, print)| print.is_some_and(|p| verified.covers(p)));
        for (finding, _) in covered.filter(|(finding, _)| finding.level > Level::Note) {
            finding.level = Level::Note;
            finding.message = format!(
                "approved by {} until {} ({}): {}",
                approval.approver,
                approval.expires,
                reason.join(" "),
                finding.message
            );
        }
    }
    findings.append(&mut added);
    Ok(passed.into_iter().collect())
}
