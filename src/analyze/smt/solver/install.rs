//! `polctl solver install`: the pinned libraries into polctl's cache directory.
//!
//! Owns the way from the package to the cache. Nothing is written that does not have its
//! pinned digest, and the directory appears whole or not at all. pip does the fetching, so
//! that its settings (index, proxy, certificates) count and polctl needs none of its own.

use std::ffi::OsStr;
use std::fs::{DirBuilder, File};
use std::io::{self, Read as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use tokio::time::Duration;

use super::library::library_dir;
use super::pins::{LIBRARY_VERSION, MACHINE, MAX_LIBRARY, OS, Wheel, hex};
use super::{places, short};

/// Largest package, in bytes.
const MAX_WHEEL: u64 = 64 << 20;
/// How long pip may take.
const PIP_TIME: Duration = Duration::from_mins(10);
/// How much of pip's output is read, in bytes.
const PIP_BYTES: u64 = 1 << 20;

/// Why the libraries are not installed. Nothing was changed.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
#[non_exhaustive]
pub enum InstallError {
    /// There is no package for this system.
    #[error("there is no pinned cvc5 package for {OS} on {MACHINE}")]
    #[diagnostic(help("install cvc5 from your system's packages, or name one with `--solver PATH`"))]
    NoWheel,
    /// There is no Python.
    #[error("python3 is not on PATH")]
    #[diagnostic(help(
        "install Python 3 with pip (Debian: python3-pip), or fetch the package cvc5 {LIBRARY_VERSION} yourself and give `--wheel FILE`"
    ))]
    NoPython,
    /// pip failed.
    #[error("pip could not fetch cvc5 {LIBRARY_VERSION}: {said}")]
    #[diagnostic(help("give pip access to a package index, or fetch the package elsewhere and give `--wheel FILE`"))]
    Pip {
        /// The end of what pip said.
        said: String,
    },
    /// The package is another one.
    #[error("`{file}` is not the pinned package: its SHA-256 is {found}")]
    #[diagnostic(help("fetch the package cvc5 {LIBRARY_VERSION} for `cp311` and `{tag}`; its SHA-256 is {expected}"))]
    Digest {
        /// The file.
        file: PathBuf,
        /// Its digest.
        found: String,
        /// The pinned digest.
        expected: &'static str,
        /// The platform.
        tag: &'static str,
    },
    /// The package does not hold what it should.
    #[error("the package does not hold the library `{name}` as pinned")]
    #[diagnostic(help("this is a defect of polctl's table; report it"))]
    Content {
        /// The library.
        name: &'static str,
    },
    /// A file cannot be read or written.
    #[error("`{path}` cannot be read or written")]
    #[diagnostic(help("check the path and its permissions"))]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
}

fn at(path: &Path) -> impl FnOnce(io::Error) -> InstallError {
    let path = path.to_owned();
    move |source| InstallError::File { path, source }
}

/// Puts the libraries into the cache, from a package or with pip on `path`. The directory, and
/// whether it was there already.
///
/// # Errors
///
/// [`InstallError`]; the cache is as it was.
pub fn install(wheel: Option<&Path>, cache: &Path, path: Option<&OsStr>) -> Result<(PathBuf, bool), InstallError> {
    let pinned = Wheel::here().ok_or(InstallError::NoWheel)?;
    let target = library_dir(cache);
    if pinned.check(&target).is_ok() {
        return Ok((target, true));
    }
    let parent = cache.join("solver");
    // For this user alone: what stands here is executed.
    DirBuilder::new().recursive(true).mode(0o700).create(&parent).map_err(at(&parent))?;
    let work = tempfile::Builder::new().prefix(".new-").tempdir_in(&parent).map_err(at(&parent))?;
    let file = match wheel {
        Some(file) => file.to_owned(),
        None => fetched(pinned, work.path(), path)?,
    };
    let fresh = work.path().join("libraries");
    DirBuilder::new().mode(0o700).create(&fresh).map_err(at(&fresh))?;
    unpack(pinned, &file, &fresh)?;
    publish(pinned, &fresh, &target, work.path())?;
    Ok((target, false))
}

/// Moves the directory to its place. Where another one got there first, that one must be good.
fn publish(pinned: &Wheel, fresh: &Path, target: &Path, work: &Path) -> Result<(), InstallError> {
    if std::fs::rename(fresh, target).is_ok() {
        return Ok(());
    }
    if pinned.check(target).is_err() {
        std::fs::rename(target, work.join("damaged")).map_err(at(target))?;
        // Between the two, somebody else may have put a good one.
        let moved = std::fs::rename(fresh, target);
        if pinned.check(target).is_err() {
            moved.map_err(at(target))?;
        }
    }
    Ok(())
}

/// Fetches the package with pip, which checks its digest too.
fn fetched(pinned: &Wheel, work: &Path, path: Option<&OsStr>) -> Result<PathBuf, InstallError> {
    let python = places::on_path(path, "python3").ok_or(InstallError::NoPython)?;
    let list = work.join("requirements.txt");
    std::fs::write(&list, format!("cvc5=={LIBRARY_VERSION} --hash=sha256:{}\n", pinned.digest)).map_err(at(&list))?;
    let mut command = Command::new(python);
    // Python looks for modules in the current directory, so that is one of ours.
    command.current_dir(work).args(["-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-input"]);
    command.args(["--no-deps", "--only-binary", ":all:", "--require-hashes", "--implementation", "cp"]);
    command.args(["--python-version", "3.11", "--abi", "cp311", "--platform", pinned.tag, "--dest", "."]);
    command.args(["--requirement", "requirements.txt"]);
    let ran = short::output(&mut command, "`pip download`", PIP_TIME, PIP_BYTES);
    let said = match ran {
        Ok(output) if output.success => None,
        Ok(output) => Some(output.stderr),
        Err(error) => Some(error.to_string()),
    };
    if let Some(said) = said {
        return Err(InstallError::Pip { said });
    }
    let files = std::fs::read_dir(work).map_err(at(work))?.filter_map(Result::ok).map(|entry| entry.path());
    let mut wheels = files.filter(|file| file.extension().is_some_and(|e| e == "whl"));
    wheels.next().ok_or_else(|| InstallError::Pip { said: "it left no package".into() })
}

/// Writes the libraries of a package, all of them with their pinned digests.
fn unpack(pinned: &Wheel, file: &Path, into: &Path) -> Result<(), InstallError> {
    let mut bytes = Vec::new();
    File::open(file).and_then(|f| f.take(MAX_WHEEL).read_to_end(&mut bytes)).map_err(at(file))?;
    let found = hex(&bytes);
    if found != pinned.digest {
        return Err(InstallError::Digest { file: file.to_owned(), found, expected: pinned.digest, tag: pinned.tag });
    }
    for (name, digest) in pinned.libraries {
        let content = inflated(&bytes, &format!("{}/{name}", pinned.folder));
        let content = content.filter(|content| hex(content) == digest).ok_or(InstallError::Content { name })?;
        let path = into.join(name);
        std::fs::write(&path, content).map_err(at(&path))?;
    }
    Ok(())
}

/// One file of a package.
fn inflated(bytes: &[u8], name: &str) -> Option<Vec<u8>> {
    let archive = rawzip::ZipArchive::from_slice(bytes).ok()?;
    let mut entries = archive.entries();
    while let Some(entry) = entries.next_entry().ok()? {
        if entry.file_path().as_ref() == name.as_bytes() {
            let data = archive.get_entry(entry.wayfinder()).ok()?;
            let mut content = Vec::new();
            flate2::bufread::DeflateDecoder::new(data.data()).take(MAX_LIBRARY).read_to_end(&mut content).ok()?;
            return Some(content);
        }
    }
    None
}
