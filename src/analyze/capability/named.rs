//! The field of a manifest that a changed request is about: the one whose other value the other side
//! would have allowed.

use super::compare::{CapabilityChange, CapabilitySide};
use crate::compile::{CapabilityAtom, CapabilityPolicy, CompileError, Effect, Text, request_path};
use crate::model::{CAPABILITY_RUNGS, CapabilityRequest, Class, GpuMode, Level, Lifecycle, Subtree, Target};

/// The field's name, as manifests write it.
///
/// # Errors
///
/// [`CompileError`]: a defect.
pub(super) fn field(
    change: &CapabilityChange<'_>,
    from: &mut CapabilitySide<'_, '_>,
) -> Result<&'static str, CompileError> {
    if change.permit.id.ends_with("/permit-unattended") {
        return Ok("unattended_in");
    }
    let at = change.rungs.first().copied().unwrap_or(0);
    let request = &change.request;
    let mentioned = Mentions::of(from);
    for (name, other) in circumstances(request, &mentioned).into_iter().chain(targets(request, &mentioned)) {
        if other != *request && from.decider.allows(&other, at)? {
            return Ok(name);
        }
    }
    let blocked = change.gone.is_some_and(|gone| gone.subject.is_some() && gone.rungs == (0..CAPABILITY_RUNGS));
    if change.rung_from.is_some() || blocked {
        return Ok(if request.target.class() == Class::Grant { "requires_approval" } else { "tier" });
    }
    if change.gone.is_some_and(|gone| gone.subject.is_none()) {
        return Ok("trusted_dirs, zones or provenance in polctl.yaml");
    }
    // The old version permits the place around it, and not this part of it.
    let carved = |policy: &&CapabilityPolicy| {
        let places = policy.condition.required(&|atom| match atom {
            CapabilityAtom::Under(place) => Some(vec![place]),
            _ => None,
        });
        let path = request_path(&request.target);
        let holds = |place: &&Subtree| path.is_some_and(|path| place.holds(path));
        policy.subject.is_some()
            && policy.effect == Effect::Permit
            && places.is_some_and(|places| places.iter().any(holds))
    };
    if from.policies.iter().any(|policy| policy.class == request.target.class() && carved(policy)) {
        return Ok("deny");
    }
    if let Target::NetEgress { .. } = &request.target {
        for port in &mentioned.ports {
            let mut other = request.clone();
            if let Target::NetEgress { port: own, .. } = &mut other.target {
                *own = *port;
            }
            if from.decider.allows(&other, at)? {
                return Ok("ports");
            }
        }
    }
    Ok(scope(&request.target))
}

type Tried = Vec<(&'static str, CapabilityRequest)>;

/// The same target under other circumstances.
fn circumstances(request: &CapabilityRequest, mentioned: &Mentions) -> Tried {
    let mut out = Vec::new();
    if request.lifecycle != Lifecycle::Once {
        out.push(("lifecycle", CapabilityRequest { lifecycle: Lifecycle::Once, ..request.clone() }));
    }
    if request.now != 0 {
        out.push(("expires", CapabilityRequest { now: 0, ..request.clone() }));
    }
    for workspace in &mentioned.workspaces {
        out.push(("workspaces", CapabilityRequest { workspace: workspace.clone(), ..request.clone() }));
    }
    for persona in &mentioned.personas {
        out.push(("personas", CapabilityRequest { persona: persona.clone(), ..request.clone() }));
    }
    out
}

/// The target with another value of one of its fields.
fn targets(request: &CapabilityRequest, mentioned: &Mentions) -> Tried {
    let with = |target: Target| CapabilityRequest { target, ..request.clone() };
    match &request.target {
        Target::NetEgress { host, address, peer, port, tls_inspect: false } => {
            let (host, address, peer, port) = (host.clone(), *address, *peer, *port);
            vec![("tls_inspect", with(Target::NetEgress { host, address, peer, port, tls_inspect: true }))]
        }
        Target::Persistence { path, survives_session: true } => {
            let target = Target::Persistence { path: path.clone(), survives_session: false };
            vec![("survives_session", with(target))]
        }
        Target::FsScope { write: true, path } => {
            vec![("write", with(Target::FsScope { write: false, path: path.clone() }))]
        }
        Target::Grant { capability, .. } => {
            vec![("level", with(Target::Grant { capability: capability.clone(), level: Level::Read }))]
        }
        Target::Gpu { device, .. } => {
            let modes = GpuMode::ALL.iter();
            modes.map(|mode| ("mode", with(Target::Gpu { device: device.clone(), mode: *mode }))).collect()
        }
        Target::Package { .. } => {
            let names = mentioned.names.iter();
            names.map(|name| ("packages", with(Target::Package { name: name.clone() }))).collect()
        }
        _ => Vec::new(),
    }
}

/// The field that holds what a target names.
const fn scope(target: &Target) -> &'static str {
    match target {
        Target::NetEgress { address: Some(_), .. } => "cidrs",
        Target::NetEgress { .. } => "domains",
        Target::FsScope { write: true, .. } => "write",
        Target::FsScope { write: false, .. } => "read",
        Target::Clipboard { copy_out: true } => "copy_out",
        Target::Clipboard { copy_out: false } => "paste_in",
        Target::Gpu { .. } => "device_ids",
        Target::Package { .. } | Target::Elevated => "scope",
        Target::LinuxCapability { .. } => "linux_capabilities",
        Target::Persistence { .. } => "paths",
        Target::Credentials { .. } => "broker_scopes",
        Target::Camera => "camera",
        Target::Mic => "mic",
        Target::Usb { .. } => "usb",
        Target::InputInject => "input_inject",
        Target::Grant { .. } => "grants",
    }
}

/// What the policies of a side mention.
#[derive(Default)]
struct Mentions {
    ports: Vec<u16>,
    workspaces: Vec<String>,
    personas: Vec<String>,
    names: Vec<String>,
}

impl Mentions {
    fn of(side: &CapabilitySide<'_, '_>) -> Self {
        let mut out = Mentions::default();
        for policy in &side.policies {
            policy.condition.atoms(&mut |atom| match atom {
                CapabilityAtom::Ports(ports) => out.ports.extend(ports),
                CapabilityAtom::Workspace(names) => out.workspaces.extend(names.iter().cloned()),
                CapabilityAtom::Persona(names) => out.personas.extend(names.iter().cloned()),
                CapabilityAtom::Text(Text::Name, names) => out.names.extend(names.iter().cloned()),
                _ => {}
            });
        }
        out
    }
}
