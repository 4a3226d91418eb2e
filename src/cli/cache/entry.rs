//! Entries as bytes: own types, versioned, with their own digest.
//!
//! An entry is believed only if all of it is as it was written: the first line has the key that
//! it was looked up by and the digest of the rest. Every place in it must be a place in the
//! files of this run.

use serde::{Deserialize, Serialize};

use super::FORMAT;
use super::recorded::{Op, Recording};
use crate::cli::outcome::Outcome;
use crate::diag::{Code, Evidence, Finding, Level, Related, RuleCounts, TextChange};
use crate::sign::Digest;
use crate::source::{FileId, SourceMap, Span};

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Verdict {
    /// Version and path in the policy directory, in the order of the source map.
    files: Vec<(u8, String)>,
    findings: Vec<Item>,
    rules: Rules,
    policy_ids: (Option<String>, Option<String>),
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Item {
    code: String,
    level: String,
    message: String,
    help: Option<String>,
    span: Place,
    label: String,
    related: Vec<(Place, String)>,
    evidence: Option<Proof>,
    texts: Vec<(Option<Place>, Option<Place>)>,
}

/// A file's index, and bytes in it.
type Place = (usize, usize, usize);

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Proof {
    surface: String,
    rungs: Vec<u8>,
    witness: String,
    assumes: Vec<String>,
    replay: Option<Vec<String>>,
    old_tier: Option<u8>,
    new_tier: Option<u8>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Rules {
    unchanged: usize,
    reworded: usize,
    moved: usize,
    fresh: usize,
    gone: usize,
    same_configuration: bool,
}

/// Key and digest in front of a body.
fn sealed(body: &[u8], key: &Digest) -> Vec<u8> {
    let mut out = format!("{FORMAT} {key} {}\n", Digest::of(body)).into_bytes();
    out.extend_from_slice(body);
    out
}

/// The body of an entry, if it is this key's and whole.
fn opened<'b>(bytes: &'b [u8], key: &Digest) -> Option<&'b [u8]> {
    let end = bytes.iter().position(|byte| *byte == b'\n')?;
    let (head, body) = (bytes.get(..end)?, bytes.get(end + 1..)?);
    (head == format!("{FORMAT} {key} {}", Digest::of(body)).as_bytes()).then_some(body)
}

/// A list of reads as an entry.
pub(super) fn of_reads(reads: &[Op], key: &Digest) -> Vec<u8> {
    sealed(&serde_json::to_vec(reads).unwrap_or_default(), key)
}

/// The list of reads of an entry.
pub(super) fn reads(bytes: &[u8], key: &Digest) -> Option<Vec<Op>> {
    serde_json::from_slice(opened(bytes, key)?).ok()
}

/// An answer as an entry; `None` where it cannot be told from which file a text is.
pub(super) fn of_outcome(outcome: &Outcome, key: &Digest, recording: &Recording<'_>) -> Option<Vec<u8>> {
    let files = recording.files();
    let ids: Vec<FileId> = outcome.map.ids().collect();
    if rebuilt(&files, recording)?.files().map(|f| &f.text).ne(outcome.map.files().map(|f| &f.text)) {
        return None;
    }
    let verdict = Verdict {
        findings: outcome.findings.iter().map(|finding| item(finding, &ids)).collect::<Option<_>>()?,
        rules: rules(&outcome.rules?),
        policy_ids: outcome.policy_ids.clone(),
        files,
    };
    Some(sealed(&serde_json::to_vec(&verdict).ok()?, key))
}

/// The answer of an entry, with the texts of this run.
pub(super) fn outcome(bytes: &[u8], key: &Digest, recording: &Recording<'_>) -> Option<Outcome> {
    let verdict: Verdict = serde_json::from_slice(opened(bytes, key)?).ok()?;
    let map = rebuilt(&verdict.files, recording)?;
    let ids: Vec<FileId> = map.ids().collect();
    let findings: Option<Vec<Finding>> = verdict.findings.into_iter().map(|item| finding(item, &map, &ids)).collect();
    let Rules { unchanged, reworded, moved, fresh, gone, same_configuration } = verdict.rules;
    let rules = RuleCounts { unchanged, reworded, moved, fresh, gone, same_configuration };
    Some(Outcome { findings: findings?, rules: Some(rules), policy_ids: verdict.policy_ids, map })
}

/// The source map of a run that read these files in this order.
fn rebuilt(files: &[(u8, String)], recording: &Recording<'_>) -> Option<SourceMap> {
    let mut map = SourceMap::new();
    for (side, path) in files {
        map.add(path, recording.origin(*side).as_deref(), &recording.text(*side, path)?);
    }
    Some(map)
}

const fn rules(counts: &RuleCounts) -> Rules {
    let RuleCounts { unchanged, reworded, moved, fresh, gone, same_configuration } = *counts;
    Rules { unchanged, reworded, moved, fresh, gone, same_configuration }
}

fn item(finding: &Finding, ids: &[FileId]) -> Option<Item> {
    let place = |span: Span| Some((ids.iter().position(|id| *id == span.file)?, span.start, span.end));
    let optional = |span: Option<Span>| {
        Some(match span {
            Some(span) => Some(place(span)?),
            None => None,
        })
    };
    Some(Item {
        code: finding.code.as_str().to_owned(),
        level: finding.level.as_str().to_owned(),
        message: finding.message.clone(),
        help: finding.help.clone(),
        span: place(finding.span)?,
        label: finding.label.clone(),
        related: finding.related.iter().map(|r| Some((place(r.span)?, r.label.clone()))).collect::<Option<_>>()?,
        evidence: finding.evidence.as_ref().map(proof),
        texts: finding.texts.iter().map(|t| Some((optional(t.old)?, optional(t.new)?))).collect::<Option<_>>()?,
    })
}

fn proof(evidence: &Evidence) -> Proof {
    let Evidence { surface, rungs, witness, assumes, replay, old_tier, new_tier, request: _ } = evidence.clone();
    Proof { surface, rungs, witness, assumes, replay, old_tier, new_tier }
}

fn evidence(proof: Proof) -> Evidence {
    let Proof { surface, rungs, witness, assumes, replay, old_tier, new_tier } = proof;
    // Comparisons of plain Cedar, which have one, are not kept.
    Evidence { surface, rungs, witness, assumes, replay, old_tier, new_tier, request: None }
}

fn finding(item: Item, map: &SourceMap, ids: &[FileId]) -> Option<Finding> {
    let span = |(file, start, end): Place| {
        let file = *ids.get(file)?;
        map.text(file).get(start..end).map(|_| Span::new(file, start, end))
    };
    let optional = |place: Option<Place>| {
        Some(match place {
            Some(place) => Some(span(place)?),
            None => None,
        })
    };
    let related = |(place, label)| Some(Related { span: span(place)?, label });
    let text = |(old, new)| Some(TextChange { old: optional(old)?, new: optional(new)? });
    Some(Finding {
        code: Code::from_name(&item.code)?,
        level: [Level::Note, Level::Warning, Level::Error].into_iter().find(|level| level.as_str() == item.level)?,
        message: item.message,
        help: item.help,
        span: span(item.span)?,
        label: item.label,
        related: item.related.into_iter().map(related).collect::<Option<_>>()?,
        evidence: item.evidence.map(evidence),
        texts: item.texts.into_iter().map(text).collect::<Option<_>>()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bit_of_an_entry_counts() {
        let key = Digest::of(b"key");
        let reads = [Op { side: 1, list: true, path: "capabilities".into() }];
        let entry = of_reads(&reads, &key);
        assert_eq!(super::reads(&entry, &key).as_deref(), Some(&reads[..]));
        assert_eq!(super::reads(&entry, &Digest::of(b"other")), None);
        for at in 0..entry.len() {
            for bit in 0..8 {
                let mut damaged = entry.clone();
                damaged[at] ^= 1 << bit;
                assert_eq!(opened(&damaged, &key), None, "bit {bit} of byte {at}");
            }
            assert_eq!(opened(&entry[..at], &key), None, "cut at {at}");
        }
        assert_eq!(opened(&[&entry[..], b"x"].concat(), &key), None);
    }
}
