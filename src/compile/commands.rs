//! The two readings of a rule on the command surfaces (DESIGN 3.4), as conditions.

use super::expr::{Atom, Expr, Flag, SetAttr};
use crate::model::{
    BoolTerm, CommandPattern, Config, Entry, Glob, Item, Piece, Program, Rule, SetTerm, Surface, Tier, When, Zones,
    has_globals, program, program_table,
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
            let known = self.per_program(&|spelling| {
                let mut words = spelling.words(index, globs);
                if reading == Reading::Broad && spelling.program.is_some_and(|program| program.abbreviates) {
                    let names = globs.iter().filter_map(Glob::as_literal).filter(|name| !name.starts_with('-'));
                    words.extend(names.flat_map(shortened));
                    words.sort();
                    words.dedup();
                }
                Atom::Word(position, words).into()
            });
            out.push(match reading {
                Reading::Narrow => known,
                Reading::Broad => Expr::One(vec![known, Atom::WordUnknown(position).into()]),
            });
        }
        out.extend(self.count(reading));
        for items in self.with {
            out.push(self.per_program(&|spelling| present(items, reading, spelling)));
        }
        if let Some(items) = self.only {
            out.push(self.per_program(&|spelling| only(items, reading, spelling)));
        }
        if !self.unless.is_empty() {
            // Absent whatever comes: nothing of it may be present, and the other way round.
            let opposite = match reading {
                Reading::Narrow => Reading::Broad,
                Reading::Broad => Reading::Narrow,
            };
            out.push(self.per_program(&|spelling| present(self.unless, opposite, spelling).negated()));
        }
        // At higher tiers everything runs in a sandbox first, with or without a rule.
        if reading == Reading::Narrow && self.rule.tier < Tier::UNMATCHED && !self.is_exact() {
            let hazards = match self.pattern.literal_programs() {
                Some(_) => self.per_program(&|spelling| self.no_hazard(spelling)),
                None => self.no_hazard_of_any(),
            };
            out.extend((hazards != Expr::TRUE).then_some(hazards));
        }
        out
    }

    fn count(&self, reading: Reading) -> Option<Expr> {
        let n = self.pattern.words.len();
        let many: Expr = Atom::Flag(Flag::Many).into();
        let open: Expr = Atom::Flag(Flag::Open).into();
        Some(match (self.pattern.rest, reading) {
            (true, _) if n == 0 => return None,
            (true, Reading::Narrow) => Atom::CountAtLeast(n).into(),
            (true, Reading::Broad) => Expr::One(vec![Atom::CountAtLeast(n).into(), open, many]),
            (false, Reading::Narrow) => Expr::All(vec![Atom::CountIs(n).into(), many.negated()]),
            (false, Reading::Broad) => Expr::One(vec![Atom::CountIs(n).into(), open, many]),
        })
    }

    /// How options are spelled depends on the program; where the pattern has several, each is
    /// read in its own way.
    fn per_program(&self, build: &dyn Fn(&Spelling) -> Expr) -> Expr {
        let Some(programs) = self.pattern.literal_programs() else { return self.any_program(build) };
        let mut groups: Vec<(Vec<Glob>, Expr)> = Vec::new();
        for name in programs {
            let expr = build(&self.spelling(name));
            match groups.iter_mut().find(|(_, known)| *known == expr) {
                Some((names, _)) => names.push(Glob::literal(name)),
                None => groups.push((vec![Glob::literal(name)], expr)),
            }
        }
        match groups.len() {
            1 => groups.pop().map_or(Expr::TRUE, |(_, expr)| expr),
            _ => Expr::One(
                groups.into_iter().map(|(names, expr)| Expr::All(vec![Atom::Program(names).into(), expr])).collect(),
            ),
        }
    }

    /// A pattern with a wildcard in the program's name: each program of the table that it reaches is
    /// read in its own way, all others plainly.
    fn any_program(&self, build: &dyn Fn(&Spelling) -> Expr) -> Expr {
        let plain =
            build(&Spelling { dashed: false, globals: true, program: None, sure: Vec::new(), possible: Vec::new() });
        let mut special: Vec<Glob> = Vec::new();
        let mut groups: Vec<(Vec<Glob>, Expr)> = Vec::new();
        for name in program_table().names().filter(|name| self.pattern.programs.iter().any(|p| p.matches(name))) {
            let expr = build(&self.spelling(name));
            if expr == plain {
                continue;
            }
            special.push(Glob::literal(name));
            match groups.iter_mut().find(|(_, known)| *known == expr) {
                Some((names, _)) => names.push(Glob::literal(name)),
                None => groups.push((vec![Glob::literal(name)], expr)),
            }
        }
        if special.is_empty() {
            return plain;
        }
        let others = Expr::All(vec![Expr::from(Atom::Program(special)).negated(), plain]);
        let known = groups.into_iter().map(|(names, expr)| Expr::All(vec![Atom::Program(names).into(), expr]));
        Expr::One(std::iter::once(others).chain(known).collect())
    }

    /// For a pattern with a wildcard in the program's name: what it does not name it permits only
    /// where the table knows no hazard at all.
    fn no_hazard_of_any(&self) -> Expr {
        let named: Vec<&str> = self.pattern.programs.iter().filter_map(Glob::as_literal).collect();
        let reached = |name: &&str| !named.contains(name) && self.pattern.programs.iter().any(|p| p.matches(name));
        let hazardous =
            program_table().names().filter(reached).filter(|name| program(name).is_some_and(Program::has_hazards));
        let hazardous: Vec<Glob> = hazardous.map(Glob::literal).collect();
        let mut out = Vec::new();
        if !hazardous.is_empty() {
            out.push(Expr::from(Atom::Program(hazardous)).negated());
        }
        for name in named {
            let expr = self.no_hazard(&self.spelling(name));
            if expr != Expr::TRUE {
                out.push(Expr::One(vec![Expr::from(Atom::Program(vec![Glob::literal(name)])).negated(), expr]));
            }
        }
        Expr::All(out)
    }

    fn spelling(&self, name: &str) -> Spelling {
        let program = program(name);
        let mut spelling = Spelling {
            dashed: program.is_some_and(|p| p.dashed),
            globals: has_globals(name),
            program,
            sure: Vec::new(),
            possible: Vec::new(),
        };
        if let Some(program) = program {
            spelling.sure.push(&program.entry);
            spelling.possible.push(&program.entry);
            for (path, entry) in &program.subs {
                match self.meets(program, path) {
                    Meets::Surely => {
                        spelling.sure.push(entry);
                        spelling.possible.push(entry);
                    }
                    Meets::Perhaps => spelling.possible.push(entry),
                    Meets::Never => {}
                }
            }
        }
        spelling
    }

    /// Whether the pattern's first words are this sub-command.
    fn meets(&self, program: &Program<'static>, path: &[&str]) -> Meets {
        let mut out = Meets::Surely;
        for (index, name) in path.iter().enumerate() {
            let Some(globs) = self.pattern.words.get(index) else {
                return if self.pattern.rest { Meets::Perhaps } else { Meets::Never };
            };
            let same = |glob: &Glob| {
                glob.as_literal().map(|text| if index == 0 { program.canonical_sub(text) } else { text } == *name)
            };
            if globs.iter().all(|glob| same(glob) == Some(true)) {
                continue;
            }
            let possible = globs.iter().any(|glob| same(glob).unwrap_or_else(|| glob.matches(name)));
            if !possible {
                return Meets::Never;
            }
            out = Meets::Perhaps;
        }
        out
    }

    /// Whether the pattern names this sub-command in full, with or without others.
    fn names(&self, program: &Program<'static>, path: &[&str]) -> bool {
        path.iter().enumerate().all(|(index, name)| {
            self.pattern.words.get(index).is_some_and(|globs| {
                globs
                    .iter()
                    .filter_map(Glob::as_literal)
                    .any(|text| (if index == 0 { program.canonical_sub(text) } else { text }) == *name)
            })
        })
    }

    /// Whether the pattern is a list of options, word for word: `* --version`. It names whatever a
    /// request that it matches holds.
    fn is_exact(&self) -> bool {
        let option =
            |globs: &Vec<Glob>| globs.iter().all(|g| g.as_literal().is_some_and(|text| text.starts_with("--")));
        !self.pattern.rest && self.pattern.words.iter().all(option)
    }

    /// No option that executes or writes, and no sub-command that does, unless the rule names
    /// it (DESIGN 3.4: an allowing rule reaches only harmless spellings).
    fn no_hazard(&self, spelling: &Spelling) -> Expr {
        let Some(program) = spelling.program else { return Expr::TRUE };
        let named = self.named_options(spelling);
        let mut out = Vec::new();
        let hazards = |entry: &Entry<'static>| {
            let mut options: Vec<String> = Vec::new();
            for hazard in entry.hazards.iter().flat_map(|(options, _)| options).filter(|h| h.starts_with('-')) {
                if !named.iter().any(|name| name == hazard) {
                    options.push((*hazard).to_owned());
                    if !program.dashed {
                        // What is an option by itself is not taken for the beginning of another.
                        let short = abbreviations(hazard).filter(|short| short == hazard || !spelling.lists(short));
                        options.extend(short.filter(|short| !named.contains(short)));
                    }
                }
            }
            options.sort();
            options.dedup();
            options
        };
        // A word that is not known may be that name: `git pus?` where a file is called `push`.
        let may_be =
            |at: usize, names: Vec<Glob>| Expr::One(vec![Atom::Word(at, names).into(), Atom::WordUnknown(at).into()]);
        let spelled = |name: &str| if program.abbreviates { shortened(name) } else { vec![Glob::literal(name)] };
        let here = |path: &[&str]| -> Vec<Expr> {
            path.iter().enumerate().map(|(at, name)| may_be(at + 1, spelled(name))).collect()
        };
        let own = hazards(&program.entry);
        if !own.is_empty() {
            out.push(Expr::from(Atom::HasAny(SetAttr::Options, own)).negated());
        }
        out.extend(self.no_argument(spelling, &program.entry));
        for (path, entry) in &program.subs {
            if self.meets(program, path) == Meets::Surely {
                out.extend(self.no_argument(spelling, entry));
            }
            let options = hazards(entry);
            if options.is_empty() {
                continue;
            }
            let present = Expr::from(Atom::HasAny(SetAttr::Options, options));
            match self.meets(program, path) {
                Meets::Never => {}
                Meets::Surely => out.push(present.negated()),
                Meets::Perhaps => {
                    let mut all = here(path);
                    all.push(present);
                    out.push(Expr::All(all).negated());
                }
            }
        }
        let mut first: Vec<Glob> = Vec::new();
        for (path, _) in &program.hazardous {
            if self.meets(program, path) != Meets::Never && !self.names(program, path) {
                match path.as_slice() {
                    [only] => {
                        let aliases =
                            program.sub_aliases.iter().filter(|(name, _)| name == only).flat_map(|(_, others)| others);
                        first.extend(
                            std::iter::once(only)
                                .chain(aliases.filter(|_| program.abbreviates))
                                .flat_map(|name| spelled(name)),
                        );
                    }
                    path => out.push(Expr::All(here(path)).negated()),
                }
            }
        }
        if program.abbreviates {
            // A name that is one by itself, or that the rule names, shortens no other.
            let own = spelling.words(0, self.pattern.words.first().map_or(&[], Vec::as_slice));
            let named = |glob: &Glob| own.contains(glob) && glob.as_literal().is_some();
            first.retain(|glob| !named(glob) && !program.known.iter().any(|name| glob.as_literal() == Some(name)));
            first.sort();
            first.dedup();
        }
        if let Some(condition) = self.known(spelling, program) {
            out.push(condition);
        }
        if !first.is_empty() {
            out.push(may_be(1, first).negated());
        }
        match out.len() {
            1 => out.pop().unwrap_or(Expr::TRUE),
            _ => Expr::All(out),
        }
    }

    /// Where a wildcard stands for the sub-command, only those that the table knows to be harmless,
    /// or that the rule names.
    fn known(&self, spelling: &Spelling, program: &Program<'static>) -> Option<Expr> {
        let globs = self.pattern.words.first().map(|globs| spelling.words(0, globs)).unwrap_or_default();
        let literal = !globs.is_empty() && globs.iter().all(|glob| glob.as_literal().is_some());
        if program.known.is_empty() || literal {
            return None;
        }
        let mut words: Vec<Glob> = globs.into_iter().filter(|glob| glob.as_literal().is_some()).collect();
        words.extend(program.known.iter().filter(|name| **name != "-").map(|name| Glob::literal(name)));
        let word = Atom::Word(1, words).into();
        Some(if program.known.contains(&"-") { Expr::One(vec![Atom::CountIs(0).into(), word]) } else { word })
    }

    /// No argument that writes or executes, `of=*` of `dd` or `+*` of editors, unless a `with` names
    /// it or, where the pattern has no `**`, the word in its place does.
    fn no_argument(&self, spelling: &Spelling, entry: &Entry<'static>) -> Option<Expr> {
        let required: Vec<&Glob> = self.with.iter().flatten().filter_map(Item::as_argument).collect();
        let hazards = entry.hazards.iter().flat_map(|(options, _)| options).filter(|h| !h.starts_with('-'));
        let hazards: Vec<Glob> = hazards
            .map(|hazard| Glob::from_stars(hazard))
            .filter(|hazard| !required.iter().any(|glob| glob.is_within(hazard)))
            .collect();
        if hazards.is_empty() {
            return None;
        }
        if self.pattern.rest {
            let unknown = Expr::from(Atom::AllKnown).negated();
            return Some(Expr::One(vec![Atom::Anywhere(hazards).into(), unknown]).negated());
        }
        let mut places: Vec<Expr> = Vec::new();
        for (index, globs) in self.pattern.words.iter().enumerate() {
            let globs = spelling.words(index, globs);
            let is_harmless = |hazards: Vec<Glob>| {
                let tests: [Expr; 2] = [Atom::Word(index + 1, hazards).into(), Atom::WordUnknown(index + 1).into()];
                Expr::All(tests.map(Expr::negated).into())
            };
            let mut unnamed: Vec<Glob> = Vec::new();
            for hazard in &hazards {
                let named: Vec<Glob> = globs.iter().filter(|glob| glob.is_within(hazard)).cloned().collect();
                if named.is_empty() {
                    unnamed.push(hazard.clone());
                } else if named.len() < globs.len() {
                    let named = Atom::Word(index + 1, named).into();
                    places.push(Expr::One(vec![named, is_harmless(vec![hazard.clone()])]));
                }
            }
            // A literal that is no hazard needs no test.
            let open =
                globs.iter().any(|glob| glob.as_literal().is_none_or(|text| unnamed.iter().any(|h| h.matches(text))));
            if open && !unnamed.is_empty() {
                places.push(is_harmless(unnamed));
            }
        }
        (!places.is_empty()).then_some(Expr::All(places))
    }

    /// Options that the rule itself speaks of, in every name that they have.
    fn named_options(&self, spelling: &Spelling) -> Vec<String> {
        let items = self.with.iter().flatten().chain(self.only.into_iter().flatten());
        let mut out: Vec<String> = items.flat_map(|item| option_names(item, spelling.dashed)).collect();
        for (index, globs) in self.pattern.words.iter().enumerate() {
            // `tar cf` names `-c` and `-f`.
            let globs = spelling.words(index, globs);
            let texts = globs.iter().filter_map(Glob::as_literal);
            out.extend(texts.flat_map(|text| crate::model::option_names(text, spelling.dashed)));
        }
        out.extend(self.with.iter().flatten().filter_map(Item::as_argument).filter_map(option_head));
        spelling.same(&mut out);
        out
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

/// Whether a pattern's words are those of a sub-command.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Meets {
    Surely,
    Perhaps,
    Never,
}

/// How options are spelled, as far as it depends on the program.
struct Spelling {
    /// Long options have one dash.
    dashed: bool,
    /// Options may stand before a sub-command.
    globals: bool,
    /// What the table says of it.
    program: Option<&'static Program<'static>>,
    /// Its entries that hold wherever the pattern matches.
    sure: Vec<&'static Entry<'static>>,
    /// Its entries that hold somewhere.
    possible: Vec<&'static Entry<'static>>,
}

impl Spelling {
    /// The alternatives of a word as requests hold it: a sub-command by its usual name, and a
    /// cluster of options with its dash.
    fn words(&self, index: usize, globs: &[Glob]) -> Vec<Glob> {
        let mut out = globs.to_vec();
        let Some(program) = self.program.filter(|_| index == 0) else { return out };
        for text in globs.iter().filter_map(Glob::as_literal) {
            let mut add = |text: &str| {
                let glob = Glob::literal(text);
                if !out.contains(&glob) {
                    out.push(glob);
                }
            };
            add(program.canonical_sub(text));
            if program.entry.bundle && !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphabetic()) {
                add(&format!("-{text}"));
            }
        }
        out
    }

    /// Whether an option is listed in full, so that it abbreviates no other.
    fn lists(&self, option: &str) -> bool {
        self.sure.iter().any(|entry| entry.lists(option))
    }

    /// Adds the other names of options.
    fn same(&self, names: &mut Vec<String>) {
        for aliases in self.sure.iter().flat_map(|entry| &entry.aliases) {
            if names.iter().any(|name| aliases.contains(&name.as_str())) {
                names.extend(aliases.iter().map(|alias| (*alias).to_owned()));
            }
        }
        names.sort();
        names.dedup();
    }

    /// Adds every name that the options have anywhere.
    fn perhaps_same(&self, names: &mut Vec<String>) {
        let mut before = 0;
        while names.len() != before {
            before = names.len();
            for aliases in self.possible.iter().flat_map(|entry| &entry.aliases) {
                if names.iter().any(|name| aliases.contains(&name.as_str())) {
                    names.extend(aliases.iter().map(|alias| (*alias).to_owned()));
                }
            }
            names.sort();
            names.dedup();
        }
    }

    /// Adds the other names of options, and options whose effect includes theirs.
    fn including(&self, names: &mut Vec<String>) {
        let mut before = 0;
        while names.len() != before {
            before = names.len();
            for entry in &self.possible {
                for aliases in &entry.aliases {
                    if names.iter().any(|name| aliases.contains(&name.as_str())) {
                        names.extend(aliases.iter().map(|alias| (*alias).to_owned()));
                    }
                }
                for (option, others) in &entry.implies {
                    if names.iter().any(|name| others.contains(&name.as_str())) {
                        names.push((*option).to_owned());
                    }
                }
            }
            names.sort();
            names.dedup();
        }
    }
}

/// At least one of the items is present: certainly (narrow), possibly (broad).
fn present(items: &[Item], reading: Reading, spelling: &Spelling) -> Expr {
    let broad = reading == Reading::Broad;
    let set = if broad { SetAttr::Options } else { SetAttr::Certain };
    let (mut single, mut globals, mut alternatives, mut globs) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let spell = |name: String| -> Vec<String> {
        let mut names = vec![name];
        if broad {
            spelling.including(&mut names);
            if !spelling.dashed {
                let long: Vec<String> = names.iter().filter(|n| n.starts_with("--")).cloned().collect();
                let short = long.iter().flat_map(|name| abbreviations(name));
                names.extend(short.filter(|short| !spelling.lists(short)));
            }
        } else {
            spelling.same(&mut names);
        }
        names
    };
    for item in items {
        if let Item::Argument(glob) = item {
            // `--context=prod*`: before the sub-command the value may stand apart.
            globals.extend(option_head(glob));
            globs.push(glob.clone());
            continue;
        }
        let mut names = option_names(item, spelling.dashed);
        globals.extend(names.iter().cloned().flat_map(spell));
        match (names.pop(), names.is_empty()) {
            (Some(name), true) => single.extend(spell(name)),
            (last, _) => {
                let all = names.into_iter().chain(last).map(|name| Atom::HasAny(set, sorted(spell(name))).into());
                alternatives.push(Expr::All(all.collect()));
            }
        }
    }
    let (single, globals) = (sorted(single), sorted(globals));
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

fn sorted(mut names: Vec<String>) -> Vec<String> {
    names.sort();
    names.dedup();
    names
}

/// A name, and every way to shorten it.
fn shortened(name: &str) -> Vec<Glob> {
    name.char_indices().filter_map(|(at, c)| name.get(..at + c.len_utf8())).map(Glob::literal).collect()
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
fn only(items: &[Item], reading: Reading, spelling: &Spelling) -> Expr {
    let mut names: Vec<String> = items.iter().flat_map(|item| option_names(item, spelling.dashed)).collect();
    let set = match reading {
        Reading::Narrow => {
            spelling.same(&mut names);
            SetAttr::Options
        }
        Reading::Broad => {
            // Names that an option has only behind some sub-command may be meant as well.
            spelling.perhaps_same(&mut names);
            if !spelling.dashed {
                // An abbreviation may stand for what the list allows.
                let long: Vec<String> = names.iter().filter(|n| n.starts_with("--")).cloned().collect();
                names.extend(long.iter().flat_map(|name| abbreviations(name)));
            }
            SetAttr::Certain
        }
    };
    Atom::Within(set, sorted(names)).into()
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
