//! Refusals about trust, time, sequence, and what a host remembers.

use miette::Diagnostic;
use thiserror::Error;

use crate::sign::digest::Digest;
use crate::sign::time::Timestamp;

/// What is wrong with the trust file.
#[derive(Debug, Error, Diagnostic)]
#[non_exhaustive]
pub enum TrustError {
    /// It cannot be read.
    #[error("the trust file `{path}` cannot be read")]
    #[diagnostic(
        code("trust-unreadable"),
        help("give the pinned keys with `--trust FILE`; docs/signing.md has the format")
    )]
    Unreadable {
        /// As given.
        path: String,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// It lies in the policy directory.
    #[error("the trust file `{path}` lies in the policy directory")]
    #[diagnostic(
        code("trust-inside-policy"),
        help(
            "whoever changes the policy could change whom to trust; keep it elsewhere, writable for administrators only"
        )
    )]
    Inside {
        /// As given.
        path: String,
    },
    /// It is no regular file.
    #[error("the trust file `{path}` is not a regular file with one name")]
    #[diagnostic(code("trust-not-regular"), help("links can be pointed elsewhere; put the file itself there"))]
    NotRegular {
        /// As given.
        path: String,
    },
    /// Others can write it.
    #[error("the trust file `{path}` can be written by its group or by everyone")]
    #[diagnostic(code("trust-writable"), help("`chmod go-w` it, and look at what it says"))]
    Writable {
        /// As given.
        path: String,
    },
    /// It is for another set.
    #[error("the trust file is for the policy set `{trusted}`, and the payload for `{found}`")]
    #[diagnostic(code("set-mismatch"), help("give the files and the trust file of one set"))]
    OtherSet {
        /// In the trust file.
        trusted: String,
        /// In the payload.
        found: String,
    },
    /// A key in it is no key.
    #[error("`{path}.public` in the trust file is no ed25519 public key")]
    #[diagnostic(
        code("trust-key-invalid"),
        help("a key is 32 bytes in standard base64, as `polctl keys show` prints it")
    )]
    KeyInvalid {
        /// The place.
        path: String,
    },
    /// A key in it is weak.
    #[error("`{path}.public` in the trust file is a key under which signatures prove nothing (a weak point)")]
    #[diagnostic(code("trust-key-weak"), help("such a key is never made by accident; find out who put it there"))]
    KeyWeak {
        /// The place.
        path: String,
    },
    /// A key stands twice.
    #[error("the key {key} stands twice in the trust file")]
    #[diagnostic(code("trust-key-duplicate"), help("one key belongs to one signer; remove the other entry"))]
    KeyDuplicate {
        /// The key's id.
        key: Digest,
    },
    /// A window that ends before it begins.
    #[error("`{path}` in the trust file ends before it begins")]
    #[diagnostic(code("trust-window"), help("`not_before` is earlier than `not_after`"))]
    Window {
        /// The place.
        path: String,
    },
    /// A threshold that cannot be met or that anything meets.
    #[error("the threshold for `{role}` is {threshold}, and {signers} signers have that role")]
    #[diagnostic(code("trust-threshold"), help("a threshold is at least 1 and at most the number of distinct signers"))]
    Threshold {
        /// The role.
        role: &'static str,
        /// As given.
        threshold: u64,
        /// Distinct signers with that role.
        signers: usize,
    },
}

/// What a payload says does not hold.
#[derive(Debug, Error, Diagnostic)]
#[non_exhaustive]
pub enum VerifyError {
    /// The end lies before the start.
    #[error("the payload expires at {expires}, which is not after {issued}, when it was issued")]
    #[diagnostic(code("payload-times"), help("sign again"))]
    Times {
        /// Issued.
        issued: Timestamp,
        /// Expires.
        expires: Timestamp,
    },
    /// Expired.
    #[error("the signature expired at {expires}")]
    #[diagnostic(code("expired"), help("sign the set again; an old signature must not keep an old policy alive"))]
    Expired {
        /// When.
        expires: Timestamp,
    },
    /// Issued in the future.
    #[error("the signature was issued at {issued}, and it is {now}")]
    #[diagnostic(code("not-yet-valid"), help("one of the two clocks is wrong"))]
    NotYetValid {
        /// When.
        issued: Timestamp,
        /// The time of day.
        now: Timestamp,
    },
    /// The clock is behind what is certain.
    #[error("the clock says {now}, and {floor} has passed already")]
    #[diagnostic(code("clock-rollback"), help("set the clock; an old clock would revive expired signatures"))]
    Clock {
        /// The time of day.
        now: Timestamp,
        /// Floor of the trust file, or latest time seen.
        floor: Timestamp,
    },
    /// The payload or the policy is revoked.
    #[error("the digest {digest} is revoked")]
    #[diagnostic(code("digest-revoked"), help("deploy a set that is not revoked"))]
    Revoked {
        /// Of the payload, of the policy, or of one of its files.
        digest: Digest,
    },
    /// Below the floor of the trust file.
    #[error("sequence {sequence} is below the floor of {floor}")]
    #[diagnostic(code("sequence-floor"), help("deploy a newer set; the trust file sets the floor"))]
    Floor {
        /// Of the payload.
        sequence: u64,
        /// Of the trust file.
        floor: u64,
    },
    /// Lower than what was seen.
    #[error("sequence {sequence} is lower than {seen}, which was seen here")]
    #[diagnostic(
        code("sequence-rollback"),
        help("to go back to an older policy, sign it again with a higher sequence")
    )]
    Rollback {
        /// Of the payload.
        sequence: u64,
        /// The highest seen.
        seen: u64,
    },
    /// The same sequence with another payload.
    #[error("sequence {sequence} was seen here with another payload")]
    #[diagnostic(
        code("sequence-reused"),
        help("each signed set has a sequence of its own; sign again with the next one")
    )]
    Reused {
        /// Of both.
        sequence: u64,
    },
    /// Not the expected policy.
    #[error("the policy is {found} and not {expected}, as expected")]
    #[diagnostic(code("policy-changed"), help("the policy changed since the action was prepared; prepare it again"))]
    PolicyChanged {
        /// Of the payload.
        found: Digest,
        /// As asked.
        expected: Digest,
    },
    /// An approval for another change.
    #[error("the approval is for another change: {what} differs")]
    #[diagnostic(
        code("approval-mismatch"),
        help("have this very change approved; an approval binds both versions and each finding")
    )]
    OtherChange {
        /// What differs.
        what: &'static str,
    },
}

/// What is wrong with the rollback state.
#[derive(Debug, Error, Diagnostic)]
#[non_exhaustive]
pub enum StateError {
    /// It lies in the policy directory.
    #[error("the rollback state `{path}` lies in the policy directory")]
    #[diagnostic(code("state-inside-policy"), help("keep it elsewhere: what is deployed must not bring what was seen"))]
    Inside {
        /// As given.
        path: String,
    },
    /// It cannot be read.
    #[error("the rollback state `{path}` cannot be read")]
    #[diagnostic(
        code("state-unreadable"),
        help("it must be a regular file in a directory that exists and is writable")
    )]
    Unreadable {
        /// As given.
        path: String,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// Another process holds the lock.
    #[error("the rollback state `{path}` is locked by another process")]
    #[diagnostic(code("state-locked"), help("try again; if it stays, find the process that holds the lock file"))]
    Locked {
        /// As given.
        path: String,
    },
}
