//! `polctl census`: the credentials of a host against the inventory.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::{Args as ClapArgs, ValueEnum};

use super::args::{Deny, Format, OutputArgs};
use super::session::{Failure, exit_code, now, working_tree};
use super::{exit, output};
use crate::census::probe::{Sign, sniff};
use crate::census::{
    Access as FileAccess, Found, Host, Identity, Note, Options, Root, Rules, Scan, Verdicts, View, adopt, judge,
    unknown_kinds,
};
use crate::diag::{Code, Finding, Kind, Level, info};
use crate::model::{Classification, Inventory};
use crate::parse::{load, parse_inventory};
use crate::report::{
    Census, CensusCounts, CensusCredential, CensusFinding, CensusPlace, Report, census_heartbeat, census_human,
    census_json, census_metrics,
};
use crate::sign::{Access, Existing, Straight, Timestamp, write_file};
use crate::source::{MAX_FILE_BYTES, SourceMap, Tree as _};

/// Arguments of `census`.
#[derive(Debug, ClapArgs)]
pub struct CensusArgs {
    /// The inventory
    #[arg(long, short = 'i', value_name = "FILE", conflicts_with = "dir")]
    pub inventory: Option<PathBuf>,
    /// The policy directory whose polctl.yaml names the inventory (`census: { inventory: FILE }`)
    #[arg(long, short = 'C', value_name = "DIR")]
    pub dir: Option<PathBuf>,
    /// The root of the host: a mounted image, say
    #[arg(long, value_name = "DIR", default_value = "/")]
    pub root: PathBuf,
    /// The host's name, for rows that name hosts [default: what etc/hostname below the root says]
    #[arg(long, value_name = "NAME")]
    pub host: Option<String>,
    /// Only what this user of the host can read, by name or number
    #[arg(long = "as", value_name = "USER")]
    pub user: Option<String>,
    /// Walk this directory of the host as well (repeatable)
    #[arg(long, value_name = "DIR", value_parser = absolute)]
    pub also: Vec<String>,
    /// Do not walk this directory of the host; every report tells it (repeatable)
    #[arg(long, value_name = "DIR", value_parser = absolute)]
    pub skip: Vec<String>,
    /// Warn of exemptions that end within so many days
    #[arg(long, value_name = "N", default_value_t = 14)]
    pub warn_days: u32,
    /// Fail when there is any exemption; the break-glass row may stay
    #[arg(long)]
    pub require_empty_exemptions: bool,
    /// Write a row to fill in for each credential that has none
    #[arg(long)]
    pub adopt: bool,
    /// How the result is shown
    #[arg(long, value_enum, default_value_t = CensusFormat::Human)]
    pub format: CensusFormat,
    /// Also fail on findings of this level
    #[arg(long, value_enum, value_name = "LEVEL")]
    pub deny: Option<Deny>,
    /// Write figures for Prometheus into this file (for a node exporter: NAME.prom)
    #[arg(long, value_name = "FILE")]
    pub metrics: Option<PathBuf>,
    /// Write into this file that a census ran to its end, and how it ended
    #[arg(long, value_name = "FILE")]
    pub heartbeat: Option<PathBuf>,
}

/// Output formats of `census`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CensusFormat {
    /// Text for people
    Human,
    /// One JSON document
    Json,
}

fn absolute(text: &str) -> Result<String, String> {
    if text.starts_with('/') && !text.split('/').any(|part| part == "..") {
        return Ok(text.to_owned());
    }
    Err("write the absolute path of the directory as the host sees it, without `..`".to_owned())
}

pub(super) fn run(args: &CensusArgs) -> Result<u8, Failure> {
    let begun = Instant::now();
    let at = now()?;
    let given = match Given::read(args, at.seconds())? {
        Ok(given) => given,
        Err(malformed) => return Ok(malformed.report(args.format)),
    };
    let root = Root::open(&args.root)
        .map_err(|source| Failure::Read { what: format!("the root `{}`", args.root.display()), source })?;
    let host = Host::new(root);
    let name = args.host.clone().or_else(|| host.name());
    given.check_host(name.as_deref())?;
    let view = view(args, &host)?;
    let scan = scanned(args, &host, &view, at);
    let rules = Rules {
        now: at.seconds(),
        warn_days: args.warn_days,
        require_empty: args.require_empty_exemptions,
        host: name.as_deref(),
        levels: &given.levels,
    };
    let verdicts = judge(&scan, &given.inventory, &rules, &|location| host.presence(location, &view));
    let adopted = if args.adopt { given.adopt(&scan, &verdicts, args)? } else { None };
    let mut census = Census {
        root: args.root.display().to_string(),
        view: view.identity().map(|who| who.name.clone()),
        at: at.to_string(),
        at_seconds: at.seconds(),
        seconds: begun.elapsed().as_secs_f64(),
        inventory: given.path.as_ref().filter(|_| given.exists).map(|path| path.display().to_string()),
        first_expiry: given.first_expiry(name.as_deref()),
        exit_code: census_exit_code(&verdicts, args.deny == Some(Deny::Warnings)),
        looked: counts(&scan),
        findings: findings(&verdicts, &given.map),
        credentials: scan.found.iter().zip(&verdicts.states).map(|(f, state)| credential(f, *state, &host)).collect(),
        unreadable: places(&scan.told.gaps),
        skipped: places(&scan.told.skipped),
        host: name,
    };
    census.credentials.retain(|credential| credential.sign != "empty");
    write_beside(args, &census)?;
    let text = match args.format {
        CensusFormat::Human => census_human(&census, output::colour_on_stdout()),
        CensusFormat::Json => census_json(&census),
    };
    let printed = output::print(&text);
    if let Some(notice) = adopted {
        output::notice(&notice);
    }
    Ok(printed.map_or_else(|code| code.max(census.exit_code), |()| census.exit_code))
}

/// The inventory and what came with it.
struct Given {
    inventory: Inventory,
    /// Its text; empty where there is no file yet.
    text: String,
    /// Where it is; `None`: none was named.
    path: Option<PathBuf>,
    /// Whether there is a file.
    exists: bool,
    map: SourceMap,
    levels: BTreeMap<Code, Level>,
}

/// An inventory, or a policy, that cannot be read.
struct Malformed {
    map: SourceMap,
    findings: Vec<Finding>,
}

impl Malformed {
    fn report(mut self, format: CensusFormat) -> u8 {
        crate::diag::sort(&mut self.findings);
        let exit_code = exit_code(&self.findings, false).max(exit::USAGE);
        let format = match format {
            CensusFormat::Human => Format::Human,
            CensusFormat::Json => Format::Json,
        };
        let findings = self.findings;
        let report =
            Report { command: "census", compared: None, policy_ids: (None, None), rules: None, findings, exit_code };
        output::report(&report, &self.map, &OutputArgs { format, ..OutputArgs::default() })
    }
}

impl Given {
    fn read(args: &CensusArgs, now: i64) -> Result<Result<Given, Malformed>, Failure> {
        let (mut map, mut findings) = (SourceMap::new(), Vec::new());
        let mut levels = BTreeMap::new();
        let mut path = args.inventory.clone();
        if let Some(dir) = &args.dir {
            let tree = working_tree(dir)?;
            let Some(set) = load(&tree, &mut map, &mut findings)? else { return Ok(Err(Malformed { map, findings })) };
            let Some((name, _)) = &set.config.inventory else {
                return Err(Failure::usage(
                    format!("the configuration in `{}` names no inventory", dir.display()),
                    "add `census: { inventory: credentials.yaml }` to polctl.yaml, or give `--inventory FILE`",
                ));
            };
            path = Some(dir.join(name));
            levels = set.config.levels;
            if let Some(inventory) = set.inventory {
                let text = text_of(&tree.read(name)?);
                return Given { inventory, text, path, exists: true, map, levels }.checked(now);
            }
        }
        let Some(at) = &path else {
            if args.adopt {
                return Err(Failure::usage(
                    "there is no inventory to write rows into",
                    "name the file: `--inventory credentials.yaml`; it may be a new one",
                ));
            }
            return Ok(Ok(Given::nothing(None, map, levels)));
        };
        let bytes = match read_inventory(at) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound && args.adopt => {
                return Ok(Ok(Given::nothing(path, map, levels)));
            }
            Err(source) => return Err(Failure::Read { what: format!("the inventory `{}`", at.display()), source }),
        };
        let name = at.display().to_string();
        match parse_inventory(&name, None, &bytes, &mut map, &mut findings) {
            Some(inventory) => Given { inventory, text: text_of(&bytes), path, exists: true, map, levels }.checked(now),
            None => Ok(Err(Malformed { map, findings })),
        }
    }

    fn nothing(path: Option<PathBuf>, mut map: SourceMap, levels: BTreeMap<Code, Level>) -> Given {
        let file = map.add("(no inventory)", None, "");
        let inventory = Inventory { file, entries: Vec::new() };
        Given { inventory, text: String::new(), path, exists: false, map, levels }
    }

    /// Kinds must be known, and nobody may have written a secret into it.
    fn checked(self, now: i64) -> Result<Result<Given, Malformed>, Failure> {
        let findings = unknown_kinds(&self.inventory);
        if !findings.is_empty() {
            return Ok(Err(Malformed { map: self.map, findings }));
        }
        if let Some(material) = sniff(self.text.as_bytes(), now).first() {
            let line = material.line.map_or_else(String::new, |line| format!(", line {line}"));
            return Err(Failure::usage(
                format!("the inventory itself holds what looks like a secret (a {}{line})", material.kind.name()),
                "an inventory says where credentials are and never what they are: take it out, and replace the secret",
            ));
        }
        Ok(Ok(self))
    }

    fn check_host(&self, host: Option<&str>) -> Result<(), Failure> {
        if host.is_none() && self.inventory.entries.iter().any(|entry| !entry.hosts.is_empty()) {
            return Err(Failure::usage(
                "rows of the inventory name hosts, and the name of this one is not known",
                "give `--host NAME`",
            ));
        }
        Ok(())
    }

    fn first_expiry(&self, host: Option<&str>) -> Option<i64> {
        let days =
            self.inventory.entries.iter().filter(|entry| entry.is_for(host)).filter_map(|entry| match &entry.state {
                Classification::ExplicitlyExempt(day) => Some(day.end()),
                _ => None,
            });
        days.min()
    }

    /// Writes rows for what has none. What to say about it.
    fn adopt(&self, scan: &Scan, verdicts: &Verdicts, args: &CensusArgs) -> Result<Option<String>, Failure> {
        let Some(path) = &self.path else { return Ok(None) };
        let unlisted = verdicts.unlisted.iter().filter_map(|index| scan.found.get(*index));
        let (new, full): (Vec<&Found>, Vec<&Found>) = unlisted.partition(|found| !self.has_row(found));
        let full = match full.len() {
            0 => String::new(),
            _ => format!(
                "\npolctl census: {} beyond the `count` of a row: raise it by hand if that is right",
                full.iter().map(|found| found.location.as_str()).collect::<Vec<_>>().join(", ")
            ),
        };
        if new.is_empty() {
            return Ok(Some(format!("polctl census: there is nothing to adopt{full}")));
        }
        let text = adopt(&self.text, &new, args.host.as_deref())?;
        let (mut map, mut findings) = (SourceMap::new(), Vec::new());
        let again = parse_inventory("the inventory with new rows", None, text.as_bytes(), &mut map, &mut findings);
        let added = again.map_or(0, |again| again.entries.len().saturating_sub(self.inventory.entries.len()));
        if added == 0 {
            return Err(crate::census::AdoptError::Form.into());
        }
        let access = if self.exists { Access::Shared } else { Access::Owned };
        write_file(path, text.as_bytes(), access, Existing::Replace, &mut Straight)
            .map_err(crate::sign::SignError::from)?;
        Ok(Some(format!(
            "polctl census: {added} rows added to `{}`; each says `state: unclassified` and fails until you decide{full}",
            path.display()
        )))
    }

    /// Whether a row is about the same credential already.
    fn has_row(&self, found: &Found) -> bool {
        let label = found.material.label.as_ref().map(|label| crate::census::shown(label.as_bytes()));
        self.inventory.entries.iter().any(|entry| {
            entry.location == found.location
                && entry.kind == found.material.kind.name()
                && entry.fingerprint == found.material.fingerprint
                && label.as_ref().map_or(entry.labels.is_empty(), |label| entry.labels.contains(label))
        })
    }
}

fn text_of(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn read_inventory(path: &Path) -> std::io::Result<Vec<u8>> {
    use std::io::Read as _;
    let file = std::fs::File::open(path)?;
    let mut bytes = Vec::new();
    file.take(MAX_FILE_BYTES as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > MAX_FILE_BYTES {
        return Err(std::io::Error::other("it is larger than 4 MiB"));
    }
    Ok(bytes)
}

/// Whose view it is. The running system answers for the user who runs polctl; everybody else's
/// view is computed, and root's own is everything.
fn view(args: &CensusArgs, host: &Host) -> Result<View, Failure> {
    let own = rustix::process::geteuid().as_raw();
    let live = host.root.is_live();
    let Some(user) = &args.user else {
        if own == 0 || !live {
            return Ok(View::Everything);
        }
        let groups = rustix::process::getgroups().unwrap_or_default();
        let first = rustix::process::getegid().as_raw();
        let gids = groups.iter().map(|gid| gid.as_raw()).chain([first]).collect();
        return Ok(View::Own(Identity { name: host.accounts.user(own), uid: own, gids }));
    };
    let who = host.accounts.identity(user).ok_or_else(|| {
        Failure::usage(
            format!("the host has no user `{user}`"),
            "name a user of `etc/passwd` below the root, or give the user's number",
        )
    })?;
    Ok(if live && who.uid == own && own != 0 { View::Own(who) } else { View::User(who) })
}

fn scanned(args: &CensusArgs, host: &Host, view: &View, at: Timestamp) -> Scan {
    let environment = |name: &str| std::env::var(name).ok();
    let options = Options {
        now: at.seconds(),
        view: view.clone(),
        skip: &args.skip,
        also: &args.also,
        environment: &environment,
        home: environment("HOME"),
    };
    let mut last = Instant::now();
    let scan = host.scan(&options, &mut |progress| {
        if last.elapsed().as_millis() >= 200 {
            last = Instant::now();
            output::transient(&format!("polctl: {} files in {} directories …", progress.files, progress.directories));
        }
    });
    output::transient("");
    scan
}

/// The exit code (DESIGN 9): a certain finding weighs more than an open question.
fn census_exit_code(verdicts: &Verdicts, deny_warnings: bool) -> u8 {
    let fails = |level: Level| level == Level::Error || deny_warnings && level == Level::Warning;
    let has = |kind| verdicts.verdicts.iter().any(|v| fails(v.level) && info(v.code).kind == kind);
    if has(Kind::Policy) {
        exit::FINDINGS
    } else if has(Kind::Inconclusive) {
        exit::INCONCLUSIVE
    } else {
        exit::OK
    }
}

fn counts(scan: &Scan) -> CensusCounts {
    CensusCounts {
        homes: scan.homes,
        directories: scan.progress.directories,
        files: scan.progress.files,
        cut: scan.cut,
        closed: scan.told.closed_count(),
        unreadable: scan.told.gap_count,
    }
}

fn findings(verdicts: &Verdicts, map: &SourceMap) -> Vec<CensusFinding> {
    let finding = |verdict: &crate::census::Verdict| CensusFinding {
        code: verdict.code,
        level: verdict.level,
        message: verdict.message.clone(),
        help: verdict.help.clone(),
        location: verdict.location.clone(),
        line: verdict.line,
        row: verdict.row.map(|span| map.line_ref(span)),
    };
    verdicts.verdicts.iter().map(finding).collect()
}

fn places(notes: &[Note]) -> Vec<CensusPlace> {
    notes.iter().map(|note| CensusPlace { location: note.location.clone(), why: note.why.clone() }).collect()
}

fn credential(found: &Found, state: Option<&'static str>, host: &Host) -> CensusCredential {
    let material = &found.material;
    let detail = match &material.sign {
        Sign::Delegated { to } => Some(to.clone()),
        Sign::Expired { at } => Some(at.clone()),
        Sign::Unreadable { why } => Some(why.clone()),
        Sign::Live | Sign::Encrypted | Sign::Hardware | Sign::Empty => None,
    };
    CensusCredential {
        location: found.location.clone(),
        line: material.line,
        kind: material.kind.name().to_owned(),
        probe: found.probe.map(str::to_owned),
        label: material.label.as_ref().map(|label| crate::census::shown(label.as_bytes())),
        fingerprint: material.fingerprint.clone(),
        sign: material.sign.name().to_owned(),
        detail,
        state: state.map(str::to_owned),
        mode: format!("{:04o}", found.access.mode),
        owner: host.accounts.user(found.access.uid),
        group: host.accounts.group(found.access.gid),
        readers: readers(&found.access, host),
    }
}

/// Who can read a file beside root.
fn readers(access: &FileAccess, host: &Host) -> Vec<String> {
    let reads = |bits: u32| bits & 4 != 0;
    let mut out = Vec::new();
    if access.uid != 0 && reads(access.mode >> 6) {
        out.push(format!("owner {}", host.accounts.user(access.uid)));
    }
    match &access.acl {
        Some(acl) => {
            let held = |bits: u32| reads(bits & acl.mask);
            out.extend(held(acl.group).then(|| format!("group {}", host.accounts.group(access.gid))));
            let users = acl.users.iter().filter(|(_, bits)| held(*bits));
            out.extend(users.map(|(uid, _)| format!("user {} (ACL)", host.accounts.user(*uid))));
            let groups = acl.groups.iter().filter(|(_, bits)| held(*bits));
            out.extend(groups.map(|(gid, _)| format!("group {} (ACL)", host.accounts.group(*gid))));
        }
        None if reads(access.mode >> 3) => out.push(format!("group {}", host.accounts.group(access.gid))),
        None => {}
    }
    if access.acl_unknown {
        out.push("whoever its ACL names, which cannot be read".to_owned());
    }
    if reads(access.mode) {
        out.push("everyone".to_owned());
    }
    out.iter().map(|reader| crate::census::shown(reader.as_bytes())).collect()
}

/// The files for those who watch: each is the old one or the new one at any moment.
fn write_beside(args: &CensusArgs, census: &Census) -> Result<(), Failure> {
    for (path, text) in [(&args.metrics, census_metrics(census)), (&args.heartbeat, census_heartbeat(census))] {
        if let Some(path) = path {
            write_file(path, text.as_bytes(), Access::Owned, Existing::Replace, &mut Straight)
                .map_err(crate::sign::SignError::from)?;
        }
    }
    Ok(())
}
