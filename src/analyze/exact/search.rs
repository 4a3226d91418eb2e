//! The search: cheapest first over the product of a query's automata.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, HashMap};

use super::automata::{
    AnyUnknown, Anywhere, Count, Globs, Interned, NamesZone, Numbered, Options, Symbol, Text, UnknownAt, WordAt,
};
use super::space::{Choice, Dimension, DimensionValue, LeafKey, apply, values};
use super::{Bound, Outcome, Space};
use crate::compile::{Address, Atom, Expr, Flag, SetAttr};
use crate::model::{
    CommandRequest, EgressRequest, Glob, Piece, Request, Scheme, Surface, Word, Zones, globals_of_programs,
    single_dash_programs,
};

/// A condition over numbered leaves.
enum Form {
    All(Vec<Form>),
    One(Vec<Form>),
    Not(Box<Form>),
    Leaf(usize),
}

/// A condition that must hold (or must not), and the leaves that it speaks of.
struct Term {
    form: Form,
    want: bool,
    leaves: Vec<usize>,
}

/// Truth or state of a leaf in a node.
type Mark = u32;
const YES: Mark = u32::MAX;
const NO: Mark = u32::MAX - 1;
/// No open term speaks of the leaf any more.
const IGNORED: Mark = u32::MAX - 2;
/// Its phase has not begun.
const UNSET: Mark = u32::MAX - 3;

/// What of the way so far matters beside the leaves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Aux {
    dynamic: bool,
    address: bool,
    dashed: bool,
    /// Commands: options before the sub-command were chosen, so the program must be one that
    /// takes all of them there. The number of the choice, from 1.
    globals: usize,
    in_word: bool,
    /// Commands: unused. Egress: the segment so far is empty, `.`, `..` or other.
    segment: u8,
    /// Egress: no segment yet, one empty segment, anything else.
    path: u8,
    host: HostAux,
}

/// What of the current label decides whether a host is canonical.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct HostAux {
    begun: bool,
    dash_last: bool,
    not_digits: bool,
    /// 0: nothing, 1: `0`, 2: `0x`, 3: other.
    hex: u8,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    phase: usize,
    aux: Aux,
    marks: Vec<Mark>,
    /// The terms that are not met yet.
    open: Vec<usize>,
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Start,
    Value(usize),
    TextChar(char),
    TextEnd,
    Program(&'static str),
    Word(Symbol),
    Stop,
}

struct Node {
    parent: usize,
    step: Step,
    key: Key,
}

enum Phase {
    Choose(Dimension, Vec<DimensionValue>),
    Text,
    Words,
    Done,
}

/// One search.
pub(super) struct Search<'a> {
    space: &'a Space<'a>,
    leaves: Vec<LeafKey>,
    numbers: HashMap<LeafKey, usize>,
    terms: Vec<Term>,
    machines: Vec<Option<Box<dyn Numbered + 'a>>>,
    phases: Vec<Phase>,
    text_chars: Vec<char>,
    word_chars: Vec<char>,
    unknown_words: bool,
}

impl<'a> Search<'a> {
    /// A search for a request for which every condition of `require` holds, and for no member
    /// of `exclude` all conditions. `zone_chars`: also try the characters of zone patterns.
    pub(super) fn new(space: &'a Space<'a>, require: &[&Expr], exclude: &[Vec<&Expr>], zone_chars: bool) -> Self {
        let mut search = Search {
            space,
            leaves: Vec::new(),
            numbers: HashMap::new(),
            terms: Vec::new(),
            machines: Vec::new(),
            phases: Vec::new(),
            text_chars: Vec::new(),
            word_chars: Vec::new(),
            unknown_words: false,
        };
        for expr in require {
            search.term(vec![expr], true);
        }
        for conditions in exclude {
            search.term(conditions.clone(), false);
        }
        search.build_machines();
        search.build_phases();
        search.build_alphabet(zone_chars);
        search
    }

    fn term(&mut self, exprs: Vec<&Expr>, want: bool) {
        let mut used = Vec::new();
        let forms = exprs.into_iter().map(|e| self.lower(e, &mut used)).collect();
        used.sort_unstable();
        used.dedup();
        self.terms.push(Term { form: Form::All(forms), want, leaves: used });
    }

    fn leaf(&mut self, key: LeafKey, used: &mut Vec<usize>) -> Form {
        let next = self.leaves.len();
        let number = *self.numbers.entry(key.clone()).or_insert(next);
        if number == next {
            self.leaves.push(key);
        }
        used.push(number);
        Form::Leaf(number)
    }

    fn lower(&mut self, expr: &Expr, used: &mut Vec<usize>) -> Form {
        match expr {
            Expr::All(parts) => Form::All(parts.iter().map(|p| self.lower(p, used)).collect()),
            Expr::One(parts) => Form::One(parts.iter().map(|p| self.lower(p, used)).collect()),
            Expr::Not(inner) => Form::Not(Box::new(self.lower(inner, used))),
            Expr::Atom(Atom::HasAny(SetAttr::Names, zones)) => {
                let place = self.leaf(LeafKey::PlaceAny(zones.clone()), used);
                let words = self.words_name(zones, used);
                Form::One(vec![place, words])
            }
            Expr::Atom(Atom::Within(SetAttr::Names, zones)) => self.names_within(zones, used),
            Expr::Atom(Atom::Empty(SetAttr::Names)) => self.names_within(&[], used),
            Expr::Atom(atom) => self.leaf(LeafKey::Atom(atom.clone()), used),
        }
    }

    fn names_within(&mut self, zones: &[String], used: &mut Vec<usize>) -> Form {
        let place = self.leaf(LeafKey::PlaceWithin(zones.to_vec()), used);
        let others: Vec<String> =
            self.space.zones.names().filter(|z| !zones.iter().any(|n| n == z)).map(str::to_owned).collect();
        let words = self.words_name(&others, used);
        Form::All(vec![place, Form::Not(Box::new(words))])
    }

    /// A word names one of the zones; `..` counts only where the directory is not known.
    fn words_name(&mut self, zones: &[String], used: &mut Vec<usize>) -> Form {
        let plain: Vec<String> = zones.iter().filter(|z| *z != Zones::UNRESOLVED).cloned().collect();
        let mut parts = Vec::new();
        if plain.len() < zones.len() {
            let known = self.leaf(LeafKey::PlaceKnown, used);
            let climbs = self.leaf(LeafKey::WordsName(vec![Zones::UNRESOLVED.into()]), used);
            parts.push(Form::All(vec![Form::Not(Box::new(known)), climbs]));
            // What is not known may name anything.
            let all_known = self.leaf(LeafKey::Atom(Atom::AllKnown), used);
            parts.push(Form::Not(Box::new(all_known)));
        }
        if !plain.is_empty() {
            parts.push(self.leaf(LeafKey::WordsName(plain), used));
        }
        Form::One(parts)
    }

    fn build_machines(&mut self) {
        let needs_spelling = self.leaves.iter().any(|key| {
            matches!(
                key,
                LeafKey::Atom(
                    Atom::HasAny(SetAttr::Options | SetAttr::Certain, _)
                        | Atom::Within(SetAttr::Options | SetAttr::Certain, _)
                )
            )
        });
        if needs_spelling {
            self.leaves.push(LeafKey::Dashed);
        }
        let space = self.space;
        self.machines = self.leaves.iter().map(|key| machine(space, key)).collect();
    }

    fn build_phases(&mut self) {
        let mut by_dimension: Vec<(Dimension, Vec<(usize, &LeafKey)>)> = Vec::new();
        let mut wanted: Vec<Dimension> = self.leaves.iter().filter_map(LeafKey::dimension).collect();
        self.unknown_words = self
            .leaves
            .iter()
            .any(|key| matches!(key, LeafKey::Atom(Atom::Flag(Flag::Open) | Atom::WordUnknown(_) | Atom::AllKnown)));
        if self.unknown_words {
            wanted.push(Dimension::Flag(Flag::Dynamic));
        }
        wanted.sort();
        wanted.dedup();
        for dimension in wanted {
            let leaves = self.leaves.iter().enumerate().filter(|(_, key)| key.dimension() == Some(dimension)).collect();
            by_dimension.push((dimension, leaves));
        }
        let mut phases: Vec<Phase> = by_dimension
            .iter()
            .map(|(dimension, leaves)| Phase::Choose(*dimension, values(*dimension, leaves)))
            .collect();
        phases.extend([Phase::Text, Phase::Words, Phase::Done]);
        self.phases = phases;
    }

    /// The characters that the query can tell apart, and one that it does not mention.
    fn build_alphabet(&mut self, zone_chars: bool) {
        let (mut text, mut words) = (Vec::new(), Vec::new());
        let egress = self.space.surface == Surface::Egress;
        for key in &self.leaves {
            match key {
                LeafKey::Atom(Atom::Program(globs) | Atom::HostName(globs)) => glob_chars(globs, &mut text),
                LeafKey::Atom(Atom::Word(_, globs) | Atom::Anywhere(globs)) => glob_chars(globs, &mut words),
                LeafKey::Atom(
                    Atom::HasAny(SetAttr::Options | SetAttr::Certain, names)
                    | Atom::Within(SetAttr::Options | SetAttr::Certain, names),
                ) => {
                    names.iter().for_each(|n| words.extend(n.chars()));
                    words.extend(['-', '=']);
                }
                LeafKey::WordsName(zones) if zone_chars => {
                    words.extend("/~.-=:@,".chars());
                    // What lies elsewhere depends on every zone.
                    let all = zones.iter().any(|z| z == Zones::ELSEWHERE);
                    for (zone, patterns) in &self.space.patterns {
                        for pattern in patterns.iter().filter(|_| all || zones.contains(zone)) {
                            words.extend(pattern.chars().filter(|c| *c != '*'));
                        }
                    }
                    words.extend("roothomeUsers".chars());
                }
                LeafKey::Dashed => single_dash_programs().iter().for_each(|p| text.extend(p.chars())),
                _ => {}
            }
        }
        if egress {
            // Labels must be written apart, and a segment is what stands between slashes.
            text.push('.');
            words.retain(|c| *c != '/');
        }
        let legal = |c: &char| {
            if egress { c.is_ascii_lowercase() || c.is_ascii_digit() || "-_.".contains(*c) } else { *c != '/' }
        };
        text.retain(legal);
        self.text_chars = with_fresh(text, egress);
        self.word_chars = with_fresh(words, egress);
    }

    fn want(&self, phase: usize) -> Option<&Phase> {
        self.phases.get(phase)
    }

    /// Runs the search.
    pub(super) fn run(mut self, bound: Bound) -> Outcome {
        let mut nodes: Vec<Node> = Vec::new();
        let mut best: HashMap<Key, u32> = HashMap::new();
        let mut heap = BinaryHeap::new();
        let marks = vec![UNSET; self.leaves.len()];
        let mut start = Key { phase: 0, aux: Aux::default(), marks, open: (0..self.terms.len()).collect() };
        self.enter(&mut start);
        self.offer(&mut nodes, &mut best, &mut heap, 0, 0, Step::Start, start);
        let mut expanded = 0_usize;
        while let Some(Reverse((cost, at))) = heap.pop() {
            let Some(node) = nodes.get(at) else { break };
            let key = node.key.clone();
            if matches!(self.want(key.phase), Some(Phase::Done) | None) {
                return Outcome::Found(Box::new(self.request(&nodes, at)));
            }
            if best.get(&key).is_some_and(|known| *known < cost) {
                continue;
            }
            expanded += 1;
            if expanded > bound.0 {
                return Outcome::Bound;
            }
            for (price, step, next) in self.successors(&key) {
                self.offer(&mut nodes, &mut best, &mut heap, cost + price, at, step, next);
            }
        }
        Outcome::Empty
    }

    /// Adds a node unless its term values rule it out or a cheaper way to it is known.
    #[expect(clippy::too_many_arguments, reason = "the three collections are the search's own state")]
    fn offer(
        &self,
        nodes: &mut Vec<Node>,
        best: &mut HashMap<Key, u32>,
        heap: &mut BinaryHeap<Reverse<(u32, usize)>>,
        cost: u32,
        parent: usize,
        step: Step,
        mut key: Key,
    ) {
        if !self.settle(&mut key) {
            return;
        }
        match best.get_mut(&key) {
            Some(known) if *known <= cost => return,
            Some(known) => *known = cost,
            None => {
                best.insert(key.clone(), cost);
            }
        }
        heap.push(Reverse((cost, nodes.len())));
        nodes.push(Node { parent, step, key });
    }

    /// Drops what no open term needs; false when a term can no longer be met.
    fn settle(&self, key: &mut Key) -> bool {
        let done = matches!(self.want(key.phase), Some(Phase::Done) | None);
        let mut needed = vec![false; key.marks.len()];
        let mut open = Vec::new();
        for index in &key.open {
            let Some(term) = self.terms.get(*index) else { continue };
            match evaluate(&term.form, &key.marks) {
                Some(truth) if truth != term.want => return false,
                Some(_) => {}
                None if done => return false,
                None => {
                    open.push(*index);
                    for leaf in &term.leaves {
                        if let Some(flag) = needed.get_mut(*leaf) {
                            *flag = true;
                        }
                    }
                }
            }
        }
        key.open = open;
        let spelling_open = key.phase < self.phases.len().saturating_sub(2);
        for ((mark, needed), leaf) in key.marks.iter_mut().zip(needed).zip(&self.leaves) {
            let kept = needed || spelling_open && *leaf == LeafKey::Dashed;
            if !kept {
                *mark = IGNORED;
            }
        }
        true
    }

    /// Moves one leaf's automaton.
    fn advance(&mut self, leaf: usize, mark: Mark, symbol: Symbol) -> Mark {
        if matches!(mark, YES | NO | IGNORED | UNSET) {
            return mark;
        }
        let Some(Some(machine)) = self.machines.get_mut(leaf) else { return mark };
        let next = machine.step(mark, symbol);
        machine.decided(next).map_or(next, |truth| if truth { YES } else { NO })
    }

    fn successors(&mut self, key: &Key) -> Vec<(u32, Step, Key)> {
        match self.want(key.phase) {
            Some(Phase::Choose(dimension, values)) => {
                let dimension = *dimension;
                let mut out = Vec::new();
                for (index, value) in values.iter().enumerate() {
                    let mut next = Key { phase: key.phase + 1, ..key.clone() };
                    for (leaf, truth) in &value.truths {
                        if let Some(mark) = next.marks.get_mut(*leaf)
                            && *mark != IGNORED
                        {
                            *mark = if *truth { YES } else { NO };
                        }
                    }
                    match (dimension, &value.choice) {
                        (Dimension::Flag(Flag::Dynamic), Choice::Truth(truth)) => next.aux.dynamic = *truth,
                        (Dimension::Set(SetAttr::Globals), Choice::Names(set)) if !set.is_empty() => {
                            next.aux.globals = index + 1;
                        }
                        (Dimension::Address(Address::Host), Choice::Address(address)) => {
                            next.aux.address = address.is_some();
                        }
                        _ => {}
                    }
                    out.push((value.cost, Step::Value(index), next, value.choice.clone()));
                }
                out.into_iter()
                    .map(|(cost, step, mut next, choice)| {
                        if let Choice::Address(Some(address)) = &choice
                            && dimension == Dimension::Address(Address::Host)
                        {
                            self.host_is(&mut next, &address.to_string());
                        }
                        self.enter(&mut next);
                        (cost, step, next)
                    })
                    .collect()
            }
            Some(Phase::Text) => self.text_successors(key),
            Some(Phase::Words) => self.word_successors(key),
            Some(Phase::Done) | None => Vec::new(),
        }
    }

    /// A host that is an address settles the atoms about the host's text.
    fn host_is(&self, key: &mut Key, host: &str) {
        for (mark, leaf) in key.marks.iter_mut().zip(&self.leaves) {
            if let LeafKey::Atom(Atom::HostName(globs)) = leaf
                && *mark != IGNORED
            {
                *mark = if globs.iter().any(|g| g.matches(host)) { YES } else { NO };
            }
        }
    }

    /// What happens where a phase begins.
    fn enter(&mut self, key: &mut Key) {
        if matches!(self.want(key.phase), Some(Phase::Text)) {
            if key.aux.address {
                key.phase += 1;
            } else {
                self.begin(key, |leaf| {
                    matches!(leaf, LeafKey::Dashed | LeafKey::Atom(Atom::Program(_) | Atom::HostName(_)))
                });
            }
        }
        if matches!(self.want(key.phase), Some(Phase::Words)) {
            let dashed = self.leaves.iter().position(|leaf| *leaf == LeafKey::Dashed);
            key.aux.dashed = dashed.and_then(|leaf| key.marks.get(leaf)) == Some(&YES);
            key.aux.host = HostAux::default();
            self.begin(key, |leaf| {
                leaf.dimension().is_none()
                    && !matches!(leaf, LeafKey::Dashed | LeafKey::Atom(Atom::Program(_) | Atom::HostName(_)))
            });
            key.aux.dashed = false;
        }
    }

    fn begin(&mut self, key: &mut Key, belongs: impl Fn(&LeafKey) -> bool) {
        let dashed = key.aux.dashed;
        for ((mark, leaf), machine) in key.marks.iter_mut().zip(&self.leaves).zip(&mut self.machines) {
            if *mark == UNSET
                && belongs(leaf)
                && let Some(machine) = machine
            {
                let state = machine.start(dashed);
                *mark = machine.decided(state).map_or(state, |t| if t { YES } else { NO });
            }
        }
    }

    fn moved(&mut self, key: &Key, symbol: Symbol) -> Key {
        let mut next = key.clone();
        for leaf in 0..next.marks.len() {
            let Some(mark) = key.marks.get(leaf).copied() else { continue };
            let to = self.advance(leaf, mark, symbol);
            if let Some(slot) = next.marks.get_mut(leaf) {
                *slot = to;
            }
        }
        next
    }

    /// The characters worth trying: those that some open leaf tells from all others, and the
    /// one that stands for the rest. Every other leads where that one leads.
    fn characters(&mut self, key: &Key, alphabet: &[char]) -> Vec<char> {
        let mut wanted: Vec<char> = alphabet.first().copied().into_iter().collect();
        for (mark, machine) in key.marks.iter().zip(&mut self.machines) {
            if let Some(machine) = machine
                && !matches!(*mark, YES | NO | IGNORED | UNSET)
            {
                wanted.extend(machine.interesting(*mark));
            }
        }
        alphabet.iter().copied().filter(|c| wanted.contains(c)).collect()
    }

    /// The programs that take the chosen options before the sub-command, each as one step.
    fn programs_with_globals(&mut self, key: &Key) -> Vec<(u32, Step, Key)> {
        let chosen: BTreeSet<String> = self
            .phases
            .iter()
            .find_map(|phase| match phase {
                Phase::Choose(Dimension::Set(SetAttr::Globals), values) => values.get(key.aux.globals - 1),
                _ => None,
            })
            .and_then(|value| match &value.choice {
                Choice::Names(names) => Some(names.clone()),
                _ => None,
            })
            .unwrap_or_default();
        let mut options: BTreeMap<&'static str, BTreeSet<&'static str>> = BTreeMap::new();
        for (program, own) in globals_of_programs() {
            options.entry(program).or_default().extend(own);
        }
        let mut out = Vec::new();
        for (program, _) in options.iter().filter(|(_, own)| chosen.iter().all(|name| own.contains(name.as_str()))) {
            let read = program.chars().fold(key.clone(), |at, c| self.moved(&at, Symbol::Char(c)));
            let mut next = self.moved(&read, Symbol::End);
            next.phase += 1;
            next.aux.globals = 0;
            self.enter(&mut next);
            let cost = u32::try_from(program.len()).unwrap_or(u32::MAX / 16);
            out.push((cost, Step::Program(program), next));
        }
        out
    }

    fn text_successors(&mut self, key: &Key) -> Vec<(u32, Step, Key)> {
        if key.aux.globals > 0 {
            return self.programs_with_globals(key);
        }
        let egress = self.space.surface == Surface::Egress;
        let mut out = Vec::new();
        let mut chars = self.characters(key, &self.text_chars.clone());
        if egress && !chars.contains(&'.') {
            chars.push('.');
        }
        for c in chars {
            let Some(host) = next_host(key.aux.host, c, egress) else { continue };
            let mut next = self.moved(key, Symbol::Char(c));
            next.aux.host = host;
            out.push((1, Step::TextChar(c), next));
        }
        let host = key.aux.host;
        let complete = host.begun && (!egress || !host.dash_last && host.not_digits && host.hex != 2);
        if complete {
            let mut next = self.moved(key, Symbol::End);
            next.phase += 1;
            next.aux.host = HostAux::default();
            self.enter(&mut next);
            out.push((0, Step::TextEnd, next));
        }
        out
    }

    fn word_successors(&mut self, key: &Key) -> Vec<(u32, Step, Key)> {
        let egress = self.space.surface == Surface::Egress;
        let mut out = Vec::new();
        let mut chars = self.characters(key, &self.word_chars.clone());
        if egress && self.word_chars.contains(&'.') && !chars.contains(&'.') {
            // Segments `.` and `..` are told apart by the search itself.
            chars.push('.');
        }
        for c in chars {
            let mut next = self.moved(key, Symbol::Char(c));
            next.aux.in_word = true;
            if egress {
                next.aux.segment = match (key.aux.segment, c) {
                    (0, '.') => 1,
                    (1, '.') => 2,
                    _ => 3,
                };
            }
            out.push((1, Step::Word(Symbol::Char(c)), next));
        }
        if !egress || matches!(key.aux.segment, 0 | 3) {
            let mut next = self.moved(key, Symbol::End);
            next.aux.in_word = false;
            if egress {
                next.aux.path = if key.aux.path == 0 && key.aux.segment == 0 { 1 } else { 2 };
                next.aux.segment = 0;
            }
            // An empty word is legal and odd: prefer any other.
            out.push((if key.aux.in_word { 1 } else { 5 }, Step::Word(Symbol::End), next));
        }
        if !key.aux.in_word {
            if key.aux.dynamic && self.unknown_words {
                out.push((6, Step::Word(Symbol::Value), self.moved(key, Symbol::Value)));
                out.push((8, Step::Word(Symbol::Open), self.moved(key, Symbol::Open)));
            }
            if key.aux.path != 1 {
                let mut next = key.clone();
                for ((mark, leaf), machine) in next.marks.iter_mut().zip(&self.leaves).zip(&self.machines) {
                    if let Some(machine) = machine
                        && !matches!(*mark, YES | NO | IGNORED | UNSET)
                        && leaf.dimension().is_none()
                    {
                        *mark = if machine.finish(*mark) { YES } else { NO };
                    }
                }
                next.phase += 1;
                next.aux = Aux::default();
                out.push((0, Step::Stop, next));
            }
        }
        out
    }

    /// The request that leads to a node.
    fn request(&self, nodes: &[Node], goal: usize) -> Request {
        let mut steps = Vec::new();
        let mut at = goal;
        while let Some(node) = nodes.get(at) {
            if matches!(node.step, Step::Start) {
                break;
            }
            let phase = nodes.get(node.parent).map_or(0, |parent| parent.key.phase);
            steps.push((phase, node.step));
            at = node.parent;
        }
        let mut request = plain(self.space.surface);
        let (mut text, mut word, mut words, mut segments) = (String::new(), String::new(), Vec::new(), Vec::new());
        for (phase, step) in steps.into_iter().rev() {
            match step {
                Step::Value(index) => {
                    if let Some(Phase::Choose(dimension, values)) = self.phases.get(phase)
                        && let Some(value) = values.get(index)
                    {
                        apply(&mut request, *dimension, &value.choice);
                    }
                }
                Step::TextChar(c) => text.push(c),
                Step::Program(program) => text.push_str(program),
                Step::Word(Symbol::Char(c)) => word.push(c),
                Step::Word(Symbol::End) => {
                    segments.push(word.clone());
                    words.push(Word::Known(std::mem::take(&mut word)));
                }
                Step::Word(Symbol::Value) => words.push(Word::Value),
                Step::Word(Symbol::Open) => words.push(Word::Open),
                Step::Start | Step::TextEnd | Step::Stop => {}
            }
        }
        match &mut request {
            Request::Command(r) => {
                r.program = text;
                r.words = words;
            }
            Request::Egress(r) => {
                if r.address.is_none() {
                    r.host = text;
                }
                r.segments = segments;
            }
        }
        request
    }
}

/// A condition's truth as far as the marks decide it.
fn evaluate(form: &Form, marks: &[Mark]) -> Option<bool> {
    match form {
        Form::All(parts) => fold(parts.iter().map(|p| evaluate(p, marks)), false),
        Form::One(parts) => fold(parts.iter().map(|p| evaluate(p, marks)), true),
        Form::Not(inner) => evaluate(inner, marks).map(|t| !t),
        Form::Leaf(leaf) => match marks.get(*leaf).copied() {
            Some(YES) => Some(true),
            Some(NO) => Some(false),
            _ => None,
        },
    }
}

/// Three-valued `all` (`absorbing` false) and `any` (`absorbing` true).
fn fold(values: impl Iterator<Item = Option<bool>>, absorbing: bool) -> Option<bool> {
    let mut open = false;
    for value in values {
        match value {
            Some(truth) if truth == absorbing => return Some(absorbing),
            Some(_) => {}
            None => open = true,
        }
    }
    (!open).then_some(!absorbing)
}

/// The automaton of a leaf; `None` when a dimension decides it.
fn machine<'a>(space: &'a Space<'a>, key: &LeafKey) -> Option<Box<dyn Numbered + 'a>> {
    let options = |names: &[String], set: SetAttr, within: bool| -> Box<dyn Numbered + 'a> {
        Box::new(Interned::new(Options { names: names.to_vec(), certain: set == SetAttr::Certain, within }))
    };
    Some(match key {
        LeafKey::WordsName(zones) => Box::new(Interned::new(NamesZone {
            zones: zones.iter().filter_map(|z| space.zones.automaton(z)).collect(),
            elsewhere: zones.iter().any(|z| z == Zones::ELSEWHERE).then(|| space.zones.all()),
        })),
        LeafKey::Dashed => {
            let names: Vec<Glob> = single_dash_programs().iter().map(|p| Glob::literal(p)).collect();
            Box::new(Interned::new(Text(Globs::new(&names))))
        }
        LeafKey::Atom(atom) => match atom {
            Atom::Program(globs) | Atom::HostName(globs) => Box::new(Interned::new(Text(Globs::new(globs)))),
            Atom::Word(position, globs) => {
                Box::new(Interned::new(WordAt { position: *position, globs: Globs::new(globs) }))
            }
            Atom::WordUnknown(position) => Box::new(Interned::new(UnknownAt(*position))),
            Atom::AllKnown => Box::new(NegatedAnyUnknown(Interned::new(AnyUnknown { value: true }))),
            Atom::Flag(Flag::Open) => Box::new(Interned::new(AnyUnknown { value: false })),
            Atom::CountIs(n) => Box::new(Interned::new(Count { words: *n, exact: true })),
            Atom::CountAtLeast(n) => Box::new(Interned::new(Count { words: *n, exact: false })),
            Atom::Anywhere(globs) => Box::new(Interned::new(Anywhere(Globs::new(globs)))),
            Atom::HasAny(set @ (SetAttr::Options | SetAttr::Certain), names) => options(names, *set, false),
            Atom::Within(set @ (SetAttr::Options | SetAttr::Certain), names) => options(names, *set, true),
            _ => return None,
        },
        LeafKey::PlaceAny(_) | LeafKey::PlaceWithin(_) | LeafKey::PlaceKnown => return None,
    })
}

/// `AllKnown` is the negation of "some word is unknown".
struct NegatedAnyUnknown(Interned<AnyUnknown>);

impl Numbered for NegatedAnyUnknown {
    fn start(&mut self, dashed: bool) -> u32 {
        self.0.start(dashed)
    }
    fn step(&mut self, state: u32, symbol: Symbol) -> u32 {
        self.0.step(state, symbol)
    }
    fn decided(&self, state: u32) -> Option<bool> {
        self.0.decided(state).map(|t| !t)
    }
    fn finish(&self, state: u32) -> bool {
        !self.0.finish(state)
    }
    fn interesting(&mut self, state: u32) -> &[char] {
        self.0.interesting(state)
    }
}

fn glob_chars(globs: &[Glob], out: &mut Vec<char>) {
    for piece in globs.iter().flat_map(Glob::pieces) {
        if let Piece::Text(text) = piece {
            out.extend(text.chars());
        }
    }
}

/// Sorted, without repetition, a character that is not among them in front.
fn with_fresh(mut chars: Vec<char>, ascii: bool) -> Vec<char> {
    chars.sort_unstable();
    chars.dedup();
    let usual = "xyzabcdefghijklmnopqrstuvw0123456789_";
    let rare = if ascii { "" } else { "XYZABCDEFGHIJKLMNOPQRSTUVWéèêëàâäöüß" };
    let fresh = usual.chars().chain(rare.chars()).find(|c| !chars.contains(c));
    fresh.into_iter().chain(chars).collect()
}

fn next_host(host: HostAux, c: char, egress: bool) -> Option<HostAux> {
    if !egress {
        return Some(HostAux { begun: true, ..HostAux::default() });
    }
    match c {
        '.' if host.begun && !host.dash_last => Some(HostAux::default()),
        '.' => None,
        '-' if !host.begun => None,
        c => Some(HostAux {
            begun: true,
            dash_last: c == '-',
            not_digits: host.not_digits || !c.is_ascii_digit(),
            hex: match (host.begun, host.hex, c) {
                (false, _, '0') => 1,
                (true, 1, 'x') | (true, 2, _) => 2,
                _ => 3,
            },
        }),
    }
}

/// The request that is changed by choices.
fn plain(surface: Surface) -> Request {
    match surface {
        Surface::Egress => Request::Egress(EgressRequest {
            agent: "agent".into(),
            machine: "host".into(),
            method: "GET".into(),
            scheme: Scheme::Https,
            host: String::new(),
            address: None,
            peer: None,
            port: 443,
            segments: Vec::new(),
            secrets: std::collections::BTreeSet::new(),
            external: false,
        }),
        _ => Request::Command(CommandRequest::new(surface, "", Vec::new())),
    }
}
