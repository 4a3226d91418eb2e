//! Points in time: whole seconds, UTC, one way to write them.
//!
//! The time of day is always an argument. Nothing in `sign` asks a clock.

use std::fmt;

/// A point in time in whole seconds since 1970, written `2026-03-01T12:00:00Z`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

impl Timestamp {
    /// The point `seconds` after the start of 1970; `None` outside the years 0 to 9999.
    pub fn from_seconds(seconds: i64) -> Option<Self> {
        let shown = jiff::Timestamp::from_second(seconds).ok()?.to_string();
        (shown.len() == "2026-03-01T12:00:00Z".len()).then_some(Timestamp(seconds))
    }

    /// Seconds since the start of 1970.
    pub const fn seconds(self) -> i64 {
        self.0
    }

    /// Reads `2026-03-01T12:00:00Z`; `None` for every other spelling, so that a time has one
    /// form only.
    pub fn parse(text: &str) -> Option<Self> {
        let parsed: jiff::Timestamp = text.parse().ok()?;
        let timestamp = Timestamp::from_seconds(parsed.as_second())?;
        (timestamp.to_string() == text).then_some(timestamp)
    }

    /// The point `seconds` later (earlier when negative), held at the ends of what can be
    /// written.
    #[must_use]
    pub fn plus(self, seconds: i64) -> Self {
        let sum = self.0.saturating_add(seconds);
        Timestamp::from_seconds(sum).unwrap_or(if seconds < 0 { Timestamp(0) } else { LAST })
    }
}

/// The last second of the year 9999 that `jiff` can write.
const LAST: Timestamp = Timestamp(253_402_207_200);

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_second(self.0) {
            Ok(timestamp) => write!(f, "{timestamp}"),
            Err(_) => write!(f, "@{}", self.0),
        }
    }
}

impl serde::Serialize for Timestamp {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_spelling_is_read() {
        assert_eq!(Timestamp::parse("1970-01-01T00:00:10Z"), Some(Timestamp(10)));
        for bad in [
            "",
            "1970-01-01",
            "1970-01-01T00:00:10",
            "1970-01-01T00:00:10z",
            "1970-01-01 00:00:10Z",
            "1970-01-01T00:00:10.0Z",
            "1970-01-01T00:00:10.5Z",
            "1970-01-01T00:00:10+00:00",
            "1970-01-01T01:00:10+01:00",
            "2023-02-29T00:00:00Z",
            "2016-12-31T23:59:60Z",
            "+002026-01-01T00:00:00Z",
        ] {
            assert_eq!(Timestamp::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn sums_stay_within_what_can_be_written() {
        let start = Timestamp(10);
        assert_eq!(start.plus(5), Timestamp(15));
        assert_eq!(start.plus(i64::MAX), LAST);
        assert_eq!(start.plus(i64::MIN), Timestamp(0));
        assert_eq!(Timestamp::parse(&LAST.to_string()), Some(LAST));
    }
}
