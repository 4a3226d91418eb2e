//! Printing policies as Cedar text that a reviewer can read.

use std::fmt::Write as _;
use std::net::IpAddr;

use ipnet::IpNet;

use cedar_policy::PolicyId;

use super::expr::{Address, Atom, Expr, Flag, SetAttr};
use super::{Compiled, Effect, Policy};
use crate::model::{CommandRequest, Glob, Piece, Surface};
use crate::source::SourceMap;

/// Why compiled text is not what it should be: always a defect of polctl, never of the input.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
#[non_exhaustive]
pub enum CompileError {
    /// Cedar does not parse a generated text.
    #[error("the generated Cedar for `{what}` does not parse")]
    #[diagnostic(help("this is a defect of polctl; please report it with the rule"))]
    Parse {
        /// Policy id or `schema`.
        what: String,
        /// What Cedar says.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// Strict validation refuses a generated policy.
    #[error("the generated Cedar does not pass strict validation: {message}")]
    #[diagnostic(help("this is a defect of polctl; please report it with the rule"))]
    Validation {
        /// What the validator says.
        message: String,
    },
    /// A request cannot be put to Cedar.
    #[error("a request cannot be put to Cedar: {message}")]
    #[diagnostic(help("this is a defect of polctl; please report it"))]
    Request {
        /// What Cedar says.
        message: String,
    },
}

/// One policy as text, with what an index says of it.
#[derive(Clone, Debug)]
pub struct PolicyText {
    /// Cedar policy id, equal to its `@id`.
    pub id: String,
    /// The whole policy with annotations.
    pub text: String,
}

impl PolicyText {
    /// Parses the text under its id.
    ///
    /// # Errors
    ///
    /// [`CompileError::Parse`], a defect.
    pub fn parse(&self) -> Result<cedar_policy::Policy, CompileError> {
        cedar_policy::Policy::parse(Some(PolicyId::new(&self.id)), &self.text)
            .map_err(|e| CompileError::Parse { what: self.id.clone(), source: Box::new(e) })
    }
}

/// A policy with its annotations, so that every decision leads back to a line.
pub fn render(compiled: &Compiled, policy: &Policy, map: &SourceMap) -> PolicyText {
    let mut text = String::new();
    let mut annotate = |name: &str, value: &str| {
        let _ = writeln!(text, "@{name}({})", string(value));
    };
    annotate("id", &policy.id);
    if let Some(rule) = compiled.rule_of(policy) {
        let place = map
            .get(rule.span.file)
            .map_or_else(String::new, |file| format!("{}:{}", file.name, file.position(rule.span.start).0));
        annotate("source", &place);
        annotate("rule", &rule.pattern_text());
        annotate("tier", &rule.tier.to_string());
        if !rule.why.is_empty() {
            annotate("why", &rule.why);
        }
    } else {
        annotate("source", "built-in");
    }
    text.push_str(&body(policy));
    PolicyText { id: policy.id.clone(), text }
}

/// Effect, scope and conditions: everything that decides.
pub(super) fn body(policy: &Policy) -> String {
    let mut out = String::new();
    let namespace = policy.surface.namespace();
    let effect = match policy.effect {
        Effect::Permit => "permit",
        Effect::Forbid => "forbid",
    };
    let actions: Vec<String> =
        policy.rungs.clone().map(|rung| format!("{namespace}::Action::\"tier{rung}\"")).collect();
    let scope = match actions.as_slice() {
        [action] => format!("action == {action}"),
        actions => format!("action in [{}]", actions.join(", ")),
    };
    let _ = write!(out, "{effect} (principal, {scope}, resource)");
    for clause in &policy.clauses {
        out.push_str("\nwhen {\n  ");
        match clause {
            Expr::All(parts) => {
                let parts: Vec<String> = parts.iter().map(|p| print(p, policy.surface, Level::And)).collect();
                out.push_str(&parts.join(" &&\n  "));
            }
            other => out.push_str(&print(other, policy.surface, Level::Top)),
        }
        out.push_str("\n}");
    }
    out.push_str(";\n");
    out
}

/// How tightly the surroundings bind.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Level {
    Top,
    Or,
    And,
    Unary,
}

fn print(expr: &Expr, surface: Surface, level: Level) -> String {
    let group = |text: String, own: Level| if own < level { format!("({text})") } else { text };
    match expr {
        Expr::All(parts) if parts.is_empty() => "true".into(),
        Expr::One(parts) if parts.is_empty() => "false".into(),
        Expr::All(parts) => {
            let parts: Vec<String> = parts.iter().map(|p| print(p, surface, Level::And)).collect();
            group(parts.join(" && "), Level::And)
        }
        Expr::One(parts) => {
            let parts: Vec<String> = parts.iter().map(|p| print(p, surface, Level::Or)).collect();
            group(parts.join(" || "), Level::Or)
        }
        Expr::Not(inner) => format!("!{}", print(inner, surface, Level::Unary)),
        Expr::Atom(atom) => {
            let (text, own) = atom_text(atom, surface);
            group(text, own)
        }
    }
}

/// The text of an atom, and how tightly it binds.
fn atom_text(atom: &Atom, surface: Surface) -> (String, Level) {
    let word = if surface == Surface::Egress { "seg" } else { "arg" };
    let unary = |text: String| (text, Level::Unary);
    match atom {
        Atom::Agent(names) => entities("principal", "Agent", names, surface),
        Atom::Machine(names) => entities("resource", "Host", names, surface),
        Atom::Flag(flag) => unary(format!("context.{}", flag_name(*flag))),
        Atom::Program(globs) => matches_one("context.program", globs),
        Atom::RunAs(users) => equals_one("context.run_as", users),
        Atom::Word(position, globs) => {
            let (inner, level) = matches_one(&format!("context.{word}{position}"), globs);
            let inner = if level < Level::And { format!("({inner})") } else { inner };
            (format!("context has {word}{position} && {inner}"), Level::And)
        }
        Atom::WordUnknown(position) => unary(format!("context.unknown.contains({position})")),
        Atom::AllKnown => unary("context.unknown.isEmpty()".into()),
        Atom::CountIs(n) => (format!("context.{word}c == {n}"), Level::And),
        Atom::CountAtLeast(n) => (format!("context.{word}c >= {n}"), Level::And),
        Atom::Anywhere(globs) => {
            let tests: Vec<String> =
                globs.iter().map(|g| format!("context.line like {}", anywhere_pattern(g))).collect();
            (tests.join(" || "), if tests.len() > 1 { Level::Or } else { Level::And })
        }
        Atom::HasAny(set, names) => unary(match names.as_slice() {
            [name] => format!("context.{}.contains({})", set_name(*set), string(name)),
            names => format!("context.{}.containsAny({})", set_name(*set), strings(names)),
        }),
        Atom::Within(set, names) => unary(format!("{}.containsAll(context.{})", strings(names), set_name(*set))),
        Atom::Empty(set) => unary(format!("context.{}.isEmpty()", set_name(*set))),
        Atom::Method(names) => equals_one("context.method", names),
        Atom::Scheme(scheme) => equals_one("context.scheme", &[scheme.name().to_owned()]),
        Atom::HostName(globs) => matches_one("context.host", globs),
        Atom::Port(port) => (format!("context.port == {port}"), Level::And),
        Atom::InNetwork(which, nets) => {
            let name = match which {
                Address::Host => "address",
                Address::Peer => "peer",
            };
            (in_networks(name, nets).join(" && "), Level::And)
        }
    }
}

fn entities(slot: &str, kind: &str, names: &[String], surface: Surface) -> (String, Level) {
    let namespace = surface.namespace();
    let names: Vec<String> = names.iter().map(|n| format!("{namespace}::{kind}::{}", string(n))).collect();
    match names.as_slice() {
        [name] => (format!("{slot} == {name}"), Level::And),
        names => (format!("{slot} in [{}]", names.join(", ")), Level::And),
    }
}

fn equals_one(attribute: &str, values: &[String]) -> (String, Level) {
    match values {
        [value] => (format!("{attribute} == {}", string(value)), Level::And),
        values => (format!("{}.contains({attribute})", strings(values)), Level::Unary),
    }
}

fn matches_one(attribute: &str, globs: &[Glob]) -> (String, Level) {
    let literals: Vec<String> = globs.iter().filter_map(Glob::as_literal).map(str::to_owned).collect();
    let mut tests = Vec::new();
    let mut level = Level::And;
    if !literals.is_empty() {
        let (text, own) = equals_one(attribute, &literals);
        tests.push(text);
        level = own;
    }
    for glob in globs.iter().filter(|g| g.as_literal().is_none()) {
        tests.push(format!("{attribute} like {}", pattern(glob)));
        level = Level::And;
    }
    if tests.len() > 1 {
        level = Level::Or;
    }
    (tests.join(" || "), level)
}

const fn flag_name(flag: Flag) -> &'static str {
    match flag {
        Flag::Trusted => "trusted",
        Flag::Harmless => "harmless",
        Flag::Dynamic => "dynamic",
        Flag::External => "external",
        Flag::Open => "open",
        Flag::Many => "many",
        Flag::Covered => "covered",
    }
}

const fn set_name(set: SetAttr) -> &'static str {
    match set {
        SetAttr::Options => "options",
        SetAttr::Certain => "certain",
        SetAttr::Globals => "globals",
        SetAttr::Writes => "writes",
        SetAttr::Names => "names",
        SetAttr::Env => "env",
        SetAttr::Wrappers => "wrappers",
        SetAttr::Secrets => "secrets",
    }
}

fn strings(values: &[String]) -> String {
    let values: Vec<String> = values.iter().map(|v| string(v)).collect();
    format!("[{}]", values.join(", "))
}

fn escape_into(out: &mut String, text: &str, star: bool) {
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '*' if star => out.push_str("\\*"),
            c if c.is_control() => {
                let _ = write!(out, "\\u{{{:x}}}", u32::from(c));
            }
            c => out.push(c),
        }
    }
}

/// An address as Cedar's `ip` reads it: no IPv4 notation inside an IPv6 address.
pub(crate) fn cedar_address(address: IpAddr) -> String {
    match address {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => address.segments().map(|s| format!("{s:x}")).join(":"),
    }
}

/// That an address of the context is there, and that it is in one of these networks: both must hold.
pub(super) fn in_networks(name: &str, nets: &[IpNet]) -> [String; 2] {
    let tests: Vec<String> = nets
        .iter()
        .map(|n| format!("context.{name}.isInRange(ip(\"{}/{}\"))", cedar_address(n.network()), n.prefix_len()))
        .collect();
    let inner = if tests.len() > 1 { format!("({})", tests.join(" || ")) } else { tests.join("") };
    [format!("context has {name}"), inner]
}

/// A Cedar string literal.
pub(super) fn string(text: &str) -> String {
    let mut out = String::from("\"");
    escape_into(&mut out, text, false);
    out.push('"');
    out
}

/// A Cedar `like` pattern for the whole text.
pub(super) fn pattern(glob: &Glob) -> String {
    let mut out = String::from("\"");
    for piece in glob.pieces() {
        match piece {
            Piece::Any => out.push('*'),
            Piece::Text(text) => escape_into(&mut out, text, true),
        }
    }
    out.push('"');
    out
}

/// A Cedar `like` pattern for one word of `line`. Exact, since the separators around a word
/// fix its ends, and a wildcard stands only where one of them is missing.
fn anywhere_pattern(glob: &Glob) -> String {
    let separator = CommandRequest::SEPARATOR.to_string();
    let mut out = String::from("\"*");
    if glob.pieces().first() != Some(&Piece::Any) {
        escape_into(&mut out, &separator, true);
    }
    for piece in glob.pieces() {
        if let Piece::Text(text) = piece {
            escape_into(&mut out, text, true);
        }
    }
    if glob.pieces().last() != Some(&Piece::Any) {
        escape_into(&mut out, &separator, true);
    }
    out.push_str("*\"");
    out
}
