//! Lines as agents type them: ways around a policy, and what must not be blocked.
//!
//! `fixtures/shell/bypass.yaml` holds rows from public reports and their siblings, each with its
//! rules; `fixtures/shell/ordinary` holds a team's policy and what its agents do all day.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test that cannot go on fails"
)]

mod common;

use std::path::Path;

use common::Files;
use polctl::compile::{Compiled, compile};
use polctl::decide::{Decider, Setting, Verdict, egress_request, judge, judge_request};
use polctl::model::{Request, Surface};
use polctl::parse::load;
use polctl::source::{DirTree, SourceMap};
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    id: String,
    family: String,
    #[allow(dead_code, reason = "for the reader")]
    source: String,
    rules: String,
    surface: Option<String>,
    cwd: Option<String>,
    line: String,
    danger: Option<String>,
    expect: String,
    #[allow(dead_code, reason = "for the reader")]
    note: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    #[expect(clippy::struct_field_names, reason = "the name in the fixture")]
    line: String,
    tier: serde_json::Value,
    #[allow(dead_code, reason = "for the reader")]
    why: Option<String>,
}

fn fixture(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/shell").join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn rows() -> Vec<Row> {
    serde_saphyr::from_str(&fixture("bypass.yaml")).unwrap()
}

const CONFIG: &str = "polctl: v1\nset: rows\npolicies: [map.md]\nzones:\n  workspace: [\"/srv/agents/**\"]\n  tmp: \
                      [\"/tmp/**\"]\n  credential: [\"~/.ssh/**\", \"~/.aws/**\", \"**/.env\"]\n  policy: \
                      [\"/etc/polctl/**\"]\n";

/// A set of one surface with these rules.
fn set(surface: &str, rules: &str, map: &mut SourceMap) -> Compiled {
    let text = format!("---\npolctl: v1\nsurface: {surface}\n---\n\n{rules}\n");
    let files = Files([("polctl.yaml".to_owned(), CONFIG.to_owned()), ("map.md".to_owned(), text)].into());
    common::compiled(&files, map)
}

fn decide(compiled: &Compiled, map: &SourceMap, surface: Surface, line: &str, cwd: Option<&str>) -> Option<Verdict> {
    let zones = compiled.set.config.zones.matcher();
    let setting = Setting {
        trusted_dirs: &compiled.set.config.trusted_dirs,
        zones: &zones,
        cwd,
        agent: "agent",
        host: "host",
        external: false,
    };
    let mut decider = Decider::new(compiled, map);
    if surface == Surface::Egress {
        let request = egress_request(line).ok()?;
        return Some(judge_request(&mut decider, Request::Egress(request), line, &setting).unwrap());
    }
    Some(judge(&mut decider, surface, line, &setting).unwrap())
}

fn shown(tier: Option<u8>) -> String {
    tier.map_or_else(|| "denied".to_owned(), |tier| format!("tier {tier}"))
}

fn meets(expect: &str, tier: Option<u8>) -> bool {
    match (expect, tier) {
        ("auto", tier) => tier.is_some_and(|t| t < 2),
        ("not-auto", tier) => tier.is_none_or(|t| t >= 2),
        ("deny", tier) => tier.is_none(),
        (exact, tier) => tier.is_some_and(|t| exact == format!("tier{t}")),
    }
}

/// A text as one word in single quotes.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// A row's line, and lines that hold its danger one level deeper or beside other commands.
fn variants(row: &Row) -> Vec<String> {
    let mut out = vec![row.line.clone()];
    if let Some(danger) = row.danger.as_deref().filter(|_| row.surface.is_none()) {
        match row.expect.as_str() {
            "deny" => out.extend([
                format!("echo $({danger})"),
                format!("sh -c {}", quoted(danger)),
                format!("true && {danger}"),
                format!("printf x | xargs {danger}"),
            ]),
            "not-auto" => out.extend([format!("{danger} && true"), format!("true && {danger}")]),
            _ => {}
        }
    }
    out
}

#[test]
fn no_row_goes_around_its_rules() {
    let mut wrong = Vec::new();
    let mut decided = 0;
    let mut families = std::collections::BTreeMap::<String, usize>::new();
    for row in rows() {
        let name = row.surface.as_deref().unwrap_or("commands");
        let surface = Surface::from_name(name).unwrap();
        let mut map = SourceMap::new();
        let compiled = set(name, &row.rules, &mut map);
        for line in variants(&row) {
            let tier = decide(&compiled, &map, surface, &line, row.cwd.as_deref()).and_then(|v| v.tier);
            decided += 1;
            if !meets(&row.expect, tier) {
                wrong.push(format!("{} {line:?}: {}, expected {}", row.id, shown(tier), row.expect));
            }
        }
        *families.entry(row.family).or_default() += 1;
    }
    eprintln!("{decided} lines of {families:?}");
    assert!(wrong.is_empty(), "{} of {decided}\n{}", wrong.len(), wrong.join("\n"));
    for family in ["C", "P", "N", "W", "R", "S", "E", "O"] {
        assert!(families.get(family).is_some_and(|n| *n >= 8), "{family}");
    }
}

#[test]
fn ordinary_lines_get_the_tier_that_a_reviewer_expects() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/shell/ordinary");
    let mut map = SourceMap::new();
    let mut findings = Vec::new();
    let set =
        load(&DirTree::new(&dir, None), &mut map, &mut findings).unwrap().unwrap_or_else(|| panic!("{findings:?}"));
    let compiled = compile(set, Vec::new());
    let lines: Vec<Line> = serde_saphyr::from_str(&fixture("ordinary/lines.yaml")).unwrap();
    let mut differences = Vec::new();
    for line in &lines {
        let want = line.tier.as_u64().map(|tier| u8::try_from(tier).unwrap());
        let verdict = decide(&compiled, &map, Surface::Commands, &line.line, Some("/srv/agents/app")).unwrap();
        if verdict.tier != want {
            let part = verdict.deciding().map(|p| format!("{} {:?}", p.part.text, p.part.notes)).unwrap_or_default();
            differences.push(format!("{:?}: {}, expected {} ({part})", line.line, shown(verdict.tier), shown(want)));
        }
    }
    eprintln!("{} of {} lines differ", differences.len(), lines.len());
    assert!(lines.len() >= 300);
    assert!(differences.len() * 100 <= lines.len() * 3, "{}", differences.join("\n"));
}
