//! Policies about capabilities as Cedar text, and the templates that a control plane links.

use std::fmt::Write as _;

use super::{CAPABILITIES, CapabilityAtom, CapabilityOrigin, CapabilityPolicy, Condition, Fact, Text, action_name};
use crate::compile::Effect;
use crate::compile::cedar::{in_networks, pattern as cedar_glob, string as cedar_string};
use crate::model::{Glob, HostPattern, Subtree};
use crate::source::SourceMap;

/// A time in seconds since 1970, as Cedar's `datetime` reads it.
pub(crate) fn cedar_time(seconds: i64) -> String {
    jiff::Timestamp::from_second(seconds).unwrap_or(jiff::Timestamp::UNIX_EPOCH).to_string()
}

/// What a policy says, without its place.
pub fn meaning(policy: &CapabilityPolicy) -> String {
    body(policy, false)
}

/// A policy's Cedar text, with annotations that lead back to its line.
pub fn capability_text(policy: &CapabilityPolicy, map: &SourceMap) -> String {
    written(policy, map, false)
}

/// The template of a permit, for what a control plane links for one session: the principal is a
/// slot, and the grant ends with `context.expires`. `None` for what permits nothing.
pub fn template_text(policy: &CapabilityPolicy, map: &SourceMap) -> Option<String> {
    (policy.effect == Effect::Permit).then(|| written(policy, map, true))
}

fn written(policy: &CapabilityPolicy, map: &SourceMap, template: bool) -> String {
    let mut out = String::new();
    let id = if template { format!("{}/template", policy.id) } else { policy.id.clone() };
    let _ = writeln!(out, "@id({})", cedar_string(&id));
    let source = match &policy.origin {
        CapabilityOrigin::Entry { span } => map.line_ref(*span),
        CapabilityOrigin::Guardrail(_) => "built-in".to_owned(),
    };
    let _ = writeln!(out, "@source({})", cedar_string(&source));
    if let CapabilityOrigin::Guardrail(what) = policy.origin {
        let _ = writeln!(out, "@why({})", cedar_string(what));
    }
    out.push_str(&body(policy, template));
    out
}

fn body(policy: &CapabilityPolicy, template: bool) -> String {
    let mut out = String::new();
    let effect = if policy.effect == Effect::Permit { "permit" } else { "forbid" };
    let actions: Vec<String> = policy
        .rungs
        .clone()
        .map(|rung| format!("{CAPABILITIES}::Action::{}", cedar_string(&action_name(policy.class, rung))))
        .collect();
    let action = match actions.as_slice() {
        [only] => format!("action == {only}"),
        several => format!("action in [{}]", several.join(", ")),
    };
    let resource = match &policy.subject {
        Some(subject) => {
            format!("resource == {CAPABILITIES}::{}::{}", subject.kind.entity(), cedar_string(&subject.name))
        }
        None => "resource".to_owned(),
    };
    let principal = if template { "principal in ?principal" } else { "principal" };
    let _ = writeln!(out, "{effect} ({principal}, {action}, {resource})");
    let condition = text(&policy.condition, Level::Or);
    let expires = if template { "context has expires && context.now < context.expires" } else { "" };
    match (condition.as_str(), expires) {
        ("true", "") => out.push_str(";\n"),
        ("true", expires) => {
            let _ = writeln!(out, "when {{ {expires} }};");
        }
        (condition, "") => {
            let _ = writeln!(out, "when {{ {condition} }};");
        }
        (condition, expires) => {
            let _ = writeln!(out, "when {{ {expires} }}\nwhen {{ {condition} }};");
        }
    }
    out
}

/// How strongly the surroundings of a text bind.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Level {
    Or,
    And,
    Unary,
}

fn joined(parts: &[String], with: &str, own: Level, around: Level) -> String {
    let text = parts.join(with);
    if parts.len() > 1 && around > own { format!("({text})") } else { text }
}

fn text(condition: &Condition, around: Level) -> String {
    match condition {
        Condition::All(parts) if parts.is_empty() => "true".to_owned(),
        Condition::One(parts) if parts.is_empty() => "false".to_owned(),
        Condition::All(parts) => {
            joined(&parts.iter().map(|p| text(p, Level::And)).collect::<Vec<_>>(), " && ", Level::And, around)
        }
        Condition::One(parts) => {
            joined(&parts.iter().map(|p| text(p, Level::Or)).collect::<Vec<_>>(), " || ", Level::Or, around)
        }
        Condition::Not(inner) => format!("!({})", text(inner, Level::Or)),
        Condition::Atom(atom) => {
            let (parts, with, own) = atom_text(atom);
            joined(&parts, with, own, around)
        }
    }
}

type Parts = (Vec<String>, &'static str, Level);

fn atom_text(atom: &CapabilityAtom) -> Parts {
    let single = |text: String| (vec![text], "", Level::Unary);
    match atom {
        CapabilityAtom::Host(patterns) => (patterns.iter().flat_map(host).collect(), " || ", Level::Or),
        CapabilityAtom::Address(nets) => (in_networks("address", nets).into(), " && ", Level::And),
        CapabilityAtom::Reaches(nets) => {
            let all = ["address", "peer"].map(|name| in_networks(name, nets).join(" && "));
            (all.into(), " || ", Level::Or)
        }
        CapabilityAtom::Ports(ports) => match ports.as_slice() {
            [port] => single(format!("context.port == {port}")),
            ports => {
                let ports: Vec<String> = ports.iter().map(u16::to_string).collect();
                single(format!("[{}].contains(context.port)", ports.join(", ")))
            }
        },
        CapabilityAtom::Fact(fact) => single(format!("context.{}", fact_name(*fact))),
        CapabilityAtom::Text(field, values) => match values.as_slice() {
            [value] => single(format!("context.{} == {}", text_name(*field), cedar_string(value))),
            values => {
                let values: Vec<String> = values.iter().map(|value| cedar_string(value)).collect();
                single(format!("[{}].contains(context.{})", values.join(", "), text_name(*field)))
            }
        },
        CapabilityAtom::Under(place) => under(place),
        CapabilityAtom::Deeper(most) => single(format!("context.depth > {most}")),
        CapabilityAtom::Lifecycle(most) => single(format!("context.lifecycle <= {}", most.number())),
        CapabilityAtom::Level(most) => single(format!("context.level <= {}", most.number())),
        CapabilityAtom::Workspace(names) => single(member("Workspace", names)),
        CapabilityAtom::Persona(names) => single(member("Persona", names)),
        CapabilityAtom::Before(time) => single(format!("context.now < datetime(\"{}\")", cedar_time(*time))),
    }
}

fn member(kind: &str, names: &[String]) -> String {
    let names: Vec<String> =
        names.iter().map(|name| format!("{CAPABILITIES}::{kind}::{}", cedar_string(name))).collect();
    match names.as_slice() {
        [name] => format!("principal in {name}"),
        names => format!("principal in [{}]", names.join(", ")),
    }
}

const fn fact_name(fact: Fact) -> &'static str {
    match fact {
        Fact::External => "external",
        Fact::Sensitive => "sensitive",
        Fact::TlsInspect => "tls_inspect",
        Fact::SurvivesSession => "survives_session",
        Fact::Raw => "raw",
        Fact::Write => "write",
    }
}

const fn text_name(field: Text) -> &'static str {
    match field {
        Text::Kind => "kind",
        Text::Device => "device",
        Text::Name => "name",
        Text::BrokerScope => "broker_scope",
        Text::Capability => "capability",
    }
}

fn host(pattern: &HostPattern) -> Vec<String> {
    let is = |name: &str| format!("context.host == {}", cedar_string(name));
    let below = |name: &str| format!("context.host like {}", cedar_string(&format!("*.{name}")));
    match pattern {
        HostPattern::Exact(name) => vec![is(name)],
        HostPattern::SubDomains(name) => vec![below(name)],
        HostPattern::DomainTree(name) => vec![is(name), below(name)],
        HostPattern::Network(_) => Vec::new(),
    }
}

/// Each segment by itself, so that no wildcard reaches from one into the next.
fn under(place: &Subtree) -> Parts {
    let segment = |at: usize, glob: &Glob| {
        let name = format!("seg{at}");
        match glob.as_literal() {
            Some(text) => format!("context has {name} && context.{name} == {}", cedar_string(text)),
            None if glob.is_any() => format!("context has {name}"),
            None => format!("context has {name} && context.{name} like {}", cedar_glob(glob)),
        }
    };
    let from = |first: usize| -> Vec<String> {
        place.segments.iter().enumerate().map(|(index, glob)| segment(first + index, glob)).collect()
    };
    if !place.any_depth {
        return match place.segments.len() {
            0 => (vec!["true".to_owned()], "", Level::Unary),
            _ => (from(1), " && ", Level::And),
        };
    }
    let last = crate::model::MAX_SEGMENTS + 1 - place.segments.len().min(crate::model::MAX_SEGMENTS);
    // Conjunctions bind before the disjunction that they stand in.
    ((1..=last).map(|first| from(first).join(" && ")).collect(), " || ", Level::Or)
}
