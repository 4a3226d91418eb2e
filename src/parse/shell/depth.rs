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
/// here-document) nest deeper than [`MAX_SUBSTITUTIONS`]. It may count too many where what closes
/// one is not plain, never too few.
pub(super) fn substitutions_too_deep(text: &str) -> bool {
    #[derive(Clone, Copy, PartialEq)]
    enum Open {
        /// `(`; only these are counted.
        Group,
        /// `case`, in which a `)` may belong to a pattern.
        Case,
        Single,
        Double,
        Back,
        Comment,
        /// Something with rules of its own for what ends it: nothing closes it here.
        Odd,
    }
    let named = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut open: Vec<Open> = Vec::new();
    let (mut groups, mut before, mut word) = (0_usize, ' ', 0);
    let mut at = 0;
    while let Some(c) = text.get(at..).and_then(|rest| rest.chars().next()) {
        let rest = text.get(at..).unwrap_or("");
        let mut taken = c.len_utf8();
        let command = matches!(open.last(), Some(Open::Group | Open::Case | Open::Back));
        if !named(c) {
            match text.get(word..at) {
                Some("case") if command => open.push(Open::Case),
                Some("esac") if open.last() == Some(&Open::Case) => drop(open.pop()),
                _ => {}
            }
            word = at + taken;
        }
        let top = open.last().copied();
        match c {
            '\\' if top != Some(Open::Single) => {
                taken += rest.chars().nth(1).map_or(0, char::len_utf8);
                word = at + taken;
            }
            '$' if rest.starts_with("$(") => {
                taken = 2;
                word = at + taken;
                open.push(Open::Group);
                groups += 1;
            }
            '$' if top.is_some() && rest.starts_with("${") => {
                let inside = rest.get(2..).and_then(|inside| inside.split_once('}')).map(|(inside, _)| inside);
                match inside.filter(|inside| !inside.contains(['\'', '"', '`', '\\', '$', '(', ')'])) {
                    Some(inside) => taken = inside.len() + 3,
                    None => open.push(Open::Odd),
                }
            }
            '$' if top.is_some() && (rest.starts_with("$'") || rest.starts_with("$[")) => open.push(Open::Odd),
            '(' if top.is_some() => {
                open.push(Open::Group);
                groups += 1;
            }
            ')' if top == Some(Open::Group) => {
                open.pop();
                groups -= 1;
            }
            '<' if command && rest.starts_with("<<") => open.push(Open::Odd),
            '\'' if top == Some(Open::Single) => drop(open.pop()),
            '\'' if command => open.push(Open::Single),
            '"' if top == Some(Open::Double) => drop(open.pop()),
            '"' if command => open.push(Open::Double),
            '`' if top == Some(Open::Back) => drop(open.pop()),
            '`' if command => open.push(Open::Back),
            '\n' if top == Some(Open::Comment) => drop(open.pop()),
            '#' if command && !named(before) && before != '$' => open.push(Open::Comment),
            _ => {}
        }
        before = c;
        at += taken;
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
