//! Egress rules as conditions (DESIGN 3.5).

use ipnet::IpNet;

use super::commands::{Reading, subjects};
use super::expr::{Address, Atom, Expr, Flag, SetAttr};
use crate::model::{BoolTerm, EgressPattern, Glob, HostPattern, NON_PUBLIC, Piece, Rule};

/// What a rule demands of method, URL, secrets and facts.
pub(super) fn condition(rule: &Rule, pattern: &EgressPattern, secrets: &[String], reading: Reading) -> Vec<Expr> {
    let mut out: Vec<Expr> = vec![
        Atom::Method(pattern.methods.clone()).into(),
        Atom::Scheme(pattern.scheme).into(),
        host(&pattern.host),
        Atom::Port(pattern.port).into(),
    ];
    for (index, glob) in pattern.segments.iter().enumerate() {
        if !glob.is_any() {
            out.push(Atom::Word(index + 1, vec![glob.clone()]).into());
        }
    }
    match (pattern.rest, pattern.segments.len()) {
        (true, 0) => {}
        (true, n) => out.push(Atom::CountAtLeast(n).into()),
        (false, n) => out.push(Atom::CountIs(n).into()),
    }
    match (reading, secrets) {
        (Reading::Narrow, []) => out.push(Atom::Empty(SetAttr::Secrets).into()),
        (Reading::Narrow, secrets) => out.push(Atom::Within(SetAttr::Secrets, secrets.to_vec()).into()),
        // A rule about secrets restricts what carries them; one without restricts everything.
        (Reading::Broad, []) => {}
        (Reading::Broad, secrets) => out.push(Atom::HasAny(SetAttr::Secrets, secrets.to_vec()).into()),
    }
    match rule.when.external {
        Some(BoolTerm::Yes) => out.push(Atom::Flag(Flag::External).into()),
        Some(BoolTerm::No) => out.push(Expr::from(Atom::Flag(Flag::External)).negated()),
        Some(BoolTerm::Any) | None => {}
    }
    out.extend(subjects(rule));
    out
}

fn host(pattern: &HostPattern) -> Expr {
    let below = |host: &str| Glob::new([Piece::Any, Piece::Text(format!(".{host}"))]);
    match pattern {
        HostPattern::Exact(host) => Atom::HostName(vec![Glob::literal(host)]).into(),
        HostPattern::SubDomains(host) => Atom::HostName(vec![below(host)]).into(),
        HostPattern::DomainTree(host) => Atom::HostName(vec![Glob::literal(host), below(host)]).into(),
        HostPattern::Network(net) => Atom::InNetwork(Address::Host, vec![*net]).into(),
    }
}

/// The built-in guardrail: an address that is not public, as host or as peer.
pub(super) fn non_public() -> Expr {
    let nets: Vec<IpNet> = NON_PUBLIC.iter().filter_map(|n| n.parse().ok()).collect();
    Expr::One(vec![Atom::InNetwork(Address::Host, nets.clone()).into(), Atom::InNetwork(Address::Peer, nets).into()])
}
