//! Strict JSON: what is signed or trusted must have one reading.
//!
//! Two parsers that disagree about a repeated key are a way to have one text signed and
//! another obeyed, and a key that is not known would be a promise without effect. So every
//! document goes through this module: a size cap, no repeated keys at any depth, no unknown
//! keys, exact types. The refusal names the place and never shows the value.

use std::collections::BTreeSet;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};

use super::error::{Document, Malformed, Problem};

/// One JSON value, objects in the order of their text.
#[derive(Debug)]
pub(super) enum Json {
    Null,
    Bool,
    /// An integer from 0 to 2^64 - 1.
    Number(u64),
    /// Any other number: no document has one.
    OtherNumber,
    Text(String),
    List(Vec<Json>),
    Object(Vec<(String, Json)>),
}

struct JsonVisitor;

impl<'de> Visitor<'de> for JsonVisitor {
    type Value = Json;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Json, E> {
        Ok(Json::Null)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Json, E> {
        Ok(Json::Bool)
    }

    fn visit_u64<E>(self, number: u64) -> Result<Json, E> {
        Ok(Json::Number(number))
    }

    fn visit_i64<E>(self, _: i64) -> Result<Json, E> {
        Ok(Json::OtherNumber)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Json, E> {
        Ok(Json::OtherNumber)
    }

    fn visit_str<E>(self, text: &str) -> Result<Json, E> {
        Ok(Json::Text(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Json, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = access.next_element()? {
            list.push(item);
        }
        Ok(Json::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Json, A::Error> {
        let mut fields = Vec::new();
        while let Some(field) = access.next_entry()? {
            fields.push(field);
        }
        Ok(Json::Object(fields))
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Json, D::Error> {
        deserializer.deserialize_any(JsonVisitor)
    }
}

/// Reads a whole document.
pub(super) fn parse(document: Document, bytes: &[u8], cap: usize) -> Result<Json, Malformed> {
    if bytes.len() > cap {
        return Err(Malformed::new(document, "", Problem::TooLarge { cap }));
    }
    let json = serde_json::from_slice(bytes).map_err(|error| {
        Malformed::new(document, "", Problem::Syntax { line: error.line(), column: error.column() })
    })?;
    refuse_repeated(document, "", &json)?;
    Ok(json)
}

fn refuse_repeated(document: Document, path: &str, json: &Json) -> Result<(), Malformed> {
    match json {
        Json::Object(fields) => {
            let mut seen = BTreeSet::new();
            for (name, value) in fields {
                let path = join(path, name);
                if !seen.insert(name) {
                    return Err(Malformed::new(document, path, Problem::DuplicateKey));
                }
                refuse_repeated(document, &path, value)?;
            }
            Ok(())
        }
        Json::List(items) => items
            .iter()
            .enumerate()
            .try_for_each(|(at, item)| refuse_repeated(document, &format!("{path}[{at}]"), item)),
        _ => Ok(()),
    }
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

/// A value with its place.
#[derive(Clone, Copy)]
pub(super) struct At<'a> {
    document: Document,
    json: &'a Json,
}

/// An object of which every key is known.
pub(super) struct Fields<'a> {
    document: Document,
    path: String,
    entries: &'a [(String, Json)],
}

impl<'a> At<'a> {
    /// The document as a whole.
    pub(super) const fn root(document: Document, json: &'a Json) -> Self {
        At { document, json }
    }

    /// The object at this place with no other keys than `known`.
    pub(super) fn fields(self, path: &str, known: &[&str]) -> Result<Fields<'a>, Malformed> {
        let Json::Object(fields) = self.json else {
            return Err(Malformed::new(self.document, path, Problem::WrongType { expected: "an object" }));
        };
        if let Some((name, _)) = fields.iter().find(|(name, _)| !known.contains(&name.as_str())) {
            return Err(Malformed::new(self.document, join(path, name), Problem::UnknownField));
        }
        Ok(Fields { document: self.document, path: path.to_owned(), entries: fields })
    }

    /// The text at this place.
    pub(super) fn text(self, path: &str) -> Result<&'a str, Malformed> {
        match self.json {
            Json::Text(text) => Ok(text),
            _ => Err(Malformed::new(self.document, path, Problem::WrongType { expected: "a string" })),
        }
    }
}

impl<'a> Fields<'a> {
    fn optional(&self, name: &str) -> Option<&'a Json> {
        self.entries.iter().find(|(n, _)| n == name).map(|(_, value)| value)
    }

    fn required(&self, name: &str) -> Result<&'a Json, Malformed> {
        self.optional(name).ok_or_else(|| Malformed::new(self.document, join(&self.path, name), Problem::MissingField))
    }

    fn wrong(&self, name: &str, expected: &'static str) -> Malformed {
        Malformed::new(self.document, join(&self.path, name), Problem::WrongType { expected })
    }

    /// The refusal of a value that has the right type and is not `expected`.
    pub(super) fn bad(&self, name: &str, expected: &'static str) -> Malformed {
        Malformed::new(self.document, join(&self.path, name), Problem::Value { expected })
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.optional(name).is_some()
    }

    pub(super) fn text(&self, name: &str) -> Result<&'a str, Malformed> {
        At::root(self.document, self.required(name)?).text(&join(&self.path, name))
    }

    /// A text that `read` turns into a value.
    pub(super) fn parsed<T>(
        &self,
        name: &str,
        expected: &'static str,
        read: impl Fn(&str) -> Option<T>,
    ) -> Result<T, Malformed> {
        read(self.text(name)?).ok_or_else(|| self.bad(name, expected))
    }

    pub(super) fn number(&self, name: &str) -> Result<u64, Malformed> {
        match self.required(name)? {
            Json::Number(number) => Ok(*number),
            _ => Err(self.wrong(name, "a whole number")),
        }
    }

    pub(super) fn object(&self, name: &str, known: &[&str]) -> Result<Fields<'a>, Malformed> {
        At::root(self.document, self.required(name)?).fields(&join(&self.path, name), known)
    }

    /// The items of a list of at most `cap`, each with its path.
    pub(super) fn list(&self, name: &str, cap: usize) -> Result<Vec<(String, At<'a>)>, Malformed> {
        let Json::List(items) = self.required(name)? else { return Err(self.wrong(name, "a list")) };
        let path = join(&self.path, name);
        if items.len() > cap {
            return Err(Malformed::new(self.document, path, Problem::TooMany { cap }));
        }
        Ok(items
            .iter()
            .enumerate()
            .map(|(at, item)| (format!("{path}[{at}]"), At::root(self.document, item)))
            .collect())
    }
}
