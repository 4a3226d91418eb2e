//! Random tier maps over a tiny alphabet whose words collide, and over the words that the program
//! table has for a program.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::rc::Rc;

use polctl::model::{Entry, Program, program, program_table};

use super::{Files, Tape};

/// The head of every generated `polctl.yaml`.
pub const CONFIG: &str = "polctl: v1
set: test
zones:
  workspace: [\"/w/**\"]
  credential: [\"~/.ssh/**\", \"**/key\"]
  policy: [\"/etc/**\"]
  devices: [\"/dev/*\"]
";

/// Programs of rules and requests. `find` has long options with one dash; `a`, `ab` and `b` are
/// not in the program table.
pub const PROGRAMS: [&str; 16] = [
    "git", "a", "ab", "find", "b", "rm", "tar", "cp", "sort", "npm", "env", "timeout", "kubectl", "docker", "dd",
    "bash",
];

/// Words of rules and requests, as text.
pub const WORDS: [&str; 34] = [
    "a",
    "b",
    "ab",
    "-f",
    "-x",
    "-xf",
    "-fx",
    "--force",
    "--force=a",
    "--",
    "-",
    "",
    "a b",
    "/etc/x",
    "~/.ssh/id",
    "../a",
    "of=/dev/a",
    "*",
    "\\",
    "-a",
    "--a",
    "/w/a",
    "key",
    "x=~bob/.ssh",
    "/home/a/.ssh/id",
    "/dev/a/b",
    "-a b",
    "/root/key/",
    "'",
    "-f=a",
    "--forc",
    "--f=a",
    "/w/a:/opt",
    "--key",
];

/// Surfaces by number.
pub const SURFACES: [&str; 3] = ["commands", "sudo", "egress"];

/// Agents and hosts.
pub const NAMES: [&str; 3] = ["a", "b", "ab"];

/// Users.
pub const USERS: [&str; 3] = ["root", "www", "a"];

/// Secrets that the proxy may hold.
pub const SECRETS: [&str; 2] = ["vault://kv/a#t", "bitwarden://x"];

/// One rule of a tier map, as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleText {
    /// Index into [`SURFACES`].
    pub surface: usize,
    /// 0 to 4.
    pub tier: usize,
    /// The pattern.
    pub pattern: String,
    /// Keys and values.
    pub attributes: Vec<(&'static str, Vec<String>)>,
    /// List item, line of a block, or row of a table.
    pub form: usize,
}

/// A literal text as a word of a pattern.
pub fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=/.~:".contains(c);
    if text.is_empty() {
        "''".to_owned()
    } else if text.contains(' ') && !text.contains('\'') {
        format!("'{text}'")
    } else {
        text.chars().map(|c| if plain(c) { c.to_string() } else { format!("\\{c}") }).collect()
    }
}

/// What the program table has for a program, as words: its options that matter to rules, and the
/// paths of its sub-commands.
pub struct Vocabulary {
    /// Paths of sub-commands, some by other names than the usual ones.
    pub paths: Vec<Vec<String>>,
    /// Options, and arguments as items.
    options: BTreeMap<Vec<String>, Vec<String>>,
    /// Options before the sub-command, with their values, and whether they are harmless.
    pub globals: Vec<(Vec<String>, bool)>,
}

thread_local! {
    static VOCABULARIES: RefCell<BTreeMap<String, Rc<Vocabulary>>> = const { RefCell::new(BTreeMap::new()) };
}

/// The words of a program, none for one that the table does not know.
pub fn vocabulary(name: &str) -> Rc<Vocabulary> {
    let known = VOCABULARIES.with_borrow(|all| all.get(name).cloned());
    known.unwrap_or_else(|| {
        let made = Rc::new(Vocabulary::new(program(name)));
        VOCABULARIES.with_borrow_mut(|all| all.insert(name.to_owned(), Rc::clone(&made)));
        made
    })
}

fn options_of(entry: &Entry<'_>) -> Vec<String> {
    let mut out: Vec<&str> = entry.aliases.iter().flatten().copied().collect();
    out.extend(entry.implies.iter().flat_map(|(option, others)| others.iter().chain([option])));
    out.extend(entry.hazards.iter().flat_map(|(options, _)| options));
    for list in [&entry.flags, &entry.values, &entry.optional, &entry.shell_options] {
        out.extend(list.iter().step_by(1 + list.len() / 4));
    }
    out.extend(entry.globals.iter().map(|global| global.option).filter(|option| !option.ends_with('*')));
    // Signs like that of `-?` would need quotes in an item.
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=/.~:*+".contains(c);
    // `msl:*` would read as an attribute.
    let is_key = |option: &str| option.split_once(':').is_some_and(|(head, _)| head.chars().all(char::is_alphabetic));
    let usable = |option: &&str| *option != "--" && !is_key(option) && option.chars().all(plain);
    out.into_iter().filter(usable).map(str::to_owned).collect()
}

impl Vocabulary {
    fn new(known: Option<&Program<'static>>) -> Self {
        let mut out = Vocabulary { paths: Vec::new(), options: BTreeMap::new(), globals: Vec::new() };
        let Some(known) = known else { return out };
        let owned = |path: &[&str]| path.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let mut paths: BTreeSet<Vec<String>> = known.hazardous.iter().map(|(path, _)| owned(path)).collect();
        paths.extend(known.subs.iter().map(|(path, _)| owned(path)));
        paths.extend(known.sub_aliases.iter().flat_map(|(name, others)| [owned(&[name]), owned(&others[..1])]));
        // Sub-commands that have a block of their own come up more often.
        out.paths = paths.into_iter().collect();
        out.paths.extend(known.subs.iter().flat_map(|(path, _)| [owned(path), owned(path), owned(path)]));
        out.options.insert(Vec::new(), options_of(&known.entry));
        for (path, entry) in &known.subs {
            out.options.insert(owned(path), options_of(entry));
        }
        let entries = std::iter::once((Vec::new(), &known.entry));
        let entries =
            entries.chain(known.subs.iter().filter(|(path, _)| path.len() == 1).map(|(path, e)| (owned(path), e)));
        for (_, entry) in entries {
            for global in entry.globals.iter().filter(|global| !global.option.ends_with('*')) {
                let option = global.option.to_owned();
                let words = if global.takes_value { vec![option, "/w/a".to_owned()] } else { vec![option] };
                out.globals.push((words, global.harmless));
            }
        }
        out
    }

    /// An option, or an argument with wildcards, of the program or of the sub-command at a path.
    fn option(&self, tape: &mut Tape<'_>, path: &[String]) -> Option<String> {
        let length = tape.below(path.len() + 1);
        let own = self.options.get(&path[..path.len() - length]).filter(|own| !own.is_empty());
        let own = own.or_else(|| self.options.get(&Vec::new()).filter(|own| !own.is_empty()))?;
        Some(own[tape.wide(own.len())].clone())
    }
}

/// A program by name.
pub fn program_name(tape: &mut Tape<'_>, theme: &[String]) -> String {
    match tape.below(16) {
        15 => any_program(tape),
        12..15 => tape.one(&PROGRAMS).to_owned(),
        _ if theme.is_empty() => tape.one(&PROGRAMS).to_owned(),
        _ => tape.pick(theme).clone(),
    }
}

/// Every program of the table; wrappers, shells and `tar` with its clusters among them.
fn any_program(tape: &mut Tape<'_>) -> String {
    // A rule is about what stands behind `sudo`.
    let plain = |name: &&str| !name.contains(['[', '.', '+', ':']) && !matches!(*name, "sudo" | "doas");
    let names: Vec<&str> = program_table().names().filter(plain).collect();
    names[tape.wide(names.len())].to_owned()
}

/// What a set is about: a few programs.
pub fn theme(tape: &mut Tape<'_>) -> Vec<String> {
    (0..3).map(|_| if tape.chance(12) { any_program(tape) } else { tape.one(&PROGRAMS).to_owned() }).collect()
}

/// Where in a program the words of a rule or request are: the path of a sub-command.
pub fn focus(tape: &mut Tape<'_>, name: &str) -> Vec<String> {
    let words = vocabulary(name);
    if words.paths.is_empty() || tape.chance(20) {
        return Vec::new();
    }
    words.paths[tape.wide(words.paths.len())].clone()
}

/// A word for a request of this program, as text.
pub fn text(tape: &mut Tape<'_>, name: &str, path: &[String]) -> String {
    let kind = tape.below(12);
    if kind < 4 {
        return tape.one(&WORDS).to_owned();
    }
    let Some(option) = vocabulary(name).option(tape, path) else { return tape.one(&WORDS).to_owned() };
    if !option.starts_with('-') {
        return option.replace('*', tape.one(&["a", "", "/etc/x", "b=c"]));
    }
    match kind {
        4..7 => option,
        7 => format!("{option}=a"),
        // An abbreviation, or a cluster.
        8 | 9 if option.starts_with("--") => option[..option.len() - tape.below(option.len() - 2)].to_owned(),
        8 => format!("{option}{}", tape.one(&["a", "f", "x"])),
        9 => format!("-{}{}", tape.one(&["a", "f", "v"]), option.trim_start_matches('-')),
        // Two letters, wherever they come from.
        10 => match vocabulary(name).option(tape, path).filter(|other| other.len() == 2 && option.len() == 2) {
            Some(other) if other.starts_with('-') => format!("{option}{}", &other[1..]),
            _ => option,
        },
        _ => option,
    }
}

/// One alternative of a word: literal, or with wildcards.
fn word(tape: &mut Tape<'_>, name: &str, path: &[String]) -> String {
    let text = text(tape, name, path);
    match tape.below(10) {
        0..6 => quoted(&text),
        6 => "*".to_owned(),
        7 => format!("{}*", if text.is_empty() { "a".to_owned() } else { quoted(&text) }),
        8 => format!("*{}", if text.is_empty() { "b".to_owned() } else { quoted(&text) }),
        _ => tape.one(&["a*b", "*a*", "-*", "-*f", "*-f*", "--*=a", "*/*"]).to_owned(),
    }
}

/// A word for the name of a sub-command, mostly this one.
fn sub_word(tape: &mut Tape<'_>, name: &str, own: &str, at: usize) -> String {
    match tape.below(12) {
        10 => "*".to_owned(),
        11 => format!("{}*", &own[..1]),
        9 => focus(tape, name).get(at).map_or_else(|| own.to_owned(), |other| quoted(other)),
        _ => quoted(own),
    }
}

fn braced(tape: &mut Tape<'_>, mut make: impl FnMut(&mut Tape<'_>) -> String) -> String {
    let first = make(tape);
    if !tape.chance(25) {
        return first;
    }
    let second = make(tape);
    if [&first, &second].contains(&&"''".to_owned()) {
        // Braces hold no empty alternative.
        return first;
    }
    format!("{{{first},{second}}}")
}

/// A pattern, and what its items may be about: one of its programs, and a path there.
fn command_pattern(tape: &mut Tape<'_>, theme: &[String]) -> (String, String, Vec<String>) {
    let name = program_name(tape, theme);
    let path = focus(tape, &name);
    let mut first = true;
    let mut out = braced(tape, |tape| {
        if std::mem::take(&mut first) && !tape.chance(12) {
            return name.clone();
        }
        match tape.below(12) {
            10 => "a*".to_owned(),
            11 => "*".to_owned(),
            9 => format!("{}*", &name[..1]),
            _ => program_name(tape, theme),
        }
    });
    let depth = if tape.chance(15) { 0 } else { path.len() };
    for (at, own) in path.iter().take(depth).enumerate() {
        out.push(' ');
        out.push_str(&braced(tape, |tape| sub_word(tape, &name, own, at)));
    }
    let count = match tape.below(16) {
        15 => 14_usize.saturating_sub(depth) + tape.below(3),
        n if depth > 0 => [0, 0, 1, 0, 1][n % 5],
        n => [1, 0, 2, 1, 3][n % 5],
    };
    for _ in 0..count {
        out.push(' ');
        // The first word of `tar` is a cluster even without a dash.
        out.push_str(&braced(tape, |tape| {
            let text = word(tape, &name, &path);
            match text.trim_start_matches('-') {
                // Braces hold no empty alternative.
                "" | "''" if name == "tar" => "x".to_owned(),
                letters if name == "tar" && tape.chance(25) => letters.to_owned(),
                _ => text,
            }
        }));
    }
    if tape.chance(60) {
        out.push_str(" **");
    }
    (out, name, path)
}

const OPTIONS: [&str; 8] = ["--force", "-f", "-x", "-xf", "--a", "-a", "-fx", "-xa"];
const ARGUMENTS: [&str; 14] = [
    "a",
    "ab",
    "/etc/x",
    "of=/dev/*",
    "--force=a",
    "--force=*",
    "*b",
    "a*",
    "'a b'",
    "~/.ssh/*",
    "-*",
    "\\*",
    "'\\'",
    "--f*",
];

/// Items of an attribute of a rule about this program.
fn items(tape: &mut Tape<'_>, arguments: bool, name: &str, path: &[String]) -> Vec<String> {
    let count = 1 + tape.below(3);
    let one = |tape: &mut Tape<'_>| {
        if arguments && tape.chance(25) {
            return tape.one(&ARGUMENTS).to_owned();
        }
        if tape.chance(25) {
            return tape.one(&OPTIONS).to_owned();
        }
        match vocabulary(name).option(tape, path) {
            Some(option) if option.starts_with("--") && arguments && tape.chance(12) => format!("{option}=/etc/*"),
            Some(option) if option.starts_with('-') || arguments => option,
            _ => tape.one(&OPTIONS).to_owned(),
        }
    };
    (0..count).map(|_| one(tape)).collect()
}

/// Every `when` term, by fact.
const TERMS: [&[&str]; 7] = [
    &["dynamic=any", "dynamic=yes", "dynamic=no"],
    &["names=any", "names=credential", "names=none", "names=policy,credential", "names=workspace,devices,elsewhere"],
    &["writes=any", "writes=workspace,tmp", "writes=none", "writes=elsewhere", "writes=credential"],
    &["env=any", "env=FOO", "env=LANG,FOO", "env=none"],
    &["wrappers=sudo,env", "wrappers=env", "wrappers=none", "wrappers=any"],
    &["external=no", "external=yes"],
    &["trusted=no"],
];

fn when(tape: &mut Tape<'_>, egress: bool) -> Vec<String> {
    if egress {
        return vec![tape.one(TERMS[5]).to_owned()];
    }
    let percent = 20 + tape.below(40);
    let mut out = Vec::new();
    for (fact, terms) in TERMS.iter().enumerate() {
        if tape.chance(if fact == 6 { 6 } else { percent }) {
            out.push(tape.one(terms).to_owned());
        }
    }
    if out.is_empty() { vec!["dynamic=any".to_owned()] } else { out }
}

fn egress_pattern(tape: &mut Tape<'_>) -> String {
    let methods = tape.some(&["GET", "HEAD", "POST"]).join(",");
    let scheme = tape.one(&["https", "https", "http", "wss"]);
    let hosts = [
        "a.example",
        "*.a.example",
        "**.a.example",
        "b.a.example",
        "1.1.1.1",
        "10.0.0.1",
        "A.Example.",
        "[2606:4700::1]",
        "[1.1.1.0/24]",
        "[2606:4700::/32]",
        "[0.0.0.0/0]",
    ];
    let host = tape.one(&hosts);
    let port = tape.one(&["", "", ":8443", ":443", ":80"]);
    let mut path = String::new();
    for _ in 0..[1, 0, 2, 1, 3][tape.below(5)] {
        path.push('/');
        path.push_str(tape.one(&["a", "*", "a*", "ab", "*b", "a*b"]));
    }
    match tape.below(4) {
        0 | 1 => path.push_str("/**"),
        2 if path.is_empty() => path.push('/'),
        2 => {}
        _ => path.push('/'),
    }
    format!("{methods} {scheme}://{host}{port}{path}")
}

/// A random rule. `surface`: of this one only.
pub fn rule(tape: &mut Tape<'_>, surface: Option<usize>) -> RuleText {
    themed(tape, surface, &[])
}

/// A random rule that is mostly about these programs.
pub fn themed(tape: &mut Tape<'_>, surface: Option<usize>, theme: &[String]) -> RuleText {
    let surface = surface.unwrap_or_else(|| [0, 0, 0, 1, 1, 2, 2][tape.below(7)]);
    let tier = [0, 4, 1, 2, 3][tape.below(5)];
    let form = tape.below(3);
    let mut attributes: Vec<(&'static str, Vec<String>)> = Vec::new();
    let pattern = if surface == 2 {
        if tape.chance(30) {
            attributes.push(("secret", tape.some(&SECRETS)));
        }
        egress_pattern(tape)
    } else {
        let (pattern, name, path) = command_pattern(tape, theme);
        for percent in [35, 12] {
            if tape.chance(percent) {
                attributes.push(("with", items(tape, true, &name, &path)));
            }
        }
        if tape.chance(20) {
            attributes.push(("only", items(tape, false, &name, &path)));
        }
        if tape.chance(25) {
            attributes.push(("unless", items(tape, true, &name, &path)));
        }
        if surface == 1 && tape.chance(40) {
            attributes.push(("run as", tape.some(&USERS)));
        }
        pattern
    };
    if tape.chance(40) {
        attributes.push(("when", when(tape, surface == 2)));
    }
    for key in ["agents", "hosts"] {
        if tape.chance(12) {
            attributes.push((key, tape.some(&NAMES)));
        }
    }
    RuleText { surface, tier, pattern, attributes, form }
}

impl RuleText {
    /// The rule in Markdown, below a heading of its tier.
    pub fn markdown(&self) -> String {
        let mut out = format!("## Tier {}\n\n", self.tier);
        let spans = |values: &[String]| values.iter().map(|v| format!("`{v}`")).collect::<Vec<_>>().join(", ");
        match self.form {
            0 => {
                let _ = writeln!(out, "- `{}`", self.pattern);
                for (key, values) in &self.attributes {
                    let _ = writeln!(out, "  - {key}: {}", spans(values));
                }
            }
            1 => {
                let _ = write!(out, "```rules\n{}", self.pattern);
                for (key, values) in &self.attributes {
                    let _ = write!(out, " {key}: {}", values.join(" "));
                }
                out.push_str("\n```\n");
            }
            _ => {
                let (mut head, mut line, mut row) =
                    ("| rule |".to_owned(), "|---|".to_owned(), format!("| `{}` |", self.pattern));
                for (key, values) in &self.attributes {
                    let _ = write!(head, " {key} |");
                    line.push_str("---|");
                    let _ = write!(row, " {} |", spans(values));
                }
                let _ = writeln!(out, "{head}\n{line}\n{row}");
            }
        }
        out.push('\n');
        out
    }
}

/// The settings of a set: provenance, environment, `unmatched` of each surface.
pub fn settings(tape: &mut Tape<'_>) -> (String, [usize; 3]) {
    let mut config = CONFIG.to_owned();
    if tape.chance(20) {
        config.push_str("provenance: off\n");
    }
    if tape.chance(30) {
        config.push_str("allowed_env: [FOO]\n");
    }
    (config, [2 + tape.below(3), 2 + tape.below(3), 2 + tape.below(3)])
}

/// The files of a set with these rules.
pub fn files(settings: &(String, [usize; 3]), rules: &[RuleText]) -> Files {
    let mut config = settings.0.clone();
    let mut out = Files(std::collections::BTreeMap::new());
    let mut names = Vec::new();
    for (surface, name) in SURFACES.iter().enumerate() {
        let own: Vec<String> = rules.iter().filter(|r| r.surface == surface).map(RuleText::markdown).collect();
        if own.is_empty() {
            continue;
        }
        let unmatched = settings.1[surface];
        let head = format!("---\npolctl: v1\nsurface: {name}\nunmatched: {unmatched}\n---\n\n");
        out.0.insert(format!("{name}.md"), head + &own.concat());
        names.push(format!("{name}.md"));
    }
    let _ = writeln!(config, "policies: [{}]", names.join(", "));
    out.0.insert("polctl.yaml".to_owned(), config);
    out
}
