//! Sections with `key = value`: AWS, git, pip, npm, systemd, properties, and their many likes.

use super::rules::Entry;

/// The entries, by section and key. A line that continues one (indented, behind `key =`) belongs
/// to its key, below it where it is a `key = value` of its own, as AWS nests them.
pub(super) fn entries(text: &str) -> Vec<Entry> {
    let mut out = Vec::new();
    let mut section: Vec<String> = Vec::new();
    let mut parent: Option<String> = None;
    for (at, line) in text.lines().enumerate() {
        let trimmed = line.trim();
        if trimmed.is_empty() || trimmed.starts_with(['#', ';']) {
            continue;
        }
        if let Some(head) = trimmed.strip_prefix('[') {
            section = header(head);
            parent = None;
            continue;
        }
        let indented = line.starts_with([' ', '\t']);
        let (key, value) = pair(trimmed);
        let mut path = section.clone();
        match (&parent, indented) {
            (Some(parent), true) => path.push(parent.clone()),
            _ => parent = None,
        }
        if value.is_some_and(str::is_empty) && !indented {
            parent = Some(key.to_owned());
        }
        path.push(key.to_owned());
        out.push(Entry { path, value: value.unwrap_or("").to_owned(), line: Some(at + 1) });
    }
    out
}

/// `[name]`, or git's `[name "sub"]` as two components.
fn header(head: &str) -> Vec<String> {
    let head = head.rsplit_once(']').map_or(head, |(inside, _)| inside).trim();
    match head.split_once(" \"") {
        Some((name, sub)) => vec![name.trim().to_owned(), sub.trim_end_matches('"').to_owned()],
        None => vec![head.to_owned()],
    }
}

/// Key and value at the first `=`; at a `: ` if there is no `=` before it. npm has colons in keys.
fn pair(line: &str) -> (&str, Option<&str>) {
    let equals = line.split_once('=');
    let colon = line.split_once(": ").filter(|(key, _)| !key.contains('='));
    let split = colon.or(equals).or_else(|| line.split_once(':').filter(|(_, rest)| rest.is_empty()));
    split.map_or((line, None), |(key, value)| (key.trim(), Some(unquoted(value))))
}

/// A value without its quotes.
fn unquoted(value: &str) -> &str {
    let value = value.trim();
    let inner = value.strip_prefix('"').and_then(|v| v.strip_suffix('"'));
    inner.or_else(|| value.strip_prefix('\'').and_then(|v| v.strip_suffix('\''))).unwrap_or(value)
}
