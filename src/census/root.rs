//! The root of the host that is scanned: paths are followed by handles and never leave it.
//!
//! A mounted image holds absolute links and `..` that would lead into the host that mounted it.
//! So every component is opened by itself, without following, and a link is followed by hand
//! from where it stands, an absolute one from the root. Nothing is opened for reading before it
//! is known to be a regular file or a directory, and nothing can block.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Dir, FileType, Mode, OFlags, Stat, fstat, openat, readlinkat};
use rustix::io::Errno;

use super::access::{Access, Identity, SEARCH};

/// Most links that are followed for one path, as many as Linux does.
const MAX_LINKS: usize = 40;
/// Most components of one path.
const MAX_COMPONENTS: usize = 256;

/// A directory that stands for `/`.
#[derive(Debug)]
pub struct Root {
    dir: OwnedFd,
    path: PathBuf,
}

/// Why a path leads nowhere.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Miss {
    /// There is nothing.
    Absent,
    /// A directory on the way is closed to the user whose view this is.
    Closed {
        /// Its path.
        at: Vec<u8>,
    },
    /// The system refused a step.
    Refused {
        /// The path up to the step.
        at: Vec<u8>,
        /// What it said.
        error: Errno,
    },
}

/// A place that was reached, opened as a path only.
pub(super) struct Place {
    handle: OwnedFd,
    parent: OwnedFd,
    name: Vec<u8>,
    /// The path inside the root without any link.
    pub(super) real: Vec<u8>,
    /// What the system says of it.
    pub(super) stat: Stat,
}

impl Root {
    /// Opens the directory.
    ///
    /// # Errors
    ///
    /// What the system says.
    pub fn open(path: &Path) -> std::io::Result<Root> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Root { dir: openat(CWD, path, flags, Mode::empty())?, path: path.to_owned() })
    }

    /// Whether it is the running system itself.
    pub fn is_live(&self) -> bool {
        self.path == Path::new("/")
    }

    /// As it was named.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Follows an absolute path to its end, links included. With `who`, directories that are
    /// closed to that user end it.
    pub(super) fn look_up(&self, path: &[u8], who: Option<&Identity>) -> Result<Place, Miss> {
        Way::new(self, who)?.follow(path)
    }

    /// The bytes of a small file, for files that say what the host is; `None` where there is none.
    pub(super) fn read_small(&self, path: &str, most: usize) -> Option<Vec<u8>> {
        let place = self.look_up(path.as_bytes(), None).ok()?;
        let file = place.open_file().ok()?;
        let mut bytes = Vec::new();
        read_up_to(&file, &mut bytes, most).ok()?;
        Some(bytes)
    }
}

/// The directories that a path leads through.
struct Way<'r> {
    root: &'r Root,
    who: Option<&'r Identity>,
    /// Directories below the root, with their names.
    stack: Vec<(OwnedFd, Vec<u8>)>,
    links: usize,
}

impl<'r> Way<'r> {
    fn new(root: &'r Root, who: Option<&'r Identity>) -> Result<Self, Miss> {
        let way = Way { root, who, stack: Vec::new(), links: 0 };
        let stat = fstat(&root.dir).map_err(|error| way.refused(error))?;
        way.enter(&stat, &root.dir, b"")?;
        Ok(way)
    }

    fn top(&self) -> BorrowedFd<'_> {
        self.stack.last().map_or_else(|| self.root.dir.as_fd(), |(handle, _)| handle.as_fd())
    }

    fn real(&self) -> Vec<u8> {
        self.stack.iter().flat_map(|(_, name)| [b"/", name.as_slice()].concat()).collect()
    }

    fn refused(&self, error: Errno) -> Miss {
        match error {
            Errno::NOENT | Errno::NOTDIR | Errno::NAMETOOLONG => Miss::Absent,
            error => Miss::Refused { at: self.real(), error },
        }
    }

    /// Whether the user may search a directory, `name` below the last one.
    fn enter(&self, stat: &Stat, handle: impl AsFd, name: &[u8]) -> Result<(), Miss> {
        let open = |who: &Identity| Access::of_path(stat, &handle).permits(who, SEARCH);
        if self.who.is_none_or(open) {
            return Ok(());
        }
        Err(Miss::Closed { at: [self.real().as_slice(), b"/", name].concat() })
    }

    fn follow(mut self, path: &[u8]) -> Result<Place, Miss> {
        let mut left = components(path);
        while let Some(name) = left.pop() {
            if left.len() > MAX_COMPONENTS {
                return Err(self.refused(Errno::LOOP));
            }
            if name == b".." {
                self.stack.pop();
                continue;
            }
            let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let handle = openat(self.top(), name.as_slice(), flags, Mode::empty()).map_err(|e| self.refused(e))?;
            let stat = fstat(&handle).map_err(|e| self.refused(e))?;
            match FileType::from_raw_mode(stat.st_mode) {
                FileType::Symlink => {
                    self.links += 1;
                    if self.links > MAX_LINKS {
                        // A loop leads nowhere, for everybody.
                        return Err(Miss::Absent);
                    }
                    let target = readlinkat(&handle, "", Vec::new()).map_err(|e| self.refused(e))?;
                    let target = target.as_bytes();
                    if target.starts_with(b"/") {
                        self.stack.clear();
                    }
                    left.extend(components(target));
                }
                FileType::Directory => {
                    if !left.is_empty() {
                        self.enter(&stat, &handle, &name)?;
                    }
                    self.stack.push((handle, name));
                }
                _ if left.is_empty() => return self.arrived(handle, name, stat),
                _ => return Err(Miss::Absent),
            }
        }
        // The path ends at a directory.
        let (handle, name) = self.stack.pop().ok_or(Miss::Absent)?;
        let stat = fstat(&handle).map_err(|e| self.refused(e))?;
        self.arrived(handle, name, stat)
    }

    fn arrived(&self, handle: OwnedFd, name: Vec<u8>, stat: Stat) -> Result<Place, Miss> {
        let parent = self.top().try_clone_to_owned().map_err(|_| self.refused(Errno::MFILE))?;
        let real = [self.real().as_slice(), b"/", &name].concat();
        Ok(Place { handle, parent, name, real, stat })
    }
}

/// The parts of a path, the first one last.
fn components(path: &[u8]) -> Vec<Vec<u8>> {
    let parts = path.split(|b| *b == b'/').filter(|part| !part.is_empty() && *part != b".");
    parts.rev().map(<[u8]>::to_vec).collect()
}

impl Place {
    /// What it is.
    pub(super) fn file_type(&self) -> FileType {
        FileType::from_raw_mode(self.stat.st_mode)
    }

    /// Who can reach it.
    pub(super) fn access(&self) -> Access {
        Access::of_path(&self.stat, &self.handle)
    }

    /// Opens a regular file for reading.
    pub(super) fn open_file(&self) -> Result<OwnedFd, Errno> {
        if self.file_type() != FileType::RegularFile {
            return Err(Errno::INVAL);
        }
        let file = open_regular(self.parent.as_fd(), &self.name)?;
        let now = fstat(&file)?;
        // Somebody may have put another file there since it was looked at.
        if (now.st_dev, now.st_ino) == (self.stat.st_dev, self.stat.st_ino) { Ok(file) } else { Err(Errno::STALE) }
    }

    /// Opens a directory for listing.
    pub(super) fn open_dir(&self) -> Result<OwnedFd, Errno> {
        open_directory(self.handle.as_fd(), b".")
    }

    /// Names in a directory, in the order of their bytes.
    pub(super) fn names(&self) -> Result<Vec<Vec<u8>>, Errno> {
        let mut names = Vec::new();
        for entry in Dir::new(self.open_dir()?)? {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            if name != b"." && name != b".." {
                names.push(name.to_vec());
            }
        }
        names.sort_unstable();
        Ok(names)
    }
}

/// Opens what should be a regular file: a pipe or device that took its place does not block. The
/// time of the last access stays as it is where the system allows that (the owner and root).
pub(super) fn open_regular(dir: BorrowedFd<'_>, name: &[u8]) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    match openat(dir, name, flags | OFlags::NOATIME, Mode::empty()) {
        Err(Errno::PERM) => openat(dir, name, flags, Mode::empty()),
        opened => opened,
    }
}

pub(super) fn open_directory(dir: BorrowedFd<'_>, name: &[u8]) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    openat(dir, name, flags, Mode::empty())
}

/// Reads into `out` to the end or to `most` bytes. Whether the end was reached.
pub(super) fn read_up_to(file: impl AsFd, out: &mut Vec<u8>, most: usize) -> Result<bool, Errno> {
    const STEP: usize = 64 * 1024;
    out.clear();
    loop {
        let filled = out.len();
        let room = STEP.min(most.saturating_sub(filled));
        if room == 0 {
            return Ok(rustix::io::read(&file, &mut [0; 1])? == 0);
        }
        out.resize(filled + room, 0);
        let read = rustix::io::read(&file, out.get_mut(filled..).unwrap_or_default());
        out.truncate(filled + *read.as_ref().unwrap_or(&0));
        if read? == 0 {
            return Ok(true);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn real(root: &Root, path: &str) -> Result<String, Miss> {
        root.look_up(path.as_bytes(), None).map(|place| String::from_utf8(place.real).unwrap())
    }

    #[test]
    fn links_are_followed_inside_the_root_and_never_out_of_it() {
        let dir = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        std::fs::write(outside.path().join("secret"), "x").unwrap();
        let at = |name: &str| dir.path().join(name);
        std::fs::create_dir_all(at("home/dev")).unwrap();
        std::fs::create_dir_all(at("etc")).unwrap();
        std::fs::write(at("etc/key"), "inside").unwrap();
        symlink("/etc/key", at("home/dev/absolute")).unwrap();
        symlink("../../../../../../etc/key", at("home/dev/up")).unwrap();
        symlink(outside.path().join("secret"), at("home/dev/out")).unwrap();
        symlink("loop", at("home/dev/loop")).unwrap();
        symlink("/home/dev", at("home/alias")).unwrap();
        let root = Root::open(dir.path()).unwrap();
        assert_eq!(real(&root, "/home/dev/absolute").unwrap(), "/etc/key");
        assert_eq!(real(&root, "/home/alias/up").unwrap(), "/etc/key");
        assert_eq!(real(&root, "/home/alias").unwrap(), "/home/dev");
        assert_eq!(real(&root, "/../../etc/key").unwrap(), "/etc/key");
        for nowhere in ["/home/dev/out", "/home/dev/loop", "/etc/key/x", "/none"] {
            assert_eq!(real(&root, nowhere), Err(Miss::Absent), "{nowhere}");
        }
        assert_eq!(root.read_small("/home/alias/absolute", 100).unwrap(), b"inside");
    }

    #[test]
    fn a_pipe_is_not_opened() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("pipe");
        rustix::fs::mkfifoat(CWD, &path, Mode::from_raw_mode(0o600)).unwrap();
        let root = Root::open(dir.path()).unwrap();
        let place = root.look_up(b"/pipe", None).unwrap();
        assert_eq!(place.file_type(), FileType::Fifo);
        assert!(place.open_file().is_err());
        // One that takes a file's place is opened without waiting.
        assert!(open_regular(root.dir.as_fd(), b"pipe").is_ok());
    }

    #[test]
    fn no_more_is_read_than_asked_and_the_end_is_told() {
        let mut file = tempfile::tempfile().unwrap();
        std::io::Write::write_all(&mut file, &[1; 10]).unwrap();
        let mut out = Vec::new();
        for (most, ended) in [(9, false), (10, true), (11, true)] {
            std::io::Seek::rewind(&mut file).unwrap();
            assert_eq!(read_up_to(&file, &mut out, most), Ok(ended), "{most}");
            assert_eq!(out.len(), most.min(10));
        }
    }
}
