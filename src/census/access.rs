//! Who can read a file: computed from mode, owner, group and ACL as the kernel does it
//! (POSIX.1e draft 17, section 23.1.5), for any user and without becoming that user.

use rustix::fs::{Stat, fgetxattr, getxattr};
use rustix::io::Errno;

/// Name of the attribute that holds an access ACL on Linux.
const ACL_ATTRIBUTE: &str = "system.posix_acl_access";
/// Version of its layout (`linux/posix_acl_xattr.h`).
const ACL_VERSION: u32 = 2;
/// Most bytes of an ACL that are read: some 8,000 entries.
const MAX_ACL: usize = 64 * 1024;

/// Permission to read, as in a mode.
pub const READ: u32 = 4;
/// Permission to write.
pub const WRITE: u32 = 2;
/// Permission to search a directory.
pub const SEARCH: u32 = 1;

/// A user with all groups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The name, or the number where there is none.
    pub name: String,
    /// The user's number.
    pub uid: u32,
    /// Numbers of all groups, the first one included.
    pub gids: Vec<u32>,
}

/// Entries of an access ACL that mode bits do not tell.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Acl {
    /// Users by number with their permissions.
    pub users: Vec<(u32, u32)>,
    /// Groups by number with their permissions.
    pub groups: Vec<(u32, u32)>,
    /// Permissions of the owning group, before the mask.
    pub group: u32,
    /// What named users and all groups can have at most.
    pub mask: u32,
}

impl Acl {
    /// Reads the attribute's bytes; `None` when they are not such a list.
    pub fn parse(bytes: &[u8]) -> Option<Acl> {
        let (version, entries) = bytes.split_first_chunk::<4>()?;
        if u32::from_le_bytes(*version) != ACL_VERSION || entries.len() % 8 != 0 {
            return None;
        }
        let mut acl = Acl { mask: 7, ..Acl::default() };
        for entry in entries.chunks_exact(8) {
            let (tag, rest) = entry.split_first_chunk::<2>()?;
            let (permissions, id) = rest.split_first_chunk::<2>()?;
            let permissions = u32::from(u16::from_le_bytes(*permissions)) & 7;
            let id = u32::from_le_bytes(*id.first_chunk::<4>()?);
            match u16::from_le_bytes(*tag) {
                // The owner and the others are in the mode as well.
                0x01 | 0x20 => {}
                0x02 => acl.users.push((id, permissions)),
                0x04 => acl.group = permissions,
                0x08 => acl.groups.push((id, permissions)),
                0x10 => acl.mask = permissions,
                _ => return None,
            }
        }
        Some(acl)
    }
}

/// What decides about access to one file or directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Access {
    /// Permission bits with set-id and sticky bits.
    pub mode: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// The ACL, where there is one.
    pub acl: Option<Acl>,
    /// There may be an ACL, and it cannot be read: whoever it could let in counts as let in.
    pub acl_unknown: bool,
}

impl Access {
    /// From what the system says of a file without an ACL.
    pub fn of(stat: &Stat) -> Access {
        Access { mode: stat.st_mode & 0o7777, uid: stat.st_uid, gid: stat.st_gid, acl: None, acl_unknown: false }
    }

    /// The same with the ACL of an open file or directory.
    pub fn of_open(stat: &Stat, file: impl std::os::fd::AsFd) -> Access {
        let mut buffer = [0; 1024];
        Self::of(stat).with(|buffer| fgetxattr(&file, ACL_ATTRIBUTE, buffer), &mut buffer)
    }

    /// The same for a handle that was opened as a path only: the kernel reads no attributes
    /// through it, but through its name below `/proc`.
    pub fn of_path(stat: &Stat, handle: impl std::os::fd::AsFd) -> Access {
        use std::os::fd::AsRawFd as _;
        let path = format!("/proc/self/fd/{}", handle.as_fd().as_raw_fd());
        let mut buffer = [0; 1024];
        Self::of(stat).with(|buffer| getxattr(&path, ACL_ATTRIBUTE, buffer), &mut buffer)
    }

    fn with(mut self, mut read: impl FnMut(&mut [u8]) -> Result<usize, Errno>, buffer: &mut [u8]) -> Access {
        let mut large = Vec::new();
        let bytes = match read(buffer) {
            Ok(length) => buffer.get(..length),
            Err(Errno::NODATA | Errno::NOTSUP | Errno::NOSYS) => return self,
            Err(Errno::RANGE) => {
                large.resize(MAX_ACL, 0);
                read(&mut large).ok().and_then(|length| large.get(..length))
            }
            Err(_) => None,
        };
        self.acl = bytes.and_then(Acl::parse);
        self.acl_unknown = self.acl.is_none();
        self
    }

    /// Whether `who` has all of the permissions `want`.
    pub fn permits(&self, who: &Identity, want: u32) -> bool {
        let has = |bits: u32| bits & want == want;
        if who.uid == 0 {
            return true;
        }
        if who.uid == self.uid {
            return has(self.mode >> 6);
        }
        if self.acl_unknown {
            return true;
        }
        match &self.acl {
            Some(acl) => self.permits_by(acl, who, has),
            None if who.gids.contains(&self.gid) => has(self.mode >> 3),
            None => has(self.mode),
        }
    }

    fn permits_by(&self, acl: &Acl, who: &Identity, has: impl Fn(u32) -> bool) -> bool {
        if let Some((_, bits)) = acl.users.iter().find(|(uid, _)| *uid == who.uid) {
            return has(bits & acl.mask);
        }
        let own = std::iter::once((self.gid, acl.group));
        let mut groups = own.chain(acl.groups.iter().copied()).filter(|(gid, _)| who.gids.contains(gid)).peekable();
        if groups.peek().is_none() {
            return has(self.mode);
        }
        groups.any(|(_, bits)| has(bits & acl.mask))
    }

    /// The permission bits as far as somebody really has them: those of the group are the mask
    /// where there is an ACL.
    pub fn permissions(&self) -> u32 {
        self.mode & 0o777
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn who(uid: u32, gids: &[u32]) -> Identity {
        Identity { name: uid.to_string(), uid, gids: gids.to_vec() }
    }

    fn access(mode: u32, acl: Option<Acl>) -> Access {
        Access { mode, uid: 10, gid: 20, acl, acl_unknown: false }
    }

    #[test]
    fn the_first_class_that_fits_decides() {
        // The owner has less than the group, and the group less than others: no fall through.
        let odd = access(0o047, None);
        assert!(!odd.permits(&who(10, &[20]), READ));
        assert!(odd.permits(&who(11, &[20]), READ));
        assert!(odd.permits(&who(11, &[21]), READ | SEARCH));
        assert!(!odd.permits(&who(11, &[20]), READ | SEARCH));
        assert!(odd.permits(&who(0, &[]), READ | WRITE));
        let closed = access(0o600, None);
        assert!(closed.permits(&who(10, &[]), READ | WRITE));
        assert!(!closed.permits(&who(11, &[20, 21]), READ));
    }

    #[test]
    fn an_acl_is_cut_by_its_mask_and_groups_add_up() {
        let acl = Acl { users: vec![(11, 6)], groups: vec![(30, 4), (31, 0)], group: 0, mask: 4 };
        // With an ACL, the middle bits of the mode are the mask.
        let file = access(0o644, Some(acl));
        assert!(file.permits(&who(11, &[]), READ));
        assert!(!file.permits(&who(11, &[]), WRITE), "the mask takes it away");
        assert!(file.permits(&who(12, &[30, 31]), READ), "one group is enough");
        assert!(!file.permits(&who(12, &[31]), READ), "a group that fits keeps the others' bits away");
        assert!(!file.permits(&who(12, &[20]), READ));
        assert!(file.permits(&who(12, &[99]), READ), "nobody's group: the others' bits");
    }

    #[test]
    fn the_bytes_of_an_acl_are_read_or_refused() {
        let mut bytes = vec![2, 0, 0, 0];
        for (tag, permissions, id) in
            [(1u16, 6u16, u32::MAX), (2, 4, 11), (4, 0, u32::MAX), (16, 4, u32::MAX), (32, 0, u32::MAX)]
        {
            bytes.extend(tag.to_le_bytes());
            bytes.extend(permissions.to_le_bytes());
            bytes.extend(id.to_le_bytes());
        }
        let acl = Acl::parse(&bytes).unwrap();
        assert_eq!((acl.users.as_slice(), acl.mask, acl.group), (&[(11, 4)][..], 4, 0));
        assert_eq!(Acl::parse(&bytes[..bytes.len() - 1]), None);
        assert_eq!(Acl::parse(&[1, 0, 0, 0]), None);
        bytes[4] = 3;
        assert_eq!(Acl::parse(&bytes), None, "an unknown tag");
    }

    #[test]
    fn an_acl_that_cannot_be_read_lets_in_whom_it_could() {
        let file = Access { acl_unknown: true, ..access(0o600, None) };
        assert!(file.permits(&who(11, &[]), READ));
    }
}
