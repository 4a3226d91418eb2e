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
    (tape(16), prop::collection::vec(tape(100), 1..6), prop::collection::vec(tape(140), 1..=REQUESTS))
        .prop_map(|(settings, rules, requests)| Case { settings, rules, requests })
}

fn set_of(case: &Case) -> common::Files {
    let mut settings = Tape::new(&case.settings);
    let (head, theme) = (maps::settings(&mut settings), maps::theme(&mut settings));
    let rules: Vec<_> = case.rules.iter().map(|bytes| maps::themed(&mut Tape::new(bytes), None, &theme)).collect();
    maps::files(&head, &rules)
}

#[test]
fn cedar_and_the_document_agree() {
    let cases_to_run = if nightly() { 200_000 } else { 300 };
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
    assert!(narrow * 5 > all, "only {narrow} of {all} match narrowly");
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

/// Points on which the product once differed from the document.
mod settled {
    use super::common::{cedar, compiled, one_map};
    use polctl::decide::Decider;
    use polctl::model::{CommandRequest, EgressRequest, Request, Scheme, Surface, Word};
    use polctl::source::SourceMap;

    /// What Cedar says at each rung of a request under one map.
    fn decide(surface: &str, rules: &str, request: &Request) -> Vec<bool> {
        let mut map = SourceMap::new();
        let compiled = compiled(&one_map(surface, 2, rules), &mut map);
        cedar(&mut Decider::new(&compiled, &map), request)
    }

    fn command(program: &str, words: &[Word]) -> Request {
        Request::Command(CommandRequest::new(Surface::Commands, program, words.to_vec()))
    }

    fn known(words: &[&str]) -> Vec<Word> {
        words.iter().map(|word| Word::Known((*word).to_owned())).collect()
    }

    /// "Guards": no argument … whose zone is unknown. `./$X` may name any file.
    #[test]
    fn an_unknown_argument_is_not_permitted_where_zones_are_guarded() {
        let request = command("cat", &[Word::Value]);
        assert_eq!(
            decide("commands", "## Tier 1\n\n- `cat **`\n  - when: `dynamic=any`\n", &request),
            [false, false, true, true]
        );
    }

    /// "Facts": `names=credential` on the restricting side: one of them lies in such a zone, or may.
    #[test]
    fn an_unknown_argument_may_name_a_credential() {
        let rules = "## Tier 1\n\n- `cat **`\n  - when: `dynamic=any`, `names=any`\n\n## Tier 4\n\n- `cat **`\n  - when: `names=credential`\n";
        assert_eq!(decide("commands", rules, &command("cat", &[Word::Value])), [false; 4]);
        assert_eq!(decide("commands", rules, &command("cat", &[Word::Open])), [false; 4]);
    }

    /// "Two readings": broad holds for some reading, and `../a` may lead into no zone.
    #[test]
    fn an_unresolved_path_may_name_nothing() {
        let rules = "## Tier 4\n\n- `cat **`\n  - when: `names=none`\n";
        assert_eq!(decide("commands", rules, &command("cat", &known(&["../a"]))), [false; 4]);
    }

    /// "Egress patterns" with DESIGN 3.5: IPv4-mapped addresses are refused.
    #[test]
    fn a_mapped_address_is_refused() {
        let request = Request::Egress(EgressRequest {
            agent: "a".into(),
            machine: "a".into(),
            method: "GET".into(),
            scheme: Scheme::Https,
            host: "::ffff:1.1.1.1".into(),
            address: "::ffff:1.1.1.1".parse().ok(),
            peer: None,
            port: 443,
            segments: vec!["a".into()],
            secrets: [].into(),
            external: false,
        });
        assert_eq!(decide("egress", "## Tier 1\n\n- `GET https://1.1.1.1/**`\n", &request), [false; 4]);
    }

    /// "with, only, unless": `git --force` has `--force`, whatever else the rule is about.
    #[test]
    fn a_rule_about_programs_of_both_spellings_permits() {
        for rule in [
            "- `{git,find} **`\n  - with: `--force`",
            "- `{git,find} **`\n  - only: `--force`",
            "- `{git,g*} **`\n  - only: `--force`",
        ] {
            let allowed = decide("commands", &format!("## Tier 1\n\n{rule}\n"), &command("git", &known(&["--force"])));
            assert_eq!(allowed, [false, true, true, true], "{rule}");
        }
    }

    /// "Command patterns": a wildcard reaches no program that the table knows hazards of.
    #[test]
    fn a_wildcard_permits_no_program_with_hazards() {
        let rules = "## Tier 1\n\n- `g* **`\n- `* --version`\n";
        let decided = |name: &str, word: &str| decide("commands", rules, &command(name, &known(&[word])));
        assert_eq!(decided("git", "log"), [false, false, true, true]);
        assert_eq!(decided("gnome", "log"), [false, true, true, true]);
        assert_eq!(decided("git", "--version"), [false, true, true, true]);
    }

    /// "with, only, unless": for `find`, `-xf` is exactly that option, so `-x -f` is not.
    #[test]
    fn a_rule_about_programs_of_both_spellings_restricts_no_more() {
        let rules = "## Tier 4\n\n- `{git,find} **`\n  - with: `-xf`\n";
        assert_eq!(decide("commands", rules, &command("find", &known(&["-x", "-f"]))), [false, false, true, true]);
    }

    /// "Two readings": nothing outside `only` is certain, since `--forc` may be `--force`.
    #[test]
    fn an_abbreviation_may_be_inside_only() {
        let rules = "## Tier 4\n\n- `git **`\n  - only: `--force`\n";
        assert_eq!(decide("commands", rules, &command("git", &known(&["--forc"]))), [false; 4]);
    }

    /// "Guards": an absolute path that is in no zone is in zone `elsewhere`.
    #[test]
    fn one_path_of_an_argument_may_be_elsewhere() {
        let rules = "## Tier 1\n\n- `cat **`\n  - when: `names=workspace`\n";
        assert_eq!(decide("commands", rules, &command("cat", &known(&["/w/a:/opt"]))), [false, false, true, true]);
    }

    /// "Guards": … or a short option that it is glued to; `--key` is none.
    #[test]
    fn a_long_option_is_glued_to_nothing() {
        let request = command("git", &known(&["--key"]));
        assert_eq!(decide("commands", "## Tier 1\n\n- `git **`\n", &request), [false, true, true, true]);
    }
}
