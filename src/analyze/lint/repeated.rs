//! The same rule twice, in one file or in several: at one tier it is needless, at two it misleads.

use std::collections::HashMap;

use super::View;
use crate::diag::{Code, Finding};
use crate::model::{Rule, Surface};

pub(super) fn lint(view: &View<'_>, out: &mut Vec<Finding>) {
    let mut seen: HashMap<(Surface, String), &Rule> = HashMap::new();
    for (_, rule) in view.rules() {
        let first = *seen.entry((rule.surface, rule.normalised())).or_insert(rule);
        if !std::ptr::eq(first, rule) {
            out.push(if first.tier == rule.tier { duplicate(first, rule) } else { contradiction(first, rule) });
        }
    }
}

fn duplicate(first: &Rule, rule: &Rule) -> Finding {
    Finding::new(
        Code::DUPLICATE_RULE,
        rule.span,
        format!("`{}` stands twice at tier {}", rule.pattern_text(), rule.tier),
    )
    .related(first.span, "the same rule")
    .help("remove one of them")
}

fn contradiction(first: &Rule, rule: &Rule) -> Finding {
    Finding::new(
        Code::CONTRADICTION,
        rule.span,
        format!("`{}` stands at tier {} and at tier {}", rule.pattern_text(), first.tier, rule.tier),
    )
    .related(first.span, format!("the same rule at tier {}", first.tier))
    .help(format!("the strictest wins, so tier {} counts; remove the other", first.tier.max(rule.tier)))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Set, codes};

    #[test]
    fn files_of_a_surface_are_one_set() {
        let two = |first: &str, second: &str| {
            Set::new().map("a.md", "commands", first).map("b.md", "commands", second).lint()
        };
        assert_eq!(codes(&two("## Tier 0\n- `ls **`", "## Tier 0\n- `ls **`")), ["duplicate-rule"]);
        let found = two("## Tier 0\n- `ls **`", "## Tier 3\n- `ls **`");
        assert!(codes(&found).contains(&"contradiction"), "{found:?}");
        let of = found.iter().find(|f| f.code.as_str() == "contradiction");
        let places = of.map(|f| (f.span.file, f.related.iter().map(|r| r.span.file).collect::<Vec<_>>()));
        assert!(places.is_some_and(|(own, others)| others.len() == 1 && !others.contains(&own)));
    }

    #[test]
    fn the_same_words_on_another_surface_are_another_rule() {
        let set = Set::new().map("a.md", "commands", "## Tier 0\n- `id`").map("b.md", "sudo", "## Tier 2\n- `id`");
        assert_eq!(codes(&set.lint()), [""; 0]);
    }
}
