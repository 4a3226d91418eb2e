//! From a known place of the table to the files that are there.
//!
//! A pattern has `*` and `?` inside one component. A name that begins with a dot is matched as
//! any other: a census has no hidden files.

use rustix::fs::FileType;

use super::access::Identity;
use super::root::{Miss, Place, Root};

/// Most files that one pattern may stand for in one home.
const MAX_FILES: usize = 20_000;

/// What a pattern led to.
pub(super) struct Reached {
    /// Regular files and sockets, each with its path as the pattern names it.
    pub(super) places: Vec<(Vec<u8>, Place)>,
    /// What could not be reached, with the path; nothing is there for [`Miss::Absent`].
    pub(super) missed: Vec<(Vec<u8>, Miss)>,
    /// There were more than can be looked at.
    pub(super) cut: bool,
}

/// Follows `pattern` below `base`: an absolute path, or nothing, that is no pattern.
pub(super) fn reach(root: &Root, base: &[u8], pattern: &[u8], who: Option<&Identity>) -> Reached {
    let mut reached = Reached { places: Vec::new(), missed: Vec::new(), cut: false };
    let mut bases = vec![base.to_vec()];
    let mut literal = Vec::new();
    for part in pattern.split(|b| *b == b'/').filter(|part| !part.is_empty()) {
        if part.iter().any(|b| b"*?".contains(b)) {
            let mut listed = Vec::new();
            for base in &bases {
                listed.append(&mut list(root, &[base, literal.as_slice()].concat(), part, who, &mut reached));
            }
            bases = listed;
            literal.clear();
            if bases.len() > MAX_FILES {
                bases.truncate(MAX_FILES);
                reached.cut = true;
            }
        } else {
            literal.push(b'/');
            literal.extend(part);
        }
    }
    for base in bases {
        let path = [base.as_slice(), &literal].concat();
        match root.look_up(&path, who) {
            Ok(place) if matches!(place.file_type(), FileType::RegularFile | FileType::Socket) => {
                reached.places.push((path, place));
            }
            // A directory holds nothing by itself, and what is neither is not opened.
            Ok(_) | Err(Miss::Absent) => {}
            Err(miss) => reached.missed.push((path, miss)),
        }
    }
    reached
}

/// The paths below `base` whose name matches.
fn list(root: &Root, base: &[u8], pattern: &[u8], who: Option<&Identity>, reached: &mut Reached) -> Vec<Vec<u8>> {
    let dir = match root.look_up(base, who) {
        Ok(dir) if dir.file_type() == FileType::Directory => dir,
        Ok(_) | Err(Miss::Absent) => return Vec::new(),
        Err(miss) => {
            reached.missed.push((base.to_vec(), miss));
            return Vec::new();
        }
    };
    if who.is_some_and(|who| !dir.access().permits(who, super::access::READ)) {
        reached.missed.push((base.to_vec(), Miss::Closed { at: base.to_vec() }));
        return Vec::new();
    }
    match dir.names() {
        Ok(names) => {
            let matching = names.into_iter().filter(|name| matches(pattern, name));
            matching.map(|name| [base, b"/", name.as_slice()].concat()).collect()
        }
        Err(error) => {
            reached.missed.push((base.to_vec(), Miss::Refused { at: base.to_vec(), error }));
            Vec::new()
        }
    }
}

/// Whether a name matches a pattern with `*` and `?`. Linear in practice: it goes back to the
/// last star only.
fn matches(pattern: &[u8], name: &[u8]) -> bool {
    let (mut p, mut n) = (0, 0);
    let mut star = None;
    while let Some(byte) = name.get(n) {
        match pattern.get(p) {
            Some(b'*') => {
                star = Some((p, n));
                p += 1;
            }
            Some(sign) if *sign == b'?' || sign == byte => {
                p += 1;
                n += 1;
            }
            _ => match star {
                Some((at, from)) => {
                    star = Some((at, from + 1));
                    p = at + 1;
                    n = from + 1;
                }
                None => return false,
            },
        }
    }
    pattern.get(p..).is_some_and(|rest| rest.iter().all(|b| *b == b'*'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_and_question_marks() {
        for (pattern, name, holds) in [
            ("id_*", "id_rsa", true),
            ("id_*", "id_", true),
            ("id_*", "xid_rsa", false),
            ("*.pem", ".pem", true),
            ("*.pem", "a.pem.bak", false),
            ("*a*b", "xaxxab", true),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("a**", "a", true),
            ("", "", true),
        ] {
            assert_eq!(matches(pattern.as_bytes(), name.as_bytes()), holds, "{pattern} {name}");
        }
    }

    #[test]
    fn a_pattern_reaches_files_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().join("home/dev/.aws");
        std::fs::create_dir_all(home.join("d.json")).unwrap();
        std::fs::write(home.join("a.json"), "").unwrap();
        std::fs::write(home.join(".b.json"), "").unwrap();
        std::os::unix::fs::symlink("a.json", home.join("c.json")).unwrap();
        let root = Root::open(dir.path()).unwrap();
        let reached = reach(&root, b"", b"/home/*/.aws/*.json", None);
        let paths: Vec<_> = reached.places.iter().map(|(path, _)| String::from_utf8_lossy(path).into_owned()).collect();
        assert_eq!(paths, ["/home/dev/.aws/.b.json", "/home/dev/.aws/a.json", "/home/dev/.aws/c.json"]);
        assert!(reached.missed.is_empty() && !reached.cut);
        assert!(reach(&root, b"", b"/nowhere/*/x", None).places.is_empty());
    }
}
