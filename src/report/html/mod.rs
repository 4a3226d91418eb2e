//! One self-contained page for reviewers who would rather look than read.
//!
//! Plain data in, text out. The page fetches nothing and says so itself: its policy allows the one
//! style sheet and the one script that stand in it, by their digest, and nothing else. It is read
//! without the script, which only filters, sets the colours and moves by keys. Everything that
//! comes from outside passes through [`writer::Html::text`]; there is no other way into the page.

mod authority;
mod changes;
mod data;
mod history;
mod sides;
mod writer;

pub use data::{
    EntryView, HistoryView, Instance, Page, RuleView, SettingView, Step, StepOutcome, SubjectView, SurfaceView,
};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use sha2::{Digest as _, Sha256};

use self::writer::Html;
use super::summary::{self, is_open, plural, widens};
use crate::diag::Level;
use crate::source::SourceMap;

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// Renders the page.
pub fn html(page: &Page, map: &SourceMap) -> String {
    let mut h = Html::new();
    h.raw("<!doctype html>\n<html lang=\"en\">");
    head(&mut h, page);
    h.raw("<body>\n");
    h.raw("<a class=\"skip\" href=\"#changes\">Skip to the changes</a>\n");
    header(&mut h, page);
    h.el("div", &[("class", "bar")], |h| {
        contents(h, page);
        controls(h);
    });
    h.el("main", &[], |h| {
        changes::section(h, page, map);
        authority::section(h, page, map);
        authority::uncovered(h, page, map);
        history::section(h, page, map);
        authority::settings(h, page, map);
    });
    footer(&mut h, page);
    h.raw("<script>");
    h.raw(SCRIPT);
    h.raw("</script>\n</body>\n</html>\n");
    h.finish()
}

/// `sha256-…`, as a content security policy names an inline text.
fn digest(text: &str) -> String {
    format!("'sha256-{}'", BASE64_STANDARD.encode(Sha256::digest(text.as_bytes())))
}

fn head(h: &mut Html, page: &Page) {
    let policy = format!(
        "default-src 'none'; style-src {}; script-src {}; base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'",
        digest(STYLE),
        digest(SCRIPT)
    );
    h.raw("\n<head>\n<meta charset=\"utf-8\">\n");
    h.void("meta", &[("http-equiv", "Content-Security-Policy"), ("content", &policy)]);
    h.raw("\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n");
    h.raw("<meta name=\"referrer\" content=\"no-referrer\">\n<meta name=\"color-scheme\" content=\"light dark\">\n");
    h.el("title", &[], |h| {
        h.text(&format!("{}: policy {}", headline(page), page.set));
    });
    h.raw("<style>");
    h.raw(STYLE);
    h.raw("</style>\n</head>\n");
}

/// The word of the exit code, with a capital.
const fn word(exit_code: u8) -> &'static str {
    match exit_code {
        0 => "Passed",
        1 => "Failed",
        2 => "No verdict",
        3 => "Undecided, which is no pass",
        _ => "Refused",
    }
}

const fn tone(exit_code: u8) -> &'static str {
    match exit_code {
        0 => "good",
        1 => "bad",
        _ => "open",
    }
}

/// The first line of the page: the verdict and what it rests on.
pub fn headline(page: &Page) -> String {
    let (report, counts) = (&page.report, page.report.summary());
    let mut parts = Vec::new();
    if report.exit_code == 2 {
        parts.push("malformed input".to_owned());
    } else if report.compared.is_some() {
        parts.push(summary::changes(&counts));
    }
    if counts.open > 0 {
        parts.push(plural(counts.open, "open question"));
    }
    let other = report.findings.iter().filter(|f| f.level == Level::Error && !widens(f) && !is_open(f)).count();
    if other > 0 || report.compared.is_none() && report.exit_code != 2 {
        parts.push(plural(other, if report.compared.is_some() { "other error" } else { "error" }));
    }
    if counts.warnings > 0 {
        parts.push(plural(counts.warnings, "warning"));
    }
    let gaps = page.history.as_ref().map_or(0, HistoryView::gaps);
    if gaps > 0 {
        parts.push(format!("{} without a verdict in the history", plural(gaps, "commit")));
    }
    format!("{}: {}", word(report.exit_code), parts.join(", "))
}

fn header(h: &mut Html, page: &Page) {
    let report = &page.report;
    h.el("header", &[("class", tone(report.exit_code))], |h| {
        h.el("h1", &[("id", "verdict")], |h| h.text(&headline(page)));
        h.el("p", &[("class", "about")], |h| about(h, page));
    });
}

/// What the verdict is about.
fn about(h: &mut Html, page: &Page) {
    let report = &page.report;
    h.text("Policy set ");
    h.code(if page.set.is_empty() { "(not read)" } else { &page.set });
    match &report.compared {
        Some((old, new)) => {
            h.text(", from ");
            h.sentence(old);
            h.text(" to ");
            h.sentence(new);
            h.text(". ");
            if let Some(rules) = &report.rules {
                let how =
                    if rules.same_configuration { "in meaning" } else { "in themselves, under another configuration" };
                h.text(&format!("{} unchanged {how}", plural(rules.unchanged, "rule")));
                let more = [
                    (rules.reworded, "reworded"),
                    (rules.moved, "moved"),
                    (rules.fresh, "new or changed"),
                    (rules.gone, "gone or changed"),
                ];
                let more: Vec<String> =
                    more.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}")).collect();
                h.text(&if more.is_empty() { ".".to_owned() } else { format!("; {}.", more.join(", ")) });
            }
        }
        None => h.text(", by itself. Nothing was compared, so nothing is said about what is newly permitted."),
    }
}

/// The parts of the page with their counts.
fn contents(h: &mut Html, page: &Page) {
    let rules = page.rules().count();
    let uncovered = page.rules().filter(|rule| !rule.covered).count();
    let mut parts = vec![("#changes", "Changes and findings", page.report.findings.len())];
    parts.push(("#authority", "Authority", rules));
    parts.push(("#uncovered", "Without an example", uncovered));
    if let Some(history) = &page.history {
        parts.push(("#history", "History", history.steps.len()));
    }
    h.el("nav", &[("aria-label", "Parts of this page")], |h| {
        h.el("ul", &[], |h| {
            for (target, name, count) in parts {
                h.el("li", &[], |h| {
                    h.el("a", &[("href", target)], |h| {
                        h.text(name);
                        h.text(" ");
                        h.el("span", &[("class", "count")], |h| h.text(&count.to_string()));
                    });
                });
            }
        });
    });
}

/// Filter and colours: hidden until the script is there to serve them.
fn controls(h: &mut Html) {
    h.raw(concat!(
        "<div class=\"controls\" hidden>",
        "<label>Filter <input id=\"filter\" type=\"search\" autocomplete=\"off\" spellcheck=\"false\" placeholder=\"push, tier 0, sudo\"></label>",
        "<label>Colours <select id=\"theme\"><option value=\"\">automatic</option><option value=\"light\">light</option><option value=\"dark\">dark</option></select></label>",
        "<button type=\"button\" id=\"fold\" aria-pressed=\"false\">Open all</button>",
        "<p id=\"shown\" role=\"status\"></p></div>\n"
    ));
}

fn footer(h: &mut Html, page: &Page) {
    h.el("footer", &[], |h| {
        h.raw("<p class=\"keys\">Keys: <kbd>/</kbd> filter, <kbd>Esc</kbd> clear, <kbd>n</kbd> and <kbd>p</kbd> next and previous finding, <kbd>o</kbd> open or close all, <kbd>t</kbd> colours.</p>");
        h.el("p", &[], |h| {
            h.text(concat!("polctl ", env!("CARGO_PKG_VERSION")));
            if let Some(id) = &page.policy_id {
                h.text(", policy_id ");
                h.code(id);
            }
            h.text(". The page is a picture of one verdict; what binds is the exit code of ");
            h.code("polctl check");
            h.text(".");
        });
    });
}

/// The class of a level.
const fn level(level: Level) -> &'static str {
    match level {
        Level::Note => "quiet",
        Level::Warning => "open",
        Level::Error => "bad",
    }
}
