//! Small values of manifests: names, times, rates.

use crate::diag::{Code, Finding};
use crate::model::Rate;
use crate::parse::{Sink, listed, nearest};
use crate::source::Span;

/// A value that is one of a few names, or a finding that names the nearest.
pub(super) fn name_of<T>(
    found: Option<T>,
    names: &[&str],
    what: &str,
    (text, span): (&str, Span),
    sink: &mut Sink,
) -> Option<T> {
    if found.is_none() {
        sink.push(Finding::new(Code::INVALID_VALUE, span, format!("`{text}` is no {what}")).help(format!(
            "{}write one of {}",
            nearest(text, names),
            listed(names)
        )));
    }
    found
}

/// Whether a text is a plain identifier, or a finding.
pub(super) fn identifier(text: &str, span: Span, what: &str, sink: &mut Sink) -> bool {
    let good = !text.is_empty()
        && text.len() <= 128
        && text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b));
    if !good {
        sink.push(
            Finding::new(Code::INVALID_VALUE, span, format!("`{}` is no {what}", text.escape_debug()))
                .help("use letters, digits, `.`, `_` and `-`, beginning with a letter or digit"),
        );
    }
    good
}

/// `90s`, `15m`, `2h`, `7d` in seconds.
pub(super) fn seconds(text: &str) -> Option<u64> {
    let unit = match text.chars().last()? {
        's' => 1,
        'm' => 60,
        'h' => 3_600,
        'd' => 86_400,
        _ => return None,
    };
    let digits = text.get(..text.len() - 1)?;
    let number: u64 = digits.parse().ok().filter(|_| digits.bytes().all(|b| b.is_ascii_digit()))?;
    (number > 0).then(|| number.checked_mul(unit)).flatten()
}

/// `10/h`, `3/15m`.
pub(super) fn rate(text: &str) -> Option<Rate> {
    let (count, time) = text.split_once('/')?;
    let count = count.parse().ok().filter(|n| *n > 0 && count.bytes().all(|b| b.is_ascii_digit()))?;
    let seconds =
        if time.starts_with(|c: char| c.is_ascii_digit()) { seconds(time) } else { seconds(&format!("1{time}")) };
    Some(Rate { count, seconds: seconds? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_rates() {
        assert_eq!(seconds("15m"), Some(900));
        assert_eq!(seconds("1d"), Some(86_400));
        for bad in ["", "m", "0s", "15", "-1m", "+1m", "1.5h", "99999999999999999999d", "18446744073709551615d", "15 m"]
        {
            assert_eq!(seconds(bad), None, "{bad}");
        }
        assert_eq!(rate("10/h"), Some(Rate { count: 10, seconds: 3_600 }));
        assert_eq!(rate("3/15m"), Some(Rate { count: 3, seconds: 900 }));
        for bad in ["", "/", "10/", "/h", "0/h", "-1/h", "10/0h", "10/w"] {
            assert_eq!(rate(bad), None, "{bad}");
        }
    }
}
