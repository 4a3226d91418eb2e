//! A text with `*`: the one wildcard that Cedar's `like` and a word of a pattern share.

/// A part of a [`Glob`].
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Piece {
    /// These characters.
    Text(String),
    /// Any characters, none included.
    Any,
}

/// A word with wildcards. Adjacent wildcards are one, so equal globs compare equal.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Glob {
    pieces: Vec<Piece>,
}

impl Glob {
    /// Builds a glob, merging neighbours of the same kind.
    pub fn new(pieces: impl IntoIterator<Item = Piece>) -> Self {
        let mut merged: Vec<Piece> = Vec::new();
        for piece in pieces {
            match (merged.last_mut(), piece) {
                (Some(Piece::Any), Piece::Any) => {}
                (Some(Piece::Text(text)), Piece::Text(more)) => text.push_str(&more),
                (_, Piece::Text(text)) if text.is_empty() => {}
                (_, piece) => merged.push(piece),
            }
        }
        Glob { pieces: merged }
    }

    /// The glob in which every `*` of `text` is a wildcard and nothing else is special.
    pub fn from_stars(text: &str) -> Self {
        Glob::new(text.split_inclusive('*').flat_map(|part| {
            let text = Piece::Text(part.trim_end_matches('*').to_owned());
            [Some(text), part.ends_with('*').then_some(Piece::Any)].into_iter().flatten()
        }))
    }

    /// The glob that matches exactly `text`.
    pub fn literal(text: &str) -> Self {
        Glob::new([Piece::Text(text.to_owned())])
    }

    /// The glob that matches everything.
    pub fn any() -> Self {
        Glob::new([Piece::Any])
    }

    /// Its parts; no two neighbours are of the same kind, no text is empty.
    pub fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    /// The text, when there is no wildcard.
    pub fn as_literal(&self) -> Option<&str> {
        match self.pieces.as_slice() {
            [] => Some(""),
            [Piece::Text(text)] => Some(text),
            _ => None,
        }
    }

    /// Whether it is a lone `*`.
    pub fn is_any(&self) -> bool {
        self.pieces == [Piece::Any]
    }

    /// Whether it has no wildcard, or only at its ends. Such a glob can be looked for in a
    /// joined line without reaching over the end of an argument.
    pub fn wildcards_only_at_ends(&self) -> bool {
        self.pieces.iter().filter(|p| matches!(p, Piece::Text(_))).count() <= 1
    }

    /// Whether `text` as a whole matches.
    pub fn matches(&self, text: &str) -> bool {
        let mut rest = text;
        let mut after_any = false;
        let last = self.pieces.len().saturating_sub(1);
        for (index, piece) in self.pieces.iter().enumerate() {
            match piece {
                Piece::Any => after_any = true,
                Piece::Text(want) if after_any && index == last => return rest.ends_with(want.as_str()),
                Piece::Text(want) if after_any => match rest.find(want.as_str()) {
                    // The leftmost place is best: it leaves most for what follows.
                    Some(at) => {
                        rest = rest.get(at + want.len()..).unwrap_or("");
                        after_any = false;
                    }
                    None => return false,
                },
                Piece::Text(want) => match rest.strip_prefix(want.as_str()) {
                    Some(left) => rest = left,
                    None => return false,
                },
            }
        }
        after_any || rest.is_empty()
    }

    /// Whether every text that it matches is one that `other` matches.
    pub fn is_within(&self, other: &Glob) -> bool {
        // A character that stands in no text of `other` can only be met by a wildcard there, and
        // what a wildcard meets may be anything.
        let texts = || {
            other.pieces.iter().filter_map(|piece| match piece {
                Piece::Text(text) => Some(text.as_str()),
                Piece::Any => None,
            })
        };
        let Some(fresh) = ('\u{1}'..=char::MAX).find(|c| !texts().any(|text| text.contains(*c))) else { return false };
        let sample: String = self.pieces.iter().fold(String::new(), |mut sample, piece| {
            match piece {
                Piece::Text(text) => sample.push_str(text),
                Piece::Any => sample.push(fresh),
            }
            sample
        });
        other.matches(&sample)
    }
}

impl std::fmt::Display for Glob {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for piece in &self.pieces {
            match piece {
                Piece::Any => f.write_str("*")?,
                Piece::Text(text) => {
                    for c in text.chars() {
                        if matches!(c, '*' | '{' | '}' | '\\' | '\'' | '"' | ' ' | '?' | '[') {
                            f.write_str("\\")?;
                        }
                        write!(f, "{c}")?;
                    }
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matches_whole_text() {
        for (pattern, text, want) in [
            ("", "", true),
            ("a", "a", true),
            ("a", "ab", false),
            ("*", "", true),
            ("a*", "a", true),
            ("*a", "ba", true),
            ("*a", "ab", false),
            ("a*a", "a", false),
            ("a*a", "aa", true),
            ("*ab*ab", "abab", true),
            ("*ab*ab", "ab", false),
            ("a*b*c", "abbbc", true),
            ("a**b", "axb", true),
        ] {
            assert_eq!(Glob::from_stars(pattern).matches(text), want, "{pattern} {text}");
        }
    }
}
