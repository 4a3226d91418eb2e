//! One session with Vault: log in, ask, and leave nothing behind.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reqwest::redirect::Policy;
use vaultrs::api::EndpointMiddleware;
use vaultrs::api::transit::KeyType;
use vaultrs::api::transit::requests::VerifySignedDataRequestBuilder;
use vaultrs::api::transit::responses::ReadKeyData;
use vaultrs::client::{VaultClient, VaultClientSettings};
use vaultrs::error::ClientError;
use zeroize::Zeroize as _;

use super::errors::{Asked, Place, answer};
use super::settings::{VaultAuth, VaultSettings};
use crate::sign::envelope::Envelope;
use crate::sign::error::{SignError, VaultError};
use crate::sign::key::{PublicKey, RawSignature};
use crate::sign::produce::{Made, Signer};
use crate::sign::verify::OnlineCheck;

/// Both Vault and `OpenBao` begin signatures so.
const PREFIX: &str = "vault:v";

/// A session: signs and verifies with one transit key.
pub struct Vault {
    settings: VaultSettings,
    address: String,
    runtime: tokio::runtime::Runtime,
    client: VaultClient,
    /// The token came from a login of ours, so it is ours to revoke.
    own_token: bool,
}

/// One version of a transit key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VaultKey {
    /// The version.
    pub version: u64,
    /// Its public half.
    pub public: PublicKey,
    /// When it was made, as Vault writes it.
    pub created: String,
}

type Answer<'a, T> = Pin<Box<dyn Future<Output = Result<T, ClientError>> + 'a>>;

impl std::fmt::Debug for Vault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Vault").field("address", &self.address).finish_non_exhaustive()
    }
}

impl Vault {
    /// Checks the settings and logs in.
    ///
    /// # Errors
    ///
    /// [`VaultError`]: a setting that is refused before anything is sent, no connection, no
    /// login.
    pub fn open(settings: VaultSettings) -> Result<Self, VaultError> {
        let url = settings.validate()?;
        let runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = { runtime }.enable_all().build().map_err(|_| VaultError::Client)?;
        let http = http_client(&settings, url.scheme() == "https")?;
        let mut address = url.to_string();
        address.truncate(address.trim_end_matches('/').len());
        let client = vault_client(&settings, url, http);
        let mut vault = Vault { settings, address, runtime, client, own_token: false };
        vault.log_in()?;
        Ok(vault)
    }

    fn log_in(&mut self) -> Result<(), VaultError> {
        match self.settings.auth.clone() {
            VaultAuth::Token(token) => token.reveal().clone_into(&mut self.client.middle.token),
            VaultAuth::AppRole { mount, role_id, secret_id } => {
                let mut info = self.ask(Asked::Login, |client| {
                    let (mount, role_id, secret_id) = (mount.clone(), role_id.clone(), secret_id.clone());
                    Box::pin(async move {
                        vaultrs::auth::approle::login(client, &mount, role_id.reveal(), secret_id.reveal()).await
                    })
                })?;
                let usable = !info.client_token.is_empty() && info.client_token.bytes().all(|b| b.is_ascii_graphic());
                if !usable {
                    info.client_token.zeroize();
                    return Err(answer(Asked::Login, "it has no token"));
                }
                self.client.middle.token = std::mem::take(&mut info.client_token);
                self.own_token = true;
            }
        }
        Ok(())
    }

    /// Runs one request.
    pub(super) fn ask<T>(
        &self,
        asked: Asked,
        request: impl for<'a> FnOnce(&'a VaultClient) -> Answer<'a, T>,
    ) -> Result<T, VaultError> {
        let place = Place {
            address: &self.address,
            mount: &self.settings.mount,
            key: &self.settings.key,
            seconds: self.settings.timeout_seconds,
        };
        self.runtime.block_on(request(&self.client)).map_err(|error| place.error(asked, &error))
    }

    pub(super) const fn settings(&self) -> &VaultSettings {
        &self.settings
    }

    /// Every version of the key that Vault still shows, ascending. Versions below
    /// `min_decryption_version` are gone from its answer.
    ///
    /// # Errors
    ///
    /// [`VaultError`]: no such key, not allowed to read it, or a key that polctl cannot use:
    /// another type, or derived (its public key is empty then).
    pub fn keys(&self) -> Result<Vec<VaultKey>, VaultError> {
        let (mount, name) = (self.settings.mount.clone(), self.settings.key.clone());
        let read = self.ask(Asked::ReadKey, |client| {
            Box::pin(async move { vaultrs::transit::key::read(client, &mount, &name).await })
        })?;
        let unusable = |why| VaultError::KeyUnusable { key: self.settings.key.clone(), why };
        if !matches!(read.key_type, KeyType::Ed25519) {
            return Err(unusable("is not of type `ed25519`"));
        }
        if read.derived {
            return Err(unusable("is derived: each context has another key, and none can be pinned"));
        }
        let ReadKeyData::Asymmetric(entries) = read.keys else { return Err(unusable("has no public key")) };
        let mut keys = BTreeMap::new();
        for (version, entry) in entries {
            let version = version.parse().map_err(|_| answer(Asked::ReadKey, "a version is no number"))?;
            let public =
                PublicKey::from_base64(&entry.public_key).map_err(|_| unusable("has no ed25519 public key"))?;
            keys.insert(version, VaultKey { version, public, created: entry.creation_time });
        }
        Ok(keys.into_values().collect())
    }

    /// Asks `transit/verify` about one signature.
    fn stands(&self, key: &VaultKey, message: &[u8], signature: &RawSignature) -> Result<bool, VaultError> {
        let (mount, name) = (self.settings.mount.clone(), self.settings.key.clone());
        let input = STANDARD.encode(message);
        let signature = format!("{PREFIX}{}:{}", key.version, signature.to_base64());
        let answer = self.ask(Asked::Verify, |client| {
            Box::pin(async move {
                let mut options = VerifySignedDataRequestBuilder::default();
                options.signature(signature);
                vaultrs::transit::data::verify(client, &mount, &name, &input, Some(&mut options)).await
            })
        })?;
        Ok(answer.valid)
    }
}

impl Signer for Vault {
    fn sign(&self, message: &[u8]) -> Result<Made, SignError> {
        // Only `input` is sent: other parameters are ignored by one server and refused by
        // the other. An empty input would be signed as the empty message.
        let (mount, name) = (self.settings.mount.clone(), self.settings.key.clone());
        let input = STANDARD.encode(message);
        let answered = self.ask(Asked::Sign, |client| {
            Box::pin(async move { vaultrs::transit::data::sign(client, &mount, &name, &input, None).await })
        })?;
        let (version, signature) = read_signature(&answered.signature)
            .ok_or_else(|| answer(Asked::Sign, "it is not `vault:vN:` and an ed25519 signature in base64"))?;
        Ok(Made { signature, by: format!("the Vault key `{}`, version {version},", self.settings.key) })
    }
}

impl OnlineCheck for Vault {
    /// Each signature by a version of this key that Vault still shows must stand, and there
    /// must be one: raising `min_decryption_version` takes old ones back.
    fn confirm(&self, envelope: &Envelope) -> Result<(), SignError> {
        let message = envelope.signed_bytes();
        let mut asked = false;
        for key in self.keys()? {
            let id = key.public.id();
            let Some(signature) = envelope.signature_of(&key.public) else { continue };
            if !self.stands(&key, &message, signature)? {
                return Err(VaultError::RefusesSignature { key: id }.into());
            }
            asked = true;
        }
        if asked { Ok(()) } else { Err(VaultError::NoSignature { key: self.settings.key.clone() }.into()) }
    }
}

impl Drop for Vault {
    /// A token of our own login ends with the session; when that fails, it ends by its time.
    fn drop(&mut self) {
        if self.own_token {
            drop(self.runtime.block_on(vaultrs::token::revoke_self(&self.client)));
        }
        self.client.middle.token.zeroize();
    }
}

/// Version and signature of `vault:vN:BASE64`.
fn read_signature(text: &str) -> Option<(u64, RawSignature)> {
    let (version, signature) = text.strip_prefix(PREFIX)?.split_once(':')?;
    if !version.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    Some((version.parse().ok()?, RawSignature::from_bytes(&STANDARD.decode(signature).ok()?)?))
}

/// A client that follows no redirect, uses no proxy, waits only so long, and trusts the
/// given authorities alone.
fn http_client(settings: &VaultSettings, encrypted: bool) -> Result<reqwest::Client, VaultError> {
    // Fails when the process has one already, which serves as well.
    drop(rustls::crypto::ring::default_provider().install_default());
    let builder = reqwest::Client::builder()
        .redirect(Policy::none())
        .no_proxy()
        .referer(false)
        .tls_backend_rustls()
        .https_only(encrypted)
        .connect_timeout(settings.timeout())
        .timeout(settings.timeout());
    let builder = match (&settings.authority, encrypted) {
        (Some(pem), _) => builder.tls_certs_only(authorities(pem)?),
        (None, true) => builder,
        // Without TLS the system's authorities need not even be read.
        (None, false) => builder.tls_certs_only(Vec::new()),
    };
    builder.build().map_err(|_| VaultError::Client)
}

fn authorities(pem: &[u8]) -> Result<Vec<reqwest::Certificate>, VaultError> {
    let certificates = reqwest::Certificate::from_pem_bundle(pem).unwrap_or_default();
    if certificates.is_empty() {
        return Err(VaultError::Setting {
            what: "the file of the authority holds no certificate in PEM".into(),
            help: "give the certificate of the authority that signed Vault's".into(),
        });
    }
    Ok(certificates)
}

/// The client crate's type, put together from parts: its own constructor would read the
/// environment and follow redirects.
fn vault_client(settings: &VaultSettings, url: reqwest::Url, http: reqwest::Client) -> VaultClient {
    let middle = EndpointMiddleware {
        token: String::new(),
        version: "v1".into(),
        wrap: None,
        namespace: settings.namespace.clone(),
    };
    VaultClient {
        http: rustify::clients::reqwest::Client::new(url.as_str(), http),
        middle,
        settings: VaultClientSettings {
            address: url,
            ca_certs: Vec::new(),
            identity: None,
            timeout: Some(settings.timeout()),
            token: String::new(),
            verify: true,
            version: 1,
            wrapping: false,
            namespace: settings.namespace.clone(),
            proxy: None,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_have_one_form() {
        let signature = STANDARD.encode([7; 64]);
        assert_eq!(read_signature(&format!("vault:v12:{signature}")).unwrap().0, 12);
        for bad in [
            String::new(),
            signature.clone(),
            format!("vault:v:{signature}"),
            format!("vault:v-1:{signature}"),
            format!("vault:v+1:{signature}"),
            format!("vault:{signature}"),
            format!("bao:v1:{signature}"),
            format!("vault:v1:{signature}\n"),
            format!("vault:v1:{}", STANDARD.encode([7; 63])),
            format!("vault:v1:{}", signature.trim_end_matches('=')),
            format!("vault:v99999999999999999999:{signature}"),
        ] {
            assert!(read_signature(&bad).is_none(), "{bad}");
        }
    }
}
