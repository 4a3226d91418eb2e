//! The words of a command → as rules see them: sub-commands and options in their places (DESIGN 3.4).
//!
//! The program table says what may stand where. Nothing is dropped: options that leave the words
//! are kept as `globals`, and what is not known leaves open what follows.

use super::place::{clean, climbs};
use crate::model::{CommandRequest, Entry, Program, Word};
use crate::parse::{ShellWord, Value};

/// The words behind a program, taken apart.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Normal {
    /// Options before the sub-command, with their values.
    pub(super) globals: Vec<String>,
    /// Everything else, as rules see it.
    pub(super) words: Vec<Word>,
    /// Whether each of those options is known to be harmless.
    pub(super) harmless: bool,
}

fn word(word: &ShellWord, ended: bool) -> Word {
    match &word.value {
        // The name that comes out may begin with a dash.
        Value::Files(pattern) if !ended && pattern.starts_with(['*', '?', '[']) => Word::Open,
        Value::Known(text) if is_veiled_file(text) => Word::Value,
        // A path that climbs is matched as what it leads to.
        Value::Known(text) if climbs(text) => Word::Known(clean(text)),
        Value::Known(text) => Word::Known(text.clone()),
        Value::Starts(_) => Word::Value,
        Value::Files(pattern) if pattern.starts_with('/') && climbs(pattern) => Word::Files(clean(pattern)),
        Value::Files(pattern) => Word::Files(pattern.clone()),
        Value::Any => Word::Open,
    }
}

/// A `file:` URL that does not say its path plainly: escapes, wildcards, a host.
fn is_veiled_file(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    lower.match_indices("file:").any(|(at, scheme)| {
        let rest = lower.get(at + scheme.len()..).unwrap_or("");
        // `profile:x` is none, `url=file:…` is one.
        let begins = !lower.get(..at).unwrap_or("").ends_with(|c: char| c.is_ascii_alphanumeric());
        let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+~:@,".contains(c);
        let path = rest.strip_prefix("//").unwrap_or(rest);
        begins && rest.starts_with('/') && !(path.starts_with('/') && path.chars().all(plain))
    })
}

/// Takes known options before the sub-command away, and those that may stand anywhere, so that
/// every spelling reaches the rules. An unknown one leaves open where the sub-command stands.
pub(super) fn normalise(known: Option<&'static Program<'static>>, words: &[ShellWord]) -> Normal {
    let mut normal = Normal { globals: Vec::new(), words: Vec::new(), harmless: true };
    let end = words.iter().position(|word| word.value.known() == Some("--")).unwrap_or(words.len());
    let mut words: Vec<Word> = words.iter().enumerate().map(|(at, own)| word(own, at > end)).collect();
    let Some(program) = known else {
        normal.words = words;
        return normal;
    };
    if program.entry.bundle
        && let Some(Word::Known(first)) = words.first_mut()
        && !first.is_empty()
        && first.bytes().all(|b| b.is_ascii_alphabetic())
    {
        first.insert(0, '-');
    }
    // Options before the sub-command, and before a deeper one.
    let mut path: Vec<String> = Vec::new();
    loop {
        let borrowed: Vec<&str> = path.iter().map(String::as_str).collect();
        let Some(entry) = program.sub(&borrowed).filter(|entry| !entry.globals.is_empty()) else { break };
        let mut tried =
            Normal { globals: normal.globals.clone(), words: normal.words.clone(), harmless: normal.harmless };
        let rest = strip(entry, program.dashed, words.clone(), &mut tried);
        if !path.is_empty() && rest.is_empty() {
            // `git remote -v`: there is no deeper sub-command for them to stand before.
            break;
        }
        (normal, words) = (tried, rest);
        let Some(Word::Known(first)) = words.first().cloned() else { break };
        if first.starts_with('-') {
            break;
        }
        let name = if path.is_empty() { program.canonical_sub(&first).to_owned() } else { first };
        path.push(name.clone());
        normal.words.push(Word::Known(name));
        words.remove(0);
    }
    if normal.words.is_empty()
        && let Some(Word::Known(first)) = words.first_mut()
    {
        *first = program.canonical_sub(first).to_owned();
    }
    anywhere(program, &mut words, &mut normal);
    normal.words.extend(words);
    normal
}

/// Takes a global option off the front of the words; how many words it was.
fn global_at(
    entry: &Entry<'static>,
    dashed: bool,
    words: &[Word],
    anywhere: bool,
    normal: &mut Normal,
) -> Option<usize> {
    let Some(Word::Known(word)) = words.first() else { return None };
    let (option, glued) =
        entry.global(word, dashed).filter(|(global, _)| !anywhere || global.anywhere && global.takes_value)?;
    let taken = if option.takes_value && !glued { 2 } else { 1 };
    let mut harmless = option.harmless;
    for word in words.iter().take(taken) {
        if let Word::Known(text) = word {
            // What `..` leads to is not known here, so such a directory is not overlooked.
            harmless &= !text.contains("..");
            normal.globals.push(text.clone());
        } else {
            harmless = false;
            normal.globals.push(CommandRequest::HOLE.to_string());
        }
    }
    normal.harmless &= harmless;
    Some(taken.min(words.len()))
}

fn strip(entry: &Entry<'static>, dashed: bool, mut words: Vec<Word>, normal: &mut Normal) -> Vec<Word> {
    loop {
        let Some(Word::Known(word)) = words.first() else { return words };
        let option = word.starts_with('-') && word.len() > 1;
        if !option && entry.global(word, dashed).is_none() {
            return words;
        }
        if let Some(taken) = global_at(entry, dashed, &words, false, normal) {
            words.drain(..taken);
            continue;
        }
        if words.iter().any(|w| !matches!(w, Word::Known(text) if text.starts_with('-'))) {
            // It may take the next word as its value or not: the sub-command is not certain.
            normal.harmless = false;
            normal.words.push(Word::Open);
        }
        return words;
    }
}

/// Takes away options with a value that mean the same wherever they stand, up to `--`; those
/// without one do not come between words that belong together.
fn anywhere(program: &Program<'static>, words: &mut Vec<Word>, normal: &mut Normal) {
    let mut at = 0;
    while let Some(word) = words.get(at) {
        if matches!(word, Word::Known(text) if text == "--") {
            return;
        }
        match global_at(&program.entry, program.dashed, words.get(at..).unwrap_or_default(), true, normal) {
            Some(taken) => {
                words.drain(at..at + taken);
            }
            None => at += 1,
        }
    }
}

/// The words with options, and the values that they surely take, behind the operands: a rule
/// that restricts by place must not be passed by an option in between.
pub(super) fn options_last(program: &Program<'static>, words: &[ShellWord]) -> Option<Vec<ShellWord>> {
    let known: Vec<Option<&str>> = words.iter().map(|word| word.value.known()).collect();
    let entries = program.entries(&known);
    let takes = |option: &str| {
        entries
            .iter()
            .any(|e| e.values.contains(&option) || e.globals.iter().any(|g| g.option == option && g.takes_value))
    };
    let (mut operands, mut options) = (Vec::new(), Vec::new());
    // What stands before the sub-command is the business of `normalise`.
    let mut at = words.iter().position(|word| !word.value.known().is_some_and(|text| text.starts_with('-')))?;
    operands.extend(words.get(..at).unwrap_or_default().iter().cloned());
    let mut moved = false;
    while let Some(word) = words.get(at) {
        at += 1;
        match word.value.known() {
            Some("--") => {
                operands.extend(words.get(at..).unwrap_or_default().iter().cloned());
                break;
            }
            Some(text) if text.starts_with('-') && text.len() > 1 => {
                options.push(word.clone());
                if takes(text)
                    && let Some(value) = words.get(at)
                {
                    options.push(value.clone());
                    at += 1;
                }
            }
            _ => {
                moved |= !options.is_empty();
                operands.push(word.clone());
            }
        }
    }
    moved.then(|| operands.into_iter().chain(options).collect())
}
