//! Vault transit (or that of `OpenBao`): signing, asking whether a signature stands, listing keys.
//!
//! The only place of polctl that speaks HTTP. What the client crate does loosely is closed
//! here: no redirect is followed, no environment variable is read, TLS is always verified and
//! trusts a given authority alone, tokens are trimmed, checked and wiped, and errors repeat
//! neither the server's texts nor what was sent. Answers are matched by status, since texts
//! differ between servers and versions.

mod doctor;
mod errors;
mod session;
mod settings;

pub use doctor::{Check, Standing};
pub use session::{Vault, VaultKey};
pub use settings::{Secret, VaultAuth, VaultSettings};
