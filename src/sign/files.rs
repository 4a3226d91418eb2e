//! Reading the policy directory: everything in it, each file once, nothing through a link.
//!
//! The directory is opened once and walked by handles (`openat`, `O_NOFOLLOW`), so that no
//! path is resolved twice; what a handle is, is asked of the handle (`fstat`). The bytes that
//! are hashed are the bytes that are handed on. Policy comes from regular files with one name
//! only: a second name (hard link) is a door for whoever can write to the other one.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Read as _;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{CWD, Dir, FileType, Mode, OFlags, Stat, fstat, openat};
use rustix::io::Errno;

use super::digest::Digest;
use super::error::{FileError, SignError, shown};
use super::names::{MAX_NAME_DEPTH, check_name};
use super::payload::{FileEntry, check_names};

/// Largest policy file that is read, in bytes. The bundle of a set is larger than the files
/// that it is compiled from: several MB for 10,000 rules.
pub const MAX_FILE_BYTES: u64 = 64 * 1024 * 1024;
/// Largest sum of all policy files, in bytes.
pub const MAX_SET_BYTES: u64 = 256 * 1024 * 1024;
/// Most entries of a policy directory.
pub const MAX_ENTRIES: usize = 4096;

/// A policy directory, opened once.
#[derive(Debug)]
pub struct PolicyDir {
    handle: OwnedFd,
    shown: String,
    identity: (u64, u64),
}

/// What in a policy directory is no policy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Skip {
    /// Name of the envelope, relative to the policy directory.
    pub envelope: Option<String>,
    /// Names (of files or whole directories) that are not looked at, relative to the policy
    /// directory, matched exactly.
    pub ignored: BTreeSet<String>,
}

impl Skip {
    fn covers(&self, name: &str) -> bool {
        self.ignored.contains(name)
            || self.envelope.as_deref().is_some_and(|envelope| envelope == name || is_left_over(envelope, name))
    }
}

/// What an interrupted writer of the envelope leaves beside it ([`super::write`]). Nobody
/// reads such a file, and an interrupted `sign` must not make the old envelope useless.
fn is_left_over(envelope: &str, name: &str) -> bool {
    let (dir, envelope) = envelope.rsplit_once('/').map_or(("", envelope), |(dir, name)| (dir, name));
    let own = name.rsplit_once('/').map_or((name, ""), |(dir, name)| (name, dir));
    let rest = own.0.strip_prefix(&super::write::temporary_prefix(envelope));
    own.1 == dir
        && rest.is_some_and(|rest| {
            rest.len() == super::write::RANDOM_BYTES && rest.bytes().all(|b| b.is_ascii_alphanumeric())
        })
}

/// Every file of a policy directory, by name, as it was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileSet(BTreeMap<String, Vec<u8>>);

impl FileSet {
    /// Names and bytes, ascending by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.0.iter().map(|(name, bytes)| (name.as_str(), bytes.as_slice()))
    }

    /// Takes a file out.
    pub(super) fn take(&mut self, name: &str) -> Option<Vec<u8>> {
        self.0.remove(name)
    }

    /// The bytes of one file.
    pub fn get(&self, name: &str) -> Option<&[u8]> {
        self.0.get(name).map(Vec::as_slice)
    }

    /// The entries for a payload.
    pub fn entries(&self) -> Vec<FileEntry> {
        self.iter().map(|(name, bytes)| FileEntry::of(name, bytes)).collect()
    }
}

impl PolicyDir {
    /// Opens the directory. It may be reached through a link (releases are often switched by
    /// one); everything below may not.
    ///
    /// # Errors
    ///
    /// [`FileError::Directory`].
    pub fn open(dir: &Path) -> Result<Self, FileError> {
        let shown = shown(&dir.to_string_lossy());
        let failed = |source: Errno| FileError::Directory { dir: shown.clone(), source: source.into() };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let handle = openat(CWD, dir, flags, Mode::empty()).map_err(failed)?;
        let stat = fstat(&handle).map_err(failed)?;
        Ok(PolicyDir { handle, identity: identity(&stat), shown })
    }

    /// Whether a file at `path` lies in this directory or below, however the path is
    /// written and wherever the directory is mounted a second time.
    ///
    /// # Errors
    ///
    /// The directory of `path` does not exist or cannot be looked at.
    pub fn contains(&self, path: &Path) -> std::io::Result<bool> {
        let parent = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let parent = parent.canonicalize()?;
        for dir in parent.ancestors() {
            if identity(&rustix::fs::stat(dir)?) == self.identity {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Reads everything that is not skipped.
    ///
    /// # Errors
    ///
    /// [`FileError`] and [`super::error::NameError`]: anything that could not be part of a
    /// signed set.
    pub fn read_all(&self, skip: &Skip) -> Result<FileSet, SignError> {
        let mut walk = Walk { skip, signed: None, seen: 0, total: 0, read: BTreeMap::new() };
        self.walk(&mut walk)?;
        let set = FileSet(walk.read);
        check_names(&set.entries_without_digest())?;
        Ok(set)
    }

    /// Reads exactly the files of `entries` and compares each with its entry.
    ///
    /// # Errors
    ///
    /// [`FileError`]: a file that is extra, missing, linked, over a cap, or another one than
    /// was signed.
    pub fn read_exactly(&self, entries: &[FileEntry], skip: &Skip) -> Result<FileSet, SignError> {
        if entries.iter().fold(0_u64, |sum, entry| sum.saturating_add(entry.size)) > MAX_SET_BYTES {
            return Err(FileError::SetTooLarge { cap: MAX_SET_BYTES }.into());
        }
        let signed = entries.iter().map(|entry| (entry.name.as_str(), entry)).collect();
        let mut walk = Walk { skip, signed: Some(signed), seen: 0, total: 0, read: BTreeMap::new() };
        self.walk(&mut walk)?;
        match entries.iter().find(|entry| !walk.read.contains_key(&entry.name)) {
            Some(entry) => Err(FileError::Missing { name: shown(&entry.name) }.into()),
            None => Ok(FileSet(walk.read)),
        }
    }

    /// Reads the envelope; at most one byte more than `cap`, which the envelope's parser
    /// then refuses.
    ///
    /// # Errors
    ///
    /// [`FileError::NoEnvelope`] when it is missing, otherwise as [`PolicyDir::read_all`].
    pub fn read_envelope(&self, name: &str, cap: u64) -> Result<Vec<u8>, SignError> {
        check_name(name)?;
        let mut parts: Vec<&str> = name.split('/').collect();
        let last = parts.pop().unwrap_or(name);
        let missing = |error: Errno| match error {
            Errno::NOENT => FileError::NoEnvelope { name: shown(name) },
            other => failed(name, other),
        };
        let mut dir: Option<OwnedFd> = None;
        for part in parts {
            let next = open_dir(dir.as_ref().unwrap_or(&self.handle).as_fd(), part).map_err(missing)?;
            dir = Some(next);
        }
        let handle = open_file(dir.as_ref().unwrap_or(&self.handle).as_fd(), last).map_err(missing)?;
        regular(name, &handle)?;
        Ok(read_up_to(name, handle, cap)?)
    }

    fn walk(&self, walk: &mut Walk<'_>) -> Result<(), SignError> {
        let unreadable = |source: Errno| FileError::Directory { dir: self.shown.clone(), source: source.into() };
        walk.directory(self.handle.as_fd(), "", unreadable)
    }
}

impl FileSet {
    /// Entries for a check of names alone.
    fn entries_without_digest(&self) -> Vec<FileEntry> {
        let none = Digest::of(b"");
        self.0.keys().map(|name| FileEntry { name: name.clone(), size: 0, sha256: none }).collect()
    }
}

struct Walk<'a> {
    skip: &'a Skip,
    /// What was signed; `None` to read everything.
    signed: Option<BTreeMap<&'a str, &'a FileEntry>>,
    seen: usize,
    total: u64,
    read: BTreeMap<String, Vec<u8>>,
}

impl Walk<'_> {
    fn directory(
        &mut self,
        dir: BorrowedFd<'_>,
        prefix: &str,
        unreadable: impl Fn(Errno) -> FileError,
    ) -> Result<(), SignError> {
        let mut entries = Vec::new();
        for entry in Dir::read_from(dir).map_err(&unreadable)? {
            let entry = entry.map_err(&unreadable)?;
            if matches!(entry.file_name().to_bytes(), b"." | b"..") {
                continue;
            }
            let name = entry.file_name().to_str().map_err(|_| FileError::NotUtf8 { dir: shown(prefix) })?;
            entries.push((name.to_owned(), entry.file_type()));
            if self.seen + entries.len() > MAX_ENTRIES {
                return Err(FileError::TooMany { cap: MAX_ENTRIES }.into());
            }
        }
        self.seen += entries.len();
        entries.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        entries.iter().try_for_each(|(name, kind)| self.entry(dir, prefix, name, *kind))
    }

    fn entry(&mut self, dir: BorrowedFd<'_>, prefix: &str, own: &str, kind: FileType) -> Result<(), SignError> {
        let name = if prefix.is_empty() { own.to_owned() } else { format!("{prefix}/{own}") };
        if self.skip.covers(&name) {
            return Ok(());
        }
        check_name(&name)?;
        match kind {
            FileType::Symlink => Err(FileError::Symlink { name: shown(&name) }.into()),
            FileType::Directory => self.below(dir, own, &name),
            FileType::RegularFile => self.file(dir, own, &name),
            // Some file systems do not say: then the handle does.
            FileType::Unknown => match open_dir(dir, own) {
                Ok(_) => self.below(dir, own, &name),
                Err(Errno::NOTDIR) => self.file(dir, own, &name),
                Err(error) => Err(failed(&name, error).into()),
            },
            _ => Err(FileError::NotRegular { name: shown(&name) }.into()),
        }
    }

    fn below(&mut self, dir: BorrowedFd<'_>, own: &str, name: &str) -> Result<(), SignError> {
        let expected = self.signed.as_ref().is_none_or(|signed| {
            let inside = format!("{name}/");
            signed.range(inside.as_str()..).next().is_some_and(|(first, _)| first.starts_with(&inside))
        });
        let leads_to_envelope = self.skip.envelope.as_deref().is_some_and(|e| e.starts_with(&format!("{name}/")));
        if self.signed.as_ref().is_some_and(|signed| signed.contains_key(name)) {
            return Err(FileError::NotRegular { name: shown(name) }.into());
        }
        if !expected && !leads_to_envelope {
            return Err(FileError::Extra { name: shown(name) }.into());
        }
        if name.split('/').count() >= MAX_NAME_DEPTH {
            return Err(super::error::NameError::Length { name: shown(name) }.into());
        }
        let handle = open_dir(dir, own).map_err(|error| failed(name, error))?;
        self.directory(handle.as_fd(), name, |error| failed(name, error))
    }

    fn file(&mut self, dir: BorrowedFd<'_>, own: &str, name: &str) -> Result<(), SignError> {
        let entry = match &self.signed {
            None => None,
            Some(signed) => Some(*signed.get(name).ok_or_else(|| FileError::Extra { name: shown(name) })?),
        };
        let handle = open_file(dir, own).map_err(|error| failed(name, error))?;
        let cap = MAX_FILE_BYTES.min(MAX_SET_BYTES.saturating_sub(self.total));
        if cap < MAX_FILE_BYTES && fstat(&handle).is_ok_and(|stat| size(&stat) > cap) {
            return Err(FileError::SetTooLarge { cap: MAX_SET_BYTES }.into());
        }
        let bytes = match entry {
            None => read_handle(name, handle, cap)?,
            Some(entry) => read_signed(entry, handle)?,
        };
        self.total += bytes.len() as u64;
        self.read.insert(name.to_owned(), bytes);
        Ok(())
    }
}

/// Reads a file and compares it with its entry: its size before reading, its digest after.
fn read_signed(entry: &FileEntry, handle: OwnedFd) -> Result<Vec<u8>, FileError> {
    let name = || shown(&entry.name);
    let found = size(&regular(&entry.name, &handle)?);
    if entry.size > MAX_FILE_BYTES || found > MAX_FILE_BYTES {
        return Err(FileError::TooLarge { name: name(), cap: MAX_FILE_BYTES });
    }
    if found != entry.size {
        return Err(FileError::Size { name: name(), found, signed: entry.size });
    }
    let bytes = read_up_to(&entry.name, handle, entry.size)?;
    if bytes.len() as u64 != entry.size {
        return Err(FileError::Size { name: name(), found: bytes.len() as u64, signed: entry.size });
    }
    if Digest::of(&bytes) != entry.sha256 {
        return Err(FileError::Digest { name: name() });
    }
    Ok(bytes)
}

fn read_handle(name: &str, handle: OwnedFd, cap: u64) -> Result<Vec<u8>, FileError> {
    regular(name, &handle)?;
    let bytes = read_up_to(name, handle, cap)?;
    if bytes.len() as u64 > cap {
        return Err(FileError::TooLarge { name: shown(name), cap });
    }
    Ok(bytes)
}

/// At most one byte more than `expected`, which then says that there is more.
fn read_up_to(name: &str, handle: OwnedFd, expected: u64) -> Result<Vec<u8>, FileError> {
    let file = File::from(handle);
    let length = file.metadata().map_or(0, |meta| meta.len()).min(expected);
    let mut bytes = Vec::with_capacity(usize::try_from(length).unwrap_or(0).saturating_add(1));
    file.take(expected.saturating_add(1))
        .read_to_end(&mut bytes)
        .map_err(|source| FileError::Unreadable { name: shown(name), source })?;
    Ok(bytes)
}

/// What the handle is: a regular file with one name, or a refusal.
fn regular(name: &str, handle: &OwnedFd) -> Result<Stat, FileError> {
    let stat = fstat(handle).map_err(|error| failed(name, error))?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(FileError::NotRegular { name: shown(name) });
    }
    let links = links(&stat);
    // None is a file that was replaced while it was open: its bytes are judged like others.
    if links > 1 {
        return Err(FileError::HardLink { name: shown(name), links });
    }
    Ok(stat)
}

fn open_dir(dir: BorrowedFd<'_>, name: &str) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(dir, name, flags, Mode::empty())
}

/// `NONBLOCK`, so that a pipe that took a file's place does not hold the caller.
fn open_file(dir: BorrowedFd<'_>, name: &str) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    openat(dir, name, flags, Mode::empty())
}

fn failed(name: &str, error: Errno) -> FileError {
    match error {
        Errno::LOOP => FileError::Symlink { name: shown(name) },
        Errno::NOENT => FileError::Missing { name: shown(name) },
        other => FileError::Unreadable { name: shown(name), source: other.into() },
    }
}

#[allow(clippy::cast_sign_loss, clippy::unnecessary_cast, reason = "the types of these fields differ between systems")]
const fn identity(stat: &Stat) -> (u64, u64) {
    (stat.st_dev as u64, stat.st_ino as u64)
}

fn size(stat: &Stat) -> u64 {
    u64::try_from(stat.st_size).unwrap_or(u64::MAX)
}

#[allow(clippy::useless_conversion, reason = "the type of this field differs between systems")]
fn links(stat: &Stat) -> u64 {
    u64::from(stat.st_nlink)
}

/// Why a file outside the policy directory was not opened.
#[derive(Debug)]
pub(super) enum PlainError {
    /// A link, something else than a file, or a file with a second name.
    NotRegular,
    /// The system refused.
    Io(std::io::Error),
}

/// A file outside the policy directory: bytes (at most one more than `cap`) and permission
/// bits, both of one handle.
pub(super) fn read_plain(path: &Path, cap: usize) -> Result<(Vec<u8>, u32), PlainError> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let handle = openat(CWD, path, flags, Mode::empty()).map_err(|error| match error {
        Errno::LOOP => PlainError::NotRegular,
        other => PlainError::Io(other.into()),
    })?;
    let stat = fstat(&handle).map_err(|error| PlainError::Io(error.into()))?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile || links(&stat) != 1 {
        return Err(PlainError::NotRegular);
    }
    let limit = (cap as u64).saturating_add(1);
    // With room from the start: a vector that grows leaves copies, of keys too, behind.
    let mut bytes = Vec::with_capacity(usize::try_from(size(&stat).min(limit)).unwrap_or(0) + 1);
    File::from(handle).take(limit).read_to_end(&mut bytes).map_err(PlainError::Io)?;
    Ok((bytes, Mode::from_raw_mode(stat.st_mode).bits() & 0o777))
}
