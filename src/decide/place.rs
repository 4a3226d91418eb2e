//! Where a command runs: the directories that the working directory may be, as the line changes it.

use std::collections::BTreeSet;

use super::line::Setting;
use crate::model::{Place, ZoneMatcher, Zones};
use crate::parse::{ShellWord, Value};

/// Directories that are told apart.
const MAX_DIRECTORIES: usize = 16;

/// The directories that the working directory may be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Directories {
    /// Absolute, or in a home.
    known: BTreeSet<String>,
    /// It may be any other, too: the line changed to one that is not known.
    lost: bool,
    /// Nobody said where the line starts.
    unsaid: bool,
}

impl Directories {
    /// The start of a line. A directory that is no absolute path is as if nothing was said.
    pub(super) fn start(cwd: Option<&str>) -> Self {
        let cwd = cwd.filter(|path| absolute(path));
        Directories { known: cwd.map(clean).into_iter().collect(), lost: false, unsaid: cwd.is_none() }
    }

    /// Any directory at all.
    pub(super) fn anywhere() -> Self {
        Directories { known: BTreeSet::new(), lost: true, unsaid: false }
    }

    /// Whether the line changed to a directory that is not known.
    pub(super) fn is_lost(&self) -> bool {
        self.lost
    }

    /// One of these or of those.
    pub(super) fn or(&self, other: &Directories) -> Self {
        let known: BTreeSet<String> = self.known.union(&other.known).cloned().collect();
        // Past that nobody keeps count: it may be anywhere.
        let lost = self.lost || other.lost || known.len() > MAX_DIRECTORIES;
        let known = known.into_iter().take(MAX_DIRECTORIES).collect();
        Directories { known, lost, unsaid: self.unsaid || other.unsaid }
    }

    /// Where `cd WORD` leads from here.
    pub(super) fn changed(&self, target: Option<&ShellWord>) -> Self {
        match target.map(|word| &word.value) {
            None => Directories::start(Some("~")),
            Some(Value::Known(path)) if absolute(path) => Directories::start(Some(path)),
            Some(Value::Known(path)) if path != "-" => Directories {
                known: self.known.iter().map(|dir| clean(&format!("{dir}/{path}"))).collect(),
                // Below a directory that nobody named everything is as unnamed; above it, lost.
                lost: self.lost || self.unsaid && path.split('/').any(|segment| segment == ".."),
                unsaid: self.unsaid,
            },
            _ => Directories::anywhere(),
        }
    }

    /// Every absolute path that a path in text may be.
    fn resolved(&self, path: &str) -> Vec<String> {
        if absolute(path) {
            return vec![path.to_owned()];
        }
        self.known.iter().map(|dir| clean(&format!("{dir}/{path}"))).collect()
    }

    /// What arguments name by where the command runs.
    pub(super) fn place(&self, words: &[ShellWord], zones: &ZoneMatcher) -> Place {
        let mut found = BTreeSet::new();
        for dir in &self.known {
            found.extend(zones.path(dir));
        }
        for word in words {
            match &word.value {
                Value::Known(text) => {
                    // `--file=x` and `a:b` name what stands behind the sign.
                    for part in std::iter::once(text.as_str()).chain(text.split(['=', ':', '@', ',']).skip(1)) {
                        if !part.is_empty() && !part.starts_with('-') && (!absolute(part) || climbs(part)) {
                            for path in self.resolved(part) {
                                let inside = zones.path(&clean(&path));
                                if inside.is_empty() && climbs(part) {
                                    found.insert(Zones::ELSEWHERE.to_owned());
                                }
                                found.extend(inside);
                            }
                        }
                    }
                }
                Value::Files(pattern) if !absolute(pattern) => {
                    for dir in &self.known {
                        found.extend(zones.files(&clean(&format!("{dir}/{pattern}"))));
                    }
                }
                _ => {}
            }
        }
        if self.lost {
            found.insert(Zones::UNRESOLVED.to_owned());
        }
        Place { known: !self.unsaid && !self.lost, zones: found }
    }

    /// The zones of a file that a redirect writes or reads.
    pub(super) fn target(&self, value: &Value, zones: &ZoneMatcher) -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        match value {
            Value::Known(path) if absolute(path) || !(self.unsaid || self.lost) => {
                for path in self.resolved(path) {
                    let inside = zones.path(&clean(&path));
                    if inside.is_empty() {
                        found.insert(Zones::ELSEWHERE.to_owned());
                    }
                    found.extend(inside);
                }
            }
            _ => {
                found.insert(Zones::UNKNOWN.to_owned());
            }
        }
        found
    }
}

fn absolute(path: &str) -> bool {
    path.starts_with(['/', '~'])
}

/// Whether the text is a path with a segment that leads up or nowhere.
pub(super) fn climbs(path: &str) -> bool {
    process_root(path).is_some()
        || path.split('/').any(|segment| segment == "..")
        || path.starts_with('/') && (path.contains("//") || path.contains("/./"))
}

/// A path without `.` and `..`, as its text says (links are not followed).
pub(super) fn clean(path: &str) -> String {
    if let Some(rest) = process_root(path) {
        return clean(rest);
    }
    let mut out: Vec<&str> = Vec::new();
    for segment in path.split('/') {
        match segment {
            "" | "." => {}
            ".." => {
                match out.last() {
                    // Above the root is the root.
                    None if path.starts_with('/') => {}
                    // Above a home, or above where a relative path starts, nobody knows.
                    Some(last) if *last != ".." && !last.starts_with('~') => {
                        out.pop();
                    }
                    _ => out.push(".."),
                }
            }
            segment => out.push(segment),
        }
    }
    let mut joined = out.join("/");
    if path.len() > 1 && path.ends_with('/') && !joined.is_empty() {
        joined.push('/');
    }
    if path.starts_with('/') { format!("/{joined}") } else { joined }
}

/// `/proc/PID/root/etc/x` is `/etc/x`, as far as a text can tell.
fn process_root(path: &str) -> Option<&str> {
    let (_, rest) = path.strip_prefix("/proc/")?.split_once('/')?;
    let rest =
        rest.split_once("task/").map_or(rest, |(_, thread)| thread.split_once('/').map_or(rest, |(_, rest)| rest));
    rest.strip_prefix("root").filter(|rest| rest.starts_with('/'))
}

/// Where writing is no write: the bin, and what is open already.
pub(super) fn is_no_file(path: &str) -> bool {
    matches!(path, "/dev/null" | "/dev/stdout" | "/dev/stderr" | "/dev/tty")
        || path.strip_prefix("/dev/fd/").is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
}

/// The zones that a file lies in, for tools that name one; [`Zones::UNKNOWN`] where that cannot be
/// told. A pattern of names lies where the names lie that it spells: `**/.env*` is about `.env`,
/// and `src/**` is no more about a file of that name than the directory `src` is.
pub fn file_zones(path: &str, setting: &Setting<'_>) -> BTreeSet<String> {
    let dirs = Directories::start(setting.cwd);
    let spelled = |fill: &str| -> String {
        let mut out = String::new();
        for c in path.chars() {
            match c {
                '*' | '?' => out.push_str(fill),
                '[' | ']' | '{' | '}' => {}
                c => out.push(c),
            }
        }
        out
    };
    let names =
        if path.contains(['*', '?', '[', '{']) { vec![spelled(""), spelled("x")] } else { vec![path.to_owned()] };
    let mut found = BTreeSet::new();
    for name in names {
        found.extend(dirs.target(&Value::Known(name.clone()), setting.zones));
        // In whatever directory it is, its own name may be enough to be guarded.
        let own = setting.zones.argument(&name);
        found.extend(own.into_iter().filter(|zone| Zones::GUARDED.contains(&zone.as_str())));
    }
    found
}
