//! `polctl hook --install`: the settings entry, written beside what is there.

use std::io::{IsTerminal, Read as _, Write as _};
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};
use similar::TextDiff;

use crate::cli::args::{HookArgs, Route};
use crate::cli::session::Failure;
use crate::cli::{exit, output};

/// Largest settings file that is read, in bytes.
const MAX_SETTINGS: u64 = 4 << 20;
/// Seconds that the client gives the hook; its own limit is five.
const CLIENT_LIMIT: u64 = 10;

fn usage(message: String, help: &str) -> Failure {
    Failure::Usage { message, help: help.into() }
}

pub(super) fn run(args: &HookArgs) -> Result<u8, Failure> {
    let path = settings_path(args)?;
    let before = current(&path)?;
    let mut settings: Value = match before.trim() {
        "" => json!({}),
        text => serde_json::from_str(text).map_err(|error| {
            usage(format!("`{}` is no JSON: {error}", path.display()), "correct it first; nothing was changed")
        })?,
    };
    let command = command(args)?;
    add(&mut settings, &command)
        .map_err(|what| usage(format!("`{}`: {what}", path.display()), "correct it first; nothing was changed"))?;
    let mut after = serde_json::to_string_pretty(&settings).unwrap_or_default();
    after.push('\n');
    if after == before {
        output::print(&format!("polctl hook: `{}` has the entry already\n", path.display())).ok();
        return Ok(exit::OK);
    }
    let shown = TextDiff::from_lines(before.as_str(), after.as_str())
        .unified_diff()
        .header(&format!("{} (now)", path.display()), &format!("{} (after)", path.display()))
        .to_string();
    if output::print(&shown).is_err() {
        return Err(usage("the difference could not be shown".into(), "nothing was changed"));
    }
    if !args.yes && !confirmed(&path)? {
        output::print("polctl hook: nothing was changed\n").ok();
        return Ok(exit::FINDINGS);
    }
    write(&path, &after)?;
    output::print(&format!("polctl hook: wrote `{}`; it counts from the next session on\n", path.display())).ok();
    Ok(exit::OK)
}

fn settings_path(args: &HookArgs) -> Result<PathBuf, Failure> {
    if let Some(path) = &args.settings {
        return Ok(path.clone());
    }
    std::env::var_os("HOME")
        .filter(|home| !home.is_empty())
        .map(|home| Path::new(&home).join(".claude/settings.json"))
        .ok_or_else(|| {
            usage(
                "HOME is not set, so where the settings are is not known".into(),
                "name the file with `--settings FILE`",
            )
        })
}

fn current(path: &Path) -> Result<String, Failure> {
    let failed =
        |error: std::io::Error| usage(format!("`{}` cannot be read: {error}", path.display()), "nothing was changed");
    let file = match std::fs::File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(String::new()),
        Err(error) => return Err(failed(error)),
    };
    let mut text = String::new();
    file.take(MAX_SETTINGS + 1).read_to_string(&mut text).map_err(failed)?;
    if u64::try_from(text.len()).unwrap_or(u64::MAX) > MAX_SETTINGS {
        return Err(usage(
            format!("`{}` is larger than 4 MiB", path.display()),
            "that is no settings file; nothing was changed",
        ));
    }
    Ok(text)
}

/// This program with the options of the hook, as a list of words: no shell reads it.
fn command(args: &HookArgs) -> Result<Vec<String>, Failure> {
    let text = |path: &Path| {
        let absolute = std::path::absolute(path).ok();
        absolute.as_deref().and_then(Path::to_str).map(str::to_owned).ok_or_else(|| {
            usage(format!("the path `{}` is no UTF-8 text", path.display()), "the settings file cannot hold it")
        })
    };
    let own = std::env::current_exe()
        .map_err(|error| usage(format!("where polctl is cannot be found out: {error}"), "nothing was changed"))?;
    let mut out = vec![text(&own)?, "hook".into(), "--policy".into(), text(&args.policy)?];
    for (option, path) in [("--trust", &args.trust), ("--state", &args.state), ("--audit", &args.audit)] {
        if let Some(path) = path {
            out.extend([option.to_owned(), text(path)?]);
        }
    }
    if let Some(envelope) = &args.envelope {
        out.extend(["--envelope".to_owned(), envelope.clone()]);
    }
    for (given, option) in [(args.unverified, "--unverified"), (args.external, "--external")] {
        if given {
            out.push(option.into());
        }
    }
    if args.route == Route::Deny {
        out.extend(["--route".into(), "deny".into()]);
    }
    for (option, value, usual) in [("--agent", &args.agent, "agent"), ("--host", &args.host, "host")] {
        if value != usual {
            out.extend([option.to_owned(), value.clone()]);
        }
    }
    if let Some(daemon) = &args.daemon {
        out.extend(["--daemon".into(), daemon.clone()]);
    }
    Ok(out)
}

/// Adds the hook to both events, taking away an entry that an earlier install left.
fn add(settings: &mut Value, command: &[String]) -> Result<(), String> {
    let root = settings.as_object_mut().ok_or("it is no JSON object")?;
    let hooks = root.entry("hooks").or_insert_with(|| json!({}));
    let hooks = hooks.as_object_mut().ok_or("`hooks` is no object")?;
    let (program, arguments) = command.split_first().ok_or("the command is empty")?;
    let mut test: Vec<String> = arguments.to_vec();
    test.push("--self-test".into());
    // `onFailure`: a hook that cannot start or times out must block as one that says no.
    let decide = json!({
        "type": "command", "command": program, "args": arguments, "timeout": CLIENT_LIMIT, "onFailure": "block"
    });
    let begin = json!({ "type": "command", "command": program, "args": test, "timeout": CLIENT_LIMIT });
    event(hooks, "PreToolUse", Some("*"), &decide)?;
    event(hooks, "SessionStart", None, &begin)
}

fn event(hooks: &mut Map<String, Value>, name: &str, matcher: Option<&str>, hook: &Value) -> Result<(), String> {
    let list = hooks.entry(name).or_insert_with(|| json!([]));
    let list = list.as_array_mut().ok_or_else(|| format!("`hooks.{name}` is no list"))?;
    list.retain(|group| !is_own(group));
    let mut group = Map::new();
    if let Some(matcher) = matcher {
        group.insert("matcher".into(), json!(matcher));
    }
    group.insert("hooks".into(), json!([hook]));
    list.push(Value::Object(group));
    Ok(())
}

/// A group that holds nothing but a polctl hook.
fn is_own(group: &Value) -> bool {
    let hooks = group.get("hooks").and_then(Value::as_array);
    hooks.is_some_and(|hooks| {
        !hooks.is_empty()
            && hooks.iter().all(|hook| {
                let program = hook.get("command").and_then(Value::as_str).unwrap_or("");
                let first = hook.get("args").and_then(|args| args.get(0)).and_then(Value::as_str);
                program.rsplit('/').next() == Some("polctl") && first == Some("hook")
            })
    })
}

fn confirmed(path: &Path) -> Result<bool, Failure> {
    if !std::io::stdin().is_terminal() {
        return Err(usage(
            format!("`{}` would change, and nobody is there to agree", path.display()),
            "run it on a terminal, or add `--yes`; nothing was changed",
        ));
    }
    output::print("Write this? [y/N] ").ok();
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer).ok();
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

/// Writes beside and moves into place; the mode stays what it was.
fn write(path: &Path, text: &str) -> Result<(), Failure> {
    let failed = |source| Failure::Write { what: format!("`{}`", path.display()), source };
    // A link is followed, so that settings which are kept elsewhere stay there.
    let target = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let dir = target.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    std::fs::create_dir_all(dir).map_err(failed)?;
    let mut file = tempfile::NamedTempFile::new_in(dir).map_err(failed)?;
    file.write_all(text.as_bytes()).and_then(|()| file.as_file().sync_all()).map_err(failed)?;
    if let Ok(metadata) = std::fs::metadata(&target) {
        file.as_file().set_permissions(metadata.permissions()).map_err(failed)?;
    }
    file.persist(&target).map_err(|error| failed(error.error))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_entry_is_added_once_and_everything_else_stays() {
        let command: Vec<String> = ["/usr/bin/polctl", "hook", "--policy", "/p"].map(str::to_owned).to_vec();
        let mut settings: Value = serde_json::from_str(
            r#"{"z":1,"hooks":{"PreToolUse":[{"matcher":"Bash","hooks":[{"type":"command","command":"other"}]}],"Stop":[]},"a":[2]}"#,
        )
        .unwrap();
        add(&mut settings, &command).unwrap();
        let once = settings.clone();
        add(&mut settings, &command).unwrap();
        assert_eq!(settings, once);
        let list = settings["hooks"]["PreToolUse"].as_array().unwrap();
        assert_eq!((list.len(), &list[0]["hooks"][0]["command"]), (2, &json!("other")));
        assert_eq!(list[1]["hooks"][0]["onFailure"], json!("block"));
        assert_eq!(settings.as_object().unwrap().keys().collect::<Vec<_>>(), ["z", "hooks", "a"]);
        for bad in ["[]", r#"{"hooks":[]}"#, r#"{"hooks":{"PreToolUse":{}}}"#] {
            assert!(add(&mut serde_json::from_str(bad).unwrap(), &command).is_err(), "{bad}");
        }
    }
}
