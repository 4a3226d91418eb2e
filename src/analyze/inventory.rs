//! Inventory against inventory (DESIGN 8): what may stay on a host now and might not before.
//!
//! An exemption is a permission of its own. One that is new, lasts longer, covers another
//! credential or another host is a widening; reason and owner are words for people.

use std::collections::BTreeSet;

use crate::diag::{Code, Evidence, Finding};
use crate::model::{Classification, Inventory, InventoryEntry, PolicySet};
use crate::source::Span;

/// Findings about exemptions that differ, widening and narrowing.
pub(super) fn compare(old: &PolicySet, new: &PolicySet) -> Vec<Finding> {
    let (was, is) = (exemptions(old.inventory.as_ref()), exemptions(new.inventory.as_ref()));
    let mut out = Vec::new();
    for row in &is {
        for gain in gained(row, &was) {
            let mut finding = Finding::new(Code::CONFIG_WIDENING, row.span, gain.given())
                .evidence(evidence(&row.location))
                .help("take it back, or have the change approved as what it is");
            if let Some(before) = gain.before {
                finding = finding.related(before, "the row before");
            }
            out.push(finding);
        }
    }
    let here = new.inventory.as_ref().map_or(Span::new(new.config.file, 0, 0), |i| Span::new(i.file, 0, 0));
    for row in &was {
        for gone in gained(row, &is) {
            out.push(
                Finding::new(Code::NARROWING, gone.before.unwrap_or(here), gone.taken())
                    .evidence(evidence(&row.location))
                    .related(row.span, "the row before"),
            );
        }
    }
    out
}

fn exemptions(inventory: Option<&Inventory>) -> Vec<&InventoryEntry> {
    inventory.map_or_else(Vec::new, |inventory| inventory.entries.iter().filter(|row| row.state.exempts()).collect())
}

/// Seconds at which a row ends; the break-glass row never does.
fn end(row: &InventoryEntry) -> i64 {
    match &row.state {
        Classification::ExplicitlyExempt(day) => day.end(),
        _ => i64::MAX,
    }
}

fn until(row: &InventoryEntry) -> String {
    match &row.state {
        Classification::ExplicitlyExempt(day) => format!("until {}", day.as_str()),
        _ => "until it is removed (break glass)".to_owned(),
    }
}

/// One credential that a row covers.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Covered<'r> {
    label: Option<&'r str>,
    host: Option<&'r str>,
}

fn covered(row: &InventoryEntry) -> BTreeSet<Covered<'_>> {
    let or_none = |names: &BTreeSet<String>| names.is_empty();
    let labels: Vec<Option<&str>> =
        if or_none(&row.labels) { vec![None] } else { row.labels.iter().map(|l| Some(l.as_str())).collect() };
    let hosts: Vec<Option<&str>> =
        if or_none(&row.hosts) { vec![None] } else { row.hosts.iter().map(|h| Some(h.as_str())).collect() };
    labels.iter().flat_map(|label| hosts.iter().map(|host| Covered { label: *label, host: *host })).collect()
}

/// Something that a row lets stay and the rows of the other version do not.
struct Gain<'r> {
    row: &'r InventoryEntry,
    one: Covered<'r>,
    /// The row of the other version that lets less of it stay.
    less: Option<&'r InventoryEntry>,
    /// That row, or one about the same place.
    before: Option<Span>,
}

impl Gain<'_> {
    fn given(&self) -> String {
        let (row, what) = (self.row, self.subject());
        let (host, until) = (self.host(), until(row));
        match self.less {
            None => format!("{what} may stay on {host} {until}"),
            Some(less) if less.count < row.count => {
                format!("{what}: {} of them may stay on {host} {until}, and {} before", row.count, less.count)
            }
            Some(less) => format!("{what} may stay on {host} {until}, and before {}", self::until(less)),
        }
    }

    fn taken(&self) -> String {
        let how = if self.less.is_some() { "ends earlier or covers less" } else { "is gone" };
        format!("the exemption of {} on {} {how}", self.subject(), self.host())
    }

    fn host(&self) -> String {
        self.one.host.map_or_else(|| "every host".to_owned(), |host| format!("`{host}`"))
    }

    fn subject(&self) -> String {
        let label = self.one.label.map_or_else(String::new, |label| format!(" `{label}`"));
        let print = self.row.fingerprint.as_ref().map_or_else(String::new, |print| format!(" {print}"));
        format!("the {}{label}{print} in `{}`", self.row.kind, self.row.location)
    }
}

/// What `row` lets stay that no row of `others` does.
fn gained<'r>(row: &'r InventoryEntry, others: &[&'r InventoryEntry]) -> Vec<Gain<'r>> {
    let same = |other: &&&InventoryEntry| {
        (&other.location, &other.kind, &other.fingerprint) == (&row.location, &row.kind, &row.fingerprint)
    };
    let others: Vec<&InventoryEntry> = others.iter().filter(same).copied().collect();
    let mut out = Vec::new();
    for one in covered(row) {
        let rows: Vec<&InventoryEntry> = others.iter().copied().filter(|other| covers(other, &one)).collect();
        if !rows.iter().any(|other| end(other) >= end(row) && other.count >= row.count) {
            let less = rows.first().copied();
            let before = less.or(others.first().copied()).map(|other| other.span);
            out.push(Gain { row, one, less, before });
        }
    }
    out
}

fn covers(row: &InventoryEntry, one: &Covered<'_>) -> bool {
    let label = match one.label {
        Some(label) => row.labels.contains(label),
        None => row.labels.is_empty(),
    };
    label && (row.hosts.is_empty() || one.host.is_some_and(|host| row.hosts.contains(host)))
}

fn evidence(location: &str) -> Evidence {
    Evidence {
        surface: "configuration".into(),
        rungs: Vec::new(),
        witness: location.to_owned(),
        assumes: Vec::new(),
        replay: None,
        old_tier: None,
        new_tier: None,
        request: None,
    }
}
