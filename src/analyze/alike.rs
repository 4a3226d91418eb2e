//! Names that no condition of a question tells apart.
//!
//! A list of options is often some hundred names long, and to a solver each is a member to reason
//! about. What matters of a name is only which of the question's tests it passes: a request with
//! one name answers the question exactly as a request with another that passes the same tests.
//! So each list keeps one name of each kind. This changes neither whether there is an answer nor
//! that an answer is one to the question as it was.

use std::collections::{BTreeMap, BTreeSet};

use super::short::attribute;
use crate::compile::{Atom, Expr};
use crate::model::{Glob, Surface};

/// The tests of a question, by what they are tests of.
#[derive(Default)]
pub(super) struct Alike {
    tests: BTreeMap<String, Vec<Test>>,
    /// Attributes that a policy written by hand speaks of, too: nothing is known of its tests.
    pub(super) told_apart: BTreeSet<String>,
}

/// Texts that pass, and texts with wildcards.
struct Test {
    texts: BTreeSet<String>,
    wild: Vec<Glob>,
}

impl Test {
    fn passes(&self, text: &str) -> bool {
        self.texts.contains(text) || self.wild.iter().any(|glob| glob.matches(text))
    }
}

/// The texts of a test for one of some texts, and its globs with wildcards.
fn tested(atom: &Atom) -> Option<Test> {
    match atom {
        Atom::Program(globs) | Atom::HostName(globs) | Atom::Word(_, globs) => {
            let literal = |glob: &Glob| glob.as_literal().map(str::to_owned);
            let wild = globs.iter().filter(|glob| glob.as_literal().is_none()).cloned().collect();
            Some(Test { texts: globs.iter().filter_map(literal).collect(), wild })
        }
        Atom::Method(names) | Atom::RunAs(names) | Atom::HasAny(_, names) | Atom::Within(_, names) => {
            Some(Test { texts: names.iter().cloned().collect(), wild: Vec::new() })
        }
        _ => None,
    }
}

impl Alike {
    /// Takes a test into account.
    pub(super) fn test(&mut self, atom: &Atom, surface: Surface) {
        if let Some(test) = tested(atom) {
            self.tests.entry(attribute(atom, surface)).or_default().push(test);
        }
    }

    /// One name of each kind, by attribute.
    pub(super) fn kinds(&self) -> Kinds {
        let known = self.tests.iter().filter(|(name, _)| !self.told_apart.contains(*name));
        let one_of_each = |tests: &[Test]| {
            let mut kinds: BTreeMap<Vec<bool>, &String> = BTreeMap::new();
            let texts: BTreeSet<&String> = tests.iter().flat_map(|test| &test.texts).collect();
            for text in texts {
                kinds.entry(tests.iter().map(|test| test.passes(text)).collect()).or_insert(text);
            }
            kinds.into_values().cloned().collect()
        };
        Kinds(known.map(|(name, tests)| (name.clone(), one_of_each(tests))).collect())
    }
}

/// One name of each kind, by attribute.
pub(super) struct Kinds(BTreeMap<String, BTreeSet<String>>);

impl Kinds {
    /// A condition with one name of each kind.
    pub(super) fn merged(&self, expr: &Expr, surface: Surface) -> Expr {
        let all = |parts: &[Expr]| parts.iter().map(|part| self.merged(part, surface)).collect();
        match expr {
            Expr::All(parts) => Expr::All(all(parts)),
            Expr::One(parts) => Expr::One(all(parts)),
            Expr::Not(inner) => Expr::Not(Box::new(self.merged(inner, surface))),
            Expr::Atom(atom) => Expr::Atom(self.atom(atom, surface)),
        }
    }

    fn atom(&self, atom: &Atom, surface: Surface) -> Atom {
        let Some(kept) = self.0.get(&attribute(atom, surface)) else { return atom.clone() };
        let names = |own: &[String]| own.iter().filter(|name| kept.contains(*name)).cloned().collect();
        let keeps = |glob: &&Glob| glob.as_literal().is_none_or(|text| kept.contains(text));
        let globs = |own: &[Glob]| own.iter().filter(keeps).cloned().collect();
        match atom {
            Atom::Method(own) => Atom::Method(names(own)),
            Atom::RunAs(own) => Atom::RunAs(names(own)),
            Atom::HasAny(set, own) => Atom::HasAny(*set, names(own)),
            Atom::Within(set, own) => Atom::Within(*set, names(own)),
            Atom::Program(own) => Atom::Program(globs(own)),
            Atom::HostName(own) => Atom::HostName(globs(own)),
            Atom::Word(position, own) => Atom::Word(*position, globs(own)),
            other => other.clone(),
        }
    }
}
