//! SQL → what each statement does to tables.
//!
//! The grammar is that of `PostgreSQL`, by `squawk-syntax`; nothing else in the crate knows it. Each
//! statement is read by itself, so one that cannot be read spoils no other. What the grammar
//! does not take and what runs SQL of its own is told as [`Opaque`], unless it cannot touch
//! which tables there are.

mod lower;
mod marks;
mod names;
mod scan;
mod touch;

pub(crate) use marks::{class_in, is_class, table_name};

use std::ops::Range;

use crate::model::{Act, Opaque, Script, Statement};
use crate::source::{FileId, Span};
use scan::Chunk;

/// Reads the statements of a file that are applied.
pub fn parse_sql(file: FileId, text: &str) -> Script {
    let mut script = Script::default();
    for chunk in scan::chunks(text) {
        read(file, text, &chunk, &mut script);
    }
    script
}

fn read(file: FileId, text: &str, chunk: &Chunk, script: &mut Script) {
    let (before, inside): (Vec<&Range<usize>>, Vec<&Range<usize>>) =
        chunk.comments.iter().partition(|comment| comment.start < chunk.start);
    let marks = |comments: Vec<&Range<usize>>| comments.into_iter().flat_map(|c| marks::read(file, text, c)).collect();
    let (behind, before): (Vec<&Range<usize>>, Vec<&Range<usize>>) =
        before.into_iter().partition(|comment| stands_behind(text, chunk, comment));
    let mut stray: Vec<_> = marks(behind);
    stray.extend::<Vec<_>>(marks(inside));
    script.stray.extend(stray);
    let before = marks(before);
    if chunk.words.is_empty() && chunk.meta.is_empty() {
        script.stray.extend(before);
        return;
    }
    let span = Span::new(file, chunk.start.min(chunk.range.end), chunk.range.end);
    let span = if chunk.words.is_empty() { meta_span(file, chunk, span) } else { span };
    script.statements.push(Statement { span, acts: acts(file, text, chunk), marks: before });
}

/// Whether a comment stands on the line on which the statement before it ends: it is about that
/// one, and `COMMENT ON` or a line before it says the same without doubt.
fn stands_behind(text: &str, chunk: &Chunk, comment: &Range<usize>) -> bool {
    let between = text.get(chunk.range.start..comment.start).unwrap_or("");
    chunk.range.start > 0 && !between.contains('\n') && !text.get(..chunk.range.start).unwrap_or("").ends_with('\n')
}

fn meta_span(file: FileId, chunk: &Chunk, span: Span) -> Span {
    chunk.meta.first().map_or(span, |meta| Span::new(file, meta.start, meta.end))
}

/// Commands of psql that read nothing and run nothing but what stands there.
const QUIET: &[&str] = &[
    "echo",
    "qecho",
    "warn",
    "set",
    "unset",
    "timing",
    "pset",
    "restrict",
    "unrestrict",
    "encoding",
    "connect",
    "c",
    "x",
    "t",
    "a",
    "f",
    "o",
    "q",
    ".",
    "r",
    "errverbose",
    "copy",
    "password",
    "prompt",
    "cd",
    "conninfo",
];

fn acts(file: FileId, text: &str, chunk: &Chunk) -> Vec<Act> {
    let mut acts = Vec::new();
    for meta in &chunk.meta {
        let command = text.get(meta.start + 1..meta.end).unwrap_or("");
        let name = command.split_whitespace().next().unwrap_or("");
        if !QUIET.contains(&name) {
            acts.push(Act::Opaque(Opaque::Meta(format!("\\{name}"))));
        }
    }
    if chunk.words.is_empty() {
        return acts;
    }
    if can_be_skipped(chunk) {
        acts.extend(lower::calls(&chunk.words));
        return acts;
    }
    let own = lower::acts(file, text, chunk);
    let touches = own.iter().any(|act| !matches!(act, Act::Calls(_) | Act::Commit | Act::Routine(..)));
    if chunk.conditional && touches {
        acts.push(Act::Opaque(Opaque::Conditional));
    } else {
        acts.extend(own);
    }
    acts
}

/// Statements about rows, which are most of the bytes of many migrations, need no grammar.
fn can_be_skipped(chunk: &Chunk) -> bool {
    matches!(chunk.words.first(), Some(scan::Word::Plain(word))
        if matches!(word.as_str(), "insert" | "update" | "delete" | "copy" | "grant" | "revoke"))
}
