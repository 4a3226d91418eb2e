//! Texts that gather secrets: shell start-up files, dotenv files, histories, unit files and
//! process environments. Assignments to names that mean a secret, options that take one, URLs
//! with a password, and tokens by their shape.

use std::collections::BTreeSet;

use super::value::userinfo;
use super::{Kind, Material, Sign, label, lines, sniff};

/// Longest line that is looked at for assignments; tokens are found in longer ones, too.
const LONGEST_LINE: usize = 64 * 1024;

/// What the lines assign, and tokens that stand elsewhere.
pub(super) fn read(bytes: &[u8], kind: Kind, now: i64) -> Vec<Material> {
    let mut out = Vec::new();
    let mut seen = BTreeSet::new();
    let split = |byte: &u8| *byte == b'\n' || *byte == 0;
    // A file with a hole is millions of empty lines.
    let looked_at = |line: &[u8]| !line.is_empty() && line.len() <= LONGEST_LINE;
    for (at, line) in bytes.split(split).enumerate().filter(|(_, line)| looked_at(line)) {
        let line = String::from_utf8_lossy(line);
        let line = line.trim();
        if line.starts_with('#') {
            continue;
        }
        for (name, value) in assignments(line).into_iter().chain(options(line)).chain(addresses(line)) {
            if plainly_harmless(&value) || !seen.insert((name.clone(), value.clone())) {
                continue;
            }
            let sign = if names_file(&name, &value) {
                Sign::delegated("another file")
            } else if is_variable(&value) {
                Sign::delegated("a variable")
            } else {
                lines::sign(&value, now)
            };
            if sign != Sign::Empty {
                out.push(Material { line: Some(at + 1), label: label::name(&name), ..Material::new(kind, sign) });
            }
        }
    }
    let known: BTreeSet<usize> = out.iter().filter_map(|material| material.line).collect();
    let tokens = sniff::gathered(bytes, kind, now);
    out.extend(tokens.into_iter().filter(|token| token.line.is_none_or(|line| !known.contains(&line))));
    out
}

const ENDINGS: [&str; 14] = [
    "token",
    "secret",
    "password",
    "passwd",
    "passphrase",
    "credentials",
    "_pw",
    "_pwd",
    "_pat",
    "_pass",
    "apikey",
    "_key",
    "-key",
    "accesskey",
];

/// Whether a name means a secret.
fn means_secret(name: &str) -> bool {
    // The shell's own working directories.
    if name == "PWD" || name == "OLDPWD" {
        return false;
    }
    let name = name.to_ascii_lowercase();
    let public = name.contains("public") || name.contains("publishable");
    !public && ENDINGS.iter().any(|ending| name.ends_with(ending) || name == ending.trim_start_matches('_'))
}

/// Truth values and small numbers: `MAX_TOKEN=4096`.
fn plainly_harmless(value: &str) -> bool {
    let value = value.trim();
    let number = value.len() <= 4 && value.bytes().all(|b| b.is_ascii_digit());
    number
        || ["true", "false", "yes", "no", "on", "off", "null", "none"]
            .iter()
            .any(|word| value.eq_ignore_ascii_case(word))
}

/// `$name`: to a shell, a variable of any spelling.
fn is_variable(value: &str) -> bool {
    let name = value.strip_prefix('$').unwrap_or("");
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

/// Whether a value is the path of a key or credentials file.
fn names_file(name: &str, value: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let roots =
        ["~/", "$HOME/", "${HOME}/", "./", "/home/", "/root/", "/etc/", "/run/", "/var/", "/opt/", "/usr/", "/mnt/"];
    value.starts_with("%d/")
        || (name.ends_with("key") || name.ends_with("credentials")) && roots.iter().any(|root| value.starts_with(root))
}

/// `NAME=value` wherever a word may begin, `set NAME value` of other shells, and `NAME: value`.
fn assignments(line: &str) -> Vec<(String, String)> {
    let mut out = Vec::new();
    for (at, _) in line.match_indices('=') {
        let (before, after) = (line.get(..at).unwrap_or(""), line.get(at + 1..).unwrap_or(""));
        let before = before.trim_end();
        let name = last_name(before);
        let boundary = before.strip_suffix(name).unwrap_or("").chars().next_back();
        let begins = boundary.is_none_or(|c| c.is_whitespace() || ";&|('\":`{-=".contains(c));
        if begins && means_secret(name) && !after.starts_with(['=', '~']) {
            out.push((name.to_owned(), word(after.trim_start()).to_owned()));
        }
    }
    // YAML and JSON among the texts: `name: value`, `"name": "value",`.
    if let Some((name, value)) = line.trim_start_matches(['-', ' ', '{']).split_once(':') {
        let name = name.trim_matches(['"', '\'']);
        let plain = name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-".contains(&b));
        if plain && means_secret(name) && value.starts_with([' ', '"']) {
            out.push((name.to_owned(), word(value.trim_start()).trim_end_matches(',').to_owned()));
        }
    }
    let words: Vec<&str> = line.split_whitespace().skip_while(|word| !["set", "setenv"].contains(word)).collect();
    if let [_, rest @ ..] = words.as_slice() {
        let mut rest = rest.iter().skip_while(|word| word.starts_with('-'));
        if let (Some(name), Some(value)) = (rest.next().filter(|name| means_secret(name)), rest.next()) {
            let at = line.find(value).unwrap_or(0);
            out.push(((*name).to_owned(), word(line.get(at..).unwrap_or("")).to_owned()));
        }
    }
    out
}

fn last_name(before: &str) -> &str {
    let length = before.bytes().rev().take_while(|b| b.is_ascii_alphanumeric() || *b == b'_').count();
    let name = before.get(before.len() - length..).unwrap_or("");
    // Options have dashes inside.
    let dashed = before.bytes().rev().take_while(|b| b.is_ascii_alphanumeric() || b"_-".contains(b)).count();
    let dashed = before.get(before.len() - dashed..).unwrap_or("");
    if dashed.starts_with('-') { dashed.trim_start_matches('-') } else { name }
}

/// The first word of a line, without its quotes. A substitution is one word.
fn word(text: &str) -> &str {
    for quote in ['"', '\''] {
        if let Some(rest) = text.strip_prefix(quote) {
            return rest.split(quote).next().unwrap_or("");
        }
    }
    if text.starts_with("$(") {
        return text.rfind(')').and_then(|end| text.get(..=end)).unwrap_or(text);
    }
    if text.starts_with("{{") {
        return text.find("}}").and_then(|end| text.get(..end + 2)).unwrap_or(text);
    }
    let end = text.find(|c: char| c.is_whitespace() || ";&|\"'".contains(c)).unwrap_or(text.len());
    text.get(..end).unwrap_or(text)
}

/// Options of well-known programs that take a secret: `--password X`, `curl -u user:X`,
/// `sshpass -p X`, `mysql -pX`, an `Authorization` header.
fn options(line: &str) -> Vec<(String, String)> {
    let mut out = Vec::new();
    let words: Vec<&str> = line.split_whitespace().collect();
    let runs =
        |names: &[&str]| words.iter().any(|w| names.contains(&w.rsplit(['/', ';', '|', '&']).next().unwrap_or(w)));
    let (curl, sshpass, mysql) =
        (runs(&["curl"]), runs(&["sshpass"]), runs(&["mysql", "mysqldump", "mysqladmin", "mariadb"]));
    for (at, option) in words.iter().enumerate() {
        let next = words.get(at + 1).map_or("", |next| next.trim_matches(['"', '\'']));
        let long = option.strip_prefix("--").filter(|name| means_secret(name) && !next.starts_with('-'));
        if let Some(name) = long {
            out.push((name.to_owned(), next.to_owned()));
        }
        if curl && (*option == "-u" || *option == "--user") {
            out.extend(next.split_once(':').map(|(_, secret)| ("curl user".to_owned(), secret.to_owned())));
        }
        if sshpass && *option == "-p" {
            out.push(("sshpass password".to_owned(), next.to_owned()));
        }
        if let Some(secret) = option.strip_prefix("-p").filter(|secret| mysql && !secret.is_empty()) {
            out.push(("mysql password".to_owned(), secret.trim_matches(['"', '\'']).to_owned()));
        }
        if option.trim_start_matches(['"', '\'']).eq_ignore_ascii_case("authorization:") {
            let secret = words.get(at + 2).unwrap_or(&next).trim_matches(['"', '\'']);
            out.push(("authorization".to_owned(), secret.to_owned()));
        }
    }
    out
}

/// URLs with user information.
fn addresses(line: &str) -> Vec<(String, String)> {
    let split = |c: char| c.is_whitespace() || "\"'<>()`,;=".contains(c);
    let urls = line.split(split).filter(|word| word.contains("://"));
    urls.filter_map(|url| userinfo(url).map(|secret| (label::host_of(url).to_owned(), secret.to_owned()))).collect()
}
