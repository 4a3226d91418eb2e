//! Hand-written guardrails in the language of generated conditions, as far as they can be said
//! in it.
//!
//! The exact engine searches real requests, and every condition that it knows is an [`Expr`].
//! A guardrail whose Cedar says nothing else is turned into forbids over such conditions, for
//! the analysis alone: decisions are made by the guardrail as it is written. What cannot be
//! said exactly is not said at all, and is the symbolic engine's.

use std::collections::BTreeSet;

use cedar_policy::Policy as CedarPolicy;
use cedar_policy_core::ast::{self, BinaryOp, ExprKind, Literal, PatternElem, UnaryOp, Var};

use super::expr::{Address, Atom, Expr, Flag, SetAttr};
use super::{Effect, Guardrail, Origin, Policy};
use crate::model::{Glob, MAX_WORDS, Piece, PolicySet, RUNGS, Scheme, Surface, Zones};

/// The forbids that a guardrail is, on each surface; `None` in place of those of a surface
/// on which it says something that conditions cannot.
pub(super) fn translate(set: &PolicySet, index: usize, guardrail: &Guardrail) -> Vec<(Surface, Option<Vec<Policy>>)> {
    let Ok(parsed) = guardrail.parse() else { return Vec::new() };
    // One that permits is refused, and stops nothing.
    if parsed.effect() != cedar_policy::Effect::Forbid {
        return Vec::new();
    }
    let mut out = Vec::new();
    for surface in set.surfaces.keys().copied() {
        let rungs = rungs(&parsed, surface);
        if rungs.is_empty() {
            continue;
        }
        let inner: &ast::Policy = parsed.as_ref();
        let reader = Reader { surface, zones: &set.config.zones };
        let scope = [inner.principal_constraint().as_expr(), inner.resource_constraint().as_expr()];
        let said: Option<Vec<Expr>> = scope
            .iter()
            .map(|e| reader.condition(e))
            .chain(inner.non_scope_constraints().map(|e| reader.condition(e)))
            .collect();
        let forbids = said.map(|conditions| {
            let clauses: Vec<Expr> = conditions.into_iter().filter(|c| *c != Expr::TRUE).collect();
            ranges(&rungs)
                .into_iter()
                .map(|rungs| Policy {
                    id: format!("{surface}/{}/{}", guardrail.id, rungs.start),
                    surface,
                    effect: Effect::Forbid,
                    rungs,
                    clauses: clauses.clone(),
                    origin: Origin::Guardrail(index),
                    keys: None,
                })
                .collect()
        });
        out.push((surface, forbids));
    }
    out
}

/// The rungs of a surface that a guardrail's scope names.
fn rungs(policy: &CedarPolicy, surface: Surface) -> BTreeSet<u8> {
    let inner: &ast::Policy = policy.as_ref();
    let named = |uid: &ast::EntityUID| {
        let uid = uid.to_string();
        (0..RUNGS).find(|rung| uid == format!("{}::Action::\"tier{rung}\"", surface.namespace()))
    };
    match inner.action_constraint() {
        ast::ActionConstraint::Any => (0..RUNGS).collect(),
        ast::ActionConstraint::In(uids) => uids.iter().filter_map(|uid| named(uid)).collect(),
        ast::ActionConstraint::Eq(uid) => named(uid).into_iter().collect(),
    }
}

/// A set of rungs as ranges.
fn ranges(rungs: &BTreeSet<u8>) -> Vec<std::ops::Range<u8>> {
    let mut out: Vec<std::ops::Range<u8>> = Vec::new();
    for rung in rungs {
        match out.last_mut() {
            Some(last) if last.end == *rung => last.end += 1,
            _ => out.push(*rung..rung + 1),
        }
    }
    out
}

struct Reader<'a> {
    surface: Surface,
    zones: &'a Zones,
}

/// What a place of the request holds.
enum Place {
    Flag(Flag),
    Set(SetAttr),
    Unknown,
    Program,
    RunAs,
    Word(usize),
    Count,
    Method,
    Scheme,
    Host,
    Port,
    Address(Address),
}

impl Reader<'_> {
    /// A condition, if it can be said. Strict validation has seen it, so that nothing in it
    /// is read that may be missing, and its parts can be judged in any order.
    fn condition(&self, expr: &ast::Expr) -> Option<Expr> {
        match expr.expr_kind() {
            ExprKind::Lit(Literal::Bool(truth)) => Some(if *truth { Expr::TRUE } else { Expr::FALSE }),
            ExprKind::And { left, right } => Some(Expr::All(vec![self.condition(left)?, self.condition(right)?])),
            ExprKind::Or { left, right } => Some(Expr::One(vec![self.condition(left)?, self.condition(right)?])),
            ExprKind::If { test_expr, then_expr, else_expr } => {
                let test = self.condition(test_expr)?;
                let then = Expr::All(vec![test.clone(), self.condition(then_expr)?]);
                Some(Expr::One(vec![then, Expr::All(vec![test.negated(), self.condition(else_expr)?])]))
            }
            ExprKind::UnaryApp { op: UnaryOp::Not, arg } => Some(self.condition(arg)?.negated()),
            ExprKind::UnaryApp { op: UnaryOp::IsEmpty, arg } => match self.place(arg)? {
                Place::Set(set) => Some(Atom::Empty(set).into()),
                Place::Unknown => Some(Atom::AllKnown.into()),
                _ => None,
            },
            ExprKind::BinaryApp { op, arg1, arg2 } => self.relation(*op, arg1, arg2),
            ExprKind::HasAttr { expr, attr } if is_context(expr) => match self.named(attr) {
                // What this surface does not declare is never there.
                None if attr != "line" || self.surface == Surface::Egress => Some(Expr::FALSE),
                Some(Place::RunAs) if self.surface != Surface::Sudo => Some(Expr::FALSE),
                Some(Place::Word(position)) if position == 0 || position > MAX_WORDS => Some(Expr::FALSE),
                Some(Place::Word(position)) => Some(Atom::Word(position, vec![Glob::any()]).into()),
                // An address that is there is in one of these.
                Some(Place::Address(which)) => {
                    let all = ["0.0.0.0/0", "::/0"].iter().filter_map(|net| net.parse().ok()).collect();
                    Some(Atom::InNetwork(which, all).into())
                }
                _ => Some(Expr::TRUE),
            },
            ExprKind::Like { expr, pattern } => {
                let pieces = pattern.iter().map(|elem| match elem {
                    PatternElem::Char(c) => Piece::Text(c.to_string()),
                    PatternElem::Wildcard => Piece::Any,
                });
                Self::text_is(&self.place(expr)?, vec![Glob::new(pieces)])
            }
            ExprKind::Is { expr, entity_type } => {
                let kind = match expr.expr_kind() {
                    ExprKind::Var(Var::Principal) => "Agent",
                    ExprKind::Var(Var::Resource) => "Host",
                    _ => return None,
                };
                let is = entity_type.to_string() == format!("{}::{kind}", self.surface.namespace());
                Some(if is { Expr::TRUE } else { Expr::FALSE })
            }
            ExprKind::ExtensionFunctionApp { fn_name, args } if fn_name.to_string() == "isInRange" => {
                let [address, range] = args.as_slice() else { return None };
                let Place::Address(which) = self.place(address)? else { return None };
                Some(Atom::InNetwork(which, vec![network(range)?]).into())
            }
            ExprKind::GetAttr { .. } => match self.place(expr)? {
                Place::Flag(flag) => Some(Atom::Flag(flag).into()),
                _ => None,
            },
            _ => None,
        }
    }

    fn relation(&self, op: BinaryOp, left: &ast::Expr, right: &ast::Expr) -> Option<Expr> {
        match op {
            BinaryOp::Eq => self.equal(left, right).or_else(|| self.equal(right, left)),
            BinaryOp::Contains => match (texts(left), self.place(left)) {
                (Some(names), _) => match right.expr_kind() {
                    ExprKind::Var(_) => None,
                    _ => Self::text_is(&self.place(right)?, names.iter().map(|n| Glob::literal(n)).collect()),
                },
                (_, Some(Place::Set(set))) => self.has_any(set, vec![text(right)?]),
                (_, Some(Place::Unknown)) => Some(Atom::WordUnknown(number(right)?).into()),
                _ => self.entity_in(right, &members(left)?),
            },
            BinaryOp::ContainsAny => match self.place(left)? {
                Place::Set(set) => self.has_any(set, texts(right)?),
                _ => None,
            },
            BinaryOp::ContainsAll => match (self.place(left), texts(left)) {
                (Some(Place::Set(set)), _) => {
                    let each = texts(right)?.into_iter().map(|name| self.has_any(set, vec![name]));
                    Some(Expr::All(each.collect::<Option<_>>()?))
                }
                (_, Some(names)) => match self.place(right)? {
                    Place::Set(set) => self.sayable(set, &names).then(|| Atom::Within(set, names).into()),
                    _ => None,
                },
                _ => None,
            },
            // Entities of these types have no parents, so `in` is equality.
            BinaryOp::In => match right.expr_kind() {
                ExprKind::Set(_) => self.entity_in(left, &members(right)?),
                _ => self.entity_in(left, &[member(right)?]),
            },
            BinaryOp::Less => self.below(left, right, 0),
            BinaryOp::LessEq => self.below(left, right, 1),
            _ => None,
        }
    }

    fn equal(&self, place: &ast::Expr, value: &ast::Expr) -> Option<Expr> {
        if let Some(uid) = member(value) {
            return self.entity_in(place, &[uid]);
        }
        match (self.place(place)?, value.expr_kind()) {
            (Place::Flag(flag), ExprKind::Lit(Literal::Bool(truth))) => {
                let flag = Expr::from(Atom::Flag(flag));
                Some(if *truth { flag } else { flag.negated() })
            }
            (Place::Count, _) => Some(Atom::CountIs(number(value)?).into()),
            (Place::Port, _) => Some(Atom::Port(u16::try_from(number(value)?).ok()?).into()),
            (place, _) => Self::text_is(&place, vec![Glob::literal(&text(value)?)]),
        }
    }

    /// `left < right`, or with `slack` 1 `left <= right`, where one side is the number of words.
    fn below(&self, left: &ast::Expr, right: &ast::Expr, slack: usize) -> Option<Expr> {
        let at_least = |n: usize| if n == 0 { Expr::TRUE } else { Atom::CountAtLeast(n).into() };
        match (self.place(left), self.place(right)) {
            (Some(Place::Count), None) => Some(at_least(number(right)?.checked_add(slack)?).negated()),
            (None, Some(Place::Count)) => Some(at_least(number(left)?.checked_add(1 - slack)?)),
            _ => None,
        }
    }

    /// That the text at a place matches one of these.
    fn text_is(place: &Place, globs: Vec<Glob>) -> Option<Expr> {
        let literals = || globs.iter().map(|g| g.as_literal().map(str::to_owned)).collect::<Option<Vec<_>>>();
        Some(match place {
            Place::Program => Atom::Program(globs).into(),
            Place::Word(position) => Atom::Word(*position, globs).into(),
            Place::Host => Atom::HostName(globs).into(),
            Place::RunAs => Atom::RunAs(literals()?).into(),
            Place::Method => Atom::Method(literals()?).into(),
            Place::Scheme => {
                let named = |glob: &Glob| {
                    let scheme = Scheme::ALL.into_iter().find(|s| Some(s.name()) == glob.as_literal());
                    scheme.map_or(Expr::FALSE, |scheme| Atom::Scheme(scheme).into())
                };
                literals()?;
                Expr::One(globs.iter().map(named).collect())
            }
            _ => return None,
        })
    }

    fn has_any(&self, set: SetAttr, names: Vec<String>) -> Option<Expr> {
        self.sayable(set, &names).then(|| Atom::HasAny(set, names).into())
    }

    /// Whether real requests can have each of these names in a set; about others the search
    /// would make requests up.
    fn sayable(&self, set: SetAttr, names: &[String]) -> bool {
        let zone = |name: &String| {
            [Zones::ELSEWHERE, Zones::UNKNOWN].contains(&name.as_str()) || self.zones.names().any(|zone| zone == name)
        };
        let option =
            |name: &String| name.len() > 1 && name.starts_with('-') && name != "--" && !name.contains(['=', '*', ' ']);
        match set {
            SetAttr::Options | SetAttr::Certain | SetAttr::Globals => names.iter().all(option),
            SetAttr::Writes | SetAttr::Names => names.iter().all(zone),
            SetAttr::Env | SetAttr::Wrappers | SetAttr::Secrets => names.iter().all(|name| !name.is_empty()),
        }
    }

    /// That who asks, or where, is one of these.
    fn entity_in(&self, of: &ast::Expr, uids: &[ast::EntityUID]) -> Option<Expr> {
        let (kind, make): (&str, fn(Vec<String>) -> Atom) = match of.expr_kind() {
            ExprKind::Var(Var::Principal) => ("Agent", Atom::Agent),
            ExprKind::Var(Var::Resource) => ("Host", Atom::Machine),
            _ => return None,
        };
        let kind = format!("{}::{kind}", self.surface.namespace());
        let of_kind = uids.iter().filter(|uid| uid.entity_type().to_string() == kind);
        let names: Vec<String> = of_kind.map(|uid| AsRef::<str>::as_ref(uid.eid()).to_owned()).collect();
        Some(if names.is_empty() { Expr::FALSE } else { make(names).into() })
    }

    fn place(&self, expr: &ast::Expr) -> Option<Place> {
        match expr.expr_kind() {
            ExprKind::GetAttr { expr, attr } if is_context(expr) => self.named(attr),
            _ => None,
        }
    }

    /// The place that an attribute of this surface's context is.
    fn named(&self, name: &str) -> Option<Place> {
        let egress = self.surface == Surface::Egress;
        let word = name.strip_prefix(if egress { "seg" } else { "arg" });
        if let Some(position) = word.and_then(|n| n.parse::<usize>().ok()) {
            return Some(Place::Word(position));
        }
        Some(match (name, egress) {
            ("external", _) => Place::Flag(Flag::External),
            ("trusted", false) => Place::Flag(Flag::Trusted),
            ("harmless", false) => Place::Flag(Flag::Harmless),
            ("dynamic", false) => Place::Flag(Flag::Dynamic),
            ("open", false) => Place::Flag(Flag::Open),
            ("many", false) => Place::Flag(Flag::Many),
            ("covered", false) => Place::Flag(Flag::Covered),
            ("program", false) => Place::Program,
            ("run_as", false) => Place::RunAs,
            ("argc", false) | ("segc", true) => Place::Count,
            ("options", false) => Place::Set(SetAttr::Options),
            ("certain", false) => Place::Set(SetAttr::Certain),
            ("globals", false) => Place::Set(SetAttr::Globals),
            ("writes", false) => Place::Set(SetAttr::Writes),
            ("names", false) => Place::Set(SetAttr::Names),
            ("env", false) => Place::Set(SetAttr::Env),
            ("wrappers", false) => Place::Set(SetAttr::Wrappers),
            ("unknown", false) => Place::Unknown,
            ("secrets", true) => Place::Set(SetAttr::Secrets),
            ("method", true) => Place::Method,
            ("scheme", true) => Place::Scheme,
            ("host", true) => Place::Host,
            ("port", true) => Place::Port,
            ("address", true) => Place::Address(Address::Host),
            ("peer", true) => Place::Address(Address::Peer),
            _ => return None,
        })
    }
}

fn is_context(expr: &ast::Expr) -> bool {
    matches!(expr.expr_kind(), ExprKind::Var(Var::Context))
}

fn text(expr: &ast::Expr) -> Option<String> {
    match expr.expr_kind() {
        ExprKind::Lit(Literal::String(text)) => Some(text.to_string()),
        _ => None,
    }
}

fn texts(expr: &ast::Expr) -> Option<Vec<String>> {
    match expr.expr_kind() {
        ExprKind::Set(members) => members.iter().map(text).collect(),
        _ => None,
    }
}

fn number(expr: &ast::Expr) -> Option<usize> {
    match expr.expr_kind() {
        ExprKind::Lit(Literal::Long(number)) => usize::try_from(*number).ok(),
        _ => None,
    }
}

fn member(expr: &ast::Expr) -> Option<ast::EntityUID> {
    match expr.expr_kind() {
        ExprKind::Lit(Literal::EntityUID(uid)) => Some(uid.as_ref().clone()),
        _ => None,
    }
}

fn members(expr: &ast::Expr) -> Option<Vec<ast::EntityUID>> {
    match expr.expr_kind() {
        ExprKind::Set(members) => members.iter().map(member).collect(),
        _ => None,
    }
}

/// The network that `ip("…")` writes.
fn network(expr: &ast::Expr) -> Option<ipnet::IpNet> {
    let ExprKind::ExtensionFunctionApp { fn_name, args } = expr.expr_kind() else { return None };
    let [written] = args.as_slice() else { return None };
    let written = text(written).filter(|_| fn_name.to_string() == "ip")?;
    written.parse().ok().or_else(|| written.parse::<std::net::IpAddr>().ok().map(ipnet::IpNet::from))
}
