//! Hand-written guardrails: Cedar that may only take away (DESIGN 5).

use std::str::FromStr;

use cedar_policy::{Effect as CedarEffect, PolicyId, PolicySet as CedarSet};

use super::schema_of;
use crate::diag::{Code, Finding};
use crate::model::PolicySet;
use crate::source::Span;

/// One policy of a guardrail file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Guardrail {
    /// Its id: file and number.
    pub id: String,
    /// Its text as written.
    pub text: String,
    /// What it says, without layout, so that only a change of meaning is a change.
    pub meaning: String,
    /// Where it stands.
    pub span: Span,
}

/// Parses and validates the guardrail files of a set. `names` gives each file its name.
pub fn parse_guardrails(set: &PolicySet, names: &dyn Fn(Span) -> String, sink: &mut Vec<Finding>) -> Vec<Guardrail> {
    let mut out = Vec::new();
    if set.guardrails.is_empty() {
        return out;
    }
    let schema = cedar_policy::Schema::from_cedarschema_str(&schema_of(set)).map(|(schema, _)| schema);
    for (span, text) in &set.guardrails {
        let parsed = match CedarSet::from_str(text) {
            Ok(parsed) => parsed,
            Err(error) => {
                sink.push(
                    Finding::new(Code::GUARDRAIL, *span, format!("this is not Cedar: {error}"))
                        .help("see the Cedar policy syntax; each policy ends with `;`"),
                );
                continue;
            }
        };
        if parsed.templates().next().is_some() {
            sink.push(
                Finding::new(Code::GUARDRAIL, *span, "a guardrail cannot be a template")
                    .help("write it without `?principal` and `?resource`"),
            );
        }
        if parsed.policies().any(|p| p.effect() == CedarEffect::Permit) {
            sink.push(
                Finding::new(Code::GUARDRAIL, *span, "a guardrail permits something")
                    .help("guardrails only forbid; what is allowed stands in tier maps"),
            );
        }
        match &schema {
            Ok(schema) => {
                let result = cedar_policy::Validator::new(schema.clone())
                    .validate(&parsed, cedar_policy::ValidationMode::Strict);
                for error in result.validation_errors() {
                    sink.push(
                        Finding::new(Code::GUARDRAIL, *span, format!("{error}"))
                            .help("`polctl compile` prints the schema that guardrails are checked against"),
                    );
                }
            }
            Err(error) => sink.push(Finding::new(
                Code::INCONCLUSIVE,
                *span,
                format!("the generated schema is not valid: {error}"),
            )),
        }
        let name = names(*span);
        let mut policies = Vec::new();
        for (policy, place) in placed(&parsed, text, *span) {
            match policy.to_json() {
                Ok(json) => policies.push((json.to_string(), policy.to_string(), place)),
                Err(error) => sink.push(
                    Finding::new(Code::GUARDRAIL, *span, format!("this guardrail cannot be compared: {error}"))
                        .help("write it in plain Cedar"),
                ),
            }
        }
        policies.sort();
        for (index, (meaning, text, span)) in policies.into_iter().enumerate() {
            out.push(Guardrail { id: format!("guardrail/{name}/{}", index + 1), text, meaning, span });
        }
    }
    out
}

/// The policies of a file with their places: Cedar numbers them in the order of the text.
fn placed<'p>(parsed: &'p CedarSet, text: &str, file: Span) -> Vec<(&'p cedar_policy::Policy, Span)> {
    let places = super::statements(text);
    let number = |policy: &cedar_policy::Policy| policy.id().to_string().strip_prefix("policy")?.parse::<usize>().ok();
    parsed
        .policies()
        .map(|policy| {
            let place = number(policy).and_then(|at| places.get(at));
            (policy, place.map_or(file, |range| Span::new(file.file, range.start, range.end)))
        })
        .collect()
}

impl Guardrail {
    /// The policy, parsed under its id.
    pub(crate) fn parse(&self) -> Result<cedar_policy::Policy, super::CompileError> {
        cedar_policy::Policy::parse(Some(PolicyId::new(&self.id)), &self.text)
            .map_err(|e| super::CompileError::Parse { what: self.id.clone(), source: Box::new(e) })
    }
}
