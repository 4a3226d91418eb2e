//! Refusals about keys and signers.

use miette::Diagnostic;
use thiserror::Error;

/// What is wrong with a key.
#[derive(Debug, Error, Diagnostic)]
#[non_exhaustive]
pub enum KeyError {
    /// No key.
    #[error("this is no ed25519 public key")]
    #[diagnostic(code("key-invalid"), help("a key is 32 bytes in standard base64"))]
    NoKey,
    /// A weak one.
    #[error("this is a key under which signatures prove nothing (a weak point)")]
    #[diagnostic(code("key-weak"), help("such a key is never made by accident; find out where it comes from"))]
    Weak,
}

/// Why a signer did not sign.
#[derive(Debug, Error, Diagnostic)]
#[non_exhaustive]
pub enum SignerError {
    /// The key file cannot be read.
    #[error("the key file `{path}` cannot be read")]
    #[diagnostic(code("key-file-unreadable"), help("make one with `polctl keys generate`, or check the path"))]
    Unreadable {
        /// As given.
        path: String,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// Others can read it.
    #[error("the key file `{path}` can be read or written by others")]
    #[diagnostic(code("key-file-permissions"), help("`chmod 600` it; if others had access, rotate the key"))]
    Permissions {
        /// As given.
        path: String,
    },
    /// It is no regular file, or too large.
    #[error("the key file `{path}` is not a regular file of at most 16 KiB")]
    #[diagnostic(code("key-file-not-regular"), help("give the file itself, not a link to it"))]
    NotRegular {
        /// As given.
        path: String,
    },
    /// It holds no ed25519 key in PKCS#8.
    #[error("the key file `{path}` holds no ed25519 private key in PKCS#8 PEM")]
    #[diagnostic(
        code("key-file-format"),
        help(
            "make one with `polctl keys generate` or `openssl genpkey -algorithm ed25519`; encrypted keys and other kinds are not read"
        )
    )]
    Format {
        /// As given.
        path: String,
    },
    /// The file to generate exists.
    #[error("`{path}` exists")]
    #[diagnostic(code("key-file-exists"), help("keys are never overwritten; give another name"))]
    Exists {
        /// As given.
        path: String,
    },
    /// The system gave no random bytes.
    #[error("the system gave no random bytes")]
    #[diagnostic(code("key-random"), help("try again; a key is never made from less"))]
    Random,
    /// The signature does not fit a pinned key.
    #[error("{signer} signed with a key that the trust file does not pin for `{role}` at this time")]
    #[diagnostic(
        code("signature-not-pinned"),
        help(
            "pin its public key (`polctl keys show`, `polctl keys pin`) after you made sure whose it is; nothing was written"
        )
    )]
    NotPinned {
        /// The signer, e.g. "Vault key `release` version 2".
        signer: String,
        /// The role.
        role: &'static str,
    },
    /// Nothing lets this set be signed.
    #[error("the set cannot be signed: {message}")]
    #[diagnostic(code("sign-refused"), help("{help}"))]
    Refused {
        /// Why.
        message: String,
        /// What to do.
        help: String,
    },
}
