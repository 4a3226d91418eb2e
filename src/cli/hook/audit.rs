//! One JSON line for each decision, with the columns of a `command_audit` table.
//!
//! What a decision cannot know (exit code, rollback, a person's verdict) is `null`, for whoever
//! runs the command to fill in. Secrets in arguments are replaced before anything is written.

use std::io::Write as _;
use std::path::Path;

use serde::Serialize;

/// Longest evidence that is kept, in characters.
const MAX_EVIDENCE: usize = 4000;

/// A row.
#[derive(Debug, Serialize)]
pub(super) struct Row<'a> {
    /// Seconds since 1970, UTC.
    pub(super) ts: u64,
    pub(super) session_id: Option<&'a str>,
    pub(super) tool_use_id: Option<&'a str>,
    pub(super) agent: &'a str,
    pub(super) tool: &'a str,
    /// The line, path or URL, secrets replaced.
    pub(super) command: String,
    /// 0 to 4.
    pub(super) assigned_tier: Option<u8>,
    /// `allow`, `ask` or `deny`.
    pub(super) decision_type: &'a str,
    /// Rule and place, or what is built in.
    pub(super) matched_rule: Option<String>,
    /// Why, secrets replaced.
    pub(super) evidence: String,
    pub(super) policy_id: Option<&'a str>,
    pub(super) exit_code: Option<i32>,
    pub(super) rollback_taken: Option<bool>,
    pub(super) verify_passed: Option<bool>,
    pub(super) human_verdict: Option<&'a str>,
    pub(super) training_signal: Option<&'a str>,
}

/// Appends a row. One write of one line to a file that is opened for appending: processes that
/// do so at once never mix their lines (POSIX `write`, `O_APPEND`).
///
/// # Errors
///
/// What the system said; nothing was written then, or the line is incomplete at the end of the file.
pub(super) fn append(path: &Path, row: &Row<'_>) -> std::io::Result<()> {
    let mut line = serde_json::to_string(row).map_err(std::io::Error::other)?;
    line.push('\n');
    let mut options = std::fs::OpenOptions::new();
    options.create(true).append(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path)?;
    let written = file.write(line.as_bytes())?;
    if written == line.len() {
        return Ok(());
    }
    Err(std::io::Error::new(std::io::ErrorKind::WriteZero, "the line could not be written in one piece"))
}

/// The text with what looks like a secret replaced, cut to a length that a row bears.
pub(super) fn redacted(text: &str) -> String {
    let mut out = String::new();
    let mut hide_next = false;
    for piece in text.split_inclusive(|c: char| c.is_whitespace()) {
        let word = piece.trim_end();
        let blank = piece.get(word.len()..).unwrap_or("");
        if hide_next && !word.starts_with('-') {
            out.push_str("[redacted]");
        } else {
            out.push_str(&word_redacted(word));
        }
        hide_next = announces(word);
        out.push_str(blank);
    }
    match out.char_indices().nth(MAX_EVIDENCE) {
        Some((at, _)) => format!("{} [cut]", out.get(..at).unwrap_or("")),
        None => out,
    }
}

/// Names whose values are secrets.
const NAMES: [&str; 12] = [
    "password",
    "passwd",
    "passphrase",
    "secret",
    "token",
    "apikey",
    "api-key",
    "api_key",
    "access_key",
    "private_key",
    "authorization",
    "credential",
];

fn names_secret(name: &str) -> bool {
    let name = name.to_lowercase();
    NAMES.iter().any(|secret| name.contains(secret))
        || matches!(name.trim_matches('-'), "pass" | "pw" | "pwd" | "bearer")
}

/// Whether the word behind this one is a secret: `--password`, `Bearer`, `Authorization:`.
fn announces(word: &str) -> bool {
    let word = word.trim_matches(['"', '\'']);
    matches!(word.to_lowercase().as_str(), "bearer" | "basic" | "-p" | "-u" | "authorization:")
        || word.starts_with("--") && !word.contains('=') && names_secret(word)
        || word.ends_with(':') && names_secret(word)
}

fn word_redacted(word: &str) -> String {
    // user:password@host in a URL.
    if let Some((scheme, rest)) = word.split_once("://")
        && let Some((user, host)) = rest.split_once('@')
        && !user.contains('/')
    {
        return format!("{scheme}://[redacted]@{host}");
    }
    // NAME=value, --name=value, name:value.
    for sign in ['=', ':'] {
        if let Some((name, value)) = word.split_once(sign)
            && !value.is_empty()
            && names_secret(name)
        {
            return format!("{name}{sign}[redacted]");
        }
    }
    let mut out = String::new();
    let mut run = String::new();
    let flush = |run: &mut String, out: &mut String| {
        out.push_str(if token(run) { "[redacted]" } else { run });
        run.clear();
    };
    for c in word.chars() {
        if c.is_ascii_alphanumeric() || "_-+/.".contains(c) {
            run.push(c);
        } else {
            flush(&mut run, &mut out);
            out.push(c);
        }
    }
    flush(&mut run, &mut out);
    out
}

/// Well-known shapes of tokens, and long runs that are hardly words.
fn token(run: &str) -> bool {
    const PREFIXES: [&str; 16] = [
        "ghp_",
        "gho_",
        "ghu_",
        "ghs_",
        "ghr_",
        "github_pat_",
        "glpat-",
        "xoxb-",
        "xoxp-",
        "sk-",
        "AKIA",
        "ASIA",
        "hvs.",
        "npm_",
        "pypi-",
        "eyJ",
    ];
    if run.len() >= 16 && PREFIXES.iter().any(|prefix| run.starts_with(prefix)) {
        return true;
    }
    // Paths and ids of commits are no secrets.
    let plain = run.contains('/') || run.bytes().all(|b| b.is_ascii_hexdigit()) && matches!(run.len(), 40 | 64);
    let classes = [
        run.bytes().any(|b| b.is_ascii_lowercase()),
        run.bytes().any(|b| b.is_ascii_uppercase()),
        run.bytes().any(|b| b.is_ascii_digit()),
    ];
    !plain && run.len() >= 32 && classes.iter().filter(|c| **c).count() == 3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_replaced_and_the_rest_stays() {
        for (text, want) in [
            ("git push origin main", "git push origin main"),
            ("curl -H 'Authorization: Bearer abc' u", "curl -H 'Authorization: [redacted] [redacted] u"),
            ("mysql --password=hunter2 db", "mysql --password=[redacted] db"),
            ("mysql --password hunter2 db", "mysql --password [redacted] db"),
            ("TOKEN=abc ls", "TOKEN=[redacted] ls"),
            ("git clone https://u:p@h/x", "git clone https://[redacted]@h/x"),
            ("echo ghp_0123456789abcdefghijABCDEFGHIJ012345", "echo [redacted]"),
            ("git show 0123456789abcdef0123456789abcdef01234567", "git show 0123456789abcdef0123456789abcdef01234567"),
            ("x=eyJhbGciOiJIUzI1NiJ9.e30.abc", "x=[redacted]"),
            (
                "ls /a/very/long/path/that/Holds/Many/Segments/1/2/3",
                "ls /a/very/long/path/that/Holds/Many/Segments/1/2/3",
            ),
        ] {
            assert_eq!(redacted(text), want, "{text}");
        }
        assert!(redacted(&"a".repeat(9000)).ends_with("[cut]"));
    }
}
