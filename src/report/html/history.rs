//! What became possible when: the commits that changed the policy, as a line and one by one.

use super::changes::decided;
use super::data::{HistoryView, Page, Step, StepOutcome};
use super::writer::Html;
use crate::diag::{Evidence, Finding, Level};
use crate::report::groups::Effect;
use crate::report::summary::plural;
use crate::source::SourceMap;

/// Most commits of the drawn line; the list has all.
const MAX_DRAWN: usize = 400;
/// Most findings of one commit and direction that are listed.
const MAX_LISTED: usize = 50;

pub(super) fn section(h: &mut Html, page: &Page, map: &SourceMap) {
    let Some(history) = &page.history else { return };
    h.el("section", &[("id", "history"), ("aria-labelledby", "h-history")], |h| {
        h.raw("<h2 id=\"h-history\">What became possible when</h2>\n");
        h.el("p", &[], |h| {
            h.text(&format!("{} of the range ", plural(history.commits, "commit")));
            h.code(&history.range);
            h.text(&format!(
                ": {} changed what is read as policy; each is compared with its first parent.",
                history.steps.len()
            ));
        });
        if !history.steps.is_empty() {
            drawn(h, history);
        }
        h.el("ol", &[("class", "steps")], |h| {
            for (at, step) in history.steps.iter().enumerate() {
                self::step(h, at, step, map);
            }
        });
    });
}

/// Widenings and narrowings of a commit.
fn counts(step: &Step) -> (usize, usize) {
    match &step.outcome {
        StepOutcome::Compared(findings) => {
            (of(findings, Effect::Widening).count(), of(findings, Effect::Narrowing).count())
        }
        _ => (0, 0),
    }
}

fn of(findings: &[Finding], effect: Effect) -> impl Iterator<Item = &Finding> {
    findings.iter().filter(move |finding| Effect::of(finding) == effect)
}

/// What a commit did, in a few words; and its class.
fn verdict(step: &Step) -> (String, &'static str) {
    match &step.outcome {
        StepOutcome::First { rules } => (format!("first policy, {}", plural(*rules, "rule")), "quiet"),
        StepOutcome::Malformed { .. } => ("malformed, permits nothing that is verified".into(), "open"),
        StepOutcome::Absent => ("no policy any more".into(), "open"),
        StepOutcome::NotCompared(_) => ("no verdict".into(), "open"),
        StepOutcome::Compared(_) if step.is_gap() => ("no verdict: open questions".into(), "open"),
        StepOutcome::Compared(_) => match counts(step) {
            (0, 0) => ("clean: nothing is permitted differently".into(), "quiet"),
            (1, 0) => ("widening".into(), "bad"),
            (wider, 0) => (format!("widening: {wider}"), "bad"),
            (0, 1) => ("narrowing".into(), "good"),
            (0, narrower) => (format!("narrowing: {narrower}"), "good"),
            (wider, narrower) => {
                (format!("mixed: {}, {}", plural(wider, "widening"), plural(narrower, "narrowing")), "bad")
            }
        },
    }
}

/// A bar up for widenings and one down for narrowings, commit by commit.
fn drawn(h: &mut Html, history: &HistoryView) {
    const HALF: usize = 44;
    let steps = history.steps.get(history.steps.len().saturating_sub(MAX_DRAWN)..).unwrap_or(&[]);
    // A few commits fill a part of the line, many scroll.
    let width = (640 / steps.len().max(1)).clamp(8, 32);
    let most = steps.iter().map(counts).map(|(up, down)| up.max(down)).max().unwrap_or(0).max(1);
    let height = |n: usize| if n == 0 { 0 } else { (n * (HALF - 6) / most).max(5) };
    let total = |pick: fn((usize, usize)) -> usize| -> usize { steps.iter().map(|step| pick(counts(step))).sum() };
    let name = format!(
        "{}: {} above the line, {} below it. The list below says the same in words.",
        plural(steps.len(), "commit"),
        plural(total(|c| c.0), "widening"),
        plural(total(|c| c.1), "narrowing")
    );
    let size = format!("0 0 {} {}", steps.len() * width, 2 * HALF);
    h.el(
        "div",
        &[("class", "chart"), ("tabindex", "0"), ("role", "group"), ("aria-label", "The range as a line")],
        |h| {
            let all = (steps.len() * width).to_string();
            let attributes = [
                ("viewBox", size.as_str()),
                ("width", all.as_str()),
                ("height", "88"),
                ("role", "img"),
                ("aria-label", name.as_str()),
            ];
            h.el("svg", &attributes, |h| {
                let middle = HALF.to_string();
                h.el("line", &[("class", "axis"), ("x1", "0"), ("x2", &all), ("y1", &middle), ("y2", &middle)], |_| {});
                for (at, step) in steps.iter().enumerate() {
                    let (up, down) = counts(step);
                    let x = at * width + 2;
                    h.el("g", &[], |h| {
                        h.el("title", &[], |h| h.text(&format!("{} {}: {}", step.id, step.subject, verdict(step).0)));
                        if up + down == 0 {
                            bar(h, verdict(step).1, (x, width - 4), HALF - 2, 4);
                        }
                        if up > 0 {
                            bar(h, "bad", (x, width - 4), HALF - height(up), height(up));
                        }
                        if down > 0 {
                            bar(h, "good", (x, width - 4), HALF, height(down));
                        }
                    });
                }
            });
        },
    );
    h.el("p", &[("class", "legend")], |h| {
        h.raw("<span class=\"key bad\">widenings, up</span> <span class=\"key good\">narrowings, down</span> <span class=\"key quiet\">neither</span>");
        let left_out = history.steps.len().saturating_sub(MAX_DRAWN);
        if left_out > 0 {
            h.text(&format!(" The {left_out} oldest are in the list only."));
        }
    });
}

fn bar(h: &mut Html, class: &'static str, (x, width): (usize, usize), y: usize, height: usize) {
    let [x, width, y, height] = [x, width, y, height].map(|n| n.to_string());
    h.el(
        "rect",
        &[("class", class), ("x", &x), ("y", &y), ("width", &width), ("height", &height), ("rx", "1")],
        |_| {},
    );
}

fn step(h: &mut Html, at: usize, step: &Step, map: &SourceMap) {
    let (words, class) = verdict(step);
    let id = format!("c{}", at + 1);
    h.el("li", &[("class", class), ("id", &id), ("data-row", "history commit"), ("data-commit", &step.id)], |h| {
        h.el("h3", &[], |h| {
            h.el("bdi", &[], |h| h.text(if step.subject.is_empty() { "(no subject)" } else { &step.subject }));
        });
        h.el("p", &[("class", "meta")], |h| {
            h.code(&step.id);
            h.text(&format!(" {} ", step.date));
            h.el("bdi", &[], |h| h.text(&step.author));
            h.text(" ");
            h.badge(class, &words);
            if let Some(against) = &step.against {
                h.text(" compared with ");
                h.code(against);
                h.text(", the last one that can be read");
            }
        });
        match &step.outcome {
            StepOutcome::Compared(findings) => directions(h, findings, map),
            StepOutcome::Malformed { findings, reason } => {
                reason.iter().for_each(|reason| h.el("p", &[], |h| h.sentence(reason)));
                let errors: Vec<&Finding> = findings.iter().filter(|f| f.level == Level::Error).collect();
                listed(h, "why", &errors, map);
            }
            StepOutcome::NotCompared(reason) => h.el("p", &[], |h| h.sentence(reason)),
            StepOutcome::First { .. } | StepOutcome::Absent => {}
        }
    });
}

fn directions(h: &mut Html, findings: &[Finding], map: &SourceMap) {
    for (effect, title) in [
        (Effect::Widening, "became possible"),
        (Effect::Open, "could not be decided"),
        (Effect::Narrowing, "no longer possible"),
    ] {
        listed(h, title, &of(findings, effect).collect::<Vec<_>>(), map);
    }
}

fn listed(h: &mut Html, title: &'static str, findings: &[&Finding], map: &SourceMap) {
    if findings.is_empty() {
        return;
    }
    h.el("p", &[("class", "direction")], |h| h.text(title));
    h.el("ul", &[("class", "witnesses")], |h| {
        for finding in findings.iter().take(MAX_LISTED) {
            h.el("li", &[], |h| {
                match &finding.evidence {
                    Some(evidence) if !evidence.rungs.is_empty() => witness(h, finding, evidence),
                    _ => h.sentence(&finding.message),
                }
                h.text(" ");
                h.el("span", &[("class", "place")], |h| h.code(&map.line_ref(finding.span)));
            });
        }
        if findings.len() > MAX_LISTED {
            h.el("li", &[], |h| h.text(&format!("and {} more", findings.len() - MAX_LISTED)));
        }
    });
}

/// The witness; where the message says which setting it is, the message.
fn witness(h: &mut Html, finding: &Finding, evidence: &Evidence) {
    if matches!(evidence.surface.as_str(), "capabilities" | "configuration") {
        h.sentence(&finding.message);
    } else {
        decided(h, evidence);
    }
}
