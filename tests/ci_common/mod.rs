//! The other side of continuous integration, as far as polctl's own files need it: GitHub's
//! runner (commands in a log, expressions, environment files, composite actions) and the shell
//! of Woodpecker. Written from their documentation, not from what polctl does.

#![allow(
    dead_code,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::panic,
    reason = "shared by several tests, each of which uses a part; a test that cannot go on fails"
)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

/// Names and values of an environment.
pub type Env = BTreeMap<String, String>;

/// A workflow command that asks for an annotation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Annotation {
    /// `error`, `warning` or `notice`.
    pub level: String,
    /// As the runner reads them back.
    pub properties: BTreeMap<String, String>,
    /// As the runner reads it back.
    pub message: String,
}

impl Annotation {
    /// A property as a number.
    pub fn number(&self, name: &str) -> usize {
        self.properties[name].parse().unwrap()
    }
}

/// What a runner makes of a log.
#[derive(Debug, Default)]
pub struct Log {
    /// Annotations, in order.
    pub annotations: Vec<Annotation>,
    /// Names of all other commands that were carried out.
    pub commands: Vec<String>,
    /// Lines that are shown.
    pub shown: Vec<String>,
}

impl Log {
    /// Annotations of a level.
    pub fn of(&self, level: &str) -> Vec<&Annotation> {
        self.annotations.iter().filter(|a| a.level == level).collect()
    }
}

const COMMANDS: [&str; 14] = [
    "error",
    "warning",
    "notice",
    "debug",
    "group",
    "endgroup",
    "add-mask",
    "set-output",
    "save-state",
    "set-env",
    "add-path",
    "echo",
    "stop-commands",
    "add-matcher",
];

/// Reads a log as the runner does: the older form `##[name]` is found anywhere in a line.
pub fn read_log(text: &str) -> Log {
    let mut log = Log::default();
    let mut stopped: Option<String> = None;
    for line in text.lines() {
        let parsed = newer(line).or_else(|| older(line));
        match (&stopped, parsed) {
            (Some(token), Some((name, ..))) if name == *token => stopped = None,
            (None, Some((name, _, data))) if name == "stop-commands" => stopped = Some(data),
            (None, Some((name, properties, message))) if COMMANDS.contains(&name.as_str()) => {
                if matches!(name.as_str(), "error" | "warning" | "notice") {
                    log.annotations.push(Annotation { level: name, properties, message });
                } else {
                    log.commands.push(name);
                }
            }
            _ => log.shown.push(line.to_owned()),
        }
    }
    assert!(stopped.is_none(), "commands stay stopped");
    log
}

type Parsed = (String, BTreeMap<String, String>, String);

fn newer(line: &str) -> Option<Parsed> {
    let rest = line.trim_start().strip_prefix("::")?;
    let (head, data) = rest.split_once("::")?;
    let (name, properties) = head.split_once(' ').unwrap_or((head, ""));
    let pairs = properties.split(',').filter_map(|pair| pair.trim().split_once('='));
    let properties = pairs
        .map(|(key, value)| {
            let value = value.replace("%0D", "\r").replace("%0A", "\n").replace("%3A", ":").replace("%2C", ",");
            (key.to_owned(), value.replace("%25", "%"))
        })
        .collect();
    let data = data.replace("%0D", "\r").replace("%0A", "\n").replace("%25", "%");
    Some((name.to_owned(), properties, data))
}

fn older(line: &str) -> Option<Parsed> {
    let (_, rest) = line.split_once("##[")?;
    let (head, data) = rest.split_once(']')?;
    let name = head.split(' ').next()?.to_owned();
    COMMANDS.contains(&name.as_str()).then(|| (name, BTreeMap::new(), data.to_owned()))
}

/// Reads a YAML file.
pub fn yaml(path: &Path) -> Value {
    serde_saphyr::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// Runs a program and returns what it printed; it must succeed.
pub fn run(dir: &Path, program: &str, args: &[&str]) -> String {
    let output = Command::new(program)
        .args(args)
        .current_dir(dir)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_AUTHOR_DATE", "2026-01-01T00:00:00Z")
        .env("GIT_COMMITTER_DATE", "2026-01-01T00:00:00Z")
        .output()
        .unwrap_or_else(|e| panic!("{program}: {e}"));
    assert!(output.status.success(), "{program} {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
}

/// Runs git.
pub fn git(dir: &Path, args: &[&str]) -> String {
    let mut all = vec!["-c", "user.name=Test", "-c", "user.email=test@example.com", "-c", "init.defaultBranch=main"];
    all.extend(args);
    run(dir, "git", &all)
}

/// A job of GitHub Actions.
pub struct Job {
    /// The checkout.
    pub workspace: PathBuf,
    /// The runner's own files.
    pub temp: PathBuf,
    /// Where the action lies.
    pub action: PathBuf,
    /// Name of the event.
    pub event_name: String,
    /// Its payload.
    pub event: Value,
    /// `GITHUB_SHA`.
    pub sha: String,
    /// What `with` says.
    pub with: Env,
    /// More environment.
    pub env: Env,
}

/// What became of a composite action.
#[derive(Debug)]
pub struct Done {
    /// Exit code of the step that failed, else 0.
    pub code: i32,
    /// Standard output of all steps.
    pub stdout: String,
    /// Standard error of all steps.
    pub stderr: String,
    /// Its outputs.
    pub outputs: Env,
    /// The summary.
    pub summary: String,
}

impl Done {
    /// What the runner makes of it.
    pub fn log(&self) -> Log {
        read_log(&self.stdout)
    }
}

impl Job {
    /// Runs a composite action as the runner does, but for steps that use another action.
    pub fn run(&self) -> Done {
        let action = yaml(&self.action.join("action.yml"));
        assert_eq!(action["runs"]["using"], "composite");
        let mut done =
            Done { code: 0, stdout: String::new(), stderr: String::new(), outputs: Env::new(), summary: String::new() };
        let mut steps: BTreeMap<String, Env> = BTreeMap::new();
        let inputs = self.inputs(&action);
        for (number, step) in action["runs"]["steps"].as_array().unwrap().iter().enumerate() {
            if done.code != 0 || !self.holds(step["if"].as_str(), &inputs, &steps) || step.get("uses").is_some() {
                continue;
            }
            assert_eq!(step["shell"], "bash", "a step of a composite action names its shell");
            let text = step["run"].as_str().unwrap();
            assert!(!text.contains("${{"), "an expression in a script is an injection: {text}");
            let files = self.temp.join(format!("step-{number}"));
            std::fs::create_dir_all(&files).unwrap();
            let output = self.step(step, text, &files, &inputs, &steps);
            done.stdout.push_str(&String::from_utf8(output.stdout).unwrap());
            done.stderr.push_str(&String::from_utf8(output.stderr).unwrap());
            done.code = output.status.code().unwrap();
            done.summary.push_str(&std::fs::read_to_string(files.join("summary")).unwrap());
            if let Some(id) = step["id"].as_str() {
                steps.insert(id.to_owned(), pairs(&std::fs::read_to_string(files.join("output")).unwrap()));
            }
        }
        for (name, output) in action["outputs"].as_object().unwrap() {
            let value = self.expanded(output["value"].as_str().unwrap(), &inputs, &steps);
            done.outputs.insert(name.clone(), value);
        }
        done
    }

    fn inputs(&self, action: &Value) -> Env {
        let declared = action["inputs"].as_object().unwrap();
        assert!(self.with.keys().all(|name| declared.contains_key(name)), "an input that the action does not have");
        let default = |value: &Value| value["default"].as_str().unwrap_or("").to_owned();
        let value = |(name, input): (&String, &Value)| {
            (name.clone(), self.with.get(name).cloned().unwrap_or_else(|| default(input)))
        };
        declared.iter().map(value).collect()
    }

    fn step(&self, step: &Value, text: &str, files: &Path, inputs: &Env, steps: &BTreeMap<String, Env>) -> Output {
        let script = files.join("script.sh");
        std::fs::write(&script, text).unwrap();
        let mut command = Command::new("bash");
        command.args(["--noprofile", "--norc", "-e", "-o", "pipefail"]).arg(&script);
        command.current_dir(&self.workspace).env_clear();
        command.env("PATH", std::env::var_os("PATH").unwrap()).env("HOME", &self.temp);
        command.env("GIT_CONFIG_NOSYSTEM", "1").env("GIT_CONFIG_GLOBAL", "/dev/null");
        let event = files.join("event.json");
        std::fs::write(&event, self.event.to_string()).unwrap();
        for (name, path) in [
            ("GITHUB_WORKSPACE", &self.workspace),
            ("GITHUB_ACTION_PATH", &self.action),
            ("RUNNER_TEMP", &self.temp),
            ("GITHUB_EVENT_PATH", &event),
        ] {
            command.env(name, path);
        }
        for (name, file) in [
            ("GITHUB_OUTPUT", "output"),
            ("GITHUB_STEP_SUMMARY", "summary"),
            ("GITHUB_ENV", "env"),
            ("GITHUB_PATH", "path"),
        ] {
            std::fs::write(files.join(file), "").unwrap();
            command.env(name, files.join(file));
        }
        command.env("CI", "true").env("GITHUB_ACTIONS", "true").env("GITHUB_EVENT_NAME", &self.event_name);
        command.env("GITHUB_SHA", &self.sha).env("GITHUB_SERVER_URL", "https://forge.example").envs(&self.env);
        for (name, value) in step["env"].as_object().into_iter().flatten() {
            command.env(name, self.expanded(value.as_str().unwrap(), inputs, steps));
        }
        command.output().unwrap()
    }

    /// A text with its expressions replaced: paths into contexts, joined by `||`.
    fn expanded(&self, text: &str, inputs: &Env, steps: &BTreeMap<String, Env>) -> String {
        let Some((before, rest)) = text.split_once("${{") else { return text.to_owned() };
        let (expression, after) = rest.split_once("}}").unwrap();
        let value = expression
            .split("||")
            .map(|operand| self.value(operand.trim(), inputs, steps))
            .find(|value| !value.is_empty())
            .unwrap_or_default();
        format!("{before}{value}{}", self.expanded(after, inputs, steps))
    }

    fn value(&self, path: &str, inputs: &Env, steps: &BTreeMap<String, Env>) -> String {
        let parts: Vec<&str> = path.split('.').collect();
        match parts.as_slice() {
            ["inputs", name] => inputs.get(*name).unwrap_or_else(|| panic!("no input {name}")).clone(),
            ["steps", id, "outputs", name] => {
                steps.get(*id).and_then(|outputs| outputs.get(*name)).cloned().unwrap_or_default()
            }
            ["github", "event", rest @ ..] => {
                let value = rest.iter().fold(&self.event, |value, key| &value[key]);
                value.as_str().map_or_else(String::new, str::to_owned)
            }
            ["github", "action_repository"] => "tools/polctl".to_owned(),
            ["github", "action_ref"] => "v0".to_owned(),
            ["runner", "os"] => "Linux".to_owned(),
            ["runner", "arch"] => "X64".to_owned(),
            _ => panic!("the runner of the tests does not know `{path}`"),
        }
    }

    /// Conditions of the one form that the action uses: `PATH == ''`.
    fn holds(&self, condition: Option<&str>, inputs: &Env, steps: &BTreeMap<String, Env>) -> bool {
        condition.is_none_or(|condition| {
            let path = condition.strip_suffix(" == ''").unwrap_or_else(|| panic!("{condition}"));
            self.value(path, inputs, steps).is_empty()
        })
    }
}

/// `name=value` lines of an environment file.
fn pairs(text: &str) -> Env {
    text.lines()
        .map(|line| {
            let (name, value) = line.split_once('=').unwrap_or_else(|| panic!("`{line}` is no output"));
            (name.to_owned(), value.to_owned())
        })
        .collect()
}

/// Runs the commands of a Woodpecker workflow in order, as its agent does: one shell a step,
/// which ends at the first command that fails. Returns the exit code and all that was printed.
pub fn woodpecker(file: &Path, workspace: &Path, env: &Env, path: &str) -> (i32, String) {
    let text = std::fs::read_to_string(file).unwrap();
    assert!(!text.contains("${"), "Woodpecker itself replaces such variables, before YAML is read");
    let workflow = yaml(file);
    let mut printed = String::new();
    for step in workflow["steps"].as_array().unwrap() {
        assert!(step["image"].is_string() && step["name"].is_string());
        let mut script = String::new();
        for command in step["commands"].as_array().unwrap() {
            script.push_str(command.as_str().unwrap());
            script.push('\n');
        }
        let output = Command::new("sh")
            .args(["-e", "-c", &script])
            .current_dir(workspace)
            .env_clear()
            .env("PATH", path)
            .env("HOME", workspace.parent().unwrap())
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("CI", "woodpecker")
            .envs(env)
            .output()
            .unwrap();
        printed.push_str(&String::from_utf8_lossy(&output.stdout));
        printed.push_str(&String::from_utf8_lossy(&output.stderr));
        if !output.status.success() {
            return (output.status.code().unwrap(), printed);
        }
    }
    (0, printed)
}
