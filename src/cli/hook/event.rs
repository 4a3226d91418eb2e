//! What the client sends on standard input, as the hook protocol documents it.

use serde::Deserialize;

/// Largest event that is read, in bytes.
pub(super) const MAX_EVENT: u64 = 8 << 20;

/// One event. Fields that the hook does not use may be anything and may grow.
#[derive(Debug, Deserialize)]
pub(super) struct Event {
    /// `PreToolUse` is the one that is decided.
    pub(super) hook_event_name: String,
    /// The directory that the tool works in.
    pub(super) cwd: Option<String>,
    /// For the audit.
    pub(super) session_id: Option<String>,
    /// For the audit.
    pub(super) tool_use_id: Option<String>,
    /// `Bash`, `Read`, …
    pub(super) tool_name: String,
    /// Its arguments.
    pub(super) tool_input: serde_json::Value,
}

/// What a tool is about to do.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Act {
    /// Runs a shell line.
    Line(String),
    /// Reads files: a file, a directory, a pattern of names.
    Read(Vec<String>),
    /// Writes a file.
    Write(String),
    /// Fetches a URL.
    Fetch(String),
    /// Runs something in a way that polctl does not read.
    Code,
    /// A tool that touches neither files, network nor commands, or that polctl does not know.
    Other,
}

impl Event {
    /// Reads an event.
    ///
    /// # Errors
    ///
    /// A sentence.
    pub(super) fn read(text: &str) -> Result<Self, String> {
        let event: Event = serde_json::from_str(text).map_err(|error| format!("the event cannot be read: {error}"))?;
        if event.hook_event_name != "PreToolUse" {
            return Err(format!("the event is `{}`, and this hook decides `PreToolUse`", event.hook_event_name));
        }
        Ok(event)
    }

    /// What the tool is about to do.
    ///
    /// # Errors
    ///
    /// A sentence, when an argument that decides is missing or of another type.
    pub(super) fn act(&self) -> Result<Act, String> {
        let text = |name: &str| {
            let value = self.tool_input.get(name).and_then(serde_json::Value::as_str);
            value.map(str::to_owned).ok_or_else(|| format!("`tool_input.{name}` of `{}` is no text", self.tool_name))
        };
        let optional = |name: &str| match self.tool_input.get(name) {
            None | Some(serde_json::Value::Null) => Ok(".".to_owned()),
            Some(_) => text(name),
        };
        let below = |dir: &str, pattern: &str| {
            if pattern.starts_with(['/', '~']) { pattern.to_owned() } else { format!("{dir}/{pattern}") }
        };
        match self.tool_name.as_str() {
            "Bash" => text("command").map(Act::Line),
            "Read" => Ok(Act::Read(vec![text("file_path")?])),
            "LS" => Ok(Act::Read(vec![optional("path")?])),
            "Grep" => {
                let dir = optional("path")?;
                let files = self.tool_input.get("glob").and_then(serde_json::Value::as_str);
                let files = files.map(|glob| below(&dir, glob));
                Ok(Act::Read(std::iter::once(dir).chain(files).collect()))
            }
            "Glob" => {
                let dir = optional("path")?;
                Ok(Act::Read(vec![below(&dir, &text("pattern")?), dir]))
            }
            "NotebookRead" => Ok(Act::Read(vec![text("notebook_path")?])),
            "Write" | "Edit" | "MultiEdit" => text("file_path").map(Act::Write),
            "NotebookEdit" => text("notebook_path").map(Act::Write),
            "WebFetch" => text("url").map(Act::Fetch),
            // `PowerShell`, `REPL`, `Monitor`, tools of servers: what they run is not read here.
            _ if ["command", "script", "code", "cmd"].iter().any(|name| self.tool_input.get(name).is_some()) => {
                Ok(Act::Code)
            }
            _ => Ok(Act::Other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(tool: &str, input: &str) -> Event {
        let text = format!(
            r#"{{"hook_event_name":"PreToolUse","tool_name":"{tool}","tool_input":{input},"cwd":"/w","new":[1]}}"#
        );
        Event::read(&text).unwrap()
    }

    #[test]
    fn tools_are_what_they_do() {
        let act = |tool, input| event(tool, input).act();
        assert_eq!(act("Bash", r#"{"command":"ls","timeout":5}"#), Ok(Act::Line("ls".into())));
        assert_eq!(act("Edit", r#"{"file_path":"/a"}"#), Ok(Act::Write("/a".into())));
        assert_eq!(act("Grep", r#"{"pattern":"x"}"#), Ok(Act::Read(vec![".".into()])));
        assert_eq!(
            act("Glob", r#"{"pattern":"*.rs","path":"/a"}"#),
            Ok(Act::Read(vec!["/a/*.rs".into(), "/a".into()]))
        );
        assert_eq!(act("PowerShell", r#"{"command":"ls"}"#), Ok(Act::Code));
        assert_eq!(act("WebFetch", r#"{"url":"https://a.example/"}"#), Ok(Act::Fetch("https://a.example/".into())));
        assert_eq!(act("TodoWrite", "{}"), Ok(Act::Other));
        for bad in ["{}", r#"{"command":5}"#, r#"{"command":null}"#, "[]", "null"] {
            assert!(act("Bash", bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn what_is_no_event_is_refused() {
        for bad in [
            "",
            "{",
            "[]",
            "5",
            r#"{"hook_event_name":"PreToolUse"}"#,
            r#"{"hook_event_name":"Stop","tool_name":"a","tool_input":{}}"#,
        ] {
            assert!(Event::read(bad).is_err(), "{bad}");
        }
    }
}
