//! `credentials.yaml` → [`Inventory`] and findings (DESIGN 8, docs/census.md).

use std::collections::BTreeSet;

use super::yaml::{self, Key, Kind, Node};
use super::{Sink, listed, nearest, text};
use crate::diag::{Code, Finding};
use crate::model::{BREAK_GLASS_OWNER, Classification, Inventory, InventoryEntry, LastDay};
use crate::source::{FileId, SourceMap, Span, is_unseen};

const KEYS: [&str; 3] = ["polctl", "credentials", "break_glass"];

/// Keys of a row.
const ROW: [&str; 10] =
    ["location", "kind", "fingerprint", "labels", "count", "hosts", "state", "reason", "owner", "expires"];

/// Keys of the break-glass row: it has no state and no end.
const BREAK_GLASS: [&str; 8] = ["location", "kind", "fingerprint", "labels", "count", "hosts", "reason", "owner"];

/// Most characters of a reason or an owner: a sentence, and no place to hide a file in.
const MAX_TEXT: usize = 400;

/// Reads an inventory that stands in no set. `None` after findings.
pub fn parse_inventory(
    name: &str,
    origin: Option<&str>,
    bytes: &[u8],
    map: &mut SourceMap,
    sink: &mut Sink,
) -> Option<Inventory> {
    let mut own = Vec::new();
    let (id, readable) = text::decode(map, &mut own, name, origin, bytes);
    let inventory = readable.then(|| parse(id, map, &mut own)).flatten().filter(|_| own.is_empty());
    sink.append(&mut own);
    inventory
}

/// Reads an inventory. `None` after findings that leave nothing to work with.
fn parse(file: FileId, map: &SourceMap, sink: &mut Sink) -> Option<Inventory> {
    let text = map.text(file);
    let start = Span::new(file, 0, text.lines().next().map_or(0, str::len));
    let missing = |what: &str, help: &str| Finding::new(Code::MISSING_KEY, start, what).help(help);
    if text.trim().is_empty() {
        sink.push(missing("the inventory is empty", "it begins with `polctl: v1` and `credentials: []`"));
        return None;
    }
    let root = yaml::read(file, 0, text, sink)?;
    let mut inventory = Inventory { file, entries: Vec::new() };
    let entries = root.entries("the inventory", sink);
    let mut break_glass = None;
    for (key, value) in entries {
        match key.name.as_str() {
            "polctl" => version(value, sink),
            "credentials" => rows(value, &mut inventory, sink),
            "break_glass" => break_glass = row(value, &BREAK_GLASS, sink),
            name => sink.push(unknown(key, name, "the inventory", &KEYS)),
        }
    }
    inventory.entries.extend(break_glass);
    for (name, help) in [
        ("polctl", "write `polctl: v1` as the first line"),
        ("credentials", "write `credentials: []` where nothing is classified yet"),
    ] {
        if matches!(root.kind, Kind::Map(_)) && !entries.iter().any(|(key, _)| key.name == name) {
            sink.push(missing(&format!("the key `{name}` is missing"), help));
        }
    }
    repeated(&inventory, sink);
    Some(inventory)
}

fn version(value: &Node, sink: &mut Sink) {
    if let Some(version) = value.scalar("`polctl`", sink)
        && version != "v1"
    {
        let message = format!("`{version}` is no version of the format");
        sink.push(Finding::new(Code::INVALID_VALUE, value.span, message).help("this polctl reads `polctl: v1`"));
    }
}

fn unknown(key: &Key, name: &str, what: &str, known: &[&str]) -> Finding {
    Finding::new(Code::UNKNOWN_KEY, key.span, format!("`{name}` is no key of {what}")).help(format!(
        "{}keys are {}",
        nearest(name, known),
        listed(known)
    ))
}

fn rows(value: &Node, inventory: &mut Inventory, sink: &mut Sink) {
    let Kind::Seq(items) = &value.kind else {
        sink.push(
            Finding::new(Code::INVALID_VALUE, value.span, "`credentials` must be a list")
                .help("write one row as `- location: …`, or `credentials: []` for none"),
        );
        return;
    };
    inventory.entries.extend(items.iter().filter_map(|item| row(item, &ROW, sink)));
}

/// What is written in a row.
struct Row<'n> {
    entries: &'n [(Key, Node)],
    span: Span,
}

impl<'n> Row<'n> {
    fn find(&self, name: &str) -> Option<&'n Node> {
        self.entries.iter().find(|(key, _)| key.name == name).map(|(_, value)| value)
    }

    /// A text of one line; `None` where it is not there, or after a finding.
    fn text(&self, name: &str, sink: &mut Sink) -> Option<&'n str> {
        let node = self.find(name)?;
        let text = node.scalar(&format!("`{name}`"), sink)?.trim();
        let why = if text.is_empty() {
            "is empty"
        } else if text.chars().count() > MAX_TEXT {
            "is too long"
        } else if text.contains(is_unseen) {
            "holds a line break or what cannot be seen"
        } else {
            return Some(text);
        };
        let help = format!("write one line of at most {MAX_TEXT} characters");
        sink.push(Finding::new(Code::INVALID_VALUE, node.span, format!("`{name}` {why}")).help(help));
        None
    }

    /// A text that must be there.
    fn needed(&self, name: &str, help: &str, sink: &mut Sink) -> Option<&'n str> {
        if self.find(name).is_none() {
            sink.push(Finding::new(Code::MISSING_KEY, self.span, format!("this row has no `{name}`")).help(help));
        }
        self.text(name, sink)
    }

    fn names(&self, name: &str, sink: &mut Sink) -> BTreeSet<String> {
        let Some(node) = self.find(name) else { return BTreeSet::new() };
        let listed = node.scalars(&format!("`{name}`"), sink);
        if listed.is_empty() && matches!(node.kind, Kind::Seq(_)) {
            sink.push(
                Finding::new(Code::INVALID_VALUE, node.span, format!("`{name}` lists nothing"))
                    .help("remove the line, or name at least one"),
            );
        }
        let mut names = BTreeSet::new();
        for (text, span) in listed {
            if text.is_empty() || !names.insert(text) {
                sink.push(
                    Finding::new(Code::INVALID_VALUE, span, format!("`{name}` lists something empty or twice"))
                        .help("list each name once"),
                );
            }
        }
        names
    }
}

/// One row. `None` after findings.
fn row(node: &Node, keys: &[&str], sink: &mut Sink) -> Option<InventoryEntry> {
    let before = sink.len();
    let standing = keys.len() == BREAK_GLASS.len();
    let span = node.extent();
    let row = Row { entries: node.entries("a row of the inventory", sink), span };
    for (key, _) in row.entries.iter().filter(|(key, _)| !keys.contains(&key.name.as_str())) {
        let what = if standing { "the break-glass row" } else { "a row of the inventory" };
        sink.push(unknown(key, &key.name, what, keys));
    }
    if before < sink.len() {
        return None;
    }
    let location = location(&row, sink).unwrap_or_default();
    let kind = row.needed("kind", "write the kind as `polctl census` shows it", sink).unwrap_or_default().to_owned();
    let state = if standing { Classification::BreakGlass } else { state(&row, sink)? };
    let (reason, owner) = people(&row, &state, sink);
    let entry = InventoryEntry {
        location,
        kind,
        kind_span: row.find("kind").map_or(span, |node| node.span),
        fingerprint: fingerprint(&row, sink),
        labels: row.names("labels", sink),
        count: count(&row, sink),
        hosts: row.names("hosts", sink),
        state,
        reason,
        owner,
        span,
    };
    (sink.len() == before).then_some(entry)
}

fn location(row: &Row<'_>, sink: &mut Sink) -> Option<String> {
    let text = row.needed("location", "write the absolute path of the file on the host", sink)?;
    let why = if text.contains(['*', '?', '[']) {
        "a row is about one place, so that it never covers what nobody has seen: write one row for each file"
    } else if !text.starts_with('/') || text.ends_with('/') || text.contains("//") {
        "write the absolute path on the host, as `polctl census` shows it: no `~`, no slash at the end"
    } else if text.split('/').any(|part| part == "." || part == "..") {
        "write the path without `.` and `..`"
    } else {
        return Some(text.to_owned());
    };
    let span = row.find("location").map_or(row.span, |node| node.span);
    sink.push(Finding::new(Code::INVALID_VALUE, span, format!("`{text}` is no location")).help(why));
    None
}

fn state(row: &Row<'_>, sink: &mut Sink) -> Option<Classification> {
    let help = format!("states are {}", listed(&Classification::STATES));
    let text = row.needed("state", &help, sink)?;
    let expires = row.find("expires").map(|node| node.span);
    if let (Some(span), true) = (expires, text != "explicitly-exempt") {
        sink.push(
            Finding::new(Code::INVALID_VALUE, span, format!("`expires` has no meaning for `{text}`"))
                .help("only `explicitly-exempt` ends on a day; remove the line"),
        );
    }
    match text {
        "unclassified" => Some(Classification::Unclassified),
        "moved-behind-gateway" => Some(Classification::MovedBehindGateway),
        "explicitly-exempt" => last_day(row, sink).map(Classification::ExplicitlyExempt),
        other => {
            let span = row.find("state").map_or(row.span, |node| node.span);
            let help = format!("{}{help}", nearest(other, &Classification::STATES));
            sink.push(Finding::new(Code::INVALID_VALUE, span, format!("`{other}` is no state")).help(help));
            None
        }
    }
}

fn last_day(row: &Row<'_>, sink: &mut Sink) -> Option<LastDay> {
    let text = row.needed("expires", "say on which day the exemption ends: `expires: 2027-01-31`", sink)?;
    let day = LastDay::parse(text);
    if day.is_none() {
        let span = row.find("expires").map_or(row.span, |node| node.span);
        sink.push(
            Finding::new(Code::INVALID_VALUE, span, format!("`{text}` is no day"))
                .help("write the last day on which it counts as `2027-01-31`; `never` is no day"),
        );
    }
    day
}

/// Reason and owner: needed wherever something lets a credential stay.
fn people(row: &Row<'_>, state: &Classification, sink: &mut Sink) -> (String, String) {
    let mut get = |name: &str, help: &str| {
        let text = if state.exempts() { row.needed(name, help, sink) } else { row.text(name, sink) };
        text.unwrap_or_default().to_owned()
    };
    let reason = get("reason", "say why it must stay on the host: `reason: …`");
    let owner = get("owner", "name the person or team who answers for it: `owner: …`");
    if *state == Classification::BreakGlass && !owner.is_empty() && owner != BREAK_GLASS_OWNER {
        let span = row.find("owner").map_or(row.span, |node| node.span);
        sink.push(
            Finding::new(Code::INVALID_VALUE, span, format!("the break-glass row belongs to `{BREAK_GLASS_OWNER}`"))
                .help(format!(
                    "write `owner: {BREAK_GLASS_OWNER}`; what belongs to others is a row under `credentials` with an end"
                )),
        );
    }
    (reason, owner)
}

fn fingerprint(row: &Row<'_>, sink: &mut Sink) -> Option<String> {
    let text = row.text("fingerprint", sink)?;
    // 32 bytes in base64 without padding.
    let good = text.strip_prefix("SHA256:").is_some_and(|digest| {
        digest.len() == 43 && digest.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'+' || b == b'/')
    });
    if !good {
        let span = row.find("fingerprint").map_or(row.span, |node| node.span);
        sink.push(
            Finding::new(Code::INVALID_VALUE, span, format!("`{text}` is no fingerprint of a public key"))
                .help("write it as `polctl census` and `ssh-keygen -l` show it: `SHA256:` and 43 characters"),
        );
    }
    good.then(|| text.to_owned())
}

fn count(row: &Row<'_>, sink: &mut Sink) -> usize {
    let Some(text) = row.text("count", sink) else { return 1 };
    match text.parse() {
        Ok(count) if (1..=10_000).contains(&count) => count,
        _ => {
            let span = row.find("count").map_or(row.span, |node| node.span);
            sink.push(
                Finding::new(Code::INVALID_VALUE, span, format!("`{text}` is no number of credentials"))
                    .help("write how many credentials without a label the row covers, from 1"),
            );
            1
        }
    }
}

/// Two rows about the same credential would let the laxer one count.
fn repeated(inventory: &Inventory, sink: &mut Sink) {
    for (index, entry) in inventory.entries.iter().enumerate() {
        let same = |other: &&InventoryEntry| {
            let hosts = entry.hosts.is_empty() || other.hosts.is_empty() || !entry.hosts.is_disjoint(&other.hosts);
            let labels = entry.labels.is_empty() && other.labels.is_empty() || !entry.labels.is_disjoint(&other.labels);
            (&entry.location, &entry.kind, &entry.fingerprint) == (&other.location, &other.kind, &other.fingerprint)
                && hosts
                && labels
        };
        if let Some(first) = inventory.entries.iter().take(index).find(same) {
            let message = format!("`{}` has a row of the same kind already", entry.location);
            sink.push(
                Finding::new(Code::INVALID_VALUE, entry.span, message)
                    .related(first.span, "the other row")
                    .help("keep one; rows about one place and kind differ by `labels`, `fingerprint` or `hosts`"),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(rows: &str) -> (Option<Inventory>, Vec<String>) {
        let (mut map, mut sink) = (SourceMap::new(), Vec::new());
        let text = format!("polctl: v1\n{rows}");
        let inventory = parse_inventory("credentials.yaml", None, text.as_bytes(), &mut map, &mut sink);
        (inventory, sink.iter().map(|f| format!("{}: {}", map.line_ref(f.span), f.message)).collect())
    }

    const GOOD: &str = "credentials:
  - location: /home/dev/.netrc
    kind: password
    labels: [a.example, b.example]
    state: explicitly-exempt
    reason: the old mirror knows no tokens
    owner: platform
    expires: 2027-01-31
  - { location: /root/.ssh/id_rsa, kind: private-key, state: moved-behind-gateway }
  - { location: /root/k, kind: token, count: 3, hosts: [a], state: unclassified }
break_glass:
  location: /root/.ssh/break
  kind: private-key
  fingerprint: SHA256:0123456789012345678901234567890123456789012
  reason: when the gateway is down
  owner: operator
";

    #[test]
    fn a_good_inventory_is_read() {
        let (inventory, messages) = read(GOOD);
        let entries = inventory.unwrap_or_else(|| panic!("{messages:?}")).entries;
        let states: Vec<&str> = entries.iter().map(|e| e.state.as_str()).collect();
        assert_eq!(states, ["explicitly-exempt", "moved-behind-gateway", "unclassified", "break-glass"]);
        assert_eq!(entries[0].labels.len(), 2);
        assert_eq!(entries[2].count, 3);
        assert!(entries[2].is_for(Some("a")) && !entries[2].is_for(Some("b")) && !entries[2].is_for(None));
    }

    #[test]
    fn what_is_missing_or_wrong_is_told_at_its_line() {
        for (old, new, line, part) in [
            ("    owner: platform\n", "", 3, "no `owner`"),
            ("    reason: the old mirror knows no tokens\n", "    reason: \"\"\n", 7, "`reason` is empty"),
            ("    expires: 2027-01-31\n", "", 3, "no `expires`"),
            ("2027-01-31", "never", 9, "`never` is no day"),
            ("kind: password", "kinds: password", 4, "`kinds` is no key"),
            ("state: explicitly-exempt", "state: exempt", 6, "`exempt` is no state"),
            ("/home/dev/.netrc", "~/.netrc", 3, "is no location"),
            ("/home/dev/.netrc", "/home/*/.netrc", 3, "is no location"),
            ("/home/dev/.netrc", "/home/../.netrc", 3, "is no location"),
            ("owner: operator", "owner: dev", 17, "belongs to `operator`"),
            ("SHA256:0", "MD5:0", 15, "is no fingerprint"),
            ("count: 3", "count: 0", 11, "is no number"),
            ("labels: [a.example, b.example]", "labels: []", 5, "lists nothing"),
            ("/root/k, kind: token", "/root/.ssh/id_rsa, kind: private-key", 11, "has a row of the same kind"),
            ("state: moved-behind-gateway", "state: moved-behind-gateway, expires: 2027-01-31", 10, "has no meaning"),
            ("break_glass:", "breakglass:", 12, "`breakglass` is no key"),
        ] {
            assert!(GOOD.contains(old), "{old}");
            let (inventory, messages) = read(&GOOD.replacen(old, new, 1));
            assert_eq!(inventory, None, "{new}");
            let wanted = format!("credentials.yaml:{line}: ");
            assert!(messages.iter().any(|m| m.starts_with(&wanted) && m.contains(part)), "{new}: {messages:?}");
        }
        assert!(read("").1[0].contains("`credentials` is missing"));
        assert!(read("credentials: no\n").1[0].contains("must be a list"));
    }
}
