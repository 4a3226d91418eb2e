//! For GitHub Actions: annotations as workflow commands, then the report for people in a folded
//! group of the log, then the verdict.
//!
//! The runner reads commands out of whatever a step prints. Policy text is only ever printed as
//! the escaped data of a command, or while commands are stopped.

use sha2::{Digest as _, Sha256};

use super::groups::Effect;
use super::human::{human, visible};
use super::places::{Mark, Places, is_under_review, mark, region};
use super::summary::{self, changes, plural};
use super::{Report, Summary};
use crate::diag::{Finding, Level};
use crate::source::SourceMap;

/// Most annotations of one level that GitHub shows of a step; what comes after is dropped there.
const MAX_ANNOTATIONS: usize = 10;
/// Most bytes of a message; GitHub takes 64 KiB.
const MAX_MESSAGE: usize = 16 * 1024;
/// Columns of the report in the log.
const WIDTH: usize = 100;

/// Renders a report for the log of a step.
pub fn github(report: &Report, map: &SourceMap, places: &Places) -> String {
    let mut out = String::new();
    for level in [Level::Error, Level::Warning, Level::Note] {
        for annotation in annotations(report, level, map, places) {
            out.push_str(&annotation.command(level));
        }
    }
    out.push_str(&format!("::group::polctl {}: {}\n", report.command, plural(report.findings.len(), "finding")));
    out.push_str(&without_commands(&human(report, map, false, WIDTH)));
    out.push_str("::endgroup::\n");
    out.push_str(&verdict(report));
    out
}

/// The verdict in polctl's own words: names of versions are text of others.
fn verdict(report: &Report) -> String {
    let Summary { errors, warnings, .. } = report.summary();
    let compared = report.compared.as_ref().map(|_| format!("{}; ", changes(&report.summary())));
    let counts = format!("{}, {}", plural(errors, "error"), plural(warnings, "warning"));
    let verdict = summary::verdict(report.exit_code);
    format!("polctl {}: {verdict}: {}{counts}\n", report.command, compared.unwrap_or_default())
}

/// Text that the runner shows and does not read. The word that ends this is the digest of the
/// text, which no part of the text can know.
fn without_commands(text: &str) -> String {
    let token: String = Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
    format!("::stop-commands::{token}\n{text}::{token}::\n")
}

/// What is marked at one place.
struct Annotation {
    /// File, and the region in it; `None`: nothing of the version under review.
    place: Option<(String, Option<Region>)>,
    title: String,
    message: String,
}

type Region = ((usize, usize), (usize, usize));

impl Annotation {
    fn new(finding: &Finding, map: &SourceMap, places: &Places) -> Annotation {
        let place = match mark(finding, map) {
            Mark::Region(span) => places.path(span, map).map(|path| (path, Some(region(span, map)))),
            Mark::File(span) if !is_under_review(span, map) => None,
            Mark::File(span) => places.path_under_review(span, map).map(|path| (path, None)),
        };
        let title = format!("polctl: {}", finding.code.as_str());
        Annotation { place, title, message: message(finding, map, places) }
    }

    /// File and line.
    fn line(&self) -> Option<(&str, Option<usize>)> {
        self.place.as_ref().map(|(path, region)| (path.as_str(), region.map(|((line, _), _)| line)))
    }

    fn command(&self, level: Level) -> String {
        let name = match level {
            Level::Error => "error",
            Level::Warning => "warning",
            Level::Note => "notice",
        };
        let mut properties = Vec::new();
        if let Some((path, region)) = &self.place {
            properties.push(format!("file={}", property(path)));
            if let Some(((line, column), (end_line, end_column))) = region {
                properties.push(format!("line={line},endLine={end_line}"));
                // Columns count within one line only; the last one is the last character.
                if line == end_line {
                    properties.push(format!("col={column},endColumn={}", end_column.saturating_sub(1).max(*column)));
                }
            }
        }
        properties.push(format!("title={}", property(&visible(&self.title))));
        format!("::{name} {}::{}\n", properties.join(","), data(&cut(&visible(&self.message))))
    }
}

/// All that there is to say about a finding, in lines.
fn message(finding: &Finding, map: &SourceMap, places: &Places) -> String {
    let mut lines = vec![finding.message.clone()];
    if !finding.label.is_empty() {
        lines.push(format!("{}: {}", map.line_ref(finding.span), finding.label));
    }
    lines.extend(finding.related.iter().map(|other| format!("{}: {}", map.line_ref(other.span), other.label)));
    if let Some(help) = finding.help.as_ref().filter(|_| finding.level > Level::Note) {
        lines.push(format!("help: {help}"));
    }
    let page = places.page(crate::diag::info(finding.code));
    lines.push(page.unwrap_or_else(|| format!("`polctl rule {}` says more", finding.code.as_str())));
    lines.join("\n")
}

/// The annotations of one level: one for each finding as long as GitHub shows them all. Beyond
/// that findings at one place are joined, and if these are still too many, the last annotation
/// lists what has none.
fn annotations(report: &Report, level: Level, map: &SourceMap, places: &Places) -> Vec<Annotation> {
    let mut findings: Vec<&Finding> = report.findings.iter().filter(|f| f.level == level).collect();
    // A stable sort: within one effect the order is that of the report.
    findings.sort_by_key(|finding| Effect::of(finding));
    let all: Vec<Annotation> = findings.iter().map(|finding| Annotation::new(finding, map, places)).collect();
    if all.len() <= MAX_ANNOTATIONS {
        return all;
    }
    let mut joined = joined(all);
    if joined.len() > MAX_ANNOTATIONS {
        let rest = joined.split_off(MAX_ANNOTATIONS - 1);
        joined.push(listed(&rest));
    }
    joined
}

fn joined(all: Vec<Annotation>) -> Vec<Annotation> {
    let mut joined: Vec<(usize, Annotation)> = Vec::new();
    for annotation in all {
        match joined.iter_mut().find(|(_, first)| first.line() == annotation.line()) {
            Some((count, first)) => {
                *count += 1;
                first.title = format!("polctl: {}", plural(*count, "finding"));
                first.message.push_str(&format!("\n\n{}", annotation.message));
            }
            None => joined.push((1, annotation)),
        }
    }
    joined.into_iter().map(|(_, annotation)| annotation).collect()
}

/// One annotation for many places, without a place of its own.
fn listed(rest: &[Annotation]) -> Annotation {
    let mut message = format!(
        "GitHub shows {MAX_ANNOTATIONS} annotations of a kind, so these stand together; the log of this step has all of each:"
    );
    for annotation in rest {
        let place = match &annotation.place {
            Some((path, Some(((line, _), _)))) => format!("{path}:{line}"),
            Some((path, None)) => path.clone(),
            None => "(no file)".to_owned(),
        };
        message.push_str(&format!("\n{place}: {}", annotation.message.lines().next().unwrap_or("")));
    }
    let title = format!("polctl: findings at {} more", plural(rest.len(), "place"));
    Annotation { place: None, title, message }
}

/// A message that GitHub takes as a whole; what is cut is said.
fn cut(text: &str) -> String {
    if text.len() <= MAX_MESSAGE {
        return text.to_owned();
    }
    let end = (0..=MAX_MESSAGE).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    let (shown, rest) = text.split_at(end);
    format!("{shown}…\n({} more bytes; the log of this step has all)", rest.len())
}

/// The data of a command, as the runner reads it back.
fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// The value of a property of a command.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The other side, written from the runner's description of commands: the last step gives
    /// back the percent sign itself.
    fn unescaped(text: &str, property: bool) -> String {
        let text = text.replace("%0D", "\r").replace("%0A", "\n");
        let text = if property { text.replace("%3A", ":").replace("%2C", ",") } else { text };
        text.replace("%25", "%")
    }

    #[test]
    fn what_is_escaped_comes_back() {
        for text in ["100%", "%25", "%0A", "a\nb\r\n::error::c", "k=v,l=w:x", "🦀 %2C", "##[add-mask]x", ""] {
            assert_eq!(unescaped(&data(text), false), text);
            assert_eq!(unescaped(&property(text), true), text);
            assert!(!data(text).contains(['\n', '\r']));
            assert!(!property(text).contains([',', ':', '\n', '\r']));
        }
    }

    #[test]
    fn long_messages_say_that_they_are_cut() {
        let text = cut(&"ü".repeat(MAX_MESSAGE));
        assert!(text.len() < MAX_MESSAGE + 100 && text.ends_with("(16384 more bytes; the log of this step has all)"));
        assert_eq!(cut("x"), "x");
    }
}
