//! Rules that could be one: they differ in one word, in one `with`, or in their methods.
//!
//! Found by hashing each rule with one of its parts left out. A hint and no fault, so it keeps
//! quiet where lists are meant as lists: exact commands without a wildcard, rules with a reason,
//! an example or an id of their own, rules of several files, and more alternatives than one reads.

use std::collections::{BTreeSet, HashMap};

use super::redundant::within;
use super::{View, says_nothing_of_its_own};
use crate::diag::{Code, Finding};
use crate::model::{CommandPattern, Glob, Item, Matcher, Rule};

/// Most alternatives that one rule reads well with.
const MAX_ALTERNATIVES: usize = 8;

/// Stands where a part was left out; no policy file may hold it.
const GAP: &str = "\u{1}";

/// The part in which rules differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Part {
    /// The word at this place behind the program, counted from 0.
    Word(usize),
    /// The `with` at this place.
    With(usize),
    /// The methods of an egress rule.
    Methods,
    /// The program; only of rules that follow each other.
    Program,
}

pub(super) fn lint(view: &View<'_>, out: &mut Vec<Finding>) {
    let mut groups: HashMap<(Part, String), Vec<usize>> = HashMap::new();
    for (index, rule) in view.rules().filter(|(_, rule)| is_eligible(rule)) {
        for part in parts(rule) {
            if let Some(rest) = without(rule, part) {
                let place = format!("{} {} {:?} {}", rule.surface, rule.tier, rule.span.file, rest.normalised());
                groups.entry((part, place)).or_default().push(index);
            }
        }
    }
    let mut found: Vec<(Part, Vec<usize>)> = groups
        .into_iter()
        .flat_map(|((part, _), rules)| runs(part, rules))
        .filter(|(_, rules)| rules.len() > 1)
        .collect();
    // The largest first, and each rule in one of them at most.
    found.sort_by_key(|(part, rules)| (usize::MAX - rules.len(), rules.clone(), *part));
    let mut told = BTreeSet::new();
    for (part, rules) in found {
        if rules.iter().any(|index| told.contains(index)) {
            continue;
        }
        if let Some(finding) = finding(view, part, &rules) {
            out.push(finding);
            told.extend(rules);
        }
    }
}

/// Whether a rule is written so that another could take it in.
fn is_eligible(rule: &Rule) -> bool {
    let open = |globs: &Vec<Glob>| globs.iter().any(|glob| glob.as_literal().is_none());
    let has_wildcard = match &rule.matcher {
        Matcher::Command { pattern, with, .. } => {
            pattern.rest || open(&pattern.programs) || pattern.words.iter().any(open) || !with.is_empty()
        }
        Matcher::Egress { .. } => true,
    };
    has_wildcard && says_nothing_of_its_own(rule)
}

/// The parts in which a rule may differ from one that it could be joined with.
fn parts(rule: &Rule) -> Vec<Part> {
    match &rule.matcher {
        Matcher::Command { pattern, with, .. } => {
            let words = (0..pattern.words.len()).map(Part::Word);
            words.chain((0..with.len()).map(Part::With)).chain([Part::Program]).collect()
        }
        Matcher::Egress { .. } => vec![Part::Methods],
    }
}

/// The alternatives of a part, as text; `None` where it is a wildcard, which takes all in.
fn alternatives(rule: &Rule, part: Part) -> Option<BTreeSet<String>> {
    let of = |globs: &[Glob]| (!globs.iter().any(Glob::is_any)).then(|| globs.iter().map(Glob::to_string).collect());
    match (&rule.matcher, part) {
        (Matcher::Command { pattern, .. }, Part::Word(at)) => of(pattern.words.get(at)?),
        // Who writes a group of programs has grouped them.
        (Matcher::Command { pattern, .. }, Part::Program) if pattern.programs.len() == 1 => of(&pattern.programs),
        (Matcher::Command { with, .. }, Part::With(at)) => Some(with.get(at)?.iter().map(Item::to_string).collect()),
        (Matcher::Egress { pattern, .. }, Part::Methods) => Some(pattern.methods.iter().cloned().collect()),
        _ => None,
    }
}

/// The rule with a gap in the place of a part.
fn without(rule: &Rule, part: Part) -> Option<Rule> {
    let gap = || vec![Glob::literal(GAP)];
    alternatives(rule, part)?;
    let mut rest = rule.clone();
    match (&mut rest.matcher, part) {
        (Matcher::Command { pattern, .. }, Part::Word(at)) => *pattern.words.get_mut(at)? = gap(),
        (Matcher::Command { pattern, .. }, Part::Program) => pattern.programs = gap(),
        (Matcher::Command { with, .. }, Part::With(at)) => {
            *with.get_mut(at)? = vec![Item::Argument(Glob::literal(GAP))];
        }
        (Matcher::Egress { pattern, .. }, Part::Methods) => pattern.methods = vec![GAP.to_owned()],
        _ => return None,
    }
    Some(rest)
}

/// Rules that differ in their program belong together only where they follow each other.
fn runs(part: Part, rules: Vec<usize>) -> Vec<(Part, Vec<usize>)> {
    if part != Part::Program {
        return vec![(part, rules)];
    }
    rules.chunk_by(|one, next| one + 1 == *next).map(|run| (part, run.to_vec())).collect()
}

/// The finding about rules that could be one, at the last of them.
fn finding(view: &View<'_>, part: Part, rules: &[usize]) -> Option<Finding> {
    let members: Vec<&Rule> = rules.iter().filter_map(|index| view.compiled.set.rules.get(*index)).collect();
    let own: Vec<BTreeSet<String>> = members.iter().map(|rule| alternatives(rule, part)).collect::<Option<_>>()?;
    let all: BTreeSet<&String> = own.iter().flatten().collect();
    if all.len() > MAX_ALTERNATIVES || one_takes_another_in(view, rules) {
        return None;
    }
    let (last, before) = members.split_last()?;
    let (differ, merged) = (difference(part), merged(&members, part)?);
    let mut finding = Finding::new(
        Code::MERGEABLE,
        last.span,
        format!("{} rules differ only in {differ}, and could be one: {merged}", rules.len()),
    )
    .help("write them as one, and let `polctl diff` show that nothing else changes; a rule with a `why` or an example of its own is left alone");
    for rule in before {
        finding = finding.related(rule.span, "one of them");
    }
    Some(finding)
}

/// Whether a rule is redundant beside another one: that is another lint's finding.
fn one_takes_another_in(view: &View<'_>, rules: &[usize]) -> bool {
    let takes_in = |own: &usize, other: &usize| own != other && within(view.of_rule(*own), view.of_rule(*other));
    rules.iter().any(|own| rules.iter().any(|other| takes_in(own, other)))
}

fn difference(part: Part) -> String {
    match part {
        Part::Word(at) => format!("word {} behind the program", at.saturating_add(1)),
        Part::With(_) => "one `with`".into(),
        Part::Methods => "their methods".into(),
        Part::Program => "their program".into(),
    }
}

/// The one rule that takes the place of all, as text.
fn merged(rules: &[&Rule], part: Part) -> Option<String> {
    fn joined<T: Clone + Ord>(lists: impl Iterator<Item = Vec<T>>) -> Vec<T> {
        lists.flatten().collect::<BTreeSet<T>>().into_iter().collect()
    }
    let patterns = || {
        rules.iter().filter_map(|rule| match &rule.matcher {
            Matcher::Command { pattern, with, .. } => Some((pattern, with)),
            Matcher::Egress { .. } => None,
        })
    };
    match (&rules.first()?.matcher, part) {
        (Matcher::Command { pattern, .. }, Part::Word(at)) => {
            let mut pattern: CommandPattern = pattern.clone();
            *pattern.words.get_mut(at)? = joined(patterns().filter_map(|(p, _)| p.words.get(at).cloned()));
            Some(format!("`{pattern}`"))
        }
        (Matcher::Command { pattern, .. }, Part::Program) => {
            let programs = joined(patterns().map(|(p, _)| p.programs.clone()));
            Some(format!("`{}`", CommandPattern { programs, ..pattern.clone() }))
        }
        (Matcher::Command { pattern, .. }, Part::With(at)) => {
            let items = joined(patterns().filter_map(|(_, with)| with.get(at).cloned()));
            let items: Vec<String> = items.iter().map(|item| format!("`{item}`")).collect();
            Some(format!("`{pattern}` with {}", items.join(", ")))
        }
        (Matcher::Egress { pattern, .. }, Part::Methods) => {
            let mut pattern = pattern.clone();
            pattern.methods = joined(rules.iter().filter_map(|rule| match &rule.matcher {
                Matcher::Egress { pattern, .. } => Some(pattern.methods.clone()),
                Matcher::Command { .. } => None,
            }));
            Some(format!("`{pattern}`"))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Set, codes};

    fn messages(surface: &str, body: &str) -> Vec<String> {
        let found = Set::new().map("a.md", surface, body).lint();
        found.into_iter().filter(|f| f.code.as_str() == "mergeable").map(|f| f.message).collect()
    }

    #[test]
    fn one_finding_for_each_rule_that_could_be() {
        for (surface, body, want) in [
            (
                "commands",
                "## Tier 0\n- `git log **`\n- `git show **`",
                "2 rules differ only in word 1 behind the program, and could be one: `git {log,show} **`",
            ),
            (
                "commands",
                "## Tier 0\n- `git log **`\n- `ls **`\n- `git {diff,show} **`\n- `git blame **`",
                "3 rules differ only in word 1 behind the program, and could be one: `git {blame,diff,log,show} **`",
            ),
            (
                "commands",
                "## Tier 0\n- `cat **`\n- `head **`",
                "2 rules differ only in their program, and could be one: `{cat,head} **`",
            ),
            (
                "commands",
                "## Tier 3\n- `git push **`\n  - with: `-f`\n- `git push **`\n  - with: `--mirror`",
                "2 rules differ only in one `with`, and could be one: `git push **` with `--mirror`, `-f`",
            ),
            (
                "egress",
                "## Tier 0\n- `GET https://a.example/**`\n- `HEAD https://a.example/**`",
                "2 rules differ only in their methods, and could be one: `GET,HEAD https://a.example/**`",
            ),
        ] {
            assert_eq!(messages(surface, body), [want], "{body}");
        }
    }

    #[test]
    fn it_keeps_quiet_where_a_list_is_meant_as_one() {
        for body in [
            // Another tier, other conditions, two words.
            "## Tier 0\n- `git log **`\n## Tier 1\n- `git show **`",
            "## Tier 0\n- `git log **`\n  - unless: `--output`\n- `git show **`",
            "## Tier 0\n- `git log a **`\n- `git show b **`",
            // Said on purpose.
            "## Tier 0\n- `git log **`\n  - why: history\n- `git show **`",
            "## Tier 0\n- `git log **`\n  - match: `git log`\n- `git show **`",
            "## Tier 0\n- `git log **`\n  - id: log\n- `git show **`",
            // Exact commands, one on each line.
            "## Tier 0\n- `git stash list`\n- `git worktree list`",
            // Programs in different places.
            "## Tier 0\n- `cat **`\n- `git log **`\n- `head **`",
            // What takes in the other is redundant.
            "## Tier 0\n- `git log **`\n- `git {log,show} **`",
            // Groups of programs, and another name of one option.
            "## Tier 4\n- `{scp,ssh} **`\n- `{nc,socat} **`",
            "## Tier 2\n- `rm **`\n  - with: `-r`\n- `rm **`\n  - with: `--recursive`",
            // More than one reads.
            "## Tier 0\n- `a {b,c,d,e} **`\n- `a {f,g,h,i} **`\n- `a {j,k,l} **`",
        ] {
            assert_eq!(messages("commands", body), [""; 0], "{body}");
        }
    }

    #[test]
    fn rules_of_two_files_stay_where_they_are() {
        let set = Set::new().map("a.md", "commands", "## Tier 0\n- `git log **`").map(
            "b.md",
            "commands",
            "## Tier 0\n- `git show **`",
        );
        assert_eq!(codes(&set.lint()), [""; 0]);
    }
}
