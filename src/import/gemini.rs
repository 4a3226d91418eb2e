//! Gemini CLI policies: `[[rule]]` in `policies/*.toml`.
//!
//! What the source means, by `docs/reference/policy-engine.md` and `packages/core/src/policy` of
//! <https://github.com/google-gemini/gemini-cli>:
//!
//! - Of the rules that match a tool call the one with the highest `priority` decides. Files of a later
//!   tier (user over workspace, admin over user) beat all of an earlier one; the order of the files given says which is which.
//! - `commandPrefix` is about `run_shell_command` whose command begins with that text, up to a word's end.
//!   `commandRegex` and `argsPattern` are regular expressions over the arguments as JSON, found
//!   anywhere in it.
//! - A compound command is taken apart, and the strictest part decides. A redirect is asked about, unless the
//!   rule says `allowRedirection`.
//! - `decision` is `allow`, `deny` or `ask_user`; what no rule matches is asked about.
//! - `modes`, `interactive`, `subagent` and `toolAnnotations` limit a rule to some calls.

use super::json::{Kind, Node};
use super::ordered::{self, Effect, Ruling};
use super::text::{End, Sign, TextPattern};
use super::{Files, Imported, Loss, Problem, toml, unreadable};
use crate::source::Span;

const SHELL: &str = "run_shell_command";

/// A rule with its strength: tier of its file, then priority.
struct Rule {
    strength: (usize, i64),
    ruling: Ruling,
}

pub(super) fn import(files: &mut Files<'_>) -> Result<Imported, Vec<Problem>> {
    let mut out = Imported::default();
    let mut problems = Vec::new();
    let mut rules = Vec::new();
    let mut whole = None;
    for (tier, file) in files.files.iter().enumerate() {
        match toml::read(*file, files.map.text(*file)) {
            Ok(node) => {
                whole.get_or_insert(Span::new(*file, 0, 1));
                let list = match node.get("rule").map(|node| &node.kind) {
                    Some(Kind::List(list)) => list.as_slice(),
                    _ => &[],
                };
                for own in list {
                    if let Err(problem) = rule(own, tier, &mut rules, &mut out) {
                        problems.push(problem);
                    }
                }
            }
            Err(problem) => problems.push(problem),
        }
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    // Where two are as strong, the stricter one goes first.
    rules.sort_by_key(|rule| std::cmp::Reverse((rule.strength, rule.ruling.effect)));
    let rulings: Vec<Ruling> = rules.into_iter().map(|rule| rule.ruling).collect();
    if let Some(span) = whole {
        ordered::commands(&rulings, (Effect::Ask, span), &mut out);
    }
    Ok(out)
}

/// The texts of a value that may be one or a list.
fn texts(node: Option<&Node>) -> Vec<String> {
    match node.map(|node| &node.kind) {
        Some(Kind::Text(text)) => vec![text.clone()],
        Some(Kind::List(items)) => items.iter().filter_map(Node::text).map(str::to_owned).collect(),
        _ => Vec::new(),
    }
}

fn rule(node: &Node, tier: usize, rules: &mut Vec<Rule>, out: &mut Imported) -> Result<(), Problem> {
    let decision = node.get("decision").and_then(Node::text);
    let effect = match decision {
        Some("allow") => Effect::Allow,
        Some("ask_user") => Effect::Ask,
        Some("deny") => Effect::Deny,
        _ => {
            return Err(unreadable(
                node.span,
                "a rule without a decision",
                "decisions are `allow`, `ask_user` and `deny`",
            ));
        }
    };
    let priority = match node.get("priority").map(|own| &own.kind) {
        Some(Kind::Number(text)) => text.parse::<f64>().ok(),
        None => Some(0.0),
        Some(_) => None,
    };
    let Some(priority) = priority.filter(|own| own.is_finite() && own.abs() < 1e6) else {
        return Err(unreadable(node.span, "a priority that is no number", "priorities are numbers from 0 to 999"));
    };
    #[expect(clippy::cast_possible_truncation, reason = "below a million, in thousandths")]
    let strength = (tier, (priority * 1000.0) as i64);
    let tools = texts(node.get("toolName"));
    let prefixes = texts(node.get("commandPrefix"));
    let regex = node.get("commandRegex").or_else(|| node.get("argsPattern")).and_then(Node::text);
    let server = node.get("mcpName").is_some();
    let about_shell = !prefixes.is_empty()
        || node.get("commandRegex").is_some()
        || !server && tools.iter().any(|tool| matches!(tool.as_str(), SHELL | "*") || tool.contains("shell"));
    if !about_shell {
        other(node.span, effect, out);
        return Ok(());
    }
    let unsaid = condition(node);
    if let Some(why) = unsaid.as_ref().filter(|_| effect != Effect::Allow) {
        out.note(node.span, Loss::Broader, format!("{why}; here it always holds"));
    }
    // A restriction that holds sometimes is one that holds always; an allowance is none.
    let mut push = |pattern: TextPattern, unsaid: Option<String>, span: Span| {
        rules.push(Rule { strength, ruling: Ruling { pattern, effect, span, unsaid } });
    };
    if let Some(regex) = regex {
        let why = "a regular expression, which no pattern of words says".to_owned();
        if effect != Effect::Allow {
            out.note(
                node.span,
                Loss::Broader,
                format!("{why}: it is about every command that its beginning may begin"),
            );
        }
        push(regex_head(regex, node.get("commandRegex").is_some()), Some(unsaid.unwrap_or(why)), node.span);
    } else if prefixes.is_empty() {
        push(TextPattern::new(&[Sign::Any], End::Words), unsaid, node.span);
    } else {
        for prefix in prefixes {
            // A prefix is no pattern: each character stands for itself.
            let signs: Vec<Sign> = prefix.trim_end().chars().map(Sign::Char).collect();
            push(TextPattern::new(&signs, End::Words), unsaid.clone(), node.span);
        }
    }
    Ok(())
}

/// What limits a rule to some calls.
fn condition(node: &Node) -> Option<String> {
    let modes = texts(node.get("modes"));
    if !modes.is_empty() && !modes.iter().any(|mode| mode == "default") {
        return Some(format!("it holds in the mode `{}` only", modes.join("`, `")));
    }
    ["interactive", "subagent", "toolAnnotations", "mcpName"]
        .into_iter()
        .find(|key| node.get(key).is_some())
        .map(|key| format!("it holds under `{key}` only"))
}

/// The plain words that a regular expression begins with; everything when there is none.
fn regex_head(regex: &str, anchored: bool) -> TextPattern {
    let mut plain: String = if anchored {
        regex.chars().take_while(|c| c.is_ascii_alphanumeric() || " _-/".contains(*c)).collect()
    } else {
        String::new()
    };
    let rest = regex.get(plain.len()..).unwrap_or("");
    if rest.starts_with(['*', '?', '{']) {
        // The last character may be missing.
        plain.pop();
    }
    let mut depth = 0_i32;
    let alternative = rest.chars().any(|c| {
        depth += i32::from(c == '(') - i32::from(c == ')');
        c == '|' && depth <= 0
    });
    let whole = if alternative { "" } else { plain.as_str() };
    // The last word may go on.
    let head = whole.rsplit_once(' ').map_or("", |(head, _)| head);
    if head.is_empty() {
        return TextPattern::new(&[Sign::Any], End::Words);
    }
    TextPattern::new(&head.chars().map(Sign::Char).collect::<Vec<_>>(), End::Words)
}

fn other(span: Span, effect: Effect, out: &mut Imported) {
    if effect == Effect::Allow {
        out.note(span, Loss::LeftOut, "no surface covers these tools; their client goes on deciding about them");
    } else {
        out.note(span, Loss::Told, "polctl leaves these tools to their client, where this rule stays in force");
    }
}
