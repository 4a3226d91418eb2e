//! A tree of policy files, and the one that is a directory.

use std::io::Read;
use std::path::{Path, PathBuf};

use super::MAX_FILE_BYTES;

/// Why a file or tree could not be read. Every variant ends the run with exit code 2.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
#[non_exhaustive]
pub enum SourceError {
    /// The named file does not exist.
    #[error("`{path}` does not exist in {tree}")]
    NotFound {
        /// Path relative to the policy root.
        path: String,
        /// The tree, as shown to people.
        tree: String,
    },
    /// The path is absolute or leaves the policy directory.
    #[error("`{path}` is not a plain path below the policy directory")]
    #[diagnostic(help("write it relative to `polctl.yaml`, without `..`"))]
    Escapes {
        /// The path as written.
        path: String,
    },
    /// A link, directory or device stands where a file was expected.
    #[error("`{path}` in {tree} is not a regular file")]
    #[diagnostic(help("policy is read from regular files only; replace the link by the file itself"))]
    NotRegular {
        /// Path relative to the policy root.
        path: String,
        /// The tree.
        tree: String,
    },
    /// The file is over the cap.
    #[error("`{path}` in {tree} is larger than {} MiB, the most that polctl reads", MAX_FILE_BYTES / 1024 / 1024)]
    #[diagnostic(help("split the map: several files may serve one surface"))]
    TooLarge {
        /// Path relative to the policy root.
        path: String,
        /// The tree.
        tree: String,
    },
    /// Too many files.
    #[error("{tree} holds more than {max} policy files", max = super::MAX_FILES)]
    TooMany {
        /// The tree.
        tree: String,
    },
    /// Reading failed.
    #[error("cannot read `{path}` in {tree}")]
    Io {
        /// Path relative to the policy root.
        path: String,
        /// The tree.
        tree: String,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// The git revision cannot be found.
    #[error("git knows no revision `{revision}` here")]
    #[diagnostic(help("{help}"))]
    NoRevision {
        /// As written.
        revision: String,
        /// What to do about it: it differs for shallow clones.
        help: String,
    },
    /// The name stands for several revisions.
    #[error("`{revision}` is the name of several branches or tags")]
    #[diagnostic(help("{help}"))]
    Ambiguous {
        /// As written.
        revision: String,
        /// What to write instead.
        help: String,
    },
    /// The policy directory cannot be compared with its own past.
    #[error("{message}")]
    #[diagnostic(help("{help}"))]
    Displaced {
        /// What stands in the way.
        message: String,
        /// What to do.
        help: String,
    },
    /// git failed for another reason.
    #[error("git failed: {message}")]
    #[diagnostic(help("{help}"))]
    Git {
        /// What git or the system said.
        message: String,
        /// What to do about it.
        help: String,
    },
}

/// Where the files of one policy set are read from.
pub trait Tree {
    /// Name for messages: a directory or a revision.
    fn label(&self) -> String;
    /// Origin shown before file names; `None` for the version under review.
    fn origin(&self) -> Option<String>;
    /// The bytes of a file; `path` is relative to the policy root, with `/`.
    ///
    /// # Errors
    ///
    /// [`SourceError`]: the file is missing, no regular file, over the cap or unreadable.
    fn read(&self, path: &str) -> Result<Vec<u8>, SourceError>;
    /// The bytes of several files, in the order of `paths`. Faster than one by one where each
    /// read has a price.
    ///
    /// # Errors
    ///
    /// As [`Tree::read`], for the first file that cannot be read.
    fn read_all(&self, paths: &[String]) -> Result<Vec<Vec<u8>>, SourceError> {
        paths.iter().map(|path| self.read(path)).collect()
    }
    /// Names of what stands directly in `dir` (empty: the root), sorted.
    ///
    /// # Errors
    ///
    /// [`SourceError`]: the directory is missing or unreadable.
    fn list(&self, dir: &str) -> Result<Vec<String>, SourceError>;
}

/// Whether `path` is a relative path of plain segments: no `..`, no `.`, no empty one, no
/// backslash, nothing that cannot be seen.
pub fn is_plain_relative(path: &str) -> bool {
    !path.is_empty()
        && !path.contains(|c: char| c == '\\' || super::is_unseen(c))
        && path.split('/').all(|segment| !segment.is_empty() && segment != "." && segment != "..")
}

/// A directory of the file system.
#[derive(Clone, Debug)]
pub struct DirTree {
    root: PathBuf,
    origin: Option<String>,
}

impl DirTree {
    /// The directory `root`; `origin` is shown before file names.
    pub fn new(root: impl Into<PathBuf>, origin: Option<String>) -> Self {
        DirTree { root: root.into(), origin }
    }

    /// Checks every step below the root: a link anywhere on the way may lead outside.
    fn resolve(&self, path: &str) -> Result<PathBuf, SourceError> {
        if !is_plain_relative(path) {
            return Err(SourceError::Escapes { path: path.into() });
        }
        let mut full = self.root.clone();
        for segment in path.split('/') {
            full.push(segment);
            let meta = std::fs::symlink_metadata(&full).map_err(|e| self.io(path, e))?;
            if meta.file_type().is_symlink() {
                return Err(SourceError::NotRegular { path: path.into(), tree: self.label() });
            }
        }
        Ok(full)
    }

    fn io(&self, path: &str, source: std::io::Error) -> SourceError {
        if source.kind() == std::io::ErrorKind::NotFound {
            return SourceError::NotFound { path: path.into(), tree: self.label() };
        }
        SourceError::Io { path: path.into(), tree: self.label(), source }
    }
}

impl Tree for DirTree {
    fn label(&self) -> String {
        format!("`{}`", self.root.display())
    }

    fn origin(&self) -> Option<String> {
        self.origin.clone()
    }

    fn read(&self, path: &str) -> Result<Vec<u8>, SourceError> {
        let full = self.resolve(path)?;
        let file = std::fs::File::open(&full).map_err(|e| self.io(path, e))?;
        let meta = file.metadata().map_err(|e| self.io(path, e))?;
        if !meta.is_file() {
            return Err(SourceError::NotRegular { path: path.into(), tree: self.label() });
        }
        let mut bytes = Vec::new();
        let cap = MAX_FILE_BYTES as u64 + 1;
        file.take(cap).read_to_end(&mut bytes).map_err(|e| self.io(path, e))?;
        if bytes.len() > MAX_FILE_BYTES {
            return Err(SourceError::TooLarge { path: path.into(), tree: self.label() });
        }
        Ok(bytes)
    }

    fn list(&self, dir: &str) -> Result<Vec<String>, SourceError> {
        let full = if dir.is_empty() { self.root.clone() } else { self.resolve(dir)? };
        let mut names = Vec::new();
        for entry in std::fs::read_dir(Path::new(&full)).map_err(|e| self.io(dir, e))? {
            let entry = entry.map_err(|e| self.io(dir, e))?;
            // A name that is not UTF-8 cannot be listed in `polctl.yaml` either.
            if let Ok(name) = entry.file_name().into_string() {
                names.push(name);
            }
        }
        names.sort();
        Ok(names)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_relative_paths() {
        for good in ["a", "a/b.md", "...", "a..b"] {
            assert!(is_plain_relative(good), "{good}");
        }
        for bad in ["", "/a", "a/../b", "..", "a//b", "./a", "a\\b", "a/"] {
            assert!(!is_plain_relative(bad), "{bad}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_link_on_the_way_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("real")).unwrap();
        std::fs::write(dir.path().join("real/a"), "x").unwrap();
        std::os::unix::fs::symlink("real", dir.path().join("link")).unwrap();
        let tree = DirTree::new(dir.path(), None);
        assert_eq!(tree.read("real/a").unwrap(), b"x");
        assert!(matches!(tree.read("link/a"), Err(SourceError::NotRegular { .. })));
    }

    #[test]
    fn a_file_over_the_cap_is_an_error_and_one_at_the_cap_is_read() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("at"), vec![b'a'; MAX_FILE_BYTES]).unwrap();
        std::fs::write(dir.path().join("over"), vec![b'a'; MAX_FILE_BYTES + 1]).unwrap();
        let tree = DirTree::new(dir.path(), None);
        assert_eq!(tree.read("at").unwrap().len(), MAX_FILE_BYTES);
        assert!(matches!(tree.read("over"), Err(SourceError::TooLarge { .. })));
    }
}
