//! Paths that places can tell apart: one in each of them, below and beside, and where several meet.

use std::collections::BTreeSet;

use super::space::fresh;
use crate::model::{Glob, MAX_SEGMENTS, Piece, Subtree};

/// A name that a glob holds, each wildcard filled with `fill`.
fn filled(glob: &Glob, fill: &str) -> String {
    let pieces = glob.pieces().iter().map(|piece| match piece {
        Piece::Any => fill,
        Piece::Text(text) => text.as_str(),
    });
    pieces.collect()
}

/// The names of paths, as far as places speak of them.
struct Names {
    /// Names that places mention at each depth, counted from the root.
    at: Vec<BTreeSet<String>>,
    /// Names that partial wildcards hold: with nothing, with something, and with what no glob mentions in
    /// their place. A glob that holds the last one holds everything that the other does.
    partial: BTreeSet<String>,
    /// A name that no place mentions.
    other: String,
}

impl Names {
    fn new(places: &BTreeSet<&Subtree>) -> Self {
        let globs = || places.iter().flat_map(|place| &place.segments).filter(|glob| !glob.is_any());
        let texts = |name: &str| {
            globs().flat_map(Glob::pieces).any(|piece| matches!(piece, Piece::Text(text) if text.contains(name)))
        };
        let other = fresh(&["x", "y", "z"]).find(|name| !globs().any(|glob| glob.matches(name))).unwrap_or_default();
        let unseen = fresh(&[]).find(|name| !texts(name)).unwrap_or_default();
        let mut at = vec![BTreeSet::new(); MAX_SEGMENTS];
        for place in places.iter().filter(|place| !place.any_depth) {
            for (glob, names) in place.segments.iter().zip(&mut at) {
                names.extend(glob.as_literal().map(str::to_owned));
            }
        }
        let open = globs().filter(|glob| glob.as_literal().is_none());
        let partial = open.flat_map(|glob| ["", "x", &unseen].map(|fill| filled(glob, fill)));
        let literal = globs().filter_map(Glob::as_literal).map(str::to_owned);
        let partial: BTreeSet<String> = partial.chain(literal).filter(|name| !name.is_empty()).collect();
        Names { at, partial, other }
    }

    /// The names of a glob at a depth that places tell apart.
    fn of(&self, glob: &Glob, depth: usize) -> Vec<String> {
        if let Some(text) = glob.as_literal() {
            return vec![text.to_owned()];
        }
        let here = self.at.get(depth).into_iter().flatten();
        let partial = self.partial.iter().filter(|_| !glob.is_any());
        let known = here.chain(partial).chain([&self.other]).filter(|name| glob.matches(name));
        known.cloned().collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// Every path that some globs hold, beginning at a depth.
    fn paths(&self, globs: &[Glob], depth: usize) -> Vec<Vec<String>> {
        let mut out: Vec<Vec<String>> = vec![Vec::new()];
        for (at, glob) in globs.iter().enumerate() {
            let choices = self.of(glob, depth + at);
            let longer = |path: &Vec<String>| {
                choices.iter().map(|name| [path.clone(), vec![name.clone()]].concat()).collect::<Vec<_>>()
            };
            out = out.iter().flat_map(longer).collect();
        }
        out
    }
}

/// One path of each kind that the places can tell apart, the plainest first.
pub(super) fn paths(places: &BTreeSet<&Subtree>) -> Vec<Vec<String>> {
    let names = Names::new(places);
    let mut out: BTreeSet<Vec<String>> = BTreeSet::new();
    for place in places.iter().filter(|place| !place.any_depth) {
        out.extend(names.paths(&place.segments, 0));
    }
    out.insert(Vec::new());
    out.insert(vec![names.other.clone()]);
    // What may stand at any depth stands below each of these, and where it overlaps with its end.
    let fixed = out.clone();
    for place in places.iter().filter(|place| place.any_depth) {
        for path in &fixed {
            for overlap in 0..=place.segments.len().min(path.len()) {
                let (head, tail) = path.split_at(path.len() - overlap);
                let (begun, rest) = place.segments.split_at(overlap);
                if begun.iter().zip(tail).all(|(glob, name)| glob.matches(name)) {
                    let ends = names.paths(rest, path.len());
                    out.extend(ends.into_iter().map(|end| [head, tail, &end].concat()));
                }
            }
        }
    }
    let below: Vec<Vec<String>> = out.iter().map(|path| [path.clone(), vec![names.other.clone()]].concat()).collect();
    out.extend(below);
    out.retain(|path| path.len() <= MAX_SEGMENTS);
    let mut out: Vec<Vec<String>> = out.into_iter().collect();
    out.sort_by_key(|path| (path.is_empty(), path.len()));
    out
}
