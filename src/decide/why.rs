//! Why a policy does not hold for a request, in words.

use crate::compile::{Atom, Expr, Flag, Policy, SetAttr};
use crate::model::{Facts, Glob};

/// The first condition of a policy that does not hold, in words; `None` when all hold.
pub fn why_not(policy: &Policy, facts: &Facts) -> Option<String> {
    let expr = policy.clauses.iter().find_map(|clause| failing(clause, facts))?;
    Some(explain(expr)).filter(|text| !text.is_empty())
}

/// The first condition that does not hold.
pub fn failing<'e>(expr: &'e Expr, facts: &Facts) -> Option<&'e Expr> {
    match expr {
        Expr::All(parts) => parts.iter().find(|p| !p.holds(facts)),
        other => (!other.holds(facts)).then_some(other),
    }
}

/// A condition that failed, in words.
pub fn explain(expr: &Expr) -> String {
    let globs = |globs: &[Glob]| globs.iter().map(|g| format!("`{g}`")).collect::<Vec<_>>().join(" or ");
    let names = |names: &[String]| names.iter().map(|n| format!("`{n}`")).collect::<Vec<_>>().join(", ");
    let (negated, atom) = match expr {
        Expr::Atom(atom) => (false, atom),
        Expr::Not(inner) => match &**inner {
            Expr::Atom(atom) => (true, atom),
            _ => return "something that `unless` excludes is present, or may be".into(),
        },
        Expr::One(parts) => {
            return parts.first().map(explain).unwrap_or_default();
        }
        Expr::All(_) => return String::new(),
    };
    match (atom, negated) {
        (Atom::Program(g), _) => format!("the program is not {}", globs(g)),
        (Atom::Word(n, g), _) => format!("word {n} is not {}", globs(g)),
        (Atom::CountIs(n), _) => format!("the number of words behind the program is not {n}"),
        (Atom::CountAtLeast(n), _) => format!("there are fewer than {n} words behind the program"),
        (Atom::HasAny(SetAttr::Certain, n), false) => format!("none of the options {} is certainly present", names(n)),
        (Atom::HasAny(SetAttr::Options, n), false) => format!("none of the options {} is present", names(n)),
        (Atom::HasAny(SetAttr::Options | SetAttr::Certain, n), true) => {
            format!("one of the options {} is present, or may be", names(n))
        }
        (Atom::Anywhere(g), false) => format!("no argument is {}", globs(g)),
        (Atom::Anywhere(g), true) => format!("an argument is {}", globs(g)),
        (Atom::Within(SetAttr::Options, n), _) => format!("an option outside {} is present, or may be", names(n)),
        (Atom::HasAny(SetAttr::Names, n), true) => {
            format!("an argument lies in a zone that tiers 0 and 1 may not name ({})", names(n))
        }
        (Atom::Within(SetAttr::Env, n), _) => format!("it sets an environment variable outside {}", names(n)),
        (Atom::Flag(Flag::Trusted), false) => "the program's path is not in `trusted_dirs`".into(),
        (Atom::Flag(Flag::Harmless), false) => "an option before the sub-command is not known to be harmless, or it may run or write more than its words say".into(),
        (Atom::Flag(Flag::Open), true) => {
            "it is not certain what words there are (a wildcard that the shell expands, or an unknown option before the sub-command)".into()
        }
        (Atom::Flag(Flag::Dynamic), true) => "a part of it is only known at run time".into(),
        (Atom::RunAs(n), _) => format!("it does not run as {}", names(n)),
        (Atom::Method(n), _) => format!("the method is not {}", names(n)),
        (Atom::HostName(g), _) => format!("the host is not {}", globs(g)),
        (Atom::Port(n), _) => format!("the port is not {n}"),
        (Atom::Scheme(s), _) => format!("the scheme is not `{}`", s.name()),
        (Atom::Empty(SetAttr::Secrets), _) => "it carries a secret".into(),
        (Atom::Within(SetAttr::Secrets, n), _) => format!("it carries a secret besides {}", names(n)),
        _ => "a condition on its facts does not hold".into(),
    }
}
