//! Random shell lines: whole ones, made from a grammar, and hostile texts.
//!
//! A whole line is a tree, so that two of them can be put together where a text would not do: a
//! here-document's body stands behind the line that asks for it, not behind the word. Blanks
//! and line ends are signs of their own until the text is written, so that they can be varied.

use super::Tape;

/// A blank between words, until a text is written.
const BLANK: char = '\u{e000}';
/// A line end in a text of shell code, until it is written.
const END: char = '\u{e001}';

/// A piece of shell code.
#[derive(Clone, Debug)]
pub enum Code {
    /// Words and signs as they are, with [`BLANK`] between words.
    Plain(String),
    /// A here-document: `<<E`, and its body with the line that ends it.
    Document(String, String),
    /// One behind the other.
    Many(Vec<Code>),
    /// A line end.
    Newline,
    /// Code between a head and a tail that stands by itself: `$(` … `)`.
    Within(&'static str, Box<Code>, &'static str),
    /// Code as one word, quoted in this manner, behind a head.
    Quoted(String, Box<Code>, Manner),
}

/// How a text becomes one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    /// `'…'`
    Single,
    /// `"…"`
    Double,
    /// `$'…'`
    Ansi,
    /// Backslashes; line ends in single quotes.
    Escaped,
    /// Between backticks.
    Backticks,
}

/// A text in which blanks and line ends are still open.
#[derive(Default)]
struct Writer {
    text: String,
    bodies: Vec<String>,
}

impl Writer {
    fn code(&mut self, code: &Code) {
        match code {
            Code::Plain(text) => self.text.push_str(text),
            Code::Document(head, body) => {
                self.text.push_str(head);
                self.bodies.push(body.clone());
            }
            Code::Many(codes) => codes.iter().for_each(|code| self.code(code)),
            Code::Newline => self.newline(),
            Code::Within(head, inner, tail) => {
                self.text.push_str(head);
                let mut own = Writer::default();
                own.code(inner);
                if !own.bodies.is_empty() {
                    own.newline();
                }
                if own.text.starts_with('(') {
                    // `$((` would be arithmetic.
                    self.text.push(BLANK);
                }
                self.text.push_str(&own.text);
                self.text.push_str(tail);
            }
            Code::Quoted(head, inner, manner) => {
                self.text.push_str(head);
                self.text.push_str(&manner.quoted(&inner.text()));
            }
        }
    }

    fn newline(&mut self) {
        if self.bodies.is_empty() {
            self.text.push(END);
        } else {
            self.text.push('\n');
            self.text.extend(self.bodies.drain(..));
        }
    }

    fn finished(mut self) -> String {
        if !self.bodies.is_empty() {
            self.newline();
        }
        self.text
    }
}

impl Code {
    /// Words and signs as they are; a blank outside of quotes is one between words.
    pub fn plain(text: &str) -> Code {
        let mut quote = None;
        let open = text.chars().map(|c| match (c, quote) {
            (' ', None) => BLANK,
            ('\'' | '"', None) => {
                quote = Some(c);
                c
            }
            (c, Some(end)) if c == end => {
                quote = None;
                c
            }
            (c, _) => c,
        });
        Code::Plain(open.collect())
    }

    /// Code with others around it.
    #[must_use]
    pub fn around(&self, head: &str, tail: &str) -> Code {
        Code::Many(vec![Code::plain(head), self.clone(), Code::plain(tail)])
    }

    /// Two pieces with a sign between them.
    pub fn joined(&self, sign: &str, other: &Code) -> Code {
        let sign = if sign == "\n" { Code::Newline } else { Code::plain(sign) };
        Code::Many(vec![self.clone(), sign, other.clone()])
    }

    /// The text with one blank between words.
    pub fn text(&self) -> String {
        self.open().replace(BLANK, " ").replace(END, "\n")
    }

    fn open(&self) -> String {
        let mut writer = Writer::default();
        writer.code(self);
        writer.finished()
    }

    /// The text with other blanks, comments and continued lines.
    pub fn spread(&self, tape: &mut Tape<'_>) -> String {
        let mut out = String::new();
        out.push_str(tape.one(&["", " ", "\t ", "\n", "# rm -rf / 'x\n", " \\\n "]));
        for c in self.open().chars() {
            match c {
                BLANK => out.push_str(tape.one(&[" ", "  ", "\t", " \\\n", "\\\n ", " \\\n\t\\\n "])),
                END => out.push_str(tape.one(&["\n", "\n\n", " # a \"b $(rm -rf /)\n", "\n# c `\n\n", "\t\n \n"])),
                c => out.push(c),
            }
        }
        out.push_str(tape.one(&["", " ", "\t", "\n", "\n\n", "\n# it's the end", "\n \\\n"]));
        out
    }
}

impl Manner {
    /// The text as one word.
    pub fn quoted(self, text: &str) -> String {
        match self {
            Manner::Single => format!("'{}'", text.replace('\'', "'\\''")),
            Manner::Double => format!("\"{}\"", escaped(text, |c| matches!(c, '\\' | '"' | '$' | '`'))),
            Manner::Ansi => {
                let text = escaped(text, |c| matches!(c, '\\' | '\''));
                format!("$'{}'", text.replace('\n', "\\n").replace('\t', "\\t"))
            }
            Manner::Escaped if text.is_empty() => "''".into(),
            Manner::Escaped => escaped(text, |c| !plain(c) && c != '\n').replace('\n', "'\n'"),
            Manner::Backticks => format!("`{}`", escaped(text, |c| matches!(c, '\\' | '`'))),
        }
    }
}

fn escaped(text: &str, which: impl Fn(char) -> bool) -> String {
    text.chars().flat_map(|c| which(c).then_some('\\').into_iter().chain([c])).collect()
}

/// Whether a character means itself wherever it stands.
fn plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || "_./:@%+,=-".contains(c) || !c.is_ascii()
}

/// A text as one word in some mixture of quotes.
pub fn in_other_quotes(tape: &mut Tape<'_>, text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let mut out = String::new();
    let mut at = 0;
    let pieces = 1 + tape.below(3);
    for piece in 0..pieces {
        let left = chars.len() - at;
        let taken = if piece + 1 == pieces { left } else { tape.below(left + 1) };
        let part: String = chars[at..at + taken].iter().collect();
        at += taken;
        out.push_str(&match tape.below(8) {
            0 => Manner::Single.quoted(&part),
            1 => Manner::Double.quoted(&part),
            2 => Manner::Ansi.quoted(&part),
            3 if part.is_empty() => String::new(),
            3 => Manner::Escaped.quoted(&part),
            4 => format!("${}", Manner::Double.quoted(&part)),
            5 => ansi_numbers(tape, &part),
            6 => escaped(&part, |c| c != '\n').replace('\n', "$'\\n'"),
            _ if part.contains('\n') => Manner::Single.quoted(&part),
            _ => format!("\"\\\n{}\"", escaped(&part, |c| matches!(c, '\\' | '"' | '$' | '`'))),
        });
    }
    if out.is_empty() { "\"\"".into() } else { out }
}

/// `$'…'` with numbers for characters.
fn ansi_numbers(tape: &mut Tape<'_>, text: &str) -> String {
    let mut out = String::from("$'");
    for c in text.chars() {
        let code = u32::from(c);
        match tape.below(6) {
            0 if code < 128 => out.push_str(&format!("\\x{code:02x}")),
            1 if code < 128 => out.push_str(&format!("\\{code:03o}")),
            2 => out.push_str(&format!("\\u{code:04x}")),
            3 => out.push_str(&format!("\\U{code:08X}")),
            _ if matches!(c, '\'' | '\\') => out.extend(['\\', c]),
            _ => out.push(c),
        }
    }
    out.push('\'');
    out
}

/// Commands as words whose text is certain; the policy judges them from tier 0 to refused.
pub const COMMANDS: [&[&str]; 50] = [
    &["ls", "-la"],
    &["cat", "README.md"],
    &["git", "status"],
    &["rm", "-rf", "build"],
    &["rm", "-rf", "/"],
    &["frob", "x"],
    &["touch", "a.txt"],
    &["git", "push", "-f", "origin", "main"],
    &["git", "-C", "/srv/agents/app", "push", "origin", "main"],
    &["cat", "~/.ssh/id"],
    &["echo", "a", "b"],
    &["printf", "%s\\n", "a b"],
    &["pwd"],
    &["true"],
    &["mkdir", "-p", "src/x"],
    &["mkdir", "-p", "/opt/x"],
    &["tee", "/etc/polctl/p"],
    &["find", ".", "-name", "*.c"],
    &["find", ".", "-delete"],
    &["find", ".", "-exec", "rm", "-r", "{}", ";"],
    &["grep", "-rn", "a b", "src"],
    &["sed", "-n", "1,9p", "f"],
    &["sed", "s/a/b/w out", "f"],
    &["git", "add", "-A"],
    &["git", "commit", "-m", "it's $5; rm -rf /"],
    &["git", "-c", "core.pager=./x", "log"],
    &["git", "log", "--output=f"],
    &["git", "reset", "--hard"],
    &["dd", "if=/dev/zero", "of=/dev/sda"],
    &["mkfs.ext4", "/dev/sda"],
    &["kill", "4711"],
    &["npm", "ci"],
    &["make", "test"],
    &["date"],
    &["head", "-n", "3", "../f"],
    &["/usr/bin/git", "status"],
    &["/tmp/git", "status"],
    &["sh", "-c", "rm -rf / && ls"],
    &["env", "A=b", "git", "push"],
    &["xargs", "-n1", "kill"],
    &["sudo", "rm", "-f", "x"],
    &["python3", "-c", "import os; os.remove(\"x\")"],
    &["bash", "run.sh"],
    &["timeout", "9", "shutdown", "now"],
    &["sh"],
    &["bash", "-s", "a"],
    &["cat"],
    &["python3"],
    &["tar", "-xf", "a.tar"],
    &["./run.sh"],
];

/// Words that a line may hold anywhere behind a program, as written.
const MORE: [&str; 40] = [
    "a",
    "-f",
    "src/main.rs",
    "'a b'",
    "\"a b\"",
    "\"$X\"",
    "$X",
    "*.c",
    "src/*.c",
    "--force",
    "--",
    "~/.ssh/id",
    "/etc/polctl/p",
    "../x",
    "\\ ",
    "r''m",
    "$'a\\tb'",
    "{a,b}",
    "x{1..3}y",
    "--out=f",
    "--ou",
    "-r",
    "$((1+2))",
    "${X:-y}",
    "${X:-\"y z\"}",
    "\"${X:-'y'}\"",
    "$@",
    "''",
    "-",
    "a=b",
    "\"it's\"",
    "'a\nb'",
    "\"a\nb\"",
    "a#b",
    "'#'",
    "!",
    "\\#",
    "ä",
    "/srv/agents/app/.env",
    "[ab]c",
];

/// Redirects, as written.
const REDIRECTS: [&str; 17] = [
    "2>&1",
    "> /dev/null",
    "> out.txt",
    ">> /tmp/log",
    "< in.txt",
    "> /etc/polctl/p",
    "2> /tmp/e",
    "&> all",
    "> \"$F\"",
    "<<< 'rm -rf /'",
    "< ~/.ssh/id",
    ">| /srv/agents/x",
    "3<> f",
    "2>&-",
    "> >(cat)",
    "< <(ls)",
    "<<< \"$X\"",
];

/// Assignments in front of a command.
const ASSIGNMENTS: [&str; 7] = ["LANG=C", "CI=1", "X=1", "PATH=/tmp:$PATH", "LD_PRELOAD=./x", "Y='a b'", "Z="];

/// What takes a simple command as its words: head, tail.
pub const WRAPPERS: [(&str, &str); 23] = [
    ("env ", ""),
    ("timeout 9 ", ""),
    ("nice ", ""),
    ("nohup ", ""),
    ("xargs ", ""),
    ("env -i ", ""),
    ("env -u HOME LANG=C ", ""),
    ("timeout -k 5 -s KILL 9 ", ""),
    ("nice -n 5 ", ""),
    ("xargs -0 -n1 ", ""),
    ("xargs -I{} ", ""),
    ("setsid ", ""),
    ("stdbuf -oL ", ""),
    ("ionice -c2 ", ""),
    ("command ", ""),
    ("exec ", ""),
    ("time ", ""),
    ("/usr/bin/env ", ""),
    ("env nice timeout 9 ", ""),
    ("nohup env LANG=C nice ", ""),
    ("find . -exec ", " \\;"),
    ("find . -name a -exec ", " {} +"),
    ("flock /tmp/l ", ""),
];

/// Heads that take a line as one word.
pub const LINES: [&str; 14] = [
    "sh -c ",
    "bash -c ",
    "eval ",
    "bash -lc ",
    "/bin/sh -c ",
    "dash -e -c ",
    "zsh -c ",
    "timeout 9 bash -c ",
    "env LANG=C sh -c ",
    "sh -c -- ",
    "bash <<< ",
    "bash --norc -c ",
    "nice sh -xc ",
    "command eval ",
];

/// Code with a place for a line in it: head, tail.
pub const SHAPES: [(&str, &str); 18] = [
    ("( ", " )"),
    ("{ ", "; }"),
    ("if ", "; then :; fi"),
    ("if true; then ", "; fi"),
    ("if true; then :; elif ", "; then :; else ls; fi"),
    ("if true; then :; else ", "; fi"),
    ("f() { ", "; }; f"),
    ("function g { ", "; }"),
    ("while true; do ", "; done"),
    ("until ", "; do :; done"),
    ("for i in 1 2; do ", "; done"),
    ("case a in a|b) ", ";; *) ls;; esac"),
    ("for ((i=0;i<3;i++)); do ", "; done"),
    ("! { ", "; }"),
    ("{ ", "; } 2>&1"),
    ("( ", " ) > out.txt"),
    ("ls & ", ""),
    ("coproc { ", "; }"),
];

/// Words that hold code: head, tail.
pub const SUBSTITUTIONS: [(&str, &str); 9] = [
    ("$(", ")"),
    ("\"$(", ")\""),
    ("\"a $( ", " ) b\""),
    ("<(", ")"),
    ("${X:-$(", ")}"),
    ("\"${X:-$(", ")}\""),
    ("$(( $(", ") + 1 ))"),
    ("x$(", ")y"),
    (">(", ")"),
];

/// Signs between two lines.
pub const SIGNS: [&str; 7] = [" && ", "; ", " || ", " | ", "\n", " & ", " |& "];

/// A word or more of a command, by chance with code in it.
fn more(tape: &mut Tape<'_>, depth: usize) -> Code {
    if depth > 0 && tape.chance(12) {
        let (head, tail) = tape.one(&SUBSTITUTIONS);
        return Code::Within(head, Box::new(line(tape, depth - 1)), tail);
    }
    if depth > 0 && tape.chance(4) {
        return Code::Quoted(String::new(), Box::new(line(tape, depth - 1)), Manner::Backticks);
    }
    Code::Plain(tape.one(&MORE).to_owned())
}

/// A redirect.
fn redirect(tape: &mut Tape<'_>) -> Code {
    match tape.below(24) {
        at @ 0..17 => Code::plain(REDIRECTS[at]),
        17..19 => Code::Document("<<E".into(), "$(ls) `pwd` $X\nrm -rf /\nE\n".into()),
        19..21 => Code::Document("<<'E'".into(), "it's $(rm -rf /)\n)\nE\n".into()),
        21 => Code::Document("<<-\"E F\"".into(), "\ta\n\tE F\n".into()),
        22 => Code::Document("<<E\\O".into(), "a\nEO\n".into()),
        _ => Code::Document("<<E".into(), "E\n".into()),
    }
}

/// The words of a command from the list, as they would usually be written.
fn words(tape: &mut Tape<'_>, words: &[&str]) -> String {
    let mut out: Vec<String> = Vec::new();
    for word in words {
        let usual =
            if word.chars().all(|c| plain(c) || c == '~') { (*word).to_owned() } else { Manner::Single.quoted(word) };
        out.push(if tape.chance(8) { in_other_quotes(tape, word) } else { usual });
    }
    out.join(&BLANK.to_string())
}

/// A simple command. `bare`: it begins with its program, so that it can stand behind another.
pub fn simple(tape: &mut Tape<'_>, depth: usize, bare: bool) -> Code {
    let mut out = Vec::new();
    let command = tape.one(&COMMANDS);
    if !bare && tape.chance(12) {
        out.push(Code::Plain(tape.one(&ASSIGNMENTS).to_owned()));
    }
    if !bare && tape.chance(4) {
        out.push(redirect(tape));
    }
    out.push(Code::Plain(words(tape, command)));
    for _ in 0..[0, 0, 1, 0, 2][tape.below(5)] {
        out.push(more(tape, depth));
    }
    for _ in 0..[0, 0, 0, 1, 0, 2][tape.below(6)] {
        out.push(redirect(tape));
    }
    let blank = || Code::Plain(BLANK.to_string());
    let many: Vec<Code> = out.into_iter().flat_map(|code| [blank(), code]).skip(1).collect();
    Code::Many(many)
}

/// A command that changes what follows.
fn effect(tape: &mut Tape<'_>) -> Code {
    let effects = [
        "cd /srv/agents/app",
        "cd src",
        "cd ..",
        "cd \"$D\"",
        "cd",
        "X=1",
        "PATH=/tmp:$PATH",
        "export LD_PRELOAD=./x",
        "read LD_PRELOAD",
        "ls() { rm -rf x; }",
        "cd /etc/polctl",
        "pushd /tmp",
        "unset X",
        "set -e",
        "alias ls='rm -rf /'",
    ];
    Code::plain(tape.one(&effects))
}

/// Whole lines.
pub fn line(tape: &mut Tape<'_>, depth: usize) -> Code {
    if depth == 0 {
        return simple(tape, 0, false);
    }
    match tape.below(16) {
        0..5 => simple(tape, depth, false),
        5..9 => {
            let first = line(tape, depth - 1);
            let sign = tape.one(&SIGNS);
            first.joined(sign, &line(tape, depth - 1))
        }
        9..11 => {
            let (head, tail) = tape.one(&SHAPES);
            line(tape, depth - 1).around(head, tail)
        }
        11 => {
            let (head, tail) = tape.one(&WRAPPERS);
            simple(tape, depth - 1, true).around(head, tail)
        }
        12 => {
            let head = tape.one(&LINES);
            let manner = tape.one(&[Manner::Single, Manner::Double, Manner::Ansi, Manner::Escaped]);
            Code::Quoted(head.to_owned(), Box::new(line(tape, depth - 1)), manner)
        }
        13 => effect(tape),
        14 => {
            let comment = Code::Plain(format!("{BLANK}# && rm -rf / 'x"));
            Code::Many(vec![simple(tape, depth, false), comment, Code::Newline, line(tape, depth - 1)])
        }
        _ => {
            let kind = tape.one(&["$(", "`", "<("]);
            let inner = Box::new(line(tape, depth - 1));
            let head = Code::plain("echo ");
            let word = match kind {
                "`" => Code::Quoted(String::new(), inner, Manner::Backticks),
                "$(" => Code::Within("$(", inner, ")"),
                _ => Code::Within("<(", inner, ")"),
            };
            Code::Many(vec![head, word])
        }
    }
}

/// A number below `n`, of two bytes.
pub fn large(tape: &mut Tape<'_>, n: usize) -> usize {
    (tape.below(256) * 256 + tape.below(256)) % n
}

/// A text cut at some character.
fn cut<'t>(tape: &mut Tape<'_>, text: &'t str) -> (&'t str, &'t str) {
    let at = large(tape, text.chars().count() + 1);
    text.split_at(text.char_indices().nth(at).map_or(text.len(), |(at, _)| at))
}

/// Characters and words that mean something to a shell.
const SIGNIFICANT: [&str; 67] = [
    " ",
    "\n",
    "'",
    "\"",
    "$",
    "`",
    "\\",
    "(",
    ")",
    "{",
    "}",
    "<",
    ">",
    "|",
    "&",
    ";",
    "#",
    "*",
    "?",
    "[",
    "]",
    "~",
    "=",
    "!",
    "a",
    "rm",
    "-rf",
    "/",
    "\\\n",
    "\r",
    "\t",
    "\0",
    "\u{1b}",
    "\u{1f}",
    "\u{1a}",
    "\u{a0}",
    "\u{200b}",
    "é",
    "$'",
    "$\"",
    "${",
    "$((",
    "))",
    "<<E",
    "E",
    "<<-'E'",
    "<(",
    "&&",
    "||",
    ";;",
    "if ",
    "then ",
    "fi",
    "do ",
    "done",
    "case ",
    "in ",
    "esac",
    "f()",
    "[[ ",
    " ]]",
    "..",
    "for i",
    "while ",
    "2147483648>",
    "9",
    "0x",
];

/// What opens and what closes it.
pub const OPENERS: [(&str, &str); 20] = [
    ("(", ")"),
    ("$(", ")"),
    ("`", "`"),
    ("\"$(", ")\""),
    ("${x:-", "}"),
    ("\"${x:-", "}\""),
    ("${x:-\"", "\"}"),
    ("{ ", "; }"),
    ("$((", "))"),
    ("<(", ")"),
    ("if ", "; then ls; fi; "),
    ("'", "'"),
    ("a=(", ")"),
    ("[[ ", " ]] "),
    ("((", "))"),
    ("{a,", "}"),
    ("{", "}"),
    ("{a{", "}}"),
    ("case x in a) ", ";; esac"),
    ("while ls; do ", "; done"),
];

/// A text that nobody types, from lines that stand in fixtures and from signs.
pub fn hostile(tape: &mut Tape<'_>, lines: &[String]) -> String {
    let own;
    let one = match large(tape, lines.len() + 60) {
        at if at < lines.len() => &lines[at],
        _ => {
            own = line(tape, 2).text();
            &own
        }
    };
    match tape.below(7) {
        0 => cut(tape, one).0.to_owned(),
        1 => {
            let (head, _) = cut(tape, one);
            let at = large(tape, lines.len());
            head.to_owned() + cut(tape, &lines[at]).1
        }
        2 => (0..tape.below(40)).map(|_| tape.one(&SIGNIFICANT)).collect(),
        3 => {
            let bytes: Vec<u8> = (0..tape.below(60)).map(|_| u8::try_from(tape.below(256)).unwrap()).collect();
            String::from_utf8_lossy(&bytes).into_owned()
        }
        4 => {
            let (head, tail) = cut(tape, one);
            let skipped = tape.below(2);
            let sign = tape.one(&SIGNIFICANT);
            format!("{head}{sign}{}", tail.chars().skip(skipped).collect::<String>())
        }
        5 => {
            let (open, close) = tape.one(&OPENERS);
            let (deep, less) = (tape.below(8), tape.below(3));
            format!("{}{one}{}", open.repeat(deep), close.repeat(deep.saturating_sub(less)))
        }
        _ => {
            let mut text = one.clone();
            for _ in 0..=tape.below(4) {
                let (open, close) = tape.one(&OPENERS);
                text = format!("echo {open}{text}{close}");
            }
            text
        }
    }
}
