//! Capability manifests, validated (DESIGN 4).
//!
//! A manifest says what a subject (an image, an agent persona, an integration, a session) may ever
//! ask for, in eight classes and in grants on integrations. Every class is empty until an entry
//! adds to it.

mod request;
mod subtree;

pub use request::{CapabilityRequest, Target};
pub use subtree::{MAX_SEGMENTS, PathError, Subtree, homes, path_segments};

use std::collections::BTreeMap;
use std::fmt;

use ipnet::IpNet;

use super::HostPattern;
use crate::source::{FileId, Span};

/// How many rungs capabilities have: `auto`, `notify`, `ask`.
pub const CAPABILITY_RUNGS: u8 = 3;

/// A value that is one of a few names, in ascending order of what it lets through or demands.
macro_rules! named {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name { $($(#[$variant_doc])* $variant,)* }

        impl $name {
            /// All of them, ascending.
            pub const ALL: &[$name] = &[$($name::$variant,)*];
            /// Their names, ascending.
            pub const NAMES: &[&str] = &[$($text,)*];

            /// Its name in manifests.
            pub const fn name(self) -> &'static str {
                match self { $($name::$variant => $text,)* }
            }

            /// The one of this name.
            pub fn from_name(name: &str) -> Option<Self> {
                $name::ALL.iter().copied().find(|value| value.name() == name)
            }

            /// Its place in the order, from 0.
            pub const fn number(self) -> u8 {
                self as u8
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.name())
            }
        }
    };
}

named! {
    /// A class of capabilities.
    Class {
        /// Connections to other machines, through the proxy.
        NetEgress = "net.egress",
        /// Reading and writing files.
        FsScope = "fs.scope",
        /// What goes into the sandbox and out of it.
        Clipboard = "clipboard",
        /// Devices.
        Gpu = "gpu",
        /// Packages, and what needs elevated rights.
        InstallPrivileged = "install.privileged",
        /// What outlives a command or a session.
        Persistence = "persistence",
        /// Secrets that the broker uses for the agent.
        Credentials = "credentials",
        /// Camera, microphone, USB, input.
        Peripheral = "peripheral",
        /// Grants on integrations: `email:send`.
        Grant = "grants",
    }
}

impl Class {
    /// The classes that a manifest lists under `capabilities`: all but the last.
    pub const LISTED: &[Class] = Class::ALL.split_at(Class::ALL.len() - 1).0;
}

named! {
    /// How much control stands between an agent and a capability.
    RiskTier {
        /// Runs in silence, logged.
        Auto = "auto",
        /// Runs, and a person is told.
        Notify = "notify",
        /// A person is asked first.
        Ask = "ask",
        /// Refused, whatever else says.
        Block = "block",
    }
}

named! {
    /// How long what was granted lives.
    Lifecycle {
        /// For one action.
        Once = "once",
        /// To the end of the session.
        Session = "session",
        /// Until policy takes it back; administrative manifests only.
        Standing = "standing",
    }
}

named! {
    /// What an action on an integration does.
    Level {
        /// Looks.
        Read = "read",
        /// Sorts and labels.
        Organize = "organize",
        /// Prepares.
        Draft = "draft",
        /// Does.
        Execute = "execute",
        /// Changes what others may do.
        Admin = "admin",
    }
}

named! {
    /// Whether an action may be tried again when it is not known whether it happened.
    Retry {
        /// Never twice.
        AtMostOnce = "at-most-once",
        /// As often as one likes.
        Safe = "safe",
    }
}

named! {
    /// What a GPU is used for.
    GpuMode {
        /// Computing.
        Compute = "compute",
        /// Rendering.
        Render = "render",
    }
}

named! {
    /// An operating system whose means of enforcement polctl knows.
    System {
        /// Linux.
        Linux = "linux",
        /// macOS.
        Macos = "macos",
        /// Windows.
        Windows = "windows",
    }
}

named! {
    /// What kind of thing a manifest is about.
    SubjectKind {
        /// An image of a sandbox.
        Image = "image",
        /// An agent persona.
        Persona = "persona",
        /// An integration.
        Integration = "integration",
        /// A session: what the control plane links for one.
        Session = "session",
    }
}

impl SubjectKind {
    /// Its Cedar entity type.
    pub const fn entity(self) -> &'static str {
        match self {
            SubjectKind::Image => "Image",
            SubjectKind::Persona => "Persona",
            SubjectKind::Integration => "Integration",
            SubjectKind::Session => "Session",
        }
    }
}

/// What a manifest is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Subject {
    /// Its kind.
    pub kind: SubjectKind,
    /// Its name.
    pub name: String,
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind, self.name)
    }
}

/// What an entry of a class is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    /// `net.egress`.
    NetEgress {
        /// Hosts by name.
        domains: Vec<HostPattern>,
        /// Hosts that are written as an address.
        cidrs: Vec<IpNet>,
        /// Ports, ascending; `None`: it permits 443 and restricts every port.
        ports: Option<Vec<u16>>,
        /// Whether the proxy must be able to look into the connection.
        tls_inspect: bool,
    },
    /// `fs.scope`; of several places that hold a path, the narrowest counts.
    FsScope {
        /// May be read.
        read: Vec<Subtree>,
        /// May be read and written.
        write: Vec<Subtree>,
        /// May be neither.
        deny: Vec<Subtree>,
    },
    /// `clipboard`.
    Clipboard {
        /// Into the sandbox.
        paste_in: bool,
        /// Out of it.
        copy_out: bool,
    },
    /// `gpu`.
    Gpu {
        /// Device ids.
        device_ids: Vec<String>,
        /// What for.
        mode: GpuMode,
    },
    /// `install.privileged`.
    InstallPrivileged {
        /// `scope: any`: whatever needs elevated rights, packages included.
        any: bool,
        /// Packages by name; every one when `None`.
        packages: Option<Vec<String>>,
        /// Linux capabilities (capabilities(7)).
        capabilities: Vec<String>,
    },
    /// `persistence`.
    Persistence {
        /// Where.
        paths: Vec<Subtree>,
        /// Whether it outlives the session.
        survives_session: bool,
    },
    /// `credentials`.
    Credentials {
        /// What the broker may do for the agent.
        broker_scopes: Vec<String>,
    },
    /// `peripheral`.
    Peripheral {
        /// The camera.
        camera: bool,
        /// The microphone.
        mic: bool,
        /// USB devices, `vendor:product`.
        usb: Vec<String>,
        /// Keyboard and pointer events.
        input_inject: bool,
    },
}

impl Scope {
    /// The class that it belongs to.
    pub const fn class(&self) -> Class {
        match self {
            Scope::NetEgress { .. } => Class::NetEgress,
            Scope::FsScope { .. } => Class::FsScope,
            Scope::Clipboard { .. } => Class::Clipboard,
            Scope::Gpu { .. } => Class::Gpu,
            Scope::InstallPrivileged { .. } => Class::InstallPrivileged,
            Scope::Persistence { .. } => Class::Persistence,
            Scope::Credentials { .. } => Class::Credentials,
            Scope::Peripheral { .. } => Class::Peripheral,
        }
    }
}

/// One entry of a class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CapabilityEntry {
    /// Its risk tier.
    pub tier: RiskTier,
    /// How long what is granted under it may live.
    pub lifecycle: Lifecycle,
    /// What it is about.
    pub scope: Scope,
    /// Where it stands.
    pub span: Span,
}

/// How often something may happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// So often …
    pub count: u32,
    /// … in so many seconds.
    pub seconds: u64,
}

impl Rate {
    /// Whether it allows no more than `other` does, over any time.
    pub fn is_within(self, other: Rate) -> bool {
        // So many bursts may begin in the other's time.
        let bursts = other.seconds.div_ceil(self.seconds.max(1));
        u128::from(self.count) * u128::from(bursts) <= u128::from(other.count)
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} in {}", self.count, Seconds(self.seconds))
    }
}

/// A time in seconds, shown in its largest whole unit.
#[derive(Clone, Copy, Debug)]
pub struct Seconds(pub u64);

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (unit, name) in [(86_400, "d"), (3_600, "h"), (60, "m")] {
            if self.0 > 0 && self.0.is_multiple_of(unit) {
                return write!(f, "{}{name}", self.0 / unit);
            }
        }
        write!(f, "{}s", self.0)
    }
}

/// A grant on an integration: `email:send`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// `resource:action`.
    pub capability: String,
    /// The most that the action may do.
    pub level: Level,
    /// Whether a person is asked.
    pub requires_approval: bool,
    /// Workspaces in which no person is asked all the same, sorted.
    pub unattended_in: Vec<String>,
    /// How long a prepared action may wait, in seconds; without end when `None`.
    pub ttl: Option<u64>,
    /// How old a prepared payload may be when it runs, in seconds; as old as it likes when `None`.
    pub staleness: Option<u64>,
    /// Whether it may be tried again.
    pub retry: Retry,
    /// Whether its time stands still while the person is away.
    pub deferrable: bool,
    /// How often; without bound when `None`.
    pub rate: Option<Rate>,
    /// How many may wait for one agent; without bound when `None`.
    pub max_pending: Option<u32>,
    /// Workspaces that it is for, sorted; all when empty.
    pub workspaces: Vec<String>,
    /// Personas that it is for, sorted; all when empty.
    pub personas: Vec<String>,
    /// Where it stands.
    pub span: Span,
}

/// One manifest.
#[derive(Clone, Debug)]
pub struct Manifest {
    /// Its file.
    pub file: FileId,
    /// Its file's path in the policy directory.
    pub path: String,
    /// What it is about.
    pub subject: Subject,
    /// Where `subject` stands.
    pub span: Span,
    /// The manifest that it must stay within, as a path in the policy directory.
    pub parent: Option<(String, Span)>,
    /// Whether it may hold what lives until policy takes it back.
    pub administrative: Option<Span>,
    /// Whether the integration reaches people or systems outside.
    pub external: bool,
    /// Whose home `~` is.
    pub home: Option<String>,
    /// The systems that it is meant for, sorted.
    pub targets: Vec<System>,
    /// Capabilities that the integration declares, with their places.
    pub declares: BTreeMap<String, Span>,
    /// Seconds since 1970 from which on a session's grants end.
    pub expires: Option<i64>,
    /// Entries in order.
    pub entries: Vec<CapabilityEntry>,
    /// Grants by capability.
    pub grants: BTreeMap<String, Grant>,
}

impl Manifest {
    /// Entries of a class.
    pub fn entries_of(&self, class: Class) -> impl Iterator<Item = &CapabilityEntry> {
        self.entries.iter().filter(move |entry| entry.scope.class() == class)
    }
}
