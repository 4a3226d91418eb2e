//! The cache's directory: who may write there, how entries come and go.
//!
//! The directory is opened once and used by its handle, so that no path is resolved twice.
//! Entries are files of this user that nobody else may write; they appear by a rename, so
//! several processes can use one directory at a time. The oldest go when there are too many.

use std::cell::OnceCell;
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
    path: PathBuf,
    /// Absent until there is something to keep.
    dir: OnceCell<OwnedFd>,
}

impl Store {
    /// Opens the directory, if it is there. `places` were named on the command line; the
    /// repositories that they are in must not hold the cache.
    pub(super) fn open(path: &Path, places: &[&Path]) -> Result<Self, String> {
        let full = resolved(path);
        if let Some(place) = places.iter().find(|place| full.starts_with(repository(place))) {
            return Err(format!(
                "it is in the same repository as `{}`, so a change could bring entries",
                place.display()
            ));
        }
        let dir = match believed(path) {
            Ok(dir) => OnceCell::from(dir),
            Err(Unusable::Missing) => OnceCell::new(),
            Err(Unusable::Because(reason)) => return Err(reason),
        };
        Ok(Store { path: path.to_owned(), dir })
    }

    /// The directory, made where it is missing.
    fn made(&self) -> Result<&OwnedFd, String> {
        if let Some(dir) = self.dir.get() {
            return Ok(dir);
        }
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.path).map_err(|error| error.to_string())?;
        match believed(&self.path) {
            Ok(dir) => Ok(self.dir.get_or_init(|| dir)),
            Err(Unusable::Missing) => Err("it went away".into()),
            Err(Unusable::Because(reason)) => Err(reason),
        }
    }

    /// The bytes of an entry, unless it is missing or somebody else's.
    pub(super) fn read(&self, name: &str) -> Option<Vec<u8>> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = openat(self.dir.get()?, name, flags, Mode::empty()).ok()?;
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
        let dir = self.made()?;
        let random = getrandom::u64().map_err(|error| error.to_string())?;
        let temporary = format!(".{name}.{random:016x}.tmp");
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = openat(dir, &temporary, flags, Mode::RUSR | Mode::WUSR).map_err(plain)?;
        // No sync: what a crash leaves incomplete does not have its digest.
        let written = std::fs::File::from(file).write_all(bytes).map_err(|error| error.to_string());
        let placed = written.and_then(|()| renameat(dir, &temporary, dir, name).map_err(plain));
        if placed.is_err() {
            _ = unlinkat(dir, &temporary, AtFlags::empty());
        }
        placed
    }

    /// Removes the oldest entries beyond the bounds, and temporary files that were left behind.
    /// Another process may do the same at the same time; a file that is gone already is none.
    pub(super) fn prune(&self) {
        let Some(dir) = self.dir.get() else { return };
        let Ok(listing) = Dir::read_from(dir) else { return };
        let mut entries: Vec<(i64, Vec<u8>, u64)> = Vec::new();
        for item in listing.filter_map(Result::ok) {
            let name = item.file_name().to_bytes().to_vec();
            let Some(temporary) = kind(&name) else { continue };
            let Ok(stat) = statat(dir, OsStr::from_bytes(&name), AtFlags::SYMLINK_NOFOLLOW) else { continue };
            let modified = stat.st_mtime;
            if !temporary {
                entries.push((modified, name, size(&stat)));
            } else if jiff::Timestamp::now().as_second().saturating_sub(modified) > STALE {
                remove(dir, &name);
            }
        }
        // The newest first; what has no room any more goes.
        entries.sort_unstable_by(|a, b| b.cmp(a));
        let mut total = 0_u64;
        for (at, (_, name, size)) in entries.iter().enumerate() {
            total = total.saturating_add(*size);
            if at >= MAX_ENTRIES || total > MAX_TOTAL {
                remove(dir, name);
            }
        }
    }
}

fn remove(dir: &OwnedFd, name: &[u8]) {
    _ = unlinkat(dir, OsStr::from_bytes(name), AtFlags::empty());
}

enum Unusable {
    Missing,
    Because(String),
}

/// Opens a directory that this user alone may write.
fn believed(path: &Path) -> Result<OwnedFd, Unusable> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let dir = openat(CWD, path, flags, Mode::empty()).map_err(|error| match error {
        rustix::io::Errno::NOENT => Unusable::Missing,
        other => Unusable::Because(plain(other)),
    })?;
    let stat = fstat(&dir).map_err(|error| Unusable::Because(plain(error)))?;
    if own(&stat) {
        return Ok(dir);
    }
    Err(Unusable::Because("another user owns it or may write to it; `chmod 700` it, or name another".into()))
}

fn plain(error: rustix::io::Errno) -> String {
    std::io::Error::from(error).to_string()
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
