//! `polctl import`: the rules of another tool as a tier map.
//!
//! Reads and writes the files. A row that `polctl check` would refuse is left out when it permits and
//! made strictest when it restricts, so that the map is one that the check accepts.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use clap::Args as ClapArgs;

use super::args::Deny;
use super::output;
use super::session::{Failure, exit_code, lints, read};
use crate::diag::{Finding, Level, sort};
use crate::import::{Files, Format, Imported, Loss, Note, Options, Row, config, import, map_name, placed, tier_map};
use crate::model::{Matcher, Surface, Tier};
use crate::parse::CONFIG_NAME;
use crate::report::Report;
use crate::source::{FileId, MAX_FILE_BYTES, MAX_FILES, SourceError, SourceMap, Tree};

/// Arguments of `import`.
#[derive(Debug, ClapArgs)]
pub struct ImportArgs {
    /// What the files are: claude-settings, codex-rules, sudoers, codex-proxy, smokescreen, squid,
    /// sandbox-runtime, gemini, cursor, opencode or markdown
    #[arg(value_parser = format)]
    pub format: Format,
    /// The files; of several that add up, the one that counts least first
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Write the maps and a polctl.yaml into this directory; without it, the map goes to standard output
    #[arg(long, short = 'o', value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Which map goes to standard output, when the source speaks of several surfaces
    #[arg(long, value_name = "commands|sudo|egress", conflicts_with = "output", value_parser = surface)]
    pub surface: Option<Surface>,
    /// Name of the policy set in polctl.yaml
    #[arg(long, value_name = "NAME", default_value = "imported")]
    pub set: String,
    /// sudoers, smokescreen: the user or role whose rights are imported
    #[arg(long, value_name = "NAME", visible_alias = "role")]
    pub user: Option<String>,
    /// sudoers: a group of that user (repeatable)
    #[arg(long, value_name = "NAME", requires = "user")]
    pub group: Vec<String>,
    /// sudoers: the machine that is meant
    #[arg(long, value_name = "NAME")]
    pub host: Option<String>,
    /// squid: an ACL that always holds where the map is used (repeatable)
    #[arg(long, value_name = "ACL")]
    pub assume: Vec<String>,
    /// sudoers: where absolute paths of includes begin
    #[arg(long, value_name = "DIR", default_value = "/")]
    pub root: PathBuf,
    /// Fail when an allowance was left out or a rule is never consulted
    #[arg(long, value_enum, value_name = "LEVEL")]
    pub deny: Option<Deny>,
}

fn format(text: &str) -> Result<Format, String> {
    Format::from_name(text).ok_or_else(|| format!("formats are {}", Format::ALL.map(Format::name).join(", ")))
}

fn surface(text: &str) -> Result<Surface, String> {
    Surface::from_name(text).ok_or_else(|| "surfaces are commands, sudo and egress".into())
}

pub(super) fn run(args: &ImportArgs) -> Result<u8, Failure> {
    let options = Options {
        user: args.user.clone(),
        groups: args.group.clone(),
        host: args.host.clone(),
        assume: args.assume.clone(),
    };
    let mut map = SourceMap::new();
    let imported = match made(args.format, &args.files, &options, &args.root, &mut map)? {
        Ok(imported) => imported,
        Err(findings) => return Ok(told(findings, &map, args.deny)),
    };
    let surfaces: Vec<Surface> =
        imported.maps.iter().filter(|(_, own)| !own.rows.is_empty()).map(|(surface, _)| *surface).collect();
    let code = told(imported.notes.iter().map(Note::finding).collect(), &map, args.deny);
    if surfaces.is_empty() {
        return Err(Failure::usage(
            "there is no rule that a tier map can say",
            "without a map nothing is permitted; the notes above say what became of each rule",
        ));
    }
    if let Some(dir) = &args.output {
        write(args, &imported, &surfaces, dir, &map)?;
        return Ok(code);
    }
    let surface = only(args.surface, &surfaces)?;
    Ok(output::print(&tier_map(args.format, &imported, surface, &map)).err().unwrap_or(code))
}

/// The one surface of which a map is printed.
fn only(wanted: Option<Surface>, surfaces: &[Surface]) -> Result<Surface, Failure> {
    match (wanted, surfaces) {
        (Some(surface), _) if surfaces.contains(&surface) => Ok(surface),
        (None, [only]) => Ok(*only),
        _ => {
            let names: Vec<&str> = surfaces.iter().map(|surface| surface.name()).collect();
            Err(Failure::usage(
                format!("the source speaks of: {}", names.join(", ")),
                "write all maps with `-o DIR`, or one of these with `--surface`",
            ))
        }
    }
}

fn told(mut findings: Vec<Finding>, map: &SourceMap, deny: Option<Deny>) -> u8 {
    sort(&mut findings);
    let exit_code = exit_code(&findings, deny == Some(Deny::Warnings));
    if findings.is_empty() {
        return exit_code;
    }
    let report =
        Report { command: "import", compared: None, policy_ids: (None, None), rules: None, findings, exit_code };
    output::report_on_stderr(&report, map)
}

/// Reads files and imports them; the findings when they cannot be read to their end.
fn made(
    format: Format,
    paths: &[PathBuf],
    options: &Options,
    root: &Path,
    map: &mut SourceMap,
) -> Result<Result<Imported, Vec<Finding>>, Failure> {
    let mut files: Vec<FileId> = Vec::new();
    for path in paths {
        let text = text(path).map_err(|source| Failure::Read { what: format!("`{}`", path.display()), source })?;
        files.push(map.add(&path.display().to_string(), None, &text));
    }
    let mut include = |path: &str, from: &str| included(path, Path::new(from), root);
    let mut files = Files { map, files, include: &mut include };
    let mut imported = match import(format, &mut files, options) {
        Ok(imported) => imported,
        Err(findings) => return Ok(Err(findings)),
    };
    settle(format, &mut imported, map)?;
    Ok(Ok(imported))
}

fn text(path: &Path) -> std::io::Result<String> {
    let mut bytes = Vec::new();
    let most = u64::try_from(MAX_FILE_BYTES).unwrap_or(u64::MAX);
    std::fs::File::open(path)?.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() > MAX_FILE_BYTES {
        return Err(std::io::Error::other("the file is larger than 4 MiB"));
    }
    String::from_utf8(bytes).map_err(|_| std::io::Error::other("the file is no UTF-8 text"))
}

/// What an `include` of sudoers reads: a file, or the files of a directory by name, without those
/// that hold a dot or end in `~`.
fn included(path: &str, from: &Path, root: &Path) -> Result<Vec<(String, String)>, String> {
    if path.contains('%') {
        return Err("`%h` stands for the machine's name".into());
    }
    let place = match path.strip_prefix('/') {
        Some(inner) => root.join(inner),
        None => from.parent().unwrap_or(Path::new("")).join(path),
    };
    let mut names = vec![place.clone()];
    if place.is_dir() {
        let entries = std::fs::read_dir(&place).map_err(|error| error.to_string())?;
        names = entries
            .map(|entry| entry.map(|entry| entry.path()))
            .collect::<Result<_, _>>()
            .map_err(|error| error.to_string())?;
        names.retain(|path| {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or(".");
            !name.contains('.') && !name.ends_with('~') && path.is_file()
        });
        names.sort();
    }
    if names.len() > MAX_FILES {
        return Err("too many files".into());
    }
    names.iter().map(|path| Ok((path.display().to_string(), text(path).map_err(|error| error.to_string())?))).collect()
}

/// The files of an import, in memory.
pub(super) struct Memory {
    files: BTreeMap<String, String>,
    origin: Option<String>,
}

impl Tree for Memory {
    fn label(&self) -> String {
        self.origin.clone().unwrap_or_else(|| "the import".into())
    }

    fn origin(&self) -> Option<String> {
        self.origin.clone()
    }

    fn read(&self, path: &str) -> Result<Vec<u8>, SourceError> {
        let missing = || SourceError::NotFound { path: path.into(), tree: self.label() };
        self.files.get(path).map(|text| text.as_bytes().to_vec()).ok_or_else(missing)
    }

    fn list(&self, _: &str) -> Result<Vec<String>, SourceError> {
        Ok(self.files.keys().cloned().collect())
    }
}

fn memory(format: Format, imported: &Imported, map: &SourceMap) -> Memory {
    let filled = imported.maps.iter().filter(|(_, own)| !own.rows.is_empty());
    let mut files: BTreeMap<String, String> =
        filled.map(|(surface, _)| (map_name(*surface).to_owned(), tier_map(format, imported, *surface, map))).collect();
    files.insert(CONFIG_NAME.to_owned(), config(imported, "imported"));
    Memory { files, origin: None }
}

/// Has the check look at the maps, and takes back each row that it refuses, until it accepts them.
fn settle(format: Format, imported: &mut Imported, sources: &SourceMap) -> Result<(), Failure> {
    /// More rounds than a row has ways to be refused.
    const ROUNDS: usize = 12;
    for _ in 0..ROUNDS {
        if imported.maps.values().all(|own| own.rows.is_empty()) {
            return Ok(());
        }
        let mut map = SourceMap::new();
        let mut findings = Vec::new();
        if let Some(compiled) = read(&memory(format, imported, sources), &mut map, &mut findings)? {
            lints(&compiled, &map, &mut findings)?;
        }
        findings.retain(|finding| finding.level == Level::Error);
        if findings.is_empty() {
            return Ok(());
        }
        if !take_back(format, imported, sources, &map, &findings) {
            let first = findings.first().map_or_else(String::new, |finding| finding.message.clone());
            return Err(Failure::usage(
                format!("the import is not accepted by the check: {first}"),
                "this is a defect of polctl; please report it with the file",
            ));
        }
    }
    Err(Failure::usage(
        "the import is not accepted by the check",
        "this is a defect of polctl; please report it with the file",
    ))
}

/// Leaves rows out, or makes them strictest; whether anything changed.
fn take_back(
    format: Format,
    imported: &mut Imported,
    sources: &SourceMap,
    map: &SourceMap,
    findings: &[Finding],
) -> bool {
    let mut changed = false;
    let surfaces: Vec<Surface> = imported.maps.keys().copied().collect();
    for surface in surfaces {
        let (_, places) = placed(format, imported, surface, sources);
        let mut refused: BTreeMap<usize, String> = BTreeMap::new();
        for finding in findings {
            // Where two rows contradict each other, the one that permits more goes.
            let spans = std::iter::once(finding.span).chain(finding.related.iter().map(|related| related.span));
            let rows = spans.filter_map(|span| {
                let file = map.get(span.file).filter(|file| file.name == map_name(surface))?;
                let line = file.position(span.start).0;
                places.iter().find(|(at, _)| *at == line).map(|(_, index)| *index)
            });
            let tier =
                |index: &usize| imported.maps.get(&surface).and_then(|own| own.rows.get(*index)).map(|row| row.tier);
            if let Some(index) = rows.min_by_key(tier) {
                refused.entry(index).or_insert_with(|| finding.message.clone());
            }
        }
        let Some(own) = imported.maps.get_mut(&surface) else { continue };
        let allowed: Vec<String> = own.rows.iter().filter(|row| row.tier < Tier::UNMATCHED).flat_map(names).collect();
        let mut kept = Vec::new();
        for (index, mut row) in std::mem::take(&mut own.rows).into_iter().enumerate() {
            let Some(why) = refused.get(&index) else {
                kept.push(row);
                continue;
            };
            changed = true;
            // Below the strictest tier a row where all else is refused permits as well.
            // unless it keeps an allowance for the same program in check.
            let permits = row.tier < Tier::UNMATCHED
                || own.unmatched == Tier::DENY
                    && row.tier < Tier::DENY
                    && !names(&row).iter().any(|name| allowed.contains(name));
            let (loss, what) =
                if permits || row.tier == Tier::DENY { (Loss::LeftOut, "left out") } else { (Loss::Broader, "denied") };
            let text = format!("{what}, since `polctl check` refuses the rule: {why}");
            imported.notes.push(Note { span: row.span, loss, text });
            if !permits && row.tier < Tier::DENY {
                row.tier = Tier::DENY;
                kept.push(row);
            }
        }
        own.rows = kept;
    }
    imported.notes.sort_by_key(|note| (note.span, note.loss));
    imported.notes.dedup();
    changed
}

/// The programs, or the host, that a row names.
fn names(row: &Row) -> Vec<String> {
    match &row.matcher {
        Matcher::Command { pattern, .. } => pattern.programs.iter().map(ToString::to_string).collect(),
        Matcher::Egress { pattern, .. } => vec![pattern.host.to_string()],
    }
}

fn write(
    args: &ImportArgs,
    imported: &Imported,
    surfaces: &[Surface],
    dir: &Path,
    map: &SourceMap,
) -> Result<(), Failure> {
    let failed = |path: &Path, source| Failure::Write { what: format!("`{}`", path.display()), source };
    std::fs::create_dir_all(dir).map_err(|source| failed(dir, source))?;
    let mut texts = vec![(CONFIG_NAME, config(imported, &args.set))];
    texts.extend(surfaces.iter().map(|surface| (map_name(*surface), tier_map(args.format, imported, *surface, map))));
    if let Some((name, _)) = texts.iter().find(|(name, _)| dir.join(name).exists()) {
        return Err(Failure::usage(
            format!("`{}` exists already", dir.join(name).display()),
            "give another directory, and move over what you want of it",
        ));
    }
    for (name, text) in texts {
        let path = dir.join(name);
        std::fs::write(&path, text).map_err(|source| failed(&path, source))?;
    }
    Ok(())
}
