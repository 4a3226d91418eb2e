//! The way of a change through continuous integration, with the repository's own files for it:
//! `action.yml` as GitHub's runner carries it out, and `.woodpecker.yml` as Woodpecker does.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::panic,
    reason = "a test that cannot go on fails"
)]

mod ci_common;

use std::path::{Path, PathBuf};
use std::process::Command;

use ci_common::{Done, Env, Job, git, woodpecker};
use serde_json::{Value, json};

const CONFIG: &str = "polctl: v1\nset: demo\npolicies: [MAP.md]\n";
const HEAD: &str = "---\npolctl: v1\nsurface: commands\n---\n# What agents may run\n\n## Tier 0: look\n\n";
const OLD: &str = "- `ls **`\n  - unless: `-R`\n- `git log **`\n";
/// `unless` is lost; the finding stands in line 9.
const WIDE: &str = "- `ls **`\n- `git log **`\n";
const NARROW: &str = "- `ls **`\n  - unless: `-R`\n- `git log *`\n";

/// A bare remote, and an author's clone of it.
struct Forge {
    dir: tempfile::TempDir,
}

impl Forge {
    fn new() -> Forge {
        let forge = Forge { dir: tempfile::tempdir().unwrap() };
        git(forge.dir.path(), &["init", "--quiet", "--bare", "origin.git"]);
        git(forge.dir.path(), &["clone", "--quiet", "origin.git", "author"]);
        forge.put("policy/polctl.yaml", CONFIG);
        forge.put("README.md", "A repository.\n");
        forge
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn author(&self) -> PathBuf {
        self.path("author")
    }

    fn put(&self, name: &str, text: &str) {
        let path = self.author().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn map(&self, body: &str) {
        self.put("policy/MAP.md", &format!("{HEAD}{body}"));
    }

    /// Commits everything on a branch and pushes it; returns the commit.
    fn push(&self, branch: &str) -> String {
        let author = self.author();
        git(&author, &["checkout", "--quiet", "-B", branch]);
        git(&author, &["add", "--all"]);
        git(&author, &["commit", "--quiet", "--allow-empty", "-m", "change"]);
        git(&author, &["push", "--quiet", "--force", "origin", branch]);
        git(&author, &["rev-parse", "HEAD"])
    }

    /// What the forge makes of a pull request: a merge of both heads under its own reference.
    fn merge(&self, base: &str, head: &str) -> String {
        let author = self.author();
        let branch = git(&author, &["rev-parse", "--abbrev-ref", "HEAD"]);
        git(&author, &["checkout", "--quiet", base]);
        git(&author, &["merge", "--quiet", "--no-ff", "-m", "merge", head]);
        let merge = git(&author, &["rev-parse", "HEAD"]);
        git(&author, &["push", "--quiet", "--force", "origin", &format!("{merge}:refs/pull/1/merge")]);
        git(&author, &["checkout", "--quiet", &branch]);
        merge
    }

    /// A checkout of one commit with no history, as `actions/checkout` makes it.
    fn checkout(&self, commit: &str) -> PathBuf {
        let workspace = self.path("workspace");
        let _ = std::fs::remove_dir_all(&workspace);
        std::fs::create_dir(&workspace).unwrap();
        git(&workspace, &["init", "--quiet"]);
        let remote = format!("file://{}", self.path("origin.git").display());
        git(&workspace, &["remote", "add", "origin", &remote]);
        git(&workspace, &["fetch", "--quiet", "--no-tags", "--depth=1", "origin", commit]);
        git(&workspace, &["checkout", "--quiet", "--detach", commit]);
        workspace
    }

    /// A job on a fresh checkout of `commit`.
    fn job(&self, event_name: &str, event: Value, commit: &str) -> Job {
        let temp = self.path("temp");
        let _ = std::fs::remove_dir_all(&temp);
        std::fs::create_dir(&temp).unwrap();
        Job {
            workspace: self.checkout(commit),
            temp,
            action: PathBuf::from(env!("CARGO_MANIFEST_DIR")),
            event_name: event_name.into(),
            event,
            sha: commit.into(),
            with: with(&[("dir", "policy"), ("binary", env!("CARGO_BIN_EXE_polctl"))]),
            env: Env::new(),
        }
    }

    /// The job of a pull request, on the forge's merge commit.
    fn pull_request(&self, base: &str, head: &str) -> Job {
        let event = json!({ "pull_request": { "base": { "sha": base }, "head": { "sha": head } } });
        self.job("pull_request", event, &self.merge(base, head))
    }

    fn push_event(&self, before: &str, commit: &str) -> Job {
        let event = json!({ "before": before, "after": commit, "repository": { "default_branch": "main" } });
        self.job("push", event, commit)
    }

    fn polctl(&self, args: &[&str]) -> (i32, String) {
        let output = Command::new(env!("CARGO_BIN_EXE_polctl")).args(args).current_dir(self.author()).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap();
        (output.status.code().unwrap(), text)
    }

    /// Makes a key and pins it for a role in `trust/demo.json`.
    fn key(&self, name: &str, role: &str) {
        let (code, printed) = self.polctl(&["keys", "generate", &format!("../{name}.pem")]);
        assert_eq!(code, 0, "{printed}");
        let public = printed.split_whitespace().find(|word| word.len() == 44).unwrap();
        std::fs::create_dir_all(self.author().join("trust")).unwrap();
        let pin = ["keys", "pin", "--trust", "trust/demo.json", "--set", "demo", "--signer", name, "--role", role];
        let (code, printed) = self.polctl(&[&pin[..], &["--public", public]].concat());
        assert_eq!(code, 0, "{printed}");
    }
}

fn with(pairs: &[(&str, &str)]) -> Env {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn set(job: &mut Job, pairs: &[(&str, &str)]) {
    job.with.extend(with(pairs));
}

/// A green job says so in every way.
fn green(done: &Done) {
    assert_eq!(done.code, 0, "{done:#?}");
    assert_eq!(done.outputs["verdict"], "ok");
    assert!(done.log().of("error").is_empty());
    assert!(done.summary.starts_with("### ✅"), "{}", done.summary);
}

/// A job that ended without a verdict says why, in an annotation.
fn no_verdict(done: &Done, why: &str) {
    assert_eq!(done.code, 2, "{done:#?}");
    assert!(done.log().of("error").iter().any(|a| a.message.contains(why)), "{why}: {done:#?}");
    assert!(done.outputs["verdict"] != "ok", "{done:#?}");
}

/// A red job for the lost option of the map marks its line.
fn red(done: &Done) {
    assert_eq!(done.code, 1, "{done:#?}");
    assert_eq!((done.outputs["verdict"].as_str(), done.outputs["widenings"].as_str()), ("findings", "1"));
    let log = done.log();
    let [error] = log.of("error")[..] else { panic!("{done:#?}") };
    assert_eq!((error.properties["file"].as_str(), error.number("line")), ("policy/MAP.md", 9));
    assert!(error.message.starts_with("`ls -R` goes from tier 2 to tier 0"), "{error:?}");
    assert!(error.message.ends_with("https://forge.example/tools/polctl/blob/v0/docs/rules.md#widening"), "{error:?}");
    assert!(done.summary.starts_with("### ❌ polctl check: failed"), "{}", done.summary);
    assert!(done.summary.contains("`ls -R`"), "{}", done.summary);
    let sarif: Value = serde_json::from_str(&std::fs::read_to_string(&done.outputs["sarif"]).unwrap()).unwrap();
    let region = &sarif["runs"][0]["results"][0]["locations"][0]["physicalLocation"];
    assert_eq!(
        (&region["region"]["startLine"], &region["artifactLocation"]["uri"]),
        (&9.into(), &"policy/MAP.md".into())
    );
}

#[test]
fn a_pull_request_on_github_from_adoption_to_signature() {
    let forge = Forge::new();
    // Adoption: no base, everything counts as reviewed; without saying so there is no verdict.
    forge.key("alice", "approve");
    forge.key("release", "release");
    forge.map(OLD);
    let main = forge.push("main");
    let mut job = forge.push_event(&"0".repeat(40), &main);
    set(&mut job, &[("initial", "true")]);
    green(&job.run());

    // The change: an option is lost.
    forge.map(WIDE);
    let wide = forge.push("change");
    red(&forge.pull_request(&main, &wide).run());
    // As a change from a fork: the same payload, with nothing of the fork but its commit.
    let mut job = forge.pull_request(&main, &wide);
    job.event["pull_request"]["head"]["repo"] = json!({ "fork": true, "full_name": "stranger/policy" });
    red(&job.run());
    // Checked out as the author's own commit, as some workflows do.
    let event = json!({ "pull_request": { "base": { "sha": main }, "head": { "sha": wide } } });
    let mut job = forge.job("pull_request", event, &wide);
    job.sha = forge.merge(&main, &wide);
    red(&job.run());

    // Narrowed: green.
    forge.map(NARROW);
    let narrow = forge.push("change");
    let done = forge.pull_request(&main, &narrow).run();
    green(&done);
    assert_eq!(done.outputs["widenings"], "0");
    assert!(!done.log().of("notice").is_empty(), "what is no longer permitted is told");

    // Wanted after all, and approved by somebody whom the base trusts.
    forge.map(WIDE);
    let common = ["-C", "policy", "--base", "origin/main"];
    let approve = ["--trust", "trust/demo.json", "--approver", "alice", "--key-file", "../alice.pem"];
    let more = ["--reason", "logs are written to files by hand", "-o", "approvals/one.json"];
    std::fs::create_dir_all(forge.author().join("approvals")).unwrap();
    let (code, printed) = forge.polctl(&[&["approve"][..], &common, &approve, &more].concat());
    assert_eq!(code, 0, "{printed}");
    let approved = forge.push("change");
    red(&forge.pull_request(&main, &approved).run());
    let inputs = [("approvals", "approvals/one.json\n"), ("approval-trust", "trust/demo.json")];
    let mut job = forge.pull_request(&main, &approved);
    set(&mut job, &inputs);
    let done = job.run();
    green(&done);
    assert_eq!(done.outputs["widenings"], "1");
    assert!(done.summary.contains("as approved"), "{}", done.summary);

    // In the merge queue, and then pushed.
    let event = json!({ "merge_group": { "base_sha": main, "head_sha": approved } });
    let mut job = forge.job("merge_group", event, &approved);
    red(&job.run());
    set(&mut job, &inputs);
    green(&job.run());
    let landed = forge.push("main");
    let mut job = forge.push_event(&main, &landed);
    set(&mut job, &inputs);
    green(&job.run());

    // Signed with the approval, and verified.
    let key = ["--trust", "trust/demo.json", "--key-file", "../release.pem"];
    let base = ["-C", "policy", "--base", &main];
    let (code, printed) = forge.polctl(&[&["sign"][..], &base, &key].concat());
    assert_eq!(code, 1, "a widening that nobody approved is not signed: {printed}");
    let approval = ["--approval", "approvals/one.json", "--approval-trust", "trust/demo.json"];
    let (code, printed) = forge.polctl(&[&["sign"][..], &base, &key, &approval].concat());
    assert_eq!(code, 0, "{printed}");
    let verify = ["verify", "-C", "policy", "--trust", "trust/demo.json", "--state", "../state.json", "--enforce"];
    let (code, printed) = forge.polctl(&verify);
    assert_eq!(code, 0, "{printed}");
    forge.map(OLD);
    assert_eq!(forge.polctl(&verify).0, 4);
}

#[test]
fn the_base_is_never_of_the_authors_choosing() {
    let forge = Forge::new();
    forge.map(OLD);
    let main = forge.push("main");
    forge.map(WIDE);
    let wide = forge.push("evil");
    // The author's own merge commit, whose first parent has the widening already.
    let author = forge.author();
    git(&author, &["checkout", "--quiet", "--detach", &wide]);
    git(&author, &["merge", "--quiet", "-s", "ours", "--allow-unrelated-histories", "-m", "merge", &main]);
    let extra = git(&author, &["commit-tree", "HEAD^{tree}", "-p", &wide, "-p", &main, "-m", "mine"]);
    git(&author, &["push", "--quiet", "--force", "origin", &format!("{extra}:refs/heads/evil")]);
    let event = json!({ "pull_request": { "base": { "sha": main }, "head": { "sha": extra } } });
    let mut job = forge.job("pull_request", event.clone(), &extra);
    job.sha = "f".repeat(40);
    red(&job.run());

    // The base itself, which is green whatever the change is.
    no_verdict(
        &forge.job("pull_request_target", event, &main).run(),
        "run on pull_request, not on pull_request_target",
    );
    let event = json!({ "merge_group": { "base_sha": main } });
    no_verdict(&forge.job("merge_group", event, &main).run(), "is the base of the merge group");
}

#[test]
fn other_events_compare_with_the_default_branch_or_ask() {
    let forge = Forge::new();
    forge.map(OLD);
    let main = forge.push("main");
    forge.map(WIDE);
    let wide = forge.push("topic");
    // A new branch and a tag have nothing before them.
    let zeros = "0".repeat(40);
    red(&forge.push_event(&zeros, &wide).run());
    green(&forge.push_event(&zeros, &main).run());
    red(&forge.push_event(&main, &wide).run());
    for event in ["workflow_dispatch", "schedule"] {
        no_verdict(&forge.job(event, json!({}), &wide).run(), "has no base: give the input base");
        let mut job = forge.job(event, json!({}), &wide);
        set(&mut job, &[("base", "origin/main")]);
        red(&job.run());
    }
    let gone = "1".repeat(40);
    no_verdict(&forge.push_event(&gone, &wide).run(), "cannot be fetched");
    let mut job = forge.job("push", json!({}), &wide);
    set(&mut job, &[("base", "origin/no-such")]);
    no_verdict(&job.run(), "no-such cannot be fetched");
    no_verdict(&forge.job("push", json!({}), &wide).run(), "cannot be fetched");
    // A whole clone stays whole.
    let mut job = forge.push_event(&main, &wide);
    git(forge.dir.path(), &["clone", "--quiet", "origin.git", "whole"]);
    job.workspace = forge.path("whole");
    git(&job.workspace, &["checkout", "--quiet", &wide]);
    red(&job.run());
    assert_eq!(git(&job.workspace, &["rev-parse", "--is-shallow-repository"]), "false");
}

#[test]
fn malformed_policy_and_wrong_inputs_are_no_pass() {
    let forge = Forge::new();
    forge.map(OLD);
    let main = forge.push("main");
    forge.map("- `git log **` but only on Sundays\n");
    let change = forge.push("topic");
    let done = forge.pull_request(&main, &change).run();
    assert_eq!((done.code, done.outputs["verdict"].as_str()), (2, "malformed"), "{done:#?}");
    assert_eq!(done.log().of("error")[0].number("line"), 9);
    for input in [("dir", "no such; touch x"), ("deny", "$(touch x)"), ("binary", "/no/such"), ("sarif", "no/such/dir")]
    {
        forge.map(OLD);
        let same = forge.push("same");
        let mut job = forge.pull_request(&main, &same);
        set(&mut job, &[input]);
        let done = job.run();
        assert!(done.code != 0 && done.outputs["verdict"] != "ok", "{input:?}: {done:#?}");
        assert!(!done.log().of("error").is_empty() || !done.stderr.is_empty(), "{input:?}");
        assert!(!job.workspace.join("x").exists());
    }
}

/// A stand-in for a program, which writes down where and how it was called.
#[cfg(unix)]
fn stand_in(dir: &Path, name: &str, script: &str) {
    use std::os::unix::fs::PermissionsExt as _;
    let path = dir.join(name);
    std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

#[cfg(unix)]
fn path_with(dir: &Path) -> String {
    format!("{}:{}", dir.display(), std::env::var("PATH").unwrap())
}

/// Without a given executable the action builds its own sources, away from the workspace, where
/// a change could bring a configuration of cargo.
#[cfg(unix)]
#[test]
fn the_action_builds_itself_and_not_in_the_workspace() {
    let forge = Forge::new();
    forge.map(OLD);
    forge.put(".cargo/config.toml", "[build]\nrustc-wrapper = \"./evil\"\n");
    let main = forge.push("main");
    forge.map(WIDE);
    let wide = forge.push("change");
    let bin = forge.path("bin");
    std::fs::create_dir(&bin).unwrap();
    let log = forge.path("cargo.log");
    let script = format!(
        "echo \"$PWD $*\" >>'{}'\nfor last; do :; done\nmkdir -p \"$last/release\"\ncp '{}' \"$last/release/polctl\"",
        log.display(),
        env!("CARGO_BIN_EXE_polctl")
    );
    stand_in(&bin, "cargo", &script);
    stand_in(&bin, "rustc", "echo rustc 1.92.0");
    let mut job = forge.pull_request(&main, &wide);
    set(&mut job, &[("binary", "")]);
    job.env.insert("PATH".into(), path_with(&bin));
    red(&job.run());
    let called = std::fs::read_to_string(&log).unwrap();
    let root = env!("CARGO_MANIFEST_DIR");
    let target = job.temp.join("polctl-build");
    let expected = format!("{root} build --release --locked --bin polctl --target-dir {}\n", target.display());
    assert_eq!(called, expected);
    // The cache has it the next time.
    red(&job.run());
    assert_eq!(std::fs::read_to_string(&log).unwrap(), expected);
    // A runner without Rust says what to do.
    let mut job = forge.pull_request(&main, &wide);
    set(&mut job, &[("binary", "")]);
    let tools = forge.path("tools");
    std::fs::create_dir(&tools).unwrap();
    for tool in ["bash", "git", "sed", "wc", "rm", "mkdir"] {
        let found =
            std::env::split_paths(&std::env::var_os("PATH").unwrap()).map(|dir| dir.join(tool)).find(|p| p.exists());
        std::os::unix::fs::symlink(found.unwrap(), tools.join(tool)).unwrap();
    }
    job.env.insert("PATH".into(), tools.display().to_string());
    no_verdict(&job.run(), "there is no cargo on this runner");
}

/// A checkout of this repository as far as `.woodpecker.yml` needs it.
#[cfg(unix)]
struct Woodpecker {
    forge: Forge,
    bin: PathBuf,
}

#[cfg(unix)]
impl Woodpecker {
    fn new() -> Woodpecker {
        let forge = Forge::new();
        let bin = forge.path("bin");
        std::fs::create_dir(&bin).unwrap();
        let build = format!("mkdir -p target/debug && cp '{}' target/debug/polctl", env!("CARGO_BIN_EXE_polctl"));
        stand_in(&bin, "cargo", &build);
        stand_in(&bin, "apt-get", ":");
        stand_in(&bin, "rustup", ":");
        forge.put("scripts/test", "");
        stand_in(&forge.author().join("scripts"), "test", "echo all tests passed");
        forge.put(".gitignore", "target\n");
        Woodpecker { forge, bin }
    }

    /// The fleet's policy as one version of its history has it.
    fn fleet(&self, version: &str) {
        let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/fleet").join(version);
        for entry in std::fs::read_dir(from).unwrap() {
            let entry = entry.unwrap();
            let name = format!("fixtures/fleet/v12/{}", entry.file_name().display());
            self.forge.put(&name, &std::fs::read_to_string(entry.path()).unwrap());
        }
    }

    /// A small policy in its place, which is judged sooner.
    fn small(&self, body: &str) {
        self.forge.put("fixtures/fleet/v12/polctl.yaml", CONFIG);
        self.forge.put("fixtures/fleet/v12/MAP.md", &format!("{HEAD}{body}"));
    }

    /// Runs the workflow on a checkout of `commit` that has no other branch.
    fn run(&self, event: &str, commit: &str, variables: &[(&str, &str)]) -> (i32, String) {
        let workspace = self.forge.checkout(commit);
        let mut env =
            with(&[("CI_PIPELINE_EVENT", event), ("CI_REPO_DEFAULT_BRANCH", "main"), ("CI_COMMIT_SHA", commit)]);
        env.extend(with(variables));
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(".woodpecker.yml");
        woodpecker(&file, &workspace, &env, &path_with(&self.bin))
    }
}

#[cfg(unix)]
#[test]
fn woodpecker_checks_this_repository_with_itself() {
    let ci = Woodpecker::new();
    ci.fleet("v4");
    ci.forge.push("main");
    ci.fleet("v5");
    let wide = ci.forge.push("change");
    let pull =
        [("CI_COMMIT_TARGET_BRANCH", "main"), ("CI_COMMIT_SOURCE_BRANCH", "change"), ("CI_COMMIT_BRANCH", "main")];
    let (code, printed) = ci.run("pull_request", &wide, &pull);
    assert_eq!(code, 1, "{printed}");
    assert!(printed.contains("all tests passed") && printed.contains("`rm -R /etc/` goes from denied to tier 3"));
    let map = std::fs::read_to_string(ci.forge.path("workspace/fixtures/fleet/v12/CLAUDE_CMDS.md")).unwrap();
    let id = map.lines().position(|l| l == "  - id: rm-root").unwrap();
    let rule = map.lines().take(id).collect::<Vec<_>>().iter().rposition(|l| l.starts_with("- `rm **`")).unwrap() + 1;
    assert!(printed.contains(&format!("CLAUDE_CMDS.md:{rule}:")), "{printed}");
}

#[cfg(unix)]
#[test]
fn woodpecker_knows_the_base_of_each_event() {
    let ci = Woodpecker::new();
    ci.small(OLD);
    let main = ci.forge.push("main");
    ci.small(WIDE);
    let wide = ci.forge.push("change");
    ci.small(NARROW);
    let narrow = ci.forge.push("other");
    let pull =
        [("CI_COMMIT_TARGET_BRANCH", "main"), ("CI_COMMIT_SOURCE_BRANCH", "change"), ("CI_COMMIT_BRANCH", "main")];
    let (code, printed) = ci.run("pull_request", &wide, &pull);
    assert_eq!(code, 1, "{printed}");
    assert!(printed.contains("MAP.md:9:"), "{printed}");
    let (code, printed) = ci.run("pull_request", &narrow, &pull);
    assert_eq!(code, 0, "{printed}");
    assert!(printed.contains("polctl check: ok: no widenings, 1 narrowing"), "{printed}");

    // A push to the default branch is compared with what was there before.
    let push = [("CI_COMMIT_BRANCH", "main"), ("CI_PREV_COMMIT_SHA", main.as_str())];
    assert_eq!(ci.run("push", &narrow, &push).0, 0);
    assert_eq!(ci.run("push", &wide, &push).0, 1);
    // A new branch has nothing before it, and a tag neither.
    let (code, printed) = ci.run("push", &wide, &[("CI_COMMIT_BRANCH", "change"), ("CI_PREV_COMMIT_SHA", "")]);
    assert_eq!(code, 1, "{printed}");
    assert_eq!(ci.run("tag", &main, &[("CI_COMMIT_TAG", "v1")]).0, 0);
    assert_eq!(ci.run("tag", &wide, &[("CI_COMMIT_TAG", "v1")]).0, 1);
    // Without the variables there is no verdict.
    for event in ["pull_request", "push", "tag", ""] {
        let (code, printed) = ci.run(event, &wide, &[("CI_REPO_DEFAULT_BRANCH", ""), ("CI_COMMIT_TARGET_BRANCH", "")]);
        assert!(code > 1, "{event}: {code} {printed}");
    }
}
