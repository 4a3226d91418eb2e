//! What signing needs to know of policy: the check behind a trait, so that `sign` and the
//! commands around it stay free of it.

use std::collections::BTreeSet;
use std::path::Path;

use super::args::ApprovalArgs;
use super::session::Failure;
use crate::sign::{Base, Digest, FileSet};

/// What a policy directory is checked against.
#[derive(Clone, Copy, Debug)]
pub(super) enum Against<'a> {
    /// A git revision or directory, and what widens against it as far as that is approved.
    Base {
        /// The revision or directory.
        base: &'a str,
        /// Approvals that were given.
        approvals: &'a ApprovalArgs,
    },
    /// Nothing: the first adoption.
    Initial,
}

/// The outcome of a check that printed its own report.
#[derive(Clone, Debug)]
pub(super) struct Checked {
    /// Name of the set, from `polctl.yaml`.
    pub set: String,
    /// SHA-256 of the compiled set.
    pub policy_id: Digest,
    /// Every file that the set consists of, relative to the policy directory.
    pub used: Vec<String>,
    /// May it be signed?
    pub verdict: Verdict,
}

/// Whether a checked set may be signed.
#[derive(Clone, Debug)]
pub(super) enum Verdict {
    /// It may; this is what the signature says of the base.
    Green(Base),
    /// It may not; the exit code of the check.
    Red(u8),
}

/// A change that needs an approval.
#[derive(Clone, Debug)]
pub(super) struct Change {
    /// Name of the set.
    pub set: String,
    /// `policy_id` of the base.
    pub old_policy_id: Digest,
    /// `policy_id` of the changed version.
    pub new_policy_id: Digest,
    /// The fingerprint of each widening.
    pub findings: BTreeSet<Digest>,
}

/// A compiled set.
#[derive(Clone, Debug)]
pub(super) struct CompiledFiles {
    /// SHA-256 of what this polctl compiles the set to.
    pub policy_id: Digest,
    /// Names and contents.
    pub files: Vec<(String, Vec<u8>)>,
}

/// The policy side of signing.
pub(super) trait Gate {
    /// Checks the set that consists of these bytes (they are what will be signed; nothing is
    /// read again), and prints the findings. `dir` is where they came from, for messages and
    /// for git.
    ///
    /// # Errors
    ///
    /// The check ended without a report.
    fn check(&self, dir: &Path, files: &FileSet, against: Against<'_>) -> Result<Checked, Failure>;

    /// What the change from `base` to these bytes widens; prints the findings.
    ///
    /// # Errors
    ///
    /// The comparison ended without a report.
    fn change(&self, dir: &Path, files: &FileSet, base: &str) -> Result<Change, Failure>;

    /// The compiled policy of these bytes, for `--emit`.
    ///
    /// # Errors
    ///
    /// The set does not compile.
    fn compiled(&self, files: &FileSet) -> Result<CompiledFiles, Failure>;
}
