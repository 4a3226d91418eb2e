//! What a script lets the shell evaluate a second time.
//!
//! Arithmetic evaluates the text that a variable holds, and runs a command in an index there:
//! `x='a[$(rm y)]'; echo $((x))`. So do the index in `${a[x]}`, the offset in `${v:x:1}` and
//! `${!x}`. It does no harm as long as no variable that is evaluated can hold such a text.

use std::collections::BTreeSet;

use super::{Simple, Value};

/// Variables that are evaluated, and what variables may hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Evaluated {
    /// Names of variables that are evaluated, with the text that does it.
    names: BTreeSet<String>,
    /// A parameter such as `$1` is evaluated.
    parameters: bool,
    /// A text that evaluates something, for the reader.
    text: String,
    /// Names that are evaluated where only numbers of the line itself will do.
    strict: BTreeSet<String>,
    /// Something is evaluated there that is no name and no number.
    strange: bool,
    /// Names that are set to a number.
    numbers: BTreeSet<String>,
    /// Names that are set to something else than a number.
    set: BTreeSet<String>,
    /// Any name may be set.
    any_set: bool,
    /// Some text or value may hold a command.
    dangerous: bool,
    /// Some word of a command is not known, and may be a parameter of what runs.
    unknown_words: bool,
}

/// The names in arithmetic.
pub(super) fn names(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .filter(|word| word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_'))
}

/// Variables that the shell sets to texts of the line.
const TOLD: [&str; 14] = [
    "_",
    "BASH_REMATCH",
    "REPLY",
    "MAPFILE",
    "OPTARG",
    "BASH_ARGV",
    "BASH_ARGV0",
    "BASH_COMMAND",
    "BASH_EXECUTION_STRING",
    "FUNCNAME",
    "DIRSTACK",
    "PWD",
    "OLDPWD",
    "COPROC",
];

/// Whether a text may hold a command, or a part of one, for a shell that reads it again.
fn may_run(text: &str) -> bool {
    text.contains(['$', '`'])
}

impl Evaluated {
    /// A text is evaluated as arithmetic.
    pub(super) fn arithmetic(&mut self, text: &str) {
        let parameter = |(at, _): (usize, &str)| {
            text.get(at + 1..)
                .and_then(|rest| rest.chars().next())
                .is_some_and(|c| !c.is_ascii_alphabetic() && c != '(')
        };
        self.parameters |= text.match_indices('$').any(parameter);
        self.names.extend(names(text).map(str::to_owned));
        if self.text.is_empty() {
            text.clone_into(&mut self.text);
        }
    }

    /// A text is evaluated, and holds only numbers and variables that the line sets to numbers.
    pub(super) fn strictly(&mut self, text: &str) {
        self.strict.extend(names(text).map(str::to_owned));
        let plain = |c: char| c.is_ascii_alphanumeric() || "_$+-*/%<>=!&|^?:, \"".contains(c);
        let parameter = |(at, _): (usize, &str)| {
            text.get(at + 1..).and_then(|rest| rest.chars().next()).is_none_or(|c| !c.is_ascii_alphabetic() && c != '_')
        };
        self.strange |= !text.chars().all(plain) || text.match_indices('$').any(parameter);
        if self.text.is_empty() {
            text.clone_into(&mut self.text);
        }
    }

    /// The inside of `${…}`.
    pub(super) fn parameter(&mut self, inner: &str) {
        if let Some(name) = inner.strip_prefix('!') {
            self.arithmetic(name);
            // `${!1}`, `${!@}`
            self.parameters |= !name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        }
        let name = inner.trim_start_matches(['!', '#']);
        let named = |c: char| c.is_ascii_alphanumeric() || c == '_';
        // `${@:x}`: a special parameter is one character.
        let rest = if name.starts_with(named) {
            name.trim_start_matches(named)
        } else {
            name.strip_prefix(['@', '*', '?', '$', '-']).unwrap_or(name)
        };
        if let Some(index) = rest.strip_prefix('[')
            && !index.starts_with("@]")
            && !index.starts_with("*]")
        {
            self.arithmetic(index);
        }
        // `${v:offset}`, and not `${v:-word}`.
        let behind = rest.split_once(']').map_or(rest, |(_, rest)| rest);
        for part in [rest, behind] {
            if let Some(offset) = part.strip_prefix(':')
                && !offset.starts_with(['-', '=', '?', '+'])
            {
                self.arithmetic(offset);
            }
        }
    }

    /// A word of a command or of a list.
    pub(super) fn word(&mut self, value: &Value) {
        self.dangerous |= value.known().is_some_and(may_run);
        self.unknown_words |= value.known().is_none();
    }

    /// A variable is set; `number`: to the result of arithmetic.
    pub(super) fn assigned(&mut self, name: &str, value: &Value, number: bool) {
        let numeric = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit() || b == b'-');
        if number || value.known().is_some_and(numeric) {
            self.numbers.insert(name.to_owned());
        } else {
            self.set.insert(name.to_owned());
            self.dangerous |= value.known().is_none_or(may_run);
        }
    }

    /// The variable of a loop, over these values.
    pub(super) fn looped(&mut self, name: &str, values: &[Value]) {
        for value in values {
            self.assigned(name, value, false);
        }
        if values.is_empty() {
            self.set.insert(name.to_owned());
        }
    }

    /// A command that may set variables to what it reads or is told.
    pub(super) fn command(&mut self, simple: &Simple) {
        const SETS: [&str; 16] = [
            "read",
            "mapfile",
            "readarray",
            "printf",
            "getopts",
            "select",
            "eval",
            "source",
            ".",
            "let",
            "declare",
            "typeset",
            "local",
            "export",
            "readonly",
            "wait",
        ];
        let known = |at: usize| simple.words.get(at).and_then(|word| word.value.known());
        let prefix = |name: &str| matches!(name, "command" | "builtin" | "noglob" | "nocorrect" | "-p" | "--");
        let name = (0..simple.words.len()).map(known).find(|word| !word.is_some_and(prefix)).flatten();
        let Some(name) = name.filter(|name| SETS.contains(name)) else { return };
        match name {
            // `declare x=…` sets what it says.
            "declare" | "typeset" | "local" | "export" | "readonly" | "let" => {
                for word in simple.words.iter().skip(1) {
                    match word.value.known().map(|text| text.split_once('=')) {
                        Some(Some((name, value))) => {
                            self.assigned(name.trim_end_matches('+'), &Value::Known(value.to_owned()), false);
                        }
                        Some(None) => {}
                        None => {
                            self.any_set = true;
                            self.dangerous = true;
                        }
                    }
                }
            }
            "printf" if !simple.words.iter().any(|word| word.value.known().is_none_or(|t| t.starts_with("-v"))) => {}
            _ => {
                self.any_set = true;
                self.dangerous = true;
            }
        }
    }

    /// Adds what another script of the same line does.
    pub fn add(&mut self, other: &Evaluated) {
        self.names.extend(other.names.iter().cloned());
        self.set.extend(other.set.iter().cloned());
        self.parameters |= other.parameters;
        self.any_set |= other.any_set;
        self.dangerous |= other.dangerous;
        self.unknown_words |= other.unknown_words;
        self.strict.extend(other.strict.iter().cloned());
        self.numbers.extend(other.numbers.iter().cloned());
        self.strange |= other.strange;
        if self.text.is_empty() {
            other.text.clone_into(&mut self.text);
        }
    }

    /// A text that may run what a variable holds.
    pub fn danger(&self) -> Option<&str> {
        let set = |name: &String| self.any_set || self.set.contains(name) || TOLD.contains(&name.as_str());
        let by_name = self.names.iter().any(set) && self.dangerous;
        let by_place = self.parameters && (self.dangerous || self.unknown_words);
        let not_number = |name: &String| !self.numbers.contains(name) || self.set.contains(name) || self.any_set;
        let by_doubt = self.strange || self.strict.iter().any(not_number);
        (by_name || by_place || by_doubt).then_some(self.text.as_str())
    }
}
