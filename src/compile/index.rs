//! Finding the policies that can apply to a request without looking at all of them.

use std::collections::{BTreeMap, HashMap};
use std::convert::Infallible;

use super::Policy;
use crate::model::{Facts, Surface, is_within_domain};

/// What a policy's own condition names: it cannot hold for a request that has none of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keys {
    /// Programs, or domains.
    pub names: Vec<String>,
    /// Literal first words, when the first word must be one of them (or unknown, in a forbid).
    pub words: Option<Vec<String>>,
}

/// Stands where a program's name would, for what is about requests that carry others.
const COVERED: &str = "\u{1a}covered";

impl Keys {
    /// The keys of a policy that is only about requests that carry others.
    pub(super) fn covered() -> Self {
        Keys { names: vec![COVERED.to_owned()], words: None }
    }
}

/// Policies of one name.
#[derive(Clone, Debug, Default)]
struct Slot {
    any_word: Vec<usize>,
    by_word: HashMap<String, Vec<usize>>,
}

impl Slot {
    fn all(&self) -> impl Iterator<Item = usize> {
        self.any_word.iter().chain(self.by_word.values().flatten()).copied()
    }

    fn of_word(&self, word: &str) -> impl Iterator<Item = usize> {
        self.any_word.iter().chain(self.by_word.get(word).into_iter().flatten()).copied()
    }
}

/// Where the positions of policies are looked up: an index in memory, or one in a file.
pub trait Lookup {
    /// Why the index cannot be read.
    type Error;

    /// Policies that are about every request of a surface.
    ///
    /// # Errors
    ///
    /// The index cannot be read.
    fn general(&self, surface: Surface) -> Result<Vec<usize>, Self::Error>;

    /// Policies of a name, whatever the first word.
    ///
    /// # Errors
    ///
    /// The index cannot be read.
    fn of_name(&self, surface: Surface, name: &str) -> Result<Vec<usize>, Self::Error>;

    /// Policies of a name that can be about this first word; `None`: that ask for no word.
    ///
    /// # Errors
    ///
    /// The index cannot be read.
    fn of_word(&self, surface: Surface, name: &str, word: Option<&str>) -> Result<Vec<usize>, Self::Error>;

    /// Positions of the policies that can hold for these facts, ascending.
    ///
    /// # Errors
    ///
    /// The index cannot be read.
    fn holding(&self, surface: Surface, facts: &Facts) -> Result<Vec<usize>, Self::Error> {
        let mut out = self.general(surface)?;
        match facts {
            Facts::Command(facts) => {
                if facts.covered {
                    out.extend(self.of_name(surface, COVERED)?);
                }
                let word = facts.args.first().and_then(Option::as_deref);
                out.extend(if facts.unknown.contains(&1) {
                    self.of_name(surface, &facts.program)?
                } else {
                    self.of_word(surface, &facts.program, word)?
                });
            }
            Facts::Egress(facts) => {
                // The host, and every domain above it.
                let host = facts.host.as_str();
                let above = host.match_indices('.').filter_map(|(at, _)| host.get(at + 1..));
                for name in std::iter::once(host).chain(above) {
                    out.extend(self.of_name(surface, name)?);
                }
            }
        }
        Ok(settled(out))
    }
}

/// What an entry of an index is about: surface, name, first word.
pub(super) type Entry<'a> = (Surface, Option<&'a str>, Option<&'a str>);

/// Policies by surface and by what they name.
#[derive(Clone, Debug, Default)]
pub struct PolicyIndex {
    slots: HashMap<Surface, HashMap<String, Slot>>,
    general: HashMap<Surface, Vec<usize>>,
}

impl PolicyIndex {
    /// The index of these policies; positions are positions in the slice.
    pub fn new(policies: &[Policy]) -> Self {
        let mut index = PolicyIndex::default();
        for (position, policy) in policies.iter().enumerate() {
            let surface = policy.surface;
            let Some(keys) = &policy.keys else {
                index.general.entry(surface).or_default().push(position);
                continue;
            };
            let slots = index.slots.entry(surface).or_default();
            for name in &keys.names {
                let slot = slots.entry(name.clone()).or_default();
                match &keys.words {
                    Some(words) => {
                        for word in words {
                            slot.by_word.entry(word.clone()).or_default().push(position);
                        }
                    }
                    None => slot.any_word.push(position),
                }
            }
        }
        index
    }

    fn slot(&self, surface: Surface, name: &str) -> Option<&Slot> {
        self.slots.get(&surface)?.get(name)
    }

    /// All of it, in order, as a file holds it.
    pub(super) fn entries(&self) -> BTreeMap<Entry<'_>, Vec<usize>> {
        let mut out: BTreeMap<Entry<'_>, Vec<usize>> = BTreeMap::new();
        for (surface, positions) in &self.general {
            out.insert((*surface, None, None), positions.clone());
        }
        for (surface, slots) in &self.slots {
            for (name, slot) in slots {
                if !slot.any_word.is_empty() {
                    out.insert((*surface, Some(name), None), slot.any_word.clone());
                }
                let words = slot.by_word.iter();
                out.extend(words.map(|(word, at)| ((*surface, Some(name.as_str()), Some(word.as_str())), at.clone())));
            }
        }
        out
    }

    /// Positions of the policies that can hold for these facts, ascending.
    pub fn candidates(&self, surface: Surface, facts: &Facts) -> Vec<usize> {
        let Ok(found) = self.holding(surface, facts);
        found
    }

    /// Positions of the policies that can hold together with `policy`; more than those where
    /// that cannot be told.
    pub fn related(&self, policy: &Policy) -> Vec<usize> {
        let Ok(mut out) = self.general(policy.surface);
        if let Some(slots) = self.slots.get(&policy.surface) {
            match &policy.keys {
                Some(keys) if policy.surface != Surface::Egress => {
                    out.extend(slots.get(COVERED).into_iter().flat_map(Slot::all));
                    for slot in keys.names.iter().filter_map(|name| slots.get(name)) {
                        match &keys.words {
                            Some(words) => words.iter().for_each(|word| out.extend(slot.of_word(word))),
                            None => out.extend(slot.all()),
                        }
                    }
                }
                // Domains nest: two names meet in a host when one lies in the other.
                Some(keys) => {
                    let meets = |name: &str| {
                        keys.names.iter().any(|key| is_within_domain(name, key) || is_within_domain(key, name))
                    };
                    out.extend(slots.iter().filter(|(name, _)| meets(name)).flat_map(|(_, slot)| slot.all()));
                }
                None => out.extend(slots.values().flat_map(Slot::all)),
            }
        }
        settled(out)
    }
}

impl Lookup for PolicyIndex {
    type Error = Infallible;

    fn general(&self, surface: Surface) -> Result<Vec<usize>, Infallible> {
        Ok(self.general.get(&surface).cloned().unwrap_or_default())
    }

    fn of_name(&self, surface: Surface, name: &str) -> Result<Vec<usize>, Infallible> {
        Ok(self.slot(surface, name).into_iter().flat_map(Slot::all).collect())
    }

    fn of_word(&self, surface: Surface, name: &str, word: Option<&str>) -> Result<Vec<usize>, Infallible> {
        let Some(slot) = self.slot(surface, name) else { return Ok(Vec::new()) };
        Ok(word.map_or_else(|| slot.any_word.clone(), |word| slot.of_word(word).collect()))
    }
}

fn settled(mut positions: Vec<usize>) -> Vec<usize> {
    positions.sort_unstable();
    positions.dedup();
    positions
}
