//! The example set of capability manifests, its history, and manifests that must be refused.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test that cannot go on fails")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use polctl::diag::{Finding, Level};
use polctl::parse::parse_manifest;
use polctl::source::SourceMap;
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Step {
    #[expect(clippy::struct_field_names, reason = "the name in the fixture")]
    step: String,
    file: String,
    replace: Option<String>,
    with: Option<String>,
    #[serde(default)]
    remove_file: bool,
    add_file: Option<String>,
    codes: BTreeSet<String>,
    #[serde(default)]
    notes: BTreeSet<String>,
    field: Option<String>,
    witness: Option<String>,
    exit: i32,
    #[expect(dead_code, reason = "for the reader of the fixture")]
    note: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Bad {
    id: String,
    what: String,
    manifest: String,
    codes: BTreeSet<String>,
    says: Option<String>,
}

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/capabilities")
}

fn read<T: for<'de> Deserialize<'de>>(name: &str) -> Vec<T> {
    serde_saphyr::from_str(&std::fs::read_to_string(fixtures().join(name)).unwrap()).unwrap()
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

fn polctl(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_polctl")).args(args).output().unwrap()
}

#[test]
fn the_example_is_green() {
    let set = fixtures().join("set");
    let manifests = std::fs::read_dir(set.join("capabilities")).unwrap().count();
    assert!(manifests >= 8, "{manifests}");
    let output = polctl(&["check", "--initial", "-C", set.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stdout));
}

/// Each step by itself against the example, with every finding that it must have and none beside.
#[test]
fn every_step_has_its_verdict() {
    let steps: Vec<Step> = read("history.yaml");
    assert!(steps.len() >= 20, "{}", steps.len());
    let mut failures = Vec::new();
    for step in &steps {
        let dir = tempfile::tempdir().unwrap();
        copy(&fixtures().join("set"), dir.path());
        let path = dir.path().join(&step.file);
        if step.remove_file {
            std::fs::remove_file(&path).unwrap();
        } else if let Some(text) = &step.add_file {
            assert!(!path.exists(), "{}", step.step);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, text).unwrap();
        } else {
            let text = std::fs::read_to_string(&path).unwrap();
            let old = step.replace.as_ref().unwrap().trim_end_matches('\n');
            assert_eq!(text.matches(old).count(), 1, "{}: what is replaced stands once", step.step);
            std::fs::write(&path, text.replace(old, step.with.as_ref().unwrap().trim_end_matches('\n'))).unwrap();
        }
        let base = fixtures().join("set");
        let output = polctl(&[
            "check",
            "--base",
            base.to_str().unwrap(),
            "-C",
            dir.path().to_str().unwrap(),
            "--format",
            "json",
        ]);
        let report: serde_json::Value = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|e| panic!("{}: {e}: {}", step.step, String::from_utf8_lossy(&output.stderr)));
        let findings = report["findings"].as_array().unwrap();
        let of = |note: bool| -> BTreeSet<String> {
            let own = findings.iter().filter(|f| (f["level"] == "note") == note);
            own.map(|f| f["code"].as_str().unwrap().to_owned()).collect()
        };
        let messages: Vec<&str> = findings.iter().filter_map(|f| f["message"].as_str()).collect();
        let says =
            |text: &Option<String>| text.as_ref().is_none_or(|text| messages.iter().any(|m| m.contains(text.as_str())));
        let field = step.field.as_ref().map(|field| format!("`{field}`"));
        if of(false) != step.codes
            || of(true) != step.notes
            || !says(&field)
            || !says(&step.witness)
            || output.status.code() != Some(step.exit)
        {
            failures.push(format!(
                "{}: {:?} and notes {:?}, exit {:?}: {messages:#?}",
                step.step,
                of(false),
                of(true),
                output.status.code()
            ));
        }
    }
    assert!(failures.is_empty(), "{} of {}:\n{}", failures.len(), steps.len(), failures.join("\n"));
}

#[test]
fn bad_and_tricky_manifests_have_their_answers() {
    let rows: Vec<Bad> = read("bad.yaml");
    assert!(rows.len() >= 60, "{}", rows.len());
    let mut failures = Vec::new();
    let mut seen: BTreeSet<&str> = BTreeSet::new();
    for row in &rows {
        assert!(seen.insert(&row.id), "{} stands twice", row.id);
        let mut findings: Vec<Finding> = Vec::new();
        let manifest = parse_manifest("m.yaml", row.manifest.as_bytes(), &mut SourceMap::new(), &mut findings);
        let codes: BTreeSet<String> = findings.iter().map(|f| f.code.as_str().to_owned()).collect();
        let text = |f: &Finding| format!("{} {}", f.message, f.help.as_deref().unwrap_or(""));
        let says = row.says.as_ref().is_none_or(|says| findings.iter().any(|f| text(f).contains(says.as_str())));
        let helpful = findings.iter().all(|f| f.help.is_some() && f.level == Level::Error);
        if codes != row.codes || !says || !helpful || manifest.is_some() != codes.is_empty() {
            let texts: Vec<String> = findings.iter().map(text).collect();
            failures.push(format!("{} {}: {codes:?} {texts:#?}", row.id, row.what));
        }
    }
    assert!(failures.is_empty(), "{} of {}:\n{}", failures.len(), rows.len(), failures.join("\n"));
}

/// "A capability added by an integration update is refused until classified, and only that one."
#[test]
fn an_update_with_a_new_capability_passes_and_the_new_one_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    copy(&fixtures().join("set"), dir.path());
    let path = dir.path().join("capabilities/mail.yaml");
    let text = std::fs::read_to_string(&path).unwrap();
    let (head, tail) = text.split_once("declares:\n").expect("the mail integration declares one capability a line");
    let item = tail.lines().find(|line| line.trim_start().starts_with("- ")).unwrap();
    let indent: String = item.chars().take_while(|c| *c == ' ').collect();
    std::fs::write(&path, format!("{head}declares:\n{indent}- email:forward\n{tail}")).unwrap();
    let (base, new) = (fixtures().join("set"), dir.path().to_str().unwrap().to_owned());
    let output = polctl(&["check", "--base", base.to_str().unwrap(), "-C", &new]);
    let shown = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(0), "{shown}");
    assert!(shown.contains("unclassified") && shown.contains("email:forward"), "{shown}");
    // Nothing permits it.
    let compiled = polctl(&["compile", "-C", &new]);
    assert!(!String::from_utf8_lossy(&compiled.stdout).contains("email:forward"));
}

/// Pairs in which a new version once passed although it permits more: the values that manifests
/// mention must never use up those that nothing mentions.
#[test]
fn what_nothing_mentions_is_always_tried() {
    let mail = "polctl: v1\nsubject: { integration: mail }\nexternal: false\ndeclares: [email:read]\ngrants:\n  email:read: { level: read }\n";
    let homes = "deny: [/home/x/.netrc, /home/y/.netrc, /home/z/.netrc, /home/other/.netrc, /home/another/.netrc, /home/x0/.netrc]";
    for (old, new) in [
        (
            "grants: { email:read: { level: read, workspaces: [workspace, workspace-x, workspace-x0] } }",
            "grants: { email:read: { level: read } }",
        ),
        (
            "grants: { email:read: { level: read, personas: [persona, persona-x, persona-x0] } }",
            "grants: { email:read: { level: read } }",
        ),
        (
            "capabilities: { net.egress: [{ tier: auto, domains: [a.com, '**.api.a.com', '**.www.a.com', '**.x.a.com', '**.x0.a.com', '**.x7.a.com'] }] }",
            "capabilities: { net.egress: [{ tier: auto, domains: ['**.a.com'] }] }",
        ),
        (
            "capabilities: { fs.scope: [{ tier: auto, read: [/home], deny: ['~/.netrc'] }] }",
            &format!("capabilities: {{ fs.scope: [{{ tier: auto, read: [/home], {homes} }}] }}"),
        ),
    ] {
        let version = |body: &str| {
            let dir = tempfile::tempdir().unwrap();
            copy(&fixtures().join("set"), dir.path());
            std::fs::remove_dir_all(dir.path().join("capabilities")).unwrap();
            std::fs::create_dir(dir.path().join("capabilities")).unwrap();
            std::fs::write(dir.path().join("capabilities/mail.yaml"), mail).unwrap();
            let image = format!("polctl: v1\nsubject: {{ image: a }}\n{body}\n");
            std::fs::write(dir.path().join("capabilities/a.yaml"), &image).unwrap();
            let child = format!("polctl: v1\nsubject: {{ image: child }}\nparent: a.yaml\n{new}\n");
            std::fs::write(dir.path().join("child.yaml"), child).unwrap();
            dir
        };
        let (before, after) = (version(old), version(new));
        let (base, dir) = (before.path().to_str().unwrap(), after.path().to_str().unwrap());
        let output = polctl(&["diff", base, dir]);
        let shown = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.code() == Some(1) && shown.contains("widening"), "{new}: {shown}");
        // A child with the new values exceeds a parent with the old ones.
        let child = before.path().join("child.yaml");
        let output = polctl(&["diff", "--within", "capabilities/a.yaml", child.to_str().unwrap(), "-C", base]);
        let shown = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.code() == Some(1) && shown.contains("attenuation"), "{new}: {shown}");
        assert_eq!(polctl(&["diff", base, base]).status.code(), Some(0));
    }
}

/// Nothing behind the 16th segment is looked at, so nothing deeper is permitted.
#[test]
fn deeper_paths_are_refused() {
    let output = polctl(&["compile", "-C", fixtures().join("set").to_str().unwrap()]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(text.matches("context.depth > 16").count(), 2, "fs.scope and persistence");
}

/// What a control plane links: each template is valid, takes an agent or a session for its slot, and
/// permits only that one, and only until `context.expires`.
#[test]
fn templates_are_linked_for_one_session_and_end() {
    use cedar_policy::{
        Authorizer, Context, Decision, Entities, EntityUid, PolicyId, PolicySet, Request, SlotId, ValidationMode,
        Validator,
    };
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out");
    let set = fixtures().join("set");
    let output = polctl(&["compile", "-C", set.to_str().unwrap(), "-o", out.to_str().unwrap()]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = |name: &str| std::fs::read_to_string(out.join(name)).unwrap();
    let schema = cedar_policy::Schema::from_cedarschema_str(&text("schema.cedarschema")).unwrap().0;
    let mut templates: PolicySet = text("capability-templates.cedar").parse().unwrap();
    let validator = Validator::new(schema.clone());
    assert!(validator.validate(&templates, ValidationMode::Strict).validation_passed());
    let found: Vec<PolicyId> = templates
        .templates()
        .filter(|t| t.annotation("id") == Some("integration/mail/grants/email:read/permit/template"))
        .map(|t| t.id().clone())
        .collect();
    let [template] = found.as_slice() else { panic!("{found:?}") };
    let uid = |text: &str| -> EntityUid { text.parse().unwrap() };
    let session = uid("Capabilities::Session::\"s\"");
    let slot = [(SlotId::principal(), session)].into();
    templates.link(template.clone(), PolicyId::new("linked"), slot).unwrap();
    let ask = |of: &str, now: &str| {
        let context = serde_json::json!({
            "external": false, "sensitive": false, "lifecycle": 0, "capability": "email:read", "level": 0,
            "now": {"__extn": {"fn": "datetime", "arg": now}},
            "expires": {"__extn": {"fn": "datetime", "arg": "2026-12-01T18:00:00Z"}},
        });
        let action = uid("Capabilities::Action::\"grants/auto\"");
        let context = Context::from_json_value(context, Some((&schema, &action))).unwrap();
        let entities = serde_json::json!([
            {"uid": {"type": "Capabilities::Agent", "id": "a"}, "attrs": {}, "parents": [{"type": "Capabilities::Session", "id": of}]},
        ]);
        let entities = Entities::from_json_value(entities, None).unwrap();
        let agent = uid("Capabilities::Agent::\"a\"");
        let mail = uid("Capabilities::Integration::\"mail\"");
        let request = Request::new(agent, action, mail, context, Some(&schema)).unwrap();
        Authorizer::new().is_authorized(&request, &templates, &entities).decision()
    };
    assert_eq!(ask("s", "2026-12-01T17:59:59Z"), Decision::Allow);
    assert_eq!(ask("s", "2026-12-01T18:00:00Z"), Decision::Deny);
    assert_eq!(ask("other", "2026-12-01T17:59:59Z"), Decision::Deny);
}

/// What the zone `policy` protects is part of the guardrails: taking a pattern away, or putting another
/// in its place, opens paths that manifests let write.
#[test]
fn a_pattern_that_the_policy_zone_loses_opens_what_it_protected() {
    for (home, place, old, new) in [
        ("/srv/agents", "/srv/work", r#""**/secret.yaml""#, r#""**/other.yaml""#),
        ("/srv/agents", "/srv/work", r#""**/k/secret.yaml""#, r#""/nothing""#),
        ("/srv/agents", "/srv/work", r#""**/pol/*.yaml""#, r#""/srv/work/pol/x.yaml", "/srv/work/x/pol/x.yaml""#),
        ("/srv/agents", "/srv/work", r#""/srv/work/*.yaml""#, r#""/srv/work/x*.yaml""#),
        ("/home/bob", "/home/bob", r#""~/keep/x*""#, r#""~/keep/xx*""#),
        ("/srv/agents", "/srv/work", r#""/srv/work/p-*-q""#, r#""/srv/work/p-x-*""#),
    ] {
        let version = |zone: &str| {
            let dir = tempfile::tempdir().unwrap();
            let write = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).unwrap();
            std::fs::create_dir(dir.path().join("capabilities")).unwrap();
            write(
                "polctl.yaml",
                &format!(
                    "polctl: v1\nset: t\npolicies: [M.md]\nmanifests: [\"capabilities/*.yaml\"]\nzones: {{ policy: [{zone}] }}\n"
                ),
            );
            write("M.md", "---\npolctl: v1\nsurface: commands\nunmatched: 4\n---\n## Tier 4\n\n- `shutdown **`\n");
            write(
                "capabilities/a.yaml",
                &format!(
                    "polctl: v1\nsubject: {{ image: a }}\nhome: {home}\ncapabilities:\n  fs.scope: {{ tier: auto, write: [{place}] }}\n"
                ),
            );
            dir
        };
        let (before, after) = (version(old), version(new));
        let output = polctl(&["diff", before.path().to_str().unwrap(), after.path().to_str().unwrap()]);
        let shown = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.code() == Some(1) && shown.contains("image a: `write"), "{old} → {new}: {shown}");
    }
}

/// Manifests beside the set are compared with all that they grant, whoever declares it.
#[test]
fn manifests_beside_the_set_are_compared_whole() {
    let dir = tempfile::tempdir().unwrap();
    let manifest = |name: &str, body: &str| {
        let path = dir.path().join(name);
        std::fs::write(&path, format!("polctl: v1\nsubject: {{ integration: i-{name} }}\n{body}")).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let parent = manifest("p.yaml", "declares: [a:b]\ngrants:\n  a:b: { level: read }\n");
    let child =
        manifest("c.yaml", "grants:\n  a:b: { level: admin, requires_approval: true }\n  c:d: { level: read }\n");
    let set = fixtures().join("set");
    let output = polctl(&["diff", "--within", &parent, &child, "-C", set.to_str().unwrap()]);
    let shown = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(1), "{shown}");
    assert!(shown.contains("a:b at level organize") && shown.contains("c:d at level read"), "{shown}");
}
