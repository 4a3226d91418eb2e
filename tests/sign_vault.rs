//! The Vault signer against a real `OpenBao` server.
//!
//! Every run of the executable is searched for the tokens and secret ids in use. Every run
//! that fails must say what to do and leave the policy directory as it was.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test that cannot go on fails")]

mod sign_common;

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};

use serde_json::{Value, json};
use sign_common::bao::{Bao, SIGN_ONLY, VERIFY_ONLY, free_port};
use sign_common::{Desk, ENVELOPE, Run};

/// A desk that trusts version 1 of the server's key.
fn desk(bao: &Bao) -> Desk {
    let desk = Desk::new();
    desk.pin(&bao.public(1), "vault", "release").exits(0);
    desk
}

fn sign_args(desk: &Desk, more: &[&str]) -> Vec<String> {
    let mut args: Vec<String> = ["sign", "--initial", "--signer", "vault", "--vault-key", "release", "--timeout", "2"]
        .iter()
        .map(|arg| (*arg).to_owned())
        .collect();
    args.extend(["-C".into(), desk.path("policy"), "--trust".into(), desk.path("trust.json")]);
    args.extend(more.iter().map(|arg| (*arg).to_owned()));
    args
}

fn sign(bao: &Bao, desk: &Desk, token: &str, more: &[&str]) -> Run {
    let args = sign_args(desk, more);
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    bao.run(token, &args)
}

fn names(desk: &Desk) -> Vec<String> {
    let dir = std::fs::read_dir(desk.root.path().join("policy")).unwrap();
    let mut names: Vec<_> = dir.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// A failure: the code, a help line, and nothing written.
#[track_caller]
fn fails(desk: &Desk, run: Run, code: &str) {
    let run = run.says(code);
    assert!(run.code == 2 || run.code == 4, "{}", run.code);
    assert!(run.err.contains("help:"), "{}", run.err);
    assert!(!run.err.contains("panicked"), "{}", run.err);
    assert_eq!(names(desk), ["CLAUDE_CMDS.md", "guardrails", "polctl.yaml"]);
}

#[test]
fn a_least_privilege_token_signs() {
    let bao = Bao::dev();
    let desk = desk(&bao);
    let token = bao.token("sign-only", SIGN_ONLY);
    let run = sign(&bao, &desk, &token, &[]).exits(0);
    assert!(run.out.contains("signed by vault"), "{}", run.out);
    desk.verify(&["--enforce"]).exits(0);
    // A trailing line end, from a file or a variable, is no part of a token.
    desk.put("token", format!("{token}\r\n"));
    sign(&bao, &desk, "", &["--token-file", &desk.path("token")]).exits(0);
    sign(&bao, &desk, &format!(" {token}\n"), &[]).exits(0);
    desk.verify(&["--enforce"]).exits(0);
    // The policy refuses what polctl does not send.
    let (status, _) =
        bao.try_admin(&token, "POST", "transit/sign/release", &json!({"input": "eA==", "prehashed": true})).unwrap();
    assert!(status == 403 || status == 400, "{status}");
    let (status, _) = bao.try_admin(&token, "POST", "transit/sign/release", &json!({})).unwrap();
    assert!(status == 403 || status == 400, "{status}");
}

#[test]
fn an_app_role_signs_and_leaves_no_token_behind() {
    let bao = Bao::dev();
    let desk = desk(&bao);
    let (role, secret) = bao.approle("ci", SIGN_ONLY, 2);
    desk.put("secret-id", format!("{secret}\n"));
    let login = ["--role-id", &role, "--secret-id-file", &desk.path("secret-id")];
    sign(&bao, &desk, "", &login).exits(0);
    desk.verify(&["--enforce"]).exits(0);
    let accessors = bao.admin("GET", "auth/token/accessors?list=true", &Value::Null);
    assert_eq!(accessors["data"]["keys"].as_array().unwrap().len(), 1, "only the root token is left");
    // From the environment; this is the second and last use.
    let mut command = bao.prepared(&[]);
    command.args(sign_args(&desk, &[])).env("POLCTL_VAULT_ROLE_ID", &role).env("POLCTL_VAULT_SECRET_ID", &secret);
    bao.finish(command).exits(0);
    let before = desk.get(&format!("policy/{ENVELOPE}"));
    sign(&bao, &desk, "", &login).exits(2).says("vault-login");
    assert_eq!(desk.get(&format!("policy/{ENVELOPE}")), before, "a spent secret id leaves the old envelope");
    desk.verify(&["--enforce"]).exits(0);
}

#[test]
fn a_wrong_role_or_secret_id_is_refused() {
    let bao = Bao::dev();
    let desk = desk(&bao);
    let (role, _) = bao.approle("ci", SIGN_ONLY, 0);
    desk.put("secret-id", bao.secret("0c1f9d6e-0000-4000-8000-1f2e3d4c5b6a"));
    let file = desk.path("secret-id");
    fails(&desk, sign(&bao, &desk, "", &["--role-id", &role, "--secret-id-file", &file]), "vault-login");
    fails(&desk, sign(&bao, &desk, "", &["--role-id", "nobody", "--secret-id-file", &file]), "vault-login");
    fails(
        &desk,
        sign(&bao, &desk, "", &["--role-id", &role, "--secret-id-file", &file, "--approle-mount", "absent"]),
        "vault-login",
    );
}

#[test]
fn a_key_is_rotated_with_old_and_new_pins() {
    let bao = Bao::dev();
    let desk = desk(&bao);
    let root = bao.root.clone();
    let trust = desk.path("trust.json");
    let rotate = || bao.run(&root, &["keys", "rotate", "--vault-key", "release", "--trust", &trust]).exits(0).out;
    sign(&bao, &desk, &root, &[]).exits(0);
    assert!(rotate().contains("transit/keys/release/rotate"), "{}", rotate());
    bao.admin("POST", "transit/keys/release/rotate", &json!({}));
    // Version 2 signs and is not pinned: refused before anything is written.
    let before = desk.get(&format!("policy/{ENVELOPE}"));
    let run = sign(&bao, &desk, &root, &[]).exits(4).says("signature-not-pinned");
    assert!(run.err.contains("version 2"), "{}", run.err);
    assert_eq!(desk.get(&format!("policy/{ENVELOPE}")), before);
    desk.verify(&["--enforce"]).exits(0);
    assert!(rotate().contains("keys pin"), "{}", rotate());
    // Both pinned: the old envelope and the new one are good.
    desk.pin(&bao.public(2), "vault", "release").exits(0);
    desk.verify(&["--enforce"]).exits(0);
    let plan = rotate();
    assert!(plan.contains("sign every set again") && plan.contains("keys drop"), "{plan}");
    sign(&bao, &desk, &root, &[]).exits(0);
    desk.verify(&["--enforce"]).exits(0);
    // The old one dropped: the new envelope stays good, the old one is refused.
    let id =
        plan.split("keys drop --trust ").nth(1).unwrap().lines().next().unwrap().split(' ').nth(1).unwrap().to_owned();
    sign_common::polctl(&["keys", "drop", "--trust", &trust, &id]).exits(0);
    desk.verify(&["--enforce"]).exits(0);
    desk.put(&format!("policy/{ENVELOPE}"), before);
    desk.verify(&["--enforce"]).exits(4).says("signature-unknown-key");
    // Vault forgets version 1, and shows only what it still has.
    bao.admin(
        "POST",
        "transit/keys/release/config",
        &json!({"min_decryption_version": 2, "min_encryption_version": 2}),
    );
    let shown = bao.run(&root, &["keys", "show", "--vault-key", "release"]).exits(0).out;
    assert!(!shown.contains("version 1 ") && shown.contains("version 2 "), "{shown}");
    assert!(rotate().contains("nothing is left to do"), "{}", rotate());
}

#[test]
fn keys_that_cannot_sign_are_refused() {
    let bao = Bao::dev();
    let desk = desk(&bao);
    let root = bao.root.clone();
    let args = sign_args(&desk, &[]);
    let with_key = |key: &str| {
        let args: Vec<&str> = args.iter().map(|a| if a == "release" { key } else { a.as_str() }).collect();
        bao.run(&root, &args)
    };
    let show = |key: &str| bao.run(&root, &["keys", "show", "--vault-key", key]);
    fails(&desk, with_key("absent"), "vault-key-refused");
    fails(&desk, show("absent"), "vault-key-missing");
    for (kind, code) in
        [("aes256-gcm96", "vault-key-refused"), ("rsa-2048", "vault-answer"), ("ecdsa-p256", "vault-answer")]
    {
        bao.admin("POST", &format!("transit/keys/{kind}"), &json!({"type": kind}));
        fails(&desk, with_key(kind), code);
        fails(&desk, show(kind), "vault-key-unusable");
    }
    bao.admin("POST", "transit/keys/derived", &json!({"type": "ed25519", "derived": true}));
    fails(&desk, with_key("derived"), "vault-key-refused");
    fails(&desk, show("derived"), "vault-key-unusable");
    bao.admin("POST", "transit/keys/other", &json!({"type": "ed25519"}));
    fails(&desk, with_key("other"), "signature-not-pinned");
    fails(&desk, sign(&bao, &desk, &root, &["--vault-mount", "absent"]), "vault-key-missing");
    fails(&desk, with_key("../sys"), "vault-setting");
}

#[test]
fn tokens_that_may_not_sign_are_refused() {
    let bao = Bao::dev();
    let desk = desk(&bao);
    let token = bao.token("nothing", "path \"secret/x\" { capabilities = [\"read\"] }");
    fails(&desk, sign(&bao, &desk, &token, &[]), "vault-denied");
    let token = bao.token("sign-only", SIGN_ONLY);
    bao.admin("POST", "auth/token/revoke", &json!({"token": token}));
    fails(&desk, sign(&bao, &desk, &token, &[]), "vault-denied");
    fails(&desk, sign(&bao, &desk, &bao.secret("hvs.no-such-token-at-all"), &[]), "vault-denied");
    for bad in ["hvs.two\nlines-of-secret", "hvs.unicode-\u{e9}-secret", " \n "] {
        if !bad.trim().is_empty() {
            bao.secret(bad.split('\n').next_back().unwrap());
        }
        fails(&desk, sign(&bao, &desk, bad, &[]), "vault-setting");
    }
    assert!(sign(&bao, &desk, "", &[]).exits(2).err.contains("VAULT_TOKEN"));
}

/// The server under another address: bytes are passed on as they are.
fn forwarded(address: &str, listen: &str) -> String {
    let to = address.trim_start_matches("https://").to_owned();
    let listener = TcpListener::bind(listen).unwrap();
    let own = format!("https://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for client in listener.incoming() {
            let (Ok(client), Ok(server)) = (client, TcpStream::connect(&to)) else { return };
            for (from, into) in [(&client, &server), (&server, &client)] {
                let (mut from, mut into) = (from.try_clone().unwrap(), into.try_clone().unwrap());
                std::thread::spawn(move || drop(std::io::copy(&mut from, &mut into)));
            }
        }
    });
    own
}

#[test]
fn tls_is_always_verified() {
    let bao = Bao::dev();
    let desk = desk(&bao);
    let token = bao.token("sign-only", SIGN_ONLY);
    let run = |change: &dyn Fn(&mut std::process::Command), more: &[&str]| {
        let mut command = bao.prepared(&[]);
        command.args(sign_args(&desk, more)).env("VAULT_TOKEN", &token);
        change(&mut command);
        bao.finish(command)
    };
    // The system's authorities do not know this one; an empty variable is no variable.
    fails(&desk, run(&|c| _ = c.env_remove("VAULT_CACERT"), &[]), "vault-tls");
    fails(&desk, run(&|c| _ = c.env("VAULT_CACERT", ""), &[]), "vault-tls");
    for value in ["", "1", "true", "no", "false"] {
        fails(&desk, run(&|c| _ = c.env_remove("VAULT_CACERT").env("VAULT_SKIP_VERIFY", value), &[]), "vault-tls");
    }
    // Another authority.
    let (key, cert) = (desk.path("ca.key"), desk.path("ca.pem"));
    let made = sign_common::tool(
        "openssl",
        "OpenSSL 3 (Debian: openssl)",
        &["req", "-x509", "-newkey", "ed25519", "-nodes", "-subj", "/CN=other", "-keyout", &key, "-out", &cert],
    );
    assert!(made.status.success());
    fails(&desk, run(&|_| (), &["--ca", &cert]), "vault-tls");
    // Not a certificate at all.
    fails(&desk, run(&|_| (), &["--ca", &desk.path("trust.json")]), "vault-setting");
    // The right authority, a name that the certificate does not have.
    let other_name = forwarded(&bao.address, "127.0.0.2:0");
    fails(&desk, run(&|_| (), &["--vault-addr", &other_name]), "vault-tls");
    // Plain text on a port that speaks TLS: it closes, with or without an answer.
    let plain = run(&|_| (), &["--vault-addr", &bao.address.replace("https", "http")]);
    let code = if plain.err.starts_with("vault-answer") { "vault-answer" } else { "vault-key-refused" };
    fails(&desk, plain, code);
    // No plain text beyond loopback, whatever is there.
    fails(&desk, run(&|_| (), &["--vault-addr", "http://192.0.2.1:8200"]), "vault-setting");
    run(&|_| (), &[]).exits(0);
}

#[test]
fn a_server_that_is_not_there_or_does_not_answer_is_reported() {
    let bao = Bao::dev();
    let desk = desk(&bao);
    let token = bao.token("sign-only", SIGN_ONLY);
    let nobody = format!("https://127.0.0.1:{}", free_port());
    fails(&desk, sign(&bao, &desk, &token, &["--vault-addr", &nobody]), "vault-unreachable");
    fails(&desk, sign(&bao, &desk, &token, &["--vault-addr", "https://vault.invalid:8200"]), "vault-unreachable");
    bao.hold(true);
    let begin = std::time::Instant::now();
    let run = sign(&bao, &desk, &token, &[]);
    bao.hold(false);
    assert!(begin.elapsed() < std::time::Duration::from_secs(8), "{:?}", begin.elapsed());
    fails(&desk, run, "vault-timeout");
    sign(&bao, &desk, &token, &[]).exits(0);
}

#[test]
fn a_sealed_server_is_reported() {
    let bao = Bao::dev();
    let desk = desk(&bao);
    let root = bao.root.clone();
    bao.admin("POST", "sys/seal", &json!({}));
    fails(&desk, sign(&bao, &desk, &root, &[]), "vault-sealed");
    fails(&desk, bao.run(&root, &["keys", "show", "--vault-key", "release"]), "vault-sealed");
}

/// Passes one connection after the other on to `to`, with a header that asks a standby not
/// to forward the request by itself.
fn without_forwarding(to: String) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for client in listener.incoming() {
            let Ok(mut client) = client else { return };
            let mut server = TcpStream::connect(&to).unwrap();
            let mut request = Vec::new();
            let mut buffer = [0; 8192];
            while !request.windows(4).any(|w| w == b"\r\n\r\n") {
                let read = client.read(&mut buffer).unwrap_or(0);
                if read == 0 {
                    break;
                }
                request.extend_from_slice(&buffer[..read]);
            }
            let text = String::from_utf8(request).unwrap();
            let text = text.replacen("\r\n", "\r\nX-Vault-No-Request-Forwarding: 1\r\nConnection: close\r\n", 1);
            server.write_all(text.as_bytes()).unwrap();
            // A body that came later.
            let mut rest = client.try_clone().unwrap();
            let mut up = server.try_clone().unwrap();
            std::thread::spawn(move || drop(std::io::copy(&mut rest, &mut up)));
            drop(std::io::copy(&mut server, &mut client));
            drop(client.shutdown(std::net::Shutdown::Both));
        }
    });
    address
}

#[test]
fn sealed_and_standby_nodes_of_a_cluster_are_reported() {
    let mut leader = Bao::raft(None);
    let desk = Desk::new();
    fails(&desk, sign(&leader, &desk, "some-token", &[]), "vault-sealed");
    let (status, init) =
        leader.try_admin("", "PUT", "sys/init", &json!({"secret_shares": 1, "secret_threshold": 1})).unwrap();
    assert_eq!(status, 200, "{init}");
    fails(&desk, sign(&leader, &desk, "some-token", &[]), "vault-sealed");
    leader.root = leader.secret(init["root_token"].as_str().unwrap());
    let unseal = json!({"key": init["keys_base64"][0]});
    leader.try_admin("", "PUT", "sys/unseal", &unseal).unwrap();
    leader.wait(|status| status == 200);
    leader.admin("POST", "sys/mounts/transit", &json!({"type": "transit"}));
    leader.admin("POST", "transit/keys/release", &json!({"type": "ed25519"}));
    desk.pin(&leader.public(1), "vault", "release").exits(0);
    let token = leader.token("sign-only", SIGN_ONLY);

    let standby = Bao::raft(Some(&leader.address));
    standby.secret(&token);
    let begin = std::time::Instant::now();
    loop {
        // The node takes a moment to learn of the cluster that it joins.
        drop(standby.try_admin("", "PUT", "sys/unseal", &unseal));
        let health = standby.try_admin("", "GET", "sys/health", &Value::Null).map_or(0, |(status, _)| status);
        if health == 429 || health == 473 {
            break;
        }
        assert!(begin.elapsed() < std::time::Duration::from_mins(1), "the standby did not join: {health}");
        std::thread::sleep(std::time::Duration::from_millis(200));
    }
    // A standby that sends clients to the leader.
    let through = without_forwarding(standby.address.trim_start_matches("http://").to_owned());
    fails(&desk, sign(&standby, &desk, &token, &["--vault-addr", &through]), "vault-redirect");
    // One that forwards by itself is as good as the leader.
    sign(&standby, &desk, &token, &[]).exits(0);
    desk.verify(&["--enforce"]).exits(0);
    // Without a leader nobody signs.
    drop(leader);
    let args = sign_args(&desk, &[]);
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let run = standby.run(&token, &args);
    assert!(run.code == 2 && run.err.contains("help:"), "{}", run.all());
    desk.verify(&["--enforce"]).exits(0);
}

#[test]
fn an_online_gate_asks_vault_too() {
    let bao = Bao::dev();
    let desk = desk(&bao);
    let root = bao.root.clone();
    sign(&bao, &desk, &root, &[]).exits(0);
    let (role, secret) = bao.approle("gate", VERIFY_ONLY, 0);
    desk.put("secret-id", &secret);
    let (policy, trust, file) = (desk.path("policy"), desk.path("trust.json"), desk.path("secret-id"));
    let state = desk.path("gate-state.json");
    let base = ["verify", "-C", &policy, "--trust", &trust, "--also-vault", "--vault-key", "release", "--timeout", "2"];
    let login = ["--role-id", &role, "--secret-id-file", &file];
    let verify = |more: &[&str]| bao.run("", &[&base[..], &login, more].concat());
    verify(&["--enforce", "--no-state"]).exits(0);

    // Unreachable is a refusal, and only a report without enforcement.
    let nobody = format!("https://127.0.0.1:{}", free_port());
    verify(&["--enforce", "--state", &state, "--vault-addr", &nobody]).exits(4).says("vault-unreachable");
    verify(&["--no-state", "--vault-addr", &nobody]).exits(0).says("vault-unreachable");
    assert!(!std::path::Path::new(&state).exists(), "a refusal is not remembered");
    // A signer's role cannot verify.
    let (signer, its_secret) = bao.approle("ci", SIGN_ONLY, 0);
    desk.put("secret-id-ci", &its_secret);
    let other = ["--role-id", &signer, "--secret-id-file", &desk.path("secret-id-ci"), "--enforce", "--no-state"];
    bao.run("", &[&base[..], &other].concat()).exits(4).says("vault-denied");
    // What Vault no longer stands by is refused, whatever the pins say.
    bao.admin("POST", "transit/keys/release/rotate", &json!({}));
    verify(&["--enforce", "--no-state"]).exits(0);
    bao.admin(
        "POST",
        "transit/keys/release/config",
        &json!({"min_decryption_version": 2, "min_encryption_version": 2}),
    );
    verify(&["--enforce", "--no-state"]).exits(4).says("vault-no-signature");
    desk.verify(&["--enforce"]).exits(0);
}

#[test]
fn the_doctor_tells_good_tokens_from_strong_ones() {
    let bao = Bao::dev();
    let desk = desk(&bao);
    let trust = desk.path("trust.json");
    let doctor =
        |token: &str, more: &[&str]| bao.run(token, &[&["keys", "doctor", "--vault-key", "release"], more].concat());
    let good = doctor(&bao.token("sign-only", SIGN_ONLY), &["--trust", &trust]).exits(0).out;
    assert!(good.contains("its current version is pinned") && good.contains("no other power"), "{good}");
    let strong = format!("{SIGN_ONLY}\npath \"transit/*\" {{ capabilities = [\"create\", \"read\", \"update\"] }}\n");
    let strong = doctor(&bao.token("strong", &strong), &[]).exits(1).out;
    for power in ["sign with other keys", "rotate the key", "export the private key"] {
        assert!(strong.contains(power), "{strong}");
    }
    let root = doctor(&bao.root.clone(), &[]).exits(1).out;
    assert!(root.contains("root token") && root.contains("never expires"), "{root}");
    let nothing = doctor(&bao.token("nothing", "path \"x\" { capabilities = [\"read\"] }"), &[]).exits(1).out;
    assert!(nothing.contains("cannot sign"), "{nothing}");
    bao.admin("POST", "transit/keys/release/rotate", &json!({}));
    let unpinned = doctor(&bao.token("sign-only", SIGN_ONLY), &["--trust", &trust]).exits(1).out;
    assert!(unpinned.contains("does not pin"), "{unpinned}");
}
