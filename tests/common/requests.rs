//! Random requests that lie near the rules of a set.

use std::collections::BTreeSet;
use std::net::IpAddr;

use polctl::model::{
    BoolTerm, CommandPattern, CommandRequest, EgressPattern, EgressRequest, Glob, HostPattern, Item, Matcher, Piece,
    Place, PolicySet, Request, Rule, Scheme, SetTerm, Surface, When, Word, program,
};

use super::Tape;
use super::maps::{self, NAMES, SECRETS, USERS};

/// Name patterns of files.
const FILES: [&str; 14] = [
    "src/*.a",
    "./*",
    "/etc/*",
    "/w/*",
    "~/.ss?/id",
    "/dev/*",
    "/dev/*/x",
    "/w*/a",
    "../*",
    "a/k[ef]y",
    "if=/etc/*",
    "/home/*/.ssh/x",
    "x,/et[cd]/?",
    "a*",
];

/// A request made from a rule's own words, then changed a little.
pub fn near(tape: &mut Tape<'_>, set: &PolicySet) -> Request {
    let rule = tape.pick(&set.rules);
    match &rule.matcher {
        Matcher::Command { pattern, with, only, unless, run_as } => {
            let mut request = command(tape, rule, pattern, set);
            let fixed = pattern.words.len().min(request.words.len());
            for items in with.iter().chain(only).chain([unless]) {
                // Items of `with` usually stand there, others now and then.
                let wanted = if with.contains(items) { 85 } else { 25 };
                if !items.is_empty() && !tape.chance(100 - wanted) {
                    let item = tape.pick(items);
                    let text = item_text(tape, item);
                    let open = request.words.len() - fixed + 1;
                    let at = if pattern.rest { fixed + tape.below(open) } else { tape.below(request.words.len() + 1) };
                    if pattern.rest || at >= request.words.len() {
                        request.words.insert(at, Word::Known(text));
                    } else {
                        request.words[at] = Word::Known(text);
                    }
                }
            }
            mutate_words(tape, &mut request);
            normalise(&mut request);
            if request.surface == Surface::Sudo {
                let stated = run_as.first().map_or("root", String::as_str);
                request.run_as = if tape.chance(25) { tape.one(&USERS) } else { stated }.to_owned();
            }
            command_facts(tape, &rule.when, &mut request);
            Request::Command(request)
        }
        Matcher::Egress { pattern, secrets } => Request::Egress(egress(tape, rule, pattern, secrets)),
    }
}

/// A text that a glob matches.
fn instance(tape: &mut Tape<'_>, glob: &Glob) -> String {
    let fill = |tape: &mut Tape<'_>| tape.one(&["a", "", "b", "-f", "/etc/x", " ", "/x", "*", "=a"]);
    glob.pieces()
        .iter()
        .map(|piece| match piece {
            Piece::Text(text) => text.clone(),
            Piece::Any => fill(tape).to_owned(),
        })
        .collect()
}

fn alternative(tape: &mut Tape<'_>, globs: &[Glob], free: impl FnOnce(&mut Tape<'_>) -> String) -> String {
    let glob = tape.pick(globs);
    if glob.is_any() && tape.chance(70) { free(tape) } else { instance(tape, glob) }
}

/// The known words at the front, as far as they name a sub-command.
fn path_of(program: &str, words: &[Word]) -> Vec<String> {
    let known = words.iter().map_while(|word| match word {
        Word::Known(text) => Some(text.clone()),
        _ => None,
    });
    let path: Vec<String> = known.take(2).collect();
    let paths = &maps::vocabulary(program).paths;
    (0..=path.len()).rev().map(|length| path[..length].to_vec()).find(|path| paths.contains(path)).unwrap_or_default()
}

/// A word that stands behind these.
fn text(tape: &mut Tape<'_>, program: &str, words: &[Word]) -> String {
    let path = path_of(program, words);
    maps::text(tape, program, &path)
}

/// Requests have sub-commands by their usual names and clusters with a dash ("The program table").
fn normalise(request: &mut CommandRequest) {
    let Some(table) = program(&request.program) else { return };
    let Some(Word::Known(first)) = request.words.first_mut() else { return };
    *first = table.canonical_sub(first).to_owned();
    if table.entry.bundle && !first.is_empty() && first.bytes().all(|b| b.is_ascii_alphabetic()) {
        first.insert(0, '-');
    }
}

/// A word by which an item is present.
fn item_text(tape: &mut Tape<'_>, item: &Item) -> String {
    match item {
        Item::Long(name) => format!("--{name}{}", tape.one(&["", "", "=a", "=/etc/x"])),
        Item::Short(letter) => match tape.below(4) {
            0 | 1 => format!("-{letter}"),
            2 => format!("-{letter}b"),
            _ => format!("-b{letter}"),
        },
        Item::Dashed(word) => format!("-{word}{}", tape.one(&["", "", "=a"])),
        Item::Argument(glob) => instance(tape, glob),
    }
}

fn command(tape: &mut Tape<'_>, rule: &Rule, pattern: &CommandPattern, set: &PolicySet) -> CommandRequest {
    // Now and then a program of another rule.
    let programs = match &tape.pick(&set.rules).matcher {
        Matcher::Command { pattern, .. } if tape.chance(10) => &pattern.programs,
        _ => &pattern.programs,
    };
    let name = match alternative(tape, programs, |tape| maps::program_name(tape, &[])) {
        name if name.is_empty() || name.contains('/') => "a".to_owned(),
        name => name,
    };
    let mut words: Vec<Word> = Vec::new();
    let focus = maps::focus(tape, &name);
    for (at, globs) in pattern.words.iter().enumerate() {
        let word = alternative(tape, globs, |tape| match focus.get(at) {
            Some(own) if path_of(&name, &words).len() == at => own.clone(),
            _ => text(tape, &name, &words),
        });
        words.push(Word::Known(word));
    }
    if pattern.rest {
        if focus.len() > words.len() && path_of(&name, &words).len() == words.len() && tape.chance(70) {
            words.extend(focus[words.len()..].iter().cloned().map(Word::Known));
        }
        let more = match tape.below(20) {
            19 => 17_usize.saturating_sub(words.len()) + tape.below(4),
            n => [0, 1, 2, 0, 3][n % 5],
        };
        for _ in 0..more {
            let word = text(tape, &name, &words);
            words.push(Word::Known(word));
        }
    }
    let mut request = CommandRequest::new(rule.surface, &name, words);
    (request.agent, request.host) = subjects(tape, rule);
    request
}

fn subjects(tape: &mut Tape<'_>, rule: &Rule) -> (String, String) {
    let mut pick = |stated: &[String]| match stated {
        _ if tape.chance(8) => tape.one(&NAMES).to_owned(),
        [] => "a".to_owned(),
        names => tape.pick(names).clone(),
    };
    (pick(&rule.agents), pick(&rule.hosts))
}

fn mutate_words(tape: &mut Tape<'_>, request: &mut CommandRequest) {
    for _ in 0..[0, 0, 0, 1, 1, 2][tape.below(6)] {
        let at = tape.below(request.words.len() + 1);
        let word = match tape.below(10) {
            7 => Word::Value,
            8 => Word::Open,
            9 => Word::Files(tape.one(&FILES).to_owned()),
            _ => Word::Known(text(tape, &request.program, &request.words)),
        };
        let words = &mut request.words;
        match tape.below(5) {
            0 | 1 => words.insert(at, word),
            _ if at >= words.len() => {}
            2 | 3 => words[at] = word,
            _ => {
                words.remove(at);
            }
        }
    }
    request.words.truncate(20);
}

/// A set that satisfies a term on the permitting side (mostly), or a random one.
fn values(tape: &mut Tape<'_>, term: Option<&SetTerm>, all: &[&str]) -> BTreeSet<String> {
    match term {
        Some(SetTerm::In(names)) if tape.chance(60) => names.iter().filter(|_| tape.chance(70)).cloned().collect(),
        Some(SetTerm::Any) if tape.chance(50) => tape.some(all).into_iter().collect(),
        _ if tape.chance(12) => tape.some(all).into_iter().collect(),
        _ => BTreeSet::new(),
    }
}

fn command_facts(tape: &mut Tape<'_>, when: &When, request: &mut CommandRequest) {
    request.trusted = if when.trusted.is_some() { tape.chance(30) } else { !tape.chance(7) };
    request.harmless = !tape.chance(7);
    let words = maps::vocabulary(&request.program);
    if !words.globals.is_empty() && tape.chance(15) {
        let (globals, harmless) = &words.globals[tape.wide(words.globals.len())];
        request.globals = match globals.as_slice() {
            // The value stands apart, behind `=`, or glued to a letter.
            [option, _] if tape.chance(30) => vec![format!("{option}=/etc/x")],
            [option, _] if option.len() == 2 && tape.chance(20) => vec![format!("{option}a")],
            globals => globals.to_vec(),
        };
        request.harmless &= *harmless || tape.chance(10);
    }
    request.covered = tape.chance(if polctl::model::carries_commands(&request.program) { 25 } else { 2 });
    let zones = ["workspace", "tmp", "credential", "policy", "devices", "elsewhere", "unknown"];
    request.writes = values(tape, when.writes.as_ref(), &zones);
    request.env = values(tape, when.env.as_ref(), &["LANG", "FOO", "PATH"]);
    request.wrappers = values(tape, when.wrappers.as_ref(), &["sudo", "env", "nice"]);
    let unknown = request.words.iter().any(|word| matches!(word, Word::Value | Word::Open));
    let dynamic = match when.dynamic {
        Some(BoolTerm::Yes) => !tape.chance(20),
        Some(BoolTerm::Any) => tape.chance(50),
        _ => tape.chance(8),
    };
    request.dynamic = unknown || dynamic;
    request.external = if when.external == Some(BoolTerm::Yes) { !tape.chance(30) } else { tape.chance(8) };
    if tape.chance(25) {
        let zones = values(tape, when.names.as_ref(), &zones[..5]);
        request.place = Place { known: true, zones };
    }
}

fn address(tape: &mut Tape<'_>) -> IpAddr {
    tape.one(&["1.1.1.1", "1.1.1.2", "2606:4700::1", "10.0.0.1", "8.8.8.8", "127.0.0.1", "::ffff:1.1.1.1"])
        .parse()
        .unwrap()
}

fn egress(tape: &mut Tape<'_>, rule: &Rule, pattern: &EgressPattern, secrets: &[String]) -> EgressRequest {
    let mut address_of_host = None;
    let mut name = match &pattern.host {
        HostPattern::Exact(name) => name.clone(),
        HostPattern::SubDomains(name) | HostPattern::DomainTree(name) => {
            format!("{}{name}", tape.one(&["b.", "", "c.b.", "x"]))
        }
        HostPattern::Network(network) => {
            address_of_host = Some(if tape.chance(60) { address(tape) } else { network.addr() });
            String::new()
        }
    };
    if tape.chance(12) {
        address_of_host = tape.chance(40).then(|| address(tape));
        name = String::from(tape.one(&["a.example", "b.a.example", "example", "xa.example"]));
    }
    let mut segments: Vec<String> =
        pattern.segments.iter().map(|glob| instance(tape, glob).replace('/', "b")).collect();
    let words = ["a", "b", "ab", "*"];
    if pattern.rest {
        segments.extend((0..tape.below(3)).map(|_| tape.one(&words).to_owned()));
        if tape.chance(5) {
            segments.extend((0..17).map(|_| "a".to_owned()));
        }
        if tape.chance(15) && !segments.is_empty() {
            segments.push(String::new());
        }
    }
    if tape.chance(15) {
        let at = tape.below(segments.len() + 1);
        match tape.below(3) {
            0 => segments.insert(at, tape.one(&words).to_owned()),
            1 if at < segments.len() => segments[at] = String::from(tape.one(&words)),
            _ => {
                segments.truncate(at);
            }
        }
    }
    if segments == [""] {
        segments.clear();
    }
    let (agent, machine) = subjects(tape, rule);
    let external = if rule.when.external == Some(BoolTerm::Yes) { !tape.chance(30) } else { tape.chance(8) };
    EgressRequest {
        agent,
        machine,
        method: if tape.chance(10) { "PUT".into() } else { tape.pick(&pattern.methods).clone() },
        scheme: if tape.chance(6) { Scheme::Http } else { pattern.scheme },
        host: address_of_host.map_or(name, |address| address.to_string()),
        address: address_of_host,
        peer: tape.chance(15).then(|| address(tape)),
        port: if tape.chance(8) { 8443 } else { pattern.port },
        segments,
        secrets: if tape.chance(15) {
            tape.some(&SECRETS).into_iter().collect()
        } else {
            secrets.iter().filter(|_| tape.chance(50)).cloned().collect()
        },
        external,
    }
}
