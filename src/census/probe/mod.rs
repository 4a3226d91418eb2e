//! The known places of credentials, and what the bytes there hold (DESIGN 8).
//!
//! `probes.table` is the list that a reviewer reads: place, format, and for structured formats
//! which keys hold a secret, which delegate and which tell the expiry. The readers beside it
//! judge bytes. They never touch a file system, a clock or the environment, never panic on what
//! they are given, and hand on no secret: a [`Material`] has no room for one.

mod cursor;
mod ini;
mod json;
mod jwt;
mod kerberos;
mod key;
mod label;
mod lines;
mod moment;
mod reader;
mod rules;
mod shadow;
mod shell;
mod sniff;
mod sqlite;
mod store;
mod table;
mod toml;
mod tree;
mod value;
mod xml;
mod yaml;

pub use reader::{MAX_BYTES, MAX_MATERIALS, read};
pub use sniff::sniff;
pub use table::{Format, Probe, TableError, Third, check, locations_page, probes};

/// What sort of access a credential gives. The names are stable: `credentials.yaml` writes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// A private key: SSH, TLS, signing, encryption.
    PrivateKey,
    /// An account of a cloud provider.
    Cloud,
    /// A cluster or container service.
    Cluster,
    /// A package or image registry.
    Registry,
    /// A source control service.
    SourceControl,
    /// A model provider, an AI tool or a tool server of one.
    AiTool,
    /// A store that holds other secrets, or the way into one.
    SecretStore,
    /// A database.
    Database,
    /// A network: VPN, Wi-Fi, tunnels.
    Network,
    /// Mail.
    Mail,
    /// Files on other machines.
    FileTransfer,
    /// A login ticket or key table (Kerberos).
    Ticket,
    /// A browser's passwords, cookies and tokens.
    Browser,
    /// A socket through which somebody else's rights can be used.
    Socket,
    /// A build runner or deployment service.
    Automation,
    /// Another service.
    Service,
    /// Accounts of the host itself.
    HostAccount,
    /// A secret in a place that only gathers them: history, start-up files, transcripts.
    Gathered,
}

/// The kinds with their names.
const KINDS: [(Kind, &str); 18] = [
    (Kind::PrivateKey, "private-key"),
    (Kind::Cloud, "cloud"),
    (Kind::Cluster, "cluster"),
    (Kind::Registry, "registry"),
    (Kind::SourceControl, "source-control"),
    (Kind::AiTool, "ai-tool"),
    (Kind::SecretStore, "secret-store"),
    (Kind::Database, "database"),
    (Kind::Network, "network"),
    (Kind::Mail, "mail"),
    (Kind::FileTransfer, "file-transfer"),
    (Kind::Ticket, "ticket"),
    (Kind::Browser, "browser"),
    (Kind::Socket, "socket"),
    (Kind::Automation, "automation"),
    (Kind::Service, "service"),
    (Kind::HostAccount, "host-account"),
    (Kind::Gathered, "gathered"),
];

impl Kind {
    /// Its stable name, such as `private-key`.
    pub fn name(self) -> &'static str {
        KINDS.iter().find(|(kind, _)| *kind == self).map_or("", |(_, name)| name)
    }

    /// The kind of this name.
    pub fn from_name(name: &str) -> Option<Kind> {
        KINDS.iter().find(|(_, own)| *own == name).map(|(kind, _)| *kind)
    }

    /// All kinds, in the order in which documents list them.
    pub fn all() -> impl Iterator<Item = Kind> {
        KINDS.iter().map(|(kind, _)| *kind)
    }
}

/// An environment variable that moves a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MovedBy {
    /// Its name.
    pub variable: String,
    /// What its value is.
    pub how: Moves,
}

/// What the value of a moving variable is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Moves {
    /// The path of the file itself.
    File,
    /// Paths, separated by colons.
    Files,
    /// The directory that stands for this one: `GNUPGHOME` for `~/.gnupg`.
    Directory {
        /// The directory that it replaces, as the probe's paths begin.
        replaces: String,
    },
}

/// One credential that was found in some bytes. It has no room for the secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Material {
    /// What it gives access to.
    pub kind: Kind,
    /// Whether it can be used as it lies there.
    pub sign: Sign,
    /// Its line, from 1, where the format has lines.
    pub line: Option<usize>,
    /// Profile, host, variable or key path that tells it from its neighbours; never secret.
    pub label: Option<String>,
    /// `SHA256:…` of the public key, as `ssh-keygen -l` prints it.
    pub fingerprint: Option<String>,
}

impl Material {
    pub(crate) fn new(kind: Kind, sign: Sign) -> Self {
        Material { kind, sign, line: None, label: None, fingerprint: None }
    }
}

/// Whether a credential can be used as it lies there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sign {
    /// Whoever reads the bytes can use it.
    Live,
    /// It needs a passphrase or another key first.
    Encrypted,
    /// The secret is inside a device; this is a pointer to it.
    Hardware,
    /// The secret is elsewhere: a helper, a command, a variable, another file.
    Delegated {
        /// To what, in words of the table.
        to: String,
    },
    /// It was usable until then (RFC 3339, UTC).
    Expired {
        /// The end.
        at: String,
    },
    /// The place is there and holds nothing.
    Empty,
    /// It looks like a credential and cannot be read as one. Counts as live.
    Unreadable {
        /// Why, without anything of what was read.
        why: String,
    },
}

impl Sign {
    /// Whether it must be treated as usable by whoever can read it.
    pub fn counts_as_live(&self) -> bool {
        matches!(self, Sign::Live | Sign::Unreadable { .. })
    }

    /// Its stable name, such as `live`.
    pub fn name(&self) -> &'static str {
        match self {
            Sign::Live => "live",
            Sign::Encrypted => "encrypted",
            Sign::Hardware => "hardware",
            Sign::Delegated { .. } => "delegated",
            Sign::Expired { .. } => "expired",
            Sign::Empty => "empty",
            Sign::Unreadable { .. } => "unreadable",
        }
    }

    pub(crate) fn unreadable(why: &str) -> Sign {
        Sign::Unreadable { why: why.to_owned() }
    }

    pub(crate) fn delegated(to: &str) -> Sign {
        Sign::Delegated { to: to.to_owned() }
    }
}
