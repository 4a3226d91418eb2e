//! Tier maps: front matter, tier headings, and the three places where rules stand (DESIGN 3.2).
//!
//! `pulldown-cmark` says what the Markdown is; this module walks its events once, keeps track
//! of the open tier, and hands lists, tables and blocks to the reader that knows them. What no
//! reader takes and holds code inside a tier is a finding.

mod block;
mod list;
mod table;

use std::ops::Range;

use pulldown_cmark::{CodeBlockKind, Event, HeadingLevel, Options, Parser, Tag, TagEnd};

use super::attributes::{RawRule, Value, build};
use super::yaml::{self, Node};
use super::{Sink, listed, nearest};
use crate::diag::{Code, Finding};
use crate::model::{Rule, Surface, Tier};
use crate::source::{FileId, SourceMap, Span};

/// What a tier map says.
#[derive(Debug)]
pub(super) struct TierMap {
    pub(super) surface: Surface,
    pub(super) unmatched: Tier,
    /// Where the surface is declared.
    pub(super) span: Span,
    pub(super) rules: Vec<Rule>,
}

/// Events with the bytes they come from.
type Events<'a> = Vec<(Event<'a>, Range<usize>)>;

/// What the readers of rules share.
struct Reader<'a, 's> {
    file: FileId,
    text: &'a str,
    surface: Surface,
    sink: &'s mut Sink,
    rules: Vec<Rule>,
    /// Whether anything that tried to be a rule was seen.
    tried: bool,
    /// Whether a tier was opened before.
    after_tier: bool,
}

impl Reader<'_, '_> {
    fn span(&self, range: &Range<usize>) -> Span {
        let text = self.text.get(range.clone()).unwrap_or("");
        Span::new(self.file, range.start, range.start + text.trim_end().len())
    }

    fn push(&mut self, finding: Finding) {
        self.sink.push(finding);
    }

    /// The text of a code span without its marks, and where that text stands.
    fn code(&self, text: &str, range: &Range<usize>) -> Value {
        let source = self.text.get(range.clone()).unwrap_or("");
        let marks = source.len() - source.trim_start_matches('`').len();
        let inner = source.get(marks..source.len().saturating_sub(marks)).unwrap_or("");
        let lead = inner.find(text).unwrap_or(0);
        let start = range.start + marks + lead;
        let len = if inner.contains(text) { text.len() } else { inner.len() };
        Value { text: text.to_owned(), span: Span::new(self.file, start, start + len) }
    }

    /// Adds a rule; problems become findings.
    fn rule(&mut self, raw: RawRule) {
        self.tried = true;
        let rule = build(raw, self.sink);
        self.rules.extend(rule);
    }

    /// Complains of code where no rule is read.
    fn unread(&mut self, range: &Range<usize>, help: &str) {
        self.tried = true;
        let finding =
            Finding::new(Code::UNREAD_CODE, self.span(range), "code inside a tier that is not read as a rule");
        self.push(finding.help(help));
    }
}

/// Reads a tier map. `None` after findings that leave nothing to work with.
pub(super) fn parse(file: FileId, map: &SourceMap, sink: &mut Sink) -> Option<TierMap> {
    let text = map.text(file);
    let first_line = Span::new(file, 0, text.lines().next().map_or(0, str::len));
    let Some((yaml_range, body_start)) = front_matter(text) else {
        sink.push(
            Finding::new(Code::FRONT_MATTER, first_line, if text.trim().is_empty() { "the tier map is empty" } else { "the tier map has no front matter" })
                .help("begin the file with `---`, `polctl: v1`, `surface: commands` (or `sudo`, `egress`) and `---`, each on its own line"),
        );
        return None;
    };
    let front = text.get(yaml_range.clone()).unwrap_or("");
    let root = yaml::read(file, yaml_range.start, front, sink)?;
    let head = Head::read(&root, first_line, sink);
    let surface = head.surface?;
    let mut reader = Reader { file, text, surface, sink, rules: Vec::new(), tried: false, after_tier: false };
    let body = text.get(body_start..).unwrap_or("");
    let events: Events<'_> = Parser::new_ext(body, Options::ENABLE_TABLES)
        .into_offset_iter()
        .map(|(event, range)| (event, range.start + body_start..range.end + body_start))
        .collect();
    walk(&mut reader, &events);
    let (rules, tried) = (reader.rules, reader.tried);
    if rules.is_empty() && !tried {
        sink.push(
            Finding::new(Code::NO_RULES, first_line, "the tier map has no rule")
                .help("put rules below headings `## Tier 0` to `## Tier 4`: as list items that start with a code span, in a table with a `rule` column, or in a `rules` block"),
        );
    }
    Some(TierMap { surface, unmatched: head.unmatched, span: head.span, rules })
}

/// The byte range of the YAML, and where the Markdown begins.
fn front_matter(text: &str) -> Option<(Range<usize>, usize)> {
    let mut lines = text.split_inclusive('\n');
    let first = lines.next()?;
    if first.trim_end() != "---" {
        return None;
    }
    let mut at = first.len();
    for line in lines {
        if line.trim_end() == "---" {
            return Some((first.len()..at, at + line.len()));
        }
        at += line.len();
    }
    None
}

/// Front matter, validated.
struct Head {
    surface: Option<Surface>,
    unmatched: Tier,
    span: Span,
}

impl Head {
    const KEYS: [&'static str; 3] = ["polctl", "surface", "unmatched"];

    fn read(root: &Node, first_line: Span, sink: &mut Sink) -> Head {
        let mut head = Head { surface: None, unmatched: Tier::UNMATCHED, span: first_line };
        let (mut versioned, mut surfaced) = (false, false);
        for (key, value) in root.entries("the front matter", sink) {
            match key.name.as_str() {
                "polctl" => {
                    versioned = true;
                    if value.scalar("`polctl`", sink).is_some_and(|v| v != "v1") {
                        sink.push(
                            Finding::new(
                                Code::INVALID_VALUE,
                                value.span,
                                "this polctl does not know that version of the format",
                            )
                            .help("write `polctl: v1`"),
                        );
                    }
                }
                "surface" => {
                    surfaced = true;
                    head.span = Span::new(key.span.file, key.span.start, value.span.end);
                    let name = value.scalar("`surface`", sink).unwrap_or("");
                    head.surface = Surface::from_name(name);
                    if head.surface.is_none() {
                        let known = Surface::ALL.map(Surface::name);
                        sink.push(
                            Finding::new(Code::INVALID_VALUE, value.span, format!("`{name}` is no surface"))
                                .help(format!("{}surfaces are {}", nearest(name, &known), listed(&known))),
                        );
                    }
                }
                "unmatched" => head.unmatched(value, sink),
                other => sink.push(
                    Finding::new(Code::UNKNOWN_KEY, key.span, format!("`{other}` is no key of the front matter"))
                        .help(format!("{}keys are {}", nearest(other, &Head::KEYS), listed(&Head::KEYS))),
                ),
            }
        }
        for (present, help) in [(versioned, "polctl: v1"), (surfaced, "surface: commands")] {
            if !present {
                let name = help.split(':').next().unwrap_or("");
                sink.push(
                    Finding::new(Code::MISSING_KEY, first_line, format!("the front matter has no `{name}`"))
                        .help(format!("add a line like `{help}`")),
                );
            }
        }
        head
    }

    fn unmatched(&mut self, value: &Node, sink: &mut Sink) {
        let text = value.scalar("`unmatched`", sink).unwrap_or("");
        match text.parse::<u8>().ok().and_then(Tier::new) {
            Some(tier) if tier >= Tier::UNMATCHED => self.unmatched = tier,
            Some(tier) => sink.push(
                Finding::new(
                    Code::UNMATCHED_TOO_LOW,
                    value.span,
                    format!("`unmatched: {tier}` lets through what no rule has judged"),
                )
                .help("write 2 (the default), 3 or 4, and rules for what may run without a sandbox"),
            ),
            None => sink.push(
                Finding::new(Code::INVALID_VALUE, value.span, format!("`{text}` is no tier")).help("write 2, 3 or 4"),
            ),
        }
    }
}

/// Walks the events of the body once.
fn walk(reader: &mut Reader<'_, '_>, events: &Events<'_>) {
    let mut tier: Option<(Tier, HeadingLevel)> = None;
    let mut at = 0;
    while let Some((event, range)) = events.get(at) {
        let end = match event {
            Event::Start(tag) => closing_in(events, at, tag),
            _ => at + 1,
        };
        let inner = events.get(at + 1..end.saturating_sub(1)).unwrap_or(&[]);
        match event {
            Event::Start(Tag::Heading { level, .. }) => {
                tier = heading(reader, *level, inner, range, tier);
            }
            Event::Start(tag) => {
                nested_tier_headings(reader, inner);
                container(reader, tag, range, inner, tier.map(|(t, _)| t));
            }
            Event::Html(_) | Event::InlineHtml(_) => html(reader, range, tier.is_some()),
            _ => {}
        }
        at = end;
    }
}

/// Index behind the event that closes the one at `at`.
fn closing_in(events: &[(Event<'_>, Range<usize>)], at: usize, tag: &Tag<'_>) -> usize {
    let want = tag.to_end();
    let mut depth = 0_usize;
    for (index, (event, _)) in events.iter().enumerate().skip(at) {
        match event {
            Event::Start(t) if t.to_end() == want => depth += 1,
            Event::End(end) if *end == want => {
                depth -= 1;
                if depth == 0 {
                    return index + 1;
                }
            }
            _ => {}
        }
    }
    events.len()
}

/// One block that is no heading.
fn container(
    reader: &mut Reader<'_, '_>,
    tag: &Tag<'_>,
    range: &Range<usize>,
    inner: &[(Event<'_>, Range<usize>)],
    tier: Option<Tier>,
) {
    match (tag, tier) {
        (Tag::Paragraph, _) if lost_heading(&plain_text(inner)) => {
            reader.tried = true;
            let finding = Finding::new(
                Code::TIER_HEADING,
                reader.span(range),
                "this looks like a tier heading and is a paragraph",
            )
            .help("write a blank behind the `#`: `## Tier 3: destructive`");
            reader.push(finding);
        }
        (Tag::List(_), Some(tier)) => list::read(reader, tier, inner),
        (Tag::List(_), None) if reader.after_tier => list::refuse(reader, inner),
        (Tag::Table(_), _) => table::read(reader, tier, range, inner),
        (Tag::CodeBlock(CodeBlockKind::Fenced(info)), _) if info.trim() == "rules" => {
            block::read(reader, tier, range, inner);
        }
        (Tag::CodeBlock(_), Some(_)) => {
            reader.unread(range, "name the block `rules` if its lines are rules, or move it above the first tier");
        }
        (Tag::HtmlBlock, tier) => html(reader, range, tier.is_some()),
        (_, Some(_)) => {
            for (event, range) in inner {
                match event {
                    Event::Code(_) => reader.unread(
                        range,
                        "make it a rule (a list item that starts with the code span), write it without backticks, or move the paragraph above the first tier",
                    ),
                    Event::Start(Tag::CodeBlock(_)) => reader.unread(range, "write the block at the left margin, with the info string `rules`"),
                    Event::InlineHtml(_) | Event::Html(_) => html(reader, range, true),
                    Event::Text(text) if text.contains('`') => reader.unread(range, "a backtick without its partner, or one that is no code span"),
                    _ => {}
                }
            }
        }
        (_, None) => {}
    }
}

/// HTML may hide what it surrounds; a comment without code is harmless, and outside the tiers
/// so is what does not look like one.
fn html(reader: &mut Reader<'_, '_>, range: &Range<usize>, in_tier: bool) {
    let source = reader.text.get(range.clone()).unwrap_or("").trim();
    if !in_tier && !mentions_tier(source) {
        return;
    }
    if source.starts_with("<!--")
        && source.ends_with("-->")
        && !source.contains('`')
        && !source.to_lowercase().contains("tier")
    {
        return;
    }
    let comment = source.starts_with("<!--");
    let finding = Finding::new(
        Code::RAW_HTML,
        reader.span(range),
        if comment {
            "a comment holds what looks like policy"
        } else if in_tier {
            "HTML inside a tier"
        } else {
            "HTML holds what looks like a tier"
        },
    )
    .help(if comment {
        "nobody sees it in a rendered review, and it has no effect: delete it, or make it a rule"
    } else {
        "write Markdown; an argument that varies is `*`, not `<arg>`"
    });
    reader.push(finding);
}

/// A heading: opens, keeps or ends the tier.
fn heading(
    reader: &mut Reader<'_, '_>,
    level: HeadingLevel,
    inner: &[(Event<'_>, Range<usize>)],
    range: &Range<usize>,
    tier: Option<(Tier, HeadingLevel)>,
) -> Option<(Tier, HeadingLevel)> {
    let open = tier.filter(|(_, opened)| level > *opened);
    let text = plain_text(inner);
    match tier_of(&text) {
        TierHeading::Tier(tier) if open.is_none() => {
            reader.after_tier = true;
            return Some((tier, level));
        }
        TierHeading::Tier(_) => {
            let finding = Finding::new(Code::TIER_HEADING, reader.span(range), "a tier heading inside another tier")
                .help("give both headings the same level");
            reader.push(finding);
        }
        TierHeading::Wrong => {
            reader.tried = true;
            let finding = Finding::new(Code::TIER_HEADING, reader.span(range), format!("`{}` looks like a tier and is none", text.trim()))
                .help("write `Tier` and one number from 0 to 4, then nothing, a space, a colon or a dash: `## Tier 3: destructive`");
            reader.push(finding);
        }
        TierHeading::Other => {
            if open.is_some() {
                for (event, range) in inner {
                    if matches!(event, Event::Code(_)) {
                        reader.unread(range, "a heading holds no rules; write its text without backticks");
                    }
                }
            }
        }
    }
    open
}

/// Tier headings inside lists and quotes open nothing.
fn nested_tier_headings(reader: &mut Reader<'_, '_>, inner: &[(Event<'_>, Range<usize>)]) {
    for (index, (event, range)) in inner.iter().enumerate() {
        if let Event::Start(Tag::Heading { .. }) = event {
            let tail = inner.get(index + 1..).unwrap_or(&[]);
            let end = tail.iter().position(|(e, _)| matches!(e, Event::End(TagEnd::Heading(_)))).unwrap_or(0);
            if !matches!(tier_of(&plain_text(tail.get(..end).unwrap_or(&[]))), TierHeading::Other) {
                reader.tried = true;
                let finding =
                    Finding::new(Code::TIER_HEADING, reader.span(range), "a tier heading inside a list or quote")
                        .help("write it at the left margin");
                reader.push(finding);
            }
        }
    }
}

/// The visible text of inline events.
fn plain_text(events: &[(Event<'_>, Range<usize>)]) -> String {
    let mut out = String::new();
    for (event, _) in events {
        match event {
            Event::Text(text) | Event::Code(text) => out.push_str(text),
            Event::SoftBreak | Event::HardBreak => out.push(' '),
            _ => {}
        }
    }
    out
}

enum TierHeading {
    Tier(Tier),
    Wrong,
    Other,
}

/// Reads a heading's text. What starts like `tier` and is not exactly a tier is wrong rather
/// than prose: a misspelt heading must not drop its section in silence.
fn tier_of(text: &str) -> TierHeading {
    let text = text.trim();
    let looks = text.get(..4).is_some_and(|head| head.eq_ignore_ascii_case("tier"))
        && text.chars().nth(4).is_none_or(|c| !c.is_alphabetic());
    if !looks {
        return if mentions_tier(text) || resembles_tier(text) { TierHeading::Wrong } else { TierHeading::Other };
    }
    let Some(rest) = text.strip_prefix("Tier ") else { return TierHeading::Wrong };
    let mut chars = rest.trim_start().chars();
    let Some(tier) = chars.next().and_then(|c| c.to_digit(10)).and_then(|d| u8::try_from(d).ok()).and_then(Tier::new)
    else {
        return TierHeading::Wrong;
    };
    match (chars.next(), chars.as_str().trim_start().chars().next()) {
        (None, _) => TierHeading::Tier(tier),
        // `Tier 1 and 2`, `Tier 1 - 3`: two tiers in one heading are none.
        (Some(' '), Some(c)) if c.is_ascii_digit() => TierHeading::Wrong,
        (Some(' ' | ':' | '-' | '–' | '—' | '.'), _) if !names_second_tier(chars.as_str()) => {
            TierHeading::Tier(tier)
        }
        _ => TierHeading::Wrong,
    }
}

/// Whether `tier` and a number stand anywhere: `4. Tier 4`, `the old tier-3 rules`.
fn mentions_tier(text: &str) -> bool {
    let lower = text.to_lowercase();
    lower.match_indices("tier").any(|(at, word)| {
        let rest = lower.get(at + word.len()..).unwrap_or("").trim_start_matches(['s', ' ', '-', '_', ':', '#']);
        let whole = !lower.get(..at).unwrap_or("").ends_with(char::is_alphabetic);
        whole && rest.starts_with(|c: char| c.is_ascii_digit())
    })
}

/// Whether a heading is a misspelt tier (`Teir 4`, `Level 4`): a word like `tier`, and a tier's number.
fn resembles_tier(text: &str) -> bool {
    let mut words = text.split_whitespace();
    let (Some(word), Some(number)) = (words.next(), words.next()) else { return false };
    let number = number.trim_end_matches([':', '.', ',', '-', '–', '—']);
    let is_tier = number.parse::<u8>().ok().and_then(Tier::new).is_some();
    let word = word.to_lowercase();
    is_tier
        && (matches!(word.as_str(), "level" | "class" | "grade" | "rung")
            || !similar::get_close_matches(word.as_str(), &["tier"], 1, 0.6).is_empty())
}

/// `##Tier 4` without a blank is a paragraph to Markdown.
fn lost_heading(text: &str) -> bool {
    let text = text.trim_start();
    text.starts_with('#') && mentions_tier(text.lines().next().unwrap_or(""))
}

fn names_second_tier(rest: &str) -> bool {
    let rest = rest.trim_start_matches([' ', '-', '–', '—', ':', '&', '/', '+']);
    let rest = ["and ", "or ", "to "].iter().find_map(|w| rest.strip_prefix(w)).unwrap_or(rest);
    let mut chars = rest.trim_start().chars();
    chars.next().is_some_and(|c| c.is_ascii_digit()) && chars.next().is_none_or(|c| !c.is_alphanumeric())
}

/// Finds a condition in prose that stands behind a rule.
fn prose_condition(text: &str) -> Option<&'static str> {
    const WORDS: [&str; 21] = [
        "requires",
        "require",
        "required",
        "must",
        "apart",
        "outside",
        "only",
        "unless",
        "except",
        "excluding",
        "when",
        "whenever",
        "if",
        "but",
        "not",
        "never",
        "without",
        "until",
        "while",
        "provided",
        "don't",
    ];
    let lower = text.to_lowercase();
    WORDS
        .into_iter()
        .find(|word| lower.split(|c: char| !c.is_alphanumeric() && c != '\'' && c != '-').any(|w| w == *word))
}
