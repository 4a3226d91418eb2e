//! What one version must satisfy: each durable table has exactly one known class, classes are
//! pruned by jobs that somebody watches, audit tables have their envelope.

use std::collections::{BTreeMap, BTreeSet};

use super::fold::{Id, Problem, Relation, World};
use super::{Loaded, matches};
use crate::diag::{Code, Finding, Level};
use crate::model::{HealthFloor, Period, RelationKind, RetentionClass, TableEntry};
use crate::parse::{class_in_comment, nearest_name};
use crate::source::Span;

/// The columns of an audit table, with the types that fit (P-R23).
const ENVELOPE: [(&str, &[&str]); 6] = [
    ("ts", &["timestamptz", "timestamp with time zone"]),
    ("workspace", TEXTS),
    ("actor", TEXTS),
    ("correlation_id", TEXTS),
    ("stack_version", TEXTS),
    ("schema_version", VERSIONS),
];
const TEXTS: &[&str] = &["text", "varchar", "character varying", "uuid", "citext"];
const VERSIONS: &[&str] =
    &["text", "varchar", "character varying", "int", "integer", "int4", "smallint", "int2", "bigint", "int8"];

/// The class of a table, and where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Classified {
    /// Name of the class.
    pub class: String,
    /// Where it is stated.
    pub span: Span,
    /// Whether it is the class of the table that this one is a part or an heir of.
    pub inherited: bool,
}

/// What is said of one table.
#[derive(Default)]
struct Said {
    /// Classes with their places, in the order of weight.
    classes: Vec<(String, Span)>,
    /// A comment about retention that names no class.
    bad: Option<(String, Span)>,
}

/// The classes of all durable tables of a version, by name, and what is wrong with them.
pub(super) fn judge(loaded: &Loaded) -> (BTreeMap<String, Classified>, Vec<Problem>) {
    let mut rules = Rules { loaded, problems: Vec::new(), used: BTreeSet::new(), entries: BTreeSet::new() };
    let mut tables = BTreeMap::new();
    for world in &loaded.worlds {
        for (name, (id, relation)) in world.durable() {
            if let Some(classified) = rules.table(world, &name, id, relation) {
                tables.insert(name, classified);
            }
        }
    }
    rules.entries();
    rules.classes();
    (tables, rules.problems)
}

struct Rules<'a> {
    loaded: &'a Loaded,
    problems: Vec<Problem>,
    used: BTreeSet<String>,
    /// Entries of `tables` that name a table, by index.
    entries: BTreeSet<usize>,
}

impl Rules<'_> {
    fn problem(&mut self, subject: &str, finding: Finding) {
        self.problems.push(Problem { finding, subject: subject.to_owned() });
    }

    fn said(&mut self, world: &World, relation: &Relation) -> Said {
        let mut said = Said::default();
        if let Some((text, span)) = &relation.comment {
            match class_in_comment(text) {
                Some(Ok(class)) => said.classes.push((class, *span)),
                Some(Err(why)) => said.bad = Some((why, *span)),
                None => {}
            }
        }
        said.classes.extend(relation.mark.clone());
        let loaded = self.loaded;
        for (at, entry) in loaded.config.tables.iter().enumerate() {
            if names(entry, world, relation) {
                self.entries.insert(at);
                said.classes.push((entry.class.clone(), entry.class_span));
            }
        }
        said
    }

    fn table(&mut self, world: &World, name: &str, id: Id, relation: &Relation) -> Option<Classified> {
        let said = self.said(world, relation);
        if let Some((why, span)) = said.bad {
            self.problem(name, Finding::new(Code::RETENTION_CLASS, span, format!("the comment on `{name}` is about retention: {why}"))
                .help("write `COMMENT ON TABLE … IS 'retention: CLASS'`, with words of your own before it if you like"));
            return None;
        }
        let mut own: Vec<(String, Span)> = Vec::new();
        for (class, span) in said.classes {
            if !own.iter().any(|(other, _)| *other == class) {
                own.push((class, span));
            }
        }
        if let [(one, at), (other, second), ..] = own.as_slice() {
            let message = format!("`{name}` has two classes, `{one}` and `{other}`");
            self.problem(
                name,
                Finding::new(Code::RETENTION_CLASS, *at, message)
                    .related(*second, "the other one")
                    .help("keep one of them"),
            );
            return None;
        }
        let inherited = self.inherited(world, id, 0);
        let classified = match (own.pop(), inherited.as_slice()) {
            (Some((class, span)), parents) => {
                self.same_as_whole(name, relation, (&class, span), parents);
                Classified { class, span, inherited: false }
            }
            (None, [(class, span)]) => Classified { class: class.clone(), span: *span, inherited: true },
            (None, [(one, at), (other, second), ..]) => {
                let message = format!("`{name}` inherits two classes, `{one}` and `{other}`");
                let finding = Finding::new(Code::RETENTION_CLASS, relation.span, message)
                    .related(*at, "the one")
                    .related(*second, "the other");
                self.problem(
                    name,
                    finding
                        .help("name the class of this table itself: `-- retention: CLASS` before its `CREATE TABLE`"),
                );
                return None;
            }
            (None, []) => {
                self.unclassified(name, relation);
                return None;
            }
        };
        self.known(world, name, relation, classified)
    }

    /// Classes of what a table is a part or an heir of.
    fn inherited(&mut self, world: &World, id: Id, depth: usize) -> Vec<(String, Span)> {
        /// Deeper than anybody nests partitions.
        const DEEPEST: usize = 64;
        let Some(relation) = world.get(id) else { return Vec::new() };
        let mut found: Vec<(String, Span)> = Vec::new();
        for parent in relation.partition_of.iter().chain(&relation.inherits) {
            let Some(parent_relation) = world.get(*parent) else { continue };
            let mut classes = self.said(world, parent_relation).classes;
            if classes.is_empty() && depth < DEEPEST {
                classes = self.inherited(world, *parent, depth + 1);
            }
            for (class, span) in classes {
                if !found.iter().any(|(other, _)| *other == class) {
                    found.push((class, span));
                }
            }
        }
        found
    }

    /// Rows of a partition are rows of the whole, so they cannot have another class.
    fn same_as_whole(&mut self, name: &str, relation: &Relation, own: (&str, Span), parents: &[(String, Span)]) {
        if let Some((other, at)) = parents.iter().find(|(class, _)| class != own.0)
            && relation.partition_of.is_some()
        {
            let message =
                format!("the partition `{name}` is `{}`, and the table that it is a part of is `{other}`", own.0);
            self.problem(
                name,
                Finding::new(Code::RETENTION_CLASS, own.1, message)
                    .related(*at, "the class of the whole")
                    .help("leave the class of the partition out; it has that of the whole"),
            );
        }
    }

    fn unclassified(&mut self, name: &str, relation: &Relation) {
        let kind = if relation.kind == RelationKind::Materialized { "materialised view" } else { "table" };
        let mut finding = Finding::new(
            Code::RETENTION_UNCLASSIFIED,
            relation.span,
            format!("the {kind} `{name}` has no retention class"),
        );
        if let Some(span) = relation.detached {
            finding = finding.related(span, "here it left the table whose class it had");
        }
        if let Some((_, span)) = &relation.comment {
            finding = finding.related(*span, "this is its comment now, and it names no class");
        }
        let key = name.strip_prefix("public.").unwrap_or(name);
        let known: Vec<&str> = self.loaded.config.classes.keys().map(String::as_str).collect();
        let known = if known.is_empty() { String::new() } else { format!("; classes are {}", listed(&known)) };
        let on = if relation.kind == RelationKind::Materialized { "MATERIALIZED VIEW" } else { "TABLE" };
        self.problem(name, finding.help(format!(
            "write `-- retention: CLASS` on a line before it, `COMMENT ON {on} {} IS 'retention: CLASS';` in a new migration, or `{key}: CLASS` under `tables` in `retention.yaml`{known}",
            relation.full_name()
        )));
    }

    fn known(&mut self, world: &World, name: &str, relation: &Relation, classified: Classified) -> Option<Classified> {
        let Some(class) = self.loaded.config.classes.get(&classified.class) else {
            if !classified.inherited {
                let known: Vec<&str> = self.loaded.config.classes.keys().map(String::as_str).collect();
                let message = format!("`{}`, the class of `{name}`, is not declared", classified.class);
                self.problem(
                    name,
                    Finding::new(Code::RETENTION_CLASS, classified.span, message).help(format!(
                        "{}declare it under `classes` in `retention.yaml`; there are {}",
                        nearest_name(&classified.class, &known),
                        listed(&known)
                    )),
                );
            }
            return None;
        };
        self.used.insert(classified.class.clone());
        if class.audit && relation.partition_of.is_none() {
            self.envelope(world, name, relation, &classified);
        }
        Some(classified)
    }

    /// The six columns of an audit table.
    fn envelope(&mut self, world: &World, name: &str, relation: &Relation, classified: &Classified) {
        let finding = |message: String| {
            Finding::new(Code::RETENTION_AUDIT, relation.span, message)
                .related(classified.span, "here it is said to be an audit table")
        };
        let Some(columns) = &relation.columns else {
            let message = format!("the columns of the audit table `{name}` cannot be told");
            self.problem(name, finding(message).help("write its columns out in a `CREATE TABLE`"));
            return;
        };
        let mut wrong = Vec::new();
        for (column, types) in ENVELOPE {
            match columns.iter().find(|c| c.name == column) {
                None => wrong.push(format!("`{column}` is missing")),
                Some(c) if !types.contains(&world.base_type(&c.of)) => {
                    wrong.push(format!("`{column}` is `{}`", c.of));
                }
                Some(_) => {}
            }
        }
        if !wrong.is_empty() {
            let message = format!("the audit table `{name}` lacks parts of its envelope: {}", wrong.join(", "));
            self.problem(name, finding(message).help(
                "every audit table has `ts timestamptz`, `workspace`, `actor`, `correlation_id` and `stack_version` (`text`, `varchar` or `uuid`), and `schema_version` (`text` or an integer)",
            ));
        }
    }

    /// Entries of `tables` that name no table would classify one that comes later, unseen.
    fn entries(&mut self) {
        let loaded = self.loaded;
        for (at, entry) in loaded.config.tables.iter().enumerate() {
            if !self.entries.contains(&at) {
                let name = display(entry);
                let mut finding = Finding::new(Code::RETENTION_UNUSED, entry.span, format!("no table is called `{name}`"))
                    .help("correct the name, or remove the entry: the next table of that name would have the class without anybody's looking");
                finding.level = Level::Error;
                self.problem(&name, finding);
            }
            if !loaded.config.classes.contains_key(&entry.class) && !self.entries.contains(&at) {
                self.used.insert(entry.class.clone());
            }
        }
    }

    fn classes(&mut self) {
        let loaded = self.loaded;
        for (name, class) in &loaded.config.classes {
            if !self.used.contains(name) {
                let finding =
                    Finding::new(Code::RETENTION_UNUSED, class.span, format!("no table is of the class `{name}`"));
                self.problem(name, finding.help("remove the class, or correct the name where it is used"));
            }
            self.pruning(name, class);
        }
    }

    /// A period that nothing enforces is a wish.
    fn pruning(&mut self, name: &str, class: &RetentionClass) {
        let Period::Hours(_) = class.period else { return };
        let Some((job, span)) = &class.prune else {
            let message = format!("nothing prunes the class `{name}` after `{}`", class.written);
            self.problem(name, Finding::new(Code::RETENTION_PRUNING, class.period_span, message).help(
                "name the job that deletes what is older: `prune: JOB`, and register the job in the health-floor list",
            ));
            return;
        };
        let (registered, help) = match &self.loaded.config.health_floor {
            HealthFloor::None => (false, "say where the watched jobs are listed: `health_floor: path/to/list.yaml` in `retention.yaml`, or `health_floor: [JOB]`".to_owned()),
            HealthFloor::Here(_) => (self.loaded.jobs.contains(job), "add it to `health_floor`, and to what watches the jobs".to_owned()),
            HealthFloor::File(path, _) => (self.loaded.jobs.contains(job), format!("add it to `{path}`, so that somebody is told when it stops")),
        };
        if !registered {
            let message = format!("the job `{job}`, which prunes the class `{name}`, is not in the health-floor list");
            self.problem(name, Finding::new(Code::RETENTION_PRUNING, *span, message).help(help));
        }
    }
}

/// `[database/]schema.name` as an entry names it.
pub(super) fn display(entry: &TableEntry) -> String {
    let database = &entry.table.database;
    if database.is_empty() { entry.table.name.to_string() } else { format!("{database}/{}", entry.table.name) }
}

fn names(entry: &TableEntry, world: &World, relation: &Relation) -> bool {
    let database = world.prefix.trim_end_matches('/');
    let schema = entry.table.name.schema.as_deref().unwrap_or("public");
    entry.table.database == database
        && matches(schema, &relation.schema)
        && (matches(&entry.table.name.name, &relation.name) || entry.table.name.name == relation.name)
}

fn listed(names: &[&str]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}
