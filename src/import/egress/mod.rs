//! Lists of hosts → the egress surface.
//!
//! Each list means another thing by the same text: `example.com` is that host alone to the Codex proxy, to Smokescreen and to
//! sandbox-runtime, and `.example.com` is the domain with its sub-domains to squid; `*.example.com` never is the domain itself.
//! All of them speak of hosts on any port; our rules name one, so allowances are for the ports of the web (80 and 443).

mod lists;
mod squid;

pub(super) use lists::{codex_proxy, sandbox_runtime, smokescreen};
pub(super) use squid::squid;

use super::rows;
use super::{Imported, Loss};
use crate::model::{HostPattern, Surface, Tier, canonical_host, is_within_domain};
use crate::source::Span;

/// A host as written: exactly, `*.` for sub-domains, `**.` for both.
///
/// # Errors
///
/// Why rules cannot name it.
fn host(text: &str) -> Result<HostPattern, String> {
    let named = |name: &str| canonical_host(name).map_err(|why| format!("the host `{name}` {why}"));
    if let Some(name) = text.strip_prefix("**.") {
        named(name).map(HostPattern::DomainTree)
    } else if let Some(name) = text.strip_prefix("*.") {
        named(name).map(HostPattern::SubDomains)
    } else if text.contains('*') || text.contains('?') {
        Err(format!("`{text}` has a wildcard within a name"))
    } else {
        rows::host(text)
    }
}

/// The smallest host pattern that holds all that a text may mean; `None`: every host.
fn around(text: &str) -> Option<HostPattern> {
    if let Ok(pattern) = host(text) {
        return Some(pattern);
    }
    let at = text.rfind(['*', '?'])?;
    let tail = text.get(at + 1..)?;
    let name = tail.get(tail.find('.')? + 1..)?;
    canonical_host(name).ok().filter(|name| name.contains('.')).map(HostPattern::DomainTree)
}

/// Whether some host may be in both.
fn meet(a: &HostPattern, b: &HostPattern) -> bool {
    let name = |pattern: &HostPattern| match pattern {
        HostPattern::Exact(name) | HostPattern::SubDomains(name) | HostPattern::DomainTree(name) => Some(name.clone()),
        HostPattern::Network(_) => None,
    };
    match (a, b) {
        (HostPattern::Network(a), HostPattern::Network(b)) => a.contains(b) || b.contains(a),
        (HostPattern::Exact(a), HostPattern::Exact(b)) => a == b,
        (HostPattern::Exact(a), HostPattern::SubDomains(b)) | (HostPattern::SubDomains(b), HostPattern::Exact(a)) => {
            a != b && is_within_domain(a, b)
        }
        _ => match (name(a), name(b)) {
            (Some(a), Some(b)) => is_within_domain(&a, &b) || is_within_domain(&b, &a),
            _ => false,
        },
    }
}

/// Whether every host of `b` is one of `a`.
fn holds(a: &HostPattern, b: &HostPattern) -> bool {
    match (a, b) {
        (HostPattern::Network(a), HostPattern::Network(b)) => a.contains(b),
        (HostPattern::Exact(a), HostPattern::Exact(b)) => a == b,
        (HostPattern::SubDomains(a), HostPattern::Exact(b)) => a != b && is_within_domain(b, a),
        (HostPattern::SubDomains(a), HostPattern::SubDomains(b)) => is_within_domain(b, a),
        (HostPattern::SubDomains(a), HostPattern::DomainTree(b)) => a != b && is_within_domain(b, a),
        (
            HostPattern::DomainTree(a),
            HostPattern::Exact(b) | HostPattern::SubDomains(b) | HostPattern::DomainTree(b),
        ) => is_within_domain(b, a),
        _ => false,
    }
}

/// Adds an allowed host, or says why there is none.
fn allow(text: &str, span: Span, unmatched: Tier, agents: &[String], out: &mut Imported) {
    let pattern = match host(text) {
        Ok(HostPattern::SubDomains(name) | HostPattern::DomainTree(name)) if !name.contains('.') => {
            Err(format!("`{text}` is a whole top-level domain"))
        }
        pattern => pattern,
    };
    match pattern {
        Ok(pattern) => {
            let mut rows = rows::site(rows::tier(rows::ALLOW), &pattern, span);
            rows.iter_mut().for_each(|row| row.agents = agents.to_vec());
            out.map(Surface::Egress, unmatched).rows.extend(rows);
        }
        Err(why) => out.note(span, Loss::LeftOut, why),
    }
}

/// Adds a refused host; one that rules cannot name becomes a larger one.
fn deny(text: &str, span: Span, unmatched: Tier, out: &mut Imported) {
    let Some(pattern) = around(text) else {
        out.note(span, Loss::Broader, format!("rules cannot name `{text}`, so no host is permitted"));
        out.map(Surface::Egress, unmatched).rows.retain(|row| row.tier >= Tier::UNMATCHED);
        return;
    };
    if host(text).is_err() {
        out.note(span, Loss::Broader, format!("`{text}` is read as `{pattern}`"));
    }
    let rows = rows::site(Tier::DENY, &pattern, span);
    out.map(Surface::Egress, unmatched).rows.extend(rows);
}

/// What every list loses alike.
fn ports(span: Span, out: &mut Imported) {
    out.note(
        span,
        Loss::Narrower,
        "only on the ports of the web (80 and 443) and with the usual methods; the source names no port",
    );
}
