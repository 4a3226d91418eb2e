//! Text → entries in their order, aliases expanded.

use std::collections::BTreeMap;

use super::super::text::Sign;
use super::super::{Files, Problem, unreadable};
use crate::source::{FileId, Span};

/// Deepest include, and deepest alias in an alias.
const MAX_DEPTH: usize = 16;

/// A name in a list, and whether it is negated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Name {
    pub(super) text: String,
    pub(super) negated: bool,
}

/// A command of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Command {
    /// Every command.
    All,
    /// Every command of a directory.
    Directory(String),
    /// A path, with what its arguments must be.
    Path { path: Vec<Sign>, arguments: Arguments },
    /// What rules cannot say: `sudoedit`, `list`, a regular expression.
    Special(String),
}

/// Arguments of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Arguments {
    Any,
    None,
    Like(Vec<Sign>),
}

/// A command with what stands before it.
#[derive(Clone, Debug)]
pub(super) struct Spec {
    pub(super) command: Command,
    pub(super) negated: bool,
    pub(super) digest: bool,
    pub(super) span: Span,
}

/// Whom commands run as.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct RunAs {
    pub(super) users: Vec<Name>,
    pub(super) groups: Vec<Name>,
}

/// One entry: some users on some machines, one command.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) users: Vec<Name>,
    pub(super) hosts: Vec<Name>,
    /// `None`: not stated.
    pub(super) run_as: Option<RunAs>,
    pub(super) nopasswd: bool,
    /// `NOTBEFORE`, `CHROOT` and the like.
    pub(super) option: Option<String>,
    pub(super) spec: Spec,
}

/// A setting that matters to what is permitted.
#[derive(Clone, Debug)]
pub(super) struct Setting {
    pub(super) text: String,
    pub(super) span: Span,
}

/// All that was read.
#[derive(Debug, Default)]
pub(super) struct Policy {
    pub(super) entries: Vec<Entry>,
    pub(super) settings: Vec<Setting>,
}

/// A line, continued ones joined: each character with its place.
type Line = Vec<(usize, char)>;

#[derive(Default)]
struct Aliases {
    users: BTreeMap<String, Vec<Name>>,
    hosts: BTreeMap<String, Vec<Name>>,
    run_as: BTreeMap<String, Vec<Name>>,
    commands: BTreeMap<String, Vec<Spec>>,
}

pub(super) fn read(files: &mut Files<'_>) -> Result<Policy, Vec<Problem>> {
    let mut lines = Vec::new();
    let mut problems = Vec::new();
    for file in files.files.clone() {
        gather(files, file, 0, &mut lines, &mut problems);
    }
    let mut aliases = Aliases::default();
    let mut rest = Vec::new();
    for (file, line) in lines {
        let mut cursor = Cursor { file, line: &line, at: 0 };
        match cursor.alias(&mut aliases) {
            Ok(true) => {}
            Ok(false) => rest.push((file, line)),
            Err(problem) => problems.push(problem),
        }
    }
    let mut policy = Policy::default();
    for (file, line) in &rest {
        let mut cursor = Cursor { file: *file, line, at: 0 };
        if let Err(problem) = cursor.statement(&aliases, &mut policy) {
            problems.push(problem);
        }
    }
    if problems.is_empty() { Ok(policy) } else { Err(problems) }
}

/// The lines of a file and of what it includes, in order.
fn gather(
    files: &mut Files<'_>,
    file: FileId,
    depth: usize,
    out: &mut Vec<(FileId, Line)>,
    problems: &mut Vec<Problem>,
) {
    let text = files.map.text(file).to_owned();
    for line in logical(&text) {
        let whole: String = line.iter().map(|(_, c)| *c).collect();
        let start = line.first().map_or(0, |(at, _)| *at);
        let span = Span::new(file, start, start + whole.len());
        let Some((_, path)) = include(&whole) else {
            out.push((file, line));
            continue;
        };
        if depth >= MAX_DEPTH {
            problems.push(unreadable(span, "includes are nested too deep", "a file must not include itself"));
            continue;
        }
        let name = files.map.get(file).map_or_else(String::new, |f| f.name.clone());
        match (files.include)(path, &name) {
            Ok(found) => {
                for (name, text) in found {
                    let id = files.map.add(&name, None, &text);
                    gather(files, id, depth + 1, out, problems);
                }
            }
            Err(why) => problems.push(unreadable(
                span,
                format!("`{path}` cannot be read: {why}"),
                "what it holds may deny, so there is no import without it; `--root DIR` says where absolute paths begin",
            )),
        }
    }
}

/// The path of an include, and whether it is a directory.
fn include(line: &str) -> Option<(bool, &str)> {
    let line = line.trim();
    let rest = line.strip_prefix(['@', '#'])?;
    let (directory, path) = match rest.strip_prefix("includedir") {
        Some(path) => (true, path),
        None => (false, rest.strip_prefix("include")?),
    };
    let path = path.strip_prefix(|c: char| c.is_whitespace())?.trim().trim_matches('"');
    (!path.is_empty()).then_some((directory, path))
}

/// Lines without comments; a backslash at the end goes on.
fn logical(text: &str) -> Vec<Line> {
    let mut out = Vec::new();
    let mut line: Line = Vec::new();
    let mut at = 0;
    for part in text.split_inclusive('\n') {
        let content = part.trim_end_matches(['\n', '\r']);
        let (content, goes_on) = content.strip_suffix('\\').map_or((content, false), |head| (head, true));
        line.extend(content.char_indices().map(|(index, c)| (at + index, c)));
        at += part.len();
        if goes_on {
            line.push((at.saturating_sub(1), ' '));
            continue;
        }
        let whole = without_comment(std::mem::take(&mut line));
        if whole.iter().any(|(_, c)| !c.is_whitespace()) {
            out.push(whole);
        }
    }
    let whole = without_comment(line);
    if whole.iter().any(|(_, c)| !c.is_whitespace()) {
        out.push(whole);
    }
    out
}

/// `#` begins a comment unless a number follows (a user's), it is escaped, or it begins an include.
fn without_comment(line: Line) -> Line {
    let whole: String = line.iter().map(|(_, c)| *c).collect();
    if include(&whole).is_some() {
        return line;
    }
    let mut before = ' ';
    let mut quoted = false;
    for (index, (_, c)) in line.iter().enumerate() {
        quoted ^= *c == '"' && before != '\\';
        let next = line.get(index + 1).map_or(' ', |(_, c)| *c);
        let number = next.is_ascii_digit() && (before.is_whitespace() || ",!(%".contains(before));
        if *c == '#' && !quoted && before != '\\' && !number {
            return line.get(..index).unwrap_or_default().to_vec();
        }
        before = *c;
    }
    line
}

struct Cursor<'a> {
    file: FileId,
    line: &'a [(usize, char)],
    at: usize,
}

fn is_alias(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_uppercase())
        && name.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_')
}

impl Cursor<'_> {
    fn peek(&self) -> Option<char> {
        self.line.get(self.at).map(|(_, c)| *c)
    }

    fn place(&self) -> usize {
        self.line.get(self.at).or_else(|| self.line.last()).map_or(0, |(at, _)| *at)
    }

    fn blank(&mut self) {
        while self.peek().is_some_and(char::is_whitespace) {
            self.at += 1;
        }
    }

    fn take(&mut self, c: char) -> bool {
        self.blank();
        let found = self.peek() == Some(c);
        self.at += usize::from(found);
        found
    }

    fn fail(&self, message: impl Into<String>) -> Problem {
        let at = self.place();
        unreadable(
            Span::new(self.file, at, at + 1),
            message,
            "`visudo -c` says whether the source itself reads the file",
        )
    }

    /// A word up to one of these signs or a blank; a backslash takes the next as it is.
    fn word(&mut self, ends: &str) -> String {
        let mut out = String::new();
        self.blank();
        if self.peek() == Some('"') {
            self.at += 1;
            while let Some(c) = self.peek() {
                self.at += 1;
                if c == '"' {
                    break;
                }
                out.push(c);
            }
            return out;
        }
        while let Some(c) = self.peek() {
            if c.is_whitespace() || ends.contains(c) {
                break;
            }
            self.at += 1;
            if c == '\\'
                && let Some(next) = self.peek()
            {
                self.at += 1;
                out.push(next);
            } else {
                out.push(c);
            }
        }
        out
    }

    /// `a, !b, C`
    fn names(&mut self, ends: &str, aliases: Option<&BTreeMap<String, Vec<Name>>>) -> Result<Vec<Name>, Problem> {
        let mut out = Vec::new();
        loop {
            let mut negated = false;
            while self.take('!') {
                negated = !negated;
            }
            let text = self.word(ends);
            if text.is_empty() {
                return Err(self.fail("a name is expected here"));
            }
            expand(&Name { text, negated }, aliases, 0, &mut out).map_err(|why| self.fail(why))?;
            if !self.take(',') {
                return Ok(out);
            }
        }
    }

    /// Reads a definition of aliases; whether it was one.
    fn alias(&mut self, aliases: &mut Aliases) -> Result<bool, Problem> {
        let keyword = self.word("=");
        if !matches!(keyword.as_str(), "User_Alias" | "Host_Alias" | "Runas_Alias" | "Cmnd_Alias" | "Cmd_Alias") {
            return Ok(false);
        }
        loop {
            let name = self.word("=");
            if !is_alias(&name) {
                return Err(self.fail(format!("`{name}` is no name of an alias")));
            }
            if !self.take('=') {
                return Err(self.fail("`=` is expected here"));
            }
            if keyword.starts_with("Cm") {
                let specs = self.commands()?;
                aliases.commands.insert(name, specs);
            } else {
                let names = self.names(",:=", None)?;
                match keyword.as_str() {
                    "User_Alias" => aliases.users.insert(name, names),
                    "Host_Alias" => aliases.hosts.insert(name, names),
                    _ => aliases.run_as.insert(name, names),
                };
            }
            if !self.take(':') {
                break;
            }
        }
        self.end().map(|()| true)
    }

    fn end(&mut self) -> Result<(), Problem> {
        self.blank();
        if self.at < self.line.len() { Err(self.fail("the end of the line is expected here")) } else { Ok(()) }
    }

    fn commands(&mut self) -> Result<Vec<Spec>, Problem> {
        let mut out = Vec::new();
        loop {
            out.push(self.spec()?);
            if !self.take(',') {
                return Ok(out);
            }
        }
    }

    /// One command: digests, negation, path, arguments.
    fn spec(&mut self) -> Result<Spec, Problem> {
        self.blank();
        let start = self.place();
        let mut digest = false;
        while self.is_digest() {
            digest = true;
            self.word(",");
            self.take(',');
            self.blank();
        }
        let mut negated = false;
        while self.take('!') {
            negated = !negated;
        }
        self.blank();
        let path = self.signs(true);
        let text: String = path.iter().map(|sign| if let Sign::Char(c) = sign { *c } else { '*' }).collect();
        if text.is_empty() {
            return Err(self.fail("a command is expected here"));
        }
        let command = if text == "ALL" {
            Command::All
        } else if !text.starts_with('/') {
            // An alias, or a command that is no program.
            if !is_alias(&text) {
                self.signs(false);
            }
            Command::Special(text)
        } else if text.ends_with('/') {
            Command::Directory(text)
        } else {
            self.blank();
            let arguments = self.signs(false);
            let plain: String = arguments.iter().map(|sign| if let Sign::Char(c) = sign { *c } else { '*' }).collect();
            let arguments = match plain.trim() {
                "" => Arguments::Any,
                "\"\"" => Arguments::None,
                text if text.starts_with('^') => {
                    return Ok(self.finish(Command::Special(text.to_owned()), negated, digest, start));
                }
                _ => Arguments::Like(arguments),
            };
            Command::Path { path, arguments }
        };
        Ok(self.finish(command, negated, digest, start))
    }

    fn finish(&self, command: Command, negated: bool, digest: bool, start: usize) -> Spec {
        let end = self.line.get(self.at.saturating_sub(1)).map_or(start, |(at, c)| at + c.len_utf8());
        Spec { command, negated, digest, span: Span::new(self.file, start, end.max(start + 1)) }
    }

    fn is_digest(&self) -> bool {
        let head: String = self.line.get(self.at..).unwrap_or_default().iter().take(7).map(|(_, c)| *c).collect();
        ["sha224:", "sha256:", "sha384:", "sha512:"].contains(&head.as_str())
    }

    /// Signs of a path (up to a blank) or of arguments, up to a sign of the list.
    fn signs(&mut self, path: bool) -> Vec<Sign> {
        let mut out = Vec::new();
        while let Some(c) = self.peek() {
            if ",:".contains(c) || path && (c.is_whitespace() || c == '=') {
                break;
            }
            self.at += 1;
            match c {
                '\\' => {
                    if let Some(next) = self.peek() {
                        self.at += 1;
                        out.push(Sign::Char(next));
                    }
                }
                '*' => out.push(Sign::Any),
                '?' => out.push(Sign::One),
                '[' => {
                    // A class of characters.
                    while self.peek().is_some_and(|c| c != ']') {
                        self.at += 1;
                    }
                    self.at += 1;
                    out.push(Sign::One);
                }
                c => out.push(Sign::Char(c)),
            }
        }
        while !path && matches!(out.last(), Some(Sign::Char(c)) if c.is_whitespace()) {
            out.pop();
        }
        out
    }

    fn statement(&mut self, aliases: &Aliases, policy: &mut Policy) -> Result<(), Problem> {
        let start = self.place();
        let whole: String = self.line.iter().map(|(_, c)| *c).collect();
        if whole.trim_start().starts_with("Defaults") {
            let span = Span::new(self.file, start, start + whole.trim_end().len());
            policy.settings.push(Setting { text: whole.trim().to_owned(), span });
            return Ok(());
        }
        let users = self.names(",", Some(&aliases.users))?;
        loop {
            let hosts = self.names(",=", Some(&aliases.hosts))?;
            if !self.take('=') {
                return Err(self.fail("`=` is expected here, behind users and machines"));
            }
            self.entries(&users, &hosts, aliases, policy)?;
            if !self.take(':') {
                return self.end();
            }
        }
    }

    fn entries(
        &mut self,
        users: &[Name],
        hosts: &[Name],
        aliases: &Aliases,
        policy: &mut Policy,
    ) -> Result<(), Problem> {
        let (mut run_as, mut nopasswd) = (None, false);
        loop {
            if self.take('(') {
                run_as = Some(self.run_as(aliases)?);
            }
            let mut option = None;
            loop {
                self.blank();
                let name: String = self
                    .line
                    .get(self.at..)
                    .unwrap_or_default()
                    .iter()
                    .map(|(_, c)| *c)
                    .take_while(|c| c.is_ascii_uppercase() || *c == '_')
                    .collect();
                let next = self.line.get(self.at + name.len()).map(|(_, c)| *c);
                match next {
                    Some(':') if !name.is_empty() && name != "ALL" && !aliases.commands.contains_key(&name) => {
                        self.at += name.len() + 1;
                        match name.as_str() {
                            "NOPASSWD" => nopasswd = true,
                            "PASSWD" => nopasswd = false,
                            _ => {}
                        }
                    }
                    Some('=') if !name.is_empty() => {
                        self.at += name.len() + 1;
                        self.word(",");
                        option = Some(name);
                    }
                    _ => break,
                }
            }
            let spec = self.spec()?;
            let mut specs = Vec::new();
            commands(&spec, &aliases.commands, 0, &mut specs).map_err(|why| self.fail(why))?;
            policy.entries.extend(specs.into_iter().map(|own| Entry {
                users: users.to_vec(),
                hosts: hosts.to_vec(),
                run_as: run_as.clone(),
                nopasswd,
                option: option.clone(),
                // The entry is what a reader looks for, not the alias.
                spec: Spec { span: spec.span, ..own },
            }));
            if !self.take(',') {
                return Ok(());
            }
        }
    }

    fn run_as(&mut self, aliases: &Aliases) -> Result<RunAs, Problem> {
        let mut out = RunAs::default();
        self.blank();
        if !matches!(self.peek(), Some(':' | ')')) {
            out.users = self.names(",:)", Some(&aliases.run_as))?;
        }
        if self.take(':') {
            self.blank();
            if self.peek() != Some(')') {
                out.groups = self.names(",:)", Some(&aliases.run_as))?;
            }
        }
        if self.take(')') { Ok(out) } else { Err(self.fail("`)` is expected here")) }
    }
}

/// A name, or what its alias stands for; the negation of an alias is that of each of its names.
fn expand(
    name: &Name,
    aliases: Option<&BTreeMap<String, Vec<Name>>>,
    depth: usize,
    out: &mut Vec<Name>,
) -> Result<(), String> {
    match aliases.and_then(|aliases| aliases.get(&name.text)) {
        Some(_) if depth >= MAX_DEPTH => Err(format!("the alias `{}` is nested too deep", name.text)),
        Some(inner) => inner.iter().try_for_each(|own| {
            expand(&Name { text: own.text.clone(), negated: own.negated != name.negated }, aliases, depth + 1, out)
        }),
        None => {
            out.push(name.clone());
            Ok(())
        }
    }
}

fn commands(
    spec: &Spec,
    aliases: &BTreeMap<String, Vec<Spec>>,
    depth: usize,
    out: &mut Vec<Spec>,
) -> Result<(), String> {
    let name = match &spec.command {
        Command::Special(name) if is_alias(name) => name,
        _ => {
            out.push(spec.clone());
            return Ok(());
        }
    };
    let inner = aliases.get(name).ok_or_else(|| format!("the alias `{name}` is not defined"))?;
    if depth >= MAX_DEPTH {
        return Err(format!("the alias `{name}` is nested too deep"));
    }
    inner.iter().try_for_each(|own| {
        let own = Spec { negated: own.negated != spec.negated, digest: own.digest || spec.digest, ..own.clone() };
        commands(&own, aliases, depth + 1, out)
    })
}
