//! Command patterns and the items of `with`, `only` and `unless` (DESIGN 3.3).

use super::Glob;
use std::fmt;

/// Most words that may follow the program in a pattern, and so the number of positions in
/// the Cedar context.
pub const MAX_WORDS: usize = 16;

/// A pattern of shell words behind a program.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CommandPattern {
    /// Alternatives for the program's base name; at least one, sorted.
    pub programs: Vec<Glob>,
    /// Alternatives for each further word, sorted; at most [`MAX_WORDS`] words.
    pub words: Vec<Vec<Glob>>,
    /// Whether any further arguments may follow (`**`).
    pub rest: bool,
}

impl CommandPattern {
    /// The programs, when each of them is a plain name.
    pub fn literal_programs(&self) -> Option<Vec<&str>> {
        self.programs.iter().map(Glob::as_literal).collect()
    }
}

/// One item of a `with`, `only` or `unless` list.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Item {
    /// `--name`: that long option, with or without `=value`.
    Long(String),
    /// `-x`: that letter in a cluster of short options.
    Short(char),
    /// `-word`: a single-dash long option for programs that have such, else all its letters.
    Dashed(String),
    /// Any argument that matches; wildcards only at the ends.
    Argument(Glob),
}

impl Item {
    /// Whether it speaks of an option rather than of an argument's text.
    pub const fn is_option(&self) -> bool {
        !matches!(self, Item::Argument(_))
    }

    /// The argument that it speaks of, if it is no option.
    pub const fn as_argument(&self) -> Option<&Glob> {
        match self {
            Item::Argument(glob) => Some(glob),
            _ => None,
        }
    }
}

impl fmt::Display for Item {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Item::Long(name) => write!(f, "--{name}"),
            Item::Short(letter) => write!(f, "-{letter}"),
            Item::Dashed(word) => write!(f, "-{word}"),
            Item::Argument(glob) => write!(f, "{glob}"),
        }
    }
}

fn alternatives(f: &mut fmt::Formatter<'_>, globs: &[Glob]) -> fmt::Result {
    if let [only] = globs {
        return if only.as_literal() == Some("") { f.write_str("''") } else { write!(f, "{only}") };
    }
    f.write_str("{")?;
    for (index, glob) in globs.iter().enumerate() {
        if index > 0 {
            f.write_str(",")?;
        }
        write!(f, "{glob}")?;
    }
    f.write_str("}")
}

impl fmt::Display for CommandPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        alternatives(f, &self.programs)?;
        for word in &self.words {
            f.write_str(" ")?;
            alternatives(f, word)?;
        }
        if self.rest { f.write_str(" **") } else { Ok(()) }
    }
}
