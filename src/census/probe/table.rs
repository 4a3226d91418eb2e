//! `probes.table`: its syntax, its checks, and the page that is generated from it.
//!
//! The text is part of the program and is read once. A fault in it is a fault of a build, found
//! by a test; a place that cannot be read is left out and the test tells.

use std::sync::OnceLock;

use super::rules::{Pattern, Rules};
use super::{Kind, MovedBy, Moves, Sign};

const TABLE_TEXT: &str = include_str!("../probes.table");

/// One known place.
#[derive(Clone, Debug)]
pub struct Probe {
    /// Stable id, such as `ssh-private-key`.
    pub name: String,
    /// What is there, in a few words.
    pub title: String,
    /// What it gives access to.
    pub kind: Kind,
    /// How its bytes are read.
    pub format: Format,
    /// Where: `~/…` in each home, or absolute; `*` and `?` within one component, no `**`.
    pub paths: Vec<String>,
    /// Environment variables that move it.
    pub moved_by: Vec<MovedBy>,
    /// The loosest mode that the place may have.
    pub max_mode: u32,
    /// What stands between a live and an empty place of this kind.
    pub third: Third,
    /// Where the place and its format are documented.
    pub source: String,
}

/// The third case of a probe, beside a held secret and none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Third {
    /// The sign's name: `delegated`, `encrypted`, `hardware` or `expired`.
    Sign(String),
    /// There is none, and why.
    None(String),
}

/// How the bytes of a place are read. Small and copied; the rules are in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format {
    pub(super) shape: Shape,
    pub(super) rules: usize,
}

impl Format {
    /// Its name in the table, such as `ini`.
    pub fn name(self) -> &'static str {
        SHAPES.iter().find(|(shape, _)| *shape == self.shape).map_or("", |(_, name)| name)
    }

    /// Whether the place is a socket. For one, [`read`](super::read) is called with no bytes.
    pub fn is_socket(self) -> bool {
        self.shape == Shape::Socket
    }

    pub(super) fn rules(self) -> &'static Rules {
        static NONE: OnceLock<Rules> = OnceLock::new();
        table().rules.get(self.rules).unwrap_or_else(|| NONE.get_or_init(Rules::default))
    }
}

/// The readers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    Key,
    KeyStore,
    Ini,
    Json,
    Yaml,
    Toml,
    Xml,
    Netrc,
    Urls,
    Columns,
    Words,
    Token,
    Shell,
    Transcript,
    Ticket,
    Keytab,
    Shadow,
    Sqlite,
    Store,
    Opaque,
    Socket,
}

const SHAPES: [(Shape, &str); 21] = [
    (Shape::Key, "key"),
    (Shape::KeyStore, "key-store"),
    (Shape::Ini, "ini"),
    (Shape::Json, "json"),
    (Shape::Yaml, "yaml"),
    (Shape::Toml, "toml"),
    (Shape::Xml, "xml"),
    (Shape::Netrc, "netrc"),
    (Shape::Urls, "urls"),
    (Shape::Columns, "columns"),
    (Shape::Words, "words"),
    (Shape::Token, "token"),
    (Shape::Shell, "shell"),
    (Shape::Transcript, "transcript"),
    (Shape::Ticket, "ticket"),
    (Shape::Keytab, "keytab"),
    (Shape::Shadow, "shadow"),
    (Shape::Sqlite, "sqlite"),
    (Shape::Store, "store"),
    (Shape::Opaque, "opaque"),
    (Shape::Socket, "socket"),
];

/// A line of the table that cannot be read.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("line {line} of probes.table: {what}")]
pub struct TableError {
    /// Its number, from 1.
    pub line: usize,
    /// What is wrong with it.
    pub what: String,
}

struct Table {
    probes: Vec<Probe>,
    rules: Vec<Rules>,
    faults: Vec<TableError>,
}

fn table() -> &'static Table {
    static TABLE: OnceLock<Table> = OnceLock::new();
    TABLE.get_or_init(|| parse(TABLE_TEXT))
}

/// The known places, in the order of the table.
pub fn probes() -> &'static [Probe] {
    &table().probes
}

/// What is wrong with the table that polctl was built with. Nothing, or its tests fail.
pub fn check() -> &'static [TableError] {
    &table().faults
}

impl Probe {
    /// The path patterns under an environment: the ordinary ones, and those to which variables
    /// move them. `lookup` tells a variable's value.
    pub fn located(&self, lookup: &dyn Fn(&str) -> Option<String>) -> Vec<String> {
        let mut out = self.paths.clone();
        for moved in &self.moved_by {
            let Some(value) = lookup(&moved.variable).filter(|value| !value.is_empty()) else { continue };
            match &moved.how {
                // Kerberos writes the type of a cache before its path.
                Moves::File => out.push(value.strip_prefix("FILE:").unwrap_or(&value).to_owned()),
                Moves::Files => out.extend(value.split(':').filter(|path| !path.is_empty()).map(str::to_owned)),
                Moves::Directory { replaces } => {
                    let value = value.trim_end_matches('/');
                    let inside = self.paths.iter().filter_map(|path| path.strip_prefix(replaces.as_str()));
                    out.extend(inside.filter(|rest| rest.starts_with('/')).map(|rest| format!("{value}{rest}")));
                }
            }
        }
        let mut seen = std::collections::BTreeSet::new();
        out.retain(|path| seen.insert(path.clone()));
        out
    }
}

/// Variables that move whole trees: those of the XDG base directory specification.
const BASES: [(&str, &str); 5] = [
    ("XDG_CONFIG_HOME", "~/.config"),
    ("XDG_DATA_HOME", "~/.local/share"),
    ("XDG_CACHE_HOME", "~/.cache"),
    ("XDG_STATE_HOME", "~/.local/state"),
    ("XDG_RUNTIME_DIR", "/run/user/*"),
];

/// A probe as its lines come.
struct Draft {
    line: usize,
    probe: Probe,
    rules: Rules,
    shape: Option<Shape>,
    has_kind: bool,
}

impl Draft {
    fn new(line: usize, name: &str, title: &str) -> Self {
        let probe = Probe {
            name: name.to_owned(),
            title: title.to_owned(),
            kind: Kind::Service,
            format: Format { shape: Shape::Opaque, rules: 0 },
            paths: Vec::new(),
            moved_by: Vec::new(),
            max_mode: 0o600,
            third: Third::None(String::new()),
            source: String::new(),
        };
        Draft { line, probe, rules: Rules::default(), shape: None, has_kind: false }
    }

    /// Reads one entry. The error says what is wrong with it.
    fn entry(&mut self, word: &str, rest: &str) -> Result<(), String> {
        match word {
            "kind" => {
                self.probe.kind = Kind::from_name(rest).ok_or_else(|| format!("`{rest}` is no kind"))?;
                self.has_kind = true;
            }
            "format" => {
                let known = SHAPES.iter().find(|(_, name)| *name == rest);
                self.shape = Some(known.ok_or_else(|| format!("`{rest}` is no format"))?.0);
            }
            "path" => self.path(rest)?,
            "moved" => self.moved(rest)?,
            "mode" => {
                self.probe.max_mode = u32::from_str_radix(rest, 8).map_err(|_| format!("`{rest}` is no mode"))?;
            }
            "third" => {
                let (sign, why) = rest.split_once(" : ").unwrap_or((rest, ""));
                self.probe.third = match sign {
                    "none" if !why.is_empty() => Third::None(why.to_owned()),
                    "delegated" | "encrypted" | "hardware" | "expired" => Third::Sign(sign.to_owned()),
                    _ => return Err(format!("`{sign}` is no third case, or `none` lacks its reason")),
                };
            }
            "source" => rest.clone_into(&mut self.probe.source),
            _ => return self.rule(word, rest),
        }
        Ok(())
    }

    fn path(&mut self, path: &str) -> Result<(), String> {
        if !(path.starts_with("~/") || path.starts_with('/')) || path.contains("**") || path.contains("/../") {
            return Err(format!("`{path}` is not a path below `~` or `/`, or it has `**`"));
        }
        for (variable, replaces) in BASES {
            let moved =
                MovedBy { variable: variable.to_owned(), how: Moves::Directory { replaces: replaces.to_owned() } };
            let below = path.strip_prefix(replaces).is_some_and(|rest| rest.starts_with('/'));
            if below && !self.probe.moved_by.contains(&moved) {
                self.probe.moved_by.push(moved);
            }
        }
        self.probe.paths.push(path.to_owned());
        Ok(())
    }

    fn moved(&mut self, rest: &str) -> Result<(), String> {
        let words: Vec<&str> = rest.splitn(3, ' ').collect();
        let (variable, how) = match words.as_slice() {
            [variable, "file"] => (variable, Moves::File),
            [variable, "files"] => (variable, Moves::Files),
            [variable, "directory", replaces] => (variable, Moves::Directory { replaces: (*replaces).to_owned() }),
            _ => return Err(format!("`{rest}` is not `VARIABLE file`, `files` or `directory DIR`")),
        };
        self.probe.moved_by.push(MovedBy { variable: (*variable).to_owned(), how });
        Ok(())
    }

    fn rule(&mut self, word: &str, rest: &str) -> Result<(), String> {
        let (patterns, to) = rest.split_once(" : ").unwrap_or((rest, ""));
        let mut parsed = patterns.split(' ').filter(|p| !p.is_empty()).map(Pattern::new);
        match word {
            "live" => self.rules.live.extend(parsed),
            "each" => self.rules.each.extend(parsed),
            "timed" => self.rules.timed.extend(parsed),
            "until" => self.rules.until.extend(parsed),
            "encrypted" => self.rules.encrypted.extend(parsed),
            "hardware" => self.rules.hardware.extend(parsed),
            "delegated" if to.is_empty() => return Err("`delegated` does not say to what".to_owned()),
            "delegated" => self.rules.delegated.extend(parsed.map(|p| (p, to.to_owned()))),
            "column" => {
                self.rules.column = rest.parse().map_err(|_| format!("`{rest}` is no number"))?;
            }
            "rows" => self.rules.rows.extend(patterns.split(' ').map(str::to_owned)),
            "holds" => {
                self.rules.holds = Some(match patterns {
                    "live" => Sign::Live,
                    "encrypted" => Sign::Encrypted,
                    "delegated" if !to.is_empty() => Sign::delegated(to),
                    _ => return Err(format!("`{rest}` is no sign for all of a file")),
                });
            }
            "marked" => {
                let (sign, text) = rest.split_once(' ').unwrap_or((rest, ""));
                let sign = match sign {
                    "live" => Sign::Live,
                    "encrypted" => Sign::Encrypted,
                    _ => return Err(format!("`{sign}` is no sign of a mark")),
                };
                self.rules.marks.push((text.to_owned(), sign));
            }
            _ => {
                return Err(format!(
                    "`{word}` is not known here: {}",
                    parsed.next().map_or("", |_| "see the head of the table")
                ));
            }
        }
        Ok(())
    }

    /// What a finished probe lacks.
    fn lacks(&self) -> Option<&'static str> {
        let structured = matches!(
            self.shape,
            Some(Shape::Ini | Shape::Json | Shape::Yaml | Shape::Toml | Shape::Xml | Shape::Words)
        );
        [
            (!self.has_kind, "a kind"),
            (self.shape.is_none(), "a format"),
            (self.probe.paths.is_empty(), "a path"),
            (self.probe.source.is_empty(), "a source"),
            (self.probe.title.is_empty(), "a title"),
            (self.probe.third == Third::None(String::new()), "its third case"),
            (structured && self.rules.is_empty(), "the keys that hold its secrets"),
            (self.shape == Some(Shape::Sqlite) && self.rules.rows.is_empty() && self.rules.marks.is_empty(), "rows"),
        ]
        .into_iter()
        .find_map(|(missing, what)| missing.then_some(what))
    }
}

fn parse(text: &str) -> Table {
    let mut table = Table { probes: Vec::new(), rules: Vec::new(), faults: Vec::new() };
    let mut draft: Option<Draft> = None;
    for (at, line) in text.lines().enumerate() {
        let fault = |what: String| TableError { line: at + 1, what };
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(entry) = line.strip_prefix("  ") {
            let (word, rest) = entry.split_once(' ').unwrap_or((entry, ""));
            let read = match &mut draft {
                Some(draft) => draft.entry(word, rest.trim()),
                None => Err("an entry before the first probe".to_owned()),
            };
            table.faults.extend(read.err().map(fault));
        } else if let Some((name, title)) = line.strip_prefix("probe ").and_then(|head| head.split_once(" : ")) {
            finish(draft.replace(Draft::new(at + 1, name, title)), &mut table);
        } else {
            table.faults.push(fault("neither `probe NAME : title` nor an indented entry".to_owned()));
        }
    }
    finish(draft, &mut table);
    table
}

fn finish(draft: Option<Draft>, table: &mut Table) {
    let Some(mut draft) = draft else { return };
    let mut fault = |what: String| table.faults.push(TableError { line: draft.line, what });
    if let Some(missing) = draft.lacks() {
        fault(format!("`{}` lacks {missing}", draft.probe.name));
    }
    if table.probes.iter().any(|probe| probe.name == draft.probe.name) {
        fault(format!("`{}` stands twice", draft.probe.name));
    }
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if !draft.probe.name.chars().all(plain) {
        fault(format!("`{}` has other characters than a-z, 0-9 and `-`", draft.probe.name));
    }
    draft.rules.kind = draft.probe.kind;
    draft.probe.format = Format { shape: draft.shape.unwrap_or(Shape::Opaque), rules: table.rules.len() };
    table.rules.push(draft.rules);
    table.probes.push(draft.probe);
}

/// The page `docs/census-locations.md`: every place with its format, variables and source.
pub fn locations_page() -> String {
    let mut out = String::from(
        "# Places that `polctl census` knows\n\n\
         This page is written by polctl from `src/census/probes.table`; a test compares the two. \
         Each place is read and judged by its content, never by its name alone. No value is ever shown.\n\n\
         *Third case* is what lies between a secret that can be used and none: *delegated* (a helper, a command, \
         a variable or another file holds it), *encrypted*, *hardware* or *expired*. \
         *Mode* is the loosest one that is accepted.\n",
    );
    out.push_str(&format!("\n{} places.\n", probes().len()));
    for kind in Kind::all() {
        let of_kind: Vec<&Probe> = probes().iter().filter(|probe| probe.kind == kind).collect();
        if of_kind.is_empty() {
            continue;
        }
        out.push_str(&format!("\n## {}\n\n", kind.name()));
        out.push_str("| name | what | where | moved by | format | mode | third case | source |\n");
        out.push_str("|---|---|---|---|---|---|---|---|\n");
        of_kind.iter().for_each(|probe| out.push_str(&row(probe)));
    }
    out
}

fn row(probe: &Probe) -> String {
    let code = |text: &String| format!("`{text}`");
    let paths: Vec<String> = probe.paths.iter().map(code).collect();
    let moved: Vec<String> = probe.moved_by.iter().map(|moved| code(&moved.variable)).collect();
    let third = match &probe.third {
        Third::Sign(sign) => sign.clone(),
        Third::None(why) => format!("none: {why}"),
    };
    format!(
        "| {} | {} | {} | {} | {} | {:04o} | {third} | {} |\n",
        probe.name,
        probe.title,
        paths.join(" "),
        moved.join(" "),
        probe.format.name(),
        probe.max_mode,
        probe.source
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(entries: &str) -> Vec<String> {
        parse(&format!("probe a : A\n{entries}")).faults.into_iter().map(|fault| fault.what).collect()
    }

    const SOUND: &str = "  kind cloud\n  format ini\n  path ~/a\n  live b\n  third none : c\n  source d\n";

    #[test]
    fn a_broken_table_is_told() {
        assert_eq!(faults(SOUND), Vec::<String>::new());
        for (entry, what) in [
            ("  kind clod\n", "`clod` is no kind"),
            ("  format i\n", "`i` is no format"),
            ("  path a\n", "`a` is not a path"),
            ("  path ~/**/a\n", "is not a path"),
            ("  mode 9\n", "`9` is no mode"),
            ("  third none\n", "no third case"),
            ("  moved A where\n", "`A where` is not"),
            ("  delegated a\n", "to what"),
            ("  holds much\n", "no sign for all"),
            ("  lives a\n", "`lives` is not known"),
            ("live a\n", "neither `probe NAME"),
            ("probe a : A\n", "`a` stands twice"),
        ] {
            let told = faults(&format!("{SOUND}{entry}"));
            assert!(told.iter().any(|fault| fault.contains(what)), "{entry}: {told:?}");
        }
        for left_out in SOUND.lines() {
            let told = faults(&SOUND.replace(&format!("{left_out}\n"), ""));
            assert!(told.iter().any(|fault| fault.contains("lacks")), "without `{left_out}`: {told:?}");
        }
        assert_eq!(parse("  kind cloud\n").faults.len(), 1);
    }
}
