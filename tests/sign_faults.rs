//! Whoever is killed while writing leaves the old file or the new one, both good.
//!
//! The first test starts this very test executable again; the child signs and kills itself
//! before the step that it was told. The second kills the real executable at many moments.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test that cannot go on fails")]

mod sign_common;

use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::Command;

use polctl::sign::{
    Envelope, EnvelopeAt, FileSigner, POLICY_SET_TYPE, PolicyDir, PolicySet, Request, Role, Rollback, Skip, Step,
    Steps, Subject, Timestamp, Verified, load_trust, payload, sign, verify, verify_with, write_envelope,
};
use sign_common::{Desk, ENVELOPE};

const STEPS: [Step; 7] =
    [Step::Create, Step::WriteFirst, Step::WriteRest, Step::SyncFile, Step::Rename, Step::SyncDirectory, Step::Done];

/// Kills this process before one step.
struct KillBefore(Step);

impl Steps for KillBefore {
    fn before(&mut self, step: Step) -> std::io::Result<()> {
        if step == self.0 {
            let own = rustix::process::getpid();
            rustix::process::kill_process(own, rustix::process::Signal::KILL)?;
        }
        Ok(())
    }
}

fn now() -> Timestamp {
    Timestamp::from_seconds(jiff::Timestamp::now().as_second()).unwrap()
}

fn verified(root: &Path) -> Verified {
    verify(&request(&root.join("policy"), &root.join("trust.json"), Rollback::FloorOnly)).unwrap()
}

fn request<'a>(dir: &'a Path, trust: &'a Path, rollback: Rollback) -> Request<'a> {
    let envelope = EnvelopeAt::Inside(ENVELOPE.into());
    Request { dir, envelope, trust, rollback, expect: None, ignored: &[], online: None, now: now() }
}

/// The child: does nothing unless it is told where.
#[test]
fn child() {
    let Some(root) = std::env::var_os("POLCTL_TEST_FAULT_DIR") else { return };
    let root = Path::new(&root);
    let step: usize = std::env::var("POLCTL_TEST_FAULT_STEP").unwrap().parse().unwrap();
    let mut kill = KillBefore(STEPS[step]);
    if std::env::var("POLCTL_TEST_FAULT_WHAT").unwrap() == "state" {
        let (dir, trust) = (root.join("policy"), root.join("trust.json"));
        drop(verify_with(&request(&dir, &trust, Rollback::State(root.join("state.json"))), &mut kill));
    } else {
        let dir = PolicyDir::open(&root.join("policy")).unwrap();
        let trust = load_trust(&root.join("trust.json"), Some(&dir)).unwrap();
        let skip = Skip { envelope: Some(ENVELOPE.into()), ..Skip::default() };
        let files = dir.read_all(&skip).unwrap();
        let old = Envelope::parse(&std::fs::read(root.join("policy").join(ENVELOPE)).unwrap()).unwrap();
        let old = PolicySet::parse(old.payload()).unwrap();
        let subject = Subject {
            set: old.set,
            sequence: old.sequence + 1,
            policy_id: old.policy_id,
            base: old.base,
            issued: now(),
            expires: now().plus(3600),
            polctl: "0.1.0".into(),
        };
        let set = payload(subject, &files, &trust).unwrap();
        let signer = FileSigner::open(&root.join("a.pem")).unwrap();
        let (envelope, _) = sign(POLICY_SET_TYPE, set.to_bytes(), Role::Release, &signer, &trust, now()).unwrap();
        write_envelope(&root.join("policy").join(ENVELOPE), &envelope, &mut kill).unwrap();
    }
}

fn run_child(root: &Path, what: &str, step: usize) {
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", "child", "--nocapture"]).env("POLCTL_TEST_FAULT_DIR", root);
    child.env("POLCTL_TEST_FAULT_STEP", step.to_string()).env("POLCTL_TEST_FAULT_WHAT", what);
    let output = child.output().unwrap();
    assert_eq!(output.status.signal(), Some(9), "step {step}: {}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn a_signer_killed_at_any_step_leaves_a_good_envelope() {
    for (at, step) in STEPS.iter().enumerate() {
        let desk = Desk::new();
        desk.sign("a.pem", &["--initial"]).exits(0);
        run_child(desk.root.path(), "envelope", at);
        let sequence = verified(desk.root.path()).payload().sequence;
        let renamed = matches!(step, Step::SyncDirectory | Step::Done);
        assert_eq!(sequence, if renamed { 2 } else { 1 }, "{step:?}");
        // And what it left does not stand in the way of the next one.
        desk.sign("a.pem", &["--initial"]).exits(0);
        assert_eq!(verified(desk.root.path()).payload().sequence, sequence + 1);
    }
}

#[test]
fn a_verifier_killed_at_any_step_leaves_a_good_state() {
    for (at, step) in STEPS.iter().enumerate() {
        let desk = Desk::new();
        desk.sign("a.pem", &["--initial"]).exits(0);
        desk.verify(&["--enforce"]).exits(0);
        desk.sign("a.pem", &["--initial"]).exits(0);
        run_child(desk.root.path(), "state", at);
        let state = String::from_utf8(desk.get("state.json")).unwrap();
        let renamed = matches!(step, Step::SyncDirectory | Step::Done);
        assert!(state.contains(if renamed { "\"sequence\": 2" } else { "\"sequence\": 1" }), "{step:?}: {state}");
        // The lock of the dead process is gone.
        desk.verify(&["--enforce"]).exits(0);
    }
}

#[test]
fn the_executable_killed_at_any_moment_leaves_a_good_envelope() {
    let desk = Desk::new();
    desk.sign("a.pem", &["--initial"]).exits(0);
    let begin = std::time::Instant::now();
    desk.sign("a.pem", &["--initial"]).exits(0);
    // The moment wanders around the one at which the new envelope takes its place: later while
    // the old one is still there, earlier when the new one is.
    let mut wait = begin.elapsed();
    let (mut last, mut seen) = (2, [0, 0]);
    for _ in 0..400 {
        if seen.iter().all(|times| *times >= 20) {
            break;
        }
        let mut child = sign_common::command(&desk.sign_args("a.pem", &["--initial"]))
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(wait);
        drop(child.kill());
        child.wait().unwrap();
        let sequence = verified(desk.root.path()).payload().sequence;
        assert!(sequence == last || sequence == last + 1, "{last} then {sequence}");
        let done = sequence > last;
        seen[usize::from(done)] += 1;
        wait = if done { wait * 19 / 20 } else { wait * 21 / 20 };
        last = sequence;
    }
    assert!(seen.iter().all(|times| *times >= 20), "killed before and after the new envelope was there: {seen:?}");
}
