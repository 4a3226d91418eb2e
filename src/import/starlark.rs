//! The part of Starlark in which rules are written: calls with literal arguments, and names for literals.
//!
//! Real files hold calls, comments, and now and then a list that several calls share. Whatever needs
//! evaluation (functions, loops, conditions, `load`) is refused: what was not read may forbid.

use std::collections::BTreeMap;

use super::{Problem, unreadable};
use crate::source::{FileId, Span};

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    Text(String),
    List(Vec<Node>),
    /// `None`, `True`, `False` or a number.
    Other,
}

/// A value and where it stands.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Node {
    pub(super) value: Value,
    pub(super) span: Span,
}

/// A call on its own line.
#[derive(Clone, Debug)]
pub(super) struct Call {
    pub(super) function: String,
    /// By name, in order; by position, the name is empty.
    pub(super) arguments: Vec<(String, Node)>,
    pub(super) span: Span,
}

impl Call {
    /// The argument of a name, or at a position.
    pub(super) fn get(&self, name: &str, position: usize) -> Option<&Node> {
        let named = self.arguments.iter().find(|(own, _)| own == name);
        let placed = || self.arguments.get(position).filter(|(own, _)| own.is_empty());
        named.or_else(placed).map(|(_, node)| node)
    }
}

#[derive(Clone, Debug, PartialEq)]
enum Token {
    Name(String),
    Text(String),
    Number,
    Sign(char),
    End,
}

/// Reads a file.
///
/// # Errors
///
/// The first thing that is no call with literal arguments.
pub(super) fn read(file: FileId, text: &str) -> Result<Vec<Call>, Problem> {
    let tokens = tokens(file, text)?;
    let mut reader =
        Reader { tokens: &tokens, at: 0, names: BTreeMap::new(), end: Span::new(file, text.len(), text.len()) };
    let mut calls = Vec::new();
    while reader.at < tokens.len() {
        if !reader.take(&Token::End) {
            calls.extend(reader.statement()?);
        }
    }
    Ok(calls)
}

fn fail(span: Span, message: impl Into<String>) -> Problem {
    unreadable(
        span,
        message,
        "only calls with literal arguments are read: write the rules out, or import what the file evaluates to",
    )
}

fn tokens(file: FileId, text: &str) -> Result<Vec<(Token, Span)>, Problem> {
    let mut out: Vec<(Token, Span)> = Vec::new();
    let mut depth = 0_usize;
    let mut at = 0;
    while let Some(c) = text.get(at..).and_then(|rest| rest.chars().next()) {
        let rest = text.get(at..).unwrap_or("");
        let (token, taken) = match c {
            '\n' | ';' => ((depth == 0).then_some(Token::End), 1),
            '\\' if rest.starts_with("\\\n") => (None, 2),
            c if c.is_whitespace() => (None, c.len_utf8()),
            '#' => (None, rest.find('\n').unwrap_or(rest.len())),
            '"' | '\'' => string(file, at, rest, false)?,
            'r' if rest.starts_with("r\"") || rest.starts_with("r'") => {
                let (token, taken) = string(file, at + 1, rest.get(1..).unwrap_or(""), true)?;
                (token, taken + 1)
            }
            c if c.is_alphabetic() || c == '_' => {
                let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
                (Some(Token::Name(rest.get(..end).unwrap_or("").to_owned())), end)
            }
            c if c.is_ascii_digit() => {
                let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '.').unwrap_or(rest.len());
                (Some(Token::Number), end)
            }
            '(' | '[' => {
                depth += 1;
                (Some(Token::Sign(c)), 1)
            }
            ')' | ']' => {
                depth = depth.saturating_sub(1);
                (Some(Token::Sign(c)), 1)
            }
            c => (Some(Token::Sign(c)), c.len_utf8()),
        };
        let span = Span::new(file, at, at + taken);
        out.extend(token.map(|token| (token, span)));
        at += taken;
    }
    Ok(out)
}

/// A text in quotes of any kind, and how many bytes it took.
fn string(file: FileId, at: usize, rest: &str, raw: bool) -> Result<(Option<Token>, usize), Problem> {
    let quote = rest.get(..1).unwrap_or("\"");
    let triple = quote.repeat(3);
    let mark = if rest.starts_with(&triple) { triple.as_str() } else { quote };
    let mut out = String::new();
    let mut chars = rest.char_indices().skip(mark.len());
    while let Some((index, c)) = chars.next() {
        if rest.get(index..).is_some_and(|tail| tail.starts_with(mark)) {
            return Ok((Some(Token::Text(out)), index + mark.len()));
        }
        match c {
            '\\' if !raw => match chars.next() {
                Some((_, 'n')) => out.push('\n'),
                Some((_, 't')) => out.push('\t'),
                Some((_, 'r')) => out.push('\r'),
                Some((_, '\n')) => {}
                Some((_, c)) if "\\'\"".contains(c) => out.push(c),
                _ => return Err(fail(Span::new(file, at + index, at + index + 2), "an escape that is not read")),
            },
            '\n' if mark.len() == 1 => break,
            c => out.push(c),
        }
    }
    Err(fail(Span::new(file, at, at + 1), "a text without its end"))
}

struct Reader<'a> {
    tokens: &'a [(Token, Span)],
    at: usize,
    names: BTreeMap<String, Node>,
    end: Span,
}

impl Reader<'_> {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at).map(|(token, _)| token)
    }

    fn span(&self) -> Span {
        self.tokens.get(self.at).map_or(self.end, |(_, span)| *span)
    }

    fn take(&mut self, token: &Token) -> bool {
        let found = self.peek() == Some(token);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, sign: char) -> Result<(), Problem> {
        if self.take(&Token::Sign(sign)) {
            Ok(())
        } else {
            Err(fail(self.span(), format!("`{sign}` is expected here")))
        }
    }

    fn statement(&mut self) -> Result<Option<Call>, Problem> {
        let start = self.span();
        // A text alone is a remark.
        if let Some(Token::Text(_)) = self.peek() {
            self.at += 1;
            return self.ends().map(|()| None);
        }
        let Some(Token::Name(name)) = self.peek().cloned() else {
            return Err(fail(start, "a call is expected here"));
        };
        self.at += 1;
        if matches!(name.as_str(), "def" | "for" | "if" | "load" | "while" | "return" | "lambda") {
            return Err(fail(start, format!("`{name}` needs evaluation")));
        }
        if self.take(&Token::Sign('=')) {
            let node = self.value()?;
            self.names.insert(name, node);
            return self.ends().map(|()| None);
        }
        self.expect('(')?;
        let mut arguments = Vec::new();
        while !self.take(&Token::Sign(')')) {
            arguments.push(self.argument()?);
            if !self.take(&Token::Sign(',')) && self.peek() != Some(&Token::Sign(')')) {
                return Err(fail(self.span(), "`,` or `)` is expected here"));
            }
        }
        let end = self.tokens.get(self.at.saturating_sub(1)).map_or(start.end, |(_, span)| span.end);
        self.ends()?;
        Ok(Some(Call { function: name, arguments, span: Span::new(start.file, start.start, end) }))
    }

    fn ends(&mut self) -> Result<(), Problem> {
        if self.peek().is_none() || self.take(&Token::End) {
            Ok(())
        } else {
            Err(fail(self.span(), "the end of the line is expected here"))
        }
    }

    fn argument(&mut self) -> Result<(String, Node), Problem> {
        let named = match (self.peek(), self.tokens.get(self.at + 1)) {
            (Some(Token::Name(name)), Some((Token::Sign('='), _))) => Some(name.clone()),
            _ => None,
        };
        if named.is_some() {
            self.at += 2;
        }
        Ok((named.unwrap_or_default(), self.value()?))
    }

    /// A literal, a name of one, or several put together by `+`.
    fn value(&mut self) -> Result<Node, Problem> {
        let mut node = self.single()?;
        while self.take(&Token::Sign('+')) {
            let more = self.single()?;
            let end = more.span.end;
            node.value = match (node.value, more.value) {
                (Value::Text(a), Value::Text(b)) => Value::Text(a + &b),
                (Value::List(a), Value::List(b)) => Value::List(a.into_iter().chain(b).collect()),
                _ => return Err(fail(node.span, "`+` is read between two texts or two lists only")),
            };
            node.span.end = end.max(node.span.end);
        }
        Ok(node)
    }

    fn single(&mut self) -> Result<Node, Problem> {
        let span = self.span();
        let token = self.peek().cloned();
        self.at += 1;
        let value = match token {
            Some(Token::Text(text)) => Value::Text(text),
            Some(Token::Number) => Value::Other,
            Some(Token::Name(name)) if matches!(name.as_str(), "None" | "True" | "False") => Value::Other,
            Some(Token::Name(name)) if self.peek() != Some(&Token::Sign('(')) => match self.names.get(&name) {
                Some(node) => node.value.clone(),
                None => return Err(fail(span, format!("`{name}` has no value that can be read"))),
            },
            Some(Token::Sign(open @ ('[' | '('))) => {
                let close = if open == '[' { ']' } else { ')' };
                let mut items = Vec::new();
                while !self.take(&Token::Sign(close)) {
                    items.push(self.value()?);
                    if !self.take(&Token::Sign(',')) && self.peek() != Some(&Token::Sign(close)) {
                        return Err(fail(self.span(), format!("`,` or `{close}` is expected here")));
                    }
                }
                Value::List(items)
            }
            _ => return Err(fail(span, "a text or a list is expected here")),
        };
        let end = self.tokens.get(self.at.saturating_sub(1)).map_or(span.end, |(_, last)| last.end);
        Ok(Node { value, span: Span::new(span.file, span.start, end.max(span.end)) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::SourceMap;

    fn calls(text: &str) -> Result<Vec<Call>, Problem> {
        let mut map = SourceMap::new();
        let file = map.add("a.rules", None, text);
        read(file, map.text(file))
    }

    #[test]
    fn calls_with_literals_are_read() {
        let found = calls(
            "# x\n\"\"\"doc\"\"\"\nGIT = ['git']\nprefix_rule(\n  pattern = GIT + [[\"a\", 'b',], \"c\"],\n  decision=\"prompt\",\n)\nf(r'\\n', None)\n",
        )
        .unwrap();
        assert_eq!(found.len(), 2);
        let Value::List(items) = &found[0].get("pattern", 0).unwrap().value else { panic!() };
        assert_eq!(items.len(), 3);
        assert_eq!(found[1].get("x", 0).unwrap().value, Value::Text("\\n".into()));
    }

    #[test]
    fn what_needs_evaluation_is_refused() {
        for bad in [
            "def f():\n  pass\n",
            "for x in [1]: f(x)\n",
            "load('a', 'b')\n",
            "f(g())\n",
            "f(x)\n",
            "f([x for x in []])\n",
            "f('a' % b)\n",
            "f('a",
            "f(",
            "f() g()",
            "X = {}\n",
        ] {
            assert!(calls(bad).is_err(), "{bad}");
        }
    }
}
