//! Old against new: every request that one version allows and the other does not (DESIGN 6).
//!
//! A request that is newly allowed at a rung is matched by a permit that is new there, or was
//! stopped by a forbid that is gone there. So only those are asked about: `p ∧ ¬F_new ∧ ¬P_old`
//! and `f ∧ P_new ∧ ¬F_new`. Each question starts small: a candidate is evaluated against
//! the full sets, the policies that decide against it join the question, and it is asked
//! again. Emptiness at any stage is a proof; a witness is replayed through Cedar before it counts.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use super::exact::{Bound, Outcome, Space};
use super::sample::words;
use crate::compile::{CompileError, Compiled, Effect, Expr, Guardrail, Origin, Policy, PolicyIndex};
use crate::decide::Decider;
use crate::model::{Item, Matcher, RUNGS, Request, Surface, Word};

/// Most rounds of one question; each adds at least one policy.
const MAX_ROUNDS: usize = 2_000;

/// A request whose decision differs, with what is to blame.
#[derive(Clone, Debug)]
pub struct Change<'a> {
    /// Its surface.
    pub surface: Surface,
    /// The rungs at which it is allowed on the one side only, ascending.
    pub rungs: BTreeSet<u8>,
    /// The request.
    pub witness: Request,
    /// It as a line that shows the same change; `None` where no line was found.
    pub typed: Option<super::typed::Typed>,
    /// The permit that allows it.
    pub permit: &'a Policy,
    /// The forbid of the other side that is gone, if that is what changed.
    pub gone: Option<&'a Policy>,
    /// The hand-written guardrail that is gone, where the exact engine cannot read it.
    pub guardrail: Option<&'a Guardrail>,
    /// Lowest rung that each side allows.
    pub tier_from: Option<u8>,
    /// Lowest rung that each side allows.
    pub tier_to: Option<u8>,
}

/// A question that could not be answered.
#[derive(Clone, Debug)]
pub struct Open<'a> {
    /// The policy that the question was about.
    pub policy: &'a Policy,
    /// Whether it belongs to the version that permits more.
    pub in_to: bool,
    /// Why there is no answer.
    pub reason: &'static str,
}

/// One direction of a comparison: what `to` allows and `from` does not.
#[derive(Clone, Debug, Default)]
pub struct Changes<'a> {
    /// Newly allowed requests, one for each cause.
    pub found: Vec<Change<'a>>,
    /// Questions without an answer.
    pub open: Vec<Open<'a>>,
}

/// One version during a comparison.
pub struct Side<'a> {
    /// The compiled set.
    pub compiled: &'a Compiled,
    index: PolicyIndex,
}

impl<'a> Side<'a> {
    /// Prepares a version.
    pub fn new(compiled: &'a Compiled) -> Self {
        Side { compiled, index: PolicyIndex::new(&compiled.policies) }
    }

    /// Policies of an effect that are about a rung and hold for the request.
    fn holding(&self, space: &Space<'_>, request: &Request, effect: Effect, rung: u8) -> Vec<&'a Policy> {
        let facts = request.facts(space.zones());
        self.index
            .candidates(request.surface(), &facts)
            .into_iter()
            .filter_map(|at| self.compiled.policies.get(at))
            .filter(|p| p.effect == effect && p.rungs.contains(&rung) && p.holds(&facts))
            .collect()
    }
}

/// Numbers for the conditions of policies: equal numbers, equal conditions.
pub(super) struct Numbers {
    pub(super) from: Vec<u32>,
    pub(super) to: Vec<u32>,
    /// The number of "always".
    always: Option<u32>,
}

impl Numbers {
    /// The same for the other direction.
    pub(super) fn swapped(self) -> Self {
        Numbers { from: self.to, to: self.from, always: self.always }
    }

    pub(super) fn new(from: &Compiled, to: &Compiled) -> Self {
        let mut known: HashMap<&[Expr], u32> = HashMap::new();
        let mut number = |clauses| {
            let next = u32::try_from(known.len()).unwrap_or(u32::MAX);
            *known.entry(clauses).or_insert(next)
        };
        let from = from.policies.iter().map(|p| number(p.clauses.as_slice())).collect();
        let to = to.policies.iter().map(|p| number(p.clauses.as_slice())).collect();
        let always = known.get::<[Expr]>(&[]).copied();
        Numbers { from, to, always }
    }
}

/// The numbers of all policies of a surface and effect that are about a rung.
fn numbers_at(compiled: &Compiled, numbers: &[u32], surface: Surface, effect: Effect, rung: u8) -> HashSet<u32> {
    let policies = compiled.policies.iter().zip(numbers);
    policies
        .filter(|(p, _)| p.surface == surface && p.effect == effect && p.rungs.contains(&rung))
        .map(|(_, number)| *number)
        .collect()
}

enum Answer {
    Witness(Box<Request>),
    None,
    Open(&'static str),
}

/// One question: is there a request for which all of `require` hold, that `to` does not forbid,
/// and (`from_permits`) that `from` does not permit?
struct Question<'a, 'q> {
    space: &'q Space<'q>,
    require: Vec<&'a Policy>,
    to: &'q Side<'a>,
    from: &'q Side<'a>,
    from_permits: bool,
    rung: u8,
}

impl<'a> Question<'a, '_> {
    /// The policies that decide against a candidate.
    fn against(&self, request: &Request) -> Vec<&'a Policy> {
        let forbids = self.to.holding(self.space, request, Effect::Forbid, self.rung);
        if forbids.is_empty() && self.from_permits {
            return self.from.holding(self.space, request, Effect::Permit, self.rung);
        }
        forbids
    }

    fn answers(&self, request: &Request) -> bool {
        let facts = request.facts(self.space.zones());
        self.require.iter().all(|p| p.holds(&facts)) && self.against(request).is_empty()
    }

    /// Asks to the end.
    fn ask(&self, bound: Bound) -> Answer {
        let conditions: Vec<&Expr> = self.require.iter().flat_map(|p| p.clauses.iter()).collect();
        let mut exclude: Vec<&[Expr]> = Vec::new();
        let mut excluded: HashSet<&[Expr]> = HashSet::new();
        let mut involved = self.require.clone();
        if Policy::contradict(&self.require) || self.covered() {
            return Answer::None;
        }
        for _ in 0..MAX_ROUNDS {
            let witness = match self.space.find(&conditions, &exclude, bound) {
                Outcome::Found(witness) => *witness,
                Outcome::Empty => return Answer::None,
                Outcome::Bound => {
                    return match self.plain().into_iter().find(|plain| self.answers(plain)) {
                        // Not the shortest answer, and an answer all the same.
                        Some(plain) => Answer::Witness(Box::new(plain)),
                        None => Answer::Open("the search reached its bound"),
                    };
                }
            };
            let against = self.against(&witness);
            if against.iter().any(|p| p.follows_from(&self.require)) {
                return Answer::None;
            }
            if against.is_empty() {
                let witness = self.with_paths(self.spelled_out(witness, &involved));
                return Answer::Witness(Box::new(witness));
            }
            let mut grew = false;
            for policy in against {
                if excluded.insert(policy.clauses.as_slice()) {
                    exclude.push(policy.clauses.as_slice());
                    involved.push(policy);
                    grew = true;
                }
            }
            if !grew {
                return Answer::Open("the two readings of a condition disagree");
            }
        }
        Answer::Open("the question grew beyond its bound")
    }

    /// Whether one policy that decides against every answer follows by its shape alone.
    fn covered(&self) -> bool {
        let Some(first) = self.require.first() else { return false };
        let decides = |side: &Side<'a>, effect| {
            let related = side.index.related(first).into_iter().filter_map(|at| side.compiled.policies.get(at));
            related
                .filter(|p| p.effect == effect && p.rungs.contains(&self.rung))
                .any(|p| p.follows_from(&self.require))
        };
        decides(self.to, Effect::Forbid) || self.from_permits && decides(self.from, Effect::Permit)
    }

    /// Requests made from the words of the first required policy's rule.
    fn plain(&self) -> Vec<Request> {
        let Some(policy) = self.require.first() else { return Vec::new() };
        let rule = [self.to, self.from].into_iter().find_map(|side| {
            let own = side.compiled.policies.iter().any(|p| std::ptr::eq(p, *policy));
            side.compiled.rule_of(policy).filter(|_| own)
        });
        rule.into_iter().flat_map(|rule| [words(rule, false), words(rule, true)]).flatten().collect()
    }

    /// The witness with abbreviated long options in full, where it still is one: `--o` answers
    /// the question, and `--output` is what a reader knows.
    fn spelled_out(&self, witness: Request, involved: &[&Policy]) -> Request {
        let Request::Command(command) = &witness else { return witness };
        let mut names: Vec<String> = involved.iter().flat_map(|p| self.long_options(p)).collect();
        names.sort_by_key(|n| (n.len(), n.clone()));
        let mut best = command.clone();
        for at in 0..best.words.len() {
            let Some(Word::Known(word)) =
                best.words.get(at).filter(|w| matches!(w, Word::Known(t) if t.starts_with("--")))
            else {
                continue;
            };
            for name in names.iter().filter(|n| n.len() > word.len() && n.starts_with(word.as_str())) {
                let mut longer = best.clone();
                if let Some(slot) = longer.words.get_mut(at) {
                    *slot = Word::Known(name.clone());
                }
                if self.answers(&Request::Command(longer.clone())) {
                    best = longer;
                    break;
                }
            }
        }
        Request::Command(best)
    }

    /// The witness with a path among its words instead of a working directory in a zone,
    /// where it still is one: `cat ~/.ssh/x` says more than `cat x` somewhere.
    fn with_paths(&self, witness: Request) -> Request {
        let Request::Command(command) = &witness else { return witness };
        let zones: Vec<String> = command.place.zones.iter().cloned().collect();
        for path in zones.iter().flat_map(|zone| self.space.samples(zone)) {
            for at in 0..=command.words.len() {
                let mut other = command.clone();
                other.place = crate::model::Place::default();
                match other.words.get_mut(at) {
                    Some(word) => *word = Word::Known(path.clone()),
                    None => other.words.push(Word::Known(path.clone())),
                }
                if self.answers(&Request::Command(other.clone())) {
                    return Request::Command(other);
                }
            }
        }
        witness
    }

    /// The long options that the rule of a policy names.
    fn long_options(&self, policy: &Policy) -> Vec<String> {
        let mut out = Vec::new();
        for side in [self.to, self.from] {
            let own = side.compiled.policies.iter().any(|p| std::ptr::eq(p, policy));
            let Some(rule) = side.compiled.rule_of(policy).filter(|_| own) else { continue };
            if let Matcher::Command { with, only, unless, .. } = &rule.matcher {
                let items = with.iter().flatten().chain(only.iter().flatten()).chain(unless);
                out.extend(items.filter(|i| matches!(i, Item::Long(_))).map(ToString::to_string));
            }
        }
        out
    }
}

/// Everything that `to` allows and `from` does not. Both must have been compiled under the
/// same configuration.
///
/// # Errors
///
/// [`CompileError`] when Cedar cannot be asked: a defect, never a verdict.
pub fn newly_allowed<'a>(
    spaces: &BTreeMap<Surface, Space<'_>>,
    from: &Side<'a>,
    to: &Side<'a>,
    deciders: (&mut Decider<'a>, &mut Decider<'a>),
    bound: Bound,
) -> Result<Changes<'a>, CompileError> {
    let numbers = Numbers::new(from.compiled, to.compiled);
    newly_allowed_numbered(spaces, (from, to), deciders, &numbers, bound)
}

/// The same with numbers that were made before.
pub(super) fn newly_allowed_numbered<'a>(
    spaces: &BTreeMap<Surface, Space<'_>>,
    (from, to): (&Side<'a>, &Side<'a>),
    deciders: (&mut Decider<'a>, &mut Decider<'a>),
    numbers: &Numbers,
    bound: Bound,
) -> Result<Changes<'a>, CompileError> {
    let (from_decider, to_decider) = deciders;
    let mut run = Run { from, to, bound, numbers, changes: Changes::default(), by_cause: BTreeMap::new() };
    for (surface, space) in spaces {
        if to.compiled.set.surfaces.contains_key(surface) {
            for rung in 0..RUNGS {
                run.rung(*surface, space, rung);
            }
        }
    }
    let mut changes = run.changes;
    let mut kept = Vec::new();
    for mut change in changes.found {
        let Some(space) = spaces.get(&change.surface) else { continue };
        let facts = change.witness.facts(space.zones());
        change.tier_from = from_decider.tier(change.surface, &facts)?;
        change.tier_to = to_decider.tier(change.surface, &facts)?;
        let mut good = true;
        for rung in &change.rungs {
            good &= to_decider.allows(change.surface, &facts, *rung)?
                && !from_decider.allows(change.surface, &facts, *rung)?;
        }
        if good {
            kept.push(change);
        } else {
            let reason = if to.compiled.guardrails.is_empty() && from.compiled.guardrails.is_empty() {
                "a witness did not reproduce in Cedar"
            } else {
                "a hand-written guardrail decides about the witness, and the exact engine cannot look for one beside it"
            };
            changes.open.push(Open { policy: change.permit, in_to: true, reason });
        }
    }
    changes.found = kept;
    Ok(changes)
}

/// One run over all surfaces and rungs.
struct Run<'a, 'r> {
    from: &'r Side<'a>,
    to: &'r Side<'a>,
    bound: Bound,
    numbers: &'r Numbers,
    changes: Changes<'a>,
    /// Position in `found` by surface and what is to blame, so that a rule is reported once.
    by_cause: BTreeMap<(Surface, String), Vec<usize>>,
}

impl<'a> Run<'a, '_> {
    fn rung(&mut self, surface: Surface, space: &Space<'_>, rung: u8) {
        let numbers = self.numbers;
        let old_permits = numbers_at(self.from.compiled, &numbers.from, surface, Effect::Permit, rung);
        let new_forbids = numbers_at(self.to.compiled, &numbers.to, surface, Effect::Forbid, rung);
        let at_rung = |p: &Policy, effect| p.surface == surface && p.effect == effect && p.rungs.contains(&rung);
        // An unconditional permit covers everything that a permit could add.
        if !numbers.always.is_some_and(|always| old_permits.contains(&always)) {
            for (permit, number) in self.to.compiled.policies.iter().zip(&numbers.to) {
                // What carries a command is judged with the command: a surface that is new shows
                // itself by that.
                if !at_rung(permit, Effect::Permit)
                    || permit.origin == Origin::Covered
                    || old_permits.contains(number)
                    || self.known(space, permit, rung, Some(self.from))
                {
                    continue;
                }
                match self.question(space, vec![permit], true, rung).ask(self.bound) {
                    Answer::Witness(witness) => self.found(surface, rung, *witness, permit, None),
                    Answer::None => {}
                    Answer::Open(reason) => self.changes.open.push(Open { policy: permit, in_to: true, reason }),
                }
            }
        }
        for (forbid, number) in self.from.compiled.policies.iter().zip(&numbers.from) {
            if at_rung(forbid, Effect::Forbid) && !new_forbids.contains(number) {
                self.gone(surface, space, forbid, rung);
            }
        }
    }

    fn question<'q>(
        &'q self,
        space: &'q Space<'q>,
        require: Vec<&'a Policy>,
        from_permits: bool,
        rung: u8,
    ) -> Question<'a, 'q> {
        Question { space, require, to: self.to, from: self.from, from_permits, rung }
    }

    /// A forbid that is gone: what permits may now come through?
    fn gone(&mut self, surface: Surface, space: &Space<'_>, forbid: &'a Policy, rung: u8) {
        if self.known(space, forbid, rung, None) {
            return;
        }
        let mut permits: Vec<&'a Policy> = self
            .to
            .index
            .related(forbid)
            .into_iter()
            .filter_map(|at| self.to.compiled.policies.get(at))
            .filter(|p| p.effect == Effect::Permit && p.rungs.contains(&rung))
            .collect();
        // What permits most is most likely to let something through.
        permits.sort_by_key(|p| (p.origin == Origin::Covered, p.clauses.len()));
        for permit in permits {
            match self.question(space, vec![forbid, permit], false, rung).ask(self.bound) {
                Answer::Witness(witness) => return self.found(surface, rung, *witness, permit, Some(forbid)),
                Answer::None => {}
                Answer::Open(reason) => self.changes.open.push(Open { policy: forbid, in_to: false, reason }),
            }
        }
    }

    /// What is to blame: the rule's id, which does not change when its tier does.
    fn cause(policy: &Policy) -> String {
        match policy.origin {
            Origin::Rule(_) => policy.id.rsplitn(3, '/').nth(2).unwrap_or(&policy.id).to_owned(),
            _ => policy.id.clone(),
        }
    }

    /// Whether a witness that was found for the same cause also shows the change at this rung.
    fn known(&mut self, space: &Space<'_>, policy: &Policy, rung: u8, from_permits: Option<&Side<'a>>) -> bool {
        let key = (policy.surface, Self::cause(policy));
        let Some(indices) = self.by_cause.get(&key).cloned() else { return false };
        for index in indices {
            let Some(change) = self.changes.found.get(index) else { continue };
            let facts = change.witness.facts(space.zones());
            let shows = policy.holds(&facts)
                && self.to.holding(space, &change.witness, Effect::Forbid, rung).is_empty()
                && match from_permits {
                    Some(from) => from.holding(space, &change.witness, Effect::Permit, rung).is_empty(),
                    None => !self.to.holding(space, &change.witness, Effect::Permit, rung).is_empty(),
                };
            if shows {
                if let Some(change) = self.changes.found.get_mut(index) {
                    change.rungs.insert(rung);
                }
                return true;
            }
        }
        false
    }

    fn found(&mut self, surface: Surface, rung: u8, witness: Request, permit: &'a Policy, gone: Option<&'a Policy>) {
        let cause = Self::cause(gone.unwrap_or(permit));
        self.by_cause.entry((surface, cause)).or_default().push(self.changes.found.len());
        self.changes.found.push(Change {
            surface,
            rungs: BTreeSet::from([rung]),
            witness,
            typed: None,
            permit,
            gone,
            guardrail: None,
            tier_from: None,
            tier_to: None,
        });
    }
}
