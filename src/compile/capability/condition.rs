//! Conditions on capability requests: each atom is one statement that Cedar can make too.

use std::net::IpAddr;

use ipnet::IpNet;

use crate::model::{CapabilityRequest, HostPattern, Level, Lifecycle, Subtree, Target, is_within_domain};

/// A yes/no attribute of the context.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Fact {
    /// `external`
    External,
    /// `sensitive`
    Sensitive,
    /// `tls_inspect`
    TlsInspect,
    /// `survives_session`
    SurvivesSession,
    /// `raw`
    Raw,
    /// `write`
    Write,
}

/// A text attribute of the context.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Text {
    /// `kind`: what of the class is used.
    Kind,
    /// `device`
    Device,
    /// `name`: a package or a Linux capability.
    Name,
    /// `broker_scope`
    BrokerScope,
    /// `capability`
    Capability,
}

/// One statement about a request.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CapabilityAtom {
    /// The host is a name that one of these holds.
    Host(Vec<HostPattern>),
    /// The host is an address in one of these.
    Address(Vec<IpNet>),
    /// The host is an address, or the proxy connects to one, in one of these.
    Reaches(Vec<IpNet>),
    /// The port is one of these.
    Ports(Vec<u16>),
    /// A fact holds.
    Fact(Fact),
    /// A text is one of these.
    Text(Text, Vec<String>),
    /// The path lies in it.
    Under(Subtree),
    /// The path has more segments than that.
    Deeper(usize),
    /// What is granted lives no longer.
    Lifecycle(Lifecycle),
    /// The action does no more.
    Level(Level),
    /// The session's workspace is one of these.
    Workspace(Vec<String>),
    /// The agent's persona is one of these.
    Persona(Vec<String>),
    /// It is earlier than this, in seconds since 1970.
    Before(i64),
}

/// A combination of statements.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Condition {
    /// All hold; with no member: always.
    All(Vec<Condition>),
    /// One holds; with no member: never.
    One(Vec<Condition>),
    /// It does not hold.
    Not(Box<Condition>),
    /// A statement.
    Atom(CapabilityAtom),
}

impl From<CapabilityAtom> for Condition {
    fn from(atom: CapabilityAtom) -> Self {
        Condition::Atom(atom)
    }
}

/// The texts of a request.
pub(crate) fn request_text(target: &Target, field: Text) -> Option<&str> {
    match (target, field) {
        (Target::Clipboard { copy_out }, Text::Kind) => Some(if *copy_out { "copy_out" } else { "paste_in" }),
        (Target::Gpu { mode, .. }, Text::Kind) => Some(mode.name()),
        (Target::Gpu { device, .. } | Target::Usb { device }, Text::Device) => Some(device),
        (Target::Package { .. }, Text::Kind) => Some("package"),
        (Target::LinuxCapability { .. }, Text::Kind) => Some("linux_capability"),
        (Target::Elevated, Text::Kind) => Some("elevated"),
        (Target::Package { name } | Target::LinuxCapability { name }, Text::Name) => Some(name),
        (Target::Credentials { broker_scope, .. }, Text::BrokerScope) => Some(broker_scope),
        (Target::Camera, Text::Kind) => Some("camera"),
        (Target::Mic, Text::Kind) => Some("mic"),
        (Target::Usb { .. }, Text::Kind) => Some("usb"),
        (Target::InputInject, Text::Kind) => Some("input_inject"),
        (Target::Grant { capability, .. }, Text::Capability) => Some(capability),
        _ => None,
    }
}

/// The path of a request.
pub(crate) fn request_path(target: &Target) -> Option<&[String]> {
    match target {
        Target::FsScope { path, .. } | Target::Persistence { path, .. } => Some(path),
        _ => None,
    }
}

/// Whether a pattern holds a canonical host name.
fn is_host(pattern: &HostPattern, host: &str) -> bool {
    match pattern {
        HostPattern::Exact(name) => host == name,
        HostPattern::SubDomains(name) => host != name && is_within_domain(host, name),
        HostPattern::DomainTree(name) => is_within_domain(host, name),
        HostPattern::Network(_) => false,
    }
}

/// Whether some host may be one of both; an address is no name.
fn hosts_meet(a: &HostPattern, b: &HostPattern) -> bool {
    use HostPattern::{DomainTree, Exact, Network, SubDomains};
    match (a, b) {
        (Network(a), Network(b)) => a.contains(b) || b.contains(a),
        (Network(_), _) | (_, Network(_)) => false,
        (Exact(a) | SubDomains(a) | DomainTree(a), Exact(b) | SubDomains(b) | DomainTree(b)) => {
            is_within_domain(a, b) || is_within_domain(b, a)
        }
    }
}

fn is_in(nets: &[IpNet], address: Option<IpAddr>) -> bool {
    address.is_some_and(|address| nets.iter().any(|net| net.contains(&address)))
}

impl CapabilityAtom {
    fn holds(&self, request: &CapabilityRequest) -> bool {
        let target = &request.target;
        match (self, target) {
            (CapabilityAtom::Host(patterns), Target::NetEgress { host, address: None, .. }) => {
                patterns.iter().any(|pattern| is_host(pattern, host))
            }
            (CapabilityAtom::Address(nets), Target::NetEgress { address, .. }) => is_in(nets, *address),
            (CapabilityAtom::Reaches(nets), Target::NetEgress { address, peer, .. }) => {
                is_in(nets, *address) || is_in(nets, *peer)
            }
            (CapabilityAtom::Ports(ports), Target::NetEgress { port, .. }) => ports.contains(port),
            (CapabilityAtom::Fact(fact), target) => match (fact, target) {
                (Fact::External, _) => request.external,
                (Fact::Sensitive, _) => request.sensitive,
                (Fact::TlsInspect, Target::NetEgress { tls_inspect, .. }) => *tls_inspect,
                (Fact::SurvivesSession, Target::Persistence { survives_session, .. }) => *survives_session,
                (Fact::Raw, Target::Credentials { raw, .. }) => *raw,
                (Fact::Write, Target::FsScope { write, .. }) => *write,
                _ => false,
            },
            (CapabilityAtom::Text(field, values), target) => {
                request_text(target, *field).is_some_and(|text| values.iter().any(|value| value == text))
            }
            (CapabilityAtom::Under(place), target) => request_path(target).is_some_and(|path| place.holds(path)),
            (CapabilityAtom::Deeper(most), target) => request_path(target).is_some_and(|path| path.len() > *most),
            (CapabilityAtom::Lifecycle(most), _) => request.lifecycle <= *most,
            (CapabilityAtom::Level(most), Target::Grant { level, .. }) => level <= most,
            (CapabilityAtom::Workspace(names), _) => names.contains(&request.workspace),
            (CapabilityAtom::Persona(names), _) => names.contains(&request.persona),
            (CapabilityAtom::Before(time), _) => request.now < *time,
            _ => false,
        }
    }
}

impl Condition {
    /// Never.
    pub const FALSE: Condition = Condition::One(Vec::new());

    /// All of them, without a needless level.
    pub fn all(mut parts: Vec<Condition>) -> Condition {
        if parts.contains(&Condition::FALSE) {
            return Condition::FALSE;
        }
        match (parts.len(), parts.pop()) {
            (1, Some(only)) => only,
            (_, last) => {
                parts.extend(last);
                Condition::All(parts)
            }
        }
    }

    /// One of them, without a needless level.
    pub fn one(mut parts: Vec<Condition>) -> Condition {
        match (parts.len(), parts.pop()) {
            (1, Some(only)) => only,
            (_, last) => {
                parts.extend(last);
                Condition::One(parts)
            }
        }
    }

    /// That it does not hold.
    #[must_use]
    pub fn negated(self) -> Condition {
        match self {
            Condition::Not(inner) => *inner,
            other => Condition::Not(Box::new(other)),
        }
    }

    /// Whether it holds for a request.
    pub fn holds(&self, request: &CapabilityRequest) -> bool {
        match self {
            Condition::All(parts) => parts.iter().all(|part| part.holds(request)),
            Condition::One(parts) => parts.iter().any(|part| part.holds(request)),
            Condition::Not(inner) => !inner.holds(request),
            Condition::Atom(atom) => atom.holds(request),
        }
    }

    /// Values of which one must hold wherever the condition does, as far as its shape tells: `pick`
    /// takes them from an atom.
    pub fn required<'a, T>(&'a self, pick: &dyn Fn(&'a CapabilityAtom) -> Option<Vec<T>>) -> Option<Vec<T>> {
        match self {
            Condition::All(parts) => parts.iter().find_map(|part| part.required(pick)),
            Condition::One(parts) => {
                let each: Option<Vec<Vec<T>>> = parts.iter().map(|part| part.required(pick)).collect();
                each.map(|each| each.into_iter().flatten().collect())
            }
            Condition::Not(_) => None,
            Condition::Atom(atom) => pick(atom),
        }
    }

    /// Whether no request can meet both, by their shape alone.
    pub fn excludes(&self, other: &Condition) -> bool {
        fn apart<'a, T: 'a>(
            (a, b): (&'a Condition, &'a Condition),
            pick: &dyn Fn(&'a CapabilityAtom) -> Option<Vec<T>>,
            meet: &dyn Fn(&T, &T) -> bool,
        ) -> bool {
            let (Some(a), Some(b)) = (a.required(pick), b.required(pick)) else { return false };
            !a.iter().any(|a| b.iter().any(|b| meet(a, b)))
        }
        let both = (self, other);
        let texts = [Text::Kind, Text::Device, Text::Name, Text::BrokerScope, Text::Capability];
        texts.into_iter().any(|field| {
            let pick = move |atom: &CapabilityAtom| match atom {
                CapabilityAtom::Text(own, values) if *own == field => Some(values.clone()),
                _ => None,
            };
            apart(both, &pick, &|a: &String, b| a == b)
        }) || apart(
            both,
            &|atom| match atom {
                CapabilityAtom::Ports(ports) => Some(ports.clone()),
                _ => None,
            },
            &|a, b| a == b,
        ) || apart(
            both,
            &|atom| match atom {
                CapabilityAtom::Host(patterns) => Some(patterns.clone()),
                CapabilityAtom::Address(nets) => Some(nets.iter().copied().map(HostPattern::Network).collect()),
                _ => None,
            },
            &hosts_meet,
        ) || apart(
            both,
            &|atom| match atom {
                CapabilityAtom::Under(place) => Some(vec![place]),
                _ => None,
            },
            &|a: &&Subtree, b| a.meets(b),
        )
    }

    /// Calls `see` for each atom.
    pub fn atoms<'a>(&'a self, see: &mut dyn FnMut(&'a CapabilityAtom)) {
        match self {
            Condition::All(parts) | Condition::One(parts) => parts.iter().for_each(|part| part.atoms(see)),
            Condition::Not(inner) => inner.atoms(see),
            Condition::Atom(atom) => see(atom),
        }
    }
}
