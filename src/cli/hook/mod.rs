//! `polctl hook`: a `PreToolUse` hook for agents that speak Claude Code's hook protocol.
//!
//! Reads one event, answers allow, ask or deny. Everything that goes wrong is answered with
//! deny: no policy, a policy that is not verified, an event that cannot be read, a defect, five
//! seconds. The exit code is 0 whenever an answer was printed, since the protocol lets a tool
//! run when its hook fails with any other code than 2.

mod audit;
mod event;
mod install;
mod load;
mod selftest;

use std::io::Read as _;
use std::path::Path;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde::Serialize;

use super::args::{HookArgs, Route};
use super::session::Failure;
use super::{exit, output};
use crate::decide::{Bundle, Setting, Slices, Verdict, egress_request, judge, judge_request, make_ready};
use crate::model::{Request, Surface, Tier};

use audit::{Row, append, redacted};
use event::{Act, Event, MAX_EVENT};

/// Time for one decision.
const LIMIT: Duration = Duration::from_secs(5);

pub(super) fn run(args: &HookArgs) -> Result<u8, Failure> {
    if args.self_test {
        return Ok(selftest::run(args));
    }
    if args.install {
        return install::run(args);
    }
    // The work has a thread of its own, so that neither a defect nor an endless loop is an answer.
    let begun = Instant::now();
    let (send, receive) = mpsc::channel();
    let owned = args.clone();
    let spawned = std::thread::Builder::new().stack_size(16 << 20).spawn(move || {
        let _ = send.send(answer(&owned));
    });
    // While that thread reads and verifies the policy. Whatever goes wrong here goes wrong there, too.
    let _ = std::panic::catch_unwind(make_ready);
    let reply = match (spawned, receive.recv_timeout(LIMIT.saturating_sub(begun.elapsed()))) {
        (Err(error), _) => failed(&format!("no thread could be started: {error}")),
        (Ok(_), Ok(reply)) => reply,
        (Ok(_), Err(mpsc::RecvTimeoutError::Timeout)) => failed("the decision took longer than five seconds"),
        (Ok(_), Err(mpsc::RecvTimeoutError::Disconnected)) => failed("a defect of polctl ended the decision"),
    };
    // A reply that nobody gets must not look like one: 2 blocks the tool.
    Ok(output::print(&reply.to_json()).map_or(2, |()| exit::OK))
}

/// What the client is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Permission {
    Allow,
    Ask,
    Deny,
}

impl Permission {
    const fn strictness(self) -> u8 {
        match self {
            Permission::Allow => 0,
            Permission::Ask => 1,
            Permission::Deny => 2,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Permission::Allow => "allow",
            Permission::Ask => "ask",
            Permission::Deny => "deny",
        }
    }
}

/// An answer; `None`: the client goes on as if there were no hook.
#[derive(Debug, PartialEq, Eq)]
struct Reply {
    permission: Option<Permission>,
    reason: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Output<'a> {
    hook_specific_output: Specific<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Specific<'a> {
    hook_event_name: &'a str,
    permission_decision: &'a str,
    permission_decision_reason: &'a str,
}

impl Reply {
    fn to_json(&self) -> String {
        let Some(permission) = self.permission else { return "{}\n".into() };
        let output = Output {
            hook_specific_output: Specific {
                hook_event_name: "PreToolUse",
                permission_decision: permission.name(),
                permission_decision_reason: &self.reason,
            },
        };
        // Three strings: there is nothing that could fail.
        serde_json::to_string(&output).unwrap_or_default() + "\n"
    }
}

/// The answer to everything that goes wrong: deny, or ask where the user's own shell says so.
fn failed(why: &str) -> Reply {
    let hatch = std::env::var_os("ESCAPE_HATCH").is_some_and(|value| !value.is_empty() && value != "0");
    if hatch {
        let reason = format!("polctl COULD NOT DECIDE and ESCAPE_HATCH is set, so you are asked: {why}");
        return Reply { permission: Some(Permission::Ask), reason };
    }
    let reason = format!(
        "polctl could not decide, so nothing runs: {why}. Run `polctl hook --self-test` with the options of the hook to \
         see what is wrong; ESCAPE_HATCH=1 in the shell that starts the agent turns this into a question."
    );
    Reply { permission: Some(Permission::Deny), reason }
}

/// What a decision was made of, for the audit.
struct Made {
    reply: Reply,
    tier: Option<u8>,
    rule: Option<String>,
}

fn answer(args: &HookArgs) -> Reply {
    let mut text = String::new();
    let read = std::io::stdin().lock().take(MAX_EVENT + 1).read_to_string(&mut text);
    if read.is_err() || u64::try_from(text.len()).unwrap_or(u64::MAX) > MAX_EVENT {
        return failed("the event on standard input is no UTF-8 text or larger than 8 MiB");
    }
    let event = match Event::read(&text) {
        Ok(event) => event,
        Err(why) => return failed(&why),
    };
    let act = match event.act() {
        Ok(act) => act,
        Err(why) => return failed(&why),
    };
    let mut policy = None;
    let made = match load::bundle(args) {
        Ok(mut bundle) => {
            policy = Some(bundle.head().policy_id.clone());
            let made = decide(args, &event, &act, &mut bundle);
            // The process ends with the answer; taking the policies apart would only take time.
            std::mem::forget(bundle);
            made
        }
        Err(why) => Err(why),
    };
    let made = made.unwrap_or_else(|why| Made { reply: failed(&why), tier: None, rule: None });
    match log(args, &event, &act, &made, policy.as_deref()) {
        Ok(()) => made.reply,
        Err(why) => failed(&format!("the audit file cannot be written: {why}")),
    }
}

fn decide(args: &HookArgs, event: &Event, act: &Act, bundle: &mut Bundle) -> Result<Made, String> {
    let zones = Arc::clone(bundle.zones());
    let trusted_dirs = bundle.head().trusted_dirs.clone();
    let setting = Setting {
        trusted_dirs: &trusted_dirs,
        zones: &zones,
        cwd: event.cwd.as_deref(),
        agent: &args.agent,
        host: &args.host,
        external: args.external,
    };
    let slices: &mut dyn Slices = bundle;
    let verdict = match act {
        Act::Line(line) => judge(slices, Surface::Commands, line, &setting).map_err(|e| e.to_string())?,
        Act::Fetch(url) => {
            let mut request = egress_request(&format!("GET {url}")).map_err(|e| e.to_string())?;
            setting.agent.clone_into(&mut request.agent);
            setting.host.clone_into(&mut request.machine);
            request.external = setting.external;
            judge_request(slices, Request::Egress(request), url, &setting).map_err(|e| e.to_string())?
        }
        Act::Read(paths) => return Ok(files(paths, false, &setting)),
        Act::Write(path) => return Ok(files(std::slice::from_ref(path), true, &setting)),
        Act::Code => {
            let reason = format!("`{}` runs something that polctl does not read", event.tool_name);
            return Ok(Made { reply: Reply { permission: Some(Permission::Ask), reason }, tier: Some(2), rule: None });
        }
        Act::Other => {
            let reason = format!("polctl has no rules for the tool `{}`", event.tool_name);
            return Ok(Made { reply: Reply { permission: None, reason }, tier: None, rule: None });
        }
    };
    let surface = if matches!(act, Act::Fetch(_)) { Surface::Egress } else { Surface::Commands };
    Ok(routed(args, surface, &verdict))
}

/// Files that the client's own tools touch: the zones decide, until capability manifests do.
/// Here, where the file is, links are followed: both the path and what it leads to must be fine.
fn files(paths: &[String], write: bool, setting: &Setting<'_>) -> Made {
    let made = paths.iter().flat_map(|path| std::iter::once(path.clone()).chain(led_to(path, setting.cwd)));
    let made = made.map(|path| file(&path, write, setting));
    made.max_by_key(|made| made.reply.permission.map(Permission::strictness))
        .unwrap_or_else(|| file("", write, setting))
}

/// What a path leads to, when that is another place.
fn led_to(path: &str, cwd: Option<&str>) -> Option<String> {
    let path = Path::new(cwd.unwrap_or("/")).join(path);
    let real =
        path.canonicalize().ok().or_else(|| Some(path.parent()?.canonicalize().ok()?.join(path.file_name()?)))?;
    real.to_str().map(str::to_owned)
}

fn file(path: &str, write: bool, setting: &Setting<'_>) -> Made {
    let found = crate::decide::file_zones(path, setting);
    let guarded = crate::model::Zones::GUARDED.iter().find(|zone| found.contains(**zone));
    let unknown = found.contains(crate::model::Zones::UNKNOWN);
    let writable = crate::model::Zones::WRITABLE.iter().any(|zone| found.contains(*zone));
    let (permission, reason) = match guarded {
        Some(zone) => {
            (Some(Permission::Deny), format!("`{path}` lies in the zone `{zone}`, which no agent's tool may touch"))
        }
        None if unknown => (Some(Permission::Ask), format!("where `{path}` lies is not known")),
        None if write && !writable => {
            (Some(Permission::Ask), format!("`{path}` lies outside of `workspace` and `tmp`"))
        }
        None => (None, String::new()),
    };
    let rule = guarded.map(|zone| format!("zone {zone}"));
    Made { reply: Reply { permission, reason }, tier: guarded.map(|_| 4), rule }
}

/// What the enforcement point does with a tier (DESIGN 3.1).
fn routed(args: &HookArgs, surface: Surface, verdict: &Verdict) -> Made {
    let tier = verdict.tier;
    let deciding = verdict.deciding();
    let reasons = deciding.map(|judgement| {
        let answer = judgement.below.as_ref().filter(|below| below.forbidden()).unwrap_or(&judgement.answer);
        answer.reasons.as_slice()
    });
    let rule = reasons.and_then(|reasons| {
        reasons.iter().max_by_key(|reason| (reason.forbids, reason.tier)).map(|reason| {
            match (reason.rule.as_str(), reason.id.rsplit('/').next()) {
                ("", Some("unmatched")) => "no rule permits it below that".to_owned(),
                ("", Some("provenance")) => "its inputs come from outside the session".to_owned(),
                ("", Some("non-public")) => "the address is not public".to_owned(),
                ("", _) => reason.id.clone(),
                (rule, _) => format!("`{rule}` ({})", reason.source),
            }
        })
    });
    let why = reasons.and_then(|reasons| reasons.iter().map(|reason| reason.why.as_str()).find(|why| !why.is_empty()));
    let mut reason = match tier {
        Some(tier) => format!("tier {tier}: {}", Tier::new(tier).unwrap_or(Tier::DENY).effect(surface)),
        None => "denied: no override".to_owned(),
    };
    if let Some(judgement) = deciding.filter(|_| tier != Some(0)) {
        reason.push_str(&format!("; `{}`", redacted(&judgement.part.text)));
        if !judgement.part.via.is_empty() {
            reason.push_str(&format!(" ({})", judgement.part.via.join(", ")));
        }
    }
    if let Some(rule) = &rule {
        reason.push_str(&format!("; {rule}"));
    }
    if let Some(why) = why {
        reason.push_str(&format!(": {why}"));
    }
    for note in deciding.into_iter().flat_map(|judgement| &judgement.part.notes) {
        reason.push_str(&format!("; {note}"));
    }
    let permission = match tier {
        Some(0 | 1) => Permission::Allow,
        Some(_) if args.route == Route::Deny => {
            reason.push_str(&match &args.daemon {
                Some(daemon) => format!(". Send it to {daemon}, which runs it in a sandbox first"),
                None => ". It does not run here".to_owned(),
            });
            Permission::Deny
        }
        Some(_) => Permission::Ask,
        None => Permission::Deny,
    };
    Made { reply: Reply { permission: Some(permission), reason }, tier: Some(tier.unwrap_or(4)), rule }
}

fn log(args: &HookArgs, event: &Event, act: &Act, made: &Made, policy_id: Option<&str>) -> std::io::Result<()> {
    let Some(path) = &args.audit else { return Ok(()) };
    let text = match act {
        Act::Line(text) | Act::Write(text) | Act::Fetch(text) => text.clone(),
        Act::Read(paths) => paths.join(" "),
        Act::Code => event.tool_input.to_string(),
        Act::Other => return Ok(()),
    };
    let row = Row {
        ts: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |elapsed| elapsed.as_secs()),
        session_id: event.session_id.as_deref(),
        tool_use_id: event.tool_use_id.as_deref(),
        agent: &args.agent,
        tool: &event.tool_name,
        command: redacted(&text),
        assigned_tier: made.tier,
        decision_type: made.reply.permission.map_or("none", Permission::name),
        matched_rule: made.rule.clone(),
        evidence: redacted(&made.reply.reason),
        policy_id,
        exit_code: None,
        rollback_taken: None,
        verify_passed: None,
        human_verdict: None,
        training_signal: None,
    };
    append(path, &row)
}
