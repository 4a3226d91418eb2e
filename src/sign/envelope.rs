//! The DSSE envelope: parsing, the bytes that are signed, and who signed them.
//!
//! The payload stays the bytes that were signed; it is parsed only after enough signatures
//! over exactly these bytes were verified, and is never written out again from what was
//! parsed. Every signature in an envelope must be good: one that is not says that somebody
//! changed the envelope, whatever the others say.

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;

use super::digest::Digest;
use super::error::{Document, EnvelopeError, SignError};
use super::json::{self, At};
use super::key::{PublicKey, RawSignature};
use super::time::Timestamp;
use super::trust::{Role, Trust};

/// Payload type of a signed policy set (DESIGN 7).
pub const POLICY_SET_TYPE: &str = "application/vnd.polctl.policy-set.v1+json";
/// Payload type of an approval (DESIGN 6).
pub const APPROVAL_TYPE: &str = "application/vnd.polctl.approval.v1+json";
/// Largest envelope that is read, in bytes.
pub const MAX_ENVELOPE_BYTES: usize = 1024 * 1024;
/// Most signatures in one envelope.
pub const MAX_SIGNATURES: usize = 16;

/// The bytes that are signed (DSSE v1, pre-authentication encoding):
/// `DSSEv1 LEN(type) type LEN(payload) payload`, lengths in decimal.
pub fn pae(payload_type: &str, payload: &[u8]) -> Vec<u8> {
    let mut bytes = format!("DSSEv1 {} {payload_type} {} ", payload_type.len(), payload.len()).into_bytes();
    bytes.extend_from_slice(payload);
    bytes
}

/// One signature of an envelope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EnvelopeSignature {
    /// The key that is said to have signed: SHA-256 of the public key.
    pub key: Digest,
    /// The signature over [`pae`].
    pub signature: RawSignature,
}

/// An envelope as it was read, nothing verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Envelope {
    payload_type: String,
    payload: Vec<u8>,
    signatures: Vec<EnvelopeSignature>,
}

/// A signer whose signature over an envelope was verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedBy {
    /// The signer's name in the trust file.
    pub signer: String,
    /// The key's id.
    pub key: Digest,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Written<'a> {
    payload_type: &'a str,
    payload: String,
    signatures: Vec<WrittenSignature>,
}

#[derive(Serialize)]
struct WrittenSignature {
    keyid: Digest,
    sig: String,
}

impl Envelope {
    /// An envelope around `payload`, without signatures.
    pub(super) fn new(payload_type: &str, payload: Vec<u8>) -> Self {
        Envelope { payload_type: payload_type.to_owned(), payload, signatures: Vec::new() }
    }

    /// Reads an envelope.
    ///
    /// # Errors
    ///
    /// [`SignError`] with a code `envelope-…` for what is not the format, `payload-base64`
    /// and `signature-…` for its parts.
    pub fn parse(bytes: &[u8]) -> Result<Self, SignError> {
        let document = Document::Envelope;
        let json = json::parse(document, bytes, MAX_ENVELOPE_BYTES)?;
        let fields = At::root(document, &json).fields("", &["payloadType", "payload", "signatures"])?;
        let payload_type = fields.text("payloadType")?.to_owned();
        let payload = STANDARD.decode(fields.text("payload")?).map_err(|_| EnvelopeError::PayloadBase64)?;
        let mut signatures = Vec::new();
        for (at, (path, item)) in fields.list("signatures", MAX_SIGNATURES)?.into_iter().enumerate() {
            let item = item.fields(&path, &["keyid", "sig"])?;
            let (key, signature) = (item.text("keyid")?, item.text("sig")?);
            signatures.push(read_signature(at + 1, key, signature)?);
        }
        if signatures.is_empty() {
            return Err(EnvelopeError::None.into());
        }
        Ok(Envelope { payload_type, payload, signatures })
    }

    /// The envelope as it is written: JSON with a line end.
    pub fn to_bytes(&self) -> Vec<u8> {
        let signatures = self.signatures.iter();
        let written = Written {
            payload_type: &self.payload_type,
            payload: STANDARD.encode(&self.payload),
            signatures: signatures.map(|s| WrittenSignature { keyid: s.key, sig: s.signature.to_base64() }).collect(),
        };
        to_json(&written)
    }

    /// The payload's bytes. They are worth nothing before [`Envelope::verify`] said so.
    pub fn payload(&self) -> &[u8] {
        &self.payload
    }

    /// The payload type as it stands in the envelope.
    pub fn payload_type(&self) -> &str {
        &self.payload_type
    }

    /// The signatures, not verified.
    pub fn signatures(&self) -> &[EnvelopeSignature] {
        &self.signatures
    }

    /// The bytes that its signatures cover.
    pub fn signed_bytes(&self) -> Vec<u8> {
        pae(&self.payload_type, &self.payload)
    }

    /// Adds a signature behind the others.
    pub(super) fn push(&mut self, signature: EnvelopeSignature) {
        self.signatures.push(signature);
    }

    /// Verifies every signature and the threshold of `role`; returns the signers in the
    /// order of the envelope.
    ///
    /// # Errors
    ///
    /// [`EnvelopeError`]: another payload type, a signature that is not good for any reason,
    /// or fewer distinct signers than the threshold.
    pub fn verify(
        &self,
        expected: &'static str,
        role: Role,
        trust: &Trust,
        now: Timestamp,
    ) -> Result<Vec<SignedBy>, EnvelopeError> {
        let signers = self.verify_each(expected, role, trust, now)?;
        let needed = trust.threshold(role).ok_or(EnvelopeError::NoThreshold { role: role.as_str() })?;
        if signers.len() < needed {
            return Err(EnvelopeError::Threshold { found: signers.len(), needed });
        }
        Ok(signers)
    }

    /// As [`Envelope::verify`], without the threshold: for an envelope that is to get more
    /// signatures.
    pub(super) fn verify_each(
        &self,
        expected: &'static str,
        role: Role,
        trust: &Trust,
        now: Timestamp,
    ) -> Result<Vec<SignedBy>, EnvelopeError> {
        if self.payload_type != expected {
            return Err(EnvelopeError::PayloadType { found: super::error::shown(&self.payload_type), expected });
        }
        let message = self.signed_bytes();
        let mut keys = BTreeSet::new();
        let mut names = BTreeSet::new();
        let mut signers = Vec::new();
        for EnvelopeSignature { key, signature } in &self.signatures {
            if !keys.insert(*key) {
                return Err(EnvelopeError::DuplicateKey { key: *key });
            }
            let pinned = trust.usable(*key, role, now)?;
            if !pinned.public.verifies(&message, signature) {
                return Err(EnvelopeError::Invalid { signer: pinned.signer.clone(), key: *key });
            }
            if !names.insert(&pinned.signer) {
                return Err(EnvelopeError::DuplicateSigner { signer: pinned.signer.clone() });
            }
            signers.push(SignedBy { signer: pinned.signer.clone(), key: *key });
        }
        Ok(signers)
    }

    /// The first signature by `key`, if there is one.
    pub(super) fn signature_of(&self, key: &PublicKey) -> Option<&RawSignature> {
        let id = key.id();
        self.signatures.iter().find(|s| s.key == id).map(|s| &s.signature)
    }
}

fn read_signature(number: usize, key: &str, signature: &str) -> Result<EnvelopeSignature, EnvelopeError> {
    let key = Digest::parse(key).ok_or(EnvelopeError::KeyId { number })?;
    let bytes = STANDARD.decode(signature).map_err(|_| EnvelopeError::SignatureBase64 { number })?;
    let signature =
        RawSignature::from_bytes(&bytes).ok_or(EnvelopeError::SignatureLength { number, length: bytes.len() })?;
    Ok(EnvelopeSignature { key, signature })
}

/// JSON with a line end, indented: envelopes and payloads stand in repositories.
pub(super) fn to_json(value: &impl Serialize) -> Vec<u8> {
    // Types of this module have string keys only, so this cannot fail.
    let mut bytes = serde_json::to_vec_pretty(value).unwrap_or_default();
    bytes.push(b'\n');
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_encoding_is_the_one_of_the_dsse_specification() {
        assert_eq!(
            pae("http://example.com/HelloWorld", b"hello world"),
            b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"
        );
        assert_eq!(pae("", b""), b"DSSEv1 0  0 ");
    }

    #[test]
    fn an_envelope_is_read_as_it_was_written() {
        let mut envelope = Envelope::new(POLICY_SET_TYPE, b"{}".to_vec());
        envelope
            .push(EnvelopeSignature { key: Digest::of(b"k"), signature: RawSignature::from_bytes(&[7; 64]).unwrap() });
        assert_eq!(Envelope::parse(&envelope.to_bytes()).unwrap(), envelope);
    }
}
