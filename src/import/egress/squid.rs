//! squid: `acl` and `http_access` of `squid.conf`.
//!
//! What the source means, by <http://www.squid-cache.org/Doc/config/acl/> and `/http_access/`: lines of `http_access` are tried
//! in order, and the first whose ACLs **all** match decides (`!` negates one). When none matches, the opposite of the
//! last line holds; without any line all is denied. Values of one ACL are alternatives, and lines of one name add to it. In a `dstdomain`
//! `.example.com` is the domain with its sub-domains, `example.com` itself alone. An ACL that requests cannot show (`src`, `time`,
//! `proxy_auth`, `url_regex` …) may be named as always true (`--assume NAME`).

use std::collections::BTreeMap;

use super::super::{Files, Imported, Loss, Options, Problem, rows, unreadable};
use super::{holds, host, meet};
use crate::model::{HostPattern, Scheme, Surface, Tier};
use crate::source::{FileId, Span};

/// What an ACL is about.
#[derive(Clone, Debug)]
enum Acl {
    All,
    Hosts(Vec<HostPattern>),
    Ports(Vec<(u16, u16)>),
    Methods(Vec<String>),
    Schemes(Vec<String>),
    /// Requests do not show it; its type.
    Hidden(String),
}

/// One line of `http_access`.
struct Access {
    allow: bool,
    /// Names, and whether they are negated.
    acls: Vec<(String, bool)>,
    span: Span,
}

/// A request to a host, on a port, by a method.
#[derive(Clone)]
struct Site {
    host: HostPattern,
    scheme: Scheme,
    port: u16,
    method: String,
}

/// Whether something holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Holds {
    Yes,
    No,
    /// For some of it, or nobody can tell.
    Perhaps,
}

pub(in super::super) fn squid(files: &mut Files<'_>, options: &Options) -> Result<Imported, Vec<Problem>> {
    let mut acls: BTreeMap<String, Vec<Acl>> = BTreeMap::from([("all".to_owned(), vec![Acl::All])]);
    acls.insert("CONNECT".to_owned(), vec![Acl::Methods(vec!["CONNECT".to_owned()])]);
    for name in ["localhost", "to_localhost", "to_linklocal", "manager"] {
        acls.insert(name.to_owned(), vec![Acl::Hidden(name.to_owned())]);
    }
    let mut out = Imported::default();
    let mut access = Vec::new();
    let mut problems = Vec::new();
    for file in files.files.clone() {
        let text = files.map.text(file).to_owned();
        lines(file, &text, &mut |span, words| line(span, words, &mut acls, &mut access), &mut problems);
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    out.map(Surface::Egress, Tier::DENY);
    for (index, own) in access.iter().enumerate().filter(|(_, own)| own.allow) {
        allowed(own, access.get(..index).unwrap_or_default(), &acls, options, &mut out);
    }
    let last = access.last().filter(|last| !last.allow);
    if let Some(last) = last.filter(|last| !last.acls.iter().all(|(name, negated)| name == "all" && !negated)) {
        let text = "what no line matches is denied; the source allows it, since its last line denies";
        out.note(last.span, Loss::Narrower, text);
    }
    Ok(out)
}

/// Takes a line, as words.
type Take<'a> = dyn FnMut(Span, &[&str]) -> Result<(), Problem> + 'a;

fn lines(file: FileId, text: &str, take: &mut Take<'_>, problems: &mut Vec<Problem>) {
    let mut at = 0;
    let mut whole = String::new();
    let mut start = 0;
    for part in text.split_inclusive('\n') {
        let content = part.trim_end();
        if whole.is_empty() {
            start = at;
        }
        at += part.len();
        if let Some(head) = content.strip_suffix('\\') {
            whole.push_str(head);
            whole.push(' ');
            continue;
        }
        whole.push_str(content);
        let bare = whole.split(" #").next().unwrap_or("").trim();
        if !bare.is_empty() && !bare.starts_with('#') {
            let words: Vec<&str> = bare.split_whitespace().collect();
            problems.extend(take(Span::new(file, start, start + bare.len().min(text.len() - start)), &words).err());
        }
        whole.clear();
    }
}

fn line(
    span: Span,
    words: &[&str],
    acls: &mut BTreeMap<String, Vec<Acl>>,
    access: &mut Vec<Access>,
) -> Result<(), Problem> {
    match words {
        ["acl", name, kind, values @ ..] => {
            let own = acl(span, kind, values)?;
            acls.entry((*name).to_owned()).or_default().push(own);
        }
        ["http_access", action, names @ ..] => {
            let allow = match *action {
                "allow" => true,
                "deny" => false,
                _ => {
                    return Err(unreadable(span, format!("`{action}` is no action"), "actions are `allow` and `deny`"));
                }
            };
            let mut list = Vec::new();
            for name in names {
                let (name, negated) = name.strip_prefix('!').map_or((*name, false), |name| (name, true));
                if !acls.contains_key(name) {
                    return Err(unreadable(
                        span,
                        format!("the ACL `{name}` is not defined before this line"),
                        "the source refuses this file, too",
                    ));
                }
                list.push((name.to_owned(), negated));
            }
            if list.is_empty() {
                return Err(unreadable(span, "a line without an ACL", "write `http_access deny all`"));
            }
            access.push(Access { allow, acls: list, span });
        }
        ["include", ..] => {
            return Err(unreadable(
                span,
                "an `include`",
                "what it holds may deny: give the files in one, in their order",
            ));
        }
        // Other directives permit no request.
        _ => {}
    }
    Ok(())
}

fn acl(span: Span, kind: &str, values: &[&str]) -> Result<Acl, Problem> {
    let values: Vec<&str> = values.iter().copied().filter(|value| !value.starts_with('-')).collect();
    if values.iter().any(|value| value.starts_with('"')) {
        return Err(unreadable(
            span,
            "the values stand in another file",
            "write them into this file: what is not read may deny",
        ));
    }
    let lower = |text: &str| text.to_ascii_lowercase();
    Ok(match kind {
        "dstdomain" => {
            let hosts = values.iter().map(|value| match value.strip_prefix('.') {
                Some(name) => host(&format!("**.{}", lower(name))),
                None => host(&lower(value)),
            });
            match hosts.collect::<Result<Vec<_>, _>>() {
                Ok(hosts) => Acl::Hosts(hosts),
                Err(_) => Acl::Hidden(kind.to_owned()),
            }
        }
        "port" => {
            let port = |value: &&str| {
                let (from, to) = value.split_once('-').unwrap_or((value, value));
                Some((from.parse().ok()?, to.parse().ok()?))
            };
            let ports = values.iter().map(port).collect::<Option<Vec<(u16, u16)>>>();
            Acl::Ports(
                ports.ok_or_else(|| unreadable(span, "a port that is no number", "write `443` or `1025-65535`"))?,
            )
        }
        "method" => Acl::Methods(values.iter().map(|value| value.to_ascii_uppercase()).collect()),
        "proto" => Acl::Schemes(values.iter().map(|value| lower(value)).collect()),
        // An address counts for names that resolve to it, too; nobody can tell here.
        other => Acl::Hidden(other.to_owned()),
    })
}

/// Whether an ACL holds for all requests of a site.
fn holds_for(acl: &[Acl], name: &str, site: &Site, options: &Options) -> Holds {
    let any = |found: &mut dyn Iterator<Item = Holds>| {
        found.fold(Holds::No, |all, own| match (all, own) {
            (Holds::Yes, _) | (_, Holds::Yes) => Holds::Yes,
            (Holds::Perhaps, _) | (_, Holds::Perhaps) => Holds::Perhaps,
            _ => Holds::No,
        })
    };
    let yes = |found: bool| if found { Holds::Yes } else { Holds::No };
    any(&mut acl.iter().map(|own| match own {
        Acl::All => Holds::Yes,
        Acl::Hosts(hosts) => any(&mut hosts.iter().map(|other| {
            if holds(other, &site.host) {
                Holds::Yes
            } else if meet(other, &site.host)
                || matches!((other, &site.host), (HostPattern::Network(_), _) | (_, HostPattern::Network(_)))
            {
                // A name may have that address.
                Holds::Perhaps
            } else {
                Holds::No
            }
        })),
        Acl::Ports(ports) => yes(ports.iter().any(|(from, to)| (*from..=*to).contains(&site.port))),
        // What goes through `https` is a tunnel, and its method CONNECT.
        Acl::Methods(methods) => match site.scheme {
            Scheme::Https | Scheme::Wss => yes(methods.iter().any(|method| method == "CONNECT")),
            _ => yes(methods.contains(&site.method)),
        },
        Acl::Schemes(schemes) => match site.scheme {
            Scheme::Http => yes(schemes.iter().any(|scheme| scheme == "http")),
            _ => Holds::Perhaps,
        },
        Acl::Hidden(_) if options.assume.iter().any(|own| own == name) => Holds::Yes,
        Acl::Hidden(kind) if kind == "manager" || kind == "to_localhost" || kind == "to_linklocal" => Holds::No,
        Acl::Hidden(_) => Holds::Perhaps,
    }))
}

fn whole(access: &Access, acls: &BTreeMap<String, Vec<Acl>>, site: &Site, options: &Options) -> Holds {
    access.acls.iter().fold(Holds::Yes, |all, (name, negated)| {
        let own = acls.get(name).map_or(Holds::Perhaps, |acl| holds_for(acl, name, site, options));
        let own = match (own, negated) {
            (Holds::Yes, true) => Holds::No,
            (Holds::No, true) => Holds::Yes,
            (own, _) => own,
        };
        match (all, own) {
            (Holds::No, _) | (_, Holds::No) => Holds::No,
            (Holds::Perhaps, _) | (_, Holds::Perhaps) => Holds::Perhaps,
            _ => Holds::Yes,
        }
    })
}

fn allowed(own: &Access, before: &[Access], acls: &BTreeMap<String, Vec<Acl>>, options: &Options, out: &mut Imported) {
    let mut hosts: Option<Vec<HostPattern>> = None;
    let mut ports: Vec<u16> = vec![80, 443];
    for (name, negated) in &own.acls {
        let acl = acls.get(name).map(Vec::as_slice).unwrap_or_default();
        let found: Vec<HostPattern> =
            acl.iter().flat_map(|own| if let Acl::Hosts(hosts) = own { hosts.clone() } else { Vec::new() }).collect();
        if !found.is_empty() && !negated {
            hosts.get_or_insert(found);
        }
        for (from, to) in
            acl.iter().flat_map(|own| if let Acl::Ports(ports) = own { ports.clone() } else { Vec::new() })
        {
            if !negated && from == to && !ports.contains(&from) {
                ports.push(from);
            }
        }
        let hidden = acl.iter().find_map(|own| if let Acl::Hidden(kind) = own { Some(kind) } else { None });
        if let Some(kind) = hidden.filter(|_| !options.assume.contains(name)) {
            let text = format!(
                "it also demands `{name}` ({kind}), which requests do not show; `--assume {name}` takes it for true"
            );
            return out.note(own.span, Loss::LeftOut, text);
        }
    }
    let Some(hosts) = hosts else {
        return out.note(own.span, Loss::LeftOut, "it names no host by `dstdomain`, and a rule does");
    };
    let mut found = false;
    let mut lost = None;
    for host in &hosts {
        for (scheme, port) in ports.iter().flat_map(|port| rows::WEB.map(|scheme| (scheme, *port))) {
            // On the other scheme's own port nobody speaks this one.
            if scheme.default_port() != port && rows::WEB.iter().any(|other| other.default_port() == port) {
                continue;
            }
            let mut methods = Vec::new();
            for method in rows::METHODS {
                let site = Site { host: host.clone(), scheme, port, method: method.to_owned() };
                match decided(own, before, acls, &site, options) {
                    Ok(true) => methods.push(method),
                    Ok(false) => {}
                    Err(span) => lost = Some(span),
                }
            }
            if !methods.is_empty() {
                found = true;
                let row = rows::egress(rows::tier(rows::ALLOW), &methods, scheme, host.clone(), port, own.span);
                out.map(Surface::Egress, Tier::DENY).rows.push(row);
            }
        }
    }
    refuse(&hosts, own, before, acls, options, out);
    if let Some(span) = lost {
        out.note(own.span, Loss::LeftOut, "a line before it may deny a part of this, and rules cannot say which");
        out.note(span, Loss::Broader, "it is taken to deny all of what it may deny");
    } else if found {
        out.note(own.span, Loss::Narrower, "only with the usual methods, and where no port is named on 80 and 443");
    } else {
        out.note(own.span, Loss::Told, "it never applies, by the lines before it or by its own conditions");
    }
}

/// Whether this line is the one that decides; `Err`: a line before it may be.
fn decided(
    own: &Access,
    before: &[Access],
    acls: &BTreeMap<String, Vec<Acl>>,
    site: &Site,
    options: &Options,
) -> Result<bool, Span> {
    if whole(own, acls, site, options) == Holds::No
        || whole(own, acls, site, options) == Holds::Perhaps && !hosts_only(own, acls, site, options)
    {
        return Ok(false);
    }
    for earlier in before.iter().filter(|earlier| !earlier.allow) {
        match whole(earlier, acls, site, options) {
            Holds::Yes => return Ok(false),
            Holds::No => {}
            Holds::Perhaps if hosts_only(earlier, acls, site, options) => {}
            Holds::Perhaps => return Err(earlier.span),
        }
    }
    Ok(true)
}

/// Whether it is only open for which hosts it holds, so that rows for these hosts can say it.
fn hosts_only(access: &Access, acls: &BTreeMap<String, Vec<Acl>>, site: &Site, options: &Options) -> bool {
    access.acls.iter().all(|(name, negated)| {
        let acl = acls.get(name).map(Vec::as_slice).unwrap_or_default();
        let open = holds_for(acl, name, site, options) == Holds::Perhaps;
        let names = acl.iter().all(
            |own| matches!(own, Acl::Hosts(hosts) if hosts.iter().all(|host| !matches!(host, HostPattern::Network(_)))),
        );
        !open || names && access.allow == *negated
    })
}

/// Refuses the hosts that an earlier line denies, or that the line itself leaves out.
fn refuse(
    hosts: &[HostPattern],
    own: &Access,
    before: &[Access],
    acls: &BTreeMap<String, Vec<Acl>>,
    options: &Options,
    out: &mut Imported,
) {
    let lines = before.iter().filter(|earlier| !earlier.allow).chain(std::iter::once(own));
    for line in lines {
        for (name, negated) in &line.acls {
            if line.allow != *negated {
                continue;
            }
            let refused = acls
                .get(name)
                .map(Vec::as_slice)
                .unwrap_or_default()
                .iter()
                .flat_map(|own| if let Acl::Hosts(hosts) = own { hosts.clone() } else { Vec::new() });
            for pattern in
                refused.filter(|pattern| hosts.iter().any(|host| meet(pattern, host) && !holds(pattern, host)))
            {
                let others = line.acls.iter().filter(|(other, _)| other != name);
                let plain = others.clone().all(|(other, _)| other == "all" || options.assume.contains(other));
                if !plain {
                    out.note(line.span, Loss::Broader, "it refuses these hosts whatever its other conditions say");
                }
                if before.iter().any(|earlier| earlier.allow) {
                    out.note(line.span, Loss::Narrower, "it also refuses what an earlier line allows at these hosts");
                }
                let rows = rows::site(Tier::DENY, &pattern, line.span);
                out.map(Surface::Egress, Tier::DENY).rows.extend(rows);
            }
        }
    }
}
