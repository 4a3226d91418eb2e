//! A compiled set in one file, made to be asked one question quickly (DESIGN 1, `polctl hook`).
//!
//! A head says what the bundle was compiled from and what normalising a line needs. Behind it
//! stand three sections of lines: the keys (which policies can be about a program and its first
//! word), the policies (id and numbers of fragments), and the fragments. A policy's text is its
//! fragments, one below the other: most lines of Cedar stand in many policies, and every byte of
//! a bundle is hashed before a decision. A reader parses the head, and of the others the few
//! lines that it needs. The head names every source file with its digest; that nobody changed
//! the bundle itself is the signature's business.

use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::cedar::string;
use super::{Compiled, PolicyIndex, render};
use crate::model::{FACTS_VERSION, TABLE_STAMP};
use crate::source::SourceMap;

/// First line of a bundle.
pub const BUNDLE_MAGIC: &str = "polctl-bundle 3\n";
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
    /// How many of them are hand-written guardrails, which are asked always.
    pub guardrails: usize,
    /// How many fragments there are.
    pub fragments: usize,
    /// Bytes of the keys, the policies and the fragments, which stand in this order.
    pub sections: [usize; 3],
}

/// A line of the keys: surface, name, first word, and the positions of the policies that can be
/// about them. Without a word: about any; without a name as well: about every request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyLine(pub String, pub Option<String>, pub Option<String>, pub Vec<usize>);

/// A line of the policies: Cedar policy id, and the numbers of its fragments. `None` stands for
/// the annotation with the id.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicyLine(pub String, pub Vec<Option<usize>>);

impl PolicyLine {
    /// The line that annotates a policy with its id.
    pub fn id_line(&self) -> String {
        format!("@id({})", string(&self.0))
    }
}

/// SHA-256 in hexadecimal.
pub fn sha256_hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The bundle of a compiled set, byte for byte determined by it. `sources` are the files that it was loaded from.
pub fn bundle(compiled: &Compiled, map: &SourceMap, sources: &[(String, Vec<u8>)]) -> Vec<u8> {
    let config = &compiled.set.config;
    let rendered = compiled.generated().map(|policy| render(compiled, policy, map)).map(|text| (text.id, text.text));
    let guardrails = compiled.guardrails.iter().map(|guardrail| (guardrail.id.clone(), guardrail.text.clone()));
    let texts: Vec<(String, String)> = rendered.chain(guardrails).collect();
    let (policies, fragments) = shared(&texts);
    // Those that stand for guardrails are the last, so positions are the same without them.
    let index = PolicyIndex::new(compiled.policies.get(..compiled.generated().count()).unwrap_or_default());
    let keys = lines(index.entries().into_iter().map(|((surface, name, word), positions)| {
        json(&KeyLine(surface.name().to_owned(), name.map(str::to_owned), word.map(str::to_owned), positions))
    }));
    let count = fragments.len();
    let (policies, fragments) = (lines(policies.iter().map(json)), lines(fragments.into_iter().map(str::to_owned)));
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
        policies: texts.len(),
        guardrails: compiled.guardrails.len(),
        fragments: count,
        sections: [keys.len(), policies.len(), fragments.len()],
    };
    let head = json(&head);
    format!("{BUNDLE_MAGIC}{}\n{head}\n{keys}{policies}{fragments}", head.len()).into_bytes()
}

/// Policies as numbers of fragments, and the fragments: each line of the texts once. Those that
/// stand in most policies have the shortest numbers.
fn shared(texts: &[(String, String)]) -> (Vec<PolicyLine>, Vec<&str>) {
    let mut uses: HashMap<&str, usize> = HashMap::new();
    for line in texts.iter().flat_map(|(id, text)| fragments(id, text)).flatten() {
        *uses.entry(line).or_default() += 1;
    }
    let mut order: Vec<&str> = uses.keys().copied().collect();
    order.sort_unstable_by(|a, b| uses.get(b).cmp(&uses.get(a)).then(a.cmp(b)));
    let numbers: HashMap<&str, usize> = order.iter().enumerate().map(|(number, line)| (*line, number)).collect();
    let policy = |(id, text): &(String, String)| {
        let lines = fragments(id, text).into_iter();
        PolicyLine(id.clone(), lines.map(|line| line.and_then(|line| numbers.get(line).copied())).collect())
    };
    (texts.iter().map(policy).collect(), order)
}

/// The lines of a policy's text; `None` for the one that annotates it with its id.
fn fragments<'a>(id: &str, text: &'a str) -> Vec<Option<&'a str>> {
    let own = PolicyLine(id.to_owned(), Vec::new()).id_line();
    text.split('\n').map(|line| (line != own).then_some(line)).collect()
}

/// Texts as lines.
fn lines(texts: impl Iterator<Item = String>) -> String {
    texts.map(|text| text + "\n").collect()
}

/// Strings, numbers and lists as JSON on one line: there is nothing that could fail.
fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}
