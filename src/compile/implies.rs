//! When one condition follows from another by its shape alone.
//!
//! Sound and quick, and far from complete: the exact engine decides what this cannot see.

use super::expr::{Atom, Expr, Flag, SetAttr};

impl Expr {
    /// Whether `other` surely holds wherever this does.
    pub fn implies(&self, other: &Expr) -> bool {
        if self == other {
            return true;
        }
        match (self, other) {
            (_, Expr::All(parts)) => parts.iter().all(|part| self.implies(part)),
            (Expr::One(parts), _) => parts.iter().all(|part| part.implies(other)),
            (Expr::All(parts), Expr::One(alternatives)) => {
                parts.iter().any(|part| part.implies(other)) || alternatives.iter().any(|one| self.implies(one))
            }
            (Expr::All(parts), _) => parts.iter().any(|part| part.implies(other)),
            (_, Expr::One(alternatives)) => alternatives.iter().any(|one| self.implies(one)),
            (Expr::Not(mine), Expr::Not(theirs)) => theirs.implies(mine),
            (Expr::Atom(mine), Expr::Atom(theirs)) => mine.implies(theirs),
            (Expr::Atom(Atom::Word(at, _)), Expr::Not(theirs)) => **theirs == Expr::Atom(Atom::WordUnknown(*at)),
            (Expr::Atom(Atom::AllKnown), Expr::Not(theirs)) => {
                matches!(**theirs, Expr::Atom(Atom::WordUnknown(_) | Atom::Flag(Flag::Open)))
            }
            (Expr::Not(_), Expr::Atom(_)) | (Expr::Atom(_), Expr::Not(_)) => false,
        }
    }
}

impl Atom {
    fn implies(&self, other: &Atom) -> bool {
        fn part<T: PartialEq>(few: &[T], many: &[T]) -> bool {
            few.iter().all(|x| many.contains(x))
        }
        let weaker =
            |mine: SetAttr, theirs: SetAttr| mine == theirs || (mine, theirs) == (SetAttr::Certain, SetAttr::Options);
        match (self, other) {
            (Atom::HasAny(mine, few), Atom::HasAny(theirs, many)) => weaker(*mine, *theirs) && part(few, many),
            (Atom::Within(mine, few), Atom::Within(theirs, many)) => weaker(*theirs, *mine) && part(few, many),
            (Atom::Empty(mine), Atom::Within(theirs, _)) => weaker(*theirs, *mine),
            (Atom::Word(at, few), Atom::Word(there, many)) => at == there && part(few, many),
            (Atom::Word(at, _), Atom::CountAtLeast(n)) => n <= at,
            (Atom::Program(few), Atom::Program(many))
            | (Atom::Anywhere(few), Atom::Anywhere(many))
            | (Atom::HostName(few), Atom::HostName(many)) => part(few, many),
            (Atom::Agent(few), Atom::Agent(many))
            | (Atom::Machine(few), Atom::Machine(many))
            | (Atom::RunAs(few), Atom::RunAs(many))
            | (Atom::Method(few), Atom::Method(many)) => part(few, many),
            (Atom::CountIs(n) | Atom::CountAtLeast(n), Atom::CountAtLeast(least)) => least <= n,
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn follows_by_shape() {
        let has = |names: &[&str]| {
            Expr::Atom(Atom::HasAny(SetAttr::Options, names.iter().map(|n| (*n).to_owned()).collect()))
        };
        let (a, b, ab) = (has(&["a"]), has(&["b"]), has(&["a", "b"]));
        assert!(a.implies(&ab) && !ab.implies(&a));
        assert!(ab.clone().negated().implies(&a.clone().negated()));
        assert!(Expr::All(vec![a.clone(), b.clone()]).implies(&b));
        assert!(a.implies(&Expr::One(vec![b.clone(), a.clone()])) && !a.implies(&b));
        assert!(Expr::FALSE.implies(&a) && a.implies(&Expr::TRUE) && !Expr::TRUE.implies(&a));
        assert!(Expr::Atom(Atom::CountIs(2)).implies(&Expr::Atom(Atom::CountAtLeast(1))));
    }
}
