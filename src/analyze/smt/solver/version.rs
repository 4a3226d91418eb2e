//! Reading of `cvc5 --version`.

use std::fmt;

/// The oldest release that decides Cedar's encoding.
pub const OLDEST: &str = "1.0.3";
const OLDEST_NUMBERS: [u32; 3] = [1, 0, 3];

/// A release of cvc5, by the name that it gives itself (`1.0.3`, `1.4.2-modified`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    name: String,
    numbers: [u32; 3],
}

impl Version {
    /// The version in what `cvc5 --version` prints, or `None` where that is another program.
    pub fn read(text: &str) -> Option<Version> {
        let words = text.trim_start().strip_prefix("This is cvc5 version ")?;
        let name = words.split_whitespace().next()?;
        let (numbers, suffix) = name.split_once('-').unwrap_or((name, ""));
        let mut parts = numbers.split('.').map(str::parse);
        let (major, minor) = (parts.next()?.ok()?, parts.next()?.ok()?);
        let patch = parts.next().transpose().ok()?.unwrap_or(0);
        let plain = parts.next().is_none() && suffix.chars().all(|c| c.is_ascii_graphic());
        plain.then(|| Version { name: name.into(), numbers: [major, minor, patch] })
    }

    /// Whether polctl works with it. Something before the oldest release (`1.0.3-dev`) is older.
    pub fn is_supported(&self) -> bool {
        self.numbers > OLDEST_NUMBERS || self.name == OLDEST
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::Version;

    fn supported(text: &str) -> Option<bool> {
        Version::read(text).map(|version| version.is_supported())
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
        assert_eq!(
            Version::read("This is cvc5 version 1.4.2-modified\n").map(|v| v.to_string()).as_deref(),
            Some("1.4.2-modified")
        );
    }
}
