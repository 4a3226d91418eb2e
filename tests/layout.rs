//! The directions of DESIGN 10, read off the `use` lines: data flows one way, and what is
//! confined to a folder stays there.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::panic,
    reason = "a test that cannot go on fails"
)]

use std::path::{Path, PathBuf};

fn sources(dir: &Path, out: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, out);
        } else if path.extension().is_some_and(|e| e == "rs") {
            out.push(path);
        }
    }
}

/// Each source file as module folder, path and text without its tests.
fn modules() -> Vec<(String, String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    sources(&root, &mut files);
    files
        .into_iter()
        .map(|path| {
            let relative = path.strip_prefix(&root).unwrap().to_str().unwrap().to_owned();
            let module = relative.split('/').next().unwrap().trim_end_matches(".rs").to_owned();
            let text = std::fs::read_to_string(&path).unwrap();
            let text = text.split("#[cfg(test)]\nmod tests").next().unwrap().to_owned();
            (module, relative, text)
        })
        .collect()
}

/// What each folder may name of the crate.
const MAY_USE: &[(&str, &[&str])] = &[
    ("source", &[]),
    ("diag", &["source"]),
    ("model", &["source", "diag"]),
    ("parse", &["source", "diag", "model"]),
    ("compile", &["source", "diag", "model"]),
    ("decide", &["source", "model", "parse", "compile"]),
    ("analyze", &["source", "diag", "model", "compile", "decide"]),
    ("report", &["source", "diag"]),
    // Reads SQL through `parse` and files through `source`; what it finds goes to `cli`.
    ("retention", &["source", "diag", "model", "parse"]),
    ("sign", &[]),
    // Reads a host; what a credential is judged by comes out of `model`.
    ("census", &["source", "diag", "model"]),
    // Reads other formats into rows of the model; of `parse` it takes the reader of YAML.
    ("import", &["source", "diag", "model", "parse"]),
    (
        "cli",
        &[
            "source",
            "diag",
            "model",
            "parse",
            "compile",
            "decide",
            "analyze",
            "report",
            "retention",
            "sign",
            "census",
            "import",
        ],
    ),
];

#[test]
fn folders_name_only_what_lies_before_them() {
    let mut checked = 0;
    for (module, path, text) in modules() {
        let Some((_, allowed)) = MAY_USE.iter().find(|(m, _)| *m == module) else {
            assert!(matches!(module.as_str(), "lib" | "bin"), "{path} has no place in the layout");
            continue;
        };
        for (at, _) in text.match_indices("crate::") {
            let used: String = text[at + 7..].chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
            let known = MAY_USE.iter().any(|(m, _)| *m == used);
            assert!(!known || used == module || allowed.contains(&used.as_str()), "{path} uses crate::{used}");
            checked += 1;
        }
    }
    assert!(checked > 50, "{checked}");
}

/// The only files that start processes.
const PROCESSES: [&str; 6] = [
    "analyze/smt/solver/group.rs",
    "analyze/smt/solver/install.rs",
    "analyze/smt/solver/places.rs",
    "analyze/smt/solver/short.rs",
    "source/git.rs",
    // Its own file: one process that answers for a whole range of commits.
    "source/objects.rs",
];

/// The only files that reach a network.
const VAULT: [&str; 4] = [
    "sign/signer/vault/doctor.rs",
    "sign/signer/vault/errors.rs",
    "sign/signer/vault/session.rs",
    "sign/signer/vault/settings.rs",
];

#[test]
fn what_is_confined_stays_where_it_is() {
    for (what, folders, files) in [
        ("cedar_policy", &["compile", "analyze", "decide"][..], &["cli/compile.rs"][..]),
        ("process::Command", &[], &PROCESSES),
        ("cedar_policy_symcc", &["analyze"], &[]),
        (" println!", &[], &[]),
        ("eprint", &["cli"], &[]),
        ("std::io::stdout", &["cli"], &[]),
        ("pulldown_cmark", &["parse"], &[]),
        // The census reads YAML of other tools: it needs the text of scalars only, no findings.
        ("serde_saphyr", &["parse"], &["census/probe/yaml.rs"]),
        ("squawk_syntax", &["parse"], &[]),
        ("std::time", &["cli"], &[]),
        ("brush_parser", &["parse"], &[]),
        ("std::env", &["cli"], &[]),
        ("ed25519_dalek", &["sign"], &[]),
        ("vaultrs", &[], &VAULT),
        ("reqwest", &[], &VAULT),
        ("rustify", &[], &VAULT),
        ("tokio", &["analyze"], &VAULT),
    ] {
        for (module, path, text) in modules() {
            let code: String =
                text.lines().filter(|l| !l.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n");
            let hit = code.contains(what);
            assert!(!hit || folders.contains(&module.as_str()) || files.contains(&path.as_str()), "{path} has {what}");
        }
    }
}

/// The main file dispatches and nothing else (STYLE 1).
#[test]
fn main_is_short() {
    let (_, _, text) = modules().into_iter().find(|(_, path, _)| path == "bin/polctl.rs").unwrap();
    assert!(text.lines().count() < 60);
}
