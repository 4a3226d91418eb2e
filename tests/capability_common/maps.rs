//! Manifests as text over a tiny alphabet, their mutations, their rewritings, and requests.

use std::fmt::Write as _;

use polctl::model::{CapabilityRequest, Class, GpuMode, Level, Lifecycle, Subject, SubjectKind, Target};

use crate::common::Tape;

/// Home of every manifest that has one.
pub const HOME: &str = "/home/u";
/// When sessions end.
pub const ENDS: [(&str, i64); 2] = [("2026-12-01T00:00:00Z", 1_796_083_200), ("2027-01-01T00:00:00Z", 1_798_761_600)];

const TIERS: [&str; 8] = ["auto", "auto", "auto", "notify", "notify", "ask", "ask", "block"];
const HOSTS: [&str; 8] = [
    "a.example.org",
    "*.a.example.org",
    "**.a.example.org",
    "**.b.a.example.org",
    "*.b.a.example.org",
    "b.a.example.org",
    "**.example.org",
    "c.b.a.example.org",
];
const CIDRS: [&str; 11] = [
    "9.9.9.0/24",
    "9.9.0.0/16",
    "9.9.0.0/17",
    "9.9.128.0/17",
    "9.9.9.9/32",
    "9.9.9.8/31",
    "2606:4700::/32",
    "2606:4700:1::/48",
    "2606:4700:1::1/128",
    "192.0.0.0/8",
    "10.0.0.0/8",
];
const PLACES: [&str; 15] = [
    "/r",
    "/r/a",
    "/r/a/b",
    "/r/a/b",
    "/r/z",
    "/s",
    "/",
    "~/x",
    "~",
    "/home/u/x",
    "/home/u",
    "/home/v/x",
    "/root/x",
    "~/.ssh",
    "/opt",
];
const LEVELS: [&str; 5] = ["read", "organize", "draft", "execute", "admin"];
const WORKSPACES: [&str; 3] = ["workspace", "w1", "w2"];
const PERSONAS: [&str; 3] = ["persona", "p1", "p2"];
const GRANTS: [&str; 3] = ["email:read", "email:send", "cal:x"];

/// The value of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Field {
    /// A list, with or without quotes.
    List(Vec<String>, bool),
    /// A bare word.
    Word(String),
}

impl Field {
    fn text(&self) -> String {
        match self {
            Field::List(items, true) => {
                format!("[{}]", items.iter().map(|item| format!("\"{item}\"")).collect::<Vec<_>>().join(", "))
            }
            Field::List(items, false) => format!("[{}]", items.join(", ")),
            Field::Word(word) => word.clone(),
        }
    }
}

type Fields = Vec<(&'static str, Field)>;

fn fields_text(fields: &Fields) -> String {
    fields.iter().map(|(name, value)| format!("{name}: {}", value.text())).collect::<Vec<_>>().join(", ")
}

/// One entry, as text.
#[derive(Clone, Debug)]
pub struct Item {
    class: Class,
    fields: Fields,
}

/// One manifest, as text.
#[derive(Clone, Debug)]
pub struct Doc {
    /// What it is about.
    pub kind: SubjectKind,
    /// Its name.
    pub name: &'static str,
    /// `parent`.
    pub parent: Option<&'static str>,
    administrative: bool,
    home: bool,
    declares: Vec<String>,
    expires: Option<usize>,
    items: Vec<Item>,
    grants: Vec<(&'static str, Fields)>,
}

impl Doc {
    /// Its subject.
    pub fn subject(&self) -> Subject {
        Subject { kind: self.kind, name: self.name.to_owned() }
    }

    /// Its file.
    pub fn path(&self) -> String {
        format!("{}-{}.yaml", self.kind, self.name)
    }

    /// The same entries and grants, of a session.
    pub fn as_session(&self, name: &'static str) -> Doc {
        Doc {
            kind: SubjectKind::Session,
            name,
            parent: Some("image-img.yaml"),
            declares: Vec::new(),
            expires: Some(0),
            ..self.clone()
        }
    }

    /// Its text.
    pub fn yaml(&self) -> String {
        let mut out = format!("polctl: v1\nsubject: {{ {}: {} }}\n", self.kind, self.name);
        if let Some(parent) = self.parent {
            writeln!(out, "parent: {parent}").unwrap();
        }
        if self.administrative {
            out.push_str("administrative: true\n");
        }
        if self.home {
            writeln!(out, "home: {HOME}").unwrap();
        }
        if !self.declares.is_empty() {
            writeln!(
                out,
                "declares: [{}]",
                self.declares.iter().map(|d| format!("\"{d}\"")).collect::<Vec<_>>().join(", ")
            )
            .unwrap();
        }
        if let Some(at) = self.expires {
            writeln!(out, "expires: {}", ENDS[at].0).unwrap();
        }
        if !self.items.is_empty() {
            out.push_str("capabilities:\n");
        }
        for class in Class::LISTED.iter().copied() {
            let own: Vec<&Item> = self.items.iter().filter(|item| item.class == class).collect();
            if own.is_empty() {
                continue;
            }
            writeln!(out, "  {class}:").unwrap();
            own.iter().for_each(|item| writeln!(out, "    - {{ {} }}", fields_text(&item.fields)).unwrap());
        }
        if !self.grants.is_empty() {
            out.push_str("grants:\n");
        }
        for (name, fields) in &self.grants {
            writeln!(out, "  {name}: {{ {} }}", fields_text(fields)).unwrap();
        }
        out
    }
}

fn word(text: impl Into<String>) -> Field {
    Field::Word(text.into())
}

fn list(tape: &mut Tape<'_>, values: &[&str]) -> Field {
    let mut picked = tape.some(values);
    picked.sort();
    picked.dedup();
    Field::List(picked, true)
}

/// Classes that a set of manifests is about: few, so that entries meet.
pub fn theme(tape: &mut Tape<'_>) -> Vec<Class> {
    let count = 1 + tape.below(2);
    let heavy = [
        Class::NetEgress,
        Class::FsScope,
        Class::Persistence,
        Class::Grant,
        Class::InstallPrivileged,
        Class::FsScope,
        Class::NetEgress,
        Class::Gpu,
        Class::Peripheral,
        Class::Credentials,
        Class::Clipboard,
    ];
    let mut out: Vec<Class> = (0..count).map(|_| tape.one(&heavy)).collect();
    out.sort();
    out.dedup();
    out
}

fn item(tape: &mut Tape<'_>, class: Class, doc: (bool, bool)) -> Item {
    let (administrative, home) = doc;
    let mut fields: Fields = vec![("tier", word(tape.one(&TIERS)))];
    match tape.below(if administrative { 5 } else { 4 }) {
        0 | 1 => {}
        2 => fields.push(("lifecycle", word("session"))),
        3 => fields.push(("lifecycle", word("once"))),
        _ => fields.push(("lifecycle", word("standing"))),
    }
    let flag = |tape: &mut Tape<'_>, name: &'static str, percent: usize, fields: &mut Fields| {
        if tape.chance(percent) {
            fields.push((name, word(if tape.chance(85) { "true" } else { "false" })));
        }
    };
    let places: Vec<&str> = PLACES.iter().copied().filter(|place| home || !place.starts_with('~')).collect();
    match class {
        Class::NetEgress => {
            let which = tape.below(3);
            if which != 1 {
                fields.push(("domains", list(tape, &HOSTS)));
            }
            if which != 0 {
                fields.push(("cidrs", list(tape, &CIDRS)));
            }
            if tape.chance(40) {
                let Field::List(ports, _) = list(tape, &["443", "80"]) else { unreachable!() };
                fields.push(("ports", Field::List(ports, false)));
            }
            flag(tape, "tls_inspect", 35, &mut fields);
        }
        Class::FsScope => {
            let which = tape.below(3);
            for (at, name) in ["read", "write", "deny"].into_iter().enumerate() {
                if at == which || tape.chance(25) {
                    let deniable = if at == 2 { &PLACES[..] } else { &places };
                    fields.push((name, list(tape, deniable)));
                }
            }
        }
        Class::Clipboard => {
            let which = tape.below(2);
            for (at, name) in ["paste_in", "copy_out"].into_iter().enumerate() {
                if at == which {
                    fields.push((name, word("true")));
                } else {
                    flag(tape, name, 40, &mut fields);
                }
            }
        }
        Class::Gpu => {
            fields.push(("device_ids", list(tape, &["0", "1"])));
            fields.push(("mode", word(tape.one(&["compute", "render"]))));
        }
        Class::InstallPrivileged => {
            let which = tape.below(4);
            match which {
                0 => fields.push(("scope", word("any"))),
                1 => fields.push(("scope", word("pkg"))),
                2 => {
                    fields.push(("scope", word("pkg")));
                    fields.push(("packages", list(tape, &["a", "b"])));
                }
                _ => {}
            }
            if which == 3 || tape.chance(30) {
                fields.push(("linux_capabilities", list(tape, &["CAP_NET_RAW", "CAP_NET_ADMIN", "CAP_BPF"])));
            }
        }
        Class::Persistence => {
            fields.push(("paths", list(tape, &places)));
            flag(tape, "survives_session", 50, &mut fields);
        }
        Class::Credentials => {
            fields.push(("broker_scopes", list(tape, &["git:push", "git:pull"])));
            if tape.chance(20) {
                fields.push(("never_raw", word("true")));
            }
        }
        Class::Peripheral => {
            let which = tape.below(4);
            for (at, name) in ["camera", "mic", "input_inject"].into_iter().enumerate() {
                if at == which {
                    fields.push((name, word("true")));
                } else {
                    flag(tape, name, 30, &mut fields);
                }
            }
            if which == 3 || tape.chance(30) {
                fields.push(("usb", list(tape, &["1050:0407", "1050:0408"])));
            }
        }
        Class::Grant => unreachable!(),
    }
    Item { class, fields }
}

fn grant(tape: &mut Tape<'_>) -> Fields {
    let mut fields: Fields = vec![("level", word(tape.one(&LEVELS)))];
    let workspaces = tape.chance(40).then(|| tape.some(&WORKSPACES));
    if tape.chance(50) {
        fields.push(("requires_approval", word(if tape.chance(85) { "true" } else { "false" })));
    }
    if tape.chance(30) {
        // Only workspaces that the grant is for.
        let among: Vec<&str> = match &workspaces {
            Some(workspaces) => workspaces.iter().map(String::as_str).collect(),
            None => WORKSPACES.to_vec(),
        };
        fields.push(("unattended_in", list(tape, &among)));
    }
    if let Some(workspaces) = workspaces {
        fields.push(("workspaces", Field::List(workspaces, true)));
    }
    if tape.chance(40) {
        fields.push(("personas", list(tape, &PERSONAS)));
    }
    if tape.chance(30) {
        fields.push(("ttl", word(tape.one(&["15m", "1h"]))));
    }
    fields
}

fn grants(tape: &mut Tape<'_>) -> Vec<(&'static str, Fields)> {
    let keep: Vec<bool> = GRANTS.iter().map(|_| tape.chance(65)).collect();
    GRANTS.into_iter().zip(keep).filter(|(_, keep)| *keep).map(|(name, _)| (name, grant(tape))).collect()
}

/// A manifest of a theme.
pub fn doc(tape: &mut Tape<'_>, kind: SubjectKind, name: &'static str, theme: &[Class]) -> Doc {
    let administrative = tape.chance(30);
    let home = tape.chance(60);
    let declares = if kind == SubjectKind::Integration && tape.chance(90) { tape.some(&GRANTS) } else { Vec::new() };
    let session = kind == SubjectKind::Session;
    let mut out = Doc {
        kind,
        name,
        parent: session.then_some("image-img.yaml"),
        administrative,
        home,
        declares,
        expires: session.then(|| tape.below(2)),
        items: Vec::new(),
        grants: Vec::new(),
    };
    for class in theme {
        if *class == Class::Grant {
            out.grants = grants(tape);
            continue;
        }
        for _ in 0..=tape.below(4) {
            out.items.push(item(tape, *class, (administrative, home)));
        }
    }
    out
}

/// The manifests of a set: an image and an integration, often a persona or a session.
pub fn docs(tape: &mut Tape<'_>, theme: &[Class]) -> Vec<Doc> {
    let mut out = vec![doc(tape, SubjectKind::Image, "img", theme)];
    if theme.contains(&Class::Grant) || tape.chance(20) {
        out.push(doc(tape, SubjectKind::Integration, "mail", theme));
    }
    if tape.chance(20) {
        out.push(doc(tape, SubjectKind::Persona, "img", theme));
    }
    if tape.chance(30) {
        out.push(doc(tape, SubjectKind::Session, "s", theme));
    }
    out
}

/// A version of a manifest with one change that may matter.
pub fn mutate(tape: &mut Tape<'_>, doc: &mut Doc, theme: &[Class]) {
    let class = tape.one(theme);
    let flags = (doc.administrative, doc.home);
    if class == Class::Grant {
        match tape.below(4) {
            0 => doc.grants = grants(tape),
            1 if !doc.declares.is_empty() => doc.declares = tape.some(&GRANTS),
            _ if doc.grants.is_empty() => doc.grants = grants(tape),
            _ => {
                let at = tape.below(doc.grants.len());
                change_grant(tape, &mut doc.grants[at].1);
            }
        }
        return;
    }
    let own: Vec<usize> = (0..doc.items.len()).filter(|at| doc.items[*at].class == class).collect();
    if doc.expires.is_some() && tape.chance(25) {
        doc.expires = Some(tape.below(2));
    }
    if own.is_empty() || tape.chance(10) {
        doc.items.push(item(tape, class, flags));
        return;
    }
    let at = tape.one(&own);
    match tape.below(8) {
        0 => {
            doc.items.remove(at);
        }
        1 => doc.items[at] = item(tape, class, flags),
        2 | 3 => doc.items[at].fields[0].1 = word(tape.one(&TIERS)),
        4 => {
            doc.items[at].fields.retain(|(name, _)| *name != "lifecycle");
            if tape.chance(50) {
                doc.items[at].fields.push(("lifecycle", word("once")));
            }
        }
        5 => {
            for (_, value) in &mut doc.items[at].fields {
                if let Field::Word(text) = value
                    && let Some(other) = [("true", "false"), ("compute", "render")]
                        .into_iter()
                        .find_map(|(a, b)| if text == a { Some(b) } else { (text == b).then_some(a) })
                {
                    *text = other.to_owned();
                }
            }
        }
        _ => change_list(tape, class, flags, &mut doc.items[at]),
    }
    // What says nothing any more is an error, so it goes.
    doc.items.retain(|item| match item.class {
        Class::Clipboard | Class::Peripheral => {
            item.fields.iter().any(|(_, value)| matches!(value, Field::List(..)) || *value == word("true"))
        }
        Class::Credentials => !item.fields.contains(&("never_raw", word("false"))),
        _ => true,
    });
}

fn change_list(tape: &mut Tape<'_>, class: Class, flags: (bool, bool), old: &mut Item) {
    let lists: Vec<usize> = (0..old.fields.len()).filter(|at| matches!(old.fields[*at].1, Field::List(..))).collect();
    let fresh = item(tape, class, flags);
    if lists.is_empty() {
        *old = fresh;
        return;
    }
    let (name, value) = &mut old.fields[lists[tape.below(lists.len())]];
    let Field::List(items, _) = value else { unreachable!() };
    if items.len() > 1 && tape.chance(50) {
        items.remove(tape.below(items.len()));
    } else if let Some((_, Field::List(more, _))) = fresh.fields.iter().find(|(other, _)| other == name) {
        items.extend(more.iter().cloned());
        items.sort();
        items.dedup();
    }
}

fn change_grant(tape: &mut Tape<'_>, fields: &mut Fields) {
    let fresh = grant(tape);
    match tape.below(4) {
        0 => fields[0] = fresh[0].clone(),
        1 => match fields.iter_mut().find(|(name, _)| *name == "requires_approval") {
            Some((_, value)) => *value = word(if *value == word("true") { "false" } else { "true" }),
            None => fields.push(("requires_approval", word("true"))),
        },
        2 => {
            fields.retain(|(name, _)| *name != "personas");
            fields.extend(fresh.into_iter().filter(|(name, _)| *name == "personas"));
        }
        _ => *fields = fresh,
    }
    // `unattended_in` names workspaces that the grant is for.
    let among = fields.iter().find_map(|(name, value)| match value {
        Field::List(items, _) if *name == "workspaces" => Some(items.clone()),
        _ => None,
    });
    if let Some(among) = among
        && let Some((_, Field::List(items, _))) = fields.iter_mut().find(|(name, _)| *name == "unattended_in")
    {
        items.retain(|item| among.contains(item));
        if items.is_empty() {
            fields.retain(|(name, _)| *name != "unattended_in");
        }
    }
}

/// The same manifest, written otherwise: entries in another order, `/x` as `/x/**`, one entry as
/// two, an entry twice, what is meant when absent written out.
pub fn rewrite(tape: &mut Tape<'_>, doc: &mut Doc) {
    let mut items = Vec::new();
    for mut item in std::mem::take(&mut doc.items) {
        if tape.chance(20) {
            items.push(item.clone());
        }
        // Without `ports` a stricter tier is about every port.
        let free = item.class == Class::NetEgress && item.fields.contains(&("tier", word("auto")));
        if free && !item.fields.iter().any(|(name, _)| *name == "ports") && tape.chance(50) {
            item.fields.push(("ports", Field::List(vec!["443".to_owned()], false)));
        }
        if !item.fields.iter().any(|(name, _)| *name == "lifecycle") && tape.chance(50) {
            item.fields.push(("lifecycle", word("session")));
        }
        let splits: Vec<usize> = (0..item.fields.len())
            .filter(|at| matches!(&item.fields[*at].1, Field::List(items, _) if items.len() > 1))
            .collect();
        if !splits.is_empty() && tape.chance(60) {
            let at = tape.one(&splits);
            let mut other = item.clone();
            let (Field::List(first, _), Field::List(second, _)) = (&mut item.fields[at].1, &mut other.fields[at].1)
            else {
                unreachable!()
            };
            let cut = 1 + tape.below(first.len() - 1);
            second.drain(..cut);
            first.truncate(cut);
            items.push(other);
        }
        for (name, value) in &mut item.fields {
            if let ("read" | "write" | "deny" | "paths", Field::List(items, _)) = (*name, value) {
                for text in items.iter_mut().filter(|text| text.as_str() != "/") {
                    if tape.chance(50) {
                        text.push_str("/**");
                    }
                }
            }
        }
        let turn = tape.below(item.fields.len());
        item.fields.rotate_left(turn);
        items.insert(tape.below(items.len() + 1), item);
    }
    doc.items = items;
    for (_, fields) in &mut doc.grants {
        if !fields.iter().any(|(name, _)| *name == "requires_approval") && tape.chance(50) {
            fields.push(("requires_approval", word("false")));
        }
        if tape.chance(50) {
            fields.push(("retry", word("at-most-once")));
        }
    }
    let at = tape.below(doc.grants.len().max(1));
    doc.grants.rotate_left(at);
}

fn path(text: &str) -> Vec<String> {
    text.split('/').filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

/// Paths near the places, and those that guardrails are about.
const PATHS: [&str; 56] = [
    "/",
    "/r",
    "/r/a",
    "/r/a/b",
    "/r/a/b/c",
    "/r/a/z",
    "/r/q",
    "/r/z",
    "/r/z/a",
    "/ra",
    "/s",
    "/s/a",
    "/t",
    "/home",
    "/home/u",
    "/home/u/x",
    "/home/u/x/y",
    "/home/u/z",
    "/home/v",
    "/home/v/x",
    "/home/v/x/y",
    "/home/v/z",
    "/home/w/x",
    "/root",
    "/root/x",
    "/root/x/y",
    "/root/z",
    "/Users",
    "/Users/w",
    "/Users/w/x",
    "/Users/w/x/y",
    "/opt",
    "/opt/z",
    "/r/1/2/3/4/5/6/7/8/9/10/11/12/13/14/15",
    "/r/1/2/3/4/5/6/7/8/9/10/11/12/13/14/15/16",
    "/home/u/.ssh",
    "/home/u/.ssh/id",
    "/home/v/.ssh/id",
    "/root/.ssh/id",
    "/Users/w/.aws/x",
    "/home/u/.gnupg/x",
    "/home/u/.bashrc",
    "/home/u/bin/x",
    "/home/u/.local/bin/x",
    "/root/.profile",
    "/usr/bin/t",
    "/opt/tools/t",
    "/opt/tools",
    "/etc/sudoers",
    "/etc/polctl/a",
    "/sys/x",
    "/proc/sys/x",
    "/run/docker.sock",
    "/var/run/docker.sock",
    "/pol/x",
    "/pol",
];

const REQUESTED_HOSTS: [&str; 11] = [
    "a.example.org",
    "b.a.example.org",
    "x.a.example.org",
    "c.b.a.example.org",
    "d.b.a.example.org",
    "e.d.b.a.example.org",
    "d.x.a.example.org",
    "xa.example.org",
    "example.org",
    "z.example.org",
    "other.test",
];
const REQUESTED_ADDRESSES: [&str; 17] = [
    "9.9.9.9",
    "9.9.9.8",
    "9.9.9.1",
    "9.9.8.1",
    "9.9.200.1",
    "9.8.0.1",
    "2606:4700:1::1",
    "2606:4700:1::2",
    "2606:4700:2::1",
    "2606:4701::1",
    "192.168.1.1",
    "192.1.1.1",
    "10.0.0.1",
    "127.0.0.1",
    "::1",
    "fd00::1",
    "::ffff:9.9.9.9",
];
const PEERS: [&str; 6] = ["9.9.9.9", "1.1.1.1", "10.0.0.1", "2606:4700::1", "::ffff:1.1.1.1", "169.254.169.254"];

fn egress() -> Vec<Target> {
    let named = REQUESTED_HOSTS.into_iter().map(|host| (host.to_owned(), None));
    let written = REQUESTED_ADDRESSES.into_iter().map(|address| (String::new(), Some(address.parse().unwrap())));
    let hosts: Vec<_> = named.chain(written).collect();
    let of = |(host, address): &(String, Option<std::net::IpAddr>)| {
        let mut out = Vec::new();
        for port in [443, 80, 22] {
            for tls_inspect in [true, false] {
                out.push(Target::NetEgress { host: host.clone(), address: *address, peer: None, port, tls_inspect });
            }
        }
        out
    };
    hosts.iter().flat_map(of).collect()
}

/// Every target of a class that the alphabet can tell apart.
pub fn targets(class: Class) -> Vec<Target> {
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let both = [false, true];
    match class {
        Class::NetEgress => egress(),
        Class::FsScope => {
            PATHS.iter().flat_map(|text| both.map(|write| Target::FsScope { write, path: path(text) })).collect()
        }
        Class::Persistence => PATHS
            .iter()
            .flat_map(|text| both.map(|survives_session| Target::Persistence { path: path(text), survives_session }))
            .collect(),
        Class::Clipboard => both.map(|copy_out| Target::Clipboard { copy_out }).to_vec(),
        Class::Gpu => names(&["0", "1", "2"])
            .into_iter()
            .flat_map(|device| {
                [GpuMode::Compute, GpuMode::Render].map(|mode| Target::Gpu { device: device.clone(), mode })
            })
            .collect(),
        Class::InstallPrivileged => {
            let packages = names(&["a", "b", "c"]).into_iter().map(|name| Target::Package { name });
            let capabilities = names(&["CAP_NET_RAW", "CAP_NET_ADMIN", "CAP_BPF", "CAP_SYS_ADMIN", "CAP_CHOWN"]);
            let capabilities = capabilities.into_iter().map(|name| Target::LinuxCapability { name });
            packages.chain(capabilities).chain([Target::Elevated]).collect()
        }
        Class::Credentials => names(&["git:push", "git:pull", "git:other"])
            .into_iter()
            .flat_map(|broker_scope| both.map(|raw| Target::Credentials { broker_scope: broker_scope.clone(), raw }))
            .collect(),
        Class::Peripheral => {
            let usb = names(&["1050:0407", "1050:0408", "1050:0409"]).into_iter().map(|device| Target::Usb { device });
            usb.chain([Target::Camera, Target::Mic, Target::InputInject]).collect()
        }
        Class::Grant => names(&["email:read", "email:send", "cal:x", "other:x"])
            .into_iter()
            .flat_map(|capability| {
                let of = |level: &Level| Target::Grant { capability: capability.clone(), level: *level };
                Level::ALL.iter().map(of).collect::<Vec<_>>()
            })
            .collect(),
    }
}

/// Every request of a small universe to a subject: all targets of some classes, in all
/// circumstances that manifests can tell apart.
pub fn universe(classes: &[Class], subject: &Subject) -> Vec<CapabilityRequest> {
    let mut out = Vec::new();
    let times: &[i64] =
        if subject.kind == SubjectKind::Session { &[0, ENDS[0].1 - 1, ENDS[0].1, ENDS[1].1] } else { &[0] };
    for target in classes.iter().flat_map(|class| targets(*class)) {
        let grant = target.class() == Class::Grant;
        let workspaces: &[&str] = if grant { &["workspace", "w1", "w2", "w3"] } else { &["workspace"] };
        let personas: &[&str] = if grant { &["persona", "p1", "p2", "p3"] } else { &["persona"] };
        for lifecycle in Lifecycle::ALL {
            for workspace in workspaces {
                for persona in personas {
                    for now in times {
                        out.push(CapabilityRequest {
                            lifecycle: *lifecycle,
                            workspace: (*workspace).to_owned(),
                            persona: (*persona).to_owned(),
                            now: *now,
                            ..CapabilityRequest::new(subject.clone(), target.clone())
                        });
                    }
                }
            }
        }
    }
    out
}

/// A random request to a subject.
pub fn request(tape: &mut Tape<'_>, classes: &[Class], subject: Subject) -> CapabilityRequest {
    let class = if tape.chance(97) { tape.one(classes) } else { tape.one(Class::ALL) };
    let all = targets(class);
    let mut out = CapabilityRequest::new(subject, all[tape.wide(all.len())].clone());
    if let Target::NetEgress { peer, .. } = &mut out.target
        && tape.chance(25)
    {
        *peer = Some(tape.one(&PEERS).parse().unwrap());
    }
    out.lifecycle = tape.one(&[Lifecycle::Once, Lifecycle::Session, Lifecycle::Once, Lifecycle::Standing]);
    out.external = tape.chance(15);
    out.sensitive = tape.chance(25);
    tape.one(&["workspace", "w1", "w2", "w3"]).clone_into(&mut out.workspace);
    tape.one(&["persona", "p1", "p2", "p3"]).clone_into(&mut out.persona);
    out.now = tape.one(&[0, 0, ENDS[0].1 - 1, ENDS[0].1, ENDS[1].1 - 1, ENDS[1].1]);
    out
}
