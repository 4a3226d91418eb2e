//! Refusals about file names, the policy directory, and writing.

use miette::Diagnostic;
use thiserror::Error;

/// What is wrong with a file name.
#[derive(Debug, Error, Diagnostic)]
#[non_exhaustive]
pub enum NameError {
    /// Empty, too long or too deep.
    #[error("the file name `{name}` is empty, too long or too deep")]
    #[diagnostic(code("file-name-length"), help("at most 1024 bytes in 16 levels"))]
    Length {
        /// Escaped.
        name: String,
    },
    /// Absolute.
    #[error("the file name `{name}` is absolute")]
    #[diagnostic(code("file-name-absolute"), help("names are relative to the policy directory"))]
    Absolute {
        /// Escaped.
        name: String,
    },
    /// It has `..`.
    #[error("the file name `{name}` leaves the policy directory")]
    #[diagnostic(code("file-name-escapes"), help("names are relative to the policy directory, without `..`"))]
    Escapes {
        /// Escaped.
        name: String,
    },
    /// Characters that are refused.
    #[error("the file name `{name}` has a backslash, a colon or a character that cannot be seen")]
    #[diagnostic(code("file-name-characters"), help("rename the file"))]
    Characters {
        /// Escaped.
        name: String,
    },
    /// An empty segment, `.`, or one that ends with a dot or a space.
    #[error("the file name `{name}` has an empty part, `.`, or a part that ends with a dot or a space")]
    #[diagnostic(code("file-name-segment"), help("rename the file"))]
    Segment {
        /// Escaped.
        name: String,
    },
    /// Not in NFC.
    #[error("the file name `{name}` is not in Unicode normal form C")]
    #[diagnostic(
        code("file-name-not-nfc"),
        help("rename the file; some file systems would take it for another one that looks the same")
    )]
    NotNfc {
        /// Escaped.
        name: String,
    },
    /// Two names that some file systems take for one.
    #[error("the file names `{first}` and `{second}` are the same on some file systems")]
    #[diagnostic(code("file-name-collision"), help("rename one of them"))]
    Collision {
        /// Escaped.
        first: String,
        /// Escaped.
        second: String,
    },
    /// A name that stands twice.
    #[error("the file name `{name}` stands twice in the payload")]
    #[diagnostic(code("file-name-duplicate"), help("sign again"))]
    Duplicate {
        /// Escaped.
        name: String,
    },
    /// Names out of order.
    #[error("the file name `{name}` is out of order in the payload")]
    #[diagnostic(code("file-name-order"), help("sign again"))]
    Order {
        /// Escaped.
        name: String,
    },
    /// The envelope lists itself.
    #[error("the payload lists the envelope `{name}` as a policy file")]
    #[diagnostic(code("file-name-envelope"), help("an envelope cannot hold its own digest; sign again"))]
    Envelope {
        /// Escaped.
        name: String,
    },
}

/// What is wrong in the policy directory.
#[derive(Debug, Error, Diagnostic)]
#[non_exhaustive]
pub enum FileError {
    /// The directory cannot be opened.
    #[error("the policy directory `{dir}` cannot be read")]
    #[diagnostic(code("directory-unreadable"), help("check the path and its permissions"))]
    Directory {
        /// As given.
        dir: String,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// A listed file is not there.
    #[error("`{name}` is signed and missing")]
    #[diagnostic(code("file-missing"), help("deploy the whole set as it was signed"))]
    Missing {
        /// Escaped.
        name: String,
    },
    /// A file that is not listed.
    #[error("`{name}` stands in the policy directory and is not signed")]
    #[diagnostic(
        code("file-extra"),
        help(
            "remove it, or name it in `polctl.yaml` and sign again; what is no policy at all can be left out by name with `--ignore`"
        )
    )]
    Extra {
        /// Escaped.
        name: String,
    },
    /// A name that is not UTF-8.
    #[error("a file in `{dir}` has a name that is not UTF-8")]
    #[diagnostic(code("file-name-not-utf8"), help("rename or remove it"))]
    NotUtf8 {
        /// Escaped; the directory, relative to the policy directory.
        dir: String,
    },
    /// A symbolic link.
    #[error("`{name}` is a symbolic link")]
    #[diagnostic(
        code("file-symlink"),
        help("policy is read from regular files only; replace the link by the file itself")
    )]
    Symlink {
        /// Escaped.
        name: String,
    },
    /// A directory, device, socket or pipe.
    #[error("`{name}` is not a regular file")]
    #[diagnostic(code("file-not-regular"), help("policy is read from regular files only"))]
    NotRegular {
        /// Escaped.
        name: String,
    },
    /// A file with a second name.
    #[error("`{name}` has {links} names (hard links)")]
    #[diagnostic(
        code("file-hard-link"),
        help("whoever can write to the other name can change this file; copy it, so that it stands alone")
    )]
    HardLink {
        /// Escaped.
        name: String,
        /// The link count.
        links: u64,
    },
    /// Over the size cap.
    #[error("`{name}` is larger than {cap} bytes, the most that is read")]
    #[diagnostic(code("file-too-large"), help("split the file, or the policy set whose bundle it is"))]
    TooLarge {
        /// Escaped.
        name: String,
        /// The cap in bytes.
        cap: u64,
    },
    /// All files together are over the cap.
    #[error("the policy files together are larger than {cap} bytes, the most that is read")]
    #[diagnostic(code("set-too-large"), help("split the policy set"))]
    SetTooLarge {
        /// The cap in bytes.
        cap: u64,
    },
    /// Too many files.
    #[error("the policy directory holds more than {cap} entries")]
    #[diagnostic(code("set-too-many-files"), help("split the policy set, or keep other files elsewhere"))]
    TooMany {
        /// The cap.
        cap: usize,
    },
    /// The size differs from the signed one.
    #[error("`{name}` has {found} bytes and not the {signed} that were signed")]
    #[diagnostic(
        code("file-size"),
        help("the file was changed since it was signed (line ends, perhaps); restore or sign again")
    )]
    Size {
        /// Escaped.
        name: String,
        /// Bytes found; one more than the signed size stands for "more".
        found: u64,
        /// Bytes signed.
        signed: u64,
    },
    /// The content differs from the signed one.
    #[error("`{name}` is not what was signed")]
    #[diagnostic(code("file-digest"), help("the file was changed since it was signed; restore or sign again"))]
    Digest {
        /// Escaped.
        name: String,
    },
    /// Reading failed.
    #[error("`{name}` cannot be read")]
    #[diagnostic(code("file-unreadable"), help("check its permissions"))]
    Unreadable {
        /// Escaped.
        name: String,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// The envelope is missing.
    #[error("there is no envelope `{name}`")]
    #[diagnostic(
        code("envelope-missing"),
        help("sign the set with `polctl sign`, or name the envelope with `--envelope`")
    )]
    NoEnvelope {
        /// Escaped.
        name: String,
    },
}

/// Why a file was not written.
#[derive(Debug, Error, Diagnostic)]
#[non_exhaustive]
pub enum WriteError {
    /// The system refused.
    #[error("`{path}` cannot be written")]
    #[diagnostic(
        code("write-failed"),
        help("check the directory, its permissions and the free space; the old file is as it was")
    )]
    Failed {
        /// As given.
        path: String,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// The target exists and is no regular file, or is a directory that is not empty.
    #[error("`{path}` exists and cannot be replaced")]
    #[diagnostic(code("write-target"), help("give another path, or remove it yourself"))]
    Target {
        /// As given.
        path: String,
    },
}
