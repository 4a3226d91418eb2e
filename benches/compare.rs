//! How the cost of a comparison grows with the map: whole processes of `polctl diff`, one
//! widened rule, over maps of 1,000 and 10,000 rules in three shapes.
//!
//! polctl runs in one thread, so the shortest wall time of several runs is its CPU time. The
//! figures that count are ratios within one run: growth from 1,000 to 10,000 rules.

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a benchmark reports on the terminal"
)]

use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How the rules of a map spread over programs.
#[derive(Clone, Copy)]
enum Shape {
    /// 25 rules for each program.
    ManyPrograms,
    /// All rules about one program with many sub-commands.
    OneProgram,
    /// All rules about egress, one host each ten.
    Egress,
}

/// A map of `rules` rules; `widened` drops one exclusion in the middle.
fn map(shape: Shape, rules: usize, widened: bool) -> String {
    let mut tiers: [String; 5] = Default::default();
    for n in 0..rules {
        let special = widened && n == rules / 2;
        let (program, sub) = match shape {
            Shape::ManyPrograms => (format!("tool{}", n / 25), format!("verb{}", n % 25)),
            Shape::OneProgram => ("tool".to_owned(), format!("verb{n}")),
            Shape::Egress => (format!("host{}.example.com", n / 10), format!("path{}", n % 10)),
        };
        let tier = if special { 0 } else { [0, 0, 1, 2, 3, 4][n % 6] };
        let line = if matches!(shape, Shape::Egress) {
            let method = if special { "GET,POST" } else { "GET" };
            format!("{method} https://{program}/{sub}/**\n")
        } else {
            let exclusion = if special { "" } else { " --exec" };
            match tier {
                0 | 1 => format!("{program} {sub} ** unless: --output --config={n}{exclusion}\n"),
                2 => format!("{program} {sub} * **\n"),
                _ => format!("{program} {sub} ** with: --force -f --purge\n"),
            }
        };
        tiers[tier].push_str(&line);
    }
    let surface = if matches!(shape, Shape::Egress) { "egress" } else { "commands" };
    let mut out = format!("---\npolctl: v1\nsurface: {surface}\nunmatched: 2\n---\n# Map\n");
    for (tier, lines) in tiers.iter().enumerate() {
        write!(out, "\n## Tier {tier}\n\n```rules\n{lines}```\n").unwrap();
    }
    out
}

fn write_set(dir: &Path, text: &str) {
    std::fs::create_dir_all(dir).unwrap();
    std::fs::write(dir.join("polctl.yaml"), "polctl: v1\nset: bench\npolicies: [MAP.md]\n").unwrap();
    std::fs::write(dir.join("MAP.md"), text).unwrap();
}

/// The shortest of several runs.
fn time(old: &Path, new: &Path, want: i32) -> Duration {
    (0..7)
        .map(|_| {
            let start = Instant::now();
            let status = Command::new(env!("CARGO_BIN_EXE_polctl"))
                .args(["diff".as_ref(), "--no-cache".as_ref(), old.as_os_str(), new.as_os_str()])
                .stdout(Stdio::null())
                .status()
                .unwrap();
            assert_eq!(status.code(), Some(want), "the verdict is part of the benchmark");
            start.elapsed()
        })
        .min()
        .unwrap()
}

fn main() {
    let root = tempfile::tempdir().unwrap();
    println!("polctl diff, whole process, shortest of 7 runs\n");
    println!("{:14} {:>10} {:>10} {:>10} {:>8}", "shape", "rules", "equal", "widened", "growth");
    for (name, shape) in
        [("many programs", Shape::ManyPrograms), ("one program", Shape::OneProgram), ("egress", Shape::Egress)]
    {
        let mut first = None;
        for rules in [1_000, 10_000] {
            let dir = root.path().join(format!("{name}-{rules}"));
            let (old, same, new) = (dir.join("old"), dir.join("same"), dir.join("new"));
            let text = map(shape, rules, false);
            write_set(&old, &text);
            write_set(&same, &text);
            write_set(&new, &map(shape, rules, true));
            let equal = time(&old, &same, 0);
            let widened = time(&old, &new, 1);
            let growth =
                first.map_or(String::new(), |f: Duration| format!("{:.1}x", widened.as_secs_f64() / f.as_secs_f64()));
            first.get_or_insert(widened);
            println!(
                "{name:14} {rules:>10} {:>7.1} ms {:>7.1} ms {growth:>8}",
                equal.as_secs_f64() * 1e3,
                widened.as_secs_f64() * 1e3
            );
        }
    }
}
