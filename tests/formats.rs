//! Formats for machines: SARIF against its published schema, JSON against ours, annotations
//! against a runner that is written from GitHub's side.

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
use std::process::{Command, Output};

use ci_common::{Log, read_log};
use serde_json::Value;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_polctl"));
    command.args(args).current_dir(root());
    for name in ["GITHUB_WORKSPACE", "GITHUB_STEP_SUMMARY", "POLCTL_DOCS_URL"] {
        command.env_remove(name);
    }
    command
}

fn polctl(args: &[&str]) -> Output {
    command(args).output().unwrap()
}

fn text(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// Runs over the fixtures, with their exit codes.
const RUNS: [(&[&str], i32); 7] = [
    (&["diff", "fixtures/fleet/v4", "fixtures/fleet/v5", "--no-cache"], 1),
    (&["diff", "fixtures/fleet/v6", "fixtures/fleet/v7", "--no-cache"], 1),
    (&["diff", "fixtures/fleet/v7", "fixtures/fleet/v8", "--no-cache"], 1),
    (
        &["diff", "--within", "capabilities/session.yaml", "capabilities/base.yaml", "-C", "fixtures/capabilities/set"],
        1,
    ),
    (&["check", "-C", "fixtures/malformed/placeholders", "--initial"], 2),
    (&["check", "-C", "fixtures/malformed/configuration", "--initial"], 2),
    (&["check", "-C", "fixtures/malformed/table", "--initial"], 2),
];

/// Two small versions of a policy.
struct Pair {
    dir: tempfile::TempDir,
}

impl Pair {
    fn new(old: &str, new: &str) -> Pair {
        let pair = Pair { dir: tempfile::tempdir().unwrap() };
        policy(&pair.dir.path().join("old"), "MAP.md", old);
        policy(&pair.dir.path().join("new"), "MAP.md", new);
        pair
    }

    /// The new one permits more.
    fn wide() -> Pair {
        Pair::new("## Tier 0\n- `ls`\n", "## Tier 0\n- `ls **`\n")
    }

    fn same() -> Pair {
        Pair::new("## Tier 0\n- `ls`\n", "## Tier 0\n- `ls`\n")
    }

    fn path(&self, name: &str) -> String {
        self.dir.path().join(name).to_str().unwrap().to_owned()
    }

    /// `polctl diff` of both, with more arguments.
    fn diff<'a>(&self, more: &'a [&'a str]) -> Command {
        let mut command = command(&["diff", &self.path("old"), &self.path("new"), "--no-cache"]);
        command.args(more);
        command
    }

    fn everything(&self) -> Run {
        everything(&["diff", &self.path("old"), &self.path("new"), "--no-cache"])
    }
}

/// One run with every format at once.
struct Run {
    code: i32,
    stdout: String,
    sarif: Value,
    json: Value,
    markdown: String,
}

fn everything(args: &[&str]) -> Run {
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str| dir.path().join(name);
    let output = |format: &str, name: &str| format!("{format}={}", file(name).display());
    let (sarif, json, markdown) = (output("sarif", "a.sarif"), output("json", "a.json"), output("markdown", "a.md"));
    let mut all = args.to_vec();
    all.extend(["--format", "github", "--output", &sarif, "--output", &json, "--output", &markdown]);
    let done = polctl(&all);
    let read = |name: &str| std::fs::read_to_string(file(name)).unwrap();
    let value = |name: &str| serde_json::from_str(&read(name)).unwrap();
    Run {
        code: done.status.code().unwrap(),
        stdout: text(&done),
        sarif: value("a.sarif"),
        json: value("a.json"),
        markdown: read("a.md"),
    }
}

/// A schema that was compiled, formats such as `uri` included.
struct Schema {
    text: Value,
    compiled: boon::Schemas,
    index: boon::SchemaIndex,
}

impl Schema {
    fn new(path: &str) -> Schema {
        let text: Value = serde_json::from_str(&std::fs::read_to_string(root().join(path)).unwrap()).unwrap();
        let (mut compiler, mut compiled) = (boon::Compiler::new(), boon::Schemas::new());
        compiler.enable_format_assertions();
        let name = "https://schemas.example/schema.json";
        compiler.add_resource(name, text.clone()).unwrap();
        let index = compiler.compile(name, &mut compiled).unwrap_or_else(|e| panic!("{path}: {e}"));
        Schema { text, compiled, index }
    }

    fn sarif() -> Schema {
        Schema::new("fixtures/sarif/sarif-schema-2.1.0.json")
    }

    fn output() -> Schema {
        Schema::new("docs/polctl-output.schema.json")
    }

    fn is_valid(&self, value: &Value) -> bool {
        self.compiled.validate(value, self.index).is_ok()
    }

    fn accepts(&self, value: &Value, what: &str) {
        if let Err(error) = self.compiled.validate(value, self.index) {
            panic!("{what}: {error:#}");
        }
    }
}

#[test]
fn sarif_and_json_are_valid_and_say_the_same() {
    let (sarif, own) = (Schema::sarif(), Schema::output());
    let mut results = 0;
    let (wide, same) = (Pair::wide(), Pair::same());
    let bad =
        Pair::new("## Tier 0\n- `ls`\n", "## Tier 0\n- `ls **`\n- `ls **`\n## Tier 3\n- `ls **`\n  - match: `cat`\n");
    let (new, base) = (bad.path("new"), bad.path("old"));
    let (green, initial) = ([same.path("old"), same.path("new")], ["check", "-C", &new, "--initial"]);
    let more: [(&[&str], i32); 4] = [
        (&["diff", &wide.path("new"), &wide.path("old"), "--no-cache"], 0),
        (&["diff", &green[0], &green[1], "--no-cache"], 0),
        (&["check", "-C", &new, "--base", &base, "--no-cache", "--deny", "warnings"], 1),
        (&initial, 1),
    ];
    for (args, code) in RUNS.into_iter().chain(more) {
        let run = everything(args);
        assert_eq!(run.code, code, "{args:?}");
        sarif.accepts(&run.sarif, &format!("{args:?}"));
        own.accepts(&run.json, &format!("{args:?}"));
        described(&run.json, &own.text, &own.text, "");
        assert!(run.markdown.starts_with("### "), "{}", run.markdown);
        let found = run.sarif["runs"][0]["results"].as_array().unwrap();
        let findings = run.json["findings"].as_array().unwrap();
        assert_eq!(found.len(), findings.len());
        for (result, finding) in found.iter().zip(findings) {
            assert_eq!((&result["ruleId"], &result["level"]), (&finding["code"], &finding["level"]));
            let index = usize::try_from(result["ruleIndex"].as_u64().unwrap()).unwrap();
            let rule = &run.sarif["runs"][0]["tool"]["driver"]["rules"][index];
            assert_eq!(rule["id"], result["ruleId"]);
            results += 1;
        }
        let level = |level| read_log(&run.stdout).of(level).len();
        let errors = usize::try_from(run.json["summary"]["errors"].as_u64().unwrap()).unwrap();
        assert!(if errors > 10 { level("error") <= 10 } else { level("error") == errors }, "{args:?}");
    }
    assert!(results > 30, "{results}");
}

/// A schema that says too little lets everything pass, so every field must be in it.
fn described(value: &Value, schema: &Value, root: &Value, at: &str) {
    let schema = match schema["$ref"].as_str() {
        Some(reference) => root.pointer(reference.trim_start_matches('#')).unwrap(),
        None => schema,
    };
    if let Some(any) = schema["anyOf"].as_array() {
        if !value.is_null() {
            let other = any.iter().find(|s| s["type"] != "null").unwrap();
            described(value, other, root, at);
        }
        return;
    }
    match value {
        Value::Object(fields) if schema.get("properties").is_some() => {
            for (name, inner) in fields {
                let described_as = schema["properties"].get(name);
                let described_as = described_as.unwrap_or_else(|| panic!("the schema does not know `{at}.{name}`"));
                described(inner, described_as, root, &format!("{at}.{name}"));
            }
        }
        Value::Array(items) => items.iter().for_each(|item| described(item, &schema["items"], root, at)),
        _ => {}
    }
}

#[test]
fn the_schema_refuses_what_is_not_the_format() {
    let schema = Schema::output();
    let good = Pair::wide().everything().json;
    schema.accepts(&good, "as it is");
    for (pointer, wrong) in [
        ("/version", Value::from(2)),
        ("/verdict", "ok".into()),
        ("/findings/0/location/start/line", 0.into()),
        ("/findings/0/level", "fatal".into()),
        ("/summary/widenings", (-1).into()),
        ("/compared/old", Value::Null),
    ] {
        let mut bad = good.clone();
        *bad.pointer_mut(pointer).unwrap() = wrong;
        assert!(!schema.is_valid(&bad), "{pointer}");
    }
}

/// The line of a fixture that holds a text, counted from 1 by hand.
fn line_of(path: &str, text: &str) -> usize {
    let file = std::fs::read_to_string(root().join(path)).unwrap();
    file.lines().position(|line| line.contains(text)).unwrap() + 1
}

#[test]
fn places_are_those_of_the_repository() {
    let run = everything(RUNS[0].0);
    let map = "fixtures/fleet/v5/CLAUDE_CMDS.md";
    let id = line_of(map, "  - id: rm-root");
    let file = std::fs::read_to_string(root().join(map)).unwrap();
    let rule = file.lines().take(id).collect::<Vec<_>>().iter().rposition(|l| l.starts_with("- `rm **`")).unwrap() + 1;
    let results = run.sarif["runs"][0]["results"].as_array().unwrap();
    let result = results.iter().find(|r| r["properties"]["witness"] == "rm -R /etc/").unwrap();
    let place = &result["locations"][0]["physicalLocation"];
    assert_eq!(place["artifactLocation"]["uri"], map);
    assert_eq!(place["artifactLocation"]["uriBaseId"], "%SRCROOT%");
    // - `rm **`: the pattern stands in columns 4 to 8, and the end is the column behind.
    let region = &place["region"];
    let region = ["startLine", "startColumn", "endLine", "endColumn"].map(|n| region[n].as_u64().unwrap());
    assert_eq!(region, [rule as u64, 4, rule as u64, 9]);
    let related = &result["relatedLocations"][0];
    assert_eq!(related["physicalLocation"]["artifactLocation"]["uri"], "fixtures/fleet/v4/CLAUDE_CMDS.md");
    assert_eq!(related["physicalLocation"]["artifactLocation"]["uriBaseId"], "OLD");

    let log = read_log(&run.stdout);
    let annotation = log.of("error").into_iter().find(|a| a.message.starts_with("`rm -R /etc/`")).unwrap();
    assert_eq!(annotation.properties["file"], map);
    assert_eq!(["line", "endLine", "col", "endColumn"].map(|n| annotation.number(n)), [rule, rule, 4, 8]);
    assert_eq!(annotation.properties["title"], "polctl: widening");
    assert!(annotation.message.contains("help: bring back"), "{}", annotation.message);
}

#[test]
fn rules_lead_to_their_pages() {
    let output = Pair::wide()
        .diff(&["--format", "sarif"])
        .env("POLCTL_DOCS_URL", "https://docs.example/polctl/")
        .output()
        .unwrap();
    let sarif: Value = serde_json::from_slice(&output.stdout).unwrap();
    Schema::sarif().accepts(&sarif, "with pages");
    let mut wrong = sarif.clone();
    wrong["runs"][0]["tool"]["driver"]["rules"][0]["helpUri"] = "docs/rules.md#widening".into();
    assert!(!Schema::sarif().is_valid(&wrong), "the schema wants an absolute address");
    let page = std::fs::read_to_string(root().join("docs/rules.md")).unwrap();
    for rule in sarif["runs"][0]["tool"]["driver"]["rules"].as_array().unwrap() {
        let id = rule["id"].as_str().unwrap();
        assert_eq!(rule["helpUri"], format!("https://docs.example/polctl/rules.md#{id}"));
        assert!(page.lines().any(|line| line == format!("## {id}")), "{id}");
        assert!(!rule["help"]["text"].as_str().unwrap().is_empty());
    }
    for wrong in ["javascript:alert(1)", "https://a b", "docs"] {
        let output = Pair::same().diff(&[]).env("POLCTL_DOCS_URL", wrong).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{wrong}");
    }
}

fn policy(dir: &Path, name: &str, body: &str) {
    std::fs::create_dir_all(dir).unwrap();
    // In quotes, YAML reads as JSON.
    let config = format!("polctl: v1\nset: demo\npolicies: [{}]\n", Value::from(name));
    std::fs::write(dir.join("polctl.yaml"), config).unwrap();
    std::fs::write(dir.join(name), format!("---\npolctl: v1\nsurface: commands\n---\n{body}")).unwrap();
}

fn fingerprints(sarif: &Value) -> Vec<(String, u64)> {
    let results = sarif["runs"][0]["results"].as_array().unwrap().iter();
    results
        .map(|r| {
            let line = r["locations"][0]["physicalLocation"]["region"]["startLine"].as_u64().unwrap();
            (r["partialFingerprints"]["polctl/v1"].as_str().unwrap().to_owned(), line)
        })
        .collect()
}

#[test]
fn fingerprints_stay_when_lines_move_and_are_unique() {
    let dir = tempfile::tempdir().unwrap();
    let (old, new, moved) = (dir.path().join("old"), dir.path().join("new"), dir.path().join("moved"));
    policy(&old, "MAP.md", "## Tier 0\n- `ls`\n");
    policy(&new, "MAP.md", "## Tier 0\n- `ls **`\n- `cat **`\n- `cat **`\n- `cat **`\n");
    policy(&moved, "MAP.md", "Prose.\n\nMore of it.\n\n## Tier 0\n- `ls **`\n- `cat **`\n- `cat **`\n- `cat **`\n");
    let run = |new: &Path| {
        everything(&["check", "-C", new.to_str().unwrap(), "--base", old.to_str().unwrap(), "--no-cache"]).sarif
    };
    let (first, second) = (fingerprints(&run(&new)), fingerprints(&run(&moved)));
    assert_eq!(first.len(), 4, "{first:?}");
    for ((a, line), (b, moved)) in first.iter().zip(&second) {
        assert_eq!((a, line + 4), (b, *moved));
    }
    assert_eq!(first.iter().map(|(print, _)| print).collect::<BTreeSet<_>>().len(), 4);
}

/// What only the old version has cannot be marked, and is told all the same.
#[test]
fn a_rule_that_is_gone_marks_the_file_and_names_the_line() {
    let run = Pair::new("## Tier 0\n- `ls`\n- `cat *`\n", "## Tier 0\n- `ls`\n").everything();
    Schema::sarif().accepts(&run.sarif, "a rule that is gone");
    let result = &run.sarif["runs"][0]["results"][0];
    assert_eq!(result["ruleId"], "narrowing");
    let place = &result["locations"][0]["physicalLocation"];
    assert!(place.get("region").is_none(), "{place}");
    let related = &result["relatedLocations"][0];
    assert_eq!(related["physicalLocation"]["region"]["startLine"], 7);
    assert_eq!(related["physicalLocation"]["artifactLocation"]["uriBaseId"], "OLD");
    let log = read_log(&run.stdout);
    let notice = log.of("notice")[0];
    assert!(!notice.properties.contains_key("line") && notice.message.contains("MAP.md:7"), "{notice:?}");
    // The file is the one under review.
    assert!(notice.properties["file"].ends_with("new/MAP.md"), "{notice:?}");
    assert!(place["artifactLocation"]["uri"].as_str().unwrap().ends_with("new/MAP.md"), "{place}");
}

/// `body` in a file of a name that is difficult, judged by itself on a runner.
fn annotated(name: &str, body: &str) -> (Log, String) {
    let dir = tempfile::tempdir().unwrap();
    policy(&dir.path().join("policy"), name, body);
    let output = command(&["check", "-C", "policy", "--initial", "--format", "github"])
        .current_dir(dir.path())
        .env("GITHUB_WORKSPACE", dir.path())
        .output()
        .unwrap();
    let text = text(&output);
    (read_log(&text), text)
}

#[test]
fn annotations_survive_every_special_character() {
    let rule = "- `say '100%25,a:b%0A::error::x' 🦀 '##[add-mask]y' **`";
    let name = "MÄP 100%,a=b::🦀.md";
    let (log, text) = annotated(name, &format!("## Tier 0\n{rule}\n## Tier 3\n{rule}\n"));
    assert_eq!(log.annotations.len(), 2, "{text}");
    let error = log.of("error")[0];
    assert_eq!(error.properties["file"], format!("policy/{name}"));
    assert_eq!(error.properties["title"], "polctl: contradiction");
    for part in ["100%25,a:b%0A::error::x", "🦀", "add-mask]y"] {
        assert!(error.message.contains(part), "{}", error.message);
    }
    assert!(error.message.lines().count() >= 3, "{}", error.message);
    // Policy text is shown in the log, and never carried out.
    assert_eq!(log.commands, ["group", "endgroup"]);
    assert!(log.shown.iter().any(|line| line.contains("##[add-mask]y")));
    assert!(log.shown.last().unwrap().starts_with("polctl check: failed: 1 error, 1 warning"), "{text}");
}

#[test]
fn more_than_ten_findings_are_grouped_and_none_is_lost() {
    for count in [9, 10, 11, 40] {
        let rules: String = (0..count).map(|n| format!("- `x{n} **`\n- `x{n} **`\n")).collect();
        let (log, text) = annotated("MAP.md", &format!("## Tier 0\n{rules}"));
        let warnings = log.of("warning");
        assert_eq!(warnings.len(), count.min(10), "{count}");
        for n in 0..count {
            let told = warnings.iter().filter(|w| w.message.contains(&format!("`x{n} **`"))).count();
            assert_eq!(told, 1, "x{n} of {count}\n{text}");
            assert!(log.shown.iter().any(|line| line.contains(&format!("`x{n} **`"))), "x{n} in the log");
        }
        let last = warnings.last().unwrap();
        assert_eq!(last.properties.contains_key("file"), count <= 10, "{last:?}");
    }
}

#[test]
fn many_findings_of_one_line_share_an_annotation() {
    let examples: Vec<String> = (0..12).map(|n| format!("`other{n}`")).collect();
    let (log, text) = annotated("MAP.md", &format!("## Tier 0\n- `ls`\n  - match: {}\n", examples.join(", ")));
    let [error] = log.of("error")[..] else { panic!("{text}") };
    assert_eq!(error.number("line"), 7);
    assert_eq!(error.properties["title"], "polctl: 12 findings");
    assert!((0..12).all(|n| error.message.contains(&format!("`other{n}`"))), "{}", error.message);
}

#[test]
fn the_summary_is_appended_where_the_runner_wants_it() {
    let dir = tempfile::tempdir().unwrap();
    let summary = dir.path().join("summary.md");
    std::fs::write(&summary, "before\n").unwrap();
    let pair = Pair::wide();
    let output = pair.diff(&["--step-summary"]).env("GITHUB_STEP_SUMMARY", &summary).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let written = std::fs::read_to_string(&summary).unwrap();
    assert!(written.starts_with("before\n### ❌ polctl diff: failed"), "{written}");
    for value in [None, Some("")] {
        let mut command = pair.diff(&["--step-summary"]);
        if let Some(value) = value {
            command.env("GITHUB_STEP_SUMMARY", value);
        }
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        assert!(output.stdout.is_empty() && !output.stderr.is_empty());
    }
}

#[test]
fn what_cannot_be_written_is_no_pass() {
    let green = Pair::same();
    assert_eq!(green.diff(&[]).output().unwrap().status.code(), Some(0));
    for wrong in ["sarif=no/such/dir/a", "sarif=", "xml=a", "sarif", "sarif=fixtures"] {
        let output = green.diff(&["--output", wrong]).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{wrong}");
        assert!(!output.stderr.is_empty(), "{wrong}");
    }
    let output = green.diff(&["--output", "sarif=target/x", "--output", "json=target/x"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    #[cfg(unix)]
    {
        let link = green.dir.path().join("link");
        std::os::unix::fs::symlink(green.dir.path(), &link).unwrap();
        let output = green.diff(&["--output", &format!("sarif={}", link.display())]).output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        assert!(link.is_symlink(), "a link to a directory stays");
    }
    // A red verdict is shown all the same.
    let red = Pair::wide().diff(&["--output", "sarif=no/such/a"]).output().unwrap();
    assert_eq!(red.status.code(), Some(2));
    assert!(text(&red).contains("polctl diff: failed"));
}

#[test]
fn files_are_replaced_as_a_whole_and_others_can_read_them() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("a.json");
    std::fs::write(&file, "x".repeat(1 << 20)).unwrap();
    let output = format!("json={}", file.display());
    let done = Pair::same().diff(&["--output", &output]).output().unwrap();
    assert_eq!(done.status.code(), Some(0));
    assert!(serde_json::from_slice::<Value>(&std::fs::read(&file).unwrap()).is_ok());
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1, "nothing else is left");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o644);
    }
    let device =
        polctl(&["diff", "fixtures/fleet/v1", "fixtures/fleet/v2", "--no-cache", "--output", "json=/dev/null"]);
    assert_eq!(device.status.code(), Some(0));
    assert!(!std::fs::metadata("/dev/null").unwrap().is_file());
}
