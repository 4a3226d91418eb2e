//! Rules of other tools → rows of our tier maps, with the origin of each and what was lost.
//!
//! Owns the reading of each foreign format: the text into that format's own small model with
//! spans, and that model into rows. It knows no Cedar and does no I/O. The promise of every
//! format here is the same: **never wider than the source**. An allowance that our patterns cannot
//! say exactly becomes narrower or is left out, a restriction becomes broader, and each time a
//! [`Note`] says which way it erred and where.

mod claude;
mod codex;
mod cursor;
mod egress;
mod gemini;
mod json;
mod opencode;
mod ordered;
mod prose;
mod rows;
mod starlark;
mod sudoers;
mod text;
mod toml;
mod write;

use std::collections::BTreeMap;

use crate::diag::{Code, Finding};
use crate::model::{Matcher, Surface, Tier, When};
use crate::source::{FileId, SourceMap, Span};

pub use write::{config, map_name, placed, tier_map};

/// A format that can be imported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Format {
    /// `permissions` of Claude Code's `settings.json`.
    ClaudeSettings,
    /// Codex `*.rules`: `prefix_rule(…)`.
    CodexRules,
    /// `sudoers(5)`.
    Sudoers,
    /// The `network_proxy` part of Codex' `config.toml`.
    CodexProxy,
    /// Smokescreen's ACL file.
    Smokescreen,
    /// `http_access` of `squid.conf`.
    Squid,
    /// The settings of sandbox-runtime (`srt`).
    SandboxRuntime,
    /// Policy files of Gemini CLI.
    Gemini,
    /// `permissions` of Cursor's command line.
    Cursor,
    /// `permission` of `opencode.json`.
    Opencode,
    /// Markdown in which people wrote tiers in prose.
    Markdown,
}

impl Format {
    /// All formats, in the order of the documentation.
    pub const ALL: [Format; 11] = [
        Format::ClaudeSettings,
        Format::CodexRules,
        Format::Sudoers,
        Format::CodexProxy,
        Format::Smokescreen,
        Format::Squid,
        Format::SandboxRuntime,
        Format::Gemini,
        Format::Cursor,
        Format::Opencode,
        Format::Markdown,
    ];

    /// The name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Format::ClaudeSettings => "claude-settings",
            Format::CodexRules => "codex-rules",
            Format::Sudoers => "sudoers",
            Format::CodexProxy => "codex-proxy",
            Format::Smokescreen => "smokescreen",
            Format::Squid => "squid",
            Format::SandboxRuntime => "sandbox-runtime",
            Format::Gemini => "gemini",
            Format::Cursor => "cursor",
            Format::Opencode => "opencode",
            Format::Markdown => "markdown",
        }
    }

    /// What it is, for a heading.
    pub const fn title(self) -> &'static str {
        match self {
            Format::ClaudeSettings => "Claude Code settings",
            Format::CodexRules => "Codex rules",
            Format::Sudoers => "sudoers",
            Format::CodexProxy => "the Codex network proxy",
            Format::Smokescreen => "a Smokescreen ACL",
            Format::Squid => "squid.conf",
            Format::SandboxRuntime => "sandbox-runtime settings",
            Format::Gemini => "Gemini CLI policies",
            Format::Cursor => "Cursor permissions",
            Format::Opencode => "opencode permissions",
            Format::Markdown => "Markdown with tiers in prose",
        }
    }

    /// The format with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Format::ALL.into_iter().find(|format| format.name() == name)
    }
}

/// Which way an import erred.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Loss {
    /// An allowance became smaller.
    Narrower,
    /// An allowance was left out.
    LeftOut,
    /// A restriction became larger.
    Broader,
    /// The source's own client accepts the rule and never consults it.
    Unconsulted,
    /// Nothing is lost; something that a reader should know.
    Told,
}

impl Loss {
    /// The word in maps and messages.
    pub const fn word(self) -> &'static str {
        match self {
            Loss::Narrower => "narrower",
            Loss::LeftOut => "left out",
            Loss::Broader => "broader",
            Loss::Unconsulted => "never consulted",
            Loss::Told => "note",
        }
    }

    const fn code(self) -> Code {
        match self {
            Loss::Narrower => Code::IMPORT_NARROWER,
            Loss::LeftOut => Code::IMPORT_LEFT_OUT,
            Loss::Broader => Code::IMPORT_BROADER,
            Loss::Unconsulted => Code::IMPORT_UNCONSULTED,
            Loss::Told => Code::IMPORT_NOTE,
        }
    }
}

/// What was lost of one rule of the source, and where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// The place in the source.
    pub span: Span,
    /// Which way it erred.
    pub loss: Loss,
    /// One sentence, lower case, without a full stop.
    pub text: String,
}

impl Note {
    /// The finding that shows it.
    pub fn finding(&self) -> Finding {
        Finding::new(self.loss.code(), self.span, self.text.clone())
    }
}

/// One rule of a tier map.
#[derive(Clone, Debug)]
pub struct Row {
    /// Its tier.
    pub tier: Tier,
    /// What it is matched by.
    pub matcher: Matcher,
    /// Conditions on facts.
    pub when: When,
    /// Agents it is about; all when empty.
    pub agents: Vec<String>,
    /// Machines it is about; all when empty.
    pub hosts: Vec<String>,
    /// Where it comes from.
    pub span: Span,
}

/// The rows of one surface.
#[derive(Clone, Debug)]
pub struct Map {
    /// Tier of what no row matches.
    pub unmatched: Tier,
    /// The rows, in the order of the source.
    pub rows: Vec<Row>,
}

/// An import.
#[derive(Clone, Debug, Default)]
pub struct Imported {
    /// A map for each surface that the source speaks of.
    pub maps: BTreeMap<Surface, Map>,
    /// What was lost, in the order of the source.
    pub notes: Vec<Note>,
    /// Directories whose programs the rows mean, for `polctl.yaml`.
    pub trusted_dirs: Vec<String>,
    /// Zones that rows speak of, for `polctl.yaml`: name and path patterns.
    pub zones: BTreeMap<String, Vec<String>>,
}

impl Imported {
    /// The map of a surface, made when there is none yet.
    fn map(&mut self, surface: Surface, unmatched: Tier) -> &mut Map {
        self.maps.entry(surface).or_insert_with(|| Map { unmatched, rows: Vec::new() })
    }

    /// Takes a row over, or says that it was left out.
    fn take(&mut self, surface: Surface, unmatched: Tier, span: Span, row: Result<Row, String>) {
        match row {
            Ok(row) => self.map(surface, unmatched).rows.push(row),
            Err(why) => self.note(span, Loss::LeftOut, why),
        }
    }

    /// The programs that the allowances for commands name.
    fn allowed_programs(&self) -> Vec<String> {
        let rows = self.maps.get(&Surface::Commands).map(|map| map.rows.as_slice()).unwrap_or_default();
        let names = rows.iter().filter(|row| row.tier < Tier::UNMATCHED).flat_map(|row| match &row.matcher {
            Matcher::Command { pattern, .. } => pattern.literal_programs().unwrap_or_default(),
            Matcher::Egress { .. } => Vec::new(),
        });
        names.map(str::to_owned).collect()
    }

    fn note(&mut self, span: Span, loss: Loss, text: impl Into<String>) {
        self.notes.push(Note { span, loss, text: text.into() });
    }
}

/// What the caller says besides the files.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// sudoers: the user whose rights are imported, with the groups it is in; all users when absent.
    pub user: Option<String>,
    /// sudoers: groups of that user.
    pub groups: Vec<String>,
    /// sudoers: the machine that is meant; entries for other machines are left out.
    pub host: Option<String>,
    /// Smokescreen: the role that is meant; squid: conditions that always hold.
    pub assume: Vec<String>,
}

/// Finds the files that an `include` names; their names and texts.
pub type Include<'a> = dyn FnMut(&str, &str) -> Result<Vec<(String, String)>, String> + 'a;

/// The files of one import.
pub struct Files<'a> {
    /// Their texts.
    pub map: &'a mut SourceMap,
    /// In the order in which they count: what stands first is weakest.
    pub files: Vec<FileId>,
    /// Finds what a file includes: path as written, name of the including file.
    pub include: &'a mut Include<'a>,
}

/// Imports files of one format.
///
/// # Errors
///
/// Findings of kind malformed: a source that cannot be read to its end has no import, since what was not
/// read may forbid.
pub fn import(format: Format, files: &mut Files<'_>, options: &Options) -> Result<Imported, Vec<Finding>> {
    let mut out = match format {
        Format::ClaudeSettings => claude::import(files),
        Format::CodexRules => codex::import(files),
        Format::Sudoers => sudoers::import(files, options),
        Format::CodexProxy => egress::codex_proxy(files),
        Format::Smokescreen => egress::smokescreen(files, options),
        Format::Squid => egress::squid(files, options),
        Format::SandboxRuntime => egress::sandbox_runtime(files),
        Format::Gemini => gemini::import(files),
        Format::Cursor => cursor::import(files),
        Format::Opencode => opencode::import(files),
        Format::Markdown => Ok(prose::import(files)),
    }
    .map_err(|problems| problems.into_iter().map(|problem| *problem).collect::<Vec<_>>())?;
    rows::settle(&mut out);
    Ok(out)
}

/// A finding that ends an import; in a box, since it is large and rare.
type Problem = Box<Finding>;

fn unreadable(span: Span, message: impl Into<String>, help: impl Into<String>) -> Problem {
    Box::new(Finding::new(Code::IMPORT_UNREADABLE, span, message).help(help))
}
