//! JSON, and JSON with comments and trailing commas as editors write it.

use serde_json::Value;

use super::rules::Entry;
use super::tree::{Lines, Node, flatten};

/// The scalars of one value, or of one value a line.
pub(super) fn entries(text: &str) -> Result<Vec<Entry>, ()> {
    let value = serde_json::from_str::<Value>(text).or_else(|_| serde_json::from_str(&plain(text)));
    let value = value.or_else(|_| by_line(text))?;
    flatten(&node(value, &Lines::new(text)))
}

/// One object a line.
fn by_line(text: &str) -> Result<Value, ()> {
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    lines.map(serde_json::from_str).collect::<Result<Vec<Value>, _>>().map(Value::Array).map_err(|_| ())
}

// The depth is bounded by `serde_json`.
fn node(value: Value, lines: &Lines<'_>) -> Node {
    match value {
        Value::Null => Node::Scalar { text: String::new(), line: None },
        Value::Bool(value) => Node::Scalar { text: value.to_string(), line: None },
        Value::Number(value) => Node::Scalar { text: value.to_string(), line: None },
        Value::String(text) => Node::Scalar { line: lines.of(&text), text },
        Value::Array(items) => Node::Seq(items.into_iter().map(|item| node(item, lines)).collect()),
        Value::Object(entries) => {
            Node::Map(entries.into_iter().map(|(key, value)| (key, node(value, lines))).collect())
        }
    }
}

/// The text with comments and trailing commas as blanks.
fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text.trim_start_matches('\u{feff}');
    while let Some(c) = rest.chars().next() {
        let taken = match c {
            '"' => string(rest),
            '/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            '/' if rest.starts_with("/*") => rest.find("*/").map_or(rest.len(), |end| end + 2),
            _ => c.len_utf8(),
        };
        let (head, tail) = rest.split_at(taken);
        match c {
            '/' if taken > 1 => out.push(' '),
            '}' | ']' => {
                let kept = out.trim_end().trim_end_matches(',').len();
                out.truncate(kept);
                out.push(c);
            }
            _ => out.push_str(head),
        }
        rest = tail;
    }
    out
}

/// The length of the string literal that `text` begins with.
fn string(text: &str) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}
