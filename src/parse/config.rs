//! `polctl.yaml` → [`Config`] and findings (DESIGN 2).

use std::collections::{BTreeMap, BTreeSet};

use super::yaml::{self, Kind, Node};
use super::{CONFIG_NAME, Sink, listed, nearest, text};
use crate::diag::{CODES, Code, Finding, Level, info};
use crate::model::{
    Config, DEFAULT_ALLOWED_ENV, DEFAULT_ENVELOPE, DEFAULT_TRUSTED_DIRS, PathPattern, Provenance, Zones,
};
use crate::source::{FileId, SourceError, SourceMap, Span, Tree, is_plain_relative};

const KEYS: [&str; 13] = [
    "polctl",
    "set",
    "policies",
    "guardrails",
    "zones",
    "trusted_dirs",
    "allowed_env",
    "provenance",
    "levels",
    "manifests",
    "retention",
    "census",
    "signing",
];

/// Files of a policy directory whose place an envelope must not take, beside those that the
/// configuration names: the configuration, and what `polctl compile --bundle` writes.
const TAKEN: [&str; 2] = [CONFIG_NAME, "polctl.bundle"];

/// Reads the configuration. `None` after findings that leave nothing to work with.
pub(super) fn parse(file: FileId, map: &SourceMap, sink: &mut Sink) -> Option<Config> {
    let text = map.text(file);
    let start = Span::new(file, 0, text.lines().next().map_or(0, str::len));
    if text.trim().is_empty() {
        sink.push(
            Finding::new(Code::MISSING_KEY, start, "the configuration is empty")
                .help("it begins with `polctl: v1`, `set: NAME` and `policies: [CLAUDE_CMDS.md]`"),
        );
        return None;
    }
    let root = yaml::read(file, 0, text, sink)?;
    let entries = root.entries("the configuration", sink);
    let mut config = Config {
        file,
        set: String::new(),
        policies: Vec::new(),
        guardrails: Vec::new(),
        manifests: Vec::new(),
        zones: Zones::built_in(start),
        trusted_dirs: sorted(DEFAULT_TRUSTED_DIRS.map(str::to_owned)),
        trusted_dirs_span: start,
        allowed_env: sorted(DEFAULT_ALLOWED_ENV.map(str::to_owned)),
        allowed_env_span: start,
        provenance: Provenance::Enforce,
        provenance_span: start,
        envelope: DEFAULT_ENVELOPE.to_owned(),
        inventory: None,
        retention: None,
        levels: BTreeMap::new(),
    };
    let mut seen = BTreeSet::new();
    for (key, value) in entries {
        seen.insert(key.name.as_str());
        entry(&mut config, &key.name, key.span, value, sink);
    }
    if let Some((_, value)) = entries.iter().find(|(key, _)| key.name == "signing") {
        signing(&mut config, value, sink);
    }
    for (name, help) in [
        ("polctl", "write `polctl: v1` as the first line"),
        ("set", "name the policy set: `set: fleet-prod`"),
        ("policies", "list the tier maps: `policies: [CLAUDE_CMDS.md]`"),
    ] {
        if !seen.contains(name) && matches!(root.kind, Kind::Map(_)) {
            sink.push(Finding::new(Code::MISSING_KEY, start, format!("the key `{name}` is missing")).help(help));
        }
    }
    Some(config)
}

fn sorted(values: impl IntoIterator<Item = String>) -> Vec<String> {
    let set: BTreeSet<String> = values.into_iter().collect();
    set.into_iter().collect()
}

fn entry(config: &mut Config, name: &str, key: Span, value: &Node, sink: &mut Sink) {
    match name {
        "polctl" => {
            if let Some(version) = value.scalar("`polctl`", sink)
                && version != "v1"
            {
                sink.push(
                    Finding::new(Code::INVALID_VALUE, value.span, format!("`{version}` is no version of the format"))
                        .help("this polctl reads `polctl: v1`"),
                );
            }
        }
        "set" => set_name(config, value, sink),
        "policies" => {
            config.policies = value.scalars("`policies`", sink);
            for (path, span) in &config.policies {
                if !is_plain_relative(path) {
                    sink.push(
                        Finding::new(
                            Code::INVALID_VALUE,
                            *span,
                            format!("`{path}` is not a path below this directory"),
                        )
                        .help("write it relative to `polctl.yaml`, without `..`"),
                    );
                }
            }
            duplicates(&config.policies, sink);
            if config.policies.is_empty() {
                sink.push(
                    Finding::new(Code::INVALID_VALUE, value.span, "`policies` lists no file")
                        .help("list the tier maps: `policies: [CLAUDE_CMDS.md]`"),
                );
            }
        }
        "guardrails" => {
            config.guardrails = value.scalars("`guardrails`", sink);
            for (path, span) in &config.guardrails {
                if !is_plain_relative(path) || !path.ends_with(".cedar") || path.contains("**") {
                    sink.push(
                        Finding::new(Code::INVALID_VALUE, *span, format!("`{path}` is no name of a guardrail file"))
                            .help("write `guardrails/name.cedar` or `guardrails/*.cedar`"),
                    );
                }
            }
        }
        "zones" => zones(config, value, sink),
        "trusted_dirs" => trusted_dirs(config, key, value, sink),
        "allowed_env" => allowed_env(config, key, value, sink),
        "provenance" => {
            config.provenance_span = Span::new(key.file, key.start, value.span.end);
            match value.scalar("`provenance`", sink) {
                Some("enforce") | None => {}
                Some("off" | "false") => config.provenance = Provenance::Off,
                Some(other) => sink.push(
                    Finding::new(Code::INVALID_VALUE, value.span, format!("`{other}` is no setting of `provenance`"))
                        .help("write `enforce` or `off`"),
                ),
            }
        }
        "levels" => levels(config, value, sink),
        "manifests" => {
            config.manifests = value.scalars("`manifests`", sink);
            for (path, span) in &config.manifests {
                let yaml = path.ends_with(".yaml") || path.ends_with(".yml");
                if !is_plain_relative(path) || !yaml || path.contains("**") {
                    sink.push(
                        Finding::new(Code::INVALID_VALUE, *span, format!("`{path}` is no name of a manifest"))
                            .help("write `capabilities/name.yaml` or `capabilities/*.yaml`"),
                    );
                }
            }
        }
        // Read last, when the names of all other files are known.
        "signing" => {}
        "census" => census(config, value, sink),
        "retention" => retention(config, value, sink),
        _ => sink.push(
            Finding::new(Code::UNKNOWN_KEY, key, format!("`{name}` is no key of the configuration")).help(format!(
                "{}keys are {}",
                nearest(name, &KEYS),
                listed(&KEYS)
            )),
        ),
    }
}

/// `census: { inventory: FILE }`.
fn census(config: &mut Config, value: &Node, sink: &mut Sink) {
    for (key, value) in value.entries("`census`", sink) {
        if key.name != "inventory" {
            sink.push(
                Finding::new(Code::UNKNOWN_KEY, key.span, format!("`{}` is no key of `census`", key.name))
                    .help(format!("{}the only key is `inventory`", nearest(&key.name, &["inventory"]))),
            );
            continue;
        }
        let Some(path) = value.scalar("`inventory`", sink) else { continue };
        if is_plain_relative(path) && (path.ends_with(".yaml") || path.ends_with(".yml")) {
            config.inventory = Some((path.to_owned(), value.span));
        } else {
            sink.push(
                Finding::new(Code::INVALID_VALUE, value.span, format!("`{path}` is no name of an inventory"))
                    .help("write a path relative to `polctl.yaml`, such as `credentials.yaml`"),
            );
        }
    }
}

/// `signing: { envelope: NAME }`: a file of its own in the policy directory, never elsewhere,
/// since whoever looks for the envelope has not verified this file yet.
fn signing(config: &mut Config, value: &Node, sink: &mut Sink) {
    for (key, value) in value.entries("`signing`", sink) {
        if key.name != "envelope" {
            sink.push(
                Finding::new(Code::UNKNOWN_KEY, key.span, format!("`{}` is no key of `signing`", key.name))
                    .help(format!("{}the only key is `envelope`", nearest(&key.name, &["envelope"]))),
            );
            continue;
        }
        let Some(name) = value.scalar("`envelope`", sink) else { continue };
        let taken = |other: &str| other.eq_ignore_ascii_case(name);
        if !is_file_name(name) {
            sink.push(
                Finding::new(Code::INVALID_VALUE, value.span, format!("`{name}` is no plain file name")).help(format!(
                    "the envelope lies in the policy directory itself: write a name such as `{DEFAULT_ENVELOPE}`, of letters, digits, `.`, `_` and `-`"
                )),
            );
        } else if TAKEN.into_iter().any(taken)
            || config.policies.iter().any(|(path, _)| taken(path))
            || name.to_ascii_lowercase().ends_with(".cedar")
        {
            sink.push(
                Finding::new(
                    Code::INVALID_VALUE,
                    value.span,
                    format!("`{name}` is the name of a policy file, and the envelope would take its place"),
                )
                .help(format!("give the envelope a name of its own, such as `{DEFAULT_ENVELOPE}`")),
            );
        } else {
            name.clone_into(&mut config.envelope);
        }
    }
}

fn is_file_name(name: &str) -> bool {
    name.len() <= 64
        && name.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
        && !name.ends_with('.')
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b))
}

/// `retention: retention.yaml`: the file is compared with that of the base (DESIGN 8).
fn retention(config: &mut Config, value: &Node, sink: &mut Sink) {
    let Kind::Scalar(path) = &value.kind else {
        sink.push(
            Finding::new(Code::INVALID_VALUE, value.span, "`retention` names a file")
                .help("write `retention: retention.yaml`; where the migrations lie is said in that file"),
        );
        return;
    };
    let yaml = path.ends_with(".yaml") || path.ends_with(".yml");
    if is_plain_relative(path) && yaml {
        config.retention = Some((path.clone(), value.span));
    } else {
        sink.push(
            Finding::new(
                Code::INVALID_VALUE,
                value.span,
                format!("`{path}` is no name of a file of retention classes"),
            )
            .help("write `retention: retention.yaml`; where the migrations lie is said in that file"),
        );
    }
}

/// Path of `retention.yaml` as a `polctl.yaml` in this tree names it, if there is one that does.
///
/// # Errors
///
/// A [`SourceError`] when the configuration is there and cannot be read.
pub fn retention_path(tree: &dyn Tree) -> Result<Option<String>, SourceError> {
    let bytes = match tree.read(CONFIG_NAME) {
        Ok(bytes) => bytes,
        Err(SourceError::NotFound { .. }) => return Ok(None),
        Err(error) => return Err(error),
    };
    let (mut map, mut sink) = (SourceMap::new(), Sink::new());
    let (id, readable) = text::decode(&mut map, &mut sink, CONFIG_NAME, None, &bytes);
    let config = readable.then(|| parse(id, &map, &mut sink)).flatten();
    Ok(config.and_then(|config| config.retention).map(|(path, _)| path))
}

/// What a configuration that nobody has verified yet says of the envelope's name, as it is
/// written there. It says where to look and nothing else: whoever uses it must refuse a name
/// that leads out of the policy directory, and must not take anything for good because of it.
pub fn unverified_envelope_name(bytes: &[u8]) -> Option<String> {
    // The hook asks before each command. Without the word, and without an escape that could spell
    // it, there is no such entry.
    if !bytes.contains(&b'\\') && memchr::memmem::find(bytes, b"signing").is_none() {
        return None;
    }
    let (mut map, mut sink) = (SourceMap::new(), Sink::new());
    let (id, readable) = text::decode(&mut map, &mut sink, CONFIG_NAME, None, bytes);
    let root = yaml::read(id, 0, map.text(id), &mut sink).filter(|_| readable)?;
    let entry = |node: &Node, name: &str| match &node.kind {
        Kind::Map(entries) => entries.iter().find(|(key, _)| key.name == name).map(|(_, value)| value.clone()),
        _ => None,
    };
    let value = entry(&entry(&root, "signing")?, "envelope")?;
    value.scalar("`envelope`", &mut sink).map(str::to_owned)
}

fn duplicates(values: &[(String, Span)], sink: &mut Sink) {
    let mut seen = BTreeSet::new();
    for (value, span) in values {
        if !seen.insert(value) {
            sink.push(
                Finding::new(Code::INVALID_VALUE, *span, format!("`{value}` is listed twice"))
                    .help("list each file once"),
            );
        }
    }
}

fn set_name(config: &mut Config, value: &Node, sink: &mut Sink) {
    let Some(name) = value.scalar("`set`", sink) else { return };
    let good =
        !name.is_empty() && name.len() <= 64 && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b));
    if good {
        name.clone_into(&mut config.set);
    } else {
        sink.push(
            Finding::new(Code::INVALID_VALUE, value.span, format!("`{name}` is no name for a policy set"))
                .help("use letters, digits, `.`, `_` and `-`, at most 64 of them"),
        );
    }
}

fn zones(config: &mut Config, value: &Node, sink: &mut Sink) {
    for (key, list) in value.entries("`zones`", sink) {
        let good = !key.name.is_empty()
            && key.name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_' || b == b'-');
        if !good || Zones::RESERVED.contains(&key.name.as_str()) {
            sink.push(
                Finding::new(Code::INVALID_VALUE, key.span, format!("`{}` cannot be the name of a zone", key.name))
                    .help(format!(
                        "use lower-case letters, digits, `-` and `_`; {} have a meaning already",
                        listed(&Zones::RESERVED)
                    )),
            );
            continue;
        }
        let mut patterns = BTreeSet::new();
        for (text, span) in list.scalars(&format!("the zone `{}`", key.name), sink) {
            match PathPattern::parse(&text) {
                Ok(pattern) => {
                    patterns.insert(pattern);
                }
                Err(why) => {
                    sink.push(
                        Finding::new(Code::INVALID_VALUE, span, format!("`{text}` is no path pattern")).help(why),
                    );
                }
            }
        }
        config.zones.declare(
            &key.name,
            patterns,
            Span::new(key.span.file, key.span.start, list.span.end.max(key.span.end)),
        );
    }
}

fn trusted_dirs(config: &mut Config, key: Span, value: &Node, sink: &mut Sink) {
    config.trusted_dirs_span = Span::new(key.file, key.start, value.span.end.max(key.end));
    let mut dirs = Vec::new();
    for (dir, span) in value.scalars("`trusted_dirs`", sink) {
        let plain = dir.strip_prefix('/').is_some_and(|d| is_plain_relative(d) && !d.contains(['*', '~', '$']));
        if plain {
            dirs.push(dir);
        } else {
            sink.push(
                Finding::new(Code::INVALID_VALUE, span, format!("`{dir}` is no absolute directory"))
                    .help("write it as `/usr/bin`: no wildcard, no `..`, no slash at the end"),
            );
        }
    }
    config.trusted_dirs = sorted(dirs);
}

fn allowed_env(config: &mut Config, key: Span, value: &Node, sink: &mut Sink) {
    config.allowed_env_span = Span::new(key.file, key.start, value.span.end.max(key.end));
    let mut names = Vec::new();
    for (name, span) in value.scalars("`allowed_env`", sink) {
        let good = !name.is_empty()
            && !name.starts_with(|c: char| c.is_ascii_digit())
            && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
        if good {
            names.push(name);
        } else {
            sink.push(
                Finding::new(Code::INVALID_VALUE, span, format!("`{name}` is no name of an environment variable"))
                    .help("use letters, digits and `_`; there are no wildcards"),
            );
        }
    }
    config.allowed_env = sorted(names);
}

fn levels(config: &mut Config, value: &Node, sink: &mut Sink) {
    for (key, level) in value.entries("`levels`", sink) {
        let Some(code) = Code::from_name(&key.name) else {
            let known: Vec<&str> = CODES.iter().map(|i| i.code.as_str()).collect();
            sink.push(
                Finding::new(Code::UNKNOWN_KEY, key.span, format!("`{}` is no finding code", key.name))
                    .help(format!("{}`polctl rule` lists all codes", nearest(&key.name, &known))),
            );
            continue;
        };
        let wanted = match level.scalar("a level", sink) {
            Some("warning") => Level::Warning,
            Some("error") => Level::Error,
            Some(other) => {
                sink.push(
                    Finding::new(Code::INVALID_VALUE, level.span, format!("`{other}` is no level"))
                        .help("write `warning` or `error`"),
                );
                continue;
            }
            None => continue,
        };
        if wanted < info(code).level {
            sink.push(
                Finding::new(
                    Code::INVALID_VALUE,
                    level.span,
                    format!("the level of `{}` can only be raised", key.name),
                )
                .help("an error stays an error; remove the line"),
            );
        } else {
            config.levels.insert(code, wanted);
        }
    }
}
