//! Facts → Cedar request. The attribute names are those of the generated schema.

use std::collections::BTreeSet;
use std::str::FromStr;

use cedar_policy::{Context, EntityId, EntityTypeName, EntityUid, Request, RestrictedExpression as Value};

use crate::compile::{CompileError, cedar_address};
use crate::model::{CommandFacts, EgressFacts, Facts, MAX_WORDS, Surface};

fn defect(error: impl std::fmt::Display) -> CompileError {
    CompileError::Request { message: error.to_string() }
}

/// What Cedar is asked about facts, at whatever rung.
pub(super) struct Question {
    surface: Surface,
    agent: EntityUid,
    host: EntityUid,
    context: Context,
}

impl Question {
    /// The question about facts.
    pub(super) fn about(surface: Surface, facts: &Facts) -> Result<Self, CompileError> {
        let (agent, host, pairs) = match facts {
            Facts::Command(facts) => (&facts.agent, &facts.host, command(facts)),
            Facts::Egress(facts) => (&facts.agent, &facts.machine, egress(facts)),
        };
        let (agent, host) = (entity(surface, "Agent", agent)?, entity(surface, "Host", host)?);
        Ok(Question { surface, agent, host, context: Context::from_pairs(pairs).map_err(defect)? })
    }

    /// The Cedar request at a rung.
    pub(super) fn at(&self, rung: u8) -> Result<Request, CompileError> {
        let action = entity(self.surface, "Action", &format!("tier{rung}"))?;
        Request::new(self.agent.clone(), action, self.host.clone(), self.context.clone(), None).map_err(defect)
    }
}

/// Has Cedar make what a request needs and what stays the same.
pub(super) fn make_ready() {
    let _ = entity(Surface::Commands, "Agent", "");
    let _ = Context::from_pairs([(String::new(), Value::new_bool(true))]);
}

fn entity(surface: Surface, kind: &str, id: &str) -> Result<EntityUid, CompileError> {
    let name = EntityTypeName::from_str(&format!("{}::{kind}", surface.namespace())).map_err(defect)?;
    Ok(EntityUid::from_type_name_and_id(name, EntityId::new(id)))
}

fn text(value: &str) -> Value {
    Value::new_string(value.to_owned())
}

fn set(values: &BTreeSet<String>) -> Value {
    Value::new_set(values.iter().map(|v| text(v)))
}

fn count(n: usize) -> Value {
    Value::new_long(i64::try_from(n).unwrap_or(i64::MAX))
}

fn command(f: &CommandFacts) -> Vec<(String, Value)> {
    let mut out = vec![
        ("program", text(&f.program)),
        ("trusted", Value::new_bool(f.trusted)),
        ("harmless", Value::new_bool(f.harmless)),
        ("line", text(&f.line)),
        ("options", set(&f.options)),
        ("certain", set(&f.certain)),
        ("globals", set(&f.globals)),
        ("unknown", Value::new_set(f.unknown.iter().map(|n| count(*n)))),
        ("open", Value::new_bool(f.open)),
        ("many", Value::new_bool(f.many)),
        ("covered", Value::new_bool(f.covered)),
        ("writes", set(&f.writes)),
        ("names", set(&f.names)),
        ("env", set(&f.env)),
        ("wrappers", set(&f.wrappers)),
        ("dynamic", Value::new_bool(f.dynamic)),
        ("external", Value::new_bool(f.external)),
        ("argc", count(f.argc)),
    ];
    if let Some(user) = &f.run_as {
        out.push(("run_as", text(user)));
    }
    let mut out: Vec<(String, Value)> = out.into_iter().map(|(n, v)| (n.to_owned(), v)).collect();
    for (index, word) in f.args.iter().enumerate().take(MAX_WORDS) {
        if let Some(word) = word {
            out.push((format!("arg{}", index + 1), text(word)));
        }
    }
    out
}

fn egress(f: &EgressFacts) -> Vec<(String, Value)> {
    let mut out = vec![
        ("method".to_owned(), text(&f.method)),
        ("scheme".to_owned(), text(f.scheme.name())),
        ("host".to_owned(), text(&f.host)),
        ("port".to_owned(), Value::new_long(i64::from(f.port))),
        ("secrets".to_owned(), set(&f.secrets)),
        ("external".to_owned(), Value::new_bool(f.external)),
        ("segc".to_owned(), count(f.segments.len())),
    ];
    for (name, address) in [("address", f.address), ("peer", f.peer)] {
        if let Some(address) = address {
            out.push((name.to_owned(), Value::new_ip(cedar_address(address))));
        }
    }
    for (index, segment) in f.segments.iter().enumerate().take(MAX_WORDS) {
        out.push((format!("seg{}", index + 1), text(segment)));
    }
    out
}
