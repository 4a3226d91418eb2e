//! A whole policy set: configuration, tier maps and guardrails from one tree.

use std::collections::{BTreeMap, BTreeSet};

use super::credentials::parse_inventory;
use super::{Sink, config, listed, manifest, nearest, text, tier_map};
use crate::diag::{Code, Finding, Kind, info};
use crate::model::{Config, Glob, Manifest, PolicySet, Rule, SetTerm, Surface, SurfaceInfo, Tier, Zones};
use crate::source::{FileId, MAX_FILES, SourceError, SourceMap, Span, Tree};

/// Name of the configuration file.
pub const CONFIG_NAME: &str = "polctl.yaml";

/// Reads a policy set. Findings go to `sink`; `None` when some of them say that the input is
/// malformed, since a set that was read in part must not be judged.
///
/// # Errors
///
/// A [`SourceError`] when a file that is named cannot be read at all.
pub fn load(tree: &dyn Tree, map: &mut SourceMap, sink: &mut Sink) -> Result<Option<PolicySet>, SourceError> {
    let mut own = Vec::new();
    let result = read(tree, map, &mut own);
    let malformed = own.iter().any(|f| info(f.code).kind == Kind::Malformed);
    if let Ok(Some(set)) = &result {
        for finding in &mut own {
            if let Some(level) = set.config.levels.get(&finding.code) {
                finding.level = finding.level.max(*level);
            }
        }
    }
    sink.append(&mut own);
    Ok(result?.filter(|_| !malformed))
}

fn read(tree: &dyn Tree, map: &mut SourceMap, sink: &mut Sink) -> Result<Option<PolicySet>, SourceError> {
    let Some(config) = file(tree, map, sink, CONFIG_NAME)?.and_then(|id| config::parse(id, map, sink)) else {
        return Ok(None);
    };
    if config.policies.len() > MAX_FILES {
        return Err(SourceError::TooMany { tree: tree.label() });
    }
    let mut set = PolicySet {
        surfaces: BTreeMap::new(),
        rules: Vec::new(),
        guardrails: Vec::new(),
        manifests: Vec::new(),
        inventory: None,
        config,
    };
    let mut read = BTreeSet::new();
    for (path, span) in set.config.policies.clone() {
        // Both were reported with the configuration.
        if !crate::source::is_plain_relative(&path) || !read.insert(path.clone()) {
            continue;
        }
        let id = match file(tree, map, sink, &path) {
            Ok(id) => id,
            Err(error) => {
                sink.push(unreadable(&error, span));
                continue;
            }
        };
        let Some(parsed) = id.and_then(|id| tier_map::parse(id, map, sink)) else { continue };
        surface(&mut set, parsed.surface, parsed.unmatched, parsed.span, sink);
        set.rules.extend(parsed.rules);
    }
    guardrails(tree, map, sink, &mut set)?;
    manifests(tree, map, sink, &mut set)?;
    inventory(tree, map, sink, &mut set);
    check_ids(&set.rules, sink);
    check_zones(&set.config, &set.rules, sink);
    Ok(Some(set))
}

/// Reads a manifest that stands in no set. `None` after findings.
pub fn parse_manifest(path: &str, bytes: &[u8], map: &mut SourceMap, sink: &mut Sink) -> Option<Manifest> {
    let (id, readable) = text::decode(map, sink, path, None, bytes);
    let mut own = Vec::new();
    let manifest = readable.then(|| manifest::parse(id, path, map, &mut own)).flatten().filter(|_| own.is_empty());
    sink.append(&mut own);
    manifest
}

/// A file that the configuration names and that cannot be read: reported where it is named.
fn unreadable(error: &SourceError, span: Span) -> Finding {
    let finding = Finding::new(Code::INVALID_VALUE, span, error.to_string());
    match miette::Diagnostic::help(error) {
        Some(help) => finding.help(help.to_string()),
        None => finding.help("check the name; paths are relative to `polctl.yaml`"),
    }
}

/// Reads and decodes one file; `None` after findings about its bytes.
fn file(tree: &dyn Tree, map: &mut SourceMap, sink: &mut Sink, path: &str) -> Result<Option<FileId>, SourceError> {
    let bytes = tree.read(path)?;
    let (id, readable) = text::decode(map, sink, path, tree.origin().as_deref(), &bytes);
    Ok(readable.then_some(id))
}

fn surface(set: &mut PolicySet, surface: Surface, unmatched: Tier, span: Span, sink: &mut Sink) {
    let known = *set.surfaces.entry(surface).or_insert(SurfaceInfo { unmatched, span });
    if known.unmatched != unmatched {
        sink.push(
            Finding::new(
                Code::SURFACE_CONFLICT,
                span,
                format!("this file states `unmatched: {unmatched}` for {surface}, another one {}", known.unmatched),
            )
            .related(known.span, "the other file of the surface")
            .help("files of one surface are one set; state the same `unmatched` in each (2 when left out)"),
        );
    }
}

/// The files that globs of the configuration name, with the place of the glob.
fn named(tree: &dyn Tree, globs: &[(String, Span)], sink: &mut Sink) -> Result<BTreeMap<String, Span>, SourceError> {
    let mut paths: BTreeMap<String, Span> = BTreeMap::new();
    for (pattern, span) in globs {
        let (dir, name) = pattern.rsplit_once('/').unwrap_or(("", pattern));
        let prefix = if dir.is_empty() { String::new() } else { format!("{dir}/") };
        let names = if name.contains('*') {
            let glob = Glob::from_stars(name);
            let listed = match tree.list(dir) {
                Err(SourceError::NotFound { .. }) => Vec::new(),
                other => other?,
            };
            let found: Vec<String> = listed.into_iter().filter(|n| glob.matches(n)).collect();
            if found.is_empty() {
                sink.push(
                    Finding::new(Code::INVALID_VALUE, *span, format!("`{pattern}` names no file"))
                        .help("remove the line, or add the file"),
                );
            }
            found
        } else {
            vec![name.to_owned()]
        };
        paths.extend(names.into_iter().map(|n| (format!("{prefix}{n}"), *span)));
    }
    Ok(paths)
}

fn guardrails(tree: &dyn Tree, map: &mut SourceMap, sink: &mut Sink, set: &mut PolicySet) -> Result<(), SourceError> {
    for (path, span) in named(tree, &set.config.guardrails, sink)? {
        match file(tree, map, sink, &path) {
            Ok(Some(id)) => {
                let text = map.text(id).to_owned();
                set.guardrails.push((Span::new(id, 0, text.len()), text));
            }
            Ok(None) => {}
            Err(error) => sink.push(unreadable(&error, span)),
        }
    }
    Ok(())
}

fn manifests(tree: &dyn Tree, map: &mut SourceMap, sink: &mut Sink, set: &mut PolicySet) -> Result<(), SourceError> {
    let paths = named(tree, &set.config.manifests, sink)?;
    if paths.len() > MAX_FILES {
        return Err(SourceError::TooMany { tree: tree.label() });
    }
    for (path, span) in paths {
        match file(tree, map, sink, &path) {
            Ok(id) => set.manifests.extend(id.and_then(|id| manifest::parse(id, &path, map, sink))),
            Err(error) => sink.push(unreadable(&error, span)),
        }
    }
    manifest::check(&set.manifests, sink);
    Ok(())
}

fn inventory(tree: &dyn Tree, map: &mut SourceMap, sink: &mut Sink, set: &mut PolicySet) {
    let Some((path, span)) = &set.config.inventory else { return };
    match tree.read(path) {
        Ok(bytes) => set.inventory = parse_inventory(path, tree.origin().as_deref(), &bytes, map, sink),
        Err(error) => sink.push(unreadable(&error, *span)),
    }
}

/// Ids that were stated must name one rule of a surface.
fn check_ids(rules: &[Rule], sink: &mut Sink) {
    let mut seen: BTreeMap<(Surface, &str), &Rule> = BTreeMap::new();
    for rule in rules {
        let first = *seen.entry((rule.surface, rule.id.as_str())).or_insert(rule);
        if !std::ptr::eq(first, rule) && first.normalised() != rule.normalised() {
            sink.push(
                Finding::new(Code::DUPLICATE_ID, rule.span, format!("the id `{}` names another rule already", rule.id))
                    .related(first.span, "the other rule")
                    .help("give each rule its own id, or none"),
            );
        }
    }
}

/// Zones that `when` speaks of must exist.
fn check_zones(config: &Config, rules: &[Rule], sink: &mut Sink) {
    for rule in rules {
        for (fact, term) in [("writes", &rule.when.writes), ("names", &rule.when.names)] {
            let Some(SetTerm::In(zones)) = term else { continue };
            for zone in zones {
                if config.zones.contains(zone) || zone == Zones::ELSEWHERE {
                    continue;
                }
                let known: Vec<&str> = config.zones.names().collect();
                sink.push(
                    Finding::new(
                        Code::ATTRIBUTE,
                        rule.span,
                        format!("`{fact}={zone}` speaks of a zone that is not declared"),
                    )
                    .help(format!(
                        "{}zones are {}; declare more under `zones` in `polctl.yaml`",
                        nearest(zone, &known),
                        listed(&known)
                    )),
                );
            }
        }
    }
}
