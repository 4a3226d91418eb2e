//! Hosts for the tests of the census: a plan in `fixtures/hosts/NAME/plan` becomes a directory.
//!
//! No secret is in the repository. Keys are made by `ssh-keygen` and `openssl`, values by
//! chance; every one of them is remembered, and no output may hold one.
//!
//! A plan has one entry a line; `<<` begins the lines of a file, which end at `.`:
//!
//! ```text
//! file MODE PATH <<          a file with the lines that follow
//! key MODE PATH [words]      a key of ssh-keygen; `encrypted`, `rsa`, `pem`, `tls`
//! link PATH TARGET           a symbolic link
//! pipe|socket|dir PATH       what it says; `dir MODE PATH`
//! large PATH BYTES           a file with a hole of that size
//! many PATH COUNT            a tree of COUNT small files
//! odd PATH                   a key below a directory whose name holds a line break and an escape
//! ```
//!
//! In files: `{{secret NAME}}` 40 letters and digits, `{{token NAME}}` a GitHub token with a good
//! checksum, `{{day N}}` the day in N days, `{{print PATH}}` the fingerprint of a key, `{{uid}}`.

#![allow(
    dead_code,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::panic,
    reason = "shared by several tests, each of which uses a part; a test that cannot go on fails"
)]

use std::collections::BTreeMap;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A host in a directory.
pub struct Host {
    pub dir: tempfile::TempDir,
    /// What no output may hold, by name.
    pub secrets: BTreeMap<String, String>,
    seed: u64,
}

/// Runs a program that the tests need.
pub fn tool(program: &str, args: &[&str]) -> Output {
    let output = Command::new(program).args(args).output();
    let output =
        output.unwrap_or_else(|e| panic!("`{program}` cannot be run ({e}): install openssh-client and openssl"));
    assert!(output.status.success(), "{program} {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    output
}

impl Host {
    /// An empty host.
    pub fn empty() -> Host {
        // Whoever scans may be another user than the one who made it.
        let dir = tempfile::Builder::new().permissions(std::fs::Permissions::from_mode(0o755)).tempdir().unwrap();
        let mut seed = [0; 8];
        getrandom_bytes(&mut seed);
        std::fs::create_dir(dir.path().join("root")).unwrap();
        std::fs::set_permissions(dir.path().join("root"), std::fs::Permissions::from_mode(0o755)).unwrap();
        Host { dir, secrets: BTreeMap::new(), seed: u64::from_le_bytes(seed) }
    }

    /// The host of a plan below `fixtures/hosts`.
    pub fn of_plan(name: &str) -> Host {
        let mut host = Host::empty();
        let plan = std::fs::read_to_string(fixture(name).join("plan")).unwrap();
        host.plan(&plan);
        host
    }

    /// The root of the host.
    pub fn root(&self) -> PathBuf {
        self.dir.path().join("root")
    }

    /// A path of the host, as the test sees it.
    pub fn at(&self, path: &str) -> PathBuf {
        self.root().join(path.trim_start_matches('/'))
    }

    /// Builds what a plan says.
    pub fn plan(&mut self, plan: &str) {
        let mut lines = plan.lines().filter(|line| !line.starts_with('#'));
        while let Some(line) = lines.next() {
            let words: Vec<&str> = line.split_whitespace().collect();
            match words.as_slice() {
                [] => {}
                ["file", mode, path, "<<"] => {
                    let body: String = lines.by_ref().take_while(|l| *l != ".").flat_map(|l| [l, "\n"]).collect();
                    let body = self.filled(&body);
                    self.file(path, body.as_bytes(), mode);
                }
                ["file", mode, path] => self.file(path, b"", mode),
                ["key", mode, path, words @ ..] => self.key(path, mode, words),
                ["link", path, target] => symlink(target, self.made(path)).unwrap(),
                ["dir", mode, path] => {
                    std::fs::create_dir_all(self.at(path)).unwrap();
                    self.mode(path, mode);
                }
                ["pipe", path] => {
                    let path = self.made(path);
                    tool("mkfifo", &[path.to_str().unwrap()]);
                }
                ["socket", path] => drop(std::os::unix::net::UnixListener::bind(self.made(path)).unwrap()),
                ["large", path, size] => {
                    let file = std::fs::File::create(self.made(path)).unwrap();
                    file.set_len(size.parse().unwrap()).unwrap();
                }
                ["many", path, count] => self.many(path, count.parse().unwrap()),
                ["odd", path] => {
                    let odd = format!("{path}/a\nb\u{1b}[31m/k*y");
                    self.key(&odd, "0600", &[]);
                }
                _ => panic!("the plan says `{line}`"),
            }
        }
    }

    fn made(&self, path: &str) -> PathBuf {
        let full = self.at(path);
        std::fs::create_dir_all(full.parent().unwrap()).unwrap();
        full
    }

    fn mode(&self, path: &str, mode: &str) {
        let mode = u32::from_str_radix(mode, 8).unwrap();
        std::fs::set_permissions(self.at(path), std::fs::Permissions::from_mode(mode)).unwrap();
    }

    /// Writes a file.
    pub fn file(&self, path: &str, bytes: &[u8], mode: &str) {
        std::fs::write(self.made(path), bytes).unwrap();
        self.mode(path, mode);
    }

    /// Makes a key.
    pub fn key(&mut self, path: &str, mode: &str, words: &[&str]) {
        let full = self.made(path);
        let text = full.to_str().unwrap();
        let passphrase = if words.contains(&"encrypted") { self.random(20) } else { String::new() };
        if words.contains(&"tls") {
            tool("openssl", &["genpkey", "-algorithm", "ed25519", "-out", text]);
        } else {
            let kind = if words.contains(&"rsa") { "rsa" } else { "ed25519" };
            let mut args = vec!["-q", "-t", kind, "-N", &passphrase, "-C", "test", "-f", text];
            args.extend(words.contains(&"pem").then_some(["-m", "PEM"]).into_iter().flatten());
            tool("ssh-keygen", &args);
        }
        let body = std::fs::read_to_string(&full).unwrap();
        // Each line of the body by itself: a report that quoted one would show a part of the key.
        for (at, line) in body.lines().filter(|line| !line.starts_with("-----")).enumerate() {
            // The first lines of a new key hold names of algorithms and the public half.
            if line.len() > 40 && (at > 2 || words.contains(&"tls")) {
                self.secrets.insert(format!("{path}:{at}"), line.to_owned());
            }
        }
        if !passphrase.is_empty() {
            self.secrets.insert(format!("{path}: passphrase"), passphrase);
        }
        self.mode(path, mode);
    }

    fn many(&self, path: &str, count: usize) {
        for at in 0..count {
            let file = self.at(&format!("{path}/d{}/e{}/f{at}.txt", at / 2000, at / 100));
            if at % 100 == 0 {
                std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            }
            std::fs::write(file, format!("note {at}: nothing of interest, and some words more\n")).unwrap();
        }
    }

    /// The fingerprint of a key, as OpenSSH says it.
    pub fn print(&self, path: &str) -> String {
        let public = self.at(&format!("{path}.pub"));
        let output = tool("ssh-keygen", &["-l", "-f", public.to_str().unwrap()]);
        String::from_utf8(output.stdout).unwrap().split(' ').nth(1).unwrap().to_owned()
    }

    /// Letters and digits by chance (splitmix64).
    fn random(&mut self, count: usize) -> String {
        const LETTERS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
        let mut next = || {
            self.seed = self.seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let z = (self.seed ^ (self.seed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            z ^ (z >> 31)
        };
        (0..count).map(|_| char::from(LETTERS[usize::try_from(next() % 62).unwrap()])).collect()
    }

    fn secret(&mut self, name: &str, make: impl FnOnce(&mut Host) -> String) -> String {
        if let Some(known) = self.secrets.get(name) {
            return known.clone();
        }
        let made = make(self);
        self.secrets.insert(name.to_owned(), made.clone());
        made
    }

    /// A text of a plan or inventory with its marks filled in.
    pub fn filled(&mut self, text: &str) -> String {
        let mut out = String::new();
        let mut rest = text;
        while let Some((before, mark)) = rest.split_once("{{") {
            let (mark, after) = mark.split_once("}}").unwrap();
            out.push_str(before);
            let words: Vec<&str> = mark.split(' ').collect();
            out.push_str(&match words.as_slice() {
                ["secret", name] => self.secret(name, |host| host.random(40)),
                ["token", name] => self.secret(name, |host| {
                    let body = host.random(30);
                    format!("ghp_{body}{}", checksum(&body))
                }),
                ["day", days] => day(days.parse().unwrap()),
                ["print", path] => self.print(path),
                ["uid"] => rustix::process::geteuid().as_raw().to_string(),
                ["root"] => self.root().display().to_string(),
                _ => panic!("no mark: {mark}"),
            });
            rest = after;
        }
        out + rest
    }

    /// The inventory of a fixture, filled in, as a file beside the host.
    pub fn inventory(&mut self, text: &str) -> PathBuf {
        let text = self.filled(text);
        let path = self.dir.path().join("credentials.yaml");
        std::fs::write(&path, text).unwrap();
        path
    }

    /// Runs `polctl census --root` on it.
    pub fn census(&self, args: &[&str]) -> Run {
        let root = self.root();
        let mut command = Command::new(env!("CARGO_BIN_EXE_polctl"));
        command.args(["census", "--root", root.to_str().unwrap()]).args(args);
        Run::of(&command.output().unwrap(), self)
    }

    /// Fails where a text holds a secret, or one half of it.
    pub fn assert_no_secret(&self, what: &str, text: &str) {
        for (name, secret) in &self.secrets {
            let (first, second) = secret.split_at(secret.len() / 2);
            for part in [secret.as_str(), first, second] {
                assert!(!text.contains(part), "{what} shows `{name}` or a half of it");
            }
        }
    }
}

/// What a run said. No secret was in it.
pub struct Run {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Run {
    pub fn of(output: &Output, host: &Host) -> Run {
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        let run =
            Run { code: output.status.code().unwrap_or(-1), out: text(&output.stdout), err: text(&output.stderr) };
        host.assert_no_secret("standard output", &run.out);
        host.assert_no_secret("standard error", &run.err);
        run
    }

    /// The output as JSON.
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.out).unwrap_or_else(|e| panic!("{e}: {}{}", self.out, self.err))
    }

    /// `code location` of each finding, in order.
    pub fn findings(&self) -> Vec<String> {
        let json = self.json();
        let text = |finding: &serde_json::Value, key: &str| finding[key].as_str().unwrap().to_owned();
        json["findings"]
            .as_array()
            .unwrap()
            .iter()
            .map(|f| format!("{} {}", text(f, "code"), text(f, "location")).trim().to_owned())
            .collect()
    }
}

/// The directory of a fixture.
pub fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/hosts").join(name)
}

fn getrandom_bytes(bytes: &mut [u8]) {
    std::io::Read::read_exact(&mut std::fs::File::open("/dev/urandom").unwrap(), bytes).unwrap();
}

/// The day in so many days, in UTC.
fn day(days: i64) -> String {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    let mut days = i64::try_from(now).unwrap() / 86_400 + days;
    // Civil date from days since 1970 (H. Hinnant's algorithm).
    days += 719_468;
    let era = days.div_euclid(146_097);
    let of_era = days.rem_euclid(146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    format!("{:04}-{month:02}-{day:02}", year + era * 400 + i64::from(month <= 2))
}

/// The last six characters of a GitHub token: CRC-32 of the rest in base 62.
fn checksum(body: &str) -> String {
    const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    let mut crc = u32::MAX;
    for byte in body.bytes() {
        crc ^= u32::from(byte);
        for _ in 0..8 {
            crc = if crc & 1 == 1 { (crc >> 1) ^ 0xedb8_8320 } else { crc >> 1 };
        }
    }
    let mut left = !crc;
    let mut out = [b'0'; 6];
    for digit in out.iter_mut().rev() {
        *digit = DIGITS[usize::try_from(left % 62).unwrap()];
        left /= 62;
    }
    String::from_utf8(out.to_vec()).unwrap()
}
