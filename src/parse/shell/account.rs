//! Every byte of a line belongs to something: a token, a blank, a comment.
//!
//! The tokenizer of the grammar is checked against the line itself, so that a defect there
//! shows as a doubt and never as a command that nobody judged.

use std::collections::HashMap;

use brush_parser::{Token, TokenizerError, TokenizerOptions, uncached_tokenize_str};

/// The tokens of a text, and what could not be accounted for.
pub(super) struct Tokens {
    pub(super) tokens: Vec<Token>,
    pub(super) doubts: Vec<String>,
}

/// Why a text has no tokens.
pub(super) enum NoTokens {
    /// A here-document without its end; the shell reads it up to the end of the input.
    OpenHereDocument,
    /// A quote or substitution without its end, or worse.
    Other(String),
}

/// Tokenizes and checks a text.
pub(super) fn tokens(text: &str) -> Result<Tokens, NoTokens> {
    let mut tokens = uncached_tokenize_str(text, &TokenizerOptions::default()).map_err(|error| match error {
        TokenizerError::UnterminatedHereDocuments(..) => NoTokens::OpenHereDocument,
        other => NoTokens::Other(other.to_string()),
    })?;
    let chars: Vec<char> = text.chars().collect();
    let mut doubts = Vec::new();
    // What each character belongs to.
    let mut taken = vec![false; chars.len()];
    let mut here: u8 = 0;
    for token in &mut tokens {
        let (start, end) = (token.location().start.index, token.location().end.index);
        let Some(span) = chars.get(start..end) else {
            doubts.push("a token outside of the line".into());
            continue;
        };
        if let Some(part) = taken.get_mut(start..end) {
            // Behind `<<` the tokenizer may tell a token inside of another: neither is sure.
            if part.contains(&true) && end > start {
                doubts.push("a part of the line that was read twice".into());
            }
            part.fill(true);
        }
        let span: String = span.iter().collect();
        match token {
            Token::Operator(operator, _) => {
                let rest = without_comments(&span);
                if rest != operator.trim() && !(operator == "\n" && rest.is_empty()) {
                    doubts.push(format!("`{span}` where an operator was read"));
                }
                here = if operator == "<<" || operator == "<<-" { 3 } else { 0 };
            }
            // Behind `<<`: the delimiter, the body, and the line that ends it.
            Token::Word(..) if matches!(here, 1 | 2) => here -= 1,
            Token::Word(value, location) => {
                here = here.saturating_sub(1);
                let span = without_blanks(&span);
                if value != span && *value != joined(span) {
                    // Comments and here-documents inside a substitution are lost by the tokenizer.
                    *token = Token::Word(span.to_owned(), location.clone());
                }
            }
        }
    }
    // Line continuations are nothing.
    for (at, pair) in chars.windows(2).enumerate() {
        if pair == ['\\', '\n']
            && let Some(part) = taken.get_mut(at..at + 2)
        {
            part.fill(true);
        }
    }
    let mut gap = String::new();
    for (taken, c) in taken.iter().zip(&chars).chain([(&true, &' ')]) {
        if *taken {
            if !without_comments(&gap).is_empty() {
                doubts.push(format!("`{}` belongs to no part", gap.trim()));
            }
            gap.clear();
        } else {
            gap.push(*c);
        }
    }
    Ok(Tokens { tokens, doubts })
}

/// A word's span without the blanks and line continuations around it, which the tokenizer counts
/// to the word. A blank behind a backslash is the word's own.
fn without_blanks(span: &str) -> &str {
    let mut rest = span;
    loop {
        let shorter = rest.trim_start_matches([' ', '\t', '\n']);
        let shorter = shorter.strip_prefix("\\\n").unwrap_or(shorter);
        let escaped = |text: &str| text.len() - text.trim_end_matches('\\').len();
        let shorter = match shorter.strip_suffix([' ', '\t', '\n']) {
            Some(before) if escaped(before) % 2 == 0 => before,
            Some(before) if shorter.ends_with('\n') => before.strip_suffix('\\').unwrap_or(before),
            _ => shorter,
        };
        if shorter.len() == rest.len() {
            return rest;
        }
        rest = shorter;
    }
}

/// The text with its line continuations taken away.
fn joined(text: &str) -> String {
    text.replace("\\\n", "")
}

/// What is left without blanks, line ends and comments.
fn without_comments(text: &str) -> String {
    let text = joined(text);
    let lines = text.split('\n').map(|line| {
        let mut before = ' ';
        let end = line.char_indices().find(|(_, c)| {
            let comment = *c == '#' && before.is_whitespace();
            before = *c;
            comment
        });
        end.and_then(|(at, _)| line.get(..at)).unwrap_or(line)
    });
    lines.collect::<String>().trim().to_owned()
}

/// Counts the words of the tokens against those that the walk has read.
#[derive(Default)]
pub(super) struct Ledger {
    open: HashMap<String, usize>,
}

impl Ledger {
    pub(super) fn new(tokens: &[Token]) -> Self {
        let mut ledger = Ledger::default();
        for token in tokens {
            if let Token::Word(text, _) = token {
                *ledger.open.entry(text.clone()).or_default() += 1;
            }
        }
        ledger
    }

    /// The walk has read this word.
    pub(super) fn read(&mut self, word: &str) {
        if let Some(count) = self.open.get_mut(word) {
            *count = count.saturating_sub(1);
        }
    }

    /// The walk has read this text, whose words may be tokens of their own: arithmetic.
    pub(super) fn read_within(&mut self, text: &str) {
        for (word, count) in &mut self.open {
            if !word.is_empty() {
                *count = count.saturating_sub(text.matches(word.as_str()).count());
            }
        }
    }

    /// A word that nobody has read and that is no part of the grammar.
    pub(super) fn unread(&self) -> Option<&str> {
        let left = self.open.iter().filter(|(word, count)| **count > 0 && !structural(word));
        left.map(|(word, _)| word.as_str()).min()
    }
}

/// Reserved words (POSIX 2.4, Bash 3.2) and operators of `[[ ]]`, which stand in the tree as its shape.
fn structural(word: &str) -> bool {
    matches!(
        word,
        "!" | "{"
            | "}"
            | "if"
            | "then"
            | "elif"
            | "else"
            | "fi"
            | "for"
            | "in"
            | "do"
            | "done"
            | "while"
            | "until"
            | "case"
            | "esac"
            | "function"
            | "select"
            | "time"
            | "-p"
            | "coproc"
            | "[["
            | "]]"
            | "="
            | "=="
            | "!="
            | "=~"
            | "<"
            | ">"
            | ""
    ) || word.strip_prefix('-').is_some_and(|w| matches!(w.len(), 1 | 2) && w.bytes().all(|b| b.is_ascii_alphabetic()))
}
