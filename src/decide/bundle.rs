//! A compiled bundle, asked through Cedar: only the policies that can apply are parsed.

use std::collections::HashMap;
use std::ops::Range;
use std::rc::Rc;

use cedar_policy::{PolicyId, PolicySet as CedarSet};
use memchr::memmem::Finder;

use super::Slices;
use crate::compile::{BUNDLE_MAGIC, BundleHead, BundledPolicy, CompileError, Keys, PolicyIndex};
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
    /// Where each policy stands.
    places: Vec<Place>,
    guardrails: Vec<usize>,
    /// Policies that were parsed, by position: parts of a line share them.
    parsed: HashMap<usize, cedar_policy::Policy>,
    slices: HashMap<(Surface, Vec<usize>), Rc<CedarSet>>,
}

/// Where a policy stands in the text.
#[derive(Clone)]
struct Place {
    /// Its line of the index, without the length.
    line: Range<usize>,
    /// Its Cedar text.
    policy: Range<usize>,
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
        let index = text.len() - rest.len() + length + 1;
        let places = places(&text, index, head.policies)?;
        let is_guardrail = |place: &Place| text.get(place.line.clone()).is_some_and(|l| l.starts_with(r#"{"s":null"#));
        // They stand last.
        let count = places.iter().rev().take_while(|place| is_guardrail(place)).count();
        let guardrails = (places.len() - count..places.len()).collect();
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

    /// What the index says of a policy.
    fn policy(&self, place: &Place) -> Result<BundledPolicy, CompileError> {
        let line = self.text.get(place.line.clone()).unwrap_or("");
        serde_json::from_str(line)
            .map_err(|e| CompileError::Parse { what: "a line of the bundle's index".into(), source: Box::new(e) })
    }

    /// The index of the policies that can be about a program; of all where none is named.
    fn index(&self, surface: Surface, program: Option<&str>) -> Result<PolicyIndex, CompileError> {
        let marks = program.map(Keys::marks);
        let finders = marks.as_ref().map(|[own, covered]| [own.as_str(), covered, r#""k":null"#].map(Finder::new));
        let mut found = Vec::new();
        for (position, place) in self.places.iter().enumerate() {
            let line = self.text.get(place.line.clone()).unwrap_or("");
            let named = |marks: &[Finder<'_>; 3]| marks.iter().any(|mark| mark.find(line.as_bytes()).is_some());
            if finders.as_ref().is_some_and(|marks| !named(marks)) {
                continue;
            }
            let policy = self.policy(place)?;
            let own = policy.surface.as_deref().and_then(Surface::from_name) == Some(surface);
            let about = program.is_none_or(|p| policy.keys.as_ref().is_none_or(|keys| keys.may_be_about(p)));
            if own && about {
                found.push((position, policy.keys));
            }
        }
        Ok(PolicyIndex::of_keys(found.iter().map(|(position, keys)| (*position, surface, keys.as_ref()))))
    }

    /// Its zones.
    pub const fn zones(&self) -> &ZoneMatcher {
        &self.zones
    }
}

/// Where the policies stand, whose index begins at a byte of the text.
fn places(text: &str, index: usize, count: usize) -> Result<Vec<Place>, BundleError> {
    let cut_off = || damaged("its index is cut off");
    let mut at = index;
    let mut lines = Vec::new();
    for _ in 0..count {
        let line = text.get(at..).and_then(|rest| rest.split('\n').next()).ok_or_else(cut_off)?;
        let (length, json) = line.split_once(' ').ok_or_else(cut_off)?;
        let length: usize = length.parse().map_err(|_| damaged("a line of its index has no length"))?;
        lines.push((at + line.len() - json.len()..at + line.len(), length));
        at += line.len() + 1;
    }
    let mut places = Vec::new();
    for (line, length) in lines {
        let end = at.checked_add(length).filter(|end| text.get(at..*end).is_some());
        let end = end.ok_or_else(|| damaged("its policies are cut off"))?;
        places.push(Place { line, policy: at..end });
        at = end;
    }
    if at != text.len() {
        return Err(damaged("something stands behind its policies"));
    }
    Ok(places)
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
            let index = self.index(surface, name)?;
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
            let Some(place) = self.places.get(*at).cloned() else { continue };
            let parsed = if let Some(parsed) = self.parsed.get(at) {
                parsed.clone()
            } else {
                let id = self.policy(&place)?.id;
                let text = self.text.get(place.policy).unwrap_or("");
                let parsed = cedar_policy::Policy::parse(Some(PolicyId::new(&id)), text)
                    .map_err(|e| CompileError::Parse { what: id, source: Box::new(e) })?;
                self.parsed.insert(*at, parsed.clone());
                parsed
            };
            let what = parsed.id().to_string();
            set.add(parsed).map_err(|e| CompileError::Parse { what, source: Box::new(e) })?;
        }
        let set = Rc::new(set);
        self.slices.insert(key, Rc::clone(&set));
        Ok(set)
    }
}
