//! Rules that say nothing new: whatever they permit and restrict, another rule of the same tier
//! permits and restricts.
//!
//! Told by the shape of the conditions alone, without a search: what it says is sure, and it does
//! not see everything, least of all among a thousand rules about one program. A rule with a
//! reason, an example or an id of its own is there on purpose.

use std::collections::BTreeSet;

use super::{View, says_nothing_of_its_own};
use crate::compile::{Origin, Policy};
use crate::diag::{Code, Finding};
use crate::model::{Facts, Rule};

/// Most policies that a rule is compared with; past it the cost would grow with the square of the
/// number of rules about one program, for a hint.
const MAX_RELATED: usize = 1_000;

pub(super) fn lint(view: &View<'_>, out: &mut Vec<Finding>) {
    for (index, rule) in view.rules().filter(|(_, rule)| says_nothing_of_its_own(rule)) {
        if let Some(other) = container(view, index, rule) {
            let message = format!(
                "`{}` says nothing new: `{}` of the same tier matches all of it",
                rule.pattern_text(),
                other.pattern_text()
            );
            out.push(
                Finding::new(Code::REDUNDANT_RULE, rule.span, message)
                    .related(other.span, format!("tier {}", other.tier))
                    .help("remove it, or give it a `why` if it stands here for the reader"),
            );
        }
    }
}

/// A rule of the same tier that says all that this one does; of two that say the same, the first.
fn container<'a>(view: &View<'a>, index: usize, rule: &Rule) -> Option<&'a Rule> {
    let own = view.of_rule(index);
    let first = own.first()?;
    let facts = view.sample(index, rule).filter(|facts| first.holds(facts));
    let mut others = BTreeSet::new();
    for policy in view.related(first).take(MAX_RELATED) {
        let Origin::Rule(other) = policy.origin else { continue };
        if other != index && covers(policy, first, facts) {
            others.insert(other);
        }
    }
    let of = |other: usize| view.compiled.set.rules.get(other).filter(|r| r.tier == rule.tier);
    others.into_iter().find_map(|other| {
        let theirs = view.of_rule(other);
        let contained = within(own, theirs) && (other < index || !within(theirs, own));
        of(other).filter(|_| contained)
    })
}

/// Whether every policy of the one rule is contained in one of the other rule.
pub(super) fn within(own: &[&Policy], theirs: &[&Policy]) -> bool {
    own.iter().all(|policy| theirs.iter().any(|other| covers(other, policy, None)))
}

/// Whether a policy says all that another one says. `facts`: a request for which the latter
/// holds, to tell most of those apart that do not.
fn covers(wide: &Policy, narrow: &Policy, facts: Option<&Facts>) -> bool {
    wide.effect == narrow.effect
        && wide.rungs.start <= narrow.rungs.start
        && narrow.rungs.end <= wide.rungs.end
        && facts.is_none_or(|facts| wide.holds(facts))
        && wide.follows_from(&[narrow])
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Set, codes};

    fn one(body: &str) -> Vec<&'static str> {
        codes(&Set::new().map("a.md", "commands", body).lint())
    }

    #[test]
    fn what_another_rule_says_in_full_is_redundant() {
        for (body, found) in [
            ("## Tier 0\n- `ls **`\n- `ls`", true),
            ("## Tier 0\n- `ls`\n- `ls **`", true),
            ("## Tier 0\n- `ls **`\n  - unless: `-R`\n- `ls a`\n  - unless: `-R`", true),
            ("## Tier 0\n- `ls **`\n  - unless: `-R`\n- `ls *`", false),
            ("## Tier 0\n- `ls **`\n- `ls`\n  - why: what everybody types", false),
            ("## Tier 0\n- `ls **`\n- `ls`\n  - id: plain-ls", false),
            ("## Tier 0\n- `ls **`\n- `ls`\n  - match: `ls`", false),
            ("## Tier 0\n- `ls **`\n- `ls`\n  - agents: a", true),
            ("## Tier 0\n- `ls **`\n  - agents: a\n- `ls`", false),
            ("## Tier 0\n- `ls **`\n## Tier 1\n- `ls`", false),
            ("## Tier 3\n- `rm **`\n  - with: `-r`, `-f`\n- `rm **`\n  - with: `-r`", true),
            ("## Tier 3\n- `rm **`\n  - with: `-r`\n- `rm **`\n  - with: `-f`\n  - with: `-v`", false),
            ("## Tier 4\n- `rm **`\n- `rm * **`", true),
            // Another name of the same option.
            ("## Tier 2\n- `rm **`\n  - with: `-r`\n- `rm **`\n  - with: `--recursive`", true),
        ] {
            assert_eq!(one(body).contains(&"redundant-rule"), found, "{body}\n{:?}", one(body));
        }
    }

    #[test]
    fn of_two_that_say_the_same_only_one_is_reported() {
        let found = one("## Tier 2\n- `rm **`\n  - with: `-r`\n- `rm **`\n  - with: `--recursive`");
        assert_eq!(found, ["redundant-rule"]);
    }

    #[test]
    fn a_rule_of_another_file_counts() {
        let found = Set::new()
            .map("a.md", "egress", "## Tier 0\n- `GET https://a.example/**`")
            .map("b.md", "egress", "## Tier 0\n- `GET https://a.example/x/**`")
            .lint();
        assert_eq!(codes(&found), ["redundant-rule"]);
    }
}
