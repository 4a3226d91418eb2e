//! Findings: what is newly permitted first, each with its witness and both sources.

use super::data::Page;
use super::sides;
use super::writer::Html;
use crate::diag::{Evidence, Finding, Level};
use crate::report::groups::{Effect, Group, decision, groups};
use crate::source::SourceMap;

pub(super) fn section(h: &mut Html, page: &Page, map: &SourceMap) {
    h.el("section", &[("id", "changes"), ("aria-labelledby", "h-changes")], |h| {
        h.el("h2", &[("id", "h-changes")], |h| {
            h.text(if page.report.compared.is_some() { "What changed" } else { "Findings" });
        });
        if page.report.findings.is_empty() {
            h.el("p", &[("class", "empty")], |h| {
                h.text(match (page.report.compared.is_some(), page.report.exit_code) {
                    (true, 0) => "Nothing is newly permitted, and nothing is no longer permitted.",
                    _ => "There are no findings about this version.",
                });
            });
        }
        for group in groups(&page.report.findings) {
            self::group(h, &group, map);
        }
    });
}

fn group(h: &mut Html, group: &Group<'_>, map: &SourceMap) {
    let title = group.title();
    h.el("h3", &[], |h| h.text(&title));
    let (notes, weighty): (Vec<&Finding>, Vec<&Finding>) = group
        .findings
        .iter()
        .partition(|f| group.effect == Effect::Narrowing || group.effect == Effect::Other && f.level == Level::Note);
    for finding in weighty {
        let class = match (group.effect, finding.level) {
            (Effect::Approved, _) => "finding open",
            (_, Level::Error) => "finding bad",
            (_, Level::Warning) => "finding open",
            (_, Level::Note) => "finding quiet",
        };
        h.el("article", &[("class", class), ("data-row", &title), ("tabindex", "-1")], |h| {
            self::finding(h, finding, map);
        });
    }
    if !notes.is_empty() {
        // Nothing to do about these: one line each, the texts folded.
        h.el("ul", &[("class", "narrowings")], |h| {
            for finding in notes {
                h.el("li", &[("data-row", &title)], |h| note(h, finding, map));
            }
        });
    }
}

fn note(h: &mut Html, finding: &Finding, map: &SourceMap) {
    match finding.evidence.as_ref().filter(|_| !says_more(finding)) {
        Some(evidence) => h.el("span", &[], |h| decided(h, evidence)),
        None => h.sentence(&finding.message),
    }
    h.text(" ");
    h.el("span", &[("class", "place")], |h| h.code(&map.line_ref(finding.span)));
    if !finding.texts.is_empty() {
        h.el("details", &[], |h| {
            h.raw("<summary>both texts</summary>");
            finding.texts.iter().for_each(|change| sides::change(h, change, None, map));
        });
    }
}

/// Witness and both decisions.
pub(super) fn decided(h: &mut Html, evidence: &Evidence) {
    h.el("span", &[("class", "witness")], |h| h.code(&evidence.witness));
    let (old, new) = (decision(&evidence.surface, evidence.old_tier), decision(&evidence.surface, evidence.new_tier));
    h.text(" ");
    h.el("span", &[("class", "step")], |h| {
        h.raw("<span class=\"sr\">goes from </span>");
        h.badge(badge(evidence, evidence.old_tier), &old);
        h.raw("<span aria-hidden=\"true\"> → </span><span class=\"sr\"> to </span>");
        h.badge(badge(evidence, evidence.new_tier), &new);
    });
    for assumed in &evidence.assumes {
        h.text(" ");
        h.el("span", &[("class", "assumed")], |h| h.sentence(assumed));
    }
}

/// The class of a decision: tiers of maps have five colours, rungs of capabilities three of them.
pub(super) fn tier_class(tier: Option<u8>) -> &'static str {
    match tier {
        Some(0) => "tier t0",
        Some(1) => "tier t1",
        Some(2) => "tier t2",
        Some(3) => "tier t3",
        _ => "tier t4",
    }
}

fn badge(evidence: &Evidence, tier: Option<u8>) -> &'static str {
    let rungs = evidence.surface == "capabilities";
    tier_class(if rungs { tier.map(|tier| [0, 1, 3].get(usize::from(tier)).copied().unwrap_or(3)) } else { tier })
}

/// Whether the message says more than witness and decision.
fn says_more(finding: &Finding) -> bool {
    !matches!(Effect::of(finding), Effect::Widening | Effect::Approved | Effect::Narrowing)
        || finding.evidence.as_ref().is_none_or(|e| matches!(e.surface.as_str(), "capabilities" | "configuration"))
}

fn finding(h: &mut Html, finding: &Finding, map: &SourceMap) {
    let evidence = finding.evidence.as_ref().filter(|e| !e.rungs.is_empty());
    h.el("h4", &[], |h| {
        if let Some(evidence) = evidence {
            return decided(h, evidence);
        }
        h.badge(super::level(finding.level), finding.level.as_str());
        h.text(" ");
        h.sentence(&finding.message);
    });
    if evidence.is_some() && says_more(finding) {
        h.el("p", &[], |h| h.sentence(&finding.message));
    }
    places(h, finding, map);
    if finding.texts.is_empty() {
        h.el("div", &[("class", "sides")], |h| {
            sides::excerpt(h, "here", finding.span, map);
            finding.related.iter().take(1).for_each(|other| sides::excerpt(h, "and", other.span, map));
        });
    }
    // What permits it now may be a rule that did not change.
    let old = |file| finding.texts.iter().filter_map(|change| change.old).any(|old| old.file == file);
    let permits = Some(finding.span).filter(|span| Effect::of(finding) != Effect::Narrowing && !old(span.file));
    finding.texts.iter().for_each(|change| sides::change(h, change, permits, map));
    if let Some(help) = finding.help.as_ref().filter(|_| finding.level > Level::Note) {
        h.el("p", &[("class", "help")], |h| {
            h.text("To put it right: ");
            h.sentence(help);
            h.text(".");
        });
    }
    if let Some(line) = evidence.and_then(replay) {
        h.el("p", &[("class", "replay")], |h| {
            h.text("See for yourself: ");
            h.code(&line);
        });
    }
}

/// Where it stands and what stands there.
fn places(h: &mut Html, finding: &Finding, map: &SourceMap) {
    h.el("ul", &[("class", "places")], |h| {
        let own = [(finding.span, finding.label.as_str())];
        let others = finding.related.iter().map(|other| (other.span, other.label.as_str()));
        for (span, label) in own.into_iter().chain(others) {
            h.el("li", &[], |h| {
                h.code(&map.line_ref(span));
                if !label.is_empty() {
                    h.text(" ");
                    h.sentence(label);
                }
            });
        }
        h.el("li", &[("class", "rule-code")], |h| {
            h.code(&format!("polctl rule {}", finding.code.as_str()));
            h.text(" says more");
        });
    });
}

/// The command that decides a witness again, in the policy directory.
fn replay(evidence: &Evidence) -> Option<String> {
    let options = evidence.replay.as_ref()?;
    let quoted = |text: &str| {
        let plain =
            |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '/' | '.' | ',' | ':' | '@' | '=' | '+');
        if !text.is_empty() && text.chars().all(plain) {
            text.to_owned()
        } else {
            format!("'{}'", text.replace('\'', "'\\''"))
        }
    };
    // A sudo line says `sudo` itself.
    let surface = if evidence.surface == "egress" { "egress " } else { "" };
    let options: Vec<String> = options.iter().map(|option| quoted(option)).collect();
    let space = if options.is_empty() { "" } else { " " };
    Some(format!("polctl explain {}{space}{surface}{}", options.join(" "), quoted(&evidence.witness)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_to_copy_cannot_be_left() {
        let evidence = |surface: &str, witness: &str| Evidence {
            surface: surface.into(),
            rungs: vec![0],
            witness: witness.into(),
            assumes: Vec::new(),
            replay: Some(vec!["--cwd".into(), "/a b".into()]),
            old_tier: None,
            new_tier: Some(0),
            request: None,
        };
        let line = |surface, witness| replay(&evidence(surface, witness)).unwrap();
        assert_eq!(line("commands", "echo 'x'; rm"), "polctl explain --cwd '/a b' 'echo '\\''x'\\''; rm'");
        assert_eq!(line("egress", "GET https://a/"), "polctl explain --cwd '/a b' egress 'GET https://a/'");
    }
}
