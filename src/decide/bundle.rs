//! A compiled bundle, asked through Cedar: only the policies that can apply are parsed.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::Range;
use std::rc::Rc;
use std::str::FromStr as _;
use std::sync::Arc;

use cedar_policy::{PolicyId, PolicySet as CedarSet};
use memchr::{memchr, memchr_iter, memmem};

use super::Slices;
use crate::compile::{BUNDLE_MAGIC, BundleHead, CompileError, KeyLine, Lookup, PolicyLine, PolicyText};
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
    zones: Arc<ZoneMatcher>,
    /// The keys, with the line break before them, so that each line begins behind one.
    keys: Range<usize>,
    policies: Lines,
    fragments: Lines,
    /// Positions that were looked up, by how the lines of their keys begin.
    found: RefCell<HashMap<String, Vec<usize>>>,
    /// Policies that were parsed, by position: parts of a line share them.
    parsed: HashMap<usize, cedar_policy::Policy>,
    slices: HashMap<(Surface, Vec<usize>), Rc<CedarSet>>,
}

/// The lines of a section.
struct Lines {
    /// Where the section begins in the text.
    start: usize,
    /// Where its lines end, counted from there.
    ends: Vec<usize>,
}

impl Lines {
    /// Finds the lines of a section, which are `count`.
    fn of(text: &str, section: Range<usize>, count: usize) -> Option<Self> {
        let bytes = text.as_bytes().get(section.clone())?;
        let ends: Vec<usize> = memchr_iter(b'\n', bytes).collect();
        let closed = ends.last().map_or(0, |last| last + 1) == bytes.len();
        (closed && ends.len() == count).then_some(Lines { start: section.start, ends })
    }

    fn get(&self, number: usize) -> Option<Range<usize>> {
        let end = self.ends.get(number)?;
        let begin = number.checked_sub(1).and_then(|before| self.ends.get(before)).map_or(0, |before| before + 1);
        Some(self.start + begin..self.start + end)
    }
}

fn damaged(what: impl Into<String>) -> BundleError {
    BundleError::Damaged { what: what.into() }
}

/// What is found to be wrong only when a part is needed.
fn unreadable(what: &str, source: impl std::error::Error + Send + Sync + 'static) -> CompileError {
    CompileError::Parse { what: what.into(), source: Box::new(source) }
}

impl Bundle {
    /// Reads a bundle. The lines of its sections are found, and read when they are needed.
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
        let behind = text.len() - rest.len() + length;
        let (keys, policies, fragments) = sections(&text, behind, &head)?;
        let zones = Arc::new(zones(&head)?);
        let (found, parsed, slices) = (RefCell::default(), HashMap::new(), HashMap::new());
        Ok(Bundle { text, head, zones, keys, policies, fragments, found, parsed, slices })
    }

    /// What it says of itself.
    pub const fn head(&self) -> &BundleHead {
        &self.head
    }

    /// Its zones.
    pub const fn zones(&self) -> &Arc<ZoneMatcher> {
        &self.zones
    }

    /// Whether every line can be read and every policy parses: what is not needed for one decision
    /// is otherwise not looked at.
    ///
    /// # Errors
    ///
    /// [`CompileError`] for the first that does not.
    pub fn check(&mut self) -> Result<(), CompileError> {
        self.lookup("")?;
        self.parse(&(0..self.head.policies).collect::<Vec<_>>())
    }

    /// A policy as the compiler prints it.
    ///
    /// # Errors
    ///
    /// [`CompileError`] when there is none at this position, or a part of it is missing.
    pub fn text(&self, position: usize) -> Result<PolicyText, CompileError> {
        let (line, text) = self.policy(position)?;
        Ok(PolicyText { id: line.0, text })
    }

    /// The positions of the keys whose lines begin like this.
    fn lookup(&self, begins: &str) -> Result<Vec<usize>, CompileError> {
        if let Some(found) = self.found.borrow().get(begins) {
            return Ok(found.clone());
        }
        let text = self.text.get(self.keys.clone()).unwrap_or_default();
        let needle = format!("\n{begins}");
        let mut found = Vec::new();
        for at in memmem::find_iter(text.as_bytes(), needle.as_bytes()) {
            let rest = text.get(at + 1..).unwrap_or_default();
            let Some(end) = memchr(b'\n', rest.as_bytes()) else { continue };
            let line: KeyLine = serde_json::from_str(rest.get(..end).unwrap_or_default())
                .map_err(|e| unreadable("a line of the bundle's keys", e))?;
            if let Some(outside) = line.3.iter().find(|position| **position >= self.head.policies) {
                return Err(unreadable("the bundle's keys", damaged(format!("there is no policy {outside}"))));
            }
            found.extend(line.3);
        }
        self.found.borrow_mut().insert(begins.to_owned(), found.clone());
        Ok(found)
    }

    /// Id and text of a policy.
    fn policy(&self, position: usize) -> Result<(PolicyLine, String), CompileError> {
        let what = "a policy of the bundle";
        let line = self.policies.get(position).and_then(|line| self.text.get(line));
        let line = line.ok_or_else(|| unreadable(what, damaged(format!("there is no policy {position}"))))?;
        let line: PolicyLine = serde_json::from_str(line).map_err(|e| unreadable(what, e))?;
        let mut text = String::new();
        for (index, fragment) in line.1.iter().enumerate() {
            if index > 0 {
                text.push('\n');
            }
            match fragment {
                None => text.push_str(&line.id_line()),
                Some(number) => {
                    let fragment = self.fragments.get(*number).and_then(|fragment| self.text.get(fragment));
                    let missing = || unreadable(what, damaged(format!("there is no fragment {number}")));
                    text.push_str(fragment.ok_or_else(missing)?);
                }
            }
        }
        Ok((line, text))
    }

    /// Parses those of the policies that were not parsed yet, as one text: Cedar makes the tables
    /// of its lexer anew for each text.
    fn parse(&mut self, positions: &[usize]) -> Result<(), CompileError> {
        let new = positions.iter().filter(|position| !self.parsed.contains_key(position));
        let new = new.map(|position| Ok((*position, self.policy(*position)?))).collect::<Result<Vec<_>, _>>()?;
        if new.is_empty() {
            return Ok(());
        }
        let texts: Vec<&str> = new.iter().map(|(_, (_, text))| text.as_str()).collect();
        let what = "the policies of the bundle";
        let set = CedarSet::from_str(&texts.join("\n")).map_err(|e| unreadable(what, e))?;
        if set.policies().count() != new.len() || set.templates().next().is_some() {
            return Err(unreadable(what, damaged("a text is not one policy")));
        }
        for (number, (position, (line, _))) in new.into_iter().enumerate() {
            // So Cedar names the policies of a text.
            let parsed = set.policy(&PolicyId::new(format!("policy{number}")));
            let own = |parsed: &&cedar_policy::Policy| {
                self.is_guardrail(position) || parsed.annotation("id") == Some(line.0.as_str())
            };
            let parsed = parsed.filter(own).ok_or_else(|| unreadable(what, damaged("a text is not one policy")))?;
            self.parsed.insert(position, parsed.new_id(PolicyId::new(&line.0)));
        }
        Ok(())
    }

    /// Whether a policy is written by hand, as it likes.
    const fn is_guardrail(&self, position: usize) -> bool {
        position >= self.head.policies.saturating_sub(self.head.guardrails)
    }

    /// The positions of the policies that can apply to a request.
    fn positions(&self, surface: Surface, facts: &Facts) -> Result<Vec<usize>, CompileError> {
        let mut positions = self.holding(surface, facts)?;
        positions.extend(self.head.policies.saturating_sub(self.head.guardrails)..self.head.policies);
        Ok(positions)
    }
}

impl Lookup for Bundle {
    type Error = CompileError;

    fn general(&self, surface: Surface) -> Result<Vec<usize>, CompileError> {
        self.lookup(&format!("[{},null,", quoted(surface.name())))
    }

    fn of_name(&self, surface: Surface, name: &str) -> Result<Vec<usize>, CompileError> {
        self.lookup(&format!("[{},{},", quoted(surface.name()), quoted(name)))
    }

    fn of_word(&self, surface: Surface, name: &str, word: Option<&str>) -> Result<Vec<usize>, CompileError> {
        let of = |word: &str| self.lookup(&format!("[{},{},{word},", quoted(surface.name()), quoted(name)));
        let mut found = of("null")?;
        if let Some(word) = word {
            found.extend(of(&quoted(word))?);
        }
        Ok(found)
    }
}

/// A text as it stands in a line of keys.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Where keys, policies and fragments stand, behind the head.
fn sections(text: &str, behind: usize, head: &BundleHead) -> Result<(Range<usize>, Lines, Lines), BundleError> {
    let cut_off = || damaged("its sections are cut off, or something stands behind them");
    if text.as_bytes().get(behind) != Some(&b'\n') || head.guardrails > head.policies {
        return Err(damaged("its head does not fit"));
    }
    let [keys, policies, fragments] = head.sections;
    let begin = |before: usize, length: usize| before.checked_add(length).ok_or_else(cut_off);
    let policies_at = begin(behind + 1, keys)?;
    let fragments_at = begin(policies_at, policies)?;
    let end = begin(fragments_at, fragments)?;
    let closed = text.as_bytes().get(policies_at.saturating_sub(1)) == Some(&b'\n');
    if end != text.len() || !closed {
        return Err(cut_off());
    }
    let policies = Lines::of(text, policies_at..fragments_at, head.policies).ok_or_else(cut_off)?;
    let fragments = Lines::of(text, fragments_at..end, head.fragments).ok_or_else(cut_off)?;
    Ok((behind..policies_at, policies, fragments))
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

    fn prepare(&mut self, requests: &[(Surface, &Facts)]) -> Result<(), CompileError> {
        let mut positions = Vec::new();
        for (surface, facts) in requests {
            if self.covers(*surface) {
                positions.extend(self.positions(*surface, facts)?);
            }
        }
        positions.sort_unstable();
        positions.dedup();
        self.parse(&positions)
    }

    fn slice(&mut self, surface: Surface, facts: &Facts) -> Result<Rc<CedarSet>, CompileError> {
        let key = (surface, self.positions(surface, facts)?);
        if let Some(slice) = self.slices.get(&key) {
            return Ok(Rc::clone(slice));
        }
        self.parse(&key.1)?;
        let mut set = CedarSet::new();
        for position in &key.1 {
            let missing = || unreadable("a policy of the bundle", damaged(format!("there is no policy {position}")));
            let parsed = self.parsed.get(position).ok_or_else(missing)?.clone();
            let what = parsed.id().to_string();
            set.add(parsed).map_err(|e| CompileError::Parse { what, source: Box::new(e) })?;
        }
        let set = Rc::new(set);
        self.slices.insert(key, Rc::clone(&set));
        Ok(set)
    }
}
