//! Rules in fenced blocks with the info string `rules`: one a line.

use std::ops::Range;

use pulldown_cmark::Event;

use super::super::attributes::{KEYS, RawRule, Value, takes_plain_text, unknown_key};
use super::super::words::{RawWord, Unclosed, split};
use super::Reader;
use crate::diag::{Code, Finding};
use crate::model::Tier;
use crate::source::Span;

/// Reads the lines of a block.
pub(super) fn read(
    reader: &mut Reader<'_, '_>,
    tier: Option<Tier>,
    range: &Range<usize>,
    inner: &[(Event<'_>, Range<usize>)],
) {
    reader.tried = true;
    let Some(tier) = tier else {
        let finding = Finding::new(Code::RULE_OUTSIDE_TIER, reader.span(range), "a block of rules outside every tier")
            .help("move it below a heading `## Tier N`");
        return reader.push(finding);
    };
    let start = inner.first().map_or(range.end, |(_, r)| r.start);
    let end = inner.last().map_or(start, |(_, r)| r.end);
    let text = reader.text.get(start..end).unwrap_or("").to_owned();
    let mut at = start;
    for line in text.split_inclusive('\n') {
        let content = line.trim_end();
        if !content.trim_start().is_empty() && !content.trim_start().starts_with('#') {
            rule_line(reader, tier, at, content);
        }
        at += line.len();
    }
}

/// A key at a word of a line: its name, and how many words it takes.
fn key_at(words: &[RawWord], index: usize) -> Option<(&'static str, usize)> {
    let plain = |i: usize| words.get(i).and_then(RawWord::plain);
    let first = plain(index)?;
    if let Some(name) = first.strip_suffix(':') {
        return KEYS.into_iter().find(|k| *k == name).map(|k| (k, 1));
    }
    let second = plain(index + 1)?;
    let both = format!("{first} {}", second.strip_suffix(':')?);
    KEYS.into_iter().find(|k| *k == both).map(|k| (k, 2))
}

fn rule_line(reader: &mut Reader<'_, '_>, tier: Tier, base: usize, line: &str) {
    let words = match split(line) {
        Ok(words) => words,
        Err(Unclosed(at)) => {
            let finding = Finding::new(
                Code::COMMAND_PATTERN,
                Span::new(reader.file, base + at, base + line.len()),
                "a quote or backslash without its end",
            )
            .help("close the quote; an apostrophe in `why:` is written `\\'`, or the reason without one");
            return reader.push(finding);
        }
    };
    let value = |from: usize, to: usize| Value {
        text: line.get(from..to).unwrap_or("").to_owned(),
        span: Span::new(reader.file, base + from, base + to),
    };
    // Keys first: a pattern ends where the first key stands.
    let mut keys = Vec::new();
    let mut index = 0;
    while index < words.len() {
        if let Some((key, taken)) = key_at(&words, index) {
            keys.push((key, index, taken));
            index += taken;
        } else {
            index += 1;
        }
    }
    let pattern_end = keys.first().map_or(words.len(), |(_, index, _)| *index);
    let bounds = |words: &[RawWord]| Some((words.first()?.start, words.last()?.end));
    let Some((from, to)) = bounds(words.get(..pattern_end).unwrap_or(&[])) else {
        let finding = Finding::new(
            Code::COMMAND_PATTERN,
            Span::new(reader.file, base, base + line.len()),
            "a line without a pattern",
        )
        .help("begin the line with the pattern: `rm ** with: -r`");
        return reader.push(finding);
    };
    let pattern = value(from, to);
    let mut attributes = Vec::new();
    let mut stray = Vec::new();
    for word in words.get(1..pattern_end).unwrap_or(&[]) {
        stray.extend(misspelt_key(word, base, reader));
    }
    for (position, (key, index, taken)) in keys.iter().enumerate() {
        let end = keys.get(position + 1).map_or(words.len(), |(_, next, _)| *next);
        let own = words.get(index + taken..end).unwrap_or(&[]);
        let span = Span::new(
            reader.file,
            base + words.get(*index).map_or(0, |w| w.start),
            base + words.get(index + taken - 1).map_or(0, |w| w.end),
        );
        let whole = matches!(*key, "match" | "no match" | "why");
        let values = match bounds(own) {
            None => Vec::new(),
            Some((from, to)) if whole => vec![value(from, to)],
            Some(_) => {
                for word in own {
                    stray.extend(misspelt_key(word, base, reader));
                    stray.extend(comma(word, key, base, reader));
                }
                own.iter().map(|w| own_value(w, key, base, line, reader)).collect()
            }
        };
        attributes.push((*key, span, values));
    }
    let failed = !stray.is_empty();
    stray.into_iter().for_each(|f| reader.push(f));
    if !failed {
        let whole = Span::new(reader.file, base, base + line.len());
        reader.rule(RawRule { surface: reader.surface, tier, pattern, whole, attributes, description: String::new() });
    }
}

/// Names are taken without a comma behind them; patterns as they are written.
fn own_value(word: &RawWord, key: &str, base: usize, line: &str, reader: &Reader<'_, '_>) -> Value {
    let mut end = word.end;
    let source = line.get(word.start..end).unwrap_or("");
    if takes_plain_text(key) && source.ends_with(',') {
        end -= 1;
    }
    Value {
        text: line.get(word.start..end).unwrap_or("").to_owned(),
        span: Span::new(reader.file, base + word.start, base + end),
    }
}

/// In a block values are separated by blanks; `-r,` would look for that very word.
fn comma(word: &RawWord, key: &str, base: usize, reader: &Reader<'_, '_>) -> Option<Finding> {
    let last = word.chars.last().filter(|c| c.c == ',' && !c.literal && !takes_plain_text(key) && key != "when")?;
    let span = Span::new(reader.file, base + word.end - last.c.len_utf8(), base + word.end);
    Some(
        Finding::new(Code::ATTRIBUTE, span, format!("a comma behind `{}`", word.text().trim_end_matches(',')))
            .help("in a `rules` block values are separated by blanks: `with: -r -R`; quote the comma if it belongs to the argument"),
    )
}

/// A word like `unles:` is a key that was misspelt, not a part of the pattern.
fn misspelt_key(word: &RawWord, base: usize, reader: &Reader<'_, '_>) -> Option<Finding> {
    let plain = word.plain()?;
    let name = plain.strip_suffix(':')?;
    if name.is_empty() || !name.bytes().all(|b| b.is_ascii_alphabetic() || b == b'-' || b == b'_') {
        return None;
    }
    let span = Span::new(reader.file, base + word.start, base + word.end);
    let mut finding = unknown_key(name, span);
    if let Some(help) = &mut finding.help {
        help.push_str("; quote the word if it belongs to the pattern");
    }
    Some(finding)
}
