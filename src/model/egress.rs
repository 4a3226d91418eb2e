//! Egress patterns: methods, scheme, host, port, path (DESIGN 3.5).

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use ipnet::IpNet;

use super::Glob;

/// A URL scheme that the proxy speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scheme {
    /// `https`, port 443.
    Https,
    /// `http`, port 80.
    Http,
    /// `wss`, port 443.
    Wss,
    /// `ws`, port 80.
    Ws,
}

impl Scheme {
    /// All schemes.
    pub const ALL: [Scheme; 4] = [Scheme::Https, Scheme::Http, Scheme::Wss, Scheme::Ws];

    /// Its name, lower case.
    pub const fn name(self) -> &'static str {
        match self {
            Scheme::Https => "https",
            Scheme::Http => "http",
            Scheme::Wss => "wss",
            Scheme::Ws => "ws",
        }
    }

    /// The port that a URL without one means.
    pub const fn default_port(self) -> u16 {
        match self {
            Scheme::Https | Scheme::Wss => 443,
            Scheme::Http | Scheme::Ws => 80,
        }
    }

    /// The scheme of this name, in any case.
    pub fn from_name(name: &str) -> Option<Self> {
        Scheme::ALL.into_iter().find(|s| s.name().eq_ignore_ascii_case(name))
    }
}

/// The host of an egress pattern.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HostPattern {
    /// That name.
    Exact(String),
    /// Its sub-domains, without itself (`*.host`).
    SubDomains(String),
    /// Itself and its sub-domains (`**.host`).
    DomainTree(String),
    /// Hosts written as an address in this network.
    Network(IpNet),
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HostPattern::Exact(host) => f.write_str(host),
            HostPattern::SubDomains(host) => write!(f, "*.{host}"),
            HostPattern::DomainTree(host) => write!(f, "**.{host}"),
            HostPattern::Network(net) if net.prefix_len() == net.max_prefix_len() => match net {
                IpNet::V4(net) => write!(f, "{}", net.addr()),
                IpNet::V6(net) => write!(f, "[{}]", net.addr()),
            },
            HostPattern::Network(net) => write!(f, "[{net}]"),
        }
    }
}

/// A pattern for requests through the proxy.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct EgressPattern {
    /// Upper-case method names, sorted, at least one.
    pub methods: Vec<String>,
    /// The scheme.
    pub scheme: Scheme,
    /// The host.
    pub host: HostPattern,
    /// The port; the scheme's own when none is written.
    pub port: u16,
    /// Path segments, at most [`super::MAX_WORDS`].
    pub segments: Vec<Glob>,
    /// Whether the path and everything below it is meant (`**`).
    pub rest: bool,
}

impl fmt::Display for EgressPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}://{}", self.methods.join(","), self.scheme.name(), self.host)?;
        if self.port != self.scheme.default_port() {
            write!(f, ":{}", self.port)?;
        }
        for segment in &self.segments {
            write!(f, "/{segment}")?;
        }
        match (self.rest, self.segments.is_empty()) {
            (true, _) => f.write_str("/**"),
            (false, true) => f.write_str("/"),
            (false, false) => Ok(()),
        }
    }
}

/// Whether a canonical host name is a domain, or lies below it.
pub fn is_within_domain(host: &str, domain: &str) -> bool {
    host.strip_suffix(domain).is_some_and(|head| head.is_empty() || head.ends_with('.'))
}

/// Why a host is refused; the text finishes "the host …".
pub type HostProblem = &'static str;

/// The canonical form of a host name: lower case, no trailing dot, IDNA as ASCII.
///
/// # Errors
///
/// Says what is wrong with hosts that hold anything but letters, digits, `-`, `_` and dots
/// after that, with empty or overlong labels, and with names whose last label is a number
/// (an address in disguise: resolvers read `0x7f.1` as 127.0.0.1).
pub fn canonical_host(host: &str) -> Result<String, HostProblem> {
    if host.is_empty() {
        return Err("is empty");
    }
    if host.chars().any(|c| c.is_control() || c.is_whitespace() || "%/\\?#@:[]<>^|\"`{}*".contains(c)) {
        return Err("holds a character that no host name has");
    }
    let ascii = idna::domain_to_ascii_cow(host.as_bytes(), idna::AsciiDenyList::URL)
        .map_err(|_| "is not a valid internationalised domain name")?;
    let ascii = ascii.strip_suffix('.').unwrap_or(&ascii).to_owned();
    if ascii.len() > 253 {
        return Err("is longer than 253 characters");
    }
    for label in ascii.split('.') {
        if label.is_empty() {
            return Err("has an empty label");
        }
        if label.len() > 63 {
            return Err("has a label longer than 63 characters");
        }
        if !label.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-' || b == b'_') {
            return Err("holds a character that no host name has");
        }
        if label.starts_with('-') || label.ends_with('-') {
            return Err("has a label that starts or ends with `-`");
        }
    }
    let last = ascii.rsplit('.').next().unwrap_or("");
    if last.bytes().all(|b| b.is_ascii_digit()) || last.starts_with("0x") {
        return Err("is an address in disguise; write the address in full");
    }
    Ok(ascii)
}

/// Networks that are not public: no map can permit them (DESIGN 3.5). Sources: the IANA
/// special-purpose address registries for IPv4 and IPv6, and multicast (RFC 5771, RFC 4291).
pub const NON_PUBLIC: [&str; 27] = [
    "0.0.0.0/8",
    "10.0.0.0/8",
    "100.64.0.0/10",
    "127.0.0.0/8",
    "169.254.0.0/16",
    "172.16.0.0/12",
    "192.0.0.0/24",
    "192.0.2.0/24",
    "192.88.99.0/24",
    "192.168.0.0/16",
    "198.18.0.0/15",
    "198.51.100.0/24",
    "203.0.113.0/24",
    "224.0.0.0/4",
    "240.0.0.0/4",
    "::/96",
    "::ffff:0:0/96",
    "64:ff9b::/96",
    "64:ff9b:1::/48",
    "100::/64",
    "2001::/23",
    "2001:db8::/32",
    "2002::/16",
    "3fff::/20",
    "fc00::/7",
    "fe80::/10",
    "ff00::/8",
];

/// Whether an address lies in one of [`NON_PUBLIC`].
pub fn is_non_public(address: IpAddr) -> bool {
    NON_PUBLIC.iter().filter_map(|net| IpNet::from_str(net).ok()).any(|net| net.contains(&address))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_network_parses() {
        for net in NON_PUBLIC {
            assert!(IpNet::from_str(net).is_ok(), "{net}");
        }
    }

    #[test]
    fn hosts_become_canonical_or_are_refused() {
        assert_eq!(canonical_host("API.Example.COM."), Ok("api.example.com".into()));
        assert_eq!(canonical_host("bücher.example"), Ok("xn--bcher-kva.example".into()));
        for bad in [
            "",
            ".",
            "a..b",
            "a b",
            "a\0b",
            "a%2eb",
            "*",
            "0x7f.1",
            "127.1",
            "2130706433",
            "a/b",
            "-a.example",
            "a\u{200b}\u{202e}.example",
            "a:80",
            "user@a",
        ] {
            assert!(canonical_host(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn special_addresses_are_not_public() {
        for bad in [
            "127.0.0.1",
            "10.1.2.3",
            "169.254.169.254",
            "100.64.0.1",
            "0.0.0.0",
            "::1",
            "fe80::1",
            "::ffff:127.0.0.1",
            "224.0.0.1",
            "255.255.255.255",
            "fd00::1",
            "2001:db8::1",
        ] {
            assert!(is_non_public(bad.parse().unwrap()), "{bad}");
        }
        for good in ["1.1.1.1", "2606:4700::1111"] {
            assert!(!is_non_public(good.parse().unwrap()), "{good}");
        }
    }
}
