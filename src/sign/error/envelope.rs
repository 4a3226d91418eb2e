//! Refusals about the signatures of an envelope.

use miette::Diagnostic;
use thiserror::Error;

use crate::sign::digest::Digest;
use crate::sign::time::Timestamp;

/// What is wrong with an envelope's signatures.
#[derive(Debug, Error, Diagnostic)]
#[non_exhaustive]
pub enum EnvelopeError {
    /// The payload type is another one.
    #[error("the envelope holds `{found}` and not `{expected}`")]
    #[diagnostic(
        code("payload-type"),
        help("a signature over one kind of document never stands for another; give the right envelope")
    )]
    PayloadType {
        /// What it says.
        found: String,
        /// What was asked for.
        expected: &'static str,
    },
    /// The payload is not standard base64 with padding.
    #[error("the envelope's payload is not standard base64 with padding")]
    #[diagnostic(code("payload-base64"), help("the envelope was cut or changed; sign again"))]
    PayloadBase64,
    /// A signature is not standard base64 with padding.
    #[error("signature {number} of the envelope is not standard base64 with padding")]
    #[diagnostic(code("signature-base64"), help("the envelope was cut or changed; sign again"))]
    SignatureBase64 {
        /// 1-based.
        number: usize,
    },
    /// A signature is not 64 bytes long.
    #[error("signature {number} of the envelope has {length} bytes, and an ed25519 signature has 64")]
    #[diagnostic(code("signature-length"), help("the envelope was cut or changed; sign again"))]
    SignatureLength {
        /// 1-based.
        number: usize,
        /// In bytes.
        length: usize,
    },
    /// A key id is not a SHA-256 value.
    #[error("signature {number} of the envelope names no key: a key id is 64 lower-case hexadecimal digits")]
    #[diagnostic(code("signature-keyid"), help("the envelope was not written by `polctl sign`; sign again"))]
    KeyId {
        /// 1-based.
        number: usize,
    },
    /// No signature at all.
    #[error("the envelope has no signature")]
    #[diagnostic(code("signature-none"), help("sign the set with `polctl sign`"))]
    None,
    /// Two signatures by one key.
    #[error("the envelope has two signatures by the key {key}")]
    #[diagnostic(code("signature-duplicate"), help("remove one; only distinct signers count"))]
    DuplicateKey {
        /// The key's id.
        key: Digest,
    },
    /// Two signatures by keys of one signer.
    #[error("the envelope has two signatures by keys of the signer `{signer}`")]
    #[diagnostic(code("signer-duplicate"), help("a threshold counts people, not keys; remove one of the signatures"))]
    DuplicateSigner {
        /// As in the trust file.
        signer: String,
    },
    /// A signature by a key that is not pinned.
    #[error("the envelope has a signature by the key {key}, which the trust file does not pin")]
    #[diagnostic(
        code("signature-unknown-key"),
        help(
            "after a rotation pin the new key (`polctl keys pin`); otherwise remove the signature and find out who added it"
        )
    )]
    UnknownKey {
        /// The key's id.
        key: Digest,
    },
    /// A signature does not verify.
    #[error("the signature by `{signer}` (key {key}) does not fit the payload")]
    #[diagnostic(
        code("signature-invalid"),
        help(
            "the payload or the signature was changed, or another key signed; do not use these files, and sign again from a reviewed checkout"
        )
    )]
    Invalid {
        /// As in the trust file.
        signer: String,
        /// The key's id.
        key: Digest,
    },
    /// A signature by a key with another role.
    #[error("the key {key} of `{signer}` has not the role `{role}`")]
    #[diagnostic(code("key-role"), help("sign with a key of that role, or give the key the role in the trust file"))]
    Role {
        /// As in the trust file.
        signer: String,
        /// The key's id.
        key: Digest,
        /// The role that is needed.
        role: &'static str,
    },
    /// A signature by a revoked key.
    #[error("the key {key} is revoked")]
    #[diagnostic(code("key-revoked"), help("sign again with a key that is not revoked"))]
    Revoked {
        /// The key's id.
        key: Digest,
    },
    /// A key whose window has not begun.
    #[error("the key {key} of `{signer}` is valid only from {from}")]
    #[diagnostic(code("key-not-yet-valid"), help("sign with the key in use, or correct the window or the clock"))]
    KeyNotYetValid {
        /// As in the trust file.
        signer: String,
        /// The key's id.
        key: Digest,
        /// Start of the window.
        from: Timestamp,
    },
    /// A key whose window is over.
    #[error("the key {key} of `{signer}` was valid until {until}")]
    #[diagnostic(code("key-expired"), help("sign again with the key that followed it (docs/signing.md, Rotation)"))]
    KeyExpired {
        /// As in the trust file.
        signer: String,
        /// The key's id.
        key: Digest,
        /// End of the window.
        until: Timestamp,
    },
    /// The role has no threshold.
    #[error("the trust file has no threshold for `{role}`, so nothing of that role is accepted")]
    #[diagnostic(
        code("threshold-none"),
        help("say how many distinct signers are needed: `threshold` in the trust file")
    )]
    NoThreshold {
        /// The role.
        role: &'static str,
    },
    /// Too few signers.
    #[error("{found} of {needed} signers signed")]
    #[diagnostic(code("threshold-not-met"), help("another signer adds a signature with `polctl sign --add`"))]
    Threshold {
        /// Distinct signers with a valid signature.
        found: usize,
        /// The threshold.
        needed: usize,
    },
    /// The envelope to which a signature is to be added holds another payload.
    #[error("the envelope holds another payload than the one to be signed: {what} differs")]
    #[diagnostic(
        code("payload-differs"),
        help("sign the same checkout with the same sequence, or make a new envelope without `--add`")
    )]
    OtherPayload {
        /// The first field that differs.
        what: &'static str,
    },
}
