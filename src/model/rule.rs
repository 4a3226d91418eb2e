//! A rule and the set that rules make.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use sha2::{Digest, Sha256};

use super::{CommandPattern, Config, EgressPattern, Inventory, Item, Manifest, Surface, Tier, When};
use crate::source::Span;

/// What a rule is matched by.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Matcher {
    /// For the surfaces commands and sudo.
    Command {
        /// Program and words.
        pattern: CommandPattern,
        /// Each list: at least one of its items is present.
        with: Vec<Vec<Item>>,
        /// No option outside this list.
        only: Option<Vec<Item>>,
        /// None of these.
        unless: Vec<Item>,
        /// Users that the command runs as (sudo); empty when not stated.
        run_as: Vec<String>,
    },
    /// For the surface egress.
    Egress {
        /// Methods, scheme, host, port, path.
        pattern: EgressPattern,
        /// Secrets that the request may carry, sorted.
        secrets: Vec<String>,
    },
}

/// An example that stands beside a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Example {
    /// The command line or request as written.
    pub text: String,
    /// Whether the rule must match it.
    pub matches: bool,
    /// Where it stands.
    pub span: Span,
}

/// One rule of a tier map.
#[derive(Clone, Debug)]
pub struct Rule {
    /// Stated, or derived from the normalised text; unique among the rules of its surface and tier.
    pub id: String,
    /// Surface of its map.
    pub surface: Surface,
    /// Tier of its section.
    pub tier: Tier,
    /// Pattern and conditions on words.
    pub matcher: Matcher,
    /// Conditions on facts.
    pub when: When,
    /// Agents it is about, sorted; all when empty.
    pub agents: Vec<String>,
    /// Machines it is about, sorted; all when empty.
    pub hosts: Vec<String>,
    /// Examples, in order.
    pub examples: Vec<Example>,
    /// Reason, shown with decisions.
    pub why: String,
    /// The pattern's place in the file.
    pub span: Span,
    /// All that was written for it: the list item, the row of the table or the line of the block.
    pub whole: Span,
}

impl Rule {
    /// The one text that says everything that the rule matches by: equal texts, equal rules.
    pub fn normalised(&self) -> String {
        let mut out = String::new();
        let list = |items: &[Item]| items.iter().map(Item::to_string).collect::<Vec<_>>().join(" ");
        match &self.matcher {
            Matcher::Command { pattern, with, only, unless, run_as } => {
                out.push_str(&pattern.to_string());
                for items in with {
                    let _ = write!(out, " with: {}", list(items));
                }
                if let Some(items) = only {
                    let _ = write!(out, " only: {}", list(items));
                }
                if !unless.is_empty() {
                    let _ = write!(out, " unless: {}", list(unless));
                }
                if !run_as.is_empty() {
                    let _ = write!(out, " run as: {}", run_as.join(" "));
                }
            }
            Matcher::Egress { pattern, secrets } => {
                out.push_str(&pattern.to_string());
                if !secrets.is_empty() {
                    let _ = write!(out, " secret: {}", secrets.join(" "));
                }
            }
        }
        if !self.when.is_empty() {
            let _ = write!(out, " when: {}", self.when);
        }
        if !self.agents.is_empty() {
            let _ = write!(out, " agents: {}", self.agents.join(" "));
        }
        if !self.hosts.is_empty() {
            let _ = write!(out, " hosts: {}", self.hosts.join(" "));
        }
        out
    }

    /// The id of a rule that states none: readable head, and a digest of the normalised
    /// text. Position and file are no part of it, so moving a rule is no change.
    pub fn derived_id(&self) -> String {
        let text = self.normalised();
        let mut head = String::new();
        for c in text.split(" with: ").next().unwrap_or("").chars() {
            if c.is_ascii_alphanumeric() {
                head.push(c.to_ascii_lowercase());
            } else if !head.is_empty() && !head.ends_with('-') {
                head.push('-');
            }
            if head.len() >= 24 {
                break;
            }
        }
        let digest = Sha256::digest(text.as_bytes());
        let mut id = head.trim_end_matches('-').to_owned();
        if id.is_empty() {
            id.push_str("rule");
        }
        id.push('-');
        for byte in digest.iter().take(5) {
            let _ = write!(id, "{byte:02x}");
        }
        id
    }

    /// The pattern alone, as text.
    pub fn pattern_text(&self) -> String {
        match &self.matcher {
            Matcher::Command { pattern, .. } => pattern.to_string(),
            Matcher::Egress { pattern, .. } => pattern.to_string(),
        }
    }
}

/// What the files of one surface say together.
#[derive(Clone, Copy, Debug)]
pub struct SurfaceInfo {
    /// Tier of what no rule matches.
    pub unmatched: Tier,
    /// Where the surface is declared (in its first file).
    pub span: Span,
}

/// A whole policy set: configuration, surfaces, rules, guardrails.
#[derive(Clone, Debug)]
pub struct PolicySet {
    /// `polctl.yaml`.
    pub config: Config,
    /// The surfaces that some file covers. A surface that none covers permits nothing.
    pub surfaces: BTreeMap<Surface, SurfaceInfo>,
    /// All rules, in file order.
    pub rules: Vec<Rule>,
    /// Text of the hand-written guardrails with their places, in order of name.
    pub guardrails: Vec<(Span, String)>,
    /// Capability manifests, in order of path.
    pub manifests: Vec<Manifest>,
    /// The credential inventory, where the configuration names one.
    pub inventory: Option<Inventory>,
}
