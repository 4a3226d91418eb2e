//! The documentation says what polctl does: pages are complete, links lead somewhere, commands
//! that it shows are run, and what is made from the code is what the code says.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::panic,
    reason = "a test that cannot go on fails"
)]

mod ci_common;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use ci_common::yaml;
use polctl::diag::CODES;
use pulldown_cmark::{CodeBlockKind, Event, HeadingLevel, Options, Parser, Tag, TagEnd};
use serde_json::Value;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|e| panic!("{path}: {e}"))
}

fn polctl(args: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_polctl")).args(args).current_dir(root()).output().unwrap();
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Every page of `docs/`.
fn pages() -> BTreeSet<String> {
    let names = std::fs::read_dir(root().join("docs")).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.ends_with(".md")).collect()
}

fn events(text: &str) -> Vec<Event<'_>> {
    Parser::new_ext(text, Options::ENABLE_TABLES).collect()
}

/// Code blocks: whether a comment in front says that they are not run, info string, text.
fn blocks(text: &str) -> Vec<(bool, String, String)> {
    let (mut blocks, mut open, mut skipped) = (Vec::new(), None, false);
    for event in events(text) {
        match event {
            Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(info))) => open = Some((info.to_string(), String::new())),
            Event::Text(part) if open.is_some() => open.as_mut().unwrap().1.push_str(&part),
            Event::Html(html) if html.starts_with("<!-- not run:") => skipped = true,
            Event::End(TagEnd::CodeBlock) => {
                if let Some((info, body)) = open.take() {
                    blocks.push((std::mem::take(&mut skipped), info, body));
                }
            }
            _ => {}
        }
    }
    blocks
}

/// The anchors of a page, as forges and mdBook make them.
fn anchors(text: &str) -> BTreeSet<String> {
    let (mut anchors, mut heading) = (BTreeSet::new(), None::<String>);
    for event in events(text) {
        match event {
            Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
            Event::Text(part) | Event::Code(part) if heading.is_some() => heading.as_mut().unwrap().push_str(&part),
            Event::End(TagEnd::Heading(_)) => {
                let text = heading.take().unwrap().to_lowercase().replace(' ', "-");
                anchors.insert(text.chars().filter(|c| c.is_alphanumeric() || matches!(c, '-' | '_')).collect());
            }
            _ => {}
        }
    }
    anchors
}

/// Codes, pages and what `polctl rule` says are one list. `tests/findings.rs` holds the cases that have each code
/// to the same registry.
#[test]
fn the_page_of_codes_is_what_the_registry_says() {
    let page = read("docs/rules.md");
    assert!(page == polctl(&["rule", "--markdown"]), "run `polctl rule --markdown > docs/rules.md`");
    let anchors = anchors(&page);
    for row in CODES {
        assert!(anchors.contains(row.code.as_str()), "{}", row.code.as_str());
        assert_eq!(row.page(), format!("rules.md#{}", row.code.as_str()));
        let told = polctl(&["rule", row.code.as_str()]);
        assert!(told.contains(row.text) && page.contains(row.text), "{}", row.code.as_str());
    }
}

#[test]
fn the_book_has_every_page_and_no_link_is_dead() {
    let mut in_book = BTreeSet::from(["SUMMARY.md".to_owned()]);
    for event in events(&read("docs/SUMMARY.md")) {
        if let Event::Start(Tag::Link { dest_url, .. }) = event {
            assert!(in_book.insert(dest_url.to_string()), "{dest_url} stands twice");
        }
    }
    assert_eq!(in_book, pages(), "docs/SUMMARY.md and the pages of docs/");
    let mut checked = 0;
    let documents = pages().into_iter().map(|page| format!("docs/{page}"));
    for document in documents.chain(["README.md".into(), "CONTRIBUTING.md".into()]) {
        let text = read(&document);
        for event in events(&text) {
            let Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) = event else { continue };
            if dest_url.starts_with("https://") {
                continue;
            }
            let (path, anchor) = dest_url.split_once('#').unwrap_or((&dest_url, ""));
            let file = root().join(&document);
            let target = if path.is_empty() { file } else { file.parent().unwrap().join(path) };
            assert!(target.exists(), "{document}: {dest_url}");
            if !anchor.is_empty() {
                let found = anchors(&std::fs::read_to_string(target).unwrap()).contains(anchor);
                assert!(found, "{document}: {dest_url}");
            }
            checked += 1;
        }
    }
    assert!(checked > 80, "{checked}");
}

/// A tutorial's `sh` blocks in order, in one directory, with what stands in the `text` block
/// behind each somewhere in its output, line by line.
#[test]
fn the_tutorial_works_as_it_stands() {
    let home = tempfile::tempdir().unwrap();
    let mut here = home.path().join("work");
    std::fs::create_dir(&here).unwrap();
    let bin = Path::new(env!("CARGO_BIN_EXE_polctl")).parent().unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let (mut ran, mut last) = (0, String::new());
    for (skipped, info, body) in blocks(&read("docs/tutorial.md")) {
        match info.as_str() {
            "sh" if !skipped => {
                // The page says `/tmp`; the test stays in its own directory.
                let body = body.replace("/tmp/", &format!("{}/", home.path().display()));
                let script = format!("trap 'pwd >{}/pwd' EXIT\n{body}", home.path().display());
                let output = Command::new("bash")
                    .args(["-e", "-c", &script])
                    .current_dir(&here)
                    .env("PATH", &path)
                    .env("HOME", home.path())
                    .env_remove("XDG_CACHE_HOME")
                    .env_remove("POLCTL_CACHE_DIR")
                    .env("GIT_CONFIG_NOSYSTEM", "1")
                    .env_remove("CI")
                    .output()
                    .unwrap();
                last = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
                let wanted = body.rsplit_once("# exit code ").map_or(0, |(_, code)| code.trim().parse().unwrap());
                assert_eq!(output.status.code(), Some(wanted), "{body}\n{last}");
                here = std::fs::read_to_string(home.path().join("pwd")).unwrap().trim_end().into();
                ran += 1;
            }
            "text" => {
                for line in body.lines() {
                    assert!(last.contains(line.trim()), "`{line}` is not in\n{last}");
                }
            }
            _ => {}
        }
    }
    assert!(ran >= 8, "{ran}");
}

/// The `console` blocks of the README: what they show is what comes out, but for `[…]`.
#[test]
fn the_readme_shows_what_polctl_prints() {
    let mut checked = 0;
    for (_, info, body) in blocks(&read("README.md")) {
        let Some((command, shown)) = body.strip_prefix("$ polctl ").and_then(|body| body.split_once('\n')) else {
            continue;
        };
        assert_eq!(info, "console");
        let output = Command::new("bash")
            .args(["-c", &format!("'{}' {command}", env!("CARGO_BIN_EXE_polctl"))])
            .current_dir(root())
            // No cache of this user.
            .env("CI", "true")
            .output()
            .unwrap();
        let printed = String::from_utf8(output.stdout).unwrap();
        let mut rest = printed.as_str();
        for part in shown.split("[…]\n") {
            let found = rest
                .find(part)
                .unwrap_or_else(|| panic!("polctl {command}: not in this order:\n{part}\nin\n{printed}"));
            rest = &rest[found + part.len()..];
        }
        checked += 1;
    }
    assert!(checked >= 2, "{checked}");
}

/// What the page for users tells them to paste is YAML, uses inputs and outputs that the action
/// has, and the step for Woodpecker is the one of this repository.
#[test]
fn recipes_of_ci_fit_the_files_that_they_are_about() {
    let action = yaml(&root().join("action.yml"));
    let text = read("docs/ci.md");
    let yamls: Vec<Value> = blocks(&text)
        .into_iter()
        .filter(|(_, info, _)| info == "yaml")
        .map(|(_, _, body)| serde_saphyr::from_str(&body).unwrap_or_else(|e| panic!("{e}\n{body}")))
        .collect();
    let steps = yamls.iter().flat_map(|yaml| [yaml, &yaml["jobs"]["polctl"]["steps"]]).filter_map(Value::as_array);
    let mut used = 0;
    for step in steps.flatten().filter(|step| step["uses"].as_str().is_some_and(|uses| uses.contains("/polctl@"))) {
        for name in step["with"].as_object().unwrap().keys() {
            assert!(action["inputs"].get(name).is_some(), "{name}");
            used += 1;
        }
    }
    assert!(used >= 2, "{used}");
    for name in action["inputs"].as_object().unwrap().keys().chain(action["outputs"].as_object().unwrap().keys()) {
        assert!(text.contains(&format!("`{name}")), "docs/ci.md does not name `{name}`");
    }
    let commands = |yaml: &Value| -> Vec<String> {
        let step = yaml["steps"].as_array().unwrap().iter().find(|step| step["name"] == "policy").unwrap();
        step["commands"].as_array().unwrap().iter().map(|c| c.as_str().unwrap().to_owned()).collect()
    };
    let theirs = commands(yamls.iter().find(|yaml| yaml.get("clone").is_some()).unwrap());
    let ours = commands(&yaml(&root().join(".woodpecker.yml")));
    assert_eq!(theirs[..2], ours[1..3], "the step for users and that of this repository");
    assert!(theirs[2].starts_with("polctl check --dir policy --base \"$base\""));
}

#[test]
fn hooks_call_what_there_is() {
    let hooks = yaml(&root().join(".pre-commit-hooks.yaml"));
    let text = read("docs/ci.md");
    for hook in hooks.as_array().unwrap() {
        let id = hook["id"].as_str().unwrap();
        assert!(text.contains(&format!("id: {id}")), "{id}");
        let entry: Vec<&str> = hook["entry"].as_str().unwrap().split(' ').collect();
        let output = Command::new(env!("CARGO_BIN_EXE_polctl"))
            .args(&entry[1..])
            .args(["-C", "fixtures/fleet/v12"])
            .current_dir(root())
            .env("CI", "true")
            .output()
            .unwrap();
        let told = String::from_utf8_lossy(&output.stderr);
        // In an unpacked archive of the sources there is no repository, which is no wrong usage of the hook's entry.
        assert!(matches!(output.status.code(), Some(0 | 1)) || told.contains("git"), "{id}: {told}");
    }
}

/// Completions and manual pages are made from the arguments, so each has every command.
#[test]
fn completions_and_manual_pages_have_every_command() {
    let help = polctl(&["--help"]);
    let commands: Vec<&str> = help
        .lines()
        .skip_while(|line| *line != "Commands:")
        .skip(1)
        .take_while(|line| !line.is_empty())
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    assert!(commands.contains(&"check") && commands.contains(&"man"), "{commands:?}");
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = polctl(&["completions", shell]);
        for command in &commands {
            assert!(script.contains(command), "{shell}: {command}");
        }
        assert!(script.contains("step-summary"), "{shell}");
    }
    let dir = tempfile::tempdir().unwrap();
    polctl(&["man", dir.path().join("man1").to_str().unwrap()]);
    let page = |name: &str| std::fs::read_to_string(dir.path().join("man1").join(name)).unwrap();
    assert!(page("polctl.1").starts_with(".ie"), "{}", page("polctl.1"));
    for command in commands.iter().filter(|command| **command != "help") {
        assert!(page(&format!("polctl-{command}.1")).contains(".SH SYNOPSIS"), "{command}");
    }
    assert!(page("polctl-check.1").contains("FORMAT=FILE"));
}

/// The first page of a book has one heading of the first level, as has every other.
#[test]
fn every_page_has_one_title() {
    for page in pages() {
        if page == "SUMMARY.md" {
            continue;
        }
        let text = read(&format!("docs/{page}"));
        let titles = events(&text)
            .iter()
            .filter(|event| matches!(event, Event::Start(Tag::Heading { level: HeadingLevel::H1, .. })))
            .count();
        assert_eq!(titles, 1, "{page}");
    }
}
