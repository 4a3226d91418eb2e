//! The compiled Cedar against a second reading of `docs/policy-format.md`.
//!
//! Random tier maps, random requests near their rules: the concrete Cedar authorizer and
//! `common/reading.rs` must agree at every rung. `POLCTL_NIGHTLY=1` runs many more cases,
//! `POLCTL_SEED=N` repeats a run; the seed is printed.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, clippy::print_stderr, clippy::string_slice)]

mod common;

use std::cell::Cell;

use common::{Tape, cedar, compiled, finish, maps, nightly, read, reading, requests, runner};
use polctl::decide::Decider;
use polctl::model::RUNGS;
use polctl::source::SourceMap;
use proptest::prelude::*;

/// Bytes from which a set and its requests are made.
#[derive(Clone, Debug)]
struct Case {
    settings: Vec<u8>,
    rules: Vec<Vec<u8>>,
    requests: Vec<Vec<u8>>,
}

/// Requests for each set.
const REQUESTS: usize = 12;

fn cases() -> impl Strategy<Value = Case> {
    let tape = |len| prop::collection::vec(any::<u8>(), len);
    (tape(5), prop::collection::vec(tape(70), 1..6), prop::collection::vec(tape(90), 1..=REQUESTS))
        .prop_map(|(settings, rules, requests)| Case { settings, rules, requests })
}

fn set_of(case: &Case) -> common::Files {
    let rules: Vec<_> = case.rules.iter().map(|bytes| maps::rule(&mut Tape::new(bytes), None)).collect();
    maps::files(&maps::settings(&mut Tape::new(&case.settings)), &rules)
}

#[test]
fn cedar_and_the_document_agree() {
    let cases_to_run = if nightly() { 200_000 } else { 3_000 };
    let result = runner(cases_to_run).run(&cases(), |case| {
        let files = set_of(&case);
        let mut map = SourceMap::new();
        let compiled = compiled(&files, &mut map);
        let mut decider = Decider::new(&compiled, &map);
        for bytes in &case.requests {
            let request = requests::near(&mut Tape::new(bytes), &compiled.set);
            let (product, document) = (cedar(&mut decider, &request), read(&compiled.set, &request));
            prop_assert!(
                product == document,
                "Cedar {product:?}, document {document:?}\n{}\n{request:?}{files:?}",
                request.to_line()
            );
        }
        Ok(())
    });
    finish(result);
}

/// The cases above mean something: a good share of the requests match rules, in both readings
/// and in only one of them, and are allowed at some rung.
#[test]
fn generated_requests_match_rules() {
    let counts = Cell::new([0_u32; 4]);
    let result = runner(400).run(&cases(), |case| {
        let mut map = SourceMap::new();
        let set = common::parsed(&set_of(&case), &mut map);
        for bytes in &case.requests {
            let request = requests::near(&mut Tape::new(bytes), &set);
            let rules: Vec<_> = set.rules.iter().filter(|rule| rule.surface == request.surface()).collect();
            let matches = |rule: &polctl::model::Rule| {
                (reading::narrow(rule, &set.config, &request, 1), reading::broad(rule, &set.config, &request))
            };
            let found: Vec<_> = rules.iter().map(|rule| matches(rule)).collect();
            let unmatched = set.surfaces[&request.surface()].unmatched.number();
            let [all, narrow, broad_only, decided] = counts.get();
            counts.set([
                all + 1,
                narrow + u32::from(found.iter().any(|(narrow, _)| *narrow)),
                broad_only + u32::from(found.iter().any(|(narrow, broad)| *broad && !narrow)),
                decided
                    + u32::from((0..RUNGS).any(|rung| reading::allows(&set, &request, rung) != (rung >= unmatched))),
            ]);
        }
        Ok(())
    });
    finish(result);
    let [all, narrow, broad_only, decisive] = counts.get();
    eprintln!("{all} requests: {narrow} match narrowly, {broad_only} only broadly, {decisive} decided by a rule");
    assert!(narrow * 4 > all, "only {narrow} of {all} match narrowly");
    assert!(broad_only * 10 > all, "only {broad_only} of {all} match only broadly");
    assert!(decisive * 6 > all, "only {decisive} of {all} are decided by a rule");
}

/// "Egress patterns": `[198.51.100.0/24]` a network.
#[test]
fn a_network_is_read() {
    let body = "## Tier 1\n\n- `GET https://[198.51.100.0/24]/**`\n- `GET https://[2001:db8::/32]:8443/a`\n";
    let set = common::parsed(&common::one_map("egress", 2, body), &mut SourceMap::new());
    assert_eq!(set.rules.len(), 2);
}
