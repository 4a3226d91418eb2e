//! The cache of verdicts: a hit is what a computation says, and nothing but a whole entry
//! about exactly this question is a hit.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::panic,
    reason = "a test that cannot go on fails"
)]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use polctl::sign::Digest;

/// Two versions, a cache, and polctl.
struct Desk {
    root: tempfile::TempDir,
    executable: PathBuf,
}

impl Desk {
    /// The versions differ by a widening, a narrowing and a reworded rule; prose makes them
    /// large enough for the cache.
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        for (name, rules) in [
            ("old", "## Tier 0\n- `ls **`\n- `wc **`\n## Tier 3\n- `rm **`\n- `mv **`\n"),
            ("new", "## Tier 0\n- `ls **` lists\n- `mv **`\n## Tier 3\n- `rm **`\n## Tier 4\n- `wc **`\n"),
        ] {
            let dir = root.path().join(name);
            std::fs::create_dir(&dir).unwrap();
            let mut prose = String::new();
            (0..3_000).for_each(|n| writeln!(prose, "This is line {n} of a long introduction.").unwrap());
            let map = format!("---\npolctl: v1\nsurface: commands\n---\n# Rules\n\n{prose}\n{rules}");
            std::fs::write(dir.join("MAP.md"), map).unwrap();
            let config = "polctl: v1\nset: demo\npolicies: [MAP.md]\nguardrails: ['*.cedar']\n";
            std::fs::write(dir.join("polctl.yaml"), config).unwrap();
            let guardrail = "forbid (principal, action, resource) when { context.external };\n";
            std::fs::write(dir.join("a.cedar"), guardrail).unwrap();
        }
        Desk { root, executable: env!("CARGO_BIN_EXE_polctl").into() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(&self.executable);
        command.args(args).current_dir(self.root.path());
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap()).env("POLCTL_CACHE_DIR", self.path("cache"));
        command
    }

    fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    fn diff(&self, format: &str) -> Output {
        self.run(&["diff", "./old", "./new", "--format", format])
    }

    /// Name, inode and bytes of every entry.
    fn entries(&self) -> BTreeMap<String, (u64, Vec<u8>)> {
        let Ok(listing) = std::fs::read_dir(self.path("cache")) else { return BTreeMap::new() };
        let entry = |e: std::io::Result<std::fs::DirEntry>| {
            let e = e.unwrap();
            let inode = e.metadata().unwrap().ino();
            (e.file_name().into_string().unwrap(), (inode, std::fs::read(e.path()).unwrap()))
        };
        listing.map(entry).collect()
    }

    fn names(&self, kind: &str) -> Vec<String> {
        self.entries().into_keys().filter(|name| name.ends_with(kind)).collect()
    }

    /// The file of the only verdict.
    fn verdict(&self) -> PathBuf {
        let names = self.names(".verdict");
        assert_eq!(names.len(), 1, "{names:?}");
        self.path("cache").join(&names[0])
    }
}

/// Writes an entry's body anew, with the digest that it then has.
fn forge(file: &Path, change: impl Fn(String) -> String) {
    let text = std::fs::read_to_string(file).unwrap();
    let (head, body) = text.split_once('\n').unwrap();
    let body = change(body.to_owned());
    let head = head.rsplit_once(' ').unwrap().0;
    std::fs::write(file, format!("{head} {}\n{body}", Digest::of(body.as_bytes()))).unwrap();
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[track_caller]
fn same(a: &Output, b: &Output) {
    let parts = |o: &Output| (o.status.code(), String::from_utf8_lossy(&o.stderr).into_owned(), text(o));
    assert_eq!(parts(a), parts(b));
}

#[test]
fn a_hit_says_the_same_in_every_format_and_level() {
    let desk = Desk::new();
    for format in ["human", "json", "markdown"] {
        for args in [
            vec!["diff", "./old", "./new", "--format", format],
            vec!["diff", "./old", "./new", "--format", format, "--deny", "warnings"],
            vec!["check", "-C", "new", "--base", "./old", "--format", format],
        ] {
            let with = |more: &str| desk.run(&[&args[..], &[more]].concat());
            let computed = with("--no-cache");
            assert_eq!(computed.status.code(), Some(1), "{computed:?}");
            same(&computed, &desk.run(&args));
            let kept = desk.entries();
            same(&computed, &desk.run(&args));
            assert_eq!(desk.entries(), kept, "a hit writes nothing");
        }
    }
    // `check` and `diff`, with and without `policy_id`.
    assert_eq!((desk.names(".verdict").len(), desk.names(".reads").len()), (4, 2));
}

/// That the tests of misses mean something: an entry that is whole is believed, whoever of
/// this user wrote it. This is what docs/output.md says of the directory.
#[test]
fn a_whole_entry_is_what_is_shown() {
    let desk = Desk::new();
    desk.diff("human");
    forge(&desk.verdict(), |body| body.replace("goes from tier 3 to tier 0", "goes from here to there"));
    let shown = String::from_utf8(desk.diff("human").stdout).unwrap();
    assert!(shown.contains("`mv` goes from here to there"), "{shown}");
}

#[test]
fn a_damaged_entry_is_computed_anew() {
    let desk = Desk::new();
    let computed = desk.run(&["diff", "./old", "./new", "--no-cache"]);
    same(&computed, &desk.diff("human"));
    let whole = desk.entries();
    for (name, (_, bytes)) in &whole {
        let line = bytes.iter().position(|b| *b == b'\n').unwrap();
        // Every bit of an entry is tried by the unit test of `entry`; here some of each part.
        let places = [0, line / 2, line, line + 1, line.midpoint(bytes.len()), bytes.len() - 1];
        for (n, at) in places.into_iter().enumerate() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1 << (n % 8);
            std::fs::write(desk.path("cache").join(name), damaged).unwrap();
            same(&computed, &desk.diff("human"));
            let (now, before) = (desk.entries(), whole.keys());
            assert!(now.keys().eq(before) && now[name].1 == *bytes, "byte {at} of {name} was not computed anew");
        }
        for cut in [0, line, bytes.len() / 2] {
            std::fs::write(desk.path("cache").join(name), &bytes[..cut]).unwrap();
            same(&computed, &desk.diff("human"));
            assert_eq!(desk.entries()[name].1, *bytes, "{name} cut at {cut}");
        }
        std::fs::write(desk.path("cache").join(name), [bytes, &b"x"[..]].concat()).unwrap();
        same(&computed, &desk.diff("human"));
        assert_eq!(desk.entries()[name].1, *bytes, "{name} with more behind it");
    }
}

/// An entry with its own digest that this polctl would not have written.
#[test]
fn what_is_not_of_this_form_is_computed_anew() {
    let desk = Desk::new();
    let computed = desk.run(&["diff", "./old", "./new", "--no-cache"]);
    desk.diff("human");
    let file = desk.verdict();
    let whole = std::fs::read(&file).unwrap();
    let edits = [
        ("\"code\":\"widening\"", "\"code\":\"widenings\""),
        ("\"level\":\"error\"", "\"level\":\"fatal\""),
        ("\"rules\":{", "\"extra\":1,\"rules\":{"),
        ("\"span\":[1,", "\"span\":[9,"),
        ("[0,\"MAP.md\"]", "[0,\"OTHER.md\"]"),
        ("\"unchanged\"", "\"changed\""),
    ];
    for (from, to) in edits {
        forge(&file, |body| {
            assert!(body.contains(from), "{from} is not in {body}");
            body.replacen(from, to, 1)
        });
        same(&computed, &desk.diff("human"));
        assert_eq!(std::fs::read(&file).unwrap(), whole, "{to}");
    }
    // Another key's entry under this name, whole as it is.
    desk.diff("json");
    let other = desk.names(".verdict").into_iter().map(|n| desk.path("cache").join(n)).find(|p| *p != file).unwrap();
    std::fs::copy(other, &file).unwrap();
    same(&computed, &desk.diff("human"));
    assert_eq!(std::fs::read(&file).unwrap(), whole);
}

/// Another polctl, even of the same version, has other keys: only its own entries count.
#[test]
fn another_executable_computes_for_itself() {
    let mut desk = Desk::new();
    let computed = desk.diff("human");
    let first = desk.verdict();
    forge(&first, |body| body.replace("goes from", "went from"));
    let other = desk.path("polctl-other");
    std::fs::copy(&desk.executable, &other).unwrap();
    let mut file = std::fs::OpenOptions::new().append(true).open(&other).unwrap();
    std::io::Write::write_all(&mut file, b"x").unwrap();
    drop(file);
    desk.executable = other;
    same(&computed, &desk.diff("human"));
    assert_eq!(desk.names(".verdict").len(), 2);
}

#[test]
fn everything_that_is_read_counts() {
    let desk = Desk::new();
    let edit = |path: &str, text: &str| {
        let path = desk.path(path);
        let before = std::fs::read_to_string(&path).unwrap_or_default();
        std::fs::write(path, before + text).unwrap();
    };
    let forbid = "forbid (principal, action, resource) when { context.dynamic };\n";
    for (path, more) in [
        ("new/MAP.md", "\n- `dd **`\n"),
        ("old/MAP.md", "\n- `nl **`\n"),
        ("new/polctl.yaml", "allowed_env: [LANG, PAGER]\n"),
        ("old/a.cedar", forbid),
        // A file more in a directory that a glob names.
        ("old/b.cedar", forbid),
    ] {
        let before = desk.diff("human");
        edit(path, more);
        let after = desk.diff("human");
        assert_ne!(text(&before), text(&after), "{path}");
        same(&after, &desk.run(&["diff", "./old", "./new", "--no-cache"]));
        same(&after, &desk.diff("human"));
    }
    // And one less.
    let before = desk.diff("human");
    std::fs::remove_file(desk.path("old/b.cedar")).unwrap();
    assert_ne!(text(&before), text(&desk.diff("human")));
    // The same bytes under other names are shown under these.
    std::fs::rename(desk.path("old"), desk.path("older")).unwrap();
    let renamed = desk.run(&["diff", "./older", "./new"]);
    assert!(String::from_utf8(renamed.stdout).unwrap().contains("from `./older`"));
}

/// Neither malformed nor inconclusive answers are kept.
#[test]
fn only_conclusive_answers_are_kept() {
    let desk = Desk::new();
    let map = std::fs::read_to_string(desk.path("new/MAP.md")).unwrap();
    std::fs::write(desk.path("new/MAP.md"), format!("{map}\n- `a ** b **`\n")).unwrap();
    assert_eq!(desk.diff("human").status.code(), Some(2));
    assert!(desk.entries().is_empty());
    // A guardrail that only a solver can read leaves the question open where there is none.
    let stop = "forbid (principal, action, resource) when { context.line like \"*\" };\n";
    std::fs::write(desk.path("old/a.cedar"), stop).unwrap();
    std::fs::write(desk.path("new/a.cedar"), stop).unwrap();
    let (head, _) = map.split_once("## Tier 0").unwrap();
    std::fs::write(desk.path("old/MAP.md"), format!("{head}## Tier 0\n- `cat`\n")).unwrap();
    std::fs::write(desk.path("new/MAP.md"), format!("{head}## Tier 0\n- `cat`\n- `cat *`\n")).unwrap();
    let mut command = desk.command(&["diff", "./old", "./new"]);
    let answer = command.env("POLCTL_SOLVER", "/nonexistent/cvc5").output().unwrap();
    assert_eq!(answer.status.code(), Some(3), "{}", String::from_utf8_lossy(&answer.stderr));
    assert!(desk.entries().is_empty());
}

#[test]
fn processes_may_use_one_directory_at_once() {
    let desk = Desk::new();
    let computed = desk.run(&["diff", "./old", "./new", "--no-cache"]);
    for _ in 0..3 {
        let children: Vec<_> = (0..6)
            .map(|_| {
                let mut command = desk.command(&["diff", "./old", "./new"]);
                command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
            })
            .collect();
        for child in children {
            same(&computed, &child.wait_with_output().unwrap());
        }
    }
    let names: Vec<String> = desk.entries().into_keys().collect();
    assert_eq!(names.len(), 2, "{names:?}");
    let kept = desk.entries();
    same(&computed, &desk.diff("human"));
    assert_eq!(desk.entries(), kept);
}

/// A directory that cannot be used costs one line, whatever the reason.
#[test]
fn an_unusable_directory_is_one_note() {
    let desk = Desk::new();
    let computed = desk.run(&["diff", "./old", "./new", "--no-cache"]);
    std::fs::write(desk.path("file"), "").unwrap();
    std::fs::create_dir(desk.path("open")).unwrap();
    std::fs::set_permissions(desk.path("open"), std::fs::Permissions::from_mode(0o777)).unwrap();
    std::fs::create_dir(desk.path("real")).unwrap();
    std::os::unix::fs::symlink("real", desk.path("link")).unwrap();
    std::fs::create_dir(desk.path("old/.git")).unwrap();
    // Nobody can write there, not even root.
    let mut unusable: Vec<(PathBuf, &str)> = vec![("/sys/kernel".into(), "")];
    unusable.push((desk.path("file/below"), ""));
    unusable.push((desk.path("open"), "may write to it"));
    unusable.push((desk.path("link"), ""));
    unusable.push((desk.path("old/.cache"), "in the same repository"));
    unusable.push((desk.path("new/.cache"), "in the same repository"));
    for (dir, reason) in unusable {
        let output = desk.command(&["diff", "./old", "./new"]).env("POLCTL_CACHE_DIR", &dir).output().unwrap();
        assert_eq!((output.status.code(), text(&output)), (computed.status.code(), text(&computed)), "{dir:?}");
        let note = String::from_utf8(output.stderr).unwrap();
        assert!(
            note.lines().count() == 1 && note.contains("is not used: ") && note.contains(reason),
            "{dir:?}: {note}"
        );
    }
    assert!(!desk.path("old/.cache").exists() && !desk.path("new/.cache").exists());
    assert!(std::fs::read_dir(desk.path("open")).unwrap().next().is_none());
}

/// Entries that somebody else may have written are none.
#[test]
fn an_entry_that_others_can_write_is_not_read() {
    let desk = Desk::new();
    let computed = desk.diff("human");
    let file = desk.verdict();
    let forged = || forge(&file, |body| body.replace("goes from", "went from"));
    forged();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o622)).unwrap();
    same(&computed, &desk.diff("human"));
    forged();
    let elsewhere = desk.path("elsewhere");
    std::fs::rename(&file, &elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, &file).unwrap();
    same(&computed, &desk.diff("human"));
    std::fs::remove_file(&file).unwrap();
    std::fs::hard_link(&elsewhere, &file).unwrap();
    same(&computed, &desk.diff("human"));
    // What it wrote itself, nobody else can read or write.
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(std::fs::metadata(desk.path("cache")).unwrap().permissions().mode() & 0o777, 0o700);
}

#[test]
fn it_is_off_in_ci_unless_asked_for() {
    let desk = Desk::new();
    let run = |ci: &str, more: &[&str]| {
        let mut command = desk.command(&[&["diff", "./old", "./new"], more].concat());
        let output = command.env("CI", ci).output().unwrap();
        assert!(output.status.code() == Some(1) && output.stderr.is_empty(), "{output:?}");
        let kept = desk.entries().len();
        _ = std::fs::remove_dir_all(desk.path("cache"));
        kept
    };
    assert_eq!(run("true", &[]), 0);
    assert_eq!(run("woodpecker", &[]), 0);
    assert_eq!(run("true", &["--cache"]), 2);
    assert_eq!(run("", &[]), 2);
    assert_eq!(run("false", &[]), 2);
    assert_eq!(run("", &["--no-cache"]), 0);
    assert_eq!(desk.run(&["diff", "./old", "./new", "--cache", "--no-cache"]).status.code(), Some(2));
}

#[test]
fn the_directory_is_that_of_the_user() {
    let desk = Desk::new();
    let run = |name: &str, value: &Path| {
        let mut command = desk.command(&["diff", "./old", "./new"]);
        let output = command.env_remove("POLCTL_CACHE_DIR").env(name, value).output().unwrap();
        assert!(output.status.code() == Some(1) && output.stderr.is_empty(), "{output:?}");
    };
    let has = |dir: &str| std::fs::read_dir(desk.path(dir)).is_ok_and(|listing| listing.count() == 2);
    run("XDG_CACHE_HOME", &desk.path("xdg"));
    assert!(has("xdg/polctl"));
    run("HOME", &desk.path("home"));
    assert!(has("home/.cache/polctl"));
    // A relative one is to be ignored, and without any there is no cache.
    run("XDG_CACHE_HOME", Path::new("relative"));
    assert!(!desk.path("relative").exists());
}

/// A small set is not worth it, and what is in the directory and not polctl's stays there.
#[test]
fn small_sets_are_not_kept_and_strangers_are_left_alone() {
    let desk = Desk::new();
    std::fs::create_dir(desk.path("cache")).unwrap();
    std::fs::set_permissions(desk.path("cache"), std::fs::Permissions::from_mode(0o700)).unwrap();
    let strangers = ["note.txt", "0.verdict", ".x.tmp"];
    for name in strangers {
        std::fs::write(desk.path("cache").join(name), "x").unwrap();
    }
    let stale = format!(".{}.verdict.0123456789abcdef.tmp", Digest::of(b"x"));
    let file = std::fs::File::create(desk.path("cache").join(&stale)).unwrap();
    file.set_modified(std::time::SystemTime::now() - std::time::Duration::from_hours(2)).unwrap();
    desk.diff("human");
    let names: Vec<String> = desk.entries().into_keys().collect();
    assert_eq!(names.len(), 5, "{names:?}");
    assert!(strangers.iter().all(|s| names.contains(&(*s).to_owned())) && !names.contains(&stale), "{names:?}");

    let root = env!("CARGO_MANIFEST_DIR");
    let fleet = |version: &str| format!("{root}/fixtures/fleet/{version}");
    let output = desk.run(&["diff", &fleet("v4"), &fleet("v5")]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(desk.entries().len(), 5);
}

/// The oldest go when there are too many.
#[test]
fn the_directory_does_not_grow_without_bound() {
    let desk = Desk::new();
    std::fs::create_dir(desk.path("cache")).unwrap();
    std::fs::set_permissions(desk.path("cache"), std::fs::Permissions::from_mode(0o700)).unwrap();
    let name = |n: u64| format!("{}.verdict", Digest::of(&n.to_be_bytes()));
    for n in 0..1_100_u64 {
        let file = std::fs::File::create(desk.path("cache").join(name(n))).unwrap();
        let age = std::time::Duration::from_secs(10_000 - n);
        file.set_modified(std::time::SystemTime::now() - age).unwrap();
    }
    desk.diff("human");
    let entries = desk.entries();
    assert_eq!(entries.len(), 1_000);
    assert!(!entries.contains_key(&name(0)) && !entries.contains_key(&name(101)), "the oldest are still there");
    assert!(entries.contains_key(&name(102)) && entries.contains_key(&name(1_099)));
    // And by size.
    let large = desk.path("cache").join(name(0));
    let file = std::fs::File::create(large).unwrap();
    file.set_len(130 << 20).unwrap();
    file.set_modified(std::time::SystemTime::now() - std::time::Duration::from_mins(150)).unwrap();
    drop(file);
    desk.diff("json");
    assert!(!desk.path("cache").join(name(0)).exists() && !desk.path("cache").join(name(200)).exists());
    assert!(desk.path("cache").join(name(1_050)).exists());
}

/// Signing and approving know nothing of it.
#[test]
fn only_check_and_diff_use_the_cache() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/cli");
    let mut users = Vec::new();
    for entry in std::fs::read_dir(root).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() && std::fs::read_to_string(&path).unwrap().contains("cache::through(") {
            users.push(path.file_name().unwrap().to_str().unwrap().to_owned());
        }
    }
    users.sort();
    assert_eq!(users, ["check.rs", "diff.rs"]);
}
