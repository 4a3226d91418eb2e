//! `polctl approve`: sign the widenings of one exact change.

use std::path::PathBuf;

use clap::Args as ClapArgs;

use super::envelope::envelope_name;
use super::gate::Gate;
use super::session::{Failure, now};
use super::vault::SignerArgs;
use super::{exit, output};
use crate::sign::{
    APPROVAL_TYPE, Approval, Change, MAX_ENVELOPE_BYTES, PolicyDir, Role, SignError, Skip, Straight, add_to_approval,
    load_trust, sign, verify_approval, write_envelope,
};

const DAY: i64 = 86_400;

/// Arguments of `approve`.
#[derive(Debug, ClapArgs)]
pub struct ApproveArgs {
    /// The policy directory (with polctl.yaml)
    #[arg(long, short = 'C', default_value = ".", value_name = "DIR")]
    pub dir: PathBuf,
    /// The version before the change: a git revision or a directory
    #[arg(long, value_name = "REF|DIR")]
    pub base: String,
    /// The trust file of the base
    #[arg(long, value_name = "FILE")]
    pub trust: PathBuf,
    /// Your name as a signer in the trust file
    #[arg(long, value_name = "NAME")]
    pub approver: String,
    /// Why the widening is wanted
    #[arg(long, value_name = "TEXT")]
    pub reason: String,
    /// Days until the approval no longer counts
    #[arg(long, value_name = "DAYS", default_value_t = 14, value_parser = clap::value_parser!(u16).range(1..=366))]
    pub days: u16,
    /// Where the approval is written; not in the policy directory
    #[arg(long, short = 'o', value_name = "FILE")]
    pub output: PathBuf,
    /// Add a signature to the approval that is there, for a threshold
    #[arg(long)]
    pub add: bool,
    /// Name of the envelope in the policy directory [default: `signing.envelope` in polctl.yaml, or polctl.sig.json]
    #[arg(long, value_name = "NAME")]
    pub envelope: Option<String>,
    /// A file or directory in the policy directory that is no policy (repeatable)
    #[arg(long, value_name = "NAME", default_value = ".git")]
    pub ignore: Vec<String>,
    /// The signer.
    #[command(flatten)]
    pub signer: SignerArgs,
}

pub(super) fn run(args: &ApproveArgs, gate: &dyn Gate) -> Result<u8, Failure> {
    let now = now()?;
    let dir = PolicyDir::open(&args.dir).map_err(SignError::from)?;
    let trust = load_trust(&args.trust, Some(&dir))?;
    refuse_inside(&dir, args)?;
    let skip = Skip {
        envelope: Some(envelope_name(args.envelope.as_deref(), &args.dir)),
        ignored: args.ignore.iter().cloned().collect(),
    };
    let files = dir.read_all(&skip)?;
    let change = gate.change(&args.dir, &files, &args.base)?;
    if change.findings.is_empty() {
        return Err(Failure::usage("the change widens nothing, so there is nothing to approve", "sign it as it is"));
    }
    let approval = Approval {
        set: change.set.clone(),
        old_policy_id: change.old_policy_id,
        new_policy_id: change.new_policy_id,
        findings: change.findings.clone(),
        reason: args.reason.clone(),
        approver: args.approver.clone(),
        issued: now,
        expires: now.plus(i64::from(args.days) * DAY),
        polctl: env!("CARGO_PKG_VERSION").to_owned(),
    };
    // What is written must be readable: the same parser, before anything is signed.
    let approval = Approval::parse(&approval.to_bytes())?;
    let signer = args.signer.open()?;
    let (envelope, by) = if args.add {
        add_to_approval(&existing(args)?, &approval, signer.as_ref(), &trust, now)?
    } else {
        sign(APPROVAL_TYPE, approval.to_bytes(), Role::Approve, signer.as_ref(), &trust, now)?
    };
    if by.signer != approval.approver {
        return Err(Failure::usage(
            format!("the key is pinned for `{}` and not for the approver `{}`", by.signer, approval.approver),
            "give your own name, or sign with your own key",
        ));
    }
    if trust.threshold(Role::Approve).is_some_and(|needed| envelope.signatures().len() >= needed) {
        let same =
            Change { set: &change.set, old_policy_id: change.old_policy_id, new_policy_id: change.new_policy_id };
        verify_approval(&envelope.to_bytes(), &trust, &same, now)?;
    }
    write_envelope(&args.output, &envelope, &mut Straight)?;
    let text = format!(
        "polctl approve: {} findings of {} approved by {} (key {}) until {}\n",
        approval.findings.len(),
        approval.set,
        by.signer,
        by.key,
        approval.expires
    );
    Ok(output::print(&text).map_or_else(|code| code, |()| exit::OK))
}

/// The approval that is there; bytes beyond the cap are refused by its parser.
fn existing(args: &ApproveArgs) -> Result<Vec<u8>, Failure> {
    use std::io::Read as _;
    let failed = |source| Failure::Read { what: format!("`{}`", args.output.display()), source };
    let mut bytes = Vec::new();
    let file = std::fs::File::open(&args.output).map_err(failed)?;
    file.take(MAX_ENVELOPE_BYTES as u64 + 1).read_to_end(&mut bytes).map_err(failed)?;
    Ok(bytes)
}

/// An approval in the policy directory would be an unsigned extra file, and would change
/// what it approves.
fn refuse_inside(dir: &PolicyDir, args: &ApproveArgs) -> Result<(), Failure> {
    let inside = dir
        .contains(&args.output)
        .map_err(|source| Failure::Write { what: format!("`{}`", args.output.display()), source })?;
    if inside {
        return Err(Failure::usage(
            "the approval would lie in the policy directory",
            "write it elsewhere: approvals are no part of the set that they approve",
        ));
    }
    Ok(())
}
