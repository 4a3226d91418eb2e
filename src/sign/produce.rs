//! Making envelopes: the payload, the signature by some signer, and the check of that
//! signature before anybody sees it.

use std::path::Path;

use super::approval::Approval;
use super::digest::Digest;
use super::envelope::{APPROVAL_TYPE, Envelope, EnvelopeSignature, POLICY_SET_TYPE, SignedBy, pae};
use super::error::{EnvelopeError, FileError, SignError, SignerError, VerifyError, shown};
use super::files::FileSet;
use super::key::RawSignature;
use super::payload::{Base, MAX_FILES, MAX_PAYLOAD_BYTES, PolicySet, check_names};
use super::time::Timestamp;
use super::trust::{Role, Trust};
use super::write::{Access, Existing, Steps, write_file};

/// Somebody who can sign.
///
/// What comes back is not believed: the caller verifies it against the pinned keys.
pub trait Signer {
    /// Signs `message` (ed25519, not prehashed).
    ///
    /// # Errors
    ///
    /// [`SignError`]: there is no signature.
    fn sign(&self, message: &[u8]) -> Result<Made, SignError>;
}

/// A signature as a signer gave it.
#[derive(Clone, Debug)]
pub struct Made {
    /// The signature, not verified.
    pub signature: RawSignature,
    /// The signer and its key for messages, e.g. "Vault key `release` version 2".
    pub by: String,
}

/// What is to be signed about a set, beside its files.
#[derive(Clone, Debug)]
pub struct Subject {
    /// Name of the set.
    pub set: String,
    /// Sequence of this version.
    pub sequence: u64,
    /// SHA-256 of the compiled set.
    pub policy_id: Digest,
    /// The base, and the verdict against it.
    pub base: Base,
    /// When it is signed.
    pub issued: Timestamp,
    /// From when on it is refused.
    pub expires: Timestamp,
    /// Version of polctl.
    pub polctl: String,
}

/// The payload for a set, of exactly these files.
///
/// # Errors
///
/// [`SignError`]: what `verify` would refuse: names, the number of files, times, a sequence
/// below the floor of `trust`, another set than the trust file's.
pub fn payload(subject: Subject, files: &FileSet, trust: &Trust) -> Result<PolicySet, SignError> {
    let Subject { set, sequence, policy_id, base, issued, expires, polctl } = subject;
    let payload = PolicySet { set, sequence, policy_id, issued, expires, polctl, base, files: files.entries() };
    check_names(&payload.files)?;
    if payload.files.len() > MAX_FILES || payload.to_bytes().len() > MAX_PAYLOAD_BYTES {
        return Err(FileError::TooMany { cap: MAX_FILES }.into());
    }
    if payload.set != trust.set() {
        return Err(super::error::TrustError::OtherSet { trusted: trust.set().to_owned(), found: payload.set }.into());
    }
    if sequence < trust.floor() {
        return Err(VerifyError::Floor { sequence, floor: trust.floor() }.into());
    }
    // What is written must be readable: the same parser, before anything is signed.
    PolicySet::parse(&payload.to_bytes())
}

/// Refuses files that the checked set does not use: `verify` would refuse them too.
///
/// # Errors
///
/// [`FileError::Extra`] or [`FileError::Missing`].
pub fn exactly_used(files: &FileSet, used: &[String]) -> Result<(), FileError> {
    if let Some((name, _)) = files.iter().find(|(name, _)| !used.iter().any(|u| u == name)) {
        return Err(FileError::Extra { name: shown(name) });
    }
    match used.iter().find(|name| files.get(name).is_none()) {
        Some(name) => Err(FileError::Missing { name: shown(name) }),
        None => Ok(()),
    }
}

/// Signs a payload; the signature was verified against a pinned key of `role`.
///
/// # Errors
///
/// [`SignError`]: the signer failed, or signed with a key that `trust` does not pin.
pub fn sign(
    payload_type: &str,
    payload: Vec<u8>,
    role: Role,
    signer: &dyn Signer,
    trust: &Trust,
    now: Timestamp,
) -> Result<(Envelope, SignedBy), SignError> {
    let mut envelope = Envelope::new(payload_type, payload);
    let by = add(&mut envelope, role, signer, trust, now)?;
    Ok((envelope, by))
}

/// Adds a signature to a policy set's envelope that holds the same payload but for its
/// sequence and times, which stay as they were signed first.
///
/// # Errors
///
/// [`SignError`]: a signature in it is not good, its payload is another one
/// (`payload-differs`), the signer signed already, or as [`sign`].
pub fn add_to_set(
    bytes: &[u8],
    fresh: &PolicySet,
    signer: &dyn Signer,
    trust: &Trust,
    now: Timestamp,
) -> Result<(Envelope, SignedBy), SignError> {
    let mut envelope = Envelope::parse(bytes)?;
    envelope.verify_each(POLICY_SET_TYPE, Role::Release, trust, now)?;
    let old = PolicySet::parse(envelope.payload())?;
    super::verify::check_window(old.issued, old.expires, trust, now)?;
    let differs = [
        ("the policy set", old.set == fresh.set),
        ("the policy", old.policy_id == fresh.policy_id),
        ("the base or its verdict", old.base == fresh.base),
        ("the file list", old.files == fresh.files),
    ];
    if let Some((what, _)) = differs.into_iter().find(|(_, same)| !same) {
        return Err(EnvelopeError::OtherPayload { what }.into());
    }
    let by = add(&mut envelope, Role::Release, signer, trust, now)?;
    envelope.verify_each(POLICY_SET_TYPE, Role::Release, trust, now)?;
    Ok((envelope, by))
}

fn add(
    envelope: &mut Envelope,
    role: Role,
    signer: &dyn Signer,
    trust: &Trust,
    now: Timestamp,
) -> Result<SignedBy, SignError> {
    let message = pae(envelope.payload_type(), envelope.payload());
    let made = signer.sign(&message)?;
    let pinned = trust
        .keys()
        .iter()
        .filter(|key| trust.usable(key.public.id(), role, now).is_ok())
        .find(|key| key.public.verifies(&message, &made.signature))
        .ok_or(SignerError::NotPinned { signer: made.by, role: role.as_str() })?;
    let by = SignedBy { signer: pinned.signer.clone(), key: pinned.public.id() };
    envelope.push(EnvelopeSignature { key: by.key, signature: made.signature });
    Ok(by)
}

/// Adds a signature to an approval of the same change by the same approver; reason and times
/// stay as they were signed first.
///
/// # Errors
///
/// As [`add_to_set`].
pub fn add_to_approval(
    bytes: &[u8],
    fresh: &Approval,
    signer: &dyn Signer,
    trust: &Trust,
    now: Timestamp,
) -> Result<(Envelope, SignedBy), SignError> {
    let mut envelope = Envelope::parse(bytes)?;
    envelope.verify_each(APPROVAL_TYPE, Role::Approve, trust, now)?;
    let old = Approval::parse(envelope.payload())?;
    super::verify::check_window(old.issued, old.expires, trust, now)?;
    let differs = [
        ("the policy set", old.set == fresh.set),
        ("the old policy", old.old_policy_id == fresh.old_policy_id),
        ("the new policy", old.new_policy_id == fresh.new_policy_id),
        ("the list of findings", old.findings == fresh.findings),
    ];
    if let Some((what, _)) = differs.into_iter().find(|(_, same)| !same) {
        return Err(EnvelopeError::OtherPayload { what }.into());
    }
    let by = add(&mut envelope, Role::Approve, signer, trust, now)?;
    envelope.verify_each(APPROVAL_TYPE, Role::Approve, trust, now)?;
    Ok((envelope, by))
}

/// The sequence that follows the one of an existing envelope; its signatures must be good,
/// or anybody could use the numbers up.
///
/// # Errors
///
/// [`SignError`]: the envelope cannot be believed, so the sequence must be given.
pub fn next_sequence(existing: Option<&[u8]>, trust: &Trust, now: Timestamp) -> Result<u64, SignError> {
    let first = trust.floor().max(1);
    let Some(bytes) = existing else { return Ok(first) };
    let envelope = Envelope::parse(bytes)?;
    envelope.verify_each(POLICY_SET_TYPE, Role::Release, trust, now)?;
    let old = PolicySet::parse(envelope.payload())?;
    let next = old.sequence.checked_add(1).ok_or_else(|| SignerError::Refused {
        message: "the sequence of the existing envelope is the last one".into(),
        help: "start a policy set with another name".into(),
    })?;
    Ok(first.max(next))
}

/// Writes an envelope, atomically.
///
/// # Errors
///
/// [`super::WriteError`]: the old envelope is as it was.
pub fn write_envelope(path: &Path, envelope: &Envelope, steps: &mut dyn Steps) -> Result<(), SignError> {
    Ok(write_file(path, &envelope.to_bytes(), Access::Shared, Existing::Replace, steps)?)
}
