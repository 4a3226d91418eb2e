//! Expiry dates as tools write them.

use jiff::Timestamp;

/// Above this, a number counts thousandths of seconds: as seconds it would be the year 5138.
const MILLISECONDS_FROM: i64 = 100_000_000_000;

/// Unix seconds of an expiry: a number of seconds or milliseconds, or RFC 3339 and what is close
/// to it (`2026-01-01T00:00:00UTC`, a blank for the `T`, no zone at all: UTC).
pub(super) fn read(text: &str) -> Option<i64> {
    let text = text.trim().trim_matches('"');
    let whole = text.split_once('.').map_or(text, |(whole, _)| whole);
    if let Ok(number) = whole.parse::<i64>() {
        return Some(if number.abs() >= MILLISECONDS_FROM { number / 1000 } else { number });
    }
    let text = text.trim_end_matches("UTC").trim();
    let zoned = |suffix: &str| format!("{text}{suffix}").parse::<Timestamp>().ok();
    zoned("").or_else(|| zoned("Z")).map(Timestamp::as_second)
}

/// A moment in RFC 3339, UTC.
pub(super) fn write(seconds: i64) -> String {
    Timestamp::from_second(seconds).map_or_else(|_| "a date out of range".to_owned(), |at| at.to_string())
}
