//! Finding the policies that can apply to a request without looking at all of them.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use super::Policy;
use crate::model::{Facts, Surface, is_within_domain};

/// What a policy's own condition names: it cannot hold for a request that has none of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Keys {
    /// Programs, or domains.
    #[serde(rename = "n")]
    pub names: Vec<String>,
    /// Literal first words, when the first word must be one of them (or unknown, in a forbid).
    #[serde(rename = "w", default, skip_serializing_if = "Option::is_none")]
    pub words: Option<Vec<String>>,
}

/// Stands where a program's name would, for what is about requests that carry others.
const COVERED: &str = "\u{1a}covered";

impl Keys {
    /// What the text of keys that may be about a program has in it, one or the other: a quick test
    /// before the text is parsed.
    pub fn marks(program: &str) -> [String; 2] {
        [program, COVERED].map(|name| serde_json::Value::from(name).to_string())
    }

    /// Whether a policy with these keys can be about a command of this program.
    pub fn may_be_about(&self, program: &str) -> bool {
        self.names.iter().any(|name| name == program || name == COVERED)
    }

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

/// Policies by surface and by what they name.
#[derive(Clone, Debug, Default)]
pub struct PolicyIndex {
    slots: HashMap<Surface, HashMap<String, Slot>>,
    general: HashMap<Surface, Vec<usize>>,
}

impl PolicyIndex {
    /// The index of these policies; positions are positions in the slice.
    pub fn new(policies: &[Policy]) -> Self {
        PolicyIndex::of_keys(policies.iter().enumerate().map(|(at, p)| (at, p.surface, p.keys.as_ref())))
    }

    /// The index of policies of which the position, the surface and the keys are known.
    pub fn of_keys<'k>(policies: impl Iterator<Item = (usize, Surface, Option<&'k Keys>)>) -> Self {
        let mut index = PolicyIndex::default();
        for (position, surface, keys) in policies {
            let Some(keys) = keys else {
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

    fn general(&self, surface: Surface) -> Vec<usize> {
        self.general.get(&surface).cloned().unwrap_or_default()
    }

    /// Positions of the policies that can hold for these facts, ascending.
    pub fn candidates(&self, surface: Surface, facts: &Facts) -> Vec<usize> {
        let mut out = self.general(surface);
        if let Some(slots) = self.slots.get(&surface) {
            match facts {
                Facts::Command(facts) => {
                    if facts.covered {
                        out.extend(slots.get(COVERED).into_iter().flat_map(Slot::all));
                    }
                    if let Some(slot) = slots.get(&facts.program) {
                        match facts.args.first() {
                            _ if facts.unknown.contains(&1) => out.extend(slot.all()),
                            Some(Some(word)) => out.extend(slot.of_word(word)),
                            _ => out.extend(&slot.any_word),
                        }
                    }
                }
                Facts::Egress(facts) => {
                    // The host, and every domain above it.
                    let host = facts.host.as_str();
                    let above = host.match_indices('.').filter_map(|(at, _)| host.get(at + 1..));
                    for name in std::iter::once(host).chain(above) {
                        out.extend(slots.get(name).into_iter().flat_map(Slot::all));
                    }
                }
            }
        }
        settled(out)
    }

    /// Positions of the policies that can hold together with `policy`; more than those where
    /// that cannot be told.
    pub fn related(&self, policy: &Policy) -> Vec<usize> {
        let mut out = self.general(policy.surface);
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

fn settled(mut positions: Vec<usize>) -> Vec<usize> {
    positions.sort_unstable();
    positions.dedup();
    positions
}
