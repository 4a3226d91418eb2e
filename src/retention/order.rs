//! Which files of a place with migrations are applied, and in which order.
//!
//! Each tool has its own rule; what no rule covers is a finding, since a file in the wrong place
//! of the order makes other tables.

use std::collections::{BTreeMap, BTreeSet};

use crate::diag::{Code, Finding};
use crate::model::{MigrationSource, Tool};
use crate::source::{SourceError, Span, Tree};

/// Most files of migrations that are read.
pub const MAX_MIGRATIONS: usize = 20_000;

/// The files in order, relative to the tree's root.
pub(super) fn files(
    tree: &dyn Tree,
    source: &MigrationSource,
    found: &mut Vec<Finding>,
) -> Result<Vec<String>, SourceError> {
    if source.tool == Tool::Schema {
        return Ok(vec![source.path.clone()]);
    }
    let names = match tree.list(&source.path) {
        Ok(names) => names,
        Err(SourceError::NotFound { .. } | SourceError::NotRegular { .. }) => Vec::new(),
        Err(error) => return Err(error),
    };
    let mut order = Order { source, found, tree };
    let files = match source.tool {
        Tool::Drizzle => order.drizzle(&names)?,
        Tool::Prisma => order.prisma(&names)?,
        Tool::Flyway => order.flyway(&names),
        Tool::Numbered | Tool::Goose | Tool::Dbmate | Tool::Sqlx | Tool::Schema => order.numbered(&names),
    };
    if files.len() > MAX_MIGRATIONS {
        return Err(SourceError::TooMany { tree: tree.label() });
    }
    if files.is_empty() && order.found.is_empty() {
        let tool = source.tool.name();
        let help =
            "name the directory in which the migrations lie; its name stands in `migrations` of `retention.yaml`";
        order.problem(format!("`{}` holds no migration of `{tool}`", source.path), help);
    }
    Ok(files.into_iter().map(|name| format!("{}/{name}", source.path)).collect())
}

struct Order<'a> {
    source: &'a MigrationSource,
    found: &'a mut Vec<Finding>,
    tree: &'a dyn Tree,
}

impl Order<'_> {
    fn problem(&mut self, message: impl Into<String>, help: impl Into<String>) {
        self.found.push(migrations(self.source.span, message).help(help));
    }

    fn numbered(&mut self, names: &[String]) -> Vec<String> {
        let mut files: Vec<(u128, &str)> = Vec::new();
        for name in names.iter().filter(|name| is_sql(name)) {
            if undoes(name) {
                continue;
            }
            match number(name) {
                Some(number) => files.push((number, name)),
                None => self.problem(
                    format!("`{}/{name}` has no number, so nobody knows when it is applied", self.source.path),
                    "begin its name with a number (`0042_name.sql`), or keep it elsewhere",
                ),
            }
        }
        files.sort_unstable();
        self.same_number(&files);
        self.two_orders(&files);
        files.into_iter().map(|(_, name)| name.to_owned()).collect()
    }

    /// Tools that keep a number for each file refuse two files with one; others sort by name.
    fn same_number(&mut self, files: &[(u128, &str)]) {
        if self.source.tool == Tool::Numbered {
            return;
        }
        for pair in files.windows(2) {
            if let [(a, one), (b, other)] = pair
                && a == b
            {
                self.problem(
                    format!("`{one}` and `{other}` have the same number"),
                    format!(
                        "`{}` applies only one of them; give the second a number of its own",
                        self.source.tool.name()
                    ),
                );
            }
        }
    }

    /// Plain numbered files are sorted by number by some tools, by name by others.
    fn two_orders(&mut self, files: &[(u128, &str)]) {
        let by_name = files.windows(2).find(|pair| matches!(pair, [a, b] if a.1 > b.1));
        if self.source.tool == Tool::Numbered
            && let Some([a, b]) = by_name
        {
            self.problem(
                format!("`{}` comes before `{}` by number and behind it by name", a.1, b.1),
                "write all numbers with as many digits (`0009`, `0010`), or name the tool that sorts by number: `tool: goose` or `tool: sqlx`",
            );
        }
    }

    fn flyway(&mut self, names: &[String]) -> Vec<String> {
        let mut versioned: BTreeMap<Vec<u64>, &str> = BTreeMap::new();
        let mut bases: BTreeMap<Vec<u64>, &str> = BTreeMap::new();
        let mut repeated: Vec<&str> = Vec::new();
        for name in names.iter().filter(|name| is_sql(name)) {
            let stem = name.get(..name.len() - 4).unwrap_or("");
            let (head, described) = stem.split_once("__").unwrap_or((stem, ""));
            let version = head.get(1..).and_then(version);
            match (head.get(..1), version) {
                (Some("R"), _) if head == "R" && !described.is_empty() => repeated.push(name),
                (Some("U"), Some(_)) => {}
                (Some(kind @ ("V" | "B")), Some(version)) => {
                    let list = if kind == "V" { &mut versioned } else { &mut bases };
                    if let Some(other) = list.insert(version, name) {
                        self.problem(
                            format!("`{other}` and `{name}` have the same version"),
                            "give one of them a version of its own",
                        );
                    }
                }
                _ => self.problem(
                    format!("`{}/{name}` is no name of a migration of Flyway", self.source.path),
                    "write `V12__name.sql`, `R__name.sql` or `U12__name.sql`; files beside them lie elsewhere",
                ),
            }
        }
        let mut files: Vec<String> = Vec::new();
        // A new database begins with the last base, and takes what is newer.
        if let Some((base, name)) = bases.pop_last() {
            versioned.retain(|version, _| *version > base);
            files.push(name.to_owned());
        }
        files.extend(versioned.values().map(|name| (*name).to_owned()));
        repeated.sort_unstable();
        files.extend(repeated.into_iter().map(str::to_owned));
        files
    }

    fn prisma(&mut self, names: &[String]) -> Result<Vec<String>, SourceError> {
        let mut files = Vec::new();
        for name in names {
            if name.contains('.') {
                if is_sql(name) {
                    self.problem(
                        format!("`{}/{name}` lies beside the directories of the migrations", self.source.path),
                        "Prisma applies `NAME/migration.sql` only; move it, or name another tool",
                    );
                }
                continue;
            }
            let inner = match self.tree.list(&format!("{}/{name}", self.source.path)) {
                Ok(inner) => inner,
                // A file without an ending.
                Err(SourceError::Io { .. } | SourceError::NotFound { .. } | SourceError::NotRegular { .. }) => continue,
                Err(error) => return Err(error),
            };
            if inner.iter().any(|file| file == "migration.sql") {
                files.push(format!("{name}/migration.sql"));
            } else if inner.iter().any(|file| is_sql(file)) {
                self.problem(
                    format!("`{}/{name}` holds SQL and no `migration.sql`", self.source.path),
                    "Prisma applies `migration.sql` only; move the other files",
                );
            }
        }
        files.sort_unstable();
        Ok(files)
    }

    fn drizzle(&mut self, names: &[String]) -> Result<Vec<String>, SourceError> {
        let path = format!("{}/meta/_journal.json", self.source.path);
        let bytes = match self.tree.read(&path) {
            Ok(bytes) => bytes,
            Err(SourceError::NotFound { .. }) => {
                self.problem(
                    format!("`{path}` is not there, and only it says which migrations are applied"),
                    "commit the `meta` directory that drizzle-kit writes; where each migration has a directory, write `tool: prisma`",
                );
                return Ok(Vec::new());
            }
            Err(error) => return Err(error),
        };
        let Some(tags) = journal(&bytes) else {
            self.problem(
                format!("`{path}` cannot be read"),
                "it is JSON with `entries`, each with `idx` and `tag`; let drizzle-kit write it anew",
            );
            return Ok(Vec::new());
        };
        let mut files = Vec::new();
        for tag in tags {
            let name = format!("{tag}.sql");
            if names.contains(&name) {
                files.push(name);
            } else {
                self.problem(
                    format!("the journal lists `{tag}`, and `{}/{name}` is not there", self.source.path),
                    "commit the file",
                );
            }
        }
        let listed: BTreeSet<&str> = files.iter().map(String::as_str).collect();
        for name in names.iter().filter(|name| is_sql(name) && !listed.contains(name.as_str())) {
            self.problem(
                format!("`{}/{name}` is not in the journal, so it is never applied", self.source.path),
                "let drizzle-kit write it into `meta/_journal.json`, or remove it",
            );
        }
        Ok(files)
    }
}

/// A finding about files of migrations.
pub(super) fn migrations(span: Span, message: impl Into<String>) -> Finding {
    Finding::new(Code::RETENTION_MIGRATIONS, span, message)
}

fn is_sql(name: &str) -> bool {
    name.to_ascii_lowercase().ends_with(".sql")
}

/// Whether a file only takes back what another one does, by its name.
fn undoes(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    let stem = lower.strip_suffix(".sql").unwrap_or(&lower);
    ["down", "undo", "rollback", "revert"]
        .iter()
        .any(|end| stem.strip_suffix(end).is_some_and(|before| before.ends_with(['.', '_', '-'])))
}

fn number(name: &str) -> Option<u128> {
    let name = name.strip_prefix(['v', 'V']).unwrap_or(name);
    let digits = name.bytes().take_while(u8::is_ascii_digit).count();
    name.get(..digits)?.parse().ok()
}

/// `1`, `1.2` or `1_2`; the ends `.0` count for nothing.
fn version(text: &str) -> Option<Vec<u64>> {
    let parts: Option<Vec<u64>> = text.split(['.', '_']).map(|part| part.parse().ok()).collect();
    let mut parts = parts?;
    while parts.len() > 1 && parts.last() == Some(&0) {
        parts.pop();
    }
    Some(parts)
}

/// The tags of a journal, by `idx`.
fn journal(bytes: &[u8]) -> Option<Vec<String>> {
    let json: serde_json::Value = serde_json::from_slice(bytes).ok()?;
    let mut entries = Vec::new();
    for entry in json.get("entries")?.as_array()? {
        let tag = entry.get("tag")?.as_str()?;
        let plain = !tag.is_empty() && !tag.contains(['/', '\\']);
        entries.push((entry.get("idx")?.as_u64()?, plain.then(|| tag.to_owned())?));
    }
    entries.sort();
    Some(entries.into_iter().map(|(_, tag)| tag).collect())
}

/// Directories in which migrations usually lie.
const USUAL: &[&str] = &[
    "migrations",
    "db/migrations",
    "db/migrate",
    "database/migrations",
    "sql/migrations",
    "sql",
    "internal/db/migrations",
    "prisma/migrations",
    "drizzle",
    "supabase/migrations",
    "src/main/resources/db/migration",
];
/// Files in which a schema usually stands.
const SCHEMAS: &[&str] = &["schema.sql", "db/schema.sql", "db/structure.sql", "sql/schema.sql"];

/// Looks for migrations by the signs that tools leave. `at` is where `retention.yaml` would say
/// where they are.
pub(super) fn look_for(
    tree: &dyn Tree,
    at: Span,
    found: &mut Vec<Finding>,
) -> Result<Vec<MigrationSource>, SourceError> {
    let mut seen: Vec<(String, Vec<Tool>)> = Vec::new();
    for dir in USUAL {
        let names = match tree.list(dir) {
            Ok(names) => names,
            Err(SourceError::NotFound { .. } | SourceError::NotRegular { .. } | SourceError::Io { .. }) => continue,
            Err(error) => return Err(error),
        };
        let tools = signs(tree, dir, &names);
        if !tools.is_empty() {
            seen.push(((*dir).to_owned(), tools));
        }
    }
    if seen.is_empty() {
        for file in SCHEMAS {
            let (dir, name) = file.rsplit_once('/').unwrap_or(("", file));
            if tree.list(dir).is_ok_and(|names| names.iter().any(|n| n == name)) {
                seen.push(((*file).to_owned(), vec![Tool::Schema]));
            }
        }
    }
    let source = |path: &str, tool| MigrationSource {
        path: path.to_owned(),
        tool,
        database: String::new(),
        schema: "public".to_owned(),
        span: at,
    };
    match seen.as_slice() {
        [(path, tools)] => match tools.as_slice() {
            [tool] => return Ok(vec![source(path, *tool)]),
            tools => found.push(
                migrations(at, format!("`{path}` has the signs of {}", several(tools))).help(format!(
                    "say which it is in `retention.yaml`: `migrations: [{{ dir: {path}, tool: {} }}]`",
                    tools.first().map_or("", |tool| tool.name())
                )),
            ),
        },
        [] => found.push(migrations(at, "no migrations were found in the usual places").help(
            "say in `retention.yaml` where they lie: `migrations: [{ dir: path/to/migrations, tool: goose }]`, or `{ file: path/to/schema.sql }`",
        )),
        several => {
            let places: Vec<String> = several.iter().map(|(path, _)| format!("`{path}`")).collect();
            let (path, tools) = several.first().map_or(("", Tool::Numbered), |(path, tools)| {
                (path.as_str(), tools.first().copied().unwrap_or(Tool::Numbered))
            });
            let key = if tools == Tool::Schema { "file" } else { "dir" };
            let tool = if tools == Tool::Schema { String::new() } else { format!(", tool: {}", tools.name()) };
            found.push(migrations(at, format!("migrations lie in several places: {}", places.join(", "))).help(format!(
                "list those that count in `retention.yaml`: `migrations: [{{ {key}: {path}{tool} }}]`"
            )));
        }
    }
    Ok(Vec::new())
}

fn several(tools: &[Tool]) -> String {
    let names: Vec<String> = tools.iter().map(|tool| format!("`{}`", tool.name())).collect();
    names.join(" and ")
}

/// The tools whose signs a directory has; a plain number is a sign only where there is no other.
fn signs(tree: &dyn Tree, dir: &str, names: &[String]) -> Vec<Tool> {
    let sql: Vec<&String> = names.iter().filter(|name| is_sql(name)).collect();
    let inner = |name: &str, file: &str| {
        !name.contains('.') && tree.list(&format!("{dir}/{name}")).is_ok_and(|names| names.iter().any(|n| n == file))
    };
    let mut tools = Vec::new();
    if names.iter().any(|n| n == "meta") && inner("meta", "_journal.json") {
        return vec![Tool::Drizzle];
    }
    if names.iter().any(|n| n == "migration_lock.toml")
        || sql.is_empty() && names.iter().any(|n| inner(n, "migration.sql"))
    {
        tools.push(Tool::Prisma);
    }
    let flyway = |name: &&&String| {
        name.contains("__") && (name.starts_with('V') || name.starts_with("R__")) && !name.starts_with("V_")
    };
    if sql.iter().any(|name| flyway(&name)) {
        tools.push(Tool::Flyway);
    }
    if sql.iter().any(|name| name.ends_with(".up.sql")) {
        tools.push(Tool::Sqlx);
    }
    let numbered: Vec<&&String> = sql.iter().filter(|name| number(name).is_some()).collect();
    let first = numbered.first().and_then(|name| tree.read(&format!("{dir}/{name}")).ok());
    let text = first.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
    if text.contains("-- +goose") {
        tools.push(Tool::Goose);
    }
    if text.contains("-- migrate:up") {
        tools.push(Tool::Dbmate);
    }
    if tools.is_empty() && !numbered.is_empty() {
        tools.push(Tool::Numbered);
    }
    tools
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_flyway_are_numbers() {
        assert!(version("10") > version("2"));
        assert!(version("1.10") > version("1_9"));
        assert_eq!(version("1.0"), version("1"));
        assert_eq!(version("x"), None);
    }

    #[test]
    fn files_that_undo_are_known_by_name() {
        for (name, expected) in [
            ("001_a.down.sql", true),
            ("001_a_down.sql", true),
            ("001-rollback.sql", true),
            ("001_countdown.sql", false),
        ] {
            assert_eq!(undoes(name), expected, "{name}");
        }
    }
}
