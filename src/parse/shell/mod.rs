//! A shell line → the simple commands that could run (DESIGN 3.4).
//!
//! The grammar is `brush-parser`'s, a full parser of the bash language. This module turns its
//! tree into a small one of its own: simple commands with their words, assignments and
//! redirects, in groups that say whether they run for sure, and where a change of directory
//! ends. Commands inside substitutions stand in the tree like any other. What is not understood
//! is a [`Doubt`], never an omission: every token of the line is accounted for (`account`).
//!
//! Nothing is expanded here that the line does not hold: a variable stays unknown.

use std::cell::Cell;
use std::sync::Once;

mod account;
mod depth;
mod evaluated;
mod walk;
mod word;

pub use evaluated::Evaluated;
pub use word::{Value, quoted};

/// Longest line that is read, in bytes. A longer one is a [`Doubt`] as a whole.
pub const MAX_LINE: usize = 1 << 20;

/// How often commands may stand inside commands of the same text.
pub const MAX_NESTING: usize = 48;

/// Words that one brace list may expand to.
pub const MAX_BRACES: usize = 1024;

/// A line, taken apart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Script {
    /// What runs, in order.
    pub nodes: Vec<Node>,
    /// What could not be understood. A script with a doubt may do more than `nodes` say.
    pub doubts: Vec<Doubt>,
    /// What the shell evaluates a second time.
    pub evaluated: Evaluated,
}

/// Something in a line that polctl does not understand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Doubt {
    /// One sentence without a full stop.
    pub what: String,
    /// Text that no part accounts for: words of it may be commands.
    pub text: String,
}

/// One step of a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Node {
    /// A simple command.
    Simple(Simple),
    /// Several commands together.
    Group(Scope, Vec<Node>),
    /// A function of this name; its body may run at any later time, in any directory.
    Function(String, Vec<Node>),
}

/// What a group means for what follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// It runs in the same shell: a change of directory stays.
    Same,
    /// It runs in a shell of its own: a change of directory ends with it.
    Own,
    /// It runs in the same shell, or not at all.
    Maybe,
    /// It runs in the same shell, any number of times.
    Loop,
    /// The members run one by one, each only if the one before succeeded (`a && b`); one that
    /// stands in a [`Scope::Maybe`] if any before it failed (`a || b`).
    Chain,
}

/// A simple command (POSIX 2.9.1).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Simple {
    /// Assignments in front of it; without words they are assignments of the shell.
    pub assignments: Vec<Assignment>,
    /// Program and arguments, brace lists expanded.
    pub words: Vec<ShellWord>,
    /// Redirects, those of the groups around it included.
    pub redirects: Vec<Redirect>,
    /// Its standard input comes from a pipe.
    pub piped: bool,
    /// As written.
    pub text: String,
}

/// One word of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShellWord {
    /// What is known of its value.
    pub value: Value,
    /// As written.
    pub raw: String,
    /// Known text at its end, behind what is not certain: `/git` in `"$D/git"`.
    pub tail: String,
}

/// `NAME=value`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assignment {
    /// Name of the variable.
    pub name: String,
    /// What it is set to.
    pub value: Value,
}

/// A redirect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Redirect {
    /// A file is read.
    Read(ShellWord),
    /// A file is written, or read and written.
    Write(ShellWord),
    /// A here-document or here-string: what the command reads.
    Text(Value),
    /// A descriptor is copied or closed; nothing is named.
    Descriptor,
    /// A process substitution: its commands stand in the tree; `true` when it is written to.
    Process(bool),
}

impl ShellWord {
    /// A word whose text is certain.
    pub fn known(text: &str) -> Self {
        ShellWord { value: Value::Known(text.to_owned()), raw: quoted(text), tail: String::new() }
    }

    /// A word of which nothing is known.
    pub fn unknown(raw: &str) -> Self {
        ShellWord { value: Value::Any, raw: raw.to_owned(), tail: String::new() }
    }

    /// The same word with another value.
    #[must_use]
    pub fn with(&self, value: Value) -> Self {
        ShellWord { value, raw: self.raw.clone(), tail: String::new() }
    }
}

/// Takes a line apart. Never fails: what is not understood is in [`Script::doubts`].
///
/// The work runs on a thread whose stack grows with the number of openers in the line, since
/// the grammar descends into each.
pub fn parse_line(line: &str) -> Script {
    let doubt = |what: &str| Script {
        doubts: vec![Doubt { what: what.to_owned(), text: line.to_owned() }],
        ..Script::default()
    };
    if line.len() > MAX_LINE {
        return doubt("the line is longer than polctl reads");
    }
    let failed = || doubt("a text at which the grammar fails");
    let openers = openers(line);
    if openers <= SMALL {
        return guarded(line).unwrap_or_else(failed);
    }
    let stack = openers.saturating_mul(STACK_PER_OPENER).saturating_add(STACK_BASE);
    if stack > STACK_MOST {
        return doubt("the line opens more groups than polctl follows");
    }
    let owned = line.to_owned();
    let worker = std::thread::Builder::new().stack_size(stack).spawn(move || guarded(&owned));
    match worker.map(std::thread::JoinHandle::join) {
        Ok(Ok(script)) => script.unwrap_or_else(failed),
        _ => doubt("the line opens more groups than polctl follows"),
    }
}

std::thread_local! {
    /// Whether this thread is at work for which a panic is a doubt.
    static GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// The tree; `None` where the grammar panics. Nothing is said of that on standard error, where
/// the caller of a hook would take it for the reason.
fn guarded(line: &str) -> Option<Script> {
    static QUIET: Once = Once::new();
    QUIET.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if !GUARDED.get() {
                usual(panic);
            }
        }));
    });
    let before = GUARDED.replace(true);
    let script = std::panic::catch_unwind(|| walk::script(line, 0, walk::foldable(line)));
    GUARDED.set(before);
    script.ok()
}

/// Openers that the ordinary stack bears.
const SMALL: usize = 64;
const STACK_BASE: usize = 8 << 20;
const STACK_PER_OPENER: usize = 64 << 10;

/// Stack for the deepest line that is read.
const STACK_MOST: usize = 4 << 30;

/// How many groups the line can open at most: every character or word that may begin one.
fn openers(line: &str) -> usize {
    let signs = line.bytes().filter(|b| b"({`$<[!&|".contains(b)).count();
    let words = line.split(|c: char| !c.is_ascii_alphanumeric());
    signs + words.filter(|w| matches!(*w, "if" | "for" | "while" | "until" | "case" | "select" | "coproc")).count()
}

#[cfg(test)]
mod tests;
