//! Writing a file so that it is the old one or the new one at any moment, power loss included.
//!
//! A temporary file beside the target is written and synced, renamed over it, and the
//! directory is synced. Each step is announced to [`Steps`] before it is taken; tests end
//! the process there. It is a type parameter of the library and no setting: nobody can make
//! an installed polctl stop half-way.

use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use super::error::{WriteError, shown};

/// Random characters at the end of a temporary file's name.
pub(super) const RANDOM_BYTES: usize = 16;

/// The beginning of a temporary file's name.
pub(super) fn temporary_prefix(name: &str) -> String {
    format!(".{name}.tmp-")
}

/// What is about to happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The temporary file is made.
    Create,
    /// The first half is written.
    WriteFirst,
    /// The rest is written.
    WriteRest,
    /// The file is synced.
    SyncFile,
    /// It takes the target's place.
    Rename,
    /// The directory is synced.
    SyncDirectory,
    /// All is done.
    Done,
}

/// Somebody who is told before each step and may fail it.
pub trait Steps {
    /// Called before `step`.
    ///
    /// # Errors
    ///
    /// The step then fails with this error.
    fn before(&mut self, step: Step) -> std::io::Result<()>;
}

/// Nobody: every step is taken.
#[derive(Clone, Copy, Debug, Default)]
pub struct Straight;

impl Steps for Straight {
    fn before(&mut self, _: Step) -> std::io::Result<()> {
        Ok(())
    }
}

/// Who may read a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Everyone whom the process' mask allows.
    Shared,
    /// Everyone may read it, its owner alone may write it, as far as the mask allows.
    Owned,
    /// The owner alone.
    Private,
}

/// What to do with a target that exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    /// Take its place.
    Replace,
    /// Fail.
    Keep,
}

/// Writes `bytes` to `path`.
///
/// # Errors
///
/// [`WriteError`]: the target is then as it was before.
pub fn write_file(
    path: &Path,
    bytes: &[u8],
    access: Access,
    existing: Existing,
    steps: &mut dyn Steps,
) -> Result<(), WriteError> {
    let target = || WriteError::Target { path: shown(&path.to_string_lossy()) };
    let meta = std::fs::symlink_metadata(path).ok();
    if meta.is_some_and(|meta| !meta.is_file() || existing == Existing::Keep) {
        return Err(target());
    }
    match replace(path, bytes, access, existing, steps) {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Err(target()),
        Err(source) => Err(WriteError::Failed { path: shown(&path.to_string_lossy()), source }),
        Ok(()) => Ok(()),
    }
}

fn replace(
    path: &Path,
    bytes: &[u8],
    access: Access,
    existing: Existing,
    steps: &mut dyn Steps,
) -> std::io::Result<()> {
    let invalid = || std::io::Error::from(std::io::ErrorKind::InvalidInput);
    let name = path.file_name().and_then(|name| name.to_str()).ok_or_else(invalid)?;
    let dir = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mode = match access {
        Access::Shared => 0o666,
        Access::Owned => 0o644,
        Access::Private => 0o600,
    };
    steps.before(Step::Create)?;
    let mut file = tempfile::Builder::new()
        .prefix(&temporary_prefix(name))
        .rand_bytes(RANDOM_BYTES)
        .permissions(std::fs::Permissions::from_mode(mode))
        .tempfile_in(dir)?;
    let (first, rest) = bytes.split_at(bytes.len() / 2);
    steps.before(Step::WriteFirst)?;
    file.write_all(first)?;
    steps.before(Step::WriteRest)?;
    file.write_all(rest)?;
    steps.before(Step::SyncFile)?;
    file.as_file().sync_all()?;
    steps.before(Step::Rename)?;
    match existing {
        Existing::Replace => file.persist(path).map_err(|e| e.error)?,
        Existing::Keep => file.persist_noclobber(path).map_err(|e| e.error)?,
    };
    steps.before(Step::SyncDirectory)?;
    std::fs::File::open(dir)?.sync_all()?;
    steps.before(Step::Done)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct FailAt(Step);

    impl Steps for FailAt {
        fn before(&mut self, step: Step) -> std::io::Result<()> {
            if step == self.0 { Err(std::io::Error::other("stop")) } else { Ok(()) }
        }
    }

    fn names(dir: &Path) -> Vec<String> {
        std::fs::read_dir(dir).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn a_failure_at_any_step_leaves_the_old_or_the_new_file_and_nothing_else() {
        for step in [Step::Create, Step::WriteFirst, Step::WriteRest, Step::SyncFile, Step::Rename, Step::SyncDirectory]
        {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("f");
            std::fs::write(&path, "old").unwrap();
            let result = write_file(&path, b"new", Access::Shared, Existing::Replace, &mut FailAt(step));
            assert!(matches!(result, Err(WriteError::Failed { .. })), "{step:?}");
            let expected = if step == Step::SyncDirectory { "new" } else { "old" };
            assert_eq!(std::fs::read_to_string(&path).unwrap(), expected, "{step:?}");
            assert_eq!(names(dir.path()), ["f"], "{step:?}");
        }
    }

    #[test]
    fn the_old_file_is_replaced_and_not_written_into() {
        use std::io::Read as _;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        std::fs::write(&path, "old").unwrap();
        let mut old = std::fs::File::open(&path).unwrap();
        write_file(&path, b"new", Access::Shared, Existing::Replace, &mut Straight).unwrap();
        let mut text = String::new();
        old.read_to_string(&mut text).unwrap();
        assert_eq!((text.as_str(), std::fs::read_to_string(&path).unwrap().as_str()), ("old", "new"));
    }

    #[test]
    fn what_must_stay_stays_and_links_are_not_written_through() {
        let dir = tempfile::tempdir().unwrap();
        let (path, link) = (dir.path().join("f"), dir.path().join("l"));
        std::fs::write(&path, "old").unwrap();
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert!(write_file(&path, b"new", Access::Private, Existing::Keep, &mut Straight).is_err());
        assert!(write_file(&link, b"new", Access::Shared, Existing::Replace, &mut Straight).is_err());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "old");
        let private = dir.path().join("p");
        write_file(&private, b"k", Access::Private, Existing::Keep, &mut Straight).unwrap();
        assert_eq!(std::fs::metadata(&private).unwrap().permissions().mode() & 0o777, 0o600);
    }
}
