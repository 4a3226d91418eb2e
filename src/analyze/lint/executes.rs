//! Rules of tiers 0 and 1 whose wildcard reaches what a program executes or writes.
//!
//! The permitting side of such rules already leaves out every option and sub-command that the
//! program table calls harmful and the rule does not name (DESIGN 3.4). What is left is what a
//! program does with a plain operand, which is a script or a target, and what the rule names. Each
//! witness is a line that Cedar lets through at tier 0 or 1.

use std::collections::HashMap;

use super::{AnalyzeError, View, on_behalf_of};
use crate::analyze::sample::words;
use crate::decide::{Decider, Setting, judge};
use crate::diag::{Code, Finding, Level};
use crate::model::{
    CommandPattern, CommandRequest, Glob, Item, Matcher, Program, Request, Rule, Surface, Tier, Word, program,
    program_table,
};

/// Programs whose operands are targets: what these run stands in a file that nobody reads here.
const BUILDERS: [&str; 12] =
    ["ant", "gmake", "gradle", "invoke", "just", "make", "mvn", "ninja", "nox", "rake", "scons", "task"];

/// Sub-commands behind which stands what is run: a script of the project, a program, a package.
const RUNNERS: [&str; 6] = ["dlx", "exec", "run", "run-script", "start", "x"];

/// What the table says of programs that were asked for: to find that it knows one not takes long.
type Known = HashMap<String, Option<&'static Program<'static>>>;

/// What a wildcard reaches.
enum Reach {
    /// A script of an interpreter or a shell.
    Script,
    /// A target of a build program.
    Target,
    /// What a sub-command runs.
    Run(String),
    /// Nothing further: the program gives a shell by itself.
    Shell,
    /// An option that the rule names, with what the table says of it.
    Named(String, &'static str),
}

pub(super) fn lint(view: &View<'_>, out: &mut Vec<Finding>) -> Result<(), AnalyzeError> {
    let mut decider: Option<Decider<'_>> = None;
    let mut known = Known::new();
    for (index, rule) in view.rules().filter(|(_, r)| r.surface == Surface::Commands && r.tier < Tier::UNMATCHED) {
        let Some(permit) = view.permit_of(index, rule) else { continue };
        for (request, reach) in candidates(rule, &mut known) {
            if !permit.holds(&request.facts(view.zones)) {
                continue;
            }
            let decider = decider.get_or_insert_with(|| Decider::new(view.compiled, view.map));
            if let Some(tier) = lets_through(view, decider, &request)? {
                out.push(finding(rule, &request, &reach, tier));
                break;
            }
        }
    }
    Ok(())
}

/// The tier of the line where it is 0 or 1.
fn lets_through(view: &View<'_>, decider: &mut Decider<'_>, request: &Request) -> Result<Option<u8>, AnalyzeError> {
    let Request::Command(command) = request else { return Ok(None) };
    let setting = Setting {
        trusted_dirs: &view.compiled.set.config.trusted_dirs,
        zones: view.zones,
        cwd: None,
        agent: &command.agent,
        host: &command.host,
        external: false,
    };
    let verdict = judge(decider, Surface::Commands, &request.to_line(), &setting)?;
    Ok(verdict.tier.filter(|tier| *tier < Tier::UNMATCHED.number()))
}

fn finding(rule: &Rule, request: &Request, reach: &Reach, tier: u8) -> Finding {
    let name = match request {
        Request::Command(command) => command.program.as_str(),
        Request::Egress(_) => "",
    };
    let (what, help) = match reach {
        Reach::Script => (
            format!("the rule leaves open which script `{name}` executes"),
            "name the scripts in place of the wildcard",
        ),
        Reach::Target => (
            format!("the rule leaves open which target `{name}` runs, and what that does stands in a file"),
            "name the targets: `{test,lint}` in place of the wildcard",
        ),
        Reach::Run(sub) => (
            format!("the rule leaves open what `{name} {sub}` executes"),
            "name what may run in place of the wildcard: `{test,lint}`",
        ),
        Reach::Shell => (format!("`{name}` gives a shell by itself"), "take a program that only prints"),
        Reach::Named(option, reason) => (
            format!("the rule names `{option}`, which {reason}"),
            "leave the option out, or write its value without a wildcard",
        ),
    };
    let message = format!("`{}` runs at tier {tier}: {what}", request.to_line());
    let mut finding = Finding::new(Code::EXECUTES, rule.span, message)
        .help(format!("{help}, or put the rule at tier 2, where it runs in a sandbox first"));
    if !rule.why.is_empty() {
        // Somebody thought about it.
        finding.level = Level::Note;
    }
    finding
}

/// Requests that would show it, most telling first.
fn candidates(rule: &Rule, known: &mut Known) -> Vec<(Request, Reach)> {
    let Matcher::Command { pattern, .. } = &rule.matcher else { return Vec::new() };
    let Some(Request::Command(plain)) = words(rule, false).map(|request| on_behalf_of(rule, request)) else {
        return Vec::new();
    };
    let mut out = Vec::new();
    for name in programs(pattern) {
        let known = *known.entry(name.to_owned()).or_insert_with(|| program(name));
        if known.is_none() && !BUILDERS.contains(&name) {
            continue;
        }
        let mut base = plain.clone();
        name.clone_into(&mut base.program);
        of_operand(pattern, known, &base, &mut out);
        out.extend(known.into_iter().flat_map(|known| of_options(rule, known, &base)));
    }
    out
}

/// The programs that a pattern names, or that its wildcards reach in the table.
fn programs(pattern: &CommandPattern) -> Vec<&str> {
    pattern.literal_programs().unwrap_or_else(|| {
        let reached = |name: &&str| pattern.programs.iter().any(|glob| glob.matches(name));
        program_table().names().filter(reached).collect()
    })
}

/// What an operand that the pattern leaves open is to the program.
fn of_operand(
    pattern: &CommandPattern,
    known: Option<&Program<'_>>,
    base: &CommandRequest,
    out: &mut Vec<(Request, Reach)>,
) {
    let name = base.program.as_str();
    let mut with_operand = base.clone();
    if pattern.rest {
        with_operand.words.push(Word::Known("x".into()));
    }
    let mut add = |reach| out.push((Request::Command(with_operand.clone()), reach));
    let sub =
        pattern.words.first().and_then(|globs| globs.iter().filter_map(Glob::as_literal).find(|w| RUNNERS.contains(w)));
    match (known, sub) {
        (Some(_), Some(sub)) if operand_is_open(pattern, 1) => add(Reach::Run(sub.to_owned())),
        _ if BUILDERS.contains(&name) && operand_is_open(pattern, 0) => add(Reach::Target),
        (Some(known), _) if (known.interpreter || known.shell) && operand_is_open(pattern, 0) => add(Reach::Script),
        (Some(known), _) if known.interactive && is_open(pattern) => add(Reach::Shell),
        _ => {}
    }
}

/// Options that a rule of tier 0 names, and that write or execute.
fn of_options(rule: &Rule, known: &Program<'static>, base: &CommandRequest) -> Vec<(Request, Reach)> {
    let Matcher::Command { pattern, with, only, .. } = &rule.matcher else { return Vec::new() };
    if rule.tier.number() > 0 || !is_open(pattern) {
        return Vec::new();
    }
    let texts: Vec<Option<&str>> = base.words.iter().map(text).collect();
    let hazards: Vec<_> = known.entries(&texts).into_iter().flat_map(|entry| &entry.hazards).collect();
    let written = texts.iter().flatten().map(|text| (*text).to_owned());
    let named = with.iter().flatten().chain(only.iter().flatten()).map(Item::to_string).chain(written);
    named
        .filter_map(|option| {
            let (_, reason) = hazards.iter().find(|(options, _)| options.contains(&option.as_str()))?;
            let mut request = base.clone();
            if !texts.contains(&Some(option.as_str())) {
                request.words.push(Word::Known(option.clone()));
            }
            if pattern.rest {
                request.words.push(Word::Known("x".into()));
            }
            Some((Request::Command(request), Reach::Named(option, reason)))
        })
        .collect()
}

fn text(word: &Word) -> Option<&str> {
    match word {
        Word::Known(text) => Some(text),
        _ => None,
    }
}

/// Whether any word is left open.
fn is_open(pattern: &CommandPattern) -> bool {
    pattern.rest || pattern.words.iter().flatten().any(|glob| glob.as_literal().is_none())
}

/// Whether the first operand behind so many words is left open. What begins with a dash is none.
fn operand_is_open(pattern: &CommandPattern, skip: usize) -> bool {
    for globs in pattern.words.iter().skip(skip) {
        if globs.iter().any(|glob| glob.as_literal().is_none()) {
            return true;
        }
        if globs.iter().filter_map(Glob::as_literal).any(|text| !text.starts_with('-')) {
            return false;
        }
    }
    pattern.rest
}

#[cfg(test)]
mod tests {
    use super::super::testing::Set;
    use crate::diag::{Finding, Level};

    fn found(body: &str) -> Vec<Finding> {
        let found = Set::new().map("a.md", "commands", body).lint();
        found.into_iter().filter(|f| f.code.as_str() == "executes").collect()
    }

    #[test]
    fn a_wildcard_that_reaches_what_runs_is_shown_with_a_line() {
        for (body, line) in [
            ("## Tier 0\n- `python3 **`", "`python3 x` runs at tier 0"),
            ("## Tier 1\n- `node scripts/*`", "`node scripts/x` runs at tier 1"),
            ("## Tier 1\n- `make **`", "`make x` runs at tier 1"),
            ("## Tier 1\n- `npm run *`", "`npm run x` runs at tier 1"),
            ("## Tier 0\n- `{cat,vim} *`", "`vim x` runs at tier 0"),
            ("## Tier 0\n- `sort **`\n  - only: `-n`, `-o`", "`sort -o x` runs at tier 0"),
            ("## Tier 1\n- `python3 *`\n  - agents: a", "`python3 x` runs at tier 1"),
        ] {
            let found = found(body);
            assert!(found.len() == 1 && found[0].message.starts_with(line), "{body}\n{found:?}");
        }
    }

    #[test]
    fn what_the_table_keeps_out_anyway_is_no_finding() {
        for body in [
            "## Tier 0\n- `find **`",
            "## Tier 0\n- `git **`",
            "## Tier 0\n- `env **`",
            "## Tier 0\n- `xargs **`",
            "## Tier 0\n- `npm **`",
            "## Tier 0\n- `sort **`",
            // The script and the target are named, or nothing is left open.
            "## Tier 0\n- `python3 report.py **`",
            "## Tier 0\n- `python3 --version`",
            "## Tier 1\n- `make {test,lint}`",
            "## Tier 1\n- `npm run {test,lint}`",
            "## Tier 1\n- `npm run test **`",
            // A sandbox comes first, or a stricter rule stops it.
            "## Tier 2\n- `python3 **`",
            "## Tier 1\n- `python3 **`\n## Tier 3\n- `python3 **`\n  - unless: `--version`",
        ] {
            assert!(found(body).is_empty(), "{body}\n{:?}", found(body));
        }
    }

    #[test]
    fn a_reason_makes_it_a_note() {
        assert_eq!(found("## Tier 1\n- `make *`")[0].level, Level::Warning);
        assert_eq!(found("## Tier 1\n- `make *`\n  - why: the Makefile is reviewed")[0].level, Level::Note);
    }
}
