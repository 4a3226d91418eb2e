//! What each operating system's own layer can enforce of a class, and what only the proxy, the
//! broker or nobody can.

use crate::model::{Class, Scope, System};

/// Who enforces a class on a system, and what is left open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Enforcement {
    /// The class.
    pub class: Class,
    /// What the system's own layer enforces; `None`: nothing.
    pub system: Option<&'static str>,
    /// What enforces the rest; `None`: nothing does.
    pub beyond: Option<&'static str>,
}

/// The weakest enforcement of each class on a system.
pub fn enforcement(system: System) -> Vec<Enforcement> {
    Class::ALL.iter().map(|class| of(system, *class)).collect()
}

fn of(system: System, class: Class) -> Enforcement {
    use System::{Linux, Macos, Windows};
    let (own, beyond) = match (class, system) {
        (Class::NetEgress, Linux) => (
            Some("a network namespace and seccomp leave only the way to the proxy"),
            Some("the egress proxy: which hosts, ports and inspection"),
        ),
        (Class::NetEgress, Macos) => (
            Some("Seatbelt leaves only the loopback way to the proxy"),
            Some("the egress proxy: which hosts, ports and inspection"),
        ),
        (Class::NetEgress, Windows) => (
            Some("the filtering platform blocks the account: all or nothing"),
            Some("the egress proxy: which hosts, ports and inspection"),
        ),
        (Class::FsScope, Linux) => (Some("bind mounts of bubblewrap, narrowest last"), None),
        (Class::FsScope, Macos) => (Some("Seatbelt subpaths"), None),
        (Class::FsScope, Windows) => {
            (Some("a restricted token holds writes; reads stay broad unless denied by an elevated helper"), None)
        }
        (Class::Clipboard, Linux) => (Some("no display socket in the sandbox"), Some("the gateway: each direction")),
        (Class::Clipboard, Macos) => (None, Some("the gateway: each direction")),
        (Class::Clipboard, Windows) => (Some("a desktop of its own"), Some("the gateway: each direction")),
        (Class::Gpu, Linux) => (Some("the device controller of cgroups"), None),
        (Class::Gpu, Macos) => (None, None),
        (Class::Gpu, Windows) => (Some("what is assigned to the machine"), None),
        (Class::InstallPrivileged, Linux) => {
            (Some("the bounding set of capabilities"), Some("the gateway: which packages"))
        }
        (Class::InstallPrivileged, Macos) => (None, Some("the gateway")),
        (Class::InstallPrivileged, Windows) => {
            (Some("an account of its own with elevated rights"), Some("the gateway: which packages"))
        }
        (Class::Persistence, Linux) => (Some("what is mounted into the sandbox"), None),
        (Class::Persistence, Macos) => (Some("Seatbelt subpaths"), None),
        (Class::Persistence, Windows) => (Some("access lists of the workspace"), None),
        (Class::Credentials, _) => (None, Some("the secret broker at the proxy")),
        (Class::Peripheral, Linux) => (Some("the device controller of cgroups"), None),
        (Class::Peripheral, Macos) => (Some("consent of the user (TCC), which asks and does not hold"), None),
        (Class::Peripheral, Windows) => (None, None),
        (Class::Grant, _) => (None, Some("the gateway")),
    };
    Enforcement { class, system: own, beyond }
}

/// Why a system cannot hold what an entry says; `None` where it can, or something beyond it can.
pub(super) fn gap(system: System, scope: &Scope) -> Option<&'static str> {
    match (system, scope) {
        (System::Macos, Scope::Gpu { .. }) => Some("macOS has no way to hand out a GPU"),
        (System::Windows, Scope::FsScope { read, deny, .. }) if !read.is_empty() || !deny.is_empty() => Some(
            "a restricted token holds writes only: reading stays as broad as the account's, unless an elevated helper denies it",
        ),
        (System::Windows, Scope::Peripheral { .. }) => Some("Windows keeps no device from a program of the account"),
        (System::Macos, Scope::Peripheral { usb, .. }) if !usb.is_empty() => {
            Some("macOS has no consent for single USB devices")
        }
        (System::Macos, Scope::InstallPrivileged { capabilities, .. }) if !capabilities.is_empty() => {
            Some("macOS has no Linux capabilities")
        }
        (System::Windows, Scope::InstallPrivileged { capabilities, .. }) if !capabilities.is_empty() => {
            Some("Windows has no Linux capabilities")
        }
        _ => None,
    }
}
