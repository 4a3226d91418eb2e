//! Splitting pattern text into words, remembering what was quoted.

/// A character of a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Char {
    pub(super) c: char,
    /// Quoted or escaped, so never a wildcard or brace.
    pub(super) literal: bool,
}

/// A word and its place, as offsets into the text that was split.
#[derive(Clone, Debug)]
pub(super) struct RawWord {
    pub(super) chars: Vec<Char>,
    pub(super) start: usize,
    pub(super) end: usize,
}

impl RawWord {
    /// The text, quotes taken off.
    pub(super) fn text(&self) -> String {
        self.chars.iter().map(|c| c.c).collect()
    }

    /// The text, if nothing of it was quoted.
    pub(super) fn plain(&self) -> Option<String> {
        self.chars.iter().all(|c| !c.literal).then(|| self.text())
    }
}

/// A quote without its end, at this offset.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unclosed(pub(super) usize);

/// Splits at blanks; `'…'`, `"…"` and `\` make characters literal.
pub(super) fn split(text: &str) -> Result<Vec<RawWord>, Unclosed> {
    let mut words: Vec<RawWord> = Vec::new();
    let mut current: Option<RawWord> = None;
    let mut quote: Option<(char, usize)> = None;
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        let end = at + c.len_utf8();
        if quote.is_none() && c.is_whitespace() {
            words.extend(current.take());
            continue;
        }
        let word = current.get_or_insert(RawWord { chars: Vec::new(), start: at, end });
        word.end = end;
        match quote {
            Some((q, _)) if c == q => quote = None,
            Some(_) => word.chars.push(Char { c, literal: true }),
            None if c == '\'' || c == '"' => quote = Some((c, at)),
            None if c == '\\' => match chars.next() {
                Some((next_at, next)) => {
                    word.end = next_at + next.len_utf8();
                    word.chars.push(Char { c: next, literal: true });
                }
                None => return Err(Unclosed(at)),
            },
            None => word.chars.push(Char { c, literal: false }),
        }
    }
    if let Some((_, at)) = quote {
        return Err(Unclosed(at));
    }
    words.extend(current);
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &str) -> Vec<String> {
        split(text).unwrap().iter().map(RawWord::text).collect()
    }

    #[test]
    fn quotes_group_and_escape() {
        assert_eq!(texts("a 'b c' d\\ e \"\""), ["a", "b c", "d e", ""]);
        assert_eq!(texts("  \t"), Vec::<String>::new());
        assert!(split("a 'b").is_err());
        assert!(split("a\\").is_err());
        let words = split("x'*'*").unwrap();
        assert_eq!(words[0].chars.iter().map(|c| c.literal).collect::<Vec<_>>(), [false, true, false]);
        assert_eq!((words[0].start, words[0].end), (0, 5));
    }
}
