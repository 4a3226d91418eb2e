//! How a line was decided, for people and as JSON. The types are this output's own.

use std::fmt::Write as _;

use serde::Serialize;

use super::human::visible;

/// A decided line.
#[derive(Debug, Serialize)]
pub struct ExplainedLine {
    /// The line as given.
    pub line: String,
    /// The directory that it runs in; `null`: not known.
    pub cwd: Option<String>,
    /// `commands`, `sudo` or `egress`.
    pub surface: &'static str,
    /// Lowest tier at which it may run; `null`: denied.
    pub tier: Option<u8>,
    /// What the enforcement point does.
    pub effect: &'static str,
    /// Its parts in order.
    pub parts: Vec<ExplainedPart>,
}

/// One request of a line.
#[derive(Debug, Serialize)]
pub struct ExplainedPart {
    /// As written.
    pub text: String,
    /// The surface that decides it.
    pub surface: &'static str,
    /// The request that the rules see.
    pub request: String,
    /// What the request assumes beyond its text.
    pub assumes: Vec<String>,
    /// Where it stands in the line, outermost first.
    pub via: Vec<String>,
    /// `whole`: it must be permitted; `restricted`: only rules that restrict it count;
    /// `denied`: only rules that deny it count; `refused`: denied whatever the rules say.
    pub role: &'static str,
    /// Its tier; `null`: denied.
    pub tier: Option<u8>,
    /// What decided.
    pub decided_by: Vec<ExplainedReason>,
    /// Why it is not of a lower tier, as sentences.
    pub not_lower: Vec<String>,
    /// What polctl could not tell, as sentences.
    pub notes: Vec<String>,
}

/// A policy that decided.
#[derive(Debug, Serialize)]
pub struct ExplainedReason {
    /// Cedar policy id.
    pub policy: String,
    /// `permit` or `forbid`.
    pub effect: &'static str,
    /// `SUDO.md:41`; empty for what is built in.
    pub source: String,
    /// The rule's pattern, or what is built in.
    pub rule: String,
    /// The rule's tier.
    pub tier: Option<u8>,
    /// The rule's reason.
    pub why: String,
}

#[derive(Serialize)]
struct Document<'a> {
    polctl: &'static str,
    command: &'static str,
    policy_id: &'a str,
    lines: &'a [ExplainedLine],
}

/// All lines as one JSON document, version 1.
pub fn explain_json(lines: &[ExplainedLine], policy_id: &str) -> String {
    let document = Document { polctl: "v1", command: "explain", policy_id, lines };
    // Strings and numbers: there is nothing that could fail.
    let mut text = serde_json::to_string_pretty(&document).unwrap_or_default();
    text.push('\n');
    text
}

fn tier(tier: Option<u8>) -> String {
    tier.map_or_else(|| "denied".to_owned(), |tier| format!("tier {tier}"))
}

/// A line for people.
pub fn explain_human(line: &ExplainedLine) -> String {
    let mut out = String::new();
    let _ = writeln!(out, "`{}`: {}: {}", visible(&line.line), tier(line.tier), line.effect);
    match &line.cwd {
        _ if line.surface == "egress" => {}
        Some(cwd) => {
            let _ = writeln!(out, "run in `{}`", visible(cwd));
        }
        None => out.push_str("run in a directory that is not known\n"),
    }
    for (at, part) in line.parts.iter().enumerate() {
        out.push('\n');
        let via = if part.via.is_empty() { String::new() } else { format!(" ({})", part.via.join(", ")) };
        let _ = writeln!(out, "{:>3}. {}: {}{}", at + 1, visible(&part.text), tier(part.tier), visible(&via));
        if part.request != part.text {
            let _ = writeln!(out, "     read as `{}` on the surface `{}`", visible(&part.request), part.surface);
        }
        match part.role {
            "restricted" => out.push_str("     only rules that restrict it count\n"),
            "denied" => out.push_str("     only rules that deny it count\n"),
            _ => {}
        }
        for assumed in &part.assumes {
            let _ = writeln!(out, "     {}", visible(assumed));
        }
        for note in &part.notes {
            let _ = writeln!(out, "     note: {}", visible(note));
        }
        for reason in &part.decided_by {
            let place = if reason.source.is_empty() { String::new() } else { format!("{} ", reason.source) };
            let why = if reason.why.is_empty() { String::new() } else { format!(": {}", reason.why) };
            let _ =
                writeln!(out, "     {} {}{}{}", reason.effect, visible(&place), visible(&reason.rule), visible(&why));
        }
        for why in &part.not_lower {
            let _ = writeln!(out, "     {}", visible(why));
        }
    }
    out
}
