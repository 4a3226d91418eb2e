//! The cases of `fixtures/census/cases.txt` with everything made that they name, and the makers.

#![allow(
    dead_code,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::panic,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "shared by several tests, each of which uses a part; a test that cannot go on fails"
)]

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};

/// The moment of all cases: 2026-09-21, in Unix seconds.
pub const NOW: i64 = 1_790_000_000;

/// One case of the file.
pub struct Case {
    pub probe: String,
    /// `live`, `none` or the name of a third case.
    pub sign: String,
    /// Where the case begins in the file.
    pub line: usize,
    pub bytes: Vec<u8>,
    /// Every secret that was put in.
    pub secrets: Vec<String>,
}

/// Runs a program that the tests need.
pub fn run(program: &str, args: &[&str], dir: &Path) -> Vec<u8> {
    let output = Command::new(program).args(args).current_dir(dir).stdin(std::process::Stdio::null()).output();
    let output = output.unwrap_or_else(|error| {
        panic!("`{program}` is needed for this test ({error}); install `openssl` and `openssh-client`")
    });
    assert!(output.status.success(), "{program} {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

/// Letters and digits that look random and are the same in every run.
fn noise(seed: usize, length: usize) -> String {
    const LETTERS: &[u8] = b"ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz23456789";
    let mut state = (seed as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(0x1234_5678_9abc_def1);
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        LETTERS[(state >> 33) as usize % LETTERS.len()] as char
    };
    (0..length).map(|_| next()).collect()
}

/// What GitHub and npm put behind their tokens.
pub fn checksum(text: &str) -> String {
    const DIGITS: &[u8] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    let mut crc = u32::MAX;
    for byte in text.bytes() {
        crc ^= u32::from(byte);
        for _ in 0..8 {
            crc = if crc & 1 == 1 { (crc >> 1) ^ 0xedb8_8320 } else { crc >> 1 };
        }
    }
    let mut rest = !crc;
    let mut out = Vec::new();
    for _ in 0..6 {
        out.push(DIGITS[rest as usize % 62]);
        rest /= 62;
    }
    out.reverse();
    String::from_utf8(out).unwrap()
}

/// A token with a sound checksum.
pub fn checked_token(prefix: &str, seed: usize) -> String {
    let body = noise(seed, 30);
    let sum = checksum(&body);
    format!("{prefix}_{body}{sum}")
}

pub fn jwt(seconds: Option<i64>) -> String {
    let encode = |text: String| URL_SAFE_NO_PAD.encode(text);
    let end = seconds.map_or(String::new(), |s| format!(",\"exp\":{}", NOW + s));
    let (head, body) =
        (encode("{\"alg\":\"RS256\",\"typ\":\"JWT\"}".to_owned()), encode(format!("{{\"sub\":\"app\"{end}}}")));
    format!("{head}.{body}.{}", noise(77, 43))
}

/// Makes what the cases name. Keys are made once.
pub struct Maker {
    dir: tempfile::TempDir,
    made: BTreeMap<String, Vec<u8>>,
    count: usize,
}

impl Maker {
    pub fn new() -> Self {
        Maker { dir: tempfile::tempdir().unwrap(), made: BTreeMap::new(), count: 0 }
    }

    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    fn file(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.dir().join(name)).unwrap()
    }

    /// Makes a key, a certificate or a store; the result of the same words is made once.
    pub fn make(&mut self, words: &str) -> Vec<u8> {
        if let Some(known) = self.made.get(words) {
            return known.clone();
        }
        let (name, arguments) = words.split_once(' ').unwrap_or((words, ""));
        let made = match name {
            "ssh-key" => self.ssh_key(arguments),
            "ssh-public" => {
                self.make("ssh-key plain");
                self.file("ssh-plain.pub")
            }
            "ssh-sk" => armour("OPENSSH PRIVATE KEY", &sk_key()),
            "ssh-certificate" => self.certificate(arguments),
            "pem" => self.pem(arguments),
            "p12" => self.p12(arguments),
            "jks" => java(arguments),
            "gpg" => b"(21:protected-private-key(3:ecc(5:curve7:Ed25519)(1:q1:x)(9:protected)))".to_vec(),
            "openpgp" => openpgp(arguments),
            "minisign" => minisign(arguments),
            "putty" => putty(arguments),
            "sqlite" => {
                let (table, rows) = arguments.rsplit_once(' ').unwrap();
                sqlite(table, rows.parse().unwrap())
            }
            "damaged" => format!("{arguments}\0\u{10}").into_bytes(),
            "keytab" => keytab(arguments == "1"),
            "ccache" => ccache(arguments.parse().ok()),
            "empty" | "socket" => Vec::new(),
            _ => panic!("no maker of `{words}`"),
        };
        self.made.insert(words.to_owned(), made.clone());
        made
    }

    fn ssh_key(&self, how: &str) -> Vec<u8> {
        let name = format!("ssh-{how}");
        let words = if how == "encrypted" { "correct horse" } else { "" };
        run("ssh-keygen", &["-q", "-t", "ed25519", "-N", words, "-C", "builder@example.com", "-f", &name], self.dir());
        self.file(&name)
    }

    fn certificate(&mut self, seconds: &str) -> Vec<u8> {
        self.make("ssh-key plain");
        let span = if seconds.starts_with('+') { "20260101:20270101" } else { "20240101:20250101" };
        let args = ["-q", "-s", "ssh-plain", "-I", "builder", "-n", "builder", "-V", span, "ssh-plain.pub"];
        run("ssh-keygen", &args, self.dir());
        self.file("ssh-plain-cert.pub")
    }

    fn pem(&mut self, how: &str) -> Vec<u8> {
        let dir = self.dir().to_owned();
        let openssl = |line: &str| run("openssl", &line.split(' ').collect::<Vec<_>>(), &dir);
        match how {
            "rsa-traditional" => {
                let key = openssl("genrsa -traditional 2048");
                std::fs::write(dir.join("rsa.pem"), &key).unwrap();
                key
            }
            "rsa-traditional-encrypted" => {
                self.make("pem rsa-traditional");
                openssl("rsa -in rsa.pem -traditional -aes128 -passout pass:horse")
            }
            "ec" => openssl("ecparam -name prime256v1 -genkey -noout"),
            "pkcs8" => openssl("genpkey -algorithm ed25519"),
            "pkcs8-rsa" => {
                self.make("pem rsa-traditional");
                openssl("pkcs8 -topk8 -nocrypt -in rsa.pem")
            }
            "pkcs8-encrypted" => {
                self.make("pem rsa-traditional");
                openssl("pkcs8 -topk8 -in rsa.pem -passout pass:horse")
            }
            "certificate" => {
                self.make("pem rsa-traditional");
                let certificate = openssl("req -x509 -new -key rsa.pem -subj /CN=example.com -days 2");
                std::fs::write(dir.join("cert.pem"), &certificate).unwrap();
                certificate
            }
            _ => panic!("no PEM `{how}`"),
        }
    }

    fn p12(&mut self, how: &str) -> Vec<u8> {
        self.make("pem certificate");
        let password = if how == "password" { "pass:horse" } else { "pass:" };
        let mut args = vec!["pkcs12", "-export", "-inkey", "rsa.pem", "-in", "cert.pem", "-passout", password];
        if how == "empty-sha1" {
            args.extend(["-macalg", "sha1"]);
        }
        run("openssl", &args, self.dir())
    }

    fn word(&mut self, word: &str, secrets: &mut Vec<String>) -> String {
        self.count += 1;
        let secret = noise(self.count, 40);
        let mut marked = |shown: String, secret: String| {
            secrets.push(secret);
            shown
        };
        match word {
            "secret" => marked(secret.clone(), secret),
            "hex" => {
                let hex: String = secret.bytes().map(|byte| format!("{byte:02x}")).collect();
                marked(hex.clone(), hex)
            }
            "b64" => {
                let text = STANDARD.encode(&secret);
                marked(text.clone(), text)
            }
            "b64pair" => {
                let text = STANDARD.encode(format!("app:{secret}"));
                marked(text.clone(), text)
            }
            "ghp" => {
                let token = checked_token("ghp", self.count);
                marked(token.clone(), token)
            }
            "broken" => format!("{}000000", noise(self.count, 30)),
            "age" => {
                let key = format!("AGE-SECRET-KEY-1{}", noise(self.count, 58).to_uppercase());
                marked(key.clone(), key)
            }
            "jwt+" => marked(jwt(Some(3600)), jwt(Some(3600))),
            "jwt-" => marked(jwt(Some(-3600)), jwt(Some(-3600))),
            "time+" => "2026-12-01T00:00:00Z".to_owned(),
            "time-" => "2026-01-01T00:00:00Z".to_owned(),
            "unix-" => (NOW - 10).to_string(),
            "ms-" => ((NOW - 10) * 1000).to_string(),
            "jkey" => {
                let key = String::from_utf8(self.make("pem pkcs8-rsa")).unwrap();
                let shown = key.replace('\n', "\\n");
                let line = key.lines().nth(3).unwrap().to_owned();
                marked(shown, line)
            }
            "ssh-public" => String::from_utf8(self.make("ssh-public")).unwrap().trim().to_owned(),
            _ => panic!("no word `{word}`"),
        }
    }

    /// A body with its words replaced and its `@` lines made.
    pub fn body(&mut self, lines: &[&str]) -> (Vec<u8>, Vec<String>) {
        let (mut out, mut secrets) = (Vec::new(), Vec::new());
        for line in lines {
            if let Some(words) = line.strip_prefix('@') {
                out.extend(self.directive(words, &mut secrets));
                continue;
            }
            let mut rest = *line;
            let mut text = String::new();
            while let Some((before, word, after)) = placeholder(rest) {
                text.push_str(before);
                text.push_str(&self.word(word, &mut secrets));
                rest = after;
            }
            text.push_str(rest);
            text.push('\n');
            out.extend(text.into_bytes());
        }
        (out, secrets)
    }

    fn directive(&mut self, words: &str, secrets: &mut Vec<String>) -> Vec<u8> {
        let (name, arguments) = words.split_once(' ').unwrap_or((words, ""));
        match name {
            "bytes" => {
                let hex = arguments.split(' ').next().unwrap();
                let mut bytes: Vec<u8> =
                    (0..hex.len() / 2).map(|at| u8::from_str_radix(&hex[2 * at..2 * at + 2], 16).unwrap()).collect();
                if arguments.ends_with("secret") {
                    bytes.extend(self.word("secret", secrets).into_bytes());
                }
                bytes
            }
            "environ" => format!("HOME=/root\0{arguments}={}\0", self.word("secret", secrets)).into_bytes(),
            _ => {
                let made = self.make(words);
                if let Ok(text) = std::str::from_utf8(&made) {
                    secrets.extend(
                        text.lines().filter(|line| line.len() >= 60 && text.contains("PRIVATE")).map(str::to_owned),
                    );
                }
                made
            }
        }
    }
}

/// Text before a `{{word}}` that the maker knows, the word, and the text behind it.
fn placeholder(text: &str) -> Option<(&str, &str, &str)> {
    let mut from = 0;
    loop {
        let at = from + text[from..].find("{{")?;
        let end = at + text[at..].find("}}")?;
        let word = &text[at + 2..end];
        if !word.is_empty() && !word.contains(' ') && !word.contains('{') {
            return Some((&text[..at], word, &text[end + 2..]));
        }
        from = at + 2;
    }
}

/// All cases of the file.
pub fn cases(maker: &mut Maker) -> Vec<Case> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/census/cases.txt");
    let text = std::fs::read_to_string(path).unwrap();
    let mut out = Vec::new();
    let mut probe = "";
    let mut open: Option<(&str, usize, Vec<&str>)> = None;
    let mut close = |open: &mut Option<(&str, usize, Vec<&str>)>, probe: &str| {
        if let Some((sign, line, mut lines)) = open.take() {
            while lines.last().is_some_and(|line| line.is_empty()) {
                lines.pop();
            }
            let (bytes, secrets) = maker.body(&lines);
            out.push(Case { probe: probe.to_owned(), sign: sign.to_owned(), line, bytes, secrets });
        }
    };
    for (at, line) in text.lines().enumerate() {
        if let Some(name) = line.strip_prefix("== ") {
            close(&mut open, probe);
            probe = name;
        } else if let Some(sign) = line.strip_prefix("-- ").filter(|_| !probe.is_empty()) {
            close(&mut open, probe);
            open = Some((sign, at + 1, Vec::new()));
        } else if let Some((_, _, lines)) = &mut open {
            lines.push(line);
        }
    }
    close(&mut open, probe);
    out
}

fn armour(label: &str, data: &[u8]) -> Vec<u8> {
    let text = STANDARD.encode(data);
    let lines: Vec<&str> = (0..text.len()).step_by(70).map(|at| &text[at..(at + 70).min(text.len())]).collect();
    format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", lines.join("\n")).into_bytes()
}

fn string(text: &[u8]) -> Vec<u8> {
    [&(text.len() as u32).to_be_bytes()[..], text].concat()
}

/// What ssh-keygen writes for a key in a device: the private part has only a handle.
fn sk_key() -> Vec<u8> {
    let public = [string(b"sk-ssh-ed25519@openssh.com"), string(&[7; 32]), string(b"ssh:")].concat();
    let head = [string(b"none"), string(b"none"), string(b""), 1_u32.to_be_bytes().to_vec()].concat();
    [b"openssh-key-v1\0".to_vec(), head, string(&public), string(&[1; 160])].concat()
}

fn java(how: &str) -> Vec<u8> {
    let certificate = [&[0, 5][..], b"X.509", &[0, 0, 0, 3, 1, 2, 3]].concat();
    let entry = |tag: u32| [&tag.to_be_bytes()[..], &[0, 1, b'a'], &[0; 8]].concat();
    let body = match how {
        "private" => [entry(1), string(&[9; 40]), 1_u32.to_be_bytes().to_vec(), certificate].concat(),
        _ => [entry(2), certificate].concat(),
    };
    [&0xfeed_feed_u32.to_be_bytes()[..], &[0, 0, 0, 2, 0, 0, 0, 1], &body, &[0; 20]].concat()
}

/// A version 4 `EdDSA` key in one old-style packet.
fn openpgp(how: &str) -> Vec<u8> {
    let public = [&[4, 1, 2, 3, 4, 22, 3, 1, 2, 3][..], &263_u16.to_be_bytes(), &[0x40; 33]].concat();
    let (tag, rest): (u8, Vec<u8>) = match how {
        "public" => (6, vec![]),
        "plain" => (5, [&[0][..], &256_u16.to_be_bytes(), &[0x81; 32], &[0, 0]].concat()),
        "card" => (5, [&[255, 0, 101, 0][..], b"GNU", &[2]].concat()),
        _ => (5, [&[254, 7, 3, 8][..], &[5; 40]].concat()),
    };
    let body = [public, rest].concat();
    [&[0x80 | (tag << 2), body.len() as u8][..], &body].concat()
}

fn minisign(how: &str) -> Vec<u8> {
    let kdf: &[u8] = if how == "plain" { &[0, 0] } else { b"Sc" };
    let blob = STANDARD.encode([b"Ed", kdf, b"B2", &[3; 152]].concat());
    format!("untrusted comment: minisign encrypted secret key\n{blob}\n").into_bytes()
}

fn putty(cipher: &str) -> Vec<u8> {
    let public = STANDARD.encode([string(b"ssh-ed25519"), string(&[5; 32])].concat());
    format!(
        "PuTTY-User-Key-File-3: ssh-ed25519\nEncryption: {cipher}\nComment: key\nPublic-Lines: 1\n{public}\n\
         Private-Lines: 1\n{}\nPrivate-MAC: 00\n",
        noise(5, 44)
    )
    .into_bytes()
}

/// A database of two pages: the schema with one table, and the table's rows.
fn sqlite(table: &str, rows: u8) -> Vec<u8> {
    const PAGE: usize = 1024;
    let sql = format!("CREATE TABLE x(v) -- {table}");
    let text = |length: usize| (13 + 2 * length) as u8;
    assert!(table.len() < 57 && sql.len() < 120, "serial types of two bytes are not made here");
    let sql_type = 13 + 2 * sql.len();
    let header = [
        &[7, text(5), text(table.len()), text(table.len()), 1][..],
        &[0x80 | (sql_type >> 7) as u8, (sql_type & 0x7f) as u8],
    ]
    .concat();
    let record = [&header[..], b"table", table.as_bytes(), table.as_bytes(), &[2], sql.as_bytes()].concat();
    let length = record.len();
    let cell = [&[0x80 | (length >> 7) as u8, (length & 0x7f) as u8, 1][..], &record].concat();
    let mut file = vec![0; 2 * PAGE];
    file[..16].copy_from_slice(b"SQLite format 3\0");
    file[16..18].copy_from_slice(&(PAGE as u16).to_be_bytes());
    let at = PAGE - cell.len();
    file[at..PAGE].copy_from_slice(&cell);
    file[100..108].copy_from_slice(&[0x0d, 0, 0, 0, 1, (at >> 8) as u8, at as u8, 0]);
    file[108..110].copy_from_slice(&(at as u16).to_be_bytes());
    file[PAGE..PAGE + 8].copy_from_slice(&[0x0d, 0, 0, 0, rows, 3, 0, 0]);
    file
}

fn keytab(entry: bool) -> Vec<u8> {
    let body = [&[0, 1, 0, 11][..], b"EXAMPLE.COM", &[0, 4], b"host", &[0, 0, 0, 1], &[0; 20]].concat();
    [&[5, 2][..], &if entry { string(&body) } else { vec![] }].concat()
}

/// A version 4 cache with one ticket, or without any.
fn ccache(seconds: Option<i64>) -> Vec<u8> {
    let principal =
        |name: &[u8]| [&1_u32.to_be_bytes()[..], &1_u32.to_be_bytes(), &string(b"EXAMPLE.COM"), &string(name)].concat();
    let mut out = [&[5, 4, 0, 0][..], &principal(b"app")].concat();
    if let Some(seconds) = seconds {
        let end = ((NOW + seconds) as u32).to_be_bytes();
        out.extend([principal(b"app"), principal(b"krbtgt"), vec![0, 18], string(&[8; 32])].concat());
        out.extend([&[0; 8][..], &end, &[0; 4], &[0; 5], &[0; 4], &[0; 4], &string(&[4; 60]), &string(b"")].concat());
    }
    out
}
