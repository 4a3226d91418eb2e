//! What no manifest can lift (DESIGN 4).

use ipnet::IpNet;

use super::{CapabilityAtom, CapabilityOrigin, CapabilityPolicy, Condition, Fact, Text};
use crate::compile::Effect;
use crate::model::{
    CAPABILITY_RUNGS, Class, Glob, MAX_SEGMENTS, NON_PUBLIC, PolicySet, Provenance, RiskTier, Subtree, homes,
};

/// Sockets through which one rules the whole machine.
const SOCKETS: [&str; 5] = [
    "**/docker.sock",
    "/run/containerd/containerd.sock",
    "/run/podman/podman.sock",
    "/run/crio/crio.sock",
    "/run/user/*/podman",
];

/// In homes: keys, and what a login shell or a program runs by itself.
const IN_HOMES: [&str; 18] = [
    ".ssh",
    ".aws",
    ".gnupg",
    ".bashrc",
    ".bash_profile",
    ".bash_login",
    ".bash_logout",
    ".profile",
    ".zshrc",
    ".zshenv",
    ".zprofile",
    ".zlogin",
    ".kshrc",
    ".config/fish",
    ".config/systemd",
    ".config/autostart",
    ".local/bin",
    "bin",
];

/// Elsewhere: where programs come from, what shells read, what keeps a sandbox closed.
const SYSTEM: [&str; 54] = [
    "/usr/bin",
    "/usr/sbin",
    "/usr/local/bin",
    "/usr/local/sbin",
    "/bin",
    "/sbin",
    "/opt/bin",
    "/etc/profile",
    "/etc/profile.d",
    "/etc/bash.bashrc",
    "/etc/zsh",
    "/etc/environment",
    "/etc/ld.so.preload",
    "/etc/sudoers",
    "/etc/sudoers.d",
    "/etc/polctl",
    "/etc/apparmor.d",
    "/etc/selinux",
    "/sys",
    "/proc",
    "/boot",
    "/lib",
    "/lib32",
    "/lib64",
    "/usr/lib",
    "/usr/lib32",
    "/usr/lib64",
    "/usr/libexec",
    "/usr/local/lib",
    "/etc/cron*",
    "/etc/init.d",
    "/etc/systemd",
    "/etc/udev",
    "/etc/pam.d",
    "/etc/passwd",
    "/etc/group",
    "/etc/shadow",
    "/etc/gshadow",
    "/etc/security",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/ssh",
    "/var/spool/cron",
    "/var/lib/docker",
    "/dev/mem",
    "/dev/kmem",
    "/dev/port",
    "/dev/sd*",
    "/dev/nvme*",
    "/dev/vd*",
    "/dev/dm-*",
    "/dev/mapper",
    "/dev/disk",
    "**/.git/hooks",
];

fn subtree(path: &str) -> Subtree {
    let (any_depth, path) = match path.strip_prefix("**") {
        Some(path) => (true, path),
        None => (false, path),
    };
    Subtree { segments: path.trim_start_matches('/').split('/').map(Glob::from_stars).collect(), any_depth }
}

/// Places that nobody may write, whatever is granted: those above, the trusted directories, and the
/// policy store.
fn protected(set: &PolicySet) -> Vec<Subtree> {
    let config = &set.config;
    let mut out: Vec<Subtree> = SYSTEM.iter().map(|path| subtree(path)).collect();
    // A service's home may lie anywhere: those that manifests state count as well.
    let stated =
        set.manifests.iter().filter_map(|manifest| manifest.home.as_deref()).map(|home| subtree(home).segments);
    for home in homes().into_iter().chain(stated) {
        for name in IN_HOMES {
            let mut segments = home.clone();
            segments.extend(name.split('/').map(Glob::literal));
            out.push(Subtree { segments, any_depth: false });
        }
    }
    out.extend(config.trusted_dirs.iter().map(|dir| subtree(dir)));
    if let Some((patterns, _)) = config.zones.get("policy") {
        out.extend(patterns.iter().flat_map(crate::model::PathPattern::subtrees));
    }
    let mut seen: Vec<Subtree> = Vec::new();
    out.retain(|place| {
        let new = !seen.contains(place);
        seen.push(place.clone());
        new
    });
    out
}

/// The guardrails of a set.
pub(super) fn guardrails(set: &PolicySet) -> Vec<CapabilityPolicy> {
    let config = &set.config;
    let mut out = Vec::new();
    let unattended = 0..RiskTier::Ask.number();
    let always = 0..CAPABILITY_RUNGS;
    let mut forbid = |name: &str, class: Class, rungs: std::ops::Range<u8>, what, condition| {
        out.push(CapabilityPolicy {
            id: format!("guardrail/{}/{name}", class.name()),
            effect: Effect::Forbid,
            class,
            rungs,
            subject: None,
            condition,
            origin: CapabilityOrigin::Guardrail(what),
        });
    };
    let under = |places: Vec<Subtree>| -> Condition {
        Condition::one(places.into_iter().map(|place| CapabilityAtom::Under(place).into()).collect())
    };
    let text = |field, value: &str| Condition::from(CapabilityAtom::Text(field, vec![value.to_owned()]));
    let fact = |fact| Condition::from(CapabilityAtom::Fact(fact));
    let nets: Vec<IpNet> = NON_PUBLIC.iter().filter_map(|net| net.parse().ok()).collect();
    forbid(
        "non-public",
        Class::NetEgress,
        always.clone(),
        "addresses that are not public",
        CapabilityAtom::Reaches(nets).into(),
    );
    for class in [Class::FsScope, Class::Persistence] {
        let deeper = CapabilityAtom::Deeper(MAX_SEGMENTS).into();
        forbid("depth", class, always.clone(), "paths with more segments than are looked at", deeper);
    }
    let sockets = under(SOCKETS.iter().map(|path| subtree(path)).collect());
    forbid("socket", Class::FsScope, always.clone(), "sockets that rule the machine", sockets);
    let protected = protected(set);
    let writes = Condition::all(vec![fact(Fact::Write), under(protected.clone())]);
    forbid("protected", Class::FsScope, always.clone(), "places that nobody may write", writes);
    forbid("protected", Class::Persistence, always.clone(), "places that nobody may write", under(protected));
    forbid("raw", Class::Credentials, always.clone(), "credentials themselves", fact(Fact::Raw));
    forbid("input", Class::Peripheral, always.clone(), "injected input", text(Text::Kind, "input_inject"));
    let root: Vec<String> =
        ["CAP_SYS_ADMIN", "CAP_SYS_MODULE", "CAP_SYS_PTRACE", "CAP_SYS_RAWIO", "CAP_BPF"].map(str::to_owned).into();
    forbid(
        "near-root",
        Class::InstallPrivileged,
        always,
        "capabilities that are nearly root",
        CapabilityAtom::Text(Text::Name, root).into(),
    );
    for class in Class::ALL.iter().copied() {
        if config.provenance == Provenance::Enforce {
            forbid("provenance", class, unattended.clone(), "inputs from outside the session", fact(Fact::External));
        }
        // Of external content, sensitive data and a way out, two at most without a person.
        let leaves = match class {
            Class::NetEgress => Some(Condition::All(Vec::new())),
            Class::Clipboard => Some(text(Text::Kind, "copy_out")),
            Class::Grant => Some(Condition::from(CapabilityAtom::Level(crate::model::Level::Draft)).negated()),
            _ => None,
        };
        if let Some(leaves) = leaves {
            let all = vec![fact(Fact::External), fact(Fact::Sensitive), leaves];
            let what = "external content, sensitive data and a way out together";
            forbid("three", class, unattended.clone(), what, Condition::all(all));
        }
    }
    out
}
