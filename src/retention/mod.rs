//! Retention: which durable tables a project's migrations make, and whether somebody has said
//! how long their rows are kept (DESIGN 8).
//!
//! Owns the order of migrations, the folding of their statements, the rules about classes, the
//! baseline and the comparison of two versions. It reads files only through a [`Tree`], knows no
//! clock and no grammar, and never passes what it could not follow.

mod baseline;
mod compare;
mod fold;
mod named;
mod order;
mod rules;

pub use fold::{Problem, Relation, World};
pub use named::check as check_named;
pub use order::MAX_MIGRATIONS;
pub use rules::Classified;

use std::collections::{BTreeMap, BTreeSet};

use sha2::{Digest as _, Sha256};

use crate::diag::{Code, Finding, Kind, info};
use crate::model::{BaselineEntry, HealthFloor, RetentionConfig};
use crate::parse::{decode_text, parse_baseline, parse_health_floor, parse_retention, parse_sql};
use crate::source::{FileId, SourceError, SourceMap, Span, Tree};

/// Everything that was read of one version.
#[derive(Debug)]
pub struct Loaded {
    /// `retention.yaml`.
    pub config: RetentionConfig,
    /// The jobs of the health-floor list.
    pub jobs: BTreeSet<String>,
    /// The baseline, where there is one.
    pub baseline: Option<Vec<BaselineEntry>>,
    /// One for each database.
    pub worlds: Vec<World>,
}

/// A version that was read and judged.
#[derive(Debug)]
pub struct Version {
    /// What was read.
    pub loaded: Loaded,
    /// The class of each durable table that has one, by name.
    pub tables: BTreeMap<String, Classified>,
    /// What is wrong with it.
    pub problems: Vec<Problem>,
}

impl Version {
    /// Its findings, with those that the baseline holds as notes. `today` is `YYYY-MM-DD`.
    pub fn findings(&self, today: &str) -> Vec<Finding> {
        let mut problems = self.problems.clone();
        let more = baseline::apply(&mut problems, self.loaded.baseline.as_deref().unwrap_or(&[]), today);
        problems.into_iter().map(|problem| problem.finding).chain(more).collect()
    }

    /// The text of the baseline that holds what this version owes; `None` where it owes nothing.
    /// A baseline that is there only shrinks.
    pub fn baseline_text(&self, owner: &str, expires: &str) -> Option<String> {
        baseline::text(&self.problems, self.loaded.baseline.as_deref(), owner, expires)
    }
}

/// Reads and judges one version. Findings about input that cannot be read go to `sink`; `None`
/// when some say that it is malformed, since a version that was read in part must not be judged.
///
/// # Errors
///
/// A [`SourceError`] when a file that is named cannot be read at all.
pub fn load(
    tree: &dyn Tree,
    path: &str,
    map: &mut SourceMap,
    sink: &mut Vec<Finding>,
) -> Result<Option<Version>, SourceError> {
    let mut own = Vec::new();
    let loaded = read(tree, path, map, &mut own)?;
    let malformed = own.iter().any(|f| info(f.code).kind == Kind::Malformed);
    sink.append(&mut own);
    let Some(mut loaded) = loaded.filter(|_| !malformed) else { return Ok(None) };
    let mut problems: Vec<Problem> = loaded.worlds.iter_mut().flat_map(|w| std::mem::take(&mut w.problems)).collect();
    let (tables, more) = rules::judge(&loaded);
    problems.extend(more);
    for problem in problems.iter_mut().filter(|p| p.subject.is_empty()) {
        problem.subject = statement_name(problem.finding.span, map);
    }
    Ok(Some(Version { loaded, tables, problems }))
}

/// Findings about what is weaker in `new` than in `old`.
pub fn weakened(old: &Version, new: &Version) -> Vec<Finding> {
    compare::compare(old, new, Span::new(new.loaded.config.file, 0, 0))
}

/// A name for a statement that stays when lines move: its file and a digest of its words.
fn statement_name(span: Span, map: &SourceMap) -> String {
    let file = map.get(span.file).map_or("", |f| f.name.as_str());
    let text = map.text(span.file).get(span.start..span.end).unwrap_or("");
    let words: Vec<&str> = text.split_whitespace().collect();
    let digest = Sha256::digest(words.join(" ").as_bytes());
    let short: String = digest.iter().take(6).map(|byte| format!("{byte:02x}")).collect();
    format!("{file}#{short}")
}

fn read(
    tree: &dyn Tree,
    path: &str,
    map: &mut SourceMap,
    sink: &mut Vec<Finding>,
) -> Result<Option<Loaded>, SourceError> {
    let Some(mut config) = file(tree, path, map, sink)?.and_then(|id| parse_retention(id, map, sink)) else {
        return Ok(None);
    };
    let at = Span::new(config.file, 0, map.text(config.file).lines().next().map_or(0, str::len));
    let jobs = jobs(tree, &config, map, sink)?;
    let baseline = match tree.read(&config.baseline) {
        Ok(bytes) => {
            let id = decode_text(map, sink, &config.baseline, tree.origin().as_deref(), &bytes);
            id.and_then(|id| parse_baseline(id, map, sink))
        }
        Err(SourceError::NotFound { .. }) => None,
        Err(error) => return Err(error),
    };
    if config.sources.is_empty() {
        config.sources = order::look_for(tree, at, sink)?;
    }
    let worlds = fold(tree, &config, map, sink)?;
    Ok(Some(Loaded { config, jobs, baseline, worlds }))
}

fn file(
    tree: &dyn Tree,
    path: &str,
    map: &mut SourceMap,
    sink: &mut Vec<Finding>,
) -> Result<Option<FileId>, SourceError> {
    let bytes = tree.read(path)?;
    Ok(decode_text(map, sink, path, tree.origin().as_deref(), &bytes))
}

fn jobs(
    tree: &dyn Tree,
    config: &RetentionConfig,
    map: &mut SourceMap,
    sink: &mut Vec<Finding>,
) -> Result<BTreeSet<String>, SourceError> {
    let jobs = match &config.health_floor {
        HealthFloor::None => Vec::new(),
        HealthFloor::Here(jobs) => jobs.clone(),
        HealthFloor::File(path, span) => match file(tree, path, map, sink) {
            Ok(id) => id.and_then(|id| parse_health_floor(id, path, map, sink)).unwrap_or_default(),
            Err(error @ SourceError::NotFound { .. }) => {
                sink.push(
                    Finding::new(Code::INVALID_VALUE, *span, error.to_string())
                        .help("name the file in which the watched jobs are listed, relative to this directory"),
                );
                Vec::new()
            }
            Err(error) => return Err(error),
        },
    };
    Ok(jobs.into_iter().collect())
}

/// Applies every migration to its database.
fn fold(
    tree: &dyn Tree,
    config: &RetentionConfig,
    map: &mut SourceMap,
    sink: &mut Vec<Finding>,
) -> Result<Vec<World>, SourceError> {
    let mut worlds: BTreeMap<&str, World> = BTreeMap::new();
    for source in &config.sources {
        let before = sink.len();
        let files = order::files(tree, source, sink)?;
        if sink.len() > before {
            continue;
        }
        let world = worlds.entry(source.database.as_str()).or_insert_with(|| World::new(&source.database));
        let origin = tree.origin();
        for (path, bytes) in files.iter().zip(tree.read_all(&files)?) {
            match std::str::from_utf8(&bytes) {
                Ok(text) => {
                    let id = map.add(path, origin.as_deref(), text);
                    let script = parse_sql(id, map.text(id));
                    world.apply(&script, &source.schema);
                }
                Err(error) => {
                    let id = map.add(path, origin.as_deref(), &String::from_utf8_lossy(&bytes));
                    let span = Span::new(id, error.valid_up_to(), error.valid_up_to() + 1);
                    let finding = Finding::new(Code::FILE_ENCODING, span, format!("`{path}` is not UTF-8"));
                    sink.push(finding.help("save the file as UTF-8"));
                }
            }
        }
    }
    Ok(worlds.into_values().collect())
}

/// Whether a name is of a pattern in which `*` stands for any characters.
fn matches(pattern: &str, name: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else { return pattern == name };
    let Some(mut name) = name.strip_prefix(first) else { return false };
    let mut parts: Vec<&str> = rest.split('*').collect();
    let last = parts.pop().unwrap_or("");
    for part in parts {
        match name.find(part) {
            Some(at) => name = name.get(at + part.len()..).unwrap_or(""),
            None => return false,
        }
    }
    name.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_of_names() {
        for (pattern, name, expected) in [
            ("a", "a", true),
            ("a*", "abc", true),
            ("a*c", "abc", true),
            ("a*c", "abd", false),
            ("*_2024_*", "x_2024_01", true),
            ("a*b*", "ab", true),
            ("a*ab", "ab", false),
        ] {
            assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
        }
    }
}
