//! Automata over the text of paths and of arguments that name paths.
//!
//! Nondeterministic, and determinised only as far as a text or a search goes: full
//! determinisation of many patterns, each of which may begin anywhere in an argument, is far
//! larger than what is ever visited. Once everything that follows is accepted, all that went
//! before is forgotten.

use std::sync::Arc;

use super::{Glob, Piece};

/// What a transition reads.
#[derive(Clone, Copy, Debug)]
enum Class {
    Char(char),
    NotSlash,
    NoneOf(&'static &'static str),
    OneOf(&'static &'static str),
    Any,
}

impl Class {
    fn reads(self, c: char) -> bool {
        match self {
            Class::Char(want) => c == want,
            Class::NotSlash => c != '/',
            Class::NoneOf(list) => !list.contains(c),
            Class::OneOf(list) => list.contains(c),
            Class::Any => true,
        }
    }
}

#[derive(Clone, Debug, Default)]
struct Node {
    reads: Vec<(Class, u32)>,
    empty: Vec<u32>,
    accepts: bool,
    /// Everything that follows is accepted.
    absorbs: bool,
}

/// The states that an automaton may be in, sorted.
pub(crate) type States = Vec<u32>;

/// Stands for "accepted whatever follows".
const ABSORBED: u32 = u32::MAX;

/// The node that each path begins at.
const PATH: u32 = 0;

/// An automaton. Copies share their nodes.
#[derive(Clone, Debug)]
pub(crate) struct PathNfa {
    nodes: Arc<Vec<Node>>,
    start: u32,
}

/// Where a pattern begins; see [`super::PathPattern`].
pub(super) enum Head {
    Root,
    Home,
    AnyDepth,
}

impl PathNfa {
    fn empty() -> Self {
        PathNfa { nodes: Arc::new(vec![Node::default()]), start: PATH }
    }

    fn node(&mut self) -> u32 {
        Arc::make_mut(&mut self.nodes).push(Node::default());
        u32::try_from(self.nodes.len() - 1).unwrap_or(ABSORBED - 1)
    }

    fn edge(&mut self, from: u32, class: Class, to: u32) {
        if let Some(node) = Arc::make_mut(&mut self.nodes).get_mut(from as usize) {
            // Most nodes have one, and a vector makes room for four.
            if node.reads.is_empty() {
                node.reads.reserve_exact(1);
            }
            node.reads.push((class, to));
        }
    }

    fn skip(&mut self, from: u32, to: u32) {
        if let Some(node) = Arc::make_mut(&mut self.nodes).get_mut(from as usize) {
            node.empty.push(to);
        }
    }

    fn mark(&mut self, node: u32, absorbs: bool) {
        if let Some(node) = Arc::make_mut(&mut self.nodes).get_mut(node as usize) {
            node.accepts = true;
            node.absorbs |= absorbs;
        }
    }

    /// `/`, then any number of `/` and `./`: they change nothing.
    fn separator(&mut self, from: u32) -> u32 {
        let (after, dot) = (self.node(), self.node());
        self.edge(from, Class::Char('/'), after);
        self.edge(after, Class::Char('/'), after);
        self.edge(after, Class::Char('.'), dot);
        self.edge(dot, Class::Char('/'), after);
        after
    }

    fn text(&mut self, mut from: u32, text: &str) -> u32 {
        for c in text.chars() {
            let next = self.node();
            self.edge(from, Class::Char(c), next);
            from = next;
        }
        from
    }

    /// A segment; a lone `*` needs at least one character.
    fn segment(&mut self, mut from: u32, glob: &Glob) -> u32 {
        if glob.is_any() {
            let next = self.node();
            self.edge(from, Class::NotSlash, next);
            self.edge(next, Class::NotSlash, next);
            return next;
        }
        for piece in glob.pieces() {
            match piece {
                Piece::Text(text) => from = self.text(from, text),
                Piece::Any => {
                    let next = self.node();
                    self.skip(from, next);
                    self.edge(next, Class::NotSlash, next);
                    from = next;
                }
            }
        }
        from
    }

    /// Adds a pattern that begins at `from`.
    fn pattern(&mut self, from: u32, head: &Head, segments: &[Glob], rest: bool) {
        let mut ends: Vec<(u32, bool)> = match head {
            Head::Root => vec![(from, true)],
            Head::AnyDepth => {
                let prefix = self.node();
                self.skip(from, prefix);
                self.edge(prefix, Class::Any, prefix);
                let behind = self.separator(prefix);
                vec![(from, false), (behind, false)]
            }
            Head::Home => {
                let tilde = self.node();
                self.edge(from, Class::Char('~'), tilde);
                self.edge(tilde, Class::NotSlash, tilde);
                let slash = self.separator(from);
                let mut homes = vec![(tilde, true), (self.text(slash, "root"), true)];
                for parent in ["home", "Users"] {
                    let parent = self.text(slash, parent);
                    let below = self.separator(parent);
                    homes.push((self.segment(below, &Glob::any()), true));
                }
                homes
            }
        };
        for glob in segments {
            ends = ends
                .into_iter()
                .map(|(end, separate)| {
                    let start = if separate { self.separator(end) } else { end };
                    (self.segment(start, glob), true)
                })
                .collect();
        }
        for (end, _) in ends {
            self.finish(end, segments.is_empty() && matches!(head, Head::Root), rest);
        }
    }

    fn finish(&mut self, end: u32, root: bool, rest: bool) {
        if rest {
            if !root {
                self.mark(end, false);
            }
            let below = self.node();
            self.edge(end, Class::Char('/'), below);
            self.mark(below, true);
        } else {
            self.mark(end, false);
            let behind = self.separator(end);
            self.mark(behind, false);
            let dot = self.node();
            self.edge(behind, Class::Char('.'), dot);
            self.mark(dot, false);
        }
    }

    /// Paths that one of the patterns covers.
    pub(super) fn paths<'p>(patterns: impl Iterator<Item = (Head, &'p [Glob], bool)>) -> Self {
        let mut nfa = PathNfa::empty();
        for (head, segments, rest) in patterns {
            nfa.pattern(PATH, &head, segments, rest);
        }
        nfa
    }

    /// Arguments that name such a path: as a whole, behind `=`, `:`, `@` or `,`, or behind a
    /// short option that it is glued to.
    pub(super) fn arguments(mut self) -> Self {
        let path = self.start;
        let (start, prefix, dash, glued) = (self.node(), self.node(), self.node(), self.node());
        self.skip(start, path);
        self.skip(start, prefix);
        self.edge(prefix, Class::Any, prefix);
        self.edge(prefix, Class::OneOf(&"=:@,"), path);
        self.edge(start, Class::Char('-'), dash);
        self.edge(dash, Class::NoneOf(&"-/~"), glued);
        self.edge(glued, Class::NoneOf(&"/~"), glued);
        self.skip(glued, path);
        self.start = start;
        self
    }

    /// The paths alone that [`PathNfa::arguments`] were made of: nothing leads out of their nodes.
    pub(super) fn paths_alone(&self) -> Self {
        PathNfa { nodes: Arc::clone(&self.nodes), start: PATH }
    }

    /// Arguments with a segment `..`.
    pub(super) fn climbing() -> Self {
        let mut nfa = PathNfa::empty();
        let first = nfa.node();
        let second = nfa.text(first, "..");
        nfa.mark(second, false);
        let below = nfa.node();
        nfa.edge(second, Class::Char('/'), below);
        nfa.mark(below, true);
        let prefix = nfa.node();
        nfa.skip(0, first);
        nfa.skip(0, prefix);
        nfa.edge(prefix, Class::Any, prefix);
        nfa.edge(prefix, Class::Char('/'), first);
        nfa.arguments()
    }

    fn close(&self, mut states: States) -> States {
        let mut at = 0;
        while let Some(&state) = states.get(at) {
            if let Some(node) = self.nodes.get(state as usize) {
                if node.absorbs {
                    return vec![ABSORBED];
                }
                for next in &node.empty {
                    if !states.contains(next) {
                        states.push(*next);
                    }
                }
            }
            at += 1;
        }
        states.sort_unstable();
        states
    }

    /// States before the first character.
    pub(crate) fn start(&self) -> States {
        self.close(vec![self.start])
    }

    /// States behind a character.
    pub(crate) fn step(&self, states: &States, c: char) -> States {
        if states.first() == Some(&ABSORBED) {
            return states.clone();
        }
        let mut next = Vec::new();
        for state in states {
            for (class, to) in self.nodes.get(*state as usize).map_or(&[][..], |n| n.reads.as_slice()) {
                if class.reads(c) && !next.contains(to) {
                    next.push(*to);
                }
            }
        }
        self.close(next)
    }

    /// States behind one character that is no slash and, where `plain`, no dot.
    fn step_wild(&self, states: &States, plain: bool) -> States {
        if states.first() == Some(&ABSORBED) {
            return states.clone();
        }
        let reads = |class: &Class| match class {
            Class::Char(c) => *c != '/' && !(plain && *c == '.'),
            Class::OneOf(list) => list.chars().any(|c| c != '/' && !(plain && c == '.')),
            Class::NotSlash | Class::NoneOf(_) | Class::Any => true,
        };
        let mut next = Vec::new();
        for state in states {
            for (class, to) in self.nodes.get(*state as usize).map_or(&[][..], |n| n.reads.as_slice()) {
                if reads(class) && !next.contains(to) {
                    next.push(*to);
                }
            }
        }
        self.close(next)
    }

    /// Either of two sets of states.
    fn either(a: &States, b: &States) -> States {
        let mut union: States = a.iter().chain(b).copied().collect();
        union.sort_unstable();
        union.dedup();
        if union.last() == Some(&ABSORBED) { vec![ABSORBED] } else { union }
    }

    /// Whether some file name that a shell's pattern matches is accepted. `*`, `?` and `[…]`
    /// stand for no slash, nor for a dot at the start of a name.
    pub(super) fn may_match(&self, pattern: &str) -> bool {
        // States in which the name has not begun, and in which it has.
        let (mut fresh, mut begun) = (self.start(), States::new());
        // A wildcard stood before the name began: no dot may follow as its first character.
        let mut starred = false;
        let mut chars = pattern.chars();
        while let Some(c) = chars.next() {
            match c {
                '*' => {
                    starred = true;
                    begun = PathNfa::either(&begun, &self.step_wild(&fresh, true));
                    loop {
                        let union = PathNfa::either(&begun, &self.step_wild(&begun, false));
                        if union == begun {
                            break;
                        }
                        begun = union;
                    }
                    continue;
                }
                '?' | '[' => {
                    if c == '[' {
                        chars.by_ref().find(|c| *c == ']');
                    }
                    begun = PathNfa::either(&self.step_wild(&begun, false), &self.step_wild(&fresh, true));
                }
                c => {
                    let first = if c == '.' && starred { States::new() } else { self.step(&fresh, c) };
                    begun = PathNfa::either(&self.step(&begun, c), &first);
                }
            }
            fresh = States::new();
            starred = false;
            if c == '/' {
                fresh = std::mem::take(&mut begun);
            }
        }
        self.accepts(&begun) || self.accepts(&fresh)
    }

    /// The characters that lead elsewhere than one which no pattern mentions.
    pub(crate) fn interesting(&self, states: &States, out: &mut Vec<char>) {
        for (class, _) in states.iter().filter_map(|s| self.nodes.get(*s as usize)).flat_map(|n| &n.reads) {
            match class {
                Class::Char(c) => out.push(*c),
                Class::NotSlash => out.push('/'),
                Class::NoneOf(list) | Class::OneOf(list) => out.extend(list.chars()),
                Class::Any => {}
            }
        }
    }

    /// Whether the text that led to these states is accepted.
    pub(crate) fn accepts(&self, states: &States) -> bool {
        states.iter().any(|s| *s == ABSORBED || self.nodes.get(*s as usize).is_some_and(|n| n.accepts))
    }

    /// Whether the whole text is accepted.
    pub(crate) fn matches(&self, text: &str) -> bool {
        let mut states = self.start();
        for c in text.chars() {
            states = self.step(&states, c);
            if states.is_empty() {
                return false;
            }
        }
        self.accepts(&states)
    }
}

/// Follows an argument and finds out whether one of the paths that it names, absolute or in a
/// home, is in no zone. Each place where a path may begin is a run of its own: `/a:/b` names
/// two paths, and one of them in a zone says nothing of the other.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Elsewhere {
    runs: Vec<States>,
    begin: Begin,
    /// Some path can no longer be in a zone.
    lost: bool,
}

/// Whether a path may begin at the next character.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Begin {
    /// Yes: the argument starts, or a delimiter stands before.
    Here,
    /// A dash starts the argument.
    Dash,
    /// Yes: behind a short option that it may be glued to.
    Glued,
    /// No.
    Inside,
}

impl Elsewhere {
    /// Before the first character.
    pub(crate) fn start() -> Self {
        Elsewhere { runs: Vec::new(), begin: Begin::Here, lost: false }
    }

    /// Behind a character; `zones` covers the paths of all zones.
    pub(crate) fn step(&self, zones: &PathNfa, c: char) -> Self {
        if self.lost {
            return self.clone();
        }
        let mut runs: Vec<States> = self.runs.iter().map(|states| zones.step(states, c)).collect();
        if matches!(c, '/' | '~') && matches!(self.begin, Begin::Here | Begin::Glued) {
            runs.push(zones.step(&zones.start(), c));
        }
        let lost = runs.iter().any(Vec::is_empty);
        runs.retain(|states| states.first() != Some(&ABSORBED));
        runs.sort();
        runs.dedup();
        let begin = match (self.begin, c) {
            (_, '=' | ':' | '@' | ',') => Begin::Here,
            (Begin::Here, '-') if self.untouched() => Begin::Dash,
            (Begin::Dash, c) if !"-/~".contains(c) => Begin::Glued,
            (Begin::Glued, c) if !"/~".contains(c) => Begin::Glued,
            _ => Begin::Inside,
        };
        if lost {
            // Nothing that follows can change it.
            return Elsewhere { runs: Vec::new(), begin: Begin::Inside, lost };
        }
        Elsewhere { runs, begin, lost }
    }

    /// Whether nothing was read yet.
    fn untouched(&self) -> bool {
        *self == Elsewhere::start()
    }

    /// The characters that lead elsewhere than one which no pattern mentions.
    pub(crate) fn interesting(&self, zones: &PathNfa, out: &mut Vec<char>) {
        if self.lost {
            return;
        }
        out.extend("/~=:@,-".chars());
        self.runs.iter().for_each(|states| zones.interesting(states, out));
    }

    /// Whether such a path is there if the argument ends here.
    pub(crate) fn found(&self, zones: &PathNfa) -> bool {
        self.lost || self.runs.iter().any(|states| !zones.accepts(states))
    }
}
