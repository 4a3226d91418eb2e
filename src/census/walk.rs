//! The walk: every regular file below some directories is judged by its content.
//!
//! One handle per level, no path is opened twice, no link is followed, nothing but regular files
//! and directories is opened. A walk is bounded by depth, by entries and by the bytes that are
//! read of a file; what a bound cuts off is told.

use std::collections::HashSet;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, FileType, RawDir, Stat, fstat, fstatfs, statat};
use rustix::io::Errno;

use super::access::{Access, Identity, READ, SEARCH};
use super::probe::{Material, sniff};
use super::root::{open_directory, open_regular};
use super::scan::Told;

/// Deepest directory below the start of a walk.
pub const MAX_DEPTH: usize = 64;
/// Most entries of all walks of a run together.
pub const MAX_ENTRIES: usize = 20_000_000;
/// Bytes of a file that are looked at: all of these where it is text.
pub const MAX_TEXT: usize = 1024 * 1024;
/// Bytes that are looked at of a file that is no text.
pub const MAX_BINARY: usize = 64 * 1024;
/// Bytes at the beginning of a file that say whether it is text.
const SAMPLE: usize = 4096;
/// Bytes of directory entries that are read at once.
const LISTING: usize = 64 * 1024;
/// Entries after which the caller hears how far the walk is.
const STEP: usize = 2048;

/// File systems that hold no files of anybody, by the number that statfs(2) gives.
const NO_FILES: [(u64, &str); 14] = [
    (0x9fa0, "proc"),
    (0x6265_6572, "sysfs"),
    (0x0027_e0eb, "cgroup"),
    (0x6367_7270, "cgroup2"),
    (0x1cd1, "devpts"),
    (0x6462_6720, "debugfs"),
    (0x7472_6163, "tracefs"),
    (0x7363_6673, "securityfs"),
    (0x6265_6570, "configfs"),
    (0x6165_676c, "pstore"),
    (0xcafe_4a11, "bpf"),
    (0xde5e_81e4, "efivarfs"),
    (0x1980_0202, "mqueue"),
    (0x0187, "autofs"),
];

/// A file in which something was found by its content.
pub(super) struct Hit {
    pub(super) path: Vec<u8>,
    pub(super) access: Access,
    pub(super) found: Vec<Material>,
}

/// How far a walk is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Directories that were listed.
    pub directories: usize,
    /// Files that were read.
    pub files: usize,
}

/// All walks of a run.
pub(super) struct Walk<'a> {
    now: i64,
    pub(super) who: Option<&'a Identity>,
    pub(super) told: &'a mut Told,
    pub(super) report: &'a mut dyn FnMut(Progress),
    pub(super) hits: Vec<Hit>,
    pub(super) progress: Progress,
    /// Text files of which only the beginning was looked at.
    pub(super) cut: usize,
    entries: usize,
    /// Every directory that was listed: one that is reached again is not listed again.
    seen: HashSet<(u64, u64)>,
    listing: Vec<MaybeUninit<u8>>,
    bytes: Vec<u8>,
}

impl<'a> Walk<'a> {
    pub(super) fn new(
        (now, who): (i64, Option<&'a Identity>),
        told: &'a mut Told,
        report: &'a mut dyn FnMut(Progress),
    ) -> Self {
        Walk {
            now,
            who,
            told,
            report,
            hits: Vec::new(),
            progress: Progress::default(),
            cut: 0,
            entries: 0,
            seen: HashSet::new(),
            listing: vec![MaybeUninit::uninit(); LISTING],
            bytes: vec![0; MAX_BINARY],
        }
    }

    /// Walks everything below `dir`, whose path is `path`.
    pub(super) fn below(&mut self, dir: &OwnedFd, path: &[u8]) {
        let mut path = path.to_vec();
        if self.told.is_skipped(&path) {
            return;
        }
        if let Some(device) = fstat(dir).ok().map(|stat| stat.st_dev) {
            self.directory(dir.as_fd(), &mut path, 0, device);
        }
        (self.report)(self.progress);
    }

    fn directory(&mut self, dir: BorrowedFd<'_>, path: &mut Vec<u8>, depth: usize, device: u64) {
        let stat = match fstat(dir) {
            Ok(stat) => stat,
            Err(error) => return self.told.refused(path, error),
        };
        if !self.seen.insert((stat.st_dev, stat.st_ino)) || !self.may_list(dir, path, &stat) {
            return;
        }
        if (stat.st_dev != device || depth == 0)
            && let Some(name) = without_files(dir)
        {
            return self.told.skipped(path, &format!("a file system of type {name}"));
        }
        self.progress.directories += 1;
        let below = self.list(dir, path);
        if !below.is_empty() && depth >= MAX_DEPTH {
            return self.told.gap(path, &format!("its directories are more than {MAX_DEPTH} levels deep"));
        }
        let length = path.len();
        for name in below {
            path.push(b'/');
            path.extend(&name);
            if self.told.is_skipped(path) {
                path.truncate(length);
                continue;
            }
            match open_directory(dir, &name) {
                Ok(inner) => self.directory(inner.as_fd(), path, depth + 1, stat.st_dev),
                // It is no directory any longer, or it is gone.
                Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {}
                Err(error) => self.told.refused(path, error),
            }
            path.truncate(length);
        }
    }

    /// Whether the user whose view this is can list a directory.
    fn may_list(&mut self, dir: BorrowedFd<'_>, path: &[u8], stat: &Stat) -> bool {
        let open = |who: &Identity| Access::of_open(stat, dir).permits(who, READ | SEARCH);
        let may = self.who.is_none_or(open);
        if !may {
            self.told.closed(path);
        }
        may
    }

    /// Looks at the files of a directory; the names of directories in it.
    fn list(&mut self, dir: BorrowedFd<'_>, path: &[u8]) -> Vec<Vec<u8>> {
        let mut listing = std::mem::take(&mut self.listing);
        let mut below = Vec::new();
        let mut entries = RawDir::new(dir, &mut listing);
        while let Some(entry) = entries.next() {
            let entry = match entry {
                Ok(entry) => entry,
                Err(error) => {
                    self.told.refused(path, error);
                    break;
                }
            };
            let name = entry.file_name().to_bytes();
            if name == b"." || name == b".." {
                continue;
            }
            self.entries += 1;
            if self.entries > MAX_ENTRIES {
                self.told
                    .gap(path, &format!("more than {MAX_ENTRIES} entries in all; what comes after was not looked at"));
                below.clear();
                break;
            }
            if self.entries.is_multiple_of(STEP) {
                (self.report)(self.progress);
            }
            match kind_of(dir, name, entry.file_type()) {
                FileType::RegularFile => self.file(dir, path, name),
                FileType::Directory => below.push(name.to_vec()),
                _ => {}
            }
        }
        self.listing = listing;
        below
    }

    fn file(&mut self, dir: BorrowedFd<'_>, path: &[u8], name: &[u8]) {
        let full = |name: &[u8]| [path, b"/", name].concat();
        let found = open_regular(dir, name).and_then(|file| Ok((self.look(&file)?, file)));
        let (found, file) = match found {
            Ok((found, _)) if found.is_empty() => return,
            Ok(found) => found,
            Err(Errno::NOENT | Errno::LOOP | Errno::NXIO | Errno::AGAIN | Errno::ISDIR) => return,
            Err(error) => return self.told.refused(&full(name), error),
        };
        match fstat(&file) {
            Ok(stat) => {
                let access = Access::of_open(&stat, &file);
                if self.who.is_none_or(|who| access.permits(who, READ)) {
                    self.hits.push(Hit { path: full(name), access, found });
                }
            }
            Err(error) => self.told.refused(&full(name), error),
        }
    }

    /// What the content of a file is.
    fn look(&mut self, file: &OwnedFd) -> Result<Vec<Material>, Errno> {
        self.progress.files += 1;
        self.bytes.resize(MAX_BINARY, 0);
        let mut filled = rustix::io::read(file, self.bytes.as_mut_slice())?;
        let text = |bytes: &[u8]| memchr::memchr(0, bytes.get(..SAMPLE).unwrap_or(bytes)).is_none();
        if filled == self.bytes.len() && text(&self.bytes) {
            self.bytes.resize(MAX_TEXT, 0);
            while let Some(room) = self.bytes.get_mut(filled..).filter(|room| !room.is_empty()) {
                match rustix::io::read(file, room)? {
                    0 => break,
                    more => filled += more,
                }
            }
            self.cut += usize::from(filled == MAX_TEXT);
        }
        Ok(sniff(self.bytes.get(..filled).unwrap_or(&[]), self.now))
    }
}

/// What an entry is, as the directory says, or the file itself where the directory does not know.
fn kind_of(dir: BorrowedFd<'_>, name: &[u8], listed: FileType) -> FileType {
    if listed != FileType::Unknown {
        return listed;
    }
    statat(dir, name, AtFlags::SYMLINK_NOFOLLOW).map_or(FileType::Unknown, |stat| FileType::from_raw_mode(stat.st_mode))
}

fn without_files(dir: BorrowedFd<'_>) -> Option<&'static str> {
    let number = u64::try_from(fstatfs(dir).ok()?.f_type).ok()? & 0xffff_ffff;
    NO_FILES.iter().find(|(known, _)| *known == number).map(|(_, name)| *name)
}
