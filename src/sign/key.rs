//! Ed25519 public keys and signatures, checked before they are used.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ed25519_dalek::{Signature, VerifyingKey};

use super::digest::Digest;
use super::error::KeyError;

/// An ed25519 public key with which exactly one private key belongs together.
///
/// Refused are bytes that are no point of the curve, that spell a point in another than its
/// own way, and points outside the prime-order group: under those, signatures exist that
/// nobody made, or that fit several messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PublicKey(VerifyingKey);

impl PublicKey {
    /// The key with these 32 bytes (RFC 8032, 5.1.2).
    ///
    /// # Errors
    ///
    /// [`KeyError::NoKey`] for bytes that are no key, [`KeyError::Weak`] for a key under
    /// which signatures prove nothing.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, KeyError> {
        let bytes: &[u8; 32] = bytes.try_into().map_err(|_| KeyError::NoKey)?;
        let key = VerifyingKey::from_bytes(bytes).map_err(|_| KeyError::NoKey)?;
        let point = key.to_edwards();
        if key.is_weak() || !point.is_torsion_free() || point.compress().as_bytes() != bytes {
            return Err(KeyError::Weak);
        }
        Ok(PublicKey(key))
    }

    /// The key written as standard base64 of its 32 bytes, as Vault and trust files write it.
    ///
    /// # Errors
    ///
    /// As [`PublicKey::from_bytes`].
    pub fn from_base64(text: &str) -> Result<Self, KeyError> {
        PublicKey::from_bytes(&STANDARD.decode(text).map_err(|_| KeyError::NoKey)?)
    }

    /// Standard base64 of the 32 bytes.
    pub fn to_base64(&self) -> String {
        STANDARD.encode(self.0.as_bytes())
    }

    /// The key's id: SHA-256 of its 32 bytes. It stands as `keyid` in envelopes.
    pub fn id(&self) -> Digest {
        Digest::of(self.0.as_bytes())
    }

    /// Whether `signature` over `message` was made with this key's private half; small-order
    /// points and signatures that can be rewritten do not pass (`verify_strict`).
    pub fn verifies(&self, message: &[u8], signature: &RawSignature) -> bool {
        self.0.verify_strict(message, &Signature::from_bytes(&signature.0)).is_ok()
    }
}

/// The 64 bytes of an ed25519 signature, not yet verified.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct RawSignature([u8; 64]);

impl RawSignature {
    /// The signature with these bytes; `None` unless they are 64.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        Some(RawSignature(bytes.try_into().ok()?))
    }

    /// The 64 bytes.
    pub const fn as_bytes(&self) -> &[u8; 64] {
        &self.0
    }

    /// Standard base64 of the 64 bytes.
    pub fn to_base64(&self) -> String {
        STANDARD.encode(self.0)
    }
}

impl std::fmt::Debug for RawSignature {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("RawSignature(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(text: &str) -> Vec<u8> {
        let digit = |byte: &u8| char::from(*byte).to_digit(16).unwrap();
        let pair = |pair: &[u8]| u8::try_from(digit(&pair[0]) << 4 | digit(&pair[1])).unwrap();
        text.as_bytes().chunks(2).map(pair).collect()
    }

    #[test]
    fn points_of_small_order_and_other_spellings_are_refused() {
        // The eight points of small order, and encodings beyond the prime.
        for bad in [
            "0100000000000000000000000000000000000000000000000000000000000000",
            "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
            "0000000000000000000000000000000000000000000000000000000000000080",
            "0000000000000000000000000000000000000000000000000000000000000000",
            "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
            "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa",
            "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
            "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85",
            "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
            "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
        ] {
            assert!(matches!(PublicKey::from_bytes(&hex(bad)), Err(KeyError::Weak | KeyError::NoKey)), "{bad}");
        }
        // RFC 8032, 7.1, test 1.
        let good = hex("d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a");
        let key = PublicKey::from_bytes(&good).unwrap();
        assert_eq!(PublicKey::from_base64(&key.to_base64()).unwrap(), key);
        assert!(matches!(PublicKey::from_bytes(&good[1..]), Err(KeyError::NoKey)));
    }

    #[test]
    fn a_point_has_one_spelling() {
        // Coordinates from the prime on, with either sign: the same points as 0 to 18.
        let mut points = 0;
        for low in 0xed..=0xff_u8 {
            for high in [0x7f, 0xff] {
                let mut bytes = [0xff; 32];
                (bytes[0], bytes[31]) = (low, high);
                points += u32::from(VerifyingKey::from_bytes(&bytes).is_ok());
                assert!(PublicKey::from_bytes(&bytes).is_err(), "{bytes:?}");
            }
        }
        assert!(points > 0, "no such spelling is a point");
    }

    #[test]
    fn a_key_with_a_torsion_part_is_refused() {
        let good = hex("d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a");
        let torsion = hex("26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05");
        let point = |bytes: &[u8]| VerifyingKey::from_bytes(bytes.try_into().unwrap()).unwrap().to_edwards();
        let mixed = (point(&good) + point(&torsion)).compress();
        assert!(matches!(PublicKey::from_bytes(mixed.as_bytes()), Err(KeyError::Weak)));
    }
}
