//! `polctl init`: a first policy set for a chosen profile.
//!
//! Asks on a terminal what is not given, shows what it would write, and writes all of it or
//! nothing; a file that exists is never touched. The texts are in `text/`; a profile is a
//! choice of them.

use std::io::{IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};

use super::args::{InitArgs, Profile};
use super::session::Failure;
use super::{exit, output};
use crate::model::PathPattern;

/// Where agents work when nobody says otherwise.
const WORKSPACE: &str = "/srv/agents";
/// The name of a set whose directory has none that can be used.
const SET: &str = "first";

pub(super) fn run(args: &InitArgs) -> Result<u8, Failure> {
    let asks = !args.yes && std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
    let profile = match args.profile {
        Some(profile) => profile,
        None if asks => ask_profile()?,
        None if args.yes => Profile::Reader,
        None => {
            return Err(Failure::usage(
                "no profile is given, and nobody is there to ask",
                "add `--profile reader`, `builder` or `operator` (or `--yes` for `reader`); nothing was written",
            ));
        }
    };
    let workspace = match &args.workspace {
        Some(_) if profile == Profile::Reader => {
            return Err(Failure::usage(
                "agents that only read have no workspace",
                "leave out `--workspace`, or choose `--profile builder`; nothing was written",
            ));
        }
        Some(given) => given.clone(),
        None if profile == Profile::Reader => WORKSPACE.to_owned(),
        None if asks => ask("Where do agents work? Without a question they write files only there", WORKSPACE)?,
        None => WORKSPACE.to_owned(),
    };
    let files = files(profile, &set_name(&args.dir), &checked(&workspace)?);
    refuse_existing(&args.dir, &files)?;
    if asks {
        let names: Vec<&str> = files.iter().map(|(name, _)| *name).collect();
        let question = format!("Write {} into `{}`?", names.join(", "), args.dir.display());
        if !matches!(ask(&question, "yes")?.as_str(), "y" | "yes" | "Y" | "Yes") {
            output::print("polctl init: nothing was written\n").ok();
            return Ok(exit::USAGE);
        }
    }
    write(&args.dir, &files)?;
    Ok(output::print(&done(profile, &args.dir, &files)).map_or_else(|code| code, |()| exit::OK))
}

/// What was written, and what to do next.
fn done(profile: Profile, dir: &Path, files: &[(&'static str, String)]) -> String {
    let names: Vec<&str> = files.iter().map(|(name, _)| *name).collect();
    let dir = dir.display();
    let hosts = if profile == Profile::Reader { "" } else { "Replace the example hosts in proxy.md by your own.\n" };
    format!(
        "polctl init: wrote {} in `{dir}`\n{hosts}\nNext:\n  polctl check --initial -C {dir}\n  polctl explain -p {dir} 'git push -f'\n  polctl report --html page.html -C {dir}\n",
        names.join(", ")
    )
}

fn ask_profile() -> Result<Profile, Failure> {
    let question = "What are agents to do here?\n  reader    look at code and answer; nothing is changed\n  builder   change code, build, test and commit\n  operator  as builder, and look after services\nProfile";
    let answer = ask(question, "reader")?;
    match answer.as_str() {
        "reader" => Ok(Profile::Reader),
        "builder" => Ok(Profile::Builder),
        "operator" => Ok(Profile::Operator),
        other => Err(Failure::usage(
            format!("there is no profile `{}`", other.escape_debug()),
            "profiles are `reader`, `builder` and `operator`; nothing was written",
        )),
    }
}

/// An answer from the terminal; the usual one when it is empty.
fn ask(question: &str, usual: &str) -> Result<String, Failure> {
    output::print(&format!("{question} [{usual}]: ")).ok();
    let mut answer = String::new();
    let failed = |source| Failure::Read { what: "the answer".into(), source };
    if std::io::stdin().read_line(&mut answer).map_err(failed)? == 0 {
        return Err(Failure::usage("the input ended", "answer the question, or give flags; nothing was written"));
    }
    let answer = answer.trim();
    Ok(if answer.is_empty() { usual.to_owned() } else { answer.to_owned() })
}

/// A workspace that can stand in `polctl.yaml` as it is.
fn checked(workspace: &str) -> Result<String, Failure> {
    let path = workspace.trim_end_matches('/');
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '.' | '_' | '-' | '~');
    let below = path.strip_prefix("~/").or_else(|| path.strip_prefix('/')).filter(|rest| !rest.is_empty());
    if below.is_none() || !path.chars().all(plain) || PathPattern::parse(&format!("{path}/**")).is_err() {
        return Err(Failure::usage(
            format!("the workspace `{}` is no directory that can be named in a policy", workspace.escape_debug()),
            "write a path such as `/srv/agents` or `~/work`: absolute or in a home, without blanks, and not the root",
        ));
    }
    Ok(path.to_owned())
}

/// A name for the set, after its directory.
fn set_name(dir: &Path) -> String {
    let full = dir.canonicalize().or_else(|_| std::path::absolute(dir)).unwrap_or_default();
    let name = full.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let name: String =
        name.chars().map(|c| if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') { c } else { '-' }).collect();
    let name = name.trim_matches('-');
    if name.is_empty() { SET.to_owned() } else { name.to_owned() }
}

/// The files of a profile, `polctl.yaml` last: without it the others are nothing.
fn files(profile: Profile, set: &str, workspace: &str) -> Vec<(&'static str, String)> {
    let mut out = vec![("CLAUDE_CMDS.md", commands(profile))];
    if profile == Profile::Operator {
        out.push(("SUDO.md", include_str!("text/sudo.md").to_owned()));
    }
    if profile != Profile::Reader {
        out.push(("proxy.md", include_str!("text/proxy.md").to_owned()));
    }
    let names: Vec<&str> = out.iter().map(|(name, _)| *name).collect();
    let zones = match profile {
        Profile::Reader => include_str!("text/zones-reader.yaml"),
        Profile::Builder | Profile::Operator => include_str!("text/zones.yaml"),
    };
    let config = include_str!("text/config.yaml")
        .replace("@ZONES@", zones)
        .replace("@SET@", set)
        .replace("@POLICIES@", &names.join(", "))
        .replace("@WORKSPACE@", workspace);
    out.push(("polctl.yaml", config));
    out
}

/// The map of commands: the parts that a profile needs, in order of tier.
fn commands(profile: Profile) -> String {
    let about = match profile {
        Profile::Reader => {
            "This set is for agents that read and answer. Nothing that changes a file runs without a person,\nexcept below /tmp."
        }
        Profile::Builder => {
            "This set is for agents that change code: they read, edit in their workspace, stage and commit. What\nleaves the machine, and what runs code of others, is for a sandbox or a person."
        }
        Profile::Operator => {
            "This set is for agents that change code and look after services. Reading the state of a service is\nfree; changing it is for a sandbox or a person, and the sudo map says what may run with more rights."
        }
    };
    let (builds, operates) = (profile != Profile::Reader, profile == Profile::Operator);
    let parts = [
        (true, include_str!("text/head.md")),
        (true, include_str!("text/tier0.md")),
        (operates, include_str!("text/tier0-operator.md")),
        (builds, include_str!("text/tier1.md")),
        (builds, include_str!("text/tier2.md")),
        (operates, include_str!("text/tier2-operator.md")),
        (true, include_str!("text/tier3.md")),
        (operates, include_str!("text/tier3-operator.md")),
        (true, include_str!("text/tier4.md")),
        (operates, include_str!("text/tier4-operator.md")),
    ];
    let text: String = parts.into_iter().filter(|(wanted, _)| *wanted).map(|(_, text)| text).collect();
    text.replace("@ABOUT@", about)
}

fn refuse_existing(dir: &Path, files: &[(&'static str, String)]) -> Result<(), Failure> {
    let known: Vec<String> = files
        .iter()
        .filter(|(name, _)| dir.join(name).symlink_metadata().is_ok())
        .map(|(name, _)| format!("`{name}`"))
        .collect();
    if known.is_empty() {
        return Ok(());
    }
    Err(Failure::usage(
        format!("{} exists already in `{}`", known.join(" and "), dir.display()),
        "init never overwrites; choose another directory with `--dir`, or move what is there. Nothing was written",
    ))
}

/// Writes all files or none: each beside its place first, then moved there, never over another.
fn write(dir: &Path, files: &[(&'static str, String)]) -> Result<(), Failure> {
    let failed = |what: &Path, source| Failure::Write { what: format!("`{}`", what.display()), source };
    std::fs::create_dir_all(dir).map_err(|source| failed(dir, source))?;
    let mut staged = Vec::new();
    for (name, text) in files {
        let target = dir.join(name);
        let mut file = super::compile::readable().tempfile_in(dir).map_err(|source| failed(&target, source))?;
        file.write_all(text.as_bytes())
            .and_then(|()| file.as_file().sync_all())
            .map_err(|source| failed(&target, source))?;
        staged.push((file, target));
    }
    let mut placed: Vec<PathBuf> = Vec::new();
    for (file, target) in staged {
        if let Err(error) = file.persist_noclobber(&target) {
            // Something came in between: what was placed until now goes again.
            placed.iter().for_each(|path| _ = std::fs::remove_file(path));
            return Err(failed(&target, error.error));
        }
        placed.push(target);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_workspace_is_a_plain_directory() {
        for good in ["/srv/agents", "~/work", "/srv/a-b/c_d/", "/w"] {
            assert!(checked(good).is_ok(), "{good}");
        }
        for bad in ["", "/", "~", "~/", "work", "../x", "/srv/a b", "/srv/\"]", "/srv/*", "/a/../b", "/a\n", "~root/x"]
        {
            assert!(checked(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_file_that_comes_in_between_is_kept_and_nothing_else_stays() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("b"), "mine").unwrap();
        let files = [("a", "x".to_owned()), ("b", "x".to_owned()), ("c", "x".to_owned())];
        assert!(write(dir.path(), &files).is_err());
        let names: Vec<_> = std::fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert_eq!(names, ["b"]);
        assert_eq!(std::fs::read_to_string(dir.path().join("b")).unwrap(), "mine");
    }
}
