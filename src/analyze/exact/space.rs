//! The space of requests: what a search chooses, in which order, and at what price.
//!
//! Facts that are independent of the words are *dimensions*: for each, the finitely many
//! values that the atoms of a query can tell apart, and one that none of them mentions. What
//! people would type without a thought costs nothing, so witnesses stay plain.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;

use crate::compile::{Address, Atom, Flag, SetAttr};
use crate::model::{Request, Scheme, Zones, globals_of_programs};

/// What an atom of a query is about, with `names` taken apart into the part that the words
/// decide and the part that the working directory adds.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum LeafKey {
    /// As in the policy.
    Atom(Atom),
    /// The working directory adds one of these zones.
    PlaceAny(Vec<String>),
    /// It adds none but these.
    PlaceWithin(Vec<String>),
    /// It is known, so that `..` is resolved.
    PlaceKnown,
    /// A word names one of these zones.
    WordsName(Vec<String>),
    /// The program's long options have one dash.
    Dashed,
}

/// A fact that is chosen before the words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Dimension {
    Agent,
    Machine,
    Flag(Flag),
    PlaceKnown,
    Place,
    Set(SetAttr),
    RunAs,
    Method,
    Scheme,
    Port,
    Address(Address),
}

/// A value of a dimension.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Choice {
    Name(String),
    Truth(bool),
    Names(BTreeSet<String>),
    Scheme(Scheme),
    Port(u16),
    Address(Option<IpAddr>),
}

/// A value with its price and what it makes true.
#[derive(Clone, Debug)]
pub(super) struct DimensionValue {
    pub(super) choice: Choice,
    pub(super) cost: u32,
    pub(super) truths: Vec<(usize, bool)>,
}

impl LeafKey {
    /// The dimension that decides the leaf; `None` when words or texts do.
    pub(super) const fn dimension(&self) -> Option<Dimension> {
        Some(match self {
            LeafKey::PlaceAny(_) | LeafKey::PlaceWithin(_) => Dimension::Place,
            LeafKey::PlaceKnown => Dimension::PlaceKnown,
            LeafKey::WordsName(_) | LeafKey::Dashed => return None,
            LeafKey::Atom(atom) => match atom {
                Atom::Agent(_) => Dimension::Agent,
                Atom::Machine(_) => Dimension::Machine,
                Atom::Flag(Flag::Open) => return None,
                Atom::Flag(flag) => Dimension::Flag(*flag),
                Atom::RunAs(_) => Dimension::RunAs,
                Atom::HasAny(set, _) | Atom::Within(set, _) | Atom::Empty(set) => match set {
                    SetAttr::Options | SetAttr::Certain => return None,
                    set => Dimension::Set(*set),
                },
                Atom::Method(_) => Dimension::Method,
                Atom::Scheme(_) => Dimension::Scheme,
                Atom::Port(_) => Dimension::Port,
                Atom::InNetwork(which, _) => Dimension::Address(*which),
                Atom::Program(_)
                | Atom::Word(..)
                | Atom::WordUnknown(_)
                | Atom::AllKnown
                | Atom::CountIs(_)
                | Atom::CountAtLeast(_)
                | Atom::Anywhere(_)
                | Atom::HostName(_) => return None,
            },
        })
    }

    /// The leaf's truth for a value of its dimension.
    fn truth(&self, choice: &Choice) -> bool {
        match (self, choice) {
            (LeafKey::PlaceAny(zones), Choice::Names(set)) => zones.iter().any(|z| set.contains(z)),
            (LeafKey::PlaceWithin(zones), Choice::Names(set)) => set.iter().all(|z| zones.contains(z)),
            (LeafKey::PlaceKnown, Choice::Truth(truth)) => *truth,
            (LeafKey::Atom(atom), choice) => match (atom, choice) {
                (
                    Atom::Agent(names) | Atom::Machine(names) | Atom::RunAs(names) | Atom::Method(names),
                    Choice::Name(name),
                ) => names.contains(name),
                (Atom::Flag(_), Choice::Truth(truth)) => *truth,
                (Atom::HasAny(_, names), Choice::Names(set)) => names.iter().any(|n| set.contains(n)),
                (Atom::Within(_, names), Choice::Names(set)) => set.iter().all(|n| names.contains(n)),
                (Atom::Empty(_), Choice::Names(set)) => set.is_empty(),
                (Atom::Scheme(want), Choice::Scheme(scheme)) => want == scheme,
                (Atom::Port(want), Choice::Port(port)) => want == port,
                (Atom::InNetwork(_, nets), Choice::Address(Some(address))) => nets.iter().any(|n| n.contains(address)),
                _ => false,
            },
            _ => false,
        }
    }
}

/// The values of a dimension that its leaves can tell apart, cheapest first.
pub(super) fn values(dimension: Dimension, leaves: &[(usize, &LeafKey)]) -> Vec<DimensionValue> {
    let choices = match dimension {
        Dimension::Agent => names(leaves, &["agent", "agent-x"], false),
        Dimension::Machine => names(leaves, &["host", "host-x"], false),
        Dimension::RunAs => names(leaves, &["root", "nobody", "nobody-x"], false),
        Dimension::Method => {
            names(leaves, &["POST", "DELETE", "GET", "PUT", "PATCH", "HEAD", "OPTIONS", "TRACE", "CONNECT"], true)
        }
        Dimension::Flag(Flag::Trusted | Flag::Harmless) => vec![(0, Choice::Truth(true)), (8, Choice::Truth(false))],
        // File name patterns stand for their members; no member is missed without them.
        Dimension::Flag(Flag::Many) => vec![(0, Choice::Truth(false))],
        Dimension::Flag(_) | Dimension::PlaceKnown => vec![(0, Choice::Truth(false)), (8, Choice::Truth(true))],
        Dimension::Place | Dimension::Set(_) => return sets(dimension, leaves),
        Dimension::Scheme => Scheme::ALL.into_iter().zip(0..).map(|(s, c)| (c, Choice::Scheme(s))).collect(),
        Dimension::Port => ports(leaves),
        Dimension::Address(which) => addresses(which, leaves),
    };
    let mut out: Vec<DimensionValue> = Vec::new();
    let mut seen: BTreeSet<Vec<bool>> = BTreeSet::new();
    for (cost, choice) in choices {
        let truths: Vec<(usize, bool)> = leaves.iter().map(|(index, key)| (*index, key.truth(&choice))).collect();
        let mut vector: Vec<bool> = truths.iter().map(|(_, truth)| *truth).collect();
        // A flag that opens other symbols, and a host that is an address, differ even where no leaf sees it.
        vector.push(matches!(choice, Choice::Truth(true) | Choice::Address(Some(_))));
        if seen.insert(vector) {
            out.push(DimensionValue { choice, cost, truths });
        }
    }
    out
}

/// Names that leaves mention, and the first of `fresh` that none does.
fn names(leaves: &[(usize, &LeafKey)], fresh: &[&str], mentioned_first: bool) -> Vec<(u32, Choice)> {
    let mut mentioned: BTreeSet<&String> = BTreeSet::new();
    for (_, key) in leaves {
        if let LeafKey::Atom(Atom::Agent(names) | Atom::Machine(names) | Atom::RunAs(names) | Atom::Method(names)) = key
        {
            mentioned.extend(names);
        }
    }
    let mut out: Vec<(u32, Choice)> = Vec::new();
    let other = fresh.iter().find(|f| !mentioned.iter().any(|m| m == *f));
    let price = u32::from(!mentioned_first) * 4;
    if let Some(other) = other {
        out.push((u32::from(mentioned_first), Choice::Name((*other).to_owned())));
    } else {
        out.push((9, Choice::Name(format!("{}-other", fresh.first().unwrap_or(&"x")))));
    }
    out.extend(mentioned.into_iter().map(|m| {
        // The usual user costs nothing even where a rule mentions it.
        (if m == "root" { 0 } else { price }, Choice::Name(m.clone()))
    }));
    out.sort_by_key(|(cost, _)| *cost);
    out
}

/// Every combination of truths that a set can have: the truths of a union follow from those
/// of its parts, so the combinations are closed under adding one element at a time.
fn sets(dimension: Dimension, leaves: &[(usize, &LeafKey)]) -> Vec<DimensionValue> {
    let mut elements: BTreeSet<String> = BTreeSet::new();
    for (_, key) in leaves {
        match key {
            LeafKey::PlaceAny(names) | LeafKey::PlaceWithin(names) => elements.extend(names.iter().cloned()),
            LeafKey::Atom(Atom::HasAny(_, names) | Atom::Within(_, names)) => elements.extend(names.iter().cloned()),
            _ => {}
        }
    }
    if dimension == Dimension::Set(SetAttr::Globals) {
        // Only options that some program takes there.
        elements.retain(|name| globals_of_programs().any(|(_, mut options)| options.any(|o| o == name)));
    }
    // What no leaf mentions. Zones of a working directory that no leaf mentions change nothing.
    let other = match dimension {
        Dimension::Set(SetAttr::Writes) => Some(Zones::ELSEWHERE),
        Dimension::Set(SetAttr::Env) => Some("OTHER"),
        Dimension::Set(SetAttr::Wrappers) => Some("wrapper"),
        Dimension::Set(SetAttr::Secrets) => Some("vault://other/secret#field"),
        Dimension::Place => Some("other"),
        _ => None,
    };
    elements.extend(other.filter(|o| !elements.contains(*o)).map(str::to_owned));
    if dimension == Dimension::Place {
        elements.remove(Zones::UNRESOLVED);
    }
    let mut out: Vec<DimensionValue> = Vec::new();
    let mut seen: BTreeSet<Vec<bool>> = BTreeSet::new();
    let mut queue = vec![BTreeSet::new()];
    let mut at = 0;
    while let Some(set) = queue.get(at).cloned() {
        at += 1;
        let choice = Choice::Names(set.clone());
        let truths: Vec<(usize, bool)> = leaves.iter().map(|(index, key)| (*index, key.truth(&choice))).collect();
        if !seen.insert(truths.iter().map(|(_, truth)| *truth).collect()) {
            continue;
        }
        let cost = u32::try_from(set.len()).unwrap_or(u32::MAX / 16).saturating_mul(8);
        out.push(DimensionValue { choice, cost, truths });
        for element in &elements {
            if !set.contains(element) {
                let mut larger = set.clone();
                larger.insert(element.clone());
                queue.push(larger);
            }
        }
    }
    out
}

fn ports(leaves: &[(usize, &LeafKey)]) -> Vec<(u32, Choice)> {
    let mut mentioned: BTreeSet<u16> = BTreeSet::new();
    for (_, key) in leaves {
        if let LeafKey::Atom(Atom::Port(port)) = key {
            mentioned.insert(*port);
        }
    }
    let other = (8443..=u16::MAX).chain(1..8443).find(|p| !mentioned.contains(p));
    let mut out: Vec<(u32, Choice)> = mentioned.iter().map(|p| (0, Choice::Port(*p))).collect();
    out.extend(other.map(|p| (2, Choice::Port(p))));
    out
}

/// Addresses at which membership in one of the networks changes, a public one, and none.
fn addresses(which: Address, leaves: &[(usize, &LeafKey)]) -> Vec<(u32, Choice)> {
    let mut found: BTreeSet<IpAddr> = BTreeSet::new();
    for (_, key) in leaves {
        let LeafKey::Atom(Atom::InNetwork(at, nets)) = key else { continue };
        if *at != which {
            continue;
        }
        for net in nets {
            found.insert(net.network());
            found.extend(behind(net));
        }
    }
    let mut out = vec![(0, Choice::Address(None))];
    for usual in [IpAddr::V4(Ipv4Addr::new(9, 9, 9, 9)), IpAddr::V6(Ipv6Addr::new(0x2620, 0xfe, 0, 0, 0, 0, 0, 0xfe))] {
        out.push((6, Choice::Address(Some(usual))));
    }
    out.extend(found.into_iter().map(|a| (7, Choice::Address(Some(a)))));
    out
}

/// The first address behind a network.
fn behind(net: &IpNet) -> Option<IpAddr> {
    match net.broadcast() {
        IpAddr::V4(last) => u32::from(last).checked_add(1).map(|n| IpAddr::V4(Ipv4Addr::from(n))),
        IpAddr::V6(last) => u128::from(last).checked_add(1).map(|n| IpAddr::V6(Ipv6Addr::from(n))),
    }
}

/// Puts a chosen value into a request.
pub(super) fn apply(request: &mut Request, dimension: Dimension, choice: &Choice) {
    match request {
        Request::Command(r) => match (dimension, choice) {
            (Dimension::Agent, Choice::Name(name)) => r.agent.clone_from(name),
            (Dimension::Machine, Choice::Name(name)) => r.host.clone_from(name),
            (Dimension::RunAs, Choice::Name(name)) => r.run_as.clone_from(name),
            (Dimension::PlaceKnown, Choice::Truth(truth)) => r.place.known = *truth,
            (Dimension::Flag(flag), Choice::Truth(truth)) => match flag {
                Flag::Trusted => r.trusted = *truth,
                Flag::Harmless => r.harmless = *truth,
                Flag::Dynamic => r.dynamic = *truth,
                Flag::External => r.external = *truth,
                Flag::Covered => r.covered = *truth,
                Flag::Open | Flag::Many => {}
            },
            (Dimension::Place, Choice::Names(set)) => r.place.zones.clone_from(set),
            (Dimension::Set(SetAttr::Writes), Choice::Names(set)) => r.writes.clone_from(set),
            (Dimension::Set(SetAttr::Env), Choice::Names(set)) => r.env.clone_from(set),
            (Dimension::Set(SetAttr::Wrappers), Choice::Names(set)) => r.wrappers.clone_from(set),
            (Dimension::Set(SetAttr::Globals), Choice::Names(set)) => r.globals = set.iter().cloned().collect(),
            _ => {}
        },
        Request::Egress(r) => match (dimension, choice) {
            (Dimension::Agent, Choice::Name(name)) => r.agent.clone_from(name),
            (Dimension::Machine, Choice::Name(name)) => r.machine.clone_from(name),
            (Dimension::Method, Choice::Name(name)) => r.method.clone_from(name),
            (Dimension::Flag(Flag::External), Choice::Truth(truth)) => r.external = *truth,
            (Dimension::Set(SetAttr::Secrets), Choice::Names(set)) => r.secrets.clone_from(set),
            (Dimension::Scheme, Choice::Scheme(scheme)) => r.scheme = *scheme,
            (Dimension::Port, Choice::Port(port)) => r.port = *port,
            (Dimension::Address(Address::Peer), Choice::Address(address)) => r.peer = *address,
            (Dimension::Address(Address::Host), Choice::Address(Some(address))) => {
                r.address = Some(*address);
                r.host = address.to_string();
            }
            _ => {}
        },
    }
}
