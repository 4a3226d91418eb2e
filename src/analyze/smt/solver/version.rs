//! Reading of `cvc5 --version`.

use std::fmt;

/// The oldest release that decides Cedar's encoding.
pub const OLDEST: Version = Version { major: 1, minor: 0, patch: 3, pre_release: false };

/// A release of cvc5.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Version {
    major: u32,
    minor: u32,
    patch: u32,
    /// Something before the release of that number (`1.0.3-dev`).
    pre_release: bool,
}

impl Version {
    /// The version in what `cvc5 --version` prints, or `None` where that is another program.
    pub fn read(text: &str) -> Option<Version> {
        let words = text.trim_start().strip_prefix("This is cvc5 version ")?;
        Version::parse(words.split_whitespace().next()?)
    }

    pub(super) fn parse(word: &str) -> Option<Version> {
        let (numbers, rest) =
            word.split_at_checked(word.find(|c: char| c != '.' && !c.is_ascii_digit()).unwrap_or(word.len()))?;
        let mut parts = numbers.trim_end_matches('.').split('.').map(str::parse);
        let (major, minor) = (parts.next()?.ok()?, parts.next()?.ok()?);
        let patch = parts.next().transpose().ok()?.unwrap_or(0);
        parts.next().is_none().then_some(Version { major, minor, patch, pre_release: !rest.is_empty() })
    }

    /// Whether polctl works with it.
    pub fn is_supported(self) -> bool {
        let key = |v: Version| (v.major, v.minor, v.patch, !v.pre_release);
        key(self) >= key(OLDEST)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)?;
        if self.pre_release { f.write_str("-dev") } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::Version;

    fn supported(text: &str) -> Option<bool> {
        Version::read(text).map(Version::is_supported)
    }

    #[test]
    fn releases_are_told_apart() {
        assert_eq!(supported("This is cvc5 version 1.0.3\ncompiled with GCC"), Some(true));
        assert_eq!(supported("This is cvc5 version 1.2.0 [git tag 1.2.0 branch HEAD]\n"), Some(true));
        assert_eq!(supported("This is cvc5 version 1.4.2-dev.12.abc\n"), Some(true));
        assert_eq!(supported("This is cvc5 version 2.0\n"), Some(true));
        assert_eq!(supported("This is cvc5 version 1.0.3-dev\n"), Some(false));
        assert_eq!(supported("This is cvc5 version 1.0.2\n"), Some(false));
        assert_eq!(supported("This is cvc5 version 0.9.9\n"), Some(false));
    }

    #[test]
    fn other_programs_are_no_version() {
        for text in [
            "Z3 version 4.8.12 - 64 bit",
            "",
            "This is cvc4 version 1.8",
            "This is cvc5 version ",
            "This is cvc5 version new",
            "This is cvc5 version 1.2.3.4",
        ] {
            assert_eq!(supported(text), None, "{text}");
        }
    }

    #[test]
    fn it_prints_as_it_reads() {
        assert_eq!(Version::read("This is cvc5 version 1.0.3\n").map(|v| v.to_string()).as_deref(), Some("1.0.3"));
    }
}
