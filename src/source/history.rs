//! The commits of a range, and the policy directory as it stood at each.
//!
//! The line is that of first parents: what `git log --first-parent` shows. A merge stands for
//! all that it brought. Nothing is interpreted here.

use std::path::Path;
use std::rc::Rc;

use super::git::{GitTree, git, no_revision};
use super::objects::{Entry, Object, Objects};
use super::tree::{SourceError, Tree, is_plain_relative};

/// Most commits of one range.
pub const MAX_COMMITS: usize = 20_000;
/// Characters of an id that are shown.
const SHORT: usize = 10;

/// A commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Commit {
    /// Its full id.
    pub id: String,
    /// The id of its first parent; `None` for the first commit of the repository.
    pub parent: Option<String>,
    /// When it was committed, in seconds since 1970.
    pub time: i64,
    /// The author's name, as the commit says it.
    pub author: String,
    /// The first line of its message.
    pub subject: String,
}

impl Commit {
    /// The id as it is shown.
    pub fn short(&self) -> &str {
        short(&self.id)
    }
}

fn short(id: &str) -> &str {
    id.get(..SHORT).unwrap_or(id)
}

/// A range of commits of the repository that holds a policy directory.
#[derive(Debug)]
pub struct History {
    objects: Rc<Objects>,
    /// Directories from the root of the repository to the policy directory.
    prefix: Vec<String>,
    commits: Vec<Commit>,
}

impl History {
    /// The range `A..B` for the policy directory `dir`; without `B` up to `HEAD`.
    ///
    /// # Errors
    ///
    /// [`SourceError`]: no such range, no git, or a history that is cut off in between.
    pub fn open(dir: &Path, range: &str) -> Result<Self, SourceError> {
        let malformed = || SourceError::NoRevision {
            revision: range.into(),
            help: "give two revisions: `--range v1.0..HEAD`, or `--range v1.0..` up to now".into(),
        };
        let (from, to) = range.split_once("..").ok_or_else(malformed)?;
        if from.is_empty() || to.starts_with('.') || to.contains("..") {
            return Err(malformed());
        }
        let from = GitTree::open(dir, from)?;
        let to = GitTree::open(dir, if to.is_empty() { "HEAD" } else { to })?;
        let commits = commits(dir, from.commit(), to.commit())?;
        let prefix = to.prefix().split('/').filter(|s| !s.is_empty()).map(str::to_owned).collect();
        Ok(History { objects: Rc::new(Objects::open(dir)?), prefix, commits })
    }

    /// The commits, the oldest first.
    pub fn commits(&self) -> &[Commit] {
        &self.commits
    }

    /// The policy directory at a commit.
    pub fn tree(&self, id: &str) -> CommitTree {
        CommitTree { objects: Rc::clone(&self.objects), prefix: self.prefix.clone(), commit: id.to_owned() }
    }
}

/// The first parents from `to` back to what `from` has, oldest first.
fn commits(dir: &Path, from: &str, to: &str) -> Result<Vec<Commit>, SourceError> {
    let most = format!("--max-count={}", MAX_COMMITS + 1);
    let exclude = format!("^{from}");
    let format = "--format=%H%x00%P%x00%ct%x00%an%x00%s";
    let args = ["rev-list", "--first-parent", "--no-commit-header", "--encoding=UTF-8", &most, format, to, &exclude];
    let out = git(dir, &args)?;
    let text = String::from_utf8_lossy(&out);
    let mut commits: Vec<Commit> = text.lines().filter_map(commit).collect();
    if commits.len() > MAX_COMMITS {
        return Err(SourceError::Git {
            message: format!("the range holds more than {MAX_COMMITS} commits"),
            help: "give a shorter one".into(),
        });
    }
    commits.reverse();
    // In a shallow clone the line may end where the history was cut, and look like a beginning.
    let begins = commits.first().is_some_and(|first| first.parent.is_none());
    if begins && git(dir, &["rev-parse", "--is-shallow-repository"])?.starts_with(b"true") {
        return Err(no_revision(dir, from));
    }
    Ok(commits)
}

fn commit(line: &str) -> Option<Commit> {
    let mut fields = line.split('\0').map(str::to_owned);
    let (id, parents, time) = (fields.next()?, fields.next()?, fields.next()?);
    Some(Commit {
        id,
        parent: parents.split(' ').next().filter(|id| !id.is_empty()).map(str::to_owned),
        time: time.parse().ok()?,
        author: fields.next()?,
        subject: fields.next()?,
    })
}

/// The policy directory at one commit.
#[derive(Clone, Debug)]
pub struct CommitTree {
    objects: Rc<Objects>,
    prefix: Vec<String>,
    commit: String,
}

impl CommitTree {
    /// Whether the policy directory exists at this commit.
    ///
    /// # Errors
    ///
    /// [`SourceError::Git`]: the repository cannot be read.
    pub fn exists(&self) -> Result<bool, SourceError> {
        Ok(self.directory(&[])?.is_some())
    }

    /// What reading this file gives, without reading it: equal stamps, equal bytes.
    ///
    /// # Errors
    ///
    /// As [`Tree::read`], but a missing file has a stamp as well.
    pub fn stamp(&self, path: &str) -> Result<String, SourceError> {
        Ok(self.entry(path)?.map_or_else(|| "absent".to_owned(), |entry| format!("{} {}", entry.mode, entry.id)))
    }

    /// The entries of a directory below the policy directory; `None` where there is none.
    fn directory(&self, below: &[&str]) -> Result<Option<Rc<Object>>, SourceError> {
        let mut at = self.objects.get(&format!("{}^{{tree}}", self.commit))?;
        for name in self.prefix.iter().map(String::as_str).chain(below.iter().copied()) {
            let Some(entry) = find(&at, name).filter(|entry| entry.mode == "40000") else { return Ok(None) };
            at = self.objects.get(&entry.id)?;
        }
        Ok(Some(at))
    }

    fn entry(&self, path: &str) -> Result<Option<Entry>, SourceError> {
        if !is_plain_relative(path) {
            return Err(SourceError::Escapes { path: path.into() });
        }
        let steps: Vec<&str> = path.split('/').collect();
        let Some((name, dirs)) = steps.split_last() else { return Ok(None) };
        Ok(self.directory(dirs)?.and_then(|at| find(&at, name)))
    }
}

fn find(object: &Object, name: &str) -> Option<Entry> {
    match object {
        Object::Tree(entries) => entries.iter().find(|entry| entry.name == name).cloned(),
        _ => None,
    }
}

impl Tree for CommitTree {
    fn label(&self) -> String {
        format!("commit `{}`", short(&self.commit))
    }

    fn origin(&self) -> Option<String> {
        Some(short(&self.commit).to_owned())
    }

    fn read(&self, path: &str) -> Result<Vec<u8>, SourceError> {
        let Some(entry) = self.entry(path)? else {
            return Err(SourceError::NotFound { path: path.into(), tree: self.label() });
        };
        if !entry.mode.starts_with("100") {
            return Err(SourceError::NotRegular { path: path.into(), tree: self.label() });
        }
        match &*self.objects.get(&entry.id)? {
            Object::Blob(bytes) => Ok(bytes.clone()),
            Object::TooLarge => Err(SourceError::TooLarge { path: path.into(), tree: self.label() }),
            Object::Tree(_) => Err(SourceError::NotRegular { path: path.into(), tree: self.label() }),
        }
    }

    fn list(&self, dir: &str) -> Result<Vec<String>, SourceError> {
        if !dir.is_empty() && !is_plain_relative(dir) {
            return Err(SourceError::Escapes { path: dir.into() });
        }
        let steps: Vec<&str> = dir.split('/').filter(|step| !step.is_empty()).collect();
        let at = self.directory(&steps)?;
        let mut names: Vec<String> = match at.as_deref() {
            Some(Object::Tree(entries)) => entries.iter().map(|entry| entry.name.clone()).collect(),
            _ => Vec::new(),
        };
        names.sort();
        Ok(names)
    }
}
