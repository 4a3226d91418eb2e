//! The census, for people, for machines and for a metrics collector.
//!
//! Takes what was found as plain values, with locations that are one visible line each. There is
//! no field for a secret.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use serde::Serialize;

use super::summary::plural;
use crate::diag::{Code, Level};

/// Version of the JSON formats. Fields may be added under one version; nothing else changes.
const VERSION: u32 = 1;

/// A credential, as reports show it.
#[derive(Clone, Debug, Serialize)]
pub struct CensusCredential {
    /// Path on the host, one line.
    pub location: String,
    /// Line in the file, from 1.
    pub line: Option<usize>,
    /// What it gives access to.
    pub kind: String,
    /// Name of the known place; `None`: found by content.
    pub probe: Option<String>,
    /// Profile, host or user.
    pub label: Option<String>,
    /// `SHA256:…` of a public key.
    pub fingerprint: Option<String>,
    /// `live`, `encrypted`, `hardware`, `delegated`, `expired`, `empty` or `unreadable`.
    pub sign: String,
    /// To what it is delegated, when it expired, or why it cannot be read.
    pub detail: Option<String>,
    /// What the inventory says; `None`: it needs no row.
    pub state: Option<String>,
    /// Permission bits, as `0600`.
    pub mode: String,
    /// Owner's name or number.
    pub owner: String,
    /// Group's name or number.
    pub group: String,
    /// Who can read it beside root, by mode and ACL; directories above may still keep them out.
    pub readers: Vec<String>,
}

/// One thing that is wrong.
#[derive(Clone, Debug, Serialize)]
pub struct CensusFinding {
    /// The code.
    #[serde(serialize_with = "code")]
    pub code: Code,
    /// Its level.
    #[serde(serialize_with = "level")]
    pub level: Level,
    /// One sentence.
    pub message: String,
    /// How to put it right.
    pub help: String,
    /// Path on the host; empty for the host as a whole.
    pub location: String,
    /// Line there.
    pub line: Option<usize>,
    /// The row of the inventory, as `credentials.yaml:12`.
    pub row: Option<String>,
}

fn code<S: serde::Serializer>(code: &Code, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(code.as_str())
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands it on so")]
fn level<S: serde::Serializer>(level: &Level, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(level.as_str())
}

/// A place with a reason.
#[derive(Clone, Debug, Serialize)]
pub struct CensusPlace {
    /// Path on the host.
    pub location: String,
    /// Why it is listed.
    pub why: String,
}

/// How much was looked at.
#[derive(Clone, Debug, Default, Serialize)]
pub struct CensusCounts {
    /// Home directories.
    pub homes: usize,
    /// Directories that were listed by the walk.
    pub directories: usize,
    /// Files that were judged by their content.
    pub files: usize,
    /// Large files of which only the beginning was looked at.
    pub cut: usize,
    /// Directories and files closed to the user whose view it is.
    pub closed: usize,
    /// Places that could not be looked at and should have been.
    pub unreadable: usize,
}

/// Everything that a census has to say.
#[derive(Clone, Debug, Serialize)]
pub struct Census {
    /// The host's name.
    pub host: Option<String>,
    /// Where its root is.
    pub root: String,
    /// Whose view: a user, or everything.
    pub view: Option<String>,
    /// When, as `2026-03-01T12:00:00Z`.
    pub at: String,
    /// The same in Unix seconds.
    #[serde(skip)]
    pub at_seconds: i64,
    /// How long it took.
    pub seconds: f64,
    /// The inventory, as it was named; `None`: there was none.
    pub inventory: Option<String>,
    /// The end of the exemption that ends first, in Unix seconds.
    #[serde(skip)]
    pub first_expiry: Option<i64>,
    /// The exit code.
    pub exit_code: u8,
    /// How much was looked at.
    pub looked: CensusCounts,
    /// What is wrong.
    pub findings: Vec<CensusFinding>,
    /// What is there.
    pub credentials: Vec<CensusCredential>,
    /// Places that could not be looked at.
    pub unreadable: Vec<CensusPlace>,
    /// Places that were left out on purpose.
    pub skipped: Vec<CensusPlace>,
}

#[derive(Serialize)]
struct Output<'a> {
    version: u32,
    command: &'static str,
    verdict: &'static str,
    #[serde(flatten)]
    census: &'a Census,
}

impl Census {
    fn count(&self, level: Level) -> usize {
        self.findings.iter().filter(|finding| finding.level == level).count()
    }

    const fn verdict(&self) -> &'static str {
        match self.exit_code {
            0 => "pass",
            3 => "inconclusive",
            _ => "fail",
        }
    }

    /// Credentials that need a row.
    fn needing(&self) -> usize {
        self.credentials.iter().filter(|credential| credential.state.is_some()).count()
    }
}

/// One JSON document.
pub fn census_json(census: &Census) -> String {
    let output = Output { version: VERSION, command: "census", verdict: census.verdict(), census };
    let mut text = serde_json::to_string_pretty(&output).unwrap_or_default();
    text.push('\n');
    text
}

/// One line that says that a census ran to its end, and how it ended.
pub fn census_heartbeat(census: &Census) -> String {
    let line = serde_json::json!({
        "version": VERSION,
        "at": census.at,
        "host": census.host,
        "exit_code": census.exit_code,
        "verdict": census.verdict(),
        "errors": census.count(Level::Error),
        "warnings": census.count(Level::Warning),
        "unreadable": census.looked.unreadable,
    });
    format!("{line}\n")
}

/// For people: what is wrong, place by place, then what is there, then the verdict.
pub fn census_human(census: &Census, colour: bool) -> String {
    let mut out = String::new();
    let mut by_place: BTreeMap<&str, Vec<&CensusFinding>> = BTreeMap::new();
    for finding in &census.findings {
        by_place.entry(&finding.location).or_default().push(finding);
    }
    let mut helped = BTreeSet::new();
    for (place, findings) in by_place {
        let _ = writeln!(out, "{}", if place.is_empty() { "(the host)" } else { place });
        if let Some(who) = census.credentials.iter().find(|credential| credential.location == place) {
            let _ = writeln!(out, "  {}", reach(who));
        }
        told(&mut out, &findings, &mut helped, colour);
        out.push('\n');
    }
    there(&mut out, census);
    listed(&mut out, "not looked at, though it should have been:", &census.unreadable, census.looked.unreadable);
    listed(&mut out, "left out:", &census.skipped, census.skipped.len());
    ending(&mut out, census);
    out
}

/// The findings of one place. The same advice is given once.
fn told<'c>(out: &mut String, findings: &[&'c CensusFinding], helped: &mut BTreeSet<(Code, &'c String)>, colour: bool) {
    for finding in findings {
        let (start, end) = match (colour, finding.level) {
            (false, _) | (_, Level::Note) => ("", ""),
            (true, Level::Warning) => ("\u{1b}[33m", "\u{1b}[0m"),
            (true, Level::Error) => ("\u{1b}[31m", "\u{1b}[0m"),
        };
        let line = finding.line.map_or_else(String::new, |line| format!("line {line}: "));
        let row = finding.row.as_ref().map_or_else(String::new, |row| format!(" ({row})"));
        let level = finding.level.as_str();
        let _ = writeln!(out, "  {start}{level}{end}[{}]: {line}{}{row}", finding.code.as_str(), finding.message);
        if finding.help.is_empty() || !helped.insert((finding.code, &finding.help)) {
            continue;
        }
        let _ = writeln!(out, "    help: {}", finding.help);
    }
}

fn reach(credential: &CensusCredential) -> String {
    let CensusCredential { mode, owner, group, readers, .. } = credential;
    let readers = if readers.is_empty() { "nobody but root".to_owned() } else { readers.join(", ") };
    format!("mode {mode}, owner {owner}, group {group}; its mode lets in: {readers}")
}

/// What is there and no finding told of.
fn there(out: &mut String, census: &Census) {
    let wrong: BTreeSet<&str> = census.findings.iter().map(|finding| finding.location.as_str()).collect();
    let quiet: Vec<&CensusCredential> =
        census.credentials.iter().filter(|credential| !wrong.contains(credential.location.as_str())).collect();
    if quiet.is_empty() {
        return;
    }
    out.push_str("in order:\n");
    for credential in quiet {
        let label = credential.label.as_ref().map_or_else(String::new, |label| format!(" `{label}`"));
        let detail = credential.detail.as_ref().map_or_else(String::new, |detail| format!(": {detail}"));
        let state = credential.state.as_deref().unwrap_or("needs no row");
        let _ = writeln!(
            out,
            "  {}  {} {}{label}{detail} ({state})",
            credential.location, credential.sign, credential.kind
        );
    }
    out.push('\n');
}

fn listed(out: &mut String, title: &str, places: &[CensusPlace], count: usize) {
    /// Most places that people read; the JSON has more.
    const MOST: usize = 20;
    if places.is_empty() {
        return;
    }
    let _ = writeln!(out, "{title}");
    for place in places.iter().take(MOST) {
        let _ = writeln!(out, "  {}: {}", place.location, place.why);
    }
    if count > MOST {
        let _ = writeln!(out, "  and {} more (`--format json` lists up to 200)", count - MOST);
    }
    out.push('\n');
}

fn ending(out: &mut String, census: &Census) {
    let looked = &census.looked;
    let whose = census.view.as_ref().map_or_else(String::new, |user| format!(" as `{user}` can read it"));
    let host = census.host.as_ref().map_or_else(|| census.root.clone(), Clone::clone);
    let _ = writeln!(
        out,
        "{host}{whose}: {}, {} in {}; {} in {}",
        plural(census.credentials.len(), "credential"),
        plural(looked.files, "file"),
        directories(looked.directories),
        plural(looked.homes, "home"),
        format_args!("{:.1} s", census.seconds),
    );
    for (count, what) in [
        (looked.closed, "files and directories that are closed to this user"),
        (looked.cut, "large files of which only the first MiB was looked at"),
    ] {
        if count > 0 {
            let _ = writeln!(out, "{what}: {count}");
        }
    }
    if census.inventory.is_none() {
        out.push_str("no inventory was given: `--inventory credentials.yaml --adopt` begins one\n");
    }
    let (errors, warnings) = (census.count(Level::Error), census.count(Level::Warning));
    let mark = match census.exit_code {
        0 => "PASS",
        3 => "INCONCLUSIVE",
        _ => "FAIL",
    };
    let _ = writeln!(
        out,
        "{mark}: {}, {}; {} of {} need a row in the inventory",
        plural(errors, "error"),
        plural(warnings, "warning"),
        census.needing(),
        census.credentials.len()
    );
}

/// The text format of Prometheus, for a node exporter's collector of text files.
///
/// No series names a place, a user or a credential.
pub fn census_metrics(census: &Census) -> String {
    let mut out = String::new();
    let mut held: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for credential in &census.credentials {
        *held.entry((credential.sign.as_str(), credential.state.as_deref().unwrap_or("none-needed"))).or_default() += 1;
    }
    let mut wrong: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for finding in &census.findings {
        *wrong.entry((finding.code.as_str(), finding.level.as_str())).or_default() += 1;
    }
    family(&mut out, "credentials", "Credentials on the host by what they are and what the inventory says.");
    for ((sign, state), count) in held {
        let _ = writeln!(out, "polctl_census_credentials{{sign=\"{sign}\",state=\"{state}\"}} {count}");
    }
    family(&mut out, "findings", "Findings by code and level.");
    for ((code, level), count) in wrong {
        let _ = writeln!(out, "polctl_census_findings{{code=\"{code}\",level=\"{level}\"}} {count}");
    }
    let looked = &census.looked;
    let unclassified = census.findings.iter().filter(|f| f.code == Code::CREDENTIAL_UNCLASSIFIED).count();
    for (name, help, value) in [
        ("unclassified", "Credentials that nobody has classified.", unclassified),
        ("unreadable", "Places that could not be looked at.", looked.unreadable),
        ("closed", "Files and directories closed to the user whose view it is.", looked.closed),
        ("skipped", "Places that were left out on purpose.", census.skipped.len()),
        ("files", "Files judged by their content.", looked.files),
        ("directories", "Directories listed.", looked.directories),
        ("exit_code", "Exit code of the last run.", usize::from(census.exit_code)),
    ] {
        family(&mut out, name, help);
        let _ = writeln!(out, "polctl_census_{name} {value}");
    }
    family(&mut out, "duration_seconds", "How long the last run took.");
    let _ = writeln!(out, "polctl_census_duration_seconds {:.3}", census.seconds);
    family(&mut out, "last_run_timestamp_seconds", "When the last run began.");
    let _ = writeln!(out, "polctl_census_last_run_timestamp_seconds {}", census.at_seconds);
    if let Some(first) = census.first_expiry {
        family(&mut out, "first_expiry_timestamp_seconds", "When the first exemption ends.");
        let _ = writeln!(out, "polctl_census_first_expiry_timestamp_seconds {first}");
    }
    out
}

fn family(out: &mut String, name: &str, help: &str) {
    let _ = writeln!(out, "# HELP polctl_census_{name} {help}\n# TYPE polctl_census_{name} gauge");
}

fn directories(count: usize) -> String {
    if count == 1 { "1 directory".to_owned() } else { format!("{count} directories") }
}
