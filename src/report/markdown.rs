//! For a comment on a pull request: the verdict first, then the summary, then the findings by
//! group, each with the text that changed.
//!
//! The comment fits what forges take. What has no room is counted at the top; the verdict and
//! the exit code are those of all findings.

use std::collections::BTreeMap;

use super::Report;
use super::groups::{Effect, Group, decision, groups};
use super::inert::{block, code, sentence};
use super::summary::{self, plural};
use super::text::shown;
use crate::diag::{Finding, Level};
use crate::source::SourceMap;

/// Most bytes of a comment: GitHub takes 65,536 characters, and a tool that posts it may add a
/// line of its own.
pub const MAX_COMMENT_BYTES: usize = 65_000;
/// Most characters of a version's name in the head.
const MAX_NAME: usize = 300;
/// Bytes kept for the line that says what is left out.
const RESERVE: usize = 400;

/// Renders a report as a comment.
pub fn markdown(report: &Report, map: &SourceMap) -> String {
    let head = head(report);
    let groups = groups(&report.findings);
    let blocks: Vec<Vec<Block>> =
        groups.iter().map(|g| g.findings.iter().map(|f| Block::new(f, map)).collect()).collect();
    let room = MAX_COMMENT_BYTES.saturating_sub(head.len() + RESERVE);
    let chosen = choose(&groups, &blocks, room);
    let mut out = head;
    out.push_str(&left_out(report, &groups, &chosen));
    for ((group, blocks), chosen) in groups.iter().zip(&blocks).zip(&chosen) {
        if chosen.iter().any(|c| *c != Choice::Out) {
            out.push_str(&title(group));
        }
        for (block, choice) in blocks.iter().zip(chosen) {
            out.push_str(match choice {
                Choice::Whole => &block.whole,
                Choice::Short => &block.short,
                Choice::Out => "",
            });
        }
    }
    out
}

/// Verdict, what was compared, and the summary.
fn head(report: &Report) -> String {
    let mark = match report.exit_code {
        0 => "✅",
        1 => "❌",
        _ => "⚠️",
    };
    let mut out = format!("### {mark} polctl {}: {}\n\n", report.command, summary::verdict(report.exit_code));
    let counts = report.summary();
    if let (Some(sentence), Some((old, new))) = (summary::sentence(report), &report.compared) {
        let name = |name: &str| self::sentence(&name.chars().take(MAX_NAME).collect::<String>());
        out.push_str(&format!("{sentence}, from {} to {}\n\n", name(old), name(new)));
    }
    let other = counts.errors.saturating_sub(counts.widenings.saturating_sub(counts.approved));
    let (error, mut more) = (if report.compared.is_none() { "error" } else { "other error" }, Vec::new());
    if other > 0 || report.compared.is_none() {
        more.push(plural(other, error));
    }
    if counts.warnings > 0 {
        more.push(plural(counts.warnings, "warning"));
    }
    if !more.is_empty() {
        out.push_str(&format!("{}\n\n", more.join(", ")));
    }
    out
}

fn title(group: &Group<'_>) -> String {
    format!("#### {}\n\n", sentence(&group.title()))
}

/// A finding in two lengths.
struct Block {
    whole: String,
    short: String,
}

impl Block {
    fn new(finding: &Finding, map: &SourceMap) -> Block {
        let (short, mut whole) = (item(finding, map), item(finding, map));
        for text in finding.texts.iter().filter_map(|change| shown(change, map)) {
            let place = |place: &Option<String>| place.as_ref().map_or_else(|| "nothing".to_owned(), |p| code(p));
            whole.push_str(&format!(
                "\n  <details><summary>text</summary>\n\n  {} → {}\n\n",
                place(&text.old),
                place(&text.new)
            ));
            whole.push_str(&block(&text.lines, "diff", "  "));
            whole.push_str("\n  </details>\n");
        }
        let end = |text: String| text + "\n";
        Block { whole: end(whole), short: end(short) }
    }
}

/// Witness or message, the places, and what to do, as one list item.
fn item(finding: &Finding, map: &SourceMap) -> String {
    let mut out = String::from("- ");
    match &finding.evidence {
        Some(evidence) if !evidence.rungs.is_empty() => {
            let decided = |tier| decision(&evidence.surface, tier);
            out.push_str(&format!(
                "{}: {} → **{}**",
                code(&evidence.witness),
                decided(evidence.old_tier),
                decided(evidence.new_tier)
            ));
            if !evidence.assumes.is_empty() {
                out.push_str(&format!(" ({})", sentence(&evidence.assumes.join("; "))));
            }
            // Where the message says more than witness and decision, it says which field it is.
            if matches!(evidence.surface.as_str(), "capabilities" | "configuration")
                || Effect::of(finding) != Effect::Widening && Effect::of(finding) != Effect::Narrowing
            {
                out.push_str(&format!("\n  - {}", sentence(&finding.message)));
            }
        }
        _ => out.push_str(&format!(
            "**{}** {}: {}",
            finding.level.as_str(),
            finding.code.as_str(),
            sentence(&finding.message)
        )),
    }
    let label = if finding.label.is_empty() { String::new() } else { format!(": {}", sentence(&finding.label)) };
    out.push_str(&format!("\n  - {}{label}", code(&map.line_ref(finding.span))));
    for other in &finding.related {
        out.push_str(&format!("\n  - {}: {}", code(&map.line_ref(other.span)), sentence(&other.label)));
    }
    if let Some(help) = finding.help.as_ref().filter(|_| finding.level > Level::Note) {
        out.push_str(&format!("\n  - {}", sentence(help)));
    }
    out.push('\n');
    out
}

/// How much of a finding is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Choice {
    Out,
    Short,
    Whole,
}

/// What to show in `room` bytes: first every finding in short, the weightiest first; then the
/// texts, in the same order.
fn choose(groups: &[Group<'_>], blocks: &[Vec<Block>], room: usize) -> Vec<Vec<Choice>> {
    let mut order: Vec<(usize, usize)> =
        blocks.iter().enumerate().flat_map(|(g, blocks)| (0..blocks.len()).map(move |b| (g, b))).collect();
    let weight = |(g, b): (usize, usize)| {
        let finding = groups.get(g).and_then(|group| group.findings.get(b).map(|f| (group.effect, f.level)));
        finding.map_or((1, Effect::Other), |(effect, level)| (u8::from(level < Level::Error), effect))
    };
    // A stable sort: within one weight the order is that of the groups.
    order.sort_by_key(|at| weight(*at));
    let mut chosen: Vec<Vec<Choice>> = blocks.iter().map(|blocks| vec![Choice::Out; blocks.len()]).collect();
    let mut left = room;
    for wanted in [Choice::Short, Choice::Whole] {
        for (g, b) in &order {
            let (Some(group), Some(block)) = (groups.get(*g), blocks.get(*g).and_then(|blocks| blocks.get(*b))) else {
                continue;
            };
            let Some(choices) = chosen.get_mut(*g) else { continue };
            let opens = choices.iter().all(|c| *c == Choice::Out);
            let Some(choice) = choices.get_mut(*b) else { continue };
            let cost = match (*choice, wanted) {
                (Choice::Out, Choice::Short) => block.short.len() + if opens { title(group).len() } else { 0 },
                (Choice::Short, Choice::Whole) => block.whole.len() - block.short.len(),
                _ => continue,
            };
            if cost <= left {
                left -= cost;
                *choice = wanted;
            }
        }
    }
    chosen
}

/// The line that says what has no room; empty when everything has.
fn left_out(report: &Report, groups: &[Group<'_>], chosen: &[Vec<Choice>]) -> String {
    let mut out: BTreeMap<Effect, usize> = BTreeMap::new();
    let (mut texts, mut total) = (0, 0);
    for ((group, finding), choice) in
        groups.iter().flat_map(|g| g.findings.iter().map(move |f| (g, f))).zip(chosen.iter().flatten())
    {
        total += usize::from(*choice == Choice::Out);
        texts += usize::from(*choice == Choice::Short && !finding.texts.is_empty());
        if *choice == Choice::Out {
            *out.entry(group.effect).or_default() += 1;
        }
    }
    let of = |effect, one| out.get(&effect).map(|n| plural(*n, one));
    let kinds = [
        of(Effect::Widening, "widening"),
        of(Effect::Open, "open question"),
        of(Effect::Approved, "approved widening"),
        of(Effect::Narrowing, "narrowing"),
        of(Effect::Other, "other finding"),
    ];
    let all = format!("`polctl {} --format json` has all", report.command);
    match (total, texts) {
        (0, 0) => String::new(),
        (0, texts) => format!("**The text of {} has no room here;** {all}.\n\n", plural(texts, "finding")),
        (total, _) => {
            let kinds: Vec<String> = kinds.into_iter().flatten().collect();
            let (findings, have) = (plural(total, "finding"), if total == 1 { "has" } else { "have" });
            format!("**{findings} {have} no room here ({});** {all}.\n\n", kinds.join(", "))
        }
    }
}
