//! What the tests of capability manifests share.

#![allow(
    dead_code,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test that cannot go on fails"
)]

pub mod maps;
pub mod reading;
pub mod witness;

use polctl::compile::{Compiled, compile};
use polctl::decide::CapabilityDecider;
use polctl::model::{CAPABILITY_RUNGS, CapabilityRequest, Manifest, PolicySet};
use polctl::parse::parse_manifest;
use polctl::source::SourceMap;

use crate::common::{Files, parsed};
use maps::Doc;
use reading::Facts;

/// What the configuration of these tests says of manifests.
pub fn facts(provenance: bool) -> Facts {
    Facts { provenance, guarded: ["/pol", "/usr/bin", "/opt/tools"].map(str::to_owned).to_vec() }
}

thread_local! {
    /// Sets without manifests: read once, since every case begins with one.
    static BASES: [(PolicySet, SourceMap); 2] = [false, true].map(|provenance| {
        let mut map = SourceMap::new();
        (load_base(provenance, &mut map), map)
    });
}

/// A set without manifests, and the map that manifests are added to.
pub fn base(provenance: bool) -> (PolicySet, SourceMap) {
    BASES.with(|bases| bases[usize::from(provenance)].clone())
}

fn load_base(provenance: bool, map: &mut SourceMap) -> PolicySet {
    let settings = if provenance { "" } else { "provenance: off\n" };
    configured(&format!("zones:\n  policy: [\"/pol/**\"]\ntrusted_dirs: [/usr/bin, /opt/tools]\n{settings}"), map)
}

/// A set without manifests, with some settings.
pub fn configured(settings: &str, map: &mut SourceMap) -> PolicySet {
    let config = format!("polctl: v1\nset: test\n{settings}policies: [map.md]\n");
    let rules = "---\npolctl: v1\nsurface: commands\nunmatched: 2\n---\n\n## Tier 1\n\n- `a`\n";
    parsed(&Files([("polctl.yaml".into(), config), ("map.md".into(), rules.into())].into()), map)
}

/// A manifest by its text; panics with the findings when it is not accepted.
pub fn manifest(path: &str, text: &str, map: &mut SourceMap) -> Manifest {
    let mut findings = Vec::new();
    match parse_manifest(path, text.as_bytes(), map, &mut findings) {
        Some(manifest) => manifest,
        None => panic!("a manifest is refused: {findings:#?}\n{text}"),
    }
}

/// A compiled set of these manifests; the map must be one of [`base`].
pub fn set_of(docs: &[Doc], base: &PolicySet, map: &mut SourceMap) -> Compiled {
    let texts: Vec<_> = docs.iter().map(|doc| (doc.path(), doc.yaml())).collect();
    set_of_texts(&texts, base, map)
}

/// A compiled set of manifests by path and text.
pub fn set_of_texts(texts: &[(String, String)], base: &PolicySet, map: &mut SourceMap) -> Compiled {
    let mut set = base.clone();
    set.manifests = texts.iter().map(|(path, text)| manifest(path, text, map)).collect();
    set.manifests.sort_by(|a, b| a.path.cmp(&b.path));
    compile(set, Vec::new())
}

/// What Cedar says at each rung.
pub fn cedar(decider: &mut CapabilityDecider<'_>, request: &CapabilityRequest) -> Vec<bool> {
    (0..CAPABILITY_RUNGS).map(|rung| decider.allows(request, rung).unwrap()).collect()
}

/// All texts of a set.
pub fn shown(docs: &[Doc]) -> String {
    docs.iter().map(|doc| format!("=== {}\n{}", doc.path(), doc.yaml())).collect()
}
