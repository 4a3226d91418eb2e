//! opencode: `permission` of `opencode.json`.
//!
//! What the source means, by <https://opencode.ai/docs/permissions>: the value is one action for everything, or an
//! object by tool; a tool's value is one action or an object of patterns. Of the patterns that match the **last**
//! decides, so the order of keys counts, `"*"` as a tool's name included. `*` is any characters, `?` one; a last ` *`
//! may be missing. Actions are `allow`, `ask` and `deny`; what nothing matches is allowed. A compound command is
//! taken apart. Files merge key by key: a later value takes the place of the earlier one, where that stood. `agent.NAME.permission`
//! is put behind the rest for that agent.

use super::json::{self, Kind, Node};
use super::ordered::{self, Effect, Ruling};
use super::text::{End, Sign, TextPattern};
use super::{Files, Imported, Loss, Problem, rows, unreadable};
use crate::model::{Surface, Tier};
use crate::source::Span;

/// A rule: tool, pattern, action, in the order of the file.
struct Rule<'a> {
    tool: &'a str,
    pattern: &'a str,
    effect: Effect,
    span: Span,
}

pub(super) fn import(files: &mut Files<'_>) -> Result<Imported, Vec<Problem>> {
    let mut out = Imported::default();
    let mut merged: Option<Node> = None;
    for file in &files.files {
        let node = json::read(*file, files.map.text(*file)).map_err(|problem| vec![problem])?;
        merged = Some(match merged.take() {
            Some(base) => merge(base, node),
            None => node,
        });
    }
    let Some(config) = merged else { return Ok(out) };
    let rules = config.get("permission").map_or(Ok(Vec::new()), rules).map_err(|problem| vec![problem])?;
    let mut rulings: Vec<Ruling> = rules.iter().rev().filter(|rule| about(rule.tool, "bash")).map(ruling).collect();
    // The older setting takes a tool away altogether.
    if let Some(node) = config.at(&["tools", "bash"]).filter(|node| node.kind == Kind::Bool(false)) {
        rulings.insert(0, Ruling { pattern: pattern("*"), effect: Effect::Deny, span: node.span, unsaid: None });
    }
    ordered::commands(&rulings, (Effect::Allow, config.span), &mut out);
    for rule in rules.iter().filter(|rule| !about(rule.tool, "bash")) {
        if about(rule.tool, "webfetch") {
            web(rule, &rules, &mut out);
        } else if rule.effect == Effect::Allow {
            let text = format!("no surface covers the tool `{}`; its client goes on deciding about it", rule.tool);
            out.note(rule.span, Loss::LeftOut, text);
        } else {
            let text = format!("polctl leaves the tool `{}` to its client, where this rule stays in force", rule.tool);
            out.note(rule.span, Loss::Told, text);
        }
    }
    agents(&config, &mut out).map_err(|problem| vec![problem])?;
    Ok(out)
}

/// Two files as one: keys stay where they stood first.
fn merge(base: Node, over: Node) -> Node {
    let (Kind::Map(mut entries), Kind::Map(more)) = (base.kind, over.kind.clone()) else { return over };
    for (key, value) in more {
        match entries.iter_mut().find(|(own, _)| *own == key) {
            Some((_, own)) => *own = merge(own.clone(), value),
            None => entries.push((key, value)),
        }
    }
    Node { kind: Kind::Map(entries), span: over.span }
}

fn effect(node: &Node) -> Result<Effect, Problem> {
    match node.text() {
        Some("allow") => Ok(Effect::Allow),
        Some("ask") => Ok(Effect::Ask),
        Some("deny") => Ok(Effect::Deny),
        _ => Err(unreadable(node.span, "this is no action", "actions are `allow`, `ask` and `deny`")),
    }
}

fn rules(node: &Node) -> Result<Vec<Rule<'_>>, Problem> {
    let mut out = Vec::new();
    if !matches!(node.kind, Kind::Map(_)) {
        out.push(Rule { tool: "*", pattern: "*", effect: effect(node)?, span: node.span });
    }
    for (tool, value) in node.entries() {
        if matches!(value.kind, Kind::Map(_)) {
            for (pattern, action) in value.entries() {
                out.push(Rule { tool, pattern, effect: effect(action)?, span: action.span });
            }
        } else {
            out.push(Rule { tool, pattern: "*", effect: effect(value)?, span: value.span });
        }
    }
    Ok(out)
}

/// Whether a tool's pattern is about this tool.
fn about(pattern: &str, tool: &str) -> bool {
    crate::model::Glob::from_stars(pattern).matches(tool)
}

fn pattern(text: &str) -> TextPattern {
    let signs = |text: &str| -> Vec<Sign> {
        text.chars()
            .map(|c| match c {
                '*' => Sign::Any,
                '?' => Sign::One,
                c => Sign::Char(c),
            })
            .collect()
    };
    match text.strip_suffix(" *") {
        Some(head) => TextPattern::new(&signs(head), End::Words),
        None => TextPattern::new(&signs(text), End::Exact),
    }
}

fn ruling(rule: &Rule<'_>) -> Ruling {
    Ruling { pattern: pattern(rule.pattern), effect: rule.effect, span: rule.span, unsaid: None }
}

/// URLs that may be fetched. Any restriction behind it may be about them, so then none is carried.
fn web(rule: &Rule<'_>, rules: &[Rule<'_>], out: &mut Imported) {
    if rule.effect != Effect::Allow {
        return out.note(rule.span, Loss::Told, "no other URL is permitted by the map of requests");
    }
    let behind = rules.iter().position(|own| std::ptr::eq(own, rule)).map_or(0, |at| at + 1);
    let restricted = rules
        .get(behind..)
        .unwrap_or_default()
        .iter()
        .any(|other| about(other.tool, "webfetch") && other.effect != Effect::Allow);
    let host = rule.pattern.split_once("://").and_then(|(scheme, rest)| {
        let scheme = crate::model::Scheme::from_name(scheme)?;
        let host = rest.strip_suffix("/*").or_else(|| rest.strip_suffix("/**"))?;
        Some((scheme, rows::host(host).ok()?))
    });
    match host {
        Some((scheme, host)) if !restricted => {
            let row =
                rows::egress(rows::tier(rows::ALLOW), &["GET", "HEAD"], scheme, host, scheme.default_port(), rule.span);
            out.map(Surface::Egress, Tier::DENY).rows.push(row);
        }
        _ => out.note(
            rule.span,
            Loss::LeftOut,
            "an allowance names a host, as in `https://example.com/*`, and no later rule restricts it",
        ),
    }
}

/// Restrictions of single agents; what they are allowed besides is left out.
fn agents(config: &Node, out: &mut Imported) -> Result<(), Problem> {
    for section in ["agent", "mode"] {
        let agents = config.get(section).map(Node::entries).unwrap_or_default();
        for (name, node) in agents {
            let Some(permission) = node.get("permission") else { continue };
            for rule in rules(permission)?.iter().filter(|rule| about(rule.tool, "bash")) {
                if rule.effect == Effect::Allow {
                    out.note(rule.span, Loss::LeftOut, format!("an allowance for the agent `{name}` alone"));
                    continue;
                }
                let programs = out.allowed_programs();
                // Where nothing else is asked about, a question would be more.
                let asked = out.maps.get(&Surface::Commands).is_none_or(|map| map.unmatched == Tier::UNMATCHED);
                let tier = if rule.effect == Effect::Deny || !asked { Tier::DENY } else { Tier::UNMATCHED };
                let mut rows = pattern(rule.pattern).restrict(tier, rule.span, &programs, &mut out.notes);
                let plain = !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.@".contains(&b));
                rows.iter_mut().filter(|_| plain).for_each(|row| row.agents = vec![name.clone()]);
                out.map(Surface::Commands, Tier::UNMATCHED).rows.extend(rows);
            }
        }
    }
    Ok(())
}
