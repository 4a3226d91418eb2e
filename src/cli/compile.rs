//! `polctl compile`: policies, schema and index.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::Path;

use serde::Serialize;

use super::args::{CompileArgs, OutputArgs};
use super::session::{Failure, exit_code, read, working_tree};
use super::{exit, output};
use crate::analyze::{enforcement, validate, validate_capabilities};
use crate::compile::{
    BUNDLE_NAME, Compiled, Effect, Policy, bundle, capability_text, render, schema_of, template_text,
};
use crate::diag::{Level, sort};
use crate::model::{Class, FACTS_VERSION, Surface, System};
use crate::report::Report;
use crate::source::{SourceMap, Tree};

#[derive(Serialize)]
struct Index<'a> {
    version: u32,
    set: &'a str,
    policy_id: String,
    facts_version: u32,
    zones: BTreeMap<&'a str, Vec<String>>,
    trusted_dirs: &'a [String],
    allowed_env: &'a [String],
    policies: Vec<Entry<'a>>,
}

#[derive(Serialize)]
struct Entry<'a> {
    id: &'a str,
    effect: &'static str,
    tiers: Vec<u8>,
    source: String,
    rule: Option<String>,
    why: Option<&'a str>,
}

pub(super) fn run(args: &CompileArgs) -> Result<u8, Failure> {
    let tree = working_tree(&args.dir)?;
    let mut map = SourceMap::new();
    let mut findings = Vec::new();
    let compiled = read(&tree, &mut map, &mut findings)?;
    let Some(compiled) = compiled else {
        sort(&mut findings);
        let report = Report {
            command: "compile",
            compared: None,
            policy_ids: (None, None),
            rules: None,
            exit_code: exit_code(&findings, false).max(exit::USAGE),
            findings,
        };
        return Ok(output::report(&report, &map, &OutputArgs::default()));
    };
    findings.retain(|f| f.level == Level::Error);
    if !findings.is_empty() {
        sort(&mut findings);
        let report = Report {
            command: "compile",
            compared: None,
            policy_ids: (None, None),
            rules: None,
            exit_code: exit_code(&findings, false),
            findings,
        };
        return Ok(output::report(&report, &map, &OutputArgs::default()));
    }
    let all: Vec<&Policy> = compiled.generated().collect();
    validate(&compiled, &all, &map)?;
    validate_capabilities(&compiled, &map)?;
    if let Some(target) = args.target {
        return Ok(output::print(&enforcements(&compiled, target)).map_or_else(|code| code, |()| exit::OK));
    }
    if args.bundle {
        let sources = sources(&tree, &map)?;
        let bytes = bundle(&compiled, &map, &sources);
        write_one(&args.dir.join(BUNDLE_NAME), &bytes)?;
        let text = format!(
            "polctl compile: `{BUNDLE_NAME}` with {} policies, {} bytes\npolicy_id {}\n",
            compiled.generated().count() + compiled.guardrails.len(),
            bytes.len(),
            compiled.policy_id()
        );
        return Ok(output::print(&text).map_or_else(|code| code, |()| exit::OK));
    }
    let files = files(&compiled, &map)?;
    match &args.output {
        None => {
            let text: String =
                files.iter().filter(|(name, _)| name.ends_with(".cedar")).map(|(_, text)| text.as_str()).collect();
            Ok(output::print(&text).map_or_else(|code| code, |()| exit::OK))
        }
        Some(dir) => {
            write_all(dir, &files)?;
            let text = format!(
                "polctl compile: {} policies from {} rules in `{}`\npolicy_id {}\n",
                compiled.generated().count() + compiled.capabilities.len() + compiled.guardrails.len(),
                compiled.set.rules.len(),
                dir.display(),
                compiled.policy_id()
            );
            Ok(output::print(&text).map_or_else(|code| code, |()| exit::OK))
        }
    }
}

/// Every file with its text, in order of name.
pub(super) fn files(compiled: &Compiled, map: &SourceMap) -> Result<BTreeMap<String, String>, Failure> {
    let mut files = BTreeMap::new();
    for surface in compiled.set.surfaces.keys() {
        let mut text = head(*surface, compiled);
        for policy in compiled.generated().filter(|p| p.surface == *surface) {
            text.push('\n');
            text.push_str(&render(compiled, policy, map).text);
        }
        files.insert(format!("{surface}.cedar"), pretty(&text)?);
    }
    if !compiled.capabilities.is_empty() {
        let all = compiled.capabilities.iter().map(|policy| capability_text(policy, map));
        files.insert("capabilities.cedar".into(), pretty(&capability_head(compiled, "policies", all))?);
        let all = compiled.capabilities.iter().filter_map(|policy| template_text(policy, map));
        files.insert(
            "capability-templates.cedar".into(),
            pretty(&capability_head(compiled, "templates to link for a session", all))?,
        );
    }
    if !compiled.guardrails.is_empty() {
        let text: String = compiled.guardrails.iter().map(|g| format!("{}\n", g.text)).collect();
        files.insert("guardrails.cedar".into(), pretty(&text)?);
    }
    files.insert("schema.cedarschema".into(), schema_of(&compiled.set));
    files.insert("index.json".into(), index(compiled, map));
    Ok(files)
}

fn head(surface: Surface, compiled: &Compiled) -> String {
    format!(
        "// {} of policy set {}, compiled by polctl. Do not edit: each policy names the line it comes from.\n",
        surface.name(),
        compiled.set.config.set
    )
}

fn capability_head(compiled: &Compiled, what: &str, texts: impl Iterator<Item = String>) -> String {
    let mut out = format!(
        "// capabilities of policy set {}: {what}, compiled by polctl. Do not edit: each names the line it comes from.\n",
        compiled.set.config.set
    );
    for text in texts {
        out.push('\n');
        out.push_str(&text);
    }
    out
}

/// What a system enforces of each class, and which manifests rely on the rest.
fn enforcements(compiled: &Compiled, target: System) -> String {
    let mut out = format!("what {target} enforces of each class\n");
    for row in enforcement(target) {
        let users = compiled.set.manifests.iter().filter(|manifest| match row.class {
            Class::Grant => !manifest.grants.is_empty(),
            class => manifest.entries_of(class).next().is_some(),
        });
        let users: Vec<String> = users.map(|manifest| manifest.subject.to_string()).collect();
        out.push_str(&format!("\n{}\n", row.class));
        out.push_str(&format!("  the system: {}\n", row.system.unwrap_or("nothing")));
        out.push_str(&format!("  beyond it:  {}\n", row.beyond.unwrap_or("nothing")));
        if !users.is_empty() {
            out.push_str(&format!("  used by:    {}\n", users.join(", ")));
        }
    }
    out
}

/// Cedar's own formatting.
fn pretty(text: &str) -> Result<String, Failure> {
    cedar_policy_formatter::policies_str_to_pretty(text, &cedar_policy_formatter::Config::default())
        .map_err(|error| Failure::Compile(crate::compile::CompileError::Validation { message: format!("{error:#}") }))
}

fn index(compiled: &Compiled, map: &SourceMap) -> String {
    let config = &compiled.set.config;
    let entries = compiled.generated().map(|policy| {
        let rule = compiled.rule_of(policy);
        Entry {
            id: &policy.id,
            effect: match policy.effect {
                Effect::Permit => "permit",
                Effect::Forbid => "forbid",
            },
            tiers: policy.rungs.clone().collect(),
            source: rule.map_or_else(|| "built-in".to_owned(), |r| map.line_ref(r.span)),
            rule: rule.map(crate::model::Rule::normalised),
            why: rule.map(|r| r.why.as_str()).filter(|why| !why.is_empty()),
        }
    });
    let index = Index {
        version: 1,
        set: &config.set,
        policy_id: compiled.policy_id(),
        facts_version: FACTS_VERSION,
        zones: config
            .zones
            .names()
            .map(|name| {
                let patterns = config.zones.get(name).map(|(p, _)| p.iter().map(ToString::to_string).collect());
                (name, patterns.unwrap_or_default())
            })
            .collect(),
        trusted_dirs: &config.trusted_dirs,
        allowed_env: &config.allowed_env,
        policies: entries.collect(),
    };
    let mut text = serde_json::to_string_pretty(&index).unwrap_or_default();
    text.push('\n');
    text
}

/// The files that the set was loaded from, as they are.
pub(super) fn sources(tree: &dyn Tree, map: &SourceMap) -> Result<Vec<(String, Vec<u8>)>, Failure> {
    let names = map.files().filter(|file| file.origin.is_none()).map(|file| file.name.clone());
    names.map(|name| Ok((name.clone(), tree.read(&name)?))).collect()
}

/// Writes a file beside its place and moves it there.
pub(super) fn write_one(target: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let failed = |source: std::io::Error| Failure::Write { what: format!("`{}`", target.display()), source };
    let dir = target.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut file = readable().tempfile_in(dir).map_err(failed)?;
    file.write_all(bytes).and_then(|()| file.as_file().sync_all()).map_err(failed)?;
    file.persist(target).map_err(|error| failed(error.error))?;
    Ok(())
}

/// Writes each file beside its place and moves it there, so that none is ever half written.
fn write_all(dir: &Path, files: &BTreeMap<String, String>) -> Result<(), Failure> {
    let failed = |what: &Path, source: std::io::Error| Failure::Write { what: format!("`{}`", what.display()), source };
    std::fs::create_dir_all(dir).map_err(|e| failed(dir, e))?;
    let mut staged = Vec::new();
    for (name, text) in files {
        let target = dir.join(name);
        let mut file = readable().tempfile_in(dir).map_err(|e| failed(&target, e))?;
        file.write_all(text.as_bytes()).and_then(|()| file.as_file().sync_all()).map_err(|e| failed(&target, e))?;
        staged.push((file, target));
    }
    for (file, target) in staged {
        file.persist(&target).map_err(|e| failed(&target, e.error))?;
    }
    Ok(())
}

/// Temporary files that end as ordinary ones: what the process' mask allows, not the owner alone.
pub(super) fn readable() -> tempfile::Builder<'static, 'static> {
    #[cfg_attr(not(unix), expect(unused_mut, reason = "only Unix has modes"))]
    let mut builder = tempfile::Builder::new();
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    builder
}
