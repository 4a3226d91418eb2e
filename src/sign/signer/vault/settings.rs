//! What the Vault signer is told, validated before anything is sent.

use core::time::Duration;

use reqwest::Url;
use zeroize::Zeroizing;

use crate::sign::error::{VaultError, shown};

/// Longest token or secret id, in bytes; signed tokens are long.
const MAX_SECRET_BYTES: usize = 16 * 1024;
const MAX_TIMEOUT_SECONDS: u64 = 600;

/// A token or secret id: never printed, wiped when it is dropped.
#[derive(Clone)]
pub struct Secret(Zeroizing<String>);

impl Secret {
    /// Takes a secret as it stands in a file or variable; white space around it is dropped.
    ///
    /// # Errors
    ///
    /// [`VaultError::Setting`] when nothing is left, or when it holds what no token has (a
    /// line end inside, say). The text is not in the message. `what` names the setting.
    pub fn new(text: &Zeroizing<String>, what: &str) -> Result<Self, VaultError> {
        let trimmed = text.trim();
        if trimmed.is_empty() {
            return Err(VaultError::Setting {
                what: format!("{what} is empty"),
                help: "a variable or file is probably not set; give the token, or use `AppRole`".into(),
            });
        }
        if trimmed.len() > MAX_SECRET_BYTES || !trimmed.bytes().all(|b| b.is_ascii_graphic()) {
            return Err(VaultError::Setting {
                what: format!("{what} has characters that no token has, or is too long"),
                help: "give the token alone, on one line".into(),
            });
        }
        Ok(Secret(Zeroizing::new(trimmed.to_owned())))
    }

    pub(super) fn reveal(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// How polctl logs in.
#[derive(Clone, Debug)]
pub enum VaultAuth {
    /// With a token.
    Token(Secret),
    /// With `AppRole`; the token it gives is revoked when the session ends.
    AppRole {
        /// Where `AppRole` is mounted, e.g. `approle`.
        mount: String,
        /// The role id.
        role_id: Secret,
        /// The secret id.
        secret_id: Secret,
    },
}

/// Where Vault is, which key to use, and how to log in.
#[derive(Clone, Debug)]
pub struct VaultSettings {
    /// `https://host:port`; `http` only for loopback addresses.
    pub address: String,
    /// Namespace, if there are any.
    pub namespace: Option<String>,
    /// Where transit is mounted, e.g. `transit`.
    pub mount: String,
    /// The key's name.
    pub key: String,
    /// How to log in.
    pub auth: VaultAuth,
    /// Certificates (PEM) of the authorities that are trusted, and no others; `None`: those
    /// of the system.
    pub authority: Option<Vec<u8>>,
    /// For each request as a whole, in seconds.
    pub timeout_seconds: u64,
}

impl VaultSettings {
    /// Checks everything that does not need the network.
    pub(super) fn validate(&self) -> Result<Url, VaultError> {
        name(&self.mount, "the transit mount", true)?;
        name(&self.key, "the name of the key", false)?;
        if let Some(namespace) = &self.namespace {
            name(namespace, "the namespace", true)?;
        }
        if let VaultAuth::AppRole { mount, .. } = &self.auth {
            name(mount, "the `AppRole` mount", true)?;
        }
        if self.timeout_seconds == 0 || self.timeout_seconds > MAX_TIMEOUT_SECONDS {
            return Err(VaultError::Setting {
                what: "the time-out is not between 1 and 600 seconds".into(),
                help: "10 is a good value".into(),
            });
        }
        address(&self.address)
    }

    pub(super) const fn timeout(&self) -> Duration {
        Duration::from_secs(self.timeout_seconds)
    }
}

/// Names become part of a URL or a header, so they are of harmless characters only.
fn name(text: &str, what: &str, nested: bool) -> Result<(), VaultError> {
    let good = |b: u8| b.is_ascii_alphanumeric() || b"._-".contains(&b) || (nested && b == b'/');
    let parts = text.split('/').all(|part| !part.is_empty() && part != "." && part != "..");
    if text.is_empty() || text.len() > 256 || !text.bytes().all(good) || !parts {
        return Err(VaultError::Setting {
            what: format!("{what} is not a name: `{}`", shown(text)),
            help: "letters, digits, `.`, `_`, `-`, and `/` in mounts".into(),
        });
    }
    Ok(())
}

/// `https`, or a loopback address; nothing but scheme, host and port.
fn address(text: &str) -> Result<Url, VaultError> {
    // What was typed is not repeated: it may hold a password.
    let refused = |what: &str, help: &str| Err(VaultError::Setting { what: what.into(), help: help.into() });
    let form = "give it as `https://vault.example.com:8200`";
    let Ok(url) = Url::parse(text.trim()) else { return refused("the address of Vault is not a URL", form) };
    if !url.username().is_empty() || url.password().is_some() {
        return refused("the address of Vault has a user name or password in it", form);
    }
    if !matches!(url.path(), "" | "/") || url.query().is_some() || url.fragment().is_some() {
        return refused("the address of Vault has a path, query or fragment", form);
    }
    let loopback = match url.host_str().map(|host| host.trim_matches(['[', ']'])) {
        Some("localhost") => true,
        Some(host) => host.parse::<core::net::IpAddr>().is_ok_and(|ip| ip.is_loopback()),
        None => return refused("the address of Vault has no host", form),
    };
    match url.scheme() {
        "https" => Ok(url),
        "http" if loopback => Ok(url),
        "http" => refused(
            "the address of Vault is not encrypted (`http`)",
            "a token must not travel in the clear: use `https`; `http` is for loopback addresses only",
        ),
        _ => refused("the address of Vault is neither `https` nor `http`", form),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret(text: &str) -> Result<Secret, VaultError> {
        Secret::new(&Zeroizing::new(text.to_owned()), "the token")
    }

    #[test]
    fn secrets_are_trimmed_and_not_printed() {
        let token = secret(" hvs.abc\r\n").unwrap();
        assert_eq!(token.reveal(), "hvs.abc");
        assert_eq!(format!("{token:?}"), "Secret(..)");
        for bad in ["", " \n", "hvs.a\nb", "hvs.é", "hvs.a b"] {
            let error = secret(bad).unwrap_err();
            assert!(!error.to_string().contains("hvs"), "{error}");
        }
    }

    #[test]
    fn addresses_are_encrypted_or_loopback() {
        for good in [
            "https://vault.example.com",
            "https://vault.example.com:8200/",
            "http://127.0.0.1:8200",
            "http://[::1]:8200",
            "http://localhost:8200",
            "https://192.0.2.7",
        ] {
            assert!(address(good).is_ok(), "{good}");
        }
        for bad in [
            "",
            "vault.example.com:8200",
            "http://vault.example.com",
            "http://192.0.2.7",
            "http://127.0.0.1.example.com",
            "http://localhost.example.com",
            "https://user:pw@vault.example.com",
            "https://vault.example.com/v1/",
            "https://vault.example.com/?x",
            "ftp://127.0.0.1",
            "unix:///run/vault",
        ] {
            let error = address(bad).unwrap_err();
            assert!(!error.to_string().contains("pw"), "{error}");
        }
    }

    #[test]
    fn names_are_harmless_in_a_url() {
        for good in ["transit", "team/transit", "release-1.2_x"] {
            assert!(name(good, "x", true).is_ok(), "{good}");
        }
        for bad in ["", "/x", "x/", "a//b", "../sys", "a/../b", "a?b", "a b", "a%2fb", "é", "a\n"] {
            assert!(name(bad, "x", true).is_err(), "{bad}");
        }
        assert!(name("a/b", "x", false).is_err());
    }
}
