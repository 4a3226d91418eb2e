//! What a rule is matched against (DESIGN 3.4, 3.5), and the facts that follow from it.
//!
//! A request is what the normaliser found on a line or the proxy found on the wire; facts are
//! what the Cedar context holds. The way from one to the other is here and nowhere else, so
//! that Cedar, the analysis and the examples all speak of the same thing.

use std::collections::BTreeSet;
use std::net::IpAddr;

use super::programs::single_dash_long;
use super::{MAX_WORDS, Scheme, Surface, ZoneMatcher, Zones};

/// One word behind the program.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Word {
    /// Its text is certain.
    Known(String),
    /// One argument whose text is only known at run time, and which is surely no option.
    Value,
    /// The names of files that match this pattern, one or more; surely no options.
    Files(String),
    /// Anything: it may split into many words, vanish, or be an option.
    Open,
}

/// Where the command runs, as far as path-like arguments depend on it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Place {
    /// Whether the working directory is known, so that `..` can be resolved.
    pub known: bool,
    /// Zones of the working directory and of what `..` leads to.
    pub zones: BTreeSet<String>,
}

/// One simple command.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CommandRequest {
    /// Commands or sudo.
    pub surface: Surface,
    /// The agent that asks.
    pub agent: String,
    /// The machine it runs on.
    pub host: String,
    /// Base name of the program.
    pub program: String,
    /// Whether it was named bare or by a path in a trusted directory.
    pub trusted: bool,
    /// Whether every option before the sub-command is known to be harmless, and nothing in the
    /// words is known to run or write what they do not say.
    pub harmless: bool,
    /// Whether it only carries a command that is a request of its own (`timeout 9 git status`):
    /// rules that restrict it count, and no rule need permit it.
    pub covered: bool,
    /// Options before the sub-command, with their values, as they were taken away.
    pub globals: Vec<String>,
    /// Arguments after normalisation.
    pub words: Vec<Word>,
    /// Zones written by redirects; [`Zones::ELSEWHERE`] and [`Zones::UNKNOWN`] included.
    pub writes: BTreeSet<String>,
    /// Names of environment assignments in front of the command.
    pub env: BTreeSet<String>,
    /// Wrappers taken off.
    pub wrappers: BTreeSet<String>,
    /// Whether any part is only known at run time.
    pub dynamic: bool,
    /// Whether inputs come from outside the session.
    pub external: bool,
    /// Working directory.
    pub place: Place,
    /// On the sudo surface, the user it runs as.
    pub run_as: String,
}

impl CommandRequest {
    /// Joins arguments in `line`; no argument may hold it.
    pub const SEPARATOR: char = '\u{1f}';
    /// Stands for an unknown word in `line`; no argument may hold it.
    pub const HOLE: char = '\u{1a}';

    /// A plain request: `program` named bare, with these words, nothing else.
    pub fn new(surface: Surface, program: &str, words: Vec<Word>) -> Self {
        CommandRequest {
            surface,
            agent: "agent".into(),
            host: "host".into(),
            program: program.into(),
            trusted: true,
            harmless: true,
            covered: false,
            globals: Vec::new(),
            words,
            writes: BTreeSet::new(),
            env: BTreeSet::new(),
            wrappers: BTreeSet::new(),
            dynamic: false,
            external: false,
            place: Place::default(),
            run_as: "root".into(),
        }
    }

    /// The facts of this request.
    pub fn facts(&self, zones: &ZoneMatcher) -> CommandFacts {
        let mut args = Vec::new();
        let mut unknown = BTreeSet::new();
        let mut names = self.place.zones.clone();
        names.extend(self.globals.iter().flat_map(|word| zones.argument(word)));
        let mut known_words = Vec::new();
        let mut line = String::from(Self::SEPARATOR);
        let mut open = false;
        let mut many = false;
        let mut runtime = false;
        for (index, word) in self.words.iter().enumerate() {
            let position = index + 1;
            let text = match word {
                Word::Known(text) if !text.contains([Self::SEPARATOR, Self::HOLE, '\0']) => Some(text),
                Word::Value => {
                    runtime = true;
                    None
                }
                Word::Files(pattern) => {
                    many = true;
                    names.extend(zones.files(pattern));
                    None
                }
                // A word that the context cannot hold is treated as knowing nothing of it.
                Word::Open | Word::Known(_) => {
                    open = true;
                    runtime = true;
                    None
                }
            };
            if let Some(text) = text {
                line.push_str(text);
                names.extend(zones.argument(text));
                known_words.push(text.clone());
            } else {
                line.push(Self::HOLE);
                unknown.insert(position.min(MAX_WORDS + 1));
            }
            line.push(Self::SEPARATOR);
            if open || many {
                unknown.extend(position.min(MAX_WORDS + 1)..=MAX_WORDS + 1);
            }
            if position <= MAX_WORDS {
                args.push(text.filter(|_| !open && !many).cloned());
            }
        }
        if self.place.known {
            names.remove(Zones::UNRESOLVED);
        }
        if runtime {
            // What is not known may name anything.
            names.insert(Zones::UNRESOLVED.to_owned());
        }
        let (options, certain) = self.options();
        CommandFacts {
            agent: self.agent.clone(),
            host: self.host.clone(),
            program: self.program.clone(),
            trusted: self.trusted,
            harmless: self.harmless,
            args,
            argc: self.words.len(),
            line,
            known_words,
            options,
            certain,
            globals: self.globals.iter().flat_map(|word| option_names(word, single_dash_long(&self.program))).collect(),
            dynamic: self.dynamic || runtime,
            unknown,
            open,
            many,
            covered: self.covered,
            writes: self.writes.clone(),
            names,
            env: self.env.clone(),
            wrappers: self.wrappers.clone(),
            external: self.external,
            run_as: (self.surface == Surface::Sudo).then(|| self.run_as.clone()),
        }
    }

    /// Options that may be present and those that certainly are. See
    /// `docs/policy-format.md`, "with, only, unless".
    fn options(&self) -> (BTreeSet<String>, BTreeSet<String>) {
        let dashed = single_dash_long(&self.program);
        let (mut possible, mut certain) = (BTreeSet::new(), BTreeSet::new());
        let mut may_be_value = false;
        let mut certainty = true;
        for word in &self.words {
            let text = match word {
                Word::Known(text) => text.as_str(),
                Word::Value | Word::Files(_) => {
                    may_be_value = false;
                    continue;
                }
                Word::Open => {
                    certainty = false;
                    continue;
                }
            };
            if text == "--" {
                if !may_be_value && certainty && !dashed {
                    break;
                }
                // It ends the options, or is the value of the option before it, or the program
                // is one like `find`, which reads its expression behind it all the same.
                certainty = false;
                may_be_value = false;
                continue;
            }
            let names = option_names(text, dashed);
            if certainty && !may_be_value {
                certain.extend(names.first().cloned());
            }
            may_be_value = !names.is_empty() && !text.contains('=');
            possible.extend(names);
        }
        (possible, certain)
    }
}

/// The options that a word may stand for; the first is the one that it stands for if it is an
/// option at all. Empty for what is no option. `dashed`: the program's long options have one dash.
pub fn option_names(word: &str, dashed: bool) -> Vec<String> {
    let head = word.split('=').next().unwrap_or("");
    if let Some(name) = head.strip_prefix("--") {
        return match (name, dashed) {
            ("", _) => Vec::new(),
            (name, true) => vec![format!("-{name}")],
            (_, false) => vec![head.to_owned()],
        };
    }
    match head.strip_prefix('-') {
        None | Some("") => Vec::new(),
        Some(_) if dashed => vec![head.to_owned()],
        Some(letters) => letters.chars().map(|c| format!("-{c}")).collect(),
    }
}

/// What the Cedar context of a command holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandFacts {
    /// Cedar principal.
    pub agent: String,
    /// Cedar resource.
    pub host: String,
    /// `program`
    pub program: String,
    /// `trusted`
    pub trusted: bool,
    /// `harmless`
    pub harmless: bool,
    /// `arg1` …: present where position and text are certain.
    pub args: Vec<Option<String>>,
    /// `argc`: number of words as written.
    pub argc: usize,
    /// `line`: every word, each between separators.
    pub line: String,
    /// The words of `line` that are known.
    pub known_words: Vec<String>,
    /// `options`: those that may be present.
    pub options: BTreeSet<String>,
    /// `certain`: those that certainly are.
    pub certain: BTreeSet<String>,
    /// `globals`: options that stood before the sub-command.
    pub globals: BTreeSet<String>,
    /// `unknown`: positions whose word is not certain; [`MAX_WORDS`] + 1 for any behind the last.
    pub unknown: BTreeSet<usize>,
    /// `open`: the number of words and the options are not certain.
    pub open: bool,
    /// `many`: the number of words is not certain; it is `argc` at least.
    pub many: bool,
    /// `covered`: what it carries is a request of its own.
    pub covered: bool,
    /// `writes`
    pub writes: BTreeSet<String>,
    /// `names`
    pub names: BTreeSet<String>,
    /// `env`
    pub env: BTreeSet<String>,
    /// `wrappers`
    pub wrappers: BTreeSet<String>,
    /// `dynamic`
    pub dynamic: bool,
    /// `external`
    pub external: bool,
    /// `run_as`, on the sudo surface.
    pub run_as: Option<String>,
}

/// One request through the proxy.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct EgressRequest {
    /// The agent that asks.
    pub agent: String,
    /// The machine it runs on.
    pub machine: String,
    /// Method, upper case.
    pub method: String,
    /// Scheme.
    pub scheme: Scheme,
    /// Host in canonical form; an address in its standard text.
    pub host: String,
    /// The host, when it is written as an address.
    pub address: Option<IpAddr>,
    /// The address that the proxy is about to connect to, when resolved.
    pub peer: Option<IpAddr>,
    /// Port.
    pub port: u16,
    /// Path segments; `/a/` has two, the last of them empty.
    pub segments: Vec<String>,
    /// Secrets that it carries.
    pub secrets: BTreeSet<String>,
    /// Whether inputs come from outside the session.
    pub external: bool,
}

impl EgressRequest {
    /// The facts of this request.
    pub fn facts(&self) -> EgressFacts {
        EgressFacts {
            agent: self.agent.clone(),
            machine: self.machine.clone(),
            method: self.method.clone(),
            scheme: self.scheme,
            host: self.host.clone(),
            address: self.address,
            peer: self.peer,
            port: self.port,
            segments: self.segments.clone(),
            secrets: self.secrets.clone(),
            external: self.external,
        }
    }
}

/// What the Cedar context of an egress request holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EgressFacts {
    /// Cedar principal.
    pub agent: String,
    /// Cedar resource.
    pub machine: String,
    /// `method`
    pub method: String,
    /// `scheme`
    pub scheme: Scheme,
    /// `host`
    pub host: String,
    /// `address`, when the host is written as one.
    pub address: Option<IpAddr>,
    /// `peer`, when resolved.
    pub peer: Option<IpAddr>,
    /// `port`
    pub port: u16,
    /// `seg1` … and `segc`
    pub segments: Vec<String>,
    /// `secrets`
    pub secrets: BTreeSet<String>,
    /// `external`
    pub external: bool,
}

/// A request on any surface.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Request {
    /// Commands and sudo.
    Command(CommandRequest),
    /// Egress.
    Egress(EgressRequest),
}

/// Facts on any surface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Facts {
    /// Commands and sudo.
    Command(CommandFacts),
    /// Egress.
    Egress(EgressFacts),
}

impl Request {
    /// The facts of this request.
    pub fn facts(&self, zones: &ZoneMatcher) -> Facts {
        match self {
            Request::Command(request) => Facts::Command(request.facts(zones)),
            Request::Egress(request) => Facts::Egress(request.facts()),
        }
    }

    /// The surface that decides it.
    pub const fn surface(&self) -> Surface {
        match self {
            Request::Command(request) => request.surface,
            Request::Egress(_) => Surface::Egress,
        }
    }

    /// The request as a person would type it. Words only known at run time show as variables.
    pub fn to_line(&self) -> String {
        match self {
            Request::Command(request) => command_line(request),
            Request::Egress(request) => egress_line(request),
        }
    }

    /// What the line assumes beyond its text, as short sentences.
    pub fn assumptions(&self) -> Vec<String> {
        let mut out = Vec::new();
        let (agent, host, external) = match self {
            Request::Command(r) => (&r.agent, &r.host, r.external),
            Request::Egress(r) => (&r.agent, &r.machine, r.external),
        };
        if agent != "agent" {
            out.push(format!("by agent `{agent}`"));
        }
        if host != "host" {
            out.push(format!("on host `{host}`"));
        }
        if external {
            out.push("with inputs from outside the session".into());
        }
        match self {
            Request::Command(r) => {
                if !r.harmless {
                    out.push("with something that may run or write more than its words say".into());
                }
                if r.place.known || !r.place.zones.is_empty() {
                    let zones: Vec<&str> = r.place.zones.iter().map(String::as_str).collect();
                    out.push(if zones.is_empty() {
                        "run in a known directory".into()
                    } else {
                        format!("run in a directory of zone `{}`", zones.join("`, `"))
                    });
                }
                let hidden = r.words.iter().any(|w| matches!(w, Word::Value | Word::Open));
                if r.dynamic && !hidden {
                    out.push("with an input that is only known at run time".into());
                }
                if !r.wrappers.is_empty() {
                    let wrappers: Vec<&str> = r.wrappers.iter().map(String::as_str).collect();
                    out.push(format!("behind the wrapper `{}`", wrappers.join("`, `")));
                }
                if !r.writes.is_empty() {
                    let writes: Vec<&str> = r.writes.iter().map(String::as_str).collect();
                    out.push(format!("with a redirect into zone `{}`", writes.join("`, `")));
                }
            }
            Request::Egress(r) => {
                if let Some(peer) = r.peer {
                    out.push(format!("where the host resolves to {peer}"));
                }
            }
        }
        out
    }
}

/// Quotes a word for a POSIX shell, leaving a leading `~/` as people write it.
pub(crate) fn quote(word: &str) -> String {
    let plain =
        |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"/._-+=:,@%^".contains(&b));
    if word == "~" || word.strip_prefix("~/").is_some_and(|tail| tail.is_empty() || plain(tail)) || plain(word) {
        return word.to_owned();
    }
    shlex::try_quote(word).map_or_else(|_| "'?'".to_owned(), std::borrow::Cow::into_owned)
}

fn command_line(request: &CommandRequest) -> String {
    let mut parts: Vec<String> = request.env.iter().map(|name| format!("{name}=x")).collect();
    if request.surface == Surface::Sudo {
        parts.push("sudo".into());
        if request.run_as != "root" {
            parts.push(format!("-u {}", quote(&request.run_as)));
        }
    }
    let path = if request.trusted { "" } else { "./" };
    parts.push(quote(&format!("{path}{}", request.program)));
    parts.extend(request.globals.iter().map(|word| quote(word)));
    for word in &request.words {
        parts.push(match word {
            Word::Known(text) => quote(text),
            Word::Value => "\"./$VALUE\"".into(),
            Word::Files(pattern) => pattern.clone(),
            Word::Open => "$WORDS".into(),
        });
    }
    parts.join(" ")
}

fn egress_line(request: &EgressRequest) -> String {
    let host = match request.address {
        Some(IpAddr::V6(address)) => format!("[{address}]"),
        _ => request.host.clone(),
    };
    let port = if request.port == request.scheme.default_port() { String::new() } else { format!(":{}", request.port) };
    let path = if request.segments.is_empty() {
        "/".to_owned()
    } else {
        request.segments.iter().map(|s| format!("/{s}")).collect()
    };
    let mut out = format!("{} {}://{host}{port}{path}", request.method, request.scheme.name());
    for secret in &request.secrets {
        out.push_str(" secret=");
        out.push_str(secret);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(program: &str, words: &[&str]) -> (String, String) {
        let words = words.iter().map(|w| Word::Known((*w).to_owned())).collect();
        let (possible, certain) = CommandRequest::new(Surface::Commands, program, words).options();
        let join = |set: BTreeSet<String>| set.into_iter().collect::<Vec<_>>().join(" ");
        (join(possible), join(certain))
    }

    #[test]
    fn options_hide_in_clusters_and_behind_values() {
        for (program, words, possible, certain) in [
            ("tar", &["-xf", "a"][..], "-f -x", "-x"),
            ("git", &["push", "--force=x", "-q"], "--force -q", "--force -q"),
            ("git", &["-m", "--force"], "--force -m", "-m"),
            ("git", &["--", "-f"], "", ""),
            ("git", &["commit", "-m", "--", "--no-verify"], "--no-verify -m", "-m"),
            ("find", &[".", "-delete", "-name=x"], "-delete -name", "-delete"),
            ("terraform", &["--auto-approve"], "-auto-approve", "-auto-approve"),
            ("ls", &["-", "a"], "", ""),
            ("head", &["-5"], "-5", "-5"),
        ] {
            assert_eq!(options(program, words), (possible.into(), certain.into()), "{program} {words:?}");
        }
    }
}
