//! What may be done: rules by surface and tier, manifests, configuration, and rules that no
//! example covers.

use super::changes::tier_class;
use super::data::{Page, RuleView, SettingView, SubjectView, SurfaceView};
use super::writer::Html;
use crate::report::groups::decision;
use crate::report::summary::plural;
use crate::source::{SourceMap, Span};

/// Rules of a tier up to which they are shown without being asked for.
const FEW: usize = 12;
/// Lines that are shown of an entry of a manifest.
const ENTRY_LINES: usize = 6;

pub(super) fn section(h: &mut Html, page: &Page, map: &SourceMap) {
    h.el("section", &[("id", "authority"), ("aria-labelledby", "h-authority")], |h| {
        h.raw("<h2 id=\"h-authority\">Authority</h2>\n");
        h.raw("<p>What each rule permits, by surface and tier. The strictest rule that matches wins. A surface that is not listed permits nothing.</p>\n");
        if !page.surfaces.is_empty() {
            matrix(h, page);
        }
        for surface in &page.surfaces {
            self::surface(h, surface, map);
        }
        for subject in &page.subjects {
            self::subject(h, subject, map);
        }
    });
}

/// Rules of a surface at a tier.
fn at(surface: &SurfaceView, tier: u8) -> impl Iterator<Item = &RuleView> {
    surface.rules.iter().filter(move |rule| rule.tier == tier)
}

const TIERS: [u8; 5] = [0, 1, 2, 3, 4];

/// How many rules there are, surface by tier.
fn matrix(h: &mut Html, page: &Page) {
    h.raw("<div class=\"wide\"><table class=\"matrix\"><caption>Rules by surface and tier</caption>\n<thead><tr><th scope=\"col\">surface</th>");
    for tier in TIERS {
        h.el("th", &[("scope", "col")], |h| h.badge(tier_class(Some(tier)), &format!("tier {tier}")));
    }
    h.raw("<th scope=\"col\">no rule</th></tr></thead>\n<tbody>");
    for surface in &page.surfaces {
        h.el("tr", &[], |h| {
            h.el("th", &[("scope", "row")], |h| h.text(surface.name));
            for tier in TIERS {
                let count = at(surface, tier).count();
                h.el("td", &[], |h| {
                    if count == 0 {
                        h.raw("<span class=\"none\">0</span>");
                        return;
                    }
                    let target = format!("#{}-{tier}", surface.name);
                    let name = format!("{} of tier {tier} on {}", plural(count, "rule"), surface.name);
                    h.el("a", &[("href", &target), ("aria-label", &name)], |h| h.text(&count.to_string()));
                });
            }
            h.el("td", &[], |h| h.badge(tier_class(Some(surface.unmatched)), &format!("tier {}", surface.unmatched)));
        });
    }
    h.raw("</tbody></table></div>\n");
}

fn surface(h: &mut Html, surface: &SurfaceView, map: &SourceMap) {
    h.el("h3", &[], |h| {
        h.text(&format!("{}: {}", surface.name, plural(surface.rules.len(), "rule")));
    });
    h.el("p", &[], |h| {
        let effect = surface.effects.get(usize::from(surface.unmatched)).copied().unwrap_or("deny");
        h.text(&format!("What no rule matches has tier {}: {effect}. Stated at ", surface.unmatched));
        h.code(&map.line_ref(surface.span));
        h.text(".");
    });
    for tier in TIERS {
        let rules: Vec<&RuleView> = at(surface, tier).collect();
        if rules.is_empty() {
            continue;
        }
        let id = format!("{}-{tier}", surface.name);
        let mut attributes = vec![("id", id.as_str()), ("class", "rules")];
        if rules.len() <= FEW {
            attributes.push(("open", ""));
        }
        h.el("details", &attributes, |h| {
            h.el("summary", &[], |h| {
                h.badge(tier_class(Some(tier)), &format!("tier {tier}"));
                let effect = surface.effects.get(usize::from(tier)).copied().unwrap_or("deny");
                h.text(&format!(" {effect} "));
                h.badge("count", &plural(rules.len(), "rule"));
            });
            let within = format!("{} tier {tier}", surface.name);
            h.el("ul", &[], |h| {
                for rule in rules {
                    h.el("li", &[("data-row", &within)], |h| self::rule(h, rule, map));
                }
            });
        });
    }
}

fn rule(h: &mut Html, rule: &RuleView, map: &SourceMap) {
    h.el("div", &[("class", "head")], |h| {
        h.el("span", &[("class", "pattern")], |h| h.code(&rule.pattern));
        h.el("span", &[("class", "place")], |h| h.code(&map.line_ref(rule.span)));
    });
    if !rule.conditions.is_empty() {
        h.el("p", &[("class", "conditions")], |h| {
            for (name, values) in &rule.conditions {
                h.badge("name", name);
                h.text(" ");
                h.code(values);
                h.text(" ");
            }
        });
    }
    if !rule.why.is_empty() {
        h.el("p", &[("class", "why")], |h| h.sentence(&rule.why));
    }
    if !rule.examples.is_empty() {
        h.el("p", &[("class", "examples")], |h| {
            for (text, matches) in &rule.examples {
                h.badge("name", if *matches { "match" } else { "no match" });
                h.text(" ");
                h.code(text);
                h.text(" ");
            }
        });
    }
}

fn subject(h: &mut Html, subject: &SubjectView, map: &SourceMap) {
    let name = subject.name.as_str();
    h.el("h3", &[], |h| {
        h.text("capabilities: ");
        h.el("bdi", &[], |h| h.text(name));
    });
    h.el("p", &[], |h| {
        h.text(&format!("{} in ", plural(subject.entries.len(), "entry").replace("entrys", "entries")));
        h.code(&map.line_ref(subject.span));
        if let Some(parent) = &subject.parent {
            h.text(", within ");
            h.code(parent);
        }
        h.text(". Everything else is refused.");
    });
    h.el("ul", &[("class", "rules")], |h| {
        for entry in &subject.entries {
            let within = format!("capabilities {name}");
            h.el("li", &[("data-row", &within)], |h| {
                h.el("div", &[("class", "head")], |h| {
                    h.el("span", &[("class", "pattern")], |h| {
                        h.code(&entry.name);
                        if let Some(tier) = entry.tier {
                            h.text(" ");
                            h.badge(risk_class(tier), tier);
                        }
                    });
                    h.el("span", &[("class", "place")], |h| h.code(&map.line_ref(entry.span)));
                });
                let text = to_line_end(map, entry.span);
                for line in text.lines().take(ENTRY_LINES) {
                    h.el("p", &[("class", "conditions")], |h| h.code(line.trim()));
                }
            });
        }
    });
}

/// A span's text with the rest of its last line: brackets that close are no part of a value's place.
fn to_line_end(map: &SourceMap, span: Span) -> &str {
    let whole = map.text(span.file);
    let end = whole.get(span.end..).and_then(|rest| rest.find('\n')).map_or(whole.len(), |at| span.end + at);
    whole.get(span.start..end).unwrap_or("")
}

fn risk_class(tier: &str) -> &'static str {
    match tier {
        "auto" => "tier t0",
        "notify" => "tier t1",
        "ask" => "tier t3",
        _ => "tier t4",
    }
}

/// Rules that no example covers, each with a request that would.
pub(super) fn uncovered(h: &mut Html, page: &Page, map: &SourceMap) {
    h.el("section", &[("id", "uncovered"), ("aria-labelledby", "h-uncovered")], |h| {
        h.raw("<h2 id=\"h-uncovered\">Rules that no example covers</h2>\n");
        let total = page.rules().count();
        let open = page.rules().filter(|rule| !rule.covered).count();
        h.el("p", &[], |h| {
            h.text(&match (open, total) {
                (_, 0) => "There are no rules.".to_owned(),
                (0, _) => "Every rule is matched by an example.".to_owned(),
                _ => format!(
                    "{open} of {} are matched by no example, so a change to them is noticed by the comparison only. Beside each stands a request that it matches, with Cedar's decision: if that is what you mean, write it down as its `match`.",
                    plural(total, "rule")
                ).replace('`', ""),
            });
        });
        for surface in &page.surfaces {
            let open: Vec<&RuleView> = surface.rules.iter().filter(|rule| !rule.covered).collect();
            if open.is_empty() {
                continue;
            }
            let id = format!("uncovered-{}", surface.name);
            let mut attributes = vec![("id", id.as_str()), ("class", "rules")];
            if open.len() <= FEW {
                attributes.push(("open", ""));
            }
            h.el("details", &attributes, |h| {
                h.el("summary", &[], |h| {
                    h.text(surface.name);
                    h.text(" ");
                    h.badge("count", &plural(open.len(), "rule"));
                });
                h.el("ul", &[], |h| open.iter().for_each(|rule| untested(h, surface, rule, map)));
            });
        }
    });
}

fn untested(h: &mut Html, surface: &SurfaceView, rule: &RuleView, map: &SourceMap) {
    let within = format!("{} tier {} uncovered", surface.name, rule.tier);
    h.el("li", &[("data-row", &within)], |h| {
        h.el("div", &[("class", "head")], |h| {
            h.el("span", &[("class", "pattern")], |h| {
                h.badge(tier_class(Some(rule.tier)), &format!("tier {}", rule.tier));
                h.text(" ");
                h.code(&rule.pattern);
            });
            h.el("span", &[("class", "place")], |h| h.code(&map.line_ref(rule.span)));
        });
        h.el("p", &[("class", "examples")], |h| {
            let Some(instance) = &rule.instance else {
                h.text("No plain request was found that it matches; its conditions are too special for a guess.");
                return;
            };
            h.badge("name", "matches");
            h.text(" ");
            h.code(&instance.line);
            h.text(" ");
            h.badge(tier_class(instance.tier), &decision(surface.name, instance.tier));
            for assumed in &instance.assumes {
                h.text(" ");
                h.el("span", &[("class", "assumed")], |h| h.sentence(assumed));
            }
        });
    });
}

/// What rules are read under.
pub(super) fn settings(h: &mut Html, page: &Page, map: &SourceMap) {
    if page.settings.is_empty() {
        return;
    }
    h.el("section", &[("id", "settings"), ("aria-labelledby", "h-settings")], |h| {
        h.raw("<h2 id=\"h-settings\">What rules are read under</h2>\n");
        h.el("ul", &[("class", "rules")], |h| page.settings.iter().for_each(|setting| self::setting(h, setting, map)));
    });
}

fn setting(h: &mut Html, setting: &SettingView, map: &SourceMap) {
    h.el("li", &[("data-row", "configuration")], |h| {
        h.el("div", &[("class", "head")], |h| {
            h.el("span", &[("class", "pattern")], |h| h.el("bdi", &[], |h| h.text(&setting.name)));
            h.el("span", &[("class", "place")], |h| match setting.span {
                Some(span) => h.code(&map.line_ref(span)),
                None => h.text("built in"),
            });
        });
        h.el("p", &[("class", "conditions")], |h| {
            for value in &setting.values {
                h.code(value);
                h.text(" ");
            }
        });
    });
}
