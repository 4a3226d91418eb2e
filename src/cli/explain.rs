//! `polctl explain`: which rule decides a line, and why it is not of a lower tier.

use std::io::Read as _;
use std::path::Path;

use super::args::{ExplainArgs, ExplainFormat};
use super::output;
use super::session::{Failure, open, read};
use crate::compile::{Compiled, Effect, Origin};
use crate::decide::{
    Answer, CapabilityDecider, Decider, Judgement, Reason, Role, Setting, Verdict, egress_request, judge,
    judge_request, why_not,
};
use crate::diag::{Level, sort};
use crate::model::{CAPABILITY_RUNGS, CapabilityRequest, RUNGS, Request, RiskTier, Surface, Tier, ZoneMatcher};
use crate::parse::capability_request;
use crate::report::{ExplainedLine, ExplainedPart, ExplainedReason, Report, explain_human, explain_json};
use crate::source::SourceMap;

/// Most bytes that are read from standard input.
const MAX_INPUT: u64 = 4 << 20;

/// The word in front of a capability request.
const CAPABILITY: &str = "capability";

pub(super) fn run(args: &ExplainArgs) -> Result<u8, Failure> {
    let capability = match args.line.as_slice() {
        [first, request] if first == CAPABILITY => {
            let read = capability_request(request);
            Some(read.map_err(|(message, help)| Failure::Usage { message, help })?)
        }
        _ => None,
    };
    let (surface, lines) = if capability.is_some() { (Surface::Commands, Vec::new()) } else { lines(args)? };
    let mut map = SourceMap::new();
    let mut findings = Vec::new();
    let text = args.policy.to_string_lossy();
    let tree: Box<dyn crate::source::Tree> = if args.policy.is_dir() {
        Box::new(super::session::working_tree(&args.policy)?)
    } else {
        open(&text, Path::new("."), None)?
    };
    let Some(compiled) = read(tree.as_ref(), &mut map, &mut findings)? else {
        findings.retain(|f| f.level == Level::Error);
        sort(&mut findings);
        let exit_code = super::session::exit_code(&findings, false);
        let report =
            Report { command: "explain", compared: None, policy_ids: (None, None), rules: None, findings, exit_code };
        return Ok(output::report(&report, &map, &super::args::OutputArgs::default()));
    };
    if let Some(request) = capability {
        return explain_capability(args, request, &compiled, &map);
    }
    let zones = compiled.set.config.zones.matcher();
    let cwd = working_directory(args)?;
    let setting = Setting {
        trusted_dirs: &compiled.set.config.trusted_dirs,
        zones: &zones,
        cwd: cwd.as_deref(),
        agent: &args.agent,
        host: &args.host,
        external: args.external,
    };
    let mut decider = Decider::new(&compiled, &map);
    let mut explained = Vec::new();
    for line in &lines {
        let verdict = decide(&mut decider, surface, line, &setting)?;
        explained.push(describe(&compiled, &decider, (surface, line, cwd.as_deref()), &verdict, &zones));
    }
    let format = if args.json { ExplainFormat::Json } else { args.format };
    let text = match format {
        ExplainFormat::Json => explain_json(&explained, &compiled.policy_id()),
        ExplainFormat::Human => explained.iter().map(explain_human).collect::<Vec<_>>().join("\n"),
    };
    Ok(output::print(&text).err().unwrap_or(super::exit::OK))
}

/// A capability request: the rung at which each manifest's policies allow it, and why.
fn explain_capability(
    args: &ExplainArgs,
    mut request: CapabilityRequest,
    compiled: &Compiled,
    map: &SourceMap,
) -> Result<u8, Failure> {
    request.agent.clone_from(&args.agent);
    request.external = args.external;
    let mut decider = CapabilityDecider::new(compiled, map);
    let mut answers = Vec::new();
    for rung in 0..CAPABILITY_RUNGS {
        answers.push(decider.answer(&request, rung)?);
    }
    let names = RiskTier::NAMES;
    let allowed = answers.iter().position(|answer| answer.allowed);
    let rung = allowed.and_then(|at| names.get(at)).copied().unwrap_or("refused");
    let subject = &request.subject;
    let known = compiled.set.manifests.iter().any(|manifest| manifest.subject == *subject);
    let of = |answer: &Answer| -> Vec<(String, String, bool)> {
        answer.reasons.iter().map(|reason| (reason.id.clone(), reason.source.clone(), reason.forbids)).collect()
    };
    let json = args.json || matches!(args.format, ExplainFormat::Json);
    if json {
        let rungs: Vec<serde_json::Value> = answers
            .iter()
            .zip(names)
            .map(|(answer, name)| {
                let reasons = of(answer).into_iter().map(|(id, source, forbids)| {
                    serde_json::json!({"id": id, "source": source, "effect": if forbids { "forbid" } else { "permit" }})
                });
                serde_json::json!({"rung": name, "allowed": answer.allowed, "reasons": reasons.collect::<Vec<_>>()})
            })
            .collect();
        let out = serde_json::json!({
            "version": 1, "policy_id": compiled.policy_id(), "subject": subject.to_string(),
            "request": request.target.to_string(), "rung": allowed.map(|_| rung), "rungs": rungs,
        });
        return Ok(output::print(&format!("{out:#}\n")).err().unwrap_or(super::exit::OK));
    }
    let mut text = format!("{subject}: `{}`: {rung}\n", request.target);
    if !known {
        text.push_str(&format!("  there is no manifest of the {subject}: everything is refused\n"));
    }
    for (answer, name) in answers.iter().zip(names) {
        text.push_str(&format!("  {name}: {}\n", if answer.allowed { "allowed" } else { "refused" }));
        if answer.reasons.is_empty() && known {
            text.push_str("    no entry permits it\n");
        }
        for (id, source, forbids) in of(answer) {
            text.push_str(&format!("    {} {source} `{id}`\n", if forbids { "forbid" } else { "permit" }));
        }
    }
    Ok(output::print(&text).err().unwrap_or(super::exit::OK))
}

/// The surface and the lines to explain.
fn lines(args: &ExplainArgs) -> Result<(Surface, Vec<String>), Failure> {
    let usage = |message: &str, help: &str| Failure::Usage { message: message.into(), help: help.into() };
    let (surface, rest) = match args.line.split_first() {
        Some((first, rest)) if !rest.is_empty() || args.stdin => match Surface::from_name(first) {
            Some(surface) => (surface, rest),
            None => (Surface::Commands, args.line.as_slice()),
        },
        _ => (Surface::Commands, args.line.as_slice()),
    };
    match (rest, args.stdin) {
        ([], true) => {
            let mut text = String::new();
            let mut input = std::io::stdin().lock().take(MAX_INPUT + 1);
            input.read_to_string(&mut text).map_err(|_| {
                usage(
                    "standard input is not UTF-8 text",
                    "give one command line, or with `--json` one in a JSON string",
                )
            })?;
            if u64::try_from(text.len()).unwrap_or(u64::MAX) > MAX_INPUT {
                return Err(usage("standard input is larger than 4 MiB", "explain one line at a time"));
            }
            // One text: a line may go on over many lines of input.
            Ok((surface, vec![text.strip_suffix('\n').unwrap_or(&text).to_owned()]))
        }
        ([line], false) => Ok((surface, vec![line.clone()])),
        ([], false) => Err(usage("there is no line to explain", "write it in quotes: `polctl explain 'git push -f'`")),
        (_, true) => Err(usage("a line was given and `--stdin` too", "use one of them")),
        (words, false) => Err(usage(
            &format!("{} words where one line is expected", words.len()),
            "put the line in quotes, so that your own shell leaves it alone: `polctl explain 'git push -f'`",
        )),
    }
}

/// The directory that relative paths are seen from.
fn working_directory(args: &ExplainArgs) -> Result<Option<String>, Failure> {
    match &args.cwd {
        Some(dir) if dir == "unknown" => Ok(None),
        Some(dir) if !dir.starts_with('/') => Err(Failure::usage(
            format!("the working directory `{dir}` is relative"),
            "write it in full, or `--cwd unknown`; without `--cwd` it is the directory that polctl runs in",
        )),
        Some(dir) => Ok(Some(dir.clone())),
        None => Ok(std::env::current_dir().ok().and_then(|dir| dir.to_str().map(str::to_owned))),
    }
}

fn decide(decider: &mut Decider<'_>, surface: Surface, line: &str, setting: &Setting<'_>) -> Result<Verdict, Failure> {
    if surface != Surface::Egress {
        return Ok(judge(decider, surface, line, setting)?);
    }
    let mut request = egress_request(line).map_err(|error| Failure::Usage {
        message: format!("the request cannot be read: {error}"),
        help: "write a method and a URL: `GET https://api.example.com/repos/x`, optionally followed by \
               `secret=vault://mount/path#field`"
            .into(),
    })?;
    setting.agent.clone_into(&mut request.agent);
    setting.host.clone_into(&mut request.machine);
    request.external = setting.external;
    Ok(judge_request(decider, Request::Egress(request), line, setting)?)
}

fn describe(
    compiled: &Compiled,
    decider: &Decider<'_>,
    (surface, line, cwd): (Surface, &str, Option<&str>),
    verdict: &Verdict,
    zones: &ZoneMatcher,
) -> ExplainedLine {
    let effect = |tier: Option<u8>| tier.and_then(Tier::new).unwrap_or(Tier::DENY).effect(surface);
    let mut parts = Vec::new();
    for judgement in &verdict.parts {
        // What another part says better is not repeated.
        let rank = |tier: Option<u8>| tier.unwrap_or(RUNGS);
        let said = |other: &Judgement| other.part.role == Role::Whole && other.part.text == judgement.part.text;
        if judgement.part.role != Role::Whole
            && (judgement.tier == Some(0)
                || verdict.parts.iter().any(|p| said(p) && rank(p.tier) >= rank(judgement.tier)))
        {
            continue;
        }
        parts.push(describe_part(compiled, decider, judgement, zones));
    }
    ExplainedLine {
        line: line.to_owned(),
        cwd: cwd.map(str::to_owned),
        surface: surface.name(),
        tier: verdict.tier,
        effect: effect(verdict.tier),
        parts,
    }
}

fn describe_part(
    compiled: &Compiled,
    decider: &Decider<'_>,
    judgement: &Judgement,
    zones: &ZoneMatcher,
) -> ExplainedPart {
    let part = &judgement.part;
    let surface = part.request.surface();
    let mut not_lower = Vec::new();
    match (judgement.tier, &judgement.below) {
        (None, _) if !compiled.set.surfaces.contains_key(&surface) => {
            not_lower
                .push(format!("no file of this policy covers the surface `{surface}`, so nothing is permitted on it"));
        }
        (None, _) if part.role == Role::Refused => {}
        (None, _) if judgement.answer.reasons.is_empty() => {
            not_lower.extend(unpermitted(compiled, decider, judgement, 3, zones));
        }
        (Some(tier), Some(below)) if tier > 0 => {
            let rung = tier - 1;
            if below.forbidden() {
                not_lower.push(format!("not tier {rung}: {} stops it there", listed(below)));
            } else {
                not_lower.extend(unpermitted(compiled, decider, judgement, rung, zones));
            }
        }
        _ => {}
    }
    let shown = if part.is_unread() { part.text.clone() } else { part.request.to_line() };
    ExplainedPart {
        text: part.text.clone(),
        surface: surface.name(),
        request: shown,
        // Where it runs stands above the parts.
        assumes: part.request.assumptions().into_iter().filter(|text| !text.starts_with("run in a")).collect(),
        via: part.via.clone(),
        role: match part.role {
            Role::Whole => "whole",
            Role::Restricted => "restricted",
            Role::Denied => "denied",
            Role::Refused => "refused",
        },
        tier: judgement.tier,
        decided_by: judgement.answer.reasons.iter().map(reason).collect(),
        not_lower,
        notes: part.notes.clone(),
    }
}

/// A rule by its place and pattern, or what is built in by its name.
fn name(reason: &Reason) -> String {
    match (reason.rule.as_str(), reason.source.as_str()) {
        ("", _) => format!("`{}`", built_in(&reason.id)),
        (rule, source) => format!("`{rule}` ({source})"),
    }
}

fn built_in(id: &str) -> &str {
    id.split_once('/').map_or(id, |(_, name)| name)
}

fn listed(answer: &Answer) -> String {
    answer.reasons.iter().filter(|reason| reason.forbids).map(name).collect::<Vec<_>>().join(", ")
}

fn reason(reason: &Reason) -> ExplainedReason {
    ExplainedReason {
        policy: reason.id.clone(),
        effect: if reason.forbids { "forbid" } else { "permit" },
        source: reason.source.clone(),
        rule: if reason.rule.is_empty() { built_in(&reason.id).to_owned() } else { format!("`{}`", reason.rule) },
        tier: reason.tier,
        why: reason.why.clone(),
    }
}

/// Why no rule permits the request at a rung: what the rules about its program lack.
fn unpermitted(
    compiled: &Compiled,
    decider: &Decider<'_>,
    judgement: &Judgement,
    rung: u8,
    zones: &ZoneMatcher,
) -> Vec<String> {
    const MOST: usize = 3;
    let surface = judgement.part.request.surface();
    let facts = judgement.part.request.facts(zones);
    let near: Vec<String> = decider
        .candidates(surface, &facts)
        .into_iter()
        .filter(|p| p.effect == Effect::Permit && p.rungs.contains(&rung) && matches!(p.origin, Origin::Rule(_)))
        .filter_map(|policy| {
            let rule = compiled.rule_of(policy)?;
            Some(format!("`{}` does not permit it: {}", rule.pattern_text(), why_not(policy, &facts)?))
        })
        .collect();
    let mut out = vec![format!("not tier {rung}: no rule permits it there")];
    let more = near.len().saturating_sub(MOST);
    out.extend(near.into_iter().take(MOST).map(|text| format!("  {text}")));
    if more > 0 {
        out.push(format!("  and {more} more rules about this program"));
    }
    out
}
