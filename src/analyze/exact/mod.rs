//! The exact engine: finds a real request with given properties, or proves that there is none
//! (DESIGN 6).
//!
//! Every generated condition is a regular property of the request once the facts that do not
//! depend on words are chosen. A query is a conjunction of conditions and negated policies;
//! the engine searches the product of their automata lazily, cheapest request first, and
//! stops at a bound. Within the bound it is sound and complete.

mod automata;
mod search;
mod space;

use std::collections::{BTreeMap, BTreeSet};

use crate::compile::{Atom, Expr, SetAttr};
use crate::model::{PathPattern, Request, Surface, ZoneMatcher, Zones};
use search::Search;

/// Most nodes that one search expands; past it the answer is inconclusive.
#[derive(Clone, Copy, Debug)]
pub struct Bound(pub usize);

impl Bound {
    /// What the commands use: seconds at the very most.
    pub const USUAL: Bound = Bound(40_000);
}

/// The answer to a query.
#[derive(Debug)]
pub enum Outcome {
    /// A request, one of the cheapest.
    Found(Box<Request>),
    /// There is none.
    Empty,
    /// The bound was reached.
    Bound,
}

/// What requests a search ranges over.
pub struct Space<'a> {
    surface: Surface,
    zones: &'a ZoneMatcher,
    patterns: BTreeMap<String, Vec<String>>,
    samples: BTreeMap<String, Vec<String>>,
}

impl<'a> Space<'a> {
    /// The requests of a surface, their arguments classified by `zones`.
    pub fn new(surface: Surface, zones: &'a ZoneMatcher, declared: &Zones) -> Self {
        let of_each = |text: fn(&PathPattern) -> String| {
            declared
                .names()
                .map(|name| {
                    let texts = declared.get(name).map(|(patterns, _)| patterns.iter().map(text).collect());
                    (name.to_owned(), texts.unwrap_or_default())
                })
                .collect()
        };
        Space { surface, zones, patterns: of_each(PathPattern::to_string), samples: of_each(PathPattern::sample) }
    }

    /// A path in each pattern of a zone.
    pub fn samples(&self, zone: &str) -> &[String] {
        self.samples.get(zone).map_or(&[], Vec::as_slice)
    }

    /// The zones that facts are made with.
    pub const fn zones(&self) -> &'a ZoneMatcher {
        self.zones
    }

    /// Searches a request for which every expression of `require` holds and, for no member of
    /// `exclude`, all clauses.
    ///
    /// Three passes, from cheap to complete. First without the characters that only zone
    /// patterns mention: what it finds is real. Then without the required conditions on
    /// zones: if even that is empty, so is the query. Then everything.
    pub fn find(&self, require: &[&Expr], exclude: &[&[Expr]], bound: Bound) -> Outcome {
        let given: BTreeSet<&Expr> = require.iter().copied().flat_map(conjuncts).collect();
        let all: Vec<&Expr> = given.iter().copied().collect();
        // What is required anyway need not be excluded again.
        let exclude: Vec<Vec<&Expr>> = exclude
            .iter()
            .map(|clauses| clauses.iter().flat_map(conjuncts).filter(|e| !given.contains(e)).collect())
            .collect();
        if exclude.iter().any(Vec::is_empty) {
            return Outcome::Empty;
        }
        match Search::new(self, &all, &exclude, false).run(bound) {
            Outcome::Empty => {}
            other => return other,
        }
        let relaxed: Vec<&Expr> = all.iter().copied().filter(|e| !speaks_of_zones(e)).collect();
        let excludes_zones = exclude.iter().flatten().any(|e| speaks_of_zones(e));
        if !excludes_zones {
            if relaxed.len() == all.len() {
                return Outcome::Empty;
            }
            if let Outcome::Empty = Search::new(self, &relaxed, &exclude, false).run(bound) {
                return Outcome::Empty;
            }
        }
        Search::new(self, &all, &exclude, true).run(bound)
    }
}

/// The parts of a conjunction.
fn conjuncts(expr: &Expr) -> Box<dyn Iterator<Item = &Expr> + '_> {
    match expr {
        Expr::All(parts) => Box::new(parts.iter().flat_map(conjuncts)),
        other => Box::new(std::iter::once(other)),
    }
}

fn speaks_of_zones(expr: &Expr) -> bool {
    let mut found = false;
    expr.atoms(&mut |atom| {
        found |= matches!(
            atom,
            Atom::HasAny(SetAttr::Names, _) | Atom::Within(SetAttr::Names, _) | Atom::Empty(SetAttr::Names)
        );
    });
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Glob;
    use crate::source::{SourceMap, Span};

    #[test]
    fn simple_queries() {
        let mut map = SourceMap::new();
        let zones = Zones::built_in(Span::new(map.add("polctl.yaml", None, ""), 0, 0));
        let matcher = zones.matcher();
        let space = Space::new(Surface::Commands, &matcher, &zones);
        let program: Expr = Atom::Program(vec![Glob::literal("git")]).into();
        let word: Expr = Atom::Word(1, vec![Glob::literal("log")]).into();
        let option: Expr = Atom::HasAny(SetAttr::Options, vec!["--ext-diff".into()]).into();
        let not = option.clone().negated();
        for (require, want) in [
            (vec![], "x"),
            (vec![&program], "git"),
            (vec![&program, &word], "git log"),
            (vec![&program, &word, &option], "git log --ext-diff"),
            (vec![&program, &option, &not], "-"),
        ] {
            let got = match space.find(&require, &[], Bound::USUAL) {
                Outcome::Found(request) => request.to_line(),
                Outcome::Empty => "-".into(),
                Outcome::Bound => "?".into(),
            };
            assert_eq!(got, want);
        }
    }
}
