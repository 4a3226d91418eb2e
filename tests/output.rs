//! What the commands print and write: JSON for machines, compiled files, finding codes.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::panic,
    reason = "a test that cannot go on fails"
)]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn polctl(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_polctl")).args(args).current_dir(root()).output().unwrap()
}

fn text(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

#[test]
fn json_has_verdict_witness_and_places() {
    let output = polctl(&["diff", "--format", "json", "fixtures/fleet/v4", "fixtures/fleet/v5"]);
    assert_eq!(output.status.code(), Some(1));
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    insta::with_settings!({ filters => vec![("[0-9a-f]{64}", "[policy_id]")] }, {
        insta::assert_snapshot!("diff-json", text(&output));
    });
    assert_eq!((&json["version"], &json["exit_code"], &json["verdict"]), (&1.into(), &1.into(), &"findings".into()));
    let finding =
        json["findings"].as_array().unwrap().iter().find(|f| f["evidence"]["witness"] == "rm -R /etc/").unwrap();
    assert_eq!((&finding["evidence"]["old_tier"], &finding["evidence"]["new_tier"]), (&Value::Null, &3.into()));
    // By hand: the line of that rule in the fixture, counted from 1.
    let map = std::fs::read_to_string(root().join("fixtures/fleet/v5/CLAUDE_CMDS.md")).unwrap();
    let id = map.lines().position(|l| l == "  - id: rm-root").unwrap();
    let above = map.lines().take(id).collect::<Vec<_>>();
    let rule = above.iter().rposition(|l| l.starts_with("- `rm **`")).unwrap() + 1;
    assert_eq!(finding["location"]["start"]["line"], rule);
    assert_eq!(finding["location"]["start"]["column"], 4);
}

#[test]
fn every_format_has_the_same_exit_code() {
    for (old, new, code) in [("v1", "v2", 0), ("v4", "v5", 1), ("v11", "v12", 0)] {
        let (old, new) = (format!("fixtures/fleet/{old}"), format!("fixtures/fleet/{new}"));
        for format in ["human", "json", "markdown", "sarif", "github"] {
            assert_eq!(polctl(&["diff", "--format", format, &old, &new]).status.code(), Some(code), "{format}");
            let check = polctl(&["check", "--format", format, "--dir", &new, "--base", &format!("./{old}")]);
            assert_eq!(check.status.code(), Some(code), "{format}");
        }
    }
    let malformed = polctl(&["check", "--initial", "--format", "json", "--dir", "fixtures/malformed/prose"]);
    assert_eq!(malformed.status.code(), Some(2));
    assert_eq!(serde_json::from_slice::<Value>(&malformed.stdout).unwrap()["verdict"], "malformed");
}

#[test]
fn wrong_usage_exits_2() {
    for args in [
        &["diff", "fixtures/fleet/v1"][..],
        &["frobnicate"],
        &[],
        &["diff", "fixtures/fleet/v1", "no/such/dir/"],
        &["check", "--initial", "--dir", "no/such"],
        &["check", "--initial", "--format", "xml"],
        &["compile", "--dir", "docs"],
        &["rule", "no-such-code"],
        &["check", "--dir", "fixtures/fleet/v1", "--base", "fixtures/fleet/v1"],
    ] {
        let output = polctl(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(!output.stderr.is_empty(), "{args:?} says nothing");
    }
    assert_eq!(polctl(&["--help"]).status.code(), Some(0));
}

#[test]
fn warnings_fail_only_where_they_are_denied() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("polctl.yaml"), "polctl: v1\nset: demo\npolicies: [MAP.md]\n").unwrap();
    let map = "---\npolctl: v1\nsurface: commands\n---\n## Tier 0\n- `ls **`\n- `ls **`\n";
    std::fs::write(dir.path().join("MAP.md"), map).unwrap();
    let dir = dir.path().to_str().unwrap();
    assert_eq!(polctl(&["check", "--initial", "--dir", dir]).status.code(), Some(0));
    assert_eq!(polctl(&["check", "--initial", "--dir", dir, "--deny", "warnings"]).status.code(), Some(1));
    let config = "polctl: v1\nset: demo\npolicies: [MAP.md]\nlevels: { duplicate-rule: error }\n";
    std::fs::write(Path::new(dir).join("polctl.yaml"), config).unwrap();
    assert_eq!(polctl(&["check", "--initial", "--dir", dir]).status.code(), Some(1));
}

/// Same bytes at every run; every policy leads back to a line; Cedar's own formatting.
#[test]
fn compiled_files_are_deterministic_and_readable() {
    let (first, second) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    for dir in [&first, &second] {
        let output = polctl(&["compile", "--dir", "fixtures/fleet/v12", "-o", dir.path().to_str().unwrap()]);
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    }
    let names = ["commands.cedar", "egress.cedar", "index.json", "schema.cedarschema", "sudo.cedar"];
    let mut found: Vec<String> =
        std::fs::read_dir(first.path()).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    found.sort();
    assert_eq!(found, names);
    for name in names {
        let read = |dir: &tempfile::TempDir| std::fs::read_to_string(dir.path().join(name)).unwrap();
        assert_eq!(read(&first), read(&second), "{name}");
    }
    let cedar = std::fs::read_to_string(first.path().join("commands.cedar")).unwrap();
    let config = cedar_policy_formatter::Config::default();
    assert_eq!(cedar_policy_formatter::policies_str_to_pretty(&cedar, &config).unwrap(), cedar);
    let ids = cedar.matches("@id(").count();
    assert!(ids > 300 && cedar.matches("@source(").count() == ids, "{ids}");
    let index: Value =
        serde_json::from_str(&std::fs::read_to_string(first.path().join("index.json")).unwrap()).unwrap();
    let policies = index["policies"].as_array().unwrap();
    assert!(policies.len() > ids);
    assert!(policies.iter().all(|p| p["source"].as_str().is_some_and(|s| s == "built-in" || s.contains(".md:"))));
    assert_eq!(index["policy_id"].as_str().unwrap().len(), 64);
}

/// Moving rules and editing prose is no change of the policy; changing a tier is.
#[test]
fn policy_id_follows_meaning() {
    let id = |map: &str, config: &str| {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("polctl.yaml"), format!("polctl: v1\nset: demo\npolicies: [MAP.md]\n{config}"))
            .unwrap();
        std::fs::write(dir.path().join("MAP.md"), format!("---\npolctl: v1\nsurface: commands\n---\n{map}")).unwrap();
        let out = tempfile::tempdir().unwrap();
        let args = ["compile", "--dir", dir.path().to_str().unwrap(), "-o", out.path().to_str().unwrap()];
        assert_eq!(polctl(&args).status.code(), Some(0));
        let index: Value =
            serde_json::from_str(&std::fs::read_to_string(out.path().join("index.json")).unwrap()).unwrap();
        index["policy_id"].as_str().unwrap().to_owned()
    };
    let plain = id("## Tier 0\n- `ls **`\n- `cat **`\n", "");
    assert_eq!(plain, id("Prose.\n\n## Tier 0: look\n\n- `cat  **` reads\n- `ls **`\n  - why: because\n", ""));
    for other in ["## Tier 1\n- `ls **`\n- `cat **`\n", "## Tier 0\n- `ls **`\n", "## Tier 0\n- `ls **`\n- `cat *`\n"] {
        assert_ne!(plain, id(other, ""), "{other}");
    }
    for config in
        ["provenance: off\n", "trusted_dirs: [/opt]\n", "zones: { tmp: [\"/scratch/**\"] }\n", "allowed_env: []\n"]
    {
        assert_ne!(plain, id("## Tier 0\n- `ls **`\n- `cat **`\n", config), "{config}");
    }
}

#[cfg(unix)]
#[test]
fn what_cannot_be_written_leaves_what_was_there() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("out");
    std::fs::write(&file, "kept").unwrap();
    let output = polctl(&["compile", "--dir", "fixtures/fleet/v1", "-o", file.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "kept");
}

#[test]
fn every_code_explains_itself() {
    let list = text(&polctl(&["rule"]));
    assert_eq!(list.lines().count(), polctl::diag::CODES.len());
    for row in polctl::diag::CODES {
        let output = polctl(&["rule", row.code.as_str()]);
        assert_eq!(output.status.code(), Some(0));
        assert!(text(&output).contains(row.title), "{}", row.code.as_str());
    }
}
