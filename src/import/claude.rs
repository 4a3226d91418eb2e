//! Claude Code settings: `permissions` of `settings.json`, of one or more scopes.
//!
//! What the source means, by its documentation (<https://code.claude.com/docs/en/permissions>):
//!
//! - Rules are tried deny, then ask, then allow; the first kind that matches decides, however specific the
//!   others are. Lists of several scopes are one list. `allowManagedPermissionRulesOnly` in one
//!   scope silences the rules of the others.
//! - A rule is `Tool` or `Tool(specifier)`; `Bash(*)` is `Bash`.
//! - `Bash(npm run build)` is that command and no other. `*` stands for any characters, blanks included.
//!   A last ` *`, or `:*`, ends at a word: `Bash(ls *)` is `ls` and `ls -la`, never `lsof`; `Bash(ls*)` is all three.
//! - A compound command is taken apart, and each part needs a rule of its own.
//! - `Read` and `Edit` take patterns as in `.gitignore`: `//` from the root, `~/` from the home, `/`
//!   from the project, else from the current directory. They also hold for file commands that the client recognises.
//!   The same written for `Write`, `NotebookEdit`, `MultiEdit` or `Glob` is accepted and never consulted.
//! - `WebFetch(domain:HOST)` is about that host. `mcp__SERVER__TOOL` names a tool of a server.
//! - `defaultMode` says what becomes of what no rule matches; in the highest scope that states it.

use super::json::{self, Kind, Node};
use super::text::{End, Sign, TextPattern, stars};
use super::{Files, Imported, Loss, Problem, rows, unreadable};
use crate::model::{CommandPattern, Glob, HostPattern, PathPattern, SetTerm, Surface, Tier, When, canonical_host};
use crate::source::Span;

/// Tools that accept a path and are never consulted with one.
const DEAF: [&str; 4] = ["Write", "NotebookEdit", "MultiEdit", "Glob"];

/// What a list does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kindness {
    Allow,
    Ask,
    Deny,
}

/// A rule as written.
struct Rule {
    kindness: Kindness,
    tool: String,
    specifier: Option<String>,
    span: Span,
}

pub(super) fn import(files: &mut Files<'_>) -> Result<Imported, Vec<Problem>> {
    let mut out = Imported::default();
    let mut scopes = Vec::new();
    let mut problems = Vec::new();
    for file in &files.files {
        match json::read(*file, files.map.text(*file)) {
            Ok(node) => scopes.push(node),
            Err(problem) => problems.push(problem),
        }
    }
    let mut rules = Vec::new();
    let managed = scopes.iter().position(|scope| {
        matches!(scope.get("allowManagedPermissionRulesOnly"), Some(Node { kind: Kind::Bool(true), .. }))
    });
    let mut unmatched = Tier::UNMATCHED;
    for (index, scope) in scopes.iter().enumerate() {
        let own = read(scope, &mut out, &mut problems);
        let silent = managed.is_some_and(|at| at != index);
        for rule in own {
            if silent && rule.kindness == Kindness::Allow {
                out.note(rule.span, Loss::Unconsulted, "another scope allows managed rules only");
            } else {
                rules.push(rule);
            }
        }
        if let Some(mode) = scope.at(&["permissions", "defaultMode"]) {
            unmatched = default_mode(mode, &mut out);
        }
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    if unmatched == Tier::DENY {
        // In this mode nobody is asked.
        rules.iter_mut().filter(|rule| rule.kindness == Kindness::Ask).for_each(|rule| rule.kindness = Kindness::Deny);
    }
    rows_of(&rules, unmatched, &mut out);
    Ok(out)
}

/// The rules of one scope.
fn read(scope: &Node, out: &mut Imported, problems: &mut Vec<Problem>) -> Vec<Rule> {
    let mut rules = Vec::new();
    if !matches!(scope.kind, Kind::Map(_)) {
        problems.push(unreadable(scope.span, "settings are an object", "write `{\"permissions\": {…}}`"));
    }
    let Some(permissions) = scope.get("permissions") else { return rules };
    for (name, kindness) in [("allow", Kindness::Allow), ("ask", Kindness::Ask), ("deny", Kindness::Deny)] {
        let Some(list) = permissions.get(name) else { continue };
        match list.texts(&format!("`permissions.{name}`")) {
            Ok(texts) => {
                for (text, span) in texts {
                    match rule(text, kindness, span) {
                        Some(rule) => rules.push(rule),
                        None => {
                            out.note(span, Loss::Unconsulted, format!("`{text}` is no `Tool` or `Tool(specifier)`"));
                        }
                    }
                }
            }
            Err(problem) => problems.push(problem),
        }
    }
    rules
}

fn rule(text: &str, kindness: Kindness, span: Span) -> Option<Rule> {
    let text = text.trim();
    let (tool, specifier) = match text.split_once('(') {
        Some((tool, rest)) => (tool, Some(rest.strip_suffix(')')?)),
        None => (text, None),
    };
    let name = |c: char| c.is_ascii_alphanumeric() || "_-*.".contains(c);
    if tool.is_empty() || !tool.chars().all(name) {
        return None;
    }
    let specifier = specifier.filter(|text| !text.trim().is_empty() && *text != "*").map(str::to_owned);
    Some(Rule { kindness, tool: tool.to_owned(), specifier, span })
}

fn default_mode(mode: &Node, out: &mut Imported) -> Tier {
    match mode.text() {
        Some("default" | "plan" | "acceptEdits") => Tier::UNMATCHED,
        Some("dontAsk") => Tier::DENY,
        Some("bypassPermissions" | "auto") => {
            out.note(mode.span, Loss::Narrower, "what no rule matches is asked about; the source lets it run");
            Tier::UNMATCHED
        }
        _ => {
            out.note(mode.span, Loss::Narrower, "this mode is not known; what no rule matches is denied");
            Tier::DENY
        }
    }
}

/// Allowances first: restrictions may need to know the programs that they name.
fn rows_of(rules: &[Rule], unmatched: Tier, out: &mut Imported) {
    let refuses = |rule: &&Rule| rule.tool == "WebFetch" && rule.kindness == Kindness::Deny;
    // A host that is denied is denied on every port, and a rule names one.
    let strict = if rules.iter().any(|rule| refuses(&rule)) { Tier::DENY } else { unmatched };
    for wanted in [Kindness::Allow, Kindness::Ask, Kindness::Deny] {
        let programs = out.allowed_programs();
        for rule in rules.iter().filter(|rule| rule.kindness == wanted) {
            match rule.tool.as_str() {
                "Bash" => bash(rule, unmatched, &programs, out),
                "WebFetch" => web(rule, strict, out),
                "Read" | "Grep" | "LS" | "NotebookRead" => files_rule(rule, unmatched, &programs, false, out),
                "Edit" => files_rule(rule, unmatched, &programs, true, out),
                tool if DEAF.contains(&tool) && rule.specifier.is_some() => {
                    let text =
                        format!("`{tool}` with a path is accepted and never consulted; `Edit` or `Read` would be");
                    out.note(rule.span, Loss::Unconsulted, text);
                }
                tool => other(rule, tool, out),
            }
        }
    }
}

fn tier(kindness: Kindness) -> Tier {
    match kindness {
        Kindness::Allow => rows::tier(rows::ALLOW),
        Kindness::Ask => Tier::UNMATCHED,
        Kindness::Deny => Tier::DENY,
    }
}

/// A command pattern with its end.
fn command(specifier: Option<&str>) -> Result<TextPattern, String> {
    let Some(text) = specifier else { return Ok(TextPattern::new(&[Sign::Any], End::Words)) };
    if let Some(prefix) = text.strip_suffix(":*") {
        if prefix.contains('*') {
            return Err("`*` before `:*` may be a wildcard or a character".into());
        }
        return Ok(TextPattern::new(&stars(prefix), End::Words));
    }
    match text.strip_suffix(" *") {
        // With another wildcard before it, the blank must be there.
        Some(prefix) if prefix.contains('*') => Ok(TextPattern::new(&stars(text), End::Words)),
        Some(prefix) => Ok(TextPattern::new(&stars(prefix), End::Words)),
        None => Ok(TextPattern::new(&stars(text), End::Exact)),
    }
}

fn bash(rule: &Rule, unmatched: Tier, programs: &[String], out: &mut Imported) {
    let pattern = command(rule.specifier.as_deref());
    if rule.kindness == Kindness::Allow {
        let row = pattern.and_then(|pattern| pattern.permit(rule.span, &mut out.notes));
        return out.take(Surface::Commands, unmatched, rule.span, row);
    }
    let pattern = pattern.unwrap_or_else(|_| {
        // Read as wildcards, which is more than as characters.
        TextPattern::new(&stars(rule.specifier.as_deref().unwrap_or("").trim_end_matches(":*")), End::Words)
    });
    // A last ` *` behind another wildcard asks for no more than the blank before it.
    let text = rule.specifier.as_deref().unwrap_or("");
    let pattern = match text.strip_suffix(" *") {
        Some(prefix) if prefix.contains('*') => TextPattern::new(&stars(prefix), End::Words),
        _ => pattern,
    };
    let own = pattern.restrict(tier(rule.kindness), rule.span, programs, &mut out.notes);
    if pattern.program().is_some_and(|name| name.ends_with("sudo") || name.ends_with("doas")) {
        out.note(rule.span, Loss::Told, "no map covers the surface sudo, so nothing behind `sudo` is permitted");
    }
    out.map(Surface::Commands, unmatched).rows.extend(own);
}

fn web(rule: &Rule, unmatched: Tier, out: &mut Imported) {
    let Some(specifier) = rule.specifier.as_deref() else {
        match rule.kindness {
            Kindness::Allow => {
                out.note(rule.span, Loss::LeftOut, "an allowance names its hosts, and this one is for all");
            }
            Kindness::Ask | Kindness::Deny => {
                let map = out.map(Surface::Egress, unmatched);
                map.rows.retain(|row| row.tier >= Tier::UNMATCHED);
                let text = "no host is permitted without a question, whatever other rules allow";
                out.note(rule.span, Loss::Told, text);
            }
        }
        return;
    };
    let host = specifier.strip_prefix("domain:").ok_or("it is no `domain:HOST`").and_then(|host| {
        match host.strip_prefix("*.") {
            Some(name) => {
                canonical_host(name).map(HostPattern::SubDomains).map_err(|_| "the host cannot be named in a rule")
            }
            None => rows::host(host).map_err(|_| "the host cannot be named in a rule"),
        }
    });
    match (host, rule.kindness) {
        (Ok(host), Kindness::Allow) => {
            let rows = rows::site(tier(rule.kindness), &host, rule.span);
            out.map(Surface::Egress, unmatched).rows.extend(rows);
        }
        (Err(why), Kindness::Allow) => out.note(rule.span, Loss::LeftOut, why),
        (Ok(HostPattern::Exact(name) | HostPattern::SubDomains(name)), _) => {
            out.note(rule.span, Loss::Broader, format!("it is about `{name}` and its sub-domains"));
            let rows = rows::site(tier(rule.kindness), &HostPattern::DomainTree(name), rule.span);
            out.map(Surface::Egress, unmatched).rows.extend(rows);
        }
        (Ok(address @ HostPattern::Network(_)), _) => {
            let rows = rows::site(tier(rule.kindness), &address, rule.span);
            out.map(Surface::Egress, unmatched).rows.extend(rows);
        }
        (_, _) => {
            out.map(Surface::Egress, unmatched).rows.clear();
            out.note(rule.span, Loss::Broader, "the hosts cannot be named in a rule, so none is permitted");
        }
    }
}

/// Rules about files: zones in `polctl.yaml`, and rows that keep commands out of them.
fn files_rule(rule: &Rule, unmatched: Tier, programs: &[String], writes: bool, out: &mut Imported) {
    if rule.kindness == Kindness::Allow {
        return out.note(rule.span, Loss::LeftOut, "the client's own file tools are decided by zones, not by rules");
    }
    let asks = rule.kindness == Kindness::Ask;
    let zone = match (writes, asks) {
        (false, false) => "no-read",
        (false, true) => "ask-read",
        (true, false) => "no-edit",
        (true, true) => "ask-edit",
    };
    let pattern = rule.specifier.as_deref().and_then(path_pattern);
    let names = |facts: When, out: &mut Imported| {
        let lists: Vec<Vec<Glob>> = if asks {
            programs.chunks(60).map(|names| names.iter().map(|name| Glob::literal(name)).collect()).collect()
        } else {
            vec![vec![Glob::any()]]
        };
        for mut list in lists {
            list.sort();
            list.dedup();
            let mut row = rows::plain(
                tier(rule.kindness),
                CommandPattern { programs: list, words: Vec::new(), rest: true },
                rule.span,
            );
            row.when = facts.clone();
            out.map(Surface::Commands, unmatched).rows.push(row);
        }
    };
    let Some(pattern) = pattern else {
        out.note(
            rule.span,
            Loss::Broader,
            "no zone can say which files it means, so it is about every command that is allowed",
        );
        return names(When::default(), out);
    };
    let zones = out.zones.entry(zone.to_owned()).or_default();
    let first = zones.is_empty();
    if !zones.contains(&pattern) {
        zones.push(pattern.clone());
    }
    let what = if writes { "it also keeps commands from naming" } else { "commands may not name" };
    let text = format!(
        "{what} `{pattern}` (zone `{zone}`); for the client's own file tools put it into the zone `credential`"
    );
    out.note(rule.span, Loss::Broader, text);
    if first {
        let term = || Some(SetTerm::In([zone.to_owned()].into()));
        names(When { names: term(), ..When::default() }, out);
        if writes {
            names(When { writes: term(), ..When::default() }, out);
        }
    }
}

/// A pattern of `.gitignore` as one of a zone, never smaller.
fn path_pattern(text: &str) -> Option<String> {
    let text = text.trim();
    if text.starts_with('!') || text.contains(['"', '\\']) {
        return None;
    }
    let (head, tail) = if let Some(tail) = text.strip_prefix("//") {
        ("/", tail)
    } else if let Some(tail) = text.strip_prefix("~/") {
        ("~/", tail)
    } else {
        ("**/", text.trim_start_matches("./").trim_start_matches('/'))
    };
    let tail = tail.trim_end_matches('/');
    // What stands behind a `**` in the middle may lie at any depth.
    let (head, tail) = match tail.trim_end_matches("/**").rfind("**/") {
        Some(at) => ("**/", tail.get(at + 3..).unwrap_or("")),
        None => (head, tail),
    };
    let stem = tail.strip_suffix("/**").unwrap_or(tail);
    let stem = if stem == "**" { "" } else { stem };
    let whole = if stem.is_empty() { format!("{head}**") } else { format!("{head}{stem}/**") };
    PathPattern::parse(&whole).ok().map(|_| whole)
}

/// Tools that no surface covers.
fn other(rule: &Rule, tool: &str, out: &mut Imported) {
    match rule.kindness {
        Kindness::Allow => {
            let text = format!("no surface covers the tool `{tool}`; its client goes on deciding about it");
            out.note(rule.span, Loss::LeftOut, text);
        }
        Kindness::Ask | Kindness::Deny => {
            let text = format!("polctl leaves the tool `{tool}` to its client, where this rule stays in force");
            out.note(rule.span, Loss::Told, text);
        }
    }
}
