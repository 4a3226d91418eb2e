//! The fleet's history: for each step the stated verdict, causes and witnesses.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::panic,
    reason = "a test that cannot go on fails"
)]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use polctl::analyze::{diff, lint};
use polctl::compile::{Compiled, compile};
use polctl::decide::{Decider, Setting, requests};
use polctl::diag::{Code, Finding, Level};
use polctl::model::{Request, Surface};
use polctl::parse::load;
use polctl::source::{DirTree, SourceMap};
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct History {
    steps: Vec<Step>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Step {
    from: String,
    to: String,
    #[expect(dead_code, reason = "for the reader of the fixture")]
    intent: String,
    #[expect(dead_code, reason = "for the reader of the fixture")]
    note: String,
    verdict: String,
    widenings: Vec<Entry>,
    narrowings: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    surface: String,
    #[serde(default)]
    lowest_tier: Option<u8>,
    #[expect(dead_code, reason = "for the reader of the fixture")]
    cause: String,
    example: String,
    witness: String,
    #[serde(default)]
    agent: Option<String>,
    #[serde(default)]
    host: Option<String>,
    #[serde(default)]
    external: bool,
}

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/fleet").join(name)
}

fn history() -> History {
    let text = std::fs::read_to_string(fixture("history.yaml")).unwrap();
    serde_saphyr::from_str(&text).unwrap()
}

fn version(name: &str, map: &mut SourceMap) -> Compiled {
    let mut findings = Vec::new();
    let set = load(&DirTree::new(fixture(name), Some(name.to_owned())), map, &mut findings).unwrap();
    assert!(findings.is_empty(), "{name}: {findings:?}");
    compile(set.unwrap(), Vec::new())
}

/// The findings of a direction, as surface, lowest rung and witness.
fn of(findings: &[Finding], codes: &[Code]) -> BTreeSet<(String, Option<u8>, String)> {
    findings
        .iter()
        .filter(|f| codes.contains(&f.code))
        .map(|f| {
            let evidence = f.evidence.as_ref().unwrap();
            (evidence.surface.clone(), evidence.rungs.first().copied(), evidence.witness.clone())
        })
        .collect()
}

/// A pair of rules that came in two steps of the history, and that is a hint and no fault.
const HINT: &str =
    "2 rules differ only in their methods, and could be one: `GET,HEAD https://packages.example.org/debian/**`";

#[test]
fn every_version_is_clean_by_itself() {
    for n in 1..=12 {
        let mut map = SourceMap::new();
        let compiled = version(&format!("v{n}"), &mut map);
        let found: Vec<(Code, Level, String)> =
            lint(&compiled, &map).unwrap().into_iter().map(|f| (f.code, f.level, f.message)).collect();
        let hint = (Code::MERGEABLE, Level::Note, HINT.to_owned());
        assert_eq!(found, if n < 3 { Vec::new() } else { vec![hint] }, "v{n}");
        let examples = compiled.set.rules.iter().map(|r| r.examples.len()).sum::<usize>();
        assert!(compiled.set.rules.len() > 250 && examples > 400, "v{n}: a realistic size");
    }
}

#[test]
fn every_step_has_the_stated_verdict_and_witnesses() {
    let history = history();
    assert_eq!(history.steps.len(), 11);
    for step in &history.steps {
        let name = format!("{} to {}", step.from, step.to);
        let mut map = SourceMap::new();
        let (old, new) = (version(&step.from, &mut map), version(&step.to, &mut map));
        let findings = diff(&old, &new, &map).unwrap();
        assert!(findings.iter().all(|f| f.code != Code::INCONCLUSIVE), "{name}");
        let widened = of(&findings, &[Code::WIDENING, Code::CONFIG_WIDENING]);
        let stated: BTreeSet<_> =
            step.widenings.iter().map(|e| (e.surface.clone(), e.lowest_tier, e.witness.clone())).collect();
        assert_eq!(widened, stated, "{name}: widenings");
        let narrowed: BTreeSet<_> =
            of(&findings, &[Code::NARROWING]).into_iter().map(|(surface, _, witness)| (surface, witness)).collect();
        let stated: BTreeSet<_> = step.narrowings.iter().map(|e| (e.surface.clone(), e.witness.clone())).collect();
        assert_eq!(narrowed, stated, "{name}: narrowings");
        let verdict = match (widened.is_empty(), narrowed.is_empty()) {
            (true, true) => "clean",
            (false, true) => "widening",
            (true, false) => "narrowing",
            (false, false) => "mixed",
        };
        assert_eq!(verdict, step.verdict, "{name}");
    }
}

/// The author's own example of each change, decided by Cedar on both versions.
#[test]
fn every_stated_example_changes_its_decision() {
    let mut decided = 0;
    for step in &history().steps {
        let mut map = SourceMap::new();
        let (old, new) = (version(&step.from, &mut map), version(&step.to, &mut map));
        let entries = step.widenings.iter().map(|e| (e, true)).chain(step.narrowings.iter().map(|e| (e, false)));
        for (entry, widens) in entries {
            let surface = Surface::from_name(&entry.surface).unwrap_or(Surface::Commands);
            // Each version sees the line through its own zones.
            let tier = |compiled: &Compiled| {
                let zones = compiled.set.config.zones.matcher();
                let trusted_dirs = &compiled.set.config.trusted_dirs;
                let setting =
                    Setting { trusted_dirs, zones: &zones, cwd: None, agent: "agent", host: "host", external: false };
                let mut found = requests(surface, &entry.example, &setting).unwrap();
                let facts = as_stated(found.remove(0), entry).facts(&zones);
                Decider::new(compiled, &map).tier(surface, &facts).unwrap().map_or(4, u64::from)
            };
            let (before, after) = (tier(&old), tier(&new));
            assert!(if widens { after < before } else { before < after }, "{}: {before} {after}", entry.example);
            if let (true, Some(lowest)) = (widens, entry.lowest_tier) {
                assert_eq!(after, u64::from(lowest), "{}", entry.example);
            }
            decided += 1;
        }
    }
    assert!(decided >= 30, "{decided}");
}

fn as_stated(request: Request, entry: &Entry) -> Request {
    match request {
        Request::Command(mut r) => {
            r.external = entry.external;
            r.agent = entry.agent.clone().unwrap_or(r.agent);
            r.host = entry.host.clone().unwrap_or(r.host);
            Request::Command(r)
        }
        egress @ Request::Egress(_) => egress,
    }
}
