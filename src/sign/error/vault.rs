//! Refusals of and about Vault.

use miette::Diagnostic;
use thiserror::Error;

use crate::sign::digest::Digest;

/// What went wrong with Vault. Texts of the server are not repeated: they may hold what was
/// sent.
#[derive(Debug, Error, Diagnostic)]
#[non_exhaustive]
pub enum VaultError {
    /// A setting.
    #[error("{what}")]
    #[diagnostic(code("vault-setting"), help("{help}"))]
    Setting {
        /// What is wrong.
        what: String,
        /// What to do.
        help: String,
    },
    /// No connection.
    #[error("Vault at `{address}` cannot be reached")]
    #[diagnostic(
        code("vault-unreachable"),
        help("check the address (`VAULT_ADDR`) and the network; nothing was written")
    )]
    Unreachable {
        /// The address.
        address: String,
    },
    /// The certificate is not accepted.
    #[error("the certificate of Vault at `{address}` is not signed by a trusted authority, or is for another name")]
    #[diagnostic(
        code("vault-tls"),
        help("give the right authority with `--ca FILE` or `VAULT_CACERT`; verification cannot be switched off")
    )]
    Tls {
        /// The address.
        address: String,
    },
    /// No answer in time.
    #[error("Vault at `{address}` did not answer within {seconds} s")]
    #[diagnostic(code("vault-timeout"), help("try again, or raise `--timeout`; nothing was written"))]
    Timeout {
        /// The address.
        address: String,
        /// The time-out.
        seconds: u64,
    },
    /// A redirect.
    #[error("Vault at `{address}` answered with a redirect (status {status})")]
    #[diagnostic(
        code("vault-redirect"),
        help(
            "a standby sends clients to the active node; give that node's address, since polctl follows no redirect with a token"
        )
    )]
    Redirect {
        /// The address.
        address: String,
        /// 300 to 399.
        status: u16,
    },
    /// Denied.
    #[error("Vault denies {what} (status 403)")]
    #[diagnostic(
        code("vault-denied"),
        help("the token is revoked or expired, or its policy lacks the path; `polctl keys doctor` tells which")
    )]
    Denied {
        /// What was asked.
        what: String,
    },
    /// `AppRole` login refused.
    #[error("Vault refuses the `AppRole` login (status {status})")]
    #[diagnostic(
        code("vault-login"),
        help("the role id is wrong, or the secret id is wrong, spent or expired; make a new secret id")
    )]
    Login {
        /// The status.
        status: u16,
    },
    /// The key is not there.
    #[error("Vault has no key `{key}` at `{mount}` (status {status})")]
    #[diagnostic(
        code("vault-key-missing"),
        help("check `--key` and `--mount`; make it with `vault write -f MOUNT/keys/NAME type=ed25519`")
    )]
    KeyMissing {
        /// The key.
        key: String,
        /// The mount.
        mount: String,
        /// The status.
        status: u16,
    },
    /// Vault refuses to use the key.
    #[error("Vault refuses the request for the key `{key}` at `{mount}` (status {status})")]
    #[diagnostic(
        code("vault-key-refused"),
        help(
            "there is no such key, or it is derived or cannot sign; make it with `vault write -f MOUNT/keys/NAME type=ed25519`, and look with `polctl keys show`"
        )
    )]
    KeyRefused {
        /// The key.
        key: String,
        /// The mount.
        mount: String,
        /// The status.
        status: u16,
    },
    /// The key cannot be used.
    #[error("the Vault key `{key}` {why}")]
    #[diagnostic(code("vault-key-unusable"), help("polctl needs a key of type `ed25519` that is not derived"))]
    KeyUnusable {
        /// The key.
        key: String,
        /// Why.
        why: &'static str,
    },
    /// Sealed, uninitialised, or no active node.
    #[error("Vault at `{address}` is sealed or has no active node (status 503)")]
    #[diagnostic(code("vault-sealed"), help("unseal it, or wait for the leader; nothing was written"))]
    Sealed {
        /// The address.
        address: String,
    },
    /// Too many requests.
    #[error("Vault at `{address}` asks to slow down (status 429)")]
    #[diagnostic(code("vault-busy"), help("try again later; nothing was written"))]
    Busy {
        /// The address.
        address: String,
    },
    /// Over the server's size.
    #[error("Vault refuses a request of this size (status 413)")]
    #[diagnostic(code("vault-too-large"), help("split the policy set"))]
    TooLarge,
    /// Another status.
    #[error("Vault answered {what} with status {status}")]
    #[diagnostic(code("vault-status"), help("its audit log has the reason; nothing was written"))]
    Status {
        /// What was asked.
        what: String,
        /// The status.
        status: u16,
    },
    /// An answer that is not what it should be.
    #[error("Vault's answer to {what} is not what it should be: {why}")]
    #[diagnostic(
        code("vault-answer"),
        help("is the address a Vault or OpenBao, and nothing between rewrites its answers? nothing was written")
    )]
    Answer {
        /// What was asked.
        what: String,
        /// What is wrong.
        why: &'static str,
    },
    /// Vault says that a signature is not its own.
    #[error("Vault says that the signature by the key {key} is not valid")]
    #[diagnostic(
        code("vault-refuses-signature"),
        help("the key was rotated and cut off in Vault, or the envelope is not its work; do not use these files")
    )]
    RefusesSignature {
        /// The key's id.
        key: Digest,
    },
    /// Vault knows none of the keys.
    #[error("none of the envelope's signatures was made by the Vault key `{key}`")]
    #[diagnostic(code("vault-no-signature"), help("give the key that signs this set with `--key`"))]
    NoSignature {
        /// The key's name.
        key: String,
    },
    /// The runtime could not be started.
    #[error("the network client could not be started")]
    #[diagnostic(
        code("vault-client"),
        help("this is a defect or a lack of memory or file handles; nothing was written")
    )]
    Client,
}
