//! The two readings of a rule on the command surfaces (DESIGN 3.4), as conditions.

use super::expr::{Atom, Expr, Flag, SetAttr};
use crate::model::{
    BoolTerm, CommandPattern, Config, Glob, Item, Piece, Rule, SetTerm, Surface, Tier, When, Zones, has_globals,
    single_dash_long, single_dash_programs,
};

/// Which reading a condition is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reading {
    /// Holds whatever the unknown turns out to be: for permits.
    Narrow,
    /// Holds for some way the unknown may turn out: for forbids.
    Broad,
}

/// The parts of a command rule that are matched against words.
pub(super) struct CommandRule<'a> {
    pub(super) rule: &'a Rule,
    pub(super) pattern: &'a CommandPattern,
    pub(super) with: &'a [Vec<Item>],
    pub(super) only: Option<&'a [Item]>,
    pub(super) unless: &'a [Item],
    pub(super) run_as: &'a [String],
}

impl CommandRule<'_> {
    /// The words: program, positions, count, `with`, `only`, `unless`.
    pub(super) fn words(&self, reading: Reading) -> Vec<Expr> {
        let mut out = vec![Atom::Program(self.pattern.programs.clone()).into()];
        for (index, globs) in self.pattern.words.iter().enumerate() {
            let position = index + 1;
            if globs.iter().any(Glob::is_any) {
                continue;
            }
            let known: Expr = Atom::Word(position, globs.clone()).into();
            out.push(match reading {
                Reading::Narrow => known,
                Reading::Broad => Expr::One(vec![known, Atom::WordUnknown(position).into()]),
            });
        }
        out.extend(self.count(reading));
        for items in self.with {
            out.push(self.per_spelling(&|spelling| present(items, reading, spelling)));
        }
        if let Some(items) = self.only {
            out.push(self.per_spelling(&|spelling| only(items, reading, spelling.dashed)));
        }
        if !self.unless.is_empty() {
            // Absent whatever comes: nothing of it may be present, and the other way round.
            let opposite = match reading {
                Reading::Narrow => Reading::Broad,
                Reading::Broad => Reading::Narrow,
            };
            out.push(self.per_spelling(&|spelling| present(self.unless, opposite, spelling).negated()));
        }
        out
    }

    fn count(&self, reading: Reading) -> Option<Expr> {
        let n = self.pattern.words.len();
        let count: Expr = match (self.pattern.rest, n) {
            (true, 0) => return None,
            (true, n) => Atom::CountAtLeast(n).into(),
            (false, n) => Atom::CountIs(n).into(),
        };
        Some(match reading {
            Reading::Narrow => count,
            Reading::Broad => Expr::One(vec![count, Atom::Flag(Flag::Open).into()]),
        })
    }

    /// How options are spelled depends on the program; where the pattern has programs of both
    /// kinds, each is read in its own spelling.
    fn per_spelling(&self, build: &dyn Fn(Spelling) -> Expr) -> Expr {
        let literal = self.pattern.literal_programs();
        let dashed: Vec<Glob> = single_dash_programs()
            .iter()
            .filter(|name| self.pattern.programs.iter().any(|p| p.matches(name)))
            .map(|name| Glob::literal(name))
            .collect();
        let doubled = literal.as_ref().is_none_or(|programs| programs.iter().any(|p| !single_dash_long(p)));
        let globals = literal.as_ref().is_none_or(|programs| programs.iter().any(|p| has_globals(p)));
        let one = |dashed| build(Spelling { dashed, globals });
        match (dashed.is_empty(), doubled) {
            (true, _) => one(false),
            (false, false) => one(true),
            (false, true) => {
                let (plain, long) = (one(false), one(true));
                if plain == long {
                    return plain;
                }
                let dashed = Expr::from(Atom::Program(dashed));
                Expr::One(vec![Expr::All(vec![dashed.clone().negated(), plain]), Expr::All(vec![dashed, long])])
            }
        }
    }

    /// Who, where and as whom.
    pub(super) fn subjects(&self, reading: Reading) -> Vec<Expr> {
        let mut out = subjects(self.rule);
        if self.rule.surface == Surface::Sudo {
            match (self.run_as, reading) {
                ([], Reading::Narrow) => out.push(Atom::RunAs(vec!["root".into()]).into()),
                ([], Reading::Broad) => {}
                (users, _) => out.push(Atom::RunAs(users.to_vec()).into()),
            }
        }
        out
    }
}

/// `agents` and `hosts`, which every surface has.
pub(super) fn subjects(rule: &Rule) -> Vec<Expr> {
    let mut out = Vec::new();
    if !rule.agents.is_empty() {
        out.push(Atom::Agent(rule.agents.clone()).into());
    }
    if !rule.hosts.is_empty() {
        out.push(Atom::Machine(rule.hosts.clone()).into());
    }
    out
}

/// The context's names of an option item: all of them must be there.
fn option_names(item: &Item, dashed: bool) -> Vec<String> {
    match (item, dashed) {
        (Item::Long(name), true) => vec![format!("-{name}")],
        (Item::Long(name), false) => vec![format!("--{name}")],
        (Item::Short(letter), _) => vec![format!("-{letter}")],
        (Item::Dashed(word), true) => vec![format!("-{word}")],
        (Item::Dashed(word), false) => word.chars().map(|c| format!("-{c}")).collect(),
        (Item::Argument(_), _) => Vec::new(),
    }
}

/// How options are spelled, as far as it depends on the program.
#[derive(Clone, Copy)]
struct Spelling {
    /// Long options have one dash.
    dashed: bool,
    /// Options may stand before a sub-command.
    globals: bool,
}

/// At least one of the items is present: certainly (narrow), possibly (broad).
fn present(items: &[Item], reading: Reading, spelling: Spelling) -> Expr {
    let broad = reading == Reading::Broad;
    let set = if broad { SetAttr::Options } else { SetAttr::Certain };
    let (mut single, mut globals, mut alternatives, mut globs) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for item in items {
        if let Item::Argument(glob) = item {
            // `--context=prod*`: before the sub-command the value may stand apart.
            globals.extend(option_head(glob));
            globs.push(glob.clone());
            continue;
        }
        let names = option_names(item, spelling.dashed);
        match (names.as_slice(), item) {
            ([name], Item::Long(_)) if broad && !spelling.dashed => {
                single.extend(abbreviations(name));
                globals.extend(abbreviations(name));
            }
            ([name], _) => {
                single.push(name.clone());
                globals.push(name.clone());
            }
            _ => {
                globals.extend(names.iter().cloned());
                alternatives.push(Expr::All(names.into_iter().map(|n| Atom::HasAny(set, vec![n]).into()).collect()));
            }
        }
    }
    for list in [&mut single, &mut globals] {
        list.sort();
        list.dedup();
    }
    if broad && (!single.is_empty() || !alternatives.is_empty()) {
        alternatives.push(Atom::Flag(Flag::Open).into());
    }
    if broad && spelling.globals && !globals.is_empty() {
        alternatives.push(Atom::HasAny(SetAttr::Globals, globals).into());
    }
    if !single.is_empty() {
        alternatives.insert(0, Atom::HasAny(set, single).into());
    }
    if !globs.is_empty() {
        alternatives.push(Atom::Anywhere(globs).into());
        if broad {
            alternatives.push(Expr::from(Atom::AllKnown).negated());
        }
    }
    Expr::one(alternatives)
}

/// Every way to shorten a long option; GNU and others take one that is unambiguous (cases S06).
fn abbreviations(name: &str) -> impl Iterator<Item = String> + '_ {
    name.char_indices().skip(2).filter_map(|(at, c)| name.get(..at + c.len_utf8())).map(str::to_owned)
}

/// The option that an argument pattern like `--context=prod*` is about.
fn option_head(glob: &Glob) -> Option<String> {
    match glob.pieces().first() {
        Some(Piece::Text(text)) if text.starts_with('-') => text.split_once('=').map(|(head, _)| head.to_owned()),
        _ => None,
    }
}

/// No option outside the items is present: possibly (narrow), certainly (broad).
fn only(items: &[Item], reading: Reading, dashed: bool) -> Expr {
    let mut names: Vec<String> = items.iter().flat_map(|item| option_names(item, dashed)).collect();
    let set = match reading {
        Reading::Narrow => SetAttr::Options,
        Reading::Broad => {
            if !dashed {
                // An abbreviation may stand for what the list allows.
                let long: Vec<String> = names.iter().filter(|n| n.starts_with("--")).cloned().collect();
                names.extend(long.iter().flat_map(|name| abbreviations(name)));
            }
            SetAttr::Certain
        }
    };
    names.sort();
    names.dedup();
    Atom::Within(set, names).into()
}

/// What every permit demands besides its words: a trusted path, a harmless spelling, and
/// no word that could split or become an option.
pub(super) fn sure() -> Vec<Expr> {
    vec![
        Atom::Flag(Flag::Trusted).into(),
        Atom::Flag(Flag::Harmless).into(),
        Expr::from(Atom::Flag(Flag::Open)).negated(),
    ]
}

fn flag_term(flag: Flag, term: Option<BoolTerm>) -> Option<Expr> {
    match term? {
        BoolTerm::Yes => Some(Atom::Flag(flag).into()),
        BoolTerm::No => Some(Expr::from(Atom::Flag(flag)).negated()),
        BoolTerm::Any => None,
    }
}

/// A set-valued fact, and what a `when` says of it.
type SetFact = (SetAttr, fn(&When) -> &Option<SetTerm>);

const SETS: [SetFact; 4] = [
    (SetAttr::Env, |w| &w.env),
    (SetAttr::Names, |w| &w.names),
    (SetAttr::Writes, |w| &w.writes),
    (SetAttr::Wrappers, |w| &w.wrappers),
];

/// `when` on the permitting side; `None` when it can never hold.
pub(super) fn when_permits(when: &When) -> Option<Vec<Expr>> {
    if when.trusted == Some(BoolTerm::No) {
        return None;
    }
    let mut out: Vec<Expr> = Vec::new();
    out.extend(flag_term(Flag::Dynamic, when.dynamic));
    out.extend(flag_term(Flag::External, when.external));
    for (set, term) in SETS {
        match term(when) {
            Some(SetTerm::Empty) => out.push(Atom::Empty(set).into()),
            Some(SetTerm::In(names)) => out.push(Atom::Within(set, names.iter().cloned().collect()).into()),
            Some(SetTerm::Any) | None => {}
        }
    }
    Some(out)
}

/// `when` on the restricting side.
pub(super) fn when_forbids(when: &When) -> Vec<Expr> {
    let mut out: Vec<Expr> = Vec::new();
    out.extend(flag_term(Flag::Dynamic, when.dynamic));
    out.extend(flag_term(Flag::External, when.external));
    out.extend(flag_term(Flag::Trusted, when.trusted));
    for (set, term) in SETS {
        match term(when) {
            // What is unresolved may name nothing at all.
            Some(SetTerm::Empty) if set == SetAttr::Names => {
                out.push(Atom::Within(set, vec![Zones::UNRESOLVED.into()]).into());
            }
            Some(SetTerm::Empty) => out.push(Atom::Empty(set).into()),
            Some(SetTerm::In(names)) => {
                let mut names: Vec<String> = names.iter().cloned().collect();
                match set {
                    SetAttr::Writes => names.push(Zones::UNKNOWN.into()),
                    SetAttr::Names => names.push(Zones::UNRESOLVED.into()),
                    _ => {}
                }
                names.sort();
                out.push(Atom::HasAny(set, names).into());
            }
            Some(SetTerm::Any) | None => {}
        }
    }
    out
}

/// The built-in guards of the permits of a rule of tier 0 or 1, for facts of which its
/// `when` does not speak. `inspect_only`: the allowance at rung 0, which writes nothing.
pub(super) fn guards(rule: &Rule, config: &Config, inspect_only: bool) -> Vec<Expr> {
    let when = &rule.when;
    if rule.tier >= Tier::UNMATCHED {
        return Vec::new();
    }
    let mut out: Vec<Expr> = Vec::new();
    if when.dynamic.is_none() {
        out.push(Expr::from(Atom::Flag(Flag::Dynamic)).negated());
    }
    if when.env.is_none() {
        out.push(if config.allowed_env.is_empty() {
            Atom::Empty(SetAttr::Env).into()
        } else {
            Atom::Within(SetAttr::Env, config.allowed_env.clone()).into()
        });
    }
    if when.names.is_none() {
        let mut zones = Zones::GUARDED.map(str::to_owned).to_vec();
        zones.push(Zones::UNRESOLVED.into());
        out.push(Expr::from(Atom::HasAny(SetAttr::Names, zones)).negated());
    }
    if when.writes.is_none() {
        out.push(if inspect_only {
            Atom::Empty(SetAttr::Writes).into()
        } else {
            Atom::Within(SetAttr::Writes, Zones::WRITABLE.map(str::to_owned).to_vec()).into()
        });
    }
    out
}
