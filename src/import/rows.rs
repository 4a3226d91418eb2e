//! What the formats share: rows that permit, rows that restrict, and what the program table adds to both.
//!
//! polctl reads commands more cleverly than most sources: options before the sub-command leave the
//! words, and wrappers are followed. Whatever of that would let an imported allowance reach more
//! than its source is kept out here, by conditions on the row.

use std::collections::BTreeSet;

use super::{Imported, Loss, Note, Row};
use crate::model::{
    CommandPattern, EgressPattern, Entry, Glob, HostPattern, Item, MAX_WORDS, Matcher, Piece, Program, Scheme, SetTerm,
    Surface, Tier, When, canonical_host, has_globals, program, program_table,
};
use crate::source::{Span, is_unseen};

/// The tier of what a source allows: local, logged.
pub(super) const ALLOW: u8 = 1;

/// A tier by its number; the numbers here are all valid.
pub(super) fn tier(number: u8) -> Tier {
    Tier::new(number).unwrap_or(Tier::DENY)
}

/// A row that matches by a pattern only.
pub(super) fn plain(tier: Tier, pattern: CommandPattern, span: Span) -> Row {
    let matcher = Matcher::Command { pattern, with: Vec::new(), only: None, unless: Vec::new(), run_as: Vec::new() };
    Row { tier, matcher, when: When::default(), agents: Vec::new(), hosts: Vec::new(), span }
}

/// What an allowance says of lines: the command itself, without wrappers, redirects that write, or
/// assignments. Sources compare the text of a command, so none of these is part of what they allow.
pub(super) fn bare() -> When {
    When { writes: Some(SetTerm::Empty), env: Some(SetTerm::Empty), wrappers: Some(SetTerm::Empty), ..When::default() }
}

/// A row of tier 1 for what a source allows by the words of a command, or why there is none.
///
/// # Errors
///
/// A sentence: what our patterns cannot say.
pub(super) fn permit(pattern: CommandPattern, span: Span, notes: &mut Vec<Note>) -> Result<Row, String> {
    let names: Vec<String> = match pattern.literal_programs() {
        Some(names) => names.into_iter().map(str::to_owned).collect(),
        None => return Err("an allowance names its programs, and here a wildcard stands for them".into()),
    };
    for name in &names {
        program_name(name)?;
    }
    if pattern.words.len() > MAX_WORDS {
        return Err(format!("more than {MAX_WORDS} words behind the program"));
    }
    let mut globals = BTreeSet::new();
    for name in &names {
        let Some(known) = program(name) else { continue };
        if let Some(word) = taken_out(known, &pattern.words).first().and_then(|at| literal(&pattern.words, *at)) {
            return Err(format!(
                "polctl takes `{word}` out of the words of `{name}`, so no pattern can demand it there"
            ));
        }
        globals.extend(harmless_globals(known, &pattern.words));
    }
    told_hazards(&names, &pattern, span, notes);
    let mut row = plain(tier(ALLOW), pattern, span);
    row.when = bare();
    if let Matcher::Command { unless, .. } = &mut row.matcher {
        *unless = globals.into_iter().collect();
    }
    Ok(row)
}

/// Whether a rule can name this program.
pub(super) fn program_name(name: &str) -> Result<(), String> {
    if name.contains('/') {
        return Err(format!("`{name}` is a path, and a rule names programs by their base name"));
    }
    if matches!(name, "sudo" | "doas") {
        return Err(format!("commands behind `{name}` belong to the surface sudo, which this import does not cover"));
    }
    let good = |c: char| c.is_ascii_graphic() && !"=<>|&;()$`*?[]{}!#\\'\"".contains(c);
    if name.is_empty() || name.starts_with('-') || !name.chars().all(good) {
        return Err(format!("`{name}` cannot be named as a program"));
    }
    Ok(())
}

fn literal(words: &[Vec<Glob>], at: usize) -> Option<&str> {
    words.get(at).and_then(|globs| globs.iter().find_map(Glob::as_literal))
}

/// The positions of words that polctl takes out of a command, since they are options before the
/// sub-command, or options with a value that mean the same anywhere.
fn taken_out(program: &Program<'static>, words: &[Vec<Glob>]) -> Vec<usize> {
    let mut out = Vec::new();
    let mut path: Vec<&str> = Vec::new();
    let mut at = 0;
    let mut before = true;
    while let Some(globs) = words.get(at) {
        let entry = if before { program.sub(&path) } else { None };
        let found = globs.iter().filter_map(Glob::as_literal).find_map(|word| {
            let here = entry.and_then(|entry| entry.global(word, program.dashed));
            let anywhere = program.entry.global(word, program.dashed);
            here.or_else(|| anywhere.filter(|(global, _)| global.anywhere && global.takes_value))
        });
        if let Some((global, glued)) = found {
            out.push(at);
            if global.takes_value && !glued {
                at += 1;
                out.push(at);
            }
        } else {
            path.extend(globs.iter().find_map(Glob::as_literal));
            before = before && program.sub(&path).is_some_and(|entry| !entry.globals.is_empty());
        }
        at += 1;
    }
    out.retain(|at| *at < words.len());
    out
}

/// Options before the sub-command that polctl would overlook where the pattern names sub-commands.
/// `-C=*` speaks of the option `-C` there, and behind the sub-command of nothing that is usual.
fn harmless_globals(program: &Program<'static>, words: &[Vec<Glob>]) -> Vec<Item> {
    let entries =
        std::iter::once((0, &program.entry)).chain(program.subs.iter().map(|(path, entry)| (path.len(), entry)));
    let named = |(depth, entry): (usize, &Entry<'static>)| -> Vec<Item> {
        if words.len() <= depth {
            return Vec::new();
        }
        let options = entry.globals.iter().filter(|global| global.harmless && !global.option.contains('*'));
        options
            .map(|global| Item::Argument(Glob::new([Piece::Text(format!("{}=", global.option)), Piece::Any])))
            .collect()
    };
    entries.flat_map(named).collect()
}

/// Says of an allowance with open words that the table's hazards are not part of it.
fn told_hazards(names: &[String], pattern: &CommandPattern, span: Span, notes: &mut Vec<Note>) {
    let open = pattern.rest || pattern.words.iter().flatten().any(|glob| glob.as_literal().is_none());
    let told: Vec<&str> = names
        .iter()
        .map(String::as_str)
        .filter(|name| {
            program(name).is_some_and(|own| own.shell || own.entry.carries() || open && may_reach(own, &pattern.words))
        })
        .collect();
    if let Some(first) = told.first() {
        let text = format!(
            "`{pattern}` does not permit what executes, writes, deletes or sends and is not named by the rule \
             (`polctl programs {first}` lists it)"
        );
        notes.push(Note { span, loss: Loss::Narrower, text });
    }
}

/// Whether open words of a pattern may be something that the table calls a hazard.
fn may_reach(program: &Program<'static>, words: &[Vec<Glob>]) -> bool {
    let sub = words.first().and_then(|globs| globs.iter().find_map(Glob::as_literal));
    let own = !program.entry.hazards.is_empty() || program.entry.output.is_some();
    let subs = || {
        program.subs.iter().any(|(path, entry)| {
            let meets = sub.is_none_or(|sub| path.first().is_some_and(|first| *first == program.canonical_sub(sub)));
            meets && (!entry.hazards.is_empty() || entry.carries())
        })
    };
    own || subs() || sub.is_none() && (!program.hazardous.is_empty() || !program.known.is_empty())
}

/// A row that restricts; what a pattern cannot hold is made broader. The second value says how.
pub(super) fn restrict(at: Tier, mut pattern: CommandPattern, span: Span) -> (Row, Option<String>) {
    let mut broader = None;
    let mut with: Vec<Item> = Vec::new();
    for name in pattern.literal_programs().unwrap_or_default().into_iter().map(str::to_owned).collect::<Vec<_>>() {
        let Some(known) = program(&name) else { continue };
        let taken = taken_out(known, &pattern.words);
        let Some(word) = taken.first().and_then(|at| literal(&pattern.words, *at)).map(str::to_owned) else { continue };
        broader =
            Some(format!("`{word}` leaves the words of `{name}`, so the rule is about the command with that option"));
        // Glued to a letter its name is not certain, and the rule is about the command without it.
        let head = word.split('=').next().unwrap_or("");
        if known.entry.globals.iter().any(|global| global.option == head) {
            with = vec![of_global(head)];
        }
        let mut index = 0;
        pattern.words.retain(|_| {
            index += 1;
            !taken.contains(&(index - 1))
        });
    }
    if pattern.words.len() > MAX_WORDS {
        pattern.words.truncate(MAX_WORDS);
        pattern.rest = true;
        broader = Some(format!("only the first {MAX_WORDS} words are compared"));
    }
    let mut row = plain(at, pattern, span);
    if let Matcher::Command { with: own, .. } = &mut row.matcher
        && !with.is_empty()
    {
        own.push(with);
    }
    (row, broader)
}

/// Speaks of an option before the sub-command, and behind it of nothing that is usual.
fn of_global(option: &str) -> Item {
    Item::Argument(Glob::new([Piece::Text(format!("{option}=")), Piece::Any]))
}

/// What a text may hide in besides the arguments of these programs: options that leave the words,
/// with their values.
pub(super) fn hiding(names: &[&str]) -> Vec<Item> {
    let mut options: BTreeSet<&str> = BTreeSet::new();
    for known in names.iter().filter_map(|name| program(name)) {
        let entries = std::iter::once(&known.entry).chain(known.subs.iter().map(|(_, entry)| entry));
        options.extend(
            entries.flat_map(|entry| entry.globals.iter().map(|global| global.option)).filter(|o| !o.contains('*')),
        );
    }
    options.into_iter().map(of_global).collect()
}

/// The programs that have such options.
pub(super) fn with_globals() -> Vec<&'static str> {
    program_table().names().filter(|name| has_globals(name)).collect()
}

/// Schemes whose requests go through a proxy for web traffic.
pub(super) const WEB: [Scheme; 2] = [Scheme::Https, Scheme::Http];

/// The methods that are permitted where a source speaks of hosts only.
pub(super) const METHODS: [&str; 7] = ["DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"];

/// The methods that are restricted where a source speaks of hosts only.
pub(super) const ALL_METHODS: [&str; 22] = [
    "CONNECT",
    "COPY",
    "DELETE",
    "GET",
    "HEAD",
    "LOCK",
    "MERGE",
    "MKCOL",
    "MOVE",
    "OPTIONS",
    "PATCH",
    "POST",
    "PROPFIND",
    "PROPPATCH",
    "PURGE",
    "PUT",
    "QUERY",
    "REPORT",
    "SEARCH",
    "TRACE",
    "UNLOCK",
    "VIEW",
];

/// A host as patterns name it: a name, or an address.
///
/// # Errors
///
/// Why it cannot be named.
pub(super) fn host(name: &str) -> Result<HostPattern, String> {
    let bare = name.trim_start_matches('[').trim_end_matches(']');
    if let Ok(address) = bare.parse::<std::net::IpAddr>() {
        return Ok(HostPattern::Network(address.into()));
    }
    if let Ok(network) = bare.parse::<ipnet::IpNet>() {
        return Ok(HostPattern::Network(network.trunc()));
    }
    canonical_host(name).map(HostPattern::Exact).map_err(|why| format!("the host `{name}` {why}"))
}

/// A row for every path of a host.
pub(super) fn egress(at: Tier, methods: &[&str], scheme: Scheme, host: HostPattern, port: u16, span: Span) -> Row {
    let mut methods: Vec<String> = methods.iter().map(|method| (*method).to_owned()).collect();
    methods.sort();
    let pattern = EgressPattern { methods, scheme, host, port, segments: Vec::new(), rest: true };
    let matcher = Matcher::Egress { pattern, secrets: Vec::new() };
    Row { tier: at, matcher, when: When::default(), agents: Vec::new(), hosts: Vec::new(), span }
}

/// Rows that permit, or refuse, everything at a host on the ports of the web.
pub(super) fn site(at: Tier, host: &HostPattern, span: Span) -> Vec<Row> {
    let row = |scheme: Scheme, methods: &[&str]| egress(at, methods, scheme, host.clone(), scheme.default_port(), span);
    if at < Tier::UNMATCHED {
        return WEB.into_iter().map(|scheme| row(scheme, &METHODS)).collect();
    }
    Scheme::ALL.into_iter().map(|scheme| row(scheme, &ALL_METHODS)).collect()
}

/// The text that says everything that a row matches by.
pub(super) fn said(row: &Row) -> String {
    let mut rule = super::write::matcher_text(row);
    for (key, values) in [("agents", &row.agents), ("hosts", &row.hosts)] {
        rule.push_str(&format!(" {key} {}", values.join(",")));
    }
    rule
}

/// Drops rows that stand twice, keeps the strictest of equal ones, and replaces what nobody could see.
pub(super) fn settle(imported: &mut Imported) {
    let mut notes = Vec::new();
    for (surface, map) in &mut imported.maps {
        let mut kept: Vec<Row> = Vec::new();
        for row in std::mem::take(&mut map.rows) {
            let Some(row) = visible(row, &mut notes) else { continue };
            let same = said(&row);
            match kept.iter_mut().find(|other| said(other) == same) {
                Some(other) if row.tier > other.tier => *other = row,
                Some(_) => {}
                None => kept.push(row),
            }
        }
        map.rows = kept;
        if *surface != Surface::Egress {
            shadowed(&map.rows, &mut notes);
        }
    }
    imported.notes.append(&mut notes);
    imported.notes.sort_by(|a, b| (a.span, a.loss, &a.text).cmp(&(b.span, b.loss, &b.text)));
    imported.notes.dedup();
}

/// A later reader must see each character. An allowance with others is left out, in a restriction
/// a wildcard takes their place.
fn visible(mut row: Row, notes: &mut Vec<Note>) -> Option<Row> {
    let hidden = |glob: &Glob| {
        glob.pieces().iter().any(|piece| matches!(piece, Piece::Text(text) if text.chars().any(is_unseen)))
    };
    let Matcher::Command { pattern, with, .. } = &mut row.matcher else { return Some(row) };
    let globs = pattern.programs.iter_mut().chain(pattern.words.iter_mut().flatten());
    let mut found = false;
    for glob in globs.filter(|glob| hidden(glob)) {
        found = true;
        *glob = Glob::any();
    }
    let before = with.len();
    with.retain(|items| !items.iter().filter_map(Item::as_argument).any(&hidden));
    if found || with.len() < before {
        let permits = row.tier < Tier::UNMATCHED;
        let (loss, text) = if permits {
            (Loss::LeftOut, "the rule holds characters that nobody can see")
        } else {
            (Loss::Broader, "characters that nobody can see are read as a wildcard")
        };
        notes.push(Note { span: row.span, loss, text: text.into() });
        if permits {
            return None;
        }
    }
    Some(row)
}

/// Allowances that a restriction of the same source covers by its words: they never apply here, as
/// they never did there.
fn shadowed(rows: &[Row], notes: &mut Vec<Note>) {
    let covers = |strict: &Row, row: &Row| match (&strict.matcher, &row.matcher) {
        (Matcher::Command { pattern: a, with, .. }, Matcher::Command { pattern: b, .. }) => {
            with.is_empty() && strict.agents.is_empty() && a.rest && prefix(a, b)
        }
        _ => false,
    };
    for row in rows.iter().filter(|row| row.tier < Tier::UNMATCHED) {
        if let Some(strict) =
            rows.iter().find(|strict| strict.tier > row.tier && strict.tier >= Tier::UNMATCHED && covers(strict, row))
        {
            let what = if strict.tier == Tier::DENY { "denied" } else { "asked about" };
            let text = format!("it never applies: all of it is {what} by another rule of the source");
            notes.push(Note { span: row.span, loss: Loss::Told, text });
        }
    }
}

/// Whether every command of `b` begins as `a` demands.
pub(super) fn prefix(a: &CommandPattern, b: &CommandPattern) -> bool {
    let within = |a: &[Glob], b: &[Glob]| b.iter().all(|own| a.iter().any(|other| own.is_within(other)));
    within(&a.programs, &b.programs)
        && a.words.len() <= b.words.len()
        && a.words.iter().zip(&b.words).all(|(a, b)| within(a, b))
}
