//! Any text as a line: it is taken apart and judged by a small policy, and whatever it is, some
//! things hold. `tests/lines.rs` replays the seeds and checks more.

#![no_main]

use std::cell::RefCell;
use std::path::Path;

use libfuzzer_sys::fuzz_target;
use polctl::compile::{Compiled, compile};
use polctl::decide::{Decider, MAX_PARTS, Setting, judge};
use polctl::model::{RUNGS, Surface, ZoneMatcher};
use polctl::parse::{load, parse_line};
use polctl::source::{DirTree, SourceMap};

/// The policy, loaded once.
struct Court {
    compiled: &'static Compiled,
    zones: ZoneMatcher,
    decider: Decider<'static>,
}

impl Court {
    fn new() -> Self {
        // libFuzzer's hook ends the process at any panic, also at one of the grammar that polctl
        // catches; one that is not caught ends it all the same.
        drop(std::panic::take_hook());
        let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/shell/lines");
        let map: &'static mut SourceMap = Box::leak(Box::default());
        let mut findings = Vec::new();
        let set = load(&DirTree::new(dir, None), map, &mut findings).expect("the policy is read");
        let set = set.unwrap_or_else(|| panic!("the policy is refused: {findings:?}"));
        let compiled: &'static Compiled = Box::leak(Box::new(compile(set, Vec::new())));
        Court { compiled, zones: compiled.set.config.zones.matcher(), decider: Decider::new(compiled, map) }
    }

    /// The rung at which the line may run, and whether all of it was read.
    fn judge(&mut self, line: &str) -> (u8, bool) {
        let setting = Setting {
            trusted_dirs: &self.compiled.set.config.trusted_dirs,
            zones: &self.zones,
            cwd: Some("/srv/agents/app"),
            agent: "agent",
            host: "host",
            external: false,
        };
        let verdict = judge(&mut self.decider, Surface::Commands, line, &setting).expect("Cedar answers");
        assert!(!verdict.parts.is_empty() && verdict.parts.len() <= MAX_PARTS);
        let read = verdict.parts.iter().all(|judgement| !judgement.part.is_unread());
        (verdict.tier.unwrap_or(RUNGS), read)
    }
}

thread_local! {
    static COURT: RefCell<Court> = RefCell::new(Court::new());
}

fuzz_target!(|data: &[u8]| {
    let line = String::from_utf8_lossy(data);
    let doubts = parse_line(&line).doubts.len();
    COURT.with_borrow_mut(|court| {
        let (rank, read) = court.judge(&line);
        // What is not understood is never of tier 0 or 1.
        assert!(rank >= 2 || doubts == 0 && read);
        if doubts == 0 && read {
            // Nothing in front of a line makes it pass more easily.
            let (longer, read) = court.judge(&format!("true\n{line}"));
            assert!(longer >= if read { rank } else { rank.min(2) });
        }
    });
});
