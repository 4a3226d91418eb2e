//! What Cedar says of a capability request: the policies of its class and subject, with the entities
//! of the agent, its session, its workspace and its persona.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use cedar_policy::{
    Authorizer, Context, Entities, Entity, EntityUid, PolicyId, PolicySet as CedarSet, Request as CedarRequest,
    Response, RestrictedExpression as Value,
};

use super::{Answer, allowed, answered};
use crate::compile::{
    CAPABILITIES, CapabilityPolicy, CompileError, Compiled, Text, action_name, capability_text, cedar_time,
    request_path, request_text,
};
use crate::model::{CAPABILITY_RUNGS, CapabilityRequest, Class, Subject, Target};
use crate::source::SourceMap;

/// The policies about capabilities of a set, asked through Cedar.
pub struct CapabilityDecider<'a> {
    /// By subject; those that are about all of them under `None`.
    policies: HashMap<Option<&'a Subject>, Vec<&'a CapabilityPolicy>>,
    guardrails: &'a [crate::compile::Guardrail],
    map: &'a SourceMap,
    slices: HashMap<(Class, Subject), Rc<CedarSet>>,
    /// What is about all subjects, parsed once.
    shared: HashMap<&'a str, cedar_policy::Policy>,
}

fn failed(error: &dyn std::fmt::Display) -> CompileError {
    CompileError::Request { message: error.to_string() }
}

impl<'a> CapabilityDecider<'a> {
    /// A decider for a compiled set.
    pub fn new(compiled: &'a Compiled, map: &'a SourceMap) -> Self {
        Self::of(compiled.capabilities.iter().collect(), &compiled.guardrails, map)
    }

    /// A decider for some policies and hand-written guardrails.
    pub fn of(
        policies: Vec<&'a CapabilityPolicy>,
        guardrails: &'a [crate::compile::Guardrail],
        map: &'a SourceMap,
    ) -> Self {
        let mut by_subject: HashMap<Option<&'a Subject>, Vec<&'a CapabilityPolicy>> = HashMap::new();
        for policy in policies {
            by_subject.entry(policy.subject.as_ref()).or_default().push(policy);
        }
        CapabilityDecider { policies: by_subject, guardrails, map, slices: HashMap::new(), shared: HashMap::new() }
    }

    fn slice(&mut self, class: Class, subject: &Subject) -> Result<Rc<CedarSet>, CompileError> {
        let key = (class, subject.clone());
        if let Some(slice) = self.slices.get(&key) {
            return Ok(Rc::clone(slice));
        }
        let mut set = CedarSet::new();
        let mut add = |policy: cedar_policy::Policy| {
            let what = policy.id().to_string();
            set.add(policy).map_err(|e| CompileError::Parse { what, source: Box::new(e) })
        };
        let of_class = |policy: &&&CapabilityPolicy| policy.class == class;
        for policy in self.policies.get(&None).into_iter().flatten().filter(of_class) {
            let known = self.shared.get(policy.id.as_str()).cloned();
            let policy = match known {
                Some(policy) => policy,
                None => self.shared.entry(policy.id.as_str()).or_insert(parsed(policy, self.map)?).clone(),
            };
            add(policy)?;
        }
        for policy in self.policies.get(&Some(subject)).into_iter().flatten().filter(of_class) {
            add(parsed(policy, self.map)?)?;
        }
        for guardrail in self.guardrails {
            add(guardrail.parse()?)?;
        }
        let set = Rc::new(set);
        self.slices.insert(key, Rc::clone(&set));
        Ok(set)
    }

    /// Whether Cedar allows the request at a rung.
    ///
    /// # Errors
    ///
    /// [`CompileError`]: a defect, never an answer.
    pub fn allows(&mut self, request: &CapabilityRequest, rung: u8) -> Result<bool, CompileError> {
        allowed(&self.response(request, rung)?.0)
    }

    /// What Cedar answers at a rung, with the policies that decide.
    ///
    /// # Errors
    ///
    /// As [`CapabilityDecider::allows`].
    pub fn answer(&mut self, request: &CapabilityRequest, rung: u8) -> Result<Answer, CompileError> {
        let (response, slice) = self.response(request, rung)?;
        answered(&response, &slice)
    }

    fn response(&mut self, request: &CapabilityRequest, rung: u8) -> Result<(Response, Rc<CedarSet>), CompileError> {
        let slice = self.slice(request.target.class(), &request.subject)?;
        let response = Authorizer::new().is_authorized(&asked(request, rung)?, &slice, &entities(request)?);
        Ok((response, slice))
    }

    /// The lowest rung at which Cedar allows the request; `None`: at none.
    ///
    /// # Errors
    ///
    /// As [`CapabilityDecider::allows`].
    pub fn rung(&mut self, request: &CapabilityRequest) -> Result<Option<u8>, CompileError> {
        for rung in 0..CAPABILITY_RUNGS {
            if self.allows(request, rung)? {
                return Ok(Some(rung));
            }
        }
        Ok(None)
    }
}

fn parsed(policy: &CapabilityPolicy, map: &SourceMap) -> Result<cedar_policy::Policy, CompileError> {
    cedar_policy::Policy::parse(Some(PolicyId::new(&policy.id)), capability_text(policy, map))
        .map_err(|e| CompileError::Parse { what: policy.id.clone(), source: Box::new(e) })
}

fn uid(kind: &str, id: &str) -> Result<EntityUid, CompileError> {
    let name = format!("{CAPABILITIES}::{kind}").parse().map_err(|e| failed(&e))?;
    Ok(EntityUid::from_type_name_and_id(name, cedar_policy::EntityId::new(id)))
}

fn entities(request: &CapabilityRequest) -> Result<Entities, CompileError> {
    let (session, workspace) = (uid("Session", &request.session)?, uid("Workspace", &request.workspace)?);
    let persona = uid("Persona", &request.persona)?;
    let agent = Entity::new_no_attrs(uid("Agent", &request.agent)?, HashSet::from([session.clone(), persona.clone()]));
    let members = [
        agent,
        Entity::new_no_attrs(session, HashSet::from([workspace.clone()])),
        Entity::new_no_attrs(workspace, HashSet::new()),
        Entity::new_no_attrs(persona, HashSet::new()),
    ];
    Entities::from_entities(members, None).map_err(|e| failed(&e))
}

fn asked(request: &CapabilityRequest, rung: u8) -> Result<CedarRequest, CompileError> {
    let target = &request.target;
    let long = |n: u8| Value::new_long(i64::from(n));
    let mut pairs: Vec<(String, Value)> = vec![
        ("external".into(), Value::new_bool(request.external)),
        ("sensitive".into(), Value::new_bool(request.sensitive)),
        ("lifecycle".into(), long(request.lifecycle.number())),
        ("now".into(), Value::new_datetime(cedar_time(request.now))),
    ];
    for (name, field) in [
        ("kind", Text::Kind),
        ("device", Text::Device),
        ("name", Text::Name),
        ("broker_scope", Text::BrokerScope),
        ("capability", Text::Capability),
    ] {
        let belongs = match (field, target.class()) {
            (Text::Device, Class::Peripheral) | (Text::Name, Class::InstallPrivileged) => Some(""),
            _ => None,
        };
        if let Some(text) = request_text(target, field).or(belongs) {
            pairs.push((name.into(), Value::new_string(text.to_owned())));
        }
    }
    if let Some(path) = request_path(target) {
        pairs.push(("depth".into(), Value::new_long(i64::try_from(path.len()).unwrap_or(i64::MAX))));
        for (at, name) in path.iter().enumerate() {
            pairs.push((format!("seg{}", at + 1), Value::new_string(name.clone())));
        }
    }
    match target {
        Target::NetEgress { host, address, peer, port, tls_inspect } => {
            pairs.push(("host".into(), Value::new_string(host.clone())));
            pairs.push(("port".into(), Value::new_long(i64::from(*port))));
            pairs.push(("tls_inspect".into(), Value::new_bool(*tls_inspect)));
            for (name, value) in [("address", address), ("peer", peer)] {
                if let Some(value) = value {
                    pairs.push((name.into(), Value::new_ip(crate::compile::cedar_address(*value))));
                }
            }
        }
        Target::FsScope { write, .. } => pairs.push(("write".into(), Value::new_bool(*write))),
        Target::Persistence { survives_session, .. } => {
            pairs.push(("survives_session".into(), Value::new_bool(*survives_session)));
        }
        Target::Credentials { raw, .. } => pairs.push(("raw".into(), Value::new_bool(*raw))),
        Target::Grant { level, .. } => pairs.push(("level".into(), long(level.number()))),
        _ => {}
    }
    let context = Context::from_pairs(pairs).map_err(|e| failed(&e))?;
    let resource = uid(request.subject.kind.entity(), &request.subject.name)?;
    let action = uid("Action", &action_name(target.class(), rung))?;
    CedarRequest::new(uid("Agent", &request.agent)?, action, resource, context, None).map_err(|e| failed(&e))
}
