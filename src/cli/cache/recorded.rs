//! Every read of a run, once: what was hashed for the key is what is read as policy.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use crate::sign::Digest;
use crate::source::{SourceError, Tree};

/// One read.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Op {
    /// 0: the new version, 1: the old one.
    pub(super) side: u8,
    /// Whether it is a directory's listing.
    pub(super) list: bool,
    /// Relative to the policy root.
    pub(super) path: String,
}

/// What a read gave.
#[derive(Clone)]
enum Got {
    Absent,
    Bytes(Rc<[u8]>),
    Names(Rc<[String]>),
}

/// The reads of a run, and what they gave.
pub(super) struct Recording<'t> {
    trees: [&'t dyn Tree; 2],
    results: RefCell<BTreeMap<Op, (Got, Digest)>>,
    /// What the run itself asked for.
    asked: RefCell<BTreeSet<Op>>,
    /// The files that were read as policy, in order.
    files: RefCell<Vec<(u8, String)>>,
    /// Whether some read failed for a reason that may be gone the next time.
    failed: Cell<bool>,
}

impl<'t> Recording<'t> {
    pub(super) fn new(new: &'t dyn Tree, old: &'t dyn Tree) -> Self {
        let (results, asked, files) = Default::default();
        Recording { trees: [new, old], results, asked, files, failed: Cell::new(false) }
    }

    fn tree(&self, side: u8) -> &'t dyn Tree {
        let [new, old] = self.trees;
        if side == 0 { new } else { old }
    }

    /// Names and origins of both versions: they are part of what is shown.
    pub(super) fn labels(&self) -> [String; 2] {
        self.trees.map(|tree| format!("{}\0{:?}", tree.label(), tree.origin()))
    }

    pub(super) fn origin(&self, side: u8) -> Option<String> {
        self.tree(side).origin()
    }

    /// Reads, unless it was read before.
    fn result(&self, op: &Op) -> Result<Got, SourceError> {
        if let Some((result, _)) = self.results.borrow().get(op) {
            return Ok(result.clone());
        }
        let tree = self.tree(op.side);
        let read = if op.list {
            tree.list(&op.path).map(|names| Got::Names(names.into()))
        } else {
            tree.read(&op.path).map(|bytes| Got::Bytes(bytes.into()))
        };
        let result = match read {
            Ok(result) => result,
            Err(SourceError::NotFound { .. }) => Got::Absent,
            Err(error) => return Err(error),
        };
        let digest = match &result {
            Got::Absent => Digest::of(b"absent"),
            Got::Bytes(bytes) => Digest::of(bytes),
            // No name holds a zero byte.
            Got::Names(names) => Digest::of(format!("names\0{}", names.join("\0")).as_bytes()),
        };
        self.results.borrow_mut().insert(op.clone(), (result.clone(), digest));
        Ok(result)
    }

    /// Reads several files at once; where that fails, each is read by itself and says why.
    pub(super) fn prefetch(&self, side: u8, paths: &[String]) {
        let op = |path: &String| Op { side, list: false, path: path.clone() };
        let missing: Vec<String> =
            paths.iter().filter(|path| !self.results.borrow().contains_key(&op(path))).cloned().collect();
        let Ok(read) = self.tree(side).read_all(&missing) else { return };
        for (path, bytes) in missing.iter().zip(read) {
            let digest = Digest::of(&bytes);
            self.results.borrow_mut().insert(op(path), (Got::Bytes(bytes.into()), digest));
        }
    }

    /// Performs a read for its digest; `None` where it fails.
    pub(super) fn perform(&self, op: &Op) -> Option<Digest> {
        self.result(op).ok()?;
        self.results.borrow().get(op).map(|(_, digest)| *digest)
    }

    /// Reads for the run itself.
    fn ask(&self, op: Op) -> Result<Got, SourceError> {
        let got = self.result(&op);
        self.failed.set(self.failed.get() || got.is_err());
        self.asked.borrow_mut().insert(op);
        got
    }

    /// Every read that the run asked for, in one fixed order; `None` where one failed.
    pub(super) fn asked(&self) -> Option<Vec<Op>> {
        (!self.failed.get()).then(|| self.asked.borrow().iter().cloned().collect())
    }

    /// Bytes of all files.
    pub(super) fn bytes(&self) -> usize {
        let size = |result: &Got| if let Got::Bytes(bytes) = result { bytes.len() } else { 0 };
        self.results.borrow().values().map(|(result, _)| size(result)).sum()
    }

    /// The files that were read as policy, in the order of the source map.
    pub(super) fn files(&self) -> Vec<(u8, String)> {
        self.files.borrow().clone()
    }

    /// The text of a file that was read.
    pub(super) fn text(&self, side: u8, path: &str) -> Option<String> {
        let op = Op { side, list: false, path: path.to_owned() };
        match self.results.borrow().get(&op) {
            Some((Got::Bytes(bytes), _)) => std::str::from_utf8(bytes).ok().map(str::to_owned),
            _ => None,
        }
    }
}

/// One of the two versions, read through the recording.
pub(super) struct Recorded<'r, 't> {
    recording: &'r Recording<'t>,
    side: u8,
}

impl<'r, 't> Recorded<'r, 't> {
    pub(super) const fn new(recording: &'r Recording<'t>, side: u8) -> Self {
        Recorded { recording, side }
    }

    fn absent(&self, path: &str) -> SourceError {
        SourceError::NotFound { path: path.to_owned(), tree: self.label() }
    }
}

impl Tree for Recorded<'_, '_> {
    fn label(&self) -> String {
        self.recording.tree(self.side).label()
    }

    fn origin(&self) -> Option<String> {
        self.recording.origin(self.side)
    }

    fn read(&self, path: &str) -> Result<Vec<u8>, SourceError> {
        match self.recording.ask(Op { side: self.side, list: false, path: path.to_owned() })? {
            Got::Bytes(bytes) => {
                self.recording.files.borrow_mut().push((self.side, path.to_owned()));
                Ok(bytes.to_vec())
            }
            _ => Err(self.absent(path)),
        }
    }

    fn read_all(&self, paths: &[String]) -> Result<Vec<Vec<u8>>, SourceError> {
        self.recording.prefetch(self.side, paths);
        paths.iter().map(|path| self.read(path)).collect()
    }

    fn list(&self, dir: &str) -> Result<Vec<String>, SourceError> {
        match self.recording.ask(Op { side: self.side, list: true, path: dir.to_owned() })? {
            Got::Names(names) => Ok(names.to_vec()),
            _ => Err(self.absent(dir)),
        }
    }
}
