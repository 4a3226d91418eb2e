//! A compiled set in one file, made to be asked one question quickly (DESIGN 1, `polctl hook`).
//!
//! A head says what the bundle was compiled from and what normalising a line needs. An index has a
//! line for each policy: the length of its text, and to which programs it can apply. Behind it
//! stand the texts. A reader parses the head, and of the others the few that it needs. The head names every source file with its digest;
//! that nobody changed the bundle itself is the signature's business.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::index::Keys;
use super::{Compiled, render};
use crate::model::{FACTS_VERSION, Surface, TABLE_STAMP};
use crate::source::SourceMap;

/// First line of a bundle.
pub const BUNDLE_MAGIC: &str = "polctl-bundle 2\n";
/// Its usual name in a policy directory.
pub const BUNDLE_NAME: &str = "polctl.bundle";
/// Largest bundle that is read, in bytes.
pub const MAX_BUNDLE: u64 = 256 << 20;

/// What a bundle says of itself.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BundleHead {
    /// The polctl that compiled it.
    pub polctl: String,
    /// Name of the set.
    pub set: String,
    /// Its `policy_id`.
    pub policy_id: String,
    /// Version of the facts that its conditions speak of.
    pub facts: u32,
    /// [`TABLE_STAMP`] of the program table that it was compiled with.
    pub table: u64,
    /// The files that it was compiled from: name, size in bytes, SHA-256.
    pub sources: Vec<(String, u64, String)>,
    /// Surfaces that some file covers.
    pub surfaces: Vec<String>,
    /// Zones with their patterns.
    pub zones: BTreeMap<String, Vec<String>>,
    /// Directories whose programs are the ones that rules mean.
    pub trusted_dirs: Vec<String>,
    /// How many policies there are; hand-written guardrails stand last.
    pub policies: usize,
}

/// One policy of a bundle: a line of its index.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BundledPolicy {
    /// Its surface; `None` for a guardrail, which is asked always.
    #[serde(rename = "s")]
    pub surface: Option<String>,
    /// What its condition names.
    #[serde(rename = "k")]
    pub keys: Option<Keys>,
    /// Cedar policy id.
    #[serde(rename = "i")]
    pub id: String,
}

/// SHA-256 in hexadecimal.
pub fn sha256_hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The bundle of a compiled set, byte for byte determined by it. `sources` are the files that it was loaded from.
pub fn bundle(compiled: &Compiled, map: &SourceMap, sources: &[(String, Vec<u8>)]) -> Vec<u8> {
    let config = &compiled.set.config;
    let (mut index, mut texts) = (String::new(), String::new());
    let mut add = |surface: Option<Surface>, keys: Option<Keys>, id: &str, text: &str| {
        let policy = BundledPolicy { surface: surface.map(|s| s.name().to_owned()), keys, id: id.to_owned() };
        index.push_str(&format!("{} {}\n", text.len(), json(&policy)));
        texts.push_str(text);
    };
    for policy in compiled.generated() {
        let text = render(compiled, policy, map);
        add(Some(policy.surface), policy.keys.clone(), &text.id, &text.text);
    }
    for guardrail in &compiled.guardrails {
        add(None, None, &guardrail.id, &guardrail.text);
    }
    let zone = |name: &str| {
        let patterns = config.zones.get(name).map(|(patterns, _)| patterns.iter().map(ToString::to_string).collect());
        (name.to_owned(), patterns.unwrap_or_default())
    };
    let head = BundleHead {
        polctl: env!("CARGO_PKG_VERSION").to_owned(),
        set: config.set.clone(),
        policy_id: compiled.policy_id(),
        facts: FACTS_VERSION,
        table: TABLE_STAMP,
        sources: sources
            .iter()
            .map(|(name, bytes)| (name.clone(), u64::try_from(bytes.len()).unwrap_or(u64::MAX), sha256_hex(bytes)))
            .collect(),
        surfaces: compiled.set.surfaces.keys().map(|s| s.name().to_owned()).collect(),
        zones: config.zones.names().map(zone).collect(),
        trusted_dirs: config.trusted_dirs.clone(),
        policies: compiled.generated().count() + compiled.guardrails.len(),
    };
    let head = json(&head);
    format!("{BUNDLE_MAGIC}{}\n{head}\n{index}{texts}", head.len()).into_bytes()
}

/// Strings, numbers and lists as JSON on one line: there is nothing that could fail.
fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}
