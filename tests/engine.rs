//! The exact engine against brute force.
//!
//! Random pairs of small policy sets, the second a mutation of the first; every request of a
//! small universe is decided in both versions by `common/reading.rs`. What that finds newly
//! allowed the engine must report, and every witness of the engine must be newly allowed by
//! the reading and by Cedar. `POLCTL_NIGHTLY=1` runs many more pairs.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, clippy::print_stderr, clippy::string_slice)]

mod common;

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use common::maps::{RuleText, files};
use common::{Files, Tape, cedar, compiled, finish, nightly, read, reading, runner};
use polctl::analyze::exact::{Bound, Space};
use polctl::analyze::{Side, diff, newly_allowed};
use polctl::compile::Compiled;
use polctl::decide::Decider;
use polctl::model::{CommandRequest, EgressRequest, PolicySet, RUNGS, Request, Rule, Scheme, Surface, Word};
use polctl::source::SourceMap;
use proptest::prelude::*;

const WORDS: [&str; 9] = ["a", "b", "-f", "-x", "-fx", "--force", "--", "", "/etc/x"];
// Not `git` until `options_before_the_sub_command_belong_to_programs_that_have_them` passes.
const PROGRAMS: [&str; 2] = ["tar", "a"];

/// A rule in parts, so that it can be changed and rewritten.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Parts {
    tier: usize,
    /// Programs; methods on the egress surface.
    heads: Vec<String>,
    /// Scheme, host and port on the egress surface.
    authority: String,
    words: Vec<Vec<String>>,
    rest: bool,
    slash: bool,
    attributes: Vec<(&'static str, Vec<String>)>,
    form: usize,
}

/// A value of an attribute that a rule of this surface may carry.
fn value(tape: &mut Tape<'_>, key: &str) -> String {
    let values: &[&str] = match key {
        "with" => &["--force", "-f", "-x", "-fx", "a", "/etc/*", "-*", "*b"],
        "unless" => &["-x", "--force", "-f", "b", "/etc/x", "--f*"],
        "only" => &["-f", "--force", "-x", "-fx"],
        "agents" | "hosts" => &["agent", "other", "host"],
        "run as" => &["root", "www"],
        "secret" => &["vault://kv/a#t", "bitwarden://x"],
        _ => &["names=any", "dynamic=any", "env=FOO", "writes=any", "external=yes", "external=no", "names=policy"],
    };
    tape.one(values).to_owned()
}

fn attribute(tape: &mut Tape<'_>, surface: usize) -> (&'static str, Vec<String>) {
    let keys: &[&str] = match surface {
        0 => &["with", "unless", "only", "when", "with", "agents", "hosts"],
        1 => &["with", "unless", "only", "run as", "with", "run as", "when"],
        _ => &["secret", "when", "agents", "secret"],
    };
    let key = match tape.one(keys) {
        "with" => "with",
        "unless" => "unless",
        "only" => "only",
        "when" => "when",
        "agents" => "agents",
        "hosts" => "hosts",
        "run as" => "run as",
        _ => "secret",
    };
    if key == "when" {
        let egress = ["external=yes", "external=no"];
        return (key, vec![if surface == 2 { tape.one(&egress).to_owned() } else { value(tape, key) }]);
    }
    let count = 1 + tape.below(3);
    (key, (0..count).map(|_| value(tape, key)).collect())
}

fn word(tape: &mut Tape<'_>, surface: usize) -> Vec<String> {
    let one = |tape: &mut Tape<'_>| {
        tape.one(if surface == 2 {
            &["a", "b", "*", "a*"]
        } else {
            &["a", "b", "*", "-*", "--force", "-f", "/etc/*", "a*"]
        })
        .to_owned()
    };
    let mut out = vec![one(tape)];
    if surface != 2 && tape.chance(30) {
        out.push(one(tape));
    }
    out
}

fn authority(tape: &mut Tape<'_>) -> String {
    tape.one(&[
        "https://a.example",
        "https://**.a.example",
        "https://*.a.example",
        "https://b.a.example",
        "https://1.1.1.1",
        "https://a.example:8443",
        "http://a.example",
    ])
    .to_owned()
}

fn heads(tape: &mut Tape<'_>, surface: usize) -> Vec<String> {
    match surface {
        2 => tape.some(&["GET", "POST"]),
        _ => tape.some(&PROGRAMS),
    }
}

fn parts(tape: &mut Tape<'_>, surface: usize) -> Parts {
    let tier = tape.one(&[1, 3, 0, 4, 2]);
    let words = (0..tape.one(&[1, 0, 2])).map(|_| word(tape, surface)).collect();
    let count = tape.one(&[0, 1, 1, 0, 2]);
    let mut out = Parts {
        tier,
        heads: heads(tape, surface),
        authority: if surface == 2 { authority(tape) } else { String::new() },
        words,
        rest: tape.chance(60),
        slash: tape.chance(10),
        attributes: Vec::new(),
        form: tape.below(3),
    };
    for _ in 0..count {
        add(&mut out, attribute(tape, surface));
    }
    out
}

/// Adds an attribute; only `with` may stand twice.
fn add(rule: &mut Parts, (key, values): (&'static str, Vec<String>)) {
    if key != "with" {
        rule.attributes.retain(|(other, _)| *other != key);
    }
    rule.attributes.push((key, values));
}

impl Parts {
    fn text(&self, surface: usize) -> RuleText {
        let braced = |values: &[String]| match values {
            [one] => one.clone(),
            many => format!("{{{}}}", many.join(",")),
        };
        let pattern = if surface == 2 {
            let mut path: String = self.words.iter().map(|word| format!("/{}", word[0])).collect();
            if self.rest {
                path.push_str("/**");
            } else if path.is_empty() || self.slash {
                path.push('/');
            }
            format!("{} {}{path}", self.heads.join(","), self.authority)
        } else {
            let mut words = vec![braced(&self.heads)];
            words.extend(self.words.iter().map(|word| braced(word)));
            if self.rest {
                words.push("**".into());
            }
            words.join(" ")
        };
        RuleText { surface, tier: self.tier, pattern, attributes: self.attributes.clone(), form: self.form }
    }
}

/// Changes something that may matter.
fn mutate(tape: &mut Tape<'_>, surface: usize, rules: &mut Vec<Parts>) {
    let at = tape.below(rules.len());
    match tape.below(9) {
        0 => rules[at].tier = tape.below(5),
        1 if !rules[at].attributes.is_empty() => {
            let which = tape.below(rules[at].attributes.len());
            rules[at].attributes.remove(which);
        }
        2 if !rules[at].attributes.is_empty() => {
            let which = tape.below(rules[at].attributes.len());
            let (key, values) = &mut rules[at].attributes[which];
            if values.len() > 1 {
                values.remove(tape.below(values.len()));
            } else if *key != "when" {
                values.push(value(tape, key));
            }
        }
        1..4 => {
            let attribute = attribute(tape, surface);
            add(&mut rules[at], attribute);
        }
        4 => rules.insert(at, parts(tape, surface)),
        5 if rules.len() > 1 => {
            rules.remove(at);
        }
        6 if !rules[at].words.is_empty() => {
            let which = tape.below(rules[at].words.len());
            rules[at].words[which] = word(tape, surface);
        }
        5..8 => rules[at].rest = !rules[at].rest,
        _ if surface == 2 => rules[at].authority = authority(tape),
        _ => rules[at].heads = heads(tape, surface),
    }
}

/// Rewrites without a change of meaning: other order, braces and methods apart, items in
/// another order, another place in Markdown.
fn rewrite(tape: &mut Tape<'_>, surface: usize, rules: &[Parts]) -> Vec<Parts> {
    let mut out = Vec::new();
    for rule in rules {
        let mut rule = rule.clone();
        rule.form = tape.below(3);
        for (key, values) in &mut rule.attributes {
            if *key != "when" {
                let by = tape.below(values.len());
                values.rotate_left(by);
            }
        }
        let by = tape.below(rule.attributes.len().max(1));
        rule.attributes.rotate_left(by);
        let split = tape.below(rule.words.len() + 1);
        let alternatives = rule.words.get(split).unwrap_or(&rule.heads).clone();
        if alternatives.len() > 1 && (surface != 2 || split >= rule.words.len()) && tape.chance(70) {
            for alternative in alternatives {
                let mut part = rule.clone();
                *part.words.get_mut(split).unwrap_or(&mut part.heads) = vec![alternative];
                out.push(part);
            }
        } else {
            out.push(rule);
        }
    }
    for at in (1..out.len()).rev() {
        out.swap(at, tape.below(at + 1));
    }
    out
}

/// Every request of the universe of a surface.
fn universe(surface: usize) -> Vec<Request> {
    if surface == 2 { egress_universe() } else { command_universe([Surface::Commands, Surface::Sudo][surface]) }
}

fn command_universe(surface: Surface) -> Vec<Request> {
    let mut lists: Vec<Vec<Word>> = vec![Vec::new()];
    let mut from = 0;
    for _ in 0..3 {
        let to = lists.len();
        for at in from..to {
            for word in WORDS {
                let mut longer = lists[at].clone();
                longer.push(Word::Known(word.to_owned()));
                lists.push(longer);
            }
        }
        from = to;
    }
    let one = |name: &str| -> BTreeSet<String> { [name.to_owned()].into() };
    let mut out = Vec::new();
    for program in PROGRAMS {
        for words in &lists {
            let plain = CommandRequest::new(surface, program, words.clone());
            out.push(plain.clone());
            if words.len() > 1 {
                continue;
            }
            out.extend([
                CommandRequest { dynamic: true, ..plain.clone() },
                CommandRequest { env: one("FOO"), ..plain.clone() },
                CommandRequest { writes: one("elsewhere"), ..plain.clone() },
                CommandRequest { writes: one("tmp"), ..plain.clone() },
                CommandRequest { external: true, ..plain.clone() },
                CommandRequest { trusted: false, ..plain.clone() },
                CommandRequest { agent: "other".into(), ..plain.clone() },
                CommandRequest { host: "other".into(), ..plain.clone() },
            ]);
            if surface == Surface::Sudo {
                out.push(CommandRequest { run_as: "www".into(), ..plain.clone() });
            }
        }
    }
    out.into_iter().map(Request::Command).collect()
}

fn egress_universe() -> Vec<Request> {
    let mut paths: Vec<Vec<String>> = vec![Vec::new()];
    for first in ["a", "b", "ab"] {
        paths.push(vec![first.to_owned()]);
        paths.extend(["a", "b", ""].map(|second| vec![first.to_owned(), second.to_owned()]));
    }
    let mut out = Vec::new();
    for (scheme, host, port) in [
        (Scheme::Https, "a.example", 443),
        (Scheme::Https, "b.a.example", 443),
        (Scheme::Https, "1.1.1.1", 443),
        (Scheme::Https, "a.example", 8443),
        (Scheme::Http, "a.example", 80),
    ] {
        for method in ["GET", "POST"] {
            for path in &paths {
                for (secret, external, agent) in [
                    ("", false, "agent"),
                    ("vault://kv/a#t", false, "agent"),
                    ("bitwarden://x", false, "agent"),
                    ("", true, "agent"),
                    ("", false, "other"),
                    ("vault://kv/a#t", true, "agent"),
                ] {
                    out.push(Request::Egress(EgressRequest {
                        agent: agent.into(),
                        machine: "host".into(),
                        method: method.into(),
                        scheme,
                        host: host.into(),
                        address: host.parse().ok(),
                        peer: None,
                        port,
                        segments: path.clone(),
                        secrets: Some(secret.to_owned()).filter(|s| !s.is_empty()).into_iter().collect(),
                        external,
                    }));
                }
            }
        }
    }
    out
}

/// What the rules of a set say of each request of a universe: narrow at rung 0, narrow above,
/// broad. Rules that both versions have are read once.
#[derive(Default)]
struct Memory(BTreeMap<(u8, String), Vec<[bool; 3]>>);

impl Memory {
    fn of(&mut self, rule: &Rule, set: &PolicySet, requests: &[Request]) -> &[[bool; 3]] {
        self.0.entry((rule.tier.number(), rule.normalised())).or_insert_with(|| {
            let one = |request: &Request| {
                let config = &set.config;
                let broad = reading::broad(rule, config, request);
                [0, 1].map(|rung| reading::narrow(rule, config, request, rung)).into_iter().chain([broad])
            };
            requests.iter().map(|r| one(r).collect::<Vec<_>>().try_into().unwrap()).collect()
        })
    }

    /// The rungs at which each request is allowed, as bits.
    fn decide(&mut self, set: &PolicySet, requests: &[Request]) -> Vec<u8> {
        let surface = requests[0].surface();
        let mut permitted: Vec<u8> = vec![0; requests.len()];
        let mut forbidden = permitted.clone();
        let Some(info) = set.surfaces.get(&surface) else { return permitted };
        let from = |tier: u8| 0b1111_u8 & (0b1111 << tier);
        for rule in set.rules.iter().filter(|rule| rule.surface == surface) {
            let tier = rule.tier.number();
            for (at, [inspect, narrow, broad]) in self.of(rule, set, requests).iter().enumerate() {
                permitted[at] |= from(tier) & (u8::from(*inspect) | if *narrow { 0b1110 } else { 0 });
                if *broad {
                    forbidden[at] |= 0b1111 & !from(tier);
                }
            }
        }
        let unmatched = from(info.unmatched.number());
        (0..requests.len())
            .map(|at| {
                let guarded = (0..RUNGS).filter(|rung| reading::guardrail(&set.config, &requests[at], *rung));
                let guarded = guarded.fold(0, |bits, rung| bits | 1 << rung);
                (permitted[at] | unmatched) & !forbidden[at] & !guarded
            })
            .collect()
    }
}

/// Bytes from which a pair of sets is made.
#[derive(Clone, Debug)]
struct Case {
    settings: Vec<u8>,
    rules: Vec<Vec<u8>>,
    change: Vec<u8>,
}

fn cases() -> impl Strategy<Value = Case> {
    let tape = |len| prop::collection::vec(any::<u8>(), len);
    (tape(4), prop::collection::vec(tape(40), 2..=4), tape(60)).prop_map(|(settings, rules, change)| Case {
        settings,
        rules,
        change,
    })
}

impl Case {
    fn surface(&self) -> usize {
        [0, 0, 0, 2, 1][usize::from(self.settings[0]) % 5]
    }

    fn rules(&self) -> Vec<Parts> {
        self.rules.iter().map(|bytes| parts(&mut Tape::new(bytes), self.surface())).collect()
    }

    fn files(&self, rules: &[Parts]) -> Files {
        let unmatched = [2, 3, 4][usize::from(self.settings[1]) % 3];
        let texts: Vec<RuleText> = rules.iter().map(|rule| rule.text(self.surface())).collect();
        files(&(common::maps::CONFIG.to_owned(), [unmatched; 3]), &texts)
    }
}

/// Ends a default run in time: cases past the budget pass, unless one failed before and is
/// being shrunk.
struct Budget {
    start: Instant,
    failed: Cell<bool>,
    slowest: Cell<Duration>,
}

impl Budget {
    fn new() -> Self {
        Budget { start: Instant::now(), failed: Cell::new(false), slowest: Cell::new(Duration::ZERO) }
    }

    fn run(&self, case: impl FnOnce() -> Result<(), TestCaseError>) -> Result<(), TestCaseError> {
        if !nightly() && !self.failed.get() && self.start.elapsed() > Duration::from_secs(25) {
            return Ok(());
        }
        let start = Instant::now();
        let result = case();
        self.slowest.set(self.slowest.get().max(start.elapsed()));
        self.failed.set(self.failed.get() || result.is_err());
        result
    }
}

/// The rungs that findings of a code speak of; whether any is inconclusive.
fn reported(old: &Compiled, new: &Compiled, map: &SourceMap) -> (BTreeSet<u8>, BTreeSet<u8>, bool) {
    let findings = diff(old, new, map).unwrap();
    let rungs = |code: &str| {
        let own = findings.iter().filter(|finding| finding.code.as_str() == code);
        own.flat_map(|finding| finding.evidence.iter().flat_map(|e| e.rungs.iter().copied())).collect()
    };
    let open = findings.iter().any(|finding| finding.code.as_str() == "inconclusive");
    (rungs("widening"), rungs("narrowing"), open)
}

/// The witnesses of a direction. Each must be newly allowed at its rungs by Cedar and by the
/// reading; at which rungs else it is, some witness must say.
fn witnesses(from: &Compiled, to: &Compiled, map: &SourceMap) -> Result<BTreeSet<u8>, TestCaseError> {
    let zones = to.set.config.zones.matcher();
    let spaces: BTreeMap<Surface, Space<'_>> =
        Surface::ALL.into_iter().map(|surface| (surface, Space::new(surface, &zones, &to.set.config.zones))).collect();
    let (mut from_decider, mut to_decider) = (Decider::new(from, map), Decider::new(to, map));
    let changes =
        newly_allowed(&spaces, &Side::new(from), &Side::new(to), (&mut from_decider, &mut to_decider), Bound::USUAL)
            .unwrap();
    let (mut rungs, mut witnessed) = (BTreeSet::new(), BTreeSet::new());
    for change in &changes.found {
        let request = &change.witness;
        let newly = |before: Vec<bool>, after: Vec<bool>| -> BTreeSet<u8> {
            (0..RUNGS).filter(|rung| after[usize::from(*rung)] && !before[usize::from(*rung)]).collect()
        };
        let by_cedar = newly(cedar(&mut from_decider, request), cedar(&mut to_decider, request));
        let by_reading = newly(read(&from.set, request), read(&to.set, request));
        prop_assert!(
            by_cedar == by_reading && !change.rungs.is_empty() && change.rungs.is_subset(&by_cedar),
            "witness {}: engine {:?}, Cedar {by_cedar:?}, document {by_reading:?}\n{request:?}",
            request.to_line(),
            change.rungs
        );
        witnessed.extend(by_cedar);
        rungs.extend(&change.rungs);
    }
    prop_assert!(!changes.open.is_empty() || rungs == witnessed, "{rungs:?} are reported, {witnessed:?} are witnessed");
    Ok(rungs)
}

/// What brute force finds: at each rung, a request that is allowed in the second version only.
fn brute(from: &[u8], to: &[u8]) -> BTreeMap<u8, usize> {
    let mut out = BTreeMap::new();
    for rung in 0..RUNGS {
        let found = from.iter().zip(to).position(|(from, to)| to & !from & (1 << rung) != 0);
        out.extend(found.map(|at| (rung, at)));
    }
    out
}

#[test]
fn the_engine_agrees_with_brute_force() {
    let universes: [Vec<Request>; 3] = [0, 1, 2].map(universe);
    // Pairs, wider, narrower, equal, inconclusive, and findings beyond the universe.
    let counts = Cell::new([0_u32; 6]);
    let pairs = if nightly() { 20_000 } else { 150 };
    let budget = Budget::new();
    let result = runner(pairs).run(&cases(), |case| {
        budget.run(|| {
            let rules = case.rules();
            let mut changed = rules.clone();
            let mut tape = Tape::new(&case.change);
            for _ in 0..tape.one(&[1, 1, 2]) {
                mutate(&mut tape, case.surface(), &mut changed);
            }
            let (old_files, new_files) = (case.files(&rules), case.files(&changed));
            let mut map = SourceMap::new();
            let (old, new) = (compiled(&old_files, &mut map), compiled(&new_files, &mut map));
            let requests = &universes[case.surface()];
            let mut memory = Memory::default();
            let (before, after) = (memory.decide(&old.set, requests), memory.decide(&new.set, requests));
            let (wider, narrower, open) = reported(&old, &new, &map);
            for (from, to, reported, what) in
                [(&before, &after, &wider, "widening"), (&after, &before, &narrower, "narrowing")]
            {
                for (rung, at) in brute(from, to) {
                    prop_assert!(
                        reported.contains(&rung) || open,
                        "no {what} at rung {rung}, but {}\n{:?}\nold{old_files:?}\nnew{new_files:?}",
                        requests[at].to_line(),
                        requests[at]
                    );
                }
            }
            let context = |error: TestCaseError| match error {
                TestCaseError::Fail(reason) => {
                    TestCaseError::fail(format!("{reason}\nold{old_files:?}\nnew{new_files:?}"))
                }
                reject @ TestCaseError::Reject(_) => reject,
            };
            let found = witnesses(&old, &new, &map).map_err(context)?;
            prop_assert_eq!(&found, &wider, "`diff` and `newly_allowed` differ");
            witnesses(&new, &old, &map).map_err(context)?;
            let beyond = wider.iter().any(|rung| !brute(&before, &after).contains_key(rung));
            let mut sums = counts.get();
            let row =
                [true, !wider.is_empty(), !narrower.is_empty(), wider.is_empty() && narrower.is_empty(), open, beyond];
            sums.iter_mut().zip(row).for_each(|(sum, holds)| *sum += u32::from(holds));
            counts.set(sums);
            Ok(())
        })
    });
    finish(result);
    let [all, wider, narrower, equal, open, beyond] = counts.get();
    eprintln!(
        "{all} pairs: {wider} wider, {narrower} narrower, {equal} equal, {open} inconclusive, {beyond} wider beyond the universe, slowest {:?}",
        budget.slowest.get()
    );
    if all < 30 {
        return eprintln!("too few pairs in the time given to say more");
    }
    assert!(wider * 5 > all && narrower * 5 > all && equal * 10 > all, "the pairs are too much alike");
    // Among few pairs chance decides; among many it must be one in twenty.
    assert!(open * if nightly() { 20 } else { 8 } < all, "the engine gives up too often");
    assert!(beyond * 4 < all, "the universe is too small for the mutations");
}

/// Versions that say the same in other words differ in nothing.
#[test]
fn rewrites_are_clean() {
    let counts = Cell::new([0_u32; 2]);
    let budget = Budget::new();
    let result = runner(if nightly() { 20_000 } else { 150 }).run(&cases(), |case| {
        budget.run(|| {
            let rules = case.rules();
            let rewritten = rewrite(&mut Tape::new(&case.change), case.surface(), &rules);
            let (old_files, new_files) = (case.files(&rules), case.files(&rewritten));
            let mut map = SourceMap::new();
            let (old, new) = (compiled(&old_files, &mut map), compiled(&new_files, &mut map));
            let (wider, narrower, open) = reported(&old, &new, &map);
            prop_assert!(
                wider.is_empty() && narrower.is_empty(),
                "wider at {wider:?}, narrower at {narrower:?}\nold{old_files:?}\nnew{new_files:?}"
            );
            let [all, inconclusive] = counts.get();
            counts.set([all + 1, inconclusive + u32::from(open)]);
            Ok(())
        })
    });
    finish(result);
    let [all, inconclusive] = counts.get();
    eprintln!("{all} rewrites, {inconclusive} inconclusive, slowest {:?}", budget.slowest.get());
    assert!(all < 30 || inconclusive * 10 < all, "the engine gives up too often");
}

/// Braces of programs are read program by program: `a a` is no cluster of options, `tar a` is.
#[test]
fn words_of_a_rule_are_read_as_its_programs_do() {
    let old = common::one_map("commands", 2, "## Tier 1\n\n- `{tar,a} r`\n\n## Tier 3\n\n- `{a*,npm} i`\n");
    let rules = "- `tar r`\n- `a r`\n\n## Tier 3\n\n- `a* i`\n- `npm i`\n";
    let new = common::one_map("commands", 2, &format!("## Tier 1\n\n{rules}"));
    let mut map = SourceMap::new();
    let (old, new) = (compiled(&old, &mut map), compiled(&new, &mut map));
    assert_eq!(reported(&old, &new, &map), (BTreeSet::new(), BTreeSet::new(), false));
}

/// A rule split at its braces says the same: `a` takes no options before a sub-command, so no
/// request for it carries one, whatever the other program of the braces does.
#[test]
fn options_before_the_sub_command_belong_to_programs_that_have_them() {
    let old = common::one_map("commands", 2, "## Tier 4\n\n- `{git,a} a`\n  - with: `--force`\n");
    let rules = "- `git a`\n  - with: `--force`\n- `a a`\n  - with: `--force`\n";
    let new = common::one_map("commands", 2, &format!("## Tier 4\n\n{rules}"));
    let mut map = SourceMap::new();
    let (old, new) = (compiled(&old, &mut map), compiled(&new, &mut map));
    assert_eq!(reported(&old, &new, &map), (BTreeSet::new(), BTreeSet::new(), false));
}
