//! What the property tests share: policy sets in memory, and generators.
//!
//! Everything random is drawn from a [`Tape`] of bytes that proptest makes and shrinks: a byte
//! of 0 is always the plainest choice, and the end of the tape reads as 0.

#![allow(
    dead_code,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::panic,
    clippy::print_stderr,
    reason = "shared by several tests, each of which uses a part; a test that cannot go on fails"
)]

pub mod lines;
pub mod maps;
pub mod reading;
pub mod requests;

use std::collections::BTreeMap;

use polctl::compile::{Compiled, compile};
use polctl::decide::Decider;
use polctl::model::{PolicySet, RUNGS, Request};
use polctl::parse::load;
use polctl::source::{SourceError, SourceMap, Tree};
use proptest::test_runner::{Config, RngSeed, TestError, TestRunner};

/// Bytes that decide what is generated.
#[derive(Clone, Debug)]
pub struct Tape<'a> {
    bytes: &'a [u8],
}

impl<'a> Tape<'a> {
    /// A tape from its start.
    pub fn new(bytes: &'a [u8]) -> Self {
        Tape { bytes }
    }

    fn byte(&mut self) -> u8 {
        let (first, rest) = self.bytes.split_first().unwrap_or((&0, &[]));
        self.bytes = rest;
        *first
    }

    /// A number below `n`.
    pub fn below(&mut self, n: usize) -> usize {
        usize::from(self.byte()) % n
    }

    /// A number below `n`, which may be large.
    pub fn wide(&mut self, n: usize) -> usize {
        (usize::from(self.byte()) + 256 * usize::from(self.byte())) % n
    }

    /// True in `percent` of 100 cases.
    pub fn chance(&mut self, percent: usize) -> bool {
        usize::from(self.byte()) * 100 >= 256 * (100 - percent)
    }

    /// One of these.
    pub fn one<T: Copy>(&mut self, values: &[T]) -> T {
        *self.pick(values)
    }

    /// A reference to one of these.
    pub fn pick<'b, T>(&mut self, values: &'b [T]) -> &'b T {
        &values[self.below(values.len())]
    }

    /// Some of these, at least one, in their order.
    pub fn some(&mut self, values: &[&str]) -> Vec<String> {
        let first = self.below(values.len());
        let keep: Vec<bool> = values.iter().map(|_| self.chance(30)).collect();
        let picked = values.iter().enumerate().filter(|(at, _)| *at == first || keep[*at]);
        picked.map(|(_, value)| (*value).to_owned()).collect()
    }
}

/// The files of a policy set, in memory.
#[derive(Clone, PartialEq, Eq)]
pub struct Files(pub BTreeMap<String, String>);

impl std::fmt::Debug for Files {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|(name, text)| write!(f, "\n=== {name}\n{text}"))
    }
}

impl Tree for Files {
    fn label(&self) -> String {
        "memory".into()
    }

    fn origin(&self) -> Option<String> {
        None
    }

    fn read(&self, path: &str) -> Result<Vec<u8>, SourceError> {
        let missing = || SourceError::NotFound { path: path.into(), tree: self.label() };
        self.0.get(path).map(|text| text.as_bytes().to_vec()).ok_or_else(missing)
    }

    fn list(&self, _: &str) -> Result<Vec<String>, SourceError> {
        Ok(self.0.keys().cloned().collect())
    }
}

/// Parses a set; panics with the findings when it is not accepted.
pub fn parsed(files: &Files, map: &mut SourceMap) -> PolicySet {
    let mut findings = Vec::new();
    match load(files, map, &mut findings).unwrap() {
        Some(set) => set,
        None => panic!("generated files are refused: {findings:#?}{files:?}"),
    }
}

/// Parses and compiles a set.
pub fn compiled(files: &Files, map: &mut SourceMap) -> Compiled {
    compile(parsed(files, map), Vec::new())
}

/// A set with one map, of this surface and with this body below the front matter.
pub fn one_map(surface: &str, unmatched: u8, body: &str) -> Files {
    let map = format!("---\npolctl: v1\nsurface: {surface}\nunmatched: {unmatched}\n---\n\n{body}\n");
    let config = format!("{}policies: [map.md]\n", maps::CONFIG);
    Files([("polctl.yaml".to_owned(), config), ("map.md".to_owned(), map)].into())
}

/// What Cedar says at each rung.
pub fn cedar(decider: &mut Decider<'_>, request: &Request) -> Vec<bool> {
    let facts = request.facts(&decider.compiled().set.config.zones.matcher());
    (0..RUNGS).map(|rung| decider.allows(request.surface(), &facts, rung).unwrap()).collect()
}

/// What the reading says at each rung.
pub fn read(set: &PolicySet, request: &Request) -> Vec<bool> {
    (0..RUNGS).map(|rung| reading::allows(set, request, rung)).collect()
}

/// A runner with a printed seed: `POLCTL_SEED`; or else always the same one, so that a change is
/// answered for and not the hour; or with `POLCTL_NIGHTLY=1` one from the clock.
pub fn runner(cases: u32) -> TestRunner {
    let seed = std::env::var("POLCTL_SEED").map_or_else(
        |_| {
            if nightly() {
                u64::try_from(std::time::UNIX_EPOCH.elapsed().unwrap().as_nanos() % 1_000_000_007).unwrap()
            } else {
                20_261_130
            }
        },
        |seed| seed.parse().unwrap(),
    );
    eprintln!("POLCTL_SEED={seed}");
    TestRunner::new(Config {
        cases,
        rng_seed: RngSeed::Fixed(seed),
        failure_persistence: None,
        max_shrink_iters: 20_000,
        max_shrink_time: 30_000,
        ..Config::default()
    })
}

/// Fails with the reason of the smallest case; its bytes would say nothing.
pub fn finish<T>(result: Result<(), TestError<T>>) {
    match result {
        Err(TestError::Fail(reason, _)) => panic!("{reason}"),
        Err(TestError::Abort(reason)) => panic!("{reason}"),
        Ok(()) => {}
    }
}

/// Whether to run many more cases.
pub fn nightly() -> bool {
    std::env::var("POLCTL_NIGHTLY").is_ok_and(|value| value == "1")
}
