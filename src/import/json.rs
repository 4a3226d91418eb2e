//! JSON as settings files hold it: comments, commas before a closing bracket, keys in order.
//!
//! Reads into a tree with spans. Keys that stand twice are kept both, in order; what that means
//! is the format's business.

use super::{Problem, unreadable};
use crate::source::{FileId, Span};

/// Deepest nesting that is read.
const MAX_DEPTH: usize = 64;

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Kind {
    Null,
    Bool(bool),
    /// A number, as written.
    Number(String),
    Text(String),
    List(Vec<Node>),
    Map(Vec<(String, Node)>),
}

/// A value and where it stands.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Node {
    pub(super) kind: Kind,
    pub(super) span: Span,
}

impl Node {
    /// The last value of a key, as readers of JSON take it.
    pub(super) fn get(&self, key: &str) -> Option<&Node> {
        match &self.kind {
            Kind::Map(entries) => entries.iter().rev().find(|(name, _)| name == key).map(|(_, node)| node),
            _ => None,
        }
    }

    /// The value at a path of keys.
    pub(super) fn at(&self, path: &[&str]) -> Option<&Node> {
        path.iter().try_fold(self, |node, key| node.get(key))
    }

    pub(super) fn text(&self) -> Option<&str> {
        match &self.kind {
            Kind::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(super) fn entries(&self) -> &[(String, Node)] {
        match &self.kind {
            Kind::Map(entries) => entries,
            _ => &[],
        }
    }

    /// The texts of a list.
    ///
    /// # Errors
    ///
    /// It is no list of texts.
    pub(super) fn texts(&self, what: &str) -> Result<Vec<(&str, Span)>, Problem> {
        let Kind::List(items) = &self.kind else {
            return Err(unreadable(self.span, format!("{what} is no list"), "write a list of texts"));
        };
        items
            .iter()
            .map(|item| {
                let text = item.text().ok_or_else(|| {
                    unreadable(item.span, format!("an entry of {what} is no text"), "write it in quotes")
                })?;
                Ok((text, item.span))
            })
            .collect()
    }
}

struct Reader<'a> {
    file: FileId,
    text: &'a str,
    at: usize,
}

/// Reads a file.
///
/// # Errors
///
/// Where the text stops being JSON.
pub(super) fn read(file: FileId, text: &str) -> Result<Node, Problem> {
    let mut reader = Reader { file, text, at: 0 };
    reader.blank()?;
    let node = reader.value(0)?;
    reader.blank()?;
    if reader.at < text.len() {
        Err(reader.fail("something stands behind the end of the JSON value"))
    } else {
        Ok(node)
    }
}

impl Reader<'_> {
    fn rest(&self) -> &str {
        self.text.get(self.at..).unwrap_or("")
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn fail(&self, message: &str) -> Problem {
        let end = self.at + self.peek().map_or(0, char::len_utf8);
        let span = Span::new(self.file, self.at, end);
        unreadable(span, format!("this is no JSON: {message}"), "comments and commas before a closing bracket are fine")
    }

    /// Goes over blanks and comments.
    fn blank(&mut self) -> Result<(), Problem> {
        loop {
            let rest = self.rest();
            let skipped = if rest.starts_with(|c: char| c.is_whitespace() || c == '\u{feff}') {
                rest.len() - rest.trim_start_matches(|c: char| c.is_whitespace() || c == '\u{feff}').len()
            } else if rest.starts_with("//") {
                rest.find('\n').unwrap_or(rest.len())
            } else if rest.starts_with("/*") {
                rest.find("*/").ok_or_else(|| self.fail("a comment without its end"))? + 2
            } else {
                return Ok(());
            };
            self.at += skipped;
        }
    }

    fn take(&mut self, c: char) -> bool {
        let found = self.peek() == Some(c);
        if found {
            self.at += c.len_utf8();
        }
        found
    }

    fn value(&mut self, depth: usize) -> Result<Node, Problem> {
        if depth > MAX_DEPTH {
            return Err(self.fail("it is nested too deep"));
        }
        let start = self.at;
        let kind = match self.peek() {
            Some('{') => self.map(depth)?,
            Some('[') => self.list(depth)?,
            Some('"') => Kind::Text(self.string()?),
            _ => self.word()?,
        };
        Ok(Node { kind, span: Span::new(self.file, start, self.at) })
    }

    fn word(&mut self) -> Result<Kind, Problem> {
        let end =
            self.rest().find(|c: char| !(c.is_ascii_alphanumeric() || "+-.".contains(c))).unwrap_or(self.rest().len());
        let word = self.rest().get(..end).unwrap_or("").to_owned();
        let kind = match word.as_str() {
            "null" => Kind::Null,
            "true" => Kind::Bool(true),
            "false" => Kind::Bool(false),
            word if word.parse::<f64>().is_ok() && word.starts_with(|c: char| c == '-' || c.is_ascii_digit()) => {
                Kind::Number(word.to_owned())
            }
            _ => return Err(self.fail("a value is expected here")),
        };
        self.at += end;
        Ok(kind)
    }

    fn list(&mut self, depth: usize) -> Result<Kind, Problem> {
        let mut items = Vec::new();
        self.take('[');
        loop {
            self.blank()?;
            if self.take(']') {
                return Ok(Kind::List(items));
            }
            items.push(self.value(depth + 1)?);
            self.blank()?;
            if !self.take(',') && self.peek() != Some(']') {
                return Err(self.fail("`,` or `]` is expected here"));
            }
        }
    }

    fn map(&mut self, depth: usize) -> Result<Kind, Problem> {
        let mut entries = Vec::new();
        self.take('{');
        loop {
            self.blank()?;
            if self.take('}') {
                return Ok(Kind::Map(entries));
            }
            if self.peek() != Some('"') {
                return Err(self.fail("a key in quotes or `}` is expected here"));
            }
            let key = self.string()?;
            self.blank()?;
            if !self.take(':') {
                return Err(self.fail("`:` is expected here"));
            }
            self.blank()?;
            entries.push((key, self.value(depth + 1)?));
            self.blank()?;
            if !self.take(',') && self.peek() != Some('}') {
                return Err(self.fail("`,` or `}` is expected here"));
            }
        }
    }

    fn string(&mut self) -> Result<String, Problem> {
        self.take('"');
        let mut out = String::new();
        loop {
            let Some(c) = self.peek().filter(|c| *c != '\n') else {
                return Err(self.fail("a text without its end"));
            };
            self.at += c.len_utf8();
            match c {
                '"' => return Ok(out),
                '\\' => out.push(self.escape()?),
                c => out.push(c),
            }
        }
    }

    fn escape(&mut self) -> Result<char, Problem> {
        let Some(c) = self.peek() else { return Err(self.fail("a text without its end")) };
        self.at += c.len_utf8();
        Ok(match c {
            'n' => '\n',
            't' => '\t',
            'r' => '\r',
            'b' => '\u{8}',
            'f' => '\u{c}',
            '"' | '\\' | '/' => c,
            'u' => {
                let first = self.unit()?;
                if (0xd800..0xdc00).contains(&first) && self.rest().starts_with("\\u") {
                    self.at += 2;
                    let second = self.unit()?;
                    let code = 0x10000 + ((first - 0xd800) << 10) + second.wrapping_sub(0xdc00);
                    char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER)
                } else {
                    char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER)
                }
            }
            _ => return Err(self.fail("an escape that JSON does not have")),
        })
    }

    fn unit(&mut self) -> Result<u32, Problem> {
        let code = self.rest().get(..4).and_then(|hex| u32::from_str_radix(hex, 16).ok());
        let code = code.ok_or_else(|| self.fail("four hexadecimal digits are expected here"))?;
        self.at += 4;
        Ok(code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::SourceMap;

    fn parse(text: &str) -> Result<Node, Problem> {
        let mut map = SourceMap::new();
        let file = map.add("a.json", None, text);
        read(file, map.text(file))
    }

    #[test]
    fn comments_and_last_commas_are_read() {
        let node = parse("// x\n{ \"a\": [1, \"b\\u00e9\\n\", /* y */ true,], \"a\": null, }").unwrap();
        assert_eq!(node.entries().len(), 2);
        assert_eq!(node.get("a").unwrap().kind, Kind::Null, "the last one counts");
        let Kind::List(items) = &node.entries()[0].1.kind else { panic!() };
        assert_eq!(items[1].text(), Some("bé\n"));
        assert_eq!(parse("\"\\ud83d\\ude00\"").unwrap().text(), Some("😀"));
    }

    #[test]
    fn what_is_no_json_is_refused() {
        for bad in
            ["", "{", "[1", "{a: 1}", "{\"a\" 1}", "[1 2]", "nul", "\"a", "/* ", "{} {}", "\"\\x\"", "'a'", "[,]"]
        {
            assert!(parse(bad).is_err(), "{bad}");
        }
        assert!(parse(&"[".repeat(100)).is_err());
    }
}
