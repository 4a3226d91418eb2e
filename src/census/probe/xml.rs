//! XML. An element is a key; so is `<add key="K" value="V"/>`, and an attribute is `@name`.

use roxmltree::{Document, Node, ParsingOptions};

use super::rules::Entry;
use super::tree::DEEPEST;

/// Most nodes of a document.
const MOST_NODES: u32 = 500_000;

/// The texts and attributes of a document.
pub(super) fn entries(text: &str) -> Result<Vec<Entry>, ()> {
    if too_deep(text) {
        return Err(());
    }
    let options = ParsingOptions { allow_dtd: false, nodes_limit: MOST_NODES, ..ParsingOptions::default() };
    let document = Document::parse_with_options(text, options).map_err(|_| ())?;
    let mut out = Vec::new();
    walk(document.root_element(), &mut Vec::new(), &document, &mut out)?;
    Ok(out)
}

/// Whether tags open far deeper than any configuration does. Counted before parsing, since the
/// parser descends.
fn too_deep(text: &str) -> bool {
    let (mut depth, mut deepest) = (0_usize, 0);
    for part in text.split('<').skip(1) {
        if part.starts_with('/') {
            depth = depth.saturating_sub(1);
        } else if !part.starts_with(['!', '?']) && !part.split('>').next().unwrap_or("").ends_with('/') {
            depth += 1;
            deepest = deepest.max(depth);
        }
    }
    deepest > 4 * DEEPEST
}

fn walk(
    element: Node<'_, '_>,
    path: &mut Vec<String>,
    document: &Document<'_>,
    out: &mut Vec<Entry>,
) -> Result<(), ()> {
    if path.len() > DEEPEST {
        return Err(());
    }
    path.push(component(element));
    let line = usize::try_from(document.text_pos_at(element.range().start).row).ok();
    let below = |path: &[String], name: &str| path.iter().cloned().chain([name.to_owned()]).collect::<Vec<String>>();
    if let (Some(_), Some(value)) = (element.attribute("key"), element.attribute("value")) {
        out.push(Entry { path: path.clone(), value: value.to_owned(), line });
    } else {
        for attribute in element.attributes() {
            let path = below(path, &format!("@{}", attribute.name()));
            out.push(Entry { path, value: attribute.value().to_owned(), line });
        }
    }
    let texts = || element.children().filter(Node::is_text).filter_map(|node| node.text());
    if texts().any(|text| !text.trim().is_empty()) || !element.has_children() {
        out.push(Entry { path: path.clone(), value: texts().collect(), line });
    }
    for child in element.children().filter(Node::is_element) {
        walk(child, path, document, out)?;
    }
    path.pop();
    Ok(())
}

/// The key of an element: its `key`, or its tag with what tells it from others of the tag.
fn component(element: Node<'_, '_>) -> String {
    let tag = element.tag_name().name();
    if let (Some(key), Some(_)) = (element.attribute("key"), element.attribute("value")) {
        return key.to_owned();
    }
    let named = |name: &str| {
        let child = element.children().find(|child| child.is_element() && child.tag_name().name() == name)?;
        child.text().map(|text| text.trim().to_owned()).filter(|text| !text.is_empty())
    };
    let twins =
        || element.prev_siblings().skip(1).filter(|other| other.is_element() && other.tag_name().name() == tag).count();
    let name = ["id", "Host", "name"].iter().find_map(|name| named(name));
    match (name, if element.has_children() { twins() } else { 0 }) {
        (Some(name), _) => format!("{tag}:{name}"),
        (None, 0) => tag.to_owned(),
        (None, twins) => format!("{tag}:{}", twins + 1),
    }
}
