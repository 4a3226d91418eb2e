//! A line → the requests that it really is (DESIGN 3.4).
//!
//! The line's tree is walked in order, with the directories that the working directory may be
//! and the variables that were set so far. Every simple command becomes a request, and so do the
//! commands inside of it. What is not understood becomes a request that no rule names.

use std::collections::BTreeSet;

use super::normalise::{normalise, options_last};
use super::place::{Directories, is_no_file};
use super::scripts;
use super::unwrap::{Inside, called, inside, written};
use crate::model::{CommandRequest, Glob, Place, Program, Request, Surface, Word, ZoneMatcher, program};
use crate::parse::{Assignment, Evaluated, Node, Redirect, Scope, Script, ShellWord, Simple, Value, parse_line};

/// Most requests that are taken from one line; a line with more is denied as a whole.
pub const MAX_PARTS: usize = 4096;

/// Most bytes that the requests of one line hold together; a line with more is denied as a whole.
/// Behind a program that only a variable names, every word may begin a command, and each of these
/// has the words behind it: that grows with the square of their number.
pub const MAX_WEIGHT: usize = 2 << 20;

/// What a word costs beside its text.
const WORD: usize = 32;

/// How deep a line may stand inside a line (`sh -c "sh -c …"`).
pub const MAX_DEPTH: usize = 24;

/// What is known of a line beside its text.
#[derive(Clone, Copy, Debug)]
pub struct Setting<'a> {
    /// Directories whose programs are the ones that rules mean.
    pub trusted_dirs: &'a [String],
    /// The zones' automata.
    pub zones: &'a ZoneMatcher,
    /// Working directory, an absolute path; `None` when nobody said.
    pub cwd: Option<&'a str>,
    /// The agent that asks.
    pub agent: &'a str,
    /// The machine that it runs on.
    pub host: &'a str,
    /// Whether inputs come from outside the session.
    pub external: bool,
}

/// What a part's judgement counts for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// It must be permitted.
    Whole,
    /// Only rules that restrict it count: another spelling, a candidate, or a carrier.
    Restricted,
    /// Only rules that deny it at every tier count: the command of a `sudo`, on the surface without.
    Denied,
    /// It is denied whatever the rules say: the line is more than polctl judges.
    Refused,
}

/// One request of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The request.
    pub request: Request,
    /// What its judgement counts for.
    pub role: Role,
    /// As written.
    pub text: String,
    /// Where it stands: "inside `sh -c`", outermost first.
    pub via: Vec<String>,
    /// What polctl could not tell about it, each one sentence.
    pub notes: Vec<String>,
}

impl Part {
    /// Whether it stands for something that polctl could not read.
    pub fn is_unread(&self) -> bool {
        matches!(&self.request, Request::Command(request) if request.program == UNKNOWN)
    }
}

/// Takes a line of a command surface apart. On the sudo surface the line is the command behind
/// `sudo`, which may stand there too; `-u USER` in front of it sets the user.
pub fn parts(surface: Surface, line: &str, setting: &Setting<'_>) -> Vec<Part> {
    let mut walk = Walk { setting, out: Vec::new(), weight: 0, full: false, evaluated: Evaluated::default() };
    let mut state = State {
        surface,
        dirs: Directories::start(setting.cwd),
        env: BTreeSet::new(),
        functions: BTreeSet::new(),
        wrappers: BTreeSet::new(),
        run_as: "root".into(),
        via: Vec::new(),
        depth: 0,
        role: Role::Whole,
        piped: false,
        inherited: Vec::new(),
    };
    let mut script = parse_line(line);
    if surface == Surface::Sudo {
        take_user(&mut script, &mut state);
    }
    walk.script(&script, &mut state);
    if let Some(text) = walk.evaluated.danger().map(ToOwned::to_owned) {
        let note = "it evaluates a variable that may hold a command, as arithmetic, an index or a name".to_owned();
        walk.unread(&text, &state, note);
    }
    if walk.out.is_empty() {
        // A comment, an assignment: what runs is as much as `:` does.
        walk.nothing(line, &state);
    }
    if walk.full {
        let note = format!(
            "the line runs more than {MAX_PARTS} commands, shells in shells deeper than {MAX_DEPTH}, or more words \
             in more commands than polctl follows"
        );
        let request = Request::Command(CommandRequest::new(surface, UNKNOWN, Vec::new()));
        return vec![Part { request, role: Role::Refused, text: line.to_owned(), via: Vec::new(), notes: vec![note] }];
    }
    walk.out
}

/// On the sudo surface `sudo` itself may stand there, and `-u USER`, perhaps with `--` behind it.
fn take_user(script: &mut Script, state: &mut State) {
    let [Node::Simple(simple)] = script.nodes.as_mut_slice() else { return };
    if simple.words.len() > 1 && simple.words.first().is_some_and(|word| word.value.known() == Some("sudo")) {
        simple.words.remove(0);
    }
    if let [flag, user, ..] = simple.words.as_slice()
        && let (Some("-u"), Some(user)) = (flag.value.known(), user.value.known())
    {
        user.clone_into(&mut state.run_as);
        let ended = simple.words.get(2).is_some_and(|word| word.value.known() == Some("--"));
        simple.words.drain(..if ended { 3 } else { 2 });
    }
}

/// What holds where the walk is.
#[derive(Clone)]
struct State {
    surface: Surface,
    dirs: Directories,
    /// Variables that commands of the line may see.
    env: BTreeSet<String>,
    /// Functions that the line defines.
    functions: BTreeSet<String>,
    wrappers: BTreeSet<String>,
    run_as: String,
    via: Vec<String>,
    depth: usize,
    role: Role,
    /// Its standard input comes from a pipe.
    piped: bool,
    /// Redirects of the commands around, which hold for those inside as well.
    inherited: Vec<Redirect>,
}

struct Walk<'a> {
    setting: &'a Setting<'a>,
    out: Vec<Part>,
    /// Bytes that `out` holds; see [`MAX_WEIGHT`].
    weight: usize,
    full: bool,
    /// Of all scripts of the line: variables pass from one to the other.
    evaluated: Evaluated,
}

/// The name of an environment assignment.
pub(super) fn assignment(word: &str) -> Option<String> {
    let (name, _) = word.split_once('=')?;
    let name = name.strip_suffix('+').unwrap_or(name);
    let good = !name.is_empty()
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    good.then(|| name.to_owned())
}

/// Whether a variable that a line sets without `export` may reach a program: POSIX keeps upper
/// case for the environment; the others here are what programs and zsh are known to read.
fn may_be_exported(name: &str) -> bool {
    name.bytes().any(|b| b.is_ascii_uppercase())
        || name.ends_with("_proxy")
        || name.starts_with("npm_config_")
        || matches!(
            name,
            "path"
                | "fpath"
                | "cdpath"
                | "manpath"
                | "module_path"
                | "fignore"
                | "mailpath"
                | "psvar"
                | "watch"
                | "prompt"
        )
}

impl Walk<'_> {
    fn script(&mut self, script: &Script, state: &mut State) {
        self.evaluated.add(&script.evaluated);
        self.nodes(&script.nodes, state, false);
        for doubt in &script.doubts {
            let mut note = doubt.what.clone();
            if doubt.text.is_empty() {
                note.push_str("; the shell may do more than this line says");
            }
            self.unread(&doubt.text, state, note);
            self.salvage(&doubt.text, state);
        }
    }

    fn nodes(&mut self, nodes: &[Node], state: &mut State, chained: bool) {
        for node in nodes {
            match node {
                Node::Simple(simple) => self.simple(simple, state, chained),
                Node::Group(Scope::Own, inner) => {
                    let mut own = state.clone();
                    self.nodes(inner, &mut own, false);
                    // A name that a subshell defines is taken as defined: it errs on the safe side.
                    state.functions.extend(own.functions);
                }
                // Only of a single command is it sure that it succeeded when the group did.
                Node::Group(Scope::Same, inner) => self.nodes(inner, state, chained && inner.len() == 1),
                Node::Group(Scope::Chain, inner) => self.chain(inner, state),
                Node::Group(Scope::Maybe, inner) => {
                    let before = state.dirs.clone();
                    self.nodes(inner, state, false);
                    state.dirs = state.dirs.or(&before);
                }
                Node::Group(Scope::Loop, inner) => {
                    let (before, parts) = (state.clone(), self.out.len());
                    self.nodes(inner, state, false);
                    if state.dirs != before.dirs && !before.dirs.is_lost() {
                        // The next turn begins where this one ended, and there is no telling how many.
                        self.out.truncate(parts);
                        *state = before.clone();
                        state.dirs = before.dirs.or(&Directories::anywhere());
                        self.nodes(inner, state, false);
                    }
                    state.dirs = state.dirs.or(&before.dirs);
                }
                Node::Function(name, body) => {
                    state.functions.insert(name.clone());
                    let mut later = state.clone();
                    later.dirs = state.dirs.or(&Directories::anywhere());
                    later.via.push(format!("in the function `{name}`"));
                    self.nodes(body, &mut later, false);
                }
            }
            if self.full {
                return;
            }
        }
    }

    /// `a && b || c`: a member runs where the one before led; what stands behind `||` runs where
    /// any of them may have failed, and what follows where any of them may have ended.
    fn chain(&mut self, members: &[Node], state: &mut State) {
        let mut seen = state.dirs.clone();
        for member in members {
            if matches!(member, Node::Group(Scope::Maybe, _)) {
                state.dirs = seen.clone();
            }
            self.nodes(std::slice::from_ref(member), state, true);
            seen = seen.or(&state.dirs);
            if self.full {
                return;
            }
        }
        state.dirs = seen;
    }

    fn simple(&mut self, simple: &Simple, state: &mut State, chained: bool) {
        let mut own = state.clone();
        own.piped |= simple.piped;
        assign(&simple.assignments, &mut own, !simple.words.is_empty());
        if simple.words.is_empty() {
            // The shell itself is changed, for everything that follows.
            state.env.clone_from(&own.env);
            if simple.redirects.is_empty() {
                return;
            }
        }
        self.command(&simple.words, &simple.redirects, &simple.text, &own);
        effects(simple, state, chained);
    }

    /// A command and everything inside of it.
    fn command(&mut self, words: &[ShellWord], redirects: &[Redirect], text: &str, state: &State) {
        if self.out.len() >= MAX_PARTS || state.depth > MAX_DEPTH {
            self.full = true;
            return;
        }
        let Some((first, words)) = words.split_first() else {
            return self.push(":", true, &[], redirects, text, state, &[]);
        };
        let Some(path) = first.value.known().filter(|path| !path.is_empty()) else {
            let note = "its program is only known at run time".to_owned();
            self.push(UNKNOWN, false, words, redirects, text, state, &[note]);
            // `"$D/git"`: what it is called is certain.
            if let Some(name) = called(first) {
                let mut restricted = state.clone();
                restricted.role = restricted.role.max(Role::Restricted);
                self.push(name, false, words, redirects, text, &restricted, &[]);
            }
            return self.candidates(words, state);
        };
        if path.contains(CommandRequest::HOLE) || path.contains(CommandRequest::SEPARATOR) {
            return self.unread(text, state, "its program's name holds a control character".into());
        }
        let name = path.rsplit('/').next().unwrap_or("").to_owned();
        let trusted = path.rsplit_once('/').is_none_or(|(dir, _)| self.setting.trusted_dirs.iter().any(|d| d == dir))
            && !state.functions.contains(&name);
        if !name.bytes().all(|b| b.is_ascii_alphanumeric() || b"._+-@:~!^".contains(&b)) && name != "["
            || name.starts_with('-')
        {
            // No program is called so: the shell may read the words otherwise than polctl.
            self.candidates(words, state);
        }
        let known = program(&name);
        let input: Vec<Redirect> = state.inherited.iter().chain(redirects).cloned().collect();
        let found = known.map(|program| inside(program, words, &input)).unwrap_or_default();
        let mut notes: Vec<String> = found.opaque.map(str::to_owned).into_iter().collect();
        if let Some(program) = known {
            notes.extend(script_note(program, words));
        }
        if evaluates_names(&name, words) {
            notes.push("it evaluates what stands in brackets, or makes a variable that does".into());
        }
        let fed = state.piped
            || input.iter().any(|r| matches!(r, Redirect::Text(_) | Redirect::Read(_) | Redirect::Process(false)));
        if fed && known.is_some_and(|program| program.stdin) && !found.carries {
            notes.push("its standard input may hold commands".into());
        }
        if redirects.iter().any(|r| matches!(r, Redirect::Read(w) | Redirect::Write(w) if network(w))) {
            notes.push("a redirect opens a connection".into());
        }
        self.own_request(&name, trusted, known, words, redirects, text, state, &found, &notes);
        self.insides(&name, found, redirects, state);
    }

    /// The request of the command itself, and other spellings of it.
    #[expect(clippy::too_many_arguments, reason = "what is known of one command")]
    fn own_request(
        &mut self,
        name: &str,
        trusted: bool,
        known: Option<&'static Program<'static>>,
        words: &[ShellWord],
        redirects: &[Redirect],
        text: &str,
        state: &State,
        found: &Inside,
        notes: &[String],
    ) {
        let mut state = state.clone();
        let covered = trusted && found.carries && !known.is_some_and(|p| hazardous(p, words, found.head));
        if covered && state.role == Role::Whole && !known.is_some_and(|p| elsewhere(p, words)) {
            state.role = Role::Restricted;
        }
        let mut request =
            self.request(name, trusted, known, found.own.as_deref().unwrap_or(words), redirects, &state, notes);
        request.covered = state.role == Role::Restricted && covered;
        self.keep(request, text, &state, notes);
        let mut variants: Vec<Vec<ShellWord>> = Vec::new();
        if found.own.is_some() {
            variants.push(words.to_vec());
        }
        if let Some(reordered) = known.and_then(|program| options_last(program, words)) {
            variants.push(reordered);
        }
        for variant in variants {
            let mut restricted = state.clone();
            restricted.role = restricted.role.max(Role::Restricted);
            let request = self.request(name, trusted, known, &variant, redirects, &restricted, notes);
            self.keep(request, text, &restricted, &[]);
        }
    }

    /// Everything that runs inside a command.
    fn insides(&mut self, name: &str, found: Inside, redirects: &[Redirect], state: &State) {
        let mut inner = state.clone();
        inner.depth += 1;
        // What a carrier reads itself is not there for the command inside.
        let kept = |redirect: &&Redirect| !found.reads_input || matches!(redirect, Redirect::Write(_));
        inner.inherited = state.inherited.iter().chain(redirects).filter(kept).cloned().collect();
        inner.wrappers.insert(name.to_owned());
        inner.env.extend(found.env);
        if found.elsewhere {
            inner.dirs = state.dirs.or(&Directories::anywhere());
        }
        for command in &found.commands {
            let text = command.iter().map(|w| w.raw.as_str()).collect::<Vec<_>>().join(" ");
            if matches!(name, "sudo" | "doas") && state.surface == Surface::Commands {
                let mut raised = inner.clone();
                raised.surface = Surface::Sudo;
                raised.run_as = found.user.clone().unwrap_or_else(|| "root".into());
                raised.via.push(format!("behind `{name}`"));
                self.command(command, &[], &text, &raised);
                // A command that is denied is not less so with more rights.
                let mut denied = inner.clone();
                denied.role = Role::Denied;
                denied.via.push(format!("behind `{name}`, by the rules for commands without"));
                self.command(command, &[], &text, &denied);
                continue;
            }
            let mut inner = inner.clone();
            inner.via.push(format!("behind `{name}`"));
            self.command(command, &[], &text, &inner);
        }
        for line in &found.lines {
            let mut inner = inner.clone();
            inner.via.push(format!("inside `{name}`"));
            if inner.depth > MAX_DEPTH {
                self.full = true;
                return;
            }
            self.script(&parse_line(line), &mut inner);
        }
        for candidate in &found.candidates {
            self.candidates(candidate, &inner);
        }
    }

    /// Words that may begin a command: rules that restrict it count.
    fn candidates(&mut self, words: &[ShellWord], state: &State) {
        let mut state = state.clone();
        state.role = state.role.max(Role::Restricted);
        state.depth += 1;
        for at in 0..words.len() {
            let tail = words.get(at..).unwrap_or_default();
            if let Some(name) = tail.first().and_then(called) {
                let raw = tail.iter().map(|w| w.raw.as_str()).collect::<Vec<_>>().join(" ");
                state.via = vec!["if it begins a command".into()];
                let request =
                    self.request(name, true, program(name), tail.get(1..).unwrap_or_default(), &[], &state, &[]);
                self.keep(request, &raw, &state, &[]);
            }
            if self.full || self.out.len() >= MAX_PARTS {
                self.full = true;
                return;
            }
        }
    }

    /// The words of a text that could not be read: any of them may begin a command.
    fn salvage(&mut self, text: &str, state: &State) {
        for piece in text.split(['\n', ';', '&', '|', '(', ')', '{', '}', '`', '<', '>']) {
            let words: Vec<ShellWord> = piece
                .split(|c: char| c.is_whitespace())
                .map(|word| word.trim_matches(['"', '\'', '$', '\\']))
                .filter(|word| !word.is_empty())
                .map(ShellWord::known)
                .collect();
            self.candidates(&words, state);
        }
    }

    /// A request that no rule names.
    fn unread(&mut self, text: &str, state: &State, note: String) {
        self.push(UNKNOWN, false, &[], &[], text, state, &[note]);
    }

    fn nothing(&mut self, text: &str, state: &State) {
        self.push(":", true, &[], &[], text, state, &[]);
    }

    #[expect(clippy::too_many_arguments, reason = "what is known of one command")]
    fn push(
        &mut self,
        name: &str,
        trusted: bool,
        words: &[ShellWord],
        redirects: &[Redirect],
        text: &str,
        state: &State,
        notes: &[String],
    ) {
        let request = self.request(name, trusted, program(name), words, redirects, state, notes);
        self.keep(request, text, state, notes);
    }

    #[expect(clippy::too_many_arguments, reason = "what is known of one command")]
    fn request(
        &self,
        name: &str,
        trusted: bool,
        known: Option<&'static Program<'static>>,
        words: &[ShellWord],
        redirects: &[Redirect],
        state: &State,
        notes: &[String],
    ) -> CommandRequest {
        let normal = normalise(known, words);
        let mut request = CommandRequest::new(state.surface, name, normal.words);
        self.setting.agent.clone_into(&mut request.agent);
        self.setting.host.clone_into(&mut request.host);
        request.external = self.setting.external;
        request.trusted = trusted;
        request.harmless = normal.harmless && notes.is_empty();
        request.globals = normal.globals;
        request.env.clone_from(&state.env);
        request.wrappers.clone_from(&state.wrappers);
        request.run_as.clone_from(&state.run_as);
        let dirs = moved(&state.dirs, words);
        request.place = dirs.place(words, self.setting.zones);
        for word in known.map(|program| written(program, words)).unwrap_or_default() {
            request.writes.extend(state.dirs.target(&word.value, self.setting.zones));
        }
        for redirect in state.inherited.iter().chain(redirects) {
            match redirect {
                Redirect::Write(word) => {
                    if !word.value.known().is_some_and(is_no_file) {
                        request.writes.extend(state.dirs.target(&word.value, self.setting.zones));
                    }
                    request.dynamic |= word.value.known().is_none();
                }
                Redirect::Read(word) => {
                    let named: Place = state.dirs.place(std::slice::from_ref(word), self.setting.zones);
                    request.place.zones.extend(named.zones);
                    match &word.value {
                        Value::Known(path) => request.place.zones.extend(self.setting.zones.argument(path)),
                        _ => request.dynamic = true,
                    }
                }
                Redirect::Process(_) => request.dynamic = true,
                Redirect::Text(Value::Known(_)) | Redirect::Descriptor => {}
                Redirect::Text(_) => request.dynamic = true,
            }
        }
        request
    }

    fn keep(&mut self, request: CommandRequest, text: &str, state: &State, notes: &[String]) {
        let word = |word: &Word| match word {
            Word::Known(text) | Word::Files(text) => text.len(),
            Word::Value | Word::Open => 0,
        };
        self.weight += text.len() + request.words.iter().map(|w| word(w) + WORD).sum::<usize>();
        if self.out.len() >= MAX_PARTS || self.weight > MAX_WEIGHT {
            self.full = true;
            return;
        }
        self.out.push(Part {
            request: Request::Command(request),
            role: state.role,
            text: text.to_owned(),
            via: state.via.clone(),
            notes: notes.to_vec(),
        });
    }
}

/// Remembers what the line sets, as far as a program may see it.
fn assign(assignments: &[Assignment], state: &mut State, exported: bool) {
    for assignment in assignments {
        if exported || may_be_exported(&assignment.name) {
            state.env.insert(assignment.name.clone());
        }
    }
}

/// What a built-in command changes for the rest of the line.
fn effects(simple: &Simple, state: &mut State, chained: bool) {
    // `command cd x` and `builtin cd x` change the shell just the same.
    let prefix = simple
        .words
        .iter()
        .take_while(|w| matches!(w.value.known(), Some("command" | "builtin" | "noglob" | "nocorrect" | "-p" | "--")))
        .count();
    let words = simple.words.get(prefix..).unwrap_or_default();
    let Some(name) = words.first().map(|word| word.value.known().unwrap_or("")) else { return };
    if name.is_empty() || state.functions.contains(name) || matches!(name, "eval" | "source" | "." | "trap" | "shopt") {
        // What runs may change to any directory.
        state.dirs = state.dirs.or(&Directories::anywhere());
    }
    let operands: Vec<&ShellWord> =
        words.iter().skip(1).filter(|w| !w.value.known().is_some_and(|t| t.starts_with('-') && t != "-")).collect();
    match name {
        "cd" | "chdir" => {
            // Both say where it leads.
            let elsewhere = state.env.iter().any(|name| matches!(name.as_str(), "CDPATH" | "HOME" | "OLDPWD" | "PWD"));
            let elsewhere =
                elsewhere || simple.assignments.iter().any(|a| matches!(a.name.as_str(), "CDPATH" | "HOME"));
            let changed =
                if elsewhere { Directories::anywhere() } else { state.dirs.changed(operands.first().copied()) };
            // Outside of a chain the next command runs even when this one fails.
            state.dirs = if chained { changed } else { state.dirs.or(&changed) };
        }
        "pushd" | "popd" => state.dirs = state.dirs.or(&Directories::anywhere()),
        "export" | "declare" | "typeset" | "readonly" | "local" => {
            for word in operands {
                match &word.value {
                    Value::Known(text) | Value::Starts(text) => {
                        state.env.insert(assignment(text).unwrap_or_else(|| text.clone()));
                    }
                    Value::Files(_) | Value::Any => {
                        state.env.insert("?".into());
                    }
                }
            }
        }
        "read" | "mapfile" | "readarray" | "getopts" => {
            // `read -aPS4`: the array's name is glued to its option.
            let glued = words.iter().skip(1).filter_map(|word| word.value.known()?.strip_prefix('-')?.split_once('a'));
            let glued: Vec<ShellWord> = glued.map(|(_, name)| ShellWord::known(name)).collect();
            for word in operands.into_iter().chain(&glued) {
                let name = word.value.known().unwrap_or("?").to_owned();
                if may_be_exported(&name) {
                    state.env.insert(name);
                }
            }
        }
        "printf" => {
            if words.get(1).is_some_and(|word| word.value.known() == Some("-v"))
                && let Some(name) = words.get(2)
            {
                state.env.insert(name.value.known().unwrap_or("?").to_owned());
            }
        }
        _ => {}
    }
}

/// Why a script among the words is not taken for harmless.
fn script_note(program: &Program<'static>, words: &[ShellWord]) -> Option<String> {
    let known: Vec<Option<&str>> = words.iter().map(|word| word.value.known()).collect();
    let entries = program.entries(&known);
    let language = entries.iter().rev().find_map(|entry| entry.script)?;
    let options: Vec<&str> = entries.iter().flat_map(|e| e.script_options.iter().copied()).collect();
    let takes: Vec<&str> = entries.iter().flat_map(|e| e.values.iter().copied()).collect();
    let mut scripts: Vec<Option<&str>> = Vec::new();
    let mut first = None;
    let mut at = 0;
    while let Some(word) = known.get(at) {
        at += 1;
        match word {
            Some(text) if text.starts_with('-') && text.len() > 1 => {
                if let Some(letters) = text.strip_prefix('-').filter(|letters| !letters.starts_with('-')) {
                    // `-ne SCRIPT`, `-neSCRIPT`: the first letter with a value takes the rest of the word, or
                    // the next one.
                    for (place, letter) in letters.char_indices() {
                        let name = format!("-{letter}");
                        let behind = letters.get(place + letter.len_utf8()..).unwrap_or("");
                        let holds = options.contains(&name.as_str());
                        if holds && !behind.is_empty() {
                            scripts.push(Some(behind));
                        } else if holds {
                            scripts.push(known.get(at).copied().flatten());
                        }
                        if holds || takes.contains(&name.as_str()) {
                            at += usize::from(behind.is_empty());
                            break;
                        }
                    }
                    continue;
                }
                let (name, glued) = text.split_once('=').map_or((*text, None), |(n, v)| (n, Some(v)));
                if name.len() > 2 && !entries.iter().any(|entry| entry.lists(name)) {
                    // What is not known may be short for an option that holds a script.
                    scripts.push(None);
                } else if options.contains(&name) {
                    scripts.push(glued.or_else(|| known.get(at).copied().flatten()));
                    at += usize::from(glued.is_none());
                } else if takes.contains(&name) && glued.is_none() {
                    at += 1;
                }
            }
            word if first.is_none() => first = Some(*word),
            _ => {}
        }
    }
    if scripts.is_empty() {
        scripts.extend(first);
    }
    // Several are one: the end of the first may take the beginning of the next with it.
    let whole: Option<Vec<&str>> = scripts.into_iter().collect();
    let plain = whole.is_some_and(|texts| {
        texts.iter().all(|text| scripts::is_plain(language, text)) && scripts::is_plain(language, &texts.join("\n"))
    });
    (!plain).then(|| format!("its script may do more than read and print, or is no {language} that polctl reads"))
}

/// Stands for a program that is not known; no rule can name it.
const UNKNOWN: &str = "\u{1a}";

/// Where the arguments are seen from: `git -C DIR`, `make -C DIR`, `tar -C DIR` see them from
/// there. Options of that name that mean something else make more directories possible, no fewer.
fn moved(dirs: &Directories, words: &[ShellWord]) -> Directories {
    let mut out = dirs.clone();
    for (at, word) in words.iter().enumerate() {
        let Some(text) = word.value.known() else { continue };
        let long = ["--directory", "--chdir", "--cwd", "--prefix", "--work-tree", "--project-directory"];
        let target = if text == "-C" || long.contains(&text) {
            words.get(at + 1).cloned()
        } else {
            let glued = text.strip_prefix("-C").filter(|value| value.contains('/'));
            let named =
                text.split_once('=').filter(|(name, _)| long.contains(name) || *name == "-chdir").map(|(_, v)| v);
            glued.or(named).map(ShellWord::known)
        };
        if let Some(target) = target {
            out = out.or(&dirs.changed(Some(&target)));
        }
    }
    out
}

/// Built-in commands that evaluate an index, or give a variable a way to do so later.
fn evaluates_names(name: &str, words: &[ShellWord]) -> bool {
    let known = |word: &ShellWord| word.value.known().map(str::to_owned);
    let index = || words.iter().any(|word| known(word).is_none_or(|text| text.contains('[')));
    let option = |letters: &str| {
        words.iter().filter_map(known).any(|text| {
            let set = text.strip_prefix('-').or_else(|| text.strip_prefix('+'));
            set.is_some_and(|set| !set.starts_with('-') && set.contains(|c| letters.contains(c)))
        })
    };
    match name {
        "let" => true,
        "read" | "unset" | "mapfile" | "readarray" | "getopts" | "wait" | "printf" => {
            (name != "printf" || option("v")) && index()
        }
        "declare" | "typeset" | "local" | "export" | "readonly" | "integer" => index() || option("in"),
        "test" | "[" => option("vR"),
        _ => false,
    }
}

/// Bash opens connections for these names.
fn network(word: &ShellWord) -> bool {
    match &word.value {
        Value::Known(text) | Value::Starts(text) | Value::Files(text) => {
            text.starts_with("/dev/tcp/") || text.starts_with("/dev/udp/")
        }
        Value::Any => false,
    }
}

/// Whether one of a carrier's own options may do more than carry: then a rule must permit it.
fn hazardous(program: &Program<'static>, words: &[ShellWord], head: usize) -> bool {
    let known: Vec<Option<&str>> = words.iter().map(|word| word.value.known()).collect();
    let entries = program.entries(&known);
    let hazards: Vec<&str> =
        entries.iter().flat_map(|e| &e.hazards).flat_map(|(options, _)| options.iter().copied()).collect();
    let own = words.iter().take(head).filter_map(|word| word.value.known());
    own.flat_map(|text| {
        let mut names = crate::model::option_names(text, program.dashed);
        names.push(text.to_owned());
        names
    })
    .any(|name| {
        hazards.iter().any(|hazard| match hazard.strip_suffix('*') {
            Some(head) if !hazard.starts_with('-') => {
                Glob::from_stars(hazard).matches(&name) || !head.is_empty() && name.starts_with(head)
            }
            _ => {
                *hazard == name
                    || name.starts_with("--")
                        && name.len() > 2
                        && hazard.starts_with(name.as_str())
                        && !entries.iter().any(|entry| entry.lists(&name))
            }
        })
    })
}

/// Whether the command inside runs in another place or as another user, so that a rule must
/// permit the program that takes it there.
fn elsewhere(program: &Program<'static>, words: &[ShellWord]) -> bool {
    let known: Vec<Option<&str>> = words.iter().map(|word| word.value.known()).collect();
    program.entries(&known).iter().any(|entry| entry.elsewhere)
}
