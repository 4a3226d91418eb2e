//! One scan of a host: known places first, then the walk.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use rustix::fs::FileType;
use rustix::io::Errno;

use super::access::{Access, Identity, READ, WRITE};
use super::accounts::Accounts;
use super::location::{bytes, shown};
use super::moved::{self, Setting};
use super::places::reach;
use super::probe::{Kind, Material, Probe, Sign, probes, read};
use super::root::{Miss, Place, Root, read_up_to};
use super::walk::{Progress, Walk};

/// Directories that are walked beside the homes.
pub const WALKED: [&str; 5] = ["/etc", "/opt", "/srv", "/tmp", "/var/tmp"];
/// Homes that are none: the files below them are the system's own.
const NO_HOMES: [&str; 12] =
    ["/", "/bin", "/boot", "/dev", "/lib", "/nonexistent", "/proc", "/run", "/sbin", "/sys", "/usr", "/var/run"];
/// Most bytes of a known place that are read: histories and transcripts grow large.
pub const MAX_PLACE: usize = 32 * 1024 * 1024;
/// Most bytes of `passwd` and `group`.
const MAX_ACCOUNTS: usize = 4 * 1024 * 1024;
/// Most places that are listed as not looked at; the rest is counted.
pub const MAX_LISTED: usize = 200;
/// The loosest mode of a private key that was found by its content.
const KEY_MODE: u32 = 0o600;

/// Whose view a scan takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum View {
    /// Everything that is there; what cannot be read is a gap.
    Everything,
    /// What the user who runs polctl can read; the system itself decides.
    Own(Identity),
    /// What some other user can read: computed.
    User(Identity),
}

impl View {
    /// The user, where it is not everything.
    pub fn identity(&self) -> Option<&Identity> {
        match self {
            View::Everything => None,
            View::Own(who) | View::User(who) => Some(who),
        }
    }
}

/// What to scan.
pub struct Options<'a> {
    /// Now, in Unix seconds.
    pub now: i64,
    /// Whose view.
    pub view: View,
    /// Directories that are not walked, absolute.
    pub skip: &'a [String],
    /// Directories that are walked as well, absolute.
    pub also: &'a [String],
    /// The environment that polctl runs in.
    pub environment: &'a dyn Fn(&str) -> Option<String>,
    /// The home of the user who runs polctl.
    pub home: Option<String>,
}

/// A credential that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Where it really lies, as reports write it.
    pub location: String,
    /// The name of the known place; `None`: found by content.
    pub probe: Option<&'static str>,
    /// What it is.
    pub material: Material,
    /// Who can reach it.
    pub access: Access,
    /// The loosest mode that it may have; `None`: nothing is known about it.
    pub max_mode: Option<u32>,
}

impl Found {
    /// Whether somebody must have classified it: it can be used as it lies there, or with a
    /// passphrase. What is empty, expired, in a device or held by a helper is told and no more.
    pub fn needs_classification(&self) -> bool {
        self.material.sign.counts_as_live() || self.material.sign == Sign::Encrypted
    }

    /// The mode, where it is looser than it may be.
    pub fn loose_mode(&self) -> Option<(u32, u32)> {
        let mode = self.access.permissions();
        self.max_mode.filter(|most| mode & !most != 0 && self.needs_classification()).map(|most| (mode, most))
    }
}

/// A place with a reason.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Note {
    /// Where, as reports write it.
    pub location: String,
    /// Why.
    pub why: String,
}

/// What was not looked at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Told {
    /// Places that should have been looked at and could not: at most [`MAX_LISTED`].
    pub gaps: Vec<Note>,
    /// Their number.
    pub gap_count: usize,
    /// Directories and files that are closed to the user whose view it is.
    closed: HashSet<Vec<u8>>,
    /// Every place that is a gap.
    gap_places: HashSet<Vec<u8>>,
    /// Places that are left out on purpose.
    pub skipped: Vec<Note>,
    /// A refusal is the answer to whether this user can read it.
    own_view: bool,
    /// Directories that are left out.
    skip: HashSet<Vec<u8>>,
}

impl Told {
    pub(super) fn gap(&mut self, path: &[u8], why: &str) {
        let within =
            |skip: &Vec<u8>| path.strip_prefix(skip.as_slice()).is_some_and(|rest| rest.first() == Some(&b'/'));
        if self.is_skipped(path) || self.skip.iter().any(within) || !self.gap_places.insert(path.to_vec()) {
            return;
        }
        self.gap_count += 1;
        if self.gaps.len() < MAX_LISTED {
            self.gaps.push(Note { location: shown(path), why: why.to_owned() });
        }
    }

    /// The user whose view it is cannot read it.
    pub(super) fn closed(&mut self, path: &[u8]) {
        self.closed.insert(path.to_vec());
    }

    /// How many directories and files are closed to that user.
    pub fn closed_count(&self) -> usize {
        self.closed.len()
    }

    pub(super) fn skipped(&mut self, path: &[u8], why: &str) {
        let note = Note { location: shown(path), why: why.to_owned() };
        if self.skipped.len() < MAX_LISTED && !self.skipped.contains(&note) {
            self.skipped.push(note);
        }
    }

    /// Whether a directory is left out, which is told.
    pub(super) fn is_skipped(&mut self, path: &[u8]) -> bool {
        let is = self.skip.contains(path);
        if is {
            self.skipped(path, "left out by `--skip`");
        }
        is
    }

    /// The system refused to open something.
    pub(super) fn refused(&mut self, path: &[u8], error: Errno) {
        if self.own_view && matches!(error, Errno::ACCESS | Errno::PERM) {
            self.closed(path);
        } else {
            self.gap(path, &std::io::Error::from(error).to_string());
        }
    }

    fn missed(&mut self, path: &[u8], miss: Miss) {
        match miss {
            Miss::Absent => {}
            Miss::Closed { at } => self.closed(&at),
            Miss::Refused { at, error } => self.refused(if at.is_empty() { path } else { &at }, error),
        }
    }
}

/// What a scan found and what it did not look at.
#[derive(Clone, Debug)]
pub struct Scan {
    /// By location and line.
    pub found: Vec<Found>,
    /// What was not looked at.
    pub told: Told,
    /// Home directories that are there.
    pub homes: usize,
    /// How much was looked at.
    pub progress: Progress,
    /// Large files of which only the beginning was looked at.
    pub cut: usize,
}

/// Whether a location is still there, for rows of the inventory that nothing was found for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// Nothing is there.
    Absent,
    /// It is there, and was or could be looked at.
    There,
    /// It cannot be seen in this view.
    Unseen,
}

/// A host.
#[derive(Debug)]
pub struct Host {
    /// Its root.
    pub root: Root,
    /// Its accounts.
    pub accounts: Accounts,
}

impl Host {
    /// Reads the accounts of a root.
    pub fn new(root: Root) -> Host {
        let read = |path| root.read_small(path, MAX_ACCOUNTS).unwrap_or_default();
        let accounts = Accounts::parse(&read("/etc/passwd"), &read("/etc/group"));
        Host { root, accounts }
    }

    /// Its name, as `/etc/hostname` says.
    pub fn name(&self) -> Option<String> {
        let text = String::from_utf8(self.root.read_small("/etc/hostname", 1024)?).ok()?;
        let name = text.lines().map(str::trim).find(|line| !line.is_empty() && !line.starts_with('#'))?;
        let plain = |b: u8| b.is_ascii_alphanumeric() || b"._-".contains(&b);
        name.bytes().all(plain).then(|| name.to_owned())
    }

    /// Looks for credentials. `report` hears how far the walk is.
    pub fn scan(&self, options: &Options<'_>, report: &mut dyn FnMut(Progress)) -> Scan {
        let skip = options.skip.iter().map(|path| trimmed(path).as_bytes().to_vec()).collect();
        let own_view = matches!(options.view, View::Own(_));
        let mut told = Told { own_view, skip, ..Told::default() };
        let homes = self.homes(options, &mut told);
        let mut places = Places { host: self, options, told, read: BTreeMap::new() };
        places.look(&homes);
        let Places { mut told, read, .. } = places;
        let mut walk = Walk::new((options.now, options.view.identity()), &mut told, report);
        let starts = WALKED.into_iter().chain(options.also.iter().map(String::as_str));
        for path in homes.iter().filter(|home| is_home(home)) {
            self.walk_one(path, options.also, &mut walk);
        }
        for path in starts {
            self.walk_one(trimmed(path).as_bytes(), options.also, &mut walk);
        }
        let (progress, cut, hits) = (walk.progress, walk.cut, std::mem::take(&mut walk.hits));
        drop(walk);
        let mut files = read;
        for hit in hits {
            let entry = files.entry(hit.path).or_default();
            // What reads a place by its format knows better than what goes by shape.
            if entry.iter().all(|known| known.material.sign == Sign::Empty) {
                entry.extend(hit.found.into_iter().map(|material| by_content(material, &hit.access)));
            }
        }
        Scan { found: sorted(files), told, homes: homes.len(), progress, cut }
    }

    fn walk_one(&self, path: &[u8], also: &[String], walk: &mut Walk<'_>) {
        match self.root.look_up(path, walk.who) {
            Ok(place) if place.file_type() == FileType::Directory => match place.open_dir() {
                Ok(dir) => walk.below(&dir, &place.real),
                Err(error) => walk.told.refused(path, error),
            },
            // What somebody asked for must be there.
            Ok(_) | Err(Miss::Absent) if also.iter().any(|asked| trimmed(asked).as_bytes() == path) => {
                walk.told.gap(path, "there is no such directory");
            }
            Ok(_) => {}
            Err(miss) => walk.told.missed(path, miss),
        }
    }

    /// Home directories that are there, by path: those of all accounts, and whatever lies in
    /// `/home`, since accounts may come from a directory service.
    fn homes(&self, options: &Options<'_>, told: &mut Told) -> Vec<Vec<u8>> {
        let mut named: BTreeSet<String> = self.accounts.accounts.iter().map(|account| account.home.clone()).collect();
        named.insert("/root".to_owned());
        named.extend(options.home.clone().filter(|home| self.root.is_live() && home.starts_with('/')));
        let mut homes: BTreeSet<Vec<u8>> = BTreeSet::new();
        let mut consider = |path: &[u8], told: &mut Told| match self.root.look_up(path, options.view.identity()) {
            Ok(place) if place.file_type() == FileType::Directory => drop(homes.insert(place.real)),
            Ok(_) => {}
            Err(miss) => told.missed(path, miss),
        };
        named.iter().for_each(|home| consider(home.as_bytes(), told));
        let listed = self.root.look_up(b"/home", options.view.identity()).ok().and_then(|home| home.names().ok());
        for name in listed.unwrap_or_default() {
            consider(&[b"/home/", name.as_slice()].concat(), told);
        }
        homes.into_iter().collect()
    }

    /// Whether a location of the inventory is there.
    pub fn presence(&self, location: &str, view: &View) -> Presence {
        let Some(path) = bytes(location) else { return Presence::Absent };
        if path.starts_with(b"/proc/") {
            // A program that does not run now may run again.
            return Presence::Unseen;
        }
        match self.root.look_up(&path, view.identity()) {
            Ok(place) if view.identity().is_none_or(|who| place.access().permits(who, READ)) => Presence::There,
            Err(Miss::Absent) => Presence::Absent,
            Ok(_) | Err(_) => Presence::Unseen,
        }
    }
}

fn trimmed(path: &str) -> &str {
    let short = path.trim_end_matches('/');
    if short.is_empty() { "/" } else { short }
}

/// Whether the files below a home are somebody's own.
fn is_home(home: &[u8]) -> bool {
    let below = |no: &str| home.strip_prefix(no.as_bytes()).is_some_and(|rest| rest.starts_with(b"/"));
    !NO_HOMES.iter().any(|no| home == no.as_bytes() || *no != "/" && below(no))
}

fn by_content(material: Material, access: &Access) -> Found {
    let max_mode = (material.kind == Kind::PrivateKey).then_some(KEY_MODE);
    Found { location: String::new(), probe: None, material, access: access.clone(), max_mode }
}

fn sorted(files: BTreeMap<Vec<u8>, Vec<Found>>) -> Vec<Found> {
    let mut out = Vec::new();
    for (path, mut found) in files {
        let mut prints = HashSet::new();
        // A key that stands in a file twice is one credential.
        found.retain(|found| found.material.fingerprint.clone().is_none_or(|print| prints.insert(print)));
        found.sort_by(|a, b| (a.material.line, &a.material.label).cmp(&(b.material.line, &b.material.label)));
        let location = shown(&path);
        out.extend(found.into_iter().map(|found| Found { location: location.clone(), ..found }));
    }
    out
}

/// Known places: what was read, by real path.
struct Places<'a> {
    host: &'a Host,
    options: &'a Options<'a>,
    told: Told,
    read: BTreeMap<Vec<u8>, Vec<Found>>,
}

impl Places<'_> {
    fn look(&mut self, homes: &[Vec<u8>]) {
        for probe in probes() {
            for path in &probe.paths {
                self.pattern(probe, path, homes);
            }
        }
        for setting in self.settings(homes) {
            let home = [setting.home.clone().into_bytes()];
            for probe in probes().iter().filter(|probe| !probe.moved_by.is_empty()) {
                let lookup = |name: &str| setting.values.get(name).cloned();
                for path in probe.located(&lookup).iter().filter(|path| !probe.paths.contains(path)) {
                    self.pattern(probe, path, &home);
                }
            }
        }
    }

    /// Every environment that is known to move something.
    fn settings(&mut self, homes: &[Vec<u8>]) -> BTreeSet<Setting> {
        let root = &self.host.root;
        // A variable cannot name a place below a home whose name is no text.
        let named: Vec<String> = homes.iter().filter_map(|home| String::from_utf8(home.clone()).ok()).collect();
        let (mut settings, computed) = moved::of_startup(root, &named);
        for moved::Computed { variable, file } in computed {
            let why = format!("the shell computes `{variable}` there, so the place that it names is not known");
            self.told.skipped(file.as_bytes(), &why);
        }
        settings.extend(moved::of_processes(root, &self.host.accounts.accounts));
        if root.is_live() {
            let own = |name: &&str| (self.options.environment)(name).map(|value| ((*name).to_owned(), value));
            let values: BTreeMap<String, String> = moved::variables().iter().filter_map(own).collect();
            let home = self.options.home.clone().unwrap_or_else(|| "/".to_owned());
            settings.extend((!values.is_empty()).then_some(Setting { home, values }));
        }
        settings
    }

    fn pattern(&mut self, probe: &'static Probe, path: &str, homes: &[Vec<u8>]) {
        if let Some(rest) = path.strip_prefix('~').filter(|rest| rest.starts_with('/')) {
            for home in homes {
                let home = home.strip_suffix(b"/").unwrap_or(home);
                self.absolute(probe, home, rest.as_bytes());
            }
        } else if path.starts_with('/') {
            self.absolute(probe, b"", path.as_bytes());
        }
    }

    /// A pattern below a directory that is meant as it is written.
    fn absolute(&mut self, probe: &'static Probe, base: &[u8], pattern: &[u8]) {
        let reached = reach(&self.host.root, base, pattern, self.options.view.identity());
        for (path, miss) in reached.missed {
            self.told.missed(&path, miss);
        }
        if reached.cut {
            self.told.gap(&[base, pattern].concat(), "more files than can be looked at");
        }
        for (path, place) in reached.places {
            self.place(probe, &path, &place);
        }
    }

    fn place(&mut self, probe: &'static Probe, path: &[u8], place: &Place) {
        let socket = place.file_type() == FileType::Socket;
        if socket != probe.format.is_socket() {
            return;
        }
        let access = place.access();
        let want = if socket { WRITE } else { READ };
        if !self.options.view.identity().is_none_or(|who| access.permits(who, want)) {
            self.told.closed(&place.real);
            return;
        }
        let found = if socket { read(probe.format, &[], self.options.now) } else { self.bytes(probe, path, place) };
        let process = self.process(&place.real);
        let known = self.read.entry(process.clone().unwrap_or_else(|| place.real.clone())).or_default();
        for mut material in found {
            if process.is_some() {
                // Its place in an environment means nothing to anybody.
                material.line = None;
            }
            if !known.iter().any(|other| same(&other.material, &material)) {
                let max_mode = Some(probe.max_mode);
                let (location, access) = (String::new(), access.clone());
                known.push(Found { location, probe: Some(&probe.name), material, access, max_mode });
            }
        }
    }

    /// For the environment of a process: `/proc/NAME/environ`, by the program's name. Numbers of
    /// processes change, and nobody could write a row about one.
    fn process(&self, path: &[u8]) -> Option<Vec<u8>> {
        let number = environment_of(path).filter(|_| self.host.root.is_live())?;
        let name = self.host.root.read_small(&format!("/proc/{}/comm", String::from_utf8_lossy(number)), 64)?;
        let name: Vec<u8> = name.trim_ascii().iter().map(|byte| if *byte == b'/' { b'_' } else { *byte }).collect();
        Some([b"/proc/".as_slice(), &name, b"/environ"].concat())
    }

    fn bytes(&mut self, probe: &Probe, path: &[u8], place: &Place) -> Vec<Material> {
        let mut bytes = Vec::new();
        let ended = match place.open_file().and_then(|file| read_up_to(&file, &mut bytes, MAX_PLACE)) {
            Ok(ended) => ended,
            // The process ended, or is one of the kernel's own and has no environment.
            Err(Errno::SRCH | Errno::NOENT) if environment_of(path).is_some() => return Vec::new(),
            Err(error) => {
                self.told.refused(path, error);
                return Vec::new();
            }
        };
        let mut found = read(probe.format, &bytes, self.options.now);
        if !ended {
            let why = format!("it is larger than {} MiB, and only the beginning was read", MAX_PLACE / 1024 / 1024);
            let sign = Sign::Unreadable { why };
            found.push(Material { kind: probe.kind, sign, line: None, label: None, fingerprint: None });
        }
        found
    }
}

/// The number of the process whose environment a path is.
fn environment_of(path: &[u8]) -> Option<&[u8]> {
    let number = path.strip_prefix(b"/proc/")?.strip_suffix(b"/environ")?;
    (!number.is_empty() && number.iter().all(u8::is_ascii_digit)).then_some(number)
}

/// Whether two places of the table tell of the same credential.
fn same(a: &Material, b: &Material) -> bool {
    match (a.line, b.line) {
        (Some(one), Some(other)) => one == other && (a.label == b.label || a.kind == b.kind && a.sign == b.sign),
        _ => (a.kind, &a.label, &a.fingerprint, a.sign.name()) == (b.kind, &b.label, &b.fingerprint, b.sign.name()),
    }
}
