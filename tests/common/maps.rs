//! Random tier maps over a tiny alphabet whose words collide.

use std::fmt::Write as _;

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

/// Programs of rules and requests. `find` has long options with one dash.
pub const PROGRAMS: [&str; 6] = ["git", "a", "ab", "tar", "find", "b"];

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

/// One alternative of a word: literal, or with wildcards.
fn word(tape: &mut Tape<'_>) -> String {
    let text = tape.one(&WORDS);
    match tape.below(10) {
        0..6 => quoted(text),
        6 => "*".to_owned(),
        7 => format!("{}*", if text.is_empty() { "a".to_owned() } else { quoted(text) }),
        8 => format!("*{}", if text.is_empty() { "b".to_owned() } else { quoted(text) }),
        _ => tape.one(&["a*b", "*a*", "-*", "-*f", "*-f*", "--*=a", "*/*"]).to_owned(),
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

fn command_pattern(tape: &mut Tape<'_>) -> String {
    let mut out = braced(tape, |tape| match tape.below(12) {
        10 => "a*".to_owned(),
        11 => "*".to_owned(),
        _ => tape.one(&PROGRAMS).to_owned(),
    });
    let count = match tape.below(16) {
        15 => 14 + tape.below(3),
        n => [1, 0, 2, 1, 3][n % 5],
    };
    for _ in 0..count {
        out.push(' ');
        out.push_str(&braced(tape, word));
    }
    if tape.chance(60) {
        out.push_str(" **");
    }
    out
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

fn items(tape: &mut Tape<'_>, arguments: bool) -> Vec<String> {
    let count = 1 + tape.below(3);
    (0..count)
        .map(|_| if arguments && tape.chance(35) { tape.one(&ARGUMENTS) } else { tape.one(&OPTIONS) }.to_owned())
        .collect()
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
        for percent in [35, 12] {
            if tape.chance(percent) {
                attributes.push(("with", items(tape, true)));
            }
        }
        if tape.chance(20) {
            attributes.push(("only", items(tape, false)));
        }
        if tape.chance(25) {
            attributes.push(("unless", items(tape, true)));
        }
        if surface == 1 && tape.chance(40) {
            attributes.push(("run as", tape.some(&USERS)));
        }
        command_pattern(tape)
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
