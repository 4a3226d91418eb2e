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
        for (message, before) in gained(row, &was) {
            let mut finding = Finding::new(Code::CONFIG_WIDENING, row.span, message)
                .evidence(evidence(&row.location))
                .help("take it back, or have the change approved as what it is");
            if let Some(before) = before {
                finding = finding.related(before, "the row before");
            }
            out.push(finding);
        }
    }
    let here = new.inventory.as_ref().map_or(Span::new(new.config.file, 0, 0), |i| Span::new(i.file, 0, 0));
    for row in &was {
        for (message, place) in gained(row, &is) {
            // Read backwards: what the old one has and the new one lacks.
            let message =
                message.replacen("may stay on", "may no longer stay on", 1).replacen("until", "that was until", 1);
            out.push(
                Finding::new(Code::NARROWING, place.unwrap_or(here), message)
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

/// What `row` lets stay that no row of `others` does, with the nearest of them.
fn gained(row: &InventoryEntry, others: &[&InventoryEntry]) -> Vec<(String, Option<Span>)> {
    let same = |other: &&&InventoryEntry| {
        (&other.location, &other.kind, &other.fingerprint) == (&row.location, &row.kind, &row.fingerprint)
    };
    let others: Vec<&InventoryEntry> = others.iter().filter(same).copied().collect();
    let mut out = Vec::new();
    for one in covered(row) {
        let covers = |other: &&&InventoryEntry| {
            let label = match one.label {
                Some(label) => other.labels.contains(label),
                None => other.labels.is_empty(),
            };
            label && (other.hosts.is_empty() || one.host.is_some_and(|host| other.hosts.contains(host)))
        };
        let rows: Vec<&InventoryEntry> = others.iter().filter(covers).copied().collect();
        let enough = |other: &&InventoryEntry| end(other) >= end(row) && other.count >= row.count;
        if rows.iter().any(enough) {
            continue;
        }
        let what = subject(row, &one);
        let message = match rows.first() {
            None => format!("{what} may stay on {} {}", host(&one), until(row)),
            Some(other) if other.count < row.count => {
                format!(
                    "{what}: {} of them may stay on {} {}, and {} before",
                    row.count,
                    host(&one),
                    until(row),
                    other.count
                )
            }
            Some(other) => format!("{what} may stay on {} {}, and before {}", host(&one), until(row), until(other)),
        };
        out.push((message, rows.first().or(others.first()).map(|other| other.span)));
    }
    out
}

fn host(one: &Covered<'_>) -> String {
    one.host.map_or_else(|| "every host".to_owned(), |host| format!("`{host}`"))
}

fn subject(row: &InventoryEntry, one: &Covered<'_>) -> String {
    let label = one.label.map_or_else(String::new, |label| format!(" `{label}`"));
    let print = row.fingerprint.as_ref().map_or_else(String::new, |print| format!(" {print}"));
    format!("the {}{label}{print} in `{}`", row.kind, row.location)
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
