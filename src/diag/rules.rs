//! What became of the rules of tier maps between two versions, in numbers.

/// How many rules are what they were, and how many are not.
///
/// Two rules are the same when they compile to the same conditions at the same rungs. Each rule
/// of one version is the same as at most one of the other, so the numbers add up:
/// `unchanged + fresh` is the number of rules of the new version, `unchanged + gone` that of
/// the old one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RuleCounts {
    /// Rules of the new version that the old one has as well.
    pub unchanged: usize,
    /// Those of them that are written in other words: another spelling, reason, example or id.
    pub reworded: usize,
    /// Those of them that stand elsewhere: in another file, or in another order.
    pub moved: usize,
    /// Rules of the new version that the old one does not have: new ones, and what changed.
    pub fresh: usize,
    /// Rules of the old version that the new one does not have: gone ones, and what changed.
    pub gone: usize,
    /// Whether what rules are read under (zones, trusted directories, allowed environment
    /// variables, provenance, guardrails) is the same in both. If not, an unchanged rule may
    /// have another effect, and the comparison of the configuration says which.
    pub same_configuration: bool,
}
