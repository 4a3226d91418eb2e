//! A real Chromium, driven over the `DevTools` protocol through two pipes: no port, no network.

#![allow(
    dead_code,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "shared by tests; a test that cannot go on fails"
)]

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::{Value, json};

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_mins(1);
/// What the executable may be called.
const NAMES: [&str; 5] = ["chromium", "chromium-browser", "google-chrome", "chrome", "chrome-headless-shell"];

/// The browser: `CHROMIUM`, one on PATH, or the one that `scripts/chromium` fetched.
fn executable() -> PathBuf {
    if let Some(set) = std::env::var_os("CHROMIUM").filter(|set| !set.is_empty()) {
        return set.into();
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let on_path = std::env::split_paths(&path).flat_map(|dir| NAMES.map(|name| dir.join(name)));
    let fetched = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap().join("chromium/chromium");
    on_path.chain([fetched]).find(|path| path.is_file()).unwrap_or_else(|| {
        panic!(
            "these tests need Chromium: run scripts/chromium, or install it (Debian: `apt-get install chromium`), or set CHROMIUM=/path/to/chromium"
        )
    })
}

/// A running browser with one page.
pub struct Browser {
    child: Child,
    input: Option<ChildStdin>,
    messages: Receiver<Value>,
    session: String,
    next: u64,
    /// Every event since the last page was opened.
    pub events: Vec<Value>,
    _profile: tempfile::TempDir,
}

impl Browser {
    /// Starts it. The profile is new, and no name is ever resolved.
    pub fn start() -> Self {
        let profile = tempfile::tempdir().unwrap();
        let executable = executable();
        let mut child = Command::new("sh")
            // The protocol is spoken on descriptors 3 and 4.
            .args(["-c", "exec \"$0\" \"$@\" 3<&0 4>&1 0</dev/null 1>/dev/null"])
            .arg(&executable)
            .args(["--headless=new", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu", "--no-first-run"])
            .args([
                "--disable-background-networking",
                "--disable-component-update",
                "--disable-sync",
                "--disable-extensions",
            ])
            .args(["--disable-dev-shm-usage", "--host-resolver-rules=MAP * ~NOTFOUND", "--lang=en-US"])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .arg("about:blank")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap_or_else(|error| panic!("{} cannot be started: {error}", executable.display()));
        let input = child.stdin.take();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let (sender, messages) = channel();
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            while output.read_until(0, &mut bytes).is_ok_and(|read| read > 0) {
                bytes.pop();
                if let Ok(message) = serde_json::from_slice(&bytes)
                    && sender.send(message).is_err()
                {
                    return;
                }
                bytes.clear();
            }
        });
        let (session, events) = (String::new(), Vec::new());
        let mut browser = Browser { child, input, messages, session, next: 1, events, _profile: profile };
        let target = browser.call("Target.createTarget", &json!({"url": "about:blank"}));
        let attached = browser.call("Target.attachToTarget", &json!({"targetId": target["targetId"], "flatten": true}));
        attached["sessionId"].as_str().unwrap().clone_into(&mut browser.session);
        for domain in ["Page", "Runtime", "Log", "Network", "Accessibility", "Audits"] {
            browser.call(&format!("{domain}.enable"), &json!({}));
        }
        browser
    }

    /// One call; events that come before its answer are kept.
    pub fn call(&mut self, method: &str, params: &Value) -> Value {
        let id = self.next;
        self.next += 1;
        let mut message = json!({"id": id, "method": method, "params": params});
        if !self.session.is_empty() {
            message["sessionId"] = json!(self.session);
        }
        let input = self.input.as_mut().unwrap();
        input.write_all(format!("{message}\0").as_bytes()).and_then(|()| input.flush()).unwrap();
        loop {
            let answer = self.message(method);
            if answer["id"] == id {
                assert!(answer.get("error").is_none(), "{method}: {answer}");
                return answer["result"].clone();
            }
            self.events.push(answer);
        }
    }

    fn message(&self, waiting_for: &str) -> Value {
        self.messages.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("the browser does not answer: {waiting_for}"))
    }

    fn wait(&mut self, event: &str) {
        while !self.events.iter().any(|e| e["method"] == event) {
            let message = self.message(event);
            self.events.push(message);
        }
    }

    /// Opens a file and waits until it is loaded.
    pub fn open(&mut self, file: &Path) {
        self.events.clear();
        let url = format!("file://{}", file.canonicalize().unwrap().display());
        let went = self.call("Page.navigate", &json!({ "url": url }));
        assert!(went.get("errorText").is_none(), "{went}");
        self.wait("Page.loadEventFired");
    }

    /// The value of an expression.
    pub fn eval(&mut self, expression: &str) -> Value {
        let given = json!({"expression": expression, "returnByValue": true, "awaitPromise": true});
        let answer = self.call("Runtime.evaluate", &given);
        assert!(answer.get("exceptionDetails").is_none(), "{expression}: {answer}");
        answer["result"]["value"].clone()
    }

    /// Presses a key, as a person does.
    pub fn key(&mut self, key: &str) {
        let text = if key.chars().count() == 1 { key } else { "" };
        let kind = if text.is_empty() { "rawKeyDown" } else { "keyDown" };
        let code = match key {
            "Escape" => 27,
            "Tab" => 9,
            _ => 0,
        };
        let down = json!({"type": kind, "key": key, "text": text, "windowsVirtualKeyCode": code});
        self.call("Input.dispatchKeyEvent", &down);
        self.call("Input.dispatchKeyEvent", &json!({"type": "keyUp", "key": key, "windowsVirtualKeyCode": code}));
    }

    /// Width and height in CSS pixels.
    pub fn size(&mut self, width: u32, height: u32, mobile: bool) {
        let metrics = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": mobile});
        self.call("Emulation.setDeviceMetricsOverride", &metrics);
    }

    /// `screen` or `print`, and what the system's colours are.
    pub fn media(&mut self, media: &str, colours: &str) {
        let features = json!([{"name": "prefers-color-scheme", "value": colours}]);
        self.call("Emulation.setEmulatedMedia", &json!({"media": media, "features": features}));
    }

    /// Everything that the browser complains of: exceptions, console errors, log entries, refused
    /// content, and any request but for the page itself.
    pub fn complaints(&mut self) -> Vec<String> {
        // Whatever is still on its way comes before this answer.
        self.eval("new Promise((done) => setTimeout(done, 50))");
        let wrong = |event: &&Value| match event["method"].as_str().unwrap_or("") {
            "Runtime.exceptionThrown" | "Audits.issueAdded" => true,
            "Runtime.consoleAPICalled" => true,
            "Log.entryAdded" => event["params"]["entry"]["level"] != "verbose",
            "Network.requestWillBeSent" => event["params"]["type"] != "Document",
            "Page.javascriptDialogOpening" | "Page.windowOpen" | "Target.targetCreated" => true,
            _ => false,
        };
        self.events.iter().filter(wrong).map(ToString::to_string).collect()
    }

    /// Roles and names of what a screen reader is told.
    pub fn spoken(&mut self) -> Vec<(String, String)> {
        let tree = self.call("Accessibility.getFullAXTree", &json!({}));
        let text = |node: &Value, key: &str| node[key]["value"].as_str().unwrap_or("").to_owned();
        let nodes = tree["nodes"].as_array().unwrap();
        nodes.iter().filter(|n| n["ignored"] != true).map(|n| (text(n, "role"), text(n, "name"))).collect()
    }

    /// A picture of the whole page, as PNG.
    pub fn screenshot(&mut self) -> Vec<u8> {
        use base64::Engine as _;
        let given = json!({"format": "png", "captureBeyondViewport": true});
        let shot = self.call("Page.captureScreenshot", &given);
        base64::prelude::BASE64_STANDARD.decode(shot["data"].as_str().unwrap()).unwrap()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // It ends when nobody speaks to it any more.
        self.input = None;
        _ = self.child.kill();
        _ = self.child.wait();
    }
}
