//! Sudo rules that the map of commands makes useless: what a rule of tier 4 denies is denied
//! behind `sudo`, too (docs/command-lines.md), so the sudo rule is shadowed across surfaces.

use super::stopped::{Stopped, related, stopped, undecided};
use super::{View, on_behalf_of};
use crate::analyze::sample::words;
use crate::compile::{Atom, Expr, SetAttr};
use crate::diag::{Code, Finding};
use crate::model::{RUNGS, Request, Rule, Surface, Tier};

/// What denies a command behind `sudo`: forbids at the highest rung.
const DENIED: u8 = RUNGS - 1;

pub(super) fn lint(view: &View<'_>, out: &mut Vec<Finding>) {
    if !view.compiled.set.surfaces.contains_key(&Surface::Commands) {
        return;
    }
    for (index, rule) in view.rules().filter(|(_, r)| r.surface == Surface::Sudo && r.tier < Tier::DENY) {
        let Some(permit) = view.permit_of(index, rule) else { continue };
        if words(rule, false).and_then(|r| twin(on_behalf_of(rule, r))).is_some_and(|r| against(view, &r).is_empty()) {
            continue;
        }
        let behind: Expr = Atom::HasAny(SetAttr::Wrappers, vec!["sudo".into()]).into();
        let conditions: Vec<Expr> = permit.clauses.iter().map(of_commands).chain([behind]).collect();
        out.extend(judge(view, rule, &conditions));
    }
}

fn judge(view: &View<'_>, rule: &Rule, conditions: &[Expr]) -> Option<Finding> {
    let require: Vec<&Expr> = conditions.iter().collect();
    match stopped(&view.space(Surface::Commands), &require, &|request| against(view, request)) {
        // With none, no request matches the rule, and that is another lint's finding.
        Stopped::By(by) if !by.is_empty() => {
            let message = format!(
                "`sudo {}` is always denied: the commands map denies the same command without `sudo`",
                rule.pattern_text()
            );
            Some(
                related(view, Finding::new(Code::SHADOWED, rule.span, message), &by)
                    .help("narrow the rule of the commands map, or remove this one: more rights do not lift a denial"),
            )
        }
        Stopped::Unknown => Some(undecided(rule.span, &format!("`{}` has an effect", rule.pattern_text()))),
        Stopped::By(_) | Stopped::No => None,
    }
}

fn against<'a>(view: &View<'a>, request: &Request) -> Vec<&'a crate::compile::Policy> {
    view.forbids(Surface::Commands, &request.facts(view.zones), DENIED)
}

/// The command of a sudo request as the map of commands sees it.
fn twin(request: Request) -> Option<Request> {
    let Request::Command(mut command) = request else { return None };
    command.surface = Surface::Commands;
    command.run_as = "root".into();
    command.wrappers.insert("sudo".into());
    Some(Request::Command(command))
}

/// A condition without what only the sudo surface knows: as whom.
fn of_commands(expr: &Expr) -> Expr {
    match expr {
        Expr::All(parts) => Expr::All(parts.iter().map(of_commands).collect()),
        Expr::Atom(Atom::RunAs(_)) => Expr::TRUE,
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Set, codes};

    fn both(commands: &str, sudo: &str) -> Vec<&'static str> {
        codes(&Set::new().map("a.md", "commands", commands).map("b.md", "sudo", sudo).lint())
    }

    #[test]
    fn what_commands_deny_no_sudo_rule_permits() {
        let denied = "## Tier 4\n- `mount **`\n- `umount **`\n  - with: `-f`";
        assert_eq!(both(denied, "## Tier 2\n- `mount /srv`"), ["shadowed"]);
        assert_eq!(both(denied, "## Tier 2\n- `mount /srv`\n  - run as: app"), ["shadowed"]);
        assert_eq!(both(denied, "## Tier 2\n- `{mount,fsck} /srv`"), [""; 0]);
        assert_eq!(both(denied, "## Tier 2\n- `umount /srv`"), [""; 0]);
        assert_eq!(both(denied, "## Tier 2\n- `umount -f /srv`"), ["shadowed"]);
        // A rule below tier 4 says nothing about what runs behind `sudo`, and denials may repeat.
        assert_eq!(both("## Tier 3\n- `mount **`", "## Tier 2\n- `mount /srv`"), [""; 0]);
        assert_eq!(both(denied, "## Tier 4\n- `mount **`"), [""; 0]);
    }
}
