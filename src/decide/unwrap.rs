//! The commands inside a command: what wrappers, shells and `-exec` options run (DESIGN 3.4).
//!
//! The program table says where the inner command stands. Where options are not known, or words
//! are only known at run time, every later word may begin it: such candidates are judged by the
//! rules that restrict, and the command itself is not taken for understood.

use crate::model::{Entry, Program};
use crate::parse::{Redirect, ShellWord, Value};

/// What stands inside a command.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Inside {
    /// Commands that it runs, each as words.
    pub(super) commands: Vec<Vec<ShellWord>>,
    /// Lines that it gives to a shell.
    pub(super) lines: Vec<String>,
    /// Words each of which may begin a command.
    pub(super) candidates: Vec<Vec<ShellWord>>,
    /// Names of environment variables that it sets for the inner command.
    pub(super) env: Vec<String>,
    /// It only carries what was found, and everything of it was understood.
    pub(super) carries: bool,
    /// It may run what the line does not hold, or polctl does not know where it stands.
    pub(super) opaque: Option<&'static str>,
    /// What it runs, it runs in directories that nobody knows: `find -execdir`.
    pub(super) elsewhere: bool,
    /// Words without the commands behind `-exec` and the like, where there are some.
    pub(super) own: Option<Vec<ShellWord>>,
    /// Users that `-u` and the like name.
    pub(super) user: Option<String>,
    /// It reads its standard input itself.
    pub(super) reads_input: bool,
    /// How many words are its own, before the command inside begins.
    pub(super) head: usize,
}

/// Options and operands of a command, as far as its entries tell them apart.
struct Reader<'a> {
    entries: &'a [&'a Entry<'static>],
    dashed: bool,
}

/// What a word is.
enum Read<'a> {
    /// An option, its name, and its value where it has one: glued, or the next word (`true`).
    Option(&'a str, Option<&'a str>, bool),
    /// Several options in one word, the last of which takes the next word.
    Cluster(Vec<String>, bool),
    /// The options end.
    End,
    /// An operand.
    Operand,
    /// An option that the table does not know, or a word that may be one.
    Strange,
}

impl<'a> Reader<'a> {
    fn has(&self, list: impl Fn(&'a Entry<'static>) -> &'a Vec<&'static str>, option: &str) -> bool {
        self.entries.iter().any(|entry| list(entry).contains(&option))
    }

    fn takes_value(&self, option: &str) -> bool {
        self.has(|e| &e.values, option)
            || self.has(|e| &e.shell_options, option)
            || self.has(|e| &e.script_options, option)
            || self.entries.iter().any(|e| e.globals.iter().any(|g| g.option == option && g.takes_value))
    }

    fn known(&self, option: &str) -> bool {
        self.takes_value(option)
            || self.has(|e| &e.flags, option)
            || self.has(|e| &e.optional, option)
            || self.entries.iter().any(|e| e.globals.iter().any(|g| g.option == option))
    }

    /// The full name of a long option that may be shortened.
    fn long(&self, name: &'a str) -> Option<&'a str> {
        if self.known(name) {
            return Some(name);
        }
        let lists = self.entries.iter().flat_map(|e| {
            e.values.iter().chain(&e.flags).chain(&e.optional).chain(&e.shell_options).chain(&e.script_options)
        });
        let mut found = lists.filter(|known| known.starts_with(name) && known.starts_with("--"));
        match (found.next(), found.next()) {
            (Some(one), None) => Some(one),
            _ => None,
        }
    }

    fn read(&self, word: &'a ShellWord) -> Read<'a> {
        let text = match &word.value {
            Value::Known(text) => text.as_str(),
            Value::Files(pattern) if pattern.starts_with(['*', '?', '[']) => return Read::Strange,
            Value::Starts(_) | Value::Files(_) => return Read::Operand,
            Value::Any => return Read::Strange,
        };
        if text == "--" {
            return Read::End;
        }
        if self.dashed && text.starts_with('-') && text.len() > 1 {
            return match text.split_once('=') {
                Some((name, value)) => Read::Option(name, Some(value), false),
                None => Read::Option(text, None, self.takes_value(text)),
            };
        }
        if text.starts_with("--") {
            let (name, value) = text.split_once('=').map_or((text, None), |(name, value)| (name, Some(value)));
            return match self.long(name) {
                Some(name) => Read::Option(name, value, value.is_none() && self.takes_value(name)),
                None => Read::Strange,
            };
        }
        match text.strip_prefix('-') {
            None | Some("") => Read::Operand,
            Some(letters) => self.cluster(text, letters),
        }
    }

    fn cluster(&self, text: &'a str, letters: &'a str) -> Read<'a> {
        if self.known(text) {
            return Read::Option(text, None, self.takes_value(text));
        }
        let mut names = Vec::new();
        for (at, letter) in letters.char_indices() {
            let name = format!("-{letter}");
            let behind = letters.get(at + letter.len_utf8()..).unwrap_or("");
            if self.takes_value(&name) {
                if names.is_empty() && !behind.is_empty() {
                    let name = text.get(..1 + letter.len_utf8()).unwrap_or(text);
                    return Read::Option(name, Some(behind), false);
                }
                names.push(name);
                return Read::Cluster(names, behind.is_empty());
            }
            if self.has(|e| &e.optional, &name) {
                names.push(name);
                return Read::Cluster(names, false);
            }
            if !self.known(&name) && !letter.is_ascii_digit() {
                return Read::Strange;
            }
            names.push(name);
        }
        Read::Cluster(names, false)
    }
}

/// Looks into a command. `words` are those behind the program.
pub(super) fn inside(program: &Program<'static>, words: &[ShellWord], redirects: &[Redirect]) -> Inside {
    let known: Vec<Option<&str>> = words.iter().map(|word| word.value.known()).collect();
    // Words of the path to the sub-command, and options before it, are no operands.
    let (entries, path) = program.located(&known);
    let mut found = exec(&entries, words);
    let reader = Reader { entries: &entries, dashed: program.dashed };
    let words = words.get(path.min(words.len())..).unwrap_or_default();
    found.head = path;
    let tells = |word: &ShellWord| word.value.known().is_some_and(|text| reader.has(|e| &e.tells, text));
    if words.iter().take_while(|word| word.value.known().is_some_and(|text| text.starts_with('-'))).any(tells) {
        return found;
    }
    if program.shell {
        shell(&reader, words, redirects, &mut found);
    } else if entries.iter().any(|entry| entry.carries()) {
        carried(&reader, words, &mut found);
    } else if program.interpreter {
        interpreter(words, &mut found);
    }
    found
}

/// Commands behind options, up to a terminator: `find -exec … ;`.
fn exec(entries: &[&Entry<'static>], words: &[ShellWord]) -> Inside {
    let mut found = Inside::default();
    let mut own = Vec::new();
    let mut rest = words;
    while let Some((word, behind)) = rest.split_first() {
        let option = word.value.known();
        let clause = entries.iter().flat_map(|e| &e.exec).find(|(names, _)| option.is_some_and(|o| names.contains(&o)));
        let Some((_, ends)) = clause else {
            own.push(word.clone());
            rest = behind;
            continue;
        };
        found.elsewhere |= option.is_some_and(|o| o.ends_with("dir"));
        let end = behind.iter().position(|w| w.value.known().is_some_and(|text| ends.contains(&text)));
        let (command, after) = behind.split_at(end.unwrap_or(behind.len()));
        let command: Vec<ShellWord> = command.iter().map(|word| placeholder(word, &["{}"])).collect();
        if command.is_empty() {
            found.opaque = Some("an option that runs a command has none");
        }
        if !ends.is_empty() && end.is_none() {
            found.opaque = Some("the command of an option has no end");
        }
        found.commands.push(command);
        rest = after.get(1..).unwrap_or_default();
    }
    if !found.commands.is_empty() {
        found.own = Some(own);
    }
    found
}

/// A word in which the program puts something else.
fn placeholder(word: &ShellWord, marks: &[&str]) -> ShellWord {
    match &word.value {
        Value::Known(text) => match marks.iter().filter_map(|mark| text.find(mark)).min() {
            // What comes out may be anything, options too, unless plain text begins it.
            Some(at) if at > 0 && !text.starts_with('-') => {
                let (head, rest) = text.split_at(at);
                let length = marks.iter().find(|mark| rest.starts_with(**mark)).map_or(0, |mark| mark.len());
                ShellWord {
                    tail: rest.get(length..).unwrap_or("").to_owned(),
                    ..word.with(Value::Starts(head.to_owned()))
                }
            }
            Some(_) => word.with(Value::Any),
            None => word.clone(),
        },
        _ => word.clone(),
    }
}

/// The operands that a program writes to, as the table says: each word that may be one.
pub(super) fn written<'w>(program: &Program<'static>, words: &'w [ShellWord]) -> Vec<&'w ShellWord> {
    let known: Vec<Option<&str>> = words.iter().map(|word| word.value.known()).collect();
    let (entries, named) = program.located(&known);
    let Some(first) = entries.iter().rev().find_map(|entry| entry.output) else { return Vec::new() };
    let reader = Reader { entries: &entries, dashed: program.dashed };
    let mut out = Vec::new();
    let (mut seen, mut at, mut ended) = (0_usize, named, false);
    while let Some(word) = words.get(at) {
        at += 1;
        match if ended { Read::Operand } else { reader.read(word) } {
            Read::End => ended = true,
            Read::Option(_, _, next) | Read::Cluster(_, next) => at += usize::from(next),
            // An option that is not known takes nothing; what may be many words may be all of them.
            Read::Strange if word.value.known().is_some() => {}
            Read::Strange => {
                seen = usize::MAX;
                out.push(word);
            }
            Read::Operand => {
                seen = if matches!(word.value, Value::Files(_)) { usize::MAX } else { seen.saturating_add(1) };
                if seen >= first {
                    out.push(word);
                }
            }
        }
    }
    out
}

/// The base name of the program that a word calls, when it is certain.
pub(super) fn called(word: &ShellWord) -> Option<&str> {
    let text = match word.value.known() {
        Some(text) => text.rsplit('/').next().unwrap_or(""),
        // `"$D/git"`
        None => word.tail.rsplit_once('/').map_or("", |(_, name)| name),
    };
    Some(text).filter(|text| !text.is_empty() && !text.starts_with('-'))
}

/// Every later word may begin a command.
fn candidates(words: &[ShellWord], found: &mut Inside) {
    found.candidates.push(words.to_vec());
}

/// Where a carrier's own words end, and what they said.
#[derive(Default)]
struct Own {
    /// Words before the command inside.
    end: usize,
    /// An option gave a shell line.
    listed: bool,
    /// Some word may be an option that is not known.
    strange: bool,
}

/// Reads the options and operands of a carrier, up to the command inside.
fn own_words<'w>(reader: &Reader<'w>, words: &'w [ShellWord], marks: &mut Vec<&'w str>, found: &mut Inside) -> Own {
    let wrapper = reader.entries.iter().rev().find_map(|entry| entry.wrapper);
    let shell_words = reader.entries.iter().rev().find_map(|entry| entry.shell_words);
    let operands = wrapper.map_or(shell_words.unwrap_or(usize::MAX), |w| w.operands);
    let assigns = wrapper.is_some_and(|w| w.assignments);
    let mut own = Own::default();
    let (mut seen, mut ended) = (0, false);
    while let Some(word) = words.get(own.end) {
        let read = if ended { Read::Operand } else { reader.read(word) };
        own.end += 1;
        match read {
            Read::End => ended = true,
            Read::Strange => {
                own.strange = true;
                break;
            }
            Read::Option(name, glued, next) => {
                let value = if next { words.get(own.end).and_then(|w| w.value.known()) } else { glued };
                own.end += usize::from(next);
                if reader.has(|e| &e.shell_options, name) {
                    own.listed = true;
                    line(value, found);
                }
                match (name, value) {
                    ("-u" | "--user", Some(user)) => found.user = Some(user.to_owned()),
                    ("-I" | "-J" | "--replace", Some(mark)) if !mark.is_empty() => marks.push(mark),
                    _ => {}
                }
            }
            Read::Cluster(names, next) => {
                let value = next.then(|| words.get(own.end).and_then(|w| w.value.known())).flatten();
                own.end += usize::from(next);
                if names.last().is_some_and(|name| reader.has(|e| &e.shell_options, name)) {
                    own.listed = true;
                    line(value, found);
                }
                if names.last().is_some_and(|name| name == "-u") {
                    found.user = value.map(str::to_owned);
                }
            }
            Read::Operand => {
                let text = match &word.value {
                    Value::Known(text) | Value::Starts(text) => text.as_str(),
                    Value::Files(_) | Value::Any => "",
                };
                if let Some(name) = super::line::assignment(text).filter(|_| assigns) {
                    found.env.push(name);
                } else if seen < operands {
                    seen += 1;
                } else if reader.has(|e| &e.shell_options, text) {
                    // `flock FILE -c LINE`: an option behind the operands.
                    own.listed = true;
                    line(words.get(own.end).and_then(|word| word.value.known()), found);
                    own.end = words.len();
                } else {
                    own.end -= 1;
                    break;
                }
            }
        }
    }
    own
}

/// A shell line that an option holds.
fn line(value: Option<&str>, found: &mut Inside) {
    match value {
        Some(line) => found.lines.push(line.to_owned()),
        None => found.opaque = Some("the command of an option is only known at run time"),
    }
}

/// Wrappers, and programs with a shell line in an option or in their operands.
fn carried(reader: &Reader<'_>, words: &[ShellWord], found: &mut Inside) {
    let mut marks = vec!["{}"];
    let own = own_words(reader, words, &mut marks, found);
    found.head += own.end.min(words.len());
    if own.strange {
        found.opaque = Some("an option that polctl does not know: where the inner command begins is not certain");
        return candidates(words, found);
    }
    let wrapper = reader.entries.iter().rev().find_map(|entry| entry.wrapper);
    let mut inner = words.get(own.end..).unwrap_or_default().to_vec();
    if wrapper.is_some_and(|w| w.more) {
        found.reads_input = true;
        inner = inner.iter().map(|word| placeholder(word, &marks)).collect();
        if !inner.is_empty() {
            inner.push(ShellWord::unknown("…"));
        }
    }
    if inner.is_empty() {
        found.carries = own.listed && found.opaque.is_none();
        return;
    }
    if wrapper.is_some() {
        found.commands.push(inner);
    } else if reader.entries.iter().any(|entry| entry.shell_words.is_some()) {
        let texts: Option<Vec<&str>> = inner.iter().map(|word| word.value.known()).collect();
        if let Some(texts) = texts {
            found.lines.push(texts.join(" "));
        } else {
            found.opaque = Some("the line that it runs is only known at run time");
            candidates(&inner, found);
        }
    }
    found.carries = found.opaque.is_none();
}

/// Shells: `-c LINE`, a script, or standard input (POSIX `sh`).
fn shell(reader: &Reader<'_>, words: &[ShellWord], redirects: &[Redirect], found: &mut Inside) {
    let (mut line, mut input) = (false, false);
    let mut at = 0;
    while let Some(word) = words.get(at) {
        let text = match &word.value {
            Value::Known(text) => text.as_str(),
            Value::Starts(_) => break,
            Value::Files(_) | Value::Any => {
                found.opaque = Some("an option of a shell that is only known at run time");
                return candidates(words, found);
            }
        };
        at += 1;
        if text == "--" || text == "-" {
            break;
        }
        if text.starts_with("--") {
            if let Read::Option(_, _, next) = reader.read(word) {
                at += usize::from(next);
            } else {
                found.opaque = Some("an option of a shell that polctl does not know");
                return candidates(words, found);
            }
            continue;
        }
        let Some(letters) = text.strip_prefix(['-', '+']) else {
            at -= 1;
            break;
        };
        for letter in letters.chars() {
            match letter {
                'c' if text.starts_with('-') => line = true,
                's' if text.starts_with('-') => input = true,
                // Each takes a word, wherever it stands in the cluster.
                'o' => at += 1,
                'O' => {
                    at += 1;
                    found.opaque = Some("an option that changes how the shell reads its line");
                }
                letter if letter.is_ascii_alphabetic() => {}
                _ => {
                    found.opaque = Some("an option of a shell that polctl does not know");
                    return candidates(words, found);
                }
            }
        }
    }
    let script = words.get(at);
    found.head += at.min(words.len());
    if line {
        match script.map(|word| &word.value) {
            Some(Value::Known(text)) => {
                found.lines.push(text.clone());
                found.carries = found.opaque.is_none();
                // `sh -c '"$@"' _ rm x`: words behind the line are its parameters.
                candidates(words.get(at + 1..).unwrap_or_default(), found);
            }
            value => {
                if let (Some(Value::Starts(head)), Some(word)) = (value, script) {
                    // What is known of it is read all the same, with a hole.
                    found.lines.push(format!("{head}$_{}", word.tail));
                }
                found.opaque = Some("what the shell runs is only known at run time");
            }
        }
        return;
    }
    let from_input = match script.map(|word| &word.value) {
        None => true,
        Some(Value::Known(path)) => {
            matches!(path.as_str(), "-" | "/dev/stdin" | "/dev/fd/0" | "/proc/self/fd/0")
        }
        Some(_) => {
            found.opaque = Some("the script that the shell runs is only known at run time");
            false
        }
    };
    if !from_input && !input {
        return;
    }
    found.reads_input = true;
    let text = redirects.iter().rev().find_map(|redirect| match redirect {
        Redirect::Text(value) => Some(value),
        _ => None,
    });
    match text {
        Some(Value::Known(text)) => {
            found.lines.push(text.clone());
            found.carries = found.opaque.is_none();
        }
        _ => found.opaque = Some("the shell runs what its standard input holds"),
    }
}

/// Interpreters of other languages: a program on standard input is code that nobody sees.
fn interpreter(words: &[ShellWord], found: &mut Inside) {
    found.opaque = match words.first().map(|word| word.value.known()) {
        None | Some(Some("-" | "/dev/stdin" | "/dev/fd/0")) => {
            Some("it runs the program that its standard input holds")
        }
        Some(None) => Some("the script that it runs is only known at run time"),
        Some(Some(_)) => return,
    };
}
