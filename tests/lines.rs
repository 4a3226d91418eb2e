//! What holds for every line: nothing panics, work is bounded by the text, and no way to write
//! or to put together commands makes them pass more easily.
//!
//! Random lines from a grammar and hostile texts (`common/lines.rs`) are judged by the policy in
//! `fixtures/shell/lines`. `POLCTL_NIGHTLY=1` runs many more cases, `POLCTL_SEED=N` repeats a
//! run; the seed is printed. The seeds of the fuzz target in `fuzz` are replayed here, too.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test that cannot go on fails"
)]

mod common;

use std::cell::{Cell, RefCell};
use std::path::PathBuf;
use std::rc::Rc;

use cedar_policy::{PolicyId, PolicySet as CedarSet};
use common::lines::{self, Code, Manner};
use common::{Tape, finish, maps, nightly, requests, runner};
use polctl::compile::{CompileError, Compiled, bundle, compile, parse_guardrails, render};
use polctl::decide::{
    Bundle, Decider, MAX_PARTS, MAX_WEIGHT, Part, Role, Setting, Slices, Verdict, judge, judge_request, parts,
};
use polctl::model::{Facts, RUNGS, Request, Surface, Word, ZoneMatcher};
use polctl::parse::{MAX_LINE, Node, Redirect, Script, ShellWord, Value, load, parse_line, quoted};
use polctl::source::{DirTree, SourceMap};
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// A policy and what asks it.
struct Court {
    compiled: &'static Compiled,
    zones: ZoneMatcher,
    decider: RefCell<Decider<'static>>,
}

/// What a line was judged to be, and where.
type Tier = Option<u8>;

impl Court {
    fn of(compiled: Compiled, map: SourceMap) -> Self {
        // Lives as long as the test.
        let (compiled, map): (&'static Compiled, &'static SourceMap) =
            (Box::leak(Box::new(compiled)), Box::leak(Box::new(map)));
        let zones = compiled.set.config.zones.matcher();
        Court { compiled, zones, decider: RefCell::new(Decider::new(compiled, map)) }
    }

    /// The policy in `fixtures/shell/NAME`.
    fn fixture(name: &str) -> Self {
        let mut map = SourceMap::new();
        let mut findings = Vec::new();
        let tree = DirTree::new(root().join("fixtures/shell").join(name), None);
        let set = load(&tree, &mut map, &mut findings).unwrap().unwrap_or_else(|| panic!("{findings:?}"));
        Court::of(compile(set, Vec::new()), map)
    }

    fn setting<'a>(&'a self, cwd: Option<&'a str>) -> Setting<'a> {
        Setting {
            trusted_dirs: &self.compiled.set.config.trusted_dirs,
            zones: &self.zones,
            cwd,
            agent: "a",
            host: "a",
            external: false,
        }
    }

    fn judge(&self, line: &str, cwd: Option<&str>) -> Verdict {
        let mut decider = self.decider.borrow_mut();
        guarded(line, || judge(&mut *decider, Surface::Commands, line, &self.setting(cwd)).unwrap())
    }

    fn tier(&self, line: &str, cwd: Option<&str>) -> Tier {
        self.judge(line, cwd).tier
    }

    fn parts(&self, line: &str, cwd: Option<&str>) -> Vec<Part> {
        guarded(line, || parts(Surface::Commands, line, &self.setting(cwd)))
    }

    /// A verdict in one line, for messages.
    fn told(&self, line: &str, cwd: Option<&str>) -> String {
        let verdict = self.judge(line, cwd);
        let parts =
            verdict.parts.iter().map(|p| format!("\n    {} {:?} {:?}", shown(p.tier), p.part.text, p.part.notes));
        format!("{line:?}: {}{}", shown(verdict.tier), parts.collect::<String>())
    }
}

fn shown(tier: Tier) -> String {
    tier.map_or_else(|| "denied".to_owned(), |tier| format!("tier {tier}"))
}

/// Denied is the strictest.
fn rank(tier: Tier) -> u8 {
    tier.unwrap_or(RUNGS)
}

/// Bytes for a generator.
fn tapes(len: usize) -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 0..len)
}

/// `normal` cases, or many more.
fn cases(normal: u32) -> u32 {
    if nightly() { normal * 50 } else { normal }
}

/// Where lines may start.
fn cwd(tape: &mut Tape<'_>) -> Option<&'static str> {
    tape.one(&[Some("/srv/agents/app"), None, Some("/etc/polctl"), Some("/"), Some("~/.ssh")])
}

/// Lines that people and agents wrote: those of the fixtures.
fn written() -> Vec<String> {
    #[derive(serde::Deserialize)]
    struct Row {
        line: String,
    }
    let read = |path: &str| -> Vec<Row> {
        serde_saphyr::from_str(&std::fs::read_to_string(root().join("fixtures/shell").join(path)).unwrap()).unwrap()
    };
    let rows = read("bypass.yaml").into_iter().chain(read("ordinary/lines.yaml"));
    rows.map(|row| row.line).collect()
}

/// Whether the line is understood to its end.
fn complete(line: &str) -> bool {
    guarded(line, || parse_line(line)).doubts.is_empty()
}

/// Whether anything runs. Alone, a line that runs nothing is judged as `:`; beside others it adds
/// nothing.
fn runs(nodes: &[Node]) -> bool {
    nodes.iter().any(|node| match node {
        Node::Simple(simple) => !simple.words.is_empty() || !simple.redirects.is_empty(),
        Node::Group(_, inner) | Node::Function(_, inner) => runs(inner),
    })
}

/// A panic would not say for which line.
fn guarded<T>(line: &str, work: impl FnOnce() -> T) -> T {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).unwrap_or_else(|_| panic!("panics: {line:?}"))
}

mod bounds {
    //! Nothing panics, and nothing grows without a limit.

    use super::*;

    /// How much a tree holds: nodes, and bytes of texts.
    #[derive(Clone, Copy, Debug, Default)]
    struct Size {
        nodes: usize,
        bytes: usize,
        depth: usize,
    }

    impl Size {
        fn value(&mut self, value: &Value) {
            self.bytes += match value {
                Value::Known(text) | Value::Starts(text) | Value::Files(text) => text.len(),
                Value::Any => 1,
            };
        }

        fn word(&mut self, word: &ShellWord) {
            self.value(&word.value);
            self.bytes += word.raw.len() + word.tail.len();
        }

        fn nodes(&mut self, nodes: &[Node], depth: usize) {
            self.depth = self.depth.max(depth);
            for node in nodes {
                self.nodes += 1;
                match node {
                    Node::Simple(simple) => {
                        self.bytes += simple.text.len();
                        simple.words.iter().for_each(|word| self.word(word));
                        for assignment in &simple.assignments {
                            self.bytes += assignment.name.len();
                            self.value(&assignment.value);
                        }
                        for redirect in &simple.redirects {
                            match redirect {
                                Redirect::Read(word) | Redirect::Write(word) => self.word(word),
                                Redirect::Text(value) => self.value(value),
                                Redirect::Descriptor | Redirect::Process(_) => self.bytes += 1,
                            }
                        }
                    }
                    Node::Group(_, inner) => self.nodes(inner, depth + 1),
                    Node::Function(name, inner) => {
                        self.bytes += name.len();
                        self.nodes(inner, depth + 1);
                    }
                }
            }
        }

        fn of(script: &Script) -> Self {
            let mut size = Size::default();
            size.nodes(&script.nodes, 1);
            size.bytes += script.doubts.iter().map(|doubt| doubt.text.len() + doubt.what.len()).sum::<usize>();
            size.nodes += script.doubts.len();
            size
        }
    }

    /// Bytes that the parts of a line hold.
    fn weight(parts: &[Part]) -> usize {
        let words = |request: &Request| match request {
            Request::Command(request) => {
                let word = |word: &Word| match word {
                    Word::Known(text) | Word::Files(text) => text.len(),
                    Word::Value | Word::Open => 1,
                };
                request.words.iter().map(word).sum::<usize>() + request.globals.iter().map(String::len).sum::<usize>()
            }
            Request::Egress(_) => 0,
        };
        let notes = |part: &Part| part.notes.iter().chain(&part.via).map(String::len).sum::<usize>();
        parts.iter().map(|part| part.text.len() + words(&part.request) + notes(part)).sum()
    }

    /// Nodes for each byte of the line: a byte is at most a command, and stands in a group or two.
    const NODES: usize = 4;
    /// Bytes in the tree for each byte of the line and each level: text, raw word, value, a note.
    const TREE: usize = 16;
    /// Bytes in the parts for each byte of the line and each level.
    const PARTS: usize = 64;
    /// Behind a program that only a variable names every word may begin a command, and the text for
    /// a group is that of each command in it: these grow with the square, up to a limit.
    const WORD: usize = 32;
    /// A line of nothing has a note or two.
    const BASE: usize = 512;

    fn check(court: &Court, line: &str) -> Result<(), TestCaseError> {
        let script = guarded(line, || parse_line(line));
        let size = Size::of(&script);
        // Only a line with so many openers that no stack would do may say this: else it is a panic.
        let lost = script.doubts.iter().any(|doubt| doubt.what.contains("opens more groups than polctl follows"));
        prop_assert!(!lost || line.len() > 1 << 15, "the reader panics: {line:?}");
        prop_assert!(size.nodes <= NODES * (line.len() + 1), "{} nodes: {line:?}", size.nodes);
        let square = line.len().pow(2);
        let most = (TREE * line.len() * size.depth.max(1) + BASE).max(square);
        prop_assert!(size.bytes <= most, "{} bytes in the tree, {most} expected: {line:?}", size.bytes);
        let found = court.parts(line, None);
        prop_assert!(!found.is_empty() && found.len() <= MAX_PARTS, "{} parts: {line:?}", found.len());
        let most = (PARTS * line.len() * size.depth.max(1) + BASE).max(WORD * square).min(2 * MAX_WEIGHT);
        prop_assert!(weight(&found) <= most, "{} bytes in the parts, {most} expected: {line:?}", weight(&found));
        let verdict = court.judge(line, None);
        prop_assert!(verdict.parts.len() == found.len());
        // What is not read is never of tier 0 or 1.
        let doubts = !script.doubts.is_empty() || found.iter().any(Part::is_unread);
        prop_assert!(!doubts || rank(verdict.tier) >= 2, "{}", court.told(line, None));
        Ok(())
    }

    /// No text makes the reader or the judge panic, or hold more than a multiple of the text.
    #[test]
    fn hostile_texts_are_judged() {
        let court = Court::fixture("lines");
        let written = written();
        finish(
            runner(cases(600))
                .run(&tapes(90), |bytes| check(&court, &lines::hostile(&mut Tape::new(&bytes), &written))),
        );
    }

    /// The same for whole lines.
    #[test]
    fn whole_lines_are_judged() {
        let court = Court::fixture("lines");
        finish(
            runner(cases(300)).run(&tapes(120), |bytes| check(&court, &lines::line(&mut Tape::new(&bytes), 4).text())),
        );
    }

    /// A line that grows: three texts that stay, and two between them that are repeated.
    type Growing = [String; 5];

    fn growing(tape: &mut Tape<'_>, written: &[String]) -> Growing {
        let frames = [
            ("", "", ""),
            ("env --zz ", "", ""),
            ("$X ", "", ""),
            ("echo '", "", ""),
            ("{ ", "", "; }"),
            ("( ", " ) <<E\n", "\nE\n"),
            ("{ ls; ", "} ", ""),
            ("sh -c '", "", "'"),
            ("echo $(", ")", ""),
            ("f() { ", "; }; f ", ""),
            ("xargs ", " | ", ""),
            ("echo ${x:-", "}", ""),
            ("cat <<E\n", "\nE\n", ""),
            ("a=( ", " ) ", ""),
            ("((", "))", ""),
            ("case x in ", " esac", ""),
        ];
        let units = [
            "a ",
            "ls; ",
            "> f ",
            "'b' ",
            "$(ls) ",
            "| cat ",
            "X=1 ",
            "{a,b} ",
            "ls && ",
            "&& ls ",
            "a) ls;; ",
            "\n",
            "# a\n",
            "<<E ",
            "`ls` ",
            "x,",
            "${y:-z}",
            "env ",
            "ls & ",
            "\\\n",
            "2>&1 ",
            "f() { ls; }; ",
        ];
        let unit = |tape: &mut Tape<'_>| match tape.below(6) {
            0 => lines::hostile(tape, written).chars().take(60).collect(),
            1 => lines::line(tape, 1).text() + "\n",
            _ => tape.one(&units).to_owned(),
        };
        let (head, middle, tail) = tape.one(&frames);
        let (first, second) = (unit(tape), unit(tape));
        [
            head.to_owned(),
            first,
            middle.to_owned(),
            if tape.chance(50) { second } else { String::new() },
            tail.to_owned(),
        ]
    }

    /// Twice the text holds at most eight times as much (each word a candidate, with the words
    /// behind it, with or without an assignment): never a power more, up to the limits of a line.
    fn grows_with_the_text(court: &Court, texts: &Growing, unit: usize) -> Result<(), TestCaseError> {
        let [head, first, middle, second, tail] = texts;
        let held = |n: usize| {
            let line = format!("{head}{}{middle}{}{tail}", first.repeat(n), second.repeat(n));
            let (tree, parts) = (Size::of(&guarded(&line, || parse_line(&line))), court.parts(&line, None));
            [tree.nodes, tree.bytes, parts.len(), weight(&parts)]
        };
        let [one, two, four] = [unit, 2 * unit, 4 * unit].map(held);
        for (at, what) in ["nodes", "bytes in the tree", "parts", "bytes in the parts"].iter().enumerate() {
            if two[at] < one[at] {
                // Refused as a whole from there on.
                continue;
            }
            let (once, twice) = (two[at] - one[at], four[at].saturating_sub(two[at]));
            prop_assert!(
                twice <= 9 * once + BASE,
                "{what}: {}, {}, {} for {unit}, {} and {} times {first:?} and {second:?} in {:?}",
                one[at],
                two[at],
                four[at],
                2 * unit,
                4 * unit,
                format!("{head}…{middle}…{tail}")
            );
        }
        Ok(())
    }

    #[test]
    fn what_is_held_grows_with_the_text() {
        let (court, written) = (Court::fixture("lines"), written());
        finish(
            runner(cases(60))
                .run(&tapes(90), |bytes| grows_with_the_text(&court, &growing(&mut Tape::new(&bytes), &written), 16)),
        );
    }

    /// The same for texts whose commands share a text or the words behind them.
    #[test]
    fn what_once_grew_faster_grows_with_the_text() {
        let court = Court::fixture("lines");
        let mut wrong = Vec::new();
        for [head, first, middle, second, tail] in [
            ["echo '", "a ", "", "", ""],
            ["$X ", "a ", "", "", ""],
            ["env --zz ", "a ", "", "", ""],
            ["{ ", "ls; ", "} <<E\n", "some text ", "\nE\n"],
            ["{ ", "ls; ", "} ", "> f ", ""],
            ["sh -c '", "a ", " && ", "b ", ""],
        ] {
            let texts = [head, first, middle, second, tail].map(str::to_owned);
            wrong.extend(grows_with_the_text(&court, &texts, 40).err().map(|error| error.to_string()));
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    /// Whether the lines are taken apart before long. Not a measurement: what does not end in this
    /// time takes one that doubles with each opener.
    fn end(lines: Vec<String>) -> bool {
        let (done, ended) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let court = Court::fixture("lines");
            for line in lines {
                let found = court.parts(&line, None);
                assert!(!found.is_empty() && found.len() <= MAX_PARTS);
            }
            done.send(())
        });
        ended.recv_timeout(std::time::Duration::from_secs(20)).is_ok()
    }

    /// What is opened many times, and closed or not, is read or refused.
    #[test]
    fn deep_lines_end() {
        let mut wrong = Vec::new();
        for (open, close) in lines::OPENERS {
            for (opened, closed) in [(40, 40), (40, 0), (40, 39), (100, 100)] {
                let line = format!("{}ls{}", open.repeat(opened), close.repeat(closed));
                let document = format!("cat <<E\n{line}\nE\n");
                let spaced = format!("cat <<E\n{}\nE\n", format!("{open}a | b ").repeat(opened));
                if !end(vec![document, spaced, format!("echo {line}"), line]) {
                    wrong.push(format!("{open:?} {opened} times, {close:?} {closed} times"));
                    // Longer ones do not end either, and burn what the others need.
                    break;
                }
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    /// A substitution in a here-document that only seems to be closed is one that is open.
    #[test]
    fn open_substitutions_in_here_documents_end() {
        let seeming = [
            "",
            "$'\\')'",
            "${x#)}",
            "${x:-\")\"}",
            "\"${x:-\")\"}",
            "$[ ) ]",
            "<<F\n)\nF\n",
            "# )\n",
            ";# )\n",
            "')'",
            "\")\"",
            "\\)",
            "`)`",
            "case x in a)",
            "esac )",
            "\"`)\"",
            "((",
            "{ )",
            "<(a )",
        ];
        let mut wrong = Vec::new();
        for unit in seeming {
            for open in ["$(a ", "$((a ", "$(", "`$(a "] {
                let lines = [12, 40].map(|n| format!("cat <<E\n{}\nE\n", format!("{open}{unit} ").repeat(n)));
                if !end(lines.to_vec()) {
                    wrong.push(format!("{open}{unit}"));
                }
            }
        }
        assert!(wrong.is_empty(), "{wrong:?}");
    }

    /// Long lines of one kind are read, or refused as a whole.
    #[test]
    fn long_lines_end() {
        let units = [
            "a ",
            "ls;",
            "'",
            "\\",
            "\n",
            "#",
            "<<",
            "<<E ",
            "a|",
            "\"",
            "[[ ",
            "if ",
            "case x in ",
            "! ",
            "x=(",
            "{a,b}",
        ];
        let long = |unit: &&str| !end(vec![unit.repeat(1_600 / unit.len())]);
        let wrong: Vec<&str> = units.into_iter().filter(long).collect();
        assert!(wrong.is_empty(), "{wrong:?}");
        let court = Court::fixture("lines");
        assert!(rank(court.tier(&"x".repeat(MAX_LINE + 1), None)) >= 2);
    }

    /// The seeds of the fuzz target, and whatever it has found.
    #[test]
    fn the_seeds_of_the_fuzz_target_are_judged() {
        let court = Court::fixture("lines");
        let mut count = 0;
        for entry in std::fs::read_dir(root().join("fuzz/corpus/line")).unwrap() {
            let path = entry.unwrap().path();
            let text = String::from_utf8_lossy(&std::fs::read(&path).unwrap()).into_owned();
            if let Err(error) = check(&court, &text) {
                panic!("{}: {error}", path.display());
            }
            count += 1;
        }
        assert!(count >= 60, "{count} seeds");
    }
}

mod together {
    //! Putting lines together and wrapping them never lowers a tier.

    use super::*;

    /// The lines mean something: most are understood, and every tier is there.
    #[test]
    fn generated_lines_are_understood() {
        let court = Court::fixture("lines");
        let counts = Cell::new([0_usize; 7]);
        finish(runner(500).run(&tapes(80), |bytes| {
            let line = lines::line(&mut Tape::new(&bytes), 2).text();
            let mut now = counts.get();
            now[6] += 1;
            if complete(&line) {
                now[5] += 1;
                now[usize::from(rank(court.tier(&line, Some("/srv/agents/app"))))] += 1;
            }
            counts.set(now);
            Ok(())
        }));
        let [tiers @ .., understood, all] = counts.get();
        eprintln!("{understood} of {all} lines are understood; by tier {tiers:?}");
        assert!(understood * 10 > all * 9, "only {understood} of {all} are understood");
        assert!(tiers.iter().all(|n| n * 60 > all), "{tiers:?}");
    }

    /// Two lines in one. What stands in a pipe runs in a shell of its own, so it stands in braces.
    fn both(tape: &mut Tape<'_>, a: &Code, b: &Code) -> Code {
        let group = b.around("{ ", "; }");
        match tape.below(14) {
            0 => a.joined(" && ", b),
            1 => a.joined("; ", b),
            2 => a.joined(" || ", b),
            3 => a.joined("\n", b),
            4 => a.joined(" & ", b),
            5 => a.joined(" | ", &group),
            6 => a.joined(" |& ", &group),
            7 => a.around("( ", " )").joined("; ", b),
            8 => a.around("{ ", "; }").joined(" && ", b),
            9 => a.around("if ", "; then ").joined("", &b.around("", "; fi")),
            10 => a.around("while ", "; do ").joined("", &b.around("", "; done")),
            11 => a.around("f() { ", "; }").joined("; ", b),
            12 => a.joined("; ", &b.around("( ", " )")),
            _ => a.around("! { ", "; }").joined(" || ", &group),
        }
    }

    /// Whether the line may change the directory for what follows: see [`directories`].
    fn moves(line: &str) -> bool {
        line.split(|c: char| !c.is_alphanumeric()).any(|word| matches!(word, "cd" | "pushd" | "popd"))
    }

    /// How many lines were compared, and how many of them were not understood.
    #[derive(Default)]
    struct Tally {
        all: Cell<usize>,
        lost: Cell<usize>,
    }

    impl Tally {
        /// The line is at least as strict as its parts were; what is not understood need only be
        /// of tier 2, since the rules that restrict are then tried on guesses.
        fn check(&self, court: &Court, parts: &[&str], line: &str, cwd: Option<&str>) -> Result<(), TestCaseError> {
            self.all.set(self.all.get() + 1);
            let verdict = court.judge(line, cwd);
            let mut most = parts
                .iter()
                .filter(|part| runs(&parse_line(part).nodes))
                .map(|part| rank(court.tier(part, cwd)))
                .max()
                .unwrap_or(0);
            if !complete(line) || verdict.parts.iter().any(|p| p.part.is_unread()) {
                self.lost.set(self.lost.get() + 1);
                most = 2.min(most);
            }
            let told =
                || parts.iter().chain([&line]).map(|line| format!("\n  {}", court.told(line, cwd))).collect::<String>();
            prop_assert!(rank(verdict.tier) >= most, "in {cwd:?}{}", told());
            Ok(())
        }

        fn finish(&self) {
            let (all, lost) = (self.all.get(), self.lost.get());
            assert!(all > 100 && lost * 20 < all, "{lost} of {all} lines are not understood");
        }
    }

    /// `a && b`, `a | b`, `(a); b` … are at least as strict as `a` and as `b`.
    #[test]
    fn two_lines_are_as_strict_as_each() {
        let (court, tally) = (Court::fixture("lines"), Tally::default());
        let strategy = (tapes(60), tapes(60), tapes(8));
        finish(runner(cases(500)).run(&strategy, |(a, b, how)| {
            let mut how = Tape::new(&how);
            let cwd = cwd(&mut how);
            let (a, b) = (lines::line(&mut Tape::new(&a), 2), lines::line(&mut Tape::new(&b), 2));
            let (first, second) = (a.text(), b.text());
            if moves(&first) || moves(&second) || !complete(&first) || !complete(&second) {
                return Ok(());
            }
            tally.check(&court, &[&first, &second], &both(&mut how, &a, &b).text(), cwd)
        }));
        tally.finish();
    }

    /// The same for the lines of the fixtures, put together as texts.
    #[test]
    fn two_written_lines_are_as_strict_as_each() {
        let (court, tally) = (Court::fixture("lines"), Tally::default());
        // What follows a comment or a here-document is not read as a command.
        let open = |line: &&String| {
            complete(line)
                && !complete(&format!("{line} '"))
                && !line.contains("<<")
                && !line.ends_with(['&', ';', '\\', '\n'])
        };
        let written = written();
        let written: Vec<&String> = written.iter().filter(open).filter(|line| !moves(line)).collect();
        assert!(written.len() > 800, "{}", written.len());
        finish(runner(cases(500)).run(&tapes(8), |bytes| {
            let mut tape = Tape::new(&bytes);
            let cwd = cwd(&mut tape);
            let a = written[lines::large(&mut tape, written.len())];
            let b = written[lines::large(&mut tape, written.len())];
            let line = match tape.below(8) {
                0 => format!("{a} && {b}"),
                1 => format!("{a}; {b}"),
                2 => format!("{a} || {b}"),
                3 => format!("{a}\n{b}"),
                4 => format!("{a} & {b}"),
                5 => format!("{a} | {{ {b}\n}}"),
                6 => format!("({a}\n); {b}"),
                _ => format!("{{ {a}\n}} && {b}"),
            };
            tally.check(&court, &[a, b], &line, cwd)
        }));
        tally.finish();
    }

    /// Where a line that changes the directory leaves the next one.
    mod directories {
        use super::*;

        /// `cd D && b` is as strict as `b` in D, `cd D; b` also as `b` here, and `cd "$X"; b` as
        /// `b` anywhere.
        #[test]
        fn a_line_behind_cd_is_as_strict_as_there() {
            let court = Court::fixture("lines");
            let dirs = ["/srv/agents/app", "/etc/polctl", "/", "/tmp", "~/.ssh", "/opt"];
            finish(runner(cases(150)).run(&(tapes(60), tapes(8)), |(bytes, how)| {
                let mut how = Tape::new(&how);
                let (here, there) = (cwd(&mut how), how.one(&dirs));
                let code = lines::line(&mut Tape::new(&bytes), 1).around("{ ", "; }");
                let line = code.text();
                if !complete(&line) || !runs(&parse_line(&line).nodes) {
                    return Ok(());
                }
                let known = Code::plain(&format!("cd {there}"));
                let unknown = Code::plain(how.one(&["cd \"$X\"", "cd -", "cd $(pwd)", "pushd +1", "cd *"]));
                let (surely, perhaps) = (known.joined(" && ", &code).text(), known.joined("; ", &code).text());
                let (other, lost) = (known.joined(" || ", &code).text(), unknown.joined("; ", &code).text());
                let own = known.around("( ", " )").joined("; ", &code).text();
                let rank_in = |line: &str, cwd| rank(court.tier(line, cwd));
                for (whole, least) in [
                    (&surely, rank_in(&line, Some(there))),
                    (&perhaps, rank_in(&line, Some(there)).max(rank_in(&line, here))),
                    (&other, rank_in(&line, here)),
                    (&own, rank_in(&line, here)),
                    (&lost, dirs.iter().map(|dir| rank_in(&line, Some(dir))).max().unwrap_or(0)),
                ] {
                    prop_assert!(
                        rank_in(whole, here) >= least || !complete(whole),
                        "in {here:?}\n  {}\n  {}",
                        court.told(whole, here),
                        court.told(&line, Some(there))
                    );
                }
                Ok(())
            }));
        }
    }

    /// `env a`, `xargs a` … are at least as strict as the simple command `a`.
    #[test]
    fn a_wrapped_command_is_as_strict() {
        let (court, tally) = (Court::fixture("lines"), Tally::default());
        finish(runner(cases(400)).run(&(tapes(50), tapes(4)), |(bytes, how)| {
            let mut how = Tape::new(&how);
            let cwd = cwd(&mut how);
            let command = lines::simple(&mut Tape::new(&bytes), 1, true);
            let (head, tail) = how.one(&lines::WRAPPERS);
            let inner = command.text();
            prop_assume!(complete(&inner));
            // `xargs` reads the here-document itself, and the command inside does not.
            prop_assume!(!head.contains("xargs") || !inner.contains("<<"));
            tally.check(&court, &[&inner], &command.around(head, tail).text(), cwd)
        }));
        tally.finish();
    }

    /// `sh -c 'a'`, `eval "a"`, `echo $(a)`, `if a; …` are at least as strict as the line `a`.
    #[test]
    fn a_line_inside_another_is_as_strict() {
        let (court, tally) = (Court::fixture("lines"), Tally::default());
        finish(runner(cases(500)).run(&(tapes(60), tapes(6)), |(bytes, how)| {
            let mut how = Tape::new(&how);
            let cwd = cwd(&mut how);
            let line = lines::line(&mut Tape::new(&bytes), 2);
            let outer = match how.below(5) {
                0 | 1 => {
                    let head = how.one(&lines::LINES).to_owned();
                    let manner = how.one(&[Manner::Single, Manner::Double, Manner::Ansi, Manner::Escaped]);
                    Code::Quoted(head, Box::new(line.clone()), manner)
                }
                2 => {
                    let (head, tail) = how.one(&lines::SHAPES);
                    line.around(head, tail)
                }
                3 => {
                    let (head, tail) = how.one(&lines::SUBSTITUTIONS);
                    Code::plain("echo ").joined("", &Code::Within(head, Box::new(line.clone()), tail))
                }
                _ => Code::Quoted("echo ".into(), Box::new(line.clone()), Manner::Backticks),
            };
            let inner = line.text();
            prop_assume!(complete(&inner));
            tally.check(&court, &[&inner], &outer.text(), cwd)
        }));
        tally.finish();
    }

    /// Lines that once passed more easily than what runs in them: `rm -rf /`, or a secret read.
    #[test]
    fn what_once_passed_is_refused() {
        let court = Court::fixture("lines");
        let mut wrong = Vec::new();
        for line in [
            "rm\\\n -rf /",
            "<<E \\\n rm -rf /\nx\nE",
            "echo `r\\\\m -rf /`",
            "echo \"`r\\\\m -rf /`\"",
            "( ( rm -rf / ) )",
            "true && ( (rm -rf /) )",
            "echo $((rm -rf /) )",
            "cat <<E && echo $(rm -rf / < <(ls))\nx\nE",
            "timeout 9 sh <<E\nrm -rf /\nE",
            "env cat < ~/.ssh/id",
            "sh -c cat < ~/.ssh/id",
        ] {
            if court.tier(line, None).is_some() {
                wrong.push(court.told(line, None));
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        // Behind `||` the directory is the one that `cd` did not leave.
        assert_eq!(court.tier("cd /tmp || echo x > f", Some("/etc/polctl")), None);
    }

    /// `sudo` asks the rules for more rights; what no rule allows at any tier stays denied.
    #[test]
    fn what_is_refused_is_refused_behind_sudo() {
        let court = Court::fixture("lines");
        for command in lines::COMMANDS {
            let line = command.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ");
            for head in ["sudo", "sudo -u www", "doas", "sudo env A=b", "nice sudo -n", "sudo sh -c"] {
                let outer = format!("{head} {}", if head.ends_with("-c") { quoted(&line) } else { line.clone() });
                if court.tier(&line, None).is_none() {
                    assert_eq!(court.tier(&outer, None), None, "{}", court.told(&outer, None));
                }
            }
        }
    }
}

mod written_otherwise {
    //! Another spelling of the same line is judged alike.

    use super::*;

    /// What is asked of the policy.
    fn asked(court: &Court, line: &str, cwd: Option<&str>) -> Vec<(Request, Role)> {
        court.parts(line, cwd).into_iter().map(|part| (part.request, part.role)).collect()
    }

    fn alike(court: &Court, one: &str, other: &str, cwd: Option<&str>) -> Result<(), TestCaseError> {
        let (first, second) = (asked(court, one, cwd), asked(court, other, cwd));
        let at = first.iter().zip(&second).position(|(a, b)| a != b).unwrap_or(first.len().min(second.len()));
        let told =
            |parts: &[(Request, Role)]| parts.get(at).map_or_else(|| "nothing".into(), |part| format!("{part:?}"));
        prop_assert!(
            first == second,
            "{one:?}\n{other:?}\n  part {at}: {}\n  part {at}: {}",
            told(&first),
            told(&second)
        );
        let (first, second) = (court.tier(one, cwd), court.tier(other, cwd));
        prop_assert!(first == second, "{one:?}: {}\n{other:?}: {}", shown(first), shown(second));
        Ok(())
    }

    /// Texts that need quotes.
    const TEXTS: [&str; 24] = [
        "a b",
        "",
        "'",
        "\"",
        "\\",
        "$X",
        "$(rm -rf /)",
        "`id`",
        "*.c",
        "a*b",
        "[x]",
        "?",
        "{a,b}",
        "~/.ssh/id",
        "#",
        "a\nb",
        "\t",
        ";",
        "&&",
        "ä€",
        "\\n",
        "--a b",
        "x{1..3}",
        "!",
    ];

    /// A word in other quotes is the same word.
    #[test]
    fn quotes_change_nothing() {
        let court = Court::fixture("lines");
        finish(runner(cases(600)).run(&tapes(60), |bytes| {
            let mut tape = Tape::new(&bytes);
            let cwd = cwd(&mut tape);
            let mut words = tape.one(&lines::COMMANDS).to_vec();
            for _ in 0..tape.below(4) {
                words.push(tape.one(&TEXTS));
            }
            let first = words.iter().map(|word| Manner::Single.quoted(word)).collect::<Vec<_>>().join(" ");
            let other = words.iter().map(|word| lines::in_other_quotes(&mut tape, word)).collect::<Vec<_>>().join(" ");
            alike(&court, &first, &other, cwd)
        }));
    }

    /// No word gets lost without a doubt, and none is another one.
    #[test]
    fn words_are_kept() {
        let court = Court::fixture("lines");
        for (line, program, word) in [
            ("cat a\\ ", "cat", "a "),
            ("cat a\\\t b", "cat", "a\t"),
            ("kill 4711 > f", "kill", "4711"),
            ("cat <<E | kill 4711 > f\nE", "kill", "4711"),
            ("<<E kill 4711 > f\nE", "kill", "4711"),
        ] {
            let found = asked(&court, line, None).into_iter().any(|(request, _)| {
                matches!(request, Request::Command(command)
                    if command.program == program && command.words.contains(&Word::Known(word.to_owned())))
            });
            assert!(found || !complete(line), "{line:?} has no {word:?}: {}", court.told(line, None));
        }
    }

    /// Nor do comments, blanks and continued lines.
    #[test]
    fn blanks_and_comments_change_nothing() {
        let (court, lost) = (Court::fixture("lines"), Cell::new(0_usize));
        finish(runner(cases(400)).run(&(tapes(60), tapes(60)), |(bytes, how)| {
            let line = lines::line(&mut Tape::new(&bytes), 2);
            let (one, other) = (line.text(), line.spread(&mut Tape::new(&how)));
            prop_assume!(complete(&one));
            if complete(&other) {
                alike(&court, &one, &other, None)
            } else {
                // A quote in a comment inside of `$( )`: the reader of words knows no comments.
                lost.set(lost.get() + 1);
                prop_assert!(rank(court.tier(&other, None)) >= 2, "{}", court.told(&other, None));
                Ok(())
            }
        }));
        assert!(lost.get() * 20 < usize::try_from(cases(400)).unwrap(), "{} are not understood", lost.get());
    }
}

mod slices {
    //! What is loaded for a request decides like the whole policy set.

    use super::*;

    /// All policies of one surface.
    struct Whole {
        set: Rc<CedarSet>,
        covered: bool,
    }

    impl Whole {
        fn of(compiled: &Compiled, map: &SourceMap, surface: Surface) -> Self {
            let mut set = CedarSet::new();
            for policy in compiled.policies.iter().filter(|policy| policy.surface == surface) {
                set.add(render(compiled, policy, map).parse().unwrap()).unwrap();
            }
            for guardrail in &compiled.guardrails {
                let id = PolicyId::new(&guardrail.id);
                set.add(cedar_policy::Policy::parse(Some(id), &guardrail.text).unwrap()).unwrap();
            }
            Whole { set: Rc::new(set), covered: compiled.set.surfaces.contains_key(&surface) }
        }
    }

    impl Slices for Whole {
        fn covers(&self, _: Surface) -> bool {
            self.covered
        }

        fn slice(&mut self, _: Surface, _: &Facts) -> Result<Rc<CedarSet>, CompileError> {
            Ok(Rc::clone(&self.set))
        }
    }

    /// Slices with a policy that forbids every rung below one, so that this one is asked.
    struct From<'a> {
        inner: &'a mut dyn Slices,
        rung: u8,
    }

    impl Slices for From<'_> {
        fn covers(&self, surface: Surface) -> bool {
            self.inner.covers(surface)
        }

        fn slice(&mut self, surface: Surface, facts: &Facts) -> Result<Rc<CedarSet>, CompileError> {
            let slice = self.inner.slice(surface, facts)?;
            if self.rung == 0 {
                return Ok(slice);
            }
            let namespace = surface.namespace();
            let actions: Vec<String> =
                (0..self.rung).map(|rung| format!("{namespace}::Action::\"tier{rung}\"")).collect();
            let text = format!("forbid (principal, action in [{}], resource);", actions.join(", "));
            let mut set = CedarSet::clone(&slice);
            set.add(cedar_policy::Policy::parse(Some(PolicyId::new("below")), text).unwrap()).unwrap();
            Ok(Rc::new(set))
        }
    }

    /// Whether a request is allowed, at each rung.
    fn rungs(slices: &mut dyn Slices, request: &Request, setting: &Setting<'_>) -> Vec<bool> {
        let allowed = |rung| {
            let verdict = judge_request(&mut From { inner: slices, rung }, request.clone(), "", setting).unwrap();
            verdict.tier == Some(rung)
        };
        (0..RUNGS).map(allowed).collect()
    }

    fn agree(compiled: &Compiled, map: &SourceMap, requests: &[Request]) -> Result<(), TestCaseError> {
        let zones = compiled.set.config.zones.matcher();
        let setting = Setting { trusted_dirs: &[], zones: &zones, cwd: None, agent: "a", host: "a", external: false };
        let mut decider = Decider::new(compiled, map);
        let mut bundled = Bundle::read(bundle(compiled, map, &[])).unwrap();
        bundled.check().unwrap();
        for (position, policy) in compiled.generated().enumerate() {
            let (want, read) = (render(compiled, policy, map), bundled.text(position).unwrap());
            prop_assert!(read.id == want.id && read.text == want.text, "{}\n{}\n{}", read.id, read.text, want.text);
        }
        let mut wholes: Vec<(Surface, Whole)> = Vec::new();
        for request in requests {
            let surface = request.surface();
            if !wholes.iter().any(|(own, _)| *own == surface) {
                wholes.push((surface, Whole::of(compiled, map, surface)));
            }
            let (_, whole) = wholes.iter_mut().find(|(own, _)| *own == surface).unwrap();
            let want = rungs(whole, request, &setting);
            let sliced = common::cedar(&mut decider, request);
            prop_assert!(sliced == want, "a slice: {sliced:?}, all: {want:?}\n{}\n{request:?}", request.to_line());
            let sliced = rungs(&mut decider, request, &setting);
            prop_assert!(
                sliced == want,
                "a slice judges: {sliced:?}, all: {want:?}\n{}\n{request:?}",
                request.to_line()
            );
            let setting = Setting { zones: &bundled.zones().clone(), ..setting };
            let read = rungs(&mut bundled, request, &setting);
            prop_assert!(read == want, "a bundle: {read:?}, all: {want:?}\n{}\n{request:?}", request.to_line());
        }
        Ok(())
    }

    /// Random sets, requests near their rules, at every rung: slice, bundle and whole set.
    #[test]
    fn a_slice_decides_like_the_whole_set() {
        let strategy = (tapes(6), prop::collection::vec(tapes(70), 1..8), prop::collection::vec(tapes(90), 1..8));
        finish(runner(cases(60)).run(&strategy, |(settings, rules, asked)| {
            let rules: Vec<_> = rules.iter().map(|bytes| maps::rule(&mut Tape::new(bytes), None)).collect();
            let files = maps::files(&maps::settings(&mut Tape::new(&settings)), &rules);
            let mut map = SourceMap::new();
            let compiled = common::compiled(&files, &mut map);
            let near: Vec<Request> =
                asked.iter().map(|bytes| requests::near(&mut Tape::new(bytes), &compiled.set)).collect();
            agree(&compiled, &map, &near)
        }));
    }

    /// A guardrail that names no surface's programs is in every slice.
    #[test]
    fn a_guardrail_is_in_every_slice() {
        let mut files = common::one_map("commands", 2, "## Tier 0\n\n- `ls **`\n- `cat **`\n");
        let config = files.0.get_mut("polctl.yaml").unwrap();
        config.push_str("guardrails: [g.cedar]\n");
        let text = "forbid (principal, action, resource) when { context.program == \"cat\" && context.argc > 1 };\n";
        files.0.insert("g.cedar".into(), text.into());
        let mut map = SourceMap::new();
        let set = common::parsed(&files, &mut map);
        let guardrails = parse_guardrails(&set, &|_| "g.cedar".into(), &mut Vec::new());
        assert_eq!(guardrails.len(), 1);
        let compiled = compile(set, guardrails);
        let court = Court::of(compiled.clone(), SourceMap::new());
        let lines = ["ls a", "cat a", "cat a b", "rm x", "$X a b"];
        let asked: Vec<Request> =
            lines.iter().flat_map(|line| court.parts(line, None)).map(|part| part.request).collect();
        agree(&compiled, &map, &asked).unwrap();
        assert_eq!(["cat a", "cat a b"].map(|line| court.tier(line, None)), [Some(0), None]);
    }

    /// A large set, and requests as lines have them.
    #[test]
    fn a_slice_of_a_large_set_decides_like_all_of_it() {
        let mut map = SourceMap::new();
        let mut findings = Vec::new();
        let tree = DirTree::new(root().join("fixtures/shell/ordinary"), None);
        let compiled = compile(load(&tree, &mut map, &mut findings).unwrap().unwrap(), Vec::new());
        let court = Court::of(compiled.clone(), SourceMap::new());
        let written = written();
        let step = if nightly() { 1 } else { 47 };
        let lines = written.iter().step_by(step);
        let parts = lines.flat_map(|line| court.parts(line, Some("/srv/agents/app")).into_iter().take(20));
        let asked: Vec<Request> = parts.map(|part| part.request).filter(|r| r.surface() == Surface::Commands).collect();
        agree(&compiled, &map, &asked).unwrap();
    }
}

/// A tree of files, for a look by eye: `cargo test --test lines -- --ignored --nocapture`.
#[test]
#[ignore = "prints lines"]
fn show_lines() {
    let written = written();
    finish(runner(40).run(&tapes(80), |bytes| {
        let mut tape = Tape::new(&bytes);
        eprintln!("{:?}", lines::line(&mut tape.clone(), 3).text());
        eprintln!("    {:?}", lines::hostile(&mut tape, &written));
        Ok(())
    }));
}
