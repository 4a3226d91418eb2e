//! The cache's directory: who may write there, how entries come and go.
//!
//! The directory is opened once and used by its handle, so that no path is resolved twice.
//! Entries are files of this user that nobody else may write; they appear by a rename, so
//! several processes can use one directory at a time. The oldest go when there are too many.

use std::ffi::OsStr;
use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, Stat, fstat, openat, renameat, statat, unlinkat};

/// Largest entry, in bytes.
const MAX_ENTRY: u64 = 16 << 20;
/// Most bytes of all entries.
const MAX_TOTAL: u64 = 128 << 20;
/// Most entries.
const MAX_ENTRIES: usize = 1_000;
/// Seconds after which a temporary file has been left behind.
const STALE: i64 = 3_600;

/// A directory that can be believed as far as this user can.
pub(super) struct Store {
    dir: OwnedFd,
}

impl Store {
    /// Opens the directory, and makes it where it is missing. `places` were named on the command
    /// line; the repositories that they are in must not hold the cache.
    pub(super) fn open(path: &Path, places: &[&Path]) -> Result<Self, String> {
        let full = resolved(path);
        if let Some(place) = places.iter().find(|place| full.starts_with(repository(place))) {
            return Err(format!(
                "it is in the same repository as `{}`, so a change could bring entries",
                place.display()
            ));
        }
        let plain = |error: std::io::Error| error.to_string();
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(plain)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let dir = openat(CWD, path, flags, Mode::empty()).map_err(|error| plain(error.into()))?;
        let stat = fstat(&dir).map_err(|error| plain(error.into()))?;
        if !own(&stat) {
            return Err("another user owns it or may write to it; `chmod 700` it, or name another".into());
        }
        Ok(Store { dir })
    }

    /// The bytes of an entry, unless it is missing or somebody else's.
    pub(super) fn read(&self, name: &str) -> Option<Vec<u8>> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = openat(&self.dir, name, flags, Mode::empty()).ok()?;
        let stat = fstat(&file).ok()?;
        let regular = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
        if !regular || !own(&stat) || stat.st_nlink != 1 || size(&stat) > MAX_ENTRY {
            return None;
        }
        let mut bytes = Vec::new();
        std::fs::File::from(file).take(MAX_ENTRY + 1).read_to_end(&mut bytes).ok()?;
        (bytes.len() as u64 <= MAX_ENTRY).then_some(bytes)
    }

    /// Puts an entry in its place, all at once. One that is too large is not kept.
    pub(super) fn write(&self, name: &str, bytes: &[u8]) -> Result<(), String> {
        if bytes.len() as u64 > MAX_ENTRY {
            return Ok(());
        }
        let plain = |error: rustix::io::Errno| std::io::Error::from(error).to_string();
        let random = getrandom::u64().map_err(|error| error.to_string())?;
        let temporary = format!(".{name}.{random:016x}.tmp");
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = openat(&self.dir, &temporary, flags, Mode::RUSR | Mode::WUSR).map_err(plain)?;
        // No sync: what a crash leaves incomplete does not have its digest.
        let written = std::fs::File::from(file).write_all(bytes).map_err(|error| error.to_string());
        let placed = written.and_then(|()| renameat(&self.dir, &temporary, &self.dir, name).map_err(plain));
        if placed.is_err() {
            _ = unlinkat(&self.dir, &temporary, AtFlags::empty());
        }
        placed
    }

    /// Removes the oldest entries beyond the bounds, and temporary files that were left behind.
    /// Another process may do the same at the same time; a file that is gone already is none.
    pub(super) fn prune(&self) {
        let Ok(listing) = Dir::read_from(&self.dir) else { return };
        let mut entries: Vec<(i64, Vec<u8>, u64)> = Vec::new();
        for item in listing.filter_map(Result::ok) {
            let name = item.file_name().to_bytes().to_vec();
            let Some(temporary) = kind(&name) else { continue };
            let Ok(stat) = statat(&self.dir, OsStr::from_bytes(&name), AtFlags::SYMLINK_NOFOLLOW) else { continue };
            let modified = i64::try_from(stat.st_mtime).unwrap_or(0);
            if !temporary {
                entries.push((modified, name, size(&stat)));
            } else if jiff::Timestamp::now().as_second().saturating_sub(modified) > STALE {
                self.remove(&name);
            }
        }
        // The newest first; what has no room any more goes.
        entries.sort_unstable_by(|a, b| b.cmp(a));
        let mut total = 0_u64;
        for (at, (_, name, size)) in entries.iter().enumerate() {
            total = total.saturating_add(*size);
            if at >= MAX_ENTRIES || total > MAX_TOTAL {
                self.remove(name);
            }
        }
    }

    fn remove(&self, name: &[u8]) {
        _ = unlinkat(&self.dir, OsStr::from_bytes(name), AtFlags::empty());
    }
}

/// Whether a name is one of the cache's: `Some(true)` for a temporary file. Nothing else in
/// the directory is ever touched.
fn kind(name: &[u8]) -> Option<bool> {
    let name = std::str::from_utf8(name).ok()?;
    let temporary = name.strip_prefix('.').and_then(|rest| rest.strip_suffix(".tmp"));
    let entry = temporary.and_then(|rest| rest.rsplit_once('.').map(|(entry, _)| entry)).unwrap_or(name);
    let (digest, kind) = entry.split_once('.')?;
    (crate::sign::Digest::parse(digest).is_some() && matches!(kind, "reads" | "verdict")).then_some(temporary.is_some())
}

/// Whether this user owns it and nobody else may write it.
fn own(stat: &Stat) -> bool {
    stat.st_uid == rustix::process::geteuid().as_raw() && stat.st_mode & 0o022 == 0
}

fn size(stat: &Stat) -> u64 {
    u64::try_from(stat.st_size).unwrap_or(u64::MAX)
}

/// A path without links, as far as it exists.
fn resolved(path: &Path) -> PathBuf {
    let full = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let real = |ancestor: &Path| Some((ancestor.canonicalize().ok()?, full.strip_prefix(ancestor).ok()?.to_owned()));
    let (real, rest) = full.ancestors().find_map(real).unwrap_or_else(|| (full.clone(), PathBuf::new()));
    real.join(rest)
}

/// The directory of the repository that holds a place, or the place itself.
fn repository(place: &Path) -> PathBuf {
    let full = resolved(place);
    full.ancestors().find(|dir| dir.join(".git").exists()).map_or_else(|| full.clone(), Path::to_owned)
}
