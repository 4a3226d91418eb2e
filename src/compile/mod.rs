//! Model → Cedar: policies, schema, `policy_id` (DESIGN 5).
//!
//! A rule becomes at most three [`Policy`] values: permits at its rungs and above under its
//! narrow reading, and a forbid below them under its broad reading. Built-in guardrails and
//! `unmatched` become policies too. The same input always gives the same bytes.

mod bundle;
mod capability;
mod cedar;
mod commands;
mod egress;
mod expr;
mod fragment;
mod guardrails;
mod implies;
mod index;
mod plain;
mod schema;

pub use bundle::{BUNDLE_MAGIC, BUNDLE_NAME, BundleHead, KeyLine, MAX_BUNDLE, PolicyLine, bundle, sha256_hex};
pub use capability::{
    CAPABILITIES, CapabilityAtom, CapabilityOrigin, CapabilityPolicy, Condition, Fact, Text, action_name,
    capability_policies, capability_schema, capability_text, declared, policies_of, template_text,
};
pub(crate) use capability::{cedar_time, request_path, request_text};
pub(crate) use cedar::cedar_address;
pub use cedar::{CompileError, PolicyText, render};
pub use expr::{Address, Atom, Expr, Flag, SetAttr};
pub use guardrails::{Guardrail, parse_guardrails};
pub use index::{Keys, Lookup, PolicyIndex};
pub use plain::{
    Plain, PlainPolicy, PlainReader, PlainTemplate, PlainTexts, SchemaChange, joined, new_members, now_optional,
    schema_changes, statements,
};
pub use schema::{schema_of, schema_text};

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use sha2::{Digest, Sha256};

use self::commands::{CommandRule, Reading};
use crate::model::{
    FACTS_VERSION, Glob, Grant, HostPattern, Matcher, PolicySet, Provenance, RUNGS, Rule, Surface, carriers, program,
    program_table,
};

/// Permit or forbid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Effect {
    /// `permit`
    Permit,
    /// `forbid`
    Forbid,
}

/// Where a policy comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Origin {
    /// The rule at this index of the set.
    Rule(usize),
    /// The surface's `unmatched`.
    Unmatched,
    /// The guardrail on inputs from outside the session.
    Provenance,
    /// The guardrail on addresses that are not public.
    NonPublic,
    /// What carries a command that is a request of its own needs no rule.
    Covered,
    /// The hand-written guardrail at this index.
    Guardrail(usize),
}

/// One generated policy.
#[derive(Clone, Debug)]
pub struct Policy {
    /// Cedar policy id.
    pub id: String,
    /// Its surface.
    pub surface: Surface,
    /// Permit or forbid.
    pub effect: Effect,
    /// The rungs (actions) that it is about.
    pub rungs: Range<u8>,
    /// Groups of conditions, each a `when` clause; all must hold.
    pub clauses: Vec<Expr>,
    /// Where it comes from.
    pub origin: Origin,
    /// The programs or domains that it can be about, when its condition names them.
    pub keys: Option<Keys>,
}

impl Policy {
    /// Whether polctl generates it; else it stands for a guardrail that is written by hand.
    pub const fn is_generated(&self) -> bool {
        !matches!(self.origin, Origin::Guardrail(_))
    }

    /// Whether two conditions of these policies exclude each other by their shape alone.
    pub fn contradict(these: &[&Policy]) -> bool {
        let parts: Vec<&Expr> = these
            .iter()
            .flat_map(|policy| &policy.clauses)
            .flat_map(|clause| match clause {
                Expr::All(parts) => parts.iter().collect(),
                other => vec![other],
            })
            .collect();
        parts.iter().any(|part| match part {
            Expr::Not(inner) => parts.iter().any(|other| other.implies(inner)),
            _ => false,
        })
    }

    /// Whether it surely holds wherever all of `these` do, by their shape alone.
    pub fn follows_from(&self, these: &[&Policy]) -> bool {
        self.clauses.iter().all(|clause| match clause {
            Expr::All(parts) => parts
                .iter()
                .all(|part| these.iter().any(|policy| policy.clauses.iter().any(|condition| condition.implies(part)))),
            other => these.iter().any(|policy| policy.clauses.iter().any(|condition| condition.implies(other))),
        })
    }

    /// Whether the policy holds for these facts.
    pub fn holds(&self, facts: &crate::model::Facts) -> bool {
        self.clauses.iter().all(|clause| clause.holds(facts))
    }
}

/// A compiled policy set.
#[derive(Clone, Debug)]
pub struct Compiled {
    /// The set that it was compiled from.
    pub set: PolicySet,
    /// All policies, in order of surface, rule and effect; behind them guardrails as far as
    /// they can be said in conditions, which only the analysis reads.
    pub policies: Vec<Policy>,
    /// Policies about capabilities, guardrails first, then in order of manifest.
    pub capabilities: Vec<CapabilityPolicy>,
    /// Hand-written guardrails, in order of file.
    pub guardrails: Vec<Guardrail>,
    /// Guardrails that say on a surface what the exact engine cannot search: by position.
    pub opaque: Vec<(Surface, usize)>,
}

/// Compiles a set. Guardrails must have been parsed by [`parse_guardrails`].
pub fn compile(set: PolicySet, guardrails: Vec<Guardrail>) -> Compiled {
    let mut policies = Vec::new();
    let mut seen = BTreeSet::new();
    for surface in set.surfaces.keys() {
        built_in(&set, *surface, &mut policies);
    }
    for (index, rule) in set.rules.iter().enumerate() {
        // The same rule twice at one tier is one policy; the analysis reports it.
        if seen.insert((rule.surface, rule.tier, rule.normalised())) {
            policies.extend(rule_policies(&set, index, rule));
        }
    }
    let capabilities = capability_policies(&set);
    let mut opaque = Vec::new();
    for (index, guardrail) in guardrails.iter().enumerate() {
        for (surface, forbids) in fragment::translate(&set, index, guardrail) {
            match forbids {
                Some(forbids) => policies.extend(forbids),
                None => opaque.push((surface, index)),
            }
        }
    }
    Compiled { set, policies, capabilities, guardrails, opaque }
}

fn built_in(set: &PolicySet, surface: Surface, out: &mut Vec<Policy>) {
    let mut push = |name: &str, effect, rungs: Range<u8>, clauses, origin| {
        if !rungs.is_empty() {
            // It need not be looked at for requests that carry nothing.
            let keys = (origin == Origin::Covered).then(Keys::covered);
            out.push(Policy { id: format!("{surface}/{name}"), surface, effect, rungs, clauses, origin, keys });
        }
    };
    if surface != Surface::Egress {
        push("covered", Effect::Permit, 0..RUNGS, vec![covered()], Origin::Covered);
    }
    if let Some(info) = set.surfaces.get(&surface) {
        push("unmatched", Effect::Permit, info.unmatched.allowing_rungs(), Vec::new(), Origin::Unmatched);
    }
    if set.config.provenance == Provenance::Enforce {
        let external = Atom::Flag(Flag::External).into();
        push("provenance", Effect::Forbid, 0..2, vec![external], Origin::Provenance);
    }
    if surface == Surface::Egress {
        push("non-public", Effect::Forbid, 0..RUNGS, vec![egress::non_public()], Origin::NonPublic);
    }
}

/// What only carries a command: a program, or a program with its sub-command, that the table
/// knows to run what its words hold.
fn covered() -> Expr {
    let (mut whole, mut parts) = (Vec::new(), Vec::new());
    for name in carriers() {
        let Some(program) = program(name) else { continue };
        if program.shell || program.entry.carries() {
            whole.push(Glob::literal(name));
            continue;
        }
        for (path, _) in program.subs.iter().filter(|(_, entry)| entry.carries()) {
            let words = path.iter().enumerate().map(|(at, word)| Atom::Word(at + 1, vec![Glob::literal(word)]).into());
            let named = std::iter::once(Atom::Program(vec![Glob::literal(name)]).into());
            parts.push(Expr::All(named.chain(words).collect()));
        }
    }
    parts.insert(0, Atom::Program(whole).into());
    Expr::All(vec![Atom::Flag(Flag::Covered).into(), Expr::one(parts)])
}

/// What a rule names, for the index.
fn keys(rule: &Rule) -> Option<Keys> {
    match &rule.matcher {
        Matcher::Command { pattern, .. } => Some(Keys {
            names: pattern.literal_programs()?.into_iter().map(str::to_owned).collect(),
            words: first_words(pattern),
        }),
        Matcher::Egress { pattern, .. } => match &pattern.host {
            HostPattern::Exact(host) | HostPattern::SubDomains(host) | HostPattern::DomainTree(host) => {
                Some(Keys { names: vec![host.clone()], words: None })
            }
            HostPattern::Network(_) => None,
        },
    }
}

/// The first words that a pattern allows, when it lists them, as requests hold them.
fn first_words(pattern: &crate::model::CommandPattern) -> Option<Vec<String>> {
    let globs = pattern.words.first()?;
    let mut words: Vec<String> = globs.iter().map(|g| g.as_literal().map(str::to_owned)).collect::<Option<_>>()?;
    for program in pattern.literal_programs().into_iter().flatten().filter_map(program) {
        for word in globs.iter().filter_map(Glob::as_literal) {
            words.push(program.canonical_sub(word).to_owned());
            if program.abbreviates {
                words
                    .extend(word.char_indices().filter_map(|(at, c)| word.get(..at + c.len_utf8())).map(str::to_owned));
            }
            if program.entry.bundle {
                words.push(format!("-{word}"));
            }
        }
    }
    words.sort();
    words.dedup();
    Some(words)
}

/// The policies of one rule.
fn rule_policies(set: &PolicySet, index: usize, rule: &Rule) -> Vec<Policy> {
    let keys = keys(rule);
    let policy = |name: &str, effect, rungs: Range<u8>, clauses: Vec<Vec<Expr>>| Policy {
        id: format!("{}/{}/tier{}/{name}", rule.surface, rule.id, rule.tier),
        surface: rule.surface,
        effect,
        rungs,
        clauses: clauses.into_iter().filter(|c| !c.is_empty()).map(Expr::All).collect(),
        origin: Origin::Rule(index),
        keys: keys.clone(),
    };
    let mut out = Vec::new();
    let (allow, deny) = (rule.tier.allowing_rungs(), rule.tier.forbidding_rungs());
    match &rule.matcher {
        Matcher::Command { pattern, with, only, unless, run_as } => {
            let parts = CommandRule { rule, pattern, with, only: only.as_deref(), unless, run_as };
            if let Some(when) = commands::when_permits(&rule.when).filter(|_| !allow.is_empty()) {
                let narrow = |inspect_only| {
                    let mut conditions = when.clone();
                    conditions.extend(parts.subjects(Reading::Narrow));
                    vec![
                        parts.words(Reading::Narrow),
                        commands::sure(),
                        conditions,
                        commands::guards(rule, &set.config, inspect_only),
                    ]
                };
                if rule.tier.number() == 0 && rule.when.writes.is_none() {
                    out.push(policy("permit-inspect", Effect::Permit, 0..1, narrow(true)));
                    out.push(policy("permit", Effect::Permit, 1..RUNGS, narrow(false)));
                } else {
                    out.push(policy("permit", Effect::Permit, allow, narrow(false)));
                }
            }
            if !deny.is_empty() {
                let mut conditions = commands::when_forbids(&rule.when);
                conditions.extend(parts.subjects(Reading::Broad));
                out.push(policy("forbid", Effect::Forbid, deny, vec![parts.words(Reading::Broad), conditions]));
            }
        }
        Matcher::Egress { pattern, secrets } => {
            let condition = |reading| vec![egress::condition(rule, pattern, secrets, reading)];
            if !allow.is_empty() {
                out.push(policy("permit", Effect::Permit, allow, condition(Reading::Narrow)));
            }
            if !deny.is_empty() {
                out.push(policy("forbid", Effect::Forbid, deny, condition(Reading::Broad)));
            }
        }
    }
    out
}

impl Compiled {
    /// The policies that polctl generates: what is printed, hashed and asked. Guardrails are
    /// asked as they are written.
    pub fn generated(&self) -> impl Iterator<Item = &Policy> {
        self.policies.iter().filter(|p| p.is_generated())
    }

    /// The rule that a policy comes from.
    pub fn rule_of(&self, policy: &Policy) -> Option<&Rule> {
        match policy.origin {
            Origin::Rule(index) => self.set.rules.get(index),
            _ => None,
        }
    }

    /// SHA-256 over everything that decides: facts version, schema, what facts depend on, and
    /// every policy without its place and reason, in order of id. Editing prose or moving a
    /// rule does not change it.
    pub fn policy_id(&self) -> String {
        let mut hash = Sha256::new();
        let mut feed = |text: &str| {
            hash.update((text.len() as u64).to_be_bytes());
            hash.update(text.as_bytes());
        };
        feed("polctl policy set v1");
        feed(&FACTS_VERSION.to_string());
        feed(program_table().text());
        feed(&schema_of(&self.set));
        // Each list begins with its length, so that nothing can pass from one to the next.
        let zones = &self.set.config.zones;
        feed(&zones.names().count().to_string());
        for zone in zones.names() {
            let patterns: Vec<String> =
                zones.get(zone).map(|(p, _)| p).into_iter().flatten().map(ToString::to_string).collect();
            feed(zone);
            feed(&patterns.len().to_string());
            patterns.iter().for_each(|pattern| feed(pattern));
        }
        feed(&self.set.config.trusted_dirs.len().to_string());
        for dir in &self.set.config.trusted_dirs {
            feed(dir);
        }
        feed(&self.generated().count().to_string());
        let texts: BTreeMap<&str, String> = self.generated().map(|p| (p.id.as_str(), cedar::body(p))).collect();
        for (id, text) in texts {
            feed(id);
            feed(&text);
        }
        for guardrail in &self.guardrails {
            feed(&guardrail.meaning);
        }
        // A set without manifests is what it was before there were any.
        if !self.set.manifests.is_empty() {
            feed(&self.capabilities.len().to_string());
            let texts: BTreeMap<&str, String> =
                self.capabilities.iter().map(|p| (p.id.as_str(), capability::meaning(p))).collect();
            for (id, text) in texts {
                feed(id);
                feed(&text);
            }
            // What is no request, and binds the gateway all the same.
            for manifest in &self.set.manifests {
                feed(&manifest.subject.to_string());
                feed(&format!("{:?}", manifest.parent.as_ref().map(|(path, _)| path)));
                feed(&format!(
                    "{:?}",
                    (manifest.administrative.is_some(), manifest.external, &manifest.declares.keys())
                ));
                for grant in manifest.grants.values() {
                    let Grant { capability, ttl, staleness, retry, deferrable, rate, max_pending, .. } = grant;
                    feed(&format!("{:?}", (capability, ttl, staleness, retry, deferrable, rate, max_pending)));
                }
            }
        }
        let digest = hash.finalize();
        digest.iter().map(|b| format!("{b:02x}")).collect()
    }
}
