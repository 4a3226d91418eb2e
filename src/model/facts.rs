//! What `when` says: conditions on the facts of a request (DESIGN 3.4).

use std::collections::BTreeSet;
use std::fmt;

/// A condition on a yes/no fact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BoolTerm {
    /// The fact holds.
    Yes,
    /// It does not.
    No,
    /// No condition; lifts a built-in guard.
    Any,
}

/// A condition on a fact that is a set of names.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum SetTerm {
    /// No condition; lifts a built-in guard.
    Any,
    /// The set is empty.
    Empty,
    /// Permitting side: nothing outside these. Restricting side: one of these.
    In(BTreeSet<String>),
}

/// All terms of a rule's `when`; `None` where it says nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct When {
    /// Some part is only known at run time.
    pub dynamic: Option<BoolTerm>,
    /// Inputs come from outside the session.
    pub external: Option<BoolTerm>,
    /// The program's path is trusted.
    pub trusted: Option<BoolTerm>,
    /// Zones written by redirects.
    pub writes: Option<SetTerm>,
    /// Zones named by path-like arguments.
    pub names: Option<SetTerm>,
    /// Names of environment assignments.
    pub env: Option<SetTerm>,
    /// Wrappers taken off.
    pub wrappers: Option<SetTerm>,
}

impl When {
    /// The facts that a term may speak of, in the order of output.
    pub const FACTS: [&'static str; 7] = ["dynamic", "external", "trusted", "writes", "names", "env", "wrappers"];

    /// Whether nothing is said.
    pub fn is_empty(&self) -> bool {
        *self == When::default()
    }
}

impl fmt::Display for When {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut terms = Vec::new();
        for (name, term) in [("dynamic", self.dynamic), ("external", self.external), ("trusted", self.trusted)] {
            match term {
                Some(BoolTerm::Yes) => terms.push(format!("{name}=yes")),
                Some(BoolTerm::No) => terms.push(format!("{name}=no")),
                Some(BoolTerm::Any) => terms.push(format!("{name}=any")),
                None => {}
            }
        }
        for (name, term) in
            [("writes", &self.writes), ("names", &self.names), ("env", &self.env), ("wrappers", &self.wrappers)]
        {
            match term {
                Some(SetTerm::Any) => terms.push(format!("{name}=any")),
                Some(SetTerm::Empty) => terms.push(format!("{name}=none")),
                Some(SetTerm::In(set)) => {
                    let values: Vec<&str> = set.iter().map(String::as_str).collect();
                    terms.push(format!("{name}={}", values.join(",")));
                }
                None => {}
            }
        }
        f.write_str(&terms.join(" "))
    }
}
