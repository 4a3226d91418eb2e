//! For code scanning: SARIF 2.1.0 (OASIS), one run, one result for each finding.
//!
//! Whatever a viewer does with a message, policy text in it is no link: SARIF reads `[a](b)` as one.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use super::Report;
use super::human::visible;
use super::places::{Mark, Places, mark, region};
use crate::diag::{CODES, CodeInfo, Finding, Level};
use crate::source::{SourceMap, Span};

/// The published schema that the output is valid against.
const SCHEMA: &str = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json";
/// Base of the paths of the version under review: the root of the repository.
const ROOT: &str = "%SRCROOT%";
/// Base of the paths of the old version, whose lines are not those of the checkout.
const OLD: &str = "OLD";
/// Name of polctl's fingerprint; the number changes when what goes into it does.
const FINGERPRINT: &str = "polctl/v1";

/// Renders a report as a SARIF log.
pub fn sarif(report: &Report, map: &SourceMap, places: &Places) -> String {
    let rules: Vec<&CodeInfo> =
        CODES.iter().filter(|row| report.findings.iter().any(|finding| finding.code == row.code)).collect();
    let mut seen = BTreeMap::new();
    let results: Vec<Value> =
        report.findings.iter().map(|finding| result(finding, &rules, &mut seen, map, places)).collect();
    let log = json!({
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": driver(&rules, places) },
            "automationDetails": { "id": format!("polctl/{}/", report.command) },
            "invocations": [invocation(report)],
            "columnKind": "unicodeCodePoints",
            "originalUriBaseIds": bases(report),
            "results": results,
        }],
    });
    let mut text = serde_json::to_string_pretty(&log).unwrap_or_else(|e| format!("{{\"error\": {:?}}}", e.to_string()));
    text.push('\n');
    text
}

fn driver(rules: &[&CodeInfo], places: &Places) -> Value {
    let rules: Vec<Value> = rules.iter().map(|row| rule(row, places)).collect();
    let mut driver = json!({ "name": "polctl", "version": env!("CARGO_PKG_VERSION"), "rules": rules });
    if let Some(docs) = &places.docs {
        set(&mut driver, "informationUri", json!(docs));
    }
    driver
}

fn rule(row: &CodeInfo, places: &Places) -> Value {
    let page = places.page(row);
    let link = page.as_ref().map_or_else(String::new, |page| format!("\n\n[More]({page})"));
    let mut rule = json!({
        "id": row.code.as_str(),
        "shortDescription": { "text": row.title },
        "fullDescription": { "text": row.text },
        "help": { "text": row.text, "markdown": format!("**{}**\n\n{}{link}", row.title, row.text) },
        "defaultConfiguration": { "level": row.level.as_str() },
    });
    if let Some(page) = page {
        set(&mut rule, "helpUri", json!(page));
    }
    rule
}

/// A run without a verdict did not do what it was asked for.
fn invocation(report: &Report) -> Value {
    json!({ "exitCode": report.exit_code, "executionSuccessful": matches!(report.exit_code, 0 | 1) })
}

fn bases(report: &Report) -> Value {
    let mut bases = json!({ ROOT: { "description": { "text": "the root of the repository" } } });
    if let Some((old, _)) = &report.compared {
        let text = format!("the old version: {}", message(old));
        set(&mut bases, OLD, json!({ "description": { "text": text } }));
    }
    bases
}

fn result(
    finding: &Finding,
    rules: &[&CodeInfo],
    seen: &mut BTreeMap<String, usize>,
    map: &SourceMap,
    places: &Places,
) -> Value {
    let mut text = finding.message.clone();
    if !finding.label.is_empty() {
        text.push_str(&format!("\n{}", finding.label));
    }
    if let Some(help) = finding.help.as_ref().filter(|_| finding.level > Level::Note) {
        text.push_str(&format!("\nhelp: {help}"));
    }
    let mut result = json!({
        "ruleId": finding.code.as_str(),
        "ruleIndex": rules.iter().position(|row| row.code == finding.code),
        "level": finding.level.as_str(),
        "message": { "text": message(&text) },
        "locations": [marked(finding, map, places)],
        "partialFingerprints": { FINGERPRINT: numbered(&fingerprint(finding, map), seen) },
    });
    let related = related(finding, map, places);
    if !related.is_empty() {
        set(&mut result, "relatedLocations", related.into());
    }
    if let Some(properties) = properties(finding) {
        set(&mut result, "properties", properties);
    }
    result
}

/// The place that a viewer opens: always one of the version under review.
fn marked(finding: &Finding, map: &SourceMap, places: &Places) -> Value {
    match mark(finding, map) {
        Mark::Region(span) => location(span, map, places),
        Mark::File(span) => {
            let path = places.path_under_review(span, map).unwrap_or_default();
            json!({ "physicalLocation": { "artifactLocation": { "uri": uri(&path), "uriBaseId": ROOT } } })
        }
    }
}

fn location(span: Span, map: &SourceMap, places: &Places) -> Value {
    let ((line, column), (end_line, end_column)) = region(span, map);
    let old = map.get(span.file).is_some_and(|file| file.origin.is_some());
    let path = places.path(span, map).unwrap_or_default();
    json!({ "physicalLocation": {
        "artifactLocation": { "uri": uri(&path), "uriBaseId": if old { OLD } else { ROOT } },
        "region": { "startLine": line, "startColumn": column, "endLine": end_line, "endColumn": end_column },
    }})
}

/// The other places: the finding's own, where the old version has it, and what it names.
fn related(finding: &Finding, map: &SourceMap, places: &Places) -> Vec<Value> {
    let own = (finding.span, if finding.label.is_empty() { &finding.message } else { &finding.label });
    let own = matches!(mark(finding, map), Mark::File(_)).then_some(own);
    let others = finding.related.iter().map(|other| (other.span, &other.label));
    let mut all = Vec::new();
    for (id, (span, label)) in own.into_iter().chain(others).enumerate() {
        let mut place = location(span, map, places);
        set(&mut place, "id", json!(id + 1));
        set(&mut place, "message", json!({ "text": message(&format!("{}: {label}", map.line_ref(span))) }));
        all.push(place);
    }
    all
}

fn properties(finding: &Finding) -> Option<Value> {
    let evidence = finding.evidence.as_ref()?;
    Some(json!({
        "surface": evidence.surface,
        "rungs": evidence.rungs,
        "witness": evidence.witness,
        "assumes": evidence.assumes,
        "replay": evidence.replay,
        "oldTier": evidence.old_tier,
        "newTier": evidence.new_tier,
    }))
}

/// What a finding is about, not where it stands: code, file, the text that it points at, and the
/// witness. A finding keeps it when lines above it come and go.
fn fingerprint(finding: &Finding, map: &SourceMap) -> String {
    let name = map.get(finding.span.file).map_or("", |file| file.name.as_str());
    let text = map.text(finding.span.file).get(finding.span.start..finding.span.end).unwrap_or("");
    let words: Vec<&str> = text.split_whitespace().collect();
    let mut parts = vec![finding.code.as_str().to_owned(), name.to_owned(), words.join(" ")];
    match &finding.evidence {
        Some(evidence) => {
            parts.extend([evidence.surface.clone(), format!("{:?}", evidence.rungs), evidence.witness.clone()]);
        }
        None => parts.push(finding.message.clone()),
    }
    // The length before each part: no two lists of parts are one text.
    let text: String = parts.iter().map(|part| format!("{}:{part}", part.len())).collect();
    Sha256::digest(text.as_bytes()).iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

/// The second finding with one fingerprint is another finding.
fn numbered(fingerprint: &str, seen: &mut BTreeMap<String, usize>) -> String {
    let count = seen.entry(fingerprint.to_owned()).or_default();
    *count += 1;
    format!("{fingerprint}:{count}")
}

/// A message in which nothing is a link and everything can be seen.
fn message(text: &str) -> String {
    visible(text).replace("](", "] (")
}

/// A relative path as a URI: every byte that a path segment may not hold is encoded, a colon
/// too, which would make the first segment a scheme.
fn uri(path: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/!$&'()*+,;=@".contains(&byte);
    let encoded: String =
        path.bytes().map(|b| if plain(b) { char::from(b).to_string() } else { format!("%{b:02X}") }).collect();
    if path.starts_with('/') { format!("file://{encoded}") } else { encoded }
}

fn set(value: &mut Value, key: &str, inner: Value) {
    if let Some(object) = value.as_object_mut() {
        object.insert(key.to_owned(), inner);
    } else {
        *value = Value::Object(Map::from_iter([(key.to_owned(), inner)]));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_uris() {
        for (path, expected) in [
            ("policy/SUDO.md", "policy/SUDO.md"),
            ("a b/ü%#?.md", "a%20b/%C3%BC%25%23%3F.md"),
            ("c:/x", "c%3A/x"),
            ("/srv/x", "file:///srv/x"),
        ] {
            assert_eq!(uri(path), expected);
        }
    }

    #[test]
    fn messages_hold_no_link() {
        assert!(!message("`[x](http://a.example/)`").contains("]("));
        assert_eq!(message("a\u{202e}b\nc"), "a\\u{202e}b\nc");
    }
}
