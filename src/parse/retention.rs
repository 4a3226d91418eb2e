//! `retention.yaml`, the baseline and the list of watched jobs → values and findings.

use super::sql::{is_class, table_name};
use super::yaml::{self, Kind, Node};
use super::{Sink, listed, nearest};
use crate::diag::{Code, Finding};
use crate::model::{
    BaselineEntry, HealthFloor, MigrationSource, Period, RetentionClass, RetentionConfig, SqlName, TableEntry,
    TableRef, Tool,
};
use crate::source::{FileId, SourceMap, Span, is_plain_relative};

/// Name of the file where nothing else is said.
pub const RETENTION_NAME: &str = "retention.yaml";
/// Name of the baseline where nothing else is said.
pub const BASELINE_NAME: &str = "retention-baseline.yaml";

const KEYS: [&str; 6] = ["polctl", "migrations", "classes", "tables", "health_floor", "baseline"];
const CLASS_KEYS: [&str; 6] = ["period", "reason", "prune", "legal", "audit", "personal"];
const SOURCE_KEYS: [&str; 5] = ["dir", "file", "tool", "database", "schema"];
const ENTRY_KEYS: [&str; 4] = ["finding", "subject", "owner", "expires"];

fn bad(span: Span, message: impl Into<String>, help: impl Into<String>) -> Finding {
    Finding::new(Code::INVALID_VALUE, span, message).help(help)
}

fn unknown(what: &str, key: &yaml::Key, known: &[&str]) -> Finding {
    Finding::new(Code::UNKNOWN_KEY, key.span, format!("`{}` is no key of {what}", key.name)).help(format!(
        "{}keys are {}",
        nearest(&key.name, known),
        listed(known)
    ))
}

fn missing(span: Span, key: &str, help: impl Into<String>) -> Finding {
    Finding::new(Code::MISSING_KEY, span, format!("the key `{key}` is missing")).help(help)
}

fn version(value: &Node, sink: &mut Sink) {
    if let Some(version) = value.scalar("`polctl`", sink)
        && version != "v1"
    {
        sink.push(bad(
            value.span,
            format!("`{version}` is no version of the format"),
            "this polctl reads `polctl: v1`",
        ));
    }
}

/// Reads `retention.yaml`. `None` after findings that leave nothing to work with; all others
/// are in the sink.
pub fn parse_retention(file: FileId, map: &SourceMap, sink: &mut Sink) -> Option<RetentionConfig> {
    let text = map.text(file);
    let start = Span::new(file, 0, text.lines().next().map_or(0, str::len));
    if text.trim().is_empty() {
        sink.push(missing(
            start,
            "classes",
            "an example stands in docs/retention.md; it begins with `polctl: v1` and `classes:`",
        ));
        return None;
    }
    let root = yaml::read(file, 0, text, sink)?;
    let mut config = RetentionConfig {
        file,
        sources: Vec::new(),
        classes: std::collections::BTreeMap::new(),
        tables: Vec::new(),
        health_floor: HealthFloor::None,
        baseline: BASELINE_NAME.to_owned(),
    };
    let entries = root.entries("`retention.yaml`", sink);
    for (key, value) in entries {
        match key.name.as_str() {
            "polctl" => version(value, sink),
            "migrations" => sources(&mut config, value, sink),
            "classes" => classes(&mut config, value, sink),
            "tables" => tables(&mut config, value, sink),
            "health_floor" => health_floor(&mut config, value, sink),
            "baseline" => {
                if let Some(path) = path(value, "`baseline`", sink) {
                    config.baseline = path;
                }
            }
            _ => sink.push(unknown("`retention.yaml`", key, &KEYS)),
        }
    }
    for (name, help) in [
        ("polctl", "write `polctl: v1` as the first line"),
        ("classes", "declare at least one class: `classes: { session-30d: { period: 30d, prune: prune-sessions } }`"),
    ] {
        if !entries.is_empty() && !entries.iter().any(|(key, _)| key.name == name) {
            sink.push(missing(start, name, help));
        }
    }
    Some(config)
}

/// A path below the directory.
fn path(value: &Node, what: &str, sink: &mut Sink) -> Option<String> {
    let text = value.scalar(what, sink)?;
    let plain = text.trim_end_matches('/');
    if is_plain_relative(plain) {
        return Some(plain.to_owned());
    }
    sink.push(bad(
        value.span,
        format!("`{text}` is not a path below this directory"),
        "write it relative to the directory that polctl is run for, without `..`",
    ));
    None
}

fn sources(config: &mut RetentionConfig, value: &Node, sink: &mut Sink) {
    let Kind::Seq(items) = &value.kind else {
        sink.push(bad(
            value.span,
            "`migrations` must be a list",
            "write `migrations: [{ dir: db/migrations, tool: goose }]`",
        ));
        return;
    };
    for item in items {
        if let Some(source) = source(item, sink) {
            if config.sources.iter().any(|other| other.path == source.path) {
                sink.push(bad(source.span, format!("`{}` is listed twice", source.path), "list each place once"));
            }
            config.sources.push(source);
        }
    }
}

fn source(item: &Node, sink: &mut Sink) -> Option<MigrationSource> {
    let (mut place, mut file, mut tool) = (None, false, None);
    let (mut database, mut schema) = (String::new(), "public".to_owned());
    let before = sink.len();
    for (key, value) in item.entries("an entry of `migrations`", sink) {
        match key.name.as_str() {
            "dir" | "file" => {
                file = key.name == "file";
                place = path(value, "the path", sink);
            }
            "tool" => tool = value.scalar("`tool`", sink).and_then(|name| tool_named(name, value.span, sink)),
            "database" => value.scalar("`database`", sink).unwrap_or("").clone_into(&mut database),
            "schema" => value.scalar("`schema`", sink).unwrap_or("public").clone_into(&mut schema),
            _ => sink.push(unknown("an entry of `migrations`", key, &SOURCE_KEYS)),
        }
    }
    if sink.len() > before {
        return None;
    }
    let span = item.extent();
    let Some(path) = place else {
        sink.push(missing(item.span, "dir", "write `dir: db/migrations`, or `file: db/schema.sql`"));
        return None;
    };
    let tool = match (file, tool) {
        (true, None | Some(Tool::Schema)) => Tool::Schema,
        (true, Some(_)) => {
            sink.push(bad(item.span, "a `file` is a schema of its own", "write `dir` for a directory of migrations"));
            return None;
        }
        (false, Some(Tool::Schema)) => {
            sink.push(bad(item.span, "`tool: schema` is one file", "write `file: db/schema.sql`"));
            return None;
        }
        (false, Some(tool)) => tool,
        (false, None) => {
            sink.push(missing(item.span, "tool", format!("tools are {}", tool_names())));
            return None;
        }
    };
    Some(MigrationSource { path, tool, database, schema, span })
}

fn tool_names() -> String {
    listed(&Tool::ALL.map(|(name, _)| name))
}

fn tool_named(name: &str, span: Span, sink: &mut Sink) -> Option<Tool> {
    let tool = Tool::from_name(name);
    if tool.is_none() {
        let known = Tool::ALL.map(|(name, _)| name);
        let help = format!("{}tools are {}; golang-migrate is read as `sqlx`", nearest(name, &known), tool_names());
        sink.push(bad(span, format!("`{name}` is no tool that polctl knows"), help));
    }
    tool
}

fn classes(config: &mut RetentionConfig, value: &Node, sink: &mut Sink) {
    for (key, value) in value.entries("`classes`", sink) {
        if !is_class(&key.name) {
            sink.push(bad(
                key.span,
                format!("`{}` cannot be the name of a class", key.name),
                "use letters, digits, `.`, `_` and `-`, at most 64 of them",
            ));
            continue;
        }
        if let Some(class) = class(key, value, sink) {
            config.classes.insert(key.name.clone(), class);
        }
    }
}

fn class(name: &yaml::Key, value: &Node, sink: &mut Sink) -> Option<RetentionClass> {
    let (mut period, mut prune, mut reason) = (None, None, false);
    let (mut audit, mut personal) = (false, false);
    for (key, value) in value.entries("a class", sink) {
        match key.name.as_str() {
            "period" => period = value.scalar("`period`", sink).map(|text| (text.to_owned(), value.span)),
            "prune" => prune = value.scalar("`prune`", sink).map(|text| (text.to_owned(), value.span)),
            "reason" => reason = said(value, "`reason`", sink),
            "legal" => {
                said(value, "`legal`", sink);
            }
            "audit" => audit = value.boolean("`audit`", sink).unwrap_or(false),
            "personal" => personal = value.boolean("`personal`", sink).unwrap_or(false),
            _ => sink.push(unknown("a class", key, &CLASS_KEYS)),
        }
    }
    let Some((written, period_span)) = period else {
        sink.push(missing(
            name.span,
            "period",
            "say how long rows are kept: `period: 90d`, or `period: forever` with a `reason`",
        ));
        return None;
    };
    let Some(period) = Period::parse(&written) else {
        let help = "write a number and a unit: `12h`, `90d`, `2w`, `18mo`, `7y`, or `forever`";
        sink.push(bad(period_span, format!("`{written}` is no period"), help));
        return None;
    };
    if period == Period::Forever && !reason {
        sink.push(missing(name.span, "reason", "what is kept for ever needs a reason: `reason: …`"));
    }
    if let (Period::Forever, Some((job, span))) = (period, &prune) {
        sink.push(bad(
            *span,
            format!("`{job}` prunes a class that is kept for ever"),
            "give the class a period, or take the job away",
        ));
    }
    Some(RetentionClass { span: name.span, period, written, period_span, prune, audit, personal })
}

fn said(value: &Node, what: &str, sink: &mut Sink) -> bool {
    value.scalar(what, sink).is_some_and(|text| {
        if text.trim().is_empty() {
            sink.push(bad(value.span, format!("{what} says nothing"), "write a sentence"));
        }
        !text.trim().is_empty()
    })
}

/// `[DATABASE/][SCHEMA.]TABLE`.
pub(crate) fn table_ref(text: &str) -> Option<TableRef> {
    let (database, name) = text.split_once('/').unwrap_or(("", text));
    let SqlName { schema, name } = table_name(name)?;
    let schema = Some(schema.unwrap_or_else(|| "public".to_owned()));
    Some(TableRef { database: database.to_owned(), name: SqlName { schema, name } })
}

fn tables(config: &mut RetentionConfig, value: &Node, sink: &mut Sink) {
    for (key, value) in value.entries("`tables`", sink) {
        let Some(table) = table_ref(&key.name) else {
            let help = "write `schema.table` as the server stores it, without quotes; `*` stands for any characters";
            sink.push(bad(key.span, format!("`{}` is no name of a table", key.name), help));
            continue;
        };
        if let Some(class) = value.scalar("the class of a table", sink) {
            let entry = TableEntry { table, class: class.to_owned(), span: key.span, class_span: value.span };
            config.tables.push(entry);
        }
    }
}

fn health_floor(config: &mut RetentionConfig, value: &Node, sink: &mut Sink) {
    config.health_floor = match &value.kind {
        Kind::Seq(_) => {
            HealthFloor::Here(value.scalars("`health_floor`", sink).into_iter().map(|(job, _)| job).collect())
        }
        _ => match path(value, "`health_floor`", sink) {
            Some(path) => HealthFloor::File(path, value.span),
            None => HealthFloor::None,
        },
    };
}

/// The jobs in a file of its own: a YAML list of names, or of mappings with `name` or `job`; the
/// list may stand under `jobs`. A file that is no YAML has one job a line.
pub fn parse_health_floor(file: FileId, path: &str, map: &SourceMap, sink: &mut Sink) -> Option<Vec<String>> {
    let text = map.text(file);
    if !path.ends_with(".yaml") && !path.ends_with(".yml") && !path.ends_with(".json") {
        let lines = text.lines().map(|line| line.split('#').next().unwrap_or("").trim());
        return Some(lines.filter(|line| !line.is_empty()).map(str::to_owned).collect());
    }
    let root = yaml::read(file, 0, text, sink)?;
    let list = match &root.kind {
        Kind::Map(entries) => entries.iter().find(|(key, _)| key.name == "jobs").map(|(_, value)| value),
        _ => Some(&root),
    };
    let Some(Node { kind: Kind::Seq(items), .. }) = list else {
        let help = "write a list of names, or `jobs:` with a list of names or of mappings with `name`";
        sink.push(bad(root.span, format!("`{path}` has no list of jobs"), help));
        return None;
    };
    Some(items.iter().filter_map(|item| job(item, sink)).collect())
}

fn job(item: &Node, sink: &mut Sink) -> Option<String> {
    if let Kind::Map(entries) = &item.kind {
        let named = entries.iter().find(|(key, _)| key.name == "name" || key.name == "job");
        if let Some((_, value)) = named {
            return value.scalar("the name of a job", sink).map(str::to_owned);
        }
        sink.push(bad(item.span, "this job has no name", "give it a `name`"));
        return None;
    }
    item.scalar("a job", sink).map(str::to_owned)
}

/// Reads the baseline: a list of entries under `debt`.
pub fn parse_baseline(file: FileId, map: &SourceMap, sink: &mut Sink) -> Option<Vec<BaselineEntry>> {
    let root = yaml::read(file, 0, map.text(file), sink)?;
    let mut out = Vec::new();
    for (key, value) in root.entries("the baseline", sink) {
        match (key.name.as_str(), &value.kind) {
            ("polctl", _) => version(value, sink),
            ("debt", Kind::Seq(items)) => out.extend(items.iter().filter_map(|item| baseline_entry(item, sink))),
            ("debt", _) => {
                sink.push(bad(value.span, "`debt` must be a list", "remove the file when nothing is owed any more"));
            }
            _ => sink.push(unknown("the baseline", key, &["polctl", "debt"])),
        }
    }
    Some(out)
}

fn baseline_entry(item: &Node, sink: &mut Sink) -> Option<BaselineEntry> {
    let (before, span) = (sink.len(), item.extent());
    let mut entry = BaselineEntry {
        finding: String::new(),
        subject: String::new(),
        owner: String::new(),
        expires: String::new(),
        span,
    };
    for (key, value) in item.entries("an entry of the baseline", sink) {
        let field = match key.name.as_str() {
            "finding" => &mut entry.finding,
            "subject" => &mut entry.subject,
            "owner" => &mut entry.owner,
            "expires" => &mut entry.expires,
            _ => {
                sink.push(unknown("an entry of the baseline", key, &ENTRY_KEYS));
                continue;
            }
        };
        if let Some(text) = value.scalar("a value of the baseline", sink) {
            text.trim().clone_into(field);
        }
        if key.name == "expires" && !is_date(&entry.expires) {
            sink.push(bad(value.span, format!("`{}` is no date", entry.expires), "write `2027-06-30`"));
        }
    }
    for (name, value) in ENTRY_KEYS.iter().zip([&entry.finding, &entry.subject, &entry.owner, &entry.expires]) {
        if value.is_empty() {
            sink.push(missing(
                span,
                name,
                "every entry names a `finding`, a `subject`, an `owner` and when it `expires`",
            ));
        }
    }
    (sink.len() == before).then_some(entry)
}

/// Whether a text is a date of the form that sorts.
pub fn is_date(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    let number = |part: &str, digits: usize| {
        (part.len() == digits && part.bytes().all(|b| b.is_ascii_digit())).then(|| part.parse::<u32>().ok()).flatten()
    };
    match parts.as_slice() {
        [year, month, day] => {
            number(year, 4).is_some()
                && number(month, 2).is_some_and(|m| (1..=12).contains(&m))
                && number(day, 2).is_some_and(|d| (1..=31).contains(&d))
        }
        _ => false,
    }
}
