//! A compiled bundle, asked through Cedar: only the policies that can apply are parsed.

use std::collections::HashMap;
use std::rc::Rc;

use cedar_policy::{PolicyId, PolicySet as CedarSet};

use super::Slices;
use crate::compile::{BUNDLE_MAGIC, BundleHead, CompileError, PolicyIndex};
use crate::model::{FACTS_VERSION, Facts, PathPattern, Surface, TABLE_STAMP, ZoneMatcher, Zones};
use crate::source::{SourceMap, Span};

/// Why a bundle cannot be used. None of these is ever an answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BundleError {
    /// It is no bundle, or a part of it is missing.
    #[error("the bundle is damaged: {what}")]
    Damaged {
        /// What is wrong.
        what: String,
    },
    /// It was compiled by a polctl that reads lines differently.
    #[error("the bundle was compiled by polctl {by}, which reads commands differently than this one")]
    OtherVersion {
        /// The version that compiled it.
        by: String,
    },
}

/// A bundle.
pub struct Bundle {
    text: String,
    head: BundleHead,
    zones: ZoneMatcher,
    /// By surface and program: of the policies that can be about it. The index of the whole set
    /// would be made for each command anew.
    indexes: HashMap<(Surface, String), PolicyIndex>,
    /// Where each policy's text stands.
    places: Vec<std::ops::Range<usize>>,
    guardrails: Vec<usize>,
    /// Policies that were parsed, by position: parts of a line share them.
    parsed: HashMap<usize, cedar_policy::Policy>,
    slices: HashMap<(Surface, Vec<usize>), Rc<CedarSet>>,
}

fn damaged(what: impl Into<String>) -> BundleError {
    BundleError::Damaged { what: what.into() }
}

impl Bundle {
    /// Reads a bundle.
    ///
    /// # Errors
    ///
    /// [`BundleError`].
    pub fn read(bytes: Vec<u8>) -> Result<Self, BundleError> {
        let text = String::from_utf8(bytes).map_err(|_| damaged("it is not text"))?;
        let rest = text.strip_prefix(BUNDLE_MAGIC).ok_or_else(|| damaged("it does not begin like a bundle"))?;
        let (length, rest) = rest.split_once('\n').ok_or_else(|| damaged("its head is missing"))?;
        let length: usize = length.parse().map_err(|_| damaged("its head has no length"))?;
        let json = rest.get(..length).ok_or_else(|| damaged("its head is cut off"))?;
        let head: BundleHead = serde_json::from_str(json).map_err(|e| damaged(format!("its head: {e}")))?;
        if head.facts != FACTS_VERSION || head.table != TABLE_STAMP {
            return Err(BundleError::OtherVersion { by: head.polctl });
        }
        let mut at = text.len() - rest.len() + length + 1;
        let mut places = Vec::new();
        for policy in &head.policies {
            let end = at.checked_add(policy.length).filter(|end| text.get(at..*end).is_some());
            let end = end.ok_or_else(|| damaged("its policies are cut off"))?;
            places.push(at..end);
            at = end;
        }
        if at != text.len() {
            return Err(damaged("something stands behind its policies"));
        }
        let guardrails =
            head.policies.iter().enumerate().filter(|(_, p)| p.surface.is_none()).map(|(at, _)| at).collect();
        let zones = zones(&head)?;
        Ok(Bundle {
            text,
            head,
            zones,
            indexes: HashMap::new(),
            places,
            guardrails,
            parsed: HashMap::new(),
            slices: HashMap::new(),
        })
    }

    /// What it says of itself.
    pub const fn head(&self) -> &BundleHead {
        &self.head
    }

    /// The index of the policies that can be about a program; of all where none is named.
    fn index(&self, surface: Surface, program: Option<&str>) -> PolicyIndex {
        PolicyIndex::of_keys(self.head.policies.iter().enumerate().filter_map(|(position, policy)| {
            let own = Surface::from_name(policy.surface.as_deref()?)?;
            let about =
                program.is_none_or(|program| policy.keys.as_ref().is_none_or(|keys| keys.may_be_about(program)));
            (own == surface && about).then_some((position, own, policy.keys.as_ref()))
        }))
    }

    /// Its zones.
    pub const fn zones(&self) -> &ZoneMatcher {
        &self.zones
    }
}

fn zones(head: &BundleHead) -> Result<ZoneMatcher, BundleError> {
    // Places in the configuration are of no use here; nothing points at them.
    let span = Span::new(SourceMap::new().add(crate::parse::CONFIG_NAME, None, ""), 0, 0);
    let mut zones = Zones::default();
    for (name, patterns) in &head.zones {
        let patterns = patterns
            .iter()
            .map(|pattern| PathPattern::parse(pattern).map_err(|why| damaged(format!("zone `{name}`: {why}"))))
            .collect::<Result<_, _>>()?;
        zones.declare(name, patterns, span);
    }
    Ok(zones.matcher())
}

impl Slices for Bundle {
    fn covers(&self, surface: Surface) -> bool {
        self.head.surfaces.iter().any(|name| name == surface.name())
    }

    fn slice(&mut self, surface: Surface, facts: &Facts) -> Result<Rc<CedarSet>, CompileError> {
        let name = match facts {
            Facts::Command(facts) => Some(facts.program.as_str()),
            Facts::Egress(_) => None,
        };
        let key = (surface, name.unwrap_or("").to_owned());
        if !self.indexes.contains_key(&key) {
            let index = self.index(surface, name);
            self.indexes.insert(key.clone(), index);
        }
        let mut positions = self.indexes.get(&key).map(|index| index.candidates(surface, facts)).unwrap_or_default();
        positions.extend(&self.guardrails);
        let key = (surface, positions);
        if let Some(slice) = self.slices.get(&key) {
            return Ok(Rc::clone(slice));
        }
        let mut set = CedarSet::new();
        for at in &key.1 {
            let (Some(policy), Some(place)) = (self.head.policies.get(*at), self.places.get(*at)) else { continue };
            let text = self.text.get(place.clone()).unwrap_or("");
            let failed = |source: Box<dyn std::error::Error + Send + Sync>| CompileError::Parse {
                what: policy.id.clone(),
                source,
            };
            let parsed = if let Some(parsed) = self.parsed.get(at) {
                parsed.clone()
            } else {
                let parsed = cedar_policy::Policy::parse(Some(PolicyId::new(&policy.id)), text)
                    .map_err(|e| failed(Box::new(e)))?;
                self.parsed.insert(*at, parsed.clone());
                parsed
            };
            set.add(parsed).map_err(|e| failed(Box::new(e)))?;
        }
        let set = Rc::new(set);
        self.slices.insert(key, Rc::clone(&set));
        Ok(set)
    }
}
