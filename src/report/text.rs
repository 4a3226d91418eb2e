//! The text that changed, as lines with `-`, `+` or a blank in front.

use similar::{ChangeTag, TextDiff};

use super::human::visible;
use crate::diag::TextChange;
use crate::source::{SourceMap, Span};

/// Most lines that are shown of one change.
const MAX_LINES: usize = 40;
/// Most characters that are shown of one line.
const MAX_LINE: usize = 240;
/// Most bytes of a text that is compared line by line.
const MAX_TEXT: usize = 64 * 1024;

/// One change of text. Everything in it can be seen; it may hold any visible character.
pub(super) struct Shown {
    /// Where it stood, as `file:line`.
    pub(super) old: Option<String>,
    /// Where it stands.
    pub(super) new: Option<String>,
    /// The lines, none of which holds a line break.
    pub(super) lines: Vec<String>,
}

/// The lines of a change. A text that only stands elsewhere (below another tier, say) is shown
/// as it is; `None` where there is nothing to show.
pub(super) fn shown(change: &TextChange, map: &SourceMap) -> Option<Shown> {
    let text = |span: Option<Span>| span.map_or("", |s| map.text(s.file).get(s.start..s.end).unwrap_or(""));
    let (old, new) = (text(change.old), text(change.new));
    if old.is_empty() && new.is_empty() {
        return None;
    }
    let lines = if old.len().max(new.len()) > MAX_TEXT {
        vec![" (the text is too long to be shown here)".to_owned()]
    } else {
        lines(old, new)
    };
    let place = |span: Option<Span>| span.map(|span| map.line_ref(span));
    Some(Shown { old: place(change.old), new: place(change.new), lines })
}

fn lines(old: &str, new: &str) -> Vec<String> {
    let diff = TextDiff::from_lines(old, new);
    let mut out = Vec::new();
    let mut left_out = 0;
    let groups = if old == new { vec![diff.ops().to_vec()] } else { diff.grouped_ops(1) };
    for (at, group) in groups.iter().enumerate() {
        if at > 0 {
            out.push(" …".to_owned());
        }
        for change in group.iter().flat_map(|op| diff.iter_changes(op)) {
            if out.len() >= MAX_LINES {
                left_out += 1;
                continue;
            }
            let mark = match change.tag() {
                ChangeTag::Delete => '-',
                ChangeTag::Insert => '+',
                ChangeTag::Equal => ' ',
            };
            out.push(format!("{mark} {}", line(change.value())));
        }
    }
    if left_out > 0 {
        out.push(format!(" … ({left_out} more lines)"));
    }
    out
}

/// One line, cut where it is very long. Its ending is shown where it is not the usual one.
fn line(text: &str) -> String {
    let text = text.strip_suffix('\n').unwrap_or(text);
    let mut line: String = text.chars().take(MAX_LINE).collect();
    if text.chars().nth(MAX_LINE).is_some() {
        line.push_str(" …");
    }
    // What `visible` lets stand would end the line.
    visible(&line.replace('\t', "    ")).replace('\n', "\\n")
}
