//! Conditions: the small language that every generated policy is written in.
//!
//! An [`Expr`] is printed as Cedar, evaluated over facts, and searched for a member by the
//! exact engine. Each atom is one statement about the context that Cedar can make, so the
//! three never speak of different things.

use std::net::IpAddr;

use ipnet::IpNet;

use crate::model::{CommandFacts, EgressFacts, Facts, Glob, Scheme};

/// A yes/no attribute of the context.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Flag {
    /// `trusted`
    Trusted,
    /// `harmless`
    Harmless,
    /// `dynamic`
    Dynamic,
    /// `external`
    External,
    /// `open`
    Open,
    /// `many`
    Many,
    /// `covered`
    Covered,
}

/// A set-valued attribute of the context.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SetAttr {
    /// `options`: those that may be present
    Options,
    /// `certain`: options that certainly are present
    Certain,
    /// `globals`: options that stood before the sub-command
    Globals,
    /// `writes`
    Writes,
    /// `names`
    Names,
    /// `env`
    Env,
    /// `wrappers`
    Wrappers,
    /// `secrets`
    Secrets,
}

/// An address of an egress request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Address {
    /// `address`: the host, where it is written as one
    Host,
    /// `peer`: what the proxy connects to
    Peer,
}

/// One statement about a request.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Atom {
    /// The principal is one of these agents.
    Agent(Vec<String>),
    /// The resource is one of these machines.
    Machine(Vec<String>),
    /// A flag holds.
    Flag(Flag),
    /// The program matches one of these.
    Program(Vec<Glob>),
    /// The command runs as one of these users.
    RunAs(Vec<String>),
    /// The word at this position (1-based) is certain and matches one of these. On egress: the path segment.
    Word(usize, Vec<Glob>),
    /// The word at this position is not certain.
    WordUnknown(usize),
    /// No word is uncertain.
    AllKnown,
    /// Exactly so many words.
    CountIs(usize),
    /// At least so many words.
    CountAtLeast(usize),
    /// Some certain word matches one of these; wildcards only at their ends.
    Anywhere(Vec<Glob>),
    /// The set holds one of these.
    HasAny(SetAttr, Vec<String>),
    /// The set holds nothing but these.
    Within(SetAttr, Vec<String>),
    /// The set is empty.
    Empty(SetAttr),
    /// The method is one of these.
    Method(Vec<String>),
    /// The scheme.
    Scheme(Scheme),
    /// The host matches one of these.
    HostName(Vec<Glob>),
    /// The port.
    Port(u16),
    /// The address is present and in one of these networks.
    InNetwork(Address, Vec<IpNet>),
}

/// A boolean combination of atoms.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Expr {
    /// All hold; with no member: always true.
    All(Vec<Expr>),
    /// One holds; with no member: never true.
    One(Vec<Expr>),
    /// It does not hold.
    Not(Box<Expr>),
    /// A statement.
    Atom(Atom),
}

impl Expr {
    /// Holds always.
    pub const TRUE: Expr = Expr::All(Vec::new());
    /// Holds never.
    pub const FALSE: Expr = Expr::One(Vec::new());

    /// The negation of a condition.
    #[must_use]
    pub fn negated(self) -> Expr {
        match self {
            Expr::Not(inner) => *inner,
            other => Expr::Not(Box::new(other)),
        }
    }

    /// One of the given conditions, without a needless level.
    pub fn one(mut exprs: Vec<Expr>) -> Expr {
        match (exprs.len(), exprs.pop()) {
            (1, Some(only)) => only,
            (_, last) => {
                exprs.extend(last);
                Expr::One(exprs)
            }
        }
    }

    /// Whether the condition holds for these facts.
    pub fn holds(&self, facts: &Facts) -> bool {
        match self {
            Expr::All(exprs) => exprs.iter().all(|e| e.holds(facts)),
            Expr::One(exprs) => exprs.iter().any(|e| e.holds(facts)),
            Expr::Not(expr) => !expr.holds(facts),
            Expr::Atom(atom) => match facts {
                Facts::Command(facts) => atom.holds_command(facts),
                Facts::Egress(facts) => atom.holds_egress(facts),
            },
        }
    }

    /// Calls `visit` for every atom.
    pub fn atoms<'a>(&'a self, visit: &mut impl FnMut(&'a Atom)) {
        match self {
            Expr::All(exprs) | Expr::One(exprs) => exprs.iter().for_each(|e| e.atoms(visit)),
            Expr::Not(expr) => expr.atoms(visit),
            Expr::Atom(atom) => visit(atom),
        }
    }
}

impl From<Atom> for Expr {
    fn from(atom: Atom) -> Self {
        Expr::Atom(atom)
    }
}

fn any_matches(globs: &[Glob], text: &str) -> bool {
    globs.iter().any(|g| g.matches(text))
}

impl Atom {
    fn holds_command(&self, f: &CommandFacts) -> bool {
        match self {
            Atom::Agent(names) => names.contains(&f.agent),
            Atom::Machine(names) => names.contains(&f.host),
            Atom::Flag(Flag::Trusted) => f.trusted,
            Atom::Flag(Flag::Harmless) => f.harmless,
            Atom::Flag(Flag::Dynamic) => f.dynamic,
            Atom::Flag(Flag::External) => f.external,
            Atom::Flag(Flag::Open) => f.open,
            Atom::Flag(Flag::Many) => f.many,
            Atom::Flag(Flag::Covered) => f.covered,
            Atom::Program(globs) => any_matches(globs, &f.program),
            Atom::RunAs(users) => f.run_as.as_ref().is_some_and(|user| users.contains(user)),
            Atom::Word(position, globs) => f
                .args
                .get(position.wrapping_sub(1))
                .and_then(Option::as_ref)
                .is_some_and(|word| any_matches(globs, word)),
            Atom::WordUnknown(position) => f.unknown.contains(position),
            Atom::AllKnown => f.unknown.is_empty(),
            Atom::CountIs(n) => f.argc == *n,
            Atom::CountAtLeast(n) => f.argc >= *n,
            Atom::Anywhere(globs) => f.known_words.iter().any(|w| any_matches(globs, w)),
            Atom::HasAny(set, names) => command_set(f, *set).is_some_and(|s| names.iter().any(|n| s.contains(n))),
            Atom::Within(set, names) => command_set(f, *set).is_some_and(|s| s.iter().all(|e| names.contains(e))),
            Atom::Empty(set) => command_set(f, *set).is_some_and(std::collections::BTreeSet::is_empty),
            Atom::Method(_) | Atom::Scheme(_) | Atom::HostName(_) | Atom::Port(_) | Atom::InNetwork(..) => false,
        }
    }

    fn holds_egress(&self, f: &EgressFacts) -> bool {
        match self {
            Atom::Agent(names) => names.contains(&f.agent),
            Atom::Machine(names) => names.contains(&f.machine),
            Atom::Flag(Flag::External) => f.external,
            Atom::Word(position, globs) => {
                f.segments.get(position.wrapping_sub(1)).is_some_and(|s| any_matches(globs, s))
            }
            Atom::CountIs(n) => f.segments.len() == *n,
            Atom::CountAtLeast(n) => f.segments.len() >= *n,
            Atom::HasAny(SetAttr::Secrets, names) => names.iter().any(|n| f.secrets.contains(n)),
            Atom::Within(SetAttr::Secrets, names) => f.secrets.iter().all(|e| names.contains(e)),
            Atom::Empty(SetAttr::Secrets) => f.secrets.is_empty(),
            Atom::Method(names) => names.contains(&f.method),
            Atom::Scheme(scheme) => f.scheme == *scheme,
            Atom::HostName(globs) => any_matches(globs, &f.host),
            Atom::Port(port) => f.port == *port,
            Atom::InNetwork(which, nets) => {
                let address: Option<IpAddr> = match which {
                    Address::Host => f.address,
                    Address::Peer => f.peer,
                };
                address.is_some_and(|a| nets.iter().any(|n| n.contains(&a)))
            }
            Atom::Flag(_)
            | Atom::Program(_)
            | Atom::RunAs(_)
            | Atom::WordUnknown(_)
            | Atom::AllKnown
            | Atom::Anywhere(_)
            | Atom::HasAny(..)
            | Atom::Within(..)
            | Atom::Empty(_) => false,
        }
    }
}

/// The set that an attribute names, on command surfaces.
fn command_set(f: &CommandFacts, set: SetAttr) -> Option<&std::collections::BTreeSet<String>> {
    match set {
        SetAttr::Options => Some(&f.options),
        SetAttr::Certain => Some(&f.certain),
        SetAttr::Globals => Some(&f.globals),
        SetAttr::Writes => Some(&f.writes),
        SetAttr::Names => Some(&f.names),
        SetAttr::Env => Some(&f.env),
        SetAttr::Wrappers => Some(&f.wrappers),
        SetAttr::Secrets => None,
    }
}
