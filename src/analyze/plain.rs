//! Plain Cedar, old against new: every request environment of the new schema, by the symbolic
//! engine (DESIGN 6).
//!
//! What both versions say in the same words, or in words that mean the same by their shape,
//! needs no solver. A request is newly permitted when the new version allows it and the old one
//! does not, or could not be asked it.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use cedar_policy::{Policy, PolicySet, RequestEnv, Schema, ValidationMode, Validator};

use super::smt::{Answer, Cause, Counterexample, Engine, Item, Outcome, SmtError, Version, newly_allowed};
use crate::compile::{Effect, Plain, PlainPolicy, joined, new_members, now_optional, schema_changes};
use crate::diag::{CedarRequest, Code, Evidence, Finding, Level};
use crate::source::Span;

/// Most entities that a finding's text describes; its JSON has them all.
const MAX_TOLD: usize = 6;

/// Compares two versions of plain Cedar.
///
/// # Errors
///
/// [`SmtError::Defect`]. A solver that is missing or fails is a finding.
pub fn diff_plain(old: &Plain, new: &Plain, engine: &mut Engine) -> Result<Vec<Finding>, SmtError> {
    let mut findings = invalid(old, new)?;
    if !findings.is_empty() {
        return Ok(findings);
    }
    findings.extend(schema_findings(old, new));
    findings.extend(unlinked(old, new));
    for widens in [true, false] {
        let told = Told { old, new, widens };
        match told.asked(engine) {
            Ok(outcomes) => findings.extend(told.findings(outcomes)),
            Err(SmtError::Defect { what }) => return Err(SmtError::Defect { what }),
            Err(error) => {
                findings.push(unanswered(new, &error));
                break;
            }
        }
    }
    Ok(findings)
}

/// What one version's policies are asked under: its own schema with what only the other
/// declares beside it. What a policy of the other version read and is gone can be anything.
fn population(own: &Plain, other: &Plain) -> Schema {
    if own.shape == other.shape {
        return own.schema.clone();
    }
    Schema::from_json_value(joined(&own.shape, &other.shape)).unwrap_or_else(|_| own.schema.clone())
}

/// The policies of a version.
fn items(plain: &Plain) -> Vec<Item<'static>> {
    plain.policies.iter().map(|p| Item::parsed(p.policy.clone(), p.meaning)).collect()
}

/// Stands for the schema that did not know a member of an enumerated type: a request about it
/// could not be made, as if it were forbidden. `None` where an environment has no such place.
fn inexpressible(plain: &Plain, schema: &Schema, (kind, id): &(String, String)) -> Vec<Item<'static>> {
    let member = format!("{kind}::{id:?}");
    let mut places: BTreeSet<String> = BTreeSet::new();
    let mut of = |owner: &str, record: Option<&serde_json::Value>| {
        let attributes = record.and_then(|r| r.get("attributes")).and_then(serde_json::Value::as_object);
        for (name, declared) in attributes.into_iter().flatten() {
            let text = declared.to_string();
            if text.contains(&format!("\"{kind}\"")) && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
                let optional = declared.get("required").is_some_and(|r| r == false);
                let guard = if optional { format!("{owner} has {name} && ") } else { String::new() };
                let set = text.contains("\"Set\"");
                places.insert(if set {
                    format!("{guard}{owner}.{name}.contains({member})")
                } else {
                    format!("{guard}{owner}.{name} == {member}")
                });
            }
        }
    };
    for body in plain.shape.as_object().into_iter().flatten().map(|(_, body)| body) {
        for kind in body.get("entityTypes").and_then(serde_json::Value::as_object).into_iter().flatten().map(|(_, k)| k)
        {
            of("principal", kind.get("shape"));
            of("resource", kind.get("shape"));
        }
        for action in body.get("actions").and_then(serde_json::Value::as_object).into_iter().flatten().map(|(_, a)| a) {
            of("context", action.get("appliesTo").and_then(|a| a.get("context")));
        }
    }
    places.extend([format!("principal == {member}"), format!("resource == {member}")]);
    let number = u64::MAX / 2;
    let forbid = |(at, place): (usize, String)| {
        let policy = Policy::parse(None, format!("forbid(principal, action, resource) when {{ {place} }};")).ok()?;
        let fits =
            schema.request_envs().any(|e| cedar_policy_symcc::CompiledPolicy::compile(&policy, &e, schema).is_ok());
        fits.then(|| Item::parsed(policy, number + at as u64))
    };
    places.into_iter().enumerate().filter_map(forbid).collect()
}

/// Policies of the new version that are not valid under its schema. What stands in both
/// versions under the same schema was judged when it was new.
fn invalid(old: &Plain, new: &Plain) -> Result<Vec<Finding>, SmtError> {
    let known: HashSet<u64> =
        if old.shape == new.shape { old.policies.iter().map(|p| p.meaning).collect() } else { HashSet::new() };
    let mut set = PolicySet::new();
    let mut places: BTreeMap<String, &PlainPolicy> = BTreeMap::new();
    for (at, policy) in new.policies.iter().enumerate().filter(|(_, p)| !known.contains(&p.meaning)) {
        let id = cedar_policy::PolicyId::new(at.to_string());
        places.insert(at.to_string(), policy);
        set.add(policy.policy.new_id(id)).map_err(|e| SmtError::Defect { what: e.to_string() })?;
    }
    let result = Validator::new(new.schema.clone()).validate(&set, ValidationMode::Strict);
    let finding = |error: &cedar_policy::ValidationError| {
        let policy = places.get(&error.policy_id().to_string());
        let (name, span) = policy.map_or(("?", Span::new(new.file, 0, 0)), |p| (p.name.as_str(), p.span));
        let text = error.to_string();
        // Cedar names the policy by the number that it has here.
        let text = text.split_once("`, ").map_or(text.as_str(), |(_, rest)| rest);
        Finding::new(Code::CEDAR, span, format!("the policy `{name}` is not valid under the schema: {text}"))
            .help("put the policy or the schema right; `--new-schema` gives the schema of the new version")
    };
    Ok(result.validation_errors().map(finding).collect())
}

fn schema_findings(old: &Plain, new: &Plain) -> Vec<Finding> {
    let changes = schema_changes(&old.shape, &new.shape);
    let finding = |change: crate::compile::SchemaChange| {
        let mut finding = Finding::new(
            Code::SCHEMA_CHANGE,
            Span::new(new.schema_file, 0, 0),
            format!("`{}` {} in the schema", change.about, change.what),
        );
        if change.lost {
            finding.level = Level::Warning;
            finding = finding.help("policies of the old version that read it cannot be evaluated on new requests");
        }
        finding
    };
    changes.into_iter().map(finding).collect()
}

/// Templates without a link permit nothing by themselves, and anything once they are linked.
fn unlinked(old: &Plain, new: &Plain) -> Vec<Finding> {
    let open = |own: &Plain, other: &Plain, effect: Effect| -> Vec<(String, Span)> {
        let known: BTreeSet<&str> = other.templates.iter().map(|t| t.meaning.as_str()).collect();
        let changed = own.templates.iter().filter(|t| t.effect == effect && !known.contains(t.meaning.as_str()));
        changed.map(|t| (t.name.clone(), t.span)).collect()
    };
    let finding = |(name, span): (String, Span), what: &str| {
        Finding::new(Code::INCONCLUSIVE, span, format!("the template `{name}` {what}, and no link of it is known here"))
            .help("what a template permits depends on its links: give them with `--old-links` and `--new-links`")
    };
    let permits = open(new, old, Effect::Permit).into_iter().map(|t| finding(t, "is new or has changed"));
    let forbids = open(old, new, Effect::Forbid).into_iter().map(|t| finding(t, "is gone or has changed"));
    permits.chain(forbids).collect()
}

fn unanswered(new: &Plain, error: &SmtError) -> Finding {
    Finding::new(
        Code::INCONCLUSIVE,
        Span::new(new.file, 0, 0),
        format!("the policies differ, and there is no solver to compare them with: {error}"),
    )
    .help("`polctl solver status` says what is looked for; this is never a pass")
}

/// One direction of the comparison, in words.
struct Told<'a> {
    old: &'a Plain,
    new: &'a Plain,
    widens: bool,
}

impl Told<'_> {
    /// Asks in this direction.
    fn asked(&self, engine: &mut Engine) -> Result<Vec<Outcome>, SmtError> {
        let (to, from) = self.sides();
        let schema = population(to, from);
        let mut before = items(from);
        for member in new_members(&from.shape, &to.shape) {
            before.extend(inexpressible(to, &schema, &member));
        }
        let mut before = Version::new(before, &from.schema)?;
        if from.shape != to.shape {
            before.foreign = Some(now_optional(&from.shape, &to.shape));
        }
        let after = Version::new(items(to), &to.schema)?;
        newly_allowed(engine, &schema, &before, &after, &|_, _| true, &mut |_| Ok(None), None)
    }

    /// One finding for each policy that is to blame, whatever the number of environments.
    fn findings(&self, outcomes: Vec<Outcome>) -> Vec<Finding> {
        let mut by_cause: BTreeMap<Cause, Vec<Outcome>> = BTreeMap::new();
        for outcome in outcomes {
            by_cause.entry(outcome.cause).or_default().push(outcome);
        }
        by_cause.into_iter().flat_map(|(cause, outcomes)| self.about(cause, &outcomes)).collect()
    }

    fn about(&self, cause: Cause, outcomes: &[Outcome]) -> Vec<Finding> {
        let mut out = Vec::new();
        let found: Vec<(&RequestEnv, &Counterexample)> = outcomes
            .iter()
            .filter_map(|o| match &o.answer {
                Answer::Found(counterexample) => Some((&o.environment, counterexample.as_ref())),
                _ => None,
            })
            .collect();
        if let Some((_, first)) = found.first() {
            let environments = found.iter().map(|(e, _)| format!("{} {} {}", e.principal(), e.action(), e.resource()));
            out.push(self.changed(cause, first, environments.collect()));
        }
        let open: BTreeSet<&str> = outcomes
            .iter()
            .filter_map(|o| match &o.answer {
                Answer::Open(reason) | Answer::Unreal(reason) => Some(reason.as_str()),
                _ => None,
            })
            .collect();
        if let Some(reason) = open.first() {
            let (policy, what) = self.policy(cause);
            let Some(policy) = policy else { return out };
            let mut finding = Finding::new(
                Code::INCONCLUSIVE,
                policy.span,
                format!("it could not be decided whether a request {what} because of `{}`: {reason}", policy.name),
            )
            .help("simplify the policy, or compare in smaller steps; this is never a pass");
            if !self.widens {
                finding.level = Level::Note;
            }
            out.push(finding);
        }
        out
    }

    /// The policy that a question was about, and what the question was.
    fn policy(&self, cause: Cause) -> (Option<&PlainPolicy>, &'static str) {
        let what = if self.widens { "is newly permitted" } else { "is no longer permitted" };
        let (to, from) = self.sides();
        let policy = match cause {
            Cause::Permit(at) => to.policies.get(at),
            Cause::Gone(at) => from.policies.get(at),
        };
        (policy, what)
    }

    /// The version that permits more, and the other.
    const fn sides(&self) -> (&Plain, &Plain) {
        if self.widens { (self.new, self.old) } else { (self.old, self.new) }
    }

    fn changed(&self, cause: Cause, example: &Counterexample, environments: Vec<String>) -> Finding {
        let (to, from) = self.sides();
        let named = |plain: &'_ Plain, at: &[usize]| at.iter().find_map(|at| plain.policies.get(*at).cloned());
        let permit = match cause {
            Cause::Permit(at) => to.policies.get(at).cloned(),
            Cause::Gone(_) => named(to, &example.permits),
        };
        let gone = match cause {
            Cause::Gone(at) => from.policies.get(at).cloned(),
            Cause::Permit(_) => named(from, &example.stopped_by),
        };
        let evidence = evidence(example, environments);
        let mut message =
            format!("{} is {}", evidence.witness, if self.widens { "permitted now" } else { "no longer permitted" });
        let more = evidence.request.as_ref().map_or(0, |r| r.environments.len().saturating_sub(1));
        if more > 0 {
            message.push_str(&format!(
                "; so it is in {more} more request environment{}",
                if more == 1 { "" } else { "s" }
            ));
        }
        let (code, verb) =
            if self.widens { (Code::WIDENING, "permits it now") } else { (Code::NARROWING, "permitted it") };
        let start = Span::new(to.file, 0, 0);
        let (place, label) = match &permit {
            Some(permit) => (permit.span, format!("`{}` {verb}", permit.name)),
            None => (start, String::new()),
        };
        let mut finding = Finding::new(code, place, message).label(label);
        if let Some(gone) = gone {
            let verb = if self.widens { "stopped it" } else { "stops it now" };
            finding = finding.related(gone.span, format!("`{}` {verb}", gone.name));
        }
        if self.widens {
            finding = finding.help("narrow the policy, or bring back the one that is gone; `--counterexamples DIR` writes the request for `cedar authorize`");
        }
        finding.evidence(evidence)
    }
}

fn evidence(example: &Counterexample, environments: Vec<String>) -> Evidence {
    let request = &example.request;
    let uid = |uid: Option<&cedar_policy::EntityUid>| uid.map(ToString::to_string).unwrap_or_default();
    let (principal, action, resource) = (uid(request.principal()), uid(request.action()), uid(request.resource()));
    let context = request.context().and_then(|c| c.to_json_value().ok()).unwrap_or_default();
    let entities = example.entities.to_json_value().unwrap_or_default();
    let mut witness = format!("`{principal}` doing `{action}` on `{resource}`");
    if context.as_object().is_some_and(|c| !c.is_empty()) {
        witness.push_str(&format!(" with context `{context}`"));
    }
    Evidence {
        surface: "cedar".into(),
        rungs: Vec::new(),
        witness,
        assumes: told(&entities),
        replay: None,
        old_tier: None,
        new_tier: None,
        request: Some(CedarRequest {
            request: serde_json::json!({
                "principal": principal, "action": action, "resource": resource, "context": context,
            }),
            entities,
            environments,
        }),
    }
}

/// The entities that a request is decided with, as far as they say something.
fn told(entities: &serde_json::Value) -> Vec<String> {
    let name = |uid: &serde_json::Value| {
        let text = |key: &str| uid.get(key).and_then(serde_json::Value::as_str).unwrap_or_default().to_owned();
        format!("{}::{:?}", text("type"), text("id"))
    };
    let mut out = Vec::new();
    for entity in entities.as_array().into_iter().flatten() {
        let Some(uid) = entity.get("uid") else { continue };
        let filled = |key: &str| entity.get(key).filter(|v| v.as_object().is_some_and(|o| !o.is_empty()));
        let mut text = String::new();
        filled("attrs").into_iter().for_each(|attrs| text.push_str(&format!(" has {attrs}")));
        filled("tags").into_iter().for_each(|tags| text.push_str(&format!(" tagged {tags}")));
        let parents: Vec<String> =
            entity.get("parents").and_then(serde_json::Value::as_array).into_iter().flatten().map(name).collect();
        if !parents.is_empty() {
            text.push_str(&format!(" in {}", parents.join(", ")));
        }
        let is_action = uid.get("type").and_then(serde_json::Value::as_str).is_some_and(|t| t.ends_with("Action"));
        if !text.is_empty() && !is_action {
            out.push(format!("{}{text}", name(uid)));
        }
    }
    out.sort();
    if out.len() > MAX_TOLD {
        let more = out.len() - MAX_TOLD;
        out.truncate(MAX_TOLD);
        out.push(format!("{more} more entities"));
    }
    out
}
