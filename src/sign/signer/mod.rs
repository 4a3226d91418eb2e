//! Who can sign: a key in a file, or a key in Vault.

mod file;
mod vault;

pub use file::FileSigner;
pub use vault::{Check, Secret, Standing, Vault, VaultAuth, VaultKey, VaultSettings};
