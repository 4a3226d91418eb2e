//! Names and types as `PostgreSQL` stores them.

use squawk_syntax::{SyntaxKind as K, SyntaxNode};

use super::lower::Place;
use crate::model::SqlName;

/// Longest name that the server keeps, in bytes; what is longer is cut by it.
const MAX_NAME: usize = 63;

/// The first qualified name in a node.
pub(super) fn first(place: &Place<'_>, node: &SyntaxNode) -> Option<SqlName> {
    let path = node.descendants().find(|n| matches!(n.kind(), K::PATH | K::PATH_REF))?;
    from_path(place, &path)
}

/// Every qualified name directly in the children of a node.
pub(super) fn all(place: &Place<'_>, node: &SyntaxNode) -> Vec<SqlName> {
    node.children().filter_map(|child| first(place, &child)).collect()
}

fn from_path(place: &Place<'_>, path: &SyntaxNode) -> Option<SqlName> {
    let segments = path.descendants().filter(|n| matches!(n.kind(), K::PATH_SEGMENT | K::PATH_SEGMENT_REF));
    let mut parts: Vec<String> = segments.filter_map(|n| fold(place.written(&n))).collect();
    let name = parts.pop()?;
    Some(SqlName { schema: parts.pop(), name })
}

/// The name in a node that holds nothing else.
pub(super) fn simple(place: &Place<'_>, node: &SyntaxNode) -> Option<String> {
    fold(place.written(node))
}

/// A name as it is stored: in lower case unless it is quoted, and cut. What a template puts in
/// stands as it is written.
pub(super) fn fold(written: &str) -> Option<String> {
    let written = written.trim();
    let stored = if let Some(inner) = written.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) {
        inner.replace("\"\"", "\"")
    } else if written.len() > 3 && written.get(..2).is_some_and(|p| p.eq_ignore_ascii_case("u&")) {
        escaped(written.get(2..)?.strip_prefix('"')?.split('"').next()?)?
    } else if written.contains("{{") || written.contains("${") {
        return Some(template(written, false));
    } else {
        written.to_ascii_lowercase()
    };
    if stored.contains("{{") || stored.contains("${") {
        return Some(template(&stored, true));
    }
    let end = (0..=MAX_NAME.min(stored.len())).rev().find(|at| stored.is_char_boundary(*at))?;
    (!stored.is_empty()).then(|| stored.get(..end).unwrap_or("").to_owned())
}

/// A name with parts of a template: lower case outside of the braces, and each part in one
/// spelling, `{{ .Name }}`, however it is spaced. In quotes nothing else changes.
fn template(written: &str, quoted: bool) -> String {
    let (mut out, mut rest) = (String::new(), written);
    let plain = |text: &str| if quoted { text.to_owned() } else { text.to_ascii_lowercase() };
    while let Some(at) = rest.find("{{").into_iter().chain(rest.find("${")).min() {
        let (before, part) = rest.split_at(at);
        out.push_str(&plain(before));
        let (close, length) = if part.starts_with("{{") { ("}}", 2) } else { ("}", 1) };
        let end = part.find(close).map_or(part.len(), |at| at + length);
        let (part, after) = part.split_at(end);
        match part.strip_prefix("{{").and_then(|inner| inner.strip_suffix("}}")) {
            Some(inner) => {
                let words: Vec<&str> = inner.trim_matches('-').split_whitespace().collect();
                out.push_str(&format!("{{{{ {} }}}}", words.join(" ")));
            }
            None => out.push_str(part),
        }
        rest = after;
    }
    out + &plain(rest)
}

/// `\0061` and `\+000061` of a name in `U&"…"`.
fn escaped(text: &str) -> Option<String> {
    let (mut out, mut rest) = (String::new(), text);
    while let Some(at) = rest.find('\\') {
        out.push_str(rest.get(..at)?);
        rest = rest.get(at + 1..)?;
        if let Some(after) = rest.strip_prefix('\\') {
            out.push('\\');
            rest = after;
            continue;
        }
        let (digits, skip) = if rest.starts_with('+') { (rest.get(1..7)?, 7) } else { (rest.get(..4)?, 4) };
        out.push(char::from_u32(u32::from_str_radix(digits, 16).ok()?)?);
        rest = rest.get(skip..)?;
    }
    out.push_str(rest);
    Some(out)
}

/// A type without its modifiers, in lower case, with single blanks.
pub(super) fn type_text(written: &str) -> String {
    let (mut out, mut depth) = (String::new(), 0_usize);
    for c in written.chars() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ if depth > 0 => {}
            c if c.is_whitespace() => {
                if !out.ends_with(' ') {
                    out.push(' ');
                }
            }
            c => out.push(c.to_ascii_lowercase()),
        }
    }
    out.trim().to_owned()
}

/// The schemas of a `search_path` that is written as one text.
pub(super) fn path_in_text(text: &str) -> Vec<String> {
    text.split(',').filter_map(fold).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_folded_as_the_server_folds_them() {
        for (written, stored) in [
            ("Users", "users"),
            ("\"Users\"", "Users"),
            ("\"a\"\"b\"", "a\"b"),
            ("ÜBER", "Über"),
            ("U&\"d\\0061t\"", "dat"),
            ("{{ .P }}_Users", "{{ .P }}_users"),
            ("{{- .P -}}${S}_A", "{{ .P }}${S}_a"),
            ("\"{{.P}}Users\"", "{{ .P }}Users"),
        ] {
            assert_eq!(fold(written).as_deref(), Some(stored));
        }
        assert_eq!(fold(&"a".repeat(70)).unwrap().len(), 63);
        assert_eq!(fold(&"ü".repeat(40)).unwrap().len(), 62);
    }

    #[test]
    fn types_lose_their_modifiers() {
        assert_eq!(type_text("TIMESTAMP(3)  with time zone"), "timestamp with time zone");
        assert_eq!(type_text("numeric(10, 2)[]"), "numeric[]");
    }
}
