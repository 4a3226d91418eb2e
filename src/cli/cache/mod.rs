//! Verdicts that were computed before, by the digest of everything that went into them.
//!
//! An entry answers one question: these two versions, byte by byte and name by name, asked by
//! this executable. On the way to it every file is read and hashed; what is saved is reading
//! it as policy and the comparison. Only conclusive answers are kept. What is damaged, foreign
//! or about anything else is computed anew, in silence; where the directory cannot be used at
//! all, one line says so.
//!
//! Whoever can write the directory can decide what an entry says, digest and all. So it is
//! believed only where nobody else can write, it never lies in the repository that is judged,
//! it is off in CI unless asked for, and signing and approving do not know it.

mod entry;
mod recorded;
mod store;

use std::io::Read as _;
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use super::args::CacheArgs;
use super::outcome::Outcome;
use super::output;
use super::session::{Failure, variable};
use crate::diag::{Kind, info};
use crate::model::FACTS_VERSION;
use crate::parse::CONFIG_NAME;
use crate::sign::Digest;
use crate::source::{MAX_FILES, Tree};
use recorded::{Op, Recorded, Recording};
use store::Store;

/// Version of entries and keys.
const FORMAT: &str = "polctl cache 1";
/// Least bytes of both versions together for which a cache is worth it: hashing the
/// executable takes as long as judging less (docs/output.md has the figures).
const LEAST_BYTES: usize = 128 * 1024;
/// Most reads that are tried before anything is known: two versions of a set.
const MAX_READS: usize = 4 * MAX_FILES;

/// What is asked, apart from the two versions.
pub(super) struct Question {
    /// `check` or `diff`.
    pub(super) command: &'static str,
    /// What decides, with its version where it has one of its own.
    pub(super) engine: String,
    /// Whether `policy_id` is part of the answer.
    pub(super) policy_ids: bool,
}

/// The answer to a question about the versions `new` and `old`: out of the cache, or computed
/// and kept. `places`: the directories and revisions that were named; the cache must not lie in
/// the same repository.
pub(super) fn through(
    args: &CacheArgs,
    question: &Question,
    places: &[&Path],
    (new, old): (&dyn Tree, &dyn Tree),
    compute: impl FnOnce(&dyn Tree, &dyn Tree) -> Result<Outcome, Failure>,
) -> Result<Outcome, Failure> {
    let Some(dir) = directory(args)? else { return compute(new, old) };
    let recording = Recording::new(new, old);
    let directories: Vec<&Path> = places.iter().copied().filter(|place| place.is_dir()).collect();
    let store = match Store::open(&dir, &directories) {
        Ok(store) => store,
        Err(reason) => {
            unused(&dir, &reason);
            return compute(new, old);
        }
    };
    let Some(hint) = hint(question, &recording) else { return compute(new, old) };
    if let Some(outcome) = known(&store, &hint, question, &recording) {
        return Ok(outcome);
    }
    let outcome = compute(&Recorded::new(&recording, 0), &Recorded::new(&recording, 1))?;
    if let Err(reason) = keep(&store, &hint, question, &recording, &outcome) {
        unused(&dir, &reason);
    }
    Ok(outcome)
}

fn unused(dir: &Path, reason: &str) {
    output::notice(&format!("polctl: the cache `{}` is not used: {reason}", dir.display()));
}

/// Where the cache is; `None`: there is none.
fn directory(args: &CacheArgs) -> Result<Option<PathBuf>, Failure> {
    let in_ci = variable("CI")?.is_some_and(|value| value != "false" && value != "0");
    if args.no_cache || in_ci && !args.cache {
        return Ok(None);
    }
    if let Some(dir) = variable("POLCTL_CACHE_DIR")? {
        return Ok(Some(PathBuf::from(dir)));
    }
    // The base directory specification: a relative path is to be ignored.
    let absolute = |name: &str| Ok::<_, Failure>(variable(name)?.map(PathBuf::from).filter(|path| path.is_absolute()));
    if let Some(dir) = absolute("XDG_CACHE_HOME")? {
        return Ok(Some(dir.join("polctl")));
    }
    Ok(absolute("HOME")?.map(|home| home.join(".cache/polctl")))
}

/// SHA-256 over parts, each with its length in front.
fn key<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> Digest {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    let text: String = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    Digest::parse(&text).unwrap_or_else(|| Digest::of(text.as_bytes()))
}

/// Names the entry that says which files a set with these two configurations was read from.
/// It only says what to read; the verdict's key covers what was found there.
fn hint(question: &Question, recording: &Recording<'_>) -> Option<Digest> {
    let configuration = Op { side: 0, list: false, path: CONFIG_NAME.to_owned() };
    let base = Op { side: 1, ..configuration.clone() };
    let (new, old) = (recording.perform(&configuration)?, recording.perform(&base)?);
    let [new_label, old_label] = recording.labels();
    Some(key([
        FORMAT.as_bytes(),
        b"reads",
        question.command.as_bytes(),
        new_label.as_bytes(),
        old_label.as_bytes(),
        new.as_bytes(),
        old.as_bytes(),
    ]))
}

/// Names the verdict: the executable, the question, and every read with its result.
fn verdict(question: &Question, recording: &Recording<'_>, reads: &[Op]) -> Option<Digest> {
    let identity = identity()?;
    let facts = FACTS_VERSION.to_string();
    let mut parts: Vec<Vec<u8>> = [
        FORMAT,
        "verdict",
        // The program table is compiled in, so the executable's digest is about it as well.
        env!("CARGO_PKG_VERSION"),
        &facts,
        question.engine.as_str(),
        question.command,
        if question.policy_ids { "with ids" } else { "without ids" },
    ]
    .map(|part| part.as_bytes().to_vec())
    .to_vec();
    parts.push(identity.as_bytes().to_vec());
    parts.extend(recording.labels().map(String::into_bytes));
    for side in [0, 1] {
        // Migrations may be thousands; a revision gives them at once.
        let migrations = reads.iter().filter(|op| op.side == side && op.path.ends_with(".sql"));
        recording.prefetch(side, &migrations.map(|op| op.path.clone()).collect::<Vec<_>>());
    }
    for op in reads {
        parts.push(vec![op.side, u8::from(op.list)]);
        parts.push(op.path.clone().into_bytes());
        parts.push(recording.perform(op)?.as_bytes().to_vec());
    }
    Some(key(parts.iter().map(Vec::as_slice)))
}

/// SHA-256 of the running executable: a polctl that was built anew from changed sources has the
/// same version and may have another verdict.
fn identity() -> Option<Digest> {
    // The file that runs, even if another one has taken its place since.
    let own = Path::new("/proc/self/exe");
    let mut file = std::fs::File::open(own).or_else(|_| std::fs::File::open(std::env::current_exe()?)).ok()?;
    let (mut hash, mut buffer) = (Sha256::new(), vec![0; 1 << 18]);
    loop {
        match file.read(&mut buffer).ok()? {
            0 => break,
            n => hash.update(buffer.get(..n)?),
        }
    }
    let text: String = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    Digest::parse(&text)
}

fn name(digest: &Digest, kind: &str) -> String {
    format!("{digest}.{kind}")
}

/// The answer, if it is there and whole.
fn known(store: &Store, hint: &Digest, question: &Question, recording: &Recording<'_>) -> Option<Outcome> {
    let reads = entry::reads(&store.read(&name(hint, "reads"))?, hint)?;
    if reads.len() > MAX_READS {
        return None;
    }
    let key = verdict(question, recording, &reads)?;
    entry::outcome(&store.read(&name(&key, "verdict"))?, &key, recording)
}

/// Keeps an answer that is conclusive and worth it.
fn keep(
    store: &Store,
    hint: &Digest,
    question: &Question,
    recording: &Recording<'_>,
    outcome: &Outcome,
) -> Result<(), String> {
    let conclusive = outcome.findings.iter().all(|f| info(f.code).kind == Kind::Policy);
    // Where one version could not be compiled there is no verdict to keep.
    if !conclusive || outcome.rules.is_none() || recording.bytes() < LEAST_BYTES {
        return Ok(());
    }
    let Some(reads) = recording.asked() else { return Ok(()) };
    let Some(key) = verdict(question, recording, &reads) else { return Ok(()) };
    let Some(bytes) = entry::of_outcome(outcome, &key, recording) else { return Ok(()) };
    store.write(&name(&key, "verdict"), &bytes)?;
    store.write(&name(hint, "reads"), &entry::of_reads(&reads, hint))?;
    store.prune();
    Ok(())
}
