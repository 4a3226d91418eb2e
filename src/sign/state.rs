//! What this host has seen: the highest sequence of each set, and the latest time.
//!
//! A valid old signature over an old policy is the cheapest way to undo a narrowing, so the
//! sequence may only grow. The state lies outside the policy directory and is changed only
//! after everything else was verified, under a lock and atomically. A state that cannot be
//! read is a refusal, never a fresh start.

use std::fs::File;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FlockOperation, Mode, OFlags, flock, openat};
use serde::Serialize;

use super::digest::Digest;
use super::envelope::to_json;
use super::error::{Document, Malformed, SignError, StateError, VerifyError, shown};
use super::files::{PlainError, read_plain};
use super::json::{self, At};
use super::payload::{digest, set_name, time};
use super::time::Timestamp;
use super::write::{Access, Existing, Steps, write_file};

/// Largest state that is read, in bytes.
pub const MAX_STATE_BYTES: usize = 256 * 1024;
const MAX_SETS: usize = 1024;
/// The latest time is written when it is older than this many seconds: a daemon that
/// verifies often must not sync a disk each time.
const CLOCK_STEP_SECONDS: i64 = 3600;
/// How often and how long (milliseconds) the lock is tried for.
const LOCK_TRIES: u32 = 250;
const LOCK_PAUSE: core::time::Duration = core::time::Duration::from_millis(20);

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Seen {
    set: String,
    sequence: u64,
    payload: Digest,
    latest: Timestamp,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
struct Written<'a> {
    polctl_state: &'static str,
    sets: &'a [Seen],
}

/// The state file, locked until this value is dropped.
#[derive(Debug)]
pub(super) struct LockedState {
    path: PathBuf,
    sets: Vec<Seen>,
    _lock: File,
}

impl LockedState {
    /// Locks and reads the state; a file that does not exist has seen nothing.
    pub(super) fn open(path: &Path) -> Result<Self, SignError> {
        let name = shown(&path.to_string_lossy());
        let unreadable = |source: std::io::Error| StateError::Unreadable { path: name.clone(), source };
        let lock = lock(path).map_err(unreadable)?.ok_or_else(|| StateError::Locked { path: name.clone() })?;
        let sets = match read_plain(path, MAX_STATE_BYTES) {
            Ok((bytes, _)) => parse(&bytes)?,
            Err(PlainError::Io(error)) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
            Err(PlainError::Io(error)) => return Err(unreadable(error).into()),
            Err(PlainError::NotRegular) => {
                return Err(unreadable(std::io::Error::other("not a regular file with one name")).into());
            }
        };
        Ok(LockedState { path: path.to_owned(), sets, _lock: lock })
    }

    /// Whether a payload may follow what was seen.
    pub(super) fn check(
        &self,
        set: &str,
        sequence: u64,
        payload: Digest,
        now: Timestamp,
        skew: i64,
    ) -> Result<(), VerifyError> {
        let Some(seen) = self.sets.iter().find(|seen| seen.set == set) else { return Ok(()) };
        if sequence < seen.sequence {
            return Err(VerifyError::Rollback { sequence, seen: seen.sequence });
        }
        if sequence == seen.sequence && payload != seen.payload {
            return Err(VerifyError::Reused { sequence });
        }
        if now.plus(skew) < seen.latest {
            return Err(VerifyError::Clock { now, floor: seen.latest });
        }
        Ok(())
    }

    /// Remembers a payload that was verified.
    pub(super) fn record(
        mut self,
        set: &str,
        sequence: u64,
        payload: Digest,
        now: Timestamp,
        steps: &mut dyn Steps,
    ) -> Result<(), SignError> {
        let seen = Seen { set: set.to_owned(), sequence, payload, latest: now };
        match self.sets.iter_mut().find(|s| s.set == set) {
            Some(old) if old.sequence == sequence && now <= old.latest.plus(CLOCK_STEP_SECONDS) => return Ok(()),
            Some(old) => *old = Seen { latest: now.max(old.latest), ..seen },
            None => {
                let at = self.sets.partition_point(|s| s.set < seen.set);
                self.sets.insert(at, seen);
            }
        }
        let bytes = to_json(&Written { polctl_state: "v1", sets: &self.sets });
        Ok(write_file(&self.path, &bytes, Access::Private, Existing::Replace, steps)?)
    }
}

/// The lock lies beside the state, since the state itself is replaced.
fn lock(path: &Path) -> std::io::Result<Option<File>> {
    let mut name = path.as_os_str().to_owned();
    name.push(".lock");
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let handle = openat(CWD, Path::new(&name), flags, Mode::RUSR | Mode::WUSR)?;
    for attempt in 0..LOCK_TRIES {
        match flock(&handle, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(Some(File::from(handle))),
            Err(rustix::io::Errno::WOULDBLOCK) if attempt + 1 < LOCK_TRIES => std::thread::sleep(LOCK_PAUSE),
            Err(rustix::io::Errno::WOULDBLOCK) => break,
            Err(error) => return Err(error.into()),
        }
    }
    Ok(None)
}

fn parse(bytes: &[u8]) -> Result<Vec<Seen>, Malformed> {
    let document = Document::State;
    let json = json::parse(document, bytes, MAX_STATE_BYTES)?;
    let fields = At::root(document, &json).fields("", &["polctl_state", "sets"])?;
    fields.parsed("polctl_state", "`v1`", |text| (text == "v1").then_some(()))?;
    let mut sets: Vec<Seen> = Vec::new();
    for (path, item) in fields.list("sets", MAX_SETS)? {
        let item = item.fields(&path, &["set", "sequence", "payload", "latest"])?;
        let seen = Seen {
            set: set_name(&item)?,
            sequence: item.number("sequence")?,
            payload: digest(&item, "payload")?,
            latest: time(&item, "latest")?,
        };
        if sets.last().is_some_and(|last| last.set >= seen.set) {
            return Err(fields.bad("sets", "a list of distinct sets in ascending order"));
        }
        sets.push(seen);
    }
    Ok(sets)
}
