//! Egress patterns, and the requests that examples are written as (DESIGN 3.5).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use ipnet::IpNet;

use super::command_pattern::Problem;
use crate::model::{EgressPattern, Glob, HostPattern, MAX_WORDS, Scheme, canonical_host};

/// The parts of a URL, as written.
pub(crate) struct UrlParts<'a> {
    pub(crate) scheme: Scheme,
    pub(crate) host: &'a str,
    pub(crate) port: Option<u16>,
    pub(crate) path: &'a str,
}

/// Takes a URL or URL pattern apart.
///
/// # Errors
///
/// A sentence and a help line.
pub(crate) fn parse_url(url: &str) -> Result<UrlParts<'_>, (String, String)> {
    let fail = |message: String, help: &str| Err((message, help.to_owned()));
    if !url.is_ascii() && url.contains(|c: char| c.is_control() || c.is_whitespace()) {
        return fail("a URL holds no blanks or control characters".into(), "write it without them");
    }
    let Some((scheme, rest)) = url.split_once("://") else {
        return fail(format!("`{url}` has no scheme"), "write the whole URL: `https://host/path`");
    };
    let Some(scheme) = Scheme::from_name(scheme) else {
        return fail(format!("`{scheme}` is no scheme of the proxy"), "schemes are `https`, `http`, `wss` and `ws`");
    };
    // A network in brackets holds a slash of its own.
    let address_end = if rest.starts_with('[') { rest.find(']').unwrap_or(0) } else { 0 };
    let slash = rest.get(address_end..).and_then(|tail| tail.find('/')).map(|at| address_end + at);
    let (authority, path) = slash.map_or((rest, ""), |at| rest.split_at(at));
    if authority.contains('@') {
        return fail("a user name in the URL".into(), "secrets are brokered with `secret`, never written into a URL");
    }
    if rest.contains(['?', '#']) {
        return fail("a query or fragment in the URL".into(), "only the path is matched; leave them out");
    }
    let (host, port) = if authority.starts_with('[') {
        match authority.split_once(']') {
            Some((host, "")) => (host.trim_start_matches('['), None),
            Some((host, port)) if port.starts_with(':') => {
                (host.trim_start_matches('['), Some(port.trim_start_matches(':')))
            }
            _ => {
                return fail(
                    format!("`{authority}` is no host"),
                    "write an address as `[2001:db8::7]`, with a port behind it as `:8443`",
                );
            }
        }
    } else {
        authority.rsplit_once(':').map_or((authority, None), |(host, port)| (host, Some(port)))
    };
    let port = match port {
        None => None,
        Some(text) => match text.parse::<u16>() {
            Ok(port) if port > 0 && !text.starts_with(['+', '0']) => Some(port),
            _ => {
                return fail(
                    format!("`{text}` is no port"),
                    "write one number from 1 to 65535; there are no ranges or wildcards",
                );
            }
        },
    };
    Ok(UrlParts { scheme, host, port, path })
}

/// Reads `GET,HEAD https://api.example.com/repos/**`.
pub(super) fn parse_egress(text: &str) -> Result<EgressPattern, Problem> {
    let fail = |message: String, help: &str| Err(Problem { start: 0, end: 0, message, help: help.to_owned() });
    let words: Vec<&str> = text.split_whitespace().collect();
    let [methods, url] = words.as_slice() else {
        return fail(
            "an egress pattern is methods and one URL".into(),
            "write `GET,HEAD https://api.example.com/repos/**`, methods separated by commas without blanks",
        );
    };
    let mut methods: Vec<String> = methods.split(',').map(str::to_owned).collect();
    for method in &methods {
        if method.is_empty() || !method.bytes().all(|b| b.is_ascii_uppercase() || b == b'-') {
            return fail(
                format!("`{method}` is no method"),
                "list the methods by name, in upper case: `GET,HEAD`; there is no wildcard",
            );
        }
    }
    methods.sort();
    methods.dedup();
    let parts = match parse_url(url) {
        Ok(parts) => parts,
        Err((message, help)) => return fail(message, &help),
    };
    let host = match host_pattern(parts.host, url.contains("://[")) {
        Ok(host) => host,
        Err((message, help)) => return fail(message, help),
    };
    let (segments, rest) = match path_pattern(parts.path) {
        Ok(path) => path,
        Err((message, help)) => return fail(message, help),
    };
    Ok(EgressPattern {
        methods,
        scheme: parts.scheme,
        host,
        port: parts.port.unwrap_or_else(|| parts.scheme.default_port()),
        segments,
        rest,
    })
}

pub(super) fn host_pattern(host: &str, bracketed: bool) -> Result<HostPattern, (String, &'static str)> {
    if bracketed {
        let net = IpNet::from_str(host).ok().or_else(|| IpAddr::from_str(host).ok().map(IpNet::from));
        return match net {
            Some(IpNet::V6(net)) if net.addr().to_ipv4_mapped().is_some() => Err((
                format!("`{host}` is an IPv4 address inside an IPv6 one"),
                "write the IPv4 address; requests to mapped addresses are refused",
            )),
            Some(net) if net.trunc() == net => Ok(HostPattern::Network(net)),
            Some(net) => Err((
                format!("`{host}` has bits set behind its prefix"),
                if net.addr().is_ipv4() {
                    "write the network's first address, as in `[198.51.100.0/24]`"
                } else {
                    "write the network's first address, as in `[2001:db8::/32]`"
                },
            )),
            None => Err((format!("`{host}` is no address or network"), "write `[2001:db8::7]` or `[198.51.100.0/24]`")),
        };
    }
    if let Ok(address) = Ipv4Addr::from_str(host) {
        return Ok(HostPattern::Network(IpNet::from(IpAddr::V4(address))));
    }
    if Ipv6Addr::from_str(host).is_ok() {
        return Err((format!("`{host}` is an IPv6 address without brackets"), "write it in brackets"));
    }
    if matches!(host, "*" | "**") {
        return Err((
            "a wildcard that covers every host".into(),
            "name the host, or a domain: `*.example.com` for its sub-domains, `**.example.com` with itself",
        ));
    }
    let (build, name): (fn(String) -> HostPattern, &str) = if let Some(name) = host.strip_prefix("**.") {
        (HostPattern::DomainTree, name)
    } else if let Some(name) = host.strip_prefix("*.") {
        (HostPattern::SubDomains, name)
    } else {
        (HostPattern::Exact, host)
    };
    if name.contains('*') {
        return Err((format!("a wildcard inside the host `{host}`"), "`*.` or `**.` may stand at the start only"));
    }
    match canonical_host(name) {
        Ok(name) => Ok(build(name)),
        Err(why) => Err((format!("the host `{name}` {why}"), "write a DNS name, or an address")),
    }
}

fn path_pattern(path: &str) -> Result<(Vec<Glob>, bool), (String, &'static str)> {
    if path.is_empty() {
        return Err((
            "the URL has no path".into(),
            "write `/**` for every path, `/` for the root alone, or the paths that are meant",
        ));
    }
    let mut segments: Vec<&str> = path.split('/').skip(1).collect();
    let rest = segments.last() == Some(&"**");
    if rest || segments == [""] {
        segments.pop();
    }
    if segments.len() > MAX_WORDS {
        return Err((format!("more than {MAX_WORDS} path segments"), "end the path earlier, with `/**`"));
    }
    let mut globs = Vec::new();
    for segment in segments {
        if segment.contains("**") {
            return Err((
                "`**` inside the path".into(),
                "`**` is the last segment; `*` stands for one segment or a part of it",
            ));
        }
        if segment == "." || segment == ".." {
            return Err(("`.` or `..` in the path".into(), "write the path as it is requested, without them"));
        }
        if let Some(c) = segment.chars().find(|c| c.is_control() || "%\\{}[]<>$\"'`|^".contains(*c)) {
            return Err((
                format!("`{c}` in the path"),
                "paths are matched by segment, as text; only `*` and a last `**` are wildcards, and nothing is percent-encoded",
            ));
        }
        globs.push(Glob::from_stars(segment));
    }
    Ok((globs, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_print_as_they_mean() {
        for (text, want) in [
            ("HEAD,GET https://API.example.com:443/repos/**", "GET,HEAD https://api.example.com/repos/**"),
            ("GET http://*.example.com:8080/", "GET http://*.example.com:8080/"),
            ("POST https://**.example.com/a/*/b/", "POST https://**.example.com/a/*/b/"),
            ("GET https://192.0.2.7/**", "GET https://192.0.2.7/**"),
            ("GET https://[198.51.100.0/24]/**", "GET https://[198.51.100.0/24]/**"),
            ("GET https://[2001:db8::7]:8443/**", "GET https://[2001:db8::7]:8443/**"),
        ] {
            assert_eq!(parse_egress(text).unwrap().to_string(), want);
        }
    }

    #[test]
    fn malformed_patterns_are_refused() {
        for bad in [
            "",
            "GET",
            "https://a.example/",
            "get https://a.example/",
            "* https://a.example/",
            "GET https://*/",
            "GET https://a.example",
            "GET https://a.*.example/",
            "GET https://a.example/x?y",
            "GET https://a.example/#",
            "GET https://u@a.example/",
            "GET https://a.example/%2e",
            "GET https://a.example/../x",
            "GET https://a.example/**/x",
            "GET ftp://a.example/",
            "GET https://a.example:0/",
            "GET https://a.example:*/",
            "GET https://[198.51.100.1/24]/",
            "GET https://127.1/",
            "GET https://[::ffff:9.9.9.9]/",
            "GET https://a b/",
            "GET, HEAD https://a.example/",
            "GET https://a\u{430}%.example/",
        ] {
            assert!(parse_egress(bad).is_err(), "{bad}");
        }
    }
}
