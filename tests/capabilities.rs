//! Capability manifests against a second reading of `docs/capabilities.md`.
//!
//! Random manifests over a tiny alphabet. Cedar and `capability_common/reading.rs` must agree at
//! every rung; the comparison and the attenuation must agree with a universe of requests that is
//! searched one by one. `POLCTL_NIGHTLY=1` runs many more cases, `POLCTL_SEED=N` repeats a run;
//! the seed is printed.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, clippy::print_stderr, clippy::string_slice)]

mod capability_common;
mod common;

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use capability_common::maps::Doc;
use capability_common::{base, cedar, configured, facts, maps, reading, set_of, set_of_texts, shown, witness};
use common::{Tape, finish, nightly, runner};
use polctl::analyze::{diff, within};
use polctl::compile::Compiled;
use polctl::decide::CapabilityDecider;
use polctl::diag::Code;
use polctl::model::{CAPABILITY_RUNGS, CapabilityRequest, Class, Manifest, Subject, SubjectKind, Target};
use polctl::source::SourceMap;
use proptest::prelude::*;

/// Bytes from which manifests and requests are made.
#[derive(Clone, Debug)]
struct Case {
    settings: Vec<u8>,
    docs: Vec<u8>,
    changes: Vec<u8>,
    requests: Vec<Vec<u8>>,
}

const REQUESTS: usize = 24;

fn cases() -> impl Strategy<Value = Case> {
    let tape = |len| prop::collection::vec(any::<u8>(), len);
    (tape(8), tape(500), tape(200), prop::collection::vec(tape(16), 1..=REQUESTS))
        .prop_map(|(settings, docs, changes, requests)| Case { settings, docs, changes, requests })
}

#[test]
fn cedar_and_the_document_agree() {
    let result = runner(if nightly() { 40_000 } else { 400 }).run(&cases(), |case| {
        let mut settings = Tape::new(&case.settings);
        let (theme, provenance) = (maps::theme(&mut settings), settings.chance(70));
        let docs = maps::docs(&mut Tape::new(&case.docs), &theme);
        let (base, mut map) = base(provenance);
        let compiled = set_of(&docs, &base, &mut map);
        let mut decider = CapabilityDecider::new(&compiled, &map);
        for bytes in &case.requests {
            let mut tape = Tape::new(bytes);
            let subject = tape.pick(&docs).subject();
            let request = maps::request(&mut tape, &theme, subject);
            let product = cedar(&mut decider, &request);
            let document = reading::read(&compiled.set.manifests, &facts(provenance), &request);
            prop_assert!(
                product == document,
                "Cedar {product:?}, document {document:?}\n{request:?}\nprovenance {provenance}\n{}",
                shown(&docs)
            );
        }
        Ok(())
    });
    finish(result);
}

/// The cases above mean something.
#[test]
fn generated_requests_are_allowed_and_refused() {
    let counts = Cell::new([0_u32; 5]);
    let result = runner(300).run(&cases(), |case| {
        let mut settings = Tape::new(&case.settings);
        let (theme, provenance) = (maps::theme(&mut settings), settings.chance(70));
        let docs = maps::docs(&mut Tape::new(&case.docs), &theme);
        let (base, mut map) = base(provenance);
        let set = set_of(&docs, &base, &mut map).set;
        for bytes in &case.requests {
            let mut tape = Tape::new(bytes);
            let subject = tape.pick(&docs).subject();
            let request = maps::request(&mut tape, &theme, subject);
            let found = reading::read(&set.manifests, &facts(provenance), &request);
            let mut new = counts.get();
            new[found.iter().position(|allowed| *allowed).unwrap_or(3)] += 1;
            new[4] += 1;
            counts.set(new);
        }
        Ok(())
    });
    finish(result);
    let [auto, notify, ask, refused, all] = counts.get();
    eprintln!("{all} requests: allowed from auto {auto}, notify {notify}, ask {ask}; refused {refused}");
    for (what, count) in [("auto", auto), ("notify", notify), ("ask", ask), ("refused", refused)] {
        assert!(count * 25 > all, "{what}: only {count} of {all}");
    }
}

/// Two versions of the manifests of a case.
fn versions(case: &Case) -> (Vec<Class>, bool, Vec<Doc>, Vec<Doc>) {
    let mut settings = Tape::new(&case.settings);
    let (theme, provenance) = (maps::theme(&mut settings), settings.chance(70));
    let mut old = maps::docs(&mut Tape::new(&case.docs), &theme);
    let mut new = old.clone();
    let mut changes = Tape::new(&case.changes);
    for _ in 0..changes.below(4) {
        let at = changes.below(new.len());
        maps::mutate(&mut changes, &mut new[at], &theme);
    }
    match changes.below(16) {
        15 => drop(new.remove(changes.below(new.len()))),
        14 => drop(old.remove(changes.below(old.len()))),
        _ => {}
    }
    (theme, provenance, old, new)
}

/// The subjects of two versions.
fn subjects(old: &[Doc], new: &[Doc]) -> BTreeSet<Subject> {
    old.iter().chain(new).map(Doc::subject).collect()
}

/// "What has an order": a request that is allowed at a rung and was not before is a `widening`.
/// Every request of the universe is asked of both versions by the reading; the comparison must
/// report just the subjects and classes in which one differs, at rungs at which one does, and
/// every witness must hold.
#[test]
fn the_comparison_and_the_universe_agree() {
    let counts = Cell::new([0_u32; 4]);
    let result = runner(if nightly() { 20_000 } else { 300 }).run(&cases(), |case| {
        let (theme, provenance, old_docs, new_docs) = versions(&case);
        let (base, mut map) = base(provenance);
        let (old, new) = (set_of(&old_docs, &base, &mut map), set_of(&new_docs, &base, &mut map));
        let (old_set, new_set) = (&old.set.manifests, &new.set.manifests);
        let findings = diff(&old, &new, &map).unwrap();
        let facts = facts(provenance);
        let shown = || format!("old\n{}\nnew\n{}\n{findings:#?}", shown(&old_docs), shown(&new_docs));
        let (mut wider, mut narrower) = (0, 0);
        for subject in subjects(&old_docs, &new_docs) {
            let mut found: [BTreeMap<(Class, u8), CapabilityRequest>; 2] = Default::default();
            for request in maps::universe(&theme, &subject) {
                let (was, is) = (reading::read(old_set, &facts, &request), reading::read(new_set, &facts, &request));
                for rung in 0..CAPABILITY_RUNGS {
                    let at = usize::from(rung);
                    if was[at] != is[at] {
                        found[usize::from(was[at])]
                            .entry((request.target.class(), rung))
                            .or_insert_with(|| request.clone());
                    }
                }
            }
            for (at, code) in [Code::WIDENING, Code::NARROWING].into_iter().enumerate() {
                let reported = witness::reported(&findings, code, &subject);
                // One entry that lets more through is one finding, whose witness need not show every rung.
                let is_reported = |class: Class| reported.iter().any(|(reported, _)| *reported == class);
                let missed = found[at].iter().find(|((class, _), _)| !is_reported(*class));
                prop_assert!(missed.is_none(), "no {code:?} of {subject} for {missed:?}\n{}", shown());
                let invented = reported.iter().find(|key| !found[at].contains_key(key));
                prop_assert!(
                    invented.is_none(),
                    "a {code:?} of {subject} that no request shows: {invented:?}\n{}",
                    shown()
                );
            }
            let head = format!("{subject}: ");
            for finding in findings.iter().filter(|finding| finding.message.starts_with(&head)) {
                let Some(evidence) = finding.evidence.as_ref().filter(|evidence| !witness::is_field(evidence)) else {
                    continue;
                };
                let wrong = witness::wrong(evidence, &facts, (old_set, &subject), (new_set, &subject));
                prop_assert!(wrong.is_none(), "{}\n{}", wrong.unwrap_or_default(), shown());
            }
            (wider, narrower) = (wider + found[0].len(), narrower + found[1].len());
        }
        prop_assert!(findings.iter().all(|finding| finding.code != Code::INCONCLUSIVE), "{}", shown());
        let mut new = counts.get();
        new[0] += 1;
        new[1] += u32::from(wider > 0);
        new[2] += u32::from(narrower > 0);
        new[3] += u32::from(wider + narrower == 0);
        counts.set(new);
        Ok(())
    });
    finish(result);
    let [all, wider, narrower, neither] = counts.get();
    eprintln!("{all} changes: {wider} wider, {narrower} narrower, {neither} neither");
    for (what, count) in [("wider", wider), ("narrower", narrower), ("neither", neither)] {
        assert!(count * 7 > all, "{what}: only {count} of {all}");
    }
}

/// A manifest that is only written otherwise is the same.
#[test]
fn a_rewriting_is_no_change() {
    let rewritten = Cell::new((0_u32, 0_u32));
    let result = runner(if nightly() { 20_000 } else { 300 }).run(&cases(), |case| {
        let (theme, provenance, old_docs, _) = versions(&case);
        let mut new_docs = old_docs.clone();
        let mut tape = Tape::new(&case.changes);
        new_docs.iter_mut().for_each(|doc| maps::rewrite(&mut tape, doc));
        let (base, mut map) = base(provenance);
        let (old, new) = (set_of(&old_docs, &base, &mut map), set_of(&new_docs, &base, &mut map));
        for (from, to) in [(&old, &new), (&new, &old)] {
            let findings = diff(from, to, &map).unwrap();
            prop_assert!(findings.is_empty(), "old\n{}\nnew\n{}\n{findings:#?}", shown(&old_docs), shown(&new_docs));
        }
        // The rewriting is one by the document, too.
        let facts = facts(provenance);
        for subject in subjects(&old_docs, &new_docs) {
            for request in maps::universe(&theme, &subject).iter().step_by(5) {
                let at = |set: &[Manifest]| reading::read(set, &facts, request);
                prop_assert_eq!(at(&old.set.manifests), at(&new.set.manifests), "{:?}", request);
            }
        }
        let (all, other) = rewritten.get();
        rewritten.set((all + 1, other + u32::from(shown(&old_docs) != shown(&new_docs))));
        Ok(())
    });
    finish(result);
    let (all, other) = rewritten.get();
    eprintln!("{all} manifests: {other} with another text");
    assert!(other * 2 > all, "only {other} of {all} are written otherwise");
}

/// "Attenuation": every request that the child allows is allowed by the parent at the same rung.
#[test]
fn attenuation_and_the_universe_agree() {
    let counts = Cell::new([0_u32; 3]);
    let result = runner(if nightly() { 20_000 } else { 300 }).run(&cases(), |case| {
        let mut settings = Tape::new(&case.settings);
        let (theme, provenance) = (maps::theme(&mut settings), settings.chance(70));
        let mut tape = Tape::new(&case.docs);
        let parent = maps::doc(&mut tape, SubjectKind::Image, "img", &theme);
        let mail = maps::doc(&mut tape, SubjectKind::Integration, "mail", &theme);
        let mut changes = Tape::new(&case.changes);
        let mut child = if changes.chance(15) {
            maps::doc(&mut changes, SubjectKind::Session, "s", &theme)
        } else {
            let mut child = parent.as_session("s");
            for _ in 0..changes.below(3) {
                maps::mutate(&mut changes, &mut child, &theme);
            }
            child
        };
        if changes.chance(40) {
            maps::rewrite(&mut changes, &mut child);
        }
        let docs = [parent, child, mail];
        let (base, mut map) = base(provenance);
        let compiled = set_of(&docs, &base, &mut map);
        let of = |doc: &Doc| compiled.set.manifests.iter().find(|manifest| manifest.subject == doc.subject()).unwrap();
        let (above, below) = (of(&docs[0]), of(&docs[1]));
        let findings = within(above, below, &compiled, &map).unwrap();
        let (facts, declared) = (facts(provenance), reading::declared(&compiled.set.manifests));
        let mut exceeding: BTreeMap<(Class, u8), CapabilityRequest> = BTreeMap::new();
        for request in maps::universe(&theme, &below.subject) {
            let asked = CapabilityRequest { subject: above.subject.clone(), ..request.clone() };
            for rung in 0..CAPABILITY_RUNGS {
                if reading::allows(below, &declared, &facts, &request, rung)
                    && !reading::allows(above, &declared, &facts, &asked, rung)
                {
                    exceeding.entry((request.target.class(), rung)).or_insert_with(|| request.clone());
                }
            }
        }
        let shown = || format!("{}\n{findings:#?}", shown(&docs));
        prop_assert!(findings.iter().all(|finding| finding.code == Code::ATTENUATION), "{}", shown());
        prop_assert!(exceeding.is_empty() || !findings.is_empty(), "missed: {exceeding:#?}\n{}", shown());
        let shows: Vec<_> = findings
            .iter()
            .filter_map(|finding| finding.evidence.as_ref())
            .filter(|evidence| !witness::is_field(evidence))
            .collect();
        prop_assert!(exceeding.is_empty() == shows.is_empty(), "{exceeding:#?}\n{}", shown());
        let classes: BTreeSet<Class> =
            shows.iter().map(|evidence| witness::request(evidence, &below.subject).target.class()).collect();
        let missed = exceeding.iter().find(|((class, _), _)| !classes.contains(class));
        prop_assert!(missed.is_none(), "missed: {missed:#?}\n{}", shown());
        for evidence in shows {
            let set = &compiled.set.manifests;
            let wrong = witness::wrong(evidence, &facts, (set, &above.subject), (set, &below.subject));
            prop_assert!(wrong.is_none(), "{}\n{}", wrong.unwrap_or_default(), shown());
        }
        let mut new = counts.get();
        new[0] += 1;
        new[1] += u32::from(exceeding.is_empty() && findings.is_empty());
        new[2] += u32::from(!exceeding.is_empty());
        counts.set(new);
        Ok(())
    });
    finish(result);
    let [all, within, exceeding] = counts.get();
    eprintln!("{all} children: {within} within their parent, {exceeding} exceed it");
    assert!(within * 5 > all && exceeding * 5 > all, "{within} within, {exceeding} beyond, of {all}");
}

/// A set with a manifest for each entry, in their order.
fn family(entries: &[String]) -> (Compiled, SourceMap) {
    let (base, mut map) = base(true);
    let text = |(at, entry): (usize, &String)| {
        (
            format!("{at:05}.yaml"),
            format!("polctl: v1\nsubject: {{ image: p{at} }}\nhome: /a\ncapabilities:\n  {entry}\n"),
        )
    };
    let texts: Vec<_> = entries.iter().enumerate().map(text).collect();
    let compiled = set_of_texts(&texts, &base, &mut map);
    (compiled, map)
}

/// Cedar permits the targets that are meant at every rung, and no other; and one manifest is
/// within another when it permits a part of what the other does.
fn entries_mean(entries: &[(String, Vec<bool>)], targets: &[Target], step: usize) {
    let texts: Vec<String> = entries.iter().map(|(text, _)| text.clone()).collect();
    let (compiled, map) = family(&texts);
    let mut decider = CapabilityDecider::new(&compiled, &map);
    let manifests = &compiled.set.manifests;
    for (manifest, (text, meant)) in manifests.iter().zip(entries) {
        for (target, meant) in targets.iter().zip(meant) {
            let answers = cedar(&mut decider, &CapabilityRequest::new(manifest.subject.clone(), target.clone()));
            assert_eq!(answers, [*meant; 3], "{text}\n{target:?}");
        }
    }
    let mut counts = [0, 0];
    let every: Vec<usize> = (0..entries.len()).step_by(step).collect();
    for (parent, child) in every.iter().flat_map(|parent| every.iter().map(move |child| (*parent, *child))) {
        let exceeds = entries[child].1.iter().zip(&entries[parent].1).any(|(narrow, wide)| *narrow && !wide);
        let findings = within(&manifests[parent], &manifests[child], &compiled, &map).unwrap();
        let (parent, child) = (&entries[parent].0, &entries[child].0);
        assert_eq!(!findings.is_empty(), exceeds, "parent {parent}\nchild {child}\n{findings:#?}");
        counts[usize::from(exceeds)] += 1;
    }
    let [included, not] = counts;
    eprintln!("{} entries, {} targets; {included} pairs included, {not} not", entries.len(), targets.len());
    assert!(included >= every.len() && not > 0);
}

/// All words over an alphabet up to a length, joined by a separator.
fn words(letters: &[&str], longest: usize) -> Vec<Vec<String>> {
    let mut out = vec![Vec::new()];
    let mut last = out.clone();
    for _ in 0..longest {
        last = last
            .iter()
            .flat_map(|word: &Vec<String>| {
                letters.iter().map(move |letter| [word.clone(), vec![(*letter).to_owned()]].concat())
            })
            .collect();
        out.extend(last.clone());
    }
    out
}

/// "Hosts", exhaustively over names of the labels `a` and `b`.
#[test]
fn hosts_are_names_and_their_sub_domains() {
    let name =
        |labels: &Vec<String>| labels.iter().map(|label| format!("{label}.")).collect::<String>() + "example.org";
    let mut hosts: Vec<String> = words(&["a", "b"], 4).iter().map(name).collect();
    hosts.extend(
        ["aexample.org", "xa.example.org", "example.org.a", "a.example.org.b", "a-a.example.org", "org", "b.org"]
            .map(str::to_owned),
    );
    let targets: Vec<Target> = hosts
        .iter()
        .map(|host| Target::NetEgress { host: host.clone(), address: None, peer: None, port: 443, tls_inspect: false })
        .collect();
    let is_in = |form: &str, base: &str, host: &str| {
        let (host, base): (Vec<&str>, Vec<&str>) = (host.split('.').collect(), base.split('.').collect());
        match form {
            "" => host == base,
            "*." => host.len() > base.len() && host.ends_with(&base),
            _ => host.ends_with(&base),
        }
    };
    let bases: Vec<String> = words(&["a", "b"], 2).iter().map(name).collect();
    let patterns: Vec<_> = ["", "*.", "**."]
        .iter()
        .flat_map(|form| bases.iter().map(move |base| (form, base)))
        .map(|(form, base)| {
            let meant = hosts.iter().map(|host| is_in(form, base, host)).collect();
            (format!("net.egress: {{ tier: auto, domains: [\"{form}{base}\"] }}"), meant)
        })
        .collect();
    entries_mean(&patterns, &targets, 1);
}

/// "Hosts", networks, exhaustively over the last three bits of two addresses.
#[test]
fn networks_share_their_first_bits() {
    let at = |base: &str, n: u32| match base.parse().unwrap() {
        IpAddr::V4(v4) => IpAddr::from(Ipv4Addr::from(u32::from(v4) + n)),
        IpAddr::V6(v6) => IpAddr::from(Ipv6Addr::from(u128::from(v6) + u128::from(n))),
    };
    let families = [("9.9.9.8", 32), ("2606:4700::8", 128)];
    let addresses: Vec<IpAddr> =
        ["9.9.9.0", "2606:4700::"].iter().flat_map(|base| (0..24).map(|n| at(base, n))).collect();
    let targets: Vec<Target> = addresses
        .iter()
        .map(|address| Target::NetEgress {
            host: String::new(),
            address: Some(*address),
            peer: None,
            port: 443,
            tls_inspect: false,
        })
        .collect();
    let mut networks: Vec<(String, Vec<bool>)> = Vec::new();
    for (base, width) in families {
        for free in 0..=3_u32 {
            for n in 0..8_u32 >> free {
                let first = n << free;
                let text = format!("{}/{}", at(base, first), width - free);
                let meant: Vec<bool> = addresses
                    .iter()
                    .map(|address| (first..first + (1 << free)).any(|n| at(base, n) == *address))
                    .collect();
                networks.push((text, meant));
            }
        }
    }
    // Two networks may hold a third together.
    let mut entries: Vec<(String, Vec<bool>)> = Vec::new();
    for (at, (a, of_a)) in networks.iter().enumerate() {
        for (b, of_b) in networks.iter().skip(at).step_by(4) {
            let list = if a == b { format!("\"{a}\"") } else { format!("\"{a}\", \"{b}\"") };
            let both = of_a.iter().zip(of_b).map(|(a, b)| *a || *b).collect();
            entries.push((format!("net.egress: {{ tier: auto, cidrs: [{list}] }}"), both));
        }
    }
    entries_mean(&entries, &targets, if nightly() { 1 } else { 3 });
}

/// "Guardrails" with "Attenuation": what no manifest can permit, a child does not permit.
#[test]
fn networks_that_are_not_public_permit_nothing() {
    let entry = |cidr: &str| format!("net.egress: {{ tier: auto, cidrs: [\"{cidr}\"] }}");
    for (parent, child, meant) in [
        ("9.9.9.9/32", "10.0.0.0/8", false),
        ("9.9.9.9/32", "172.16.0.0/13", false),
        ("192.169.0.0/16", "192.168.0.0/15", false),
        ("192.168.0.0/16", "192.168.0.0/15", true),
        ("9.9.9.9/32", "fd00::/16", false),
        ("9.9.9.9/32", "2606:4700::/32", true),
        ("8.0.0.0/8", "8.0.0.0/9", false),
        ("8.0.0.0/9", "8.0.0.0/8", true),
    ] {
        let (compiled, map) = family(&[entry(parent), entry(child)]);
        let [above, below] = compiled.set.manifests.as_slice() else { unreachable!() };
        let findings = within(above, below, &compiled, &map).unwrap();
        assert_eq!(!findings.is_empty(), meant, "parent {parent}, child {child}");
    }
}

/// "Paths", exhaustively over paths of the names `a` and `b`: one entry that reads, writes and
/// denies one place each.
#[test]
fn the_narrowest_place_counts() {
    let text = |names: &Vec<String>| {
        if names.is_empty() { "/".to_owned() } else { names.iter().map(|n| format!("/{n}")).collect() }
    };
    let paths = words(&["a", "b"], 3);
    let targets: Vec<Target> = paths
        .iter()
        .flat_map(|path| [false, true].map(|write| Target::FsScope { write, path: path.clone() }))
        .collect();
    let width = |place: &Option<Vec<String>>, path: &[String]| {
        place.as_ref().filter(|place| path.starts_with(place)).map(Vec::len)
    };
    let places: &Vec<Option<Vec<String>>> =
        &[None].into_iter().chain(words(&["a", "b"], 2).into_iter().map(Some)).collect();
    let mut entries = Vec::new();
    for (read, write, deny) in places
        .iter()
        .flat_map(|read| places.iter().flat_map(move |write| places.iter().map(move |deny| (read, write, deny))))
        .skip(1)
    {
        let fields: Vec<String> = [("read", read), ("write", write), ("deny", deny)]
            .into_iter()
            .filter_map(|(name, place)| place.as_ref().map(|place| format!("{name}: [\"{}\"]", text(place))))
            .collect();
        let entry = format!("fs.scope: {{ tier: auto, {} }}", fields.join(", "));
        let meant: Vec<bool> = paths
            .iter()
            .flat_map(|path| {
                // `None`, a place that does not hold the path, is less than any width.
                let [read, write, deny] = [read, write, deny].map(|place| width(place, path));
                [read > deny || write > deny, write > deny && write >= read]
            })
            .collect();
        entries.push((entry, meant));
    }
    entries_mean(&entries, &targets, if nightly() { 2 } else { 17 });
}

/// `~` is `home`; in `deny` it is every home.
#[test]
fn a_home_is_that_of_the_manifest_and_a_denied_one_any() {
    let read =
        |path: &str| Target::FsScope { write: false, path: path.split('/').skip(1).map(str::to_owned).collect() };
    let paths =
        ["/a/x", "/a/y", "/root/x", "/home/v/x", "/Users/v/x", "/home/x", "/home/v/y", "/root/y", "/x"].map(read);
    let of = |fields: &str, meant: [bool; 9]| (format!("fs.scope: {{ tier: auto, {fields} }}"), meant.to_vec());
    // `/home/x` is the home of x.
    let entries = [
        of("read: [\"~/x\"]", [true, false, false, false, false, false, false, false, false]),
        of("read: [/], deny: [\"~/x\"]", [false, true, false, false, false, true, true, true, true]),
        of("read: [/], deny: [\"~\"]", [false, false, false, false, false, false, false, false, true]),
        of("read: [/], deny: [\"~/y\"]", [true, false, true, true, true, true, false, false, true]),
    ];
    entries_mean(&entries, &paths, 1);
}

/// "What has an order": fields that are no request.
#[test]
fn fields_have_their_directions() {
    let grant = |field: &str| {
        format!(
            "subject: {{ image: p }}\ngrants:\n  email:read: {{ level: read{}{field} }}\n",
            if field.is_empty() { "" } else { ", " }
        )
    };
    let head = |subject: &str, text: &str| {
        format!("subject: {{ {subject}: p }}\n{text}capabilities:\n  clipboard: {{ tier: auto, paste_in: true }}\n")
    };
    let steps = [
        (grant("ttl: 15m"), grant("ttl: 1h")),
        (grant("ttl: 15m"), grant("")),
        (grant("staleness: 15m"), grant("staleness: 16m")),
        (grant("staleness: 15m"), grant("")),
        (grant("retry: at-most-once"), grant("retry: safe")),
        (grant(""), grant("retry: safe")),
        (grant(""), grant("deferrable: true")),
        (grant("rate: 10/h"), grant("rate: 20/h")),
        (grant("rate: 10/h"), grant("rate: 3/10m")),
        (grant("rate: 10/h"), grant("")),
        (grant("max_pending: 1"), grant("max_pending: 2")),
        (grant("max_pending: 1"), grant("")),
        (head("image", ""), head("image", "administrative: true\n")),
        (head("integration", ""), head("integration", "external: false\n")),
        (head("image", "parent: a.yaml\n"), head("image", "")),
        (head("image", "parent: a.yaml\n"), head("image", "parent: b.yaml\n")),
    ];
    let integration = "polctl: v1\nsubject: { integration: mail }\ndeclares: [\"email:read\"]\n".to_owned();
    for (narrow, wide) in steps {
        let (base, mut map) = base(true);
        let mut of = |text: &str| {
            let texts =
                [("m.yaml".to_owned(), format!("polctl: v1\n{text}")), ("z.yaml".to_owned(), integration.clone())];
            set_of_texts(&texts, &base, &mut map)
        };
        let (narrow_set, wide_set) = (of(&narrow), of(&wide));
        let count = |old: &Compiled, new: &Compiled| {
            let findings = diff(old, new, &map).unwrap();
            assert!(findings.iter().all(|finding| finding.code != Code::WIDENING), "{findings:#?}");
            findings.iter().filter(|finding| finding.code == Code::CAPABILITY_WIDENING).count()
        };
        assert_eq!(count(&narrow_set, &wide_set), 1, "from {narrow} to {wide}");
        // Another parent is one in both directions; so is 3/10m, which is less in ten minutes.
        let back = usize::from(narrow.contains("parent") && wide.contains("parent") || wide.contains("3/10m"));
        assert_eq!(count(&wide_set, &narrow_set), back, "from {wide} to {narrow}");
        assert_eq!(count(&wide_set, &wide_set), 0);
    }
}

/// "Guardrails": what the configuration guards is a widening when it no longer does.
#[test]
fn guardrails_of_the_configuration_are_compared() {
    let guarded = "zones:\n  policy: [\"/pol/**\"]\ntrusted_dirs: [/usr/bin, /opt/tools]\n";
    let manifest = "polctl: v1\nsubject: { image: p }\ncapabilities:\n  fs.scope: { tier: auto, write: [/] }\n";
    for (change, to) in [
        ("provenance", format!("{guarded}provenance: off\n")),
        ("trusted_dirs", guarded.replace(", /opt/tools", "")),
        ("policy", guarded.replace("/pol/**", "/pol/a/**")),
    ] {
        let mut map = SourceMap::new();
        let [old, new] = [guarded, &to].map(|settings| {
            let base = configured(settings, &mut map);
            set_of_texts(&[("p.yaml".to_owned(), manifest.to_owned())], &base, &mut map)
        });
        let wider = |from: &Compiled, to: &Compiled| {
            let findings = diff(from, to, &map).unwrap();
            findings.iter().any(|finding| [Code::WIDENING, Code::CONFIG_WIDENING].contains(&finding.code))
        };
        assert!(wider(&old, &new), "{change} is taken away, and nothing is wider");
        assert!(!wider(&old, &old));
    }
}
