//! Markdown in which people wrote tiers in prose.
//!
//! There is no grammar to cite: this reads what such files look like. A heading names a tier by number (`Tier 2`, `Level 3`), by
//! colour (green, yellow, orange, red) or by a word (allowed, ask, never). Below it a list item, the first cell of a table's row and a line of a fenced
//! block hold commands in code: `<arg>` is one argument, `<args…>` and a last `...` any, `[x]` may be missing, ` / ` stands
//! between alternatives, and what follows `←`, `#` or a dash is a reason.
//!
//! Where a text is open to two readings, an allowance takes the smaller and a restriction the larger one. A restriction
//! that only prose states makes everything refused that no rule matches.

use std::cmp::Ordering;

use super::rows;
use super::text::{End, Sign, TextPattern};
use super::{Files, Imported, Loss, Row};
use crate::model::{Surface, Tier, program};
use crate::source::{FileId, Span};

/// Words that limit what stands beside them.
const CONDITIONS: [&str; 14] = [
    "only",
    "unless",
    "except",
    "when",
    "if",
    "never",
    "not",
    "without",
    "but",
    "excluding",
    "inside",
    "within",
    "no",
    "limited",
];

/// Commands of one place in the text.
struct Found {
    tier: Tier,
    text: String,
    /// What stands beside the code.
    prose: String,
    span: Span,
}

pub(super) fn import(files: &Files<'_>) -> Imported {
    let mut out = Imported::default();
    let mut strict = false;
    let mut found = Vec::new();
    for file in &files.files {
        read(*file, files.map.text(*file), &mut found, &mut strict, &mut out);
    }
    // A restriction in prose may be about anything that no rule names.
    let unmatched = if strict { Tier::DENY } else { Tier::UNMATCHED };
    for own in &found {
        command(own, unmatched, &mut out);
    }
    out
}

/// The tier that a heading names.
fn tier_of(heading: &str) -> Option<Tier> {
    let lower = heading.to_lowercase();
    let words: Vec<&str> = lower.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let mut found: Option<u8> = None;
    let mut take = |number: u8| found = Some(found.map_or(number, |own| own.max(number)));
    for (index, word) in words.iter().enumerate() {
        let next = words.get(index + 1).and_then(|next| next.parse::<u8>().ok()).filter(|n| *n <= 4);
        match (*word, next) {
            ("tier" | "level" | "stufe" | "class", Some(number)) => take(number),
            ("green" | "allowed" | "safe" | "allow" | "autonomous", _) => take(rows::ALLOW),
            ("yellow" | "amber" | "ask" | "confirm" | "approval" | "caution", _) => take(2),
            ("orange", _) => take(3),
            ("red" | "never" | "forbidden" | "deny" | "denied" | "prohibited" | "blocked" | "black", _) => take(4),
            _ => {}
        }
    }
    for (sign, number) in [('🟢', rows::ALLOW), ('🟡', 2), ('🟠', 3), ('🔴', 4), ('⛔', 4)] {
        if heading.contains(sign) {
            take(number);
        }
    }
    // `not allowed`, `ask first, never run`: the strictest word counts, a denied one is strict.
    if words.windows(2).any(|pair| matches!(pair, ["not" | "dis" | "un", "allowed" | "safe" | "permitted"])) {
        take(4);
    }
    found.and_then(Tier::new)
}

fn read(file: FileId, text: &str, found: &mut Vec<Found>, strict: &mut bool, out: &mut Imported) {
    let mut tier: Option<(usize, Tier)> = None;
    let mut fence: Option<String> = None;
    let mut front = text.starts_with("---\n");
    let mut at = 0;
    for (number, raw) in text.split_inclusive('\n').enumerate() {
        let start = at;
        at += raw.len();
        let line = raw.trim_end();
        if front {
            front = number == 0 || line != "---";
            continue;
        }
        let span = Span::new(file, start, start + line.len().max(1));
        let trimmed = line.trim_start();
        if let Some(mark) = &fence {
            if trimmed.starts_with(mark.as_str()) {
                fence = None;
            } else if let Some((_, tier)) = tier {
                let command = trimmed.strip_prefix("$ ").unwrap_or(trimmed);
                if !command.is_empty() && !command.starts_with('#') {
                    found.push(Found { tier, text: command.to_owned(), prose: String::new(), span });
                }
            }
            continue;
        }
        if let Some(mark) = ["```", "~~~"].into_iter().find(|mark| trimmed.starts_with(mark)) {
            fence = Some(mark.to_owned());
            continue;
        }
        let depth = trimmed.bytes().take_while(|b| *b == b'#').count();
        if (1..=6).contains(&depth) && trimmed.as_bytes().get(depth) == Some(&b' ') {
            if tier.is_none_or(|(own, _)| depth <= own) {
                tier = tier_of(trimmed).map(|own| (depth, own));
            } else if let Some(own) = tier_of(trimmed) {
                // A deeper heading may name a tier of its own.
                tier = tier.map(|(depth, outer)| (depth, outer.max(own)));
            }
            continue;
        }
        let Some((_, tier)) = tier else { continue };
        let item = trimmed.strip_prefix(['-', '*', '+']).filter(|rest| rest.starts_with(' '));
        let numbered = trimmed
            .split_once(". ")
            .filter(|(head, _)| !head.is_empty() && head.bytes().all(|b| b.is_ascii_digit()))
            .map(|(_, rest)| rest);
        let cell = trimmed.strip_prefix('|').filter(|rest| rest.contains('`'));
        let Some(content) = item.or(numbered).or(cell) else { continue };
        place(content, tier, span, cell.is_some(), found, strict, out);
    }
}

/// A list item or a row.
fn place(
    content: &str,
    tier: Tier,
    span: Span,
    row: bool,
    found: &mut Vec<Found>,
    strict: &mut bool,
    out: &mut Imported,
) {
    let pieces: Vec<&str> = content.split('`').collect();
    let prose: String = pieces.iter().step_by(2).copied().collect::<Vec<_>>().join(" ");
    let code: Vec<&str> = pieces.iter().skip(1).step_by(2).copied().collect();
    let leads = pieces.first().is_some_and(|head| head.trim().trim_matches(['*', '[', ']', ' ', 'x']).is_empty());
    if code.is_empty() || !leads && !row {
        let (loss, text) = match tier.cmp(&Tier::UNMATCHED) {
            Ordering::Greater => {
                *strict = true;
                (Loss::Broader, "only prose states this restriction, so everything is refused that no rule matches")
            }
            Ordering::Equal => (Loss::Told, "only prose says this; what no rule matches is asked about"),
            Ordering::Less => (Loss::LeftOut, "only prose states this allowance"),
        };
        out.note(span, loss, text);
        return;
    }
    // Behind the first command others follow, as long as no sentence stands between them.
    for (index, text) in code.iter().enumerate() {
        let before = pieces.get(index * 2).copied().unwrap_or("").trim();
        let joins = index == 0 || matches!(before, "," | "/" | "|" | "or" | "and" | ", and" | ", or" | ";" | "&");
        if joins || tier > Tier::UNMATCHED && looks_like_command(text) {
            found.push(Found { tier, text: (*text).to_owned(), prose: prose.clone(), span });
        } else if index > 0 && !joins && tier <= Tier::UNMATCHED {
            break;
        }
    }
}

fn looks_like_command(text: &str) -> bool {
    let first = text.split_whitespace().next().unwrap_or("");
    text.contains(' ') && first.starts_with(|c: char| c.is_ascii_lowercase()) || program(first).is_some()
}

/// The texts of a span: without its reason, alternatives apart. `Err`: nobody can tell.
fn alternatives(text: &str) -> (Vec<String>, Vec<String>) {
    let mut text = text;
    for mark in ["←", "→", "⇒", " — ", " – ", " # ", " // "] {
        text = text.split(mark).next().unwrap_or("");
    }
    let parts: Vec<&str> = text.split(" / ").map(str::trim).collect();
    let Some((first, rest)) = parts.split_first() else { return (Vec::new(), Vec::new()) };
    let odd = |part: &&str| part.is_empty() || part.starts_with(['-', '<', '[', '*', '.', '/']);
    if rest.is_empty() || rest.iter().any(odd) {
        // `find / -name x`: the slash is an argument.
        return (vec![text.trim().to_owned()], Vec::new());
    }
    let (mut sure, mut open) = (vec![(*first).to_owned()], Vec::new());
    let words: Vec<&str> = first.split_whitespace().collect();
    let name = words.first().copied().unwrap_or("");
    for part in rest {
        let own = part.split_whitespace().next().unwrap_or("");
        let sub = program(name).is_some_and(|known| {
            known.sub(&[own]).is_some()
                || known.known.contains(&own)
                || known.hazardous.iter().any(|(path, _)| path.first() == Some(&own))
                || known.canonical_sub(own) != own
        });
        if own == name || words.len() == 1 && !sub {
            sure.push((*part).to_owned());
        } else if sub && words.len() == 2 {
            sure.push(format!("{name} {part}"));
        } else {
            open.push((*part).to_owned());
            open.push(format!("{name} {part}"));
        }
    }
    (sure, open)
}

/// A word of a command in prose.
enum Word {
    Plain(String),
    /// One argument.
    One,
    /// Any arguments.
    Many,
    /// These words, or none.
    Optional(String),
}

fn words(text: &str) -> Vec<Word> {
    let mut out = Vec::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        let (word, tail) = match rest.chars().next() {
            Some('[') if rest.contains(']') => rest.split_at(rest.find(']').map_or(rest.len(), |at| at + 1)),
            Some('<') if rest.contains('>') => rest.split_at(rest.find('>').map_or(rest.len(), |at| at + 1)),
            _ => rest.split_at(rest.find(char::is_whitespace).unwrap_or(rest.len())),
        };
        // `<file>.txt`, `[x]y`: one word all the same.
        let more = tail.find(char::is_whitespace).unwrap_or(tail.len());
        let (glued, tail) = tail.split_at(more);
        let inner = word.trim_matches(['<', '>', '[', ']']);
        let many = inner.ends_with("...") || inner.ends_with('…') || matches!(glued, "..." | "…");
        out.push(if matches!(word, "..." | "…") || many {
            Word::Many
        } else if word.starts_with('<') && word.ends_with('>') {
            if glued.is_empty() { Word::One } else { Word::Plain(format!("*{glued}")) }
        } else if word.starts_with('[') && word.ends_with(']') && glued.is_empty() {
            Word::Optional(inner.to_owned())
        } else {
            Word::Plain(format!("{word}{glued}").replace('<', "*<"))
        });
        rest = tail.trim_start();
    }
    out
}

fn command(own: &Found, unmatched: Tier, out: &mut Imported) {
    let (sure, open) = alternatives(&own.text);
    if own.tier >= Tier::UNMATCHED {
        if !open.is_empty() {
            out.note(
                own.span,
                Loss::Broader,
                "` / ` may stand between commands or between sub-commands; it is about both",
            );
        }
        for text in sure.iter().chain(&open) {
            restrict(text, own, unmatched, out);
        }
        return;
    }
    let lower = own.prose.to_lowercase();
    let limited = lower.split(|c: char| !c.is_alphanumeric()).find(|word| CONDITIONS.contains(word));
    if let Some(word) = limited {
        let text = format!("prose limits it (`{word}`), which no rule says: write the condition as an attribute");
        return out.note(own.span, Loss::LeftOut, text);
    }
    for text in &open {
        out.note(
            own.span,
            Loss::LeftOut,
            format!("` / ` may stand between commands or between sub-commands: `{text}`"),
        );
    }
    for text in &sure {
        for row in permits(text, own, out) {
            out.take(Surface::Commands, unmatched, own.span, row);
        }
    }
}

/// The rows of an allowance: with and without what is optional.
fn permits(text: &str, own: &Found, out: &mut Imported) -> Vec<Result<Row, String>> {
    let mut variants: Vec<(Vec<Sign>, End)> = vec![(Vec::new(), End::Exact)];
    let add = |variants: &mut Vec<(Vec<Sign>, End)>, word: &[Sign]| {
        for (signs, _) in variants {
            if !signs.is_empty() {
                signs.push(Sign::Char(' '));
            }
            signs.extend(word);
        }
    };
    let all = words(text);
    let last = all.len().saturating_sub(1);
    for (index, word) in all.iter().enumerate() {
        match word {
            Word::Plain(text) => add(&mut variants, &super::text::stars(text)),
            Word::One => add(&mut variants, &[Sign::Any]),
            Word::Many if index == last => variants.iter_mut().for_each(|(_, end)| *end = End::Words),
            Word::Many => return vec![Err("any arguments in the middle of a command".into())],
            Word::Optional(inner) => {
                let option = inner.starts_with('-');
                let generic = ["flags", "options", "option", "flag", "args", "arguments", "opts"]
                    .contains(&inner.to_lowercase().as_str());
                if generic {
                    out.note(own.span, Loss::Narrower, format!("`[{inner}]` names no option, so none is allowed"));
                } else if variants.len() < 8 {
                    let mut with = variants.clone();
                    let signs = if option { super::text::stars(inner) } else { vec![Sign::Any] };
                    add(&mut with, &signs);
                    variants.extend(with);
                }
            }
        }
    }
    let span = own.span;
    variants
        .iter()
        .map(|(signs, end)| {
            let row = TextPattern::new(signs, *end).permit(span, &mut out.notes)?;
            Ok(Row { tier: own.tier, ..row })
        })
        .collect()
}

fn restrict(text: &str, own: &Found, unmatched: Tier, out: &mut Imported) {
    let mut signs: Vec<Sign> = Vec::new();
    for word in words(text) {
        let Word::Plain(text) = word else { break };
        if !signs.is_empty() {
            signs.push(Sign::Char(' '));
        }
        signs.extend(super::text::stars(&text));
    }
    if signs.is_empty() {
        return out.note(own.span, Loss::Told, "no command is named here");
    }
    let programs = out.allowed_programs();
    let pattern = TextPattern::new(&signs, End::Words);
    // Where what no rule matches is refused, asking would be more.
    let tier = if unmatched == Tier::DENY && own.tier < Tier::DENY { None } else { Some(own.tier) };
    if let Some(tier) = tier {
        let rows = pattern.restrict(tier, own.span, &programs, &mut out.notes);
        out.map(Surface::Commands, unmatched).rows.extend(rows);
    } else {
        let row = pattern.permit(own.span, &mut out.notes).map(|row| Row { tier: own.tier, ..row });
        out.take(Surface::Commands, unmatched, own.span, row);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_name_tiers() {
        for (heading, want) in [
            ("## 🟢 Green: run freely", Some(1)),
            ("### Yellow (ask first)", Some(2)),
            ("# RED — never", Some(4)),
            ("## Tier 3: destructive", Some(3)),
            ("## Not allowed", Some(4)),
            ("## Background", None),
            ("## Tier 1: red zone", Some(4)),
        ] {
            assert_eq!(tier_of(heading), want.and_then(Tier::new), "{heading}");
        }
    }

    #[test]
    fn alternatives_are_told_from_arguments() {
        assert_eq!(alternatives("git status / git diff").0, ["git status", "git diff"]);
        assert_eq!(alternatives("ls / cat").0, ["ls", "cat"]);
        assert_eq!(alternatives("git add / commit").0, ["git add", "git commit"]);
        assert_eq!(alternatives("find / -name x").0, ["find / -name x"]);
        assert_eq!(alternatives("rm -rf / ← never").0, ["rm -rf /"]);
        assert!(!alternatives("make test / frobnicate").1.is_empty());
    }
}
