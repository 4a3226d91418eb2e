//! The hook as the client drives it: events on standard input, answers byte for byte.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::panic,
    reason = "a test that cannot go on fails"
)]

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

const MAP: &str = "---\npolctl: v1\nsurface: commands\n---\n# Map\n\n## Tier 0: read only\n\n- `git {status,log} **`\n- \
                   `{ls,cat,cd} **`\n\n## Tier 1: in the workspace\n\n- `cargo {build,test} **`\n\n## Tier 3: \
                   shared\n\n- `git push **`\n  - why: others see it\n\n## Tier 4: never\n\n- `rm **`\n  - with: `-rf`\n  - \
                   why: there is no copy\n";
const PROXY: &str =
    "---\npolctl: v1\nsurface: egress\n---\n# Egress\n\n## Tier 0: read\n\n- `GET https://docs.example.com/**`\n";
const CONFIG: &str =
    "polctl: v1\nset: hook-test\npolicies: [map.md, proxy.md]\nzones:\n  workspace: [\"/srv/agents/**\"]\n";

fn polctl(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_polctl"));
    command.args(args).env_remove("ESCAPE_HATCH").stdin(Stdio::null());
    command
}

/// A policy directory with its bundle.
fn policy() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (name, text) in [("polctl.yaml", CONFIG), ("map.md", MAP), ("proxy.md", PROXY)] {
        std::fs::write(dir.path().join(name), text).unwrap();
    }
    let compiled = polctl(&["compile", "--bundle", "-C", path(dir.path())]).output().unwrap();
    assert!(compiled.status.success(), "{compiled:?}");
    dir
}

fn path(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn fed(mut command: Command, event: &[u8]) -> Output {
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // A hook that answers before it has read everything closes the pipe.
    let _ = child.stdin.take().unwrap().write_all(event);
    child.wait_with_output().unwrap()
}

fn hook(dir: &Path, more: &[&str], event: &str) -> Output {
    let mut args = vec!["hook", "--policy", path(dir), "--unverified"];
    args.extend(more);
    fed(polctl(&args), event.as_bytes())
}

fn bash(command: &str) -> String {
    json!({
        "session_id": "s1", "transcript_path": "/t", "cwd": "/srv/agents/app", "permission_mode": "default",
        "hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": {"command": command}, "tool_use_id": "u1"
    })
    .to_string()
}

/// The decision and the reason of an answer; the exit code must be 0, else the client goes on.
fn decision(output: &Output) -> (String, String) {
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    let specific = &answer["hookSpecificOutput"];
    assert_eq!(specific["hookEventName"], "PreToolUse");
    let text = |name: &str| specific[name].as_str().unwrap().to_owned();
    (text("permissionDecision"), text("permissionDecisionReason"))
}

/// A recorded session: each event with the answer, to the byte.
#[test]
fn a_session_is_answered_to_the_byte() {
    let dir = policy();
    let recorded =
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/hook/session.jsonl")).unwrap();
    let mut answers = String::new();
    for event in recorded.lines() {
        let output = hook(dir.path(), &[], event);
        assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), &b""[..]), "{event}");
        answers.push_str(std::str::from_utf8(&output.stdout).unwrap());
    }
    assert_eq!(recorded.lines().count(), answers.lines().count());
    insta::assert_snapshot!("hook-session", answers);
    // By hand: the keys and values that the protocol documents, in one answer of each kind.
    let lines: Vec<&str> = answers.lines().collect();
    assert!(lines[0].starts_with(
        r#"{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"allow","permissionDecisionReason":""#
    ));
    for (kind, count) in [("allow", 4), ("ask", 3), ("deny", 3)] {
        let has = lines.iter().filter(|line| line.contains(&format!(r#""permissionDecision":"{kind}""#))).count();
        assert!(has >= count, "{kind}: {has}");
    }
}

#[test]
fn tiers_are_routed_as_the_options_say() {
    let dir = policy();
    for (line, ask, deny) in [
        ("git status", "allow", "allow"),
        ("cargo build", "allow", "allow"),
        ("touch x", "ask", "deny"),
        ("git push", "ask", "deny"),
        ("rm -rf /", "deny", "deny"),
    ] {
        assert_eq!(decision(&hook(dir.path(), &[], &bash(line))).0, ask, "{line}");
        let routed = decision(&hook(dir.path(), &["--route", "deny", "--daemon", "sandboxd"], &bash(line)));
        assert_eq!(routed.0, deny, "{line}");
        assert_eq!(routed.1.contains("sandboxd"), ask == "ask", "{line}: {}", routed.1);
    }
    let external = decision(&hook(dir.path(), &["--external"], &bash("git status")));
    assert_eq!(external.0, "ask", "{}", external.1);
}

#[test]
fn everything_that_goes_wrong_is_a_denial() {
    let dir = policy();
    let good = bash("git status");
    let denied = |output: Output, what: &str| {
        let (decision, reason) = decision(&output);
        assert_eq!(decision, "deny", "{what}: {reason}");
        assert!(reason.starts_with("polctl could not decide, so nothing runs: "), "{what}: {reason}");
    };
    for event in [
        "",
        "{",
        "null",
        "[]",
        r#"{"hook_event_name":"PreToolUse"}"#,
        r#"{"hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{}}"#,
        r#"{"hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":7}}"#,
        r#"{"hook_event_name":"PostToolUse","tool_name":"Bash","tool_input":{"command":"ls"}}"#,
        r#"{"hook_event_name":"PreToolUse","tool_name":"WebFetch","tool_input":{"url":"nonsense"}}"#,
    ] {
        denied(hook(dir.path(), &[], event), event);
    }
    denied(hook(dir.path(), &[], &" ".repeat(9 << 20)), "an event over the cap");
    let mut command = polctl(&["hook", "--policy", path(dir.path()), "--unverified"]);
    command.env("IGNORED", "1");
    denied(fed(command, b"\xff\xfe"), "an event that is no text");
    denied(fed(polctl(&["hook", "--policy", path(dir.path())]), good.as_bytes()), "no trust file");
    denied(hook(&dir.path().join("gone"), &[], &good), "no policy");

    let bundle = dir.path().join("polctl.bundle");
    let whole = std::fs::read(&bundle).unwrap();
    for cut in [0, 1, 10, 40, whole.len() / 2, whole.len() - 1] {
        std::fs::write(&bundle, &whole[..cut]).unwrap();
        denied(hook(dir.path(), &[], &good), "a bundle that is cut off");
    }
    let text = String::from_utf8(whole.clone()).unwrap();
    for (from, to) in
        [("\"facts\":", "\"facts\":1"), ("\"table\":", "\"table\":1"), ("polctl-bundle 3", "polctl-bundle 2")]
    {
        std::fs::write(&bundle, text.replacen(from, to, 1)).unwrap();
        denied(hook(dir.path(), &[], &good), from);
    }
    std::fs::write(&bundle, &whole).unwrap();
    std::fs::write(dir.path().join("map.md"), MAP.replace("git push", "git pull")).unwrap();
    denied(hook(dir.path(), &[], &good), "a source that changed");
    std::fs::write(dir.path().join("map.md"), MAP).unwrap();
    assert_eq!(decision(&hook(dir.path(), &[], &good)).0, "allow");

    let audit = dir.path().join("no/such/directory/audit");
    denied(hook(dir.path(), &["--audit", path(&audit)], &good), "an audit that cannot be written");
}

/// A bundle with another head or other sections, whose lengths fit.
fn rebuilt(bundle: &str, change: impl Fn(&mut Value, &mut [String; 3])) -> String {
    let (magic, rest) = bundle.split_once('\n').unwrap();
    let (length, rest) = rest.split_once('\n').unwrap();
    let (head, mut rest) = rest.split_at(length.parse().unwrap());
    rest = &rest[1..];
    let mut head: Value = serde_json::from_str(head).unwrap();
    let mut sections = [0, 1, 2].map(|section| {
        let (section, after) = rest.split_at(usize::try_from(head["sections"][section].as_u64().unwrap()).unwrap());
        rest = after;
        section.to_owned()
    });
    head["sections"] = Value::Null;
    change(&mut head, &mut sections);
    if head["sections"].is_null() {
        head["sections"] = sections.iter().map(String::len).collect();
    }
    let head = head.to_string();
    format!("{magic}\n{}\n{head}\n{}", head.len(), sections.concat())
}

type Change<'a> = &'a dyn Fn(&mut Value, &mut [String; 3]);

/// What does not fit together is refused, and never read as fewer policies.
#[test]
fn a_damaged_bundle_is_denied() {
    let dir = policy();
    let path = dir.path().join("polctl.bundle");
    let whole = std::fs::read_to_string(&path).unwrap();
    assert_eq!(rebuilt(&whole, |_, _| {}), whole);
    let asked = |bundle: &str| {
        std::fs::write(&path, bundle).unwrap();
        let self_test = polctl(&["hook", "--policy", dir.path().to_str().unwrap(), "--unverified", "--self-test"]);
        (decision(&hook(dir.path(), &[], &bash("git status"))).0, fed(self_test, b"").status.code())
    };
    assert_eq!(asked(&whole), ("allow".to_owned(), Some(0)));
    let count = |head: &Value, name: &str| head[name].as_u64().unwrap();
    let changes: &[(&str, Change<'_>)] = &[
        ("a policy without its fragment", &|_, [_, policies, _]| *policies = policies.replace(",0,", ",99999,")),
        ("fragments that are no numbers", &|_, [_, policies, _]| *policies = policies.replace(",0,", ",-1,")),
        ("a policy of two texts", &|_, [_, policies, _]| {
            let lists: Vec<String> =
                policies.lines().map(|l| l.split_once(",[").unwrap().1.trim_end_matches(']').to_owned()).collect();
            *policies = policies.replace(&lists[1], &format!("{},{}", lists[1], lists[2]));
        }),
        ("policies under other ids", &|_, [_, policies, _]| *policies = policies.replace("null,", "")),
        ("keys to no policy", &|_, [keys, _, _]| *keys = keys.replace(",[", ",[99999,")),
        ("keys that are none", &|_, [keys, _, _]| *keys = keys.replace(",[", ",")),
        ("a fragment too few", &|_, [_, _, fragments]| {
            fragments.truncate(fragments.trim_end().rfind('\n').unwrap() + 1);
        }),
        ("a fragment too many", &|_, [_, _, fragments]| fragments.push('\n')),
        ("fragments without an end", &|_, [_, _, fragments]| fragments.push_str("  true")),
        ("another count of policies", &|head, _| head["policies"] = json!(count(head, "policies") + 1)),
        ("another count of fragments", &|head, _| head["fragments"] = json!(count(head, "fragments") - 1)),
        ("more guardrails than policies", &|head, _| head["guardrails"] = json!(count(head, "policies") + 1)),
        ("sections that are cut off", &|head, _| head["sections"] = json!([u64::MAX, 1, 1])),
        ("sections that leave a rest", &|head, _| head["sections"] = json!([1, 1, 1])),
        ("a section too few", &|head, _| head["sections"] = json!([1, 1])),
        ("a head with more in it", &|head, _| head["more"] = json!(true)),
    ];
    for (what, change) in changes {
        let bundle = rebuilt(&whole, change);
        assert_ne!(bundle, whole, "{what}");
        assert_eq!(asked(&bundle), ("deny".to_owned(), Some(1)), "{what}");
    }
}

#[test]
fn the_escape_hatch_asks_and_says_so() {
    let dir = policy();
    for (value, want) in [("1", "ask"), ("yes", "ask"), ("", "deny"), ("0", "deny")] {
        let mut command = polctl(&["hook", "--policy", path(dir.path()), "--unverified"]);
        command.env("ESCAPE_HATCH", value);
        let (decision, reason) = decision(&fed(command, b"{"));
        assert_eq!(decision, want, "{value:?}");
        assert_eq!(reason.contains("ESCAPE_HATCH is set"), want == "ask");
    }
    // It changes nothing about what is decided.
    let mut command = polctl(&["hook", "--policy", path(dir.path()), "--unverified"]);
    command.env("ESCAPE_HATCH", "1");
    assert_eq!(decision(&fed(command, bash("rm -rf /").as_bytes())).0, "deny");
}

#[test]
fn many_processes_append_whole_lines_without_secrets() {
    let dir = policy();
    let audit = dir.path().join("audit.jsonl");
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for n in 0..12 {
                    let line = format!(
                        "curl --password hunter2 -H 'Authorization: Bearer abc{n}' https://u:pw@h/ && git status"
                    );
                    hook(dir.path(), &["--audit", path(&audit)], &bash(&line));
                }
            });
        }
    });
    let text = std::fs::read_to_string(&audit).unwrap();
    let rows: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(rows.len(), 96);
    for secret in ["hunter2", "abc1", "u:pw"] {
        assert!(!text.contains(secret), "{secret}");
    }
    let columns = [
        "assigned_tier",
        "decision_type",
        "matched_rule",
        "evidence",
        "exit_code",
        "rollback_taken",
        "verify_passed",
        "human_verdict",
        "training_signal",
        "session_id",
        "tool_use_id",
        "policy_id",
        "ts",
        "command",
        "tool",
        "agent",
    ];
    for row in &rows {
        columns.iter().for_each(|column| assert!(row.get(column).is_some(), "{column}"));
        assert_eq!((&row["assigned_tier"], &row["decision_type"]), (&json!(2), &json!("ask")));
    }
}

#[test]
fn the_self_test_tells_a_working_hook_from_a_broken_one() {
    let dir = policy();
    let test = |more: &[&str]| {
        let mut args = vec!["hook", "--policy", path(dir.path()), "--self-test"];
        args.extend(more);
        polctl(&args).output().unwrap()
    };
    let good = test(&["--unverified"]);
    assert_eq!(good.status.code(), Some(0), "{good:?}");
    assert!(String::from_utf8_lossy(&good.stdout).contains("NOT VERIFIED"));
    assert_eq!(test(&[]).status.code(), Some(1), "nothing says whom to trust");
    std::fs::remove_file(dir.path().join("polctl.bundle")).unwrap();
    let broken = test(&["--unverified"]);
    assert_eq!(broken.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&broken.stdout).contains("polctl.bundle"), "{broken:?}");
}

#[test]
fn install_shows_the_difference_and_keeps_what_is_there() {
    let dir = policy();
    let settings: PathBuf = dir.path().join("home/settings.json");
    let install = |more: &[&str]| {
        let mut args =
            vec!["hook", "--policy", path(dir.path()), "--unverified", "--install", "--settings", path(&settings)];
        args.extend(more);
        polctl(&args).output().unwrap()
    };
    // Nobody there to agree: nothing is written.
    assert_eq!(install(&[]).status.code(), Some(2));
    assert!(!settings.exists());
    assert_eq!(install(&["--yes"]).status.code(), Some(0));
    let once = std::fs::read_to_string(&settings).unwrap();
    let again = install(&["--yes"]);
    assert!(String::from_utf8_lossy(&again.stdout).contains("already"), "{again:?}");
    assert_eq!(std::fs::read_to_string(&settings).unwrap(), once);
    let json: Value = serde_json::from_str(&once).unwrap();
    let hook = &json["hooks"]["PreToolUse"][0]["hooks"][0];
    assert_eq!((&hook["onFailure"], &hook["args"][0]), (&json!("block"), &json!("hook")));
    // What stands in the settings runs, and decides.
    let args: Vec<&str> = hook["args"].as_array().unwrap().iter().map(|arg| arg.as_str().unwrap()).collect();
    let mut command = Command::new(hook["command"].as_str().unwrap());
    command.args(args);
    assert_eq!(decision(&fed(command, bash("git status").as_bytes())).0, "allow");
    // Settings that cannot be read stay as they are.
    std::fs::write(&settings, "{ not json").unwrap();
    assert_eq!(install(&["--yes"]).status.code(), Some(2));
    assert_eq!(std::fs::read_to_string(&settings).unwrap(), "{ not json");
}
