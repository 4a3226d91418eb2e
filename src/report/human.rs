//! For people: the summary first, then source excerpts by group, narrowings as lists, and the
//! verdict at the end, where a terminal stops.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::Arc;

use miette::{
    Diagnostic, GraphicalReportHandler, GraphicalTheme, LabeledSpan, MietteError, MietteSpanContents, Severity,
    SourceCode, SourceSpan, SpanContents,
};

use super::Report;
use super::groups::{Effect, groups};
use super::summary::{self, plural};
use super::text;
use crate::diag::{Finding, Level};
use crate::source::{FileId, SourceMap, Span, is_unseen};

/// Renders a report. `colour`: use terminal colours; `width`: columns.
pub fn human(report: &Report, map: &SourceMap, colour: bool, width: usize) -> String {
    let theme = if colour { GraphicalTheme::unicode() } else { GraphicalTheme::unicode_nocolor() };
    let handler = GraphicalReportHandler::new_themed(theme)
        .with_links(false)
        .with_width(width.clamp(60, 120))
        .with_context_lines(0);
    let mut out = String::new();
    if let Some(sentence) = summary::sentence(report) {
        let _ = writeln!(out, "{sentence}\n");
    }
    let mut texts: HashMap<FileId, Arc<str>> = HashMap::new();
    let mut excerpt = |out: &mut String, finding: &Finding| {
        let text = texts.entry(finding.span.file).or_insert_with(|| masked(map.text(finding.span.file)).into());
        let shown = Shown::new(finding, map, Arc::clone(text));
        if handler.render_report(out, &shown).is_err() {
            // Rendering into a string fails only where an excerpt cannot be cut; the words still count.
            let _ = writeln!(out, "{}: {} ({})", finding.level.as_str(), finding.message, map.line_ref(finding.span));
        }
        out.push('\n');
    };
    for group in groups(&report.findings) {
        // Findings about one version need no title: each has its own.
        if group.effect != Effect::Other {
            let _ = writeln!(out, "{}:", visible(&group.title()));
        }
        let (notes, weighty): (Vec<&Finding>, Vec<&Finding>) =
            group.findings.iter().partition(|f| f.level == Level::Note);
        for finding in weighty {
            excerpt(&mut out, finding);
            for text in finding.texts.iter().filter_map(|change| text::shown(change, map)) {
                let place = |place: Option<String>| place.map_or_else(|| "nothing".to_owned(), |p| visible(&p));
                let _ = writeln!(out, "  text: {} → {}", place(text.old), place(text.new));
                text.lines.iter().for_each(|line| out.push_str(&format!("  {line}\n")));
                out.push('\n');
            }
        }
        for note in &notes {
            let _ = writeln!(out, "  {} ({})", visible(&note.message), visible(&map.line_ref(note.span)));
        }
        if !notes.is_empty() {
            out.push('\n');
        }
    }
    out.push_str(&verdict(report));
    out
}

/// The last line: what was found, in one sentence.
fn verdict(report: &Report) -> String {
    let summary = report.summary();
    let mut parts = Vec::new();
    if let Some((old, new)) = &report.compared {
        parts.push(format!("{} from {old} to {new}", summary::changes(&summary)));
    }
    let other = summary.errors.saturating_sub(summary.widenings.saturating_sub(summary.approved));
    if other > 0 || report.compared.is_none() {
        parts.push(plural(other, if report.compared.is_none() { "error" } else { "other error" }));
    }
    if summary.warnings > 0 {
        parts.push(plural(summary.warnings, "warning"));
    }
    format!("polctl {}: {}: {}\n", report.command, summary::verdict(report.exit_code), parts.join("; "))
}

/// A finding in the shape that the renderer wants.
#[derive(Debug)]
struct Shown {
    message: String,
    code: String,
    help: Option<String>,
    severity: Severity,
    source: Lines,
    labels: Vec<LabeledSpan>,
}

impl Shown {
    fn new(finding: &Finding, map: &SourceMap, text: Arc<str>) -> Self {
        let label = (!finding.label.is_empty()).then(|| visible(&finding.label));
        let mut labels = vec![LabeledSpan::new_primary_with_span(label, range(finding.span, &text))];
        let mut help: Vec<String> = finding.help.iter().map(|h| visible(h)).collect();
        for other in &finding.related {
            if other.span.file == finding.span.file {
                labels.push(LabeledSpan::new_with_span(Some(visible(&other.label)), range(other.span, &text)));
            } else {
                // One excerpt shows one file; the other place is named.
                help.push(visible(&format!("{}: {}", map.line_ref(other.span), other.label)));
            }
        }
        Shown {
            message: visible(&finding.message),
            code: finding.code.as_str().to_owned(),
            help: (!help.is_empty()).then(|| help.join("\n")),
            severity: match finding.level {
                Level::Error => Severity::Error,
                Level::Warning => Severity::Warning,
                Level::Note => Severity::Advice,
            },
            source: Lines {
                name: map.get(finding.span.file).map_or_else(String::new, crate::source::SourceFile::display_name),
                text,
            },
            labels,
        }
    }
}

/// Text in which everything can be seen: what cannot is written as an escape.
pub(super) fn visible(text: &str) -> String {
    text.chars()
        .map(|c| if is_unseen(c) && c != '\n' { c.escape_unicode().to_string() } else { c.to_string() })
        .collect()
}

/// The same for an excerpt, without moving anything: stand-ins as long as what they stand for.
fn masked(text: &str) -> String {
    text.chars()
        .map(|c| match c.len_utf8() {
            _ if matches!(c, '\n' | '\t' | '\r') || !is_unseen(c) => c.to_string(),
            1 => "?".to_owned(),
            2 => "¿".to_owned(),
            3 => "\u{fffd}".to_owned(),
            _ => "\u{fffd}?".to_owned(),
        })
        .collect()
}

/// Most bytes of a place that an excerpt underlines.
const MAX_UNDERLINED: usize = 240;
/// Most bytes of a line that an excerpt shows on each side of the place.
const MAX_BESIDE: usize = 400;

fn range(span: Span, text: &str) -> SourceSpan {
    let end = boundary(text, span.end.min(span.start + MAX_UNDERLINED));
    (span.start, end.saturating_sub(span.start)).into()
}

/// The nearest place at or before `at` where a character begins.
fn boundary(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

/// A text of which excerpts are whole lines.
#[derive(Debug)]
struct Lines {
    name: String,
    text: Arc<str>,
}

impl SourceCode for Lines {
    fn read_span<'a>(
        &'a self,
        span: &SourceSpan,
        _: usize,
        _: usize,
    ) -> Result<Box<dyn SpanContents<'a> + 'a>, MietteError> {
        let bytes = self.text.as_bytes();
        let start = span.offset().min(bytes.len());
        let end = (span.offset() + span.len()).min(bytes.len());
        let from = bytes.get(..start).and_then(|b| b.iter().rposition(|c| *c == b'\n')).map_or(0, |at| at + 1);
        let to = bytes.get(end..).and_then(|b| b.iter().position(|c| *c == b'\n')).map_or(bytes.len(), |at| end + at);
        // Of a very long line the part around the place is enough, and a terminal takes no more.
        let from = boundary(&self.text, from.max(start.saturating_sub(MAX_BESIDE)));
        let to = boundary(&self.text, to.min(end + MAX_BESIDE));
        let data = bytes.get(from..to).ok_or(MietteError::OutOfBounds)?;
        let before = bytes.get(..from).unwrap_or(&[]);
        let line = before.iter().filter(|c| **c == b'\n').count();
        let count = data.iter().filter(|c| **c == b'\n').count() + 1;
        let covered = (from, to - from).into();
        Ok(Box::new(MietteSpanContents::new_named(self.name.clone(), data, covered, line, 0, count)))
    }
}

impl std::fmt::Display for Shown {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Shown {}

impl Diagnostic for Shown {
    fn code<'a>(&'a self) -> Option<Box<dyn std::fmt::Display + 'a>> {
        Some(Box::new(&self.code))
    }
    fn severity(&self) -> Option<Severity> {
        Some(self.severity)
    }
    fn help<'a>(&'a self) -> Option<Box<dyn std::fmt::Display + 'a>> {
        self.help.as_ref().map(|h| Box::new(h) as Box<dyn std::fmt::Display>)
    }
    fn source_code(&self) -> Option<&dyn SourceCode> {
        Some(&self.source)
    }
    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        Some(Box::new(self.labels.iter().cloned()))
    }
}
