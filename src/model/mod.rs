//! Validated values: tiers, patterns, rules, zones, configuration, requests.
//!
//! Nothing here reads text or knows Cedar. A value of this module means what DESIGN 3 says;
//! if it could not, it could not be built.

mod capability;
mod config;
mod credential;
mod egress;
mod facts;
mod glob;
mod path_nfa;
mod pattern;
mod programs;
mod request;
mod retention;
mod rule;
mod sql;
mod tier;
mod zones;

pub use capability::{
    CAPABILITY_RUNGS, CapabilityEntry, CapabilityRequest, Class, GpuMode, Grant, Level, Lifecycle, MAX_SEGMENTS,
    Manifest, PathError, Rate, Retry, RiskTier, Scope, Seconds, Subject, SubjectKind, Subtree, System, Target, homes,
    path_segments,
};
pub use config::{Config, DEFAULT_ALLOWED_ENV, DEFAULT_ENVELOPE, DEFAULT_TRUSTED_DIRS, Provenance};
pub use credential::{BREAK_GLASS_OWNER, Classification, Inventory, InventoryEntry, LastDay};
pub use egress::{EgressPattern, HostPattern, NON_PUBLIC, Scheme, canonical_host, is_non_public, is_within_domain};
pub use facts::{BoolTerm, SetTerm, When};
pub use glob::{Glob, Piece};
pub use pattern::{CommandPattern, Item, MAX_WORDS};
pub use programs::{
    Entry, Escape, Global, Program, ProgramTable, TABLE_STAMP, TableChange, TableError, Wrapper, carries_commands,
    changes, escapes, has_globals, is_interactive, program, program_table, single_dash_long,
};
pub use request::{
    CommandFacts, CommandRequest, EgressFacts, EgressRequest, Facts, Place, Request, Word, option_names,
};
pub use retention::{
    BaselineEntry, HealthFloor, MigrationSource, Period, RetentionClass, RetentionConfig, TableEntry, TableRef, Tool,
};
pub use rule::{Example, Matcher, PolicySet, Rule, SurfaceInfo};
pub use sql::{Act, Change, Column, Mark, MarkKind, NewRelation, Opaque, RelationKind, Script, SqlName, Statement};
pub use tier::{RUNGS, Surface, Tier};
pub use zones::{PathPattern, Transition, ZoneMatcher, Zones};

pub(crate) use path_nfa::{Elsewhere, PathNfa, States};
pub(crate) use programs::{carriers, globals_of_programs, single_dash_programs};
pub(crate) use request::quote;

/// Version of the facts that a request is described by: the built-in program table, the
/// classification of paths and the reading of options. Part of `policy_id`.
pub const FACTS_VERSION: u32 = 2;
