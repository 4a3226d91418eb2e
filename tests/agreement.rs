//! The two halves agree: a witness that a comparison prints, decided as a line by the old and
//! the new policy, shows exactly the decisions that were printed.

#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stderr, reason = "a test that cannot go on fails")]

mod common;

use std::path::Path;

use common::maps::{files, rule, settings};
use common::{Files, Tape, finish, nightly, runner};
use polctl::analyze::diff;
use polctl::compile::{Compiled, compile};
use polctl::decide::{Decider, Setting, egress_request, judge, judge_request};
use polctl::diag::{Code, Evidence, Finding};
use polctl::model::{Request, Surface};
use polctl::parse::load;
use polctl::source::{DirTree, SourceMap};
use proptest::test_runner::TestCaseError;

/// What `polctl explain` says of a witness under its own options.
fn explained(compiled: &Compiled, map: &SourceMap, evidence: &Evidence, replay: &[String]) -> Option<u8> {
    let option = |name: &str, usual: &'static str| -> String {
        let at = replay.iter().position(|word| word == name);
        at.and_then(|at| replay.get(at + 1)).cloned().unwrap_or_else(|| usual.to_owned())
    };
    let cwd = option("--cwd", "unknown");
    let zones = compiled.set.config.zones.matcher();
    let (agent, host) = (option("--agent", "agent"), option("--host", "host"));
    let external = replay.iter().any(|word| word == "--external");
    let setting = Setting {
        trusted_dirs: &compiled.set.config.trusted_dirs,
        zones: &zones,
        cwd: (cwd != "unknown").then_some(cwd.as_str()),
        agent: &agent,
        host: &host,
        external,
    };
    // What a setting changes is shown by a command.
    let surface = Surface::from_name(&evidence.surface).unwrap_or(Surface::Commands);
    let mut decider = Decider::new(compiled, map);
    if surface == Surface::Egress {
        let mut request = egress_request(&evidence.witness).unwrap();
        (request.agent, request.machine, request.external) = (agent.clone(), host.clone(), external);
        return judge_request(&mut decider, Request::Egress(request), &evidence.witness, &setting).unwrap().tier;
    }
    judge(&mut decider, surface, &evidence.witness, &setting).unwrap().tier
}

/// Counts of witnesses that were decided again, and of those for which no line was found.
fn agree(old: &Compiled, new: &Compiled, map: &SourceMap, findings: &[Finding]) -> (usize, Vec<String>) {
    let (mut decided, mut without) = (0, Vec::new());
    for finding in findings.iter().filter(|f| matches!(f.code, Code::WIDENING | Code::NARROWING)) {
        let evidence = finding.evidence.as_ref().unwrap();
        let Some(replay) = &evidence.replay else {
            without.push(finding.message.clone());
            continue;
        };
        // An address that a name resolves to is known to the proxy only.
        if evidence.assumes.iter().any(|assumed| assumed.contains("resolves")) {
            continue;
        }
        let tiers = (explained(old, map, evidence, replay), explained(new, map, evidence, replay));
        assert_eq!(tiers, (evidence.old_tier, evidence.new_tier), "{}", finding.message);
        decided += 1;
    }
    (decided, without)
}

#[test]
fn the_fleet_history_is_explained_as_it_was_compared() {
    let version = |n: usize, map: &mut SourceMap| {
        let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("fixtures/fleet/v{n}"));
        compile(load(&DirTree::new(&dir, Some(format!("v{n}"))), map, &mut Vec::new()).unwrap().unwrap(), Vec::new())
    };
    let mut total = 0;
    for n in 1..12 {
        let mut map = SourceMap::new();
        let (old, new) = (version(n, &mut map), version(n + 1, &mut map));
        let (decided, without) = agree(&old, &new, &map, &diff(&old, &new, &map).unwrap());
        assert!(without.is_empty(), "v{n}: {without:?}");
        total += decided;
    }
    assert!(total >= 25, "{total}");
}

/// A set, and the same set with a rule gone, added or replaced.
fn pair(tape: &mut Tape<'_>) -> (Files, Files) {
    let settings = settings(tape);
    let count = 1 + tape.below(4);
    let rules: Vec<_> = (0..count).map(|_| rule(tape, None)).collect();
    let mut edited = rules.clone();
    let at = tape.below(edited.len());
    match tape.below(3) {
        0 => edited.push(rule(tape, None)),
        1 if edited.len() > 1 => drop(edited.remove(at)),
        _ => edited.insert(at, rule(tape, None)),
    }
    (files(&settings, &rules), files(&settings, &edited))
}

/// Random pairs of versions, edited as the engine's test edits them.
#[test]
fn random_pairs_are_explained_as_they_were_compared() {
    let mut runner = runner(if nightly() { 5_000 } else { 80 });
    let (decided, without) = (std::cell::Cell::new(0), std::cell::Cell::new(0));
    let result = runner.run(&proptest::collection::vec(proptest::num::u8::ANY, 0..600), |bytes| {
        let mut tape = Tape::new(&bytes);
        let (old, new) = pair(&mut tape);
        let mut map = SourceMap::new();
        let (old, new) = (common::compiled(&old, &mut map), common::compiled(&new, &mut map));
        let findings = diff(&old, &new, &map).map_err(|e| TestCaseError::fail(e.to_string()))?;
        let (again, none) = agree(&old, &new, &map, &findings);
        decided.set(decided.get() + again);
        none.iter().for_each(|text| eprintln!("no line: {text}"));
        without.set(without.get() + none.len());
        Ok(())
    });
    finish(result);
    let (decided, without) = (decided.get(), without.get());
    // A carrier may be allowed where nothing that it could carry is, and an input that is only known
    // at run time has a type but not always a spelling: such requests are shown without a line. The
    // generator makes many carriers; of the fleet's witnesses (above) every one has its line.
    assert!(without * 4 <= decided, "{without} of {} witnesses have no line", decided + without);
}
