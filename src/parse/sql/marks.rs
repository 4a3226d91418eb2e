//! Comments about retention: `-- retention: CLASS` and its siblings.

use std::ops::Range;

use crate::model::{Mark, MarkKind, SqlName};
use crate::source::{FileId, Span};

/// Most bytes of a class's name.
pub(crate) const MAX_CLASS: usize = 64;

/// Whether a text may be the name of a class.
pub(crate) fn is_class(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= MAX_CLASS
        && text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b))
}

/// What the lines of a comment say about retention.
pub(super) fn read(file: FileId, text: &str, range: &Range<usize>) -> Vec<Mark> {
    let comment = text.get(range.clone()).unwrap_or("");
    let mut at = range.start;
    let mut marks = Vec::new();
    for line in comment.split_inclusive('\n') {
        let body = line.trim_start().trim_start_matches(['-', '/', '*', ' ', '\t']);
        let start = at + (line.len() - body.len());
        let body = body.trim_end().trim_end_matches("*/").trim_end();
        if let Some(kind) = mark(body) {
            marks.push(Mark { kind, span: Span::new(file, start, start + body.len()) });
        }
        at += line.len();
    }
    marks
}

fn mark(line: &str) -> Option<MarkKind> {
    let (key, value) = line.split_once(':')?;
    let value = value.trim();
    match key.trim().to_ascii_lowercase().as_str() {
        "retention" if is_class(value) => Some(MarkKind::Class(value.to_owned())),
        "retention" => Some(MarkKind::Bad(format!("`{value}` is no name of a class"))),
        "retention-creates" => Some(names(value).map_or_else(MarkKind::Bad, MarkKind::Creates)),
        "retention-drops" => Some(names(value).map_or_else(MarkKind::Bad, MarkKind::Drops)),
        "retention-tables" if value.eq_ignore_ascii_case("none") => Some(MarkKind::None),
        "retention-tables" => Some(MarkKind::Bad("`retention-tables` is only ever `none`".to_owned())),
        key if key.starts_with("retention-") && !key.contains(' ') => {
            Some(MarkKind::Bad(format!("`{key}` is no comment that polctl knows")))
        }
        _ => None,
    }
}

fn names(text: &str) -> Result<Vec<SqlName>, String> {
    let names: Vec<&str> = text.split(',').map(str::trim).collect();
    names.iter().map(|name| table_name(name).ok_or_else(|| format!("`{name}` is no name of a table"))).collect()
}

/// A table's name as it is written in a comment or in `retention.yaml`: exactly as the server
/// stores it, without quotes; a `*` stands for any characters.
pub(crate) fn table_name(text: &str) -> Option<SqlName> {
    if text.is_empty() || text.contains(|c: char| c.is_whitespace() || c == '"' || c == '\'') {
        return None;
    }
    let (schema, name) = match text.split_once('.') {
        Some((schema, name)) => (Some(schema.to_owned()), name.to_owned()),
        None => (None, text.to_owned()),
    };
    let empty = name.is_empty() || schema.as_deref() == Some("");
    (!empty).then_some(SqlName { schema, name })
}

/// What a table's comment in the database says: the class, or that it cannot be told.
/// `None`: nothing about retention.
pub(crate) fn class_in(comment: &str) -> Option<Result<String, String>> {
    let lower = comment.to_ascii_lowercase();
    let mut found: Vec<&str> = Vec::new();
    for (at, _) in lower.match_indices("retention:") {
        let before = comment.get(..at).and_then(|before| before.chars().next_back());
        if before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == '-') {
            continue;
        }
        let rest = comment.get(at + "retention:".len()..).unwrap_or("").trim_start();
        let end = rest.find(|c: char| c.is_whitespace() || ",;)".contains(c)).unwrap_or(rest.len());
        found.push(rest.get(..end).unwrap_or("").trim_end_matches('.'));
    }
    match found.as_slice() {
        [] => None,
        [class] if is_class(class) => Some(Ok((*class).to_owned())),
        [class] => Some(Err(format!("`{class}` is no name of a class"))),
        _ => Some(Err("the comment names a class more than once".to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comment_names_one_class() {
        assert_eq!(class_in("retention: audit-7y"), Some(Ok("audit-7y".into())));
        assert_eq!(class_in("Who logged in. Retention: audit-7y."), Some(Ok("audit-7y".into())));
        assert_eq!(class_in("data retention policy"), None);
        assert_eq!(class_in("no-retention: x"), None);
        assert!(class_in("retention: a, retention: b").unwrap().is_err());
        assert!(class_in("retention:").unwrap().is_err());
    }

    #[test]
    fn lines_of_comments() {
        assert_eq!(mark("retention: audit-7y"), Some(MarkKind::Class("audit-7y".into())));
        assert_eq!(mark("retention-tables: none"), Some(MarkKind::None));
        assert!(matches!(mark("retention-create: x"), Some(MarkKind::Bad(_))));
        assert!(matches!(mark("retention: keep forever"), Some(MarkKind::Bad(_))));
        assert_eq!(mark("about retention: none of this"), None);
    }
}
