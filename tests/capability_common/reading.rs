//! A second reading of `docs/capabilities.md`, in plain Rust over the parsed manifests.
//!
//! Written from the text of that page and nothing else: no Cedar, no facts. Each function names
//! the section that it reads, and favours the obvious over the fast. The lists of "Guardrails"
//! hold what the page names; requests keep away from what it only sketches ("and the like").

use std::collections::BTreeSet;
use std::net::IpAddr;

use polctl::model::{
    CAPABILITY_RUNGS, CapabilityEntry, CapabilityRequest, Class, Grant, HostPattern, Level, Lifecycle, Manifest,
    RiskTier, Scope, Subtree, Target,
};

/// What `polctl.yaml` says that manifests depend on.
#[derive(Clone, Debug)]
pub struct Facts {
    /// `provenance: enforce`.
    pub provenance: bool,
    /// Directories of the zone `policy` and `trusted_dirs`, absolute.
    pub guarded: Vec<String>,
}

/// "Grants": the capabilities that some integration declares.
pub fn declared(manifests: &[Manifest]) -> BTreeSet<String> {
    manifests.iter().flat_map(|manifest| manifest.declares.keys().cloned()).collect()
}

/// Whether a set of manifests allows a request at each rung; each subject is asked by itself, and
/// one without a manifest permits nothing.
pub fn read(manifests: &[Manifest], facts: &Facts, request: &CapabilityRequest) -> Vec<bool> {
    let declared = declared(manifests);
    let own = manifests.iter().find(|manifest| manifest.subject == request.subject);
    (0..CAPABILITY_RUNGS)
        .map(|rung| own.is_some_and(|manifest| allows(manifest, &declared, facts, request, rung)))
        .collect()
}

/// "A manifest": whether it allows a request at a rung.
pub fn allows(
    manifest: &Manifest,
    declared: &BTreeSet<String>,
    facts: &Facts,
    request: &CapabilityRequest,
    rung: u8,
) -> bool {
    let alive = manifest.expires.is_none_or(|end| request.now < end);
    alive && permitted(manifest, declared, request, rung) && !guardrail(facts, request, rung)
}

fn permitted(manifest: &Manifest, declared: &BTreeSet<String>, request: &CapabilityRequest, rung: u8) -> bool {
    match &request.target {
        Target::FsScope { write, path } => files(manifest, request, path, *write, rung),
        Target::Persistence { path, survives_session } => kept(manifest, request, path, *survives_session, rung),
        Target::Grant { capability, level } => {
            declared.contains(capability)
                && manifest.grants.get(capability).is_some_and(|grant| granted(grant, request, *level, rung))
        }
        target => strictest(
            manifest.entries_of(target.class()).filter(|entry| is_about(&entry.scope, target)).map(|entry| Under {
                tier: entry.tier,
                permits: lives(entry, request) && is_enough(&entry.scope, target),
            }),
            rung,
        ),
    }
}

/// An entry that a request falls under.
struct Under {
    tier: RiskTier,
    /// Whether it can permit the request; it restricts it in any case.
    permits: bool,
}

/// "Entries": an entry of tier k permits the rungs from k on and forbids those below; `block`
/// forbids all.
fn strictest(entries: impl Iterator<Item = Under>, rung: u8) -> bool {
    let entries: Vec<Under> = entries.collect();
    let forbids = |under: &Under| match under.tier {
        RiskTier::Auto => false,
        RiskTier::Notify => rung < 1,
        RiskTier::Ask => rung < 2,
        RiskTier::Block => true,
    };
    !entries.iter().any(forbids) && entries.iter().any(|under| under.permits)
}

/// "Entries": a request says how long what is granted is to live; an entry permits that and what
/// is shorter.
fn lives(entry: &CapabilityEntry, request: &CapabilityRequest) -> bool {
    let length = |lifecycle| match lifecycle {
        Lifecycle::Once => 0,
        Lifecycle::Session => 1,
        Lifecycle::Standing => 2,
    };
    length(request.lifecycle) <= length(entry.lifecycle)
}

/// "Hosts": what a request that falls under an entry needs besides, to be permitted. `tls_inspect:
/// true` permits only connections that the proxy can look into; without `ports`, 443 is permitted.
fn is_enough(scope: &Scope, target: &Target) -> bool {
    match (scope, target) {
        (Scope::NetEgress { tls_inspect: needed, ports, .. }, Target::NetEgress { tls_inspect, port, .. }) => {
            (*tls_inspect || !needed) && (ports.is_some() || *port == 443)
        }
        _ => true,
    }
}

/// The table of classes, without paths.
fn is_about(scope: &Scope, target: &Target) -> bool {
    match (scope, target) {
        // Without `ports` an entry restricts every port.
        (Scope::NetEgress { domains, cidrs, ports, .. }, Target::NetEgress { host, address, port, .. }) => {
            ports.as_ref().is_none_or(|ports| ports.contains(port))
                && match address {
                    Some(address) => cidrs.iter().any(|net| in_network(*address, net.addr(), net.prefix_len().into())),
                    None => domains.iter().any(|pattern| is_host(pattern, host)),
                }
        }
        (Scope::Clipboard { paste_in, copy_out }, Target::Clipboard { copy_out: out }) => {
            if *out {
                *copy_out
            } else {
                *paste_in
            }
        }
        (Scope::Gpu { device_ids, mode }, Target::Gpu { device, mode: wanted }) => {
            device_ids.contains(device) && mode == wanted
        }
        (Scope::InstallPrivileged { any, packages, .. }, Target::Package { name }) => {
            *any || packages.as_ref().is_none_or(|packages| packages.contains(name))
        }
        (Scope::InstallPrivileged { capabilities, .. }, Target::LinuxCapability { name }) => {
            capabilities.contains(name)
        }
        (Scope::InstallPrivileged { any, .. }, Target::Elevated) => *any,
        (Scope::Credentials { broker_scopes }, Target::Credentials { broker_scope, .. }) => {
            broker_scopes.contains(broker_scope)
        }
        (Scope::Peripheral { camera, .. }, Target::Camera) => *camera,
        (Scope::Peripheral { mic, .. }, Target::Mic) => *mic,
        (Scope::Peripheral { usb, .. }, Target::Usb { device }) => usb.contains(device),
        (Scope::Peripheral { input_inject, .. }, Target::InputInject) => *input_inject,
        _ => false,
    }
}

/// "Hosts": `host` is exact, `*.host` its sub-domains, `**.host` both.
fn is_host(pattern: &HostPattern, host: &str) -> bool {
    let below = |name: &str| host.strip_suffix(name).is_some_and(|head| head.len() > 1 && head.ends_with('.'));
    match pattern {
        HostPattern::Exact(name) => host == name,
        HostPattern::SubDomains(name) => below(name),
        HostPattern::DomainTree(name) => host == name || below(name),
        HostPattern::Network(_) => false,
    }
}

/// Whether an address shares the first `length` bits of `base`.
pub fn in_network(address: IpAddr, base: IpAddr, length: u32) -> bool {
    let bits = |address: IpAddr| match address {
        IpAddr::V4(v4) => (32, u128::from(u32::from(v4))),
        IpAddr::V6(v6) => (128, u128::from(v6)),
    };
    let ((width, address), (base_width, base)) = (bits(address), bits(base));
    width == base_width && (length == 0 || (address ^ base) >> (width - length) == 0)
}

/// "Paths": a place is a directory and everything below it.
fn holds(place: &Subtree, path: &[String]) -> bool {
    assert!(!place.any_depth, "no place of a manifest begins at any depth");
    let is_name =
        |at: usize, name: &String| place.segments[at].is_any() || place.segments[at].as_literal() == Some(name);
    place.segments.len() <= path.len()
        && path.iter().take(place.segments.len()).enumerate().all(|(at, name)| is_name(at, name))
}

/// How narrow the narrowest of some places is that holds a path.
fn width(places: &[Subtree], path: &[String]) -> Option<usize> {
    places.iter().filter(|place| holds(place, path)).map(|place| place.segments.len()).max()
}

/// "Paths": of all places that hold a path the narrowest counts, whatever it says; at the same
/// width `deny` comes first, then the strictest tier. Reading goes by the narrowest place that says
/// `read` or `deny`; a `write` place lets read where no place that says `read` counts. Writing goes
/// by the narrowest of all. Places of `block` entries are outside of this order.
fn files(manifest: &Manifest, request: &CapabilityRequest, path: &[String], write: bool, rung: u8) -> bool {
    // The narrowest places of each kind, and their entries.
    let [mut reads, mut writes, mut denies] = [const { Vec::<(usize, &CapabilityEntry)>::new() }; 3];
    for entry in manifest.entries_of(Class::FsScope) {
        let Scope::FsScope { read, write: written, deny } = &entry.scope else { unreachable!() };
        let holds = |places: &[Subtree]| width(places, path).is_some();
        if entry.tier != RiskTier::Block {
            reads.extend(width(read, path).map(|width| (width, entry)));
            writes.extend(width(written, path).map(|width| (width, entry)));
            denies.extend(width(deny, path).map(|width| (width, entry)));
        } else if holds(read) || holds(deny) || write && holds(written) {
            return false;
        }
    }
    // `None`, no such place, is less than any width.
    let narrowest = |places: &[(usize, &CapabilityEntry)]| places.iter().map(|(width, _)| *width).max();
    let (read, written, denied) = (narrowest(&reads), narrowest(&writes), narrowest(&denies));
    let counts = if write {
        if written > denied && written >= read { writes } else { return false }
    } else if read > denied {
        reads
    } else if written > denied {
        writes
    } else {
        return false;
    };
    let width = narrowest(&counts);
    let counting = counts.iter().filter(|(at, _)| Some(*at) == width);
    strictest(counting.map(|(_, entry)| Under { tier: entry.tier, permits: lives(entry, request) }), rung)
}

/// `persistence`: a path that outlives the command, or the session too. "Paths" speaks of `read`,
/// `write` and `deny` when it orders places by width; places of this class have no such order, so
/// the strictest entry counts, as in every class.
fn kept(manifest: &Manifest, request: &CapabilityRequest, path: &[String], survives: bool, rung: u8) -> bool {
    let under = manifest.entries_of(Class::Persistence).filter_map(|entry| {
        let Scope::Persistence { paths, survives_session } = &entry.scope else { unreachable!() };
        let permits = lives(entry, request) && (*survives_session || !survives);
        width(paths, path).map(|_| Under { tier: entry.tier, permits })
    });
    strictest(under, rung)
}

/// "Grants".
fn granted(grant: &Grant, request: &CapabilityRequest, level: Level, rung: u8) -> bool {
    let height = |level| match level {
        Level::Read => 0,
        Level::Organize => 1,
        Level::Draft => 2,
        Level::Execute => 3,
        Level::Admin => 4,
    };
    // `unattended_in` says where no person is asked, so a person is asked elsewhere: that is why it
    // will do in the place of `requires_approval`.
    let asks = grant.requires_approval || !grant.unattended_in.is_empty();
    let attended = asks && !grant.unattended_in.contains(&request.workspace);
    height(level) <= height(grant.level)
        && (grant.workspaces.is_empty() || grant.workspaces.contains(&request.workspace))
        && (grant.personas.is_empty() || grant.personas.contains(&request.persona))
        && (rung == 2 || !attended)
}

/// "Guardrails", the networks: what the IANA registries call special, and multicast.
const NOT_PUBLIC: [(&str, u32); 21] = [
    ("0.0.0.0", 8),
    ("10.0.0.0", 8),
    ("100.64.0.0", 10),
    ("127.0.0.0", 8),
    ("169.254.0.0", 16),
    ("172.16.0.0", 12),
    ("192.0.0.0", 24),
    ("192.0.2.0", 24),
    ("192.168.0.0", 16),
    ("198.18.0.0", 15),
    ("198.51.100.0", 24),
    ("203.0.113.0", 24),
    ("224.0.0.0", 4),
    ("240.0.0.0", 4),
    ("::", 96),
    ("::ffff:0:0", 96),
    ("64:ff9b::", 96),
    ("2001:db8::", 32),
    ("fc00::", 7),
    ("fe80::", 10),
    ("ff00::", 8),
];

/// `docker.sock`, where it is found.
const SOCKETS: [&str; 2] = ["/var/run/docker.sock", "/run/docker.sock"];

/// Where nothing may be written, in every home.
const HOME_GUARDED: [&str; 9] =
    [".ssh", ".aws", ".gnupg", ".bashrc", ".profile", ".zshrc", ".bash_profile", "bin", ".local/bin"];

/// Where nothing may be written, by path.
const GUARDED: [&str; 5] = ["/usr/bin", "/etc/sudoers", "/etc/polctl", "/sys", "/proc/sys"];

/// Linux capabilities that are nearly root.
const ROOT: [&str; 5] = ["CAP_SYS_ADMIN", "CAP_SYS_MODULE", "CAP_SYS_PTRACE", "CAP_SYS_RAWIO", "CAP_BPF"];

/// "Guardrails": whether one refuses a request at a rung.
pub fn guardrail(facts: &Facts, request: &CapabilityRequest, rung: u8) -> bool {
    let (unasked, mut way_out) = (rung < 2, false);
    let refused = match &request.target {
        Target::NetEgress { address, peer, .. } => {
            way_out = true;
            let not_public = |address: IpAddr| {
                NOT_PUBLIC.iter().any(|(base, length)| in_network(address, base.parse().unwrap(), *length))
            };
            address.is_some_and(not_public) || peer.is_some_and(not_public)
        }
        Target::FsScope { write, path } => {
            SOCKETS.iter().any(|socket| is_below(path, socket)) || *write && guarded(facts, path)
        }
        Target::Persistence { path, .. } => guarded(facts, path),
        Target::Credentials { raw, .. } => *raw,
        Target::InputInject => true,
        Target::LinuxCapability { name } => ROOT.contains(&name.as_str()),
        Target::Clipboard { copy_out } => {
            way_out = *copy_out;
            false
        }
        Target::Grant { level, .. } => {
            way_out = matches!(level, Level::Execute | Level::Admin);
            false
        }
        _ => false,
    };
    let too_long = match &request.target {
        Target::FsScope { path, .. } | Target::Persistence { path, .. } => path.len() > 16,
        _ => false,
    };
    refused
        || too_long
        || unasked && request.external && facts.provenance
        || unasked && request.external && request.sensitive && way_out
}

/// Writing or keeping files.
fn guarded(facts: &Facts, path: &[String]) -> bool {
    let below_home = match path {
        [root, rest @ ..] if root == "root" => Some(rest),
        [homes, _, rest @ ..] if homes == "home" || homes == "Users" => Some(rest),
        _ => None,
    };
    GUARDED.iter().any(|place| is_below(path, place))
        || facts.guarded.iter().any(|place| is_below(path, place))
        || below_home.is_some_and(|rest| HOME_GUARDED.iter().any(|place| is_below(rest, &format!("/{place}"))))
}

/// Whether a path is this one or below it.
pub fn is_below(path: &[String], place: &str) -> bool {
    let text: String = path.iter().map(|name| format!("/{name}")).collect();
    text == place || text.starts_with(&format!("{place}/"))
}
