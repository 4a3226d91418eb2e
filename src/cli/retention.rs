//! `polctl retention`: whether every durable table has a retention class.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use clap::Args as ClapArgs;

use super::args::OutputArgs;
use super::outcome::Outcome;
use super::places::places;
use super::session::{Failure, now, open_retention_base};
use super::{exit, output};
use crate::diag::{Finding, Level, sort};
use crate::parse::{CONFIG_NAME, RETENTION_NAME, is_date, retention_path};
use crate::retention::{Version, load, weakened};
use crate::source::{DirTree, SourceMap, Tree};

/// Arguments of `retention`.
#[derive(Debug, ClapArgs)]
pub struct RetentionArgs {
    /// The directory with retention.yaml and the migrations
    #[arg(long, short = 'C', default_value = ".", value_name = "DIR")]
    pub dir: PathBuf,
    /// What to compare with: a git revision (HEAD~1, origin/main) or a directory written `./DIR`
    #[arg(long, value_name = "REF|DIR", conflicts_with = "baseline")]
    pub base: Option<String>,
    /// Write what is owed today into the baseline; one that is there only gets shorter
    #[arg(long)]
    pub baseline: bool,
    /// With --baseline: who pays it
    #[arg(long, value_name = "NAME", requires = "baseline")]
    pub owner: Option<String>,
    /// With --baseline: until when, `YYYY-MM-DD`
    #[arg(long, value_name = "DATE", requires = "baseline")]
    pub expires: Option<String>,
    /// List every durable table with its class instead of the findings
    #[arg(long, conflicts_with_all = ["base", "baseline"])]
    pub list: bool,
    /// Output.
    #[command(flatten)]
    pub output: OutputArgs,
}

pub(super) fn run(args: &RetentionArgs) -> Result<u8, Failure> {
    args.output.ready()?;
    let tree = DirTree::new(&args.dir, None);
    let (mut map, mut findings) = (SourceMap::new(), Vec::new());
    let path = named(&tree, &args.dir)?;
    let version = load(&tree, &path, &mut map, &mut findings)?;
    if let (true, Some(version)) = (args.list, &version) {
        return Ok(list(version));
    }
    if let (true, Some(version)) = (args.baseline, &version) {
        return write_baseline(args, version);
    }
    if let Some(version) = &version {
        findings.extend(version.findings(&today()?));
    }
    if let Some(base) = &args.base {
        let old_tree = open_retention_base(base, &args.dir)?;
        if let Some(version) = &version {
            against(old_tree.as_ref(), version, &mut map, &mut findings)?;
        }
    }
    sort(&mut findings);
    let outcome = Outcome { map, findings, rules: None, policy_ids: (None, None) };
    Ok(outcome.report("retention", None, &places(&args.dir, &args.dir)?, &args.output))
}

/// Where `retention.yaml` is: `polctl.yaml` may name it.
fn named(tree: &dyn Tree, dir: &Path) -> Result<String, Failure> {
    let path = retention_path(tree)?.unwrap_or_else(|| RETENTION_NAME.to_owned());
    if dir.join(&path).is_file() {
        return Ok(path);
    }
    Err(Failure::usage(
        format!("there is no `{path}` in `{}`", dir.display()),
        format!(
            "write one, with `polctl: v1` and your classes (docs/retention.md has an example), or name the directory: `-C DIR`; `{CONFIG_NAME}` may name another file under `retention`"
        ),
    ))
}

/// Findings of the comparison with the version at the base.
fn against(base: &dyn Tree, new: &Version, map: &mut SourceMap, findings: &mut Vec<Finding>) -> Result<(), Failure> {
    let path = retention_path(base)?.unwrap_or_else(|| RETENTION_NAME.to_owned());
    if !base.read(&path).is_ok_and(|bytes| !bytes.is_empty()) {
        // Nothing was promised before.
        return Ok(());
    }
    let mut own = Vec::new();
    let old = load(base, &path, map, &mut own)?;
    own.retain(|f| f.level == Level::Error);
    match old {
        Some(old) => findings.extend(weakened(&old, new)),
        None => findings.append(&mut own),
    }
    Ok(())
}

fn today() -> Result<String, Failure> {
    Ok(now()?.to_string().chars().take(10).collect())
}

fn list(version: &Version) -> u8 {
    let mut text = String::new();
    for world in &version.loaded.worlds {
        for name in world.durable().keys() {
            let class = version.tables.get(name).map_or("-", |c| c.class.as_str());
            text.push_str(&format!("{name}\t{class}\n"));
        }
    }
    output::print(&text).map_or_else(|code| code, |()| exit::OK)
}

fn write_baseline(args: &RetentionArgs, version: &Version) -> Result<u8, Failure> {
    let there = version.loaded.baseline.is_some();
    let (owner, expires) = match (&args.owner, &args.expires) {
        (Some(owner), Some(expires)) if !there => (owner.as_str(), expires.as_str()),
        (None, None) if there => ("", ""),
        _ if there => {
            return Err(Failure::usage(
                "there is a baseline already, and it only gets shorter",
                "run `polctl retention --baseline` alone to take out what is paid; to change an owner, edit the file",
            ));
        }
        _ => {
            return Err(Failure::usage(
                "a baseline needs somebody who pays it, and a day",
                "write `polctl retention --baseline --owner TEAM --expires 2027-06-30`",
            ));
        }
    };
    if !there && (owner.trim().is_empty() || !is_date(expires) || expires <= today()?.as_str()) {
        return Err(Failure::usage(
            "`--owner` names nobody, or `--expires` is no day that is still to come",
            "write it as `--owner TEAM --expires 2027-06-30`",
        ));
    }
    let path = args.dir.join(&version.loaded.config.baseline);
    let shown = path.display().to_string();
    let Some(text) = version.baseline_text(owner, expires) else {
        if there {
            std::fs::remove_file(&path).map_err(|source| Failure::Write { what: format!("`{shown}`"), source })?;
        }
        return Ok(said(&format!(
            "polctl retention: nothing is owed{}\n",
            if there { ", the baseline is removed" } else { "" }
        )));
    };
    replace(&path, &text).map_err(|source| Failure::Write { what: format!("`{shown}`"), source })?;
    let entries = text.lines().filter(|line| line.starts_with("  - ")).count();
    Ok(said(&format!("polctl retention: wrote `{shown}` with {entries} entries; review and commit it\n")))
}

fn said(text: &str) -> u8 {
    output::print(text).map_or_else(|code| code, |()| exit::OK)
}

/// Writes beside the file and moves it there in one step.
fn replace(path: &Path, text: &str) -> std::io::Result<()> {
    let parent = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut file = tempfile::Builder::new().prefix(".polctl-").tempfile_in(parent)?;
    file.write_all(text.as_bytes())?;
    file.as_file().sync_all()?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        file.as_file().set_permissions(std::fs::Permissions::from_mode(0o644))?;
    }
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}
