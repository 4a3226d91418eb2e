//! What a real server cannot be made to do, from a small stub: redirects to other hosts,
//! answers that hang, break off or lie, and every status.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::panic,
    reason = "a test that cannot go on fails"
)]

mod sign_common;

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ed25519_dalek::Signer as _;
use serde_json::{Value, json};
use sign_common::{Desk, ENVELOPE, Run, command, finish, key, public};

const TOKEN: &str = "hvs.CAESI-test-token-0123456789";

/// What the stub does with a request.
#[derive(Clone)]
enum Does {
    /// Answers with a status and a body.
    Answers(u16, String),
    /// Answers with these bytes and closes.
    Says(String),
    /// Answers with these bytes and stays silent.
    Hangs(String),
    /// Signs `input` with key 1 as Vault would.
    Signs,
}

/// A server on a loopback port; remembers requests.
struct Stub {
    address: String,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Stub {
    /// `does` is asked with method and path, and the body.
    fn new(does: impl Fn(&str, &str) -> Does + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let requests = Arc::new(Mutex::new(Vec::new()));
        let (seen, does) = (Arc::clone(&requests), Arc::new(does));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (seen, does) = (Arc::clone(&seen), Arc::clone(&does));
                std::thread::spawn(move || drop(serve(stream.unwrap(), &seen, does.as_ref())));
            }
        });
        Stub { address, requests }
    }

    fn always(does: Does) -> Self {
        Stub::new(move |_, _| does.clone())
    }

    fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

fn serve(mut stream: TcpStream, seen: &Mutex<Vec<String>>, does: &dyn Fn(&str, &str) -> Does) -> std::io::Result<()> {
    let mut request = Vec::new();
    let mut buffer = [0; 8192];
    let (head, body) = loop {
        let read = stream.read(&mut buffer)?;
        if read == 0 {
            return Ok(());
        }
        request.extend_from_slice(&buffer[..read]);
        let text = String::from_utf8_lossy(&request).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length =
                head.lines().find_map(|l| l.to_lowercase().strip_prefix("content-length: ").map(str::to_owned));
            if body.len() >= length.map_or(0, |l| l.parse().unwrap()) {
                break (head.to_owned(), body.to_owned());
            }
        }
    };
    seen.lock().unwrap().push(format!("{head}\r\n\r\n{body}"));
    let line = head.lines().next().unwrap().rsplit_once(' ').unwrap().0;
    match does(line, &body) {
        Does::Answers(status, body) => write!(stream, "{}", answer(status, &body)),
        Does::Says(text) => write!(stream, "{text}"),
        Does::Hangs(text) => {
            write!(stream, "{text}")?;
            std::thread::sleep(Duration::from_secs(30));
            Ok(())
        }
        Does::Signs => {
            let body: Value = serde_json::from_str(&body).unwrap();
            let message = STANDARD.decode(body["input"].as_str().unwrap()).unwrap();
            write!(stream, "{}", answer(200, &data(&json!({"signature": signature(1, &message)}))))
        }
    }
}

fn signature(seed: u8, message: &[u8]) -> String {
    format!("vault:v1:{}", STANDARD.encode(key(seed).sign(message).to_bytes()))
}

fn answer(status: u16, body: &str) -> String {
    format!(
        "HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
}

/// An answer of Vault around `data`.
fn data(data: &Value) -> String {
    json!({
        "data": data, "auth": null, "lease_id": "", "lease_duration": 0, "renewable": false, "request_id": "r",
        "warnings": null, "wrap_info": null,
    })
    .to_string()
}

fn signed(text: &str) -> Does {
    Does::Answers(200, data(&json!({"signature": text})))
}

fn desk() -> Desk {
    let desk = Desk::new();
    desk.pin(&public(&key(1)), "vault", "release").exits(0);
    desk
}

fn sign(desk: &Desk, address: &str, change: impl Fn(&mut std::process::Command)) -> Run {
    let (policy, trust) = (desk.path("policy"), desk.path("trust.json"));
    let mut command = command(&[
        "sign",
        "--initial",
        "--signer",
        "vault",
        "--vault-key",
        "release",
        "--timeout",
        "1",
        "-C",
        &policy,
        "--trust",
        &trust,
        "--vault-addr",
        address,
    ]);
    command.env("VAULT_TOKEN", TOKEN).env("RUST_LOG", "trace");
    change(&mut command);
    let run = finish(command);
    assert!(!run.all().contains(TOKEN), "the token is in the output:\n{}", run.all());
    run
}

/// Signing against a stub that does this fails with this code and writes nothing.
#[track_caller]
fn fails(does: Does, code: &str) -> Stub {
    let desk = desk();
    let stub = Stub::always(does);
    let run = sign(&desk, &stub.address, |_| ()).says(code);
    assert!(run.code == 2 || run.code == 4, "{}", run.code);
    assert!(run.err.contains("help:") && !run.err.contains("panicked"), "{}", run.err);
    assert!(!desk.root.path().join("policy").join(ENVELOPE).exists());
    assert_eq!(std::fs::read_dir(desk.root.path().join("policy")).unwrap().count(), 3);
    stub
}

#[test]
fn only_the_input_is_sent_with_the_token() {
    let desk = desk();
    let stub = Stub::always(Does::Signs);
    sign(&desk, &stub.address, |command| _ = command.env("VAULT_TOKEN", format!("\t{TOKEN}\r\n"))).exits(0);
    desk.verify(&["--enforce"]).exits(0);
    let requests = stub.requests();
    assert_eq!(requests.len(), 1);
    let (head, body) = requests[0].split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("POST /v1/transit/sign/release HTTP/1.1\r\n"), "{head}");
    let tokens: Vec<_> = head.lines().filter(|l| l.to_lowercase().contains("token")).collect();
    assert_eq!(tokens, [format!("x-vault-token: {TOKEN}")]);
    let body: Value = serde_json::from_str(body).unwrap();
    assert_eq!(body.as_object().unwrap().keys().collect::<Vec<_>>(), ["input"]);
}

#[test]
fn no_redirect_is_followed() {
    let other = Stub::always(Does::Signs);
    for status in [301, 302, 303, 307, 308] {
        for to in [other.address.clone(), other.address.replace("127.0.0.1", "localhost"), String::new()] {
            let location =
                format!("HTTP/1.1 {status} X\r\nLocation: {to}/v1/transit/sign/release\r\nContent-Length: 0\r\n\r\n");
            let stub = fails(Does::Says(location), "vault-redirect");
            assert_eq!(stub.requests().len(), 1, "followed to itself");
        }
    }
    assert_eq!(other.requests(), Vec::<String>::new(), "followed to another host");
}

#[test]
fn no_proxy_is_used() {
    let proxy = Stub::always(Does::Signs);
    let stub = Stub::always(Does::Signs);
    let desk = desk();
    sign(&desk, &stub.address, |command| {
        for name in ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"] {
            command.env(name, &proxy.address);
        }
    })
    .exits(0);
    assert_eq!(proxy.requests(), Vec::<String>::new());
    assert_eq!(stub.requests().len(), 1);
}

#[test]
fn other_variables_of_vault_clients_change_nothing() {
    let stub = Stub::always(Does::Signs);
    let desk = desk();
    sign(&desk, &stub.address, |command| {
        for (name, value) in [
            ("VAULT_ADDR", "http://192.0.2.1:1"),
            ("VAULT_CAPATH", "/nonexistent"),
            ("VAULT_CLIENT_CERT", "/nonexistent"),
            ("VAULT_CLIENT_KEY", "/nonexistent"),
            ("VAULT_SKIP_VERIFY", ""),
            ("VAULT_NAMESPACE", ""),
        ] {
            command.env(name, value);
        }
    })
    .exits(0);
    let request = stub.requests().remove(0);
    assert!(!request.to_lowercase().contains("namespace"), "{request}");
}

#[test]
fn answers_that_hang_or_break_off_are_reported() {
    fails(Does::Hangs(String::new()), "vault-timeout");
    fails(Does::Hangs("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{\"data\":".into()), "vault-timeout");
    fails(Does::Says("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{\"data\":".into()), "vault-answer");
    fails(Does::Says(String::new()), "vault-unreachable");
    fails(Does::Says("SSH-2.0-x\r\n".into()), "vault-unreachable");
}

#[test]
fn answers_that_are_no_signature_are_refused() {
    let good = STANDARD.encode([7; 64]);
    for text in [
        "",
        "vault:v1:",
        &good,
        &format!("vault:{good}"),
        &format!("vault:v1:{}", STANDARD.encode([7; 63])),
        &format!("vault:v1:{}", STANDARD.encode([7; 65])),
        &format!("vault:v1:{}", good.trim_end_matches('=')),
        &format!("vault:vx:{good}"),
        &format!("pkcs11:v1:{good}"),
        &format!("vault:v1:{good} "),
    ] {
        fails(signed(text), "vault-answer");
    }
    fails(Does::Answers(200, data(&json!({}))), "vault-answer");
    fails(Does::Answers(200, data(&json!({"signature": 7}))), "vault-answer");
    fails(Does::Answers(200, data(&Value::Null)), "vault-answer");
    fails(Does::Answers(200, "{}".into()), "vault-answer");
    fails(Does::Answers(200, "<html>log in</html>".into()), "vault-answer");
    fails(Does::Answers(204, String::new()), "vault-answer");
}

#[test]
fn signatures_that_do_not_fit_are_not_written() {
    fails(signed(&format!("vault:v1:{}", STANDARD.encode([7; 64]))), "signature-not-pinned");
    // Of the empty message, which is what both servers sign when `input` is lost.
    fails(signed(&signature(1, b"")), "signature-not-pinned");
    // Of another message, and by another key.
    fails(signed(&signature(1, b"DSSEv1 0  0 ")), "signature-not-pinned");
    let stub = Stub::new(|_, body| {
        let body: Value = serde_json::from_str(body).unwrap();
        signed(&signature(2, &STANDARD.decode(body["input"].as_str().unwrap()).unwrap()))
    });
    let desk = desk();
    let run = sign(&desk, &stub.address, |_| ()).exits(4).says("signature-not-pinned");
    assert!(run.err.contains("version 1"), "{}", run.err);
}

#[test]
fn every_status_has_its_words_and_no_text_of_the_server_is_repeated() {
    let text =
        json!({"errors": [format!("1 error occurred: permission denied for {TOKEN}"), "\u{1b}[2Jx"]}).to_string();
    for (status, code) in [
        (400, "vault-key-refused"),
        (403, "vault-denied"),
        (404, "vault-key-missing"),
        (405, "vault-status"),
        (412, "vault-status"),
        (413, "vault-too-large"),
        (429, "vault-busy"),
        (472, "vault-sealed"),
        (473, "vault-sealed"),
        (500, "vault-key-refused"),
        (502, "vault-status"),
        (503, "vault-sealed"),
        (504, "vault-status"),
    ] {
        fails(Does::Answers(status, text.clone()), code);
        fails(Does::Answers(status, String::new()), code);
        fails(Does::Answers(status, format!("<html>{TOKEN}</html>")), code);
    }
}

/// A stub that logs in, shows key 1 as version 1, and answers `verify` as told.
fn gate(valid: Value) -> Stub {
    Stub::new(move |line, _| match line {
        "POST /v1/auth/approle/login" => {
            let auth = json!({
                "client_token": TOKEN, "accessor": "a", "policies": [], "token_policies": [], "metadata": null,
                "lease_duration": 60, "renewable": false, "entity_id": "", "token_type": "service", "orphan": true,
            });
            Does::Answers(200, data(&Value::Null).replace("\"auth\":null", &format!("\"auth\":{auth}")))
        }
        "GET /v1/transit/keys/release" => Does::Answers(
            200,
            data(&json!({
                "type": "ed25519", "deletion_allowed": false, "derived": false, "exportable": false,
                "allow_plaintext_backup": false, "min_decryption_version": 1, "min_encryption_version": 0, "name": "release",
                "supports_encryption": false, "supports_decryption": false, "supports_derivation": true,
                "supports_signing": true, "imported": false, "latest_version": 1, "unknown_in_future": [],
                "keys": {"1": {"creation_time": "2026-01-01T00:00:00Z", "name": "ed25519", "public_key": public(&key(1))}},
            })),
        ),
        "POST /v1/transit/verify/release" => Does::Answers(200, data(&json!({"valid": valid}))),
        "POST /v1/auth/token/revoke-self" => Does::Answers(204, String::new()),
        "POST /v1/transit/sign/release" => Does::Signs,
        _ => Does::Answers(404, r#"{"errors":[]}"#.into()),
    })
}

fn verify(desk: &Desk, stub: &Stub) -> Run {
    let (policy, trust, secret) = (desk.path("policy"), desk.path("trust.json"), desk.path("secret-id"));
    desk.put("secret-id", "5ec2e7-1d");
    let run = finish(command(&[
        "verify",
        "--enforce",
        "--no-state",
        "-C",
        &policy,
        "--trust",
        &trust,
        "--also-vault",
        "--vault-key",
        "release",
        "--vault-addr",
        &stub.address,
        "--role-id",
        "gate",
        "--secret-id-file",
        &secret,
        "--timeout",
        "1",
    ]));
    assert!(!run.all().contains(TOKEN) && !run.all().contains("5ec2e7-1d"), "{}", run.all());
    run
}

#[test]
fn a_vault_that_refuses_a_signature_refuses_the_set() {
    let desk = desk();
    let good = gate(true.into());
    sign(&desk, &good.address, |_| ()).exits(0);
    verify(&desk, &good).exits(0);
    assert!(good.requests().last().unwrap().starts_with("POST /v1/auth/token/revoke-self"), "the token is given back");
    let asked = good.requests().into_iter().find(|r| r.starts_with("POST /v1/transit/verify")).unwrap();
    let body: Value = serde_json::from_str(asked.split_once("\r\n\r\n").unwrap().1).unwrap();
    assert_eq!(body.as_object().unwrap().keys().collect::<Vec<_>>(), ["input", "signature"]);
    verify(&desk, &gate(false.into())).exits(4).says("vault-refuses-signature");
    verify(&desk, &gate("true".into())).exits(4).says("vault-answer");
    verify(&desk, &gate(Value::Null)).exits(4).says("vault-answer");
}

#[test]
fn a_login_without_a_usable_token_is_refused() {
    let desk = desk();
    sign(&desk, &gate(true.into()).address, |_| ()).exits(0);
    for token in ["", "with\nline", "with space"] {
        let stub = Stub::new(move |_, _| {
            let auth = json!({
                "client_token": token, "accessor": "a", "policies": [], "token_policies": [], "metadata": null,
                "lease_duration": 60, "renewable": false, "entity_id": "", "token_type": "service", "orphan": true,
            });
            Does::Answers(200, data(&Value::Null).replace("\"auth\":null", &format!("\"auth\":{auth}")))
        });
        verify(&desk, &stub).exits(4).says("vault-answer");
    }
    verify(&desk, &Stub::always(Does::Answers(400, r#"{"errors":["invalid role or secret ID"]}"#.into())))
        .exits(4)
        .says("vault-login");
}

/// Runs that fail with a key file never show what it holds.
#[test]
fn key_material_is_in_no_output() {
    let desk = Desk::new();
    let pem = String::from_utf8(desk.get("a.pem")).unwrap();
    let body = pem.lines().nth(1).unwrap().to_owned();
    let raw = STANDARD.decode(&body).unwrap();
    let seed = &raw[raw.len() - 32..];
    let hex: String = seed.iter().map(|b| format!("{b:02x}")).collect();
    let hidden = [body.clone(), STANDARD.encode(seed), hex.clone(), hex.to_uppercase(), format!("{seed:?}")];
    let mut runs =
        vec![desk.sign("a.pem", &["--initial"]), desk.sign("a.pem", &["--initial"]), desk.sign("a.pem", &[])];
    for (name, text) in [
        ("cut.pem", pem[..60].to_owned()),
        ("no-end.pem", pem.replace("-----END PRIVATE KEY-----", "")),
        ("twice.pem", format!("{pem}{pem}")),
        ("wrong-label.pem", pem.replace("PRIVATE KEY", "ENCRYPTED PRIVATE KEY")),
        ("changed.pem", pem.replacen(&body[..4], "AAAA", 1)),
        ("raw.pem", hex.clone()),
    ] {
        desk.put(name, text);
        std::fs::set_permissions(desk.path(name), std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
        runs.push(desk.sign(name, &["--initial"]).exits(2).says("key-file-format"));
    }
    std::fs::set_permissions(desk.path("a.pem"), std::os::unix::fs::PermissionsExt::from_mode(0o644)).unwrap();
    runs.push(desk.sign("a.pem", &["--initial"]).exits(2).says("key-file-permissions"));
    std::fs::set_permissions(desk.path("a.pem"), std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    desk.put("trust.json", "{}");
    runs.push(desk.sign("a.pem", &["--initial"]));
    for run in runs {
        for text in &hidden {
            assert!(!run.all().contains(text.as_str()), "{}", run.all());
        }
    }
    let envelope = String::from_utf8(desk.get(&format!("policy/{ENVELOPE}"))).unwrap();
    assert!(!envelope.contains(&body));
}
