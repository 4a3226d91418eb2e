//! The ladder: what a rung allows, the next and more controlled one allows as well (DESIGN 5).
//!
//! Generated policies have this by construction, and it is checked all the same. A guardrail
//! written by hand breaks it when it forbids a rung and not the one below.

use std::collections::{BTreeMap, BTreeSet};

use cedar_policy::{ActionConstraint, EntityUid};

use super::{AnalyzeError, View};
use crate::analyze::explain::place;
use crate::compile::{Atom, CAPABILITIES, Effect, Expr, Guardrail, Policy, SetAttr};
use crate::diag::{Code, Finding};
use crate::model::{CAPABILITY_RUNGS, RUNGS, RiskTier};

pub(super) fn lint(view: &View<'_>, out: &mut Vec<Finding>) -> Result<(), AnalyzeError> {
    for policy in view.compiled.policies.iter().filter(|p| p.effect == Effect::Permit && p.rungs.end < RUNGS) {
        out.extend(permit(view, policy));
    }
    for guardrail in &view.compiled.guardrails {
        out.extend(hand_written(guardrail)?);
    }
    Ok(())
}

/// A permit at a rung must have one at the next with no more conditions.
fn permit(view: &View<'_>, policy: &Policy) -> Option<Finding> {
    let next = policy.rungs.end;
    let mut above = view.related(policy).filter(|p| p.effect == Effect::Permit && p.rungs.contains(&next));
    if above.any(|p| weaker(p, policy)) {
        return None;
    }
    let message = format!("tier {} allows what tier {next} does not", next.saturating_sub(1));
    Some(
        Finding::new(Code::NOT_CONTAINED, place(view.compiled, policy), message)
            .help("this is a defect of polctl; please report it with the rule"),
    )
}

/// Whether every condition of `weak` is one of `strong`, or follows from one of them.
fn weaker(weak: &Policy, strong: &Policy) -> bool {
    fn parts(policy: &Policy) -> impl Iterator<Item = &Expr> {
        policy.clauses.iter().flat_map(|clause| match clause {
            Expr::All(parts) => parts.as_slice(),
            other => std::slice::from_ref(other),
        })
    }
    let writes_nothing = |part: &Expr| *part == Expr::Atom(Atom::Empty(SetAttr::Writes));
    parts(weak).all(|part| {
        parts(strong).any(|own| own == part)
            || matches!(part, Expr::Atom(Atom::Within(SetAttr::Writes, _))) && parts(strong).any(writes_nothing)
    })
}

/// A guardrail's actions: with a rung of a ladder, all below it.
fn hand_written(guardrail: &Guardrail) -> Result<Vec<Finding>, AnalyzeError> {
    let policy = guardrail.parse()?;
    let actions = match policy.action_constraint() {
        ActionConstraint::Any => Vec::new(),
        ActionConstraint::Eq(action) => vec![action],
        ActionConstraint::In(actions) => actions,
    };
    if speaks_of_actions(&policy) {
        return Ok(vec![
            Finding::new(
                Code::INCONCLUSIVE,
                guardrail.span,
                format!("`{}` has a condition on the action, so it cannot be told which tiers it stops", guardrail.id),
            )
            .help("name the actions in the head of the policy, and no action in `when` and `unless`"),
        ]);
    }
    let mut forbidden: BTreeMap<String, BTreeSet<u8>> = BTreeMap::new();
    for (ladder, rung) in actions.iter().filter_map(rung) {
        forbidden.entry(ladder).or_default().insert(rung);
    }
    Ok(forbidden.iter().filter_map(|(ladder, rungs)| broken(guardrail, ladder, rungs)).collect())
}

/// Whether the conditions name the action: then the head does not tell what it is about.
fn speaks_of_actions(policy: &cedar_policy::Policy) -> bool {
    fn names(value: &serde_json::Value) -> bool {
        match value {
            serde_json::Value::Object(fields) => {
                fields.iter().any(|(key, value)| key == "Var" && value.as_str() == Some("action") || names(value))
            }
            serde_json::Value::Array(values) => values.iter().any(names),
            _ => false,
        }
    }
    // What cannot be written as JSON was refused when it was read.
    policy.to_json().is_ok_and(|json| json.get("conditions").is_some_and(names))
}

/// The ladder that an action is a rung of, and its height.
fn rung(action: &EntityUid) -> Option<(String, u8)> {
    let (kind, id) = (action.type_name(), action.id());
    let id: &str = id.unescaped();
    if kind.namespace() == CAPABILITIES {
        let (class, name) = id.rsplit_once('/')?;
        let rung = RiskTier::ALL.iter().position(|tier| tier.name() == name)?;
        return Some((format!("{kind}::\"{class}/"), u8::try_from(rung).ok()?));
    }
    let rung = id.strip_prefix("tier")?.parse().ok()?;
    Some((format!("{kind}::\"tier"), rung))
}

/// The name of a rung, without that of its ladder.
fn name(ladder: &str, rung: u8) -> String {
    match RiskTier::ALL.get(usize::from(rung)).filter(|_| ladder.ends_with('/')) {
        Some(tier) => tier.name().to_owned(),
        None => rung.to_string(),
    }
}

/// The finding about a rung that is forbidden above one that is not.
fn broken(guardrail: &Guardrail, ladder: &str, rungs: &BTreeSet<u8>) -> Option<Finding> {
    let height = if ladder.ends_with('/') { CAPABILITY_RUNGS } else { RUNGS };
    let above = (1..height).find(|rung| rungs.contains(rung) && !rungs.contains(&(rung - 1)))?;
    let full = |rung: u8| format!("{ladder}{}\"", name(ladder, rung));
    let missing: Vec<String> = (0..above).filter(|rung| !rungs.contains(rung)).map(full).collect();
    let message = format!(
        "`{}` forbids `{}` and not `{}`: what it stops there still runs with less control",
        guardrail.id,
        full(above),
        full(above - 1)
    );
    Some(
        Finding::new(Code::NOT_CONTAINED, guardrail.span, message)
            .help(format!("add `{}` to its actions, or leave the action open", missing.join("`, `"))),
    )
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Set, codes};

    fn head(action: &str) -> Vec<crate::diag::Finding> {
        let text = format!("forbid (principal, {action}, resource) when {{ context.program == \"cat\" }};");
        Set::new().map("a.md", "commands", "## Tier 0\n- `ls **`").guardrail(&text).lint()
    }

    #[test]
    fn a_guardrail_forbids_every_rung_below() {
        let of = |rungs: &[u8]| {
            let names: Vec<String> = rungs.iter().map(|r| format!("Commands::Action::\"tier{r}\"")).collect();
            codes(&head(&format!("action in [{}]", names.join(", "))))
        };
        for whole in [&[0][..], &[0, 1], &[0, 1, 2], &[0, 1, 2, 3]] {
            assert_eq!(of(whole), [""; 0], "{whole:?}");
        }
        for gap in [&[1][..], &[2], &[3], &[0, 2], &[0, 1, 3], &[2, 3], &[1, 2, 3]] {
            assert_eq!(of(gap), ["not-contained"], "{gap:?}");
        }
        assert_eq!(codes(&head("action")), [""; 0]);
        assert_eq!(codes(&head("action == Commands::Action::\"tier2\"")), ["not-contained"]);
    }

    #[test]
    fn the_message_says_what_to_add() {
        let found = head("action == Commands::Action::\"tier2\"");
        assert_eq!(
            found[0].help.as_deref(),
            Some(
                "add `Commands::Action::\"tier0\"`, `Commands::Action::\"tier1\"` to its actions, or leave the action open"
            )
        );
    }

    #[test]
    fn a_condition_on_the_action_is_no_pass() {
        let text = "forbid (principal, action, resource) when { action == Commands::Action::\"tier2\" };";
        let found = Set::new().map("a.md", "commands", "## Tier 0\n- `ls **`").guardrail(text).lint();
        assert_eq!(codes(&found), ["inconclusive"]);
    }

    #[test]
    fn each_class_of_capabilities_is_a_ladder() {
        let of = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|n| format!("Capabilities::Action::\"{n}\"")).collect();
            let text = format!("forbid (principal, action in [{}], resource);", names.join(", "));
            codes(&Set::new().map("a.md", "commands", "## Tier 0\n- `ls **`").manifest().guardrail(&text).lint())
        };
        assert_eq!(of(&["gpu/auto", "gpu/notify"]), [""; 0]);
        assert_eq!(of(&["gpu/ask"]), ["not-contained"]);
        assert_eq!(of(&["gpu/auto", "clipboard/notify"]), ["not-contained"]);
    }
}
