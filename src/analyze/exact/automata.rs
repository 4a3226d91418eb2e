//! Atoms over the words and texts of a request, as automata.
//!
//! Each automaton reads a request symbol by symbol and says as early as it can whether its
//! atom holds. States are interned, so that a search can hold them as numbers. The meaning is
//! that of the facts in `model::request`; a property test holds the two together.

use std::collections::HashMap;
use std::hash::Hash;

use crate::model::{Elsewhere, Glob, PathNfa, Piece, States};

/// A symbol of the words of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Symbol {
    /// A character of the current word.
    Char(char),
    /// The end of the current word.
    End,
    /// A whole word whose text is not known and which is no option.
    Value,
    /// Any number of words that are not known.
    Open,
}

/// What an automaton does; `S` is its state.
pub(super) trait Machine {
    type State: Clone + Eq + Hash;
    /// State before the first symbol. `dashed`: long options have one dash.
    fn start(&self, dashed: bool) -> Self::State;
    fn step(&self, state: &Self::State, symbol: Symbol) -> Self::State;
    /// Whether the atom's truth is fixed whatever follows.
    fn decided(&self, state: &Self::State) -> Option<bool>;
    /// The atom's truth if nothing follows.
    fn finish(&self, state: &Self::State) -> bool;
    /// The characters that lead elsewhere than a character which no atom mentions.
    fn interesting(&self, state: &Self::State, out: &mut Vec<char>);
}

/// An automaton whose states are numbers.
pub(super) trait Numbered {
    fn start(&mut self, dashed: bool) -> u32;
    fn step(&mut self, state: u32, symbol: Symbol) -> u32;
    fn decided(&self, state: u32) -> Option<bool>;
    fn finish(&self, state: u32) -> bool;
    fn interesting(&mut self, state: u32) -> &[char];
}

/// Interns the states of a machine and remembers its steps.
pub(super) struct Interned<M: Machine> {
    machine: M,
    numbers: HashMap<M::State, u32>,
    states: Vec<M::State>,
    decided: Vec<Option<bool>>,
    steps: HashMap<(u32, Symbol), u32>,
    interesting: HashMap<u32, Vec<char>>,
}

impl<M: Machine> Interned<M> {
    pub(super) fn new(machine: M) -> Self {
        Interned {
            machine,
            numbers: HashMap::new(),
            states: Vec::new(),
            decided: Vec::new(),
            steps: HashMap::new(),
            interesting: HashMap::new(),
        }
    }

    fn number(&mut self, state: M::State) -> u32 {
        if let Some(number) = self.numbers.get(&state) {
            return *number;
        }
        let number = u32::try_from(self.states.len()).unwrap_or(u32::MAX);
        self.decided.push(self.machine.decided(&state));
        self.states.push(state.clone());
        self.numbers.insert(state, number);
        number
    }
}

impl<M: Machine> Numbered for Interned<M> {
    fn start(&mut self, dashed: bool) -> u32 {
        let state = self.machine.start(dashed);
        self.number(state)
    }

    fn step(&mut self, state: u32, symbol: Symbol) -> u32 {
        if let Some(next) = self.steps.get(&(state, symbol)) {
            return *next;
        }
        let Some(from) = self.states.get(state as usize) else { return state };
        let to = self.machine.step(from, symbol);
        let next = self.number(to);
        self.steps.insert((state, symbol), next);
        next
    }

    fn decided(&self, state: u32) -> Option<bool> {
        self.decided.get(state as usize).copied().flatten()
    }

    fn finish(&self, state: u32) -> bool {
        self.states.get(state as usize).is_some_and(|s| self.machine.finish(s))
    }

    fn interesting(&mut self, state: u32) -> &[char] {
        self.interesting.entry(state).or_insert_with(|| {
            let mut out = Vec::new();
            if let Some(state) = self.states.get(state as usize) {
                self.machine.interesting(state, &mut out);
            }
            out.sort_unstable();
            out.dedup();
            out
        })
    }
}

/// Several globs read at once: for each the positions that it may be at.
#[derive(Clone, Debug)]
pub(super) struct Globs(Vec<Vec<Option<char>>>);

type Positions = Vec<Vec<u32>>;

impl Globs {
    /// `None` in a pattern stands for `*`.
    pub(super) fn new(globs: &[Glob]) -> Self {
        Globs(
            globs
                .iter()
                .map(|glob| {
                    let mut out = Vec::new();
                    for piece in glob.pieces() {
                        match piece {
                            Piece::Any => out.push(None),
                            Piece::Text(text) => out.extend(text.chars().map(Some)),
                        }
                    }
                    out
                })
                .collect(),
        )
    }

    fn close(pattern: &[Option<char>], positions: &mut Vec<u32>) {
        let mut at = 0;
        while let Some(&position) = positions.get(at) {
            if pattern.get(position as usize) == Some(&None) && !positions.contains(&(position + 1)) {
                positions.push(position + 1);
            }
            at += 1;
        }
        positions.sort_unstable();
    }

    fn start(&self) -> Positions {
        self.0
            .iter()
            .map(|pattern| {
                let mut positions = vec![0];
                Self::close(pattern, &mut positions);
                positions
            })
            .collect()
    }

    fn step(&self, state: &Positions, c: char) -> Positions {
        self.0
            .iter()
            .zip(state)
            .map(|(pattern, positions)| {
                let mut next = Vec::new();
                for &position in positions {
                    let to = match pattern.get(position as usize) {
                        Some(None) => position,
                        Some(Some(want)) if *want == c => position + 1,
                        _ => continue,
                    };
                    if !next.contains(&to) {
                        next.push(to);
                    }
                }
                Self::close(pattern, &mut next);
                next
            })
            .collect()
    }

    fn interesting(&self, state: &Positions, out: &mut Vec<char>) {
        for (pattern, positions) in self.0.iter().zip(state) {
            out.extend(positions.iter().filter_map(|p| pattern.get(*p as usize).copied().flatten()));
        }
    }

    fn dead(state: &Positions) -> bool {
        state.iter().all(Vec::is_empty)
    }

    fn accepts(&self, state: &Positions) -> bool {
        self.0
            .iter()
            .zip(state)
            .any(|(pattern, positions)| positions.contains(&u32::try_from(pattern.len()).unwrap_or(u32::MAX)))
    }
}

/// State of machines that are done as soon as they know.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Progress<S> {
    Done(bool),
    Going(S),
}

impl<S> Progress<S> {
    const fn decided(&self) -> Option<bool> {
        match self {
            Progress::Done(truth) => Some(*truth),
            Progress::Going(_) => None,
        }
    }
}

/// A text of its own (program, host) matches one of the globs. Read as one word.
pub(super) struct Text(pub(super) Globs);

impl Machine for Text {
    type State = Progress<Positions>;
    fn start(&self, _: bool) -> Self::State {
        Progress::Going(self.0.start())
    }
    fn step(&self, state: &Self::State, symbol: Symbol) -> Self::State {
        let Progress::Going(positions) = state else { return state.clone() };
        match symbol {
            Symbol::Char(c) => {
                let next = self.0.step(positions, c);
                if Globs::dead(&next) { Progress::Done(false) } else { Progress::Going(next) }
            }
            _ => Progress::Done(self.0.accepts(positions)),
        }
    }
    fn decided(&self, state: &Self::State) -> Option<bool> {
        state.decided()
    }
    fn finish(&self, state: &Self::State) -> bool {
        state.decided() == Some(true)
    }
    fn interesting(&self, state: &Self::State, out: &mut Vec<char>) {
        if let Progress::Going(positions) = state {
            self.0.interesting(positions, out);
        }
    }
}

/// The word at a position is certain and matches one of the globs.
pub(super) struct WordAt {
    pub(super) position: usize,
    pub(super) globs: Globs,
}

impl Machine for WordAt {
    /// Words read so far, and the globs' positions in the word that counts.
    type State = Progress<(usize, Option<Positions>)>;
    fn start(&self, _: bool) -> Self::State {
        Progress::Going((0, (self.position == 1).then(|| self.globs.start())))
    }
    fn step(&self, state: &Self::State, symbol: Symbol) -> Self::State {
        let Progress::Going((read, positions)) = state else { return state.clone() };
        match (positions, symbol) {
            (_, Symbol::Open) | (Some(_), Symbol::Value) => Progress::Done(false),
            (None, Symbol::Char(_)) => state.clone(),
            (None, Symbol::End | Symbol::Value) => {
                let read = read + 1;
                Progress::Going((read, (read + 1 == self.position).then(|| self.globs.start())))
            }
            (Some(positions), Symbol::Char(c)) => {
                let next = self.globs.step(positions, c);
                if Globs::dead(&next) { Progress::Done(false) } else { Progress::Going((*read, Some(next))) }
            }
            (Some(positions), Symbol::End) => Progress::Done(self.globs.accepts(positions)),
        }
    }
    fn decided(&self, state: &Self::State) -> Option<bool> {
        state.decided()
    }
    fn finish(&self, state: &Self::State) -> bool {
        state.decided() == Some(true)
    }
    fn interesting(&self, state: &Self::State, out: &mut Vec<char>) {
        if let Progress::Going((_, Some(positions))) = state {
            self.globs.interesting(positions, out);
        }
    }
}

/// The word at a position is not certain.
pub(super) struct UnknownAt(pub(super) usize);

impl Machine for UnknownAt {
    type State = Progress<usize>;
    fn start(&self, _: bool) -> Self::State {
        Progress::Going(0)
    }
    fn step(&self, state: &Self::State, symbol: Symbol) -> Self::State {
        let Progress::Going(read) = state else { return state.clone() };
        match symbol {
            Symbol::Char(_) => state.clone(),
            Symbol::Open => Progress::Done(true),
            Symbol::Value if read + 1 == self.0 => Progress::Done(true),
            Symbol::End if read + 1 == self.0 => Progress::Done(false),
            Symbol::End | Symbol::Value => Progress::Going(read + 1),
        }
    }
    fn decided(&self, state: &Self::State) -> Option<bool> {
        state.decided()
    }
    fn finish(&self, state: &Self::State) -> bool {
        state.decided() == Some(true)
    }
    fn interesting(&self, _: &Self::State, _: &mut Vec<char>) {}
}

/// Some word is `Open`, or (`value`) `Value`.
pub(super) struct AnyUnknown {
    pub(super) value: bool,
}

impl Machine for AnyUnknown {
    type State = bool;
    fn start(&self, _: bool) -> bool {
        false
    }
    fn step(&self, state: &bool, symbol: Symbol) -> bool {
        *state || symbol == Symbol::Open || self.value && symbol == Symbol::Value
    }
    fn decided(&self, state: &bool) -> Option<bool> {
        state.then_some(true)
    }
    fn finish(&self, state: &bool) -> bool {
        *state
    }
    fn interesting(&self, _: &bool, _: &mut Vec<char>) {}
}

/// Exactly or at least so many words.
pub(super) struct Count {
    pub(super) words: usize,
    pub(super) exact: bool,
}

impl Machine for Count {
    type State = usize;
    fn start(&self, _: bool) -> usize {
        0
    }
    fn step(&self, state: &usize, symbol: Symbol) -> usize {
        match symbol {
            Symbol::Char(_) => *state,
            _ => (state + 1).min(self.words + 1),
        }
    }
    fn decided(&self, state: &usize) -> Option<bool> {
        if self.exact { (*state > self.words).then_some(false) } else { (*state >= self.words).then_some(true) }
    }
    fn finish(&self, state: &usize) -> bool {
        if self.exact { *state == self.words } else { *state >= self.words }
    }
    fn interesting(&self, _: &usize, _: &mut Vec<char>) {}
}

/// Some certain word matches one of the globs.
pub(super) struct Anywhere(pub(super) Globs);

impl Machine for Anywhere {
    type State = Progress<Positions>;
    fn start(&self, _: bool) -> Self::State {
        Progress::Going(self.0.start())
    }
    fn step(&self, state: &Self::State, symbol: Symbol) -> Self::State {
        let Progress::Going(positions) = state else { return state.clone() };
        match symbol {
            Symbol::Char(c) => Progress::Going(self.0.step(positions, c)),
            Symbol::End if self.0.accepts(positions) => Progress::Done(true),
            _ => Progress::Going(self.0.start()),
        }
    }
    fn decided(&self, state: &Self::State) -> Option<bool> {
        state.decided()
    }
    fn finish(&self, state: &Self::State) -> bool {
        state.decided() == Some(true)
    }
    fn interesting(&self, state: &Self::State, out: &mut Vec<char>) {
        if let Progress::Going(positions) = state {
            self.0.interesting(positions, out);
        }
    }
}

/// Some certain word names a path in one of the zones, or (`elsewhere`) a path in no zone.
pub(super) struct NamesZone<'a> {
    pub(super) zones: Vec<&'a PathNfa>,
    pub(super) elsewhere: Option<&'a PathNfa>,
}

impl NamesZone<'_> {
    fn begin(&self) -> (Vec<States>, Option<Elsewhere>) {
        (self.zones.iter().map(|nfa| nfa.start()).collect(), self.elsewhere.map(|_| Elsewhere::start()))
    }

    fn hit(&self, (states, scan): &(Vec<States>, Option<Elsewhere>)) -> bool {
        let elsewhere = scan.as_ref().zip(self.elsewhere).is_some_and(|(scan, all)| scan.found(all));
        elsewhere || self.zones.iter().zip(states).any(|(nfa, states)| nfa.accepts(states))
    }
}

impl Machine for NamesZone<'_> {
    type State = Progress<(Vec<States>, Option<Elsewhere>)>;
    fn start(&self, _: bool) -> Self::State {
        Progress::Going(self.begin())
    }
    fn step(&self, state: &Self::State, symbol: Symbol) -> Self::State {
        let Progress::Going(word) = state else { return state.clone() };
        match symbol {
            Symbol::Char(c) => Progress::Going((
                self.zones.iter().zip(&word.0).map(|(nfa, states)| nfa.step(states, c)).collect(),
                word.1.as_ref().zip(self.elsewhere).map(|(scan, all)| scan.step(all, c)),
            )),
            Symbol::End if self.hit(word) => Progress::Done(true),
            Symbol::End | Symbol::Value | Symbol::Open => Progress::Going(self.begin()),
        }
    }
    fn decided(&self, state: &Self::State) -> Option<bool> {
        state.decided()
    }
    fn finish(&self, state: &Self::State) -> bool {
        state.decided() == Some(true)
    }
    fn interesting(&self, state: &Self::State, out: &mut Vec<char>) {
        if let Progress::Going((states, scan)) = state {
            for (nfa, states) in self.zones.iter().zip(states) {
                nfa.interesting(states, out);
            }
            if let Some((scan, all)) = scan.as_ref().zip(self.elsewhere) {
                scan.interesting(all, out);
            }
        }
    }
}

/// `HasAny` and `Within` over the options of a command.
pub(super) struct Options {
    /// Options that are asked for.
    pub(super) names: Vec<String>,
    /// Only options that are certain count.
    pub(super) certain: bool,
    /// Ask whether nothing else is present, instead of whether one is.
    pub(super) within: bool,
}

/// What the current word is, as far as it was read.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum OptionWord {
    Empty,
    Plain,
    Dash,
    DoubleDash,
    /// A cluster; whether any letter so far, and the first, is asked for or is not.
    Cluster {
        any_in: bool,
        any_out: bool,
        first_in: bool,
        value: bool,
    },
    /// A long option; its name while it may still become one that is asked for.
    Name {
        prefix: Option<String>,
        value: bool,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct OptionScan {
    dashed: bool,
    certainty: bool,
    may_be_value: bool,
    word: OptionWord,
}

impl Options {
    fn extend(&self, prefix: Option<&str>, c: char) -> Option<String> {
        let mut longer = prefix?.to_owned();
        longer.push(c);
        self.names.iter().any(|n| n.starts_with(&longer)).then_some(longer)
    }

    fn asked(&self, letter: char) -> bool {
        self.names.iter().any(|n| n.strip_prefix('-').is_some_and(|l| l.chars().eq([letter])))
    }

    fn character(&self, scan: &OptionScan, c: char) -> OptionWord {
        let name = |prefix: &str| OptionWord::Name { prefix: self.extend(Some(prefix), c), value: false };
        match &scan.word {
            OptionWord::Empty if c == '-' => OptionWord::Dash,
            OptionWord::Empty | OptionWord::Plain => OptionWord::Plain,
            OptionWord::Dash if c == '-' => OptionWord::DoubleDash,
            OptionWord::Dash | OptionWord::DoubleDash if c == '=' => OptionWord::Plain,
            OptionWord::Dash if scan.dashed => name("-"),
            OptionWord::Dash => {
                let asked = self.asked(c);
                OptionWord::Cluster { any_in: asked, any_out: !asked, first_in: asked, value: false }
            }
            OptionWord::DoubleDash => name(if scan.dashed { "-" } else { "--" }),
            OptionWord::Cluster { value: true, .. } | OptionWord::Name { value: true, .. } => scan.word.clone(),
            OptionWord::Cluster { any_in, any_out, first_in, .. } => {
                let asked = self.asked(c);
                let value = c == '=';
                OptionWord::Cluster {
                    any_in: *any_in || asked && !value,
                    any_out: *any_out || !asked && !value,
                    first_in: *first_in,
                    value,
                }
            }
            OptionWord::Name { prefix, .. } if c == '=' => OptionWord::Name { prefix: prefix.clone(), value: true },
            OptionWord::Name { prefix, .. } => {
                OptionWord::Name { prefix: self.extend(prefix.as_deref(), c), value: false }
            }
        }
    }

    /// The end of a word: what it says, and the scan behind it.
    fn end(&self, scan: &OptionScan) -> Progress<OptionScan> {
        let mut next = OptionScan { word: OptionWord::Empty, may_be_value: false, ..scan.clone() };
        let (some_in, some_out, first_in, value) = match &scan.word {
            OptionWord::Empty | OptionWord::Plain | OptionWord::Dash => return Progress::Going(next),
            OptionWord::DoubleDash => {
                if scan.certainty && !scan.may_be_value && !scan.dashed {
                    return Progress::Done(self.within);
                }
                next.certainty = false;
                return self.settle(next);
            }
            OptionWord::Cluster { any_in, any_out, first_in, value } => (*any_in, *any_out, *first_in, *value),
            OptionWord::Name { prefix, value } => {
                let asked = prefix.as_ref().is_some_and(|p| self.names.contains(p));
                (asked, !asked, asked, *value)
            }
        };
        next.may_be_value = !value;
        let counts = !self.certain || scan.certainty && !scan.may_be_value;
        let (hit, miss) = if self.certain { (first_in, !first_in) } else { (some_in, some_out) };
        match (counts, self.within) {
            (true, false) if hit => Progress::Done(true),
            (true, true) if miss => Progress::Done(false),
            _ => self.settle(next),
        }
    }

    /// Certain options can no longer come once certainty is lost.
    fn settle(&self, scan: OptionScan) -> Progress<OptionScan> {
        if self.certain && !scan.certainty { Progress::Done(self.within) } else { Progress::Going(scan) }
    }
}

impl Machine for Options {
    type State = Progress<OptionScan>;
    fn start(&self, dashed: bool) -> Self::State {
        Progress::Going(OptionScan { dashed, certainty: true, may_be_value: false, word: OptionWord::Empty })
    }
    fn step(&self, state: &Self::State, symbol: Symbol) -> Self::State {
        let Progress::Going(scan) = state else { return state.clone() };
        match symbol {
            Symbol::Char(c) => Progress::Going(OptionScan { word: self.character(scan, c), ..scan.clone() }),
            Symbol::End => self.end(scan),
            Symbol::Value => Progress::Going(OptionScan { may_be_value: false, ..scan.clone() }),
            Symbol::Open => self.settle(OptionScan { certainty: false, ..scan.clone() }),
        }
    }
    fn decided(&self, state: &Self::State) -> Option<bool> {
        state.decided()
    }
    fn finish(&self, state: &Self::State) -> bool {
        state.decided().unwrap_or(self.within)
    }
    fn interesting(&self, state: &Self::State, out: &mut Vec<char>) {
        let Progress::Going(scan) = state else { return };
        let next = |prefix: &str, out: &mut Vec<char>| {
            out.extend(self.names.iter().filter_map(|n| n.strip_prefix(prefix)?.chars().next()));
        };
        match &scan.word {
            OptionWord::Plain | OptionWord::Cluster { value: true, .. } | OptionWord::Name { value: true, .. } => {}
            OptionWord::Empty => out.push('-'),
            OptionWord::Dash => {
                out.extend(['-', '=']);
                next("-", out);
            }
            OptionWord::DoubleDash => {
                out.extend(['-', '=']);
                next(if scan.dashed { "-" } else { "--" }, out);
            }
            OptionWord::Cluster { .. } => {
                out.push('=');
                next("-", out);
            }
            OptionWord::Name { prefix, .. } => {
                out.push('=');
                if let Some(prefix) = prefix {
                    next(prefix, out);
                }
            }
        }
    }
}
