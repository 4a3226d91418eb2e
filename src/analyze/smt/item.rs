//! One policy of a version as the symbolic engine sees it: what it demands by its shape alone,
//! and its Cedar, made when it is first needed.
//!
//! What a policy demands by shape only ever rules it out: a request that differs from a literal
//! that a conjunct of the condition demands cannot satisfy the policy, whether the rest of it
//! holds, does not hold or cannot be evaluated.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use cedar_policy::{EntityUid, EvalResult, Policy, Request, RequestEnv};
use cedar_policy_core::ast::{self, BinaryOp, ExprKind, Literal, Var};

use super::SmtError;
use crate::compile::Effect;

/// A place of the request: `context.tool`, `principal`, `resource.type`.
type Path = String;
/// Literals that the place must be one of.
pub(super) type Demands = BTreeMap<Path, BTreeSet<String>>;

/// Which actions a policy's scope names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Actions {
    /// Any.
    Any,
    /// These, or members of them.
    Of(Vec<EntityUid>),
}

/// Where the Cedar of a policy comes from.
type Source<'a> = Box<dyn Fn() -> Result<Policy, SmtError> + 'a>;

/// A policy of a version.
pub(crate) struct Item<'a> {
    /// Permit or forbid.
    pub(crate) effect: Effect,
    /// The actions of its scope.
    pub(crate) actions: Actions,
    /// Equal numbers, equal meaning: a policy that stands in both versions is no change.
    pub(crate) meaning: u64,
    demands: Demands,
    policy: OnceCell<Policy>,
    blind: OnceCell<bool>,
    source: Source<'a>,
}

impl<'a> Item<'a> {
    /// A policy that is parsed already.
    pub(crate) fn parsed(policy: Policy, meaning: u64) -> Self {
        let effect = match policy.effect() {
            cedar_policy::Effect::Permit => Effect::Permit,
            cedar_policy::Effect::Forbid => Effect::Forbid,
        };
        let inner: &ast::Policy = policy.as_ref();
        let actions = match inner.action_constraint() {
            ast::ActionConstraint::In(uids) => Actions::Of(uids.iter().map(public).collect()),
            ast::ActionConstraint::Eq(uid) => Actions::Of(vec![public(uid)]),
            ast::ActionConstraint::Any => Actions::Any,
        };
        let demands = demands(&inner.condition());
        let source = Box::new(|| Err(SmtError::Defect { what: "a parsed policy is missing".into() }));
        Item { effect, actions, meaning, demands, policy: OnceCell::from(policy), blind: OnceCell::new(), source }
    }

    /// A policy that is made when it is needed. `demands`: places with the literals that they
    /// must be one of.
    pub(crate) fn lazy(
        effect: Effect,
        actions: Vec<EntityUid>,
        meaning: u64,
        demands: Vec<(&str, Vec<String>)>,
        source: impl Fn() -> Result<Policy, SmtError> + 'a,
    ) -> Self {
        let text = |value: String| format!("s:{value}");
        let demands = demands
            .into_iter()
            .map(|(path, values)| (path.to_owned(), values.into_iter().map(text).collect()))
            .collect();
        let source: Source<'a> = Box::new(source);
        Item {
            effect,
            actions: Actions::Of(actions),
            meaning,
            demands,
            policy: OnceCell::new(),
            blind: OnceCell::new(),
            source,
        }
    }

    /// Its Cedar.
    pub(crate) fn policy(&self) -> Result<&Policy, SmtError> {
        if let Some(policy) = self.policy.get() {
            return Ok(policy);
        }
        let made = (self.source)()?;
        Ok(self.policy.get_or_init(|| made))
    }

    /// The texts that attributes of the context must be one of, by the attribute's name.
    pub(crate) fn texts(&self) -> impl Iterator<Item = (String, BTreeSet<String>)> {
        self.demands.iter().filter_map(|(path, values)| {
            let name = path.strip_prefix("context.").filter(|name| !name.contains('.'))?;
            let texts = values.iter().map(|value| value.strip_prefix("s:").map(str::to_owned));
            Some((name.to_owned(), texts.collect::<Option<_>>()?))
        })
    }

    /// Whether it says nothing of who asks and about what, so that it means the same for all
    /// types of both.
    pub(super) fn is_blind(&self) -> bool {
        *self.blind.get_or_init(|| {
            self.policy().is_ok_and(|policy| {
                let inner: &ast::Policy = policy.as_ref();
                let scope = [inner.principal_constraint().as_expr(), inner.resource_constraint().as_expr()];
                let named = |e: &ast::Expr| {
                    matches!(e.expr_kind(), ExprKind::Var(Var::Principal | Var::Resource | Var::Action))
                };
                let conditions = scope.iter().chain(inner.non_scope_constraints());
                !conditions.flat_map(ast::Expr::subexpressions).any(named)
            })
        })
    }

    /// Whether no request can satisfy both, by shape alone.
    pub(super) fn excludes(&self, other: &Item<'_>) -> bool {
        self.demands.iter().any(|(path, own)| other.demands.get(path).is_some_and(|theirs| own.is_disjoint(theirs)))
    }

    /// Whether some place is demanded to be the same by both.
    pub(super) fn resembles(&self, other: &Item<'_>) -> bool {
        self.demands.iter().any(|(path, own)| {
            !path.ends_with(".type") && other.demands.get(path).is_some_and(|theirs| !own.is_disjoint(theirs))
        })
    }

    /// Whether its scope takes an action, and the types of an environment are among those
    /// that it demands.
    fn fits(&self, above: &BTreeSet<EntityUid>, types: &[(&str, String)]) -> bool {
        let acts = match &self.actions {
            Actions::Any => true,
            Actions::Of(uids) => uids.iter().any(|uid| above.contains(uid)),
        };
        acts && types.iter().all(|(path, name)| self.demands.get(*path).is_none_or(|own| own.contains(name)))
    }
}

fn public(uid: &Arc<ast::EntityUID>) -> EntityUid {
    EntityUid::from(uid.as_ref().clone())
}

/// What the conjuncts of a condition demand to be one of some literals.
fn demands(condition: &ast::Expr) -> Demands {
    let mut out = Demands::new();
    let mut open = vec![condition];
    while let Some(expr) = open.pop() {
        if let ExprKind::And { left, right } = expr.expr_kind() {
            open.extend([left.as_ref(), right.as_ref()]);
            continue;
        }
        let Some((path, values)) = one_of(expr) else { continue };
        if let Some(kind) = path.strip_suffix(".type").is_none().then(|| types(&values)).flatten() {
            narrow(&mut out, format!("{path}.type"), kind);
        }
        narrow(&mut out, path, values);
    }
    out
}

fn narrow(demands: &mut Demands, path: Path, values: BTreeSet<String>) {
    match demands.get_mut(&path) {
        Some(known) => known.retain(|value| values.contains(value)),
        None => {
            demands.insert(path, values);
        }
    }
}

/// The types of entity literals.
fn types(values: &BTreeSet<String>) -> Option<BTreeSet<String>> {
    let of = |value: &String| Some(format!("t:{}", value.strip_prefix("e:")?.split("::\"").next()?));
    values.iter().map(of).collect()
}

/// A condition that says that a place is one of some literals.
fn one_of(expr: &ast::Expr) -> Option<(Path, BTreeSet<String>)> {
    match expr.expr_kind() {
        ExprKind::BinaryApp { op: BinaryOp::Eq, arg1, arg2 } => {
            let (path, value) = match (path(arg1), literal(arg2)) {
                (Some(path), Some(value)) => (path, value),
                _ => (path(arg2)?, literal(arg1)?),
            };
            Some((path, BTreeSet::from([value])))
        }
        ExprKind::BinaryApp { op: BinaryOp::Contains, arg1, arg2 } => {
            let ExprKind::Set(members) = arg1.expr_kind() else { return None };
            Some((path(arg2)?, members.iter().map(literal).collect::<Option<_>>()?))
        }
        ExprKind::Is { expr, entity_type } => {
            Some((format!("{}.type", path(expr)?), BTreeSet::from([format!("t:{entity_type}")])))
        }
        ExprKind::Or { left, right } => {
            let ((here, mut values), (there, more)) = (one_of(left)?, one_of(right)?);
            values.extend(more);
            (here == there).then_some((here, values))
        }
        _ => None,
    }
}

fn path(expr: &ast::Expr) -> Option<Path> {
    match expr.expr_kind() {
        ExprKind::Var(Var::Principal) => Some("principal".into()),
        ExprKind::Var(Var::Resource) => Some("resource".into()),
        ExprKind::Var(Var::Context) => Some("context".into()),
        ExprKind::GetAttr { expr, attr } => {
            path(expr).filter(|p| p.starts_with("context")).map(|p| format!("{p}.{attr}"))
        }
        _ => None,
    }
}

fn literal(expr: &ast::Expr) -> Option<String> {
    match expr.expr_kind() {
        ExprKind::Lit(Literal::String(text)) => Some(format!("s:{text}")),
        ExprKind::Lit(Literal::Long(number)) => Some(format!("n:{number}")),
        ExprKind::Lit(Literal::Bool(truth)) => Some(format!("b:{truth}")),
        ExprKind::Lit(Literal::EntityUID(uid)) => Some(format!("e:{uid}")),
        _ => None,
    }
}

/// The policies of a version, found by what a request says.
pub(crate) struct Index<'a> {
    pub(crate) items: Vec<Item<'a>>,
    /// By place and literal.
    by: HashMap<Path, HashMap<String, Vec<usize>>>,
    /// Those that demand nothing that a lookup could use.
    rest: Vec<usize>,
}

impl<'a> Index<'a> {
    /// Indexes policies.
    pub(crate) fn new(items: Vec<Item<'a>>) -> Self {
        let mut by: HashMap<Path, HashMap<String, Vec<usize>>> = HashMap::new();
        let mut rest = Vec::new();
        for (at, item) in items.iter().enumerate() {
            let usable = item.demands.iter().filter(|(path, _)| !path.ends_with(".type"));
            // Few literals say the most; a place of the context more than who asks.
            let best = usable.min_by_key(|(path, values)| (!path.starts_with("context"), values.len()));
            match best {
                None => rest.push(at),
                Some((path, values)) => {
                    let places = by.entry(path.clone()).or_default();
                    values.iter().for_each(|value| places.entry(value.clone()).or_default().push(at));
                }
            }
        }
        Index { items, by, rest }
    }

    /// Positions of the policies that may be satisfied by a request.
    pub(super) fn candidates(&self, request: &Request) -> Vec<usize> {
        let mut out = self.rest.clone();
        for (path, places) in &self.by {
            if let Some(found) = value_at(request, path).and_then(|value| places.get(&value)) {
                out.extend(found);
            }
        }
        out.sort_unstable();
        out
    }

    /// Positions of the policies of an effect that may apply in an environment.
    pub(super) fn in_environment(&self, effect: Effect, environment: &RequestEnv, groups: &Groups) -> Vec<usize> {
        let above = groups.above(environment.action());
        let types = [("principal.type", environment.principal()), ("resource.type", environment.resource())];
        let types = types.map(|(path, name)| (path, format!("t:{name}")));
        let applies = |item: &Item<'_>| item.effect == effect && item.fits(&above, &types);
        self.items.iter().enumerate().filter(|(_, item)| applies(item)).map(|(at, _)| at).collect()
    }
}

/// The literal that a request has at a place, as policies write it.
fn value_at(request: &Request, path: &str) -> Option<String> {
    let entity = |uid: Option<&EntityUid>| uid.map(|uid| format!("e:{uid}"));
    match path {
        "principal" => return entity(request.principal()),
        "resource" => return entity(request.resource()),
        _ => {}
    }
    let mut names = path.split('.').skip(1);
    let mut value = request.context()?.get(names.next()?)?;
    for name in names {
        value = match value {
            EvalResult::Record(record) => record.get(name)?.clone(),
            _ => return None,
        };
    }
    match value {
        EvalResult::String(text) => Some(format!("s:{text}")),
        EvalResult::Long(number) => Some(format!("n:{number}")),
        EvalResult::Bool(truth) => Some(format!("b:{truth}")),
        EvalResult::EntityUid(uid) => Some(format!("e:{uid}")),
        _ => None,
    }
}

/// Which actions are members of which, in a version.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Groups(BTreeMap<EntityUid, BTreeSet<EntityUid>>);

impl Groups {
    /// The groups of a schema's actions.
    pub(crate) fn of(schema: &cedar_policy::Schema) -> Result<Self, SmtError> {
        let entities = schema.action_entities().map_err(|e| SmtError::Defect { what: e.to_string() })?;
        let groups = entities.iter().map(|action| {
            let above = entities.ancestors(&action.uid()).into_iter().flatten().cloned();
            (action.uid(), above.chain([action.uid()]).collect())
        });
        Ok(Groups(groups.collect()))
    }

    /// An action and all that it is a member of.
    fn above(&self, action: &EntityUid) -> BTreeSet<EntityUid> {
        self.0.get(action).cloned().unwrap_or_else(|| BTreeSet::from([action.clone()]))
    }
}
