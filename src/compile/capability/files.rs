//! `fs.scope`: of all places of a manifest that hold a path, the narrowest counts; at the same
//! width `deny` counts before everything else, and the strictest tier before others. Where a place
//! says read, reading goes by it, however wide it is: what may be written with more control may be
//! read with less.

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
            places: entries
                .flat_map(|entry| places(entry).into_iter().map(move |(place, l)| (place, l, entry)))
                .collect(),
        }
    }

    /// When an entry counts: for reading, for writing, or for both.
    pub(super) fn condition(&self, entry: &CapabilityEntry) -> Condition {
        let write = || Condition::from(CapabilityAtom::Fact(Fact::Write));
        let mut parts = Vec::new();
        for (place, listed, _) in self.places.iter().filter(|(_, _, of)| std::ptr::eq(*of, entry)) {
            match listed {
                Listed::Read => parts.push(Condition::all(vec![write().negated(), self.reads(place)])),
                Listed::Write => {
                    parts.push(Condition::all(vec![write(), self.writes(place)]));
                    parts.push(Condition::all(vec![write().negated(), self.reads_by_writing(place)]));
                }
                Listed::Deny => {}
            }
        }
        Condition::one(parts)
    }

    /// Places of other kinds that hold paths of `place` and are narrower; those that deny also where
    /// they are as wide.
    fn against(&self, place: &Subtree, kinds: &[Listed]) -> Vec<&'a Subtree> {
        let mut out: Vec<&Subtree> = Vec::new();
        for (other, listed, _) in self.places.iter().filter(|(_, listed, _)| kinds.contains(listed)) {
            let (own, of_other) = (place.segments.len(), other.segments.len());
            let stronger = of_other > own || *listed == Listed::Deny && of_other == own;
            if stronger && place.meets(other) && !out.contains(other) {
                out.push(other);
            }
        }
        // Of nested places the widest says it all.
        let within = |a: &Subtree, b: &Subtree| {
            a.segments.len() > b.segments.len() && b.segments.iter().zip(&a.segments).all(|(b, a)| b == a || b.is_any())
        };
        let all = out.clone();
        out.retain(|place| !all.iter().any(|other| within(place, other)));
        out
    }

    fn outside(&self, place: &Subtree, kinds: &[Listed]) -> Vec<Condition> {
        let under = |other: &&Subtree| Condition::from(CapabilityAtom::Under((*other).clone())).negated();
        self.against(place, kinds).iter().map(under).collect()
    }

    /// Reading goes by the narrowest place that says read or deny.
    fn reads(&self, place: &Subtree) -> Condition {
        let mut all: Vec<Condition> = vec![CapabilityAtom::Under(place.clone()).into()];
        all.extend(self.outside(place, &[Listed::Read, Listed::Deny]));
        Condition::all(all)
    }

    /// Writing goes by the narrowest place of all.
    fn writes(&self, place: &Subtree) -> Condition {
        let mut all: Vec<Condition> = vec![CapabilityAtom::Under(place.clone()).into()];
        all.extend(self.outside(place, &[Listed::Read, Listed::Write, Listed::Deny]));
        Condition::all(all)
    }

    /// What may be written may be read, where no place that says read counts.
    fn reads_by_writing(&self, place: &Subtree) -> Condition {
        let mut all: Vec<Condition> = vec![CapabilityAtom::Under(place.clone()).into()];
        all.extend(self.outside(place, &[Listed::Write, Listed::Deny]));
        let mut seen: Vec<&Subtree> = Vec::new();
        for (other, _, _) in
            self.places.iter().filter(|(other, listed, _)| *listed == Listed::Read && place.meets(other))
        {
            if !seen.contains(other) {
                seen.push(other);
                all.push(self.reads(other).negated());
            }
        }
        Condition::all(all)
    }
}

/// What a `block` entry is about: its places, at any depth below.
pub(super) fn blocked(read: &[Subtree], write: &[Subtree], deny: &[Subtree]) -> Condition {
    let under = |place: &Subtree| Condition::from(CapabilityAtom::Under(place.clone()));
    let mut parts: Vec<Condition> = Vec::new();
    // Who may not read may not write either: no tool writes what it must not see.
    parts.extend(read.iter().chain(deny).map(under));
    parts
        .extend(write.iter().map(|place| Condition::all(vec![under(place), CapabilityAtom::Fact(Fact::Write).into()])));
    Condition::one(parts)
}
