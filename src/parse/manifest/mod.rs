//! Capability manifests: YAML → [`Manifest`] and findings (DESIGN 4, docs/capabilities.md).

mod grant;
mod request;
mod scope;
mod values;

pub use request::capability_request;

use std::collections::{BTreeMap, BTreeSet};

use super::yaml::{self, Kind, Node};
use super::{Sink, listed, nearest};
use crate::diag::{Code, Finding};
use crate::model::{Class, Lifecycle, Manifest, RiskTier, Scope, Subject, SubjectKind, System, path_segments};
use crate::source::{FileId, SourceMap, Span, is_plain_relative};
use values::{identifier, name_of};

const KEYS: [&str; 11] = [
    "polctl",
    "subject",
    "parent",
    "administrative",
    "external",
    "home",
    "targets",
    "declares",
    "expires",
    "capabilities",
    "grants",
];

/// Reads a manifest. `None` after findings that leave no manifest.
pub(super) fn parse(file: FileId, path: &str, map: &SourceMap, sink: &mut Sink) -> Option<Manifest> {
    let text = map.text(file);
    let start = Span::new(file, 0, text.lines().next().map_or(0, str::len));
    if text.trim().is_empty() {
        sink.push(
            Finding::new(Code::MISSING_KEY, start, "the manifest is empty")
                .help("it begins with `polctl: v1` and `subject: { image: NAME }`"),
        );
        return None;
    }
    let root = yaml::read(file, 0, text, sink)?;
    let entries = root.entries("the manifest", sink);
    let find = |name: &str| entries.iter().find(|(key, _)| key.name == name);
    for (key, value) in entries {
        match key.name.as_str() {
            "polctl" => match value.scalar("`polctl`", sink) {
                Some("v1") | None => {}
                Some(version) => {
                    let message = format!("`{version}` is no version of the format");
                    sink.push(
                        Finding::new(Code::INVALID_VALUE, value.span, message).help("this polctl reads `polctl: v1`"),
                    );
                }
            },
            name if KEYS.contains(&name) => {}
            name => {
                sink.push(
                    Finding::new(Code::UNKNOWN_KEY, key.span, format!("`{name}` is no key of a manifest"))
                        .help(format!("{}keys are {}", nearest(name, &KEYS), listed(&KEYS))),
                );
            }
        }
    }
    for (name, help) in [
        ("polctl", "write `polctl: v1` as the first line"),
        ("subject", "say what the manifest is about: `subject: { image: NAME }`"),
    ] {
        if find(name).is_none() {
            sink.push(Finding::new(Code::MISSING_KEY, start, format!("the key `{name}` is missing")).help(help));
        }
    }
    let (key, value) = find("subject")?;
    let subject = subject(value, sink)?;
    let mut manifest = Manifest {
        file,
        path: path.to_owned(),
        span: Span::new(file, key.span.start, value.span.end.max(key.span.end)),
        parent: None,
        administrative: None,
        external: subject.kind == SubjectKind::Integration,
        home: None,
        targets: Vec::new(),
        declares: BTreeMap::new(),
        expires: None,
        entries: Vec::new(),
        grants: BTreeMap::new(),
        subject,
    };
    // What others depend on comes first, wherever it stands.
    for name in KEYS {
        let Some((key, value)) = find(name) else { continue };
        entry(&mut manifest, (&key.name, key.span), value, sink);
    }
    if manifest.subject.kind == SubjectKind::Session {
        for (key, help) in [
            ("expires", "say when the session ends: `expires: 2026-12-01T18:00:00Z`"),
            ("parent", "name the manifest of its image: what is linked for a session stays within it"),
        ] {
            if find(key).is_none() {
                let message = format!("a session's manifest needs `{key}`");
                sink.push(Finding::new(Code::MISSING_KEY, manifest.span, message).help(help));
            }
        }
    }
    Some(manifest)
}

fn subject(value: &Node, sink: &mut Sink) -> Option<Subject> {
    let entries = value.entries("`subject`", sink);
    let [(key, name)] = entries else {
        if matches!(value.kind, Kind::Map(_)) {
            sink.push(
                Finding::new(Code::INVALID_VALUE, value.span, "a manifest has one subject")
                    .help(format!("write one of {} with its name", listed(SubjectKind::NAMES))),
            );
        }
        return None;
    };
    let Some(kind) = SubjectKind::from_name(&key.name) else {
        sink.push(
            Finding::new(Code::UNKNOWN_KEY, key.span, format!("`{}` is no kind of subject", key.name)).help(format!(
                "{}kinds are {}",
                nearest(&key.name, SubjectKind::NAMES),
                listed(SubjectKind::NAMES)
            )),
        );
        return None;
    };
    let name = name
        .scalar("the subject's name", sink)
        .map(str::to_owned)
        .filter(|text| identifier(text, name.span, "the name of a subject", sink))?;
    Some(Subject { kind, name })
}

fn entry(manifest: &mut Manifest, (name, key): (&str, Span), value: &Node, sink: &mut Sink) {
    let kind = manifest.subject.kind;
    let only = |wanted: SubjectKind, sink: &mut Sink| {
        if kind != wanted {
            sink.push(
                Finding::new(Code::INVALID_VALUE, key, format!("`{name}` belongs to manifests of the kind `{wanted}`"))
                    .help(format!("this one is of the kind `{kind}`; leave it out")),
            );
        }
        kind == wanted
    };
    match name {
        "parent" => parent(manifest, key, value, sink),
        "administrative" => {
            let set = value.boolean("`administrative`", sink) == Some(true);
            manifest.administrative = set.then(|| Span::new(key.file, key.start, value.span.end));
        }
        "external" if only(SubjectKind::Integration, sink) => {
            manifest.external = value.boolean("`external`", sink).unwrap_or(true);
        }
        "home" => {
            let Some(home) = value.scalar("`home`", sink) else { return };
            match path_segments(home) {
                Ok(segments) if !segments.is_empty() => manifest.home = Some(home.to_owned()),
                Ok(_) => sink.push(
                    Finding::new(Code::INVALID_VALUE, value.span, "the root is nobody's home")
                        .help("write it as `/home/NAME`"),
                ),
                Err(error) => {
                    sink.push(
                        Finding::new(Code::INVALID_VALUE, value.span, error.message).help("write it as `/home/NAME`"),
                    );
                }
            }
        }
        "targets" => {
            not_empty(value, name, sink);
            let mut targets: BTreeSet<System> = BTreeSet::new();
            for (text, span) in value.scalars("`targets`", sink) {
                targets.extend(name_of(System::from_name(&text), System::NAMES, "system", (&text, span), sink));
            }
            manifest.targets = targets.into_iter().collect();
        }
        "declares" if only(SubjectKind::Integration, sink) => {
            not_empty(value, name, sink);
            for (text, span) in value.scalars("`declares`", sink) {
                if !grant::is_capability(&text, span, sink) {
                    continue;
                }
                if manifest.declares.insert(text.clone(), span).is_some() {
                    sink.push(
                        Finding::new(Code::INVALID_VALUE, span, format!("`{text}` is declared twice"))
                            .help("declare each capability once"),
                    );
                }
            }
        }
        "expires" if only(SubjectKind::Session, sink) => {
            let Some(text) = value.scalar("`expires`", sink) else { return };
            match text.parse::<jiff::Timestamp>() {
                // One spelling, so that nobody reads another time than polctl does.
                Ok(time) if time.to_string() == text && time.as_second() > 0 && time.subsec_nanosecond() == 0 => {
                    manifest.expires = Some(time.as_second());
                }
                _ => sink.push(
                    Finding::new(Code::INVALID_VALUE, value.span, format!("`{text}` is no time"))
                        .help("write it in full, in universal time: `2026-12-01T18:00:00Z`"),
                ),
            }
        }
        "capabilities" => capabilities(manifest, value, sink),
        "grants" => grant::grants(manifest, value, sink),
        _ => {}
    }
}

/// An empty list is refused: some read it as nothing and some as everything.
fn not_empty(value: &Node, name: &str, sink: &mut Sink) {
    if matches!(&value.kind, Kind::Seq(items) if items.is_empty()) {
        sink.push(
            Finding::new(Code::INVALID_VALUE, value.span, format!("`{name}` is empty"))
                .help("name what is meant, or leave it out"),
        );
    }
}

/// A path relative to the manifest's own directory.
fn parent(manifest: &mut Manifest, key: Span, value: &Node, sink: &mut Sink) {
    let Some(text) = value.scalar("`parent`", sink) else { return };
    if !is_plain_relative(text) {
        sink.push(
            Finding::new(Code::INVALID_VALUE, value.span, format!("`{text}` is not a path below this directory"))
                .help("write it relative to this manifest, without `..`"),
        );
        return;
    }
    let path = match manifest.path.rsplit_once('/') {
        Some((dir, _)) => format!("{dir}/{text}"),
        None => text.to_owned(),
    };
    manifest.parent = Some((path, Span::new(key.file, key.start, value.span.end)));
}

fn capabilities(manifest: &mut Manifest, value: &Node, sink: &mut Sink) {
    let names: Vec<&str> = Class::LISTED.iter().copied().map(Class::name).collect();
    for (key, value) in value.entries("`capabilities`", sink) {
        let Some(class) = Class::LISTED.iter().copied().find(|class| class.name() == key.name) else {
            sink.push(
                Finding::new(Code::UNKNOWN_KEY, key.span, format!("`{}` is no class of capabilities", key.name))
                    .help(format!("{}classes are {}", nearest(&key.name, &names), listed(&names))),
            );
            continue;
        };
        let items = match &value.kind {
            Kind::Seq(items) => items.as_slice(),
            // One entry needs no list.
            Kind::Map(_) => std::slice::from_ref(value),
            _ => {
                sink.push(
                    Finding::new(Code::INVALID_VALUE, value.span, format!("`{class}` must be a list of entries"))
                        .help("write one `- { tier: ask, … }` a line, or leave the class out: it is empty by default"),
                );
                continue;
            }
        };
        not_empty(value, class.name(), sink);
        for item in items {
            capability(manifest, class, item, sink);
        }
    }
}

fn capability(manifest: &mut Manifest, class: Class, item: &Node, sink: &mut Sink) {
    let entries = item.entries(&format!("an entry of `{class}`"), sink);
    if !matches!(item.kind, Kind::Map(_)) {
        return;
    }
    let (mut tier, mut lifecycle) = (None, Lifecycle::Session);
    for (key, value) in entries {
        match key.name.as_str() {
            "tier" => {
                let Some(text) = value.scalar("`tier`", sink) else { return };
                tier = name_of(RiskTier::from_name(text), RiskTier::NAMES, "risk tier", (text, value.span), sink);
                if tier.is_none() {
                    return;
                }
            }
            "lifecycle" => {
                let Some(text) = value.scalar("`lifecycle`", sink) else { return };
                let read = name_of(Lifecycle::from_name(text), Lifecycle::NAMES, "lifecycle", (text, value.span), sink);
                if read == Some(Lifecycle::Standing) && manifest.administrative.is_none() {
                    sink.push(
                        Finding::new(Code::INVALID_VALUE, value.span, "`standing` is for administrative manifests")
                            .help("write `session`, or mark the manifest with `administrative: true` if an administrator keeps it"),
                    );
                }
                lifecycle = read.unwrap_or(lifecycle);
            }
            _ => {}
        }
    }
    let Some(tier) = tier else {
        sink.push(
            Finding::new(Code::MISSING_KEY, item.extent(), format!("this entry of `{class}` has no `tier`"))
                .help(format!("say how much control it needs: {}", listed(RiskTier::NAMES))),
        );
        return;
    };
    let home = manifest.home.clone();
    if let Some(scope) = scope::scope(class, entries, item.extent(), home.as_deref(), sink) {
        never(&scope, item.extent(), sink);
        manifest.entries.push(crate::model::CapabilityEntry { tier, lifecycle, scope, span: item.extent() });
    }
}

/// What no manifest can grant, so that writing it is a mistake at once.
fn never(scope: &Scope, span: Span, sink: &mut Sink) {
    if let Scope::InstallPrivileged { capabilities, .. } = scope
        && let Some(name) = capabilities.iter().find(|name| name.as_str() == "CAP_SYS_ADMIN")
    {
        sink.push(
            Finding::new(Code::INVALID_VALUE, span, format!("`{name}` is nearly root, and no manifest can grant it"))
                .help("name the capabilities that the work needs, as in capabilities(7)"),
        );
    }
}

/// What manifests say of each other: one for each subject, and parents that exist and do not go in
/// a circle.
pub(super) fn check(manifests: &[Manifest], sink: &mut Sink) {
    let mut seen: BTreeMap<&Subject, &Manifest> = BTreeMap::new();
    for manifest in manifests {
        let first = *seen.entry(&manifest.subject).or_insert(manifest);
        if first.path != manifest.path {
            sink.push(
                Finding::new(
                    Code::DUPLICATE_ID,
                    manifest.span,
                    format!("there is another manifest of the {}", manifest.subject),
                )
                .related(first.span, "the other one")
                .help("say everything about a subject in one file"),
            );
        }
    }
    let by_path: BTreeMap<&str, &Manifest> = manifests.iter().map(|m| (m.path.as_str(), m)).collect();
    for manifest in manifests {
        let Some((path, span)) = &manifest.parent else { continue };
        let Some(mut above) = by_path.get(path.as_str()).copied() else {
            let known: Vec<&str> = by_path.keys().copied().collect();
            sink.push(
                Finding::new(Code::INVALID_VALUE, *span, format!("`{path}` is no manifest of this set"))
                    .help(format!("{}list it under `manifests` in `polctl.yaml`", nearest(path, &known))),
            );
            continue;
        };
        let mut steps = 0;
        while let Some(next) = above.parent.as_ref().and_then(|(path, _)| by_path.get(path.as_str())) {
            if above.path == manifest.path || steps > manifests.len() {
                break;
            }
            above = next;
            steps += 1;
        }
        if above.path == manifest.path {
            sink.push(
                Finding::new(Code::INVALID_VALUE, *span, "this manifest is its own parent, by one way or another")
                    .help("a parent is the wider manifest; take one of the links away"),
            );
        }
    }
}
