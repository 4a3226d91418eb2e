//! `polctl retention` on migrations in the manner of each tool: what it finds, at which lines,
//! and which tables it says there are. `tests/retention_server.rs` asks a server the same.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::panic,
    reason = "a test that cannot go on fails"
)]

mod retention_common;

use std::path::Path;
use std::process::{Command, Output};

use polctl::source::DirTree;
use retention_common::{Expected, TODAY, cases, judge, sets};

fn polctl(dir: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_polctl")).args(args).current_dir(dir).output().unwrap()
}

fn git(dir: &Path, args: &[&str]) {
    let done = Command::new("git")
        .args(["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=main", "-C"])
        .arg(dir)
        .args(args)
        .output()
        .unwrap_or_else(|error| panic!("git is needed ({error}): install it"));
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

fn write(dir: &Path, path: &str, text: &str) {
    let path = dir.join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

#[test]
fn each_set_has_the_stated_findings() {
    let sets = sets();
    assert!(sets.len() >= 10, "{}", sets.len());
    for (name, dir) in sets {
        let Expected { tables, mut findings, .. } = retention_common::expected(&name);
        let judged = judge(&DirTree::new(&dir, None));
        let version = judged.version.unwrap_or_else(|| panic!("{name}: {:#?}", judged.found));
        let mut found = judged.found;
        found.sort();
        findings.sort();
        assert_eq!(found, findings, "{name}");
        let durable: usize = version.loaded.worlds.iter().map(|world| world.durable().len()).sum();
        assert_eq!(durable, tables, "{name}");
    }
}

#[test]
fn each_case_leaves_the_stated_tables() {
    let cases = cases();
    assert!(cases.len() >= 40, "{}", cases.len());
    for case in cases {
        let dir = tempfile::tempdir().unwrap();
        case.write(dir.path());
        let judged = judge(&DirTree::new(dir.path(), None));
        let version = judged.version.unwrap_or_else(|| panic!("{}: {:#?}", case.name, judged.found));
        let unknown = judged.found.iter().any(|found| found.starts_with("retention-unknown "));
        assert_eq!(unknown, case.unknown, "{}: {:#?}", case.name, judged.found);
        if !case.unknown {
            assert_eq!(retention_common::durable(&version), case.tables, "{}", case.name);
        }
    }
}

/// By hand, so that no list of findings blesses a wrong line.
#[test]
fn a_finding_stands_at_the_name_of_its_table() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "retention.yaml", "polctl: v1\nclasses: { a: { period: 1d, prune: j } }\nhealth_floor: [j]\n");
    write(dir.path(), "migrations/1_a.sql", "-- é\nSELECT 1;\n  CREATE TABLE\n    public.users (id int);\n");
    let output = polctl(dir.path(), &["retention", "--format", "json"]);
    assert_eq!(output.status.code(), Some(1));
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let at = &json["findings"].as_array().unwrap().iter().find(|f| f["code"] == "retention-unclassified").unwrap()["location"];
    assert_eq!(
        (&at["file"], &at["start"]["line"], &at["start"]["column"]),
        (&"migrations/1_a.sql".into(), &4.into(), &5.into())
    );
    assert_eq!(at["end"]["column"], 17);
}

#[test]
fn every_format_has_the_same_exit_code() {
    for (name, dir) in sets() {
        let expected = retention_common::expected(&name);
        let red = expected.findings.iter().any(|f| !f.starts_with("retention-unused") && !f.ends_with(" note"));
        for format in ["human", "json", "markdown"] {
            let output = polctl(&dir, &["retention", "--format", format]);
            assert_eq!(
                output.status.code(),
                Some(i32::from(red)),
                "{name}: {}",
                String::from_utf8_lossy(&output.stderr)
            );
        }
    }
    let list = polctl(&retention_common::root().join("fixtures/sql/numbered-blog"), &["retention", "--list"]);
    let text = String::from_utf8(list.stdout).unwrap();
    assert!(text.contains("public.posts\tcontent\n") && text.lines().count() == 7, "{text}");
}

/// What the files are, and in which order, must be beyond doubt.
#[test]
fn what_cannot_be_ordered_is_refused() {
    let config =
        |place: &str| format!("polctl: v1\nclasses: {{ a: {{ period: 1d, prune: j }} }}\nhealth_floor: [j]\n{place}");
    let t = "CREATE TABLE t (id int);";
    let goose = "-- +goose Up\nCREATE TABLE t (id int);";
    for (place, files, says) in [
        ("", &[][..], "no migrations were found"),
        ("", &[("migrations/1_a.sql", t), ("drizzle/meta/_journal.json", "{}")], "several places"),
        ("", &[("migrations/1_a.up.sql", goose)], "has the signs of `sqlx` and `goose`"),
        ("", &[("migrations/9_a.sql", t), ("migrations/10_b.sql", t)], "by number and behind it by name"),
        ("", &[("migrations/1_a.sql", t), ("migrations/tables.sql", t)], "has no number"),
        ("", &[("migrations/V1__a.sql", t), ("migrations/V1.0__b.sql", t)], "have the same version"),
        ("", &[("migrations/V1__a.sql", t), ("migrations/notes.sql", t)], "no name of a migration of Flyway"),
        ("migrations: [{ dir: m, tool: goose }]\n", &[("m/1_a.sql", t), ("m/01_b.sql", t)], "have the same number"),
        ("migrations: [{ dir: m, tool: drizzle }]\n", &[("m/0_a.sql", t)], "only it says which"),
        (
            "migrations: [{ dir: m, tool: drizzle }]\n",
            &[("m/0_a.sql", t), ("m/meta/_journal.json", r#"{"entries":[{"idx":0,"tag":"1_b"}]}"#)],
            "is not there",
        ),
        (
            "migrations: [{ dir: m, tool: drizzle }]\n",
            &[("m/0_a.sql", t), ("m/meta/_journal.json", r#"{"entries":[]}"#)],
            "never applied",
        ),
        ("migrations: [{ dir: m, tool: prisma }]\n", &[("m/1_a/other.sql", t)], "no `migration.sql`"),
        ("migrations: [{ dir: m, tool: rails }]\n", &[("m/1.sql", t)], "no tool that polctl knows"),
        ("migrations: [{ dir: ../m, tool: goose }]\n", &[], "not a path below"),
        ("migrations: [{ dir: nowhere, tool: goose }]\n", &[], "holds no migration"),
        ("health: []\n", &[], "no key of `retention.yaml`"),
    ] {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path(), "retention.yaml", &config(place));
        files.iter().for_each(|(path, text)| write(dir.path(), path, text));
        let output = polctl(dir.path(), &["retention"]);
        let text = String::from_utf8(output.stdout).unwrap();
        assert_eq!(output.status.code(), Some(2), "{place}{files:?}\n{text}");
        assert!(text.split_whitespace().collect::<Vec<_>>().join(" ").contains(says), "{says}\n{text}");
    }
}

#[test]
fn classes_that_cannot_be_meant_are_refused() {
    for (class, says) in [
        ("a: { period: 7 years }", "no period"),
        ("a: { period: forever }", "needs a reason"),
        ("a: { period: 3m, prune: j }", "no period"),
        ("a: { prune: j }", "`period` is missing"),
        ("a: { period: forever, reason: x, prune: j }", "kept for ever"),
        ("a: { period: 1d, prune: j, audit: \"yes\" }", "is here a text"),
        ("a: { period: 1d, prune: j, owner: x }", "no key of a class"),
        ("\"a b\": { period: 1d, prune: j }", "cannot be the name"),
    ] {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path(), "retention.yaml", &format!("polctl: v1\nclasses:\n  {class}\nhealth_floor: [j]\n"));
        write(dir.path(), "migrations/1.sql", "-- retention: a\nCREATE TABLE t (id int);\n");
        let output = polctl(dir.path(), &["retention"]);
        let text = String::from_utf8(output.stdout).unwrap();
        assert_eq!(output.status.code(), Some(2), "{class}\n{text}");
        assert!(text.contains(says), "{says}\n{text}");
    }
}

const OLD: &str = "polctl: v1\nhealth_floor: [j]\nclasses:\n  audit: { period: 7y, prune: j, audit: true }\n  person: { period: 30d, prune: j, personal: true }\n  plain: { period: 9d, prune: j }\n";
const AUDIT: &str = "-- retention: audit\nCREATE TABLE log (ts timestamptz, workspace text, actor text, correlation_id uuid, stack_version text, schema_version int);\n";
const PEOPLE: &str =
    "-- retention: person\nCREATE TABLE people (id int);\n-- retention: plain\nCREATE TABLE other (id int);\n";

/// What a change does to `retention.yaml` and the migrations, and whether it weakens retention.
const CHANGES: &[(&str, &str, &str, bool)] = &[
    // replace in retention.yaml, by, another migration, weaker
    ("7y", "7y", "", false),
    ("7y", "6y", "", true),
    ("7y", "84mo", "", true),
    ("7y", "8y", "", false),
    ("30d", "31d", "", true),
    ("30d", "29d", "", false),
    ("9d", "90d", "", false),
    ("9d", "1d", "", false),
    (", audit: true", "", "", true),
    (", personal: true", "", "", true),
    ("  plain: { period: 9d, prune: j }\n", "", "COMMENT ON TABLE other IS NULL;", true),
    ("9d, prune: j", "9d", "", true),
    ("9d", "9d", "COMMENT ON TABLE other IS 'retention: person';", true),
    ("9d", "9d", "ALTER TABLE log RENAME TO trail;", false),
    ("9d", "9d", "ALTER TABLE people RENAME TO users;", false),
    ("9d", "9d", "DROP TABLE log;", true),
    ("9d", "9d", "DROP TABLE people;", false),
];

#[test]
fn a_change_that_weakens_retention_is_found() {
    for (from, to, more, weaker) in CHANGES {
        let (old, new) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        for (dir, config) in [(&old, OLD.to_owned()), (&new, OLD.replace(from, to))] {
            write(dir.path(), "retention.yaml", &config);
            write(dir.path(), "migrations/1_a.sql", AUDIT);
            write(dir.path(), "migrations/2_b.sql", PEOPLE);
        }
        write(new.path(), "migrations/3_c.sql", more);
        let base = old.path().to_str().unwrap();
        let output = polctl(new.path(), &["retention", "--format", "json", "--base", base]);
        let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let found = json["findings"].as_array().unwrap().iter().any(|f| f["code"] == "retention-weakened");
        assert_eq!(found, *weaker, "{from} → {to} {more}: {json:#}");
        assert!(!weaker || output.status.code() == Some(1));
    }
}

/// An entry in `retention.yaml` must agree with what migrations say; a comment in the database
/// takes the place of the one before the statement, which nobody can change any more.
#[test]
fn two_ways_to_say_it_must_agree() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "retention.yaml", &format!("{OLD}tables: {{ people: plain, other: plain }}\n"));
    write(dir.path(), "migrations/1_a.sql", AUDIT);
    write(dir.path(), "migrations/2_b.sql", PEOPLE);
    write(dir.path(), "migrations/3_c.sql", "COMMENT ON TABLE other IS 'retention: person';");
    let found = judge(&DirTree::new(dir.path(), None)).found;
    assert_eq!(found.iter().filter(|f| f.starts_with("retention-class ")).count(), 2, "{found:#?}");
}

/// A repository with a policy, a retention file and migrations.
fn repository() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "polctl.yaml", "polctl: v1\nset: demo\npolicies: [m.md]\nretention: ops/retention.yaml\n");
    write(dir.path(), "m.md", "---\npolctl: v1\nsurface: commands\n---\n## Tier 0\n- `git status`\n");
    write(dir.path(), "ops/retention.yaml", OLD);
    write(dir.path(), "migrations/1_a.sql", AUDIT);
    write(dir.path(), "migrations/2_b.sql", PEOPLE);
    git(dir.path(), &["init", "-q"]);
    git(dir.path(), &["add", "."]);
    git(dir.path(), &["commit", "-q", "-m", "a"]);
    dir
}

#[test]
fn check_compares_retention_where_the_policy_names_it() {
    let dir = repository();
    let check = || {
        let output = polctl(dir.path(), &["check", "--base", "HEAD", "--no-cache"]);
        (output.status.code(), String::from_utf8(output.stdout).unwrap())
    };
    assert_eq!(check().0, Some(0), "{}", check().1);
    assert_eq!(polctl(dir.path(), &["retention", "--base", "HEAD"]).status.code(), Some(0));
    write(dir.path(), "ops/retention.yaml", &OLD.replace("7y", "1y"));
    let (code, text) = check();
    assert!(code == Some(1) && text.contains("retention-weakened") && text.contains("`1y` instead of `7y`"), "{text}");
    assert_eq!(polctl(dir.path(), &["retention", "--base", "HEAD"]).status.code(), Some(1));
    write(dir.path(), "ops/retention.yaml", &OLD.replace("7y", "soon"));
    assert_eq!(check().0, Some(2));
    std::fs::remove_file(dir.path().join("ops/retention.yaml")).unwrap();
    assert_eq!(check().0, Some(2));
    write(dir.path(), "polctl.yaml", "polctl: v1\nset: demo\npolicies: [m.md]\n");
    let (code, text) = check();
    assert!(code == Some(1) && text.contains("no longer in the configuration"), "{text}");
}

#[test]
fn a_verdict_about_retention_comes_out_of_the_cache_unchanged() {
    let (dir, cache) = (repository(), tempfile::tempdir().unwrap());
    write(dir.path(), "ops/retention.yaml", &OLD.replace("7y", "1y"));
    let check = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_polctl"));
        command
            .args(["check", "--base", "HEAD", "--cache"])
            .current_dir(dir.path())
            .env("XDG_CACHE_HOME", cache.path());
        command.output().unwrap()
    };
    let (first, second) = (check(), check());
    assert_eq!((first.status.code(), &first.stdout), (Some(1), &second.stdout));
    write(dir.path(), "ops/retention.yaml", OLD);
    assert_eq!(check().status.code(), Some(0));
}

#[test]
fn a_baseline_is_written_once_and_only_shrinks() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "retention.yaml", OLD);
    write(dir.path(), "migrations/1_a.sql", AUDIT);
    write(dir.path(), "migrations/2_b.sql", PEOPLE);
    write(
        dir.path(),
        "migrations/3_c.sql",
        "CREATE TABLE one (id int);\nCREATE TABLE two (id int);\nDO $$ BEGIN EXECUTE q; END $$;\n",
    );
    let run = |args: &[&str]| polctl(dir.path(), &[&["retention"], args].concat()).status.code();
    assert_eq!(run(&[]), Some(1));
    assert_eq!(run(&["--baseline"]), Some(2), "nobody pays");
    assert_eq!(run(&["--baseline", "--owner", "data", "--expires", "2000-01-01"]), Some(2), "the day is gone");
    assert_eq!(run(&["--baseline", "--owner", "data", "--expires", "2999-01-01"]), Some(0));
    let path = dir.path().join("retention-baseline.yaml");
    let written = std::fs::read_to_string(&path).unwrap();
    assert_eq!(written.lines().filter(|l| l.starts_with("  - ")).count(), 3, "{written}");
    assert_eq!(run(&[]), Some(0));
    assert_eq!(run(&["--baseline", "--owner", "data", "--expires", "2999-01-01"]), Some(2), "there is one");
    // New debt is not taken in, and paid debt goes out.
    write(
        dir.path(),
        "migrations/4_d.sql",
        "CREATE TABLE three (id int);\nCOMMENT ON TABLE one IS 'retention: plain';\n",
    );
    assert_eq!(run(&[]), Some(1));
    assert_eq!(run(&["--baseline"]), Some(0));
    let shorter = std::fs::read_to_string(&path).unwrap();
    assert!(
        !shorter.contains("public.one") && !shorter.contains("three") && shorter.contains("public.two"),
        "{shorter}"
    );
    assert_eq!(run(&[]), Some(1));
    // The same statement in another line of its file is the same debt.
    let text = std::fs::read_to_string(dir.path().join("migrations/3_c.sql")).unwrap();
    write(dir.path(), "migrations/3_c.sql", &format!("\n\n{text}"));
    write(dir.path(), "migrations/4_d.sql", "COMMENT ON TABLE one IS 'retention: plain';\n");
    assert_eq!(run(&[]), Some(0));
    // A baseline of before that grows or is prolonged is a finding against the base.
    let base = tempfile::tempdir().unwrap();
    for file in [
        "retention.yaml",
        "migrations/1_a.sql",
        "migrations/2_b.sql",
        "migrations/3_c.sql",
        "migrations/4_d.sql",
        "retention-baseline.yaml",
    ] {
        write(base.path(), file, &std::fs::read_to_string(dir.path().join(file)).unwrap());
    }
    let base = base.path().to_str().unwrap();
    assert_eq!(run(&["--base", base]), Some(0));
    write(dir.path(), "retention-baseline.yaml", &shorter.replace("2999", "3000"));
    assert_eq!(run(&["--base", base]), Some(1));
    assert!(TODAY < "2999");
}
