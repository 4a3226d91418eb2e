//! Values inside values, flattened to entries.

use super::rules::Entry;
use super::value::userinfo;

/// Deepest nesting that is read.
pub(super) const DEEPEST: usize = 64;

/// A value of JSON, YAML or TOML.
pub(super) enum Node {
    Scalar { text: String, line: Option<usize> },
    Seq(Vec<Node>),
    Map(Vec<(String, Node)>),
}

/// Keys by which an item of a list is called.
const NAMES: [&str; 6] = ["name", "id", "host", "hostname", "machine", "url"];

/// The scalars of a value with their key paths. Items of a list go by their names, or numbers.
pub(super) fn flatten(node: &Node) -> Result<Vec<Entry>, ()> {
    let mut out = Vec::new();
    walk(node, &mut Vec::new(), &mut out)?;
    Ok(out)
}

fn walk(node: &Node, path: &mut Vec<String>, out: &mut Vec<Entry>) -> Result<(), ()> {
    if path.len() > DEEPEST {
        return Err(());
    }
    let mut below = |key: String, node: &Node| {
        path.push(key);
        let done = walk(node, path, out);
        path.pop();
        done
    };
    match node {
        Node::Scalar { text, line } => {
            out.push(Entry { path: path.clone(), value: text.clone(), line: *line });
            Ok(())
        }
        Node::Map(entries) => entries.iter().try_for_each(|(key, node)| below(key.clone(), node)),
        Node::Seq(items) => {
            let mut used = std::collections::BTreeSet::new();
            items.iter().enumerate().try_for_each(|(at, item)| {
                let name = item.name().filter(|name| used.insert((*name).to_owned()));
                below(name.map_or_else(|| (at + 1).to_string(), str::to_owned), item)
            })
        }
    }
}

impl Node {
    fn name(&self) -> Option<&str> {
        let Node::Map(entries) = self else { return None };
        NAMES.iter().find_map(|name| {
            entries.iter().find(|(key, _)| key == name).and_then(|(_, node)| match node {
                Node::Scalar { text, .. } if !text.is_empty() => Some(text.as_str()),
                _ => None,
            })
        })
    }
}

/// For each URL with user information, in a value or a key, one more entry `userinfo` below it.
pub(super) fn spread_urls(entries: &mut Vec<Entry>) {
    let mut more = Vec::new();
    for entry in entries.iter() {
        let words = entry.value.split(|c: char| c.is_whitespace() || c == ',');
        let places = words.chain(entry.path.iter().map(String::as_str));
        if let Some(secret) = places.filter(|place| place.contains("://")).find_map(userinfo) {
            let mut path = entry.path.clone();
            path.push("userinfo".to_owned());
            more.push(Entry { path, value: secret.to_owned(), line: entry.line });
        }
    }
    entries.extend(more);
}

/// Finds lines for values of formats whose readers tell none.
pub(super) struct Lines<'a> {
    text: &'a str,
}

impl<'a> Lines<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Lines { text }
    }

    /// The line on which a value first stands as it is.
    pub(super) fn of(&self, value: &str) -> Option<usize> {
        let at = memchr::memmem::find(self.text.as_bytes(), value.as_bytes()).filter(|_| value.len() > 3)?;
        Some(line_at(self.text.as_bytes(), at))
    }
}

/// The line, from 1, of a place in some bytes.
pub(super) fn line_at(bytes: &[u8], at: usize) -> usize {
    1 + memchr::memchr_iter(b'\n', bytes.get(..at).unwrap_or(bytes)).count()
}
