//! From raw attributes to a rule: one conversion for list items, tables and `rules` blocks.

use std::collections::BTreeSet;

use super::command_pattern::{Problem, parse_command, parse_items, split_or_problem};
use super::egress_pattern::parse_egress;
use super::{Sink, listed, nearest};
use crate::diag::{Code, Finding};
use crate::model::{BoolTerm, Example, Item, Matcher, Rule, SetTerm, Surface, Tier, When};
use crate::source::Span;

/// The attributes that a rule may carry (DESIGN 3.2).
pub(super) const KEYS: [&str; 12] =
    ["with", "only", "unless", "when", "agents", "hosts", "run as", "secret", "match", "no match", "id", "why"];

/// The known key that `name` is, without regard to case and blanks around it.
pub(super) fn key(name: &str) -> Option<&'static str> {
    let name = name.trim().to_lowercase();
    let name = name.split_whitespace().collect::<Vec<_>>().join(" ");
    KEYS.into_iter().find(|k| **k == *name)
}

/// The finding for a key that is none.
pub(super) fn unknown_key(name: &str, span: Span) -> Finding {
    Finding::new(Code::ATTRIBUTE, span, format!("`{}` is no attribute of a rule", name.trim())).help(format!(
        "{}attributes are {}",
        nearest(name.trim(), &KEYS),
        listed(&KEYS)
    ))
}

/// Whether a key's value is free text rather than patterns in code spans.
pub(super) fn takes_plain_text(key: &str) -> bool {
    matches!(key, "agents" | "hosts" | "run as" | "id" | "why")
}

/// One value of an attribute, quotes and code marks taken off.
#[derive(Clone, Debug)]
pub(super) struct Value {
    pub(super) text: String,
    pub(super) span: Span,
}

/// A rule as written.
#[derive(Clone, Debug)]
pub(super) struct RawRule {
    pub(super) surface: Surface,
    pub(super) tier: Tier,
    pub(super) pattern: Value,
    /// The item, row or line that it was read from.
    pub(super) whole: Span,
    pub(super) attributes: Vec<(&'static str, Span, Vec<Value>)>,
    pub(super) description: String,
}

/// Turns a rule as written into a rule, or into findings.
pub(super) fn build(raw: RawRule, sink: &mut Sink) -> Option<Rule> {
    let before = sink.len();
    let mut out = Parts::default();
    for (key, span, values) in &raw.attributes {
        if values.is_empty() {
            sink.push(
                Finding::new(Code::ATTRIBUTE, *span, format!("`{key}` has no value"))
                    .help("write its value, or leave the attribute out"),
            );
            continue;
        }
        out.add(raw.surface, key, *span, values, sink);
    }
    let matcher = match raw.surface {
        Surface::Egress => match parse_egress(&raw.pattern.text) {
            Ok(pattern) => Some(Matcher::Egress { pattern, secrets: out.secrets.into_iter().collect() }),
            Err(problem) => {
                report(Code::EGRESS_PATTERN, &raw.pattern, vec![problem], sink);
                None
            }
        },
        Surface::Commands | Surface::Sudo => match parse_command(&raw.pattern.text) {
            Ok(pattern) => Some(Matcher::Command {
                pattern,
                with: sorted_lists(out.with),
                only: out.only.map(sorted),
                unless: sorted(out.unless),
                run_as: out.run_as.into_iter().collect(),
            }),
            Err(problems) => {
                report(Code::COMMAND_PATTERN, &raw.pattern, problems, sink);
                None
            }
        },
    };
    if sink.len() > before {
        return None;
    }
    let mut rule = Rule {
        id: String::new(),
        surface: raw.surface,
        tier: raw.tier,
        matcher: matcher?,
        when: out.when,
        agents: out.agents.into_iter().collect(),
        hosts: out.hosts.into_iter().collect(),
        examples: out.examples,
        why: if out.why.is_empty() { raw.description } else { out.why },
        span: raw.pattern.span,
        whole: raw.whole,
    };
    rule.id = out.id.unwrap_or_else(|| rule.derived_id());
    Some(rule)
}

fn sorted(mut items: Vec<Item>) -> Vec<Item> {
    items.sort();
    items.dedup();
    items
}

fn sorted_lists(lists: Vec<Vec<Item>>) -> Vec<Vec<Item>> {
    let mut lists: Vec<_> = lists.into_iter().map(sorted).collect();
    lists.sort();
    lists.dedup();
    lists
}

/// Findings for problems inside one value. Offsets are into the value's text; where quoting
/// in Markdown shifted them, the whole value is shown.
fn report(code: Code, value: &Value, problems: Vec<Problem>, sink: &mut Sink) {
    let exact = value.span.end - value.span.start == value.text.len();
    for p in problems {
        let span = if exact && p.start < p.end {
            Span::new(value.span.file, value.span.start + p.start, value.span.start + p.end.min(value.text.len()))
        } else {
            value.span
        };
        sink.push(Finding::new(code, span, p.message).help(p.help));
    }
}

#[derive(Default)]
struct Parts {
    with: Vec<Vec<Item>>,
    only: Option<Vec<Item>>,
    unless: Vec<Item>,
    when: When,
    agents: BTreeSet<String>,
    hosts: BTreeSet<String>,
    run_as: BTreeSet<String>,
    secrets: BTreeSet<String>,
    examples: Vec<Example>,
    id: Option<String>,
    why: String,
}

impl Parts {
    fn add(&mut self, surface: Surface, key: &'static str, span: Span, values: &[Value], sink: &mut Sink) {
        let egress = surface == Surface::Egress;
        if egress && matches!(key, "with" | "only" | "unless" | "run as") || !egress && key == "secret" {
            sink.push(
                Finding::new(Code::ATTRIBUTE, span, format!("`{key}` is no attribute of {} rules", surface.name()))
                    .help(if egress {
                        "egress rules are limited by method, host, port and path"
                    } else {
                        "secrets are brokered by the proxy: `secret` belongs to `surface: egress`"
                    }),
            );
            return;
        }
        if key == "run as" && surface != Surface::Sudo {
            sink.push(
                Finding::new(Code::ATTRIBUTE, span, "`run as` belongs to sudo rules")
                    .help("commands of this surface run as the agent's own user"),
            );
            return;
        }
        match key {
            "with" => {
                let items = items(values, false, sink);
                self.with.push(items);
            }
            "only" => {
                let items = items(values, true, sink);
                if self.only.replace(items).is_some() {
                    sink.push(
                        Finding::new(Code::ATTRIBUTE, span, "a second `only`")
                            .help("write all allowed options in one `only`"),
                    );
                }
            }
            "unless" => self.unless.extend(items(values, false, sink)),
            "when" => {
                for value in values {
                    when_term(&mut self.when, egress, value, sink);
                }
            }
            "agents" => names(&mut self.agents, key, values, sink),
            "hosts" => names(&mut self.hosts, key, values, sink),
            "run as" => names(&mut self.run_as, key, values, sink),
            "secret" => secrets(&mut self.secrets, values, sink),
            "match" | "no match" => self.examples.extend(values.iter().map(|value| Example {
                text: value.text.clone(),
                matches: key == "match",
                span: value.span,
            })),
            "id" => self.id(span, values, sink),
            _ => {
                let texts: Vec<&str> = values.iter().map(|v| v.text.as_str()).collect();
                if !self.why.is_empty() {
                    self.why.push(' ');
                }
                self.why.push_str(&texts.join(", "));
            }
        }
    }

    fn id(&mut self, span: Span, values: &[Value], sink: &mut Sink) {
        let good = |id: &str| {
            !id.is_empty() && id.len() <= 64 && id.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b))
        };
        match values {
            [value] if good(&value.text) && self.id.is_none() => self.id = Some(value.text.clone()),
            _ => sink.push(
                Finding::new(Code::ATTRIBUTE, span, "an id must be one name")
                    .help("use letters, digits, `-`, `_` and `.`, at most 64 of them, and one `id` a rule"),
            ),
        }
    }
}

fn items(values: &[Value], only: bool, sink: &mut Sink) -> Vec<Item> {
    let mut out = Vec::new();
    for value in values {
        let words = match split_or_problem(&value.text) {
            Ok(words) => words,
            Err(p) => {
                report(Code::COMMAND_PATTERN, value, vec![p], sink);
                continue;
            }
        };
        if words.len() != 1 {
            sink.push(
                Finding::new(Code::COMMAND_PATTERN, value.span, format!("`{}` is not one word", value.text))
                    .help("an item is one option or argument; separate several: `-r`, `--recursive`"),
            );
            continue;
        }
        for word in &words {
            match parse_items(word, only) {
                Ok(items) => out.extend(items),
                Err(problems) => report(Code::COMMAND_PATTERN, value, problems, sink),
            }
        }
    }
    out
}

fn names(set: &mut BTreeSet<String>, key: &str, values: &[Value], sink: &mut Sink) {
    for value in values {
        let good = !value.text.is_empty()
            && value.text.len() <= 128
            && value.text.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.@".contains(&b));
        if good {
            set.insert(value.text.clone());
        } else {
            sink.push(
                Finding::new(Code::ATTRIBUTE, value.span, format!("`{}` is no name for `{key}`", value.text))
                    .help("names hold letters, digits, `-`, `_`, `.` and `@`; there are no wildcards"),
            );
        }
    }
}

/// Whether a text is a secret reference of DESIGN 3.5.
pub(super) fn is_secret_reference(text: &str) -> bool {
    let safe = |s: &str| {
        !s.is_empty()
            && s.split('/').all(|seg| {
                !seg.is_empty()
                    && seg != "."
                    && seg != ".."
                    && seg.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b))
            })
    };
    if let Some(rest) = text.strip_prefix("vault://") {
        return rest
            .split_once('#')
            .is_some_and(|(path, field)| path.contains('/') && safe(path) && safe(field) && !field.contains('/'));
    }
    text.strip_prefix("bitwarden://").is_some_and(safe)
}

fn secrets(set: &mut BTreeSet<String>, values: &[Value], sink: &mut Sink) {
    for value in values {
        if is_secret_reference(&value.text) {
            set.insert(value.text.clone());
        } else {
            sink.push(
                Finding::new(Code::ATTRIBUTE, value.span, format!("`{}` is no reference to a secret", value.text))
                    .help("write `vault://mount/path#field` or `bitwarden://item`, without wildcards"),
            );
        }
    }
}

fn when_term(when: &mut When, egress: bool, value: &Value, sink: &mut Sink) {
    let mut say = |message: String, help: String| {
        sink.push(Finding::new(Code::ATTRIBUTE, value.span, message).help(help));
    };
    let Some((fact, setting)) = value.text.split_once('=') else {
        return say(
            format!("`{}` is no condition on a fact", value.text),
            "write `fact=value`, as in `writes=workspace,tmp` or `dynamic=any`".into(),
        );
    };
    if !When::FACTS.contains(&fact) || egress && fact != "external" {
        let known: &[&str] = if egress { &["external"] } else { &When::FACTS };
        return say(
            format!("`{fact}` is no fact of this surface"),
            format!("{}facts are {}", nearest(fact, known), listed(known)),
        );
    }
    let taken = match fact {
        "dynamic" | "external" | "trusted" => {
            let term = match setting {
                "yes" if fact != "trusted" => BoolTerm::Yes,
                "no" => BoolTerm::No,
                "any" if fact == "dynamic" => BoolTerm::Any,
                _ => {
                    let allowed = match fact {
                        "dynamic" => "`yes`, `no` or `any`",
                        "external" => "`yes` or `no`",
                        _ => "`no` (a permitting rule always demands a trusted path)",
                    };
                    return say(format!("`{setting}` is no value of `{fact}`"), format!("write {allowed}"));
                }
            };
            let slot = match fact {
                "dynamic" => &mut when.dynamic,
                "external" => &mut when.external,
                _ => &mut when.trusted,
            };
            slot.replace(term).is_some()
        }
        _ => {
            let term = match setting {
                "any" => SetTerm::Any,
                "none" => SetTerm::Empty,
                list => {
                    let good =
                        |v: &str| !v.is_empty() && v.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b));
                    if !list.split(',').all(good) {
                        return say(
                            format!("`{setting}` is no list of names"),
                            "separate names by commas, without blanks".into(),
                        );
                    }
                    SetTerm::In(list.split(',').map(str::to_owned).collect())
                }
            };
            let slot = match fact {
                "writes" => &mut when.writes,
                "names" => &mut when.names,
                "env" => &mut when.env,
                _ => &mut when.wrappers,
            };
            slot.replace(term).is_some()
        }
    };
    if taken {
        say(
            format!("a second term for `{fact}`"),
            "write each fact once; several values are separated by commas".into(),
        );
    }
}
