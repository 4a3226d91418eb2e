//! `fs.scope`: of all places of a manifest that hold a path, the narrowest counts; at the same
//! width `deny` counts before everything else, and the strictest tier before others.

use super::{CapabilityAtom, Condition, Fact};
use crate::model::{CapabilityEntry, Class, Manifest, RiskTier, Scope, Subtree};

/// What a place is listed under.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Listed {
    Read,
    Write,
    Deny,
}

/// All places of a manifest.
pub(super) struct Tree<'a> {
    places: Vec<(&'a Subtree, Listed, &'a CapabilityEntry)>,
}

fn places(entry: &CapabilityEntry) -> Vec<(&Subtree, Listed)> {
    let Scope::FsScope { read, write, deny } = &entry.scope else { return Vec::new() };
    let lists = [(read, Listed::Read), (write, Listed::Write), (deny, Listed::Deny)];
    lists.into_iter().flat_map(|(list, listed)| list.iter().map(move |place| (place, listed))).collect()
}

impl<'a> Tree<'a> {
    pub(super) fn new(manifest: &'a Manifest) -> Self {
        let entries = manifest.entries_of(Class::FsScope).filter(|entry| entry.tier != RiskTier::Block);
        Tree {
            places: entries.flat_map(|entry| places(entry).into_iter().map(move |(place, l)| (place, l, entry))).collect(),
        }
    }

    /// When an entry counts, and lets its own tier read or write.
    pub(super) fn condition(&self, entry: &CapabilityEntry) -> Condition {
        let own = self.places.iter().filter(|(_, listed, of)| std::ptr::eq(*of, entry) && *listed != Listed::Deny);
        Condition::one(own.map(|(place, listed, _)| self.counts(place, *listed)).collect())
    }

    /// When a place counts: the path lies in it and in none that is narrower, nor in one that is as
    /// wide and says deny.
    fn counts(&self, place: &Subtree, listed: Listed) -> Condition {
        let mut all: Vec<Condition> = vec![CapabilityAtom::Under(place.clone()).into()];
        if listed == Listed::Read {
            all.push(Condition::from(CapabilityAtom::Fact(Fact::Write)).negated());
        }
        let mut against: Vec<&Subtree> = Vec::new();
        for (other, what, _) in &self.places {
            let narrower = other.segments.len() > place.segments.len();
            let denies = *what == Listed::Deny && other.segments.len() == place.segments.len();
            if (narrower || denies) && place.meets(other) && !against.contains(other) {
                against.push(other);
            }
        }
        // Of nested places the widest says it all.
        let within = |a: &Subtree, b: &Subtree| {
            a.segments.len() > b.segments.len() && b.segments.iter().zip(&a.segments).all(|(b, a)| b == a || b.is_any())
        };
        let widest = |place: &&&Subtree| !against.iter().any(|other| within(place, other));
        all.extend(against.iter().filter(widest).map(|other| Condition::from(CapabilityAtom::Under((*other).clone())).negated()));
        Condition::all(all)
    }
}

/// What a `block` entry is about: its places, at any depth below.
pub(super) fn blocked(read: &[Subtree], write: &[Subtree], deny: &[Subtree]) -> Condition {
    let under = |place: &Subtree| Condition::from(CapabilityAtom::Under(place.clone()));
    let mut parts: Vec<Condition> = Vec::new();
    // Who may not read may not write either: no tool writes what it must not see.
    parts.extend(read.iter().chain(deny).map(under));
    parts.extend(write.iter().map(|place| Condition::all(vec![under(place), CapabilityAtom::Fact(Fact::Write).into()])));
    Condition::one(parts)
}
