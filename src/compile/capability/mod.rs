//! Capability manifests → policies (DESIGN 4 and 5).
//!
//! An entry of tier k permits the rungs from k on and forbids those below, so that the strictest
//! of the entries that hold wins; `block` forbids all. Each subject is a resource of its own: the
//! gateway asks every manifest that applies, and all must allow. Guardrails hold for all subjects.

mod cedar;
mod condition;
mod files;
mod guardrails;
mod schema;

pub(crate) use cedar::cedar_time;
pub(super) use cedar::meaning;
pub use cedar::{capability_text, template_text};
pub use condition::{CapabilityAtom, Condition, Fact, Text};
pub(crate) use condition::{request_path, request_text};
pub use schema::{CAPABILITIES, action_name, capability_schema};

use std::collections::BTreeSet;
use std::ops::Range;

use super::Effect;
use crate::model::{
    CAPABILITY_RUNGS, CapabilityEntry, CapabilityRequest, Class, Grant, Manifest, PolicySet, RiskTier, Scope, Subject,
};
use crate::source::Span;

/// Where a policy about capabilities comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CapabilityOrigin {
    /// An entry of a manifest.
    Entry {
        /// Where the entry stands.
        span: Span,
    },
    /// A guardrail that no manifest can lift, with what it protects.
    Guardrail(&'static str),
}

/// A policy about capabilities.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CapabilityPolicy {
    /// Cedar policy id.
    pub id: String,
    /// Permit or forbid.
    pub effect: Effect,
    /// Its class.
    pub class: Class,
    /// The rungs that it is about.
    pub rungs: Range<u8>,
    /// The subject that it is about; all when `None`.
    pub subject: Option<Subject>,
    /// When it holds.
    pub condition: Condition,
    /// Where it comes from.
    pub origin: CapabilityOrigin,
}

impl CapabilityPolicy {
    /// Whether it holds for a request.
    pub fn holds(&self, request: &CapabilityRequest) -> bool {
        self.class == request.target.class()
            && self.subject.as_ref().is_none_or(|subject| *subject == request.subject)
            && self.condition.holds(request)
    }

    /// Whether it says the same as another, wherever both stand.
    pub fn says_the_same(&self, other: &CapabilityPolicy) -> bool {
        (self.effect, self.class, &self.rungs, &self.subject, &self.condition)
            == (other.effect, other.class, &other.rungs, &other.subject, &other.condition)
    }

    /// Where its entry stands.
    pub const fn span(&self) -> Option<Span> {
        match self.origin {
            CapabilityOrigin::Entry { span } => Some(span),
            CapabilityOrigin::Guardrail(_) => None,
        }
    }
}

/// Policies of all manifests of a set and the guardrails; none where the set has no manifest.
pub fn capability_policies(set: &PolicySet) -> Vec<CapabilityPolicy> {
    if set.manifests.is_empty() {
        return Vec::new();
    }
    let mut out = guardrails::guardrails(set);
    let declared = declared(set);
    for manifest in &set.manifests {
        out.extend(policies_of(manifest, &manifest.subject, &declared));
    }
    out
}

/// Capabilities that some integration declares. What none declares is refused, whoever grants it.
pub fn declared(set: &PolicySet) -> BTreeSet<&str> {
    set.manifests.iter().flat_map(|manifest| manifest.declares.keys()).map(String::as_str).collect()
}

/// Policies of one manifest, as if it were about `subject`: its own, or the one that is compared
/// with it.
pub fn policies_of(manifest: &Manifest, subject: &Subject, declared: &BTreeSet<&str>) -> Vec<CapabilityPolicy> {
    let mut out = Vec::new();
    let tree = files::Tree::new(manifest);
    for class in Class::LISTED.iter().copied() {
        for (number, entry) in manifest.entries_of(class).enumerate() {
            let place = Made { manifest, tree: &tree, subject, name: format!("{class}/{}", number + 1) };
            place.entry(entry, &mut out);
        }
    }
    for grant in manifest.grants.values().filter(|grant| declared.contains(grant.capability.as_str())) {
        let place = Made { manifest, tree: &tree, subject, name: format!("grants/{}", grant.capability) };
        place.grant(grant, &mut out);
    }
    out
}

/// What policies are made for.
struct Made<'a> {
    manifest: &'a Manifest,
    /// Its places in the file system.
    tree: &'a files::Tree<'a>,
    subject: &'a Subject,
    /// Their place in the manifest.
    name: String,
}

impl Made<'_> {
    fn push(
        &self,
        out: &mut Vec<CapabilityPolicy>,
        part: (&str, Effect, Range<u8>),
        of: (Class, Span),
        condition: Condition,
    ) {
        let ((name, effect, rungs), (class, span)) = (part, of);
        if rungs.is_empty() || condition == Condition::FALSE {
            return;
        }
        let subject = self.subject;
        out.push(CapabilityPolicy {
            id: format!("{}/{}/{}/{name}", subject.kind, subject.name, self.name),
            effect,
            class,
            rungs,
            subject: Some(subject.clone()),
            condition,
            origin: CapabilityOrigin::Entry { span },
        });
    }

    /// A session's grants end.
    fn ends(&self) -> Option<Condition> {
        self.manifest.expires.map(|time| CapabilityAtom::Before(time).into())
    }

    fn entry(&self, entry: &CapabilityEntry, out: &mut Vec<CapabilityPolicy>) {
        let of = (entry.scope.class(), entry.span);
        let tier = entry.tier.number();
        let broad = match &entry.scope {
            // Which entry counts for a path depends on all of them.
            Scope::FsScope { .. } if entry.tier != RiskTier::Block => self.tree.condition(entry),
            other => scope(other),
        };
        if entry.tier == RiskTier::Block {
            self.push(out, ("block", Effect::Forbid, 0..CAPABILITY_RUNGS), of, broad);
            return;
        }
        let mut narrow = vec![broad.clone(), CapabilityAtom::Lifecycle(entry.lifecycle).into()];
        match &entry.scope {
            Scope::NetEgress { ports, tls_inspect, .. } => {
                if ports.is_none() {
                    narrow.push(CapabilityAtom::Ports(vec![443]).into());
                }
                if *tls_inspect {
                    narrow.push(CapabilityAtom::Fact(Fact::TlsInspect).into());
                }
            }
            Scope::Persistence { survives_session: false, .. } => {
                narrow.push(Condition::from(CapabilityAtom::Fact(Fact::SurvivesSession)).negated());
            }
            _ => {}
        }
        narrow.extend(self.ends());
        self.push(out, ("permit", Effect::Permit, tier..CAPABILITY_RUNGS), of, Condition::all(narrow));
        self.push(out, ("forbid", Effect::Forbid, 0..tier), of, broad);
    }

    fn grant(&self, grant: &Grant, out: &mut Vec<CapabilityPolicy>) {
        let of = (Class::Grant, grant.span);
        let named: Condition = CapabilityAtom::Text(Text::Capability, vec![grant.capability.clone()]).into();
        let mut all = vec![named, CapabilityAtom::Level(grant.level).into()];
        if !grant.workspaces.is_empty() {
            all.push(CapabilityAtom::Workspace(grant.workspaces.clone()).into());
        }
        if !grant.personas.is_empty() {
            all.push(CapabilityAtom::Persona(grant.personas.clone()).into());
        }
        all.extend(self.ends());
        let ask = RiskTier::Ask.number();
        let attended = grant.requires_approval || !grant.unattended_in.is_empty();
        let from = if attended { ask } else { RiskTier::Auto.number() };
        self.push(out, ("permit", Effect::Permit, from..CAPABILITY_RUNGS), of, Condition::all(all.clone()));
        if attended && !grant.unattended_in.is_empty() {
            all.push(CapabilityAtom::Workspace(grant.unattended_in.clone()).into());
            self.push(out, ("permit-unattended", Effect::Permit, 0..ask), of, Condition::all(all));
        }
    }
}

/// What an entry is about, whatever it demands besides.
fn scope(scope: &Scope) -> Condition {
    let text = |field, values: &[String]| Condition::from(CapabilityAtom::Text(field, values.to_vec()));
    let kind = |name: &str| Condition::from(CapabilityAtom::Text(Text::Kind, vec![name.to_owned()]));
    match scope {
        Scope::NetEgress { domains, cidrs, ports, .. } => {
            let mut hosts = Vec::new();
            if !domains.is_empty() {
                hosts.push(CapabilityAtom::Host(domains.clone()).into());
            }
            if !cidrs.is_empty() {
                hosts.push(CapabilityAtom::Address(cidrs.clone()).into());
            }
            let mut all = vec![Condition::one(hosts)];
            // An entry that names no port restricts every one.
            all.extend(ports.as_ref().map(|ports| CapabilityAtom::Ports(ports.clone()).into()));
            Condition::all(all)
        }
        Scope::FsScope { read, write, deny } => files::blocked(read, write, deny),
        Scope::Clipboard { paste_in, copy_out } => Condition::one(
            [("paste_in", *paste_in), ("copy_out", *copy_out)]
                .into_iter()
                .filter(|(_, on)| *on)
                .map(|(name, _)| kind(name))
                .collect(),
        ),
        Scope::Gpu { device_ids, mode } => Condition::all(vec![text(Text::Device, device_ids), kind(mode.name())]),
        Scope::InstallPrivileged { any, packages, capabilities } => {
            let mut parts = Vec::new();
            match packages {
                None => parts.push(kind("package")),
                Some(packages) if packages.is_empty() => {}
                Some(packages) => parts.push(Condition::all(vec![kind("package"), text(Text::Name, packages)])),
            }
            if *any {
                parts.push(kind("elevated"));
            }
            if !capabilities.is_empty() {
                parts.push(Condition::all(vec![kind("linux_capability"), text(Text::Name, capabilities)]));
            }
            Condition::one(parts)
        }
        Scope::Persistence { paths, .. } => {
            let all =
                vec![Condition::one(paths.iter().map(|place| CapabilityAtom::Under(place.clone()).into()).collect())];
            Condition::all(all)
        }
        Scope::Credentials { broker_scopes } => text(Text::BrokerScope, broker_scopes),
        Scope::Peripheral { camera, mic, usb, input_inject } => {
            let switches = [("camera", *camera), ("mic", *mic), ("input_inject", *input_inject)];
            let mut parts: Vec<Condition> =
                switches.into_iter().filter(|(_, on)| *on).map(|(name, _)| kind(name)).collect();
            if !usb.is_empty() {
                parts.push(Condition::all(vec![kind("usb"), text(Text::Device, usb)]));
            }
            Condition::one(parts)
        }
    }
}
