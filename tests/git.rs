//! `polctl check --base` in real git repositories.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::panic,
    reason = "a test that cannot go on fails"
)]

use std::path::Path;
use std::process::{Command, Output};

const MAP: &str = "---\npolctl: v1\nsurface: commands\n---\n# Map\n\n## Tier 0\n\n- `git log **`\n  - unless: `--all`\n\n## Tier 4\n\n- `rm **`\n  - with: `-r`\n";

fn git(dir: &Path, args: &[&str]) -> String {
    let output = Command::new("git")
        .args(["-c", "user.name=test", "-c", "user.email=test@example.com", "-c", "commit.gpgsign=false"])
        .args(["-c", "init.defaultBranch=main", "-c", "protocol.file.allow=always"])
        .args(args)
        .current_dir(dir)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .output()
        .unwrap_or_else(|e| panic!("these tests need git; install it ({e})"));
    assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn commit(dir: &Path, map: &str) {
    std::fs::write(dir.join("polctl.yaml"), "polctl: v1\nset: demo\npolicies: [MAP.md]\n").unwrap();
    std::fs::write(dir.join("MAP.md"), map).unwrap();
    git(dir, &["add", "-A", "."]);
    git(dir, &["commit", "-q", "--allow-empty", "-m", "policy"]);
}

/// A repository with the map in two versions.
fn repository(old: &str, new: &str) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    git(dir.path(), &["init", "-q"]);
    commit(dir.path(), old);
    commit(dir.path(), new);
    dir
}

fn polctl(dir: &Path, args: &[&str]) -> (Option<i32>, String) {
    let Output { status, stdout, stderr } =
        Command::new(env!("CARGO_BIN_EXE_polctl")).args(args).current_dir(dir).output().unwrap();
    let text = String::from_utf8(stdout).unwrap() + &String::from_utf8(stderr).unwrap();
    // Lines are wrapped for reading; tests look for sentences.
    (status.code(), text.split_whitespace().collect::<Vec<_>>().join(" "))
}

fn wider() -> String {
    MAP.replace("  - unless: `--all`\n", "")
}

#[test]
fn a_widening_is_red_and_a_narrowing_green() {
    let dir = repository(MAP, &wider());
    let (code, text) = polctl(dir.path(), &["check", "--base", "HEAD~1"]);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("`git log --all` goes from tier 2 to tier 0"), "{text}");
    assert!(text.contains("1 widening, no narrowings"), "{text}");

    let dir = repository(&wider(), MAP);
    let (code, text) = polctl(dir.path(), &["check", "--base", "HEAD~1"]);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("`git log --all` goes from tier 0 to tier 2"), "{text}");
}

#[test]
fn what_is_not_committed_counts() {
    let dir = repository(MAP, MAP);
    std::fs::write(dir.path().join("MAP.md"), wider()).unwrap();
    assert_eq!(polctl(dir.path(), &["check", "--base", "HEAD"]).0, Some(1));
    assert_eq!(polctl(dir.path(), &["diff", "HEAD~1", "HEAD"]).0, Some(0));
}

#[test]
fn without_a_base_there_is_no_verdict() {
    let dir = repository(MAP, MAP);
    let (code, text) = polctl(dir.path(), &["check"]);
    assert_eq!(code, Some(2), "{text}");
    assert!(text.contains("--initial"), "{text}");
    assert_eq!(polctl(dir.path(), &["check", "--initial"]).0, Some(0));
    assert_eq!(polctl(dir.path(), &["check", "--initial", "--base", "HEAD"]).0, Some(2));
}

#[test]
fn a_shallow_clone_without_the_base_says_how_to_fetch_it() {
    let dir = repository(MAP, &wider());
    let clone = tempfile::tempdir().unwrap();
    let url = format!("file://{}", dir.path().display());
    git(clone.path(), &["clone", "-q", "--depth", "1", &url, "."]);
    let (code, text) = polctl(clone.path(), &["check", "--base", "HEAD~1"]);
    assert_eq!(code, Some(2), "{text}");
    assert!(text.contains("this clone is shallow") && text.contains("fetch-depth: 0"), "{text}");
    git(clone.path(), &["fetch", "-q", "--unshallow"]);
    assert_eq!(polctl(clone.path(), &["check", "--base", "HEAD~1"]).0, Some(1));
}

#[test]
fn a_base_that_is_not_there_is_no_pass() {
    let dir = repository(MAP, MAP);
    for base in ["nowhere", "HEAD~9", "--output=x", "", "HEAD:MAP.md", "./gone", ".", " "] {
        let base = format!("--base={base}");
        assert_eq!(polctl(dir.path(), &["check", &base]).0, Some(2), "{base}");
    }
    // The base holds no policy: that is an initial adoption, and must be said.
    let dir = tempfile::tempdir().unwrap();
    git(dir.path(), &["init", "-q"]);
    git(dir.path(), &["commit", "-q", "--allow-empty", "-m", "start"]);
    commit(dir.path(), MAP);
    let (code, text) = polctl(dir.path(), &["check", "--base", "HEAD~1"]);
    assert_eq!(code, Some(2), "{text}");
    assert!(text.contains("polctl.yaml"), "{text}");
}

#[test]
fn outside_a_repository_the_message_says_so() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("polctl.yaml"), "polctl: v1\nset: demo\npolicies: [MAP.md]\n").unwrap();
    std::fs::write(dir.path().join("MAP.md"), MAP).unwrap();
    let (code, text) = polctl(dir.path(), &["check", "--base", "HEAD"]);
    assert_eq!(code, Some(2), "{text}");
    assert!(text.contains("must be in a git checkout"), "{text}");
}

#[test]
fn a_policy_in_a_sub_directory_is_found_at_the_base() {
    let dir = tempfile::tempdir().unwrap();
    git(dir.path(), &["init", "-q"]);
    let policy = dir.path().join("ops/policy [x]");
    std::fs::create_dir_all(&policy).unwrap();
    commit(&policy, MAP);
    commit(&policy, &wider());
    assert_eq!(polctl(&policy, &["check", "--base", "HEAD~1"]).0, Some(1));
    assert_eq!(polctl(dir.path(), &["check", "--dir", "ops/policy [x]", "--base", "HEAD~1"]).0, Some(1));
}

/// A replacement object would show another base than the one that the revision names.
#[test]
fn replacement_objects_do_not_change_the_base() {
    let dir = repository(MAP, &wider());
    let old = git(dir.path(), &["rev-parse", "HEAD~1:MAP.md"]);
    let new = git(dir.path(), &["rev-parse", "HEAD:MAP.md"]);
    git(dir.path(), &["replace", old.trim(), new.trim()]);
    assert_eq!(polctl(dir.path(), &["check", "--base", "HEAD~1"]).0, Some(1));
}

#[cfg(unix)]
#[test]
fn a_link_at_the_base_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    git(dir.path(), &["init", "-q"]);
    commit(dir.path(), MAP);
    std::fs::rename(dir.path().join("MAP.md"), dir.path().join("real.md")).unwrap();
    std::os::unix::fs::symlink("real.md", dir.path().join("MAP.md")).unwrap();
    git(dir.path(), &["add", "-A", "."]);
    git(dir.path(), &["commit", "-q", "-m", "link"]);
    std::fs::remove_file(dir.path().join("MAP.md")).unwrap();
    std::fs::write(dir.path().join("MAP.md"), MAP).unwrap();
    let (code, text) = polctl(dir.path(), &["check", "--base", "HEAD"]);
    assert_eq!(code, Some(2), "{text}");
    assert!(text.contains("not a regular file"), "{text}");
}

/// CI containers check out as another user. git refuses such repositories unless told.
#[cfg(unix)]
#[test]
fn a_checkout_of_another_owner_is_read() {
    let dir = repository(MAP, &wider());
    let status = Command::new("chown").args(["-R", "65534:65534"]).arg(dir.path()).status();
    if !status.is_ok_and(|s| s.success()) {
        // Only root can give files away; git's own switch asks the same question.
        let output = Command::new(env!("CARGO_BIN_EXE_polctl"))
            .args(["check", "--base", "HEAD~1"])
            .current_dir(dir.path())
            .env("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(1));
        return;
    }
    assert_eq!(polctl(dir.path(), &["check", "--base", "HEAD~1"]).0, Some(1));
}

/// A change could bring a directory that is named like its base: it must not be taken for it.
#[test]
fn a_directory_named_like_the_base_is_refused() {
    let dir = repository(MAP, &wider());
    git(dir.path(), &["branch", "base", "HEAD~1"]);
    let id = git(dir.path(), &["rev-parse", "HEAD~1"]).trim().to_owned();
    for name in ["base", &id] {
        assert_eq!(polctl(dir.path(), &["check", "--base", name]).0, Some(1), "{name}");
        std::fs::create_dir(dir.path().join(name)).unwrap();
        for file in ["polctl.yaml", "MAP.md"] {
            std::fs::copy(dir.path().join(file), dir.path().join(name).join(file)).unwrap();
        }
        let (code, text) = polctl(dir.path(), &["check", "--base", name]);
        assert_eq!(code, Some(2), "{text}");
        assert!(text.contains("also a directory"), "{text}");
        let (code, _) = polctl(dir.path(), &["check", "--base", &format!("./{name}")]);
        assert_eq!(code, Some(0), "the directory, when it is asked for");
    }
}

/// Where the revision is missing, a directory of its name is no base either.
#[test]
fn a_directory_does_not_stand_in_for_a_missing_base() {
    let dir = repository(MAP, &wider());
    let brought = dir.path().join("origin/main");
    std::fs::create_dir_all(&brought).unwrap();
    for file in ["polctl.yaml", "MAP.md"] {
        std::fs::copy(dir.path().join(file), brought.join(file)).unwrap();
    }
    let (code, text) = polctl(dir.path(), &["check", "--base", "origin/main"]);
    assert_eq!(code, Some(2), "{text}");
    assert!(text.contains("no git revision that can be read here") && text.contains("./origin/main"), "{text}");
    // Nor outside of every repository, nor where git cannot be asked.
    std::fs::rename(dir.path().join(".git"), dir.path().join("git")).unwrap();
    assert_eq!(polctl(dir.path(), &["check", "--base", "origin/main"]).0, Some(2));
    // Written as a path, it is what is meant.
    assert_eq!(polctl(dir.path(), &["check", "--base", "./origin/main"]).0, Some(0));
}

/// A tag before the branch of the same name would let whoever pushes tags choose the base.
#[test]
fn an_ambiguous_name_is_refused() {
    let dir = repository(MAP, &wider());
    git(dir.path(), &["branch", "base", "HEAD~1"]);
    assert_eq!(polctl(dir.path(), &["check", "--base", "base"]).0, Some(1));
    git(dir.path(), &["tag", "base", "HEAD"]);
    let (code, text) = polctl(dir.path(), &["check", "--base", "base"]);
    assert_eq!(code, Some(2), "{text}");
    assert!(text.contains("several branches or tags"), "{text}");
    assert_eq!(polctl(dir.path(), &["check", "--base", "refs/heads/base"]).0, Some(1));
}

/// A bare repository among the policy files must not answer for the one around them.
#[test]
fn a_bare_repository_inside_the_policy_is_not_asked() {
    let dir = tempfile::tempdir().unwrap();
    git(dir.path(), &["init", "-q"]);
    let policy = dir.path().join("policy");
    std::fs::create_dir(&policy).unwrap();
    commit(&policy, MAP);
    commit(&policy, &wider());
    let other = repository(&wider(), &wider());
    git(&policy, &["clone", "-q", "--bare", other.path().to_str().unwrap(), "bare.git"]);
    for entry in std::fs::read_dir(policy.join("bare.git")).unwrap() {
        let path = entry.unwrap().path();
        std::fs::rename(&path, policy.join(path.file_name().unwrap())).unwrap();
    }
    let (code, text) = polctl(&policy, &["check", "--base", "HEAD~1"]);
    assert_eq!(code, Some(2), "{text}");
    assert!(text.contains("bare repository"), "{text}");
}

#[cfg(unix)]
#[test]
fn a_linked_policy_directory_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    git(dir.path(), &["init", "-q"]);
    for name in ["policy", "demo"] {
        std::fs::create_dir(dir.path().join(name)).unwrap();
    }
    commit(&dir.path().join("demo"), &wider());
    commit(&dir.path().join("policy"), MAP);
    std::fs::remove_dir_all(dir.path().join("policy")).unwrap();
    std::os::unix::fs::symlink("demo", dir.path().join("policy")).unwrap();
    let (code, text) = polctl(dir.path(), &["check", "--dir", "policy", "--base", "HEAD"]);
    assert_eq!(code, Some(2), "{text}");
    assert!(text.contains("is a link inside the repository"), "{text}");
}

#[test]
fn a_submodule_is_refused() {
    let other = repository(&wider(), &wider());
    let dir = repository(MAP, MAP);
    git(dir.path(), &["submodule", "--quiet", "add", other.path().to_str().unwrap(), "policy"]);
    let (code, text) = polctl(dir.path(), &["check", "--dir", "policy", "--base", "HEAD"]);
    assert_eq!(code, Some(2), "{text}");
    assert!(text.contains("is a submodule"), "{text}");
}
