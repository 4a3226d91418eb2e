//! What is asked of a manifest: one use of one capability.

use std::fmt;
use std::net::IpAddr;

use super::{Class, GpuMode, Level, Lifecycle, Subject};

/// What a capability is used for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// A connection through the proxy.
    NetEgress {
        /// Canonical host name; empty when the host is written as an address.
        host: String,
        /// The host, where it is written as an address.
        address: Option<IpAddr>,
        /// What the proxy connects to.
        peer: Option<IpAddr>,
        /// The port.
        port: u16,
        /// Whether the proxy looks into the connection.
        tls_inspect: bool,
    },
    /// A file.
    FsScope {
        /// Written, else read.
        write: bool,
        /// The path's segments.
        path: Vec<String>,
    },
    /// The clipboard.
    Clipboard {
        /// Out of the sandbox, else into it.
        copy_out: bool,
    },
    /// A GPU.
    Gpu {
        /// Device id.
        device: String,
        /// What for.
        mode: GpuMode,
    },
    /// A package is installed.
    Package {
        /// Its name.
        name: String,
    },
    /// A Linux capability is used.
    LinuxCapability {
        /// `CAP_NET_ADMIN`.
        name: String,
    },
    /// Anything else with elevated rights.
    Elevated,
    /// A file outlives the command.
    Persistence {
        /// The path's segments.
        path: Vec<String>,
        /// And the session.
        survives_session: bool,
    },
    /// The broker uses a secret.
    Credentials {
        /// For this.
        broker_scope: String,
        /// The agent sees the secret itself.
        raw: bool,
    },
    /// The camera.
    Camera,
    /// The microphone.
    Mic,
    /// A USB device.
    Usb {
        /// `vendor:product`.
        device: String,
    },
    /// Keyboard and pointer events.
    InputInject,
    /// An action on an integration.
    Grant {
        /// `email:send`.
        capability: String,
        /// What the action does.
        level: Level,
    },
}

impl Target {
    /// Its class.
    pub const fn class(&self) -> Class {
        match self {
            Target::NetEgress { .. } => Class::NetEgress,
            Target::FsScope { .. } => Class::FsScope,
            Target::Clipboard { .. } => Class::Clipboard,
            Target::Gpu { .. } => Class::Gpu,
            Target::Package { .. } | Target::LinuxCapability { .. } | Target::Elevated => Class::InstallPrivileged,
            Target::Persistence { .. } => Class::Persistence,
            Target::Credentials { .. } => Class::Credentials,
            Target::Camera | Target::Mic | Target::Usb { .. } | Target::InputInject => Class::Peripheral,
            Target::Grant { .. } => Class::Grant,
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = |path: &[String]| format!("/{}", path.join("/"));
        match self {
            Target::NetEgress { host, address, port, .. } => {
                let host = match address {
                    Some(IpAddr::V6(address)) => format!("[{address}]"),
                    Some(address) => address.to_string(),
                    None => host.clone(),
                };
                match port {
                    443 => write!(f, "https://{host}/"),
                    80 => write!(f, "http://{host}/"),
                    port => write!(f, "connect {host}:{port}"),
                }
            }
            Target::FsScope { write: true, path: p } => write!(f, "write {}", path(p)),
            Target::FsScope { write: false, path: p } => write!(f, "read {}", path(p)),
            Target::Clipboard { copy_out: true } => f.write_str("clipboard copy out"),
            Target::Clipboard { copy_out: false } => f.write_str("clipboard paste in"),
            Target::Gpu { device, mode } => write!(f, "gpu {device} {mode}"),
            Target::Package { name } => write!(f, "install package {name}"),
            Target::LinuxCapability { name } => write!(f, "use {name}"),
            Target::Elevated => f.write_str("run with elevated rights"),
            Target::Persistence { path: p, survives_session } => {
                write!(f, "keep {}{}", path(p), if *survives_session { " beyond the session" } else { "" })
            }
            Target::Credentials { broker_scope, raw } => {
                write!(f, "{} {broker_scope}", if *raw { "see credential" } else { "broker credential" })
            }
            Target::Camera => f.write_str("camera"),
            Target::Mic => f.write_str("microphone"),
            Target::Usb { device } => write!(f, "usb {device}"),
            Target::InputInject => f.write_str("inject input"),
            Target::Grant { capability, level } => write!(f, "{capability} at level {level}"),
        }
    }
}

/// One request, with who asks and under which circumstances.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CapabilityRequest {
    /// Agent id.
    pub agent: String,
    /// Its persona.
    pub persona: String,
    /// Its session.
    pub session: String,
    /// The session's workspace.
    pub workspace: String,
    /// Which manifest is asked; the gateway asks each that applies, and all must allow.
    pub subject: Subject,
    /// How long what is granted is to live.
    pub lifecycle: Lifecycle,
    /// Inputs come from outside the session.
    pub external: bool,
    /// The session has seen something sensitive.
    pub sensitive: bool,
    /// Seconds since 1970.
    pub now: i64,
    /// What for.
    pub target: Target,
}

impl CapabilityRequest {
    /// A plain request to a subject.
    pub fn new(subject: Subject, target: Target) -> Self {
        CapabilityRequest {
            agent: "agent".into(),
            persona: "persona".into(),
            session: "session".into(),
            workspace: "workspace".into(),
            subject,
            lifecycle: Lifecycle::Once,
            external: false,
            sensitive: false,
            now: 0,
            target,
        }
    }

    /// What the request assumes beyond what its target says, in words.
    pub fn assumptions(&self) -> Vec<String> {
        let mut out = Vec::new();
        if self.workspace != "workspace" {
            out.push(format!("in the workspace `{}`", self.workspace));
        }
        if self.persona != "persona" {
            out.push(format!("by the persona `{}`", self.persona));
        }
        if self.lifecycle != Lifecycle::Once {
            out.push(format!("with the lifecycle `{}`", self.lifecycle));
        }
        if self.now != 0 {
            let time = jiff::Timestamp::from_second(self.now).map_or_else(|_| self.now.to_string(), |t| t.to_string());
            out.push(format!("at {time}"));
        }
        if self.external {
            out.push("inputs come from outside the session".to_owned());
        }
        if self.sensitive {
            out.push("the session has seen something sensitive".to_owned());
        }
        if let Target::NetEgress { tls_inspect, peer, .. } = &self.target {
            if !tls_inspect {
                out.push("the proxy cannot look into the connection".to_owned());
            }
            out.extend(peer.map(|peer| format!("the proxy connects to {peer}")));
        }
        out
    }
}
