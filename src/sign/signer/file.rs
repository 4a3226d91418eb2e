//! A local ed25519 key in PKCS#8 PEM: for development, and where there is no Vault.
//!
//! The key never leaves this type: it cannot be printed, and its memory is wiped when it is
//! dropped.

use std::path::Path;

use ed25519_dalek::pkcs8::spki::der::pem::LineEnding;
use ed25519_dalek::pkcs8::{DecodePrivateKey as _, EncodePrivateKey as _, KeypairBytes};
use ed25519_dalek::{Signer as _, SigningKey};
use zeroize::Zeroizing;

use crate::sign::error::{SignError, SignerError, WriteError, shown};
use crate::sign::files::{PlainError, read_plain};
use crate::sign::key::{PublicKey, RawSignature};
use crate::sign::produce::{Made, Signer};
use crate::sign::write::{Access, Existing, Steps, write_file};

/// Largest key file that is read, in bytes.
const MAX_KEY_BYTES: usize = 16 * 1024;

/// Signs with a key that was read from a file.
pub struct FileSigner {
    key: SigningKey,
    path: String,
}

impl std::fmt::Debug for FileSigner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FileSigner").field("path", &self.path).finish_non_exhaustive()
    }
}

impl FileSigner {
    /// Reads a key: a regular file with one name that only its owner can read.
    ///
    /// # Errors
    ///
    /// [`SignerError`]; its text never holds what the file holds.
    pub fn open(path: &Path) -> Result<Self, SignerError> {
        let shown = shown(&path.to_string_lossy());
        let (bytes, mode) = read_plain(path, MAX_KEY_BYTES).map_err(|error| match error {
            PlainError::NotRegular => SignerError::NotRegular { path: shown.clone() },
            PlainError::Io(source) => SignerError::Unreadable { path: shown.clone(), source },
        })?;
        let bytes = Zeroizing::new(bytes);
        if mode & 0o077 != 0 {
            return Err(SignerError::Permissions { path: shown });
        }
        if bytes.len() > MAX_KEY_BYTES {
            return Err(SignerError::NotRegular { path: shown });
        }
        let key = std::str::from_utf8(&bytes).ok().and_then(|text| SigningKey::from_pkcs8_pem(text).ok());
        key.map(|key| FileSigner { key, path: shown.clone() }).ok_or(SignerError::Format { path: shown })
    }

    /// Makes a key and writes it to `path`, which must not exist, for its owner alone.
    ///
    /// # Errors
    ///
    /// [`SignError`]: no random bytes, the file exists, or it cannot be written.
    pub fn generate(path: &Path, steps: &mut dyn Steps) -> Result<Self, SignError> {
        let shown = shown(&path.to_string_lossy());
        let mut secret = Zeroizing::new([0; 32]);
        getrandom::fill(secret.as_mut_slice()).map_err(|_| SignerError::Random)?;
        let key = SigningKey::from_bytes(&secret);
        // Without the public key: OpenSSL 3.0 does not read the form that holds it.
        let pair = KeypairBytes { secret_key: *secret, public_key: None };
        let text = pair.to_pkcs8_pem(LineEnding::LF).map_err(|_| SignerError::Format { path: shown.clone() })?;
        match write_file(path, text.as_bytes(), Access::Private, Existing::Keep, steps) {
            Ok(()) => Ok(FileSigner { key, path: shown }),
            Err(WriteError::Target { path }) => Err(SignerError::Exists { path }.into()),
            Err(error) => Err(error.into()),
        }
    }

    /// The public half.
    ///
    /// # Errors
    ///
    /// [`crate::sign::KeyError`]: never for a key that was generated.
    pub fn public_key(&self) -> Result<PublicKey, crate::sign::KeyError> {
        PublicKey::from_bytes(self.key.verifying_key().as_bytes())
    }
}

impl Signer for FileSigner {
    fn sign(&self, message: &[u8]) -> Result<Made, SignError> {
        let signature = self.key.sign(message).to_bytes();
        let by = format!("the key file `{}`", self.path);
        let signature = RawSignature::from_bytes(&signature);
        signature
            .map(|signature| Made { signature, by })
            .ok_or_else(|| SignerError::Format { path: self.path.clone() }.into())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;
    use crate::sign::write::Straight;

    #[test]
    fn a_generated_key_is_private_and_read_again() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("k.pem");
        let made = FileSigner::generate(&path, &mut Straight).unwrap();
        let read = FileSigner::open(&path).unwrap();
        assert_eq!(made.public_key().unwrap(), read.public_key().unwrap());
        assert_eq!(FileSigner::generate(&path, &mut Straight).unwrap_err().code_name(), "key-file-exists");
        let signature = read.sign(b"m").unwrap().signature;
        assert!(made.public_key().unwrap().verifies(b"m", &signature));
        assert!(!made.public_key().unwrap().verifies(b"n", &signature));

        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
        assert!(matches!(FileSigner::open(&path), Err(SignerError::Permissions { .. })));
    }

    #[test]
    fn nothing_prints_a_key() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("k.pem");
        let made = FileSigner::generate(&path, &mut Straight).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        let secret = text.lines().nth(1).unwrap();
        assert!(!format!("{made:?}").contains(secret));
        std::fs::write(&path, format!("{text}garbage")).unwrap();
        std::fs::write(&path, text.replace("PRIVATE", "PUBLIC")).unwrap();
        let error = FileSigner::open(&path).unwrap_err();
        assert!(!format!("{error:?} {error}").contains(secret));
    }

    #[test]
    fn other_files_are_no_keys() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("k.pem");
        assert!(matches!(FileSigner::open(&path), Err(SignerError::Unreadable { .. })));
        std::fs::write(&path, "x".repeat(MAX_KEY_BYTES + 1)).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        assert!(matches!(FileSigner::open(&path), Err(SignerError::NotRegular { .. })));
        std::fs::write(&path, "").unwrap();
        assert!(matches!(FileSigner::open(&path), Err(SignerError::Format { .. })));
        let link = dir.path().join("l");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert!(matches!(FileSigner::open(&link), Err(SignerError::NotRegular { .. })));
    }
}
