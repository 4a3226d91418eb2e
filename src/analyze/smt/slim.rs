//! A schema with only what a question speaks of.
//!
//! The symbolic compiler carries the whole type of the context through every term, and compares
//! terms all the time. A generated context has some forty attributes, of which a question
//! needs a few. What it does not speak of can have any value, so the plainest is put in when its
//! counterexample is evaluated.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use cedar_policy::{Context, Policy, Request, RequestEnv, RestrictedExpression, Schema};
use cedar_policy_core::ast::{self, ExprKind, Var};
use cedar_policy_symcc::{CompiledSchema, SymEnv};
use serde_json::Value;

use super::SmtError;

/// A schema whose contexts can be cut down.
pub(crate) struct Slim {
    /// The schema, as JSON.
    shape: Value,
    /// The plainest value of each attribute that is always there.
    plain: Vec<(&'static str, RestrictedExpression)>,
    made: HashMap<(String, BTreeSet<String>), (Schema, CompiledSchema)>,
}

impl Slim {
    /// Contexts of this schema; each namespace declares its own as `Request`.
    pub(crate) fn new(shape: Value, plain: Vec<(&'static str, RestrictedExpression)>) -> Self {
        Slim { shape, plain, made: HashMap::new() }
    }

    /// The schema of an environment with these attributes of the context only.
    pub(super) fn schema(
        &mut self,
        environment: &RequestEnv,
        wanted: BTreeSet<String>,
    ) -> Result<(&Schema, SymEnv), SmtError> {
        let namespace = environment.action().type_name().namespace();
        let key = (namespace, wanted);
        if !self.made.contains_key(&key) {
            let schema = self.cut(&key.0, &key.1)?;
            let compiled = CompiledSchema::new(&schema).map_err(|e| SmtError::Defect { what: e.to_string() })?;
            self.made.insert(key.clone(), (schema, compiled));
        }
        let (schema, compiled) =
            self.made.get(&key).ok_or_else(|| SmtError::Defect { what: "a schema is missing".into() })?;
        let symbols = compiled.sym_env(environment).map_err(|e| SmtError::Defect { what: e.to_string() })?;
        Ok((schema, symbols))
    }

    fn cut(&self, namespace: &str, wanted: &BTreeSet<String>) -> Result<Schema, SmtError> {
        let mut own = self.shape.get(namespace).cloned().unwrap_or_default();
        let attributes = own.pointer_mut("/commonTypes/Request/attributes").and_then(Value::as_object_mut);
        let attributes =
            attributes.ok_or_else(|| SmtError::Defect { what: format!("`{namespace}` has no `Request`") })?;
        attributes.retain(|name, _| wanted.contains(name));
        Schema::from_json_value(serde_json::json!({ namespace: own }))
            .map_err(|e| SmtError::Defect { what: e.to_string() })
    }

    /// A request with these values, else plain ones, where the question did not speak of an
    /// attribute.
    pub(super) fn completed(
        &self,
        request: &Request,
        filled: &[(String, RestrictedExpression)],
    ) -> Result<Request, SmtError> {
        let defect = |e: &dyn std::fmt::Display| SmtError::Defect { what: e.to_string() };
        let (Some(principal), Some(action), Some(resource), Some(context)) =
            (request.principal(), request.action(), request.resource(), request.context())
        else {
            return Err(SmtError::Defect { what: "a counterexample is not complete".into() });
        };
        let namespace = action.type_name().namespace();
        let declared = self.shape.get(&namespace).and_then(|n| n.pointer("/commonTypes/Request/attributes"));
        let missing = |name: &str| declared.is_some_and(|d| d.get(name).is_some()) && context.get(name).is_none();
        let plain = self.plain.iter().map(|(name, value)| ((*name).to_owned(), value.clone()));
        let values: BTreeMap<String, RestrictedExpression> =
            plain.chain(filled.iter().cloned()).filter(|(name, _)| missing(name)).collect();
        let extra = Context::from_pairs(values);
        let whole = context.clone().merge(extra.map_err(|e| defect(&e))?).map_err(|e| defect(&e))?;
        Request::new(principal.clone(), action.clone(), resource.clone(), whole, None).map_err(|e| defect(&e))
    }
}

/// The attributes of the context that policies speak of.
pub(crate) fn spoken_of<'p>(policies: impl Iterator<Item = &'p Policy>) -> BTreeSet<String> {
    let mut out = BTreeSet::new();
    for policy in policies {
        let inner: &ast::Policy = policy.as_ref();
        for expr in inner.condition().subexpressions() {
            let (ExprKind::GetAttr { expr: of, attr } | ExprKind::HasAttr { expr: of, attr }) = expr.expr_kind() else {
                continue;
            };
            if matches!(of.expr_kind(), ExprKind::Var(Var::Context)) {
                out.insert(attr.to_string());
            }
        }
    }
    out
}
