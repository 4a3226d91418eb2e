//! Text of others in a Markdown comment, so that it is read and does nothing.
//!
//! What policy says may hold anything: bars, backticks, HTML, links, images, mentions, issue
//! numbers, commands of the forge. Escaping each of these would be a race with the forge's
//! extensions. So all of it stands in code spans and code blocks, which know no syntax but their
//! own end, and that end is longer than any run of backticks inside. Only words of plain letters
//! and numbers ever stand outside.

use super::human::visible;

/// Most characters of one code span.
const MAX_SPAN: usize = 300;

/// A code span that shows `text` in one line.
pub(super) fn code(text: &str) -> String {
    let mut shown: String = text.chars().take(MAX_SPAN).collect();
    let more = text.chars().count().saturating_sub(MAX_SPAN);
    if more > 0 {
        shown.push('…');
    }
    let shown = visible(&shown).replace('\n', "\\n");
    if shown.is_empty() {
        return "(nothing)".to_owned();
    }
    let fence = "`".repeat(longest_run(&shown) + 1);
    // A blank on both sides is taken off again; without, a backtick would join the fence.
    let pad = if shown.starts_with(['`', ' ']) || shown.ends_with(['`', ' ']) { " " } else { "" };
    let tail = if more > 0 { format!(" (and {more} more characters)") } else { String::new() };
    format!("{fence}{pad}{shown}{pad}{fence}{tail}")
}

/// A fenced block of lines, none of which holds a line break; `indent` stands before each.
pub(super) fn block(lines: &[String], info: &str, indent: &str) -> String {
    let longest = lines.iter().map(|line| longest_run(line)).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    let mut out = format!("{indent}{fence}{info}\n");
    for line in lines {
        out.push_str(&format!("{indent}{line}\n"));
    }
    out.push_str(&format!("{indent}{fence}\n"));
    out
}

/// A sentence of a finding: what stands in backticks becomes a code span, and so does
/// everything else that is not plain words.
pub(super) fn sentence(text: &str) -> String {
    let mut out = String::new();
    for (at, part) in text.split('`').enumerate() {
        if at % 2 == 0 && is_plain(part) {
            out.push_str(part);
        } else if !part.is_empty() {
            // Two code spans must not touch: their fences would join.
            if out.ends_with('`') {
                out.push(' ');
            }
            out.push_str(&code(part));
        }
    }
    out
}

fn longest_run(text: &str) -> usize {
    text.split(|c| c != '`').map(str::len).max().unwrap_or(0)
}

/// Whether a text is words and numbers with simple punctuation, none of which any Markdown
/// dialect or forge takes for more.
fn is_plain(text: &str) -> bool {
    !text.contains(|c: char| c.is_control()) && text.split(' ').all(is_plain_word)
}

fn is_plain_word(word: &str) -> bool {
    let word = word.strip_prefix('(').unwrap_or(word);
    let word = word.trim_end_matches([')', ',', ';', '.', ':']);
    // Seven hexadecimal digits may name a commit.
    let commit = word.len() > 6 && word.bytes().all(|b| b.is_ascii_hexdigit());
    let letters = word.chars().all(|c| c.is_ascii_alphabetic() || matches!(c, '\'' | '-'));
    let number = word.bytes().all(|b| b.is_ascii_digit());
    word == "→" || !commit && (number || letters && !word.starts_with(['-', '\'']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_span_cannot_be_left() {
        for (text, shown) in [
            ("rm -rf /", "`rm -rf /`"),
            ("a`b", "``a`b``"),
            ("`", "`` ` ``"),
            ("a``", "``` a`` ```"),
            (" a", "`  a `"),
            ("a\nb\r\u{202e}", "`a\\nb\\u{d}\\u{202e}`"),
            ("", "(nothing)"),
        ] {
            assert_eq!(code(text), shown, "{text:?}");
        }
        let long = code(&"x".repeat(MAX_SPAN + 7));
        assert!(long.ends_with("x…` (and 7 more characters)"), "{long}");
    }

    #[test]
    fn only_plain_words_stand_outside_of_code() {
        for (text, shown) in [
            ("the rule `a *` of tier 3 permits it now", "the rule `a *` of tier 3 permits it now"),
            ("`a` (by agent `b`)", "`a` (by agent `b`)"),
            ("`a``b`", "`a` `b`"),
            ("see @octocat", "`see @octocat`"),
            ("closes #12", "`closes #12`"),
            ("GH-12", "`GH-12`"),
            ("ABC-1", "`ABC-1`"),
            ("<b>", "`<b>`"),
            ("![x](http://a.example/)", "`![x](http://a.example/)`"),
            ("www.example.com", "`www.example.com`"),
            ("a*b*", "`a*b*`"),
            ("1234567", "`1234567`"),
            ("deadbeef", "`deadbeef`"),
            ("- x", "`- x`"),
        ] {
            assert_eq!(sentence(text), shown, "{text:?}");
        }
    }
}
