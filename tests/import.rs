//! Imports of other tools' rules: what each line is in the source and after the import.
//!
//! `fixtures/import/FORMAT/NAME.lines` stands beside the source `NAME.*`. A line of it is a decision and a
//! command: `allow git status` where both agree, `allow/ask git push` where the import is stricter. The first
//! word is what the source does by its own documentation, written by hand. A comment `# args: …` gives options,
//! `# files: a b` other files than the one beside it. `POLCTL_BLESS=1` writes down where imports are stricter;
//! it never writes down a wider one.
//!
//! The property tests read Claude Code settings, Codex rules and sudoers a second time, directly, and compare on random lines.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test that cannot go on fails"
)]

mod common;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use common::{Files, Tape, compiled, finish, nightly, runner};
use polctl::compile::{Compiled, compile};
use polctl::decide::{Decider, Setting, egress_request, judge, judge_request};
use polctl::import::{self, Format, Imported, Options};
use polctl::model::{Request, Surface};
use polctl::parse::load;
use polctl::source::{DirTree, SourceMap};
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

/// What becomes of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Decision {
    Allow,
    Ask,
    Deny,
}

impl Decision {
    fn of(tier: Option<u8>) -> Self {
        match tier {
            Some(0 | 1) => Decision::Allow,
            Some(_) => Decision::Ask,
            None => Decision::Deny,
        }
    }

    fn word(self) -> &'static str {
        match self {
            Decision::Allow => "allow",
            Decision::Ask => "ask",
            Decision::Deny => "deny",
        }
    }

    fn read(word: &str) -> Self {
        [Decision::Allow, Decision::Ask, Decision::Deny]
            .into_iter()
            .find(|own| own.word() == word)
            .unwrap_or_else(|| panic!("`{word}` is no decision"))
    }
}

/// What the imported policy does with a line.
fn decide(compiled: &Compiled, map: &SourceMap, surface: Surface, line: &str, agent: &str) -> Decision {
    let zones = compiled.set.config.zones.matcher();
    let setting = Setting {
        trusted_dirs: &compiled.set.config.trusted_dirs,
        zones: &zones,
        cwd: Some("/srv/agents/app"),
        agent,
        host: "host",
        external: false,
    };
    let mut decider = Decider::new(compiled, map);
    let verdict = if surface == Surface::Egress {
        let mut request = egress_request(line).unwrap_or_else(|e| panic!("{line}: {e}"));
        agent.clone_into(&mut request.agent);
        "host".clone_into(&mut request.machine);
        judge_request(&mut decider, Request::Egress(request), line, &setting)
    } else {
        judge(&mut decider, surface, line, &setting)
    };
    Decision::of(verdict.unwrap().tier)
}

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/import")
}

fn polctl(args: &[&str]) -> (Option<i32>, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_polctl")).args(args).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    (output.status.code(), text)
}

/// The surface that a line is about.
fn surface_of(format: &str, line: &str) -> Surface {
    let method = line.split_once(" http").is_some_and(|(head, _)| head.bytes().all(|b| b.is_ascii_uppercase()));
    match format {
        _ if method => Surface::Egress,
        "sudoers" => Surface::Sudo,
        _ => Surface::Commands,
    }
}

/// One `.lines` file: imports through the command, has the check accept it, and decides each line.
fn case(format: &str, lines: &Path) -> usize {
    let shown = lines.display();
    let stem = lines.file_stem().unwrap().to_str().unwrap();
    let text = std::fs::read_to_string(lines).unwrap();
    let header = |key: &str| {
        let mark = format!("# {key}: ");
        text.lines()
            .find_map(|line| line.strip_prefix(&mark))
            .map(|own| own.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    };
    let dir = lines.parent().unwrap();
    let files = header("files").unwrap_or_else(|| {
        let beside = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
        let mut found: Vec<PathBuf> = beside
            .filter(|path| path.file_stem().unwrap() == stem && path.extension().is_some_and(|e| e != "lines"))
            .collect();
        found.sort();
        assert_eq!(found.len(), 1, "{shown} has one source beside it");
        vec![found[0].file_name().unwrap().to_str().unwrap().to_owned()]
    });
    let out = tempfile::tempdir().unwrap();
    let target = out.path().join("p");
    let paths: Vec<String> = files.iter().map(|name| dir.join(name).display().to_string()).collect();
    let mut args: Vec<String> = vec!["import".into(), format.into()];
    args.extend(paths);
    args.extend(header("args").unwrap_or_default());
    args.extend(["-o".into(), target.display().to_string()]);
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let (code, told) = polctl(&args);
    let nothing = text.lines().any(|line| line == "# nothing is permitted");
    if nothing {
        assert_eq!(code, Some(2), "{shown}: {told}");
        assert!(told.contains("there is no rule that a tier map can say"), "{shown}: {told}");
    } else {
        assert_eq!(code, Some(0), "{shown}: {told}");
        let (code, check) = polctl(&["check", "--initial", "-C", target.to_str().unwrap()]);
        assert_eq!(code, Some(0), "{shown} is not accepted: {check}");
    }
    let mut map = SourceMap::new();
    let policy = (!nothing).then(|| {
        let mut findings = Vec::new();
        let set = load(&DirTree::new(&target, None), &mut map, &mut findings).unwrap();
        compile(set.unwrap_or_else(|| panic!("{findings:?}")), Vec::new())
    });
    let (mut decided, mut blessed, mut wrong) = (0, String::new(), Vec::new());
    for row in text.lines() {
        if row.is_empty() || row.starts_with('#') {
            blessed.push_str(row);
            blessed.push('\n');
            continue;
        }
        let (stated, rest) = row.split_once(' ').unwrap();
        let rest = rest.trim_start();
        let (agent, line) = match rest.strip_prefix('@') {
            Some(rest) => rest.split_once(' ').unwrap(),
            None => ("agent", rest),
        };
        let (source, want) = stated.split_once('/').unwrap_or((stated, stated));
        let (source, want) = (Decision::read(source), Decision::read(want));
        let is = policy.as_ref().map_or(Decision::Deny, |own| decide(own, &map, surface_of(format, line), line, agent));
        if is < source {
            wrong.push(format!("WIDER: `{row}` is {}", is.word()));
        } else if is != want {
            wrong.push(format!("`{row}` is {}", is.word()));
        }
        let both = if is == source { source.word().to_owned() } else { format!("{}/{}", source.word(), is.word()) };
        blessed.push_str(&format!("{both} {rest}\n"));
        decided += 1;
    }
    let wider = wrong.iter().any(|text| text.starts_with("WIDER"));
    if !wider && std::env::var("POLCTL_BLESS").is_ok_and(|value| value == "1") {
        std::fs::write(lines, blessed).unwrap();
        return decided;
    }
    assert!(wrong.is_empty(), "{}\n{}\n{told}", lines.display(), wrong.join("\n"));
    assert!(decided >= 20, "{shown} decides {decided} lines");
    decided
}

/// All cases of formats; at least so many.
fn cases(formats: &[&str], least: usize) {
    let mut found = 0;
    let mut failed = Vec::new();
    for format in formats {
        let mut lines: Vec<PathBuf> = std::fs::read_dir(fixtures().join(format))
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.extension().is_some_and(|e| e == "lines"))
            .collect();
        lines.sort();
        found += lines.len();
        for path in lines {
            if let Err(panic) = std::panic::catch_unwind(|| case(format, &path)) {
                failed.push(panic.downcast_ref::<String>().cloned().unwrap_or_else(|| path.display().to_string()));
            }
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n\n"));
    assert!(found >= least, "{found}");
}

#[test]
fn claude_settings_are_never_wider() {
    cases(&["claude-settings"], 12);
}

#[test]
fn codex_rules_are_never_wider() {
    cases(&["codex-rules"], 12);
}

#[test]
fn sudoers_are_never_wider() {
    cases(&["sudoers"], 12);
}

#[test]
fn egress_lists_are_never_wider() {
    cases(&["codex-proxy", "smokescreen", "squid", "sandbox-runtime"], 12);
}

#[test]
fn other_clients_are_never_wider() {
    cases(&["gemini", "cursor", "opencode"], 12);
}

#[test]
fn prose_is_never_wider() {
    cases(&["markdown"], 12);
}

/// An import in memory, as policy files.
fn imported(format: Format, files: &[(&str, &str)], options: &Options) -> Result<(Imported, Files), String> {
    let mut map = SourceMap::new();
    let ids = files.iter().map(|(name, text)| map.add(name, None, text)).collect();
    let mut include = |path: &str, _: &str| Err(format!("no {path}"));
    let mut input = import::Files { map: &mut map, files: ids, include: &mut include };
    let found = import::import(format, &mut input, options)
        .map_err(|findings| findings.iter().map(|f| f.message.clone()).collect::<Vec<_>>().join("; "))?;
    let filled: Vec<Surface> = found.maps.iter().filter(|(_, own)| !own.rows.is_empty()).map(|(s, _)| *s).collect();
    let mut out: BTreeMap<String, String> =
        filled.iter().map(|s| (import::map_name(*s).to_owned(), import::tier_map(format, &found, *s, &map))).collect();
    if !filled.is_empty() {
        out.insert("polctl.yaml".into(), import::config(&found, "imported"));
    }
    Ok((found, Files(out)))
}

/// One settings file with a rule for each way to err.
#[test]
fn each_loss_is_told_with_its_line() {
    let text = r#"{"permissions": {
        "allow": [
            "Bash(git * main)",
            "Bash(/usr/bin/frob)",
            "Bash(zork:*)"
        ],
        "deny": [
            "Bash(zork:*)",
            "Bash(frob * x)",
            "Write(a)"
        ]
    }}"#;
    let (found, _) = imported(Format::ClaudeSettings, &[("settings.json", text)], &Options::default()).unwrap();
    let told: Vec<(&str, usize)> = found
        .notes
        .iter()
        .map(|note| (note.finding().code.as_str(), text[..note.span.start].matches('\n').count() + 1))
        .collect();
    let want = [
        ("import-narrower", 3),
        ("import-left-out", 4),
        ("import-note", 5),
        ("import-broader", 9),
        ("import-unconsulted", 10),
    ];
    assert!(want.iter().all(|own| told.contains(own)), "{told:?}");
}

/// What cannot be read to its end has no import: the rest may deny.
#[test]
fn a_part_is_never_imported() {
    let cases = [
        (Format::ClaudeSettings, "{\"permissions\": {\"allow\": [\"Bash(ls)\"]"),
        (Format::ClaudeSettings, "{\"permissions\": {\"deny\": \"Bash\"}}"),
        (Format::CodexRules, "prefix_rule(pattern=[\"a\"])\nfor x in y: prefix_rule(pattern=[x])\n"),
        (Format::CodexRules, "prefix_rule(pattern=[\"a\"], match=[\"b\"])\n"),
        (Format::CodexRules, "prefix_rule(pattern=[\"a\"], not_match=[[\"a\", \"b\"]])\n"),
        (Format::CodexRules, "prefix_rule(pattern=[\"a\"], decision=\"maybe\")\n"),
        (Format::CodexRules, "other_rule(pattern=[\"a\"])\n"),
        (Format::Sudoers, "ada ALL=(root) NOPASSWD: /usr/bin/a\n@include missing\n"),
        (Format::Sudoers, "ada ALL=(root) MISSING\n"),
        (Format::Sudoers, "ada ALL (root) /usr/bin/a\n"),
        (Format::CodexProxy, "[network_proxy\n"),
        (Format::CodexProxy, "[network_proxy]\nmode = \"wild\"\n"),
        (Format::Smokescreen, "version: v1\nservices:\n  - name: a\n    action: maybe\n"),
        (Format::Squid, "http_access allow missing\n"),
        (Format::Squid, "include /etc/squid/conf.d/*.conf\n"),
        (Format::Squid, "acl a dstdomain \"/etc/list\"\n"),
        (Format::SandboxRuntime, "{\"network\": {\"allowedDomains\": [1]}}"),
        (Format::Gemini, "[[rule]]\ntoolName = \"run_shell_command\"\n"),
        (Format::Cursor, "{\"permissions\": {\"deny\": {}}}"),
        (Format::Opencode, "{\"permission\": {\"bash\": \"maybe\"}}"),
    ];
    for (format, text) in cases {
        let mut map = SourceMap::new();
        let file = map.add("a", None, text);
        let mut include = |path: &str, _: &str| Err(format!("no {path}"));
        let mut input = import::Files { map: &mut map, files: vec![file], include: &mut include };
        let findings = import::import(format, &mut input, &Options::default()).expect_err(text);
        assert!(
            findings.iter().all(|f| f.code.as_str() == "import-unreadable" && f.help.is_some()),
            "{text}: {findings:?}"
        );
    }
}

/// Compares two readings on lines; the share of lines on which they agree is told.
fn compare(
    files: &Files,
    surface: Surface,
    lines: &[(String, String, Decision)],
    source: &str,
) -> Result<usize, TestCaseError> {
    let mut map = SourceMap::new();
    let policy = (!files.0.is_empty()).then(|| compiled(files, &mut map));
    let mut same = 0;
    for (agent, line, want) in lines {
        let is = policy.as_ref().map_or(Decision::Deny, |own| decide(own, &map, surface, line, agent));
        if is < *want {
            let text = format!("`{line}` ({agent}) is {} and was {}:\n{source}\n{files:?}", is.word(), want.word());
            return Err(TestCaseError::fail(text));
        }
        same += usize::from(is == *want);
    }
    Ok(same)
}

/// `*` is any characters; the direct reading of a text pattern.
fn like(pattern: &str, text: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == text,
        Some((head, tail)) => text.strip_prefix(head).is_some_and(|rest| {
            (0..=rest.len()).filter(|at| rest.is_char_boundary(*at)).any(|at| like(tail, &rest[at..]))
        }),
    }
}

const PROGRAMS: [&str; 8] = ["frob", "git", "npm", "ls", "zork", "kubectl", "cargo", "rm"];
const WORDS: [&str; 26] = [
    "status",
    "push",
    "-f",
    "--force",
    "main",
    "run",
    "test",
    "a",
    "-C",
    "/srv/x",
    "get",
    "pods",
    "-n",
    "prod",
    "log",
    "-la",
    "--version",
    "test:unit",
    "origin",
    "-rf",
    "build",
    "lsof",
    "x.txt",
    "delete",
    "--dry-run",
    "commit",
];

/// A command without anything that a shell would read.
fn plain_command(tape: &mut Tape<'_>) -> String {
    let mut words = vec![tape.one(&PROGRAMS)];
    for _ in 0..tape.below(5) {
        words.push(tape.one(&WORDS));
    }
    words.join(" ")
}

fn cases_of(normal: u32) -> u32 {
    if nightly() { normal * 40 } else { normal }
}

fn tapes() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 0..500)
}

/// The rule of a settings file, read directly.
fn claude_matches(rule: &str, command: &str) -> bool {
    let Some(specifier) = rule.strip_prefix("Bash(").and_then(|rest| rest.strip_suffix(')')) else {
        return rule == "Bash";
    };
    let prefix = specifier.strip_suffix(":*").or_else(|| {
        // With another wildcard the last blank must be there.
        specifier.strip_suffix(" *").filter(|head| !head.contains('*'))
    });
    match prefix {
        Some(prefix) => command == prefix || command.strip_prefix(prefix).is_some_and(|rest| rest.starts_with(' ')),
        None => like(specifier, command),
    }
}

fn claude_rule(tape: &mut Tape<'_>) -> String {
    let mut words = vec![tape.one(&PROGRAMS)];
    for _ in 0..tape.below(3) {
        words.push(tape.one(&WORDS));
    }
    let head = words.join(" ");
    match tape.below(9) {
        0 | 1 => format!("Bash({head}:*)"),
        2 | 3 => format!("Bash({head} *)"),
        4 => format!("Bash({head}*)"),
        5 => format!("Bash({head} * {})", tape.one(&WORDS)),
        6 => format!("Bash(* {})", tape.one(&WORDS)),
        7 => format!("Bash({head} * {} *)", tape.one(&WORDS)),
        _ => format!("Bash({head})"),
    }
}

#[test]
fn claude_settings_agree_with_a_direct_reading() {
    let mut runner = runner(cases_of(10));
    let same = std::cell::Cell::new((0, 0));
    finish(runner.run(&tapes(), |bytes| {
        let mut tape = Tape::new(&bytes);
        let mut lists: [Vec<String>; 3] = Default::default();
        for _ in 0..=tape.below(7) {
            let list = [0, 0, 0, 1, 2][tape.below(5)];
            lists[list].push(claude_rule(&mut tape));
        }
        let [allow, ask, deny] = &lists;
        let text = serde_json::json!({"permissions": {"allow": allow, "ask": ask, "deny": deny}}).to_string();
        let (_, files) = imported(Format::ClaudeSettings, &[("settings.json", &text)], &Options::default()).unwrap();
        let one = |command: &str| {
            let hit = |rules: &[String]| rules.iter().any(|rule| claude_matches(rule, command));
            if hit(deny) {
                Decision::Deny
            } else if hit(ask) || !hit(allow) {
                Decision::Ask
            } else {
                Decision::Allow
            }
        };
        let mut lines = Vec::new();
        for _ in 0..25 {
            let first = plain_command(&mut tape);
            let (line, want) = if tape.chance(20) {
                let second = plain_command(&mut tape);
                let want = one(&first).max(one(&second));
                (format!("{first}{}{second}", tape.one(&[" && ", " | ", "; ", " || "])), want)
            } else {
                let want = one(&first);
                (first, want)
            };
            lines.push(("agent".to_owned(), line, want));
        }
        if files.0.is_empty() {
            return Ok(());
        }
        let found = compare(&files, Surface::Commands, &lines, &text)?;
        same.set((same.get().0 + found, same.get().1 + lines.len()));
        Ok(())
    }));
    let (same, all) = same.get();
    eprintln!("equal on {same} of {all} lines");
    assert!(same * 100 >= all * 60, "{same} of {all}");
}

/// A program that the table does not know, and wildcards at the end only: nothing is lost.
#[test]
fn plain_claude_settings_are_exact() {
    let mut runner = runner(cases_of(10));
    finish(runner.run(&tapes(), |bytes| {
        let mut tape = Tape::new(&bytes);
        let words = ["a", "b", "-x", "--long", "c.d"];
        let command = |tape: &mut Tape<'_>| {
            let mut all = vec![tape.one(&["frob", "zork"])];
            for _ in 0..tape.below(4) {
                all.push(tape.one(&words));
            }
            all.join(" ")
        };
        let mut rules: Vec<(String, Decision)> = Vec::new();
        for _ in 0..=tape.below(6) {
            let head = command(&mut tape);
            let rule = format!("Bash({head}{})", tape.one(&["", ":*", " *"]));
            rules.push((rule, tape.one(&[Decision::Allow, Decision::Allow, Decision::Ask, Decision::Deny])));
        }
        let of = |wanted: Decision| -> Vec<&str> {
            rules.iter().filter(|(_, own)| *own == wanted).map(|(rule, _)| rule.as_str()).collect()
        };
        let text = serde_json::json!({"permissions": {
            "allow": of(Decision::Allow), "ask": of(Decision::Ask), "deny": of(Decision::Deny)
        }})
        .to_string();
        let (_, files) = imported(Format::ClaudeSettings, &[("settings.json", &text)], &Options::default()).unwrap();
        let lines: Vec<(String, String, Decision)> = (0..25)
            .map(|_| {
                let line = command(&mut tape);
                let hits = rules.iter().filter(|(rule, _)| claude_matches(rule, &line)).map(|(_, own)| *own);
                let want = hits.max().unwrap_or(Decision::Ask);
                ("agent".to_owned(), line, want)
            })
            .collect();
        let same = compare(&files, Surface::Commands, &lines, &text)?;
        prop_assert_eq!(same, lines.len(), "{}\n{:?}\n{:?}", text, files, lines);
        Ok(())
    }));
}

#[test]
fn codex_rules_agree_with_a_direct_reading() {
    let mut runner = runner(cases_of(10));
    let same = std::cell::Cell::new((0, 0));
    finish(runner.run(&tapes(), |bytes| {
        let mut tape = Tape::new(&bytes);
        let mut rules: Vec<(Vec<Vec<&str>>, Decision)> = Vec::new();
        let mut text = String::new();
        for _ in 0..=tape.below(7) {
            let mut pattern = vec![if tape.chance(20) {
                vec![tape.one(&PROGRAMS), tape.one(&PROGRAMS)]
            } else {
                vec![tape.one(&PROGRAMS)]
            }];
            for _ in 0..tape.below(3) {
                pattern.push(if tape.chance(25) {
                    vec![tape.one(&WORDS), tape.one(&WORDS)]
                } else {
                    vec![tape.one(&WORDS)]
                });
            }
            let decision = tape.one(&[Decision::Allow, Decision::Allow, Decision::Ask, Decision::Deny]);
            let tokens: Vec<String> = pattern
                .iter()
                .map(|token| if token.len() == 1 { format!("{:?}", token[0]) } else { format!("{token:?}") })
                .collect();
            let name = ["allow", "prompt", "forbidden"][decision as usize];
            text.push_str(&format!("prefix_rule(pattern=[{}], decision={name:?})\n", tokens.join(", ")));
            rules.push((pattern, decision));
        }
        let (_, files) = imported(Format::CodexRules, &[("a.rules", &text)], &Options::default()).unwrap();
        let lines: Vec<(String, String, Decision)> = (0..30)
            .map(|_| {
                let line = plain_command(&mut tape);
                let words: Vec<&str> = line.split(' ').collect();
                let hit = |pattern: &Vec<Vec<&str>>| {
                    words.len() >= pattern.len() && pattern.iter().zip(&words).all(|(token, word)| token.contains(word))
                };
                let want = rules
                    .iter()
                    .filter(|(pattern, _)| hit(pattern))
                    .map(|(_, own)| *own)
                    .max()
                    .unwrap_or(Decision::Ask);
                ("agent".to_owned(), line, want)
            })
            .collect();
        if files.0.is_empty() {
            return Ok(());
        }
        let found = compare(&files, Surface::Commands, &lines, &text)?;
        same.set((same.get().0 + found, same.get().1 + lines.len()));
        Ok(())
    }));
    let (same, all) = same.get();
    eprintln!("equal on {same} of {all} lines");
    assert!(same * 100 >= all * 60, "{same} of {all}");
}

/// One entry of the sudoers in the property test.
struct Sudo {
    users: Vec<&'static str>,
    run_as: Option<&'static str>,
    nopasswd: bool,
    negated: bool,
    program: &'static str,
    arguments: Option<String>,
}

#[test]
fn sudoers_agree_with_a_direct_reading() {
    const USERS: [&str; 4] = ["ada", "ben", "ALL", "cyd"];
    const TOOLS: [&str; 6] = ["frob", "systemctl", "zork", "ALL", "apt-get", "id"];
    const ARGS: [&str; 10] = ["restart", "app", "status", "-x", "a", "b", "--now", "update", "app-web", "nginx"];
    let mut runner = runner(cases_of(12));
    let same = std::cell::Cell::new((0, 0));
    finish(runner.run(&tapes(), |bytes| {
        let mut tape = Tape::new(&bytes);
        let mut text = String::new();
        let mut entries: Vec<Sudo> = Vec::new();
        for _ in 0..=tape.below(6) {
            let users = if tape.chance(25) { vec![tape.one(&USERS), tape.one(&USERS)] } else { vec![tape.one(&USERS)] };
            let run_as = tape.one(&[None, None, Some("ALL"), Some("root"), Some("www")]);
            text.push_str(&format!("{} ALL={}", users.join(", "), run_as.map_or(String::new(), |u| format!("({u}) "))));
            let mut nopasswd = false;
            for index in 0..=tape.below(3) {
                if index > 0 {
                    text.push_str(", ");
                }
                if tape.chance(50) {
                    nopasswd = tape.chance(60);
                    text.push_str(if nopasswd { "NOPASSWD: " } else { "PASSWD: " });
                }
                let negated = tape.chance(25);
                let program = tape.one(&TOOLS);
                let arguments = (program != "ALL")
                    .then(|| match tape.below(6) {
                        0 | 1 => None,
                        2 => Some(String::new()),
                        3 => Some(format!("{} *", tape.one(&ARGS))),
                        4 => Some(format!("{}*", tape.one(&ARGS))),
                        _ => Some(format!("{} {}", tape.one(&ARGS), tape.one(&ARGS))),
                    })
                    .flatten();
                text.push_str(if negated { "!" } else { "" });
                text.push_str(&if program == "ALL" { program.to_owned() } else { format!("/usr/bin/{program}") });
                if let Some(arguments) = &arguments {
                    text.push_str(&format!(" {}", if arguments.is_empty() { "\"\"" } else { arguments }));
                }
                entries.push(Sudo { users: users.clone(), run_as, nopasswd, negated, program, arguments });
            }
            text.push('\n');
        }
        let (_, files) = match imported(Format::Sudoers, &[("sudoers", &text)], &Options::default()) {
            Ok(found) => found,
            Err(why) => return Err(TestCaseError::fail(format!("{why}\n{text}"))),
        };
        let lines: Vec<(String, String, Decision)> = (0..30)
            .map(|_| {
                let user = tape.one(&["ada", "ben", "cyd", "dee"]);
                let target = tape.one(&["root", "root", "root", "www"]);
                let mut words = vec![tape.one(&["frob", "systemctl", "zork", "apt-get", "id"])];
                for _ in 0..tape.below(4) {
                    words.push(tape.one(&ARGS));
                }
                let arguments = words[1..].join(" ");
                let hit = |own: &Sudo| {
                    let users = own.users.iter().any(|name| *name == "ALL" || *name == user);
                    let runs = match own.run_as {
                        None => target == "root",
                        Some("ALL") => true,
                        Some(name) => name == target,
                    };
                    let like = own.arguments.as_ref().is_none_or(|pattern| like(pattern, &arguments));
                    users && runs && (own.program == "ALL" || own.program == words[0] && like)
                };
                let want = entries.iter().rfind(|own| hit(own)).map_or(Decision::Deny, |own| {
                    match (own.negated, own.nopasswd) {
                        (true, _) => Decision::Deny,
                        (false, true) => Decision::Allow,
                        (false, false) => Decision::Ask,
                    }
                });
                let line = format!(
                    "{}{}",
                    if target == "root" { String::new() } else { format!("-u {target} ") },
                    words.join(" ")
                );
                (user.to_owned(), line, want)
            })
            .collect();
        let found = compare(&files, Surface::Sudo, &lines, &text)?;
        same.set((same.get().0 + found, same.get().1 + lines.len()));
        Ok(())
    }));
    let (same, all) = same.get();
    eprintln!("equal on {same} of {all} lines");
    assert!(same * 100 >= all * 30, "{same} of {all}");
}
