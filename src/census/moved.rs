//! Environment variables that move places: where the processes of the host and the start-up
//! files of its users say that a tool looks elsewhere.
//!
//! Only the variables that the table names are taken out of an environment; everything else in
//! it is dropped unread.

use std::collections::{BTreeMap, BTreeSet};

use super::accounts::Account;
use super::probe::probes;
use super::root::Root;

/// Most bytes of one environment or start-up file.
const MAX_BYTES: usize = 1024 * 1024;
/// Most processes that are asked.
const MAX_PROCESSES: usize = 20_000;

/// Files in which users set variables, below their homes.
const STARTUP: [&str; 13] = [
    ".profile",
    ".bash_profile",
    ".bash_login",
    ".bashrc",
    ".bash_aliases",
    ".zprofile",
    ".zshenv",
    ".zshrc",
    ".pam_environment",
    ".config/environment.d/envvars.conf",
    ".config/fish/config.fish",
    ".envrc",
    ".xprofile",
];

/// Variables of one user, as one process or start-up file sets them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Setting {
    /// The home that `~` stands for.
    pub(super) home: String,
    /// Names with their values.
    pub(super) values: BTreeMap<String, String>,
}

/// A value that only the shell knows.
pub(super) struct Computed {
    pub(super) variable: String,
    pub(super) file: String,
}

/// What variables can move a place.
pub(super) fn variables() -> BTreeSet<&'static str> {
    probes().iter().flat_map(|probe| &probe.moved_by).map(|moved| moved.variable.as_str()).collect()
}

/// The settings of all running processes. Nothing for a mounted image.
pub(super) fn of_processes(root: &Root, accounts: &[Account]) -> BTreeSet<Setting> {
    let names = variables();
    let mut settings = BTreeSet::new();
    if !root.is_live() {
        return settings;
    }
    let Ok(proc) = root.look_up(b"/proc", None) else { return settings };
    let processes = proc.names().unwrap_or_default().into_iter().filter(|name| name.iter().all(u8::is_ascii_digit));
    for process in processes.take(MAX_PROCESSES) {
        let path = format!("/proc/{}/environ", String::from_utf8_lossy(&process));
        let Ok(place) = root.look_up(path.as_bytes(), None) else { continue };
        let uid = place.stat.st_uid;
        // A process that ended or is another's has nothing to say here.
        let Ok(file) = place.open_file() else { continue };
        let mut bytes = Vec::new();
        if super::root::read_up_to(&file, &mut bytes, MAX_BYTES).is_err() {
            continue;
        }
        let values = environment(&bytes, &names);
        let home = accounts.iter().find(|account| account.uid == uid).map_or("/", |account| &account.home);
        if !values.is_empty() {
            settings.insert(Setting { home: home.to_owned(), values });
        }
    }
    settings
}

fn environment(bytes: &[u8], names: &BTreeSet<&'static str>) -> BTreeMap<String, String> {
    let entries = bytes.split(|b| *b == 0).filter_map(|entry| std::str::from_utf8(entry).ok()?.split_once('='));
    let wanted = entries.filter(|(name, value)| names.contains(name) && !value.is_empty());
    wanted.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

/// The settings of start-up files, and those that polctl cannot know.
pub(super) fn of_startup(root: &Root, homes: &[String]) -> (BTreeSet<Setting>, Vec<Computed>) {
    let names = variables();
    let (mut settings, mut computed) = (BTreeSet::new(), Vec::new());
    for home in homes {
        for file in STARTUP {
            let path = format!("{}/{file}", home.trim_end_matches('/'));
            let Some(bytes) = root.read_small(&path, MAX_BYTES) else { continue };
            let mut values = BTreeMap::new();
            for line in String::from_utf8_lossy(&bytes).lines() {
                let Some((name, value)) = assignment(line).filter(|(name, _)| names.contains(name)) else { continue };
                match expanded(value, home) {
                    Some(value) => drop(values.insert(name.to_owned(), value)),
                    None => computed.push(Computed { variable: name.to_owned(), file: path.clone() }),
                }
            }
            if !values.is_empty() {
                settings.insert(Setting { home: home.clone(), values });
            }
        }
    }
    (settings, computed)
}

/// `export NAME=value`, `NAME=value`, and fish's `set -gx NAME value`.
fn assignment(line: &str) -> Option<(&str, &str)> {
    let line = line.trim();
    if let Some(rest) = line.strip_prefix("set -").and_then(|rest| rest.split_once(' ')) {
        return rest.1.trim().split_once(' ').map(|(name, value)| (name, value.trim()));
    }
    let line = line.strip_prefix("export ").or_else(|| line.strip_prefix("typeset -x ")).unwrap_or(line);
    line.trim().split_once('=')
}

/// The value as the shell makes it, where that needs nothing but the home.
fn expanded(value: &str, home: &str) -> Option<String> {
    let literal = value.strip_prefix('\'').and_then(|rest| rest.split('\'').next());
    if let Some(literal) = literal {
        return Some(literal.to_owned());
    }
    let (value, quoted) = match value.strip_prefix('"') {
        Some(rest) => (rest.split('"').next().unwrap_or(rest), true),
        None => (value.split([' ', '\t', ';', '#']).next().unwrap_or(value), false),
    };
    let value = value.replace("${HOME}", home).replace("$HOME", home);
    let value = match value.strip_prefix('~').filter(|rest| !quoted && (rest.is_empty() || rest.starts_with('/'))) {
        Some(rest) => format!("{home}{rest}"),
        None => value,
    };
    (!value.contains(['$', '`', '(', '"', '\''])).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn assignments_of_shells_are_read_as_far_as_text_tells() {
        for (line, expected) in [
            ("export KUBECONFIG=$HOME/k/config # mine", Some(("KUBECONFIG", Some("/h/k/config")))),
            ("KUBECONFIG=\"${HOME}/a:/b\"", Some(("KUBECONFIG", Some("/h/a:/b")))),
            ("  export X='$HOME/a'", Some(("X", Some("$HOME/a")))),
            ("X=~/a", Some(("X", Some("/h/a")))),
            ("X=\"~/a\"", Some(("X", Some("~/a")))),
            ("set -gx X /a/b", Some(("X", Some("/a/b")))),
            ("export X=$(pwd)/a", Some(("X", None))),
            ("export X=$OTHER/a", Some(("X", None))),
            ("echo hello", None),
        ] {
            let read = assignment(line).map(|(name, value)| (name, expanded(value, "/h")));
            assert_eq!(read, expected.map(|(name, value)| (name, value.map(str::to_owned))), "{line}");
        }
    }

    #[test]
    fn only_variables_of_the_table_leave_an_environment() {
        let names = BTreeSet::from(["KUBECONFIG"]);
        let values = environment(b"TOKEN=s3cret\0KUBECONFIG=/k\0KUBECONFIG2=/x\0\xff=1\0", &names);
        assert_eq!(values, BTreeMap::from([("KUBECONFIG".to_owned(), "/k".to_owned())]));
    }
}
