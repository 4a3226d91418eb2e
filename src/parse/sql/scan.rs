//! A file of SQL as the statements that are applied.
//!
//! Owns what `psql` and the migration tools decide before any grammar: where a statement ends,
//! what is a quote or a comment, which part is for undoing, what a template stands for. It
//! knows no statement. Everything keeps its place: what the grammar cannot read is replaced by
//! as many bytes.

use std::ops::Range;

/// A piece of a file: one statement with what stands before it.
#[derive(Debug, Default)]
pub(super) struct Chunk {
    /// The statement with the comments before it, in bytes of the file.
    pub(super) range: Range<usize>,
    /// Where the statement itself begins; the end of `range` where there is only a comment.
    pub(super) start: usize,
    /// The text of `range` as the grammar gets it, of the same length.
    pub(super) clean: String,
    /// Comments in `range`, before and inside the statement.
    pub(super) comments: Vec<Range<usize>>,
    /// Words of the statement outside of quotes, in lower case, with where they stand; texts in
    /// quotes as [`Word::Text`].
    pub(super) words: Vec<Word>,
    /// Whether it stands in a condition of a template.
    pub(super) conditional: bool,
    /// The commands of psql in it.
    pub(super) meta: Vec<Range<usize>>,
}

/// A piece of a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Word {
    /// A word outside of quotes, in lower case.
    Plain(String),
    /// A text or body in quotes, as its range in the file.
    Text(Range<usize>),
    /// A name in quotes.
    Quoted,
    /// Any other sign.
    Sign(u8),
}

/// Parts that a tool applies only to undo.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    Up,
    Down,
}

struct Scanner<'t> {
    text: &'t str,
    bytes: &'t [u8],
    at: usize,
    clean: Vec<u8>,
    chunks: Vec<Chunk>,
    chunk: Chunk,
    from: usize,
    direction: Direction,
    /// Open conditions of a template.
    conditions: usize,
    parens: usize,
    /// Open `BEGIN ATOMIC` and `CASE` of a routine's body.
    blocks: usize,
}

/// Takes a file apart. Parts for undoing are left out.
pub(super) fn chunks(text: &str) -> Vec<Chunk> {
    let mut scanner = Scanner {
        text,
        bytes: text.as_bytes(),
        at: 0,
        clean: text.as_bytes().to_vec(),
        chunks: Vec::new(),
        chunk: Chunk::default(),
        from: 0,
        direction: Direction::Up,
        conditions: 0,
        parens: 0,
        blocks: 0,
    };
    scanner.run();
    scanner.chunks
}

/// Whether a byte may continue a name outside of quotes.
pub(super) const fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$' || byte >= 0x80
}

impl Scanner<'_> {
    fn byte(&self, at: usize) -> u8 {
        self.bytes.get(at).copied().unwrap_or(0)
    }

    fn starts(&self, with: &str) -> bool {
        self.bytes.get(self.at..).is_some_and(|rest| rest.starts_with(with.as_bytes()))
    }

    fn run(&mut self) {
        while self.at < self.bytes.len() {
            self.step();
        }
        self.end(self.bytes.len());
    }

    fn step(&mut self) {
        let byte = self.byte(self.at);
        match byte {
            b'-' if self.starts("--") => self.line_comment(),
            b'/' if self.starts("/*") => self.block_comment(),
            b'\'' => self.quote(b'\'', false),
            b'"' => self.quoted_name(),
            b'{' if self.starts("{{") => self.template(),
            b'$' if self.byte(self.at + 1) == b'{' => self.placeholder(),
            b'$' if self.dollar() => {}
            b'\\' => self.meta(),
            b';' if self.parens == 0 && self.blocks == 0 => {
                self.at += 1;
                self.end(self.at);
                self.copied_rows();
            }
            _ if byte.is_ascii_whitespace() => self.at += 1,
            _ if is_name(byte) => self.word(),
            _ => {
                self.open();
                match byte {
                    b'(' => self.parens += 1,
                    b')' => self.parens = self.parens.saturating_sub(1),
                    _ => {}
                }
                self.chunk.words.push(Word::Sign(byte));
                self.at += 1;
            }
        }
    }

    /// The statement begins here, if it has not begun.
    fn open(&mut self) {
        if self.chunk.start == 0 {
            self.chunk.start = self.at + 1;
        }
        self.chunk.conditional |= self.conditions > 0;
    }

    /// The statement ends before `to`.
    fn end(&mut self, to: usize) {
        let mut chunk = std::mem::take(&mut self.chunk);
        let range = self.from..to;
        self.from = to;
        (self.parens, self.blocks) = (0, 0);
        let empty = chunk.start == 0 && chunk.comments.is_empty() && chunk.meta.is_empty();
        if empty || self.direction == Direction::Down {
            return;
        }
        chunk.start = if chunk.start == 0 { range.end } else { chunk.start - 1 };
        let clean = self.clean.get(range.clone()).unwrap_or_default();
        chunk.clean = String::from_utf8_lossy(clean).into_owned();
        chunk.range = range;
        self.chunks.push(chunk);
    }

    fn blank(&mut self, range: Range<usize>) {
        for byte in self.clean.get_mut(range).into_iter().flatten().filter(|byte| **byte != b'\n') {
            *byte = b' ';
        }
    }

    fn line_comment(&mut self) {
        let rest = self.text.get(self.at..).unwrap_or("");
        let line = rest.lines().next().unwrap_or("");
        let range = self.at..self.at + line.len();
        if let Some(part) = part(line) {
            // What was said before the line belongs to the part before it.
            self.end(self.at);
            match part {
                Part::Up => self.direction = Direction::Up,
                Part::Down => self.direction = Direction::Down,
                Part::Same => {}
            }
            self.at = range.end;
            self.from = range.end;
            return;
        }
        self.at = range.end;
        self.chunk.comments.push(range);
    }

    fn block_comment(&mut self) {
        let (start, mut depth) = (self.at, 0_usize);
        while self.at < self.bytes.len() {
            if self.starts("/*") {
                depth += 1;
                self.at += 2;
            } else if self.starts("*/") {
                depth -= 1;
                self.at += 2;
                if depth == 0 {
                    break;
                }
            } else {
                self.at += 1;
            }
        }
        self.chunk.comments.push(start..self.at);
    }

    /// A text in quotes; `escapes`: a backslash takes the next sign with it.
    fn quote(&mut self, sign: u8, escapes: bool) {
        self.open();
        let start = self.at;
        self.at += 1;
        while self.at < self.bytes.len() {
            let byte = self.byte(self.at);
            let doubled = byte == sign && self.byte(self.at + 1) == sign;
            if doubled || escapes && byte == b'\\' {
                self.at += 2;
            } else if byte == sign {
                self.at += 1;
                break;
            } else {
                self.at += 1;
            }
        }
        self.at = self.at.min(self.bytes.len());
        if sign == b'\'' {
            self.chunk.words.push(Word::Text(start..self.at));
        } else {
            self.chunk.words.push(Word::Quoted);
        }
    }

    fn quoted_name(&mut self) {
        self.quote(b'"', false);
    }

    /// `$tag$ … $tag$`.
    fn dollar(&mut self) -> bool {
        let Some(rest) = self.text.get(self.at + 1..) else { return false };
        let Some(end) = rest.find('$') else { return false };
        let Some(tag) = rest.get(..end) else { return false };
        let good = tag.bytes().all(|b| is_name(b) && b != b'$') && !tag.starts_with(|c: char| c.is_ascii_digit());
        if !good {
            return false;
        }
        self.open();
        let delimiter = format!("${tag}$");
        let start = self.at;
        let body = start + delimiter.len();
        let found = self.text.get(body..).and_then(|rest| rest.find(&delimiter));
        self.at = found.map_or(self.bytes.len(), |at| body + at + delimiter.len());
        self.chunk.words.push(Word::Text(start..self.at));
        true
    }

    /// `{{ … }}` stands for a part of a name; a condition, a loop or a comment for nothing.
    fn template(&mut self) {
        let start = self.at;
        let rest = self.text.get(start..).unwrap_or("");
        let length = rest.find("}}").map_or(rest.len(), |at| at + 2);
        self.at = start + length;
        let inner = rest.get(2..length.saturating_sub(2)).unwrap_or("").trim_matches(['-', ' ', '\t', '\n', '\r']);
        let first = inner.split([' ', '\t', '\n']).next().unwrap_or("");
        match first {
            _ if inner.starts_with("/*") => self.blank(start..start + length),
            "if" | "range" | "with" | "define" | "block" => {
                self.conditions += 1;
                self.chunk.conditional |= self.chunk.start != 0;
                self.blank(start..start + length);
            }
            "else" => self.blank(start..start + length),
            "end" => {
                self.conditions = self.conditions.saturating_sub(1);
                self.blank(start..start + length);
            }
            _ => self.stand_in(start),
        }
    }

    /// `${name}` of Flyway and goose.
    fn placeholder(&mut self) {
        let start = self.at;
        let rest = self.text.get(start..).unwrap_or("");
        self.at = start + rest.find('}').map_or(rest.len(), |at| at + 1);
        self.stand_in(start);
    }

    /// Letters in the place of what a template will put there.
    fn stand_in(&mut self, start: usize) {
        let end = std::mem::replace(&mut self.at, start);
        self.open();
        self.at = end;
        for byte in self.clean.get_mut(start..end).into_iter().flatten() {
            *byte = b'x';
        }
        // It is one word with what stands beside it.
        let beside = start > 0 && is_name(self.byte(start - 1));
        if beside && matches!(self.chunk.words.last(), Some(Word::Plain(_))) {
            return;
        }
        self.chunk.words.push(Word::Plain("{{}}".to_owned()));
    }

    /// A command of psql: to the end of the line.
    fn meta(&mut self) {
        let start = self.at;
        let rest = self.text.get(start..).unwrap_or("");
        self.at = start + rest.find('\n').unwrap_or(rest.len());
        self.blank(start..self.at);
        self.chunk.meta.push(start..self.at);
        // Such as stand alone end no statement; such as stand behind one run it.
        let line_start = self.text.get(..start).and_then(|before| before.rfind('\n')).map_or(0, |at| at + 1);
        if self.chunk.start == 0 || self.chunk.start > line_start {
            self.end(self.at);
        }
    }

    fn word(&mut self) {
        let start = self.at;
        while is_name(self.byte(self.at)) && !(self.byte(self.at) == b'$' && self.byte(self.at + 1) == b'{') {
            self.at += 1;
        }
        let end = std::mem::replace(&mut self.at, start);
        self.open();
        self.at = end;
        let word = self.text.get(start..end).unwrap_or("").to_ascii_lowercase();
        if word == "e" && self.byte(end) == b'\'' {
            self.quote(b'\'', true);
            return;
        }
        let routine = self.blocks > 0 || self.begins_routine();
        match word.as_str() {
            "atomic" if routine && self.chunk.words.last() == Some(&Word::Plain("begin".into())) => self.blocks += 1,
            "case" if self.blocks > 0 => self.blocks += 1,
            "end" if self.blocks > 0 => self.blocks -= 1,
            _ => {}
        }
        self.chunk.words.push(Word::Plain(word));
    }

    fn begins_routine(&self) -> bool {
        let words = self.chunk.words.iter().take(4).filter_map(|word| match word {
            Word::Plain(word) => Some(word.as_str()),
            _ => None,
        });
        let words: Vec<&str> = words.collect();
        words.first() == Some(&"create") && words.iter().any(|w| matches!(*w, "function" | "procedure"))
    }

    /// The rows behind `COPY … FROM stdin;`, up to a line `\.`.
    fn copied_rows(&mut self) {
        let Some(last) = self.chunks.last() else { return };
        let plain = |word: &Word, text: &str| matches!(word, Word::Plain(w) if w == text);
        let copies = last.words.first().is_some_and(|w| plain(w, "copy"))
            && last.words.windows(2).any(|pair| matches!(pair, [a, b] if plain(a, "from") && plain(b, "stdin")));
        if !copies {
            return;
        }
        let rest = self.text.get(self.at..).unwrap_or("");
        let end = rest.find("\n\\.").map_or(rest.len(), |at| at + 3);
        self.at += end;
        self.from = self.at;
    }
}

/// What a line of a tool says of what follows.
enum Part {
    Up,
    Down,
    /// It only parts statements.
    Same,
}

fn part(line: &str) -> Option<Part> {
    let words: Vec<String> =
        line.trim_start_matches('-').split_whitespace().take(2).map(str::to_ascii_lowercase).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["+goose" | "+migrate", "up"] | ["migrate:up", ..] => Some(Part::Up),
        ["+goose" | "+migrate", "down"] | ["migrate:down", ..] => Some(Part::Down),
        ["+goose" | "+migrate", _] => Some(Part::Same),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn statements(text: &str) -> Vec<String> {
        chunks(text)
            .into_iter()
            .map(|c| text.get(c.start..c.range.end).unwrap().trim_end_matches(';').trim().to_owned())
            .filter(|t| !t.is_empty())
            .collect()
    }

    #[test]
    fn statements_end_where_the_server_ends_them() {
        for (text, count) in [
            ("a; b", 2),
            ("a ';' b; c", 2),
            ("a E'\\';' b; c", 2),
            ("a '\\'; c", 2),
            ("a $$ ; $$ b; c", 2),
            ("a $x$ ; $$ ; $x$; c", 2),
            ("a$x$b; c$x$;", 2),
            ("a /* ; /* ; */ ; */ b; c", 2),
            ("a -- ;\n b; c", 2),
            ("a \";\" b; c", 2),
            ("create rule r do (a; b); c", 2),
            ("create function f() begin atomic a; select case when b then c end; end; d", 2),
            ("create or replace procedure p() begin atomic a; end", 1),
            ("begin; a; end; b", 4),
            ("copy t from stdin;\n1;2\n\\.\nb;", 2),
        ] {
            assert_eq!(statements(text).len(), count, "{text}: {:?}", statements(text));
        }
    }

    #[test]
    fn what_undoes_is_left_out() {
        let text = "-- +goose Up\na;\n-- +goose StatementBegin\nb; c\n-- +goose StatementEnd\n-- +goose Down\nd;\n";
        assert_eq!(statements(text), ["a", "b", "c"]);
        assert_eq!(statements("-- migrate:up\na;\n-- migrate:down\nb;"), ["a"]);
        assert_eq!(statements("-- +migrate Down\na;\n-- +migrate Up\nb;"), ["b"]);
    }

    #[test]
    fn templates_keep_their_place() {
        let text = "create table {{ .P }}_a (id ${t}); {{ if .X }} drop table b; {{ end }} c";
        let found = chunks(text);
        assert_eq!(found[0].clean, "create table xxxxxxxx_a (id xxxx);");
        assert_eq!(found.iter().map(|c| c.conditional).collect::<Vec<_>>(), [false, true, false]);
        assert!(chunks("select '{{1,2}}'; \"{{ .A }}\"").iter().all(|c| !c.clean.contains('x')));
    }
}
