//! TOML.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::rules::Entry;
use super::tree::{Node, flatten, line_at};

/// The scalars of a document.
pub(super) fn entries(text: &str) -> Result<Vec<Entry>, ()> {
    let table = DeTable::parse(text).map_err(|_| ())?;
    flatten(&map(table.get_ref(), text))
}

fn map(table: &DeTable<'_>, text: &str) -> Node {
    Node::Map(table.iter().map(|(key, value)| (key.get_ref().to_string(), node(value, text))).collect())
}

// The depth is bounded by `toml`.
fn node(value: &Spanned<DeValue<'_>>, text: &str) -> Node {
    let line = Some(line_at(text.as_bytes(), value.span().start));
    let scalar = |text: String| Node::Scalar { text, line };
    match value.get_ref() {
        DeValue::String(text) => scalar(text.to_string()),
        DeValue::Integer(number) => scalar(number.to_string()),
        DeValue::Float(number) => scalar(number.to_string()),
        DeValue::Boolean(value) => scalar(value.to_string()),
        DeValue::Datetime(at) => scalar(at.to_string()),
        DeValue::Array(items) => Node::Seq(items.iter().map(|item| node(item, text)).collect()),
        DeValue::Table(table) => map(table, text),
    }
}
