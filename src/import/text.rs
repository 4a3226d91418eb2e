//! Patterns over the text of a command, in which a wildcard crosses words: what our patterns of words
//! can say of them.
//!
//! A text pattern becomes words by the quoting of the shell, so that `git commit -m "x"` is about
//! that command however it is quoted. As an allowance each wildcard shrinks to one word, as a
//! restriction it grows to any words.

use super::rows;
use super::{Loss, Note, Row};
use crate::model::{CommandPattern, Glob, Item, Matcher, Piece, SetTerm, Tier, When};
use crate::source::Span;

/// A character of a pattern, or a wildcard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sign {
    /// This character.
    Char(char),
    /// Any characters, blanks included.
    Any,
    /// One character, whichever.
    One,
}

/// `*` as a wildcard, everything else as it is.
pub(super) fn stars(text: &str) -> Vec<Sign> {
    text.chars().map(|c| if c == '*' { Sign::Any } else { Sign::Char(c) }).collect()
}

/// How a pattern ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// Where its text ends.
    Exact,
    /// At the end of a word: nothing follows, or further words.
    Words,
    /// Anywhere: the last word may go on, and further words may follow.
    Open,
}

/// A word of a pattern.
#[derive(Clone, Debug, Default)]
struct Word {
    pieces: Vec<Piece>,
    /// It holds a wildcard for one character.
    single: bool,
    /// It holds a quote or backslash.
    quoted: bool,
}

/// A pattern, taken apart.
#[derive(Debug)]
pub(super) struct TextPattern {
    words: Vec<Word>,
    /// Assignments in front of the program.
    env: Vec<String>,
    end: End,
    /// A sign of the shell that ends the simple command.
    operator: Option<char>,
    /// A quote without its end.
    unclosed: bool,
}

impl TextPattern {
    /// Takes a pattern apart.
    pub(super) fn new(signs: &[Sign], end: End) -> Self {
        let mut out = TextPattern { words: Vec::new(), env: Vec::new(), end, operator: None, unclosed: false };
        let mut current: Option<Word> = None;
        let mut quote = None;
        let mut signs = signs.iter().copied();
        while let Some(sign) = signs.next() {
            match (quote, sign) {
                (None, Sign::Char(c)) if c.is_whitespace() => out.words.extend(current.take()),
                (None, Sign::Char(c)) if "|&;<>()`$\n".contains(c) => {
                    out.operator = Some(c);
                    break;
                }
                (None, Sign::Char(c)) if c == '\'' || c == '"' => {
                    quote = Some(c);
                    current.get_or_insert_default().quoted = true;
                }
                (Some(q), Sign::Char(c)) if q == c => quote = None,
                (Some('"'), Sign::Char(c)) if c == '$' || c == '`' => {
                    out.operator = Some(c);
                    break;
                }
                (None | Some('"'), Sign::Char('\\')) => {
                    let word = current.get_or_insert_default();
                    word.quoted = true;
                    match signs.next() {
                        Some(sign) => word.push(sign),
                        None => out.unclosed = true,
                    }
                }
                (_, sign) => current.get_or_insert_default().push(sign),
            }
        }
        out.unclosed |= quote.is_some();
        if out.operator.is_some() || out.unclosed {
            // What follows is another command, or a text that ends nowhere.
            out.end = End::Open;
        } else if end == End::Open && current.is_none() {
            out.end = End::Words;
        }
        out.words.extend(current);
        out.assignments();
        out
    }

    /// Takes a pattern apart in which nothing but blanks and wildcards has a meaning.
    pub(super) fn unquoted(signs: &[Sign], end: End) -> Self {
        let mut out = TextPattern { words: Vec::new(), env: Vec::new(), end, operator: None, unclosed: false };
        let mut current: Option<Word> = None;
        for sign in signs {
            match sign {
                Sign::Char(c) if c.is_whitespace() => out.words.extend(current.take()),
                sign => current.get_or_insert_default().push(*sign),
            }
        }
        out.words.extend(current);
        out
    }

    fn assignments(&mut self) {
        while let Some(name) = self.words.first().and_then(Word::assigned) {
            self.env.push(name);
            self.words.remove(0);
        }
    }

    /// The program, when it is plain text.
    pub(super) fn program(&self) -> Option<String> {
        self.words.first().and_then(Word::literal)
    }

    /// Whether it is about every command.
    pub(super) fn is_everything(&self) -> bool {
        let all_wild = self.words.iter().all(|word| word.pieces.iter().all(|piece| *piece == Piece::Any));
        all_wild && self.operator.is_none() && self.env.is_empty() && (!self.words.is_empty() || self.end != End::Exact)
    }

    /// The row of an allowance.
    ///
    /// # Errors
    ///
    /// Why there is none, as a sentence.
    pub(super) fn permit(&self, span: Span, notes: &mut Vec<Note>) -> Result<Row, String> {
        let (pattern, narrower) = self.words_of_permit()?;
        let row = rows::permit(pattern.clone(), span, notes)?;
        if narrower {
            let text = format!("a wildcard stands for one argument only: `{pattern}`");
            notes.push(Note { span, loss: Loss::Narrower, text });
        }
        Ok(row)
    }

    /// The pattern of an allowance, and whether it is narrower.
    pub(super) fn words_of_permit(&self) -> Result<(CommandPattern, bool), String> {
        if let Some(c) = self.operator {
            return Err(format!("`{}` stands in it: a rule is about one simple command", shown(c)));
        }
        if self.unclosed {
            return Err("it ends within a quote".into());
        }
        if let Some(name) = self.env.first() {
            return Err(format!("it demands the assignment of `{name}`, and a rule can only allow one"));
        }
        if self.words.iter().any(|word| word.single) {
            return Err("`?` stands for one character, which no pattern says".into());
        }
        let Some((program, words)) = self.words.split_first() else {
            return Err("it names no command".into());
        };
        let (mut pattern, mut narrower) =
            (CommandPattern { programs: Vec::new(), words: Vec::new(), rest: false }, false);
        let name = match program.literal() {
            Some(name) => name,
            None => match program.pieces.as_slice() {
                // `ls*` is also `lsof`.
                [Piece::Text(name), Piece::Any] => {
                    narrower = true;
                    name.clone()
                }
                _ => return Err("an allowance names its program, and here a wildcard stands for it".into()),
            },
        };
        pattern.programs.push(Glob::literal(&name));
        pattern.rest = self.end != End::Exact;
        let last = words.len().saturating_sub(1);
        for (index, word) in words.iter().enumerate() {
            let ends = index == last;
            let glued = matches!(word.pieces.last(), Some(Piece::Any));
            if ends && glued && word.pieces.len() > 1 {
                // The wildcard goes on over the end of the word.
                pattern.rest = true;
            }
            let inner = word.pieces.iter().filter(|piece| **piece == Piece::Any).count();
            narrower |= inner > usize::from(ends && glued && word.pieces.len() > 1);
            pattern.words.push(vec![Glob::new(word.pieces.clone())]);
        }
        if words.is_empty() && program.literal().is_none() {
            pattern.rest = true;
        }
        if self.end == End::Open
            && let Some(word) = pattern.words.last_mut()
        {
            // `npm run test:` in which the last word may go on.
            *word = word.iter().map(|glob| Glob::new(glob.pieces().iter().cloned().chain([Piece::Any]))).collect();
        } else if self.end == End::Open {
            narrower = true;
        }
        Ok((pattern, narrower))
    }

    /// The rows of a restriction; `programs` are those that an allowance of the source names, for
    /// where a wildcard stands for the program and the tier is not the strictest.
    pub(super) fn restrict(&self, tier: Tier, span: Span, programs: &[String], notes: &mut Vec<Note>) -> Vec<Row> {
        let mut broader: Option<String> = None;
        if let Some(c) = self.operator {
            broader = Some(format!("it is about the command before `{}`", shown(c)));
        } else if self.unclosed {
            broader = Some("it ends within a quote, and is about all that begins like it".into());
        } else if self.words.iter().any(|word| word.single) {
            broader = Some("`?` is read as any characters".into());
        }
        let mut rows = Vec::new();
        match self.program() {
            Some(name) => {
                let base = name.rsplit('/').next().unwrap_or("").to_owned();
                if base != name {
                    broader = Some(format!("it is about every program `{base}`, not only `{name}`"));
                }
                if matches!(base.as_str(), "sudo" | "doas") {
                    // No map covers that surface, so nothing of it is permitted; alone the wrapper is a program.
                    let glob = Glob::new([Piece::Text(base), Piece::Any]);
                    return if tier == Tier::DENY {
                        for_programs(&glob, programs, tier, Vec::new(), span)
                    } else {
                        Vec::new()
                    };
                }
                if rows::program_name(&base).is_err() {
                    broader = Some(format!("`{base}` cannot be named as a program, so it is about every program"));
                    rows.extend(self.anywhere(tier, span, programs, false));
                } else {
                    rows.push(self.behind(Glob::literal(&base), tier, span, &mut broader));
                }
            }
            None => match self.words.first().map(|word| word.pieces.as_slice()) {
                // `ls*`: the program's name may go on, and so may the words.
                Some([Piece::Text(head), ..]) if !head.ends_with('/') => {
                    let base = head.rsplit('/').next().unwrap_or("").to_owned();
                    if self.words.len() > 1 || base != *head {
                        broader.get_or_insert_with(|| "what stands behind its wildcard is looked for anywhere".into());
                    }
                    let with: Vec<Item> = self.words.iter().skip(1).flat_map(Word::fragments).collect();
                    let glob = Glob::new([Piece::Text(base), Piece::Any]);
                    rows.extend(for_programs(&glob, programs, tier, with, span));
                }
                _ => {
                    if !self.is_everything() {
                        broader.get_or_insert_with(|| "it is looked for anywhere in a command".into());
                    }
                    rows.extend(self.anywhere(tier, span, programs, true));
                }
            },
        }
        if !self.env.is_empty() {
            let env = SetTerm::In(self.env.iter().cloned().collect());
            rows.iter_mut().for_each(|row| row.when = When { env: Some(env.clone()), ..When::default() });
        }
        if let Some(text) = broader {
            notes.push(Note { span, loss: Loss::Broader, text });
        }
        rows
    }

    /// A restriction whose program is known: words up to the first wildcard by place, the others anywhere.
    fn behind(&self, program: Glob, tier: Tier, span: Span, broader: &mut Option<String>) -> Row {
        let words = self.words.get(1..).unwrap_or_default();
        let mut pattern = CommandPattern { programs: vec![program], words: Vec::new(), rest: self.end != End::Exact };
        let mut with = Vec::new();
        let mut open = false;
        for (index, word) in words.iter().enumerate() {
            let wild = word.pieces.contains(&Piece::Any);
            let last = index + 1 == words.len();
            if open {
                with.extend(word.fragments());
            } else if !wild {
                pattern.words.push(vec![Glob::new(word.pieces.clone())]);
            } else {
                open = true;
                pattern.rest = true;
                // What stands before the wildcard begins the word here.
                if let Some(Piece::Text(text)) = word.pieces.first() {
                    pattern.words.push(vec![Glob::new([Piece::Text(text.clone()), Piece::Any])]);
                    with.extend(word.fragments().into_iter().skip(1));
                } else {
                    with.extend(word.fragments());
                }
                let exact = last && word.pieces.len() <= 2 && matches!(word.pieces.last(), Some(Piece::Any));
                if !exact || !with.is_empty() {
                    broader.get_or_insert_with(|| "what stands behind its wildcard is looked for anywhere".into());
                }
            }
        }
        if !open
            && self.end == End::Open
            && let Some(word) = pattern.words.last_mut()
        {
            *word = word.iter().map(|glob| Glob::new(glob.pieces().iter().cloned().chain([Piece::Any]))).collect();
        } else if !open && self.end == End::Open && self.operator.is_none() {
            // `ls*`: the program's name may go on.
            pattern.programs = pattern
                .programs
                .iter()
                .map(|glob| Glob::new(glob.pieces().iter().cloned().chain([Piece::Any])))
                .collect();
        }
        if matches!(pattern.words.last().map(Vec::as_slice), Some([glob]) if glob.is_any()) && pattern.rest {
            pattern.words.pop();
        }
        let (mut row, more) = rows::restrict(tier, pattern, span);
        if more.is_some() {
            *broader = more;
        }
        if let Matcher::Command { with: own, pattern, .. } = &mut row.matcher {
            let hiding = rows::hiding(&pattern.literal_programs().unwrap_or_default());
            own.extend(with.into_iter().map(|item| std::iter::once(item).chain(hiding.iter().cloned()).collect()));
        }
        row
    }

    /// A restriction whose program is a wildcard.
    fn anywhere(&self, tier: Tier, span: Span, programs: &[String], head: bool) -> Vec<Row> {
        let with: Vec<Vec<Item>> =
            self.words.iter().skip(usize::from(!head)).flat_map(Word::fragments).map(|item| vec![item]).collect();
        let flat: Vec<Item> = with.into_iter().flatten().collect();
        let mut rows = for_programs(&Glob::any(), programs, tier, flat, span);
        // The first word may lie in the program's own name.
        let texts = self.words.first().filter(|_| head).map(Word::texts).unwrap_or_default();
        for text in texts {
            let base = text.rsplit('/').next().unwrap_or("").to_owned();
            if !base.is_empty() {
                let glob = Glob::new([Piece::Any, Piece::Text(base), Piece::Any]);
                rows.extend(for_programs(&glob, programs, tier, Vec::new(), span));
            }
        }
        rows
    }
}

/// Restricting rows for the programs that a glob reaches. Only the strictest tier may leave them
/// open; below it those suffice that the source allows, since all others are asked about anyway.
fn for_programs(glob: &Glob, programs: &[String], tier: Tier, with: Vec<Item>, span: Span) -> Vec<Row> {
    let lists: Vec<Vec<Glob>> = if tier == Tier::DENY {
        vec![vec![glob.clone()]]
    } else {
        let mut names: Vec<&String> = programs.iter().filter(|name| glob.matches(name)).collect();
        names.sort();
        names.dedup();
        names.chunks(60).map(|names| names.iter().map(|name| Glob::literal(name)).collect()).collect()
    };
    let with: Vec<Vec<Item>> = with.into_iter().map(|item| vec![item]).collect();
    let row = |programs| {
        let mut row = rows::plain(tier, CommandPattern { programs, words: Vec::new(), rest: true }, span);
        if let Matcher::Command { with: own, .. } = &mut row.matcher {
            own.clone_from(&with);
        }
        row
    };
    let mut rows: Vec<Row> = lists.into_iter().map(row).collect();
    if !with.is_empty() {
        // What is looked for may stand in an option that leaves the words.
        let names = rows::with_globals();
        let reached: Vec<&str> = names
            .into_iter()
            .filter(|name| glob.matches(name) && (tier == Tier::DENY || programs.iter().any(|own| own == name)))
            .collect();
        for names in reached.chunks(20) {
            let mut row = row(names.iter().map(|name| Glob::literal(name)).collect());
            if let Matcher::Command { with: own, .. } = &mut row.matcher {
                *own = vec![rows::hiding(names)];
            }
            rows.push(row);
        }
    }
    rows
}

fn shown(c: char) -> String {
    if c == '\n' { "\\n".into() } else { c.to_string() }
}

impl Word {
    fn push(&mut self, sign: Sign) {
        match (sign, self.pieces.last_mut()) {
            (Sign::Char(c), Some(Piece::Text(text))) => text.push(c),
            (Sign::Char(c), _) => self.pieces.push(Piece::Text(c.to_string())),
            (Sign::Any, Some(Piece::Any)) => {}
            (Sign::Any, _) => self.pieces.push(Piece::Any),
            (Sign::One, last) => {
                self.single = true;
                if !matches!(last, Some(Piece::Any)) {
                    self.pieces.push(Piece::Any);
                }
            }
        }
    }

    fn literal(&self) -> Option<String> {
        match self.pieces.as_slice() {
            [] => Some(String::new()),
            [Piece::Text(text)] => Some(text.clone()),
            _ => None,
        }
    }

    /// `NAME=…`: the name.
    fn assigned(&self) -> Option<String> {
        let Some(Piece::Text(text)) = self.pieces.first() else { return None };
        let (name, _) = text.split_once('=').filter(|_| !self.quoted || !text.starts_with('='))?;
        let good = !name.is_empty()
            && !name.starts_with(|c: char| c.is_ascii_digit())
            && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
        good.then(|| name.to_owned())
    }

    /// Its texts between wildcards, cut where a blank was quoted.
    fn texts(&self) -> Vec<String> {
        let texts = self.pieces.iter().filter_map(|piece| match piece {
            Piece::Text(text) => Some(text.as_str()),
            Piece::Any => None,
        });
        texts.flat_map(|text| text.split_whitespace()).map(str::to_owned).collect()
    }

    /// The same as items that are looked for inside any argument.
    fn fragments(&self) -> Vec<Item> {
        let around = |text: String| Item::Argument(Glob::new([Piece::Any, Piece::Text(text), Piece::Any]));
        self.texts().into_iter().map(around).collect()
    }
}
