//! Which keys of a structured file hold a secret, and what follows for each credential.
//!
//! A file of any structured format is a list of [`Entry`]s. Entries with the same parent are one
//! credential: `accessToken`, `refreshToken` and `expiresAt` of one object give one answer.

use super::value::{Held, held};
use super::{Kind, Material, Sign, label, moment};

/// One scalar of a file.
#[derive(Clone)]
pub(super) struct Entry {
    /// Keys from the root.
    pub(super) path: Vec<String>,
    pub(super) value: String,
    pub(super) line: Option<usize>,
}

/// The end of a key path: components with `*` and `?`, separated by `/`; letters of either case.
/// A leading `/` binds it to the root.
#[derive(Clone, Debug)]
pub(super) struct Pattern {
    parts: Vec<String>,
    whole: bool,
}

impl Pattern {
    pub(super) fn new(text: &str) -> Self {
        let whole = text.starts_with('/');
        Pattern { parts: text.trim_start_matches('/').split('/').map(str::to_lowercase).collect(), whole }
    }

    fn matches(&self, path: &[String]) -> bool {
        let Some(skip) = path.len().checked_sub(self.parts.len()) else { return false };
        (!self.whole || skip == 0) && path.iter().skip(skip).zip(&self.parts).all(|(own, part)| like(part, own))
    }
}

/// Whether `text` is what `pattern` (lower case, `*` and `?`) describes. Linear but for one star
/// at a time, as shells do.
fn like(pattern: &str, text: &str) -> bool {
    let pattern: Vec<char> = pattern.chars().collect();
    let text: Vec<char> = text.chars().flat_map(char::to_lowercase).collect();
    let (mut p, mut t, mut star) = (0, 0, None);
    while let Some(c) = text.get(t) {
        match pattern.get(p) {
            Some('*') => {
                star = Some((p, t));
                p += 1;
            }
            Some(own) if own == c || *own == '?' => (p, t) = (p + 1, t + 1),
            _ => match star {
                Some((at, from)) => {
                    star = Some((at, from + 1));
                    (p, t) = (at + 1, from + 1);
                }
                None => return false,
            },
        }
    }
    pattern.iter().skip(p).all(|c| *c == '*')
}

/// What the table says of one place.
#[derive(Clone, Debug)]
pub(super) struct Rules {
    pub(super) kind: Kind,
    /// Hold a secret.
    pub(super) live: Vec<Pattern>,
    /// Hold a secret, each of its own.
    pub(super) each: Vec<Pattern>,
    /// Hold a secret that ends with `until`.
    pub(super) timed: Vec<Pattern>,
    /// When it ends.
    pub(super) until: Vec<Pattern>,
    /// Say that something else holds the secret.
    pub(super) delegated: Vec<(Pattern, String)>,
    /// Hold an encrypted secret.
    pub(super) encrypted: Vec<Pattern>,
    /// Say that a device holds it.
    pub(super) hardware: Vec<Pattern>,
    /// The field, from 1, of a line with columns.
    pub(super) column: usize,
    /// Tables of a database whose rows are secrets.
    pub(super) rows: Vec<String>,
    /// What a non-empty file is, for formats that are not opened further.
    pub(super) holds: Option<Sign>,
    /// Texts that give a file away.
    pub(super) marks: Vec<(String, Sign)>,
}

impl Default for Rules {
    fn default() -> Self {
        Rules {
            kind: Kind::Service,
            live: Vec::new(),
            each: Vec::new(),
            timed: Vec::new(),
            until: Vec::new(),
            delegated: Vec::new(),
            encrypted: Vec::new(),
            hardware: Vec::new(),
            column: 0,
            rows: Vec::new(),
            holds: None,
            marks: Vec::new(),
        }
    }
}

/// What an entry is for its credential.
enum Role<'a> {
    Live,
    Timed,
    Until,
    Encrypted,
    Hardware,
    Delegated(&'a str),
}

impl Rules {
    pub(super) fn is_empty(&self) -> bool {
        self.live.is_empty() && self.each.is_empty() && self.timed.is_empty() && self.encrypted.is_empty()
    }

    /// The role of an entry, and whether it is a credential of its own.
    fn role(&self, path: &[String]) -> Option<(Role<'_>, bool)> {
        let any = |patterns: &[Pattern]| patterns.iter().any(|pattern| pattern.matches(path));
        if any(&self.until) {
            return Some((Role::Until, false));
        }
        if any(&self.hardware) {
            return Some((Role::Hardware, false));
        }
        if any(&self.encrypted) {
            return Some((Role::Encrypted, false));
        }
        if let Some((_, to)) = self.delegated.iter().find(|(pattern, _)| pattern.matches(path)) {
            return Some((Role::Delegated(to), false));
        }
        if any(&self.timed) {
            return Some((Role::Timed, false));
        }
        if any(&self.live) {
            return Some((Role::Live, false));
        }
        any(&self.each).then_some((Role::Live, true))
    }
}

/// What is known of one credential while its entries come.
#[derive(Default)]
struct Group {
    path: Vec<String>,
    line: Option<usize>,
    live: bool,
    timed: bool,
    until: Option<i64>,
    encrypted: bool,
    hardware: bool,
    delegated: Option<String>,
    ended: Option<i64>,
    /// Whether any entry speaks of a secret at all; an expiry alone does not.
    speaks: bool,
}

impl Group {
    fn take(&mut self, role: &Role<'_>, entry: &Entry, now: i64) {
        if matches!(role, Role::Until) {
            self.until = self.until.or_else(|| moment::read(&entry.value));
            return;
        }
        let first = !self.speaks;
        self.speaks = true;
        let held = held(&entry.value, now);
        if first || (matches!(held, Held::Literal) && !self.live) {
            self.line = entry.line;
        }
        match (role, held) {
            (_, Held::Empty) => {}
            (Role::Hardware, _) => self.hardware = true,
            (Role::Delegated(to), _) => self.delegated = self.delegated.take().or_else(|| Some((*to).to_owned())),
            (_, Held::Reference(to)) => self.delegated = self.delegated.take().or_else(|| Some(to.to_owned())),
            (_, Held::Encrypted) | (Role::Encrypted, _) => self.encrypted = true,
            (_, Held::Ended(at)) => self.ended = Some(at),
            (Role::Timed, Held::Literal) => self.timed = true,
            (Role::Live | Role::Until, Held::Literal) => self.live = true,
        }
    }

    fn sign(&self, now: i64) -> Sign {
        let ended = self.until.filter(|until| self.timed && *until <= now);
        if self.live || (self.timed && ended.is_none()) {
            Sign::Live
        } else if self.encrypted {
            Sign::Encrypted
        } else if self.hardware {
            Sign::Hardware
        } else if let Some(to) = &self.delegated {
            Sign::delegated(to)
        } else if let Some(at) = ended.or(self.ended) {
            Sign::Expired { at: moment::write(at) }
        } else {
            Sign::Empty
        }
    }
}

/// The credentials that entries hold, in the order of their first lines.
pub(super) fn judge(entries: &[Entry], rules: &Rules, now: i64) -> Vec<Material> {
    let mut groups: Vec<Group> = Vec::new();
    let mut known = std::collections::BTreeMap::new();
    for entry in entries {
        let Some((role, own)) = rules.role(&entry.path) else { continue };
        let parent = entry.path.len().saturating_sub(usize::from(!own));
        let path: Vec<String> = entry.path.iter().take(parent).cloned().collect();
        let at = *known.entry(path.clone()).or_insert_with(|| {
            groups.push(Group { path: if parent == 0 { entry.path.clone() } else { path }, ..Group::default() });
            groups.len() - 1
        });
        if let Some(group) = groups.get_mut(at) {
            group.take(&role, entry, now);
        }
    }
    let spoken = groups.iter().filter(|group| group.speaks);
    spoken
        .map(|group| Material {
            line: group.line,
            label: label::of(&group.path),
            ..Material::new(rules.kind, group.sign(now))
        })
        .collect()
}
