//! The exact engine and the symbolic one, against each other (DESIGN 6).
//!
//! Random pairs of policy sets on all surfaces, with hand-written guardrails that the exact
//! engine reads and such that it does not; and the histories of the fixtures. The engines must
//! find the same rungs widened wherever both answer, and a request that Cedar itself newly allows
//! must never meet a green verdict. For some random pairs the symbolic compiler takes minutes, so
//! they are ignored ordinarily: `cargo test --test engines -- --ignored`; `POLCTL_NIGHTLY=1` takes 2,000.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test that cannot go on fails, and says its figures"
)]

mod common;
mod solver_common;

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use common::maps::{RuleText, files, rule, settings};
use common::{Files, Tape, cedar, finish, nightly, parsed, requests, runner};
use polctl::analyze::smt::Engine;
use polctl::analyze::smt::solver::{Limits, Places};
use polctl::analyze::{Engines, diff_by};
use polctl::compile::{Compiled, compile, parse_guardrails};
use polctl::decide::Decider;
use polctl::diag::{Code, Finding, Level};
use polctl::parse::load;
use polctl::source::{DirTree, SourceMap};
use proptest::prelude::*;

/// Guardrails that can be told in conditions of the exact engine, by surface.
const READ: [&[&str]; 3] = [
    &[
        r#"forbid(principal, action, resource) when { context has program && context.program == "tar" };"#,
        r#"forbid(principal, action in [Commands::Action::"tier0", Commands::Action::"tier1"], resource) when { context.options.containsAny(["-f", "--force"]) };"#,
        r#"forbid(principal == Commands::Agent::"other", action == Commands::Action::"tier0", resource);"#,
        r#"forbid(principal, action in [Commands::Action::"tier0", Commands::Action::"tier1"], resource) unless { context.trusted && !context.dynamic };"#,
        r#"forbid(principal, action in [Commands::Action::"tier0", Commands::Action::"tier1", Commands::Action::"tier2"], resource) when { context has arg1 && context.arg1 like "a*" };"#,
        r#"forbid(principal, action == Commands::Action::"tier0", resource) when { context.argc > 2 || !context.unknown.isEmpty() };"#,
        r#"forbid(principal, action in [Commands::Action::"tier0", Commands::Action::"tier1"], resource) when { if context.external then context.program == "git" else ["a", "tar"].contains(context.program) };"#,
    ],
    &[
        r#"forbid(principal, action in [Sudo::Action::"tier0", Sudo::Action::"tier1"], resource) when { context.run_as != "root" };"#,
        r#"forbid(principal, action, resource) when { context has run_as && context.run_as == "www" };"#,
        r#"forbid(principal, action == Sudo::Action::"tier0", resource) when { ["-f", "-x"].containsAll(context.options) };"#,
    ],
    &[
        r#"forbid(principal, action in [Egress::Action::"tier0", Egress::Action::"tier1"], resource) when { context.host like "*.a.example" };"#,
        r#"forbid(principal, action in [Egress::Action::"tier0"], resource) when { context.method == "POST" || context.port != 443 };"#,
        r#"forbid(principal, action in [Egress::Action::"tier0", Egress::Action::"tier1"], resource) when { !context.secrets.isEmpty() };"#,
        r#"forbid(principal, action in [Egress::Action::"tier0"], resource) when { context has peer && context.peer.isInRange(ip("10.0.0.0/8")) };"#,
    ],
];

/// Guardrails that only a solver can judge.
const UNREAD: [&[&str]; 3] = [
    &[
        r#"forbid(principal, action in [Commands::Action::"tier0", Commands::Action::"tier1"], resource) when { context.line like "*force*" };"#,
        r#"forbid(principal, action == Commands::Action::"tier0", resource) when { context.argc * 2 > 5 };"#,
        r#"forbid(principal, action == Commands::Action::"tier0", resource) when { context has arg1 && context.arg1 == context.program };"#,
    ],
    &[
        r#"forbid(principal, action in [Sudo::Action::"tier0", Sudo::Action::"tier1"], resource) when { context has arg1 && context has arg2 && context.arg1 == context.arg2 };"#,
    ],
    &[
        r#"forbid(principal, action in [Egress::Action::"tier0"], resource) when { context has seg1 && context.seg1 == context.method };"#,
        r#"forbid(principal, action in [Egress::Action::"tier0", Egress::Action::"tier1"], resource) when { context has peer && context.peer.isIpv6() };"#,
    ],
];

/// The engine; without a solver the test fails, and says what to install.
fn symbolic() -> Engine {
    solver_common::solver();
    Engine::new(solver_common::places(), Limits::USUAL)
}

/// Rules, and the guardrails beside them.
#[derive(Clone, Debug)]
struct Version {
    rules: Vec<RuleText>,
    guardrails: Vec<&'static str>,
}

fn guardrails(tape: &mut Tape<'_>, rules: &[RuleText]) -> Vec<&'static str> {
    let mut out = Vec::new();
    for surface in (0..3).filter(|s| rules.iter().any(|r| r.surface == *s)) {
        if tape.chance(45) {
            out.push(tape.one(READ[surface]));
        }
        if tape.chance(15) {
            out.push(tape.one(UNREAD[surface]));
        }
    }
    out
}

fn version(tape: &mut Tape<'_>) -> Version {
    let count = 1 + tape.below(4);
    let rules: Vec<RuleText> = (0..count).map(|_| rule(tape, None)).collect();
    let guardrails = guardrails(tape, &rules);
    Version { rules, guardrails }
}

/// A version after a change, as people make them.
fn changed(tape: &mut Tape<'_>, before: &Version) -> Version {
    let mut after = before.clone();
    for _ in 0..=tape.below(2) {
        let at = tape.below(after.rules.len());
        match tape.below(6) {
            0 => after.rules[at].tier = tape.below(5),
            1 if !after.rules[at].attributes.is_empty() => {
                let which = tape.below(after.rules[at].attributes.len());
                after.rules[at].attributes.remove(which);
            }
            2 if after.rules.len() > 1 => {
                after.rules.remove(at);
            }
            3 => {
                let surface = after.rules[at].surface;
                after.rules.push(rule(tape, Some(surface)));
            }
            4 => {
                let fresh = rule(tape, Some(after.rules[at].surface));
                after.rules[at].attributes = fresh.attributes;
            }
            _ => {
                let which = tape.below(after.guardrails.len() + 1);
                if which < after.guardrails.len() {
                    after.guardrails.remove(which);
                } else {
                    after.guardrails = guardrails(tape, &after.rules);
                }
            }
        }
    }
    after.guardrails.retain(|text| {
        let needs = ["Commands::", "Sudo::", "Egress::"].iter().position(|name| text.contains(name));
        needs.is_none_or(|surface| after.rules.iter().any(|r| r.surface == surface))
    });
    after
}

fn set(settings: &(String, [usize; 3]), version: &Version) -> Files {
    let mut out = files(settings, &version.rules);
    if !version.guardrails.is_empty() {
        out.0.get_mut("polctl.yaml").unwrap().push_str("guardrails: [hand.cedar]\n");
        out.0.insert("hand.cedar".into(), version.guardrails.join("\n"));
    }
    out
}

/// The compiled set; `None` where a guardrail is not valid under the schema of this set.
fn compiled(files: &Files, map: &mut SourceMap) -> Option<Compiled> {
    let set = parsed(files, map);
    let mut findings = Vec::new();
    let guardrails = parse_guardrails(&set, &|_| "hand.cedar".into(), &mut findings);
    findings.is_empty().then(|| compile(set, guardrails))
}

/// The rungs of each surface at which findings show something newly permitted.
fn widened(findings: &[Finding]) -> BTreeSet<(String, u8)> {
    let evidence = findings.iter().filter(|f| f.code == Code::WIDENING).filter_map(|f| f.evidence.as_ref());
    evidence.flat_map(|e| e.rungs.iter().map(|rung| (e.surface.clone(), *rung))).collect()
}

fn open(findings: &[Finding]) -> Vec<&str> {
    let open = findings.iter().filter(|f| f.code == Code::INCONCLUSIVE && f.level == Level::Error);
    open.map(|f| f.message.as_str()).collect()
}

#[derive(Default)]
struct Figures {
    pairs: Cell<usize>,
    widened: Cell<usize>,
    guarded: Cell<usize>,
    solved: Cell<usize>,
    open: Cell<usize>,
    /// Pairs with a guardrail that is not valid beside these surfaces.
    refused: Cell<usize>,
}

fn add(cell: &Cell<usize>, yes: bool) {
    cell.set(cell.get() + usize::from(yes));
}

/// Time for random pairs in the ordinary setting.
const ORDINARY: Duration = Duration::from_secs(90);

/// Maps of one rule, and a guardrail that only the solver reads.
#[test]
fn small_maps_have_one_verdict_under_all_engines() {
    let mut engine = symbolic();
    let unread = UNREAD[2][0];
    let set = |rules: &str, guardrail: Option<&str>| {
        let mut files = common::one_map("egress", 2, &format!("## Tier 0\n\n{rules}"));
        if let Some(text) = guardrail {
            files.0.get_mut("polctl.yaml").unwrap().push_str("guardrails: [hand.cedar]\n");
            files.0.insert("hand.cedar".into(), text.into());
        }
        files
    };
    let (one, all) = ("- `GET https://a.example/x/**`\n", "- `GET https://a.example/**`\n");
    for (old, new, widens) in [
        (set(one, None), set(all, None), true),
        (set(all, None), set(one, None), false),
        (set(all, None), set(all, Some(unread)), false),
        (set(all, Some(unread)), set(one, Some(unread)), false),
    ] {
        let mut map = SourceMap::new();
        let (old, new) = (compiled(&old, &mut map).unwrap(), compiled(&new, &mut map).unwrap());
        for engines in [Engines::Exact, Engines::Both, Engines::Smt] {
            let findings = diff_by(engines, &mut engine, &old, &new, &map).unwrap();
            assert_eq!(
                (!widened(&findings).is_empty(), open(&findings)),
                (widens, Vec::new()),
                "{engines:?}: {findings:#?}"
            );
        }
    }
    // What a guardrail stopped that is gone is shown, though only the solver reads it.
    let mut map = SourceMap::new();
    let (old, new) = (set(all, Some(unread)), set(all, None));
    let (old, new) = (compiled(&old, &mut map).unwrap(), compiled(&new, &mut map).unwrap());
    for engines in [Engines::Exact, Engines::Both, Engines::Smt] {
        let findings = diff_by(engines, &mut engine, &old, &new, &map).unwrap();
        assert!(!widened(&findings).is_empty() && open(&findings).is_empty(), "{engines:?}: {findings:#?}");
    }
    assert!(engine.queries() > 0);
}

#[test]
#[ignore = "some pairs take the symbolic compiler minutes"]
fn the_engines_agree_on_random_pairs() {
    let engine = RefCell::new(symbolic());
    let figures = Figures::default();
    let start = Instant::now();
    let enough = |figures: &Figures| !nightly() && figures.pairs.get() >= 10 && start.elapsed() > ORDINARY;
    let result =
        runner(if nightly() { 2_000 } else { 100 }).run(&prop::collection::vec(any::<u8>(), 0..700), |bytes| {
            if enough(&figures) {
                return Ok(());
            }
            let mut tape = Tape::new(&bytes);
            let settings = settings(&mut tape);
            let before = version(&mut tape);
            let after = changed(&mut tape, &before);
            let mut map = SourceMap::new();
            let (files_old, files_new) = (set(&settings, &before), set(&settings, &after));
            let (Some(old), Some(new)) = (compiled(&files_old, &mut map), compiled(&files_new, &mut map)) else {
                add(&figures.refused, true);
                return Ok(());
            };
            let shown = || format!("{files_old:?}\n---- new{files_new:?}");
            let none = &mut Engine::new(Places::default(), Limits::USUAL);
            let exact = diff_by(Engines::Exact, none, &old, &new, &map).unwrap();
            let both = diff_by(Engines::Both, &mut engine.borrow_mut(), &old, &new, &map).unwrap();
            prop_assert!(!both.iter().any(|f| f.message.contains("disagree")), "{:#?}{}", both, shown());
            let (from_exact, from_both) = (widened(&exact), widened(&both));
            let (open_exact, open_both) = (!open(&exact).is_empty(), !open(&both).is_empty());
            if open_exact {
                prop_assert!(from_both.is_superset(&from_exact), "{:#?}{:#?}{}", exact, both, shown());
            } else {
                prop_assert_eq!(&from_exact, &from_both, "{}", shown());
                prop_assert!(!open_both || !from_both.is_empty(), "{:?}{}", open(&both), shown());
            }
            // A third opinion: requests near the rules, decided by Cedar on both versions.
            let (mut was, mut is) = (Decider::new(&old, &map), Decider::new(&new, &map));
            let other_zones = old.set.config.zones.names().ne(new.set.config.zones.names());
            for _ in 0..40 {
                let request = requests::near(&mut tape, if tape_side(&bytes) { &new.set } else { &old.set });
                if common::reading::carried(&request) || other_zones {
                    continue;
                }
                for (rung, (a, b)) in cedar(&mut was, &request).into_iter().zip(cedar(&mut is, &request)).enumerate() {
                    let told = from_both.contains(&(request.surface().name().to_owned(), u8::try_from(rung).unwrap()));
                    let configured = both.iter().any(|f| f.code == Code::CONFIG_WIDENING);
                    prop_assert!(
                        a || !b || told || open_both || configured,
                        "{:?} at {}: {:#?}{}",
                        request,
                        rung,
                        both,
                        shown()
                    );
                }
            }
            add(&figures.pairs, true);
            add(&figures.widened, !from_both.is_empty());
            add(&figures.guarded, !new.guardrails.is_empty() || !old.guardrails.is_empty());
            add(&figures.solved, open_exact && !open_both);
            add(&figures.open, open_both);
            Ok(())
        });
    let Figures { pairs, widened, guarded, solved, open, refused } = &figures;
    eprintln!(
        "{} pairs: {} widened, {} with guardrails, {} that only the solver could judge, {} open; {} queries",
        pairs.get(),
        widened.get(),
        guarded.get(),
        solved.get(),
        open.get(),
        engine.borrow().queries()
    );
    finish(result);
    if nightly() {
        assert!(widened.get() * 5 > pairs.get() && guarded.get() * 5 > pairs.get(), "the pairs say too little");
        assert!(open.get() * 10 < pairs.get(), "too much is left open");
        assert!(refused.get() * 3 < pairs.get(), "{} pairs are refused", refused.get());
    }
}

/// Which version requests are made near to.
fn tape_side(bytes: &[u8]) -> bool {
    bytes.first().is_some_and(|b| b % 3 != 0)
}

/// A version of a fixture.
fn fixture(path: &Path, map: &mut SourceMap) -> Compiled {
    let mut findings = Vec::new();
    let set = load(&DirTree::new(path, None), map, &mut findings).unwrap();
    let set = set.unwrap_or_else(|| panic!("{}: {findings:#?}", path.display()));
    let guardrails = parse_guardrails(&set, &|_| "hand.cedar".into(), &mut findings);
    assert!(findings.iter().all(|f| f.level != Level::Error), "{findings:#?}");
    compile(set, guardrails)
}

#[test]
fn every_step_of_the_fleet_has_one_verdict_under_all_engines() {
    let mut engine = symbolic();
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("fixtures/fleet");
    let mut steps = 0;
    for number in 1.. {
        let (old, new) = (root.join(format!("v{number}")), root.join(format!("v{}", number + 1)));
        if !new.is_dir() {
            break;
        }
        let mut map = SourceMap::new();
        let (old, new) = (fixture(&old, &mut map), fixture(&new, &mut map));
        // Both ways: what narrows in one direction widens in the other.
        for (old, new) in [(&old, &new), (&new, &old)] {
            let verdict = |engines, engine: &mut Engine| {
                let findings = diff_by(engines, engine, old, new, &map).unwrap();
                let open: Vec<String> = open(&findings).iter().map(|m| (*m).to_owned()).collect();
                let widens = findings.iter().any(|f| f.code == Code::WIDENING || f.code == Code::CONFIG_WIDENING);
                (widens, widened(&findings), open)
            };
            let exact = verdict(Engines::Exact, &mut engine);
            assert!(exact.2.is_empty(), "v{number}: {exact:?}");
            for engines in [Engines::Both, Engines::Smt] {
                assert_eq!(verdict(engines, &mut engine), exact, "v{number} under {engines:?}");
            }
            steps += 1;
        }
    }
    eprintln!("{steps} steps, {} queries", engine.queries());
    assert_eq!(steps, 22);
}
