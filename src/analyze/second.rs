//! Two compiled sets as the symbolic engine asks them, and what its answers mean beside those
//! of the exact engine (DESIGN 6).
//!
//! A "none" of the solver is a proof. Its request counts when a real one shows the same change.
//! The two engines must agree wherever both answer; where they do not, the comparison is
//! inconclusive and says so, whatever else was found.

use std::collections::{BTreeSet, HashMap};

use cedar_policy::{EntityUid, RequestEnv, RestrictedExpression as Value, Schema, SchemaFragment};

use super::compare::{Change, Changes, Numbers};
use super::explain::place;
use super::short::Teller;
use super::smt::{
    Answer, Cause, Counterexample, Engine, Item, Outcome, Slim, SmtError, Version, difference, nearest, newly_allowed,
};
use crate::compile::{Atom, CompileError, Compiled, Expr, Guardrail, Origin, Policy, render, schema_of};
use crate::decide::Decider;
use crate::diag::{Code, Finding, Level};
use crate::model::{CommandRequest, Glob, Request, Surface, ZoneMatcher};
use crate::source::{SourceMap, Span};

/// What an item of a version is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// The policy at this position.
    Generated(usize),
    /// The guardrail at this position.
    Guardrail(usize),
}

/// A version with what its items are.
pub(super) struct Told<'a> {
    pub(super) compiled: &'a Compiled,
    pub(super) parts: Vec<Part>,
    version: Version<'a>,
}

impl<'a> Told<'a> {
    /// The policies of a version, each with the number of its conditions.
    fn new(
        compiled: &'a Compiled,
        numbers: &[u32],
        guardrails: &mut HashMap<String, u64>,
        map: &'a SourceMap,
    ) -> Result<Self, SmtError> {
        let (mut items, mut parts) = (Vec::new(), Vec::new());
        for ((at, policy), number) in compiled.policies.iter().enumerate().zip(numbers) {
            if policy.is_generated() {
                items.push(item(compiled, policy, *number, map)?);
                parts.push(Part::Generated(at));
            }
        }
        for (at, guardrail) in compiled.guardrails.iter().enumerate() {
            let next = (1 << 40) + guardrails.len() as u64;
            let meaning = *guardrails.entry(guardrail.meaning.clone()).or_insert(next);
            let policy = guardrail.parse().map_err(defect)?;
            items.push(Item::parsed(policy, meaning));
            parts.push(Part::Guardrail(at));
        }
        Ok(Told { compiled, parts, version: Version::new(items, &schema(compiled)?)? })
    }

    /// The part at a position.
    fn part(&self, at: usize) -> Option<Part> {
        self.parts.get(at).copied()
    }

    /// The item at a position.
    pub(super) fn item(&self, at: usize) -> Option<&Item<'a>> {
        self.version.index.items.get(at)
    }

    /// The policy at a position, if polctl generates it.
    pub(super) fn generated(&self, at: usize) -> Option<&'a Policy> {
        let Some(Part::Generated(at)) = self.part(at) else { return None };
        self.compiled.policies.get(at)
    }

    /// The guardrail at a position, if the exact engine cannot read it.
    fn unread(&self, at: usize) -> Option<&'a Guardrail> {
        let Some(Part::Guardrail(index)) = self.part(at) else { return None };
        let unread = self.compiled.opaque.iter().any(|(_, opaque)| *opaque == index);
        self.compiled.guardrails.get(index).filter(|_| unread)
    }

    /// The generated policy at a position.
    pub(super) fn policy(&self, at: usize) -> Option<&'a Policy> {
        match self.part(at)? {
            Part::Generated(at) => self.compiled.policies.get(at),
            // The one that stands for it, where there is one.
            Part::Guardrail(at) => self.compiled.policies.iter().find(|p| p.origin == Origin::Guardrail(at)),
        }
    }
}

fn schema(compiled: &Compiled) -> Result<Schema, SmtError> {
    let read = Schema::from_cedarschema_str(&schema_of(&compiled.set));
    read.map(|(schema, _)| schema).map_err(|e| SmtError::Defect { what: e.to_string() })
}

/// The schema as JSON.
fn shape(compiled: &Compiled) -> Result<serde_json::Value, SmtError> {
    let read = SchemaFragment::from_cedarschema_str(&schema_of(&compiled.set));
    let (fragment, _) = read.map_err(|e| SmtError::Defect { what: e.to_string() })?;
    fragment.to_json_value().map_err(|e| SmtError::Defect { what: e.to_string() })
}

/// What a request says when it says nothing: a program that is what it seems, without words.
fn plain_context() -> Vec<(&'static str, Value)> {
    let truths = [("trusted", true), ("harmless", true)];
    let lies = ["open", "many", "covered", "dynamic", "external"];
    let sets = ["options", "certain", "globals", "unknown", "writes", "names", "env", "wrappers", "secrets"];
    let line = CommandRequest::SEPARATOR.to_string();
    let texts =
        [("program", "x"), ("line", &line), ("run_as", "root"), ("method", "GET"), ("scheme", "https"), ("host", "x")];
    let numbers = [("argc", 0), ("segc", 0), ("port", 443)];
    let mut out: Vec<_> = texts.map(|(name, text)| (name, Value::new_string(text.to_owned()))).into();
    out.extend(truths.map(|(name, truth)| (name, Value::new_bool(truth))));
    out.extend(lies.map(|name| (name, Value::new_bool(false))));
    out.extend(sets.map(|name| (name, Value::new_set([]))));
    out.extend(numbers.map(|(name, number)| (name, Value::new_long(number))));
    out
}

#[expect(clippy::needless_pass_by_value, reason = "it is what `map_err` gives")]
pub(super) fn defect(error: CompileError) -> SmtError {
    SmtError::Defect { what: error.to_string() }
}

fn item<'a>(compiled: &'a Compiled, policy: &'a Policy, number: u32, map: &'a SourceMap) -> Result<Item<'a>, SmtError> {
    let namespace = policy.surface.namespace();
    let action = |rung: u8| {
        let uid = format!("{namespace}::Action::\"tier{rung}\"").parse::<EntityUid>();
        uid.map_err(|e| SmtError::Defect { what: e.to_string() })
    };
    let actions = policy.rungs.clone().map(action).collect::<Result<Vec<_>, _>>()?;
    let source = move || render(compiled, policy, map).parse().map_err(defect);
    Ok(Item::lazy(policy.effect, actions, u64::from(number), demands(policy), source))
}

/// The places that a condition demands to be one of some texts.
fn demands(policy: &Policy) -> Vec<(&'static str, Vec<String>)> {
    let conjuncts = policy.clauses.iter().flat_map(|clause| match clause {
        Expr::All(parts) => parts.as_slice(),
        other => std::slice::from_ref(other),
    });
    let mut out: Vec<(&'static str, Vec<String>)> = Vec::new();
    for conjunct in conjuncts {
        let Expr::Atom(atom) = conjunct else { continue };
        let demand = match atom {
            Atom::Program(globs) => ("context.program", literals(globs)),
            Atom::HostName(globs) => ("context.host", literals(globs)),
            Atom::Method(names) => ("context.method", Some(names.clone())),
            Atom::RunAs(names) => ("context.run_as", Some(names.clone())),
            Atom::Word(1, globs) if policy.surface != Surface::Egress => ("context.arg1", literals(globs)),
            _ => continue,
        };
        if let (place, Some(texts)) = demand
            && out.iter().all(|(known, _)| *known != place)
        {
            out.push((place, texts));
        }
    }
    out
}

fn literals(globs: &[Glob]) -> Option<Vec<String>> {
    globs.iter().map(|glob| glob.as_literal().map(str::to_owned)).collect()
}

/// The solver's answer about one policy at one rung.
pub(super) struct Answered {
    pub(super) surface: Surface,
    pub(super) rung: u8,
    pub(super) cause: Cause,
    pub(super) answer: Second,
}

/// What the solver's answer comes to.
pub(super) enum Second {
    /// This real request is newly allowed, by the permits at these positions.
    Real {
        /// The request.
        request: Box<Request>,
        /// Positions of permits that hold for the solver's request.
        permits: Vec<usize>,
    },
    /// Its request is none that can occur, for this reason.
    Unreal(String),
    /// There is none.
    Open(String),
}

/// One direction of a comparison by the symbolic engine.
pub(super) struct Run<'r, 'a> {
    pub(super) from: Told<'a>,
    pub(super) to: Told<'a>,
    zones: &'r ZoneMatcher,
    map: &'a SourceMap,
}

impl<'r, 'a> Run<'r, 'a> {
    pub(super) fn new(
        from: &'a Compiled,
        to: &'a Compiled,
        numbers: &Numbers,
        zones: &'r ZoneMatcher,
        map: &'a SourceMap,
    ) -> Result<Self, SmtError> {
        let mut guardrails = HashMap::new();
        Ok(Run {
            from: Told::new(from, &numbers.from, &mut guardrails, map)?,
            to: Told::new(to, &numbers.to, &mut guardrails, map)?,
            zones,
            map,
        })
    }

    /// Asks about the policies that differ and that `wanted` names.
    pub(super) fn ask(
        &self,
        engine: &mut Engine,
        (before, after): (&mut Decider<'a>, &mut Decider<'a>),
        wanted: &dyn Fn(Surface, u8, Cause) -> bool,
    ) -> Result<Vec<Answered>, SmtError> {
        let schema = schema(self.to.compiled)?;
        let mut slim = Slim::new(shape(self.to.compiled)?, plain_context());
        let tell = Teller { from: &self.from, to: &self.to, map: self.map };
        let mut failure = None;
        let mut real = |example: &Counterexample| -> Result<Option<Request>, String> {
            match self.realised(example, (before, after)) {
                Ok(found) => found.map(Some),
                Err(error) => {
                    failure = Some(error);
                    Err("it could not be evaluated".into())
                }
            }
        };
        let asks = |environment: &RequestEnv, cause: Cause| {
            // What carries a command is judged with the command.
            let carrier = match cause {
                Cause::Permit(at) => self.to.policy(at).is_some_and(|p| p.origin == Origin::Covered),
                Cause::Gone(_) => false,
            };
            !carrier && rung(environment.action()).is_some_and(|(surface, rung)| wanted(surface, rung, cause))
        };
        let outcomes = newly_allowed(
            engine,
            &schema,
            &self.from.version,
            &self.to.version,
            &asks,
            &mut real,
            Some((&mut slim, &tell)),
        )?;
        match failure {
            Some(error) => Err(defect(error)),
            None => Ok(outcomes.into_iter().filter_map(answered).collect()),
        }
    }

    /// Guardrails that are gone or changed and that the exact engine cannot read.
    fn lost(&self) -> Vec<&'a Guardrail> {
        let kept = &self.to.compiled.guardrails;
        let unread = (0..self.from.parts.len()).filter_map(|at| self.from.unread(at));
        unread.filter(|g| !kept.iter().any(|k| k.meaning == g.meaning)).collect()
    }

    fn lost_unread(&self) -> bool {
        !self.lost().is_empty()
    }

    /// What is open because no solver could be asked.
    fn unasked(&self, engines: Engines, error: &SmtError) -> Vec<Finding> {
        let help = "`polctl solver status` says what is looked for; this is never a pass";
        let mut out: Vec<Finding> = self
            .lost()
            .into_iter()
            .map(|guardrail| {
                let message = format!(
                    "the guardrail `{}` is gone or has changed, and only a solver can say what it stopped: {error}",
                    guardrail.id
                );
                Finding::new(Code::INCONCLUSIVE, guardrail.span, message).help(help)
            })
            .collect();
        if engines != Engines::Exact {
            let start = Span::new(self.to.compiled.set.config.file, 0, 0);
            let message = format!("the symbolic engine was wanted and could not be asked: {error}");
            out.push(Finding::new(Code::INCONCLUSIVE, start, message).help(help));
        }
        out
    }

    /// A real request that shows the same change as the solver's, or why there is none.
    fn realised(
        &self,
        example: &Counterexample,
        (before, after): (&mut Decider<'a>, &mut Decider<'a>),
    ) -> Result<Result<Request, String>, CompileError> {
        let Some((surface, rung)) = example.request.action().and_then(rung) else {
            return Ok(Err("it is on no surface".into()));
        };
        let candidates = match nearest(surface, &example.request, &self.to.compiled.set.config.zones) {
            Ok(candidates) => candidates,
            Err(why) => return Ok(Err(why)),
        };
        let mut why = None;
        for candidate in candidates {
            let facts = candidate.facts(self.zones);
            if after.allows(surface, &facts, rung)? && !before.allows(surface, &facts, rung)? {
                return Ok(Ok(candidate));
            }
            why = why.or_else(|| difference(&facts, &example.request));
        }
        Ok(Err(why.unwrap_or_else(|| "no command is just like it".into())))
    }
}

fn answered(outcome: Outcome) -> Option<Answered> {
    let (surface, rung) = rung(outcome.environment.action())?;
    let answer = match outcome.answer {
        Answer::None => return None,
        Answer::Found(example) => Second::Real { permits: example.permits, request: Box::new(example.real?) },
        Answer::Unreal(why) => Second::Unreal(why),
        Answer::Open(why) => Second::Open(why),
    };
    Some(Answered { surface, rung, cause: outcome.cause, answer })
}

/// The surface and the rung that an action is.
fn rung(action: &EntityUid) -> Option<(Surface, u8)> {
    let namespace = action.type_name().namespace();
    let surface = Surface::ALL.into_iter().find(|surface| surface.namespace() == namespace)?;
    Some((surface, action.id().unescaped().strip_prefix("tier")?.parse().ok()?))
}

/// Which engines judge.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Engines {
    /// The exact engine; the solver only for guardrails that it cannot read.
    #[default]
    Exact,
    /// The solver, about everything; the exact engine finds the real request where the solver's
    /// is none.
    Smt,
    /// Both, about everything.
    Both,
}

/// Takes the solver's answers into those of the exact engine. What the two do not agree on,
/// and what neither could decide, is returned as findings.
pub(super) fn join<'a>(
    run: &Run<'_, 'a>,
    engines: Engines,
    engine: &mut Engine,
    deciders: (&mut Decider<'a>, &mut Decider<'a>),
    wider: &mut Changes<'a>,
) -> Result<Vec<Finding>, SmtError> {
    let open: Vec<*const Policy> = wider.open.iter().map(|o| std::ptr::from_ref(o.policy)).collect();
    let is_open = |policy: Option<&Policy>| policy.is_some_and(|p| open.contains(&std::ptr::from_ref(p)));
    let unread = |cause: Cause| matches!(cause, Cause::Gone(at) if run.from.unread(at).is_some());
    let about = |cause: Cause| match cause {
        Cause::Permit(at) => run.to.policy(at),
        Cause::Gone(at) => run.from.policy(at),
    };
    let wanted = |_: Surface, _: u8, cause: Cause| engines != Engines::Exact || unread(cause) || is_open(about(cause));
    if engines == Engines::Exact && wider.open.is_empty() && !run.lost_unread() {
        return Ok(Vec::new());
    }
    let answers = match run.ask(engine, deciders, &wanted) {
        Ok(answers) => answers,
        Err(SmtError::Defect { what }) => return Err(SmtError::Defect { what }),
        Err(error) => return Ok(run.unasked(engines, &error)),
    };
    let mut join = Join { run, engines, found: BTreeSet::new(), findings: Vec::new(), open, kept: BTreeSet::new() };
    join.found.extend(wider.found.iter().flat_map(|c| c.rungs.iter().map(|rung| (c.surface, *rung))));
    let exact = join.found.clone();
    let mut seen = BTreeSet::new();
    for answer in answers {
        seen.insert((answer.surface, answer.rung));
        join.take(answer, &exact, wider);
    }
    if engines != Engines::Exact {
        for (surface, rung) in exact.difference(&seen) {
            join.disagree(*surface, *rung, "finds a request, and the solver proves that there is none");
        }
    }
    // What the solver proved is no longer open.
    let kept = join.kept;
    wider.open.retain(|o| kept.contains(&std::ptr::from_ref(o.policy)));
    Ok(join.findings)
}

struct Join<'j, 'r, 'a> {
    run: &'j Run<'r, 'a>,
    engines: Engines,
    /// Where something is known to be newly allowed.
    found: BTreeSet<(Surface, u8)>,
    findings: Vec<Finding>,
    open: Vec<*const Policy>,
    /// Open questions that stay open.
    kept: BTreeSet<*const Policy>,
}

impl<'a> Join<'_, '_, 'a> {
    fn take(&mut self, answered: Answered, exact: &BTreeSet<(Surface, u8)>, wider: &mut Changes<'a>) {
        let Answered { surface, rung, cause, answer } = answered;
        let (about, unread) = match cause {
            Cause::Permit(at) => (self.run.to.policy(at), None),
            Cause::Gone(at) => (self.run.from.policy(at), self.run.from.unread(at)),
        };
        let open = about.is_some_and(|p| self.open.contains(&std::ptr::from_ref(p)));
        match answer {
            Second::Real { request, permits } => {
                if self.found.insert((surface, rung)) {
                    let permit = permits.iter().find_map(|at| self.run.to.policy(*at)).or(about);
                    let gone = about.filter(|_| matches!(cause, Cause::Gone(_)));
                    if let Some(permit) = permit {
                        wider.found.push(Change {
                            surface,
                            rungs: BTreeSet::from([rung]),
                            witness: *request,
                            typed: None,
                            permit,
                            gone,
                            guardrail: unread,
                            tier_from: None,
                            tier_to: None,
                        });
                    }
                    if !open && unread.is_none() && !exact.contains(&(surface, rung)) {
                        self.disagree(surface, rung, "finds no request, and the solver one that is real");
                    }
                } else if let Some(change) =
                    wider.found.iter_mut().find(|c| c.surface == surface && c.guardrail.is_some())
                {
                    change.rungs.insert(rung);
                }
            }
            Second::Unreal(why) if open || unread.is_some() => {
                self.stays(about, unread, &format!("the solver's request is none that can occur: {why}"));
            }
            // The exact engine searched the real ones.
            Second::Unreal(_) => {}
            Second::Open(why) => {
                let decided = !open && unread.is_none();
                self.stays(about, unread, &why);
                if decided
                    && self.engines == Engines::Both
                    && let Some(finding) = self.findings.last_mut()
                {
                    finding.level = Level::Note;
                }
            }
        }
    }

    /// A question that stays open.
    fn stays(&mut self, about: Option<&'a Policy>, unread: Option<&'a Guardrail>, why: &str) {
        if let Some(guardrail) = unread {
            let message = format!("it could not be decided what the guardrail `{}` stopped: {why}", guardrail.id);
            self.findings.push(
                Finding::new(Code::INCONCLUSIVE, guardrail.span, message)
                    .help("keep the old guardrail beside the new one, or say it in simpler conditions"),
            );
            return;
        }
        let Some(policy) = about else { return };
        if self.open.contains(&std::ptr::from_ref(policy)) {
            self.kept.insert(std::ptr::from_ref(policy));
            return;
        }
        let side = if self.run.to.compiled.policies.iter().any(|p| std::ptr::eq(p, policy)) {
            &self.run.to
        } else {
            &self.run.from
        };
        self.findings.push(
            Finding::new(
                Code::INCONCLUSIVE,
                place(side.compiled, policy),
                format!("the solver could not judge this change: {why}"),
            )
            .help("`--engine exact` judges without a solver; or compare in smaller steps"),
        );
    }

    fn disagree(&mut self, surface: Surface, rung: u8, how: &str) {
        let file = self.run.to.compiled.set.config.file;
        self.findings.push(
            Finding::new(
                Code::INCONCLUSIVE,
                Span::new(file, 0, 0),
                format!("the two engines disagree on {surface} at tier {rung}: the exact engine {how}"),
            )
            .help("this is a defect of polctl; please report it with both versions"),
        );
    }
}
