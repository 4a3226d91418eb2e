//! How deep a text nests, told before a grammar reads it.
//!
//! The grammars try what may begin a group more than once, so that the time doubles with every
//! level where they fail at last: a short line could keep a hook busy past the time that its
//! caller waits.

use brush_parser::Token;

/// Open parentheses and `case` that are read; `((` counts twice.
const MAX_GROUPS: usize = 16;

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
                single ^= !double;
            }
            '"' if !single => double = !double,
            '$' if rest.starts_with("${") => {
                taken = 2;
                // `${NAME}` holds nothing.
                let name =
                    rest.get(2..).unwrap_or("").trim_start_matches(|c: char| c.is_ascii_alphanumeric() || c == '_');
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

/// Substitutions in substitutions that are read in a text whose end no tokenizer has found;
/// `$((` counts twice.
const MAX_SUBSTITUTIONS: usize = 8;

/// Whether command substitutions in a text where only expansions count (the body of a
/// here-document) nest deeper than [`MAX_SUBSTITUTIONS`].
///
/// What closes one is looked for as a shell does, and an opener counts wherever it stands, so
/// that one which stays open is always counted.
pub(super) fn substitutions_too_deep(text: &str) -> bool {
    /// What is open; only the first counts.
    #[derive(Clone, Copy, PartialEq)]
    enum Open {
        Group,
        Case,
        Single,
        Double,
        Back,
        Comment,
    }
    let mut open: Vec<Open> = Vec::new();
    let mut groups = 0_usize;
    let mut before = ' ';
    let mut word = String::new();
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let top = open.last().copied();
        let command = matches!(top, Some(Open::Group | Open::Case | Open::Back));
        if command && !c.is_ascii_alphanumeric() && c != '_' {
            match word.as_str() {
                "case" => open.push(Open::Case),
                "esac" if top == Some(Open::Case) => drop(open.pop()),
                _ => {}
            }
        }
        let top = open.last().copied();
        if c.is_ascii_alphanumeric() || c == '_' {
            word.push(c);
        } else {
            word.clear();
        }
        match c {
            '\\' if top != Some(Open::Single) => drop(chars.next()),
            '$' if chars.peek() == Some(&'(') => {
                chars.next();
                open.push(Open::Group);
                groups += 1;
            }
            '(' if !open.is_empty() => {
                open.push(Open::Group);
                groups += 1;
            }
            ')' if top == Some(Open::Group) => {
                open.pop();
                groups -= 1;
            }
            '\'' if top == Some(Open::Single) => drop(open.pop()),
            '\'' if command => open.push(Open::Single),
            '"' if top == Some(Open::Double) => drop(open.pop()),
            '"' if command => open.push(Open::Double),
            '`' if top == Some(Open::Back) => drop(open.pop()),
            '`' if command => open.push(Open::Back),
            '\n' if top == Some(Open::Comment) => drop(open.pop()),
            '#' if command && before.is_whitespace() => open.push(Open::Comment),
            _ => {}
        }
        before = c;
        if groups > MAX_SUBSTITUTIONS {
            return true;
        }
    }
    false
}

/// Whether groups nest deeper than [`MAX_GROUPS`].
pub(super) fn groups_too_deep(tokens: &[Token]) -> bool {
    let mut open: Vec<bool> = Vec::new();
    let mut begins = true;
    for token in tokens {
        match token {
            Token::Operator(operator, _) => {
                for sign in operator.chars() {
                    match sign {
                        '(' => open.push(false),
                        // That of a pattern (`a)`) closes nothing.
                        ')' if open.last() == Some(&false) => drop(open.pop()),
                        _ => {}
                    }
                }
                begins = true;
            }
            Token::Word(word, _) => {
                match word.as_str() {
                    "case" => open.push(true),
                    "esac" if begins && open.last() == Some(&true) => drop(open.pop()),
                    _ => {}
                }
                begins = matches!(word.as_str(), "in" | "fi" | "done" | "esac" | "}");
            }
        }
        if open.len() > MAX_GROUPS {
            return true;
        }
    }
    false
}
