//! What the tests of signing share: a signed policy set in a fresh directory, fixed keys, and
//! a fixed time of day.

#![allow(
    dead_code,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::panic,
    clippy::print_stderr,
    reason = "shared by several tests, each of which uses a part; a test that cannot go on fails"
)]

pub mod bao;

use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ed25519_dalek::{Signer as _, SigningKey};
use polctl::sign::{
    Digest, EnvelopeAt, POLICY_SET_TYPE, Request, Rollback, SignError, Timestamp, Verified, pae, verify,
};
use serde_json::{Value, json};

/// Name of the envelope in the policy directory.
pub const ENVELOPE: &str = "polctl.sig.json";
/// The time of day in tests that choose it.
pub const NOW: &str = "2026-06-15T12:00:00Z";

/// A key that is only ever used in tests.
pub fn key(seed: u8) -> SigningKey {
    SigningKey::from_bytes(&[seed; 32])
}

/// The id of a key's public half.
pub fn key_id(key: &SigningKey) -> String {
    Digest::of(key.verifying_key().as_bytes()).to_string()
}

/// A key's public half as trust files have it.
pub fn public(key: &SigningKey) -> String {
    STANDARD.encode(key.verifying_key().as_bytes())
}

/// A time.
pub fn time(text: &str) -> Timestamp {
    Timestamp::parse(text).unwrap()
}

/// The tier map of the policy set.
pub const MAP: &str = "---
polctl: v1
surface: commands
---

# Commands

## Tier 0: read only

- `git status **`
- `git log **`
  - unless: `--all`

## Tier 4: catastrophic

- `rm **`
  - with: `-r`
";

/// The same, and `git log --all` is free too.
pub fn wider() -> String {
    MAP.replace("  - unless: `--all`\n", "")
}

/// The same without `git log`.
pub fn narrower() -> String {
    MAP.replace("- `git log **`\n  - unless: `--all`\n", "")
}

/// The same with an example that does not hold: red whatever it is compared with.
pub fn red() -> String {
    MAP.replace("- `git status **`\n", "- `git status **`\n  - match: `git push`\n")
}

/// The files of the policy set.
pub fn files() -> Vec<(&'static str, &'static str)> {
    vec![
        ("CLAUDE_CMDS.md", MAP),
        (
            "guardrails/base.cedar",
            "forbid (principal, action, resource is Commands::Host) when { context.program == \"shred\" };\n",
        ),
        (
            "polctl.yaml",
            "polctl: v1\nset: fleet-test\npolicies: [CLAUDE_CMDS.md]\nguardrails: [\"guardrails/*.cedar\"]\n",
        ),
    ]
}

/// The payload over these files.
pub fn payload() -> Value {
    let files: Vec<Value> = files()
        .iter()
        .map(
            |(name, text)| json!({"name": name, "size": text.len(), "sha256": Digest::of(text.as_bytes()).to_string()}),
        )
        .collect();
    json!({
        "set": "fleet-test",
        "sequence": 7,
        "policy_id": Digest::of(b"policy").to_string(),
        "issued": "2026-06-01T00:00:00Z",
        "expires": "2026-09-01T00:00:00Z",
        "polctl": "0.1.0",
        "base": {"verdict": "no-widening", "policy_id": Digest::of(b"old policy").to_string()},
        "files": files,
    })
}

/// One pinned key of a trust file.
pub fn pin(signer: &str, key: &SigningKey, roles: &[&str]) -> Value {
    json!({"signer": signer, "algorithm": "ed25519", "public": public(key), "roles": roles})
}

/// The trust file: keys 1 and 2 of two people for releases, 3 for approvals, 4 a second key of
/// the first one.
pub fn trust() -> Value {
    json!({
        "polctl_trust": "v1",
        "set": "fleet-test",
        "threshold": {"release": 1, "approve": 1},
        "keys": [
            pin("release-a", &key(1), &["release"]),
            pin("release-b", &key(2), &["release"]),
            pin("approver", &key(3), &["approve"]),
            pin("release-a", &key(4), &["release"]),
        ],
    })
}

/// The JSON of an envelope around `payload`, signed by each of `keys`.
pub fn envelope(payload_type: &str, payload: &[u8], keys: &[&SigningKey]) -> Value {
    let message = pae(payload_type, payload);
    let signatures: Vec<Value> = keys
        .iter()
        .map(|key| json!({"keyid": key_id(key), "sig": STANDARD.encode(key.sign(&message).to_bytes())}))
        .collect();
    json!({"payloadType": payload_type, "payload": STANDARD.encode(payload), "signatures": signatures})
}

/// Pretty JSON bytes with a line end.
pub fn bytes(value: &Value) -> Vec<u8> {
    let mut bytes = serde_json::to_vec_pretty(value).unwrap();
    bytes.push(b'\n');
    bytes
}

/// A policy directory with envelope, trust file and rollback state, all good.
pub struct Bench {
    /// Everything of this test.
    pub root: tempfile::TempDir,
    /// The time of day.
    pub now: Timestamp,
    /// The trust file's path.
    pub trust_path: PathBuf,
    /// The state's path.
    pub state_path: PathBuf,
    /// Where the envelope is.
    pub envelope_at: EnvelopeAt,
    /// The expected policy.
    pub expect: Option<Digest>,
    /// Names that are no policy.
    pub ignored: Vec<String>,
}

impl Bench {
    /// A good set.
    pub fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let bench = Bench {
            now: time(NOW),
            trust_path: root.path().join("trust.json"),
            state_path: root.path().join("state.json"),
            envelope_at: EnvelopeAt::Inside(ENVELOPE.into()),
            expect: None,
            ignored: Vec::new(),
            root,
        };
        std::fs::create_dir(bench.policy()).unwrap();
        for (name, text) in files() {
            bench.put(name, text);
        }
        bench.put_trust(&trust());
        bench.put_payload(&payload());
        bench
    }

    /// The policy directory.
    pub fn policy(&self) -> PathBuf {
        self.root.path().join("policy")
    }

    /// Path of a file in the policy directory.
    pub fn file(&self, name: &str) -> PathBuf {
        self.policy().join(name)
    }

    /// Writes a file in the policy directory.
    pub fn put(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.file(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    /// Writes the envelope.
    pub fn put_envelope(&self, content: impl AsRef<[u8]>) {
        self.put(ENVELOPE, content);
    }

    /// Signs a payload with the first release key and writes the envelope.
    pub fn put_payload(&self, payload: &Value) {
        self.put_envelope(bytes(&envelope(POLICY_SET_TYPE, &bytes(payload), &[&key(1)])));
    }

    /// Writes the trust file.
    pub fn put_trust(&self, trust: &Value) {
        self.put_trust_bytes(&bytes(trust));
    }

    /// Writes the trust file, whatever it holds.
    pub fn put_trust_bytes(&self, content: &[u8]) {
        use std::os::unix::fs::PermissionsExt as _;
        std::fs::write(&self.trust_path, content).unwrap();
        std::fs::set_permissions(&self.trust_path, std::fs::Permissions::from_mode(0o644)).unwrap();
    }

    /// Verifies the directory.
    pub fn verify(&self) -> Result<Verified, SignError> {
        verify(&Request {
            dir: &self.policy(),
            envelope: self.envelope_at.clone(),
            trust: &self.trust_path,
            rollback: Rollback::State(self.state_path.clone()),
            expect: self.expect,
            ignored: &self.ignored,
            online: None,
            now: self.now,
        })
    }
}

/// The repository's folder.
pub fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// One run of the executable.
#[derive(Debug)]
pub struct Run {
    /// Exit code.
    pub code: i32,
    /// Standard output.
    pub out: String,
    /// Standard error.
    pub err: String,
}

impl Run {
    /// Both outputs.
    pub fn all(&self) -> String {
        format!("{}{}", self.out, self.err)
    }

    /// Fails unless the exit code is `code`.
    #[track_caller]
    pub fn exits(self, code: i32) -> Self {
        assert!(self.code == code, "exit code {} and not {code}\n{}", self.code, self.all());
        self
    }

    /// Fails unless the refusal, the last diagnostic of the run, has this code.
    #[track_caller]
    pub fn says(self, code: &str) -> Self {
        assert!(self.codes().last() == Some(&code), "not {code}:\n{}", self.all());
        self
    }

    /// The codes of all diagnostics on standard error: each stands above its message.
    pub fn codes(&self) -> Vec<&str> {
        let lines: Vec<&str> = self.err.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        let heads = lines.windows(2).filter(|pair| pair[1].starts_with(['×', '⚠', '☞']));
        heads.map(|pair| pair[0]).collect()
    }
}

/// The executable with these arguments, and nothing of Vault in its environment.
pub fn command<S: AsRef<std::ffi::OsStr>>(args: &[S]) -> std::process::Command {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_polctl"));
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("VAULT_") || name.to_string_lossy().starts_with("POLCTL_") {
            command.env_remove(name);
        }
    }
    command.env("RUST_BACKTRACE", "full").env("NO_COLOR", "1").args(args).stdin(std::process::Stdio::null());
    command
}

/// Runs a command to its end.
pub fn finish(mut command: std::process::Command) -> Run {
    let output = command.output().unwrap();
    Run {
        code: output.status.code().unwrap_or(-1),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

/// Runs the executable with these arguments.
pub fn polctl(args: &[&str]) -> Run {
    finish(command(args))
}

/// Runs a program that the tests need; fails with what to install when it is missing.
pub fn tool(program: &str, install: &str, args: &[&str]) -> std::process::Output {
    let run = std::process::Command::new(program).args(args).stdin(std::process::Stdio::null()).output();
    match run {
        Ok(output) => output,
        Err(error) => panic!("{program} cannot be run ({error}): install {install}"),
    }
}

/// Runs git in `dir` and returns what it printed.
#[track_caller]
pub fn git(dir: &Path, args: &[&str]) -> String {
    let output = std::process::Command::new("git")
        .args(["-c", "user.name=test", "-c", "user.email=test@example.com", "-c", "commit.gpgsign=false"])
        .args(["-c", "init.defaultBranch=main", "-c", "protocol.file.allow=always"])
        .args(args)
        .current_dir(dir)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .output()
        .unwrap_or_else(|error| panic!("git cannot be run ({error}): install git"));
    assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// A directory with a policy set and a trust file for a key file, made by the executable.
pub struct Desk {
    /// Everything of this test.
    pub root: tempfile::TempDir,
}

impl Desk {
    /// A set of the usual files, a key of `release-a`, and a trust file that pins it.
    pub fn new() -> Self {
        let desk = Desk { root: tempfile::tempdir().unwrap() };
        for (name, text) in files() {
            desk.put(&format!("policy/{name}"), text);
        }
        desk.key("a.pem", "release-a", "release");
        desk
    }

    /// Writes a file.
    pub fn put(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.root.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    /// Reads a file.
    pub fn get(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.root.path().join(name)).unwrap()
    }

    /// A path as an argument.
    pub fn path(&self, name: &str) -> String {
        self.root.path().join(name).to_str().unwrap().to_owned()
    }

    /// Commits these files and directories; the desk becomes a repository when it is none.
    #[track_caller]
    pub fn commit(&self, what: &[&str]) {
        let root = self.root.path();
        if !root.join(".git").exists() {
            git(root, &["init", "-q"]);
        }
        git(root, &[&["add", "-A", "--"], what].concat());
        git(root, &["commit", "-q", "--allow-empty", "-m", "change"]);
    }

    /// Makes a key file and pins it.
    pub fn key(&self, file: &str, signer: &str, role: &str) {
        let made = polctl(&["keys", "generate", &self.path(file)]).exits(0);
        self.pin(made.out.lines().next().unwrap().strip_prefix("public ").unwrap(), signer, role).exits(0);
    }

    /// Pins a public key.
    pub fn pin(&self, public: &str, signer: &str, role: &str) -> Run {
        let trust = self.path("trust.json");
        polctl(&[
            "keys",
            "pin",
            "--trust",
            &trust,
            "--set",
            "fleet-test",
            "--signer",
            signer,
            "--role",
            role,
            "--public",
            public,
        ])
    }

    /// The arguments of `sign` with a key file, and more.
    pub fn sign_args(&self, file: &str, more: &[&str]) -> Vec<String> {
        let mut args = vec!["sign".into(), "-C".into(), self.path("policy"), "--trust".into(), self.path("trust.json")];
        args.extend(["--key-file".into(), self.path(file)]);
        args.extend(more.iter().map(|arg| (*arg).to_owned()));
        args
    }

    /// Signs with a key file.
    pub fn sign(&self, file: &str, more: &[&str]) -> Run {
        finish(command(&self.sign_args(file, more)))
    }

    /// Verifies, with more arguments.
    pub fn verify(&self, more: &[&str]) -> Run {
        let (policy, trust, state) = (self.path("policy"), self.path("trust.json"), self.path("state.json"));
        let mut args = vec!["verify", "-C", &policy, "--trust", &trust];
        if !more.contains(&"--no-state") {
            args.extend(["--state", &state]);
        }
        args.extend(more);
        polctl(&args)
    }
}
