//! A capability request as one line: `image desktop: write /srv/agents/a`, as witnesses are shown.

use std::net::IpAddr;

use super::super::egress_pattern::parse_url;
use crate::model::{CapabilityRequest, GpuMode, Level, Subject, SubjectKind, Target, canonical_host, path_segments};

/// Reads `KIND NAME: REQUEST`.
///
/// # Errors
///
/// A sentence and a help line.
pub fn capability_request(text: &str) -> Result<CapabilityRequest, (String, String)> {
    let Some((subject, request)) = text.split_once(": ") else {
        return Err((
            format!("`{text}` names no subject"),
            "write `image NAME: write /srv/agents/a`, or `persona`, `integration`, `session`".into(),
        ));
    };
    let subject = match subject.split_once(' ') {
        Some((kind, name)) if !name.is_empty() => {
            SubjectKind::from_name(kind).map(|kind| Subject { kind, name: name.into() })
        }
        _ => None,
    };
    let Some(subject) = subject else {
        return Err((
            "the subject is not of a kind that polctl knows".into(),
            format!("kinds are {}, each with a name", SubjectKind::NAMES.join(", ")),
        ));
    };
    target(request.trim()).map(|target| CapabilityRequest::new(subject, target))
}

fn target(text: &str) -> Result<Target, (String, String)> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let path = |text: &str| path_segments(text).map_err(|error| (error.message, error.help.to_owned()));
    Ok(match words.as_slice() {
        ["read", at] => Target::FsScope { write: false, path: path(at)? },
        ["write", at] => Target::FsScope { write: true, path: path(at)? },
        ["keep", at] => Target::Persistence { path: path(at)?, survives_session: false },
        ["keep", at, "beyond", "the", "session"] => Target::Persistence { path: path(at)?, survives_session: true },
        ["clipboard", "copy", "out"] => Target::Clipboard { copy_out: true },
        ["clipboard", "paste", "in"] => Target::Clipboard { copy_out: false },
        ["gpu", device, mode] if GpuMode::from_name(mode).is_some() => {
            Target::Gpu { device: (*device).into(), mode: GpuMode::from_name(mode).unwrap_or(GpuMode::Compute) }
        }
        ["install", "package", name] => Target::Package { name: (*name).into() },
        ["use", name] => Target::LinuxCapability { name: (*name).into() },
        ["run", "with", "elevated", "rights"] => Target::Elevated,
        ["broker", "credential", scope] => Target::Credentials { broker_scope: (*scope).into(), raw: false },
        ["see", "credential", scope] => Target::Credentials { broker_scope: (*scope).into(), raw: true },
        ["camera"] => Target::Camera,
        ["microphone"] => Target::Mic,
        ["usb", device] => Target::Usb { device: (*device).into() },
        ["inject", "input"] => Target::InputInject,
        [capability, "at", "level", level] if Level::from_name(level).is_some() => {
            Target::Grant { capability: (*capability).into(), level: Level::from_name(level).unwrap_or(Level::Admin) }
        }
        ["connect", place] => match place.rsplit_once(':') {
            Some((host, port)) => connection(host, port.parse().ok().filter(|port| *port > 0))?,
            None => connection(place, None)?,
        },
        [url] if url.contains("://") => {
            let parts = parse_url(url)?;
            connection(parts.host, Some(parts.port.unwrap_or_else(|| parts.scheme.default_port())))?
        }
        _ => {
            return Err((
                format!("`{text}` is no capability request"),
                "write it as witnesses are shown: `write /srv/a`, `https://api.example.org/`, `connect host:8443`, \
                 `install package curl`, `email:send at level execute`, `clipboard copy out`, `gpu 0 compute`, …"
                    .into(),
            ));
        }
    })
}

fn connection(host: &str, port: Option<u16>) -> Result<Target, (String, String)> {
    let Some(port) = port else {
        return Err((format!("`{host}` has no port"), "write `connect host:8443`".into()));
    };
    let literal: Option<IpAddr> = host.trim_start_matches('[').trim_end_matches(']').parse().ok();
    let host = match literal {
        Some(_) => String::new(),
        None => canonical_host(host)
            .map_err(|why| (format!("the host `{host}` {why}"), "write a DNS name, or an address".to_owned()))?,
    };
    Ok(Target::NetEgress { host, address: literal, peer: None, port, tls_inspect: true })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_read_back_as_they_are_shown() {
        for text in [
            "read /srv/agents/a",
            "write /srv/agents/a",
            "keep /srv/a",
            "keep /srv/a beyond the session",
            "clipboard copy out",
            "clipboard paste in",
            "gpu 0 compute",
            "install package curl",
            "use CAP_NET_ADMIN",
            "run with elevated rights",
            "broker credential github:read",
            "see credential github:read",
            "camera",
            "microphone",
            "usb 1050:0407",
            "inject input",
            "email:send at level execute",
            "https://api.example.org/",
            "http://api.example.org/",
            "connect api.example.org:8443",
            "https://9.9.9.9/",
            "connect [2620:fe::fe]:8443",
        ] {
            let request = capability_request(&format!("image a: {text}")).unwrap();
            assert_eq!(request.target.to_string(), text);
        }
        for bad in [
            "",
            "image a",
            "image a:",
            "imag a: camera",
            "image a: write x",
            "image a: connect h",
            "image a: fly",
            "image : camera",
        ] {
            assert!(capability_request(bad).is_err(), "{bad}");
        }
    }
}
