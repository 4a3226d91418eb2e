//! `polctl diff --cedar` on the pairs of `fixtures/cedar`: the stated verdict, exactly the stated
//! request environments, and counterexamples that Cedar itself decides as they say.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::panic,
    reason = "a test that cannot go on fails"
)]

mod solver_common;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use cedar_policy::{Authorizer, Context, Decision, Entities, EntityUid, PolicySet, Request, Schema};
use serde::Deserialize;
use serde_json::Value;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Expected {
    #[expect(dead_code, reason = "for the reader of the fixture")]
    about: String,
    verdict: String,
    #[serde(default)]
    widens: Vec<Environment>,
    #[serde(default)]
    schema_findings: Vec<BTreeMap<String, String>>,
    #[serde(default)]
    example: Option<Example>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Environment {
    principal: String,
    action: String,
    resource: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Example {
    principal: String,
    action: String,
    resource: String,
    #[serde(default)]
    context: Value,
    #[serde(default)]
    entities: Value,
    #[serde(default)]
    old: Option<String>,
    #[serde(default)]
    valid_under: Option<String>,
}

fn pairs() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/cedar");
    let mut dirs: Vec<PathBuf> =
        std::fs::read_dir(root).unwrap().map(|e| e.unwrap().path()).filter(|p| p.is_dir()).collect();
    dirs.sort();
    dirs
}

fn expected(dir: &Path) -> Expected {
    serde_saphyr::from_str(&std::fs::read_to_string(dir.join("expect.yaml")).unwrap())
        .unwrap_or_else(|e| panic!("{}: {e}", dir.display()))
}

/// The arguments that compare a pair, `old` and `new` as named.
fn arguments(dir: &Path, (old, new): (&str, &str)) -> Vec<String> {
    let path = |name: &str| dir.join(name).to_str().unwrap().to_owned();
    let mut out = vec!["diff".into(), "--cedar".into(), path(old), path(new), "--schema".into()];
    out.push(path("schema.cedarschema"));
    for (file, option) in
        [("new.cedarschema", "--new-schema"), ("old.links.json", "--old-links"), ("new.links.json", "--new-links")]
    {
        if dir.join(file).exists() {
            out.extend([option.to_owned(), path(file)]);
        }
    }
    out
}

fn polctl(arguments: &[String]) -> (i32, Value) {
    let output =
        Command::new(env!("CARGO_BIN_EXE_polctl")).args(arguments).args(["--format", "json"]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let json = serde_json::from_str(&text)
        .unwrap_or_else(|e| panic!("{e}: {text} {}", String::from_utf8_lossy(&output.stderr)));
    (output.status.code().unwrap(), json)
}

fn findings<'j>(report: &'j Value, code: &str) -> Vec<&'j Value> {
    report["findings"].as_array().unwrap().iter().filter(|f| f["code"] == code).collect()
}

#[test]
fn every_pair_has_the_stated_verdict() {
    solver_common::solver();
    let mut verdicts: BTreeMap<String, usize> = BTreeMap::new();
    for dir in pairs() {
        let (name, want) = (dir.file_name().unwrap().to_str().unwrap(), expected(&dir));
        let (code, report) = polctl(&arguments(&dir, ("old.cedar", "new.cedar")));
        let open = findings(&report, "inconclusive").iter().any(|f| f["level"] == "error");
        let verdict = match () {
            () if !findings(&report, "widening").is_empty() => "widening",
            () if open => "inconclusive",
            () if !findings(&report, "narrowing").is_empty() => "narrowing",
            () => "clean",
        };
        assert_eq!(verdict, want.verdict, "{name}: {report:#}");
        let exit = match verdict {
            "widening" => 1,
            "inconclusive" => 3,
            _ => 0,
        };
        assert_eq!(code, exit, "{name}");
        let stated: BTreeSet<String> =
            want.widens.iter().map(|e| format!("{} {} {}", e.principal, e.action, e.resource)).collect();
        let found: BTreeSet<String> = findings(&report, "widening")
            .iter()
            .flat_map(|f| f["evidence"]["environments"].as_array().unwrap())
            .map(|e| e.as_str().unwrap().to_owned())
            .collect();
        assert_eq!(found, stated, "{name}");
        schema_findings(name, &want, &report);
        *verdicts.entry(verdict.to_owned()).or_default() += 1;
    }
    for (verdict, least) in [("widening", 25), ("clean", 15), ("narrowing", 5), ("inconclusive", 2)] {
        assert!(verdicts.get(verdict).is_some_and(|n| *n >= least), "{verdicts:?}");
    }
}

/// Each stated change of the schema is told.
fn schema_findings(name: &str, want: &Expected, report: &Value) {
    let told: Vec<&str> = findings(report, "schema-change").iter().map(|f| f["message"].as_str().unwrap()).collect();
    for (key, about) in want.schema_findings.iter().flatten() {
        let what = match key.as_str() {
            "now_optional" => "is optional now",
            "now_required" => "is required now",
            key if key.starts_with("new_") => "is new",
            _ => "is gone",
        };
        let last = about.rsplit([' ', ':']).next().unwrap();
        assert!(told.iter().any(|m| m.contains(last) && m.contains(what)), "{name}: `{about}` {what}: {told:?}");
    }
}

/// A version's policies with their links, as Cedar reads them.
fn policies(dir: &Path, which: &str) -> PolicySet {
    let mut set: PolicySet = std::fs::read_to_string(dir.join(format!("{which}.cedar"))).unwrap().parse().unwrap();
    let Ok(links) = std::fs::read_to_string(dir.join(format!("{which}.links.json"))) else { return set };
    for link in serde_json::from_str::<Value>(&links).unwrap().as_array().unwrap() {
        let id = |uid: &Value| uid.as_str().unwrap().parse::<EntityUid>().unwrap();
        let slots = link["args"].as_object().unwrap().iter().map(|(slot, uid)| {
            let slot =
                if slot == "?principal" { cedar_policy::SlotId::principal() } else { cedar_policy::SlotId::resource() };
            (slot, id(uid))
        });
        let slots = slots.collect();
        let name = link["template_id"].as_str().unwrap();
        let template = set.templates().find(|t| t.annotation("id") == Some(name)).unwrap().id().clone();
        set.link(template, cedar_policy::PolicyId::new(link["link_id"].as_str().unwrap()), slots).unwrap();
    }
    set
}

fn schema(dir: &Path, which: &str) -> Schema {
    let new = dir.join("new.cedarschema");
    let path = if which == "new" && new.exists() { new } else { dir.join("schema.cedarschema") };
    Schema::from_cedarschema_str(&std::fs::read_to_string(path).unwrap()).unwrap().0
}

/// What Cedar decides; `None` where the schema does not have the request or the entities.
fn decide(dir: &Path, which: &str, request: &Value, entities: &Value, checked: bool) -> Option<Decision> {
    let schema = schema(dir, which);
    let uid = |key: &str| request[key].as_str().unwrap().parse::<EntityUid>().unwrap();
    let context = if request["context"].is_null() { serde_json::json!({}) } else { request["context"].clone() };
    let entities = if entities.is_null() { serde_json::json!([]) } else { entities.clone() };
    let known = if checked { Some(&schema) } else { None };
    let action = uid("action");
    let context = Context::from_json_value(context, known.map(|schema| (schema, &action))).ok()?;
    let request = Request::new(uid("principal"), uid("action"), uid("resource"), context, known).ok()?;
    let mut entities = Entities::from_json_value(entities, known).ok()?;
    if !checked {
        let actions = schema.action_entities().unwrap();
        let missing: Vec<_> = actions.iter().filter(|a| entities.get(&a.uid()).is_none()).cloned().collect();
        entities = entities.add_entities(missing, None).ok()?;
    }
    Some(Authorizer::new().is_authorized(&request, &policies(dir, which), &entities).decision())
}

#[test]
fn every_example_and_every_counterexample_reproduces() {
    let mut counted = 0;
    for dir in pairs() {
        let (name, want) = (dir.file_name().unwrap().to_str().unwrap(), expected(&dir));
        if let Some(example) = &want.example {
            let request = serde_json::json!({
                "principal": example.principal, "action": example.action,
                "resource": example.resource, "context": example.context,
            });
            let new = decide(&dir, "new", &request, &example.entities, example.valid_under.as_deref() != Some("old"));
            assert_eq!(new, Some(Decision::Allow), "{name}: the stated example");
            let old = decide(&dir, "old", &request, &example.entities, true);
            let stated = if example.old.as_deref() == Some("rejects") { None } else { Some(Decision::Deny) };
            assert_eq!(old, stated, "{name}: the stated example");
        }
        let (_, report) = polctl(&arguments(&dir, ("old.cedar", "new.cedar")));
        for finding in findings(&report, "widening") {
            let evidence = &finding["evidence"];
            let decided = |which: &str| decide(&dir, which, &evidence["request"], &evidence["entities"], false);
            assert_eq!(decided("new"), Some(Decision::Allow), "{name}: {evidence:#}");
            // What the old schema cannot say was denied whatever the policies say.
            let said = decide(&dir, "old", &evidence["request"], &evidence["entities"], true).is_some();
            assert!(decided("old") == Some(Decision::Deny) || !said, "{name}: {evidence:#}");
            counted += 1;
        }
    }
    assert!(counted >= 40, "{counted}");
}

#[test]
fn a_version_against_itself_and_against_its_layout_is_clean() {
    for dir in pairs() {
        if dir.join("new.cedarschema").exists() {
            continue;
        }
        for which in ["old.cedar", "new.cedar"] {
            let mut arguments = arguments(&dir, (which, which));
            arguments.retain(|a| !a.contains("links"));
            let scratch = tempfile::tempdir().unwrap();
            // Other white space, other order, comments: the same meaning.
            let text = std::fs::read_to_string(dir.join(which)).unwrap();
            let set: PolicySet = text.parse().unwrap();
            if set.templates().next().is_some() {
                continue;
            }
            let mut texts: Vec<String> =
                set.policies().map(|p| format!("// moved\n{}\n\n", p.to_cedar().unwrap())).collect();
            texts.reverse();
            let moved = scratch.path().join("moved.cedar");
            std::fs::write(&moved, texts.concat()).unwrap();
            moved.to_str().unwrap().clone_into(&mut arguments[3]);
            arguments.push("--solver".into());
            arguments.push("/nonexistent/solver".into());
            let (code, report) = polctl(&arguments);
            assert_eq!((code, report["findings"].as_array().unwrap().len()), (0, 0), "{}: {report:#}", dir.display());
        }
    }
}
