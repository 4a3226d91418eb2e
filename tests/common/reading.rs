//! A second reading of `docs/policy-format.md`, in plain Rust over argument vectors.
//!
//! Written from the text of that page and from nothing else: no Cedar, no facts, no automata.
//! Each function names the section that it reads. It favours the obvious over the fast.

use std::collections::BTreeSet;
use std::net::IpAddr;

use polctl::model::{
    BoolTerm, CommandPattern, CommandRequest, Config, EgressPattern, EgressRequest, Glob, HostPattern, Item, Matcher,
    NON_PUBLIC, Piece, PolicySet, Provenance, Request, Rule, SetTerm, Surface, Word,
};

/// "Tier maps": whether a request may run at a rung. A rule of tier k permits tier k and above
/// under its narrow reading, and forbids the tiers below k under its broad one; what no rule
/// matches has the tier `unmatched`; a surface that no file covers permits nothing.
pub fn allows(set: &PolicySet, request: &Request, rung: u8) -> bool {
    let surface = request.surface();
    let Some(info) = set.surfaces.get(&surface) else { return false };
    let rules: Vec<&Rule> = set.rules.iter().filter(|rule| rule.surface == surface).collect();
    let permitted = rung >= info.unmatched.number()
        || rules.iter().any(|rule| rung >= rule.tier.number() && narrow(rule, &set.config, request, rung));
    let forbidden = rules.iter().any(|rule| rung < rule.tier.number() && broad(rule, &set.config, request));
    permitted && !forbidden && !guardrail(&set.config, request, rung)
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
            let user = request.surface != Surface::Sudo
                || if run_as.is_empty() { request.run_as == "root" } else { run_as.contains(&request.run_as) };
            request.trusted
                && request.harmless
                && subjects(rule, &request.agent, &request.host)
                && user
                && program(pattern, request)
                && surely_fits(&pattern.words, pattern.rest, &request.words)
                && with.iter().all(|items| items.iter().any(|item| seen.certain(item, &request.words, seen.dashed)))
                && only
                    .as_ref()
                    .is_none_or(|items| seen.possible.iter().all(|option| Options::listed(option, items, seen.dashed)))
                && !unless.iter().any(|item| seen.may_be(item, &request.words, seen.dashed))
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
            let dashed = seen.dashed;
            subjects(rule, &request.agent, &request.host)
                && (run_as.is_empty() || run_as.contains(&request.run_as))
                && program(pattern, request)
                && may_fit(&pattern.words, pattern.rest, &request.words)
                && with.iter().all(|items| items.iter().any(|item| seen.may_be(item, &request.words, dashed)))
                && only
                    .as_ref()
                    .is_none_or(|items| seen.sure.iter().all(|option| Options::may_be_listed(option, items, dashed)))
                && !unless.iter().any(|item| seen.certain(item, &request.words, dashed))
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
fn program(pattern: &CommandPattern, request: &CommandRequest) -> bool {
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

/// "Two readings": a word known only at run time stands where the pattern has `*` or `**`
/// and can neither split nor become an option.
fn surely_fits(pattern: &[Vec<Glob>], rest: bool, words: &[Word]) -> bool {
    match (pattern, words) {
        (_, [Word::Open, ..]) => false,
        ([], []) => true,
        ([], [_, words @ ..]) => rest && surely_fits(pattern, rest, words),
        ([_, ..], []) => false,
        ([globs, pattern @ ..], [word, words @ ..]) => {
            let fits = match word {
                Word::Known(text) => any_matches(globs, text),
                _ => globs.iter().any(|glob| glob.pieces() == [Piece::Any]),
            };
            fits && surely_fits(pattern, rest, words)
        }
    }
}

/// "Two readings": an unknown word standing for anything; one that may split leaves open every
/// word behind it, and their number.
fn may_fit(pattern: &[Vec<Glob>], rest: bool, words: &[Word]) -> bool {
    match (pattern, words) {
        ([], words) => rest || words.is_empty() || words.contains(&Word::Open),
        (_, [Word::Open, ..]) => true,
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

/// "with, only, unless": programs whose long options have one dash.
fn has_dashed_options(program: &str) -> bool {
    matches!(program, "find" | "terraform")
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
        let dashed = has_dashed_options(&request.program);
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

    /// Whether an item is certainly present.
    fn certain(&self, item: &Item, words: &[Word], dashed: bool) -> bool {
        match item {
            Item::Argument(glob) => {
                words.iter().any(|word| matches!(word, Word::Known(text) if glob_matches(glob.pieces(), text)))
            }
            _ => Self::parts(item, dashed).iter().all(|option| self.sure.contains(option)),
        }
    }

    /// Whether an item may be present: as itself, abbreviated, or before the sub-command.
    fn may_be(&self, item: &Item, words: &[Word], dashed: bool) -> bool {
        if let Item::Argument(glob) = item {
            let option = match glob.pieces() {
                [Piece::Text(text), ..] if text.starts_with('-') => text.split_once('='),
                _ => None,
            };
            let global = |(name, _)| self.options_of(name).iter().any(|option| self.globals.contains(option));
            self.certain(item, words, dashed)
                || words.iter().any(|word| !matches!(word, Word::Known(_)))
                || option.is_some_and(global)
        } else {
            let parts = Self::parts(item, dashed);
            let means = |options: &[String], part| options.iter().any(|option| Self::may_mean(option, part, dashed));
            self.anything
                || parts.iter().all(|part| means(&self.possible, part))
                || parts.iter().any(|part| means(&self.globals, part))
        }
    }

    /// `--forc` and `--f` may mean `--force`, since many programs take an abbreviation.
    fn may_mean(option: &String, meant: &String, dashed: bool) -> bool {
        option == meant || !dashed && option.starts_with("--") && option.len() > 2 && meant.starts_with(option.as_str())
    }

    /// `only`: whether an option is of the list.
    fn listed(option: &String, items: &[Item], dashed: bool) -> bool {
        items.iter().any(|item| Self::parts(item, dashed).contains(option))
    }

    /// `only`, restricting side: an abbreviation is not certainly outside the list.
    fn may_be_listed(option: &String, items: &[Item], dashed: bool) -> bool {
        items.iter().any(|item| Self::parts(item, dashed).iter().any(|part| Self::may_mean(option, part, dashed)))
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
    let known = request.words.iter().filter_map(|word| match word {
        Word::Known(text) => Some(text),
        _ => None,
    });
    out.unknown |= known.clone().count() < request.words.len();
    for text in known.chain(&request.globals) {
        for path in paths_in(text) {
            out.unknown |= path.split('/').any(|segment| segment == "..") && !request.place.known;
            let zones: Vec<&str> = config.zones.names().filter(|zone| in_zone(config, zone, path)).collect();
            if zones.is_empty() && path.starts_with(['/', '~']) {
                out.zones.insert("elsewhere".to_owned());
            }
            out.zones.extend(zones.into_iter().map(str::to_owned));
        }
    }
    out
}

fn in_zone(config: &Config, zone: &str, path: &str) -> bool {
    let (patterns, _) = config.zones.get(zone).unwrap();
    patterns.iter().any(|pattern| path_matches(&pattern.to_string(), path))
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
    let absolute = path.starts_with('/');
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    if let Some(tail) = pattern.strip_prefix("**/") {
        return (0..parts.len()).any(|from| below(tail, &parts[from..]));
    }
    if let Some(tail) = pattern.strip_prefix("~/") {
        return match parts.as_slice() {
            [home, parts @ ..] if !absolute && home.starts_with('~') => below(tail, parts),
            ["root", parts @ ..] | ["home" | "Users", _, parts @ ..] if absolute => below(tail, parts),
            _ => false,
        };
    }
    absolute && below(pattern.strip_prefix('/').unwrap(), &parts)
}

/// "The policy repository": `*` matches inside one segment, a last `**` the directory itself
/// and everything below it.
fn below(pattern: &str, parts: &[&str]) -> bool {
    let mut segments: Vec<&str> = pattern.split('/').collect();
    let rest = segments.last() == Some(&"**");
    if rest {
        segments.pop();
    }
    (parts.len() == segments.len() || rest && parts.len() > segments.len())
        && segments.iter().zip(parts).all(|(segment, part)| segment_matches(segment, part))
}

fn segment_matches(pattern: &str, text: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == text,
        Some((head, tail)) => text.strip_prefix(head).is_some_and(|rest| {
            rest.char_indices().map(|(at, _)| at).chain([rest.len()]).any(|at| segment_matches(tail, &rest[at..]))
        }),
    }
}

/// Whether some part is only known at run time.
fn is_dynamic(request: &CommandRequest) -> bool {
    request.dynamic || request.words.iter().any(|word| !matches!(word, Word::Known(_)))
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
