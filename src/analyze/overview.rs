//! What a reviewer sees beside the findings of a comparison: how many rules are what they
//! were, and the text that changed with each finding.
//!
//! Judges nothing. A rule counts as unchanged only if it compiles to the same conditions.

use std::cell::OnceCell;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::Hash;
use std::ops::Range;

use crate::compile::{Compiled, Effect, Expr, Origin};
use crate::diag::{Finding, RuleCounts, TextChange};
use crate::model::{Matcher, PolicySet, Rule, Surface, Tier, When};
use crate::source::{FileId, SourceMap, Span};

/// Counts the rules of two versions, and gives each finding about both the text that changed.
pub fn overview(old: &Compiled, new: &Compiled, findings: &mut [Finding], map: &SourceMap) -> RuleCounts {
    let matched = Matched::new(old, new);
    for finding in findings.iter_mut().filter(|f| f.evidence.is_some()) {
        finding.texts = matched.texts(finding, map);
    }
    matched.counts(map)
}

/// The rules of two versions, each with its equal in the other.
struct Matched<'a> {
    old: &'a Compiled,
    new: &'a Compiled,
    /// Indices of equal rules, ascending in the new version.
    pairs: Vec<(usize, usize)>,
    /// Rules of the old version without an equal.
    gone: Left<'a>,
    /// Rules of the new version without an equal.
    fresh: Left<'a>,
    /// Where equal rules stand.
    unchanged: OnceCell<HashSet<Span>>,
}

/// All that a rule's conditions are made of: equal parts, equal conditions.
type Parts<'a> = (Surface, Tier, &'a Matcher, &'a When, &'a [String], &'a [String]);
/// A rule's index and what it means.
type Meaning<'a> = (usize, (Surface, Conditions<'a>));
/// What a rule compiles to.
type Conditions<'a> = Vec<(Effect, Range<u8>, &'a [Expr])>;

impl<'a> Matched<'a> {
    fn new(old: &'a Compiled, new: &'a Compiled) -> Self {
        let (was, is) = (&old.set.rules, &new.set.rules);
        let written = |rules: &'a [Rule]| rules.iter().map(parts).enumerate().collect::<Vec<_>>();
        let (mut pairs, gone, fresh) = equal(written(was), written(is));
        // The few that are left may still mean the same.
        let ((compiled_old, nothing_old), (compiled_new, nothing_new)) =
            (conditions(old, &gone), conditions(new, &fresh));
        let (more, mut gone, mut fresh) = equal(compiled_old, compiled_new);
        pairs.extend(more);
        gone.extend(nothing_old);
        fresh.extend(nothing_new);
        pairs.sort_unstable_by_key(|(_, new)| *new);
        let left = |left: Vec<usize>, rules: &'a [Rule]| Left::new(left.into_iter().filter_map(|at| rules.get(at)));
        Matched { old, new, pairs, gone: left(gone, was), fresh: left(fresh, is), unchanged: OnceCell::new() }
    }

    fn rules(&self) -> impl Iterator<Item = (&'a Rule, &'a Rule)> {
        self.pairs.iter().filter_map(|(was, is)| Some((self.old.set.rules.get(*was)?, self.new.set.rules.get(*is)?)))
    }

    fn counts(&self, map: &SourceMap) -> RuleCounts {
        RuleCounts {
            unchanged: self.pairs.len(),
            reworded: self.rules().filter(|(was, is)| text(map, was.whole) != text(map, is.whole)).count(),
            moved: self.moved(map),
            fresh: self.fresh.count,
            gone: self.gone.count,
            same_configuration: configuration(self.old) == configuration(self.new),
        }
    }

    /// How many rules must be carried elsewhere to get from the old order to the new one.
    fn moved(&self, map: &SourceMap) -> usize {
        let name = |span: Span| map.get(span.file).map_or("", |file| file.name.as_str());
        let mut files: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for ((was, is), (at, _)) in self.rules().zip(&self.pairs) {
            if name(was.span) == name(is.span) {
                files.entry(name(is.span)).or_default().push(*at);
            }
        }
        let stay: usize = files.values().map(|order| longest_ascent(order)).sum();
        self.pairs.len().saturating_sub(stay)
    }

    /// The text that changed with a finding: of the rules that it names and their
    /// counterparts, or else of the lines that it names in each version.
    fn texts(&self, finding: &Finding, map: &SourceMap) -> Vec<TextChange> {
        let spans: Vec<Span> = std::iter::once(finding.span).chain(finding.related.iter().map(|r| r.span)).collect();
        let named = |left: &Left<'a>| spans.iter().find_map(|span| left.by_place.get(span).copied());
        let change = |was: Option<&Rule>, is: Option<&Rule>| TextChange {
            old: was.map(|rule| rule.whole),
            new: is.map(|rule| rule.whole),
        };
        let (was, is) = (named(&self.gone), named(&self.fresh));
        let before = is.and_then(|rule| self.gone.counterpart(rule));
        let after = was.and_then(|rule| self.fresh.counterpart(rule));
        let changes = match (was, is) {
            (Some(was), Some(is)) if before.is_none_or(|b| b.span == was.span) => vec![change(Some(was), Some(is))],
            (Some(was), Some(is)) => vec![change(before, Some(is)), change(Some(was), after)],
            (None, Some(is)) => vec![change(before, Some(is))],
            (Some(was), None) => vec![change(Some(was), after)],
            (None, None) => self.lines(&spans, map).into_iter().collect(),
        };
        changes.into_iter().filter(|c| c.old.or(c.new).is_some()).collect()
    }

    /// The lines that a finding without a changed rule is about.
    fn lines(&self, spans: &[Span], map: &SourceMap) -> Option<TextChange> {
        let unchanged = self.unchanged.get_or_init(|| self.rules().flat_map(|(was, is)| [was.span, is.span]).collect());
        if spans.iter().any(|span| unchanged.contains(span)) {
            // The rule that is named is what it was: its text says nothing.
            return None;
        }
        let first = |set: &PolicySet| spans.iter().find(|span| is_of(set, span.file)).map(|span| lines(map, *span));
        let change = TextChange { old: first(&self.old.set), new: first(&self.new.set) };
        let same = change.old.zip(change.new).is_some_and(|(was, is)| text(map, was) == text(map, is));
        (!same).then_some(change)
    }
}

fn parts(rule: &Rule) -> Parts<'_> {
    (rule.surface, rule.tier, &rule.matcher, &rule.when, &rule.agents, &rule.hosts)
}

/// What some rules compile to, and those that compile to nothing: they are like nothing else.
/// `rules` ascends.
fn conditions<'a>(set: &'a Compiled, rules: &[usize]) -> (Vec<Meaning<'a>>, Vec<usize>) {
    let mut found: BTreeMap<usize, (Surface, Conditions<'a>)> = BTreeMap::new();
    for policy in set.policies.iter().filter(|_| !rules.is_empty()) {
        match policy.origin {
            Origin::Rule(at) if rules.binary_search(&at).is_ok() => {
                let (_, conditions) = found.entry(at).or_insert_with(|| (policy.surface, Vec::new()));
                conditions.push((policy.effect, policy.rungs.clone(), &policy.clauses));
            }
            _ => {}
        }
    }
    let nothing = rules.iter().copied().filter(|at| !found.contains_key(at)).collect();
    (found.into_iter().collect(), nothing)
}

type Split = (Vec<(usize, usize)>, Vec<usize>, Vec<usize>);

/// Pairs what is equal, in order; and what is left of each side.
fn equal<K: Eq + Hash>(old: Vec<(usize, K)>, new: Vec<(usize, K)>) -> Split {
    let mut waiting: HashMap<K, Vec<usize>> = HashMap::with_capacity(old.len());
    for (at, key) in old.into_iter().rev() {
        waiting.entry(key).or_default().push(at);
    }
    let (mut pairs, mut fresh) = (Vec::new(), Vec::new());
    for (at, key) in new {
        match waiting.get_mut(&key).and_then(Vec::pop) {
            Some(was) => pairs.push((was, at)),
            None => fresh.push(at),
        }
    }
    let mut gone: Vec<usize> = waiting.into_values().flatten().collect();
    gone.sort_unstable();
    (pairs, gone, fresh)
}

/// Length of the longest ascending subsequence.
fn longest_ascent(order: &[usize]) -> usize {
    // The smallest last element of an ascent of each length.
    let mut ends: Vec<usize> = Vec::new();
    for at in order {
        let length = ends.partition_point(|end| end < at);
        match ends.get_mut(length) {
            Some(end) => *end = *at,
            None => ends.push(*at),
        }
    }
    ends.len()
}

/// Rules that have no equal in the other version.
struct Left<'a> {
    count: usize,
    by_place: HashMap<Span, &'a Rule>,
    by_id: HashMap<(Surface, &'a str), &'a Rule>,
    by_pattern: HashMap<(Surface, String), Vec<&'a Rule>>,
}

impl<'a> Left<'a> {
    fn new(rules: impl Iterator<Item = &'a Rule>) -> Self {
        let (by_place, by_id, by_pattern) = Default::default();
        let mut left = Left { count: 0, by_place, by_id, by_pattern };
        for rule in rules {
            left.count += 1;
            left.by_place.insert(rule.span, rule);
            left.by_id.entry((rule.surface, rule.id.as_str())).or_insert(rule);
            left.by_pattern.entry((rule.surface, rule.pattern_text())).or_default().push(rule);
        }
        left
    }

    /// The rule that a reader would call the same: by its id, else by its pattern, at the same
    /// tier rather than at another.
    fn counterpart(&self, rule: &Rule) -> Option<&'a Rule> {
        let named = self.by_id.get(&(rule.surface, rule.id.as_str()));
        named.copied().or_else(|| {
            let alike = self.by_pattern.get(&(rule.surface, rule.pattern_text()))?;
            alike.iter().find(|other| other.tier == rule.tier).or_else(|| alike.first()).copied()
        })
    }
}

/// Everything of a configuration that the effect of a rule can depend on.
fn configuration(compiled: &Compiled) -> impl PartialEq + use<'_> {
    let config = &compiled.set.config;
    let zones: Vec<_> = config.zones.names().map(|name| (name, config.zones.get(name).map(|(p, _)| p))).collect();
    let guardrails: Vec<&str> = compiled.guardrails.iter().map(|g| g.meaning.as_str()).collect();
    (zones, &config.trusted_dirs, &config.allowed_env, config.provenance, guardrails)
}

fn text(map: &SourceMap, span: Span) -> &str {
    map.text(span.file).get(span.start..span.end).unwrap_or("")
}

/// A span up to the ends of its lines.
fn lines(map: &SourceMap, span: Span) -> Span {
    let text = map.text(span.file);
    let start = text.get(..span.start).and_then(|before| before.rfind('\n')).map_or(0, |at| at + 1);
    let end = span.end.max(span.start);
    let end = text.get(end..).and_then(|rest| rest.find('\n')).map_or(text.len(), |at| end + at);
    Span::new(span.file, start, end)
}

/// Whether a set was read from this file. Tier maps are not looked at rule by rule: a place in
/// one that is no rule is where its surface is declared.
fn is_of(set: &PolicySet, file: FileId) -> bool {
    set.config.file == file
        || set.surfaces.values().any(|info| info.span.file == file)
        || set.guardrails.iter().any(|(span, _)| span.file == file)
        || set.manifests.iter().any(|manifest| manifest.file == file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_ascent_is_what_need_not_move() {
        for (order, length) in
            [(&[][..], 0), (&[3, 7, 9], 3), (&[9, 3, 7], 2), (&[1, 0], 1), (&[4, 0, 1, 2, 3, 9, 8], 5), (&[2, 1, 0], 1)]
        {
            assert_eq!(longest_ascent(order), length, "{order:?}");
        }
    }

    #[test]
    fn each_equal_is_paired_once() {
        let (pairs, gone, fresh) = equal(vec![(0, 'a'), (1, 'b'), (2, 'a')], vec![(0, 'a'), (1, 'c'), (2, 'b')]);
        assert_eq!((pairs, gone, fresh), (vec![(0, 0), (1, 2)], vec![2], vec![1]));
    }
}
