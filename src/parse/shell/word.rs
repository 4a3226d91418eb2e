//! One word as written → what is known of its value, and the commands inside it.
//!
//! Expansions of parameters and arithmetic are never evaluated; what they may run is found by
//! reading their text once more, as the shell would inside and outside of quotes.

use brush_parser::ParserOptions;
use brush_parser::word::{
    BraceExpressionMember, BraceExpressionOrText, ParameterExpr, ParameterTransformOp, TildeExpr, WordPiece,
    WordPieceWithSource, parse, parse_brace_expansions, parse_heredoc,
};

use super::depth::{nests_too_deep, substitutions_too_deep};
use super::walk::{Walk, complete};
use super::{MAX_BRACES, MAX_NESTING, ShellWord};

/// What is known of the value of a word, after quotes are taken away.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// Exactly this text, one word.
    Known(String),
    /// One word that begins with this text, so it is no option.
    Starts(String),
    /// File names that match this pattern, one or more, if any match. They are options where it
    /// begins with a wildcard and a name begins with a dash.
    Files(String),
    /// Anything: no word, one or many, options or not.
    Any,
}

impl Value {
    /// The text, when it is certain.
    pub fn known(&self) -> Option<&str> {
        match self {
            Value::Known(text) => Some(text),
            _ => None,
        }
    }
}

/// Quotes a text as one word for a POSIX shell.
pub fn quoted(text: &str) -> String {
    let plain = !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"/._-+=:,@%^".contains(&b));
    if plain { text.to_owned() } else { format!("'{}'", text.replace('\'', "'\\''")) }
}

/// Most here-documents inside of one word: each may end at many places, and each of these is tried.
const MAX_DOCUMENTS: usize = 10;

/// What the pieces of a word add up to.
#[derive(Default)]
struct Sum {
    /// Text up to the first piece that is not certain.
    text: String,
    /// Nothing uncertain so far.
    certain: bool,
    /// Some unquoted piece may split into many words, or vanish.
    splits: bool,
    /// File name patterns stand in `pattern`.
    pattern: String,
    globs: bool,
    /// `[` stood there, and a `]` behind it would make a pattern of it.
    bracket: bool,
    /// Text behind the last piece that is not certain.
    tail: String,
}

impl Sum {
    fn literal(&mut self, text: &str) {
        if self.certain {
            self.text.push_str(text);
        } else {
            self.tail.push_str(text);
        }
        self.pattern.push_str(text);
    }

    /// Unquoted text, in which pattern signs count.
    fn plain(&mut self, text: &str) {
        for c in text.chars() {
            match c {
                '*' | '?' => self.globs = true,
                '[' => self.bracket = true,
                ']' => self.globs |= self.bracket,
                _ => {}
            }
        }
        self.literal(text);
    }

    fn unknown(&mut self, splits: bool) {
        self.certain = false;
        self.splits |= splits;
        self.tail.clear();
        self.pattern.push('*');
    }

    fn value(self) -> Value {
        let plain_start = self.text.chars().next().is_some_and(|c| c != '-');
        if self.splits || !(self.certain || plain_start) {
            return Value::Any;
        }
        match (self.certain, self.globs) {
            (true, false) => Value::Known(self.text),
            // `..` behind a wildcard leads to where nobody can tell.
            (true, true) if plain_start && !climbs_behind_wildcard(&self.pattern) => Value::Files(self.pattern),
            (_, true) => Value::Any,
            (false, false) => Value::Starts(self.text),
        }
    }
}

impl Walk {
    /// The words that a word as written becomes, brace lists expanded.
    pub(super) fn words(&mut self, raw: &str) -> Vec<ShellWord> {
        if nests_too_deep(raw, true) {
            self.doubt("braces in braces deeper than polctl follows", raw);
            return vec![ShellWord::unknown(raw)];
        }
        // `x{a,b}y` is taken apart before anything else (Bash 3.5.1).
        if raw.contains('{') {
            if too_long_a_number(raw) {
                self.doubt("a number in a brace list that polctl cannot hold", raw);
                return vec![ShellWord::unknown(raw)];
            }
            match parse_brace_expansions(raw, &options()) {
                Ok(Some(parts)) if parts.iter().any(|p| matches!(p, BraceExpressionOrText::Expr(_))) => {
                    return if let Some(raws) = expand(&parts) {
                        raws.iter().map(|raw| self.shell_word(raw)).collect()
                    } else {
                        self.doubt("a brace list with more words than polctl follows", raw);
                        vec![ShellWord::unknown(raw)]
                    };
                }
                Ok(_) => {}
                Err(_) => self.doubt("a word that polctl cannot read", raw),
            }
        }
        vec![self.shell_word(raw)]
    }

    /// One word without brace lists. Commands inside it are added to the tree.
    pub(super) fn shell_word(&mut self, raw: &str) -> ShellWord {
        if nests_too_deep(raw, true) {
            self.doubt("expansions in expansions deeper than polctl follows", raw);
            return ShellWord::unknown(raw);
        }
        if raw.contains("$(") && raw.matches("<<").count() > MAX_DOCUMENTS {
            self.doubt("more here-documents in one word than polctl follows", raw);
            return ShellWord::unknown(raw);
        }
        let source = self.documents(raw);
        let Ok(pieces) = parse(&source, &options()) else {
            self.doubt("a word that polctl cannot read", raw);
            return ShellWord::unknown(raw);
        };
        let mut sum = Sum { certain: true, ..Sum::default() };
        self.pieces(&pieces, &source, &mut sum);
        let extended = |text: &str| ["@(", "+(", "!(", "?(", "*("].iter().any(|sign| text.contains(sign));
        let grouped = |text: &str| text.contains('(') && (sum.globs || extended(text));
        if pieces.iter().any(|p| matches!(&p.piece, WordPiece::Text(text) if grouped(text))) {
            // Some shells run what stands in `*(e:…:)`, and name files by `@(a|b)`.
            self.doubt("a file name pattern with parentheses", raw);
        }
        let tail = std::mem::take(&mut sum.tail);
        ShellWord { value: sum.value(), raw: raw.to_owned(), tail }
    }

    /// The value of one word without brace lists.
    pub(super) fn word(&mut self, raw: &str) -> Value {
        self.shell_word(raw).value
    }

    /// Text in which only expansions count: a here-document's body, arithmetic, the inside of `${…}`.
    pub(super) fn expandable(&mut self, text: &str) -> Value {
        // A line continuation may stand between `$` and `(`.
        let text = &joined(text);
        if !text.contains(['$', '`', '\\']) {
            return Value::Known(text.to_owned());
        }
        if nests_too_deep(text, false) || substitutions_too_deep(text) {
            self.doubt("expansions in expansions deeper than polctl follows", text);
            return Value::Any;
        }
        if let Ok(pieces) = parse_heredoc(text, &options()) {
            let mut sum = Sum { certain: true, ..Sum::default() };
            self.pieces(&pieces, text, &mut sum);
            if sum.certain { Value::Known(sum.text) } else { Value::Any }
        } else {
            self.doubt("an expansion that polctl cannot read", text);
            Value::Any
        }
    }

    /// Takes out substitutions that hold a here-document: where they end depends on its body,
    /// which the grammar of words does not know. `$(…)` becomes an empty substitution.
    fn documents(&mut self, raw: &str) -> String {
        if !raw.contains("<<") || !raw.contains("$(") {
            return raw.to_owned();
        }
        let mut out = String::new();
        let mut single = false;
        let mut double = false;
        let mut at = 0;
        while let Some(c) = raw.get(at..).and_then(|rest| rest.chars().next()) {
            let rest = raw.get(at..).unwrap_or("");
            if c == '\\' && !single {
                let taken = rest.chars().take(2).map(char::len_utf8).sum();
                out.push_str(rest.get(..taken).unwrap_or(rest));
                at += taken;
                continue;
            }
            match c {
                '\'' if !double => single = !single,
                '"' if !single => double = !double,
                _ => {}
            }
            if !single && rest.starts_with("$(") && !rest.starts_with("$((") {
                let body = rest.get(2..).unwrap_or("");
                let end =
                    body.match_indices(')').map(|(end, _)| end).find(|end| body.get(..*end).is_some_and(complete));
                if let Some(end) = end {
                    let printed = self.substitution(body.get(..end).unwrap_or(body));
                    match printed.filter(|_| double) {
                        // The text itself, as it would be written between these quotes.
                        Some(text) => text.chars().for_each(|c| {
                            if matches!(c, '\\' | '"' | '$' | '`') {
                                out.push('\\');
                            }
                            out.push(c);
                        }),
                        None => out.push_str("$()"),
                    }
                    at += 2 + end + 1;
                    continue;
                }
            }
            out.push(c);
            at += c.len_utf8();
        }
        out
    }

    fn pieces(&mut self, pieces: &[WordPieceWithSource], source: &str, sum: &mut Sum) {
        let mut read = 0;
        for piece in pieces {
            if piece.start_index != read {
                self.doubt("a part of a word that polctl does not read", source);
            }
            read = piece.end_index;
            self.piece(piece, source, false, sum);
        }
        if read != source.len() {
            self.doubt("a part of a word that polctl does not read", source);
        }
    }

    fn piece(&mut self, piece: &WordPieceWithSource, source: &str, quoted: bool, sum: &mut Sum) {
        let text = source.get(piece.start_index..piece.end_index).unwrap_or(source);
        match &piece.piece {
            // What looks like an expansion and is read as text is one in another shell.
            WordPiece::Text(plain)
                if ["${", "$(", "`"].iter().any(|sign| plain.contains(sign))
                    || plain.ends_with('$')
                        && source.get(piece.end_index..).is_some_and(|rest| rest.starts_with(['{', '('])) =>
            {
                self.doubt("an expansion that polctl cannot read", text);
                sum.unknown(!quoted);
            }
            // `$[x]` is arithmetic in an old spelling, and nothing in other shells.
            WordPiece::Text(text) if text.contains("$[") => {
                self.evaluated.arithmetic(text);
                sum.unknown(!quoted);
            }
            WordPiece::Text(text) if quoted => sum.literal(text),
            WordPiece::Text(text) => sum.plain(text),
            WordPiece::SingleQuotedText(text) => sum.literal(text),
            WordPiece::AnsiCQuotedText(inner) => {
                if let Some(inner) = ansi_c(inner) {
                    sum.literal(&inner);
                } else {
                    self.doubt("an escape in `$'…'` that polctl does not read", text);
                    sum.unknown(false);
                }
            }
            WordPiece::DoubleQuotedSequence(inner) | WordPiece::GettextDoubleQuotedSequence(inner) => {
                for piece in inner {
                    self.piece(piece, source, true, sum);
                }
            }
            WordPiece::TildeExpansion(TildeExpr::Home) => sum.literal("~"),
            WordPiece::TildeExpansion(TildeExpr::UserHome(name)) => sum.literal(&format!("~{name}")),
            WordPiece::TildeExpansion(_) => sum.unknown(true),
            WordPiece::EscapeSequence(escape) => {
                let mut chars = escape.chars();
                match (chars.next(), chars.next()) {
                    (Some('\\'), Some('\n')) => {}
                    (Some('\\'), Some(c)) => sum.literal(c.encode_utf8(&mut [0; 4])),
                    _ => sum.literal(escape),
                }
            }
            WordPiece::CommandSubstitution(_) | WordPiece::BackquotedCommandSubstitution(_) => {
                let inner = if let WordPiece::CommandSubstitution(inner) = &piece.piece {
                    inner.clone()
                } else {
                    let inner = text.strip_prefix('`').and_then(|text| text.strip_suffix('`'));
                    unescaped(inner.unwrap_or(text), quoted)
                };
                match self.substitution(&inner).filter(|_| quoted) {
                    Some(text) => sum.literal(&text),
                    None => sum.unknown(!quoted),
                }
            }
            WordPiece::ArithmeticExpression(expr) => {
                self.evaluated.arithmetic(&expr.value);
                self.deeper(&expr.value, |walk, text| {
                    walk.expandable(text);
                });
                // Digits and perhaps a sign: it never splits, and stands where an option might.
                sum.unknown(false);
            }
            WordPiece::ParameterExpansion(expr) => {
                self.parameter(expr, text);
                sum.unknown(!quoted);
            }
        }
    }

    /// `${…}`: the texts inside are expanded in turn, as in quotes or not.
    fn parameter(&mut self, expr: &ParameterExpr, source: &str) {
        if let ParameterExpr::Transform { op: ParameterTransformOp::PromptExpand, .. } = expr {
            self.doubt("`@P` runs what the variable holds", source);
        }
        if source.starts_with("${(") {
            // zsh has flags there, and one of them evaluates the value.
            self.doubt("`${(` has another meaning in some shells", source);
        }
        if let Some(inner) = source.strip_prefix("${").and_then(|rest| rest.strip_suffix('}')) {
            self.evaluated.parameter(inner);
            self.assigned_inside(inner);
            self.deeper(inner, |walk, text| {
                walk.expandable(text);
                if text.contains(['\'', '"']) {
                    walk.word(text);
                }
                if text.contains("<(") || text.contains(">(") {
                    walk.doubt("a process substitution inside of `${…}`", text);
                }
            });
        }
    }

    /// `${x:=word}` and `${x=word}` set the variable.
    fn assigned_inside(&mut self, inner: &str) {
        let name: String = inner.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
        let rest = inner.get(name.len()..).unwrap_or("");
        if !name.is_empty() && (rest.starts_with(":=") || rest.starts_with('=')) {
            self.evaluated.assigned(&name, &Value::Any, false);
            self.assigned(&name, Value::Any);
        }
    }

    /// Reads a text inside another, if it can hold commands.
    fn deeper(&mut self, text: &str, read: impl FnOnce(&mut Walk, &str)) {
        if !text.contains(['$', '`', '(']) {
            return;
        }
        if self.depth >= MAX_NESTING {
            return self.doubt("commands inside commands deeper than polctl follows", text);
        }
        self.depth += 1;
        read(self, text);
        self.depth -= 1;
    }
}

/// The text of a command in backquotes (POSIX 2.6.3): a backslash before `$`, a backquote or a
/// backslash goes away, in double quotes also before a double quote.
fn unescaped(text: &str, quoted: bool) -> String {
    let mut out = String::new();
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match chars.peek() {
            Some(next) if c == '\\' && (matches!(next, '$' | '`' | '\\') || quoted && *next == '"') => {
                out.extend(chars.next());
            }
            _ => out.push(c),
        }
    }
    out
}

/// The text without line continuations; a backslash that is escaped itself continues nothing.
fn joined(text: &str) -> String {
    let mut out = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match (c, c == '\\') {
            (_, true) => match chars.next() {
                Some('\n') => {}
                next => {
                    out.push(c);
                    out.extend(next);
                }
            },
            (c, false) => out.push(c),
        }
    }
    out
}

fn climbs_behind_wildcard(pattern: &str) -> bool {
    let behind = pattern.find(['*', '?', '[']).and_then(|at| pattern.get(at..)).unwrap_or("");
    behind.split('/').any(|segment| segment == "..")
}

fn options() -> ParserOptions {
    ParserOptions::default()
}

/// The words of a brace list; `None` past [`MAX_BRACES`].
fn expand(parts: &[BraceExpressionOrText]) -> Option<Vec<String>> {
    let mut out = vec![String::new()];
    for part in parts {
        let tails = match part {
            BraceExpressionOrText::Text(text) => vec![text.clone()],
            BraceExpressionOrText::Expr(members) => {
                let mut tails = Vec::new();
                for member in members {
                    match member {
                        BraceExpressionMember::Child(parts) => tails.extend(expand(parts)?),
                        BraceExpressionMember::NumberSequence { start, end, increment } => {
                            tails.extend(sequence(*start, *end, *increment)?.into_iter().map(|n| n.to_string()));
                        }
                        BraceExpressionMember::CharSequence { start, end, increment } => {
                            let numbers =
                                sequence(i64::from(u32::from(*start)), i64::from(u32::from(*end)), *increment)?;
                            let letters =
                                numbers.into_iter().filter_map(|n| u32::try_from(n).ok().and_then(char::from_u32));
                            tails.extend(letters.map(String::from));
                        }
                    }
                }
                tails
            }
        };
        if out.len().checked_mul(tails.len())? > MAX_BRACES {
            return None;
        }
        out = out.iter().flat_map(|head| tails.iter().map(move |tail| format!("{head}{tail}"))).collect();
    }
    Some(out)
}

fn sequence(start: i64, end: i64, increment: i64) -> Option<Vec<i64>> {
    let step = increment.checked_abs()?.max(1);
    if end.checked_sub(start)?.checked_abs()? / step > i64::try_from(MAX_BRACES).ok()? {
        return None;
    }
    let mut out = Vec::new();
    let mut at = start;
    while (start <= end && at <= end) || (start > end && at >= end) {
        out.push(at);
        at = if start <= end { at.checked_add(step)? } else { at.checked_sub(step)? };
    }
    Some(out)
}

/// Takes the digits of a number off a text, behind `from` bytes.
fn number(rest: &mut &str, radix: u32, most: usize, from: usize) -> Option<u32> {
    let digits: String = rest.get(from..)?.chars().take(most).take_while(|c| c.is_digit(radix)).collect();
    *rest = rest.get(from + digits.len()..)?;
    u32::from_str_radix(&digits, radix).ok()
}

/// The text of `$'…'` (Bash 3.1.2.4); `None` for an escape that is no plain text.
fn ansi_c(text: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        rest = rest.get(c.len_utf8()..)?;
        if c != '\\' {
            bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
            continue;
        }
        let escape = rest.chars().next()?;
        let byte = match escape {
            '0'..='7' => u8::try_from(number(&mut rest, 8, 3, 0)? & 0xff).ok()?,
            'x' if rest.starts_with("x{") => {
                let end = rest.find('}')?;
                let digits = rest.get(2..end)?;
                let value = u32::from_str_radix(digits, 16).ok()?;
                rest = rest.get(end + 1..)?;
                u8::try_from(value & 0xff).ok()?
            }
            'x' => u8::try_from(number(&mut rest, 16, 2, 1)?).ok()?,
            'c' => {
                let c = rest.chars().nth(1)?;
                rest = rest.get(1 + c.len_utf8()..)?;
                u8::try_from(u32::from(c)).ok()? & 0x1f
            }
            'u' | 'U' => {
                let c = char::from_u32(number(&mut rest, 16, if escape == 'u' { 4 } else { 8 }, 1)?)?;
                bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
                continue;
            }
            other => {
                rest = rest.get(other.len_utf8()..)?;
                match other {
                    'a' => 7,
                    'b' => 8,
                    'e' | 'E' => 27,
                    'f' => 12,
                    'n' => b'\n',
                    'r' => b'\r',
                    't' => b'\t',
                    'v' => 11,
                    '\\' | '\'' | '"' | '?' => u8::try_from(u32::from(other)).ok()?,
                    // What Bash leaves as it is.
                    _ => return None,
                }
            }
        };
        // The shell's string ends there.
        if byte == 0 {
            break;
        }
        bytes.push(byte);
    }
    String::from_utf8(bytes).ok()
}

/// A brace sequence with a number that the grammar cannot hold; it would not return.
fn too_long_a_number(raw: &str) -> bool {
    raw.contains("..") && raw.split(|c: char| !c.is_ascii_digit()).any(|digits| digits.len() > 17)
}
