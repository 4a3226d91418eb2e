//! Questions to the solver about tier maps, cut down to what decides them.
//!
//! A generated policy has many conditions, most of which it shares with its neighbours. Where
//! a question demands a condition anyway, the same condition in another policy is settled: it is
//! true there, and its negation false; and a program that is demanded by name settles every test
//! of the program. What is then spoken of by one side only can be chosen freely, so it is left
//! out of the question and filled in afterwards; Cedar decides the whole request again, and the
//! whole question is asked where what was filled in does not hold. Conditions are compared for
//! equality only: what one condition implies of another is the exact engine's to know.

use std::collections::{BTreeMap, BTreeSet};

use cedar_policy::RestrictedExpression as Value;

use cedar_policy::{Policy as CedarPolicy, PolicyId, PolicySet};

use super::alike::Alike;
use super::second::{Told, defect};
use super::smt::{Asking, Cause, Sets, Short, SmtError, Tell, add, all_but, spoken_of};
use crate::compile::{Atom, Expr, Flag, Policy, SetAttr, render};
use crate::model::{CommandRequest, Glob, Piece as GlobPiece, Surface};
use crate::source::SourceMap;

/// Tells questions about two compiled sets.
pub(super) struct Teller<'t, 'a> {
    pub(super) from: &'t Told<'a>,
    pub(super) to: &'t Told<'a>,
    pub(super) map: &'a SourceMap,
}

/// A policy of a question: those of its conditions that matter, or as it is written by hand.
struct Piece<'t, 'a> {
    told: &'t Told<'a>,
    at: usize,
    condition: Option<(&'a Policy, Expr)>,
}

impl Piece<'_, '_> {
    /// What it speaks of.
    fn mentions(&self) -> Result<BTreeSet<String>, SmtError> {
        match (&self.condition, self.told.item(self.at)) {
            (Some((policy, condition)), _) => Ok(attributes(condition, policy.surface)),
            (None, Some(item)) => Ok(spoken_of(std::iter::once(item.policy()?))),
            (None, None) => Ok(BTreeSet::new()),
        }
    }

    fn into_policy(self, map: &SourceMap) -> Result<CedarPolicy, SmtError> {
        let id = PolicyId::new(self.at.to_string());
        if let Some((policy, condition)) = self.condition {
            let clauses = if condition == Expr::TRUE { Vec::new() } else { vec![condition] };
            let short = Policy { clauses, ..policy.clone() };
            return Ok(render(self.told.compiled, &short, map).parse().map_err(defect)?.new_id(id));
        }
        let item = self.told.item(self.at).ok_or_else(|| SmtError::Defect { what: "a policy is missing".into() })?;
        Ok(item.policy()?.new_id(id))
    }
}

impl<'t, 'a> Teller<'t, 'a> {
    /// What a policy demands.
    fn demand(given: &mut Given<'a>, told: &Told<'a>, at: usize) {
        match told.generated(at) {
            Some(policy) => given.demand(&policy.clauses, policy.surface),
            None => told.item(at).into_iter().flat_map(super::smt::Item::texts).for_each(|(attribute, texts)| {
                given.demand_one_of(attribute, texts);
            }),
        }
    }

    /// Policies as far as what is demanded does not settle them; those that it rules out are
    /// left out.
    fn rest<'p>(
        given: &Given<'_>,
        told: &'t Told<'a>,
        positions: impl IntoIterator<Item = &'p usize>,
    ) -> Vec<Piece<'t, 'a>> {
        let piece = |at: &usize| {
            let condition = told.generated(*at).map(|policy| (policy, given.settle(&policy.clauses, policy.surface)));
            let ruled_out = condition.as_ref().is_some_and(|(_, condition)| *condition == Expr::FALSE);
            (!ruled_out).then_some(Piece { told, at: *at, condition })
        };
        positions.into_iter().filter_map(piece).collect()
    }

    fn set(&self, pieces: Vec<Piece<'_, '_>>) -> Result<PolicySet, SmtError> {
        let mut set = PolicySet::new();
        pieces.into_iter().try_for_each(|piece| add(&mut set, piece.into_policy(self.map)?))?;
        Ok(set)
    }
}

impl Tell for Teller<'_, '_> {
    fn tell(&self, asked: &Asking<'_>, whole: bool) -> Result<Short, SmtError> {
        // What must hold: the permit itself, or the forbid that is gone and its only permit.
        let only = match asked.permits {
            [only] => Some((self.to, *only)),
            _ => None,
        };
        let gone = match asked.cause {
            Cause::Permit(_) => None,
            Cause::Gone(at) => Some((self.from, at)),
        };
        let demanded: Vec<(&Told<'_>, usize)> = gone.into_iter().chain(only).collect();
        let mut given = Given::default();
        demanded.iter().for_each(|(told, at)| Self::demand(&mut given, told, *at));
        let surface = demanded.iter().find_map(|(told, at)| told.generated(*at)).map(|policy| policy.surface);
        if surface.is_some_and(|surface| given.is_impossible(surface)) {
            return Ok(Short::Never);
        }
        // The rest, as far as that does not settle it.
        let permits = if only.is_some() { Vec::new() } else { Self::rest(&given, self.to, asked.permits) };
        if only.is_none() && permits.is_empty() {
            return Ok(Short::Never);
        }
        let forbids = Self::rest(&given, self.to, asked.forbids);
        let permitted = Self::rest(&given, self.from, asked.permitted);
        // Of what must hold, what the rest speaks of.
        let mut demands: Vec<Piece<'_, '_>> =
            demanded.iter().map(|(told, at)| Piece { told, at: *at, condition: None }).collect();
        let written = demands.iter().filter(|piece| piece.told.generated(piece.at).is_none());
        let mut mentioned = BTreeSet::new();
        for piece in permits.iter().chain(&forbids).chain(&permitted).chain(written) {
            mentioned.extend(piece.mentions()?);
        }
        let (bound, free) = match surface {
            Some(surface) if !whole => given.split(&mentioned, surface),
            _ => (given.conjuncts.clone(), Vec::new()),
        };
        for piece in &mut demands {
            let Some(policy) = piece.told.generated(piece.at) else { continue };
            let kept = conjuncts(&policy.clauses).filter(|own| bound.iter().any(|kept| std::ptr::eq(*kept, *own)));
            let kept = kept.map(|own| given.settled_beside(own, policy.surface)).collect();
            piece.condition = Some((policy, Expr::All(kept)));
        }
        let filled = surface.map(|surface| Filled::of(free.iter().copied(), surface).values()).unwrap_or_default();
        let mut pieces: Vec<Vec<Piece<'_, '_>>> = vec![permits, forbids, permitted, demands];
        merge(pieces.iter_mut().flatten())?;
        let [mut first, forbids, permitted, mut demands] =
            <[_; 4]>::try_from(pieces).map_err(|_| SmtError::Defect { what: "a question has four parts".into() })?;
        first.extend(forbids);
        if only.is_some() {
            first.extend(demands.pop());
        }
        let second = match demands.pop() {
            Some(forbid) => all_but(forbid.into_policy(self.map)?)?,
            None => self.set(permitted)?,
        };
        Ok(Short::Sets(Box::new(Sets { first: self.set(first)?, second, filled, cut: !free.is_empty() })))
    }
}

/// Puts one name in the place of those that no condition of a question tells apart.
fn merge<'m, 't: 'm, 'a: 't + 'm>(pieces: impl Iterator<Item = &'m mut Piece<'t, 'a>>) -> Result<(), SmtError> {
    let mut pieces: Vec<&mut Piece<'_, '_>> = pieces.collect();
    let mut alike = Alike::default();
    for piece in &pieces {
        match &piece.condition {
            Some((policy, condition)) => condition.atoms(&mut |atom| alike.test(atom, policy.surface)),
            None => alike.told_apart.extend(piece.mentions()?),
        }
    }
    let kinds = alike.kinds();
    for (policy, condition) in pieces.iter_mut().filter_map(|piece| piece.condition.as_mut()) {
        *condition = kinds.merged(condition, policy.surface);
    }
    Ok(())
}

/// What a question demands of every request that answers it.
#[derive(Default)]
pub(super) struct Given<'p> {
    conjuncts: Vec<&'p Expr>,
    /// The texts that an attribute must be one of.
    literals: BTreeMap<String, BTreeSet<String>>,
}

/// The conditions that must all hold.
pub(super) fn conjuncts(clauses: &[Expr]) -> impl Iterator<Item = &Expr> {
    clauses.iter().flat_map(|clause| match clause {
        Expr::All(parts) => parts.as_slice(),
        other => std::slice::from_ref(other),
    })
}

impl<'p> Given<'p> {
    /// Demands the conditions of a policy, too.
    pub(super) fn demand(&mut self, clauses: &'p [Expr], surface: Surface) {
        for conjunct in conjuncts(clauses) {
            self.conjuncts.push(conjunct);
            let Expr::Atom(atom) = conjunct else { continue };
            let Some((attribute, texts)) = literals(atom, surface) else { continue };
            self.demand_one_of(attribute, texts);
        }
    }

    /// Demands that an attribute is one of these texts.
    pub(super) fn demand_one_of(&mut self, attribute: String, texts: BTreeSet<String>) {
        match self.literals.get_mut(&attribute) {
            Some(known) => known.retain(|text| texts.contains(text)),
            None => {
                self.literals.insert(attribute, texts);
            }
        }
    }

    /// Whether some demanded condition cannot hold beside the others.
    fn is_impossible(&self, surface: Surface) -> bool {
        self.literals.values().any(BTreeSet::is_empty)
            || self.conjuncts.iter().any(|own| self.settled_beside(own, surface) == Expr::FALSE)
    }

    /// Conditions as far as what is demanded does not settle them.
    pub(super) fn settle(&self, clauses: &[Expr], surface: Surface) -> Expr {
        self.all(conjuncts(clauses), surface)
    }

    fn all<'e>(&self, parts: impl Iterator<Item = &'e Expr>, surface: Surface) -> Expr {
        let mut kept = Vec::new();
        for part in parts {
            match self.under(part, surface) {
                part if part == Expr::TRUE => {}
                part if part == Expr::FALSE => return Expr::FALSE,
                part => kept.push(part),
            }
        }
        Expr::All(kept)
    }

    fn under(&self, expr: &Expr, surface: Surface) -> Expr {
        if self.conjuncts.contains(&expr) {
            return Expr::TRUE;
        }
        if self.conjuncts.iter().any(|given| matches!(given, Expr::Not(inner) if **inner == *expr)) {
            return Expr::FALSE;
        }
        match expr {
            Expr::All(parts) => self.all(parts.iter(), surface),
            Expr::One(parts) => {
                let mut kept = Vec::new();
                for part in parts {
                    match self.under(part, surface) {
                        part if part == Expr::FALSE => {}
                        part if part == Expr::TRUE => return Expr::TRUE,
                        part => kept.push(part),
                    }
                }
                Expr::One(kept)
            }
            Expr::Not(inner) => match self.under(inner, surface) {
                inner if inner == Expr::TRUE => Expr::FALSE,
                inner if inner == Expr::FALSE => Expr::TRUE,
                inner => inner.negated(),
            },
            Expr::Atom(atom) => self.atom(atom, surface),
        }
    }

    /// A demanded condition as far as the others do not settle it.
    fn settled_beside(&self, conjunct: &Expr, surface: Surface) -> Expr {
        let part = |part: &Expr| self.under(part, surface);
        match conjunct {
            Expr::One(parts) => {
                let parts: Vec<Expr> = parts.iter().map(part).filter(|part| *part != Expr::FALSE).collect();
                if parts.contains(&Expr::TRUE) { Expr::TRUE } else { Expr::one(parts) }
            }
            Expr::All(parts) => self.all(parts.iter(), surface),
            other => other.clone(),
        }
    }

    /// A test of an attribute of which the texts are known.
    fn atom(&self, atom: &Atom, surface: Surface) -> Expr {
        let whole = || Expr::Atom(atom.clone());
        let Some(known) = self.literals.get(&attribute(atom, surface)) else { return whole() };
        let holds = |text: &str| match atom {
            Atom::Program(globs) | Atom::HostName(globs) | Atom::Word(_, globs) => {
                Some(globs.iter().any(|glob| glob.matches(text)))
            }
            Atom::Method(names) | Atom::RunAs(names) => Some(names.iter().any(|name| name == text)),
            _ => None,
        };
        let Some(all) = known.iter().map(|text| holds(text)).collect::<Option<Vec<bool>>>() else { return whole() };
        match (all.contains(&true), all.contains(&false)) {
            (true, false) => Expr::TRUE,
            (false, _) => Expr::FALSE,
            (true, true) => whole(),
        }
    }

    /// The demanded conditions that speak of something that `mentioned` speaks of, directly or
    /// through each other, and those that are free of it.
    pub(super) fn split(&self, mentioned: &BTreeSet<String>, surface: Surface) -> (Vec<&'p Expr>, Vec<&'p Expr>) {
        let mut mentioned = mentioned.clone();
        // Who asks, and on which machine, is not filled in.
        mentioned.extend(["principal".to_owned(), "resource".to_owned()]);
        let mut free: Vec<&Expr> = self.conjuncts.clone();
        let mut bound: Vec<&Expr> = Vec::new();
        let spoken = |expr: &Expr| attributes(&self.settled_beside(expr, surface), surface);
        loop {
            let touches = |expr: &&Expr| !spoken(expr).is_disjoint(&mentioned);
            let (more, rest): (Vec<&Expr>, Vec<&Expr>) = free.into_iter().partition(touches);
            free = rest;
            if more.is_empty() {
                return (bound, free);
            }
            mentioned.extend(more.iter().flat_map(|expr| spoken(expr)));
            bound.extend(more);
        }
    }
}

/// The texts that a condition demands its attribute to be one of.
fn literals(atom: &Atom, surface: Surface) -> Option<(String, BTreeSet<String>)> {
    let texts: BTreeSet<String> = match atom {
        Atom::Program(globs) | Atom::HostName(globs) | Atom::Word(_, globs) => {
            globs.iter().map(|glob| glob.as_literal().map(str::to_owned)).collect::<Option<_>>()?
        }
        Atom::Method(names) | Atom::RunAs(names) => names.iter().cloned().collect(),
        _ => return None,
    };
    Some((attribute(atom, surface), texts))
}

/// What a condition speaks of: attributes of the context, `principal` and `resource`.
pub(super) fn attributes(expr: &Expr, surface: Surface) -> BTreeSet<String> {
    let mut out = BTreeSet::new();
    expr.atoms(&mut |atom| {
        out.insert(attribute(atom, surface));
    });
    out
}

/// The attribute of the context that an atom is a test of, as it is printed in Cedar.
pub(super) fn attribute(atom: &Atom, surface: Surface) -> String {
    let word = if surface == Surface::Egress { "seg" } else { "arg" };
    let name = match atom {
        Atom::Agent(_) => "principal",
        Atom::Machine(_) => "resource",
        Atom::Flag(flag) => match flag {
            Flag::Trusted => "trusted",
            Flag::Harmless => "harmless",
            Flag::Dynamic => "dynamic",
            Flag::External => "external",
            Flag::Open => "open",
            Flag::Many => "many",
            Flag::Covered => "covered",
        },
        Atom::Program(_) => "program",
        Atom::RunAs(_) => "run_as",
        Atom::Word(position, _) => return format!("{word}{position}"),
        Atom::WordUnknown(_) | Atom::AllKnown => "unknown",
        Atom::CountIs(_) | Atom::CountAtLeast(_) => return format!("{word}c"),
        Atom::Anywhere(_) => "line",
        Atom::HasAny(set, _) | Atom::Within(set, _) | Atom::Empty(set) => match set {
            SetAttr::Options => "options",
            SetAttr::Certain => "certain",
            SetAttr::Globals => "globals",
            SetAttr::Writes => "writes",
            SetAttr::Names => "names",
            SetAttr::Env => "env",
            SetAttr::Wrappers => "wrappers",
            SetAttr::Secrets => "secrets",
        },
        Atom::Method(_) => "method",
        Atom::Scheme(_) => "scheme",
        Atom::HostName(_) => "host",
        Atom::Port(_) => "port",
        Atom::InNetwork(crate::compile::Address::Host, _) => "address",
        Atom::InNetwork(crate::compile::Address::Peer, _) => "peer",
    };
    name.to_owned()
}

/// Values under which conditions that were left out hold, as far as they are simple.
#[derive(Default)]
pub(super) struct Filled {
    texts: BTreeMap<String, String>,
    numbers: BTreeMap<String, i64>,
    flags: BTreeMap<String, bool>,
    sets: BTreeMap<String, BTreeSet<String>>,
    /// Texts that stand somewhere in the line.
    line: Vec<String>,
}

impl Filled {
    /// Values for these conditions.
    pub(super) fn of<'e>(conditions: impl IntoIterator<Item = &'e Expr>, surface: Surface) -> Self {
        let mut out = Filled::default();
        conditions.into_iter().for_each(|condition| out.fill(condition, surface));
        out
    }

    fn fill(&mut self, expr: &Expr, surface: Surface) {
        match expr {
            Expr::All(parts) => parts.iter().for_each(|part| self.fill(part, surface)),
            Expr::One(parts) => parts.iter().take(1).for_each(|part| self.fill(part, surface)),
            Expr::Not(inner) => {
                if let Expr::Atom(atom @ Atom::Flag(_)) = &**inner {
                    self.flags.insert(attribute(atom, surface), false);
                }
            }
            Expr::Atom(atom) => self.fill_atom(atom, surface),
        }
    }

    fn fill_atom(&mut self, atom: &Atom, surface: Surface) {
        let name = attribute(atom, surface);
        match atom {
            Atom::Program(globs) | Atom::HostName(globs) | Atom::Word(_, globs) => {
                if let Some(glob) = globs.first() {
                    self.texts.entry(name).or_insert_with(|| sample(glob));
                }
            }
            Atom::Anywhere(globs) => self.line.extend(globs.first().map(sample)),
            Atom::Method(names) | Atom::RunAs(names) => {
                if let Some(text) = names.first() {
                    self.texts.entry(name).or_insert_with(|| text.clone());
                }
            }
            Atom::Scheme(scheme) => {
                self.texts.insert(name, scheme.name().to_owned());
            }
            Atom::Flag(_) => {
                self.flags.insert(name, true);
            }
            Atom::CountIs(n) | Atom::CountAtLeast(n) => {
                let least = self.numbers.entry(name).or_insert(0);
                *least = (*least).max(i64::try_from(*n).unwrap_or(i64::MAX));
            }
            Atom::Port(port) => {
                self.numbers.insert(name, i64::from(*port));
            }
            Atom::HasAny(_, names) => {
                self.sets.entry(name).or_default().extend(names.first().cloned());
            }
            Atom::Agent(_)
            | Atom::Machine(_)
            | Atom::WordUnknown(_)
            | Atom::AllKnown
            | Atom::Within(..)
            | Atom::Empty(_)
            | Atom::InNetwork(..) => {}
        }
    }

    /// The values by attribute.
    pub(super) fn values(&self) -> Vec<(String, Value)> {
        let texts = self.texts.iter().map(|(name, text)| (name.clone(), Value::new_string(text.clone())));
        let numbers = self.numbers.iter().map(|(name, number)| (name.clone(), Value::new_long(*number)));
        let flags = self.flags.iter().map(|(name, flag)| (name.clone(), Value::new_bool(*flag)));
        let set = |names: &BTreeSet<String>| Value::new_set(names.iter().cloned().map(Value::new_string));
        let sets = self.sets.iter().map(|(name, names)| (name.clone(), set(names)));
        let separator = CommandRequest::SEPARATOR;
        let line: String = self.line.iter().map(|text| format!("{separator}{text}")).collect();
        let line = (!line.is_empty()).then(|| ("line".to_owned(), Value::new_string(format!("{line}{separator}"))));
        texts.chain(numbers).chain(flags).chain(sets).chain(line).collect()
    }
}

/// A text that a glob matches.
fn sample(glob: &Glob) -> String {
    let piece = |piece: &GlobPiece| match piece {
        GlobPiece::Text(text) => text.clone(),
        GlobPiece::Any => "x".to_owned(),
    };
    glob.pieces().iter().map(piece).collect()
}
