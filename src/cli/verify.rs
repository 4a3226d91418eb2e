//! `polctl verify`: the verified bytes, or a refusal.

use std::path::{Path, PathBuf};

use base64::Engine as _;
use clap::{Args as ClapArgs, ValueEnum};
use serde::Serialize;

use super::envelope::envelope_at;
use super::gate::{CompiledFiles, Gate};
use super::session::{Failure, now};
use super::vault::VaultArgs;
use super::{exit, output};
use crate::sign::{
    Admission, Digest, Enforcement, EnvelopeAt, FileSet, OnlineCheck, PolicyDir, PolicySet, Request, Rollback,
    SignError, Skip, Verified, verify,
};

/// Arguments of `verify`.
#[derive(Debug, ClapArgs)]
pub struct VerifyArgs {
    /// The policy directory
    #[arg(long, short = 'C', default_value = ".", value_name = "DIR")]
    pub dir: PathBuf,
    /// The trust file with the pinned keys; not in the policy directory
    #[arg(long, value_name = "FILE")]
    pub trust: PathBuf,
    /// The envelope: a name in the policy directory, or a path (with a leading `/` or `./`)
    /// [default: `signing.envelope` in polctl.yaml, or polctl.sig.json]
    #[arg(long, value_name = "NAME|PATH")]
    pub envelope: Option<String>,
    /// The state file that remembers the highest sequence seen; not in the policy directory
    #[arg(long, value_name = "FILE", required_unless_present = "no_state", conflicts_with = "no_state")]
    pub state: Option<PathBuf>,
    /// Remember nothing: only the trust file's floor stops an old version
    #[arg(long)]
    pub no_state: bool,
    /// The policy that a prepared action counts on; another one is `policy-changed`
    #[arg(long, value_name = "POLICY_ID")]
    pub expect: Option<String>,
    /// A file or directory in the policy directory that is no policy (repeatable)
    #[arg(long, value_name = "NAME", default_value = ".git")]
    pub ignore: Vec<String>,
    /// Refuse: exit 4, and hand nothing on [also: the variable `POLCTL_VERIFY_ENFORCE`]
    #[arg(long)]
    pub enforce: bool,
    /// Hand the verified files and the compiled policy on: into a new directory, or as JSON
    /// to standard output (`-`)
    #[arg(long, value_name = "DIR|-")]
    pub emit: Option<String>,
    /// How the outcome is shown
    #[arg(long, value_enum, default_value_t = VerifyFormat::Human, conflicts_with = "emit")]
    pub format: VerifyFormat,
    /// Also ask Vault (transit/verify) whether the signatures still stand
    #[arg(long)]
    pub also_vault: bool,
    /// Vault.
    #[command(flatten)]
    pub vault: VaultArgs,
}

/// How the outcome is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum VerifyFormat {
    /// For people
    Human,
    /// One JSON document
    Json,
}

/// What a machine gets.
#[derive(Serialize)]
struct Outcome<'a> {
    version: u32,
    command: &'static str,
    verified: bool,
    enforced: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    refusal: Option<Refusal>,
    #[serde(skip_serializing_if = "Option::is_none")]
    policy: Option<Policy<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    files: Option<Vec<Emitted>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    compiled: Option<Vec<Emitted>>,
}

#[derive(Serialize)]
struct Refusal {
    code: String,
    message: String,
    help: Option<String>,
}

#[derive(Serialize)]
#[expect(clippy::struct_field_names, reason = "the names of the output")]
struct Policy<'a> {
    set: &'a str,
    sequence: u64,
    policy_id: String,
    payload_sha256: String,
    issued: String,
    expires: String,
    signers: Vec<&'a str>,
}

#[derive(Serialize)]
struct Emitted {
    name: String,
    /// Standard base64: policy files need not be text to be signed.
    base64: String,
}

pub(super) fn run(args: &VerifyArgs, gate: &dyn Gate) -> Result<u8, Failure> {
    let enforcement = enforcement(args)?;
    let expect = expected(args)?;
    let outcome = verified(args, expect)?;
    match enforcement.admit(outcome) {
        Admission::Verified(verified) => accepted(args, enforcement, &verified, gate),
        Admission::Refused(error) => refused(args, enforcement, &error, gate),
        Admission::Reported(error) => refused(args, enforcement, &error, gate),
    }
}

fn enforcement(args: &VerifyArgs) -> Result<Enforcement, Failure> {
    const NAME: &str = "POLCTL_VERIFY_ENFORCE";
    let value = std::env::var_os(NAME).map(|value| value.to_string_lossy().into_owned());
    Enforcement::from_settings(args.enforce, value.as_deref()).ok_or_else(|| {
        Failure::usage(
            format!("the variable `{NAME}` says neither yes nor no"),
            "set it to `1` or `0`; a variable that is meant to enforce must not be lost to a typing error",
        )
    })
}

fn expected(args: &VerifyArgs) -> Result<Option<Digest>, Failure> {
    let Some(text) = &args.expect else { return Ok(None) };
    Digest::parse(text)
        .map(Some)
        .ok_or_else(|| Failure::usage("`--expect` is no `policy_id`", "it has 64 lower-case hexadecimal digits"))
}

/// Verifies; a Vault that cannot be asked is a refusal, not a failure of the command.
fn verified(args: &VerifyArgs, expect: Option<Digest>) -> Result<Result<Verified, SignError>, Failure> {
    let vault = if args.also_vault {
        match args.vault.open() {
            Ok(vault) => Some(vault),
            Err(Failure::Sign(error)) => return Ok(Err(error)),
            Err(failure) => return Err(failure),
        }
    } else {
        None
    };
    let rollback = args.state.clone().map_or(Rollback::FloorOnly, Rollback::State);
    Ok(verify(&Request {
        dir: &args.dir,
        envelope: envelope_at(args.envelope.as_deref(), &args.dir),
        trust: &args.trust,
        rollback,
        expect,
        ignored: &args.ignore,
        online: vault.as_ref().map(|vault| vault as &dyn OnlineCheck),
        now: now()?,
    }))
}

fn accepted(args: &VerifyArgs, enforcement: Enforcement, verified: &Verified, gate: &dyn Gate) -> Result<u8, Failure> {
    let set = verified.payload();
    let signers: Vec<&str> = verified.signers().iter().map(|by| by.signer.as_str()).collect();
    let policy = Policy {
        set: &set.set,
        sequence: set.sequence,
        policy_id: set.policy_id.to_string(),
        payload_sha256: verified.payload_digest().to_string(),
        issued: set.issued.to_string(),
        expires: set.expires.to_string(),
        signers,
    };
    let text = format!(
        "polctl verify: {} sequence {} is good: signed by {}, {} files, until {}\npolicy_id {}\n",
        set.set,
        set.sequence,
        policy.signers.join(", "),
        set.files.len(),
        set.expires,
        set.policy_id
    );
    let outcome = outcome(enforcement, None, Some(policy));
    match &args.emit {
        Some(to) => emit(to, outcome, verified.files(), Some(set), gate),
        None if args.format == VerifyFormat::Json => Ok(print_json(&outcome, exit::OK)),
        None => Ok(output::print(&text).map_or_else(|code| code, |()| exit::OK)),
    }
}

/// The same words with and without enforcement; only what follows differs.
fn refused(args: &VerifyArgs, enforcement: Enforcement, error: &SignError, gate: &dyn Gate) -> Result<u8, Failure> {
    output::notice(output::rendered(error).trim_end());
    let enforced = enforcement == Enforcement::Enforce;
    let code = if enforced { exit::REFUSED } else { exit::OK };
    if enforced {
        output::notice("polctl verify: REFUSED, nothing is handed on");
    } else {
        output::notice("polctl verify: NOT VERIFIED, and not enforced: whoever goes on uses unverified policy");
    }
    let refusal = Refusal { code: error.code_name(), message: error.to_string(), help: error.help_text() };
    let outcome = outcome(enforcement, Some(refusal), None);
    match &args.emit {
        Some(to) if !enforced => emit(to, outcome, &unverified(args)?, None, gate),
        None if args.format == VerifyFormat::Json => Ok(print_json(&outcome, code)),
        _ => Ok(code),
    }
}

/// The files as they are, for callers that do not enforce yet. What cannot be read safely
/// cannot be handed on either.
fn unverified(args: &VerifyArgs) -> Result<FileSet, Failure> {
    let envelope = match envelope_at(args.envelope.as_deref(), &args.dir) {
        EnvelopeAt::Inside(name) => Some(name),
        EnvelopeAt::Outside(_) => None,
    };
    let skip = Skip { envelope, ignored: args.ignore.iter().cloned().collect() };
    Ok(PolicyDir::open(&args.dir).map_err(SignError::from)?.read_all(&skip)?)
}

fn outcome(enforcement: Enforcement, refusal: Option<Refusal>, policy: Option<Policy<'_>>) -> Outcome<'_> {
    Outcome {
        version: 1,
        command: "verify",
        verified: refusal.is_none(),
        enforced: enforcement == Enforcement::Enforce,
        refusal,
        policy,
        files: None,
        compiled: None,
    }
}

fn json(outcome: &Outcome<'_>) -> String {
    let mut text = serde_json::to_string_pretty(outcome).unwrap_or_default();
    text.push('\n');
    text
}

fn print_json(outcome: &Outcome<'_>, code: u8) -> u8 {
    output::print(&json(outcome)).map_or_else(|failed| failed.max(code), |()| code)
}

/// Hands the bytes on that were read once; the exit code is that of success.
fn emit(
    to: &str,
    mut outcome: Outcome<'_>,
    files: &FileSet,
    signed: Option<&PolicySet>,
    gate: &dyn Gate,
) -> Result<u8, Failure> {
    let CompiledFiles { policy_id, files: compiled } = gate.compiled(files)?;
    if let Some(signed) = signed.filter(|signed| signed.policy_id != policy_id) {
        return Err(Failure::usage(
            format!(
                "this polctl compiles the set to {policy_id}, and {} was signed, by polctl {}",
                signed.policy_id, signed.polctl
            ),
            "what was not checked is not handed on compiled: use the polctl that signed it, or sign the set again with this one",
        ));
    }
    if to == "-" {
        let encoded = |name: &str, bytes: &[u8]| Emitted {
            name: name.to_owned(),
            base64: base64::engine::general_purpose::STANDARD.encode(bytes),
        };
        outcome.files = Some(files.iter().map(|(name, bytes)| encoded(name, bytes)).collect());
        outcome.compiled = Some(compiled.iter().map(|(name, bytes)| encoded(name, bytes)).collect());
        return Ok(print_json(&outcome, exit::OK));
    }
    let target = Path::new(to);
    emit_directory(target, &outcome, files, &compiled)
        .map_err(|source| Failure::Write { what: format!("`{}`", target.display()), source })?;
    Ok(exit::OK)
}

/// Writes everything beside the target and moves it there in one step. The target must not
/// exist, or be an empty directory.
fn emit_directory(
    target: &Path,
    outcome: &Outcome<'_>,
    files: &FileSet,
    compiled: &[(String, Vec<u8>)],
) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    let parent = target.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let staged = tempfile::Builder::new()
        .prefix(".polctl-emit-")
        .permissions(std::fs::Permissions::from_mode(0o755))
        .tempdir_in(parent)?;
    let place = |folder: &str, name: &str, bytes: &[u8]| -> std::io::Result<()> {
        let path = staged.path().join(folder).join(name);
        if let Some(dir) = path.parent() {
            std::fs::create_dir_all(dir)?;
        }
        let mut file = std::fs::OpenOptions::new().write(true).create_new(true).open(path)?;
        std::io::Write::write_all(&mut file, bytes)?;
        file.sync_all()
    };
    for (name, bytes) in files.iter() {
        place("policy", name, bytes)?;
    }
    for (name, bytes) in compiled {
        place("compiled", name, bytes)?;
    }
    place(".", "verified.json", json(outcome).as_bytes())?;
    std::fs::rename(staged.path(), target)?;
    // It is no longer where the guard would remove it.
    drop(staged.keep());
    std::fs::File::open(parent)?.sync_all()
}
