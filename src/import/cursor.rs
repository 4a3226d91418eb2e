//! Cursor's command line: `permissions` of `cli-config.json` and `.cursor/cli.json`.
//!
//! What the source means, by <https://cursor.com/docs/cli/reference/permissions>: `Shell(BASE)` is about commands
//! whose first word is that, `Shell(BASE:ARGUMENTS)` about those whose arguments match a pattern, too.
//! `deny` beats `allow`; what neither matches is asked about. `Read`, `Write`, `WebFetch(HOST)` and
//! `Mcp(SERVER:TOOL)` are about other tools. A file nearer to the project beats the one before it.

use super::json::{self, Node};
use super::ordered::{self, Effect, Ruling};
use super::text::{End, Sign, TextPattern, stars};
use super::{Files, Imported, Loss, Problem, rows};
use crate::model::{HostPattern, Surface, Tier, canonical_host};
use crate::source::Span;

pub(super) fn import(files: &mut Files<'_>) -> Result<Imported, Vec<Problem>> {
    let mut out = Imported::default();
    let mut problems = Vec::new();
    let mut nodes = Vec::new();
    for file in &files.files {
        match json::read(*file, files.map.text(*file)) {
            Ok(node) => nodes.push(node),
            Err(problem) => problems.push(problem),
        }
    }
    // A list of a nearer file may take the place of one before it, so only the last one allows.
    let last = nodes.iter().rposition(|node| node.at(&["permissions", "allow"]).is_some());
    let mut rules: Vec<(&str, Span, Effect)> = Vec::new();
    for (index, node) in nodes.iter().enumerate() {
        for (key, effect) in [("deny", Effect::Deny), ("allow", Effect::Allow)] {
            let Some(list) = node.at(&["permissions", key]) else { continue };
            match list.texts(&format!("`permissions.{key}`")) {
                Ok(texts) if effect == Effect::Deny || Some(index) == last => {
                    rules.extend(texts.into_iter().map(|(text, span)| (text, span, effect)));
                }
                Ok(texts) => texts.into_iter().for_each(|(_, span)| {
                    out.note(span, Loss::LeftOut, "a nearer file has a list of its own, which may take its place");
                }),
                Err(problem) => problems.push(problem),
            }
        }
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    rules.sort_by_key(|(_, span, effect)| (std::cmp::Reverse(*effect), *span));
    let denies = rules.iter().any(|(text, _, effect)| text.starts_with("WebFetch(") && *effect == Effect::Deny);
    let unmatched = if denies { Tier::DENY } else { Tier::UNMATCHED };
    let mut rulings = Vec::new();
    for (text, span, effect) in rules {
        match text.trim().strip_suffix(')').and_then(|head| head.split_once('(')) {
            Some(("Shell", own)) => rulings.push(Ruling { pattern: shell(own), effect, span, unsaid: None }),
            Some(("WebFetch", own)) => web(own, effect, span, unmatched, &mut out),
            Some((tool, _)) if effect == Effect::Allow => {
                out.note(
                    span,
                    Loss::LeftOut,
                    format!("no surface covers the tool `{tool}`; its client goes on deciding about it"),
                );
            }
            Some((tool, _)) => {
                let text = format!("polctl leaves the tool `{tool}` to its client, where this rule stays in force");
                out.note(span, Loss::Told, text);
            }
            None => out.note(span, Loss::Unconsulted, format!("`{text}` is no `Tool(pattern)`")),
        }
    }
    if let Some(span) = nodes.first().map(|node: &Node| node.span) {
        ordered::commands(&rulings, (Effect::Ask, span), &mut out);
    }
    Ok(out)
}

/// The pattern of `Shell(…)`.
fn shell(own: &str) -> TextPattern {
    let own = own.trim();
    match own.split_once(':') {
        Some((base, "*" | "**")) => TextPattern::new(&stars(base), End::Words),
        Some((base, arguments)) => TextPattern::new(&stars(&format!("{base} {arguments}")), End::Exact),
        None if matches!(own, "*" | "**") => TextPattern::new(&[Sign::Any], End::Words),
        None => TextPattern::new(&stars(own), End::Words),
    }
}

fn web(host: &str, effect: Effect, span: Span, unmatched: Tier, out: &mut Imported) {
    let pattern = match host.strip_prefix("*.") {
        Some(name) => {
            canonical_host(name).map(HostPattern::SubDomains).map_err(|why| format!("the host `{name}` {why}"))
        }
        None => rows::host(host),
    };
    match (pattern, effect) {
        (Ok(pattern), Effect::Allow) => {
            let rows = rows::site(rows::tier(rows::ALLOW), &pattern, span);
            out.map(Surface::Egress, unmatched).rows.extend(rows);
        }
        (Err(why), Effect::Allow) => out.note(span, Loss::LeftOut, why),
        (Ok(HostPattern::Exact(name) | HostPattern::SubDomains(name)), _) => {
            out.note(span, Loss::Broader, format!("it is about `{name}` and its sub-domains"));
            let rows = rows::site(Tier::DENY, &HostPattern::DomainTree(name), span);
            out.map(Surface::Egress, unmatched).rows.extend(rows);
        }
        (Ok(pattern), _) => {
            let rows = rows::site(Tier::DENY, &pattern, span);
            out.map(Surface::Egress, unmatched).rows.extend(rows);
        }
        (Err(_), _) => {
            out.note(span, Loss::Broader, "the hosts cannot be named in a rule, so none is permitted");
            out.map(Surface::Egress, unmatched).rows.clear();
        }
    }
}
