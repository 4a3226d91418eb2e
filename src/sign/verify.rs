//! Verification of a policy directory, offline: from bytes on disk to bytes that may be used.
//!
//! Order matters. First the signatures over the payload as it was read, then its JSON, then
//! what it says against trust and time, then the files, then an online check if there is
//! one, and last the rollback state, so that nothing refused is ever remembered. There is no
//! way to a [`Verified`] but through [`verify`], and no way to policy bytes but through it.

use std::path::{Path, PathBuf};

use super::digest::Digest;
use super::envelope::{Envelope, MAX_ENVELOPE_BYTES, POLICY_SET_TYPE, SignedBy};
use super::error::{FileError, SignError, StateError, TrustError, VerifyError, shown};
use super::files::{FileSet, PlainError, PolicyDir, Skip, read_plain};
use super::payload::{PolicySet, check_times};
use super::state::LockedState;
use super::time::Timestamp;
use super::trust::{MAX_TRUST_BYTES, Role, Trust};
use super::write::{Steps, Straight};

/// Where the envelope is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EnvelopeAt {
    /// In the policy directory, under this name.
    Inside(String),
    /// Elsewhere.
    Outside(PathBuf),
}

/// How rollback is noticed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rollback {
    /// By a state file outside the policy directory.
    State(PathBuf),
    /// Only by the floor of the trust file: for places that remember nothing, such as CI.
    FloorOnly,
}

/// A check that needs more than the files, after all others.
pub trait OnlineCheck {
    /// Whether the signatures of an envelope still stand; each was verified against its pin.
    ///
    /// # Errors
    ///
    /// They do not, or nobody could be asked.
    fn confirm(&self, envelope: &Envelope) -> Result<(), SignError>;
}

/// What is to be verified, and against what.
pub struct Request<'a> {
    /// The policy directory.
    pub dir: &'a Path,
    /// Its envelope.
    pub envelope: EnvelopeAt,
    /// The trust file; not in the policy directory.
    pub trust: &'a Path,
    /// How rollback is noticed.
    pub rollback: Rollback,
    /// The policy that a prepared action counts on.
    pub expect: Option<Digest>,
    /// Names in the policy directory that are no policy.
    pub ignored: &'a [String],
    /// A further check, when the gate is online.
    pub online: Option<&'a dyn OnlineCheck>,
    /// The time of day.
    pub now: Timestamp,
}

/// A policy set whose signatures, time, sequence and files were verified.
///
/// The only way to the bytes of a signed policy: they are those that were hashed.
#[derive(Debug)]
pub struct Verified {
    payload: PolicySet,
    payload_digest: Digest,
    signers: Vec<SignedBy>,
    files: FileSet,
}

impl Verified {
    /// What was signed.
    pub const fn payload(&self) -> &PolicySet {
        &self.payload
    }

    /// SHA-256 of the payload's bytes: what `revoked.digests` and the state name.
    pub const fn payload_digest(&self) -> Digest {
        self.payload_digest
    }

    /// Who signed.
    pub fn signers(&self) -> &[SignedBy] {
        &self.signers
    }

    /// The files, as they were hashed.
    pub const fn files(&self) -> &FileSet {
        &self.files
    }

    /// One file, as it was hashed, without copying it.
    pub fn into_file(mut self, name: &str) -> Option<Vec<u8>> {
        self.files.take(name)
    }
}

/// Verifies a policy directory.
///
/// # Errors
///
/// [`SignError`]: the first thing that does not hold. The rollback state is then unchanged.
pub fn verify(request: &Request<'_>) -> Result<Verified, SignError> {
    verify_with(request, &mut Straight)
}

/// As [`verify`]; `steps` is told before each step of writing the state.
///
/// # Errors
///
/// As [`verify`].
pub fn verify_with(request: &Request<'_>, steps: &mut dyn Steps) -> Result<Verified, SignError> {
    let now = request.now;
    let dir = PolicyDir::open(request.dir)?;
    let trust = load_trust(request.trust, Some(&dir))?;
    refuse_state_inside(&request.rollback, &dir)?;
    let bytes = match &request.envelope {
        EnvelopeAt::Inside(name) => dir.read_envelope(name, MAX_ENVELOPE_BYTES as u64)?,
        EnvelopeAt::Outside(path) => read_envelope(path)?,
    };
    let envelope = Envelope::parse(&bytes)?;
    let signers = envelope.verify(POLICY_SET_TYPE, Role::Release, &trust, now)?;
    let payload = PolicySet::parse(envelope.payload())?;
    let payload_digest = Digest::of(envelope.payload());
    check_payload(&payload, payload_digest, &trust, request.expect, now)?;
    let skip = skip(&request.envelope, request.ignored);
    refuse_envelope_listed(&payload, &skip)?;
    let files = dir.read_exactly(&payload.files, &skip)?;
    if let Some(online) = request.online {
        online.confirm(&envelope)?;
    }
    if let Rollback::State(path) = &request.rollback {
        let state = LockedState::open(path)?;
        state.check(&payload.set, payload.sequence, payload_digest, now, trust.skew_seconds())?;
        state.record(&payload.set, payload.sequence, payload_digest, now, steps)?;
    }
    Ok(Verified { payload, payload_digest, signers, files })
}

/// What is no policy in the directory: the envelope, and what was named.
pub(super) fn skip(envelope: &EnvelopeAt, ignored: &[String]) -> Skip {
    let envelope = match envelope {
        EnvelopeAt::Inside(name) => Some(name.clone()),
        EnvelopeAt::Outside(_) => None,
    };
    Skip { envelope, ignored: ignored.iter().cloned().collect() }
}

/// Reads the trust file; refused when it lies in `policy`, is a link, or others can write it.
///
/// # Errors
///
/// [`TrustError`], and what [`Trust::parse`] refuses.
pub fn load_trust(path: &Path, policy: Option<&PolicyDir>) -> Result<Trust, SignError> {
    let name = || shown(&path.to_string_lossy());
    let unreadable = |source| TrustError::Unreadable { path: name(), source };
    if let Some(policy) = policy
        && policy.contains(path).map_err(unreadable)?
    {
        return Err(TrustError::Inside { path: name() }.into());
    }
    let (bytes, mode) = read_plain(path, MAX_TRUST_BYTES).map_err(|error| match error {
        PlainError::NotRegular => TrustError::NotRegular { path: name() },
        PlainError::Io(source) => unreadable(source),
    })?;
    if mode & 0o022 != 0 {
        return Err(TrustError::Writable { path: name() }.into());
    }
    Trust::parse(&bytes)
}

/// Reads an envelope that lies outside the policy directory; bytes beyond the cap are
/// refused by [`Envelope::parse`].
pub(super) fn read_envelope(path: &Path) -> Result<Vec<u8>, FileError> {
    let name = || shown(&path.to_string_lossy());
    match read_plain(path, MAX_ENVELOPE_BYTES) {
        Ok((bytes, _)) => Ok(bytes),
        Err(PlainError::Io(e)) if e.kind() == std::io::ErrorKind::NotFound => {
            Err(FileError::NoEnvelope { name: name() })
        }
        Err(PlainError::Io(source)) => Err(FileError::Unreadable { name: name(), source }),
        Err(PlainError::NotRegular) => Err(FileError::NotRegular { name: name() }),
    }
}

fn refuse_state_inside(rollback: &Rollback, dir: &PolicyDir) -> Result<(), StateError> {
    let Rollback::State(path) = rollback else { return Ok(()) };
    let name = || shown(&path.to_string_lossy());
    match dir.contains(path) {
        Ok(false) => Ok(()),
        Ok(true) => Err(StateError::Inside { path: name() }),
        Err(source) => Err(StateError::Unreadable { path: name(), source }),
    }
}

fn refuse_envelope_listed(payload: &PolicySet, skip: &Skip) -> Result<(), SignError> {
    let listed = payload.files.iter().find(|f| skip.envelope.as_ref() == Some(&f.name));
    match listed {
        Some(file) => Err(super::error::NameError::Envelope { name: shown(&file.name) }.into()),
        None => Ok(()),
    }
}

/// What a payload says, held against trust and time.
fn check_payload(
    payload: &PolicySet,
    digest: Digest,
    trust: &Trust,
    expect: Option<Digest>,
    now: Timestamp,
) -> Result<(), SignError> {
    if payload.set != trust.set() {
        return Err(TrustError::OtherSet { trusted: trust.set().to_owned(), found: payload.set.clone() }.into());
    }
    let own = [digest, payload.policy_id];
    let digests = own.into_iter().chain(payload.files.iter().map(|f| f.sha256));
    check_revoked(digests, trust)?;
    check_window(payload.issued, payload.expires, trust, now)?;
    if payload.sequence < trust.floor() {
        return Err(VerifyError::Floor { sequence: payload.sequence, floor: trust.floor() }.into());
    }
    if let Some(expected) = expect.filter(|expected| *expected != payload.policy_id) {
        return Err(VerifyError::PolicyChanged { found: payload.policy_id, expected }.into());
    }
    Ok(())
}

pub(super) fn check_revoked(digests: impl IntoIterator<Item = Digest>, trust: &Trust) -> Result<(), VerifyError> {
    match digests.into_iter().find(|digest| trust.is_revoked(*digest)) {
        Some(digest) => Err(VerifyError::Revoked { digest }),
        None => Ok(()),
    }
}

/// The clock is not behind what is certain, and `now` lies in the window.
pub(super) fn check_window(
    issued: Timestamp,
    expires: Timestamp,
    trust: &Trust,
    now: Timestamp,
) -> Result<(), VerifyError> {
    check_times(issued, expires)?;
    if let Some(floor) = trust.clock_floor().filter(|floor| now < *floor) {
        return Err(VerifyError::Clock { now, floor });
    }
    if now.plus(trust.skew_seconds()) < issued {
        return Err(VerifyError::NotYetValid { issued, now });
    }
    if now >= expires {
        return Err(VerifyError::Expired { expires });
    }
    Ok(())
}

/// Whether a refusal stops the caller (DESIGN 7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Enforcement {
    /// Refusals are reported loudly and stop nothing: for the time before keys exist.
    Report,
    /// Refusals stop the caller.
    Enforce,
}

impl Enforcement {
    /// The value of a flag and of a variable (`POLCTL_VERIFY_ENFORCE`). Either can switch it
    /// on; a variable that says neither yes nor no is nobody's wish and returns `None`.
    pub fn from_settings(flag: bool, variable: Option<&str>) -> Option<Self> {
        let variable = match variable.map(str::to_ascii_lowercase).as_deref() {
            None | Some("0" | "false" | "no" | "off") => false,
            Some("1" | "true" | "yes" | "on") => true,
            Some(_) => return None,
        };
        Some(if flag || variable { Enforcement::Enforce } else { Enforcement::Report })
    }

    /// What a caller does with the outcome of a verification.
    pub fn admit(self, outcome: Result<Verified, SignError>) -> Admission {
        match (outcome, self) {
            (Ok(verified), _) => Admission::Verified(Box::new(verified)),
            (Err(error), Enforcement::Report) => Admission::Reported(error),
            (Err(error), Enforcement::Enforce) => Admission::Refused(error),
        }
    }
}

/// The outcome of a verification under an [`Enforcement`].
#[derive(Debug)]
pub enum Admission {
    /// Verified: the bytes may be used.
    Verified(Box<Verified>),
    /// Not verified, and nobody asked to enforce it: to be reported; there are no verified
    /// bytes.
    Reported(SignError),
    /// Not verified: the caller stops.
    Refused(SignError),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_clear_words_switch_enforcement() {
        use Enforcement::{Enforce, Report};
        assert_eq!(Enforcement::from_settings(false, None), Some(Report));
        assert_eq!(Enforcement::from_settings(true, None), Some(Enforce));
        assert_eq!(Enforcement::from_settings(true, Some("0")), Some(Enforce), "a variable cannot weaken a flag");
        assert_eq!(Enforcement::from_settings(false, Some("TRUE")), Some(Enforce));
        assert_eq!(Enforcement::from_settings(false, Some("off")), Some(Report));
        for unclear in ["", " ", "flase", "2", "enforce "] {
            assert_eq!(Enforcement::from_settings(true, Some(unclear)), None, "{unclear:?}");
        }
    }
}
