//! Rows for what nobody has classified, written into the inventory's text.
//!
//! A row that is adopted fails as before until a person decides. Text that is there stays as it
//! is, comments included: rows are added behind the last one and nothing else changes.

use std::collections::{BTreeMap, BTreeSet};

use super::location::shown;
use super::scan::Found;

/// Why rows cannot be added.
#[derive(Debug, thiserror::Error, miette::Diagnostic, PartialEq, Eq)]
#[non_exhaustive]
pub enum AdoptError {
    /// The list is written in a form that a machine should not touch.
    #[error("the list `credentials` is not written as one row per `- location: …`, so no row can be added to it")]
    #[diagnostic(help("write the list in lines, each row beginning with `- `, and run `--adopt` again"))]
    Form,
}

/// The beginning of an inventory.
const HEADER: &str = "\
# Which credentials may lie on our hosts (docs/census.md). Never write a value here.
#   state: moved-behind-gateway                        it must not be on the host any longer
#   state: explicitly-exempt with reason, owner and    it may stay until that day
#          expires: YYYY-MM-DD
polctl: v1
credentials:
";

/// The text with a row for each group of these credentials; an empty text becomes an inventory.
/// `host`: the rows are about this host only.
///
/// # Errors
///
/// [`AdoptError`] when the text has its list in another form.
pub fn adopt(text: &str, found: &[&Found], host: Option<&str>) -> Result<String, AdoptError> {
    if text.trim().is_empty() {
        return Ok(format!("{HEADER}{}", rows(found, host, "  ")));
    }
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let head = lines.iter().position(|line| line.starts_with("credentials:")).ok_or(AdoptError::Form)?;
    let value = lines.get(head).and_then(|line| line.split_once(':')).map_or("", |(_, value)| value);
    let value = value.split(" #").next().unwrap_or(value).trim();
    let inside = |line: &&&str| line.starts_with([' ', '\t', '-', '#', '\n', '\r']);
    let body: Vec<&str> = lines.iter().skip(head + 1).take_while(inside).copied().collect();
    let blank = |line: &&&str| line.trim().is_empty() || line.starts_with('#');
    let used = body.len() - body.iter().rev().take_while(blank).count();
    let first = body.iter().find(|line| line.trim_start().starts_with('-'));
    let indent = match (value, first) {
        ("[]" | "", None) => "  ",
        ("", Some(line)) => line.get(..line.len() - line.trim_start().len()).unwrap_or("  "),
        _ => return Err(AdoptError::Form),
    };
    let mut out: String = lines.iter().take(head).copied().collect();
    out.push_str(if value == "[]" { "credentials:\n" } else { lines.get(head).unwrap_or(&"") });
    out.extend(body.iter().take(used).copied());
    if !out.ends_with('\n') {
        out.push('\n');
    }
    out.push_str(&rows(found, host, indent));
    out.extend(lines.iter().skip(head + 1 + used).copied());
    Ok(out)
}

/// Credentials that one row covers: place, kind, fingerprint, and whether they have labels.
type Group<'f> = (&'f str, &'static str, Option<&'f str>, bool);

fn rows(found: &[&Found], host: Option<&str>, indent: &str) -> String {
    let mut groups: BTreeMap<Group<'_>, (BTreeMap<String, usize>, BTreeSet<&'static str>)> = BTreeMap::new();
    for found in found {
        let material = &found.material;
        let group =
            (found.location.as_str(), material.kind.name(), material.fingerprint.as_deref(), material.label.is_some());
        let (labels, signs) = groups.entry(group).or_default();
        let label = material.label.as_ref().map_or_else(String::new, |label| shown(label.as_bytes()));
        *labels.entry(label).or_default() += 1;
        signs.insert(material.sign.name());
    }
    let mut out = String::new();
    for ((location, kind, fingerprint, labelled), (labels, signs)) in groups {
        let signs: Vec<&str> = signs.into_iter().collect();
        let mut line = |text: String| out.push_str(&format!("{indent}{text}\n"));
        line(format!("# {}", signs.join(", ")));
        line(format!("- location: {}", scalar(location)));
        line(format!("  kind: {kind}"));
        if let Some(fingerprint) = fingerprint {
            line(format!("  fingerprint: {fingerprint}"));
        }
        if labelled {
            let names: Vec<String> = labels.keys().map(|label| scalar(label)).collect();
            line(format!("  labels: [{}]", names.join(", ")));
        }
        let count = labels.values().copied().max().unwrap_or(1);
        if count > 1 {
            line(format!("  count: {count}"));
        }
        if let Some(host) = host {
            line(format!("  hosts: [{}]", scalar(host)));
        }
        line("  state: unclassified".to_owned());
    }
    out
}

/// A scalar: plain where nobody can read it as something else, else in quotes.
fn scalar(text: &str) -> String {
    const WORDS: [&str; 10] = ["true", "false", "null", "yes", "no", "on", "off", "y", "n", "nan"];
    let first = |c: char| c.is_ascii_alphabetic() || c == '/';
    let plain = text.starts_with(first)
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "/._@+-".contains(c))
        && !WORDS.contains(&text.to_ascii_lowercase().as_str());
    if plain { text.to_owned() } else { serde_json::Value::String(text.to_owned()).to_string() }
}
