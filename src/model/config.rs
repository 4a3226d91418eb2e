//! `polctl.yaml`, validated (DESIGN 2).

use std::collections::BTreeMap;

use super::Zones;
use crate::diag::{Code, Level};
use crate::source::{FileId, Span};

/// Directories whose programs are the ones that rules mean, when the configuration names none.
pub const DEFAULT_TRUSTED_DIRS: [&str; 5] = ["/usr/bin", "/bin", "/usr/local/bin", "/usr/sbin", "/sbin"];

/// Environment variables that a command of tier 0 or 1 may set, when the configuration
/// names none: they change language and colour, not what runs.
pub const DEFAULT_ALLOWED_ENV: [&str; 4] = ["LANG", "LC_ALL", "NO_COLOR", "TZ"];

/// Name of the envelope in the policy directory, when the configuration names none.
pub const DEFAULT_ENVELOPE: &str = "polctl.sig.json";

/// The built-in guardrail on requests whose inputs come from outside the session (DESIGN 3.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Provenance {
    /// Such a request is forbidden at rungs 0 and 1.
    Enforce,
    /// Switched off.
    Off,
}

/// The configuration of a policy set.
#[derive(Clone, Debug)]
pub struct Config {
    /// `polctl.yaml` itself.
    pub file: FileId,
    /// Identity of the set.
    pub set: String,
    /// Tier maps in order.
    pub policies: Vec<(String, Span)>,
    /// Guardrail globs in order.
    pub guardrails: Vec<(String, Span)>,
    /// Manifest globs in order.
    pub manifests: Vec<(String, Span)>,
    /// Path regions.
    pub zones: Zones,
    /// Trusted directories, sorted, without a trailing slash.
    pub trusted_dirs: Vec<String>,
    /// Where `trusted_dirs` stands, or the whole file's start.
    pub trusted_dirs_span: Span,
    /// Environment variables free at tiers 0 and 1, sorted.
    pub allowed_env: Vec<String>,
    /// Where `allowed_env` stands, or the whole file's start.
    pub allowed_env_span: Span,
    /// The provenance guardrail.
    pub provenance: Provenance,
    /// Where `provenance` stands, or the whole file's start.
    pub provenance_span: Span,
    /// Name of the envelope in the policy directory (`signing.envelope`).
    pub envelope: String,
    /// The credential inventory (`census.inventory`) and where it is named.
    pub inventory: Option<(String, Span)>,
    /// Path of `retention.yaml`, where the set names one.
    pub retention: Option<(String, Span)>,
    /// Raised levels.
    pub levels: BTreeMap<Code, Level>,
}
