//! What a census of a home of 200,000 files costs, beside `find` with a stat of each file.
//!
//! Both are whole processes, run by turns on the same tree. The figures that count are those of
//! this one run: the ratio of CPU time, and the most memory that polctl held. `CENSUS_FILES`
//! sets another number of files.

#![allow(clippy::print_stdout, clippy::unwrap_used, clippy::panic, reason = "a benchmark reports on the terminal")]

use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

/// A home as people have it: sources, notes and a few large files, no two alike.
fn home(root: &Path, files: usize) {
    for at in 0..files {
        let file = root.join(format!("home/dev/p{}/src{}/file{at}.txt", at / 5000, at / 50));
        if at % 50 == 0 {
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        }
        let mut text = String::new();
        for line in 0..(3 + at % 40) {
            writeln!(text, "{line} let value_{at} = compute(&state, {line}); // a line as others").unwrap();
        }
        std::fs::write(file, text).unwrap();
    }
    for at in 0..20 {
        std::fs::write(root.join(format!("home/dev/large{at}")), vec![b'a' + at; 2 << 20]).unwrap();
    }
}

/// CPU seconds that a command takes.
fn cost(program: &str, args: &[&str]) -> f64 {
    let before = of_children();
    let status = Command::new(program).args(args).stdout(Stdio::null()).stderr(Stdio::null()).status();
    let status = status.unwrap_or_else(|e| panic!("`{program}` cannot be run: {e}"));
    assert!(status.code().is_some_and(|code| code < 2), "{program}: {status}");
    of_children() - before
}

/// CPU seconds of all children so far (proc(5): `cutime` and `cstime`, in hundredths).
fn of_children() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
    let seconds = |at: usize| fields.get(at).unwrap().parse::<f64>().unwrap() / 100.0;
    seconds(13) + seconds(14)
}

/// The most memory that a run holds, by asking while it runs.
fn memory(program: &str, args: &[&str]) -> f64 {
    let mut child = Command::new(program).args(args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let mut most = 0.0_f64;
    while child.try_wait().unwrap().is_none() {
        if let Ok(status) = std::fs::read_to_string(format!("/proc/{}/status", child.id()))
            && let Some(line) = status.lines().find(|line| line.starts_with("VmHWM"))
        {
            let kib: f64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
            most = most.max(kib / 1024.0);
        }
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    most
}

fn main() {
    let files = std::env::var("CENSUS_FILES").ok().and_then(|n| n.parse().ok()).unwrap_or(200_000);
    let dir = tempfile::tempdir().unwrap();
    home(dir.path(), files);
    let root = dir.path().to_str().unwrap();
    let polctl = env!("CARGO_BIN_EXE_polctl");
    let census = ["census", "--root", root];
    // `%s` makes find ask for each file's size.
    let find = [root, "-printf", "%s\n"];
    cost("find", &find);
    cost(polctl, &census);
    let mut ratios = Vec::new();
    for _ in 0..7 {
        let (find, polctl) = (cost("find", &find), cost(polctl, &census));
        println!("find {:.2} s, census {:.2} s of CPU: {:.2} times", find, polctl, polctl / find);
        ratios.push(polctl / find);
    }
    ratios.sort_by(f64::total_cmp);
    let median = ratios.get(ratios.len() / 2).unwrap();
    let memory = memory(polctl, &census);
    println!("{files} files: median {median:.2} times find (at most 3), {memory:.0} MiB at most (below 100)");
}
