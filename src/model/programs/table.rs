//! The reader of the program table: `programs.table`, one stanza for each program.
//!
//! The grammar stands at the head of that file. Stanzas are found at once and read when they
//! are first asked for, so that a hook that judges one command reads one stanza.

use std::collections::{BTreeSet, HashMap};
use std::sync::OnceLock;

use memchr::memmem;

/// A program of the table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Program<'a> {
    /// Long options have one dash, so that `-delete` is one option and not six.
    pub dashed: bool,
    /// It gives a shell by itself, whatever its arguments.
    pub interactive: bool,
    /// It reads the shell language from its script operand or standard input.
    pub shell: bool,
    /// It runs another language from an operand or standard input.
    pub interpreter: bool,
    /// It reads commands from its standard input.
    pub stdin: bool,
    /// Sub-commands may be shortened.
    pub abbreviates: bool,
    /// The sub-commands without hazard; any other word in that place is one. Empty: not known. `-`
    /// stands for none at all.
    pub known: Vec<&'a str>,
    /// What holds without a sub-command.
    pub entry: Entry<'a>,
    /// Sub-commands by their path, each with what holds for it.
    pub subs: Vec<(Vec<&'a str>, Entry<'a>)>,
    /// Sub-commands that a wildcard in their place must not permit, by path, with the reason.
    pub hazardous: Vec<(Vec<&'a str>, &'a str)>,
    /// Other names of sub-commands: canonical name, aliases.
    pub sub_aliases: Vec<(&'a str, Vec<&'a str>)>,
    /// Environment variables that make it run or load something.
    pub env: Vec<&'a str>,
    /// Ways out of restrictions under elevated rights.
    pub escapes: Vec<Escape<'a>>,
}

/// What the table says of a program or one of its sub-commands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Entry<'a> {
    /// Options that may stand before the (next) sub-command.
    pub globals: Vec<Global<'a>>,
    /// Options without a value.
    pub flags: Vec<&'a str>,
    /// Options with a value: next word, glued or behind `=`.
    pub values: Vec<&'a str>,
    /// Options whose value can only be glued or behind `=`.
    pub optional: Vec<&'a str>,
    /// Names of the same option.
    pub aliases: Vec<Vec<&'a str>>,
    /// An option, and options whose effect it includes.
    pub implies: Vec<(&'a str, Vec<&'a str>)>,
    /// Options that execute, write, delete, send, or change where code or configuration comes from.
    pub hazards: Vec<(Vec<&'a str>, &'a str)>,
    /// Operands from this one on, counted from 1, are files that it writes.
    pub output: Option<usize>,
    /// The first word may be a cluster of options without a dash.
    pub bundle: bool,
    /// It runs the command that its words hold.
    pub wrapper: Option<Wrapper>,
    /// Options behind which a command stands, with the words that end it.
    pub exec: Vec<(Vec<&'a str>, Vec<&'a str>)>,
    /// Options with which it tells something and runs nothing.
    pub tells: Vec<&'a str>,
    /// Options whose value is a shell line.
    pub shell_options: Vec<&'a str>,
    /// The operands behind this many, joined by blanks, are a shell line.
    pub shell_words: Option<usize>,
    /// The command inside runs in another place or as another user: it takes a rule for this
    /// program as well.
    pub elsewhere: bool,
    /// Its script operand is in this language.
    pub script: Option<&'a str>,
    /// Options whose value is such a script.
    pub script_options: Vec<&'a str>,
}

/// An option that stands before the sub-command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Global<'a> {
    /// As written: `-C`, `--context`.
    pub option: &'a str,
    /// Whether the next word is its value (unless `=` is used).
    pub takes_value: bool,
    /// Whether a permitting rule may overlook it: it neither executes nor redirects anything.
    pub harmless: bool,
    /// Whether it may also stand behind the sub-command.
    pub anywhere: bool,
}

/// How a program runs the command that its words hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wrapper {
    /// Operands before the command.
    pub operands: usize,
    /// `NAME=value` words before the command set its environment.
    pub assignments: bool,
    /// It adds words that are not known.
    pub more: bool,
}

/// A way in which a program gives a shell, runs another program or writes any file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Escape<'a> {
    /// First words for which it holds; any when empty.
    pub sub_commands: Vec<&'a str>,
    /// Options that it needs; when empty a free argument is enough.
    pub options: Vec<&'a str>,
    /// The escape, as one types it.
    pub how: &'a str,
}

/// What is wrong with a table: line (1-based) and sentence.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}")]
pub struct TableError {
    /// Line of the table.
    pub line: usize,
    /// What is wrong.
    pub what: String,
}

/// A table.
#[derive(Debug)]
pub struct ProgramTable<'a> {
    text: &'a str,
    stanzas: Vec<Stanza<'a>>,
    /// Positions of stanzas by name: a comparison asks some ten thousand times.
    by_name: OnceLock<HashMap<&'a str, usize>>,
}

/// A stanza, found and perhaps read.
#[derive(Debug)]
struct Stanza<'a> {
    /// Where it begins in the text.
    start: usize,
    text: &'a str,
    read: OnceLock<Program<'a>>,
}

impl<'a> Stanza<'a> {
    fn names(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        self.text.lines().next().unwrap_or("").split_ascii_whitespace().skip(1)
    }
}

impl<'a> ProgramTable<'a> {
    /// Finds the stanzas of a table; they are read when asked for.
    pub fn new(text: &'a str) -> Self {
        const HEAD: &str = "program ";
        let first = text.starts_with(HEAD).then_some(0);
        let starts: Vec<usize> =
            first.into_iter().chain(memmem::find_iter(text.as_bytes(), "\nprogram ").map(|at| at + 1)).collect();
        let ends = starts.iter().skip(1).copied().chain([text.len()]);
        let stanzas = starts
            .iter()
            .zip(ends)
            .map(|(start, end)| Stanza {
                start: *start,
                text: text.get(*start..end).unwrap_or(""),
                read: OnceLock::new(),
            })
            .collect();
        ProgramTable { text, stanzas, by_name: OnceLock::new() }
    }

    /// The table's text.
    pub const fn text(&self) -> &'a str {
        self.text
    }

    fn find(&self, name: &str) -> Option<&Stanza<'a>> {
        let by_name = self.by_name.get_or_init(|| {
            // Of two stanzas with one name the first counts.
            let named = self.stanzas.iter().enumerate().rev();
            named.flat_map(|(at, stanza)| stanza.names().map(move |name| (name, at))).collect()
        });
        by_name.get(name).and_then(|at| self.stanzas.get(*at))
    }

    /// The line (1-based) on which a stanza begins.
    fn line(&self, stanza: &Stanza<'_>) -> usize {
        self.text.get(..stanza.start).unwrap_or("").matches('\n').count() + 1
    }

    /// A program's stanza as written.
    pub fn stanza(&self, name: &str) -> Option<&'a str> {
        self.find(name).map(|stanza| stanza.text.trim_end())
    }

    /// The names of all programs, sorted.
    pub fn names(&self) -> impl Iterator<Item = &'a str> + '_ {
        let names: BTreeSet<&'a str> = self.stanzas.iter().flat_map(Stanza::names).collect();
        names.into_iter()
    }

    /// What is said of a program; `python3.11` is a `python3` or a `python`.
    pub fn program(&self, name: &str) -> Option<&Program<'a>> {
        let mut name = name;
        loop {
            if let Some(stanza) = self.find(name) {
                // A test reads every stanza of the table that is built in.
                return Some(stanza.read.get_or_init(|| read(stanza.text, 1).unwrap_or_default()));
            }
            let shorter = name.trim_end_matches(|c: char| c.is_ascii_digit());
            let shorter = shorter.strip_suffix(['.', '-']).unwrap_or(shorter);
            if shorter.len() == name.len() || shorter.is_empty() {
                return None;
            }
            name = shorter;
        }
    }

    /// Reads every stanza.
    ///
    /// # Errors
    ///
    /// [`TableError`] for the first line that the grammar does not know, and for a program that stands twice.
    pub fn check(&self) -> Result<(), TableError> {
        let mut seen: HashMap<&str, usize> = HashMap::new();
        for (index, line) in self.text.lines().enumerate() {
            let fail = |what: String| Err(TableError { line: index + 1, what });
            if let Some(names) = line.strip_prefix("program ") {
                for name in names.split_whitespace() {
                    if let Some(before) = seen.insert(name, index + 1) {
                        return fail(format!("`{name}` stands in line {before} already"));
                    }
                }
            } else if !line.trim().is_empty() && !line.starts_with(['#', ' ']) {
                return fail("a stanza begins with `program`".into());
            }
        }
        for stanza in &self.stanzas {
            read(stanza.text, self.line(stanza))?;
        }
        Ok(())
    }
}

/// Reads one stanza.
fn read(stanza: &str, first: usize) -> Result<Program<'_>, TableError> {
    let mut program = Program::default();
    let mut sub = false;
    let mut paths: Vec<Vec<&str>> = Vec::new();
    let mut block = Entry::default();
    for (index, line) in stanza.lines().enumerate().skip(1) {
        let indent = line.len() - line.trim_start_matches(' ').len();
        let text = line.trim_ascii();
        if text.is_empty() || text.starts_with('#') {
            continue;
        }
        let fail = |what: String| TableError { line: first + index, what };
        let colon = memmem::find(text.as_bytes(), b" : ").and_then(|at| Some((text.get(..at)?, text.get(at + 3..)?)));
        let (text, reason) = colon.unwrap_or((text, ""));
        let words: Vec<&str> = text.split_ascii_whitespace().collect();
        let Some((keyword, rest)) = words.split_first() else { continue };
        if indent == 2 {
            program.subs.extend(paths.drain(..).map(|path| (path, block.clone())));
            block = Entry::default();
            sub = false;
            match *keyword {
                "dashed" => program.dashed = true,
                "interactive" => program.interactive = true,
                "shell" => program.shell = true,
                "interpreter" => program.interpreter = true,
                "stdin" => program.stdin = true,
                "abbreviates" => program.abbreviates = true,
                "known" if !rest.is_empty() => program.known.extend(rest),
                "env" => program.env.extend(rest),
                "hazardous" => {
                    program.hazardous.extend(rest.iter().map(|path| (path.split('/').collect(), reason)));
                }
                "subalias" => match rest {
                    [name, "=", aliases @ ..] if !aliases.is_empty() => {
                        program.sub_aliases.push((name, aliases.to_vec()));
                    }
                    _ => return Err(fail("write `subalias NAME = ALIAS…`".into())),
                },
                "escape" => {
                    let with = rest.iter().position(|w| *w == "with");
                    let (subs, options) = rest.split_at(with.unwrap_or(rest.len()));
                    program.escapes.push(Escape {
                        sub_commands: subs.to_vec(),
                        options: options.iter().skip(1).copied().collect(),
                        how: reason,
                    });
                }
                "sub" => {
                    sub = true;
                    paths = rest.iter().map(|path| path.split('/').collect()).collect();
                }
                keyword => entry(&mut program.entry, keyword, rest, reason).map_err(fail)?,
            }
        } else if indent == 4 && sub {
            entry(&mut block, keyword, rest, reason).map_err(fail)?;
        } else {
            return Err(fail("entries are indented by two blanks, those of a sub-command by four".into()));
        }
    }
    program.subs.extend(paths.into_iter().map(|path| (path, block.clone())));
    Ok(program)
}

/// Reads a line that programs and sub-commands share.
fn entry<'a>(entry: &mut Entry<'a>, keyword: &str, rest: &[&'a str], reason: &'a str) -> Result<(), String> {
    match keyword {
        "flag" => entry.flags.extend(rest),
        "value" => entry.values.extend(rest),
        "optional" => entry.optional.extend(rest),
        "alias" if rest.len() > 1 => entry.aliases.push(rest.to_vec()),
        "implies" => match rest {
            [option, "=", others @ ..] if !others.is_empty() => entry.implies.push((option, others.to_vec())),
            _ => return Err("write `implies OPT = OPT…`".into()),
        },
        "hazard" if !rest.is_empty() => entry.hazards.push((rest.to_vec(), reason)),
        "bundle" => entry.bundle = true,
        "output" => {
            let operands = rest.first().and_then(|word| word.strip_prefix("operands=")?.parse().ok());
            entry.output = Some(operands.filter(|n| *n > 0).ok_or("write `output operands=N`, N from 1")?);
        }
        "elsewhere" => entry.elsewhere = true,
        "tells" => {
            entry.tells.extend(rest);
            entry.flags.extend(rest);
        }
        "wrapper" => {
            let mut wrapper = Wrapper::default();
            for word in rest {
                match (*word, word.strip_prefix("operands=").and_then(|n| n.parse().ok())) {
                    (_, Some(operands)) => wrapper.operands = operands,
                    ("assignments", _) => wrapper.assignments = true,
                    ("more", _) => wrapper.more = true,
                    _ => return Err(format!("`{word}` is nothing that a wrapper has")),
                }
            }
            entry.wrapper = Some(wrapper);
        }
        "exec" => {
            let (ends, options): (Vec<&str>, Vec<&str>) = rest.iter().copied().partition(|w| w.starts_with("until="));
            entry.exec.push((options, ends.into_iter().filter_map(|e| e.strip_prefix("until=")).collect()));
        }
        "shellopt" => entry.shell_options.extend(rest),
        "shellwords" => {
            let operands = rest.first().map(|word| word.strip_prefix("operands=").and_then(|n| n.parse().ok()));
            entry.shell_words = Some(operands.unwrap_or(Some(0)).ok_or("write `shellwords operands=N`")?);
        }
        "script" => entry.script = Some(rest.first().copied().ok_or("write `script LANGUAGE`")?),
        "scriptopt" => entry.script_options.extend(rest),
        "global" => {
            let (Some(option), tail) = (rest.first(), rest.get(1..).unwrap_or_default()) else {
                return Err("write `global OPT [VALUE] [harmless] [anywhere]`".into());
            };
            entry.globals.push(Global {
                option,
                takes_value: tail
                    .iter()
                    .any(|w| !w.is_empty() && w.chars().all(|c| c.is_ascii_uppercase() || c == '_')),
                harmless: tail.contains(&"harmless"),
                anywhere: tail.contains(&"anywhere"),
            });
        }
        other => return Err(format!("`{other}` is no keyword of the table")),
    }
    Ok(())
}
