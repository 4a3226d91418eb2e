//! What was found against what the inventory says.
//!
//! A row covers exactly what it names: a place, a kind, the labels or the number, and for keys
//! the fingerprint. Whatever lies there beside that is new, and no row covers it.

use std::collections::{BTreeMap, BTreeSet};

use super::probe::{Kind, Sign};
use super::scan::{Found, Presence, Scan};
use crate::diag::{Code, Finding, Level, info};
use crate::model::{Classification, Inventory, InventoryEntry, LastDay};
use crate::source::Span;

/// Seconds of a day.
const DAY: i64 = 86_400;

/// What the judgement depends on beside the scan and the inventory.
#[derive(Clone, Debug)]
pub struct Rules<'a> {
    /// Now, in Unix seconds.
    pub now: i64,
    /// An exemption that ends within so many days is told.
    pub warn_days: u32,
    /// No exemption may be left, the break-glass row apart.
    pub require_empty: bool,
    /// The host's name; rows that name hosts count only for it.
    pub host: Option<&'a str>,
    /// Levels that the configuration raises.
    pub levels: &'a BTreeMap<Code, Level>,
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Its code.
    pub code: Code,
    /// Its level.
    pub level: Level,
    /// Where on the host; empty: the host as a whole.
    pub location: String,
    /// Line of the file there.
    pub line: Option<usize>,
    /// One sentence.
    pub message: String,
    /// How to put it right.
    pub help: String,
    /// The row of the inventory that it is about.
    pub row: Option<Span>,
}

/// The whole judgement.
#[derive(Clone, Debug, Default)]
pub struct Verdicts {
    /// What is wrong, by location and code.
    pub verdicts: Vec<Verdict>,
    /// For each credential that was found, what the inventory says of it; `None`: it needs no row.
    pub states: Vec<Option<&'static str>>,
    /// Credentials that no row covers, as indices into what was found.
    pub unlisted: Vec<usize>,
}

/// Rows with a kind that polctl does not know.
pub fn unknown_kinds(inventory: &Inventory) -> Vec<Finding> {
    let unknown = inventory.entries.iter().filter(|entry| Kind::from_name(&entry.kind).is_none());
    let names: Vec<String> = Kind::all().map(|kind| format!("`{}`", kind.name())).collect();
    let finding = |entry: &InventoryEntry| {
        Finding::new(Code::INVALID_VALUE, entry.kind_span, format!("`{}` is no kind of credential", entry.kind))
            .help(format!("kinds are {}", names.join(", ")))
    };
    unknown.map(finding).collect()
}

/// Judges a scan. `presence` tells whether a location that nothing was found at is there.
pub fn judge(scan: &Scan, inventory: &Inventory, rules: &Rules<'_>, presence: &dyn Fn(&str) -> Presence) -> Verdicts {
    let rows: Vec<&InventoryEntry> = inventory.entries.iter().filter(|entry| entry.is_for(rules.host)).collect();
    let mut judging = Judging { rules, rows, used: BTreeMap::new(), told: BTreeSet::new(), out: Verdicts::default() };
    for (index, found) in scan.found.iter().enumerate() {
        judging.credential(index, found);
    }
    judging.rows_left(scan, presence);
    judging.incomplete(scan);
    let mut out = judging.out;
    for verdict in &mut out.verdicts {
        verdict.level = verdict.level.max(rules.levels.get(&verdict.code).copied().unwrap_or(verdict.level));
    }
    out.verdicts
        .sort_by(|a, b| (&a.location, a.line, a.code, &a.message).cmp(&(&b.location, b.line, b.code, &b.message)));
    out
}

struct Judging<'a> {
    rules: &'a Rules<'a>,
    rows: Vec<&'a InventoryEntry>,
    /// How many credentials each row covers by now, by row and label.
    used: BTreeMap<(usize, Option<String>), usize>,
    /// Rows that were told of once.
    told: BTreeSet<(usize, Code)>,
    out: Verdicts,
}

impl<'a> Judging<'a> {
    fn push(&mut self, code: Code, found: &Found, row: Option<&InventoryEntry>, message: String, help: &str) {
        self.out.verdicts.push(Verdict {
            code,
            level: info(code).level,
            location: found.location.clone(),
            line: found.material.line,
            message,
            help: help.to_owned(),
            row: row.map(|row| row.span),
        });
    }

    fn credential(&mut self, index: usize, found: &'a Found) {
        if let Some((mode, most)) = found.loose_mode() {
            let message = format!("{} has mode {mode:04o}, and {most:04o} is the most for it", what(found));
            let help = format!("`chmod {most:o}` it; if others could read it for long, replace the secret");
            self.push(Code::CREDENTIAL_MODE, found, None, message, &help);
        }
        let near: Vec<usize> = self.near(found);
        let covering = near.iter().copied().find(|row| self.take(*row, found));
        if !found.needs_classification() {
            self.out.states.push(None);
            return;
        }
        let Some(row) = covering else {
            self.out.unlisted.push(index);
            let state = self.uncovered(found, &near);
            self.out.states.push(Some(state));
            return;
        };
        let state = self.covered(row, found);
        self.out.states.push(Some(state));
    }

    /// Rows about this place and kind.
    fn near(&self, found: &Found) -> Vec<usize> {
        let about = |row: &&InventoryEntry| row.location == found.location && row.kind == found.material.kind.name();
        self.rows.iter().enumerate().filter(|(_, row)| about(row)).map(|(at, _)| at).collect()
    }

    /// Whether the row covers it and has room for it, which it then takes.
    fn take(&mut self, at: usize, found: &Found) -> bool {
        let Some(row) = self.rows.get(at) else { return false };
        let label = found.material.label.clone().map(|label| super::location::shown(label.as_bytes()));
        let labelled = match &label {
            Some(label) => row.labels.contains(label),
            None => row.labels.is_empty(),
        };
        if !labelled || row.fingerprint != found.material.fingerprint || found.material.sign == Sign::Empty {
            return false;
        }
        let used = self.used.entry((at, label)).or_default();
        *used += 1;
        *used <= row.count
    }

    /// No row covers it.
    fn uncovered(&mut self, found: &Found, near: &[usize]) -> &'static str {
        let rows: Vec<&InventoryEntry> = near.iter().filter_map(|at| self.rows.get(*at).copied()).collect();
        let what = what(found);
        if let Some(row) = rows.iter().find(|row| row.state.exempts()) {
            let message =
                format!("{what} lies where an exemption stands, and the row does not name it: {}", beyond(row, found));
            self.push(
                Code::EXEMPTION_EXCEEDED,
                found,
                Some(row),
                message,
                "find out how it came there; take it away, or give it a row of its own with its own reason and end",
            );
            return "beyond-exemption";
        }
        if let Some(row) = rows.iter().find(|row| row.state == Classification::MovedBehindGateway) {
            self.returned(found, row);
            return "moved-behind-gateway";
        }
        let message = format!("{what}, and no row of the inventory is about it");
        self.push(Code::CREDENTIAL_UNCLASSIFIED, found, rows.first().copied(), message,
            "move it behind the gateway and remove it here, or give it a row with reason, owner and end; `--adopt` writes the rows to fill in");
        "unclassified"
    }

    fn returned(&mut self, found: &Found, row: &InventoryEntry) {
        let message =
            format!("{} is on the host, and the inventory says that it moved behind the gateway", what(found));
        self.push(
            Code::CREDENTIAL_RETURNED,
            found,
            Some(row),
            message,
            "remove it from the host and replace the secret, since whoever could read it may have copied it",
        );
    }

    fn covered(&mut self, at: usize, found: &Found) -> &'static str {
        let Some(row) = self.rows.get(at).copied() else { return "unclassified" };
        match &row.state {
            Classification::Unclassified => {
                let message = format!("{}, and its row still says `unclassified`", what(found));
                self.push(Code::CREDENTIAL_UNCLASSIFIED, found, Some(row), message,
                    "decide: write `state: moved-behind-gateway` and remove it here, or `state: explicitly-exempt` with reason, owner and expires");
            }
            Classification::MovedBehindGateway => self.returned(found, row),
            Classification::ExplicitlyExempt(day) => self.until(at, row, day, found),
            Classification::BreakGlass => {}
        }
        row.state.as_str()
    }

    /// An exemption that is over, or soon.
    fn until(&mut self, at: usize, row: &InventoryEntry, day: &LastDay, found: &Found) {
        let left = day.end() - self.rules.now;
        let (code, message, help) = if left <= 0 {
            let message =
                format!("the exemption of {} ended on {}; {} answers for it", what(found), day.as_str(), row.owner);
            (Code::EXEMPTION_EXPIRED, message, "remove the credential, or have the exemption prolonged in review")
        } else if left <= i64::from(self.rules.warn_days) * DAY {
            let message =
                format!("the exemption of {} ends on {}; {} answers for it", what(found), day.as_str(), row.owner);
            (
                Code::EXEMPTION_EXPIRING,
                message,
                "remove the credential before that day, or have the exemption prolonged in review",
            )
        } else {
            return;
        };
        if self.told.insert((at, code)) {
            self.push(code, found, Some(row), message, help);
        }
    }

    /// Rows that cover more than there is.
    fn rows_left(&mut self, scan: &Scan, presence: &dyn Fn(&str) -> Presence) {
        let unseen = |location: &str| {
            presence(location) == Presence::Unseen
                || scan.told.gaps.iter().any(|gap| is_within(location, &gap.location))
        };
        for (at, row) in self.rows.clone().into_iter().enumerate() {
            if self.rules.require_empty && matches!(row.state, Classification::ExplicitlyExempt(_)) {
                let message = format!("`{}` is exempt, and this host may have no exemption", row.location);
                self.row(
                    Code::EXEMPTIONS_NOT_EMPTY,
                    row,
                    message,
                    "move the credential behind the gateway, remove it from the host, and remove the row",
                );
            }
            // What moved is not there, as it should be.
            let Some(missing) = self.missing(at, row).filter(|_| row.state != Classification::MovedBehindGateway)
            else {
                continue;
            };
            if unseen(&row.location) {
                continue;
            }
            let message = format!(
                "the row covers {missing} at `{}`, and {} there",
                row.location,
                if missing.starts_with("one") || missing.starts_with('`') {
                    "it is no longer"
                } else {
                    "they are no longer"
                }
            );
            self.row(
                Code::CREDENTIAL_STALE,
                row,
                message,
                "take it out of the row, or remove the row: what is not needed must not be able to come back",
            );
        }
    }

    /// What a row covers and is not there, in words.
    fn missing(&self, at: usize, row: &InventoryEntry) -> Option<String> {
        let used = |label: Option<&String>| self.used.get(&(at, label.cloned())).copied().unwrap_or(0);
        if row.labels.is_empty() {
            let missing = row.count.saturating_sub(used(None));
            let one = format!("one credential of kind {}", row.kind);
            let many = || format!("{missing} credentials more of kind {}", row.kind);
            return (missing > 0).then(|| if missing == 1 { one } else { many() });
        }
        let gone: Vec<String> =
            row.labels.iter().filter(|label| used(Some(label)) < row.count).map(|l| format!("`{l}`")).collect();
        (!gone.is_empty()).then(|| gone.join(", "))
    }

    fn row(&mut self, code: Code, row: &InventoryEntry, message: String, help: &str) {
        self.out.verdicts.push(Verdict {
            code,
            level: info(code).level,
            location: row.location.clone(),
            line: None,
            message,
            help: help.to_owned(),
            row: Some(row.span),
        });
    }

    fn incomplete(&mut self, scan: &Scan) {
        let Some(first) = scan.told.gaps.first() else { return };
        let others = scan.told.gap_count - 1;
        let and = match others {
            0 => String::new(),
            1 => " (and one other)".to_owned(),
            _ => format!(" (and {others} others)"),
        };
        self.out.verdicts.push(Verdict {
            code: Code::CENSUS_INCOMPLETE,
            level: info(Code::CENSUS_INCOMPLETE).level,
            location: String::new(),
            line: None,
            message: format!("what lies in `{}`{and} is not known: {}", first.location, first.why),
            help: "run the census as a user who can read it (root), or leave a directory out on purpose with `--skip DIR`, which the report tells".to_owned(),
            row: None,
        });
    }
}

/// Whether `location` is `above` or lies below it.
fn is_within(location: &str, above: &str) -> bool {
    location.strip_prefix(above).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// A credential in words.
pub(super) fn what(found: &Found) -> String {
    let kind = match found.material.kind {
        Kind::PrivateKey => "private key".to_owned(),
        kind => format!("{} credential", kind.name()),
    };
    let label = match &found.material.label {
        Some(label) => format!(" `{}`", super::location::shown(label.as_bytes())),
        None => String::new(),
    };
    let print = found.material.fingerprint.as_ref().map_or_else(String::new, |print| format!(" {print}"));
    match &found.material.sign {
        Sign::Encrypted => format!("an encrypted {kind}{label}{print}"),
        Sign::Unreadable { why } => format!("a {kind}{label}{print} that counts as live ({why})"),
        _ => format!("a live {kind}{label}{print}"),
    }
}

/// Why an exemption at the same place is not about a credential.
fn beyond(row: &InventoryEntry, found: &Found) -> String {
    if row.fingerprint != found.material.fingerprint {
        return match (&row.fingerprint, &found.material.fingerprint) {
            (Some(named), Some(_)) => format!("it is about {named}"),
            (None, Some(_)) => "it names no fingerprint".to_owned(),
            _ => "it names a fingerprint, and the one of this key cannot be read".to_owned(),
        };
    }
    match &found.material.label {
        Some(_) if row.labels.is_empty() => "it names no labels".to_owned(),
        Some(_) | None if !row.labels.is_empty() => {
            let labels: Vec<String> = row.labels.iter().map(|label| format!("`{label}`")).collect();
            format!("it is about {}", labels.join(", "))
        }
        _ if row.count == 1 => "it is about one".to_owned(),
        _ => format!("it is about {}", row.count),
    }
}
