//! Arguments and variables of the signers, and the signer that they mean.
//!
//! Secrets come from files or variables, never from arguments: those can be read by every
//! process of the host.

use std::path::{Path, PathBuf};

use clap::{Args as ClapArgs, ValueEnum};
use zeroize::Zeroizing;

use super::session::{Failure, variable};
use crate::sign::{FileSigner, Secret, SignError, Signer, Vault, VaultAuth, VaultSettings};

/// Largest file with a secret or an authority, in bytes.
const MAX_INPUT_BYTES: u64 = 256 * 1024;

/// Which signer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SignerKind {
    /// A local ed25519 key in PKCS#8 PEM
    File,
    /// A transit key in Vault or `OpenBao`
    Vault,
}

/// The signer.
#[derive(Debug, ClapArgs)]
pub struct SignerArgs {
    /// Who signs
    #[arg(long, value_enum, default_value_t = SignerKind::File)]
    pub signer: SignerKind,
    /// The key file of the signer `file` (made with `polctl keys generate`)
    #[arg(long, value_name = "FILE")]
    pub key_file: Option<PathBuf>,
    /// Vault.
    #[command(flatten)]
    pub vault: VaultArgs,
}

/// Where Vault is and how to log in. A token is read from --token-file or `VAULT_TOKEN`.
#[derive(Debug, ClapArgs)]
#[command(next_help_heading = "Vault")]
pub struct VaultArgs {
    /// Address, `https://host:port` [default: the variable `VAULT_ADDR`]
    #[arg(long, value_name = "URL")]
    pub vault_addr: Option<String>,
    /// Namespace [default: the variable `VAULT_NAMESPACE`]
    #[arg(long, value_name = "NAME")]
    pub vault_namespace: Option<String>,
    /// Where transit is mounted
    #[arg(long, value_name = "NAME", default_value = "transit")]
    pub vault_mount: String,
    /// Name of the transit key
    #[arg(long, value_name = "NAME")]
    pub vault_key: Option<String>,
    /// File with the token [default: the variable `VAULT_TOKEN`]
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// Log in with `AppRole`: the role id [default: the variable `POLCTL_VAULT_ROLE_ID`]
    #[arg(long, value_name = "ID")]
    pub role_id: Option<String>,
    /// File with the secret id of the role [default: the variable `POLCTL_VAULT_SECRET_ID`]
    #[arg(long, value_name = "FILE")]
    pub secret_id_file: Option<PathBuf>,
    /// Where `AppRole` is mounted
    #[arg(long, value_name = "NAME", default_value = "approle")]
    pub approle_mount: String,
    /// Certificates (PEM) of the authorities to trust, and no others [default: the variable
    /// `VAULT_CACERT`, else those of the system]
    #[arg(long, value_name = "FILE")]
    pub ca: Option<PathBuf>,
    /// Time-out of each request in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 10)]
    pub timeout: u64,
}

impl SignerArgs {
    /// The signer.
    pub(super) fn open(&self) -> Result<Box<dyn Signer>, Failure> {
        match (self.signer, &self.key_file) {
            (SignerKind::Vault, None) => Ok(Box::new(self.vault.open()?)),
            (SignerKind::Vault, Some(_)) => {
                Err(Failure::usage("`--key-file` is for the signer `file`", "give one signer"))
            }
            (SignerKind::File, Some(path)) => Ok(Box::new(FileSigner::open(path).map_err(SignError::from)?)),
            (SignerKind::File, None) => Err(Failure::usage(
                "there is no key to sign with",
                "give `--key-file FILE`, or `--signer vault` with `--vault-key NAME`",
            )),
        }
    }
}

impl VaultArgs {
    /// A session with Vault.
    pub(super) fn open(&self) -> Result<Vault, Failure> {
        Ok(Vault::open(self.settings()?).map_err(SignError::from)?)
    }

    fn settings(&self) -> Result<VaultSettings, Failure> {
        let address = or_variable(self.vault_addr.as_ref(), "VAULT_ADDR")?;
        let address = address.ok_or_else(|| {
            Failure::usage("the address of Vault is not known", "give `--vault-addr URL` or set `VAULT_ADDR`")
        })?;
        let key = self
            .vault_key
            .clone()
            .ok_or_else(|| Failure::usage("the name of the transit key is not known", "give `--vault-key NAME`"))?;
        let authority =
            or_variable(self.ca.as_ref().map(|p| p.to_string_lossy().into_owned()).as_ref(), "VAULT_CACERT")?;
        Ok(VaultSettings {
            address,
            namespace: or_variable(self.vault_namespace.as_ref(), "VAULT_NAMESPACE")?,
            mount: self.vault_mount.clone(),
            key,
            auth: self.auth()?,
            authority: authority.map(|path| read(Path::new(&path)).map(|text| text.as_bytes().to_vec())).transpose()?,
            timeout_seconds: self.timeout,
        })
    }

    fn auth(&self) -> Result<VaultAuth, Failure> {
        let role_id = or_variable(self.role_id.as_ref(), "POLCTL_VAULT_ROLE_ID")?;
        let Some(role_id) = role_id else {
            if self.secret_id_file.is_some() {
                return Err(Failure::usage("a secret id without a role id", "give `--role-id ID`"));
            }
            let token = secret(self.token_file.as_deref(), "VAULT_TOKEN", "the token", "`--token-file FILE`")?;
            return Ok(VaultAuth::Token(token));
        };
        if self.token_file.is_some() {
            return Err(Failure::usage("a token and a role id", "give one way to log in"));
        }
        let secret_id = secret(
            self.secret_id_file.as_deref(),
            "POLCTL_VAULT_SECRET_ID",
            "the secret id",
            "`--secret-id-file FILE`",
        )?;
        let role_id = Secret::new(&Zeroizing::new(role_id), "the role id").map_err(SignError::from)?;
        Ok(VaultAuth::AppRole { mount: self.approle_mount.clone(), role_id, secret_id })
    }
}

fn or_variable(given: Option<&String>, name: &str) -> Result<Option<String>, Failure> {
    match given {
        Some(given) => Ok(Some(given.clone())),
        None => variable(name),
    }
}

fn secret(file: Option<&Path>, name: &str, what: &str, option: &str) -> Result<Secret, Failure> {
    let text = match file {
        Some(path) => Some(read(path)?),
        None => variable(name)?.map(Zeroizing::new),
    };
    let text =
        text.ok_or_else(|| Failure::usage(format!("{what} is not known"), format!("give {option} or set `{name}`")))?;
    Ok(Secret::new(&text, what).map_err(SignError::from)?)
}

/// A small text file, wiped from memory when it is dropped.
fn read(path: &Path) -> Result<Zeroizing<String>, Failure> {
    use std::io::Read as _;
    let failed = |source| Failure::Read { what: format!("`{}`", path.display()), source };
    let file = std::fs::File::open(path).map_err(failed)?;
    let length = file.metadata().map_or(0, |meta| meta.len()).min(MAX_INPUT_BYTES);
    let mut text = Zeroizing::new(String::with_capacity(usize::try_from(length).unwrap_or(0) + 1));
    file.take(MAX_INPUT_BYTES + 1).read_to_string(&mut text).map_err(failed)?;
    if text.len() as u64 > MAX_INPUT_BYTES {
        return Err(failed(std::io::Error::other("too large")));
    }
    Ok(text)
}
