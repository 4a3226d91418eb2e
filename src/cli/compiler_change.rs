//! The same files, compiled to something else than when they were signed.
//!
//! Another polctl may read the same text differently: its program table or its compilation
//! changed. No comparison of two versions shows that, since it compiles both anew; the envelope of
//! the base says what its files were compiled to when they were signed.

use crate::compile::Compiled;
use crate::diag::{Code, Finding};
use crate::sign::{Envelope, FileEntry, PolicySet};
use crate::source::{Span, Tree};

/// A finding where the envelope of a version names exactly its files, and another `policy_id`.
///
/// The envelope is not verified: it can only cause a warning, and what it could hide is told
/// by whoever verifies it.
pub(super) fn compiler_change(tree: &dyn Tree, compiled: &Compiled) -> Option<Finding> {
    let config = &compiled.set.config;
    let envelope = Envelope::parse(&tree.read(&config.envelope).ok()?).ok()?;
    let signed = PolicySet::parse(envelope.payload()).ok()?;
    let same =
        |entry: &FileEntry| tree.read(&entry.name).is_ok_and(|bytes| FileEntry::of(&entry.name, &bytes) == *entry);
    if !signed.files.iter().all(same) {
        return None;
    }
    let policy_id = compiled.policy_id();
    if signed.policy_id.to_string() == policy_id {
        return None;
    }
    let start = Span::new(config.file, 0, 0);
    let now = env!("CARGO_PKG_VERSION");
    let message = format!(
        "polctl {now} compiles the base to other policies than polctl {} did when it was signed, from the same files",
        signed.polctl
    );
    Some(Finding::new(Code::COMPILER_CHANGE, start, message).label(format!("{} then, {policy_id} now", signed.policy_id)).help(
        "hosts with the older polctl decide otherwise: read what changed (`polctl programs --since`, CHANGELOG), and sign the set anew",
    ))
}
