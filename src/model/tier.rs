//! Tiers, rungs and surfaces.

use std::fmt;

/// Number of rungs: tiers 0 to 3 can allow, tier 4 never does (DESIGN 3.1).
pub const RUNGS: u8 = 4;

/// A tier of DESIGN 3.1, 0 (read) to 4 (catastrophic). The order is strictness.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tier(u8);

impl Tier {
    /// The strictest tier: deny, no override.
    pub const DENY: Tier = Tier(4);
    /// What a map that does not state `unmatched` has, and the least it may state.
    pub const UNMATCHED: Tier = Tier(2);

    /// The tier with this number, 0 to 4.
    pub const fn new(number: u8) -> Option<Self> {
        if number <= 4 { Some(Tier(number)) } else { None }
    }

    /// 0 to 4.
    pub const fn number(self) -> u8 {
        self.0
    }

    /// The rungs at which a request of this tier may run: every one from its own up.
    pub fn allowing_rungs(self) -> std::ops::Range<u8> {
        self.0..RUNGS
    }

    /// The rungs below this tier.
    pub fn forbidding_rungs(self) -> std::ops::Range<u8> {
        0..self.0.min(RUNGS)
    }

    /// What the enforcement point does (DESIGN 3.1).
    pub const fn effect(self, surface: Surface) -> &'static str {
        match (self.0, surface) {
            (0, _) => "allow locally",
            (1, _) => "allow locally, logged",
            (2, Surface::Egress) => "hold for a person",
            (3, Surface::Egress) => "hold for a person, counted",
            (2, _) => "sandbox first, then run with rollback",
            (3, _) => "sandbox first, counted by the circuit breaker",
            _ => "deny, no override",
        }
    }
}

impl fmt::Display for Tier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// What a tier map is about (DESIGN 3.2, 3.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Surface {
    /// Shell commands.
    Commands,
    /// Commands that run with elevated rights.
    Sudo,
    /// Egress requests and the secrets they may carry.
    Egress,
}

impl Surface {
    /// All surfaces, in the order of every output.
    pub const ALL: [Surface; 3] = [Surface::Commands, Surface::Sudo, Surface::Egress];

    /// The word in front matter and output.
    pub const fn name(self) -> &'static str {
        match self {
            Surface::Commands => "commands",
            Surface::Sudo => "sudo",
            Surface::Egress => "egress",
        }
    }

    /// The Cedar namespace.
    pub const fn namespace(self) -> &'static str {
        match self {
            Surface::Commands => "Commands",
            Surface::Sudo => "Sudo",
            Surface::Egress => "Egress",
        }
    }

    /// The surface with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Surface::ALL.into_iter().find(|s| s.name() == name)
    }
}

impl fmt::Display for Surface {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
