//! Places in the file system that capabilities are about, in an exact order: a place is a
//! directory (or file) and everything below it, so of two places that hold a path the one with
//! more segments is the narrower.

use std::fmt;

use crate::model::Glob;

/// Most segments of a path that capabilities are judged by; a longer one is refused.
pub const MAX_SEGMENTS: usize = 16;

/// A directory or file, and everything below it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Subtree {
    /// Names from the root on. [`Glob::any`] stands for one name, whichever it is; other
    /// wildcards only occur in built-in guardrails.
    pub segments: Vec<Glob>,
    /// Whether the segments may begin at any depth.
    pub any_depth: bool,
}

/// Why a text names no place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathError {
    /// A sentence.
    pub message: String,
    /// What to write.
    pub help: &'static str,
}

/// The segments of an absolute path without `.`, `..`, empty names, or anything that a shell or
/// a link could make into another path.
///
/// # Errors
///
/// [`PathError`].
pub fn path_segments(text: &str) -> Result<Vec<String>, PathError> {
    let fail = |message: String, help| Err(PathError { message, help });
    let Some(tail) = text.strip_prefix('/') else {
        return fail(format!("`{text}` is no absolute path"), "begin it with `/`, or with `~/` where `home` is stated");
    };
    if tail.is_empty() {
        return Ok(Vec::new());
    }
    let mut out = Vec::new();
    for segment in tail.split('/') {
        if segment.is_empty() {
            return fail(format!("`{text}` has an empty segment"), "write one `/` between names and none at the end");
        }
        if matches!(segment, "." | "..") {
            return fail(format!("`{segment}` in `{text}`"), "write the path in full, as it is after `.` and `..`");
        }
        if let Some(c) = segment.chars().find(|c| c.is_control() || "*?[]{}$\\\"'`~%".contains(*c)) {
            return fail(
                format!("`{}` in `{text}`", c.escape_debug()),
                "a place is a directory with everything below it, named in full; there are no wildcards in it and nothing is expanded",
            );
        }
        out.push(segment.to_owned());
    }
    if out.len() > MAX_SEGMENTS {
        return fail(format!("`{text}` has more than {MAX_SEGMENTS} segments"), "name a directory above it");
    }
    Ok(out)
}

/// Directories that hold homes: those of Linux and macOS, and the superuser's own home.
pub fn homes() -> [Vec<Glob>; 3] {
    [vec![Glob::literal("root")], vec![Glob::literal("home"), Glob::any()], vec![Glob::literal("Users"), Glob::any()]]
}

impl Subtree {
    /// A place by its path.
    pub fn new(path: &[String]) -> Self {
        Subtree { segments: path.iter().map(|name| Glob::literal(name)).collect(), any_depth: false }
    }

    /// Whether a path lies in it.
    pub fn holds(&self, path: &[String]) -> bool {
        let begins = |path: &[String]| {
            self.segments.len() <= path.len() && self.segments.iter().zip(path).all(|(glob, name)| glob.matches(name))
        };
        if self.any_depth {
            return (0..path.len()).any(|at| path.get(at..).is_some_and(begins));
        }
        begins(path)
    }

    /// Whether some path lies in both, `other` being the narrower one.
    pub fn meets(&self, other: &Subtree) -> bool {
        let could_be = |a: &Glob, b: &Glob| match (a.as_literal(), b.as_literal()) {
            (Some(a), Some(b)) => a == b,
            (Some(text), None) => b.matches(text),
            (None, Some(text)) => a.matches(text),
            (None, None) => true,
        };
        self.any_depth || other.any_depth || self.segments.iter().zip(&other.segments).all(|(a, b)| could_be(a, b))
    }
}

impl fmt::Display for Subtree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.any_depth {
            f.write_str("**")?;
        }
        if self.segments.is_empty() {
            return f.write_str("/");
        }
        self.segments.iter().try_for_each(|segment| write!(f, "/{segment}"))
    }
}
