//! Entries of which the last decides → rows of which the strictest does.

use super::super::rows;
use super::super::text::{End, Sign, TextPattern};
use super::super::{Imported, Loss, Options, Row};
use super::read::{Arguments, Command, Entry, Name, Policy, RunAs};
use crate::model::{CommandPattern, Glob, Matcher, Piece, SetTerm, Surface, Tier};

/// Directories in which the bare name of a command is looked for.
const STANDARD: [&str; 6] = ["/usr/bin", "/bin", "/usr/sbin", "/sbin", "/usr/local/bin", "/usr/local/sbin"];

/// Whom a list means, as far as rules can say.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Who {
    /// Everyone.
    All,
    /// These, by name.
    Names(Vec<String>),
    /// Nobody that is asked about.
    Nobody,
    /// Some, and rules cannot say which; the word that they cannot say.
    Unsaid(String),
}

/// An entry with its subjects.
struct Subject<'a> {
    entry: &'a Entry,
    users: Who,
    hosts: Who,
    run_as: Who,
}

pub(super) fn flatten(policy: &Policy, options: &Options) -> Imported {
    let mut out = Imported::default();
    let default_run_as = settings(policy, &mut out);
    let mut subjects: Vec<Subject<'_>> = policy
        .entries
        .iter()
        .map(|entry| Subject {
            entry,
            users: who(&entry.users, options.user.as_deref(), &options.groups),
            hosts: hosts(&entry.hosts, options.host.as_deref()),
            run_as: run_as(entry.run_as.as_ref(), default_run_as.as_ref()),
        })
        .collect();
    subjects.retain(|subject| subject.users != Who::Nobody && subject.hosts != Who::Nobody);
    let unmatched = everything(&mut subjects, &mut out);
    out.map(Surface::Sudo, unmatched);
    let mut directories = Vec::new();
    for (index, subject) in subjects.iter().enumerate() {
        let later = subjects.get(index + 1..).unwrap_or_default();
        let earlier = subjects.get(..index).unwrap_or_default();
        if later.iter().any(|other| other.replaces(subject)) {
            let text = "it never applies: a later entry is about the same command";
            out.note(subject.entry.spec.span, Loss::Told, text);
        } else if subject.entry.spec.negated {
            deny(subject, earlier, unmatched, &mut out);
        } else {
            allow(subject, (&subjects, later), unmatched, &mut directories, &mut out);
        }
    }
    directories.sort();
    directories.dedup();
    // With one directory a path stands for the bare name; with several it may be the wrong one.
    if directories.len() == 1 {
        out.trusted_dirs = directories;
    }
    out
}

/// What settings change; the run-as user when an entry states none.
fn settings(policy: &Policy, out: &mut Imported) -> Option<Name> {
    let mut default = None;
    for setting in &policy.settings {
        let text = setting.text.as_str();
        if let Some((_, value)) = text.split_once("runas_default") {
            let name = value.trim_start_matches([' ', '=', '\t']).split([' ', ',', '\t']).next().unwrap_or("");
            default = Some(Name { text: name.trim_matches('"').to_owned(), negated: false });
        }
        if text.contains("!authenticate") {
            out.note(setting.span, Loss::Narrower, "commands without `NOPASSWD` are asked about all the same");
        }
        if text.contains("noexec") || text.contains("use_pty") || text.contains("setenv") && !text.contains("!setenv") {
            out.note(setting.span, Loss::Told, "a rule says nothing of this setting; it stays with sudo");
        }
    }
    default
}

/// Whom a list of users means; its last name that matches decides.
fn who(names: &[Name], user: Option<&str>, groups: &[String]) -> Who {
    if let Some(user) = user {
        let mut found = Who::Nobody;
        for name in names {
            let hit = match name.text.as_str() {
                "ALL" => Some(true),
                text if text.starts_with(['+', '#']) || text.starts_with("%#") || text.starts_with("%:") => None,
                text => {
                    Some(text.strip_prefix('%').map_or(text == user, |group| groups.iter().any(|own| own == group)))
                }
            };
            match (hit, name.negated) {
                (Some(true), false) => found = Who::All,
                (Some(true), true) => found = Who::Nobody,
                (Some(false), _) => {}
                (None, _) => found = Who::Unsaid(name.text.clone()),
            }
        }
        return found;
    }
    listed(names, |text| !text.starts_with(['%', '+', '#']))
}

fn hosts(names: &[Name], host: Option<&str>) -> Who {
    let plain = |text: &str| {
        !text.starts_with('+')
            && !text.contains(['*', '?', '[', '/', ':'])
            && !text.bytes().all(|b| b.is_ascii_digit() || b == b'.')
    };
    let Some(host) = host else { return listed(names, plain) };
    let mut found = Who::Nobody;
    for name in names {
        match (name.text.as_str(), name.negated) {
            ("ALL", negated) => found = if negated { Who::Nobody } else { Who::All },
            (text, negated) if text == host => found = if negated { Who::Nobody } else { Who::All },
            (text, _) if !plain(text) => found = Who::Unsaid(text.to_owned()),
            _ => {}
        }
    }
    found
}

/// A list of names in which the last that matches decides, without knowing who asks.
fn listed(names: &[Name], plain: impl Fn(&str) -> bool) -> Who {
    let mut found = Who::Nobody;
    for name in names {
        found = match (name.text.as_str(), name.negated, found) {
            ("ALL", false, _) => Who::All,
            ("ALL", true, _) => Who::Nobody,
            (text, false, Who::All) if plain(text) => Who::All,
            (text, _, Who::Unsaid(_) | Who::Names(_) | Who::Nobody | Who::All) if !plain(text) || !is_name(text) => {
                Who::Unsaid(text.to_owned())
            }
            (text, false, Who::Names(mut names)) => {
                names.push(text.to_owned());
                Who::Names(names)
            }
            (text, false, Who::Nobody) => Who::Names(vec![text.to_owned()]),
            (text, true, Who::Names(names)) => Who::Names(names.into_iter().filter(|name| name != text).collect()),
            (text, true, Who::All) => Who::Unsaid(format!("!{text}")),
            (_, _, found) => found,
        };
    }
    found
}

/// Whether rules can name it.
fn is_name(text: &str) -> bool {
    !text.is_empty() && text.len() <= 128 && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.@".contains(&b))
}

fn run_as(stated: Option<&RunAs>, default: Option<&Name>) -> Who {
    match (stated, default) {
        (None, None) => Who::Names(vec!["root".into()]),
        (None, Some(name)) => listed(std::slice::from_ref(name), |_| true),
        (Some(list), _) if list.users.is_empty() => Who::Unsaid("a group alone".into()),
        (Some(list), _) => listed(&list.users, |text| !text.starts_with(['%', '+', '#'])),
    }
}

impl Who {
    /// Whether it is certain that everyone of the other is one of these.
    fn covers(&self, other: &Who) -> bool {
        match (self, other) {
            (Who::All, _) => true,
            (Who::Names(own), Who::Names(others)) => others.iter().all(|name| own.contains(name)),
            _ => false,
        }
    }

    /// Whether someone may be in both.
    fn meets(&self, other: &Who) -> bool {
        match (self, other) {
            (Who::Nobody, _) | (_, Who::Nobody) => false,
            (Who::Names(own), Who::Names(others)) => others.iter().any(|name| own.contains(name)),
            _ => true,
        }
    }
}

impl Subject<'_> {
    /// Whether every command of the other entry is decided by this one.
    fn replaces(&self, other: &Subject<'_>) -> bool {
        let (own, others) = (&self.entry.spec, &other.entry.spec);
        let command = own.command == Command::All || own.command == others.command;
        let certain = !own.digest && self.entry.option.is_none();
        command
            && certain
            && self.users.covers(&other.users)
            && self.hosts.covers(&other.hosts)
            && self.run_as.covers(&other.run_as)
    }

    /// Whether some command may be decided by both.
    fn meets(&self, other: &Subject<'_>) -> bool {
        let names = match (base(&self.entry.spec.command), base(&other.entry.spec.command)) {
            (Some(own), Some(others)) => {
                own.is_within(&others)
                    || others.is_within(&own)
                    || own.as_literal().is_none() && others.as_literal().is_none()
            }
            _ => true,
        };
        names && self.users.meets(&other.users) && self.hosts.meets(&other.hosts) && self.run_as.meets(&other.run_as)
    }
}

/// The base name of a command's program.
fn base(command: &Command) -> Option<Glob> {
    let Command::Path { path, .. } = command else { return None };
    let start = path.iter().rposition(|sign| *sign == Sign::Char('/')).map_or(0, |at| at + 1);
    let pieces = path.get(start..).unwrap_or_default().iter().map(|sign| match sign {
        Sign::Char(c) => Piece::Text(c.to_string()),
        Sign::Any | Sign::One => Piece::Any,
    });
    Some(Glob::new(pieces))
}

/// Takes the entries for every command out: they say what becomes of what no row matches.
fn everything(subjects: &mut Vec<Subject<'_>>, out: &mut Imported) -> Tier {
    let mut unmatched = Tier::DENY;
    let mut kept: Vec<Subject<'_>> = Vec::new();
    for subject in std::mem::take(subjects) {
        let span = subject.entry.spec.span;
        if subject.entry.spec.command != Command::All {
            kept.push(subject);
            continue;
        }
        let sure = subject.users == Who::All && subject.hosts == Who::All;
        match (subject.entry.spec.negated, sure) {
            (true, true) if subject.run_as == Who::All || subject.entry.run_as.is_none() => {
                // Denied: nothing before it counts.
                unmatched = Tier::DENY;
                kept.clear();
            }
            (true, _) => {
                out.note(span, Loss::Broader, "`!ALL` takes away all that stands before it");
                unmatched = Tier::DENY;
                kept.clear();
            }
            (false, true)
                if subject.run_as == Who::All && subject.entry.option.is_none() && !subject.entry.spec.digest =>
            {
                unmatched = Tier::UNMATCHED;
                kept.retain(|other| !subject.replaces(other));
                if subject.entry.nopasswd {
                    out.note(span, Loss::Narrower, "what no other rule matches is asked about; the source lets it run");
                }
            }
            (false, _) => {
                let text = "every command for some users, machines or run-as users only: a map has one answer for what no rule \
                            matches (`--user NAME --host NAME` imports for one)";
                out.note(span, Loss::LeftOut, text);
                // What it would have asked about again stays as it was, unless that is more.
                for other in kept
                    .iter()
                    .filter(|other| other.entry.nopasswd && !other.entry.spec.negated && !subject.entry.nopasswd)
                {
                    out.note(
                        other.entry.spec.span,
                        Loss::LeftOut,
                        "a later entry for every command asks about it again",
                    );
                }
                if !subject.entry.nopasswd {
                    kept.retain(|other| other.entry.spec.negated || !other.entry.nopasswd || !subject.meets(other));
                }
            }
        }
    }
    *subjects = kept;
    unmatched
}

/// The pattern of a command's arguments, with its program.
fn text_pattern(command: &Command) -> Option<TextPattern> {
    let Command::Path { path, arguments } = command else { return None };
    let start = path.iter().rposition(|sign| *sign == Sign::Char('/')).map_or(0, |at| at + 1);
    let mut signs: Vec<Sign> = path.get(start..).unwrap_or_default().to_vec();
    let end = if *arguments == Arguments::Any { End::Words } else { End::Exact };
    if let Arguments::Like(like) = arguments {
        signs.push(Sign::Char(' '));
        signs.extend(like);
    }
    Some(TextPattern::unquoted(&signs, end))
}

fn deny(subject: &Subject<'_>, earlier: &[Subject<'_>], unmatched: Tier, out: &mut Imported) {
    let spec = &subject.entry.spec;
    let span = spec.span;
    if unmatched == Tier::DENY && !earlier.iter().any(|other| !other.entry.spec.negated && subject.meets(other)) {
        // Denied already, like all that nothing permits.
        return;
    }
    let mut rows = match (&spec.command, text_pattern(&spec.command)) {
        (Command::Special(name), _) => {
            out.note(span, Loss::Told, format!("`{name}` is no command that rules speak of; nothing permits it"));
            return;
        }
        (_, Some(pattern)) => pattern.restrict(Tier::DENY, span, &[], &mut out.notes),
        (_, None) => {
            out.note(span, Loss::Broader, "a directory cannot be named in a rule, so every command is denied");
            vec![rows::plain(
                Tier::DENY,
                CommandPattern { programs: vec![Glob::any()], words: Vec::new(), rest: true },
                span,
            )]
        }
    };
    if spec.digest {
        out.note(span, Loss::Broader, "it is denied whatever its digest is");
    }
    for row in &mut rows {
        match &subject.users {
            Who::Names(names) => row.agents.clone_from(names),
            Who::Unsaid(name) => {
                out.note(span, Loss::Broader, format!("it holds for everyone, since rules cannot say `{name}`"));
            }
            _ => {}
        }
        match &subject.hosts {
            Who::Names(names) => row.hosts.clone_from(names),
            Who::Unsaid(name) => {
                out.note(span, Loss::Broader, format!("it holds everywhere, since rules cannot say `{name}`"));
            }
            _ => {}
        }
        row.matcher = broad(row.matcher.clone());
    }
    out.map(Surface::Sudo, unmatched).rows.extend(rows);
}

/// A restriction holds for every user that a command runs as.
fn broad(matcher: Matcher) -> Matcher {
    match matcher {
        Matcher::Command { pattern, with, only, unless, .. } => {
            Matcher::Command { pattern, with, only, unless, run_as: Vec::new() }
        }
        egress @ Matcher::Egress { .. } => egress,
    }
}

fn allow(
    subject: &Subject<'_>,
    (others, later): (&[Subject<'_>], &[Subject<'_>]),
    unmatched: Tier,
    directories: &mut Vec<String>,
    out: &mut Imported,
) {
    let span = subject.entry.spec.span;
    match allowed(subject, directories, out) {
        Err(why) => out.note(span, Loss::LeftOut, why),
        Ok(row) => {
            let narrower = later.iter().find(|other| {
                let stricter = !subject.entry.nopasswd && !other.entry.spec.negated && other.entry.nopasswd;
                stricter && other.meets(subject)
            });
            if let Some(other) = narrower {
                let text = "it asks also where an earlier entry asks; in the source the last entry decides";
                out.note(other.entry.spec.span, Loss::Narrower, text);
            }
            let rows = &mut out.map(Surface::Sudo, unmatched).rows;
            if row.tier == Tier::UNMATCHED && others.iter().any(|other| other.entry.nopasswd && other.meets(subject)) {
                // Restricting, `wrappers=sudo` is about lines with sudo on them alone.
                let mut bare = row.clone();
                bare.when.wrappers = Some(SetTerm::Empty);
                rows.push(bare);
            }
            rows.push(row);
        }
    }
}

fn allowed(subject: &Subject<'_>, directories: &mut Vec<String>, out: &mut Imported) -> Result<Row, String> {
    let spec = &subject.entry.spec;
    if spec.digest {
        return Err("it demands a digest, and a rule compares no files".into());
    }
    if let Some(option) = &subject.entry.option {
        return Err(format!("it holds under `{option}=` only, which a rule cannot say"));
    }
    let Command::Path { path, .. } = &spec.command else {
        return Err(match &spec.command {
            Command::Directory(path) => {
                format!("`{path}` is every command of a directory, and a rule names its programs")
            }
            Command::Special(name) => format!("`{name}` is no command that rules speak of"),
            _ => "every command, and a rule names its programs".into(),
        });
    };
    let text: String = path.iter().map(|sign| if let Sign::Char(c) = sign { *c } else { '*' }).collect();
    let (directory, _) = text.rsplit_once('/').unwrap_or(("", ""));
    if !STANDARD.contains(&directory) {
        return Err(format!("`{text}` lies where its bare name is not looked for, and a rule names programs by it"));
    }
    let agents = match &subject.users {
        Who::All => Vec::new(),
        Who::Names(names) => names.clone(),
        Who::Unsaid(name) => {
            return Err(format!("rules cannot say `{name}`; `--user NAME --group GROUP` imports for one user"));
        }
        Who::Nobody => return Err("it is about nobody".into()),
    };
    let hosts = match &subject.hosts {
        Who::All => Vec::new(),
        Who::Names(names) => names.clone(),
        Who::Unsaid(name) => return Err(format!("rules cannot say the machine `{name}`")),
        Who::Nobody => return Err("it is about no machine".into()),
    };
    let users = match &subject.run_as {
        Who::All => {
            out.note(spec.span, Loss::Narrower, "as root only; the source allows every run-as user");
            vec!["root".to_owned()]
        }
        Who::Names(names) => names.clone(),
        Who::Unsaid(name) => return Err(format!("rules cannot say the run-as user `{name}`")),
        Who::Nobody => return Err("it runs as nobody".into()),
    };
    let pattern = text_pattern(&spec.command).ok_or("it names no command")?;
    let (mut words, mut narrower) = pattern.words_of_permit()?;
    if matches!(&spec.command, Command::Path { arguments: Arguments::Like(_), .. }) {
        // A wildcard of the source crosses words, which nobody means who writes one.
        narrower |= words.rest || words.words.iter().flatten().any(|glob| glob.as_literal().is_none());
        words.rest = false;
    }
    let mut row = rows::permit(words.clone(), spec.span, &mut out.notes)?;
    if narrower {
        let text = format!("a wildcard stands for one argument: `{words}`; in the source it crosses words");
        out.note(spec.span, Loss::Narrower, text);
    }
    // The line that sudo stands on has it as its wrapper; a shell behind it is another command.
    row.when.wrappers = Some(SetTerm::In(["sudo".to_owned()].into()));
    if !subject.entry.nopasswd {
        row.tier = Tier::UNMATCHED;
    }
    (row.agents, row.hosts) = (agents, hosts);
    if let Matcher::Command { run_as, .. } = &mut row.matcher {
        *run_as = if users == ["root"] { Vec::new() } else { users };
    }
    directories.push(directory.to_owned());
    Ok(row)
}
