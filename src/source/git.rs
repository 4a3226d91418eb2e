//! A policy directory at a git revision, read through the `git` executable's plumbing.
//!
//! Only `rev-parse`, `ls-tree` and `cat-file` are run, so no hook, filter or pager of the
//! repository ever starts. Replacement objects are ignored, since they could show another
//! tree than the one the revision names; objects are never fetched on the way. A checkout
//! owned by another user, as CI containers have it, is read all the same: reading plumbing
//! runs nothing that its configuration names.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::tree::{SourceError, Tree, is_plain_relative};
use super::{MAX_FILE_BYTES, MAX_FILES};

/// The policy directory `dir` as it stood at a revision.
#[derive(Clone, Debug)]
pub struct GitTree {
    dir: PathBuf,
    revision: String,
    commit: String,
    /// Path of `dir` inside the repository, empty or ending in `/`.
    prefix: String,
}

impl GitTree {
    /// Resolves `revision` in the repository that holds `dir`.
    ///
    /// # Errors
    ///
    /// [`SourceError::NoRevision`] with a help text that knows about shallow clones;
    /// [`SourceError::Git`] when there is no git or no repository.
    pub fn open(dir: &Path, revision: &str) -> Result<Self, SourceError> {
        if revision.is_empty() || revision.starts_with('-') || revision.contains(char::is_control) {
            return Err(SourceError::NoRevision {
                revision: revision.into(),
                help: "give a branch, tag, commit or an expression like `HEAD~1`".into(),
            });
        }
        let in_repository = git(dir, &["rev-parse", "--show-prefix"]);
        let prefix = in_repository.map_err(|e| match e {
            SourceError::Git { message, help } if message.contains("not a git repository") => SourceError::Git {
                message,
                help: format!(
                    "`{revision}` is read as a git revision, so the policy directory must be in a git checkout; to compare with a directory, give its path ({help})"
                ),
            },
            other => other,
        })?;
        let prefix = String::from_utf8_lossy(&prefix).trim_end_matches('\n').to_owned();
        refuse_displaced(dir)?;
        let spec = format!("{revision}^{{commit}}");
        let (commit, warnings) = git_with_warnings(dir, &["rev-parse", "--verify", "--end-of-options", &spec])
            .map_err(|_| no_revision(dir, revision))?;
        if warnings.contains("ambiguous") {
            // git takes the tag before the branch; whoever can push a tag would choose the base.
            return Err(SourceError::Ambiguous {
                revision: revision.into(),
                help: "write the full name, `refs/remotes/origin/main` or `refs/heads/main`, or the commit's id".into(),
            });
        }
        let commit = String::from_utf8_lossy(&commit).trim().to_owned();
        // The commit may be known by name while its tree is not here (shallow or partial clone).
        if git(dir, &["cat-file", "-e", &format!("{commit}^{{tree}}")]).is_err() {
            return Err(no_revision(dir, revision));
        }
        Ok(GitTree { dir: dir.to_owned(), revision: revision.to_owned(), commit, prefix })
    }

    /// The full id of the commit.
    pub fn commit(&self) -> &str {
        &self.commit
    }

    /// Path of the policy directory inside the repository, empty or ending in `/`.
    pub(super) fn prefix(&self) -> &str {
        &self.prefix
    }

    /// Mode, type and object id of the entry at `path`.
    fn entry(&self, path: &str) -> Result<Option<(String, String)>, SourceError> {
        let full = format!("{}{path}", self.prefix);
        let out = git(&self.dir, &["ls-tree", "-z", "--full-tree", &self.commit, "--", &full])?;
        let text = String::from_utf8_lossy(&out);
        let Some(record) = text.split('\0').find(|r| !r.is_empty()) else {
            return Ok(None);
        };
        let mut head = record.split('\t').next().unwrap_or("").split(' ');
        let mode = head.next().unwrap_or("").to_owned();
        let id = head.nth(1).unwrap_or("").to_owned();
        Ok(Some((mode, id)))
    }
}

/// Mode, object id and size of files, by path.
type Entries = BTreeMap<String, (String, String, usize)>;

impl GitTree {
    /// The entries of the directories in which files lie, read at once.
    fn entries(&self, paths: &[String]) -> Result<Entries, SourceError> {
        let mut dirs = BTreeSet::new();
        for path in paths {
            if !is_plain_relative(path) {
                return Err(SourceError::Escapes { path: path.clone() });
            }
            let dir = path.rsplit_once('/').map_or(String::new(), |(dir, _)| format!("{dir}/"));
            dirs.insert(format!("{}{dir}", self.prefix));
        }
        let mut entries = Entries::new();
        let dirs: Vec<&str> = dirs.iter().map(String::as_str).collect();
        // So few that the command line holds them.
        for some in dirs.chunks(200) {
            let mut args = vec!["ls-tree", "-z", "-l", "--full-tree", &self.commit];
            if !some.contains(&"") {
                args.push("--");
                args.extend(some);
            }
            let out = git(&self.dir, &args)?;
            for record in String::from_utf8_lossy(&out).split('\0') {
                let Some((head, path)) = record.split_once('\t') else { continue };
                let mut words = head.split_whitespace();
                let (mode, id, size) = (words.next(), words.nth(1), words.next());
                let (Some(mode), Some(id), Some(path)) = (mode, id, path.strip_prefix(&self.prefix)) else { continue };
                let size = size.and_then(|size| size.parse().ok()).unwrap_or(usize::MAX);
                entries.insert(path.to_owned(), (mode.to_owned(), id.to_owned(), size));
            }
        }
        Ok(entries)
    }

    /// The contents of objects, in their order, from one process.
    fn blobs(&self, ids: &[(&str, usize)]) -> Result<Vec<Vec<u8>>, SourceError> {
        let mut wanted = tempfile::tempfile().map_err(|e| piped(&e))?;
        for (id, _) in ids {
            writeln!(wanted, "{id}").map_err(|e| piped(&e))?;
        }
        wanted.rewind().map_err(|e| piped(&e))?;
        let (out, _) = git_with_input(&self.dir, &["cat-file", "--batch"], wanted.into())?;
        let mut rest = out.as_slice();
        let mut blobs = Vec::new();
        for (id, size) in ids {
            let head = format!("{id} blob {size}\n");
            let body = rest.strip_prefix(head.as_bytes()).and_then(|rest| rest.split_at_checked(*size));
            let Some((bytes, after)) = body else {
                return Err(SourceError::Git {
                    message: format!("`git cat-file` did not give the object {id}"),
                    help: "run polctl where the repository and its history can be read".into(),
                });
            };
            blobs.push(bytes.to_vec());
            rest = after.strip_prefix(b"\n").unwrap_or(after);
        }
        Ok(blobs)
    }
}

/// The list of objects could not be handed to git.
fn piped(error: &std::io::Error) -> SourceError {
    SourceError::Git {
        message: format!("cannot write a temporary file: {error}"),
        help: "check the free space of the directory for temporary files".into(),
    }
}

impl Tree for GitTree {
    fn label(&self) -> String {
        format!("revision `{}`", self.revision)
    }

    fn origin(&self) -> Option<String> {
        Some(self.revision.clone())
    }

    fn read(&self, path: &str) -> Result<Vec<u8>, SourceError> {
        if !is_plain_relative(path) {
            return Err(SourceError::Escapes { path: path.into() });
        }
        let Some((mode, id)) = self.entry(path)? else {
            return Err(SourceError::NotFound { path: path.into(), tree: self.label() });
        };
        if !mode.starts_with("100") {
            return Err(SourceError::NotRegular { path: path.into(), tree: self.label() });
        }
        let size = git(&self.dir, &["cat-file", "-s", &id])?;
        let size: usize = String::from_utf8_lossy(&size).trim().parse().unwrap_or(usize::MAX);
        if size > MAX_FILE_BYTES {
            return Err(SourceError::TooLarge { path: path.into(), tree: self.label() });
        }
        git(&self.dir, &["cat-file", "blob", &id])
    }

    fn read_all(&self, paths: &[String]) -> Result<Vec<Vec<u8>>, SourceError> {
        let entries = self.entries(paths)?;
        let mut ids = Vec::new();
        for path in paths {
            let Some((mode, id, size)) = entries.get(path) else {
                return Err(SourceError::NotFound { path: path.clone(), tree: self.label() });
            };
            if !mode.starts_with("100") {
                return Err(SourceError::NotRegular { path: path.clone(), tree: self.label() });
            }
            if *size > MAX_FILE_BYTES {
                return Err(SourceError::TooLarge { path: path.clone(), tree: self.label() });
            }
            ids.push((id.as_str(), *size));
        }
        self.blobs(&ids)
    }

    fn list(&self, dir: &str) -> Result<Vec<String>, SourceError> {
        let mut path = format!("{}{dir}", self.prefix);
        if !dir.is_empty() {
            path.push('/');
        }
        let mut args = vec!["ls-tree", "-z", "--full-tree", "--name-only", &self.commit];
        if !path.is_empty() {
            args.extend(["--", path.as_str()]);
        }
        let out = git(&self.dir, &args)?;
        let mut names: Vec<String> = String::from_utf8_lossy(&out)
            .split('\0')
            .filter_map(|full| full.strip_prefix(path.as_str()))
            .filter(|name| !name.is_empty() && !name.contains('/'))
            .map(str::to_owned)
            .collect();
        names.sort();
        if names.len() > MAX_FILES * 64 {
            return Err(SourceError::TooMany { tree: self.label() });
        }
        Ok(names)
    }
}

/// The message for a missing base: what to do differs when the clone is shallow.
pub(super) fn no_revision(dir: &Path, revision: &str) -> SourceError {
    let shallow = git(dir, &["rev-parse", "--is-shallow-repository"]).is_ok_and(|out| out.starts_with(b"true"));
    let help = if shallow {
        "this clone is shallow and does not hold the base: fetch more history first \
         (`git fetch --unshallow`, or `git fetch --deepen=50`; in GitHub Actions `fetch-depth: 0` at the checkout step; \
         in Woodpecker `depth: 0` and `partial: false` in the clone settings)"
    } else {
        "check the spelling; for a branch of the remote write `origin/NAME`, and run `git fetch` if it is new"
    };
    SourceError::NoRevision { revision: revision.into(), help: help.into() }
}

/// A change could move the policy directory to where its past is another one: by a link to
/// another directory, or by a repository inside the repository.
fn refuse_displaced(dir: &Path) -> Result<(), SourceError> {
    let superproject = git(dir, &["rev-parse", "--show-superproject-working-tree"])?;
    if !superproject.trim_ascii().is_empty() {
        return Err(SourceError::Displaced {
            message: "the policy directory is a submodule, so its revisions are not those of the repository around it"
                .into(),
            help: "keep policy in the repository itself, or compare with a directory that holds the old version".into(),
        });
    }
    let full = std::path::absolute(dir).unwrap_or_else(|_| dir.to_owned());
    for path in full.ancestors() {
        let link = std::fs::symlink_metadata(path).is_ok_and(|meta| meta.file_type().is_symlink());
        let Some(parent) = path.parent().filter(|_| link) else { continue };
        if git(parent, &["rev-parse", "--show-toplevel"]).is_ok() {
            return Err(SourceError::Displaced {
                message: format!(
                    "`{}` is a link inside the repository, so its past is that of another directory",
                    path.display()
                ),
                help: "replace the link by the directory itself".into(),
            });
        }
    }
    Ok(())
}

/// Runs one read-only plumbing command and returns its standard output.
pub(super) fn git(dir: &Path, args: &[&str]) -> Result<Vec<u8>, SourceError> {
    git_with_warnings(dir, args).map(|(stdout, _)| stdout)
}

/// `git` in `dir`, set up so that it reads and starts nothing.
pub(super) fn command(dir: &Path) -> Command {
    let mut command = Command::new("git");
    command
        // Ownership matters to git because of what a repository's configuration can start;
        // these commands start nothing. Wildcards are honoured only from the command line.
        // A bare repository among the policy files is not the repository that they are in.
        .args(["-c", "safe.directory=*", "-c", "safe.bareRepository=explicit"])
        .args(["-c", "core.fsmonitor=false", "-c", "core.warnAmbiguousRefs=true", "-C"])
        .arg(dir)
        .env_remove("GIT_DIR")
        .env_remove("GIT_WORK_TREE")
        .env_remove("GIT_INDEX_FILE")
        .env("GIT_NO_REPLACE_OBJECTS", "1")
        .env("GIT_NO_LAZY_FETCH", "1")
        .env("GIT_OPTIONAL_LOCKS", "0")
        .env("GIT_TERMINAL_PROMPT", "0")
        .env("LC_ALL", "C")
        .stdin(Stdio::null());
    command
}

pub(super) fn cannot_start(error: &std::io::Error) -> SourceError {
    SourceError::Git {
        message: format!("cannot start `git`: {error}"),
        help: "install git, or compare directories instead of revisions".into(),
    }
}

/// The same, with what it said on standard error.
fn git_with_warnings(dir: &Path, args: &[&str]) -> Result<(Vec<u8>, String), SourceError> {
    git_with_input(dir, args, Stdio::null())
}

/// The same, with something on standard input.
fn git_with_input(dir: &Path, args: &[&str], input: Stdio) -> Result<(Vec<u8>, String), SourceError> {
    let output = command(dir).args(args).stdin(input).output().map_err(|error| cannot_start(&error))?;
    if output.status.success() {
        return Ok((output.stdout, String::from_utf8_lossy(&output.stderr).into_owned()));
    }
    let message = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(SourceError::Git {
        message: if message.is_empty() {
            format!("`git {}` ended with {}", args.first().unwrap_or(&""), output.status)
        } else {
            message
        },
        help: "run polctl where the repository and its history can be read".into(),
    })
}
