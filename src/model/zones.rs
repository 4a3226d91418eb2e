//! Named regions of the file system, and which of them a path-like argument names.
//!
//! Classification is textual: the file system is never asked, links are not followed. The
//! patterns become one automaton per zone, so that the analysis can search over exactly the
//! function that classifies a real argument.

use std::collections::{BTreeMap, BTreeSet, HashSet, VecDeque};
use std::fmt;

use super::path_nfa::{Elsewhere, Head, PathNfa, States};
use super::{Glob, Piece};
use crate::source::Span;

/// Where a path pattern begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Anchor {
    Root,
    Home,
    AnyDepth,
}

/// A path pattern: `/srv/**`, `~/.ssh/**` or `**/.env`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PathPattern {
    anchor: Anchor,
    segments: Vec<Glob>,
    rest: bool,
}

impl PathPattern {
    /// Reads a pattern.
    ///
    /// # Errors
    ///
    /// A sentence on what cannot be read, fit for a diagnostic.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.contains(|c: char| c.is_control()) {
            return Err("a path pattern holds no control characters".into());
        }
        let (anchor, tail) = if let Some(tail) = text.strip_prefix("**/") {
            (Anchor::AnyDepth, tail)
        } else if let Some(tail) = text.strip_prefix("~/") {
            (Anchor::Home, tail)
        } else if let Some(tail) = text.strip_prefix('/') {
            (Anchor::Root, tail)
        } else {
            return Err("begin it with `/`, `~/` or `**/`".into());
        };
        let mut segments: Vec<&str> = tail.split('/').collect();
        let rest = segments.last() == Some(&"**");
        if rest {
            segments.pop();
        }
        if segments.is_empty() && anchor == Anchor::AnyDepth {
            return Err("`**/**` names every path; name a directory".into());
        }
        let segments = segments
            .into_iter()
            .map(|segment| match segment {
                "" => Err("it has an empty segment; write one `/` between names and none at the end".to_owned()),
                "." | ".." => Err("`.` and `..` cannot stand in it; write the path in full".to_owned()),
                s if s.contains("**") => Err("`**` stands alone, as the last segment".to_owned()),
                s if s.contains(['?', '[', '{', '$', '\\']) => {
                    Err("only `*` is a wildcard here; `?`, `[`, `{`, `$` and `\\` are not".to_owned())
                }
                s => Ok(Glob::from_stars(s)),
            })
            .collect::<Result<_, _>>()?;
        Ok(PathPattern { anchor, segments, rest })
    }

    /// The parts that an automaton is built from.
    fn parts(&self) -> (Head, &[Glob], bool) {
        let head = match self.anchor {
            Anchor::Root => Head::Root,
            Anchor::Home => Head::Home,
            Anchor::AnyDepth => Head::AnyDepth,
        };
        (head, &self.segments, self.rest)
    }

    /// The subtrees that it covers; wider where it names a file alone, since nothing lies below one.
    pub fn subtrees(&self) -> Vec<super::Subtree> {
        let heads = match self.anchor {
            Anchor::Home => super::homes().to_vec(),
            Anchor::Root | Anchor::AnyDepth => vec![Vec::new()],
        };
        let place = |mut segments: Vec<Glob>| {
            segments.extend(self.segments.iter().cloned());
            super::Subtree { segments, any_depth: self.anchor == Anchor::AnyDepth }
        };
        heads.into_iter().map(place).collect()
    }

    /// A path that it covers, as short as its text allows.
    pub fn sample(&self) -> String {
        let mut out = match self.anchor {
            Anchor::Root => String::new(),
            Anchor::Home => "~".to_owned(),
            Anchor::AnyDepth => "/x".to_owned(),
        };
        for segment in &self.segments {
            out.push('/');
            for piece in segment.pieces() {
                match piece {
                    Piece::Any => out.push('x'),
                    Piece::Text(text) => out.push_str(text),
                }
            }
        }
        if self.rest {
            out.push_str("/x");
        }
        out
    }
}

impl fmt::Display for PathPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.anchor {
            Anchor::Root => "",
            Anchor::Home => "~",
            Anchor::AnyDepth => "**",
        })?;
        for segment in &self.segments {
            write!(f, "/{segment}")?;
        }
        if self.rest { f.write_str("/**") } else { Ok(()) }
    }
}

/// All zones of a configuration.
#[derive(Clone, Debug, Default)]
pub struct Zones {
    zones: BTreeMap<String, (BTreeSet<PathPattern>, Span)>,
}

impl Zones {
    /// Where tiers 0 and 1 may write.
    pub const WRITABLE: [&'static str; 2] = ["tmp", "workspace"];
    /// What arguments of tiers 0 and 1 may not name.
    pub const GUARDED: [&'static str; 2] = ["credential", "policy"];
    /// In `names`: an argument with `..` whose directory is not known.
    pub const UNRESOLVED: &'static str = "unresolved";
    /// A redirect's target, or an absolute path in an argument, that is in no zone.
    pub const ELSEWHERE: &'static str = "elsewhere";
    /// In `writes`: a target that is only known at run time.
    pub const UNKNOWN: &'static str = "unknown";
    /// Names that no configuration may declare.
    pub const RESERVED: [&'static str; 5] = ["any", "elsewhere", "none", "unknown", "unresolved"];

    /// The zones that every configuration has until it declares them itself. `span` is where
    /// a finding about them points. Credential places follow the tools that make them.
    pub fn built_in(span: Span) -> Self {
        const CREDENTIAL: [&str; 24] = [
            "~/.ssh/**",
            "~/.aws/**",
            "~/.azure/**",
            "~/.config/gcloud/**",
            "~/.kube/**",
            "~/.docker/config.json",
            "~/.gnupg/**",
            "~/.netrc",
            "~/.npmrc",
            "~/.pypirc",
            "~/.git-credentials",
            "~/.config/gh/**",
            "~/.cargo/credentials.toml",
            "~/.vault-token",
            "~/.pgpass",
            "~/.my.cnf",
            "~/.config/rclone/**",
            "~/.terraform.d/credentials.tfrc.json",
            "/etc/shadow",
            "/etc/gshadow",
            "/etc/ssl/private/**",
            "/proc/*/environ",
            "**/.env",
            "**/.env.*",
        ];
        const POLICY: [&str; 6] =
            ["**/CLAUDE_CMDS.md", "**/SUDO.md", "**/proxy.md", "**/polctl.yaml", "/etc/polctl/**", "~/.claude/**"];
        let mut zones = Zones::default();
        for (name, patterns) in [
            ("workspace", &[][..]),
            ("tmp", &["/tmp/**", "/var/tmp/**"][..]),
            ("credential", &CREDENTIAL[..]),
            ("policy", &POLICY[..]),
        ] {
            let patterns = patterns.iter().filter_map(|p| PathPattern::parse(p).ok()).collect();
            zones.declare(name, patterns, span);
        }
        zones
    }

    /// Declares a zone, or declares it anew.
    pub fn declare(&mut self, name: &str, patterns: BTreeSet<PathPattern>, span: Span) {
        self.zones.insert(name.to_owned(), (patterns, span));
    }

    /// Whether a zone of this name exists.
    pub fn contains(&self, name: &str) -> bool {
        self.zones.contains_key(name)
    }

    /// Names, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.zones.keys().map(String::as_str)
    }

    /// Patterns and place of a zone.
    pub fn get(&self, name: &str) -> Option<(&BTreeSet<PathPattern>, Span)> {
        self.zones.get(name).map(|(patterns, span)| (patterns, *span))
    }

    /// Builds the automata.
    pub fn matcher(&self) -> ZoneMatcher {
        let zones = self
            .zones
            .iter()
            .map(|(name, (patterns, _))| {
                let word = PathNfa::paths(patterns.iter().map(PathPattern::parts)).arguments();
                Zone { name: name.clone(), path: word.paths_alone(), word }
            })
            .collect();
        let all = PathNfa::paths(self.zones.values().flat_map(|(patterns, _)| patterns).map(PathPattern::parts));
        ZoneMatcher { zones, climbing: PathNfa::climbing(), all }
    }
}

/// A path whose zones differ between two configurations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transition {
    /// The path.
    pub path: String,
    /// Its zones in the first configuration.
    pub before: BTreeSet<String>,
    /// Its zones in the second.
    pub after: BTreeSet<String>,
    /// Whether it is absolute or in a home, so that in no zone means `elsewhere`.
    pub absolute: bool,
}

/// One zone's automata.
#[derive(Clone, Debug)]
struct Zone {
    name: String,
    path: PathNfa,
    word: PathNfa,
}

/// Decides which zones a path or an argument lies in.
#[derive(Clone, Debug)]
pub struct ZoneMatcher {
    zones: Vec<Zone>,
    climbing: PathNfa,
    /// Paths in any zone.
    all: PathNfa,
}

/// A file of this name pattern in which each wildcard stands for what no zone mentions.
fn unnamed(pattern: &str) -> String {
    let mut out = String::new();
    let mut rest = pattern;
    while let Some(c) = rest.chars().next() {
        let taken = match c {
            '[' => rest.find(']').map_or(1, |end| end + 1),
            c => c.len_utf8(),
        };
        out.push(if matches!(c, '*' | '?' | '[') { '\u{1}' } else { c });
        rest = rest.get(taken..).unwrap_or("");
    }
    out
}

impl ZoneMatcher {
    /// The zones that an argument names; [`Zones::UNRESOLVED`] for one with `..`,
    /// [`Zones::ELSEWHERE`] where one of its paths, absolute or in a home, is in none.
    pub fn argument(&self, word: &str) -> BTreeSet<String> {
        let mut found: BTreeSet<String> =
            self.zones.iter().filter(|zone| zone.word.matches(word)).map(|zone| zone.name.clone()).collect();
        if word.chars().fold(Elsewhere::start(), |scan, c| scan.step(&self.all, c)).found(&self.all) {
            found.insert(Zones::ELSEWHERE.to_owned());
        }
        if self.climbing.matches(word) {
            found.insert(Zones::UNRESOLVED.to_owned());
        }
        found
    }

    /// The zones that a path lies in; empty when in none.
    pub fn path(&self, path: &str) -> BTreeSet<String> {
        self.zones.iter().filter(|zone| zone.path.matches(path)).map(|zone| zone.name.clone()).collect()
    }

    /// The zones that some file of this name pattern may lie in, as [`ZoneMatcher::argument`]
    /// tells them. A wildcard stands for no slash and for no dot at the start of a name.
    pub fn files(&self, pattern: &str) -> BTreeSet<String> {
        let part = pattern.contains(['=', ':', '@', ',']);
        let automaton = |zone: &Zone| if part { zone.word.may_match(pattern) } else { zone.path.may_match(pattern) };
        let mut found: BTreeSet<String> =
            self.zones.iter().filter(|zone| automaton(zone)).map(|zone| zone.name.clone()).collect();
        if pattern.starts_with(['/', '~']) && self.path(&unnamed(pattern)).is_empty() {
            found.insert(Zones::ELSEWHERE.to_owned());
        }
        if self.climbing.matches(pattern) {
            found.insert(Zones::UNRESOLVED.to_owned());
        }
        found
    }

    /// The automaton for arguments that name `zone` ([`Zones::UNRESOLVED`] included).
    pub(crate) fn automaton(&self, zone: &str) -> Option<&PathNfa> {
        if zone == Zones::UNRESOLVED {
            return Some(&self.climbing);
        }
        self.zones.iter().find(|z| z.name == zone).map(|z| &z.word)
    }

    /// How the zones of a path differ between two configurations: one of the shortest paths for
    /// each way in which they do. Complete over the path's text; `None` past a bound.
    ///
    /// `alphabet` holds the characters of all patterns.
    pub fn transitions(&self, other: &ZoneMatcher, alphabet: &str) -> Option<Vec<Transition>> {
        const MOST: usize = 40_000;
        let mut chars: Vec<char> = alphabet.chars().chain("/.~roothomeUsers".chars()).collect();
        // One character that no pattern mentions stands for all such.
        let usual = "xyzabcdefghijklmnopqrstuvw0123456789éèêëàâäöüß";
        chars.extend(usual.chars().find(|c| !chars.contains(c)));
        chars.sort_unstable();
        chars.dedup();
        let automata: Vec<&PathNfa> = self.zones.iter().chain(&other.zones).map(|z| &z.path).collect();
        let begin: Vec<States> = automata.iter().map(|nfa| nfa.start()).collect();
        let mut seen = HashSet::from([(begin.clone(), false)]);
        let mut told = HashSet::new();
        let mut queue = VecDeque::from([(begin, String::new())]);
        let mut out = Vec::new();
        while let Some((states, path)) = queue.pop_front() {
            let inside = |zones: &[Zone], states: &[States]| -> BTreeSet<String> {
                let pairs = zones.iter().zip(states);
                pairs.filter(|(zone, states)| zone.path.accepts(states)).map(|(zone, _)| zone.name.clone()).collect()
            };
            let (own, theirs) = states.split_at(self.zones.len().min(states.len()));
            let (before, after) = (inside(&self.zones, own), inside(&other.zones, theirs));
            let absolute = path.starts_with(['/', '~']);
            if before != after
                && !self.climbing.matches(&path)
                && told.insert((before.clone(), after.clone(), absolute))
            {
                out.push(Transition { path: path.clone(), before, after, absolute });
            }
            for c in &chars {
                let next: Vec<States> = automata.iter().zip(&states).map(|(nfa, s)| nfa.step(s, *c)).collect();
                let longer = format!("{path}{c}");
                if seen.insert((next.clone(), longer.starts_with(['/', '~']))) {
                    queue.push_back((next, longer));
                }
            }
            if seen.len() > MOST {
                return None;
            }
        }
        Some(out)
    }

    /// The automaton of all zones together, from which [`Zones::ELSEWHERE`] follows.
    pub(crate) const fn all(&self) -> &PathNfa {
        &self.all
    }

    /// Names of all zones that an argument can name, the built-in ones last.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.zones.iter().map(|z| z.name.as_str()).chain([Zones::ELSEWHERE, Zones::UNRESOLVED])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::SourceMap;

    fn zones() -> ZoneMatcher {
        let mut map = SourceMap::new();
        let span = Span::new(map.add("polctl.yaml", None, ""), 0, 0);
        let mut zones = Zones::built_in(span);
        let patterns = ["/srv/agents/**"].iter().map(|p| PathPattern::parse(p).unwrap()).collect();
        zones.declare("workspace", patterns, span);
        zones.matcher()
    }

    #[test]
    fn arguments_are_classified_by_text() {
        let zones = zones();
        for (word, want) in [
            ("/srv/agents/a/b", "workspace"),
            ("/srv/agents", "workspace"),
            ("/srv//agents/./x", "workspace"),
            ("/srv/agentsx", "elsewhere"),
            ("--file=/opt/x", "elsewhere"),
            ("~other", "elsewhere"),
            ("/srv/agents/a:/opt", "elsewhere,workspace"),
            ("/tmp/a=~/.ssh/x", "credential,tmp"),
            ("a-b/c", ""),
            ("--.env", ""),
            ("-f.env", "credential"),
            ("~/.ssh/id", "credential"),
            ("~root/.ssh/id", "credential"),
            ("/root/.ssh", "credential"),
            ("/home/u/.ssh/id", "credential"),
            ("--file=/home/u/.ssh/id", "credential"),
            ("-f/root/.ssh/id", "credential"),
            ("@/root/.netrc", "credential"),
            ("file:///root/.netrc", "credential"),
            (".env", "credential"),
            ("a/b/.env", "credential"),
            ("x.env", ""),
            ("/tmp/x", "tmp"),
            ("..", "unresolved"),
            ("../x", "unresolved"),
            ("a/../b", "unresolved"),
            ("main..dev", ""),
            ("HEAD", ""),
        ] {
            let got: Vec<String> = zones.argument(word).into_iter().collect();
            assert_eq!(got.join(","), want, "{word}");
        }
    }

    #[test]
    fn file_patterns_name_the_zones_of_their_files() {
        let zones = zones();
        for (pattern, want) in [
            ("src/*.rs", ""),
            ("src/*", "policy"),
            ("src/*.c", ""),
            ("~/.ss?/id", "credential,elsewhere"),
            ("~/*/id", "elsewhere"),
            ("/srv/agents/a/*.c", "workspace"),
            ("/srv/ag*/x", "elsewhere,workspace"),
            ("a/.e[mn]v", "credential"),
            ("a/.*", "credential"),
            ("/etc/*", "credential,elsewhere,policy"),
            ("/etc/sha*", "credential,elsewhere"),
            ("../*.c", "unresolved"),
            ("if=/root/.n*", "credential,policy"),
        ] {
            let got: Vec<String> = zones.files(pattern).into_iter().collect();
            assert_eq!(got.join(","), want, "{pattern}");
        }
    }

    #[test]
    fn samples_lie_in_their_pattern() {
        for pattern in ["/a/**", "~/.ssh/**", "**/.env", "/a/*/b*", "/etc/shadow", "/**"] {
            let parsed = PathPattern::parse(pattern).unwrap();
            let nfa = PathNfa::paths(std::iter::once(parsed.parts()));
            assert!(nfa.matches(&parsed.sample()), "{pattern} {}", parsed.sample());
            assert_eq!(parsed.to_string(), pattern);
        }
    }

    #[test]
    fn malformed_patterns_say_what_to_write() {
        for bad in ["a", "", "/a/", "/a/../b", "/a**", "**/**", "/a/?", "$HOME/x"] {
            assert!(PathPattern::parse(bad).is_err(), "{bad}");
        }
    }
}
