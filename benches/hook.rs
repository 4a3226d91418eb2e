//! What one decision costs: whole processes of `polctl hook` on a signed policy of 1,000 rules,
//! beside a program that does nothing, run by turns so that both see the same machine.
//!
//! The figures that count are the ones of this one run: the median of each line, and what it is
//! above the program that does nothing.

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a benchmark reports on the terminal"
)]

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// 1,000 rules: most about programs of their own, 250 about git and docker, as real maps are.
fn map() -> String {
    let mut tiers: [String; 5] = Default::default();
    for n in 0..1000 {
        let (program, word) = match n % 8 {
            0 => ("git".to_owned(), format!("verb{}", n / 8)),
            1 => ("docker".to_owned(), format!("verb{}", n / 8)),
            _ => (format!("tool{}", n / 16), format!("verb{}", n % 16)),
        };
        let tier = [0, 0, 1, 2, 3, 4][n % 6];
        let attributes = if tier < 2 { " unless: --exec --config=x" } else { " with: --force -f" };
        writeln!(tiers[tier], "{program} {word} **{attributes}").unwrap();
    }
    let extra = [
        "git {status,log,diff} **\n{cat,ls,grep,cd,head,wc} **\n",
        "cargo {build,test} **\n",
        "",
        "git push **\n",
        "rm ** with: -rf\n",
    ];
    let mut out = "---\npolctl: v1\nsurface: commands\n---\n# Map\n".to_owned();
    for (tier, lines) in tiers.iter().enumerate() {
        write!(out, "\n## Tier {tier}\n\n```rules\n{}{lines}```\n", extra[tier]).unwrap();
    }
    out
}

fn polctl(args: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_polctl")).args(args).output().unwrap();
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn run(mut command: Command, input: &[u8]) -> Duration {
    let begun = Instant::now();
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    // A program that does nothing does not read.
    let _ = child.stdin.take().unwrap().write_all(input);
    let output = child.wait_with_output().unwrap();
    let took = begun.elapsed();
    assert!(output.status.success());
    took
}

fn median(mut times: Vec<Duration>) -> f64 {
    times.sort();
    times[times.len() / 2].as_secs_f64() * 1000.0
}

fn main() {
    const RUNS: usize = 200;
    let dir = tempfile::tempdir().unwrap();
    let set = dir.path().join("policy");
    std::fs::create_dir(&set).unwrap();
    std::fs::write(set.join("polctl.yaml"), "polctl: v1\nset: bench\npolicies: [MAP.md]\n").unwrap();
    std::fs::write(set.join("MAP.md"), map()).unwrap();
    let path = |path: &Path| path.to_str().unwrap().to_owned();
    let (set, key, trust, state) = (
        path(&set),
        path(&dir.path().join("key.pem")),
        path(&dir.path().join("trust.json")),
        path(&dir.path().join("state")),
    );
    polctl(&["compile", "--bundle", "-C", &set]);
    let printed = polctl(&["keys", "generate", &key]);
    // 32 bytes in standard base64.
    let public = printed.split_whitespace().find(|word| word.len() == 44 && word.ends_with('=')).unwrap();
    polctl(&["keys", "pin", "--trust", &trust, "--set", "bench", "--public", public, "--signer", "bench"]);
    polctl(&["sign", "-C", &set, "--initial", "--trust", &trust, "--signer", "file", "--key-file", &key]);
    println!("bundle: {} bytes", std::fs::metadata(format!("{set}/polctl.bundle")).unwrap().len());
    let event = |line: &str| {
        serde_json::json!({"hook_event_name": "PreToolUse", "cwd": "/srv/agents/app", "tool_name": "Bash", "tool_input": {"command": line}})
            .to_string()
    };
    for line in [
        "git status",
        "cd /srv/agents/app && git log --oneline -5 | head -3",
        "tool7 verb3 a b",
        "for f in a b; do grep -n \"$f\" src/main.rs > /tmp/$f; done; git push -f origin main",
    ] {
        let (mut hook, mut nothing) = (Vec::new(), Vec::new());
        let text = event(line);
        for _ in 0..RUNS {
            let mut command = Command::new(env!("CARGO_BIN_EXE_polctl"));
            command.args(["hook", "--policy", &set, "--trust", &trust, "--state", &state]);
            hook.push(run(command, text.as_bytes()));
            nothing.push(run(Command::new("true"), text.as_bytes()));
        }
        let (hook, nothing) = (median(hook), median(nothing));
        println!("{hook:6.2} ms, {nothing:5.2} ms for `true`, {:5.2} ms above: {line}", hook - nothing);
        assert!(hook > nothing);
    }
}
