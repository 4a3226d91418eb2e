//! What checking manifests costs: 500 of them with 10,000 entries, each changed in one entry, against
//! their previous version. The figure that counts is the processor time of whole `polctl check`s.

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a benchmark reports on the terminal"
)]

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

/// One manifest with 20 entries; `changed`: one of them lets more through.
fn manifest(number: usize, changed: bool) -> String {
    let mut out =
        format!("polctl: v1\nsubject: {{ image: image-{number} }}\nhome: /home/agent\ncapabilities:\n  net.egress:\n");
    for entry in 0..8 {
        let tier = ["auto", "notify", "ask"][entry % 3];
        let port = if changed && entry == 3 { "443, 8443" } else { "443" };
        writeln!(
            out,
            "    - {{ tier: {tier}, domains: [\"**.h{entry}.example.org\", \"api{number}.example.net\"], ports: [{port}], tls_inspect: {} }}",
            entry % 2 == 0
        )
        .unwrap();
    }
    out.push_str("  fs.scope:\n");
    for entry in 0..8 {
        let tier = ["auto", "notify", "ask"][entry % 3];
        writeln!(out, "    - {{ tier: {tier}, read: [/srv/r{entry}, /srv/r{entry}/a/b], write: [/srv/w{entry}], deny: [/srv/r{entry}/a] }}").unwrap();
    }
    out.push_str("  gpu:\n    - { tier: ask, device_ids: [\"0\", \"1\"], mode: compute }\n    - { tier: ask, device_ids: [\"2\"], mode: render }\n");
    out.push_str("  credentials:\n    - { tier: ask, broker_scopes: [\"github:read\"] }\n  clipboard:\n    - { tier: ask, paste_in: true }\n");
    out
}

fn set(dir: &Path, changed: bool) {
    std::fs::create_dir_all(dir.join("capabilities")).unwrap();
    let config = "polctl: v1\nset: bench\npolicies: [MAP.md]\nmanifests: [\"capabilities/*.yaml\"]\n";
    std::fs::write(dir.join("polctl.yaml"), config).unwrap();
    std::fs::write(dir.join("MAP.md"), "---\npolctl: v1\nsurface: commands\n---\n# Map\n\n## Tier 0\n\n- `ls **`\n")
        .unwrap();
    for number in 0..500 {
        std::fs::write(dir.join(format!("capabilities/m{number}.yaml")), manifest(number, changed)).unwrap();
    }
}

/// User and system time of this process's children so far, in seconds.
fn children() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    // Fields 16 and 17 of proc(5), in ticks of 10 ms.
    [13, 14].iter().map(|at| fields[*at].parse::<f64>().unwrap()).sum::<f64>() / 100.0
}

fn main() {
    let dir = tempfile::tempdir().unwrap();
    let (old, new) = (dir.path().join("old"), dir.path().join("new"));
    set(&old, false);
    set(&new, true);
    for (what, base, widened) in [("every manifest changed", &old, true), ("nothing changed", &new, false)] {
        // The base must not be the directory itself.
        let copy = dir.path().join(format!("copy-{widened}"));
        set(&copy, !widened);
        let before = children();
        let output = Command::new(env!("CARGO_BIN_EXE_polctl"))
            .args([
                "check",
                "--no-cache",
                "--format",
                "json",
                "--base",
                copy.to_str().unwrap(),
                "-C",
                new.to_str().unwrap(),
            ])
            .output()
            .unwrap();
        let took = children() - before;
        let report: serde_json::Value = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|e| panic!("{e}: {}", String::from_utf8_lossy(&output.stderr)));
        let found = report["findings"].as_array().unwrap().iter().filter(|f| f["code"] == "widening").count();
        println!("{took:6.2} s of CPU, {found} widenings: {what}");
        assert_eq!(found > 0, widened, "{}", base.display());
    }
}
