//! One question to the solver, asked with as few policies as it takes.
//!
//! A question begins with the policy that it is about. A counterexample is evaluated against
//! the full versions by Cedar; the policies that decide against it join the question, and it
//! is asked again. "There is none" at any stage is a proof, since each further policy only
//! takes requests away. The entities of a counterexample are those that the policies of the
//! question speak of, so other policies may fail to be evaluated on it: they join too.

use std::collections::{BTreeSet, HashSet};

use cedar_policy::{
    Authorizer, Decision, Entities, Entity, EntityTypeName, EntityUid, Policy, PolicyId, PolicySet, Request,
    RequestEnv, RestrictedExpression, Schema,
};
use cedar_policy_symcc::{CompiledPolicy, Env, SymEnv};

use super::item::{Groups, Index, Item};
use super::slim::{Slim, spoken_of};
use super::{Engine, Failure, Question, SmtError};
use crate::compile::Effect;

/// Most rounds of one question.
const MAX_ROUNDS: usize = 300;
/// Most permits that one question about a forbid that is gone takes together.
const BATCH: usize = 24;
/// Most policies that join a question at its start because they look like what it is about.
const SEEDS: usize = 6;
/// Why a policy is no part of a question.
const UNTOLD: &str = "it cannot be read under the schema of the other version";

/// A version, as far as questions need it.
pub(crate) struct Version<'a> {
    /// Its policies.
    pub(crate) index: Index<'a>,
    /// Which of its actions are members of which.
    pub(crate) groups: Groups,
    /// Its actions as entities.
    pub(crate) actions: Vec<Entity>,
    /// Whether requests of an environment could be made at all.
    pub(crate) environments: BTreeSet<String>,
    /// Where questions are asked under another schema than its own: the attributes that are
    /// optional there and are not here, by type or action.
    pub(crate) foreign: Option<Vec<(String, String)>>,
}

impl<'a> Version<'a> {
    /// A version under its schema.
    pub(crate) fn new(items: Vec<Item<'a>>, schema: &Schema) -> Result<Self, SmtError> {
        let entities = schema.action_entities().map_err(|e| SmtError::Defect { what: e.to_string() })?;
        Ok(Version {
            index: Index::new(items),
            groups: Groups::of(schema)?,
            actions: entities.iter().cloned().collect(),
            environments: schema.request_envs().map(|e| name(&e)).collect(),
            foreign: None,
        })
    }

    /// Cedar's decision on a request, made by the policies that can apply.
    fn decide(&self, request: &Request, entities: &Entities) -> Result<Decided, SmtError> {
        let defect = |what: String| SmtError::Defect { what };
        let known = entities.iter().filter(|e| e.uid().type_name().basename() != "Action").cloned();
        let entities = Entities::from_entities(known.chain(self.actions.iter().cloned()), None)
            .map_err(|e| defect(e.to_string()))?;
        let set = self.set(&self.index.candidates(request))?;
        let response = Authorizer::new().is_authorized(request, &set, &entities);
        let position = |id: &PolicyId| AsRef::<str>::as_ref(id).parse::<usize>().ok();
        Ok(Decided {
            allowed: response.decision() == Decision::Allow,
            reasons: response.diagnostics().reason().filter_map(position).collect(),
            errors: response
                .diagnostics()
                .errors()
                .filter_map(|cedar_policy::AuthorizationError::PolicyEvaluationError(error)| {
                    position(error.policy_id())
                })
                .collect(),
        })
    }

    /// Policies as a set, each named by its position.
    fn set(&self, positions: &[usize]) -> Result<PolicySet, SmtError> {
        let mut set = PolicySet::new();
        for at in positions {
            let Some(item) = self.index.items.get(*at) else { continue };
            add(&mut set, item.policy()?.new_id(PolicyId::new(at.to_string())))?;
        }
        Ok(set)
    }

    /// A policy as the solver is told of it; `None` where it cannot be said in the other
    /// version's schema. That a policy's actions apply was found before, by its own schema, so
    /// they are left out.
    fn told(&self, at: usize, environment: &RequestEnv, schema: &Schema) -> Result<Option<Policy>, SmtError> {
        let Some(item) = self.index.items.get(at) else { return Ok(None) };
        let policy = item.policy()?;
        let Some(optional) = &self.foreign else { return Ok(Some(policy.clone())) };
        let defect = |e: &dyn std::fmt::Display| SmtError::Defect { what: e.to_string() };
        let mut json = policy.to_json().map_err(|e| defect(&e))?;
        let Some(object) = json.as_object_mut() else { return Ok(None) };
        object.insert("action".into(), serde_json::json!({ "op": "All" }));
        let conditions = object.get("conditions").map(ToString::to_string).unwrap_or_default();
        if conditions.contains(r#"{"Var":"action"}"#) && conditions.contains(r#""in":"#) {
            return Ok(None);
        }
        let typed = |json: &serde_json::Value| -> Result<Option<Policy>, SmtError> {
            let policy = Policy::from_json(None, json.clone()).map_err(|e| defect(&e))?;
            Ok(CompiledPolicy::compile(&policy, environment, schema).is_ok().then_some(policy))
        };
        if let Some(policy) = typed(&json)? {
            return Ok(Some(policy));
        }
        if item.effect == Effect::Forbid {
            return Ok(None);
        }
        // A permit that reads an attribute that is not there permits nothing, so that it asks
        // for the attribute first takes nothing from it but requests for which it would not
        // read it; Cedar itself has the last word on those.
        let guards = optional.iter().filter_map(|(of, name)| Some(guard(variable(of, environment)?, name)));
        let guards: Vec<_> = guards.collect();
        if let Some(conditions) = json.get_mut("conditions").and_then(serde_json::Value::as_array_mut) {
            conditions.splice(0..0, guards);
        }
        typed(&json)
    }
}

/// The variable that stands for an entity type, or for the context of an action.
fn variable(of: &str, environment: &RequestEnv) -> Option<&'static str> {
    let context = of.strip_suffix(" context").is_some_and(|action| action == environment.action().to_string());
    let is = |name: &cedar_policy::EntityTypeName| name.to_string() == of;
    match (context, is(environment.principal()), is(environment.resource())) {
        (true, ..) => Some("context"),
        (_, true, _) => Some("principal"),
        (_, _, true) => Some("resource"),
        _ => None,
    }
}

fn guard(variable: &str, attribute: &str) -> serde_json::Value {
    serde_json::json!({ "kind": "when", "body": { "has": { "left": { "Var": variable }, "attr": attribute } } })
}

/// The name of a request environment.
pub(crate) fn name(environment: &RequestEnv) -> String {
    format!("{} {} {}", environment.principal(), environment.action(), environment.resource())
}

/// A set that permits everything but what a forbid stops.
pub(crate) fn all_but(forbid: Policy) -> Result<PolicySet, SmtError> {
    let mut set = PolicySet::new();
    let all = Policy::parse(Some(PolicyId::new("all")), "permit(principal, action, resource);");
    add(&mut set, all.map_err(|e| SmtError::Defect { what: e.to_string() })?)?;
    add(&mut set, forbid)?;
    Ok(set)
}

/// Adds a policy to a set.
pub(crate) fn add(set: &mut PolicySet, policy: Policy) -> Result<(), SmtError> {
    set.add(policy).map_err(|e| SmtError::Defect { what: e.to_string() })
}

struct Decided {
    allowed: bool,
    reasons: Vec<usize>,
    errors: Vec<usize>,
}

/// What one question is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Cause {
    /// A permit of the version that permits more, by position.
    Permit(usize),
    /// A forbid of the other version that is gone.
    Gone(usize),
}

/// A request that is newly allowed, as the authorizer itself says.
#[derive(Clone, Debug)]
pub(crate) struct Counterexample {
    /// The request.
    pub(crate) request: Request,
    /// The entities.
    pub(crate) entities: Entities,
    /// Positions of the permits that allow it.
    pub(crate) permits: Vec<usize>,
    /// Positions of the forbids of the other version that stopped it.
    pub(crate) stopped_by: Vec<usize>,
    /// The real request that shows the same change, where requests are more than Cedar's.
    pub(crate) real: Option<crate::model::Request>,
}

/// The answer to a question.
#[derive(Debug)]
pub(crate) enum Answer {
    /// There is no such request.
    None,
    /// There is this one.
    Found(Box<Counterexample>),
    /// The solver's request is none that can occur, for this reason.
    Unreal(String),
    /// It could not be decided.
    Open(String),
}

/// The policies of a question, by position.
pub(crate) struct Asking<'q> {
    /// What it is about.
    pub(crate) cause: Cause,
    /// Permits of the version that permits more, of which one must hold.
    pub(crate) permits: &'q [usize],
    /// Forbids of the same version, of which none may hold.
    pub(crate) forbids: &'q BTreeSet<usize>,
    /// Permits of the other version, of which none may hold.
    pub(crate) permitted: &'q BTreeSet<usize>,
}

/// A question with only as much of its policies as decides it.
pub(crate) enum Short {
    /// No request can satisfy what it demands.
    Never,
    /// A request that the first set allows and the second does not.
    Sets(Box<Sets>),
}

/// The two sets of a question.
pub(crate) struct Sets {
    /// The permits and forbids of the version that permits more.
    pub(crate) first: PolicySet,
    /// What the other version permits, or what its forbid does not stop.
    pub(crate) second: PolicySet,
    /// Values for attributes of which it no longer speaks.
    pub(crate) filled: Vec<(String, RestrictedExpression)>,
    /// Whether it demands less than the whole question.
    pub(crate) cut: bool,
}

/// Says questions shorter than their policies are written. What it leaves out may only make
/// more requests answer it.
pub(crate) trait Tell {
    /// The question in short; `whole`: without leaving out anything that it demands.
    fn tell(&self, asked: &Asking<'_>, whole: bool) -> Result<Short, SmtError>;
}

/// What the solver says to one question.
enum Reply {
    /// There is no such request: a proof.
    None,
    /// There is this one; whether the question was cut.
    Found(Box<Env>, bool),
    /// It could not say.
    Open(String),
}

/// Judges whether a counterexample is a request that can occur; else says why not.
pub(crate) type Realness<'r> = &'r mut dyn FnMut(&Counterexample) -> Result<Option<crate::model::Request>, String>;

/// What questions in one environment say of those in others.
#[derive(Default)]
pub(super) struct Known {
    /// Questions without a member whose policies say nothing of principal and resource: by
    /// group of environments, the policy that it is about, and both sets.
    proved: HashSet<(String, Cause, Vec<usize>, Vec<usize>)>,
    /// Counterexamples, by group of environments and the policy that they are about.
    found: Vec<(String, Cause, Request, Entities)>,
}

/// One direction of a comparison in one environment.
pub(super) struct Asked<'q, 'a> {
    pub(super) known: &'q mut Known,
    pub(super) slim: Option<&'q mut Slim>,
    pub(super) tell: Option<&'q dyn Tell>,
    pub(super) engine: &'q mut Engine,
    pub(super) schema: &'q Schema,
    pub(super) environment: &'q RequestEnv,
    pub(super) symbols: &'q SymEnv,
    pub(super) from: &'q Version<'a>,
    pub(super) to: &'q Version<'a>,
}

impl Asked<'_, '_> {
    /// Asks whether something is newly allowed because of a permit or a forbid that is gone.
    pub(super) fn ask(&mut self, cause: Cause, real: Realness<'_>) -> Result<Answer, SmtError> {
        if let Some(found) = self.transplanted(cause)? {
            return Ok(match real(&found) {
                Ok(request) => Answer::Found(Box::new(Counterexample { real: request, ..found })),
                Err(why) => Answer::Unreal(why),
            });
        }
        match cause {
            Cause::Permit(at) => self.refine(cause, &[at], real),
            Cause::Gone(at) => {
                let permits = self.to.index.in_environment(Effect::Permit, self.environment, &self.to.groups);
                let Some(forbid) = self.from.index.items.get(at) else { return Ok(Answer::None) };
                let mut permits: Vec<usize> = permits
                    .into_iter()
                    .filter(|p| self.to.index.items.get(*p).is_some_and(|permit| !permit.excludes(forbid)))
                    .collect();
                permits.sort_by_key(|p| !self.to.index.items.get(*p).is_some_and(|permit| permit.resembles(forbid)));
                // One permit by itself can be said much shorter than together with others.
                let together = if self.tell.is_some() { 1 } else { BATCH };
                let mut left = Answer::None;
                for batch in permits.chunks(together) {
                    match self.refine(cause, batch, real)? {
                        Answer::None => {}
                        found @ Answer::Found(_) => return Ok(found),
                        other => left = other,
                    }
                }
                Ok(left)
            }
        }
    }

    /// A counterexample of another environment with the same action, made one of this by the
    /// types of principal and resource, where Cedar says that it is one.
    fn transplanted(&self, cause: Cause) -> Result<Option<Counterexample>, SmtError> {
        let group = self.group();
        let found = self.known.found.iter().find(|(of, about, ..)| *of == group && *about == cause);
        let Some((_, _, request, entities)) = found else { return Ok(None) };
        let of_type = |uid: Option<&EntityUid>, kind: &EntityTypeName| {
            uid.map(|uid| EntityUid::from_type_name_and_id(kind.clone(), uid.id().clone()))
        };
        let principal = of_type(request.principal(), self.environment.principal());
        let resource = of_type(request.resource(), self.environment.resource());
        let (Some(principal), Some(resource), Some(context)) = (principal, resource, request.context()) else {
            return Ok(None);
        };
        let made =
            Request::new(principal, self.environment.action().clone(), resource, context.clone(), Some(self.schema));
        let Ok(request) = made else { return Ok(None) };
        let (after, before) = (self.to.decide(&request, entities)?, self.before(&request, entities)?);
        let sure = after.errors.is_empty() && before.errors.is_empty();
        Ok((after.allowed && !before.allowed && sure).then(|| Counterexample {
            request,
            entities: entities.clone(),
            permits: after.reasons,
            stopped_by: before.reasons,
            real: None,
        }))
    }

    /// Environments with one context, in which the same policies mean the same: those of an
    /// action; those of a namespace where the actions are rungs, of which no condition speaks.
    fn group(&self) -> String {
        let action = self.environment.action();
        if self.slim.is_some() { action.type_name().namespace() } else { action.to_string() }
    }

    /// What the other version decides; what it does not know is denied.
    fn before(&self, request: &Request, entities: &Entities) -> Result<Decided, SmtError> {
        if self.known_before() {
            return self.from.decide(request, entities);
        }
        Ok(Decided { allowed: false, reasons: Vec::new(), errors: Vec::new() })
    }

    /// Policies that join at the start: they look like the policy that the question is about.
    fn seeds(&self, cause: Cause, version: &Version<'_>, effect: Effect) -> BTreeSet<usize> {
        let about = match cause {
            Cause::Permit(at) => self.to.index.items.get(at),
            Cause::Gone(at) => self.from.index.items.get(at),
        };
        let Some(about) = about else { return BTreeSet::new() };
        let items = version.index.in_environment(effect, self.environment, &version.groups).into_iter();
        let alike =
            items.filter(|at| version.index.items.get(*at).is_some_and(|i| i.resembles(about) && !i.excludes(about)));
        alike.take(SEEDS).collect()
    }

    /// Whether the other version knows requests of this environment.
    fn known_before(&self) -> bool {
        self.from.environments.contains(&name(self.environment))
    }

    fn refine(&mut self, cause: Cause, permits: &[usize], real: Realness<'_>) -> Result<Answer, SmtError> {
        let mut forbids = self.seeds(cause, self.to, Effect::Forbid);
        let mut permitted = match cause {
            Cause::Permit(_) if self.known_before() => self.seeds(cause, self.from, Effect::Permit),
            _ => BTreeSet::new(),
        };
        let mut whole = false;
        for _ in 0..MAX_ROUNDS {
            let asked = Asking { cause, permits, forbids: &forbids, permitted: &permitted };
            let (found, cut) = match self.query(&asked, whole)? {
                Reply::Found(found, cut) => (found, cut),
                Reply::None => return Ok(Answer::None),
                Reply::Open(reason) => return Ok(Answer::Open(reason)),
            };
            let after = self.to.decide(&found.request, &found.entities)?;
            let before = self.before(&found.request, &found.entities)?;
            let of = |version: &Version<'_>, positions: &[usize], effect: Effect| -> BTreeSet<usize> {
                let items = &version.index.items;
                positions.iter().copied().filter(|at| items.get(*at).is_some_and(|i| i.effect == effect)).collect()
            };
            let size = forbids.len() + permitted.len();
            forbids.extend(of(self.to, &after.errors, Effect::Forbid));
            if !after.allowed {
                forbids.extend(of(self.to, &after.reasons, Effect::Forbid));
            }
            if matches!(cause, Cause::Permit(_)) {
                permitted.extend(of(self.from, &before.errors, Effect::Permit));
                if before.allowed {
                    permitted.extend(of(self.from, &before.reasons, Effect::Permit));
                }
            }
            if forbids.len() + permitted.len() > size {
                continue;
            }
            if cut && (!after.allowed || before.allowed) {
                // What was left out does not hold for what was filled in.
                whole = true;
                continue;
            }
            if !after.allowed || before.allowed {
                return Ok(Answer::Open("the solver's request did not reproduce in Cedar".into()));
            }
            let mut counterexample = Counterexample {
                request: found.request,
                entities: found.entities,
                permits: after.reasons,
                stopped_by: before.reasons,
                real: None,
            };
            let group = self.group();
            let Counterexample { request, entities, .. } = counterexample.clone();
            self.known.found.push((group, cause, request, entities));
            return Ok(match real(&counterexample) {
                Ok(request) => {
                    counterexample.real = request;
                    Answer::Found(Box::new(counterexample))
                }
                Err(why) => Answer::Unreal(why),
            });
        }
        Ok(Answer::Open("the question grew beyond its bound".into()))
    }

    /// Asks the solver once: a request that the first set allows and the second does not.
    fn query(&mut self, asked: &Asking<'_>, whole: bool) -> Result<Reply, SmtError> {
        let key = self.blind(asked);
        if key.as_ref().is_some_and(|key| self.known.proved.contains(key)) {
            return Ok(Reply::None);
        }
        let short = match self.tell {
            Some(tell) => tell.tell(asked, whole)?,
            None => match self.in_full(asked)? {
                Some(short) => short,
                None => return Ok(Reply::Open(UNTOLD.into())),
            },
        };
        let answer = match short {
            Short::Never => Ok(None),
            Short::Sets(sets) => {
                let answer = self.solve(&sets.first, &sets.second, &sets.filled)?;
                answer.map(|found| found.map(|found| (Box::new(found), sets.cut)))
            }
        };
        match answer {
            Ok(None) => {
                self.known.proved.extend(key);
                Ok(Reply::None)
            }
            Ok(Some((found, cut))) => Ok(Reply::Found(found, cut)),
            Err(Failure::Unknown(reason)) => Ok(Reply::Open(reason)),
            Err(Failure::Solver(error)) => Err(error),
        }
    }

    /// A question with its policies as they are written; `None` where one that it needs cannot
    /// be said.
    fn in_full(&self, asked: &Asking<'_>) -> Result<Option<Short>, SmtError> {
        let told = |version: &Version<'_>, at: usize| -> Result<Option<Policy>, SmtError> {
            let policy = version.told(at, self.environment, self.schema)?;
            Ok(policy.map(|policy| policy.new_id(PolicyId::new(at.to_string()))))
        };
        let (mut first, mut second) = (PolicySet::new(), PolicySet::new());
        for at in asked.permits.iter().chain(asked.forbids) {
            // Without a permit less would be asked; without a forbid more, which is safe.
            match told(self.to, *at)? {
                Some(policy) => add(&mut first, policy)?,
                None if asked.permits.contains(at) => return Ok(None),
                None => {}
            }
        }
        match asked.cause {
            Cause::Permit(_) => {
                for at in asked.permitted {
                    if let Some(policy) = told(self.from, *at)? {
                        add(&mut second, policy)?;
                    }
                }
            }
            Cause::Gone(at) => {
                let Some(policy) = told(self.from, at)? else { return Ok(None) };
                second = all_but(policy)?;
            }
        }
        Ok(Some(Short::Sets(Box::new(Sets { first, second, filled: Vec::new(), cut: false }))))
    }

    /// The solver's answer, under the schema or as much of it as the policies speak of.
    fn solve(
        &mut self,
        first: &PolicySet,
        second: &PolicySet,
        filled: &[(String, RestrictedExpression)],
    ) -> Result<Result<Option<Env>, Failure>, SmtError> {
        let environment = self.environment;
        let Some(slim) = self.slim.as_deref_mut() else {
            let (schema, symbols) = (self.schema, self.symbols);
            return Ok(self.engine.differ(&Question { first, second, environment, schema, symbols }));
        };
        let wanted = spoken_of(first.policies().chain(second.policies()));
        let (schema, symbols) = slim.schema(environment, wanted)?;
        let asked = Question { first, second, environment, schema, symbols: &symbols };
        let answer = self.engine.differ(&asked);
        Ok(match answer {
            Ok(Some(found)) => {
                Ok(Some(Env { request: slim.completed(&found.request, filled)?, entities: found.entities }))
            }
            other => other,
        })
    }

    /// What a question is, where it is the same one for all types of principal and resource.
    fn blind(&self, asked: &Asking<'_>) -> Option<(String, Cause, Vec<usize>, Vec<usize>)> {
        if self.from.foreign.is_some() || self.to.foreign.is_some() {
            return None;
        }
        let cause = asked.cause;
        let first: Vec<usize> = asked.permits.iter().chain(asked.forbids).copied().collect();
        let second: Vec<usize> = asked.permitted.iter().copied().collect();
        let blind = |version: &Version<'_>, at: &usize| version.index.items.get(*at).is_some_and(Item::is_blind);
        let gone = match cause {
            Cause::Gone(at) => blind(self.from, &at),
            Cause::Permit(_) => true,
        };
        let all = gone && first.iter().all(|at| blind(self.to, at)) && second.iter().all(|at| blind(self.from, at));
        all.then(|| (self.group(), cause, first, second))
    }
}
