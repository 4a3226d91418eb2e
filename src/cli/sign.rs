//! `polctl sign`: check, then sign exactly the checked bytes.

use std::path::PathBuf;

use clap::Args as ClapArgs;

use super::args::ApprovalArgs;
use super::envelope::envelope_name;
use super::gate::{Against, Checked, Gate, Verdict};
use super::session::{Failure, now};
use super::vault::SignerArgs;
use super::{exit, output};
use crate::sign::{
    Base, Envelope, MAX_ENVELOPE_BYTES, POLICY_SET_TYPE, PolicyDir, PolicySet, Role, SignError, SignedBy, Skip,
    Straight, Subject, Timestamp, Trust, add_to_set, exactly_used, load_trust, next_sequence, payload, sign,
    write_envelope,
};

const DAY: i64 = 86_400;

/// Arguments of `sign`.
#[derive(Debug, ClapArgs)]
pub struct SignArgs {
    /// The policy directory (with polctl.yaml)
    #[arg(long, short = 'C', default_value = ".", value_name = "DIR")]
    pub dir: PathBuf,
    /// What to check against: a git revision or a directory
    #[arg(long, value_name = "REF|DIR", conflicts_with = "initial")]
    pub base: Option<String>,
    /// First adoption: there is no base
    #[arg(long)]
    pub initial: bool,
    /// Approvals.
    #[command(flatten)]
    pub approvals: ApprovalArgs,
    /// The trust file with the pinned keys; the new signature must fit one of them
    #[arg(long, value_name = "FILE")]
    pub trust: PathBuf,
    /// Name of the envelope in the policy directory [default: `signing.envelope` in polctl.yaml, or polctl.sig.json]
    #[arg(long, value_name = "NAME")]
    pub envelope: Option<String>,
    /// A file or directory in the policy directory that is no policy (repeatable)
    #[arg(long, value_name = "NAME", default_value = ".git")]
    pub ignore: Vec<String>,
    /// Sequence of this version [default: one more than the existing envelope's]
    // What JSON numbers hold exactly; the next one must be possible, too.
    #[arg(long, value_name = "N", conflicts_with = "add", value_parser = clap::value_parser!(u64).range(1..1 << 53))]
    pub sequence: Option<u64>,
    /// Days until the signature expires
    #[arg(long, value_name = "DAYS", default_value_t = 90, value_parser = clap::value_parser!(u16).range(1..=3660))]
    pub days: u16,
    /// Add a signature to the existing envelope of the same set, for a threshold
    #[arg(long)]
    pub add: bool,
    /// The signer.
    #[command(flatten)]
    pub signer: SignerArgs,
}

pub(super) fn run(args: &SignArgs, gate: &dyn Gate) -> Result<u8, Failure> {
    let now = now()?;
    let against = against(args)?;
    let dir = PolicyDir::open(&args.dir).map_err(SignError::from)?;
    let trust = load_trust(&args.trust, Some(&dir))?;
    let envelope_name = envelope_name(args.envelope.as_deref(), &args.dir);
    let skip = Skip { envelope: Some(envelope_name.clone()), ignored: args.ignore.iter().cloned().collect() };
    // Read once: what is checked is what is signed.
    let files = dir.read_all(&skip)?;
    let checked = gate.check(&args.dir, &files, against)?;
    let base = match checked.verdict {
        Verdict::Green(ref base) => base.clone(),
        Verdict::Red(code) => {
            output::notice("polctl sign: the check is red, so nothing was signed");
            return Ok(code.max(exit::FINDINGS));
        }
    };
    exactly_used(&files, &checked.used).map_err(SignError::from)?;
    let existing = existing(&dir, &envelope_name)?;
    let sequence = sequence(args, existing.as_deref(), &trust, now)?;
    let set = payload(subject(&checked, base, sequence, args, now), &files, &trust)?;
    // The directory as every host will read it: nothing changed meanwhile, no directory stands empty.
    dir.read_exactly(&set.files, &skip)?;
    let (envelope, by) = make(args, existing.as_deref(), &set, &trust, now)?;
    write_envelope(&args.dir.join(&envelope_name), &envelope, &mut Straight)?;
    report(&envelope, &by, &trust)
}

fn against(args: &SignArgs) -> Result<Against<'_>, Failure> {
    match (&args.base, args.initial) {
        (Some(base), _) => Ok(Against::Base { base, approvals: &args.approvals }),
        (None, true) => Ok(Against::Initial),
        (None, false) => Err(Failure::usage(
            "a signature says what the set was checked against, and there is nothing",
            "give `--base REF`, the version that is signed now, or `--initial` for the first one",
        )),
    }
}

fn existing(dir: &PolicyDir, name: &str) -> Result<Option<Vec<u8>>, Failure> {
    match dir.read_envelope(name, MAX_ENVELOPE_BYTES as u64) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(SignError::File(crate::sign::FileError::NoEnvelope { .. })) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// The sequence that was asked for, or the next one; never one that hosts would refuse.
fn sequence(args: &SignArgs, existing: Option<&[u8]>, trust: &Trust, now: Timestamp) -> Result<u64, Failure> {
    if args.add {
        // The existing envelope has the number.
        return Ok(trust.floor());
    }
    match (args.sequence, next_sequence(existing, trust, now)) {
        (None, next) => next.map_err(|error| sequence_unknown(&error)),
        (Some(given), Ok(next)) if given < next => Err(Failure::usage(
            format!("the sequence {given} is not higher than that of the existing envelope or the trust file's floor"),
            format!("hosts refuse a sequence that does not grow; leave `--sequence` out, or give {next} or more"),
        )),
        (Some(given), _) => Ok(given),
    }
}

/// An envelope that cannot be believed gives no sequence, and is no reason not to sign.
fn sequence_unknown(error: &SignError) -> Failure {
    Failure::usage(
        format!("the sequence is not known, since the existing envelope cannot be believed: {error}"),
        "give `--sequence N`, higher than any that was signed before",
    )
}

fn subject(checked: &Checked, base: Base, sequence: u64, args: &SignArgs, now: Timestamp) -> Subject {
    Subject {
        set: checked.set.clone(),
        sequence,
        policy_id: checked.policy_id,
        base,
        issued: now,
        expires: now.plus(i64::from(args.days) * DAY),
        polctl: env!("CARGO_PKG_VERSION").to_owned(),
    }
}

fn make(
    args: &SignArgs,
    existing: Option<&[u8]>,
    set: &PolicySet,
    trust: &Trust,
    now: Timestamp,
) -> Result<(Envelope, SignedBy), Failure> {
    if !args.add {
        let signer = args.signer.open()?;
        return Ok(sign(POLICY_SET_TYPE, set.to_bytes(), Role::Release, signer.as_ref(), trust, now)?);
    }
    let existing = existing
        .ok_or_else(|| Failure::usage("there is no envelope to add a signature to", "sign without `--add` first"))?;
    let signer = args.signer.open()?;
    Ok(add_to_set(existing, set, signer.as_ref(), trust, now)?)
}

fn report(envelope: &Envelope, by: &SignedBy, trust: &Trust) -> Result<u8, Failure> {
    let set = PolicySet::parse(envelope.payload())?;
    let needed = trust.threshold(Role::Release).unwrap_or(1);
    let mut text = format!(
        "polctl sign: {} sequence {} signed by {} (key {}), {} files, until {}\npolicy_id {}\n",
        set.set,
        set.sequence,
        by.signer,
        by.key,
        set.files.len(),
        set.expires,
        set.policy_id
    );
    let have = envelope.signatures().len();
    if have < needed {
        text += &format!("{have} of {needed} signatures: others add theirs with `polctl sign --add`\n");
    }
    Ok(output::print(&text).map_or_else(|code| code, |()| exit::OK))
}
