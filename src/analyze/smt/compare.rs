//! Old against new over all request environments of the new schema.

use std::collections::{BTreeSet, HashSet};

use cedar_policy::{RequestEnv, Schema};
use cedar_policy_symcc::CompiledSchema;

use super::question::{Answer, Asked, Cause, Known, Realness, Tell, Version, name};
use super::{Engine, Slim, SmtError};
use crate::compile::Effect;

/// The answer about one policy in one environment.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// The environment.
    pub(crate) environment: RequestEnv,
    /// What the question was about.
    pub(crate) cause: Cause,
    /// The answer.
    pub(crate) answer: Answer,
}

/// What `to` allows and `from` does not, in every environment of a schema, as far as `asks`
/// names policies in it.
pub(crate) fn newly_allowed(
    engine: &mut Engine,
    schema: &Schema,
    from: &Version<'_>,
    to: &Version<'_>,
    asks: &dyn Fn(&RequestEnv, Cause) -> bool,
    real: Realness<'_>,
    mut short: Option<(&mut Slim, &dyn Tell)>,
) -> Result<Vec<Outcome>, SmtError> {
    let mut out = Vec::new();
    let mut environments: Vec<RequestEnv> = schema.request_envs().collect();
    environments.sort_by_key(name);
    let mut known = Known::default();
    let mut compiled: Option<CompiledSchema> = None;
    for environment in environments {
        let mut causes = causes(&environment, from, to);
        causes.retain(|cause| asks(&environment, *cause));
        if causes.is_empty() {
            continue;
        }
        if compiled.is_none() {
            compiled = Some(CompiledSchema::new(schema).map_err(|e| SmtError::Defect { what: e.to_string() })?);
        }
        let Some(compiled) = &compiled else { continue };
        let symbols = compiled.sym_env(&environment).map_err(|e| SmtError::Defect { what: e.to_string() })?;
        let (slim, tell) = match &mut short {
            Some((slim, tell)) => (Some(&mut **slim), Some(*tell)),
            None => (None, None),
        };
        let mut asked = Asked {
            known: &mut known,
            slim,
            tell,
            engine,
            schema,
            environment: &environment,
            symbols: &symbols,
            from,
            to,
        };
        for cause in causes {
            let answer = asked.ask(cause, real)?;
            if !matches!(answer, Answer::None) {
                out.push(Outcome { environment: environment.clone(), cause, answer });
            }
        }
    }
    Ok(out)
}

/// The policies whose change can matter in an environment: permits that are new there, and
/// forbids that are gone.
fn causes(environment: &RequestEnv, from: &Version<'_>, to: &Version<'_>) -> Vec<Cause> {
    let known = from.environments.contains(&name(environment));
    let at = |version: &Version<'_>, effect| version.index.in_environment(effect, environment, &version.groups);
    let meanings = |version: &Version<'_>, positions: &[usize]| -> HashSet<u64> {
        positions.iter().filter_map(|at| version.index.items.get(*at)).map(|item| item.meaning).collect()
    };
    let differing = |version: &Version<'_>, positions: Vec<usize>, others: &HashSet<u64>| -> Vec<usize> {
        let mut seen = BTreeSet::new();
        let new = |at: &usize| {
            version.index.items.get(*at).is_some_and(|i| !others.contains(&i.meaning) && seen.insert(i.meaning))
        };
        positions.into_iter().filter(new).collect()
    };
    let before = if known { meanings(from, &at(from, Effect::Permit)) } else { HashSet::new() };
    let mut out: Vec<Cause> = differing(to, at(to, Effect::Permit), &before).into_iter().map(Cause::Permit).collect();
    if known {
        let after = meanings(to, &at(to, Effect::Forbid));
        out.extend(differing(from, at(from, Effect::Forbid), &after).into_iter().map(Cause::Gone));
    }
    out
}
