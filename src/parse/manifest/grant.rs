//! Grants on integrations, `email:send`, and the capabilities that integrations declare.

use super::values::{identifier, name_of, rate, seconds};
use crate::diag::{Code, Finding};
use crate::model::{Grant, Level, Manifest, Retry};
use crate::parse::yaml::{Key, Kind, Node};
use crate::parse::{Sink, listed, nearest};
use crate::source::Span;

const KEYS: [&str; 11] = [
    "level",
    "requires_approval",
    "unattended_in",
    "ttl",
    "staleness",
    "retry",
    "deferrable",
    "rate",
    "max_pending",
    "workspaces",
    "personas",
];

/// Whether a text is `resource:action`, or a finding.
pub(super) fn is_capability(text: &str, span: Span, sink: &mut Sink) -> bool {
    let plain = |part: &str| {
        !part.is_empty() && part.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"_-".contains(&b))
    };
    let good =
        text.len() <= 128 && text.split_once(':').is_some_and(|(resource, action)| plain(resource) && plain(action));
    if !good {
        sink.push(
            Finding::new(Code::INVALID_VALUE, span, format!("`{}` is no capability", text.escape_debug()))
                .help("write `resource:action`, as in `email:send`: lower-case letters, digits, `_` and `-`; there are no wildcards"),
        );
    }
    good
}

pub(super) fn grants(manifest: &mut Manifest, value: &Node, sink: &mut Sink) {
    for (key, value) in value.entries("`grants`", sink) {
        if !is_capability(&key.name, key.span, sink) {
            continue;
        }
        if let Some(grant) = grant(key, value, sink) {
            manifest.grants.insert(key.name.clone(), grant);
        }
    }
}

fn grant(key: &Key, value: &Node, sink: &mut Sink) -> Option<Grant> {
    let entries = value.entries(&format!("the grant `{}`", key.name), sink);
    if !matches!(value.kind, Kind::Map(_)) {
        return None;
    }
    let mut level = None;
    let mut grant = Grant {
        capability: key.name.clone(),
        level: Level::Read,
        requires_approval: false,
        unattended_in: Vec::new(),
        ttl: None,
        staleness: None,
        retry: Retry::AtMostOnce,
        deferrable: false,
        rate: None,
        max_pending: None,
        workspaces: Vec::new(),
        personas: Vec::new(),
        span: Span::new(key.span.file, key.span.start, value.extent().end.max(key.span.end)),
    };
    for (key, value) in entries {
        let name = key.name.as_str();
        match name {
            "level" => {
                let text = value.scalar("`level`", sink)?;
                level = Some(name_of(Level::from_name(text), Level::NAMES, "level", (text, value.span), sink)?);
            }
            "retry" => {
                let text = value.scalar("`retry`", sink)?;
                grant.retry = name_of(Retry::from_name(text), Retry::NAMES, "way to retry", (text, value.span), sink)?;
            }
            "requires_approval" => grant.requires_approval = value.boolean("`requires_approval`", sink)?,
            "deferrable" => grant.deferrable = value.boolean("`deferrable`", sink)?,
            "ttl" | "staleness" => {
                let text = value.scalar(&format!("`{name}`"), sink)?;
                let Some(time) = seconds(text) else {
                    sink.push(
                        Finding::new(Code::INVALID_VALUE, value.span, format!("`{text}` is no time"))
                            .help("write a whole number above 0 with its unit: `90s`, `15m`, `2h`, `7d`"),
                    );
                    return None;
                };
                if name == "ttl" { grant.ttl = Some(time) } else { grant.staleness = Some(time) }
            }
            "rate" => {
                let text = value.scalar("`rate`", sink)?;
                grant.rate = rate(text);
                if grant.rate.is_none() {
                    sink.push(
                        Finding::new(Code::INVALID_VALUE, value.span, format!("`{text}` is no rate"))
                            .help("write how often in which time: `10/h`, `3/15m`"),
                    );
                    return None;
                }
            }
            "max_pending" => {
                let text = value.scalar("`max_pending`", sink)?;
                grant.max_pending = text.parse().ok().filter(|_| text.bytes().all(|b| b.is_ascii_digit()));
                if grant.max_pending.is_none() {
                    sink.push(
                        Finding::new(Code::INVALID_VALUE, value.span, format!("`{text}` is no number"))
                            .help("write how many may wait: a whole number; 0 lets none wait"),
                    );
                    return None;
                }
            }
            "workspaces" => grant.workspaces = identifiers(value, name, "workspace", sink)?,
            "personas" => grant.personas = identifiers(value, name, "persona", sink)?,
            "unattended_in" => grant.unattended_in = identifiers(value, name, "workspace", sink)?,
            _ => sink.push(
                Finding::new(Code::UNKNOWN_KEY, key.span, format!("`{name}` is no key of a grant")).help(format!(
                    "{}keys are {}",
                    nearest(name, &KEYS),
                    listed(&KEYS)
                )),
            ),
        }
    }
    let Some(level) = level else {
        sink.push(
            Finding::new(Code::MISSING_KEY, grant.span, format!("the grant `{}` has no `level`", grant.capability))
                .help(format!("say what it may do at most: {}", listed(Level::NAMES))),
        );
        return None;
    };
    grant.level = level;
    if !grant.unattended_in.is_empty() {
        let outside = |w: &&String| !grant.workspaces.is_empty() && !grant.workspaces.contains(*w);
        if let Some(workspace) = grant.unattended_in.iter().find(outside) {
            sink.push(
                Finding::new(
                    Code::INVALID_VALUE,
                    grant.span,
                    format!("`unattended_in` names the workspace `{workspace}`, and the grant is not for it"),
                )
                .help("add it to `workspaces`, or take it out of `unattended_in`"),
            );
        }
    }
    Some(grant)
}

/// Names, sorted. A list without a name says nothing: whether all or none are meant is for its
/// author to say.
fn identifiers(value: &Node, key: &str, what: &str, sink: &mut Sink) -> Option<Vec<String>> {
    let found = value.scalars(&format!("`{key}`"), sink);
    if found.is_empty() {
        if matches!(value.kind, Kind::Seq(_)) {
            sink.push(
                Finding::new(Code::INVALID_VALUE, value.span, format!("`{key}` is empty"))
                    .help(format!("name each {what}, or leave the key out")),
            );
        }
        return None;
    }
    let mut out = Vec::new();
    for (text, span) in found {
        if !identifier(&text, span, what, sink) {
            return None;
        }
        out.push(text);
    }
    out.sort();
    out.dedup();
    Some(out)
}
