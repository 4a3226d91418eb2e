//! The tables that a database holds once all statements are applied in order.
//!
//! Owns the names of relations and how one becomes another. What a statement does is what the
//! server does; where a statement names what no earlier one created, polctl has read something
//! otherwise than the server, and says so.

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::diag::{Code, Finding};
use crate::model::{
    Act, Change, Column, Mark, MarkKind, NewRelation, Opaque, RelationKind, Script, SqlName, Statement,
};
use crate::parse::class_in_comment;
use crate::source::Span;

/// Index of a relation.
pub type Id = usize;

/// A relation that is there.
#[derive(Clone, Debug)]
pub struct Relation {
    /// What it is.
    pub kind: RelationKind,
    /// Its schema.
    pub schema: String,
    /// Its name.
    pub name: String,
    /// Where it was created.
    pub span: Span,
    /// Earlier names, `schema.name`.
    pub was: Vec<String>,
    /// The comment in the database.
    pub comment: Option<(String, Span)>,
    /// The class in a comment before its statement.
    pub mark: Option<(String, Span)>,
    /// The partitioned table that it is a part of.
    pub partition_of: Option<Id>,
    /// The tables that it inherits from.
    pub inherits: Vec<Id>,
    /// Where it ceased to inherit.
    pub detached: Option<Span>,
    /// Columns, as far as they are known.
    pub columns: Option<Vec<Column>>,
    /// The composite type that it is of.
    of_type: Option<(String, String)>,
    /// What a view reads.
    reads: Vec<Id>,
    /// Created only when something runs; its name may hold `*`.
    pub at_run_time: bool,
}

impl Relation {
    /// `schema.name`.
    pub fn full_name(&self) -> String {
        format!("{}.{}", self.schema, self.name)
    }

    /// Whether it holds rows that stay.
    pub const fn is_durable(&self) -> bool {
        matches!(self.kind, RelationKind::Table | RelationKind::Materialized)
    }
}

/// A finding and what it is about, by a name that stays when lines move.
#[derive(Clone, Debug)]
pub struct Problem {
    /// The finding.
    pub finding: Finding,
    /// A table, a class or a statement.
    pub subject: String,
}

/// A database while statements are applied.
#[derive(Debug, Default)]
pub struct World {
    relations: Vec<Option<Relation>>,
    names: HashMap<(String, String), Id>,
    temporary: HashMap<String, Id>,
    types: HashMap<(String, String), Vec<Column>>,
    domains: HashMap<String, String>,
    schemas: HashSet<String>,
    /// Routines that may change tables when they are called.
    routines: HashSet<String>,
    path: Option<Vec<String>>,
    default_schema: String,
    /// Whether tables changed since the transaction began.
    changed: bool,
    /// What could not be followed.
    pub problems: Vec<Problem>,
    /// Prefix of table names in messages: the database, where there are several.
    pub prefix: String,
}

impl World {
    /// An empty database of this name.
    pub fn new(database: &str) -> World {
        let prefix = if database.is_empty() { String::new() } else { format!("{database}/") };
        World { default_schema: "public".to_owned(), prefix, ..World::default() }
    }

    /// Relations that are there, by id.
    pub fn relations(&self) -> impl Iterator<Item = (Id, &Relation)> {
        self.relations.iter().enumerate().filter_map(|(id, relation)| Some((id, relation.as_ref()?)))
    }

    /// Tables and materialised views, by name.
    pub fn durable(&self) -> BTreeMap<String, (Id, &Relation)> {
        let durable = self.relations().filter(|(_, r)| r.is_durable());
        durable.map(|(id, r)| (format!("{}{}", self.prefix, r.full_name()), (id, r))).collect()
    }

    /// The relation of this id.
    pub fn get(&self, id: Id) -> Option<&Relation> {
        self.relations.get(id).and_then(Option::as_ref)
    }

    fn get_mut(&mut self, id: Id) -> Option<&mut Relation> {
        self.relations.get_mut(id).and_then(Option::as_mut)
    }

    /// What a type is made of, through domains.
    pub fn base_type<'t>(&'t self, of: &'t str) -> &'t str {
        let mut of = of;
        for _ in 0..16 {
            let name = of.rsplit('.').next().unwrap_or(of);
            match self.domains.get(name) {
                Some(base) => of = base,
                None => break,
            }
        }
        of
    }

    /// Applies a file. A file is a session of its own: its `search_path` and its temporary
    /// tables end with it.
    pub fn apply(&mut self, script: &Script, schema: &str) {
        schema.clone_into(&mut self.default_schema);
        self.path = None;
        self.changed = false;
        for statement in &script.statements {
            self.statement(statement);
        }
        for mark in &script.stray {
            self.stray(mark);
        }
        for id in std::mem::take(&mut self.temporary).into_values() {
            self.forget(id);
        }
    }

    fn problem(&mut self, finding: Finding, subject: String) {
        self.problems.push(Problem { finding, subject });
    }

    fn stray(&mut self, mark: &Mark) {
        let message = match &mark.kind {
            MarkKind::Bad(why) => why.clone(),
            _ => "this comment about retention belongs to no statement".to_owned(),
        };
        let finding = Finding::new(Code::RETENTION_COMMENT, mark.span, message)
            .help("write it on a line of its own directly before the `CREATE TABLE`: `-- retention: CLASS`");
        self.problem(finding, String::new());
    }

    fn statement(&mut self, statement: &Statement) {
        let mut marks = Marks::default();
        for mark in &statement.marks {
            match &mark.kind {
                MarkKind::Class(class) => marks.classes.push((class.clone(), mark.span)),
                MarkKind::Creates(names) => marks.creates.extend(names.iter().map(|name| (name.clone(), mark.span))),
                MarkKind::Drops(names) => marks.drops.extend(names.iter().cloned()),
                MarkKind::None => {}
                MarkKind::Bad(_) => {
                    self.stray(mark);
                    continue;
                }
            }
            marks.spans.push(mark.span);
        }
        let explained = statement
            .marks
            .iter()
            .any(|m| matches!(m.kind, MarkKind::None | MarkKind::Creates(_) | MarkKind::Drops(_)));
        let (mut made, mut needed) = (Vec::new(), false);
        for act in &statement.acts {
            if let (Act::Routine(name, _), true) = (act, explained) {
                // What it does is said where it is defined, so calls of it need no word more.
                self.routines.remove(&name.name);
                needed = true;
                continue;
            }
            match self.act(act, statement.span) {
                Outcome::Made(id) => made.push(id),
                Outcome::Unknown(why, help) => {
                    if !explained && !needed {
                        self.unknown(statement.span, &why, help);
                    }
                    needed = true;
                }
                Outcome::Done => {}
            }
        }
        self.classify(marks, made, needed, explained);
    }

    /// Gives what a statement made the class of the comments before it.
    fn classify(&mut self, marks: Marks, mut made: Vec<Id>, needed: bool, explained: bool) {
        if needed && explained {
            for name in &marks.drops {
                self.drop_named(name, true);
            }
            for (name, span) in &marks.creates {
                made.extend(self.create_at_run_time(name, *span));
            }
        }
        let durable: Vec<Id> = made.into_iter().filter(|id| self.get(*id).is_some_and(Relation::is_durable)).collect();
        let idle = if explained { !needed } else { durable.is_empty() && !marks.classes.is_empty() };
        if idle {
            for span in marks.spans {
                self.stray(&Mark { kind: MarkKind::None, span });
            }
            return;
        }
        if let [first, second, ..] = marks.classes.as_slice()
            && first.0 != second.0
        {
            let finding =
                Finding::new(Code::RETENTION_CLASS, second.1, "two comments name different classes for one table")
                    .related(first.1, "the other comment")
                    .help("keep one of them");
            let subject = durable.first().and_then(|id| self.get(*id)).map(Relation::full_name).unwrap_or_default();
            self.problem(finding, subject);
        }
        let Some((class, span)) = marks.classes.first() else { return };
        for id in durable {
            let Some(relation) = self.get_mut(id) else { continue };
            match relation.mark.clone().filter(|(other, _)| other != class) {
                // A later `CREATE TABLE IF NOT EXISTS` of the same table.
                Some((other, before)) => {
                    let subject = relation.full_name();
                    let message = format!("`{subject}` was created with the class `{other}` and is here `{class}`");
                    let finding = Finding::new(Code::RETENTION_CLASS, *span, message)
                        .related(before, "where it was created")
                        .help("change a class with `COMMENT ON TABLE … IS 'retention: CLASS'`, or keep one of the comments");
                    self.problem(finding, subject);
                }
                None => relation.mark = Some((class.clone(), *span)),
            }
        }
    }

    fn unknown(&mut self, span: Span, why: &str, help: &'static str) {
        let finding = Finding::new(Code::RETENTION_UNKNOWN, span, why).help(help);
        self.problem(finding, String::new());
    }

    fn act(&mut self, act: &Act, span: Span) -> Outcome {
        match act {
            Act::Create(new) => return self.create(new),
            Act::Drop { kind, names, if_exists, cascade } => return self.drop(*kind, names, *if_exists, *cascade),
            Act::Alter { name, if_exists, changes, .. } => return self.alter(name, *if_exists, changes, span),
            Act::Comment { name, text } => return self.comment(name, text.as_ref()),
            Act::CreateSchema(name) => {
                self.schemas.insert(name.clone());
            }
            Act::DropSchema(names) => self.drop_schemas(names),
            Act::RenameSchema(from, to) => self.rename_schema(from, to),
            Act::CreateType(name, fields) => {
                let key = self.place(name);
                self.types.insert(key, fields.clone());
            }
            Act::CreateDomain(name, base) => {
                self.domains.insert(name.name.clone(), base.clone());
            }
            Act::DropType(names, cascade) => self.drop_types(names, *cascade),
            Act::SearchPath(path) => self.path.clone_from(path),
            Act::Commit => self.changed = false,
            Act::Rollback if self.changed => {
                return Outcome::Unknown("`ROLLBACK` takes back what came before it".to_owned(), ROLLED_BACK);
            }
            Act::Rollback => {}
            Act::Routine(name, touches) => {
                if *touches {
                    self.routines.insert(name.name.clone());
                } else {
                    self.routines.remove(&name.name);
                }
            }
            Act::Calls(names) => {
                if let Some(called) = names.iter().find(|name| self.routines.contains(&name.name)) {
                    let why = format!("it calls `{}()`, which may create, rename or drop tables", called.name);
                    return Outcome::Unknown(why, SAY_WHAT);
                }
            }
            Act::Opaque(why) => return opaque(why),
        }
        Outcome::Done
    }

    /// Schemas in which a name without one is looked for.
    fn search(&self) -> Vec<String> {
        match &self.path {
            Some(path) => path.iter().filter(|schema| *schema != "$user").cloned().collect(),
            None => vec![self.default_schema.clone()],
        }
    }

    fn exists(&self, schema: &str) -> bool {
        schema == "public" || schema == self.default_schema || self.schemas.contains(schema)
    }

    /// Where a new relation of this name goes.
    fn place(&self, name: &SqlName) -> (String, String) {
        if let Some(schema) = &name.schema {
            return (schema.clone(), name.name.clone());
        }
        let search = self.search();
        let schema = search.iter().find(|schema| self.exists(schema)).or(search.first());
        (schema.unwrap_or(&self.default_schema).clone(), name.name.clone())
    }

    /// The relation that a name stands for.
    pub fn resolve(&self, name: &SqlName) -> Option<Id> {
        if let Some(schema) = &name.schema {
            if schema == "pg_temp" {
                return self.temporary.get(&name.name).copied();
            }
            return self.names.get(&(schema.clone(), name.name.clone())).copied();
        }
        if let Some(id) = self.temporary.get(&name.name) {
            return Some(*id);
        }
        self.search().into_iter().find_map(|schema| self.names.get(&(schema, name.name.clone())).copied())
    }

    fn create(&mut self, new: &NewRelation) -> Outcome {
        let temporary = new.kind == RelationKind::Temporary || new.name.schema.as_deref() == Some("pg_temp");
        let (schema, name) = if temporary { (String::new(), new.name.name.clone()) } else { self.place(&new.name) };
        let taken = if temporary {
            self.temporary.get(&name).copied()
        } else {
            self.names.get(&(schema.clone(), name.clone())).copied()
        };
        if let Some(id) = taken {
            return self.taken(id, new);
        }
        let kind = if temporary { RelationKind::Temporary } else { new.kind };
        let id = self.relations.len();
        let relation = self.relation(new, kind, schema.clone(), name.clone());
        self.relations.push(Some(relation));
        if temporary {
            self.temporary.insert(name, id);
        } else {
            self.names.insert((schema, name), id);
            self.changed = true;
        }
        if let Some(missing) = self.missing_parent(new) {
            return missing;
        }
        Outcome::Made(id)
    }

    fn relation(&self, new: &NewRelation, kind: RelationKind, schema: String, name: String) -> Relation {
        let ids = |names: &[SqlName]| names.iter().filter_map(|name| self.resolve(name)).collect::<Vec<_>>();
        let of_type = new.of_type.as_ref().map(|name| self.type_key(name));
        Relation {
            kind,
            schema,
            name,
            span: new.span,
            was: Vec::new(),
            comment: None,
            mark: None,
            partition_of: new.partition_of.as_ref().and_then(|name| self.resolve(name)),
            inherits: ids(&new.inherits),
            detached: None,
            columns: self.columns(new, of_type.as_ref()),
            of_type,
            reads: ids(&new.reads),
            at_run_time: false,
        }
    }

    fn type_key(&self, name: &SqlName) -> (String, String) {
        let search = match &name.schema {
            Some(schema) => vec![schema.clone()],
            None => self.search(),
        };
        let keys = search.into_iter().map(|schema| (schema, name.name.clone()));
        keys.into_iter().find(|key| self.types.contains_key(key)).unwrap_or_else(|| self.place(name))
    }

    /// The columns of a new table; `None` where some cannot be known.
    fn columns(&self, new: &NewRelation, of_type: Option<&(String, String)>) -> Option<Vec<Column>> {
        let mut all = Vec::new();
        let others = new.inherits.iter().chain(&new.partition_of).chain(&new.like);
        for name in others {
            all.extend(self.get(self.resolve(name)?)?.columns.clone()?);
        }
        if let Some(key) = of_type {
            all.extend(self.types.get(key)?.clone());
        }
        for column in new.columns.as_ref()? {
            let known = all.iter().position(|c| c.name == column.name);
            match known.and_then(|at| all.get_mut(at)) {
                Some(column) if column.of.is_empty() => {}
                Some(_) => {}
                None => all.push(column.clone()),
            }
        }
        Some(all)
    }

    fn missing_parent(&self, new: &NewRelation) -> Option<Outcome> {
        let parents = new.inherits.iter().chain(&new.partition_of);
        let lost = parents.into_iter().find(|name| self.resolve(name).is_none())?;
        Some(nowhere(lost))
    }

    /// A name that is there already.
    fn taken(&mut self, id: Id, new: &NewRelation) -> Outcome {
        if new.kind == RelationKind::View && new.or_replace {
            let reads = new.reads.iter().filter_map(|name| self.resolve(name)).collect();
            if let Some(view) = self.get_mut(id) {
                view.reads = reads;
            }
            return Outcome::Done;
        }
        if new.if_not_exists {
            // A comment before it is about the table that is there.
            return Outcome::Made(id);
        }
        let why = format!("`{}` is created, and it is there already", new.name);
        Outcome::Unknown(
            why,
            "polctl read an earlier statement otherwise than the server, or the files are no longer those that were applied; name the tool in `retention.yaml`, or say what was dropped: `-- retention-drops: NAME`",
        )
    }

    fn create_at_run_time(&mut self, name: &SqlName, span: Span) -> Option<Id> {
        let (schema, name) = self.place(name);
        if self.names.contains_key(&(schema.clone(), name.clone())) {
            return None;
        }
        let id = self.relations.len();
        let at_run_time = name.contains('*');
        self.relations.push(Some(Relation {
            kind: RelationKind::Table,
            schema: schema.clone(),
            name: name.clone(),
            span,
            was: Vec::new(),
            comment: None,
            mark: None,
            partition_of: None,
            inherits: Vec::new(),
            detached: None,
            columns: None,
            of_type: None,
            reads: Vec::new(),
            at_run_time,
        }));
        self.names.insert((schema, name), id);
        Some(id)
    }

    fn drop_named(&mut self, name: &SqlName, cascade: bool) {
        if let Some(id) = self.resolve(name) {
            self.remove(id, cascade);
        }
    }

    fn drop(&mut self, kind: RelationKind, names: &[SqlName], if_exists: bool, cascade: bool) -> Outcome {
        let mut outcome = Outcome::Done;
        for name in names {
            match self.resolve(name) {
                Some(id) => self.remove(id, cascade),
                None if if_exists || kind == RelationKind::Other || kind == RelationKind::View => {}
                None => outcome = nowhere(name),
            }
        }
        outcome
    }

    /// Removes a relation with what cannot be without it.
    fn remove(&mut self, id: Id, cascade: bool) {
        if self.get(id).is_none() {
            return;
        }
        self.changed = true;
        let depends =
            |r: &Relation| r.partition_of == Some(id) || cascade && (r.inherits.contains(&id) || r.reads.contains(&id));
        let dependents: Vec<Id> = self.relations().filter(|(_, r)| depends(r)).map(|(id, _)| id).collect();
        self.forget(id);
        for dependent in dependents {
            self.remove(dependent, cascade);
        }
    }

    fn forget(&mut self, id: Id) {
        let Some(relation) = self.relations.get_mut(id).and_then(Option::take) else { return };
        self.names.retain(|_, other| *other != id);
        self.temporary.retain(|_, other| *other != id);
        drop(relation);
    }

    fn drop_schemas(&mut self, names: &[String]) {
        let gone: Vec<Id> = self.relations().filter(|(_, r)| names.contains(&r.schema)).map(|(id, _)| id).collect();
        for id in gone {
            self.remove(id, true);
        }
        self.types.retain(|(schema, _), _| !names.contains(schema));
        self.schemas.retain(|schema| !names.contains(schema));
    }

    fn drop_types(&mut self, names: &[SqlName], cascade: bool) {
        for name in names {
            let key = self.type_key(name);
            let typed = self.relations().filter(|(_, r)| cascade && r.of_type.as_ref() == Some(&key));
            let typed: Vec<Id> = typed.map(|(id, _)| id).collect();
            for id in typed {
                self.remove(id, true);
            }
            self.types.remove(&key);
            self.domains.remove(&name.name);
        }
    }

    fn rename_schema(&mut self, from: &str, to: &str) {
        let moved: Vec<Id> = self.relations().filter(|(_, r)| r.schema == from).map(|(id, _)| id).collect();
        for id in moved {
            self.moved(id, Some(to), None);
        }
        let types: Vec<_> = self.types.keys().filter(|(schema, _)| schema == from).cloned().collect();
        for (schema, name) in types {
            if let Some(fields) = self.types.remove(&(schema, name.clone())) {
                self.types.insert((to.to_owned(), name), fields);
            }
        }
        self.schemas.remove(from);
        self.schemas.insert(to.to_owned());
    }

    /// Gives a relation another schema or name.
    fn moved(&mut self, id: Id, schema: Option<&str>, name: Option<&str>) {
        let Some(relation) = self.get_mut(id) else { return };
        let temporary = relation.kind == RelationKind::Temporary;
        let before = relation.full_name();
        let old = (relation.schema.clone(), relation.name.clone());
        if let Some(schema) = schema {
            schema.clone_into(&mut relation.schema);
        }
        if let Some(name) = name {
            name.clone_into(&mut relation.name);
        }
        let new = (relation.schema.clone(), relation.name.clone());
        relation.was.push(before);
        if temporary {
            self.temporary.remove(&old.1);
            self.temporary.insert(new.1, id);
        } else {
            self.names.remove(&old);
            self.names.insert(new, id);
            self.changed = true;
        }
    }

    fn alter(&mut self, name: &SqlName, if_exists: bool, changes: &[Change], span: Span) -> Outcome {
        if changes.is_empty() {
            return Outcome::Done;
        }
        let Some(id) = self.resolve(name) else {
            return if if_exists { Outcome::Done } else { nowhere(name) };
        };
        let mut outcome = Outcome::Done;
        for change in changes {
            if let Some(unknown) = self.change(id, change, span) {
                outcome = unknown;
            }
        }
        outcome
    }

    fn change(&mut self, id: Id, change: &Change, span: Span) -> Option<Outcome> {
        match change {
            Change::Rename(to) => self.moved(id, None, Some(to)),
            Change::Schema(to) => self.moved(id, Some(to), None),
            Change::Attach(part) => return self.linked(part, |r| r.partition_of = Some(id)),
            Change::Detach(part) => {
                return self.linked(part, |r| {
                    r.partition_of = None;
                    r.detached = Some(span);
                });
            }
            Change::Inherit(parent) => {
                let Some(parent) = self.resolve(parent) else { return Some(nowhere(parent)) };
                self.get_mut(id)?.inherits.push(parent);
            }
            Change::NoInherit(parent) => {
                let parent = self.resolve(parent);
                let relation = self.get_mut(id)?;
                relation.inherits.retain(|other| Some(*other) != parent);
                relation.detached = Some(span);
            }
            Change::OfType(of) => {
                let key = self.type_key(of);
                self.get_mut(id)?.of_type = Some(key);
            }
            Change::NotOfType => self.get_mut(id)?.of_type = None,
            columns => self.change_columns(id, columns),
        }
        None
    }

    fn linked(&mut self, part: &SqlName, with: impl FnOnce(&mut Relation)) -> Option<Outcome> {
        let Some(id) = self.resolve(part) else { return Some(nowhere(part)) };
        with(self.get_mut(id)?);
        None
    }

    /// Changes the columns of a table, and of those that have theirs from it.
    fn change_columns(&mut self, id: Id, change: &Change) {
        let children = self.relations().filter(|(_, r)| r.partition_of == Some(id) || r.inherits.contains(&id));
        let children: Vec<Id> = children.map(|(id, _)| id).collect();
        if let Some(columns) = self.get_mut(id).and_then(|r| r.columns.as_mut()) {
            match change {
                Change::AddColumn(column, _) if columns.iter().all(|c| c.name != column.name) => {
                    columns.push(column.clone());
                }
                Change::DropColumn(name) => columns.retain(|c| c.name != *name),
                Change::RenameColumn(from, to) => {
                    columns.iter_mut().filter(|c| c.name == *from).for_each(|c| c.name.clone_from(to));
                }
                Change::ColumnType(column) => {
                    columns.iter_mut().filter(|c| c.name == column.name).for_each(|c| c.of.clone_from(&column.of));
                }
                _ => {}
            }
        }
        for child in children {
            self.change_columns(child, change);
        }
    }

    fn comment(&mut self, name: &SqlName, text: Option<&(String, Span)>) -> Outcome {
        let Some(id) = self.resolve(name) else { return nowhere(name) };
        if let Some(relation) = self.get_mut(id) {
            relation.comment = text.cloned();
            // A comment before an applied migration cannot be changed any more; one in the
            // database can, and takes its place.
            if text.is_some_and(|(text, _)| class_in_comment(text).is_some()) {
                relation.mark = None;
            }
        }
        Outcome::Done
    }
}

/// The comments about retention before one statement.
#[derive(Default)]
struct Marks {
    classes: Vec<(String, Span)>,
    creates: Vec<(SqlName, Span)>,
    drops: Vec<SqlName>,
    spans: Vec<Span>,
}

enum Outcome {
    Done,
    Made(Id),
    Unknown(String, &'static str),
}

/// How to say what a statement does that cannot be followed.
const SAY_WHAT: &str = "write tables as plain statements, or say before it what it does: `-- retention-creates: schema.table` with `-- retention: CLASS`, `-- retention-drops: schema.table`, or `-- retention-tables: none`";
const ROLLED_BACK: &str = "leave the statements out that are taken back; transactions are not followed. If nothing of it is about tables, write `-- retention-tables: none` before it";

fn nowhere(name: &SqlName) -> Outcome {
    let why = format!("no statement before this one creates `{name}`");
    Outcome::Unknown(
        why,
        "add the migration that creates it, or list its place under `migrations` in `retention.yaml` before this one; `schema:` there says where names without a schema go. A table that an extension makes: write `-- retention-tables: none` before the statement",
    )
}

fn opaque(why: &Opaque) -> Outcome {
    let (message, help) = match why {
        Opaque::Unreadable(what) => (
            format!("this statement cannot be read ({what}), and it may create, rename or drop tables"),
            "write it as PostgreSQL 15 reads it, or say before it what it does: `-- retention-creates: schema.table` with `-- retention: CLASS`, `-- retention-drops: schema.table`, or `-- retention-tables: none`",
        ),
        Opaque::Block(what) => (format!("this block may create, rename or drop tables (`{what}`)"), SAY_WHAT),
        Opaque::Routine(what) => (
            format!("this routine makes tables whenever it runs (`{what}`)"),
            "say which, with `*` for what varies: `-- retention-creates: schema.events_*` and `-- retention: CLASS` before the routine; temporary tables are written `CREATE TEMP TABLE`",
        ),
        Opaque::Text(what) => (format!("a text holds SQL about tables that something runs (`{what}`)"), SAY_WHAT),
        Opaque::Conditional => ("whether this statement runs depends on a template".to_owned(), SAY_WHAT),
        Opaque::Meta(what) => (
            format!("`{what}` of psql reads or runs something that polctl does not see"),
            "write the statements themselves, or list the other file under `migrations`; if it is not about tables, write `-- retention-tables: none` before it",
        ),
        Opaque::Other(what) => ((*what).to_owned(), SAY_WHAT),
    };
    Outcome::Unknown(message, help)
}
