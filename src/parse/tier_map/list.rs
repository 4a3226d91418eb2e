//! Rules in list items: a code span first, sub-items as attributes.

use std::ops::Range;

use pulldown_cmark::{Event, Tag};

use super::super::attributes::{RawRule, Value, key, takes_plain_text, unknown_key};
use super::{Reader, closing_in, html, prose_condition};
use crate::diag::{Code, Finding};
use crate::model::Tier;
use crate::source::Span;

type Slice<'a, 'e> = &'a [(Event<'e>, Range<usize>)];

/// Reads the items of a list inside a tier.
pub(super) fn read(reader: &mut Reader<'_, '_>, tier: Tier, inner: Slice<'_, '_>) {
    for (range, item) in items(inner) {
        rule_item(reader, tier, &range, item);
    }
}

/// Items that look like rules, behind the tiers: a heading between may have ended the tier
/// that they were written for.
pub(super) fn refuse(reader: &mut Reader<'_, '_>, inner: Slice<'_, '_>) {
    for (_, item) in items(inner) {
        if let Some((Event::Code(_), range)) = line_and_blocks(item).0.first() {
            let finding = Finding::new(Code::RULE_OUTSIDE_TIER, reader.span(range), "this looks like a rule and stands in no tier")
                .help("a heading of the tier's level ends it: make that heading a deeper one, or move the list above the first tier");
            reader.push(finding);
        }
    }
}

/// The items of a list: range and inner events.
fn items<'a, 'e>(inner: Slice<'a, 'e>) -> Vec<(Range<usize>, Slice<'a, 'e>)> {
    let mut out = Vec::new();
    let mut at = 0;
    while let Some((event, range)) = inner.get(at) {
        if let Event::Start(tag @ Tag::Item) = event {
            let end = closing_in(inner, at, tag);
            out.push((range.clone(), inner.get(at + 1..end.saturating_sub(1)).unwrap_or(&[])));
            at = end;
        } else {
            at += 1;
        }
    }
    out
}

/// Splits an item into its own line and the blocks below it.
fn line_and_blocks<'a, 'e>(item: Slice<'a, 'e>) -> (Slice<'a, 'e>, Slice<'a, 'e>) {
    if let Some((Event::Start(tag @ Tag::Paragraph), _)) = item.first() {
        let end = closing_in(item, 0, tag);
        return (item.get(1..end.saturating_sub(1)).unwrap_or(&[]), item.get(end..).unwrap_or(&[]));
    }
    let end = item
        .iter()
        .position(|(event, _)| match event {
            Event::Start(tag) => {
                !matches!(tag, Tag::Emphasis | Tag::Strong | Tag::Link { .. } | Tag::Image { .. } | Tag::Strikethrough)
            }
            Event::Rule | Event::Html(_) => true,
            _ => false,
        })
        .unwrap_or(item.len());
    item.split_at(end)
}

fn rule_item(reader: &mut Reader<'_, '_>, tier: Tier, item_range: &Range<usize>, item: Slice<'_, '_>) {
    let (line, blocks) = line_and_blocks(item);
    let Some(((Event::Code(text), code_range), rest)) = line.split_first() else {
        let written = super::plain_text(line);
        if written.contains(['*', '`']) {
            let range = line.first().map_or(0..0, |(_, r)| r.start..line.last().map_or(r.end, |(_, l)| l.end));
            reader.unread(
                &range,
                "it looks like a pattern; a rule is a list item that starts with its code span: ``- `git status **` ``",
            );
            return;
        }
        return prose_block(reader, item);
    };
    let pattern = reader.code(text, code_range);
    let line_end = line.last().map_or(code_range.end, |(_, r)| r.end);
    let description = reader.text.get(code_range.end..line_end).unwrap_or("").trim().to_owned();
    for (event, range) in rest {
        match event {
            Event::Code(_) => reader.unread(
                range,
                "one item, one pattern: write `{a,b}` inside the pattern, a second item, or a sub-item such as ``with: `--force` ``",
            ),
            Event::InlineHtml(_) => html(reader, range, true),
            _ => {}
        }
    }
    let prose = super::plain_text(rest);
    check_description(reader, &prose, &(code_range.end..line_end));
    let whole = reader.span(item_range);
    let (attributes, description) = (Vec::new(), tidy(&description));
    let mut raw = RawRule { surface: reader.surface, tier, pattern, whole, attributes, description };
    let mut at = 0;
    while let Some((event, block_range)) = blocks.get(at) {
        let Event::Start(tag) = event else {
            if let Event::Html(_) = event {
                html(reader, block_range, true);
            }
            at += 1;
            continue;
        };
        let end = closing_in(blocks, at, tag);
        let inner = blocks.get(at + 1..end.saturating_sub(1)).unwrap_or(&[]);
        match tag {
            Tag::List(_) => {
                for (range, item) in items(inner) {
                    attribute(reader, &range, item, &mut raw);
                }
            }
            Tag::Paragraph => {
                prose_block(reader, inner);
                check_description(reader, &super::plain_text(inner), block_range);
            }
            _ => reader.unread(block_range, "below a rule stand its attributes, as a list: `- why: …`"),
        }
        at = end;
    }
    reader.rule(raw);
}

/// Description text without the punctuation that leads to it.
fn tidy(text: &str) -> String {
    let text = text.trim_start_matches([':', '-', '–', '—', ',', ' ']);
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn check_description(reader: &mut Reader<'_, '_>, prose: &str, range: &Range<usize>) {
    let lead = prose.trim_start();
    if lead.starts_with(['/', '|']) {
        let finding =
            Finding::new(Code::UNREAD_CODE, reader.span(range), "alternatives behind the pattern are not read")
                .help("write `{a,b}` inside the pattern, or a second item");
        reader.push(finding);
    } else if let Some(word) = prose_condition(prose) {
        let finding = Finding::new(
            Code::PROSE_CONDITION,
            reader.span(range),
            format!("`{word}` seems to limit the rule, and prose is not enforced"),
        )
        .help("write the condition as a sub-item (`unless`, `only`, `with`, `when`), or the sentence as `why: …`");
        reader.push(finding);
    }
}

/// Text that is no rule may hold prose only.
fn prose_block(reader: &mut Reader<'_, '_>, events: Slice<'_, '_>) {
    for (event, range) in events {
        match event {
            Event::Code(_) => reader.unread(
                range,
                "a rule is a list item that starts with its code span, without bold type or words in front",
            ),
            Event::Start(Tag::CodeBlock(_)) => {
                reader.unread(range, "write the block at the left margin, with the info string `rules`");
            }
            Event::InlineHtml(_) | Event::Html(_) => html(reader, range, true),
            _ => {}
        }
    }
}

/// A sub-item `key: values`.
fn attribute(reader: &mut Reader<'_, '_>, range: &Range<usize>, item: Slice<'_, '_>, raw: &mut RawRule) {
    let (line, blocks) = line_and_blocks(item);
    for (event, block_range) in blocks {
        if matches!(event, Event::Start(_)) {
            reader.unread(block_range, "an attribute has no sub-items; write its values in one line");
            break;
        }
    }
    let start = line.first().map_or(range.start, |(_, r)| r.start);
    let end = line.last().map_or(range.end, |(_, r)| r.end);
    let source = reader.text.get(start..end).unwrap_or("");
    let head_end = line.iter().find(|(event, _)| matches!(event, Event::Code(_))).map_or(end, |(_, r)| r.start);
    let head = reader.text.get(start..head_end).unwrap_or("");
    let Some((name, after)) = head.split_once(':') else {
        let finding = Finding::new(
            Code::ATTRIBUTE,
            Span::new(reader.file, start, end.max(start)),
            format!("`{}` is no attribute", source.trim()),
        )
        .help("write `key: values`, as in ``unless: `--output` ``");
        return reader.push(finding);
    };
    let span = Span::new(reader.file, start, start + name.len());
    let Some(key) = key(name) else {
        return reader.push(unknown_key(name, span));
    };
    let value_start = start + name.len() + 1;
    let before = reader.sink.len();
    let values = if key == "why" {
        let text = reader.text.get(value_start..end).unwrap_or("");
        plain(reader, value_start, text, false)
    } else {
        list_values(reader, key, line, value_start, end, after)
    };
    if reader.sink.len() == before {
        raw.attributes.push((key, span, values));
    }
}

/// Plain text as one value, or as several separated by commas.
fn plain(reader: &Reader<'_, '_>, base: usize, text: &str, split: bool) -> Vec<Value> {
    let mut out = Vec::new();
    let mut at = base;
    for part in if split { text.split(',').collect::<Vec<_>>() } else { vec![text] } {
        let trimmed = part.trim();
        if !trimmed.is_empty() {
            let start = at + (part.len() - part.trim_start().len());
            out.push(Value {
                text: trimmed.split_whitespace().collect::<Vec<_>>().join(" "),
                span: Span::new(reader.file, start, start + trimmed.len()),
            });
        }
        at += part.len() + 1;
    }
    out
}

/// Values in code spans, separated by commas; plain text where the key takes it.
pub(super) fn list_values(
    reader: &mut Reader<'_, '_>,
    key: &str,
    line: Slice<'_, '_>,
    start: usize,
    end: usize,
    head: &str,
) -> Vec<Value> {
    let has_code = line.iter().any(|(event, _)| matches!(event, Event::Code(_)));
    if !has_code {
        let text = reader.text.get(start..end.max(start)).unwrap_or("").to_owned();
        if text.trim().is_empty() {
            return Vec::new();
        }
        if takes_plain_text(key) {
            return plain(reader, start, &text, key != "id" && key != "why");
        }
        let finding = Finding::new(
            Code::ATTRIBUTE,
            Span::new(reader.file, start, end),
            format!("the values of `{key}` stand in no code span"),
        )
        .help(format!("write ``{key}: `{}` ``", text.trim()));
        reader.push(finding);
        return Vec::new();
    }
    let mut out = Vec::new();
    let mut separators = vec![(start, start + head.len())];
    for (event, range) in line {
        match event {
            Event::Code(text) => {
                out.push(reader.code(text, range));
                if let Some(last) = separators.last_mut() {
                    last.1 = range.start;
                }
                separators.push((range.end, end));
            }
            Event::InlineHtml(_) => html(reader, range, true),
            _ => {}
        }
    }
    for (index, (from, to)) in separators.iter().enumerate() {
        let between = reader.text.get(*from..*to).unwrap_or("").trim();
        let middle = index > 0 && index + 1 < separators.len();
        if between.is_empty() && !middle || between == "," && middle {
            continue;
        }
        let finding = Finding::new(
            Code::ATTRIBUTE,
            Span::new(reader.file, *from, (*to).max(from + 1)),
            if between.is_empty() {
                "two values without a comma".to_owned()
            } else {
                format!("`{between}` stands between the values of `{key}` and is not read")
            },
        )
        .help("values are code spans, separated by commas; write a reason as `why: …`");
        reader.push(finding);
    }
    out
}
