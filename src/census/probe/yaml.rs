//! YAML of other tools: read with limits into a tree of texts.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::Spanned;

use super::rules::Entry;
use super::tree::{Node, flatten};

enum Raw {
    Null,
    Scalar(String),
    Seq(Vec<Spanned<Raw>>),
    Map(Vec<(String, Spanned<Raw>)>),
}

struct RawVisitor;

impl<'de> Visitor<'de> for RawVisitor {
    type Value = Raw;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a YAML value")
    }
    fn visit_bool<E>(self, value: bool) -> Result<Raw, E> {
        Ok(Raw::Scalar(value.to_string()))
    }
    fn visit_i64<E>(self, value: i64) -> Result<Raw, E> {
        Ok(Raw::Scalar(value.to_string()))
    }
    fn visit_u64<E>(self, value: u64) -> Result<Raw, E> {
        Ok(Raw::Scalar(value.to_string()))
    }
    fn visit_i128<E>(self, value: i128) -> Result<Raw, E> {
        Ok(Raw::Scalar(value.to_string()))
    }
    fn visit_u128<E>(self, value: u128) -> Result<Raw, E> {
        Ok(Raw::Scalar(value.to_string()))
    }
    fn visit_f64<E>(self, value: f64) -> Result<Raw, E> {
        Ok(Raw::Scalar(value.to_string()))
    }
    fn visit_str<E>(self, value: &str) -> Result<Raw, E> {
        Ok(Raw::Scalar(value.to_owned()))
    }
    fn visit_bytes<E>(self, value: &[u8]) -> Result<Raw, E> {
        Ok(Raw::Scalar(String::from_utf8_lossy(value).into_owned()))
    }
    fn visit_unit<E>(self) -> Result<Raw, E> {
        Ok(Raw::Null)
    }
    fn visit_none<E>(self) -> Result<Raw, E> {
        Ok(Raw::Null)
    }
    fn visit_some<D: Deserializer<'de>>(self, d: D) -> Result<Raw, D::Error> {
        Raw::deserialize(d)
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Raw, A::Error> {
        let mut out = Vec::new();
        while let Some(item) = seq.next_element()? {
            out.push(item);
        }
        Ok(Raw::Seq(out))
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Raw, A::Error> {
        let mut out = Vec::new();
        while let Some(entry) = map.next_entry()? {
            out.push(entry);
        }
        Ok(Raw::Map(out))
    }
}

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(RawVisitor)
    }
}

/// The scalars of all documents of a file.
pub(super) fn entries(text: &str) -> Result<Vec<Entry>, ()> {
    let budget = serde_saphyr::budget! { max_aliases: 1000, max_depth: 48, max_documents: 64 };
    let options = serde_saphyr::options! { budget: budget, with_snippet: false };
    let documents = serde_saphyr::from_multiple_with_options::<Spanned<Raw>>(text, options).map_err(|_| ())?;
    let mut out = Vec::new();
    for document in documents {
        out.extend(flatten(&node(document))?);
    }
    Ok(out)
}

// The depth is bounded by the budget.
fn node(raw: Spanned<Raw>) -> Node {
    let line = usize::try_from(raw.referenced.line()).ok();
    match raw.value {
        Raw::Null => Node::Scalar { text: String::new(), line },
        Raw::Scalar(text) => Node::Scalar { text, line },
        Raw::Seq(items) => Node::Seq(items.into_iter().map(node).collect()),
        Raw::Map(entries) => Node::Map(entries.into_iter().map(|(key, value)| (key, node(value))).collect()),
    }
}
