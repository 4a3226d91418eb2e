//! What a statement of SQL does to tables: the part of the data definition that retention needs.
//!
//! Names are folded as `PostgreSQL` folds them. Nothing here knows the grammar or the order in
//! which files are applied.

use crate::source::Span;

/// A name, folded; unqualified where it has no schema.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SqlName {
    /// The schema, if it is written.
    pub schema: Option<String>,
    /// The name itself.
    pub name: String,
}

impl std::fmt::Display for SqlName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.schema {
            Some(schema) => write!(f, "{schema}.{}", self.name),
            None => f.write_str(&self.name),
        }
    }
}

/// Kinds of relations. They share one name space in each schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RelationKind {
    /// A table, partitioned or not, logged or not.
    Table,
    /// A table of one session.
    Temporary,
    /// A materialised view: it holds rows of its own.
    Materialized,
    /// A view.
    View,
    /// A table that lies elsewhere.
    Foreign,
    /// An index, a sequence or a composite type: no rows, but a name.
    Other,
}

/// A column and its type, as written and in lower case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// The name.
    pub name: String,
    /// The type, without its modifiers: `timestamp with time zone`, `app.money`, `text[]`.
    pub of: String,
}

/// A relation that comes into being.
#[derive(Clone, Debug)]
pub struct NewRelation {
    /// What it is.
    pub kind: RelationKind,
    /// Its name.
    pub name: SqlName,
    /// Where the name stands.
    pub span: Span,
    /// `IF NOT EXISTS`.
    pub if_not_exists: bool,
    /// `OR REPLACE`, for views.
    pub or_replace: bool,
    /// Columns; `None` where the statement does not list them (`AS SELECT`).
    pub columns: Option<Vec<Column>>,
    /// Tables whose columns it copies.
    pub like: Vec<SqlName>,
    /// `INHERITS`.
    pub inherits: Vec<SqlName>,
    /// `PARTITION OF`.
    pub partition_of: Option<SqlName>,
    /// `OF` a composite type.
    pub of_type: Option<SqlName>,
    /// What a view reads.
    pub reads: Vec<SqlName>,
}

/// One change of an `ALTER` statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// `RENAME TO`.
    Rename(String),
    /// `SET SCHEMA`.
    Schema(String),
    /// `ADD COLUMN`; `true`: `IF NOT EXISTS`.
    AddColumn(Column, bool),
    /// `DROP COLUMN`.
    DropColumn(String),
    /// `RENAME COLUMN`.
    RenameColumn(String, String),
    /// `ALTER COLUMN … TYPE`.
    ColumnType(Column),
    /// `ATTACH PARTITION`.
    Attach(SqlName),
    /// `DETACH PARTITION`.
    Detach(SqlName),
    /// `INHERIT`.
    Inherit(SqlName),
    /// `NO INHERIT`.
    NoInherit(SqlName),
    /// `OF`.
    OfType(SqlName),
    /// `NOT OF`.
    NotOfType,
}

/// What a statement does.
#[derive(Clone, Debug)]
pub enum Act {
    /// A relation comes into being.
    Create(Box<NewRelation>),
    /// Relations of a kind go.
    Drop {
        /// What they are.
        kind: RelationKind,
        /// Their names.
        names: Vec<SqlName>,
        /// `IF EXISTS`.
        if_exists: bool,
        /// `CASCADE`.
        cascade: bool,
    },
    /// A relation changes.
    Alter {
        /// What the statement calls it; `ALTER TABLE` takes any relation.
        kind: RelationKind,
        /// Its name.
        name: SqlName,
        /// `IF EXISTS`.
        if_exists: bool,
        /// The changes, in order.
        changes: Vec<Change>,
    },
    /// A comment on a table or materialised view; `None` clears it.
    Comment {
        /// The relation.
        name: SqlName,
        /// The text, and where it stands.
        text: Option<(String, Span)>,
    },
    /// `CREATE SCHEMA`.
    CreateSchema(String),
    /// `DROP SCHEMA`.
    DropSchema(Vec<String>),
    /// `ALTER SCHEMA … RENAME TO`.
    RenameSchema(String, String),
    /// A composite type and its fields.
    CreateType(SqlName, Vec<Column>),
    /// A domain and the type that it is made of.
    CreateDomain(SqlName, String),
    /// `DROP TYPE … CASCADE` drops tables of the type.
    DropType(Vec<SqlName>, bool),
    /// `SET search_path`; `None`: the default again.
    SearchPath(Option<Vec<String>>),
    /// A transaction begins or is kept.
    Commit,
    /// A transaction or part of it is taken back.
    Rollback,
    /// A routine is defined; `true`: its body may create, rename or drop tables.
    Routine(SqlName, bool),
    /// Routines that the statement calls.
    Calls(Vec<SqlName>),
    /// It may create, rename or drop tables, and which cannot be told.
    Opaque(Opaque),
}

/// Why what a statement does to tables cannot be told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Opaque {
    /// The grammar does not take it; what it said.
    Unreadable(String),
    /// A `DO` block, with the words that matter.
    Block(String),
    /// A routine whose body creates tables when it runs.
    Routine(String),
    /// SQL in a text that something runs.
    Text(String),
    /// Stands in a condition of a template or of psql.
    Conditional,
    /// A command of psql that reads or runs something else.
    Meta(String),
    /// Another reason, in words.
    Other(&'static str),
}

/// What a comment about retention says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MarkKind {
    /// `-- retention: CLASS`: the class of the table that the statement creates.
    Class(String),
    /// `-- retention-creates: NAME, …`: what a statement creates that cannot be read.
    Creates(Vec<SqlName>),
    /// `-- retention-drops: NAME, …`
    Drops(Vec<SqlName>),
    /// `-- retention-tables: none`: the statement creates, renames and drops no table.
    None,
    /// It begins like one and cannot be read; what is wrong.
    Bad(String),
}

/// A comment about retention, before a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    /// What it says.
    pub kind: MarkKind,
    /// Where it stands.
    pub span: Span,
}

/// One statement that is applied.
#[derive(Clone, Debug)]
pub struct Statement {
    /// Where it stands.
    pub span: Span,
    /// What it does, in order.
    pub acts: Vec<Act>,
    /// The comments about retention before it.
    pub marks: Vec<Mark>,
}

/// The statements of a file that are applied.
#[derive(Clone, Debug, Default)]
pub struct Script {
    /// In order.
    pub statements: Vec<Statement>,
    /// Comments about retention that stand before no statement.
    pub stray: Vec<Mark>,
}
