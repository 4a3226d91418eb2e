//! How deep a text nests braces and expansions, told before the grammar of words reads it.
//!
//! That grammar tries each nested `{` and `${…}` more than once, so that the time doubles with
//! every level: a short line could keep a hook busy past the time that its caller waits.

/// Levels of braces, or of `${…}` with more than a name in it, that are read.
const MAX_WORD_NESTING: usize = 8;

/// Whether a word, or a text without brace lists (`braces` is `false`), nests deeper than
/// [`MAX_WORD_NESTING`]. It may count too many levels where quotes are odd, never too few.
pub(super) fn nests_too_deep(text: &str, braces: bool) -> bool {
    let (mut deepest, mut open) = (0, 0_usize);
    // `apostrophe` takes every `'` for a quote, `single` only those outside of double quotes.
    let (mut single, mut double, mut apostrophe) = (false, false, false);
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let mut taken = c.len_utf8();
        match c {
            '\\' if !single => taken += rest.get(1..).and_then(|tail| tail.chars().next()).map_or(0, char::len_utf8),
            '\'' => {
                apostrophe = !apostrophe;
                single = single != !double;
            }
            '"' if !single => double = !double,
            '$' if rest.starts_with("${") => {
                taken = 2;
                // `${NAME}` holds nothing.
                let name = rest.get(2..).unwrap_or("").trim_start_matches(|c: char| c.is_ascii_alphanumeric() || c == '_');
                if let Some(behind) = name.strip_prefix('}') {
                    taken = rest.len() - behind.len();
                } else {
                    open += 1;
                }
            }
            '{' if braces && !single && !double => open += 1,
            '}' if !apostrophe && !single => open = open.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(open);
        rest = rest.get(taken..).unwrap_or("");
    }
    deepest > MAX_WORD_NESTING
}
