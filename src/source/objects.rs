//! Objects of a git repository by their id, each read once, through one `git cat-file`.
//!
//! A history of hundreds of commits shares nearly all of its files; a process for every read
//! would cost more than everything else. Ids are the only thing that is ever asked for, so no
//! name of the repository reaches the process.

use std::cell::RefCell;
use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::rc::Rc;

use super::git::{cannot_start, command};
use super::tree::SourceError;
use super::{MAX_FILE_BYTES, MAX_FILES};

/// Largest tree object that is read, in bytes.
const MAX_TREE_BYTES: u64 = 64 << 20;

/// An entry of a directory.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) name: String,
    /// As git writes it: `100644`, `40000`, `120000`.
    pub(super) mode: String,
    pub(super) id: String,
}

/// What an id stands for.
#[derive(Debug)]
pub(super) enum Object {
    /// A directory; entries whose name is not UTF-8 are left out, since no policy can name them.
    Tree(Vec<Entry>),
    /// A file.
    Blob(Vec<u8>),
    /// A file over the cap.
    TooLarge,
}

/// A reader of objects.
#[derive(Debug)]
pub(super) struct Objects {
    process: RefCell<Process>,
    known: RefCell<HashMap<String, Rc<Object>>>,
}

#[derive(Debug)]
struct Process {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
}

impl Drop for Process {
    fn drop(&mut self) {
        // Without input it ends.
        self.stdin = None;
        _ = self.child.wait();
    }
}

fn failed(message: impl Into<String>) -> SourceError {
    SourceError::Git {
        message: message.into(),
        help: "run polctl where the repository and its history can be read".into(),
    }
}

impl Objects {
    /// Starts the reader in the repository of `dir`.
    pub(super) fn open(dir: &Path) -> Result<Self, SourceError> {
        let mut child = command(dir)
            .args(["cat-file", "--batch"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| cannot_start(&error))?;
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(failed("`git cat-file` has no input or output"));
        };
        let process = Process { child, stdin: Some(stdin), stdout: BufReader::new(stdout) };
        Ok(Objects { process: RefCell::new(process), known: RefCell::default() })
    }

    /// The object with this id, or the tree of a commit (`ID^{tree}`).
    pub(super) fn get(&self, id: &str) -> Result<Rc<Object>, SourceError> {
        if let Some(object) = self.known.borrow().get(id) {
            return Ok(Rc::clone(object));
        }
        let object = Rc::new(self.process.borrow_mut().read(id)?);
        self.known.borrow_mut().insert(id.to_owned(), Rc::clone(&object));
        Ok(object)
    }
}

impl Process {
    fn read(&mut self, id: &str) -> Result<Object, SourceError> {
        let ended = |error: std::io::Error| failed(format!("`git cat-file` ended: {error}"));
        let stdin = self.stdin.as_mut().ok_or_else(|| failed("`git cat-file` ended"))?;
        stdin.write_all(format!("{id}\n").as_bytes()).and_then(|()| stdin.flush()).map_err(ended)?;
        let mut head = String::new();
        self.stdout.read_line(&mut head).map_err(ended)?;
        let mut words = head.split_whitespace();
        let (oid, kind, size) = (words.next(), words.next(), words.next().and_then(|size| size.parse::<u64>().ok()));
        let (Some(oid), Some(kind), Some(size)) = (oid, kind, size) else {
            return Err(failed(format!("the object `{id}` is not in this clone")));
        };
        let (kind, hash) = (kind.to_owned(), oid.len() / 2);
        let cap = if kind == "tree" { MAX_TREE_BYTES } else { MAX_FILE_BYTES as u64 };
        if size > cap {
            std::io::copy(&mut (&mut self.stdout).take(size + 1), &mut std::io::sink()).map_err(ended)?;
            return if kind == "blob" { Ok(Object::TooLarge) } else { Err(failed("a directory is too large")) };
        }
        let mut bytes = Vec::new();
        // Behind the content stands a line break.
        (&mut self.stdout).take(size + 1).read_to_end(&mut bytes).map_err(ended)?;
        if bytes.len() as u64 != size + 1 || bytes.pop() != Some(b'\n') {
            return Err(failed(format!("`git cat-file` ended within `{id}`")));
        }
        match kind.as_str() {
            "blob" => Ok(Object::Blob(bytes)),
            "tree" => entries(&bytes, hash).map(Object::Tree),
            other => Err(failed(format!("`{id}` is a {other}, and neither a file nor a directory"))),
        }
    }
}

/// The entries of a tree object: mode, blank, name, zero byte, id in `hash` bytes.
fn entries(bytes: &[u8], hash: usize) -> Result<Vec<Entry>, SourceError> {
    let damaged = || failed("a directory of the history cannot be read");
    let (mut out, mut rest) = (Vec::new(), bytes);
    while !rest.is_empty() {
        let zero = rest.iter().position(|byte| *byte == 0).ok_or_else(damaged)?;
        let (head, tail) = rest.split_at(zero);
        let id = tail.get(1..=hash).ok_or_else(damaged)?;
        rest = tail.get(hash + 1..).ok_or_else(damaged)?;
        let Ok(head) = std::str::from_utf8(head) else { continue };
        let (mode, name) = head.split_once(' ').ok_or_else(damaged)?;
        let id = id.iter().map(|byte| format!("{byte:02x}")).collect();
        out.push(Entry { name: name.to_owned(), mode: mode.to_owned(), id });
        if out.len() > MAX_FILES * 64 {
            return Err(failed("a directory of the history has too many entries"));
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_object_is_read_whole_or_not_at_all() {
        let mut bytes = b"100644 a b\0".to_vec();
        bytes.extend([0xab; 20]);
        bytes.extend(b"40000 d\0");
        bytes.extend([1; 20]);
        bytes.extend(b"100644 \xff\0");
        bytes.extend([2; 20]);
        let read = entries(&bytes, 20).unwrap();
        let names: Vec<_> = read.iter().map(|e| (e.name.as_str(), e.mode.as_str())).collect();
        assert_eq!(names, [("a b", "100644"), ("d", "40000")], "a name that is not text is left out");
        assert_eq!(read[0].id, "ab".repeat(20));
        for cut in 1..bytes.len() {
            let whole = [31, 59].contains(&cut);
            assert_eq!(entries(&bytes[..cut], 20).is_ok(), whole, "cut at {cut}");
        }
        assert!(entries(b"100644\0aaaaaaaaaaaaaaaaaaaa", 20).is_err(), "no blank");
    }
}
