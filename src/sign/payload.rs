//! What is signed about a policy set.

use serde::Serialize;

use super::digest::Digest;
use super::envelope::to_json;
use super::error::{Document, Malformed, NameError, SignError, VerifyError};
use super::json::{self, At, Fields};
use super::names::{check_name, fold, is_set_name};
use super::time::Timestamp;

/// Largest payload that is read, in bytes.
pub const MAX_PAYLOAD_BYTES: usize = 512 * 1024;
/// Most files in one payload.
pub const MAX_FILES: usize = 1024;

/// The verdict of the check against the base version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "verdict", rename_all = "kebab-case")]
pub enum Base {
    /// First adoption: there was no base.
    Initial,
    /// Nothing is newly permitted against the base.
    NoWidening {
        /// The base.
        policy_id: Digest,
    },
    /// What is newly permitted was approved.
    Approved {
        /// The base.
        policy_id: Digest,
        /// SHA-256 of the payload of each approval, ascending.
        approvals: Vec<Digest>,
    },
}

/// One file of a policy set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FileEntry {
    /// Relative to the policy directory, with `/`.
    pub name: String,
    /// In bytes.
    pub size: u64,
    /// Of its bytes.
    pub sha256: Digest,
}

impl FileEntry {
    /// The entry for a file with these bytes.
    pub fn of(name: &str, bytes: &[u8]) -> Self {
        FileEntry { name: name.to_owned(), size: bytes.len() as u64, sha256: Digest::of(bytes) }
    }
}

/// The payload of a signed policy set (DESIGN 7).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PolicySet {
    /// Name of the set, as in `polctl.yaml`.
    pub set: String,
    /// Grows with each signed version of the set.
    pub sequence: u64,
    /// SHA-256 of the compiled set (DESIGN 5).
    pub policy_id: Digest,
    /// When it was signed.
    pub issued: Timestamp,
    /// From when on it is refused.
    pub expires: Timestamp,
    /// Version of the polctl that checked it.
    pub polctl: String,
    /// The version it was compared with, and the verdict.
    pub base: Base,
    /// Every file, ascending by name (bytes).
    pub files: Vec<FileEntry>,
}

const KEYS: &[&str] = &["set", "sequence", "policy_id", "issued", "expires", "polctl", "base", "files"];

impl PolicySet {
    /// The payload's bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        to_json(self)
    }

    /// Reads a payload whose signatures were verified.
    ///
    /// # Errors
    ///
    /// [`SignError`] with a code `payload-…` for what is not the format, `file-name-…` for a
    /// name that is not allowed.
    pub fn parse(bytes: &[u8]) -> Result<Self, SignError> {
        let document = Document::Payload;
        let json = json::parse(document, bytes, MAX_PAYLOAD_BYTES)?;
        let fields = At::root(document, &json).fields("", KEYS)?;
        let mut files = Vec::new();
        for (path, item) in fields.list("files", MAX_FILES)? {
            let item = item.fields(&path, &["name", "size", "sha256"])?;
            files.push(FileEntry {
                name: item.text("name")?.to_owned(),
                size: item.number("size")?,
                sha256: digest(&item, "sha256")?,
            });
        }
        let payload = PolicySet {
            set: set_name(&fields)?,
            sequence: fields.number("sequence")?,
            policy_id: digest(&fields, "policy_id")?,
            issued: time(&fields, "issued")?,
            expires: time(&fields, "expires")?,
            polctl: version(&fields)?,
            base: base(&fields)?,
            files,
        };
        check_times(payload.issued, payload.expires)?;
        check_names(&payload.files)?;
        Ok(payload)
    }
}

pub(super) fn set_name(fields: &Fields<'_>) -> Result<String, Malformed> {
    fields.parsed("set", "the name of a policy set", |text| is_set_name(text).then(|| text.to_owned()))
}

pub(super) fn digest(fields: &Fields<'_>, name: &str) -> Result<Digest, Malformed> {
    fields.parsed(name, "a SHA-256 value in lower-case hexadecimal digits", Digest::parse)
}

pub(super) fn time(fields: &Fields<'_>, name: &str) -> Result<Timestamp, Malformed> {
    fields.parsed(name, "a time like `2026-03-01T12:00:00Z`", Timestamp::parse)
}

pub(super) fn version(fields: &Fields<'_>) -> Result<String, Malformed> {
    fields.parsed("polctl", "a version", |text| {
        let good = !text.is_empty() && text.len() <= 64 && text.bytes().all(|b| b.is_ascii_graphic());
        good.then(|| text.to_owned())
    })
}

pub(super) fn check_times(issued: Timestamp, expires: Timestamp) -> Result<(), VerifyError> {
    if issued >= expires {
        return Err(VerifyError::Times { issued, expires });
    }
    Ok(())
}

fn base(fields: &Fields<'_>) -> Result<Base, Malformed> {
    let known = &["verdict", "policy_id", "approvals"];
    let base = fields.object("base", known)?;
    // Each verdict has its own keys, and no others.
    match base.text("verdict")? {
        "initial" => {
            fields.object("base", &["verdict"])?;
            Ok(Base::Initial)
        }
        "no-widening" => {
            let base = fields.object("base", &["verdict", "policy_id"])?;
            Ok(Base::NoWidening { policy_id: digest(&base, "policy_id")? })
        }
        "approved" => {
            let approvals = base.list("approvals", MAX_FILES)?.into_iter();
            let expected = "a SHA-256 value in lower-case hexadecimal digits";
            let approvals: Vec<Digest> = approvals
                .map(|(path, item)| Digest::parse(item.text(&path)?).ok_or_else(|| base.bad("approvals", expected)))
                .collect::<Result<_, _>>()?;
            if approvals.is_empty() || !approvals.is_sorted_by(|a, b| a < b) {
                return Err(base.bad("approvals", "a list of distinct approvals in ascending order, at least one"));
            }
            Ok(Base::Approved { policy_id: digest(&base, "policy_id")?, approvals })
        }
        _ => Err(base.bad("verdict", "`initial`, `no-widening` or `approved`")),
    }
}

/// Names are allowed, ascend, and stay apart on file systems that ignore case.
pub(super) fn check_names(files: &[FileEntry]) -> Result<(), NameError> {
    let shown = super::error::shown;
    let mut folded = std::collections::BTreeMap::new();
    let mut last: Option<&str> = None;
    for FileEntry { name, .. } in files {
        check_name(name)?;
        match last.map(|last| last.cmp(name)) {
            Some(std::cmp::Ordering::Equal) => return Err(NameError::Duplicate { name: shown(name) }),
            Some(std::cmp::Ordering::Greater) => return Err(NameError::Order { name: shown(name) }),
            _ => last = Some(name),
        }
        // Directories collide as files do: `A/x` and `a/y` are one directory elsewhere.
        for (at, _) in name.match_indices('/').chain([(name.len(), "")]) {
            let part = name.get(..at).unwrap_or(name);
            let other = folded.entry(fold(part)).or_insert(part);
            if *other != part {
                return Err(NameError::Collision { first: shown(other), second: shown(part) });
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(name: &str) -> FileEntry {
        FileEntry::of(name, b"x")
    }

    fn set(base: Base) -> PolicySet {
        PolicySet {
            set: "fleet".into(),
            sequence: 3,
            policy_id: Digest::of(b"p"),
            issued: Timestamp::parse("2026-01-01T00:00:00Z").unwrap(),
            expires: Timestamp::parse("2026-02-01T00:00:00Z").unwrap(),
            polctl: "0.1.0".into(),
            base,
            files: vec![entry("a.md"), entry("b/c.yaml")],
        }
    }

    #[test]
    fn a_payload_is_read_as_it_was_written() {
        let policy_id = Digest::of(b"old");
        for base in [
            Base::Initial,
            Base::NoWidening { policy_id },
            Base::Approved { policy_id, approvals: vec![Digest::of(b"a")] },
        ] {
            let set = set(base);
            assert_eq!(PolicySet::parse(&set.to_bytes()).unwrap(), set);
        }
    }

    #[test]
    fn a_verdict_has_its_own_keys_only() {
        let bytes = set(Base::Initial).to_bytes();
        let text = String::from_utf8(bytes).unwrap();
        let with = text.replace(
            "\"verdict\": \"initial\"",
            &format!("\"verdict\": \"initial\", \"policy_id\": \"{}\"", Digest::of(b"")),
        );
        assert_eq!(PolicySet::parse(with.as_bytes()).unwrap_err().code_name(), "payload-unknown-field");
        let without = text.replace("\"initial\"", "\"no-widening\"");
        assert_eq!(PolicySet::parse(without.as_bytes()).unwrap_err().code_name(), "payload-missing-field");
    }

    #[test]
    fn directories_collide_as_files_do() {
        assert!(check_names(&[entry("A/x"), entry("a/y")]).is_err());
        assert!(check_names(&[entry("a"), entry("a/y")]).is_ok(), "found when the directory is read");
        assert!(check_names(&[entry("a/x"), entry("a/y")]).is_ok());
    }
}
