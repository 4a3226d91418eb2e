//! The commands as processes: what they print, hand on and exit with.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::string_slice,
    reason = "a test that cannot go on fails"
)]

mod sign_common;

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use polctl::sign::{Change, Digest, Envelope, POLICY_SET_TYPE, Timestamp, Trust, pae, verify_approval};
use serde_json::{Value, json};
use sign_common::{
    Bench, Desk, ENVELOPE, MAP, bytes, envelope, files, finish, key, narrower, payload, polctl, red, repository, tool,
    wider,
};

#[test]
fn a_set_is_signed_and_verified() {
    let desk = Desk::new();
    desk.commit(&["policy"]);
    let signed = desk.sign("a.pem", &["--initial"]).exits(0);
    assert!(signed.out.contains("fleet-test sequence 1 signed by release-a"), "{}", signed.out);
    let verified = desk.verify(&["--enforce"]).exits(0);
    assert!(verified.out.contains("fleet-test sequence 1 is good: signed by release-a, 3 files"), "{}", verified.out);
    assert_eq!(verified.err, "");
    let first: Value = serde_json::from_str(&desk.verify(&["--format", "json"]).exits(0).out).unwrap();
    // The next version has the next sequence; the base stands in the payload.
    desk.put("policy/CLAUDE_CMDS.md", narrower());
    desk.sign("a.pem", &["--base", "HEAD"]).exits(0);
    let json: Value = serde_json::from_str(&desk.verify(&["--format", "json"]).exits(0).out).unwrap();
    assert_eq!(json["verified"], true);
    assert_eq!(json["policy"]["sequence"], 2);
    let envelope = Envelope::parse(&desk.get(&format!("policy/{ENVELOPE}"))).unwrap();
    let payload: Value = serde_json::from_slice(envelope.payload()).unwrap();
    assert_eq!(payload["base"], json!({"verdict": "no-widening", "policy_id": first["policy"]["policy_id"]}));
}

#[test]
fn a_red_check_is_not_signed() {
    let desk = Desk::new();
    desk.put("policy/CLAUDE_CMDS.md", red());
    let run = desk.sign("a.pem", &["--initial"]).exits(1);
    assert!(run.err.contains("example-fails"), "{}", run.err);
    assert!(run.err.contains("nothing was signed"), "{}", run.err);
    assert!(!Path::new(&desk.path(&format!("policy/{ENVELOPE}"))).exists());
}

#[test]
fn what_must_be_said_must_be_said() {
    let desk = Desk::new();
    assert!(desk.sign("a.pem", &[]).exits(2).err.contains("--initial"));
    assert!(
        desk.sign("absent.pem", &["--initial"])
            .exits(2)
            .says("key-file-unreadable")
            .err
            .contains("polctl keys generate")
    );
    let (policy, trust) = (desk.path("policy"), desk.path("trust.json"));
    assert!(polctl(&["verify", "-C", &policy, "--trust", &trust]).exits(2).err.contains("--state"));
    assert!(desk.sign("a.pem", &["--initial", "--signer", "vault"]).exits(2).err.contains("give one signer"));
    desk.verify(&["--expect", "abc"]).exits(2);
}

#[test]
fn a_key_that_is_not_pinned_signs_nothing() {
    let desk = Desk::new();
    polctl(&["keys", "generate", &desk.path("other.pem")]).exits(0);
    desk.sign("other.pem", &["--initial"]).exits(4).says("signature-not-pinned");
    assert!(!Path::new(&desk.path(&format!("policy/{ENVELOPE}"))).exists());
}

#[test]
fn refusals_are_the_same_with_and_without_enforcement() {
    let folder = repository().join("fixtures/sign/envelopes");
    let mut seen = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let code = name.split("--").next().unwrap();
        // Those that depend on the time of day are refused as expired or not, by the clock.
        let bench = Bench::new();
        bench.put_envelope(std::fs::read(repository().join("fixtures/sign/envelopes").join(&name)).unwrap());
        let (policy, trust) = (bench.policy(), bench.trust_path.clone());
        let args = ["verify", "-C", policy.to_str().unwrap(), "--trust", trust.to_str().unwrap(), "--no-state"];
        let report = polctl(&args).exits(0);
        let enforced = polctl(&[&args[..], &["--enforce"]].concat()).exits(4);
        let first = |run: &sign_common::Run| {
            run.err.lines().take_while(|l| !l.starts_with("polctl verify:")).collect::<Vec<_>>().join("\n")
        };
        assert_eq!(first(&report), first(&enforced), "{name}");
        assert!(report.err.contains("NOT VERIFIED"), "{name}");
        assert!(enforced.err.contains("REFUSED"), "{name}");
        assert_eq!((report.out.as_str(), enforced.out.as_str()), ("", ""), "{name}");
        if !depends_on_clock(code) {
            report.says(code);
        }
        seen += 1;
    }
    assert!(seen > 80, "{seen}");
}

/// The vectors have fixed times; the executable has the system's clock.
fn depends_on_clock(code: &str) -> bool {
    ["expired", "not-yet-valid", "file-too-large", "set-too-large"].contains(&code)
        || code.starts_with("file-name-envelope")
}

#[test]
fn the_variable_enforces_and_an_unclear_one_stops() {
    let desk = Desk::new();
    desk.sign("a.pem", &["--initial"]).exits(0);
    desk.put("policy/extra.md", "x");
    let run = |value: &str, more: &[&str]| {
        let (policy, trust) = (desk.path("policy"), desk.path("trust.json"));
        let mut command = sign_common::command(&["verify", "-C", &policy, "--trust", &trust, "--no-state"]);
        command.args(more).env("POLCTL_VERIFY_ENFORCE", value);
        finish(command)
    };
    run("1", &[]).exits(4).says("file-extra");
    run("true", &[]).exits(4);
    run("0", &[]).exits(0).says("file-extra");
    run("0", &["--enforce"]).exits(4);
    for unclear in ["", "flase", "2"] {
        let run = run(unclear, &["--enforce"]).exits(2);
        assert!(run.err.contains("POLCTL_VERIFY_ENFORCE"), "{}", run.err);
    }
}

#[test]
fn verified_bytes_are_handed_on_in_one_piece() {
    let desk = Desk::new();
    desk.sign("a.pem", &["--initial"]).exits(0);
    desk.verify(&["--enforce", "--emit", &desk.path("out")]).exits(0);
    for (name, text) in files() {
        assert_eq!(desk.get(&format!("out/policy/{name}")), text.as_bytes());
    }
    let about: Value = serde_json::from_slice(&desk.get("out/verified.json")).unwrap();
    assert_eq!(about["verified"], true);
    let index: Value = serde_json::from_slice(&desk.get("out/compiled/index.json")).unwrap();
    assert_eq!(about["policy"]["policy_id"], index["policy_id"]);
    // What is handed on compiled is what `polctl compile` makes of the files.
    polctl(&["compile", "-C", &desk.path("policy"), "-o", &desk.path("by-hand")]).exits(0);
    let names = |dir: &str| -> std::collections::BTreeSet<String> {
        let entries = std::fs::read_dir(desk.path(dir)).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    };
    assert_eq!(names("out/compiled"), names("by-hand"));
    for name in names("by-hand") {
        assert_eq!(desk.get(&format!("out/compiled/{name}")), desk.get(&format!("by-hand/{name}")), "{name}");
    }
    // A directory with something in it is not mixed with.
    let again = desk.verify(&["--enforce", "--emit", &desk.path("out")]).exits(2);
    assert!(again.err.contains("cannot write"), "{}", again.err);
    let left: Vec<_> = std::fs::read_dir(desk.root.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert!(!left.iter().any(|name| name.to_string_lossy().starts_with(".polctl-emit-")), "{left:?}");

    let json: Value = serde_json::from_str(&desk.verify(&["--enforce", "--emit", "-"]).exits(0).out).unwrap();
    assert_eq!(json["files"][0]["name"], "CLAUDE_CMDS.md");
    assert_eq!(json["files"][0]["base64"], STANDARD.encode(files()[0].1));
}

#[test]
fn refused_bytes_are_not_handed_on_when_enforced_and_marked_when_not() {
    let desk = Desk::new();
    desk.sign("a.pem", &["--initial"]).exits(0);
    desk.put("policy/CLAUDE_CMDS.md", wider());
    let enforced = desk.verify(&["--enforce", "--emit", "-"]).exits(4);
    assert_eq!(enforced.out, "");
    desk.verify(&["--enforce", "--emit", &desk.path("out")]).exits(4);
    assert!(!Path::new(&desk.path("out")).exists());
    let reported: Value = serde_json::from_str(&desk.verify(&["--emit", "-"]).exits(0).out).unwrap();
    assert_eq!(reported["verified"], false);
    assert_eq!(reported["refusal"]["code"], "file-size");
    assert_eq!(reported["files"][0]["base64"], STANDARD.encode(wider()));
    // What is no policy cannot be handed on compiled.
    desk.put("policy/CLAUDE_CMDS.md", "changed");
    assert!(desk.verify(&["--emit", "-"]).exits(2).err.contains("polctl check"));
    desk.put("policy/CLAUDE_CMDS.md", wider());
    // What cannot be read safely cannot be handed on.
    std::os::unix::fs::symlink("/etc/hostname", desk.path("policy/l")).unwrap();
    desk.verify(&["--emit", "-"]).exits(2);
}

#[test]
fn another_policy_than_the_expected_one_is_policy_changed() {
    let desk = Desk::new();
    desk.sign("a.pem", &["--initial"]).exits(0);
    let json: Value = serde_json::from_str(&desk.verify(&["--format", "json"]).exits(0).out).unwrap();
    let id = json["policy"]["policy_id"].as_str().unwrap().to_owned();
    desk.verify(&["--enforce", "--expect", &id]).exits(0);
    desk.put("policy/CLAUDE_CMDS.md", narrower());
    desk.sign("a.pem", &["--initial"]).exits(0);
    desk.verify(&["--enforce", "--expect", &id]).exits(4).says("policy-changed");
}

#[test]
fn a_second_signature_meets_a_threshold_of_two() {
    let desk = Desk::new();
    desk.commit(&["policy"]);
    desk.key("b.pem", "release-b", "release");
    let mut trust: Value = serde_json::from_slice(&desk.get("trust.json")).unwrap();
    trust["threshold"]["release"] = 2.into();
    desk.put("trust.json", bytes(&trust));
    let first = desk.sign("a.pem", &["--initial"]).exits(0);
    assert!(first.out.contains("1 of 2 signatures"), "{}", first.out);
    desk.verify(&["--enforce"]).exits(4).says("threshold-not-met");
    let payload = |desk: &Desk| Envelope::parse(&desk.get(&format!("policy/{ENVELOPE}"))).unwrap().payload().to_vec();
    let before = payload(&desk);
    desk.sign("a.pem", &["--initial", "--add"]).exits(4).says("signature-duplicate");
    desk.sign("b.pem", &["--base", "HEAD", "--add"]).exits(4).says("payload-differs");
    desk.sign("b.pem", &["--initial", "--add"]).exits(0);
    assert_eq!(payload(&desk), before, "the second signature is over the same bytes");
    let verified = desk.verify(&["--enforce"]).exits(0);
    assert!(verified.out.contains("release-a, release-b"), "{}", verified.out);
    desk.put("policy/CLAUDE_CMDS.md", narrower());
    desk.sign("b.pem", &["--initial", "--add"]).exits(4).says("payload-differs");
}

#[test]
fn a_sequence_is_not_taken_from_an_envelope_that_cannot_be_believed() {
    let desk = Desk::new();
    desk.put(&format!("policy/{ENVELOPE}"), bytes(&envelope(POLICY_SET_TYPE, &bytes(&payload()), &[&key(9)])));
    let run = desk.sign("a.pem", &["--initial"]).exits(2);
    assert!(run.err.contains("--sequence N"), "{}", run.err);
    desk.sign("a.pem", &["--initial", "--sequence", "40"]).exits(0);
    let run = desk.sign("a.pem", &["--initial"]).exits(0);
    assert!(run.out.contains("sequence 41"), "{}", run.out);
    let run = desk.sign("a.pem", &["--initial", "--sequence", "41"]).exits(2);
    assert!(run.err.contains("42 or more"), "{}", run.err);
}

#[test]
fn an_approval_binds_one_change() {
    let desk = Desk::new();
    desk.commit(&["policy"]);
    desk.key("c.pem", "approver", "approve");
    desk.put("policy/CLAUDE_CMDS.md", wider());
    let approve = |file: &str, approver: &str, output: &str| {
        let (policy, trust, file, output) =
            (desk.path("policy"), desk.path("trust.json"), desk.path(file), desk.path(output));
        polctl(&[
            "approve",
            "-C",
            &policy,
            "--trust",
            &trust,
            "--base",
            "HEAD",
            "--approver",
            approver,
            "--reason",
            "wanted",
            "--key-file",
            &file,
            "-o",
            &output,
        ])
    };
    approve("a.pem", "release-a", "x.json").exits(4).says("signature-not-pinned");
    approve("c.pem", "somebody", "x.json").exits(2);
    assert!(approve("c.pem", "approver", "policy/x.json").exits(2).err.contains("elsewhere"));
    assert!(!Path::new(&desk.path("x.json")).exists());
    approve("c.pem", "approver", "approval.json").exits(0);

    let trust = Trust::parse(&desk.get("trust.json")).unwrap();
    let approval = desk.get("approval.json");
    let now = Timestamp::from_seconds(jiff::Timestamp::now().as_second()).unwrap();
    let payload: Value = serde_json::from_slice(Envelope::parse(&approval).unwrap().payload()).unwrap();
    // It names both versions as the check names them.
    let check = polctl(&["check", "-C", &desk.path("policy"), "--base", "HEAD", "--format", "json"]).exits(1);
    let check: Value = serde_json::from_str(&check.out).unwrap();
    let id = |which: &str| Digest::parse(check["compared"][which]["policy_id"].as_str().unwrap()).unwrap();
    assert_ne!(id("old"), id("new"));
    let change = Change { set: "fleet-test", old_policy_id: id("old"), new_policy_id: id("new") };
    let verified = verify_approval(&approval, &trust, &change, now).unwrap();
    // One widening, and no other finding.
    assert_eq!(payload["findings"].as_array().unwrap().len(), 1, "{payload}");
    let finding = Digest::parse(payload["findings"][0].as_str().unwrap()).unwrap();
    assert!(verified.covers(finding) && !verified.covers(Digest::of(b"other")));
    assert_eq!(verified.approval().reason, "wanted");
    assert_eq!(verified.unused(&[Digest::of(b"other")].into()).count(), 1);

    let refused =
        |change: &Change<'_>, now: Timestamp| verify_approval(&approval, &trust, change, now).unwrap_err().code_name();
    let other = Digest::of(b"other");
    assert_eq!(refused(&Change { old_policy_id: other, ..change }, now), "approval-mismatch");
    assert_eq!(refused(&Change { new_policy_id: other, ..change }, now), "approval-mismatch");
    assert_eq!(refused(&Change { set: "another", ..change }, now), "approval-mismatch");
    assert_eq!(refused(&change, now.plus(15 * 86_400)), "expired");
    assert_eq!(refused(&change, now.plus(-3600)), "not-yet-valid");
    // A release signature is no approval, and the other way round.
    desk.put("policy/CLAUDE_CMDS.md", MAP);
    desk.sign("a.pem", &["--initial"]).exits(0);
    let release = desk.get(&format!("policy/{ENVELOPE}"));
    assert_eq!(verify_approval(&release, &trust, &change, now).unwrap_err().code_name(), "payload-type");
    desk.put(&format!("policy/{ENVELOPE}"), &approval);
    desk.verify(&["--enforce"]).exits(4).says("payload-type");
}

#[test]
fn two_approvers_meet_a_threshold_of_two() {
    let desk = Desk::new();
    desk.put("policy/CLAUDE_CMDS.md", narrower());
    desk.commit(&["policy"]);
    desk.put("policy/CLAUDE_CMDS.md", MAP);
    desk.commit(&["policy"]);
    desk.key("c.pem", "approver", "approve");
    desk.key("d.pem", "second", "approve");
    let mut trust: Value = serde_json::from_slice(&desk.get("trust.json")).unwrap();
    trust["threshold"]["approve"] = 2.into();
    desk.put("trust.json", bytes(&trust));
    desk.put("policy/CLAUDE_CMDS.md", wider());
    let approve = |file: &str, approver: &str, base: &str, more: &[&str]| {
        let (policy, trust, file, output) =
            (desk.path("policy"), desk.path("trust.json"), desk.path(file), desk.path("approval.json"));
        let args = [
            "approve",
            "-C",
            &policy,
            "--trust",
            &trust,
            "--base",
            base,
            "--approver",
            approver,
            "--reason",
            "wanted",
            "--key-file",
            &file,
            "-o",
            &output,
        ];
        polctl(&[&args[..], more].concat())
    };
    approve("c.pem", "approver", "HEAD", &[]).exits(0);
    let parsed = Trust::parse(&bytes(&trust)).unwrap();
    let now = Timestamp::from_seconds(jiff::Timestamp::now().as_second()).unwrap();
    let verify = || {
        let payload: Value =
            serde_json::from_slice(Envelope::parse(&desk.get("approval.json")).unwrap().payload()).unwrap();
        let id = |name: &str| Digest::parse(payload[name].as_str().unwrap()).unwrap();
        let change =
            Change { set: "fleet-test", old_policy_id: id("old_policy_id"), new_policy_id: id("new_policy_id") };
        verify_approval(&desk.get("approval.json"), &parsed, &change, now)
            .map(|v| v.signers().len())
            .map_err(|e| e.code_name())
    };
    assert_eq!(verify().unwrap_err(), "threshold-not-met");
    approve("c.pem", "approver", "HEAD", &["--add"]).exits(4).says("signature-duplicate");
    approve("d.pem", "second", "HEAD~1", &["--add"]).exits(4).says("payload-differs");
    approve("d.pem", "second", "HEAD", &["--add"]).exits(0);
    assert_eq!(verify(), Ok(2));
}

/// Approvals that are wrong in themselves.
#[test]
fn wrong_approvals_are_refused() {
    let good = json!({
        "set": "fleet-test",
        "old_policy_id": Digest::of(b"old").to_string(),
        "new_policy_id": Digest::of(b"new").to_string(),
        "findings": [Digest::of(b"f").to_string()],
        "reason": "wanted",
        "approver": "approver",
        "issued": "2026-06-01T00:00:00Z",
        "expires": "2026-07-01T00:00:00Z",
        "polctl": "0.1.0",
    });
    let trust = Trust::parse(&bytes(&sign_common::trust())).unwrap();
    let change = Change { set: "fleet-test", old_policy_id: Digest::of(b"old"), new_policy_id: Digest::of(b"new") };
    let verify = |value: &Value, signer: u8| {
        let text = bytes(&envelope(polctl::sign::APPROVAL_TYPE, &bytes(value), &[&key(signer)]));
        verify_approval(&text, &trust, &change, sign_common::time(sign_common::NOW)).map_err(|e| e.code_name())
    };
    assert!(verify(&good, 3).is_ok());
    assert_eq!(verify(&good, 1).unwrap_err(), "key-role");
    assert_eq!(verify(&good, 9).unwrap_err(), "signature-unknown-key");
    let with = |name: &str, value: Value| {
        let mut changed = good.clone();
        changed[name] = value;
        verify(&changed, 3).unwrap_err()
    };
    assert_eq!(with("findings", json!([])), "approval-value");
    assert_eq!(with("findings", json!([Digest::of(b"f").to_string(), Digest::of(b"f").to_string()])), "approval-value");
    assert_eq!(with("findings", json!("all")), "approval-wrong-type");
    assert_eq!(with("reason", json!(" ")), "approval-value");
    assert_eq!(with("reason", json!("a\u{1b}[2J")), "approval-value");
    assert_eq!(with("scope", json!("all")), "approval-unknown-field");
    assert_eq!(with("approver", json!("release-a")), "approval-mismatch");
    assert_eq!(with("expires", json!("2026-06-15T12:00:00Z")), "expired");
    assert_eq!(with("expires", json!("2026-05-01T00:00:00Z")), "payload-times");
    assert_eq!(with("set", json!("fleet-prod")), "set-mismatch");
}

#[test]
fn keys_are_shown_pinned_and_dropped() {
    let desk = Desk::new();
    let shown = polctl(&["keys", "show", "--key-file", &desk.path("a.pem")]).exits(0).out;
    let id = shown.lines().nth(1).unwrap().strip_prefix("key id ").unwrap().to_owned();
    let public = shown.lines().next().unwrap().strip_prefix("public ").unwrap().to_owned();
    desk.pin(&public, "again", "release").exits(2).says("trust-key-duplicate");
    desk.pin(&STANDARD.encode([0; 32]), "weak", "release").exits(2).says("key-weak");
    desk.pin("AAAA", "short", "release").exits(2).says("key-invalid");
    let trust = desk.path("trust.json");
    polctl(&["keys", "drop", "--trust", &trust, &id]).exits(2).says("trust-threshold");
    desk.key("b.pem", "release-b", "release");
    polctl(&["keys", "drop", "--trust", &trust, &id]).exits(0);
    desk.sign("a.pem", &["--initial"]).exits(4).says("signature-not-pinned");
    polctl(&["keys", "generate", &desk.path("a.pem")]).exits(2).says("key-file-exists");
    // A trust file may be for approvals alone; then it accepts no policy set.
    let approvals = desk.path("approvals.json");
    let args = ["keys", "pin", "--trust", &approvals, "--signer", "a", "--role", "approve", "--public", &public];
    assert!(polctl(&args).exits(2).err.contains("--set"));
    polctl(&[&args[..], &["--set", "fleet-test"]].concat()).exits(0);
    assert!(polctl(&[&args[..], &["--set", "other"]].concat()).exits(2).err.contains("fleet-test"));
}

const OPENSSL: &str = "OpenSSL 3 (Debian: openssl)";

#[test]
fn openssl_verifies_what_polctl_signed() {
    let desk = Desk::new();
    desk.sign("a.pem", &["--initial"]).exits(0);
    let envelope: Value = serde_json::from_slice(&desk.get(&format!("policy/{ENVELOPE}"))).unwrap();
    let payload = STANDARD.decode(envelope["payload"].as_str().unwrap()).unwrap();
    desk.put("message", pae(POLICY_SET_TYPE, &payload));
    desk.put("signature", STANDARD.decode(envelope["signatures"][0]["sig"].as_str().unwrap()).unwrap());
    let public =
        tool("openssl", OPENSSL, &["pkey", "-in", &desk.path("a.pem"), "-pubout", "-out", &desk.path("public.pem")]);
    assert!(public.status.success(), "{}", String::from_utf8_lossy(&public.stderr));
    let (key, message, signature) = (desk.path("public.pem"), desk.path("message"), desk.path("signature"));
    let verify = ["pkeyutl", "-verify", "-pubin", "-inkey", &key, "-rawin", "-in", &message, "-sigfile", &signature];
    let verified = tool("openssl", OPENSSL, &verify);
    assert!(verified.status.success(), "{}", String::from_utf8_lossy(&verified.stderr));
    desk.put("message", "another");
    assert!(!tool("openssl", OPENSSL, &verify).status.success());
}

#[test]
fn polctl_verifies_what_openssl_signed() {
    let desk = Desk::new();
    let (key, message, signature) = (desk.path("o.pem"), desk.path("message"), desk.path("signature"));
    assert!(tool("openssl", OPENSSL, &["genpkey", "-algorithm", "ed25519", "-out", &key]).status.success());
    let der = tool("openssl", OPENSSL, &["pkey", "-in", &key, "-pubout", "-outform", "DER"]).stdout;
    let public = &der[der.len() - 32..];
    desk.pin(&STANDARD.encode(public), "by-openssl", "release").exits(0);

    // A payload made by polctl, signed anew by openssl.
    desk.sign("a.pem", &["--initial"]).exits(0);
    let mut envelope: Value = serde_json::from_slice(&desk.get(&format!("policy/{ENVELOPE}"))).unwrap();
    let payload = STANDARD.decode(envelope["payload"].as_str().unwrap()).unwrap();
    desk.put("message", pae(POLICY_SET_TYPE, &payload));
    let sign = ["pkeyutl", "-sign", "-inkey", &key, "-rawin", "-in", &message, "-out", &signature];
    assert!(tool("openssl", OPENSSL, &sign).status.success());
    envelope["signatures"] =
        json!([{"keyid": Digest::of(public).to_string(), "sig": STANDARD.encode(desk.get("signature"))}]);
    desk.put(&format!("policy/{ENVELOPE}"), bytes(&envelope));
    let verified = desk.verify(&["--enforce"]).exits(0);
    assert!(verified.out.contains("signed by by-openssl"), "{}", verified.out);

    // And its key file is one that polctl signs with.
    desk.sign("o.pem", &["--initial"]).exits(0);
    desk.verify(&["--enforce"]).exits(0);
}

/// Every command in the documents is one: each of its options stands in its help.
#[test]
fn commands_in_the_documents_exist() {
    let mut seen = 0;
    for page in ["docs/signing.md", "README.md", "docs/policy-format.md"] {
        let text = std::fs::read_to_string(repository().join(page)).unwrap();
        // Lines of blocks, and code spans in prose.
        let mut commands: Vec<&str> = Vec::new();
        for (at, part) in text.split("```").enumerate() {
            if at % 2 == 1 {
                commands.extend(part.lines().filter_map(|line| line.split_once("polctl ").map(|(_, rest)| rest)));
            } else {
                commands.extend(part.split('`').skip(1).step_by(2).filter_map(|span| span.strip_prefix("polctl ")));
            }
        }
        for command in commands {
            let command = command.split(" #").next().unwrap();
            let words: Vec<&str> = command.split_whitespace().collect();
            let options = words.iter().filter_map(|word| word.strip_prefix("--")).map(|o| o.split('=').next().unwrap());
            let options: Vec<&str> = options.filter(|option| !option.is_empty()).collect();
            let verbs = if words[0] == "keys" { 2 } else { 1 };
            let verbs: Vec<&str> =
                words.iter().take(verbs).copied().filter(|w| w.bytes().all(|b| b.is_ascii_lowercase())).collect();
            if verbs.is_empty() || options.is_empty() {
                continue;
            }
            let help = polctl(&[&verbs[..], &["--help"]].concat()).exits(0).out;
            for option in options {
                let option = option.trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
                let known = help.split_whitespace().any(|w| w.trim_end_matches(',') == format!("--{option}"));
                assert!(known, "{page}: `polctl {command}`: no `--{option}`");
                seen += 1;
            }
        }
    }
    assert!(seen > 40, "{seen}");
}
