//! Every refusal of this module, each with a code that never changes its meaning.
//!
//! Messages are one sentence in lower case; what came from outside stands in backticks and is
//! escaped, since file names and keys of an unverified document may hold anything. No
//! variant holds key material, tokens or file contents.

mod envelope;
mod file;
mod malformed;
mod signer;
mod trust;
mod vault;

pub use envelope::EnvelopeError;
pub use file::{FileError, NameError, WriteError};
pub use malformed::{Document, Malformed, Problem};
pub use signer::{KeyError, SignerError};
pub use trust::{StateError, TrustError, VerifyError};
pub use vault::VaultError;

use miette::Diagnostic;
use thiserror::Error;

/// Text from outside as it may be shown: control characters escaped, not longer than 120
/// characters.
pub(super) fn shown(text: &str) -> String {
    let mut shown: String = text.chars().take(120).flat_map(char::escape_debug).collect();
    if text.chars().nth(120).is_some() {
        shown.push('…');
    }
    shown
}

/// Why signing or verifying was refused.
#[derive(Debug, Error, Diagnostic)]
#[non_exhaustive]
pub enum SignError {
    /// A document is not what its format says.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Malformed(#[from] Malformed),
    /// The envelope's signatures.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Envelope(#[from] EnvelopeError),
    /// A file name in a payload.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Name(#[from] NameError),
    /// What stands in the policy directory.
    #[error(transparent)]
    #[diagnostic(transparent)]
    File(#[from] FileError),
    /// The trust file.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Trust(#[from] TrustError),
    /// What a payload says, held against trust, time and state.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Verify(#[from] VerifyError),
    /// The rollback state.
    #[error(transparent)]
    #[diagnostic(transparent)]
    State(#[from] StateError),
    /// A key.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Key(#[from] KeyError),
    /// A signer.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Signer(#[from] SignerError),
    /// Vault.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Vault(#[from] VaultError),
    /// Writing.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Write(#[from] WriteError),
}

impl SignError {
    /// The stable code, e.g. `signature-invalid`.
    pub fn code_name(&self) -> String {
        Diagnostic::code(self).map_or_else(|| "internal".to_owned(), |code| code.to_string())
    }

    /// What to do about it.
    pub fn help_text(&self) -> Option<String> {
        Diagnostic::help(self).map(|help| help.to_string())
    }
}
