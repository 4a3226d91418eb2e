//! CPU time of verifying a set of 100 MB against `sha256sum` on the same files, and the time
//! of verifying a set of usual size. Fails when the first is more than 1.3 times the second,
//! or the other takes more than 5 ms.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::panic,
    clippy::cast_precision_loss,
    missing_docs,
    reason = "a benchmark that cannot go on fails, and its output is its purpose"
)]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use polctl::sign::{
    Base, Digest, EnvelopeAt, FileSigner, POLICY_SET_TYPE, PinnedKey, PolicyDir, Request, Role, Rollback, Skip,
    Straight, Subject, Timestamp, Trust, payload, sign, verify, write_envelope,
};
use rustix::time::{ClockId, clock_gettime};

const ENVELOPE: &str = "polctl.sig.json";
const NOW: i64 = 1_800_000_000;

fn now() -> Timestamp {
    Timestamp::from_seconds(NOW).unwrap()
}

/// Seconds of CPU time that this process has used.
fn cpu() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// A signed set of `count` files of `size` bytes.
fn set(root: &Path, name: &str, count: usize, size: usize) -> PathBuf {
    let dir = root.join(name);
    std::fs::create_dir_all(dir.join("maps")).unwrap();
    let line = b"- `git status --porcelain **` shows what changed\n";
    for number in 0..count {
        let mut text = format!("# {number}\n").into_bytes();
        text.extend(line.iter().cycle().take(size));
        std::fs::write(dir.join(format!("maps/{number:03}.md")), text).unwrap();
    }
    let signer = FileSigner::generate(&root.join(format!("{name}.pem")), &mut Straight).unwrap();
    let key = PinnedKey {
        signer: "bench".into(),
        public: signer.public_key().unwrap(),
        roles: [Role::Release].into(),
        not_before: None,
        not_after: None,
    };
    let trust = Trust::first("bench", key).unwrap();
    std::fs::write(root.join(format!("{name}.json")), trust.to_bytes()).unwrap();
    let files = PolicyDir::open(&dir).unwrap().read_all(&Skip::default()).unwrap();
    let subject = Subject {
        set: "bench".into(),
        sequence: 1,
        policy_id: Digest::of(b""),
        base: Base::Initial,
        issued: now(),
        expires: now().plus(1000),
        polctl: "0".into(),
    };
    let set = payload(subject, &files, &trust).unwrap();
    let (envelope, _) = sign(POLICY_SET_TYPE, set.to_bytes(), Role::Release, &signer, &trust, now()).unwrap();
    write_envelope(&dir.join(ENVELOPE), &envelope, &mut Straight).unwrap();
    dir
}

fn check(root: &Path, name: &str, rollback: Rollback) {
    let request = Request {
        dir: &root.join(name),
        envelope: EnvelopeAt::Inside(ENVELOPE.into()),
        trust: &root.join(format!("{name}.json")),
        rollback,
        expect: None,
        ignored: &[],
        online: None,
        now: now(),
    };
    verify(&request).unwrap();
}

fn least(runs: usize, mut run: impl FnMut() -> f64) -> f64 {
    (0..runs).map(|_| run()).fold(f64::INFINITY, f64::min)
}

/// User and system time of `sha256sum`, as the shell counts them.
fn sha256sum(dir: &Path) -> f64 {
    let script = format!("TIMEFORMAT='%U %S'; time sha256sum '{}'/maps/* >/dev/null", dir.display());
    let output = Command::new("bash").args(["-c", &script]).env("LC_ALL", "C").output();
    let output =
        output.unwrap_or_else(|error| panic!("bash and sha256sum are needed ({error}): install bash, coreutils"));
    let text = String::from_utf8(output.stderr).unwrap();
    text.split_whitespace().map(|number| number.parse::<f64>().unwrap_or_else(|_| panic!("{text}"))).sum()
}

fn main() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path();
    let dir = set(root, "large", 32, 3_125_000);
    let ours = least(7, || {
        let before = cpu();
        check(root, "large", Rollback::FloorOnly);
        cpu() - before
    });
    let theirs = least(7, || sha256sum(&dir));
    set(root, "usual", 12, 20_000);
    let state = root.join("state.json");
    let usual = least(50, || {
        let before = Instant::now();
        check(root, "usual", Rollback::State(state.clone()));
        before.elapsed().as_secs_f64()
    });
    let ratio = ours / theirs;
    println!("100 MB: verify {ours:.3} s, sha256sum {theirs:.3} s of CPU, ratio {ratio:.2} (at most 1.3)");
    println!("usual set (12 files of 20 kB), with state: {:.2} ms (at most 5)", usual * 1e3);
    assert!(ratio <= 1.3 && usual <= 0.005, "too slow");
}
