//! A method and a URL as typed → an egress request (DESIGN 3.5).

use std::collections::BTreeSet;
use std::net::IpAddr;

use super::LineError;
use crate::model::{EgressRequest, canonical_host};
use crate::parse::parse_url;

/// Reads a request; `secret=…` may follow the URL.
pub(super) fn egress(line: &str) -> Result<EgressRequest, LineError> {
    let fail = |message: String| LineError::Egress { message };
    let mut words = line.split_whitespace();
    let (Some(method), Some(url)) = (words.next(), words.next()) else {
        return Err(fail("a request is a method and a URL: `GET https://api.example.com/`".into()));
    };
    if method.is_empty() || !method.bytes().all(|b| b.is_ascii_uppercase() || b == b'-') {
        return Err(fail(format!("`{method}` is no method; write it in upper case")));
    }
    let mut secrets = BTreeSet::new();
    for word in words {
        match word.strip_prefix("secret=") {
            Some(secret) => secrets.insert(secret.to_owned()),
            None => return Err(fail(format!("`{word}` behind the URL; only `secret=…` may stand there"))),
        };
    }
    // The query is no part of what rules are matched against.
    let url = url.split(['?', '#']).next().unwrap_or("");
    let parts = parse_url(url).map_err(|(message, _)| fail(message))?;
    let address: Option<IpAddr> = parts.host.parse().ok();
    let host = match address {
        Some(address) => address.to_string(),
        None => canonical_host(parts.host).map_err(|why| fail(format!("the host `{}` {why}", parts.host)))?,
    };
    let mut segments: Vec<String> = parts.path.split('/').skip(1).map(str::to_owned).collect();
    if segments == [""] {
        segments.clear();
    }
    if let Some(bad) =
        segments.iter().find(|s| *s == "." || *s == ".." || s.contains(['%', '\\']) || s.contains(char::is_control))
    {
        return Err(fail(format!("the path segment `{bad}` is not in canonical form")));
    }
    Ok(EgressRequest {
        agent: "agent".into(),
        machine: "host".into(),
        method: method.into(),
        scheme: parts.scheme,
        host,
        address,
        peer: None,
        port: parts.port.unwrap_or_else(|| parts.scheme.default_port()),
        segments,
        secrets,
        external: false,
    })
}
