//! `polctl keys`: make, show, pin, drop and rotate keys, and look at a token.

use std::path::{Path, PathBuf};

use clap::{Args as ClapArgs, Subcommand, ValueEnum};

use super::session::{Failure, now};
use super::vault::VaultArgs;
use super::{exit, output};
use crate::sign::{
    Access, Check, Digest, Existing, FileSigner, PinnedKey, PublicKey, Role, SignError, Standing, Straight, Timestamp,
    Trust, VaultKey, load_trust, write_file,
};

/// Arguments of `keys`.
#[derive(Debug, ClapArgs)]
pub struct KeysArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: KeysCommand,
}

/// The commands below `keys`.
#[derive(Debug, Subcommand)]
pub enum KeysCommand {
    /// Make a local ed25519 key (PKCS#8 PEM, for its owner alone); prints the public half
    Generate {
        /// Where it is written; never overwritten
        file: PathBuf,
    },
    /// Show the public half of a key file, or of all versions of a Vault key
    Show(ShowArgs),
    /// Pin a public key in a trust file, or start one
    Pin(PinArgs),
    /// Take a key out of a trust file
    Drop {
        /// The trust file
        #[arg(long, value_name = "FILE")]
        trust: PathBuf,
        /// The key's id, as `polctl keys show` prints it
        key: String,
    },
    /// Say what to do next to replace a Vault key by its next version
    Rotate(RotateArgs),
    /// Look at a Vault token: can it sign, and nothing more?
    Doctor(RotateArgs),
}

/// Arguments of `keys show`.
#[derive(Debug, ClapArgs)]
pub struct ShowArgs {
    /// A key file; without it, Vault is asked
    #[arg(long, value_name = "FILE")]
    pub key_file: Option<PathBuf>,
    /// Vault.
    #[command(flatten)]
    pub vault: VaultArgs,
}

/// Arguments of `keys pin`.
#[derive(Debug, ClapArgs)]
pub struct PinArgs {
    /// The trust file; made when it does not exist and --set is given
    #[arg(long, value_name = "FILE")]
    pub trust: PathBuf,
    /// The policy set of a new trust file
    #[arg(long, value_name = "NAME")]
    pub set: Option<String>,
    /// Who holds the key; the keys of one signer count once
    #[arg(long, value_name = "NAME")]
    pub signer: String,
    /// The public key, as `polctl keys show` prints it
    #[arg(long, value_name = "BASE64")]
    pub public: String,
    /// What it may sign (repeatable)
    #[arg(long = "role", value_enum, default_value = "release")]
    pub roles: Vec<RoleName>,
    /// Start of its validity, e.g. 2026-03-01T00:00:00Z
    #[arg(long, value_name = "TIME")]
    pub not_before: Option<String>,
    /// End of its validity
    #[arg(long, value_name = "TIME")]
    pub not_after: Option<String>,
}

/// Arguments of `keys rotate` and `keys doctor`.
#[derive(Debug, ClapArgs)]
pub struct RotateArgs {
    /// The trust file
    #[arg(long, value_name = "FILE")]
    pub trust: Option<PathBuf>,
    /// Vault.
    #[command(flatten)]
    pub vault: VaultArgs,
}

/// What a key may sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum RoleName {
    /// Policy sets
    Release,
    /// Approvals
    Approve,
}

pub(super) fn run(args: &KeysArgs) -> Result<u8, Failure> {
    let (text, code) = match &args.command {
        KeysCommand::Generate { file } => {
            let signer = FileSigner::generate(file, &mut Straight)?;
            (shown(&signer.public_key().map_err(SignError::from)?), exit::OK)
        }
        KeysCommand::Show(args) => (show(args)?, exit::OK),
        KeysCommand::Pin(args) => (pin(args)?, exit::OK),
        KeysCommand::Drop { trust, key } => (unpin(trust, key)?, exit::OK),
        KeysCommand::Rotate(args) => (rotate(args)?, exit::OK),
        KeysCommand::Doctor(args) => doctor(args)?,
    };
    Ok(output::print(&text).map_or_else(|failed| failed.max(code), |()| code))
}

fn shown(key: &PublicKey) -> String {
    format!("public {}\nkey id {}\n", key.to_base64(), key.id())
}

fn show(args: &ShowArgs) -> Result<String, Failure> {
    if let Some(file) = &args.key_file {
        let signer = FileSigner::open(file).map_err(SignError::from)?;
        return Ok(shown(&signer.public_key().map_err(SignError::from)?));
    }
    let keys = args.vault.open()?.keys().map_err(SignError::from)?;
    let each = |key: &VaultKey| format!("version {} of {}\n{}", key.version, key.created, shown(&key.public));
    Ok(keys.iter().map(each).collect())
}

fn time(text: Option<&String>, option: &str) -> Result<Option<Timestamp>, Failure> {
    let Some(text) = text else { return Ok(None) };
    Timestamp::parse(text)
        .map(Some)
        .ok_or_else(|| Failure::usage(format!("`{option}` is no time"), "write it like `2026-03-01T00:00:00Z` (UTC)"))
}

fn pin(args: &PinArgs) -> Result<String, Failure> {
    let role = |name: &RoleName| match name {
        RoleName::Release => Role::Release,
        RoleName::Approve => Role::Approve,
    };
    let key = PinnedKey {
        signer: args.signer.clone(),
        public: PublicKey::from_base64(&args.public).map_err(SignError::from)?,
        roles: args.roles.iter().map(role).collect(),
        not_before: time(args.not_before.as_ref(), "--not-before")?,
        not_after: time(args.not_after.as_ref(), "--not-after")?,
    };
    let id = key.public.id();
    let (trust, existing) = match (&args.set, args.trust.exists()) {
        (Some(set), false) => (Trust::first(set, key)?, Existing::Keep),
        (None, false) => {
            return Err(Failure::usage("the trust file does not exist", "give `--set NAME` to start one"));
        }
        (Some(set), true) => {
            let trust = load_trust(&args.trust, None)?;
            if trust.set() != set {
                return Err(Failure::usage(
                    format!("the trust file is for the set `{}`", trust.set()),
                    "each policy set has a trust file of its own",
                ));
            }
            (trust.with_key(key)?, Existing::Replace)
        }
        (None, true) => (load_trust(&args.trust, None)?.with_key(key)?, Existing::Replace),
    };
    write_trust(&args.trust, &trust, existing)?;
    Ok(format!("polctl keys: pinned key {id} for {} in `{}`\n", args.signer, args.trust.display()))
}

fn unpin(path: &Path, key: &str) -> Result<String, Failure> {
    let id = Digest::parse(key)
        .ok_or_else(|| Failure::usage("this is no key id", "it has 64 lower-case hexadecimal digits"))?;
    write_trust(path, &load_trust(path, None)?.without_key(id)?, Existing::Replace)?;
    Ok(format!("polctl keys: dropped key {id} from `{}`\n", path.display()))
}

/// Trust files are read by daemons of other users and written by one; the mask of this
/// process must not make them writable for others.
fn write_trust(path: &Path, trust: &Trust, existing: Existing) -> Result<(), Failure> {
    write_file(path, &trust.to_bytes(), Access::Owned, existing, &mut Straight).map_err(SignError::from)?;
    Ok(())
}

fn rotate(args: &RotateArgs) -> Result<String, Failure> {
    let path = args
        .trust
        .as_ref()
        .ok_or_else(|| Failure::usage("the plan depends on what is pinned", "give `--trust FILE`"))?;
    let trust = load_trust(path, None)?;
    let keys = args.vault.open()?.keys().map_err(SignError::from)?;
    Ok(plan(&trust, &keys, args, now()?))
}

/// The next step of: pin N and N+1, re-sign, drop N.
fn plan(trust: &Trust, keys: &[VaultKey], args: &RotateArgs, now: Timestamp) -> String {
    let name = args.vault.vault_key.as_deref().unwrap_or("KEY");
    let mount = &args.vault.vault_mount;
    let file = args.trust.as_deref().unwrap_or(Path::new("FILE")).display();
    let pinned = |key: &&VaultKey| trust.usable(key.public.id(), Role::Release, now).is_ok();
    let Some(newest) = keys.last() else { return "Vault shows no version of the key\n".into() };
    let old: Vec<&VaultKey> = keys.iter().filter(pinned).filter(|key| key.version != newest.version).collect();
    let is_pinned = pinned(&newest);
    let mut text = String::new();
    for key in keys {
        let state = if pinned(&key) { "pinned" } else { "not pinned" };
        text += &format!("version {} (key {}): {state}\n", key.version, key.public.id());
    }
    text += &match (is_pinned, old.as_slice()) {
        (false, _) => format!(
            "next: pin version {0} beside the old one, and bring the trust file to every host *before* the first signature\n  polctl keys pin --trust {file} --signer NAME --public {1}\nVault signs with version {0} already; until the hosts pin it, they refuse what is signed now\n",
            newest.version,
            newest.public.to_base64()
        ),
        (true, []) => format!(
            "next: nothing is left to do; to begin a rotation, make version {}\n  vault write -f {mount}/keys/{name}/rotate\nand run this again\n",
            newest.version + 1
        ),
        (true, old) => {
            let drops: String =
                old.iter().map(|key| format!("  polctl keys drop --trust {file} {}\n", key.public.id())).collect();
            format!(
                "next: sign every set again (`polctl sign --signer vault --vault-key {name} …`), bring it to every host, then drop what is old\n{drops}  vault write {mount}/keys/{name}/config min_decryption_version={0} min_encryption_version={0}\n",
                newest.version
            )
        }
    };
    text
}

fn doctor(args: &RotateArgs) -> Result<(String, u8), Failure> {
    let trust = args.trust.as_ref().map(|path| load_trust(path, None)).transpose()?;
    let checks = args.vault.open()?.doctor(trust.as_ref());
    let each = |check: &Check| {
        let word = match check.standing {
            Standing::Good => "good ",
            Standing::Loose => "loose",
            Standing::Bad => "bad  ",
        };
        let help = if check.help.is_empty() { String::new() } else { format!("       help: {}\n", check.help) };
        format!("{word}  {}\n{help}", check.message)
    };
    let text = checks.iter().map(each).collect();
    let fine = checks.iter().all(|check| check.standing == Standing::Good);
    Ok((text, if fine { exit::OK } else { exit::FINDINGS }))
}
