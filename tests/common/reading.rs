//! A second reading of `docs/policy-format.md` and of "The program table" in
//! `docs/command-lines.md`, in plain Rust over argument vectors.
//!
//! Written from the text of those pages, the head of `programs.table` and nothing else: no Cedar,
//! no facts, no automata. Each function names the section that it reads. It favours the obvious
//! over the fast. What it takes from the table are its entries; which of them hold for a rule and
//! a request, and what follows, it works out by itself.

use std::collections::BTreeSet;
use std::net::IpAddr;

use polctl::model::{
    BoolTerm, CommandPattern, CommandRequest, Config, EgressPattern, EgressRequest, Entry, Glob, HostPattern, Item,
    Matcher, NON_PUBLIC, Piece, PolicySet, Program, Provenance, Request, Rule, SetTerm, Surface, Word, program,
};

/// "Tier maps": whether a request may run at a rung. A rule of tier k permits tier k and above
/// under its narrow reading, and forbids the tiers below k under its broad one; what no rule
/// matches has the tier `unmatched`; a surface that no file covers permits nothing.
pub fn allows(set: &PolicySet, request: &Request, rung: u8) -> bool {
    let surface = request.surface();
    let Some(info) = set.surfaces.get(&surface) else { return false };
    let rules: Vec<&Rule> = set.rules.iter().filter(|rule| rule.surface == surface).collect();
    let permitted = rung >= info.unmatched.number()
        || carried(request)
        || rules.iter().any(|rule| rung >= rule.tier.number() && narrow(rule, &set.config, request, rung));
    let forbidden = rules.iter().any(|rule| rung < rule.tier.number() && broad(rule, &set.config, request));
    permitted && !forbidden && !guardrail(&set.config, request, rung)
}

/// "What runs other commands": a program that only carries the command inside needs no rule that
/// permits it. Carriers are the programs and sub-commands that the table knows as such.
pub fn carried(request: &Request) -> bool {
    let Request::Command(request) = request else { return false };
    let Some(table) = program(&request.program) else { return false };
    let carries =
        |entry: &Entry<'_>| entry.wrapper.is_some() || entry.shell_words.is_some() || !entry.shell_options.is_empty();
    let sub = |(path, entry): &(Vec<&str>, Entry<'_>)| carries(entry) && words_are(path, &request.words);
    request.covered && (table.shell || carries(&table.entry) || table.subs.iter().any(sub))
}

/// `provenance` in "The policy repository", and the last line of "Egress patterns".
pub fn guardrail(config: &Config, request: &Request, rung: u8) -> bool {
    let (external, refused) = match request {
        Request::Command(request) => (request.external, false),
        Request::Egress(request) => {
            (request.external, request.address.into_iter().chain(request.peer).any(is_not_public))
        }
    };
    refused || external && rung < 2 && config.provenance == Provenance::Enforce
}

fn is_not_public(address: IpAddr) -> bool {
    NON_PUBLIC.iter().any(|network| {
        let (base, length) = network.split_once('/').unwrap();
        in_network(address, base.parse().unwrap(), length.parse().unwrap())
    })
}

/// Whether an address shares the first `length` bits of `base`.
fn in_network(address: IpAddr, base: IpAddr, length: u32) -> bool {
    let bits = |address: IpAddr| match address {
        IpAddr::V4(v4) => (32, u128::from(u32::from(v4))),
        IpAddr::V6(v6) => (128, u128::from(v6)),
    };
    let ((width, address), (base_width, base)) = (bits(address), bits(base));
    width == base_width && (length == 0 || (address ^ base) >> (width - length) == 0)
}

/// "Two readings", the narrow one, with the guards.
pub fn narrow(rule: &Rule, config: &Config, request: &Request, rung: u8) -> bool {
    match (&rule.matcher, request) {
        (Matcher::Command { pattern, with, only, unless, run_as }, Request::Command(request)) => {
            let seen = Options::scan(request);
            let table = Table::new(pattern, request);
            let user = request.surface != Surface::Sudo
                || if run_as.is_empty() { request.run_as == "root" } else { run_as.contains(&request.run_as) };
            request.trusted
                && request.harmless
                && subjects(rule, &request.agent, &request.host)
                && user
                && is_program(pattern, request)
                && surely_fits(&patterns(pattern, &request.program), pattern.rest, &request.words)
                && with.iter().all(|items| items.iter().any(|item| seen.certain(item, &request.words, &table)))
                && only.as_ref().is_none_or(|items| seen.possible.iter().all(|option| table.listed(option, items)))
                && !unless.iter().any(|item| seen.may_be(item, &request.words, &table))
                && (rule.tier.number() > 1 || !hazardous(&table, &seen, pattern, with, only.as_deref(), request))
                && facts_narrow(rule, config, request, rung)
        }
        (Matcher::Egress { pattern, secrets }, Request::Egress(request)) => {
            egress(rule, pattern, request) && request.secrets.iter().all(|secret| secrets.contains(secret))
        }
        _ => false,
    }
}

/// "Two readings", the broad one.
pub fn broad(rule: &Rule, config: &Config, request: &Request) -> bool {
    match (&rule.matcher, request) {
        (Matcher::Command { pattern, with, only, unless, run_as }, Request::Command(request)) => {
            let seen = Options::scan(request);
            let table = Table::new(pattern, request);
            subjects(rule, &request.agent, &request.host)
                && (run_as.is_empty() || run_as.contains(&request.run_as))
                && is_program(pattern, request)
                && may_fit(
                    &shortened(patterns(pattern, &request.program), &request.program),
                    pattern.rest,
                    &request.words,
                )
                && with.iter().all(|items| items.iter().any(|item| seen.may_be(item, &request.words, &table)))
                && only.as_ref().is_none_or(|items| seen.sure.iter().all(|option| table.may_be_listed(option, items)))
                && !unless.iter().any(|item| seen.certain(item, &request.words, &table))
                && facts_broad(rule, config, request)
        }
        (Matcher::Egress { pattern, secrets }, Request::Egress(request)) => {
            // A rule about secrets restricts what carries them; one without restricts everything.
            egress(rule, pattern, request)
                && (secrets.is_empty() || request.secrets.iter().any(|secret| secrets.contains(secret)))
        }
        _ => false,
    }
}

/// "Attributes": `agents` and `hosts`; all when absent.
fn subjects(rule: &Rule, agent: &String, host: &String) -> bool {
    (rule.agents.is_empty() || rule.agents.contains(agent)) && (rule.hosts.is_empty() || rule.hosts.contains(host))
}

/// "Command patterns": the first word is the program, by base name.
fn is_program(pattern: &CommandPattern, request: &CommandRequest) -> bool {
    pattern.programs.iter().any(|glob| glob_matches(glob.pieces(), &request.program))
}

/// "Command patterns": `*` stands for any characters inside the word, none included.
fn glob_matches(pieces: &[Piece], text: &str) -> bool {
    match pieces {
        [] => text.is_empty(),
        [Piece::Text(head), tail @ ..] => text.strip_prefix(head.as_str()).is_some_and(|rest| glob_matches(tail, rest)),
        [Piece::Any, tail @ ..] => {
            glob_matches(tail, text) || text.chars().next().is_some_and(|c| glob_matches(pieces, &text[c.len_utf8()..]))
        }
    }
}

fn any_matches(globs: &[Glob], text: &str) -> bool {
    globs.iter().any(|glob| glob_matches(glob.pieces(), text))
}

/// "The program table": a sub-command has its usual name (`npm i` is `npm install`), and `tar xf`
/// is `tar -xf`. What each word of a pattern may be, for this program.
fn patterns(pattern: &CommandPattern, name: &str) -> Vec<Vec<Glob>> {
    let mut out = pattern.words.clone();
    let Some((first, table)) = out.first_mut().zip(program(name)) else { return out };
    let literals: Vec<String> = first.iter().filter_map(Glob::as_literal).map(str::to_owned).collect();
    for text in literals {
        first.push(Glob::literal(usual(table, &text)));
        if table.entry.bundle && !text.is_empty() && text.chars().all(|c| c.is_ascii_alphabetic()) {
            first.push(Glob::literal(&format!("-{text}")));
        }
    }
    out
}

/// "abbreviates": a restricting rule also reaches what begins the name of a sub-command.
fn shortened(mut words: Vec<Vec<Glob>>, name: &str) -> Vec<Vec<Glob>> {
    if program(name).is_some_and(|table| table.abbreviates) {
        for globs in &mut words {
            let names: Vec<String> = globs.iter().filter_map(Glob::as_literal).map(str::to_owned).collect();
            for text in names.iter().filter(|text| !text.starts_with('-')) {
                globs.extend(
                    (1..=text.chars().count()).map(|n| Glob::literal(&text.chars().take(n).collect::<String>())),
                );
            }
        }
    }
    words
}

/// `subalias NAME = ALIAS…`: other names of a sub-command.
fn usual<'a>(table: &'a Program<'static>, name: &'a str) -> &'a str {
    table.sub_aliases.iter().find(|(_, aliases)| aliases.contains(&name)).map_or(name, |(usual, _)| usual)
}

/// "Two readings": a word known only at run time stands where the pattern has `*` or `**`
/// and can neither split nor become an option. "Parts": names of files are one or more, so what
/// stands behind them is not known, nor how much.
fn surely_fits(pattern: &[Vec<Glob>], rest: bool, words: &[Word]) -> bool {
    let any = |globs: &Vec<Glob>| globs.iter().any(|glob| glob.pieces() == [Piece::Any]);
    match (pattern, words) {
        (_, words) if words.contains(&Word::Open) => false,
        (pattern, [Word::Files(_), ..]) => rest && pattern.len() <= words.len() && pattern.iter().all(any),
        ([], []) => true,
        ([], [_, words @ ..]) => rest && surely_fits(pattern, rest, words),
        ([_, ..], []) => false,
        ([globs, pattern @ ..], [word, words @ ..]) => {
            let fits = match word {
                Word::Known(text) => any_matches(globs, text),
                _ => any(globs),
            };
            fits && surely_fits(pattern, rest, words)
        }
    }
}

/// "Two readings": an unknown word standing for anything; one that may split leaves open every
/// word behind it, and their number.
fn may_fit(pattern: &[Vec<Glob>], rest: bool, words: &[Word]) -> bool {
    match (pattern, words) {
        ([], words) => rest || words.is_empty() || words.iter().any(may_split),
        (_, [word, ..]) if may_split(word) => true,
        ([_, ..], []) => false,
        ([globs, pattern @ ..], [word, words @ ..]) => {
            let fits = match word {
                Word::Known(text) => any_matches(globs, text),
                _ => true,
            };
            fits && may_fit(pattern, rest, words)
        }
    }
}

/// "Parts": what may be more words than one.
const fn may_split(word: &Word) -> bool {
    matches!(word, Word::Open | Word::Files(_))
}

/// Whether the words are, for certain, those of a sub-command.
fn words_are(path: &[&str], words: &[Word]) -> bool {
    path.len() <= words.len() && path.iter().zip(words).all(|(name, word)| *word == Word::Known((*name).to_owned()))
}

/// Whether they may be.
fn words_may_be(path: &[&str], words: &[Word]) -> bool {
    match (path, words) {
        ([], _) | (_, [Word::Open | Word::Files(_), ..]) => true,
        ([_, ..], []) => false,
        ([name, path @ ..], [word, words @ ..]) => {
            (matches!(word, Word::Value) || *word == Word::Known((*name).to_owned())) && words_may_be(path, words)
        }
    }
}

/// What the table says of the program of a request, as far as a pattern tells where.
struct Table {
    program: Option<&'static Program<'static>>,
    /// Long options have one dash.
    dashed: bool,
    /// The entries that surely hold: the program's own, and those of sub-commands that literal
    /// words of the pattern name.
    sure: Vec<&'static Entry<'static>>,
    /// Entries that may hold together: those of each sub-command that the pattern may match.
    possible: Vec<Vec<&'static Entry<'static>>>,
}

impl Table {
    fn new(pattern: &CommandPattern, request: &CommandRequest) -> Self {
        let mut out =
            Table { program: program(&request.program), dashed: false, sure: Vec::new(), possible: Vec::new() };
        let Some(table) = out.program else { return out };
        let words = patterns(pattern, &request.program);
        out.dashed = table.dashed;
        out.sure = vec![&table.entry];
        out.possible = vec![vec![&table.entry]];
        for (path, entry) in &table.subs {
            // An unknown word is this one where the pattern leaves nothing else.
            let names = |(at, name): (usize, &&str)| match request.words.get(at) {
                Some(Word::Known(text)) if !unknown_before(at, &request.words) => {
                    text == name && literal(&words, at, name)
                }
                _ => words
                    .get(at)
                    .is_some_and(|globs| globs.iter().all(|glob| usual_literal(table, at, glob) == Some(name))),
            };
            if path.iter().enumerate().all(names) {
                out.sure.push(entry);
            }
            let may = |(at, name): (usize, &&str)| words.get(at).map_or(pattern.rest, |globs| any_matches(globs, name));
            if path.iter().enumerate().all(may) {
                let above = table.subs.iter().filter(|(own, _)| path.starts_with(own)).map(|(_, entry)| entry);
                out.possible.push(std::iter::once(&table.entry).chain(above).collect());
            }
        }
        out
    }

    /// "alias", "implies": other spellings of options; where effects count, also the options
    /// whose effect includes theirs.
    fn spellings(&self, names: &[String], entries: &[&Entry<'_>], effects: bool) -> BTreeSet<String> {
        let same = |option: &str| spelled(option, self.dashed);
        let mut out: BTreeSet<String> = names.iter().cloned().collect();
        loop {
            let mut more: BTreeSet<String> = BTreeSet::new();
            for entry in entries {
                for group in &entry.aliases {
                    if group.iter().any(|option| out.contains(&same(option))) {
                        more.extend(group.iter().map(|option| same(option)));
                    }
                }
                for (option, others) in entry.implies.iter().filter(|_| effects) {
                    if others.iter().any(|other| out.contains(&same(other))) {
                        more.insert(same(option));
                    }
                }
            }
            if more.is_subset(&out) {
                return out;
            }
            out.extend(more);
        }
    }

    /// Every spelling that surely is this option.
    fn surely(&self, option: &str) -> BTreeSet<String> {
        self.spellings(&[option.to_owned()], &self.sure, false)
    }

    /// Every spelling that may be it, or include what it does.
    fn perhaps(&self, option: &str, effects: bool) -> BTreeSet<String> {
        let mut out: BTreeSet<String> = [option.to_owned()].into();
        for entries in &self.possible {
            out.extend(self.spellings(&[option.to_owned()], entries, effects));
        }
        out
    }

    /// Whether the table lists an option in full, so that it abbreviates no other.
    fn lists(&self, option: &str) -> bool {
        self.sure.iter().any(|entry| entry.lists(option))
    }

    /// `--forc` and `--f` may mean `--force`, since many programs take an abbreviation.
    fn may_mean(&self, option: &str, meant: &str) -> bool {
        let short = !self.dashed && option.starts_with("--") && option.len() > 2 && meant.starts_with(option);
        option == meant || short && !self.lists(option)
    }

    /// `only`: whether an option is of the list.
    fn listed(&self, option: &str, items: &[Item]) -> bool {
        items.iter().flat_map(|item| Options::parts(item, self.dashed)).any(|part| self.surely(&part).contains(option))
    }

    /// `only`, restricting side: an abbreviation is not certainly outside the list.
    fn may_be_listed(&self, option: &str, items: &[Item]) -> bool {
        let parts = items.iter().flat_map(|item| Options::parts(item, self.dashed));
        parts.flat_map(|part| self.perhaps(&part, false)).any(|meant| self.may_mean(option, &meant))
    }
}

/// Whether what stands at a place depends on a word that is not one word for certain.
fn unknown_before(at: usize, words: &[Word]) -> bool {
    words.iter().take(at).any(may_split)
}

/// Whether a pattern has this literal word in this place, among others perhaps.
fn literal(words: &[Vec<Glob>], at: usize, name: &str) -> bool {
    words.get(at).is_some_and(|globs| globs.iter().any(|glob| glob.as_literal() == Some(name)))
}

fn usual_literal<'a>(table: &'a Program<'static>, at: usize, glob: &'a Glob) -> Option<&'a str> {
    glob.as_literal().map(|text| if at == 0 { usual(table, text) } else { text })
}

/// An option of the table as requests have it: where long options have one dash, two mean the same.
fn spelled(option: &str, dashed: bool) -> String {
    if dashed && option.starts_with("--") { option[1..].to_owned() } else { option.to_owned() }
}

/// "hazard" and "hazardous": whether the request may hold what executes, writes, deletes or sends
/// and the rule does not name.
fn hazardous(
    table: &Table,
    seen: &Options,
    pattern: &CommandPattern,
    with: &[Vec<Item>],
    only: Option<&[Item]>,
    request: &CommandRequest,
) -> bool {
    let Some(program) = table.program else { return false };
    // "Command patterns": a wildcard reaches no program that the table knows hazards of.
    let named = |glob: &Glob| glob.as_literal() == Some(request.program.as_str());
    let wild = pattern.programs.iter().any(|glob| glob.as_literal().is_none());
    let option =
        |globs: &Vec<Glob>| globs.iter().all(|glob| glob.as_literal().is_some_and(|text| text.starts_with("--")));
    if !pattern.rest && pattern.words.iter().all(option) {
        return false;
    }
    if wild && !pattern.programs.iter().any(named) {
        let entries = program.subs.iter().map(|(_, entry)| entry).chain([&program.entry]);
        return !program.hazardous.is_empty() || entries.into_iter().any(|entry| !entry.hazards.is_empty());
    }
    let words = patterns(pattern, &request.program);
    let shortens = |name: &str, text: &str| program.abbreviates && !text.is_empty() && name.starts_with(text);
    let literal_here = |at: usize, text: &str| literal(&words, at, text);
    if program.hazardous.iter().any(|(path, _)| {
        let open = path.iter().zip(&request.words).position(|(_, word)| !matches!(word, Word::Known(_)));
        let may_be = path.iter().enumerate().all(|(at, name)| match request.words.get(at) {
            None => request.words.iter().any(may_split),
            _ if unknown_before(at, &request.words) || open == Some(at) => true,
            Some(Word::Known(text)) => {
                let aliases = program.sub_aliases.iter().filter(|(own, _)| at == 0 && path.len() == 1 && own == name);
                let short = std::iter::once(*name).chain(aliases.flat_map(|(_, others)| others.iter().copied()));
                let other = path.len() == 1 && (literal_here(0, text) || program.known.contains(&text.as_str()));
                text == name || !other && short.into_iter().any(|name| shortens(name, text))
            }
            Some(_) => true,
        });
        may_be && !path.iter().enumerate().all(|(at, name)| literal(&words, at, name))
    }) {
        return true;
    }
    // "known": where the pattern leaves the sub-command open, one that the table lists, or the rule.
    let first = words.first().filter(|globs| globs.iter().all(|glob| glob.as_literal().is_some()));
    if !program.known.is_empty() && first.is_none() {
        let fine = match request.words.first() {
            None => program.known.contains(&"-"),
            Some(Word::Known(text)) => *text != "-" && program.known.contains(&text.as_str()) || literal_here(0, text),
            Some(_) => false,
        };
        if !fine {
            return true;
        }
    }
    // What the rule names: options, and texts of arguments.
    let mut options: Vec<String> = Vec::new();
    let mut required: Vec<&Glob> = Vec::new();
    for item in with.iter().flatten().chain(only.unwrap_or_default()) {
        options.extend(Options::parts(item, table.dashed));
        if let Item::Argument(glob) = item {
            options.extend(option_of_argument(glob).map(|name| spelled(name, table.dashed)));
            required.push(glob);
        }
    }
    for glob in words.iter().flatten() {
        options.extend(glob.as_literal().into_iter().flat_map(|text| seen.options_of(text)));
    }
    let mut entries: Vec<(Vec<&Entry<'_>>, &Entry<'_>)> = vec![(vec![&program.entry], &program.entry)];
    for (path, entry) in program.subs.iter().filter(|(path, _)| words_may_be(path, &request.words)) {
        let above = program.subs.iter().filter(|(own, _)| path.starts_with(own)).map(|(_, entry)| entry);
        entries.push((std::iter::once(&program.entry).chain(above).collect(), entry));
    }
    entries.iter().any(|(holding, entry)| {
        let named = table.spellings(&options, holding, false);
        entry.hazards.iter().flat_map(|(hazards, _)| hazards).any(|hazard| {
            if !hazard.starts_with('-') {
                let hazard = Glob::from_stars(hazard);
                let covers =
                    |glob: &Glob| ["", "\u{1}"].iter().all(|fill| glob_matches(hazard.pieces(), &filled(glob, fill)));
                let dangerous = |(at, word): (usize, &Word)| {
                    let here = words.get(at).filter(|_| !pattern.rest);
                    let known = |text: &str, globs: &Vec<Glob>| {
                        globs.iter().any(|glob| covers(glob) && glob_matches(glob.pieces(), text))
                    };
                    match word {
                        Word::Known(text) => {
                            glob_matches(hazard.pieces(), text) && !here.is_some_and(|globs| known(text, globs))
                        }
                        _ => !here.is_some_and(|globs| globs.iter().all(covers)),
                    }
                };
                return !required.iter().any(|glob| covers(glob)) && request.words.iter().enumerate().any(dangerous);
            }
            let parts = seen.options_of(hazard);
            let unnamed = parts.iter().any(|part| !named.contains(part));
            let present = |part: &String| {
                let spellings = table.spellings(std::slice::from_ref(part), holding, true);
                let live = |meant: &&String| !named.contains(*meant);
                spellings.iter().filter(live).any(|meant| {
                    seen.possible.iter().any(|option| !named.contains(option) && table.may_mean(option, meant))
                })
            };
            unnamed && parts.iter().all(present)
        })
    })
}

/// The text of a glob with each `*` replaced.
fn filled(glob: &Glob, fill: &str) -> String {
    let pieces = glob.pieces().iter().map(|piece| match piece {
        Piece::Text(text) => text.as_str(),
        Piece::Any => fill,
    });
    pieces.collect()
}

/// The option that `--output=/etc/*` is about.
fn option_of_argument(glob: &Glob) -> Option<&str> {
    match glob.pieces() {
        [Piece::Text(text), ..] if text.starts_with('-') => text.split_once('=').map(|(name, _)| name),
        _ => None,
    }
}

/// The options of a command line, read word by word.
struct Options {
    /// Those that may be present.
    possible: Vec<String>,
    /// Those that certainly are.
    sure: Vec<String>,
    /// Those that stood before the sub-command.
    globals: Vec<String>,
    /// Some word may be any option.
    anything: bool,
    /// The program's long options have one dash.
    dashed: bool,
}

impl Options {
    /// "with, only, unless": `--force` and the first letter of a cluster are certain when the
    /// word before is no option that may take a value; everything else is possible.
    fn scan(request: &CommandRequest) -> Self {
        let dashed = program(&request.program).is_some_and(|program| program.dashed);
        let anything = request.words.contains(&Word::Open);
        let mut out = Options { possible: Vec::new(), sure: Vec::new(), globals: Vec::new(), anything, dashed };
        out.globals = request.globals.iter().flat_map(|word| out.options_of(word)).collect();
        // Whether the word before may take this one as its value; whether a `--` may have passed.
        let (mut value, mut ended) = (false, false);
        for word in &request.words {
            let text = match word {
                Word::Value | Word::Files(_) => {
                    value = false;
                    continue;
                }
                Word::Open => {
                    // It may be an option that takes the next word, or `--`.
                    (out.anything, value, ended) = (true, true, true);
                    continue;
                }
                Word::Known(text) => text.as_str(),
            };
            if text == "--" {
                // Programs like `find` read options behind it all the same.
                if !value && !ended && !dashed {
                    break;
                }
                (value, ended) = (false, true);
                continue;
            }
            let options = out.options_of(text);
            if let Some(first) = options.first()
                && !value
                && !ended
            {
                out.sure.push(first.clone());
            }
            value = !options.is_empty() && !text.contains('=');
            out.possible.extend(options);
        }
        out
    }

    /// What a word is if it is an option; the first is certain then. What stands behind `=` is
    /// a value, in a cluster too; programs whose long options have one dash know no clusters,
    /// and take a long option with two dashes for the same.
    fn options_of(&self, text: &str) -> Vec<String> {
        let head = text.split('=').next().unwrap();
        match (head.strip_prefix("--"), head.strip_prefix('-')) {
            (Some(""), _) | (_, Some("")) | (None, None) => Vec::new(),
            (Some(name), _) | (None, Some(name)) if self.dashed => vec![format!("-{name}")],
            (Some(_), _) => vec![head.to_owned()],
            (None, Some(letters)) => letters.chars().map(|letter| format!("-{letter}")).collect(),
        }
    }

    /// "is present when", of options: what must be there for the item, all of it. `-rf` is
    /// exactly that option where long options have one dash, else all of its letters.
    fn parts(item: &Item, dashed: bool) -> Vec<String> {
        match item {
            Item::Long(name) if dashed => vec![format!("-{name}")],
            Item::Long(name) => vec![format!("--{name}")],
            Item::Short(letter) => vec![format!("-{letter}")],
            Item::Dashed(name) if dashed => vec![format!("-{name}")],
            Item::Dashed(letters) => letters.chars().map(|letter| format!("-{letter}")).collect(),
            Item::Argument(_) => Vec::new(),
        }
    }

    /// Whether an item is certainly present, in one spelling or another.
    fn certain(&self, item: &Item, words: &[Word], table: &Table) -> bool {
        match item {
            Item::Argument(glob) => {
                words.iter().any(|word| matches!(word, Word::Known(text) if glob_matches(glob.pieces(), text)))
            }
            _ => Self::parts(item, self.dashed)
                .iter()
                .all(|part| table.surely(part).iter().any(|option| self.sure.contains(option))),
        }
    }

    /// Whether an item may be present: as itself, in another spelling, abbreviated, by an option
    /// that includes its effect, or before the sub-command.
    fn may_be(&self, item: &Item, words: &[Word], table: &Table) -> bool {
        let means = |options: &[String], part: &str| {
            table.perhaps(part, true).iter().any(|meant| options.iter().any(|option| table.may_mean(option, meant)))
        };
        if let Item::Argument(glob) = item {
            let before = |name: &str| self.options_of(name).iter().any(|option| means(&self.globals, option));
            self.certain(item, words, table)
                || words.iter().any(|word| !matches!(word, Word::Known(_)))
                || option_of_argument(glob).is_some_and(before)
        } else {
            let parts = Self::parts(item, self.dashed);
            self.anything
                || parts.iter().all(|part| means(&self.possible, part))
                || parts.iter().any(|part| means(&self.globals, part))
        }
    }
}

/// Facts about which zones arguments name.
struct Names {
    zones: BTreeSet<String>,
    /// Some argument's zone is not known.
    unknown: bool,
}

/// "Guards": zones of an argument. An absolute path, or one in a home, that is in no zone is
/// `elsewhere`; one with a `..` segment is also unknown where the working directory is not
/// known; the zones of the working directory are added.
fn names(config: &Config, request: &CommandRequest) -> Names {
    let mut out = Names { zones: request.place.zones.clone(), unknown: false };
    let files = request.words.iter().filter_map(|word| match word {
        Word::Files(pattern) => Some(pattern),
        _ => None,
    });
    for pattern in files {
        for path in paths_in(pattern) {
            out.unknown |= climbs(path, request);
            let zones = config.zones.names().filter(|zone| in_zone(config, zone, path, file_matches));
            out.zones.extend(zones.map(str::to_owned));
            let nowhere =
                |name: &String| !config.zones.names().any(|zone| in_zone(config, zone, name, segment_matches));
            if path.starts_with(['/', '~']) && some_files(path).iter().any(nowhere) {
                out.zones.insert("elsewhere".to_owned());
            }
        }
    }
    let known = request.words.iter().filter_map(|word| match word {
        Word::Known(text) => Some(text),
        _ => None,
    });
    out.unknown |= request.words.iter().any(|word| matches!(word, Word::Value | Word::Open));
    for text in known.chain(&request.globals) {
        for path in paths_in(text) {
            out.unknown |= climbs(path, request);
            let zones: Vec<&str> =
                config.zones.names().filter(|zone| in_zone(config, zone, path, segment_matches)).collect();
            if zones.is_empty() && path.starts_with(['/', '~']) {
                out.zones.insert("elsewhere".to_owned());
            }
            out.zones.extend(zones.into_iter().map(str::to_owned));
        }
    }
    out
}

fn climbs(path: &str, request: &CommandRequest) -> bool {
    path.split('/').any(|segment| segment == "..") && !request.place.known
}

/// How a segment of a path pattern is compared with one of a path.
type Compare = fn(&str, &str) -> bool;

fn in_zone(config: &Config, zone: &str, path: &str, compare: Compare) -> bool {
    let (patterns, _) = config.zones.get(zone).unwrap();
    patterns.iter().any(|pattern| path_meets(&pattern.to_string(), path, compare))
}

/// "Parts": whether a file of this name pattern may have a name that the segment matches. A
/// wildcard stands for no dot at the start of a name.
fn file_matches(segment: &str, pattern: &str) -> bool {
    fn meet(segment: &[char], pattern: &[char], start: bool) -> bool {
        if let (['*', segment @ ..], _) = (segment, pattern)
            && meet(segment, pattern, start)
        {
            return true;
        }
        // The next character of the name, as far as the pattern tells it.
        let (allowed, behind): (Option<&[char]>, &[char]) = match pattern {
            [] => return segment.is_empty(),
            ['*', behind @ ..] => {
                if meet(segment, behind, start) {
                    return true;
                }
                (None, pattern)
            }
            ['?', behind @ ..] => (None, behind),
            ['[', tail @ ..] => {
                let end = tail.iter().position(|c| *c == ']').unwrap();
                (Some(&tail[..end]), &tail[end + 1..])
            }
            [_, behind @ ..] => (Some(&pattern[..1]), behind),
        };
        match segment {
            [] => false,
            ['*', ..] => (behind.len() < pattern.len() || start) && meet(segment, behind, false),
            [c, segment @ ..] => {
                allowed.map_or(!start || *c != '.', |set| set.contains(c)) && meet(segment, behind, false)
            }
        }
    }
    let chars = |text: &str| text.chars().collect::<Vec<_>>();
    meet(&chars(segment), &chars(pattern), true)
}

/// Names that files of a pattern may have; such that lie in as few zones as any.
fn some_files(pattern: &str) -> Vec<String> {
    let mut out = vec![String::new()];
    let mut rest = pattern;
    while let Some(c) = rest.chars().next() {
        rest = &rest[c.len_utf8()..];
        let choices: Vec<String> = match c {
            '*' | '?' => vec!["q".to_owned()],
            '[' => {
                let (set, tail) = rest.split_once(']').unwrap();
                rest = tail;
                set.chars().map(String::from).collect()
            }
            c => vec![c.to_string()],
        };
        out = out.iter().flat_map(|head| choices.iter().map(move |choice| format!("{head}{choice}"))).collect();
    }
    out
}

/// "Guards": an argument names the path that it is, and those behind `=`, `:`, `@` and `,`
/// and behind a short option that they are glued to.
fn paths_in(text: &str) -> Vec<&str> {
    let mut out = vec![text];
    out.extend(text.match_indices(['=', ':', '@', ',']).map(|(at, _)| &text[at + 1..]));
    if text.starts_with('-') && !text.starts_with("--") {
        let end = text.find(['/', '~']).unwrap_or(text.len());
        out.extend(text.char_indices().map(|(at, _)| at).filter(|at| (2..=end).contains(at)).map(|at| &text[at..]));
    }
    out
}

/// "The policy repository": a path pattern is absolute, in a home directory (`~`, `~name`,
/// `/root`, `/home/NAME` or `/Users/NAME`), or at any depth.
pub fn path_matches(pattern: &str, path: &str) -> bool {
    path_meets(pattern, path, segment_matches)
}

fn path_meets(pattern: &str, path: &str, compare: Compare) -> bool {
    let absolute = path.starts_with('/');
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    if let Some(tail) = pattern.strip_prefix("**/") {
        return (0..parts.len()).any(|from| below(tail, &parts[from..], compare));
    }
    if let Some(tail) = pattern.strip_prefix("~/") {
        return match parts.as_slice() {
            [home, parts @ ..] if !absolute => home.starts_with('~') && below(tail, parts, compare),
            [home, parts @ ..] if compare("root", home) && below(tail, parts, compare) => true,
            [home, _, parts @ ..] if compare("home", home) || compare("Users", home) => below(tail, parts, compare),
            _ => false,
        };
    }
    absolute && below(pattern.strip_prefix('/').unwrap(), &parts, compare)
}

/// "The policy repository": `*` matches inside one segment, a last `**` the directory itself
/// and everything below it.
fn below(pattern: &str, parts: &[&str], compare: Compare) -> bool {
    let mut segments: Vec<&str> = pattern.split('/').collect();
    let rest = segments.last() == Some(&"**");
    if rest {
        segments.pop();
    }
    (parts.len() == segments.len() || rest && parts.len() > segments.len())
        && segments.iter().zip(parts).all(|(segment, part)| compare(segment, part))
}

fn segment_matches(pattern: &str, text: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == text,
        Some((head, tail)) => text.strip_prefix(head).is_some_and(|rest| {
            rest.char_indices().map(|(at, _)| at).chain([rest.len()]).any(|at| segment_matches(tail, &rest[at..]))
        }),
    }
}

/// Whether some part is only known at run time. Names of files are a matter of their own.
fn is_dynamic(request: &CommandRequest) -> bool {
    request.dynamic || request.words.iter().any(|word| matches!(word, Word::Value | Word::Open))
}

fn flag(term: Option<BoolTerm>, value: bool) -> bool {
    match term {
        None | Some(BoolTerm::Any) => true,
        Some(BoolTerm::Yes) => value,
        Some(BoolTerm::No) => !value,
    }
}

/// "Facts", permitting side of a fact that is a set: only these; nothing at all.
fn only_these(term: &SetTerm, values: &BTreeSet<String>) -> bool {
    match term {
        SetTerm::Any => true,
        SetTerm::Empty => values.is_empty(),
        SetTerm::In(allowed) => values.is_subset(allowed),
    }
}

/// "Facts", restricting side: one of these; nothing at all.
fn one_of_these(term: Option<&SetTerm>, values: &BTreeSet<String>) -> bool {
    match term {
        None | Some(SetTerm::Any) => true,
        Some(SetTerm::Empty) => values.is_empty(),
        Some(SetTerm::In(named)) => !values.is_disjoint(named),
    }
}

/// "Facts", permitting side, and "Guards" where `when` does not speak of the fact.
fn facts_narrow(rule: &Rule, config: &Config, request: &CommandRequest, rung: u8) -> bool {
    let when = &rule.when;
    let guarded = rule.tier.number() <= 1;
    let names = names(config, request);
    let set = |values: &[&str]| values.iter().map(|v| (*v).to_owned()).collect::<BTreeSet<_>>();
    let dynamic = match when.dynamic {
        None if guarded => !is_dynamic(request),
        term => flag(term, is_dynamic(request)),
    };
    let env = match &when.env {
        None if guarded => request.env.iter().all(|name| config.allowed_env.contains(name)),
        None => true,
        Some(term) => only_these(term, &request.env),
    };
    let writes = match &when.writes {
        None if rule.tier.number() == 0 && rung == 0 => request.writes.is_empty(),
        None if guarded => request.writes.is_subset(&set(&["workspace", "tmp"])),
        None => true,
        Some(term) => only_these(term, &request.writes),
    };
    let named = match &when.names {
        None if guarded => !names.unknown && names.zones.is_disjoint(&set(&["credential", "policy"])),
        None | Some(SetTerm::Any) => true,
        Some(term) => !names.unknown && only_these(term, &names.zones),
    };
    let wrappers = when.wrappers.as_ref().is_none_or(|term| only_these(term, &request.wrappers));
    // `trusted=no` never permits.
    when.trusted.is_none() && dynamic && env && writes && named && wrappers && flag(when.external, request.external)
}

/// "Facts", restricting side.
fn facts_broad(rule: &Rule, config: &Config, request: &CommandRequest) -> bool {
    let when = &rule.when;
    let names = names(config, request);
    let writes = match &when.writes {
        Some(SetTerm::In(_)) if request.writes.contains("unknown") => true,
        term => one_of_these(term.as_ref(), &request.writes),
    };
    let named = match &when.names {
        Some(SetTerm::In(_)) if names.unknown => true,
        term => one_of_these(term.as_ref(), &names.zones),
    };
    flag(when.dynamic, is_dynamic(request))
        && flag(when.external, request.external)
        && flag(when.trusted, request.trusted)
        && writes
        && named
        && one_of_these(when.env.as_ref(), &request.env)
        && one_of_these(when.wrappers.as_ref(), &request.wrappers)
}

/// "Egress patterns", without the secrets, which only the permitting side minds.
fn egress(rule: &Rule, pattern: &EgressPattern, request: &EgressRequest) -> bool {
    let host = match &pattern.host {
        HostPattern::Exact(name) => request.address.is_none() && request.host == *name,
        HostPattern::SubDomains(name) => request.address.is_none() && request.host.ends_with(&format!(".{name}")),
        HostPattern::DomainTree(name) => {
            request.address.is_none() && (request.host == *name || request.host.ends_with(&format!(".{name}")))
        }
        HostPattern::Network(network) => {
            request.address.is_some_and(|address| in_network(address, network.addr(), u32::from(network.prefix_len())))
        }
    };
    let (have, want) = (request.segments.len(), pattern.segments.len());
    let path = (have == want || pattern.rest && have > want)
        && pattern.segments.iter().zip(&request.segments).all(|(glob, text)| glob_matches(glob.pieces(), text));
    subjects(rule, &request.agent, &request.machine)
        && pattern.methods.contains(&request.method)
        && pattern.scheme == request.scheme
        && pattern.port == request.port
        && host
        && path
        && flag(rule.when.external, request.external)
}
