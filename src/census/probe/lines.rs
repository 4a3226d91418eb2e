//! Formats of one credential a line, or of words: netrc, URLs, columns, bare tokens, `key value`.

use super::rules::Entry;
use super::value::{Held, held, userinfo};
use super::{Kind, Material, Sign, label, moment};

fn text_lines(bytes: &[u8]) -> impl Iterator<Item = (usize, String)> {
    let lines = bytes.split(|byte| *byte == b'\n').enumerate();
    lines.map(|(at, line)| (at + 1, String::from_utf8_lossy(line).trim().to_owned()))
}

fn is_comment(line: &str) -> bool {
    line.is_empty() || line.starts_with('#')
}

/// The sign of a value that would be a secret.
pub(super) fn sign(value: &str, now: i64) -> Sign {
    match held(value, now) {
        Held::Empty => Sign::Empty,
        Held::Reference(to) => Sign::delegated(to),
        Held::Encrypted => Sign::Encrypted,
        Held::Ended(at) => Sign::Expired { at: moment::write(at) },
        Held::Literal => Sign::Live,
    }
}

/// netrc: `machine NAME login NAME password SECRET`, over lines; macros are left out.
pub(super) fn netrc(text: &str) -> Vec<Entry> {
    let mut out = Vec::new();
    let (mut machine, mut count, mut macro_body) = (String::from("default"), 0, false);
    for (at, line) in text.lines().enumerate() {
        if macro_body && !line.trim().is_empty() {
            continue;
        }
        macro_body = false;
        let mut words = line.split_whitespace();
        while let Some(word) = words.next().filter(|word| !word.starts_with('#')) {
            match word {
                "machine" | "default" => {
                    count += 1;
                    machine = if word == "machine" { words.next().unwrap_or("").to_owned() } else { word.to_owned() };
                }
                "macdef" => macro_body = true,
                "password" | "passwd" | "login" | "account" => {
                    let path = vec![count.to_string(), machine.clone(), word.to_owned()];
                    let value = words.next().unwrap_or("").to_owned();
                    out.push(Entry { path, value, line: Some(at + 1) });
                }
                _ => {}
            }
        }
    }
    // The number only keeps two entries for one host apart.
    let twice = |host: &str, out: &[Entry]| {
        out.iter()
            .filter(|e| e.path.get(1).is_some_and(|h| h == host) && e.path.get(2).is_some_and(|k| k == "password"))
            .count()
            > 1
    };
    let keep: Vec<bool> = out.iter().map(|entry| entry.path.get(1).is_some_and(|host| twice(host, &out))).collect();
    for (entry, keep) in out.iter_mut().zip(keep) {
        if !keep {
            entry.path.remove(0);
        }
    }
    out
}

/// Lines of URLs, of which each may have user information.
pub(super) fn urls(bytes: &[u8], kind: Kind) -> Vec<Material> {
    let mut out = Vec::new();
    for (line, text) in text_lines(bytes).filter(|(_, text)| !is_comment(text)) {
        let Some((at, _)) =
            text.match_indices("://").find(|(at, _)| text.get(*at..).is_some_and(|rest| userinfo(rest).is_some()))
        else {
            continue;
        };
        let label = text.get(at..).and_then(label::name);
        out.push(Material { line: Some(line), label, ..Material::new(kind, Sign::Live) });
    }
    out
}

/// Lines of fields with colons, as `.pgpass` has: the secret is field `column`, the first one the
/// label. `\:` does not separate. The last field takes what is left.
pub(super) fn columns(bytes: &[u8], column: usize, kind: Kind, now: i64) -> Vec<Material> {
    let mut out = Vec::new();
    for (line, text) in text_lines(bytes).filter(|(_, text)| !is_comment(text)) {
        let fields = fields(&text, column);
        let Some(secret) = column.checked_sub(1).and_then(|at| fields.get(at)) else { continue };
        let label = if column > 2 { fields.first().and_then(|host| label::name(host)) } else { None };
        out.push(Material { line: Some(line), label, ..Material::new(kind, sign(secret, now)) });
    }
    out
}

fn fields(line: &str, most: usize) -> Vec<String> {
    let mut out = vec![String::new()];
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        let full = out.len() >= most;
        let Some(last) = out.last_mut() else { break };
        match c {
            '\\' => last.extend(chars.next()),
            ':' if !full => out.push(String::new()),
            _ => last.push(c),
        }
    }
    out
}

/// A file of bare tokens, one a line.
pub(super) fn tokens(bytes: &[u8], kind: Kind, now: i64) -> Vec<Material> {
    let mut out = Vec::new();
    for (line, text) in text_lines(bytes).filter(|(_, text)| !is_comment(text)) {
        out.push(Material { line: Some(line), ..Material::new(kind, sign(&text, now)) });
    }
    out
}

/// Lines of `key value`, `key=value`, `set key=value`, `key: value`, `--key value`. Blocks that
/// begin with `host`, `account`, `machine` or `Channel` name what follows.
pub(super) fn words(text: &str) -> Vec<Entry> {
    let mut out = Vec::new();
    let mut block: Option<String> = None;
    for (at, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with(['#', ';', '!']) {
            continue;
        }
        let line = line.strip_prefix("set ").unwrap_or(line).trim_start_matches("--");
        let split = line.find(|c: char| c.is_whitespace() || c == '=' || c == ':').unwrap_or(line.len());
        let (key, rest) = line.split_at(split);
        let value = rest.trim_start().trim_start_matches(['=', ':']).trim().trim_matches(['"', '\'']);
        if ["host", "account", "machine", "imapaccount", "poll"].iter().any(|name| key.eq_ignore_ascii_case(name)) {
            block = Some(format!("{} {}", value, at + 1));
        }
        let named = |key: &str| {
            let block = block.iter().map(|b| b.rsplit_once(' ').map_or(b.as_str(), |(name, _)| name).to_owned());
            block.chain([key.to_owned()]).collect::<Vec<String>>()
        };
        out.push(Entry { path: named(key), value: value.to_owned(), line: Some(at + 1) });
        // Some write more pairs behind the first: mount with `=`, fetchmail without.
        let bare = ["poll", "skip", "user", "server", "defaults"].iter().any(|name| key.eq_ignore_ascii_case(name));
        let more: Vec<&str> = line.split([' ', ',', '\t']).collect();
        for pair in more.windows(2).skip(1) {
            if let [key, value] = pair
                && (bare || key.contains('='))
            {
                let (key, value) = key.split_once('=').unwrap_or((key, value));
                out.push(Entry {
                    path: named(key),
                    value: value.trim_matches(['"', '\'']).to_owned(),
                    line: Some(at + 1),
                });
            }
        }
    }
    out
}
