//! A witness as a person would type it, decided as a whole line by both versions.
//!
//! The search works on requests; people and hooks have lines. A line is only shown as a witness
//! when taking it apart again and deciding it under both versions shows the same change.

use std::collections::BTreeSet;

use crate::compile::CompileError;
use crate::decide::{Decider, Setting, judge};
use crate::model::{CommandRequest, RUNGS, Request, Surface, Word, ZoneMatcher, Zones, program, quote};

/// A line, and what it takes to decide it again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Typed {
    /// The line.
    pub line: String,
    /// The working directory; `None`: not known.
    pub cwd: Option<String>,
}

/// One version, as far as lines need it.
pub(super) struct Version<'v, 'a> {
    pub(super) decider: &'v mut Decider<'a>,
    pub(super) zones: &'v ZoneMatcher,
}

/// Both decisions of a line: lowest rung on each side.
pub(super) type Tiers = (Option<u8>, Option<u8>);

/// The line of a request for which `from` and `to` differ at one of the rungs as the request does.
pub(super) fn typed(
    request: &Request,
    rungs: &BTreeSet<u8>,
    from: &mut Version<'_, '_>,
    to: &mut Version<'_, '_>,
) -> Result<Option<(Typed, Tiers)>, CompileError> {
    let Request::Command(command) = request else { return Ok(None) };
    let declared = to.decider.compiled().set.config.zones.clone();
    for typed in spellings(command, &declared, to.zones) {
        let (before, after) = (tier(command, &typed, from)?, tier(command, &typed, to)?);
        let rank = |tier: Option<u8>| tier.unwrap_or(RUNGS);
        if rungs.iter().any(|rung| rank(after) <= *rung && *rung < rank(before)) {
            return Ok(Some((typed, (before, after))));
        }
    }
    Ok(None)
}

/// The tier of a line in one version, for the agent, machine and inputs of the request.
pub(super) fn tier(
    command: &CommandRequest,
    typed: &Typed,
    version: &mut Version<'_, '_>,
) -> Result<Option<u8>, CompileError> {
    let trusted_dirs = version.decider.compiled().set.config.trusted_dirs.clone();
    let setting = Setting {
        trusted_dirs: &trusted_dirs,
        zones: version.zones,
        cwd: typed.cwd.as_deref(),
        agent: &command.agent,
        host: &command.host,
        external: command.external,
    };
    judge(version.decider, command.surface, &typed.line, &setting).map(|verdict| verdict.tier)
}

/// Ways to type a request, the plainest first.
fn spellings(request: &CommandRequest, zones: &Zones, matcher: &ZoneMatcher) -> Vec<Typed> {
    let Some(redirects) = redirects(request, zones, matcher) else { return Vec::new() };
    let mut out = Vec::new();
    for tail in tails(request) {
        let mut parts: Vec<String> = request.env.iter().map(|name| format!("{name}=x")).collect();
        if request.surface == Surface::Sudo {
            parts.push("sudo".into());
            if request.run_as != "root" {
                parts.push(format!("-u {}", quote(&request.run_as)));
            }
        }
        for wrapper in &request.wrappers {
            parts.push(wrapper.clone());
            let operands = program(wrapper).and_then(|p| p.entry.wrapper).map_or(0, |w| w.operands);
            parts.extend(std::iter::repeat_n("1".to_owned(), operands));
        }
        let path = if request.trusted { "" } else { "./" };
        parts.push(quote(&format!("{path}{}", request.program)));
        let known = program(&request.program);
        for option in &request.globals {
            parts.push(quote(option));
            let takes =
                known.and_then(|p| p.entry.global(option, p.dashed)).is_some_and(|(g, glued)| g.takes_value && !glued);
            if takes && request.globals.len() == request.globals.iter().filter(|o| o.starts_with('-')).count() {
                parts.push("x".into());
            }
        }
        parts.extend(request.words.iter().map(|word| match word {
            Word::Known(text) => quote(text),
            Word::Value => "\"./$VALUE\"".into(),
            Word::Files(pattern) => pattern.clone(),
            Word::Open => "$WORDS".into(),
        }));
        parts.extend(tail);
        parts.extend(redirects.iter().cloned());
        let hidden = request.words.iter().any(|w| matches!(w, Word::Value | Word::Open));
        if request.dynamic && !hidden {
            parts.push("<<< \"$INPUT\"".into());
        }
        for cwd in directories(request, zones, matcher) {
            out.push(Typed { line: parts.join(" "), cwd });
        }
    }
    out
}

/// A carrier needs something to carry.
fn tails(request: &CommandRequest) -> Vec<Vec<String>> {
    if !request.covered {
        return vec![Vec::new()];
    }
    let word = |words: &[&str]| words.iter().map(|w| (*w).to_owned()).collect();
    vec![word(&[":"]), Vec::new(), word(&["1", ":"]), word(&["-c", ":"]), word(&["x", ":"])]
}

/// Redirects that write into just the zones of the request.
fn redirects(request: &CommandRequest, zones: &Zones, matcher: &ZoneMatcher) -> Option<Vec<String>> {
    request
        .writes
        .iter()
        .map(|zone| match zone.as_str() {
            Zones::UNKNOWN => Some("> out".to_owned()),
            zone => {
                let path = samples(zone, zones, matcher).into_iter().find(|path| {
                    let inside = matcher.path(path);
                    inside.is_empty() || inside.is_subset(&request.writes)
                })?;
                Some(format!("> {}", quote(&path)))
            }
        })
        .collect()
}

/// Paths in a zone.
fn samples(zone: &str, zones: &Zones, matcher: &ZoneMatcher) -> Vec<String> {
    if zone == Zones::ELSEWHERE {
        let usual = ["/opt/x", "/var/lib/x", "/mnt/x", "/x", "/usr/share/x"];
        return usual.iter().filter(|path| matcher.path(path).is_empty()).map(|path| (*path).to_owned()).collect();
    }
    zones
        .get(zone)
        .map(|(patterns, _)| patterns.iter().map(crate::model::PathPattern::sample).collect())
        .unwrap_or_default()
}

/// Working directories that add just the zones of the request's place.
fn directories(request: &CommandRequest, zones: &Zones, matcher: &ZoneMatcher) -> Vec<Option<String>> {
    if !request.place.known && request.place.zones.is_empty() {
        return vec![None];
    }
    let mut out: Vec<Option<String>> = Vec::new();
    let names = request.place.zones.iter().map(String::as_str).chain([Zones::ELSEWHERE]);
    for path in names.flat_map(|zone| samples(zone, zones, matcher)) {
        if matcher.path(&path).is_subset(&request.place.zones) {
            out.push(Some(path));
        }
    }
    out
}
