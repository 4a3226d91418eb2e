//! Codex rules: `prefix_rule(…)` in `*.rules`.
//!
//! What the source means, by `codex-rs/execpolicy` of <https://github.com/openai/codex> (its README, `parser.rs`,
//! `rule.rs` and `policy.rs`):
//!
//! - A pattern is a list of tokens; an element that is a list stands for one of its texts. A command matches when its
//!   first words are those tokens; anything may follow.
//! - `decision` is `allow` (when absent), `prompt` or `forbidden`; of all rules that match the strictest decides.
//! - A first token that is a path is compared as it is. With host executables on, which is what the client does,
//!   `/usr/bin/git` also counts as `git`, unless `host_executable(name=…)` lists other paths.
//! - `match` and `not_match` are checked against the rule itself when the file is loaded; a file
//!   whose example fails is not loaded.
//! - `network_rule(host, protocol, decision)` is about hosts.
//! - What no rule matches is left to the client's own judgement, which asks unless it knows the command to be harmless.

use super::starlark::{self, Call, Node, Value};
use super::{Files, Imported, Loss, Problem, rows, unreadable};
use crate::model::{CommandPattern, Glob, HostPattern, Piece, Scheme, Surface, Tier};
use crate::source::Span;

/// A `prefix_rule`.
#[derive(Debug)]
struct Rule {
    /// Alternatives of each token.
    pattern: Vec<Vec<String>>,
    tier: Tier,
    span: Span,
}

pub(super) fn import(files: &mut Files<'_>) -> Result<Imported, Vec<Problem>> {
    let mut out = Imported::default();
    let mut problems = Vec::new();
    let (mut rules, mut hosts, mut network) = (Vec::new(), Vec::new(), Vec::new());
    for file in &files.files {
        let calls = match starlark::read(*file, files.map.text(*file)) {
            Ok(calls) => calls,
            Err(problem) => {
                problems.push(problem);
                continue;
            }
        };
        for call in &calls {
            let read = match call.function.as_str() {
                "prefix_rule" => prefix_rule(call).map(|rule| rules.push(rule)),
                "host_executable" => host_executable(call).map(|host| hosts.push(host)),
                "network_rule" => network_rule(call).map(|rule| network.push(rule)),
                name => Err(unreadable(
                    call.span,
                    format!("`{name}` is no function of these rules"),
                    "known are `prefix_rule`, `host_executable` and `network_rule`",
                )),
            };
            problems.extend(read.err());
        }
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    for rule in &rules {
        row(rule, &hosts, &mut out);
    }
    egress(&network, &mut out);
    Ok(out)
}

fn text(node: &Node) -> Result<&str, Problem> {
    match &node.value {
        Value::Text(text) => Ok(text),
        _ => Err(unreadable(node.span, "a text is expected here", "write it in quotes")),
    }
}

fn texts(node: &Node) -> Result<Vec<String>, Problem> {
    match &node.value {
        Value::List(items) => items.iter().map(|item| text(item).map(str::to_owned)).collect(),
        _ => Err(unreadable(node.span, "a list of texts is expected here", "write `[\"git\", \"status\"]`")),
    }
}

fn required<'a>(call: &'a Call, name: &str, position: usize) -> Result<&'a Node, Problem> {
    let help = "without it the source does not load the file";
    call.get(name, position).ok_or_else(|| unreadable(call.span, format!("`{}` has no `{name}`", call.function), help))
}

fn decision(node: Option<&Node>) -> Result<Tier, Problem> {
    let Some(node) = node.filter(|node| node.value != Value::Other) else { return Ok(rows::tier(rows::ALLOW)) };
    match text(node)? {
        "allow" => Ok(rows::tier(rows::ALLOW)),
        "prompt" => Ok(Tier::UNMATCHED),
        "forbidden" | "deny" => Ok(Tier::DENY),
        other => Err(unreadable(
            node.span,
            format!("`{other}` is no decision"),
            "decisions are `allow`, `prompt` and `forbidden`",
        )),
    }
}

fn prefix_rule(call: &Call) -> Result<Rule, Problem> {
    let node = required(call, "pattern", 0)?;
    let Value::List(items) = &node.value else {
        return Err(unreadable(node.span, "the pattern is no list", "write `[\"git\", \"status\"]`"));
    };
    let token = |item: &Node| match &item.value {
        Value::Text(text) => Ok(vec![text.clone()]),
        _ => texts(item),
    };
    let pattern: Vec<Vec<String>> = items.iter().map(token).collect::<Result<_, _>>()?;
    if pattern.is_empty() || pattern.iter().any(Vec::is_empty) {
        return Err(unreadable(node.span, "an empty pattern, or empty alternatives", "name at least the program"));
    }
    let rule = Rule { pattern, tier: decision(call.get("decision", 1))?, span: call.span };
    for (name, position, wanted) in [("match", 2, true), ("not_match", 3, false)] {
        let Some(node) = call.get(name, position).filter(|node| node.value != Value::Other) else { continue };
        let Value::List(examples) = &node.value else {
            return Err(unreadable(node.span, format!("`{name}` is no list"), "write a list of commands"));
        };
        for example in examples {
            self_test(&rule, example, wanted)?;
        }
    }
    Ok(rule)
}

/// An example of a rule, against that rule alone.
fn self_test(rule: &Rule, example: &Node, wanted: bool) -> Result<(), Problem> {
    let help =
        "the source does not load a file whose example fails, so neither the rule nor the example can be trusted";
    let words = match &example.value {
        Value::Text(line) => shlex::split(line).unwrap_or_default(),
        _ => texts(example)?,
    };
    if words.is_empty() {
        return Err(unreadable(example.span, "an example that is no command", help));
    }
    if rule.matches(&words) == wanted {
        return Ok(());
    }
    let message = if wanted { "the rule does not match this example" } else { "the rule matches this example" };
    Err(unreadable(example.span, message, help))
}

impl Rule {
    /// Whether it matches, an absolute path of the program counting as its base name.
    fn matches(&self, words: &[String]) -> bool {
        let base = words.first().and_then(|word| word.strip_prefix('/')).and_then(|path| path.rsplit('/').next());
        words.len() >= self.pattern.len()
            && self.pattern.iter().zip(words).enumerate().all(|(at, (token, word))| {
                token.contains(word) || at == 0 && base.is_some_and(|base| token.iter().any(|own| own == base))
            })
    }
}

/// A program and the paths that count as it.
fn host_executable(call: &Call) -> Result<(String, Vec<String>), Problem> {
    Ok((text(required(call, "name", 0)?)?.to_owned(), texts(required(call, "paths", 1)?)?))
}

fn row(rule: &Rule, hosts: &[(String, Vec<String>)], out: &mut Imported) {
    let permits = rule.tier < Tier::UNMATCHED;
    let Some((programs, words)) = rule.pattern.split_first() else { return };
    let (paths, names): (Vec<&String>, Vec<&String>) = programs.iter().partition(|name| name.contains('/'));
    let (wrapped, mut names): (Vec<String>, Vec<String>) =
        names.into_iter().cloned().partition(|name| matches!(name.as_str(), "sudo" | "doas"));
    for path in paths {
        let base = path.rsplit('/').next().unwrap_or("").to_owned();
        if permits {
            let text = format!("`{path}` is a path, and a rule names programs by their base name");
            out.note(rule.span, Loss::LeftOut, text);
        } else {
            out.note(rule.span, Loss::Broader, format!("it is about every program `{base}`, not only `{path}`"));
            names.push(base);
        }
    }
    for name in wrapped {
        let (loss, text) = if permits {
            (
                Loss::LeftOut,
                format!("commands behind `{name}` belong to the surface sudo, which no map covers: they are denied"),
            )
        } else {
            (Loss::Told, format!("no map covers the surface sudo, so nothing behind `{name}` is permitted"))
        };
        out.note(rule.span, loss, text);
        if rule.tier == Tier::DENY {
            // Alone the wrapper is a program.
            let any = Glob::new([Piece::Text(name), Piece::Any]);
            let pattern = CommandPattern { programs: vec![any], words: Vec::new(), rest: true };
            out.map(Surface::Commands, Tier::UNMATCHED).rows.push(rows::plain(Tier::DENY, pattern, rule.span));
        }
    }
    if names.is_empty() {
        return;
    }
    if let Some((name, _)) = hosts.iter().find(|(name, _)| permits && names.contains(name)) {
        let text = format!("`host_executable` says which paths are `{name}`; here only the bare name is");
        out.note(rule.span, Loss::Told, text);
    }
    let globs = |texts: &[String]| {
        let mut globs: Vec<Glob> = texts.iter().map(|text| Glob::literal(text)).collect();
        globs.sort();
        globs.dedup();
        globs
    };
    let pattern =
        CommandPattern { programs: globs(&names), words: words.iter().map(|word| globs(word)).collect(), rest: true };
    if permits {
        // One program that cannot be named must not take the others with it.
        for name in &names {
            let own = CommandPattern { programs: globs(std::slice::from_ref(name)), ..pattern.clone() };
            let row = rows::permit(own, rule.span, &mut out.notes);
            out.take(Surface::Commands, Tier::UNMATCHED, rule.span, row);
        }
    } else {
        let (row, broader) = rows::restrict(rule.tier, pattern, rule.span);
        if let Some(text) = broader {
            out.note(rule.span, Loss::Broader, text);
        }
        out.map(Surface::Commands, Tier::UNMATCHED).rows.push(row);
    }
}

/// A `network_rule`: host, scheme and tier.
struct Network {
    host: HostPattern,
    scheme: Option<Scheme>,
    tier: Tier,
    span: Span,
}

fn network_rule(call: &Call) -> Result<Network, Problem> {
    let protocol = required(call, "protocol", 1)?;
    let scheme = match text(protocol)? {
        "http" => Some(Scheme::Http),
        "https" | "https_connect" | "http-connect" => Some(Scheme::Https),
        "socks5_tcp" | "socks5_udp" => None,
        other => return Err(unreadable(protocol.span, format!("`{other}` is no protocol"), "see `network_rule`")),
    };
    let node = required(call, "host", 0)?;
    let raw = text(node)?;
    // A port behind the host is dropped by the source.
    let bare =
        raw.rsplit_once(':').filter(|(host, port)| !host.contains(':') && port.bytes().all(|b| b.is_ascii_digit()));
    let host = rows::host(bare.map_or(raw, |(host, _)| host))
        .map_err(|why| unreadable(node.span, why, "name one host, without a wildcard"))?;
    Ok(Network { host, scheme, tier: decision(Some(required(call, "decision", 2)?))?, span: call.span })
}

fn egress(rules: &[Network], out: &mut Imported) {
    let denies = rules.iter().any(|rule| rule.tier == Tier::DENY);
    // A host that is denied is denied on every port, and a rule names one.
    let unmatched = if denies { Tier::DENY } else { Tier::UNMATCHED };
    for rule in rules {
        let host = rule.host.clone();
        let permits = rule.tier < Tier::UNMATCHED;
        let own = match rule.scheme {
            None if permits => {
                out.note(rule.span, Loss::LeftOut, "SOCKS is not spoken by the proxy that rules are about");
                continue;
            }
            None => rows::site(rule.tier, &host, rule.span),
            Some(scheme) => {
                let methods: &[&str] = if permits { &rows::METHODS } else { &rows::ALL_METHODS };
                vec![rows::egress(rule.tier, methods, scheme, host, scheme.default_port(), rule.span)]
            }
        };
        if permits {
            out.note(rule.span, Loss::Narrower, "only on the scheme's own port");
        }
        out.map(Surface::Egress, unmatched).rows.extend(own);
    }
}
