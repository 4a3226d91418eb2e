//! YAML with spans, as a tree that remembers where everything stands.
//!
//! `serde-saphyr` does the reading, with limits; typed deserialisation would stop at the first
//! unknown field, so it is read into this tree and validated by the modules that know the
//! keys, which can then report every problem of a file at once.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::{Location, Spanned};

use super::Sink;
use crate::diag::{Code, Finding};
use crate::source::{FileId, Span};

/// A value.
#[derive(Clone, Debug)]
pub(crate) enum Kind {
    /// `null`, `~` or nothing.
    Null,
    /// A scalar, as text; numbers and booleans included.
    Scalar(String),
    /// A sequence.
    Seq(Vec<Node>),
    /// A mapping, in order, keys unique.
    Map(Vec<(Key, Node)>),
}

/// A value and where it stands.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) kind: Kind,
    pub(crate) span: Span,
    /// Whether a scalar is `true` or `false` without quotes.
    is_bool: bool,
}

/// A key and where it stands.
#[derive(Clone, Debug)]
pub(crate) struct Key {
    pub(crate) name: String,
    pub(crate) span: Span,
}

enum Raw {
    Null,
    /// A number or truth value.
    Typed,
    Scalar(String),
    Seq(Vec<Spanned<Raw>>),
    Map(Vec<(Spanned<String>, Spanned<Raw>)>),
}

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct RawVisitor;
        impl<'de> Visitor<'de> for RawVisitor {
            type Value = Raw;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a YAML value")
            }
            fn visit_bool<E>(self, _: bool) -> Result<Raw, E> {
                Ok(Raw::Typed)
            }
            fn visit_i64<E>(self, _: i64) -> Result<Raw, E> {
                Ok(Raw::Typed)
            }
            fn visit_u64<E>(self, _: u64) -> Result<Raw, E> {
                Ok(Raw::Typed)
            }
            fn visit_f64<E>(self, _: f64) -> Result<Raw, E> {
                Ok(Raw::Typed)
            }
            fn visit_str<E>(self, v: &str) -> Result<Raw, E> {
                Ok(Raw::Scalar(v.to_owned()))
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
        deserializer.deserialize_any(RawVisitor)
    }
}

/// Reads `text`, which starts at byte `base` of `file`. `None` after a finding.
pub(crate) fn read(file: FileId, base: usize, text: &str, sink: &mut Sink) -> Option<Node> {
    if let Some(at) = tag(text) {
        sink.push(
            Finding::new(Code::YAML_SYNTAX, Span::new(file, base + at, base + at + 1), "this YAML has a tag")
                .help("a tag changes what a value is; leave it out, and write the value itself"),
        );
        return None;
    }
    let budget = serde_saphyr::budget! {
        max_aliases: 0,
        max_anchors: 0,
        max_depth: 16,
        max_documents: 1,
    };
    let options = serde_saphyr::options! { budget: budget, with_snippet: false, merge_keys: serde_saphyr::MergeKeyPolicy::AsOrdinary };
    match serde_saphyr::from_str_with_options::<Spanned<Raw>>(text, options) {
        Ok(root) => Some(convert(file, base, text, root)),
        Err(error) => {
            let span = error
                .location()
                .map_or(Span::new(file, base, base + text.len().min(1)), |at| span_of(file, base, text, at));
            let message = error.without_snippet().to_string();
            let message = message.lines().next().unwrap_or("");
            // The reader's own advice is for programmers.
            let message = message.split(", set DuplicateKeyPolicy").next().unwrap_or(message);
            let message = message.split(" at line ").next().unwrap_or(message).to_owned();
            sink.push(
                Finding::new(Code::YAML_SYNTAX, span, format!("this YAML cannot be read: {message}"))
                    .help("keys are unique, blocks are indented by spaces, and there are no anchors or aliases"),
            );
            None
        }
    }
}

/// Where a tag (`!!binary`, `!own`) begins: behind a blank or an opening sign, outside of quotes and
/// comments.
fn tag(text: &str) -> Option<usize> {
    let (mut quote, mut before) = (None, '\n');
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let begins = before.is_whitespace() || "[{,:".contains(before);
        match (quote, c) {
            (Some('"'), '\\') => {
                chars.next();
            }
            (Some(open), c) if c == open => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') if begins => quote = Some(c),
            (None, '#') if before.is_whitespace() => while chars.next_if(|(_, c)| *c != '\n').is_some() {},
            (None, '!') if begins && chars.peek().is_some_and(|(_, c)| c.is_alphanumeric() || "!<".contains(*c)) => {
                return Some(at);
            }
            (None, _) => {}
        }
        before = c;
    }
    None
}

fn convert(file: FileId, base: usize, text: &str, raw: Spanned<Raw>) -> Node {
    let span = span_of(file, base, text, raw.referenced);
    // A number or truth value is what is written there, not what a reader makes of it: `0x1bb`,
    // `1.10` and `no` are texts that mean something else to the next reader.
    let written = || text.get(span.start - base..span.end - base).unwrap_or("").trim().to_owned();
    let mut is_bool = false;
    let kind = match raw.value {
        Raw::Null => Kind::Null,
        Raw::Typed => {
            let written = written();
            is_bool = matches!(written.as_str(), "true" | "false");
            Kind::Scalar(written)
        }
        Raw::Scalar(text) => Kind::Scalar(text),
        Raw::Seq(items) => Kind::Seq(items.into_iter().map(|i| convert(file, base, text, i)).collect()),
        Raw::Map(entries) => Kind::Map(
            entries
                .into_iter()
                .map(|(key, value)| {
                    let key = Key { span: span_of(file, base, text, key.referenced), name: key.value };
                    (key, convert(file, base, text, value))
                })
                .collect(),
        ),
    };
    Node { kind, span, is_bool }
}

fn span_of(file: FileId, base: usize, text: &str, at: Location) -> Span {
    let span = at.span();
    let start = span.byte_offset().and_then(|o| usize::try_from(o).ok()).unwrap_or(0).min(text.len());
    let len = span.byte_len().and_then(|l| usize::try_from(l).ok()).unwrap_or(0);
    let end = (start + len).min(text.len());
    Span::new(file, base + start, base + end.max(start))
}

impl Node {
    /// The scalar's text, or a finding.
    pub(crate) fn scalar(&self, what: &str, sink: &mut Sink) -> Option<&str> {
        if let Kind::Scalar(text) = &self.kind {
            return Some(text);
        }
        sink.push(
            Finding::new(Code::INVALID_VALUE, self.span, format!("{what} must be a single value"))
                .help("write one word or text, neither nothing nor a list"),
        );
        None
    }

    /// The scalars of a list (or the single one), or findings.
    pub(crate) fn scalars(&self, what: &str, sink: &mut Sink) -> Vec<(String, Span)> {
        if let Kind::Seq(items) = &self.kind {
            items.iter().filter_map(|item| item.scalar(what, sink).map(|text| (text.to_owned(), item.span))).collect()
        } else {
            sink.push(
                Finding::new(Code::INVALID_VALUE, self.span, format!("{what} must be a list"))
                    .help("write it as `[a, b]`, or one `- item` a line"),
            );
            Vec::new()
        }
    }

    /// `true` or `false`, or a finding; the word in quotes is a text and neither.
    pub(crate) fn boolean(&self, what: &str, sink: &mut Sink) -> Option<bool> {
        match &self.kind {
            Kind::Scalar(text) if self.is_bool => return Some(text == "true"),
            Kind::Scalar(text) => {
                let message = format!("{what} is `true` or `false`, and `{text}` is here a text");
                sink.push(
                    Finding::new(Code::INVALID_VALUE, self.span, message)
                        .help("write `true` or `false`, without quotes"),
                );
            }
            _ => sink.push(
                Finding::new(Code::INVALID_VALUE, self.span, format!("{what} must be `true` or `false`"))
                    .help("write one of the two words"),
            ),
        }
        None
    }

    /// From where it begins to the end of what it holds.
    pub(crate) fn extent(&self) -> Span {
        let end = match &self.kind {
            Kind::Null | Kind::Scalar(_) => self.span.end,
            Kind::Seq(items) => items.iter().map(|item| item.extent().end).max().unwrap_or(self.span.end),
            Kind::Map(entries) => {
                entries.iter().map(|(key, value)| key.span.end.max(value.extent().end)).max().unwrap_or(self.span.end)
            }
        };
        Span::new(self.span.file, self.span.start, end.max(self.span.end))
    }

    /// The entries of a mapping, or a finding.
    pub(crate) fn entries(&self, what: &str, sink: &mut Sink) -> &[(Key, Node)] {
        if let Kind::Map(entries) = &self.kind {
            return entries;
        }
        sink.push(
            Finding::new(Code::INVALID_VALUE, self.span, format!("{what} must be a mapping"))
                .help("write `key: value`, one a line"),
        );
        &[]
    }
}
