//! Sources that are lists of hosts: the Codex network proxy, Smokescreen, sandbox-runtime.

use super::super::json::{self, Kind, Node};
use super::super::{Files, Imported, Loss, Options, Problem, toml, unreadable};
use super::{allow, deny, holds, host, meet, ports};
use crate::model::{Matcher, Scheme, Surface, Tier};
use crate::source::Span;

/// The texts of a list at a key; none where it is absent.
fn list<'a>(node: &'a Node, key: &str) -> Result<Vec<(&'a str, Span)>, Problem> {
    match node.get(key) {
        None | Some(Node { kind: Kind::Null, .. }) => Ok(Vec::new()),
        Some(own) => own.texts(&format!("`{key}`")),
    }
}

/// The Codex network proxy: `[network_proxy]` of `config.toml`, its `policy`, or `[network]` with `domains`.
///
/// By `codex-rs/network-proxy` of <https://github.com/openai/codex> (README, `policy.rs`): a host is permitted when
/// `allowed_domains` holds it and `denied_domains` does not; an empty list of allowed ones blocks all. `example.com` is
/// exact, `*.example.com` its sub-domains, `**.example.com` both. In the mode `limited` only GET, HEAD and OPTIONS pass, and no tunnel
/// for `https`. Local addresses are refused unless `allow_local_binding`.
pub(in super::super) fn codex_proxy(files: &mut Files<'_>) -> Result<Imported, Vec<Problem>> {
    let mut out = Imported::default();
    let mut problems = Vec::new();
    for file in files.files.clone() {
        let text = files.map.text(file).to_owned();
        let read = toml::read(file, &text).and_then(|node| {
            let proxy = node.get("network_proxy").or_else(|| node.get("network")).unwrap_or(&node).clone();
            codex(&proxy, &mut out)
        });
        problems.extend(read.err());
    }
    if problems.is_empty() { Ok(out) } else { Err(problems) }
}

fn codex(proxy: &Node, out: &mut Imported) -> Result<(), Problem> {
    let policy = proxy.get("policy").unwrap_or(proxy);
    let mut allowed = list(policy, "allowed_domains")?;
    let mut denied = list(policy, "denied_domains")?;
    for (name, action) in policy.get("domains").map(Node::entries).unwrap_or_default() {
        match action.text() {
            Some("allow") => allowed.push((name, action.span)),
            Some("deny" | "none") => denied.push((name, action.span)),
            _ => {
                return Err(unreadable(
                    action.span,
                    "this is no action for a domain",
                    "actions are `allow` and `deny`",
                ));
            }
        }
    }
    if proxy.get("enabled").is_some_and(|own| own.kind == Kind::Bool(false)) {
        out.note(
            proxy.span,
            Loss::Narrower,
            "the proxy is switched off and limits nothing; the map limits all the same",
        );
    }
    if proxy.get("allow_local_binding").is_some_and(|own| own.kind == Kind::Bool(true)) {
        out.note(proxy.span, Loss::Narrower, "addresses that are not public are refused, whatever a map says");
    }
    out.map(Surface::Egress, Tier::DENY);
    if let Some((_, span)) = allowed.first() {
        ports(*span, out);
    }
    for (text, span) in &allowed {
        allow(&codex_host(text), *span, Tier::DENY, &[], out);
    }
    for (text, span) in denied {
        deny(&codex_host(text), span, Tier::DENY, out);
    }
    let mode = proxy.get("mode").or_else(|| policy.get("mode"));
    match mode.and_then(Node::text) {
        None | Some("full") => {}
        Some("limited") => limited(proxy.get("mitm").is_some_and(|own| own.kind == Kind::Bool(true)), out),
        Some(_) => {
            let span = mode.map_or(proxy.span, |own| own.span);
            return Err(unreadable(span, "this is no mode of the proxy", "modes are `full` and `limited`"));
        }
    }
    Ok(())
}

/// A port behind the host is dropped by the source, and case does not count.
fn codex_host(text: &str) -> String {
    let text = text.trim();
    let bare = text.rsplit_once(':').filter(|(host, _)| !host.contains(':')).map_or(text, |(host, _)| host);
    bare.trim_end_matches('.').to_ascii_lowercase()
}

fn limited(mitm: bool, out: &mut Imported) {
    let Some(map) = out.maps.get_mut(&Surface::Egress) else { return };
    map.rows.retain_mut(|row| {
        let Matcher::Egress { pattern, .. } = &mut row.matcher else { return true };
        if row.tier == Tier::DENY {
            return true;
        }
        pattern.methods = ["GET", "HEAD", "OPTIONS"].map(str::to_owned).to_vec();
        pattern.scheme == Scheme::Http || mitm
    });
}

/// A Smokescreen ACL.
///
/// By `pkg/smokescreen/acl/v1/acl.go` of <https://github.com/stripe/smokescreen>: the role's own rule, else `default`; without
/// either, denied. A host in the rule's `allowed_domains` is allowed, before `global_deny_list` and then
/// `global_allow_list` are asked; after them `enforce` denies, `report` lets pass and logs, `open` lets
/// pass. `example.com` is exact, `*.example.com` its sub-domains.
pub(in super::super) fn smokescreen(files: &mut Files<'_>, options: &Options) -> Result<Imported, Vec<Problem>> {
    let mut out = Imported::default();
    let mut problems = Vec::new();
    if files.files.len() > 1
        && let Some(second) = files.files.get(1)
    {
        problems.push(unreadable(Span::new(*second, 0, 1), "a second ACL", "import one ACL at a time"));
    }
    for file in files.files.clone() {
        let text = files.map.text(file).to_owned();
        match toml::read_yaml(file, &text) {
            Ok(node) => problems.extend(acl(&node, options, &mut out).err()),
            Err(own) => problems.extend(own),
        }
    }
    if problems.is_empty() { Ok(out) } else { Err(problems) }
}

fn acl(node: &Node, options: &Options, out: &mut Imported) -> Result<(), Problem> {
    let services = match node.get("services").map(|own| &own.kind) {
        Some(Kind::List(items)) => items.as_slice(),
        _ => return Err(unreadable(node.span, "no list `services`", "without it the source does not load the file")),
    };
    let default = node.get("default").filter(|own| own.kind != Kind::Null);
    let named = |service: &Node| service.get("name").and_then(Node::text).unwrap_or("").to_owned();
    let chosen: Vec<(Vec<String>, &Node)> = match options.user.as_deref() {
        Some(role) => {
            let own = services.iter().find(|service| named(service) == role).or(default);
            own.map(|rule| (Vec::new(), rule)).into_iter().collect()
        }
        None => services.iter().map(|service| (vec![named(service)], service)).collect(),
    };
    if options.user.is_none()
        && let Some(default) = default
    {
        if services.is_empty() {
            return one_role(node, &[(Vec::new(), default)], out);
        }
        let text = "the default is for roles without a rule of their own, which a map cannot say: `--user ROLE` imports for one";
        out.note(default.span, Loss::LeftOut, text);
    }
    if chosen.is_empty() {
        out.note(node.span, Loss::Told, "no rule is about this role, so it is denied everything");
    }
    one_role(node, &chosen, out)
}

fn one_role(node: &Node, rules: &[(Vec<String>, &Node)], out: &mut Imported) -> Result<(), Problem> {
    let global_deny = list(node, "global_deny_list")?;
    let global_allow = list(node, "global_allow_list")?;
    let mut open = !rules.is_empty();
    for (_, rule) in rules {
        let action = rule.get("action").and_then(Node::text);
        match action {
            Some("enforce") => open = false,
            Some("report" | "open") => {
                let text = format!(
                    "`{}` lets pass what no list holds; here a person is asked, or it is denied",
                    action.unwrap_or("")
                );
                out.note(rule.span, Loss::Narrower, text);
            }
            _ => {
                return Err(unreadable(
                    rule.span,
                    "a rule without an action",
                    "actions are `enforce`, `report` and `open`",
                ));
            }
        }
    }
    // A refused host is refused on every port, and a rule names one.
    let unmatched = if open && global_deny.is_empty() { Tier::UNMATCHED } else { Tier::DENY };
    out.map(Surface::Egress, unmatched);
    let mut own = Vec::new();
    for (agents, rule) in rules {
        let agents: Vec<String> = agents.clone();
        let good = agents
            .iter()
            .all(|name| !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.@".contains(&b)));
        for (text, span) in list(rule, "allowed_domains")? {
            if own.is_empty() {
                ports(span, out);
            }
            if good {
                own.extend(host(text).ok());
                allow(text, span, unmatched, &agents, out);
            } else {
                out.note(span, Loss::LeftOut, "rules cannot name this role");
            }
        }
    }
    let allowed: Vec<_> = global_allow.iter().filter_map(|(text, _)| host(text).ok()).collect();
    if !rules.is_empty() {
        for (text, span) in &global_allow {
            allow(text, *span, unmatched, &[], out);
        }
    }
    for (text, span) in global_deny {
        let pattern = host(text);
        // What nothing permits needs no refusal.
        if unmatched == Tier::DENY
            && pattern.as_ref().is_ok_and(|denied| !allowed.iter().any(|other| meet(denied, other)))
        {
            continue;
        }
        if pattern.as_ref().is_ok_and(|denied| own.iter().any(|other| meet(denied, other))) {
            out.note(
                span,
                Loss::Narrower,
                "it also refuses what a rule of the source allows before this list is asked",
            );
        }
        deny(text, span, unmatched, out);
    }
    only_named(rules, out);
    Ok(())
}

/// The lists for all hold for roles with a rule only.
fn only_named(rules: &[(Vec<String>, &Node)], out: &mut Imported) {
    let names: Vec<String> = rules.iter().flat_map(|(agents, _)| agents.clone()).collect();
    if names.is_empty() {
        return;
    }
    if let Some(map) = out.maps.get_mut(&Surface::Egress) {
        map.rows
            .iter_mut()
            .filter(|row| row.tier < Tier::UNMATCHED && row.agents.is_empty())
            .for_each(|row| row.agents.clone_from(&names));
    }
}

/// The settings of sandbox-runtime.
///
/// By its README (<https://github.com/anthropic-experimental/sandbox-runtime>): a host is permitted when `network.allowedDomains` holds it
/// and `network.deniedDomains` does not. `example.com` is exact, `*.example.com` its sub-domains. An empty list of allowed hosts
/// permits none, an empty list of denied ones denies none; the same holds for `filesystem`: an empty `allowWrite` writes
/// nowhere, an empty `denyRead` reads everything.
pub(in super::super) fn sandbox_runtime(files: &mut Files<'_>) -> Result<Imported, Vec<Problem>> {
    let mut out = Imported::default();
    let mut problems = Vec::new();
    for file in &files.files {
        let read = json::read(*file, files.map.text(*file)).and_then(|node| srt(&node, &mut out));
        problems.extend(read.err());
    }
    if problems.is_empty() { Ok(out) } else { Err(problems) }
}

fn srt(node: &Node, out: &mut Imported) -> Result<(), Problem> {
    let empty = Node { kind: Kind::Map(Vec::new()), span: node.span };
    let network = node.get("network").or_else(|| node.at(&["sandbox", "network"])).unwrap_or(&empty);
    let allowed = list(network, "allowedDomains")?;
    let denied = list(network, "deniedDomains")?;
    out.map(Surface::Egress, Tier::DENY);
    if network.get("allowedDomains").is_none() {
        out.note(network.span, Loss::Narrower, "without `allowedDomains` no host is permitted");
    }
    match allowed.first() {
        Some((_, span)) => ports(*span, out),
        None => out.note(network.span, Loss::Told, "an empty list of allowed hosts permits none"),
    }
    let hosts: Vec<_> = denied.iter().filter_map(|(text, _)| host(text).ok()).collect();
    for (text, span) in allowed {
        if *text == *"localhost" {
            out.note(span, Loss::LeftOut, "addresses that are not public are refused, whatever a map says");
        } else if host(text).is_ok_and(|own| hosts.iter().any(|denied| holds(denied, &own))) {
            out.note(span, Loss::Told, "it never applies: the list of denied hosts holds it");
        } else {
            allow(text, span, Tier::DENY, &[], out);
        }
    }
    for (text, span) in denied {
        deny(text, span, Tier::DENY, out);
    }
    if let Some(files) = node.get("filesystem") {
        out.note(
            files.span,
            Loss::Told,
            "limits on files stay with the sandbox; requests are all that this map is about",
        );
    }
    for key in ["allowUnixSockets", "allowAllUnixSockets", "allowLocalBinding"] {
        if let Some(own) = network.get(key) {
            out.note(own.span, Loss::LeftOut, format!("`{key}` is about sockets of this machine, which no proxy sees"));
        }
    }
    Ok(())
}
