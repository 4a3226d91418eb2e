//! Small policy sets for the tests of lints.

#[cfg(test)]
pub(in crate::analyze) use tests::{Set, codes};

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::ops::Range;

    use super::super::lint;
    use crate::compile::{Atom, Compiled, Effect, Expr, Guardrail, Origin, Policy, compile, parse_guardrails};
    use crate::diag::Finding;
    use crate::model::{Glob, Surface};
    use crate::source::{SourceError, SourceMap, Tree};

    /// The files of a set, and guardrails as conditions.
    #[derive(Default)]
    pub(in crate::analyze) struct Set {
        files: BTreeMap<String, String>,
        maps: Vec<String>,
        guardrail: Option<String>,
        forbids: Vec<(Vec<Expr>, Range<u8>)>,
    }

    impl Tree for Set {
        fn label(&self) -> String {
            "memory".into()
        }

        fn origin(&self) -> Option<String> {
            None
        }

        fn read(&self, path: &str) -> Result<Vec<u8>, SourceError> {
            let text = self.files.get(path).map(|text| text.clone().into_bytes());
            text.ok_or_else(|| SourceError::NotFound { path: path.into(), tree: self.label() })
        }

        fn list(&self, _: &str) -> Result<Vec<String>, SourceError> {
            Ok(self.files.keys().cloned().collect())
        }
    }

    impl Set {
        pub(in crate::analyze) fn new() -> Self {
            Set::default()
        }

        /// With a map of this surface.
        pub(in crate::analyze) fn map(mut self, name: &str, surface: &str, body: &str) -> Self {
            let text = format!("---\npolctl: v1\nsurface: {surface}\nunmatched: 2\n---\n\n{body}\n");
            self.files.insert(name.into(), text);
            self.maps.push(name.into());
            self
        }

        /// With a guardrail in Cedar.
        pub(in crate::analyze) fn guardrail(mut self, text: &str) -> Self {
            self.guardrail = Some(text.into());
            self
        }

        /// With a manifest, so that the schema speaks of capabilities.
        pub(in crate::analyze) fn manifest(mut self) -> Self {
            let text = "polctl: v1\nsubject: { image: demo }\ncapabilities: {}\n";
            self.files.insert("demo.yaml".into(), text.into());
            self
        }

        /// With a guardrail on commands as conditions, as translation makes it.
        pub(in crate::analyze) fn forbid(mut self, clauses: Vec<Expr>, rungs: Range<u8>) -> Self {
            self.forbids.push((clauses, rungs));
            self
        }

        /// With a guardrail that stops these programs at these rungs.
        pub(in crate::analyze) fn forbid_programs(self, names: &[&str], rungs: Range<u8>) -> Self {
            let globs = names.iter().map(|name| Glob::literal(name)).collect();
            self.forbid(vec![Atom::Program(globs).into()], rungs)
        }

        /// The findings of its lints, by place.
        pub(in crate::analyze) fn lint(mut self) -> Vec<Finding> {
            let manifests = if self.files.contains_key("demo.yaml") { "manifests: [demo.yaml]\n" } else { "" };
            let guardrails = if self.guardrail.is_some() { "guardrails: [\"g.cedar\"]\n" } else { "" };
            let config =
                format!("polctl: v1\nset: demo\npolicies: [{}]\n{manifests}{guardrails}", self.maps.join(", "));
            self.files.insert("polctl.yaml".into(), config);
            self.files.extend(self.guardrail.take().map(|text| ("g.cedar".to_owned(), text)));
            let (mut map, mut findings) = (SourceMap::new(), Vec::new());
            let set =
                crate::parse::load(&self, &mut map, &mut findings).unwrap().unwrap_or_else(|| panic!("{findings:?}"));
            let written = parse_guardrails(&set, &|_| "g.cedar".into(), &mut findings);
            assert!(findings.is_empty(), "{findings:?}");
            let mut compiled = compile(set, written);
            self.add_forbids(&mut compiled, &mut map);
            let mut found = lint(&compiled, &map).unwrap();
            crate::diag::sort(&mut found);
            assert!(found.iter().all(|f| f.help.is_some()), "a finding without help: {found:?}");
            found
        }

        fn add_forbids(&self, compiled: &mut Compiled, map: &mut SourceMap) {
            for (clauses, rungs) in &self.forbids {
                let index = compiled.guardrails.len();
                let id = format!("guardrail/g.cedar/{}", index + 1);
                let text = "forbid (principal, action, resource);".to_owned();
                let span = crate::source::Span::new(map.add("g.cedar", None, &text), 0, 6);
                compiled.guardrails.push(Guardrail { id: id.clone(), meaning: text.clone(), text, span });
                compiled.policies.push(Policy {
                    id,
                    surface: Surface::Commands,
                    effect: Effect::Forbid,
                    rungs: rungs.clone(),
                    clauses: clauses.clone(),
                    origin: Origin::Guardrail(index),
                    keys: None,
                });
            }
        }
    }

    /// The codes of findings, in their order.
    pub(in crate::analyze) fn codes(findings: &[Finding]) -> Vec<&'static str> {
        findings.iter().map(|f| f.code.as_str()).collect()
    }
}
