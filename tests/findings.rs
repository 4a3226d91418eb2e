//! Each finding code about policy: a case that has it, and one that just does not. Codes about
//! malformed input have their fixtures in `fixtures/malformed`.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::panic,
    reason = "a test that cannot go on fails"
)]

mod common;

use std::collections::BTreeSet;

use common::{Files, one_map};
use polctl::analyze::{diff, lint};
use polctl::compile::{compile, parse_guardrails};
use polctl::diag::{CODES, Code, Finding, Kind};
use polctl::parse::load;
use polctl::source::SourceMap;

/// Findings of loading and judging one version.
fn judge(files: &Files) -> Vec<Finding> {
    let mut map = SourceMap::new();
    let mut findings = Vec::new();
    if let Some(set) = load(files, &mut map, &mut findings).unwrap() {
        let guardrails = parse_guardrails(&set, &|_| "g".into(), &mut findings);
        findings.extend(lint(&compile(set, guardrails), &map).unwrap());
    }
    findings
}

fn compare(old: &Files, new: &Files) -> Vec<Finding> {
    let mut map = SourceMap::new();
    let mut build = |files: &Files| {
        let mut findings = Vec::new();
        let set = load(files, &mut map, &mut findings).unwrap().unwrap_or_else(|| panic!("{findings:?}"));
        let guardrails = parse_guardrails(&set, &|_| "g".into(), &mut findings);
        compile(set, guardrails)
    };
    let (old, new) = (build(old), build(new));
    diff(&old, &new, &map).unwrap()
}

fn codes(findings: &[Finding]) -> BTreeSet<&'static str> {
    findings.iter().map(|f| f.code.as_str()).collect()
}

/// Surface, body that has the finding, body that just does not.
const ONE_VERSION: &[(Code, &str, &str, &str)] = &[
    (
        Code::EXAMPLE_FAILS,
        "commands",
        "## Tier 0\n- `ls **`\n  - unless: `-R`\n  - match: `ls -lR`",
        "## Tier 0\n- `ls **`\n  - unless: `-R`\n  - match: `ls -lr`\n  - no match: `ls -lR`",
    ),
    (
        Code::EXAMPLE_FAILS,
        "commands",
        "## Tier 4\n- `rm **`\n  - with: `-r`\n  - no match: `rm -fr /`",
        "## Tier 4\n- `rm **`\n  - with: `-r`\n  - match: `rm -fr /`\n  - no match: `rm -- -r`",
    ),
    (
        Code::EXAMPLE_FAILS,
        "commands",
        "## Tier 0\n- `cat *`\n  - match: `cat a && rm b`",
        "## Tier 0\n- `cat *`\n  - match: `cat 'a && rm b'`",
    ),
    (
        Code::EXAMPLE_FAILS,
        "commands",
        "## Tier 0\n- `cat *`\n  - match: `cat ~/.ssh/id`",
        "## Tier 0\n- `cat *`\n  - match: `cat ~/notes`",
    ),
    (
        Code::MATCHES_NOTHING,
        "commands",
        "## Tier 0\n- `ls **`\n  - with: `-a`\n  - unless: `-a`",
        "## Tier 0\n- `ls **`\n  - with: `-a`\n  - unless: `-b`",
    ),
    (
        Code::MATCHES_NOTHING,
        "commands",
        "## Tier 4\n- `dd *`\n  - with: `of=/dev/*`\n  - with: `if=*`",
        "## Tier 4\n- `dd * *`\n  - with: `of=/dev/*`\n  - with: `if=*`",
    ),
    (
        Code::SHADOWED,
        "commands",
        "## Tier 0\n- `git log **`\n## Tier 3\n- `git **`",
        "## Tier 0\n- `git log **`\n## Tier 3\n- `git **`\n  - with: `-f`",
    ),
    (
        Code::SHADOWED,
        "commands",
        "## Tier 0\n- `git {log,show}`\n## Tier 3\n- `git log **`\n- `git show **`",
        "## Tier 0\n- `git {log,show,diff}`\n## Tier 3\n- `git log **`\n  - why: a\n- `git show **`",
    ),
    (
        Code::CONTRADICTION,
        "commands",
        "## Tier 0\n- `ls **`\n## Tier 2\n- `ls  **`",
        "## Tier 0\n- `ls **`\n## Tier 2\n- `ls ** `\n  - with: `-R`",
    ),
    (Code::DUPLICATE_RULE, "commands", "## Tier 0\n- `ls **`\n- `ls **`", "## Tier 0\n- `ls **`\n- `cat -n`"),
    (
        Code::REDUNDANT_RULE,
        "commands",
        "## Tier 0\n- `ls **`\n- `ls -l *`",
        "## Tier 0\n- `ls **`\n- `ls -l *`\n  - why: what everybody types",
    ),
    (
        Code::MERGEABLE,
        "commands",
        "## Tier 0\n- `git log **`\n- `git show **`",
        "## Tier 0\n- `git log **`\n- `git show **`\n  - match: `git show HEAD`",
    ),
    (Code::EXECUTES, "commands", "## Tier 1\n- `make **`", "## Tier 1\n- `make {lint,test}`"),
    (Code::EXECUTES, "commands", "## Tier 0\n- `python3 *`", "## Tier 2\n- `python3 *`"),
    (Code::PROGRAM_WILDCARD, "commands", "## Tier 0\n- `ca* **`", "## Tier 4\n- `mkfs* **`"),
    (Code::PROGRAM_WILDCARD, "commands", "## Tier 2\n- `*`", "## Tier 2\n- `{a,b}`"),
    (Code::SUDO_PATH_WILDCARD, "sudo", "## Tier 2\n- `ls /var/log/*`", "## Tier 2\n- `ls /var/log/syslog`"),
    (Code::SUDO_ESCAPE, "sudo", "## Tier 2\n- `tar **`", "## Tier 2\n- `tar -cf /backup.tar /srv`"),
    (Code::SUDO_ESCAPE, "sudo", "## Tier 2\n- `systemctl link **`", "## Tier 2\n- `systemctl restart *`"),
    (Code::SUDO_ESCAPE, "sudo", "## Tier 1\n- `dmesg **`", "## Tier 1\n- `dmesg **`\n  - only: `-T`"),
    (Code::SUDO_ESCAPE, "sudo", "## Tier 3\n- `vim *`", "## Tier 4\n- `vim **`"),
    (
        Code::POSITIONAL_OPTION,
        "commands",
        "## Tier 3\n- `git push --force **`",
        "## Tier 3\n- `git push **`\n  - with: `--force`",
    ),
    (
        Code::EGRESS_WILDCARD,
        "egress",
        "## Tier 0\n- `GET https://*.com/**`",
        "## Tier 0\n- `GET https://*.example.com/**`",
    ),
    (
        Code::GUARDRAIL_USELESS,
        "egress",
        "## Tier 0\n- `GET http://127.0.0.1/**`",
        "## Tier 0\n- `GET http://9.9.9.9/**`",
    ),
    (
        Code::GUARDRAIL_USELESS,
        "commands",
        "## Tier 0\n- `ls`\n  - when: `external=yes`",
        "## Tier 2\n- `ls`\n  - when: `external=yes`",
    ),
];

#[test]
fn each_code_about_one_version_has_a_case_and_a_near_miss() {
    for (code, surface, bad, good) in ONE_VERSION {
        let found = judge(&one_map(surface, 2, bad));
        assert!(found.iter().any(|f| f.code == *code), "{code:?} not found in\n{bad}\n{:?}", codes(&found));
        assert!(found.iter().all(|f| f.help.is_some()), "{code:?}: a finding without help");
        let found = judge(&one_map(surface, 2, good));
        assert!(found.is_empty(), "{code:?} near miss\n{good}\n{found:#?}");
    }
}

#[test]
fn unmatched_below_2_is_an_error() {
    let found = judge(&one_map("commands", 1, "## Tier 0\n- `ls`"));
    assert_eq!(codes(&found), ["unmatched-too-low"].into());
    for unmatched in [2, 3, 4] {
        assert!(judge(&one_map("commands", unmatched, "## Tier 0\n- `ls`")).is_empty());
    }
}

/// What a change of one map lets through.
#[test]
fn changes_of_a_map() {
    for (surface, old, new, want) in [
        ("commands", "## Tier 0\n- `ls`", "## Tier 0\n- `ls **`", "`ls x` goes from tier 2 to tier 0"),
        (
            "commands",
            "## Tier 4\n- `rm **`\n  - with: `-r`, `-f`",
            "## Tier 4\n- `rm **`\n  - with: `-r`",
            "`rm -f` goes from denied to tier 2",
        ),
        (
            "commands",
            "## Tier 0\n- `ls`\n## Tier 4\n- `ls **`\n  - when: `external=no`",
            "## Tier 0\n- `ls`",
            "`ls` goes from denied to tier 0",
        ),
        ("commands", "## Tier 0\n- `ls`\n  - agents: a", "## Tier 0\n- `ls`", "`ls` goes from tier 2 to tier 0"),
        (
            "commands",
            "## Tier 0\n- `ls`",
            "## Tier 0\n- `ls`\n  - when: `dynamic=any`",
            "`ls <<< \"$INPUT\"` goes from tier 2 to tier 0",
        ),
        (
            "commands",
            "## Tier 0\n- `cat *`",
            "## Tier 0\n- `cat *`\n  - when: `names=any`",
            "`cat ~/.ssh/x` goes from tier 2 to tier 0",
        ),
        (
            "commands",
            "## Tier 3\n- `tool **`\n  - with: `-f`",
            "## Tier 3\n- `tool **`\n  - with: `--force`",
            "`tool -f` goes from tier 3 to tier 2",
        ),
        (
            "commands",
            "## Tier 4\n- `find **`\n  - with: `-delete`, `-exec`",
            "## Tier 4\n- `find **`\n  - with: `-exec`",
            "`find -delete` goes from denied to tier 2",
        ),
        (
            "sudo",
            "## Tier 1\n- `id`",
            "## Tier 1\n- `id`\n  - run as: root, app",
            "`sudo -u app id` goes from tier 2 to tier 1",
        ),
        (
            "egress",
            "## Tier 0\n- `GET https://a.example/x/**`",
            "## Tier 0\n- `GET https://a.example/**`",
            "`GET https://a.example/` goes from tier 2 to tier 0",
        ),
        (
            "egress",
            "## Tier 0\n- `GET https://a.example/`",
            "## Tier 0\n- `GET https://**.a.example/`",
            "`GET https://y.a.example/` goes from tier 2 to tier 0",
        ),
        (
            "egress",
            "## Tier 0\n- `GET https://a.example/`",
            "## Tier 0\n- `GET https://a.example/`\n  - secret: `vault://kv/a#b`",
            "`GET https://a.example/ secret=vault://kv/a#b` goes from tier 2 to tier 0",
        ),
        (
            "egress",
            "## Tier 0\n- `GET https://a.example/`",
            "## Tier 0\n- `GET https://a.example:8080/`",
            "`GET https://a.example:8080/` goes from tier 2 to tier 0",
        ),
        (
            "egress",
            "## Tier 0\n- `GET https://a.example/x`",
            "## Tier 0\n- `GET https://a.example/x`\n- `GET https://[9.0.0.0/8]/x`",
            "`GET https://9.9.9.9/x` goes from tier 2 to tier 0",
        ),
    ] {
        let found = compare(&one_map(surface, 2, old), &one_map(surface, 2, new));
        let widened: Vec<&str> =
            found.iter().filter(|f| f.code == Code::WIDENING).map(|f| f.message.as_str()).collect();
        assert_eq!(widened, [want], "{old}\n→\n{new}\n{found:#?}");
        // Backwards the same witness is a narrowing.
        let back = compare(&one_map(surface, 2, new), &one_map(surface, 2, old));
        let witness = |found: &[Finding], code| -> Vec<String> {
            let of_code = found.iter().filter(|f| f.code == code);
            of_code.map(|f| f.evidence.as_ref().unwrap().witness.clone()).collect()
        };
        assert_eq!(witness(&back, Code::NARROWING), witness(&found, Code::WIDENING), "{back:#?}");
    }
}

/// Each `unmatched`, and each way to lower it.
#[test]
fn lowering_unmatched_is_a_widening() {
    let map = |unmatched| one_map("commands", unmatched, "## Tier 0\n- `ls`");
    for (old, new, widens) in [(4, 3, true), (3, 2, true), (4, 2, true), (2, 3, false), (2, 4, false), (3, 3, false)] {
        let found = compare(&map(old), &map(new));
        assert_eq!(found.iter().any(|f| f.code == Code::WIDENING), widens, "{old} {new}");
    }
}

/// A configuration with one line changed: what counts as a widening, in which direction.
#[test]
fn changes_of_the_configuration() {
    let body = "## Tier 0\n- `cat **`\n## Tier 3\n- `touch **`\n  - when: `names=cache`";
    let files = |lines: &str| {
        let mut files = one_map("commands", 2, body);
        let config = format!("polctl: v1\nset: demo\npolicies: [map.md]\n{lines}");
        files.0.insert("polctl.yaml".into(), config);
        files
    };
    let zones = |name: &str, patterns: &str| {
        let other = if name == "cache" { String::new() } else { "  cache: [\"/var/cache/**\"]\n".to_owned() };
        format!("zones:\n{other}  {name}: [{patterns}]\n")
    };
    let cache = zones("cache", "\"/var/cache/**\"");
    for (small, large, larger_is_wider, smaller_is_wider) in [
        (zones("workspace", "\"/srv/a/**\""), zones("workspace", "\"/srv/**\""), true, false),
        (zones("workspace", "\"/srv/a/**\""), zones("workspace", "\"/srv/a/**\", \"/srv/a/b/**\""), false, false),
        (zones("credential", "\"~/.ssh/**\""), zones("credential", "\"~/.ssh/**\", \"**/.env\""), false, true),
        (zones("cache", "\"/var/cache/a/**\""), cache.clone(), false, true),
        (format!("{cache}trusted_dirs: [/bin]\n"), format!("{cache}trusted_dirs: [/bin, /opt]\n"), true, false),
        (format!("{cache}allowed_env: []\n"), format!("{cache}allowed_env: [PAGER]\n"), true, false),
        (format!("{cache}provenance: enforce\n"), format!("{cache}provenance: off\n"), true, false),
    ] {
        let up = compare(&files(&small), &files(&large));
        let down = compare(&files(&large), &files(&small));
        let wide = |found: &[Finding]| found.iter().any(|f| matches!(f.code, Code::CONFIG_WIDENING | Code::WIDENING));
        assert_eq!((wide(&up), wide(&down)), (larger_is_wider, smaller_is_wider), "{small}{large}{up:#?}{down:#?}");
    }
    // The witness is a command that one would type.
    let found =
        compare(&files(&format!("{cache}allowed_env: []\n")), &files(&format!("{cache}allowed_env: [PAGER]\n")));
    assert_eq!(found[0].evidence.as_ref().unwrap().witness, "PAGER=x cat");
    assert_eq!(found[0].evidence.as_ref().unwrap().new_tier, Some(0));
}

/// Guardrails only take away; one that is gone is a widening, one that permits is refused.
#[test]
fn guardrails() {
    let files = |guardrail: Option<&str>, body: &str| {
        let mut files = one_map("commands", 2, body);
        if let Some(text) = guardrail {
            let config = format!("{}policies: [map.md]\nguardrails: [\"g.cedar\"]\n", common::maps::CONFIG);
            files.0.insert("polctl.yaml".into(), config);
            files.0.insert("g.cedar".into(), text.into());
        }
        files
    };
    let body = "## Tier 0\n- `ls`";
    let stop = "forbid (principal, action, resource) when { context.program == \"ls\" };";
    let wide = |found: &[Finding]| codes(found).contains("widening");
    assert!(wide(&compare(&files(Some(stop), body), &files(None, body))));
    assert!(!wide(&compare(&files(None, body), &files(Some(stop), body))));
    assert!(compare(&files(Some(stop), body), &files(Some(&stop.replace(' ', "\n")), body)).is_empty(), "layout");
    // What the guardrail stops is not newly permitted.
    let found = compare(&files(Some(stop), body), &files(Some(stop), "## Tier 0\n- `ls`\n- `ls *`"));
    assert_eq!(codes(&found), [""; 0].into());
    // What the exact engine cannot read needs a solver, and there is none here.
    let unread = "forbid (principal, action, resource) when { context.line like \"*x*\" };";
    for found in [
        compare(&files(Some(unread), body), &files(None, body)),
        compare(&files(Some(unread), body), &files(Some(unread), "## Tier 0\n- `ls`\n- `ls x`")),
    ] {
        assert_eq!(codes(&found), ["inconclusive"].into(), "{found:#?}");
    }
    // Beside the guardrail everything is as ever.
    let found = compare(&files(Some(stop), body), &files(Some(stop), "## Tier 0\n- `ls`\n- `cat`"));
    assert_eq!(codes(&found), ["widening"].into());
    for bad in [
        "permit (principal, action, resource);",
        "forbid (principal, action, resource",
        "forbid (principal, action, resource) when { context.nothing };",
        "forbid (principal == ?principal, action, resource);",
        "forbid (principal, action == Commands::Action::\"tier9\", resource);",
    ] {
        assert_eq!(codes(&judge(&files(Some(bad), body))), ["guardrail"].into(), "{bad}");
    }
}

/// The registry and the cases cover each other, so that no code goes untested.
#[test]
fn every_code_is_covered() {
    let here: BTreeSet<&str> = ONE_VERSION.iter().map(|(code, ..)| code.as_str()).collect();
    let elsewhere = [
        "widening",
        "narrowing",
        "config-widening",
        "inconclusive",
        "unmatched-too-low",
        "not-contained",
        "guardrail",
        // tests/cedar.rs
        "cedar",
        "schema-change",
        // tests/sign_policy.rs
        "compiler-change",
        // src/analyze/lint/vacuous.rs
        "vacuous-guardrail",
        "surface-conflict",
        "duplicate-id",
        // tests/sign_policy.rs
        "approval",
        // fixtures/capabilities, tests/capability_fixtures.rs
        "capability-widening",
        "attenuation",
        "unclassified",
        "undeclared",
        "unapproved",
        "enforcement",
        // fixtures/hosts, tests/census.rs
        "credential-unclassified",
        "credential-returned",
        "credential-stale",
        "credential-mode",
        "exemption-expired",
        "exemption-expiring",
        "exemption-exceeded",
        "exemptions-not-empty",
        "census-incomplete",
        // fixtures/sql, tests/retention.rs
        "retention-unclassified",
        "retention-class",
        "retention-unknown",
        "retention-comment",
        "retention-audit",
        "retention-pruning",
        "retention-unused",
        "retention-baseline",
        "retention-weakened",
        "retention-migrations",
        // tests/import.rs
        "import-unreadable",
        "import-narrower",
        "import-left-out",
        "import-broader",
        "import-unconsulted",
        "import-note",
    ];
    let snapshots = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/snapshots")).unwrap();
    let shown: String = snapshots.map(|e| std::fs::read_to_string(e.unwrap().path()).unwrap()).collect();
    for row in CODES {
        let name = row.code.as_str();
        let covered = match row.kind {
            Kind::Malformed => elsewhere.contains(&name) || shown.lines().any(|line| line == name),
            _ => here.contains(name) || elsewhere.contains(&name),
        };
        assert!(covered, "no case for `{name}`");
    }
}

#[test]
fn files_of_one_surface_must_agree() {
    let mut files = one_map("commands", 2, "## Tier 0\n- `ls`\n  - id: a");
    files.0.insert("polctl.yaml".into(), "polctl: v1\nset: demo\npolicies: [map.md, more.md]\n".into());
    let more = "---\npolctl: v1\nsurface: commands\nunmatched: 3\n---\n## Tier 1\n- `touch *`\n  - id: a\n";
    files.0.insert("more.md".into(), more.into());
    assert_eq!(codes(&judge(&files)), ["duplicate-id", "surface-conflict"].into());
    files.0.insert("more.md".into(), more.replace("unmatched: 3\n", "").replace("id: a", "id: b"));
    assert!(judge(&files).is_empty());
}

/// Zones work on rules in both directions; each of these was once taken for a narrowing.
#[test]
fn zones_are_judged_by_what_they_do_to_rules() {
    let files = |body: &str, zones: &str| {
        let mut files = one_map("commands", 2, body);
        let config =
            format!("polctl: v1\nset: demo\npolicies: [map.md]\nzones:\n  workspace: [\"/srv/agents/**\"]\n{zones}");
        files.0.insert("polctl.yaml".into(), config);
        files
    };
    let names = |zone: &str| format!("## Tier 0\n- `cat **`\n  - when: `names={zone}`");
    let denied = |zone: &str| format!("## Tier 0\n- `cat **`\n## Tier 4\n- `cat **`\n  - when: `names={zone}`");
    let secrets = "  secrets: [\"**/secrets/**\"]\n";
    let etc = "  etc: [\"/etc/**\"]\n";
    for (body, old, new) in [
        // A zone inside the workspace kept the rule from what lies in both.
        (names("workspace"), secrets, ""),
        ("## Tier 1\n- `echo *`".to_owned(), "  protected: [\"/srv/agents/protected/**\"]\n", ""),
        (names("none"), secrets, ""),
        (names("elsewhere"), etc, ""),
        // What becomes a zone is no longer elsewhere, and what names something not nothing.
        (denied("elsewhere"), "", etc),
        (denied("none"), "", secrets),
        (denied("elsewhere"), "  credential: []\n", "  credential: [\"/var/x/**\"]\n"),
    ] {
        let found = compare(&files(&body, old), &files(&body, new));
        assert!(codes(&found).contains("config-widening"), "{body}\n{old}→\n{new}{found:#?}");
        // Taking the zone of secrets away also opens what lies in the workspace.
        let back = compare(&files(&body, new), &files(&body, old));
        assert_eq!(
            codes(&back).contains("config-widening"),
            new == secrets || old.contains("credential"),
            "{body}\n{new}→\n{old}{back:#?}"
        );
    }
    // A guardrail that looks at zones is beyond the exact engine: no verdict is no pass.
    let guarded = |zones: &str| {
        let mut files = files("## Tier 0\n- `cat **`", &format!("{zones}guardrails: [\"g.cedar\"]\n"));
        let text = "forbid (principal, action, resource) when { context.names.contains(\"secrets\") };";
        files.0.insert("g.cedar".into(), text.into());
        files
    };
    assert!(codes(&compare(&guarded(secrets), &guarded(""))).contains("inconclusive"));
    // A zone renamed together with its rule changes nothing, and that must not become a false witness.
    let renamed = compare(&files(&names("a"), "  a: [\"/x/**\"]\n"), &files(&names("b"), "  b: [\"/x/**\"]\n"));
    assert!(!codes(&renamed).contains("widening"), "{renamed:#?}");
}
