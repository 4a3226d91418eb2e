//! What a reviewer gets: the summary's counts, and comments in which policy text does nothing.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::panic,
    reason = "a test that cannot go on fails"
)]

mod common;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Output};

use polctl::analyze::overview;
use polctl::compile::compile;
use polctl::diag::{Code, Evidence, Finding, Level, RuleCounts, TextChange};
use polctl::model::{PolicySet, Rule};
use polctl::parse::load;
use polctl::report::{MAX_COMMENT_BYTES, Report, json, markdown};
use polctl::source::{DirTree, SourceMap, Span};
use proptest::prelude::*;
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};
use serde_json::Value;

fn polctl(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_polctl"))
        .args(args)
        .arg("--no-cache")
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap()
}

fn text(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn set(dir: &Path, map: &mut SourceMap) -> PolicySet {
    load(&DirTree::new(dir, None), map, &mut Vec::new()).unwrap().unwrap()
}

/// A directory with one map of commands.
fn directory(body: &str) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "polctl.yaml", "polctl: v1\nset: demo\npolicies: [MAP.md]\n");
    write(dir.path(), "MAP.md", &format!("---\npolctl: v1\nsurface: commands\n---\n{body}"));
    dir
}

fn write(dir: &Path, name: &str, text: &str) {
    std::fs::write(dir.join(name), text).unwrap();
}

/// `polctl diff` of two directories as a value.
fn compared(old: &Path, new: &Path) -> Value {
    let output = polctl(&["diff", "--format", "json", old.to_str().unwrap(), new.to_str().unwrap()]);
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The longest common subsequence, by the table: what need not be moved.
fn common_order(a: &[String], b: &[String]) -> usize {
    let mut above = vec![0; b.len() + 1];
    for x in a {
        let mut row = vec![0; b.len() + 1];
        for (at, y) in b.iter().enumerate() {
            row[at + 1] = if x == y { above[at] + 1 } else { above[at + 1].max(row[at]) };
        }
        above = row;
    }
    above[b.len()]
}

/// The counts, once more and in another way: by the rules' normalised texts.
#[test]
fn counts_are_those_of_a_direct_count_over_the_fleet() {
    let (mut unchanged, mut moved) = (0, 0);
    for version in 1..12 {
        let dir = |n: usize| Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("fixtures/fleet/v{n}"));
        let mut map = SourceMap::new();
        let (old, new) = (set(&dir(version), &mut map), set(&dir(version + 1), &mut map));
        let key = |rule: &Rule| format!("{} {} {}", rule.surface, rule.tier, rule.normalised());
        let mut left: BTreeMap<String, usize> = BTreeMap::new();
        for rule in &old.rules {
            *left.entry(key(rule)).or_default() += 1;
        }
        let mut same = 0;
        for rule in &new.rules {
            if let Some(count) = left.get_mut(&key(rule)).filter(|count| **count > 0) {
                *count -= 1;
                same += 1;
            }
        }
        let mut stay = 0;
        for (path, _) in &new.config.policies {
            let keys = |set: &PolicySet| -> Vec<String> {
                set.rules.iter().filter(|r| map.get(r.span.file).unwrap().name == *path).map(key).collect()
            };
            stay += common_order(&keys(&old), &keys(&new));
        }
        let compiled = |set: PolicySet| compile(set, Vec::new());
        let expected = (same, same - stay, new.rules.len() - same, old.rules.len() - same);
        let rules = overview(&compiled(old), &compiled(new), &mut [], &map);
        assert_eq!((rules.unchanged, rules.moved, rules.fresh, rules.gone), expected, "v{version}");
        unchanged += same;
        moved += same - stay;
    }
    assert!(unchanged > 2_000 && moved > 0, "{unchanged} {moved}");
}

#[test]
fn reworded_moved_and_changed_rules_are_told_apart() {
    let old = directory(
        "## Tier 0\n- `ls **`\n- `cat **`\n  - why: reads\n- `wc **`\n  - unless: `--files0-from`, `-x`\n- `nl **`\n\
         ## Tier 3\n- `rm **`\n- `mv **`\n",
    );
    // `cat` with another reason and `wc` in another spelling, `nl` in front, `rm` at another
    // tier, `mv` gone, `cp` new.
    let new = directory(
        "## Tier 0\n- `nl **`\n- `ls **`\n- `cat **`\n  - why: only reads\n- `wc **`\n  - unless: `-x`, `--files0-from`\n\
         ## Tier 4\n- `rm **`\n\n## Tier 3\n- `cp **`\n",
    );
    let json = compared(old.path(), new.path());
    let found = |code: &str| json["findings"].as_array().unwrap().iter().filter(|f| f["code"] == code).count();
    assert_eq!(
        (&json["summary"]["widenings"], &json["summary"]["narrowings"]),
        (&found("widening").into(), &found("narrowing").into())
    );
    assert!(found("widening") > 0 && found("narrowing") > 0, "{json}");
    let rules = &json["summary"]["rules"];
    let counts = ["unchanged", "reworded", "moved", "new", "gone"].map(|name| rules[name].as_u64().unwrap());
    assert_eq!(counts, [4, 2, 1, 2, 2], "{rules}");
    assert_eq!(rules["same_configuration"], true);
    let shown = text(&polctl(&["diff", old.path().to_str().unwrap(), new.path().to_str().unwrap()]));
    let first = shown.lines().next().unwrap();
    assert!(first.ends_with(", 4 rules unchanged in meaning (2 reworded, 1 moved)"), "{first}");

    // The same rules under another configuration are not said to mean the same.
    write(new.path(), "polctl.yaml", "polctl: v1\nset: demo\npolicies: [MAP.md]\nallowed_env: [LANG]\n");
    let json = compared(old.path(), new.path());
    assert_eq!(json["summary"]["rules"]["same_configuration"], false);
    let shown = text(&polctl(&["diff", old.path().to_str().unwrap(), new.path().to_str().unwrap()]));
    assert!(shown.lines().next().unwrap().contains("unchanged in themselves, under another configuration"), "{shown}");
}

/// Two rules written as one with alternatives are other rules; the verdict says that nothing
/// is permitted that was not.
#[test]
fn rules_that_say_the_same_together_are_counted_by_themselves() {
    let old = directory("## Tier 0\n- `ls **`\n- `cat **`\n");
    let new = directory("## Tier 0\n- `{cat,ls} **`\n");
    let json = compared(old.path(), new.path());
    assert_eq!(json["exit_code"], 0);
    assert_eq!(json["summary"]["rules"]["unchanged"], 0);
    assert!(json["findings"].as_array().unwrap().is_empty());
    assert_eq!((&json["summary"]["rules"]["new"], &json["summary"]["rules"]["gone"]), (&1.into(), &2.into()));
}

#[test]
fn a_comment_has_verdict_summary_groups_and_the_text_beside_the_meaning() {
    let output = polctl(&["diff", "--format", "markdown", "fixtures/fleet/v4", "fixtures/fleet/v5"]);
    assert_eq!(output.status.code(), Some(1));
    let shown = text(&output);
    assert!(shown.starts_with("### ❌ polctl diff: failed\n\n2 widenings, no narrowings, "), "{shown}");
    let at = |part: &str| shown.find(part).unwrap_or_else(|| panic!("no `{part}` in {shown}"));
    let (first, second) =
        (at("#### commands: newly permitted at tier 0"), at("#### commands: newly permitted at tier 3"));
    let witness = at("- `rm -R /etc/`: denied → **tier 3**\n  - `CLAUDE_CMDS.md:544`: this rule no longer stops it");
    // By hand: the condition that the author took out of the rule in v5.
    let gone = at("  -   - with: `/`, `/etc`, `/etc/*`, `/usr`");
    assert!(first < second && second < witness && witness < gone, "{shown}");
    insta::assert_snapshot!("diff-markdown", shown);
}

/// Widenings before narrowings within a surface, the least controlled rung first.
#[test]
fn groups_are_in_order_of_surface_effect_and_rung() {
    let old = directory("## Tier 0\n- `ls **`\n## Tier 3\n- `cat **`\n- `mv **`\n");
    let new = directory("## Tier 1\n- `mv **`\n## Tier 0\n- `cat **`\n## Tier 4\n- `ls **`\n");
    let egress = "---\npolctl: v1\nsurface: egress\n---\n## Tier 0\n- `GET https://a.example.com/`\n";
    write(new.path(), "NET.md", egress);
    write(new.path(), "polctl.yaml", "polctl: v1\nset: demo\npolicies: [NET.md, MAP.md]\n");
    let shown =
        text(&polctl(&["diff", "--format", "markdown", old.path().to_str().unwrap(), new.path().to_str().unwrap()]));
    let titles: Vec<&str> = shown.lines().filter(|line| line.starts_with("#### ")).collect();
    let expected = [
        "#### commands: newly permitted at tier 0",
        "#### commands: newly permitted at tier 1",
        "#### commands: no longer permitted at tier 0",
        "#### egress: newly permitted at tier 0",
    ];
    assert!(titles.starts_with(&expected), "{shown}");
    let human = text(&polctl(&["diff", old.path().to_str().unwrap(), new.path().to_str().unwrap()]));
    let at = |title: &str| human.find(&title[5..]).unwrap_or_else(|| panic!("no `{title}` in {human}"));
    assert!(expected.map(at).is_sorted(), "{human}");
}

/// What a comment may consist of. Everything else would be policy text at work.
fn assert_inert(shown: &str) -> (usize, String) {
    let (mut items, mut plain) = (0, String::new());
    let mut depth = 0_usize;
    let options = Options::ENABLE_TABLES
        | Options::ENABLE_STRIKETHROUGH
        | Options::ENABLE_TASKLISTS
        | Options::ENABLE_FOOTNOTES
        | Options::ENABLE_MATH
        | Options::ENABLE_GFM
        | Options::ENABLE_HEADING_ATTRIBUTES;
    let (mut in_block, mut open) = (false, 0_i32);
    for event in Parser::new_ext(shown, options) {
        match event {
            Event::Start(Tag::CodeBlock(_)) => in_block = true,
            Event::End(TagEnd::CodeBlock) => in_block = false,
            Event::Start(Tag::Item) => {
                items += usize::from(depth == 1);
            }
            Event::Start(Tag::List(None)) => depth += 1,
            Event::End(TagEnd::List(_)) => depth -= 1,
            Event::Start(Tag::Heading { .. } | Tag::Paragraph | Tag::Strong | Tag::HtmlBlock) => {}
            Event::End(_) | Event::Code(_) | Event::SoftBreak => {}
            Event::Text(_) if in_block => {}
            Event::Text(text) => plain.push_str(&text),
            Event::Html(html) => match html.trim() {
                "<details><summary>text</summary>" => open += 1,
                "</details>" => open -= 1,
                other => panic!("HTML `{other}` in {shown}"),
            },
            other => panic!("{other:?} in {shown}"),
        }
        plain.push('\u{1}');
    }
    assert_eq!(open, 0, "{shown}");
    // Of the words outside of code, none has what mentions, numbers, links and the like need.
    let allowed = |c: char| c.is_ascii_alphanumeric() || " .,;:()'-→…✅❌⚠\u{fe0f}\u{1}".contains(c);
    assert!(plain.chars().all(allowed), "`{}` in {shown}", plain.chars().filter(|c| !allowed(*c)).collect::<String>());
    let unseen = |c: char| c != '\n' && polctl::source::is_unseen(c);
    assert!(!shown.contains(unseen), "{shown:?}");
    assert!(shown.len() <= MAX_COMMENT_BYTES, "{}", shown.len());
    (items, plain)
}

/// Everything that makes a forge do something.
const HOSTILE: [&str; 30] = [
    "<script>alert(1)</script>",
    "</details>",
    "<details>",
    "<!--",
    "-->",
    "```",
    "`",
    "``",
    "~~~",
    "|",
    "\\",
    "@octocat",
    "#123",
    "octo/repo#7",
    "GH-9",
    "![i](https://evil.example/i.png)",
    "[l](javascript:alert(1))",
    "https://evil.example/",
    "www.evil.example",
    "a@evil.example",
    "$x$",
    ":tada:",
    "\n",
    "\n\n# heading\n",
    "\n- [x] item\n",
    "\r",
    "\u{202e}",
    "\u{200b}",
    "*b* _i_ ~~s~~",
    "&lt;b&gt;",
];

fn hostile() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => proptest::sample::select(&HOSTILE[..]).prop_map(str::to_owned),
        1 => "[a-z ]{0,6}",
        1 => any::<char>().prop_map(|c| c.to_string()),
    ];
    proptest::collection::vec(piece, 0..6).prop_map(|pieces| pieces.concat())
}

/// A report in which every text comes from somebody else.
fn report(texts: &[String]) -> (Report, SourceMap) {
    let mut map = SourceMap::new();
    let get = |at: usize| texts[at % texts.len()].clone();
    let old = map.add(&get(0), Some(&get(1)), &get(2));
    let new = map.add(&get(3), None, &get(4));
    let whole = |file| Span::new(file, 0, map.text(file).len());
    let finding = |code: Code, evidence: Option<Evidence>, at: usize| {
        let mut finding = Finding::new(code, whole(new), get(at)).help(get(at + 1)).label(get(at + 2));
        finding = finding.related(whole(old), get(at + 3));
        finding.texts = vec![TextChange { old: Some(whole(old)), new: Some(whole(new)) }];
        finding.evidence = evidence;
        finding
    };
    let evidence = |surface: &str, rungs: Vec<u8>, at: usize| {
        let (witness, assumes) = (get(at), vec![get(at + 1), get(at + 2)]);
        Some(Evidence {
            surface: surface.into(),
            rungs,
            witness,
            assumes,
            replay: None,
            old_tier: None,
            new_tier: Some(1),
            request: None,
        })
    };
    let findings = vec![
        finding(Code::WIDENING, evidence("commands", vec![1, 2], 5), 6),
        finding(Code::CAPABILITY_WIDENING, evidence("capabilities", Vec::new(), 7), 8),
        finding(Code::CONFIG_WIDENING, evidence("configuration", vec![2], 9), 10),
        finding(Code::NARROWING, evidence("egress", vec![0], 11), 12),
        finding(Code::INCONCLUSIVE, None, 13),
        finding(Code::COMMAND_PATTERN, None, 14),
    ];
    let report = Report {
        command: "diff",
        compared: Some((get(15), get(16))),
        policy_ids: (None, None),
        rules: Some(RuleCounts { unchanged: 3, ..RuleCounts::default() }),
        findings,
        exit_code: 1,
    };
    (report, map)
}

#[test]
fn nothing_that_policy_says_does_anything_in_a_comment() {
    let result = common::runner(400).run(&proptest::collection::vec(hostile(), 17), |texts| {
        let (report, map) = report(&texts);
        let (items, _) = assert_inert(&markdown(&report, &map));
        prop_assert_eq!(items, report.findings.len());
        Ok(())
    });
    common::finish(result);
}

/// The same through the executable: rules, reasons and a file name of that kind.
#[test]
fn hostile_rules_are_shown_and_inert() {
    let rules = |tier: u8| {
        format!(
            "## Tier {tier}\n\n```rules\necho '<script>x</script>' **\necho '@octocat' '#123' ** why: see </details> @octocat\n\
             echo '![i](https://evil.example/i.png)' '|' **\necho 'a|b</details>' **\n```\n"
        )
    };
    let (old, new) = (directory(&rules(3)), directory(&rules(1)));
    for dir in [&old, &new] {
        let name = "m @octocat #1 <b> ![i](x).md";
        std::fs::rename(dir.path().join("MAP.md"), dir.path().join(name)).unwrap();
        write(dir.path(), "polctl.yaml", &format!("polctl: v1\nset: demo\npolicies: ['{name}']\n"));
    }
    let (old, new) = (old.path().to_str().unwrap(), new.path().to_str().unwrap());
    let output = polctl(&["diff", "--format", "markdown", old, new]);
    assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stderr));
    let shown = text(&output);
    let (items, _) = assert_inert(&shown);
    assert_eq!(items, 4, "{shown}");
    for part in ["<script>x</script>", "@octocat", "![i](https://evil.example/i.png)", "a|b</details>"] {
        assert!(shown.contains(part), "{part} is not shown: {shown}");
    }
}

/// A comment that would be too long keeps verdict, counts and the weightiest findings.
#[test]
fn a_comment_fits_and_says_what_it_leaves_out() {
    let mut map = SourceMap::new();
    let body: String = (0..4_000).map(|n| format!("- `tool{n} **`\n")).collect();
    let file = map.add("MAP.md", None, &body);
    let finding = |n: usize, code: Code| {
        let start = body.find(&format!("`tool{n} ")).unwrap();
        let mut finding =
            Finding::new(code, Span::new(file, start, start + 5), format!("`tool{n}` changed")).help("mend it");
        let (surface, witness) = ("commands".to_owned(), format!("tool{n} x"));
        let (rungs, assumes) = (vec![1], Vec::new());
        finding.evidence = Some(Evidence {
            surface,
            rungs,
            witness,
            assumes,
            replay: None,
            old_tier: None,
            new_tier: Some(1),
            request: None,
        });
        finding.texts = vec![TextChange { old: None, new: Some(Span::new(file, start, start + 12)) }];
        finding
    };
    let mut report = report(&["x".to_owned()]).0;
    // Narrowings stand first in the file, and yield to widenings all the same.
    report.findings = (0..3_000).map(|n| finding(n, Code::NARROWING)).collect();
    report.findings.extend((3_000..3_020).map(|n| finding(n, Code::WIDENING)));
    let shown = markdown(&report, &map);
    let (items, plain) = assert_inert(&shown);
    assert!(shown.starts_with("### ❌ polctl diff: failed\n\n20 widenings, 3000 narrowings, "), "{shown}");
    let left = plain.split(" findings have no room here").next().unwrap().rsplit('\u{1}').next().unwrap();
    let left: usize = left.parse().unwrap_or_else(|_| panic!("`{left}` in {shown}"));
    assert_eq!(items + left, 3_020);
    assert!(shown.contains(&format!("({left} narrowings);")), "{shown}");
    assert!((3_000..3_020).all(|n| shown.contains(&format!("`tool{n} x`"))), "a widening is left out");
    assert!(shown.len() > MAX_COMMENT_BYTES - 1_000, "there is room for more: {}", shown.len());
    assert_eq!(shown, markdown(&report, &map));
    // One finding that is larger than the whole comment is counted as well.
    report.findings.iter_mut().for_each(|f| f.help = Some("`x` ".repeat(40_000)));
    report.findings.truncate(1);
    report.findings[0].level = Level::Error;
    let shown = markdown(&report, &map);
    assert!(shown.contains("1 finding has no room here (1 narrowing);"), "{shown}");
    assert_inert(&shown);
}

#[test]
fn the_summary_is_part_of_the_json() {
    let (report, map) = report(&["x".to_owned()]);
    let value: Value = serde_json::from_str(&json(&report, &map)).unwrap();
    let expected = serde_json::json!({
        "errors": 5, "warnings": 0, "widenings": 3, "approved": 0, "narrowings": 1, "open": 1,
        "rules": { "unchanged": 3, "reworded": 0, "moved": 0, "new": 0, "gone": 0, "same_configuration": false },
    });
    assert_eq!((&value["version"], &value["summary"]), (&1.into(), &expected));
}
