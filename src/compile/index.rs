//! Finding the policies that can apply to a request without looking at all of them.

use std::collections::HashMap;

use super::Policy;
use crate::model::{Facts, Surface};

/// Policies by surface and key: the programs or domains that their own condition names. A
/// policy cannot hold for a request that none of its keys names, so it need not be asked.
#[derive(Clone, Debug, Default)]
pub struct PolicyIndex {
    by_key: HashMap<(Surface, String), Vec<usize>>,
    general: HashMap<Surface, Vec<usize>>,
}

impl PolicyIndex {
    /// The index of these policies; positions are positions in the slice.
    pub fn new(policies: &[Policy]) -> Self {
        let mut index = PolicyIndex::default();
        for (position, policy) in policies.iter().enumerate() {
            match &policy.keys {
                Some(keys) => {
                    for key in keys {
                        index.by_key.entry((policy.surface, key.clone())).or_default().push(position);
                    }
                }
                None => index.general.entry(policy.surface).or_default().push(position),
            }
        }
        index
    }

    /// Positions of the policies that can hold for these facts, ascending.
    pub fn candidates(&self, surface: Surface, facts: &Facts) -> Vec<usize> {
        let mut out: Vec<usize> = self.general.get(&surface).into_iter().flatten().copied().collect();
        for key in keys_of(facts) {
            out.extend(self.by_key.get(&(surface, key.to_owned())).into_iter().flatten().copied());
        }
        out.sort_unstable();
        out.dedup();
        out
    }

    /// Positions of the policies that share a key with `policy`, or have none; all of the
    /// surface when it has none itself.
    pub fn related(&self, policy: &Policy) -> Vec<usize> {
        let mut out: Vec<usize> = self.general.get(&policy.surface).into_iter().flatten().copied().collect();
        match &policy.keys {
            Some(keys) if policy.surface != Surface::Egress => {
                for key in keys {
                    out.extend(self.by_key.get(&(policy.surface, key.clone())).into_iter().flatten().copied());
                }
            }
            // Domains nest, so another key may still meet the same host.
            _ => {
                for ((surface, _), positions) in &self.by_key {
                    if *surface == policy.surface {
                        out.extend(positions.iter().copied());
                    }
                }
            }
        }
        out.sort_unstable();
        out.dedup();
        out
    }
}

/// What a slice depends on: the program, or the host with every domain above it.
fn keys_of(facts: &Facts) -> Vec<&str> {
    match facts {
        Facts::Command(facts) => vec![facts.program.as_str()],
        Facts::Egress(facts) => {
            let host = facts.host.as_str();
            let above = host.match_indices('.').filter_map(|(at, _)| host.get(at + 1..));
            std::iter::once(host).chain(above).collect()
        }
    }
}
