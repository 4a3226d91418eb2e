//! Malformed input, as the user sees it: one snapshot for each fixture, and the rule that
//! malformed input never gets a verdict.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::panic,
    reason = "a test that cannot go on fails"
)]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/malformed")
}

fn check(dir: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_polctl"))
        .args(["check", "--initial", "--dir"])
        .arg(dir)
        .current_dir(fixtures())
        .output()
        .unwrap()
}

fn set(map: &[u8]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("polctl.yaml"), "polctl: v1\nset: demo\npolicies: [MAP.md]\n").unwrap();
    std::fs::write(dir.path().join("MAP.md"), map).unwrap();
    dir
}

#[test]
fn every_fixture_shows_all_its_problems_and_exits_2() {
    let mut seen = 0;
    let mut names: Vec<PathBuf> = std::fs::read_dir(fixtures()).unwrap().map(|e| e.unwrap().path()).collect();
    names.sort();
    for dir in names {
        let name = dir.file_name().unwrap().to_str().unwrap().to_owned();
        let output = check(Path::new(&name));
        let text = String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{name}\n{text}");
        insta::assert_snapshot!(name, text);
        seen += 1;
    }
    assert!(seen >= 14, "{seen}");
}

/// Beside the snapshots, one line number counted by hand in each kind of construct.
#[test]
fn findings_point_at_the_right_lines() {
    for (fixture, at) in [
        ("placeholders", "MAP.md:9:8"),
        ("prose", "MAP.md:16:5"),
        ("table", "MAP.md:21:"),
        ("block", "MAP.md:10:"),
        ("configuration", "polctl.yaml:3:1"),
    ] {
        let output = check(Path::new(fixture));
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(json_positions(fixture).iter().any(|p| p.starts_with(at)), "{fixture}: {at}\n{text}");
    }
}

/// File, line and column of each finding.
fn json_positions(fixture: &str) -> Vec<String> {
    let output = Command::new(env!("CARGO_BIN_EXE_polctl"))
        .args(["check", "--initial", "--format", "json", "--dir", fixture])
        .current_dir(fixtures())
        .output()
        .unwrap();
    let value: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    value["findings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|f| {
            let at = &f["location"];
            format!("{}:{}:{}", at["file"].as_str().unwrap(), at["start"]["line"], at["start"]["column"])
        })
        .collect()
}

const GOOD: &str = "---\npolctl: v1\nsurface: commands\n---\n# Map\n\n## Tier 0\n\n- `ls **` lists\n  - match: `ls -l`\n\n```rules\ncat **\twhy: reads\n```\n";

#[test]
fn line_ends_tabs_and_a_byte_order_mark_change_nothing() {
    for text in [GOOD.to_owned(), GOOD.replace('\n', "\r\n"), format!("\u{feff}{GOOD}")] {
        let dir = set(text.as_bytes());
        let output = check(dir.path());
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stdout));
    }
}

#[test]
fn bytes_that_are_no_text_are_refused() {
    for (bytes, says) in [
        (&b"---\npolctl: v1\n\xff\xfe"[..], "not UTF-8"),
        (&b"\xff\xfe-\0-\0-\0"[..], "UTF-16"),
        (&b"---\0\n"[..], "control character"),
        (&b""[..], "empty"),
        (&b"\n\n\n"[..], "empty"),
        (&b"---\npolctl: v1\n"[..], "no front matter"),
    ] {
        let dir = set(bytes);
        let output = check(dir.path());
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(output.status.code(), Some(2), "{text}");
        assert!(text.contains(says), "{says}\n{text}");
    }
}

#[test]
fn a_file_over_the_cap_is_refused_and_says_so() {
    let dir = set(&vec![b'a'; 10 * 1024 * 1024]);
    let output = check(dir.path());
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(text.contains("larger than 4 MiB"), "{text}");
}

/// Deep nesting and long lines end in an answer, not in a crash.
#[test]
fn hostile_shapes_get_an_answer() {
    let head = "---\npolctl: v1\nsurface: commands\n---\n## Tier 0\n\n";
    for body in [
        format!("{}`x`\n", "> ".repeat(20_000)),
        (0..2_000).map(|n| format!("{}- `a`\n", "  ".repeat(n))).collect::<String>(),
        format!("- `{}`\n", "a".repeat(1_000_000)),
        format!("- `ls {}`\n", "{a,b}".repeat(200)),
        format!("- {}\n", "`".repeat(100_000)),
        format!("```rules\n{}\n```\n", "ls ** with: ".repeat(2_000)),
        format!("|rule|{}\n|-|{}\n", "a|".repeat(5_000), "-|".repeat(5_000)),
        format!("- `ls`\n  - match: `{}`\n", "a ".repeat(200_000)),
    ] {
        let dir = set(format!("{head}{body}").as_bytes());
        let code = check(dir.path()).status.code();
        assert!(matches!(code, Some(0..=2)), "{code:?} {}", &body[..40]);
    }
}

#[cfg(unix)]
#[test]
fn links_are_not_followed() {
    let dir = set(GOOD.as_bytes());
    std::fs::rename(dir.path().join("MAP.md"), dir.path().join("real.md")).unwrap();
    std::os::unix::fs::symlink("real.md", dir.path().join("MAP.md")).unwrap();
    let output = check(dir.path());
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(text.contains("not a regular file"), "{text}");
}
