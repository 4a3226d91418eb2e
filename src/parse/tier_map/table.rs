//! Rules in tables: a column `rule`, other columns as attributes.

use std::ops::Range;

use pulldown_cmark::{Event, Tag};

use super::super::attributes::{KEYS, RawRule, Value, key};
use super::super::{listed, nearest};
use super::list::list_values;
use super::{Reader, closing_in, plain_text};
use crate::diag::{Code, Finding};
use crate::model::Tier;
use crate::source::Span;

type Slice<'a, 'e> = &'a [(Event<'e>, Range<usize>)];

/// Reads a table. One without a `rule` column is prose.
pub(super) fn read(reader: &mut Reader<'_, '_>, tier: Option<Tier>, range: &Range<usize>, inner: Slice<'_, '_>) {
    let mut rows = rows(inner);
    if rows.is_empty() {
        return;
    }
    let (header_range, header) = rows.remove(0);
    let names: Vec<(String, Range<usize>)> =
        header.iter().map(|(range, cell)| (plain_text(cell).trim().to_owned(), range.clone())).collect();
    let is_rules = names.iter().any(|(name, _)| name.eq_ignore_ascii_case("rule"));
    let Some(tier) = tier else {
        if is_rules {
            reader.tried = true;
            let finding =
                Finding::new(Code::RULE_OUTSIDE_TIER, reader.span(range), "a table of rules outside every tier")
                    .help("move it below a heading `## Tier N`");
            reader.push(finding);
        }
        return;
    };
    if !is_rules {
        reader.tried = true;
        let finding = Finding::new(
            Code::TABLE_SHAPE,
            reader.span(&header_range),
            "a table inside a tier that has no column `rule`",
        )
        .help("name the column of patterns `rule`, or move the table above the first tier");
        return reader.push(finding);
    }
    let Some(columns) = columns(reader, &names) else { return };
    for (range, cells) in rows {
        row(reader, tier, &range, &cells, &columns);
    }
}

enum Column {
    Rule,
    Attribute(&'static str, Span),
}

fn columns(reader: &mut Reader<'_, '_>, names: &[(String, Range<usize>)]) -> Option<Vec<Column>> {
    let mut columns = Vec::new();
    let mut good = true;
    for (name, range) in names {
        let span = reader.span(range);
        if name.eq_ignore_ascii_case("rule") {
            if columns.iter().any(|c| matches!(c, Column::Rule)) {
                good = false;
                reader.push(
                    Finding::new(Code::TABLE_SHAPE, span, "a second column `rule`").help("write one pattern a row"),
                );
            }
            columns.push(Column::Rule);
        } else if let Some(key) = key(name) {
            columns.push(Column::Attribute(key, span));
        } else {
            good = false;
            reader.push(
                Finding::new(Code::TABLE_SHAPE, span, format!("`{name}` is no column of a rule table")).help(format!(
                    "{}columns are `rule`, {}",
                    nearest(name, &KEYS),
                    listed(&KEYS)
                )),
            );
        }
    }
    reader.tried = true;
    good.then_some(columns)
}

type Cell<'a, 'e> = (Range<usize>, Slice<'a, 'e>);

/// Rows with their cells; the header is the first.
fn rows<'a, 'e>(inner: Slice<'a, 'e>) -> Vec<(Range<usize>, Vec<Cell<'a, 'e>>)> {
    let mut out = Vec::new();
    let mut at = 0;
    while let Some((event, range)) = inner.get(at) {
        if let Event::Start(tag @ (Tag::TableHead | Tag::TableRow)) = event {
            let end = closing_in(inner, at, tag);
            let row = inner.get(at + 1..end.saturating_sub(1)).unwrap_or(&[]);
            let mut cells = Vec::new();
            let mut cell_at = 0;
            while let Some((event, range)) = row.get(cell_at) {
                if let Event::Start(tag @ Tag::TableCell) = event {
                    let end = closing_in(row, cell_at, tag);
                    cells.push((range.clone(), row.get(cell_at + 1..end.saturating_sub(1)).unwrap_or(&[])));
                    cell_at = end;
                } else {
                    cell_at += 1;
                }
            }
            out.push((range.clone(), cells));
            at = end;
        } else {
            at += 1;
        }
    }
    out
}

/// Cells in the source of a row. Markdown drops those that are too many without a word.
fn cells_in_source(source: &str) -> usize {
    let line = source.trim();
    let line = line.strip_prefix('|').unwrap_or(line);
    let mut bars = 0;
    let mut escaped = false;
    let mut ends_with_bar = false;
    for c in line.chars() {
        ends_with_bar = c == '|' && !escaped;
        bars += usize::from(ends_with_bar);
        escaped = c == '\\' && !escaped;
    }
    bars + usize::from(!ends_with_bar)
}

fn row(reader: &mut Reader<'_, '_>, tier: Tier, range: &Range<usize>, cells: &[Cell<'_, '_>], columns: &[Column]) {
    reader.tried = true;
    let found = cells_in_source(reader.text.get(range.clone()).unwrap_or(""));
    if found != columns.len() {
        let finding = Finding::new(
            Code::TABLE_SHAPE,
            reader.span(range),
            format!("this row has {found} cells, the header has {}", columns.len()),
        )
        .help("give every row as many cells as the header; write `\\|` for a bar inside a cell");
        return reader.push(finding);
    }
    let mut pattern = None;
    let mut attributes = Vec::new();
    for ((range, cell), column) in cells.iter().zip(columns) {
        match column {
            Column::Rule => pattern = rule_cell(reader, range, cell),
            Column::Attribute(key, span) => {
                if cell.is_empty() {
                    continue;
                }
                let start = cell.first().map_or(range.start, |(_, r)| r.start);
                let end = cell.last().map_or(range.end, |(_, r)| r.end);
                let values = if *key == "why" {
                    let text = reader.text.get(start..end).unwrap_or("").trim().to_owned();
                    vec![Value { text, span: Span::new(reader.file, start, end) }]
                } else {
                    let head = cell.iter().find(|(e, _)| matches!(e, Event::Code(_))).map_or(end, |(_, r)| r.start);
                    let head = reader.text.get(start..head).unwrap_or("").to_owned();
                    list_values(reader, key, cell, start, end, &head)
                };
                if !values.is_empty() {
                    attributes.push((*key, *span, values));
                }
            }
        }
    }
    if let Some(pattern) = pattern {
        let whole = reader.span(range);
        reader.rule(RawRule { surface: reader.surface, tier, pattern, whole, attributes, description: String::new() });
    }
}

fn rule_cell(reader: &mut Reader<'_, '_>, range: &Range<usize>, cell: Slice<'_, '_>) -> Option<Value> {
    if let [(Event::Code(text), range)] = cell {
        return Some(reader.code(text, range));
    }
    let finding = Finding::new(Code::TABLE_SHAPE, reader.span(range), "the cell in column `rule` is not one code span")
        .help("write one pattern in backticks; conditions and reasons have columns of their own");
    reader.push(finding);
    None
}
