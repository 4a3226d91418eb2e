//! The solver's requests as real ones.
//!
//! To a solver the words of a command, the line that they make, their options and the zones
//! that they name are unrelated. From its request a few real ones are made that come as near as
//! they can; whether one of them shows the same change is for Cedar to say. Where none does,
//! the first thing in which they differ says why.

use std::collections::BTreeSet;
use std::net::IpAddr;

use cedar_policy::Request as CedarRequest;
use serde_json::Value;

use crate::model::{
    CommandRequest, EgressRequest, Facts, Place, Request, Scheme, Surface, Word, Zones, globals_of_programs,
};

/// Most words of a request that is made.
const MAX_WORDS: usize = 40;

/// The real requests that are nearest to the solver's, or why there is none.
pub(crate) fn nearest(surface: Surface, request: &CedarRequest, zones: &Zones) -> Result<Vec<Request>, String> {
    let id = |uid: Option<&cedar_policy::EntityUid>| uid.map(|u| u.id().unescaped().to_owned()).unwrap_or_default();
    let context = request.context().and_then(|c| c.to_json_value().ok()).ok_or("it has no context")?;
    let context = Context(&context);
    let (agent, host) = (id(request.principal()), id(request.resource()));
    match surface {
        Surface::Egress => egress(&context, &agent, &host),
        _ => commands(surface, &context, (agent, host), zones),
    }
}

/// The first attribute in which a real request differs from the solver's.
pub(crate) fn difference(facts: &Facts, request: &CedarRequest) -> Option<String> {
    let context = request.context().and_then(|c| c.to_json_value().ok())?;
    let context = Context(&context);
    let Facts::Command(facts) = facts else { return None };
    let sets = [
        ("options", &facts.options),
        ("certain", &facts.certain),
        ("names", &facts.names),
        ("globals", &facts.globals),
    ];
    for (name, real) in sets {
        let said = context.names(name);
        if said != *real {
            return Some(format!("its words make `{name}` {}, and it says {}", list(real), list(&said)));
        }
    }
    let line = context.text("line").unwrap_or_default();
    (line != facts.line).then(|| "its `line` is not the line of its words".to_owned())
}

fn list(names: &BTreeSet<String>) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("`{}`", name.escape_default())).collect();
    if names.is_empty() { "empty".into() } else { names.join(", ") }
}

/// The context of a request, as JSON.
struct Context<'a>(&'a Value);

impl Context<'_> {
    fn text(&self, name: &str) -> Option<String> {
        self.0.get(name)?.as_str().map(str::to_owned)
    }

    fn flag(&self, name: &str) -> bool {
        self.0.get(name).and_then(Value::as_bool).unwrap_or(false)
    }

    fn number(&self, name: &str) -> Option<usize> {
        usize::try_from(self.0.get(name)?.as_i64()?).ok()
    }

    fn names(&self, name: &str) -> BTreeSet<String> {
        let members = self.0.get(name).and_then(Value::as_array).into_iter().flatten();
        members.filter_map(|v| v.as_str().map(str::to_owned)).collect()
    }

    fn numbers(&self, name: &str) -> BTreeSet<i64> {
        self.0.get(name).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_i64).collect()
    }

    /// How many words or segments there may be: as many as it counts, and as many as it names,
    /// which are unrelated to a solver. `None`: too many.
    fn counts(&self, word: &str) -> Option<Vec<usize>> {
        let counted = self.number(&format!("{word}c")).filter(|n| *n <= MAX_WORDS)?;
        let named = (1..=MAX_WORDS).rev().find(|at| self.0.get(format!("{word}{at}")).is_some());
        Some(std::iter::once(counted).chain(named.filter(|named| *named != counted)).collect())
    }

    /// The address of an `ipaddr`, if it is a single one.
    fn address(&self, name: &str) -> Result<Option<IpAddr>, String> {
        let Some(value) = self.0.get(name) else { return Ok(None) };
        let text = value.get("__extn").and_then(|e| e.get("arg")).and_then(Value::as_str).unwrap_or_default();
        let single = text.parse().ok().or_else(|| {
            let (address, prefix) = text.split_once('/')?;
            let address: IpAddr = address.parse().ok()?;
            (prefix == if address.is_ipv4() { "32" } else { "128" }).then_some(address)
        });
        single.map(Some).ok_or_else(|| format!("its `{name}` is the network `{text}`, and no address"))
    }
}

fn plain(text: &str) -> bool {
    !text.contains([CommandRequest::SEPARATOR, CommandRequest::HOLE, '\0'])
}

fn commands(
    surface: Surface,
    context: &Context<'_>,
    (agent, host): (String, String),
    zones: &Zones,
) -> Result<Vec<Request>, String> {
    let program = context.text("program").unwrap_or_default();
    if program.is_empty() || program.contains('/') || !plain(&program) {
        return Err(format!("`{}` is no name of a program", program.escape_default()));
    }
    let counts = context.counts("arg").ok_or("no command has so many words")?;
    let writes = context.names("writes");
    let zone = |name: &String| {
        [Zones::ELSEWHERE, Zones::UNKNOWN].contains(&name.as_str()) || zones.names().any(|known| known == name)
    };
    if let Some(other) = writes.iter().find(|name| !zone(name)) {
        return Err(format!("`{}` is no zone", other.escape_default()));
    }
    let globals: Vec<String> = context.names("globals").into_iter().collect();
    let takes =
        |option: &String| globals_of_programs().any(|(name, mut own)| name == program && own.any(|o| o == option));
    if let Some(other) = globals.iter().find(|option| !takes(option)) {
        return Err(format!("`{program}` takes no option `{}` before its words", other.escape_default()));
    }
    let mut request = CommandRequest::new(surface, &program, Vec::new());
    (request.agent, request.host) = (agent, host);
    (request.globals, request.writes) = (globals, writes);
    (request.env, request.wrappers) = (context.names("env"), context.names("wrappers"));
    (request.trusted, request.harmless) = (context.flag("trusted"), context.flag("harmless"));
    (request.dynamic, request.external) = (context.flag("dynamic"), context.flag("external"));
    request.covered = context.flag("covered");
    if let Some(user) = context.text("run_as") {
        request.run_as = user;
    }
    let names = context.names("names");
    request.place = Place {
        known: !names.contains(Zones::UNRESOLVED),
        zones: names.into_iter().filter(|name| zones.names().any(|known| known == name)).collect(),
    };
    let mut out = Vec::new();
    for words in counts.into_iter().flat_map(|count| wordings(context, count)) {
        for place in [request.place.clone(), Place { known: request.place.known, ..Place::default() }] {
            out.push(Request::Command(CommandRequest { words: words.clone(), place, ..request.clone() }));
        }
    }
    Ok(out)
}

/// Words that a request may have meant: those by position; with its options beside them; and
/// those of its line.
fn wordings(context: &Context<'_>, count: usize) -> Vec<Vec<Word>> {
    let unknown = context.numbers("unknown");
    let word = |at: usize| match context.text(&format!("arg{at}")).filter(|text| plain(text)) {
        Some(text) => Word::Known(text),
        None if i64::try_from(at).is_ok_and(|at| unknown.contains(&at)) => Word::Value,
        None => Word::Known("x".into()),
    };
    let base: Vec<Word> = (1..=count).map(word).collect();
    let with = |extra: Vec<String>| -> Vec<Word> {
        let missing = extra.into_iter().filter(|text| plain(text) && !base.contains(&Word::Known(text.clone())));
        base.iter().cloned().chain(missing.map(Word::Known).collect::<Vec<_>>()).collect()
    };
    let line = context.text("line").unwrap_or_default();
    let pieces: Vec<String> = line
        .split(CommandRequest::SEPARATOR)
        .filter(|piece| !piece.is_empty() && plain(piece))
        .map(str::to_owned)
        .collect();
    let options: Vec<String> = context.names("certain").union(&context.names("options")).cloned().collect();
    let mut both = options.clone();
    both.extend(pieces.clone());
    let mut out = vec![base.clone(), with(options), with(pieces), with(both)];
    if context.flag("open") || context.flag("many") {
        let open: Vec<Vec<Word>> =
            out.iter().map(|words| words.iter().cloned().chain([Word::Open]).collect()).collect();
        out.extend(open);
    }
    out.dedup();
    out
}

fn egress(context: &Context<'_>, agent: &str, machine: &str) -> Result<Vec<Request>, String> {
    let scheme = context.text("scheme").unwrap_or_default();
    let scheme = Scheme::ALL.into_iter().find(|s| s.name() == scheme).ok_or("it has no scheme")?;
    let counts = context.counts("seg").ok_or("no path has so many segments")?;
    let port = context.number("port").and_then(|n| u16::try_from(n).ok()).filter(|p| *p > 0).ok_or("it has no port")?;
    let (address, peer) = (context.address("address")?, context.address("peer")?);
    let host = context.text("host").unwrap_or_default();
    if address.is_some_and(|address| address.to_string() != host) {
        return Err("its `host` is not the text of its `address`".into());
    }
    let request = EgressRequest {
        agent: agent.to_owned(),
        machine: machine.to_owned(),
        method: context.text("method").unwrap_or_default(),
        scheme,
        host,
        address,
        peer,
        port,
        segments: Vec::new(),
        secrets: context.names("secrets"),
        external: context.flag("external"),
    };
    let segment = |at: usize| context.text(&format!("seg{at}")).unwrap_or_else(|| "x".into());
    let with = |count: usize| EgressRequest { segments: (1..=count).map(segment).collect(), ..request.clone() };
    let requests: Vec<Result<Request, String>> = counts.into_iter().map(|count| typed(with(count))).collect();
    if requests.iter().any(Result::is_ok) {
        return Ok(requests.into_iter().flatten().collect());
    }
    requests.into_iter().collect()
}

/// A request, if it can be typed: what cannot be typed cannot be asked.
fn typed(request: EgressRequest) -> Result<Request, String> {
    let line = Request::Egress(request.clone()).to_line();
    let read = crate::decide::egress_request(&line).map_err(|e| e.to_string())?;
    let EgressRequest { agent, machine, peer, external, .. } = request.clone();
    let read = EgressRequest { agent, machine, peer, external, ..read };
    (read == request)
        .then_some(Request::Egress(request))
        .ok_or_else(|| "it cannot be written as a method and a URL".into())
}
