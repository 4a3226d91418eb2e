//! The requests of a class and subject that policies can tell apart.
//!
//! Every statement that a policy makes is about one part of a request (host, port, path, …), and
//! tells finitely many values of it apart. Taking one value of each kind, and one that no statement
//! mentions, gives finitely many requests; a request that two versions decide differently exists
//! among all requests exactly if it does among these.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;

use super::paths::paths;
use crate::compile::{CapabilityAtom, CapabilityPolicy, Fact, Text};
use crate::model::{
    CapabilityRequest, Class, GpuMode, HostPattern, Level, Lifecycle, Subject, Subtree, Target, is_within_domain,
};

/// What statements mention.
#[derive(Default)]
struct Mentioned<'a> {
    hosts: BTreeSet<&'a str>,
    networks: BTreeSet<IpNet>,
    ports: BTreeSet<u16>,
    facts: BTreeSet<Fact>,
    texts: BTreeSet<(Text, &'a str)>,
    places: BTreeSet<&'a Subtree>,
    workspaces: BTreeSet<&'a str>,
    personas: BTreeSet<&'a str>,
    times: BTreeSet<i64>,
}

impl<'a> Mentioned<'a> {
    fn new(policies: &[&'a CapabilityPolicy]) -> Self {
        let mut out = Mentioned::default();
        for policy in policies {
            policy.condition.atoms(&mut |atom| out.see(atom));
        }
        out
    }

    fn see(&mut self, atom: &'a CapabilityAtom) {
        match atom {
            CapabilityAtom::Host(patterns) => self.hosts.extend(patterns.iter().filter_map(|pattern| match pattern {
                HostPattern::Exact(name) | HostPattern::SubDomains(name) | HostPattern::DomainTree(name) => {
                    Some(name.as_str())
                }
                HostPattern::Network(_) => None,
            })),
            CapabilityAtom::Address(nets) | CapabilityAtom::Reaches(nets) => self.networks.extend(nets),
            CapabilityAtom::Ports(ports) => self.ports.extend(ports),
            CapabilityAtom::Fact(fact) => {
                self.facts.insert(*fact);
            }
            CapabilityAtom::Text(field, values) => {
                self.texts.extend(values.iter().map(|value| (*field, value.as_str())));
            }
            CapabilityAtom::Under(place) => {
                self.places.insert(place);
            }
            CapabilityAtom::Workspace(names) => self.workspaces.extend(names.iter().map(String::as_str)),
            CapabilityAtom::Persona(names) => self.personas.extend(names.iter().map(String::as_str)),
            CapabilityAtom::Before(time) => {
                self.times.insert(*time);
            }
            // Deeper paths are refused on both sides.
            CapabilityAtom::Lifecycle(_) | CapabilityAtom::Level(_) | CapabilityAtom::Deeper(_) => {}
        }
    }

    /// `false`, and `true` where a statement mentions the fact.
    fn truths(&self, fact: Fact) -> Vec<bool> {
        if self.facts.contains(&fact) { vec![false, true] } else { vec![false] }
    }

    /// The texts of a field, and one that nothing mentions.
    fn texts(&self, field: Text, fresh: &str) -> Vec<String> {
        let mentioned = self.texts.iter().filter(|(own, _)| *own == field).map(|(_, text)| (*text).to_owned());
        let mut other = (0_u32..).map(|n| if n == 0 { fresh.to_owned() } else { format!("{fresh}{n}") });
        let other = other.find(|text| !self.texts.contains(&(field, text.as_str())));
        other.into_iter().chain(mentioned).collect()
    }

    /// Each host that is mentioned, a name below it, and another: a host is told apart by the
    /// mentioned names that it is or lies below.
    fn hosts(&self) -> Vec<String> {
        let mut out = Vec::new();
        for host in &self.hosts {
            out.push((*host).to_owned());
            let mut below = fresh(&["api", "www"]).map(|label| format!("{label}.{host}"));
            out.extend(below.find(|name| !self.hosts.contains(name.as_str())));
        }
        let mut others =
            ["other.example".to_owned()].into_iter().chain(fresh(&[]).map(|label| format!("other.{label}")));
        out.extend(others.find(|name| !self.hosts.iter().any(|host| is_within_domain(name, host))));
        out
    }

    /// The first address of each network and the first behind it, and public ones.
    fn addresses(&self) -> Vec<IpAddr> {
        let mut out: BTreeSet<IpAddr> = BTreeSet::new();
        for net in &self.networks {
            out.insert(net.network());
            out.extend(match net.broadcast() {
                IpAddr::V4(last) => u32::from(last).checked_add(1).map(|n| IpAddr::V4(Ipv4Addr::from(n))),
                IpAddr::V6(last) => u128::from(last).checked_add(1).map(|n| IpAddr::V6(Ipv6Addr::from(n))),
            });
        }
        out.insert(IpAddr::V4(Ipv4Addr::new(9, 9, 9, 9)));
        out.insert(IpAddr::V6(Ipv6Addr::new(0x2620, 0xfe, 0, 0, 0, 0, 0, 0xfe)));
        out.into_iter().collect()
    }
}

/// These names, and others without end.
pub(super) fn fresh<'n>(first: &'n [&str]) -> impl Iterator<Item = String> + 'n {
    first.iter().map(|name| (*name).to_owned()).chain((0_u32..).map(|n| format!("x{n}")))
}

/// One request of each kind that the policies can tell apart, all about `class` and `subject`. Of
/// `others`, which hold on both sides of a comparison, only networks inside of those that the
/// policies mention count.
pub(super) fn requests(
    class: Class,
    subject: &Subject,
    policies: &[&CapabilityPolicy],
    others: &[&CapabilityPolicy],
) -> Vec<CapabilityRequest> {
    let mut mentioned = Mentioned::new(policies);
    let inside: Vec<IpNet> = Mentioned::new(others)
        .networks
        .into_iter()
        .filter(|net| mentioned.networks.iter().any(|own| own.contains(net)))
        .collect();
    mentioned.networks.extend(inside);
    let names = |known: &BTreeSet<&str>, usual: &str| -> Vec<String> {
        let mut others = std::iter::once(usual.to_owned()).chain(fresh(&[]).map(|name| format!("{usual}-{name}")));
        let other = others.find(|name| !known.contains(name.as_str()));
        other.into_iter().chain(known.iter().map(|name| (*name).to_owned())).collect()
    };
    let workspaces = names(&mentioned.workspaces, "workspace");
    let personas = names(&mentioned.personas, "persona");
    let mut times: Vec<i64> = vec![0];
    times.extend(mentioned.times.iter().flat_map(|time| [time - 1, *time]));
    let mut out = Vec::new();
    for target in targets(class, &mentioned) {
        // Grants say nothing about lifecycles.
        for lifecycle in if class == Class::Grant { &[Lifecycle::Once] } else { Lifecycle::ALL } {
            for external in mentioned.truths(Fact::External) {
                for sensitive in mentioned.truths(Fact::Sensitive) {
                    for workspace in &workspaces {
                        for persona in &personas {
                            for now in &times {
                                out.push(CapabilityRequest {
                                    workspace: workspace.clone(),
                                    persona: persona.clone(),
                                    lifecycle: *lifecycle,
                                    external,
                                    sensitive,
                                    now: *now,
                                    ..CapabilityRequest::new(subject.clone(), target.clone())
                                });
                            }
                        }
                    }
                }
            }
        }
    }
    out
}

fn targets(class: Class, mentioned: &Mentioned<'_>) -> Vec<Target> {
    let mut out = Vec::new();
    match class {
        Class::NetEgress => {
            let mut ports: Vec<u16> = mentioned.ports.iter().copied().collect();
            ports.extend([443, 80, 8443, 9443].into_iter().find(|port| !mentioned.ports.contains(port)));
            // Where nothing asks for it, a witness need not speak of it.
            let inspected = mentioned.truths(Fact::TlsInspect).into_iter().map(|other| !other).collect::<Vec<_>>();
            // What the proxy connects to matters as soon as it is not public, and only then.
            let hosts = mentioned.hosts().into_iter().map(|host| (host, None));
            let addresses = mentioned.addresses().into_iter().map(|address| (String::new(), Some(address)));
            for (host, address) in hosts.chain(addresses) {
                for port in &ports {
                    for tls_inspect in &inspected {
                        let (host, port, tls_inspect) = (host.clone(), *port, *tls_inspect);
                        out.push(Target::NetEgress { host, address, peer: None, port, tls_inspect });
                    }
                }
            }
        }
        Class::FsScope => {
            for path in paths(&mentioned.places) {
                out.push(Target::FsScope { write: false, path: path.clone() });
                out.push(Target::FsScope { write: true, path });
            }
        }
        Class::Clipboard => out.extend([false, true].map(|copy_out| Target::Clipboard { copy_out })),
        Class::Gpu => {
            for device in mentioned.texts(Text::Device, "0") {
                out.extend(GpuMode::ALL.iter().map(|mode| Target::Gpu { device: device.clone(), mode: *mode }));
            }
        }
        Class::InstallPrivileged => {
            for name in mentioned.texts(Text::Name, "curl") {
                out.push(Target::Package { name: name.clone() });
                out.push(Target::LinuxCapability { name });
            }
            out.push(Target::LinuxCapability { name: "CAP_CHOWN".into() });
            out.push(Target::Elevated);
        }
        Class::Persistence => {
            for path in paths(&mentioned.places) {
                out.extend(
                    [false, true].map(|survives_session| Target::Persistence { path: path.clone(), survives_session }),
                );
            }
        }
        Class::Credentials => {
            for broker_scope in mentioned.texts(Text::BrokerScope, "other:scope") {
                out.extend([false, true].map(|raw| Target::Credentials { broker_scope: broker_scope.clone(), raw }));
            }
        }
        Class::Peripheral => {
            out.extend([Target::Camera, Target::Mic, Target::InputInject]);
            out.extend(mentioned.texts(Text::Device, "ffff:ffff").into_iter().map(|device| Target::Usb { device }));
        }
        Class::Grant => {
            for capability in mentioned.texts(Text::Capability, "other:action") {
                out.extend(
                    Level::ALL.iter().map(|level| Target::Grant { capability: capability.clone(), level: *level }),
                );
            }
        }
    }
    out
}
