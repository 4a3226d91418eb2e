//! The scope fields of each class.

use std::collections::BTreeSet;
use std::str::FromStr;

use ipnet::IpNet;

use super::values::{identifier, name_of};
use crate::diag::{Code, Finding};
use crate::model::{Class, Glob, GpuMode, HostPattern, Scope, Subtree, homes, path_segments};
use crate::parse::egress_pattern::host_pattern;
use crate::parse::yaml::{Key, Kind, Node};
use crate::parse::{Sink, listed, nearest};
use crate::source::Span;

/// The keys that entries of a class have besides `tier` and `lifecycle`.
const fn keys(class: Class) -> &'static [&'static str] {
    match class {
        Class::NetEgress => &["domains", "cidrs", "ports", "tls_inspect"],
        Class::FsScope => &["read", "write", "deny"],
        Class::Clipboard => &["paste_in", "copy_out"],
        Class::Gpu => &["device_ids", "mode"],
        Class::InstallPrivileged => &["scope", "packages", "linux_capabilities"],
        Class::Persistence => &["paths", "survives_session"],
        Class::Credentials => &["broker_scopes", "never_raw"],
        Class::Peripheral => &["camera", "mic", "usb", "input_inject"],
        Class::Grant => &[],
    }
}

/// The fields of an entry, and where findings about it point.
struct Fields<'a, 's> {
    entries: &'a [(Key, Node)],
    span: Span,
    sink: &'s mut Sink,
    /// Something could not be read: the entry counts for nothing.
    failed: bool,
}

impl<'a> Fields<'a, '_> {
    fn find(&self, name: &str) -> Option<&'a Node> {
        self.entries.iter().find(|(key, _)| key.name == name).map(|(_, value)| value)
    }

    fn fail(&mut self, finding: Finding) {
        self.sink.push(finding);
        self.failed = true;
    }

    /// `false` where the field is absent.
    fn boolean(&mut self, name: &str) -> bool {
        let Some(value) = self.find(name) else { return false };
        let read = value.boolean(&format!("`{name}`"), self.sink);
        self.failed |= read.is_none();
        read.unwrap_or(false)
    }

    /// The members of a list, none where the field is absent. An empty list is refused: some read
    /// it as nothing and some as everything.
    fn list<T>(&mut self, name: &str, read: impl Fn(&str, Span, &mut Sink) -> Option<T>) -> Vec<T> {
        let Some(value) = self.find(name) else { return Vec::new() };
        let texts = value.scalars(&format!("`{name}`"), self.sink);
        if texts.is_empty() {
            self.failed = true;
            if matches!(value.kind, Kind::Seq(_)) {
                self.sink.push(
                    Finding::new(Code::INVALID_VALUE, value.span, format!("`{name}` is empty"))
                        .help("name what is meant, or leave the field out: an absent field grants nothing"),
                );
            }
        }
        let mut seen: BTreeSet<&String> = BTreeSet::new();
        for (text, span) in &texts {
            if !seen.insert(text) {
                self.sink.push(
                    Finding::new(Code::INVALID_VALUE, *span, format!("`{text}` is listed twice in `{name}`"))
                        .help("list each once"),
                );
                self.failed = true;
            }
        }
        let out: Vec<T> = texts.iter().filter_map(|(text, span)| read(text, *span, self.sink)).collect();
        self.failed |= out.len() != texts.len();
        out
    }

    /// Refuses an entry that says nothing.
    fn needs(&mut self, something: bool, what: &str, help: &str) {
        if !something && !self.failed {
            let finding = Finding::new(Code::MISSING_KEY, self.span, format!("this entry names no {what}"));
            self.fail(finding.help(help.to_owned()));
        }
    }
}

/// The scope of an entry; `None` after findings.
pub(super) fn scope(
    class: Class,
    entries: &[(Key, Node)],
    span: Span,
    home: Option<&str>,
    sink: &mut Sink,
) -> Option<Scope> {
    let known = keys(class);
    let mut fields = Fields { entries, span, sink, failed: false };
    for (key, _) in entries {
        let name = key.name.as_str();
        if !known.contains(&name) && !matches!(name, "tier" | "lifecycle") {
            let all: Vec<&str> = ["tier", "lifecycle"].into_iter().chain(known.iter().copied()).collect();
            fields.fail(
                Finding::new(Code::UNKNOWN_KEY, key.span, format!("`{name}` is no field of `{class}`")).help(format!(
                    "{}fields are {}",
                    nearest(name, &all),
                    listed(&all)
                )),
            );
        }
    }
    let places = |fields: &mut Fields<'_, '_>, name: &str| -> Vec<Subtree> {
        fields
            .list(name, |text, span, sink| self::places(text, span, home, name == "deny", sink))
            .into_iter()
            .flatten()
            .collect()
    };
    let scope = match class {
        Class::NetEgress => {
            let domains = fields.list("domains", domain);
            let cidrs = fields.list("cidrs", network);
            let ports = fields.find("ports").is_some().then(|| fields.list("ports", port));
            let tls_inspect = fields.boolean("tls_inspect");
            fields.needs(
                !domains.is_empty() || !cidrs.is_empty(),
                "domain or network",
                "write `domains: [\"api.example.org\"]`, or `cidrs` for hosts that are written as an address",
            );
            let ports = ports.map(|ports| ports.into_iter().collect::<BTreeSet<u16>>().into_iter().collect());
            Scope::NetEgress { domains, cidrs, ports, tls_inspect }
        }
        Class::FsScope => {
            let (read, write, deny) =
                (places(&mut fields, "read"), places(&mut fields, "write"), places(&mut fields, "deny"));
            fields.needs(
                !read.is_empty() || !write.is_empty() || !deny.is_empty(),
                "place",
                "write `read: [/srv/agents]`, `write` or `deny`",
            );
            Scope::FsScope { read, write, deny }
        }
        Class::Clipboard => {
            let (paste_in, copy_out) = (fields.boolean("paste_in"), fields.boolean("copy_out"));
            fields.needs(paste_in || copy_out, "direction", "write `paste_in: true` or `copy_out: true`");
            Scope::Clipboard { paste_in, copy_out }
        }
        Class::Gpu => {
            let device_ids = fields.list("device_ids", |text, span, sink| {
                identifier(text, span, "device id", sink).then(|| text.to_owned())
            });
            let mode = fields.find("mode").and_then(|value| {
                let text = value.scalar("`mode`", fields.sink)?;
                name_of(GpuMode::from_name(text), GpuMode::NAMES, "mode", (text, value.span), fields.sink)
            });
            fields.failed |= mode.is_none() && fields.find("mode").is_some();
            fields.needs(!device_ids.is_empty(), "device", "write `device_ids: [\"0\"]`");
            fields.needs(mode.is_some(), "mode", "write `mode: compute` or `mode: render`");
            Scope::Gpu { device_ids, mode: mode.unwrap_or(GpuMode::Compute) }
        }
        Class::InstallPrivileged => install(&mut fields)?,
        Class::Persistence => {
            let paths = places(&mut fields, "paths");
            let survives_session = fields.boolean("survives_session");
            fields.needs(!paths.is_empty(), "path", "write `paths: [/srv/agents/cache]`");
            Scope::Persistence { paths, survives_session }
        }
        Class::Credentials => {
            let broker_scopes = fields.list("broker_scopes", broker_scope);
            if let Some(value) = fields.find("never_raw")
                && value.boolean("`never_raw`", fields.sink) != Some(true)
            {
                fields.fail(
                    Finding::new(Code::INVALID_VALUE, value.span, "no manifest can show an agent a credential itself")
                        .help("`never_raw` is always true; leave it out"),
                );
            }
            fields.needs(!broker_scopes.is_empty(), "scope of the broker", "write `broker_scopes: [\"git:push\"]`");
            Scope::Credentials { broker_scopes }
        }
        Class::Peripheral => {
            let (camera, mic) = (fields.boolean("camera"), fields.boolean("mic"));
            let input_inject = fields.boolean("input_inject");
            let usb = fields.list("usb", usb);
            fields.needs(
                camera || mic || input_inject || !usb.is_empty(),
                "peripheral",
                "write `camera: true`, `mic: true` or `usb: [\"1050:0407\"]`",
            );
            Scope::Peripheral { camera, mic, usb, input_inject }
        }
        Class::Grant => return None,
    };
    (!fields.failed).then_some(scope)
}

fn install(fields: &mut Fields<'_, '_>) -> Option<Scope> {
    let packages = fields.find("packages").is_some().then(|| {
        fields.list("packages", |text, span, sink| {
            let good = !text.is_empty()
                && text.starts_with(|c: char| c.is_ascii_alphanumeric())
                && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"+.-_:".contains(&b));
            if !good {
                sink.push(
                    Finding::new(
                        Code::INVALID_VALUE,
                        span,
                        format!("`{}` is no name of a package", text.escape_debug()),
                    )
                    .help("name each package in full; `scope: pkg` without `packages` means every one"),
                );
            }
            good.then(|| text.to_owned())
        })
    });
    let capabilities = fields.list("linux_capabilities", |text, span, sink| {
        let good = text.starts_with("CAP_") && text.bytes().all(|b| b.is_ascii_uppercase() || b == b'_');
        if !good {
            sink.push(
                Finding::new(Code::INVALID_VALUE, span, format!("`{}` is no Linux capability", text.escape_debug()))
                    .help("write it as in capabilities(7): `CAP_NET_BIND_SERVICE`"),
            );
        }
        good.then(|| text.to_owned())
    });
    let scope = match fields.find("scope") {
        Some(value) => {
            let text = value.scalar("`scope`", fields.sink)?;
            Some(name_of(
                ["pkg", "any"].into_iter().find(|name| *name == text),
                &["pkg", "any"],
                "scope",
                (text, value.span),
                fields.sink,
            )?)
        }
        None => None,
    };
    fields.needs(
        scope.is_some() || packages.is_some() || !capabilities.is_empty(),
        "scope",
        "write `scope: pkg` (packages), `scope: any` (anything), or `linux_capabilities`",
    );
    if scope == Some("any") && packages.is_some() {
        let finding = Finding::new(Code::INVALID_VALUE, fields.span, "`scope: any` with `packages` says two things");
        fields.fail(finding.help("write `scope: pkg` with the packages, or leave `packages` out"));
    }
    // Without `scope` an entry is about the capabilities that it lists, and no package.
    let packages = if scope.is_none() && packages.is_none() { Some(Vec::new()) } else { packages };
    Some(Scope::InstallPrivileged { any: scope == Some("any"), packages, capabilities })
}

fn domain(text: &str, span: Span, sink: &mut Sink) -> Option<HostPattern> {
    let problem = match host_pattern(text, false) {
        Ok(HostPattern::Network(_)) => (format!("`{text}` is an address"), "write it in `cidrs`, as `198.51.100.7/32`"),
        Ok(HostPattern::SubDomains(name) | HostPattern::DomainTree(name)) if !name.contains('.') => {
            (format!("`{text}` covers a whole top-level domain"), "name the domain: `*.example.com`")
        }
        Ok(pattern) => return Some(pattern),
        Err(problem) => problem,
    };
    sink.push(Finding::new(Code::INVALID_VALUE, span, problem.0).help(problem.1));
    None
}

fn network(text: &str, span: Span, sink: &mut Sink) -> Option<IpNet> {
    let fail = |message: String, help: &str, sink: &mut Sink| {
        sink.push(Finding::new(Code::INVALID_VALUE, span, message).help(help.to_owned()));
        None
    };
    let zeros = text.split(['.', '/']).any(|part| part.len() > 1 && part.starts_with('0') && !text.contains(':'));
    match IpNet::from_str(text) {
        Ok(_) if zeros => fail(
            format!("`{text}` has a number with a zero in front"),
            "write each number without it; some readers take such a number for an octal one",
            sink,
        ),
        Ok(IpNet::V6(net)) if net.addr().to_ipv4_mapped().is_some() => fail(
            format!("`{text}` is an IPv4 network inside an IPv6 one"),
            "write the IPv4 network; connections to mapped addresses are refused",
            sink,
        ),
        Ok(net) if net.prefix_len() < if net.addr().is_ipv4() { 8 } else { 16 } => fail(
            format!("`{text}` is a great part of all addresses"),
            "name the networks that are meant: `/8` for IPv4 and `/16` for IPv6 at most",
            sink,
        ),
        Ok(net) if net.trunc() != net => fail(
            format!("`{text}` has bits set behind its prefix"),
            "write the network's first address, as in `198.51.100.0/24`",
            sink,
        ),
        Ok(net) => Some(net),
        Err(_) => fail(
            format!("`{}` is no network", text.escape_debug()),
            "write it as `198.51.100.0/24` or `2606:4700::/32`",
            sink,
        ),
    }
}

fn port(text: &str, span: Span, sink: &mut Sink) -> Option<u16> {
    let port = text.parse::<u16>().ok().filter(|port| *port > 0 && !text.starts_with(['+', '0']));
    if port.is_none() {
        sink.push(
            Finding::new(Code::INVALID_VALUE, span, format!("`{text}` is no port"))
                .help("write each port as a number from 1 to 65535; there are no ranges or wildcards"),
        );
    }
    port
}

fn usb(text: &str, span: Span, sink: &mut Sink) -> Option<String> {
    let hex = |part: &str| part.len() == 4 && part.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
    let good = text.split_once(':').is_some_and(|(vendor, product)| hex(vendor) && hex(product));
    if !good {
        sink.push(
            Finding::new(Code::INVALID_VALUE, span, format!("`{}` is no USB device", text.escape_debug()))
                .help("write vendor and product in lower-case hexadecimal, as `lsusb` does: `1050:0407`"),
        );
    }
    good.then(|| text.to_owned())
}

fn broker_scope(text: &str, span: Span, sink: &mut Sink) -> Option<String> {
    let good = !text.is_empty()
        && text.len() <= 128
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-:/".contains(&b));
    if !good {
        sink.push(
            Finding::new(Code::INVALID_VALUE, span, format!("`{}` is no scope of the broker", text.escape_debug()))
                .help("write its name in full, as in `github:repo-read`; there are no wildcards"),
        );
    }
    good.then(|| text.to_owned())
}

/// The places that a path means: one, or one in each home. A last `/**` says what holds anyway.
fn places(text: &str, span: Span, home: Option<&str>, denies: bool, sink: &mut Sink) -> Option<Vec<Subtree>> {
    let plain = text.strip_suffix("/**").unwrap_or(text);
    let plain = if plain.is_empty() && text == "/**" { "/" } else { plain };
    let tail = plain.strip_prefix('~');
    let read = match tail {
        None => path_segments(plain).map(|segments| vec![Subtree::new(&segments)]),
        Some(tail) if !tail.is_empty() && !tail.starts_with('/') => {
            sink.push(
                Finding::new(Code::INVALID_VALUE, span, format!("`{text}` asks polctl to look up a user"))
                    .help("write that home in full: `/home/NAME/…`"),
            );
            return None;
        }
        Some(tail) => path_segments(if tail.is_empty() { "/" } else { tail }).and_then(|below| {
            let below: Vec<Glob> = below.iter().map(|name| Glob::literal(name)).collect();
            let mut out = Vec::new();
            if let Some(home) = home {
                let mut place = Subtree::new(&path_segments(home)?);
                place.segments.extend(below.iter().cloned());
                out.push(place);
            }
            // What is denied is denied in every home.
            if denies {
                for mut segments in homes() {
                    segments.extend(below.iter().cloned());
                    out.push(Subtree { segments, any_depth: false });
                }
            }
            Ok(out)
        }),
    };
    match read {
        Ok(places) if places.is_empty() => {
            sink.push(
                Finding::new(Code::INVALID_VALUE, span, format!("nobody's home is named for `{text}`"))
                    .help("state `home: /home/NAME` in the manifest, or write the path in full"),
            );
            None
        }
        Ok(places) => {
            if places.iter().any(|place| place.segments.len() > crate::model::MAX_SEGMENTS) {
                sink.push(
                    Finding::new(Code::INVALID_VALUE, span, format!("`{text}` has too many segments"))
                        .help("name a directory above it"),
                );
                return None;
            }
            Some(places)
        }
        Err(error) => {
            sink.push(Finding::new(Code::INVALID_VALUE, span, error.message).help(error.help));
            None
        }
    }
}
