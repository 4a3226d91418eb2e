//! `polctl report` and `polctl init` as they are run.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::panic,
    reason = "a test that cannot go on fails"
)]

mod browser_common;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use browser_common::Browser;
use polctl::compile::compile;
use polctl::decide::{Decider, Setting, judge};
use polctl::model::Surface;
use polctl::parse::load;
use polctl::source::{DirTree, SourceMap};
use serde_json::Value;

fn root(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn polctl(dir: &Path, args: &[&str]) -> (i32, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_polctl")).args(args).current_dir(dir).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap();
    (output.status.code().unwrap(), text.split_whitespace().collect::<Vec<_>>().join(" "))
}

fn git(dir: &Path, args: &[&str]) {
    let output = Command::new("git")
        .args(["-c", "user.name=A \u{202e}Maintainer<b>", "-c", "user.email=test@example.com"])
        .args(["-c", "commit.gpgsign=false", "-c", "init.defaultBranch=main"])
        .args(args)
        .current_dir(dir)
        .output()
        .unwrap_or_else(|e| panic!("these tests need git; install it ({e})"));
    assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// The fleet as a repository; `commits` in all.
fn fleet(dir: &Path, commits: usize) {
    let script = root("scripts/fleet");
    let status = Command::new(&script).arg(dir).arg(commits.to_string()).status();
    assert!(status.unwrap_or_else(|e| panic!("{}: {e}", script.display())).success());
}

/// What the page says of each commit: its subject, its verdict in words, and what became possible
/// and no longer possible.
const STEPS: &str = "[...document.querySelectorAll('.steps > li')].map((li) => {
    const of = (title) => {
        const head = [...li.querySelectorAll('.direction')].find((p) => p.textContent === title);
        return head ? [...head.nextElementSibling.children].map((e) => (e.querySelector('.witness') ?? e).textContent) : [];
    };
    return { subject: li.querySelector('h3').textContent, verdict: li.querySelector('.meta > span').textContent,
        meta: li.querySelector('.meta').textContent, wider: of('became possible'), narrower: of('no longer possible'),
        undecided: of('could not be decided') };
})";

/// The first word of a verdict: `clean`, `widening`, `narrowing`, `mixed`.
fn word(step: &Value) -> &str {
    step["verdict"].as_str().unwrap().split([':', ' ']).next().unwrap()
}

/// CPU time of a command in seconds, its own processes included.
fn cpu(dir: &Path, args: &[&str]) -> f64 {
    let line = "t=$( { TIMEFORMAT='%U %S'; time \"$@\" >/dev/null 2>&1; } 2>&1 ); echo \"$t\"";
    let output = Command::new("bash")
        .args(["-c", line, "bash", env!("CARGO_BIN_EXE_polctl")])
        .args(args)
        .current_dir(dir)
        .output();
    let text = String::from_utf8(output.unwrap_or_else(|e| panic!("this test needs bash: {e}")).stdout).unwrap();
    text.split_whitespace().map(|n| n.replace(',', ".").parse::<f64>().unwrap()).sum()
}

#[test]
fn the_history_of_the_fleet_has_the_stated_verdict_for_each_commit() {
    let dir = tempfile::tempdir().unwrap();
    let repository = dir.path().join("fleet");
    // Twelve versions, and 488 commits that change no policy.
    fleet(&repository, 500);
    let seconds = cpu(&repository, &["report", "--html", "../page.html", "-C", "policy", "--range", "v1..HEAD"]);
    assert!(seconds < 10.0, "{seconds} s");
    let mut browser = Browser::start();
    browser.open(&dir.path().join("page.html"));
    assert_eq!(browser.complaints(), Vec::<String>::new());
    let steps = browser.eval(STEPS);
    let steps = steps.as_array().unwrap();
    let history: Value =
        serde_saphyr::from_str(&std::fs::read_to_string(root("fixtures/fleet/history.yaml")).unwrap()).unwrap();
    let stated = history["steps"].as_array().unwrap();
    assert_eq!((steps.len(), stated.len()), (11, 11), "commits that change no policy are not listed");
    for (step, stated) in steps.iter().zip(stated) {
        let name = format!("{} to {}", stated["from"], stated["to"]);
        let version = stated["to"].as_str().unwrap().trim_start_matches('v').to_owned();
        assert_eq!(step["subject"], format!("version {version} of the fleet"));
        assert_eq!(word(step), stated["verdict"], "{name}");
        for (shown, wanted) in [("wider", "widenings"), ("narrower", "narrowings")] {
            let shown: BTreeSet<&str> = step[shown].as_array().unwrap().iter().map(|w| w.as_str().unwrap()).collect();
            let wanted = stated[wanted].as_array().unwrap();
            assert_eq!(shown.len(), wanted.len(), "{name}: {shown:?}");
            for entry in wanted {
                let witness = entry["witness"].as_str().unwrap();
                // A change of the configuration is told with its message, which holds the witness.
                let told =
                    |text: &&&str| **text == witness || entry["surface"] == "configuration" && text.contains(witness);
                assert!(shown.iter().any(|text| told(&text)), "{name}: {witness} is not among {shown:?}");
            }
        }
        assert_eq!(step["undecided"], serde_json::json!([]), "{name}");
    }
    // The line says the same as the list.
    let bars = browser.eval("['rect.bad', 'rect.good'].map((s) => document.querySelectorAll(s).length).join()");
    let count = |words: &[&str]| steps.iter().filter(|step| words.contains(&word(step))).count();
    assert_eq!(bars, format!("{},{}", count(&["widening", "mixed"]), count(&["narrowing", "mixed"])));
    assert!(
        browser.eval("document.querySelector('#history > p').textContent").as_str().unwrap().contains("499 commits")
    );
}

/// A policy directory with one map of commands, below a repository.
fn write(dir: &Path, body: &str) {
    std::fs::create_dir_all(dir.join("policy")).unwrap();
    std::fs::write(dir.join("policy/polctl.yaml"), "polctl: v1\nset: demo\npolicies: [MAP.md]\n").unwrap();
    std::fs::write(dir.join("policy/MAP.md"), format!("---\npolctl: v1\nsurface: commands\n---\n## Tier 0\n\n{body}"))
        .unwrap();
}

fn commit(dir: &Path, subject: &str) {
    git(dir, &["add", "-A", "."]);
    git(dir, &["commit", "-q", "--allow-empty", "-m", subject]);
}

/// What the page of a range says of its commits, and polctl's exit code.
fn steps_of(dir: &Path, range: &str) -> (i32, Vec<Value>) {
    let (code, text) = polctl(dir, &["report", "--html", "page.html", "-C", "policy", "--range", range]);
    assert!(text.contains("written to"), "{text}");
    let mut browser = Browser::start();
    browser.open(&dir.join("page.html"));
    assert_eq!(browser.complaints(), Vec::<String>::new());
    std::fs::remove_file(dir.join("page.html")).unwrap();
    (code, browser.eval(STEPS).as_array().unwrap().clone())
}

#[test]
fn a_history_with_holes_hides_no_widening() {
    let dir = tempfile::tempdir().unwrap();
    let at = dir.path();
    git(at, &["init", "-q"]);
    commit(at, "before any policy");
    git(at, &["tag", "start"]);
    write(at, "- `git log --oneline`\n");
    commit(at, "first <b>policy</b>");
    git(at, &["tag", "first"]);
    write(at, "- `git log --oneline\n");
    commit(at, "broken");
    git(at, &["tag", "broken"]);
    std::fs::write(at.join("notes.txt"), "x").unwrap();
    commit(at, "something else");
    write(at, "- `git log **`\n");
    commit(at, "repaired, and wider");
    std::fs::remove_dir_all(at.join("policy")).unwrap();
    commit(at, "removed");
    write(at, "- `git {log,status} **`\n");
    commit(at, "back, and wider");
    write(at, "- `git log **`\n");
    commit(at, "as it was");
    let (code, steps) = steps_of(at, "start..HEAD");
    let words: Vec<&str> = steps.iter().map(word).collect();
    assert_eq!(words, ["first", "malformed,", "widening", "no", "widening", "narrowing"]);
    assert_eq!(code, 0, "every commit has a verdict");
    for (step, against) in [(2, "compared with"), (4, "compared with")] {
        assert!(steps[step]["meta"].as_str().unwrap().contains(against), "{}", steps[step]["meta"]);
    }
    assert_eq!(steps[2]["wider"], serde_json::json!(["git log"]));
    assert_eq!(steps[4]["wider"], serde_json::json!(["git status"]));
    assert!(steps[0]["meta"].as_str().unwrap().contains("\\u{202e}Maintainerb"), "{}", steps[0]["meta"]);
    // From a commit that cannot be read nothing can be compared: that is no pass.
    let (code, steps) = steps_of(at, "broken..HEAD");
    assert_eq!((code, word(&steps[0]), steps[0]["verdict"].as_str()), (3, "no", Some("no verdict")));
    // What a merge brings stands in one line.
    git(at, &["checkout", "-q", "-b", "side", "HEAD~1"]);
    write(at, "- `git {blame,log,status} **`\n");
    commit(at, "on the side");
    git(at, &["checkout", "-q", "main"]);
    git(at, &["merge", "-q", "--no-ff", "-X", "theirs", "-m", "merged", "side"]);
    let (_, steps) = steps_of(at, "HEAD^1..HEAD");
    assert_eq!((steps.len(), word(&steps[0])), (1, "widening"), "{steps:?}");
}

#[test]
fn a_range_that_is_none_is_wrong_usage() {
    let dir = tempfile::tempdir().unwrap();
    git(dir.path(), &["init", "-q"]);
    write(dir.path(), "- `git log **`\n");
    commit(dir.path(), "one");
    for (range, said) in [
        ("HEAD", "give two revisions"),
        ("..HEAD", "give two revisions"),
        ("HEAD...HEAD", "give two revisions"),
        ("nothing..HEAD", "no revision `nothing`"),
        ("--all..HEAD", "no revision `--all`"),
    ] {
        let range = format!("--range={range}");
        let (code, text) = polctl(dir.path(), &["report", "--html", "page.html", "-C", "policy", &range]);
        assert_eq!(code, 2, "{text}");
        assert!(text.contains(said), "{text}");
        assert!(!dir.path().join("page.html").exists());
    }
    let (code, text) = polctl(dir.path(), &["report", "--html", "no/such/page.html", "-C", "policy"]);
    assert_eq!((code, text.contains("cannot write")), (2, true), "{text}");
}

#[test]
fn a_shallow_clone_is_no_beginning() {
    let dir = tempfile::tempdir().unwrap();
    let full = dir.path().join("full");
    fleet(&full, 12);
    let url = format!("file://{}", full.display());
    git(dir.path(), &["clone", "-q", "--depth", "3", &url, "cut"]);
    let cut = dir.path().join("cut");
    let args = |range| ["report", "--html", "../page.html", "-C", "policy", "--range", range];
    let (code, text) = polctl(&cut, &args("HEAD~2..HEAD"));
    assert_eq!(code, 0, "what is here can be told: {text}");
    let (code, text) = polctl(&cut, &args("v1..HEAD"));
    assert_eq!((code, text.contains("shallow")), (2, true), "{text}");
}

#[test]
fn the_page_of_a_step_shows_witness_and_both_texts() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("page.html");
    let page = file.to_str().unwrap();
    let (code, text) =
        polctl(&root("."), &["report", "--html", page, "-C", "fixtures/fleet/v5", "--base", "./fixtures/fleet/v4"]);
    assert_eq!(code, 1, "{text}");
    assert!(text.starts_with("polctl report: Failed: 2 widenings, no narrowings; written to"), "{text}");
    let mut browser = Browser::start();
    browser.open(&file);
    assert_eq!(browser.complaints(), Vec::<String>::new());
    assert_eq!(browser.eval("document.querySelector('h1').innerText"), "Failed: 2 widenings, no narrowings");
    assert_eq!(browser.eval("document.querySelectorAll('article.finding.bad').length"), 2);
    let witnesses =
        browser.eval("[...document.querySelectorAll('article .witness')].map((e) => e.textContent).sort().join()");
    assert_eq!(witnesses, "docker logs token-broker,rm -R /etc/");
    let sides = browser.eval("[...document.querySelectorAll('article')].find((a) => a.textContent.includes('rm -R')).querySelector('.sides').innerText");
    let sides = sides.as_str().unwrap();
    for part in ["./fixtures/fleet/v4:CLAUDE_CMDS.md:544", "/etc/*", "now"] {
        assert!(sides.contains(part), "{part} is missing in {sides}");
    }
    assert_eq!(browser.eval("document.querySelector('article mark').textContent.length > 0"), true);
    let rules = browser.eval("document.querySelectorAll('#authority [data-row]').length");
    assert!(rules.as_u64().unwrap() > 250, "{rules}");
    // Rules that no example covers have a request that was decided.
    let open = browser.eval("document.querySelectorAll('#uncovered [data-row]').length").as_u64().unwrap();
    let with = browser
        .eval("document.querySelectorAll('#uncovered [data-row] .tier + code, #uncovered .examples code').length");
    assert!(open > 20 && with.as_u64().unwrap() * 10 > open * 9, "{with} of {open}");
    // The same question, the same bytes.
    let first = std::fs::read(&file).unwrap();
    polctl(&root("."), &["report", "--html", page, "-C", "fixtures/fleet/v5", "--base", "./fixtures/fleet/v4"]);
    assert_eq!(first, std::fs::read(&file).unwrap());
}

#[test]
fn malformed_policy_has_a_page_and_no_verdict() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "- `git log\n");
    let (code, text) = polctl(dir.path(), &["report", "--html", "page.html", "-C", "policy"]);
    assert_eq!(code, 2, "{text}");
    assert!(text.contains("No verdict: malformed input"), "{text}");
    assert!(std::fs::read_to_string(dir.path().join("page.html")).unwrap().contains("No verdict: malformed input"));
}

/// Everyday lines and their tiers: as reader, as builder, as operator. `4` is denied.
const EVERYDAY: &[(&str, [u8; 3])] = &[
    ("git status", [0, 0, 0]),
    ("git log --oneline -20", [0, 0, 0]),
    ("git -C /srv/agents/app diff main", [0, 0, 0]),
    ("git show HEAD~1 --stat", [0, 0, 0]),
    ("git blame -w src/main.rs", [0, 0, 0]),
    ("git branch --show-current", [0, 0, 0]),
    ("ls -la src && cat README.md", [0, 0, 0]),
    ("grep -rn TODO src | sort | uniq -c", [0, 0, 0]),
    ("rg -n 'fn main' src", [0, 0, 0]),
    ("find src -name '*.rs' -newer Cargo.toml", [0, 0, 0]),
    ("jq -r .version package.json", [0, 0, 0]),
    ("wc -l src/lib.rs; head -n 20 src/lib.rs", [0, 0, 0]),
    ("diff -u a.txt b.txt", [0, 0, 0]),
    ("du -sh target", [0, 0, 0]),
    ("ps aux", [0, 0, 0]),
    ("echo done", [0, 0, 0]),
    ("cat ~/.ssh/id_ed25519", [2, 2, 2]),
    ("cat .env", [2, 2, 2]),
    ("git log --output=/etc/cron.d/x", [2, 2, 2]),
    ("find . -name '*.o' -delete", [3, 3, 3]),
    ("git add -A", [2, 1, 1]),
    ("git commit -m 'fix the parser'", [2, 1, 1]),
    ("git switch -c fix/login", [2, 1, 1]),
    ("git fetch origin", [2, 1, 1]),
    ("cargo fmt", [2, 1, 1]),
    ("git status > /srv/agents/app/notes.txt", [2, 1, 1]),
    ("git status > /etc/motd", [2, 2, 2]),
    ("git commit --amend --no-edit", [2, 2, 2]),
    ("cargo test", [2, 2, 2]),
    ("npm install", [2, 2, 2]),
    ("python3 scripts/report.py", [2, 2, 2]),
    ("make test", [2, 2, 2]),
    ("git push origin main", [2, 2, 2]),
    ("curl -s https://docs.example.com/", [2, 2, 2]),
    ("git push -f origin main", [3, 3, 3]),
    ("git reset --hard HEAD~3", [3, 3, 3]),
    ("rm -rf build", [3, 3, 3]),
    ("git status; rm -rf build", [3, 3, 3]),
    ("rm -rf /", [4, 4, 4]),
    ("rm -rf ~", [4, 4, 4]),
    ("bash -c 'rm -rf /etc'", [4, 4, 4]),
    ("dd if=/dev/zero of=/dev/sda", [4, 4, 4]),
    ("mkfs.ext4 /dev/sdb1", [4, 4, 4]),
    ("shutdown -h now", [4, 4, 4]),
    ("docker run --privileged alpine", [4, 4, 4]),
    ("git push --mirror origin", [4, 4, 4]),
    ("echo x > CLAUDE_CMDS.md", [4, 4, 4]),
    ("curl --noproxy '*' https://docs.example.com/", [4, 4, 4]),
    ("systemctl status nginx", [2, 2, 0]),
    ("journalctl -u nginx -n 50 --no-pager", [2, 2, 0]),
    ("docker ps -a", [2, 2, 0]),
    ("docker restart web", [2, 2, 2]),
    ("docker system prune -af", [2, 2, 3]),
    ("kubectl delete pod web-0", [2, 2, 3]),
    ("kubectl delete ns shop", [2, 2, 4]),
    ("sudo systemctl reload nginx.service", [4, 4, 1]),
    ("sudo systemctl restart app.service", [4, 4, 2]),
    ("sudo systemctl restart sshd.service", [4, 4, 4]),
    ("sudo bash", [4, 4, 4]),
];

/// The everyday lines that a set decides otherwise than it should.
fn wrong(policy: &Path, profile: usize) -> Vec<String> {
    let mut map = SourceMap::new();
    let set = load(&DirTree::new(policy, None), &mut map, &mut Vec::new()).unwrap().unwrap();
    let compiled = compile(set, Vec::new());
    let (zones, trusted_dirs) = (compiled.set.config.zones.matcher(), &compiled.set.config.trusted_dirs);
    let cwd = Some("/srv/agents/app");
    let setting = Setting { trusted_dirs, zones: &zones, cwd, agent: "agent", host: "host", external: false };
    let mut decider = Decider::new(&compiled, &map);
    let mut out = Vec::new();
    for (line, tiers) in EVERYDAY {
        let tier = judge(&mut decider, Surface::Commands, line, &setting).unwrap().tier.unwrap_or(4);
        if tier != tiers[profile] {
            out.push(format!("{line}: {tier}"));
        }
    }
    out
}

#[test]
fn the_first_sets_are_green_and_decide_everyday_lines() {
    for (at, profile) in ["reader", "builder", "operator"].into_iter().enumerate() {
        let dir = tempfile::tempdir().unwrap();
        let (code, text) = polctl(dir.path(), &["init", "--profile", profile, "--dir", "new/policy"]);
        assert_eq!(code, 0, "{text}");
        let policy = dir.path().join("new/policy");
        let (code, text) = polctl(&policy, &["check", "--initial", "--deny", "warnings"]);
        assert_eq!((code, text.as_str()), (0, "polctl check: ok: no errors"), "{profile}");
        let wrong = wrong(&policy, at);
        assert!(wrong.is_empty(), "{profile}: {wrong:#?}");
        // Each rule shows what it is for.
        let (code, _) = polctl(&policy, &["report", "--html", "page.html"]);
        let page = std::fs::read_to_string(policy.join("page.html")).unwrap();
        assert_eq!(code, 0);
        assert!(page.contains("Passed: no errors"));
    }
}

#[test]
fn a_workspace_is_where_lines_may_write() {
    let dir = tempfile::tempdir().unwrap();
    let args = ["init", "--profile", "builder", "--workspace", "~/work", "--dir", "p", "--yes"];
    assert_eq!(polctl(dir.path(), &args).0, 0);
    for (cwd, tier) in [("/home/agent/work/app", 1), ("/srv/agents/app", 2)] {
        let (_, text) = polctl(dir.path(), &["explain", "--json", "-p", "p", "--cwd", cwd, "git status > notes.txt"]);
        let answer: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(answer["lines"][0]["tier"], tier, "{cwd}: {text}");
    }
    let (code, text) = polctl(dir.path(), &["init", "--profile", "builder", "--dir", "q", "--workspace", "/"]);
    assert_eq!((code, dir.path().join("q").exists()), (2, false), "{text}");
    assert_eq!(polctl(dir.path(), &["init", "--yes", "--dir", "q", "--workspace", "/w"]).0, 2, "readers write nowhere");
}

#[test]
fn init_never_overwrites_and_never_guesses() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("proxy.md"), "mine").unwrap();
    let (code, text) = polctl(dir.path(), &["init", "--profile", "builder"]);
    assert_eq!(code, 2, "{text}");
    assert!(text.contains("`proxy.md` exists already") && text.contains("Nothing was written"), "{text}");
    let names: Vec<_> = std::fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(names, ["proxy.md"]);
    assert_eq!(std::fs::read_to_string(dir.path().join("proxy.md")).unwrap(), "mine");
    // A link to nowhere is something, too.
    let other = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink("/nowhere", other.path().join("polctl.yaml")).unwrap();
    assert_eq!(polctl(other.path(), &["init", "--yes"]).0, 2);
    // Nobody is there to ask.
    let empty = tempfile::tempdir().unwrap();
    let (code, text) = polctl(empty.path(), &["init"]);
    assert_eq!((code, text.contains("nobody is there to ask")), (2, true), "{text}");
    assert_eq!(std::fs::read_dir(empty.path()).unwrap().count(), 0);
    assert_eq!(polctl(empty.path(), &["init", "--yes"]).0, 0);
    assert!(empty.path().join("CLAUDE_CMDS.md").is_file() && !empty.path().join("SUDO.md").exists());
    assert_eq!(polctl(empty.path(), &["init", "--yes"]).0, 2, "the second time");
}

/// Answers for `polctl init` on a terminal; what it showed and its exit code.
fn answered(dir: &Path, answers: &str) -> (i32, String) {
    const TERMINAL: &str = "
import os, pty, sys
pid, terminal = pty.fork()
if pid == 0:
    os.execv(sys.argv[1], [sys.argv[1], 'init'])
shown = b''
answers = sys.argv[2].split(',')
while True:
    try:
        some = os.read(terminal, 4096)
    except OSError:
        break
    if not some:
        break
    shown += some
    if answers and shown.rstrip().endswith(b']:'):
        os.write(terminal, (answers.pop(0) + '\\n').encode())
        shown += b' '
sys.stdout.write(shown.decode())
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
";
    let output = Command::new("python3")
        .args(["-c", TERMINAL, env!("CARGO_BIN_EXE_polctl"), answers])
        .current_dir(dir)
        .output()
        .unwrap_or_else(|e| panic!("this test needs python3: {e}"));
    (output.status.code().unwrap(), String::from_utf8(output.stdout).unwrap())
}

#[test]
fn on_a_terminal_init_asks_and_takes_no_for_an_answer() {
    let dir = tempfile::tempdir().unwrap();
    for (answers, code) in [("builder,~/work,no", 2), ("everything", 2), ("builder,/,yes", 2)] {
        let (exit, shown) = answered(dir.path(), answers);
        assert_eq!((exit, std::fs::read_dir(dir.path()).unwrap().count()), (code, 0), "{answers}: {shown}");
    }
    let (exit, shown) = answered(dir.path(), "operator,~/work,");
    assert_eq!(exit, 0, "{shown}");
    for part in [
        "reader    look at code",
        "Where do agents work?",
        "Write CLAUDE_CMDS.md, SUDO.md, proxy.md, polctl.yaml into",
        "Next:",
    ] {
        assert!(shown.contains(part), "{part} is missing in {shown}");
    }
    assert!(std::fs::read_to_string(dir.path().join("polctl.yaml")).unwrap().contains("\"~/work/**\""));
}
