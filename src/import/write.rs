//! Rows → a tier map that people read and `polctl check` accepts, and the `polctl.yaml` beside it.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::{Format, Imported, Note, Row};
use crate::model::{CommandPattern, Glob, Item, Matcher, Piece, Surface};
use crate::source::{SourceMap, Span, is_unseen};

/// The file name of a surface's map.
pub const fn map_name(surface: Surface) -> &'static str {
    match surface {
        Surface::Commands => "CLAUDE_CMDS.md",
        Surface::Sudo => "SUDO.md",
        Surface::Egress => "proxy.md",
    }
}

/// The `polctl.yaml` for an import: as narrow as the maps assume.
pub fn config(imported: &Imported, set: &str) -> String {
    let maps: Vec<&str> =
        imported.maps.iter().filter(|(_, map)| !map.rows.is_empty()).map(|(s, _)| map_name(*s)).collect();
    format!(
        "polctl: v1\n\
         set: {set}\n\
         policies: [{}]\n\
         # The source compares the text of commands. A program that is called by a path is another text, so\n\
         # only these directories stand for the bare name.\n\
         trusted_dirs: [{}]\n\
         # No variable may be set in front of an allowed command.\n\
         allowed_env: []\n\
         # Where allowed commands may write by a redirect: nowhere.\n\
         zones:\n  workspace: []\n  tmp: []\n{}",
        maps.join(", "),
        imported.trusted_dirs.join(", "),
        imported.zones.iter().map(zone).collect::<String>()
    )
}

/// A zone's line; its patterns hold no quotes.
fn zone((name, patterns): (&String, &Vec<String>)) -> String {
    let quoted: Vec<String> = patterns.iter().map(|pattern| format!("\"{pattern}\"")).collect();
    format!("  {name}: [{}]\n", quoted.join(", "))
}

/// The tier map of one surface.
pub fn tier_map(format: Format, imported: &Imported, surface: Surface, sources: &SourceMap) -> String {
    placed(format, imported, surface, sources).0
}

/// The same, and for each of its rows the line (from 1) on which it stands with its index.
pub fn placed(
    format: Format,
    imported: &Imported,
    surface: Surface,
    sources: &SourceMap,
) -> (String, Vec<(usize, usize)>) {
    let mut places = Vec::new();
    let Some(map) = imported.maps.get(&surface) else { return (String::new(), places) };
    let mut out = format!("---\npolctl: v1\nsurface: {}\nunmatched: {}\n---\n", surface.name(), map.unmatched);
    let names: Vec<String> = sources.files().map(|file| format!("`{}`", clean(&file.display_name()))).collect();
    let _ = write!(out, "# Imported from {}\n\nSources: {}.\n\n", format.title(), names.join(", "));
    out.push_str(
        "Behind each rule stands the file and line that it comes from. No rule permits more than its source. \
         Where our patterns could not say the same, an allowance is narrower or left out and a restriction broader; \
         the list says so line by line.\n",
    );
    if surface == Surface::Commands {
        out.push_str(
            "\nAllowances are about the bare command (`when`): no wrapper, no assignment, no redirect that writes. \
             `unless: -C=*` keeps the option `-C` before a sub-command out, which the source would not overlook.\n",
        );
    }
    notes(&mut out, &imported.notes, sources);
    for number in 0..=4 {
        let rows = map.rows.iter().enumerate().filter(|(_, row)| row.tier.number() == number);
        let lines: Vec<(usize, (String, String))> = rows.map(|(index, row)| (index, line(row, sources))).collect();
        if !lines.is_empty() {
            let _ = write!(out, "\n## Tier {number}: {}\n\n```rules\n", title(number, surface));
            let width = lines.iter().map(|(_, (rule, _))| rule.chars().count()).filter(|n| *n <= 60).max().unwrap_or(0);
            let mut at = out.matches('\n').count();
            for (index, (rule, rest)) in lines {
                at += 1;
                places.push((at, index));
                let _ = writeln!(out, "{rule:width$}  {rest}");
            }
            out.push_str("```\n");
        }
    }
    (out, places)
}

const fn title(number: u8, surface: Surface) -> &'static str {
    match (number, surface) {
        (0, _) => "read, inspect",
        (1, _) => "allowed by the source",
        (2, Surface::Egress) => "held for a person",
        (2, _) => "asked about",
        (3, _) => "asked about, counted",
        _ => "denied",
    }
}

fn notes(out: &mut String, notes: &[Note], sources: &SourceMap) {
    if notes.is_empty() {
        return;
    }
    out.push_str("\n## What this import could not carry\n\n");
    for note in notes {
        let _ = writeln!(out, "- {}: {}: {}", origin(note.span, sources), note.loss.word(), clean(&note.text));
    }
}

/// A text without what people cannot see, and without what Markdown takes for HTML outside of code.
fn clean(text: &str) -> String {
    let mut out = String::new();
    let mut code = false;
    for c in text.chars() {
        code ^= c == '`';
        match c {
            c if is_unseen(c) => {
                let _ = write!(out, "U+{:04X}", u32::from(c));
            }
            '<' if !code => out.push_str("&lt;"),
            c => out.push(c),
        }
    }
    out
}

/// `settings.json:4`, in characters that a `why` may hold.
fn origin(span: Span, sources: &SourceMap) -> String {
    let safe = |c: char| if c.is_ascii_alphanumeric() || "._-/:".contains(c) { c } else { '_' };
    sources.line_ref(span).chars().map(safe).collect()
}

fn line(row: &Row, sources: &SourceMap) -> (String, String) {
    let rule = matcher_text(row);
    let (pattern, attributes) = rule.split_once('\n').map_or((rule.as_str(), ""), |(a, b)| (a, b));
    let mut rest = attributes.replace('\n', "  ");
    for (key, values) in [("agents", &row.agents), ("hosts", &row.hosts)] {
        if !values.is_empty() {
            let _ = write!(rest, "  {key}: {}", values.join(" "));
        }
    }
    let _ = write!(rest, "  why: {}", origin(row.span, sources));
    (pattern.to_owned(), rest.trim_start().to_owned())
}

/// Pattern and attributes of a row, one a line.
pub(super) fn matcher_text(row: &Row) -> String {
    let items = |items: &[Item]| items.iter().map(item).collect::<Vec<_>>().join(" ");
    let mut out = match &row.matcher {
        Matcher::Egress { pattern, .. } => pattern.to_string(),
        Matcher::Command { pattern, with, only, unless, run_as } => {
            let mut out = command(pattern);
            for list in with {
                let _ = write!(out, "\nwith: {}", items(list));
            }
            if let Some(list) = only {
                let _ = write!(out, "\nonly: {}", items(list));
            }
            if !unless.is_empty() {
                let _ = write!(out, "\nunless: {}", items(unless));
            }
            if !run_as.is_empty() {
                let _ = write!(out, "\nrun as: {}", run_as.join(" "));
            }
            out
        }
    };
    if !row.when.is_empty() {
        let _ = write!(out, "\nwhen: {}", row.when);
    }
    out
}

fn command(pattern: &CommandPattern) -> String {
    let mut words: Vec<String> =
        std::iter::once(&pattern.programs).chain(&pattern.words).map(|globs| word(globs)).collect();
    words.extend(pattern.rest.then(|| "**".to_owned()));
    words.join(" ")
}

fn word(globs: &[Glob]) -> String {
    let distinct: BTreeSet<&Glob> = globs.iter().collect();
    let texts: Vec<String> = distinct.into_iter().map(glob).collect();
    match texts.as_slice() {
        [only] if only.is_empty() => "''".into(),
        [only] if matches!(only.as_str(), "/" | "...") => format!("\\{only}"),
        [only] => match only.strip_suffix(':') {
            // Else the word would be a key.
            Some(head) => format!("{head}\\:"),
            None => only.clone(),
        },
        texts => format!("{{{}}}", texts.join(",")),
    }
}

fn glob(glob: &Glob) -> String {
    let mut out = String::new();
    for piece in glob.pieces() {
        match piece {
            Piece::Any => out.push('*'),
            Piece::Text(text) => {
                for c in text.chars() {
                    if !(c.is_ascii_alphanumeric() || "_./:@%+=-~^".contains(c)) {
                        out.push('\\');
                    }
                    out.push(c);
                }
            }
        }
    }
    out
}

fn item(item: &Item) -> String {
    match item {
        Item::Argument(one) => word(std::slice::from_ref(one)),
        option => {
            let text = option.to_string();
            text.chars().fold(String::new(), |mut out, c| {
                if !(c.is_ascii_alphanumeric() || "_.-+@%:".contains(c)) {
                    out.push('\\');
                }
                out.push(c);
                out
            })
        }
    }
}
