//! Loading: bytes with size caps, positions, and the two places policy can come from.
//!
//! Owns the source map (every text that a finding may point into), the directory reader, the
//! git reader and the reader of a range of commits. It hands out text exactly as it was read; it never interprets it, and
//! never cuts: what is over a cap is an error.

mod git;
mod history;
mod objects;
mod tree;

pub use git::GitTree;
pub use history::{Commit, CommitTree, History, MAX_COMMITS};
pub use tree::{DirTree, SourceError, Tree, is_plain_relative};

/// Largest policy file that is read, in bytes. Over it is an error, never a cut.
pub const MAX_FILE_BYTES: usize = 4 * 1024 * 1024;
/// Largest number of files in one policy set.
pub const MAX_FILES: usize = 1024;

/// Whether a character cannot be seen or changes what is seen around it: control characters,
/// bidirectional controls (UAX 9), zero-width and other format characters, tag characters.
pub const fn is_unseen(c: char) -> bool {
    matches!(c,
        '\u{0}'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{ad}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{180e}'
        | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{feff}'
        | '\u{ffa0}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// Index of a text in a [`SourceMap`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileId(u32);

/// A half-open range of bytes in one text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span {
    /// The text.
    pub file: FileId,
    /// First byte.
    pub start: usize,
    /// One past the last byte.
    pub end: usize,
}

impl Span {
    /// The bytes `start..end` of `file`.
    pub const fn new(file: FileId, start: usize, end: usize) -> Self {
        Span { file, start, end }
    }
}

/// One text with its name.
#[derive(Clone, Debug)]
pub struct SourceFile {
    /// Path relative to the policy root, with `/`.
    pub name: String,
    /// Where it came from when that is not the working tree, e.g. `HEAD~1`.
    pub origin: Option<String>,
    /// The text, without a leading byte order mark.
    pub text: String,
    line_starts: Vec<usize>,
}

impl SourceFile {
    /// Name as shown to people: `SUDO.md`, or `HEAD~1:SUDO.md`.
    pub fn display_name(&self) -> String {
        match &self.origin {
            Some(origin) => format!("{origin}:{}", self.name),
            None => self.name.clone(),
        }
    }

    /// 1-based line and column (in characters) of a byte offset.
    pub fn position(&self, offset: usize) -> (usize, usize) {
        let line = self.line_starts.partition_point(|&start| start <= offset);
        let start = self.line_starts.get(line.saturating_sub(1)).copied().unwrap_or(0);
        let column = self.text.get(start..offset.min(self.text.len())).map_or(0, |s| s.chars().count());
        (line.max(1), column + 1)
    }
}

/// Every text that findings of one run may point into.
#[derive(Clone, Debug, Default)]
pub struct SourceMap {
    files: Vec<SourceFile>,
}

impl SourceMap {
    /// An empty map.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a text; a leading byte order mark is not part of it.
    pub fn add(&mut self, name: &str, origin: Option<&str>, text: &str) -> FileId {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text).to_owned();
        let mut line_starts = vec![0];
        line_starts.extend(text.match_indices('\n').map(|(at, _)| at + 1));
        let id = FileId(u32::try_from(self.files.len()).unwrap_or(u32::MAX));
        self.files.push(SourceFile { name: name.to_owned(), origin: origin.map(str::to_owned), text, line_starts });
        id
    }

    /// Every file, in the order in which they were added.
    pub fn files(&self) -> impl Iterator<Item = &SourceFile> {
        self.files.iter()
    }

    /// Their ids, in the same order.
    pub fn ids(&self) -> impl Iterator<Item = FileId> + use<> {
        (0..u32::try_from(self.files.len()).unwrap_or(u32::MAX)).map(FileId)
    }

    /// The file with this id, if it is of this map.
    pub fn get(&self, id: FileId) -> Option<&SourceFile> {
        self.files.get(id.0 as usize)
    }

    /// The text of a file; empty when the id is of another map.
    pub fn text(&self, id: FileId) -> &str {
        self.get(id).map_or("", |file| file.text.as_str())
    }

    /// `SUDO.md:41` for the start of a span.
    pub fn line_ref(&self, span: Span) -> String {
        match self.get(span.file) {
            Some(file) => format!("{}:{}", file.display_name(), file.position(span.start).0),
            None => "?".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_count_lines_and_characters_from_one() {
        let mut map = SourceMap::new();
        let id = map.add("a", None, "\u{feff}aé\r\nbc\n");
        let file = map.get(id).unwrap();
        assert_eq!(file.position(0), (1, 1));
        assert_eq!(file.position(3), (1, 3), "é is one column");
        assert_eq!(file.position(5), (2, 1));
        assert_eq!(file.position(8), (3, 1));
        assert_eq!(map.line_ref(Span::new(id, 6, 7)), "a:2");
    }
}
