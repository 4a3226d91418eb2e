//! Signing and verification of policy sets (DESIGN 7).
//!
//! Owns payloads, envelopes, trust, rollback state and signers. It takes bytes and knows no
//! policy: what a set means, and whether its check is green, is the caller's. The time of
//! day and every setting are arguments; nothing here reads the environment or prints. It
//! must never hand on bytes that were not verified, and never write a signature that it did
//! not verify itself.

mod approval;
mod digest;
mod envelope;
mod error;
mod files;
mod json;
mod key;
mod names;
mod payload;
mod produce;
mod signer;
mod state;
mod time;
mod trust;
mod verify;
mod write;

pub use approval::{Approval, Change, VerifiedApproval, verify_approval};
pub use digest::Digest;
pub use envelope::{
    APPROVAL_TYPE, Envelope, EnvelopeSignature, MAX_ENVELOPE_BYTES, MAX_SIGNATURES, POLICY_SET_TYPE, SignedBy, pae,
};
pub use error::{
    Document, EnvelopeError, FileError, KeyError, Malformed, NameError, Problem, SignError, SignerError, StateError,
    TrustError, VaultError, VerifyError, WriteError,
};
pub use files::{FileSet, MAX_ENTRIES, MAX_FILE_BYTES, MAX_SET_BYTES, PolicyDir, Skip};
pub use key::{PublicKey, RawSignature};
pub use names::{MAX_NAME_BYTES, MAX_NAME_DEPTH, check_name};
pub use payload::{Base, FileEntry, MAX_FILES, MAX_PAYLOAD_BYTES, PolicySet};
pub use produce::{
    Made, Signer, Subject, add_to_approval, add_to_set, exactly_used, next_sequence, payload, sign, write_envelope,
};
pub use signer::{Check, FileSigner, Secret, Standing, Vault, VaultAuth, VaultKey, VaultSettings};
pub use time::Timestamp;
pub use trust::{DEFAULT_SKEW_SECONDS, MAX_TRUST_BYTES, PinnedKey, Role, Trust};
pub use verify::{
    Admission, Enforcement, EnvelopeAt, OnlineCheck, Request, Rollback, Verified, load_trust, verify, verify_with,
};
pub use write::{Access, Existing, Step, Steps, Straight, write_file};
