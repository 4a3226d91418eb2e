//! For machines: own types, versioned, positions from 1.

use serde::Serialize;

use super::Report;
use crate::diag::Finding;
use crate::source::{SourceMap, Span};

/// Version of this format. Fields may be added under one version; nothing else changes.
const VERSION: u32 = 1;

#[derive(Serialize)]
struct Output<'a> {
    version: u32,
    tool: Tool,
    command: &'a str,
    exit_code: u8,
    verdict: &'static str,
    compared: Option<Compared<'a>>,
    summary: Counts,
    findings: Vec<Item<'a>>,
}

#[derive(Serialize)]
struct Tool {
    name: &'static str,
    version: &'static str,
}

#[derive(Serialize)]
struct Compared<'a> {
    old: Version<'a>,
    new: Version<'a>,
}

#[derive(Serialize)]
struct Version<'a> {
    name: &'a str,
    policy_id: Option<&'a str>,
}

#[derive(Serialize)]
struct Counts {
    errors: usize,
    warnings: usize,
    widenings: usize,
    /// Those of the widenings that an approval lets pass.
    approved: usize,
    narrowings: usize,
    /// Questions that polctl could not answer.
    open: usize,
    /// `null` where no two sets were compared.
    rules: Option<Rules>,
}

#[derive(Serialize)]
struct Rules {
    unchanged: usize,
    reworded: usize,
    moved: usize,
    /// Rules of the new version that the old one does not have.
    new: usize,
    /// Rules of the old version that the new one does not have.
    gone: usize,
    same_configuration: bool,
}

#[derive(Serialize)]
struct Item<'a> {
    code: &'a str,
    level: &'a str,
    message: &'a str,
    help: Option<&'a str>,
    location: Location<'a>,
    related: Vec<Related<'a>>,
    evidence: Option<Evidence<'a>>,
}

#[derive(Serialize)]
struct Location<'a> {
    file: &'a str,
    /// The revision or directory, for the old version; absent for the version under review.
    origin: Option<&'a str>,
    start: Position,
    end: Position,
}

#[derive(Serialize)]
struct Position {
    line: usize,
    column: usize,
}

#[derive(Serialize)]
struct Related<'a> {
    label: &'a str,
    location: Location<'a>,
}

#[derive(Serialize)]
struct Evidence<'a> {
    surface: &'a str,
    rungs: &'a [u8],
    witness: &'a str,
    assumes: &'a [String],
    /// Options of `polctl explain` that decide the witness again; `null`: it is no line.
    replay: Option<&'a [String]>,
    /// Lowest tier that allows the witness; `null`: denied at every tier.
    old_tier: Option<u8>,
    new_tier: Option<u8>,
    /// For plain Cedar: what `cedar authorize` reads.
    #[serde(skip_serializing_if = "Option::is_none")]
    request: Option<&'a serde_json::Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    entities: Option<&'a serde_json::Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    environments: Option<&'a [String]>,
}

/// Renders a report as one JSON document.
pub fn json(report: &Report, map: &SourceMap) -> String {
    let summary = report.summary();
    let output = Output {
        version: VERSION,
        tool: Tool { name: "polctl", version: env!("CARGO_PKG_VERSION") },
        command: report.command,
        exit_code: report.exit_code,
        verdict: match report.exit_code {
            0 => "ok",
            1 => "findings",
            2 => "malformed",
            3 => "inconclusive",
            _ => "refused",
        },
        compared: report.compared.as_ref().map(|(old, new)| Compared {
            old: Version { name: old, policy_id: report.policy_ids.0.as_deref() },
            new: Version { name: new, policy_id: report.policy_ids.1.as_deref() },
        }),
        summary: Counts {
            errors: summary.errors,
            warnings: summary.warnings,
            widenings: summary.widenings,
            approved: summary.approved,
            narrowings: summary.narrowings,
            open: summary.open,
            rules: report.rules.map(|rules| Rules {
                unchanged: rules.unchanged,
                reworded: rules.reworded,
                moved: rules.moved,
                new: rules.fresh,
                gone: rules.gone,
                same_configuration: rules.same_configuration,
            }),
        },
        findings: report.findings.iter().map(|f| item(f, map)).collect(),
    };
    let mut text =
        serde_json::to_string_pretty(&output).unwrap_or_else(|e| format!("{{\"error\": {:?}}}", e.to_string()));
    text.push('\n');
    text
}

fn item<'a>(finding: &'a Finding, map: &'a SourceMap) -> Item<'a> {
    Item {
        code: finding.code.as_str(),
        level: finding.level.as_str(),
        message: &finding.message,
        help: finding.help.as_deref(),
        location: location(finding.span, map),
        related: finding.related.iter().map(|r| Related { label: &r.label, location: location(r.span, map) }).collect(),
        evidence: finding.evidence.as_ref().map(|e| Evidence {
            surface: &e.surface,
            rungs: &e.rungs,
            witness: &e.witness,
            assumes: &e.assumes,
            replay: e.replay.as_deref(),
            old_tier: e.old_tier,
            new_tier: e.new_tier,
            request: e.request.as_ref().map(|r| &r.request),
            entities: e.request.as_ref().map(|r| &r.entities),
            environments: e.request.as_ref().map(|r| r.environments.as_slice()),
        }),
    }
}

fn location(span: Span, map: &SourceMap) -> Location<'_> {
    let file = map.get(span.file);
    let position = |offset: usize| {
        let (line, column) = file.map_or((1, 1), |f| f.position(offset));
        Position { line, column }
    };
    Location {
        file: file.map_or("", |f| f.name.as_str()),
        origin: file.and_then(|f| f.origin.as_deref()),
        start: position(span.start),
        end: position(span.end),
    }
}
