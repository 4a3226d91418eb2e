//! Which file of a policy directory is its envelope.

use std::path::{Path, PathBuf};

use crate::model::DEFAULT_ENVELOPE;
use crate::parse::{CONFIG_NAME, unverified_envelope_name};
use crate::sign::{EnvelopeAt, PolicyDir};
use crate::source::MAX_FILE_BYTES;

/// The name that was given, or the one that the configuration has (`signing.envelope`), or the
/// usual one.
///
/// The configuration is not verified here, and need not be. Whoever can change it can choose
/// which file of the directory is tried as the envelope, which they could as well replace; only
/// signatures over exactly the files of the directory make it count. The envelope is never
/// handed on as policy, and a name that leads out of the directory is refused where it is opened.
pub(super) fn envelope_name(given: Option<&str>, dir: &Path) -> String {
    let configured = || {
        let bytes = PolicyDir::open(dir).ok()?.read_envelope(CONFIG_NAME, MAX_FILE_BYTES as u64).ok()?;
        unverified_envelope_name(&bytes).filter(|_| bytes.len() <= MAX_FILE_BYTES)
    };
    given.map(str::to_owned).or_else(configured).unwrap_or_else(|| DEFAULT_ENVELOPE.to_owned())
}

/// The same for whoever only reads it: a path that was given may lead elsewhere, what the
/// configuration says may not.
pub(super) fn envelope_at(given: Option<&str>, dir: &Path) -> EnvelopeAt {
    match given {
        Some(path) if path.starts_with(['/', '.']) && path.contains('/') => EnvelopeAt::Outside(PathBuf::from(path)),
        _ => EnvelopeAt::Inside(envelope_name(given, dir)),
    }
}
