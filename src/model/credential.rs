//! The credential inventory, validated (DESIGN 8): which credentials of a host somebody has
//! classified, and how.
//!
//! It names places, kinds, labels and fingerprints of public keys. It never holds a value.

use std::collections::BTreeSet;

use crate::source::{FileId, Span};

/// Who owns the break-glass row.
pub const BREAK_GLASS_OWNER: &str = "operator";

/// The last day on which an exemption counts, in UTC.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LastDay {
    /// Seconds since 1970 at which the day is over.
    end: i64,
    /// As it is written: `2027-01-31`.
    text: String,
}

impl LastDay {
    /// Reads `2027-01-31`; `None` for every other spelling.
    pub fn parse(text: &str) -> Option<Self> {
        let date: jiff::civil::Date = text.parse().ok()?;
        if date.to_string() != text || date.year() < 1970 {
            return None;
        }
        let next: jiff::Timestamp = format!("{}T00:00:00Z", date.tomorrow().ok()?).parse().ok()?;
        let end = next.as_second();
        Some(LastDay { end, text: text.to_owned() })
    }

    /// Seconds since 1970 at which the day is over.
    pub const fn end(&self) -> i64 {
        self.end
    }

    /// As it is written.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

/// What somebody decided about a credential.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Classification {
    /// Nobody decided yet: what `polctl census --adopt` writes. Never enough.
    Unclassified,
    /// The gateway holds it; it must no longer be on the host.
    MovedBehindGateway,
    /// It may stay until the day is over.
    ExplicitlyExempt(LastDay),
    /// The standing row for emergencies: it may stay, and has no end.
    BreakGlass,
}

impl Classification {
    /// The words of `state`, as people write them.
    pub const STATES: [&str; 3] = ["moved-behind-gateway", "explicitly-exempt", "unclassified"];

    /// The word used in every output.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Classification::Unclassified => "unclassified",
            Classification::MovedBehindGateway => "moved-behind-gateway",
            Classification::ExplicitlyExempt(_) => "explicitly-exempt",
            Classification::BreakGlass => "break-glass",
        }
    }

    /// Whether it lets a credential stay.
    pub const fn exempts(&self) -> bool {
        matches!(self, Classification::ExplicitlyExempt(_) | Classification::BreakGlass)
    }
}

/// One row of the inventory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InventoryEntry {
    /// Absolute path on the host, as the census writes it (odd bytes escaped by a backslash).
    pub location: String,
    /// The kind's name, as the census writes it.
    pub kind: String,
    /// Where the kind is written.
    pub kind_span: Span,
    /// `SHA256:…` of the public half, for keys.
    pub fingerprint: Option<String>,
    /// The profiles, hosts or users that it covers; empty: those that have none.
    pub labels: BTreeSet<String>,
    /// How many credentials without a label it covers at most.
    pub count: usize,
    /// The hosts that it is about; empty: all.
    pub hosts: BTreeSet<String>,
    /// What was decided.
    pub state: Classification,
    /// Why; empty only where nothing lets the credential stay.
    pub reason: String,
    /// Who answers for it.
    pub owner: String,
    /// The whole row.
    pub span: Span,
}

impl InventoryEntry {
    /// Whether the row is about this host.
    pub fn is_for(&self, host: Option<&str>) -> bool {
        self.hosts.is_empty() || host.is_some_and(|host| self.hosts.contains(host))
    }
}

/// `credentials.yaml`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inventory {
    /// The file.
    pub file: FileId,
    /// All rows in order, the break-glass row last.
    pub entries: Vec<InventoryEntry>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_has_one_spelling_and_lasts_to_its_end() {
        assert_eq!(LastDay::parse("1970-01-01").unwrap().end(), 86_400);
        for bad in ["", "2027-1-31", "2027-02-30", "20270131", "2027-01-31T00:00:00Z", "1969-12-31", "tomorrow"] {
            assert_eq!(LastDay::parse(bad), None, "{bad}");
        }
    }
}
