//! One vector for each way a signed policy set can be wrong: each is refused with its own
//! code. Those that are one text stand as files in `fixtures/sign`; the others need a file
//! system and are made here.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::string_slice,
    clippy::too_many_lines,
    reason = "a test that cannot go on fails; a table is long"
)]

mod sign_common;

use std::collections::BTreeSet;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE};
use ed25519_dalek::Signer as _;
use polctl::sign::{APPROVAL_TYPE, Digest, EnvelopeAt, POLICY_SET_TYPE, pae};
use serde_json::{Value, json};
use sign_common::{Bench, ENVELOPE, bytes, envelope, files, key, key_id, payload, pin, repository, time, trust};

/// Name, code, and what makes a good set bad in this way.
type Case = (&'static str, &'static str, Box<dyn Fn(&mut Bench)>);

fn case(name: &'static str, code: &'static str, spoil: impl Fn(&mut Bench) + 'static) -> Case {
    (name, code, Box::new(spoil))
}

/// A case that is another envelope.
fn text(name: &'static str, code: &'static str, make: impl Fn() -> Vec<u8> + 'static) -> Case {
    case(name, code, move |bench| bench.put_envelope(make()))
}

/// A case that changes the JSON of the good envelope.
fn envelope_with(name: &'static str, code: &'static str, change: impl Fn(&mut Value) + 'static) -> Case {
    text(name, code, move || {
        let mut value = good();
        change(&mut value);
        bytes(&value)
    })
}

/// A case that changes the payload and signs it properly.
fn payload_with(name: &'static str, code: &'static str, change: impl Fn(&mut Value) + 'static) -> Case {
    text(name, code, move || {
        let mut value = payload();
        change(&mut value);
        signed(&bytes(&value))
    })
}

/// A case that changes the payload's text and signs it properly.
fn payload_text(name: &'static str, code: &'static str, change: impl Fn(String) -> String + 'static) -> Case {
    text(name, code, move || signed(change(String::from_utf8(bytes(&payload())).unwrap()).as_bytes()))
}

/// A case in which file names of the payload are others.
fn names(name: &'static str, code: &'static str, change: impl Fn(&mut Vec<String>) + 'static) -> Case {
    payload_with(name, code, move |payload| {
        let mut names = files().iter().map(|(name, _)| (*name).to_owned()).collect();
        change(&mut names);
        let entries = names.iter().map(|n| json!({"name": n, "size": 1, "sha256": Digest::of(b"x").to_string()}));
        payload["files"] = entries.collect();
    })
}

/// A case that changes the trust file.
fn trust_with(name: &'static str, code: &'static str, change: impl Fn(&mut Value) + 'static) -> Case {
    case(name, code, move |bench| {
        let mut value = trust();
        change(&mut value);
        bench.put_trust(&value);
    })
}

/// A case that changes the trust file's text.
fn trust_text(name: &'static str, code: &'static str, change: impl Fn(String) -> String + 'static) -> Case {
    case(name, code, move |bench| {
        bench.put_trust_bytes(change(String::from_utf8(bytes(&trust())).unwrap()).as_bytes());
    })
}

fn good() -> Value {
    envelope(POLICY_SET_TYPE, &bytes(&payload()), &[&key(1)])
}

fn signed(payload: &[u8]) -> Vec<u8> {
    bytes(&envelope(POLICY_SET_TYPE, payload, &[&key(1)]))
}

fn good_text() -> String {
    String::from_utf8(bytes(&good())).unwrap()
}

fn first_signature(value: &Value) -> Vec<u8> {
    STANDARD.decode(value["signatures"][0]["sig"].as_str().unwrap()).unwrap()
}

fn set_signature(value: &mut Value, signature: &[u8]) {
    value["signatures"][0]["sig"] = STANDARD.encode(signature).into();
}

/// The order of the group, added to the second half: the same equation, another text.
fn add_order(signature: &[u8]) -> Vec<u8> {
    const ORDER: [u8; 32] = [
        0xed, 0xd3, 0xf5, 0x5c, 0x1a, 0x63, 0x12, 0x58, 0xd6, 0x9c, 0xf7, 0xa2, 0xde, 0xf9, 0xde, 0x14, 0, 0, 0, 0, 0,
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x10,
    ];
    let mut sum = signature.to_vec();
    let mut carry = 0;
    for (byte, order) in sum[32..].iter_mut().zip(ORDER) {
        let next = u16::from(*byte) + u16::from(order) + carry;
        *byte = u8::try_from(next & 0xff).unwrap();
        carry = next >> 8;
    }
    sum
}

fn envelope_cases() -> Vec<Case> {
    vec![
        text("empty", "envelope-syntax", Vec::new),
        text("not-json", "envelope-syntax", || b"payload: x\n".to_vec()),
        text("cut", "envelope-syntax", || good_text().as_bytes()[..200].to_vec()),
        text("second-value", "envelope-syntax", || (good_text() + "{}").into_bytes()),
        text("byte-order-mark", "envelope-syntax", || format!("\u{feff}{}", good_text()).into_bytes()),
        text("not-utf8", "envelope-syntax", || {
            good_text().replace("keyid", "key\u{e9}").bytes().filter(|b| *b != 0xc3).collect()
        }),
        text("comment", "envelope-syntax", || format!("// signed\n{}", good_text()).into_bytes()),
        text("nested", "envelope-syntax", || "[".repeat(5000).into_bytes()),
        text("list", "envelope-wrong-type", || format!("[{}]", good_text()).into_bytes()),
        envelope_with("unknown-field", "envelope-unknown-field", |e| e["note"] = "x".into()),
        envelope_with("unknown-field-in-signature", "envelope-unknown-field", |e| {
            e["signatures"][0]["cert"] = "x".into();
        }),
        text("duplicate-key", "envelope-duplicate-key", || {
            good_text().replacen('{', &format!("{{\"payload\": \"{}\",", STANDARD.encode(b"{}")), 1).into_bytes()
        }),
        text("duplicate-key-in-signature", "envelope-duplicate-key", || {
            good_text()
                .replace("\"keyid\"", &format!("\"sig\": \"{}\",\"keyid\"", STANDARD.encode([0; 64])))
                .into_bytes()
        }),
        text("duplicate-key-by-escape", "envelope-duplicate-key", || {
            good_text().replacen('{', "{\"p\\u0061yload\": \"e30=\",", 1).into_bytes()
        }),
        envelope_with("no-payload", "envelope-missing-field", |e| _ = e.as_object_mut().unwrap().remove("payload")),
        envelope_with("no-signatures-key", "envelope-missing-field", |e| {
            _ = e.as_object_mut().unwrap().remove("signatures");
        }),
        envelope_with("payload-is-object", "envelope-wrong-type", |e| e["payload"] = payload()),
        envelope_with("payload-is-null", "envelope-wrong-type", |e| e["payload"] = Value::Null),
        envelope_with("signatures-is-object", "envelope-wrong-type", |e| e["signatures"] = e["signatures"][0].clone()),
        envelope_with("seventeen-signatures", "envelope-too-many", |e| {
            e["signatures"] = vec![e["signatures"][0].clone(); 17].into();
        }),
        text("other-type", "payload-type", || {
            bytes(&envelope("application/vnd.in-toto+json", &bytes(&payload()), &[&key(1)]))
        }),
        text("approval-type", "payload-type", || bytes(&envelope(APPROVAL_TYPE, &bytes(&payload()), &[&key(1)]))),
        text("type-in-capitals", "payload-type", || {
            bytes(&envelope(&POLICY_SET_TYPE.to_uppercase(), &bytes(&payload()), &[&key(1)]))
        }),
        envelope_with("payload-base64-cut", "payload-base64", |e| {
            let text = e["payload"].as_str().unwrap();
            e["payload"] = text[..text.len() - 2].into();
        }),
        envelope_with("payload-base64-url", "payload-base64", |e| e["payload"] = URL_SAFE.encode([0xff; 9]).into()),
        envelope_with("payload-base64-lines", "payload-base64", |e| {
            let text = e["payload"].as_str().unwrap();
            e["payload"] = format!("{}\n{}", &text[..76], &text[76..]).into();
        }),
        envelope_with("payload-base64-loose-bits", "payload-base64", |e| e["payload"] = "e31=".into()),
        envelope_with("signature-base64-cut", "signature-base64", |e| {
            let text = e["signatures"][0]["sig"].as_str().unwrap();
            e["signatures"][0]["sig"] = text[..text.len() - 3].into();
        }),
        envelope_with("signature-base64-without-padding", "signature-base64", |e| {
            e["signatures"][0]["sig"] = STANDARD_NO_PAD.encode(first_signature(e)).into();
        }),
        envelope_with("signature-with-vault-prefix", "signature-base64", |e| {
            e["signatures"][0]["sig"] = format!("vault:v1:{}", e["signatures"][0]["sig"].as_str().unwrap()).into();
        }),
        envelope_with("signature-short", "signature-length", |e| {
            let signature = first_signature(e);
            set_signature(e, &signature[..63]);
        }),
        envelope_with("signature-empty", "signature-length", |e| set_signature(e, b"")),
        envelope_with("signature-long", "signature-length", |e| {
            let signature = [first_signature(e), vec![0]].concat();
            set_signature(e, &signature);
        }),
        envelope_with("keyid-in-capitals", "signature-keyid", |e| {
            e["signatures"][0]["keyid"] = key_id(&key(1)).to_uppercase().into();
        }),
        envelope_with("keyid-empty", "signature-keyid", |e| e["signatures"][0]["keyid"] = "".into()),
        envelope_with("keyid-is-name", "signature-keyid", |e| e["signatures"][0]["keyid"] = "release-a".into()),
        envelope_with("no-signature", "signature-none", |e| e["signatures"] = json!([])),
        text("extra-signature", "signature-unknown-key", || {
            bytes(&envelope(POLICY_SET_TYPE, &bytes(&payload()), &[&key(1), &key(9)]))
        }),
        text("unknown-key", "signature-unknown-key", || {
            bytes(&envelope(POLICY_SET_TYPE, &bytes(&payload()), &[&key(9)]))
        }),
        text("same-signature-twice", "signature-duplicate", || {
            bytes(&envelope(POLICY_SET_TYPE, &bytes(&payload()), &[&key(1), &key(1)]))
        }),
        text("two-keys-of-one-signer", "signer-duplicate", || {
            bytes(&envelope(POLICY_SET_TYPE, &bytes(&payload()), &[&key(1), &key(4)]))
        }),
        text("one-of-two-invalid", "signature-invalid", || {
            let mut value = envelope(POLICY_SET_TYPE, &bytes(&payload()), &[&key(1), &key(2)]);
            value["signatures"][1]["sig"] = value["signatures"][0]["sig"].clone();
            bytes(&value)
        }),
        envelope_with("signed-by-another-key", "signature-invalid", |e| {
            let other = envelope(POLICY_SET_TYPE, &bytes(&payload()), &[&key(9)]);
            e["signatures"][0]["sig"] = other["signatures"][0]["sig"].clone();
        }),
        envelope_with("other-payload-same-name", "signature-invalid", |e| {
            let mut other = payload();
            other["sequence"] = 8.into();
            e["payload"] = STANDARD.encode(bytes(&other)).into();
        }),
        envelope_with("payload-spelled-otherwise", "signature-invalid", |e| {
            e["payload"] = STANDARD.encode(payload().to_string()).into();
        }),
        envelope_with("signed-without-encoding", "signature-invalid", |e| {
            let signature = key(1).sign(&bytes(&payload())).to_bytes();
            set_signature(e, &signature);
        }),
        envelope_with("signed-as-approval", "signature-invalid", |e| {
            let signature = key(1).sign(&pae(APPROVAL_TYPE, &bytes(&payload()))).to_bytes();
            set_signature(e, &signature);
        }),
        envelope_with("signed-hash-of-payload", "signature-invalid", |e| {
            let digest = Digest::of(&pae(POLICY_SET_TYPE, &bytes(&payload())));
            let signature = key(1).sign(digest.as_bytes()).to_bytes();
            set_signature(e, &signature);
        }),
        envelope_with("signature-rewritten", "signature-invalid", |e| {
            let signature = add_order(&first_signature(e));
            set_signature(e, &signature);
        }),
        envelope_with("signature-small-order-point", "signature-invalid", |e| {
            let mut signature = [0; 64];
            signature[0] = 1;
            set_signature(e, &signature);
        }),
        envelope_with("signature-all-zero", "signature-invalid", |e| set_signature(e, &[0; 64])),
        text("signed-for-approvals", "key-role", || bytes(&envelope(POLICY_SET_TYPE, &bytes(&payload()), &[&key(3)]))),
    ]
}

fn payload_cases() -> Vec<Case> {
    vec![
        text("payload-not-json", "payload-syntax", || signed(b"set: fleet-test\n")),
        text("payload-empty", "payload-syntax", || signed(b"")),
        payload_text("payload-second-value", "payload-syntax", |text| text.clone() + &text),
        payload_text("payload-duplicate-key", "payload-duplicate-key", |text| {
            text.replacen('{', "{\"sequence\": 1,", 1)
        }),
        payload_text("payload-duplicate-file-key", "payload-duplicate-key", |text| {
            text.replacen("\"name\"", "\"size\": 1, \"name\"", 1)
        }),
        payload_with("payload-unknown-field", "payload-unknown-field", |p| p["comment"] = "x".into()),
        payload_with("payload-unknown-file-field", "payload-unknown-field", |p| p["files"][0]["mode"] = 420.into()),
        payload_with("payload-unknown-base-field", "payload-unknown-field", |p| p["base"]["approvals"] = json!([])),
        payload_with("payload-without-expiry", "payload-missing-field", |p| {
            _ = p.as_object_mut().unwrap().remove("expires");
        }),
        payload_with("payload-without-base", "payload-missing-field", |p| {
            _ = p.as_object_mut().unwrap().remove("base");
        }),
        text("payload-list", "payload-wrong-type", || signed(b"[]")),
        payload_with("sequence-is-text", "payload-wrong-type", |p| p["sequence"] = "7".into()),
        payload_with("sequence-is-negative", "payload-wrong-type", |p| p["sequence"] = (-1).into()),
        payload_text("sequence-is-real", "payload-wrong-type", |text| {
            text.replace("\"sequence\": 7", "\"sequence\": 7.0")
        }),
        payload_text("sequence-is-huge", "payload-wrong-type", |text| {
            text.replace("\"sequence\": 7", "\"sequence\": 18446744073709551616")
        }),
        payload_with("files-is-object", "payload-wrong-type", |p| p["files"] = json!({})),
        payload_with("set-name", "payload-value", |p| p["set"] = "fleet test".into()),
        payload_with("policy-id-in-capitals", "payload-value", |p| {
            p["policy_id"] = Digest::of(b"policy").to_string().to_uppercase().into();
        }),
        payload_with("time-with-offset", "payload-value", |p| p["expires"] = "2026-09-01T00:00:00+00:00".into()),
        payload_with("time-without-zone", "payload-value", |p| p["issued"] = "2026-06-01T00:00:00".into()),
        payload_with("verdict-unknown", "payload-value", |p| p["base"]["verdict"] = "green".into()),
        payload_with("version-empty", "payload-value", |p| p["polctl"] = "".into()),
        payload_with("approved-without-approval", "payload-value", |p| {
            p["base"]["verdict"] = "approved".into();
            p["base"]["approvals"] = json!([]);
        }),
        payload_with("expires-before-issued", "payload-times", |p| p["expires"] = p["issued"].clone()),
        payload_with("too-many-files", "payload-too-many", |p| p["files"] = vec![p["files"][0].clone(); 1025].into()),
        payload_with("other-set", "set-mismatch", |p| p["set"] = "fleet-prod".into()),
        payload_with("expired", "expired", |p| p["expires"] = "2026-06-15T12:00:00Z".into()),
        payload_with("not-yet-valid", "not-yet-valid", |p| p["issued"] = "2026-06-15T12:05:01Z".into()),
        payload_with("file-over-the-cap", "file-too-large", |p| p["files"][0]["size"] = (64 * 1024 * 1024 + 1).into()),
        payload_with("set-over-the-cap", "set-too-large", |p| {
            p["files"][0]["size"] = (256 * 1024 * 1024).into();
        }),
        names("name-escapes", "file-name-escapes", |n| n[0] = "../CLAUDE_CMDS.md".into()),
        names("name-escapes-inside", "file-name-escapes", |n| n[1] = "guardrails/../../x".into()),
        names("name-absolute", "file-name-absolute", |n| n[0] = "/etc/polctl/trust.json".into()),
        names("name-drive", "file-name-absolute", |n| n[0] = "C:/x".into()),
        names("name-backslash", "file-name-characters", |n| n[1] = "guardrails\\base.cedar".into()),
        names("name-nul", "file-name-characters", |n| n[0] = "CLAUDE_CMDS.md\0.txt".into()),
        names("name-bidirectional", "file-name-characters", |n| n[0] = "CLAUDE\u{202e}dm.SDMC".into()),
        names("name-dot", "file-name-segment", |n| n[0] = "./CLAUDE_CMDS.md".into()),
        names("name-double-slash", "file-name-segment", |n| n[1] = "guardrails//base.cedar".into()),
        names("name-empty", "file-name-length", |n| n[0] = String::new()),
        names("name-long", "file-name-length", |n| n[0] = "A".repeat(1025)),
        names("name-not-nfc", "file-name-not-nfc", |n| n[0] = "Cafe\u{301}.md".into()),
        names("name-case-collision", "file-name-collision", |n| {
            *n = vec!["CLAUDE_CMDS.md".into(), "claude_cmds.md".into()];
        }),
        names("name-directory-collision", "file-name-collision", |n| *n = vec!["A/x".into(), "a/y".into()]),
        names("name-twice", "file-name-duplicate", |n| *n = vec!["a".into(), "a".into()]),
        names("name-order", "file-name-order", |n| n.reverse()),
        names("name-of-the-envelope", "file-name-envelope", |n| *n = vec![ENVELOPE.into()]),
    ]
}

fn trust_cases() -> Vec<Case> {
    vec![
        trust_text("trust-not-json", "trust-syntax", |_| "keys: []\n".into()),
        trust_text("trust-duplicate-key", "trust-duplicate-key", |text| text.replacen('{', "{\"set\": \"x\",", 1)),
        trust_with("trust-unknown-field", "trust-unknown-field", |t| t["treshold"] = json!({})),
        trust_with("trust-no-threshold", "trust-missing-field", |t| _ = t.as_object_mut().unwrap().remove("threshold")),
        trust_with("trust-keys-object", "trust-wrong-type", |t| t["keys"] = json!({})),
        trust_with("trust-version", "trust-value", |t| t["polctl_trust"] = "v2".into()),
        trust_with("trust-algorithm", "trust-value", |t| t["keys"][0]["algorithm"] = "none".into()),
        trust_with("trust-role", "trust-value", |t| t["keys"][0]["roles"] = json!(["*"])),
        trust_with("trust-too-many", "trust-too-many", |t| t["keys"] = vec![t["keys"][0].clone(); 257].into()),
        trust_with("trust-key-short", "trust-key-invalid", |t| t["keys"][0]["public"] = "AAAA".into()),
        trust_with("trust-key-no-point", "trust-key-invalid", |t| {
            let mut no_point = [0; 32];
            no_point[0] = 2;
            t["keys"][0]["public"] = STANDARD.encode(no_point).into();
        }),
        trust_with("trust-key-small-order", "trust-key-weak", |t| {
            t["keys"][0]["public"] = STANDARD.encode([0; 32]).into();
        }),
        trust_with("trust-key-identity", "trust-key-weak", |t| {
            let mut one = [0; 32];
            one[0] = 1;
            t["keys"][0]["public"] = STANDARD.encode(one).into();
        }),
        trust_with("trust-key-twice", "trust-key-duplicate", |t| {
            t["keys"].as_array_mut().unwrap().push(pin("somebody-else", &key(1), &["release"]));
        }),
        trust_with("trust-window", "trust-window", |t| {
            t["keys"][0]["not_before"] = "2027-01-01T00:00:00Z".into();
            t["keys"][0]["not_after"] = "2026-01-01T00:00:00Z".into();
        }),
        trust_with("trust-threshold-zero", "trust-threshold", |t| t["threshold"]["release"] = 0.into()),
        trust_with("trust-threshold-unreachable", "trust-threshold", |t| t["threshold"]["release"] = 3.into()),
        trust_with("threshold-for-approvals-only", "threshold-none", |t| t["threshold"] = json!({"approve": 1})),
        trust_with("threshold-of-two", "threshold-not-met", |t| t["threshold"]["release"] = 2.into()),
        trust_with("key-revoked", "key-revoked", |t| t["revoked"] = json!({"keys": [key_id(&key(1))]})),
        trust_with("key-expired", "key-expired", |t| t["keys"][0]["not_after"] = "2026-06-15T12:00:00Z".into()),
        trust_with("key-not-yet-valid", "key-not-yet-valid", |t| {
            t["keys"][0]["not_before"] = "2026-06-15T12:00:01Z".into();
        }),
        trust_with("payload-revoked", "digest-revoked", |t| {
            t["revoked"] = json!({"digests": [Digest::of(&bytes(&payload())).to_string()]});
        }),
        trust_with("policy-revoked", "digest-revoked", |t| {
            t["revoked"] = json!({"digests": [Digest::of(b"policy").to_string()]});
        }),
        trust_with("file-revoked", "digest-revoked", |t| {
            t["revoked"] = json!({"digests": [Digest::of(files()[0].1.as_bytes()).to_string()]});
        }),
        trust_with("sequence-floor", "sequence-floor", |t| t["floor"] = json!({"sequence": 8})),
        trust_with("clock-floor", "clock-rollback", |t| t["clock"] = json!({"floor": "2026-06-15T12:00:01Z"})),
        trust_with("no-skew", "not-yet-valid", |t| {
            t["clock"] = json!({"skew_seconds": 0});
            // The good payload was issued earlier, so the test moves the clock.
        }),
    ]
}

fn disk_cases() -> Vec<Case> {
    vec![
        case("envelope-over-the-cap", "envelope-too-large", |b| b.put_envelope(vec![b' '; 1024 * 1024 + 1])),
        case("payload-over-the-cap", "payload-too-large", |b| b.put_envelope(signed(&vec![b' '; 512 * 1024 + 1]))),
        case("trust-over-the-cap", "trust-too-large", |b| b.put_trust_bytes(&vec![b' '; 256 * 1024 + 1])),
        case("no-envelope", "envelope-missing", |b| std::fs::remove_file(b.file(ENVELOPE)).unwrap()),
        case("no-envelope-outside", "envelope-missing", |b| {
            b.envelope_at = EnvelopeAt::Outside(b.root.path().join("absent.json"));
        }),
        case("envelope-name-escapes", "file-name-escapes", |b| {
            b.envelope_at = EnvelopeAt::Inside("../trust.json".into());
        }),
        case("envelope-is-link", "file-symlink", |b| {
            std::fs::rename(b.file(ENVELOPE), b.root.path().join("e.json")).unwrap();
            symlink("../e.json", b.file(ENVELOPE)).unwrap();
        }),
        case("envelope-hard-link", "file-hard-link", |b| {
            std::fs::hard_link(b.file(ENVELOPE), b.root.path().join("e")).unwrap();
        }),
        case("envelope-is-pipe", "file-not-regular", |b| pipe(&b.file(ENVELOPE))),
        case("envelope-is-directory", "file-not-regular", |b| {
            std::fs::remove_file(b.file(ENVELOPE)).unwrap();
            std::fs::create_dir(b.file(ENVELOPE)).unwrap();
        }),
        case("trust-is-pipe", "trust-not-regular", |b| pipe(&b.trust_path)),
        case("state-is-pipe", "state-unreadable", |b| pipe(&b.state_path)),
        case("no-directory", "directory-unreadable", |b| std::fs::remove_dir_all(b.policy()).unwrap()),
        case("extra-file", "file-extra", |b| b.put("SUDO.md", "x")),
        case("extra-hidden-file", "file-extra", |b| b.put(".env", "x")),
        case("extra-file-below", "file-extra", |b| b.put("guardrails/agent.cedar", "x")),
        case("extra-empty-directory", "file-extra", |b| std::fs::create_dir(b.file("capabilities")).unwrap()),
        case("extra-by-case", "file-extra", |b| b.put("claude_cmds.md", "x")),
        case("almost-a-left-over", "file-extra", |b| b.put(".polctl.sig.json.tmp-short", "x")),
        case("missing-file", "file-missing", |b| std::fs::remove_file(b.file("CLAUDE_CMDS.md")).unwrap()),
        case("missing-directory", "file-missing", |b| std::fs::remove_dir_all(b.file("guardrails")).unwrap()),
        case("symlink", "file-symlink", |b| {
            std::fs::rename(b.file("CLAUDE_CMDS.md"), b.root.path().join("c.md")).unwrap();
            symlink(b.root.path().join("c.md"), b.file("CLAUDE_CMDS.md")).unwrap();
        }),
        case("symlink-to-itself", "file-symlink", |b| {
            std::fs::remove_file(b.file("CLAUDE_CMDS.md")).unwrap();
            symlink("CLAUDE_CMDS.md", b.file("CLAUDE_CMDS.md")).unwrap();
        }),
        case("directory-symlink", "file-symlink", |b| {
            std::fs::rename(b.file("guardrails"), b.root.path().join("c")).unwrap();
            symlink("../c", b.file("guardrails")).unwrap();
        }),
        case("extra-symlink", "file-symlink", |b| symlink("/etc/passwd", b.file("x.md")).unwrap()),
        case("hard-link-to-outside", "file-hard-link", |b| {
            std::fs::hard_link(b.file("CLAUDE_CMDS.md"), b.root.path().join("door")).unwrap();
        }),
        case("directory-for-file", "file-not-regular", |b| {
            std::fs::remove_file(b.file("CLAUDE_CMDS.md")).unwrap();
            std::fs::create_dir(b.file("CLAUDE_CMDS.md")).unwrap();
        }),
        case("pipe-for-file", "file-not-regular", |b| pipe(&b.file("CLAUDE_CMDS.md"))),
        case("line-ends", "file-size", |b| b.put("CLAUDE_CMDS.md", files()[0].1.replace('\n', "\r\n"))),
        case("appended", "file-size", |b| b.put("CLAUDE_CMDS.md", format!("{}- `rm **`\n", files()[0].1))),
        case("truncated", "file-size", |b| b.put("CLAUDE_CMDS.md", "")),
        case("one-letter", "file-digest", |b| b.put("CLAUDE_CMDS.md", files()[0].1.replace("status", "states"))),
        case("files-exchanged", "file-size", |b| b.put("CLAUDE_CMDS.md", files()[1].1)),
        case("name-not-utf8", "file-name-not-utf8", |b| {
            std::fs::write(b.policy().join(std::ffi::OsStr::from_bytes(b"\xff")), "x").unwrap();
        }),
        case("name-unseen-on-disk", "file-name-characters", |b| b.put("a\u{200b}", "x")),
        case("too-many-entries", "set-too-many-files", |b| {
            (0..4097).for_each(|at| b.put(&format!("f{at}"), ""));
        }),
        case("no-trust", "trust-unreadable", |b| std::fs::remove_file(&b.trust_path).unwrap()),
        case("trust-in-policy", "trust-inside-policy", |b| {
            std::fs::rename(&b.trust_path, b.file("trust.json")).unwrap();
            b.trust_path = b.file("trust.json");
        }),
        case("trust-in-policy-by-dots", "trust-inside-policy", |b| {
            std::fs::rename(&b.trust_path, b.file("trust.json")).unwrap();
            b.trust_path = b.root.path().join("policy/../policy/trust.json");
        }),
        case("trust-in-policy-by-link", "trust-inside-policy", |b| {
            std::fs::rename(&b.trust_path, b.file("trust.json")).unwrap();
            symlink("policy", b.root.path().join("etc")).unwrap();
            b.trust_path = b.root.path().join("etc/trust.json");
        }),
        case("trust-is-link", "trust-not-regular", |b| {
            std::fs::rename(&b.trust_path, b.file("trust.json")).unwrap();
            symlink("policy/trust.json", &b.trust_path).unwrap();
        }),
        case("trust-hard-link", "trust-not-regular", |b| {
            std::fs::hard_link(&b.trust_path, b.root.path().join("t")).unwrap();
        }),
        case("trust-writable", "trust-writable", |b| {
            std::fs::set_permissions(&b.trust_path, std::fs::Permissions::from_mode(0o664)).unwrap();
        }),
        case("state-in-policy", "state-inside-policy", |b| b.state_path = b.file("state.json")),
        case("state-without-directory", "state-unreadable", |b| b.state_path = b.root.path().join("no/state.json")),
        case("state-is-link", "state-unreadable", |b| symlink("trust.json", &b.state_path).unwrap()),
        case("state-not-json", "state-syntax", |b| std::fs::write(&b.state_path, "").unwrap()),
        case("state-unknown-field", "state-unknown-field", |b| {
            std::fs::write(&b.state_path, r#"{"polctl_state":"v1","sets":[],"x":1}"#).unwrap();
        }),
        case("sequence-lower", "sequence-rollback", |b| put_state(b, 8, &bytes(&payload()), "2026-06-15T00:00:00Z")),
        case("sequence-reused", "sequence-reused", |b| put_state(b, 7, b"another", "2026-06-15T00:00:00Z")),
        case("clock-behind", "clock-rollback", |b| put_state(b, 7, &bytes(&payload()), "2026-07-01T00:00:00Z")),
        case("other-policy-expected", "policy-changed", |b| b.expect = Some(Digest::of(b"prepared"))),
    ]
}

/// Puts a pipe in the place of a file.
fn pipe(path: &std::path::Path) {
    drop(std::fs::remove_file(path));
    let made = std::process::Command::new("mkfifo").arg(path).status();
    assert!(made.is_ok_and(|s| s.success()), "mkfifo is missing: install coreutils");
}

fn put_state(bench: &Bench, sequence: u64, payload: &[u8], latest: &str) {
    let state = json!({"polctl_state": "v1", "sets": [
        {"set": "fleet-test", "sequence": sequence, "payload": Digest::of(payload).to_string(), "latest": latest},
    ]});
    std::fs::write(&bench.state_path, bytes(&state)).unwrap();
}

/// What the state file holds, if it is a file.
fn state(bench: &Bench) -> Option<Vec<u8>> {
    bench.state_path.is_file().then(|| std::fs::read(&bench.state_path).unwrap())
}

fn check(cases: &[Case]) -> BTreeSet<&'static str> {
    let mut wrong = Vec::new();
    for (name, code, spoil) in cases {
        let mut bench = Bench::new();
        spoil(&mut bench);
        if *name == "no-skew" {
            bench.now = time("2026-05-31T23:59:59Z");
        }
        let state = state(&bench);
        match bench.verify() {
            Ok(_) => wrong.push(format!("{name}: accepted, not {code}")),
            Err(error) => {
                if error.code_name() != *code {
                    wrong.push(format!("{name}: {} ({error}), not {code}", error.code_name()));
                }
                assert!(error.help_text().is_some_and(|help| !help.is_empty()), "{name} has no help");
                assert!(
                    !error.to_string().contains('\n') && !error.to_string().contains('\u{202e}'),
                    "{name}: {error:?}"
                );
            }
        }
        assert_eq!(self::state(&bench), state, "{name}: a refusal changed the state");
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let names: BTreeSet<_> = cases.iter().map(|(name, ..)| name).collect();
    assert_eq!(names.len(), cases.len(), "two vectors of one name");
    cases.iter().map(|(_, code, _)| *code).collect()
}

#[test]
fn the_good_set_is_verified() {
    let bench = Bench::new();
    let verified = bench.verify().unwrap();
    assert_eq!(verified.payload().sequence, 7);
    assert_eq!(verified.signers()[0].signer, "release-a");
    for (name, text) in files() {
        assert_eq!(verified.files().get(name).unwrap(), text.as_bytes());
    }
    assert_eq!(verified.files().iter().count(), files().len());
    // Again, and an hour later: the same payload stays good.
    assert!(bench.verify().is_ok());
    let state = std::fs::read_to_string(&bench.state_path).unwrap();
    assert!(state.contains("\"sequence\": 7"), "{state}");
}

#[test]
fn wrong_envelopes_are_refused() {
    check(&envelope_cases());
}

#[test]
fn wrong_payloads_are_refused() {
    check(&payload_cases());
}

#[test]
fn wrong_trust_is_refused() {
    check(&trust_cases());
}

#[test]
fn wrong_directories_are_refused() {
    check(&disk_cases());
}

/// The vectors that are one text are files too, for other implementations. `POLCTL_BLESS=1`
/// writes them anew.
#[test]
fn vector_files_are_the_vectors() {
    let bless = std::env::var_os("POLCTL_BLESS").is_some_and(|v| v == "1");
    let root = repository().join("fixtures/sign");
    let mut expected = BTreeSet::new();
    let mut check = |path: String, content: Vec<u8>| {
        let full = root.join(&path);
        if bless {
            std::fs::create_dir_all(full.parent().unwrap()).unwrap();
            std::fs::write(&full, &content).unwrap();
        }
        assert!(
            std::fs::read(&full).ok() == Some(content),
            "{path} differs: run with POLCTL_BLESS=1 and look at the change"
        );
        expected.insert(path);
    };
    let bench = Bench::new();
    check("good/trust.json".into(), bytes(&trust()));
    for (name, text) in files() {
        check(format!("good/policy/{name}"), text.as_bytes().to_vec());
    }
    check(format!("good/policy/{ENVELOPE}"), std::fs::read(bench.file(ENVELOPE)).unwrap());
    for (folder, cases) in [("envelopes", envelope_cases()), ("envelopes", payload_cases()), ("trust", trust_cases())] {
        for (name, code, spoil) in &cases {
            let mut bench = Bench::new();
            spoil(&mut bench);
            let path = if folder == "trust" { bench.trust_path.clone() } else { bench.file(ENVELOPE) };
            check(format!("{folder}/{code}--{name}.json"), std::fs::read(path).unwrap());
        }
    }
    let mut found = BTreeSet::new();
    collect(&root, "", &mut found);
    assert_eq!(found, expected, "files that no vector is behind");
    assert!(expected.len() > 100);
}

fn collect(dir: &std::path::Path, prefix: &str, out: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let entry = entry.unwrap();
        let name = format!("{prefix}{}", entry.file_name().to_str().unwrap());
        if entry.path().is_dir() {
            collect(&entry.path(), &format!("{name}/"), out);
        } else {
            out.insert(name);
        }
    }
}

/// Whatever is changed in an envelope, it is refused or means the same.
#[test]
fn no_changed_byte_changes_what_is_accepted() {
    let good = bytes(&good());
    let trust = polctl::sign::Trust::parse(&bytes(&trust())).unwrap();
    let now = time(sign_common::NOW);
    let accepted = |text: &[u8]| {
        let envelope = polctl::sign::Envelope::parse(text).ok()?;
        envelope.verify(POLICY_SET_TYPE, polctl::sign::Role::Release, &trust, now).ok()?;
        Some(envelope.payload().to_vec())
    };
    let payload = accepted(&good).unwrap();
    let mut same = 0;
    for at in 0..good.len() {
        let mut changed: Vec<Vec<u8>> = [good[at] ^ 1, good[at] ^ 0x20, b'"', b' ', b'=']
            .into_iter()
            .map(|byte| [&good[..at], &[byte], &good[at + 1..]].concat())
            .collect();
        changed.push([&good[..at], &good[at + 1..]].concat());
        changed.push(good[..at].to_vec());
        for text in changed.into_iter().filter(|text| *text != good) {
            if let Some(found) = accepted(&text) {
                assert_eq!(found, payload, "byte {at}");
                same += 1;
            }
        }
    }
    // Only white space between the parts is free.
    assert!(same < 200, "{same}");
}

#[test]
fn what_was_hashed_is_what_is_handed_on() {
    let bench = Bench::new();
    let verified = bench.verify().unwrap();
    bench.put("CLAUDE_CMDS.md", "- `rm -rf **`\n");
    std::fs::remove_file(bench.file("polctl.yaml")).unwrap();
    assert_eq!(verified.files().get("CLAUDE_CMDS.md").unwrap(), files()[0].1.as_bytes());
    assert_eq!(verified.files().get("polctl.yaml").unwrap(), files()[2].1.as_bytes());
}

#[test]
fn a_file_that_changes_all_the_time_is_the_signed_one_or_refused() {
    let bench = Bench::new();
    let path = bench.file("CLAUDE_CMDS.md");
    let other = bench.root.path().join("other");
    let (stop, stopped) = std::sync::mpsc::channel::<()>();
    let writer = std::thread::spawn(move || {
        let evil = files()[0].1.replace("status", "states");
        while stopped.try_recv() == Err(std::sync::mpsc::TryRecvError::Empty) {
            for text in [evil.as_str(), files()[0].1] {
                std::fs::write(&other, text).unwrap();
                std::fs::rename(&other, &path).unwrap();
            }
        }
    });
    let mut accepted = 0;
    for _ in 0..300 {
        match bench.verify() {
            Ok(verified) => {
                accepted += 1;
                assert_eq!(verified.files().get("CLAUDE_CMDS.md").unwrap(), files()[0].1.as_bytes());
            }
            Err(error) => assert!(["file-digest", "file-missing"].contains(&error.code_name().as_str()), "{error}"),
        }
    }
    drop(stop);
    writer.join().unwrap();
    assert!(accepted > 0, "never accepted");
}

/// A set of 10,000 rules has a bundle of 14 MB.
#[test]
fn a_bundle_is_larger_than_the_files_that_it_is_made_of() {
    let bench = Bench::new();
    let bundle = vec![b'x'; 14_000_000];
    bench.put("polctl.bundle", &bundle);
    let mut payload = payload();
    let entry = json!({"name": "polctl.bundle", "size": bundle.len(), "sha256": Digest::of(&bundle).to_string()});
    payload["files"].as_array_mut().unwrap().insert(2, entry);
    bench.put_payload(&payload);
    assert_eq!(bench.verify().unwrap().files().get("polctl.bundle").unwrap().len(), bundle.len());
    bench.put("polctl.bundle", &bundle[1..]);
    assert_eq!(bench.verify().unwrap_err().code_name(), "file-size");
}

#[test]
fn what_is_named_is_left_out() {
    let mut bench = Bench::new();
    bench.put(".git/config", "x");
    bench.put("README.md", "x");
    assert_eq!(bench.verify().unwrap_err().code_name(), "file-extra");
    bench.ignored = vec![".git".into(), "README.md".into()];
    let verified = bench.verify().unwrap();
    assert_eq!(verified.files().get("README.md"), None, "what is left out is not handed on");
    // Exactly that name, at exactly that place.
    bench.put("guardrails/README.md", "x");
    assert_eq!(bench.verify().unwrap_err().code_name(), "file-extra");
}

#[test]
fn two_signers_meet_a_threshold_of_two() {
    let bench = Bench::new();
    let mut two = trust();
    two["threshold"]["release"] = 2.into();
    bench.put_trust(&two);
    bench.put_envelope(bytes(&envelope(POLICY_SET_TYPE, &bytes(&payload()), &[&key(2), &key(1)])));
    let verified = bench.verify().unwrap();
    let signers: Vec<_> = verified.signers().iter().map(|s| s.signer.as_str()).collect();
    assert_eq!(signers, ["release-b", "release-a"]);
}

#[test]
fn an_envelope_may_lie_elsewhere() {
    let mut bench = Bench::new();
    let outside = bench.root.path().join("e.json");
    std::fs::rename(bench.file(ENVELOPE), &outside).unwrap();
    bench.envelope_at = EnvelopeAt::Outside(outside);
    assert!(bench.verify().is_ok());
    // Then a file of its usual name in the directory is an extra one.
    bench.put(ENVELOPE, "x");
    assert_eq!(bench.verify().unwrap_err().code_name(), "file-extra");
}

#[test]
fn what_an_interrupted_signer_left_is_no_policy() {
    let bench = Bench::new();
    bench.put(".polctl.sig.json.tmp-0123456789abcdEF", "half");
    assert!(bench.verify().is_ok());
}

#[test]
fn a_locked_state_is_a_refusal() {
    let bench = Bench::new();
    let lock = bench.root.path().join("state.json.lock");
    let held = std::fs::File::create(&lock).unwrap();
    rustix::fs::flock(&held, rustix::fs::FlockOperation::LockExclusive).unwrap();
    assert_eq!(bench.verify().unwrap_err().code_name(), "state-locked");
    drop(held);
    assert!(bench.verify().is_ok());
}

#[test]
fn many_verify_at_once() {
    let bench = Bench::new();
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(|| bench.verify().map(|v| v.payload().sequence))).collect();
        for thread in threads {
            assert_eq!(thread.join().unwrap().unwrap(), 7);
        }
    });
}

#[test]
fn the_sequence_only_grows() {
    let bench = Bench::new();
    let sign = |sequence: u64| {
        let mut next = payload();
        next["sequence"] = sequence.into();
        bench.put_payload(&next);
    };
    assert!(bench.verify().is_ok());
    sign(9);
    assert!(bench.verify().is_ok());
    sign(8);
    assert_eq!(bench.verify().unwrap_err().code_name(), "sequence-rollback");
    sign(9);
    assert!(bench.verify().is_ok());
    // A set that fails elsewhere is not remembered.
    sign(10);
    bench.put("x", "x");
    assert_eq!(bench.verify().unwrap_err().code_name(), "file-extra");
    std::fs::remove_file(bench.file("x")).unwrap();
    sign(9);
    assert!(bench.verify().is_ok());
}

/// Every code that a verification can give has a vector, and every code has its line in the
/// documentation.
#[test]
fn every_code_has_a_vector_and_a_line() {
    let folder = std::fs::read_dir(repository().join("src/sign/error")).unwrap();
    let source: String = folder.map(|e| std::fs::read_to_string(e.unwrap().path()).unwrap()).collect();
    let codes: BTreeSet<&str> = source.split("code(\"").skip(1).map(|rest| rest.split('"').next().unwrap()).collect();
    let cases = [envelope_cases(), payload_cases(), trust_cases(), disk_cases()];
    let covered: BTreeSet<&str> = cases.iter().flatten().map(|(_, code, _)| *code).collect();
    // Codes of signing and of Vault, which their own tests show.
    let elsewhere = |code: &str| {
        code.starts_with("vault-")
            || code.starts_with("key-file-")
            || [
                "state-locked",
                "payload-differs",
                "signature-not-pinned",
                "sign-refused",
                "approval-mismatch",
                "write-failed",
            ]
            .contains(&code)
            || ["write-target", "key-invalid", "key-weak", "key-random", "file-unreadable"].contains(&code)
    };
    let missing: Vec<_> = codes.iter().filter(|code| !covered.contains(**code) && !elsewhere(code)).collect();
    assert!(missing.is_empty(), "no vector for {missing:?}");
    let page = std::fs::read_to_string(repository().join("docs/signing.md")).unwrap();
    let line = |code: &str| page.contains(&format!("\n| `{code}` |"));
    let missing: Vec<_> = codes.iter().filter(|code| !line(code)).collect();
    assert!(missing.is_empty(), "no line in docs/signing.md for {missing:?}");
    let lines = page.lines().filter(|l| l.starts_with("| `")).filter_map(|l| l.split('`').nth(1));
    let unknown: Vec<_> = lines.filter(|code| code.contains('-') && !codes.contains(code)).collect();
    assert!(unknown.is_empty(), "lines in docs/signing.md without a code: {unknown:?}");
}
