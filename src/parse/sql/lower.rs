//! One statement's syntax tree → what it does to tables.

use squawk_syntax::ast::{self, AstNode};
use squawk_syntax::{SourceFile, SyntaxKind as K, SyntaxNode};

use super::names::{self, type_text};
use super::scan::{Chunk, Word};
use super::touch;
use crate::model::{Act, Change, Column, NewRelation, Opaque, RelationKind, SqlName};
use crate::source::{FileId, Span};

/// Deepest nesting of parentheses that is handed to the grammar: it calls itself for each.
const MAX_DEPTH: usize = 200;

/// Where the statement stands in its file.
pub(super) struct Place<'t> {
    pub(super) file: FileId,
    pub(super) text: &'t str,
    pub(super) base: usize,
}

impl Place<'_> {
    /// The text of a node as it stands in the file.
    pub(super) fn written(&self, node: &SyntaxNode) -> &str {
        let range = node.text_range();
        self.text.get(self.base + usize::from(range.start())..self.base + usize::from(range.end())).unwrap_or("")
    }

    fn span(&self, node: &SyntaxNode) -> Span {
        let range = node.text_range();
        Span::new(self.file, self.base + usize::from(range.start()), self.base + usize::from(range.end()))
    }
}

/// What a statement does. Never fails: what cannot be read is [`Act::Opaque`], unless its words
/// say that it touches no table.
pub(super) fn acts(file: FileId, text: &str, chunk: &Chunk) -> Vec<Act> {
    let place = Place { file, text, base: chunk.range.start };
    let words = touch::plain(&chunk.words);
    if too_deep(chunk) {
        return unreadable(&words, "too many parentheses in each other".to_owned());
    }
    let parsed = SourceFile::parse(&chunk.clean);
    let root = parsed.syntax_node();
    let mut statements = root.children().filter(|node| node.kind() != K::EMPTY_STMT);
    let (first, more) = (statements.next(), statements.next());
    let Some(node) = first.filter(|_| more.is_none()) else {
        return unreadable(&words, "it is no single statement".to_owned());
    };
    let mut acts = Vec::new();
    // Bodies of routines are judged by their words, whatever the grammar says of them.
    let routine = matches!(node.kind(), K::CREATE_FUNCTION | K::CREATE_PROCEDURE);
    if !routine && let Some(error) = parsed.errors().first() {
        return unreadable(&words, error.message().to_owned());
    }
    statement(&place, &node, &mut acts);
    acts.extend(texts(&place, chunk, &words));
    acts.extend(calls(&chunk.words));
    acts
}

fn too_deep(chunk: &Chunk) -> bool {
    let (mut depth, mut most) = (0_usize, 0);
    for word in &chunk.words {
        match word {
            Word::Sign(b'(' | b'[') => depth += 1,
            Word::Sign(b')' | b']') => depth = depth.saturating_sub(1),
            _ => {}
        }
        most = most.max(depth);
    }
    most > MAX_DEPTH
}

/// A statement that the grammar does not take.
fn unreadable(words: &[&str], why: String) -> Vec<Act> {
    // A column of an audit table may go with it.
    let alters = words.first() == Some(&"alter") && words.get(1) == Some(&"table");
    if alters || touch::statement(words) { vec![Act::Opaque(Opaque::Unreadable(why))] } else { Vec::new() }
}

/// SQL in a text that a function is called with.
fn texts(place: &Place<'_>, chunk: &Chunk, words: &[&str]) -> Option<Act> {
    if !matches!(words.first(), Some(&("select" | "call" | "with" | "values"))) {
        return None;
    }
    chunk.words.iter().find_map(|word| {
        let Word::Text(range) = word else { return None };
        let sql = literal(place.text.get(range.clone())?)?;
        touch::is_definition(&sql).then(|| Act::Opaque(Opaque::Text(shorten(&sql))))
    })
}

/// Most characters of a text that a message shows.
const SHOWN: usize = 48;

fn shorten(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(SHOWN) {
        Some((at, _)) => format!("{}…", line.get(..at).unwrap_or("")),
        None => line,
    }
}

/// Statements that run what they call; others only mention it.
const RUNS: &[&str] = &["select", "call", "with", "values", "insert", "update", "delete", "merge", "table", "explain"];

/// The routines that a statement calls, by its words.
pub(super) fn calls(words: &[Word]) -> Option<Act> {
    if !matches!(words.first(), Some(Word::Plain(first)) if RUNS.contains(&first.as_str())) {
        return None;
    }
    called(words)
}

fn called(words: &[Word]) -> Option<Act> {
    let mut names: Vec<SqlName> = Vec::new();
    for pair in words.windows(2) {
        if let [Word::Plain(name), Word::Sign(b'(')] = pair
            && names.iter().all(|known| known.name != *name)
        {
            names.push(SqlName { schema: None, name: name.clone() });
        }
    }
    (!names.is_empty()).then_some(Act::Calls(names))
}

/// The value of a text in quotes.
pub(super) fn literal(quoted: &str) -> Option<String> {
    if let Some(body) = quoted.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\'')) {
        return Some(body.replace("''", "'"));
    }
    let end = quoted.strip_prefix('$')?.find('$')? + 2;
    quoted.get(end..quoted.len().checked_sub(end)?).map(str::to_owned)
}

fn statement(place: &Place<'_>, node: &SyntaxNode, out: &mut Vec<Act>) {
    match node.kind() {
        K::CREATE_TABLE | K::CREATE_TABLE_AS | K::CREATE_FOREIGN_TABLE => out.extend(create_table(place, node)),
        K::CREATE_MATERIALIZED_VIEW => out.extend(create_view(place, node, RelationKind::Materialized)),
        K::CREATE_VIEW => out.extend(create_view(place, node, RelationKind::View)),
        K::CREATE_INDEX | K::CREATE_SEQUENCE => out.extend(create_other(place, node)),
        K::SELECT | K::SELECT_INTO | K::PAREN_SELECT | K::COMPOUND_SELECT | K::VALUES | K::TABLE => {
            select(place, node, out);
        }
        K::EXPLAIN => explain(place, node, out),
        K::DROP_TABLE => out.push(drop(place, node, RelationKind::Table)),
        K::DROP_MATERIALIZED_VIEW => out.push(drop(place, node, RelationKind::Materialized)),
        K::DROP_VIEW => out.push(drop(place, node, RelationKind::View)),
        K::DROP_FOREIGN_TABLE => out.push(drop(place, node, RelationKind::Foreign)),
        K::DROP_INDEX | K::DROP_SEQUENCE => out.push(drop(place, node, RelationKind::Other)),
        K::DROP_SCHEMA => out.push(Act::DropSchema(schemas(place, node))),
        K::DROP_TYPE => out.push(Act::DropType(names::all(place, node), has(node, K::CASCADE))),
        K::DROP_OWNED => out.push(Act::Opaque(Opaque::Other("it drops whatever a role owns"))),
        K::ALTER_TABLE | K::ALTER_FOREIGN_TABLE => alter(place, node, RelationKind::Table, out),
        K::ALTER_MATERIALIZED_VIEW => alter(place, node, RelationKind::Materialized, out),
        K::ALTER_VIEW => alter(place, node, RelationKind::View, out),
        K::ALTER_SCHEMA => out.extend(rename_schema(place, node)),
        K::ALTER_DATABASE | K::ALTER_ROLE | K::ALTER_USER if place.written(node).contains("search_path") => {
            out.push(Act::Opaque(Opaque::Other("it changes the `search_path` of later sessions")));
        }
        K::COMMENT_ON => out.extend(comment(place, node)),
        K::CREATE_SCHEMA => create_schema(place, node, out),
        K::CREATE_TYPE => out.extend(create_type(place, node)),
        K::CREATE_DOMAIN => out.extend(create_domain(place, node)),
        K::SET | K::RESET => out.extend(set(place, node)),
        K::DISCARD => out.push(Act::SearchPath(None)),
        K::BEGIN | K::COMMIT_TRANSACTION => out.push(Act::Commit),
        K::ROLLBACK_TRANSACTION | K::ROLLBACK_TO_SAVEPOINT => out.push(Act::Rollback),
        K::CREATE_FUNCTION | K::CREATE_PROCEDURE => routine(place, node, out),
        K::DO => block(node, out),
        _ => {}
    }
}

fn has(node: &SyntaxNode, kind: K) -> bool {
    node.children().any(|child| child.kind() == kind)
}

fn child(node: &SyntaxNode, kind: K) -> Option<SyntaxNode> {
    node.children().find(|child| child.kind() == kind)
}

fn is_temporary(node: &SyntaxNode) -> bool {
    node.children().any(|child| {
        let temporary = |node: &SyntaxNode| {
            node.descendants_with_tokens().any(|e| matches!(e.kind(), K::TEMP_KW | K::TEMPORARY_KW))
        };
        matches!(child.kind(), K::TEMP) && temporary(&child)
    })
}

fn new(kind: RelationKind, name: SqlName, span: Span) -> NewRelation {
    NewRelation {
        kind,
        name,
        span,
        if_not_exists: false,
        or_replace: false,
        columns: Some(Vec::new()),
        like: Vec::new(),
        inherits: Vec::new(),
        partition_of: None,
        of_type: None,
        reads: Vec::new(),
    }
}

fn create_table(place: &Place<'_>, node: &SyntaxNode) -> Option<Act> {
    let named = child(node, K::TABLE_NAME)?;
    let kind = match node.kind() {
        K::CREATE_FOREIGN_TABLE => RelationKind::Foreign,
        _ if is_temporary(node) => RelationKind::Temporary,
        _ => RelationKind::Table,
    };
    let mut made = new(kind, names::first(place, &named)?, place.span(&named));
    made.if_not_exists = has(node, K::IF_NOT_EXISTS);
    if node.kind() == K::CREATE_TABLE_AS {
        made.columns = None;
        return Some(Act::Create(Box::new(made)));
    }
    if let Some(list) = child(node, K::TABLE_ARG_LIST) {
        made.columns = Some(list.children().filter_map(|arg| column(place, &arg)).collect());
        let likes = list.children().filter(|arg| arg.kind() == K::LIKE_CLAUSE);
        made.like = likes.filter_map(|like| names::first(place, &like)).collect();
    }
    made.inherits = child(node, K::INHERITS).map(|list| names::all(place, &list)).unwrap_or_default();
    made.partition_of = child(node, K::PARTITION_OF).and_then(|of| names::first(place, &of));
    made.of_type = child(node, K::OF_TYPE).and_then(|of| names::first(place, &of));
    Some(Act::Create(Box::new(made)))
}

fn column(place: &Place<'_>, node: &SyntaxNode) -> Option<Column> {
    if node.kind() != K::COLUMN && node.kind() != K::ADD_COLUMN && node.kind() != K::COMPOSITE_FIELD_DEF {
        return None;
    }
    let mut parts = node.children().filter(|part| part.kind() != K::IF_NOT_EXISTS);
    let name = names::simple(place, &parts.next()?)?;
    let of = parts.next().filter(|part| ast::Type::can_cast(part.kind()));
    Some(Column { name, of: of.map_or_else(String::new, |of| type_text(place.written(&of))) })
}

fn create_view(place: &Place<'_>, node: &SyntaxNode, kind: RelationKind) -> Option<Act> {
    let named = child(node, K::VIEW)?;
    let temporary = kind == RelationKind::View && is_temporary(node);
    let kind = if temporary { RelationKind::Temporary } else { kind };
    let mut made = new(kind, names::first(place, &named)?, place.span(&named));
    made.if_not_exists = has(node, K::IF_NOT_EXISTS);
    made.or_replace = has(node, K::OR_REPLACE);
    made.columns = None;
    let local: Vec<String> =
        node.descendants().filter(|n| n.kind() == K::CTE_NAME).filter_map(|n| names::simple(place, &n)).collect();
    made.reads = node
        .descendants()
        .filter(|n| n.kind() == K::RELATION_NAME_REF)
        .filter_map(|n| names::first(place, &n))
        .filter(|name| name.schema.is_some() || !local.contains(&name.name))
        .collect();
    Some(Act::Create(Box::new(made)))
}

fn create_other(place: &Place<'_>, node: &SyntaxNode) -> Option<Act> {
    let named = node.children().find(|n| matches!(n.kind(), K::INDEX | K::SEQUENCE))?;
    let mut name = names::first(place, &named)?;
    if node.kind() == K::CREATE_INDEX {
        // An index lies in the schema of its table.
        name.schema = child(node, K::TABLE_RELATION_NAME).and_then(|on| names::first(place, &on))?.schema;
    }
    let mut made = new(RelationKind::Other, name, place.span(&named));
    made.if_not_exists = true;
    Some(Act::Create(Box::new(made)))
}

fn select(place: &Place<'_>, node: &SyntaxNode, out: &mut Vec<Act>) {
    if let Some(into) = node.descendants().find(|n| n.kind() == K::INTO_CLAUSE) {
        let Some(named) = child(&into, K::TABLE_NAME) else { return };
        let kind = if is_temporary(&into) { RelationKind::Temporary } else { RelationKind::Table };
        if let Some(name) = names::first(place, &named) {
            let mut made = new(kind, name, place.span(&named));
            made.columns = None;
            out.push(Act::Create(Box::new(made)));
        }
    }
    for call in node.descendants().filter(|n| n.kind() == K::CALL_EXPR) {
        out.extend(set_config(place, &call));
    }
}

/// `set_config('search_path', …)`, as `pg_dump` writes it.
fn set_config(place: &Place<'_>, call: &SyntaxNode) -> Option<Act> {
    let called = call.children().next()?;
    let name = place.written(&called).to_ascii_lowercase();
    if name != "set_config" && name != "pg_catalog.set_config" {
        return None;
    }
    let list = child(call, K::ARG_LIST)?;
    let mut texts = list.descendants().filter_map(ast::Literal::cast);
    if texts.next()?.string_value()? != "search_path" {
        return None;
    }
    let value = texts.next().and_then(|l| l.string_value());
    Some(value.map_or(Act::Opaque(Opaque::Other("it computes the `search_path`")), |value| {
        Act::SearchPath(Some(names::path_in_text(&value)))
    }))
}

fn explain(place: &Place<'_>, node: &SyntaxNode, out: &mut Vec<Act>) {
    let runs = place.written(node).to_ascii_lowercase().contains("analy");
    let makes = |n: &SyntaxNode| matches!(n.kind(), K::CREATE_TABLE_AS | K::CREATE_MATERIALIZED_VIEW | K::INTO_CLAUSE);
    if runs && node.descendants().any(|n| makes(&n)) {
        out.push(Act::Opaque(Opaque::Other("`EXPLAIN ANALYZE` runs what it explains")));
    }
}

fn drop(place: &Place<'_>, node: &SyntaxNode, kind: RelationKind) -> Act {
    Act::Drop {
        kind,
        names: names::all(place, node),
        if_exists: has(node, K::IF_EXISTS),
        cascade: has(node, K::CASCADE),
    }
}

fn schemas(place: &Place<'_>, node: &SyntaxNode) -> Vec<String> {
    let refs = node.children().filter(|n| matches!(n.kind(), K::SCHEMA_REF | K::SCHEMA));
    refs.filter_map(|n| names::simple(place, &n)).collect()
}

fn alter(place: &Place<'_>, node: &SyntaxNode, kind: RelationKind, out: &mut Vec<Act>) {
    let target = node.children().find(|n| matches!(n.kind(), K::TABLE_RELATION_NAME | K::VIEW_REF));
    let Some(name) = target.as_ref().and_then(|n| names::first(place, n)) else { return };
    let mut changes = Vec::new();
    for action in node.children() {
        match action.kind() {
            K::MERGE_PARTITIONS | K::SPLIT_PARTITION => {
                out.push(Act::Opaque(Opaque::Other("it makes new partitions out of old ones")));
            }
            _ => changes.extend(change(place, &action)),
        }
    }
    out.push(Act::Alter { kind, name, if_exists: has(node, K::IF_EXISTS), changes });
}

fn change(place: &Place<'_>, action: &SyntaxNode) -> Option<Change> {
    let table = || action.children().find(|n| n.kind() == K::TABLE_NAME_REF).and_then(|n| names::first(place, &n));
    let columns: Vec<String> = action
        .children()
        .filter(|n| matches!(n.kind(), K::COLUMN_NAME_REF | K::COLUMN_NAME))
        .filter_map(|n| names::simple(place, &n))
        .collect();
    Some(match action.kind() {
        K::TABLE_RENAME_TO | K::VIEW_RENAME_TO => Change::Rename(names::first(place, &action.children().next()?)?.name),
        K::SET_SCHEMA => Change::Schema(schemas(place, action).into_iter().next()?),
        K::ADD_COLUMN => Change::AddColumn(column(place, action)?, has(action, K::IF_NOT_EXISTS)),
        K::DROP_COLUMN => Change::DropColumn(columns.into_iter().next()?),
        K::RENAME_COLUMN => match columns.as_slice() {
            [from, to] => Change::RenameColumn(from.clone(), to.clone()),
            _ => return None,
        },
        K::ALTER_COLUMN => {
            let set = child(action, K::SET_TYPE)?;
            let of = set.children().find(|n| ast::Type::can_cast(n.kind()))?;
            Change::ColumnType(Column { name: columns.into_iter().next()?, of: type_text(place.written(&of)) })
        }
        K::ATTACH_PARTITION => Change::Attach(table()?),
        K::DETACH_PARTITION => Change::Detach(table()?),
        K::INHERIT_TABLE => Change::Inherit(table()?),
        K::NO_INHERIT_TABLE => Change::NoInherit(table()?),
        K::OF_TYPE => Change::OfType(names::first(place, action)?),
        K::NOT_OF => Change::NotOfType,
        _ => return None,
    })
}

fn rename_schema(place: &Place<'_>, node: &SyntaxNode) -> Option<Act> {
    let from = schemas(place, node).into_iter().next()?;
    let to = schemas(place, &child(node, K::SCHEMA_RENAME_TO)?).into_iter().next()?;
    Some(Act::RenameSchema(from, to))
}

fn comment(place: &Place<'_>, node: &SyntaxNode) -> Option<Act> {
    let object = node.children().find(|n| matches!(n.kind(), K::OBJECT_TABLE | K::OBJECT_MATERIALIZED_VIEW))?;
    let name = names::first(place, &object)?;
    let literal = node.children().find_map(ast::Literal::cast);
    let text = literal.and_then(|l| Some((l.string_value()?, place.span(l.syntax()))));
    // An empty comment is none.
    Some(Act::Comment { name, text: text.filter(|(text, _)| !text.is_empty()) })
}

fn create_schema(place: &Place<'_>, node: &SyntaxNode, out: &mut Vec<Act>) {
    let named = node.descendants().find(|n| n.kind() == K::SCHEMA).and_then(|n| names::simple(place, &n));
    let owner = || node.descendants().find(|n| n.kind() == K::ROLE).and_then(|n| names::simple(place, &n));
    let Some(schema) = named.or_else(owner) else {
        out.push(Act::Opaque(Opaque::Other("the schema has no name of its own")));
        return;
    };
    out.push(Act::CreateSchema(schema.clone()));
    let mut inner = Vec::new();
    for element in node.children() {
        statement(place, &element, &mut inner);
    }
    for act in &mut inner {
        if let Act::Create(made) = act {
            made.name.schema.get_or_insert_with(|| schema.clone());
        }
    }
    out.append(&mut inner);
}

fn create_type(place: &Place<'_>, node: &SyntaxNode) -> Option<Act> {
    let name = names::first(place, &child(node, K::TYPE_NAME)?)?;
    let fields = child(node, K::COMPOSITE_TYPE)?;
    let list = child(&fields, K::COMPOSITE_FIELD_LIST)?;
    Some(Act::CreateType(name, list.children().filter_map(|field| column(place, &field)).collect()))
}

fn create_domain(place: &Place<'_>, node: &SyntaxNode) -> Option<Act> {
    let name = names::first(place, &child(node, K::DOMAIN)?)?;
    let of = node.children().find(|n| ast::Type::can_cast(n.kind()))?;
    Some(Act::CreateDomain(name, type_text(place.written(&of))))
}

/// `SET search_path`, `SET SCHEMA`, `RESET`.
fn set(place: &Place<'_>, node: &SyntaxNode) -> Option<Act> {
    let written = place.written(node).to_ascii_lowercase();
    if let Some(value) = node.descendants().find(|n| n.kind() == K::SET_SCHEMA_VALUE) {
        let literal = value.descendants().find_map(ast::Literal::cast)?.string_value()?;
        return Some(Act::SearchPath(Some(vec![literal])));
    }
    if !written.contains("search_path") {
        let all = node.kind() == K::RESET && written.contains("all");
        return all.then_some(Act::SearchPath(None));
    }
    let values: Vec<String> = node
        .descendants()
        .filter_map(|n| match n.kind() {
            K::CONFIG_VALUE_NAME => names::simple(place, &n),
            K::LITERAL => ast::Literal::cast(n)?.string_value(),
            _ => None,
        })
        .filter(|schema| !schema.is_empty())
        .collect();
    let default = node.kind() == K::RESET || node.descendants_with_tokens().any(|e| e.kind() == K::DEFAULT_KW);
    Some(Act::SearchPath((!default).then_some(values)))
}

fn routine(place: &Place<'_>, node: &SyntaxNode, out: &mut Vec<Act>) {
    let name = node.children().find_map(|n| names::first(place, &n));
    let body = node.descendants().filter(|n| n.kind() == K::AS_DEFINITION);
    let texts: Vec<String> =
        body.flat_map(|n| n.children()).filter_map(ast::Literal::cast).filter_map(|l| l.string_value()).collect();
    let makes = texts.iter().find_map(|text| touch::creates(text));
    let touches = makes.is_some() || texts.iter().any(|text| touch::body(text).is_some());
    if let Some(words) = makes {
        out.push(Act::Opaque(Opaque::Routine(words)));
    }
    out.extend(name.map(|name| Act::Routine(name, touches)));
}

fn block(node: &SyntaxNode, out: &mut Vec<Act>) {
    let body = node.children().find_map(ast::Literal::cast).and_then(|l| l.string_value());
    let Some(body) = body else {
        out.push(Act::Opaque(Opaque::Block("DO".to_owned())));
        return;
    };
    match touch::body(&body).or_else(|| touch::creates(&body)) {
        Some(words) => out.push(Act::Opaque(Opaque::Block(words))),
        None => out.extend(super::scan::chunks(&body).iter().filter_map(|chunk| called(&chunk.words))),
    }
}
