//! Source texts side by side: what stood there and what stands there now.

use similar::{DiffTag, TextDiff};

use super::writer::Html;
use crate::diag::TextChange;
use crate::source::{SourceMap, Span};

/// Most lines that are shown of one side.
const MAX_LINES: usize = 40;
/// Most characters that are shown of one line.
const MAX_LINE: usize = 400;
/// Most bytes of a text that is compared line by line.
const MAX_TEXT: usize = 64 * 1024;
/// Equal lines that are kept beside a difference.
const BESIDE: usize = 1;

/// A line of one side.
struct Line<'a> {
    number: usize,
    text: &'a str,
    /// The bytes of it that differ from its counterpart; `None`: it is equal.
    differs: Option<(usize, usize)>,
}

/// Both sides of a change; nothing where neither has a text. `instead`: what is shown where the
/// text is gone.
pub(super) fn change(h: &mut Html, change: &TextChange, instead: Option<Span>, map: &SourceMap) {
    let (old, new) = (text(change.old, map), text(change.new, map));
    if old.is_empty() && new.is_empty() {
        return;
    }
    let (left, right) = if old.len().max(new.len()) > MAX_TEXT {
        (plain(change.old, map), plain(change.new, map))
    } else {
        compared((old, first(change.old, map)), (new, first(change.new, map)))
    };
    h.el("div", &[("class", "sides")], |h| {
        side(h, "before", change.old, map, &left);
        match instead {
            Some(span) if change.new.is_none() => excerpt(h, "gone; what decides now:", span, map),
            _ => side(h, "now", change.new, map, &right),
        }
    });
}

/// One place alone: the lines that a span stands in.
pub(super) fn excerpt(h: &mut Html, caption: &'static str, span: Span, map: &SourceMap) {
    let whole = map.text(span.file);
    let start = whole.get(..span.start).and_then(|before| before.rfind('\n')).map_or(0, |at| at + 1);
    let end = whole.get(span.end..).and_then(|rest| rest.find('\n')).map_or(whole.len(), |at| span.end + at);
    let lines = Span::new(span.file, start, end.max(start));
    side(h, caption, Some(lines), map, &plain(Some(lines), map));
}

fn text(span: Option<Span>, map: &SourceMap) -> &str {
    span.map_or("", |s| map.text(s.file).get(s.start..s.end).unwrap_or(""))
}

fn first(span: Option<Span>, map: &SourceMap) -> usize {
    span.and_then(|s| Some(map.get(s.file)?.position(s.start).0)).unwrap_or(1)
}

fn plain(span: Option<Span>, map: &SourceMap) -> Vec<Line<'_>> {
    let from = first(span, map);
    text(span, map).lines().enumerate().map(|(at, text)| Line { number: from + at, text, differs: None }).collect()
}

type Text<'a> = (&'a str, usize);

fn compared<'a>((old, old_first): Text<'a>, (new, new_first): Text<'a>) -> (Vec<Line<'a>>, Vec<Line<'a>>) {
    let diff = TextDiff::from_lines(old, new);
    let (was, is): (Vec<&str>, Vec<&str>) = (old.split_inclusive('\n').collect(), new.split_inclusive('\n').collect());
    let (mut left, mut right) = (Vec::new(), Vec::new());
    for op in diff.ops() {
        let (tag, old_range, new_range) = op.as_tag_tuple();
        let (from, to) = (was.get(old_range.clone()).unwrap_or(&[]), is.get(new_range.clone()).unwrap_or(&[]));
        for (lines, others, out, first) in
            [(from, to, &mut left, old_first + old_range.start), (to, from, &mut right, new_first + new_range.start)]
        {
            for (at, line) in lines.iter().enumerate() {
                let differs = (tag != DiffTag::Equal).then(|| differing(line, others.get(at).copied().unwrap_or("")));
                out.push(Line { number: first + at, text: line.trim_end_matches('\n'), differs });
            }
        }
    }
    (left, right)
}

/// The bytes of a line between what it begins and ends with in common with another.
fn differing(line: &str, other: &str) -> (usize, usize) {
    let line = line.trim_end_matches('\n');
    let other = other.trim_end_matches('\n');
    let common = |mut a: std::str::Chars<'_>, mut b: std::str::Chars<'_>| -> usize {
        let mut bytes = 0;
        while let (Some(x), Some(y)) = (a.next(), b.next()) {
            if x != y {
                break;
            }
            bytes += x.len_utf8();
        }
        bytes
    };
    let start = common(line.chars(), other.chars());
    let (rest, others) = (line.get(start..).unwrap_or(""), other.get(start..).unwrap_or(""));
    let mut end = 0;
    for (x, y) in rest.chars().rev().zip(others.chars().rev()) {
        if x != y {
            break;
        }
        end += x.len_utf8();
    }
    whole_words(line, start, line.len() - end)
}

/// A range of bytes, enlarged to the words that it is in.
fn whole_words(line: &str, start: usize, end: usize) -> (usize, usize) {
    if start >= end {
        return (start, end);
    }
    let ends = |c: char| c.is_whitespace() || matches!(c, '`' | ',' | '|');
    let before = line.get(..start).and_then(|head| head.char_indices().rev().find(|(_, c)| ends(*c)));
    let after = line.get(end..).and_then(|rest| rest.find(ends));
    // What begins or ends between words is where it should be.
    let inside = |at: usize| line.get(at..).and_then(|rest| rest.chars().next()).is_some_and(|c| !ends(c));
    let start = if inside(start) { before.map_or(0, |(at, c)| at + c.len_utf8()) } else { start };
    let last = line.get(..end).and_then(|head| head.chars().next_back());
    let end = if last.is_some_and(|c| !ends(c)) { after.map_or(line.len(), |at| end + at) } else { end };
    (start, end)
}

fn side(h: &mut Html, caption: &'static str, span: Option<Span>, map: &SourceMap, lines: &[Line<'_>]) {
    h.el("figure", &[], |h| {
        h.el("figcaption", &[], |h| {
            h.text(caption);
            if let Some(span) = span {
                h.text(" ");
                h.code(&map.line_ref(span));
            }
        });
        if lines.is_empty() {
            h.raw("<p class=\"nothing\">not there</p>");
            return;
        }
        h.el("pre", &[], |h| excerpted(h, lines));
    });
}

/// Lines near a difference, or all where there is none.
fn excerpted(h: &mut Html, lines: &[Line<'_>]) {
    let any = lines.iter().any(|line| line.differs.is_some());
    let near = |at: usize| {
        let from = at.saturating_sub(BESIDE);
        !any || lines.get(from..(at + BESIDE + 1).min(lines.len())).unwrap_or(&[]).iter().any(|l| l.differs.is_some())
    };
    let kept: Vec<usize> = (0..lines.len()).filter(|at| near(*at)).collect();
    let mut last = None;
    for at in kept.iter().take(MAX_LINES) {
        if last.is_some_and(|last| last + 1 != *at) || last.is_none() && *at > 0 {
            h.raw("<span class=\"gap\">…</span>");
        }
        last = Some(*at);
        if let Some(line) = lines.get(*at) {
            self::line(h, line);
        }
    }
    if kept.len() > MAX_LINES {
        h.badge("gap", &format!("… {} more lines", kept.len() - MAX_LINES));
    }
}

fn line(h: &mut Html, line: &Line<'_>) {
    h.el("span", &[("class", if line.differs.is_some() { "line differs" } else { "line" })], |h| {
        h.badge("number", &line.number.to_string());
        let cut = line.text.char_indices().nth(MAX_LINE).map_or(line.text.len(), |(at, _)| at);
        let (start, end) = line.differs.unwrap_or((0, 0));
        let (start, end) = (start.min(cut), end.clamp(start.min(cut), cut));
        let piece = |from: usize, to: usize| line.text.get(from..to).unwrap_or("").replace('\t', "    ");
        h.el("span", &[("class", "source")], |h| {
            h.text(&piece(0, start));
            if start < end {
                h.el("mark", &[], |h| h.text(&piece(start, end)));
            }
            h.text(&piece(end, cut));
            if cut < line.text.len() {
                h.text(" …");
            }
        });
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_is_marked_and_nothing_else() {
        for (line, other, marked) in [
            ("- `rm -R /etc`\n", "- `rm -R /etc/*`\n", ""),
            ("- `rm -R /etc/*`", "- `rm -R /etc`", "/etc/*"),
            ("- `rm -R x`", "- `rm -r x`", "-R"),
            ("`-a`, `-b`, `-c`", "`-a`, `-c`", "-b`, `-c"),
            ("abc", "", "abc"),
            ("x aé", "x aè", "aé"),
            ("same", "same", ""),
            ("aa", "aaa", ""),
        ] {
            let (start, end) = differing(line, other);
            assert_eq!(line.get(start..end), Some(marked), "{line:?} {other:?}");
        }
    }

    #[test]
    fn lines_keep_their_numbers() {
        let (left, right) = compared(("a\nb\nc\n", 10), ("a\nx\ny\nc\n", 20));
        let of = |lines: &[Line<'_>]| -> Vec<(usize, String, bool)> {
            lines.iter().map(|l| (l.number, l.text.to_owned(), l.differs.is_some())).collect()
        };
        let row = |n: usize, text: &str, differs| (n, text.to_owned(), differs);
        assert_eq!(of(&left), [row(10, "a", false), row(11, "b", true), row(12, "c", false)]);
        assert_eq!(of(&right), [row(20, "a", false), row(21, "x", true), row(22, "y", true), row(23, "c", false)]);
    }
}
