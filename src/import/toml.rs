//! TOML, and YAML, as the same tree that JSON is read into.

use super::json::{Kind, Node};
use super::{Problem, unreadable};
use crate::parse::yaml;
use crate::source::{FileId, Span};

/// Reads a TOML file.
///
/// # Errors
///
/// Where the text stops being TOML.
pub(super) fn read(file: FileId, text: &str) -> Result<Node, Problem> {
    let document = toml_edit::Document::parse(text).map_err(|error| {
        let at = error.span().unwrap_or(0..text.len().min(1));
        let message = error.message().lines().next().unwrap_or("").to_owned();
        unreadable(
            Span::new(file, at.start, at.end.max(at.start + 1)),
            format!("this is no TOML: {message}"),
            "correct the file first",
        )
    })?;
    let whole = Span::new(file, 0, text.len());
    Ok(Node { kind: table(file, document.as_table(), whole), span: whole })
}

fn table(file: FileId, table: &toml_edit::Table, outer: Span) -> Kind {
    Kind::Map(table.iter().map(|(key, value)| (key.to_owned(), item(file, value, outer))).collect())
}

fn item(file: FileId, item: &toml_edit::Item, outer: Span) -> Node {
    let span = item.span().map_or(outer, |at| Span::new(file, at.start, at.end));
    let kind = match item {
        toml_edit::Item::None => Kind::Null,
        toml_edit::Item::Value(own) => return value(file, own, span),
        toml_edit::Item::Table(own) => table(file, own, span),
        toml_edit::Item::ArrayOfTables(tables) => Kind::List(
            tables
                .iter()
                .map(|own| {
                    let span = own.span().map_or(span, |at| Span::new(file, at.start, at.end));
                    Node { kind: table(file, own, span), span }
                })
                .collect(),
        ),
    };
    Node { kind, span }
}

fn value(file: FileId, value: &toml_edit::Value, outer: Span) -> Node {
    let span = value.span().map_or(outer, |at| Span::new(file, at.start, at.end));
    let kind = match value {
        toml_edit::Value::String(text) => Kind::Text(text.value().clone()),
        toml_edit::Value::Boolean(own) => Kind::Bool(*own.value()),
        toml_edit::Value::Integer(number) => Kind::Number(number.value().to_string()),
        toml_edit::Value::Float(number) => Kind::Number(number.value().to_string()),
        toml_edit::Value::Datetime(_) => Kind::Null,
        toml_edit::Value::Array(items) => Kind::List(items.iter().map(|own| self::value(file, own, span)).collect()),
        toml_edit::Value::InlineTable(own) => {
            Kind::Map(own.iter().map(|(key, own)| (key.to_owned(), self::value(file, own, span))).collect())
        }
    };
    Node { kind, span }
}

/// Reads a YAML file.
///
/// # Errors
///
/// What the reader of policy files refuses: tags, anchors, keys that stand twice.
pub(super) fn read_yaml(file: FileId, text: &str) -> Result<Node, Vec<Problem>> {
    let mut problems = Vec::new();
    let node = yaml::read(file, 0, text, &mut problems).map(|node| converted(&node));
    node.filter(|_| problems.is_empty()).ok_or_else(|| {
        let help = "correct the file first; anchors and tags are not read";
        problems.into_iter().map(|own| unreadable(own.span, own.message, help)).collect()
    })
}

fn converted(node: &yaml::Node) -> Node {
    let kind = match &node.kind {
        yaml::Kind::Null => Kind::Null,
        yaml::Kind::Scalar(text) => Kind::Text(text.clone()),
        yaml::Kind::Seq(items) => Kind::List(items.iter().map(converted).collect()),
        yaml::Kind::Map(entries) => {
            Kind::Map(entries.iter().map(|(key, value)| (key.name.clone(), converted(value))).collect())
        }
    };
    Node { kind, span: node.span }
}
